/* Reference rows: which are chosen, and their solution. compare.c holds outputs to them. */
#include "expected.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "gradients.h"
#include "problem/types.h"
#include "problem/widened.h"

/* Rows by how much a check of them is worth; CHOSEN is set on those that are taken. */
enum { ORDINARY, EDGE, CORNER, CHOSEN };

/* Which ends of the keys a row's visible range touches. Where this changes, off-by-one errors live. */
static int touched_ends(const attn_problem *p, int64_t b, int64_t i) {
  attn_range visible = attn_visible_keys(p, b, i);
  int64_t length = p->key_lengths ? p->key_lengths[b] : p->key_length;
  return (visible.first == visible.end) + 2 * (visible.first == 0) + 4 * (visible.end == length);
}

static void mark_edges(const attn_problem *p, unsigned char *marks) {
  const int64_t heads = p->batch * p->query_heads, Tq = p->query_length;
  for (int64_t head = 0; head < heads; head++) {
    unsigned char *mark = marks + head * Tq;
    mark[0] = mark[Tq - 1] = EDGE;
    for (int64_t i = 1; i < Tq; i++)
      if (touched_ends(p, head / p->query_heads, i) != touched_ends(p, head / p->query_heads, i - 1))
        mark[i - 1] = mark[i] = EDGE;
  }
  marks[0] = marks[heads * Tq - 1] = CORNER;
}

/* Takes `wanted` rows of a kind, or all there are; every choice is equally likely (Knuth, The Art of
 * Computer Programming, volume 2, section 3.4.2, algorithm S). Returns how many it took. */
static int64_t choose(unsigned char *marks, int64_t total, int kind, int64_t wanted, uint64_t seed) {
  int64_t left = 0, taken = 0;
  for (int64_t n = 0; n < total; n++) left += marks[n] == kind;
  for (int64_t n = 0; n < total && taken < wanted; n++) {
    if (marks[n] != kind) continue;
    double chance = (double)(random_bits(seed, (uint64_t)n) >> 11) * 0x1p-53;
    if (chance * (double)left < (double)(wanted - taken)) {
      marks[n] = CHOSEN;
      taken++;
    }
    left--;
  }
  return taken;
}

static bool choose_rows(expected *known, int64_t max_rows) {
  const attn_problem *p = &known->inputs->problem;
  const int64_t total = known->rows_total;
  known->rows = max_rows > 0 && max_rows < total ? max_rows : total;
  known->positions = malloc(((size_t)known->rows + 1) * sizeof *known->positions);
  unsigned char *marks = calloc((size_t)total + 1, 1);
  if (known->positions && marks && total > 0) {
    if (known->rows < total) mark_edges(p, marks);
    int64_t left = known->rows;
    for (int kind = CORNER; kind >= ORDINARY; kind--)
      left -= choose(marks, total, kind, left, known->inputs->workload.seed);
    for (int64_t n = 0, row = 0; n < total; n++)
      if (marks[n] == CHOSEN) known->positions[row++] = n;
  }
  free(marks);
  return known->positions && marks;
}

/* Cuts the numbers into the rows' arrays. */
static bool place_rows(expected *known) {
  const attn_problem *p = &known->inputs->problem;
  const size_t Dv = (size_t)p->value_dim, Tk = p->weights.type ? (size_t)p->key_length : 0;
  const size_t rows = (size_t)known->rows;
  const bool rounds_weights = p->function == ATTN_SOFTMAX && element_type_is_narrow(p->value.type);
  const size_t each = (rounds_weights ? 7 : 4) * Dv + Tk;
  known->solved = calloc(rows + 1, sizeof *known->solved);
  known->numbers = calloc(rows + 1, (each + 1) * sizeof(double));
  known->is_first = calloc(rows + 1, sizeof *known->is_first);
  if (!known->solved || !known->numbers || !known->is_first) return false;
  for (size_t n = 0; n < rows; n++) {
    double *numbers = known->numbers + n * each;
    known->solved[n].output = numbers;
    known->solved[n].output_bound = numbers + Dv;
    known->solved[n].output_bound_probabilistic = numbers + 2 * Dv;
    known->solved[n].output_deviation = numbers + 3 * Dv;
    known->solved[n].weights = Tk ? numbers + 4 * Dv : NULL;
    numbers += 4 * Dv + Tk;
    if (rounds_weights)
      known->solved[n].float32_weights = (reference_bounds){numbers, numbers + Dv, numbers + 2 * Dv};
  }
  return true;
}

/* Everything that a row's solution follows from, by where it lies. */
typedef struct question {
  int64_t b, kv_head, row; /* where no other row sees the same for all that is known; else -1 */
  attn_range visible;
  const unsigned char *query, *mask, *bias, *sink, *keep;
} question;

/* NULL: the problem has no such tensor. */
static const unsigned char *beginning_of(const inputs *in, tensor_id id, row_place at) {
  return tensor_layout(&in->problem, id)->type ? row_at(in, id, at).first : NULL;
}

static question question_of(const inputs *in, row_place at) {
  const attn_problem *p = &in->problem;
  return (question){.b = at.b,
                    .kv_head = at.h / (p->query_heads / p->kv_heads),
                    .row = attn_has_pattern(p) || attn_has_position_bias(p) || p->general.type ||
                                   p->additive.type || p->rope_cos.type || p->query_lengths || p->decay.type
                               ? at.h * p->query_length + at.i
                               : -1,
                    .visible = attn_visible_keys(p, at.b, at.i),
                    .query = beginning_of(in, TENSOR_QUERY, at),
                    .mask = beginning_of(in, TENSOR_MASK, at),
                    .bias = beginning_of(in, TENSOR_BIAS, at),
                    .keep = beginning_of(in, TENSOR_KEEP, at),
                    .sink = beginning_of(in, TENSOR_SINK, (row_place){.h = at.h})};
}

static bool is_same(const question *a, const question *b, size_t query_bytes) {
  return a->b == b->b && a->kv_head == b->kv_head && a->row == b->row &&
         a->visible.first == b->visible.first && a->visible.end == b->visible.end && a->mask == b->mask &&
         a->bias == b->bias && a->keep == b->keep &&
         (a->sink == b->sink || (a->sink && b->sink && memcmp(a->sink, b->sink, sizeof(float)) == 0)) &&
         (query_bytes == 0 || (a->query && b->query && memcmp(a->query, b->query, query_bytes) == 0));
}

/* For each row the one that has its solution: itself, or an earlier row that asks the same, where that is found among
 * the last few that differ. So all rows of a long problem can be had for the cost of a few. */
static int64_t *find_twins(const expected *known) {
  enum { REMEMBERED = 16 };
  const inputs *in = known->inputs;
  const size_t bytes = (size_t)in->problem.head_dim * element_type_of(in->problem.query.type)->bytes;
  question asked[REMEMBERED];
  int64_t of[REMEMBERED], differing = 0;
  int64_t *twins = malloc(((size_t)known->rows + 1) * sizeof *twins);
  for (int64_t n = 0; twins && n < known->rows; n++) {
    const question row = question_of(in, row_place_of(&in->problem, known->positions[n]));
    twins[n] = n;
    for (int64_t m = 0; m < REMEMBERED && m < differing; m++)
      if (is_same(&asked[m], &row, bytes)) twins[n] = of[m];
    if (twins[n] != n) continue;
    asked[differing % REMEMBERED] = row;
    of[differing++ % REMEMBERED] = n;
  }
  return twins;
}

static bool solve_rows(expected *known) {
  const inputs *in = known->inputs;
  const attn_problem *p = &in->problem;
  const size_t Tk = (size_t)p->key_length + 1;
  const bool is_narrow = element_type_is_narrow(p->value.type);
  int64_t *twins = find_twins(known);
  widened widened;
  bool had_memory = true;
  if (!twins || !widened_create(&widened, &in->problem, &in->tensors, false)) {
    free(twins);
    return false;
  }
#pragma omp parallel reduction(&& : had_memory)
  {
    double *scores = malloc(Tk * sizeof *scores), *weights = malloc(Tk * sizeof *weights);
    bool *visible = malloc(Tk * sizeof *visible);
    double *notes = malloc(Tk * REFERENCE_NOTES * sizeof *notes);
    double *features = malloc(((size_t)p->head_dim + 1) * sizeof *features);
    int64_t *order = is_narrow ? malloc(Tk * sizeof *order) : NULL;
    had_memory = scores && weights && visible && notes && features && (order || !is_narrow);
    /* Rows differ in cost: causal ones grow. */
#pragma omp for schedule(dynamic, 1)
    for (int64_t n = 0; n < known->rows; n++) {
      if (!had_memory || twins[n] != n) continue;
      reference_row *row = &known->solved[n];
      const bool keeps_weights = row->weights != NULL;
      const row_place at = row_place_of(p, known->positions[n]);
      row->scores = scores;
      row->visible = visible;
      row->features = features;
      row->order = order;
      row->notes = notes;
      if (!keeps_weights) row->weights = weights;
      reference_solve(p, &widened.tensors, at.b, at.h, at.i, row);
      row->scores = NULL;
      row->visible = NULL;
      row->features = NULL;
      row->order = NULL;
      row->notes = NULL;
      if (!keeps_weights) row->weights = NULL;
    }
    free(scores);
    free(weights);
    free(visible);
    free(notes);
    free(features);
    free(order);
  }
  widened_destroy(&widened);
  for (int64_t n = 0; had_memory && n < known->rows; n++) {
    known->is_first[n] = twins[n] == n;
    known->solved[n] = known->solved[twins[n]];
  }
  free(twins);
  return had_memory;
}

static void begin(expected *known, const inputs *in) {
  const attn_problem *p = &in->problem;
  memset(known, 0, sizeof *known);
  known->inputs = in;
  known->inputs_checksum = inputs_checksum(in);
  known->rows_total = p->batch * p->query_heads * p->query_length;
}

/* As many of its rows as of the output; 0: all. */
static bool solve_final_state(expected *known, int64_t max_rows) {
  if (!known->inputs->problem.states.final_state.type) return true;
  known->states = gradients_solve(known->inputs, max_rows);
  return known->states != NULL;
}

static bool finish(expected *known, bool chosen, int64_t max_rows, char *why, size_t why_size) {
  if (chosen && place_rows(known) && solve_rows(known) && solve_final_state(known, max_rows)) return true;
  snprintf(why, why_size, "no memory for %lld reference rows", (long long)known->rows);
  expected_destroy(known);
  return false;
}

int64_t expected_affordable_rows(const workload *w) {
  /* Of gradients there are three and more, and each of their rows takes some dozen passes over what a row of the
   * output takes one. */
  const bool of_layer = w->function == ATTN_LAYER; /* whose row is one of each head, and has more to bound */
  const double passes = function_is_backward(w->function) ? 48 : of_layer ? 24 * (double)w->query_heads : 1;
  const double row = (double)w->key_length * passes * (double)(w->head_dim + w->value_dim) + 1;
  const double rows = (double)w->batch * (of_layer ? 1 : (double)w->query_heads) * (double)w->query_length;
  const double affordable = affordable_products / row;
  const double least = of_layer ? 8 : 64;
  return rows <= affordable ? 0 : affordable < least ? (int64_t)least : (int64_t)affordable;
}

/* Those of the backward pass, and of a layer. */
static bool has_other_rows(const attn_problem *p) { return !reference_function_of(p->function)->solve; }

static bool solve_gradients(expected *known, int64_t max_rows, char *why, size_t why_size) {
  known->gradients = gradients_solve(known->inputs, max_rows);
  if (!known->gradients) snprintf(why, why_size, "no memory for the rows of the reference");
  return known->gradients != NULL;
}

bool expected_solve(expected *known, const inputs *in, int64_t max_rows, char *why, size_t why_size) {
  begin(known, in);
  if (has_other_rows(&in->problem)) return solve_gradients(known, max_rows, why, why_size);
  return finish(known, choose_rows(known, max_rows), max_rows, why, why_size);
}

bool expected_solve_rows(expected *known, const inputs *in, const int64_t *positions, int64_t count,
                         char *why, size_t why_size) {
  begin(known, in);
  if (has_other_rows(&in->problem)) return solve_gradients(known, GRADIENTS_FEW, why, why_size);
  known->rows = count;
  known->positions = malloc(((size_t)count + 1) * sizeof *positions);
  if (known->positions) memcpy(known->positions, positions, (size_t)count * sizeof *positions);
  return finish(known, known->positions != NULL, GRADIENTS_FEW, why, why_size);
}

void expected_destroy(expected *known) {
  gradients_destroy(known->gradients);
  gradients_destroy(known->states);
  free(known->positions);
  free(known->solved);
  free(known->numbers);
  free(known->is_first);
  memset(known, 0, sizeof *known);
}
