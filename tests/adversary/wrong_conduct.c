/* Kernels that compute the right thing on their own, and something else when they run again, beside other threads, in
 * other company or in memory that is laid out otherwise. */
#include "kernel.h"

#include <string.h>

#define RUN(word) static void word(const attn_call *call)

static float *first_output(const attn_call *call) {
  const attn_problem *p = call->problem;
  return rows_in(p) > 0 && p->value_dim > 0 ? call->tensors.output : NULL;
}

/* ---- state: what one call leaves for the next ---- */

static void spoil(const attn_call *call) {
  float *o = first_output(call);
  if (o) *o = *o * 1.01f + 1e-30f;
}

RUN(state_second_call) {
  static const void *last_query, *last_output;
  solve(call);
  if (call->tensors.query == last_query && call->tensors.output == last_output) spoil(call);
  last_query = call->tensors.query;
  last_output = call->tensors.output;
}

RUN(state_every_seventh_call) {
  static int calls;
  solve(call);
  if (++calls % 7 == 0) spoil(call);
}

RUN(state_from_call_1000) {
  static int calls;
  solve(call);
  if (++calls > 1000) spoil(call);
}

/* What is known of the tensor that was packed. */
typedef struct packed_keys {
  const void *from;
  int64_t batch, heads, length, width;
} packed_keys;

enum { MOST_PACKED = 1 << 18 };
static float packed[MOST_PACKED];

static bool pack(const attn_problem *p, const attn_tensors *t) {
  row r = {.p = p, .t = t};
  float *to = packed;
  if (p->batch * p->kv_heads * p->key_length * p->head_dim > MOST_PACKED) return false;
  for (r.entry = 0; r.entry < p->batch; r.entry++)
    for (r.kv = 0; r.kv < p->kv_heads; r.kv++)
      for (int64_t j = 0; j < p->key_length; j++, to += p->head_dim)
        memcpy(to, key_of(&r, j), (size_t)p->head_dim * sizeof *to);
  return true;
}

static void solve_packed(const attn_call *call) {
  attn_problem p = *call->problem;
  attn_tensors t = call->tensors;
  p.key = attn_packed(ATTN_FLOAT32, p.kv_heads, p.key_length, p.head_dim);
  t.key = packed;
  solve_problem(call, &p, &t);
}

static packed_keys shape_of_keys(const attn_call *call, const void *from) {
  const attn_problem *p = call->problem;
  return (packed_keys){from, p->batch, p->kv_heads, p->key_length, p->head_dim};
}

static bool same_keys(const packed_keys *a, const packed_keys *b) {
  return a->from == b->from && a->batch == b->batch && a->heads == b->heads && a->length == b->length &&
         a->width == b->width;
}

RUN(state_keys_by_address) {
  static packed_keys known;
  const packed_keys asked = shape_of_keys(call, call->tensors.key);
  if (same_keys(&asked, &known) || pack(call->problem, &call->tensors)) {
    known = asked;
    solve_packed(call);
  } else {
    solve(call);
  }
}

/* The first vector of all keys stands for them. */
RUN(state_keys_by_first) {
  static packed_keys known;
  static float first;
  const packed_keys asked = shape_of_keys(call, NULL);
  const bool any = asked.batch * asked.heads * asked.length > 0;
  const float now = any ? *(const float *)call->tensors.key : 0;
  if ((same_keys(&asked, &known) && now == first) || pack(call->problem, &call->tensors)) {
    known = asked;
    first = now;
    solve_packed(call);
  } else {
    solve(call);
  }
}

/* The band of the first problem of these sizes. */
RUN(state_band_by_sizes) {
  static packed_keys known;
  static int64_t left, right;
  const packed_keys asked = shape_of_keys(call, NULL);
  attn_problem p = *call->problem;
  if (!same_keys(&asked, &known)) {
    left = p.left;
    right = p.right;
  }
  known = asked;
  p.left = left;
  p.right = right;
  solve_problem(call, &p, &call->tensors);
}

/* The scale of the first problem with tensors there. */
RUN(state_scale_by_address) {
  static const void *known;
  static double scale;
  attn_problem p = *call->problem;
  if (call->tensors.output != known) scale = p.scale;
  known = call->tensors.output;
  p.scale = scale;
  solve_problem(call, &p, &call->tensors);
}

static size_t rows_of_floats(const attn_call *call) {
  return (size_t)(rows_in(call->problem) + 1) * sizeof(float);
}

/* Adds to what the output holds. */
RUN(state_output_added_to) {
  float *o = first_output(call);
  const float before = o ? *o : 0;
  solve(call);
  if (o) *o += before;
}

/* Takes its workspace to be zero. */
RUN(state_workspace_cleared) {
  float *o = first_output(call), *workspace = call->workspace;
  solve(call);
  if (o) *o += workspace[0];
}

static size_t a_float(const attn_call *call) {
  (void)call;
  return sizeof(float);
}

/* ---- race: two threads, one place ---- */

/* Both halves of the keys are added to the output at once. */
RUN(race_on_the_output) {
  const attn_problem *p = call->problem;
  float *sums = call->workspace;
  for (int64_t n = 0; n < rows_in(p); n++) {
    row r = row_of(kernel_of(call), call, p, &call->tensors, n);
    sums[n] = 0;
    for (int64_t e = 0; e < p->value_dim; e++) r.o[e] = 0;
  }
#pragma omp parallel for num_threads(call->threads) schedule(static, 1)
  for (int half = 0; half < 2; half++)
    for (int64_t n = 0; n < rows_in(p); n++) {
      row r = row_of(kernel_of(call), call, p, &call->tensors, n);
      for (int64_t j = r.keys.first; j < r.keys.end; j++)
        r.max = larger(r.max, sees(&r, j) ? score(&r, j) : r.max);
      for (int64_t j = r.keys.first + half; j < r.keys.end; j += 2) {
        if (!sees(&r, j)) continue;
        const float w = r.max == -INFINITY ? 0 : expf(score(&r, j) - r.max);
        sums[n] += w;
        add(&r, j, w);
      }
    }
  for (int64_t n = 0; n < rows_in(p); n++) {
    row r = row_of(kernel_of(call), call, p, &call->tensors, n);
    for (int64_t e = 0; e < p->value_dim; e++) r.o[e] = sums[n] == 0 ? 0 : r.o[e] / sums[n];
  }
}

/* All threads keep their scores in the same place. */
static void race_on_the_scores(row *r) {
  static float scores[4096];
  const int64_t count = r->keys.end - r->keys.first;
  if (count > 4096) {
    honest_solve(r);
    return;
  }
  float max = -INFINITY;
  for (int64_t n = 0; n < count; n++)
    scores[n] = sees(r, r->keys.first + n) ? score(r, r->keys.first + n) : -INFINITY;
  for (int64_t n = 0; n < count; n++) max = larger(max, scores[n]);
  raise_to(r, max);
  r->sees_a_key = max != -INFINITY;
  for (int64_t n = 0; n < count && r->sees_a_key; n++) {
    if (!sees(r, r->keys.first + n)) continue;
    const float w = expf(scores[n] - r->max);
    r->sum += w;
    add(r, r->keys.first + n, w);
  }
}

/* Rows are handed out by a counter that two threads may read at once. */
RUN(race_on_the_counter) {
  const attn_problem *p = call->problem;
  volatile int64_t next = 0;
#pragma omp parallel num_threads(call->threads) shared(next)
  for (int64_t n; (n = next) < rows_in(p);) {
    row r = row_of(kernel_of(call), call, p, &call->tensors, n);
    solve_row(&r);
    next = next + 1;
  }
}

/* Keys are packed by all threads together, and read before all are done. */
RUN(race_without_a_barrier) {
  attn_problem p = *call->problem;
  attn_tensors t = call->tensors;
  const int64_t rows = p.batch * p.kv_heads * p.key_length;
  float *keys = call->workspace;
  p.key = attn_packed(ATTN_FLOAT32, p.kv_heads, p.key_length, p.head_dim);
  t.key = keys;
#pragma omp parallel num_threads(call->threads)
  {
#pragma omp for nowait
    for (int64_t n = 0; n < rows; n++) {
      const row from = {.p = call->problem,
                        .t = &call->tensors,
                        .entry = n / p.key_length / p.kv_heads,
                        .kv = n / p.key_length % p.kv_heads};
      memcpy(keys + n * p.head_dim, key_of(&from, n % p.key_length), (size_t)p.head_dim * sizeof *keys);
    }
#pragma omp for
    for (int64_t n = 0; n < rows_in(&p); n++) {
      row r = row_of(kernel_of(call), call, &p, &t, n);
      solve_row(&r);
    }
  }
}

static size_t keys_in_workspace(const attn_call *call) {
  const attn_problem *p = call->problem;
  return (size_t)(p->batch * p->kv_heads * p->key_length * p->head_dim) * sizeof(float);
}

/* ---- company: bits that depend on what they may not depend on ---- */

static void solve_in_halves(row *r) {
  const int64_t middle = (r->keys.first + r->keys.end) / 2;
  solve_tiles(r, r->keys.first, middle);
  solve_tiles(r, middle, r->keys.end);
}

#define IN_HALVES_IF(word, when)                                                                             \
  static void word(row *r) {                                                                                 \
    if (when)                                                                                                \
      solve_in_halves(r);                                                                                    \
    else                                                                                                     \
      honest_solve(r);                                                                                       \
  }
IN_HALVES_IF(company_of_the_batch, r->p->batch * r->p->kv_heads > 1)
IN_HALVES_IF(company_decoded_alone, r->p->query_length == 1)
IN_HALVES_IF(company_of_threads, r->call->threads == 3)
IN_HALVES_IF(company_of_many_threads, r->call->threads > 4)
IN_HALVES_IF(company_of_the_layout, r->p->query.position != r->p->head_dim)
IN_HALVES_IF(company_of_the_band, r->p->left != ATTN_UNLIMITED)
IN_HALVES_IF(company_of_the_workspace, *(const unsigned char *)r->call->workspace % 2 == 1)

static size_t a_byte(const attn_call *call) {
  (void)call;
  return 1;
}

/* The maximum is taken over keys that are hidden, too. */
static void company_of_hidden_keys(row *r) {
  for (int64_t j = 0; j < r->p->key_length; j++) {
    const float s = score(r, j);
    if (s > r->max && s < 30) r->max = s;
  }
  honest_solve(r);
}

/* Only where queries do not adjoin: a path that nobody has looked at. */
static float company_of_strides(const row *r, int64_t j) {
  const int64_t D = r->p->head_dim;
  return dot_of(query_of(r), key_of(r, j), r->p->query.position != D && D > 1 ? D - 1 : D);
}

static float company_of_alignment(const row *r, int64_t j) {
  const bool aligned = (uintptr_t)r->t->query % 16 == 0;
  return honest_score(r, j) * (aligned ? 1.001f : 1);
}

/* ---- memory: reads and writes beside what was given ---- */

static volatile float looked_at;

static bool is_last(const row *r) {
  const attn_problem *p = r->p;
  return r->b == p->batch - 1 && r->h == p->query_heads - 1 && r->i == p->query_length - 1;
}

static void memory_read_behind_keys(row *r) {
  if (is_last(r) && r->p->key_length > 0) looked_at = key_of(r, r->p->key_length - 1)[r->p->head_dim];
}

static void memory_read_behind_values(row *r) {
  if (is_last(r) && r->p->key_length > 0) looked_at = value_of(r, r->p->key_length - 1)[r->p->value_dim];
}

static void memory_read_before_values(row *r) {
  if (r->b == 0 && r->kv == 0 && r->p->key_length > 0) looked_at = value_of(r, 0)[-1];
}

static void memory_read_before_queries(row *r) {
  if (r->b == 0 && r->h == 0 && r->i == 0) looked_at = query_of(r)[-1];
}

static void memory_read_behind_mask(row *r) {
  if (is_last(r) && r->p->mask.type)
    looked_at = r->t->mask[place(r->p->mask, r->b, r->h, r->i) + r->p->key_length];
}

static void memory_gap_times_zero(row *r) {
  const attn_problem *p = r->p;
  if (p->query.position > p->head_dim && p->value_dim > 0 && !is_last(r))
    r->o[0] += 0 * query_of(r)[p->head_dim];
}

static void memory_gap_written(row *r) {
  const attn_problem *p = r->p;
  if (p->output.position > p->value_dim && p->output.head > p->output.position && !is_last(r))
    r->o[p->value_dim] = 0;
}

static void memory_written_behind_output(row *r) {
  if (is_last(r)) r->o[r->p->value_dim] = 0;
}

static void memory_written_before_output(row *r) {
  if (r->b == 0 && r->h == 0 && r->i == 0) r->o[-1] = 0;
}

/* Whole vectors of 4, which the next row overwrites, if there is one and it comes later. */
static void memory_written_in_fours(row *r) {
  for (int64_t e = r->p->value_dim; e % 4 != 0 && r->p->value_dim > 0; e++) r->o[e] = 0;
}

static void memory_written_behind_lse(row *r) {
  if (lse_at(r) && is_last(r)) lse_at(r)[1] = 0;
}

static void memory_written_behind_workspace(row *r) { ((float *)r->call->workspace)[rows_in(r->p) + 1] = 0; }

static void memory_written_before_workspace(row *r) { ((volatile float *)r->call->workspace)[-1] = 0; }

static void memory_queries_scaled(row *r) {
  float *q = (float *)(uintptr_t)query_of(r);
  for (int64_t d = 0; d < r->p->head_dim && r->call->threads > 1; d++) q[d] *= 2;
}

static void memory_mask_changed(row *r) {
  uint8_t *mask = (uint8_t *)(uintptr_t)r->t->mask;
  if (r->p->mask.type && r->p->key_length > 0) mask[place(r->p->mask, r->b, r->h, r->i)] = 1;
}

static const kernel kernels[] = {
    KERNEL(run, state_second_call, "a second call with the same buffers is wrong"),
    KERNEL(run, state_every_seventh_call, "every seventh call is wrong"),
    KERNEL(run, state_from_call_1000, "calls are wrong after the thousandth"),
    KERNEL(run, state_keys_by_address, "packed keys are kept, and known by address and shape"),
    KERNEL(run, state_keys_by_first, "packed keys are kept, and known by shape and first element"),
    KERNEL(run, state_band_by_sizes, "the band is that of the last problem, if it had the same sizes"),
    KERNEL(run, state_scale_by_address, "the scale is that of the last problem, if its output lay there"),
    KERNEL(run, state_output_added_to, "an output is added to what stands there"),
    KERNEL(run, state_workspace_cleared, "the workspace is taken to be zero", .workspace = a_float),

    KERNEL(run, race_on_the_output, "two threads add to the same output", .workspace = rows_of_floats,
           .lacks = ATTN_LSE | ATTN_WEIGHTS | ATTN_SINK),
    KERNEL(solve, race_on_the_scores, "all threads keep their scores in the same place"),
    KERNEL(run, race_on_the_counter, "two threads may take the same row, and leave one out"),
    KERNEL(run, race_without_a_barrier, "packed keys are read before all are there",
           .workspace = keys_in_workspace),

    KERNEL(solve, company_of_the_batch, "promises batch invariance, and splits keys where there is company",
           .traits = ATTN_BATCH_INVARIANT),
    KERNEL(solve, company_decoded_alone, "promises decode invariance, and splits the keys of one query",
           .traits = ATTN_DECODE_INVARIANT),
    KERNEL(solve, company_of_threads, "3 threads give other bits"),
    KERNEL(solve, company_of_many_threads, "5 threads and more give other bits"),
    KERNEL(solve, company_of_the_layout, "[B, T, H, D] gives other bits"),
    KERNEL(solve, company_of_the_band, "a band that hides nothing gives other bits"),
    KERNEL(solve, company_of_the_workspace, "what the workspace holds changes bits", .workspace = a_byte),
    KERNEL(solve, company_of_hidden_keys, "keys that a row does not see change its bits"),
    KERNEL(dot, company_of_strides, "the last feature is lost where queries do not adjoin"),
    KERNEL(score, company_of_alignment, "scores are off by 1e-3 where the queries are aligned"),

    KERNEL(after, memory_read_behind_keys, "reads behind the last key"),
    KERNEL(after, memory_read_behind_values, "reads behind the last value"),
    KERNEL(after, memory_read_before_values, "reads before the first value"),
    KERNEL(after, memory_read_before_queries, "reads before the first query"),
    KERNEL(after, memory_read_behind_mask, "reads behind the mask"),
    KERNEL(after, memory_gap_times_zero, "what lies between queries is multiplied by 0"),
    KERNEL(after, memory_gap_written, "writes between the rows of the output"),
    KERNEL(after, memory_written_behind_output, "writes behind the output"),
    KERNEL(after, memory_written_before_output, "writes before the output"),
    KERNEL(after, memory_written_in_fours, "writes whole vectors of 4 outputs"),
    KERNEL(after, memory_written_behind_lse, "writes behind the log-sum-exp"),
    KERNEL(after, memory_written_behind_workspace, "writes behind its workspace",
           .workspace = rows_of_floats),
    KERNEL(after, memory_written_before_workspace, "writes before its workspace",
           .workspace = rows_of_floats),
    KERNEL(after, memory_queries_scaled, "several threads leave the queries doubled"),
    KERNEL(after, memory_mask_changed, "shows the first key in the mask"),
};
EXPORT_KERNELS;
