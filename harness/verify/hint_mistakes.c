/* The mistakes that kernels make, a row each. The order decides between those that come to the same: what is named in the
 * problem first, what is general last. */
#include <math.h>

#include "hint_mistakes.h"

static const double log2_e = 1.4426950408889634;

static bool has_bias(const asked *a) { return a->problem->bias.type != ATTN_ABSENT; }
static bool has_mask(const asked *a) { return a->problem->mask.type != ATTN_ABSENT; }
static bool has_sink(const asked *a) { return a->problem->sink.type != ATTN_ABSENT; }
static bool has_offset(const asked *a) { return a->problem->offset != 0 || a->problem->offsets; }
static int64_t length_of(const asked *a) {
  return a->problem->key_lengths ? a->problem->key_lengths[a->at.b] : a->problem->key_length;
}

/* ---- scale and softcap ---- */

static bool set(double *number, double to) {
  const bool changes = *number != to;
  *number = to;
  return changes;
}
static bool no_scale(asked *a, int64_t n) { return (void)n, set(&a->scale, 1); }
static bool scale_twice(asked *a, int64_t n) { return (void)n, set(&a->scale, a->scale * a->scale); }
static bool scale_1_over_d(asked *a, int64_t n) {
  return (void)n, set(&a->scale, 1 / (double)a->problem->head_dim);
}
static bool scale_by_d(asked *a, int64_t n) {
  return (void)n, set(&a->scale, 1 / sqrt((double)a->problem->head_dim));
}
static bool scale_by_dv(asked *a, int64_t n) {
  return (void)n, set(&a->scale, 1 / sqrt((double)a->problem->value_dim));
}
static bool scale_inverse(asked *a, int64_t n) {
  return (void)n, a->scale != 0 && set(&a->scale, 1 / a->scale);
}
static bool scale_sign(asked *a, int64_t n) { return (void)n, a->scale != 0 && set(&a->scale, -a->scale); }
static bool base_2(asked *a, int64_t n) { return (void)n, set(&a->score_factor, 1 / log2_e); }
static bool base_2_twice(asked *a, int64_t n) { return (void)n, set(&a->score_factor, log2_e); }

static bool no_softcap(asked *a, int64_t n) { return (void)n, a->softcap > 0 && set(&a->softcap, 0); }
static bool softcap_last(asked *a, int64_t n) {
  (void)n;
  return a->softcap > 0 && has_bias(a) && (a->softcap_last = true);
}
static bool softcap_not_given_back(asked *a, int64_t n) {
  return (void)n, a->softcap > 0 && set(&a->softcap, 1);
}
static bool softcap_not_divided(asked *a, int64_t n) {
  return (void)n, a->softcap > 0 && set(&a->softcap_inside, 1);
}
static bool softcap_of_half(asked *a, int64_t n) {
  return (void)n, a->softcap > 0 && set(&a->softcap_inside, 2 * a->softcap);
}

/* ---- bias, mask, sinks ---- */

static bool move(int64_t *place, int64_t to) {
  const bool changes = *place != to;
  *place = to;
  return changes;
}
static bool no_bias(asked *a, int64_t n) { return (void)n, has_bias(a) && set(&a->bias_factor, 0); }
static bool bias_subtracted(asked *a, int64_t n) { return (void)n, has_bias(a) && set(&a->bias_factor, -1); }
static bool bias_in_base_2(asked *a, int64_t n) {
  return (void)n, has_bias(a) && set(&a->bias_factor, 1 / log2_e);
}
static bool bias_twice_in_base_2(asked *a, int64_t n) {
  return (void)n, has_bias(a) && set(&a->bias_factor, log2_e);
}
static bool bias_scaled(asked *a, int64_t n) { return (void)n, has_bias(a) && (a->bias_before_scale = true); }
static bool bias_of_head(asked *a, int64_t n) {
  return has_bias(a) && a->problem->bias.head != 0 && move(&a->bias.h, n);
}
static bool bias_of_entry(asked *a, int64_t n) {
  return (void)n, has_bias(a) && a->problem->bias.batch != 0 && move(&a->bias.b, 0);
}
static bool bias_of_row(asked *a, int64_t n) {
  return (void)n, has_bias(a) && a->problem->bias.position != 0 && move(&a->bias.i, 0);
}
static bool bias_finite(asked *a, int64_t n) { return has_bias(a) && set(&a->lowest_bias, (double)-n); }

static bool mask_used(asked *a, mask_use use) {
  a->mask_use = use;
  return has_mask(a);
}
static bool no_mask(asked *a, int64_t n) { return (void)n, mask_used(a, MASK_IGNORED); }
static bool mask_inverted(asked *a, int64_t n) { return (void)n, mask_used(a, MASK_INVERTED); }
static bool mask_after(asked *a, int64_t n) { return (void)n, mask_used(a, MASK_AFTER_SOFTMAX); }
static bool mask_of_head(asked *a, int64_t n) {
  return has_mask(a) && a->problem->mask.head != 0 && move(&a->mask.h, n);
}
static bool mask_of_entry(asked *a, int64_t n) {
  return (void)n, has_mask(a) && a->problem->mask.batch != 0 && move(&a->mask.b, 0);
}
static bool mask_of_row(asked *a, int64_t n) {
  return (void)n, has_mask(a) && a->problem->mask.position != 0 && move(&a->mask.i, 0);
}

static bool no_sink(asked *a, int64_t n) {
  (void)n;
  a->sink_in_sum = a->sink_in_lse = false;
  return has_sink(a);
}
static bool sink_not_in_sum(asked *a, int64_t n) { return (void)n, a->sink_in_sum = false, has_sink(a); }
static bool sink_not_in_lse(asked *a, int64_t n) { return (void)n, a->sink_in_lse = false, has_sink(a); }
static bool sink_leaves_output(asked *a, int64_t n) {
  return (void)n, a->sink_leaves_output = true, has_sink(a);
}
static bool sink_of_head(asked *a, int64_t n) { return has_sink(a) && move(&a->sink_head, n); }
static bool sink_in_base_2(asked *a, int64_t n) {
  return (void)n, has_sink(a) && set(&a->sink_factor, 1 / log2_e);
}
static bool sink_twice_in_base_2(asked *a, int64_t n) {
  return (void)n, has_sink(a) && set(&a->sink_factor, log2_e);
}
static bool sink_scaled(asked *a, int64_t n) {
  return (void)n, has_sink(a) && set(&a->sink_factor, a->scale);
}

/* ---- who sees whom ---- */

static bool sees(asked *a, int64_t left, int64_t right, int64_t offset, int64_t length) {
  attn_problem other = *a->problem;
  const attn_range before = a->keys;
  other.left = left;
  other.right = right;
  other.offset = offset;
  other.offsets = NULL;
  other.key_lengths = NULL;
  other.key_length = length;
  a->keys = hint_band(&other, a->at);
  return a->keys.first != before.first || a->keys.end != before.end;
}
static int64_t offset_of(const asked *a) {
  return a->problem->offsets ? a->problem->offsets[a->at.b] : a->problem->offset;
}
static bool is_limited(const asked *a) {
  return a->problem->left != ATTN_UNLIMITED || a->problem->right != ATTN_UNLIMITED;
}
static bool aligned(asked *a, int64_t offset) {
  return is_limited(a) && sees(a, a->problem->left, a->problem->right, offset, length_of(a));
}

static bool top_left(asked *a, int64_t n) { return (void)n, has_offset(a) && aligned(a, 0); }
static bool bottom_right(asked *a, int64_t n) {
  return (void)n, aligned(a, a->problem->key_length - a->problem->query_length);
}
static bool bottom_right_of_length(asked *a, int64_t n) {
  return (void)n, aligned(a, length_of(a) - a->problem->query_length);
}
static bool uses_pattern(const asked *a) {
  return a->problem->term_count > 0 || a->problem->query_documents.type || a->problem->blocks.type ||
         a->problem->topk.type;
}
static bool no_pattern(asked *a, int64_t n) {
  return (void)n, uses_pattern(a) && (a->pattern_ignored = true);
}
static bool pattern_of_head(asked *a, int64_t n) {
  const attn_problem *p = a->problem;
  const bool varies = (p->blocks.type && p->blocks.head != 0) || (p->topk.type && p->topk.head != 0);
  return varies && move(&a->pattern.h, n);
}
/* Tensors are no matter of positions. */
static bool pattern_without_offset(asked *a, int64_t n) {
  const attn_problem *p = a->problem;
  if (p->term_count == 0 || p->query_documents.type || p->blocks.type || p->topk.type) return false;
  return (void)n, move(&a->pattern.i, a->at.i - offset_of(a));
}
static bool offset_of_first(asked *a, int64_t n) {
  return (void)n, a->problem->offsets && aligned(a, a->problem->offsets[0]);
}
static bool offset_sign(asked *a, int64_t n) { return (void)n, aligned(a, -offset_of(a)); }
static bool right_by(asked *a, int64_t n) {
  const int64_t right = a->problem->right, length = length_of(a);
  if (right == ATTN_UNLIMITED) return false;
  if (right + n >= 0) return sees(a, a->problem->left, right + n, offset_of(a), length);
  /* Ends before the query itself. */
  const int64_t end = a->at.i + offset_of(a) + right + n + 1;
  if (end >= a->keys.end) return false;
  a->keys.end = end > a->keys.first ? end : a->keys.first;
  return true;
}
static bool left_by(asked *a, int64_t n) {
  const int64_t left = a->problem->left;
  if (left == ATTN_UNLIMITED) return false;
  if (left + n >= 0) return sees(a, left + n, a->problem->right, offset_of(a), length_of(a));
  if (a->keys.first >= a->keys.end) return false;
  a->keys.first++;
  return true;
}
static bool both_by(asked *a, int64_t n) {
  if (a->problem->left == ATTN_UNLIMITED || a->problem->right == ATTN_UNLIMITED) return false;
  return aligned(a, offset_of(a) + n);
}
static bool no_right(asked *a, int64_t n) {
  return (void)n, a->problem->right != ATTN_UNLIMITED &&
                      sees(a, a->problem->left, ATTN_UNLIMITED, offset_of(a), length_of(a));
}
static bool no_left(asked *a, int64_t n) {
  return (void)n, a->problem->left != ATTN_UNLIMITED &&
                      sees(a, ATTN_UNLIMITED, a->problem->right, offset_of(a), length_of(a));
}
static bool no_band(asked *a, int64_t n) {
  return (void)n, is_limited(a) && sees(a, ATTN_UNLIMITED, ATTN_UNLIMITED, 0, length_of(a));
}
static bool no_lengths(asked *a, int64_t n) {
  return (void)n, a->problem->key_lengths &&
                      sees(a, a->problem->left, a->problem->right, offset_of(a), a->problem->key_length);
}
static bool length_by(asked *a, int64_t n) {
  const int64_t length = length_of(a) + n;
  if (!a->problem->key_lengths || length < 0 || length > a->problem->key_length) return false;
  return sees(a, a->problem->left, a->problem->right, offset_of(a), length);
}
static bool of_first(asked *a, int64_t offset) {
  if (!a->problem->key_lengths) return false;
  return sees(a, a->problem->left, a->problem->right, offset, a->problem->key_lengths[0]);
}
static bool length_of_first(asked *a, int64_t n) { return (void)n, of_first(a, offset_of(a)); }
static bool both_of_first(asked *a, int64_t n) {
  return (void)n, a->problem->offsets && of_first(a, a->problem->offsets[0]);
}

/* ---- heads and entries ---- */

static bool kv_head(asked *a, int64_t head) {
  const bool changes = a->key.h != head;
  a->key.h = a->value.h = head;
  return changes;
}
static bool kv_modulo(asked *a, int64_t n) { return (void)n, kv_head(a, a->at.h % a->problem->kv_heads); }
static bool kv_other(asked *a, int64_t n) {
  return n < a->problem->kv_heads && kv_head(a, (a->key.h + n) % a->problem->kv_heads);
}
static bool query_of_head(asked *a, int64_t n) {
  return n < a->problem->query_heads && move(&a->query.h, (a->at.h + n) % a->problem->query_heads);
}
static bool key_of_head(asked *a, int64_t n) {
  return n < a->problem->kv_heads && move(&a->key.h, (a->key.h + n) % a->problem->kv_heads);
}
static bool value_of_head(asked *a, int64_t n) {
  return n < a->problem->kv_heads && move(&a->value.h, (a->value.h + n) % a->problem->kv_heads);
}
static bool keys_of_entry(asked *a, int64_t n) { return (void)n, move(&a->key.b, 0); }
static bool values_of_entry(asked *a, int64_t n) { return (void)n, move(&a->value.b, 0); }
static bool both_of_entry(asked *a, int64_t n) {
  const bool keys = keys_of_entry(a, n), values = values_of_entry(a, n);
  return keys || values;
}

/* ---- keys that count too seldom or too often ---- */

static bool count(asked *a, int64_t first, int64_t end, double in_sum, double in_values) {
  a->counted = (attn_range){first < a->keys.first ? a->keys.first : first, end};
  a->counted_in_sum = in_sum;
  a->counted_in_values = in_values;
  return a->counted.first < a->counted.end;
}
static bool last_left_out(asked *a, int64_t n) { return count(a, a->keys.end - n, a->keys.end, 0, 0); }
static bool first_left_out(asked *a, int64_t n) { return count(a, a->keys.first, a->keys.first + n, 0, 0); }
static bool last_twice(asked *a, int64_t n) { return count(a, a->keys.end - n, a->keys.end, 2, 2); }
static bool first_twice(asked *a, int64_t n) { return count(a, a->keys.first, a->keys.first + n, 2, 2); }
static bool last_value_left_out(asked *a, int64_t n) { return count(a, a->keys.end - n, a->keys.end, 1, 0); }
static bool last_value_twice(asked *a, int64_t n) { return count(a, a->keys.end - n, a->keys.end, 1, 2); }
static bool last_weight_left_out(asked *a, int64_t n) { return count(a, a->keys.end - n, a->keys.end, 0, 1); }
static bool tail_left_out(asked *a, int64_t n) { return count(a, a->keys.end / n * n, a->keys.end, 0, 0); }
static bool tail_twice(asked *a, int64_t n) { return count(a, a->keys.end / n * n, a->keys.end, 2, 2); }
static bool last_tile_left_out(asked *a, int64_t n) {
  return count(a, (a->keys.end - 1) / n * n, a->keys.end, 0, 0);
}
static bool first_tile_twice(asked *a, int64_t n) {
  return a->keys.end > n && count(a, a->keys.first, a->keys.first / n * n + n, 2, 2);
}
static bool only_first_tile(asked *a, int64_t n) {
  return count(a, a->keys.first / n * n + n, a->keys.end, 0, 0);
}
static bool only_last_tile(asked *a, int64_t n) {
  return a->keys.end > n && count(a, a->keys.first, (a->keys.end - 1) / n * n, 0, 0);
}
static bool padding_counts(asked *a, int64_t n) {
  const int64_t rest = a->keys.end % n;
  a->more_zero_keys = rest ? (double)(n - rest) : 0;
  return rest != 0;
}
static bool window_of_tiles(asked *a, int64_t n) {
  const attn_range before = a->keys;
  if (before.first >= before.end || !is_limited(a)) return false;
  a->keys.first = before.first / n * n;
  a->keys.end = (before.end + n - 1) / n * n;
  if (a->keys.end > length_of(a)) a->keys.end = length_of(a);
  return a->keys.first != before.first || a->keys.end != before.end;
}

/* The ends of what the band lets a row see, whether it sees anything or not. */
static attn_range ends_of(const asked *a) {
  const attn_problem *p = a->problem;
  const int64_t centre = a->at.i + offset_of(a), length = length_of(a);
  attn_range ends = {0, length};
  if (p->left != ATTN_UNLIMITED && centre > p->left) ends.first = centre - p->left;
  if (p->right != ATTN_UNLIMITED && centre + p->right + 1 < length) ends.end = centre + p->right + 1;
  return ends;
}
static bool sees_between(asked *a, int64_t first, int64_t end) {
  const attn_range before = a->keys;
  a->keys = first < end ? (attn_range){first, end} : (attn_range){0, 0};
  return a->keys.first != before.first || a->keys.end != before.end;
}
static bool left_of_tiles(asked *a, int64_t n) {
  const attn_range ends = ends_of(a);
  return a->problem->left != ATTN_UNLIMITED && sees_between(a, ends.first / n * n, ends.end);
}
static bool right_of_tiles(asked *a, int64_t n) {
  const attn_range ends = ends_of(a);
  const int64_t end = ends.end > 0 ? (ends.end + n - 1) / n * n : 0;
  return a->problem->right != ATTN_UNLIMITED &&
         sees_between(a, ends.first, end < length_of(a) ? end : length_of(a));
}
static bool as_row(asked *a, int64_t i) {
  if (!is_limited(a)) return false;
  const attn_range range =
      hint_band(a->problem, (row_place){a->at.b, a->at.h,
                                        i < a->problem->query_length ? i : a->problem->query_length - 1});
  return sees_between(a, range.first, range.end);
}
static bool as_first_of_tile(asked *a, int64_t n) { return as_row(a, a->at.i / n * n); }
static bool as_last_of_tile(asked *a, int64_t n) { return as_row(a, a->at.i / n * n + n - 1); }

/* ---- softmax, sums and what is left ---- */

static bool not_normalised(asked *a, int64_t n) { return (void)n, a->normalised = false, true; }
static bool weights_not_normalised(asked *a, int64_t n) {
  return (void)n, a->weights_normalised = false, true;
}
static bool output_not_rescaled(asked *a, int64_t n) { return a->tile = n, a->output_not_rescaled = true; }
static bool sum_not_rescaled(asked *a, int64_t n) { return a->tile = n, a->sum_not_rescaled = true; }
static bool nothing_rescaled(asked *a, int64_t n) {
  return a->tile = n, a->output_not_rescaled = a->sum_not_rescaled = true;
}
static bool maximum_from(asked *a, int64_t n) { return set(&a->lowest_maximum, -pow(10, (double)n)); }
static bool maximum_from_0(asked *a, int64_t n) { return (void)n, a->lowest_maximum = 0, true; }
static bool epsilon_in_sum(asked *a, int64_t n) { return set(&a->more_in_sum, pow(10, (double)-n)); }
static bool no_epsilon(asked *a, int64_t n) { return (void)n, set(&a->epsilon, 0); }
static bool lse_base_2(asked *a, int64_t n) { return (void)n, set(&a->lse_factor, log2_e); }
static bool lse_times_ln_2(asked *a, int64_t n) { return (void)n, set(&a->lse_factor, 1 / log2_e); }
static bool lse_without_maximum(asked *a, int64_t n) { return (void)n, a->lse_without_maximum = true; }
static bool hidden_times_zero(asked *a, int64_t n) {
  bool hides = false;
  for (int64_t j = 0; j < a->problem->key_length && !hides; j++) hides = !hint_sees(a, j);
  return (void)n, a->hidden_times_zero = hides;
}
static bool empty_is(asked *a, int64_t n) { return a->empty = (empty_use)n, true; }
static bool phi_is(asked *a, int64_t n) { return a->phi = (phi_use)n, true; }
static bool features_by(asked *a, int64_t n) {
  const int64_t whole = a->problem->head_dim / n * n;
  return move(&a->features, whole < a->problem->head_dim ? whole : a->problem->head_dim - 1);
}
static bool features_as_values(asked *a, int64_t n) {
  return (void)n, a->problem->value_dim < a->problem->head_dim && move(&a->features, a->problem->value_dim);
}
static bool row_beside(asked *a, int64_t n) {
  const int64_t i = a->at.i + n;
  return i >= 0 && i < a->problem->query_length && move(&a->query.i, i);
}

enum { SOFTMAX = 1 << ATTN_SOFTMAX, LINEAR = 1 << ATTN_LINEAR, BOTH = SOFTMAX | LINEAR };
#define ONCE {0}, 1
#define WITH(...) {__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define TILES WITH(512, 256, 128, 64, 32, 16, 8, 4, 2)

const mistake hint_mistakes[] = {
    {"hidden", "values of hidden keys are multiplied by 0, which lets their NaN and infinities through",
     SOFTMAX, ONCE, hidden_times_zero},
    {"empty", "a row that sees no key is NaN (0/0, or -inf minus -inf) where it should be zeros", BOTH,
     WITH(EMPTY_NAN), empty_is},
    {"empty",
     "a row that sees no key is the mean of the values where it should be zeros: keys are hidden by a large "
     "number",
     SOFTMAX, WITH(EMPTY_MEAN), empty_is},
    {"empty",
     "a row that sees no key is the softmax of all where it should be zeros: keys are hidden by a number "
     "that all scores share",
     SOFTMAX, WITH(EMPTY_SOFTMAX), empty_is},
    {"empty", "the log-sum-exp of a row that sees no key is 0: it should be -inf, or the sink", SOFTMAX,
     WITH(EMPTY_LSE_0), empty_is},
    {"empty", "the log-sum-exp of a row that sees no key is +inf: it should be -inf, or the sink", SOFTMAX,
     WITH(EMPTY_LSE_INFINITE), empty_is},
    {"heads", "query head h reads key/value head h % Hkv: it should read h / (H / Hkv)", BOTH, ONCE,
     kv_modulo},
    {"heads", "another key/value head is read, %lld on from the right one", BOTH, WITH(1, 2, 3, 4, 5, 6, 7),
     kv_other},
    {"heads", "the keys are those of another head, %lld on", BOTH, WITH(1, 2, 3), key_of_head},
    {"heads", "the values are those of another head, %lld on", BOTH, WITH(1, 2, 3), value_of_head},
    {"heads", "the queries are those of another head, %lld on", BOTH, WITH(1, 2, 3, 4, 5, 6, 7),
     query_of_head},
    {"heads", "every batch entry reads keys and values of the first", BOTH, ONCE, both_of_entry},
    {"heads", "every batch entry reads the keys of the first", BOTH, ONCE, keys_of_entry},
    {"heads", "every batch entry reads the values of the first", BOTH, ONCE, values_of_entry},

    {"bias", "the bias is ignored", SOFTMAX, ONCE, no_bias},
    {"bias", "the bias of head %lld is taken for every head", SOFTMAX, WITH(0), bias_of_head},
    {"bias", "the bias of the first row is taken for every row", SOFTMAX, ONCE, bias_of_row},
    {"bias", "the bias of the first batch entry is taken for every entry", SOFTMAX, ONCE, bias_of_entry},
    {"bias", "the bias is added to scores in base 2 without its factor log2(e)", SOFTMAX, ONCE,
     bias_in_base_2},
    {"bias", "the bias has the factor log2(e) too often", SOFTMAX, ONCE, bias_twice_in_base_2},
    {"bias", "the bias is added before the scale is applied", SOFTMAX, ONCE, bias_scaled},
    {"bias", "the bias is subtracted", SOFTMAX, ONCE, bias_subtracted},
    {"bias", "a bias of -inf is taken as -%lld: a row of such keys alone is not empty", SOFTMAX,
     WITH(10000, 65504, 1000000000), bias_finite},
    {"softcap", "the softcap comes after the bias: it should come before", SOFTMAX, ONCE, softcap_last},
    {"softcap", "the softcap is ignored", SOFTMAX, ONCE, no_softcap},
    {"softcap", "the score is divided by twice the softcap inside tanh", SOFTMAX, ONCE, softcap_of_half},
    {"softcap", "tanh is not multiplied by the softcap", SOFTMAX, ONCE, softcap_not_given_back},
    {"softcap", "the score is not divided by the softcap inside tanh", SOFTMAX, ONCE, softcap_not_divided},
    {"sink", "the sinks are ignored", SOFTMAX, ONCE, no_sink},
    {"sink", "the sink does not join the sum that the output is divided by", SOFTMAX, ONCE, sink_not_in_sum},
    {"sink", "the sink does not join the log-sum-exp", SOFTMAX, ONCE, sink_not_in_lse},
    {"sink", "every head has the sink of head %lld", SOFTMAX, WITH(0), sink_of_head},
    {"sink", "the sink joins scores in base 2 without its factor log2(e)", SOFTMAX, ONCE, sink_in_base_2},
    {"sink", "the sink has the factor log2(e) too often", SOFTMAX, ONCE, sink_twice_in_base_2},
    {"sink", "where the sink is larger than every score, the output is not rescaled to it", SOFTMAX, ONCE,
     sink_leaves_output},
    {"sink", "the sink is multiplied by the scale", SOFTMAX, ONCE, sink_scaled},
    {"mask", "the mask is ignored", SOFTMAX, ONCE, no_mask},
    {"mask", "the mask is inverted: 1 means may be seen", SOFTMAX, ONCE, mask_inverted},
    {"mask", "the mask is applied after the softmax: hidden keys join the sum", SOFTMAX, ONCE, mask_after},
    {"mask", "the mask of head %lld is taken for every head", SOFTMAX, WITH(0), mask_of_head},
    {"mask", "the mask of the first row is taken for every row", SOFTMAX, ONCE, mask_of_row},
    {"mask", "the mask of the first batch entry is taken for every entry", SOFTMAX, ONCE, mask_of_entry},

    {"pattern", "the pattern is ignored: every key of the band is seen", BOTH, ONCE, no_pattern},
    {"pattern", "the pattern of head %lld is taken for every head", BOTH, WITH(0), pattern_of_head},
    {"pattern", "the pattern counts positions from i, and not from i + offset", BOTH, ONCE,
     pattern_without_offset},
    {"lengths", "the key lengths are ignored", BOTH, ONCE, no_lengths},
    {"lengths", "the key length is off by %lld", BOTH, WITH(1, -1), length_by},
    {"lengths", "the key length of the first batch entry is taken for every entry", BOTH, ONCE,
     length_of_first},
    {"lengths", "offset and key length of the first batch entry are taken for every entry", BOTH, ONCE,
     both_of_first},
    {"alignment", "the diagonal is aligned top left (offset 0)", BOTH, ONCE, top_left},
    {"alignment", "the offset of the first batch entry is taken for every entry", BOTH, ONCE,
     offset_of_first},
    {"alignment", "the diagonal is aligned bottom right (offset Tk - Tq)", BOTH, ONCE, bottom_right},
    {"alignment", "the diagonal is aligned bottom right by the key lengths", BOTH, ONCE,
     bottom_right_of_length},
    {"alignment", "the offset has the other sign", BOTH, ONCE, offset_sign},
    {"band", "the right end of the band is off by %lld", BOTH, WITH(1, -1), right_by},
    {"band", "the left end of the band is off by %lld: positive sees more", BOTH, WITH(1, -1), left_by},
    {"band", "the window is shifted by %lld", BOTH, WITH(1, -1), both_by},
    {"band", "the band is ignored: every key is seen", BOTH, ONCE, no_band},
    {"band", "the right end of the band is ignored: later keys are seen", BOTH, ONCE, no_right},
    {"band", "the left end of the band is ignored: earlier keys are seen", BOTH, ONCE, no_left},
    {"band", "the band is cut to whole tiles of %lld keys, and keys at its ends are not hidden", BOTH, TILES,
     window_of_tiles},
    {"band", "the left end of the band is cut to whole tiles of %lld keys, and what is before it not hidden",
     BOTH, TILES, left_of_tiles},
    {"band", "the right end of the band is cut to whole tiles of %lld keys, and what is behind it not hidden",
     BOTH, TILES, right_of_tiles},
    {"band", "all rows of a tile of %lld queries see what its first one sees", BOTH, TILES, as_first_of_tile},
    {"band", "all rows of a tile of %lld queries see what its last one sees", BOTH, TILES, as_last_of_tile},

    {"scale", "the scores are not scaled", SOFTMAX, ONCE, no_scale},
    {"scale", "the sign of the scale is lost", SOFTMAX, ONCE, scale_sign},
    {"scale", "the scale is applied twice", SOFTMAX, ONCE, scale_twice},
    {"scale", "the scale is 1/D", SOFTMAX, ONCE, scale_1_over_d},
    {"scale", "the scale is 1/sqrt(D), and not the problem's", SOFTMAX, ONCE, scale_by_d},
    {"scale", "the scale is 1/sqrt(Dv)", SOFTMAX, ONCE, scale_by_dv},
    {"scale", "scores are divided by the scale", SOFTMAX, ONCE, scale_inverse},
    {"scale", "exponentials are in base 2, and scores lack the factor log2(e)", SOFTMAX, ONCE, base_2},
    {"scale", "scores have the factor log2(e), and exponentials are in base e", SOFTMAX, ONCE, base_2_twice},
    {"features", "features of queries and keys behind whole vectors of %lld are left out of the scores", BOTH,
     WITH(1, 2, 4, 8, 16, 32), features_by},
    {"features", "scores are summed over Dv features in place of D", BOTH, ONCE, features_as_values},

    {"lse", "the log-sum-exp is in base 2", SOFTMAX, ONCE, lse_base_2},
    {"lse", "the log-sum-exp has the factor ln(2) too often", SOFTMAX, ONCE, lse_times_ln_2},
    {"lse", "the log-sum-exp lacks the row's maximum", SOFTMAX, ONCE, lse_without_maximum},
    {"sum", "the output is not divided by the sum of the weights", BOTH, ONCE, not_normalised},
    {"sum", "the attention weights are not divided by their sum", SOFTMAX, ONCE, weights_not_normalised},
    {"sum", "epsilon is not added to the sum", LINEAR, ONCE, no_epsilon},
    {"function", "phi is elu without + 1", LINEAR, WITH(PHI_ELU), phi_is},
    {"function", "phi takes elu's wrong branch", LINEAR, WITH(PHI_X_BELOW_0), phi_is},
    {"function", "phi is relu", LINEAR, WITH(PHI_RELU), phi_is},
    {"function", "phi is the identity", LINEAR, WITH(PHI_IDENTITY), phi_is},

    {"maximum", "the row's maximum begins at some -1e30 in place of -inf", SOFTMAX,
     WITH(30, 10, 9, 6, 5, 4, 3, 2, 1), maximum_from},
    {"maximum", "the row's maximum begins at 0 in place of -inf, as that of padding is", SOFTMAX, ONCE,
     maximum_from_0},
    {"keys", "the last visible key is left out", BOTH, WITH(1), last_left_out},
    {"keys", "the last visible key counts twice", BOTH, WITH(1), last_twice},
    {"keys", "the first visible key is left out", BOTH, WITH(1), first_left_out},
    {"keys", "the first visible key counts twice", BOTH, WITH(1), first_twice},
    {"keys", "the value of the last visible key is left out, not its weight in the sum", BOTH, WITH(1),
     last_value_left_out},
    {"keys", "the value of the last visible key counts twice, its weight in the sum once", BOTH, WITH(1),
     last_value_twice},
    {"keys", "the weight of the last visible key is left out of the sum", BOTH, WITH(1),
     last_weight_left_out},
    {"keys", "keys behind the last whole tile of %lld are left out", BOTH, TILES, tail_left_out},
    {"keys", "keys behind the last whole tile of %lld count twice", BOTH, TILES, tail_twice},
    {"keys", "the last tile of %lld keys is left out", BOTH, TILES, last_tile_left_out},
    {"keys", "the first tile of %lld keys counts twice", BOTH, TILES, first_tile_twice},
    {"keys", "only the first tile of %lld keys counts", BOTH, TILES, only_first_tile},
    {"keys", "only the last tile of %lld keys counts", BOTH, TILES, only_last_tile},
    {"keys", "padding up to whole tiles of %lld counts as keys of score 0", BOTH, TILES, padding_counts},
    {"maximum", "the sum is not rescaled when the maximum rises from one tile of %lld keys to the next",
     SOFTMAX, TILES, sum_not_rescaled},
    {"maximum", "the output is not rescaled when the maximum rises from one tile of %lld keys to the next",
     SOFTMAX, TILES, output_not_rescaled},
    {"maximum",
     "neither sum nor output is rescaled when the maximum rises from one tile of %lld keys to the next",
     SOFTMAX, TILES, nothing_rescaled},
    {"sum", "1e-%lld is added to the sum of the weights", SOFTMAX, WITH(3, 4, 5, 6, 7, 8, 9, 10),
     epsilon_in_sum},
    {"rows", "the query %lld rows on is taken", BOTH, WITH(1, -1), row_beside},
};

const size_t hint_mistake_count = sizeof hint_mistakes / sizeof *hint_mistakes;
