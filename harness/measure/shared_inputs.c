/* See shared_inputs.h. */
#include "shared_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

shared_entry *shared_inputs_find(const shared_inputs *shared_inputs, const workload *workload) {
  char name[WORKLOAD_NAME_BYTES];
  workload_name(workload, name);
  for (size_t n = 0; n < shared_inputs->count; n++)
    if (strcmp(shared_inputs->items[n]->name, name) == 0) return shared_inputs->items[n];
  return NULL;
}

shared_entry *shared_inputs_acquire(shared_inputs *shared_inputs, const workload *workload, char *why,
                                    size_t why_size) {
  shared_entry *found = shared_inputs_find(shared_inputs, workload);
  if (found) return found;
  snprintf(why, why_size, "out of memory");
  shared_entry **grown = realloc(shared_inputs->items, (shared_inputs->count + 1) * sizeof *grown);
  if (!grown) return NULL;
  shared_inputs->items = grown;
  shared_entry *new = calloc(1, sizeof *new);
  if (!new) return NULL;
  workload_name(workload, new->name);
  if (!inputs_create(&new->inputs, workload, true, why, why_size)) {
    free(new);
    return NULL;
  }
  return grown[shared_inputs->count++] = new;
}

void shared_inputs_destroy(shared_inputs *shared_inputs) {
  for (size_t n = 0; n < shared_inputs->count; n++) {
    if (shared_inputs->items[n]->solved) expected_destroy(&shared_inputs->items[n]->expected);
    inputs_destroy(&shared_inputs->items[n]->inputs);
    free(shared_inputs->items[n]);
  }
  free(shared_inputs->items);
  *shared_inputs = (struct shared_inputs){NULL, 0};
}
