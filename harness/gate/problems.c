/* Which problems the gate poses to a variant: those of the command line; or the gate's usual ones, which benchmarks.c and
 * facts.c have; or, to a variant that takes none of these, the nearest that it does take, found by asking it. */
#include <limits.h>
#include <stdlib.h>

#include "gate.h"
#include "measure/sweep.h"
#include "run/runner.h"
#include "verify/fitting.h"

bool gate_takes(const gate_pair *pair, const workload *w) {
  char why[8];
  if (!workload_check(w, why, sizeof why)) return false;
  const attn_problem problem = workload_problem(w);
  return !runner_refusal(pair->variant, &problem) && (!pair->other || !runner_refusal(pair->other, &problem));
}

/* ---- the nearest that it takes ---- */

/* What the gate's usual problems have. */
static const struct {
  fitting_size size;
  int wanted;
} usual[] = {{SIZE_LENGTHS, 256}, {SIZE_KEYS, 256}, {SIZE_DIMS, 64}, {SIZE_HEAD_DIM, 64}, {SIZE_KV_HEADS, 4}};

/* The nearest to what is wanted, of those values of a size with which both sides take the problem. */
static void bring_near(const gate_pair *pair, const fitting_anchor *anchor, fitting_size size, int wanted,
                       workload *to) {
  const fitting_values *values = &anchor->values[size];
  const workload from = *to;
  int nearest = INT_MAX;
  for (int n = 0; n < values->count; n++) {
    workload w = from;
    fitting_set_size(&w, size, values->of[n], anchor->bottom_right);
    const int off = abs(values->of[n] - wanted);
    if (off >= nearest || !gate_takes(pair, &w)) continue;
    nearest = off;
    *to = w;
  }
}

/* Of what the verification learns that it takes. */
static bool find_nearest(const gate_pair *pair, workload *found) {
  fitting *of = fitting_create(pair->variant);
  bool is_found = false;
  for (int n = 0; of && n < of->count && !is_found; n++) {
    *found = of->anchors[n].workload;
    for (size_t u = 0; u < sizeof usual / sizeof *usual; u++)
      bring_near(pair, &of->anchors[n], usual[u].size, usual[u].wanted, found);
    is_found = gate_takes(pair, found);
  }
  fitting_destroy(of);
  return is_found;
}

/* ---- what is posed ---- */

/* Queries beside other numbers of keys, and lists for each batch entry, have no other length that would be the same. */
bool gate_halve(const gate_pair *pair, workload *w) {
  workload half = *w;
  if (w->query_length != w->key_length || w->offset != 0 || w->has_offsets || w->has_lengths) return false;
  if (w->query_length < 16 || w->query_length % 2 != 0) return false;
  half.query_length = half.key_length = w->query_length / 2;
  if (!gate_takes(pair, &half)) return false;
  *w = half;
  return true;
}

size_t gate_other_problems(const gate_pair *pair, const gate_options *options,
                           workload problems[GATE_MAX_PROBLEMS]) {
  size_t count = 0;
  char why[512];
  if (options->problem_count == 0) return find_nearest(pair, &problems[0]);
  for (size_t n = 0; n < options->problem_count && count < GATE_MAX_PROBLEMS; n++)
    if (workload_parse_sound(options->problems[n], &problems[count], why, sizeof why) &&
        gate_takes(pair, &problems[count]))
      count++;
  return count;
}
