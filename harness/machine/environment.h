/* Under what a run was made: what somebody who cites its numbers has to name, or repeats them with. Each fact is a key
 * and a text; "not readable" is a fact too. */
#ifndef ATTN_HARNESS_ENVIRONMENT_H
#define ATTN_HARNESS_ENVIRONMENT_H

#include <stddef.h>

enum { ENVIRONMENT_FACTS = 16, ENVIRONMENT_TEXT_BYTES = 2048 };

typedef struct environment {
  char facts[ENVIRONMENT_FACTS][ENVIRONMENT_TEXT_BYTES]; /* "": not known, as in a report of before */
} environment;

void environment_describe(environment *environment);

/* What fact n is called in JSON and CSV. */
const char *environment_key(size_t n);

/* NULL where there is none of this key. */
const char *environment_fact(const environment *environment, const char *key);

#endif
