/* A workload is a problem with its inputs, said in a line of text:
 *
 *     causal/B:1/H:8/Hkv:8/D:64/T:4096
 *
 * The same line names a benchmark, reproduces a failing verification (--problem) and comes out of workload_name again.
 * Parts that are not said have their defaults; workload_grammar (`attnbench help problem`) has them all. */
#ifndef ATTN_HARNESS_WORKLOAD_H
#define ATTN_HARNESS_WORKLOAD_H

#include "variants/attention.h"

/* The longest name, every number at its longest and 16 listed three times, has some 1800 letters. */
enum { WORKLOAD_NAME_BYTES = 1920, WORKLOAD_MAX_LISTED_BATCH = 16 };

typedef enum workload_layout {
  LAYOUT_BHTD,
  LAYOUT_BTHD,
  LAYOUT_SHIFTED, /* bhtd, but no pointer is aligned to more than an element */
  LAYOUT_PADDED,  /* odd strides, of tensors of one width no two the same */
  LAYOUT_MIXED    /* each tensor bhtd, bthd or padded, by the seed */
} workload_layout;

typedef enum workload_fill {
  FILL_UNIFORM,      /* uniform in [-1, 1) */
  FILL_NORMAL,       /* standard normal, cut off at 6: a sum of twelve uniforms */
  FILL_HEAVY,        /* heavy-tailed: a quotient of two uniforms, up to 64 */
  FILL_DOMINANT,     /* one key outweighs all others, where it is visible */
  FILL_EQUAL,        /* all scores of a row equal */
  FILL_SATURATED,    /* scores up to about +-1e4 */
  FILL_RISING,       /* the running maximum rises at every key */
  FILL_FALLING,      /* and falls */
  FILL_CANCELLATION, /* values of both signs that nearly cancel */
  FILL_AROUND_ONE,   /* values of 1 + normal / 10: what is off is off to one side */
  FILL_DENORMAL,     /* all values, and every other element of queries and keys */
  FILL_HUGE,         /* values as large as a float32 sum over all keys can hold */
  FILL_ZEROS,        /* every third row of queries, keys and values is zero, of either sign */
  FILL_EXACT, /* weights are powers of two, or whole numbers, and sums exact; a scale that is not said is ln 2 */
  FILL_POWERS, /* scores are powers of two of either sign, up to the largest; a scale that is not said is 1 */
  FILL_LARGEST,  /* a few elements of +-FLT_MAX, some where the band or a length hides them */
  FILL_NONFINITE /* a few NaN and infinities, placed alike */
} workload_fill;

/* Which features a rotary embedding takes for pairs. */
typedef enum workload_rope { ROPE_NONE, ROPE_HALF, ROPE_INTERLEAVED } workload_rope;

/* Which axes of [B, H, Tq] a mask or bias varies over; it always varies over Tk. */
typedef struct workload_axes {
  bool present, batch, head, query;
} workload_axes;

typedef struct workload {
  attn_function function;
  int64_t batch, query_heads, kv_heads, query_length, key_length, head_dim, value_dim;
  double scale; /* NaN: 1/sqrt(D), or what the fill needs */
  double softcap, epsilon;
  int64_t left, right, offset;
  bool has_offsets, has_lengths, has_query_lengths;
  int64_t offsets[WORKLOAD_MAX_LISTED_BATCH], lengths[WORKLOAD_MAX_LISTED_BATCH];
  int64_t query_lengths[WORKLOAD_MAX_LISTED_BATCH];
  int64_t term_count;               /* beyond ATTN_MOST_TERMS: one too many */
  attn_term terms[ATTN_MOST_TERMS]; /* WORKLOAD_SQRT among their numbers: the square root of Tk, rounded up */
  int64_t document_length;          /* mean; 0: no documents */
  bool documents_shuffled;          /* the tokens of all lie among each other */
  workload_axes blocks;             /* batch and head */
  int64_t block_q, block_k;
  double block_density; /* of each row of blocks, the share that may be seen */
  int64_t topk;         /* 0: none */
  workload_axes mask, bias;
  bool sink;
  bool alibi;
  int64_t relative;                /* the greatest distance that the table tells apart; 0: no table */
  int64_t t5_buckets, t5_distance; /* 0: none */
  bool t5_one;                     /* direction; else both */
  attn_feature_map feature_map;
  bool unnormalised, decay, state, final_state;
  int64_t rope;          /* a workload_rope */
  int64_t rope_features; /* that are rotated; 0: all that have a partner */
  workload_axes keep;    /* of dropout */
  bool general, additive;
  double dropout_p;
  int64_t model_dim; /* of a layer; 0: of no layer */
  bool memory, biases;
  bool wants_lse, wants_weights;
  attn_type type, output_type; /* ATTN_ABSENT: float32; as the others */
  workload_layout layout;
  workload_fill fill;
  uint64_t seed;
  bool names_seed; /* the line says which */
} workload;

#define WORKLOAD_EPSILON 1e-6
#define WORKLOAD_SQRT INT64_C(-1)

/* full, B 1, H 4, Hkv as H, D 64, Dv as D, T 1024, default scale, epsilon 1e-6, uniform, seed 1. */
workload workload_default(void);

/* All parts of a line, in words. */
extern const char workload_grammar[];

/* False, with the reason in words, when the text is not a workload. Nothing is said of whether the
 * problem is sound: attn_check_problem does that. */
bool workload_parse(const char *text, workload *result, char *why, size_t why_size);

/* Of a text that stands in this program, and so is one. */
workload workload_written(const char *text);

/* Changes what these parts of a line say, and nothing that would follow from it. False as workload_parse. */
bool workload_say(workload *workload, const char *parts, char *why, size_t why_size);

/* False, with the reason in words, when the problem that it poses makes no sense or is too large to be computed. */
bool workload_check(const workload *workload, char *why, size_t why_size);

/* Both together, with the text in the reason. */
bool workload_parse_sound(const char *text, workload *result, char *why, size_t why_size);

/* Gives a workload whose line names no seed another. */
void workload_seed_unnamed(workload *workload, uint64_t seed);

/* The text of a workload; parts at their defaults are left out, but B, H, Hkv, D, T never. */
void workload_name(const workload *workload, char name[WORKLOAD_NAME_BYTES]);

/* Parts of it: "causal", "bhtd", "uniform". */
void workload_band(const workload *workload, char text[WORKLOAD_NAME_BYTES]);
const char *workload_layout_name(workload_layout layout);
const char *workload_fill_name(workload_fill fill);

/* Makes it one of this function: what a layer has besides is left out for the others, and what it lacks is as usual.
 * Sizes are those that it is to have. */
void workload_pose_to(workload *workload, attn_function function);

/* The problem that a workload poses. The lists inside point into *workload. */
attn_problem workload_problem(const workload *workload);

/* The terms of its pattern alone. */
void workload_terms(const workload *workload, attn_problem *problem);

/* Visible (query, key) pairs over all batch entries and query heads, by pattern too, but masks not looked at; and the
 * floating-point operations that count: 2 (D + Dv) a visible pair for softmax (the exponential is free),
 * 2 D Dv a key and 2 D Dv a query row for linear, those of its projections for a layer. */
double workload_visible_pairs(const workload *workload);
double workload_flops(const workload *workload);

/* Bytes of the keys and values from the first that any query of their entry sees to the last; and with the other tensors, of
 * what is read or written if each is moved once. */
double workload_seen_bytes(const workload *workload);
double workload_moved_bytes(const workload *workload);

/* Bytes of all tensors. */
double workload_tensor_bytes(const workload *workload);

/* The attention shapes of real models, each with its source. NULL-terminated by name == NULL. */
typedef struct preset {
  const char *name;
  const char *summary;
  workload workload;
} preset;

const preset *preset_list(void);
const preset *preset_find(const char *name); /* NULL when there is none */

#endif
