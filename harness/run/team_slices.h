/* A rank's slice of a problem: where its tensors lie, and how they are dealt out and put together. */
#ifndef ATTN_HARNESS_TEAM_SLICES_H
#define ATTN_HARNESS_TEAM_SLICES_H

#include "problem/tensors.h"
#include "variants/team.h"

/* How queries and keys are dealt to so many ranks. */
typedef struct team_deal {
  attn_slicing queries, keys;
  int ranks;
} team_deal;

/* The positions that a rank has of a tensor. */
attn_slice team_slice(const attn_problem *whole, tensor_id id, const team_deal *deal, int rank);

/* The problem as a rank has it: layouts of its slices, in the order and with the gaps of the whole. Pointers are those of
 * the whole. */
attn_problem team_problem(const attn_problem *whole, const team_deal *deal, int rank);

/* Bytes from the first to the last element of a tensor of a rank, gaps included. */
size_t team_tensor_bytes(const attn_problem *whole, tensor_id id, const team_deal *deal, int rank);

/* Bytes of the rows that a rank has of all tensors that go in, or come out, one behind the other. */
size_t team_rows_bytes(const attn_problem *whole, bool written, const team_deal *deal, int rank);

/* Copies the rows of a rank between tensors and a package: `slice` says where they lie in the tensors of this problem, which is
 * the whole (with the rank's positions) or the rank's own (with those from 0 on). */
typedef enum team_direction { TEAM_PACK, TEAM_UNPACK, TEAM_COMPARE } team_direction;

/* Of all tensors that are written, or of those that are not. False where they were compared and differ. */
bool team_copy(const attn_problem *whole, const attn_problem *problem, const attn_tensors *tensors,
               bool written, const team_deal *deal, int rank, team_direction direction,
               unsigned char *package);

#endif
