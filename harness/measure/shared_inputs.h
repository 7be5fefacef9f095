/* Inputs that several points share: each workload is filled once, and solved once. */
#ifndef ATTN_HARNESS_SHARED_INPUTS_H
#define ATTN_HARNESS_SHARED_INPUTS_H

#include "verify/expected.h"
#include "verify/projection.h"

typedef struct shared_entry {
  char name[WORKLOAD_NAME_BYTES];
  inputs inputs;
  expected expected;
  bool solved;            /* expected holds rows */
  projection *projection; /* of somebody else's; NULL: it could not be made */
} shared_entry;

typedef struct shared_inputs {
  shared_entry **items;
  size_t count;
} shared_inputs;

/* The inputs of this workload; NULL when they are not in the shared_inputs. */
shared_entry *shared_inputs_find(const shared_inputs *shared_inputs, const workload *workload);

/* The same, made where they are not there yet; NULL, with the reason in words, when memory is short. */
shared_entry *shared_inputs_acquire(shared_inputs *shared_inputs, const workload *workload, char *why,
                                    size_t why_size);

void shared_inputs_destroy(shared_inputs *shared_inputs);

#endif
