/* Which sizes a failure needs: a problem that is shrunk to one row hides that only lengths fail which are no multiple of a
 * tile. */
#ifndef ATTN_HARNESS_SHRUNK_SIZES_H
#define ATTN_HARNESS_SHRUNK_SIZES_H

#include "shrink.h"

/* What came of another problem. */
typedef enum size_answer { SIZE_FAILS, SIZE_PASSES, SIZE_REFUSED } size_answer;
typedef size_answer shrunk_size_asks(const failing *candidate, void *context);

/* Asks for other lengths and widths of a problem that fails, and says in words which of them fail, as "it fails where T is no
 * multiple of 64". "" where nothing can be said: all fail, or the seconds are over. */
void shrunk_sizes_describe(const failing *smallest, double seconds, shrunk_size_asks *asks, void *context,
                           char *text, size_t size);

#endif
