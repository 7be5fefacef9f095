/* Calls for memory inside run are counted, whichever function, object or thread they come from. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "run/plugins.h"
#include "run/runner.h"

static variant_list list;
static inputs small;

static heap_calls calls_of(const char *name, int threads) {
  const attn_variant *variant = variant_list_find(&list, name);
  if (!variant) fail_msg("the plugin has no variant '%s'", name);
  const run_setup setup = {.variant = variant, .threads = threads};
  const run_watch watch = {
      .workspace = RUN_POISONED, .side_effects = true, .inputs_checksum = inputs_checksum(&small)};
  run_outcome outcome;
  char why[256];
  if (!runner_run(&setup, &small, &watch, &outcome, why, sizeof why)) fail_msg("%s: %s", name, why);
  return outcome.heap;
}

static void each_call_inside_run_is_counted(void **state) {
  (void)state;
  if (!heap_calls_are_seen()) skip();
  static const struct {
    const char *name, *first;
    size_t count;
  } cases[] = {
      {"heap_none", NULL, 0},       {"heap_malloc", "malloc", 1}, {"heap_calloc", "calloc", 2},
      {"heap_mmap", "mmap", 2},     {"heap_brk", "sbrk", 2},      {"heap_aligned", "posix_memalign", 3},
      {"heap_strdup", "malloc", 1}, {"heap_pages", "valloc", 2},  {"heap_array", "reallocarray", 1},
      {"heap_mapped", "mmap", 3},   {"heap_print", "malloc", 2},  {"heap_second_names", "__libc_malloc", 7}};
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    const heap_calls calls = calls_of(cases[n].name, 1);
    if (calls.count != cases[n].count)
      fail_msg("%s: %zu calls instead of %zu", cases[n].name, calls.count, cases[n].count);
    if (!cases[n].first)
      assert_null(calls.first);
    else
      assert_string_equal(calls.first, cases[n].first);
  }
}

static void calls_on_every_thread_are_counted(void **state) {
  (void)state;
  if (!heap_calls_are_seen()) skip();
  for (int threads = 1; threads <= 4; threads++)
    assert_int_equal(calls_of("heap_workers", threads).count, threads);
}

static void one_call_in_the_first_run_is_one_too_many(void **state) {
  (void)state;
  if (!heap_calls_are_seen()) skip();
  assert_int_equal(calls_of("heap_once", 1).count, 1);
  assert_int_equal(calls_of("heap_once", 1).count, 0);
  assert_int_equal(calls_of("heap_strdup_once", 1).count, 1);
}

/* It starts threads and allocates teams, on the first call and whenever their number changes. */
static void the_openmp_runtime_is_not_the_variant(void **state) {
  (void)state;
  assert_int_equal(calls_of("heap_openmp", 5).count, 0);
}

static void calls_outside_of_run_are_not_counted(void **state) {
  (void)state;
  assert_int_equal(calls_of("heap_none", 1).count, 0);
  void *volatile memory = malloc(10);
  free(memory);
  assert_int_equal(calls_of("heap_none", 1).count, 0);
}

static void the_functions_still_do_what_the_standard_says(void **state) {
  (void)state;
  if (!heap_calls_are_seen()) skip();
  void *memory = NULL;
  assert_int_equal(posix_memalign(&memory, 4096, 10), 0);
  assert_int_equal((uintptr_t)memory % 4096, 0);
  free(memory);
  assert_int_equal(posix_memalign(&memory, 24, 10), EINVAL);
  unsigned char *bytes = calloc(100, 1);
  for (size_t n = 0; n < 100; n++) assert_int_equal(bytes[n], 0);
  memset(bytes, 7, 100);
  bytes = realloc(bytes, 100000);
  assert_int_equal(bytes[99], 7);
  free(bytes);
  const volatile size_t huge = SIZE_MAX / 2;
  void *volatile none = malloc(huge);
  assert_null(none);
  unsigned char *pages = pvalloc(1);
  assert_true((uintptr_t)pages % 4096 == 0 && malloc_usable_size(pages) >= 4096);
  free(pages);
  pages = valloc(100);
  assert_int_equal((uintptr_t)pages % 4096, 0);
  free(pages);
  assert_null(reallocarray(NULL, huge, 4));
  unsigned char *mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mapped[4095] = 9;
  mapped = mremap(mapped, 8192, 4096, 0);
  assert_int_equal(mapped[4095], 9);
  void *target = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_equal(mremap(mapped, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, target), target);
  assert_int_equal(((unsigned char *)target)[4095], 9);
  assert_int_equal(munmap(target, 4096), 0);
}

static int load_plugin(void **state) {
  (void)state;
  char why[512];
  workload w = workload_default();
  w.query_length = w.key_length = 8;
  return variant_list_add(&list, ATTN_BUILD_DIR "/tests/plugins/calls_heap.so", why, sizeof why) &&
                 inputs_create(&small, &w, false, why, sizeof why)
             ? 0
             : -1;
}

static int unload(void **state) {
  (void)state;
  inputs_destroy(&small);
  variant_list_destroy(&list);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_call_inside_run_is_counted),
      cmocka_unit_test(calls_on_every_thread_are_counted),
      cmocka_unit_test(one_call_in_the_first_run_is_one_too_many),
      cmocka_unit_test(the_openmp_runtime_is_not_the_variant),
      cmocka_unit_test(calls_outside_of_run_are_not_counted),
      cmocka_unit_test(the_functions_still_do_what_the_standard_says),
  };
  return cmocka_run_group_tests(tests, load_plugin, unload);
}
