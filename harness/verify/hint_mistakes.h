/* The tables of mistakes that a hint tries. */
#ifndef ATTN_HARNESS_HINT_MISTAKES_H
#define ATTN_HARNESS_HINT_MISTAKES_H

#include "hint_row.h"

enum { MOST_PARAMETERS = 16 };

typedef struct mistake {
  const char *kind;
  const char *words; /* one %lld at most: the parameter */
  unsigned functions;
  int64_t parameters[MOST_PARAMETERS]; /* each is tried */
  size_t parameter_count;
  bool (*make)(asked *asked, int64_t parameter); /* false: it changes nothing in this row */
} mistake;

typedef struct mistakes {
  const mistake *of;
  size_t count;
} mistakes;

/* In the order that decides between those that come to the same: what is named in the problem first, what is general last. */
enum { HINT_MISTAKES = 5 };
extern const mistakes *const hint_mistakes[HINT_MISTAKES];

extern const mistakes hint_mistakes_of_rows, hint_mistakes_of_parts, hint_mistakes_of_sight,
    hint_mistakes_of_scores, hint_mistakes_of_keys;

#endif
