/* The verdict as a comment on a pull request: Markdown of a screen or two, whatever was found. */
#include <string.h>

#include "gate.h"

enum { MOST_FINDINGS = 10, MOST_TIMES = 8, MOST_AGAIN = 3 };

/* What stands in a table may not end its cell. */
static void put_cell(const char *text, FILE *out) {
  for (; *text; text++) {
    if (*text == '|') fputc('\\', out);
    fputc(*text == '\n' ? ' ' : *text, out);
  }
}

static const char *state_of(const gate_finding *finding) {
  return finding->accepted ? " (accepted)" : finding->waived ? " (excused: it got faster)" : "";
}

static void put_findings(const gate_findings *findings, FILE *out) {
  if (findings->count == 0) return;
  fputs("\n| worse | where | what |\n|---|---|---|\n", out);
  for (size_t n = 0; n < findings->count && n < MOST_FINDINGS; n++) {
    const gate_finding *finding = &findings->items[n];
    fprintf(out, "| %s%s | `", gate_kind_name(finding->kind), state_of(finding));
    put_cell(finding->name, out);
    fputs("` | ", out);
    put_cell(finding->text, out);
    fputs(" |\n", out);
  }
  if (findings->count > MOST_FINDINGS)
    fprintf(out, "\nand %zu more, all in gate.json\n", findings->count - MOST_FINDINGS);
}

/* The slowest and, from the end, the fastest; controls only where they moved. */
static void put_times(const gate_times *times, FILE *out) {
  const gate_benchmark *sorted[GATE_MAX_BENCHMARKS];
  const size_t count = times->measured ? gate_sorted(times, sorted) : 0;
  if (count == 0) return;
  fputs("\n| time, head against base | change | 95 % interval | |\n|---|---:|---|---|\n", out);
  for (size_t n = 0; n < count; n++) {
    const gate_benchmark *b = sorted[n];
    if (count > MOST_TIMES && n >= MOST_TIMES / 2 && n < count - MOST_TIMES / 2) continue;
    fprintf(out, "| `%s` | %+.2f%% | %+.2f%% to %+.2f%% | %s |\n", b->name, gate_percent(b->change.estimate),
            gate_percent(b->change.low), gate_percent(b->change.high), gate_verdict_word(b));
  }
  if (count > MOST_TIMES) fprintf(out, "\nof %zu: the slowest and the fastest\n", count);
}

/* Of times the benchmark, of facts all of them once. */
static void put_commands(const gate_findings *findings, const gate_options *options, FILE *out) {
  char more[GATE_NAME_BYTES + 32];
  size_t put = 0;
  bool facts = false;
  for (size_t n = 0; n < findings->count && put < MOST_AGAIN; n++) {
    const gate_finding *finding = &findings->items[n];
    const bool timed = finding->kind == GATE_TIME;
    if (finding->accepted || finding->waived || finding->kind == GATE_WRONG ||
        finding->kind == GATE_VARIANTS || (!timed && facts))
      continue;
    facts |= !timed;
    snprintf(more, sizeof more, timed ? "--times --benchmark %s" : "--facts", finding->name);
    fputs(put++ ? "" : "\nAgain:\n\n```sh\n", out);
    gate_put_again(options, more, out);
    fputc('\n', out);
  }
  if (put) fputs("```\n", out);
}

void gate_comment(const gate_findings *findings, const gate_times *times, const gate_options *options,
                  gate_status status, FILE *out) {
  static const char *const verdicts[] = {
      "nothing got worse", "something got worse", "it could not measure",
      "the machine changed meanwhile, so no time of this run can be believed; run it again"};
  size_t shadowed = 0;
  for (size_t n = 0; n < findings->count; n++)
    shadowed += findings->items[n].kind == GATE_TIME && !findings->items[n].accepted;
  const bool passes_slower = status == GATE_PASS && shadowed;
  fprintf(out, "### attnbench gate: %s\n\nAgainst `%s`",
          passes_slower ? "something got slower, which fails nothing in shadow mode" : verdicts[status],
          options->base_name);
  if (!times->measured) fputs("; nothing was timed", out);
  fputs(".\n", out);
  put_findings(findings, out);
  put_times(times, out);
  put_commands(findings, options, out);
}
