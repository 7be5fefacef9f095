/* Where a function leaves the reason of a refusal, in words. */
#ifndef ATTN_HARNESS_COMPLAINT_H
#define ATTN_HARNESS_COMPLAINT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct complaint {
  char *text; /* cut to size bytes */
  size_t size;
} complaint;

/* Writes the reason; false, for the caller to return. */
__attribute__((format(printf, 2, 3))) bool wrong(complaint to, const char *format, ...);

#endif
