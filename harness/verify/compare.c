/* See compare.h: outputs held to reference rows, element by element, and all errors of a row together. */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/types.h"
#include "gradients.h"
#include "mean_square.h"
#include "pattern.h"
#include "written.h"

/* Elements below which waking threads costs more than they save. */
static const int64_t worth_threads = 1 << 16;

/* One of the outputs: [B, H, Tq, width]. */
typedef struct output {
  const char *name;
  const guarded *buffer;
  const unsigned char *data;
  const element_type *type;
  attn_layout layout;
  int64_t width;
} output;

/* Width 0: it is not wanted. */
static output output_of(const inputs *in, tensor_id id) {
  const attn_layout *layout = tensor_layout(&in->problem, id);
  return (output){tensor_table[id].name,
                  &in->buffers[id],
                  tensor_data(&in->problem, &in->tensors, id),
                  element_type_of(layout->type),
                  *layout,
                  layout->type ? tensor_shape_of(&in->problem, id).width : 0};
}

/* In this order they are counted here. */
enum { OUTPUTS = 3 };
static const tensor_id which_tensor[OUTPUTS] = {TENSOR_OUTPUT, TENSOR_LSE, TENSOR_WEIGHTS};

static void outputs_of(const inputs *in, output outputs[OUTPUTS]) {
  for (int n = 0; n < OUTPUTS; n++) outputs[n] = output_of(in, which_tensor[n]);
}

static const unsigned char *row_of(const output *o, row_place at) {
  const int64_t place = at.b * o->layout.batch + at.h * o->layout.head + at.i * o->layout.position;
  return o->data + place * (int64_t)o->type->bytes;
}

static double element_of(const output *o, row_place at, int64_t d) {
  return o->type->load(row_of(o, at) + d * (int64_t)o->type->bytes);
}

/* Those that a variant with these traits is held to. */
static reference_bounds bounds_of(const reference_row *row, uint32_t traits) {
  return traits & ATTN_FLOAT32_WEIGHTS && row->float32_weights.worst
             ? row->float32_weights
             : (reference_bounds){row->output_bound, row->output_bound_probabilistic, row->output_deviation};
}

/* What one thread has found so far. */
typedef struct findings {
  examination *marks; /* or NULL */
  struct {
    double worst, probabilistic;
  } shares[OUTPUTS]; /* by output */
  double exact;      /* the largest of these in rows whose sums are exact */
  verdict first;     /* complaint of the lowest row */
  int64_t first_row;
} findings;

static void mark_wrong(examination *marks, int64_t n, int which, int64_t d) {
  marks->wrong_elements++;
  marks->wrong_rows += !marks->rows[n];
  marks->wrong_in[which_tensor[which]] = true;
  marks->rows[n] = true;
  if (which == 0) marks->columns[d] = true;
  if (which == 2) marks->keys[d] = true;
}

static void mark_worst(examination *marks, const element_error *error) {
  if (error->share > marks->worst.share || (error->share > 0 && !marks->has_worst)) marks->worst = *error;
  marks->has_worst = marks->has_worst || error->share > 0;
}

/* One element against its bounds. */
static void hold(findings *found, int64_t n, const output outputs[OUTPUTS], int which, row_place at,
                 int64_t d, double expected, double bound, double probabilistic_bound, bool exact) {
  const output *o = &outputs[which];
  const double computed = element_of(o, at, d);
  const double worst = reference_error_share(computed, expected, bound);
  const double probabilistic = reference_error_share(computed, expected, probabilistic_bound);
  found->shares[which].worst = fmax(found->shares[which].worst, worst);
  found->shares[which].probabilistic = fmax(found->shares[which].probabilistic, probabilistic);
  if (exact) found->exact = fmax(found->exact, fmax(worst, probabilistic));
  if (found->marks)
    mark_worst(found->marks,
               &(element_error){.tensor = which_tensor[which],
                                .at = at,
                                .e = d,
                                .computed = computed,
                                .expected = expected,
                                .bound = fabs(worst >= probabilistic ? bound : probabilistic_bound),
                                .share = fmax(worst, probabilistic)});
  if (worst <= 1 && probabilistic <= 1) return;
  if (found->marks) mark_wrong(found->marks, n, which, d);
  if (found->first_row <= n) return;
  found->first_row = n;
  char share[64] = "no error of this kind is allowed";
  const bool beyond_worst = !(worst <= 1);
  if (isfinite(computed) && isfinite(expected))
    snprintf(share, sizeof share, "%.3g times the %s bound", beyond_worst ? worst : probabilistic,
             exact          ? "exact probe's"
             : beyond_worst ? "worst-case"
                            : "probabilistic");
  verdict_fail(&found->first,
               "%s[b %lld, h %lld, i %lld, %c %lld] is %.9g, the reference is %.9g within %.3g: %s", o->name,
               (long long)at.b, (long long)at.h, (long long)at.i, o->name[0] == 'w' ? 'j' : 'd', (long long)d,
               isnan(computed) ? (double)NAN : computed, expected,
               fabs(beyond_worst ? bound : probabilistic_bound), share);
}

/* Nearly every row of float32: none of it is worse than what is found already. Saves a division or two for each
 * element. */
static bool is_no_worse(const findings *found, const reference_row *row, const reference_bounds *bounds,
                        const output *o, row_place at) {
  const float *computed = (const float *)(const void *)row_of(o, at);
  bool worse = false;
  if (o->layout.type != ATTN_FLOAT32) return false;
  for (int64_t d = 0; d < o->width; d++) {
    const double error = fabs((double)computed[d] - row->output[d]);
    worse |= !(error <= found->shares[0].worst * bounds->worst[d]);
    worse |= !(error <= found->shares[0].probabilistic * bounds->probabilistic[d]);
  }
  return !worse;
}

static void hold_row(const expected *known, uint32_t traits, int64_t n, const output outputs[OUTPUTS],
                     findings *found) {
  const reference_row *row = &known->solved[n];
  const reference_bounds bounds = bounds_of(row, traits);
  const row_place at = row_place_of(&known->inputs->problem, known->positions[n]);
  if (!inputs_owns(known->inputs, at.i)) return;
  const bool no_worse = !row->exact && !found->marks && is_no_worse(found, row, &bounds, &outputs[0], at);
  for (int64_t d = 0; d < outputs[0].width && !no_worse; d++)
    hold(found, n, outputs, 0, at, d, row->output[d], bounds.worst[d], bounds.probabilistic[d], row->exact);
  if (outputs[1].width)
    hold(found, n, outputs, 1, at, 0, row->lse, row->lse_bound, row->lse_bound_probabilistic, row->exact);
  for (int64_t j = 0; j < outputs[2].width; j++) {
    /* A weight that underflows may be flushed, which says nothing of how near the others are to
     * their bound; one of zero, of a hidden key, may not be anything else. */
    const bool flushed = element_of(&outputs[2], at, j) == 0 && row->weights[j] < row->weights_vanish;
    const double bound = row->weights[j] > 0 ? row->weights_bound * row->weights[j] + row->weights_vanish
                                             : copysign(0, row->weights_bound);
    if (!flushed) hold(found, n, outputs, 2, at, j, row->weights[j], bound, bound, row->exact);
  }
}

/* Adds what one thread has found to what all have. */
static void merge(findings *all, const findings *found) {
  for (int n = 0; n < OUTPUTS; n++) {
    all->shares[n].worst = fmax(all->shares[n].worst, found->shares[n].worst);
    all->shares[n].probabilistic = fmax(all->shares[n].probabilistic, found->shares[n].probabilistic);
  }
  all->exact = fmax(all->exact, found->exact);
  if (found->first_row >= all->first_row) return;
  all->first_row = found->first_row;
  all->first = found->first;
}

static void hold_rows(const expected *known, uint32_t traits, const output outputs[OUTPUTS],
                      verdict *result) {
  findings all = {.first = {.passed = true}, .first_row = INT64_MAX};
#pragma omp parallel if (known->rows * (outputs[0].width + outputs[2].width) > worth_threads)
  {
    findings found = {.first = {.passed = true}, .first_row = INT64_MAX};
#pragma omp for schedule(static)
    for (int64_t n = 0; n < known->rows; n++) hold_row(known, traits, n, outputs, &found);
#pragma omp critical
    merge(&all, &found);
  }
  for (int n = 0; n < OUTPUTS; n++) {
    result->bound_share = fmax(result->bound_share, all.shares[n].worst);
    result->probabilistic_share = fmax(result->probabilistic_share, all.shares[n].probabilistic);
  }
  result->output_share = fmax(all.shares[0].worst, all.shares[0].probabilistic);
  result->lse_share = fmax(all.shares[1].worst, all.shares[1].probabilistic);
  result->exact_share = all.exact;
  if (all.first.passed) return;
  if (result->passed) result->wrong_row = known->positions[all.first_row];
  verdict_fail(result, "%s", all.first.problem);
}

bool examine(const expected *known, uint32_t traits, examination *all) {
  output outputs[OUTPUTS];
  outputs_of(known->inputs, outputs);
  if (known->gradients)
    outputs[0].width = outputs[2].width = 0; /* what is wrong there is named in the verdict alone */
  const size_t counts[] = {(size_t)known->rows, (size_t)outputs[0].width, (size_t)outputs[2].width};
  *all = (examination){.rows = calloc(counts[0] + counts[1] + counts[2] + 1, sizeof(bool))};
  if (!all->rows) return false;
  all->columns = all->rows + counts[0];
  all->keys = outputs[2].width > 0 ? all->columns + counts[1] : NULL;
  findings found = {.marks = all, .first = {.passed = true}, .first_row = INT64_MAX};
  for (int64_t n = 0; n < known->rows; n++) hold_row(known, traits, n, outputs, &found);
  return true;
}

void examination_destroy(examination *all) {
  free(all->rows);
  *all = (examination){0};
}

void examination_describe(const examination *all, const expected *known, char *text, size_t size) {
  const wrong_rows rows = {.problem = &known->inputs->problem,
                           .count = known->rows,
                           .positions = known->positions,
                           .wrong = all->rows,
                           .columns = all->columns,
                           .keys = all->keys};
  pattern_describe(&rows, text, size);
}

/* Says of outputs that are wrong where they are. */
static void name_pattern(const expected *known, uint32_t traits, verdict *result) {
  examination marks;
  char pattern[256];
  if (!examine(known, traits, &marks)) return;
  examination_describe(&marks, known, pattern, sizeof pattern);
  const size_t used = strlen(result->problem);
  if (*pattern && used < sizeof result->problem)
    snprintf(result->problem + used, sizeof result->problem - used, "; %s", pattern);
  examination_destroy(&marks);
}

/* The errors of each row together: what no element shows alone. */
static void hold_mean_square(const expected *known, uint32_t traits, const output *o, verdict *result) {
  mean_square sums = {0};
  for (int64_t n = 0; n < known->rows; n++) {
    const reference_row *row = &known->solved[n];
    const row_place at = row_place_of(&known->inputs->problem, known->positions[n]);
    const double *deviation = bounds_of(row, traits).deviation;
    row_square square = {0};
    if (!known->is_first[n] || !inputs_owns(known->inputs, at.i)) continue;
    for (int64_t d = 0; d < o->width; d++)
      row_square_add(&square, element_of(o, at, d), row->output[d], deviation[d]);
    mean_square_add(&sums, &square);
  }
  result->mean_square_share = mean_square_share(&sums);
  if (!(result->mean_square_share <= 1))
    verdict_fail(
        result,
        "root mean square of the errors of %lld rows is %.3g times what the model's roundings explain",
        (long long)sums.rows, mean_square_root(&sums));
}

void expected_compare(const expected *known, uint32_t traits, verdict *result) {
  const inputs *in = known->inputs;
  output outputs[OUTPUTS];
  outputs_of(in, outputs);
  memset(result, 0, sizeof *result);
  result->passed = true;
  result->wrong_row = -1;
  result->rows_checked = known->rows;
  result->rows_total = known->rows_total;
  result->sampled = known->rows < known->rows_total;
  if (known->gradients) gradients_compare(known->gradients, traits, result);
  if (known->states && known->rows_total == 0) gradients_compare(known->states, traits, result);
  if (known->rows_total == 0 || known->gradients) return;
  for (int n = 0; n < OUTPUTS; n++)
    if (outputs[n].width > 0) written_check(in, which_tensor[n], result);
  hold_rows(known, traits, outputs, result);
  const bool is_wrong = !result->passed;
  hold_mean_square(known, traits, &outputs[0], result);
  if (is_wrong) name_pattern(known, traits, result);
  if (known->states) gradients_compare(known->states, traits, result);
}
