/* A report as a page that one can send to somebody: one file, which fetches nothing, and can be read on a telephone, in the dark
 * and on paper. The verdict comes first, then what was measured on what, pictures, tables, and every point with what repeats
 * it. */
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "html.h"
#include "page_parts.h"

/* That this page asks nobody for anything is a rule which browsers enforce. */
static const char policy[] = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

static void put_head(const report *report, FILE *out) {
  fprintf(out,
          "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\"/>\n"
          "<meta name=\"generator\" content=\"attnbench %s\"/>\n<title>",
          policy, ATTNBENCH_VERSION);
  html_print(out, "attnbench: %s, %s", report->machine.cpu, report->started);
  fputs("</title>\n<style>\n", out);
  page_put_style(out);
  fputs("</style>\n</head>\n<body>\n", out);
}

static void put_opening(const report *report, FILE *out) {
  const machine *machine = &report->machine;
  const char *commit = environment_fact(&report->environment, "attnbench_commit");
  fputs("<header><h1>Attention kernels, measured and verified</h1>\n<p>", out);
  html_print(out, "%s, %d thread%s, %s. ", machine->device.name[0] ? machine->device.name : machine->cpu,
             machine->threads, machine->threads == 1 ? "" : "s", report->isa);
  html_print(out, "Begun %s%s%s.", report->started, commit && *commit ? ", attnbench commit " : "",
             commit ? commit : "");
  fputs("</p></header>\n", out);
}

/* Only what is there. */
static void put_contents(const report *report, const report_options *options, FILE *out) {
  size_t unmeasured = 0;
  for (size_t n = 0; n < report->result_count; n++) unmeasured += !result_is_measured(&report->results[n]);
  const struct {
    bool is_there;
    const char *id, *name;
  } sections[] = {{true, "verdict", "Verdict"},
                  {options->former != NULL, "differences", "Against the former run"},
                  {options->style != NULL, "pictures", "Pictures"},
                  {report->growth_count > 0, "growth", "Growth"},
                  {true, "points", "Times"},
                  {unmeasured > 0, "unmeasured", "Not measured"},
                  {true, "memory", "Memory"},
                  {true, "samples", "Each point"},
                  {true, "machine", "Machine and run"}};
  fputs("<nav aria-label=\"Sections\"><ul>\n", out);
  for (size_t n = 0; n < sizeof sections / sizeof *sections; n++)
    if (sections[n].is_there)
      fprintf(out, "<li><a href=\"#%s\">%s</a></li>\n", sections[n].id, sections[n].name);
  fputs("</ul></nav>\n<main>\n", out);
}

void report_page(const report *report, const report_options *options, FILE *out) {
  put_head(report, out);
  put_opening(report, out);
  put_contents(report, options, out);
  page_put_verdict(report, out);
  if (options->former) page_put_differences(options->former, report, out);
  if (options->style) page_put_figures(report, options->style, out);
  page_put_growth(report, out);
  page_put_points(report, out);
  page_put_unmeasured(report, out);
  page_put_memory(report, out);
  page_put_samples(report, out);
  page_put_context(report, out);
  fputs("</main>\n<footer><p>Made by attnbench from the report of one run; its results.json has every "
        "number. A table is "
        "sorted by a click on the head of a column.</p></footer>\n<script>\n",
        out);
  page_put_script(out);
  fputs("</script>\n</body>\n</html>\n", out);
}
