/* See gradients.h. */
#include "gradients.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "problem/widened.h"
#include "reference/layer.h"
#include "reference/linear_state.h"
#include "written.h"

static const tensor_id all_gradients[] = {TENSOR_QUERY_GRAD,  TENSOR_KEY_GRAD,        TENSOR_VALUE_GRAD,
                                          TENSOR_BIAS_GRAD,   TENSOR_SINK_GRAD,       TENSOR_OUTPUT,
                                          TENSOR_FINAL_STATE, TENSOR_FINAL_STATE_SUM, TENSOR_DECAY_GRAD,
                                          TENSOR_STATE_GRAD,  TENSOR_STATE_SUM_GRAD};
enum { GRADIENTS = sizeof all_gradients / sizeof *all_gradients };

static bool is_of_states(const attn_problem *p) {
  return reference_function_of(p->function)->has_states && !tensors_are_backward(p);
}

/* Whether it is one of the tensors that are held here. The output of linear attention is held elsewhere. */
static bool is_held(const attn_problem *p, tensor_id id) {
  return tensor_layout(p, id)->type && tensor_is_written(p, id) &&
         is_of_states(p) == tensor_is_final_state(id);
}

/* Rows of a tensor, and those that are solved. */
typedef struct sampled {
  tensor_shape shape;
  int64_t total, count;
} sampled;

/* That of a decay goes through a product of both widths for each key and query: some dozen of the largest that fuzz
 * draws take minutes. */
static int64_t affordable_decays(const attn_problem *p) {
  const double rows = (double)p->query_heads / (double)p->kv_heads * (double)p->query_length;
  const double row = 4 * (double)p->head_dim * (double)(p->value_dim + 1) * ((double)p->key_length + rows);
  const double affordable = affordable_products / (row + 1);
  enum { LEAST = 4 };
  return affordable < LEAST ? LEAST : (int64_t)affordable;
}

static sampled sample_of(const inputs *in, tensor_id id, int64_t max_rows) {
  sampled rows = {.shape = tensor_stored_shape(&in->problem, id)};
  if (is_held(&in->problem, id) && rows.shape.width > 0)
    rows.total = rows.shape.batch * rows.shape.heads * rows.shape.length;
  rows.count = max_rows > 0 && max_rows < rows.total ? max_rows : rows.total;
  if (id != TENSOR_DECAY_GRAD || rows.total == 0) return rows;
  const int64_t decays = affordable_decays(&in->problem);
  if (decays < rows.count) rows.count = decays;
  return rows;
}

/* The n-th of those that are solved: the first and the last, and one of each part between. Values have the keys' rows. */
static row_place place_of(const sampled *of, uint64_t seed, int64_t n) {
  int64_t row = n;
  if (of->count < of->total) {
    const int64_t first = n * of->total / of->count, end = (n + 1) * of->total / of->count;
    row = first + (int64_t)(random_bits(seed, (uint64_t)n) % (uint64_t)(end - first));
    if (n == 0) row = 0;
    if (n > 0 && n == of->count - 1) row = of->total - 1;
  }
  const tensor_shape s = of->shape;
  return (row_place){row / s.length / s.heads, row / s.length % s.heads, row % s.length};
}

static bool place_rows(gradients *all, int64_t max_rows) {
  const uint64_t seed = all->inputs->workload.seed;
  size_t numbers = 0;
  for (int g = 0; g < GRADIENTS; g++) {
    const sampled rows = sample_of(all->inputs, all_gradients[g], max_rows);
    all->count += rows.count;
    all->rows_total += rows.total;
    numbers += 5 * (size_t)rows.count * (size_t)rows.shape.width;
  }
  all->rows = calloc((size_t)all->count + 1, sizeof *all->rows);
  all->numbers = calloc(numbers + 1, sizeof *all->numbers);
  if (!all->rows || !all->numbers) return false;
  gradient_row *row = all->rows;
  double *next = all->numbers;
  for (int g = 0; g < GRADIENTS; g++) {
    const sampled rows = sample_of(all->inputs, all_gradients[g], max_rows);
    const int64_t width = rows.shape.width;
    for (int64_t n = 0; n < rows.count; n++, next += 5 * width)
      *row++ = (gradient_row){all_gradients[g],
                              place_of(&rows, seed, n),
                              width,
                              {next, next + width, next + 2 * width, next + 3 * width, next + 4 * width}};
  }
  return true;
}

/* A key and its value are solved together: the values' rows come in the keys' order. Where one of both has no
 * features it has no rows. */
static bool solve_row(const gradients *all, const attn_problem *p, const attn_tensors *tensors,
                      const reference_given *given, int64_t n, double *room) {
  gradient_row *row = &all->rows[n];
  const row_place at = row->at;
  reference_gradient other;
  switch (row->tensor) {
    case TENSOR_QUERY_GRAD:
      reference_query_gradient(p, tensors, given, at.b, at.h, at.i, &row->of);
      return true;
    case TENSOR_BIAS_GRAD:
      reference_bias_gradient(p, tensors, given, at.b, at.h, at.i, &row->of);
      return true;
    case TENSOR_SINK_GRAD: reference_sink_gradient(p, tensors, given, at.h, &row->of); return true;
    case TENSOR_STATE_GRAD:
      reference_linear_state_gradient(p, tensors, given, at.b, at.h, at.i, &row->of);
      return true;
    case TENSOR_STATE_SUM_GRAD:
      reference_linear_state_sum_gradient(p, tensors, given, at.b, at.h, &row->of);
      return true;
    case TENSOR_DECAY_GRAD:
      if (room) reference_linear_decay_gradient(p, tensors, given, at.b, at.h, at.i, room, &row->of);
      return room != NULL;
    case TENSOR_VALUE_GRAD: return true;
    default: break;
  }
  for (int64_t m = n + 1; m < all->count && all->rows[m].tensor <= TENSOR_VALUE_GRAD; m++) {
    const gradient_row *value = &all->rows[m];
    if (value->tensor != TENSOR_VALUE_GRAD || value->at.b != at.b || value->at.h != at.h ||
        value->at.i != at.i)
      continue;
    other = value->of;
    reference_key_gradients(p, tensors, given, at.b, at.h, at.i, &row->of, &other);
    return true;
  }
  double nothing;
  other = (reference_gradient){&nothing, &nothing, &nothing, &nothing, NULL};
  if (p->value_dim > 0) return false;
  reference_key_gradients(p, tensors, given, at.b, at.h, at.i, &row->of, &other);
  return true;
}

static bool solve(const gradients *all) {
  const inputs *in = all->inputs;
  const attn_problem *p = &in->problem;
  const size_t rows = (size_t)(p->batch * p->query_heads * p->query_length);
  double *numbers = calloc(REFERENCE_GIVEN * rows + 1, sizeof *numbers), *of[REFERENCE_GIVEN];
  for (size_t n = 0; n < REFERENCE_GIVEN; n++) of[n] = numbers ? numbers + n * rows : NULL;
  reference_given given = {of[0], of[1], of[2], of[3], of[4], {of[5], of[6]}};
  widened widened;
  const bool is_widened = widened_create(&widened, &in->problem, &in->tensors, false);
  bool sound = numbers != NULL && is_widened;
  if (sound) reference_give(&widened.problem, &widened.tensors, &given);
#pragma omp parallel reduction(&& : sound) if (all->count > 1)
  {
    double *room = p->decay.type ? malloc((reference_decay_room(p) + 1) * sizeof *room) : NULL;
#pragma omp for schedule(dynamic, 1)
    for (int64_t n = 0; n < (numbers && is_widened ? all->count : 0); n++)
      sound = solve_row(all, &widened.problem, &widened.tensors, &given, n, room) && sound;
    free(room);
  }
  if (is_widened) widened_destroy(&widened);
  free(numbers);
  return sound;
}

/* The keys and values of all entries that have a row among those. */
static bool project(const gradients *all, const reference_layer *layer) {
  const inputs *in = all->inputs;
  const int64_t Tk = in->problem.key_length;
  bool *wanted = calloc((size_t)in->problem.batch + 1, sizeof *wanted);
  if (!wanted) return false;
  for (int64_t n = 0; n < all->count; n++) wanted[all->rows[n].at.b] = true;
  for (int64_t b = 0; b < in->problem.batch; b++)
#pragma omp parallel for schedule(static) if (Tk > INT64_C(4) * REFERENCE_KEYS_AT_ONCE)
    for (int64_t j = 0; j < (wanted[b] ? Tk : 0); j += REFERENCE_KEYS_AT_ONCE)
      reference_layer_project(&in->problem, &in->tensors, layer, b, j);
  free(wanted);
  reference_layer_finish(&in->problem, layer);
  return true;
}

static bool solve_layer(const gradients *all) {
  const inputs *in = all->inputs;
  reference_layer layer;
  double *room = calloc(reference_layer_room(&in->problem) + 1, sizeof *room);
  bool sound = room != NULL;
  if (sound) {
    reference_layer_begin(&in->problem, room, &layer);
    sound = project(all, &layer);
  }
#pragma omp parallel reduction(&& : sound)
  {
    double *of_row = malloc((reference_layer_row_room(&in->problem) + 1) * sizeof *of_row);
    sound = sound && of_row;
#pragma omp for schedule(dynamic, 1)
    for (int64_t n = 0; n < all->count; n++)
      if (sound)
        reference_layer_row(&in->problem, &in->tensors, &layer, all->rows[n].at.b, all->rows[n].at.i, of_row,
                            &all->rows[n].of);
    free(of_row);
  }
  free(room);
  return sound;
}

static bool solve_states(const gradients *all) {
  const inputs *in = all->inputs;
  widened widened;
  if (!widened_create(&widened, &in->problem, &in->tensors, false)) return false;
#pragma omp parallel for schedule(dynamic, 1) if (all->count > 1)
  for (int64_t n = 0; n < all->count; n++) {
    gradient_row *row = &all->rows[n];
    const row_place at = row->at;
    if (row->tensor == TENSOR_FINAL_STATE)
      reference_final_state(&in->problem, &widened.tensors, at.b, at.h, at.i, &row->of);
    else
      reference_final_state_sum(&in->problem, &widened.tensors, at.b, at.h, &row->of);
  }
  widened_destroy(&widened);
  return true;
}

gradients *gradients_solve(const inputs *in, int64_t max_rows) {
  gradients *all = calloc(1, sizeof *all);
  if (!all) return NULL;
  all->inputs = in;
  const bool placed = place_rows(all, max_rows);
  if (placed && (is_of_states(&in->problem)           ? solve_states(all)
                 : tensors_are_of_layer(&in->problem) ? solve_layer(all)
                                                      : solve(all)))
    return all;
  gradients_destroy(all);
  return NULL;
}

void gradients_destroy(gradients *all) {
  if (!all) return;
  free(all->rows);
  free(all->numbers);
  free(all);
}

void gradients_take_answers(gradients *all, const double *const answers[TENSORS]) {
  for (int64_t n = 0; n < all->count; n++) {
    gradient_row *row = &all->rows[n];
    const tensor_shape s = tensor_stored_shape(&all->inputs->problem, row->tensor);
    const double *answer =
        answers[row->tensor] + ((row->at.b * s.heads + row->at.h) * s.length + row->at.i) * s.width;
    for (int64_t d = 0; d < row->width; d++) row->of.values[d] = answer[d];
  }
}

/* Beside the bounds of one that rounds nothing to 16 bits before it is multiplied. */
static double more_of(const gradient_row *row, int64_t d, uint32_t traits) {
  return (traits & ATTN_FLOAT32_WEIGHTS) ? 0 : row->of.rounded[d];
}

double gradient_bound(const gradient_row *row, int64_t d, uint32_t traits) {
  return row->of.probabilistic[d] + more_of(row, d, traits);
}

/* A number against both bounds of its element. */
typedef struct held_number {
  double reference, bounds[2], shares[2]; /* worst-case, probabilistic */
} held_number;

static held_number hold_number(const gradient_row *row, int64_t d, double number, uint32_t traits) {
  held_number of = {.reference = row->of.values[d],
                    .bounds = {row->of.worst[d] + more_of(row, d, traits), gradient_bound(row, d, traits)}};
  for (int n = 0; n < 2; n++) of.shares[n] = reference_error_share(number, of.reference, of.bounds[n]);
  return of;
}

/* Returns whether the row is right; the first wrong element of all goes into the verdict. */
static bool hold_row(const gradients *all, const gradient_row *row, uint32_t traits, verdict *result) {
  const number_row computed = row_at(all->inputs, row->tensor, row->at);
  bool is_right = true;
  for (int64_t d = 0; d < row->width; d++) {
    const double number = row_number(computed, d);
    const held_number held = hold_number(row, d, number, traits);
    result->bound_share = fmax(result->bound_share, held.shares[0]);
    result->probabilistic_share = fmax(result->probabilistic_share, held.shares[1]);
    if (held.shares[0] <= 1 && held.shares[1] <= 1) continue;
    is_right = false;
    if (!result->passed) continue;
    result->passed = false;
    const int beyond = held.shares[0] <= 1; /* which of the two */
    snprintf(result->problem, sizeof result->problem,
             "%s[b %lld, h %lld, %c %lld, d %lld] is %.9g, the reference is %.9g within %.3g: %.3g times the "
             "%s bound",
             tensor_table[row->tensor].name, (long long)row->at.b, (long long)row->at.h,
             tensor_axes(all->inputs->problem.function, row->tensor)[2] == 'k' ? 'j' : 'i',
             (long long)row->at.i, (long long)d, number, held.reference, held.bounds[beyond],
             held.shares[beyond], beyond == 0 ? "worst-case" : "probabilistic");
  }
  return is_right;
}

gradient_error gradients_worst(const gradients *all, uint32_t traits) {
  gradient_error found = {0};
  for (int64_t n = 0; n < all->count; n++) {
    const gradient_row *row = &all->rows[n];
    const number_row computed = row_at(all->inputs, row->tensor, row->at);
    int64_t wrong = 0;
    for (int64_t d = 0; d < row->width; d++) {
      const double number = row_number(computed, d);
      const held_number held = hold_number(row, d, number, traits);
      const double share = fmax(held.shares[0], held.shares[1]);
      wrong += !(share <= 1);
      if (!(share > found.share)) continue;
      found.row = row;
      found.element = d;
      found.computed = number;
      found.expected = held.reference;
      found.bound = held.bounds[held.shares[0] < held.shares[1]];
      found.share = share;
    }
    found.wrong_elements += wrong;
    found.wrong_rows += wrong > 0;
  }
  return found;
}

const char *gradients_words(const attn_problem *problem) {
  return is_of_states(problem) ? " of the final state" : tensors_are_of_layer(problem) ? "" : " of gradients";
}

void gradients_compare(const gradients *all, uint32_t traits, verdict *result) {
  const attn_problem *p = &all->inputs->problem;
  const bool passed = result->passed;
  for (int g = 0; g < GRADIENTS; g++)
    if (is_held(p, all_gradients[g])) written_check(all->inputs, all_gradients[g], result);
  int64_t wrong = 0;
  for (int64_t n = 0; n < all->count; n++) wrong += !hold_row(all, &all->rows[n], traits, result);
  const size_t used = strlen(result->problem);
  if (passed && wrong > 0 && used < sizeof result->problem)
    snprintf(result->problem + used, sizeof result->problem - used, "; wrong in %lld of %lld rows%s",
             (long long)wrong, (long long)all->count, gradients_words(p));
  if (is_of_states(p)) return;
  result->rows_checked = all->count;
  result->rows_total = all->rows_total;
  result->sampled = all->count < all->rows_total;
  result->output_share = fmax(result->bound_share, result->probabilistic_share);
}
