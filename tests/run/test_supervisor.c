/* What ends, stalls or leaves a command: it is said, and the command goes on without it. */
#define _GNU_SOURCE
#include "run/supervisor.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* What a command supervised in a process of its own says on stderr; how that process ended. */
static int outcome_of(int (*command)(void *), char *text, size_t size) {
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    _exit(supervise(command, NULL));
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t got; used + 1 < size && (got = read(ends[0], text + used, size - used - 1)) > 0;)
    used += (size_t)got;
  text[used] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void enter(const char *variant, double limit_seconds) {
  supervisor_enter(&(supervised_run){.variant = variant,
                                     .problem = "causal/B:1/H:1/Hkv:1/D:8/T:9",
                                     .property = "any workspace",
                                     .plugin = "./my toy.so",
                                     .isa = "avx2",
                                     .threads = 2,
                                     .limit_seconds = limit_seconds});
}

/* ---- ends ---- */

static void leave_with_0(void) { exit(0); }
static void leave_at_once(void) { _exit(3); }
static void give_up(void) { abort(); }
static void kill_itself(void) { raise(SIGKILL); }
static void terminate_itself(void) { raise(SIGTERM); }
static volatile float *volatile nowhere = (volatile float *)8;

static void write_nowhere(void) { *nowhere = 1; }

static int (*volatile deeper)(volatile int *above);

static int go_deeper(volatile int *above) {
  volatile int here[1024];
  here[0] = above ? above[0] : 0;
  return deeper(here) + here[0];
}

static void overflow_the_stack(void) {
  deeper = go_deeper;
  deeper(NULL);
}

static void crash_on_every_worker(void) {
#pragma omp parallel num_threads(4)
  abort();
}

static void never_return(void) {
  for (;;) pause();
}

static void spoil_the_process(void) { supervisor_abandon("leaves a thread running"); }

static const struct end {
  void (*end)(void);
  const char *how;
} endings[] = {
    {leave_with_0, "ended the process with status 0"},
    {leave_at_once, "ended the process with status 3"},
    {give_up, "crashed (SIGABRT: "},
    {write_nowhere, "crashed (SIGSEGV: "},
    {overflow_the_stack, "crashed (SIGSEGV: "},
    {crash_on_every_worker, "crashed (SIGABRT: "},
    {kill_itself, "crashed (SIGKILL: "},
    {terminate_itself, "crashed (SIGTERM)"},
    {spoil_the_process, "leaves a thread running"},
    {never_return, "did not end within 0.3 s"},
};
static const struct end *chosen;

/* Leaves out what ended an earlier child, as a command does. */
static int run_toy_and_others(void *nothing) {
  (void)nothing;
  if (!supervisor_ended("toy")) {
    enter("toy", chosen->end == never_return ? 0.3 : 60);
    chosen->end();
    supervisor_leave();
  }
  enter("others", 60);
  supervisor_leave();
  fprintf(stderr, "others ran\n");
  return 0;
}

static void whatever_ends_a_run_is_named_and_the_others_go_on(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof endings / sizeof *endings; n++) {
    char text[4096], line[256];
    chosen = &endings[n];
    const int status = outcome_of(run_toy_and_others, text, sizeof text);
    snprintf(line, sizeof line, "attnbench: variant 'toy' %s", chosen->how);
    const char *said = strstr(text, line);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 || !said || !strstr(said, "others ran\n") ||
        !strstr(said, " on causal/B:1/H:1/Hkv:1/D:8/T:9, while held to: any workspace with 2 threads\n") ||
        !strstr(said, "attnbench verify --variant toy --problem 'causal/B:1/H:1/Hkv:1/D:8/T:9' --isa avx2 "
                      "--threads 2 --plugin './my toy.so'\n") ||
        strstr(said + 1, "attnbench: variant"))
      fail_msg("%s: status %x and:\n%s", chosen->how, (unsigned)status, text);
  }
}

static int leave_a_thread_that_crashes(void *nothing) {
  (void)nothing;
  if (supervisor_ended("toy")) return 0;
  enter("toy", 60);
  supervisor_leave();
  raise(SIGSEGV);
  return 0;
}

static void an_end_between_runs_is_the_last_variants(void **state) {
  (void)state;
  char text[4096];
  const int status = outcome_of(leave_a_thread_that_crashes, text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  assert_non_null(strstr(
      text, "variant 'toy' crashed (SIGSEGV: access to memory that it was not given), after its run, on "));
}

static int crash_of_itself(void *nothing) {
  (void)nothing;
  abort();
}

static void a_crash_before_any_run_ends_the_command(void **state) {
  (void)state;
  char text[4096];
  const int status = outcome_of(crash_of_itself, text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
  assert_string_equal(text, "attnbench: this process crashed (SIGABRT: it gave up)\n");
}

static int load_two_plugins(void *nothing) {
  (void)nothing;
  static const char *const plugins[] = {"bad.so", "good.so"};
  for (int n = 0; n < 2; n++) {
    if (supervisor_refuses(plugins[n])) continue;
    supervisor_loads(plugins[n]);
    if (n == 0) exit(0);
    supervisor_loads(NULL);
    fprintf(stderr, "%s is loaded\n", plugins[n]);
  }
  return 0;
}

static void a_plugin_that_ends_it_when_loaded_is_left_out(void **state) {
  (void)state;
  char text[4096];
  const int status = outcome_of(load_two_plugins, text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  assert_string_equal(text,
                      "attnbench: plugin bad.so ended the process with status 0 while it was loaded: it is "
                      "left out\ngood.so is loaded\n");
}

/* ---- no end ---- */

/* A step is a seventh of the limit: on a busy machine a process wakes up late. */
static int step_for_long(void *nothing) {
  (void)nothing;
  enter("toy", 1.4);
  for (int n = 0; n < 9; n++) {
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    supervisor_step();
  }
  supervisor_leave();
  nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
  return 5;
}

static void the_limit_is_of_a_step_and_only_of_runs(void **state) {
  (void)state;
  char text[4096];
  const int status = outcome_of(step_for_long, text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
  assert_string_equal(text, "");
}

/* ---- what outlives a child ---- */

static int count_children(void *nothing) {
  (void)nothing;
  int **root = (int **)supervisor_root();
  if (!*root) *root = supervisor_keep(sizeof **root);
  ++**root;
  fprintf(stderr, "child %d\n", **root);
  if (**root == 1) supervisor_renew();
  if (**root == 2) {
    enter("toy", 60);
    raise(SIGSEGV);
  }
  return **root == 3 ? 0 : 7;
}

static void what_is_kept_is_there_in_the_next_child(void **state) {
  (void)state;
  char text[4096];
  const int status = outcome_of(count_children, text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  assert_non_null(strstr(text, "child 1\nchild 2\n"));
  assert_non_null(strstr(text, "child 3\n"));
}

/* ---- signals for the command ---- */

static int terminate_the_command(void *nothing) {
  (void)nothing;
  enter("toy", 60);
  kill(getppid(), SIGTERM);
  never_return();
  return 0;
}

static void a_signal_to_the_command_is_no_ones_fault(void **state) {
  (void)state;
  char text[4096];
  const int status = outcome_of(terminate_the_command, text, sizeof text);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  assert_string_equal(text, "");
}

static int say_and_wait(void *nothing) {
  (void)nothing;
  enter("toy", 60);
  const pid_t self = getpid();
  if (write(STDOUT_FILENO, &self, sizeof self) != sizeof self) return 1;
  never_return();
  return 0;
}

/* A process that has ended and was not waited for. */
static bool is_zombie(pid_t process) {
  char path[32], line[128] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  FILE *file = fopen(path, "r");
  if (!file) return false;
  if (!fgets(line, sizeof line, file)) line[0] = '\0';
  fclose(file);
  return strstr(line, ") Z ") != NULL;
}

/* Whom the signal to a group has ended before the one that watches gets a turn. */
static void a_signal_to_all_ends_the_command_however_late_it_is_seen(void **state) {
  (void)state;
  static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
  for (size_t n = 0; n < sizeof signals / sizeof *signals; n++) {
    int ready[2], status;
    pid_t watched;
    assert_int_equal(pipe(ready), 0);
    const pid_t watcher = fork();
    if (watcher == 0) {
      setpgid(0, 0);
      dup2(ready[1], STDOUT_FILENO);
      dup2(ready[1], STDERR_FILENO);
      close(ready[1]);
      _exit(supervise(say_and_wait, NULL));
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &watched, sizeof watched), sizeof watched);
    kill(watcher, SIGSTOP);
    assert_int_equal(waitpid(watcher, &status, WUNTRACED), watcher);
    kill(-watcher, signals[n]);
    while (!is_zombie(watched)) usleep(1000);
    kill(watcher, SIGCONT);
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 0); /* nobody is blamed, and nothing begins again */
    close(ready[0]);
    assert_int_equal(waitpid(watcher, &status, 0), watcher);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[n]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whatever_ends_a_run_is_named_and_the_others_go_on),
      cmocka_unit_test(an_end_between_runs_is_the_last_variants),
      cmocka_unit_test(a_crash_before_any_run_ends_the_command),
      cmocka_unit_test(a_plugin_that_ends_it_when_loaded_is_left_out),
      cmocka_unit_test(the_limit_is_of_a_step_and_only_of_runs),
      cmocka_unit_test(what_is_kept_is_there_in_the_next_child),
      cmocka_unit_test(a_signal_to_the_command_is_no_ones_fault),
      cmocka_unit_test(a_signal_to_all_ends_the_command_however_late_it_is_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
