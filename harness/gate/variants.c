/* The variants of the two sides: which of them are looked at, and which of the base the head lacks. */
#include <stdio.h>
#include <string.h>

#include "base/complaint.h"
#include "gate.h"
#include "run/runner.h"

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
