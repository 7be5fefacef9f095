/* The optional parts of a problem, one row of a table each: how it is said in a problem line, drawn at random and
 * left out again, whether a problem uses it, and what is said of a variant or function without it. */
#ifndef ATTN_HARNESS_FEATURES_H
#define ATTN_HARNESS_FEATURES_H

#include "draws.h"
#include "tensors.h"
#include "words.h"

/* Most rows say a tensor that is there or not, by a word or by the axes that it varies over: flag or axes is then where
 * in a workload that is noted, and the functions are NULL, or say more of it. */
typedef struct feature_row {
  uint64_t bit;        /* ATTN_BAND and so on; 0: a number that every variant of the function takes */
  const char *what;    /* "a mask" */
  const char *refusal; /* of a variant without it: "takes no mask" */
  unsigned functions;  /* bits 1 << attn_function: which have a use for it */
  const char *key; /* in a problem line, with a ':' behind it unless it is a flag; NULL: other parts say it */
  tensor_id tensor;  /* TENSORS: it is no tensor */
  size_t flag, axes; /* offsets of a bool, of a workload_axes; 0: none */
  size_t number;     /* or of an int64_t, which is 0 where the tensor is not there */
  int rarity;        /* of a flag or axes: one in so many random problems has it; 0: drawn with the sizes */

  bool (*is_used)(const attn_problem *problem);
  bool (*read)(workload_reading *r, const char *key, const char *text);
  void (*write)(const workload *w, const char *key, workload_writing *to); /* nothing at the default */
  void (*draw)(draws *from, workload *w);                                  /* NULL: drawn with the sizes */
  void (*leave_out)(workload *w);
  void (*copy)(const workload *from, workload *to); /* NULL: by flag or axes */
} feature_row;

enum { FEATURES = 30 };
extern const feature_row feature_table[FEATURES];

/* The row that is said with this key, followed by a text or not; NULL: none. */
const feature_row *feature_find(const char *key, bool has_text);

/* In a problem line: text is empty for a flag. */
bool feature_read(const feature_row *row, workload_reading *r, const char *text);
void feature_write(const feature_row *row, const workload *w, workload_writing *to);

void feature_draw(const feature_row *row, draws *from, workload *w);
void feature_leave_out(const feature_row *row, workload *w);

/* Makes what the row is about in one workload what it is in another; lists may then not suit its sizes. */
void feature_copy(const feature_row *row, const workload *from, workload *to);

/* Where the workload notes the axes that a tensor varies over; NULL: it has none of its choice. */
workload_axes *feature_axes(const feature_row *row, workload *w);

/* Whether the workload has this tensor, and the axes of [B, H, T] that it varies over. */
bool features_have_tensor(const workload *w, tensor_id tensor, workload_axes *axes);

bool feature_is_used(const feature_row *row, const attn_problem *problem);

/* The features that a problem uses, by its other fields. */
uint64_t features_of(const attn_problem *problem);

/* What is said of a variant that supports these features of a problem that uses those; NULL: nothing is missing. */
const char *features_refusal(uint64_t supported, uint64_t used);

#endif
