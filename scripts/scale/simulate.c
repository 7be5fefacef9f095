/* Variants of a team among the ranks that SimGrid's SMPI simulates: each rank calls a variant's `run` as the harness
 * does, with messages of their real sizes, and the time is that of the simulated network and of model.c. What is in a
 * message does not matter: all ranks share one workspace, which is a small piece of memory mapped again and again.
 *
 *     smpirun -np P ... simulate RATES CORES CACHE_BYTES BYTES_PER_SECOND VARIANT:PROBLEM...
 *
 * A problem is H,Hkv,D,Tq,Tk,full or causal. A line for each: variant, P, Tq, Tk, seconds, seconds on one node, bytes
 * that the rank sends which sends most, and the bytes that it declares. */
#include <inttypes.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

extern const attn_team_member attn_ring_member, attn_ring_striped_member, attn_ulysses_member,
    attn_tree_decode_member;
static const attn_team_member *const members[] = {&attn_ring_member, &attn_ring_striped_member,
                                                  &attn_ulysses_member, &attn_tree_decode_member};

enum { MOST_RANKS = 4096 };

/* All ranks are one process, whose globals they share; it changes between them within MPI alone. */
static uint64_t sent[MOST_RANKS];
static struct {
  size_t workspace_bytes;
  void *workspace;
  double slowest_seconds;
  uint64_t most_sent;
  bool is_wrong;
} shared;

static void spend(double seconds) { smpi_execute_flops(seconds * 1e9); } /* of hosts of 1 Gflop/s */

/* ---- MPI's functions that these variants call: what is sent is counted ---- */

static void count(MPI_Comm all, int to, const void *buffer, int64_t bytes) {
  int rank = 0;
  /* What is beyond would not be there to be sent. */
  if ((const char *)buffer + bytes > (const char *)shared.workspace + shared.workspace_bytes)
    MPI_Abort(all, 3);
  PMPI_Comm_rank(all, &rank);
  model_settle();
  if (to != rank) sent[rank] += (uint64_t)bytes;
}

int MPI_Isend(const void *buffer, int bytes, MPI_Datatype type, int to, int tag, MPI_Comm all,
              MPI_Request *request) {
  count(all, to, buffer, bytes);
  return PMPI_Isend(buffer, bytes, type, to, tag, all, request);
}

int MPI_Send(const void *buffer, int bytes, MPI_Datatype type, int to, int tag, MPI_Comm all) {
  count(all, to, buffer, bytes);
  return PMPI_Send(buffer, bytes, type, to, tag, all);
}

int MPI_Alltoallv(const void *out, const int *out_bytes, const int *out_at, MPI_Datatype out_type, void *in,
                  const int *in_bytes, const int *in_at, MPI_Datatype in_type, MPI_Comm all) {
  int ranks = 0;
  PMPI_Comm_size(all, &ranks);
  for (int rank = 0; rank < ranks; rank++)
    count(all, rank, (const char *)out + out_at[rank], out_bytes[rank]);
  return PMPI_Alltoallv(out, out_bytes, out_at, out_type, in, in_bytes, in_at, in_type, all);
}

/* ---- a point ---- */

typedef struct point {
  const attn_team_member *member;
  attn_problem problem;
} point;

enum { NUMBERS = 5 };

static bool read_point(const char *words, point *to) {
  int64_t number[NUMBERS];
  const size_t length = strcspn(words, ":");
  const char *at = words + length;
  for (int n = 0; n < NUMBERS; n++) {
    char *end;
    if (!*at) return false;
    number[n] = strtoll(at + 1, &end, 10);
    if (number[n] < 1 || *end != ',') return false;
    at = end;
  }
  const bool causal = strcmp(at + 1, "causal") == 0;
  *to = (point){.member = NULL,
                .problem = {.function = ATTN_SOFTMAX,
                            .features = causal ? ATTN_BAND : 0,
                            .batch = 1,
                            .query_heads = number[0],
                            .kv_heads = number[1],
                            .query_length = number[3],
                            .key_length = number[4],
                            .head_dim = number[2],
                            .value_dim = number[2],
                            .scale = 1,
                            .left = ATTN_UNLIMITED,
                            .right = causal ? 0 : ATTN_UNLIMITED}};
  for (size_t n = 0; n < sizeof members / sizeof *members; n++)
    if (strlen(members[n]->variant->name) == length && strncmp(members[n]->variant->name, words, length) == 0)
      to->member = members[n];
  return to->member && (causal || strcmp(at + 1, "full") == 0);
}

/* Messages lie at the beginning of each of these workspaces; what follows is never touched, nor mapped. */
static const size_t most_mapped = ((size_t)4 << 30) + (1 << 20);

static void begin_point(size_t bytes, int rank) {
  PMPI_Barrier(MPI_COMM_WORLD);
  if (bytes > most_mapped) bytes = most_mapped;
  if (bytes > shared.workspace_bytes) shared.workspace_bytes = bytes;
  sent[rank] = 0;
  PMPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    shared.workspace = SMPI_SHARED_MALLOC(shared.workspace_bytes + 1);
    model_begin(spend);
  }
  PMPI_Barrier(MPI_COMM_WORLD);
}

static void run_point(const point *of, int rank, int ranks) {
  const attn_variant *variant = of->member->variant;
  MPI_Comm all = MPI_COMM_WORLD;
  attn_problem own = of->problem;
  attn_call call = {.size = sizeof call,
                    .variant = variant,
                    .problem = &own,
                    .threads = 1,
                    .rank = rank,
                    .ranks = ranks,
                    .communicator = &all};
  const attn_slice queries = attn_slice_of(of->member->queries(&call), own.query_length, rank, ranks),
                   keys = attn_slice_of(of->member->keys(&call), own.key_length, rank, ranks);
  own.query = attn_packed(ATTN_BFLOAT16, own.query_heads, attn_slice_length(&queries), own.head_dim);
  own.key = own.value = attn_packed(ATTN_BFLOAT16, own.kv_heads, attn_slice_length(&keys), own.head_dim);
  own.output = own.query;
  const char *refusal = variant->unsupported(&call);
  if (refusal) {
    if (rank == 0) printf("# %s %d %" PRId64 " %s\n", variant->name, ranks, own.key_length, refusal);
    return;
  }
  begin_point(variant->workspace_size(&call), rank);
  call.workspace = shared.workspace;
  const double start = PMPI_Wtime();
  variant->run(&call);
  model_settle();
  const double seconds = PMPI_Wtime() - start;
  if (seconds > shared.slowest_seconds) shared.slowest_seconds = seconds;
  if (sent[rank] > shared.most_sent) shared.most_sent = sent[rank];
  shared.is_wrong |= sent[rank] != of->member->sent_bytes(&call);
  PMPI_Barrier(all);
  if (rank > 0) return;
  printf("%s %d %" PRId64 " %" PRId64 " %.9g %.9g %" PRIu64 "%s\n", variant->name, ranks, own.query_length,
         own.key_length, shared.slowest_seconds, model_alone_seconds(&own), shared.most_sent,
         shared.is_wrong ? " and not what is declared" : "");
  SMPI_SHARED_FREE(shared.workspace);
  memset(&shared, 0, sizeof shared);
}

/* One of all ranks speaks. */
static int give_up(const char *why) {
  fprintf(stderr, "scale: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 2);
  return 2;
}

int main(int argc, char **argv) {
  int rank = 0, ranks = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 6 || ranks > MOST_RANKS)
    return give_up("rates, a node and problems are needed, and at most 4096 ranks");
  const model_node node = {strtod(argv[2], NULL), strtod(argv[3], NULL), strtod(argv[4], NULL)};
  if (rank == 0 && !model_read(argv[1], node)) return give_up("there is no table of rates");
  PMPI_Barrier(MPI_COMM_WORLD);
  for (int n = 5; n < argc; n++) {
    point of;
    if (!read_point(argv[n], &of)) return give_up(argv[n]);
    run_point(&of, rank, ranks);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
