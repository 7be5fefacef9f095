/* See fitted_pairs.h. A level is a change of the variant's smallest problem: a size that it takes there, or words of a
 * problem line. Whether levels can stand together is asked of the variant itself. */
#include "fitted_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "covering.h"
#include "reference/reference.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum { MOST_LEVELS = 20, THREADS_FACTOR = FITTING_SIZES, FIRST_TEXT = FITTING_SIZES + 1 };

static const char *const fills[] = {
    "fill:uniform", "fill:normal",  "fill:heavy",        "fill:dominant",   "fill:equal",    "fill:saturated",
    "fill:rising",  "fill:falling", "fill:cancellation", "fill:around_one", "fill:denormal", "fill:huge",
    "fill:zeros",   "fill:exact",   "fill:powers",       "fill:largest",    "fill:nonfinite"};
static const char *const bands[] = {"full",      "causal",     "causal_bottom_right", "window:7",
                                    "window:70", "band:9,3,5", "band:inf,2,-20",      "band:4,inf,0"};
static const char *const lists[] = {"short lengths", "offsets"};
static const char *const layouts[] = {"layout:bhtd", "layout:bthd", "layout:shifted", "layout:padded",
                                      "layout:mixed"};
static const char *const scales[] = {"scale:-0.25", "scale:1"};
static const char *const epsilons[] = {"epsilon:0", "epsilon:0.5"};
static const char *const masks[] = {"mask:bhq", "mask:q", "mask:1"};
static const char *const biases[] = {"bias:bhq", "bias:h", "bias:bq"};
static const char *const softcaps[] = {"softcap:3"};
static const char *const sinks[] = {"sink"};
static const char *const lses[] = {"lse"};
static const char *const weights[] = {"weights"};
static const char *const types[] = {"bf16", "f16", "bf16/out:f32", "f16/out:f32"};

static const struct {
  const char *const *of;
  int count;
} texts[] = {{fills, COUNT(fills)},     {bands, COUNT(bands)},   {lists, COUNT(lists)},
             {layouts, COUNT(layouts)}, {scales, COUNT(scales)}, {epsilons, COUNT(epsilons)},
             {masks, COUNT(masks)},     {biases, COUNT(biases)}, {softcaps, COUNT(softcaps)},
             {sinks, COUNT(sinks)},     {lses, COUNT(lses)},     {weights, COUNT(weights)},
             {types, COUNT(types)}};

enum { FACTORS = FIRST_TEXT + COUNT(texts) };

/* Where faults of tiles, vectors and stack buffers lie. */
static const int edges[] = {1,  2,  3,  7,   8,   9,   15,  16,  17,  31,  32,  33,  63,   64,
                            65, 96, 97, 127, 128, 129, 192, 255, 256, 257, 512, 513, 1024, 1025};

struct fitted_pairs {
  const fitting *of;
  const fitting_anchor *anchor;
  workload base; /* what levels change */
  double most_cost;
  covering_design design;
  int sizes[FITTING_SIZES][MOST_LEVELS];
  const char *words[FACTORS][MOST_LEVELS]; /* NULL: as the anchor has it */
  covering made;
};

/* ---- levels as problems ---- */

static void say(workload *w, const char *parts) {
  char why[128];
  if (strcmp(parts, "short lengths") == 0) {
    const int64_t shorter[] = {w->key_length, 1, (w->key_length + 1) / 2, 9};
    w->has_lengths = true;
    for (int b = 0; b < WORKLOAD_MAX_LISTED_BATCH; b++)
      w->lengths[b] = shorter[b % 4] < w->key_length ? shorter[b % 4] : w->key_length;
  } else if (strcmp(parts, "offsets") == 0) {
    const int64_t offsets[] = {0, w->key_length - w->query_length, -3, 5};
    w->has_offsets = true;
    for (int b = 0; b < WORKLOAD_MAX_LISTED_BATCH; b++) w->offsets[b] = offsets[b % 4];
  } else {
    (void)workload_say(w, parts, why, sizeof why);
  }
}

/* Sizes first: lists and diagonals follow them. */
static workload problem_of(const fitted_pairs *pairs, const int *levels) {
  workload w = pairs->base;
  for (int size = 0; size < FITTING_SIZES; size++)
    if (levels[size] > 0)
      fitting_set_size(&w, (fitting_size)size, pairs->sizes[size][levels[size]], pairs->anchor->bottom_right);
  for (int f = FIRST_TEXT; f < FACTORS; f++)
    if (levels[f] > 0) say(&w, pairs->words[f][levels[f]]);
  return w;
}

/* Inputs that a scale, a softcap or a bias would make other ones. */
static bool is_what_it_says(const workload *w) {
  const bool exact = w->fill == FILL_EXACT, powers = w->fill == FILL_POWERS;
  return !((exact || powers) && (!isnan(w->scale) || w->softcap != 0)) &&
         !(powers && (w->bias.present || w->alibi || w->relative > 0 || w->t5_buckets > 0)) &&
         !((exact || powers) && (w->rope != ROPE_NONE || w->general || w->additive));
}

/* The array is made for one variant at a time. */
static const fitted_pairs *making;

static bool can_be(const int *levels, int phase) {
  (void)phase;
  const workload w = problem_of(making, levels);
  const double threads = levels[THREADS_FACTOR] > 0 ? levels[THREADS_FACTOR] + 1 : 1;
  return fitting_cost(&w) * (1 + threads / 32) <= making->most_cost && is_what_it_says(&w) &&
         fitting_takes(making->of->variant, &w);
}

/* ---- which levels there are ---- */

/* A part that its function has no use for would change nothing. */
static bool is_of_use(const fitted_pairs *pairs, const char *words) {
  const bool has_scores = reference_function_of(pairs->of->variant->function)->has_scores;
  const bool is_scale = strncmp(words, "scale:", 6) == 0, is_epsilon = strncmp(words, "epsilon:", 8) == 0;
  return !(is_scale && !has_scores) && !(is_epsilon && has_scores);
}

static bool is_taken_alone(fitted_pairs *pairs, int factor) {
  int levels[COVERING_FACTORS] = {0};
  char name[WORKLOAD_NAME_BYTES], usual[WORKLOAD_NAME_BYTES];
  levels[factor] = pairs->design.levels[factor];
  const workload w = problem_of(pairs, levels);
  workload_name(&w, name);
  workload_name(&pairs->base, usual);
  return strcmp(name, usual) != 0 && can_be(levels, 0);
}

static void add_size(fitted_pairs *pairs, int size, int value) {
  int *count = &pairs->design.levels[size];
  if (*count == MOST_LEVELS) return;
  for (int n = 1; n < *count; n++)
    if (pairs->sizes[size][n] == value) return;
  pairs->sizes[size][*count] = value;
  *count += is_taken_alone(pairs, size);
}

static bool is_edge(int value) {
  for (int n = 0; n < COUNT(edges); n++)
    if (edges[n] == value) return true;
  return false;
}

/* Edges, and where there are few, others of what is taken, evenly spread. */
static void add_sizes(fitted_pairs *pairs, int size, int most) {
  const fitting_values *values = &pairs->anchor->values[size];
  pairs->design.levels[size] = 1;
  int passed = 0, count = 0;
  for (int n = 0; n < values->count; n++) count += is_edge(values->of[n]);
  for (int n = 0; n < values->count && pairs->design.levels[size] < most; n++) {
    if (count == 0 || !is_edge(values->of[n])) continue;
    /* Of more than there is room for, evenly many. */
    if (count <= most || (passed * most) / count != ((passed + 1) * most) / count)
      add_size(pairs, size, values->of[n]);
    passed++;
  }
  for (int n = 1; n <= 4 && pairs->design.levels[size] < 5 && values->count > 1; n++)
    add_size(pairs, size, values->of[(values->count - 1) * n / 4]);
}

static void add_words(fitted_pairs *pairs, int factor) {
  int *count = &pairs->design.levels[factor];
  *count = 1;
  for (int n = 0; n < texts[factor - FIRST_TEXT].count; n++) {
    pairs->words[factor][*count] = texts[factor - FIRST_TEXT].of[n];
    *count += is_of_use(pairs, pairs->words[factor][*count]) && is_taken_alone(pairs, factor);
  }
}

static void add_levels(fitted_pairs *pairs) {
  static const int most[FITTING_SIZES] = {18, 6, 6, 10, 5, 5, 5, 5, 5};
  for (int f = 0; f < FACTORS; f++) pairs->design.levels[f] = 1;
  for (int size = 0; size < FITTING_SIZES; size++) add_sizes(pairs, size, most[size]);
  for (int f = FIRST_TEXT; f < FACTORS; f++) add_words(pairs, f);
  pairs->design.levels[THREADS_FACTOR] = 16;
}

/* The one that takes most. */
static const fitting_anchor *best_anchor(const fitting *of) {
  const fitting_anchor *best = &of->anchors[0];
  for (int n = 1; n < of->count; n++)
    if (of->anchors[n].values[SIZE_LENGTHS].count > best->values[SIZE_LENGTHS].count) best = &of->anchors[n];
  return best;
}

static void enlarge(const fitting *of, const fitting_anchor *anchor, fitting_size size, int most,
                    workload *base) {
  const fitting_values *values = &anchor->values[size];
  for (int n = values->count - 1; n >= 0; n--) {
    workload w = *base;
    if (values->of[n] > most) continue;
    fitting_set_size(&w, size, values->of[n], anchor->bottom_right);
    if (!fitting_takes(of->variant, &w)) continue;
    *base = w;
    return;
  }
}

/* The smallest problem, but of a length and a number of heads that are worth something. */
static workload base_of(const fitting *of, const fitting_anchor *anchor) {
  workload base = anchor->workload;
  enlarge(of, anchor, SIZE_LENGTHS, 33, &base);
  enlarge(of, anchor, SIZE_KV_HEADS, 2, &base);
  return base;
}

fitted_pairs *fitted_pairs_create(const fitting *of) {
  fitted_pairs *pairs = of->count > 0 ? calloc(1, sizeof *pairs) : NULL;
  if (!pairs) return NULL;
  pairs->of = of;
  pairs->anchor = best_anchor(of);
  pairs->base = base_of(of, pairs->anchor);
  pairs->most_cost = fmax(1.5e7, 4 * fitting_cost(&pairs->base));
  pairs->design = (covering_design){.factors = FACTORS, .phases = 1, .can_be = can_be};
  making = pairs;
  add_levels(pairs);
  covering_make(&pairs->design, &pairs->made);
  making = NULL;
  return pairs;
}

void fitted_pairs_destroy(fitted_pairs *pairs) { free(pairs); }

int64_t fitted_pairs_count(const fitted_pairs *pairs) { return pairs->made.count; }

planned_problem fitted_pairs_problem(const fitted_pairs *pairs, int64_t n) {
  const int *levels = pairs->made.rows[n];
  workload problem = problem_of(pairs, levels);
  problem.seed = (uint64_t)n % 64 + 1; /* mixed layouts differ by it */
  return (planned_problem){.workload = problem, .threads = levels[THREADS_FACTOR] + 1, .turn = (int)(n % 6)};
}

void fitted_pairs_pairs(const fitted_pairs *pairs, int64_t *all, int64_t *possible) {
  *all = pairs->made.pairs;
  *possible = pairs->made.possible;
}
