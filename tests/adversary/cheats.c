/* Kernels that are right while they are verified and something else while they are timed, or wrong in one place of so
 * many that only looking at all of them finds it. What tells them that they are timed is what a kernel can know: how
 * often it was called with these buffers, what the output still holds, where buffers begin. */
#include "kernel.h"

#include <fenv.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define RUN(word) static void word(const attn_call *call)

/* How often this kernel was asked in a row with the same buffers. */
static int64_t times_asked(const attn_call *call) {
  enum { MOST_KERNELS = 32 };
  static struct {
    const kernel *of;
    const void *query, *output;
    int64_t times;
  } known[MOST_KERNELS];
  int n = 0;
  while (known[n].of && known[n].of != kernel_of(call) && n < MOST_KERNELS - 1) n++;
  if (call->tensors.query != known[n].query || call->tensors.output != known[n].output) known[n].times = 0;
  known[n].of = kernel_of(call);
  known[n].query = call->tensors.query;
  known[n].output = call->tensors.output;
  return known[n].times++;
}

static bool is_poison(const row *r) {
  for (int64_t e = 0; e < r->p->value_dim; e++)
    if (isnan(r->o[e])) return true;
  return false;
}

static void solve_rows_with_poison(const attn_call *call) {
  for (int64_t n = 0; n < rows_in(call->problem); n++) {
    row r = row_of(kernel_of(call), call, call->problem, &call->tensors, n);
    if (is_poison(&r)) solve_row(&r);
  }
}

/* ---- timed: another answer while it is timed ---- */

RUN(timed_leaves_early) {
  const float *o = call->tensors.output;
  if (rows_in(call->problem) > 0 && call->problem->value_dim > 0 && !isnan(*o)) return;
  solve(call);
}

RUN(timed_repairs_poison) {
  if (times_asked(call) < 3)
    solve(call);
  else
    solve_rows_with_poison(call);
}

/* A sum over a few elements tells whether the inputs are as they were. */
RUN(timed_knows_the_inputs) {
  static float before;
  const attn_problem *p = call->problem;
  const int64_t count = p->batch > 0 && p->kv_heads > 0 ? p->key_length : 0;
  float sum = 0;
  for (int64_t j = 0; j < count; j += 7) sum += ((const float *)call->tensors.key)[j * p->key.position];
  if (times_asked(call) > 0 && sum == before)
    solve_rows_with_poison(call);
  else
    solve(call);
  before = sum;
}

RUN(timed_does_nothing) {
  if (times_asked(call) < 20) solve(call);
}

RUN(timed_every_second_row) {
  const bool lazy = times_asked(call) >= 20;
  for (int64_t n = 0; n < rows_in(call->problem); n++) {
    row r = row_of(kernel_of(call), call, call->problem, &call->tensors, n);
    if (!lazy || n % 2 == 0 || is_poison(&r)) solve_row(&r);
  }
}

RUN(timed_half_the_keys) {
  const bool lazy = times_asked(call) >= 20;
  for (int64_t n = 0; n < rows_in(call->problem); n++) {
    row r = row_of(kernel_of(call), call, call->problem, &call->tensors, n);
    if (lazy) r.keys.first = (r.keys.first + r.keys.end) / 2;
    solve_row(&r);
  }
}

static size_t room_for_keys(const attn_call *call) {
  const attn_problem *p = call->problem;
  return 64 + (size_t)(p->batch * p->kv_heads * p->key_length * p->head_dim) * sizeof(float);
}

/* Packs the keys once, and knows by a mark in its workspace that it has. */
RUN(timed_keeps_packed_keys) {
  static const char mark[] = "packed by this kernel already";
  attn_problem p = *call->problem;
  attn_tensors t = call->tensors;
  float *keys = (float *)call->workspace + 16;
  if (memcmp(call->workspace, mark, sizeof mark) != 0)
    for (int64_t n = 0; n < p.batch * p.kv_heads * p.key_length; n++) {
      const row from = {.p = call->problem,
                        .t = &call->tensors,
                        .entry = n / p.key_length / p.kv_heads,
                        .kv = n / p.key_length % p.kv_heads};
      memcpy(keys + n * p.head_dim, key_of(&from, n % p.key_length), (size_t)p.head_dim * sizeof *keys);
    }
  memcpy(call->workspace, mark, sizeof mark);
  p.key = attn_packed(ATTN_FLOAT32, p.kv_heads, p.key_length, p.head_dim);
  t.key = keys;
  solve_problem(call, &p, &t);
}

RUN(timed_changes_an_input) {
  float *v = (float *)(uintptr_t)call->tensors.value;
  if (times_asked(call) == 20) v[1] += 1;
  solve(call);
}

RUN(timed_changes_rounding) {
  solve(call);
  if (times_asked(call) >= 20) fesetround(FE_UPWARD);
}

RUN(timed_flushes_denormals) {
  solve(call);
#if defined(__x86_64__)
  if (times_asked(call) >= 20) _mm_setcsr(_mm_getcsr() | 0x8040);
#else
  if (times_asked(call) >= 20) fesetround(FE_UPWARD);
#endif
}

RUN(timed_writes_behind_output) {
  const attn_problem *p = call->problem;
  float *o = call->tensors.output;
  solve(call);
  if (times_asked(call) >= 20) o[rows_in(p) * p->value_dim] = 0;
}

/* ---- place: one place of many ---- */

static int64_t number_of(const row *r) {
  return (r->b * r->p->query_heads + r->h) * r->p->query_length + r->i;
}

static void place_of_a_row(row *r) {
  if (rows_in(r->p) >= 4096 && number_of(r) == rows_in(r->p) / 3 + 1) scale_output(r, 1.01f);
}

static void place_of_an_element(row *r) {
  if (rows_in(r->p) >= 4096 && number_of(r) == rows_in(r->p) / 5 + 2) r->o[r->p->value_dim / 2] *= 1.01f;
}

static void place_of_the_last_row(row *r) {
  if (r->p->query_length >= 4096 && r->i == r->p->query_length - 1) r->keys.first = r->keys.end / 2;
}

static void place_of_the_first_row(row *r) {
  if (rows_in(r->p) >= 4096 && number_of(r) == 0) scale_output(r, 1.01f);
}

static void place_of_a_key(row *r) {
  if (rows_in(r->p) >= 4096 && number_of(r) % 1021 == 1000 && r->keys.end > 1) r->keys.end--;
}

static const kernel kernels[] = {
    KERNEL(run, timed_leaves_early, "leaves when the output is not poison"),
    KERNEL(run, timed_repairs_poison, "from its third call on, solves only rows that hold poison"),
    KERNEL(run, timed_knows_the_inputs,
           "solves only rows that hold poison when it thinks to know the inputs"),
    KERNEL(run, timed_does_nothing, "does nothing after the twentieth call with the same buffers"),
    KERNEL(run, timed_every_second_row, "solves every second row after the twentieth call"),
    KERNEL(run, timed_half_the_keys, "looks at half the keys after the twentieth call"),
    KERNEL(run, timed_keeps_packed_keys, "packs the keys once for all calls with the same workspace",
           .workspace = room_for_keys),
    KERNEL(run, timed_changes_an_input, "changes an input at the twentieth call"),
    KERNEL(run, timed_changes_rounding, "leaves another rounding mode after the twentieth call"),
    KERNEL(run, timed_flushes_denormals, "leaves denormals flushed to zero after the twentieth call"),
    KERNEL(run, timed_writes_behind_output, "writes behind the output after the twentieth call"),
    KERNEL(after, place_of_a_row, "one row of 4096 or more is off by 1 %"),
    KERNEL(after, place_of_an_element, "one element of 4096 rows or more is off by 1 %"),
    KERNEL(row, place_of_the_last_row, "the last of 4096 queries or more sees half its keys"),
    KERNEL(after, place_of_the_first_row, "the first of 4096 rows or more is off by 1 %"),
    KERNEL(row, place_of_a_key, "one row in 1021 of 4096 or more misses its last key"),
};
EXPORT_KERNELS;
