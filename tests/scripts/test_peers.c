/* What `make peers` does before it measures. The packages of the peers need not be there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
      {"--query-length 1 --masks strided", "patterns are measured with as many queries as keys"},
      {"--query-length 0", "'0' is not a whole number from 1"},
      {"--device gpu", "'gpu' is not a device such as cuda:0"},
      {"--peers torch_flash", "--peers torch_flash is measured with --device cuda:0"},
      {"--device cuda:0 --peers openvino", "--peers openvino is measured on the host"},
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(missing_packages_are_said_and_not_installed),
      cmocka_unit_test(a_peer_is_installed_with_what_it_needs_alone),
      cmocka_unit_test(arguments_that_make_no_sense_are_told_in_a_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
