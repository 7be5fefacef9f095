/* DeepSpeed-Ulysses (Jacobs et al. 2023): ranks own slices of the sequence, but each attends for some of the heads, with all
 * queries and keys. One exchange of all with all brings the slices of a rank's heads together, fused does its work on them
 * as if there were no team, and a second exchange takes the outputs back to the rows' owners. What a rank sends does not
 * grow with the number of ranks, but there cannot be more ranks than heads.
 *
 * Where ranks share a group of heads, each gets the group's keys and values. */
#include <limits.h>
#include <mpi.h>
#include <string.h>

#include "block.h"

enum { MOST_RANKS = 1024 };

static attn_slicing slicing(const attn_call *call) {
  (void)call;
  return ATTN_CONTIGUOUS;
}

static attn_slice queries_of(const attn_call *call, int rank) {
  return attn_slice_of(ATTN_CONTIGUOUS, call->problem->query_length, rank, call->ranks);
}

static attn_slice keys_of(const attn_call *call, int rank) {
  return attn_slice_of(ATTN_CONTIGUOUS, call->problem->key_length, rank, call->ranks);
}

/* The heads that a rank attends for, and those of keys that these read. */
typedef struct share {
  int64_t first, count, kv_first, kv_count;
} share;

static share share_of(const attn_call *call, int rank) {
  const attn_problem *p = call->problem;
  const int64_t group = p->kv_heads > 0 ? p->query_heads / p->kv_heads : 1;
  share of = {.first = attn_piece_first(p->query_heads, rank, call->ranks)};
  of.count = attn_piece_first(p->query_heads, rank + 1, call->ranks) - of.first;
  of.kv_first = of.count > 0 ? of.first / group : 0;
  of.kv_count = of.count > 0 ? (of.first + of.count - 1) / group + 1 - of.kv_first : 0;
  return of;
}

/* ---- what goes from one rank to another ---- */

/* Queries, keys and values of a rank's slice for the heads of another. */
static size_t inputs_bytes(const attn_call *call, int owner, int worker) {
  const attn_problem *p = call->problem;
  const share of = share_of(call, worker);
  const attn_slice queries = queries_of(call, owner), keys = keys_of(call, owner);
  return (size_t)(p->batch * (of.count * queries.length[0] * p->head_dim +
                              of.kv_count * keys.length[0] * (p->head_dim + p->value_dim))) *
         block_element_bytes(p->query.type);
}

/* Outputs, and log-sum-exps where they are wanted, of a rank's heads for the rows of another. */
static size_t outputs_bytes(const attn_call *call, int worker, int owner) {
  const attn_problem *p = call->problem;
  const share of = share_of(call, worker);
  const attn_slice queries = queries_of(call, owner);
  const int64_t rows = p->batch * of.count * queries.length[0];
  return (size_t)rows *
         ((size_t)p->value_dim * block_element_bytes(p->output.type) + (p->lse.type ? sizeof(float) : 0));
}

static uint64_t sent_bytes(const attn_call *call) {
  uint64_t bytes = 0;
  for (int rank = 0; rank < call->ranks; rank++)
    if (rank != call->rank)
      bytes += inputs_bytes(call, call->rank, rank) + outputs_bytes(call, call->rank, rank);
  return bytes;
}

/* ---- memory ---- */

typedef struct exchange {
  int out[MOST_RANKS], out_at[MOST_RANKS], in[MOST_RANKS], in_at[MOST_RANKS];
  size_t out_bytes, in_bytes;
} exchange;

/* MPI takes ints: what has no room in one is refused by the sums (unsupported). */
static void plan_inputs(const attn_call *call, exchange *plan) {
  *plan = (exchange){.out_bytes = 0};
  for (int rank = 0; rank < call->ranks; rank++) {
    const size_t out = inputs_bytes(call, call->rank, rank), in = inputs_bytes(call, rank, call->rank);
    plan->out_at[rank] = (int)plan->out_bytes;
    plan->in_at[rank] = (int)plan->in_bytes;
    plan->out[rank] = (int)out;
    plan->in[rank] = (int)in;
    plan->out_bytes += out;
    plan->in_bytes += in;
  }
}

static void plan_outputs(const attn_call *call, exchange *plan) {
  *plan = (exchange){.out_bytes = 0};
  for (int rank = 0; rank < call->ranks; rank++) {
    const size_t out = outputs_bytes(call, call->rank, rank), in = outputs_bytes(call, rank, call->rank);
    plan->out_at[rank] = (int)plan->out_bytes;
    plan->in_at[rank] = (int)plan->in_bytes;
    plan->out[rank] = (int)out;
    plan->in[rank] = (int)in;
    plan->out_bytes += out;
    plan->in_bytes += in;
  }
}

static schedule_shape choose(const attn_problem *problem, const tile_kernels *kernels) {
  (void)problem;
  return (schedule_shape){.heads = 1, .rows = kernels->max_rows};
}

/* The whole sequence for those heads of a share that read one head of keys: a problem of its own, since a share may have
 * parts of groups. */
typedef struct group {
  int64_t first, count, kv; /* heads, of the share, and that of keys */
} group;

static group group_of(const attn_call *call, const share *of, int64_t n) {
  const attn_problem *p = call->problem;
  const int64_t size = p->query_heads / p->kv_heads, kv = of->kv_first + n;
  const int64_t first = attn_larger(kv * size, of->first),
                end = attn_smaller((kv + 1) * size, of->first + of->count);
  return (group){first - of->first, end - first, n};
}

static attn_problem problem_of(const attn_problem *whole, const share *of, int64_t heads) {
  attn_problem part = *whole;
  part.query_heads = heads;
  part.kv_heads = 1;
  part.query = attn_packed(whole->query.type, of->count, whole->query_length, whole->head_dim);
  part.key = attn_packed(whole->key.type, of->kv_count, whole->key_length, whole->head_dim);
  part.value = attn_packed(whole->value.type, of->kv_count, whole->key_length, whole->value_dim);
  part.output = attn_packed(whole->output.type, of->count, whole->query_length, whole->value_dim);
  if (whole->lse.type) part.lse = attn_packed(ATTN_FLOAT32, of->count, whole->query_length, 1);
  return part;
}

static attn_call call_of(const attn_call *call, const attn_problem *part) {
  return (attn_call){.size = sizeof(attn_call),
                     .variant = call->variant,
                     .problem = part,
                     .threads = call->threads,
                     .isa = call->isa,
                     .ranks = 1};
}

typedef struct ulysses {
  share own;
  char *out, *in; /* of either exchange */
  char *query, *key, *value, *output;
  float *lse;
  void *workspace;
} ulysses;

static size_t lay_out(const attn_call *call, void *workspace, ulysses *to) {
  const attn_problem *p = call->problem;
  const size_t bytes = block_element_bytes(p->query.type);
  block_memory memory = {.base = workspace};
  exchange inputs, outputs;
  size_t inner_bytes = 0;
  plan_inputs(call, &inputs);
  plan_outputs(call, &outputs);
  to->own = share_of(call, call->rank);
  const int64_t rows = p->batch * to->own.count * p->query_length,
                keys = p->batch * to->own.kv_count * p->key_length;
  for (int64_t n = 0; n < to->own.kv_count; n++) {
    const attn_problem part = problem_of(p, &to->own, group_of(call, &to->own, n).count);
    const attn_call inner = call_of(call, &part);
    const size_t needed = schedule_workspace_size(&inner, choose);
    if (needed > inner_bytes) inner_bytes = needed;
  }
  to->out = block_take(&memory, inputs.out_bytes > outputs.out_bytes ? inputs.out_bytes : outputs.out_bytes);
  to->in = block_take(&memory, inputs.in_bytes > outputs.in_bytes ? inputs.in_bytes : outputs.in_bytes);
  to->query = block_take(&memory, (size_t)(rows * p->head_dim) * bytes);
  to->key = block_take(&memory, (size_t)(keys * p->head_dim) * bytes);
  to->value = block_take(&memory, (size_t)(keys * p->value_dim) * bytes);
  to->output = block_take(&memory, (size_t)(rows * p->value_dim) * block_element_bytes(p->output.type));
  to->lse = block_take(&memory, p->lse.type ? (size_t)rows * sizeof(float) : 0);
  to->workspace = block_take(&memory, inner_bytes);
  return memory.used;
}

static size_t workspace_size(const attn_call *call) {
  ulysses measured;
  return lay_out(call, NULL, &measured);
}

/* ---- packages ---- */

typedef enum direction { PACK, UNPACK } direction;

/* Rows of heads [first, first + heads) and positions [from, from + length) of a tensor to a package, or back. */
static char *copy_rows(direction way, void *tensor, const attn_layout *layout, int64_t batch, int64_t first,
                       int64_t heads, int64_t from, int64_t length, int64_t width, char *package) {
  const size_t bytes = block_element_bytes(layout->type), row = (size_t)width * bytes;
  for (int64_t b = 0; b < batch; b++)
    for (int64_t h = first; h < first + heads; h++)
      for (int64_t i = from; i < from + length; i++, package += row) {
        char *at =
            (char *)tensor + (b * layout->batch + h * layout->head + i * layout->position) * (int64_t)bytes;
        memcpy(way == PACK ? package : at, way == PACK ? at : package, row);
      }
  return package;
}

static void pack_inputs(const attn_call *call, int worker, char *package) {
  const attn_problem *p = call->problem;
  const share of = share_of(call, worker);
  const int64_t queries = queries_of(call, call->rank).length[0], keys = keys_of(call, call->rank).length[0];
  void *query = (void *)(uintptr_t)call->tensors.query, *key = (void *)(uintptr_t)call->tensors.key,
       *value = (void *)(uintptr_t)call->tensors.value;
  package = copy_rows(PACK, query, &p->query, p->batch, of.first, of.count, 0, queries, p->head_dim, package);
  package = copy_rows(PACK, key, &p->key, p->batch, of.kv_first, of.kv_count, 0, keys, p->head_dim, package);
  copy_rows(PACK, value, &p->value, p->batch, of.kv_first, of.kv_count, 0, keys, p->value_dim, package);
}

static void unpack_inputs(const attn_call *call, const ulysses *to, int owner, char *package) {
  const attn_problem *p = call->problem;
  const attn_problem part = problem_of(p, &to->own, to->own.count);
  const attn_slice q = queries_of(call, owner), k = keys_of(call, owner);
  package = copy_rows(UNPACK, to->query, &part.query, p->batch, 0, to->own.count, q.first[0], q.length[0],
                      p->head_dim, package);
  package = copy_rows(UNPACK, to->key, &part.key, p->batch, 0, to->own.kv_count, k.first[0], k.length[0],
                      p->head_dim, package);
  copy_rows(UNPACK, to->value, &part.value, p->batch, 0, to->own.kv_count, k.first[0], k.length[0],
            p->value_dim, package);
}

static void pack_outputs(const attn_call *call, const ulysses *from, int owner, char *package) {
  const attn_problem *p = call->problem;
  const attn_problem part = problem_of(p, &from->own, from->own.count);
  const attn_slice q = queries_of(call, owner);
  package = copy_rows(PACK, from->output, &part.output, p->batch, 0, from->own.count, q.first[0], q.length[0],
                      p->value_dim, package);
  if (p->lse.type)
    copy_rows(PACK, from->lse, &part.lse, p->batch, 0, from->own.count, q.first[0], q.length[0], 1, package);
}

static void unpack_outputs(const attn_call *call, int worker, char *package) {
  const attn_problem *p = call->problem;
  const share of = share_of(call, worker);
  const int64_t queries = queries_of(call, call->rank).length[0];
  package = copy_rows(UNPACK, call->tensors.output, &p->output, p->batch, of.first, of.count, 0, queries,
                      p->value_dim, package);
  if (p->lse.type)
    copy_rows(UNPACK, call->tensors.lse, &p->lse, p->batch, of.first, of.count, 0, queries, 1, package);
}

/* ---- the work ---- */

static void *at_head(const void *tensor, const attn_layout *layout, int64_t head) {
  if (!tensor) return NULL;
  const size_t bytes = layout->type == ATTN_UINT8 ? 1 : block_element_bytes(layout->type);
  return (char *)(uintptr_t)tensor + head * layout->head * (int64_t)bytes;
}

static void attend(const attn_call *call, const ulysses *of, int64_t n) {
  const attn_problem *p = call->problem;
  const group heads = group_of(call, &of->own, n);
  const int64_t first = of->own.first + heads.first; /* among all */
  attn_problem part = problem_of(p, &of->own, heads.count);
  attn_call inner = call_of(call, &part);
  inner.workspace = of->workspace;
  inner.tensors.query = at_head(of->query, &part.query, heads.first);
  inner.tensors.key = at_head(of->key, &part.key, heads.kv);
  inner.tensors.value = at_head(of->value, &part.value, heads.kv);
  inner.tensors.output = at_head(of->output, &part.output, heads.first);
  inner.tensors.lse = p->lse.type ? at_head(of->lse, &part.lse, heads.first) : NULL;
  inner.tensors.sink = at_head(call->tensors.sink, &p->sink, first);
  part.alibi_data = at_head(p->alibi_data, &p->alibi, first);
  part.relative_data = at_head(p->relative_data, &p->relative, first);
  part.t5_data = at_head(p->t5_data, &p->t5, first);
  schedule_run(&inner, choose);
}

static void run(const attn_call *call) {
  const MPI_Comm all = *(const MPI_Comm *)call->communicator;
  ulysses of;
  exchange plan;
  lay_out(call, call->workspace, &of);
  plan_inputs(call, &plan);
  for (int rank = 0; rank < call->ranks; rank++) pack_inputs(call, rank, of.out + plan.out_at[rank]);
  MPI_Alltoallv(of.out, plan.out, plan.out_at, MPI_BYTE, of.in, plan.in, plan.in_at, MPI_BYTE, all);
  for (int rank = 0; rank < call->ranks; rank++) unpack_inputs(call, &of, rank, of.in + plan.in_at[rank]);
  for (int64_t n = 0; n < of.own.kv_count; n++) attend(call, &of, n);
  plan_outputs(call, &plan);
  for (int rank = 0; rank < call->ranks; rank++) pack_outputs(call, &of, rank, of.out + plan.out_at[rank]);
  MPI_Alltoallv(of.out, plan.out, plan.out_at, MPI_BYTE, of.in, plan.in, plan.in_at, MPI_BYTE, all);
  for (int rank = 0; rank < call->ranks; rank++) unpack_outputs(call, rank, of.in + plan.in_at[rank]);
}

static const char *unsupported(const attn_call *call) {
  exchange plan;
  if (call->ranks > 1 && call->ranks > call->problem->query_heads)
    return "needs a head for each rank at least, and there are fewer";
  if (call->ranks > MOST_RANKS) return "takes at most 1024 ranks";
  plan_inputs(call, &plan);
  if (plan.out_bytes > INT_MAX || plan.in_bytes > INT_MAX) return "exchanges more than 2 GiB at once";
  plan_outputs(call, &plan);
  if (plan.out_bytes > INT_MAX || plan.in_bytes > INT_MAX) return "exchanges more than 2 GiB at once";
  return schedule_unsupported(call);
}

/* Masks and biases would have to be exchanged too, and are as large as all scores. */
const attn_variant attn_ulysses = {
    .name = "ulysses",
    .summary = "two exchanges of all with all: each rank attends to the whole sequence for some of the heads",
    .function = ATTN_SOFTMAX,
    .features = (BLOCK_FEATURES | ATTN_ROPE | ATTN_PATTERN) & ~(uint64_t)(ATTN_MASK | ATTN_BIAS),
    .types = SCHEDULE_TYPES,
    .place = ATTN_TEAM,
    .time_exponent = 2,
    .workspace_exponent = 1,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};

const attn_team_member attn_ulysses_member = {
    .variant = &attn_ulysses, .queries = slicing, .keys = slicing, .sent_bytes = sent_bytes};
