/* What `make install` puts where, that it works wherever it is moved, and that `make uninstall` leaves nothing. */
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
#include <sys/wait.h>
#include <unistd.h>

#include "option_table.h"
#include "tests/shell.h"

#define INSTALL ATTN_SOURCE_DIR "/scripts/install.sh "
#define INTO " " ATTN_BUILD_DIR " /usr \"$PWD/a package\""

/* Installed, then moved. */
static int set_up(void **state) {
  char *folder = strdup("/tmp/attnbench-test-install-XXXXXX");
  *state = folder;
  if (!folder || !mkdtemp(folder) || chdir(folder) != 0) return -1;
  return shell(INSTALL "install" INTO " && cp -r 'a package' kept && mv 'a package/usr' moved");
}

static int tear_down(void **state) {
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
  free(*state);
  return chdir("/") == 0 ? system(command) : -1;
}

static void a_moved_tree_finds_its_variants(void **state) {
  (void)state;
  shell_expect("moved/bin/attnbench list", 0, "sliding_window");
  shell_expect("ln -s moved/bin/attnbench linked && ./linked list", 0, "sliding_window");
  if (access(ATTN_BUILD_DIR "/attnbench_emu.so", R_OK) == 0)
    shell_expect("moved/bin/attnbench list --device emu", 0, "cuda_naive");
  shell_expect(
      "rm moved/lib/attnbench/attnbench_variants.so && moved/bin/attnbench list", 2,
      "attnbench: cannot find attnbench_variants.so: it lies beside the program or in ../lib/attnbench\n");
}

static void a_moved_tree_finds_its_plots(void **state) {
  (void)state;
  if (shell("command -v gnuplot") != 0) skip();
  shell_expect("moved/bin/attnbench plots " ATTN_SOURCE_DIR
               "/results/gallery/results.json --out drawn && test -s drawn/time.png",
               0, NULL);
  shell_expect("rm moved/share/attnbench/plots/time.gp && moved/bin/attnbench plots " ATTN_SOURCE_DIR
               "/results/gallery/results.json --out drawn",
               2, "time.gp");
}

/* A copy of a tree that was built, too: the program and its scripts. */
static void a_copied_source_tree_finds_its_own_plots(void **state) {
  (void)state;
  if (shell("command -v gnuplot") != 0) skip();
  shell_expect("mkdir -p copy/scripts && cp -r " ATTN_SOURCE_DIR
               "/scripts/plots copy/scripts/ && rm copy/scripts/plots/time.gp && "
               "mkdir copy/build && cp " ATTN_BUILD_DIR
               "/attnbench copy/build/ && copy/build/attnbench plots " ATTN_SOURCE_DIR
               "/results/gallery/results.json --out drawn",
               2, "copy/build/../scripts/plots/time.gp");
}

static void a_kernel_is_built_with_pkg_config(void **state) {
  (void)state;
  if (shell("command -v pkg-config") != 0) skip();
  shell_expect("export PKG_CONFIG_PATH=$PWD/moved/lib/pkgconfig && cp " ATTN_SOURCE_DIR
               "/tests/plugins/narrow.c . && " ATTN_CC
               " -std=gnu17 -O1 -shared -fPIC $(pkg-config --cflags attnbench) narrow.c -o narrow.so -lm && "
               "moved/bin/attnbench verify --plugin narrow.so --variant right --problem full/D:8/T:9",
               0, "1 variant, ");
  if (access(ATTN_BUILD_DIR "/attnbench_emu.so", R_OK) == 0)
    shell_expect(
        "test -f $(PKG_CONFIG_PATH=moved/lib/pkgconfig pkg-config --variable=emulated_device attnbench)", 0,
        NULL);
  shell_expect("PKG_CONFIG_PATH=moved/lib/pkgconfig pkg-config --modversion attnbench", 0, "0.");
}

/* Each where the help lists its command. */
static void the_manual_page_has_every_option_once_for_each_meaning(void **state) {
  (void)state;
  size_t count;
  const option_row *rows = option_rows(&count);
  shell_expect("sed 's/\\\\-/-/g' moved/share/man/man1/attnbench.1", 0, "\n.SH OPTIONS\n");
  for (size_t i = 0; i < count; i++) {
    char name[96];
    snprintf(name, sizeof name, ".TP\n\\fB%s\\fR", rows[i].name);
    size_t found = 0, wanted = 0;
    for (const char *at = shell_output; (at = strstr(at, name)); at++) found++;
    for (size_t n = 0; n < count; n++)
      wanted += strcmp(rows[n].name, rows[i].name) == 0 && rows[n].commands & option_public_commands();
    if (found != wanted)
      fail_msg("%s stands %zu times, not %zu, in:\n%s", rows[i].name, found, wanted, shell_output);
  }
  if (shell("command -v groff") == 0)
    shell_expect("groff -man -ww -Tutf8 moved/share/man/man1/attnbench.1 2>&1 >/dev/null | grep .", 1, NULL);
}

static void bash_completes_commands_options_and_words(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"attnbench ver", "verify version"},
                                         {"attnbench verify --pl", "--plugin"},
                                         {"attnbench bench --benchmark_format c", "console csv"},
                                         {"attnbench --kv", "--kv-heads"},
                                         {"attnbench verify --plugin ver", ""},
                                         {"attnbench help ga", "gate"},
                                         {"attnbench bench --layout l", ""},
                                         {"attnbench bench --sink --lay", "--layout"}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char command[512], words[64];
    snprintf(command, sizeof command,
             "bash -c '. moved/share/bash-completion/completions/attnbench; COMP_WORDS=(%s); "
             "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _attnbench; echo \"<${COMPREPLY[*]}>\"'",
             cases[n][0]);
    snprintf(words, sizeof words, "<%s>", cases[n][1]);
    shell_expect(command, 0, words);
  }
}

static void the_version_names_a_commit_where_there_is_one(void **state) {
  (void)state;
  shell_expect("moved/bin/attnbench -V", 0, "attnbench 0.");
  shell_expect("test \"$(moved/bin/attnbench -V)\" = \"$(moved/bin/attnbench --version)\"", 0, NULL);
  /* Twelve digits or more, or that sources without git are of none that is known. */
  shell_expect("moved/bin/attnbench version | grep -E "
               "'^attnbench [0-9.]+ \\(commit ([0-9a-f]{12,}(-dirty)?|unknown)\\), interface [0-9]+$'",
               0, NULL);
}

static void uninstalling_leaves_nothing(void **state) {
  (void)state;
  shell_expect("mv kept/usr 'a package/' && touch 'a package/usr/bin/other' && " INSTALL "uninstall" INTO, 0,
               NULL);
  shell_expect("find 'a package' -type f", 0, "a package/usr/bin/other\n");
  shell_expect("find 'a package' -type f | wc -l", 0, "1\n");
}

static void a_prefix_that_is_no_path_from_the_root_is_refused(void **state) {
  (void)state;
  shell_expect(INSTALL "install " ATTN_BUILD_DIR " usr/local ''", 2,
               "install: PREFIX is a path from the root, such as /usr/local, not 'usr/local'\n");
}

static void a_word_that_is_no_command_installs_nothing(void **state) {
  (void)state;
  static const char *const words[] = {"instal" INTO, "", "install", "uninstall " ATTN_BUILD_DIR};
  for (size_t n = 0; n < sizeof words / sizeof *words; n++) {
    char command[1024];
    snprintf(command, sizeof command, "rm -rf 'a package'; " INSTALL "%s", words[n]);
    shell_expect(command, 2, "usage: scripts/install.sh install|uninstall BUILD PREFIX DESTDIR, not '");
    shell_expect("[ ! -e 'a package' ]", 0, NULL);
  }
}

int main(void) {
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      IN_A_FOLDER(a_moved_tree_finds_its_variants),
      IN_A_FOLDER(a_moved_tree_finds_its_plots),
      IN_A_FOLDER(a_copied_source_tree_finds_its_own_plots),
      IN_A_FOLDER(a_kernel_is_built_with_pkg_config),
      IN_A_FOLDER(the_manual_page_has_every_option_once_for_each_meaning),
      IN_A_FOLDER(bash_completes_commands_options_and_words),
      IN_A_FOLDER(the_version_names_a_commit_where_there_is_one),
      IN_A_FOLDER(uninstalling_leaves_nothing),
      IN_A_FOLDER(a_word_that_is_no_command_installs_nothing),
      IN_A_FOLDER(a_prefix_that_is_no_path_from_the_root_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
