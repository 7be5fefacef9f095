/* Inputs that several points share: each workload is filled once, and solved once. */
#ifndef ATTN_HARNESS_POOL_H
#define ATTN_HARNESS_POOL_H

#include "truth.h"

typedef struct pooled {
  char name[WORKLOAD_NAME_BYTES];
  inputs inputs;
  truth truth;
  bool solved; /* truth holds rows */
} pooled;

typedef struct pool {
  pooled **items;
  size_t count;
} pool;

/* The inputs of this workload; NULL when they are not in the pool. */
pooled *pool_find(const pool *pool, const workload *workload);

/* The same, made where they are not there yet; NULL, with the reason in words, when memory is short. */
pooled *pool_acquire(pool *pool, const workload *workload, char *why, size_t why_size);

void pool_destroy(pool *pool);

#endif
