/* Runs a variant on the inputs of property_inputs.c and compares. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "hint_property.h"
#include "properties.h"
#include "property_check.h"
#include "property_gradients.h"
#include "property_states.h"
#include "run/team.h"

static void hold_repeat(property_check *t) {
  t->compared++;
  if (check_run_original(t, t->setup.threads, RUN_POISONED) &&
      inputs_outputs_checksum(t->all->original) != t->bits)
    check_fails(t, "a second run gives other bits");
}

static void hold_workspace(property_check *t) {
  static const int fillings[] = {0, 0x3f};
  if (runner_workspace_bytes(&t->setup, &t->all->original->problem) == 0) return;
  for (size_t n = 0; n < sizeof fillings / sizeof *fillings && !t->failed && t->had_memory; n++) {
    t->compared++;
    if (check_run_original(t, t->setup.threads, fillings[n]) &&
        inputs_outputs_checksum(t->all->original) != t->bits)
      check_fails(t, "other bits with a workspace full of bytes 0x%02x", fillings[n]);
  }
}

static void hold_threads(property_check *t) {
  static const int others[] = {1, 3};
  for (size_t n = 0; n < sizeof others / sizeof *others && !t->failed && t->had_memory; n++) {
    if (others[n] == t->setup.threads) continue;
    t->compared++;
    if (check_run_original(t, others[n], RUN_POISONED) &&
        inputs_outputs_checksum(t->all->original) != t->bits)
      check_fails(t, "gives other bits with %d thread%s than with %d", others[n], others[n] == 1 ? "" : "s",
                  t->setup.threads);
  }
}

static void hold_side_effects(property_check *t) {
  t->compared++;
  /* With one thread it is seen who does not ask how many there are. */
  if (check_run_original(t, t->setup.threads, RUN_POISONED) && t->setup.threads > 1)
    check_run_original(t, 1, RUN_POISONED);
}

/* Buffers at other addresses may be read in another order, so the bits may differ. */
static void hold_edges(property_check *t) {
  const altered *front = check_altered(t, AT_THE_FRONT);
  if (!front || !check_run_altered(t, front)) return;
  for (int64_t r = 0; r < t->all->row_count; r++)
    check_near_row(t, r, t->all->original, check_row(t, r), t->all->solved[r], &front->inputs,
                   check_row(t, r), t->all->solved[r], 0, "with buffers elsewhere");
}

/* What a sink leaves of the weights of a row; rounding: what a double can lose of it where the sink takes nearly
 * all, and the log-sum-exp is the sink but for its last places. */
static double left_by_sink(const property_check *t, int64_t r, double *rounding) {
  const inputs *in = t->all->original;
  *rounding = 0;
  if (!in->problem.sink.type) return 1;
  const double sink = in->tensors.sink[check_row(t, r).h * in->problem.sink.head],
               lse = t->all->solved[r]->lse;
  if (sink == -INFINITY) return 1;
  *rounding = 4 * DBL_EPSILON * (1 + fabs(lse));
  return -expm1(sink - lse);
}

static void hold_weights(property_check *t, int64_t r) {
  const inputs *in = t->all->original;
  const reference_row *row = t->all->solved[r];
  if (!inputs_owns(in, check_row(t, r).i)) return;
  if (!in->problem.weights.type || in->problem.keep.type || !check_has_finite_lse(row)) return;
  double sum = 0, seen = 0;
  for (int64_t j = 0; j < in->problem.key_length; j++) {
    seen += row->weights[j] > 0;
    sum += check_number(in, TENSOR_WEIGHTS, check_row(t, r), j);
  }
  double rounding;
  const double left = left_by_sink(t, r, &rounding);
  check_near(t, r, "the sum of weights", 0, sum, left,
             row->weights_bound_probabilistic * left + seen * row->weights_vanish + rounding, "as written");
}

static void hold_ones(property_check *t) {
  const altered *ones = check_altered(t, ONES);
  for (int64_t r = 0; r < t->all->row_count; r++) hold_weights(t, r);
  if (!ones || !check_run_altered(t, ones)) return;
  for (int64_t r = 0; r < t->all->row_count; r++) {
    double rounding;
    const double left = left_by_sink(t, r, &rounding);
    if (!inputs_owns(&ones->inputs, check_row(t, r).i)) continue;
    for (int64_t e = 0; e < ones->inputs.problem.value_dim; e++) {
      const reference_row *row = &ones->expected.solved[r];
      if (row->output[e] != 0) /* of a row that sees no key */
        check_near(t, r, "output", e, check_number(&ones->inputs, TENSOR_OUTPUT, check_row(t, r), e),
                   check_is_finite(row, e) ? left : NAN, row->output_bound_probabilistic[e] + rounding,
                   "with values of one");
    }
  }
}

/* How far beyond the largest value, or the smallest, an output may lie: by its bound; or where it rounds to 16 bits to
 * where that much without the rounding comes to lie, for to round is monotone. */
static double beyond(const property_check *t, const reference_row *row, int64_t e, double end, double side) {
  const attn_type type = t->all->original->problem.output.type;
  const element_type *to = element_type_of(type);
  const double bound = row->output_bound_probabilistic[e], unit = to->unit_roundoff;
  if (!element_type_is_narrow(type)) return bound;
  const double before = (bound - unit * fabs(row->output[e])) / (1 + unit);
  unsigned char farthest[sizeof(float)];
  to->store(farthest, side * fmin(side * end + before, to->largest));
  return fabs(to->load(farthest) - end);
}

static void hold_between(property_check *t) {
  const inputs *in = t->all->original;
  const int64_t width = in->problem.value_dim;
  if (in->problem.keep.type) return; /* some weights are larger, and their sum is any */
  for (int64_t r = 0; r < t->all->row_count; r++)
    for (int64_t e = 0; e < width && inputs_owns(in, check_row(t, r).i); e++) {
      const reference_row *row = t->all->solved[r];
      const double computed = check_number(in, TENSOR_OUTPUT, check_row(t, r), e);
      const double least = t->all->least[r * width + e], most = t->all->most[r * width + e];
      /* An infinite bound: sums on the way may overflow. */
      if (!isfinite(row->output_bound_probabilistic[e]) || !check_is_finite(row, e) || !isfinite(least) ||
          !isfinite(most))
        continue;
      const char *when = "between the values that the row sees";
      if (computed < least)
        check_near(t, r, "output", e, computed, least, beyond(t, row, e, least, -1), when);
      else
        check_near(t, r, "output", e, computed, fmin(computed, most), beyond(t, row, e, most, 1), when);
    }
}

static bool has_free_bits(const property_check *t) {
  return (t->setup.variant->traits & ATTN_FREE_BITS) != 0;
}

/* The same rows in both, of which the reference says the same: in bits, or where these are free within their bounds. */
static void check_equal_rows(property_check *t, const inputs *a, const inputs *b, const bool *rows,
                             const char *when) {
  const attn_problem *p = &t->all->original->problem;
  if (!has_free_bits(t)) {
    check_same_rows(t, a, b, rows, when);
    return;
  }
  for (int64_t r = 0; r < t->all->row_count; r++) {
    const row_place at = check_row(t, r);
    if (rows && !rows[(at.b * p->query_heads + at.h) * p->query_length + at.i]) continue;
    check_near_row(t, r, a, at, t->all->solved[r], b, at, t->all->solved[r], 0, when);
  }
}

static void hold_hidden(property_check *t) {
  static const char *const when[SETS_OF_HIDDEN_KEYS] = {"with NaN in keys that it cannot see",
                                                        "with large numbers in keys that it cannot see",
                                                        "with infinity in keys that it cannot see"};
  static const bool is_finite[SETS_OF_HIDDEN_KEYS] = {false, true, false};
  for (int set = 0; set < SETS_OF_HIDDEN_KEYS && !t->failed && t->had_memory; set++) {
    const altered *hidden = check_altered(t, (altered_kind)(HIDDEN_KEYS + set));
    if (t->setup.variant->traits & ATTN_FINITE && !is_finite[set]) continue;
    if (hidden && check_run_altered(t, hidden))
      check_equal_rows(t, t->all->original, &hidden->inputs, t->all->untouched[set], when[set]);
  }
}

static void hold_pair(property_check *t, altered_kind one, altered_kind other, const char *when) {
  const altered *a = check_altered(t, one), *b = check_altered(t, other);
  if (!a || !b || !check_run_altered(t, a) || !check_run_altered(t, b)) return;
  check_same_rows(t, &a->inputs, &b->inputs, NULL, when);
  property_hold_same_states(t, &a->inputs, (row_place){0}, &b->inputs, when);
}

static void hold_wide(property_check *t) { hold_pair(t, FULL, WIDE, "with a band as wide as the sequence"); }

static void hold_layout(property_check *t) {
  if (t->all->gradients)
    property_hold_gradients_in_layouts(t);
  else
    hold_pair(t, BY_HEADS, BY_POSITIONS, "in [B, T, H, D]");
}

static void hold_groups(property_check *t) {
  const properties *all = t->all;
  const altered *repeated = check_altered(t, REPEATED), *alone = check_altered(t, ALONE);
  if (repeated && check_run_altered(t, repeated))
    for (int64_t r = 0; r < all->row_count; r++)
      check_near_row(t, r, all->original, check_row(t, r), all->solved[r], &repeated->inputs, check_row(t, r),
                     all->solved[r], 0, "with keys and values repeated for each head");
  if (t->failed || !t->had_memory || !alone || !check_run_altered(t, alone)) return;
  for (int64_t r = 0; r < all->row_count; r++) {
    const row_place at = check_row(t, r);
    if (at.h == all->lone_head)
      check_near_row(t, r, all->original, at, all->solved[r], &alone->inputs, (row_place){at.b, 0, at.i},
                     all->solved[r], 0, "with its head alone");
  }
}

static void hold_near_pair(property_check *t, altered_kind one, altered_kind other, const double *shifts,
                           const char *when) {
  const altered *a = check_altered(t, one), *b = check_altered(t, other);
  if (!a || !b || !check_run_altered(t, a) || !check_run_altered(t, b)) return;
  for (int64_t r = 0; r < t->all->row_count; r++)
    check_near_row(t, r, &a->inputs, check_row(t, r), &a->expected.solved[r], &b->inputs, check_row(t, r),
                   &b->expected.solved[r], shifts ? shifts[r] : 0, when);
  property_hold_near_states(t, a, b, when);
}

static void hold_order(property_check *t) {
  if (t->all->gradients)
    property_hold_gradients_in_order(t);
  else
    hold_near_pair(t, PLAIN, REORDERED, NULL, "with keys and values in another order");
}

static void hold_shift(property_check *t) {
  hold_near_pair(t, LEVEL, SHIFTED, t->all->shifts, "with a constant added to its scores");
}

/* With a and b the shares of the halves, a + b = 1, errors of their log-sum-exps by d in all change a by less
 * than a b (exp(d) - 1). */
static void hold_merged_row(property_check *t, int64_t r, const altered *first, const altered *second) {
  const inputs *whole = t->all->original;
  const reference_row *row = t->all->solved[r], *one = &first->expected.solved[r],
                      *two = &second->expected.solved[r];
  const row_place at = check_row(t, r);
  if (!check_has_finite_lse(row) || !check_has_lse(one) || !check_has_lse(two)) return;
  if (!inputs_owns(whole, at.i) || !inputs_owns(&first->inputs, at.i) || !inputs_owns(&second->inputs, at.i))
    return;
  const double lse_one = check_number(&first->inputs, TENSOR_LSE, at, 0),
               lse_two = check_number(&second->inputs, TENSOR_LSE, at, 0);
  const double largest = fmax(lse_one, lse_two);
  const double lse = largest + log(exp(lse_one - largest) + exp(lse_two - largest));
  const double a = exp(lse_one - lse), b = exp(lse_two - lse);
  const double off = one->lse_bound_probabilistic + two->lse_bound_probabilistic;
  for (int64_t e = 0; e < whole->problem.value_dim; e++) {
    if (!check_is_finite(row, e) || !check_is_finite(one, e) || !check_is_finite(two, e)) continue;
    const double x = check_number(&first->inputs, TENSOR_OUTPUT, at, e),
                 y = check_number(&second->inputs, TENSOR_OUTPUT, at, e);
    /* A half that sees no key has no share, and a bound that is infinite is none of it. */
    double bound = row->output_bound_probabilistic[e] + 1e-12 * fabs(x);
    bound += a > 0 ? a * one->output_bound_probabilistic[e] : 0;
    bound += b > 0 ? b * two->output_bound_probabilistic[e] : 0;
    /* Of two that are zero, as dropout leaves them, no share of either makes more, and an infinite bound times 0 is none. */
    bound += a > 0 && b > 0 && (x != 0 || y != 0) ? a * b * expm1(off) * (fabs(x) + fabs(y)) : 0;
    if (!check_near(t, r, "output", e, check_number(whole, TENSOR_OUTPUT, at, e), a * x + b * y, bound,
                    "against its two halves"))
      return;
  }
  if (whole->problem.lse.type)
    check_near(t, r, "lse", 0, check_number(whole, TENSOR_LSE, at, 0), lse,
               row->lse_bound_probabilistic + off, "against its two halves");
}

static void hold_halves(property_check *t) {
  const altered *first = check_altered(t, FIRST_HALF), *second = check_altered(t, SECOND_HALF);
  if (!first || !second || !check_run_altered(t, first) || !check_run_altered(t, second)) return;
  for (int64_t r = 0; r < t->all->row_count; r++) hold_merged_row(t, r, first, second);
}

/* The outputs of the original are those of its own run, which comes again: others may have run since. */
static void hold_part(property_check *t, uint32_t trait, altered_kind kind, row_place first,
                      const char *when) {
  const altered *part = check_altered(t, kind);
  if (!(t->setup.variant->traits & trait) || !part) return;
  if (check_run_original(t, t->setup.threads, RUN_POISONED) && check_run_altered(t, part))
    check_same_as_original(t, part, first, when);
}

static void hold_company(property_check *t) {
  const attn_problem *p = &t->all->original->problem;
  const int64_t group = p->kv_heads > 0 ? p->query_heads / p->kv_heads : 0;
  hold_part(t, ATTN_BATCH_INVARIANT, ISOLATED,
            (row_place){t->all->isolated_entry, t->all->isolated_head * group, 0},
            "without the rest of the batch and the other heads");
  const altered *isolated = check_altered(t, ISOLATED);
  if (isolated && !t->failed && t->had_memory && t->setup.variant->traits & ATTN_BATCH_INVARIANT)
    property_hold_same_states(t, t->all->original,
                              (row_place){t->all->isolated_entry, t->all->isolated_head, 0},
                              &isolated->inputs, "without the rest of the batch and the other heads");
}

static void hold_sink(property_check *t) {
  hold_near_pair(t, PLAIN, SINK_KEY, NULL, "with a key for its sink");
}

static void hold_decoded(property_check *t) {
  hold_part(t, ATTN_DECODE_INVARIANT, DECODED, (row_place){0, 0, t->all->decoded_query}, "decoded alone");
}

/* What the reference says of a problem that was made, all of it. */
static void expect_right(property_check *t, const altered *on, const char *when) {
  verdict verdict;
  expected_compare(&on->expected, t->setup.variant->traits, &verdict);
  t->compared++;
  if (!verdict.passed) check_fails(t, "%s, %s", when, verdict.problem);
}

static void hold_bias(property_check *t) {
  const altered *biased = check_altered(t, BIASED), *unseen = check_altered(t, UNSEEN);
  if (!biased || !unseen || !check_run_altered(t, biased)) return;
  expect_right(t, biased, "with a bias of -inf");
  if (!t->failed && check_run_altered(t, unseen) && !has_free_bits(t))
    check_same_rows(t, &biased->inputs, &unseen->inputs, NULL,
                    "with large numbers in keys that a bias of -inf hides");
}

static bool gives_bits(property_check *t, uint64_t bits, const inputs *in, const char *when) {
  return has_free_bits(t) || inputs_outputs_checksum(in) == bits ||
         check_fails(t, "%s, it gives other bits", when);
}

/* With another scale, at the same addresses and then again with its own. */
static bool hold_rescaled(property_check *t) {
  const altered *rescaled = check_altered(t, RESCALED);
  if (!rescaled) return true;
  if (!check_run_altered(t, rescaled)) return false;
  const uint64_t bits = inputs_outputs_checksum(&rescaled->inputs);
  expect_right(t, rescaled, "with another scale");
  if (t->failed || !check_run_original(t, t->setup.threads, RUN_POISONED)) return false;
  properties_rescale(t->all, true);
  const bool same = check_run_original(t, t->setup.threads, RUN_POISONED) &&
                    gives_bits(t, bits, t->all->original, "with another scale and nothing else");
  properties_rescale(t->all, false);
  if (!same) inputs_restore(t->all->original); /* perhaps made anew for that scale */
  return same;
}

/* Who remembers something by where its inputs lie, or by their shape, takes it for what it is no longer. */
static void hold_state(property_check *t) {
  const altered *other = check_altered(t, OTHER);
  if (!hold_rescaled(t) || !other || !check_run_altered(t, other)) return;
  const uint64_t bits = inputs_outputs_checksum(&other->inputs);
  expect_right(t, other, "with other contents");
  if (t->failed || !check_run_original(t, t->setup.threads, RUN_POISONED) ||
      !gives_bits(t, t->bits, t->all->original, "after others of its shape"))
    return;
  properties_exchange(t->all);
  const bool same = check_run_original(t, t->setup.threads, RUN_POISONED) &&
                    gives_bits(t, bits, t->all->original, "with other contents where others were") &&
                    check_run_altered(t, other) &&
                    gives_bits(t, t->bits, &other->inputs, "with the same contents elsewhere");
  properties_undo_exchange(t->all);
  if (same && check_run_original(t, t->setup.threads, RUN_POISONED))
    gives_bits(t, t->bits, t->all->original, "with its own contents again");
}

static void hold_pattern(property_check *t) {
  const properties *all = t->all;
  const altered *turned = check_altered(t, TURNED), *band = check_altered(t, AS_BAND),
                *mask = check_altered(t, AS_MASK);
  if ((turned || band) && !check_run_original(t, t->setup.threads, RUN_POISONED)) return;
  if (turned && check_run_altered(t, turned))
    check_same_rows(t, all->original, &turned->inputs, NULL,
                    "with the terms of its pattern in another order");
  /* Which a kernel may take another way, and round otherwise. */
  if (!t->failed && t->had_memory && band && check_run_altered(t, band))
    for (int64_t r = 0; r < all->row_count; r++)
      check_near_row(t, r, all->original, check_row(t, r), all->solved[r], &band->inputs, check_row(t, r),
                     all->solved[r], 0, "with a band for the local term of its pattern");
  if (t->failed || !t->had_memory || !mask || !check_run_original(t, t->setup.threads, RUN_POISONED) ||
      !check_run_altered(t, mask))
    return;
  for (int64_t r = 0; r < all->row_count; r++)
    check_near_row(t, r, all->original, check_row(t, r), all->solved[r], &mask->inputs, check_row(t, r),
                   &mask->expected.solved[r], 0, "with a mask for its pattern");
}

/* The bias is rounded to a number of its type, of which the truth is another by as much. */
static void hold_position(property_check *t) {
  const inputs *given = t->all->original;
  const altered *bias = check_altered(t, AS_BIAS);
  if (!bias || !check_run_original(t, t->setup.threads, RUN_POISONED) || !check_run_altered(t, bias)) return;
  for (int64_t r = 0; r < t->all->row_count; r++) {
    const reference_row *one = t->all->solved[r], *other = &bias->expected.solved[r];
    const row_place at = check_row(t, r);
    if (!inputs_owns(given, at.i) || !inputs_owns(&bias->inputs, at.i)) continue;
    for (int64_t e = 0; e < given->problem.value_dim; e++)
      if (check_is_finite(one, e) && check_is_finite(other, e))
        check_near(t, r, "output", e, check_number(given, TENSOR_OUTPUT, at, e),
                   check_number(&bias->inputs, TENSOR_OUTPUT, at, e),
                   one->output_bound_probabilistic[e] + other->output_bound_probabilistic[e] +
                       fabs(one->output[e] - other->output[e]),
                   "with a bias for its positions");
  }
}

/* Scores follow from the distance of positions. Cosines and sines are rounded to float32, by less than a rotation may
 * round them: so that the two truths are no farther apart than a right kernel may be from each. */
static void hold_rope(property_check *t) {
  const inputs *given = t->all->original;
  const altered *farther = check_altered(t, FARTHER);
  if (!farther || !check_run_original(t, t->setup.threads, RUN_POISONED) || !check_run_altered(t, farther))
    return;
  for (int64_t r = 0; r < t->all->row_count; r++) {
    const reference_row *one = t->all->solved[r], *other = &farther->expected.solved[r];
    const row_place at = check_row(t, r);
    if (!inputs_owns(given, at.i) || !inputs_owns(&farther->inputs, at.i)) continue;
    for (int64_t e = 0; e < given->problem.value_dim; e++)
      if (check_is_finite(one, e) && check_is_finite(other, e))
        check_near(
            t, r, "output", e, check_number(&farther->inputs, TENSOR_OUTPUT, at, e),
            check_number(given, TENSOR_OUTPUT, at, e),
            2 * (fabs(one->output_bound_probabilistic[e]) + fabs(other->output_bound_probabilistic[e])),
            "with all positions shifted");
  }
}

static void hold_general(property_check *t) {
  hold_near_pair(t, AS_DOT, BY_ONE, NULL, "with matrices of one for its general scores");
}

static void hold_additive(property_check *t) {
  hold_near_pair(t, UNMOVED, MOVED, NULL, "with a vector moved from its keys to its queries");
}

/* Not the same bits: a kernel may go another way where there is no dropout, and round otherwise. */
static void hold_dropout(property_check *t) {
  hold_near_pair(t, UNDROPPED, ALL_KEPT, NULL, "with a keep mask of ones and a p of 0");
}

static const struct {
  const char *name;
  void (*hold)(property_check *t);
} table[PROPERTIES] = {
    [PROPERTY_REPEAT] = {"same bits again", hold_repeat},
    [PROPERTY_WORKSPACE] = {"any workspace", hold_workspace},
    [PROPERTY_THREADS] = {"any number of threads", hold_threads},
    [PROPERTY_SIDE_EFFECTS] = {"no side effects", hold_side_effects},
    [PROPERTY_EDGES] = {"guard pages in front", hold_edges},
    [PROPERTY_ONES] = {"weights sum to one", hold_ones},
    [PROPERTY_BETWEEN] = {"between smallest and largest value", hold_between},
    [PROPERTY_HIDDEN] = {"hidden keys", hold_hidden},
    [PROPERTY_WIDE] = {"wide band", hold_wide},
    [PROPERTY_GROUPS] = {"shared keys", hold_groups},
    [PROPERTY_ORDER] = {"order of keys", hold_order},
    [PROPERTY_SHIFT] = {"constant in the scores", hold_shift},
    [PROPERTY_LAYOUT] = {"layout", hold_layout},
    [PROPERTY_HALVES] = {"two halves", hold_halves},
    [PROPERTY_COMPANY] = {"any company", hold_company},
    [PROPERTY_SINK] = {"sink as a key", hold_sink},
    [PROPERTY_DECODED] = {"decoded alone", hold_decoded},
    [PROPERTY_BIAS] = {"bias of -inf", hold_bias},
    [PROPERTY_STATE] = {"no memory of other runs", hold_state},
    [PROPERTY_PATTERN] = {"pattern said otherwise", hold_pattern},
    [PROPERTY_POSITION] = {"positions as a bias", hold_position},
    [PROPERTY_ROPE] = {"shifted positions", hold_rope},
    [PROPERTY_GENERAL] = {"general scores by one", hold_general},
    [PROPERTY_ADDITIVE] = {"vector moved to queries", hold_additive},
    [PROPERTY_DROPOUT] = {"nothing dropped", hold_dropout},
    [PROPERTY_PARTS] = {"state handed over", property_hold_parts},
};

const char *property_name(property property) { return table[property].name; }

/* Those that compare bits, and nothing else. */
static const unsigned of_bits = 1u << PROPERTY_REPEAT | 1u << PROPERTY_WORKSPACE | 1u << PROPERTY_THREADS |
                                1u << PROPERTY_SIDE_EFFECTS | 1u << PROPERTY_WIDE | 1u << PROPERTY_LAYOUT |
                                1u << PROPERTY_COMPANY | 1u << PROPERTY_DECODED;

/* What is said of the backward pass and of a layer. */
static const unsigned of_gradients = 1u << PROPERTY_REPEAT | 1u << PROPERTY_WORKSPACE |
                                     1u << PROPERTY_THREADS | 1u << PROPERTY_SIDE_EFFECTS |
                                     1u << PROPERTY_LAYOUT | 1u << PROPERTY_ORDER;

bool properties_hold(properties *all, const run_setup *setup, unsigned wanted, property_verdict *verdict,
                     char *why, size_t why_size) {
  *verdict = (property_verdict){0};
  property_check t = {.all = all,
                      .setup = *setup,
                      .property = table[PROPERTY_REPEAT].name,
                      .had_memory = true,
                      .why = why,
                      .why_size = why_size};
  if (all->gradients) wanted &= of_gradients;
  if (all->row_count == 0 && !all->gradients) return true;
  if (has_free_bits(&t)) wanted &= ~of_bits;
  if (!check_run_original(&t, setup->threads, RUN_POISONED))
    verdict->failed = (unsigned)t.failed << PROPERTY_REPEAT;
  t.bits = inputs_outputs_checksum(all->original);
  for (int n = 0; n < PROPERTIES && t.had_memory && !t.failed; n++) {
    if (!(wanted >> n & 1)) continue;
    t.property = t.setup.property = table[n].name;
    t.workspace_in_front = n == PROPERTY_EDGES;
    t.side_effects = n == PROPERTY_SIDE_EFFECTS;
    t.compared = 0;
    t.ran[0] = t.ran[1] = NULL;
    table[n].hold(&t);
    const int judge = check_end_in_team(&t);
    if (t.compared > 0) verdict->checked |= 1u << n;
    verdict->failed |= (unsigned)t.failed << n;
    if (t.failed && !t.violated)
      hint_find_of_property((property)n, t.ran, setup->variant->traits, &verdict->hint);
    if (t.failed && judge >= 0) team_share(judge, &verdict->hint, sizeof verdict->hint);
  }
  memcpy(verdict->problem, t.problem, sizeof verdict->problem);
  return t.had_memory;
}
