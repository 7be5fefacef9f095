/* See block.h. */
#include "block.h"

#include <string.h>

#include "../elements.h"
#include "../tile/base2.h"

size_t block_element_bytes(attn_type type) { return type == ATTN_FLOAT32 ? 4 : 2; }

/* ---- who sees whom ---- */

block_part block_part_of(const attn_slice *queries, int q, const attn_slice *keys, int k) {
  return (block_part){queries->first[q], queries->length[q], keys->first[k], keys->length[k], keys->step};
}

/* Query i0 + i step sees key j0 + j step where i step + ahead - left <= j step <= i step + ahead + right: limits of j are
 * these divided by the step and rounded towards each other. Of stripes the one on the right, if there is one, is the diagonal. */
block_band block_band_of(const attn_problem *p, int64_t offset, const block_part *part) {
  const int64_t ahead = offset + part->i0 - part->j0, step = part->step;
  if (step == 1) return (block_band){ahead, p->left, p->right}; /* by distances, which biases ask for */
  const bool begins = p->left != ATTN_UNLIMITED, ends = p->right != ATTN_UNLIMITED;
  const int64_t first = begins ? -attn_quotient(p->left - ahead, step) : 0;
  const int64_t last = ends ? attn_quotient(ahead + p->right, step) : first;
  return (block_band){last, begins ? last - first : p->left, ends ? 0 : p->right};
}

/* Among steps a window has a key more here than there, by where it begins. */
const char *block_steps_unsupported(const attn_problem *p, int64_t step) {
  for (int64_t b = 1; b < p->batch && p->left != ATTN_UNLIMITED; b++)
    if ((attn_offset_of(p, b) - attn_offset_of(p, 0)) % step != 0)
      return "takes a limit on the left only with offsets that differ by multiples of the ranks";
  return NULL;
}

/* How many of `length` positions, from `first` on in steps, there are below `count`. */
static int64_t within(int64_t count, int64_t first, int64_t step, int64_t length) {
  return attn_smaller(attn_larger(-attn_quotient(first - count, step), 0), length);
}

static bool entry_is_seen(const attn_problem *p, int64_t b, const block_part *part) {
  const int64_t n = within(attn_query_count(p, b), part->i0, part->step, part->n),
                m = within(attn_key_count(p, b), part->j0, part->step, part->m);
  const block_band band = block_band_of(p, attn_offset_of(p, b), part);
  if (n == 0 || m == 0 || band.left < 0) return false;
  /* Bands of neighbours overlap, or touch: together they are one run of keys. */
  const bool ends_before = band.left != ATTN_UNLIMITED && band.offset - band.left >= m;
  const bool begins_behind = band.right != ATTN_UNLIMITED && n - 1 + band.offset + band.right < 0;
  return !ends_before && !begins_behind;
}

bool block_is_seen(const attn_problem *p, const block_part *part) {
  for (int64_t b = 0; b < p->batch; b++)
    if (entry_is_seen(p, b, part)) return true;
  return false;
}

bool block_slices_meet(const attn_problem *p, const attn_slice *queries, const attn_slice *keys) {
  for (int q = 0; q < queries->runs; q++)
    for (int k = 0; k < keys->runs; k++) {
      const block_part part = block_part_of(queries, q, keys, k);
      if (block_is_seen(p, &part)) return true;
    }
  return false;
}

/* ---- memory ---- */

void *block_take(block_memory *memory, size_t bytes) {
  void *taken = memory->base ? memory->base + memory->used : NULL;
  memory->used += (bytes + 63) / 64 * 64;
  return taken;
}

static int64_t most_of(const attn_slice *slice) {
  int64_t most = 0;
  for (int run = 0; run < slice->runs; run++) most = attn_larger(most, slice->length[run]);
  return most;
}

block_rows block_rows_take(block_memory *memory, const attn_problem *p, int64_t queries) {
  block_rows rows = {.count = p->batch * p->query_heads * queries, .width = p->value_dim};
  rows.max = block_take(memory, (size_t)rows.count * sizeof(float));
  rows.sum = block_take(memory, (size_t)rows.count * sizeof(float));
  rows.output = block_take(memory, (size_t)(rows.count * rows.width) * sizeof(float));
  return rows;
}

/* ---- a part as a problem of its own ---- */

static schedule_shape choose(const attn_problem *problem, const tile_kernels *kernels) {
  (void)problem;
  return (schedule_shape){.heads = 1, .rows = kernels->max_rows};
}

/* offset: of the first batch entry. lists: NULL where only sizes are asked for. */
static attn_problem problem_of(const attn_problem *whole, const block_part *of, int64_t offset,
                               int64_t *lists) {
  attn_problem part = *whole;
  const int64_t heads = whole->query_heads, batch = whole->batch, n = of->n;
  const block_band band = block_band_of(whole, offset, of);
  part.query_length = n;
  part.key_length = of->m;
  part.offset = band.offset;
  part.left = band.left;
  part.right = band.right;
  part.features = (whole->features & ~(uint64_t)ATTN_SINK) | ATTN_LSE | ATTN_OFFSET;
  part.sink.type = ATTN_ABSENT;
  part.output = attn_packed(ATTN_FLOAT32, heads, n, whole->value_dim);
  part.lse = attn_packed(ATTN_FLOAT32, heads, n, 1);
  for (int64_t b = 0; lists && b < batch; b++) {
    lists[b] = block_band_of(whole, attn_offset_of(whole, b), of).offset;
    lists[batch + b] = within(attn_key_count(whole, b), of->j0, of->step, of->m);
    lists[2 * batch + b] = within(attn_query_count(whole, b), of->i0, of->step, n);
  }
  if (lists && whole->offsets) part.offsets = lists;
  if (lists && whole->key_lengths) part.key_lengths = lists + batch;
  if (lists && whole->query_lengths) part.query_lengths = lists + 2 * batch;
  return part;
}

static attn_call call_of(const attn_call *whole, const attn_problem *part) {
  return (attn_call){.size = sizeof(attn_call),
                     .variant = whole->variant,
                     .problem = part,
                     .threads = whole->threads,
                     .isa = whole->isa,
                     .ranks = 1};
}

/* Whatever the offset, on which it depends how many keys are to the left in a part of stripes: one more or less. Else ranks
 * would need what the same problem at another place does not. */
static size_t part_workspace(const attn_call *call, const block_part *part) {
  size_t workspace = 0;
  int64_t left = -1;
  for (int64_t offset = 0; offset < part->step; offset++) {
    const attn_problem problem = problem_of(call->problem, part, offset, NULL);
    if (offset > 0 && problem.left == left) continue;
    left = problem.left;
    const attn_call inner = call_of(call, &problem);
    const size_t bytes = schedule_workspace_size(&inner, choose);
    if (bytes > workspace) workspace = bytes;
  }
  return workspace;
}

block_scratch block_scratch_take(block_memory *memory, const attn_call *call, const attn_slice *queries,
                                 attn_slicing slicing) {
  const attn_problem *p = call->problem;
  const int64_t most = most_of(queries), heads = p->batch * p->query_heads;
  size_t workspace = 0;
  for (int rank = 0; rank < call->ranks; rank++) {
    const attn_slice keys = attn_slice_of(slicing, p->key_length, rank, call->ranks);
    for (int q = 0; q < queries->runs; q++)
      for (int k = 0; k < keys.runs; k++) {
        const block_part part = block_part_of(queries, q, &keys, k);
        const size_t bytes = part_workspace(call, &part);
        if (bytes > workspace) workspace = bytes;
      }
  }
  block_scratch scratch;
  scratch.lists = block_take(memory, 3 * (size_t)p->batch * sizeof(int64_t));
  scratch.output = block_take(memory, (size_t)(heads * most * p->value_dim) * sizeof(float));
  scratch.max = block_take(memory, (size_t)(heads * most) * sizeof(float));
  scratch.sum = block_take(memory, (size_t)(heads * most) * sizeof(float));
  scratch.workspace = block_take(memory, workspace);
  return scratch;
}

/* ---- the join ---- */

/* Adds to row `to` a part with this largest, this sum and an output that is to be multiplied by `times`. As within a run
 * (query_tile_merge): -inf minus -inf is not to be NaN where neither saw a key, nor left out where the sum is NaN. */
static void join_row(block_rows *rows, int64_t to, float max, float sum, const float *output, float times) {
  if (max == -INFINITY && sum == 0) return;
  float *into = rows->output + to * rows->width;
  const float now = fmaxf(rows->max[to], max), shift = now == -INFINITY ? 0 : now;
  const float ours = exp2f(rows->max[to] - shift), theirs = exp2f(max - shift);
  for (int64_t e = 0; e < rows->width; e++) into[e] = into[e] * ours + output[e] * (times * theirs);
  rows->sum[to] = rows->sum[to] * ours + sum * theirs;
  rows->max[to] = now;
}

void block_join(block_rows *rows, const block_rows *others) {
  for (int64_t r = 0; r < rows->count; r++)
    join_row(rows, r, others->max[r], others->sum[r], others->output + r * others->width, 1);
}

void block_rows_clear(block_rows *rows) {
  memset(rows->output, 0, (size_t)(rows->count * rows->width) * sizeof *rows->output);
  for (int64_t r = 0; r < rows->count; r++) rows->max[r] = -INFINITY, rows->sum[r] = 0;
}

static const void *element_at(const void *tensor, const attn_layout *layout, size_t bytes, int64_t position,
                              int64_t column) {
  return tensor ? (const char *)tensor + (position * layout->position + column) * (int64_t)bytes : NULL;
}

/* Joins what a part gave for queries [first, first + n) of the slice, of `all` queries. */
static void join_part(const attn_call *call, const block_scratch *scratch, int64_t first, int64_t n,
                      int64_t all, block_rows *rows) {
  const int64_t heads = call->problem->batch * call->problem->query_heads;
  for (int64_t h = 0; h < heads; h++)
    for (int64_t i = 0; i < n; i++)
      join_row(rows, h * all + first + i, scratch->max[h * n + i], scratch->sum[h * n + i],
               scratch->output + (h * n + i) * rows->width, scratch->sum[h * n + i]);
}

void block_attend(const attn_call *call, const attn_slice *queries, const block_keys *keys,
                  const block_scratch *scratch, block_rows *rows) {
  const attn_problem *p = call->problem;
  const int64_t all = attn_slice_length(queries);
  int64_t row = 0;
  for (int q = 0; q < queries->runs; row += queries->length[q++]) {
    int64_t key = 0;
    for (int k = 0; k < keys->slice.runs; key += keys->slice.length[k++]) {
      const block_part part = block_part_of(queries, q, &keys->slice, k);
      if (!block_is_seen(p, &part)) continue;
      attn_problem problem = problem_of(p, &part, p->batch ? attn_offset_of(p, 0) : 0, scratch->lists);
      problem.key = keys->key_layout;
      problem.value = keys->value_layout;
      const size_t bytes = block_element_bytes(p->key.type);
      attn_call inner = call_of(call, &problem);
      inner.workspace = scratch->workspace;
      inner.tensors = call->tensors;
      inner.tensors.query = element_at(call->tensors.query, &p->query, bytes, row, 0);
      inner.tensors.key = element_at(keys->key, &problem.key, bytes, key, 0);
      inner.tensors.value = element_at(keys->value, &problem.value, bytes, key, 0);
      inner.tensors.mask = element_at(call->tensors.mask, &p->mask, 1, row, part.j0);
      inner.tensors.bias = element_at(call->tensors.bias, &p->bias, bytes, row, part.j0);
      inner.tensors.output = scratch->output;
      inner.tensors.lse = scratch->max;
      schedule_run_part(&inner, choose, scratch->sum);
      join_part(call, scratch, row, part.n, all, rows);
    }
  }
}

/* The sink of a query joins the sum of row r, after the last key: where it is far above the scores these must not vanish
 * before. Returns what the outputs are to be multiplied by. */
static float join_sink(const attn_call *call, block_rows *rows, int64_t r, int64_t h, bool exists) {
  const attn_layout *layout = &call->problem->sink;
  if (rows->sum[r] == 0 && (!layout->type || !exists)) return 0;
  if (!layout->type || !exists) return 1 / rows->sum[r];
  const float sink = log2e * call->tensors.sink[h * layout->head], before = rows->max[r];
  const float now = fmaxf(before, sink), shift = now == -INFINITY ? 0 : now, left = exp2f(before - shift);
  const bool blind = rows->sum[r] == 0;
  rows->max[r] = now;
  rows->sum[r] = rows->sum[r] * left + exp2f(sink - shift);
  return blind ? 0 : left / rows->sum[r];
}

static void finish_row(const attn_call *call, block_rows *rows, int64_t r, int64_t b, int64_t h, int64_t own,
                       int64_t position) {
  const attn_problem *p = call->problem;
  const int64_t to = b * p->output.batch + h * p->output.head + own * p->output.position;
  const bool blind = rows->sum[r] == 0;
  const float factor = join_sink(call, rows, r, h, position < attn_query_count(p, b));
  for (int64_t e = 0; e < p->value_dim; e++)
    attn_store(call->tensors.output, p->output.type, to + e,
               blind ? 0 : rows->output[r * rows->width + e] * factor);
  if (p->lse.type)
    call->tensors.lse[b * p->lse.batch + h * p->lse.head + own * p->lse.position] =
        (float)((double)rows->max[r] * ln2 + log((double)rows->sum[r]));
}

void block_finish(const attn_call *call, const attn_slice *queries, block_rows *rows) {
  const attn_problem *p = call->problem;
  int64_t r = 0;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++) {
      int64_t own = 0;
      for (int run = 0; run < queries->runs; run++)
        for (int64_t n = 0; n < queries->length[run]; n++, own++, r++)
          finish_row(call, rows, r, b, h, own, attn_slice_position(queries, run, n));
    }
}
