/* Additive scores, sum_d w_d tanh(q_d + k_d), of floats: kinds.h includes this. With E = e^(2 (q + k)), tanh is 1 - 2
 * / (E + 1), and E = e^(2q) e^(2k) of two powers that are taken once for each query and each key, so that a feature
 * of a pair is a multiply-add and a quotient instead of an exponential. Four quotients are one: w_1 / t_1 + w_2 / t_2
 * = (w_1 t_2 + w_2 t_1) / (t_1 t_2), and again. t = E + 1 is held down to 2^31, where tanh is 1 in float32, and the
 * weights are at most 1 in size, so that neither line overflows.
 *
 * Powers of features beyond LARGEST_FEATURE are NaN, as those of NaN are, and so is then the score: which is computed
 * again, from the sum q + k. So which of the two ways a score takes follows from its own query and key, and never
 * from others in the tile. */

#define TWO_LOG2E 2.885390082f
#define LARGEST_FEATURE 21.5f /* twice this is 62 in base 2: products of two powers are normal numbers */

enum { ADDITIVE_KEYS = LANES == 16 ? 8 : 4 };

static void additive_powers(int64_t rows, int64_t width, const float *x, float *to, int64_t stride) {
  const vec factor = broadcast(&(float){TWO_LOG2E}), most = broadcast(&(float){LARGEST_FEATURE}),
            none = broadcast(&(float){NAN});
  const unsigned mode = flush_denormals();
  for (int64_t r = 0; r < rows; r++)
    for (int64_t d = 0; d < width; d += LANES) {
      const vec feature = load(x + r * stride + d);
      store(to + r * stride + d,
            select_less(absolute(feature), most, exp2_vec(multiply(feature, factor)), none));
    }
  restore_denormals(mode);
}

/* The terms of four features, as one fraction that is added to sum. */
INLINE vec add_four(const vec query[4], const vec weight[4], const float *key, vec one, vec most, vec sum) {
  vec t[4];
  for (int n = 0; n < 4; n++) t[n] = minimum(most, fused_multiply_add(query[n], broadcast(key + n), one));
  const vec low = fused_multiply_add(weight[1], t[0], multiply(weight[0], t[1])),
            below_low = multiply(t[0], t[1]);
  const vec high = fused_multiply_add(weight[3], t[2], multiply(weight[2], t[3])),
            below_high = multiply(t[2], t[3]);
  return add_quotient(fused_multiply_add(high, below_low, multiply(low, below_high)),
                      multiply(below_low, below_high), sum);
}

/* Of one vector of rows; returns a vector that is NaN where a score is. */
INLINE vec additive_group(const int keys, tile_size size, const tile_additive *of, int64_t row,
                          const float *key, tile_target scores) {
  const vec one = broadcast(&(float){1.0f}), most = broadcast(&(float){0x1p31f});
  vec sum[ADDITIVE_KEYS], odd = zero();
  for (int g = 0; g < keys; g++) sum[g] = load(of->sum + row);
  for (int64_t d = 0; d < size.features; d += 4) {
    vec query[4], weight[4];
    for (int n = 0; n < 4; n++) {
      query[n] = load(of->powers + (d + n) * size.rows + row);
      weight[n] = load(of->weights + (d + n) * size.rows + row);
    }
    for (int g = 0; g < keys; g++)
      sum[g] = add_four(query, weight, key + g * of->stride + d, one, most, sum[g]);
  }
  const vec factor = load(of->factor + row);
  for (int g = 0; g < keys; g++) {
    odd = add(odd, subtract(sum[g], sum[g]));
    store(scores.x + g * scores.stride + row, multiply(sum[g], factor));
  }
  return odd;
}

/* x = tanh(x) */
INLINE void tanh_each(const int n, vec x[]) {
  const vec one = broadcast(&(float){1.0f}), minus_two = broadcast(&(float){-2.0f});
  const vec factor = broadcast(&(float){TWO_LOG2E}), most = broadcast(&(float){64.0f});
  for (int i = 0; i < n; i++) x[i] = minimum(most, multiply(x[i], factor));
  exp2_each(n, x);
  for (int i = 0; i < n; i++) x[i] = add_quotient(minus_two, add(x[i], one), one);
}

/* Those of a vector's scores that are NaN, as they are where numbers are not: weights are -2 times what they were. */
static void additive_again(tile_size size, const tile_additive *of, int64_t row, const float *key,
                           float *score) {
  const vec factor = multiply(broadcast(&(float){-0.5f}), load(of->factor + row));
  vec sum = zero();
  for (int64_t d = 0; d < of->depth; d++) {
    vec x = add(load(of->queries + d * size.rows + row), broadcast(key + d));
    tanh_each(1, &x);
    sum = fused_multiply_add(load(of->weights + d * size.rows + row), x, sum);
  }
  float again[LANES];
  store(again, multiply(sum, factor));
  for (int l = 0; l < LANES; l++)
    if (isnan(score[l])) score[l] = again[l];
}

INLINE bool any_nan(vec x) { return isnan(sum_of_lanes(x)); }

static void additive_scores(tile_size size, const tile_additive *of, const float *keys, tile_target scores) {
  const unsigned mode = flush_denormals();
  const float *key = keys + of->key_powers;
  for (int64_t row = 0; row < size.rows; row += LANES) {
    vec odd = zero();
    int64_t j = 0;
    for (; j + ADDITIVE_KEYS <= size.keys; j += ADDITIVE_KEYS)
      odd = add(odd, additive_group(ADDITIVE_KEYS, size, of, row, key + j * of->stride,
                                    (tile_target){scores.x + j * scores.stride, scores.stride}));
    for (; j < size.keys; j++)
      odd = add(odd, additive_group(1, size, of, row, key + j * of->stride,
                                    (tile_target){scores.x + j * scores.stride, scores.stride}));
    if (!any_nan(odd)) continue;
    for (j = 0; j < size.keys; j++)
      if (any_nan(load(scores.x + j * scores.stride + row)))
        additive_again(size, of, row, keys + j * of->stride, scores.x + j * scores.stride + row);
  }
  restore_denormals(mode);
}

/* A vector of features of LANES keys, of which some may be the last again. */
INLINE void few_additive_features(const float *const key[LANES], int64_t d, int count, vec query, vec weight,
                                  vec sum[LANES]) {
  enum { TOGETHER = 4 };
  for (int l = 0; l < LANES; l += TOGETHER) {
    vec x[TOGETHER];
    for (int n = 0; n < TOGETHER; n++)
      x[n] = add(query, count < LANES ? load_part(key[l + n] + d, count) : load(key[l + n] + d));
    tanh_each(TOGETHER, x);
    for (int n = 0; n < TOGETHER; n++) sum[l + n] = fused_multiply_add(weight, x[n], sum[l + n]);
  }
}

static void few_additive(tile_size size, tile_matrix query, tile_matrix weight, tile_rows keys,
                         tile_target scores) {
  const unsigned mode = flush_denormals();
  for (int64_t r = 0; r < size.rows; r++)
    for (int64_t j = 0; j < size.keys; j += LANES) {
      const float *key[LANES];
      vec sum[LANES];
      for (int l = 0; l < LANES; l++) {
        const int64_t at = j + l < size.keys ? j + l : size.keys - 1;
        key[l] = (const float *)keys.x + at * keys.stride;
        sum[l] = zero();
      }
      for (int64_t d = 0; d < size.features; d += LANES) {
        const vec q = load(query.x + r * query.stride + d), w = load(weight.x + r * weight.stride + d);
        if (d + LANES <= size.features)
          few_additive_features(key, d, LANES, q, w, sum);
        else
          few_additive_features(key, d, (int)(size.features - d), q, w, sum);
      }
      float all[LANES];
      store(all, sums_of(sum));
      memcpy(scores.x + r * scores.stride + j, all,
             (size_t)(size.keys - j < LANES ? size.keys - j : LANES) * sizeof *all);
    }
  restore_denormals(mode);
}
