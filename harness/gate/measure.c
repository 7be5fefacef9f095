/* One measuring process of the gate. It loads base and head side by side and runs both on the same
 * tensors and the same workspace, as often, in quads of samples A B B A or B A A B, whichever a random
 * bit says: a drift of the machine's speed that is linear over a quad cancels, and what remains of the
 * difference belongs to the code. Benchmarks take turns, in random order, a quad at a time.
 *
 * Two copies of the same code differ by 1.2 % from process to process when each has buffers of its own,
 * by 0.4 % when they share them: hence one set of buffers. The rest belongs to the process: timing.c
 * starts many. */
#define _GNU_SOURCE
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/runner.h"
#include "verify/verify.h"
#include "gate.h"
#include "base/random.h"
#include "base/text.h"
#include "base/timer.h"

enum { BASE, HEAD, ITSELF, ARMS, FIELDS = 6, QUAD = 4 };

/* Long against the clock, short against the drift; a team's long against waking its threads too. */
static const double sample_seconds = 0.002, team_sample_seconds = 0.004;

typedef struct measured {
  const attn_variant *arms[2];
  workload workload;
  inputs *inputs; /* shared with other benchmarks on the same workload */
  const char *problem, *isa;
  int threads;
  int64_t iterations;
  double seconds; /* of one iteration, the first arm's */
  size_t every;   /* rounds that it takes part in: those that take long sit out some */
  double *ratios; /* [quads] */
  size_t made;
  char wrong[256]; /* in the head's outputs while it was timed, in words; "": nothing */
} measured;

typedef struct process {
  variant_list lists[ARMS];
  measured *benchmarks;
  size_t count, quads;
  void *workspace;
  uint64_t seed, drawn;
  cpu_set_t all, one;
} process;

static int complain(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  return GATE_UNUSABLE;
}

static uint64_t draw(process *process) { return random_bits(process->seed, process->drawn++); }

/* ---- setting up ---- */

static bool load(process *process, const gate_measurement *what) {
  char why[512];
  const char *const paths[ARMS] = {what->base, what->head, what->itself};
  for (int arm = 0; arm < ARMS; arm++)
    if (!variant_list_add(&process->lists[arm], paths[arm], why, sizeof why)) {
      complain("gate-measure", why);
      return false;
    }
  return true;
}

static bool read_count(const char *text, int64_t minimum, int64_t maximum, int64_t *count) {
  const char *end;
  return text_integer(text, minimum, maximum, &end, count) && *end == '\0';
}

static bool read_benchmark(process *process, measured *benchmark, const char *const *fields) {
  char why[512];
  int64_t threads;
  const bool against_itself = strcmp(fields[5], "0") != 0;
  benchmark->arms[0] = variant_list_find(&process->lists[BASE], fields[0]);
  benchmark->arms[1] = variant_list_find(&process->lists[against_itself ? ITSELF : HEAD], fields[0]);
  benchmark->problem = fields[1];
  benchmark->isa = fields[3];
  if (!benchmark->arms[0] || !benchmark->arms[1])
    snprintf(why, sizeof why, "one of the two has no such variant");
  else if (!read_count(fields[2], 1, INT_MAX, &threads) ||
           !read_count(fields[4], 0, INT64_MAX, &benchmark->iterations))
    snprintf(why, sizeof why, "threads and iterations are numbers, 1 thread or more");
  else if (workload_parse(benchmark->problem, &benchmark->workload, why, sizeof why))
    return benchmark->threads = (int)threads, true;
  complain(fields[0], why);
  return false;
}

static bool find_inputs(process *process, size_t n) {
  measured *benchmark = &process->benchmarks[n];
  char why[512] = "out of memory";
  for (size_t other = 0; other < n; other++)
    if (strcmp(process->benchmarks[other].problem, benchmark->problem) == 0) {
      benchmark->inputs = process->benchmarks[other].inputs;
      return true;
    }
  benchmark->inputs = malloc(sizeof *benchmark->inputs);
  if (benchmark->inputs && inputs_create(benchmark->inputs, &benchmark->workload, true, why, sizeof why))
    return true;
  free(benchmark->inputs);
  benchmark->inputs = NULL;
  complain(benchmark->problem, why);
  return false;
}

static run_setup setup_of(const measured *benchmark, int arm) {
  return (run_setup){.variant = benchmark->arms[arm],
                     .isa = strcmp(benchmark->isa, "-") == 0 ? NULL : benchmark->isa,
                     .threads = benchmark->threads,
                     .problem = benchmark->problem};
}

/* One workspace for all, at the same address for both arms, its pages there before the clock runs. */
static bool make_workspace(process *process) {
  size_t most = 0;
  for (size_t n = 0; n < process->count; n++) {
    const measured *benchmark = &process->benchmarks[n];
    for (int arm = 0; arm < 2; arm++) {
      const run_setup setup = setup_of(benchmark, arm);
      const char *reason = runner_refusal(setup.variant, &benchmark->inputs->problem);
      if (reason) return complain(setup.variant->name, reason), false;
      const size_t bytes = runner_workspace_bytes(&setup, &benchmark->inputs->problem);
      if (bytes > most) most = bytes;
    }
  }
  if (most > memory_available_bytes()) return complain("gate-measure", "the workspace cannot be had"), false;
  most = (most / 4096 + 1) * 4096;
  process->workspace = aligned_alloc(4096, most);
  if (!process->workspace) return complain("gate-measure", "the workspace cannot be had"), false;
  memset(process->workspace, 0, most);
  return true;
}

static bool set_up(process *process, const gate_measurement *what) {
  const size_t count = what->word_count / FIELDS;
  if (count == 0 || count > GATE_MAX_BENCHMARKS || what->word_count % FIELDS != 0) {
    char why[80];
    snprintf(why, sizeof why, "takes six words for each of 1 to %d benchmarks", GATE_MAX_BENCHMARKS);
    return complain("gate-measure", why), false;
  }
  process->benchmarks = calloc(count, sizeof *process->benchmarks);
  if (!process->benchmarks) return complain("gate-measure", "out of memory"), false;
  process->count = count;
  process->quads = what->quads;
  process->seed = what->seed;
  if (!load(process, what)) return false;
  for (size_t n = 0; n < process->count; n++) {
    measured *benchmark = &process->benchmarks[n];
    benchmark->ratios = calloc(process->quads + 1, sizeof *benchmark->ratios);
    if (!benchmark->ratios) return complain("gate-measure", "out of memory"), false;
    if (!read_benchmark(process, benchmark, what->words + FIELDS * n) || !find_inputs(process, n))
      return false;
  }
  return make_workspace(process);
}

/* ---- measuring ---- */

/* Single threads stay on one processor; teams have them all. */
static void choose_processors(process *process) {
  sched_getaffinity(0, sizeof process->all, &process->all);
  process->one = process->all;
  const int count = CPU_COUNT(&process->all);
  int wanted = count > 0 ? (int)(draw(process) % (uint64_t)count) : 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &process->all) && wanted-- != 0) CPU_CLR(cpu, &process->one);
}

/* Processor time where one thread runs: that others took the processor away, for milliseconds at a time on a busy
 * machine, is not the kernel's doing. Of all threads of the process, so that none can be started unseen.
 * A team is timed by the wall: its work may be the same while its threads wait for each other. */
static double sample(process *process, measured *benchmark, int arm, int64_t iterations, bool checked) {
  const run_setup setup = setup_of(benchmark, arm);
  run_batch batch = {.inputs = benchmark->inputs,
                     .workspace = process->workspace,
                     .iterations = iterations,
                     .seed = draw(process)};
  run_elapsed elapsed;
  verdict verdict;
  inputs_poison_outputs(benchmark->inputs); /* always, so that no kernel can tell what is checked */
  const uint64_t checksum = checked ? inputs_checksum(benchmark->inputs) : 0;
  runner_time(&setup, &batch, &elapsed);
  if (checked && arm == 1 && verify_batch(&batch, NULL, setup.variant->traits, &verdict) && !verdict.passed)
    snprintf(benchmark->wrong, sizeof benchmark->wrong, "%.200s", verdict.problem);
  if ((!runner_restore(&batch, checksum) || batch.violation[0]) && arm == 1)
    snprintf(benchmark->wrong, sizeof benchmark->wrong, "%s", batch.violation);
  return benchmark->threads == 1 ? elapsed.cpu : elapsed.wall;
}

static void calibrate(process *process, measured *benchmark) {
  if (benchmark->iterations == 0) {
    const double wanted = benchmark->threads == 1 ? sample_seconds : team_sample_seconds;
    int64_t iterations = 1;
    double taken;
    while ((taken = sample(process, benchmark, 0, iterations, false)) < wanted)
      iterations = (int64_t)ceil((double)iterations * fmin(10, 1.3 * wanted / fmax(taken, 1e-9))) + 1;
    benchmark->iterations = iterations;
  }
  benchmark->seconds =
      sample(process, benchmark, 0, benchmark->iterations, false) / (double)benchmark->iterations;
  const double quad = gate_quad_seconds(benchmark->iterations, benchmark->seconds);
  benchmark->every = (size_t)fmin(fmax(1, round(quad / GATE_QUAD_SECONDS)), 8);
}

/* Each arm once before the clock: what ran before has left its own data in the caches. */
static double measure_quad(process *process, measured *benchmark) {
  static const int orders[2][QUAD] = {{0, 1, 1, 0}, {1, 0, 0, 1}};
  const int *order = orders[draw(process) & 1];
  double taken[2] = {0, 0};
  sample(process, benchmark, order[1], 1, false);
  sample(process, benchmark, order[0], 1, false);
  /* The last of each in the first quad is held to the reference. */
  for (int n = 0; n < QUAD; n++)
    taken[order[n]] += log(
        sample(process, benchmark, order[n], benchmark->iterations, benchmark->made == 0 && n >= QUAD / 2));
  return 0.5 * (taken[1] - taken[0]);
}

static void prepare(process *process, const measured *benchmark) {
  const cpu_set_t *set = benchmark->threads == 1 ? &process->one : &process->all;
  sched_setaffinity(0, sizeof *set, set);
}

static void measure(process *process) {
  const size_t count = process->count;
  size_t order[GATE_MAX_BENCHMARKS];
  for (size_t n = 0; n < count; n++) {
    order[n] = n;
    prepare(process, &process->benchmarks[n]);
    calibrate(process, &process->benchmarks[n]);
  }
  for (size_t quad = 0; quad < process->quads; quad++) {
    for (size_t n = count; n > 1; n--) {
      const size_t other = (size_t)(draw(process) % n), swapped = order[n - 1];
      order[n - 1] = order[other];
      order[other] = swapped;
    }
    for (size_t n = 0; n < count; n++) {
      measured *benchmark = &process->benchmarks[order[n]];
      if (quad % benchmark->every != 0) continue;
      prepare(process, benchmark);
      benchmark->ratios[benchmark->made++] = measure_quad(process, benchmark);
    }
  }
}

static void tear_down(process *process) {
  for (size_t n = 0; n < process->count; n++) {
    measured *benchmark = &process->benchmarks[n];
    for (size_t later = n + 1; later < process->count; later++)
      if (process->benchmarks[later].inputs == benchmark->inputs) process->benchmarks[later].inputs = NULL;
    if (benchmark->inputs) inputs_destroy(benchmark->inputs);
    free(benchmark->inputs);
    free(benchmark->ratios);
  }
  free(process->benchmarks);
  free(process->workspace);
  for (int arm = 0; arm < ARMS; arm++) variant_list_destroy(&process->lists[arm]);
}

int gate_measure(const gate_measurement *what) {
  process process = {.count = 0};
  const bool ready = set_up(&process, what);
  if (ready) {
    choose_processors(&process);
    measure(&process);
    for (size_t n = 0; n < process.count; n++) {
      const measured *benchmark = &process.benchmarks[n];
      const double median = benchmark->made ? statistics_median(benchmark->ratios, benchmark->made) : 0;
      printf("%zu %lld %.9g %.9g %s\n", n, (long long)benchmark->iterations, benchmark->seconds, median,
             benchmark->wrong);
    }
  }
  tear_down(&process);
  return ready ? GATE_PASS : GATE_UNUSABLE;
}
