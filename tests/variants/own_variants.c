#include "own_variants.h"

#include <stdio.h>

variant_list own_variants;

int own_variants_load(void **state) {
  (void)state;
  char why[256];
  if (variant_list_add(&own_variants, ATTN_BUILD_DIR "/attnbench_variants.so", why, sizeof why)) return 0;
  fprintf(stderr, "%s\n", why);
  return 1;
}

int own_variants_unload(void **state) {
  (void)state;
  variant_list_destroy(&own_variants);
  return 0;
}
