/* Which points a bench run consists of: variants and shapes from the command line, checked before
 * anything is measured. */
#ifndef ATTN_HARNESS_SWEEP_H
#define ATTN_HARNESS_SWEEP_H

#include "base/text.h"
#include "run/point.h"
#include "run/runner.h"
#include "run/plugins.h"

/* What was asked for; 0 or SWEEP_UNSAID where nothing was said. */
enum { SWEEP_UNSAID = -1 };

typedef struct sweep_request {
  const text_list *variants; /* empty: all */
  const text_list *problems, *presets;
  int64_t batch, heads, kv_heads, head_dim, value_dim, window;
  /* The same for all lengths, which are then those of the keys; 0 or SWEEP_UNSAID: as many as keys. */
  int64_t query_length;
  const text_list *parts; /* of a problem line, that hold at every length; NULL: none */
  bool causal;
  const int64_t *lengths; /* ascending, each once */
  size_t length_count;
  /* Ascending, each once; beside the lengths, at the longest of them. */
  const int64_t *batches, *head_dims;
  size_t batch_count, head_dim_count;
  uint64_t seed;
  const text_list *memory_only; /* variants that are not run; NULL: none */
  const char *filter;           /* a regular expression, with '-' in front for all others; NULL: everything */
} sweep_request;

typedef struct sweep {
  bench_point *points;
  size_t count;
  char *notes; /* a line for each variant that was left out, with the reason; "" for none */
} sweep;

/* False, with the reason in words, when a variant or preset does not exist, a shape makes no sense or
 * nothing is left to measure. */
bool sweep_create(sweep *sweep, const sweep_request *request, const variant_list *list, char *why,
                  size_t why_size);
void sweep_destroy(sweep *sweep);

/* What shows a variant best where nothing else is asked for, by its showcase. */
int64_t sweep_kv_heads(const attn_variant *variant, int64_t query_heads);
int64_t sweep_window(const attn_variant *variant); /* ATTN_UNLIMITED: none */

/* fused/causal/B:1/H:8/Hkv:8/D:64/T:4096 */
void sweep_point_name(const bench_point *point, char name[WORKLOAD_NAME_BYTES]);

/* False, with the nearest name, when one of the names is not in the list. */
bool sweep_check_variants(const variant_list *list, const text_list *names, char *why, size_t why_size);

#endif
