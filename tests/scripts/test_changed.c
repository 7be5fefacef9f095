/* scripts/changed.sh in a small repository of its own: which sources lint looks at again, after which change. */
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

static const char makefile[] = "SOURCES := one.c two.c\n"
                               "cppcheck:\n"
                               "	cppcheck --enable=all $(SOURCES)\n"
                               "tidy: $(SOURCES:.c=.tidy)\n"
                               "%.tidy: %.c\n"
                               "	clang-tidy --quiet $< -- $(FLAGS)\n"
                               "two.tidy: FLAGS = -O2\n";
static char folder[] = "/tmp/attnbench changed XXXXXX";

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

static int begin(void **state) {
  (void)state;
  if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
  write_text("Makefile", makefile);
  write_text("one.c", "#include \"some.h\"\n");
  write_text("two.c", "\n");
  write_text("some.h", "\n");
  if (system("mkdir build && echo 'build/one.o: one.c some.h' >build/one.d && echo 'build/two.o: two.c' "
             ">build/two.d && "
             "ln -s '" ATTN_SOURCE_DIR "/scripts' scripts && printf 'build\\nscripts\\n' >.gitignore && "
             "git init -q && git add . && git -c user.name=a -c user.email=b commit -q -m c") != 0)
    return -1;
  return 0;
}

static int end(void **state) {
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

static int take_back(void **state) {
  (void)state;
  return system("git checkout -q . && git clean -q -f");
}

/* What is to be looked at again since a commit, of the sources named. */
static void expect(const char *commit, const char *sources, const char *again) {
  char command[256], said[256] = "";
  snprintf(command, sizeof command, "scripts/changed.sh %s build %s 2>/dev/null | paste -s -d ' '", commit,
           sources);
  FILE *output = popen(command, "r");
  assert_non_null(output);
  assert_non_null(fgets(said, sizeof said, output));
  assert_int_equal(pclose(output), 0);
  said[strcspn(said, "\n")] = '\0';
  assert_string_equal(said, again);
}

static void edit(const char *old, const char *new) {
  char text[2 * sizeof makefile];
  memcpy(text, makefile, sizeof makefile);
  char *at = strstr(text, old);
  assert_non_null(at);
  memmove(at + strlen(new), at + strlen(old), strlen(at + strlen(old)) + 1);
  memcpy(at, new, strlen(new));
  write_text("Makefile", text);
}

static void sources_are_looked_at_again_where_they_or_their_headers_changed(void **state) {
  (void)state;
  expect("HEAD", "one.c two.c", "");
  write_text("two.c", "int x;\n");
  expect("HEAD", "one.c two.c", "two.c");
  write_text("some.h", "int y;\n");
  expect("HEAD", "one.c two.c", "one.c two.c");
}

static void of_another_makefile_what_it_has_looked_at_in_another_way(void **state) {
  (void)state;
  edit("-O2", "-O3");
  expect("HEAD", "one.c two.c", "two.c");
  edit("tidy: ", "# of clang\ntidy: ");
  expect("HEAD", "one.c two.c", "");
  edit("$< --", "--checks=all $< --");
  expect("HEAD", "one.c two.c", "one.c two.c");
  edit("=all", "=style");
  expect("HEAD", "one.c two.c", "one.c two.c");
  write_text("three.c", "\n");
  edit("two.c\n", "two.c three.c\n");
  expect("HEAD", "one.c two.c three.c", "three.c");
}

static void all_are_where_nothing_can_be_said(void **state) {
  (void)state;
  expect("0123456", "one.c two.c", "one.c two.c");
  write_text("Makefile", "tidy:\n\t$(error no)\n");
  expect("HEAD", "one.c two.c", "one.c two.c");
  take_back(NULL);
  write_text(".clang-tidy", "Checks: none\n");
  expect("HEAD", "one.c two.c", "one.c two.c");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(sources_are_looked_at_again_where_they_or_their_headers_changed, take_back),
      cmocka_unit_test_teardown(of_another_makefile_what_it_has_looked_at_in_another_way, take_back),
      cmocka_unit_test_teardown(all_are_where_nothing_can_be_said, take_back),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
