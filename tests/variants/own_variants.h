/* The variants of our own, as the program loads them. */
#ifndef OWN_VARIANTS_H
#define OWN_VARIANTS_H

#include "run/plugins.h"

extern variant_list own_variants;

/* For a group of tests: its first and last step. */
int own_variants_load(void **state);
int own_variants_unload(void **state);

#endif
