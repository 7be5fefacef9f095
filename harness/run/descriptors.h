/* The open descriptors of the process. */
#ifndef ATTN_HARNESS_DESCRIPTORS_H
#define ATTN_HARNESS_DESCRIPTORS_H

#include <sys/types.h>

enum { MOST_DESCRIPTORS = 256 }; /* beyond these nothing is seen */

typedef struct descriptor {
  int number, kept; /* kept: the same again, out of the way; -1: could not be had */
  int flags;
  dev_t device;
  ino_t file;
} descriptor;

typedef struct descriptors {
  descriptor of[MOST_DESCRIPTORS];
  int count;
} descriptors;

void descriptors_note(descriptors *now);

typedef enum descriptor_change {
  DESCRIPTORS_SAME,
  DESCRIPTOR_LEFT_OPEN,
  DESCRIPTOR_CLOSED
} descriptor_change;

/* Closes what has been opened since, opens what has been closed, and says which came first: number. */
descriptor_change descriptors_put_back(descriptors *before, int *number);

#endif
