/* See held.h. */
#include "held.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "supervisor.h"
#include "thread_watch.h"
#include "version1.h"

static void show_lists(held *held) {
  const attn_problem *p = held->problem;
  const size_t bytes = (size_t)p->batch * sizeof(int64_t);
  if (!p->offsets && !p->key_lengths && !p->query_lengths) return;
  held->lists = malloc(3 * bytes + 1);
  if (!held->lists) return;
  if (p->offsets) held->shown.offsets = memcpy(held->lists, p->offsets, bytes);
  if (p->key_lengths) held->shown.key_lengths = memcpy(held->lists + p->batch, p->key_lengths, bytes);
  if (p->query_lengths)
    held->shown.query_lengths = memcpy(held->lists + 2 * p->batch, p->query_lengths, bytes);
}

static bool is_as_shown(const held *held) {
  const attn_problem *p = held->problem;
  const size_t bytes = (size_t)p->batch * sizeof(int64_t);
  attn_problem expected;
  memcpy(&expected, p, sizeof expected);
  if (held->lists && p->offsets) expected.offsets = held->lists;
  if (held->lists && p->key_lengths) expected.key_lengths = held->lists + p->batch;
  if (held->lists && p->query_lengths) expected.query_lengths = held->lists + 2 * p->batch;
  /* Both were copied whole, padding and all. */
  return memcmp((const char *)&expected, (const char *)&held->shown, sizeof expected) == 0 &&
         (!p->offsets || memcmp(expected.offsets, p->offsets, bytes) == 0) &&
         (!p->key_lengths || memcmp(expected.key_lengths, p->key_lengths, bytes) == 0) &&
         (!p->query_lengths || memcmp(expected.query_lengths, p->query_lengths, bytes) == 0);
}

static void note_openmp(int settings[3]) {
  settings[0] = omp_get_max_threads();
  settings[1] = omp_get_dynamic();
  settings[2] = omp_get_max_active_levels();
}

/* A kernel may set these for itself; nobody else should have them. */
static void put_openmp_back(const int before[3]) {
  int now[3];
  note_openmp(now);
  if (now[0] != before[0]) omp_set_num_threads(before[0]);
  if (now[1] != before[1]) omp_set_dynamic(before[1]);
  if (now[2] != before[2]) omp_set_max_active_levels(before[2]);
}

/* Of the process, by a run. */
static atomic_bool copied;

static void note_copy(void) { copied = true; }

__attribute__((constructor)) static void watch_copies(void) { pthread_atfork(note_copy, NULL, NULL); }

static void note_output(struct stat *status, int descriptor) {
  if (fstat(descriptor, status) != 0) status->st_ino = 0;
}

held held_before(void) {
  held before = {.mode = float_mode_now()};
  for (int n = 0; n < HELD_OUTPUTS; n++) note_output(&before.outputs[n], STDOUT_FILENO + n);
  copied = false;
  return before;
}

void held_begin(held *held, const run_setup *setup, const inputs *in) {
  const attn_problem *problem = &in->problem;
  held->setup = setup;
  held->problem = problem;
  held->lists = NULL;
  memcpy(&held->shown, problem, sizeof held->shown);
  show_lists(held);
  note_openmp(held->openmp);
  threads_begin_run(variant_code(setup->variant));
  run_enter(setup, &in->workload);
}

void held_say_left(int left, run_outcome *outcome) {
  if (left == 0) return;
  supervisor_abandon("leaves a thread running"); /* that may write to what others have by then */
  run_violate(outcome, "leaves %s running", left == 1 ? "a thread" : "threads");
}

/* ---- what later runs cannot have back, or would be ended by ---- */

static void check_outputs(const held *held, run_outcome *outcome) {
  for (int n = 0; n < HELD_OUTPUTS; n++) {
    struct stat now;
    note_output(&now, STDOUT_FILENO + n);
    if (now.st_ino == held->outputs[n].st_ino && now.st_dev == held->outputs[n].st_dev) continue;
    supervisor_abandon(n == 0 ? "closes or replaces stdout" : "closes or replaces stderr");
    run_violate(outcome, "closes or replaces %s", n == 0 ? "stdout" : "stderr");
  }
}

static void stop_timer(run_outcome *outcome) {
  static const struct itimerval none;
  struct itimerval now;
  if (getitimer(ITIMER_REAL, &now) != 0 || (now.it_value.tv_sec == 0 && now.it_value.tv_usec == 0)) return;
  setitimer(ITIMER_REAL, &none, NULL);
  run_violate(outcome, "leaves %s", "a timer set");
}

/* Whoever called the kernel goes on in the floating-point mode that it left, and whoever uses OpenMP next in the one that
 * it left there. */
void held_end(held *held, run_outcome *outcome) {
  const run_setup *setup = held->setup;
  supervisor_leave();
  put_openmp_back(held->openmp);
  const char *changed = float_mode_put_back(&held->mode);
  if (changed) run_violate(outcome, "leaves %s", changed);
  changed = float_mode_put_back_in_team(&held->mode, setup->threads);
  if (changed) run_violate(outcome, "leaves %s on other threads", changed);
  held_say_left(threads_end_run(), outcome);
  check_outputs(held, outcome);
  stop_timer(outcome);
  if (copied) run_violate(outcome, "copies its %s", "process (fork)");
  if (!is_as_shown(held)) run_violate(outcome, "changes its %s", "problem");
  free(held->lists);
}

void held_check_buffers(inputs *in, const guarded *workspace, uint64_t checksum, run_outcome *outcome) {
  bool intact = true;
  if (workspace && !guarded_intact(workspace)) run_violate(outcome, "writes beyond %s", "its workspace");
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (guarded_intact(&in->buffers[id])) continue;
    run_violate(outcome, "writes beyond %s", tensor_table[id].words);
    intact = false;
  }
  if (inputs_checksum(in) != checksum) {
    run_violate(outcome, "changes its %s", "inputs");
    intact = false;
  }
  if (!intact) inputs_restore(in);
}
