/* A call's memory on a device: a device made of the host's memory, that can be told to fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/runner.h"

/* ---- the device ---- */

enum { CANARY = 0x3c, ENOUGH = 1000, MOST = 64 };
static const size_t GUARD = 64;

static int allocations_left, buffers; /* buffers: taken and not given back */
static size_t bytes_of[MOST];
static unsigned char *memory_of[MOST];
static const char *wrong;

static int count(char *why, size_t why_size) {
  (void)why, (void)why_size;
  return 1;
}

static bool open_device(int index, char *words, size_t words_size) {
  (void)index;
  snprintf(words, words_size, "a device of a test");
  return true;
}

static void *allocate(size_t bytes) {
  if (allocations_left-- <= 0) return NULL;
  assert_true(buffers < MOST);
  memory_of[buffers] = malloc(bytes + 2 * GUARD);
  assert_non_null(memory_of[buffers]);
  memset(memory_of[buffers], CANARY, bytes + 2 * GUARD);
  bytes_of[buffers] = bytes;
  return memory_of[buffers++] + GUARD;
}

static int buffer_at(const void *memory) {
  for (int n = 0; n < buffers; n++)
    if (memory_of[n] + GUARD == memory) return n;
  fail_msg("%s", "memory is named that is not the device's, or was given back");
  return 0;
}

static void release(void *memory) {
  const int n = buffer_at(memory);
  free(memory_of[n]);
  memory_of[n] = memory_of[--buffers];
  bytes_of[n] = bytes_of[buffers];
}

static bool is_whole(const void *memory) {
  const int n = buffer_at(memory);
  for (size_t at = 0; at < GUARD; at++)
    if (memory_of[n][at] != CANARY || memory_of[n][GUARD + bytes_of[n] + at] != CANARY) return false;
  return true;
}

static void copy(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
static void *stream(void) { return &buffers; }
static void keep_to(const char *isa) { (void)isa; }
static const char *wait_for_all(void) { return wrong; }
static bool clock_runs;
static void start_clock(void) { clock_runs = true; }
static double stop_clock(void) {
  clock_runs = false;
  return 1;
}

static bool is_lost(void) { return false; }

static int flushes;
static void flush(void) {
  assert_false(clock_runs);
  flushes++;
}

static const attn_device device = {.size = sizeof device,
                                   .kind = "test",
                                   .count = count,
                                   .open = open_device,
                                   .allocate = allocate,
                                   .release = release,
                                   .is_whole = is_whole,
                                   .write = copy,
                                   .read = copy,
                                   .stream = stream,
                                   .keep_to = keep_to,
                                   .wait = wait_for_all,
                                   .start_clock = start_clock,
                                   .stop_clock = stop_clock,
                                   .is_lost = is_lost,
                                   .flush = flush};

/* ---- its kernel ---- */

static size_t workspace_size(const attn_call *call) { return (size_t)call->problem->batch * 256; }

typedef enum conduct { RIGHT, WRITES_BEYOND_OUTPUT, WRITES_BEYOND_WORKSPACE, CHANGES_KEY } conduct;
static conduct how;

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  float *output = call->tensors.output;
  assert_ptr_equal(call->stream, &buffers);
  buffer_at(p->key_lengths);
  buffer_at(call->tensors.query);
  for (int64_t n = 0; n < p->query_length * p->value_dim; n++) output[n] = (float)p->key_lengths[0];
  memset(call->workspace, 1, 128);
  if (how == WRITES_BEYOND_OUTPUT) output[p->query_length * p->value_dim] = 1;
  if (how == WRITES_BEYOND_WORKSPACE) ((char *)call->workspace)[256] = 1;
  if (how == CHANGES_KEY) *(float *)(uintptr_t)call->tensors.key = 77;
}

static const attn_variant kernel = {.name = "toy",
                                    .summary = "a kernel of a test",
                                    .features = ATTN_KEY_LENGTHS,
                                    .types = 1u << ATTN_FLOAT32,
                                    .place = ATTN_CUDA,
                                    .workspace_size = workspace_size,
                                    .run = run};
static const attn_variant *const kernels[] = {&kernel};
static const attn_table table = {ATTN_INTERFACE_VERSION, 1, kernels, NULL};

static bool run_it(run_outcome *outcome, inputs *in, char *why, size_t why_size) {
  workload w;
  if (!workload_parse_sound("full/B:1/H:1/D:8/T:16/lengths:5", &w, why, why_size) ||
      !inputs_create(in, &w, false, why, why_size))
    fail_msg("%s", why);
  const run_setup setup = {.variant = &kernel, .threads = 1};
  const run_watch watch = {.workspace = RUN_POISONED, .inputs_checksum = inputs_checksum(in)};
  return runner_run(&setup, in, &watch, outcome, why, why_size);
}

static int load(void **state) {
  (void)state;
  char why[128];
  return device_register(&table, &device, why, sizeof why) ? 0 : -1;
}

static void what_a_kernel_writes_there_comes_back(void **state) {
  (void)state;
  run_outcome outcome;
  inputs in;
  char why[256];
  allocations_left = ENOUGH, wrong = NULL, how = RIGHT;
  assert_true(run_it(&outcome, &in, why, sizeof why));
  assert_string_equal(outcome.violation, "");
  assert_int_equal(outcome.workspace_touched_bytes, 128);
  assert_int_equal(buffers, 0);
  for (int n = 0; n < 16 * 8; n++) assert_true(((const float *)in.tensors.output)[n] == 5);
  assert_string_equal(device_words(&device), "a device of a test");
  inputs_destroy(&in);
}

static void misconduct_on_a_device_is_said(void **state) {
  (void)state;
  static const char *const said[] = {[WRITES_BEYOND_OUTPUT] = "writes beyond the output",
                                     [WRITES_BEYOND_WORKSPACE] = "writes beyond its workspace",
                                     [CHANGES_KEY] = "changes its inputs"};
  for (how = WRITES_BEYOND_OUTPUT; how <= CHANGES_KEY; how++) {
    run_outcome outcome;
    inputs in;
    char why[256];
    allocations_left = ENOUGH, wrong = NULL;
    assert_true(run_it(&outcome, &in, why, sizeof why));
    if (!strstr(outcome.violation, said[how])) fail_msg("'%s', not '%s'", outcome.violation, said[how]);
    assert_false(outcome.device_failed);
    assert_int_equal(buffers, 0);
    inputs_destroy(&in);
  }
}

static void what_the_device_says_went_wrong_is_said(void **state) {
  (void)state;
  run_outcome outcome;
  inputs in;
  char why[256];
  allocations_left = ENOUGH, wrong = "an illegal address", how = RIGHT;
  assert_true(run_it(&outcome, &in, why, sizeof why));
  assert_string_equal(outcome.violation, "fails on its device: an illegal address");
  assert_true(outcome.device_failed);
  inputs_destroy(&in);
}

/* Lengths, queries, keys, values, output, workspace: whichever is the first that cannot be had. */
static void without_memory_nothing_runs_and_nothing_is_kept(void **state) {
  (void)state;
  enum { BUFFERS = 6 };
  for (int there = 0; there <= BUFFERS; there++) {
    run_outcome outcome;
    inputs in;
    char why[256] = "";
    allocations_left = there, wrong = NULL, how = RIGHT;
    assert_int_equal(run_it(&outcome, &in, why, sizeof why), there == BUFFERS);
    assert_string_equal(why, there == BUFFERS ? "" : "no memory on the device");
    assert_int_equal(outcome.ran, there == BUFFERS);
    assert_int_equal(buffers, 0);
    inputs_destroy(&in);
  }
}

static void caches_are_flushed_before_each_timed_run_that_is_cold(void **state) {
  (void)state;
  workload w;
  inputs in;
  char why[256];
  run_elapsed elapsed;
  allocations_left = ENOUGH, wrong = NULL, how = RIGHT;
  if (!workload_parse_sound("full/B:1/H:1/D:8/T:16/lengths:5", &w, why, sizeof why) ||
      !inputs_create(&in, &w, false, why, sizeof why))
    fail_msg("%s", why);
  char workspace[256] = {0};
  const run_setup setup = {.variant = &kernel, .threads = 1};
  for (int cold = 0; cold < 2; cold++) {
    run_batch batch = {.inputs = &in, .workspace = workspace, .iterations = 3, .seed = 1, .cold = cold};
    flushes = 0;
    assert_true(runner_time(&setup, &batch, &elapsed));
    assert_int_equal(flushes, cold ? 3 : 0);
    assert_true(elapsed.wall == 3); /* by the device's clock, which the flush is no part of */
    assert_true(runner_restore(&batch, 0));
  }
  inputs_destroy(&in);
}

static void a_device_of_another_version_is_refused(void **state) {
  (void)state;
  attn_device other = device;
  char why[128] = "";
  other.size = 8;
  assert_false(device_register(&table, &other, why, sizeof why));
  other.size = (size_t)(uintptr_t)device.kind; /* as one before it had a size begins */
  assert_false(device_register(&table, &other, why, sizeof why));
  assert_string_equal(why, "its device is of another version: build it again, with this version's device.o");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_kernel_writes_there_comes_back),
      cmocka_unit_test(misconduct_on_a_device_is_said),
      cmocka_unit_test(what_the_device_says_went_wrong_is_said),
      cmocka_unit_test(without_memory_nothing_runs_and_nothing_is_kept),
      cmocka_unit_test(caches_are_flushed_before_each_timed_run_that_is_cold),
      cmocka_unit_test(a_device_of_another_version_is_refused),
  };
  return cmocka_run_group_tests(tests, load, NULL);
}
