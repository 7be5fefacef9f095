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
  MAP,
  NORMALISER,
  DECAY,
  STATE,
  FINAL_STATE,
  MASK,
  BIAS,
  SOFTCAP,
  SINK,
  LSE,
  WEIGHTS,
  TYPE,
  FACTORS
};

/* Three arrays. Of 16 bits there is one for softmax, of fewer sizes: what its kernels share with those of float32 is not
 * posed once more, and float32 loses nothing. */
typedef enum kind { SOFTMAX, LINEAR, NARROW, KINDS } kind;

static const int keys[] = {1,  2,   5,   7,   9,   15,  17,   31,   33,   63,    64,   65,
                           97, 127, 128, 129, 257, 513, 1021, 2049, 4097, 16385, 65537};
static const int queries[] = {1, 2, 3, 5, 7, 9, 15, 17, 31, 33, 61, 64, 65, 127, 129, 513, 1025, 4099};
static const int dims[] = {1, 3, 7, 8, 9, 15, 17, 31, 33, 63, 64, 65, 127, 129, 257, 513, 1025};
static const int value_dims[] = {1, 4, 7, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 301, 513, 1025};
/* One kernel takes these. */
static const int linear_keys[] = {1, 2, 7, 9, 17, 31, 64, 65, 129, 257, 1021, 4097, 65537};
static const int linear_queries[] = {1, 3, 9, 15, 33, 64, 65, 127, 513, 4099};
static const int linear_dims[] = {1, 7, 9, 16, 17, 33, 63, 64, 65, 128, 129, 513, 1025};
static const int narrow_keys[] = {1, 2, 7, 33, 64, 97, 129, 1021};
static const int narrow_queries[] = {1, 3, 9, 17, 65, 129};
static const int narrow_dims[] = {1, 2, 7, 16, 33, 65, 128, 257};
static const int narrow_threads[] = {1, 2, 3};
static const int threads[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const int turns[] = {0, 1, 2, 3, 4, 5};
static const int batches[] = {1, 2, 3, 7, 17, 65};
static const int few[] = {1, 2, 3};
static const int kv_heads[] = {1, 2, 3, 8, 43, 129};
static const int groups[] = {1, 2, 3, 4, 7, 43, 129};

static const char *const fills[] = {
    "fill:uniform", "fill:normal",  "fill:heavy",        "fill:dominant",   "fill:equal",    "fill:saturated",
    "fill:rising",  "fill:falling", "fill:cancellation", "fill:around_one", "fill:denormal", "fill:huge",
    "fill:zeros",   "fill:exact",   "fill:powers",       "fill:largest",    "fill:nonfinite"};
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
static const char *const narrow_scales[] = {"", "scale:-0.25", "scale:0"};
static const char *const epsilons[] = {"", "epsilon:0", "epsilon:0.5"};
static const char *const maps[] = {"", "phi:relu", "phi:identity"};
static const char *const normalisers[] = {"", "unnormalised"};
static const char *const decays[] = {"", "decay"}; /* under a causal band */
static const char *const states[] = {"", "state"};
static const char *const final_states[] = {"", "final_state"};
static const char *const masks[] = {"", "mask:bhq", "mask:q", "mask:1"};
static const char *const biases[] = {"", "bias:bhq", "bias:h", "bias:bq"};
static const char *const softcaps[] = {"", "softcap:3"};
static const char *const sinks[] = {"", "sink"};
static const char *const lses[] = {"", "lse"};
static const char *const weights[] = {"", "weights"};
static const char *const types[] = {"bf16", "f16", "bf16/out:f32", "f16/out:f32"};

typedef struct factor {
  int count[KINDS];          /* 1: nothing to choose */
  const int *numbers[KINDS]; /* or */
  const char *const *texts[KINDS];
} factor;

#define NUMBERS_OF(softmax, linear, narrow)                                                                  \
  {                                                                                                          \
    .count = {COUNT(softmax), COUNT(linear), COUNT(narrow)}, .numbers = { softmax, linear, narrow }          \
  }
#define TEXTS_OF(softmax, linear, narrow)                                                                    \
  {                                                                                                          \
    .count = {COUNT(softmax), COUNT(linear), COUNT(narrow)}, .texts = { softmax, linear, narrow }            \
  }

static const factor factors[FACTORS] = {
    [KEYS] = NUMBERS_OF(keys, linear_keys, narrow_keys),
    [QUERIES] = NUMBERS_OF(queries, linear_queries, narrow_queries),
    [HEAD_DIM] = NUMBERS_OF(dims, linear_dims, narrow_dims),
    [VALUE_DIM] = NUMBERS_OF(value_dims, linear_dims, narrow_dims),
    [THREADS] = NUMBERS_OF(threads, threads, narrow_threads),
    [TURN] = NUMBERS_OF(turns, turns, turns),
    [BATCH] = NUMBERS_OF(batches, batches, few),
    [KV_HEADS] = NUMBERS_OF(kv_heads, kv_heads, few),
    [GROUP] = NUMBERS_OF(groups, groups, few),
    [FILL] = TEXTS_OF(fills, fills, fills),
    [BAND] = TEXTS_OF(bands, linear_bands, bands),
    [LENGTHS] = TEXTS_OF(lengths, lengths, lengths),
    [LAYOUT] = TEXTS_OF(layouts, layouts, layouts),
    [SCALE] = TEXTS_OF(scales, none, narrow_scales),
    [EPSILON] = TEXTS_OF(none, epsilons, none),
    [MAP] = TEXTS_OF(none, maps, none),
    [DECAY] = TEXTS_OF(none, decays, none),
    [NORMALISER] = TEXTS_OF(none, normalisers, none),
    [STATE] = TEXTS_OF(none, states, none),
    [FINAL_STATE] = TEXTS_OF(none, final_states, none),
    [MASK] = TEXTS_OF(masks, none, masks),
    [BIAS] = TEXTS_OF(biases, none, biases),
    [SOFTCAP] = TEXTS_OF(softcaps, none, softcaps),
    [SINK] = TEXTS_OF(sinks, none, sinks),
    [LSE] = TEXTS_OF(lses, none, lses),
    [WEIGHTS] = TEXTS_OF(weights, none, weights),
    [TYPE] = TEXTS_OF(none, none, types),
};

static int64_t number(kind of, const int *levels, int factor) {
  return factors[factor].numbers[of][levels[factor] == COVERING_OPEN ? 0 : levels[factor]];
}

static bool is_said(kind of, const int *levels, int factor, const char *text) {
  return levels[factor] != COVERING_OPEN && strcmp(factors[factor].texts[of][levels[factor]], text) == 0;
}

/* Or may be yet: what asks for another level of a factor that is open is still possible. */
static bool is_plain(const int *levels, int factor) { return levels[factor] <= 0; }

static bool is_open(const int *levels, int factor) { return levels[factor] == COVERING_OPEN; }

/* ---- what can stand together ---- */

/* What a problem costs, in multiply-adds of the reference. Each head may be a parallel region, where threads that share a
 * processor wait for each other; and threads may have workspaces of their own, which are poisoned: a state of linear
 * attention for each head, or some rows of scores. */
static double cost_of(kind of, const int *levels) {
  const double heads = (double)(number(of, levels, BATCH) * number(of, levels, KV_HEADS));
  const double query_heads = heads * (double)number(of, levels, GROUP),
               rows = query_heads * (double)number(of, levels, QUERIES);
  const double width = (double)(number(of, levels, HEAD_DIM) + number(of, levels, VALUE_DIM));
  const double pairs = rows * (double)number(of, levels, KEYS);
  const double workspace =
      of == LINEAR ? heads * (double)(number(of, levels, HEAD_DIM) * number(of, levels, VALUE_DIM))
                   : (double)number(of, levels, KEYS);
  return pairs * (width + 8) + 3 * (rows + heads * (double)number(of, levels, KEYS)) * width +
         (1500 * query_heads + workspace) * (double)number(of, levels, THREADS);
}

enum { MOST_COST = 2250000, MOST_HEADS = 129 };

static int features_of(const int *levels) {
  int features = 0;
  for (int f = MAP; f <= WEIGHTS; f++) features += !is_plain(levels, f);
  return features;
}

/* Variants take more or fewer of the features, and what is posed only together with one is not posed to those that lack
 * it: so all that can meet without any does so first, then with a band or lengths alone, then with any two. */
enum { WITHOUT_FEATURES, WITH_ONE_BAND, WITH_TWO, WITH_ANY, PHASES };

static bool is_of_phase(const int *levels, int phase) {
  /* Of keys that fade the band is still to come where it is open. */
  const bool has_band = !is_plain(levels, BAND) || (is_open(levels, BAND) && !is_plain(levels, DECAY));
  const int bands_used = has_band + !is_plain(levels, LENGTHS), others = features_of(levels);
  switch (phase) {
    case WITHOUT_FEATURES: return bands_used + others == 0;
    case WITH_ONE_BAND: return bands_used <= 1 && others == 0;
    case WITH_TWO: return bands_used + others <= 2;
    default: return true;
  }
}

static bool can_be(kind of, const int *levels, int phase) {
  const bool is_listed = is_said(of, levels, BAND, "offsets") || !is_plain(levels, LENGTHS);
  const bool is_exact = is_said(of, levels, FILL, "fill:exact"),
             has_powers = is_said(of, levels, FILL, "fill:powers");
  if (!is_of_phase(levels, phase)) return false;
  if (is_listed && number(of, levels, BATCH) > WORKLOAD_MAX_LISTED_BATCH) return false;
  if (number(of, levels, KV_HEADS) * number(of, levels, GROUP) > MOST_HEADS) return false;
  /* Which would not be what they are. */
  if ((is_exact || has_powers) && (!is_plain(levels, SCALE) || !is_plain(levels, SOFTCAP))) return false;
  if (has_powers && !is_plain(levels, BIAS)) return false;
  if (!is_plain(levels, DECAY) &&
      (is_said(of, levels, BAND, "full") || is_said(of, levels, BAND, "band:inf,2,-20")))
    return false; /* which nobody takes */
  return cost_of(of, levels) <= MOST_COST;
}

static bool can_be_softmax(const int *levels, int phase) { return can_be(SOFTMAX, levels, phase); }

static bool can_be_linear(const int *levels, int phase) { return can_be(LINEAR, levels, phase); }

static bool can_be_narrow(const int *levels, int phase) { return can_be(NARROW, levels, phase); }

/* ---- as problems ---- */

/* A part of a line, or two. */
static void say(workload *w, const char *text) {
  char why[256] = "", part[32];
  while (*text) {
    const size_t length = strcspn(text, "/");
    snprintf(part, sizeof part, "%.*s", (int)length, text);
    const bool sound = workload_say(w, part, why, sizeof why);
    assert(sound && "these are written in workload's own words");
    (void)sound;
    text += length + (text[length] == '/');
  }
}

static void set_lists(workload *w, kind of, const int *levels) {
  const int64_t most = w->key_length, offsets[] = {0, most - w->query_length, -3, 5};
  const int64_t of_all_sizes[] = {most, (most + 1) / 2, 0, most - 1}, short_ones[] = {1, 9, 2, 17};
  w->has_offsets = is_said(of, levels, BAND, "offsets");
  w->has_lengths = !is_plain(levels, LENGTHS);
  for (int64_t b = 0; b < w->batch && b < WORKLOAD_MAX_LISTED_BATCH; b++) {
    if (w->has_offsets) w->offsets[b] = offsets[b % 4];
    const int64_t length = levels[LENGTHS] == 1 ? of_all_sizes[b % 4] : short_ones[b % 4];
    if (w->has_lengths) w->lengths[b] = length < most ? length : most;
  }
}

static workload problem_of(kind of, const int *levels) {
  workload w = workload_default();
  w.function = of == LINEAR ? ATTN_LINEAR : ATTN_SOFTMAX;
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
  set_lists(&w, of, levels);
  return w;
}

/* ---- all of them ---- */

static covering made[KINDS];

static void make(void) {
  typedef bool limit(const int *levels, int phase);
  static limit *const limits[KINDS] = {can_be_softmax, can_be_linear, can_be_narrow};
  if (made[SOFTMAX].count > 0) return;
  for (kind of = SOFTMAX; of < KINDS; of++) {
    covering_design design = {.factors = FACTORS, .phases = PHASES, .can_be = limits[of]};
    for (int f = 0; f < FACTORS; f++) design.levels[f] = factors[f].count[of];
    covering_make(&design, &made[of]);
  }
}

int64_t pair_problems_count(void) {
  int64_t count = 0;
  make();
  for (kind of = SOFTMAX; of < KINDS; of++) count += made[of].count;
  return count;
}

planned_problem pair_problem(int64_t n) {
  kind of = SOFTMAX;
  make();
  int64_t row = n;
  while (row >= made[of].count) row -= made[of++].count;
  const int *levels = made[of].rows[row];
  workload problem = problem_of(of, levels);
  /* Mixed layouts differ by it. Of the row, so that an array that grows leaves the others as they are. */
  problem.seed = (uint64_t)row % 64 + 1;
  return (planned_problem){.workload = problem,
                           .threads = (int)number(of, levels, THREADS),
                           .turn = (int)number(of, levels, TURN)};
}

void pair_problems_pairs(int64_t *pairs, int64_t *possible) {
  make();
  *pairs = *possible = 0;
  for (kind of = SOFTMAX; of < KINDS; of++) {
    *pairs += made[of].pairs;
    *possible += made[of].possible;
  }
}
