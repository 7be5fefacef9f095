/* A rank's slice of a problem: where its tensors lie, and how rows get there and back. */
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

/* Tensors of a problem, of the whole or of a rank. */
typedef struct team_rows {
  const attn_problem *problem;
  const attn_tensors *tensors;
} team_rows;

/* Copies the rows of a rank: what goes in from the whole into its own, or else what is written from there into the whole. */
void team_copy(const team_rows *whole, const team_rows *own, const team_deal *deal, int rank, bool written);

#endif
