/* Keys that count too seldom or too often, and what is carried from one tile of them to the next. */
#include "hint_mistake_rows.h"

static bool count(asked *a, int64_t first, int64_t end, double in_sum, double in_values) {
  a->counted = (attn_range){first < a->keys.first ? a->keys.first : first, end};
  a->counted_in_sum = in_sum;
  a->counted_in_values = in_values;
  return a->counted.first < a->counted.end;
}
static bool last_left_out(asked *a, int64_t n) { return count(a, a->keys.end - n, a->keys.end, 0, 0); }
static bool first_left_out(asked *a, int64_t n) { return count(a, a->keys.first, a->keys.first + n, 0, 0); }
static bool last_twice(asked *a, int64_t n) { return count(a, a->keys.end - n, a->keys.end, 2, 2); }
static bool first_twice(asked *a, int64_t n) { return count(a, a->keys.first, a->keys.first + n, 2, 2); }
static bool last_value_left_out(asked *a, int64_t n) { return count(a, a->keys.end - n, a->keys.end, 1, 0); }
static bool last_value_twice(asked *a, int64_t n) { return count(a, a->keys.end - n, a->keys.end, 1, 2); }
static bool last_weight_left_out(asked *a, int64_t n) { return count(a, a->keys.end - n, a->keys.end, 0, 1); }
static bool tail_left_out(asked *a, int64_t n) { return count(a, a->keys.end / n * n, a->keys.end, 0, 0); }
static bool tail_twice(asked *a, int64_t n) { return count(a, a->keys.end / n * n, a->keys.end, 2, 2); }
static bool last_tile_left_out(asked *a, int64_t n) {
  return count(a, (a->keys.end - 1) / n * n, a->keys.end, 0, 0);
}
static bool first_tile_twice(asked *a, int64_t n) {
  return a->keys.end > n && count(a, a->keys.first, a->keys.first / n * n + n, 2, 2);
}
static bool only_first_tile(asked *a, int64_t n) {
  return count(a, a->keys.first / n * n + n, a->keys.end, 0, 0);
}
static bool only_last_tile(asked *a, int64_t n) {
  return a->keys.end > n && count(a, a->keys.first, (a->keys.end - 1) / n * n, 0, 0);
}
static bool padding_counts(asked *a, int64_t n) {
  const int64_t rest = a->keys.end % n;
  a->more_zero_keys = rest ? (double)(n - rest) : 0;
  return rest != 0;
}

static bool output_not_rescaled(asked *a, int64_t n) { return a->tile = n, a->output_not_rescaled = true; }
static bool sum_not_rescaled(asked *a, int64_t n) { return a->tile = n, a->sum_not_rescaled = true; }
static bool nothing_rescaled(asked *a, int64_t n) {
  return a->tile = n, a->output_not_rescaled = a->sum_not_rescaled = true;
}
static bool maximum_from(asked *a, int64_t n) { return set(&a->lowest_maximum, -pow(10, (double)n)); }
static bool maximum_from_0(asked *a, int64_t n) { return (void)n, a->lowest_maximum = 0, true; }
static bool epsilon_in_sum(asked *a, int64_t n) { return set(&a->more_in_sum, pow(10, (double)-n)); }
static bool row_beside(asked *a, int64_t n) {
  const int64_t i = a->at.i + n;
  return i >= 0 && i < a->problem->query_length && move(&a->query.i, i);
}

static const mistake table[] = {
    {"maximum", "the row's maximum begins at some -1e30 in place of -inf", SOFTMAX,
     WITH(30, 10, 9, 6, 5, 4, 3, 2, 1), maximum_from},
    {"maximum", "the row's maximum begins at 0 in place of -inf, as that of padding is", SOFTMAX, ONCE,
     maximum_from_0},
    {"keys", "the last visible key is left out", BOTH, WITH(1), last_left_out},
    {"keys", "the last visible key counts twice", BOTH, WITH(1), last_twice},
    {"keys", "the first visible key is left out", BOTH, WITH(1), first_left_out},
    {"keys", "the first visible key counts twice", BOTH, WITH(1), first_twice},
    {"keys", "the value of the last visible key is left out, not its weight in the sum", BOTH, WITH(1),
     last_value_left_out},
    {"keys", "the value of the last visible key counts twice, its weight in the sum once", BOTH, WITH(1),
     last_value_twice},
    {"keys", "the weight of the last visible key is left out of the sum", BOTH, WITH(1),
     last_weight_left_out},
    {"keys", "keys behind the last whole tile of %lld are left out", BOTH, TILES, tail_left_out},
    {"keys", "keys behind the last whole tile of %lld count twice", BOTH, TILES, tail_twice},
    {"keys", "the last tile of %lld keys is left out", BOTH, TILES, last_tile_left_out},
    {"keys", "the first tile of %lld keys counts twice", BOTH, TILES, first_tile_twice},
    {"keys", "only the first tile of %lld keys counts", BOTH, TILES, only_first_tile},
    {"keys", "only the last tile of %lld keys counts", BOTH, TILES, only_last_tile},
    {"keys", "padding up to whole tiles of %lld counts as keys of score 0", BOTH, TILES, padding_counts},
    {"maximum", "the sum is not rescaled when the maximum rises from one tile of %lld keys to the next",
     SOFTMAX, TILES, sum_not_rescaled},
    {"maximum", "the output is not rescaled when the maximum rises from one tile of %lld keys to the next",
     SOFTMAX, TILES, output_not_rescaled},
    {"maximum",
     "neither sum nor output is rescaled when the maximum rises from one tile of %lld keys to the next",
     SOFTMAX, TILES, nothing_rescaled},
    {"sum", "1e-%lld is added to the sum of the weights", SOFTMAX, WITH(3, 4, 5, 6, 7, 8, 9, 10),
     epsilon_in_sum},
    {"rows", "the query %lld rows on is taken", BOTH, WITH(1, -1), row_beside},
};

const mistakes hint_mistakes_of_keys = MISTAKES(table);
