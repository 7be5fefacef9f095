/* What visibility.h says of patterns, query lengths, band, key lengths and mask together, against the reference's
 * definition of a pair, on random problems: rows exactly, tiles so that only "partial" may be said of what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "reference/sees.h"

enum { PROBLEMS = 20000, MOST_BATCH = 2, MOST_HEADS = 2, MOST_LENGTH = 24 };

/* A problem and what it points to. */
typedef struct question {
  attn_problem problem;
  attn_tensors tensors;
  int64_t offsets[MOST_BATCH], lengths[MOST_BATCH], query_lengths[MOST_BATCH];
  uint8_t mask[MOST_BATCH * MOST_HEADS * MOST_LENGTH * MOST_LENGTH];
  uint8_t blocks[MOST_BATCH * MOST_HEADS * MOST_LENGTH * MOST_LENGTH];
  int32_t query_documents[MOST_BATCH * MOST_LENGTH], key_documents[MOST_BATCH * MOST_LENGTH];
  int32_t topk[MOST_BATCH * MOST_HEADS * MOST_LENGTH * MOST_LENGTH];
} question;

/* Numbers of one problem, one after the other. */
typedef struct draw {
  uint64_t seed, count;
} draw;

static int64_t below(draw *from, int64_t end) {
  return (int64_t)(random_bits(from->seed, from->count++) % (uint64_t)end);
}

static attn_term term(draw *from) {
  attn_term t = {(attn_term_kind)below(from, ATTN_RANDOM + 1), below(from, 9), 1 + below(from, 7), 0};
  if (t.kind == ATTN_LOCAL && below(from, 4) == 0) *(below(from, 2) ? &t.a : &t.b) = ATTN_UNLIMITED;
  if (t.kind == ATTN_STRIDED || t.kind == ATTN_FIXED) t.a++;
  if (t.kind == ATTN_FIXED) t.b %= t.a + 1;
  if (t.kind == ATTN_RANDOM) t.a %= 3, t.seed = below(from, 5) - 2;
  return t;
}

static int64_t pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }

static void add_tensors(draw *from, question *of) {
  attn_problem *p = &of->problem;
  const int64_t kind = below(from, 6);
  if (kind == 0) {
    p->features |= ATTN_DOCUMENTS;
    p->query_documents = attn_packed(ATTN_INT32, 1, p->query_length, 1);
    p->key_documents = attn_packed(ATTN_INT32, 1, p->key_length, 1);
    p->query_documents_data = of->query_documents;
    p->key_documents_data = of->key_documents;
    const bool sorted = below(from, 2) == 0;
    for (int64_t n = 0; n < (int64_t)MOST_BATCH * MOST_LENGTH; n++) {
      of->query_documents[n] = (int32_t)(sorted ? n / 5 : below(from, 3) - 1);
      of->key_documents[n] = (int32_t)(sorted ? n / 5 : below(from, 3) - 1);
    }
  }
  if (kind == 1) {
    p->features |= ATTN_BLOCKS;
    p->block_q = 1 + below(from, 9);
    p->block_k = 1 + below(from, 9);
    p->blocks = attn_packed(ATTN_UINT8, p->query_heads, pieces(p->query_length, p->block_q),
                            pieces(p->key_length, p->block_k));
    if (below(from, 2)) p->blocks.head = 0;
    p->blocks_data = of->blocks;
    for (size_t n = 0; n < sizeof of->blocks; n++) of->blocks[n] = (uint8_t)(below(from, 3) == 0 ? 2 : 0);
  }
  if (kind == 2) {
    p->features |= ATTN_TOPK;
    p->topk_count = 1 + below(from, p->key_length);
    p->topk = attn_packed(ATTN_INT32, p->query_heads, p->query_length, p->topk_count);
    p->topk_data = of->topk;
    for (int64_t row = 0; row < p->batch * p->query_heads * p->query_length; row++) {
      const int64_t first = below(from, p->key_length);
      for (int64_t n = 0; n < p->topk_count; n++)
        of->topk[row * p->topk_count + n] = below(from, 5) ? (int32_t)((first + n) % p->key_length) : -1;
    }
  }
}

static void ask(draw *from, question *of) {
  attn_problem *p = &of->problem;
  *p = (attn_problem){.batch = 1 + below(from, MOST_BATCH),
                      .query_heads = 1 + below(from, MOST_HEADS),
                      .kv_heads = 1,
                      .query_length = 1 + below(from, MOST_LENGTH),
                      .key_length = 1 + below(from, MOST_LENGTH),
                      .left = below(from, 2) ? ATTN_UNLIMITED : below(from, MOST_LENGTH),
                      .right = below(from, 2) ? ATTN_UNLIMITED : below(from, MOST_LENGTH),
                      .offset = below(from, 3) ? 0 : below(from, (int64_t)3 * MOST_LENGTH) - MOST_LENGTH};
  for (int64_t b = 0; b < MOST_BATCH; b++) {
    of->offsets[b] = below(from, (int64_t)2 * MOST_LENGTH) - MOST_LENGTH;
    of->lengths[b] = below(from, p->key_length + 1);
    of->query_lengths[b] = below(from, p->query_length + 1);
  }
  if (below(from, 5) == 0) p->offsets = of->offsets;
  if (below(from, 5) == 0) p->key_lengths = of->lengths;
  if (below(from, 5) == 0) p->query_lengths = of->query_lengths, p->features |= ATTN_QUERY_LENGTHS;
  add_tensors(from, of);
  if (below(from, 3) || !attn_has_pattern(p)) {
    p->features |= ATTN_PATTERN;
    p->term_count = 1 + below(from, ATTN_MOST_TERMS - 1);
    for (int64_t n = 0; n < p->term_count; n++) p->terms[n] = term(from);
  }
  const bool has_mask = below(from, 6) == 0;
  p->mask = attn_packed(has_mask ? ATTN_UINT8 : ATTN_ABSENT, p->query_heads, p->query_length, p->key_length);
  for (size_t n = 0; has_mask && n < sizeof of->mask; n++) of->mask[n] = below(from, 4) != 0;
  of->tensors = (attn_tensors){.mask = has_mask ? of->mask : NULL};
}

static void a_row_sees_what_the_reference_says(void **state) {
  (void)state;
  for (uint64_t n = 0; n < PROBLEMS; n++) {
    static question of;
    draw from = {n, 0};
    ask(&from, &of);
    const attn_problem *p = &of.problem;
    const int64_t b = below(&from, p->batch), h = below(&from, p->query_heads),
                  i = below(&from, p->query_length);
    const int64_t j0 = below(&from, p->key_length), j1 = j0 + below(&from, p->key_length - j0 + 1);
    uint8_t visible[MOST_LENGTH + 1];
    memset(visible, 7, sizeof visible);
    const int64_t said = attn_visible_row(p, &of.tensors, b, h, i, j0, j1, visible);
    const attn_range range = attn_visible_keys(p, b, i);
    int64_t count = 0;
    for (int64_t j = j0; j < j1; j++) {
      const bool seen = reference_sees(p, &of.tensors, b, h, i, j);
      count += seen;
      if (visible[j - j0] != seen || (seen && (j < range.first || j >= range.end)))
        fail_msg("problem %d: query %d, key %d", (int)n, (int)i, (int)j);
    }
    assert_int_equal(said, count);
    assert_int_equal(visible[j1 - j0], 7);
  }
}

static attn_visibility truth_of(const question *of, int64_t b, int64_t h, int64_t i0, int64_t i1, int64_t j0,
                                int64_t j1) {
  bool any = false, all = true;
  for (int64_t i = i0; i < i1; i++)
    for (int64_t j = j0; j < j1; j++) {
      const bool seen = reference_sees(&of->problem, &of->tensors, b, h, i, j);
      any |= seen;
      all &= seen;
    }
  return !any ? ATTN_EMPTY : all ? ATTN_FULL : ATTN_PARTIAL;
}

static void only_partial_is_said_of_a_tile_that_is_not(void **state) {
  (void)state;
  int64_t right[ATTN_FULL + 1] = {0}, careful[ATTN_FULL + 1] = {0};
  for (uint64_t n = 0; n < PROBLEMS; n++) {
    static question of;
    draw from = {n, 1 << 20};
    ask(&from, &of);
    const attn_problem *p = &of.problem;
    const int64_t b = below(&from, p->batch), h = below(&from, p->query_heads);
    const int64_t i0 = below(&from, p->query_length), j0 = below(&from, p->key_length);
    const int64_t most_i = below(&from, 2) ? 4 : MOST_LENGTH, most_j = below(&from, 2) ? 4 : MOST_LENGTH;
    const int64_t i1 = i0 + 1 + below(&from, p->query_length - i0 < most_i ? p->query_length - i0 : most_i);
    const int64_t j1 = j0 + 1 + below(&from, p->key_length - j0 < most_j ? p->key_length - j0 : most_j);
    const attn_visibility said = attn_visible_tile(p, b, h, i0, i1, j0, j1);
    const attn_visibility truth = truth_of(&of, b, h, i0, i1, j0, j1);
    const attn_range keys = attn_keys_of(p, b, i0, i1);
    if (truth_of(&of, b, h, i0, i1, 0, keys.first) != ATTN_EMPTY ||
        truth_of(&of, b, h, i0, i1, keys.end, p->key_length) != ATTN_EMPTY)
      fail_msg("problem %d: head %d, queries [%d, %d): more than keys [%d, %d)", (int)n, (int)h, (int)i0,
               (int)i1, (int)keys.first, (int)keys.end);
    if (said == truth)
      right[truth]++;
    else if (said == ATTN_PARTIAL)
      careful[truth]++;
    else
      fail_msg("problem %d: head %d, queries [%d, %d), keys [%d, %d): %d, not %d", (int)n, (int)h, (int)i0,
               (int)i1, (int)j0, (int)j1, said, truth);
  }
  print_message("tiles called partial: %d of %d that are empty, %d of %d that are full\n",
                (int)careful[ATTN_EMPTY], (int)(careful[ATTN_EMPTY] + right[ATTN_EMPTY]),
                (int)careful[ATTN_FULL], (int)(careful[ATTN_FULL] + right[ATTN_FULL]));
  for (int kind = ATTN_EMPTY; kind <= ATTN_FULL; kind++) assert_true(right[kind] > PROBLEMS / 25);
  assert_true(4 * careful[ATTN_EMPTY] < right[ATTN_EMPTY] && 4 * careful[ATTN_FULL] < right[ATTN_FULL]);
}

static void no_key_that_is_seen_is_passed_over(void **state) {
  (void)state;
  int64_t passed = 0;
  for (uint64_t n = 0; n < PROBLEMS; n++) {
    static question of;
    draw from = {n, 1 << 21};
    ask(&from, &of);
    const attn_problem *p = &of.problem;
    const int64_t b = below(&from, p->batch), h = below(&from, p->query_heads);
    const int64_t i0 = below(&from, p->query_length), i1 = i0 + 1 + below(&from, p->query_length - i0);
    const int64_t j = below(&from, p->key_length), next = attn_next_visible(p, b, h, i0, i1, j);
    if (next < j || next > p->key_length) fail_msg("problem %d: %d after key %d", (int)n, (int)next, (int)j);
    passed += next - j;
    if (next > j && truth_of(&of, b, h, i0, i1, j, next) != ATTN_EMPTY)
      fail_msg("problem %d: queries [%d, %d) see keys of [%d, %d)", (int)n, (int)i0, (int)i1, (int)j,
               (int)next);
  }
  assert_true(passed > PROBLEMS / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_sees_what_the_reference_says),
      cmocka_unit_test(only_partial_is_said_of_a_tile_that_is_not),
      cmocka_unit_test(no_key_that_is_seen_is_passed_over),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
