/* Each property can fail: for each there is a fault here that this property sees, and a right kernel passes all.
 * The kernel is one loop with a fault that is switched on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "problem/check.h"
#include "run/heap_calls.h"
#include "run/thread_watch.h"
#include "verify/properties.h"
#include "verify/verify.h"
#include "variants/elements.h"

typedef enum fault {
  NO_FAULT,
  OTHER_BITS_EACH_TIME,
  WORKSPACE_READ,
  THREAD_DEPENDENT,
  ALLOCATES,
  THREADS_IGNORED,
  PRINTS,
  WRONG_WHERE_ALIGNED,
  READS_BEFORE_ITS_QUERY,
  LAST_VALUE_LEFT_OUT,
  WEIGHTS_ALL_OF_ONE,
  BEYOND_ITS_VALUES,
  HIDDEN_VALUE_TIMES_ZERO,
  HIDDEN_KEY_READ,
  LEFT_BY_ONE,
  RIGHT_BY_ONE,
  WRONG_KV_HEAD,
  FIRST_KEY_TWICE,
  CLAMPED_SCORES,
  LSE_WITHOUT_MAXIMUM,
  LAYOUT_DEPENDENT,
  LSE_BASE_2,
  OFFSET_IGNORED,
  INPUT_CHANGED,
  OUTPUT_OVERRUN,
  COMPANY_DEPENDENT,
  DECODED_OTHERWISE,
  SINK_TWICE,
  BIAS_CLAMPED,
  BIAS_ONLY_PUSHES_DOWN,
  KEYS_REMEMBERED_BY_ADDRESS,
  VALUES_REMEMBERED_BY_SHAPE,
  INPUTS_WHERE_THEY_WERE,
  HIDDEN_PARTNER_TIMES_ZERO,
  LAST_TERM_FORGOTTEN,
  TERM_BY_ONE,
  DROPS_BY_P,
  MATRIX_AND_MORE,
  TANH_OF_EACH,
  SLOPES_TURNED,
  DISTANCE_WITHOUT_OFFSET,
  ROPE_OF_QUERIES_ALONE,
  STATE_FORGOTTEN,
  LAST_KEY_NOT_LEFT,
} fault;

static fault planted;

static size_t workspace_size(const attn_call *call) {
  return (size_t)(call->problem->key_length + 1 + call->problem->value_dim) * sizeof(float);
}

static attn_range visible(const attn_problem *p, int64_t b, int64_t i) {
  attn_problem changed = *p;
  if (planted == OFFSET_IGNORED) changed.offset = 0;
  if (planted == LEFT_BY_ONE && p->left != ATTN_UNLIMITED && p->left > 0) changed.left--;
  if (planted == LAST_TERM_FORGOTTEN && p->term_count > 1) changed.term_count--;
  if (planted == TERM_BY_ONE && p->term_count > 0) changed.terms[0].a++;
  if (planted == RIGHT_BY_ONE && p->right != ATTN_UNLIMITED && p->right > 0) changed.right--;
  return attn_visible_keys(&changed, b, i);
}

/* A row of a tensor, of whichever type. */
typedef struct vector {
  void *tensor;
  attn_type type;
  int64_t first;
} vector;

static vector row(const void *data, attn_layout s, int64_t b, int64_t h, int64_t i) {
  return (vector){(void *)(uintptr_t)data, s.type, b * s.batch + h * s.head + i * s.position};
}

static float get(vector of, int64_t n) { return attn_load(of.tensor, of.type, of.first + n); }
static void set(vector of, int64_t n, float number) { attn_store(of.tensor, of.type, of.first + n, number); }

static float turned(const attn_problem *p, vector x, int64_t at, int64_t d) {
  const int64_t half = p->rope_features / 2, apart = p->rope_interleaved ? 1 : half;
  if (!attn_uses(p, ATTN_ROPE) || d >= 2 * half) return get(x, d);
  const int64_t n = p->rope_interleaved ? d / 2 : d % half;
  const float cosine = p->rope_cos_data[at * p->rope_cos.position + n],
              sine = p->rope_sin_data[at * p->rope_sin.position + n];
  if (d == attn_rope_first(p, n)) return get(x, d) * cosine - get(x, d + apart) * sine;
  return get(x, d) * cosine + get(x, d - apart) * sine;
}

static float score(const attn_problem *p, int64_t h, vector q, int64_t position, vector k, int64_t j) {
  float dot = 0;
  for (int64_t d = 0; p->general.type && d < p->head_dim; d++)
    for (int64_t e = 0; e < p->head_dim; e++)
      dot += turned(p, q, position, d) * turned(p, k, j, e) *
             p->general_data[h * p->general.head + d * p->general.position + e];
  if (p->general.type) return dot * (float)p->scale * (planted == MATRIX_AND_MORE ? 1.5f : 1);
  for (int64_t d = 0; p->additive.type && d < p->head_dim; d++) {
    const float x = turned(p, q, position, d), y = turned(p, k, j, d);
    const float of_both = planted == TANH_OF_EACH ? tanhf(x) + tanhf(y) : tanhf(x + y);
    dot += p->additive_data[h * p->additive.head + d] * of_both;
  }
  for (int64_t d = 0; !p->additive.type && d < p->head_dim; d++)
    dot += turned(p, q, position, d) * (planted == ROPE_OF_QUERIES_ALONE ? get(k, d) : turned(p, k, j, d));
  return dot * (float)p->scale;
}

static float changed_weight(float weight, int64_t j) {
  if (planted == FIRST_KEY_TWICE && j == 0) return weight * 2;
  return weight;
}

/* What -inf becomes where it is not let through: nothing where it hides the whole row. */
static float pushed_down(vector bias, int64_t j, int64_t count) {
  bool any = false;
  for (int64_t n = 0; n < count; n++) any |= get(bias, n) != -INFINITY;
  return any ? fmaxf(get(bias, j), -1e9f) : get(bias, j);
}

static float position(const attn_problem *p, int64_t b, int64_t h, int64_t i, int64_t j) {
  if (!attn_has_position_bias(p)) return 0;
  const int64_t distance = planted == DISTANCE_WITHOUT_OFFSET ? j - i : attn_distance(p, b, i, j);
  const float bias = attn_position_bias(p, h, distance);
  return planted == SLOPES_TURNED ? -bias : bias;
}

/* DROPS_BY_P: what is left is a quarter more. */
static float left_of(const attn_problem *p, int64_t b, int64_t h, int64_t i, int64_t j) {
  const uint8_t *keep = attn_keep_row(p, b, h, i);
  if (!keep) return 1;
  return keep[j] ? attn_kept_factor(p) * (planted == DROPS_BY_P ? 1.25f : 1) : 0;
}

static void solve_row(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i,
                      float *w) {
  const int64_t kv = planted == WRONG_KV_HEAD ? h % p->kv_heads : h / (p->query_heads / p->kv_heads);
  const attn_range keys = visible(p, b, i);
  float *sums = w + p->key_length + 1;
  const vector q = row(t->query, p->query, b, h, i), bias = row(t->bias, p->bias, b, h, i);
  const vector out = row(t->output, p->output, b, h, i), weights = row(t->weights, p->weights, b, h, i);
  const float sink = p->sink.type ? t->sink[h * p->sink.head] : -INFINITY;
  float max = sink, sum = 0;
  for (int64_t j = keys.first; j < keys.end; j++) {
    w[j] = score(p, h, q, attn_rope_position(p, b, i), row(t->key, p->key, b, kv, j), j);
    if (p->bias.type && planted == BIAS_CLAMPED)
      w[j] += fmaxf(get(bias, j), -1e4f);
    else if (p->bias.type)
      w[j] += planted == BIAS_ONLY_PUSHES_DOWN ? pushed_down(bias, j, p->key_length) : get(bias, j);
    w[j] += position(p, b, h, i, j);
    max = fmaxf(max, w[j]);
  }
  if (sink != -INFINITY) sum += (planted == SINK_TWICE ? 2.0f : 1.0f) * expf(sink - max);
  if (planted == CLAMPED_SCORES)
    for (int64_t j = keys.first; j < keys.end; j++) w[j] = fminf(w[j], 4);
  for (int64_t j = keys.first; j < keys.end; j++)
    sum += w[j] = w[j] == -INFINITY ? 0 : changed_weight(expf(w[j] - max), j);
  const float hidden = planted == HIDDEN_KEY_READ ? get(row(t->key, p->key, b, kv, p->key_length - 1), 0) : 0;
  for (int64_t d = 0; d < p->value_dim; d++) sums[d] = isfinite(hidden) ? 0.0f : 1.0f;
  for (int64_t j = 0; j < p->key_length; j++) {
    const bool seen = j >= keys.first && j < keys.end;
    const bool partner = (j ^ 1) >= keys.first && (j ^ 1) < keys.end;
    const float weight = (seen && sum != 0 ? w[j] / sum : 0) * left_of(p, b, h, i, j);
    if (p->weights.type) set(weights, j, planted == WEIGHTS_ALL_OF_ONE && seen ? 1 : weight);
    if ((!seen && planted != HIDDEN_VALUE_TIMES_ZERO && !(partner && planted == HIDDEN_PARTNER_TIMES_ZERO)) ||
        (planted == LAST_VALUE_LEFT_OUT && j == keys.end - 1))
      continue;
    const vector v = row(t->value, p->value, b, kv, j);
    for (int64_t d = 0; d < p->value_dim; d++) sums[d] += weight * get(v, d);
  }
  for (int64_t d = 0; d < p->value_dim; d++)
    set(out, d, planted == BEYOND_ITS_VALUES ? 4 * sums[d] : sums[d]);
  if (planted == READS_BEFORE_ITS_QUERY)
    set(out, 0, get(out, 0) + 0 * (float)((const volatile unsigned char *)t->query)[-1]);
  if (!p->lse.type) return;
  float lse = max + logf(sum);
  if (planted == LSE_WITHOUT_MAXIMUM) lse = logf(sum);
  if (planted == LSE_BASE_2) lse *= 1.442695f;
  t->lse[b * p->lse.batch + h * p->lse.head + i * p->lse.position] = sum == 0 ? -INFINITY : lse;
}

static void *volatile taken;

/* Faults that change one bit. */
static bool changes_a_bit(const attn_problem *p, const float *workspace, int threads) {
  static int runs;
  switch (planted) {
    case OTHER_BITS_EACH_TIME: return runs++ % 2;
    case WORKSPACE_READ: return workspace[p->key_length] == 0;
    case THREAD_DEPENDENT: return threads == 1;
    case LAYOUT_DEPENDENT: return p->query.position != p->head_dim;
    case COMPANY_DEPENDENT: return p->batch * p->kv_heads == 1;
    case DECODED_OTHERWISE: return p->query_length == 1;
    default: return false;
  }
}

/* What a kernel may keep from run to run. */
static struct {
  const void *key;
  float first_key;
  unsigned char keys[1 << 14], values[1 << 14];
  int64_t keys_of, values_of; /* the shapes that they have */
} kept;

static size_t bytes_of(const attn_problem *p, const attn_layout *s, int64_t width) {
  return (size_t)((p->batch - 1) * s->batch + (p->kv_heads - 1) * s->head +
                  (p->key_length - 1) * s->position + width) *
         (s->type == ATTN_FLOAT32 ? 4 : 2);
}

/* Inputs that were met before are not looked at again. */
static attn_tensors remembered(const attn_problem *p, attn_tensors given) {
  attn_tensors t = given;
  const int64_t shape = p->batch * 1000000 + p->kv_heads * 10000 + p->key_length * 100 + p->value_dim;
  if (planted == KEYS_REMEMBERED_BY_ADDRESS) {
    const float first_key = attn_load(given.key, p->key.type, 0);
    if (kept.key != given.key || kept.first_key != first_key)
      memcpy(kept.keys, given.key, bytes_of(p, &p->key, p->head_dim));
    kept.key = given.key;
    kept.first_key = first_key;
    t.key = kept.keys;
  }
  if (planted == VALUES_REMEMBERED_BY_SHAPE) {
    if (kept.values_of != shape) memcpy(kept.values, given.value, bytes_of(p, &p->value, p->value_dim));
    kept.values_of = shape;
    t.value = kept.values;
  }
  if (planted == INPUTS_WHERE_THEY_WERE) {
    if (kept.keys_of != shape) kept.key = given.key;
    kept.keys_of = shape;
    t.key = kept.key;
  }
  return t;
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_tensors tensors = remembered(p, call->tensors), *t = &tensors;
  const bool changed = changes_a_bit(p, call->workspace, call->threads);
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  if (planted == ALLOCATES) {
    taken = malloc(100);
    free(taken);
  }
  if (planted == PRINTS) printf("a row\n");
  volatile int ran = 0;
#pragma omp parallel num_threads(planted == THREADS_IGNORED ? 2 : 1)
#pragma omp atomic
  ran++;
  for (int64_t n = 0; n < rows; n++)
    solve_row(p, t, n / p->query_length / p->query_heads, n / p->query_length % p->query_heads,
              n % p->query_length, call->workspace);
  const vector out = {t->output, p->output.type, 0}, key = {(void *)(uintptr_t)t->key, p->key.type, 0};
  if (changed) *(unsigned char *)t->output ^= 1;
  if (planted == WRONG_WHERE_ALIGNED && (uintptr_t)t->query % 4096 == 0) set(out, 0, get(out, 0) + 1);
  if (planted == INPUT_CHANGED) set(key, 0, get(key, 0) + 1);
  if (planted == OUTPUT_OVERRUN) set(out, -1, 0);
}

static const char *unsupported(const attn_call *call) {
  for (int64_t n = 0; n < call->problem->term_count; n++)
    if (call->problem->terms[n].kind != ATTN_LOCAL) return "takes local terms alone";
  return NULL;
}

static const attn_variant kernel = {.name = "kernel",
                                    .summary = "three loops",
                                    .function = ATTN_SOFTMAX,
                                    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_BIAS |
                                                ATTN_LSE | ATTN_WEIGHTS | ATTN_SINK | ATTN_PATTERN |
                                                ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5 | ATTN_ROPE |
                                                ATTN_DROPOUT | ATTN_GENERAL | ATTN_ADDITIVE,
                                    .types = 1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16 | 1u << ATTN_FLOAT16,
                                    .traits = ATTN_BATCH_INVARIANT | ATTN_DECODE_INVARIANT,
                                    .time_exponent = 2,
                                    .workspace_exponent = 1,
                                    .unsupported = unsupported,
                                    .workspace_size = workspace_size,
                                    .run = run};

/* ---- linear attention, as a recurrence ---- */

static size_t state_size(const attn_call *call) {
  return (size_t)(call->problem->head_dim * (call->problem->value_dim + 1)) * sizeof(float);
}

static float phi(float x) { return x > 0 ? x + 1 : expf(x); }

/* Row d of a head's state: Dv values and, behind them, the sum of features. */
static void move_state(const attn_problem *p, int64_t b, int64_t h, float *state, bool out) {
  const attn_linear_states *s = &p->states;
  const attn_layout *rows = out ? &s->final_state : &s->state,
                    *sums = out ? &s->final_state_sum : &s->state_sum;
  for (int64_t d = 0; d < p->head_dim; d++) {
    float *own = state + d * (p->value_dim + 1);
    const int64_t row = b * rows->batch + h * rows->head + d * rows->position;
    const int64_t sum = b * sums->batch + h * sums->head + d;
    for (int64_t e = 0; e < p->value_dim && out; e++) s->final_state_data[row + e] = own[e];
    for (int64_t e = 0; e < p->value_dim && !out; e++) own[e] = rows->type ? s->state_data[row + e] : 0;
    if (out && sums->type) s->final_state_sum_data[sum] = own[p->value_dim];
    if (!out) own[p->value_dim] = sums->type ? s->state_sum_data[sum] : 0;
  }
}

static void join_key(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t j,
                     float *state) {
  const vector k = row(t->key, p->key, b, h, j), v = row(t->value, p->value, b, h, j);
  const int64_t width = p->value_dim + 1;
  const float gate = p->decay.type ? expf(p->decay_data[b * p->decay.batch + h * p->decay.head + j]) : 1;
  for (int64_t d = 0; d < p->head_dim; d++)
    for (int64_t e = 0; e < width; e++)
      state[d * width + e] =
          state[d * width + e] * gate + phi(get(k, d)) * (e < p->value_dim ? get(v, e) : 1);
}

static void run_linear(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_tensors *t = &call->tensors;
  const int64_t width = p->value_dim + 1;
  float *state = call->workspace;
  for (int64_t n = 0; n < p->batch * p->query_heads; n++) {
    const int64_t b = n / p->query_heads, h = n % p->query_heads, kv = h / (p->query_heads / p->kv_heads);
    const int64_t keys = p->key_lengths ? p->key_lengths[b] : p->key_length;
    int64_t next = 0;
    move_state(p, b, kv, state, false);
    for (int64_t d = 0; planted == STATE_FORGOTTEN && d < p->head_dim * width; d++) state[d] = 0;
    for (int64_t i = 0; i < p->query_length; i++) {
      const vector q = row(t->query, p->query, b, h, i), out = row(t->output, p->output, b, h, i);
      for (const int64_t end = attn_visible_keys(p, b, i).end; next < end;)
        join_key(p, t, b, kv, next++, state);
      const bool sees = next > 0 || p->states.state.type;
      float sum = p->unnormalised ? 1 : (float)p->epsilon;
      for (int64_t d = 0; d < p->head_dim && !p->unnormalised; d++)
        sum += phi(get(q, d)) * state[d * width + p->value_dim];
      for (int64_t e = 0; e < p->value_dim; e++) {
        float of = 0;
        for (int64_t d = 0; d < p->head_dim; d++) of += phi(get(q, d)) * state[d * width + e];
        set(out, e, sees ? of / sum : 0);
      }
    }
    if (planted == LAST_KEY_NOT_LEFT && next == keys) {
      move_state(p, b, kv, state, false);
      for (next = 0; next < keys - 1;) join_key(p, t, b, kv, next++, state);
      next = keys;
    }
    while (next < keys) join_key(p, t, b, kv, next++, state);
    if (p->states.final_state.type) move_state(p, b, kv, state, true);
  }
}

static const char *unsupported_linear(const attn_call *call) {
  const attn_problem *p = call->problem;
  return p->left != ATTN_UNLIMITED || (p->decay.type && p->right != 0) ? "a recurrence" : NULL;
}

static const attn_variant linear_kernel = {
    .name = "linear_kernel",
    .summary = "a recurrence",
    .function = ATTN_LINEAR,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_UNNORMALISED | ATTN_DECAY | ATTN_STATE |
                ATTN_FINAL_STATE,
    .types = 1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16 | 1u << ATTN_FLOAT16,
    .traits = ATTN_BATCH_INVARIANT,
    .time_exponent = 1,
    .unsupported = unsupported_linear,
    .workspace_size = state_size,
    .run = run_linear};

static const attn_variant *kernel_of(const char *text) {
  return strncmp(text, "linear/", 7) == 0 ? &linear_kernel : &kernel;
}

static property_verdict verdict_on(const attn_variant *variant, const char *text, fault fault,
                                   unsigned wanted) {
  workload w;
  inputs in;
  expected known;
  property_verdict verdict = {0};
  char why[512] = "";
  const run_setup setup = {.variant = variant, .threads = 2};
  planted = NO_FAULT;
  if (!workload_parse(text, &w, why, sizeof why) || !inputs_create(&in, &w, false, why, sizeof why) ||
      !expected_solve(&known, &in, 0, why, sizeof why))
    fail_msg("%s: %s", text, why);
  properties *prepared = properties_prepare(&in, &known, why, sizeof why);
  planted = fault;
  memset(&kept, 0, sizeof kept);
  if (!prepared || !properties_hold(prepared, &setup, wanted, &verdict, why, sizeof why))
    fail_msg("%s: %s", text, why);
  planted = NO_FAULT;
  properties_destroy(prepared);
  expected_destroy(&known);
  inputs_destroy(&in);
  return verdict;
}

static property_verdict verdict_of(const char *text, fault fault, unsigned wanted) {
  return verdict_on(kernel_of(text), text, fault, wanted);
}

static const char *const types[] = {"", "/bf16", "/f16", "/bf16/out:f32", "/f16/out:f32"};

enum { TYPES = sizeof types / sizeof *types };

static const struct {
  fault fault;
  property property;
  const char *problem, *words;
  const char *kinds; /* of which the hint is one; NULL: it says nothing */
} faults[] = {
    {OTHER_BITS_EACH_TIME, PROPERTY_REPEAT, "full/B:1/H:1/D:8/T:20", "other bits", NULL},
    {WORKSPACE_READ, PROPERTY_WORKSPACE, "full/B:1/H:1/D:8/T:20", "a workspace full of bytes 0x00", NULL},
    {THREAD_DEPENDENT, PROPERTY_THREADS, "full/B:1/H:1/D:8/T:20", "with 1 thread than with 2", NULL},
    {ALLOCATES, PROPERTY_SIDE_EFFECTS, "full/B:1/H:1/D:8/T:20", "malloc first, 1 call", NULL},
    {THREADS_IGNORED, PROPERTY_SIDE_EFFECTS, "full/B:1/H:1/D:8/T:20",
     "uses 2 threads at a time, and was given 1", NULL},
    {PRINTS, PROPERTY_SIDE_EFFECTS, "full/B:1/H:1/D:8/T:20", "writes to stdout inside run: 'a row '", NULL},
    {OUTPUT_OVERRUN, PROPERTY_REPEAT, "full/B:1/H:1/D:8/T:20", "writes beyond", NULL},
    {WRONG_WHERE_ALIGNED, PROPERTY_EDGES, "full/B:1/H:1/D:8/T:20", "with buffers elsewhere, output[", NULL},
    {INPUT_CHANGED, PROPERTY_REPEAT, "full/B:1/H:1/D:8/T:20", "changes its inputs", NULL},
    {LAST_VALUE_LEFT_OUT, PROPERTY_ONES, "full/B:1/H:2/D:8/T:20", "with values of one, output[", "keys"},
    {WEIGHTS_ALL_OF_ONE, PROPERTY_ONES, "full/B:1/H:2/D:8/T:20/weights", "the sum of weights[", "sum"},
    {BEYOND_ITS_VALUES, PROPERTY_BETWEEN, "causal/B:1/H:2/D:8/T:20", "between the values", "sum"},
    {HIDDEN_VALUE_TIMES_ZERO, PROPERTY_HIDDEN, "causal/B:1/H:2/D:8/T:20", "with NaN in keys", "hidden"},
    {HIDDEN_KEY_READ, PROPERTY_HIDDEN, "full/B:1/H:2/D:8/T:20/lengths:10", "has other bits", "hidden"},
    {HIDDEN_PARTNER_TIMES_ZERO, PROPERTY_HIDDEN, "causal/B:1/H:2/D:8/T:20", "with NaN in keys", "hidden"},
    {WRONG_KV_HEAD, PROPERTY_HIDDEN, "full/B:1/H:4/Hkv:2/D:8/T:20", "in keys that it cannot see", "hidden"},
    {LEFT_BY_ONE, PROPERTY_WIDE, "full/B:1/H:2/D:8/T:20/seed:2", "a band as wide", "band"},
    {RIGHT_BY_ONE, PROPERTY_WIDE, "full/B:1/H:2/D:8/T:20/seed:2", "a band as wide", "band"},
    {WRONG_KV_HEAD, PROPERTY_GROUPS, "full/B:2/H:4/Hkv:2/D:8/T:20", "repeated for each head", "heads"},
    {FIRST_KEY_TWICE, PROPERTY_ORDER, "causal/B:1/H:2/D:8/T:20", "in another order", "keys"},
    {CLAMPED_SCORES, PROPERTY_SHIFT, "full/B:1/H:2/D:8/T:200/scale:4/bias:hq", "a constant added", "maximum"},
    {LSE_WITHOUT_MAXIMUM, PROPERTY_SHIFT, "full/B:1/H:2/D:8/T:20/bias:hq/lse",
     "a constant added to its scores, lse[", "lse"},
    {LSE_WITHOUT_MAXIMUM, PROPERTY_SHIFT, "full/B:1/H:2/D:8/T:20/lse", "a constant added to its scores, lse[",
     "lse"},
    {LAYOUT_DEPENDENT, PROPERTY_LAYOUT, "full/B:1/H:2/D:8/T:20", "in [B, T, H, D]", "rows"},
    {LSE_BASE_2, PROPERTY_HALVES, "full/B:1/H:2/D:8/T:20/lse", "against its two halves", "lse"},
    {OFFSET_IGNORED, PROPERTY_HALVES, "causal/B:1/H:2/D:8/T:20", "against its two halves", "alignment"},
    {COMPANY_DEPENDENT, PROPERTY_COMPANY, "full/B:2/H:4/Hkv:2/D:8/T:20", "without the rest of the batch",
     "heads"},
    {COMPANY_DEPENDENT, PROPERTY_COMPANY, "full/B:1/H:4/Hkv:2/D:8/T:20", "has other bits", "heads"},
    {SINK_TWICE, PROPERTY_SINK, "causal/B:2/H:3/D:8/T:20/sink/lse", "with a key for its sink", "sink sum"},
    {DECODED_OTHERWISE, PROPERTY_DECODED, "causal/B:1/H:2/D:8/T:20", "decoded alone, row b 0", "rows"},
    {BIAS_CLAMPED, PROPERTY_BIAS, "causal/B:1/H:2/D:8/T:20", "with a bias of -inf, output[", "bias"},
    {BIAS_ONLY_PUSHES_DOWN, PROPERTY_BIAS, "full/B:1/H:2/D:8/T:20/lse",
     "with large numbers in keys that a bias", "bias"},
    {KEYS_REMEMBERED_BY_ADDRESS, PROPERTY_STATE, "full/B:1/H:2/D:8/T:20",
     "with other contents where others were", NULL},
    {VALUES_REMEMBERED_BY_SHAPE, PROPERTY_STATE, "full/B:1/H:2/D:8/T:20", "with other contents, output[",
     NULL},
    {INPUTS_WHERE_THEY_WERE, PROPERTY_STATE, "full/B:1/H:2/D:8/T:20", "with other contents, output[", NULL},
    /* Of local terms what lies between the first and the last key is seen, and that is what the kernel asks. */
    {LAST_TERM_FORGOTTEN, PROPERTY_PATTERN, "full/B:1/H:2/D:8/T:20/see:local:3,0+local:1,4",
     "with the terms of its pattern in another order", "pattern"},
    {TERM_BY_ONE, PROPERTY_PATTERN, "full/B:1/H:2/D:8/T:20/see:local:3,1", "with a band for the local term",
     "pattern"},
    {SLOPES_TURNED, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/alibi",
     "with a bias for its positions, output[", "bias"},
    {DISTANCE_WITHOUT_OFFSET, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/offsets:7/alibi",
     "with a bias for its positions, output[", "bias"},
    {SLOPES_TURNED, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/relative:4",
     "with a bias for its positions, output[", "bias"},
    {DISTANCE_WITHOUT_OFFSET, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/offsets:7/relative:4",
     "with a bias for its positions, output[", "bias"},
    {ROPE_OF_QUERIES_ALONE, PROPERTY_ROPE, "full/B:1/H:2/D:8/T:20/rope:half",
     "with all positions shifted, output[", "rope"},
    {ROPE_OF_QUERIES_ALONE, PROPERTY_ROPE, "causal_bottom_right/B:1/H:2/D:9/Tq:5/Tk:20/rope:interleaved,6",
     "with all positions shifted, output[", "rope"},
    {SLOPES_TURNED, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/t5:8,20",
     "with a bias for its positions, output[", "bias"},
    {DISTANCE_WITHOUT_OFFSET, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/offsets:7/t5:8,20,one",
     "with a bias for its positions, output[", "bias"},
    {MATRIX_AND_MORE, PROPERTY_GENERAL, "full/B:1/H:2/D:8/T:20/general/fill:normal",
     "with matrices of one for its general scores", "features scale sum keys maximum"},
    {TANH_OF_EACH, PROPERTY_ADDITIVE, "full/B:1/H:2/D:8/T:20/additive/fill:normal",
     "with a vector moved from its keys to its queries", "features scale sum keys maximum"},
    {STATE_FORGOTTEN, PROPERTY_PARTS, "linear/causal/B:1/H:2/D:8/T:20",
     "cut in two with the state handed over, output[", "state"},
    {LAST_KEY_NOT_LEFT, PROPERTY_PARTS, "linear/full/B:1/H:2/D:8/Dv:5/T:20/state/unnormalised",
     "cut in two with the state handed over, output[", "state"},
    {DROPS_BY_P, PROPERTY_DROPOUT, "full/B:1/H:2/D:8/T:20/dropout:0.3",
     "with a keep mask of ones and a p of 0", "sum"},
};

static void expect_fault(size_t n, const char *type) {
  char problem[WORKLOAD_NAME_BYTES];
  const unsigned bit = 1u << faults[n].property;
  const char *name = property_name(faults[n].property);
  snprintf(problem, sizeof problem, "%s%s", faults[n].problem, type);
  const property_verdict right = verdict_of(problem, NO_FAULT, bit);
  if (right.failed || right.checked != bit)
    fail_msg("'%s' without a fault on %s: checked %u, %s", name, problem, right.checked,
             right.failed ? right.problem : "passed");
  const property_verdict wrong = verdict_of(problem, faults[n].fault, bit);
  if (!wrong.failed) fail_msg("'%s' does not see fault %d on %s", name, (int)faults[n].fault, problem);
  if (!strstr(wrong.problem, faults[n].words) || strncmp(wrong.problem, name, strlen(name)) != 0)
    fail_msg("'%s' is not in: %s", faults[n].words, wrong.problem);
  const char *kinds = faults[n].kinds;
  if (kinds ? !wrong.hint.kind[0] || !strstr(kinds, wrong.hint.kind) : wrong.hint.kind[0] != '\0')
    fail_msg("the hint is '%s: %s', not of %s: %s", wrong.hint.kind, wrong.hint.words,
             kinds ? kinds : "no kind", wrong.problem);
}

/* In float32, and in one of the other types in turn; `make test-full`: in each. */
static void each_fault_is_seen_by_its_property(void **state) {
  (void)state;
  const bool all = getenv("ATTN_TEST_FULL") != NULL;
  for (size_t type = 0; type < TYPES; type++) {
    unsigned seen = 0;
    for (size_t n = 0; n < sizeof faults / sizeof *faults; n++) {
      seen |= 1u << faults[n].property;
      if (!all && type > 0 && n % (TYPES - 1) != type - 1) continue;
      if (faults[n].fault == ALLOCATES && !heap_calls_are_seen()) continue;
      if (faults[n].fault == THREADS_IGNORED && !threads_are_seen()) continue;
      /* No key of float16 has a score of 1e9. */
      if (faults[n].fault == BIAS_ONLY_PUSHES_DOWN && strncmp(types[type], "/f16", 4) == 0) continue;
      expect_fault(n, types[type]);
    }
    assert_int_equal(seen, PROPERTIES_ALL);
  }
}

/* A guard page stands before each buffer, so the kernel crashes; with the buffers at the back it does not. */
static void a_read_before_a_buffer_faults(void **state) {
  (void)state;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL); /* cmocka would go on with the next test */
    if (!freopen("/dev/null", "w", stderr)) _exit(2);
    verdict_of("full/B:1/H:1/D:8/T:20", READS_BEFORE_ITS_QUERY, 1u << PROPERTY_REPEAT);
    verdict_of("full/B:1/H:1/D:8/T:20", READS_BEFORE_ITS_QUERY, 1u << PROPERTY_EDGES);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_right_kernel_keeps_every_property(void **state) {
  (void)state;
  unsigned checked[TYPES] = {0};
  for (int64_t n = 0; n < 140; n++) {
    const workload w = properties_problem(3, n);
    const attn_problem problem = workload_problem(&w);
    char name[WORKLOAD_NAME_BYTES];
    workload_name(&w, name);
    if (runner_refusal(kernel_of(name), &problem) || (n >= 60 && !w.type)) continue;
    const property_verdict verdict = verdict_of(name, NO_FAULT, PROPERTIES_ALL);
    if (verdict.failed) fail_msg("%s: %s", name, verdict.problem);
    checked[problem.query.type] |= verdict.checked;
  }
  assert_int_equal(checked[ATTN_FLOAT32], PROPERTIES_ALL);
  assert_int_equal(checked[ATTN_BFLOAT16], PROPERTIES_ALL);
  assert_int_equal(checked[ATTN_FLOAT16], PROPERTIES_ALL);
}

static void what_is_not_promised_is_not_held(void **state) {
  (void)state;
  const unsigned promises = 1u << PROPERTY_COMPANY | 1u << PROPERTY_DECODED;
  attn_variant modest = kernel;
  modest.traits = 0;
  assert_int_equal(verdict_on(&modest, "full/B:2/H:2/D:8/T:20", COMPANY_DEPENDENT, promises).checked, 0);
  modest.traits = ATTN_BATCH_INVARIANT;
  assert_int_equal(verdict_on(&modest, "full/B:2/H:2/D:8/T:20", DECODED_OTHERWISE, promises).checked,
                   1u << PROPERTY_COMPANY);
}

static void free_bits_are_held_to_the_bounds(void **state) {
  (void)state;
  static const fault of_bits[] = {OTHER_BITS_EACH_TIME, THREAD_DEPENDENT, LAYOUT_DEPENDENT,
                                  COMPANY_DEPENDENT};
  static const struct {
    fault fault;
    property property;
    const char *problem, *words;
  } beyond[] = {
      {HIDDEN_VALUE_TIMES_ZERO, PROPERTY_HIDDEN, "causal/B:1/H:2/D:8/T:20", "with NaN in keys"},
      {WRONG_KV_HEAD, PROPERTY_HIDDEN, "full/B:1/H:4/Hkv:2/D:8/T:20", "in keys that it cannot see"},
      {VALUES_REMEMBERED_BY_SHAPE, PROPERTY_STATE, "full/B:1/H:2/D:8/T:20", "with other contents, output["}};
  attn_variant free_one = kernel;
  free_one.traits = ATTN_FREE_BITS | ATTN_BATCH_INVARIANT;
  for (size_t n = 0; n < sizeof of_bits / sizeof *of_bits; n++) {
    const property_verdict verdict =
        verdict_on(&free_one, "full/B:2/H:4/Hkv:2/D:8/T:20", of_bits[n], PROPERTIES_ALL);
    if (verdict.failed || !verdict.checked) fail_msg("fault %d: %s", (int)of_bits[n], verdict.problem);
  }
  for (size_t n = 0; n < sizeof beyond / sizeof *beyond; n++) {
    const property_verdict verdict =
        verdict_on(&free_one, beyond[n].problem, beyond[n].fault, 1u << beyond[n].property);
    if (!strstr(verdict.problem, beyond[n].words))
      fail_msg("fault %d: %s", (int)beyond[n].fault, verdict.problem);
  }
}

static void who_takes_finite_numbers_alone_sees_no_other(void **state) {
  (void)state;
  attn_variant finite = kernel;
  finite.traits = ATTN_FINITE;
  const property_verdict lucky =
      verdict_on(&finite, "causal/B:1/H:2/D:8/T:20", HIDDEN_VALUE_TIMES_ZERO, 1u << PROPERTY_HIDDEN);
  assert_int_equal(lucky.failed, 0);
  assert_int_equal(lucky.checked, 1u << PROPERTY_HIDDEN);
  assert_int_not_equal(
      verdict_on(&finite, "full/B:1/H:4/Hkv:2/D:8/T:20", WRONG_KV_HEAD, 1u << PROPERTY_HIDDEN).failed, 0);
}

/* One minus the weight of such a sink is 0 in double precision, and the output is not. */
static void a_sink_may_take_all_but_the_last_places(void **state) {
  (void)state;
  const char *heavy = "full/B:1/H:2/Hkv:1/D:9/Dv:1/T:1/sink/weights/fill:heavy";
  for (int seed = 0; seed < 20; seed++) {
    char problem[WORKLOAD_NAME_BYTES];
    snprintf(problem, sizeof problem, "%s/seed:%d", heavy, seed);
    const property_verdict verdict = verdict_of(problem, NO_FAULT, 1u << PROPERTY_ONES);
    if (verdict.failed) fail_msg("%s: %s", problem, verdict.problem);
    assert_int_equal(verdict.checked, 1u << PROPERTY_ONES);
  }
}

static void problems_without_rows_or_keys_say_nothing(void **state) {
  (void)state;
  assert_int_equal(verdict_of("full/B:2/H:2/D:8/Tq:0/Tk:7", NO_FAULT, PROPERTIES_ALL).checked, 0);
  assert_int_equal(verdict_of("full/B:0/H:2/D:8/T:7", NO_FAULT, PROPERTIES_ALL).failed, 0);
  assert_int_equal(verdict_of("full/B:2/H:2/D:8/Tq:5/Tk:0/lse", NO_FAULT, PROPERTIES_ALL).failed, 0);
  assert_int_equal(verdict_of("full/B:2/H:2/D:8/Dv:0/T:5/lse", NO_FAULT, PROPERTIES_ALL).failed, 0);
}

static void random_problems_are_sound_and_small(void **state) {
  (void)state;
  for (int64_t n = 0; n < 2000; n++) {
    const workload w = properties_problem(9, n);
    const attn_problem problem = workload_problem(&w);
    char why[256] = "", name[WORKLOAD_NAME_BYTES];
    workload_name(&w, name);
    if (!check_problem(&problem, why, sizeof why)) fail_msg("%s: %s", name, why);
    assert_true(properties_can_be_held(&w));
  }
}

/* What the subcommand says of this one kernel on one problem; to be freed. */
static char *said_of(const attn_variant *variant, const char *problem, fault fault, int status) {
  const char *origins[] = {"./mine.so"};
  const variant_list list = {.variants = &variant, .origins = origins, .count = 1};
  verify_options options = {.problems = &problem, .problem_count = 1, .threads = 2, .seed = 1};
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  planted = fault;
  assert_int_equal(verify_all(&list, &options, out), status);
  planted = NO_FAULT;
  fclose(out);
  return text;
}

static void what_is_unchecked_is_said(void **state) {
  (void)state;
  attn_variant modest = kernel;
  free(said_of(&modest, "full/B:1/H:2/D:16/T:20", THREAD_DEPENDENT, 1));
  modest.traits = ATTN_FREE_BITS | ATTN_FINITE;
  char *text = said_of(&modest, "full/B:1/H:2/D:16/T:20", THREAD_DEPENDENT, 0);
  if (!strstr(text,
              "Unchecked, as kernel says of itself: the same bits again, with other threads and in other "
              "layouts; NaN, infinity and what overflows\n"))
    fail_msg("%s", text);
  free(text);
  text = said_of(&modest, "full/B:1/H:2/D:16/T:20/fill:nonfinite", NO_FAULT, 2);
  if (!strstr(text, "skipped 1: takes finite numbers alone (1)")) fail_msg("%s", text);
  free(text);
}

/* The subcommand on this one kernel, with a fault that nothing but a property can see. */
static void a_failure_is_printed_with_the_command_that_repeats_it(void **state) {
  (void)state;
  const attn_variant *variants[] = {&kernel};
  const char *origins[] = {"./mine.so"}, *problem = "full/B:1/H:2/D:16/T:20";
  const variant_list list = {.variants = variants, .origins = origins, .count = 1};
  verify_options options = {.problems = &problem,
                            .problem_count = 1,
                            .threads = 2,
                            .seed = 1,
                            .plugins = origins,
                            .plugin_count = 1};
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  planted = LAYOUT_DEPENDENT;
  assert_int_equal(verify_all(&list, &options, out), 1);
  planted = NO_FAULT;
  fclose(out);
  if (!strstr(text, "FAILED: layout: in [B, T, H, D], row b 0, h 0, i 0 has other bits\n") ||
      !strstr(text, "reproduce: attnbench verify --variant kernel --problem 'full/B:1/H:2/Hkv:2/D:16/T:20' "
                    "--threads 2 --plugin './mine.so'\n") ||
      !strstr(text, "26 properties held on 1 problem: "))
    fail_msg("%s", text);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_read_before_a_buffer_faults), /* first: OpenMP's threads do not survive a fork */
      cmocka_unit_test(each_fault_is_seen_by_its_property),
      cmocka_unit_test(a_right_kernel_keeps_every_property),
      cmocka_unit_test(what_is_not_promised_is_not_held),
      cmocka_unit_test(free_bits_are_held_to_the_bounds),
      cmocka_unit_test(who_takes_finite_numbers_alone_sees_no_other),
      cmocka_unit_test(what_is_unchecked_is_said),
      cmocka_unit_test(a_sink_may_take_all_but_the_last_places),
      cmocka_unit_test(problems_without_rows_or_keys_say_nothing),
      cmocka_unit_test(random_problems_are_sound_and_small),
      cmocka_unit_test(a_failure_is_printed_with_the_command_that_repeats_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
