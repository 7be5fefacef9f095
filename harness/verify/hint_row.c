/* See hint_row.h. */
#include "hint_row.h"

#include <float.h>
#include <math.h>

#include "reference/additive.h"
#include "reference/feature_map.h"
#include "reference/linear_state.h"
#include "reference/general.h"
#include "reference/rows.h"
#include "reference/sees.h"

attn_range hint_band(const attn_problem *p, row_place at) {
  attn_problem without = *p;
  without.features &= ~(uint64_t)(ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK);
  return attn_visible_keys(&without, at.b, at.i);
}

asked hint_ask(const attn_problem *p, const attn_tensors *widened, row_place at) {
  const row_place kv = {at.b, at.h / (p->query_heads / p->kv_heads), 0};
  return (asked){.problem = p,
                 .tensors = widened,
                 .at = at,
                 .query = at,
                 .key = kv,
                 .value = kv,
                 .bias = at,
                 .mask = at,
                 .keep = at,
                 .pattern = at,
                 .sink_head = at.h,
                 .features = p->head_dim,
                 .keys = hint_band(p, at),
                 .scale = p->scale,
                 .softcap = p->softcap,
                 .softcap_inside = p->softcap,
                 .bias_factor = 1,
                 .sink_factor = 1,
                 .score_factor = 1,
                 .epsilon = p->epsilon,
                 .lowest_bias = -INFINITY,
                 .lowest_maximum = -INFINITY,
                 .normalised = !p->unnormalised,
                 .weights_normalised = true,
                 .sink_in_sum = true,
                 .sink_in_lse = true,
                 .lse_factor = 1,
                 .phi = p->feature_map == ATTN_RELU       ? PHI_RELU
                        : p->feature_map == ATTN_IDENTITY ? PHI_IDENTITY
                                                          : PHI_ELU_1};
}

const float *hint_row(const asked *a, tensor_id id, row_place at) {
  const attn_layout *s = tensor_layout(a->problem, id);
  return (const float *)tensor_data(a->problem, a->tensors, id) + at.b * s->batch + at.h * s->head +
         at.i * s->position;
}

static const float *key_row(const asked *a, tensor_id id, row_place of, int64_t j) {
  return hint_row(a, id, (row_place){of.b, of.h, j});
}

static bool mask_shows(const asked *a, int64_t j) {
  const attn_layout *s = &a->problem->mask;
  if (!s->type) return true;
  return a->tensors->mask[a->mask.b * s->batch + a->mask.h * s->head + a->mask.i * s->position + j] != 0;
}

bool hint_sees(const asked *a, int64_t j) {
  if (j < a->keys.first || j >= a->keys.end) return false;
  if (!a->pattern_ignored &&
      !reference_pattern_shows(a->problem, a->pattern.b, a->pattern.h, a->pattern.i, j))
    return false;
  return a->mask_use == MASK_KEPT ? mask_shows(a, j) : a->mask_use != MASK_INVERTED || !mask_shows(a, j);
}

static double dot(const asked *a, int64_t j) {
  const float *query = hint_row(a, TENSOR_QUERY, a->query), *key = key_row(a, TENSOR_KEY, a->key, j);
  double sum = 0;
  const int64_t position = reference_query_position(a->problem, a->query.b, a->query.i);
  if (a->problem->general.type) {
    reference_general general;
    reference_transform(a->problem, a->query.b, a->query.h, a->query.i, query, &general);
    return reference_general_dot(a->problem, &general, key, j);
  }
  if (a->problem->additive.type)
    return reference_additive(a->problem, a->query.h, (reference_pair_of){query, key, position, j});
  if (!a->problem->rope_cos.type)
    for (int64_t d = 0; d < a->features; d++) sum += (double)query[d] * key[d];
  else
    for (int64_t d = 0; d < a->features; d++)
      sum += reference_rotated(a->problem, position, query, d).value *
             reference_rotated(a->problem, j, key, d).value;
  return sum;
}

static double bias_of(const asked *a, int64_t j) {
  if (!a->problem->bias.type || a->bias_factor == 0) return 0;
  const double bias = (double)hint_row(a, TENSOR_BIAS, a->bias)[j];
  if (a->bias_overflows && bias * M_LOG2E < -(double)FLT_MAX) return -INFINITY;
  return fmax(a->lowest_bias, a->bias_factor * bias);
}

static double capped(const asked *a, double score) {
  return a->softcap > 0 ? a->softcap * tanh(score / a->softcap_inside) : score;
}

static double score_of(const asked *a, int64_t j) {
  const double bias = bias_of(a, j) + reference_position(a->problem, a->at.b, a->at.h, a->at.i, j).sum;
  const double scaled = a->scale * (dot(a, j) + (a->bias_before_scale ? bias : 0));
  if (a->bias_before_scale) return a->score_factor * capped(a, scaled);
  return a->score_factor * (a->softcap_last ? capped(a, scaled + bias) : capped(a, scaled) + bias);
}

static double phi(phi_use use, double x) {
  switch (use) {
    case PHI_ELU: return x > 0 ? x : expm1(x);
    case PHI_RELU: return fmax(x, 0);
    case PHI_IDENTITY: return x;
    case PHI_X_BELOW_0: return x < 0 ? x + 1 : exp(x);
    default: return x > 0 ? x + 1 : exp(x);
  }
}

/* What dropout multiplies a weight by. */
static double kept_of(const asked *a, int64_t j) {
  const double kept =
      a->keep_use == KEEP_IGNORED ? 1 : reference_kept(a->problem, a->keep.b, a->keep.h, a->keep.i, j);
  return a->keep_use == KEEP_UNSCALED && kept != 0 ? 1 : kept;
}

static double times_counted(const asked *a, int64_t j, double factor) {
  return j >= a->counted.first && j < a->counted.end ? factor : 1;
}

static void add_value(const asked *a, const answer *to, int64_t j, double weight) {
  const float *value = key_row(a, TENSOR_VALUE, a->value, j);
  for (int64_t e = 0; e < a->problem->value_dim; e++) to->output[e] += weight * value[e];
}

/* The initial state, faded by so much; returns what it adds to the sum. */
static double add_state(const asked *a, const answer *to, const float *query, double faded) {
  double sum = 0;
  for (int64_t d = 0; d < a->features; d++) {
    const double feature = phi(a->phi, query[d]) * faded;
    const float *state = reference_state_row(a->problem, a->at.b, a->key.h, d);
    sum += feature * reference_state_sum(a->problem, a->at.b, a->key.h, d);
    for (int64_t e = 0; e < a->problem->value_dim; e++) to->output[e] += feature * state[e];
  }
  return sum;
}

static void answer_linear(const asked *a, const answer *to) {
  double sum = a->epsilon + a->more_in_sum + a->more_zero_keys * (double)a->features;
  bool sees = false;
  const float *query = hint_row(a, TENSOR_QUERY, a->query);
  const attn_problem *p = a->problem;
  const int64_t decay_end = p->decay.type ? reference_decay_end(p, a->at.b, a->at.i) : 0;
  double decayed = 0, behind = 0;
  for (int64_t j = p->key_length - 1; j >= 0; j--) {
    decayed += behind;
    behind = j < decay_end ? reference_decay(p, a->at.b, a->key.h, j) : 0;
    if (!hint_sees(a, j)) continue;
    const float *key = key_row(a, TENSOR_KEY, a->key, j);
    double weight = 0;
    for (int64_t d = 0; d < a->features; d++) weight += phi(a->phi, query[d]) * phi(a->phi, key[d]);
    weight *= exp(decayed);
    sees = true;
    sum += weight * times_counted(a, j, a->counted_in_sum);
    add_value(a, to, j, weight * times_counted(a, j, a->counted_in_values));
  }
  if (p->states.state.type && !a->state_ignored) {
    const double in_sum = add_state(a, to, query, a->state_never_fades ? 1 : exp(decayed + behind));
    sees = true;
    sum += a->state_not_in_sum ? 0 : in_sum;
  }
  for (int64_t e = 0; e < a->problem->value_dim && sees && a->normalised; e++) to->output[e] /= sum;
}

/* What has been summed is brought to a maximum that rose. */
static double rescale(const asked *a, const answer *to, double from, double largest, double sum) {
  const double factor = from == -INFINITY ? 0 : exp(from - largest);
  for (int64_t e = 0; e < a->problem->value_dim && !a->output_not_rescaled; e++) to->output[e] *= factor;
  return a->sum_not_rescaled ? sum : sum * factor;
}

/* The maximum of the scores of a tile's keys, or of all. */
static double largest_of(const asked *a, const answer *to, int64_t first) {
  const int64_t end =
      a->tile > 0 && first + a->tile < a->problem->key_length ? first + a->tile : a->problem->key_length;
  double largest = -INFINITY;
  for (int64_t j = first; j < end; j++) largest = fmax(largest, to->scores[j]);
  return largest;
}

/* A row that sees no key: who hides keys by a large number gets the mean of all, or their softmax. */
static void answer_empty(const asked *a, const answer *to) {
  const int64_t Tk = a->problem->key_length;
  double largest = -INFINITY, sum = 0;
  for (int64_t e = 0; e < a->problem->value_dim && a->empty == EMPTY_NAN; e++) to->output[e] = NAN;
  if (a->empty == EMPTY_LSE_0) *to->lse = 0;
  if (a->empty == EMPTY_LSE_INFINITE) *to->lse = INFINITY;
  if ((a->empty != EMPTY_MEAN && a->empty != EMPTY_SOFTMAX) || Tk == 0) return;
  for (int64_t j = 0; j < Tk; j++) {
    to->scores[j] = a->empty == EMPTY_MEAN ? 0 : score_of(a, j);
    largest = fmax(largest, to->scores[j]);
  }
  for (int64_t j = 0; j < Tk; j++) sum += exp(to->scores[j] - largest);
  for (int64_t j = 0; j < Tk; j++) add_value(a, to, j, exp(to->scores[j] - largest) / sum);
}

static void answer_softmax(const asked *a, const answer *to) {
  const attn_problem *p = a->problem;
  const double sink =
      p->sink.type ? a->sink_factor * (double)a->tensors->sink[a->sink_head * p->sink.head] : -INFINITY;
  bool sees = false;
  for (int64_t j = 0; j < p->key_length; j++) {
    to->scores[j] = hint_sees(a, j) ? score_of(a, j) : -INFINITY;
    sees = sees || to->scores[j] != -INFINITY;
  }
  *to->lse = a->sink_in_lse ? sink : -INFINITY;
  if (!sees && a->more_zero_keys == 0) {
    answer_empty(a, to);
    return;
  }
  const bool joins = a->sink_in_sum && sink != -INFINITY;
  double largest = fmax(a->tile > 0 ? -INFINITY : largest_of(a, to, 0), sink),
         sum = joins ? exp(sink - largest) : 0;
  largest = fmax(largest, a->lowest_maximum);
  if (a->more_zero_keys > 0) largest = fmax(largest, 0), sum = joins ? exp(sink - largest) : 0;
  for (int64_t j = 0; j < p->key_length; j++) {
    if (a->tile > 0 && j % a->tile == 0) {
      const double rises = fmax(largest, largest_of(a, to, j));
      if (rises > largest) sum = rescale(a, to, largest, rises, sum);
      largest = rises;
    }
    if (a->hidden_times_zero && to->scores[j] == -INFINITY) add_value(a, to, j, 0);
    if (to->scores[j] == -INFINITY) continue;
    double weight = exp(to->scores[j] - largest);
    if (a->lowest_maximum != -INFINITY && weight < 0x1p-150) weight = 0;
    const bool is_shown = a->mask_use != MASK_AFTER_SOFTMAX || mask_shows(a, j);
    const double kept = kept_of(a, j);
    sum += weight * times_counted(a, j, a->counted_in_sum) *
           (a->keep_use == KEEP_BEFORE_SUM && kept == 0 ? 0 : 1);
    if (!is_shown) continue;
    to->weights[j] = weight * kept;
    if (kept != 0) add_value(a, to, j, weight * kept * times_counted(a, j, a->counted_in_values));
  }
  sum += a->more_zero_keys * exp(-largest) + a->more_in_sum;
  for (int64_t e = 0; e < p->value_dim && a->sink_leaves_output && joins; e++)
    to->output[e] *= exp(largest - largest_of(a, to, 0));
  double in_lse = sum;
  if (joins && !a->sink_in_lse) in_lse -= exp(sink - largest);
  if (!joins && a->sink_in_lse && sink != -INFINITY) in_lse += exp(sink - largest);
  *to->lse = (largest + log(in_lse)) * a->lse_factor;
  if (a->lse_without_maximum) *to->lse = log(in_lse);
  for (int64_t e = 0; e < p->value_dim && a->normalised && sum != 0; e++) to->output[e] /= sum;
  for (int64_t j = 0; j < p->key_length && a->weights_normalised; j++) to->weights[j] /= sum;
}

void hint_answer(const asked *a, const answer *to) {
  for (int64_t e = 0; e < a->problem->value_dim; e++) to->output[e] = 0;
  for (int64_t j = 0; j < a->problem->key_length; j++) to->weights[j] = 0;
  if (reference_function_of(a->problem->function)->has_scores)
    answer_softmax(a, to);
  else
    answer_linear(a, to);
}
