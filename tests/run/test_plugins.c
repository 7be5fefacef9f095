/* Loading shared objects of variants: what is taken, what is refused and how; and the report of a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/crash.h"
#include "run/plugins.h"

static char folder[] = "/tmp/attnbench-plugins-XXXXXX";

/* Builds <folder>/<name>.so from these lines behind the include, and gives its path. */
static const char *build(const char *name, const char *lines) {
  static char path[256];
  char source[256], command[1024];
  snprintf(source, sizeof source, "%s/%s.c", folder, name);
  snprintf(path, sizeof path, "%s/%s.so", folder, name);
  FILE *file = fopen(source, "w");
  assert_non_null(file);
  fprintf(file, "#include <attention.h>\n%s\n", lines);
  assert_int_equal(fclose(file), 0);
  snprintf(command, sizeof command, "%s -w -shared -fPIC -I'%s/variants' '%s' -o '%s'", ATTN_CC,
           ATTN_SOURCE_DIR, source, path);
  assert_int_equal(system(command), 0);
  return path;
}

/* A run function and a variant of this name. */
#define VARIANT(name, run)                                                                                   \
  "static void go(const attn_problem *p, const attn_tensors *t, void *w, int n) {}\n"                        \
  "static const attn_variant v = {" name ", \"does nothing\", ATTN_SOFTMAX, 1, 2, 0, 0, 0, " run "};\n"      \
  "static const attn_variant *const all[] = {&v};\n"
#define TABLE(version, count) "const attn_table attn_plugin = {" version ", " count ", all, 0};\n"
#define SOUND VARIANT("\"toy\"", "go") TABLE("ATTN_INTERFACE_VERSION", "1")

static void a_sound_plugin_is_found_by_name(void **state) {
  (void)state;
  variant_list list = {0};
  char why[512] = "";
  char *path = strdup(build("sound", SOUND));
  if (!variant_list_add(&list, path, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(list.count, 1);
  assert_string_equal(variant_list_find(&list, "toy")->summary, "does nothing");
  assert_ptr_equal(list.origins[0], path);
  assert_null(variant_list_find(&list, "to"));
  assert_null(variant_list_instruction_sets(&list)[0]);
  assert_false(variant_list_add(&list, path, why, sizeof why));
  assert_non_null(strstr(why, "the name is taken by plugin"));
  assert_int_equal(list.count, 1);
  variant_list_destroy(&list);
  free(path);
}

static void a_path_without_a_slash_is_in_the_current_folder(void **state) {
  (void)state;
  variant_list list = {0};
  char why[512] = "", before[4096];
  build("here", SOUND);
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(folder), 0);
  bool added = variant_list_add(&list, "here.so", why, sizeof why);
  assert_int_equal(chdir(before), 0);
  if (!added) fail_msg("%s", why);
  variant_list_destroy(&list);
}

static void unsound_plugins_are_refused_in_words(void **state) {
  (void)state;
  const struct {
    const char *name, *lines, *words;
  } cases[] = {
      {"no_table", "int other;", "exports no attn_plugin"},
      {"old", VARIANT("\"toy\"", "go") TABLE("77", "1"), "interface version 77, this is version 1: rebuild"},
      {"empty", VARIANT("\"toy\"", "go") TABLE("ATTN_INTERFACE_VERSION", "0"), "has no variants"},
      {"capital", VARIANT("\"Toy\"", "go") TABLE("ATTN_INTERFACE_VERSION", "1"), "names a variant 'Toy'"},
      {"nameless", VARIANT("0", "go") TABLE("ATTN_INTERFACE_VERSION", "1"), "one word of a-z, 0-9 and _"},
      {"no_run", VARIANT("\"toy\"", "0") TABLE("ATTN_INTERFACE_VERSION", "1"), "has no run function"},
      {"unresolved", "void missing(void); void f(void) { missing(); }" SOUND, "cannot load plugin"},
  };
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    variant_list list = {0};
    char why[512] = "";
    assert_false(variant_list_add(&list, build(cases[n].name, cases[n].lines), why, sizeof why));
    if (!strstr(why, cases[n].words)) fail_msg("'%s' is not in: %s", cases[n].words, why);
    assert_int_equal(list.count, 0);
    variant_list_destroy(&list);
  }
  variant_list list = {0};
  char why[512] = "";
  assert_false(variant_list_add(&list, "/nowhere/at/all.so", why, sizeof why));
  assert_non_null(strstr(why, "cannot load plugin /nowhere/at/all.so"));
}

/* What a child that crashes in this way leaves on stderr; its status. */
static int crash_of(void (*crash)(void), char *text, size_t size) {
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    crash_install();
    crash();
    _exit(0);
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t got; used + 1 < size && (got = read(ends[0], text + used, size - used - 1)) > 0;)
    used += (size_t)got;
  text[used] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void crash_on_the_main_thread(void) {
  crash_context("toy", "causal/B:1/H:1/Hkv:1/D:8/T:9", "./my toy.so", "avx2", 2);
  raise(SIGSEGV);
}

static void crash_on_every_worker(void) {
  crash_context("toy", "full/B:1/H:1/Hkv:1/D:8/T:9", NULL, NULL, 2);
#pragma omp parallel num_threads(4)
  abort();
}

static void crash_elsewhere(void) {
  crash_context("toy", "full", NULL, NULL, 2);
  crash_context(NULL, NULL, NULL, NULL, 0);
  raise(SIGFPE);
}

static void a_crash_names_variant_problem_and_command(void **state) {
  (void)state;
  char text[4096];
  int status = crash_of(crash_on_the_main_thread, text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  assert_non_null(strstr(text, "attnbench: variant 'toy' crashed (SIGSEGV: "));
  assert_non_null(strstr(text, "on causal/B:1/H:1/Hkv:1/D:8/T:9\n"));
  assert_non_null(strstr(text, "attnbench verify --variant toy --problem 'causal/B:1/H:1/Hkv:1/D:8/T:9' "
                               "--isa avx2 --threads 2 --plugin './my toy.so'\n"));
}

static void threads_that_crash_together_give_one_report(void **state) {
  (void)state;
  char text[4096];
  int status = crash_of(crash_on_every_worker, text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  char *report = strstr(text, "attnbench: variant 'toy' crashed (SIGABRT");
  assert_non_null(report);
  assert_null(strstr(report + 1, "attnbench: variant"));
  assert_null(strstr(report, "--isa"));
}

static void a_crash_outside_of_variants_keeps_its_signal(void **state) {
  (void)state;
  char text[4096];
  int status = crash_of(crash_elsewhere, text, sizeof text);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGFPE);
  assert_string_equal(text, "");
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[256];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sound_plugin_is_found_by_name),
      cmocka_unit_test(a_path_without_a_slash_is_in_the_current_folder),
      cmocka_unit_test(unsound_plugins_are_refused_in_words),
      cmocka_unit_test(a_crash_names_variant_problem_and_command),
      cmocka_unit_test(threads_that_crash_together_give_one_report),
      cmocka_unit_test(a_crash_outside_of_variants_keeps_its_signal),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
