/* Loading shared objects of variants: what is taken, what is refused and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/plugins.h"
#include "verify/verify.h"

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
  "static void go(const attn_call *call) {}\n"                                                               \
  "static const attn_variant v = {.name = " name ", .summary = \"does nothing\",\n"                          \
  "  .types = 1 << ATTN_FLOAT32, .run = " run "};\n"                                                         \
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
      {"old", VARIANT("\"toy\"", "go") TABLE("77", "1"), "interface version 77, this is version 2: rebuild"},
      {"empty", VARIANT("\"toy\"", "go") TABLE("ATTN_INTERFACE_VERSION", "0"), "has no variants"},
      {"capital", VARIANT("\"Toy\"", "go") TABLE("ATTN_INTERFACE_VERSION", "1"), "names a variant 'Toy'"},
      {"nameless", VARIANT("0", "go") TABLE("ATTN_INTERFACE_VERSION", "1"), "one word of a-z, 0-9 and _"},
      {"no_run", VARIANT("\"toy\"", "0") TABLE("ATTN_INTERFACE_VERSION", "1"), "has no run function"},
      {"function", VARIANT("\"toy\"", "go, .function = 9") TABLE("ATTN_INTERFACE_VERSION", "1"),
       "computes function 9: there are 0 (softmax) and 1 (linear)"},
      {"place", VARIANT("\"toy\"", "go, .place = 5") TABLE("ATTN_INTERFACE_VERSION", "1"),
       "has its data in place 5: there is 0 (the host)"},
      {"typeless", VARIANT("\"toy\"", "go, .types = 0") TABLE("ATTN_INTERFACE_VERSION", "1"),
       "has no data type: types is 1 << ATTN_FLOAT32"},
      {"no_variants_of_version_1", "const attn_table attn_plugin = {1, 1, 0, 0};", "has no variants"},
      {"null_of_version_1",
       "static const attn_variant *const all[] = {0}; const attn_table attn_plugin = {1, 1, all, 0};",
       "has a NULL in its table of variants"},
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

/* ---- plugins of version 1 ---- */

static const char old_plugin[] = ATTN_BUILD_DIR "/tests/plugins/version_1.so";

/* What the plugin found in ATTN_ISA when it was run last. */
static const char *isa_that_it_saw(void) {
  void *object = dlopen(old_plugin, RTLD_NOW | RTLD_LOCAL); /* the one that is loaded */
  const char *saw = object ? dlsym(object, "version_1_isa") : NULL;
  if (object) dlclose(object);
  if (!saw) fail_msg("%s has no version_1_isa", old_plugin);
  return saw;
}

/* Runs it with this instruction set, which must be right; a checksum of what it gave. */
static uint64_t run_old(const attn_variant *variant, const char *text, const char *isa) {
  const run_setup setup = {.variant = variant, .isa = isa, .threads = 2};
  workload w;
  inputs in;
  verdict verdict;
  char why[512] = "";
  if (!workload_parse(text, &w, why, sizeof why) || !inputs_create(&in, &w, false, why, sizeof why))
    fail_msg("%s: %s", text, why);
  const char *refusal = runner_refusal(variant, &in.problem);
  if (refusal) fail_msg("%s: %s", text, refusal);
  if (!verify_run(&setup, &in, 0, &verdict, why, sizeof why)) fail_msg("%s: %s", text, why);
  if (!verdict.passed) fail_msg("%s: %s", text, verdict.problem);
  const uint64_t bits = inputs_outputs_checksum(&in);
  inputs_destroy(&in);
  return bits;
}

static const attn_variant *load_old(variant_list *list) {
  char why[512] = "";
  *list = (variant_list){0};
  if (!variant_list_add(list, old_plugin, why, sizeof why)) fail_msg("%s", why);
  const attn_variant *variant = variant_list_find(list, "old");
  assert_non_null(variant);
  return variant;
}

static void a_plugin_of_version_1_is_right_on_what_version_1_knew(void **state) {
  (void)state;
  static const char *const problems[] = {
      "full/B:2/H:4/Hkv:2/D:20/Dv:9/T:40",
      "causal_bottom_right/B:1/H:2/D:16/Tq:7/Tk:30/lse/layout:padded",
      "band:5,3,-2/B:2/H:2/Hkv:1/D:8/Tq:30/Tk:25/lengths:25,0/mask:bhq/lse/layout:bthd",
      "window:9/B:2/H:3/D:8/T:20/offsets:0,6/softcap:3/bias:hq/scale:-2/lse/fill:heavy",
  };
  variant_list list;
  const attn_variant *old = load_old(&list);
  assert_string_equal(old->summary, "the formula, for version 1");
  assert_true(old->types == 1u << ATTN_FLOAT32 && old->place == ATTN_HOST && old->traits == 0);
  assert_true(old->time_exponent == 2 && old->workspace_exponent == 1 && !old->showcase);
  for (size_t n = 0; n < sizeof problems / sizeof *problems; n++) run_old(old, problems[n], NULL);
  variant_list_destroy(&list);
}

static void a_plugin_of_version_1_finds_its_instruction_set_in_the_environment(void **state) {
  (void)state;
  const char problem[] = "full/B:1/H:2/D:64/T:40";
  variant_list list;
  const attn_variant *old = load_old(&list);
  const char *const *sets = variant_list_instruction_sets_of(&list, old);
  assert_string_equal(sets[0], "forwards");
  assert_string_equal(sets[1], "backwards");
  assert_null(sets[2]);
  const uint64_t forwards = run_old(old, problem, "forwards");
  assert_string_equal(isa_that_it_saw(), "forwards");
  const uint64_t backwards = run_old(old, problem, "backwards");
  assert_string_equal(isa_that_it_saw(), "backwards");
  assert_true(forwards != backwards);
  assert_int_equal(setenv("ATTN_ISA", "forwards", 1), 0); /* of the user; what is asked for counts */
  assert_true(run_old(old, problem, NULL) == backwards);
  assert_string_equal(isa_that_it_saw(), "");
  variant_list_destroy(&list);
}

static void a_plugin_of_version_1_is_given_nothing_that_it_did_not_know(void **state) {
  (void)state;
  variant_list list;
  const attn_variant *old = load_old(&list);
  workload w = workload_default();
  attn_problem problem = workload_problem(&w);
  assert_null(runner_refusal(old, &problem));
  for (int bit = 8; bit < 64; bit++) {
    problem.features = UINT64_C(1) << bit;
    assert_non_null(runner_refusal(old, &problem));
  }
  w.wants_weights = true; /* which it knew, and refuses in its own words */
  problem = workload_problem(&w);
  assert_string_equal(runner_refusal(old, &problem), "keeps no weights");
  w.wants_weights = false;
  problem = workload_problem(&w);
  problem.query.type = problem.key.type = problem.value.type = problem.output.type = ATTN_BFLOAT16;
  assert_string_equal(runner_refusal(old, &problem), "does not compute in this data type");
  variant_list_destroy(&list);
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
      cmocka_unit_test(a_plugin_of_version_1_is_right_on_what_version_1_knew),
      cmocka_unit_test(a_plugin_of_version_1_finds_its_instruction_set_in_the_environment),
      cmocka_unit_test(a_plugin_of_version_1_is_given_nothing_that_it_did_not_know),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
