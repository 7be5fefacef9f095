/* The variants of the two sides: which of them are looked at, and what of the base's the head lacks. */
#include <stdio.h>
#include <string.h>

#include "base/complaint.h"
#include "gate.h"
#include "measure/sweep.h"
#include "problem/features.h"
#include "problem/types.h"
#include "run/runner.h"
#include "run/version1.h"
#include "verify/grid.h"

static bool is_wanted(const gate_options *options, const char *name) {
  bool wanted = options->variant_count == 0;
  for (size_t n = 0; n < options->variant_count; n++)
    wanted = wanted || strcmp(options->variants[n], name) == 0;
  return wanted;
}

bool gate_is_identical(const gate_options *options, const char *name) {
  const size_t length = strcspn(name, "/");
  for (const char *at = options->identical; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
    if (strcspn(at, " ") == length && strncmp(at, name, length) == 0) return true;
  return false;
}

bool gate_load(variant_list *list, const char *path, const gate_options *options, char *why,
               size_t why_size) {
  if (!variant_list_add(list, path, why, why_size)) return false;
  size_t kept = 0;
  for (size_t n = 0; n < list->count; n++)
    if (is_wanted(options, list->variants[n]->name)) {
      list->variants[kept] = list->variants[n];
      list->origins[kept++] = list->origins[n];
    }
  list->count = kept;
  return true;
}

static bool check_names(const variant_list *base, const variant_list *head, const gate_options *options,
                        complaint to) {
  for (size_t n = 0; n < options->variant_count; n++) {
    const char *name = options->variants[n];
    if (!variant_list_find(head, name) && !variant_list_find(base, name))
      return wrong(to, "neither side has a variant '%s'; --variant takes names of variants that they have",
                   name);
  }
  return true;
}

/* Of the last variant that both have, the reason why one of them does not take it. */
static bool check_problem_asked(const variant_list *base, const variant_list *head, const char *text,
                                complaint to) {
  workload w;
  if (!workload_parse_sound(text, &w, to.text, to.size)) return false;
  const attn_problem problem = workload_problem(&w);
  size_t common = 0;
  for (size_t n = 0; n < head->count; n++) {
    const attn_variant *variant = head->variants[n], *before = variant_list_find(base, variant->name);
    if (!before) continue;
    const char *now = runner_refusal(variant, &problem), *then = runner_refusal(before, &problem);
    if (!now && !then) return true;
    wrong(to, "--problem %s: %s %s %s; give one that both sides take", text, variant->name,
          now ? "of the head" : "of the base", now ? now : then);
    common++;
  }
  return common == 0;
}

bool gate_check_asked(const variant_list *base, const variant_list *head, const gate_options *options,
                      char *why, size_t why_size) {
  const complaint to = {why, why_size};
  bool good = check_names(base, head, options, to);
  for (size_t n = 0; good && n < options->problem_count; n++)
    good = check_problem_asked(base, head, options->problems[n], to);
  return good;
}

bool gate_find_missing(const variant_list *base, const variant_list *head, const gate_options *options,
                       gate_findings *findings) {
  char new[160] = "";
  for (size_t n = 0; n < head->count; n++) {
    const size_t used = strlen(new);
    if (!variant_list_find(base, head->variants[n]->name))
      snprintf(new + used, sizeof new - used, "%s%s", used ? ", " : "; new there: ", head->variants[n]->name);
  }
  for (size_t n = 0; n < base->count; n++) {
    const char *name = base->variants[n]->name;
    if (variant_list_find(head, name)) continue;
    if (!gate_find(findings, options, GATE_VARIANTS, name, name,
                   "the base has it, the head does not: nothing of it can be compared%s", new))
      return false;
  }
  return true;
}

/* ---- what a variant no longer takes or promises ---- */

/* Whoever loses one of these, or takes one of those that take all others back, is held to less. */
static const struct {
  uint32_t trait;
  bool takes_back;
  const char *words;
} traits[] = {
    {ATTN_BATCH_INVARIANT, false, "promised the same bits in any company"},
    {ATTN_DECODE_INVARIANT, false, "promised the same bits for a row that is decoded alone"},
    {ATTN_FLOAT32_WEIGHTS, false, "promised weights that are not rounded to 16 bits"},
    {ATTN_FREE_BITS, true, "promised the same bits in each run, layout and number of threads"},
    {ATTN_FINITE, true, "was held to NaN, infinity and numbers whose products overflow"},
};

/* A problem that the head's refuses for another reason than its features and types: of shapes that are usual somewhere in the
 * gate, or where the base's takes none of these the nearest that it takes. */
static bool find_refused(const attn_variant *before, const attn_variant *now,
                         char name[WORKLOAD_NAME_BYTES]) {
  static const int64_t lengths[] = {60, 64, 200, 256, 512}, dims[] = {64, 128};
  enum { LENGTHS = sizeof lengths / sizeof *lengths, SHAPES = 4 * LENGTHS };
  bool usual = false;
  for (size_t n = 0; n < SHAPES; n++) {
    workload w = workload_default();
    w.query_heads = 4;
    w.kv_heads = sweep_kv_heads(before, w.query_heads);
    w.query_length = w.key_length = lengths[n % LENGTHS];
    w.head_dim = w.value_dim = dims[n / LENGTHS % 2];
    if (n / LENGTHS / 2) w.right = 0;
    workload_pose_to(&w, before->function);
    if (!gate_takes(&(gate_pair){.variant = before}, &w)) continue;
    usual = true;
    if (gate_takes(&(gate_pair){.variant = now}, &w)) continue;
    workload_name(&w, name);
    return true;
  }
  workload nearest[GATE_MAX_PROBLEMS];
  if (usual || gate_other_problems(&(gate_pair){.variant = before}, &(gate_options){0}, nearest) == 0 ||
      gate_takes(&(gate_pair){.variant = now}, &nearest[0]))
    return false;
  workload_name(&nearest[0], name);
  return true;
}

/* Those of its features that a variant does take. One of version 1 is offered all that version 1 knew, and says of a problem alone
 * that it does not take it: of these features those with which it takes a problem of the verification. */
static uint64_t features_taken(const attn_variant *variant, uint64_t features) {
  const bool declares = variant_code(variant) == (const void *)(uintptr_t)variant->run;
  uint64_t taken = 0;
  if (declares) return features;
  for (int64_t n = 0; features & ~taken && n < verify_grid_count(); n++) {
    const workload w = verify_grid_problem(n).workload;
    const uint64_t used = workload_problem(&w).features & features & ~taken;
    if (used && gate_takes(&(gate_pair){.variant = variant}, &w)) taken |= used;
  }
  return taken;
}

static bool find_less(const attn_variant *before, const attn_variant *now, const gate_options *options,
                      gate_findings *findings) {
  const uint64_t lost = features_taken(before, before->features & ~now->features);
  const char *name = now->name, *refusal = features_refusal(now->features, lost);
  char types[128], problem[WORKLOAD_NAME_BYTES];
  element_types_name(before->types & ~now->types, types, sizeof types);
  bool good =
      !refusal || gate_find(findings, options, GATE_VARIANTS, name, name, "%s, and did in the base", refusal);
  if (good && types[0])
    good = gate_find(findings, options, GATE_VARIANTS, name, name, "does not take %s, and did in the base",
                     types);
  if (good && !refusal && !types[0] && find_refused(before, now, problem))
    good = gate_find(findings, options, GATE_VARIANTS, name, name, "does not take %s, and did in the base",
                     problem);
  for (size_t n = 0; good && n < sizeof traits / sizeof *traits; n++) {
    const bool had = before->traits & traits[n].trait, has = now->traits & traits[n].trait;
    if (traits[n].takes_back ? has && !had : had && !has)
      good = gate_find(findings, options, GATE_VARIANTS, name, name,
                       "%s in the base, and is no longer held to it", traits[n].words);
  }
  return good;
}

bool gate_find_less(const variant_list *base, const variant_list *head, const gate_options *options,
                    gate_findings *findings) {
  for (size_t n = 0; n < base->count; n++) {
    const attn_variant *now = variant_list_find(head, base->variants[n]->name);
    if (now && !find_less(base->variants[n], now, options, findings)) return false;
  }
  return true;
}
