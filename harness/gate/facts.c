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

/* Lengths double, so that the last two give an exponent. Valgrind takes a second or two for a variant at the longest
 * of those that are counted, most of it for vectors, whose multiply-adds it computes one by one; variants that grow
 * more slowly are counted at four times these lengths. */
static const int64_t counted_lengths[] = {64, 128, 256}, sized_lengths[] = {256, 512, 1024, 2048, 4096};
static const int64_t causal_length = 200;
enum { COUNTED_LENGTHS = 3, SLOWLY_GROWING = 4, HALVED_LENGTHS = 3 };

/* A variant that takes more instructions for the shortest of them is counted on with one head; and where that is
 * seconds of valgrind's time, at a quarter of the length, unless it grows so slowly that a faster growth would not
 * show there. So is a layer, most of whose instructions are its library's. */
static const uint64_t most_with_all_heads = 1500000, most_at_length = 10000000;
enum { QUARTER = 4 };

/* Of problems that are not the usual ones: about as much work as the longest of those. */
static const double most_counted_flops = 7e7;

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
  w.query_heads = shape.heads;
  w.kv_heads = sweep_kv_heads(variant, shape.heads);
  w.query_length = w.key_length = shape.length;
  w.head_dim = w.value_dim = shape.head_dim;
  w.type = shape.type;
  const bool windowed = sweep_window(variant) != ATTN_UNLIMITED;
  if (windowed) w.left = 32;
  if (windowed || shape.causal) w.right = 0;
  workload_pose_to(&w, variant->function);
  return w;
}

/* Both sides, what is asked of the first, and where what is found goes. */
typedef struct sides {
  variant_list list, other;
  const gate_options *options;
  json_t *facts;
} sides;

/* The same of one variant. */
typedef struct subject {
  gate_pair pair;
  const gate_options *options;
  json_t *facts;
} subject;

/* Whoever writes facts is told whose code the other side has too. */
static bool is_counted(const sides *sides, size_t n) {
  return !gate_is_identical(sides->options, sides->list.variants[n]->name);
}

static subject subject_of(const sides *sides, size_t n) {
  const attn_variant *variant = sides->list.variants[n];
  return (subject){{variant, variant_list_find(&sides->other, variant->name)}, sides->options, sides->facts};
}

/* Under an instruction set; NULL: as what is the same code under each. */
static bool can_solve_with(const gate_pair *pair, const workload *w, const char *isa) {
  const gate_pair alone = {.variant = pair->variant};
  const attn_problem problem = workload_problem(w);
  const bool refused = runner_refusal_with(pair->variant, &problem, isa ? isa : "portable") != NULL;
  return isa ? !refused && (!pair->other || !runner_refusal_with(pair->other, &problem, isa))
             : refused && gate_takes(pair->other ? pair : &alone, w);
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
  return inside(inside(facts, kind), isa ? isa : GATE_ANY_ISA);
}

static void name_fact(char name[GATE_NAME_BYTES], const attn_variant *variant, const workload *w) {
  char problem[WORKLOAD_NAME_BYTES];
  workload_name(w, problem);
  snprintf(name, GATE_NAME_BYTES, "%s/%.*s", variant->name, GATE_NAME_BYTES - GATE_WORD_BYTES - 2, problem);
}

/* ---- each kind of fact ---- */

static void add_growth(const sides *sides) {
  const variant_list *list = &sides->list;
  for (size_t n = 0; n < list->count; n++) {
    if (!is_counted(sides, n)) continue;
    json_t *growth = inside(inside(sides->facts, "growth"), list->variants[n]->name);
    json_object_set_new(growth, "time", json_integer(list->variants[n]->time_exponent));
    json_object_set_new(growth, "workspace", json_integer(list->variants[n]->workspace_exponent));
  }
}

static void add_workspace_of(const subject *of, const workload *w, const char *isa) {
  static const int threads[] = {1, 2, 8};
  const attn_problem problem = workload_problem(w);
  for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
    char name[GATE_NAME_BYTES], key[GATE_NAME_BYTES + 16];
    name_fact(name, of->pair.variant, w);
    snprintf(key, sizeof key, "%s/threads:%d", name, threads[t]);
    const run_setup setup = {.variant = of->pair.variant, .isa = isa, .threads = threads[t]};
    const size_t bytes = runner_workspace_bytes(&setup, &problem);
    json_object_set_new(section(of->facts, "workspace_bytes", isa), key, json_integer((json_int_t)bytes));
  }
}

static void add_workspace(const subject *of, const char *isa) {
  static const shape shapes[] = {
      {8, 0, 64, .causal = false}, {8, 0, 128, .causal = true}, {8, 0, 64, .type = ATTN_BFLOAT16}};
  section(of->facts, "workspace_bytes", isa);
  size_t usual = 0; /* under any instruction set: to look for others takes a second */
  for (size_t s = 0; !of->options->problem_count && s < sizeof shapes / sizeof *shapes; s++)
    for (size_t n = 0; n < sizeof sized_lengths / sizeof *sized_lengths; n++) {
      shape shape = shapes[s];
      shape.length = sized_lengths[n];
      const workload w = workload_for(of->pair.variant, shape);
      usual += gate_takes(&of->pair, &w);
      if (can_solve_with(&of->pair, &w, isa)) add_workspace_of(of, &w, isa);
    }
  workload problems[GATE_MAX_PROBLEMS];
  const size_t count = usual ? 0 : gate_other_problems(&of->pair, of->options, problems);
  for (size_t n = 0; n < count; n++)
    for (int halved = 0; halved < HALVED_LENGTHS && can_solve_with(&of->pair, &problems[n], isa); halved++) {
      add_workspace_of(of, &problems[n], isa);
      if (!gate_halve(&of->pair, &problems[n])) break;
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
static bool add_error_of(const subject *of, const workload *w, const char *isa, char *why, size_t why_size) {
  inputs inputs;
  verdict verdict = {.passed = true};
  const run_setup setup = {.variant = of->pair.variant, .isa = isa, .threads = 1};
  if (!inputs_create(&inputs, w, true, why, why_size)) return false;
  const bool ran = compare(&setup, &inputs, &verdict, why, why_size);
  inputs_destroy(&inputs);
  if (!ran) return false;
  char name[GATE_NAME_BYTES], digits[32];
  name_fact(name, of->pair.variant, w);
  snprintf(digits, sizeof digits, "%.4g", fmin(verdict.bound_share, 1e9));
  json_object_set_new(section(of->facts, "error_share", isa), name, json_real(strtod(digits, NULL)));
  return true;
}

static bool add_error(const subject *of, const char *isa, char *why, size_t why_size) {
  static const shape shapes[] = {{4, 200, 64, .causal = false},
                                 {4, 131, 128, .causal = true},
                                 {4, 200, 64, .type = ATTN_BFLOAT16},
                                 {4, 131, 128, .causal = true, .type = ATTN_FLOAT16}};
  size_t usual = 0;
  for (size_t n = 0; !of->options->problem_count && n < sizeof shapes / sizeof *shapes; n++) {
    workload w = workload_for(of->pair.variant, shapes[n]);
    w.fill = FILL_NORMAL;
    usual += gate_takes(&of->pair, &w);
    if (can_solve_with(&of->pair, &w, isa) && !add_error_of(of, &w, isa, why, why_size)) return false;
  }
  workload problems[GATE_MAX_PROBLEMS];
  const size_t count = usual ? 0 : gate_other_problems(&of->pair, of->options, problems);
  for (size_t n = 0; n < count; n++)
    if (can_solve_with(&of->pair, &problems[n], isa) && !add_error_of(of, &problems[n], isa, why, why_size))
      return false;
  return true;
}

static bool add_for_each_isa(const sides *sides, char *why, size_t why_size) {
  static const char *const only_one[] = {"portable", NULL};
  const attn_table *table = sides->list.tables[0];
  const char *const *sets = table->instruction_sets ? table->instruction_sets() : only_one;
  bool good = true, last = false;
  for (size_t s = 0; !last && good; s++) {
    last = !sets[s];
    for (size_t n = 0; n < sides->list.count && good; n++) {
      const subject of = subject_of(sides, n);
      if (!is_counted(sides, n)) continue;
      add_workspace(&of, sets[s]);
      good = add_error(&of, sets[s], why, why_size);
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

/* The points that are counted, with the texts that they name. */
typedef struct counted {
  instruction_point points[INSTRUCTIONS_MAX_POINTS];
  char problems[INSTRUCTIONS_MAX_POINTS][WORKLOAD_NAME_BYTES];
  size_t count;
} counted;

static void add_point(counted *counted, const subject *of, const workload *w) {
  if (counted->count == INSTRUCTIONS_MAX_POINTS) return;
  workload_name(w, counted->problems[counted->count]);
  counted->points[counted->count] =
      (instruction_point){of->pair.variant->name, counted->problems[counted->count], 0};
  counted->count++;
}

/* A usual problem: one of the lengths that double, or a causal one. */
static void add_usual(counted *counted, const subject *of, int64_t heads, int64_t length, bool causal) {
  const attn_variant *variant = of->pair.variant;
  const workload w = workload_for(variant, (shape){heads, length, causal ? 128 : 64, .causal = causal});
  if (!of->options->problem_count && gate_takes(&of->pair, &w)) add_point(counted, of, &w);
}

/* So few that some share keys where the variant lets any. */
static int64_t counted_heads(const subject *of) {
  enum { FEW = 2, MORE = 4 };
  const attn_variant *variant = of->pair.variant;
  return sweep_kv_heads(variant, FEW) == FEW && sweep_kv_heads(variant, MORE) < MORE ? MORE : FEW;
}

static int64_t counted_length(const subject *of, size_t n) {
  return counted_lengths[n] * (of->pair.variant->time_exponent < 2 ? SLOWLY_GROWING : 1);
}

/* Beside the shortest, of which it is known by now what it takes. */
static void add_others(counted *counted, const subject *of, const instruction_point *shortest) {
  const attn_variant *variant = of->pair.variant;
  const uint64_t taken = shortest ? shortest->instructions : 0;
  const bool of_layer = variant->function == ATTN_LAYER, one_head = of_layer || taken > most_with_all_heads;
  const bool shorter = of_layer || (taken > most_at_length && variant->time_exponent >= 2);
  const int64_t heads = one_head ? 1 : counted_heads(of), part = shorter ? QUARTER : 1;
  for (size_t n = one_head ? 0 : 1; n < COUNTED_LENGTHS; n++)
    add_usual(counted, of, heads, counted_length(of, n) / part, false);
  add_usual(counted, of, heads, causal_length / part, true);
}

/* What is posed, where a variant takes none of the usual problems. */
static void add_other_problems(counted *counted, const subject *of) {
  workload problems[GATE_MAX_PROBLEMS];
  const size_t count = gate_other_problems(&of->pair, of->options, problems);
  for (size_t n = 0; n < count; n++) {
    bool shorter = true;
    while (shorter && workload_flops(&problems[n]) > most_counted_flops)
      shorter = gate_halve(&of->pair, &problems[n]);
    for (int halved = 0; shorter && halved < HALVED_LENGTHS; halved++) {
      add_point(counted, of, &problems[n]);
      shorter = gate_halve(&of->pair, &problems[n]);
    }
  }
}

/* Counts those from the first on. */
static bool count_from(counted *counted, size_t first, const sides *sides, char isa[INSTRUCTIONS_ISA_BYTES],
                       char *why, size_t why_size) {
  return counted->count == first ||
         instructions_count(sides->options->program, sides->options->heads[0], NULL, counted->points + first,
                            counted->count - first, isa, why, why_size);
}

static const instruction_point *shortest_of(const counted *counted, size_t count, const char *variant) {
  for (size_t n = 0; n < count; n++)
    if (strcmp(counted->points[n].variant, variant) == 0) return &counted->points[n];
  return NULL;
}

static bool count_all(counted *counted, const sides *sides, char isa[INSTRUCTIONS_ISA_BYTES], char *why,
                      size_t why_size) {
  for (size_t n = 0; n < sides->list.count; n++) {
    const subject of = subject_of(sides, n);
    if (is_counted(sides, n)) add_usual(counted, &of, counted_heads(&of), counted_length(&of, 0), false);
  }
  const size_t shortest = counted->count;
  if (!count_from(counted, 0, sides, isa, why, why_size)) return false;
  for (size_t n = 0; n < sides->list.count; n++) {
    const subject of = subject_of(sides, n);
    const size_t before = counted->count;
    const instruction_point *known = shortest_of(counted, shortest, of.pair.variant->name);
    if (!is_counted(sides, n)) continue;
    add_others(counted, &of, known);
    if (!known && counted->count == before) add_other_problems(counted, &of);
  }
  return count_from(counted, shortest, sides, isa, why, why_size);
}

static bool add_instructions(const sides *sides, char *why, size_t why_size) {
  counted *counted = calloc(1, sizeof *counted);
  char isa[INSTRUCTIONS_ISA_BYTES], kind[INSTRUCTIONS_ISA_BYTES + 40], compiler[32];
  if (!counted) return fail("out of memory", why, why_size);
  const bool good = count_all(counted, sides, isa, why, why_size);
  for (size_t n = 0; good && n < counted->count; n++) {
    const instruction_point *point = &counted->points[n];
    char name[GATE_NAME_BYTES];
    snprintf(kind, sizeof kind, "%s/%s", compiler_name(compiler),
             sides->list.tables[0]->instruction_sets ? isa : GATE_ANY_ISA);
    snprintf(name, sizeof name, "%s/%.*s", point->variant, GATE_NAME_BYTES - GATE_WORD_BYTES - 2,
             point->problem);
    json_object_set_new(inside(inside(sides->facts, "instructions"), kind), name,
                        json_integer((json_int_t)point->instructions));
  }
  free(counted);
  return good;
}

/* A table with instruction sets has one that valgrind knows. Of others valgrind may lack instructions (3.19 those of
 * AVX-512): then none are counted, which is said, and the rest is compared. */
static bool add_instructions_known(const sides *sides, char *why, size_t why_size) {
  if (instructions_unavailable() || add_instructions(sides, why, why_size)) return true;
  if (sides->list.tables[0]->instruction_sets) return false;
  fprintf(stderr, "attnbench gate: instructions are not counted: %s\n", why);
  return true;
}

static bool add_all(const sides *sides, char *why, size_t why_size) {
  add_growth(sides);
  return add_for_each_isa(sides, why, why_size) && add_instructions_known(sides, why, why_size);
}

json_t *gate_facts(const gate_options *options, char *why, size_t why_size) {
  sides sides = {.options = options, .facts = json_object()};
  json_object_set_new(sides.facts, "schema", json_string(schema));
  const bool good =
      gate_load(&sides.list, options->heads[0], options, why, why_size) &&
      (options->base_count == 0 || variant_list_add(&sides.other, options->bases[0], why, why_size)) &&
      add_all(&sides, why, why_size);
  variant_list_destroy(&sides.list);
  variant_list_destroy(&sides.other);
  if (good) return sides.facts;
  json_decref(sides.facts);
  return NULL;
}

void gate_facts_keep(json_t *facts, const json_t *older) {
  static const char *const sections[] = {"workspace_bytes", "error_share", "instructions"};
  for (size_t n = 0; n < sizeof sections / sizeof *sections; n++) {
    json_t *kept = json_object_get(older, sections[n]);
    if (kept) json_object_update_missing(inside(facts, sections[n]), kept);
  }
}

void gate_facts_share(json_t *base, json_t *head, const gate_options *options) {
  const char *kind, *set, *name;
  json_t *sets, *facts, *fact;
  json_object_foreach(head, kind, sets) {
    json_object_foreach(sets, set, facts) {
      if (strcmp(kind, "growth") == 0) { /* {variant: ...} */
        if (gate_is_identical(options, set)) json_object_set(inside(base, kind), set, facts);
        continue;
      }
      json_object_foreach(facts, name, fact) {
        if (gate_is_identical(options, name)) json_object_set(inside(inside(base, kind), set), name, fact);
      }
    }
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

/* Facts of one machine take half of this. */
enum { ROOM = 128 * 1024 };

/* False at once where they could not be written: they take seconds to count. */
bool gate_facts_room(const char *path, char *why, size_t why_size) {
  char beside[4096] = "", *target = replace_target(path), *blank = calloc(1, ROOM);
  if (target) snprintf(beside, sizeof beside, "%s.new", target);
  FILE *file = target && blank ? fopen(beside, "w") : NULL;
  bool good = file && fwrite(blank, 1, ROOM, file) == ROOM;
  if (file && fclose(file) != 0) good = false;
  if (!good) snprintf(why, why_size, "%s cannot be written: %s", path, strerror(errno));
  if (file) remove(beside);
  free(blank);
  free(target);
  return good;
}

static bool put_facts(const void *facts, FILE *file) {
  return json_dumpf(facts, file, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(4)) == 0;
}

bool gate_facts_write(const json_t *facts, const char *path, char *why, size_t why_size) {
  return replace_write(path, put_facts, facts, why, why_size);
}
