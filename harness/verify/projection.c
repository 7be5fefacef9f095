/* See projection.h. */
#include "projection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/random.h"
#include "problem/types.h"
#include "problem/widened.h"
#include "projection_sums.h"
#include "reference/additive.h"
#include "reference/feature_map.h"
#include "reference/general.h"
#include "reference/rows.h"

/* Elements below which waking threads costs more than they save. */
static const int64_t worth_threads = 1 << 16;

/* ---- the truth along the directions ---- */

/* Of either sign, from 1/2 to 1 in size before the division, which keeps sums within float32: no errors of a few
 * elements cancel but by chance, as with equal ones they would. */
static double direction(uint64_t seed, uint64_t n, int64_t value_dim) {
  const uint64_t bits = random_bits(seed, n);
  const double size = 0.5 + 0.5 * (double)(bits >> 11) * 0x1p-53;
  return (bits & 1 ? -size : size) / (double)value_dim;
}

static bool solve(const projection *projection, const inputs *in) {
  const attn_problem *p = &in->problem;
  projection_sums *const sums =
      reference_function_of(p->function)->has_scores ? projection_sums_softmax : projection_sums_linear;
  return sums(projection, in) && !interrupt_wanted();
}

bool projection_create(projection *projection, const inputs *in) {
  const attn_problem *p = &in->problem;
  memset(projection, 0, sizeof *projection);
  if (!reference_function_of(p->function)->solve) return false; /* its rows are others */
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  const size_t numbers = PROJECTION_DIRECTIONS * (size_t)p->value_dim;
  projection->rows = rows;
  projection->of = calloc((size_t)rows + 1, sizeof *projection->of);
  projection->directions = calloc(numbers + 1, sizeof *projection->directions);
  bool good = projection->of && projection->directions;
  for (size_t n = 0; good && n < numbers; n++)
    projection->directions[n] =
        direction(random_mixed(in->workload.seed + UINT64_C(0xd12ec)), n, p->value_dim);
  widened widened = {0};
  good = good && widened_create(&widened, &in->problem, &in->tensors, false);
  inputs wide = *in;
  wide.tensors = widened.tensors;
  good = good && solve(projection, &wide);
  widened_destroy(&widened);
  if (!good) projection_destroy(projection);
  return good;
}

void projection_destroy(projection *projection) {
  free(projection->of);
  free(projection->directions);
  memset(projection, 0, sizeof *projection);
}

double projection_bytes(const workload *w) {
  return (double)w->batch * (double)w->query_heads * (double)w->query_length * sizeof(projected_row);
}

/* ---- what a batch changed ---- */

/* A key and its value, before the batch and in its last run. */
typedef struct changed_key {
  const run_batch *batch; /* NULL: nothing was changed */
  float *before;          /* the key and, behind it, the value */
  const float *now;
  projected_value value_before, value_now;
} changed_key;

/* The position of the changed key among those of a head, -1 where it is none of them. */
static int64_t changed_position(const changed_key *changed, const attn_problem *p, int64_t b,
                                int64_t kv_head) {
  if (!changed->batch || p->key.position <= 0) return -1;
  const int64_t from = changed->batch->changes[1].at - b * p->key.batch - kv_head * p->key.head;
  const bool is_of_head = from >= 0 && from % p->key.position == 0 && from / p->key.position < p->key_length;
  return is_of_head ? from / p->key.position : -1;
}

static float unchanged(const run_change *change, int64_t n) {
  const element_type *type = element_type_of(change->type);
  return (float)type->load(change->unchanged + n * (int64_t)type->bytes);
}

/* False when memory is short. */
static bool find_changed_key(changed_key *changed, const projection *projection, const inputs *in,
                             const run_batch *batch) {
  const attn_problem *p = &in->problem;
  *changed = (changed_key){.batch = batch && batch->changed_row >= 0 ? batch : NULL};
  if (!changed->batch) return true;
  const run_change *key = &batch->changes[1], *value = &batch->changes[2];
  const int64_t b = batch->changed_row / p->query_length / p->query_heads;
  const int64_t h = batch->changed_row / p->query_length % p->query_heads;
  const int64_t kv_head = h / (p->query_heads / p->kv_heads), j = changed_position(changed, p, b, kv_head);
  const size_t D = (size_t)p->head_dim, Dv = (size_t)p->value_dim;
  if (j < 0) return false;
  changed->before = malloc((D + Dv) * sizeof *changed->before);
  if (!changed->before) return false;
  changed->now = reference_vector(in->tensors.key, p->key, b, kv_head, j);
  memcpy(changed->before, changed->now, D * sizeof(float));
  for (int64_t d = 0; d < key->count; d++) changed->before[d] = unchanged(key, d);
  const float *now = reference_vector(in->tensors.value, p->value, b, kv_head, j);
  memcpy(changed->before + D, now, Dv * sizeof(float));
  changed->before[D + (size_t)(value->at - (now - (const float *)in->tensors.value))] = unchanged(value, 0);
  changed->value_before = projection_of(projection, changed->before + D, p->value_dim);
  changed->value_now = projection_of(projection, now, p->value_dim);
  return true;
}

/* The weight of a key in a row, of whose normaliser it was or was not a part. */
static double weight_of(const inputs *in, int64_t b, int64_t h, int64_t i, int64_t j, const float *key,
                        double normaliser) {
  const attn_problem *p = &in->problem;
  const float *query = reference_vector(in->tensors.query, p->query, b, h, i);
  double sum = 0;
  if (!reference_function_of(p->function)->has_scores) {
    double decayed = 0;
    for (int64_t d = 0; d < p->head_dim; d++) sum += reference_phi(p, query[d]) * reference_phi(p, key[d]);
    for (int64_t t = j + 1, end = p->decay.type ? reference_decay_end(p, b, i) : 0; t < end; t++)
      decayed += reference_decay(p, b, reference_kv_head(p, h), t);
    return sum * exp(decayed) / normaliser;
  }
  const int64_t position = reference_query_position(p, b, i);
  for (int64_t d = 0; d < p->head_dim && !p->general.type && !p->additive.type; d++)
    sum += reference_rotated(p, position, query, d).value * reference_rotated(p, j, key, d).value;
  if (p->general.type) {
    reference_general general;
    reference_transform(p, b, h, i, query, &general);
    sum = reference_general_dot(p, &general, key, j);
  }
  if (p->additive.type) sum = reference_additive(p, h, (reference_pair_of){query, key, position, j});
  sum *= p->scale;
  if (p->softcap > 0) sum = p->softcap * tanh(sum / p->softcap);
  if (p->bias.type) sum += (double)reference_vector(in->tensors.bias, p->bias, b, h, i)[j];
  sum += reference_position(p, b, h, i, j).sum;
  return exp(sum - normaliser);
}

/* The row as it is with what the batch changed, as far as that can be told from what is known. */
static projected_row changed_row(projected_row row, const inputs *in, const changed_key *changed, int64_t b,
                                 int64_t h, int64_t i) {
  const attn_problem *p = &in->problem;
  const int64_t j = changed_position(changed, p, b, h / (p->query_heads / p->kv_heads));
  if (changed->batch &&
      b * p->query.batch + h * p->query.head + i * p->query.position == changed->batch->changes[0].at)
    row.scores = NAN; /* all its weights are others */
  if (j < 0 || !reference_sees(p, &in->tensors, b, h, i, j)) return row;
  const double before = weight_of(in, b, h, i, j, changed->before, row.normaliser);
  const double now = weight_of(in, b, h, i, j, changed->now, row.normaliser);
  const double total = p->unnormalised ? 1 : 1 - before + now;
  if (!(before <= 0.5 || p->unnormalised)) row.scores = NAN; /* too little is left */
  const double kept = reference_kept(p, b, h, i, j);
  for (int n = 0; n < PROJECTION_DIRECTIONS; n++)
    row.along[n] = (row.along[n] +
                    kept * (now * changed->value_now.along[n] - before * changed->value_before.along[n])) /
                   total;
  row.normaliser =
      reference_function_of(p->function)->has_scores ? row.normaliser + log(total) : row.normaliser * total;
  return row;
}

/* ---- comparison ---- */

/* How far what was found is off, as a share of the unit. */
static double share_of(double found, double reference, double unit) {
  const double off = fabs(found - reference);
  return found == reference ? 0 : isfinite(off) ? off / unit : INFINITY;
}

/* Every value along the first direction, which weights that are wanted have to make the output of. NULL: none are, or
 * memory is short. */
static double *values_along(const projection *projection, const inputs *in) {
  const attn_problem *p = &in->problem;
  const int64_t count = p->batch * p->kv_heads * p->key_length;
  double *along = p->weights.type ? malloc(((size_t)count + 1) * sizeof *along) : NULL;
  for (int64_t n = 0; along && n < count; n++) {
    const int64_t b = n / p->key_length / p->kv_heads, kv_head = n / p->key_length % p->kv_heads;
    const float *value = reference_vector(in->tensors.value, p->value, b, kv_head, n % p->key_length);
    along[n] = projection_of(projection, value, p->value_dim).along[0];
  }
  return along;
}

static double weights_along(const inputs *in, const double *values, int64_t b, int64_t h, int64_t i) {
  const attn_problem *p = &in->problem;
  const float *weights = reference_vector(in->tensors.weights, p->weights, b, h, i);
  double along = 0;
  values += (b * p->kv_heads + reference_kv_head(p, h)) * p->key_length;
  for (int64_t j = 0; j < p->key_length; j++)
    if (weights[j] != 0) along += weights[j] * values[j];
  return along;
}

/* How far a row is off, in units of its own; negative where nothing is known of it. */
static double deviation(const projection *projection, const inputs *in, const projected_row *row,
                        const double *values, int64_t b, int64_t h, int64_t i) {
  const attn_problem *p = &in->problem;
  const projected_value found =
      projection_of(projection, reference_vector(in->tensors.output, p->output, b, h, i), p->value_dim);
  const double unit = row->scores * (row->size + found.size);
  double worst = 0;
  if (!isfinite(row->scores)) return -1;
  for (int n = 0; n < PROJECTION_DIRECTIONS; n++) {
    if (!isfinite(row->along[n])) return -1;
    worst = fmax(worst, share_of(found.along[n], row->along[n], unit));
  }
  if (p->lse.type) {
    const double lse = *reference_vector(in->tensors.lse, p->lse, b, h, i);
    worst = fmax(worst, share_of(lse, row->normaliser, row->scores + fabs(row->normaliser)));
  }
  if (values)
    worst = fmax(worst, share_of(weights_along(in, values, b, h, i), row->along[0], row->scores * row->size));
  return worst;
}

/* The rows that deviate most, the worst first. */
typedef struct ranking {
  int64_t most, count;
  int64_t *positions;
  double *deviations;
} ranking;

static void rank(ranking *ranking, int64_t position, double deviation) {
  int64_t place = ranking->count;
  while (place > 0 && ranking->deviations[place - 1] < deviation) place--;
  if (place == ranking->most) return;
  if (ranking->count < ranking->most) ranking->count++;
  for (int64_t n = ranking->count - 1; n > place; n--) {
    ranking->positions[n] = ranking->positions[n - 1];
    ranking->deviations[n] = ranking->deviations[n - 1];
  }
  ranking->positions[place] = position;
  ranking->deviations[place] = deviation;
}

static void find_deviations(const projection *projection, const inputs *in, const changed_key *changed,
                            const double *values, double *deviations) {
  const attn_problem *p = &in->problem;
#pragma omp parallel for schedule(static) if (projection->rows * p->value_dim > worth_threads)
  for (int64_t n = 0; n < projection->rows; n++) {
    const int64_t b = n / p->query_length / p->query_heads, h = n / p->query_length % p->query_heads;
    const int64_t i = n % p->query_length;
    const projected_row row = changed_row(projection->of[n], in, changed, b, h, i);
    deviations[n] = deviation(projection, in, &row, values, b, h, i);
  }
}

/* As projection_worst, of inputs and outputs that are all float32. */
static int64_t worst_rows(const projection *projection, const inputs *in, const run_batch *batch,
                          int64_t most, int64_t *positions) {
  changed_key changed;
  double *deviations = malloc(((size_t)projection->rows + (size_t)most + 1) * sizeof *deviations);
  double *values = values_along(projection, in);
  const bool known = find_changed_key(&changed, projection, in, batch) && deviations;
  ranking worst = {.most = most, .positions = positions};
  if (known) {
    worst.deviations = deviations + projection->rows;
    find_deviations(projection, in, &changed, values, deviations);
  }
  for (int64_t n = 0; known && n < projection->rows; n++)
    if (deviations[n] >= 0) rank(&worst, n, deviations[n]);
  free(changed.before);
  free(deviations);
  free(values);
  return worst.count;
}

int64_t projection_worst(const projection *projection, const inputs *in, const run_batch *batch, int64_t most,
                         int64_t *positions) {
  widened widened;
  if (!projection->of || !widened_create(&widened, &in->problem, &in->tensors, true)) return 0;
  inputs wide = *in;
  wide.tensors = widened.tensors;
  const int64_t count = worst_rows(projection, &wide, batch, most, positions);
  widened_destroy(&widened);
  return count;
}
