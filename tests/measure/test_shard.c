/* Parts of a sweep: every point in one of them, the same whoever asks, and what is compared never parted. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/shard.h"
#include "tests/shell.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench "

enum { LENGTHS = 7, SHAPES = 3, VARIANTS = 4, POINTS = LENGTHS * SHAPES * VARIANTS };

static const bench_options usual = {
    .min_time = 0.05, .least_time = 0.5, .point_budget = 1, .point_limit = 8, .precision = 0.01};

static const attn_variant variants[VARIANTS] = {
    {.name = "a"}, {.name = "b"}, {.name = "c", .function = ATTN_LINEAR}, {.name = "d"}};

/* Each variant over shapes and lengths from 128 on, as a sweep lists them. */
static void add_points(bench_point points[POINTS]) {
  size_t count = 0;
  for (int v = 0; v < VARIANTS; v++)
    for (int shape = 0; shape < SHAPES; shape++)
      for (int length = 0; length < LENGTHS; length++) {
        bench_point *point = &points[count++];
        *point = (bench_point){.variant = &variants[v], .workload = workload_default()};
        point->workload.function = variants[v].function;
        point->workload.kv_heads = INT64_C(4) >> shape;
        point->workload.query_length = point->workload.key_length = INT64_C(128) << length;
      }
}

static void every_point_is_in_one_shard_for_any_number_of_shards(void **state) {
  (void)state;
  bench_point points[POINTS];
  add_points(points);
  for (int shards = 1; shards <= 2 * POINTS; shards++) {
    int of_point[POINTS] = {0}, again[POINTS] = {0};
    assert_true(shard_assign(points, POINTS, &usual, shards, of_point));
    assert_true(shard_assign(points, POINTS, &usual, shards, again));
    for (size_t n = 0; n < POINTS; n++) {
      assert_in_range(of_point[n], 1, shards);
      assert_int_equal(of_point[n], again[n]);
    }
  }
}

static void points_of_the_same_sizes_stay_together(void **state) {
  (void)state;
  bench_point points[POINTS];
  add_points(points);
  for (int shards = 1; shards <= 30; shards++) {
    int of_point[POINTS];
    assert_true(shard_assign(points, POINTS, &usual, shards, of_point));
    for (size_t n = 0; n < POINTS; n++)
      assert_int_equal(of_point[n], of_point[n % ((size_t)SHAPES * LENGTHS)]);
  }
}

static void groups_that_take_as_long_are_dealt_out_evenly(void **state) {
  (void)state;
  bench_point points[POINTS];
  bench_options timed = usual;
  timed.least_time = 1e6; /* which all points take */
  add_points(points);
  for (int shards = 1; shards <= SHAPES * LENGTHS; shards++) {
    int of_point[POINTS], groups[SHAPES * LENGTHS + 1] = {0};
    assert_true(shard_assign(points, POINTS, &timed, shards, of_point));
    for (size_t n = 0; n < (size_t)SHAPES * LENGTHS; n++) groups[of_point[n]]++;
    for (int k = 1; k <= shards; k++) {
      assert_true(groups[k] >= SHAPES * LENGTHS / shards);
      assert_true(groups[k] <= (SHAPES * LENGTHS + shards - 1) / shards);
    }
  }
}

/* At T = 8192 a point takes some 30 s, and all shorter ones of its shape together some 13: shared out over the other two
 * shards, they take less. */
static void the_longest_points_have_a_shard_to_themselves(void **state) {
  (void)state;
  bench_point points[POINTS];
  int of_point[POINTS];
  add_points(points);
  assert_true(shard_assign(points, POINTS, &usual, 5, of_point));
  for (size_t shape = 0; shape < SHAPES; shape++)
    for (size_t n = 0; n < (size_t)SHAPES * LENGTHS; n++)
      if (n != shape * LENGTHS + LENGTHS - 1)
        assert_int_not_equal(of_point[n], of_point[shape * LENGTHS + LENGTHS - 1]);
}

static void a_machine_of_any_speed_would_measure_the_same(void **state) {
  (void)state;
  bench_point points[POINTS];
  int of_point[POINTS], of_threads[POINTS];
  bench_options other = usual;
  other.threads = 64;
  other.isa = "neon";
  other.seed = 7;
  add_points(points);
  assert_true(shard_assign(points, POINTS, &usual, 5, of_point));
  assert_true(shard_assign(points, POINTS, &other, 5, of_threads));
  assert_memory_equal(of_point, of_threads, sizeof of_point);
}

static void the_program_lists_each_point_in_one_shard(void **state) {
  (void)state;
  shell_expect("list='" PROGRAM
               "bench --lengths 64:512 --benchmark_list_tests'; $list | sort >" ATTN_BUILD_DIR
               "/tests/whole.txt; test $(wc -l <" ATTN_BUILD_DIR
               "/tests/whole.txt) -gt 20 && for k in 1 2 3 4 5; do $list --shard $k/5; done | sort | "
               "cmp - " ATTN_BUILD_DIR "/tests/whole.txt",
               0, NULL);
}

static void a_shard_without_points_is_an_empty_report(void **state) {
  (void)state;
  shell_expect("rm -rf " ATTN_BUILD_DIR "/tests/empty*; " PROGRAM
               "bench --variant naive --lengths 16 --shard 2/2 --quiet --benchmark_out " ATTN_BUILD_DIR
               "/tests/empty.json >/dev/null",
               0, "shard 2/2 is empty");
  shell_expect(PROGRAM "merge " ATTN_BUILD_DIR "/tests/empty.2-of-2.json", 0,
               "0 of 1 points\nMissing: naive/full/B:1/H:4/Hkv:4/D:64/T:16 (shard 1/2)\n");
}

static void a_shard_that_cannot_be_is_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {"0/0",  "0/3",  "4/3",    "1/",           "/3",    "3",
                                      "1/3x", "a/3",  "-1/3",   "1/-3",         "1/2/3", "99999999999/3",
                                      "1/0",  " 1/3", "auto/3", "100001/100001"};
  char why[512];
  shard shard;
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    assert_false(shard_parse(wrong[n], &shard, why, sizeof why));
    if (!strstr(why, "K/N") || !strstr(why, wrong[n])) fail_msg("%s: %s", wrong[n], why);
  }
  assert_true(shard_parse("3/8", &shard, why, sizeof why));
  assert_int_equal(shard.index, 3);
  assert_int_equal(shard.count, 8);
  shell_expect("echo before >" ATTN_BUILD_DIR "/tests/kept.json; " PROGRAM
               "bench --variant naive --lengths 16 --shard 3/2 --benchmark_out " ATTN_BUILD_DIR
               "/tests/kept.json",
               2, "attnbench: --shard takes K/N");
  shell_expect("cat " ATTN_BUILD_DIR "/tests/kept.json", 0, "before");
}

typedef struct launched {
  const char *variables[8]; /* name and value in turn */
  const char *shard;        /* "K/N", or words of why there is none */
} launched;

static void clear_launcher(void) {
  static const char *const names[] = {
      "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",      "PMI_SIZE",
      "SLURM_PROCID",         "SLURM_NTASKS",         "SLURM_STEP_ID", "SLURM_ARRAY_TASK_ID"};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) unsetenv(names[n]);
}

static void auto_takes_the_rank_that_the_launcher_gave(void **state) {
  (void)state;
  static const launched cases[] = {
      {{"OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "4"}, "1/4"},
      {{"PMI_RANK", "2", "PMI_SIZE", "3"}, "3/3"},
      {{"SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_STEP_ID", "0"}, "2/2"},
      {{"SLURM_PROCID", "0", "SLURM_NTASKS", "2"}, "neither mpirun nor srun"}, /* a batch script */
      {{"SLURM_PROCID", "0", "SLURM_NTASKS", "1", "SLURM_STEP_ID", "0", "SLURM_ARRAY_TASK_ID", "3"},
       "give --shard 3/N"},
      {{"OMPI_COMM_WORLD_RANK", "4", "OMPI_COMM_WORLD_SIZE", "4"}, "are no rank and size"},
      {{"PMI_RANK", "x", "PMI_SIZE", "3"}, "are no rank and size"},
      {{"OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "PMI_RANK", "0", "PMI_SIZE", "9"}, "2/2"},
      {{NULL}, "neither mpirun nor srun"},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char said[512];
    shard shard;
    clear_launcher();
    for (size_t v = 0; v < 8 && cases[n].variables[v]; v += 2)
      setenv(cases[n].variables[v], cases[n].variables[v + 1], 1);
    if (shard_parse("auto", &shard, said, sizeof said))
      snprintf(said, sizeof said, "%d/%d", shard.index, shard.count);
    if (!strstr(said, cases[n].shard)) fail_msg("case %zu: '%s', not '%s'", n, said, cases[n].shard);
  }
  clear_launcher();
}

static void the_first_of_those_that_were_started_speaks_for_all(void **state) {
  (void)state;
  static const launched cases[] = {{{"OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "4"}, "first"},
                                   {{"OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "4"}, "other"},
                                   {{"PMI_RANK", "2", "PMI_SIZE", "3"}, "other"},
                                   {{"SLURM_PROCID", "1", "SLURM_NTASKS", "2"}, "first"}, /* a batch script */
                                   {{NULL}, "first"}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    clear_launcher();
    for (size_t v = 0; v < 8 && cases[n].variables[v]; v += 2)
      setenv(cases[n].variables[v], cases[n].variables[v + 1], 1);
    assert_string_equal(shard_is_first() ? "first" : "other", cases[n].shard);
  }
  clear_launcher();
}

static void files_are_named_by_shard(void **state) {
  (void)state;
  static const char *const names[][2] = {{"results.json", "results.3-of-8.json"},
                                         {"a.b/out", "a.b/out.3-of-8"},
                                         {"../x/.hidden", "../x/.hidden.3-of-8"},
                                         {"r.tar.gz", "r.tar.3-of-8.gz"}};
  const shard third = {3, 8};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    char *named = shard_file(names[n][0], third);
    assert_string_equal(named, names[n][1]);
    free(named);
  }
  char *folder = shard_folder("results/run", third);
  assert_string_equal(folder, "results/run/shard-3-of-8");
  free(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_point_is_in_one_shard_for_any_number_of_shards),
      cmocka_unit_test(points_of_the_same_sizes_stay_together),
      cmocka_unit_test(groups_that_take_as_long_are_dealt_out_evenly),
      cmocka_unit_test(the_longest_points_have_a_shard_to_themselves),
      cmocka_unit_test(a_machine_of_any_speed_would_measure_the_same),
      cmocka_unit_test(the_program_lists_each_point_in_one_shard),
      cmocka_unit_test(a_shard_without_points_is_an_empty_report),
      cmocka_unit_test(a_shard_that_cannot_be_is_refused),
      cmocka_unit_test(auto_takes_the_rank_that_the_launcher_gave),
      cmocka_unit_test(the_first_of_those_that_were_started_speaks_for_all),
      cmocka_unit_test(files_are_named_by_shard),
  };
  return cmocka_run_group_tests_name("shard", tests, NULL, NULL);
}
