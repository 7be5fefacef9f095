/* What cannot be: more operations or bytes in a second than the machine was measured to make. What is timed is
 * verified too, but only the last run of a batch; who does no work in those before it is found here. */
#ifndef ATTN_HARNESS_LIMITS_H
#define ATTN_HARNESS_LIMITS_H

#include "problem/inputs.h"
#include "results.h"

/* Fills least_flops and least_bytes.
 *
 * Operations are those of the pairs that are seen, mask and bias looked at, in rows that see more than one key; of
 * linear attention by the cheaper association, which for short sequences is that of softmax attention. Where weights
 * may be so small that a kernel may leave a key out, they are not known. Nor are the bytes where the keys and values
 * are smaller than what the memory's rate was measured over: they may lie in a cache. */
void limits_find(result *result, const inputs *inputs, const machine *machine);

/* False, with the sentence, when the time of the result cannot be. */
bool limits_hold(const result *result, const report *report, char *sentence, size_t sentence_size);

/* Fails the results that cannot be. Before it fails the first it has the machine measured again, once: rates that were held up
 * all the while that they were measured fail nobody. */
void limits_fail(report *report, void (*measure_again)(machine *machine, void *context), void *context);

#endif
