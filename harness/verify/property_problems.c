/* The problems that variants are held to properties on. */
#include "properties.h"

#include "problem/random_problem.h"
#include "reference/reference.h"

enum { LARGEST_WORK = 100000000, RANDOM_WORK = 400000, NARROW_WORK = 100000 };

static double work_of(const workload *w) {
  return (double)w->batch * (double)w->query_heads * (double)w->query_length * (double)w->key_length *
         (double)(w->head_dim + w->value_dim);
}

bool properties_can_be_held(const workload *w) { return work_of(w) <= LARGEST_WORK; }

/* What chance hardly draws. */
static const char *const chosen[] = {
    /* Few rows, where the order of the keys is not that of memory; more and fewer keys than a tile has. */
    "full/B:1/H:4/Hkv:2/D:64/Dv:79/Tq:1/Tk:300/lse",
    "causal_bottom_right/B:2/H:4/Hkv:2/D:72/Tq:2/Tk:129",
    "full/B:1/H:2/D:128/Tq:1/Tk:64/lse",
    /* So much company that a kernel may cut its work in another way than for one head alone. */
    "full/B:17/H:2/Hkv:2/D:8/Tq:1/Tk:4100/lse",
    "full/B:2/H:8/Hkv:4/D:8/Dv:24/Tq:2/Tk:2100",
    "causal/B:17/H:2/Hkv:2/D:8/T:70/lse",
    "causal/B:2/H:4/Hkv:2/D:24/T:50/sink/bias:h/lse/weights",
    "window:100/B:2/H:16/Hkv:8/D:4/T:150",
    "causal/B:2/H:4/Hkv:2/D:24/T:150/see:strided:7+first:3/sink/lse",
    "full/B:1/H:2/D:16/T:130/see:local:20,3",
    "full/B:2/H:4/Hkv:2/D:8/Tq:140/Tk:200/blocks:64,32,0.4,bh/bias:h/lse",
    "causal/B:2/H:4/Hkv:2/D:24/T:150/alibi/sink/lse",
    "full/B:2/H:6/Hkv:2/D:16/Tq:3/Tk:300/offsets:290,-7/alibi/lse",
    "causal/B:2/H:4/Hkv:1/D:16/T:90/alibi/see:local:9,0+first:2/lse",
    "causal/B:2/H:4/Hkv:2/D:24/T:150/relative:12/sink/lse",
    "full/B:2/H:6/Hkv:2/D:16/Tq:3/Tk:300/offsets:290,-7/alibi/relative:5/lse",
    "full/B:2/H:4/Hkv:1/D:24/T:150/t5:32,128/sink/lse",
    "causal_bottom_right/B:2/H:6/Hkv:2/D:16/Tq:3/Tk:300/t5:16,64,one/relative:5/lse",
    "causal/B:2/H:4/Hkv:2/D:24/T:150/rope:half/sink/lse",
    "full/B:2/H:6/Hkv:2/D:17/Tq:3/Tk:300/offsets:290,7/rope:interleaved,10/alibi/lse",
    "causal_bottom_right/B:2/H:4/Hkv:1/D:16/Tq:40/Tk:500/rope:half/bias:h/see:local:60,0+first:9/lse",
    "causal/B:2/H:4/Hkv:2/D:24/T:150/general/sink/lse",
    "full/B:2/H:6/Hkv:2/D:17/Tq:3/Tk:300/general/bias:h/lse",
    "causal/B:2/H:4/Hkv:2/D:24/T:150/dropout:0.3/sink/lse",
    "full/B:2/H:6/Hkv:2/D:16/Tq:3/Tk:300/dropout:0.1,bh/bias:h/lse",
    "linear/causal_bottom_right/B:3/H:2/Hkv:2/D:8/Tq:60/Tk:1100",
    "linear/full/B:5/H:4/Hkv:4/D:16/Tq:20/Tk:1100",
    "linear/band:inf,3,-1152921504606846976/B:1/H:2/D:16/T:40", /* no query could stand farther before a part */
    "linear/causal/B:2/H:4/Hkv:2/D:17/T:140/phi:relu",
    "linear/causal/B:3/H:4/Hkv:2/D:17/Dv:40/T:140/decay",
    "linear/causal_bottom_right/B:2/H:2/D:16/Tq:70/Tk:200/lengths:200,130/decay/unnormalised",
    "linear/causal/B:2/H:4/Hkv:2/D:17/T:140/phi:identity/unnormalised",
    "linear/causal/B:2/H:4/Hkv:2/D:17/Dv:33/T:140/state/final_state",
    "linear/causal/B:2/H:2/D:16/T:150/decay/state/final_state/layout:padded",
    "linear/full/B:3/H:2/D:17/Tq:30/Tk:200/lengths:200,130,0/phi:relu/unnormalised/final_state",
    ("linear/causal_bottom_right/B:2/H:4/Hkv:2/D:24/Dv:20/Tq:1/Tk:1/phi:identity/unnormalised/decay/state/"
     "final_state"),
    "backward/causal/B:2/H:4/Hkv:2/D:24/T:150/sink",
    "linear_backward/causal/B:2/H:4/Hkv:2/D:24/T:150",
    "linear_backward/full/B:1/H:2/D:17/Dv:33/Tq:70/Tk:300/layout:padded",
    "linear_backward/causal/B:2/H:4/Hkv:2/D:24/T:150/decay/state",
    "backward/full/B:2/H:4/Hkv:2/D:20/Tq:70/Tk:150/offsets:80,3/rope:half,12",
    "backward/full/B:1/H:2/D:17/Dv:33/Tq:70/Tk:300/bias:bhq/softcap:3/layout:padded",
    "layer/full/B:2/H:4/Hkv:2/D:24/M:40/T:90/mask:bhq/sink/biases",
    "layer/full/B:3/H:2/D:17/Dv:33/M:31/Tq:70/Tk:300/bias:bhq/softcap:3/layout:padded/biases",
    "causal/B:2/H:2/Hkv:1/D:24/T:100/additive/lse",
    "full/B:2/H:6/Hkv:2/D:17/Tq:3/Tk:300/additive/bias:h/lse",
    /* A pattern in blocks of two sizes. */
    "band:0,inf,0/B:1/H:2/D:16/Tq:70/Tk:90/see:random:2,6+random:3,44,1/lse",
};

/* What every property says something of, for each variant, each in each of the types: few and small, for of 16 bits
 * only what lies between elements and sums differs from float32. A number of lines that meets all turns of instruction
 * sets. */
static const char *const chosen_narrow[] = {
    "causal/B:2/H:4/Hkv:2/D:24/T:50/sink/bias:h/lse/weights",
    "window:20/B:2/H:4/Hkv:1/D:17/Dv:10/T:70/alibi/lse",
    "linear/causal_bottom_right/B:2/H:4/Hkv:2/D:9/Tq:30/Tk:90",
    "causal_bottom_right/B:2/H:4/Hkv:1/D:33/Tq:20/Tk:130/sink/bias:hq/lse",
    "full/B:3/H:2/Hkv:2/D:40/Tq:1/Tk:300/lse",
    "full/B:1/H:4/Hkv:2/D:20/Dv:31/Tq:40/Tk:66/bias:bhq/alibi/additive/lse",
    "window:6/B:3/H:2/Hkv:1/D:8/Tq:40/Tk:90/lengths:90,33,0/lse",
    "full/B:2/H:4/Hkv:2/D:16/T:70/see:local:9,4/lse",
    "causal/B:1/H:4/Hkv:1/D:24/T:90/see:strided:7+first:3/sink/lse",
    "full/B:2/H:2/Hkv:1/D:16/Tq:70/Tk:140/blocks:32,64,0.4,bh/qlengths:70,33/lse",
    "causal/B:2/H:2/D:16/T:80/docs:20/topk:5/lse",
    "causal_bottom_right/B:2/H:4/Hkv:2/D:24/Tq:20/Tk:90/rope:half/lse",
    "causal/B:2/H:4/Hkv:2/D:9/T:70/dropout:0.4/sink/lse",
    "full/B:1/H:4/Hkv:2/D:18/T:70/general/lse",
};

/* The same of the backward pass, and with one key/value head what few random problems have; behind all of those. */
static const char *const chosen_narrow_later[] = {
    "full/B:2/H:4/Hkv:1/D:24/Tq:20/Tk:50/rope:half/lse",
    "causal/B:2/H:4/Hkv:1/D:9/T:50/dropout:0.4/lse",
    "full/B:1/H:4/Hkv:1/D:18/T:50/general/lse",
    "full/B:1/H:4/Hkv:1/D:12/T:30/additive/lse",
    "backward/causal/B:2/H:4/Hkv:2/D:24/T:50/sink",
    "backward/full/B:1/H:2/D:17/Dv:33/Tq:70/Tk:50/bias:bhq/softcap:3/layout:padded",
    "backward/full/B:2/H:4/Hkv:2/D:20/Tq:30/Tk:70/offsets:80,3/rope:half,12",
    "linear_backward/causal/B:2/H:4/Hkv:2/D:17/T:40/decay/state",
    "linear_backward/full/B:1/H:4/Hkv:1/D:9/Dv:20/Tq:50/Tk:70",
};

/* Of the output too, where it is not said. */
static const attn_type narrow_types[][2] = {{ATTN_BFLOAT16, ATTN_ABSENT},
                                            {ATTN_FLOAT16, ATTN_ABSENT},
                                            {ATTN_BFLOAT16, ATTN_FLOAT32},
                                            {ATTN_FLOAT16, ATTN_FLOAT32}};

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

enum { NARROW_ONE_IN = 5 };

int64_t properties_problems(int64_t count) { return count * NARROW_ONE_IN / (NARROW_ONE_IN - 1); }

static workload parsed(const char *text, uint64_t seed) {
  workload w = workload_written(text);
  w.seed = seed;
  return w;
}

static workload random_small(uint64_t seed, int64_t n, double most_work) {
  workload w = random_problem(seed, n);
  while (work_of(&w) > most_work) {
    int64_t *length = w.query_length >= w.key_length ? &w.query_length : &w.key_length;
    *length = *length * 2 / 3;
  }
  for (int64_t b = 0; b < w.batch && w.has_lengths; b++)
    if (w.lengths[b] > w.key_length) w.lengths[b] = w.key_length;
  for (int64_t b = 0; b < w.batch && w.has_query_lengths; b++)
    if (w.query_lengths[b] > w.query_length) w.query_lengths[b] = w.query_length;
  /* What few problems have, for the variants and properties that need it. */
  if (n % 4 == 0) w.kv_heads = 1;
  if (n % 4 == 2 && w.function == ATTN_SOFTMAX) w.wants_weights = true;
  return w;
}

static workload of_type(workload w, int64_t turn) {
  const attn_type *types = narrow_types[turn % COUNT(narrow_types)];
  w.type = types[0];
  w.output_type = types[1];
  return w;
}

/* Each line meets each type; then they are drawn at random. */
static workload narrow_problem(uint64_t seed, int64_t n) {
  static const struct {
    const char *const *lines;
    int64_t count;
  } lists[] = {{chosen_narrow, COUNT(chosen_narrow)}, {chosen_narrow_later, COUNT(chosen_narrow_later)}};
  int64_t left = n;
  for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
    const int64_t count = lists[l].count;
    if (left < count * COUNT(narrow_types))
      return of_type(parsed(lists[l].lines[left % count], seed), left % count + left / count);
    left -= count * COUNT(narrow_types);
  }
  workload w = random_small(seed ^ UINT64_C(0x16b1), n, NARROW_WORK);
  w.function = reference_function_of(w.function)->forward; /* of the others lines are above */
  if (w.function == ATTN_LAYER) {
    w.function = ATTN_SOFTMAX;
    w.model_dim = 0;
    w.memory = w.biases = false;
  }
  return of_type(w, n % COUNT(chosen_narrow) + n / COUNT(chosen_narrow));
}

workload properties_problem(uint64_t seed, int64_t n) {
  const int64_t narrow = n / NARROW_ONE_IN, of_float32 = n - narrow;
  if (n % NARROW_ONE_IN == NARROW_ONE_IN - 1) return narrow_problem(seed, narrow);
  if (of_float32 < COUNT(chosen)) return parsed(chosen[of_float32], seed);
  workload w = random_small(seed ^ UINT64_C(0x9a17), of_float32, RANDOM_WORK);
  w.type = w.output_type = ATTN_ABSENT;
  return w;
}
