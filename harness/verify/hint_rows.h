/* The wrong rows that a hint looks at: what was computed, what is right, and how far an answer with a mistake explains the
 * difference. */
#ifndef ATTN_HARNESS_HINT_ROWS_H
#define ATTN_HARNESS_HINT_ROWS_H

#include "problem/widened.h"
#include "compare.h"
#include "hint_row.h"

enum { HINT_MOST_ROWS = 8 };

typedef struct hint_rows {
  const expected *known;
  const examination *wrong;
  widened widened;
  int count;
  int64_t rows[HINT_MOST_ROWS]; /* of known's */
  answer answer;                /* to work in */
  double *numbers;
  double *error, *direction; /* [Dv] each, to work in */
} hint_rows;

/* Some of the wrong rows, spread over all. False when memory is short or there is none. */
bool hint_rows_create(hint_rows *rows, const expected *known, const examination *wrong);
void hint_rows_destroy(hint_rows *rows);

asked hint_rows_ask(const hint_rows *rows, int n);
const reference_row *hint_rows_reference(const hint_rows *rows, int n);

/* What was computed in row n. */
double hint_computed(const hint_rows *rows, tensor_id id, int n, int64_t e);

/* How much of row n's difference to the truth the answer leaves: 0 all is explained, 1 nothing; infinite where it
 * says what is not so. A difference that is left and within the bound is explained well enough where others are, too. */
double hint_unexplained(const hint_rows *rows, int n);

/* computed - reference of the output, into rows->error; its norm. Not finite where an element is not. */
double hint_error(const hint_rows *rows, int n);

#endif
