/* Blocked: the loops of naive, tiled for registers and caches in portable C. A block of query rows fills
 * one panel of scores, takes its softmax in two passes (maximum, then exponentials) and multiplies it with
 * the values; each key or value that is loaded serves the whole block. The workspace is a panel a thread,
 * O(T). Nothing here is tied to an instruction set; vectors of 4 floats are in every processor. */
#include <omp.h>
#include <string.h>

#include "widen.h"
#include "tile/score_rows.h"

/* ROWS x COLUMNS sums stay in the 16 registers of 4 floats that SSE2 and NEON have at least; KEYS keys of a
 * panel are transposed at a time, so that the inner loop runs along them. */
enum { ROWS = 4, COLUMNS = 8, BLOCK_ROWS = 32, KEYS = 64, LINE = 16 };

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

/* c[r][x] = sum over d < depth of a[r * a_pitch + d] * b[d * b_pitch + x] for r < ROWS, x < COLUMNS. */
static void product(int64_t depth, const float *restrict a, int64_t a_pitch, const float *restrict b,
                    int64_t b_pitch, float c[ROWS][COLUMNS]) {
  four sum[ROWS][COLUMNS / 4] = {{{0}}};
  for (int64_t d = 0; d < depth; d++) {
    const four left = *(const four *)(b + d * b_pitch), right = *(const four *)(b + d * b_pitch + 4);
    for (int r = 0; r < ROWS; r++) {
      sum[r][0] += a[r * a_pitch + d] * left;
      sum[r][1] += a[r * a_pitch + d] * right;
    }
  }
  memcpy(c, sum, sizeof sum);
}

/* The same for the last features of a width that COLUMNS does not divide. */
static void narrow_product(int64_t depth, const float *restrict a, int64_t a_pitch, const float *restrict b,
                           int64_t b_pitch, int64_t columns, float c[ROWS][COLUMNS]) {
  memset(c, 0, sizeof(float[ROWS][COLUMNS]));
  for (int64_t d = 0; d < depth; d++)
    for (int r = 0; r < ROWS; r++)
      for (int64_t x = 0; x < columns; x++) c[r][x] += a[r * a_pitch + d] * b[d * b_pitch + x];
}

/* queries: [count, D] scaled, and zeros to a multiple of ROWS; keys: [D, KEYS] transposed. */
static void panel_scores(int64_t count, int64_t head_dim, const float *restrict queries,
                         const float *restrict keys, float *restrict scores, int64_t pitch) {
  float sum[ROWS][COLUMNS];
  for (int64_t r = 0; r < count; r += ROWS)
    for (int64_t j = 0; j < KEYS; j += COLUMNS) {
      product(head_dim, queries + r * head_dim, head_dim, keys + j, KEYS, sum);
      for (int x = 0; x < ROWS; x++) memcpy(scores + (r + x) * pitch + j, sum[x], sizeof sum[x]);
    }
}

/* output: [BLOCK_ROWS, Dv] += weights of keys [first, end) of the panel times their values. Rows that only fill
 * a group of ROWS hold numbers of no meaning. */
static void panel_output(const score_rows *rows, int64_t first, int64_t end, float *restrict output) {
  const int64_t width = rows->problem->value_dim;
  const float *value = rows->value + first * rows->value_pitch;
  float sum[ROWS][COLUMNS];
  for (int64_t r = 0; r < rows->count; r += ROWS)
    for (int64_t e = 0; e < width; e += COLUMNS) {
      const float *weights = rows->scores + r * rows->pitch + first;
      const int64_t columns = width - e < COLUMNS ? width - e : COLUMNS;
      if (columns == COLUMNS)
        product(end - first, weights, rows->pitch, value + e, rows->value_pitch, sum);
      else
        narrow_product(end - first, weights, rows->pitch, value + e, rows->value_pitch, columns, sum);
      for (int x = 0; x < ROWS; x++)
        for (int64_t c = 0; c < columns; c++) output[(r + x) * width + e + c] += sum[x][c];
    }
}

static void solve_block(score_rows *rows, float *queries, float *transposed, float *output) {
  const int64_t head_dim = rows->problem->head_dim, key_pitch = rows->problem->key.position;
  const int64_t width = rows->problem->value_dim;
  const int64_t keys = rows->keys.end - rows->keys.first;
  const float factor = score_rows_factor(rows->problem), *key = score_rows_key(rows);
  memset(queries, 0, (size_t)(BLOCK_ROWS * head_dim) * sizeof *queries);
  for (int64_t r = 0; r < rows->count; r++)
    for (int64_t d = 0; d < head_dim; d++) queries[r * head_dim + d] = factor * score_rows_query(rows, r)[d];

  for (int64_t first = 0; first < keys; first += KEYS) {
    const int64_t count = keys - first < KEYS ? keys - first : KEYS;
    if (count < KEYS) memset(transposed, 0, (size_t)(head_dim * KEYS) * sizeof *transposed);
    for (int64_t j = 0; j < count; j++) {
      const float *row = key + (first + j) * key_pitch;
      for (int64_t d = 0; d < head_dim; d++) transposed[d * KEYS + j] = row[d];
    }
    panel_scores(rows->count, head_dim, queries, transposed, rows->scores + first, rows->pitch);
  }
  for (int64_t r = 0; r < rows->count; r++) score_rows_softmax(rows, r);
  memset(output, 0, (size_t)(BLOCK_ROWS * width) * sizeof *output);
  for (int64_t first = 0; first < keys; first += KEYS)
    panel_output(rows, first, first + KEYS < keys ? first + KEYS : keys, output);
  for (int64_t r = 0; r < rows->count; r++) {
    memcpy(score_rows_out(rows, r), output + r * width, (size_t)width * sizeof *output);
    score_rows_finish(rows, r);
  }
}

/* Floats of a panel row: whole tiles of keys, and a line more, because rows that are a power of two apart would
 * share a few sets of the cache. */
static int64_t panel_pitch(const attn_problem *problem) {
  return (problem->key_length + KEYS - 1) / KEYS * KEYS + LINE;
}

static size_t thread_floats(const attn_problem *problem) {
  return (size_t)(BLOCK_ROWS * (problem->head_dim + problem->value_dim + panel_pitch(problem)) +
                  KEYS * problem->head_dim + problem->key_length * problem->value_dim);
}

static size_t float32_workspace(const attn_call *call) {
  const attn_problem *problem = call->problem;
  const int threads = call->threads;
  return (size_t)threads * thread_floats(problem) * sizeof(float);
}

static void run_float32(const attn_call *call) {
  const attn_problem *problem = call->problem;
  const attn_tensors *tensors = &call->tensors;
  void *workspace = call->workspace;
  const int64_t blocks = (problem->query_length + BLOCK_ROWS - 1) / BLOCK_ROWS;
  const int64_t heads = problem->batch * problem->query_heads;
  const tile_kernels *kernels = tile_select("portable", ATTN_FLOAT32);
#pragma omp parallel for num_threads(call->threads) schedule(dynamic, 1)
  for (int64_t item = 0; item < heads * blocks; item++) {
    float *queries = (float *)workspace + (size_t)omp_get_thread_num() * thread_floats(problem);
    float *transposed = queries + BLOCK_ROWS * problem->head_dim;
    const int64_t head = item / blocks, first = item % blocks * BLOCK_ROWS;
    const int64_t left = problem->query_length - first;
    score_rows rows = {kernels, problem, tensors, .first_row = first};
    rows.batch = head / problem->query_heads;
    rows.head = head % problem->query_heads;
    rows.count = left < BLOCK_ROWS ? left : BLOCK_ROWS;
    float *output = transposed + KEYS * problem->head_dim;
    rows.scores = output + BLOCK_ROWS * problem->value_dim;
    rows.pitch = panel_pitch(problem);
    rows.finite = rows.scores + BLOCK_ROWS * rows.pitch;
    score_rows_place(&rows);
    solve_block(&rows, queries, transposed, output);
  }
}

static size_t workspace_size(const attn_call *call) {
  return attn_widened_workspace(call, 0, float32_workspace);
}

static void run(const attn_call *call) { attn_widened_run(call, 0, run_float32); }

const attn_variant attn_blocked = {
    .name = "blocked",
    .summary = "the same loops tiled for registers and caches in portable C; one panel of scores",
    .function = ATTN_SOFTMAX,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP | ATTN_LSE |
                ATTN_WEIGHTS | ATTN_SINK | ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK |
                ATTN_QUERY_LENGTHS | ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5 | ATTN_ROPE | ATTN_DROPOUT,
    .types = ATTN_ALL_FLOATS,
    .traits = ATTN_BATCH_INVARIANT | ATTN_FLOAT32_WEIGHTS,
    .time_exponent = 2,
    .workspace_exponent = 1,
    .unsupported = attn_portable_unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
