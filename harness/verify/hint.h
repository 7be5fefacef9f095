/* The likely mistake of a kernel whose outputs are wrong: a few of the wrong rows are computed again with each
 * mistake of a table, and the one whose answers are the kernel's is named. Where none is, what of the pattern tells
 * something is. */
#ifndef ATTN_HARNESS_HINT_H
#define ATTN_HARNESS_HINT_H

#include "compare.h"
#include "hint_words.h"

/* Of outputs that were examined, with something wrong among them or the root mean square of their errors too large. */
void hint_find(const expected *known, const examination *wrong, hint *found);

#endif
