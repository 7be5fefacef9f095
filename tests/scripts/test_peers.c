/* What `make peers` does before it measures, and the suite's part of it. The packages of the peers need
 * not be there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "problem/workload.h"
#include "tests/shell.h"

#define PEERS ATTN_SOURCE_DIR "/scripts/peers/"

static void missing_packages_are_said_and_not_installed(void **state) {
  (void)state;
  struct stat found;
  int status = shell("SETUP=no " PEERS "setup.sh /tmp/attnbench-no-peers");
  assert_int_equal(status, 2);
  assert_non_null(strstr(shell_output, "torch=="));
  assert_non_null(strstr(shell_output, "setup.sh '/tmp/attnbench-no-peers'\n"));
  assert_int_equal(strchr(shell_output, '\n') - shell_output, strlen(shell_output) - 1);
  assert_int_not_equal(stat("/tmp/attnbench-no-peers", &found), 0);
}

static void a_peer_is_installed_with_what_it_needs_alone(void **state) {
  (void)state;
  static const struct {
    const char *peers, *needs, *not ;
  } cases[] = {{"torch", "numpy==", "onnx"},          {"torch", "torch==", "openvino=="},
               {"onednn", "torch==", "openvino=="},   {"onnxruntime", "onnx==", "torch=="},
               {"openvino", "openvino==", "torch=="}, {"torch openvino", "openvino==", "onnx"}};
  char command[512];
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    snprintf(command, sizeof command, "SETUP=no " PEERS "setup.sh /tmp/attnbench-no-peers %s",
             cases[n].peers);
    assert_int_equal(shell(command), 2);
    if (!strstr(shell_output, cases[n].needs) || strstr(shell_output, cases[n].not ) ||
        !strstr(shell_output, cases[n].peers))
      fail_msg("%s: %s", cases[n].peers, shell_output);
  }
  if (shell("python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'")) skip();
  assert_int_equal(shell("python3 -B " PEERS "options.py --names --peers torch,openvino"), 0);
  assert_string_equal(shell_output, "torch openvino\n");
}

static void arguments_that_make_no_sense_are_told_in_a_line(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
      {"--lengths 512,0", "'512,0' is not a list of whole numbers from 1"},
      {"--peers torch,nobody", "'nobody' is not one of torch, "},
      {"--masks diagonal", "'diagonal' is not one of full, causal"},
      {"--types f32,f64", "'f64' is not one of f32, bf16, f16"},
      {"--out /tmp", "'/tmp' is there already"},
      {"--threads 1,100000", "--threads 100000 is more than the "},
      {"--heads 8 --kv-heads 3", "--kv-heads 3 does not divide the 8 --heads"},
      {"--query-length 1024 --lengths 512", "--query-length 1024 is more than the shortest of --lengths"},
      {"--query-length 0", "'0' is not a whole number from 1"},
      {"--faster", "--faster"},
  };
  char command[512];
  if (shell("python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'")) skip();
  for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++) {
    snprintf(command, sizeof command, "python3 -B " PEERS "options.py %s", wrong[n][0]);
    assert_int_equal(shell(command), 2);
    assert_int_equal(strncmp(shell_output, "make peers: ", 12), 0);
    if (!strstr(shell_output, wrong[n][1])) fail_msg("%s: %s", wrong[n][0], shell_output);
    assert_int_equal(strchr(shell_output, '\n') - shell_output, strlen(shell_output) - 1);
  }
  assert_int_equal(shell("python3 -B " PEERS
                         "options.py --lengths 512,1024 --peers torch --types bf16,f16 --query-length 1 "
                         "--heads 8 --kv-heads 2"),
                   0);
}

/* ---- scripts/peers/suite.c, as Python sees it ---- */

typedef struct suite_verdict {
  bool passed;
  double bound_share, mean_square_share;
  char problem[256];
} suite_verdict;

typedef struct suite {
  void *(*open)(const char *text, char *why, size_t why_size);
  void (*close)(void *at);
  const attn_variant *(*variant)(const char *plugin, const char *name, char *why, size_t why_size);
  bool (*prepare)(void *at, const attn_variant *variant, int threads, char *why, size_t why_size);
  void (*run)(void *at, const attn_variant *variant, int threads);
  const void *(*output)(const void *at);
  bool (*hold)(void *at, const void *output, int64_t max_rows, suite_verdict *result, char *why,
               size_t why_size);
} suite;

static void load(suite *suite) {
  static const char *const names[] = {"suite_open", "suite_close",  "suite_variant", "suite_prepare",
                                      "suite_run",  "suite_output", "suite_hold"};
  void *object = dlopen(ATTN_BUILD_DIR "/peers/suite.so", RTLD_NOW | RTLD_LOCAL);
  if (!object) fail_msg("%s", dlerror());
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
    void *function = dlsym(object, names[n]);
    assert_non_null(function);
    memcpy((char *)suite + n * sizeof function, &function, sizeof function);
  }
}

/* Opens the suite and a problem in it, whose output naive has written. */
static void *solved_by_naive(suite *suite, const char *problem) {
  char why[256] = "";
  load(suite);
  void *at = suite->open(problem, why, sizeof why);
  const attn_variant *naive =
      suite->variant(ATTN_BUILD_DIR "/attnbench_variants.so", "naive", why, sizeof why);
  assert_non_null(at);
  assert_non_null(naive);
  assert_true(suite->prepare(at, naive, 1, why, sizeof why));
  suite->run(at, naive, 1);
  return at;
}

static void an_output_is_held_to_the_reference_of_its_own_inputs(void **state) {
  (void)state;
  enum { ELEMENTS = 2 * 4 * 40 * 8 };
  suite suite;
  suite_verdict verdict;
  char why[256] = "";
  float output[ELEMENTS];
  void *at = solved_by_naive(&suite, "causal/B:2/H:4/D:8/T:40/seed:3");
  memcpy(output, suite.output(at), sizeof output);
  assert_true(suite.hold(at, output, 0, &verdict, why, sizeof why));
  assert_true(verdict.passed && verdict.bound_share > 0 && verdict.bound_share < 1);
  output[ELEMENTS - 1] += 1e-3f;
  assert_true(suite.hold(at, output, 0, &verdict, why, sizeof why));
  assert_false(verdict.passed);
  assert_non_null(strstr(verdict.problem, "output[b 1, h 3, i 39, d 7]"));
  suite.close(at);
}

static void an_output_of_16_bits_is_held_to_the_bound_of_its_type(void **state) {
  (void)state;
  enum { ELEMENTS = 64 * 2 * 32 };
  suite suite;
  suite_verdict verdict;
  char why[256] = "";
  uint16_t output[ELEMENTS];
  void *at = solved_by_naive(&suite, "full/B:1/H:2/D:32/T:64/bf16/seed:3");
  memcpy(output, suite.output(at), sizeof output);
  assert_true(suite.hold(at, output, 0, &verdict, why, sizeof why));
  assert_true(verdict.passed && verdict.bound_share > 0 && verdict.mean_square_share > 0.3);
  /* Each a last place further from zero: below the bound of most, and seen in all. */
  for (int n = 0; n < ELEMENTS; n++) output[n]++;
  assert_true(suite.hold(at, output, 0, &verdict, why, sizeof why));
  assert_false(verdict.passed);
  assert_true(verdict.mean_square_share > 1);
  suite.close(at);
}

static void what_the_suite_cannot_do_it_says(void **state) {
  (void)state;
  suite suite;
  char why[256] = "";
  load(&suite);
  assert_null(suite.open("diagonal/T:8", why, sizeof why));
  assert_non_null(strstr(why, "diagonal"));
  assert_null(suite.variant(ATTN_BUILD_DIR "/attnbench_variants.so", "nobody", why, sizeof why));
  assert_non_null(strstr(why, "nobody"));
  assert_null(suite.variant("/nowhere.so", "fused", why, sizeof why));
  assert_non_null(strstr(why, "/nowhere.so"));
  void *at = suite.open("full/T:8/D:8", why, sizeof why);
  const attn_variant *linear =
      suite.variant(ATTN_BUILD_DIR "/attnbench_variants.so", "linear", why, sizeof why);
  assert_false(suite.prepare(at, linear, 1, why, sizeof why));
  assert_string_equal(why, "linear: computes linear attention");
  suite.close(at);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(missing_packages_are_said_and_not_installed),
      cmocka_unit_test(a_peer_is_installed_with_what_it_needs_alone),
      cmocka_unit_test(arguments_that_make_no_sense_are_told_in_a_line),
      cmocka_unit_test(an_output_is_held_to_the_reference_of_its_own_inputs),
      cmocka_unit_test(an_output_of_16_bits_is_held_to_the_bound_of_its_type),
      cmocka_unit_test(what_the_suite_cannot_do_it_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
