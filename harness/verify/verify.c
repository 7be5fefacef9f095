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

static void check_untouched(const inputs *in, const expected *known, const guarded *workspace,
                            verdict *result) {
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

/* Whoever called the kernel goes on in the mode that it left; NULL if that is the one before. */
static const char *changed_arithmetic(int rounding) {
  volatile float least_normal = FLT_MIN;
  if (fegetround() != rounding) return "leaves the rounding mode changed";
  return least_normal * 0.5f > 0 ? NULL : "leaves denormal numbers flushed to zero";
}

static bool rows_are_defined(const attn_problem *p, const float *data, attn_strides strides, int64_t width) {
  if (!data || width == 0) return true;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t i = 0; i < p->query_length; i++) {
        const float *row = data + b * strides.batch + h * strides.head + i * strides.position;
        if (!memory_is_defined(row, (size_t)width * sizeof *row)) return false;
      }
  return true;
}

/* What comes after this may read the outputs, gaps included, without a complaint of memcheck's. */
static bool outputs_are_defined(inputs *in) {
  if (!memory_is_watched()) return true;
  const attn_problem *p = &in->problem;
  const bool defined = rows_are_defined(p, in->tensors.output, p->output, p->value_dim) &&
                       rows_are_defined(p, in->tensors.lse, p->lse, 1) &&
                       rows_are_defined(p, in->tensors.weights, p->weights, p->key_length);
  guarded_trust(&in->output);
  guarded_trust(&in->lse);
  guarded_trust(&in->weights);
  return defined;
}

bool verify_run_against(const attn_variant *variant, inputs *in, const expected *known, int threads,
                        verdict *result, char *why, size_t why_size) {
  guarded workspace;
  const size_t bytes = variant->workspace_size ? variant->workspace_size(&in->problem, threads) : 0;
  if (!guarded_create(&workspace, bytes, 64, why, why_size)) return false;
  guarded_poison(&workspace);
  inputs_poison_outputs(in);
  guarded_forget(&workspace);
  guarded_forget(&in->output);
  guarded_forget(&in->lse);
  guarded_forget(&in->weights);
  fenv_t before;
  fegetenv(&before);
  const int rounding = fegetround();
  variant->run(&in->problem, &in->tensors, workspace.data, threads);
  const char *changed = changed_arithmetic(rounding);
  fesetenv(&before);
  const bool defined = outputs_are_defined(in);
  expected_compare(known, result);
  if (changed) fail(result, changed);
  if (!defined) fail(result, "has outputs that depend on memory that was never written");
  check_untouched(in, known, &workspace, result);
  guarded_destroy(&workspace);
  return true;
}

bool verify_run(const attn_variant *variant, inputs *in, int threads, int64_t max_rows, verdict *result,
                char *why, size_t why_size) {
  expected known;
  if (!expected_solve(&known, in, max_rows, why, why_size)) return false;
  bool ran = verify_run_against(variant, in, &known, threads, result, why, why_size);
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
  expected_compare(&known, result);
  expected_destroy(&known);
}
