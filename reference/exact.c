/* The bound of rows whose sums are exact in any order, so that what a sum may be off does not grow with its length:
 * weights of softmax attention that are powers of two, weights of linear attention that are whole numbers. One key among
 * tens of thousands is seen. README.md derives it; symbols here are those of the derivation. */
#include "exact.h"

#include <float.h>
#include <math.h>

#include "narrow.h"
#include "roundings.h"
#include "rows.h"

#define SECOND_ORDER (1 + 0x1p-8) /* products of errors */
#define GROWTH 68                 /* how many times what the weights are off their sum can be, */
#define BINADES 0x1p17            /* up to this many times the smallest of them */
#define WHOLE 0x1p24              /* whole numbers up to here are exact */

enum { LEVELS = 8 }; /* weights below the largest, in powers of two */

/* What the keys of a row of softmax attention are found to be: each weight is 2^-level of the largest. */
typedef struct levels {
  bool used[LEVELS + 1];
  double product[LEVELS + 1]; /* q.k of all keys of the level: one number, so that they are computed alike */
  double weight[LEVELS + 1];  /* their sum, in units of the largest */
  double largest;             /* m */
  int deepest;
} levels;

/* The feature that the query looks at: of no feature but one is it other than zero. -1: it is not so. */
static int64_t only_feature(const float *query, int64_t head_dim) {
  int64_t found = -1;
  for (int64_t d = 0; d < head_dim; d++) {
    if (query[d] == 0) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return found;
}

/* False where the score lies on no level, or the level's keys are not all computed alike. */
static bool add_score(levels *found, double score, double product) {
  const double below = (found->largest - score) / M_LN2, level = rint(below);
  if (!(level <= LEVELS) || fabs(below - level) > 1e-9) return false;
  const int n = (int)level;
  if (found->used[n] && found->product[n] != product) return false;
  found->used[n] = true;
  found->product[n] = product;
  found->weight[n] += ldexp(1, -n);
  if (n > found->deepest) found->deepest = n;
  return true;
}

static bool find_levels(const attn_problem *p, const attn_tensors *tensors, int64_t b, int64_t h, int64_t i,
                        const reference_row *row, levels *found) {
  const float *query = reference_vector(tensors->query, p->query, b, h, i);
  const float *bias = p->bias.type ? reference_vector(tensors->bias, p->bias, b, h, i) : NULL;
  const double sink = reference_sink(p, tensors, b, h, i);
  const int64_t d = only_feature(query, p->head_dim);
  *found = (levels){.largest = sink};
  if (d < 0 || p->softcap > 0 || p->rope_cos.type || p->general.type || p->additive.type ||
      (sink != 0 && sink != -INFINITY))
    return false;
  for (int64_t j = 0; j < p->key_length; j++)
    if (row->visible[j]) found->largest = fmax(found->largest, row->scores[j]);
  for (int64_t j = 0; j < p->key_length; j++) {
    if (!row->visible[j] || row->scores[j] == -INFINITY) continue;
    const float *key = reference_vector(tensors->key, p->key, b, reference_kv_head(p, h), j);
    if ((bias && bias[j] != 0) || reference_position(p, b, h, i, j).size != 0 ||
        !add_score(found, row->scores[j], (double)query[d] * key[d]))
      return false;
  }
  return (sink != 0 || add_score(found, sink, 0)) && fabs(found->largest) <= LEVELS;
}

/* omega: what a weight of this level can be off. The largest is the exponential of 0, but where its score is not 0 and
 * rounds otherwise in one product than in another. */
static double weight_error(const levels *found, int level, int rises) {
  const double m = fabs(found->largest), below = level * M_LN2;
  if (level == 0) return bound_grown(2 * UNIT * m);
  return bound_grown(6 * UNIT * (m + fabs(found->largest - below)) + 4 * UNIT * below + 5 * UNIT * rises);
}

/* What the row's weights can be off, and their sum. */
typedef struct sum_error {
  double sum;   /* in units of the largest */
  double terms; /* the largest relative error of a weight */
  double all;   /* of the sum */
} sum_error;

static sum_error sum_weights(const levels *found) {
  sum_error of = {0};
  double off = 0;
  int rises = -1; /* of a running maximum */
  for (int n = 0; n <= LEVELS; n++) rises += found->used[n];
  for (int n = 0; n <= LEVELS; n++) {
    if (!found->used[n]) continue;
    const double omega = weight_error(found, n, rises);
    of.terms = fmax(of.terms, omega);
    of.sum += found->weight[n];
    off += found->weight[n] * omega;
  }
  of.all =
      GROWTH * off / of.sum + 2 * of.terms; /* all may share the error of a maximum that is not the largest */
  return of;
}

/* Adds |v| and the number of those that are not zero, and finds the largest, in the places where the bounds are returned. */
static void add_values(const attn_problem *p, reference_row *row, const float *value, double weight) {
  for (int64_t e = 0; e < p->value_dim; e++) {
    if (value[e] == 0) continue;
    const double term = weight * fabs((double)value[e]);
    row->output_bound[e] += term;
    row->output_bound_probabilistic[e]++;
    row->output_deviation[e] = fmax(row->output_deviation[e], term);
  }
}

static void add_all_values(const attn_problem *p, const attn_tensors *tensors, int64_t b, int64_t h,
                           int64_t i, double divisor, reference_row *row) {
  for (int64_t e = 0; e < p->value_dim; e++)
    row->output_bound[e] = row->output_bound_probabilistic[e] = row->output_deviation[e] = 0;
  for (int64_t j = 0; j < p->key_length; j++) {
    if (!row->visible[j] || row->weights[j] == 0) continue;
    add_values(p, row, reference_vector(tensors->value, p->value, b, reference_kv_head(p, h), j),
               row->weights[j] * reference_kept(p, b, h, i, j) / divisor);
  }
}

/* The sizes of all sums that are rounded on the way to one of `count` terms, added up: at most so much, in any order. */
static double sizes_of_sums(double count, double terms, double sum, double largest) {
  const double one_sign = (terms + sum) / 2, other = (terms - sum) / 2;
  return one_sign * fmin(count, count + 3 - other / largest);
}

/* What each term, and each sum of some, may lose below the normal range: where units multiply bfloat16, all of it. */
static double lost_below(const attn_problem *p) {
  const double flushed = reference_rounding_of(p->value.type).flushed;
  return fmax(SUBNORMAL, p->keep.type ? flushed / (1 - p->dropout_p) : flushed);
}

/* own: the relative error of each term; shared: that of the sum of weights; sum: that sum as kernels have it; lost:
 * of each term. */
static void set_outputs(const attn_problem *p, reference_row *row, double own, double shared, double sum,
                        double lost) {
  for (int64_t e = 0; e < p->value_dim; e++) {
    const double terms = row->output_bound[e], count = row->output_bound_probabilistic[e];
    const double o = fabs(row->output[e]);
    const double sums = terms > 0 ? sizes_of_sums(count, terms, o, row->output_deviation[e]) : 0;
    double bound = (terms * (own + 4 * UNIT) + sums * UNIT + o * (shared + 4 * UNIT)) * SECOND_ORDER +
                   (count + 4) * lost;
    if (!(terms * sum <= LARGEST)) bound = INFINITY;
    row->output_bound[e] = isfinite(row->output[e]) ? bound : 0;
    row->output_bound_probabilistic[e] = row->output_deviation[e] = row->output_bound[e];
  }
}

bool reference_exact_softmax(const attn_problem *p, const attn_tensors *tensors, int64_t b, int64_t h,
                             int64_t i, reference_row *row) {
  levels found;
  int exponent;
  /* What dropout multiplies by is a power of two, or products round. */
  if (p->keep.type && frexp(1 - p->dropout_p, &exponent) != 0.5) return false;
  if (!find_levels(p, tensors, b, h, i, row, &found)) return false;
  const sum_error off = sum_weights(&found);
  if (ldexp(off.sum, found.deepest) > BINADES) return false;
  const double logarithm = log(off.sum), lse = fabs(row->lse);
  const double joined = UNIT * (4 * logarithm + 2 * lse); /* parts, by their log-sum-exps */
  add_all_values(p, tensors, b, h, i, 1, row);
  set_outputs(p, row, off.terms + joined, off.all + joined, ldexp(off.sum, LEVELS), lost_below(p));
  row->lse_bound = off.all * SECOND_ORDER + UNIT * (8 * logarithm + 4 * fabs(found.largest) + 4 * lse + 4);
  row->weights_bound = (off.terms + off.all + joined + 4 * UNIT) * SECOND_ORDER;
  row->lse_bound_probabilistic = row->lse_bound;
  row->weights_bound_probabilistic = row->weights_bound;
  return true;
}

static bool are_whole(const float *features, int64_t count) {
  for (int64_t d = 0; d < count; d++)
    if (!(features[d] >= 0 && (double)features[d] < WHOLE && features[d] == rintf(features[d]))) return false;
  return true;
}

bool reference_exact_linear(const attn_problem *p, const attn_tensors *tensors, int64_t b, int64_t h,
                            int64_t i, reference_row *row) {
  if (p->decay.type || p->states.state.type ||
      !are_whole(reference_vector(tensors->query, p->query, b, h, i), p->head_dim))
    return false;
  double sum = 0;
  for (int64_t j = 0; j < p->key_length; j++) {
    if (!row->visible[j]) continue;
    const float *key = reference_vector(tensors->key, p->key, b, reference_kv_head(p, h), j);
    if (!are_whole(key, p->head_dim)) return false;
    sum += row->weights[j];
  }
  if (!(sum > 0 && sum <= WHOLE)) return false;
  add_all_values(p, tensors, b, h, i, p->unnormalised ? 1 : sum + p->epsilon, row);
  set_outputs(p, row, (double)p->head_dim * UNIT, 4 * UNIT, sum, SUBNORMAL);
  return true;
}
