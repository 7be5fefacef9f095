/* Variants of a team that are right where there is one key, whose value each row is, and tell each other something: one in a way
 * that nobody counts, one by functions that end some of its messages. */
#include <mpi.h>

#include "team.h"

static attn_slicing own(const attn_call *call) {
  (void)call;
  return ATTN_CONTIGUOUS;
}

static attn_slicing all(const attn_call *call) {
  (void)call;
  return ATTN_WHOLE;
}

static const char *unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
  return p->key_length == 1 && p->value_dim == 1 && p->batch == 1 && p->query_heads == 1
             ? NULL
             : "has one key, with a value of one number";
}

static uint64_t nothing(const attn_call *call) {
  (void)call;
  return 0;
}

static uint64_t a_number(const attn_call *call) { return call->ranks > 1 ? sizeof(float) : 0; }

static void write_rows(const attn_call *call, float value) {
  const attn_problem *p = call->problem;
  const attn_slice queries = attn_slice_of(ATTN_CONTIGUOUS, p->query_length, call->rank, call->ranks);
  for (int64_t i = 0; i < attn_slice_length(&queries); i++)
    ((float *)call->tensors.output)[i * p->output.position] = value;
}

static void broadcast(const attn_call *call) {
  float value = *(const float *)call->tensors.value;
  MPI_Bcast(&value, 1, MPI_FLOAT, 0, *(const MPI_Comm *)call->communicator);
  write_rows(call, value);
}

/* Around the ring, and out comes what was received. */
static void exchange(const attn_call *call) {
  const MPI_Comm team = *(const MPI_Comm *)call->communicator;
  const float value = *(const float *)call->tensors.value;
  float received = value;
  if (call->ranks > 1) {
    MPI_Request requests[2];
    int index, ended, indices[2];
    MPI_Irecv(&received, 1, MPI_FLOAT, (call->rank + call->ranks - 1) % call->ranks, 0, team, &requests[0]);
    MPI_Isend(&value, 1, MPI_FLOAT, (call->rank + 1) % call->ranks, 0, team, &requests[1]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Waitsome(2, requests, &ended, indices, MPI_STATUSES_IGNORE);
  }
  write_rows(call, received);
}

#define RIGHT_FOR_ONE_KEY                                                                                    \
  .function = ATTN_SOFTMAX, .types = 1 << ATTN_FLOAT32, .place = ATTN_TEAM, .traits = ATTN_FINITE,           \
  .time_exponent = 1, .unsupported = unsupported

static const attn_variant broadcasts = {
    .name = "broadcasts", .summary = "tells all by MPI_Bcast", RIGHT_FOR_ONE_KEY, .run = broadcast};
static const attn_variant exchanges = {
    .name = "exchanges", .summary = "waits for any and for some", RIGHT_FOR_ONE_KEY, .run = exchange};

static const attn_variant *const variants[] = {&broadcasts, &exchanges};
static const attn_team_member members[] = {
    {.variant = &broadcasts, .queries = own, .keys = all, .sent_bytes = nothing},
    {.variant = &exchanges, .queries = own, .keys = all, .sent_bytes = a_number}};
const attn_team_member *const attn_team_members[] = {&members[0], &members[1], NULL};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 2, variants, attn_team_sizes};
