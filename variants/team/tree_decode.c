/* Tree decoding (Shyam et al. 2024, "Tree Attention"): few queries, known to all ranks, and keys that are spread over them.
 * Each rank attends to its own keys; the largest score, the sum and the output of a row are then all that is left of
 * them, and joining two such triples is associative: log2 P messages up a binomial tree to rank 0, and as many down again.
 * The tree is walked in the same order each time, so that all ranks have the same bits.
 *
 * A rank below which nobody sees a key sends nothing. */
#include <limits.h>
#include <mpi.h>
#include <string.h>

#include "block.h"

static attn_slicing whole(const attn_call *call) {
  (void)call;
  return ATTN_WHOLE;
}

static attn_slicing contiguous(const attn_call *call) {
  (void)call;
  return ATTN_CONTIGUOUS;
}

static attn_slice queries_of(const attn_call *call) {
  return attn_slice_of(ATTN_WHOLE, call->problem->query_length, 0, 1);
}

static bool rank_sees(const attn_call *call, int rank) {
  const attn_slice queries = queries_of(call);
  const attn_slice keys = attn_slice_of(ATTN_CONTIGUOUS, call->problem->key_length, rank, call->ranks);
  return block_slices_meet(call->problem, &queries, &keys);
}

/* Whether any of `span` ranks from this one on sees a key: those below it in the tree, and it itself. */
static bool branch_sees(const attn_call *call, int rank, int span) {
  for (int n = rank; n < rank + span && n < call->ranks; n++)
    if (rank_sees(call, n)) return true;
  return false;
}

/* Of all rows: largest score, sum and output, one behind the other. */
static size_t state_bytes(const attn_call *call) {
  const attn_problem *p = call->problem;
  return (size_t)(p->batch * p->query_heads * p->query_length * (2 + p->value_dim)) * sizeof(float);
}

/* The lowest bit: how far up a rank hands its state on; of rank 0 beyond all ranks. */
static int branch_of(const attn_call *call, int rank) {
  int span = 1;
  while (span < call->ranks && !(rank & span)) span *= 2;
  return span;
}

static uint64_t sent_bytes(const attn_call *call) {
  const int rank = call->rank, own = branch_of(call, rank);
  uint64_t messages = rank > 0 && branch_sees(call, rank, own);
  for (int span = 1; span < own; span *= 2) messages += rank + span < call->ranks;
  return messages * state_bytes(call);
}

typedef struct tree {
  attn_slice queries;
  char *state, *other; /* as they travel */
  block_rows rows, others;
  block_scratch scratch;
} tree;

/* Rows whose parts lie in a message. */
static block_rows rows_in(const attn_problem *p, char *state) {
  block_rows rows = {.count = p->batch * p->query_heads * p->query_length, .width = p->value_dim};
  rows.max = (float *)(void *)state;
  rows.sum = rows.max + rows.count;
  rows.output = rows.sum + rows.count;
  return rows;
}

static size_t lay_out(const attn_call *call, void *workspace, tree *to) {
  block_memory memory = {.base = workspace};
  *to = (tree){.queries = queries_of(call)};
  to->state = block_take(&memory, state_bytes(call));
  to->other = block_take(&memory, state_bytes(call));
  to->scratch = block_scratch_take(&memory, call, &to->queries, ATTN_CONTIGUOUS);
  if (!workspace) return memory.used;
  to->rows = rows_in(call->problem, to->state);
  to->others = rows_in(call->problem, to->other);
  return memory.used;
}

static size_t workspace_size(const attn_call *call) {
  tree measured;
  return lay_out(call, NULL, &measured);
}

enum { UP_TAG, DOWN_TAG };

/* Joins the states of this rank's branch, and hands them on. */
static void reduce(const attn_call *call, tree *of, MPI_Comm all) {
  const int rank = call->rank, own = branch_of(call, rank), bytes = (int)state_bytes(call);
  for (int span = 1; span < own; span *= 2) {
    if (rank + span >= call->ranks || !branch_sees(call, rank + span, span)) continue;
    MPI_Recv(of->other, bytes, MPI_BYTE, rank + span, UP_TAG, all, MPI_STATUS_IGNORE);
    block_join(&of->rows, &of->others);
  }
  if (rank > 0 && branch_sees(call, rank, own)) MPI_Send(of->state, bytes, MPI_BYTE, rank - own, UP_TAG, all);
}

/* From rank 0 to all: each rank to those that handed theirs to it, the farthest first. */
static void broadcast(const attn_call *call, tree *of, MPI_Comm all) {
  const int rank = call->rank, own = branch_of(call, rank), bytes = (int)state_bytes(call);
  if (rank > 0) MPI_Recv(of->state, bytes, MPI_BYTE, rank - own, DOWN_TAG, all, MPI_STATUS_IGNORE);
  for (int span = own / 2; span > 0; span /= 2)
    if (rank + span < call->ranks) MPI_Send(of->state, bytes, MPI_BYTE, rank + span, DOWN_TAG, all);
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const MPI_Comm all = *(const MPI_Comm *)call->communicator;
  const block_keys keys = {.slice = attn_slice_of(ATTN_CONTIGUOUS, p->key_length, call->rank, call->ranks),
                           .key = call->tensors.key,
                           .value = call->tensors.value,
                           .key_layout = p->key,
                           .value_layout = p->value};
  tree of;
  lay_out(call, call->workspace, &of);
  block_rows_clear(&of.rows);
  block_attend(call, &of.queries, &keys, &of.scratch, &of.rows);
  reduce(call, &of, all);
  broadcast(call, &of, all);
  block_finish(call, &of.queries, &of.rows);
}

static const char *unsupported(const attn_call *call) {
  if (state_bytes(call) > INT_MAX) return "sends a message of more than 2 GiB";
  return schedule_unsupported(call);
}

const attn_variant attn_tree_decode = {
    .name = "tree_decode",
    .summary = "each rank attends to its keys; largest, sum and output of each row are joined up a tree",
    .function = ATTN_SOFTMAX,
    .features = BLOCK_FEATURES,
    .types = SCHEDULE_TYPES,
    .place = ATTN_TEAM,
    .time_exponent = 2,
    .workspace_exponent = 1,
    .showcase = "Tq:1",
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};

const attn_team_member attn_tree_decode_member = {
    .variant = &attn_tree_decode, .queries = whole, .keys = contiguous, .sent_bytes = sent_bytes};
