/* Kernels for elements of 16 bits: right ones that round their weights to them, as FlashAttention does, and wrong ones. */
#include <attention.h>
#include <elements.h>
#include <math.h>
#include <string.h>

typedef enum fault {
  NONE,
  NORMALISES_FIRST, /* right too: weights are divided by their sum, and then rounded */
  DROPS_LAST_KEY,
  DROPS_A_KEY, /* in the middle, as the next two */
  DOUBLES_A_KEY,
  DROPS_A_VALUE,    /* its weight is summed */
  LAST_VALUE_TWICE, /* instead of the one before */
  SWAPS_PAIRS,      /* the values of two neighbours */
  SUMS_ROUNDED,     /* the sum is of the rounded weights, and so is the log-sum-exp */
  SCALES_QUERY,     /* the scaled query is rounded */
  TRUNCATES_OUTPUT,
  TRUNCATES_WEIGHTS,
  ROUNDS_SCORES,
  ROUNDS_SUMS, /* the running output is kept in the type of the values */
  WEIGHS_TWICE /* weights are rounded, divided by their sum, and rounded again */
} fault;

static int64_t row_at(attn_layout layout, int64_t b, int64_t h, int64_t i) {
  return b * layout.batch + h * layout.head + i * layout.position;
}

static float rounded(attn_type type, float number) {
  uint16_t half[2];
  if (type == ATTN_FLOAT32) return number;
  attn_store(half, type, 0, number);
  return attn_load(half, type, 0);
}

static float truncated(attn_type type, float number) {
  const uint32_t dropped = type == ATTN_BFLOAT16 ? 0xffff : type == ATTN_FLOAT16 ? 0x1fff : 0;
  return attn_float_of_bits(attn_bits_of_float(number) & ~dropped);
}

static float score(const attn_problem *p, const attn_tensors *t, int64_t query, int64_t key, fault fault) {
  const float scale = (float)p->scale;
  float sum = 0;
  for (int64_t d = 0; d < p->head_dim; d++) {
    const float q = attn_load(t->query, p->query.type, query + d);
    sum += (fault == SCALES_QUERY ? rounded(p->query.type, scale * q) : q) *
           attn_load(t->key, p->key.type, key + d);
  }
  if (fault != SCALES_QUERY) sum *= scale;
  return fault == ROUNDS_SCORES ? rounded(p->query.type, sum) : sum;
}

static int64_t value_of(int64_t j, attn_range keys, fault fault) {
  if (fault == LAST_VALUE_TWICE && j == keys.end - 2) return j + 1;
  if (fault == SWAPS_PAIRS && (j ^ 1) >= keys.first && (j ^ 1) < keys.end) return j ^ 1;
  return j;
}

/* How often the key in the middle counts. */
static float times_of(fault fault) {
  return fault == DROPS_A_KEY ? 0.0f : fault == DOUBLES_A_KEY ? 2.0f : 1.0f;
}

static void solve_row(const attn_call *call, int64_t b, int64_t h, int64_t i, fault fault) {
  const attn_problem *p = call->problem;
  const attn_tensors *t = &call->tensors;
  const int64_t kv = h / (p->query_heads / p->kv_heads), output = row_at(p->output, b, h, i);
  const bool normalises = fault == NORMALISES_FIRST || fault == WEIGHS_TWICE;
  float *weights = call->workspace, *sums = weights + p->key_length, max = -INFINITY, sum = 0;
  attn_range keys = attn_visible_keys(p, b, i);
  const int64_t middle = keys.first + (keys.end - keys.first) * 3 / 7;
  if (fault == DROPS_LAST_KEY && keys.end - keys.first > 1) keys.end--;
  for (int64_t j = keys.first; j < keys.end; j++) {
    weights[j] = score(p, t, row_at(p->query, b, h, i), row_at(p->key, b, kv, j), fault);
    max = fmaxf(max, weights[j]);
  }
  for (int64_t j = keys.first; j < keys.end; j++) {
    const float exact = (j == middle ? times_of(fault) : 1) * expf(weights[j] - max);
    weights[j] = fault == TRUNCATES_WEIGHTS ? truncated(p->value.type, exact) : rounded(p->value.type, exact);
    sum += fault == SUMS_ROUNDED ? weights[j] : exact;
    if (fault == NORMALISES_FIRST) weights[j] = exact;
    if (fault == DROPS_A_VALUE && j == middle) weights[j] = 0;
  }
  for (int64_t e = 0; e < p->value_dim; e++) sums[e] = 0;
  for (int64_t j = keys.first; j < keys.end; j++) {
    const int64_t value = row_at(p->value, b, kv, value_of(j, keys, fault));
    const float weight = normalises ? rounded(p->value.type, weights[j] / sum) : weights[j];
    for (int64_t e = 0; e < p->value_dim; e++)
      sums[e] += weight * attn_load(t->value, p->value.type, value + e);
    for (int64_t e = 0; e < p->value_dim && fault == ROUNDS_SUMS && j % 64 == 63; e++)
      sums[e] = rounded(p->value.type, sums[e]);
  }
  for (int64_t e = 0; e < p->value_dim; e++) {
    float result = sum > 0 && !normalises ? sums[e] / sum : sums[e];
    if (fault == TRUNCATES_OUTPUT) result = truncated(p->output.type, result);
    attn_store(t->output, p->output.type, output + e, result);
  }
  if (t->lse) t->lse[row_at(p->lse, b, h, i)] = sum > 0 ? max + logf(sum) : -INFINITY;
}

static void solve(const attn_call *call, fault fault) {
  const attn_problem *p = call->problem;
  for (int64_t row = 0; row < p->batch * p->query_heads * p->query_length; row++)
    solve_row(call, row / p->query_length / p->query_heads, row / p->query_length % p->query_heads,
              row % p->query_length, fault);
}

static size_t workspace_size(const attn_call *call) {
  return (size_t)(call->problem->key_length + call->problem->value_dim) * sizeof(float);
}

#define KERNEL(word, fault) KERNEL_THAT_PROMISES(0, word, fault)
#define KERNEL_THAT_PROMISES(promises, word, fault)                                                          \
  static void run_##word(const attn_call *call) { solve(call, fault); }                                      \
  static const attn_variant word = {.name = #word,                                                           \
                                    .summary = "",                                                           \
                                    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_LSE,       \
                                    .types = 1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16 | 1u << ATTN_FLOAT16,  \
                                    .traits = (promises),                                                    \
                                    .time_exponent = 2,                                                      \
                                    .workspace_exponent = 1,                                                 \
                                    .workspace_size = workspace_size,                                        \
                                    .run = run_##word};
KERNEL(right, NONE)
KERNEL(normalises_first, NORMALISES_FIRST)
KERNEL(drops_last_key, DROPS_LAST_KEY)
KERNEL(drops_a_key, DROPS_A_KEY)
KERNEL(doubles_a_key, DOUBLES_A_KEY)
KERNEL(drops_a_value, DROPS_A_VALUE)
KERNEL(last_value_twice, LAST_VALUE_TWICE)
KERNEL(swaps_pairs, SWAPS_PAIRS)
KERNEL(sums_rounded, SUMS_ROUNDED)
KERNEL(scales_query, SCALES_QUERY)
KERNEL(truncates_output, TRUNCATES_OUTPUT)
KERNEL(truncates_weights, TRUNCATES_WEIGHTS)
KERNEL(rounds_scores, ROUNDS_SCORES)
KERNEL(rounds_sums, ROUNDS_SUMS)
KERNEL(weighs_twice, WEIGHS_TWICE)
KERNEL_THAT_PROMISES(ATTN_FLOAT32_WEIGHTS, rounds_and_denies_it, NONE)

static const attn_variant *const variants[] = {
    &right,         &normalises_first, &drops_last_key,   &drops_a_key,
    &doubles_a_key, &drops_a_value,    &last_value_twice, &swaps_pairs,
    &sums_rounded,  &scales_query,     &truncates_output, &truncates_weights,
    &rounds_scores, &rounds_sums,      &weighs_twice,     &rounds_and_denies_it};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof *variants, variants, NULL};
