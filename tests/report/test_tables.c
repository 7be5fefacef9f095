/* Reports as tables for people and as records for programs: columns, widths, digits, marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "problem/workload_columns.h"
#include "report/format.h"
#include "tests/report/sample_report.h"

static int set_up(void **state) {
  report *whole = calloc(1, sizeof *whole);
  if (!whole) return -1;
  sample_whole_report(whole);
  *state = whole;
  return 0;
}

static int tear_down(void **state) {
  report_destroy(*state);
  free(*state);
  return 0;
}
/* Fields of the CSV record that begins at *at, which moves to the next; quotes may hold commas and newlines. */
static size_t count_fields(const char **at) {
  size_t fields = 1;
  bool quoted = false;
  for (; **at && (quoted || **at != '\n'); ++*at) {
    if (**at == '"') quoted = !quoted;
    fields += !quoted && **at == ',';
  }
  *at += **at == '\n';
  return fields;
}

/* Field number `wanted` of the record at `at`, without its quotes. */
static void read_field(const char *at, size_t wanted, char *field, size_t size) {
  bool quoted = false;
  size_t number = 0, used = 0;
  for (; *at && (quoted || *at != '\n') && number <= wanted; at++) {
    if (*at == '"') quoted = !quoted;
    number += !quoted && *at == ',';
    if (number == wanted && *at != '"' && (quoted || *at != ',') && used + 1 < size) field[used++] = *at;
  }
  field[used] = '\0';
}

static size_t column_named(const char *csv, const char *name) {
  char field[64];
  const char *at = csv;
  const size_t columns = count_fields(&at);
  for (size_t n = 0; n < columns; n++) {
    read_field(csv, n, field, sizeof field);
    if (strcmp(field, name) == 0) return n;
  }
  fail_msg("no column '%s'", name);
  return 0;
}

static void every_csv_record_has_as_many_fields_as_the_header(void **state) {
  const report *report = *state;
  char *text = sample_text(report, &sample_all_rows, "csv");
  const char *at = text;
  size_t columns = count_fields(&at), records = 0;
  assert_true(columns > 20 + WORKLOAD_COLUMNS);
  for (; *at; records++) assert_int_equal(count_fields(&at), columns);
  assert_int_equal(records, (report->result_count - 1) * (SAMPLE_REPETITIONS + 4) + 1);
  assert_non_null(strstr(text, "\"needs \"\"6 GiB\"\", has"));
  free(text);
}

static void csv_has_the_bytes_of_what_was_not_to_be_timed(void **state) {
  report *report = *state;
  result *one = &report->results[0];
  char field[64];
  one->state = RESULT_SKIPPED;
  one->memory_only = true;
  one->workspace_bytes = 4096;
  char *text = sample_text(report, &sample_all_rows, "csv");
  read_field(strstr(text, one->name) - 1, column_named(text, "workspace_bytes"), field, sizeof field);
  assert_string_equal(field, "4096");
  free(text);
}

/* Google Benchmark's come first, under its names. */
static void csv_rows_are_chosen_by_columns_and_no_name_is_read(void **state) {
  report *report = *state;
  static const char *const expected[][2] = {{"variant", "fused"},
                                            {"function", "softmax"},
                                            {"band", "full"},
                                            {"features", ""},
                                            {"B", "1"},
                                            {"H", "8"},
                                            {"Hkv", "8"},
                                            {"D", "64"},
                                            {"Dv", "64"},
                                            {"Tq", "4096"},
                                            {"Tk", "4096"},
                                            {"type", "f32"},
                                            {"layout", "bhtd"},
                                            {"seed", "1"},
                                            {"threads", "1"},
                                            {"isa", "avx512"},
                                            {"cpu", "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"},
                                            {"governor", "made, \"up\""},
                                            {"aggregate_name", "median"}};
  const report_options no_repetitions = {.aggregates = true};
  for (size_t n = 0; n < report->result_count; n++) strcpy(report->results[n].isa, "avx512");
  for (size_t n = 0; n < ENVIRONMENT_FACTS; n++) strcpy(report->environment.facts[n], "made, \"up\"");
  char *text = sample_text(report, &no_repetitions, "csv"), field[128], low[64], time[64], high[64];
  const char *row = strstr(text, "\"fused/full/B:1/H:8/Hkv:8/D:64/T:4096_median\"");
  assert_int_equal(strncmp(text, "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,", 62), 0);
  assert_non_null(row);
  for (size_t n = 0; n < sizeof expected / sizeof *expected; n++) {
    read_field(row, column_named(text, expected[n][0]), field, sizeof field);
    if (strcmp(expected[n][0], "governor") == 0)
      assert_string_equal(field, "made, up");
    else
      assert_string_equal(field, expected[n][1]);
  }
  read_field(row, column_named(text, "real_time_low"), low, sizeof low);
  read_field(row, column_named(text, "real_time"), time, sizeof time);
  read_field(row, column_named(text, "real_time_high"), high, sizeof high);
  const result *fused = sample_result(report, "fused/full/B:1/H:8/Hkv:8/D:64/T:4096");
  assert_true(fabs(strtod(low, NULL) - 1e9 * fused->seconds_median.low) < 1);
  assert_true(strtod(low, NULL) < strtod(time, NULL) && strtod(time, NULL) < strtod(high, NULL));
  free(text);
}

static void the_table_is_as_wide_as_its_contents_and_shows_reasons(void **state) {
  const report *report = *state;
  report_options options = {.aggregates = true};
  char *text = sample_text(report, &options, "console");
  const char *rule = strstr(text, "\n---"), *end = strstr(text, "\n\nGrowth");
  assert_non_null(rule);
  assert_non_null(end);
  size_t width = strcspn(rule + 1, "\n"), rows = 0;
  assert_true(width <= 126);
  for (const char *line = rule; line < end; line += 1 + strcspn(line + 1, "\n"), rows++) {
    const char *skipped = strstr(line, "SKIPPED"), *next = line + 1 + strcspn(line + 1, "\n");
    if (skipped && skipped < next) break; /* the last of its family; its reason may be of any length */
    assert_true(next - line - 1 <= (ptrdiff_t)width);
  }
  assert_true(rows > 20);
  assert_non_null(strstr(text, "SKIPPED: needs \"6 GiB\""));
  assert_non_null(strstr(text, "as declared"));
  assert_null(strchr(text, '\033'));
  free(text);
  options.color = true;
  text = sample_text(report, &options, "console");
  assert_non_null(strstr(text, "\033[32m"));
  free(text);
}

static void give_bytes(report *report) {
  for (size_t n = 0; n < report->result_count; n++) {
    result *result = &report->results[n];
    result->bytes = result->state == RESULT_MEASURED ? result->flops / 100 : 0;
    result->read_fraction = n % 2 ? 0.9 : 0.001;
    strcpy(result->read_level, "read L2");
  }
}

static size_t longest_line(const char *text, const char *end) {
  size_t longest = 0;
  for (const char *line = text; line < end; line += 1 + strcspn(line, "\n"))
    if (strcspn(line, "\n") > longest) longest = strcspn(line, "\n");
  return longest;
}

static void on_a_terminal_of_80_columns_the_table_fits(void **state) {
  report *report = *state;
  const report_options wide = {.brief = true}, narrow = {.brief = true, .width = 80};
  report->result_count--; /* whose reason may be of any length */
  give_bytes(report);
  char *text = sample_text(report, &wide, "console");
  assert_true(longest_line(strstr(text, "\n---"), strstr(text, "Peak: share")) > 80);
  assert_non_null(strstr(text, "fused/full/B:1/H:8/Hkv:8/D:64/T:4096 "));
  free(text);
  text = sample_text(report, &narrow, "console");
  if (longest_line(strstr(text, "\n---") + 1, strstr(text, "\nChecked")) > 80) fail_msg("%s", text);
  assert_non_null(strstr(text, "\nfused/full/B:1/H:8/Hkv:8/D:64/T:4096\n    416 ms "));
  assert_non_null(strstr(text, "\n  time           1.99 [1.97, 2.01]   2   as declared"));
  report->result_count++;
  free(text);
}

/* Of two points side by side one is limited by each. */
static void the_share_that_limits_has_a_star(void **state) {
  report *report = *state;
  const report_options one_row = {.brief = true};
  give_bytes(report);
  char *console = sample_text(report, &one_row, "console"),
       *csv = sample_text(report, &sample_all_rows, "csv");
  char field[64];
  size_t seen[2] = {0};
  for (size_t n = 0; n < report->result_count - 1; n++) {
    const result *result = &report->results[n];
    const result_limit expected =
        result->peak_fraction >= result->read_fraction ? LIMIT_MULTIPLY_ADDS : LIMIT_READS;
    char name[WORKLOAD_NAME_BYTES + 16];
    snprintf(name, sizeof name, "\n%s ", result->name);
    const char *row = strstr(console, name), *star = row ? strchr(row, '*') : NULL;
    if (!star) {
      fail_msg("%s has no star", result->name);
      return;
    }
    const bool is_first = strchr(star, '%') < strchr(star + 1, '\n') && strchr(star, '%') != NULL;
    assert_int_equal(is_first, expected == LIMIT_MULTIPLY_ADDS);
    snprintf(name, sizeof name, "\"%s_median\"", result->name);
    read_field(strstr(csv, name), column_named(csv, "limited_by"), field, sizeof field);
    assert_string_equal(field, expected == LIMIT_READS ? "read L2" : "multiply-adds");
    seen[expected == LIMIT_READS]++;
  }
  assert_true(seen[0] > 5 && seen[1] > 5);
  assert_non_null(strstr(console, "once. *: the larger of the two, which limits."));
  free(console);
  free(csv);
}

/* Five repetitions within 1 %: a fourth digit would be noise. */
static void the_table_shows_no_more_digits_than_the_interval_supports(void **state) {
  const report *report = *state;
  report_options options = {.aggregates = true};
  char *text = sample_text(report, &options, "console");
  const char *row = strstr(text, "fused/full/B:1/H:8/Hkv:8/D:64/T:4096_median");
  assert_non_null(row);
  assert_non_null(strstr(row, "416 ms"));
  free(text);
}

/* An interval the wrong way round says nothing of how well a number is known. */
static void digits_follow_from_the_interval(void **state) {
  (void)state;
  assert_int_equal(format_digits(105, 2), 3);
  assert_int_equal(format_digits(105, 20), 2);
  assert_int_equal(format_digits(105, 0), 4);
  assert_int_equal(format_digits(105, INFINITY), 3);
  assert_int_equal(format_digits(105, -2), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(digits_follow_from_the_interval),
      cmocka_unit_test_setup_teardown(csv_has_the_bytes_of_what_was_not_to_be_timed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(every_csv_record_has_as_many_fields_as_the_header, set_up, tear_down),
      cmocka_unit_test_setup_teardown(csv_rows_are_chosen_by_columns_and_no_name_is_read, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_table_is_as_wide_as_its_contents_and_shows_reasons, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(on_a_terminal_of_80_columns_the_table_fits, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_share_that_limits_has_a_star, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_table_shows_no_more_digits_than_the_interval_supports, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
