/* README.md shows a kernel of one's own in a few lines of C and two commands. Here that very text is
 * taken out of it, built and run, in a folder that looks like the repository. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/attnbench-test-readme-XXXXXX";
static char readme[262144];

/* Writes the first block that opens with the fence after `from` to a file; returns what follows it. */
static const char *extract_block(const char *from, const char *fence, const char *name) {
  const char *begin = strstr(from, fence);
  if (!begin) {
    fail_msg("README.md has no %s block where a kernel is shown", fence + 3);
    return NULL;
  }
  begin = strchr(begin, '\n') + 1;
  const char *end = strstr(begin, "\n```");
  assert_non_null(end);
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%.*s\n", (int)(end - begin), begin);
  assert_int_equal(fclose(file), 0);
  return end;
}

/* All of them take a minute: this kernel takes an exponential for each element of the output. */
#define A_FEW_PROBLEMS                                                                                       \
  "--problem full/B:2/H:4/Hkv:2/D:16/T:33/lse --problem causal/B:1/H:3/Hkv:1/D:17/Dv:9/Tq:40/Tk:70 "         \
  "--problem window:9/B:2/H:2/D:8/T:70/lengths:70,5/fill:rising"
#define MORE_PROBLEMS "--count 20 --every 8"

/* Follows a section: its source, then the commands below it. */
static void follow(const char *title, const char *fence, const char *source) {
  const char *section = strstr(readme, title);
  assert_non_null(section);
  const char *rest = extract_block(section, fence, source);
  extract_block(rest, "```sh\n", "commands.sh");
  char command[1024];
  snprintf(command, sizeof command,
           "cd %s && sed -i 's# verify # verify %s #' commands.sh && sh -e commands.sh >log 2>&1 || "
           "{ cat log; exit 1; }",
           folder, getenv("ATTN_TEST_FULL") ? MORE_PROBLEMS : A_FEW_PROBLEMS);
  int status = system(command);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  snprintf(command, sizeof command, "grep -q mine %s/log", folder);
  assert_int_equal(system(command), 0);
}

static void the_kernel_in_the_readme_builds_and_passes(void **state) {
  (void)state;
  follow("## Your own kernel", "```c\n", "mine.c");
}

static void its_twin_for_a_gpu_does_so_on_the_emulated_device(void **state) {
  (void)state;
  if (access(ATTN_BUILD_DIR "/attnbench_emu.so", R_OK) != 0) skip();
  follow("### For a GPU", "```cuda\n", "mine.cu");
}

static int prepare(void **state) {
  (void)state;
  FILE *file = fopen(ATTN_SOURCE_DIR "/README.md", "r");
  if (!file || !mkdtemp(folder)) return -1;
  readme[fread(readme, 1, sizeof readme - 1, file)] = '\0';
  fclose(file);
  char command[1024];
  snprintf(command, sizeof command,
           "ln -s " ATTN_SOURCE_DIR "/variants %s/variants && ln -s " ATTN_BUILD_DIR " %s/build", folder,
           folder);
  return system(command);
}

static int clean_up(void **state) {
  (void)state;
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_kernel_in_the_readme_builds_and_passes),
      cmocka_unit_test(its_twin_for_a_gpu_does_so_on_the_emulated_device),
  };
  return cmocka_run_group_tests(tests, prepare, clean_up);
}
