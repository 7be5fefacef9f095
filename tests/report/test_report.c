/* Reports into files and back: what is written can be read again, by us and by Google Benchmark's tools,
 * and what cannot be read or written is said in one sentence and harms nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "problem/workload_columns.h"
#include "report/format.h"
#include "tests/report/sample_report.h"

typedef struct fixture {
  report report;
  char folder[32], path[64];
} fixture;

static int set_up(void **state) {
  fixture *fixture = calloc(1, sizeof *fixture);
  if (!fixture) return -1;
  sample_whole_report(&fixture->report);
  strcpy(fixture->folder, "/tmp/attnbench-XXXXXX");
  if (!mkdtemp(fixture->folder)) return -1;
  snprintf(fixture->path, sizeof fixture->path, "%s/report.json", fixture->folder);
  *state = fixture;
  return 0;
}

static int tear_down(void **state) {
  fixture *fixture = *state;
  report_destroy(&fixture->report);
  unlink(fixture->path);
  rmdir(fixture->folder);
  free(fixture);
  return 0;
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

static void assert_near(double a, double b) {
  if (isnan(a) && isnan(b)) return;
  if (!(fabs(a - b) <= 1e-12 * fabs(b))) fail_msg("%.17g is not %.17g", a, b);
}

static void assert_same_result(const result *a, const result *b) {
  assert_string_equal(a->name, b->name);
  assert_string_equal(a->family, b->family);
  assert_string_equal(a->variant, b->variant);
  assert_string_equal(a->reason, b->reason);
  assert_int_equal(a->state, b->state);
  assert_int_equal(a->family_index, b->family_index);
  assert_int_equal(a->workload.key_length, b->workload.key_length);
  assert_int_equal(a->repetitions, b->repetitions);
  assert_int_equal(a->iterations, b->iterations);
  for (int part = 0; part < FORMAT_MEMORY_PARTS; part++)
    assert_int_equal(format_memory(a, part), format_memory(b, part));
  assert_int_equal(a->rows_checked, b->rows_checked);
  for (size_t i = 0; i < a->repetitions; i++) {
    assert_near(a->seconds[i], b->seconds[i]);
    assert_near(a->cpu_seconds[i], b->cpu_seconds[i]);
  }
  assert_near(a->seconds_median.low, b->seconds_median.low);
  assert_near(a->flops_per_second, b->flops_per_second);
  assert_near(a->peak_fraction, b->peak_fraction);
  assert_near(a->error_bound_fraction, b->error_bound_fraction);
}

static void context_from_the_command_line_is_kept_and_takes_no_key_of_ours(void **state) {
  fixture *fixture = *state;
  static const char *const pairs[] = {"commit=1a2b", "note=a=b"};
  const report_options all = {.repetitions = true};
  fixture->report.context = pairs;
  fixture->report.context_count = 2;
  char *json = sample_text(&fixture->report, &all, "json"),
       *console = sample_text(&fixture->report, &all, "console");
  assert_non_null(strstr(json, "\"commit\": \"1a2b\""));
  assert_non_null(strstr(json, "\"note\": \"a=b\""));
  assert_non_null(strstr(console, "commit: 1a2b\nnote: a=b\n"));
  assert_true(report_json_has_context("date") && report_json_has_context("stolen_share") &&
              report_json_has_context("command_line"));
  assert_true(report_json_has_context("host")); /* of each run that a report was merged from */
  assert_false(report_json_has_context("commit"));
  free(json);
  free(console);
}

static void a_report_that_is_written_reads_back_the_same(void **state) {
  fixture *fixture = *state;
  fixture->report.disturbance = (disturbance){90, 1234, 0.25, 0.015625, 50e-9, 0.05};
  fixture->report.growths[0].has_instructions = true;
  fixture->report.growths[0].instructions = (interval){1.99, 1.98, 2.0};
  fixture->report.growths[0].blocks = 6;
  fixture->report.growths[1].has_time = false;
  fixture->report.growths[1].is_hidden = true;
  fixture->report.growths[0].time_varying = 0.015;
  strcpy(fixture->report.instructions_isa, "avx2");
  strcpy(fixture->report.environment.facts[3], "libgomp.so.1");
  strcpy(fixture->report.results[0].isa, "avx2");
  fixture->report.results[1].swept = fixture->report.growths[1].swept = SWEPT_KEYS;
  fixture->report.results[1].bytes = 4096;
  fixture->report.results[1].read_fraction = 0.25;
  strcpy(fixture->report.results[1].read_level, "read L1");
  const report *before = &fixture->report;
  report after;
  char why[256] = "";
  assert_true(report_write(before, &sample_all_rows, "json", fixture->path, why, sizeof why));
  if (!report_read(&after, fixture->path, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(after.result_count, before->result_count);
  assert_int_equal(after.growth_count, before->growth_count);
  for (size_t i = 0; i < before->result_count; i++)
    assert_same_result(sample_result(&after, before->results[i].name), &before->results[i]);
  for (size_t i = 0; i < before->growth_count; i++) {
    assert_string_equal(after.growths[i].family, before->growths[i].family);
    assert_int_equal(after.growths[i].has_time, before->growths[i].has_time);
    assert_int_equal(after.growths[i].is_hidden, before->growths[i].is_hidden);
    assert_near(after.growths[i].workspace.estimate, before->growths[i].workspace.estimate);
    if (!after.growths[i].has_time) continue;
    assert_near(after.growths[i].time.low, before->growths[i].time.low);
    assert_near(after.growths[i].time_law.constant, before->growths[i].time_law.constant);
    assert_near(after.growths[i].time_law.coefficient, before->growths[i].time_law.coefficient);
    assert_near(after.growths[i].time_law.exponent, before->growths[i].time_law.exponent);
    assert_near(after.growths[i].time_coefficient, before->growths[i].time_coefficient);
    assert_near(after.growths[i].time_rms, before->growths[i].time_rms);
  }
  assert_true(after.growths[0].has_instructions && !after.growths[1].has_instructions);
  assert_near(after.growths[0].instructions.low, before->growths[0].instructions.low);
  assert_near(after.growths[0].time_varying, before->growths[0].time_varying);
  assert_int_equal(after.growths[0].blocks, before->growths[0].blocks);
  assert_string_equal(after.instructions_isa, "avx2");
  assert_near(after.disturbance.others_share, before->disturbance.others_share);
  assert_near(after.disturbance.clock_step_seconds, before->disturbance.clock_step_seconds);
  assert_int_equal(after.disturbance.involuntary_switches, before->disturbance.involuntary_switches);
  assert_true(after.machine.optimised);
  assert_string_equal(after.machine.cpu, before->machine.cpu);
  assert_int_equal(after.machine.l3_bytes, before->machine.l3_bytes);
  assert_int_equal(after.machine.peak_count, before->machine.peak_count);
  assert_near(after.machine.sgemm.median, before->machine.sgemm.median);
  assert_int_equal(after.seed, before->seed);
  assert_string_equal(after.environment.facts[3], "libgomp.so.1");
  assert_string_equal(after.results[0].isa, "avx2");
  assert_int_equal(after.results[1].swept, SWEPT_KEYS);
  assert_int_equal(after.growths[1].swept, SWEPT_KEYS);
  assert_near(after.results[1].bytes, 4096);
  assert_near(after.results[1].read_fraction, 0.25);
  assert_string_equal(after.results[1].read_level, "read L1");
  report_destroy(&after);
}

static void the_device_is_kept_and_told(void **state) {
  fixture *fixture = *state;
  report_options options = {.aggregates = true, .time_unit = "ms"};
  report after;
  char why[256] = "", *said;
  size_t size;
  machine *machine = &fixture->report.machine;
  machine->device =
      (attn_device_facts){"Toy 9000", 90, 132, (size_t)80 << 30, (size_t)50 << 20, 232448, 13010, 13000};
  machine->state = (attn_device_state){1410, 1980, 71, "its power limit"};
  assert_true(report_write(&fixture->report, &options, "json", fixture->path, why, sizeof why));
  if (!report_read(&after, fixture->path, why, sizeof why)) fail_msg("%s", why);
  assert_memory_equal(&after.machine.device, &machine->device, sizeof machine->device);
  assert_near(after.machine.state.clock_mhz, 1410);
  assert_near(after.machine.state.celsius, 71);
  assert_string_equal(after.machine.state.throttled, "its power limit");
  FILE *out = open_memstream(&said, &size);
  report_console(&after, &options, out);
  fclose(out);
  if (!strstr(said, "on Toy 9000, 132 multiprocessors, sm_90") ||
      !strstr(said,
              "Toy 9000 was slowed down by its power limit: 1410 of 1980 MHz at the least, 71 degrees."))
    fail_msg("%s", said);
  free(said);
  report_destroy(&after);
  machine->device.name[0] = machine->state.throttled[0] = '\0';
}

static void aggregates_alone_keep_the_medians(void **state) {
  fixture *fixture = *state;
  report_options options = {.aggregates = true, .time_unit = "ms"};
  report after;
  char why[256] = "";
  assert_true(report_write(&fixture->report, &options, "json", fixture->path, why, sizeof why));
  if (!report_read(&after, fixture->path, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(after.result_count, fixture->report.result_count);
  for (size_t i = 0; i < after.result_count; i++) {
    const result *before = sample_result(&fixture->report, after.results[i].name);
    if (before->state != RESULT_MEASURED) continue;
    assert_near(after.results[i].seconds_median.estimate, before->seconds_median.estimate);
    assert_near(after.results[i].seconds_median.high, before->seconds_median.high);
    assert_near(after.results[i].peak_fraction, before->peak_fraction);
  }
  report_destroy(&after);
}

/* What compare.py and others look for; the names are Google Benchmark's. */
static void every_row_has_the_keys_of_the_schema(void **state) {
  fixture *fixture = *state;
  static const char *const context_keys[] = {
      "date",   "host_name",           "executable", "num_cpus",           "mhz_per_cpu",
      "caches", "cpu_scaling_enabled", "load_avg",   "library_build_type", "json_schema_version"};
  static const char *const row_keys[] = {
      "name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "threads"};
  char *text = sample_text(&fixture->report, &sample_all_rows, "json");
  json_t *root = json_loads(text, 0, NULL), *row;
  assert_non_null(root);
  for (size_t i = 0; i < sizeof context_keys / sizeof *context_keys; i++)
    assert_non_null(json_object_get(json_object_get(root, "context"), context_keys[i]));
  size_t index, big_o = 0, skipped = 0;
  json_array_foreach(json_object_get(root, "benchmarks"), index, row) {
    for (size_t i = 0; i < sizeof row_keys / sizeof *row_keys; i++)
      assert_non_null(json_object_get(row, row_keys[i]));
    const char *aggregate = json_string_value(json_object_get(row, "aggregate_name"));
    skipped += json_is_true(json_object_get(row, "skipped"));
    if (aggregate && strcmp(aggregate, "RMS") == 0) continue;
    assert_non_null(json_object_get(row, "time_unit"));
    if (aggregate && strcmp(aggregate, "BigO") == 0) {
      big_o++;
      assert_non_null(json_object_get(row, "cpu_coefficient"));
      assert_non_null(json_object_get(row, "big_o"));
      assert_non_null(json_object_get(row, "time_exponent_low"));
    } else {
      assert_non_null(json_object_get(row, "real_time"));
      assert_non_null(json_object_get(row, "cpu_time"));
    }
  }
  assert_int_equal(big_o, SAMPLE_VARIANTS);
  assert_int_equal(skipped, 1);
  json_decref(root);
  free(text);
}

static void numbers_that_are_not_finite_are_left_out(void **state) {
  fixture *fixture = *state;
  fixture->report.results[0].error_bound_fraction = NAN;
  fixture->report.results[1].error_bound_fraction = INFINITY;
  fixture->report.results[2].peak_fraction = NAN;
  report after;
  char why[256] = "";
  assert_true(report_write(&fixture->report, &sample_all_rows, "json", fixture->path, why, sizeof why));
  if (!report_read(&after, fixture->path, why, sizeof why)) fail_msg("%s", why);
  assert_true(isnan(after.results[0].error_bound_fraction));
  assert_true(isnan(after.results[2].peak_fraction));
  report_destroy(&after);
}

static void text_that_is_not_utf8_does_not_spoil_the_file(void **state) {
  fixture *fixture = *state;
  strcpy(fixture->report.machine.cpu, "caf\xe9");
  report after;
  char why[256] = "";
  assert_true(report_write(&fixture->report, &sample_all_rows, "json", fixture->path, why, sizeof why));
  if (!report_read(&after, fixture->path, why, sizeof why)) fail_msg("%s", why);
  assert_string_equal(after.machine.cpu, "caf?");
  report_destroy(&after);
}

/* ---- files that are not ours, or no longer whole ---- */

static void assert_refused(const fixture *fixture, const char *text, const char *expected) {
  report after;
  char why[512] = "";
  write_text(fixture->path, text);
  assert_false(report_read(&after, fixture->path, why, sizeof why));
  if (!strstr(why, fixture->path) || !strstr(why, expected) || strchr(why, '\n'))
    fail_msg("'%s' should name the file and say '%s' in one line", why, expected);
  assert_int_equal(after.result_count, 0);
}

/* The report with the first occurrence of one text replaced by another. */
static void assert_change_refused(const fixture *fixture, const char *from, const char *to,
                                  const char *expected) {
  char *text = sample_text(&fixture->report, &sample_all_rows, "json"), *at = strstr(text, from);
  size_t size = strlen(text) + strlen(to) + 1;
  char *changed = malloc(size);
  assert_non_null(at);
  assert_non_null(changed);
  snprintf(changed, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  assert_refused(fixture, changed, expected);
  free(changed);
  free(text);
}

static void files_that_are_not_ours_are_refused_in_a_sentence(void **state) {
  const fixture *fixture = *state;
  assert_refused(fixture, "", "not sound JSON");
  assert_refused(fixture, "hello", "not sound JSON");
  assert_refused(fixture, "[1, 2]", "not a report of attnbench");
  assert_refused(fixture, "{\"context\": {}, \"benchmarks\": []}", "not a report of attnbench");
  assert_refused(fixture, "{\"context\": {\n\"attnbench_schema_version\": 1}}",
                 ":2: was written in schema version 1");
}

static void changed_files_are_refused_in_a_sentence(void **state) {
  const fixture *fixture = *state;
  assert_change_refused(fixture, "\"cpu\": \"Intel", "\"cpu\": 7, \"was\": \"Intel",
                        "lacks the text \"cpu\"");
  assert_change_refused(fixture, "\"seed\": \"1\"", "\"seed\": \"x\"", "\"seed\" is not a whole number: 'x'");
  assert_change_refused(fixture, "\"time_unit\": \"ns\"", "\"time_unit\": \"h\"", "must be ns, us, ms or s");
  assert_change_refused(fixture, "\"real_time\"", "\"unreal_time\"", "lacks the number \"real_time\"");
  assert_change_refused(
      fixture, "\"flops\": ", "\"flops\": -1, \"was\": ", "\"flops_per_second\" must not be negative");
  assert_change_refused(fixture, "\"flops_per_second\": ", "\"flops_per_second\": -1, \"was\": ",
                        "\"flops_per_second\" must not be negative");
  assert_change_refused(fixture, "\"peak_fraction\": ", "\"peak_fraction\": -1, \"was\": ",
                        "a share of a peak or of a bound must not be negative");
  assert_change_refused(fixture, "\"family_index\": 0", "\"family_index\": 999999999",
                        "\"family_index\" must be 0 to");
  assert_change_refused(fixture, "\"family_index\": 0", "\"family_index\": -1",
                        "\"family_index\" must be 0 to");
  assert_change_refused(fixture, "\"run_name\": \"naive/full/", "\"run_name\": \"naive/fool/",
                        "does not name a workload");
  assert_change_refused(fixture, "\"run_name\": \"naive/full/B:1/H:8/Hkv:8/D:64/T:128\"",
                        "\"run_name\": \"naive\"", "does not name a benchmark");
  assert_change_refused(fixture, "\"run_name\": \"naive", "\"ran_name\": \"naive",
                        "entry 0 of \"benchmarks\" has no name");
  assert_change_refused(fixture, "T:128_mean\",", "T:128_mean\", \"run_name\": 7, \"x\": [],",
                        "not sound JSON");
  assert_change_refused(fixture, "\"name\": \"naive/full/B:1/H:8/Hkv:8/D:64/T:128_mean\"", "\"name\": 7",
                        "entry 5 of \"benchmarks\" has no name");
  assert_change_refused(fixture, "\"benchmarks\"", "\"bookmarks\"", "lacks the list \"benchmarks\"");
}

static void a_file_that_is_cut_off_anywhere_is_refused(void **state) {
  const fixture *fixture = *state;
  char *text = sample_text(&fixture->report, &sample_all_rows, "json");
  size_t length = strlen(text);
  for (size_t part = 1; part < 40; part++) {
    char *cut = strndup(text, length * part / 40);
    assert_refused(fixture, cut, "not sound JSON");
    free(cut);
  }
  free(text);
}

static void a_missing_file_and_a_folder_are_refused(void **state) {
  const fixture *fixture = *state;
  report after;
  char why[512] = "";
  assert_false(report_read(&after, "/nowhere/report.json", why, sizeof why));
  assert_string_equal(why, "/nowhere/report.json: cannot be read: No such file or directory");
  assert_false(report_read(&after, fixture->folder, why, sizeof why));
  assert_non_null(strstr(why, "Is a directory"));
}

/* ---- writing ---- */

static void a_write_that_fails_keeps_the_old_file(void **state) {
  const fixture *fixture = *state;
  char why[512] = "", line[32] = "";
  write_text(fixture->path, "the old file");
  /* A disk that fills up, made from a limit on the size of files. */
  struct rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  small = before;
  small.rlim_cur = 8192;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  bool written = report_write(&fixture->report, &sample_all_rows, "json", fixture->path, why, sizeof why);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  assert_false(written);
  assert_non_null(strstr(why, fixture->path));
  assert_non_null(strstr(why, "File too large"));
  FILE *file = fopen(fixture->path, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  assert_string_equal(line, "the old file");
  unlink(fixture->path);
  assert_int_equal(rmdir(fixture->folder), 0); /* nothing else was left behind */
  assert_int_equal(mkdir(fixture->folder, 0700), 0);
}

static void places_that_cannot_be_written_are_said(void **state) {
  const fixture *fixture = *state;
  char why[512] = "";
  assert_false(
      report_write(&fixture->report, &sample_all_rows, "json", "/nowhere/report.json", why, sizeof why));
  assert_string_equal(why, "cannot write '/nowhere/report.json': No such file or directory");
  assert_false(report_write(&fixture->report, &sample_all_rows, "csv", fixture->folder, why, sizeof why));
  assert_non_null(strstr(why, "Is a directory"));
  assert_false(report_write(&fixture->report, &sample_all_rows, "csv", "/dev/full", why, sizeof why));
  assert_string_equal(why, "cannot write '/dev/full': No space left on device");
  assert_false(report_write(&fixture->report, &sample_all_rows, "xml", fixture->path, why, sizeof why));
  assert_string_equal(why, "unknown format 'xml': json, csv, console, summary or html");
  assert_int_not_equal(access(fixture->path, F_OK), 0);
}

static void every_json_row_has_the_columns_of_its_problem(void **state) {
  fixture *fixture = *state;
  char *text = sample_text(&fixture->report, &sample_all_rows, "json");
  json_t *root = json_loads(text, 0, NULL), *row;
  size_t index;
  json_array_foreach(json_object_get(root, "benchmarks"), index, row) {
    const char *aggregate = json_string_value(json_object_get(row, "aggregate_name"));
    if (aggregate && (strcmp(aggregate, "BigO") == 0 || strcmp(aggregate, "RMS") == 0)) continue;
    assert_true(json_is_string(json_object_get(row, "variant")) && json_object_get(row, "isa"));
    for (int n = 0; n < WORKLOAD_COLUMNS; n++)
      assert_int_equal(json_is_integer(json_object_get(row, workload_columns[n].key)),
                       workload_columns[n].is_number);
  }
  json_decref(root);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_report_that_is_written_reads_back_the_same, set_up, tear_down),
      cmocka_unit_test_setup_teardown(context_from_the_command_line_is_kept_and_takes_no_key_of_ours, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(aggregates_alone_keep_the_medians, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_device_is_kept_and_told, set_up, tear_down),
      cmocka_unit_test_setup_teardown(every_row_has_the_keys_of_the_schema, set_up, tear_down),
      cmocka_unit_test_setup_teardown(numbers_that_are_not_finite_are_left_out, set_up, tear_down),
      cmocka_unit_test_setup_teardown(text_that_is_not_utf8_does_not_spoil_the_file, set_up, tear_down),
      cmocka_unit_test_setup_teardown(files_that_are_not_ours_are_refused_in_a_sentence, set_up, tear_down),
      cmocka_unit_test_setup_teardown(changed_files_are_refused_in_a_sentence, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_file_that_is_cut_off_anywhere_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_missing_file_and_a_folder_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_write_that_fails_keeps_the_old_file, set_up, tear_down),
      cmocka_unit_test_setup_teardown(places_that_cannot_be_written_are_said, set_up, tear_down),
      cmocka_unit_test_setup_teardown(every_json_row_has_the_columns_of_its_problem, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
