/* Devices that cannot be had, or fail: what the program says, and that the variants that do not make them fail go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shell.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench "
#define FAILING " --plugin " ATTN_BUILD_DIR "/tests/plugins/failing_device.so"
#define ONE_HEAD " --problem full/B:1/H:1/D:8/T:16"
#define ITS_VARIANTS " --variant breaks_it,is_refused,hungry,endless,right"

/* What the program says on both outputs goes to shell_output; its status. */
static int run(const char *before, const char *arguments) {
  char command[4096];
  snprintf(command, sizeof command, "%s " PROGRAM "%s", before, arguments);
  return shell(command);
}

static void expect_words(const char *const *words) {
  for (; *words; words++)
    if (!strstr(shell_output, *words)) fail_msg("'%s' is not in:\n%s", *words, shell_output);
}

static void a_kernel_that_breaks_its_device_is_named_and_the_others_go_on(void **state) {
  (void)state;
  assert_int_equal(run("", "verify" FAILING ITS_VARIANTS ONE_HEAD " --run-limit 1"), 1);
  expect_words((const char *const[]){
      "variant 'breaks_it' fails on its device: an illegal memory access was encountered on full/B:1/H:1/",
      "variant 'endless' did not end within 1 s on full/B:1/H:1/",
      "FAILED: fails on its device: an illegal memory access was encountered; it was left out since",
      "FAILED: fails on its device: no kernel image is available for execution on the device\n",
      "hungry                not run ", "skipped 1: no memory on the device (1)",
      "FAILED: did not end within 1 s", "right                 passed ",
      "--variant breaks_it --problem 'full/B:1/H:1/", NULL});
}

static void a_bench_goes_on_without_it(void **state) {
  (void)state;
  assert_int_equal(run("", "bench" FAILING ITS_VARIANTS ONE_HEAD
                           " --run-limit 1 --quiet --instructions=false --benchmark_dry_run"),
                   1);
  expect_words((const char *const[]){
      "FAILED: fails on its device: an illegal memory access was encountered\n",
      "FAILED: fails on its device: no kernel image is available for execution on the device\n",
      "SKIPPED: no memory on the device\n", "FAILED: did not end within 1 s\n", "\nright/full/B:1/H:1/",
      NULL});
}

/* 16 x 16 pairs of 8 features make 8192 FLOP, in the 1 ms that each kernel takes by the device's clock. */
static void shares_are_of_the_peaks_of_the_device(void **state) {
  (void)state;
  assert_int_equal(run("", "bench" FAILING " --variant right" ONE_HEAD
                           " --quiet --instructions=false --benchmark_dry_run --cold"),
                   0);
  expect_words((const char *const[]){
      "on failing, 2 multiprocessors, sm_70, 900 of 1800 MHz at the least, 88 degrees\n",
      "multiply-add f32 1.00 GFLOP/s", "read memory 2.00 GB/s", "0.00819 0.819%",
      "\nfailing: peak 1.00 GFLOP/s (f32 multiply-adds)\n",
      "failing was slowed down by its temperature: 900 of 1800 MHz at the least, 88 degrees.", NULL});
  if (strstr(shell_output, "multiply-add bf16") || strstr(shell_output, "sgemm") ||
      strstr(shell_output, "multiply-add avx"))
    fail_msg("%s", shell_output);
}

static void zeros_that_are_written_are_touched_too(void **state) {
  (void)state;
  assert_int_equal(run("", "bench" FAILING " --variant zeroes" ONE_HEAD
                           " --quiet --instructions=false --benchmark_dry_run --benchmark_format=json"),
                   0);
  expect_words((const char *const[]){"\"workspace_bytes\": 4096", "\"workspace_touched_bytes\": 1024",
                                     "\"lowest_clock_mhz\": 900", NULL});
}

static void the_emulated_device_says_what_it_is_and_that_it_has_no_peak(void **state) {
  (void)state;
  if (access(ATTN_BUILD_DIR "/attnbench_emu.so", R_OK) != 0) return;
  assert_int_equal(run("", "machine --device emu"), 0);
  expect_words(
      (const char *const[]){"device      emulated, 1 multiprocessor\n", "shared by a block 227 KiB\n",
                            "No peak is measured: how fast this is says nothing of a device.\n", NULL});
  if (strstr(shell_output, "GFLOP")) fail_msg("%s", shell_output);
  assert_int_equal(run("", "machine --device cpu"), 2);
  expect_words((const char *const[]){"--device takes emu, or cuda:0 and so on, not 'cpu'\n", NULL});
}

static void a_device_that_cannot_be_had_is_a_sentence(void **state) {
  (void)state;
  assert_int_equal(run("FAILING_DEVICE=old", "verify" FAILING " --variant right" ONE_HEAD), 2);
  expect_words((const char *const[]){"nothing was verified: right takes none of these problems (device "
                                     "failing:0 is sm_70, for which nothing was "
                                     "compiled)",
                                     NULL});
}

static void a_device_that_does_not_exist_is_a_sentence(void **state) {
  (void)state;
  static const char *const table[][2] = {
      {"verify --device emu:1", "--device takes emu, or cuda:0 and so on, not 'emu:1'\n"},
      {"verify --device cuda:x", "--device takes emu, or cuda:0 and so on, not 'cuda:x'\n"},
      {"bench --device ''", "--device"},
      /* Not built, no GPU, or fewer of them: as this machine is. */
      {"verify --device cuda:1000", "attnbench: "},
  };
  for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
    assert_int_equal(run("", table[n][0]), 2);
    expect_words((const char *const[]){table[n][1], NULL});
    const char *end = strchr(shell_output, '\n');
    if (!end || end[1] != '\0') fail_msg("not a line: %s", shell_output);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_kernel_that_breaks_its_device_is_named_and_the_others_go_on),
      cmocka_unit_test(a_bench_goes_on_without_it),
      cmocka_unit_test(shares_are_of_the_peaks_of_the_device),
      cmocka_unit_test(zeros_that_are_written_are_touched_too),
      cmocka_unit_test(the_emulated_device_says_what_it_is_and_that_it_has_no_peak),
      cmocka_unit_test(a_device_that_cannot_be_had_is_a_sentence),
      cmocka_unit_test(a_device_that_does_not_exist_is_a_sentence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
