/* The problems that variants are held to properties on. */
#include "properties.h"

#include "problem/types.h"

#include <assert.h>

#include "problem/random_problem.h"
#include "reference/reference.h"

enum { LARGEST_WORK = 100000000, RANDOM_WORK = 400000 };

static double work_of(const workload *w) {
  return (double)w->batch * (double)w->query_heads * (double)w->query_length * (double)w->key_length *
         (double)(w->head_dim + w->value_dim);
}

/* The altered problems are made of float32. */
bool properties_can_be_held(const workload *w) {
  return work_of(w) <= LARGEST_WORK && !element_type_is_narrow(w->type);
}

/* What chance hardly draws. */
static const char *const chosen[] = {
    /* Few rows, where the order of the keys is not that of memory; more and fewer keys than a tile has. */
    "full/B:1/H:4/Hkv:2/D:64/Dv:79/Tq:1/Tk:300/lse",
    "causal_bottom_right/B:2/H:4/Hkv:2/D:72/Tq:2/Tk:129",
    "full/B:1/H:2/D:128/Tq:1/Tk:64/lse",
    /* So much company that a kernel may cut its work in another way than for one head alone. */
    "full/B:40/H:2/Hkv:2/D:8/Tq:1/Tk:4100/lse",
    "full/B:3/H:16/Hkv:8/D:8/Dv:24/Tq:2/Tk:2500",
    "causal/B:16/H:8/Hkv:8/D:8/T:70/lse",
    "causal/B:2/H:4/Hkv:2/D:24/T:50/sink/bias:h/lse/weights",
    "window:100/B:2/H:32/Hkv:16/D:8/T:300",
    "linear/causal_bottom_right/B:3/H:2/Hkv:2/D:8/Tq:60/Tk:1100",
    "linear/full/B:5/H:4/Hkv:4/D:16/Tq:20/Tk:1100",
};

enum { CHOSEN = sizeof chosen / sizeof *chosen };

workload properties_problem(uint64_t seed, int64_t n) {
  workload w;
  if (n < CHOSEN) {
    char why[256] = "";
    const bool sound = workload_parse(chosen[n], &w, why, sizeof why);
    assert(sound && "these are written in workload's own words");
    (void)sound;
    w.seed = seed;
    return w;
  }
  w = random_problem(seed ^ UINT64_C(0x9a17), n);
  w.type = w.output_type = ATTN_ABSENT; /* float32 */
  while (work_of(&w) > RANDOM_WORK) {
    int64_t *length = w.query_length >= w.key_length ? &w.query_length : &w.key_length;
    *length = *length * 2 / 3;
  }
  for (int64_t b = 0; b < w.batch && w.has_lengths; b++)
    if (w.lengths[b] > w.key_length) w.lengths[b] = w.key_length;
  /* What few problems have, for the variants and properties that need it. */
  if (n % 4 == 0) w.kv_heads = 1;
  if (n % 4 == 2 && reference_function_of(w.function)->has_scores) w.wants_weights = true;
  return w;
}
