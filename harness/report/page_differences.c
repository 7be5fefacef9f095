/* What is other than in a former run. Times of two runs share no passes, so that what slowed one of them down shows as a
 * difference: their ratios are of independent samples, the words are the gate's, and the page says what is not known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/unpaired.h"
#include "format.h"
#include "html.h"
#include "page_parts.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The gate's: what is not at least so much slower is called nothing. */
static const double smallest = 0.02;

/* ---- what the runs were made on ---- */

enum { FACTS = 16 };

typedef struct fact {
  const char *name;
  bool is_machine; /* where it differs, times are of two machines, and no ratio of them is of a kernel */
  char text[ENVIRONMENT_TEXT_BYTES];
} fact;

static size_t list_facts(const report *report, fact facts[FACTS]) {
  const machine *machine = &report->machine;
  char threads[32], cores[32], seed[32], memory[FORMAT_BYTES];
  snprintf(threads, sizeof threads, "%d", machine->threads);
  snprintf(cores, sizeof cores, "%d", machine->cores);
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)report->seed);
  format_bytes(memory, (double)machine->memory_bytes);
  const char *commit = environment_fact(&report->environment, "attnbench_commit");
  const char *processors = environment_fact(&report->environment, "affinity");
  const struct {
    const char *name, *text;
    bool is_machine;
  } all[] = {{"Processor", machine->cpu, true},
             {"Processors", cores, true},
             {"Device", machine->device.name, true},
             {"Host", machine->host, false},
             {"Memory", memory, false},
             {"System", machine->kernel, false},
             {"Processors of the process", processors ? processors : "", false},
             {"Threads", threads, false},
             {"Instruction set", report->isa, false},
             {"Compiler", machine->compiler, false},
             {"Flags", machine->flags, false},
             {"Build", machine->optimised ? "optimised" : "not optimised", false},
             {"Seed", seed, false},
             {"Inputs", report->cold ? "in no cache" : "the same in each iteration", false},
             {"Attnbench commit", commit ? commit : "", false}};
  for (size_t n = 0; n < COUNT(all); n++) {
    facts[n] = (fact){.name = all[n].name, .is_machine = all[n].is_machine};
    snprintf(facts[n].text, sizeof facts[n].text, "%s", all[n].text);
  }
  return COUNT(all);
}

/* Whether the machines differ. */
static bool put_facts(const fact *before, const fact *now, size_t count, FILE *out) {
  static const char *const heads[] = {"What differs", "Before", "Now"};
  bool others = false;
  size_t differ = 0;
  for (size_t n = 0; n < count; n++) differ += strcmp(before[n].text, now[n].text) != 0;
  if (differ == 0) {
    fputs("<p>Machine, settings and build are the same in both.</p>\n", out);
    return false;
  }
  html_table(out, "What differs between the runs", heads, COUNT(heads));
  for (size_t n = 0; n < count; n++) {
    if (strcmp(before[n].text, now[n].text) == 0) continue;
    others = others || now[n].is_machine;
    fputs("<tr><th scope=\"row\">", out);
    html_text(out, now[n].name);
    fputs("</th>", out);
    html_words(out, *before[n].text ? before[n].text : "not known");
    html_words(out, *now[n].text ? now[n].text : "not known");
    fputs("</tr>\n", out);
  }
  html_table_end(out);
  return others;
}

static bool put_context(const report *former, const report *report, FILE *out) {
  fact *facts = calloc((size_t)2 * FACTS, sizeof *facts);
  if (!facts) return true;
  const size_t count = list_facts(former, facts);
  list_facts(report, facts + FACTS);
  const bool others = put_facts(facts, facts + FACTS, count, out);
  free(facts);
  return others;
}

/* ---- points ---- */

typedef struct comparison {
  const report *former, *report;
  bool other_machine;
  size_t pairs; /* points that both timed: so many questions are asked */
  size_t slower, faster;
} comparison;

static const result *find(const report *report, const char *name) {
  for (size_t n = 0; n < report->result_count; n++)
    if (strcmp(report->results[n].name, name) == 0) return &report->results[n];
  return NULL;
}

static bool both_timed(const result *before, const result *now) {
  return before && now && result_is_measured(before) && result_is_measured(now);
}

/* In the gate's words. */
static const char *word_for(const comparison *of, const result *before, const result *now) {
  const double lag = unpaired_lag(now, before).estimate;
  const lead lead = unpaired_lead(now, before, of->pairs);
  if (of->other_machine) return "another machine";
  if (lead == LEAD_BEHIND && lag >= log1p(smallest)) return "SLOWER";
  if (lead == LEAD_AHEAD && lag <= -log1p(smallest)) return "faster";
  return "not distinguishable";
}

static const char *state_word(const result *result) {
  return !result                           ? "not asked for"
         : result->state == RESULT_FAILED  ? "FAILED"
         : result->state == RESULT_SKIPPED ? "skipped"
         : result_is_measured(result)      ? "measured"
                                           : "no time";
}

static void put_median(const result *result, FILE *out) {
  char text[FORMAT_BYTES];
  if (!result || !result_is_measured(result)) {
    html_number(out, NAN, state_word(result));
    return;
  }
  const interval median = result->seconds_median;
  format_time(text, median.estimate, format_digits(median.estimate, format_half_width(median)), NULL);
  html_number(out, median.estimate, text);
}

static void put_ratio(comparison *of, const result *before, const result *now, FILE *out) {
  char text[FORMAT_RATIO_BYTES];
  if (!both_timed(before, now)) {
    const bool worse = now && now->state == RESULT_FAILED && !(before && before->state == RESULT_FAILED);
    html_number(out, NAN, "-");
    fprintf(out, "<td class=\"%s\">%s</td>", worse ? "bad" : "open",
            worse     ? "FAILED now"
            : !before ? "only now"
            : !now    ? "only before"
                      : "not timed in both");
    return;
  }
  const char *word = word_for(of, before, now);
  const interval lag = unpaired_lag(now, before);
  const bool slower = strcmp(word, "SLOWER") == 0, faster = strcmp(word, "faster") == 0;
  format_ratio(text, lag);
  html_number(out, of->other_machine ? NAN : exp(lag.estimate), of->other_machine ? "-" : text);
  fprintf(out, "<td class=\"%s\">%s</td>", slower ? "bad" : faster ? "good" : "open", word);
  of->slower += slower;
  of->faster += faster;
}

/* "1.5 MiB to 2 MiB", or "" where it is the same. */
static void put_change(double before, double now, void (*say)(char *, double), bool known, FILE *out) {
  char was[FORMAT_BYTES], is[FORMAT_BYTES], text[2 * FORMAT_BYTES + 8];
  say(was, before);
  say(is, now);
  if (!known || strcmp(was, is) == 0)
    snprintf(text, sizeof text, "%s", known ? is : "-");
  else
    snprintf(text, sizeof text, "%s, was %s", is, was);
  html_number(out, known ? now / before : NAN, text);
}

static void put_point(comparison *of, const result *before, const result *now, FILE *out) {
  const result *any = now ? now : before;
  const bool both = both_timed(before, now);
  fputs("<tr><th scope=\"row\">", out);
  html_name(out, any->name);
  fputs("</th>", out);
  put_median(before, out);
  put_median(now, out);
  put_ratio(of, before, now, out);
  put_change(both ? (double)before->memory_bytes : 0, both ? (double)now->memory_bytes : 0, format_bytes,
             both, out);
  put_change(both ? before->error_bound_fraction : 0, both ? now->error_bound_fraction : 0, format_share,
             both, out);
  fputs("</tr>\n", out);
}

static void put_table(comparison *of, FILE *out) {
  static const char *const heads[] = {"Point",   "#Before", "#Now",        "#Times as long",
                                      "Verdict", "#Memory", "#Worst error"};
  html_table(out, "Points of both runs", heads, COUNT(heads));
  for (size_t n = 0; n < of->report->result_count; n++) {
    const result *now = &of->report->results[n];
    put_point(of, find(of->former, now->name), now, out);
  }
  for (size_t n = 0; n < of->former->result_count; n++) {
    const result *before = &of->former->results[n];
    if (!find(of->report, before->name)) put_point(of, before, NULL, out);
  }
  html_table_end(out);
}

static void put_counts(const comparison *of, FILE *out) {
  fputs("<p class=\"note\">", out);
  if (of->pairs == 0)
    fputs("No point was timed in both runs.", out);
  else if (of->other_machine)
    fputs("These runs were made on different machines: a ratio of their times would be of the machines, not "
          "of a kernel, and "
          "none is given.",
          out);
  else
    html_print(out, "Of %zu points that both timed, %zu slower, %zu faster, %zu not distinguishable.",
               of->pairs, of->slower, of->faster, of->pairs - of->slower - of->faster);
  fputs("</p>\n", out);
}

void page_put_differences(const report *former, const report *report, FILE *out) {
  comparison of = {.former = former, .report = report};
  for (size_t n = 0; n < report->result_count; n++)
    of.pairs += both_timed(find(former, report->results[n].name), &report->results[n]);
  fputs("<section id=\"differences\"><h2>Against the former run</h2>\n<p>", out);
  html_print(out, "The former run began %s, this one %s.", former->started, report->started);
  if (strcmp(former->started, report->started) > 0)
    fputs(" The former one is the later one: are they the wrong way round?", out);
  fputs("</p>\n", out);
  of.other_machine = put_context(former, report, out);
  char *table = NULL;
  size_t size = 0;
  FILE *rows = open_memstream(&table, &size);
  if (rows) put_table(&of, rows);
  if (rows && fclose(rows) == 0) {
    put_counts(&of, out);
    fputs(table, out);
  }
  free(table);
  fputs("<p>Times as long: the ratio of the medians, this run's over the former's, with its 95% interval. A "
        "point "
        "is called slower or "
        "faster where the ratio is 2% or more away from 1 and surely so: the chance that any is called so "
        "because its samples "
        "scatter is below 5%. What drifts between two runs, as on shared machines by several percent within "
        "minutes, no interval "
        "knows: <code>attnbench gate</code> compares in one run.</p>\n</section>\n",
        out);
}
