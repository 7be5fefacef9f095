/* .npy files: what is read, and the sentence about each way in which a file is not one. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "problem/npy.h"

static char path[] = "/tmp/attnbench-test-npy-XXXXXX";

static int make_file(void **state) {
  (void)state;
  const int file = mkstemp(path);
  return file < 0 ? -1 : close(file);
}

static int remove_file(void **state) {
  (void)state;
  return unlink(path);
}

/* A file of this version, header and so many bytes of data, 1, 2, 3 and so on. */
static void write_file(int version, const char *header, size_t data_bytes) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  const size_t length = strlen(header);
  fwrite("\x93NUMPY", 6, 1, file);
  fputc(version, file);
  fputc(0, file);
  for (int n = 0; n < (version == 1 ? 2 : 4); n++) fputc((int)(length >> 8 * n & 0xff), file);
  fwrite(header, length, 1, file);
  for (size_t n = 0; n < data_bytes; n++) fputc((int)(n + 1), file);
  assert_int_equal(fclose(file), 0);
}

#define HEADER(descr, order, shape)                                                                          \
  "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }   \n"

static void what_is_written_is_read_again(void **state) {
  (void)state;
  const int64_t shapes[][4] = {{2, 3, 4, 5}, {7}, {0, 3}, {1, 1, 1, 1}};
  const int axes[] = {4, 1, 2, 4};
  for (int n = 0; n < 4; n++) {
    char why[256] = "", shape[NPY_SHAPE_BYTES], again[NPY_SHAPE_BYTES];
    npy_array array;
    size_t bytes = 2;
    FILE *file = fopen(path, "wb");
    assert_true(npy_write_header(file, "<f2", axes[n], shapes[n]));
    assert_int_equal(ftell(file) % 64, 0);
    for (int axis = 0; axis < axes[n]; axis++) bytes *= (size_t)shapes[n][axis];
    for (size_t byte = 0; byte < bytes; byte++) fputc((int)byte, file);
    assert_int_equal(fclose(file), 0);
    if (!npy_read(path, &array, why, sizeof why)) fail_msg("%s", why);
    assert_string_equal(array.descr, "<f2");
    assert_int_equal(array.bytes, bytes);
    npy_name_shape(axes[n], shapes[n], shape);
    npy_name_shape(array.axes, array.shape, again);
    assert_string_equal(shape, again);
    for (size_t byte = 0; byte < bytes; byte++)
      assert_int_equal(((unsigned char *)array.data)[byte], byte & 0xff);
    npy_destroy(&array);
  }
}

static void every_version_and_spelling_is_read(void **state) {
  (void)state;
  static const char *const headers[] = {
      HEADER("<f4", "False", "(2, 3)"),
      "{\"shape\": (2, 3), \"descr\": \"<f4\", \"fortran_order\": False}",
      "{'descr':'<f4','fortran_order':False,'shape':(2,3,)}\n",
  };
  for (int version = 1; version <= 3; version++)
    for (size_t n = 0; n < sizeof headers / sizeof *headers; n++) {
      char why[256] = "";
      npy_array array;
      write_file(version, headers[n], 24);
      if (!npy_read(path, &array, why, sizeof why)) fail_msg("%s: %s", headers[n], why);
      assert_int_equal(array.axes, 2);
      assert_int_equal(array.shape[0] * 10 + array.shape[1], 23);
      npy_destroy(&array);
    }
}

static void a_number_has_no_axis(void **state) {
  (void)state;
  char why[256] = "";
  npy_array array;
  write_file(1, HEADER("<f8", "False", "()"), 8);
  assert_true(npy_read(path, &array, why, sizeof why));
  assert_int_equal(array.axes, 0);
  npy_destroy(&array);
}

static void expect_refusal(const char *what, const char *words) {
  char why[512] = "";
  npy_array array;
  if (npy_read(path, &array, why, sizeof why)) fail_msg("%s is read", what);
  if (!strstr(why, words) || !strstr(why, path) || strchr(why, '\n'))
    fail_msg("%s: '%s' is not in one sentence about the file: '%s'", what, words, why);
  assert_null(array.data);
}

static void each_unsound_header_gets_a_sentence(void **state) {
  (void)state;
  static const struct {
    const char *header;
    size_t bytes;
    const char *words;
  } cases[] = {
      {HEADER("<f4", "True", "(2, 3)"), 24, "Fortran order"},
      {HEADER(">f4", "False", "(2, 3)"), 24, "big-endian"},
      {HEADER("<f4", "False", "(2, 3)"), 23, "cut off"},
      {HEADER("<f4", "False", "(2, 3)"), 0, "cut off"},
      {HEADER("<f4", "False", "(2, 3)"), 25, "goes on behind them"},
      {HEADER("<f4", "False", "(4611686018427387904, 16)"), 24, "too large for any memory"},
      {HEADER("<f4", "False", "(99999999999999999999, 1)"), 24, "too large for any memory"},
      {HEADER("<f4", "False", "(1099511627776, 4)"), 24, "cut off"},
      {HEADER("<f4", "False", "(-2, 3)"), 24, "not that of a .npy file"},
      {HEADER("<f4", "False", "(2)"), 8, "not that of a .npy file"},
      {HEADER("<f4", "False", "(2 3)"), 24, "not that of a .npy file"},
      {HEADER("<f4", "False", "[2, 3]"), 24, "not that of a .npy file"},
      {HEADER("<f4", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 6)"), 24, "more than 8 axes"},
      {HEADER("<f4", "false", "(2, 3)"), 24, "not that of a .npy file"},
      {HEADER("|O", "False", "(2, 3)"), 24, "has elements '|O'"},
      {HEADER("<U8", "False", "(2, 3)"), 24, "has elements '<U8'"},
      {HEADER("<c16", "False", "(2, 3)"), 96, "has elements '<c16'"},
      {HEADER("", "False", "(2, 3)"), 24, "has elements ''"},
      {HEADER("f", "False", "(2, 3)"), 24, "has elements 'f'"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}", 24, "records"},
      {"{'descr': '<f4', 'fortran_order': False}", 24, "not that of a .npy file"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 24,
       "not that of a .npy file"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", 24, "not that of a .npy file"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} and more", 24, "not that of a .npy file"},
      {"{'descr': '<f4", 24, "not that of a .npy file"},
      {"", 24, "not that of a .npy file"},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    write_file(1, cases[n].header, cases[n].bytes);
    expect_refusal(cases[n].header, cases[n].words);
  }
}

static void what_is_no_such_file_gets_a_sentence(void **state) {
  (void)state;
  FILE *file = fopen(path, "wb");
  assert_int_equal(fclose(file), 0);
  expect_refusal("an empty file", "cut off, or no .npy file");
  file = fopen(path, "wb");
  fputs("q,k,v\n1,2,3\n", file);
  assert_int_equal(fclose(file), 0);
  expect_refusal("a table", "is no .npy file");
  write_file(4, HEADER("<f4", "False", "(2, 3)"), 24);
  expect_refusal("version 4", "version 4.0");
  file = fopen(path, "wb");
  fwrite("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, 1, file);
  assert_int_equal(fclose(file), 0);
  expect_refusal("a header of 4 GiB", "no array needs more");
  file = fopen(path, "wb");
  fwrite("\x93NUMPY\x01\x00\x40\x00{'descr'", 18, 1, file);
  assert_int_equal(fclose(file), 0);
  expect_refusal("half a header", "ends within its header");
}

static void a_folder_is_no_file(void **state) {
  (void)state;
  char why[256];
  npy_array array;
  assert_false(npy_read("/tmp", &array, why, sizeof why));
  assert_string_equal(why, "/tmp is no file: give one that numpy.save wrote");
  assert_false(npy_read("/tmp/attnbench-none.npy", &array, why, sizeof why));
  assert_string_equal(why, "/tmp/attnbench-none.npy: No such file or directory");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read_again),
      cmocka_unit_test(every_version_and_spelling_is_read),
      cmocka_unit_test(a_number_has_no_axis),
      cmocka_unit_test(each_unsound_header_gets_a_sentence),
      cmocka_unit_test(what_is_no_such_file_gets_a_sentence),
      cmocka_unit_test(a_folder_is_no_file),
  };
  return cmocka_run_group_tests(tests, make_file, remove_file);
}
