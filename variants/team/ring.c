/* Ring attention (Liu, Zaharia and Abbeel 2023): each rank keeps its queries, and blocks of keys and values go round.
 * In step n a rank attends to the keys of the rank n before it, which it has received in the step before, while they
 * go on to the next rank and those of the rank n + 1 before it come: the messages are hidden behind the work, and no
 * rank ever has more than two blocks beside its own. Parts join by their log-sum-exps (block.h).
 *
 * Causal rows at the end see many keys and those at the start few: positions are dealt zigzag, so that all ranks have
 * as much to do (Brandon et al. 2023, "Striped attention", found the imbalance). In a window neighbours matter, and
 * slices are contiguous: a block then goes no farther than to the last rank that sees any of it.
 *
 * ring_striped deals positions as that paper does, always: a rank's rows lie all over the sequence and see as many
 * keys as those of any other, in a window too and whatever the offset, but for fewer than P in each row. For that
 * blocks go all the way round. */
#include <limits.h>
#include <mpi.h>
#include <string.h>

#include "block.h"

/* A limit on the left that hides something: one that hides nothing is to change no bit. */
static bool is_window(const attn_problem *p) {
  if (p->left == ATTN_UNLIMITED) return false;
  for (int64_t b = 0; b < p->batch; b++)
    if (p->query_length - 1 + attn_offset_of(p, b) - p->left > 0) return true;
  return false;
}

extern const attn_variant attn_ring_striped;

static attn_slicing slicing(const attn_call *call) {
  if (call->variant == &attn_ring_striped) return ATTN_STRIPED;
  return is_window(call->problem) ? ATTN_CONTIGUOUS : ATTN_ZIGZAG;
}

static attn_slice queries_of(const attn_call *call, int rank) {
  return attn_slice_of(slicing(call), call->problem->query_length, rank, call->ranks);
}

static attn_slice keys_of(const attn_call *call, int rank) {
  return attn_slice_of(slicing(call), call->problem->key_length, rank, call->ranks);
}

static int rank_from(const attn_call *call, int rank, int steps) {
  return ((rank + steps) % call->ranks + call->ranks) % call->ranks;
}

static bool rank_sees(const attn_call *call, int rank, int source) {
  const attn_slice queries = queries_of(call, rank), keys = keys_of(call, source);
  return block_slices_meet(call->problem, &queries, &keys);
}

/* How many steps the block of a rank goes: to the last rank that sees any of it. */
static int steps_of(const attn_call *call, int source) {
  int steps = call->ranks - 1;
  while (steps > 0 && !rank_sees(call, rank_from(call, source, steps), source)) steps--;
  return steps;
}

/* Elements of the keys, or values, of a rank: packed, as they travel. */
static size_t packed_bytes(const attn_call *call, int source, int64_t width) {
  const attn_problem *p = call->problem;
  const attn_slice keys = keys_of(call, source);
  return (size_t)(p->batch * p->kv_heads * attn_slice_length(&keys) * width) *
         block_element_bytes(p->key.type);
}

static uint64_t sent_bytes(const attn_call *call) {
  const attn_problem *p = call->problem;
  uint64_t bytes = 0;
  for (int source = 0; source < call->ranks; source++)
    if (rank_from(call, call->rank, -source) < steps_of(call, source))
      bytes += packed_bytes(call, source, p->head_dim) + packed_bytes(call, source, p->value_dim);
  return bytes;
}

/* Keys and values on their way. */
typedef struct travelling {
  char *key, *value;
} travelling;

typedef struct ring {
  const attn_call *call;
  attn_slice queries;
  travelling blocks[2]; /* in turns: the one at hand, and the one that comes */
  block_rows rows;
  block_scratch scratch;
} ring;

static size_t lay_out(const attn_call *call, void *workspace, ring *to) {
  const attn_problem *p = call->problem;
  block_memory memory = {.base = workspace};
  size_t key_bytes = 0, value_bytes = 0;
  *to = (ring){.call = call, .queries = queries_of(call, call->rank)};
  for (int source = 0; source < call->ranks; source++) {
    const size_t key = packed_bytes(call, source, p->head_dim),
                 value = packed_bytes(call, source, p->value_dim);
    if (key > key_bytes) key_bytes = key;
    if (value > value_bytes) value_bytes = value;
  }
  for (int n = 0; n < 2; n++)
    to->blocks[n] = (travelling){block_take(&memory, key_bytes), block_take(&memory, value_bytes)};
  to->rows = block_rows_take(&memory, p, attn_slice_length(&to->queries));
  to->scratch = block_scratch_take(&memory, call, &to->queries, slicing(call));
  return memory.used;
}

static size_t workspace_size(const attn_call *call) {
  ring measured;
  return lay_out(call, NULL, &measured);
}

static void pack(const attn_problem *p, const void *from, const attn_layout *layout, int64_t length,
                 int64_t width, char *to) {
  const size_t bytes = block_element_bytes(layout->type), row = (size_t)width * bytes;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->kv_heads; h++)
      for (int64_t j = 0; j < length; j++, to += row)
        memcpy(to,
               (const char *)from +
                   (b * layout->batch + h * layout->head + j * layout->position) * (int64_t)bytes,
               row);
}

static void pack_own(const ring *of) {
  const attn_call *call = of->call;
  const attn_problem *p = call->problem;
  const attn_slice keys = keys_of(call, call->rank);
  const int64_t length = attn_slice_length(&keys);
  pack(p, call->tensors.key, &p->key, length, p->head_dim, of->blocks[0].key);
  pack(p, call->tensors.value, &p->value, length, p->value_dim, of->blocks[0].value);
}

static void attend(ring *of, int source, const travelling *block) {
  const attn_problem *p = of->call->problem;
  const attn_slice slice = keys_of(of->call, source);
  const int64_t length = attn_slice_length(&slice);
  const block_keys keys = {.slice = slice,
                           .key = block->key,
                           .value = block->value,
                           .key_layout = attn_packed(p->key.type, p->kv_heads, length, p->head_dim),
                           .value_layout = attn_packed(p->value.type, p->kv_heads, length, p->value_dim)};
  block_attend(of->call, &of->queries, &keys, &of->scratch, &of->rows);
}

enum { KEYS_TAG, VALUES_TAG };

static void run(const attn_call *call) {
  ring of;
  const attn_problem *p = call->problem;
  const MPI_Comm all = *(const MPI_Comm *)call->communicator;
  const int next = rank_from(call, call->rank, 1), last = rank_from(call, call->rank, -1);
  lay_out(call, call->workspace, &of);
  pack_own(&of);
  block_rows_clear(&of.rows);
  for (int step = 0; step < call->ranks; step++) {
    const travelling *here = &of.blocks[step % 2], *coming = &of.blocks[(step + 1) % 2];
    const int source = rank_from(call, call->rank, -step), following = rank_from(call, last, -step);
    MPI_Request requests[4];
    int count = 0;
    if (step < steps_of(call, following) && step + 1 < call->ranks) {
      MPI_Irecv(coming->key, (int)packed_bytes(call, following, p->head_dim), MPI_BYTE, last, KEYS_TAG, all,
                &requests[count++]);
      MPI_Irecv(coming->value, (int)packed_bytes(call, following, p->value_dim), MPI_BYTE, last, VALUES_TAG,
                all, &requests[count++]);
    }
    if (step < steps_of(call, source)) {
      MPI_Isend(here->key, (int)packed_bytes(call, source, p->head_dim), MPI_BYTE, next, KEYS_TAG, all,
                &requests[count++]);
      MPI_Isend(here->value, (int)packed_bytes(call, source, p->value_dim), MPI_BYTE, next, VALUES_TAG, all,
                &requests[count++]);
    }
    if (step <= steps_of(call, source)) attend(&of, source, here);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  }
  block_finish(call, &of.queries, &of.rows);
}

static const char *unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int64_t width = attn_larger(p->head_dim, p->value_dim);
  if (packed_bytes(call, 0, width) > INT_MAX / 2) return "sends a message of more than 1 GiB";
  const attn_slice own = keys_of(call, 0);
  const char *refusal = block_steps_unsupported(p, own.step);
  return refusal ? refusal : schedule_unsupported(call);
}

const attn_variant attn_ring = {
    .name = "ring",
    .summary = "keys and values go round the ranks, hidden behind fused's work on the block at hand",
    .function = ATTN_SOFTMAX,
    .features = BLOCK_FEATURES,
    .types = SCHEDULE_TYPES,
    .place = ATTN_TEAM,
    .time_exponent = 2,
    .workspace_exponent = 1,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};

const attn_team_member attn_ring_member = {
    .variant = &attn_ring, .queries = slicing, .keys = slicing, .sent_bytes = sent_bytes};

const attn_variant attn_ring_striped = {
    .name = "ring_striped",
    .summary =
        "ring, each rank with every P-th position: all have as many keys to see, but for fewer than P a row",
    .function = ATTN_SOFTMAX,
    .features = BLOCK_STRIPED_FEATURES,
    .types = SCHEDULE_TYPES,
    .place = ATTN_TEAM,
    .time_exponent = 2,
    .workspace_exponent = 1,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};

const attn_team_member attn_ring_striped_member = {
    .variant = &attn_ring_striped, .queries = slicing, .keys = slicing, .sent_bytes = sent_bytes};
