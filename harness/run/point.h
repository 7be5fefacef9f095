/* A point of a sweep: one variant on one workload. */
#ifndef ATTN_HARNESS_POINT_H
#define ATTN_HARNESS_POINT_H

#include "plugins.h"
#include "problem/workload.h"

typedef struct bench_point {
  const attn_variant *variant;
  workload workload;
  const char *origin; /* the plugin that the variant came from, NULL: our own; for the report of a crash */
  const char *const *instruction_sets; /* of the variant's table, ending in NULL; NULL: not known */
  bool memory_only;                    /* it is not run: what workspace it asks for is all that is wanted */
} bench_point;

/* What the variant is held to where this one is wanted: NULL where its table does not have it. */
static inline const char *point_isa(const bench_point *point, const char *wanted) {
  return point->instruction_sets ? isa_among(point->instruction_sets, wanted) : wanted;
}

#endif
