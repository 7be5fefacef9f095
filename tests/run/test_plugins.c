/* Loading shared objects of variants: what is taken, what is refused and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <float.h>
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
static const char *build_with(const char *flags, const char *name, const char *lines) {
  static char path[256];
  char source[256], command[1024];
  snprintf(source, sizeof source, "%s/%s.c", folder, name);
  snprintf(path, sizeof path, "%s/%s.so", folder, name);
  FILE *file = fopen(source, "w");
  assert_non_null(file);
  fprintf(file, "#include <attention.h>\n%s\n", lines);
  assert_int_equal(fclose(file), 0);
  snprintf(command, sizeof command, "%s %s -w -shared -fPIC -I'%s/variants' '%s' -o '%s' -lm", ATTN_CC, flags,
           ATTN_SOURCE_DIR, source, path);
  assert_int_equal(system(command), 0);
  return path;
}

static const char *build(const char *name, const char *lines) { return build_with("", name, lines); }

/* A run function and a variant of this name. */
#define VARIANT(name, run)                                                                                   \
  "static void go(const attn_call *call) {}\n"                                                               \
  "static const attn_variant v = {.name = " name ", .summary = \"does nothing\",\n"                          \
  "  .types = 1 << ATTN_FLOAT32, .run = " run "};\n"                                                         \
  "static const attn_variant *const all[] = {&v};\n"
#define TABLE(version, count) "const attn_table attn_plugin = {" version ", " count ", all, 0};\n"
/* Whose instruction sets are these. */
#define SETS(names)                                                                                          \
  "static const char *const *sets(void) { static const char *const s[] = {" names "}; return s; }\n"         \
  "const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, all, sets};\n"
#define FORTY_LETTERS "a_name_that_is_forty_letters_long_with_x"
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
       "computes function 9: there are 0 (softmax), 1 (linear), 2 (softmax, backward), 3 (linear, backward) "
       "and 4 (layer)"},
      {"place", VARIANT("\"toy\"", "go, .place = 5") TABLE("ATTN_INTERFACE_VERSION", "1"),
       "has its data in place 5: there are 0 (the host) and 1 (CUDA)"},
      {"deviceless", VARIANT("\"toy\"", "go, .place = ATTN_CUDA") TABLE("ATTN_INTERFACE_VERSION", "1"),
       "computes on a device, and the plugin has no attn_plugin_device: link build/cuda/device.o"},
      {"typeless", VARIANT("\"toy\"", "go, .types = 0") TABLE("ATTN_INTERFACE_VERSION", "1"),
       "has no data type: types is 1 << ATTN_FLOAT32"},
      {"no_variants_of_version_1", "const attn_table attn_plugin = {1, 1, 0, 0};", "has no variants"},
      {"null_of_version_1",
       "static const attn_variant *const all[] = {0}; const attn_table attn_plugin = {1, 1, all, 0};",
       "has a NULL in its table of variants"},
      {"long_name", VARIANT("\"" FORTY_LETTERS "_another\"", "go") TABLE("ATTN_INTERFACE_VERSION", "1"),
       "a name has at most 47 letters"},
      {"long_isa", VARIANT("\"toy\"", "go") SETS("\"plain\", \"" FORTY_LETTERS "\", 0"),
       "names an instruction set '" FORTY_LETTERS "': a name has 1 to 31 letters"},
      {"quoted_isa", VARIANT("\"toy\"", "go") SETS("\"it's\", 0"), "names an instruction set 'it's'"},
      {"no_isas",
       VARIANT("\"toy\"", "go") "static const char *const *none(void) { return 0; }\n"
                                "const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, all, none};\n",
       "gives no list of instruction sets"},
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

static void names_as_long_as_reports_hold_are_taken(void **state) {
  (void)state;
  variant_list list = {0};
  char why[512] = "";
  const char *path = build("longest", VARIANT("\"" FORTY_LETTERS "_letters\" + 1", "go")
                                          SETS("\"" FORTY_LETTERS "\" + 9, \"A+b-c.1_\", 0"));
  if (!variant_list_add(&list, path, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(strlen(list.variants[0]->name), VARIANT_NAME_BYTES - 1);
  const char *longest = variant_list_instruction_sets_of(&list, list.variants[0])[0];
  assert_int_equal(strlen(longest), ISA_NAME_BYTES - 1);
  assert_ptr_equal(variant_list_find_isa(&list, longest), longest);
  assert_string_equal(variant_list_find_isa(&list, "A+b-c.1_"), "A+b-c.1_");
  assert_null(variant_list_find_isa(&list, "A+b-c"));
  variant_list_destroy(&list);
}

/* ---- the floating-point mode ---- */

/* Loads a plugin; what that says on stderr. */
static void load_listening(variant_list *list, const char *path, char *said, size_t size) {
  char why[512] = "";
  FILE *file = tmpfile();
  const int before = dup(STDERR_FILENO);
  assert_true(file && before >= 0);
  fflush(stderr);
  dup2(fileno(file), STDERR_FILENO);
  *list = (variant_list){0};
  const bool loaded = variant_list_add(list, path, why, sizeof why);
  fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  rewind(file);
  said[fread(said, 1, size - 1, file)] = '\0';
  fclose(file);
  if (!loaded) fail_msg("%s", why);
}

static bool computes_as_usual(void) {
  volatile float least_normal = FLT_MIN, three = 3;
  return least_normal * 0.5f > 0 && 1 / three == 0x1.555556p-2f;
}

static void a_mode_that_a_plugin_sets_as_it_is_loaded_is_undone_and_said(void **state) {
  (void)state;
  variant_list list;
  char said[1024], words[512];
  const char *path = build("rounds", "#include <fenv.h>\n"
                                     "__attribute__((constructor)) static void up(void) {\n"
                                     "  fesetround(FE_UPWARD);\n"
                                     "}\n" SOUND);
  load_listening(&list, path, said, sizeof said);
  assert_true(computes_as_usual());
  snprintf(words, sizeof words, "attnbench: plugin %s left the rounding mode changed as it was loaded", path);
  if (!strstr(said, words) || strchr(said, '\n') != said + strlen(said) - 1) fail_msg("'%s'", said);
  variant_list_destroy(&list);
  load_listening(&list, build("quiet", SOUND), said, sizeof said);
  assert_string_equal(said, "");
  variant_list_destroy(&list);
}

/* Full attention, packed, for queries and keys of one head each. */
static const char fast_kernel[] =
    "#include <math.h>\n"
    "static void go(const attn_call *call) {\n"
    "  const attn_problem *p = call->problem;\n"
    "  for (int64_t row = 0; row < p->batch * p->query_heads * p->query_length; row++) {\n"
    "    const float *q = (const float *)call->tensors.query + row * p->head_dim;\n"
    "    const int64_t first = row / p->query_length * p->key_length;\n"
    "    const float *k = (const float *)call->tensors.key + first * p->head_dim;\n"
    "    const float *v = (const float *)call->tensors.value + first * p->value_dim;\n"
    "    float *o = (float *)call->tensors.output + row * p->value_dim, top = -1e30f, sum = 0;\n"
    "    for (int64_t e = 0; e < p->value_dim; e++) o[e] = 0;\n"
    "    for (int pass = 0; pass < 2; pass++)\n"
    "      for (int64_t j = 0; j < p->key_length; j++) {\n"
    "        float score = 0;\n"
    "        for (int64_t d = 0; d < p->head_dim; d++) score += q[d] * k[j * p->head_dim + d];\n"
    "        score *= (float)p->scale;\n"
    "        if (pass == 0 && score > top) top = score;\n"
    "        const float weight = pass == 0 ? 0 : expf(score - top);\n"
    "        sum += weight;\n"
    "        for (int64_t e = 0; e < p->value_dim; e++) o[e] += weight * v[j * p->value_dim + e];\n"
    "      }\n"
    "    for (int64_t e = 0; e < p->value_dim; e++) o[e] /= sum;\n"
    "  }\n"
    "}\n"
    "static const attn_variant v = {.name = \"fast\", .summary = \"full\", .types = 1 << ATTN_FLOAT32,\n"
    "  .run = go};\n"
    "static const attn_variant *const all[] = {&v};\n" TABLE("ATTN_INTERFACE_VERSION", "1");

/* Up to gcc 12 that links a start file that sets the mode of whoever loads the object. */
static void a_plugin_built_with_ofast_changes_nothing_for_others(void **state) {
  (void)state;
  char said[1024], why[512] = "";
  variant_list own = {0}, list;
  load_listening(&list, build_with("-Ofast", "fast", fast_kernel), said, sizeof said);
  assert_true(computes_as_usual());
#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ < 13
  if (!strstr(said, "fast.so left denormal numbers flushed to zero as it was loaded")) fail_msg("'%s'", said);
#endif
  if (!variant_list_add(&own, ATTN_BUILD_DIR "/attnbench_variants.so", why, sizeof why)) fail_msg("%s", why);
  static const char *const problems[] = {"full/B:1/H:2/D:8/T:33/fill:denormal", "full/B:1/H:1/D:16/T:9",
                                         "full/B:1/H:2/D:8/T:40/fill:heavy"};
  for (size_t n = 0; n < sizeof problems / sizeof *problems; n++)
    for (int turn = 0; turn < 2; turn++) {
      const attn_variant *variant = turn == 0 ? list.variants[0] : variant_list_find(&own, "fused");
      const run_setup setup = {.variant = variant, .threads = 2};
      workload w;
      inputs in;
      verdict verdict = {.passed = false};
      if (!workload_parse(problems[n], &w, why, sizeof why) ||
          !inputs_create(&in, &w, false, why, sizeof why) ||
          !verify_run(&setup, &in, 0, &verdict, why, sizeof why))
        fail_msg("%s", why);
      if (!verdict.passed) fail_msg("%s on %s: %s", variant->name, problems[n], verdict.problem);
      inputs_destroy(&in);
    }
  variant_list_destroy(&own);
  variant_list_destroy(&list);
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
      cmocka_unit_test(names_as_long_as_reports_hold_are_taken),
      cmocka_unit_test(a_mode_that_a_plugin_sets_as_it_is_loaded_is_undone_and_said),
      cmocka_unit_test(a_plugin_built_with_ofast_changes_nothing_for_others),
      cmocka_unit_test(a_plugin_of_version_1_is_right_on_what_version_1_knew),
      cmocka_unit_test(a_plugin_of_version_1_finds_its_instruction_set_in_the_environment),
      cmocka_unit_test(a_plugin_of_version_1_is_given_nothing_that_it_did_not_know),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
