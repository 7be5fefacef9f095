/* Kernels that compute something else: in the scores, the softmax, its exponentials and sums, the log-sum-exp, the
 * sinks, the weights, with what is not a number, and in linear attention. */
#include "kernel.h"

#include <float.h>
#include <string.h>

/* ---- score: scale, softcap, bias ---- */

static float score_scaled_twice(const row *r, int64_t j) {
  return honest_score(r, j) * (r->p->head_dim % 3 ? (float)r->p->scale : 1);
}

static float score_default_scale(const row *r, int64_t j) {
  return capped(r, dot(r, j) / sqrtf((float)r->p->head_dim)) + bias_of(r, j);
}

static float score_scale_without_sign(const row *r, int64_t j) {
  return capped(r, fabsf((float)r->p->scale) * dot(r, j)) + bias_of(r, j);
}

static float score_softcap_after_bias(const row *r, int64_t j) {
  return capped(r, scaled(r, j) + bias_of(r, j));
}

static float score_softcap_before_scale(const row *r, int64_t j) {
  return (float)r->p->scale * capped(r, dot(r, j)) + bias_of(r, j);
}

static float score_softcap_clamps(const row *r, int64_t j) {
  const float cap = (float)r->p->softcap, s = scaled(r, j);
  return (cap > 0 && s > cap ? cap : cap > 0 && s < -cap ? -cap : s) + bias_of(r, j);
}

static bool in_tail(const row *r, int64_t j) { return r->keys.end > TILE && j >= r->keys.end / TILE * TILE; }

static float score_no_softcap_in_tail(const row *r, int64_t j) {
  return in_tail(r, j) ? scaled(r, j) + bias_of(r, j) : honest_score(r, j);
}

static float score_no_bias_in_tail(const row *r, int64_t j) {
  return in_tail(r, j) ? capped(r, scaled(r, j)) : honest_score(r, j);
}

static float score_bias_is_scaled(const row *r, int64_t j) {
  return capped(r, scaled(r, j)) + (float)r->p->scale * bias_of(r, j);
}

static float score_bias_of_first_entry(const row *r, int64_t j) {
  row other = *r;
  other.b = 0;
  return capped(r, scaled(r, j)) + bias_of(&other, j);
}

static float score_bias_of_first_query(const row *r, int64_t j) {
  row other = *r;
  other.i = 0;
  return capped(r, scaled(r, j)) + bias_of(&other, j);
}

static float with_bias_from(const row *r, int64_t j, float least) {
  const float bias = bias_of(r, j);
  return capped(r, scaled(r, j)) + (bias < least ? least : bias);
}

static float score_bias_from_minus_30(const row *r, int64_t j) { return with_bias_from(r, j, -30); }
static float score_bias_from_minus_1e9(const row *r, int64_t j) { return with_bias_from(r, j, -1e9f); }

static float score_lowest_bias_is_infinite(const row *r, int64_t j) {
  const float bias = bias_of(r, j);
  return capped(r, scaled(r, j)) + (isinf(bias * 1.44269504f) ? -INFINITY : bias);
}

/* ---- max: the softmax and its running maximum ---- */

static void stay(row *r, float max) {
  (void)max;
  r->max = 0;
}

static void max_missing(row *r) {
  r->max = 0;
  honest_solve(r);
}

#define FROM(word, first)                                                                                    \
  static void word(row *r) { r->max = (first); }
FROM(max_from_zero, 0)
FROM(max_from_minus_1e4, -1e4f)
FROM(max_from_minus_1e9, -1e9f)
FROM(max_from_minus_1e30, -1e30f)

static float max_nan_above_1e5(const row *r, int64_t j) {
  const float s = honest_score(r, j);
  return s > 1e5f ? NAN : s;
}

static float max_inf_below_minus_1e5(const row *r, int64_t j) {
  const float s = honest_score(r, j);
  return s < -1e5f ? -INFINITY : s;
}

static float max_clamped_at_65504(const row *r, int64_t j) {
  const float s = honest_score(r, j);
  return s > 65504 ? 65504 : s;
}

static void max_rescales_nothing(row *r, float max) { r->max = max; }

static void max_rescales_sum(row *r, float max) {
  r->sum *= expf(r->max - max);
  r->max = max;
}

static void max_rescales_output(row *r, float max) {
  scale_output(r, expf(r->max - max));
  r->max = max;
}

static void max_of_first_tile(row *r, float max) {
  if (r->max == -INFINITY) r->max = max;
}

/* The second half has a maximum of its own, and what the first has summed is not rescaled to it. */
static void max_not_merged(row *r) {
  const int64_t middle = (r->keys.first + r->keys.end) / 2;
  solve_tiles(r, r->keys.first, middle);
  for (int64_t j = middle; j < r->keys.end && middle - r->keys.first > TILE; j++)
    r->max = larger(r->max, sees(r, j) ? score(r, j) : -INFINITY);
  solve_tiles(r, middle, r->keys.end);
}

/* ---- exp: exponentials ---- */

static float exp_off_by_1e3(float x) { return expf(x) * (1 + 1e-3f * cosf(37 * x)); }
static float exp_off_by_1e4(float x) { return expf(x) * (1 + 1e-4f * cosf(37 * x)); }
static float exp_clamped_at_minus_10(float x) { return expf(x < -10 ? -10 : x); }
static float exp_zero_below_minus_15(float x) { return x < -15 ? 0 : expf(x); }

/* 2^n times a polynomial of degree 3. */
static float exp_short_polynomial(float x) {
  const float t = x * 1.44269504f, n = floorf(t), f = (t - n) * 0.693147181f;
  return ldexpf(1 + f * (1 + f * (0.5f + f * 0.166666f)), (int)fmaxf(n, -150));
}

/* By linear interpolation between powers of two (Schraudolph 1999). */
static float exp_schraudolph(float x) {
  const float at = 12102203.2f * x + 1065353216.0f;
  const int32_t bits = at > 0 ? (int32_t)at : 0;
  float result;
  memcpy(&result, &bits, sizeof result);
  return isnan(x) ? x : result;
}

/* ---- round: narrower types where float32 is asked for ---- */

static float with_bits(float x, int dropped) {
  uint32_t bits;
  if (!isfinite(x)) return x;
  memcpy(&bits, &x, sizeof bits);
  bits = (bits + (1u << (dropped - 1))) >> dropped << dropped;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static float to_half(float x) {
  return fabsf(x) < 0x1p-14f ? rintf(x * 0x1p24f) * 0x1p-24f : with_bits(x, 13);
}

static void round_weights_to_half(row *r, int64_t j, float w) {
  add_scaled(r->o, value_of(r, j), to_half(w), r->p->value_dim);
}

static void round_weights_to_bfloat16(row *r, int64_t j, float w) {
  add_scaled(r->o, value_of(r, j), with_bits(w, 16), r->p->value_dim);
}

static void round_values_to_half(row *r, int64_t j, float w) {
  const float *v = value_of(r, j);
  for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] += w * to_half(v[e]);
}

static void round_values_to_tf32(row *r, int64_t j, float w) {
  const float *v = value_of(r, j);
  for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] += w * with_bits(v[e], 13);
}

static void round_sums_to_20_bits(row *r, int64_t j, float w) {
  const float *v = value_of(r, j);
  for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] = with_bits(r->o[e] + w * v[e], 4);
}

static void round_denormal_values_to_zero(row *r, int64_t j, float w) {
  const float *v = value_of(r, j);
  for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] += w * (fabsf(v[e]) < FLT_MIN ? 0 : v[e]);
}

static void round_denormal_output_to_zero(row *r) {
  for (int64_t e = 0; e < r->p->value_dim; e++)
    if (fabsf(r->o[e]) < FLT_MIN) r->o[e] = 0;
}

static float round_scores_to_half(const row *r, int64_t j) { return with_bits(honest_score(r, j), 13); }

static float round_queries_to_tf32(const row *r, int64_t j) {
  const float *q = query_of(r), *k = key_of(r, j);
  float sum = 0;
  for (int64_t d = 0; d < r->p->head_dim; d++) sum += with_bits(q[d], 13) * k[d];
  return sum;
}

static float round_scale_to_half(const row *r, int64_t j) {
  return capped(r, with_bits((float)r->p->scale, 13) * dot(r, j)) + bias_of(r, j);
}

static void round_with_epsilon(row *r) {
  honest_sink(r);
  r->sum += 1e-5f;
}

/* ---- keys: one among many ---- */

static void keys_one_dropped(row *r) {
  const int64_t lost = r->keys.end >= 4096 ? 3001 : r->keys.end;
  solve_tiles(r, r->keys.first, lost);
  solve_tiles(r, lost + 1, r->keys.end);
}

static void keys_one_doubled(row *r) {
  honest_solve(r);
  if (r->keys.end >= 4096) solve_tiles(r, 4000, 4001);
}

static void keys_last_dropped(row *r) {
  if (r->keys.end >= 2048) r->keys.end--;
}

static void keys_first_dropped(row *r) {
  if (r->keys.end - r->keys.first >= 3000) r->keys.first++;
}

static void keys_values_swapped(row *r, int64_t j, float w) {
  const bool swapped = r->keys.end >= 4096 && (j == 2000 || j == 2001);
  add_scaled(r->o, value_of(r, swapped ? 4001 - j : j), w, r->p->value_dim);
}

/* Every 16th key is left out where there are very many: sparse on the quiet. */
static bool keys_sampled(const row *r, int64_t j) {
  return (r->p->key_length < 8192 || j % 16 != 5) && honest_sees(r, j);
}

static void keys_weak_dropped(row *r, int64_t j, float w) {
  if (w > 1e-4f || isnan(w)) add_scaled(r->o, value_of(r, j), w, r->p->value_dim);
}

/* ---- lse ---- */

static void scale_lse(row *r, float by) {
  if (lse_at(r) && r->sees_a_key) *lse_at(r) *= by;
}

static void lse_in_base_2(row *r) { scale_lse(r, 1.44269504f); }
static void lse_without_scale(row *r) { scale_lse(r, r->p->scale != 0 ? (float)(1 / r->p->scale) : 1); }

static void lse_without_max(row *r) {
  if (lse_at(r) && r->sees_a_key) *lse_at(r) = logf(r->sum);
}

static void lse_before_sink(row *r) {
  const float sink = sink_of(r);
  if (lse_at(r) && r->sees_a_key && sink != -INFINITY)
    *lse_at(r) = r->max + logf(r->sum - expf(sink - r->max));
}

static void lse_spoils_the_output(row *r) {
  if (lse_at(r) && r->p->value_dim > 3) r->o[3] *= 1.001f;
}

/* ---- sink ---- */

static void sink_of_the_entry(row *r) {
  row other = *r;
  other.h = r->b % r->p->query_heads;
  const float sink = sink_of(&other);
  if (sink == -INFINITY) return;
  raise_to(r, sink);
  r->sum += expf(sink - r->max);
}

static void sink_not_in_the_maximum(row *r) { r->sum += expf(sink_of(r) - r->max); }

static void sink_is_scaled(row *r) {
  const float sink = sink_of(r) * (float)r->p->scale;
  if (sink_of(r) == -INFINITY) return;
  raise_to(r, sink);
  r->sum += expf(sink - r->max);
}

static void sink_has_a_value(row *r) {
  honest_sink(r);
  add(r, r->keys.first, expf(sink_of(r) - r->max));
}

static void sink_ignored(row *r) { (void)r; }

static void sink_lost_in_hidden_rows(row *r) {
  if (!r->sees_a_key && lse_at(r)) *lse_at(r) = -INFINITY;
}

/* ---- weights: the output that is hardly asked for ---- */

static void scale_weights(row *r, float by) {
  float *weights = weights_at(r);
  for (int64_t j = 0; weights && j < r->p->key_length; j++) weights[j] *= by;
}

static void weights_not_normalised(row *r) { scale_weights(r, r->sum); }

static void weights_without_sink(row *r) {
  const float sink = sink_of(r);
  if (sink != -INFINITY && r->sees_a_key) scale_weights(r, r->sum / (r->sum - expf(sink - r->max)));
}

static void weights_of_hidden_keys(row *r) {
  float *weights = weights_at(r);
  if (weights && r->keys.end < r->p->key_length) weights[r->keys.end] = 1e-20f;
}

static void weights_in_half(row *r) {
  float *weights = weights_at(r);
  for (int64_t j = 0; weights && j < r->p->key_length; j++) weights[j] = to_half(weights[j]);
}

static void weights_spoil_the_output(row *r) {
  if (weights_at(r) && r->p->value_dim > 0) r->o[0] *= 1.001f;
}

/* ---- nan: what is not finite ---- */

static float nan_scores_are_hidden(const row *r, int64_t j) {
  const float s = honest_score(r, j);
  return isnan(s) ? -INFINITY : s;
}

static void nan_values_are_zero(row *r, int64_t j, float w) {
  const float *v = value_of(r, j);
  for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] += w * (isnan(v[e]) ? 0 : v[e]);
}

static void nan_inf_is_the_largest(row *r, int64_t j, float w) {
  const float *v = value_of(r, j);
  for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] += w * fmaxf(fminf(v[e], FLT_MAX), -FLT_MAX);
}

/* Values of the whole tile are multiplied, those that nobody sees by 0. */
static void nan_of_the_tile_spreads(row *r) {
  honest_solve(r);
  for (int64_t j = r->keys.end; j % TILE != 0 && j < r->p->key_length; j++) add(r, j, 0);
}

static void nan_of_rows_above_spreads(row *r) {
  if (r->i > 0 && r->i % 4 == 1) {
    row above = *r;
    above.i--;
    for (int64_t e = 0; e < r->p->value_dim; e++)
      r->o[e] += 0 * dot_of(query_of(&above), query_of(&above), 1);
  }
}

/* ---- linear ---- */

static float linear_relu(float x) { return (x > 0 ? x : 0) + 1; }
static float linear_clamped(float x) { return x > 0 ? x + 1 : expf(x < -4 ? -4 : x); }
static float linear_elu_alpha(float x) { return x > 0 ? x + 1 : 0.99f * expf(x) + 0.01f; }

static void linear_causal_strict(row *r) {
  if (r->p->right == 0 && r->keys.end > 1) r->keys.end--;
}

static void linear_chunk_twice(row *r) {
  solve_linear(r);
  if (r->keys.first == 0 && r->keys.end > TILE) {
    const float w = score(r, TILE);
    r->sum += w;
    add(r, TILE, w);
  }
}

static void linear_chunk_forgets(row *r) {
  if (r->keys.end > 1024) r->keys.first = r->keys.end - 1024;
}

static void linear_no_epsilon(attn_problem *p, attn_tensors *t, const attn_call *call) {
  (void)t, (void)call;
  p->epsilon = 0;
}

static void linear_offset_ignored(attn_problem *p, attn_tensors *t, const attn_call *call) {
  (void)t, (void)call;
  p->offset = 0;
}

static void linear_hidden_row(row *r) {
  if (!r->sees_a_key)
    for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] = NAN;
}

static const kernel kernels[] = {
    KERNEL(score, score_scaled_twice, "the scale is applied twice where D is no multiple of 3"),
    KERNEL(score, score_default_scale, "the scale is always 1/sqrt(D)"),
    KERNEL(score, score_scale_without_sign, "the sign of the scale is lost"),
    KERNEL(score, score_softcap_after_bias, "the softcap caps the bias too"),
    KERNEL(score, score_softcap_before_scale, "the softcap comes before the scale"),
    KERNEL(score, score_softcap_clamps, "the softcap clamps, without tanh"),
    KERNEL(score, score_no_softcap_in_tail, "the last tile has no softcap"),
    KERNEL(score, score_no_bias_in_tail, "the last tile has no bias"),
    KERNEL(score, score_bias_is_scaled, "the bias is scaled"),
    KERNEL(score, score_bias_of_first_entry, "all entries have the bias of the first"),
    KERNEL(score, score_bias_of_first_query, "all queries have the bias of the first"),
    KERNEL(score, score_bias_from_minus_30, "a bias of -inf is one of -30"),
    KERNEL(score, score_bias_from_minus_1e9, "a bias of -inf is one of -1e9"),
    KERNEL(score, score_lowest_bias_is_infinite, "the lowest bias is -inf, as log2(e) makes of it"),

    KERNEL(solve, max_missing, "no maximum is subtracted", .raise = stay),
    KERNEL(row, max_from_zero, "the running maximum starts at 0"),
    KERNEL(row, max_from_minus_1e4, "the running maximum starts at -1e4"),
    KERNEL(row, max_from_minus_1e9, "the running maximum starts at -1e9"),
    KERNEL(row, max_from_minus_1e30, "the running maximum starts at -1e30"),
    KERNEL(score, max_nan_above_1e5, "scores above 1e5 are NaN"),
    KERNEL(score, max_inf_below_minus_1e5, "scores below -1e5 are hidden"),
    KERNEL(score, max_clamped_at_65504, "scores end at the largest float16"),
    KERNEL(raise, max_rescales_nothing, "nothing is rescaled at a new maximum"),
    KERNEL(raise, max_rescales_sum, "only the sum is rescaled at a new maximum"),
    KERNEL(raise, max_rescales_output, "only the output is rescaled at a new maximum"),
    KERNEL(raise, max_of_first_tile, "the maximum is that of the first tile"),
    KERNEL(solve, max_not_merged, "halves of long rows are merged as if they had one maximum"),

    KERNEL(weight, exp_off_by_1e3, "an error of the exponential that oscillates, 1e-3"),
    KERNEL(weight, exp_off_by_1e4, "an error of the exponential that oscillates, 1e-4"),
    KERNEL(weight, exp_clamped_at_minus_10, "exponents end at -10"),
    KERNEL(weight, exp_zero_below_minus_15, "exponentials below e^-15 are zero"),
    KERNEL(weight, exp_short_polynomial, "exponentials by a polynomial of degree 3"),
    KERNEL(weight, exp_schraudolph, "exponentials by linear interpolation"),

    KERNEL(add, round_weights_to_half, "weights are rounded to float16"),
    KERNEL(add, round_weights_to_bfloat16, "weights are rounded to bfloat16"),
    KERNEL(add, round_values_to_half, "values are rounded to float16"),
    KERNEL(add, round_values_to_tf32, "values are rounded to TF32"),
    KERNEL(add, round_sums_to_20_bits, "sums of values are rounded to 20 bits"),
    KERNEL(add, round_denormal_values_to_zero, "denormal values are flushed to zero"),
    KERNEL(after, round_denormal_output_to_zero, "denormal outputs are flushed to zero"),
    KERNEL(score, round_scores_to_half, "scores are rounded to 11 bits"),
    KERNEL(dot, round_queries_to_tf32, "queries are rounded to TF32"),
    KERNEL(score, round_scale_to_half, "the scale is rounded to 11 bits"),
    KERNEL(sink, round_with_epsilon, "1e-5 is added to the sum"),

    KERNEL(solve, keys_one_dropped, "key 3001 of 4096 or more is dropped"),
    KERNEL(solve, keys_one_doubled, "key 4000 of 4096 or more is counted twice"),
    KERNEL(row, keys_last_dropped, "the last of 2048 keys or more is dropped"),
    KERNEL(row, keys_first_dropped, "the first of 3000 keys or more is dropped"),
    KERNEL(add, keys_values_swapped, "two values of 4096 keys or more change places"),
    KERNEL(sees, keys_sampled, "beyond 8192 keys, one in 16 is left out"),
    KERNEL(add, keys_weak_dropped, "values with a weight below 1e-4 are left out, and their weight is not"),

    KERNEL(after, lse_in_base_2, "the log-sum-exp is in base 2"),
    KERNEL(after, lse_without_scale, "the log-sum-exp is divided by the scale"),
    KERNEL(after, lse_without_max, "the log-sum-exp lacks the maximum"),
    KERNEL(after, lse_before_sink, "the log-sum-exp lacks the sink"),
    KERNEL(after, lse_spoils_the_output, "an output is off by 1e-3 where the log-sum-exp is wanted"),

    KERNEL(sink, sink_of_the_entry, "sinks are those of the entry, not of the head"),
    KERNEL(sink, sink_not_in_the_maximum, "sinks above the maximum overflow"),
    KERNEL(sink, sink_is_scaled, "sinks are scaled"),
    KERNEL(sink, sink_has_a_value, "sinks have the value of the first key"),
    KERNEL(sink, sink_ignored, "sinks are ignored"),
    KERNEL(after, sink_lost_in_hidden_rows, "rows that see no key lose their sink"),

    KERNEL(after, weights_not_normalised, "the weights that are written are not normalised"),
    KERNEL(after, weights_without_sink, "the weights that are written sum to one beside a sink"),
    KERNEL(after, weights_of_hidden_keys, "the weight of a hidden key is 1e-20"),
    KERNEL(after, weights_in_half, "the weights that are written are rounded to float16"),
    KERNEL(after, weights_spoil_the_output, "an output is off by 1e-3 where the weights are wanted"),

    KERNEL(score, nan_scores_are_hidden, "scores of NaN are hidden"),
    KERNEL(add, nan_values_are_zero, "values of NaN are zero"),
    KERNEL(add, nan_inf_is_the_largest, "infinite values are the largest finite ones"),
    KERNEL(solve, nan_of_the_tile_spreads, "values behind the last key of a tile are multiplied by 0"),
    KERNEL(after, nan_of_rows_above_spreads, "a query of NaN reaches the row below"),

    KERNEL(phi, linear_relu, "relu(x) + 1 in place of elu(x) + 1", .function = ATTN_LINEAR),
    KERNEL(phi, linear_clamped, "the feature map ends at e^-4", .function = ATTN_LINEAR),
    KERNEL(phi, linear_elu_alpha, "elu has a slope of 0.99", .function = ATTN_LINEAR),
    KERNEL(row, linear_causal_strict, "a query does not see its own key", .function = ATTN_LINEAR),
    KERNEL(solve, linear_chunk_twice, "the first key of the second chunk is counted twice",
           .function = ATTN_LINEAR),
    KERNEL(row, linear_chunk_forgets, "the state forgets what lies 1024 keys back", .function = ATTN_LINEAR),
    KERNEL(problem, linear_no_epsilon, "epsilon is left out", .function = ATTN_LINEAR),
    KERNEL(problem, linear_offset_ignored, "the offset is ignored", .function = ATTN_LINEAR),
    KERNEL(after, linear_hidden_row, "a row that sees no key is NaN", .function = ATTN_LINEAR),
};
EXPORT_KERNELS;
