/* See golden.h. */
#include "golden.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reference/reference.h"
#include "problem/cases.h"
#include "run/crash.h"

enum {
  PATH_BYTES = 4096,
  WHY_BYTES = 8192,
  WHERE_BYTES = 256,
  MAX_REASONS = 8,
  REASON_BYTES = 96,
  ALIGNMENT = 64
};

/* What all runs share, and why they had to end. */
typedef struct session {
  const char *const *isas; /* ends in NULL; empty: the one in force */
  int threads;
  FILE *out;
  char why[WHY_BYTES];
} session;

/* What one variant has done so far. */
typedef struct variant_verdicts {
  const attn_variant *variant;
  const char *origin;
  int64_t run, failed, skipped;
  double worst_share;
  char worst_case[256];
  size_t reason_count;
  struct {
    char text[REASON_BYTES];
    int64_t cases;
  } reasons[MAX_REASONS];
} variant_verdicts;

/* The error that is allowed, by the reference's bound for the case's problem. */
typedef struct allowance {
  double *output; /* as the case's expected_output */
  double *lse;
} allowance;

static void count_reason(variant_verdicts *counts, const char *reason) {
  counts->skipped++;
  char text[REASON_BYTES];
  snprintf(text, sizeof text, "%s", reason);
  size_t n = 0;
  while (n < counts->reason_count && strcmp(counts->reasons[n].text, text) != 0) n++;
  if (n == MAX_REASONS) return;
  if (n == counts->reason_count) memcpy(counts->reasons[counts->reason_count++].text, text, sizeof text);
  counts->reasons[n].cases++;
}

/* ---- The allowance ---- */

static void allowance_destroy(allowance *allowed) {
  free(allowed->output);
  free(allowed->lse);
}

static bool allowance_create(allowance *allowed, const golden_case *given) {
  const attn_problem *p = &given->problem;
  const size_t rows = (size_t)(p->batch * p->query_heads * p->query_length);
  const size_t width = (size_t)p->value_dim, keys = (size_t)p->key_length;
  allowed->output = calloc(rows * width + 1, sizeof *allowed->output);
  allowed->lse = calloc(rows + 1, sizeof *allowed->lse);
  double *numbers = calloc(2 * width + 2 * keys + 1, sizeof *numbers);
  bool *visible = calloc(keys + 1, sizeof *visible);
  const bool had_memory = allowed->output && allowed->lse && numbers && visible;
  for (size_t n = 0; had_memory && n < rows; n++) {
    const int64_t head = (int64_t)n / p->query_length;
    reference_row row = {.weights = numbers,
                         .scores = numbers + keys,
                         .visible = visible,
                         .output = numbers + 2 * keys,
                         .output_bound = allowed->output + n * width,
                         .output_bound_probabilistic = numbers + 2 * keys + width};
    reference_solve(p, &given->tensors, head / p->query_heads, head % p->query_heads,
                    (int64_t)n % p->query_length, &row);
    allowed->lse[n] = row.lse_bound;
  }
  free(numbers);
  free(visible);
  return had_memory;
}

/* ---- One run ---- */

/* Worst share of the bound, and where. An lse of -inf, of a row that sees no key, admits nothing else. */
static double compare(const golden_case *given, const allowance *allowed, bool with_lse, char *where,
                      size_t where_size) {
  const attn_problem *p = &given->problem;
  const float *output = given->tensors.output;
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  double worst = 0;
  for (int64_t n = 0; n < rows; n++)
    for (int64_t e = with_lse ? -1 : 0; e < p->value_dim; e++) {
      const int64_t element = n * p->value_dim + e;
      const double computed = e < 0 ? given->tensors.lse[n] : output[element];
      const double expected = e < 0 ? given->expected_lse[n] : given->expected_output[element];
      double share =
          reference_error_share(computed, expected, e < 0 ? allowed->lse[n] : allowed->output[element]);
      if (e < 0 && expected == -INFINITY && computed != expected) share = INFINITY;
      if (share <= worst) continue;
      worst = share;
      char element_name[48] = "lse";
      if (e >= 0) snprintf(element_name, sizeof element_name, "output element %lld", (long long)e);
      const int64_t head = n / p->query_length;
      snprintf(where, where_size, "%s of b %lld, h %lld, i %lld is %.9g, the answer %.17g", element_name,
               (long long)(head / p->query_heads), (long long)(head % p->query_heads),
               (long long)(n % p->query_length), computed, expected);
    }
  return worst;
}

/* Runs a variant on a case once. False, with the reason in words, when there is no workspace for it. */
static bool run_once(const attn_variant *variant, golden_case *given, const attn_problem *problem,
                     bool *overran, session *common) {
  guarded workspace;
  const int threads = common->threads;
  const size_t bytes = variant->workspace_size ? variant->workspace_size(problem, threads) : 0;
  if (!guarded_create(&workspace, bytes, ALIGNMENT, common->why, sizeof common->why)) return false;
  guarded_poison(&workspace);
  guarded_poison(&given->output);
  guarded_poison(&given->lse);
  attn_tensors tensors = given->tensors;
  if (!problem->wants_lse) tensors.lse = NULL;
  variant->run(problem, &tensors, workspace.data, threads);
  *overran = !guarded_intact(&workspace) || !guarded_intact(&given->output) || !guarded_intact(&given->lse);
  guarded_destroy(&workspace);
  return true;
}

/* A case with its name and the error that it allows. */
typedef struct golden_run {
  golden_case given;
  allowance allowed;
  const char *name;
} golden_run;

/* On one instruction set; isa NULL: the one in force. */
static bool check_run(variant_verdicts *counts, golden_run *asked, const attn_problem *problem,
                      const char *isa, bool *passed, session *common) {
  const char *variant = counts->variant->name, *name = asked->name;
  char where[WHERE_BYTES] = "";
  bool overran = false;
  if (isa) setenv("ATTN_ISA", isa, 1);
  crash_context(variant, name, counts->origin, isa, common->threads);
  const bool ran = run_once(counts->variant, &asked->given, problem, &overran, common);
  crash_context(NULL, NULL, NULL, NULL, 0);
  if (!ran) return false;

  const double share = compare(&asked->given, &asked->allowed, problem->wants_lse, where, sizeof where);
  if (share > counts->worst_share) {
    counts->worst_share = share;
    snprintf(counts->worst_case, sizeof counts->worst_case, "%s", name);
  }
  const char *on = isa ? isa : "no instruction set named";
  if (overran)
    fprintf(common->out, "FAILED %s (%s) on case %s: it wrote outside its buffers\n", variant, on, name);
  else if (!(share <= 1))
    fprintf(common->out, "FAILED %s (%s) on case %s: %s, %.3g times the bound\n", variant, on, name, where,
            share);
  *passed = *passed && !overran && share <= 1;
  return true;
}

static bool check_variant(variant_verdicts *counts, golden_run *asked, session *common) {
  attn_problem problem = asked->given.problem;
  const char *reason = attn_unsupported(counts->variant, &problem);
  if (reason && problem.wants_lse) {
    problem.wants_lse = false;
    reason = attn_unsupported(counts->variant, &problem);
  }
  if (reason) {
    count_reason(counts, reason);
    return true;
  }
  bool passed = true;
  const char *const *isas = common->isas;
  if (!isas[0] && !check_run(counts, asked, &problem, NULL, &passed, common)) return false;
  for (size_t n = 0; isas[n]; n++)
    if (!check_run(counts, asked, &problem, isas[n], &passed, common)) return false;
  counts->run++;
  counts->failed += !passed;
  return true;
}

/* ---- The folder ---- */

static int is_no_hidden_name(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool check_case(variant_verdicts *verification, size_t count, const char *path, const char *name,
                       session *common) {
  golden_run asked = {.name = name};
  if (!case_load(&asked.given, path, common->why, sizeof common->why)) return false;
  bool could_run = allowance_create(&asked.allowed, &asked.given);
  if (!could_run) snprintf(common->why, sizeof common->why, "%s: no memory for its bounds", path);
  for (size_t n = 0; could_run && n < count; n++) could_run = check_variant(&verification[n], &asked, common);
  allowance_destroy(&asked.allowed);
  case_destroy(&asked.given);
  return could_run;
}

static bool check_folder(variant_verdicts *verification, size_t count, const char *folder, session *common) {
  struct dirent **entries = NULL;
  const int entry_count = scandir(folder, &entries, is_no_hidden_name, alphasort);
  if (entry_count < 0) {
    snprintf(common->why, sizeof common->why, "%s is not a folder that can be read", folder);
    return false;
  }
  bool could_run = true;
  int64_t cases = 0;
  for (int n = 0; n < entry_count; n++) {
    char path[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, entries[n]->d_name);
    if (could_run && length < PATH_BYTES && is_folder(path)) {
      could_run = check_case(verification, count, path, entries[n]->d_name, common);
      cases++;
    }
    free(entries[n]);
  }
  free(entries);
  if (cases > 0) return could_run;
  snprintf(common->why, sizeof common->why, "%s has no cases: each is a folder with a case.txt", folder);
  return false;
}

/* ---- The report ---- */

static void print_verdicts(const variant_verdicts *counts, FILE *out) {
  fprintf(out, "%-16s %4lld cases run, %lld failed, worst error %.3g of its bound", counts->variant->name,
          (long long)counts->run, (long long)counts->failed, counts->worst_share);
  if (counts->worst_case[0]) fprintf(out, " (%s)", counts->worst_case);
  if (counts->skipped > 0) fprintf(out, "; %lld skipped:", (long long)counts->skipped);
  for (size_t n = 0; n < counts->reason_count; n++)
    fprintf(out, counts->reason_count > 1 ? "%s %s (%lld)" : "%s %s", n ? "," : "", counts->reasons[n].text,
            (long long)counts->reasons[n].cases);
  fprintf(out, "\n");
}

static bool is_chosen(const attn_variant *variant, const char *const *names, size_t name_count) {
  for (size_t n = 0; n < name_count; n++)
    if (strcmp(variant->name, names[n]) == 0) return true;
  return name_count == 0;
}

static size_t choose_variants(variant_verdicts *verification, const variant_list *list,
                              const char *const *names, size_t name_count) {
  size_t count = 0;
  for (size_t n = 0; n < list->count; n++)
    if (is_chosen(list->variants[n], names, name_count)) {
      verification[count].variant = list->variants[n];
      verification[count++].origin = list->origins ? list->origins[n] : NULL;
    }
  return count;
}

int cases_verify(const variant_list *list, const char *const *variant_names, size_t variant_count,
                 const char *folder, int threads, FILE *out) {
  for (size_t n = 0; n < variant_count; n++)
    if (!variant_list_find(list, variant_names[n])) {
      fprintf(stderr, "attnbench: there is no variant '%s'; attnbench list names them\n", variant_names[n]);
      return 2;
    }
  session common = {variant_list_instruction_sets(list), threads, out, "no memory for the cases"};
  variant_verdicts *verification = calloc(list->count + 1, sizeof *verification);
  const char *set = getenv("ATTN_ISA");
  char *isa_before = set ? strdup(set) : NULL;
  bool could_run = false;
  int64_t failed = 0;
  if (verification && (!set || isa_before)) {
    int64_t run = 0;
    const size_t count = choose_variants(verification, list, variant_names, variant_count);
    could_run = check_folder(verification, count, folder, &common);
    for (size_t n = 0; could_run && n < count; n++) {
      print_verdicts(&verification[n], out);
      failed += verification[n].failed;
      run += verification[n].run;
    }
    if (could_run && run == 0) {
      snprintf(common.why, sizeof common.why, "no variant takes any case of %s", folder);
      could_run = false;
    }
    if (isa_before)
      setenv("ATTN_ISA", isa_before, 1);
    else
      unsetenv("ATTN_ISA");
  }
  if (!could_run) fprintf(stderr, "attnbench: %s\n", common.why);
  free(isa_before);
  free(verification);
  return !could_run ? 2 : failed > 0;
}
