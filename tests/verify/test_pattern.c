/* What is wrong is named as a person would: heads, rows, columns, tiles; and the sizes that a failure needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "verify/pattern.h"
#include "verify/shrunk_sizes.h"

typedef bool is_wrong(const attn_problem *p, int64_t b, int64_t h, int64_t i);

static bool other_groups(const attn_problem *p, int64_t b, int64_t h, int64_t i) {
  (void)b, (void)i;
  return h % p->kv_heads != h / (p->query_heads / p->kv_heads);
}
static bool tail_rows(const attn_problem *p, int64_t b, int64_t h, int64_t i) {
  (void)b, (void)h;
  return i >= p->query_length / 64 * 64;
}
static bool partial_keys(const attn_problem *p, int64_t b, int64_t h, int64_t i) {
  (void)p, (void)b, (void)h;
  return (i + 1) % 32 != 0;
}
static bool second_entry(const attn_problem *p, int64_t b, int64_t h, int64_t i) {
  (void)p, (void)h, (void)i;
  return b == 1;
}
static bool every_eighth(const attn_problem *p, int64_t b, int64_t h, int64_t i) {
  (void)p, (void)b, (void)h;
  return i % 8 == 7;
}
static bool scattered(const attn_problem *p, int64_t b, int64_t h, int64_t i) {
  (void)p, (void)b, (void)h;
  return i == 3 || i == 17 || (i >= 40 && i < 45);
}
static bool none(const attn_problem *p, int64_t b, int64_t h, int64_t i) {
  (void)p, (void)b, (void)h, (void)i;
  return false;
}

static const struct {
  is_wrong *wrong;
  int64_t batch, heads, kv_heads, length;
  int first_column; /* from there on */
  const char *says;
} cases[] = {
    {other_groups, 1, 8, 2, 10, 0, "wrong in 40 of 80 rows: heads 1, 3-4, 6 of 8, all rows, all columns"},
    {tail_rows, 2, 2, 2, 100, 0,
     "wrong in 144 of 400 rows: all batch entries, all heads, rows from 64 on of 100 (behind whole tiles of "
     "64), all "
     "columns"},
    {tail_rows, 1, 1, 1, 129, 0,
     "wrong in 1 of 129 rows: rows from 128 on of 129 (behind whole tiles of 128), all columns"},
    {partial_keys, 1, 1, 1, 128, 32,
     "wrong in 124 of 128 rows: rows whose key count is no multiple of 32, columns from 32 on of 64"},
    {second_entry, 3, 1, 1, 4, 0, "wrong in 4 of 12 rows: batch entries 1 of 3, all rows, all columns"},
    {every_eighth, 1, 1, 1, 64, 0, "wrong in 8 of 64 rows: the last of every 8 rows, all columns"},
    {scattered, 1, 1, 1, 64, 0, "wrong in 7 of 64 rows: rows 3, 17, 40-44 of 64, all columns"},
    {none, 1, 1, 1, 64, 0, ""},
};

static void wrong_places_are_named(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const int64_t count = cases[n].batch * cases[n].heads * cases[n].length;
    const attn_problem p = {.batch = cases[n].batch,
                            .query_heads = cases[n].heads,
                            .kv_heads = cases[n].kv_heads,
                            .query_length = cases[n].length,
                            .key_length = cases[n].length,
                            .head_dim = 64,
                            .value_dim = 64,
                            .left = ATTN_UNLIMITED};
    int64_t *positions = calloc((size_t)count, sizeof *positions);
    bool *wrong = calloc((size_t)count, sizeof *wrong), columns[64];
    char text[256];
    for (int64_t at = 0; at < count; at++) {
      const int64_t head = at / p.query_length;
      positions[at] = at;
      wrong[at] = cases[n].wrong(&p, head / p.query_heads, head % p.query_heads, at % p.query_length);
    }
    for (int d = 0; d < 64; d++) columns[d] = d >= cases[n].first_column;
    pattern_describe(&(wrong_rows){&p, count, positions, wrong, columns, NULL}, text, sizeof text);
    assert_string_equal(text, cases[n].says);
    free(positions);
    free(wrong);
  }
}

/* What has no room is cut off, and no more than that is written. */
static void a_short_text_is_cut(void **state) {
  (void)state;
  const attn_problem p = {.batch = 1, .query_heads = 2, .kv_heads = 1, .query_length = 1, .value_dim = 1};
  const int64_t positions[] = {0, 1};
  const bool wrong[] = {true, false}, columns[] = {true};
  char text[16] = "..............!";
  pattern_describe(&(wrong_rows){&p, 2, positions, wrong, columns, NULL}, text, 10);
  assert_string_equal(text, "wrong in ");
  assert_int_equal(text[14], '!');
}

/* ---- sizes ---- */

static size_answer behind_tiles(const failing *candidate, void *context) {
  (void)context;
  return candidate->workload.key_length % 64 ? SIZE_FAILS : SIZE_PASSES;
}
static size_answer behind_tiles_of_wide_heads(const failing *candidate, void *context) {
  (void)context;
  const workload *w = &candidate->workload;
  if (w->head_dim != 64 && w->head_dim != 128) return SIZE_REFUSED;
  return w->key_length > 64 && w->key_length % 64 ? SIZE_FAILS : SIZE_PASSES;
}
static size_answer whole_tiles(const failing *candidate, void *context) {
  (void)context;
  return candidate->workload.head_dim % 16 ? SIZE_PASSES : SIZE_FAILS;
}
static size_answer long_ones(const failing *candidate, void *context) {
  (void)context;
  return candidate->workload.key_length >= 65 ? SIZE_FAILS : SIZE_PASSES;
}
static size_answer one_beyond_tiles(const failing *candidate, void *context) {
  (void)context;
  const int64_t keys = candidate->workload.key_length;
  return keys > 64 && keys % 64 == 1 ? SIZE_FAILS : SIZE_PASSES;
}
static size_answer everywhere(const failing *candidate, void *context) {
  (void)candidate, (void)context;
  return SIZE_FAILS;
}

static void the_sizes_that_fail_are_named(void **state) {
  (void)state;
  static const struct {
    shrunk_size_asks *asks;
    const char *problem, *says;
  } kinds[] = {
      {behind_tiles, "causal/B:1/H:1/D:64/T:2",
       "T % 64 matters: it fails where T is no multiple of 64, from 2 on"},
      {behind_tiles_of_wide_heads, "causal/B:1/H:1/D:64/T:65",
       "T % 64 matters: it fails where T is no multiple of 64, from 65 on"},
      {behind_tiles, "full/B:1/H:1/D:64/Tq:1/Tk:2", "Tk % 64 matters"},
      {whole_tiles, "full/B:1/H:1/D:16/T:1", "D % 16 matters: it fails where D is a multiple of 16"},
      {one_beyond_tiles, "full/B:1/H:1/D:1/Tq:1/Tk:65", "Tk % 64 matters: it fails where that is 1"},
      {long_ones, "full/B:1/H:1/D:1/T:65", "T matters: it fails from 65 on"},
  };
  char text[1024], why[128];
  failing smallest = {.threads = 1};
  for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
    assert_true(workload_parse(kinds[n].problem, &smallest.workload, why, sizeof why));
    shrunk_sizes_describe(&smallest, 10, kinds[n].asks, NULL, text, sizeof text);
    if (strncmp(text, kinds[n].says, strlen(kinds[n].says)) != 0)
      fail_msg("%s: '%s' instead of '%s'", kinds[n].problem, text, kinds[n].says);
  }
  shrunk_sizes_describe(&smallest, 10, everywhere, NULL, text, sizeof text);
  assert_string_equal(text, "");
  shrunk_sizes_describe(&smallest, 0, long_ones, NULL, text, sizeof text);
  assert_string_equal(text, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_places_are_named),
      cmocka_unit_test(a_short_text_is_cut),
      cmocka_unit_test(the_sizes_that_fail_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
