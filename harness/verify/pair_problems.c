/* See pair_problems.h. Thin problems: one or two sizes are large, around and beyond every power of two at which a tile, a
 * stack buffer or an int could end, and the others small, so that the reference can afford all rows. Softmax and linear
 * attention are chosen apart, for no kernel takes both. */
#include "pair_problems.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "covering.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* ---- what is chosen, the plainest first ---- */

enum {
  KEYS,
  QUERIES,
  HEAD_DIM,
  VALUE_DIM,
  THREADS,
  TURN,
  BATCH,
  KV_HEADS,
  GROUP,
  NUMBERS, /* those before it are numbers, those behind it parts of a line */
  FILL = NUMBERS,
  BAND,
  LENGTHS,
  LAYOUT,
  SCALE,
  EPSILON,
  MASK,
  BIAS,
  SOFTCAP,
  SINK,
  LSE,
  WEIGHTS,
  FACTORS
};

static const int keys[] = {1,  2,   5,   7,   9,   15,  17,   31,   33,   63,    64,   65,
                           97, 127, 128, 129, 257, 513, 1021, 2049, 4097, 16385, 65537};
static const int queries[] = {1, 2, 3, 5, 7, 9, 15, 17, 31, 33, 61, 64, 65, 127, 129, 513, 1025, 4099};
static const int dims[] = {1, 3, 7, 8, 9, 15, 17, 31, 33, 63, 64, 65, 127, 129, 257, 513, 1025};
static const int value_dims[] = {1, 4, 7, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 301, 513, 1025};
/* One kernel takes these. */
static const int linear_keys[] = {1, 2, 7, 9, 17, 31, 64, 65, 129, 257, 1021, 4097, 65537};
static const int linear_queries[] = {1, 3, 9, 15, 33, 64, 65, 127, 513, 4099};
static const int linear_dims[] = {1, 7, 9, 16, 17, 33, 63, 65, 129, 513, 1025};
static const int threads[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const int turns[] = {0, 1, 2, 3, 4, 5};
static const int batches[] = {1, 2, 3, 7, 17, 65};
static const int kv_heads[] = {1, 2, 3, 8, 43, 129};
static const int groups[] = {1, 2, 3, 4, 7, 43, 129};

static const char *const fills[] = {"fill:uniform",      "fill:normal",    "fill:heavy",   "fill:dominant",
                                    "fill:equal",        "fill:saturated", "fill:rising",  "fill:falling",
                                    "fill:cancellation", "fill:denormal",  "fill:huge",    "fill:zeros",
                                    "fill:exact",        "fill:powers",    "fill:largest", "fill:nonfinite"};
static const char *const bands[] = {"full",           "causal",       "causal_bottom_right",
                                    "window:7",       "window:70",    "band:9,3,5",
                                    "band:inf,2,-20", "band:4,inf,0", "offsets"};
static const char *const linear_bands[] = {"full", "causal", "causal_bottom_right", "band:inf,2,-20",
                                           "offsets"};
static const char *const none[] = {""};
static const char *const lengths[] = {"", "lengths of all sizes", "short lengths"};
static const char *const layouts[] = {"layout:bhtd", "layout:bthd", "layout:shifted", "layout:padded",
                                      "layout:mixed"};
static const char *const scales[] = {"", "scale:-0.25", "scale:1"};
static const char *const epsilons[] = {"", "epsilon:0", "epsilon:0.5"};
static const char *const masks[] = {"", "mask:bhq", "mask:q", "mask:1"};
static const char *const biases[] = {"", "bias:bhq", "bias:h", "bias:bq"};
static const char *const softcaps[] = {"", "softcap:3"};
static const char *const sinks[] = {"", "sink"};
static const char *const lses[] = {"", "lse"};
static const char *const weights[] = {"", "weights"};

/* Of softmax, of linear attention. */
typedef struct factor {
  int count[2];          /* 1: nothing to choose */
  const int *numbers[2]; /* or */
  const char *const *texts[2];
} factor;

#define NUMBERS_OF(array, linear)                                                                            \
  {                                                                                                          \
    {COUNT(array), COUNT(linear)}, {array, linear}, { NULL, NULL }                                           \
  }
#define TEXTS_OF(array, linear)                                                                              \
  {                                                                                                          \
    {COUNT(array), COUNT(linear)}, {NULL, NULL}, { array, linear }                                           \
  }

static const factor factors[FACTORS] = {
    [KEYS] = NUMBERS_OF(keys, linear_keys),
    [QUERIES] = NUMBERS_OF(queries, linear_queries),
    [HEAD_DIM] = NUMBERS_OF(dims, linear_dims),
    [VALUE_DIM] = NUMBERS_OF(value_dims, linear_dims),
    [THREADS] = NUMBERS_OF(threads, threads),
    [TURN] = NUMBERS_OF(turns, turns),
    [BATCH] = NUMBERS_OF(batches, batches),
    [KV_HEADS] = NUMBERS_OF(kv_heads, kv_heads),
    [GROUP] = NUMBERS_OF(groups, groups),
    [FILL] = TEXTS_OF(fills, fills),
    [BAND] = TEXTS_OF(bands, linear_bands),
    [LENGTHS] = TEXTS_OF(lengths, lengths),
    [LAYOUT] = TEXTS_OF(layouts, layouts),
    [SCALE] = TEXTS_OF(scales, none),
    [EPSILON] = TEXTS_OF(none, epsilons),
    [MASK] = TEXTS_OF(masks, none),
    [BIAS] = TEXTS_OF(biases, none),
    [SOFTCAP] = TEXTS_OF(softcaps, none),
    [SINK] = TEXTS_OF(sinks, none),
    [LSE] = TEXTS_OF(lses, none),
    [WEIGHTS] = TEXTS_OF(weights, none),
};

static int64_t number(attn_function of, const int *levels, int factor) {
  return factors[factor].numbers[of][levels[factor] == COVERING_OPEN ? 0 : levels[factor]];
}

static bool is_said(attn_function of, const int *levels, int factor, const char *text) {
  return levels[factor] != COVERING_OPEN && strcmp(factors[factor].texts[of][levels[factor]], text) == 0;
}

static bool is_plain(const int *levels, int factor) { return levels[factor] <= 0; }

/* ---- what can stand together ---- */

/* What a problem costs, in multiply-adds of the reference. Each head may be a parallel region, where threads that share a
 * processor wait for each other; and threads may have workspaces of their own, which are poisoned: a state of linear
 * attention for each head, or some rows of scores. */
static double cost_of(attn_function of, const int *levels) {
  const double heads = (double)(number(of, levels, BATCH) * number(of, levels, KV_HEADS));
  const double query_heads = heads * (double)number(of, levels, GROUP),
               rows = query_heads * (double)number(of, levels, QUERIES);
  const double width = (double)(number(of, levels, HEAD_DIM) + number(of, levels, VALUE_DIM));
  const double pairs = rows * (double)number(of, levels, KEYS);
  const double workspace =
      of == ATTN_LINEAR ? heads * (double)(number(of, levels, HEAD_DIM) * number(of, levels, VALUE_DIM))
                        : (double)number(of, levels, KEYS);
  return pairs * (width + 8) + 3 * (rows + heads * (double)number(of, levels, KEYS)) * width +
         (1500 * query_heads + workspace) * (double)number(of, levels, THREADS);
}

enum { MOST_COST = 2250000, MOST_HEADS = 129 };

static int features_of(const int *levels) {
  int features = 0;
  for (int f = MASK; f <= WEIGHTS; f++) features += !is_plain(levels, f);
  return features;
}

/* Variants take more or fewer of the features, and what is posed only together with one is not posed to those that lack
 * it: so all that can meet without any does so first, then with a band or lengths alone, then with any two. */
enum { WITHOUT_FEATURES, WITH_ONE_BAND, WITH_TWO, WITH_ANY, PHASES };

static bool is_of_phase(const int *levels, int phase) {
  const int bands_used = !is_plain(levels, BAND) + !is_plain(levels, LENGTHS), others = features_of(levels);
  switch (phase) {
    case WITHOUT_FEATURES: return bands_used + others == 0;
    case WITH_ONE_BAND: return bands_used <= 1 && others == 0;
    case WITH_TWO: return bands_used + others <= 2;
    default: return true;
  }
}

static bool can_be(attn_function of, const int *levels, int phase) {
  const bool is_listed = is_said(of, levels, BAND, "offsets") || !is_plain(levels, LENGTHS);
  const bool is_exact = is_said(of, levels, FILL, "fill:exact"),
             has_powers = is_said(of, levels, FILL, "fill:powers");
  if (!is_of_phase(levels, phase)) return false;
  if (is_listed && number(of, levels, BATCH) > WORKLOAD_MAX_LISTED_BATCH) return false;
  if (number(of, levels, KV_HEADS) * number(of, levels, GROUP) > MOST_HEADS) return false;
  /* Which would not be what they are. */
  if ((is_exact || has_powers) && (!is_plain(levels, SCALE) || !is_plain(levels, SOFTCAP))) return false;
  if (has_powers && !is_plain(levels, BIAS)) return false;
  return cost_of(of, levels) <= MOST_COST;
}

static bool can_be_softmax(const int *levels, int phase) { return can_be(ATTN_SOFTMAX, levels, phase); }

static bool can_be_linear(const int *levels, int phase) { return can_be(ATTN_LINEAR, levels, phase); }

/* ---- as problems ---- */

static void say(workload *w, const char *part) {
  char why[256] = "";
  const bool sound = !*part || workload_say(w, part, why, sizeof why);
  assert(sound && "these are written in workload's own words");
  (void)sound;
}

static void set_lists(workload *w, const int *levels) {
  const attn_function of = w->function;
  const int64_t most = w->key_length, offsets[] = {0, most - w->query_length, -3, 5};
  const int64_t of_all_sizes[] = {most, (most + 1) / 2, 0, most - 1}, few[] = {1, 9, 2, 17};
  w->has_offsets = is_said(of, levels, BAND, "offsets");
  w->has_lengths = !is_plain(levels, LENGTHS);
  for (int64_t b = 0; b < w->batch && b < WORKLOAD_MAX_LISTED_BATCH; b++) {
    if (w->has_offsets) w->offsets[b] = offsets[b % 4];
    const int64_t length = levels[LENGTHS] == 1 ? of_all_sizes[b % 4] : few[b % 4];
    if (w->has_lengths) w->lengths[b] = length < most ? length : most;
  }
}

static workload problem_of(attn_function of, const int *levels) {
  workload w = workload_default();
  w.function = of;
  w.batch = number(of, levels, BATCH);
  w.kv_heads = number(of, levels, KV_HEADS);
  w.query_heads = w.kv_heads * number(of, levels, GROUP);
  w.query_length = number(of, levels, QUERIES);
  w.key_length = number(of, levels, KEYS);
  w.head_dim = number(of, levels, HEAD_DIM);
  w.value_dim = number(of, levels, VALUE_DIM);
  for (int f = NUMBERS; f < FACTORS; f++) {
    const char *text = factors[f].texts[of][levels[f]];
    if (f != LENGTHS) say(&w, strcmp(text, "offsets") == 0 ? "causal" : text);
  }
  set_lists(&w, levels);
  return w;
}

/* ---- all of them ---- */

static covering made[2]; /* by function */

static void make(void) {
  if (made[ATTN_SOFTMAX].count > 0) return;
  for (int of = 0; of < 2; of++) {
    covering_design design = {
        .factors = FACTORS, .phases = PHASES, .can_be = of == ATTN_SOFTMAX ? can_be_softmax : can_be_linear};
    for (int f = 0; f < FACTORS; f++) design.levels[f] = factors[f].count[of];
    covering_make(&design, &made[of]);
  }
}

int64_t pair_problems_count(void) {
  make();
  return made[ATTN_SOFTMAX].count + made[ATTN_LINEAR].count;
}

posed_problem pair_problem(int64_t n) {
  make();
  const attn_function of = n < made[ATTN_SOFTMAX].count ? ATTN_SOFTMAX : ATTN_LINEAR;
  const int *levels = made[of].rows[of == ATTN_SOFTMAX ? n : n - made[ATTN_SOFTMAX].count];
  workload problem = problem_of(of, levels);
  problem.seed = (uint64_t)n % 64 + 1; /* mixed layouts differ by it */
  return (posed_problem){.workload = problem,
                         .threads = (int)number(of, levels, THREADS),
                         .turn = (int)number(of, levels, TURN)};
}

void pair_problems_pairs(int64_t *pairs, int64_t *possible) {
  make();
  *pairs = made[ATTN_SOFTMAX].pairs + made[ATTN_LINEAR].pairs;
  *possible = made[ATTN_SOFTMAX].possible + made[ATTN_LINEAR].possible;
}
