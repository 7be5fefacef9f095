/* What a run does to the process is a violation with a name, and is put back: the variants of one plugin, each of which
 * is right and does one thing more. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <fenv.h>
#include <float.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/plugins.h"
#include "run/runner.h"
#include "run/side_effects.h"
#include "run/thread_watch.h"
#include "verify/verify.h"

static variant_list list;
static inputs small;

static run_setup setup_of(const char *name, int threads) {
  const run_setup setup = {.variant = variant_list_find(&list, name), .threads = threads};
  if (!setup.variant) fail_msg("the plugin has no variant '%s'", name);
  return setup;
}

static run_outcome outcome_of(const char *name, int threads, bool side_effects) {
  const run_setup setup = setup_of(name, threads);
  const run_watch watch = {
      .workspace = RUN_POISONED, .side_effects = side_effects, .inputs_checksum = inputs_checksum(&small)};
  run_outcome outcome;
  char why[256];
  if (!runner_run(&setup, &small, &watch, &outcome, why, sizeof why)) fail_msg("%s: %s", name, why);
  return outcome;
}

static void expect(const char *name, const char *words, const run_outcome *outcome) {
  if (words ? !strstr(outcome->violation, words) : outcome->violation[0] != '\0')
    fail_msg("%s: '%s' instead of '%s'", name, outcome->violation, words ? words : "");
}

static void each_side_effect_has_its_name_and_is_undone(void **state) {
  (void)state;
  static const struct {
    const char *name, *words;
  } cases[] = {
      {"print", "writes to stdout inside run: 'row 0  done '"},
      {"print_error", "writes to stderr inside run: 'a warning '"},
      {"write_by_itself", "writes to stdout inside run: 'written'"},
      {"close_stdout", "closes or replaces stdout"},
      {"change_folder", "leaves the working directory changed"},
      {"change_umask", "leaves the umask changed"},
      {"lower_priority", "leaves its priority changed"},
      {"fork_once", "copies its process (fork)"},
      {"handle_segv", "leaves the handler of SIGSEGV changed"},
      {"ignore_realtime", "leaves the handler of signal "},
      {"block_signals", "leaves the signal mask changed"},
      {"take_signal_stack", "leaves the stack of signal handlers changed"},
      {"set_environment", "leaves the environment changed (MKL_NUM_THREADS)"},
      {"edit_environment", "leaves the environment changed (ATTN_TEST_VALUE)"},
      {"set_locale", "leaves the locale changed"},
      {"open_file", "leaves descriptor "},
      {"close_file", "closes or replaces descriptor "},
      {"set_timer", "leaves a timer set"},
      {"set_limit", "leaves a limit of the process's resources changed"},
      {"bind_thread", "leaves its thread bound to other processors"},
  };
  const int file = open("/dev/null", O_RDONLY);
  char number[16], folder[4096], again[4096];
  snprintf(number, sizeof number, "%d", file);
  assert_int_equal(setenv("ATTN_TEST_DESCRIPTOR", number, 1), 0);
  assert_int_equal(setenv("ATTN_TEST_VALUE", "as it was", 1), 0);
  assert_non_null(getcwd(folder, sizeof folder));
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    if (strcmp(cases[n].name, "bind_thread") == 0 && omp_get_num_procs() == 1) continue;
    /* Twice: the first is no excuse for the second, which sees whether it was put back. */
    for (int time = 0; time < 2; time++) {
      const run_outcome outcome = outcome_of(cases[n].name, 2, true);
      expect(cases[n].name, cases[n].words, &outcome);
      const run_outcome neighbour = outcome_of("nothing", 2, true);
      expect("nothing", NULL, &neighbour);
    }
  }
  assert_string_equal(getenv("ATTN_TEST_VALUE"), "as it was");
  assert_null(getenv("MKL_NUM_THREADS"));
  assert_string_equal(getcwd(again, sizeof again), folder);
  assert_true(fcntl(file, F_GETFD) >= 0 && fcntl(STDOUT_FILENO, F_GETFD) >= 0);
  assert_int_equal(alarm(0), 0);
  close(file);
}

/* To a file that stands in for the standard output: nothing of what the variant writes, all of ours. */
static void nothing_that_a_watched_run_writes_is_printed(void **state) {
  (void)state;
  char path[] = "/tmp/attnbench-side-effects-XXXXXX", text[64] = "";
  const int file = mkstemp(path), before = dup(STDOUT_FILENO);
  assert_true(file >= 0 && before >= 0);
  fflush(stdout);
  dup2(file, STDOUT_FILENO);
  printf("ours, "); /* still in its buffer when the run begins */
  outcome_of("print", 1, true);
  outcome_of("write_by_itself", 1, true);
  printf("and more\n");
  fflush(stdout);
  dup2(before, STDOUT_FILENO);
  close(before);
  assert_true(pread(file, text, sizeof text - 1, 0) > 0);
  close(file);
  unlink(path);
  assert_string_equal(text, "ours, and more\n");
}

static void an_output_closed_in_any_run_is_a_violation(void **state) {
  (void)state;
  fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  assert_true(before >= 0);
  const run_outcome outcome = outcome_of("close_stdout", 2, false);
  dup2(before, STDOUT_FILENO);
  close(before);
  expect("close_stdout", "closes or replaces stdout", &outcome);
}

static void a_report_inside_a_watched_run_is_printed(void **state) {
  (void)state;
  char path[] = "/tmp/attnbench-side-effects-XXXXXX", text[64] = "", violation[128];
  const int file = mkstemp(path), before = dup(STDERR_FILENO);
  fflush(stderr);
  dup2(file, STDERR_FILENO);
  surroundings *watched = side_effects_begin(false);
  assert_non_null(watched);
  side_effects_give_output_back();
  const bool written = write(STDERR_FILENO, "it crashed", 10) == 10;
  side_effects_end(watched, violation, sizeof violation);
  dup2(before, STDERR_FILENO);
  close(before);
  assert_true(written && pread(file, text, sizeof text - 1, 0) > 0);
  close(file);
  unlink(path);
  assert_string_equal(text, "it crashed");
}

/* Verification looks at the first run of a variant for it. */
static void what_is_done_once_is_seen_in_the_first_run(void **state) {
  (void)state;
  static const struct {
    const char *name, *words;
  } cases[] = {{"print_once", "FAILED: writes to stdout inside run: 'hello'"},
               {"take_once", "FAILED: calls for memory inside run: malloc first, 1 call"}};
  const char *problem = "full/B:2/H:1/D:4/T:8";
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    if (strcmp(cases[n].name, "take_once") == 0 && !heap_calls_are_seen()) continue;
    const attn_variant *variant = variant_list_find(&list, cases[n].name);
    const char *origin = NULL;
    const variant_list one = {.variants = &variant, .origins = &origin, .count = 1};
    const verify_options options = {.problems = &problem, .problem_count = 1, .threads = 2, .seed = 1};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(verify_all(&one, &options, out), 1);
    fclose(out);
    if (!strstr(text, cases[n].words)) fail_msg("'%s' is not in: %s", cases[n].words, text);
    free(text);
  }
}

/* The variant is run again to see it. */
static void what_a_library_may_set_up_is_not_excused_in_each_run(void **state) {
  (void)state;
  static const struct {
    const char *name, *words;
  } cases[] = {{"set_environment", "leaves the environment changed (MKL_NUM_THREADS)"},
               {"handle_segv", "leaves the handler of SIGSEGV changed"}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const run_setup setup = setup_of(cases[n].name, 2);
    const run_watch watch = {.workspace = RUN_POISONED,
                             .side_effects = true,
                             .first = true,
                             .inputs_checksum = inputs_checksum(&small)};
    run_outcome outcome;
    char why[256];
    assert_true(runner_run(&setup, &small, &watch, &outcome, why, sizeof why));
    expect(cases[n].name, cases[n].words, &outcome);
  }
}

/* Descriptors stay with who opened them; the rest is put back. */
static void what_a_library_may_set_up_is_no_violation_in_a_first_run(void **state) {
  (void)state;
  char violation[128];
  surroundings *before = side_effects_begin(true);
  const int file = open("/dev/null", O_RDONLY);
  setenv("ATTN_TEST_LIBRARY", "set up", 1);
  umask(umask(0) ^ 1);
  assert_true(side_effects_end(before, violation, sizeof violation));
  assert_string_equal(violation, "leaves the umask changed");
  assert_true(fcntl(file, F_GETFD) >= 0);
  assert_null(getenv("ATTN_TEST_LIBRARY"));
  close(file);
}

/* ---- threads ---- */

static void who_keeps_to_its_threads_is_right(void **state) {
  (void)state;
  static const char *const names[] = {"nothing",           "join_threads",       "team",
                                      "team_then_threads", "teams_of_all_sizes", "set_openmp"};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++)
    for (int threads = 1; threads <= 5; threads++)
      for (int watched = 0; watched < 2; watched++) {
        const run_outcome outcome = outcome_of(names[n], threads, watched);
        expect(names[n], NULL, &outcome);
        assert_int_equal(outcome.heap.count, 0);
      }
  const run_outcome nested = outcome_of("nest_within", 4, true);
  expect("nest_within", NULL, &nested);
}

static void threads_beyond_those_given_are_counted(void **state) {
  (void)state;
  static const struct {
    const char *name, *words;
    int threads;
  } cases[] = {{"start_too_many", "uses 3 threads at a time, and was given 2", 2},
               {"start_too_many", "uses 2 threads at a time, and was given 1", 1},
               {"team_too_large", "uses 4 threads at a time, and was given 2", 2},
               {"team_too_large", "uses 2 threads at a time, and was given 1", 1},
               {"nest_too_many", "threads at a time, and was given 3", 3},
               {"start_in_team", "threads at a time, and was given 2", 2}};
  if (!threads_are_seen()) skip();
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    /* As they are when others ran before: OpenMP keeps their threads. */
    outcome_of("team", 6, false);
    outcome_of(cases[n].name, cases[n].threads, false);
    const run_outcome outcome = outcome_of(cases[n].name, cases[n].threads, true);
    expect(cases[n].name, cases[n].words, &outcome);
    const run_outcome neighbour = outcome_of("team", cases[n].threads, true);
    expect("team", NULL, &neighbour);
  }
}

static void a_thread_left_running_is_its_own_variants_fault(void **state) {
  (void)state;
  if (!threads_are_seen()) skip();
  for (int watched = 0; watched < 2; watched++) {
    run_outcome outcome = outcome_of("leave_thread", 2, watched);
    expect("leave_thread", "leaves a thread running", &outcome);
    outcome = outcome_of("leave_c11_thread", 2, watched);
    expect("leave_c11_thread", "leaves a thread running", &outcome);
    outcome = outcome_of("join_threads", 2, watched);
    expect("join_threads", NULL, &outcome);
  }
  /* Seen in the first run, whatever it is made for. */
  const run_outcome pool = outcome_of("leave_pool", 2, false);
  expect("leave_pool", "leaves a thread running", &pool);
#ifdef __linux__
  const run_outcome task = outcome_of("leave_task", 2, true);
  expect("leave_task", "leaves a thread running", &task);
#endif
  const run_outcome neighbour = outcome_of("team", 2, true);
  expect("team", NULL, &neighbour);
}

static void what_a_variant_asks_of_openmp_is_its_own(void **state) {
  (void)state;
  const int threads = omp_get_max_threads();
  outcome_of("set_openmp", threads + 1, false);
  assert_int_equal(omp_get_max_threads(), threads);
  assert_false(omp_get_dynamic());
}

/* ---- the floating-point mode ---- */

static void expect_usual_arithmetic(const char *after) {
  int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    volatile float least_normal = FLT_MIN, one = 1, third = 1 / (one + 2);
    wrong += fegetround() != FE_TONEAREST || !(least_normal * 0.5f > 0) || third != 0x1.555556p-2f;
  }
  if (wrong) fail_msg("after %s, %d threads compute otherwise", after, wrong);
}

static const struct {
  const char *name, *words;
  bool of_team; /* libomp's threads take the mode of their caller: nothing is left there */
} modes[] = {
#ifdef __SSE__
    {"flush", "leaves denormal numbers flushed to zero", false},
    {"flush_in_team", "leaves denormal numbers flushed to zero on other threads", true},
#endif
    {"round_up", "leaves the rounding mode changed", false},
    {"round_up_in_team", "leaves the rounding mode changed on other threads", true},
#ifdef __x86_64__
    {"trap", "leaves floating-point exceptions trapping", false},
#endif
};

#ifdef __clang__
static const bool threads_take_the_mode = true;
#else
static const bool threads_take_the_mode = false;
#endif

static void a_mode_left_on_any_thread_is_a_violation_and_undone(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof modes / sizeof *modes; n++) {
    const bool left = !modes[n].of_team || !threads_take_the_mode;
    outcome_of("team", 4, false); /* so that there are such threads */
    const run_outcome outcome = outcome_of(modes[n].name, 4, false);
    expect(modes[n].name, left ? modes[n].words : NULL, &outcome);
    expect_usual_arithmetic(modes[n].name);
  }
}

static void a_mode_left_by_timed_runs_is_a_violation_and_undone(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof modes / sizeof *modes; n++) {
    const bool left = !modes[n].of_team || !threads_take_the_mode;
    const run_setup setup = setup_of(modes[n].name, 4);
    run_batch batch = {.inputs = &small, .iterations = 3, .seed = 1};
    run_elapsed elapsed;
    assert_true(runner_time(&setup, &batch, &elapsed));
    if (strcmp(batch.violation, left ? modes[n].words : "") != 0 && !strstr(batch.violation, "trapping"))
      fail_msg("%s: '%s'", modes[n].name, batch.violation);
    assert_true(runner_restore(&batch, 0));
    expect_usual_arithmetic(modes[n].name);
  }
}

/* ---- workspaces ---- */

static void a_workspace_without_sense_is_a_violation_and_nothing_is_run(void **state) {
  (void)state;
  static const struct {
    const char *name, *words;
    bool runs;
  } cases[] = {
      {"two_to_the_50", "asks for 1125899906842624 bytes of workspace: ", false},
      {"minus_one", "asks for 18446744073709551615 bytes (-1) of workspace: ", false},
      {"more_each_time", "bytes of workspace, and asked again for", false},
      {"other_after_run", "asks for 64 bytes of workspace, and asked again for 128", true},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const run_outcome outcome = outcome_of(cases[n].name, 1, false);
    expect(cases[n].name, cases[n].words, &outcome);
    assert_int_equal(outcome.ran, cases[n].runs);
  }
}

static int set_up(void **state) {
  (void)state;
  char why[512];
  workload w;
  return workload_parse("full/B:2/H:1/D:4/T:8/lengths:8,3", &w, why, sizeof why) &&
                 variant_list_add(&list, ATTN_BUILD_DIR "/tests/plugins/side_effects.so", why, sizeof why) &&
                 inputs_create(&small, &w, false, why, sizeof why)
             ? 0
             : -1;
}

static int clean_up(void **state) {
  (void)state;
  inputs_destroy(&small);
  variant_list_destroy(&list);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_side_effect_has_its_name_and_is_undone),
      cmocka_unit_test(nothing_that_a_watched_run_writes_is_printed),
      cmocka_unit_test(an_output_closed_in_any_run_is_a_violation),
      cmocka_unit_test(a_report_inside_a_watched_run_is_printed),
      cmocka_unit_test(what_is_done_once_is_seen_in_the_first_run),
      cmocka_unit_test(what_a_library_may_set_up_is_not_excused_in_each_run),
      cmocka_unit_test(what_a_library_may_set_up_is_no_violation_in_a_first_run),
      cmocka_unit_test(who_keeps_to_its_threads_is_right),
      cmocka_unit_test(threads_beyond_those_given_are_counted),
      cmocka_unit_test(a_thread_left_running_is_its_own_variants_fault),
      cmocka_unit_test(what_a_variant_asks_of_openmp_is_its_own),
      cmocka_unit_test(a_mode_left_on_any_thread_is_a_violation_and_undone),
      cmocka_unit_test(a_mode_left_by_timed_runs_is_a_violation_and_undone),
      cmocka_unit_test(a_workspace_without_sense_is_a_violation_and_nothing_is_run),
  };
  return cmocka_run_group_tests(tests, set_up, clean_up);
}
