/* The facts of a shared object that the gate compares; see gate.h for their form. Each is the same in every
 * run, and on other machines: bytes of workspace and shares of the error bound for each instruction set,
 * instructions for each instruction set and compiler. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/replace.h"
#include "gate.h"
#include "run/instructions.h"
#include "measure/sweep.h"
#include "verify/verify.h"

static const char schema[] = "attnbench-gate-1";

/* Lengths double, so that the last two give an exponent. Valgrind takes 1 to 4 s for a variant at the longest
 * of those that are counted; variants that grow more slowly are counted at four times these lengths. */
static const int64_t counted_lengths[] = {64, 128, 256}, sized_lengths[] = {256, 512, 1024, 2048, 4096};
enum { COUNTED_HEADS = 4, SLOWLY_GROWING = 4 };

static bool fail(const char *reason, char *why, size_t why_size) {
  snprintf(why, why_size, "%s", reason);
  return false;
}

/* ---- shapes ---- */

typedef struct shape {
  int64_t heads, length, head_dim;
  bool causal;
  attn_type type; /* ATTN_ABSENT: float32 */
} shape;

/* The variant at its best; a windowed one looks back an eighth of the shortest length. */
static workload workload_for(const attn_variant *variant, shape shape) {
  workload w = workload_default();
  w.function = variant->function;
  w.query_heads = shape.heads;
  w.kv_heads = sweep_kv_heads(variant, shape.heads);
  w.query_length = w.key_length = shape.length;
  w.head_dim = w.value_dim = shape.head_dim;
  w.type = shape.type;
  const bool windowed = sweep_window(variant) != ATTN_UNLIMITED;
  if (windowed) w.left = 32;
  if (windowed || shape.causal) w.right = 0;
  return w;
}

static bool can_solve(const attn_variant *variant, const workload *w) {
  const attn_problem problem = workload_problem(w);
  return !runner_refusal(variant, &problem);
}

/* Under an instruction set; NULL: as what is the same code under each. */
static bool can_solve_with(const attn_variant *variant, const workload *w, const char *isa) {
  const attn_problem problem = workload_problem(w);
  if (isa) return !runner_refusal_with(variant, &problem, isa);
  return can_solve(variant, w) && runner_refusal_with(variant, &problem, "portable");
}

/* ---- the tree of facts ---- */

/* The object of that name inside another, made where it is not there yet. */
static json_t *inside(json_t *object, const char *name) {
  json_t *found = json_object_get(object, name);
  if (found) return found;
  json_object_set_new(object, name, json_object());
  return json_object_get(object, name);
}

/* Of an instruction set, NULL: of all. */
static json_t *section(json_t *facts, const char *kind, const char *isa) {
  return inside(inside(facts, kind), isa ? isa : "any");
}

static void name_fact(char name[GATE_NAME_BYTES], const attn_variant *variant, const workload *w) {
  char problem[WORKLOAD_NAME_BYTES];
  workload_name(w, problem);
  snprintf(name, GATE_NAME_BYTES, "%s/%.*s", variant->name, GATE_NAME_BYTES - GATE_WORD_BYTES - 2, problem);
}

/* ---- each kind of fact ---- */

static void add_growth(json_t *facts, const variant_list *list) {
  for (size_t n = 0; n < list->count; n++) {
    json_t *growth = inside(inside(facts, "growth"), list->variants[n]->name);
    json_object_set_new(growth, "time", json_integer(list->variants[n]->time_exponent));
    json_object_set_new(growth, "workspace", json_integer(list->variants[n]->workspace_exponent));
  }
}

static void add_workspace(json_t *facts, const attn_variant *variant, const char *isa) {
  static const int threads[] = {1, 2, 8};
  json_t *sizes = section(facts, "workspace_bytes", isa);
  static const shape shapes[] = {
      {8, 0, 64, .causal = false}, {8, 0, 128, .causal = true}, {8, 0, 64, .type = ATTN_BFLOAT16}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (size_t n = 0; n < sizeof sized_lengths / sizeof *sized_lengths; n++)
      for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        shape shape = shapes[s];
        shape.length = sized_lengths[n];
        const workload w = workload_for(variant, shape);
        if (!can_solve_with(variant, &w, isa)) continue;
        const attn_problem problem = workload_problem(&w);
        char name[GATE_NAME_BYTES], key[GATE_NAME_BYTES + 16];
        name_fact(name, variant, &w);
        snprintf(key, sizeof key, "%s/threads:%d", name, threads[t]);
        const run_setup setup = {.variant = variant, .isa = isa, .threads = threads[t]};
        const size_t bytes = runner_workspace_bytes(&setup, &problem);
        json_object_set_new(sizes, key, json_integer((json_int_t)bytes));
      }
}

/* Of the bound of everyone: a variant that promises more than its base did has not lost accuracy. */
static bool compare(const run_setup *setup, inputs *inputs, verdict *verdict, char *why, size_t why_size) {
  const run_watch watch = {.workspace = RUN_POISONED, .inputs_checksum = inputs_checksum(inputs)};
  run_outcome outcome;
  if (!runner_run(setup, inputs, &watch, &outcome, why, why_size)) return false;
  verify_outputs(inputs, 64, verdict);
  return true;
}

/* Wrong results are the business of the verification: a share above 1 is noted like any other. Four digits,
 * so that the last bits of another libm do not show. */
static bool add_error(json_t *facts, const attn_variant *variant, const char *isa, char *why,
                      size_t why_size) {
  static const shape shapes[] = {{4, 200, 64, .causal = false},
                                 {4, 131, 128, .causal = true},
                                 {4, 200, 64, .type = ATTN_BFLOAT16},
                                 {4, 131, 128, .causal = true, .type = ATTN_FLOAT16}};
  for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
    workload w = workload_for(variant, shapes[n]);
    w.fill = FILL_NORMAL;
    if (!can_solve_with(variant, &w, isa)) continue;
    inputs inputs;
    verdict verdict = {.passed = true};
    const run_setup setup = {.variant = variant, .isa = isa, .threads = 1};
    if (!inputs_create(&inputs, &w, true, why, why_size)) return false;
    const bool ran = compare(&setup, &inputs, &verdict, why, why_size);
    inputs_destroy(&inputs);
    if (!ran) return false;
    char name[GATE_NAME_BYTES], digits[32];
    name_fact(name, variant, &w);
    snprintf(digits, sizeof digits, "%.4g", fmin(verdict.bound_share, 1e9));
    json_object_set_new(section(facts, "error_share", isa), name, json_real(strtod(digits, NULL)));
  }
  return true;
}

static bool add_for_each_isa(json_t *facts, const variant_list *list, char *why, size_t why_size) {
  static const char *const only_one[] = {"portable", NULL};
  const char *const *sets =
      list->tables[0]->instruction_sets ? list->tables[0]->instruction_sets() : only_one;
  bool good = true, last = false;
  for (size_t s = 0; !last && good; s++) {
    last = !sets[s];
    for (size_t n = 0; n < list->count && good; n++) {
      add_workspace(facts, list->variants[n], sets[s]);
      good = add_error(facts, list->variants[n], sets[s], why, why_size);
    }
  }
  return good;
}

static const char *compiler_name(char name[32]) {
#if defined(__clang__)
  snprintf(name, 32, "clang-%d", __clang_major__);
#else
  snprintf(name, 32, "gcc-%d", __GNUC__);
#endif
  return name;
}

/* Three lengths and a causal problem for each variant. */
static size_t choose_points(const variant_list *list, instruction_point *points,
                            char (*problems)[WORKLOAD_NAME_BYTES]) {
  size_t count = 0;
  const size_t lengths = sizeof counted_lengths / sizeof *counted_lengths;
  for (size_t n = 0; n < list->count; n++)
    for (size_t l = 0; l <= lengths && count < INSTRUCTIONS_MAX_POINTS; l++) {
      const attn_variant *variant = list->variants[n];
      const bool causal = l == lengths;
      const int64_t length =
          causal ? 200 : counted_lengths[l] * (variant->time_exponent < 2 ? SLOWLY_GROWING : 1);
      const workload w =
          workload_for(variant, (shape){COUNTED_HEADS, length, causal ? 128 : 64, .causal = causal});
      if (!can_solve(variant, &w)) continue;
      workload_name(&w, problems[count]);
      points[count] = (instruction_point){variant->name, problems[count], 0};
      count++;
    }
  return count;
}

static bool add_instructions(json_t *facts, const char *program, const char *plugin, const variant_list *list,
                             char *why, size_t why_size) {
  instruction_point *points = calloc(INSTRUCTIONS_MAX_POINTS, sizeof *points);
  char(*problems)[WORKLOAD_NAME_BYTES] = calloc(INSTRUCTIONS_MAX_POINTS, sizeof *problems);
  char isa[INSTRUCTIONS_ISA_BYTES], kind[INSTRUCTIONS_ISA_BYTES + 40];
  const size_t count = points && problems ? choose_points(list, points, problems) : 0;
  bool good = points && problems;
  if (!good) fail("out of memory", why, why_size);
  good = good && instructions_count(program, plugin, NULL, points, count, isa, why, why_size);
  if (good) {
    char compiler[32];
    snprintf(kind, sizeof kind, "%s/%s", compiler_name(compiler), isa);
  }
  for (size_t n = 0; good && n < count; n++) {
    char name[GATE_NAME_BYTES];
    snprintf(name, sizeof name, "%s/%.*s", points[n].variant, GATE_NAME_BYTES - GATE_WORD_BYTES - 2,
             points[n].problem);
    json_object_set_new(inside(inside(facts, "instructions"), kind), name,
                        json_integer((json_int_t)points[n].instructions));
  }
  free(points);
  free(problems);
  return good;
}

json_t *gate_facts(const char *program, const char *plugin, char *why, size_t why_size) {
  variant_list list = {0};
  if (!variant_list_add(&list, plugin, why, why_size)) return NULL;
  json_t *facts = json_object();
  json_object_set_new(facts, "schema", json_string(schema));
  add_growth(facts, &list);
  const bool good =
      add_for_each_isa(facts, &list, why, why_size) &&
      (instructions_unavailable() || add_instructions(facts, program, plugin, &list, why, why_size));
  variant_list_destroy(&list);
  if (good) return facts;
  json_decref(facts);
  return NULL;
}

void gate_facts_keep(json_t *facts, const json_t *older) {
  static const char *const sections[] = {"workspace_bytes", "error_share", "instructions"};
  for (size_t n = 0; n < sizeof sections / sizeof *sections; n++) {
    json_t *kept = json_object_get(older, sections[n]);
    if (kept) json_object_update_missing(inside(facts, sections[n]), kept);
  }
}

/* ---- files ---- */

json_t *gate_facts_read(const char *path, char *why, size_t why_size) {
  json_error_t error;
  json_t *facts = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (!facts) {
    snprintf(why, why_size, "%s cannot be read: %s", path, error.text);
    return NULL;
  }
  const char *found = json_string_value(json_object_get(facts, "schema"));
  if (found && strcmp(found, schema) == 0) return facts;
  snprintf(why, why_size, "%s has the schema '%s', not '%s': renew it with `make gate-baseline`", path,
           found ? found : "none", schema);
  json_decref(facts);
  return NULL;
}

bool gate_facts_write(const json_t *facts, const char *path, char *why, size_t why_size) {
  char beside[4096] = "", *target = replace_target(path);
  if (target) snprintf(beside, sizeof beside, "%s.new", target);
  const bool written =
      target &&
      json_dump_file(facts, beside, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(4)) == 0 &&
      rename(beside, target) == 0;
  if (!written) {
    snprintf(why, why_size, "%s cannot be written: %s", path, strerror(errno));
    remove(beside);
  }
  free(target);
  return written;
}
