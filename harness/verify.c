/* One run of a variant, watched from all sides: whatever it must not touch is guarded, whatever it must
 * write is poisoned. */
#include "verify.h"

#include <fenv.h>
#include <float.h>
#include <stdio.h>

static void fail(verdict *result, const char *problem) {
  if (!result->passed) return;
  result->passed = false;
  snprintf(result->problem, sizeof result->problem, "%s", problem);
}

static void check_untouched(const inputs *in, const truth *known, const guarded *workspace, verdict *result) {
  const struct {
    const char *problem;
    const guarded *buffer;
  } guards[] = {{"writes beyond its workspace", workspace},  {"writes beyond the output", &in->output},
                {"writes beyond the log-sum-exp", &in->lse}, {"writes beyond the weights", &in->weights},
                {"writes beyond the queries", &in->query},   {"writes beyond the keys", &in->key},
                {"writes beyond the values", &in->value},    {"writes beyond the mask", &in->mask},
                {"writes beyond the bias", &in->bias}};
  for (size_t n = 0; n < sizeof guards / sizeof guards[0]; n++)
    if (!guarded_intact(guards[n].buffer)) fail(result, guards[n].problem);
  if (inputs_checksum(in) != known->inputs_checksum) fail(result, "changes its inputs");
}

/* Whoever called the kernel goes on in the mode that it left. */
static void check_arithmetic(int rounding, verdict *result) {
  volatile float least_normal = FLT_MIN;
  if (fegetround() != rounding) fail(result, "leaves the rounding mode changed");
  if (!(least_normal * 0.5f > 0)) fail(result, "leaves denormal numbers flushed to zero");
}

bool verify_run_against(const attn_variant *variant, inputs *in, const truth *known, int threads,
                        verdict *result, char *why, size_t why_size) {
  guarded workspace;
  const size_t bytes = variant->workspace_size ? variant->workspace_size(&in->problem, threads) : 0;
  if (!guarded_create(&workspace, bytes, 64, why, why_size)) return false;
  guarded_poison(&workspace);
  inputs_poison_outputs(in);
  fenv_t before;
  fegetenv(&before);
  const int rounding = fegetround();
  variant->run(&in->problem, &in->tensors, workspace.data, threads);
  verdict arithmetic = {.passed = true};
  check_arithmetic(rounding, &arithmetic);
  fesetenv(&before);
  truth_compare(known, result);
  if (!arithmetic.passed) fail(result, arithmetic.problem);
  check_untouched(in, known, &workspace, result);
  guarded_destroy(&workspace);
  return true;
}

bool verify_run(const attn_variant *variant, inputs *in, int threads, int64_t max_rows, verdict *result,
                char *why, size_t why_size) {
  truth known;
  if (!truth_solve(&known, in, max_rows, why, why_size)) return false;
  bool ran = verify_run_against(variant, in, &known, threads, result, why, why_size);
  truth_destroy(&known);
  return ran;
}

void verify_outputs(const inputs *in, int64_t max_rows, verdict *result) {
  truth known;
  *result = (verdict){.passed = true};
  char why[128];
  if (!truth_solve(&known, in, max_rows, why, sizeof why)) {
    fail(result, why);
    return;
  }
  truth_compare(&known, result);
  truth_destroy(&known);
}
