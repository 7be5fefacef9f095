/* Kernels that are right, each in another way: what they sum, and in which order, how they take exponentials and where
 * they keep what they need is theirs to choose. A verification that fails one of them is wrong. */
#include "kernel.h"

#include <float.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define RUN(word) static void word(const attn_call *call)

/* Keys are passed one by one, under a maximum that is known. */
static float max_of(const row *r) {
  float max = -INFINITY;
  for (int64_t j = r->keys.first; j < r->keys.end; j++)
    if (sees(r, j)) max = larger(max, score(r, j));
  return max;
}

static float weight_under_max(const row *r, int64_t j) {
  const float s = score(r, j);
  return s == -INFINITY ? 0 : weight(r, s - r->max);
}

static bool begin_with_max(row *r) {
  raise_to(r, max_of(r));
  return r->sees_a_key = r->max != -INFINITY;
}

/* ---- sums ---- */

/* Compensated (Kahan 1965). */
static float right_kahan(const row *r, int64_t j) {
  const float *q = query_of(r), *k = key_of(r, j);
  float sum = 0, lost = 0;
  for (int64_t d = 0; d < r->p->head_dim; d++) {
    const float term = q[d] * k[d] - lost, next = sum + term;
    lost = next - sum - term;
    sum = next;
  }
  return isfinite(lost) ? sum : dot_of(q, k, r->p->head_dim);
}

/* A compensation for each element of the output, in the workspace. */
static size_t room_for_rows(const attn_call *call) {
  return (size_t)(rows_in(call->problem) * call->problem->value_dim) * sizeof(float);
}

static void right_kahan_of_values(row *r, int64_t j, float w) {
  const attn_problem *p = r->p;
  const float *v = value_of(r, j);
  float *lost =
      (float *)r->call->workspace + ((r->b * p->query_heads + r->h) * p->query_length + r->i) * p->value_dim;
  for (int64_t e = 0; e < p->value_dim; e++) {
    if (r->sum == w) lost[e] = 0; /* the first key of the row */
    const float term = w * v[e], corrected = term - lost[e], next = r->o[e] + corrected;
    lost[e] = isfinite(next) ? next - r->o[e] - corrected : 0;
    r->o[e] = next;
  }
}

static void lost_is_scaled_too(row *r, float max) {
  const attn_problem *p = r->p;
  float *lost =
      (float *)r->call->workspace + ((r->b * p->query_heads + r->h) * p->query_length + r->i) * p->value_dim;
  const float before = r->max == -INFINITY ? 0 : expf(r->max - max);
  for (int64_t e = 0; e < p->value_dim && r->max != -INFINITY; e++) lost[e] *= before;
  honest_raise(r, max);
}

static float pairwise_dot(const float *a, const float *b, int64_t count) {
  if (count <= 4) {
    float sum = 0;
    for (int64_t d = 0; d < count; d++) sum += a[d] * b[d];
    return sum;
  }
  return pairwise_dot(a, b, count / 2) + pairwise_dot(a + count / 2, b + count / 2, count - count / 2);
}

static float right_pairwise(const row *r, int64_t j) {
  return pairwise_dot(query_of(r), key_of(r, j), r->p->head_dim);
}

/* Neighbours at a distance of half, a quarter... are added, as the lanes of a vector are. */
static float right_tree(const row *r, int64_t j) {
  float lanes[8] = {0};
  const float *q = query_of(r), *k = key_of(r, j);
  for (int64_t d = 0; d < r->p->head_dim; d++) lanes[d % 8] += q[d] * k[d];
  for (int half = 4; half > 0; half /= 2)
    for (int n = 0; n < half; n++) lanes[n] += lanes[n + half];
  return lanes[0];
}

static float right_double(const row *r, int64_t j) {
  const float *q = query_of(r), *k = key_of(r, j);
  double sum = 0;
  for (int64_t d = 0; d < r->p->head_dim; d++) sum += (double)q[d] * (double)k[d];
  return (float)sum;
}

static float right_fused_multiply_add(const row *r, int64_t j) {
  const float *q = query_of(r), *k = key_of(r, j);
  float sum = 0;
  for (int64_t d = r->p->head_dim; d-- > 0;) sum = __builtin_fmaf(q[d], k[d], sum);
  return sum;
}

/* All in double, and rounded once. */
static void right_double_sums(row *r) {
  enum { MOST = 1100 };
  double o[MOST], sum = 0;
  const int64_t Dv = r->p->value_dim;
  if (Dv > MOST || !begin_with_max(r)) {
    honest_solve(r);
    return;
  }
  for (int64_t e = 0; e < Dv; e++) o[e] = 0;
  for (int64_t j = r->keys.first; j < r->keys.end; j++) {
    if (!sees(r, j)) continue;
    const double w = exp((double)score(r, j) - (double)r->max);
    sum += w;
    for (int64_t e = 0; e < Dv; e++) o[e] += w * (double)value_of(r, j)[e];
  }
  r->sum = (float)sum;
  for (int64_t e = 0; e < Dv; e++) r->o[e] = (float)(o[e] / sum * (double)r->sum);
}

/* ---- exponentials ---- */

static float right_exp2(float x) { return exp2f(x * 1.44269504f); }

/* Scale and log2(e) in one factor, exponentials in base 2, and the log-sum-exp by log2. The lowest bias stays a number. */
static float in_base_2(float x) { return exp2f(x); }

static float right_base_2(const row *r, int64_t j) {
  const float log2e = 1.44269504f;
  if (r->p->softcap > 0 || r->p->bias.type) {
    const float exponent = honest_score(r, j);
    return exponent < 0 && isfinite(exponent) ? fmaxf(exponent * log2e, -FLT_MAX) : exponent * log2e;
  }
  return (float)(r->p->scale * 1.4426950408889634) * dot(r, j);
}

static void sink_in_base_2(row *r) {
  const float sink = sink_of(r) * 1.44269504f;
  if (sink == -INFINITY) return;
  raise_to(r, sink);
  r->sum += exp2f(sink - r->max);
}

static void lse_by_log2(row *r) {
  if (lse_at(r) && r->sees_a_key) *lse_at(r) = (r->max + log2f(r->sum)) * 0.693147181f;
}

/* Weights below the normal range are zero. */
static float right_flushes_weights(float x) {
  const float w = expf(x);
  return w < FLT_MIN ? 0 : w;
}

/* By a polynomial after Cephes, within 2 ulp. */
static float right_polynomial(float x) {
  if (!(x > -87)) return isnan(x) ? x : expf(x);
  const float n = rintf(x * 1.44269504f), f = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float y = 1.9875691500e-4f;
  y = y * f + 1.3981999507e-3f;
  y = y * f + 8.3334519073e-3f;
  y = y * f + 4.1665795894e-2f;
  y = y * f + 1.6666665459e-1f;
  y = y * f + 5.0000001201e-1f;
  return ldexpf(y * f * f + f + 1, (int)n);
}

/* ---- order ---- */

static void right_reversed(row *r) {
  for (int64_t end = r->keys.end; end > r->keys.first; end -= TILE)
    solve_tile(r, end - TILE > r->keys.first ? end - TILE : r->keys.first, end);
}

/* By a step that is coprime to their number. */
static void right_scattered(row *r) {
  const int64_t count = r->keys.end - r->keys.first;
  int64_t step = count * 618 / 1000 + 1, a = step, b = count;
  while (b > 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
    if (b == 0 && a != 1 && count > 0) {
      a = ++step;
      b = count;
    }
  }
  if (!begin_with_max(r)) return;
  for (int64_t n = 0; n < count; n++) {
    const int64_t j = r->keys.first + n * step % count;
    if (!sees(r, j)) continue;
    const float w = weight_under_max(r, j);
    r->sum += w;
    add(r, j, w);
  }
}

static void right_two_passes(row *r) {
  if (!begin_with_max(r)) return;
  for (int64_t j = r->keys.first; j < r->keys.end; j++) {
    if (!sees(r, j)) continue;
    const float w = weight_under_max(r, j);
    r->sum += w;
    add(r, j, w);
  }
}

/* Maximum, sum, and weights that are normalised before they meet the values. */
static void right_three_passes(row *r) {
  if (!begin_with_max(r)) return;
  for (int64_t j = r->keys.first; j < r->keys.end; j++)
    if (sees(r, j)) r->sum += weight_under_max(r, j);
  for (int64_t j = r->keys.first; j < r->keys.end; j++)
    if (sees(r, j)) add(r, j, weight_under_max(r, j) / r->sum);
  scale_output(r, r->sum);
}

/* The maximum is raised only where it would rise by more than 8 (FlashAttention 4). */
static void right_raises_late(row *r, float max) {
  if (r->max == -INFINITY || !(max <= r->max + 8)) honest_raise(r, max);
}

static void right_tiles_of_1(row *r) { solve_tiles_of(r, r->keys.first, r->keys.end, 1); }
static void right_tiles_of_7(row *r) { solve_tiles_of(r, r->keys.first, r->keys.end, 7); }
static void right_tiles_of_64(row *r) { honest_solve(r); }

/* Four parts of the keys, each with a maximum and a sum of its own, merged by these. */
static void right_split_keys(row *r) {
  enum { PARTS = 4, MOST = 1100 };
  float o[MOST];
  const int64_t count = r->keys.end - r->keys.first, Dv = r->p->value_dim;
  if (Dv > MOST) {
    honest_solve(r);
    return;
  }
  for (int n = 0; n < PARTS; n++) {
    row part = *r;
    part.o = o;
    part.max = -INFINITY;
    part.sum = 0;
    part.sees_a_key = false;
    for (int64_t e = 0; e < Dv; e++) o[e] = 0;
    solve_tiles(&part, r->keys.first + count * n / PARTS, r->keys.first + count * (n + 1) / PARTS);
    if (!part.sees_a_key) continue;
    raise_to(r, part.max);
    r->sees_a_key = true;
    const float by = expf(part.max - r->max);
    r->sum += by * part.sum;
    for (int64_t e = 0; e < Dv; e++) r->o[e] += by * o[e];
  }
}

/* The sink is a key more, and the first. */
static void right_sink_first(row *r) {
  const float sink = sink_of(r);
  if (sink != -INFINITY) {
    raise_to(r, sink);
    r->sum = isnan(sink) ? NAN : expf(sink - r->max);
  }
  honest_solve(r);
}

static void nothing_more(row *r) { (void)r; }

static void right_reciprocal(row *r) { scale_output(r, 1 / r->sum); }

/* ---- threads and memory ---- */

RUN(right_serial) {
  for (int64_t n = 0; n < rows_in(call->problem); n++) {
    row r = row_of(kernel_of(call), call, call->problem, &call->tensors, n);
    solve_row(&r);
  }
}

RUN(right_half_of_the_threads) {
  attn_call fewer = *call;
  fewer.threads = (call->threads + 1) / 2;
  solve(&fewer);
}

/* Rows in turn. */
typedef struct share {
  const attn_call *call;
  int64_t first, step;
} share;

static void *solve_share(void *with) {
  const share *own = with;
  for (int64_t n = own->first; n < rows_in(own->call->problem); n += own->step) {
    row r = row_of(kernel_of(own->call), own->call, own->call->problem, &own->call->tensors, n);
    solve_row(&r);
  }
  return NULL;
}

enum { MOST_THREADS = 64 };

RUN(right_pthreads) {
  pthread_t threads[MOST_THREADS];
  share shares[MOST_THREADS];
  bool begun[MOST_THREADS];
  const int count = call->threads < MOST_THREADS ? call->threads : MOST_THREADS;
  for (int n = 0; n < count; n++) {
    shares[n] = (share){call, n, count};
    begun[n] = n > 0 && pthread_create(&threads[n], NULL, solve_share, &shares[n]) == 0;
  }
  for (int n = 0; n < count; n++)
    if (!begun[n]) solve_share(&shares[n]);
  for (int n = 0; n < count; n++)
    if (begun[n]) pthread_join(threads[n], NULL);
}

RUN(right_dynamic_rows) {
#pragma omp parallel for num_threads(call->threads) schedule(dynamic, 3)
  for (int64_t n = 0; n < rows_in(call->problem); n++) {
    row r = row_of(kernel_of(call), call, call->problem, &call->tensors, n);
    solve_row(&r);
  }
}

static size_t room_for_keys(const attn_call *call) {
  const attn_problem *p = call->problem;
  return (size_t)(p->batch * p->kv_heads * p->key_length * p->head_dim) * sizeof(float);
}

/* Keys are packed feature by feature: [B, Hkv, D, Tk]. */
static float dot_across(const row *r, int64_t j) {
  const attn_problem *p = r->p;
  const float *q = query_of(r);
  const float *k =
      (const float *)r->call->workspace + (r->entry * p->kv_heads + r->kv) * p->head_dim * p->key_length + j;
  float sum = 0;
  for (int64_t d = 0; d < p->head_dim; d++) sum += q[d] * k[d * p->key_length];
  return sum;
}

RUN(right_transposed_keys) {
  const attn_problem *p = call->problem;
  float *to = call->workspace;
#pragma omp parallel for num_threads(call->threads)
  for (int64_t n = 0; n < p->batch * p->kv_heads * p->key_length; n++) {
    const int64_t head = n / p->key_length, j = n % p->key_length;
    const row from = {.p = p, .t = &call->tensors, .entry = head / p->kv_heads, .kv = head % p->kv_heads};
    for (int64_t d = 0; d < p->head_dim; d++)
      to[(head * p->head_dim + d) * p->key_length + j] = key_of(&from, j)[d];
  }
  solve(call);
}

/* Outputs are made in the workspace, one byte behind its beginning, and copied from there. */
static size_t room_for_shifted_rows(const attn_call *call) { return room_for_rows(call) + 1; }

static void right_unaligned_workspace(row *r) {
  const attn_problem *p = r->p;
  const int64_t n = (r->b * p->query_heads + r->h) * p->query_length + r->i;
  char *at = (char *)r->call->workspace + 1 + n * p->value_dim * (int64_t)sizeof(float);
  memcpy(at, r->o, (size_t)p->value_dim * sizeof(float));
  memset(r->o, 0, (size_t)p->value_dim * sizeof(float));
  memcpy(r->o, at, (size_t)p->value_dim * sizeof(float));
}

/* ---- fewer things ---- */

static void right_few_features(row *r) { honest_solve(r); }

static const char *right_some_sizes(const attn_call *call) {
  const attn_problem *p = call->problem;
  return p->head_dim % 8 != 0 || p->query_heads != p->kv_heads ? "takes D in eights, and no groups of heads"
                                                               : NULL;
}

/* ---- linear ---- */

static float right_linear_by_exp2(float x) { return x > 0 ? x + 1 : exp2f(x * 1.44269504f); }

/* The state of each head, D x (Dv + 1): the last column is what normalises. */
static size_t room_for_states(const attn_call *call) {
  const attn_problem *p = call->problem;
  return (size_t)(p->batch * p->query_heads * p->head_dim * (p->value_dim + 1)) * sizeof(float);
}

static const char *needs_all_before(const attn_call *call) {
  return call->problem->left != ATTN_UNLIMITED ? "keeps a state, from which nothing leaves" : NULL;
}

static void solve_by_state(const row *r, int64_t known, float *state) {
  const int64_t D = r->p->head_dim, Dv = r->p->value_dim;
  for (int64_t j = known; j < r->keys.end; j++)
    for (int64_t d = 0; d < D; d++) {
      const float factor = honest_phi(key_of(r, j)[d]);
      add_scaled(state + d * (Dv + 1), value_of(r, j), factor, Dv);
      state[d * (Dv + 1) + Dv] += factor;
    }
  float sum = 0;
  for (int64_t e = 0; e < Dv; e++) r->o[e] = 0;
  for (int64_t d = 0; d < D && r->keys.end > 0; d++) {
    const float factor = honest_phi(query_of(r)[d]);
    add_scaled(r->o, state + d * (Dv + 1), factor, Dv);
    sum += factor * state[d * (Dv + 1) + Dv];
  }
  for (int64_t e = 0; e < Dv && r->keys.end > 0; e++) r->o[e] /= sum + (float)r->p->epsilon;
}

RUN(right_linear_state) {
  const attn_problem *p = call->problem;
  const int64_t size = p->head_dim * (p->value_dim + 1);
#pragma omp parallel for num_threads(call->threads)
  for (int64_t head = 0; head < p->batch * p->query_heads; head++) {
    float *state = (float *)call->workspace + head * size;
    for (int64_t n = 0; n < size; n++) state[n] = 0;
    int64_t known = 0;
    for (int64_t i = 0; i < p->query_length; i++) {
      const row r = row_of(kernel_of(call), call, p, &call->tensors, head * p->query_length + i);
      solve_by_state(&r, known, state);
      known = r.keys.end > known ? r.keys.end : known;
    }
  }
}

static void right_linear_reversed(row *r) {
  for (int64_t j = r->keys.end; j-- > r->keys.first;) {
    const float w = score(r, j);
    r->sees_a_key = true;
    r->sum += w;
    add(r, j, w);
  }
}

static const kernel kernels[] = {
    KERNEL(dot, right_kahan, "scores by compensated sums"),
    KERNEL(add, right_kahan_of_values, "outputs by compensated sums", .raise = lost_is_scaled_too,
           .workspace = room_for_rows),
    KERNEL(dot, right_pairwise, "scores by pairwise sums"),
    KERNEL(dot, right_tree, "scores by sums of eight lanes, added as a tree"),
    KERNEL(dot, right_double, "scores in double precision"),
    KERNEL(dot, right_fused_multiply_add, "scores by fused multiply-adds, from the last feature"),
    KERNEL(solve, right_double_sums, "sums in double precision"),
    KERNEL(weight, right_exp2, "exponentials by exp2"),
    KERNEL(score, right_base_2, "all in base 2", .weight = in_base_2, .sink = sink_in_base_2,
           .after = lse_by_log2),
    KERNEL(weight, right_flushes_weights, "weights below the normal range are zero"),
    KERNEL(weight, right_polynomial, "exponentials by a polynomial"),
    KERNEL(solve, right_tiles_of_64, "tiles of 64 keys",
           .traits = ATTN_BATCH_INVARIANT | ATTN_DECODE_INVARIANT),
    KERNEL(solve, right_tiles_of_1, "key by key"),
    KERNEL(solve, right_tiles_of_7, "tiles of 7 keys"),
    KERNEL(solve, right_reversed, "from the last key to the first"),
    KERNEL(solve, right_scattered, "keys in an order that jumps"),
    KERNEL(solve, right_two_passes, "the maximum first"),
    KERNEL(solve, right_three_passes, "maximum, sum, and normalised weights"),
    KERNEL(raise, right_raises_late, "the maximum is raised only where it rises by more than 8"),
    KERNEL(solve, right_split_keys, "four parts of the keys, merged"),
    KERNEL(solve, right_sink_first, "the sink is the first key", .sink = nothing_more),
    KERNEL(normalise, right_reciprocal, "divides by multiplying"),
    KERNEL(run, right_serial, "one thread, whatever it is given"),
    KERNEL(run, right_half_of_the_threads, "half of the threads that it is given"),
    KERNEL(run, right_pthreads, "threads of its own, as many as it is given"),
    KERNEL(run, right_dynamic_rows, "rows to whom they find"),
    KERNEL(run, right_transposed_keys, "keys are transposed in the workspace", .dot = dot_across,
           .workspace = room_for_keys),
    KERNEL(after, right_unaligned_workspace, "a workspace that is used from its second byte on",
           .workspace = room_for_shifted_rows),
    KERNEL(solve, right_few_features, "takes a band and no other feature",
           .lacks = SOFTMAX_FEATURES & ~(uint64_t)ATTN_BAND),
    KERNEL(unsupported, right_some_sizes, "takes some sizes"),
    KERNEL(run, right_linear_state, "linear attention by its state", .function = ATTN_LINEAR,
           .workspace = room_for_states, .unsupported = needs_all_before),
    KERNEL(phi, right_linear_by_exp2, "linear attention, exponentials by exp2", .function = ATTN_LINEAR),
    KERNEL(solve, right_linear_reversed, "linear attention, from the last key to the first",
           .function = ATTN_LINEAR),
};
EXPORT_KERNELS;
