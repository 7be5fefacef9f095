/* Which points are one growth curve, and along which length. */
#ifndef ATTN_HARNESS_FAMILIES_H
#define ATTN_HARNESS_FAMILIES_H

#include "results.h"

/* Fills family and swept of all results, whose names, variants and workloads are there. Points of one variant whose names
 * differ in lengths only are a family where queries and keys grow together; where one of the two stays, it stands in the
 * family's name: fused/full/B:1/H:8/Hkv:8/D:64/Tq:1, swept along Tk. Points of no such family, of which three or more differ in
 * the batch alone, are one along B, or in the head dimension alone, along D: fused/full/B:1/H:8/Hkv:8/T:1024. */
void families_find(result *results, size_t count);

#endif
