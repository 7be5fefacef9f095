/* Covering arrays: what is promised of the pairs is counted anew, for small designs and for the problems of verify. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "problem/check.h"
#include "verify/covering.h"
#include "verify/grid.h"

static covering made;

static bool anything(const int *levels, int phase) {
  (void)levels;
  (void)phase;
  return true;
}

/* No level above 0 beside another of the next factor; in the first phase of the first factor only level 0. */
static bool with_limits(const int *levels, int phase) {
  if (phase == 0 && levels[0] > 0) return false;
  for (int f = 0; f + 1 < 4; f++)
    if (levels[f] > 0 && levels[f + 1] > 0) return false;
  return true;
}

static bool have(int f, int a, int g, int b) {
  for (int n = 0; n < made.count; n++)
    if (made.rows[n][f] == a && made.rows[n][g] == b) return true;
  return false;
}

static void every_pair_that_can_be_is(const covering_design *design) {
  int pairs = 0, possible = 0;
  covering_make(design, &made);
  for (int n = 0; n < made.count; n++) assert_true(design->can_be(made.rows[n], design->phases - 1));
  for (int f = 0; f < design->factors; f++)
    for (int g = 0; g < f; g++)
      for (int a = 0; a < design->levels[f]; a++)
        for (int b = 0; b < design->levels[g]; b++) {
          int row[COVERING_FACTORS];
          for (int x = 0; x < COVERING_FACTORS; x++) row[x] = COVERING_OPEN;
          row[f] = a;
          row[g] = b;
          const bool can_be = design->can_be(row, design->phases - 1);
          if (can_be != have(f, a, g, b)) fail_msg("levels %d and %d of factors %d and %d", a, b, f, g);
          pairs++;
          possible += can_be;
        }
  assert_int_equal(made.pairs, pairs);
  assert_int_equal(made.possible, possible);
}

static void all_pairs_meet_in_few_rows(void **state) {
  (void)state;
  const covering_design design = {
      .factors = 6, .levels = {5, 4, 3, 3, 2, 2}, .phases = 1, .can_be = anything};
  every_pair_that_can_be_is(&design);
  assert_int_equal(made.pairs, made.possible);
  assert_in_range(made.count, 20, 30); /* all combinations are 720 */
}

static void pairs_that_cannot_be_are_left_out_and_counted(void **state) {
  (void)state;
  const covering_design design = {.factors = 4, .levels = {4, 3, 3, 2}, .phases = 2, .can_be = with_limits};
  every_pair_that_can_be_is(&design);
  assert_int_equal(made.pairs - made.possible, 3 * 2 + 2 * 2 + 2 * 1);
}

static void rows_of_a_phase_keep_to_it(void **state) {
  (void)state;
  const covering_design design = {.factors = 4, .levels = {4, 3, 3, 2}, .phases = 2, .can_be = with_limits};
  covering_make(&design, &made);
  int first = 0;
  while (first < made.count && made.rows[first][0] == 0) first++;
  assert_true(first > 0 && first < made.count);
  for (int n = first; n < made.count; n++) /* what the first phase can, it does */
    assert_true(made.rows[n][0] > 0);
}

/* Pairs of what a problem is, counted from the problems alone. */
enum { VALUES = 70000 };
static unsigned char seen[VALUES];

static bool meet(int64_t n, int64_t key_length, int threads, attn_function function) {
  const planned_problem planned = pair_problem(n);
  return planned.workload.function == function && planned.workload.key_length == key_length &&
         planned.threads == threads;
}

static void every_length_meets_every_number_of_threads(void **state) {
  (void)state;
  for (int function = 0; function < 2; function++) {
    int lengths = 0;
    memset(seen, 0, sizeof seen);
    for (int64_t n = 0; n < pair_problems_count(); n++)
      if (pair_problem(n).workload.function == (attn_function)function)
        seen[pair_problem(n).workload.key_length] = 1;
    for (int64_t length = 0; length < VALUES; length++) {
      if (!seen[length]) continue;
      lengths++;
      for (int threads = 1; threads <= 16; threads++) {
        bool found = false;
        for (int64_t n = 0; n < pair_problems_count() && !found; n++)
          found = meet(n, length, threads, (attn_function)function);
        if (!found) fail_msg("Tk %lld is not posed with %d threads", (long long)length, threads);
      }
    }
    assert_true(lengths >= 13 && seen[65537]);
  }
}

static void problems_are_sound_and_reach_every_end(void **state) {
  (void)state;
  int64_t keys = 0, queries = 0, head_dim = 0, value_dim = 0, heads = 0, batch = 0, without_features = 0;
  for (int64_t n = 0; n < pair_problems_count(); n++) {
    const planned_problem planned = pair_problem(n);
    const workload *w = &planned.workload;
    const attn_problem problem = workload_problem(w);
    char why[256] = "", name[WORKLOAD_NAME_BYTES];
    workload_name(w, name);
    if (!check_problem(&problem, why, sizeof why)) fail_msg("%s: %s", name, why);
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
    keys = LARGER(keys, w->key_length);
    queries = LARGER(queries, w->query_length);
    head_dim = LARGER(head_dim, w->head_dim);
    value_dim = LARGER(value_dim, w->value_dim);
    heads = LARGER(heads, w->query_heads);
    batch = LARGER(batch, w->batch);
    without_features += problem.features == 0;
  }
  assert_int_equal(keys, 65537);
  assert_int_equal(queries, 4099);
  assert_int_equal(head_dim, 1025);
  assert_int_equal(value_dim, 1025);
  assert_int_equal(heads, 129);
  assert_int_equal(batch, 65);
  assert_true(without_features > pair_problems_count() / 2); /* for kernels that have none */
}

/* ---- each level meets sizes of all kinds ---- */

enum { SOFTMAX, LINEAR, NARROW, ARRAYS, SIZES = 5, MOST_SIZES = 32, MOST_PARTS = 64 };
static const char *const array_names[] = {"softmax", "linear attention", "16 bits"};
static const char *const size_names[SIZES] = {"Tk", "Tq", "D", "Dv", "threads"};

/* A part of a problem's line, of any problem of an array where it has no words, and how many sizes it has met. */
typedef struct part {
  char words[32];
  int64_t met[SIZES][MOST_SIZES];
  int counts[SIZES];
} part;
static part parts[ARRAYS][MOST_PARTS];

static part *part_of(int array, const char *words) {
  for (part *of = parts[array]; of < parts[array] + MOST_PARTS; of++) {
    if (of->counts[0] == 0) snprintf(of->words, sizeof of->words, "%s", words);
    if (strcmp(of->words, words) == 0) return of;
  }
  fail_msg("more than %d parts of problems", MOST_PARTS);
  return NULL;
}

static void meet_sizes(part *of, const planned_problem *planned) {
  const workload *w = &planned->workload;
  const int64_t sizes[SIZES] = {w->key_length, w->query_length, w->head_dim, w->value_dim, planned->threads};
  for (int size = 0; size < SIZES; size++) {
    int n = 0;
    while (n < of->counts[size] && of->met[size][n] != sizes[size]) n++;
    assert_true(n < MOST_SIZES);
    of->met[size][n] = sizes[size];
    of->counts[size] += n == of->counts[size];
  }
}

/* Lists are one level whatever numbers they hold; sizes are counted, and are no parts. */
static void meet_parts(const planned_problem *planned) {
  const workload *w = &planned->workload;
  const int array = w->function == ATTN_LINEAR ? LINEAR : w->type == ATTN_ABSENT ? SOFTMAX : NARROW;
  char name[WORKLOAD_NAME_BYTES];
  workload_name(w, name);
  meet_sizes(part_of(array, ""), planned);
  for (char *words = strtok(name, "/"); words; words = strtok(NULL, "/")) {
    const size_t before = strcspn(words, ":");
    if (words[before] && words[0] >= 'A' && words[0] <= 'Z') continue;
    if (strncmp(words, "seed:", 5) == 0) continue;
    if (strncmp(words, "lengths:", 8) == 0 || strncmp(words, "offsets:", 8) == 0) words[before] = '\0';
    meet_sizes(part_of(array, words), planned);
  }
}

/* What has pairs that are taken for impossible is met with the plainest level of every other factor alone. */
static void every_part_of_a_problem_meets_sizes_of_all_kinds(void **state) {
  (void)state;
  static const struct {
    int array;
    const char *words;
  } known[] = {{LINEAR, "decay"},     {LINEAR, "state"},   {LINEAR, "final_state"}, {LINEAR, "unnormalised"},
               {LINEAR, "epsilon:0"}, {SOFTMAX, "mask:q"}, {SOFTMAX, "bias:h"},     {SOFTMAX, "softcap:3"},
               {SOFTMAX, "sink"},     {SOFTMAX, "lse"},    {SOFTMAX, "weights"},    {SOFTMAX, "offsets"},
               {SOFTMAX, "lengths"},  {NARROW, "bf16"},    {NARROW, "f16"},         {NARROW, "out:f32"}};
  memset(parts, 0, sizeof parts);
  for (int64_t n = 0; n < pair_problems_count(); n++) {
    const planned_problem planned = pair_problem(n);
    meet_parts(&planned);
  }
  for (size_t n = 0; n < sizeof known / sizeof *known; n++)
    if (part_of(known[n].array, known[n].words)->counts[0] == 0) fail_msg("nothing has %s", known[n].words);
  for (int array = 0; array < ARRAYS; array++)
    for (const part *of = parts[array]; of->counts[0] > 0; of++)
      for (int size = 0; size < SIZES; size++) {
        const int all = parts[array][0].counts[size];
        if (4 * of->counts[size] < 3 * all)
          fail_msg("%s: %s meets %d of %d values of %s", array_names[array], of->words, of->counts[size], all,
                   size_names[size]);
      }
}

/* ---- threads ---- */

/* Functions, and of softmax the scores that few kernels have. */
enum { GENERAL = 100, ADDITIVE };

static bool is_about(const workload *w, int what) {
  return what == GENERAL ? w->general : what == ADDITIVE ? w->additive : (int)w->function == what;
}

/* Whatever the machine has: that many are not asked for on a small one. */
static void each_function_is_posed_with_4_to_8_threads(void **state) {
  (void)state;
  static const int all[] = {
      ATTN_SOFTMAX, ATTN_LINEAR, ATTN_SOFTMAX_BACKWARD, ATTN_LINEAR_BACKWARD, ATTN_LAYER, GENERAL, ADDITIVE};
  for (size_t a = 0; a < sizeof all / sizeof *all; a++) {
    bool found[9] = {false};
    for (int64_t n = 0; n < verify_grid_count(); n++) {
      const planned_problem planned = verify_grid_problem(n);
      if (planned.threads <= 8 && is_about(&planned.workload, all[a])) found[planned.threads] = true;
    }
    assert_true(found[0]); /* as many as are asked for */
    for (int threads = 4; threads <= 8; threads++)
      if (!found[threads]) fail_msg("%d is not posed with %d threads", all[a], threads);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_pairs_meet_in_few_rows),
      cmocka_unit_test(pairs_that_cannot_be_are_left_out_and_counted),
      cmocka_unit_test(rows_of_a_phase_keep_to_it),
      cmocka_unit_test(every_length_meets_every_number_of_threads),
      cmocka_unit_test(problems_are_sound_and_reach_every_end),
      cmocka_unit_test(every_part_of_a_problem_meets_sizes_of_all_kinds),
      cmocka_unit_test(each_function_is_posed_with_4_to_8_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
