/* The kernels for GPUs on the emulated device: chosen problems that the edges of tiles, of bands and of groups
 * lie in, each held to the reference under every schedule, and to the properties under one after the other. */
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

#include "run/plugins.h"
#include "run/runner.h"
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
typedef struct posed {
  inputs inputs;
  expected known;
} posed;

static void pose(const char *text, posed *posed) {
  workload workload;
  char why[256];
  if (!workload_parse_sound(text, &workload, why, sizeof why) ||
      !inputs_create(&posed->inputs, &workload, false, why, sizeof why) ||
      !expected_solve(&posed->known, &posed->inputs, 0, why, sizeof why))
    fail_msg("%s: %s", text, why);
}

static void withdraw(posed *posed) {
  expected_destroy(&posed->known);
  inputs_destroy(&posed->inputs);
}

static void every_variant_is_right_under_every_schedule(void **state) {
  int64_t solved[64] = {0};
  (void)state;
  for (size_t n = 0; n < problem_count; n++) {
    posed posed;
    char why[256];
    pose(problems[n], &posed);
    for (size_t v = 0; v < list.count; v++) {
      if (runner_refusal(list.variants[v], &posed.inputs.problem)) continue;
      const char *const *schedules = variant_list_instruction_sets_of(&list, list.variants[v]);
      for (; *schedules; schedules++) {
        const run_setup setup = {.variant = list.variants[v], .isa = *schedules, .threads = 1};
        verdict verdict;
        if (!verify_run_against(&setup, &posed.inputs, &posed.known, false, &verdict, why, sizeof why))
          fail_msg("%s on %s: %s", list.variants[v]->name, problems[n], why);
        if (!verdict.passed)
          fail_msg("%s, %s, on %s: %s", list.variants[v]->name, *schedules, problems[n], verdict.problem);
      }
      solved[v]++;
    }
    withdraw(&posed);
  }
  for (size_t v = 0; v < list.count; v++)
    if (solved[v] < 2) fail_msg("%s solves %d of the problems", list.variants[v]->name, (int)solved[v]);
}

/* Of one problem in four (`make test-full`: all). */
static void every_variant_keeps_to_the_properties(void **state) {
  const size_t step = getenv("ATTN_TEST_FULL") ? 1 : 4;
  size_t turn = 0;
  (void)state;
  for (size_t n = 0; n < problem_count; n += step) {
    posed posed;
    char why[256];
    pose(problems[n], &posed);
    properties *prepared = properties_prepare(&posed.inputs, &posed.known, why, sizeof why);
    if (!prepared) fail_msg("%s: %s", problems[n], why);
    for (size_t v = 0; v < list.count; v++) {
      if (runner_refusal(list.variants[v], &posed.inputs.problem)) continue;
      const char *const *schedules = variant_list_instruction_sets_of(&list, list.variants[v]);
      const run_setup setup = {.variant = list.variants[v], .isa = schedules[turn++ % 4], .threads = 1};
      property_verdict verdict;
      if (!properties_hold(prepared, &setup, PROPERTIES_ALL, &verdict, why, sizeof why)) fail_msg("%s", why);
      if (verdict.failed)
        fail_msg("%s, %s, on %s: %s", list.variants[v]->name, setup.isa, problems[n], verdict.problem);
    }
    properties_destroy(prepared);
    withdraw(&posed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_is_right_under_every_schedule),
      cmocka_unit_test(every_variant_keeps_to_the_properties),
  };
  if (access(EMULATED, R_OK) != 0) {
    print_message("no C++ compiler, no emulated device: nothing to test\n");
    return 0;
  }
  return cmocka_run_group_tests(tests, load, unload);
}
