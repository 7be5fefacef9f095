/* Kernels for GPUs in the gate: what is made of a compiler's recorded words (tests/gate/code), and which of it is worse. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/gate.h"

static char folder[] = "/tmp/attnbench_code_XXXXXX";

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
  char command[64];
  (void)state;
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  return chdir("/") == 0 ? system(command) : -1;
}

/* ---- the listing ---- */

#define COPY "cp '" ATTN_SOURCE_DIR "'/tests/gate/code/linear.* . && chmod u+w linear.* && "
#define LIST " '" ATTN_SOURCE_DIR "'/scripts/cuda_code.sh linear.ptxas >listed 2>said"

static void a_kernel_is_a_line_of_what_the_compiler_says(void **state) {
  (void)state;
  assert_int_equal(system(COPY LIST), 0);
  assert_int_equal(
      system("[ $(wc -l <listed) = 6 ] && "
             "grep -qx 'sm_80 cuda_linear/solve_tiles registers 148 spilled 0 shared 0 instructions "
             "4264' listed && "
             "grep -qx 'sm_90a cuda_linear/sum_chunks registers 52 spilled 0 shared 34816 "
             "instructions 1168' listed"),
      0);
  assert_int_equal(
      system(COPY "sed -i '0,/ 0 bytes spill stores, 0 bytes/s// 4 bytes spill stores, 8 bytes/' "
                  "linear.ptxas && " LIST " && grep -q 'solve_tiles registers 148 spilled 12 ' listed"),
      0);
}

static void a_kernel_without_its_numbers_is_an_error(void **state) {
  (void)state;
  assert_int_not_equal(system(COPY "sed -i '/ [.]text[.].*add_up/d' linear.sections && " LIST), 0);
  assert_int_equal(system("grep -q '^no numbers for sm_.*add_up' said"), 0);
  assert_int_not_equal(system(COPY "sed -i '/Used 28 registers/d' linear.ptxas && " LIST), 0);
}

/* ---- what is worse ---- */

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

#define KERNEL "sm_90a cuda_fused/solve<64> "
static const char before[] =
    KERNEL "registers 168 spilled 0 shared 1024 instructions 1000\n"
           "sm_80 cuda_fused/solve<64> registers 255 spilled 0 shared 0 instructions 2000\n";

/* Findings of one line of the head, held to those of the base; their number, and the first one's words. */
static size_t find(const char *now, const gate_options *with, char words[768], char *why, size_t why_size) {
  gate_findings findings = {0};
  gate_options options = *with;
  options.head_code = "head";
  options.base_code = "base";
  FILE *out = fopen("said", "w");
  assert_non_null(out);
  write_text("head", now);
  write_text("base", before);
  why[0] = '\0';
  (void)gate_compare_code(&options, &findings, out, why, why_size);
  fclose(out);
  size_t count = 0;
  for (size_t n = 0; n < findings.count; n++) count += !findings.items[n].accepted;
  snprintf(words, 768, "%s", findings.count ? findings.items[0].text : "");
  if (findings.count) {
    assert_int_equal(findings.items[0].kind, GATE_DEVICE);
    assert_string_equal(findings.items[0].variant, "cuda_fused");
  }
  gate_findings_destroy(&findings);
  return count;
}

static void more_of_anything_is_found_and_two_percent_of_instructions_are_not(void **state) {
  (void)state;
  const struct {
    const char *now, *words; /* NULL: nothing is found */
  } table[] = {
      {KERNEL "registers 168 spilled 0 shared 1024 instructions 1000\n", NULL},
      {KERNEL "registers 160 spilled 0 shared 0 instructions 1020\n", NULL},
      {KERNEL "registers 169 spilled 0 shared 1024 instructions 1000\n",
       "sm_90a: 169 registers, 168 in the base"},
      {KERNEL "registers 168 spilled 4 shared 1024 instructions 1000\n",
       "sm_90a: 4 bytes spilled, 0 in the base"},
      {KERNEL "registers 168 spilled 0 shared 1040 instructions 1000\n",
       "sm_90a: 1040 bytes of shared memory, 1024 in the base"},
      {KERNEL "registers 168 spilled 0 shared 1024 instructions 1021\n",
       "sm_90a: 1021 instructions, 1000 in the base"},
      {"sm_80 cuda_fused/solve<64> registers 168 spilled 0 shared 0 instructions 2000\n", NULL},
      {"sm_90a cuda_fused/solve<128> registers 255 spilled 0 shared 9999 instructions 9999\n", NULL},
      {"sm_90a cuda_fused/solve<128> registers 255 spilled 8 shared 0 instructions 9999\n",
       "sm_90a: 8 bytes spilled; the base has no such kernel"},
  };
  for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
    char words[768] = "", why[256] = "";
    const size_t count = find(table[n].now, &(gate_options){0}, words, why, sizeof why);
    if (why[0] || count != (table[n].words != NULL) || (table[n].words && strcmp(words, table[n].words) != 0))
      fail_msg("%s: %zu findings, '%s' %s", table[n].now, count, words, why);
  }
}

static void a_commit_message_accepts_it(void **state) {
  (void)state;
  const char *accepted[] = {"device cuda_fused one register for the sinks"},
             *of_another[] = {"device cuda_decode x"};
  char words[768] = "", why[256] = "";
  static const char now[] = KERNEL "registers 169 spilled 0 shared 1024 instructions 1000\n";
  gate_options options = {.accepted = accepted, .accepted_count = 1};
  assert_int_equal(find(now, &options, words, why, sizeof why), 0);
  options.accepted = of_another;
  assert_int_equal(find(now, &options, words, why, sizeof why), 1);
}

static void a_list_that_is_none_is_refused(void **state) {
  (void)state;
  static const char *const damaged[] = {"nonsense\n", KERNEL "registers 168\n",
                                        KERNEL "registers 1 spilled 0 shared 0 instructions 1 more\n",
                                        "sm_90a fused registers 1 spilled 0 shared 0 instructions 1\n"};
  char words[768] = "", why[256] = "";
  for (size_t n = 0; n < sizeof damaged / sizeof *damaged; n++) {
    (void)find(damaged[n], &(gate_options){0}, words, why, sizeof why);
    if (!strstr(why, "is no line of scripts/cuda_code.sh")) fail_msg("%s: '%s'", damaged[n], why);
  }
  gate_findings findings = {0};
  const gate_options options = {.head_code = "nowhere", .base_code = "base"};
  assert_false(gate_compare_code(&options, &findings, stdout, why, sizeof why));
  assert_string_equal(why, "nowhere cannot be read: No such file or directory");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_kernel_is_a_line_of_what_the_compiler_says),
      cmocka_unit_test(a_kernel_without_its_numbers_is_an_error),
      cmocka_unit_test(more_of_anything_is_found_and_two_percent_of_instructions_are_not),
      cmocka_unit_test(a_commit_message_accepts_it),
      cmocka_unit_test(a_list_that_is_none_is_refused),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
