/* See pool.h. */
#include "pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pooled *pool_find(const pool *pool, const workload *workload) {
  char name[WORKLOAD_NAME_BYTES];
  workload_name(workload, name);
  for (size_t n = 0; n < pool->count; n++)
    if (strcmp(pool->items[n]->name, name) == 0) return pool->items[n];
  return NULL;
}

pooled *pool_acquire(pool *pool, const workload *workload, char *why, size_t why_size) {
  pooled *found = pool_find(pool, workload);
  if (found) return found;
  snprintf(why, why_size, "out of memory");
  pooled **grown = realloc(pool->items, (pool->count + 1) * sizeof *grown);
  if (!grown) return NULL;
  pool->items = grown;
  pooled *new = calloc(1, sizeof *new);
  if (!new) return NULL;
  workload_name(workload, new->name);
  if (!inputs_create(&new->inputs, workload, true, why, why_size)) {
    free(new);
    return NULL;
  }
  return grown[pool->count++] = new;
}

void pool_destroy(pool *pool) {
  for (size_t n = 0; n < pool->count; n++) {
    if (pool->items[n]->solved) truth_destroy(&pool->items[n]->truth);
    inputs_destroy(&pool->items[n]->inputs);
    free(pool->items[n]);
  }
  free(pool->items);
  *pool = (struct pool){NULL, 0};
}
