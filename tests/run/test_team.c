/* Attention that is spread over ranks, as one types it: `mpirun -n 4 attnbench verify --variant ring`. Where MPI is not
 * installed, that is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/team_slices.h"
#include "tests/shell.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench "
/* Of a process that ended with a status mpirun gives the others no second to end too. */
#define MPIRUN(n)                                                                                            \
  "OMP_NUM_THREADS=1 OMPI_MCA_pml=ob1 OMPI_MCA_odls_base_sigkill_timeout=0 mpirun --allow-run-as-root "      \
  "--oversubscribe --mca mpi_yield_when_idle "                                                               \
  "1 -n " n " " PROGRAM
#define RANKS(n) MPIRUN(n) "verify --threads 1 "
/* Wrong on rank 2, from six keys on (tests/plugins/team). */
#define FORGETS_PLUGIN ATTN_BUILD_DIR "/tests/plugins/team/forgets.so "
#define FORGETS "--own=false --plugin " FORGETS_PLUGIN

/* Takes what others have from its own process, where it can. */
#define PEEKS "--own=false --plugin " ATTN_BUILD_DIR "/tests/plugins/team/peeks.so "

static void need_mpi(void) {
  if (shell("command -v mpirun && test -f " ATTN_BUILD_DIR "/attnbench_mpi.so") == 0) return;
  print_message("MPI is not installed, or attnbench_mpi.so was not built\n");
  skip();
}

static void every_position_has_one_owner_whatever_the_slices(void **state) {
  (void)state;
  for (int ranks = 1; ranks <= 9; ranks++)
    for (int64_t length = 0; length <= 40; length++)
      for (int slicing = ATTN_CONTIGUOUS; slicing <= ATTN_STRIPED; slicing++) {
        int owners[40] = {0};
        for (int rank = 0; rank < ranks; rank++) {
          const attn_slice slice = attn_slice_of((attn_slicing)slicing, length, rank, ranks);
          for (int run = 0; run < slice.runs; run++)
            for (int64_t n = 0; n < slice.length[run]; n++) owners[attn_slice_position(&slice, run, n)]++;
        }
        for (int64_t i = 0; i < length; i++) assert_int_equal(owners[i], 1);
      }
}

static void zigzag_slices_have_the_same_work_below_the_diagonal(void **state) {
  (void)state;
  enum { RANKS_HERE = 7 };
  const int64_t length = INT64_C(10) * RANKS_HERE;
  int64_t pairs[RANKS_HERE] = {0};
  for (int rank = 0; rank < RANKS_HERE; rank++) {
    const attn_slice slice = attn_slice_of(ATTN_ZIGZAG, length, rank, RANKS_HERE);
    for (int run = 0; run < slice.runs; run++)
      for (int64_t n = 0; n < slice.length[run]; n++) pairs[rank] += slice.first[run] + n + 1;
    assert_int_equal(pairs[rank], pairs[0]);
  }
}

/* Its rows lie one position behind those of the rank before. */
static void a_stripe_has_a_key_more_below_the_diagonal_in_each_row_than_the_one_before(void **state) {
  (void)state;
  enum { RANKS_HERE = 7, ROWS = 10 };
  int64_t pairs[RANKS_HERE] = {0};
  for (int rank = 0; rank < RANKS_HERE; rank++) {
    const attn_slice slice = attn_slice_of(ATTN_STRIPED, INT64_C(1) * ROWS * RANKS_HERE, rank, RANKS_HERE);
    for (int64_t n = 0; n < slice.length[0]; n++) pairs[rank] += attn_slice_position(&slice, 0, n) + 1;
    assert_int_equal(slice.runs, 1);
    assert_int_equal(pairs[rank], pairs[0] + INT64_C(1) * rank * ROWS);
  }
}

static void each_variant_is_right_with_one_to_four_ranks(void **state) {
  (void)state;
  need_mpi();
  shell_expect(
      RANKS("4") "--problem causal/B:2/H:4/Hkv:2/D:8/T:37/lse --problem full/B:1/H:4/D:8/Dv:5/T:30/sink"
                 " --problem window:5/B:1/H:4/D:8/T:41/bf16",
      0, "4 variants, 48 cases, 0 failed");
}

static void odd_and_many_ranks_are_right_too(void **state) {
  (void)state;
  need_mpi();
  shell_expect(RANKS("8") "--variant ring --variant tree_decode --problem causal/B:1/H:2/D:4/T:19/lengths:11 "
                          "--isa ranks7",
               0, "2 cases, 0 failed");
}

/* Fewer queries than ranks, and windows between whose keys of a rank there is room for none. */
static void stripes_take_every_band_in_steps(void **state) {
  (void)state;
  need_mpi();
  shell_expect(RANKS("8") "--variant ring_striped --problem band:3,1,-2/H:2/D:4/Tq:5/Tk:23/lengths:22/lse"
                          " --problem band:inf,3,1/H:4/Hkv:2/D:4/T:19/qlengths:17"
                          " --problem window:5/B:2/H:2/D:4/T:20/offsets:3,-4 --isa ranks7",
               0, "3 cases, 0 failed");
}

static void what_is_no_band_in_steps_is_refused(void **state) {
  (void)state;
  need_mpi();
  shell_expect(
      RANKS("3") "--variant ring_striped --problem window:5/B:2/H:2/D:4/T:20/offsets:3,5 --isa ranks3", 2,
      "takes a limit on the left only with offsets that differ by multiples of the ranks");
  shell_expect(RANKS("2") "--variant ring_striped --problem causal/H:2/D:4/T:9/mask:bq", 2,
               "it takes no mask");
  shell_expect(RANKS("2") "--variant ring_striped --problem full/H:2/D:4/T:9/alibi", 2,
               "it takes no ALiBi slopes");
}

/* Of outputs of no width no row has a place, and yet each has one owner. */
static void log_sum_exps_have_owners_where_outputs_have_no_columns(void **state) {
  (void)state;
  need_mpi();
  shell_expect(RANKS("2") "--variant ring --problem causal/B:1/H:2/D:4/Dv:0/T:9/lse", 0, "2 cases, 0 failed");
}

static void random_problems_are_posed_to_teams(void **state) {
  (void)state;
  need_mpi();
  shell_expect(MPIRUN("3") "fuzz --variant tree_decode --seconds 2", 0, " 0 failed");
}

static void a_plugin_of_ones_own_needs_none_of_ours(void **state) {
  (void)state;
  need_mpi();
  shell_expect(RANKS("3") FORGETS "--problem full/H:1/D:4/Tq:7/Tk:5", 0, "1 variant, 3 cases, 0 failed");
}

static void a_rank_judges_its_own_rows_and_is_named(void **state) {
  (void)state;
  need_mpi();
  /* Of nine queries rank 2 of 3 has the last three, and rank 2 of 4 the fifth and the sixth. */
  shell_expect(RANKS("4") FORGETS "--problem full/H:2/D:4/Tq:9/Tk:8", 1,
               "rows from 6 on of 9, all columns, judged by rank 2 of 3");
  assert_non_null(strstr(shell_output, "FAILED: output[b 0, h 0, i 6, d 0]"));
  assert_non_null(strstr(shell_output, "FAILED: output[b 0, h 0, i 4, d 0]"));
  assert_non_null(strstr(shell_output, "rows 4-5 of 9, all columns, judged by rank 2 of 4"));
  assert_non_null(strstr(shell_output, "hint: keys: the last visible key is left out"));
}

static void what_other_ranks_have_is_not_to_be_found_in_a_process(void **state) {
  (void)state;
  need_mpi();
  shell_expect(RANKS("2") PEEKS "--problem full/H:1/D:16/T:24 --isa ranks1", 0, "1 cases, 0 failed");
  shell_expect(RANKS("2") PEEKS "--problem full/H:1/D:16/T:24 --isa ranks2", 1, "judged by rank 0 of 2");
}

static void where_nothing_can_be_put_away_is_said(void **state) {
  (void)state;
  need_mpi();
  shell_expect(RANKS("2 -x TMPDIR=/nowhere") "--variant ring --problem full/H:1/D:16/T:24", 2,
               "what is not its own cannot be put away in /nowhere: No such file or directory");
}

#define UNCOUNTED "--own=false --plugin " ATTN_BUILD_DIR "/tests/plugins/team/uncounted.so "
#define ONE_KEY "--problem full/H:1/D:2/Dv:1/Tq:5/Tk:1 "

static void what_nobody_counts_may_not_be_called(void **state) {
  (void)state;
  need_mpi();
  shell_expect(RANKS("2") UNCOUNTED "--variant broadcasts " ONE_KEY, 1,
               "on rank 0 of 2 calls MPI_Bcast, whose bytes nobody counts");
}

static void messages_that_end_one_by_one_are_there_then(void **state) {
  (void)state;
  need_mpi();
  shell_expect(RANKS("3") UNCOUNTED "--variant exchanges " ONE_KEY, 0, "3 cases, 0 failed");
}

static void ranks_that_do_not_do_the_same_are_one_sentence(void **state) {
  (void)state;
  need_mpi();
#define TWO(first, second)                                                                                   \
  MPIRUN("1") "verify --variant ring --threads 1 " first " : -n 1 " PROGRAM "verify --threads 1 " second
  shell_expect(TWO("--problem full/T:8", "--variant ring --problem full/T:9"), 2,
               "attnbench: rank 0: rank 1 has another problem than rank 0\n");
  shell_expect(TWO("--problem full/T:8", "--variant rung --problem full/T:8"), 2,
               "attnbench: rank 0: rank 1 is at its end, where rank 0 begins a run: attnbench: ");
}

#define REPORTED ATTN_BUILD_DIR "/tests/team_bench"
#define BENCH(n) "rm -rf '" REPORTED "' && " MPIRUN(n) "bench --variant ring --threads 1 "
#define THREE_LENGTHS                                                                                        \
  "--problem causal/H:4/D:8/T:64 --problem causal/H:4/D:8/T:128 --problem causal/H:4/D:8/T:256 "

static void a_bench_of_a_team_is_written_as_json_and_csv(void **state) {
  (void)state;
  need_mpi();
  shell_expect(BENCH("3") THREE_LENGTHS "--out '" REPORTED "'", 0, "workspace of a rank grows as T^");
  shell_expect("grep -c '^\"ring/.*/ranks:[123]\",ring,[123],7,' '" REPORTED "/results.csv'", 0, "9");
  /* Of 64 keys, 4 heads and 8 features: rank 0 sends half of the keys and values of float32 in a team of two. */
  shell_expect("grep -A 20 'name.*T:64/ranks:2' '" REPORTED "/results.json'", 0, "\"sent_bytes\": 8192");
  shell_expect("grep -A 9 '\"growth\"' '" REPORTED "/results.json'", 0, "\"exponent\": 0.");
  shell_expect("grep team_ranks '" REPORTED "/results.json'", 0, "3");
  /* Nobody else takes it for a report of one host. */
  shell_expect(PROGRAM "report '" REPORTED "/results.json'", 2,
               "is a report of a team of processes, which no page");
  shell_expect(PROGRAM "plots '" REPORTED "/results.json'", 2,
               "is a report of a team of processes, which no page");
  shell_expect(PROGRAM "merge '" REPORTED "/results.json' '" REPORTED "/results.json' --out '" REPORTED
                       "/all.json'",
               2, "is a report of a team of processes, which no page");
}

/* Of eight heads one of three or seven ranks has more than another: with these the exponent is 0.87, known to no more
 * than -7 to 9. What a rank needs beside its share is what tiles are made of, and so the processor's: 0.95, from 0.8
 * on, with AVX-512, 0.98 (0.92 to 1.03) with AVX2. */
static void growth_with_ranks_is_that_of_even_ones(void **state) {
  (void)state;
  need_mpi();
  static const char said[] = "ulysses: workspace of a rank grows as (1/P)^";
  shell_expect(MPIRUN("8") "bench --variant ulysses --threads 1 --problem causal/H:8/D:16/T:1024 2>/dev/null",
               0, said);
  char *at = strstr(shell_output, said) + strlen(said);
  const double exponent = strtod(at, &at);
  assert_memory_equal(at, " (", 2);
  const double low = strtod(at + 2, &at);
  assert_memory_equal(at, " to ", 4);
  const double high = strtod(at + 4, NULL);
  assert_true(exponent >= 0.93 && exponent <= 1.02 && low >= 0.8 && high <= 1.15);
}

static void ranks_that_a_variant_does_not_take_are_said(void **state) {
  (void)state;
  need_mpi();
  shell_expect(MPIRUN("4") "bench --variant ulysses --threads 1 --problem causal/B:1/H:2/D:16/T:64", 0,
               "  4 not run, nor among some others: it needs a head for each rank");
}

static void what_a_bench_of_a_team_cannot_write_is_one_sentence(void **state) {
  (void)state;
  need_mpi();
  shell_expect(BENCH("2") "--problem full/H:2/D:4/T:8 --raw x.csv", 2,
               "attnbench: --raw: a bench of a team has its runs");
  shell_expect(BENCH("2") "--problem full/H:2/D:4/T:8 --cold", 2,
               "attnbench: --cold: a bench of a team does not take it");
  shell_expect(BENCH("2") "--problem full/H:2/D:4/T:8 --memory-only ring", 2,
               "attnbench: --memory-only: a bench of a team does not take it");
  shell_expect(BENCH("2") "--problem full/H:2/D:4/T:8 --repetitions 3", 2,
               "attnbench: --benchmark_repetitions: a bench of a team does not take it");
  shell_expect(BENCH("2") "--problem full/H:2/D:4/T:8 --benchmark_out x --benchmark_out_format console", 2,
               "is written as json or csv, and not as 'console'");
  shell_expect(BENCH("2") "--problem full/H:2/D:4/T:8 --out /proc/nothing", 2, "attnbench: ");
}

/* One of the long ones: each of its forty tries starts a team. */
static void a_failure_of_one_rank_is_shrunk_to_what_it_takes(void **state) {
  (void)state;
  need_mpi();
  if (!getenv("ATTN_TEST_FULL")) skip();
  shell_expect(MPIRUN("4") "fuzz " FORGETS "--variant forgets_on_rank_2 --problem full/H:2/D:2/Tq:3/Tk:8 "
                           "--isa ranks3 --seconds 600",
               1,
               "mpirun -n 3 attnbench verify --variant forgets_on_rank_2 --problem "
               "'full/B:1/H:1/Hkv:1/D:1/Tq:1/Tk:6' --isa ranks3");
}

static void what_an_exchange_has_no_room_for_is_refused(void **state) {
  (void)state;
  need_mpi();
  /* 2^32 bytes from each rank to each: 0 in an int. */
  shell_expect(RANKS("2") "--variant ulysses --problem full/B:1/H:1024/Hkv:1024/D:512/T:4096 --isa ranks2", 2,
               "exchanges more than 2 GiB");
}

static void fewer_heads_than_ranks_are_one_sentence(void **state) {
  (void)state;
  need_mpi();
  shell_expect(
      RANKS("4") "--variant ulysses --problem full/H:2/T:16 2>&1 | grep -c 'needs a head for each rank'", 0,
      "1");
  shell_expect(RANKS("4") "--variant ulysses --problem full/H:2/T:16", 2,
               "ulysses cannot solve this problem");
}

static void a_variant_of_a_team_says_how_it_is_started(void **state) {
  (void)state;
  need_mpi();
  shell_expect(PROGRAM "verify --variant ring", 2,
               "ring works in a team of processes: mpirun -n 4 attnbench verify");
  shell_expect(PROGRAM "list", 0, "tree_decode");
}

/* To be listed they need no team, and mpirun's is in nobody's way. */
static void a_plugins_variants_of_a_team_are_listed_with_ours(void **state) {
  (void)state;
  need_mpi();
  static const char *const commands[] = {PROGRAM "list --plugin " FORGETS_PLUGIN,
                                         MPIRUN("1") "list --plugin " FORGETS_PLUGIN};
  for (size_t n = 0; n < sizeof commands / sizeof *commands; n++) {
    shell_expect(commands[n], 0, "\nfused ");
    const char *team = strstr(shell_output, "\nin a team of processes: ");
    if (!team || !strstr(team, "\nring ") || !strstr(team, "\nforgets_on_rank_2 "))
      fail_msg("%s:\n%s", commands[n], shell_output);
  }
}

static void without_the_object_it_is_said_what_is_missing(void **state) {
  (void)state;
  shell_expect(
      "rm -rf " ATTN_BUILD_DIR "/tests/no_team && mkdir -p " ATTN_BUILD_DIR
      "/tests/no_team && cd " ATTN_BUILD_DIR
      " && cp attnbench attnbench_variants.so tests/no_team && tests/no_team/attnbench verify --variant ring",
      2, "it takes MPI");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_position_has_one_owner_whatever_the_slices),
      cmocka_unit_test(zigzag_slices_have_the_same_work_below_the_diagonal),
      cmocka_unit_test(a_stripe_has_a_key_more_below_the_diagonal_in_each_row_than_the_one_before),
      cmocka_unit_test(each_variant_is_right_with_one_to_four_ranks),
      cmocka_unit_test(odd_and_many_ranks_are_right_too),
      cmocka_unit_test(stripes_take_every_band_in_steps),
      cmocka_unit_test(what_is_no_band_in_steps_is_refused),
      cmocka_unit_test(log_sum_exps_have_owners_where_outputs_have_no_columns),
      cmocka_unit_test(random_problems_are_posed_to_teams),
      cmocka_unit_test(a_plugin_of_ones_own_needs_none_of_ours),
      cmocka_unit_test(a_rank_judges_its_own_rows_and_is_named),
      cmocka_unit_test(what_other_ranks_have_is_not_to_be_found_in_a_process),
      cmocka_unit_test(where_nothing_can_be_put_away_is_said),
      cmocka_unit_test(what_nobody_counts_may_not_be_called),
      cmocka_unit_test(messages_that_end_one_by_one_are_there_then),
      cmocka_unit_test(ranks_that_do_not_do_the_same_are_one_sentence),
      cmocka_unit_test(a_bench_of_a_team_is_written_as_json_and_csv),
      cmocka_unit_test(growth_with_ranks_is_that_of_even_ones),
      cmocka_unit_test(ranks_that_a_variant_does_not_take_are_said),
      cmocka_unit_test(what_a_bench_of_a_team_cannot_write_is_one_sentence),
      cmocka_unit_test(a_failure_of_one_rank_is_shrunk_to_what_it_takes),
      cmocka_unit_test(what_an_exchange_has_no_room_for_is_refused),
      cmocka_unit_test(fewer_heads_than_ranks_are_one_sentence),
      cmocka_unit_test(a_variant_of_a_team_says_how_it_is_started),
      cmocka_unit_test(a_plugins_variants_of_a_team_are_listed_with_ours),
      cmocka_unit_test(without_the_object_it_is_said_what_is_missing),
  };
  /* Of what test-full adds: all others are the same in it, and teams start slowly. */
  const char *full = getenv("ATTN_TEST_FULL");
  if (full && strcmp(full, "alone") == 0)
    cmocka_set_test_filter("a_failure_of_one_rank_is_shrunk_to_what_it_takes");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
