/* Ctrl-C: the first one is a wish to stop at the next good moment, the second one ends the process. */
#ifndef ATTN_HARNESS_INTERRUPT_H
#define ATTN_HARNESS_INTERRUPT_H

#include <stdbool.h>

/* Between these two, the first SIGINT or SIGTERM only sets what interrupt_wanted tells. Where there was one, the release
 * changes nothing: what was found until then is still to be written, and is not lost to the same wish that comes again. */
void interrupt_catch(void);
void interrupt_release(void);

bool interrupt_wanted(void);

/* In a team of processes, which have to do the same: what each was asked, and what all of them go by from here on. To decide
 * alone is as before. */
bool interrupt_asked(void);
void interrupt_agree(bool wanted);
void interrupt_decide_alone(void);

#endif
