/* The interface of attnbench: what an attention kernel is asked (attn_problem), what a run of it is given (attn_call), and what
 * it says of itself (attn_variant). A new kernel includes this header and nothing else. C++ can include it, and so CUDA.
 *
 * In comments: B batch, H query heads, Hkv key/value heads, Tq and Tk query and key length, D head dimension of queries and keys,
 * Dv head dimension of values. */
#ifndef ATTN_ATTENTION_H
#define ATTN_ATTENTION_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "functions.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ATTN_INTERFACE_VERSION 2

/* Of the functions in headers: CUDA's kernels call them too. */
#ifdef __CUDACC__
#define ATTN_INLINE __host__ __device__ static inline
#else
#define ATTN_INLINE static inline
#endif

/* ---- the problem ---- */

/* No limit on that side of the band. */
#define ATTN_UNLIMITED INT64_MAX

/* The largest size of an offset, either way, and of a limited band: sums of these do not overflow. */
#define ATTN_FARTHEST (INT64_C(1) << 60)

/* The optional parts of a problem. It carries the set that it uses and a variant the set that it supports; one with a part that
 * is not in the variant's set is never given to it, so that no variant has to refuse what it has never heard of. */
enum {
  ATTN_BAND = 1 << 0,        /* left or right is limited */
  ATTN_OFFSET = 1 << 1,      /* an offset that is not 0, or offsets */
  ATTN_KEY_LENGTHS = 1 << 2, /* key_lengths */
  ATTN_MASK = 1 << 3,
  ATTN_BIAS = 1 << 4,
  ATTN_SOFTCAP = 1 << 5, /* a softcap that is not 0 */
  ATTN_LSE = 1 << 6,
  ATTN_WEIGHTS = 1 << 7,
  ATTN_SINK = 1 << 8,
  ATTN_PATTERN = 1 << 9, /* terms */
  ATTN_DOCUMENTS = 1 << 10,
  ATTN_BLOCKS = 1 << 11,
  ATTN_TOPK = 1 << 12,
  ATTN_QUERY_LENGTHS = 1 << 13,
  ATTN_ALIBI = 1 << 14,
  ATTN_RELATIVE = 1 << 15,
  ATTN_T5 = 1 << 16,
  ATTN_ROPE = 1 << 17,
  ATTN_DROPOUT = 1 << 18, /* keep */
  ATTN_GENERAL = 1 << 19,
  ATTN_ADDITIVE = 1 << 20,
  ATTN_FEATURE_MAP = 1 << 21, /* a feature_map that is not elu + 1 */
  ATTN_UNNORMALISED = 1 << 22,
  ATTN_DECAY = 1 << 23,
  ATTN_MEMORY = 1 << 26,
  ATTN_PROJECTION_BIAS = 1 << 27 /* of a layer */
};

/* Element types. A tensor that is not there has none. */
typedef enum attn_type {
  ATTN_ABSENT = 0,
  ATTN_FLOAT32 = 1,
  ATTN_BFLOAT16 = 2,
  ATTN_FLOAT16 = 3,
  ATTN_UINT8 = 4,
  ATTN_INT32 = 5
} attn_type;

/* How a tensor lies in memory: its element type and the distance, in elements, between neighbours along each axis; neighbours
 * along the last axis (D, Dv or Tk) are one element apart. Both [B, H, T, D] and [B, T, H, D] are so. 0 broadcasts an input. */
typedef struct attn_layout {
  attn_type type;
  int64_t batch, head, position;
} attn_layout;

#include "layer_weights.h"
#include "linear_states.h"

/* What is asked, never how. A later version adds fields at the end, each with a feature.
 *
 * A variant may rely on: sizes not negative, D at least 1, H a multiple of Hkv, the address of every element
 * within int64_t, numbers finite, band and key lengths in range. A band that is empty everywhere is sound. */
typedef struct attn_problem {
  attn_function function;
  uint64_t features; /* ATTN_BAND and so on: what of the following is used */

  int64_t batch;
  int64_t query_heads;
  int64_t kv_heads; /* divides query_heads; query head h reads key/value head h / (H / Hkv) */
  int64_t query_length;
  int64_t key_length;
  int64_t head_dim;
  int64_t value_dim;
  double scale;   /* of the scores; any finite number, 1/sqrt(D) by custom. Softmax only. */
  double softcap; /* 0: none. Softmax only. */
  double epsilon; /* added to the normaliser; 0 allowed. Linear only. */

  /* The band: query i sees key j when  i + offset - left <= j <= i + offset + right.
   * left = right = ATTN_UNLIMITED is full attention, right = 0 causal, left = W and right = 0 a causal
   * sliding window. offset 0 aligns the diagonal top left, Tk - Tq bottom right. */
  int64_t left, right;    /* 0 to ATTN_FARTHEST, or ATTN_UNLIMITED */
  int64_t offset;         /* for every batch entry, unless offsets is set; within +-ATTN_FARTHEST */
  const int64_t *offsets; /* [B], or NULL */

  const int64_t *key_lengths; /* [B], keys of each entry that exist, 0 to Tk; NULL: all Tk */

  attn_layout query, key, value, output;
  attn_layout mask;    /* uint8: 0 hides a key, any other byte shows it */
  attn_layout bias;    /* added to the scores; -inf hides a key, -FLT_MAX beside larger ones */
  attn_layout lse;     /* float32: the log-sum-exp is wanted */
  attn_layout weights; /* the weights are wanted */
  attn_layout sink;    /* float32 */

  /* The pattern: where there is one, of numbers or of tensors, band, lengths and mask let through only what at least
   * one of its terms does, of which there are ATTN_MOST_TERMS at most, tensors counted. What the tensors hold was checked. */
  int64_t term_count;
  attn_term terms[ATTN_MOST_TERMS];
  attn_layout query_documents, key_documents; /* both or none: keys whose document is the query's; no head */
  attn_layout blocks; /* keys in blocks that are not 0; position: from one row of blocks to the next */
  attn_layout topk;   /* the keys that are listed, each once */
  int64_t block_q, block_k, topk_count;

  /* [B], queries of each entry that exist: the others see no key, nor does a sink join their sum, so that their log-sum-exp is
   * -inf; NULL: all Tq */
  const int64_t *query_lengths;

  /* Where these tensors are; NULL in problems that come without tensors. */
  const int32_t *query_documents_data; /* int32 [B, Tq] */
  const int32_t *key_documents_data;   /* int32 [B, Tk] */
  const uint8_t *blocks_data;          /* uint8 [B, H, ceil(Tq / block_q), ceil(Tk / block_k)] */
  const int32_t *topk_data;            /* int32 [B, H, Tq, topk_count]; -1: none */

  /* What the positions of a query and a key add to their score, from a few numbers for each query head (position.h). */
  attn_layout alibi;       /* float32: the slopes */
  const float *alibi_data; /* [H] */

  /* Of the backward pass, which has these (the last two where there is a bias, or sinks), and reads output and lse (of linear
   * attention output alone). What goes out is written whole, whatever it held. */
  attn_layout output_grad, query_grad, key_grad, value_grad;
  attn_layout bias_grad, sink_grad;      /* of a bias: stride 0 where this has it */
  const void *output_grad_data;          /* [B, H, Tq, Dv] */
  void *query_grad_data;                 /* [B, H, Tq, D] */
  void *key_grad_data, *value_grad_data; /* [B, Hkv, Tk, D], [B, Hkv, Tk, Dv] */
  void *bias_grad_data, *sink_grad_data; /* [B, H, Tq, Tk], [H] */
  attn_layout relative;       /* float32: of distances from -R to R; both ends also stand for those beyond */
  int64_t relative_distance;  /* R, 1 or more where there is a table */
  const float *relative_data; /* [H, 2 R + 1] */
  attn_layout t5;             /* float32: of T5's buckets */
  /* 2 to 1024, with both directions an even number from 4; above the number of buckets that have one distance, at most 2^20 */
  int64_t t5_buckets, t5_distance;
  bool t5_both;         /* both directions; else keys ahead are in bucket 0 */
  const float *t5_data; /* [H, t5_buckets] */

  attn_feature_map feature_map; /* this and the next three: of linear attention */
  bool unnormalised;
  attn_layout decay;                     /* float32: logarithms of the gates, at most 0 */
  const float *decay_data;               /* [B, Hkv, Tk] */
  attn_layout rope_cos, rope_sin;        /* float32, both or none: queries and keys are rotated (rope.h) */
  int64_t rope_features, rope_positions; /* R, even, 2 to D; rows: each i + offset and each j is one */
  bool rope_interleaved;                 /* pairs are features 2n and 2n + 1, else n and n + R / 2 */
  const float *rope_cos_data, *rope_sin_data; /* [rope_positions, R / 2] */
  attn_layout keep;           /* uint8: 0 drops a weight; the others are divided by 1 - dropout_p */
  double dropout_p;           /* 0 up to, but not, 1; 0 without keep */
  const uint8_t *keep_data;   /* [B, H, Tq, Tk] */
  attn_layer_weights layer;   /* of ATTN_LAYER */
  attn_layout general;        /* float32: the matrix between queries and keys, of at most 1024 features */
  const float *general_data;  /* [H, D, D] */
  attn_layout additive;       /* float32: what additive scores weigh features by; not beside general */
  const float *additive_data; /* [H, D] */
  attn_linear_states states;  /* of linear attention */
  attn_layout decay_grad, state_grad, state_sum_grad; /* float32, of the backward pass */
  float *decay_grad_data;                             /* [B, Hkv, Tk], whose position is that of a key */
  float *state_grad_data, *state_sum_grad_data;       /* [B, Hkv, D, Dv], [B, Hkv, D] */
} attn_problem;

/* ---- a call ---- */

/* Where the data are; NULL where the problem has no such tensor. Outputs are written whole, whatever they
 * held, and overlap no input. */
typedef struct attn_tensors {
  const void *query;   /* [B, H, Tq, D] */
  const void *key;     /* [B, Hkv, Tk, D] */
  const void *value;   /* [B, Hkv, Tk, Dv] */
  const uint8_t *mask; /* [B, H, Tq, Tk] */
  const void *bias;    /* [B, H, Tq, Tk] */
  void *output;        /* [B, H, Tq, Dv] */
  float *lse;          /* [B, H, Tq] */
  void *weights;       /* [B, H, Tq, Tk], zero for hidden keys; after dropout, as they meet the values */
  const float *sink;   /* [H] */
} attn_tensors;

struct attn_variant;

/* Everything of one run. A later version adds fields at the end. */
typedef struct attn_call {
  size_t size;                        /* bytes of this struct as the caller knows it */
  const struct attn_variant *variant; /* the one that is called: several may share a function */
  const attn_problem *problem;
  attn_tensors tensors;
  void *workspace;    /* as many bytes as workspace_size says, aligned to 64, holding anything */
  int threads;        /* at most so many, 1 or more */
  const char *isa;    /* the instruction set to keep to, of the table's; NULL: the fastest there is */
  void *stream;       /* of a device; NULL on the host */
  int rank, ranks;    /* of a team (team.h): this process, of how many; 0 and 1 elsewhere */
  void *communicator; /* an MPI_Comm of them all, or NULL */
} attn_call;

/* ---- a variant ---- */

/* Where a variant's data lie. On ATTN_CUDA tensors, workspace and the lists of a problem (offsets, key_lengths) lie
 * in the memory of a device, and run only launches kernels, on the stream of the call: the harness waits for them.
 * On ATTN_TEAM several processes make the call, each with its slice of queries, keys and values (team.h). */
typedef enum attn_place { ATTN_HOST = 0, ATTN_CUDA = 1, ATTN_TEAM = 2 } attn_place;

/* What a variant may promise beyond being right; what it promises it is held to. The last two take back what all others
 * promise: they are for functions of other languages over libraries that decide for themselves. */
enum {
  /* The bits of a row do not depend on its company: on the batch size and the other key/value heads. */
  ATTN_BATCH_INVARIANT = 1 << 0,
  /* A row has the same bits decoded alone (Tq = 1) as in the whole problem. */
  ATTN_DECODE_INVARIANT = 1 << 1,
  /* Weights meet values of 16 bits as float32, and not rounded to these: errors have to stay that much smaller. */
  ATTN_FLOAT32_WEIGHTS = 1 << 2,
  /* Its bits may change with the number of threads, the layout and from run to run: where others are held to the same bits, it is
   * held to the error bounds alone. */
  ATTN_FREE_BITS = 1 << 3,
  /* NaN, infinity and numbers whose products overflow are not its matter, and are not posed. */
  ATTN_FINITE = 1 << 4
};

/* One kernel. A variant allocates nothing, prints nothing, keeps no state and never exits. It uses no more threads
 * than it is given, leaves none running, and leaves all that belongs to the process as it was: the floating-point mode of
 * every thread, signals, environment, working directory, descriptors. Unless ATTN_FREE_BITS is among its traits, the same
 * input gives the same bits, whatever the thread count, the workspace's contents and the layout ([B, H, T, D] or
 * [B, T, H, D]); a band that hides nothing gives the bits of none; and what a row cannot see changes no bit of it. */
typedef struct attn_variant {
  const char *name;    /* one word, [a-z0-9_], of at most 47 letters: fused */
  const char *summary; /* one line */
  attn_function function;
  uint64_t features; /* ATTN_BAND and so on: the optional parts that it supports */
  uint32_t types; /* bits 1 << ATTN_FLOAT32 and so on: of queries, keys, values, bias, output and weights */
  attn_place place;
  uint32_t traits; /* ATTN_BATCH_INVARIANT and so on */

  /* Declared growth in T, all else fixed: the exponent of T, where queries and keys grow together; so 2 also for a kernel that
   * takes one query, whose time grows as its keys do. Measured, then held against this. */
  int time_exponent;
  int workspace_exponent;

  /* What shows it best where nothing else is asked for, as parts of a problem line: "window:512". With blanks between,
   * several lines: "full bf16". NULL: nothing. */
  const char *showcase;

  /* NULL where the variant can solve the problem, else the reason in words. Called only with sound
   * problems of its function, features and types, without tensors. NULL pointer: supports them all. */
  const char *(*unsupported)(const attn_call *call);

  /* Exact bytes of workspace that run needs for this call, whose tensors are not given. NULL pointer: none. */
  size_t (*workspace_size)(const attn_call *call);

  /* Solves the problem. */
  void (*run)(const attn_call *call);
} attn_variant;

/* What a shared object of variants exports, under the name attn_plugin:
 *
 *     const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, NULL};
 */
typedef struct attn_table {
  uint32_t interface_version; /* ATTN_INTERFACE_VERSION */
  uint32_t count;
  const attn_variant *const *variants; /* [count] */

  /* NULL, or: names the instruction sets that these variants can be held to on this processor,
   * slowest first, ending in NULL. A name has at most 31 letters, digits and _ . + - */
  const char *const *(*instruction_sets)(void);
} attn_table;

extern const attn_table attn_plugin __attribute__((visibility("default")));

#include "visibility.h"
/* These ask that one. */
#include "position.h"
#include "rope.h"
#include "dropout.h"

#ifdef __cplusplus
}
#endif
#endif
