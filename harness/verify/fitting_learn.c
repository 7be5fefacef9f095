/* What a variant takes. It says yes or no to a problem, and why in words that are not for machines. So a first problem that
 * it takes is looked for among those that kernels are written for, for each kind of band and type; then each of its sizes is
 * varied alone. */
#include <stdlib.h>
#include <string.h>

#include "fitting.h"
#include "problem/random_problem.h"
#include "reference/reference.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static int64_t size_of(const workload *w, fitting_size size) {
  switch (size) {
    case SIZE_LENGTHS:
    case SIZE_KEYS: return w->key_length;
    case SIZE_QUERIES: return w->query_length;
    case SIZE_DIMS:
    case SIZE_HEAD_DIM: return w->head_dim;
    case SIZE_VALUE_DIM: return w->value_dim;
    case SIZE_BATCH: return w->batch;
    case SIZE_KV_HEADS: return w->kv_heads;
    default: return w->kv_heads > 0 ? w->query_heads / w->kv_heads : 1;
  }
}

static const char *const bands[] = {"full", "causal", "causal_bottom_right", "window:64"};
static const char *const types[] = {"", "bf16", "f16", "bf16/out:f32", "f16/out:f32"};
static const char *const layouts[] = {"layout:bhtd", "layout:bthd"};
/* What it may insist on. */
static const char *const extras[] = {"", "lse", "sink", "mask:bhq", "bias:bhq", "softcap:30", "sink/lse"};
static const int heads[][2] = {{2, 2}, {4, 2},   {4, 1}, {1, 1},  {8, 8},
                               {8, 2}, {16, 16}, {8, 1}, {32, 8}, {64, 8}};
static const int lengths[][2] = {{64, 64},     {128, 128},   {16, 16},  {256, 256}, {512, 512},
                                 {1024, 1024}, {2048, 2048}, {1, 64},   {1, 1024},  {64, 128},
                                 {128, 64},    {7, 7},       {64, 512}, {128, 1024}};
static const int dims[][2] = {{64, 64}, {128, 128}, {32, 32}, {16, 16}, {8, 8},     {96, 96},
                              {80, 80}, {256, 256}, {40, 40}, {1, 1},   {192, 128}, {576, 512}};
static const int batches[] = {1, 2, 4};

/* Parts that are written in workload's own words. */
static void say(workload *w, const char *parts) {
  if (*parts) {
    char why[128];
    (void)workload_say(w, parts, why, sizeof why);
  }
}

static bool needs(const attn_variant *variant, const workload *w) {
  const attn_problem problem = workload_problem(w);
  return (problem.features & ~variant->features) != 0;
}

/* Tries the sizes that kernels are written for. */
static bool find_sizes(const attn_variant *variant, workload *w, bool bottom_right) {
  for (int b = 0; b < COUNT(batches); b++)
    for (int t = 0; t < COUNT(lengths); t++)
      for (int h = 0; h < COUNT(heads); h++)
        for (int d = 0; d < COUNT(dims); d++) {
          w->batch = batches[b];
          w->query_heads = heads[h][0];
          w->kv_heads = heads[h][1];
          w->query_length = lengths[t][0];
          w->key_length = lengths[t][1];
          w->head_dim = dims[d][0];
          w->value_dim = dims[d][1];
          fitting_settle(w, bottom_right);
          if (fitting_takes(variant, w)) return true;
        }
  return false;
}

/* The n-th value that is tried of a size: each up to 130, and then around powers of two and other multiples. */
static int tried_value(int n) {
  static const int larger[] = {131,  160,  191,  192,  193,  224,   255,   256,   257,   300,  301,  320,
                               384,  448,  500,  511,  512,  513,   576,   640,   768,   800,  896,  1000,
                               1021, 1023, 1024, 1025, 1152, 1280,  1536,  2047,  2048,  2049, 3072, 4096,
                               4097, 4099, 8192, 8193, 9999, 16384, 16385, 32768, 65536, 65537};
  return n < 130 ? n + 1 : n - 130 < COUNT(larger) ? larger[n - 130] : 0;
}

static void learn_values(const attn_variant *variant, fitting_anchor *anchor) {
  for (int size = 0; size < FITTING_SIZES; size++) {
    fitting_values *values = &anchor->values[size];
    values->count = 0;
    for (int n = 0; tried_value(n) && values->count < FITTING_VALUES; n++) {
      workload w = anchor->workload;
      fitting_set_size(&w, (fitting_size)size, tried_value(n), anchor->bottom_right);
      if (fitting_takes(variant, &w)) values->of[values->count++] = tried_value(n);
    }
  }
}

/* So that each part of a wanted problem is taken beside others that cost little. */
static void make_small(const attn_variant *variant, fitting_anchor *anchor) {
  for (int size = 0; size < FITTING_SIZES; size++) {
    workload w = anchor->workload;
    if (anchor->values[size].count == 0) continue;
    fitting_set_size(&w, (fitting_size)size, anchor->values[size].of[0], anchor->bottom_right);
    if (size_of(&w, (fitting_size)size) < size_of(&anchor->workload, (fitting_size)size) &&
        fitting_takes(variant, &w))
      anchor->workload = w;
  }
}

/* How many problems it stands for. */
static int freedom_of(const fitting_anchor *anchor) {
  int freedom = 0;
  for (int size = 0; size < FITTING_SIZES; size++) freedom += anchor->values[size].count;
  return freedom;
}

/* Of a kind of problem, that in which most is left to choose: one head alone lies in memory as the variant wants it, whatever
 * the layout. */
static void learn_kind(fitting *of, const char *band, const char *type) {
  fitting_anchor *kept = &of->anchors[of->count];
  const bool bottom_right = strcmp(band, "causal_bottom_right") == 0;
  for (int n = 0; n < COUNT(extras) * COUNT(layouts); n++) {
    fitting_anchor found = {.workload = workload_default(), .bottom_right = bottom_right};
    workload *w = &found.workload;
    const char *extra = extras[n / COUNT(layouts)];
    if (n % COUNT(layouts) == 0 && freedom_of(kept) > 0) break; /* it does not insist on more */
    w->function = of->variant->function;
    say(w, band);
    say(w, type);
    say(w, layouts[n % COUNT(layouts)]);
    say(w, extra);
    if (needs(of->variant, w) || (*extra && !reference_function_of(w->function)->has_scores)) continue;
    if (!find_sizes(of->variant, w, bottom_right)) continue;
    learn_values(of->variant, &found);
    if (freedom_of(&found) > freedom_of(kept)) *kept = found;
  }
  if (freedom_of(kept) == 0) return;
  make_small(of->variant, kept);
  of->count++;
}

/* What nobody thought of may be among random problems. */
static void learn_from_random(fitting *of) {
  enum { DRAWS = 20000 };
  for (int64_t n = 0; n < DRAWS && of->count == 0; n++) {
    fitting_anchor *anchor = &of->anchors[0];
    anchor->workload = random_problem(1, n);
    if (!fitting_takes(of->variant, &anchor->workload)) continue;
    learn_values(of->variant, anchor);
    of->count = 1;
  }
}

static bool has_type(const attn_variant *variant, const char *text) {
  workload w = workload_default();
  say(&w, text);
  const attn_type type = w.type ? w.type : ATTN_FLOAT32, output = w.output_type ? w.output_type : type;
  return variant->types >> type & 1 && variant->types >> output & 1;
}

fitting *fitting_create(const attn_variant *variant) {
  fitting *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->variant = variant;
  for (int t = 0; t < COUNT(types); t++)
    for (int b = 0; b < COUNT(bands) && has_type(variant, types[t]); b++)
      learn_kind(made, bands[b], types[t]);
  learn_from_random(made);
  return made;
}

void fitting_destroy(fitting *of) { free(of); }
