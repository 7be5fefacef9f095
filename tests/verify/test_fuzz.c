/* The random search: what it draws, how it shrinks, and the program that does both, judged by what it
 * prints and by running the command that it prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "problem/check.h"
#include "verify/shrink.h"
#include "verify/grid.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench"
#define PLANTED "--plugin " ATTN_BUILD_DIR "/tests/plugins/planted.so"

static const char large_problem[] =
    "band:40,inf,3/B:3/H:12/Hkv:4/D:80/Dv:33/Tq:90/Tk:193/lengths:193,70,0/scale:0.3/softcap:5/mask:bhq/"
    "bias:hq/lse/layout:padded/fill:heavy/seed:77";

static failing parsed(const char *text, int threads) {
  char why[256];
  failing result = {.threads = threads};
  if (!workload_parse(text, &result.workload, why, sizeof why)) fail_msg("%s: %s", text, why);
  return result;
}

static void shrinks_to(shrink_fails *fails, const char *expected, int threads) {
  char name[WORKLOAD_NAME_BYTES];
  failing subject = parsed(large_problem, 8);
  int64_t asked = 0;
  assert_true(fails(&subject, &asked));
  const int64_t tries = shrink(&subject, 60, fails, &asked);
  workload_name(&subject.workload, name);
  assert_string_equal(name, expected);
  assert_int_equal(subject.threads, threads);
  assert_int_equal(tries, asked - 1);
  assert_in_range(tries, 10, 400);
}

static bool asked_of_a_sound_problem(const failing *candidate, void *context) {
  char why[256];
  const attn_problem problem = workload_problem(&candidate->workload);
  if (!check_problem(&problem, why, sizeof why)) fail_msg("asked of an unsound problem: %s", why);
  ++*(int64_t *)context;
  return true;
}

static bool needs_nothing(const failing *candidate, void *context) {
  return asked_of_a_sound_problem(candidate, context);
}

static bool needs_a_tile_and_one(const failing *candidate, void *context) {
  const workload *w = &candidate->workload;
  return asked_of_a_sound_problem(candidate, context) && w->key_length > 64 && w->key_length % 64 == 1 &&
         w->mask.present && w->mask.query && w->query_heads > 2 * w->kv_heads && w->head_dim >= 7;
}

static bool needs_an_empty_entry(const failing *candidate, void *context) {
  const workload *w = &candidate->workload;
  asked_of_a_sound_problem(candidate, context);
  bool empty = false;
  for (int64_t b = 0; b < w->batch; b++) empty = empty || (w->has_lengths && w->lengths[b] == 0);
  return empty && w->left != ATTN_UNLIMITED && candidate->threads >= 3 && w->query_length > 0;
}

static void a_failure_shrinks_to_what_it_needs(void **state) {
  (void)state;
  shrinks_to(needs_nothing, "full/B:0/H:1/Hkv:1/D:1/Dv:0/T:0", 1);
  shrinks_to(needs_a_tile_and_one, "full/B:0/H:3/Hkv:1/D:7/Dv:0/Tq:0/Tk:65/mask:q", 1);
  shrinks_to(needs_an_empty_entry, "band:0,inf,0/B:1/H:1/Hkv:1/D:1/Dv:0/Tq:1/Tk:0/lengths:0", 3);
}

static void without_time_nothing_is_asked(void **state) {
  (void)state;
  failing subject = parsed(large_problem, 8);
  int64_t asked = 0;
  assert_int_equal(shrink(&subject, 0, needs_nothing, &asked), 0);
  assert_int_equal(asked, 0);
}

/* Both outputs of the program; its status. */
static int run_program(const char *before, const char *arguments, char **said) {
  char command[8192], why[256];
  snprintf(command, sizeof command, "%s " PROGRAM " %s", before, arguments);
  char *argv[] = {"sh", "-c", command, NULL};
  const int status = child_run(argv, NULL, said, why, sizeof why);
  if (status < 0) fail_msg("%s", why);
  return status;
}

/* Fuzz fails with these words, shrinks to that problem, and the command it prints fails with them too. */
static void finds(const char *variant, const char *words, const char *smallest) {
  char arguments[512], *said, *again;
  static const char reproduce[] = "\nreproduce: attnbench ";
  snprintf(arguments, sizeof arguments, "fuzz --seconds 600 --seed 5 " PLANTED " --variant %s", variant);
  const int status = run_program("", arguments, &said);
  char *command = strstr(said, reproduce);
  if (status != 1 || !command || !strstr(said, words)) {
    fail_msg("status %d and:\n%s", status, said);
    return;
  }
  command += sizeof reproduce - 1;
  if (strstr(command, reproduce)) fail_msg("more than one command:\n%s", said);
  command[strcspn(command, "\n")] = '\0';
  if (!strstr(command, smallest)) fail_msg("'%s' is not in: %s", smallest, command);
  const int status_again = run_program("", command, &again);
  if (status_again != 1 || !strstr(again, words))
    fail_msg("%s: status %d and:\n%s", command, status_again, again);
  free(again);
  free(said);
}

static void a_wrong_corner_is_found_shrunk_and_reproduced(void **state) {
  (void)state;
  finds("edge", "times the worst-case bound", "--problem 'full/B:1/H:1/Hkv:1/D:1/Tq:1/Tk:65' --threads 1");
}

static void a_crash_is_found_shrunk_and_reproduced(void **state) {
  (void)state;
  finds("overrun", "crashed (SIG", "--problem 'full/B:1/H:1/Hkv:1/D:1/Dv:3/T:1' --threads 1");
}

/* The line that names the problem which failed first; of a kernel that is wrong on all, which is soon shrunk. */
static void first_failure(int seed, char *line, size_t size) {
  char arguments[256], *said;
  snprintf(arguments, sizeof arguments,
           "fuzz --seconds 600 --seed %d --plugin " ATTN_BUILD_DIR
           "/tests/plugins/wrong_kernel.so --variant wrong",
           seed);
  assert_int_equal(run_program("", arguments, &said), 1);
  const char *found = strstr(said, "FAILED: ");
  if (found)
    snprintf(line, size, "%.*s", (int)strcspn(found, "\n"), found);
  else
    fail_msg("no failure in:\n%s", said);
  free(said);
}

static void the_same_seed_draws_the_same_problems(void **state) {
  (void)state;
  char once[2048], again[2048], other[2048];
  first_failure(11, once, sizeof once);
  first_failure(11, again, sizeof again);
  first_failure(12, other, sizeof other);
  assert_string_equal(once, again);
  assert_string_not_equal(once, other);
}

static void the_end_of_the_time_is_a_pass_with_a_summary(void **state) {
  (void)state;
  char *said;
  assert_int_equal(run_program("", "fuzz --seconds 0 --seed 8 --variant fused,linear", &said), 0);
  assert_non_null(strstr(said, "fuzz with seed 8 "));
  assert_non_null(strstr(said, "\nfused            "));
  assert_non_null(strstr(said, "\n1 problems, "));
  assert_non_null(strstr(said, " of 2 variants, 0 failed, "));
  free(said);
}

static void an_interruption_ends_it_with_the_summary(void **state) {
  (void)state;
  char *said;
  /* What runs in the background of a shell ignores SIGINT, unless it is told not to. */
  const int status = run_program("said=$(mktemp) && { env --default-signal=INT",
                                 "fuzz --seconds 600 --variant naive >$said 2>&1 & } && "
                                 "until grep -q 'fuzz with seed' $said; do sleep .05; done; "
                                 "kill -INT $!; wait $!; status=$?; cat $said; rm $said; exit $status",
                                 &said);
  if (status != 130 || !strstr(said, "\ninterrupted: ") || !strstr(said, " 0 failed, "))
    fail_msg("status %d and:\n%s", status, said);
  free(said);
}

/* Right on each, and together of ten seconds and more. What comes first is judged in .2 s, and on a busy machine much later. */
#define SOME " --problem full/H:1/D:64/T:400 --problem full/H:1/D:64/T:401 --problem full/H:1/D:64/T:402"
#define MANY SOME SOME SOME SOME SOME SOME

static void an_interrupted_verification_shows_what_it_found(void **state) {
  (void)state;
  char *said;
  const int status = run_program(
      "timeout --preserve-status -s INT 4",
      "verify " PLANTED " --variant edge --problem 'full/B:1/H:1/D:8/T:65' " MANY MANY MANY MANY, &said);
  if (status != 1 || !strstr(said, "edge                  FAILED") ||
      !strstr(said, "\ninterrupted: 1 variant, ") || !strstr(said, " 1 failed, "))
    fail_msg("status %d and:\n%s", status, said);
  free(said);
}

static void bad_input_is_refused(void **state) {
  (void)state;
  static const char *const lines[][2] = {
      {"fuzz --seconds -1", "--seconds"},
      {"fuzz --seconds soon", "--seconds"},
      {"fuzz --seconds", "--seconds"},
      {"fuzz --seed -3", "--seed"},
      {"fuzz --variant fuzed", "fused"},
      {"fuzz --problem full/T:8", "--variant"},
      {"fuzz --variant naive --problem full/T:8 --problem full/T:9", "one --problem"},
      {"fuzz --variant linear --problem full/T:8", "linear cannot solve"},
      {"fuzz --variant naive --problem full/B:1/H:1/D:4/T:8", "does not fail"},
      {"verify --seconds 3", "--seconds"},
  };
  for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
    char *said;
    const int status = run_program("", lines[n][0], &said);
    if (status != 2 || strncmp(said, "attnbench: ", 11) != 0 || !strstr(said, lines[n][1]) ||
        strchr(said, '\n') != strrchr(said, '\n'))
      fail_msg("attnbench %s: status %d and:\n%s", lines[n][0], status, said);
    free(said);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_failure_shrinks_to_what_it_needs),
      cmocka_unit_test(without_time_nothing_is_asked),
      cmocka_unit_test(a_wrong_corner_is_found_shrunk_and_reproduced),
      cmocka_unit_test(a_crash_is_found_shrunk_and_reproduced),
      cmocka_unit_test(the_same_seed_draws_the_same_problems),
      cmocka_unit_test(the_end_of_the_time_is_a_pass_with_a_summary),
      cmocka_unit_test(an_interruption_ends_it_with_the_summary),
      cmocka_unit_test(an_interrupted_verification_shows_what_it_found),
      cmocka_unit_test(bad_input_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
