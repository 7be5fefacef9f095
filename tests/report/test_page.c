/* The page of a report: all of it is there, it is sound, it asks nobody for anything, and foreign text stays text. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"
#include "report/page_svg.h"
#include "tests/report/sample_report.h"

static const plot_style style = {.scripts = ATTN_SOURCE_DIR "/scripts/plots"};

/* The page, for the caller to free. Where a name may be broken into lines is left out, so that names can be looked for. */
static char *page_of(const report *report, const struct report *former, const plot_style *pictures) {
  static const char may_break[] = "<wbr/>";
  const report_options options = {.former = former, .style = pictures};
  char *page = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&page, &size);
  assert_non_null(out);
  report_page(report, &options, out);
  fclose(out);
  for (char *at = page; (at = strstr(at, may_break));)
    memmove(at, at + strlen(may_break), strlen(at + strlen(may_break)) + 1);
  return page;
}

static size_t count(const char *text, const char *words) {
  size_t found = 0;
  for (const char *at = text; (at = strstr(at, words)); at += strlen(words)) found++;
  return found;
}

static void assert_has(const char *page, const char *words) {
  if (!strstr(page, words)) fail_msg("the page lacks '%s'", words);
}

static bool has_gnuplot(void) { return system("command -v gnuplot >/dev/null 2>&1") == 0; }

/* ---- the structure ---- */

enum { DEEPEST = 64, NAME_BYTES = 32, IDS = 4096 };

typedef struct structure {
  char open[DEEPEST][NAME_BYTES];
  size_t depth, id_count, reference_count;
  char ids[IDS][NAME_BYTES], references[IDS][NAME_BYTES];
} structure;

/* The value of an attribute of the tag that ends at `end`; false where it has none. */
static bool attribute(const char *tag, const char *end, const char *name, char value[NAME_BYTES]) {
  char start[NAME_BYTES + 4];
  snprintf(start, sizeof start, " %s=\"", name);
  const char *at = memmem(tag, (size_t)(end - tag), start, strlen(start));
  if (!at) return false;
  at += strlen(start);
  snprintf(value, NAME_BYTES, "%.*s", (int)strcspn(at, "\""), at);
  return true;
}

static void note_names(structure *s, const char *tag, const char *end) {
  char value[NAME_BYTES] = "";
  assert_true(s->id_count + 1 < IDS && s->reference_count + 2 < IDS);
  if (attribute(tag, end, "id", value)) memcpy(s->ids[s->id_count++], value, NAME_BYTES);
  if (attribute(tag, end, "aria-labelledby", value))
    memcpy(s->references[s->reference_count++], value, NAME_BYTES);
  if (attribute(tag, end, "href", value)) {
    if (value[0] != '#') fail_msg("a link leads out of the page: %.80s", tag);
    memcpy(s->references[s->reference_count++], value + 1, NAME_BYTES - 1);
  }
}

/* Behind the tag that begins here; each '<' of a sound page begins one. */
static const char *take_tag(structure *s, const char *at) {
  const char *end = at + strcspn(at, ">");
  char name[NAME_BYTES] = "";
  if (!*end) fail_msg("a tag does not end: %.80s", at);
  const bool closes = at[1] == '/', is_empty = end[-1] == '/';
  snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1 + closes, " \n/>"), at + 1 + closes);
  if (!isalpha((unsigned char)name[0])) fail_msg("no tag: %.80s", at);
  if (closes) {
    if (s->depth == 0 || strcmp(s->open[s->depth - 1], name) != 0)
      fail_msg("</%s> closes <%s>: %.80s", name, s->depth ? s->open[s->depth - 1] : "", at);
    s->depth--;
    return end + 1;
  }
  note_names(s, at, end);
  if (is_empty) return end + 1;
  assert_true(s->depth < DEEPEST);
  memcpy(s->open[s->depth++], name, NAME_BYTES);
  if (strcmp(name, "style") != 0 && strcmp(name, "script") != 0) return end + 1;
  const char *next = strstr(end, "</");
  assert_non_null(next);
  assert_null(memmem(end + 1, (size_t)(next - end - 1), "<", 1)); /* so that it is sound XML too */
  return next;
}

static void assert_sound(const char *page) {
  structure *s = calloc(1, sizeof *s);
  assert_non_null(s);
  static const char doctype[] = "<!DOCTYPE html>\n";
  assert_int_equal(strncmp(page, doctype, strlen(doctype)), 0);
  for (const char *at = page + strlen(doctype); (at = strchr(at, '<'));) at = take_tag(s, at);
  assert_int_equal(s->depth, 0);
  for (size_t n = 0; n < s->id_count; n++)
    for (size_t other = n + 1; other < s->id_count; other++)
      if (strcmp(s->ids[n], s->ids[other]) == 0) fail_msg("two have the id '%s'", s->ids[n]);
  for (size_t n = 0; n < s->reference_count; n++) {
    bool found = false;
    for (size_t id = 0; id < s->id_count; id++) found = found || strcmp(s->ids[id], s->references[n]) == 0;
    if (!found) fail_msg("nothing has the id '%s'", s->references[n]);
  }
  free(s);
}

static void assert_asks_nobody(const char *page) {
  static const char *const absent[] = {"http:",   "https:", " src=", "@import", "url(h",
                                       "<iframe", "<link",  "<img",  " onload="};
  for (size_t n = 0; n < sizeof absent / sizeof *absent; n++)
    if (strstr(page, absent[n])) fail_msg("the page has '%s'", absent[n]);
  assert_has(page, "default-src 'none'");
}

static void each_picture_has_a_name(const char *page) {
  for (const char *at = page; (at = strstr(at, "<svg")); at += 4) {
    const char *end = strchr(at, '>');
    assert_non_null(memmem(at, (size_t)(end - at), "role=\"img\"", 10));
    if (strncmp(end + 1, "<title", 6) != 0) fail_msg("a picture without a name: %.120s", at);
  }
}

/* ---- what is there ---- */

static void every_point_is_there_with_what_repeats_it(void **state) {
  (void)state;
  report report;
  sample_whole_report(&report);
  char *page = page_of(&report, NULL, NULL), words[WORKLOAD_NAME_BYTES + 256];
  for (size_t n = 0; n < report.result_count; n++) {
    const result *result = &report.results[n];
    snprintf(words, sizeof words, "<article id=\"point-%zu\"><h4>%s</h4>", n, result->name);
    assert_has(page, words);
    snprintf(words, sizeof words,
             "build/attnbench bench --variant %s --problem %s --threads 1 --seed 1</code>", result->variant,
             result_problem(result->name));
    assert_has(page, words);
    snprintf(words, sizeof words, "<a href=\"#point-%zu\">%s</a>", n, result->variant);
    assert_int_equal(count(page, words), result_is_measured(result) ? 2 : 0); /* times, memory */
  }
  assert_int_equal(count(page, "5 samples: "), report.result_count - 1);
  assert_has(page, "needs &quot;6 GiB&quot;, has\n\t5, caf\xc3\xa9");
  assert_has(page, "Right: all 61 points");
  assert_has(page, "As declared: all 8");
  assert_has(page, "<td class=\"n\" data-sort=\"1.99\">1.99 [1.97, 2.01]</td>");
  for (size_t n = 0; n < report.growth_count; n++) assert_has(page, result_problem(report.growths[n].family));
  assert_has(page, "Platinum 8481C");
  assert_has(page, "linear against fused: ");
  assert_sound(page);
  assert_asks_nobody(page);
  each_picture_has_a_name(page);
  free(page);
  report_destroy(&report);
}

static void pictures_stand_in_it_in_the_colours_of_the_page(void **state) {
  (void)state;
  static const char *const names[] = {"time", "workspace", "flops", "error", "roofline"};
  if (!has_gnuplot()) skip();
  report report;
  char words[64];
  sample_whole_report(&report);
  for (size_t n = 0; n < report.result_count; n++) {
    report.results[n].bytes = 1e6;
    report.results[n].read_fraction = 0.01;
    strcpy(report.results[n].read_level, "read memory");
  }
  char *page = page_of(&report, NULL, &style);
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    snprintf(words, sizeof words, "aria-labelledby=\"plot-%s-title\"", names[n]);
    assert_has(page, words);
  }
  assert_null(strstr(page, "rgb("));
  assert_null(strstr(page, "class=\"plot own\""));
  assert_has(page, "stroke=\"var(--c2)\"");
  assert_sound(page);
  assert_asks_nobody(page);
  each_picture_has_a_name(page);
  free(page);
  report_destroy(&report);
}

static void a_failure_is_the_first_thing_said(void **state) {
  (void)state;
  report report;
  sample_whole_report(&report);
  report.results[3].state = RESULT_FAILED;
  strcpy(report.results[3].reason, "row 7 is wrong");
  report.interrupted = true;
  report.disturbance = (disturbance){.seconds = 10, .others_share = 0.2, .shortest_batch_seconds = 1};
  char *page = page_of(&report, NULL, NULL);
  const char *failed = strstr(page, "1 point FAILED"), *first_table = strstr(page, "<table");
  assert_true(failed && first_table && failed < first_table);
  assert_null(strstr(page, "Right: all"));
  assert_has(page, "<td class=\"bad\">FAILED</td><td>row 7 is wrong</td>");
  assert_has(page, "Interrupted: this is what was measured until then.");
  assert_has(page, "Other processes took 20% of the processors&#39; time.");
  assert_sound(page);
  free(page);
  report_destroy(&report);
}

/* ---- foreign text ---- */

static void spoil(report *report) {
  static const char evil[] = "<script>alert(1)</script>";
  result *first = &report->results[0];
  snprintf(first->variant, sizeof first->variant, "%s", evil);
  snprintf(first->name, sizeof first->name, "%s/full/B:1/H:8/Hkv:8/D:64/T:128", evil);
  snprintf(first->family, sizeof first->family, "%s/full/B:1/H:8/Hkv:8/D:64", evil);
  snprintf(report->growths[0].family, sizeof report->growths[0].family, "%s", first->family);
  snprintf(report->growths[0].variant, sizeof report->growths[0].variant, "%s", evil);
  strcpy(report->machine.cpu, "\"><img src=x onerror=alert(2)>");
  strcpy(report->machine.compiler, "gcc' onload='alert(3)");
  strcpy(report->executable, "</code><b>");
  strcpy(report->environment.facts[1], "attnbench bench --plugin '/tmp/a <b>.so' --pin --lengths 8");
  sample_unmeasured(report, "naive/full/B:1/H:8/Hkv:8/D:64/T:16384", 0, RESULT_FAILED,
                    "\xff\xfe bad \xc0\xaf bytes \x01 <i> & \xed\xa0\x80");
}

static void names_of_plugins_and_command_lines_stay_text(void **state) {
  (void)state;
  report report;
  sample_whole_report(&report);
  spoil(&report);
  char *page = page_of(&report, &report, has_gnuplot() ? &style : NULL);
  assert_int_equal(count(page, "<script>"), 1); /* ours */
  assert_null(strstr(page, "<img"));
  assert_null(strstr(page, "<b>"));
  assert_has(page, "&lt;script&gt;alert(1)&lt;/script&gt;");
  assert_has(page, "&quot;&gt;&lt;img src=x onerror=alert(2)&gt;");
  assert_has(page, "\xEF\xBF\xBD\xEF\xBF\xBD bad \xEF\xBF\xBD\xEF\xBF\xBD bytes \xEF\xBF\xBD &lt;i&gt; &amp; "
                   "\xEF\xBF\xBD");
  assert_has(page, " bench --plugin &#39;/tmp/a &lt;b&gt;.so&#39; --pin --variant "
                   "&#39;&lt;script&gt;alert(1)&lt;/script&gt;&#39; ");
  assert_sound(page);
  free(page);
  report_destroy(&report);
}

/* ---- pictures of somebody's own ---- */

/* NULL where it is refused; for the caller to free. */
static char *rewritten(const char *svg) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  const bool good = page_svg(out, svg, "own", "Mine & <yours>");
  fclose(out);
  if (!good) assert_int_equal(size, 0);
  if (good) return text;
  free(text);
  return NULL;
}

static void a_picture_brings_shapes_and_text_and_nothing_else(void **state) {
  (void)state;
  static const char *const refused[] = {"",
                                        "<p>text</p>",
                                        "<svg><script>alert(1)</script></svg>",
                                        "<svg><foreignObject/></svg>",
                                        "<svg><image href='a.png'/></svg>",
                                        "<svg><a href='x'/></svg>",
                                        "<svg><g></svg",
                                        "<svg><g x=1/></svg>",
                                        "<svg><g x='1/></svg>",
                                        "<svg/></svg>",
                                        "<svg><g></g>",
                                        "<svg><title>never ends</svg>"};
  for (size_t n = 0; n < sizeof refused / sizeof *refused; n++)
    if (rewritten(refused[n])) fail_msg("taken: %s", refused[n]);
  char *text = rewritten(
      "<?xml version='1.0'?><!-- c --><svg width='9' height='9' viewBox='0 0 9 9' onload='alert(1)'"
      " xmlns='http://www.w3.org/2000/svg'><title>Gnuplot</title><desc>d</desc>"
      "<rect id='a' width='9' fill='#FFFFFF' style='fill:url(http://x)' stroke='rgb(213,  94,   0)'/>"
      "<use xlink:href='#a' clip-path='url(#b)'/><use xlink:href='http://x/y'/>"
      "<path fill='url(http://x)'/><text>a &lt; b</text></svg>\n");
  assert_non_null(text);
  assert_string_equal(text,
                      "<svg class=\"plot\" role=\"img\" aria-labelledby=\"own-title\" viewBox=\"0 0 9 9\">"
                      "<title id=\"own-title\">Mine &amp; &lt;yours&gt;</title>"
                      "<rect id=\"own-a\" width=\"9\" fill=\"var(--paper)\" stroke=\"var(--c2)\"/>"
                      "<use href=\"#own-a\" clip-path=\"url(#own-b)\"/><use/>"
                      "<path/><text>a &lt; b</text></svg>");
  free(text);
}

static void a_picture_in_colours_of_its_own_keeps_them(void **state) {
  (void)state;
  char *text = rewritten("<svg><rect fill='#FFFFFF'/><path stroke='rgb(1, 2, 3)'/></svg>");
  assert_non_null(text);
  assert_has(text, "class=\"plot own\"");
  assert_has(text, "<rect fill=\"#FFFFFF\"/><path stroke=\"rgb(1, 2, 3)\"/>");
  free(text);
}

/* ---- a former run ---- */

static void slow_down(report *report, const char *variant, double factor) {
  for (size_t n = 0; n < report->result_count; n++) {
    result *result = &report->results[n];
    if (strcmp(result->variant, variant) != 0) continue;
    for (size_t i = 0; i < result->repetitions; i++) result->seconds[i] *= factor;
    result->seconds_median = statistics_median_interval(result->seconds, result->repetitions, 0.95);
  }
}

static void what_got_slower_is_called_so_and_the_rest_is_not(void **state) {
  (void)state;
  report before, now;
  sample_whole_report(&before);
  sample_whole_report(&now);
  char *page = page_of(&now, &before, NULL);
  assert_has(page, "Of 61 points that both timed, 0 slower, 0 faster, 61 not distinguishable.");
  assert_has(page, "Machine, settings and build are the same in both.");
  assert_sound(page);
  free(page);
  slow_down(&now, "fused", 1.2);  /* 7 points */
  slow_down(&now, "naive", 0.8);  /* 6 */
  slow_down(&now, "blas", 1.015); /* surely slower, and not by 2% */
  page = page_of(&now, &before, NULL);
  assert_has(page, "Of 61 points that both timed, 7 slower, 6 faster, 48 not distinguishable.");
  assert_int_equal(count(page, "<td class=\"bad\">SLOWER</td>"), 7);
  free(page);
  report_destroy(&before);
  report_destroy(&now);
}

static void no_ratio_is_given_across_machines(void **state) {
  (void)state;
  report before, now;
  sample_whole_report(&before);
  sample_whole_report(&now);
  strcpy(before.machine.cpu, "another");
  slow_down(&now, "fused", 2);
  char *page = page_of(&now, &before, NULL);
  assert_has(page, "These runs were made on different machines");
  assert_int_equal(count(page, "another machine</td>"), 61);
  assert_null(strstr(page, "SLOWER"));
  assert_null(strstr(page, ">2.00 ["));
  free(page);
  memcpy(before.machine.cpu, now.machine.cpu, sizeof before.machine.cpu);
  before.machine.threads = 4; /* a setting, not a machine: said, and compared */
  page = page_of(&now, &before, NULL);
  assert_has(page, "<th scope=\"row\">Threads</th><td>4</td><td>1</td>");
  assert_int_equal(count(page, "<td class=\"bad\">SLOWER</td>"), 7);
  free(page);
  report_destroy(&before);
  report_destroy(&now);
}

static void points_of_one_run_alone_are_said(void **state) {
  (void)state;
  report before, now;
  sample_report(&before, sample_variants, 2, 1024);
  sample_report(&now, sample_variants + 1, 2, 1024);
  now.results[0].state = RESULT_FAILED;
  strcpy(before.started, "2027-01-01T00:00:00+00:00");
  char *page = page_of(&now, &before, NULL);
  assert_int_equal(count(page, ">only before</td>"), 3);
  assert_int_equal(count(page, ">only now</td>"), 4);
  assert_int_equal(count(page, ">FAILED now</td>"), 1);
  assert_has(page, "are they the wrong way round?");
  assert_sound(page);
  free(page);
  report_destroy(&before);
  report_destroy(&now);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_point_is_there_with_what_repeats_it),
      cmocka_unit_test(pictures_stand_in_it_in_the_colours_of_the_page),
      cmocka_unit_test(a_failure_is_the_first_thing_said),
      cmocka_unit_test(names_of_plugins_and_command_lines_stay_text),
      cmocka_unit_test(a_picture_brings_shapes_and_text_and_nothing_else),
      cmocka_unit_test(a_picture_in_colours_of_its_own_keeps_them),
      cmocka_unit_test(what_got_slower_is_called_so_and_the_rest_is_not),
      cmocka_unit_test(no_ratio_is_given_across_machines),
      cmocka_unit_test(points_of_one_run_alone_are_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
