/* Fused: scores never leave the registers (passage.h). A block has 64 or 128 query rows of a head, 16 or 32 of
 * them in each of its four warps, and is all that reads those; products are the matrix units' (mma.m16n8k16),
 * and keys and values are copied (cp.async) while those before are multiplied. Against cuda_naive nothing of
 * size Tq Tk is written, and each key that is read serves all rows of the block; 32 rows in a warp make of
 * each fragment that is read from shared memory twice the products, without which that memory and not the
 * matrix units would be the limit.
 *
 * The names behind cuda_fused change which rows make a tile, and no bit of a row:
 * - cuda_sliding_window cuts it to the window: R rows together see W + R - 1 keys of which each needs W
 *   (Beltagy et al. 2020).
 * - cuda_multi_query and cuda_grouped_query (Shazeer 2019; Ainslie et al. 2023) stack the heads that share a
 *   key/value head, position by position: keys are read once for all of them, and few queries of many heads
 *   fill a tile. */
#include "passage.h"
#include "variants.h"

namespace {

/* ---- device ---- */

/* A block for each tile of rows of each stack of each batch entry; the last rows first, which see most keys
 * below a causal diagonal. */
template <class shape>
__global__ void __launch_bounds__(TILE_THREADS)
    solve_rows(attn_problem problem, attn_tensors tensors, int heads, int tiles) {
  ATTN_DYNAMIC_SHARED(shared);
  const int tile = tiles - 1 - (int)(blockIdx.x % tiles), stacks = (int)(problem.query_heads / heads);
  const int at = (int)(blockIdx.x / tiles);
  const row_stack stack = {at / stacks, (int64_t)(at % stacks) * heads, heads,
                           (int)problem.query_length * heads};
  passage<shape> keys(problem, tensors, stack, tile * shape::rows, {0, (int)problem.key_length}, shared);
  row_state<shape> state;
  keys.go(state);
  store_rows(problem, tensors, stack, keys, state);
  if (keys.lacks_values()) add_nonfinite_values(problem, tensors, stack, keys);
}

/* ---- host ---- */

struct row_kernel {
  void (*function)(attn_problem, attn_tensors, int, int);
  int rows;
  size_t shared_bytes;
};

template <attn_type type, int width, int row_tiles> row_kernel kernel_of() {
  typedef passage_shape<type, width, row_tiles, false> shape;
  return {solve_rows<shape>, shape::rows, shape::shared_bytes};
}

/* Of width 256 the outputs of 32 rows would not fit the registers. */
template <attn_type type> row_kernel choose_kernel(const attn_problem *p, int64_t rows) {
  const int64_t width = p->head_dim > p->value_dim ? p->head_dim : p->value_dim;
  if (width > 128) return kernel_of<type, 256, 1>();
  if (width > 64) return rows > 64 ? kernel_of<type, 128, 2>() : kernel_of<type, 128, 1>();
  return rows > 64 ? kernel_of<type, 64, 2>() : kernel_of<type, 64, 1>();
}

/* A stack of so many heads, in tiles for so many rows. */
void launch(const attn_call *call, int64_t heads, int64_t rows) {
  const attn_problem *p = call->problem;
  const row_kernel kernel = p->query.type == ATTN_BFLOAT16 ? choose_kernel<ATTN_BFLOAT16>(p, rows)
                                                           : choose_kernel<ATTN_FLOAT16>(p, rows);
  const int64_t tiles = (p->query_length * heads + kernel.rows - 1) / kernel.rows;
  const int64_t blocks = heads > 0 ? p->batch * (p->query_heads / heads) * tiles : 0;
  if (blocks > 0)
    attn_launch(kernel.function, dim3((unsigned)blocks), dim3(TILE_THREADS), kernel.shared_bytes,
                call->stream, *p, call->tensors, (int)heads, (int)tiles);
}

int64_t group_of(const attn_problem *p) { return p->kv_heads > 0 ? p->query_heads / p->kv_heads : 0; }

void run_heads(const attn_call *call) { launch(call, 1, call->problem->query_length); }

void run_groups(const attn_call *call) {
  launch(call, group_of(call->problem), group_of(call->problem) * call->problem->query_length);
}

/* 128 rows where they see no more than half as many keys again as 64. */
void run_window(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int64_t length = p->key_length, window = 64;
  const bool is_narrow = p->left < length && p->right < length && p->left + p->right < window;
  launch(call, 1, is_narrow ? 1 : p->query_length);
}

} // namespace

const char *cuda_narrow_refusal(const attn_problem *p, int64_t widest) {
  const int64_t most = INT64_C(1) << 30;
  if (p->key.type != p->query.type || p->value.type != p->query.type)
    return "takes queries, keys and values of one type";
  if (p->output.type != p->query.type && p->output.type != ATTN_FLOAT32)
    return "gives outputs of the queries' type, or float32";
  if (p->head_dim > widest || p->value_dim > widest)
    return widest == 256 ? "takes head dimensions up to 256" : "takes head dimensions up to 128";
  /* Positions, rows of a stack and blocks are counted in 32 bits. */
  if (p->key_length > most || p->query_length > most || p->query_length * group_of(p) > most ||
      p->batch * p->query_heads > most || p->batch * p->query_heads * (p->query_length / 64 + 1) > most)
    return "takes at most 2^30 positions, and as many rows";
  return nullptr;
}

static const char *refuse(const attn_call *call) { return cuda_narrow_refusal(call->problem, 256); }

static const char *refuse_heads(const attn_call *call) {
  return call->problem->kv_heads == 1 ? refuse(call) : "needs a single key/value head";
}

enum { TRAITS = ATTN_BATCH_INVARIANT | ATTN_DECODE_INVARIANT };

const attn_variant cuda_fused = {
    "cuda_fused",
    "online softmax in registers, matrix units, copies under way",
    ATTN_SOFTMAX,
    CUDA_SOFTMAX_FEATURES,
    CUDA_NARROW_TYPES,
    ATTN_CUDA,
    TRAITS,
    2,
    0,
    "full bf16",
    refuse,
    nullptr,
    run_heads,
};

const attn_variant cuda_sliding_window = {
    "cuda_sliding_window",
    "cuda_fused over a band, with tiles cut to the window: O(T W)",
    ATTN_SOFTMAX,
    CUDA_SOFTMAX_FEATURES,
    CUDA_NARROW_TYPES,
    ATTN_CUDA,
    TRAITS,
    1,
    0,
    "bf16/window:512",
    refuse,
    nullptr,
    run_window,
};

const attn_variant cuda_multi_query = {
    "cuda_multi_query",
    "cuda_fused, with all query heads stacked on the one key/value head",
    ATTN_SOFTMAX,
    CUDA_SOFTMAX_FEATURES,
    CUDA_NARROW_TYPES,
    ATTN_CUDA,
    TRAITS,
    2,
    0,
    "bf16/Hkv:1",
    refuse_heads,
    nullptr,
    run_groups,
};

const attn_variant cuda_grouped_query = {
    "cuda_grouped_query",
    "cuda_fused, with the query heads of a group stacked on their shared keys and values",
    ATTN_SOFTMAX,
    CUDA_SOFTMAX_FEATURES,
    CUDA_NARROW_TYPES,
    ATTN_CUDA,
    TRAITS,
    2,
    0,
    "bf16/Hkv:2",
    refuse,
    nullptr,
    run_groups,
};
