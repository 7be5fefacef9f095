/* What each check of a verification sees, and how much of it right kernels use: the tables of docs/power.md.
 * `power VARIANTS [LONGEST]`: the shared object of the variants, and the most keys, 16384 unless said. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "problem/types.h"
#include "problem/widened.h"
#include "run/plugins.h"
#include "verify/verify.h"

static const int lengths[] = {64, 256, 1024, 4096, 16384};
static const char *const types[] = {"f32", "bf16", "f16"};
static const char *const drawn[] = {"uniform", "normal", "heavy", "dominant", "around_one"};
enum {
  LENGTHS = sizeof lengths / sizeof *lengths,
  TYPES = sizeof types / sizeof *types,
  DRAWN = sizeof drawn / sizeof *drawn,
  MOST_VARIANTS = 16,
  TILE = 64 /* keys between which a running output is kept */
};

/* ---- shares ---- */

typedef struct shares {
  double bound, exact, lse,
      square; /* of the probabilistic bound, the exact probe, the log-sum-exp, the root mean square */
  bool known;
} shares;

static void raise_to(shares *to, const verdict *of, bool is_probe) {
  if (is_probe)
    to->exact = fmax(to->exact, of->exact_share);
  else {
    to->bound = fmax(to->bound, of->output_share);
    to->lse = fmax(to->lse, of->lse_share);
    to->square = fmax(to->square, of->mean_square_share);
  }
  to->known = true;
}

static void print_share(double share) {
  if (share > 1)
    printf(share < 10 ? "**%.2g**" : share < 1000 ? "**%.0f**" : "**>999**", share);
  else
    printf(share < 0.005 ? "0" : "%.2f", share);
}

static void print_shares(const shares *of) {
  if (!of->known) {
    printf(" - |");
    return;
  }
  putchar(' ');
  print_share(of->bound);
  printf(" / ");
  print_share(of->exact);
  printf(" / ");
  print_share(of->lse);
  printf(" / ");
  print_share(of->square);
  printf(" |");
}

/* ---- faults ---- */

/* What a plain kernel does wrong. Some are of elements of 16 bits. */
typedef enum fault {
  NONE,
  DROPPED_KEY,
  DOUBLED_KEY,
  DROPPED_VALUE,
  ROUNDED_SUM,
  TRUNCATED_OUTPUT,
  TRUNCATED_WEIGHTS,
  SCALED_QUERY,
  NARROW_SUMS,
  WRONG_LSE,
  FAULTS
} fault;

static const struct {
  const char *words;
  bool is_narrow;
} faults[FAULTS] = {
    [NONE] = {"none", false},
    [DROPPED_KEY] = {"the last key is dropped", false},
    [DOUBLED_KEY] = {"a key counts twice", false},
    [DROPPED_VALUE] = {"a value is dropped, its key is not", false},
    [ROUNDED_SUM] = {"rounded weights are summed", true},
    [TRUNCATED_OUTPUT] = {"the output is truncated", true},
    [TRUNCATED_WEIGHTS] = {"weights are truncated", true},
    [SCALED_QUERY] = {"the scale is folded into a rounded query", true},
    [NARROW_SUMS] = {"the running output is kept in bfloat16", false},
    [WRONG_LSE] = {"the log-sum-exp lacks the last key", false},
};

static double rounded(const element_type *type, double number) {
  double room;
  type->store(&room, number);
  return type->load(&room);
}

/* Towards zero. */
static double truncated(const element_type *type, double number) {
  const double nearest = rounded(type, number);
  int exponent;
  if (fabs(nearest) <= fabs(number)) return nearest;
  frexp(number, &exponent);
  return nearest - copysign(ldexp(type->unit_roundoff, exponent), number);
}

/* One row: what is not a fault is computed in double precision and rounds where the model does. */
static void solve_row(const inputs *in, const attn_tensors *wide, int64_t h, int64_t i, fault fault,
                      double *weights, double *sums) {
  const attn_problem *p = &in->problem;
  const element_type *type = element_type_of(p->value.type), *bfloat16 = element_type_of(ATTN_BFLOAT16);
  const bool is_narrow = element_type_is_narrow(p->value.type);
  const int64_t Tk = p->key_length, D = p->head_dim, Dv = p->value_dim, last = Tk - 1, middle = Tk / 2;
  const float *q = (const float *)wide->query + h * p->query.head + i * p->query.position;
  double most = -INFINITY, sum = 0, whole = 0;
  for (int64_t j = 0; j < Tk; j++) {
    const float *k = (const float *)wide->key + j * p->key.position;
    weights[j] = 0;
    for (int64_t d = 0; d < D; d++)
      weights[j] += (fault == SCALED_QUERY ? rounded(type, p->scale * q[d]) : p->scale * q[d]) * k[d];
    most = fmax(most, weights[j]);
  }
  for (int64_t e = 0; e < Dv; e++) sums[e] = 0;
  for (int64_t j = 0; j < Tk; j++) {
    const float *v = (const float *)wide->value + j * p->value.position;
    const double exact = exp(weights[j] - most);
    const double narrow = fault == TRUNCATED_WEIGHTS ? truncated(type, exact) : rounded(type, exact);
    const double times = fault == DROPPED_KEY && j == last ? 0 : fault == DOUBLED_KEY && j == middle ? 2 : 1;
    const double weight = is_narrow ? narrow : exact;
    sum += times * (fault == ROUNDED_SUM ? weight : exact);
    whole += exact * (fault == WRONG_LSE && j == last ? 0 : 1);
    for (int64_t e = 0; e < Dv && !(fault == DROPPED_VALUE && j == last); e++)
      sums[e] += times * weight * v[e];
    for (int64_t e = 0; e < Dv && fault == NARROW_SUMS && j % TILE == TILE - 1; e++)
      sums[e] = rounded(bfloat16, sums[e]);
  }
  const element_type *out = element_type_of(p->output.type);
  char *output =
      (char *)in->tensors.output + (h * p->output.head + i * p->output.position) * (int64_t)out->bytes;
  for (int64_t e = 0; e < Dv; e++) {
    const double o = sums[e] / sum;
    out->store(output + e * (int64_t)out->bytes, fault == TRUNCATED_OUTPUT ? truncated(out, o) : o);
  }
  in->tensors.lse[h * p->lse.head + i * p->lse.position] =
      (float)(most + log(fault == WRONG_LSE ? whole : sum));
}

/* All rows of the inputs, whose heads share a key and value head. */
static bool solve(inputs *in, fault fault) {
  const attn_problem *p = &in->problem;
  widened wide;
  bool had_memory = widened_create(&wide, &in->problem, &in->tensors, false);
  if (!had_memory) return false;
#pragma omp parallel reduction(&& : had_memory)
  {
    double *room = malloc((size_t)(p->key_length + p->value_dim) * sizeof *room);
    had_memory = room != NULL;
#pragma omp for
    for (int64_t row = 0; row < p->query_heads * p->query_length; row++)
      if (room)
        solve_row(in, &wide.tensors, row / p->query_length, row % p->query_length, fault, room,
                  room + p->key_length);
    free(room);
  }
  widened_destroy(&wide);
  return had_memory;
}

/* ---- tables ---- */

typedef struct tables {
  variant_list list;
  shares right[MOST_VARIANTS][TYPES][LENGTHS], wrong[FAULTS][TYPES][LENGTHS];
} tables;

/* A variant on one of its instruction sets; NULL: as it chooses. */
static bool try_variant(shares *to, const run_setup *setup, inputs *in, const expected *known, bool is_probe,
                        char *why, size_t why_size) {
  verdict verdict;
  if (runner_refusal_with(setup->variant, &in->problem, setup->isa)) return true;
  if (!verify_run_against(setup, in, known, false, &verdict, why, why_size)) return false;
  raise_to(to, &verdict, is_probe);
  return true;
}

/* Every variant that can, on each of its instruction sets. */
static bool try_variants(tables *to, inputs *in, const expected *known, int type, int length, bool is_probe,
                         char *why, size_t why_size) {
  for (size_t n = 0; n < to->list.count && n < MOST_VARIANTS; n++) {
    run_setup setup = {.variant = to->list.variants[n], .threads = 2};
    shares *of = &to->right[n][type][length];
    if (!try_variant(of, &setup, in, known, is_probe, why, why_size)) return false;
    for (const char *const *set = variant_list_instruction_sets_of(&to->list, setup.variant); *set; set++) {
      setup.isa = *set;
      if (!try_variant(of, &setup, in, known, is_probe, why, why_size)) return false;
    }
  }
  return true;
}

static bool try_faults(tables *to, inputs *in, const expected *known, int type, int length, bool is_probe,
                       char *why, size_t why_size) {
  const bool is_narrow = element_type_is_narrow(in->problem.value.type);
  for (fault fault = NONE; fault < FAULTS; fault++) {
    verdict verdict;
    if (faults[fault].is_narrow && !is_narrow) continue;
    inputs_poison_outputs(in);
    if (!solve(in, fault)) {
      snprintf(why, why_size, "out of memory");
      return false;
    }
    expected_compare(known, 0, &verdict);
    raise_to(&to->wrong[fault][type][length], &verdict, is_probe);
  }
  return true;
}

static bool try_all(tables *to, const char *function, int type, int length, const char *fill, char *why,
                    size_t why_size) {
  char text[256];
  workload workload;
  inputs in;
  expected known;
  const bool is_probe = strcmp(fill, "exact") == 0, is_softmax = *function == '\0';
  snprintf(text, sizeof text, "%sfull/B:1/H:2/Hkv:1/D:64/Tq:16/Tk:%d/%sfill:%s/%s", function, lengths[length],
           is_softmax ? "lse/" : "", fill, types[type]);
  if (!workload_parse_sound(text, &workload, why, why_size) ||
      !inputs_create(&in, &workload, false, why, why_size))
    return false;
  bool good = expected_solve(&known, &in, 0, why, why_size);
  if (good) {
    good = try_variants(to, &in, &known, type, length, is_probe, why, why_size) &&
           (!is_softmax || try_faults(to, &in, &known, type, length, is_probe, why, why_size));
    expected_destroy(&known);
  }
  inputs_destroy(&in);
  return good;
}

static bool fill_tables(tables *to, int longest, char *why, size_t why_size) {
  for (int length = 0; length < LENGTHS && lengths[length] <= longest; length++)
    for (int type = 0; type < TYPES; type++)
      for (int n = 0; n <= DRAWN; n++) {
        const char *fill = n < DRAWN ? drawn[n] : "exact";
        if (!try_all(to, "", type, length, fill, why, why_size) ||
            !try_all(to, "linear/", type, length, fill, why, why_size))
          return false;
      }
  return true;
}

static void print_head(const char *title) {
  printf("\n| %s | type |", title);
  for (int length = 0; length < LENGTHS; length++) printf(" %d |", lengths[length]);
  printf("\n|---|---|");
  for (int length = 0; length < LENGTHS; length++) printf("---|");
  putchar('\n');
}

static void print_rows(const char *name, const shares rows[TYPES][LENGTHS]) {
  for (int type = 0; type < TYPES; type++) {
    if (!rows[type][0].known) continue;
    printf("| %s | %s |", name, types[type]);
    for (int length = 0; length < LENGTHS; length++) print_shares(&rows[type][length]);
    putchar('\n');
  }
}

static void print_tables(const tables *of) {
  machine machine = {0};
  machine_describe(&machine);
  printf("On %s, whose instruction sets are", machine.cpu);
  for (const char *const *set = variant_list_instruction_sets_of(&of->list, of->list.variants[0]); *set;
       set++)
    printf(" %s", *set);
  printf(".\n");
  print_head("right kernel");
  for (size_t n = 0; n < of->list.count && n < MOST_VARIANTS; n++)
    print_rows(of->list.variants[n]->name, of->right[n]);
  print_head("fault");
  for (fault fault = NONE; fault < FAULTS; fault++) print_rows(faults[fault].words, of->wrong[fault]);
}

/* A right kernel that fails is no table's matter. */
static int failed(const tables *of) {
  int count = 0;
  for (size_t n = 0; n < of->list.count && n < MOST_VARIANTS; n++)
    for (int type = 0; type < TYPES; type++)
      for (int length = 0; length < LENGTHS; length++) {
        const shares *s = &of->right[n][type][length];
        count += fmax(fmax(s->bound, s->exact), fmax(s->lse, s->square)) > 1;
      }
  return count;
}

int main(int count, char **arguments) {
  static tables tables;
  char why[512], *end = NULL;
  const int longest = count > 2 ? (int)strtol(arguments[2], &end, 10) : lengths[LENGTHS - 1];
  if (count < 2 || longest < 1 || (end && *end)) {
    fprintf(stderr, "power: takes the variants' shared object and the most keys, such as 4096\n");
    return 2;
  }
  if (!variant_list_add(&tables.list, arguments[1], why, sizeof why) ||
      !fill_tables(&tables, longest, why, sizeof why)) {
    fprintf(stderr, "power: %s\n", why);
    return 2;
  }
  print_tables(&tables);
  const int wrong = failed(&tables);
  variant_list_destroy(&tables.list);
  if (wrong > 0) fprintf(stderr, "power: right kernels fail in %d places\n", wrong);
  return wrong > 0;
}
