/* A rank's work on keys of another: fused's own, on the part of the problem where some queries meet some keys, as a
 * problem of its own whose offset is moved; and the join of such parts (Dao et al. 2023, "Flash-Decoding"; Liu et al.
 * 2023, "Ring Attention with Blockwise Transformers"). */
#ifndef ATTN_TEAM_BLOCK_H
#define ATTN_TEAM_BLOCK_H

#include "../team.h"
#include "../tile/schedule.h"

/* Of what fused takes, that which does not ask where a key stands but how far it is from the query; and of that, what
 * can be said of stripes too: their distances are in steps, and in a row of a mask or a bias their columns are not
 * one behind the other. By name: what fused learns is not taken unseen. */
enum {
  BLOCK_STRIPED_FEATURES =
      ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_SOFTCAP | ATTN_LSE | ATTN_SINK | ATTN_QUERY_LENGTHS,
  BLOCK_FEATURES = BLOCK_STRIPED_FEATURES | ATTN_MASK | ATTN_BIAS | ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5
};

/* n queries from i0 on and m keys from j0 on, all in the same steps: a run of queries and one of keys. */
typedef struct block_part {
  int64_t i0, n, j0, m, step;
} block_part;
block_part block_part_of(const attn_slice *queries, int query_run, const attn_slice *keys, int key_run);

/* The band between the queries and the keys of a part, both counted from 0. left is -1 where it shows none. */
typedef struct block_band {
  int64_t offset, left, right;
} block_band;
block_band block_band_of(const attn_problem *problem, int64_t offset, const block_part *part);

/* NULL, or why bands in steps cannot be those of one problem. */
const char *block_steps_unsupported(const attn_problem *problem, int64_t step);

/* Whether a query of it sees a key of it in any entry, by band and lengths: who asks with what another rank owns gets the answer
 * that it has. */
bool block_is_seen(const attn_problem *problem, const block_part *part);
bool block_slices_meet(const attn_problem *problem, const attn_slice *queries, const attn_slice *keys);

/* Part of a workspace, laid out one behind the other: measured with base NULL. */
typedef struct block_memory {
  char *base;
  size_t used;
} block_memory;
void *block_take(block_memory *memory, size_t bytes);

/* Rows of queries on their way past the keys of all ranks: of each the largest score, in base 2, the sum of the weights and the
 * weighted values, both relative to it. */
typedef struct block_rows {
  int64_t count, width; /* of rows [B, H, queries], and Dv */
  float *max, *sum, *output;
} block_rows;
block_rows block_rows_take(block_memory *memory, const attn_problem *problem, int64_t queries);

/* Nothing seen. */
void block_rows_clear(block_rows *rows);

/* What is used while a part is solved, of these queries and the keys of any rank. */
typedef struct block_scratch {
  int64_t *lists; /* [3 B] */
  float *output, *max, *sum;
  void *workspace;
} block_scratch;
block_scratch block_scratch_take(block_memory *memory, const attn_call *call, const attn_slice *queries,
                                 attn_slicing keys);

/* Keys and values of a rank. */
typedef struct block_keys {
  attn_slice slice;
  const void *key, *value;
  attn_layout key_layout, value_layout;
} block_keys;

/* Attends from the rank's queries to these keys, where any is seen. */
void block_attend(const attn_call *call, const attn_slice *queries, const block_keys *keys,
                  const block_scratch *scratch, block_rows *rows);

/* Joins what other rows of the same queries have seen. */
void block_join(block_rows *rows, const block_rows *others);

/* Joins the sinks and writes the output rows and log-sum-exps. */
void block_finish(const attn_call *call, const attn_slice *queries, block_rows *rows);

size_t block_element_bytes(attn_type type);

#endif
