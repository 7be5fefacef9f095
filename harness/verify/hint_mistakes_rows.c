/* Rows of other heads and entries, and rows that see nothing. */
#include "hint_mistake_rows.h"

static bool kv_head(asked *a, int64_t head) {
  const bool changes = a->key.h != head;
  a->key.h = a->value.h = head;
  return changes;
}
static bool kv_modulo(asked *a, int64_t n) { return (void)n, kv_head(a, a->at.h % a->problem->kv_heads); }
static bool kv_other(asked *a, int64_t n) {
  return n < a->problem->kv_heads && kv_head(a, (a->key.h + n) % a->problem->kv_heads);
}
static bool query_of_head(asked *a, int64_t n) {
  return n < a->problem->query_heads && move(&a->query.h, (a->at.h + n) % a->problem->query_heads);
}
static bool key_of_head(asked *a, int64_t n) {
  return n < a->problem->kv_heads && move(&a->key.h, (a->key.h + n) % a->problem->kv_heads);
}
static bool value_of_head(asked *a, int64_t n) {
  return n < a->problem->kv_heads && move(&a->value.h, (a->value.h + n) % a->problem->kv_heads);
}
static bool keys_of_entry(asked *a, int64_t n) { return (void)n, move(&a->key.b, 0); }
static bool values_of_entry(asked *a, int64_t n) { return (void)n, move(&a->value.b, 0); }
static bool both_of_entry(asked *a, int64_t n) {
  const bool keys = keys_of_entry(a, n), values = values_of_entry(a, n);
  return keys || values;
}

static bool hidden_times_zero(asked *a, int64_t n) {
  bool hides = false;
  for (int64_t j = 0; j < a->problem->key_length && !hides; j++) hides = !hint_sees(a, j);
  return (void)n, a->hidden_times_zero = hides;
}
static bool empty_is(asked *a, int64_t n) { return a->empty = (empty_use)n, true; }

static const mistake table[] = {
    {"hidden", "values of hidden keys are multiplied by 0, which lets their NaN and infinities through",
     SOFTMAX, ONCE, hidden_times_zero},
    {"empty", "a row that sees no key is NaN (0/0, or -inf minus -inf) where it should be zeros", BOTH,
     WITH(EMPTY_NAN), empty_is},
    {"empty",
     "a row that sees no key is the mean of the values where it should be zeros: keys are hidden by a large "
     "number",
     SOFTMAX, WITH(EMPTY_MEAN), empty_is},
    {"empty",
     "a row that sees no key is the softmax of all where it should be zeros: keys are hidden by a number "
     "that all scores share",
     SOFTMAX, WITH(EMPTY_SOFTMAX), empty_is},
    {"empty", "the log-sum-exp of a row that sees no key is 0: it should be -inf, or the sink", SOFTMAX,
     WITH(EMPTY_LSE_0), empty_is},
    {"empty", "the log-sum-exp of a row that sees no key is +inf: it should be -inf, or the sink", SOFTMAX,
     WITH(EMPTY_LSE_INFINITE), empty_is},
    {"heads", "query head h reads key/value head h % Hkv: it should read h / (H / Hkv)", BOTH, ONCE,
     kv_modulo},
    {"heads", "another key/value head is read, %lld on from the right one", BOTH, WITH(1, 2, 3, 4, 5, 6, 7),
     kv_other},
    {"heads", "the keys are those of another head, %lld on", BOTH, WITH(1, 2, 3), key_of_head},
    {"heads", "the values are those of another head, %lld on", BOTH, WITH(1, 2, 3), value_of_head},
    {"heads", "the queries are those of another head, %lld on", BOTH, WITH(1, 2, 3, 4, 5, 6, 7),
     query_of_head},
    {"heads", "every batch entry reads keys and values of the first", BOTH, ONCE, both_of_entry},
    {"heads", "every batch entry reads the keys of the first", BOTH, ONCE, keys_of_entry},
    {"heads", "every batch entry reads the values of the first", BOTH, ONCE, values_of_entry},
};

const mistakes hint_mistakes_of_rows = MISTAKES(table);
