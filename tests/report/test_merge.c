/* One report of several: hosts stay apart, shares are of each one's own peak, and what does not belong together is refused. */
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

#include "measure/shard.h"
#include "report/merge.h"
#include "tests/report/sample_report.h"
#include "tests/shell.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench "
#define FOLDER ATTN_BUILD_DIR "/tests/merge"

enum { PARTS = 3 };
static const char *const files[] = {FOLDER "/a.json", FOLDER "/b.json", FOLDER "/c.json"};

static bool is_long(const result *result) { return result->workload.key_length >= 4096; }

/* Long points are of shard 2. */
static void plan_sample(report *report, int shard) {
  sweep_plan *plan = &report->plan;
  *plan = (sweep_plan){.shard = shard, .shards = 2, .interface = 2};
  snprintf(plan->version, sizeof plan->version, "1.2.3 (commit abc)");
  snprintf(plan->options, sizeof plan->options, "min_time 0.05");
  plan->points = calloc(report->result_count, sizeof *plan->points);
  plan->declared = calloc(SAMPLE_VARIANTS, sizeof *plan->declared);
  if (!plan->points || !plan->declared) abort();
  for (size_t n = 0; n < report->result_count; n++) {
    memcpy(plan->points[n].name, report->results[n].name, sizeof plan->points[n].name);
    plan->points[n].shard = is_long(&report->results[n]) ? 2 : 1;
  }
  plan->point_count = report->result_count;
  for (int v = 0; v < SAMPLE_VARIANTS; v++) {
    snprintf(plan->declared[v].variant, sizeof plan->declared[v].variant, "%s", sample_variants[v].name);
    plan->declared[v].time_exponent = sample_variants[v].exponent;
    plan->declared[v].workspace_exponent = sample_variants[v].workspace_exponent;
  }
  plan->declared_count = SAMPLE_VARIANTS;
}

/* Shard 1, 2, or 0: both, as another host would have them that measured all of it. */
static void make_part(report *report, const char *host, int shard) {
  size_t kept = 0;
  sample_report(report, sample_variants, SAMPLE_VARIANTS, 128);
  plan_sample(report, shard ? shard : 1);
  snprintf(report->machine.host, sizeof report->machine.host, "%s", host);
  for (size_t n = 0; n < report->result_count; n++) {
    result *one = &report->results[n];
    if (shard && (is_long(one) ? 2 : 1) != shard) {
      free(one->seconds);
      free(one->cpu_seconds);
    } else {
      report->results[kept++] = *one;
    }
  }
  report->result_count = kept;
  if (shard) report->growth_count = 0;
  for (size_t n = 0; !shard && n < report->plan.point_count; n++) report->plan.points[n].shard = 1;
  if (!shard) report->plan.shards = 1;
}

static void write_part(report *report, int file) {
  char why[512];
  assert_true(report_write(report, &sample_all_rows, "json", files[file], why, sizeof why));
  report_destroy(report);
}

static bool merge(report *merged, int count, char *why, size_t why_size) {
  const text_list paths = {(char **)(uintptr_t)files, (size_t)count};
  return merge_reports(merged, &paths, why, why_size);
}

static int make_folder(void **state) {
  (void)state;
  return shell("rm -rf " FOLDER " && mkdir -p " FOLDER);
}

/* Host x has shard 1 and 2, of which the second saw a peak twice as high. */
static void merge_one_host(report *merged) {
  report part;
  char why[1024];
  make_part(&part, "x", 1);
  write_part(&part, 0);
  make_part(&part, "x", 2);
  part.machine.peaks[2].median *= 2;
  for (size_t n = 0; n < part.result_count; n++) part.results[n].peak_fraction /= 2;
  write_part(&part, 1);
  if (!merge(merged, 2, why, sizeof why)) fail_msg("%s", why);
}

static void two_hosts(report *merged) {
  report part;
  char why[1024];
  make_part(&part, "x", 0);
  write_part(&part, 0);
  make_part(&part, "y/2 ", 0); /* a name that would be parts of a problem */
  for (size_t n = 0; n < part.result_count; n++) {
    result *one = &part.results[n];
    for (size_t r = 0; r < one->repetitions; r++) one->seconds[r] *= 10;
    one->seconds_median.estimate *= 10;
    one->seconds_median.low *= 10;
    one->seconds_median.high *= 10;
    one->flops_per_second /= 10;
  }
  for (size_t n = 0; n < part.machine.peak_count; n++) part.machine.peaks[n].median /= 10;
  write_part(&part, 1);
  if (!merge(merged, 2, why, sizeof why)) fail_msg("%s", why);
}

static char *summary_of(const report *report) {
  char *text = NULL;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  assert_non_null(file);
  report_summary(report, NULL, file);
  fclose(file);
  return text;
}

static void says(const report *report, const char *words) {
  char *text = summary_of(report);
  if (!strstr(text, words)) fail_msg("'%s' is missing from:\n%s", words, text);
  free(text);
}

static void shards_of_one_host_are_its_whole_sweep(void **state) {
  (void)state;
  report merged, whole;
  merge_one_host(&merged);
  sample_report(&whole, sample_variants, SAMPLE_VARIANTS, 128);
  assert_int_equal(merged.result_count, whole.result_count);
  for (size_t n = 0; n < whole.result_count; n++) {
    char name[WORKLOAD_NAME_BYTES];
    const result *one = &whole.results[n];
    snprintf(name, sizeof name, "%s/host:x/%.1000s", one->variant, result_problem(one->name));
    const result *found = sample_result(&merged, name);
    assert_int_equal(found->family_index, one->family_index);
    assert_int_equal(found->instance_index, one->instance_index);
    assert_true(fabs(found->seconds_median.estimate / one->seconds_median.estimate - 1) < 1e-9);
  }
  assert_int_equal(merged.growth_count, SAMPLE_VARIANTS);
  assert_true(fabs(merged.growths[0].time.estimate - 2) < 0.1);
  assert_int_equal(merged.growths[0].time_declared, 2);
  says(&merged, "Merged: 2 runs on 1 host, 61 of 61 points\n");
  report_destroy(&whole);
  report_destroy(&merged);
}

static void shares_are_of_the_highest_peak_of_the_host(void **state) {
  (void)state;
  report merged;
  merge_one_host(&merged);
  for (size_t n = 0; n < merged.result_count; n++) {
    const result *one = &merged.results[n];
    assert_true(fabs(one->peak_fraction * 210e9 / one->flops_per_second - 1) < 1e-9);
  }
  report_destroy(&merged);
}

static void hosts_are_compared_by_their_shares_alone(void **state) {
  (void)state;
  report merged;
  two_hosts(&merged);
  assert_int_equal(merged.result_count, 122);
  assert_int_equal(merged.growth_count, 2 * SAMPLE_VARIANTS); /* each host's own */
  assert_int_equal(merged.run_count, 2);
  says(&merged, "Merged: 2 runs on 2 hosts, 61 of 61 points, 61 of them on more than one host\n");
  says(&merged, "fused/full/B:1/H:8/Hkv:8/D:64/T:8192:  x 79%  y-2- 79%\n");
  says(&merged, "\nx: Intel");
  says(&merged, "\ny-2-: Intel");
  /* Ten times as slow as on x, so that it would never be the fastest if x were looked at. */
  says(&merged, "Fastest exact variant on host:y-2-/full/B:1/H:8/Hkv:8/D:64/T:4096: fused, 8.26 GFLOP/s, "
                "79% of the peak, 73 times as fast as naive");
  says(&merged, "linear against fused: ahead at every measured T from 128 to 8192");
  report_destroy(&merged);
}

static void a_merged_report_is_read_back_as_it_was(void **state) {
  (void)state;
  report merged, read;
  char why[1024];
  two_hosts(&merged);
  assert_true(report_write(&merged, &sample_all_rows, "json", FOLDER "/merged.json", why, sizeof why));
  if (!report_read(&read, FOLDER "/merged.json", why, sizeof why)) fail_msg("%s", why);
  char *before = summary_of(&merged), *after = summary_of(&read);
  assert_string_equal(before, after);
  free(before);
  free(after);
  before = sample_text(&merged, &sample_all_rows, "json");
  after = sample_text(&read, &sample_all_rows, "json");
  assert_int_equal(read.run_count, 2);
  assert_string_equal(read.runs[1].host, "y-2-");
  assert_true(strstr(before, "\"host_name\": \"x\"") && strstr(after, "\"host_name\": \"x\""));
  free(before);
  free(after);
  report_destroy(&read);
  report_destroy(&merged);
}

static void what_is_missing_is_named_with_its_shard(void **state) {
  (void)state;
  report part, merged;
  char why[1024];
  make_part(&part, "x", 1);
  for (size_t n = 0; n < 2; n++) { /* an interrupted run */
    free(part.results[part.result_count - 1].seconds);
    free(part.results[--part.result_count].cpu_seconds);
  }
  part.interrupted = true;
  write_part(&part, 0);
  assert_true(merge(&merged, 1, why, sizeof why));
  says(&merged, "Missing: naive/full/B:1/H:8/Hkv:8/D:64/T:4096 (shard 2/2)\n");
  says(&merged, "Missing: grouped_query/full/B:1/H:8/Hkv:2/D:64/T:2048 (shard 1/2)\n");
  says(&merged, "Run again: --shard 1/2, --shard 2/2\n");
  says(&merged, "Beware of shard 1/2: it was interrupted.\n");
  report_destroy(&merged);
}

static void a_point_that_two_hosts_have_of_a_shared_sweep_is_named(void **state) {
  (void)state;
  report part, merged;
  char why[1024];
  make_part(&part, "x", 1);
  write_part(&part, 0);
  make_part(&part, "y", 1);
  write_part(&part, 1);
  make_part(&part, "y", 2);
  write_part(&part, 2);
  assert_true(merge(&merged, PARTS, why, sizeof why));
  says(&merged, "On more than one host: naive/full/B:1/H:8/Hkv:8/D:64/T:128 (x, y)\n");
  report_destroy(&merged);
}

static void seed_differs(report *report) { report->seed++; }
static void interface_differs(report *report) { report->plan.interface = 3; }
static void commit_differs(report *report) { report->plan.version[15] = 'x'; }
static void options_differ(report *report) { report->plan.options[0] = 'M'; }
static void points_differ(report *report) { report->plan.point_count--; }
static void processor_differs(report *report) { report->machine.cpu[0] = 'X'; }
static void threads_differ(report *report) { report->machine.threads++; }
static void says_no_sweep(report *report) { report->plan.point_count = 0; }
static void has_points_of_the_other(report *report) {
  report_destroy(report);
  make_part(report, "x", 1);
}

static void what_does_not_belong_together_is_refused_in_a_sentence(void **state) {
  (void)state;
  static const struct {
    void (*change)(report *report);
    const char *words;
  } cases[] = {{seed_differs, "seed 1 against 2"},
               {interface_differs, "interface 2 against 3"},
               {commit_differs, "(commit abc) against"},
               {options_differ, "options 'min_time 0.05' against 'Min_time 0.05'"},
               {points_differ, "points differ"},
               {processor_differs, "both of host 'x'"},
               {threads_differ, "both of host 'x'"},
               {says_no_sweep, "does not say which sweep"},
               {has_points_of_the_other, "leave one of them out"}};
  report part, merged;
  char why[1024];
  make_part(&part, "x", 1);
  write_part(&part, 0);
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    make_part(&part, "x", 2);
    cases[n].change(&part);
    write_part(&part, 1);
    assert_false(merge(&merged, 2, why, sizeof why));
    if (!strstr(why, cases[n].words) || strchr(why, '\n')) fail_msg("case %zu: %s", n, why);
  }
}

static void the_command_refuses_with_status_2_and_writes_nothing(void **state) {
  (void)state;
  report merged;
  merge_one_host(&merged);
  report_destroy(&merged);
  static const char *const wrong[][2] = {{"a.json a.json --out out.json", "leave one of them out"},
                                         {"a.json b.json --out a.json", "would replace a report"},
                                         {"none.json --out out.json", "cannot be read"},
                                         {". --out out.json", "neither a results.json nor"},
                                         {"text --out out.json", "not sound JSON"},
                                         {"other.json --out out.json", "not a report of attnbench"},
                                         {"half.json --out out.json", "half.json:"},
                                         {"a.json b.json --out none/out.json", "--out none/out.json"},
                                         {"--out out.json", "merge needs reports"}};
  assert_int_equal(
      shell("cd " FOLDER " && echo words >text && echo '{\"context\": {}}' >other.json && "
            "head -c 3000 a.json >half.json && echo before >out.json && cksum * >../merge.before"),
      0);
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    char command[512];
    snprintf(command, sizeof command, "cd " FOLDER " && " PROGRAM "merge %s", wrong[n][0]);
    shell_expect(command, 2, wrong[n][1]);
    assert_int_equal(strncmp(shell_output, "attnbench: ", 11), 0);
    assert_ptr_equal(strchr(shell_output, '\n'), strrchr(shell_output, '\n'));
  }
  shell_expect("cd " FOLDER " && cksum * | cmp - ../merge.before", 0, NULL);
  shell_expect("cd " FOLDER " && " PROGRAM "merge a.json b.json --out out.json && " PROGRAM "merge out.json",
               2, "is merged already");
}

static void a_folder_of_shards_is_merged_into_itself_again_and_again(void **state) {
  (void)state;
  report merged;
  merge_one_host(&merged);
  report_destroy(&merged);
  shell_expect("cd " FOLDER " && mkdir -p 'run[1]'/shard-1-of-2 'run[1]'/shard-2-of-2 && cp a.json "
               "'run[1]'/shard-1-of-2/results.json && cp b.json 'run[1]'/shard-2-of-2/results.json",
               0, NULL);
  for (int time = 0; time < 2; time++)
    shell_expect("cd " FOLDER " && " PROGRAM "merge 'run[1]' --out 'run[1]' --scripts /nowhere 2>/dev/null",
                 0, "61 of 61 points");
  shell_expect("head -1 "
               "'" FOLDER "/run[1]/summary.txt'",
               0, "Merged: 2 runs on 1 host");
}

static void shards_that_time_other_variants_are_refused(void **state) {
  (void)state;
  shell_expect(
      "cd " FOLDER
      " && bench='bench --variant fused,naive --lengths 16,32 --benchmark_dry_run --threads 1 --quiet "
      "--out timed' && " PROGRAM "$bench --shard 1/2 --memory-only naive >/dev/null && " PROGRAM
      "$bench --shard 2/2 >/dev/null && " PROGRAM "merge timed",
      2, "are not of one sweep: options");
  if (!strstr(shell_output, ", memory only naive' against")) fail_msg("%s", shell_output);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shards_of_one_host_are_its_whole_sweep),
      cmocka_unit_test(shares_are_of_the_highest_peak_of_the_host),
      cmocka_unit_test(hosts_are_compared_by_their_shares_alone),
      cmocka_unit_test(a_merged_report_is_read_back_as_it_was),
      cmocka_unit_test(what_is_missing_is_named_with_its_shard),
      cmocka_unit_test(a_point_that_two_hosts_have_of_a_shared_sweep_is_named),
      cmocka_unit_test(what_does_not_belong_together_is_refused_in_a_sentence),
      cmocka_unit_test(the_command_refuses_with_status_2_and_writes_nothing),
      cmocka_unit_test(a_folder_of_shards_is_merged_into_itself_again_and_again),
      cmocka_unit_test(shards_that_time_other_variants_are_refused),
  };
  return cmocka_run_group_tests_name("merge", tests, make_folder, NULL);
}
