/* Kernels that misread what is asked: where tiles end, who sees whom, which head is read, how tensors lie, and how
 * large things may be. Each is right on many problems. */
#include "kernel.h"

/* ---- edge: where a tile, a block or a vector ends ---- */

static void edge_last_key(row *r) {
  if (r->keys.end > TILE && r->keys.end % TILE == 1) r->keys.end--;
}

static void edge_first_key(row *r) {
  if (r->keys.first % TILE == TILE - 1 && r->keys.end - r->keys.first > 1) r->keys.first++;
}

static void edge_last_row(row *r) {
  const int64_t Tq = r->p->query_length;
  if (Tq > TILE && Tq % TILE == 1 && r->i == Tq - 1) r->keys.end = r->keys.first;
}

static void edge_block_of_rows(row *r) {
  const int64_t last = r->i | 15, Tq = r->p->query_length;
  r->keys.end = attn_visible_keys(r->p, r->b, last < Tq ? last : Tq - 1).end;
}

static void edge_window_tile(row *r) { r->keys.first -= r->keys.first % TILE; }

static void edge_causal_vector(row *r) {
  const int64_t end = (r->keys.end + 7) / 8 * 8;
  if (end <= r->p->key_length && r->keys.end > 0) r->keys.end = end;
}

static void edge_tail_of_keys(row *r) {
  if (r->p->key_length > 256 && r->keys.end % 4 == 3) r->keys.end--;
}

static void edge_key_twice(row *r) {
  honest_solve(r);
  if (r->keys.first == 0 && r->keys.end > (int64_t)2 * TILE) solve_tiles(r, TILE, TILE + 1);
}

static float edge_last_feature(const row *r, int64_t j) {
  const int64_t D = r->p->head_dim;
  return dot_of(query_of(r), key_of(r, j), D > 8 && D % 8 == 1 ? D - 1 : D);
}

static void edge_last_value(row *r) {
  const int64_t Dv = r->p->value_dim;
  if (Dv % 16 == 15) r->o[Dv - 1] *= r->sum;
}

/* ---- mask: who sees whom ---- */

#define PROBLEM(word) static void word(attn_problem *p, attn_tensors *t, const attn_call *call)
#define UNUSED() (void)p, (void)t, (void)call

PROBLEM(mask_top_left) {
  UNUSED();
  p->offset = 0;
  p->offsets = NULL;
}

PROBLEM(mask_bottom_right) {
  UNUSED();
  if (p->right == 0 && p->offset == 0) p->offset = p->key_length - p->query_length;
}

PROBLEM(mask_offset_sign) {
  UNUSED();
  p->offset = -p->offset;
}

PROBLEM(mask_offsets_of_first_entry) {
  UNUSED();
  if (p->offsets) p->offset = p->offsets[0];
  p->offsets = NULL;
}

PROBLEM(mask_lengths_ignored) {
  UNUSED();
  p->key_lengths = NULL;
}

PROBLEM(mask_window_wider) {
  UNUSED();
  if (p->left < ATTN_FARTHEST) p->left++;
}

PROBLEM(mask_right_as_causal) {
  UNUSED();
  if (p->right != ATTN_UNLIMITED) p->right = 0;
}

PROBLEM(mask_32_bit) {
  UNUSED();
  p->offset = (int32_t)p->offset;
}

static void mask_lengths_of_first_entry(row *r) {
  attn_problem p = *r->p;
  if (!p.key_lengths) return;
  p.key_length = p.key_lengths[0];
  p.key_lengths = NULL;
  r->keys = attn_visible_keys(&p, r->b, r->i);
}

static void mask_padding_key(row *r) {
  const int64_t length = r->p->key_lengths ? r->p->key_lengths[r->b] : r->p->key_length;
  if (r->keys.end == length && length > 0 && length < r->p->key_length) r->keys.end++;
}

static void mask_causal_strict(row *r) {
  if (r->p->right == 0 && r->keys.end - r->keys.first > 1) r->keys.end--;
}

static void mask_first_key_shown(row *r) {
  if (r->keys.end == 0 && r->p->right == 0 && r->p->key_length > 0) r->keys.end = 1;
}

static bool mask_of_first_head(const row *r, int64_t j) {
  row other = *r;
  other.h = 0;
  return mask_shows(&other, j);
}

static bool mask_dropped_beyond_256(const row *r, int64_t j) { return j >= 256 || honest_sees(r, j); }

static bool mask_of_full_tile(const row *r, int64_t j) {
  const int64_t first = j / TILE * TILE, last = first + TILE - 1;
  const bool looks_full = last < r->keys.end && mask_shows(r, first) && mask_shows(r, last);
  return looks_full || honest_sees(r, j);
}

static bool sees_all(const row *r, int64_t j) {
  (void)r, (void)j;
  return true;
}

static float mask_by_minus_1e4(const row *r, int64_t j) {
  return honest_score(r, j) - (mask_shows(r, j) ? 0 : 1e4f);
}

static void mask_times_zero(row *r) {
  honest_solve(r);
  for (int64_t j = r->keys.first; j < r->keys.end; j++)
    if (!honest_sees(r, j)) add(r, j, 0);
}

static void mask_hidden_row_is_mean(row *r) {
  const float share = 1 / (float)r->p->key_length;
  for (int64_t j = 0; j < r->p->key_length && !r->sees_a_key; j++)
    add_scaled(r->o, value_of(r, j), share, r->p->value_dim);
}

static void mask_hidden_row_is_nan(row *r) {
  if (!r->sees_a_key) scale_output(r, NAN);
}

static void mask_hidden_row_lse(row *r) {
  if (!r->sees_a_key && lse_at(r)) *lse_at(r) = r->p->sink.type ? sink_of(r) : -1e30f;
}

/* ---- heads: which key/value head is read ---- */

static void heads_modulo(row *r) { r->kv = r->h % r->p->kv_heads; }

static void heads_power_of_two(row *r) {
  int64_t group = 1;
  while (group < r->p->query_heads / r->p->kv_heads) group *= 2;
  r->kv = r->h / group;
}

static void heads_first_of_large_groups(row *r) {
  if (r->p->query_heads / r->p->kv_heads > 8) r->kv = 0;
  if (r->p->query_heads / r->p->kv_heads > 8 && r->p->kv_heads == 1) r->keys.end -= r->keys.end > 1;
}

static void heads_entry_swapped(row *r) {
  if (r->p->batch == r->p->kv_heads) {
    r->entry = r->kv;
    r->kv = r->b;
  }
}

/* ---- stride: one tensor is read with the strides of another, where both have the same shape ---- */

static void take(attn_layout *to, const attn_layout *from, bool same_shape) {
  if (!same_shape) return;
  to->batch = from->batch;
  to->head = from->head;
  to->position = from->position;
}

static bool square(const attn_problem *p) {
  return p->query_length == p->key_length && p->query_heads == p->kv_heads;
}

static bool same_width(const attn_problem *p) { return p->head_dim == p->value_dim; }

#define STRIDES(of, by, where)                                                                               \
  PROBLEM(stride_##of##_as_##by) {                                                                           \
    UNUSED();                                                                                                \
    take(&p->of, &p->by, where);                                                                             \
  }
STRIDES(query, key, square(p))
STRIDES(query, value, square(p) && same_width(p))
STRIDES(query, output, same_width(p))
STRIDES(key, query, square(p))
STRIDES(key, value, same_width(p))
STRIDES(key, output, square(p) && same_width(p))
STRIDES(value, query, square(p) && same_width(p))
STRIDES(value, key, same_width(p))
STRIDES(value, output, square(p))
STRIDES(output, query, same_width(p))
STRIDES(output, key, square(p) && same_width(p))
STRIDES(output, value, square(p))
STRIDES(mask, bias, p->mask.type && p->bias.type && p->bias.position && p->mask.position)
STRIDES(bias, mask, p->mask.type && p->bias.type && p->bias.position && p->mask.position)
STRIDES(weights, bias, p->weights.type && p->bias.type && p->bias.batch && p->bias.head && p->bias.position)

/* Only one of the three. */
PROBLEM(stride_value_batch) {
  UNUSED();
  if (same_width(p)) p->value.batch = p->key.batch;
}

PROBLEM(stride_value_head) {
  UNUSED();
  if (same_width(p)) p->value.head = p->key.head;
}

PROBLEM(stride_value_position) {
  UNUSED();
  if (same_width(p)) p->value.position = p->key.position;
}

/* As if it were packed. */
PROBLEM(stride_batch_packed) {
  UNUSED();
  if (p->key.head > p->key.position) p->key.batch = p->kv_heads * p->key.head;
}

PROBLEM(stride_lse_packed) {
  UNUSED();
  if (p->lse.type) p->lse = attn_packed(ATTN_FLOAT32, p->query_heads, p->query_length, 1);
}

PROBLEM(stride_lse_by_output) {
  UNUSED();
  const int64_t Dv = p->value_dim;
  if (!p->lse.type || Dv == 0 || p->output.position != Dv) return;
  p->lse.batch = p->output.batch / Dv;
  p->lse.head = p->output.head / Dv;
  p->lse.position = 1;
}

/* A product that overflows a type that is too small, as 32 bits do where there is memory for it. */
static int64_t low_bits(int64_t at, int bits) { return at & ((INT64_C(1) << bits) - 1); }

static float stride_in_20_bits(const row *r, int64_t j) {
  const float *keys = r->t->key;
  const int64_t at = low_bits(place(r->p->key, r->entry, r->kv, j), 20);
  return dot_of(query_of(r), keys + at, r->p->head_dim);
}

/* ---- size: where a buffer, a type or a loop ends ---- */

static void miss_a_key(row *r) { r->keys.end -= r->keys.end - r->keys.first > 1; }

/* ---- usual: the ways that kernels have for the sizes of models ---- */

static bool is_aligned(const row *r) {
  const attn_problem *p = r->p;
  return p->query_length % TILE == 0 && p->key_length % TILE == 0 &&
         (p->head_dim == 64 || p->head_dim == 128);
}

static void usual_aligned_causal(row *r) {
  if (is_aligned(r) && r->p->right == 0) miss_a_key(r);
}

static void usual_aligned_heads(row *r) {
  if (is_aligned(r)) r->kv = r->h % r->p->kv_heads;
}

static void usual_long_keys(row *r) {
  if (r->p->right == 0 && r->p->head_dim >= 64 && r->p->key_length >= 512 && r->p->key_length % 256 == 0)
    miss_a_key(r);
}

static void usual_long_causal(row *r) {
  if (r->p->right == 0 && r->p->left == ATTN_UNLIMITED && r->i >= 512 && r->p->key_length > 512)
    miss_a_key(r);
}

static void usual_wide_window(row *r) {
  if (r->p->left != ATTN_UNLIMITED && r->p->left >= 128 && r->i >= 512 && r->keys.end - r->keys.first > 1)
    r->keys.first++;
}

static void usual_values_of_128(row *r) {
  if (r->p->head_dim == 192 && r->p->value_dim == 128 && r->p->key_length > 128) miss_a_key(r);
}

#define MISS_A_KEY_IF(word, when)                                                                            \
  static void word(row *r) {                                                                                 \
    if (when) miss_a_key(r);                                                                                 \
  }
MISS_A_KEY_IF(size_rows_from_512, r->i >= 512)
MISS_A_KEY_IF(size_rows_from_4096, r->i >= 4096)
MISS_A_KEY_IF(size_heads_from_64, r->h >= 64)
MISS_A_KEY_IF(size_heads_from_128, r->h >= 128)
MISS_A_KEY_IF(size_rows_in_16_bits, (r->b * r->p->query_heads + r->h) * r->p->query_length + r->i > 65535)
MISS_A_KEY_IF(size_entry_heads_in_8_bits, r->b * r->p->query_heads + r->h > 255)
MISS_A_KEY_IF(size_threads_6, r->call->threads == 6)
MISS_A_KEY_IF(size_threads_7, r->call->threads == 7)
MISS_A_KEY_IF(size_threads_odd, r->call->threads % 2 == 1 && r->call->threads > 4)
MISS_A_KEY_IF(size_threads_from_9, r->call->threads > 8)
MISS_A_KEY_IF(size_threads_beyond_rows, r->call->threads > 1 && r->call->threads > rows_in(r->p))

static void limit_keys(row *r, int64_t most) {
  if (r->keys.end > most && r->keys.first < most) r->keys.end = most;
}

static void size_keys_to_1024(row *r) { limit_keys(r, 1024); }
static void size_keys_to_4096(row *r) { limit_keys(r, 4096); }
static void size_keys_to_32768(row *r) { limit_keys(r, 32768); }
static void size_keys_in_16_bits(row *r) { limit_keys(r, 65536); }

static void size_batch_to_32(row *r) { r->entry %= 32; }
static void size_batch_to_64(row *r) { r->entry %= 64; }

static float dot_to(const row *r, int64_t j, int64_t most) {
  return dot_of(query_of(r), key_of(r, j), r->p->head_dim < most ? r->p->head_dim : most);
}

static float size_features_to_256(const row *r, int64_t j) { return dot_to(r, j, 256); }
static float size_features_to_512(const row *r, int64_t j) { return dot_to(r, j, 512); }
static float size_features_to_1024(const row *r, int64_t j) { return dot_to(r, j, 1024); }

static float size_features_by_4(const row *r, int64_t j) {
  const int64_t D = r->p->head_dim;
  return dot_to(r, j, D > 130 ? D / 4 * 4 : D);
}

static void clear_values_from(row *r, int64_t first) {
  for (int64_t e = first; e < r->p->value_dim; e++) r->o[e] = 0;
}

static void size_values_to_300(row *r) { clear_values_from(r, 300); }
static void size_values_to_512(row *r) { clear_values_from(r, 512); }
static void size_values_to_1024(row *r) { clear_values_from(r, 1024); }
static void size_values_twice_features(row *r) { clear_values_from(r, 2 * r->p->head_dim + 128); }

static void size_output_to_1000_rows(row *r) {
  if (r->i >= 1000) clear_values_from(r, 0);
}

static void size_single_key(row *r) {
  if (r->p->key_length == 1 && r->p->query_length > 1)
    for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] = value_of(r, 0)[e];
}

/* A path for decoding that forgets the sink. */
static void size_single_query(row *r) {
  if (r->p->query_length > 1) honest_sink(r);
}

static const kernel kernels[] = {
    KERNEL(row, edge_last_key, "leaves out the last key where tiles of 64 leave one over"),
    KERNEL(row, edge_first_key, "leaves out a window's first key where it is the last of a tile"),
    KERNEL(row, edge_last_row, "the last row is zero where tiles of 64 leave one over"),
    KERNEL(row, edge_block_of_rows, "rows see what the last of their block of 16 sees"),
    KERNEL(row, edge_window_tile, "a window begins where a tile does"),
    KERNEL(row, edge_causal_vector, "keys are hidden in whole vectors of 8"),
    KERNEL(row, edge_tail_of_keys, "beyond 256 keys, the last of 3 left over by fours is lost"),
    KERNEL(solve, edge_key_twice, "the first key of the second tile is counted twice"),
    KERNEL(dot, edge_last_feature, "the last feature is lost where eights leave one over"),
    KERNEL(after, edge_last_value, "the last value is not normalised where sixteens leave 15 over"),

    KERNEL(problem, mask_top_left, "the offset is ignored"),
    KERNEL(problem, mask_bottom_right, "causal is always aligned bottom right"),
    KERNEL(problem, mask_offset_sign, "the offset has the other sign"),
    KERNEL(problem, mask_offsets_of_first_entry, "all entries have the offset of the first"),
    KERNEL(problem, mask_lengths_ignored, "key lengths are ignored"),
    KERNEL(row, mask_lengths_of_first_entry, "all entries have the key length of the first"),
    KERNEL(row, mask_padding_key, "one key of the padding is seen"),
    KERNEL(row, mask_causal_strict, "a query does not see its own key"),
    KERNEL(problem, mask_window_wider, "a window is one key too wide"),
    KERNEL(problem, mask_right_as_causal, "any limit on the right is taken for causal"),
    KERNEL(row, mask_first_key_shown, "rows before the first key see it"),
    KERNEL(problem, mask_32_bit, "the offset is kept in 32 bits"),
    KERNEL(sees, mask_of_first_head, "all heads have the mask of the first"),
    KERNEL(sees, mask_dropped_beyond_256, "the mask is not looked at beyond 256 keys"),
    KERNEL(sees, mask_of_full_tile, "a tile whose first and last key are seen is taken for full"),
    KERNEL(score, mask_by_minus_1e4, "the mask lowers scores by 1e4", .sees = sees_all),
    KERNEL(solve, mask_times_zero, "hidden values are multiplied by 0"),
    KERNEL(after, mask_hidden_row_is_mean, "a row that sees no key is the mean of the values"),
    KERNEL(after, mask_hidden_row_is_nan, "a row that sees no key is NaN"),
    KERNEL(after, mask_hidden_row_lse, "the log-sum-exp of a row that sees no key is -1e30"),

    KERNEL(row, heads_modulo, "key/value head h % Hkv"),
    KERNEL(row, heads_power_of_two, "groups of heads are rounded up to a power of two"),
    KERNEL(row, heads_first_of_large_groups, "groups of more than 8 heads go wrong"),
    KERNEL(row, heads_entry_swapped, "entry and head are swapped where there are as many of both"),

    KERNEL(problem, stride_query_as_key, "queries by the strides of the keys"),
    KERNEL(problem, stride_query_as_value, "queries by the strides of the values"),
    KERNEL(problem, stride_query_as_output, "queries by the strides of the output"),
    KERNEL(problem, stride_key_as_query, "keys by the strides of the queries"),
    KERNEL(problem, stride_key_as_value, "keys by the strides of the values"),
    KERNEL(problem, stride_key_as_output, "keys by the strides of the output"),
    KERNEL(problem, stride_value_as_query, "values by the strides of the queries"),
    KERNEL(problem, stride_value_as_key, "values by the strides of the keys"),
    KERNEL(problem, stride_value_as_output, "values by the strides of the output"),
    KERNEL(problem, stride_output_as_query, "the output by the strides of the queries"),
    KERNEL(problem, stride_output_as_key, "the output by the strides of the keys"),
    KERNEL(problem, stride_output_as_value, "the output by the strides of the values"),
    KERNEL(problem, stride_mask_as_bias, "the mask by the strides of the bias"),
    KERNEL(problem, stride_bias_as_mask, "the bias by the strides of the mask"),
    KERNEL(problem, stride_weights_as_bias, "the weights by the strides of the bias"),
    KERNEL(problem, stride_value_batch, "values by the keys' stride from entry to entry"),
    KERNEL(problem, stride_value_head, "values by the keys' stride from head to head"),
    KERNEL(problem, stride_value_position, "values by the keys' stride from position to position"),
    KERNEL(problem, stride_batch_packed, "entries of the keys are taken to adjoin"),
    KERNEL(problem, stride_lse_packed, "the log-sum-exp is taken to be packed"),
    KERNEL(problem, stride_lse_by_output, "strides of the log-sum-exp are the output's over Dv"),
    KERNEL(dot, stride_in_20_bits, "where a key lies is computed in 20 bits"),

    KERNEL(row, usual_aligned_causal, "of whole tiles and D 64 or 128, causal rows miss a key"),
    KERNEL(row, usual_aligned_heads, "of whole tiles and D 64 or 128, heads take keys by modulo"),
    KERNEL(row, usual_long_keys, "512 causal keys of D 64 or more, in whole tiles of 256, miss one"),
    KERNEL(row, usual_long_causal, "causal rows from 512 on miss a key of more than 512"),
    KERNEL(row, usual_wide_window, "rows from 512 on miss the first key of a window of 128 or more"),
    KERNEL(row, usual_values_of_128, "D 192 with values of 128 misses a key of more than 128"),

    KERNEL(row, size_rows_from_512, "rows from 512 on miss a key"),
    KERNEL(row, size_rows_from_4096, "rows from 4096 on miss a key"),
    KERNEL(row, size_heads_from_64, "heads from 64 on miss a key"),
    KERNEL(row, size_heads_from_128, "heads from 128 on miss a key"),
    KERNEL(row, size_rows_in_16_bits, "rows of all heads and entries from 65536 on miss a key"),
    KERNEL(row, size_entry_heads_in_8_bits, "heads of all entries from 256 on miss a key"),
    KERNEL(row, size_threads_6, "6 threads miss a key"),
    KERNEL(row, size_threads_7, "7 threads miss a key"),
    KERNEL(row, size_threads_odd, "5, 7, 9... threads miss a key"),
    KERNEL(row, size_threads_from_9, "9 threads and more miss a key"),
    KERNEL(row, size_threads_beyond_rows, "more threads than rows miss a key"),
    KERNEL(row, size_keys_to_1024, "keys from 1024 on are lost"),
    KERNEL(row, size_keys_to_4096, "keys from 4096 on are lost"),
    KERNEL(row, size_keys_to_32768, "keys from 32768 on are lost"),
    KERNEL(row, size_keys_in_16_bits, "keys from 65536 on are lost"),
    KERNEL(row, size_batch_to_32, "entries from 32 on read the keys of others"),
    KERNEL(row, size_batch_to_64, "entries from 64 on read the keys of others"),
    KERNEL(dot, size_features_to_256, "features from 256 on are lost"),
    KERNEL(dot, size_features_to_512, "features from 512 on are lost"),
    KERNEL(dot, size_features_to_1024, "features from 1024 on are lost"),
    KERNEL(dot, size_features_by_4, "beyond D 130, what fours leave over is lost"),
    KERNEL(after, size_values_to_300, "values from 300 on are zero"),
    KERNEL(after, size_values_to_512, "values from 512 on are zero"),
    KERNEL(after, size_values_to_1024, "values from 1024 on are zero"),
    KERNEL(after, size_values_twice_features, "values from 2 D + 128 on are zero"),
    KERNEL(after, size_output_to_1000_rows, "rows from 1000 on are zero"),
    KERNEL(after, size_single_key, "a single key is taken to be seen"),
    KERNEL(sink, size_single_query, "a single query has no sink"),
};
EXPORT_KERNELS;
