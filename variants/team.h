/* Variants whose work is spread over processes, ranks of MPI: which positions a rank owns, and what the harness asks of
 * the object that they come in. A shared object of such variants exports one attn_team under the name attn_plugin_team,
 * beside attn_plugin; who writes them links an object that is there for it (variants/team/README.md).
 *
 * Every rank makes the same call. Its problem has the sizes of the whole (Tq, Tk, offset, key lengths), but the tensors and
 * their layouts are those of the rank's own slice, which is all that its process was given: queries, output, log-sum-exp,
 * mask and bias have the rows of the queries that it owns, one behind the other, keys and values those of its keys. What
 * has neither axis (sinks, slopes) every rank has. */
#ifndef ATTN_TEAM_H
#define ATTN_TEAM_H

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How positions are dealt to ranks. Causal rows cost as much as they lie far behind: of halves that lie opposite each
 * other (zigzag) each rank has the same, of stripes (Brandon et al. 2023, "Striped attention", which calls the
 * trouble) nearly. */
typedef enum attn_slicing {
  ATTN_WHOLE,      /* all of them to each rank */
  ATTN_CONTIGUOUS, /* rank r of P has positions [n r / P, n (r + 1) / P) of n, rounded down */
  ATTN_ZIGZAG,     /* of 2 P such pieces, number r and number 2 P - 1 - r */
  ATTN_STRIPED     /* r, r + P, r + 2 P and so on */
} attn_slicing;

/* Positions of a rank, in their order: runs one behind the other, position n of one at first + n step. */
enum { ATTN_SLICE_RUNS = 2 };
typedef struct attn_slice {
  int runs;
  int64_t first[ATTN_SLICE_RUNS], length[ATTN_SLICE_RUNS], step;
} attn_slice;

ATTN_INLINE int64_t attn_piece_first(int64_t length, int64_t piece, int64_t pieces) {
  return length / pieces * piece + length % pieces * piece / pieces;
}

ATTN_INLINE void attn_slice_add(attn_slice *slice, int64_t length, int64_t piece, int64_t pieces) {
  const int64_t first = attn_piece_first(length, piece, pieces);
  slice->first[slice->runs] = first;
  slice->length[slice->runs++] = attn_piece_first(length, piece + 1, pieces) - first;
}

ATTN_INLINE attn_slice attn_slice_of(attn_slicing slicing, int64_t length, int rank, int ranks) {
  attn_slice slice = {0, {0, 0}, {0, 0}, 1};
  if (slicing == ATTN_STRIPED) {
    slice.runs = 1;
    slice.first[0] = rank;
    slice.length[0] = length / ranks + (rank < length % ranks);
    slice.step = ranks;
  }
  if (slicing == ATTN_WHOLE) attn_slice_add(&slice, length, 0, 1);
  if (slicing == ATTN_CONTIGUOUS) attn_slice_add(&slice, length, rank, ranks);
  if (slicing != ATTN_ZIGZAG) return slice;
  attn_slice_add(&slice, length, rank, 2 * (int64_t)ranks);
  attn_slice_add(&slice, length, 2 * (int64_t)ranks - 1 - rank, 2 * (int64_t)ranks);
  return slice;
}

ATTN_INLINE int64_t attn_slice_position(const attn_slice *slice, int run, int64_t n) {
  return slice->first[run] + n * slice->step;
}

ATTN_INLINE int64_t attn_slice_length(const attn_slice *slice) {
  int64_t length = 0;
  for (int n = 0; n < slice->runs; n++) length += slice->length[n];
  return length;
}

/* What a variant says of its team. All three follow from the call without its tensors: every rank and the harness
 * come to the same answer. */
typedef struct attn_team_member {
  const attn_variant *variant;

  /* Outputs lie as queries do. Of ATTN_WHOLE queries every rank writes all rows, and all ranks the same bits. */
  attn_slicing (*queries)(const attn_call *call);
  attn_slicing (*keys)(const attn_call *call);

  /* Bytes that this rank gives to MPI for others: exact, it is counted. */
  uint64_t (*sent_bytes)(const attn_call *call);
} attn_team_member;

/* Who writes such variants defines this, NULL-terminated, and has the object of the runtime do the rest. */
extern const attn_team_member *const attn_team_members[];

/* For attn_table.instruction_sets: in their place, of how many ranks runs are held to be, "ranks3". The runtime's. */
const char *const *attn_team_sizes(void);

/* What came of a run on this rank, as far as MPI sees it. */
typedef struct attn_team_account {
  char violation[128]; /* "changes a buffer while it is sent"; "": nothing */
  uint64_t sent_bytes, messages;
  double waiting_seconds;   /* inside MPI */
  double in_flight_seconds; /* while at least one message that it asked for was on its way */
} attn_team_account;

/* The processes and their messages. */
typedef struct attn_team {
  size_t size; /* of this struct, as who fills it knows it: fields are added at its end */
  const attn_team_member *const *members; /* NULL-terminated */

  /* Joins the team that a launcher has started, once; false: why not. */
  bool (*begin)(char *why, size_t why_size);
  void (*end)(void);
  int (*rank)(void);
  int (*ranks)(void);

  /* For the harness, apart from what variants send: message to a rank; the next one from a rank, whose bytes are known;
   * both wait. */
  void (*send)(int to, const void *data, size_t bytes);
  void (*receive)(int from, void *data, size_t bytes);
  /* Waits for one without taking the processor from others. */
  void (*await)(int from);

  /* Around a run among the first so many ranks, on each of them. An MPI_Comm of these, which no earlier run that went
  * wrong has left anything in. strict: nothing may rely on buffers that MPI happens to have. waits_in: where the name
  * of an MPI function stands while the process is inside, at most 31 letters. */
  void *(*run_begin)(int ranks, bool strict, char *waits_in);
  void (*run_end)(attn_team_account *account);
} attn_team;

#ifdef __cplusplus
}
#endif
#endif
