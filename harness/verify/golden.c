/* See golden.h. A case is one more source of expected rows: the reference gives the bounds, the case the answers. */
#include "golden.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/timer.h"
#include "problem/cases.h"
#include "problem/features.h"
#include "gradients.h"
#include "verification.h"

enum { PATH_BYTES = 4096 };

/* The case's answers in the places of the reference's. */
static void take_answers(expected *known, const golden_case *given) {
  const int64_t width = given->inputs.problem.value_dim;
  if (known->gradients) gradients_take_answers(known->gradients, (const double *const *)given->answers);
  if (known->states) gradients_take_answers(known->states, (const double *const *)given->answers);
  for (int64_t n = 0; n < known->rows; n++) {
    reference_row *row = &known->solved[n];
    const double *answer = given->answers[TENSOR_OUTPUT] + known->positions[n] * width;
    for (int64_t e = 0; e < width; e++) row->output[e] = answer[e];
    if (given->answers[TENSOR_LSE]) row->lse = given->answers[TENSOR_LSE][known->positions[n]];
  }
}

/* One variant; what gives no log-sum-exp is held to the output alone. */
static bool run_variant(verification *one, golden_case *given, const char *name, char *why, size_t why_size) {
  inputs *in = &given->inputs;
  const attn_problem whole = in->problem;
  const attn_tensors tensors = in->tensors;
  expected known;
  if (runner_refusal(one->of->variant, &in->problem)) {
    in->problem.lse = (attn_layout){0};
    in->problem.features = features_of(&in->problem);
    in->tensors.lse = NULL;
  }
  if (runner_refusal(one->of->variant, &in->problem)) {
    in->problem = whole;
    in->tensors = tensors;
  }
  bool ran = expected_solve(&known, in, 0, why, why_size);
  if (ran) {
    take_answers(&known, given);
    ran = verification_run_case(one, in, &known, name, one->options->threads, why, why_size);
    expected_destroy(&known);
  }
  in->problem = whole;
  in->tensors = tensors;
  return ran;
}

static bool run_case(verification *all, golden_case *given, const char *name, char *why, size_t why_size) {
  bool ran = true;
  for (size_t n = 0; ran && n < all->count; n++) {
    if (!verification_has_turn(all, n)) {
      all->asked++; /* as when it still had */
      continue;
    }
    verification one = *all;
    one.of = &all->of[n];
    one.count = 1;
    ran = run_variant(&one, given, name, why, why_size);
    all->asked = one.asked;
  }
  return ran;
}

static int is_no_hidden_name(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool run_folder(verification *all, const char *folder, char *why, size_t why_size) {
  struct dirent **entries = NULL;
  const int entry_count = scandir(folder, &entries, is_no_hidden_name, alphasort);
  if (entry_count < 0) {
    snprintf(why, why_size, "%s is not a folder that can be read", folder);
    return false;
  }
  bool ran = true;
  int64_t cases = 0;
  for (int n = 0; n < entry_count; n++) {
    char path[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, entries[n]->d_name);
    if (ran && length < PATH_BYTES && is_folder(path)) {
      golden_case given;
      ran = case_load(&given, path, why, why_size);
      if (ran) {
        ran = inputs_keep(&given.inputs, why, why_size) &&
              run_case(all, &given, entries[n]->d_name, why, why_size);
        case_destroy(&given);
      }
      cases++;
    }
    free(entries[n]);
  }
  free(entries);
  if (cases > 0) return ran;
  snprintf(why, why_size, "%s has no cases: each is a folder with a case.txt", folder);
  return false;
}

static bool run_all(verification *all, char *why, size_t why_size) {
  bool ran;
  do ran = run_folder(all, all->options->cases, why, why_size);
  while (ran && verification_next_plugin(all));
  return ran;
}

int golden_verify(const variant_list *list, const verify_options *options, FILE *out) {
  char why[2 * PATH_BYTES] = "no memory for the cases";
  verification all;
  int status = 2;
  const bool created = verification_create(&all, list, options);
  if (created && all.count == 0) snprintf(why, sizeof why, "there is no such variant");
  if (created && all.count > 0 && run_all(&all, why, sizeof why)) {
    verification_print(&all, out);
    const int64_t failed = verification_failed(&all);
    fprintf(out, "\n%zu variant%s, %" PRId64 " cases, %" PRId64 " failed, %.1f s\n", all.count,
            all.count == 1 ? "" : "s", verification_cases(&all), failed,
            wall_seconds() - all.progress->started);
    status = failed > 0 ? 1 : verification_ran(&all, false) ? 0 : 2;
  } else {
    fprintf(stderr, "attnbench: %s\n", why);
  }
  verification_destroy(&all);
  return status;
}
