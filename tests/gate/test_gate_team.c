/* What ranks of a team send, held to the base's: asked of two objects, without MPI being started. Where it is not installed, that
 * is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "gate/gate.h"
#include "tests/shell.h"

#define FOLDER ATTN_BUILD_DIR "/tests/gate_team"
#define OURS ATTN_BUILD_DIR "/attnbench_mpi.so"
static const char base[] = FOLDER "/sends_8.so", same[] = FOLDER "/sends_8_too.so",
                  more[] = FOLDER "/sends_12.so";

/* The same variant, which is said to send so many bytes. */
#define BUILD(bytes, name)                                                                                   \
  "OMPI_CC='" ATTN_CC "' MPICH_CC='" ATTN_CC "' mpicc -w -fPIC -shared -DSENT_BYTES=" bytes                  \
  " -I '" ATTN_SOURCE_DIR "/variants' -o '" FOLDER "/" name "' '" ATTN_SOURCE_DIR                            \
  "/tests/plugins/team/forgets.c' '" ATTN_BUILD_DIR "/team/runtime.o' -lm && "

static bool is_built;

static int build(void **state) {
  (void)state;
  is_built = shell("command -v mpicc && test -f " OURS " && mkdir -p '" FOLDER "' && " BUILD(
                 "8", "sends_8.so") BUILD("8", "sends_8_too.so") BUILD("12", "sends_12.so") "true") == 0;
  return 0;
}

static void need_mpi(void) {
  if (is_built) return;
  print_message("MPI is not installed, or attnbench_mpi.so was not built\n");
  skip();
}

/* How many findings, and the first of them. */
static size_t find(const char *head, const char *with, gate_finding *first) {
  gate_findings findings = {0};
  char why[256] = "";
  FILE *out = tmpfile();
  assert_non_null(out);
  const gate_options options = {.head_team = head, .base_team = with};
  if (!gate_compare_team(&options, &findings, out, why, sizeof why)) fail_msg("%s", why);
  fclose(out);
  const size_t count = findings.count;
  if (count) *first = findings.items[0];
  gate_findings_destroy(&findings);
  return count;
}

static void what_sends_as_much_or_less_is_not_found(void **state) {
  (void)state;
  gate_finding first = {.kind = GATE_WRONG};
  need_mpi();
  assert_int_equal(find(same, base, &first), 0);
  assert_int_equal(find(base, more, &first), 0);
  assert_int_equal(find(OURS, OURS, &first), 0);
}

static void a_rank_that_sends_more_is_found_with_both_numbers(void **state) {
  (void)state;
  gate_finding first = {.kind = GATE_WRONG};
  need_mpi();
  assert_true(find(more, base, &first) >= 6); /* each size of a team */
  assert_int_equal(first.kind, GATE_SENT);
  assert_string_equal(gate_kind_name(first.kind), "sent");
  assert_string_equal(first.variant, "forgets_on_rank_2");
  assert_string_equal(first.text, "a rank sends 12 bytes, 8 in the base");
  assert_non_null(strstr(first.name, "/ranks:2"));
}

static void a_variant_that_is_gone_is_found(void **state) {
  (void)state;
  gate_finding first = {.kind = GATE_WRONG};
  need_mpi();
  assert_int_equal(find(OURS, base, &first), 1);
  assert_int_equal(first.kind, GATE_VARIANTS);
}

static void what_has_no_team_is_one_sentence(void **state) {
  (void)state;
  gate_findings findings = {0};
  char why[512] = "";
  need_mpi();
  const gate_options options = {.head_team = ATTN_BUILD_DIR "/attnbench_variants.so", .base_team = base};
  assert_false(gate_compare_team(&options, &findings, stdout, why, sizeof why));
  assert_non_null(strstr(why, "has no team of this version"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_sends_as_much_or_less_is_not_found),
      cmocka_unit_test(a_rank_that_sends_more_is_found_with_both_numbers),
      cmocka_unit_test(a_variant_that_is_gone_is_found),
      cmocka_unit_test(what_has_no_team_is_one_sentence),
  };
  return cmocka_run_group_tests(tests, build, NULL);
}
