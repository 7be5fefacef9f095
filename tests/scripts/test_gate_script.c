/* scripts/gate.sh in a small repository of its own, in a folder with spaces: what it builds and what it tells the program,
 * for which something stands that writes down how it is called. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char program[] =
    "#include <stdio.h>\n"
    "#include <string.h>\n"
    "int main(int argc, char **argv) {\n"
    "  FILE *calls = fopen(\"calls\", \"a\");\n"
    "  for (int n = 1; n < argc; n++) fprintf(calls, \"%s\\n\", argv[n]);\n"
    "  for (int n = 1; n + 1 < argc; n++)\n"
    "    if (!strcmp(argv[n], \"--write-facts\")) fclose(fopen(argv[n + 1], \"w\"));\n"
    "  fprintf(calls, \"done\\n\");\n"
    "  return 0;\n"
    "}\n";
static const char variant[] =
    "#include \"attention.h\"\n"
    "static void run(const attn_call *call) { (void)call; }\n"
    "extern const attn_variant attn_NAME;\n"
    "const attn_variant attn_NAME = {.name = \"NAME\", .summary = \"\", .run = run};\n";
static const char registry[] =
    "#include \"attention.h\"\n"
    "extern const attn_variant attn_first, attn_second;\n"
    "static const attn_variant *const variants[] = {&attn_first, &attn_second};\n"
    "const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 2, variants, NULL};\n";

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* With NAME replaced. */
static void write_variant(const char *name) {
  char text[sizeof variant + 64], path[64], *to = text;
  for (const char *at = variant; *at;) {
    if (strncmp(at, "NAME", 4) == 0) {
      to = stpcpy(to, name);
      at += 4;
    } else {
      *to++ = *at++;
    }
  }
  *to = '\0';
  snprintf(path, sizeof path, "variants/%s.c", name);
  write_text(path, text);
}

/* The exit status; what was said goes to the file said. */
static int run(const char *command) {
  char line[1024];
  snprintf(line, sizeof line, "(%s) >said 2>&1", command);
  const int status = system(line);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void succeed(const char *command) {
  const int status = run(command);
  if (status == 0) return;
  (void)system("cat said >&2; cat build/gate/*.log >&2");
  fail_msg("%s: status %d", command, status);
}

/* A line of what the program was called with. */
static bool was_called_with(const char *line) {
  char command[1024];
  snprintf(command, sizeof command, "grep -qxF -e '%s' calls", line);
  return system(command) == 0;
}

static int set_up(void **state) {
  char *folder = strdup("/tmp/attnbench gate XXXXXX");
  *state = folder;
  if (!folder || !mkdtemp(folder) || chdir(folder) != 0 || mkdir("a clone", 0777) != 0 ||
      chdir("a clone") != 0)
    return -1;
  mkdir("variants", 0777);
  mkdir("harness", 0777);
  unsetenv("GITHUB_STEP_SUMMARY");
  unsetenv("BUILD");
  unsetenv("MAKEFLAGS");
  unsetenv("MAKELEVEL");
  setenv("CC", ATTN_CC, 1);
  return system("cp -r '" ATTN_SOURCE_DIR "/Makefile' '" ATTN_SOURCE_DIR "/scripts' . && cp '" ATTN_SOURCE_DIR
                "/variants/attention.h' variants/ && git init -q . && git config user.name n && "
                "git config user.email e@e && printf 'build/\\ncalls\\nsaid\\n' >.gitignore");
}

static int tear_down(void **state) {
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
  free(*state);
  return chdir("/") == 0 ? system(command) : -1;
}

static void commit_all(void) {
  write_text("harness/main.c", program);
  write_text("variants/registry.c", registry);
  write_variant("first");
  write_variant("second");
  succeed("git add -A && git commit -q -m all");
}

static void the_gate_works_in_a_folder_with_spaces(void **state) {
  (void)state;
  commit_all();
  succeed("sed -i 's/(void)call;/(void)call, (void)0;/; s/run = run/traits = 1, .run = run/' "
          "variants/second.c && "
          "git commit -qam 'Promise more' -m 'Gate-Accept: growth second a reason of several words'");
  succeed("scripts/gate.sh HEAD^");
  for (int n = 1; n <= 4; n++) {
    char link[64];
    snprintf(link, sizeof link, "build/gate/base/build/relinks/%d.so", n);
    assert_true(was_called_with(link) && access(link, R_OK) == 0);
    snprintf(link, sizeof link, "build/relinks/%d.so", n);
    assert_true(was_called_with(link) && access(link, R_OK) == 0);
  }
  assert_true(was_called_with("first")); /* the identical ones, in one argument */
  assert_true(was_called_with("--base-facts") && was_called_with("build/gate/base/facts.json"));
  assert_true(was_called_with("growth second a reason of several words"));
  assert_false(was_called_with("--no-base"));
}

static void a_base_that_does_not_build_is_told_to_the_program(void **state) {
  (void)state;
  commit_all();
  succeed("echo 'not C' >>variants/first.c && git commit -qam broken");
  write_variant("first");
  succeed("git commit -qam mended");
  succeed("scripts/gate.sh HEAD^ --facts");
  assert_true(was_called_with("--no-base"));
  assert_true(was_called_with("the base does not build with the head'\\''s Makefile (build/gate/base.log)"));
  assert_false(was_called_with("--base") || was_called_with("--base-facts"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_gate_works_in_a_folder_with_spaces, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_base_that_does_not_build_is_told_to_the_program, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
