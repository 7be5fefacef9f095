/* Labels find their places, and every kind of report can be drawn. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/picture.h"
#include "tests/measure/simulated_sweeps.h"
#include "tests/report/sample_report.h"

static const plot_style style = {.scripts = ATTN_SOURCE_DIR "/scripts/plots"};

static const char *const pictures[] = {"time.png",     "time.svg",     "workspace.png", "workspace.svg",
                                       "flops.png",    "flops.svg",    "error.png",     "error.svg",
                                       "roofline.png", "roofline.svg", "pairs.png",     "pairs.svg"};
/* Pairs are drawn where there are patterns. */
enum { ALL_FILES = sizeof pictures / sizeof pictures[0], PICTURE_FILES = ALL_FILES - 2 };

static plot_line line_between(double x0, double y0, double x1, double y1, const char *label) {
  static double numbers[PLOT_MAX_LINES][4];
  static size_t next;
  double *x = numbers[next++ % PLOT_MAX_LINES];
  plot_line line = {.style = 1, .count = 2, .x = x, .y = x + 2};
  x[0] = x0, x[1] = x1, x[2] = y0, x[3] = y1;
  snprintf(line.label, sizeof line.label, "%s", label);
  return line;
}

static const plot_axes axes = {
    .x_low = 100, .x_high = 10000, .y_low = 1, .y_high = 10000, .y_logarithmic = true, .width = 0.7};

static void labels_that_have_room_stand_at_the_ends_of_their_lines(void **state) {
  (void)state;
  plot_line lines[] = {line_between(100, 1, 1000, 10, "low"), line_between(100, 10, 1000, 1000, "high")};
  plot_place_labels(lines, 2, &axes);
  for (size_t i = 0; i < 2; i++) {
    assert_true(fabs(lines[i].end_x - 0.5) < 1e-12);
    assert_true(fabs(lines[i].label_y - lines[i].end_y) < 1e-12);
    assert_true(lines[i].label_x > 0.5 && lines[i].label_x < 0.55);
  }
}

static void labels_never_stand_on_one_another_and_keep_their_order(void **state) {
  (void)state;
  plot_line lines[PLOT_MAX_LINES];
  for (size_t i = 0; i < PLOT_MAX_LINES - 4; i++)
    lines[i] = line_between(100, 5, 10000, 9000 - 2 * (double)i, "crowded at the top");
  plot_place_labels(lines, PLOT_MAX_LINES - 4, &axes);
  for (size_t i = 0; i < PLOT_MAX_LINES - 4; i++) {
    assert_true(lines[i].label_y > 0 && lines[i].label_y < 1);
    if (i > 0) assert_true(lines[i - 1].label_y - lines[i].label_y > 0.04);
  }
}

static void a_label_that_a_line_would_cross_moves_to_the_right(void **state) {
  (void)state;
  plot_line lines[] = {line_between(100, 1, 1000, 100, "short"),
                       line_between(100, 100, 10000, 100, "crosses")};
  plot_place_labels(lines, 2, &axes);
  assert_true(lines[0].label_x > 1);
  assert_true(fabs(lines[0].label_y - lines[1].label_y) > 0.04);
}

static void families_are_told_apart_by_what_differs(void **state) {
  (void)state;
  const char *const families[] = {"fused/full/B:1/H:8/D:64", "fused/causal/B:1/H:8/D:64",
                                  "blas/full/B:1/H:8/D:64"};
  char names[3][PLOT_LABEL_BYTES], text[256];
  plot_name_families(families, 3, names);
  assert_string_equal(names[0], "fused full");
  assert_string_equal(names[1], "fused causal");
  assert_string_equal(names[2], "blas");
  plot_common_parts(families, names, 3, text, sizeof text);
  assert_string_equal(text, "full, B 1, H 8, D 64");
  plot_special_parts(families, names, 3, text, sizeof text);
  assert_string_equal(text, "");
  /* More than half see the same, but all say what they see. */
  const char *const patterns[] = {"sparse/full/B:1/H:8", "sparse/causal/B:1/H:8",
                                  "sparse/causal/B:1/H:8/docs:9"};
  plot_name_families(patterns, 3, names);
  assert_string_equal(names[1], "sparse causal");
  plot_common_parts(patterns, names, 3, text, sizeof text);
  assert_string_equal(text, "B 1, H 8");
}

/* ---- with gnuplot ---- */

static bool has_gnuplot(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s", getenv("PATH") ? getenv("PATH") : "");
  for (char *save = NULL, *folder = strtok_r(path, ":", &save); folder; folder = strtok_r(NULL, ":", &save)) {
    char program[4200];
    snprintf(program, sizeof program, "%s/gnuplot", folder);
    if (access(program, X_OK) == 0) return true;
  }
  return false;
}

static void make_folder(char folder[32]) {
  snprintf(folder, 32, "/tmp/attnbench-XXXXXX");
  assert_non_null(mkdtemp(folder));
}

/* Draws, then removes the pictures and the folder, in which nothing else may be left. */
static void assert_draws(const report *report, size_t expected) {
  char folder[32], path[64], why[512] = "";
  size_t drawn = 0;
  if (!has_gnuplot()) skip();
  make_folder(folder);
  if (!report_plot(report, &style, folder, why, sizeof why)) fail_msg("%s", why);
  for (size_t i = 0; i < PICTURE_FILES; i++) {
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, pictures[i]);
    if (stat(path, &status) == 0 && status.st_size > 1000) drawn++;
    unlink(path);
  }
  assert_int_equal(rmdir(folder), 0);
  assert_int_equal(drawn, expected);
}

/* A report whose points know what they move. */
static void sample_with_bytes(report *report, const sample_variant *variants, size_t count, int shortest) {
  sample_report(report, variants, count, shortest);
  for (size_t n = 0; n < report->result_count; n++) {
    result *result = &report->results[n];
    result->bytes = workload_moved_bytes(&result->workload);
    result->read_fraction = 0.1;
    strcpy(result->read_level, "read L1");
  }
}

static void a_sweep_is_drawn(void **state) {
  (void)state;
  report report;
  sample_with_bytes(&report, sample_variants, SAMPLE_VARIANTS, 128);
  assert_draws(&report, PICTURE_FILES);
  report_destroy(&report);
}

static void a_single_length_and_a_single_family_are_drawn(void **state) {
  (void)state;
  report report;
  sample_variant one = sample_variants[3];
  one.longest = 1024;
  sample_with_bytes(&report, &one, 1, 1024);
  assert_draws(&report, PICTURE_FILES);
  report_destroy(&report);
}

/* No memory, no verified errors and no peaks: what is left is drawn. */
static void pictures_without_data_are_left_out(void **state) {
  (void)state;
  report report;
  sample_report(&report, sample_variants, SAMPLE_VARIANTS, 1024);
  report.machine.peak_count = 0;
  report.machine.sgemm.median = 0;
  for (size_t i = 0; i < report.result_count; i++) {
    report.results[i].memory_bytes = 0;
    report.results[i].error_bound_fraction = NAN;
  }
  assert_draws(&report, 4);
  report_destroy(&report);
}

/* Points of the picture, each of which gnuplot draws as a use of a shape. */
static size_t count_points(const report *report, const char *picture) {
  char folder[32], path[64], why[512] = "", line[4096];
  size_t points = 0;
  if (!has_gnuplot()) skip();
  make_folder(folder);
  if (!report_plot(report, &style, folder, why, sizeof why)) fail_msg("%s", why);
  snprintf(path, sizeof path, "%s/%s", folder, picture);
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file))
    for (const char *at = line; (at = strstr(at, "' transform='translate(")); at++) points++;
  if (file) fclose(file);
  for (size_t i = 0; i < ALL_FILES; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, pictures[i]);
    unlink(path);
  }
  assert_int_equal(rmdir(folder), 0);
  return points;
}

static void every_point_is_drawn(void **state) {
  (void)state;
  enum { LENGTHS = 100 };
  const simulated_family family = {.name = "dense", .power = 1};
  int64_t lengths[LENGTHS];
  report report;
  uint64_t place = 0;
  for (int n = 0; n < LENGTHS; n++) lengths[n] = INT64_C(64) * (n + 1);
  simulated_create(&report, &family, 1, lengths, LENGTHS, 6);
  simulated_draw(&report, &family, 6, 0.01, &place);
  assert_int_equal(count_points(&report, "time.svg"), LENGTHS);
  report_destroy(&report);
}

static void give_pattern(report *report, int family) {
  for (size_t n = 0; n < report->result_count; n++) {
    workload *w = &report->results[n].workload;
    if (report->results[n].family_index != family) continue;
    w->term_count = 1;
    w->terms[0] = (attn_term){.kind = ATTN_STRIDED, .a = 8};
  }
}

static void patterns_are_drawn_against_their_pairs(void **state) {
  (void)state;
  report report;
  sample_report(&report, &sample_variants[3], 1, 1024);
  assert_int_equal(count_points(&report, "pairs.svg"), 0);
  give_pattern(&report, 0);
  assert_int_equal(count_points(&report, "pairs.svg"), report.result_count);
  report_destroy(&report);
}

static void an_error_of_nothing_has_a_place(void **state) {
  (void)state;
  report report;
  sample_report(&report, &sample_variants[3], 1, 1024);
  report.results[0].error_bound_fraction = 0;
  assert_int_equal(count_points(&report, "error.svg"), report.result_count);
  for (size_t n = 0; n < report.result_count; n++) report.results[n].error_bound_fraction = 0;
  assert_int_equal(count_points(&report, "error.svg"), report.result_count);
  report_destroy(&report);
}

static void odd_characters_reach_the_picture_as_text(void **state) {
  (void)state;
  report report;
  sample_with_bytes(&report, sample_variants, 1, 1024);
  snprintf(report.machine.cpu, sizeof report.machine.cpu, "it's a \"cpu\" {x^2} `date` $(date) %%s \\n");
  assert_draws(&report, PICTURE_FILES);
  report_destroy(&report);
}

/* ---- the style ---- */

/* All labels of all pictures end within the picture, and no two stand on one another, at a font for the last row of a hall. */
static void nothing_is_cut_at_large_fonts(void **state) {
  (void)state;
  report report;
  families families;
  picture *picture = calloc(1, sizeof *picture);
  sample_with_bytes(&report, sample_variants, SAMPLE_VARIANTS, 128);
  give_pattern(&report, 3);
  double *numbers = calloc(picture_numbers(&report), sizeof *numbers);
  assert_true(picture && numbers);
  picture_find_families(&report, &families, PLOT_MAX_LINES);
  for (int kind = 0; kind < PICTURES; kind++) {
    *picture = (struct picture){.kind = (picture_kind)kind,
                                .report = &report,
                                .families = &families,
                                .numbers = numbers,
                                .axes.scale = 26.0 / 17};
    assert_true(picture_make(picture));
    const plot_axes *at = &picture->axes;
    for (size_t n = 0; n < picture->count + picture->machine_count; n++) {
      const plot_line *line = &picture->lines[n];
      const double end = at->left + at->width * line->label_x + plot_label_width(at, line->label);
      if (end > 1) fail_msg("'%s' ends at %g of the picture", line->label, end);
      for (size_t other = 0; line->label_x > 1 && other < n; other++)
        if (picture->lines[other].label_x > 1)
          assert_true(fabs(picture->lines[other].label_y - line->label_y) > 0.99 * plot_label_height(at));
    }
  }
  free(numbers);
  free(picture);
  report_destroy(&report);
}

/* The whole text of a picture that is drawn in this style. */
static char *svg_of(const report *report, plot_style wanted, const char *name) {
  static const char *const svg[] = {"svg"};
  char folder[32], path[64], why[512] = "", *text = NULL;
  size_t size = 0;
  if (!has_gnuplot()) skip();
  wanted.scripts = style.scripts;
  wanted.formats = svg;
  wanted.format_count = 1;
  make_folder(folder);
  if (!report_plot(report, &wanted, folder, why, sizeof why)) fail_msg("%s", why);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_true(getdelim(&text, &size, '\0', file) > 0);
  fclose(file);
  for (size_t i = 0; i < PICTURE_FILES; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, pictures[i]);
    unlink(path);
  }
  assert_int_equal(rmdir(folder), 0); /* and no PNG */
  return text;
}

static void assert_shows(const char *svg, const char *text) {
  if (!strstr(svg, text)) fail_msg("the picture does not say '%s'", text);
}

static void a_picture_says_what_disturbed_it_and_shows_intervals(void **state) {
  (void)state;
  report report;
  sample_with_bytes(&report, &sample_variants[3], 1, 1024);
  char *quiet = svg_of(&report, style, "time.svg");
  assert_null(strstr(quiet, "Disturbed"));
  assert_shows(quiet, "Time against sequence length");
  assert_shows(quiet, "full, B 1, H 8, Hkv 8, D 64, float32");
  assert_shows(quiet, "Platinum 8481C");
  /* Of a point amid others, so that the axes stay as they are. */
  report.results[1].seconds_median.low *= 0.7;
  report.results[1].seconds_median.high *= 1.3;
  char *doubtful = svg_of(&report, style, "time.svg");
  assert_true(strcmp(quiet, doubtful) != 0);
  report.disturbance = (disturbance){60, 0, 0.25, 0, 50e-9, 0.05};
  char *disturbed = svg_of(&report, style, "time.svg");
  assert_shows(disturbed, "Disturbed: Other processes took 25% of the processors");
  free(quiet);
  free(doubtful);
  free(disturbed);
  report_destroy(&report);
}

/* Dots are shorter. */
static int dashed_lines(const char *svg) {
  static const char words[] = "stroke-dasharray='";
  int count = 0;
  for (const char *at = svg; (at = strstr(at, words)); at += sizeof words - 1)
    count += strtod(at + sizeof words - 1, NULL) > 4;
  return count;
}

static void more_lines_than_colours_are_told_apart(void **state) {
  (void)state;
  enum { MANY = 12, COLOURS = 10 };
  sample_variant many[MANY];
  char names[MANY][8];
  for (int n = 0; n < MANY; n++) {
    many[n] = sample_variants[3];
    snprintf(names[n], sizeof names[n], "v%d", n);
    many[n].name = names[n];
  }
  int dashed[2];
  for (int all = 0; all < 2; all++) {
    report report;
    sample_with_bytes(&report, many, all ? MANY : COLOURS, 1024);
    char *svg = svg_of(&report, style, "flops.svg");
    dashed[all] = dashed_lines(svg);
    free(svg);
    report_destroy(&report);
  }
  assert_int_equal(dashed[1], dashed[0] + MANY - COLOURS);
}

/* 1.0 T and 1.2 T would both be 1 T. */
static void an_axis_of_rates_names_no_two_the_same(void **state) {
  (void)state;
  report report;
  sample_with_bytes(&report, &sample_variants[3], 1, 1024);
  report.machine.peaks[2].median = report.machine.peaks[2].high = 1.09e12;
  char *svg = svg_of(&report, style, "flops.svg");
  assert_shows(svg, ">1.0 T");
  assert_shows(svg, ">1.2 T");
  free(svg);
  report_destroy(&report);
}

/* As with AMX: on an axis from 0 what is held to the lower peak would lie on one line. */
static void an_axis_of_peaks_far_apart_is_logarithmic(void **state) {
  (void)state;
  for (int times = 2; times <= 16; times *= 8) {
    report report;
    sample_with_bytes(&report, &sample_variants[3], 1, 1024);
    machine *machine = &report.machine;
    machine_rate *narrow = &machine->peaks[machine->peak_count++];
    *narrow = (machine_rate){.name = "avx512_amx", .type = ATTN_BFLOAT16};
    narrow->median = narrow->low = narrow->high = times * machine->peaks[2].median;
    snprintf(report.isa, sizeof report.isa, "avx512_amx");
    for (size_t n = 0; n < report.result_count; n++) report.results[n].workload.type = ATTN_BFLOAT16;
    char *svg = svg_of(&report, style, "flops.svg");
    assert_int_equal(strstr(svg, ">0 <") != NULL || strstr(svg, ">0.0 <") != NULL, times == 2);
    free(svg);
    report_destroy(&report);
  }
}

static void decoding_says_its_queries_and_has_keys_on_the_axis(void **state) {
  (void)state;
  report report;
  sample_with_bytes(&report, &sample_variants[3], 1, 1024);
  for (size_t n = 0; n < report.result_count; n++) {
    report.results[n].swept = SWEPT_KEYS;
    report.results[n].workload.query_length = 1;
  }
  report.growths[0].swept = SWEPT_KEYS;
  char *svg = svg_of(&report, (plot_style){.title = "For my talk", .font_size = 26}, "time.svg");
  assert_shows(svg, "For my talk");
  assert_shows(svg, "Time against key length, Tq = 1");
  assert_shows(svg, "key length Tk (tokens), Tq = 1");
  free(svg);
  report_destroy(&report);
}

static void a_format_is_drawn_where_it_is_asked_for(void **state) {
  (void)state;
  static const char *const pdf[] = {"pdf"};
  const plot_style printed = {.scripts = style.scripts, .formats = pdf, .format_count = 1};
  report report;
  char folder[32], path[64], why[512] = "", start[8] = "";
  static const char *const files[] = {"time.pdf", "workspace.pdf", "flops.pdf", "error.pdf", "roofline.pdf"};
  if (!has_gnuplot()) skip();
  sample_with_bytes(&report, &sample_variants[3], 1, 1024);
  make_folder(folder);
  if (!report_plot(&report, &printed, folder, why, sizeof why)) fail_msg("%s", why);
  for (size_t n = 0; n < sizeof files / sizeof *files; n++) {
    snprintf(path, sizeof path, "%s/%s", folder, files[n]);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(start, 1, 5, file), 5);
    assert_string_equal(start, "%PDF-");
    fclose(file);
    unlink(path);
  }
  assert_int_equal(rmdir(folder), 0);
  report_destroy(&report);
}

static void what_keeps_pictures_from_being_drawn_is_said(void **state) {
  (void)state;
  report report, empty;
  char why[512] = "", folder[32];
  sample_report(&report, sample_variants, 1, 1024);
  memset(&empty, 0, sizeof empty);
  make_folder(folder);
  assert_false(report_plot(&empty, &style, folder, why, sizeof why));
  assert_string_equal(why, "nothing was measured, so there is nothing to draw");
  assert_false(report_plot(&report, &style, "/nowhere", why, sizeof why));
  assert_string_equal(why, "cannot write pictures into '/nowhere': No such file or directory");
  assert_false(report_plot(&report, &(plot_style){.scripts = "/nowhere"}, folder, why, sizeof why));
  assert_non_null(strstr(why, "/nowhere/time.gp"));
  const char *was = getenv("PATH");
  char *path = strdup(was ? was : "");
  setenv("PATH", folder, 1);
  assert_false(report_plot(&report, &style, folder, why, sizeof why));
  assert_string_equal(why, "gnuplot was not found; apt-get install gnuplot-nox");
  setenv("PATH", path, 1);
  free(path);
  assert_int_equal(rmdir(folder), 0); /* nothing was left behind */
  report_destroy(&report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(labels_that_have_room_stand_at_the_ends_of_their_lines),
      cmocka_unit_test(labels_never_stand_on_one_another_and_keep_their_order),
      cmocka_unit_test(a_label_that_a_line_would_cross_moves_to_the_right),
      cmocka_unit_test(families_are_told_apart_by_what_differs),
      cmocka_unit_test(a_sweep_is_drawn),
      cmocka_unit_test(a_single_length_and_a_single_family_are_drawn),
      cmocka_unit_test(pictures_without_data_are_left_out),
      cmocka_unit_test(every_point_is_drawn),
      cmocka_unit_test(patterns_are_drawn_against_their_pairs),
      cmocka_unit_test(an_error_of_nothing_has_a_place),
      cmocka_unit_test(odd_characters_reach_the_picture_as_text),
      cmocka_unit_test(nothing_is_cut_at_large_fonts),
      cmocka_unit_test(a_picture_says_what_disturbed_it_and_shows_intervals),
      cmocka_unit_test(more_lines_than_colours_are_told_apart),
      cmocka_unit_test(an_axis_of_rates_names_no_two_the_same),
      cmocka_unit_test(an_axis_of_peaks_far_apart_is_logarithmic),
      cmocka_unit_test(decoding_says_its_queries_and_has_keys_on_the_axis),
      cmocka_unit_test(a_format_is_drawn_where_it_is_asked_for),
      cmocka_unit_test(what_keeps_pictures_from_being_drawn_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
