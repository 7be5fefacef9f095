/* Runs a variant on the inputs of property_inputs.c and compares. */
#include "properties.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One property of one variant on one problem. */
typedef struct check {
  properties *all;
  run_setup setup;
  property property;
  uint64_t bits;    /* of the outputs for the original problem */
  int64_t compared; /* what the property has said something of */
  property_verdict *verdict;
  bool had_memory;
  char *why;
  size_t why_size;
} check;

__attribute__((format(printf, 2, 3))) static bool fail(check *t, const char *format, ...) {
  property_verdict *verdict = t->verdict;
  if (verdict->failed) return false;
  verdict->failed |= 1u << t->property;
  const int length = snprintf(verdict->problem, sizeof verdict->problem, "%s: ", property_name(t->property));
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(verdict->problem + length, sizeof verdict->problem - (size_t)length, format, arguments);
  va_end(arguments);
  return false;
}

/* ---- Runs ---- */

/* False where memory is short or the variant did what it may not. Workspaces as in run_watch. */
static bool run_on(check *t, inputs *in, uint64_t checksum, int threads, int workspace) {
  const run_watch watch = {.workspace = workspace,
                           .workspace_in_front = t->property == PROPERTY_EDGES,
                           .side_effects = t->property == PROPERTY_SIDE_EFFECTS,
                           .inputs_checksum = checksum};
  run_setup setup = t->setup;
  run_outcome outcome;
  setup.threads = threads;
  t->had_memory = runner_run(&setup, in, &watch, &outcome, t->why, t->why_size);
  if (!t->had_memory) return false;
  return !outcome.violation[0] || fail(t, "%s", outcome.violation);
}

static bool run_original(check *t, int threads, int workspace) {
  return run_on(t, t->all->original, t->all->checksum, threads, workspace);
}

static bool run_altered(check *t, const altered *on) {
  return run_on(t, (inputs *)(uintptr_t)&on->inputs, on->checksum, t->setup.threads, RUN_POISONED);
}

static const altered *altered_for(const check *t, altered_kind kind) {
  const altered *on = &t->all->of[kind];
  return on->made && !runner_refusal(t->setup.variant, &on->inputs.problem) ? on : NULL;
}

/* ---- Comparisons ---- */

static const float *output_of(const inputs *in, row_place at) {
  const attn_layout *s = &in->problem.output;
  return (const float *)in->tensors.output + at.b * s->batch + at.h * s->head + at.i * s->position;
}

static float lse_of(const inputs *in, row_place at) {
  const attn_layout *s = &in->problem.lse;
  return in->tensors.lse[at.b * s->batch + at.h * s->head + at.i * s->position];
}

static const float *weights_of(const inputs *in, row_place at) {
  const attn_layout *s = &in->problem.weights;
  return (const float *)in->tensors.weights + at.b * s->batch + at.h * s->head + at.i * s->position;
}

static uint32_t bits_of(const float *number) {
  uint32_t bits;
  memcpy(&bits, number, sizeof bits);
  return bits;
}

/* NaN may carry other bits, but not those of the poison: that was not written. */
static bool same_numbers(const float *a, const float *b, int64_t count) {
  for (int64_t n = 0; n < count; n++) {
    const uint32_t one = bits_of(&a[n]), other = bits_of(&b[n]);
    const bool both_nan = isnan(a[n]) && isnan(b[n]) && one != GUARDED_POISON && other != GUARDED_POISON;
    if (one != other && !both_nan) return false;
  }
  return true;
}

static bool same_rows(const inputs *a, row_place in_a, const inputs *b, row_place in_b) {
  const attn_problem *p = &a->problem;
  if (!same_numbers(output_of(a, in_a), output_of(b, in_b), p->value_dim)) return false;
  if (p->lse.type) {
    const float one = lse_of(a, in_a), other = lse_of(b, in_b);
    if (!same_numbers(&one, &other, 1)) return false;
  }
  return !p->weights.type || same_numbers(weights_of(a, in_a), weights_of(b, in_b), p->key_length);
}

/* All rows, or those of a list of B H Tq. */
static void expect_same_rows(check *t, const inputs *a, const inputs *b, const bool *rows, const char *when) {
  const attn_problem *p = &a->problem;
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    if (rows && !rows[n]) continue;
    const row_place at = row_place_of(p, n);
    t->compared++;
    if (!same_rows(a, at, b, at)) {
      fail(t, "%s, row b %lld, h %lld, i %lld has other bits", when, (long long)at.b, (long long)at.h,
           (long long)at.i);
      return;
    }
  }
}

/* What a row of one run must be, give or take. A bound that is infinite allows anything; an expectation that is
 * not finite says nothing. */
static bool expect_near(check *t, int64_t r, const char *what, int64_t e, double computed, double expected,
                        double bound, const char *when) {
  if (!isfinite(expected)) return true;
  t->compared++;
  if (bound == INFINITY || fabs(computed - expected) <= bound) return true;
  const row_place at = row_place_of(&t->all->original->problem, t->all->rows[r]);
  return fail(t, "%s, %s[b %lld, h %lld, i %lld, %lld] is %.9g instead of %.9g within %.3g", when, what,
              (long long)at.b, (long long)at.h, (long long)at.i, (long long)e, computed, expected, bound);
}

/* Nor may be NaN as well. */
static bool is_finite_row(const reference_row *row, int64_t e) {
  return isfinite(row->output[e]) && !signbit(row->output_bound[e]);
}

/* -inf too, of a row that sees no key. */
static bool has_lse(const reference_row *row) { return !isnan(row->lse) && !signbit(row->lse_bound); }

static bool has_finite_lse(const reference_row *row) { return has_lse(row) && isfinite(row->lse); }

/* Row r of two runs of which each may be off by its own bound. shift: by which the log-sum-exp must differ. */
static void expect_near_row(check *t, int64_t r, const inputs *a, row_place in_a, const reference_row *of_a,
                            const inputs *b, row_place in_b, const reference_row *of_b, double shift,
                            const char *when) {
  for (int64_t e = 0; e < a->problem.value_dim; e++) {
    if (!is_finite_row(of_a, e) || !is_finite_row(of_b, e)) continue;
    const double bound = of_a->output_bound_probabilistic[e] + of_b->output_bound_probabilistic[e];
    if (!expect_near(t, r, "output", e, output_of(b, in_b)[e], output_of(a, in_a)[e], bound, when)) return;
  }
  if (!a->problem.lse.type || !has_finite_lse(of_a) || !has_finite_lse(of_b)) return;
  expect_near(t, r, "lse", 0, lse_of(b, in_b), lse_of(a, in_a) + shift,
              of_a->lse_bound_probabilistic + of_b->lse_bound_probabilistic, when);
}

/* ---- The properties ---- */

static void hold_repeat(check *t) {
  t->compared++;
  if (run_original(t, t->setup.threads, RUN_POISONED) && inputs_outputs_checksum(t->all->original) != t->bits)
    fail(t, "a second run gives other bits");
}

static void hold_workspace(check *t) {
  static const int fillings[] = {0, 0x3f};
  if (runner_workspace_bytes(&t->setup, &t->all->original->problem) == 0) return;
  for (size_t n = 0; n < sizeof fillings / sizeof *fillings && !t->verdict->failed && t->had_memory; n++) {
    t->compared++;
    if (run_original(t, t->setup.threads, fillings[n]) &&
        inputs_outputs_checksum(t->all->original) != t->bits)
      fail(t, "other bits with a workspace full of bytes 0x%02x", fillings[n]);
  }
}

static void hold_threads(check *t) {
  static const int others[] = {1, 3};
  for (size_t n = 0; n < sizeof others / sizeof *others && !t->verdict->failed && t->had_memory; n++) {
    if (others[n] == t->setup.threads) continue;
    t->compared++;
    if (run_original(t, others[n], RUN_POISONED) && inputs_outputs_checksum(t->all->original) != t->bits)
      fail(t, "gives other bits with %d thread%s than with %d", others[n], others[n] == 1 ? "" : "s",
           t->setup.threads);
  }
}

static void hold_side_effects(check *t) {
  t->compared++;
  /* With one thread it is seen who does not ask how many there are. */
  if (run_original(t, t->setup.threads, RUN_POISONED) && t->setup.threads > 1)
    run_original(t, 1, RUN_POISONED);
}

static row_place row_of(const check *t, int64_t r) {
  return row_place_of(&t->all->original->problem, t->all->rows[r]);
}

/* Buffers at other addresses may be read in another order, so the bits may differ. */
static void hold_edges(check *t) {
  const altered *front = altered_for(t, AT_THE_FRONT);
  if (!front || !run_altered(t, front)) return;
  for (int64_t r = 0; r < t->all->row_count; r++)
    expect_near_row(t, r, t->all->original, row_of(t, r), t->all->solved[r], &front->inputs, row_of(t, r),
                    t->all->solved[r], 0, "with buffers elsewhere");
}

/* What a sink leaves of the weights of a row; rounding: what a double can lose of it where the sink takes nearly
 * all, and the log-sum-exp is the sink but for its last places. */
static double left_by_sink(const check *t, int64_t r, double *rounding) {
  const inputs *in = t->all->original;
  *rounding = 0;
  if (!in->problem.sink.type) return 1;
  const double sink = in->tensors.sink[row_of(t, r).h * in->problem.sink.head], lse = t->all->solved[r]->lse;
  if (sink == -INFINITY) return 1;
  *rounding = 4 * DBL_EPSILON * (1 + fabs(lse));
  return -expm1(sink - lse);
}

static void hold_weights(check *t, int64_t r) {
  const inputs *in = t->all->original;
  const reference_row *row = t->all->solved[r];
  if (!in->problem.weights.type || !has_finite_lse(row)) return;
  const float *weights = weights_of(in, row_of(t, r));
  double sum = 0, bound = row->weights_bound_probabilistic;
  for (int64_t j = 0; j < in->problem.key_length; j++) sum += weights[j];
  double rounding;
  const double left = left_by_sink(t, r, &rounding);
  bound += (double)in->problem.key_length * (double)FLT_MIN + rounding;
  expect_near(t, r, "the sum of weights", 0, sum, left, bound, "as written");
}

static void hold_ones(check *t) {
  const altered *ones = altered_for(t, ONES);
  for (int64_t r = 0; r < t->all->row_count; r++) hold_weights(t, r);
  if (!ones || !run_altered(t, ones)) return;
  for (int64_t r = 0; r < t->all->row_count; r++) {
    double rounding;
    const double left = left_by_sink(t, r, &rounding);
    for (int64_t e = 0; e < ones->inputs.problem.value_dim; e++) {
      const reference_row *row = &ones->expected.solved[r];
      if (row->output[e] != 0) /* of a row that sees no key */
        expect_near(t, r, "output", e, output_of(&ones->inputs, row_of(t, r))[e],
                    is_finite_row(row, e) ? left : NAN, row->output_bound_probabilistic[e] + rounding,
                    "with values of one");
    }
  }
}

static void hold_between(check *t) {
  const inputs *in = t->all->original;
  const int64_t width = in->problem.value_dim;
  for (int64_t r = 0; r < t->all->row_count; r++)
    for (int64_t e = 0; e < width; e++) {
      const reference_row *row = t->all->solved[r];
      const double bound = row->output_bound_probabilistic[e];
      const double computed = output_of(in, row_of(t, r))[e];
      const double least = (double)t->all->least[r * width + e], most = (double)t->all->most[r * width + e];
      /* An infinite bound: sums on the way may overflow. */
      if (!isfinite(bound) || !is_finite_row(row, e) || !isfinite(least) || !isfinite(most)) continue;
      expect_near(t, r, "output", e, computed,
                  computed < least  ? least
                  : computed > most ? most
                                    : computed,
                  bound, "between the values that the row sees");
      if (isnan(computed)) fail(t, "an output is NaN");
    }
}

static void hold_hidden(check *t) {
  static const char *const when[SETS_OF_HIDDEN_KEYS] = {"with NaN in keys that it cannot see",
                                                        "with 1e30 in keys that it cannot see",
                                                        "with infinity in keys that it cannot see"};
  for (int set = 0; set < SETS_OF_HIDDEN_KEYS && !t->verdict->failed && t->had_memory; set++) {
    const altered *hidden = altered_for(t, (altered_kind)(HIDDEN_KEYS + set));
    if (hidden && run_altered(t, hidden))
      expect_same_rows(t, t->all->original, &hidden->inputs, t->all->untouched[set], when[set]);
  }
}

static void hold_pair(check *t, altered_kind one, altered_kind other, const char *when) {
  const altered *a = altered_for(t, one), *b = altered_for(t, other);
  if (a && b && run_altered(t, a) && run_altered(t, b))
    expect_same_rows(t, &a->inputs, &b->inputs, NULL, when);
}

static void hold_wide(check *t) { hold_pair(t, FULL, WIDE, "with a band as wide as the sequence"); }

static void hold_layout(check *t) { hold_pair(t, BY_HEADS, BY_POSITIONS, "in [B, T, H, D]"); }

static void hold_groups(check *t) {
  const properties *all = t->all;
  const altered *repeated = altered_for(t, REPEATED), *alone = altered_for(t, ALONE);
  if (repeated && run_altered(t, repeated))
    for (int64_t r = 0; r < all->row_count; r++)
      expect_near_row(t, r, all->original, row_of(t, r), all->solved[r], &repeated->inputs, row_of(t, r),
                      all->solved[r], 0, "with keys and values repeated for each head");
  if (t->verdict->failed || !t->had_memory || !alone || !run_altered(t, alone)) return;
  for (int64_t r = 0; r < all->row_count; r++) {
    const row_place at = row_of(t, r);
    if (at.h == all->lone_head)
      expect_near_row(t, r, all->original, at, all->solved[r], &alone->inputs, (row_place){at.b, 0, at.i},
                      all->solved[r], 0, "with its head alone");
  }
}

static void hold_near_pair(check *t, altered_kind one, altered_kind other, const double *shifts,
                           const char *when) {
  const altered *a = altered_for(t, one), *b = altered_for(t, other);
  if (!a || !b || !run_altered(t, a) || !run_altered(t, b)) return;
  for (int64_t r = 0; r < t->all->row_count; r++)
    expect_near_row(t, r, &a->inputs, row_of(t, r), &a->expected.solved[r], &b->inputs, row_of(t, r),
                    &b->expected.solved[r], shifts ? shifts[r] : 0, when);
}

static void hold_order(check *t) {
  hold_near_pair(t, PLAIN, REORDERED, NULL, "with keys and values in another order");
}

static void hold_shift(check *t) {
  hold_near_pair(t, LEVEL, SHIFTED, t->all->shifts, "with a constant added to its scores");
}

/* With a and b the shares of the halves, a + b = 1, errors of their log-sum-exps by d in all change a by less
 * than a b (exp(d) - 1). */
static void hold_merged_row(check *t, int64_t r, const altered *first, const altered *second) {
  const inputs *whole = t->all->original;
  const reference_row *row = t->all->solved[r], *one = &first->expected.solved[r],
                      *two = &second->expected.solved[r];
  const row_place at = row_of(t, r);
  if (!has_finite_lse(row) || !has_lse(one) || !has_lse(two)) return;
  const double lse_one = lse_of(&first->inputs, at), lse_two = lse_of(&second->inputs, at);
  const double largest = fmax(lse_one, lse_two);
  const double lse = largest + log(exp(lse_one - largest) + exp(lse_two - largest));
  const double a = exp(lse_one - lse), b = exp(lse_two - lse);
  const double off = one->lse_bound_probabilistic + two->lse_bound_probabilistic;
  for (int64_t e = 0; e < whole->problem.value_dim; e++) {
    if (!is_finite_row(row, e) || !is_finite_row(one, e) || !is_finite_row(two, e)) continue;
    const double x = output_of(&first->inputs, at)[e], y = output_of(&second->inputs, at)[e];
    /* A half that sees no key has no share, and a bound that is infinite is none of it. */
    double bound = row->output_bound_probabilistic[e] + 1e-12 * fabs(x);
    bound += a > 0 ? a * one->output_bound_probabilistic[e] : 0;
    bound += b > 0 ? b * two->output_bound_probabilistic[e] : 0;
    bound += a > 0 && b > 0 ? a * b * expm1(off) * (fabs(x) + fabs(y)) : 0;
    if (!expect_near(t, r, "output", e, output_of(whole, at)[e], a * x + b * y, bound,
                     "against its two halves"))
      return;
  }
  if (whole->problem.lse.type)
    expect_near(t, r, "lse", 0, lse_of(whole, at), lse, row->lse_bound_probabilistic + off,
                "against its two halves");
}

static void hold_halves(check *t) {
  const altered *first = altered_for(t, FIRST_HALF), *second = altered_for(t, SECOND_HALF);
  if (!first || !second || !run_altered(t, first) || !run_altered(t, second)) return;
  for (int64_t r = 0; r < t->all->row_count; r++) hold_merged_row(t, r, first, second);
}

/* Each row of the altered inputs against that of the original which it was made of. */
static void expect_same_as_original(check *t, const altered *on, row_place first, const char *when) {
  const attn_problem *p = &on->inputs.problem;
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    const row_place at = row_place_of(p, n);
    const row_place from = {first.b + at.b, first.h + at.h, first.i + at.i};
    t->compared++;
    if (!same_rows(&on->inputs, at, t->all->original, from)) {
      fail(t, "%s, row b %lld, h %lld, i %lld has other bits", when, (long long)from.b, (long long)from.h,
           (long long)from.i);
      return;
    }
  }
}

/* The outputs of the original are those of its own run, which comes again: others may have run since. */
static void hold_part(check *t, uint32_t trait, altered_kind kind, row_place first, const char *when) {
  const altered *part = altered_for(t, kind);
  if (!(t->setup.variant->traits & trait) || !part) return;
  if (run_original(t, t->setup.threads, RUN_POISONED) && run_altered(t, part))
    expect_same_as_original(t, part, first, when);
}

static void hold_company(check *t) {
  const attn_problem *p = &t->all->original->problem;
  const int64_t group = p->kv_heads > 0 ? p->query_heads / p->kv_heads : 0;
  hold_part(t, ATTN_BATCH_INVARIANT, ISOLATED,
            (row_place){t->all->isolated_entry, t->all->isolated_head * group, 0},
            "without the rest of the batch and the other heads");
}

static void hold_sink(check *t) { hold_near_pair(t, PLAIN, SINK_KEY, NULL, "with a key for its sink"); }

static void hold_decoded(check *t) {
  hold_part(t, ATTN_DECODE_INVARIANT, DECODED, (row_place){0, 0, t->all->decoded_query}, "decoded alone");
}

/* What the reference says of a problem that was made, all of it. */
static void expect_right(check *t, const altered *on, const char *when) {
  verdict verdict;
  expected_compare(&on->expected, &verdict);
  t->compared++;
  if (!verdict.passed) fail(t, "%s, %s", when, verdict.problem);
}

static void hold_bias(check *t) {
  const altered *biased = altered_for(t, BIASED), *unseen = altered_for(t, UNSEEN);
  if (!biased || !unseen || !run_altered(t, biased)) return;
  expect_right(t, biased, "with a bias of -inf");
  if (!t->verdict->failed && run_altered(t, unseen))
    expect_same_rows(t, &biased->inputs, &unseen->inputs, NULL,
                     "with 1e20 in keys that a bias of -inf hides");
}

static bool gives_bits(check *t, uint64_t bits, const inputs *in, const char *when) {
  return inputs_outputs_checksum(in) == bits || fail(t, "%s, it gives other bits", when);
}

/* With another scale, at the same addresses and then again with its own. */
static bool hold_rescaled(check *t) {
  const altered *rescaled = altered_for(t, RESCALED);
  if (!rescaled) return true;
  if (!run_altered(t, rescaled)) return false;
  const uint64_t bits = inputs_outputs_checksum(&rescaled->inputs);
  expect_right(t, rescaled, "with another scale");
  if (t->verdict->failed || !run_original(t, t->setup.threads, RUN_POISONED)) return false;
  properties_rescale(t->all, true);
  const bool same = run_original(t, t->setup.threads, RUN_POISONED) &&
                    gives_bits(t, bits, t->all->original, "with another scale and nothing else");
  properties_rescale(t->all, false);
  if (!same) inputs_restore(t->all->original); /* perhaps made anew for that scale */
  return same;
}

/* Who remembers something by where its inputs lie, or by their shape, takes it for what it is no longer. */
static void hold_state(check *t) {
  const altered *other = altered_for(t, OTHER);
  if (!hold_rescaled(t) || !other || !run_altered(t, other)) return;
  const uint64_t bits = inputs_outputs_checksum(&other->inputs);
  expect_right(t, other, "with other contents");
  if (t->verdict->failed || !run_original(t, t->setup.threads, RUN_POISONED) ||
      !gives_bits(t, t->bits, t->all->original, "after others of its shape"))
    return;
  properties_exchange(t->all);
  const bool same = run_original(t, t->setup.threads, RUN_POISONED) &&
                    gives_bits(t, bits, t->all->original, "with other contents where others were") &&
                    run_altered(t, other) &&
                    gives_bits(t, t->bits, &other->inputs, "with the same contents elsewhere");
  properties_undo_exchange(t->all);
  if (same && run_original(t, t->setup.threads, RUN_POISONED))
    gives_bits(t, t->bits, t->all->original, "with its own contents again");
}

static const struct {
  const char *name;
  void (*hold)(check *t);
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
};

const char *property_name(property property) { return table[property].name; }

bool properties_hold(properties *all, const run_setup *setup, unsigned wanted, property_verdict *verdict,
                     char *why, size_t why_size) {
  *verdict = (property_verdict){0};
  check t = {
      .all = all, .setup = *setup, .verdict = verdict, .had_memory = true, .why = why, .why_size = why_size};
  if (all->row_count == 0 || !run_original(&t, setup->threads, RUN_POISONED)) return t.had_memory;
  t.bits = inputs_outputs_checksum(all->original);
  for (int n = 0; n < PROPERTIES && t.had_memory && !verdict->failed; n++) {
    if (!(wanted >> n & 1)) continue;
    t.property = (property)n;
    t.setup.property = table[n].name;
    t.compared = 0;
    table[n].hold(&t);
    if (t.compared > 0) verdict->checked |= 1u << n;
  }
  return t.had_memory;
}
