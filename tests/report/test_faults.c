/* What is in a results folder stays whole, whatever happens to the program, the disk or the folder. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/report/sample_report.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench"
#define BENCH PROGRAM " bench --variant fused --lengths 16,32 --benchmark_dry_run --quiet --out results"

/* The same of a kernel that makes the folder ctrl-c in its eighth run, and goes on when there is another in it. */
#define WAITING                                                                                              \
  PROGRAM " bench --plugin " ATTN_BUILD_DIR "/tests/plugins/interrupts.so --variant interrupts"              \
          " --lengths 8,16,24 --head-dim 8 --benchmark_dry_run --quiet --out results"
#define MEANWHILE(commands)                                                                                  \
  "(until [ -d ctrl-c ]; do sleep 0.02; done; " commands "; mkdir ctrl-c/pressed) & " WAITING

static const report_options all_rows = {.repetitions = true, .aggregates = true};

typedef struct fixture {
  char folder[40], json[80];
} fixture;

static int set_up(void **state) {
  fixture *fixture = calloc(1, sizeof *fixture);
  *state = fixture;
  if (!fixture) return -1;
  strcpy(fixture->folder, "/tmp/attnbench-faults-XXXXXX");
  if (!mkdtemp(fixture->folder) || chdir(fixture->folder) != 0) return -1;
  snprintf(fixture->json, sizeof fixture->json, "%s/results/results.json", fixture->folder);
  return mkdir("results", 0777);
}

/* A run that was killed may have left a gnuplot that is still writing. */
static int tear_down(void **state) {
  fixture *fixture = *state;
  char command[160];
  snprintf(command, sizeof command,
           "n=100; until rm -rf '%s' 2>/dev/null || [ $((n -= 1)) = 0 ]; do sleep 0.1; done; [ $n -gt 0 ]",
           fixture->folder);
  free(fixture);
  return chdir("/") == 0 ? system(command) : -1;
}

static void write_report(const char *path, uint64_t seed, int shortest) {
  report report;
  char why[512];
  sample_report(&report, sample_variants, SAMPLE_VARIANTS, shortest);
  report.seed = seed;
  const bool written = report_write(&report, &all_rows, "json", path, why, sizeof why);
  report_destroy(&report);
  if (!written) fail_msg("%s", why);
}

/* The seed tells which of the reports it is. */
static uint64_t seed_of(const char *path) {
  report report;
  char why[512];
  if (!report_read(&report, path, why, sizeof why)) fail_msg("%s", why);
  const uint64_t seed = report.seed;
  report_destroy(&report);
  return seed;
}

/* The exit status; what was said goes to the files out and err. */
static int run(const char *command) {
  char line[1024];
  snprintf(line, sizeof line, "(%s) >out 2>err", command);
  const int status = system(line);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void assert_says(const char *words) {
  char text[4096];
  FILE *file = fopen("err", "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  const char *end = strchr(text, '\n');
  if (strncmp(text, "attnbench: ", 11) != 0 || !strstr(text, words) || !end || end[1] != '\0')
    fail_msg("'%s' is not in one line: %s", words, text);
}

/* A child writes report after report over each other, each of another length, until it is killed. */
static void a_writer_that_is_killed_leaves_the_old_file_or_the_new(void **state) {
  const fixture *fixture = *state;
  write_report(fixture->json, 0, 1024);
  unsigned int random = 1;
  for (int killed = 0; killed < 40; killed++) {
    const pid_t child = fork();
    if (child == 0)
      for (uint64_t seed = 1;; seed++) write_report(fixture->json, seed, seed % 2 ? 512 : 1024);
    random = random * 1103515245 + 12345;
    usleep(random / 65536 % 20000);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)seed_of(fixture->json);
  }
}

static void a_run_that_is_killed_leaves_the_old_file_or_the_new(void **state) {
  const fixture *fixture = *state;
  write_report(fixture->json, 77, 1024);
  for (int killed = 0; killed < 4; killed++) {
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", "exec " BENCH " >out 2>err", (char *)NULL);
      _exit(127);
    }
    usleep(200000 + 300000 * (unsigned)killed);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    const uint64_t seed = seed_of(fixture->json);
    assert_true(seed == 77 || seed == 1);
  }
}

static void a_full_disk_is_said_and_costs_no_old_file(void **state) {
  const fixture *fixture = *state;
  write_report(fixture->json, 77, 1024);
  /* ThreadSanitizer's runtime writes a file of its own first, and crashes on a full disk; there it cannot. */
  assert_int_equal(run("ulimit -f 2; TMPDIR=/none " BENCH), 2);
  assert_says("cannot write 'results/results.json': File too large");
  assert_int_equal(seed_of(fixture->json), 77);
  assert_int_equal(run("test $(ls -A results) = results.json"), 0); /* nothing half-written beside it */
}

static void a_full_standard_output_is_said(void **state) {
  (void)state;
  static const char *const commands[] = {PROGRAM " list", BENCH, BENCH " --benchmark_format json",
                                         BENCH " --benchmark_format csv"};
  for (size_t n = 0; n < sizeof commands / sizeof *commands; n++) {
    char command[512];
    snprintf(command, sizeof command, "%s >/dev/full", commands[n]);
    assert_int_equal(run(command), 2);
    assert_says("the standard output cannot be written");
  }
}

/* Of two files that are one the second would replace the first. */
static void files_of_one_bench_are_apart(void **state) {
  (void)state;
  static const char *const same[][2] = {
      {"--benchmark_out f.json --raw f.json", "--raw f.json would replace what --benchmark_out writes there"},
      {"--benchmark_out f.json --raw ./f.json",
       "--raw ./f.json would replace what --benchmark_out writes there"},
      {"--benchmark_out f.json --raw link.csv",
       "--raw link.csv would replace what --benchmark_out writes there"},
      {"--benchmark_out results/results.csv",
       "--benchmark_out results/results.csv would replace what --out writes there"},
      {"--raw results/../results/console.txt", "would replace what --out writes there"},
  };
  assert_int_equal(run("ln -s f.json link.csv && echo kept >f.json && echo kept >results/results.csv"), 0);
  for (size_t n = 0; n < sizeof same / sizeof *same; n++) {
    char command[512];
    snprintf(command, sizeof command, BENCH " %s", same[n][0]);
    assert_int_equal(run(command), 2);
    assert_says(same[n][1]);
    assert_int_equal(run("test $(cat f.json) = kept && test $(cat results/results.csv) = kept"), 0);
  }
  assert_int_equal(run(BENCH " --benchmark_out f.json --raw results/raw.csv"), 0);
  assert_int_equal(run(BENCH " --benchmark_out /dev/null --raw /dev/null"), 0);
}

/* What was measured is not lost with it. */
static void a_folder_that_is_removed_meanwhile_is_made_again(void **state) {
  const fixture *fixture = *state;
  assert_int_equal(run(MEANWHILE("rmdir results")), 0);
  assert_int_equal(seed_of(fixture->json), 1);
}

/* A gnuplot that tells its parent to end, by SIGTERM, as what runs tests may have SIGINT ignored. All else of a bench is written,
 * the page with the reason in the place of pictures; a page alone is not. */
static void ctrl_c_ends_pictures_and_leaves_nothing_of_them(void **state) {
  const fixture *fixture = *state;
  static const struct {
    const char *command, *left;
  } cases[] = {
      {BENCH, "console.txt index.html results.csv results.json summary.txt "},
      {PROGRAM " report results/results.json", "results.json "},
      {PROGRAM " plots results/results.json", "results.json "},
      {PROGRAM " show causal/T:64 --out results", ""},
  };
  assert_int_equal(run("mkdir bin temporary && printf '#!/bin/sh\\nkill -TERM $PPID\\n' >bin/gnuplot && "
                       "chmod +x bin/gnuplot"),
                   0);
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char command[512];
    assert_int_equal(run("rm -rf results && mkdir results"), 0);
    if (strstr(cases[n].command, "results.json")) write_report(fixture->json, 1, 1024);
    snprintf(command, sizeof command, "export PATH=$PWD/bin:$PATH TMPDIR=$PWD/temporary; %s",
             cases[n].command);
    const int status = run(command);
    snprintf(command, sizeof command,
             "test -z \"$(ls -A temporary)\" && test \"$(ls -A results | tr '\\n' ' ')\" = '%s'",
             cases[n].left);
    if (status != 130 || run(command) != 0) fail_msg("%s: status %d", cases[n].command, status);
  }
}

static void a_folder_that_becomes_a_file_is_said(void **state) {
  (void)state;
  assert_int_equal(run(MEANWHILE("rmdir results; echo kept >results")), 2);
  assert_says("--out results: Not a directory");
  assert_int_equal(run("grep -q kept results"), 0);
}

static void files_that_cannot_be_read_are_said_and_kept(void **state) {
  const fixture *fixture = *state;
  static const struct {
    const char *change, *words;
  } cases[] = {
      {"sed -i 's/\"attnbench_schema_version\": [0-9]*/\"attnbench_schema_version\": 99/' "
       "results/results.json",
       "was written in schema version 99"},
      {"sed -i '0,/\"run_name\": \"[^\"]*\"/s//\"run_name\": \"\\\\n\\\\u001b\"/' results/results.json",
       "'?\?' does not name"},
      {"truncate -s 5000 results/results.json", "is not sound JSON"},
      {": >results/results.json", "is not sound JSON"},
      {"rm results/results.json", "No such file or directory"},
  };
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    write_report(fixture->json, 77, 1024);
    assert_int_equal(run(cases[n].change), 0);
    assert_int_equal(run("cp results/results.json before || :"), 0);
    assert_int_equal(run(PROGRAM " plots results/results.json"), 2);
    assert_says(cases[n].words);
    assert_int_equal(run("ls -A results | grep -v '^results.json$'"), 1);
    if (n + 1 < sizeof cases / sizeof cases[0]) assert_int_equal(run("cmp before results/results.json"), 0);
  }
}

/* Of the report of a run, which says what it was a part of. */
static void numbers_of_shards_that_cannot_be_are_said(void **state) {
  (void)state;
  static const char *const changes[] = {
      "s/\"shards\": [0-9]*/\"shards\": 2147483647/", "s/\"shards\": [0-9]*/\"shards\": -1/",
      "s/\"shards\": [0-9]*/\"shards\": 4294967297/", "s/\"shard\": [0-9]*/\"shard\": 7/"};
  assert_int_equal(run(BENCH " && mv results/results.json sound.json && " PROGRAM " merge sound.json"), 0);
  for (size_t n = 0; n < sizeof changes / sizeof *changes; n++) {
    char command[256];
    snprintf(command, sizeof command, "sed '%s' sound.json >changed.json && " PROGRAM " merge changed.json",
             changes[n]);
    assert_int_equal(run(command), 2);
    assert_says("\"shards\" must be 0 to 100000, and each \"shard\" one of these");
  }
}

/* A link, a link to a link that lies elsewhere, and one that points to nothing yet; with what was there kept whole. */
static void a_link_stays_one_and_what_it_points_to_is_replaced(void **state) {
  const fixture *fixture = *state;
  static const char *const commands[] = {PROGRAM " bench --variant fused --lengths 16 --benchmark_dry_run"
                                                 " --quiet --benchmark_out=link",
                                         BENCH};
  char file[80];
  snprintf(file, sizeof file, "%s/elsewhere/kept.json", fixture->folder);
  assert_int_equal(run("mkdir elsewhere && ln -s ../elsewhere/middle results/results.json && "
                       "ln -s results/results.json link && ln -s kept.json elsewhere/middle"),
                   0);
  for (size_t n = 0; n < sizeof commands / sizeof *commands; n++) {
    for (int there = 0; there < 2; there++) {
      if (there) write_report(file, 77, 1024);
      assert_int_equal(run(commands[n]), 0);
      assert_int_equal(seed_of(file), 1);
      assert_int_equal(run("test -L link && test -L results/results.json && test -L elsewhere/middle"), 0);
      assert_int_equal(
          run("test \"$(ls -A elsewhere)\" = \"$(printf 'kept.json\\nmiddle')\" && rm elsewhere/kept.json"),
          0);
    }
  }
  assert_int_equal(run("rm -r elsewhere; " PROGRAM " bench --benchmark_dry_run --benchmark_out=link"), 2);
  assert_says("--benchmark_out link: No such file or directory");
  assert_int_equal(run("ln -s b a; ln -s a b; " PROGRAM " bench --benchmark_dry_run --benchmark_out=a"), 2);
  assert_says("--benchmark_out a: Too many levels of symbolic links");
}

/* Not replaced beneath the shell that gave it, nor begun anew. */
static void a_file_that_the_standard_output_goes_to_is_written_to(void **state) {
  (void)state;
  assert_int_equal(run("(echo first; " PROGRAM
                       " bench --variant fused --lengths 16 --benchmark_dry_run --quiet"
                       " --benchmark_format=csv --benchmark_out=/dev/stdout; echo last) >said"),
                   0);
  assert_int_equal(
      run("head -n 1 said | grep -qx first && tail -n 1 said | grep -qx last && grep -q '\"context\"' said "
          "&& grep -q ^name,iterations said && test -L /dev/stdout"),
      0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_writer_that_is_killed_leaves_the_old_file_or_the_new, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_run_that_is_killed_leaves_the_old_file_or_the_new, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_full_disk_is_said_and_costs_no_old_file, set_up, tear_down),
      cmocka_unit_test_setup_teardown(files_of_one_bench_are_apart, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_full_standard_output_is_said, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_folder_that_is_removed_meanwhile_is_made_again, set_up, tear_down),
      cmocka_unit_test_setup_teardown(ctrl_c_ends_pictures_and_leaves_nothing_of_them, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_folder_that_becomes_a_file_is_said, set_up, tear_down),
      cmocka_unit_test_setup_teardown(numbers_of_shards_that_cannot_be_are_said, set_up, tear_down),
      cmocka_unit_test_setup_teardown(files_that_cannot_be_read_are_said_and_kept, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_link_stays_one_and_what_it_points_to_is_replaced, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_file_that_the_standard_output_goes_to_is_written_to, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
