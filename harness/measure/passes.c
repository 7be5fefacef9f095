/* Times all measurements in passes over all lengths, so that what slows the machine for a second or a minute slows
 * all points alike, and each pass gives one slope of growth and one ratio of any two variants.
 *
 * The inputs of all lengths are held at once where that takes no more than half of the memory there is.
 * Where it takes more, the measurements are cut into groups of neighbouring lengths, from the longest down, since
 * growth is read off the longest; each group is then timed by itself. */
#include "passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cold.h"
#include "base/interrupt.h"
#include "shared_inputs.h"
#include "base/random.h"

/* ---- groups ---- */

/* Bytes that the measurement adds to those in [first, end): its inputs, where none of them has the same, and
 * what its workspace takes beyond the largest. */
static double more_bytes(const measurement *measurements, size_t first, size_t end,
                         const measurement *added) {
  double bytes = workload_tensor_bytes(&added->result->workload);
  size_t largest = 0;
  for (size_t n = first; n < end; n++) {
    if (strcmp(measurements[n].setup.problem, added->setup.problem) == 0) bytes = 0;
    if (measurements[n].result->workspace_bytes > largest) largest = measurements[n].result->workspace_bytes;
  }
  const size_t workspace = added->result->workspace_bytes;
  return bytes + (workspace > largest ? (double)(workspace - largest) : 0);
}

/* The first measurement of the group that ends before `end`; at least one measurement. */
static size_t group_before(const measurement *measurements, size_t end, double memory) {
  size_t first = end;
  for (double bytes = 0; first > 0; first--) {
    bytes += more_bytes(measurements, first, end, &measurements[first - 1]);
    if (bytes > memory && first < end) break;
  }
  return first;
}

/* ---- one group ---- */

typedef struct group {
  measurement *measurements;
  measurement **turns; /* in the order of this pass */
  size_t count;
  shared_inputs shared_inputs;
  unsigned char *workspace;
  cold cold;
} group;

static void show(bench *bench, int pass, const char *what) {
  if (!bench->progress.shown) return;
  double left = 0;
  for (size_t n = 0; n < bench->measurement_count; n++)
    left += measurement_seconds_left(&bench->measurements[n]);
  left += bench_peaks_seconds_left(bench, pass + 1);
  progress_show(&bench->progress, bench->settled, bench->count, left, what);
}

static void shuffle(bench *bench, measurement **order, size_t count) {
  for (size_t n = count; n > 1; n--) {
    const size_t other = (size_t)(random_bits(bench->options->seed, bench->shuffles++) % n);
    measurement *swapped = order[n - 1];
    order[n - 1] = order[other];
    order[other] = swapped;
  }
}

/* Holds a repetition to the rate of the peak's loop right behind it: the clock of a shared machine moves by some percent from
 * second to second, and the highest of many medians is of its best. */
static void take_share(const bench *bench, const measurement *measurement) {
  const double part = 0.05, least = 5e-5, most = 5e-4; /* of its time; seconds */
  const result *result = measurement->result;
  const size_t last = result->repetitions - 1;
  const machine_rate *peak = bench_peak_of(bench, measurement->setup.variant, &result->workload);
  const double took = result->seconds[last] * (double)result->iterations;
  const double seconds = fmax(least, fmin(part * took, most));
  const double rate = peak ? machine_rate_now(&bench->report->machine, peak, seconds) : 0;
  result->shares[last] = rate > 0 ? result->flops / result->seconds[last] / rate : 0;
}

/* Passes in which every measurement that wants more has one repetition, or each measurement's repetitions in a row;
 * an interruption ends them. */
static void take_turns(bench *bench, group *group) {
  const bool interleaved = bench->options->random_interleaving;
  bool more = true;
  for (int pass = 0; more; pass++) {
    more = false;
    machine_watch_device(&bench->report->machine);
    if (pass > 0 && pass < BENCH_PASSES_WITH_PEAKS)
      machine_measure_again(&bench->report->machine, bench->options->threads, bench_peak_seconds(bench));
    if (interleaved) shuffle(bench, group->turns, group->count);
    for (size_t n = 0; n < group->count; n++) {
      measurement *measurement = group->turns[n];
      while (measurement_wants_more(measurement)) {
        show(bench, pass, measurement->result->name);
        if (bench->options->cold && measurement->setup.variant->place == ATTN_HOST) {
          inputs_poison_outputs(measurement->inputs); /* so that the copies are */
          measurement->copies = group->cold.copies;
          measurement->copy_count = cold_fill(&group->cold, measurement->inputs);
        }
        if (interrupt_wanted() || !measurement_repeat(measurement, group->workspace)) return;
        take_share(bench, measurement);
        bench->settled += !measurement_wants_more(measurement);
        more = true;
        if (interleaved) break;
      }
    }
  }
}

/* Gives each measurement its inputs; one whose memory is gone since it was taken up is skipped. */
static void assign_inputs(bench *bench, group *group) {
  size_t largest = 0, kept = 0;
  char why[sizeof group->measurements->result->reason];
  for (size_t n = 0; n < group->count; n++) {
    measurement *measurement = &group->measurements[n];
    shared_entry *shared =
        shared_inputs_acquire(&group->shared_inputs, &measurement->result->workload, why, sizeof why);
    if (!shared) {
      bench_skip(bench, measurement->result, "%s", why);
      continue;
    }
    measurement->inputs = &shared->inputs;
    group->turns[kept++] = measurement;
    if (measurement->result->workspace_bytes > largest) largest = measurement->result->workspace_bytes;
  }
  group->count = kept;
  group->workspace = bench_acquire_workspace(largest);
  for (size_t n = 0; n < kept && !group->workspace; n++)
    bench_skip(bench, group->turns[n]->result, "its workspace cannot be had");
  if (!group->workspace) group->count = 0;
}

static bool run_group(bench *bench, measurement *measurements, size_t count) {
  group group = {.measurements = measurements, .count = count};
  group.turns = calloc(count, sizeof *group.turns);
  if (!group.turns) return false;
  assign_inputs(bench, &group);
  const machine *machine = &bench->report->machine;
  const bool ready = !bench->options->cold ||
                     cold_create(&group.cold, machine->l3_bytes ? machine->l3_bytes : machine->l2_bytes);
  if (ready) take_turns(bench, &group);
  for (size_t n = 0; n < count; n++) {
    measurement_finish(&measurements[n]);
    measurements[n].inputs = NULL;
  }
  shared_inputs_destroy(&group.shared_inputs);
  free(group.turns);
  free(group.workspace);
  cold_destroy(&group.cold);
  return ready;
}

static double shortest_batch(const bench *bench) {
  double shortest = INFINITY;
  for (size_t n = 0; n < bench->measurement_count; n++) {
    const result *result = bench->measurements[n].result;
    for (size_t i = 0; i < result->repetitions; i++)
      shortest = fmin(shortest, result->seconds[i] * (double)result->iterations);
  }
  return shortest;
}

bool passes_run(bench *bench) {
  size_t *starts = calloc(bench->measurement_count + 1, sizeof *starts), groups = 0;
  if (!starts) return false;
  const double memory = 0.5 * (double)memory_available_bytes();
  for (size_t end = bench->measurement_count; end > 0; end = starts[groups++])
    starts[groups] = group_before(bench->measurements, end, memory);
  bool good = true;
  const disturbance_watch watch = disturbance_begin();
  for (size_t n = groups; n-- > 0 && good && !interrupt_wanted();) {
    const size_t end = n > 0 ? starts[n - 1] : bench->measurement_count;
    good = run_group(bench, &bench->measurements[starts[n]], end - starts[n]);
  }
  bench->report->disturbance = disturbance_end(&watch);
  bench->report->disturbance.shortest_batch_seconds = shortest_batch(bench);
  free(starts);
  return good;
}
