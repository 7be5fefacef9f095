/* See faulty_kernel.h. */
#include "faulty_kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "variants/elements.h"

static fault planted;

static size_t workspace_size(const attn_call *call) {
  return (size_t)(call->problem->key_length + 1 + call->problem->value_dim + call->problem->head_dim) *
         sizeof(float);
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

/* What of a query meets all its keys: its turned features, or for general scores their products with the matrix. */
static void prepare_query(const attn_problem *p, int64_t h, vector q, int64_t position, float *prepared) {
  for (int64_t e = 0; e < p->head_dim; e++) prepared[e] = p->general.type ? 0 : turned(p, q, position, e);
  for (int64_t d = 0; p->general.type && d < p->head_dim; d++) {
    const float x = turned(p, q, position, d);
    const float *matrix = p->general_data + h * p->general.head + d * p->general.position;
    for (int64_t e = 0; e < p->head_dim; e++) prepared[e] += x * matrix[e];
  }
}

static float score(const attn_problem *p, int64_t h, const float *q, vector k, int64_t j) {
  const bool turns = attn_uses(p, ATTN_ROPE) && planted != ROPE_OF_QUERIES_ALONE;
  float dot = 0;
  for (int64_t d = 0; d < p->head_dim; d++) {
    const float x = q[d], y = turns ? turned(p, k, j, d) : get(k, d);
    if (!p->additive.type) {
      dot += x * y;
      continue;
    }
    const float of_both = planted == TANH_OF_EACH ? tanhf(x) + tanhf(y) : tanhf(x + y);
    dot += p->additive_data[h * p->additive.head + d] * of_both;
  }
  return dot * (float)p->scale * (p->general.type && planted == MATRIX_AND_MORE ? 1.5f : 1);
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
  float *sums = w + p->key_length + 1, *prepared = sums + p->value_dim;
  const vector q = row(t->query, p->query, b, h, i), bias = row(t->bias, p->bias, b, h, i);
  const vector out = row(t->output, p->output, b, h, i), weights = row(t->weights, p->weights, b, h, i);
  const float sink = p->sink.type ? t->sink[h * p->sink.head] : -INFINITY;
  float max = sink, sum = 0;
  prepare_query(p, h, q, attn_rope_position(p, b, i), prepared);
  for (int64_t j = keys.first; j < keys.end; j++) {
    w[j] = score(p, h, prepared, row(t->key, p->key, b, kv, j), j);
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

void faulty_plant(fault fault) {
  planted = fault;
  memset(&kept, 0, sizeof kept);
}

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

const attn_variant faulty_kernel = {.name = "kernel",
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
    const int64_t first = b * rows->batch + h * rows->head + d * rows->position;
    const int64_t sum = b * sums->batch + h * sums->head + d;
    for (int64_t e = 0; e < p->value_dim && out; e++) s->final_state_data[first + e] = own[e];
    for (int64_t e = 0; e < p->value_dim && !out; e++) own[e] = rows->type ? s->state_data[first + e] : 0;
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

const attn_variant faulty_linear_kernel = {
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
