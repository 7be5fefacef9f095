/* The program as people meet it: run as a process, judged by its exit status and by what it prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shell.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench"
#define PLUGINS ATTN_BUILD_DIR "/tests/plugins/"

typedef struct outcome {
  int status;
  char out[65536], err[16384];
} outcome;

static char folder[] = "/tmp/attnbench-test-cli-XXXXXX";

static void read_whole(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, size - 1, file)] = '\0';
  fclose(file);
}

/* Runs the program through the shell in the test's own folder. */
static void run_program(const char *arguments, outcome *outcome) {
  char command[4096];
  snprintf(command, sizeof command, "cd %s && " PROGRAM " %s >out 2>err", folder, arguments);
  int status = system(command);
  outcome->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  char path[256];
  snprintf(path, sizeof path, "%s/out", folder);
  read_whole(path, outcome->out, sizeof outcome->out);
  snprintf(path, sizeof path, "%s/err", folder);
  read_whole(path, outcome->err, sizeof outcome->err);
}

static void expect(const char *arguments, int status, const char *out_has, const char *err_has) {
  static outcome outcome;
  run_program(arguments, &outcome);
  if (outcome.status != status || (out_has && !strstr(outcome.out, out_has)) ||
      (err_has && !strstr(outcome.err, err_has)))
    fail_msg("attnbench %s: status %d, expected %d, '%s' on stdout and '%s' on stderr; there was:\n%s\n%s",
             arguments, outcome.status, status, out_has ? out_has : "", err_has ? err_has : "", outcome.out,
             outcome.err);
}

static size_t count_lines(const char *text) {
  size_t lines = 0;
  for (; *text; text++) lines += *text == '\n';
  return lines;
}

static void bad_input_gives_status_2_one_line_and_nothing_on_stdout(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *says;
  } cases[] = {
      {"verify --device gpu", "--device takes emu, or cuda:0 and so on, not 'gpu'"},
      {"verify --device cuda:-1", "--device takes emu, or cuda:0 and so on, not 'cuda:-1'"},
      {"list --device emu --plugin nowhere.so", "cannot load plugin nowhere.so"},
      {"--quxquxqux", "--help"},
      {"bench --varaint fused", "--variant"},
      {"bench --variant fuzed", "fused"},
      {"verify --variant fuzed", "fused"},
      {"bench --preset gtp2", "nearest"},
      {"bench --isa avx9000", "instruction set"},
      {"verify --isa avx9000", "instruction set"},
      {"bench --heads 6 --kv-heads 4", "multiple"},
      {"bench --head-dim -4", "--head-dim"},
      {"bench --threads 0", "--threads"},
      {"bench --pin --threads 4096", "--pin gives each thread a processor of its own"},
      {"bench --query-length 0", "--query-length takes a whole number from 1"},
      {"bench --preset gpt2 --query-length 1", "--preset fixes the whole shape"},
      {"bench --batch 1000000000000 --heads 1000000000000", "too many"},
      {"bench --lengths 1000000000000 --batch 1000000000", "too many"},
      {"bench --variant multi_query --kv-heads 2", "multi_query cannot solve"},
      {"bench --problem nonsense/T:8", "--problem nonsense/T:8"},
      {"verify --problem full/H:3/Hkv:2/T:8", "--problem"},
      {"verify --problem full/T:-5", "--problem"},
      {"verify --variant linear --problem full/T:8", "linear cannot solve"},
      {"bench --benchmark_filter '('", "regular expression"},
      {"bench --benchmark_filter no_such_point", "no point matches"},
      {"bench --variant fused --lengths 16 --out err/results", "--out err/results"},
      {"bench --variant fused --lengths 16 --out err", "--out err"},
      {"bench --variant fused --lengths 16 --out 'two\nlines'", "--out takes a text without line breaks"},
      {"bench --variant fused --lengths 16 --raw 'two\nlines'", "--raw takes a text without line breaks"},
      {"merge other.json --out 'two\nlines'", "--out takes a text without line breaks"},
      {"bench --variant fused --lengths 16 --benchmark_out=nowhere/r.json", "nowhere/r.json"},
      {"bench --variant fused --lengths 16 --raw nowhere/r.csv", "--raw nowhere/r.csv"},
      {"bench --variant fused --lengths 16 --benchmark_context='k\377y=value'",
       "is not UTF-8; give one that is"},
      {"bench --variant fused --lengths 16 --benchmark_context=host=mine", "'host' is taken"},
      {"bench --variant fused --batches 1,2 --batch 4", "leave out --batch"},
      {"bench --batches 1,2 --key-lengths 16", "lengths lists"},
      {"bench --batches 1,2 --key-lengths 16,8", "lengths lists"},
      {"bench --lengths 64,1000000000000 --batch 1000000000", "too many"},
      {"bench --mask zz", "'mask:zz': axes are each of b, h, q at most once"},
      {"list --plugin ./nowhere.so", "nowhere.so"},
      {"list --plugin " PLUGINS "no_table.so", "attn_plugin"},
      {"list --plugin " PLUGINS "other_version.so", "version"},
      {"list --plugin " PLUGINS "taken_name.so", "naive"},
      {"verify --cases nowhere", "nowhere"},
      {"gate --head x.so --base y.so --base z.so --times", "2 --base and 1 --head"},
      {"gate --base x.so --head y.so --problem T:x", "--problem T:x"},
      {"gate --cases folder", "--cases takes a whole number"},
      {"gate-measure --quads", "--quads needs a value"},
      {"help frobnicate", "the commands are"},
      {"plots broken.json --format gif", "--format takes png|svg|pdf, not 'gif'"},
      {"plots broken.json --font-size 400", "--font-size takes a whole number from 8 to 40"},
      {"plots nowhere.json", "nowhere.json"},
      {"plots broken.json", "broken.json"},
      {"plots other.json", "other.json"},
  };
  static outcome outcome;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_program(cases[i].arguments, &outcome);
    if (outcome.status != 2 || outcome.out[0] || count_lines(outcome.err) != 1 ||
        strncmp(outcome.err, "attnbench: ", 11) != 0 || !strstr(outcome.err, cases[i].says))
      fail_msg("attnbench %s: status %d, expected 2 and one line with '%s'; there was:\n%s%s",
               cases[i].arguments, outcome.status, cases[i].says, outcome.out, outcome.err);
  }
}

static void the_help_names_every_option(void **state) {
  (void)state;
  static const char *const options[] = {"--variant",
                                        "--plugin",
                                        "--problem",
                                        "--preset",
                                        "--batch",
                                        "--heads",
                                        "--kv-heads",
                                        "--head-dim",
                                        "--value-dim",
                                        "--lengths",
                                        "--causal",
                                        "--window",
                                        "--threads",
                                        "--isa",
                                        "--seed",
                                        "--out",
                                        "--min-time",
                                        "--repetitions",
                                        "--precision",
                                        "--cold",
                                        "--instructions",
                                        "--benchmark_context",
                                        "--point-limit",
                                        "--point-budget",
                                        "--quiet",
                                        "--count",
                                        "--seconds",
                                        "--cases",
                                        "--scripts",
                                        "--benchmark_filter",
                                        "--benchmark_list_tests",
                                        "--benchmark_min_time",
                                        "--benchmark_min_warmup_time",
                                        "--benchmark_repetitions",
                                        "--benchmark_report_aggregates_only",
                                        "--benchmark_display_aggregates_only",
                                        "--benchmark_enable_random_interleaving",
                                        "--benchmark_format",
                                        "--benchmark_out",
                                        "--benchmark_out_format",
                                        "--benchmark_time_unit",
                                        "--benchmark_dry_run",
                                        "--benchmark_color",
                                        "--benchmark_counters_tabular"};
  static outcome outcome;
  run_program("--help", &outcome);
  assert_int_equal(outcome.status, 0);
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    if (!strstr(outcome.out, options[i])) fail_msg("%s is missing from:\n%s", options[i], outcome.out);
}

static void the_help_of_one_command_is_its_own(void **state) {
  (void)state;
  static outcome outcome;
  static const char *const lines[] = {"gate --help", "help gate", "gate --budget -h --accept --help -h"};
  for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
    run_program(lines[n], &outcome);
    if (outcome.status != 0 || !strstr(outcome.out, "those of another. It\nverifies the head") ||
        !strstr(outcome.out, "3 the controls moved") || !strstr(outcome.out, "  --identical NAMES ") ||
        strstr(outcome.out, "--plugin"))
      fail_msg("attnbench %s: status %d:\n%s%s", lines[n], outcome.status, outcome.out, outcome.err);
  }
  expect("verify --help", 0, "attnbench verify [options]: ", NULL);
}

static void list_names_every_variant_and_those_of_a_plugin(void **state) {
  (void)state;
  static const char *const names[] = {"naive",       "blocked",          "fused",
                                      "linear",      "linear_recurrent", "sliding_window",
                                      "multi_query", "grouped_query",    "block_sparse"};
  static outcome outcome;
  run_program("list", &outcome);
  assert_int_equal(outcome.status, 0);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strstr(outcome.out, names[i])) fail_msg("%s is missing from:\n%s", names[i], outcome.out);
  expect("list --plugin " PLUGINS "ends.so", 0, "crashing", NULL);
}

static void a_device_is_told_with_its_variants(void **state) {
  (void)state;
  if (access(ATTN_BUILD_DIR "/attnbench_emu.so", R_OK) != 0) skip();
  expect("list --device emu", 0, "device emu: an emulated device", NULL);
  expect("list --device emu", 0, "cuda_fused", NULL);
}

/* The reader has opened the pipe and gone before anything is said; a status of 128 and SIGPIPE, as ls has it. */
static void who_reads_no_further_ends_a_command_without_a_word(void **state) {
  (void)state;
  static const char *const commands[] = {"list", "verify --variant naive --problem full/T:8", "--help"};
  for (size_t n = 0; n < sizeof commands / sizeof *commands; n++) {
    char command[512];
    snprintf(command, sizeof command,
             "cd %s; rm -f pipe; mkfifo pipe; true <pipe & exec 3>pipe; wait; " PROGRAM
             " %s >&3; echo \"status $?\"",
             folder, commands[n]);
    shell_expect(command, 0, "status 141\n");
    assert_null(strstr(shell_output, "attnbench: "));
  }
}

static void points_are_named_without_being_measured(void **state) {
  (void)state;
  expect("bench --variant fused --lengths 64 --causal --benchmark_list_tests", 0,
         "fused/causal/B:1/H:4/Hkv:4/D:64/T:64\n", NULL);
  expect("bench --variant fused --lengths 64 --causal --query-length 1 --benchmark_list_tests", 0,
         "fused/causal_bottom_right/B:1/H:4/Hkv:4/D:64/Tq:1/Tk:64\n", NULL);
  expect("bench --variant fused --problem full/T:8 --seed 7 --benchmark_list_tests", 0, "/T:8/seed:7\n",
         NULL);
  expect("bench --variant fused --problem full/T:8/seed:3 --seed 7 --benchmark_list_tests", 0,
         "/T:8/seed:3\n", NULL);
  expect("verify --variant fused --problem full/T:8 --seed 7", 0, "/T:8/seed:7 with ", NULL);
  expect("bench --benchmark_list_tests --benchmark_filter=-naive", 0,
         "multi_query/full/B:1/H:4/Hkv:1/D:64/T:128\n", NULL);
}

/* Kernels that end the process, or never end, and one that is right behind them. */
static void whatever_ends_a_kernel_is_told_and_the_others_are_judged(void **state) {
  (void)state;
  static const char plugin[] = " --plugin '" PLUGINS;
  static const char golden[] = "verify --cases " ATTN_SOURCE_DIR "/tests/cases";
  static const struct {
    const char *command, *lasting; /* its row */
  } cases[] = {
      {"verify --problem full/B:1/H:2/D:8/T:16", "lasting               passed"},
      {golden, "lasting               passed"},
      {"bench --quiet --benchmark_dry_run --lengths 16,32", "lasting/full/B:1/H:4/Hkv:4/D:64/T:32 "}};
  static const char *const told[] = {
      "variant 'crashing' crashed (SIGSEGV: ", "verify --variant crashing --problem '",
      "variant 'leaving' ended the process with status 0 on ",
      "variant 'hanging' did not end within 1.5 s on ", plugin};
  static outcome outcome;
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char arguments[1024];
    snprintf(arguments, sizeof arguments,
             "%s --run-limit 1.5 --variant crashing,leaving,hanging,lasting --plugin " PLUGINS "ends.so",
             cases[n].command);
    run_program(arguments, &outcome);
    bool all = outcome.status == 1 && strstr(outcome.out, cases[n].lasting);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) all = all && strstr(outcome.err, told[i]);
    all = all && strstr(outcome.err, " --run-limit 1.5");
    all = all && (n > 0 || strstr(outcome.out, " --run-limit 1.5")); /* in verify's own words, too */
    if (!all)
      fail_msg("attnbench %s: status %d and:\n%s\n%s", arguments, outcome.status, outcome.out, outcome.err);
  }
  expect("fuzz --seconds 5 --variant leaving,lasting --plugin " PLUGINS "ends.so", 1, "FAILED: leaving",
         "variant 'leaving' ended the process with status 0");
}

static void a_plugin_that_ends_it_when_loaded_is_left_out(void **state) {
  (void)state;
  assert_int_equal(setenv("ATTN_TEST_ENDS_AT_LOAD", "1", 1), 0);
  expect("list --plugin " PLUGINS "ends.so", 1, "fused", "while it was loaded: it is left out");
  unsetenv("ATTN_TEST_ENDS_AT_LOAD");
}

static void a_wrong_kernel_fails_verification_with_the_command_that_repeats_it(void **state) {
  (void)state;
  expect("verify --plugin " PLUGINS "wrong_kernel.so --variant wrong --count 5 --every 12", 1, "--problem",
         NULL);
  expect("verify --plugin " PLUGINS "wrong_kernel.so --variant wrong --count 5 --fail-fast", 1, " 1 failed",
         NULL);
  expect("verify --plugin " PLUGINS "wrong_kernel.so --variant wrong --problem full/T:16", 1, "wrong", NULL);
  expect("verify --plugin " PLUGINS "wrong_kernel.so --variant wrong --problem full/T:1", 0, "wrong", NULL);
}

static void weights_between_which_rounding_decides_may_be_any(void **state) {
  (void)state;
  /* Keys 2^60 away are one distance in float32 and two in double precision, where one's weight is then 0. */
  expect("verify --variant naive --isa portable --problem "
         "band:inf,inf,1152921504606846976/B:1/H:2/Hkv:2/D:1/Dv:0/Tq:130/Tk:2/weights/alibi/seed:1037657644",
         0, "1 cases, 0 failed", NULL);
}

static void gradients_of_gates_of_0_may_be_no_number_where_nothing_normalises(void **state) {
  (void)state;
  expect("verify --variant naive_linear_backward --problem "
         "linear_backward/full/B:1/H:1/Hkv:1/D:1/Dv:0/T:2/epsilon:0/phi:relu/decay/fill:zeros",
         0, "1 cases, 0 failed", NULL);
}

static void only_the_properties_that_are_named_are_held(void **state) {
  (void)state;
  expect("verify --variant fused --isa portable --problem full/T:9 --properties layout,'order of keys'", 0,
         "\n2 properties held on 1 problem: 2 checks", NULL);
  expect("verify --variant fused --isa portable --problem full/T:9 --properties layout", 0,
         "\n1 property held on 1 problem: 1 checks", NULL);
  expect("verify --variant fused --isa portable --problem full/T:9 --properties none", 0, "1 cases, 0 failed",
         NULL);
  expect("verify --properties none,layouts", 2, NULL,
         "there is no property 'layouts'; there are: same bits again, ");
  expect("verify --properties layout --cases cases", 2, NULL, "leave out --properties");
}

static void an_instruction_set_is_looked_up_in_the_table_of_each_plugin(void **state) {
  (void)state;
  const char *odd =
      "verify --plugin " PLUGINS "side_effects.so --variant wrong_when_odd --problem full/D:4/T:5";
  char arguments[512];
  static outcome outcome;
  run_program(odd, &outcome);
  assert_int_equal(outcome.status, 1);
  /* The command that is printed fails in the same way. */
  char *command = strstr(outcome.out, "reproduce: attnbench ");
  if (!command || !strstr(command, " --isa odd ")) {
    fail_msg("%s", outcome.out);
    return;
  }
  command += strlen("reproduce: attnbench ");
  snprintf(arguments, sizeof arguments, "%.*s", (int)strcspn(command, "\n"), command);
  expect(arguments, 1, "--isa odd", NULL);
  snprintf(arguments, sizeof arguments, "%s --isa usual", odd);
  expect(arguments, 0, "passed", NULL);
  snprintf(arguments, sizeof arguments, "%s --isa other", odd);
  expect(arguments, 2, NULL,
         "this processor has no instruction set 'other'; it has emulated_amx emulated_bf16 portable");
  expect(arguments, 2, NULL, " usual odd");
  /* Those who do not have it choose. */
  expect("verify --plugin " PLUGINS "side_effects.so --variant fused --isa odd --problem full/D:4/T:5", 0,
         "passed", NULL);
  expect("bench --plugin " PLUGINS "side_effects.so --variant wrong_when_odd,fused --isa odd --lengths 16 "
         "--benchmark_dry_run --quiet",
         1, "wrong_when_odd", NULL);
  expect("bench --plugin " PLUGINS "side_effects.so --variant wrong_when_odd,fused --isa usual --lengths 16 "
         "--benchmark_dry_run --quiet",
         0, "wrong_when_odd", NULL);
}

static void a_kernel_that_asks_for_the_absurd_fails_alone(void **state) {
  (void)state;
  const char *words = "asks for 1125899906842624 bytes of workspace";
  expect("verify --plugin " PLUGINS "side_effects.so --variant two_to_the_50,nothing --problem full/D:4/T:5",
         1, words, NULL);
  expect("verify --plugin " PLUGINS "side_effects.so --variant two_to_the_50,nothing --problem full/D:4/T:5",
         1, "nothing               passed", NULL);
  expect("fuzz --plugin " PLUGINS "side_effects.so --variant two_to_the_50 --seconds 2", 1, words, NULL);
}

static void a_kernel_that_ran_on_nothing_has_passed_nothing(void **state) {
  (void)state;
  const char *why = "nothing was verified: idle takes none of these problems";
  expect("verify --plugin " PLUGINS "takes_nothing.so --variant idle --count 0", 2, NULL, why);
  expect("fuzz --plugin " PLUGINS "takes_nothing.so --variant idle --seconds 0.1", 2, NULL, why);
  expect("verify --plugin " PLUGINS "takes_nothing.so --variant idle --cases " ATTN_SOURCE_DIR "/tests/cases",
         2, NULL, why);
  expect("verify --problem linear/window:3/T:4", 2, NULL, "nothing was verified");
}

static void a_dry_run_writes_every_file(void **state) {
  (void)state;
  expect("bench --variant fused,linear --lengths 32:128 --benchmark_dry_run --quiet --out run --raw run.csv",
         0, "fused", NULL);
  static const char *const files[] = {"results.json", "results.csv", "console.txt", "summary.txt",
                                      "../run.csv"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char path[256];
    struct stat status;
    snprintf(path, sizeof path, "%s/run/%s", folder, files[i]);
    if (stat(path, &status) != 0 || status.st_size == 0) fail_msg("%s is missing or empty", path);
  }
}

static void pictures_of_an_older_run_are_not_told_as_this_ones(void **state) {
  (void)state;
  static const char bench[] = "bench --variant fused --lengths 32 --benchmark_dry_run --quiet --out older"
                              " --scripts /nowhere",
                    merge[] = "merge older/results.json --out older_too --scripts /nowhere";
  static outcome outcome;
  const char *const commands[] = {bench, merge};
  for (size_t n = 0; n < sizeof commands / sizeof *commands; n++) {
    run_program(commands[n], &outcome);
    if (outcome.status != 0 || !strstr(outcome.out, "\nresults.json lies in older") ||
        strstr(outcome.out, "Pictures") || !strstr(outcome.err, "no plots: "))
      fail_msg("attnbench %s: status %d:\n%s%s", commands[n], outcome.status, outcome.out, outcome.err);
  }
}

static void what_is_not_to_be_run_has_its_memory_alone(void **state) {
  (void)state;
  static outcome outcome;
  static const char measured[] = "bench --quiet --variant naive_backward,fused --memory-only naive_backward "
                                 "--lengths 16:128 --threads 1 "
                                 "--benchmark_dry_run --out memory";
  expect("bench --memory-only nobody", 2, NULL, "there is no variant 'nobody'");
  run_program(measured, &outcome);
  assert_int_equal(outcome.status, 0);
  /* A head's weights, and their gradients. */
  assert_non_null(strstr(outcome.out, "SKIPPED: not to be run; it asks for 32 KiB of workspace"));
  assert_non_null(strstr(outcome.out, "time not run "));
  assert_non_null(strstr(outcome.out, "workspace 2 exactly"));
  assert_null(strstr(outcome.out, "Skipped:"));
  /* What is read back says the same. */
  run_program("merge memory/results.json --out merged.json", &outcome);
  assert_int_equal(outcome.status, 0);
  assert_non_null(strstr(outcome.out, "time not run "));
  assert_non_null(strstr(outcome.out, "workspace 2 exactly"));
  assert_null(strstr(outcome.out, "Skipped:"));
}

static void pinned_threads_keep_to_one_processor_and_the_record_says_so(void **state) {
  (void)state;
  static outcome outcome;
  run_program("bench --pin --threads 1 --variant naive --lengths 16 --benchmark_dry_run --quiet "
              "--benchmark_format json",
              &outcome);
  assert_int_equal(outcome.status, 0);
  const char *affinity = strstr(outcome.out, "\"affinity\": \""),
             *first = affinity + strlen("\"affinity\": \"");
  char pinned[128];
  assert_non_null(affinity);
  snprintf(pinned, sizeof pinned, "\"each thread to one processor, in the order %.*s\"",
           (int)strspn(first, "0123456789"), first);
  if (!strstr(outcome.out, pinned) || !strstr(outcome.out, "OMP_PROC_BIND=close"))
    fail_msg("%s", outcome.out);
  expect("bench --pin --benchmark_list_tests --variant naive --lengths 16", 0, "naive/", NULL);
}

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  char command[512];
  snprintf(command, sizeof command,
           "cd %s && printf '{\"benchmarks\": [' >broken.json && printf '{\"a\": 1}' >other.json && "
           "mkdir older older_too && touch older/time.png older_too/time.png",
           folder);
  return system(command);
}

static int remove_folder(void **state) {
  (void)state;
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_input_gives_status_2_one_line_and_nothing_on_stdout),
      cmocka_unit_test(the_help_names_every_option),
      cmocka_unit_test(the_help_of_one_command_is_its_own),
      cmocka_unit_test(list_names_every_variant_and_those_of_a_plugin),
      cmocka_unit_test(a_device_is_told_with_its_variants),
      cmocka_unit_test(who_reads_no_further_ends_a_command_without_a_word),
      cmocka_unit_test(points_are_named_without_being_measured),
      cmocka_unit_test(whatever_ends_a_kernel_is_told_and_the_others_are_judged),
      cmocka_unit_test(a_plugin_that_ends_it_when_loaded_is_left_out),
      cmocka_unit_test(a_wrong_kernel_fails_verification_with_the_command_that_repeats_it),
      cmocka_unit_test(weights_between_which_rounding_decides_may_be_any),
      cmocka_unit_test(gradients_of_gates_of_0_may_be_no_number_where_nothing_normalises),
      cmocka_unit_test(only_the_properties_that_are_named_are_held),
      cmocka_unit_test(an_instruction_set_is_looked_up_in_the_table_of_each_plugin),
      cmocka_unit_test(a_kernel_that_asks_for_the_absurd_fails_alone),
      cmocka_unit_test(a_kernel_that_ran_on_nothing_has_passed_nothing),
      cmocka_unit_test(a_dry_run_writes_every_file),
      cmocka_unit_test(pictures_of_an_older_run_are_not_told_as_this_ones),
      cmocka_unit_test(what_is_not_to_be_run_has_its_memory_alone),
      cmocka_unit_test(pinned_threads_keep_to_one_processor_and_the_record_says_so),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
