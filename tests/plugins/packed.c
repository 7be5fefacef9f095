/* Kernels that take little, as those outside do: causal alone, Tq = Tk, D 64 or 128, packed [B, T, H, D]; right ones and
 * wrong ones. */
#include <attention.h>
#include <math.h>
#include <string.h>

typedef enum fault { NONE, WRONG_HEADS, WRONG_TAIL } fault;

static bool is_packed(attn_layout layout, int64_t heads, int64_t length, int64_t width) {
  return layout.head == width && layout.position == heads * width && layout.batch == length * heads * width;
}

static const char *unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int64_t D = p->head_dim, T = p->query_length;
  if (T != p->key_length) return "takes only Tq = Tk";
  if (p->left != ATTN_UNLIMITED || p->right != 0) return "takes only causal attention";
  if ((D != 64 && D != 128) || D != p->value_dim) return "takes only D 64 or 128, and Dv = D";
  if (!is_packed(p->query, p->query_heads, T, D) || !is_packed(p->key, p->kv_heads, T, D) ||
      !is_packed(p->value, p->kv_heads, T, D) || !is_packed(p->output, p->query_heads, T, D))
    return "takes only packed [B, T, H, D]";
  return NULL;
}

static const char *one_size(const attn_call *call) {
  const attn_problem *p = call->problem;
  if (p->query_heads != 1 || p->batch != 1) return "takes one head of one entry";
  return p->key_length == 64 || p->key_length == 128 ? unsupported(call) : "takes only T 64 or 128";
}

static const char *nothing(const attn_call *call) {
  (void)call;
  return "takes nothing";
}

static void solve_row(const attn_call *call, int64_t b, int64_t h, int64_t i, fault fault) {
  const attn_problem *p = call->problem;
  const int64_t T = p->query_length, H = p->query_heads, Hkv = p->kv_heads, D = p->head_dim;
  const int64_t kv = fault == WRONG_HEADS ? h % Hkv : h / (H / Hkv), past_tiles = T / 64 * 64;
  const float *q = (const float *)call->tensors.query + ((b * T + i) * H + h) * D;
  float *o = (float *)call->tensors.output + ((b * T + i) * H + h) * D, max = -INFINITY, sum = 0;
  memset(o, 0, (size_t)D * sizeof *o);
  for (int64_t j = 0; j <= i; j++) {
    const int64_t seen =
        fault == WRONG_TAIL && j >= past_tiles && j > 0 ? j - 1 : j; /* one of the keys twice */
    const float *k = (const float *)call->tensors.key + ((b * T + seen) * Hkv + kv) * D;
    const float *v = (const float *)call->tensors.value + ((b * T + seen) * Hkv + kv) * D;
    float score = 0;
    for (int64_t d = 0; d < D; d++) score += q[d] * k[d];
    score *= (float)p->scale;
    if (score == -INFINITY) continue;
    const float before = max;
    max = isnan(score) || isnan(max) ? NAN : fmaxf(max, score);
    const float kept = before == max ? 1 : expf(before - max), weight = expf(score - max);
    sum = sum * kept + weight;
    for (int64_t d = 0; d < D; d++) o[d] = o[d] * kept + weight * v[d];
  }
  for (int64_t d = 0; d < D && sum != 0; d++) o[d] /= sum;
}

static void solve(const attn_call *call, fault fault) {
  const attn_problem *p = call->problem;
  for (int64_t row = 0; row < p->batch * p->query_heads * p->query_length; row++)
    solve_row(call, row / p->query_length / p->query_heads, row / p->query_length % p->query_heads,
              row % p->query_length, fault);
}

#define KERNEL(word, fault, refusal)                                                                         \
  static void run_##word(const attn_call *call) { solve(call, fault); }                                      \
  static const attn_variant word = {.name = #word,                                                           \
                                    .summary = #fault,                                                       \
                                    .function = ATTN_SOFTMAX,                                                \
                                    .features = ATTN_BAND,                                                   \
                                    .types = 1u << ATTN_FLOAT32,                                             \
                                    .time_exponent = 2,                                                      \
                                    .unsupported = (refusal),                                                \
                                    .run = run_##word};
KERNEL(packed, NONE, unsupported)
KERNEL(packed_wrong_heads, WRONG_HEADS, unsupported)
KERNEL(packed_wrong_tail, WRONG_TAIL, unsupported)
KERNEL(packed_one_size, NONE, one_size)
KERNEL(packed_nothing, NONE, nothing)

static const attn_variant *const variants[] = {&packed, &packed_wrong_heads, &packed_wrong_tail,
                                               &packed_one_size, &packed_nothing};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof *variants, variants, NULL};
