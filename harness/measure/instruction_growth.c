/* See instruction_growth.h. Counting takes some 50 times as long as running, so that each family is counted on its smallest
 * problem of the same kind: one batch entry, one key/value head with at most two query heads, a band of at most
 * 64 keys, and four lengths that follow from the declared growth. That leaves the exponent as it is. */
#define _GNU_SOURCE
#include "instruction_growth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/parts.h"
#include "power_law.h"
#include "run/instructions.h"

enum { LENGTHS = 4, LARGEST_BAND = 64, LARGEST_GROUP = 2 };

static const bench_point *point_of(const growth *growth, const bench_point *points, size_t count) {
  for (size_t n = 0; n < count; n++)
    if (strcmp(points[n].variant->name, growth->variant) == 0) return &points[n];
  return NULL;
}

static const workload *workload_of(const report *report, const growth *growth) {
  for (size_t n = 0; n < report->result_count; n++)
    if (report->results[n].family_index == growth->family_index) return &report->results[n].workload;
  return NULL;
}

/* Queries beside other numbers of keys, and lists for each batch entry, do not shrink to one length. */
static bool can_shrink(const workload *w) {
  return w->query_length == w->key_length && w->offset == 0 && !w->has_offsets && !w->has_lengths;
}

static int64_t length_at(const growth *growth, int n) {
  return (growth->time_declared >= 2 ? INT64_C(64) : INT64_C(512)) << n;
}

static workload shrunk(const workload *original, int64_t length) {
  workload small = *original;
  small.batch = 1;
  small.query_heads = original->kv_heads > 0 ? original->query_heads / original->kv_heads : 0;
  if (small.query_heads > LARGEST_GROUP) small.query_heads = LARGEST_GROUP;
  small.kv_heads = 1;
  if (small.left != ATTN_UNLIMITED && small.left > LARGEST_BAND) small.left = LARGEST_BAND;
  if (small.right != ATTN_UNLIMITED && small.right > LARGEST_BAND) small.right = LARGEST_BAND;
  small.query_length = small.key_length = length;
  return small;
}

/* With which instruction set, or why not. */
typedef struct outcome {
  char isa[INSTRUCTIONS_ISA_BYTES], why[256];
} outcome;

static bool count_family(growth *growth, const char *program, const char *origin, const workload *original,
                         outcome *of) {
  char names[LENGTHS][WORKLOAD_NAME_BYTES];
  double lengths[LENGTHS], counts[LENGTHS];
  instruction_point points[LENGTHS];
  for (int n = 0; n < LENGTHS; n++) {
    const workload small = shrunk(original, length_at(growth, n));
    workload_name(&small, names[n]);
    lengths[n] = (double)small.key_length;
    points[n] = (instruction_point){.variant = growth->variant, .problem = names[n]};
  }
  if (!instructions_count(program, origin, NULL, points, LENGTHS, of->isa, of->why, sizeof of->why))
    return false;
  for (int n = 0; n < LENGTHS; n++) counts[n] = (double)points[n].instructions;
  growth->instructions = power_law_fit(lengths, LENGTHS, counts, 1).exponent;
  growth->has_instructions = true;
  return true;
}

void instruction_growth_fit(report *report, const bench_point *points, size_t count) {
  char program[PARTS_PATH_BYTES];
  const char *missing =
      parts_program(program) ? instructions_unavailable() : "the path of the program is not known";
  if (missing) {
    snprintf(report->instructions_note, sizeof report->instructions_note, "%s", missing);
    return;
  }
/* Nothing is measured any more, and a count takes one processor: families are counted beside each other. */
#pragma omp parallel for schedule(dynamic, 1)
  for (size_t n = 0; n < report->growth_count; n++) {
    growth *growth = &report->growths[n];
    const bench_point *point = point_of(growth, points, count);
    const workload *workload = workload_of(report, growth);
    outcome of = {.why = "it was ended before all were counted"};
    if (!point || !workload || growth->memory_only || growth->swept >= SWEPT_BATCH || !can_shrink(workload))
      continue;
    const bool counted = !interrupt_wanted() && count_family(growth, program, point->origin, workload, &of);
#pragma omp critical
    if (counted)
      snprintf(report->instructions_isa, sizeof report->instructions_isa, "%s", of.isa);
    else
      snprintf(report->instructions_note, sizeof report->instructions_note, "%s", of.why);
  }
}
