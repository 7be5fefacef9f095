/* What belongs to the process and a run may not touch: its standard output and error, working directory, signals,
 * environment, locale, descriptors, timers and limits. Looking at all of it takes some 200 system calls, so that it is
 * done in the watched runs of one property. */
#ifndef ATTN_HARNESS_SIDE_EFFECTS_H
#define ATTN_HARNESS_SIDE_EFFECTS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct surroundings surroundings;

/* Before a run. Until the end, what is written to the standard output and error goes nowhere. first: it is the variant's
 * first, in which libraries behind it may set up signal handlers, the environment and descriptors for themselves: once, so
 * that a second run, if the first did so, tells them from the variant. NULL when memory is short. */
surroundings *side_effects_begin(bool first);

/* After it: puts back whatever it changed, and says the first of it in words: "leaves the handler of SIGSEGV changed";
 * "" for nothing. True when something of it may have been a library's, in the first run, of which nothing is said. */
bool side_effects_end(surroundings *before, char *violation, size_t size);

/* For the handler of a signal that ends the process: from here on its words can be read. */
void side_effects_give_output_back(void);

#endif
