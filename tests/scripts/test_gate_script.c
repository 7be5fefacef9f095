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
                "/variants/'*.h variants/ && git init -q . && git config user.name n && "
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
          "git commit -qam 'Promise more' -m 'Gate-Accept: growth second a reason of several\n  instructions "
          "all words'");
  succeed("scripts/gate.sh HEAD^");
  for (int n = 1; n <= 4; n++) {
    char link[64];
    snprintf(link, sizeof link, "build/gate/base/build/relinks/%d.so", n);
    assert_true(was_called_with(link) && access(link, R_OK) == 0);
    snprintf(link, sizeof link, "build/relinks/%d.so", n);
    assert_true(was_called_with(link) && access(link, R_OK) == 0);
  }
  succeed("grep -q 'variants/second[.]o' build/gate/base.log"); /* made from another text than the head's */
  succeed("! grep 'variants/first[.]o' build/gate/base.log");
  assert_true(was_called_with("first")); /* the identical ones, in one argument */
  assert_true(was_called_with("--base-facts") && was_called_with("build/gate/base/facts.json"));
  assert_true(was_called_with("growth second a reason of several instructions all words"));
  assert_false(was_called_with("--no-base"));
}

static void a_base_is_an_option_too_and_looked_for_before_anything_is_built(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
      {"--base no-such", "gate: git knows no commit 'no-such'; give a branch, a tag or a hash"},
      {"--facts --base=no-such", "gate: git knows no commit 'no-such'; give a branch, a tag or a hash"},
      {"no-such --facts", "gate: git knows no commit 'no-such'; give a branch, a tag or a hash"},
      {"HEAD --base HEAD", "gate: there are two bases, 'HEAD' and 'HEAD'; give one"},
      {"--facts --base", "gate: --base needs a value: a branch, a tag or a hash"}};
  commit_all();
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    char command[256];
    snprintf(command, sizeof command, "scripts/gate.sh %s", wrong[n][0]);
    assert_int_equal(run(command), 2);
    snprintf(command, sizeof command, "[ \"$(cat said)\" = \"%s\" ]", wrong[n][1]); /* and nothing else */
    if (system(command) != 0) fail_msg("scripts/gate.sh %s does not say: %s", wrong[n][0], wrong[n][1]);
  }
  succeed("git commit -q --allow-empty -m next");
  succeed("scripts/gate.sh --facts --base HEAD^ --cases 0");
  assert_true(was_called_with("--facts") && was_called_with("--cases"));
  assert_true(was_called_with("build/gate/base/build/relinks/1.so"));
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

/* Stands for nvcc: PTX is the source without its comments, and ptxas says of it what it says of a kernel of 8 instructions for
 * each line. */
static const char compiler[] =
    "#!/bin/bash\n"
    "while [ $# -gt 0 ]; do\n"
    "  case $1 in --keep-dir) kept=$2; shift ;; -o) to=$2; shift ;; *.cu | *.ptx) from=$1 ;; esac\n"
    "  shift\n"
    "done\n"
    "echo \"${from##*.}\" >>\"$LOG\"\n"
    "if [ -n \"$kept\" ]; then\n"
    "  { echo .target sm_80; echo \"_GLOBAL__N__${RANDOM}_one\"; grep -v '^//' \"$from\"; } "
    ">\"$kept/one.compute_80.ptx\"\n"
    "  cp \"$kept/one.compute_80.ptx\" \"$kept/one.compute_120.ptx\"\n"
    "  sed -i 's/sm_80/sm_120/' \"$kept/one.compute_120.ptx\"\n"
    "  exit\n"
    "fi\n"
    "printf '.section .text.k,\"ax\"\\n.fill %d\\n' $((128 * $(wc -l <\"$from\"))) | as -o \"$to\" -\n"
    "echo \"ptxas info    : Compiling entry function 'k' for '$(basename \"$to\" .cubin)'\" >&2\n"
    "echo '    0 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads' >&2\n"
    "echo 'ptxas info    : Used 40 registers, used 0 barriers, 1024 bytes smem' >&2\n";

static void kernels_for_gpus_are_compiled_where_they_are_not_the_bases(void **state) {
  (void)state;
  char command[256];
  mkdir("bin", 0777);
  write_text("bin/nvcc", compiler);
  mkdir("variants/cuda", 0777);
  write_text("variants/cuda/one.cu", "one\nline more\n");
  write_text("variants/cuda/other.cu", "another\n");
  write_text("variants/cuda/all.h", "");
  write_text("variants/elements.h", "");
  write_text(".gitignore", "build/\ncalls\nsaid\nbin/\n");
  commit_all();
  write_text("variants/first.c", "");
  write_variant("first");
  /* Neither the emulated device is built here, nor, where a GPU is, what it needs. */
  static const char gate[] = "chmod +x bin/nvcc && PATH=\"$PWD/bin:$PATH\" LOG=\"$PWD/build/nvcc.log\" "
                             "MAKEFLAGS='CXX=none HAVE_GPU=' scripts/gate.sh HEAD --facts";
  succeed(gate);
  assert_true(was_called_with("--no-code") &&
              was_called_with("the text of each kernel for GPUs is the base'\\''s, and so is its code"));
  assert_int_not_equal(access("build/nvcc.log", F_OK), 0);

  succeed("rm calls && echo '// words' >>variants/cuda/one.cu");
  succeed(gate);
  assert_true(was_called_with("--no-code") &&
              was_called_with("the PTX of each kernel for GPUs is the base'\\''s, and so is its code"));
  succeed("[ \"$(cat build/nvcc.log)\" = \"$(printf 'cu\\ncu')\" ]"); /* other.cu is not compiled */

  succeed("rm calls build/nvcc.log && echo more >>variants/cuda/one.cu");
  succeed(gate);
  assert_true(was_called_with("--head-code") && was_called_with("build/gate/head-code.txt"));
  assert_true(was_called_with("--base-code") && was_called_with("build/gate/base-code.txt"));
  assert_false(was_called_with("--no-code"));
  for (int head = 0; head < 2; head++)
    for (int gpu = 0; gpu < 3; gpu++) {
      static const char *const gpus[] = {"sm_80", "sm_90", "sm_120"};
      snprintf(command, sizeof command,
               "grep -qx '%s cuda_one/k registers 40 spilled 8 shared 1024 instructions %d' "
               "build/gate/%s-code.txt",
               gpus[gpu], head ? 40 : 32, head ? "head" : "base");
      succeed(command);
    }
  succeed("[ $(cat build/gate/*-code.txt | wc -l) = 6 ]");
  /* The base's PTX is there. */
  succeed("[ \"$(sort build/nvcc.log | uniq -c | xargs)\" = '1 cu 6 ptx' ]");

  succeed("rm calls && echo broken >bin/nvcc && echo more >>variants/cuda/one.cu");
  assert_int_equal(run(gate), 2);
  assert_int_equal(
      system("grep -qx 'gate: the kernels for GPUs do not compile; all of it: build/gate/cuda.log' said"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_gate_works_in_a_folder_with_spaces, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_base_is_an_option_too_and_looked_for_before_anything_is_built, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_base_that_does_not_build_is_told_to_the_program, set_up, tear_down),
      cmocka_unit_test_setup_teardown(kernels_for_gpus_are_compiled_where_they_are_not_the_bases, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
