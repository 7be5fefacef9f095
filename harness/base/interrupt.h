/* Ctrl-C: the first one is a wish to stop at the next good moment, the second one ends the process. */
#ifndef ATTN_HARNESS_INTERRUPT_H
#define ATTN_HARNESS_INTERRUPT_H

#include <stdbool.h>

/* Between these two, the first SIGINT or SIGTERM only sets what interrupt_wanted tells. */
void interrupt_catch(void);
void interrupt_release(void);

bool interrupt_wanted(void);

#endif
