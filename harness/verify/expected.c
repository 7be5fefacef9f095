/* Reference rows: which are chosen, their solution, and the comparison of outputs with them. */
#include "expected.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "problem/types.h"
#include "problem/widened.h"
#include "mean_square.h"
#include "pattern.h"

/* Elements below which waking threads costs more than they save. */
static const int64_t worth_threads = 1 << 16;

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
  int64_t b, kv_head;
  attn_range visible;
  const unsigned char *query, *mask, *bias, *sink;
} question;

/* NULL: the problem has no such tensor. */
static const unsigned char *beginning_of(const inputs *in, tensor_id id, row_place at) {
  return tensor_layout(&in->problem, id)->type ? row_at(in, id, at).first : NULL;
}

static question question_of(const inputs *in, row_place at) {
  const attn_problem *p = &in->problem;
  return (question){.b = at.b,
                    .kv_head = at.h / (p->query_heads / p->kv_heads),
                    .visible = attn_visible_keys(p, at.b, at.i),
                    .query = beginning_of(in, TENSOR_QUERY, at),
                    .mask = beginning_of(in, TENSOR_MASK, at),
                    .bias = beginning_of(in, TENSOR_BIAS, at),
                    .sink = beginning_of(in, TENSOR_SINK, (row_place){.h = at.h})};
}

static bool is_same(const question *a, const question *b, size_t query_bytes) {
  return a->b == b->b && a->kv_head == b->kv_head && a->visible.first == b->visible.first &&
         a->visible.end == b->visible.end && a->mask == b->mask && a->bias == b->bias &&
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
  if (!twins || !widened_create(&widened, in, false)) {
    free(twins);
    return false;
  }
#pragma omp parallel reduction(&& : had_memory)
  {
    double *scores = malloc(Tk * sizeof *scores), *weights = malloc(Tk * sizeof *weights);
    bool *visible = malloc(Tk * sizeof *visible);
    int64_t *order = is_narrow ? malloc(Tk * sizeof *order) : NULL;
    had_memory = scores && weights && visible && (order || !is_narrow);
    /* Rows differ in cost: causal ones grow. */
#pragma omp for schedule(dynamic, 1)
    for (int64_t n = 0; n < known->rows; n++) {
      if (!had_memory || twins[n] != n) continue;
      reference_row *row = &known->solved[n];
      const bool keeps_weights = row->weights != NULL;
      const row_place at = row_place_of(p, known->positions[n]);
      row->scores = scores;
      row->visible = visible;
      row->order = order;
      if (!keeps_weights) row->weights = weights;
      reference_solve(p, &widened.tensors, at.b, at.h, at.i, row);
      row->scores = NULL;
      row->visible = NULL;
      row->order = NULL;
      if (!keeps_weights) row->weights = NULL;
    }
    free(scores);
    free(weights);
    free(visible);
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

static bool finish(expected *known, bool chosen, char *why, size_t why_size) {
  if (chosen && place_rows(known) && solve_rows(known)) return true;
  snprintf(why, why_size, "no memory for %lld reference rows", (long long)known->rows);
  expected_destroy(known);
  return false;
}

bool expected_solve(expected *known, const inputs *in, int64_t max_rows, char *why, size_t why_size) {
  begin(known, in);
  return finish(known, choose_rows(known, max_rows), why, why_size);
}

bool expected_solve_rows(expected *known, const inputs *in, const int64_t *positions, int64_t count,
                         char *why, size_t why_size) {
  begin(known, in);
  known->rows = count;
  known->positions = malloc(((size_t)count + 1) * sizeof *positions);
  if (known->positions) memcpy(known->positions, positions, (size_t)count * sizeof *positions);
  return finish(known, known->positions != NULL, why, why_size);
}

void expected_destroy(expected *known) {
  free(known->positions);
  free(known->solved);
  free(known->numbers);
  free(known->is_first);
  memset(known, 0, sizeof *known);
}

__attribute__((format(printf, 2, 3))) static void fail(verdict *result, const char *format, ...) {
  if (!result->passed) return; /* the first complaint is the clearest */
  result->passed = false;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(result->problem, sizeof result->problem, format, arguments);
  va_end(arguments);
}

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
                  tensor_data(&in->tensors, id),
                  element_type_of(layout->type),
                  *layout,
                  layout->type ? tensor_shape_of(&in->problem, id).width : 0};
}

static const unsigned char *row_of(const output *o, row_place at) {
  const int64_t place = at.b * o->layout.batch + at.h * o->layout.head + at.i * o->layout.position;
  return o->data + place * (int64_t)o->type->bytes;
}

static double element_of(const output *o, row_place at, int64_t d) {
  return o->type->load(row_of(o, at) + d * (int64_t)o->type->bytes);
}

/* Every element is written, and nothing between the rows. */
static void check_written(const attn_problem *p, const output *o, verdict *result) {
  const int64_t rows = p->batch * p->query_heads * p->query_length, bytes = (int64_t)o->type->bytes;
  const int64_t words = (int64_t)o->buffer->bytes / bytes;
  int64_t poisoned = 0, poisoned_in_rows = 0, first = rows;
#pragma omp parallel for schedule(static) reduction(+ : poisoned) if (words > worth_threads)
  for (int64_t n = 0; n < words; n++) poisoned += element_is_poison(o->type, o->buffer->data + n * bytes);
  const int64_t between_rows = words - rows * o->width;
  if (poisoned == 0 && between_rows == 0) return;
#pragma omp parallel for schedule(static) reduction(+ : poisoned_in_rows) \
    reduction(min : first) if (words > worth_threads)
  for (int64_t n = 0; n < rows; n++)
    for (int64_t d = 0; d < o->width; d++)
      if (element_is_poison(o->type, row_of(o, row_place_of(p, n)) + d * bytes)) {
        poisoned_in_rows++;
        first = n < first ? n : first;
      }
  const row_place at = first < rows ? row_place_of(p, first) : (row_place){0};
  if (poisoned_in_rows > 0)
    fail(result, "%lld elements of %s are not written, the first in row b %lld, h %lld, i %lld",
         (long long)poisoned_in_rows, o->name, (long long)at.b, (long long)at.h, (long long)at.i);
  else if (poisoned != between_rows)
    fail(result, "%s: %lld elements are written that lie between its rows", o->name,
         (long long)(between_rows - poisoned));
}

/* Those that a variant with these traits is held to. */
static reference_bounds bounds_of(const reference_row *row, uint32_t traits) {
  return traits & ATTN_FLOAT32_WEIGHTS && row->float32_weights.worst
             ? row->float32_weights
             : (reference_bounds){row->output_bound, row->output_bound_probabilistic, row->output_deviation};
}

/* What of the checked rows is wrong; all is gone through once more for it. */
typedef struct marks {
  bool *rows, *columns, *keys; /* [rows], [Dv], [Tk] */
} marks;

/* What one thread has found so far. */
typedef struct findings {
  const marks *marks; /* or NULL */
  struct {
    double worst, probabilistic;
  } shares[3];   /* by output */
  double exact;  /* the largest of these in rows whose sums are exact */
  verdict first; /* complaint of the lowest row */
  int64_t first_row;
} findings;

static void mark_wrong(const marks *marks, int64_t n, int which, int64_t d) {
  marks->rows[n] = true;
  if (which == 0) marks->columns[d] = true;
  if (which == 2) marks->keys[d] = true;
}

/* One element against its bounds. */
static void hold(findings *found, int64_t n, const output outputs[3], int which, row_place at, int64_t d,
                 double expected, double bound, double probabilistic_bound, bool exact) {
  const output *o = &outputs[which];
  const double computed = element_of(o, at, d);
  const double worst = reference_error_share(computed, expected, bound);
  const double probabilistic = reference_error_share(computed, expected, probabilistic_bound);
  found->shares[which].worst = fmax(found->shares[which].worst, worst);
  found->shares[which].probabilistic = fmax(found->shares[which].probabilistic, probabilistic);
  if (exact) found->exact = fmax(found->exact, fmax(worst, probabilistic));
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
  fail(&found->first, "%s[b %lld, h %lld, i %lld, %c %lld] is %.9g, the reference is %.9g within %.3g: %s",
       o->name, (long long)at.b, (long long)at.h, (long long)at.i, o->name[0] == 'w' ? 'j' : 'd',
       (long long)d, isnan(computed) ? (double)NAN : computed, expected,
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

static void hold_row(const expected *known, uint32_t traits, int64_t n, const output outputs[3],
                     findings *found) {
  const reference_row *row = &known->solved[n];
  const reference_bounds bounds = bounds_of(row, traits);
  const row_place at = row_place_of(&known->inputs->problem, known->positions[n]);
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
  for (int n = 0; n < 3; n++) {
    all->shares[n].worst = fmax(all->shares[n].worst, found->shares[n].worst);
    all->shares[n].probabilistic = fmax(all->shares[n].probabilistic, found->shares[n].probabilistic);
  }
  all->exact = fmax(all->exact, found->exact);
  if (found->first_row >= all->first_row) return;
  all->first_row = found->first_row;
  all->first = found->first;
}

static void hold_rows(const expected *known, uint32_t traits, const output outputs[3], verdict *result) {
  findings all = {.first = {.passed = true}, .first_row = INT64_MAX};
#pragma omp parallel if (known->rows * (outputs[0].width + outputs[2].width) > worth_threads)
  {
    findings found = {.first = {.passed = true}, .first_row = INT64_MAX};
#pragma omp for schedule(static)
    for (int64_t n = 0; n < known->rows; n++) hold_row(known, traits, n, outputs, &found);
#pragma omp critical
    merge(&all, &found);
  }
  for (int n = 0; n < 3; n++) {
    result->bound_share = fmax(result->bound_share, all.shares[n].worst);
    result->probabilistic_share = fmax(result->probabilistic_share, all.shares[n].probabilistic);
  }
  result->output_share = fmax(all.shares[0].worst, all.shares[0].probabilistic);
  result->lse_share = fmax(all.shares[1].worst, all.shares[1].probabilistic);
  result->exact_share = all.exact;
  if (!all.first.passed) fail(result, "%s", all.first.problem);
}

static void describe_marks(const expected *known, const marks *marks, bool with_keys, verdict *result) {
  char pattern[256];
  const wrong_rows rows = {.problem = &known->inputs->problem,
                           .count = known->rows,
                           .positions = known->positions,
                           .wrong = marks->rows,
                           .columns = marks->columns,
                           .keys = with_keys ? marks->keys : NULL};
  pattern_describe(&rows, pattern, sizeof pattern);
  const size_t used = strlen(result->problem);
  if (*pattern && used < sizeof result->problem)
    snprintf(result->problem + used, sizeof result->problem - used, "; %s", pattern);
}

/* Says of outputs that are wrong where they are. */
static void name_pattern(const expected *known, uint32_t traits, const output outputs[3], verdict *result) {
  const size_t counts[] = {(size_t)known->rows, (size_t)outputs[0].width, (size_t)outputs[2].width};
  bool *const all = calloc(counts[0] + counts[1] + counts[2] + 1, sizeof *all);
  if (!all) return;
  const marks marks = {all, all + counts[0], all + counts[0] + counts[1]};
  findings found = {.marks = &marks, .first = {.passed = true}, .first_row = INT64_MAX};
  for (int64_t n = 0; n < known->rows; n++) hold_row(known, traits, n, outputs, &found);
  describe_marks(known, &marks, outputs[2].width > 0, result);
  free(all);
}

/* The errors of each row together: what no element shows alone. */
static void hold_mean_square(const expected *known, uint32_t traits, const output *o, verdict *result) {
  mean_square sums = {0};
  for (int64_t n = 0; n < known->rows; n++) {
    const reference_row *row = &known->solved[n];
    const row_place at = row_place_of(&known->inputs->problem, known->positions[n]);
    const double *deviation = bounds_of(row, traits).deviation;
    row_square square = {0};
    if (!known->is_first[n]) continue;
    for (int64_t d = 0; d < o->width; d++)
      row_square_add(&square, element_of(o, at, d), row->output[d], deviation[d]);
    mean_square_add(&sums, &square);
  }
  result->mean_square_share = mean_square_share(&sums);
  if (!(result->mean_square_share <= 1))
    fail(result,
         "root mean square of the errors of %lld rows is %.3g times what the model's roundings explain",
         (long long)sums.rows, mean_square_root(&sums));
}

void expected_compare(const expected *known, uint32_t traits, verdict *result) {
  const inputs *in = known->inputs;
  const attn_problem *p = &in->problem;
  const output outputs[3] = {output_of(in, TENSOR_OUTPUT), output_of(in, TENSOR_LSE),
                             output_of(in, TENSOR_WEIGHTS)};
  memset(result, 0, sizeof *result);
  result->passed = true;
  result->rows_checked = known->rows;
  result->rows_total = known->rows_total;
  result->sampled = known->rows < known->rows_total;
  if (known->rows_total == 0) return;
  for (int n = 0; n < 3; n++)
    if (outputs[n].width > 0) check_written(p, &outputs[n], result);
  hold_rows(known, traits, outputs, result);
  const bool is_wrong = !result->passed;
  hold_mean_square(known, traits, &outputs[0], result);
  if (is_wrong) name_pattern(known, traits, outputs, result);
}
