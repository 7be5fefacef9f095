/* What scripts/peers asks of the suite, as a shared object for Python: inputs, a variant to run, the
 * reference with its bound, and the interval of a median. One case is one problem with its inputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/plugins.h"
#include "run/runner.h"
#include "base/statistics.h"
#include "verify/expected.h"

#define EXPORTED __attribute__((visibility("default")))

typedef struct suite_case {
  inputs inputs;
  expected expected;
  bool solved;
  guarded workspace;
} suite_case;

typedef struct suite_verdict {
  bool passed;
  double bound_share;       /* the larger share of both bounds */
  double mean_square_share; /* of what the root mean square may be */
  char problem[256];
} suite_verdict;

EXPORTED void suite_close(suite_case *at) {
  if (!at) return;
  if (at->solved) expected_destroy(&at->expected);
  guarded_destroy(&at->workspace);
  inputs_destroy(&at->inputs);
  free(at);
}

/* The problem of this workload, as workload.h writes it, with its inputs; NULL, with the reason. */
EXPORTED suite_case *suite_open(const char *text, char *why, size_t why_size) {
  suite_case *at = calloc(1, sizeof *at);
  workload workload;
  if (at && workload_parse(text, &workload, why, why_size) &&
      inputs_create(&at->inputs, &workload, true, why, why_size))
    return at;
  if (!at) snprintf(why, why_size, "no memory");
  free(at);
  return NULL;
}

EXPORTED const void *suite_query(const suite_case *at) { return at->inputs.tensors.query; }
EXPORTED const void *suite_key(const suite_case *at) { return at->inputs.tensors.key; }
EXPORTED const void *suite_value(const suite_case *at) { return at->inputs.tensors.value; }
EXPORTED const void *suite_output(const suite_case *at) { return at->inputs.tensors.output; }
EXPORTED double suite_flops(const suite_case *at) { return workload_flops(&at->inputs.workload); }

/* The variant of a plugin, or NULL, with the reason. It stays loaded. */
EXPORTED const attn_variant *suite_variant(const char *plugin, const char *name, char *why, size_t why_size) {
  variant_list list = {0};
  if (!variant_list_add(&list, plugin, why, why_size)) return NULL;
  const attn_variant *variant = variant_list_find(&list, name);
  if (!variant) snprintf(why, why_size, "%s has no variant '%s'", plugin, name);
  variant_list_destroy(&list);
  return variant;
}

/* With the instruction set that ATTN_ISA names, as the program would. */
static run_setup setup_of(const attn_variant *variant, int threads) {
  return (run_setup){.variant = variant, .isa = getenv("ATTN_ISA"), .threads = threads};
}

/* Makes a workspace for the variant; false, with the reason, when it cannot solve the case. */
EXPORTED bool suite_prepare(suite_case *at, const attn_variant *variant, int threads, char *why,
                            size_t why_size) {
  const attn_problem *problem = &at->inputs.problem;
  const run_setup setup = setup_of(variant, threads);
  const char *reason = runner_refusal(variant, problem);
  if (reason) {
    snprintf(why, why_size, "%s: %s", variant->name, reason);
    return false;
  }
  guarded_destroy(&at->workspace);
  return guarded_create(&at->workspace, runner_workspace_bytes(&setup, problem), 64, why, why_size);
}

EXPORTED void suite_run(suite_case *at, const attn_variant *variant, int threads) {
  const run_setup setup = setup_of(variant, threads);
  const attn_call call = runner_call(&setup, &at->inputs.problem, &at->inputs.tensors, at->workspace.data);
  runner_invoke(&call);
}

/* Holds an output, packed [B, H, T, D] and of the problem's type, to reference rows that are solved at the first call. False, with
 * the reason, when that could not be done. */
EXPORTED bool suite_hold(suite_case *at, const void *output, int64_t max_rows, suite_verdict *result,
                         char *why, size_t why_size) {
  if (!at->solved) at->solved = expected_solve(&at->expected, &at->inputs, max_rows, why, why_size);
  if (!at->solved) return false;
  memcpy(at->inputs.buffers[TENSOR_OUTPUT].data, output, at->inputs.buffers[TENSOR_OUTPUT].bytes);
  verdict verdict;
  expected_compare(&at->expected, 0, &verdict);
  result->passed = verdict.passed;
  result->bound_share = fmax(verdict.bound_share, verdict.probabilistic_share);
  result->mean_square_share = verdict.mean_square_share;
  memcpy(result->problem, verdict.problem, sizeof result->problem);
  return true;
}

EXPORTED interval suite_median(const double *values, size_t count) {
  return statistics_median_interval(values, count, 0.95);
}
