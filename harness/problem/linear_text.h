/* How what linear attention has beside a band is said in a problem line: the feature map. */
#ifndef ATTN_HARNESS_LINEAR_TEXT_H
#define ATTN_HARNESS_LINEAR_TEXT_H

#include "words.h"

/* "elu1", "relu", "identity"; NULL for what is none. */
const char *linear_phi_name(attn_feature_map map);
bool linear_phi_named(const char *name, attn_feature_map *map);

bool linear_read_phi(workload_reading *r, const char *key, const char *text);
void linear_write_phi(const workload *w, const char *key, workload_writing *to);

#endif
