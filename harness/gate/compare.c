/* What follows from the facts: what the head needs more of than the base, and what does not grow as
 * declared. Without a base the committed facts stand in for it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"
#include "base/text.h"

/* Instructions may rise by 2 %; a share of the error bound may double, since it is that of one worst
 * element; exponents of exact counts are known to a few hundredths where a constant part remains. */
static const double instructions_allowed = 1.02, error_allowed = 2, exponent_allowed = 0.06;

/* ---- findings ---- */

const char *gate_kind_name(gate_kind kind) {
  static const char *const names[] = {"wrong",  "variants", "workspace", "instructions", "growth",
                                      "device", "sent",     "error",     "time"};
  return names[kind];
}

/* "KIND VARIANT reason", where VARIANT may be "all". Wrong results cannot be accepted. */
static bool is_accepted(const gate_options *options, gate_kind kind, const char *variant) {
  for (size_t n = 0; n < options->accepted_count && kind != GATE_WRONG; n++) {
    char accepted_kind[32], accepted_variant[GATE_WORD_BYTES];
    if (sscanf(options->accepted[n], "%31s %63s", accepted_kind, accepted_variant) == 2 &&
        strcmp(accepted_kind, gate_kind_name(kind)) == 0 &&
        (strcmp(accepted_variant, "all") == 0 || strcmp(accepted_variant, variant) == 0))
      return true;
  }
  return false;
}

void gate_say_unknown_acceptances(const gate_options *options, FILE *out) {
  for (size_t n = 0; n < options->accepted_count; n++) {
    char kind[32] = "", variant[GATE_WORD_BYTES];
    bool known = false;
    const bool has_both = sscanf(options->accepted[n], "%31s %63s", kind, variant) == 2;
    for (int k = GATE_WRONG + 1; k <= GATE_TIME && !known; k++)
      known = has_both && strcmp(kind, gate_kind_name((gate_kind)k)) == 0;
    if (known) continue;
    fprintf(out, "gate: '%s' accepts nothing: it is KIND VARIANT reason, and the kinds are",
            options->accepted[n]);
    for (int k = GATE_WRONG + 1; k <= GATE_TIME; k++) fprintf(out, " %s", gate_kind_name((gate_kind)k));
    fputc('\n', out);
  }
}

bool gate_find(gate_findings *findings, const gate_options *options, gate_kind kind, const char *variant,
               const char *name, const char *format, ...) {
  if (findings->count == findings->capacity) {
    const size_t capacity = findings->capacity ? 2 * findings->capacity : 32;
    gate_finding *items = realloc(findings->items, capacity * sizeof *items);
    if (!items) return false;
    findings->items = items;
    findings->capacity = capacity;
  }
  gate_finding *finding = &findings->items[findings->count++];
  *finding = (gate_finding){.kind = kind, .accepted = is_accepted(options, kind, variant)};
  snprintf(finding->variant, sizeof finding->variant, "%s", variant);
  snprintf(finding->name, sizeof finding->name, "%s", name);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(finding->text, sizeof finding->text, format, arguments);
  va_end(arguments);
  return true;
}

void gate_findings_destroy(gate_findings *findings) {
  free(findings->items);
  *findings = (gate_findings){0};
}

/* What a committed baseline knows of and this build lacks may need a library that this machine lacks. */
static void note_lacking(const json_t *head, const json_t *committed, FILE *out) {
  const char *variant;
  json_t *growth;
  json_object_foreach(json_object_get(committed, "growth"), variant, growth) {
    if (!json_object_get(json_object_get(head, "growth"), variant))
      fprintf(out, "  variants     the committed baseline has %s, and this build does not\n", variant);
  }
}

/* ---- one kind of fact, head against before ---- */

typedef struct comparison {
  const json_t *head, *before;
  const char *against; /* "the base", "the committed baseline" */
  const gate_options *options;
  gate_findings *findings;
  FILE *out;
  bool good;
} comparison;

typedef struct variant_verdicts {
  size_t compared, more, fewer, fresh;
  double worst;
  char worst_name[GATE_NAME_BYTES];
} variant_verdicts;

static void variant_of(char variant[GATE_WORD_BYTES], const char *name) {
  snprintf(variant, GATE_WORD_BYTES, "%.*s", (int)strcspn(name, "/"), name);
}

static void compare_one(comparison *comparison, gate_kind kind, const char *set, const char *name, double now,
                        double before) {
  char variant[GATE_WORD_BYTES];
  variant_of(variant, name);
  const double change = 100 * (now / before - 1);
  gate_findings *findings = comparison->findings;
  const gate_options *options = comparison->options;
  bool found = true;
  if (kind == GATE_WORKSPACE && now > before)
    found = gate_find(findings, options, kind, variant, name, "%.0f bytes on %s, %.0f in %s (+%.0f)", now,
                      set, before, comparison->against, now - before);
  else if (kind == GATE_INSTRUCTIONS && now > before * instructions_allowed)
    found = gate_find(findings, options, kind, variant, name, "%.0f (%s), %.0f in %s (%+.1f%%)", now, set,
                      before, comparison->against, change);
  else if (kind == GATE_ERROR && now > before * error_allowed && now <= 1)
    found = gate_find(findings, options, kind, variant, name, "%.3g of the bound on %s, %.3g in %s", now, set,
                      before, comparison->against);
  else
    return;
  if (!found) comparison->good = false;
  const char *slash = strchr(set, '/');
  if (found && kind == GATE_INSTRUCTIONS)
    snprintf(findings->items[findings->count - 1].isa, GATE_WORD_BYTES, "%s",
             !slash || strcmp(slash + 1, GATE_ANY_ISA) == 0 ? "-" : slash + 1);
}

/* Both hold {set: {name: number}}; sets that only one of them knows say nothing. */
static variant_verdicts compare_kind(comparison *comparison, gate_kind kind, const char *section) {
  variant_verdicts variant_verdicts = {.worst = -INFINITY};
  const char *set, *name;
  json_t *numbers, *number;
  json_object_foreach(json_object_get(comparison->head, section), set, numbers) {
    const json_t *known = json_object_get(json_object_get(comparison->before, section), set);
    json_object_foreach(numbers, name, number) {
      const json_t *old = json_object_get(known, name);
      if (!json_is_number(old)) {
        variant_verdicts.fresh++;
        continue;
      }
      const double now = json_number_value(number), before = json_number_value(old);
      variant_verdicts.compared++;
      variant_verdicts.more += now > before;
      variant_verdicts.fewer += now < before;
      const double ratio = before > 0 ? now / before : now > 0 ? INFINITY : 1;
      if (ratio > variant_verdicts.worst) {
        variant_verdicts.worst = ratio;
        snprintf(variant_verdicts.worst_name, sizeof variant_verdicts.worst_name, "%s (%s)", name, set);
      }
      compare_one(comparison, kind, set, name, now, before);
    }
  }
  return variant_verdicts;
}

static void print_verdicts(const comparison *comparison, const char *title, const char *things,
                           const variant_verdicts *variant_verdicts) {
  fprintf(comparison->out, "  %-13s", title);
  if (variant_verdicts->compared == 0)
    fprintf(comparison->out, "nothing in common with %s to compare", comparison->against);
  else if (variant_verdicts->more + variant_verdicts->fewer == 0)
    fprintf(comparison->out, "%zu %s: all as in %s", variant_verdicts->compared, things, comparison->against);
  else
    fprintf(comparison->out, "%zu %s against %s: %zu up, %zu down; most: %+.2f%% %s",
            variant_verdicts->compared, things, comparison->against, variant_verdicts->more,
            variant_verdicts->fewer, 100 * (variant_verdicts->worst - 1), variant_verdicts->worst_name);
  if (variant_verdicts->fresh) fprintf(comparison->out, "; %zu new", variant_verdicts->fresh);
  fputc('\n', comparison->out);
}

/* ---- shares of the bound ---- */

/* Above it the head is wrong, whatever the base was. */
static void find_wrong(comparison *comparison) {
  const char *set, *name;
  json_t *shares, *share;
  json_object_foreach(json_object_get(comparison->head, "error_share"), set, shares) {
    json_object_foreach(shares, name, share) {
      char variant[GATE_WORD_BYTES];
      variant_of(variant, name);
      if (json_number_value(share) > 1 &&
          !gate_find(comparison->findings, comparison->options, GATE_WRONG, variant, name,
                     "%.3g of its error bound on %s", json_number_value(share), set))
        comparison->good = false;
    }
  }
}

/* ---- growth ---- */

/* The exponent over the last octave: of the two longest T of a family, by names that end in T:n or have
 * it before /threads. Points come from one object {name: number}. */
static double last_exponent(const json_t *numbers, const char *name, const json_t *number) {
  const char *mark = strstr(name, "/T:");
  if (!mark) return NAN;
  const char *rest;
  int64_t length;
  if (!text_integer(mark + 3, 1, INT64_MAX / 2, &rest, &length) || length % 2 != 0) return NAN;
  char other[GATE_NAME_BYTES + 32];
  snprintf(other, sizeof other, "%.*s/T:%lld%s", (int)(mark - name), name, (long long)(2 * length), rest);
  if (json_object_get(numbers, other)) return NAN; /* not the last */
  snprintf(other, sizeof other, "%.*s/T:%lld%s", (int)(mark - name), name, (long long)(length / 2), rest);
  const json_t *half = json_object_get(numbers, other);
  if (!half) return NAN;
  const double now = json_number_value(number), before = json_number_value(half);
  return before > 0 ? log2(now / before) : now > 0 ? INFINITY : 0;
}

/* Growing more slowly than declared is no fault here: constant parts make counts do so at short lengths. */
static size_t compare_growth(comparison *comparison, const char *section, const char *declared_as) {
  size_t families = 0;
  const char *set, *name;
  json_t *numbers, *number;
  json_object_foreach(json_object_get(comparison->head, section), set, numbers) {
    json_object_foreach(numbers, name, number) {
      const double exponent = last_exponent(numbers, name, number);
      char variant[GATE_WORD_BYTES];
      variant_of(variant, name);
      const json_t *growth = json_object_get(json_object_get(comparison->head, "growth"), variant);
      const double declared = json_number_value(json_object_get(growth, declared_as));
      if (isnan(exponent)) continue;
      families++;
      if (exponent > declared + exponent_allowed &&
          !gate_find(comparison->findings, comparison->options, GATE_GROWTH, variant, name,
                     "%s on %s grow as T^%.2f over the last octave; declared: T^%.0f", section, set, exponent,
                     declared))
        comparison->good = false;
    }
  }
  return families;
}

/* Who declares more than before must say so to the reviewers too. */
static void compare_declared(comparison *comparison) {
  const char *variant, *what;
  json_t *growth, *exponent;
  json_object_foreach((json_t *)json_object_get(comparison->head, "growth"), variant, growth) {
    json_object_foreach(growth, what, exponent) {
      const json_t *old =
          json_object_get(json_object_get(json_object_get(comparison->before, "growth"), variant), what);
      if (!old || json_integer_value(exponent) <= json_integer_value(old)) continue;
      if (!gate_find(comparison->findings, comparison->options, GATE_GROWTH, variant, variant,
                     "%s is declared as T^%lld, in %s as T^%lld", what,
                     (long long)json_integer_value(exponent), comparison->against,
                     (long long)json_integer_value(old)))
        comparison->good = false;
    }
  }
}

/* ---- all of it ---- */

/* With a base at hand the committed facts only watch what no single step may lift, and say when they are out
 * of date. */
static void note_committed(const json_t *head, const json_t *committed, const gate_options *options,
                           FILE *out) {
  gate_findings ignored = {0};
  comparison comparison = {head, committed, "the committed baseline", options, &ignored, out, true};
  const variant_verdicts sizes = compare_kind(&comparison, GATE_WORKSPACE, "workspace_bytes");
  const variant_verdicts counts = compare_kind(&comparison, GATE_INSTRUCTIONS, "instructions");
  compare_kind(&comparison, GATE_ERROR, "error_share");
  if (ignored.count || sizes.more + sizes.fewer > 0)
    fprintf(
        out,
        "  baseline     out of date: %zu sizes differ, %zu facts are worse, instructions at most %+.1f%%; "
        "renew it with `make gate-baseline` and say why\n",
        sizes.more + sizes.fewer, ignored.count, counts.compared ? 100 * (counts.worst - 1) : 0);
  gate_findings_destroy(&ignored);
}

bool gate_compare(const json_t *head, const json_t *base, const json_t *committed,
                  const gate_options *options, gate_findings *findings, FILE *out) {
  const json_t *before = base ? base : committed;
  comparison comparison = {head, before, base ? "the base" : "the committed baseline", options, findings,
                           out,  true};
  find_wrong(&comparison);
  if (before && !base) note_lacking(head, committed, out);
  if (before) {
    const variant_verdicts sizes = compare_kind(&comparison, GATE_WORKSPACE, "workspace_bytes");
    print_verdicts(&comparison, "workspace", "sizes", &sizes);
    const variant_verdicts counts = compare_kind(&comparison, GATE_INSTRUCTIONS, "instructions");
    print_verdicts(&comparison, "instructions", "counts", &counts);
    const variant_verdicts errors = compare_kind(&comparison, GATE_ERROR, "error_share");
    print_verdicts(&comparison, "error", "shares of the bound", &errors);
    compare_declared(&comparison);
  }
  const size_t before_growth = comparison.findings->count;
  const size_t sized = compare_growth(&comparison, "workspace_bytes", "workspace");
  const size_t counted = compare_growth(&comparison, "instructions", "time");
  fprintf(out, "  %-13s%zu families of workspace, %zu of instructions: %s\n", "growth", sized, counted,
          comparison.findings->count == before_growth ? "none faster than declared" : "not all as declared");
  if (base && committed) note_committed(head, committed, options, out);
  return comparison.good;
}
