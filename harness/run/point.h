/* A point of a sweep: one variant on one workload. */
#ifndef ATTN_HARNESS_POINT_H
#define ATTN_HARNESS_POINT_H

#include "problem/workload.h"

typedef struct bench_point {
  const attn_variant *variant;
  workload workload;
  const char *origin; /* the plugin that the variant came from, NULL: our own; for the report of a crash */
} bench_point;

#endif
