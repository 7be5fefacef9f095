/* What a run takes is found, to the byte where it can be, wherever it comes from: on planted variants that
 * each take memory in one way, and on our own, which take none behind the interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "run/footprint.h"
#include "run/plugins.h"
#include "run/runner.h"

enum { MEBIBYTE = 1 << 20, THREADS = 3 };

static variant_list planted, own;

static bool measure(const variant_list *list, const char *name, int threads, footprint *footprint, char *why,
                    size_t why_size) {
  if (!footprint_is_measured()) skip();
  bench_point point = {.variant = variant_list_find(list, name), .workload = workload_default()};
  if (!point.variant) fail_msg("there is no variant '%s'", name);
  point.workload.query_length = point.workload.key_length = 300;
  footprint_source source;
  if (!footprint_begin(&source, &point, threads, NULL, why, why_size)) return false;
  const bool measured = footprint_measure(&source, 0, footprint, why, why_size);
  footprint_end(&source);
  return measured;
}

static footprint footprint_with(const variant_list *list, const char *name, int threads) {
  footprint footprint;
  char why[256];
  if (!measure(list, name, threads, &footprint, why, sizeof why)) fail_msg("%s: %s", name, why);
  return footprint;
}

static void assert_between(size_t value, size_t low, size_t high) {
  if (value < low || value > high) fail_msg("%zu is not %zu to %zu", value, low, high);
}

static void the_workspace_counts_where_it_is_written(void **state) {
  (void)state;
  const footprint some = footprint_with(&planted, "little", 1);
  assert_int_equal(some.workspace_touched_bytes, 8000);
  assert_int_equal(some.hidden_bytes, 0);
  assert_int_equal(footprint_with(&planted, "none", 1).workspace_touched_bytes, 0);
}

/* As a sweep does, before it forks what measures: with a team of OpenMP's in that process, the others would never get one. */
static void memory_is_measured_after_the_pairs_of_a_pattern_were_counted(void **state) {
  (void)state;
  char why[256];
  workload sparse;
  assert_true(workload_parse("causal/T:3000/see:strided:64", &sparse, why, sizeof why));
  assert_true(workload_visible_pairs(&sparse) > 0);
  alarm(30);
  assert_int_equal(footprint_with(&planted, "little", THREADS).workspace_touched_bytes, 8000);
  alarm(0);
}

static void writing_what_was_there_is_writing(void **state) {
  (void)state;
  assert_int_equal(footprint_with(&planted, "pattern", 1).workspace_touched_bytes, 2000);
}

/* Return addresses and saved registers come on top of the frame. */
static void a_stack_frame_counts_to_its_end(void **state) {
  (void)state;
  assert_between(footprint_with(&planted, "frame", 1).stack_bytes, 300000, 300000 + 256);
  assert_int_equal(footprint_with(&planted, "none", 1).stack_bytes, 0);
}

static void the_stacks_of_the_team_count_too(void **state) {
  (void)state;
  assert_between(footprint_with(&planted, "frames", THREADS).stack_bytes, (size_t)THREADS * 100000,
                 (size_t)THREADS * (100000 + 512));
}

/* The compiler's own share of an object is some words. */
static void static_data_are_those_of_the_object(void **state) {
  (void)state;
  const size_t one = footprint_with(&planted, "none", 1).static_bytes;
  const size_t shared = 10000 + 5000 + 300000, of_thread = 1000 + 300000;
  assert_between(one, shared + of_thread, shared + of_thread + 512);
  assert_between(footprint_with(&planted, "none", THREADS).static_bytes, one + (THREADS - 1) * of_thread,
                 one + (THREADS - 1) * (of_thread + 64));
}

/* But for some pages of the runtimes, which the mapping beside them lets count. */
static void static_data_that_are_used_hide_nothing(void **state) {
  (void)state;
  assert_between(footprint_with(&planted, "statics", 1).hidden_bytes, 0, (size_t)4 * 4096);
  assert_between(footprint_with(&planted, "statics", THREADS).hidden_bytes, 0, (size_t)8 * 4096);
}

static void no_mapping_is_hidden_from_the_kernel(void **state) {
  (void)state;
  assert_int_equal(footprint_with(&planted, "none", THREADS).hidden_bytes, 0);
  assert_int_equal(footprint_with(&planted, "keeps", 1).hidden_bytes, MEBIBYTE);
  assert_int_equal(footprint_with(&planted, "returns", 1).hidden_bytes, MEBIBYTE);
  assert_between(footprint_with(&planted, "sparse", 1).hidden_bytes, (size_t)3 * 4096, MEBIBYTE / 4);
}

static void calls_of_the_heap_are_counted_and_named(void **state) {
  (void)state;
  const footprint taken = footprint_with(&planted, "mallocs", 1);
  assert_int_equal(taken.heap_calls, 1);
  assert_string_equal(taken.heap_function, "malloc");
  assert_int_equal(footprint_with(&planted, "none", 1).heap_calls, 0);
}

static void a_variant_that_ends_the_process_is_said(void **state) {
  (void)state;
  footprint footprint;
  char why[256];
  assert_false(measure(&planted, "crashes", 1, &footprint, why, sizeof why));
  assert_string_equal(why, "its memory cannot be measured: signal 9 ended the process that ran it");
  assert_false(measure(&planted, "leaves", 1, &footprint, why, sizeof why));
  assert_string_equal(why, "its memory cannot be measured: the process that ran it ended early");
}

/* OpenBLAS, behind blas, keeps buffers of its own. */
static void our_variants_take_nothing_behind_the_interface(void **state) {
  (void)state;
  for (size_t n = 0; n < own.count; n++) {
    const char *name = own.variants[n]->name;
    const bench_point point = {.variant = own.variants[n], .workload = workload_default()};
    const attn_problem problem = workload_problem(&point.workload);
    if (runner_refusal(point.variant, &problem)) continue;
    const footprint taken = footprint_with(&own, name, 2);
    if (taken.heap_calls > 0) fail_msg("%s calls %s", name, taken.heap_function);
    if (strcmp(name, "blas") != 0 && taken.hidden_bytes > 0)
      fail_msg("%s hides %zu bytes", name, taken.hidden_bytes);
    if (taken.stack_bytes == 0 || taken.stack_bytes > 64 << 10)
      fail_msg("%s takes %zu bytes of stack", name, taken.stack_bytes);
  }
}

static int load(void **state) {
  (void)state;
  char why[512];
  return variant_list_add(&planted, ATTN_BUILD_DIR "/tests/plugins/takes_memory.so", why, sizeof why) &&
                 variant_list_add(&own, ATTN_BUILD_DIR "/attnbench_variants.so", why, sizeof why)
             ? 0
             : -1;
}

static int unload(void **state) {
  (void)state;
  variant_list_destroy(&planted);
  variant_list_destroy(&own);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_workspace_counts_where_it_is_written),
      cmocka_unit_test(writing_what_was_there_is_writing),
      cmocka_unit_test(memory_is_measured_after_the_pairs_of_a_pattern_were_counted),
      cmocka_unit_test(a_stack_frame_counts_to_its_end),
      cmocka_unit_test(the_stacks_of_the_team_count_too),
      cmocka_unit_test(static_data_are_those_of_the_object),
      cmocka_unit_test(static_data_that_are_used_hide_nothing),
      cmocka_unit_test(no_mapping_is_hidden_from_the_kernel),
      cmocka_unit_test(calls_of_the_heap_are_counted_and_named),
      cmocka_unit_test(a_variant_that_ends_the_process_is_said),
      cmocka_unit_test(our_variants_take_nothing_behind_the_interface),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
