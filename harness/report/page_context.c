/* What a page says of the run and of the machine: all that somebody needs who cites a number of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format.h"
#include "html.h"
#include "page_parts.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void put_row(const char *name, const char *text, FILE *out) {
  if (!*text) return;
  fputs("<tr><th scope=\"row\">", out);
  html_text(out, name);
  fputs("</th><td>", out);
  html_text(out, text);
  fputs("</td></tr>\n", out);
}

static void put_machine(const report *report, FILE *out) {
  const machine *machine = &report->machine;
  char text[512], part[FORMAT_BYTES];
  const size_t caches[] = {machine->l1_bytes, machine->l2_bytes, machine->l3_bytes};
  snprintf(text, sizeof text, "%s, %d x %.0f MHz", machine->cpu, machine->cores, machine->mhz);
  put_row("Processor", text, out);
  put_row("Device", machine->device.name, out);
  int used = 0;
  *text = '\0';
  for (size_t n = 0; n < COUNT(caches); n++) {
    if (caches[n] == 0) continue;
    format_bytes(part, (double)caches[n]);
    used += snprintf(text + used, sizeof text - (size_t)used, "%sL%zu %s", used ? ", " : "", n + 1, part);
  }
  put_row("Caches", text, out);
  format_bytes(part, (double)machine->memory_bytes);
  put_row("Memory", machine->memory_bytes ? part : "", out);
  put_row("Host", machine->host, out);
  put_row("System", machine->kernel, out);
  put_row("Compiler", machine->compiler, out);
  put_row("Flags", machine->flags, out);
  snprintf(text, sizeof text, "%.2f", machine->load_average);
  put_row("Load when it began", isfinite(machine->load_average) ? text : "", out);
}

static void put_run(const report *report, FILE *out) {
  char text[256], part[FORMAT_BYTES];
  put_row("Begun", report->started, out);
  put_row("Program", report->executable, out);
  snprintf(text, sizeof text, "%d", report->machine.threads);
  put_row("Threads", text, out);
  put_row("Instruction set", report->isa, out);
  snprintf(text, sizeof text, "%llu", (unsigned long long)report->seed);
  put_row("Seed", text, out);
  put_row("Inputs", report->cold ? "in no cache: others in each iteration" : "the same in each iteration",
          out);
  format_bytes(part, (double)report->peak_memory_bytes);
  put_row("Memory of the whole run", report->peak_memory_bytes ? part : "", out);
  if (report->disturbance.seconds > 0) {
    const disturbance *found = &report->disturbance;
    snprintf(text, sizeof text,
             "%.0f s; taken by other processes %.1f%%, by other machines %.1f%%; %lld interruptions",
             found->seconds, 100 * found->others_share, 100 * found->stolen_share,
             (long long)found->involuntary_switches);
    put_row("Watched", text, out);
  }
}

/* "command_line" as "Command line". */
static void put_facts(const report *report, FILE *out) {
  for (size_t n = 0; n < ENVIRONMENT_FACTS; n++) {
    char name[64];
    snprintf(name, sizeof name, "%s", environment_key(n));
    for (char *at = name; *at; at++)
      if (*at == '_') *at = ' ';
    if (name[0] >= 'a' && name[0] <= 'z') name[0] = (char)(name[0] - 'a' + 'A');
    put_row(name, report->environment.facts[n], out);
  }
  for (size_t n = 0; n < report->context_count; n++) {
    const size_t bytes = strcspn(report->context[n], "=");
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)bytes, report->context[n]);
    put_row(name, report->context[n] + bytes + (report->context[n][bytes] == '='), out);
  }
}

static void put_rate(const char *what, const machine_rate *rate, const char *unit, FILE *out) {
  char name[64], text[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES];
  if (!(rate->median > 0)) return;
  const int digits =
      format_digits(rate->median, format_half_width((interval){rate->median, rate->low, rate->high}));
  const int shown = digits > 3 ? 3 : digits < 2 ? 2 : digits;
  snprintf(name, sizeof name, "%s%s", what, rate->name);
  format_number(text, rate->median * 1e-9, shown);
  format_number(low, rate->low * 1e-9, shown);
  format_number(high, rate->high * 1e-9, shown);
  fputs("<tr><th scope=\"row\">", out);
  html_text(out, name);
  fputs("</th>", out);
  html_number(out, rate->median, text);
  html_words(out, unit);
  fputs("<td>", out);
  html_print(out, "[%s, %s]", low, high);
  fputs("</td></tr>\n", out);
}

static void put_rates(const machine *machine, FILE *out) {
  static const char *const heads[] = {"Best of the machine", "#Measured", "Unit", "95% interval"};
  if (machine->peak_count + machine->read_count == 0) return;
  html_table(out, "What the machine can do at best", heads, COUNT(heads));
  for (size_t n = 0; n < machine->peak_count; n++)
    put_rate("multiply-add ", &machine->peaks[n], "GFLOP/s", out);
  put_rate("", &machine->sgemm, "GFLOP/s", out);
  for (size_t n = 0; n < machine->read_count; n++) put_rate("", &machine->reads[n], "GB/s", out);
  html_table_end(out);
}

void page_put_context(const report *report, FILE *out) {
  fputs("<section id=\"machine\"><h2>Machine and run</h2>\n"
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Machine and run\"><table "
        "class=\"facts\"><tbody>\n",
        out);
  put_machine(report, out);
  put_run(report, out);
  put_facts(report, out);
  fputs("</tbody></table></div>\n", out);
  put_rates(&report->machine, out);
  fputs("</section>\n", out);
}
