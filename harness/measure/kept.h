/* What a sweep keeps where a variant ends its process, for the one that goes on. */
#ifndef ATTN_HARNESS_KEPT_H
#define ATTN_HARNESS_KEPT_H

#include "results.h"
#include "run/supervisor.h"

typedef struct bench_kept {
  machine *machine;       /* as it was measured; NULL: it was not yet */
  planned_point *planned; /* who measures what; NULL: that is not decided */
  size_t planned_count;
} bench_kept;

/* Made where there is none; NULL without memory. */
static inline bench_kept *bench_kept_find(void) {
  void **root = supervisor_root();
  if (!*root) *root = supervisor_keep(sizeof(bench_kept));
  return *root;
}

#endif
