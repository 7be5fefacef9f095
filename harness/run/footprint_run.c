/* What one run takes, each part by the means that is exact for it. The run is made twice: whatever held
 * one pattern before the first and another before the second keeps both only where nothing was written. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "footprint.h"
#include "heap_calls.h"
#include "runner.h"
#include "stack_paint.h"
#include "static_data.h"
#include "version1.h"

/* Stacks are painted and looked at so far down. */
enum { STACK_BYTES = 8 << 20 };

/* The workspace is looked at in words of an element's size: where threads share out work as they come, the
 * two runs leave different numbers, and a single byte of them would now and then agree with both patterns. */
enum { WORD_BYTES = 4 };

/* Two values that differ in every bit. */
static const unsigned char patterns[2] = {0x5a, 0xa5};

typedef struct measurement {
  run_setup setup;
  inputs inputs;
  attn_call call;
  guarded workspace;
  unsigned char *touched; /* a bit for each word of the workspace */
  unsigned char *stack;   /* of the thread that runs the variant */
  stack_paint *paints;    /* [threads] its own and those of its team */
  size_t *depths;         /* [threads] */
  footprint *footprint;
} measurement;

/* ---- what the kernel says ---- */

/* Bytes of a line such as "VmPeak:  3776 kB"; 0 when there is none. Nothing is allocated, which would change
 * the answer. */
static size_t kernel_figure(const char *path, const char *key) {
  static char text[8192];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  size_t used = 0;
  for (ssize_t got; used + 1 < sizeof text && (got = read(file, text + used, sizeof text - used - 1)) > 0;)
    used += (size_t)got;
  close(file);
  text[used] = '\0';
  const char *line = strstr(text, key);
  return line ? strtoul(line + strlen(key), NULL, 10) * 1024 : 0;
}

typedef struct kernel_view {
  size_t mapped, peak, anonymous;
} kernel_view;

static kernel_view look(void) {
  return (kernel_view){kernel_figure("/proc/self/status", "VmSize:"),
                       kernel_figure("/proc/self/status", "VmPeak:"),
                       kernel_figure("/proc/self/smaps_rollup", "Anonymous:")};
}

/* The peak cannot be reset; but with as much mapped as ever was, any mapping raises it. */
static kernel_view look_with_the_peak_reached(void) {
  kernel_view before = look();
  if (before.peak > before.mapped)
    (void)mmap(NULL, before.peak - before.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
               0);
  return look();
}

static size_t less(size_t a, size_t b) { return a > b ? a - b : 0; }

/* Of what is still mapped, what holds memory; what was mapped and given back, whole: which of its pages
 * were used is not known any more. */
static size_t hidden_bytes(const kernel_view *before, const kernel_view *after) {
  const size_t kept = less(after->mapped, before->mapped), held = less(after->anonymous, before->anonymous);
  const size_t highest = less(after->peak, before->peak);
  return less(highest, kept) + (held < kept ? held : kept);
}

/* ---- stacks ---- */

/* A team that has run before keeps its threads: those that the variant will get. */
static void paint_team(measurement *measurement, unsigned char pattern) {
#pragma omp parallel num_threads(measurement->setup.threads)
  {
    stack_paint *paint = &measurement->paints[omp_get_thread_num()];
    if (omp_get_thread_num() > 0 && paint->low) stack_paint_below(paint, pattern);
  }
}

static void find_team(measurement *measurement) {
  /* Static data are counted by themselves: what it takes to use them is not hidden. */
#pragma omp parallel num_threads(measurement->setup.threads)
  static_data_touch(variant_code(measurement->setup.variant));
#pragma omp parallel num_threads(measurement->setup.threads)
  {
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    if (omp_get_thread_num() > 0 && pthread_getattr_np(pthread_self(), &attributes) == 0) {
      if (pthread_attr_getstack(&attributes, &low, &bytes) == 0)
        measurement->paints[omp_get_thread_num()].low =
            (unsigned char *)low + (bytes > STACK_BYTES ? bytes - STACK_BYTES : 0);
      pthread_attr_destroy(&attributes);
    }
  }
}

static void keep_deeper(size_t *depth, size_t found) {
  if (found > *depth) *depth = found;
}

/* Nothing else may be called between paint and run, or between run and look: it would use the same stack. */
__attribute__((noinline)) static void run_on_paint(measurement *measurement, unsigned char pattern) {
  stack_paint_below(&measurement->paints[0], pattern);
  runner_invoke(&measurement->call);
  const size_t depth = stack_paint_depth(&measurement->paints[0], pattern);
  keep_deeper(&measurement->depths[0], depth);
}

static void look_at_team(measurement *measurement, unsigned char pattern) {
  for (int n = 1; n < measurement->setup.threads; n++)
    if (measurement->paints[n].top)
      keep_deeper(&measurement->depths[n], stack_paint_depth(&measurement->paints[n], pattern));
}

/* ---- the two runs ---- */

/* Bytes of word n of the workspace: the last may be shorter. */
static size_t word_bytes(const guarded *workspace, size_t n) {
  const size_t left = workspace->bytes - n * WORD_BYTES;
  return left < WORD_BYTES ? left : WORD_BYTES;
}

static void mark_touched(measurement *measurement, unsigned char pattern) {
  const guarded *workspace = &measurement->workspace;
  unsigned char untouched[WORD_BYTES];
  memset(untouched, pattern, sizeof untouched);
  for (size_t n = 0; n * WORD_BYTES < workspace->bytes; n++)
    if (memcmp(workspace->data + n * WORD_BYTES, untouched, word_bytes(workspace, n)) != 0)
      measurement->touched[n / 8] |= (unsigned char)(1u << n % 8);
}

static size_t touched_bytes(const measurement *measurement) {
  const guarded *workspace = &measurement->workspace;
  size_t bytes = 0;
  for (size_t n = 0; n * WORD_BYTES < workspace->bytes; n++)
    if (measurement->touched[n / 8] >> n % 8 & 1) bytes += word_bytes(workspace, n);
  return bytes;
}

static void count_calls(footprint *footprint, const heap_counts *verification, bool first_run) {
  /* As runner_run has it: libraries may set themselves up in the first run. */
  const heap_calls *calls =
      first_run || verification->own.count > 0 ? &verification->own : &verification->library;
  if (footprint->heap_calls > 0 || calls->count == 0) return;
  footprint->heap_calls = calls->count;
  snprintf(footprint->heap_function, sizeof footprint->heap_function, "%s", calls->first);
}

static void *make_runs(void *context) {
  measurement *measurement = context;
  footprint *footprint = measurement->footprint;
  measurement->paints[0].low = measurement->stack;
  find_team(measurement);
  paint_team(measurement, patterns[0]);
  memset(measurement->workspace.data, patterns[0], measurement->workspace.bytes);
  inputs_poison_outputs(&measurement->inputs);
  const kernel_view before = look_with_the_peak_reached();
  for (int n = 0; n < 2; n++) {
    memset(measurement->workspace.data, patterns[n], measurement->workspace.bytes);
    paint_team(measurement, patterns[n]);
    heap_calls_start(variant_code(measurement->setup.variant));
    run_on_paint(measurement, patterns[n]);
    const heap_counts verification = heap_calls_stop();
    count_calls(footprint, &verification, n == 0);
    look_at_team(measurement, patterns[n]);
    mark_touched(measurement, patterns[n]);
  }
  const kernel_view after = look();
  footprint->hidden_bytes = hidden_bytes(&before, &after);
  footprint->workspace_touched_bytes = touched_bytes(measurement);
  for (int n = 0; n < measurement->setup.threads; n++) footprint->stack_bytes += measurement->depths[n];
  return NULL;
}

static bool run_on_own_stack(measurement *measurement, char *why, size_t why_size) {
  /* Painted to the end, so all its pages are there. Below it lies a page that must not be reached. */
  const size_t guard = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char *mapping =
      mmap(NULL, STACK_BYTES + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  pthread_attr_t attributes;
  pthread_t thread;
  if (mapping == MAP_FAILED || mprotect(mapping, guard, PROT_NONE) != 0 ||
      pthread_attr_init(&attributes) != 0) {
    snprintf(why, why_size, "no memory for a stack");
    return false;
  }
  measurement->stack = mapping + guard;
  memset(measurement->stack, patterns[0], STACK_BYTES);
  const bool ran = pthread_attr_setstack(&attributes, measurement->stack, STACK_BYTES) == 0 &&
                   pthread_create(&thread, &attributes, make_runs, measurement) == 0 &&
                   pthread_join(thread, NULL) == 0;
  pthread_attr_destroy(&attributes);
  if (!ran) snprintf(why, why_size, "cannot start a thread");
  return ran;
}

bool footprint_of_run(const bench_point *point, int threads, const char *isa, footprint *footprint, char *why,
                      size_t why_size) {
  /* A thread's first call of malloc would map an arena of its own. */
  mallopt(M_ARENA_MAX, 1);
  *footprint = (struct footprint){0};
  measurement measurement = {
      .setup = {.variant = point->variant, .threads = threads, .isa = point_isa(point, isa)},
      .footprint = footprint};
  if (!static_data_bytes(variant_code(point->variant), threads, &footprint->static_bytes, why, why_size))
    return false;
  if (!inputs_create(&measurement.inputs, &point->workload, true, why, why_size)) return false;
  const attn_problem *problem = &measurement.inputs.problem;
  const size_t bytes = runner_workspace_bytes(&measurement.setup, problem);
  const size_t marks = bytes / WORD_BYTES / 8 + 1;
  bool good = guarded_create(&measurement.workspace, bytes, 64, why, why_size);
  if (good) {
    measurement.touched = calloc(marks, 1);
    measurement.paints = calloc((size_t)threads, sizeof *measurement.paints);
    measurement.depths = calloc((size_t)threads, sizeof *measurement.depths);
    good = measurement.touched && measurement.paints && measurement.depths;
    if (!good) snprintf(why, why_size, "no memory to note what is touched");
  }
  measurement.call =
      runner_call(&measurement.setup, problem, &measurement.inputs.tensors, measurement.workspace.data);
  if (good) memset(measurement.touched, 0, marks); /* its pages are there before the kernel is asked */
  good = good && run_on_own_stack(&measurement, why, why_size);
  free(measurement.touched);
  free(measurement.paints);
  free(measurement.depths);
  guarded_destroy(&measurement.workspace);
  inputs_destroy(&measurement.inputs);
  return good;
}
