/* A plugin as it was written for version 1 of the interface, whose declarations stand here as that version had them:
 * the program goes on running it. Softmax attention as the formula has it, with all that version 1 knew but the
 * weights, in two orders of its sums that stand for two instruction sets, chosen by ATTN_ISA at each run. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- version 1 of attention.h ---- */

#define ATTN_INTERFACE_VERSION 1
#define ATTN_UNLIMITED INT64_MAX

typedef enum attn_dtype { ATTN_FLOAT32 = 0, ATTN_BFLOAT16 = 1, ATTN_FLOAT16 = 2 } attn_dtype;

typedef enum attn_function { ATTN_SOFTMAX = 0, ATTN_LINEAR = 1 } attn_function;

typedef struct attn_strides {
  int64_t batch, head, position;
} attn_strides;

typedef struct attn_problem {
  attn_function function;
  attn_dtype dtype;
  int64_t batch;
  int64_t query_heads;
  int64_t kv_heads;
  int64_t query_length;
  int64_t key_length;
  int64_t head_dim;
  int64_t value_dim;
  double scale;
  double softcap;
  double epsilon;
  int64_t left, right;
  int64_t offset;
  const int64_t *offsets;
  const int64_t *key_lengths;
  bool has_mask;
  bool has_bias;
  bool wants_lse;
  bool wants_weights;
  attn_strides query, key, value, output;
  attn_strides mask, bias;
  attn_strides lse;
  attn_strides weights;
} attn_problem;

typedef struct attn_tensors {
  const void *query;
  const void *key;
  const void *value;
  const uint8_t *mask;
  const void *bias;
  void *output;
  float *lse;
  void *weights;
} attn_tensors;

typedef struct attn_variant {
  const char *name;
  const char *summary;
  attn_function function;
  uint32_t dtypes;
  int time_exponent;
  int workspace_exponent;
  const char *(*unsupported)(const attn_problem *problem);
  size_t (*workspace_size)(const attn_problem *problem, int threads);
  void (*run)(const attn_problem *problem, const attn_tensors *tensors, void *workspace, int threads);
} attn_variant;

typedef struct attn_table {
  uint32_t interface_version;
  uint32_t count;
  const attn_variant *const *variants;
  const char *const *(*instruction_sets)(void);
} attn_table;

extern const attn_table attn_plugin __attribute__((visibility("default")));

typedef struct attn_range {
  int64_t first, end;
} attn_range;

static inline attn_range attn_visible_keys(const attn_problem *problem, int64_t b, int64_t i) {
  int64_t length = problem->key_lengths ? problem->key_lengths[b] : problem->key_length;
  int64_t centre = i + (problem->offsets ? problem->offsets[b] : problem->offset);
  attn_range range = {0, length};
  if (problem->left != ATTN_UNLIMITED && centre - problem->left > 0) range.first = centre - problem->left;
  if (problem->right != ATTN_UNLIMITED && centre + problem->right < length - 1)
    range.end = centre + problem->right + 1;
  if (range.first >= range.end) range.first = range.end = 0;
  return range;
}

/* ---- the kernel ---- */

/* What ATTN_ISA was in the last run, for a test to look at; "" where it was not set. */
char version_1_isa[16];

static const char *const *instruction_sets(void) {
  static const char *const names[] = {"forwards", "backwards", NULL};
  return names;
}

static bool sums_forwards(void) {
  const char *isa = getenv("ATTN_ISA");
  strncpy(version_1_isa, isa ? isa : "", sizeof version_1_isa - 1);
  return isa && strcmp(isa, "forwards") == 0; /* unset, the last is used */
}

static const char *unsupported(const attn_problem *p) { return p->wants_weights ? "keeps no weights" : NULL; }

static size_t workspace_size(const attn_problem *p, int threads) {
  (void)threads;
  return (size_t)p->key_length * sizeof(double);
}

static int64_t at(attn_strides s, int64_t b, int64_t h, int64_t i) {
  return b * s.batch + h * s.head + i * s.position;
}

static bool is_visible(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i,
                       int64_t j) {
  const attn_range keys = attn_visible_keys(p, b, i);
  if (j < keys.first || j >= keys.end) return false;
  if (p->has_mask && !t->mask[at(p->mask, b, h, i) + j]) return false;
  return !p->has_bias || ((const float *)t->bias)[at(p->bias, b, h, i) + j] != -INFINITY;
}

static double score(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i, int64_t j,
                    bool forwards) {
  const int64_t kv = h / (p->query_heads / p->kv_heads);
  const float *q = (const float *)t->query + at(p->query, b, h, i);
  const float *k = (const float *)t->key + at(p->key, b, kv, j);
  float dot = 0; /* so that the order of the sum is seen in the output */
  for (int64_t n = 0; n < p->head_dim; n++) {
    const int64_t d = forwards ? n : p->head_dim - 1 - n;
    dot += q[d] * k[d];
  }
  double scored = p->scale * dot;
  if (p->softcap > 0) scored = p->softcap * tanh(scored / p->softcap);
  return p->has_bias ? scored + ((const float *)t->bias)[at(p->bias, b, h, i) + j] : scored;
}

static void solve_row(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i,
                      double *weights, bool forwards) {
  const int64_t kv = h / (p->query_heads / p->kv_heads);
  float *output = (float *)t->output + at(p->output, b, h, i);
  double max = -INFINITY, sum = 0;
  bool any = false;
  for (int64_t j = 0; j < p->key_length; j++) {
    weights[j] = -INFINITY;
    if (!is_visible(p, t, b, h, i, j)) continue;
    weights[j] = score(p, t, b, h, i, j, forwards);
    max = fmax(max, weights[j]);
    any = true;
  }
  for (int64_t j = 0; j < p->key_length; j++)
    if (is_visible(p, t, b, h, i, j)) sum += weights[j] = exp(weights[j] - max);
  for (int64_t e = 0; e < p->value_dim; e++) {
    double total = 0;
    for (int64_t n = 0; n < p->key_length; n++) {
      const int64_t j = forwards ? n : p->key_length - 1 - n;
      if (!is_visible(p, t, b, h, i, j)) continue;
      total += weights[j] / sum * ((const float *)t->value)[at(p->value, b, kv, j) + e];
    }
    output[e] = (float)total;
  }
  if (p->wants_lse) t->lse[at(p->lse, b, h, i)] = any ? (float)(max + log(sum)) : -INFINITY;
}

static void run(const attn_problem *p, const attn_tensors *t, void *workspace, int threads) {
  (void)threads;
  const bool forwards = sums_forwards();
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t i = 0; i < p->query_length; i++) solve_row(p, t, b, h, i, workspace, forwards);
}

static const attn_variant old = {
    "old", "the formula, for version 1", ATTN_SOFTMAX, 1u << ATTN_FLOAT32, 2, 1, unsupported, workspace_size,
    run};
static const attn_variant *const variants[] = {&old};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, instruction_sets};
