/* Guarded buffers: faults beyond the ends, canaries in the slack, exact counts of touched pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

static guarded create(size_t bytes, size_t alignment) {
  guarded buffer;
  char why[256] = "";
  if (!guarded_create(&buffer, bytes, alignment, why, sizeof why)) fail_msg("%s", why);
  return buffer;
}

/* Whether reading this byte ends a process. */
static bool faults(const volatile unsigned char *byte) {
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would write a report */
    signal(SIGBUS, SIG_DFL);
    (void)*byte;
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status);
}

static void the_byte_behind_a_buffer_faults(void **state) {
  (void)state;
  const size_t sizes[] = {0, 4, 4096, 10000, 65536};
  for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
    guarded buffer = create(sizes[n], 4);
    assert_true(faults(buffer.data + buffer.bytes));
    assert_true(faults(buffer.mapping));
    if (sizes[n] > 0) assert_false(faults(buffer.data + buffer.bytes - 1));
    guarded_destroy(&buffer);
  }
}

/* Of two huge pages no part is of a third; and nothing is there before and behind it. */
static void a_large_buffer_ends_where_a_huge_page_does(void **state) {
  (void)state;
  const size_t huge = (size_t)2 << 20;
  for (size_t bytes = huge; bytes <= 2 * huge; bytes += huge / 2) {
    guarded buffer = create(bytes, 64);
    assert_int_equal((uintptr_t)(buffer.data + bytes) % huge, 0);
    memset(buffer.data, 1, bytes);
    assert_true(guarded_intact(&buffer));
    guarded_destroy(&buffer);
  }
}

static void a_write_into_the_slack_breaks_a_canary(void **state) {
  (void)state;
  guarded buffer = create(100, 64);
  assert_int_equal((uintptr_t)buffer.data % 64, 0);
  memset(buffer.data, 1, 100);
  assert_true(guarded_intact(&buffer));
  buffer.data[100]++;
  assert_false(guarded_intact(&buffer));
  buffer.data[100]--;
  buffer.data[-1]++;
  assert_false(guarded_intact(&buffer));
  guarded_reset(&buffer);
  assert_true(guarded_intact(&buffer));
  guarded_destroy(&buffer);
}

static void touched_pages_are_counted_exactly(void **state) {
  (void)state;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  guarded buffer = create(3000 * page, 64);
  guarded_reset(&buffer);
  assert_int_equal(guarded_touched_bytes(&buffer), 0);
  buffer.data[5 * page] = 1;
  buffer.data[2000 * page + 7] = 1;
  assert_int_equal(guarded_touched_bytes(&buffer), 2 * page);
  memset(buffer.data, 1, buffer.bytes);
  assert_int_equal(guarded_touched_bytes(&buffer), buffer.bytes);
  guarded_reset(&buffer);
  assert_int_equal(guarded_touched_bytes(&buffer), 0);
  assert_int_equal(buffer.data[5 * page], 0);
  guarded_destroy(&buffer);
}

static void pages_with_canaries_count_by_their_bytes(void **state) {
  (void)state;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  guarded buffer = create(2 * page + 100, 64);
  assert_int_equal(guarded_touched_bytes(&buffer), 0);
  buffer.data[0] = 1;
  assert_int_equal(guarded_touched_bytes(&buffer), 128); /* 100 bytes and 28 of slack end the mapping */
  guarded_destroy(&buffer);
  buffer = create(0, 64);
  assert_int_equal(guarded_touched_bytes(&buffer), 0);
  assert_true(guarded_intact(&buffer));
  guarded_destroy(&buffer);
}

static void poison_fills_every_byte_with_signalling_nans(void **state) {
  (void)state;
  const size_t sizes[] = {0, 2, 4, 6, 42, 4094, 4096, 4098, 8192, 70002};
  const uint32_t pattern = 0x7fa57fa5;
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    guarded buffer = create(sizes[n], 2);
    guarded_poison(&buffer);
    for (size_t at = 0; at < sizes[n]; at += 4)
      assert_memory_equal(buffer.data + at, &pattern, sizes[n] - at < 4 ? sizes[n] - at : 4);
    assert_true(guarded_intact(&buffer));
    guarded_destroy(&buffer);
  }
}

static void renewed_buffers_are_guarded_where_they_end_and_begin(void **state) {
  (void)state;
  const size_t sizes[] = {40000, 100, 0, 8192, 39000, 40000, 200000, 5};
  guarded buffer = {0};
  char why[256] = "";
  for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
    unsigned char *const behind = buffer.mapping + buffer.mapping_bytes;
    const bool fits = n > 0 && sizes[n] <= 40000;
    assert_true(guarded_renew(&buffer, sizes[n], 64, why, sizeof why));
    if (fits) assert_ptr_equal(buffer.mapping + buffer.mapping_bytes, behind);
    assert_int_equal((uintptr_t)buffer.data % 64, 0);
    assert_true(faults(buffer.mapping));
    if (sizes[n] > 0) assert_false(faults(buffer.mapping + 4096));
    assert_true(faults(buffer.data + (sizes[n] + 63) / 64 * 64));
    memset(buffer.data, 1, sizes[n]);
    assert_true(guarded_intact(&buffer));
    if (sizes[n] % 64 == 0) continue;
    buffer.data[sizes[n]]++;
    assert_false(guarded_intact(&buffer));
  }
  guarded_destroy(&buffer);
}

static void a_buffer_that_is_put_away_faults_and_comes_back(void **state) {
  (void)state;
  const size_t sizes[] = {0, 1, 4096, 10000, (size_t)5 << 20};
  for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
    guarded buffer = create(sizes[n], 64), same = create(sizes[n], 64);
    for (size_t at = 0; at < sizes[n]; at++) same.data[at] = buffer.data[at] = (unsigned char)(at % 251);
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(guarded_put_away(&buffer, file));
    if (sizes[n] > 0) assert_true(faults(buffer.data));
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    assert_true(guarded_bring_back(&buffer, file));
    assert_memory_equal(buffer.data, same.data, sizes[n]);
    assert_true(guarded_intact(&buffer));
    assert_true(faults(buffer.mapping));
    assert_int_equal(fclose(file), 0);
    guarded_destroy(&buffer);
    guarded_destroy(&same);
  }
}

static void memory_that_is_not_there_is_refused_in_words(void **state) {
  (void)state;
  guarded buffer;
  char why[256] = "";
  assert_false(guarded_create(&buffer, memory_available_bytes() + ((size_t)1 << 32), 64, why, sizeof why));
  assert_non_null(strstr(why, "are available"));
  assert_null(buffer.data);
  assert_false(guarded_create(&buffer, SIZE_MAX - 5, 64, why, sizeof why));
  guarded_destroy(&buffer);
}

static void the_machine_has_some_memory(void **state) {
  (void)state;
  assert_true(memory_available_bytes() > 1 << 20);
  assert_true(memory_peak_bytes() > 1 << 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_byte_behind_a_buffer_faults),
      cmocka_unit_test(a_large_buffer_ends_where_a_huge_page_does),
      cmocka_unit_test(a_write_into_the_slack_breaks_a_canary),
      cmocka_unit_test(touched_pages_are_counted_exactly),
      cmocka_unit_test(pages_with_canaries_count_by_their_bytes),
      cmocka_unit_test(poison_fills_every_byte_with_signalling_nans),
      cmocka_unit_test(renewed_buffers_are_guarded_where_they_end_and_begin),
      cmocka_unit_test(a_buffer_that_is_put_away_faults_and_comes_back),
      cmocka_unit_test(memory_that_is_not_there_is_refused_in_words),
      cmocka_unit_test(the_machine_has_some_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
