/* One run of a variant, judged: what it wrote against the reference, and what it did by the runner. */
#include "verify.h"

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "team_verdict.h"

static void fail(verdict *result, const char *problem) {
  if (!result->passed) return;
  result->passed = false;
  snprintf(result->problem, sizeof result->problem, "%s", problem);
}

bool verify_run_against(const run_setup *setup, inputs *in, const expected *known, bool first,
                        verdict *result, char *why, size_t why_size) {
  const run_watch watch = {.workspace = first ? RUN_POISONED : RUN_POISONED_AGAIN,
                           .side_effects = first,
                           .first = first,
                           .inputs_checksum = known->inputs_checksum};
  run_outcome outcome;
  if (!runner_run(setup, in, &watch, &outcome, why, why_size)) return false;
  if (outcome.ran && !outcome.device_failed)
    expected_compare(known, setup->variant->traits, result);
  else
    *result = (verdict){.passed = true, .wrong_row = -1};
  if (setup->variant->place == ATTN_TEAM) team_verdict_agree(result, setup->isa);
  if (outcome.violation[0]) fail(result, outcome.violation);
  return true;
}

bool verify_run(const run_setup *setup, inputs *in, int64_t max_rows, verdict *result, char *why,
                size_t why_size) {
  expected known;
  if (!expected_solve(&known, in, max_rows, why, why_size)) return false;
  bool ran = verify_run_against(setup, in, &known, false, result, why, why_size);
  expected_destroy(&known);
  return ran;
}

void verify_outputs(const inputs *in, int64_t max_rows, verdict *result) {
  expected known;
  *result = (verdict){.passed = true};
  char why[128];
  if (!expected_solve(&known, in, max_rows, why, sizeof why)) {
    fail(result, why);
    return;
  }
  expected_compare(&known, 0, result);
  expected_destroy(&known);
}

/* Of the rows that deviate most. One that is wrong stands out by far, and each costs what the reference costs. */
enum { DEVIATING = 4, DEVIATING_OF_BATCH = 2 };

bool verify_batch(const run_batch *batch, const projection *projection, uint32_t traits, verdict *result) {
  const attn_problem *p = &batch->inputs->problem;
  const int64_t all = p->batch * p->query_heads * p->query_length;
  int64_t rows[1 + DEVIATING_OF_BATCH], count = 0;
  expected known;
  char why[128];
  if (batch->changed_row >= 0) rows[count++] = batch->changed_row;
  if (projection)
    count += projection_worst(projection, batch->inputs, batch, DEVIATING_OF_BATCH, rows + count);
  else if (all > 0)
    rows[count++] = (int64_t)(random_bits(batch->seed, UINT64_MAX) % (uint64_t)all);
  if (!expected_solve_rows(&known, batch->inputs, rows, count, why, sizeof why)) return false;
  expected_compare(&known, traits, result);
  expected_destroy(&known);
  return true;
}

bool verify_projected(const inputs *in, const projection *projection, uint32_t traits, verdict *result) {
  int64_t rows[DEVIATING];
  expected known;
  verdict more;
  char why[128];
  const int64_t count = projection_worst(projection, in, NULL, DEVIATING, rows);
  if (!expected_solve_rows(&known, in, rows, count, why, sizeof why)) return false;
  expected_compare(&known, traits, &more);
  expected_destroy(&known);
  result->bound_share = fmax(result->bound_share, more.bound_share);
  result->probabilistic_share = fmax(result->probabilistic_share, more.probabilistic_share);
  if (!more.passed) fail(result, more.problem);
  return true;
}
