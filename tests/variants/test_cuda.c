/* The kernels for GPUs on the emulated device: chosen problems that the edges of tiles, of bands and of groups
 * lie in, each held to the reference under two schedules, and some to the properties under one after the other
 * (`make test-full`: more, under every schedule). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "run/plugins.h"
#include "run/runner.h"
#include "verify/golden.h"
#include "verify/properties.h"
#include "verify/verify.h"

#define EMULATED ATTN_BUILD_DIR "/attnbench_emu.so"

/* One to a line. Planted faults of these kernels have to be seen on them too (scripts/mutants.sh). */
#define FILE_OF_PROBLEMS ATTN_SOURCE_DIR "/tests/variants/cuda_problems.txt"
enum { MOST_PROBLEMS = 64 };
static char problems[MOST_PROBLEMS][WORKLOAD_NAME_BYTES];
static size_t problem_count;

static variant_list list;

static int load(void **state) {
  char why[256];
  (void)state;
  FILE *file = fopen(FILE_OF_PROBLEMS, "r");
  if (!file) return -1;
  while (problem_count < MOST_PROBLEMS && fgets(problems[problem_count], WORKLOAD_NAME_BYTES, file)) {
    problems[problem_count][strcspn(problems[problem_count], "\n")] = '\0';
    problem_count++;
  }
  fclose(file);
  if (variant_list_add(&list, EMULATED, why, sizeof why)) return 0;
  print_error("%s\n", why);
  return -1;
}

static int unload(void **state) {
  (void)state;
  variant_list_destroy(&list);
  return 0;
}

/* In place: what is expected points to the inputs. */
typedef struct known_problem {
  inputs inputs;
  expected known;
} known_problem;

static void pose(const char *text, known_problem *problem) {
  workload workload;
  char why[256];
  if (!workload_parse_sound(text, &workload, why, sizeof why) ||
      !inputs_create(&problem->inputs, &workload, false, why, sizeof why) ||
      !expected_solve(&problem->known, &problem->inputs, 0, why, sizeof why))
    fail_msg("%s: %s", text, why);
}

static void withdraw(known_problem *problem) {
  expected_destroy(&problem->known);
  inputs_destroy(&problem->inputs);
}

/* A problem under one of the schedules after the other (`make test-full`: under all). */
static bool is_run_under(size_t schedule, size_t turn) {
  return schedule == turn % 4 || getenv("ATTN_TEST_FULL");
}

static void every_variant_is_right_under_every_schedule(void **state) {
  int64_t solved[64] = {0};
  (void)state;
  for (size_t n = 0; n < problem_count; n++) {
    known_problem problem;
    char why[256];
    pose(problems[n], &problem);
    for (size_t v = 0; v < list.count; v++) {
      if (runner_refusal(list.variants[v], &problem.inputs.problem)) continue;
      const char *const *schedules = variant_list_instruction_sets_of(&list, list.variants[v]);
      for (size_t s = 0; schedules[s]; s++) {
        const run_setup setup = {.variant = list.variants[v], .isa = schedules[s], .threads = 1};
        verdict verdict;
        if (!is_run_under(s, (size_t)solved[v])) continue;
        if (!verify_run_against(&setup, &problem.inputs, &problem.known, false, &verdict, why, sizeof why))
          fail_msg("%s on %s: %s", list.variants[v]->name, problems[n], why);
        if (!verdict.passed)
          fail_msg("%s, %s, on %s: %s", list.variants[v]->name, setup.isa, problems[n], verdict.problem);
      }
      solved[v]++;
    }
    withdraw(&problem);
  }
  for (size_t v = 0; v < list.count; v++)
    if (solved[v] < 2) fail_msg("%s solves %d of the problems", list.variants[v]->name, (int)solved[v]);
}

/* Each variant on one in 32 of the problems that it takes, from the second on (`make test-full`: in four). */
static void every_variant_keeps_to_the_properties(void **state) {
  const size_t step = getenv("ATTN_TEST_FULL") ? 4 : 32;
  size_t turn = 0, taken[64] = {0};
  (void)state;
  for (size_t n = 0; n < problem_count; n++) {
    known_problem problem;
    char why[256];
    pose(problems[n], &problem);
    properties *prepared = properties_prepare(&problem.inputs, &problem.known, why, sizeof why);
    if (!prepared) fail_msg("%s: %s", problems[n], why);
    for (size_t v = 0; v < list.count; v++) {
      if (runner_refusal(list.variants[v], &problem.inputs.problem)) continue;
      if (taken[v]++ % step != 1) continue;
      const char *const *schedules = variant_list_instruction_sets_of(&list, list.variants[v]);
      const run_setup setup = {.variant = list.variants[v], .isa = schedules[turn++ % 4], .threads = 1};
      property_verdict verdict;
      if (!properties_hold(prepared, &setup, PROPERTIES_ALL, &verdict, why, sizeof why)) fail_msg("%s", why);
      if (verdict.failed)
        fail_msg("%s, %s, on %s: %s", list.variants[v]->name, setup.isa, problems[n], verdict.problem);
    }
    properties_destroy(prepared);
    withdraw(&problem);
  }
  for (size_t v = 0; v < list.count; v++)
    if (taken[v] < 2) fail_msg("%s was held to no property", list.variants[v]->name);
}

/* What the table of a verification says of a variant: how many cases it passed. -1: not that it passed. */
static int64_t passed_cases(const char *said, const char *variant) {
  char name[64];
  snprintf(name, sizeof name, "\n%-*s passed ", VARIANT_COLUMN, variant);
  const char *line = strstr(said, name);
  return line ? strtoll(line + strlen(name), NULL, 10) : -1;
}

/* What `verify --cases` says, and its status. */
static int verify_cases(const char *folder, char *said, size_t said_size) {
  const verify_options options = {.cases = folder, .threads = 1};
  FILE *out = tmpfile();
  assert_non_null(out);
  const int status = golden_verify(&list, &options, out);
  rewind(out);
  said[fread(said, 1, said_size - 1, out)] = '\0';
  fclose(out);
  return status;
}

/* Under each of the four schedules; some take softmax of 16 bits alone, of one key/value head, or linear attention. */
static void every_variant_gives_the_answers_of_the_golden_cases(void **state) {
  static char said[16384];
  (void)state;
  const int status = verify_cases(ATTN_SOURCE_DIR "/tests/cases", said, sizeof said);
  if (status != 0 || strstr(said, "would take seconds")) fail_msg("status %d: %s", status, said);
  for (size_t v = 0; v < list.count; v++) {
    const bool is_narrow = !(list.variants[v]->types >> ATTN_FLOAT32 & 1);
    const int64_t cases = is_narrow                                   ? 4
                          : list.variants[v]->function == ATTN_LINEAR ? 9
                                                                      : 38,
                  least = 4 * cases;
    if (passed_cases(said, list.variants[v]->name) < least)
      fail_msg("%s passed fewer than %d: %s", list.variants[v]->name, (int)least, said);
  }
}

/* 800 x 800 pairs of 8 features: ten times as many multiply-adds as the emulated device makes in a second. */
static void a_case_that_would_take_seconds_is_left_out_and_counted(void **state) {
  static char said[16384];
  char folder[] = "/tmp/attnbench_cases_XXXXXX", command[1024];
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(command, sizeof command,
           "mkdir %s/long && cd %s/long && sed -e 's/^batch .*/batch 1/' -e 's/_heads .*/_heads 1/' "
           "-e 's/_length .*/_length 800/' -e 's/_dim .*/_dim 8/' %s/tests/cases/full/case.txt >case.txt && "
           "truncate -s 25600 q.f32 k.f32 v.f32 && truncate -s 51200 output.f64 && truncate -s 6400 lse.f64",
           folder, folder, ATTN_SOURCE_DIR);
  assert_int_equal(system(command), 0);
  const int status = verify_cases(folder, said, sizeof said);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  if (status != 2 || !strstr(said, "skipped 1: would take seconds on this device (1)"))
    fail_msg("status %d: %s", status, said);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_is_right_under_every_schedule),
      cmocka_unit_test(every_variant_keeps_to_the_properties),
      cmocka_unit_test(every_variant_gives_the_answers_of_the_golden_cases),
      cmocka_unit_test(a_case_that_would_take_seconds_is_left_out_and_counted),
  };
  if (access(EMULATED, R_OK) != 0) {
    print_message("no C++ compiler, no emulated device: nothing to test\n");
    return 0;
  }
  return cmocka_run_group_tests(tests, load, unload);
}
