/* Each variant is right, full attention with nothing optional but lengths, and then does something to the process or to
 * what others have that it may not; those at the beginning of the table do what looks like it and is allowed. */
#define _GNU_SOURCE
#include <attention.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

/* ---- the kernel ---- */

static const float *row_of(const void *data, attn_layout s, int64_t b, int64_t h, int64_t i) {
  return (const float *)data + b * s.batch + h * s.head + i * s.position;
}

static void solve_row(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i) {
  const int64_t kv = h / (p->query_heads / p->kv_heads);
  const attn_range keys = attn_visible_keys(p, b, i);
  const float *q = row_of(t->query, p->query, b, h, i);
  float *o = (float *)(uintptr_t)row_of(t->output, p->output, b, h, i);
  double sum = 0, top = -INFINITY;
  for (int64_t e = 0; e < p->value_dim; e++) o[e] = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t j = keys.first; j < keys.end; j++) {
      const float *k = row_of(t->key, p->key, b, kv, j), *v = row_of(t->value, p->value, b, kv, j);
      double score = 0;
      for (int64_t d = 0; d < p->head_dim; d++) score += (double)q[d] * k[d];
      score *= p->scale;
      if (pass == 0) {
        top = isnan(score) ? score : fmax(top, score);
        continue;
      }
      const double weight = exp(score - top);
      sum += weight;
      for (int64_t e = 0; e < p->value_dim; e++)
        o[e] = (float)(o[e] + (sum > 0 ? weight / sum : sum) * (v[e] - (double)o[e]));
    }
}

static void solve(const attn_call *call) {
  const attn_problem *p = call->problem;
  for (int64_t row = 0; row < p->batch * p->query_heads * p->query_length; row++)
    solve_row(p, &call->tensors, row / p->query_length / p->query_heads,
              row / p->query_length % p->query_heads, row % p->query_length);
}

#define DOES(what) static void what(const attn_call *call)
#define UNUSED() (void)call

/* ---- threads ---- */

static void *do_nothing(void *argument) { return argument; }

static void *sleep_for_long(void *argument) {
  sleep(600);
  return argument;
}

static int sleep_for_long_too(void *argument) {
  (void)argument;
  sleep(600);
  return 0;
}

/* So many that exist at a time. */
static void *wait_for_all(void *barrier) {
  pthread_barrier_wait(barrier);
  return NULL;
}

static void start_and_join(int count) {
  pthread_t started[64];
  pthread_barrier_t all;
  pthread_barrier_init(&all, NULL, (unsigned)count + 1);
  for (int n = 0; n < count; n++) pthread_create(&started[n], NULL, wait_for_all, &all);
  pthread_barrier_wait(&all);
  for (int n = 0; n < count; n++) pthread_join(started[n], NULL);
  pthread_barrier_destroy(&all);
}

static void start_team(int count) {
  volatile int sum = 0;
#pragma omp parallel num_threads(count)
#pragma omp atomic
  sum++;
}

/* Without the C library, which waits for those that it started. */
static int sleep_as_a_task(void *unused) {
  (void)unused;
  for (;;) syscall(SYS_ppoll, NULL, 0UL, NULL, NULL, 0UL);
  return 0;
}

DOES(nothing) { UNUSED(); }

DOES(join_threads) { start_and_join(call->threads - 1); }

DOES(team) { start_team(call->threads); }

DOES(team_then_threads) {
  start_team(call->threads);
  start_and_join(call->threads - 1);
  start_team(call->threads);
}

DOES(teams_of_all_sizes) {
  for (int n = 0; n < 20; n++)
    for (int size = call->threads; size > 0; size--) start_team(size);
}

DOES(nest_within) {
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(call->threads / 2 > 0 ? call->threads / 2 : 1)
  start_team(call->threads > 1 ? 2 : 1);
  omp_set_max_active_levels(levels);
}

DOES(set_openmp) {
  omp_set_num_threads(call->threads);
  omp_set_dynamic(1);
}

DOES(start_too_many) { start_and_join(call->threads); }

DOES(team_too_large) { start_team(2 * call->threads); }

DOES(nest_too_many) {
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(call->threads + 1)
  start_team(call->threads + 1);
}

DOES(start_in_team) {
#pragma omp parallel num_threads(call->threads)
  {
    pthread_t started;
    if (pthread_create(&started, NULL, do_nothing, NULL) == 0) pthread_join(started, NULL);
  }
}

DOES(leave_thread) {
  UNUSED();
  pthread_t started;
  if (pthread_create(&started, NULL, sleep_for_long, NULL) == 0) pthread_detach(started);
}

/* A pool that is made once. */
DOES(leave_pool) {
  static int is_made;
  if (!is_made) leave_thread(call);
  is_made = 1;
}

DOES(leave_c11_thread) {
  UNUSED();
  thrd_t started;
  if (thrd_create(&started, sleep_for_long_too, NULL) == thrd_success) thrd_detach(started);
}

DOES(leave_task) {
  UNUSED();
  enum {
    BYTES = 1 << 16,
    THREAD = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM
  };
  static int is_started;
  if (is_started) return;
  static char stack[BYTES] __attribute__((aligned(64)));
  clone(sleep_as_a_task, stack + BYTES, THREAD, NULL);
  is_started = 1;
}

/* ---- the floating-point mode ---- */

static void flush_denormals(void) {
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() | 0x8040);
#else
  fesetround(FE_UPWARD);
#endif
}

DOES(flush) {
  UNUSED();
  flush_denormals();
}

DOES(round_up) {
  UNUSED();
  fesetround(FE_UPWARD);
}

DOES(trap) {
  UNUSED();
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_UNDERFLOW);
}

DOES(flush_in_team) {
#pragma omp parallel num_threads(call->threads)
  if (omp_get_thread_num() > 0) flush_denormals();
}

DOES(round_up_in_team) {
#pragma omp parallel num_threads(call->threads)
  if (omp_get_thread_num() > 0) fesetround(FE_UPWARD);
}

/* ---- the process ---- */

DOES(print) {
  UNUSED();
  printf("row\t0 'done'");
}

DOES(print_error) {
  UNUSED();
  fprintf(stderr, "a warning\n");
}

DOES(write_by_itself) {
  UNUSED();
  if (write(STDOUT_FILENO, "written", 7) != 7) abort();
}

DOES(print_once) {
  UNUSED();
  static int is_said;
  if (!is_said++ && write(STDOUT_FILENO, "hello", 5) != 5) abort();
}

static void *volatile taken;

DOES(take_once) {
  UNUSED();
  if (!taken) taken = malloc(100);
}

DOES(close_stdout) {
  UNUSED();
  close(STDOUT_FILENO);
}

DOES(change_folder) {
  UNUSED();
  if (chdir("/") != 0) abort();
}

DOES(change_umask) {
  UNUSED();
  umask(0);
}

DOES(lower_priority) {
  UNUSED();
  if (nice(1) == -1) abort();
}

DOES(fork_once) {
  UNUSED();
  const pid_t copy = fork();
  if (copy == 0) _exit(0);
  if (waitpid(copy, NULL, 0) != copy) abort();
}

static void handle(int number) { (void)number; }

DOES(handle_segv) {
  UNUSED();
  signal(SIGSEGV, handle);
}

DOES(ignore_realtime) {
  UNUSED();
  signal(SIGRTMIN + 3, SIG_IGN);
}

DOES(block_signals) {
  UNUSED();
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}

DOES(take_signal_stack) {
  UNUSED();
  static char stack[1 << 16];
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
}

DOES(set_environment) {
  UNUSED();
  setenv("MKL_NUM_THREADS", "1", 1);
}

DOES(edit_environment) {
  UNUSED();
  char *value = getenv("ATTN_TEST_VALUE");
  if (value && *value) value[0] = 'X';
}

DOES(set_locale) {
  UNUSED();
  setlocale(LC_NUMERIC, "C.UTF-8");
}

DOES(open_file) {
  UNUSED();
  if (open("/dev/null", O_RDONLY) < 0) abort();
}

/* The one that the environment names. */
DOES(close_file) {
  UNUSED();
  const char *number = getenv("ATTN_TEST_DESCRIPTOR");
  if (number) close((int)strtol(number, NULL, 10));
}

DOES(set_timer) {
  UNUSED();
  alarm(600);
}

DOES(set_limit) {
  UNUSED();
  struct rlimit limit;
  getrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = limit.rlim_cur == 0 ? limit.rlim_max : 0;
  setrlimit(RLIMIT_CORE, &limit);
}

DOES(bind_thread) {
  UNUSED();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof one, &one);
}

/* ---- what others have too ---- */

static bool has_rows(const attn_call *call) {
  const attn_problem *p = call->problem;
  return p->batch * p->query_heads * p->query_length * p->key_length * p->value_dim > 0;
}

DOES(change_key) {
  if (has_rows(call)) ((float *)(uintptr_t)call->tensors.key)[0] += 1;
}

/* After so many runs, whatever the value is; for a test to set. */
int runs_before_change = -1;

DOES(change_value_once) {
  if (has_rows(call) && runs_before_change-- == 0) *(uint32_t *)(uintptr_t)call->tensors.value ^= 1;
}

/* What stands before the output is watched, and nothing else. */
DOES(write_before_output) {
  if (has_rows(call)) ((float *)call->tensors.output)[-1] = 0;
}

DOES(write_before_key) {
  if (has_rows(call)) ((float *)(uintptr_t)call->tensors.key)[-1] = 0;
}

DOES(change_problem) { ((attn_problem *)(uintptr_t)call->problem)->scale *= 2; }

DOES(change_lengths) {
  int64_t *lengths = (int64_t *)(uintptr_t)call->problem->key_lengths;
  if (lengths && call->problem->batch > 0) lengths[0] = 0;
}

DOES(wrong_when_odd) {
  if (has_rows(call) && call->isa && strcmp(call->isa, "odd") == 0) ((float *)call->tensors.output)[0] += 1;
}

/* ---- workspaces ---- */

static size_t two_to_the_50(const attn_call *call) {
  (void)call;
  return (size_t)1 << 50;
}

static size_t minus_one(const attn_call *call) {
  (void)call;
  return (size_t)-1;
}

static size_t more_each_time(const attn_call *call) {
  (void)call;
  static size_t asked;
  return 64 * ++asked;
}

static size_t has_run;

static size_t other_after_run(const attn_call *call) {
  (void)call;
  return 64 + 64 * has_run;
}

DOES(remember_run) {
  UNUSED();
  has_run = 1;
}

/* ---- the table ---- */

/* A variant and what it does after its work. */
typedef struct doing {
  attn_variant variant;
  void (*act)(const attn_call *call);
} doing;

static void run(const attn_call *call) {
  if (call->problem->query_heads > 0) solve(call);
  ((const doing *)(const void *)call->variant)->act(call);
}

#define VARIANT(called, what, workspace)                                                                     \
  {                                                                                                          \
    {.name = #called,                                                                                        \
     .summary = "right, and does this",                                                                      \
     .features = ATTN_KEY_LENGTHS,                                                                           \
     .types = 1u << ATTN_FLOAT32,                                                                            \
     .time_exponent = 2,                                                                                     \
     .workspace_size = (workspace),                                                                          \
     .run = run},                                                                                            \
        what                                                                                                 \
  }
#define DOING(what) VARIANT(what, what, NULL)
#define ASKING(what, does) VARIANT(what, does, what)

static const doing doings[] = {DOING(nothing),
                               DOING(join_threads),
                               DOING(team),
                               DOING(team_then_threads),
                               DOING(teams_of_all_sizes),
                               DOING(nest_within),
                               DOING(set_openmp),
                               DOING(start_too_many),
                               DOING(team_too_large),
                               DOING(nest_too_many),
                               DOING(start_in_team),
                               DOING(leave_thread),
                               DOING(leave_pool),
                               DOING(leave_c11_thread),
                               DOING(leave_task),
                               DOING(flush),
                               DOING(round_up),
                               DOING(trap),
                               DOING(flush_in_team),
                               DOING(round_up_in_team),
                               DOING(print),
                               DOING(print_error),
                               DOING(write_by_itself),
                               DOING(print_once),
                               DOING(take_once),
                               DOING(close_stdout),
                               DOING(change_folder),
                               DOING(change_umask),
                               DOING(lower_priority),
                               DOING(fork_once),
                               DOING(handle_segv),
                               DOING(ignore_realtime),
                               DOING(block_signals),
                               DOING(take_signal_stack),
                               DOING(set_environment),
                               DOING(edit_environment),
                               DOING(set_locale),
                               DOING(open_file),
                               DOING(close_file),
                               DOING(set_timer),
                               DOING(set_limit),
                               DOING(bind_thread),
                               DOING(change_key),
                               DOING(change_value_once),
                               DOING(write_before_output),
                               DOING(write_before_key),
                               DOING(change_problem),
                               DOING(change_lengths),
                               DOING(wrong_when_odd),
                               ASKING(two_to_the_50, nothing),
                               ASKING(minus_one, nothing),
                               ASKING(more_each_time, nothing),
                               ASKING(other_after_run, remember_run)};
enum { COUNT = sizeof doings / sizeof *doings };

static const attn_variant *variants[COUNT];

__attribute__((constructor)) static void list_variants(void) {
  for (int n = 0; n < COUNT; n++) variants[n] = &doings[n].variant;
}

static const char *const *instruction_sets(void) {
  static const char *const names[] = {"usual", "odd", NULL};
  return names;
}

const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, COUNT, variants, instruction_sets};
