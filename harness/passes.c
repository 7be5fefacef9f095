/* Times all trials in passes over all lengths, so that what slows the machine for a second or a minute slows
 * all points alike, and each pass gives one slope of growth and one ratio of any two variants.
 *
 * The inputs of all lengths are held at once where that takes no more than half of the memory there is.
 * Where it takes more, the trials are cut into groups of neighbouring lengths, from the longest down, since
 * growth is read off the longest; each group is then timed by itself. */
#include "stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cold.h"
#include "interrupt.h"
#include "pool.h"
#include "random.h"

enum { PASSES_WITH_PEAKS = 8 };

/* ---- groups ---- */

/* Bytes that the trial adds to those in [first, end): its inputs, where none of them has the same, and
 * what its workspace takes beyond the largest. */
static double more_bytes(const trial *trials, size_t first, size_t end, const trial *added) {
  double bytes = workload_tensor_bytes(&added->result->workload);
  size_t largest = 0;
  for (size_t n = first; n < end; n++) {
    if (strcmp(trials[n].problem, added->problem) == 0) bytes = 0;
    if (trials[n].result->workspace_bytes > largest) largest = trials[n].result->workspace_bytes;
  }
  const size_t workspace = added->result->workspace_bytes;
  return bytes + (workspace > largest ? (double)(workspace - largest) : 0);
}

/* The first trial of the group that ends before `end`; at least one trial. */
static size_t group_before(const trial *trials, size_t end, double memory) {
  size_t first = end;
  for (double bytes = 0; first > 0; first--) {
    bytes += more_bytes(trials, first, end, &trials[first - 1]);
    if (bytes > memory && first < end) break;
  }
  return first;
}

/* ---- one group ---- */

typedef struct group {
  trial *trials;
  trial **turns; /* in the order of this pass */
  size_t count;
  pool pool;
  unsigned char *workspace;
  cold cold;
} group;

static void show(bench *bench, const char *what) {
  if (!bench->progress.shown) return;
  double left = 0;
  for (size_t n = 0; n < bench->trial_count; n++) left += trial_seconds_left(&bench->trials[n]);
  progress_show(&bench->progress, bench->settled, bench->count, left, what);
}

static void shuffle(bench *bench, trial **order, size_t count) {
  for (size_t n = count; n > 1; n--) {
    const size_t other = (size_t)(random_bits(bench->options->seed, bench->shuffles++) % n);
    trial *swapped = order[n - 1];
    order[n - 1] = order[other];
    order[other] = swapped;
  }
}

/* Passes in which every trial that wants more has one repetition, or each trial's repetitions in a row;
 * an interruption ends them. */
static void take_turns(bench *bench, group *group) {
  const bool interleaved = bench->options->random_interleaving;
  bool more = true;
  for (int pass = 0; more; pass++) {
    more = false;
    if (pass > 0 && pass < PASSES_WITH_PEAKS) bench_measure_machine_again(bench);
    if (interleaved) shuffle(bench, group->turns, group->count);
    for (size_t n = 0; n < group->count; n++) {
      trial *trial = group->turns[n];
      while (trial_wants_more(trial)) {
        show(bench, trial->result->name);
        if (bench->options->cold) {
          trial->copies = group->cold.copies;
          trial->copy_count = cold_fill(&group->cold, trial->inputs);
        }
        if (interrupt_wanted() || !trial_repeat(trial, group->workspace)) return;
        bench->settled += !trial_wants_more(trial);
        more = true;
        if (interleaved) break;
      }
    }
  }
}

/* Gives each trial its inputs; one whose memory is gone since it was taken up is skipped. */
static void furnish(bench *bench, group *group) {
  size_t largest = 0, kept = 0;
  char why[sizeof group->trials->result->reason];
  for (size_t n = 0; n < group->count; n++) {
    trial *trial = &group->trials[n];
    pooled *shared = pool_acquire(&group->pool, &trial->result->workload, why, sizeof why);
    if (!shared) {
      stage_skip(bench, trial->result, "%s", why);
      continue;
    }
    trial->inputs = &shared->inputs;
    group->turns[kept++] = trial;
    if (trial->result->workspace_bytes > largest) largest = trial->result->workspace_bytes;
  }
  group->count = kept;
  group->workspace = stage_acquire_workspace(largest);
  for (size_t n = 0; n < kept && !group->workspace; n++)
    stage_skip(bench, group->turns[n]->result, "its workspace cannot be had");
  if (!group->workspace) group->count = 0;
}

static bool run_group(bench *bench, trial *trials, size_t count) {
  group group = {.trials = trials, .count = count};
  group.turns = calloc(count, sizeof *group.turns);
  if (!group.turns) return false;
  furnish(bench, &group);
  const machine *machine = &bench->report->machine;
  const bool ready = !bench->options->cold ||
                     cold_create(&group.cold, machine->l3_bytes ? machine->l3_bytes : machine->l2_bytes);
  if (ready) take_turns(bench, &group);
  for (size_t n = 0; n < count; n++) {
    trial_finish(&trials[n]);
    trials[n].inputs = NULL;
  }
  pool_destroy(&group.pool);
  free(group.turns);
  free(group.workspace);
  cold_destroy(&group.cold);
  return ready;
}

static double shortest_batch(const bench *bench) {
  double shortest = INFINITY;
  for (size_t n = 0; n < bench->trial_count; n++) {
    const result *result = bench->trials[n].result;
    for (size_t i = 0; i < result->repetitions; i++)
      shortest = fmin(shortest, result->seconds[i] * (double)result->iterations);
  }
  return shortest;
}

bool passes_run(bench *bench) {
  size_t *starts = calloc(bench->trial_count + 1, sizeof *starts), groups = 0;
  if (!starts) return false;
  const double memory = 0.5 * (double)memory_available_bytes();
  for (size_t end = bench->trial_count; end > 0; end = starts[groups++])
    starts[groups] = group_before(bench->trials, end, memory);
  bool good = true;
  const disturbance_watch watch = disturbance_begin();
  for (size_t n = groups; n-- > 0 && good && !interrupt_wanted();) {
    const size_t end = n > 0 ? starts[n - 1] : bench->trial_count;
    good = run_group(bench, &bench->trials[starts[n]], end - starts[n]);
  }
  bench->report->disturbance = disturbance_end(&watch);
  bench->report->disturbance.shortest_batch_seconds = shortest_batch(bench);
  free(starts);
  return good;
}
