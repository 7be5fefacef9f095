/* The table of planted faults (tests/mutants/faults.txt). `make mutants` plants and catches them, which takes a
 * minute; here it is held to the sources, so that a change there which leaves a fault unplantable is seen at
 * once. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shell.h"
#include "verify/grid.h"
#include "verify/properties.h"
#include "problem/random_problem.h"

enum { LEAST_FAULTS = 40, RANDOM = 100, SEED = 1 };

/* Reads a table with these arguments; returns the status, with what was said in shell_output. */
static int run(const char *table, const char *arguments) {
  char command[4096];
  snprintf(command, sizeof command, "ATTN_FAULTS='%s' %s/scripts/mutants.sh %s %s", table, ATTN_SOURCE_DIR,
           ATTN_BUILD_DIR, arguments);
  return shell(command);
}

static void every_fault_fits_the_sources(void **state) {
  (void)state;
  if (run(ATTN_SOURCE_DIR "/tests/mutants/faults.txt", "--check") != 0) fail_msg("%s", shell_output);
  char *said;
  assert_true(strtol(shell_output, &said, 10) >= LEAST_FAULTS);
  assert_memory_equal(said, " faults fit", 11);
}

/* A table of one fault, with these edits. */
static int run_fault(const char *edits, const char *arguments) {
  char path[] = "/tmp/attnbench-test-mutants-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  FILE *table = fdopen(file, "w");
  fprintf(table, "name: one\nwhat: a fault\nfile: variants/naive.c\nvariant: naive\n%s", edits);
  fclose(table);
  const int status = run(path, arguments);
  unlink(path);
  return status;
}

static void a_fault_that_does_not_fit_is_an_error(void **state) {
  (void)state;
  const struct {
    const char *edits, *words;
    int status;
  } cases[] = {
      {"old: softcap * tanhf(\nnew: softcap * sinf(\n", "1 faults fit", 0},
      {"old: softcap * tanhf(\nnew: softcap * sinf(\nold: softcap * sinf(\nnew:\n", "1 faults fit", 0},
      {"old: this stands nowhere\nnew: 1\n", "one is stale: variants/naive.c does not hold: this", 1},
      {"old: softcap * tanhf(\nnew: softcap * sinf(\nold: softcap * tanhf(\nnew:\n",
       "one is stale: variants/naive.c does not hold: softcap * tanhf", 1},
      {"old: int64_t j\nnew: int j\n", "one is stale: variants/naive.c holds more than once: int64_t j", 1},
      {"", "one lacks what, file, variant, or old and new", 1},
      {"old: softcap * tanhf(\nnwe: softcap * sinf(\n", "not a field of a fault: nwe: softcap * sinf(", 1},
      {"needs: luck\nold: softcap * tanhf(\nnew: softcap * sinf(\n", "one needs something unknown: luck", 1},
      {"isa: 6502\nold: softcap * tanhf(\nnew: softcap * sinf(\n", "one is for no instruction set: 6502", 1},
      {"old: softcap * tanhf(\n\nname: one\n", "two faults have the same name", 1},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
    if (run_fault(cases[n].edits, "--check") != cases[n].status || !strstr(shell_output, cases[n].words))
      fail_msg("'%s' is not in the answer to\n%s:\n%s", cases[n].words, cases[n].edits, shell_output);
}

/* Threads that never run at the same time do not race. */
static void a_race_is_not_testable_on_one_processor(void **state) {
  (void)state;
  cpu_set_t all, one;
  CPU_ZERO(&one);
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  for (int n = 0; n < CPU_SETSIZE && CPU_COUNT(&one) == 0; n++)
    if (CPU_ISSET(n, &all)) CPU_SET(n, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  const int status = run_fault("needs: two processors\nold: softcap * tanhf(\nnew: softcap * sinf(\n", "");
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  if (status != 0 || !strstr(shell_output, "not testable here: one processor") ||
      !strstr(shell_output, "0 caught, 0 survived"))
    fail_msg("%s", shell_output);
}

/* ---- where each was caught last ---- */

typedef char problem_name[WORKLOAD_NAME_BYTES];

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

/* The names of all problems that verify poses without options, sorted. */
static problem_name *all_problems(size_t *count) {
  const int64_t grid = verify_grid_count(), held = properties_problems(RANDOM);
  problem_name *names = malloc((size_t)(grid + RANDOM + held) * sizeof *names);
  assert_non_null(names);
  *count = 0;
  for (int64_t n = 0; n < grid; n++) {
    const workload w = verify_grid_problem(n).workload;
    workload_name(&w, names[(*count)++]);
  }
  for (int64_t n = 0; n < RANDOM; n++) {
    const workload w = random_problem(SEED, n);
    workload_name(&w, names[(*count)++]);
  }
  for (int64_t n = 0; n < held; n++) {
    const workload w = properties_problem(SEED, n);
    workload_name(&w, names[(*count)++]);
  }
  qsort(names, *count, sizeof *names, by_name);
  return names;
}

/* `make mutants` tries each fault first on the problem on which the table says that it was caught. That says that verify
 * would have caught it only as long as verify poses that problem. */
static void each_known_problem_is_one_that_verify_poses(void **state) {
  (void)state;
  size_t count, known = 0, stale = 0;
  problem_name *names = all_problems(&count);
  char line[4096];
  FILE *table = fopen(ATTN_SOURCE_DIR "/tests/mutants/README.md", "r");
  assert_non_null(table);
  while (fgets(line, sizeof line, table)) {
    char *problem = strstr(line, " | `");
    if (!problem || strstr(line, "| cuda/")) continue; /* those are posed the problems of cuda_problems.txt */
    problem += strlen(" | `");
    problem[strcspn(problem, " `")] = '\0';
    known++;
    if (bsearch(problem, names, count, sizeof *names, by_name)) continue;
    print_error("%.*s: verify poses no problem %s\n", (int)strcspn(line + 2, " "), line + 2, problem);
    stale++;
  }
  fclose(table);
  free(names);
  assert_true(known >= LEAST_FAULTS);
  if (stale) fail_msg("%zu of %zu problems; make mutants ARGS=--readme finds others", stale, known);
}

/* Its table has a row for several checks here and there, with a number for each or one for all: "19; 8 |", "2 each |". */
static void the_readme_counts_all_faults(void **state) {
  (void)state;
  shell_expect(
      "cd '" ATTN_SOURCE_DIR "' && awk -F ' *[|] *' '"
      "/^[|] caught by / { inside = 1; getline; next } !/^[|]/ { inside = 0 } !inside { next }"
      "$3 ~ / each$/ { all += $3 * split($2, names, \";\"); next }"
      "{ for (n = split($3, numbers, \";\"); n > 0; n--) all += numbers[n] } END { print all }' README.md |"
      " grep -x -F -e \"$(grep -c '^name: ' tests/mutants/faults.txt)\"",
      0, NULL);
  shell_expect(
      "cd '" ATTN_SOURCE_DIR
      "' && grep -q \"writes each of $(grep -c '^name: ' tests/mutants/faults.txt) faults\" README.md",
      0, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_known_problem_is_one_that_verify_poses),
      cmocka_unit_test(the_readme_counts_all_faults),
      cmocka_unit_test(every_fault_fits_the_sources),
      cmocka_unit_test(a_fault_that_does_not_fit_is_an_error),
      cmocka_unit_test(a_race_is_not_testable_on_one_processor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
