/* BLAS: what one gets from a good matrix library, as most frameworks' fallback does it: for every 256 rows of
 * a head one sgemm for the scores, a vectorised softmax, one sgemm for the output. The products run near the library's
 * speed, but all Tq x Tk scores pass through memory three times. */
#include <cblas.h>
#include <limits.h>
#include <omp.h>

#include "widen.h"
#include "tile/score_rows.h"

/* Rows of a head are shared out in blocks of fixed size: what sgemm rounds may depend on the block, so it
 * must not depend on the thread count. */
enum { BLOCK_ROWS = SCORE_MAX_ROWS };

/* Narrow rows are packed as they are converted. */
static bool is_leading_dimension(attn_layout layout, int64_t width) {
  const int64_t stride = layout.type == ATTN_FLOAT32 ? layout.position : width;
  return stride >= width && stride <= INT_MAX;
}

static const char *unsupported(const attn_call *call) {
  const attn_problem *problem = call->problem;
  if (!is_leading_dimension(problem->query, problem->head_dim) ||
      !is_leading_dimension(problem->key, problem->head_dim) ||
      !is_leading_dimension(problem->value, problem->value_dim) ||
      !is_leading_dimension(problem->output, problem->value_dim))
    return "sgemm needs position strides from the row's width to INT_MAX";
  if (problem->key_length > INT_MAX - 16) return "sgemm needs key lengths within int";
  return tile_refusal(call->isa, ATTN_FLOAT32);
}

static void solve_block(score_rows *rows) {
  const attn_problem *problem = rows->problem;
  const int64_t keys = rows->keys.end - rows->keys.first;
  const float factor = score_rows_factor(problem);
  /* With a factor of zero sgemm would not look at its operands, and miss those that are not finite. */
  const bool is_zero = factor == 0;
  if (keys > 0)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows->count, (int)keys, (int)problem->head_dim,
                is_zero ? 1 : factor, score_rows_query(rows, 0), (int)problem->query.position,
                score_rows_key(rows), (int)problem->key.position, 0, rows->scores, (int)rows->pitch);
  for (int64_t r = 0; is_zero && r < rows->count; r++)
    for (int64_t j = 0; j < keys; j++) rows->scores[r * rows->pitch + j] *= factor;
  for (int64_t r = 0; r < rows->count; r++) score_rows_softmax(rows, r);
  if (keys > 0 && problem->value_dim > 0)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows->count, (int)problem->value_dim,
                (int)keys, 1, rows->scores, (int)rows->pitch, rows->value, (int)rows->value_pitch, 0,
                score_rows_out(rows, 0), (int)problem->output.position);
  for (int64_t r = 0; r < rows->count; r++) score_rows_finish(rows, r);
}

static size_t float32_workspace(const attn_call *call) {
  const attn_problem *problem = call->problem;
  const int threads = call->threads;
  const int64_t scores = problem->query_length * score_rows_pitch(problem->key_length);
  return (size_t)(scores + threads * problem->key_length * problem->value_dim) * sizeof(float);
}

/* A sequential build of the library has no locks: called from two threads at once, it was seen to give wrong
 * sums. */
static int threads_for(const attn_call *call) {
  return openblas_get_parallel() == OPENBLAS_SEQUENTIAL ? 1 : call->threads;
}

/* A thread has the same blocks of every head, and so the same part of the workspace: heads need not wait for each
 * other. In turn, for under a causal mask the last take longest. */
static void run_float32(const attn_call *call) {
  const attn_problem *problem = call->problem;
  const attn_tensors *tensors = &call->tensors;
  void *workspace = call->workspace;
  const int64_t pitch = score_rows_pitch(problem->key_length);
  const tile_kernels *kernels = tile_select_floats(call->isa, ATTN_FLOAT32);
  /* The library must not start threads of its own inside ours; its setting is put back afterwards. */
  const int library_threads = openblas_get_num_threads();
  if (library_threads != 1) openblas_set_num_threads(1);
#pragma omp parallel num_threads(threads_for(call))
  for (int64_t b = 0; b < problem->batch; b++)
    for (int64_t h = 0; h < problem->query_heads; h++)
#pragma omp for schedule(static, 1) nowait
      for (int64_t first = 0; first < problem->query_length; first += BLOCK_ROWS) {
        const int64_t left = problem->query_length - first;
        score_rows rows = {kernels, problem, tensors, b, h, .first_row = first, .pitch = pitch};
        rows.count = left < BLOCK_ROWS ? left : BLOCK_ROWS;
        rows.scores = (float *)workspace + first * pitch;
        rows.finite = (float *)workspace + problem->query_length * pitch +
                      omp_get_thread_num() * problem->key_length * problem->value_dim;
        score_rows_place(&rows);
        solve_block(&rows);
      }
  if (library_threads != 1) openblas_set_num_threads(library_threads);
}

static size_t workspace_size(const attn_call *call) {
  return attn_widened_workspace(call, 0, float32_workspace);
}

static void run(const attn_call *call) { attn_widened_run(call, 0, run_float32); }

const attn_variant attn_blas = {
    .name = "blas",
    .summary = "sgemm, softmax, sgemm with OpenBLAS; all T x T scores of a head",
    .function = ATTN_SOFTMAX,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP | ATTN_LSE |
                ATTN_WEIGHTS | ATTN_SINK | ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK |
                ATTN_QUERY_LENGTHS | ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5 | ATTN_ROPE | ATTN_DROPOUT,
    .types = ATTN_ALL_FLOATS,
    .traits = ATTN_BATCH_INVARIANT | ATTN_FLOAT32_WEIGHTS,
    .time_exponent = 2,
    .workspace_exponent = 2,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
