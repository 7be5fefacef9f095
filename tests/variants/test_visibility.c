/* What attention.h says of who sees whom, of a row and of a tile, against the definition of the band on random
 * problems. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/random.h"
#include "variants/attention.h"

enum { PROBLEMS = 40000, MOST_BATCH = 3, MOST_HEADS = 3, MOST_LENGTH = 12 };

/* A problem and what it points to. */
typedef struct question {
  attn_problem problem;
  attn_tensors tensors;
  int64_t offsets[MOST_BATCH], lengths[MOST_BATCH];
  uint8_t mask[MOST_BATCH * MOST_HEADS * MOST_LENGTH * MOST_LENGTH];
} question;

/* Numbers of one problem, one after the other. */
typedef struct draw {
  uint64_t seed, count;
} draw;

static int64_t below(draw *from, int64_t end) {
  return (int64_t)(random_bits(from->seed, from->count++) % (uint64_t)end);
}

static int64_t draw_side(draw *from) {
  const int64_t kind = below(from, 8);
  return kind == 0 ? ATTN_FARTHEST : kind < 4 ? ATTN_UNLIMITED : below(from, MOST_LENGTH);
}

static int64_t draw_offset(draw *from) {
  const int64_t kind = below(from, 16);
  return kind == 0   ? ATTN_FARTHEST
         : kind == 1 ? -ATTN_FARTHEST
                     : below(from, (int64_t)3 * MOST_LENGTH) - MOST_LENGTH;
}

static void ask(draw *from, question *of) {
  attn_problem *p = &of->problem;
  *p = (attn_problem){.batch = 1 + below(from, MOST_BATCH),
                      .query_heads = 1 + below(from, MOST_HEADS),
                      .query_length = 1 + below(from, MOST_LENGTH),
                      .key_length = 1 + below(from, MOST_LENGTH),
                      .left = draw_side(from),
                      .right = draw_side(from),
                      .offset = draw_offset(from)};
  const bool has_mask = below(from, 2) == 0;
  for (int64_t b = 0; b < MOST_BATCH; b++) {
    of->offsets[b] = draw_offset(from);
    of->lengths[b] = below(from, p->key_length + 1);
  }
  if (below(from, 3) == 0) p->offsets = of->offsets;
  if (below(from, 3) == 0) p->key_lengths = of->lengths;
  p->mask = attn_packed(has_mask ? ATTN_UINT8 : ATTN_ABSENT, p->query_heads, p->query_length, p->key_length);
  static const uint8_t bytes[] = {0, 1, 2, 0x80};
  for (size_t n = 0; n < sizeof of->mask; n++) of->mask[n] = bytes[below(from, 4)];
  of->tensors = (attn_tensors){.mask = p->mask.type ? of->mask : NULL};
}

/* The definition: i + offset - left <= j <= i + offset + right, the key exists, and the mask shows it. */
static bool sees(const question *of, int64_t b, int64_t h, int64_t i, int64_t j, bool masked) {
  const attn_problem *p = &of->problem;
  const int64_t centre = i + (p->offsets ? p->offsets[b] : p->offset);
  if (p->left != ATTN_UNLIMITED && j < centre - p->left) return false;
  if (p->right != ATTN_UNLIMITED && j > centre + p->right) return false;
  if (p->key_lengths && j >= p->key_lengths[b]) return false;
  return !masked || !p->mask.type ||
         of->mask[b * p->mask.batch + h * p->mask.head + i * p->mask.position + j] != 0;
}

static void a_row_sees_what_the_definition_says(void **state) {
  (void)state;
  for (uint64_t n = 0; n < PROBLEMS; n++) {
    static question of;
    draw from = {n, 0};
    ask(&from, &of);
    const attn_problem *p = &of.problem;
    const int64_t b = below(&from, p->batch), h = below(&from, p->query_heads),
                  i = below(&from, p->query_length);
    const int64_t j0 = below(&from, p->key_length), j1 = j0 + below(&from, p->key_length - j0 + 1);
    uint8_t visible[MOST_LENGTH + 1], shown[MOST_LENGTH + 1];
    memset(visible, 7, sizeof visible);
    memset(shown, 7, sizeof shown);
    attn_seen_row(p, &of.tensors, b, h, i, j0, j1, shown);
    const int64_t said = attn_visible_row(p, &of.tensors, b, h, i, j0, j1, visible);
    const attn_range range = attn_visible_keys(p, b, i);
    int64_t count = 0;
    for (int64_t j = j0; j < j1; j++) {
      const bool seen = sees(&of, b, h, i, j, true);
      count += seen;
      if (visible[j - j0] != seen || (shown[j - j0] != 0) != seen ||
          (j >= range.first && j < range.end) != sees(&of, b, h, i, j, false))
        fail_msg("problem %d: query %d, key %d", (int)n, (int)i, (int)j);
    }
    assert_int_equal(said, count);
    assert_int_equal(visible[j1 - j0], 7);
    assert_int_equal(shown[j1 - j0], 7);
  }
}

/* Of all heads together; ATTN_PARTIAL may also stand for what a mask makes empty, and never for anything else. */
static attn_visibility visibility(const question *of, int64_t b, int64_t i0, int64_t i1, int64_t j0,
                                  int64_t j1) {
  bool any = false, all = !of->problem.mask.type;
  for (int64_t i = i0; i < i1; i++)
    for (int64_t j = j0; j < j1; j++) {
      const bool seen = sees(of, b, 0, i, j, false);
      any |= seen;
      all &= seen;
    }
  return !any ? ATTN_EMPTY : all ? ATTN_FULL : ATTN_PARTIAL;
}

static void a_tile_is_empty_partial_or_full_as_the_definition_says(void **state) {
  (void)state;
  int64_t counts[ATTN_FULL + 1] = {0};
  for (uint64_t n = 0; n < PROBLEMS; n++) {
    static question of;
    draw from = {n, 1 << 20};
    ask(&from, &of);
    const attn_problem *p = &of.problem;
    const int64_t b = below(&from, p->batch);
    const int64_t i0 = below(&from, p->query_length), i1 = i0 + below(&from, p->query_length - i0 + 1);
    const int64_t j0 = below(&from, p->key_length), j1 = j0 + below(&from, p->key_length - j0 + 1);
    const attn_visibility said = attn_tile_visibility(p, b, i0, i1, j0, j1);
    const attn_visibility truth = visibility(&of, b, i0, i1, j0, j1);
    if (said != truth)
      fail_msg("problem %d: queries [%d, %d), keys [%d, %d): %d, not %d", (int)n, (int)i0, (int)i1, (int)j0,
               (int)j1, said, truth);
    counts[said]++;
  }
  for (int kind = ATTN_EMPTY; kind <= ATTN_FULL; kind++) assert_true(counts[kind] > PROBLEMS / 20);
}

static void queries_see_from_the_first_key_to_the_last_of_them_all(void **state) {
  (void)state;
  int64_t seen = 0;
  for (uint64_t n = 0; n < PROBLEMS; n++) {
    static question of;
    draw from = {n, 1 << 21};
    ask(&from, &of);
    const attn_problem *p = &of.problem;
    const int64_t b = below(&from, p->batch);
    const int64_t i0 = below(&from, p->query_length), i1 = i0 + below(&from, p->query_length - i0 + 1);
    attn_range expected = {0, 0};
    for (int64_t j = 0; j < p->key_length; j++) {
      if (visibility(&of, b, i0, i1, j, j + 1) == ATTN_EMPTY) continue;
      if (expected.end == 0) expected.first = j;
      expected.end = j + 1;
    }
    const attn_range said = attn_keys_of(p, b, i0, i1);
    if (said.first != expected.first || said.end != expected.end)
      fail_msg("problem %d: queries [%d, %d): keys [%d, %d), not [%d, %d)", (int)n, (int)i0, (int)i1,
               (int)said.first, (int)said.end, (int)expected.first, (int)expected.end);
    seen += said.end > said.first;
  }
  assert_in_range(seen, PROBLEMS / 4, PROBLEMS * 19 / 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_sees_what_the_definition_says),
      cmocka_unit_test(a_tile_is_empty_partial_or_full_as_the_definition_says),
      cmocka_unit_test(queries_see_from_the_first_key_to_the_last_of_them_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
