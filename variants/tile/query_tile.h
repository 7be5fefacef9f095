/* A tile of query rows on its way past the keys: the state of the online softmax and the steps that move it on. The
 * loop over keys is in online_softmax.c; which tiles there are is in schedule.h. */
#ifndef ATTN_QUERY_TILE_H
#define ATTN_QUERY_TILE_H

#include "base2.h"
#include "tile.h"

typedef struct query_tile query_tile;

/* How a tile lies in memory: numbers of floats. */
typedef struct query_tile_layout {
  int64_t rows;                 /* with padding */
  int64_t query_rows;           /* that queries have room for */
  int64_t keys;                 /* the most of a key tile */
  int64_t score_keys;           /* the most whose scores are there at once */
  int64_t chunk;                /* of keys, where attend takes them; 0: each step is a call of its own */
  int64_t depth, width;         /* columns of queries and of outputs, or of a row of them with padding */
  int64_t score_key, score_row; /* from a score to that of the next key, and of the next row */
  int64_t output_feature, output_row; /* the same for outputs */
  int64_t spread_key,
      spread_value;   /* from a row of the copy of keys or values to the next; 0: none is ever copied */
  int64_t run;        /* of biases by distance; 0: none is kept */
  int64_t key_powers; /* of additive scores in a full tile: from a copied key to its powers; else 0 */
  int64_t copied_rows, copied_key; /* of values: rows of the copy, and from an operand of keys to the next */
  int64_t copies;                  /* key tiles whose copies have room */
} query_tile_layout;

/* What a tile's layout decides. There are two: full_tile.c has a row in each lane, few_rows_tile.c the features of a
 * row. Keys are counted from the first of the key tile. */
typedef struct query_tile_steps {
  int64_t rows; /* the most of a tile */
  bool attends; /* its keys may be taken by attend */
  query_tile_layout (*layout)(const attn_problem *problem, const tile_kernels *kernels, int64_t count);
  void (*pack)(query_tile *tile, const void *const *row, float factor); /* the queries; sets tile->factor */
  void (*scores)(query_tile *tile, int64_t keys, tile_rows key, tile_rows ahead);
  void (*softcap)(query_tile *tile, int64_t keys, float cap);
  void (*bias)(query_tile *tile, int64_t first, int64_t keys); /* adds it, from key `first` on, in base 2 */
  void (*position)(query_tile *tile, int64_t first, int64_t keys); /* adds what positions do, in base 2 */
  void (*hide)(query_tile *tile, int64_t keys, const float *first, const float *end);
  void (*hide_masked)(query_tile *tile, int64_t first, int64_t end,
                      const uint8_t *const *seen);  /* of each row */
  float (*weights)(query_tile *tile, int64_t keys); /* returns their sum */
  void (*drop)(query_tile *tile, int64_t keys,
               const uint8_t *const *keep); /* of each row, from the first key */
  void (*accumulate)(query_tile *tile, int64_t keys, tile_rows value, tile_rows ahead);
  void (*merge)(query_tile *tile, const float *output, const float *ours, const float *theirs);
  void (*unpack)(query_tile *tile, const float *factor, void *const *row); /* the output, times the factors */
} query_tile_steps;

extern const query_tile_steps full_tile, few_rows_tile, tiled_rows_tile;

typedef struct query_tile_row {
  int64_t position, head; /* of the query */
} query_tile_row;

/* Rows of one key/value head. Row r is query position (first_row + r) / heads of query head
 * first_head + (first_row + r) % heads: `heads` query heads that share their keys are stacked, position by
 * position, so that a causal tile stays narrow. */
struct query_tile {
  const tile_kernels *kernels;
  const tile_kernels *output_kernels; /* of the output's type, which may be another */
  const tile_kernels
      *score_kernels; /* what multiplies queries and keys: floats where they are rotated, else kernels */
  const query_tile_steps *steps;
  const attn_problem *problem;
  const attn_tensors *tensors;
  int64_t batch, first_head, heads, first_row;
  int64_t count; /* rows that exist */
  float *sums;   /* where query_tile_finish leaves what joins parts (schedule_run_part); NULL: it does not */
  bool leads;    /* first of those that pass the keys together: it fetches for all of them */

  tile_rows key, value; /* of this batch entry and key/value head */
  query_tile_row *row;  /* room for `count`, which query_tile_place fills */
  const void **bias;    /* of each row, from the first key on, where there is one; query_tile_use finds it */
  const uint8_t **mask; /* likewise */
  attn_range keys;      /* from the first key that some row sees to the last */
  int64_t next;         /* query_tile_next, as it was asked last; -1: it was not */
  int64_t after;        /* the key behind those of the key tile, which comes next */

  query_tile_layout layout;
  float *queries; /* so that scores, times the factor, come out in base 2 (with softcap: before tanh) */
  float factor;
  uint64_t unfit;     /* of elements in parts, bits of the rows whose queries are not all finite */
  float *scores;      /* [score_keys, rows] */
  float *output;      /* [Dv, rows], not yet divided by the sum */
  tile_state state;   /* [rows] each */
  bool knows_largest; /* score of each row: it stands in state.rescale */
  bool weightless;    /* all weights of the keys on their way are 0 */
  void *finite;       /* elements [score_keys, Dv], for values that not all are */
  float *copies;      /* for query_tile_prepare */
  float *run;         /* of biases by distance */
  float
      *general; /* for general scores: queries before they are turned [rows, depth], and a column of zeros */
};

/* The position behind the last query's. */
static inline int64_t query_tile_end(const query_tile *tile) {
  return tile->row[tile->count - 1].position + 1;
}

/* Floats of a tile of so many rows: of its queries, with pointers to their rows of a bias and a mask, of its state (output,
 * max, sum), and of the scratch (copies of keys and values, scores, rescale, finite, run) that tiles may take turns with;
 * each in whole cache lines, so that threads share none. */
typedef struct query_tile_sizes {
  size_t queries, state, scratch;
} query_tile_sizes;
query_tile_sizes query_tile_measure(const attn_problem *problem, const tile_kernels *kernels,
                                    const query_tile_steps *steps, int64_t count);

/* Features of a row in whole vectors. */
static inline int64_t query_tile_pitch(const tile_kernels *kernels, int64_t features) {
  return (features + kernels->lanes - 1) / kernels->lanes * kernels->lanes;
}

/* Whether scores are changed before their softmax, and not hidden alone. */
bool query_tile_changes(const attn_problem *problem);

/* Whether attend takes the keys: where it has no pattern to pass over, and what it multiplies are whole tiles. It follows from the
 * problem alone, so that a row's bits do. */
bool query_tile_attends(const attn_problem *problem, const tile_kernels *kernels);

/* Element offset of row r in a tensor with these strides. */
static inline int64_t query_tile_offset(const query_tile *tile, const attn_layout *strides, int64_t r) {
  return tile->batch * strides->batch + tile->row[r].head * strides->head +
         tile->row[r].position * strides->position;
}

/* With problem, tensors, batch, first_head, heads, first_row, count and row set: finds the rows and their keys. Where operands
 * are pairs of keys, or steps chunks of them, these begin and end between such, as far as there are keys, so that each key
 * has the same partners whatever is hidden. */
void query_tile_place(query_tile *tile);

/* Points the tile at its memory, so many floats as query_tile_measure says; kernels and steps are set. The state is
 * the output, then max and sum of each row. */
void query_tile_use(query_tile *tile, float *queries, float *state, float *scratch);
void query_tile_use_state(query_tile *tile, float *state);

/* Features of additive scores are taken four at a time. */
static inline int64_t query_tile_fours(int64_t features) { return (features + 3) / 4 * 4; }

/* Bytes [first, end) of a row of a bias or a mask, each in pages of its own, which a processor doesn't foresee. Inlined, or gcc takes
 * the call of a function that fetches and does no more for one without effects. */
static inline __attribute__((always_inline)) void query_tile_fetch(const void *row, int64_t first,
                                                                   int64_t end) {
  enum { LINE_BYTES = 64 };
  for (int64_t b = first; b < end; b += LINE_BYTES) __builtin_prefetch((const char *)row + b, 0, 2);
}

/* What scores of keys [first, end) will meet comes while they are multiplied. */
static inline __attribute__((always_inline)) void query_tile_fetch_rows(const query_tile *tile, int64_t first,
                                                                        int64_t end) {
  const int64_t bytes = tile->kernels->element_bytes;
  for (int64_t r = 0; tile->problem->bias.type && r < tile->count; r++)
    query_tile_fetch(tile->bias[r], first * bytes, end * bytes);
  for (int64_t r = 0; tile->problem->mask.type && r < tile->count; r++)
    query_tile_fetch(tile->mask[r], first, end);
}

/* What a mask lets the tile see of keys [first, end), at least one; full without one. In most masks, be they causal or of padding, what is
 * hidden lies in whole tiles, which are passed over (attend may have copied them for others), and from others nothing is hidden. */
attn_visibility query_tile_look(const query_tile *tile, int64_t first, int64_t end);

/* The weights of additive scores of row r. */
static inline const float *query_tile_additive(const query_tile *tile, int64_t r) {
  return tile->problem->additive_data + tile->row[r].head * tile->problem->additive.head;
}

/* The matrix of query head h, row d of it d * general.position further on. */
static inline const float *query_tile_general(const query_tile *tile, int64_t h) {
  return tile->problem->general_data + h * tile->problem->general.head;
}

/* Packs the queries: once, before the first key. */
void query_tile_pack(query_tile *tile);

/* The state before the first key: nothing seen, output 0. */
void query_tile_clear(query_tile *tile);

/* The keys that a copy for attend has. */
typedef struct tile_copy {
  const void *key, *value; /* of the key/value head; NULL: it has none */
  attn_range keys;
  bool finite; /* all values are, where a mask may hide any of them */
  uint64_t left_out[TILE_ATTENDED_KEYS /
                    TILE_CHUNK]; /* of elements in parts, keys that are taken singly, or are none */
} tile_copy;

/* Keys [keys.first, keys.end) and their values as the products take them: where they are, or copied to where all query
 * tiles that pass them find them; and where attend takes them, which of those tiles wait to be taken together. */
typedef struct key_tile {
  attn_range keys;
  tile_rows key, value;
  float *copied_keys, *copied_values; /* where copies of them lie, if there are any */
  tile_copy *copy;
  tile_copy copies[TILE_COPIES]; /* one behind the other in the room for them */
  int64_t waiting;
  tile_passage passages[TILE_TOGETHER];
  float runs[TILE_TOGETHER][2][TILE_CHUNK_ROWS]; /* what their rows see */
} key_tile;

/* One that is of no keys yet. A thread has one for all of its blocks of tiles: attend finds copies that former ones made, the first
 * of a head; those that have no room are made in the last one's, for each block again. */
void query_tile_begin(key_tile *of);

/* The copy of its values from the n-th key on, which where they are copied in chunks begins one. */
const float *query_tile_copied_value(const query_tile *tile, const key_tile *of, int64_t n);

/* The copy of these keys for attend, behind which that of their values lies as in `of`; NULL: there is none. */
const float *query_tile_copy_of(const query_tile *tile, const key_tile *of, attn_range keys);

/* Makes it that of `keys`, unless it is, for `count` tiles that pass them together. Keys that a rotary embedding
 * turns become floats, once for all of these tiles. Values are copied where they become
 * other operands, or where their rows crowd a few sets of the L1 cache: products read 64 rows side by side, which as
 * rows of [B, T, H, D] push each other out; with the copy, 16 heads of D = 128 take 0.93 of the time, on AVX2 0.80. */
void query_tile_prepare(const query_tile *tiles, int64_t count, attn_range keys, key_tile *of);

/* tile->run for keys [first, end): places are distances from the largest on down, the heads that are stacked side by side in
 * each. So the rows of a key have their biases side by side, times log2(e), and those of the next key begin one place before. */
void query_tile_fill_run(query_tile *tile, int64_t first, int64_t end);

/* Where the first row's bias stands for the key behind which so many come. */
static inline const float *query_tile_run(const query_tile *tile, int64_t behind) {
  return tile->run + behind * tile->heads + tile->first_row % tile->heads;
}

/* Scores of keys [first, end) of the key tile, with softcap and biases, in base 2. */
void query_tile_scores(query_tile *tile, const key_tile *of, int64_t first, int64_t end);

/* What the rows see of keys [first, end). */
attn_visibility query_tile_visibility(const query_tile *tile, int64_t first, int64_t end);

/* The first key from j on that some row may see by the pattern of the problem; the key length where there is none. j does
 * not go back. */
int64_t query_tile_next(query_tile *tile, int64_t j);

/* Of each row the run that it sees by band and lengths of keys [first, end), counted from the first; padding sees nothing. */
void query_tile_runs(const query_tile *tile, int64_t first, int64_t end, float *from, float *to);

/* Gives those of keys [first, end) that a row does not see a score of -inf; shown: what query_tile_look says of them. */
void query_tile_hide(query_tile *tile, int64_t first, int64_t end, attn_visibility shown);

/* Scores become weights under the running maximum. */
void query_tile_weights(query_tile *tile, int64_t first, int64_t end);

/* Weights that the problem's dropout drops become 0; what is left has its factor in the end. */
void query_tile_drop(query_tile *tile, int64_t first, int64_t end);

/* Adds the weighted values of keys [first, end) to the output; hidden: some row does not see some of them. */
void query_tile_accumulate(query_tile *tile, key_tile *of, int64_t first, int64_t end, bool hidden);

/* Adds values of keys [first, end) that are not finite, which copy_finite leaves out, to the rows that see them. */
void query_tile_accumulate_nonfinite(query_tile *tile, int64_t first, int64_t end);

/* All of these for keys [first, end) of the key tile, which `count` tiles pass, where query_tile_attends; seen: what the rows
 * see of them. The tile may wait for others: until query_tile_attend_waiting, or another key tile is prepared. */
void query_tile_attend(query_tile *tile, const query_tile *tiles, int64_t count, key_tile *of, int64_t first,
                       int64_t end, attn_visibility seen);

/* Takes the tiles that wait. */
void query_tile_attend_waiting(const tile_kernels *kernels, key_tile *of);

/* Joins the state of a later part of the same rows' keys to this one (Dao et al. 2023, "Flash-Decoding"; the same
 * formula as one online step). A part of which a row saw nothing changes no bit of it. */
void query_tile_merge(query_tile *tile, const float *other_state);

/* After the last key: divides by the sum and writes the output rows and the log-sum-exp. */
void query_tile_finish(query_tile *tile);

#endif
