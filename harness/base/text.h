/* Words and numbers as people type them. */
#ifndef ATTN_HARNESS_TEXT_H
#define ATTN_HARNESS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct text_list {
  char **items;
  size_t count;
} text_list;

/* The candidate that was most probably meant by a mistyped word; NULL when none is near. */
const char *text_nearest(const char *word, const char *const *candidates, size_t count);

/* True when choices, words with | between them, has this word. */
bool text_is_choice(const char *choices, const char *word);

/* Decimal digits only, no sign, no spaces; *end is left behind them. False when out of range. */
bool text_integer(const char *text, int64_t minimum, int64_t maximum, const char **end, int64_t *result);
bool text_seed(const char *text, uint64_t *result);

/* A finite number that is not negative; an s, or a %, may follow. */
bool text_seconds(const char *text, double *result);
bool text_percent(const char *text, double *result);

/* true, yes or 1 and their opposites; NULL, a flag that stands alone, is true. */
bool text_flag(const char *text, bool *result);

/* One word of a shell's line, in single quotes. */
void text_put_quoted(const char *word, FILE *out);

#endif
