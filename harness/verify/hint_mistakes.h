/* The table of mistakes that a hint tries. */
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

extern const mistake hint_mistakes[];
extern const size_t hint_mistake_count;

#endif
