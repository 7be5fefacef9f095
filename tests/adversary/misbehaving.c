/* Kernels whose answers are right and whose conduct is not: they end the program, or never end, or leave behind what
 * others trip over. The last one of the table, neighbour, does nothing of the kind: it stands for all that comes
 * after one that did. */
#define _GNU_SOURCE
#include "kernel.h"

#include <fenv.h>
#include <fcntl.h>
#include <malloc.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* What is done beside solving. */
#define ALSO(word, ...)                                                                                      \
  static void word(const attn_call *call) {                                                                  \
    solve(call);                                                                                             \
    __VA_ARGS__;                                                                                             \
  }

/* Where the compiler cannot see that nothing comes of it. */
static void *volatile kept;
static volatile int zero;

/* ---- ends: the process ---- */

ALSO(ends_by_exit, exit(0))
ALSO(ends_by_quiet_exit, _exit(0))
ALSO(ends_by_quick_exit, quick_exit(0))
ALSO(ends_by_system_call, syscall(SYS_exit_group, 0))
ALSO(ends_by_exit_of_1, exit(1))
ALSO(ends_by_abort, abort())
ALSO(ends_by_bad_address, *(volatile int *)(uintptr_t)(8 + zero) = 1)
ALSO(ends_by_division, zero = 100 / zero)
ALSO(ends_by_trap, __builtin_trap())
ALSO(ends_by_sigkill, raise(SIGKILL))
ALSO(ends_by_sigterm, raise(SIGTERM))
ALSO(ends_by_sigint, raise(SIGINT))
ALSO(ends_by_sighup, raise(SIGHUP))
ALSO(ends_by_sigpipe, raise(SIGPIPE))
ALSO(ends_by_another_program, execl("/bin/true", "true", (char *)NULL))
ALSO(ends_its_thread, pthread_exit(NULL))

__attribute__((noinline)) static int deeper(const volatile int *above) {
  volatile int frame[1024];
  frame[0] = *above + 1;
  if (frame[0] < zero) return 0; /* never */
  return deeper(frame) + frame[0];
}

ALSO(ends_by_recursion, int from = 0; zero += deeper(&from) < 0)

static void ends_on_a_worker(const attn_call *call) {
  solve(call);
#pragma omp parallel num_threads(call->threads)
  if (omp_get_thread_num() == omp_get_num_threads() - 1) *(volatile int *)(uintptr_t)(8 + zero) = 1;
}

static void ends_at_the_tenth_call(const attn_call *call) {
  static int calls;
  solve(call);
  if (++calls == 10) _exit(0);
}

/* Back into a call that has returned. */
static void ends_by_longjmp(const attn_call *call) {
  static jmp_buf before;
  static volatile int calls;
  calls = calls + 1;
  if (calls == 2) longjmp(before, 1);
  if (calls == 1 && setjmp(before) != 0) calls = 3;
  solve(call);
}

/* A wrong answer, and an end of the process that says all is well. */
static void leave_well(void) { _exit(0); }

static bool leaves_well;
__attribute__((destructor)) static void when_unloaded(void) {
  if (leaves_well) leave_well();
}

static void spoil(const attn_call *call) {
  float *o = call->tensors.output;
  solve(call);
  if (rows_in(call->problem) > 0 && call->problem->value_dim > 0) *o += 1;
}

static void ends_well_in_its_destructor(const attn_call *call) {
  leaves_well = true;
  spoil(call);
}

static void ends_well_at_exit(const attn_call *call) {
  static bool registered;
  if (!registered && atexit(leave_well) == 0) registered = true;
  spoil(call);
}

/* ---- asked: in the functions beside run ---- */

static size_t asked_size_exits(const attn_call *call) {
  (void)call;
  exit(0);
}

static const char *asked_support_exits(const attn_call *call) {
  (void)call;
  exit(0);
}

static size_t asked_size_of_2_to_50(const attn_call *call) {
  (void)call;
  return (size_t)1 << 50;
}

static size_t asked_size_negative(const attn_call *call) {
  (void)call;
  return (size_t)-64;
}

static size_t asked_size_that_changes(const attn_call *call) {
  static size_t calls;
  (void)call;
  return 64 + 64 * (calls++ % 2);
}

static size_t asked_size_hangs(const attn_call *call) {
  (void)call;
  while (!zero) usleep(1000);
  return 0;
}

/* ---- hangs ---- */

ALSO(hangs_in_a_loop, while (!zero){})
ALSO(hangs_asleep, while (!zero) pause())
ALSO(hangs_stopped, raise(SIGSTOP))
ALSO(hangs_at_a_lock, static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&lock);
     pthread_mutex_lock(&lock))

static void hangs_on_a_worker(const attn_call *call) {
  solve(call);
#pragma omp parallel num_threads(call->threads)
  while (omp_get_thread_num() == call->threads - 1 && !zero) {
  }
}

/* ---- later: what goes on after the call ---- */

static void *write_later(void *to) {
  usleep(20000);
  for (int n = 0; n < 1000; n++) {
    *(volatile float *)to = 7;
    usleep(1000);
  }
  return NULL;
}

static void *spin_later(void *nothing) {
  while (!zero) {
  }
  return nothing;
}

static void start_thread(void *(*what)(void *), void *with) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, what, with) == 0) pthread_detach(thread);
}

ALSO(later_thread_writes, start_thread(write_later, call->tensors.output))
ALSO(later_thread_changes_inputs, start_thread(write_later, (void *)(uintptr_t)call->tensors.value))
ALSO(later_thread_spins, static bool begun; if (!begun) start_thread(spin_later, NULL); begun = true)
ALSO(later_alarm, ualarm(3000, 0))

/* A child that holds all that the process holds, for some seconds. */
static void later_child(const attn_call *call) {
  static bool begun;
  solve(call);
  if (begun) return;
  begun = true;
  if (fork() == 0) {
    sleep(5);
    _exit(0);
  }
}

/* A child that goes on as if it were the program. */
static void later_child_goes_on(const attn_call *call) {
  static bool begun;
  if (!begun) {
    begun = fork() >= 0;
  }
  solve(call);
}

/* ---- stdio: what belongs to the program's reader ---- */

ALSO(stdio_writes_out, if (write(STDOUT_FILENO, "passed\n", 7) < 0) abort())
ALSO(stdio_writes_err, if (write(STDERR_FILENO, "a note\n", 7) < 0) abort())
ALSO(stdio_prints, puts("1 variant, 1 cases, 0 failed, 0.1 s"))
ALSO(stdio_closes_out, close(STDOUT_FILENO))
ALSO(stdio_closes_err, close(STDERR_FILENO))
ALSO(stdio_closes_all, syscall(SYS_close_range, 3u, ~0u, 0))
ALSO(stdio_replaces_out, int null = open("/dev/null", O_WRONLY); dup2(null, STDOUT_FILENO); close(null))

/* ---- setting: what the whole process has one of ---- */

ALSO(setting_folder, if (chdir("/") != 0) abort())
ALSO(setting_environment, setenv("ADVERSARY", "was here", 1))
ALSO(setting_environment_gone, unsetenv("PATH"))
ALSO(setting_signal_handler, signal(SIGUSR1, SIG_IGN))
ALSO(setting_crash_handler, signal(SIGSEGV, SIG_IGN))
ALSO(setting_signal_mask, sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, NULL))
ALSO(setting_file_mask, umask(0777))
ALSO(setting_processors, cpu_set_t one; CPU_ZERO(&one); CPU_SET(sched_getcpu(), &one);
     sched_setaffinity(0, sizeof one, &one))
ALSO(setting_priority, if (nice(1) == -1) return )
ALSO(setting_limit, struct rlimit none = {0, 0}; setrlimit(RLIMIT_CORE, &none);
     none.rlim_cur = none.rlim_max = 32; setrlimit(RLIMIT_NOFILE, &none))

/* ---- mode: of the arithmetic ---- */

static void flush_denormals(void) {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  __asm__ volatile("msr fpcr, %0" : : "r"(mode | (UINT64_C(1) << 24)));
#endif
}

ALSO(mode_flushes, flush_denormals())
ALSO(mode_rounds_up, fesetround(FE_UPWARD))

static void mode_flushes_on_workers(const attn_call *call) {
  solve(call);
#pragma omp parallel num_threads(call->threads)
  if (omp_get_thread_num() > 0) flush_denormals();
}

static void mode_rounds_up_on_workers(const attn_call *call) {
  solve(call);
#pragma omp parallel num_threads(call->threads)
  if (omp_get_thread_num() > 0) fesetround(FE_UPWARD);
}

#if defined(__x86_64__)
ALSO(mode_traps, _mm_setcsr(_mm_getcsr() & ~0x0200u)) /* division by zero is SIGFPE from now on */
ALSO(mode_of_the_x87, unsigned short word; __asm__ volatile("fnstcw %0"
                                                            : "=m"(word));
     word = (unsigned short)(word & ~0x0300); __asm__ volatile("fldcw %0"
                                                               :
                                                               : "m"(word)))
#endif

/* ---- writes: beside what it was given, into what is not its own ---- */

static void add_to(const void *to, int64_t at, bool there) {
  if (there) ((float *)(uintptr_t)to)[at] += 1;
}

static int64_t keys_in(const attn_problem *p) { return p->batch * p->kv_heads * p->key_length; }

ALSO(writes_queries, add_to(call->tensors.query, 0, rows_in(call->problem) > 0))
ALSO(writes_keys, add_to(call->tensors.key, 0, keys_in(call->problem) > 0))
ALSO(writes_values,
     add_to(call->tensors.value, 0, keys_in(call->problem) > 0 && call->problem->value_dim > 0))
ALSO(writes_behind_output,
     add_to(call->tensors.output, rows_in(call->problem) * call->problem->value_dim, true))
ALSO(writes_before_output, add_to(call->tensors.output, -1, true))
ALSO(writes_far_before_output, add_to(call->tensors.output, -1025, true))
ALSO(writes_behind_workspace, add_to(call->workspace, 16, true))
ALSO(writes_before_workspace, add_to(call->workspace, -1, true))

static void writes_the_call(const attn_call *call) {
  solve(call);
  ((attn_call *)(uintptr_t)call)->threads = 1000;
  ((attn_problem *)(uintptr_t)call->problem)->scale = 0;
}

static size_t a_line(const attn_call *call) {
  (void)call;
  return 64;
}

/* ---- heap ---- */

#define HEAP(word, call_of_it) ALSO(word, kept = (call_of_it); free(kept); kept = NULL)
HEAP(heap_malloc, malloc(100))
extern void *__libc_malloc(size_t bytes);
HEAP(heap_libc_malloc, __libc_malloc(100))
HEAP(heap_calloc, calloc(3, 100))
HEAP(heap_realloc, realloc(kept, 100))
HEAP(heap_reallocarray, reallocarray(kept, 3, 100))
HEAP(heap_memalign, memalign(64, 100))
HEAP(heap_aligned_alloc, aligned_alloc(64, 128))
HEAP(heap_valloc, valloc(100))
HEAP(heap_pvalloc, pvalloc(100))
HEAP(heap_strdup, strdup("a word"))
ALSO(heap_posix_memalign, void *memory; if (posix_memalign(&memory, 64, 128) == 0) free(memory))
ALSO(heap_asprintf, char *text; if (asprintf(&text, "%d", 1) > 0) free(text))
ALSO(heap_open_file, FILE *file = fopen("/dev/null", "r"); if (file) fclose(file))
ALSO(heap_sbrk, kept = sbrk(0))
ALSO(heap_mmap, void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
     munmap(memory, 4096))

/* ---- threads ---- */

static void threads_of_openmp(const attn_call *call) {
#pragma omp parallel num_threads(call->threads + 3)
  kept = NULL;
  solve(call);
}

static void *wait_a_little(void *nothing) {
  usleep(2000);
  return nothing;
}

static void threads_of_pthreads(const attn_call *call) {
  pthread_t threads[4];
  int begun = 0;
  while (begun < 4 && pthread_create(&threads[begun], NULL, wait_a_little, NULL) == 0) begun++;
  solve(call);
  while (begun > 0) pthread_join(threads[--begun], NULL);
}

static void neighbour(const attn_call *call) { solve(call); }

#define CONDUCT(word, ...) KERNEL(run, word, __VA_ARGS__)

static const kernel kernels[] = {
    CONDUCT(ends_by_exit, "exit(0)"),
    CONDUCT(ends_by_quiet_exit, "_exit(0)"),
    CONDUCT(ends_by_quick_exit, "quick_exit(0)"),
    CONDUCT(ends_by_system_call, "the system call exit_group(0)"),
    CONDUCT(ends_by_exit_of_1, "exit(1)"),
    CONDUCT(ends_by_abort, "abort()"),
    CONDUCT(ends_by_bad_address, "SIGSEGV"),
    CONDUCT(ends_by_division, "SIGFPE"),
    CONDUCT(ends_by_trap, "SIGILL"),
    CONDUCT(ends_by_sigkill, "SIGKILL to itself"),
    CONDUCT(ends_by_sigterm, "SIGTERM to itself"),
    CONDUCT(ends_by_sigint, "SIGINT to itself, as if somebody had pressed Ctrl-C"),
    CONDUCT(ends_by_sighup, "SIGHUP to itself"),
    CONDUCT(ends_by_sigpipe, "SIGPIPE to itself"),
    CONDUCT(ends_by_another_program, "becomes /bin/true"),
    CONDUCT(ends_its_thread, "pthread_exit() on the calling thread"),
    CONDUCT(ends_by_recursion, "a recursion without end"),
    CONDUCT(ends_on_a_worker, "SIGSEGV on another thread"),
    CONDUCT(ends_at_the_tenth_call, "_exit(0) in its tenth call"),
    CONDUCT(ends_by_longjmp, "longjmp() into a call that has returned"),
    CONDUCT(ends_well_in_its_destructor, "is wrong, and its destructor calls _exit(0)"),
    CONDUCT(ends_well_at_exit, "is wrong, and calls _exit(0) at exit"),

    KERNEL(workspace, asked_size_exits, "exit(0) in workspace_size"),
    KERNEL(unsupported, asked_support_exits, "exit(0) in unsupported"),
    KERNEL(workspace, asked_size_of_2_to_50, "wants a workspace of 2^50 bytes"),
    KERNEL(workspace, asked_size_negative, "wants a workspace of -64 bytes"),
    KERNEL(workspace, asked_size_that_changes, "wants another workspace at each call"),
    KERNEL(workspace, asked_size_hangs, "does not come back from workspace_size"),

    CONDUCT(hangs_in_a_loop, "a loop without end"),
    CONDUCT(hangs_asleep, "sleeps for ever"),
    CONDUCT(hangs_stopped, "SIGSTOP to itself"),
    CONDUCT(hangs_at_a_lock, "waits for a lock that it holds"),
    CONDUCT(hangs_on_a_worker, "another thread loops without end"),

    CONDUCT(later_thread_writes, "a thread that is left writes to the output"),
    CONDUCT(later_thread_changes_inputs, "a thread that is left writes to the values"),
    CONDUCT(later_thread_spins, "a thread that is left spins"),
    CONDUCT(later_alarm, "an alarm that rings after the call"),
    CONDUCT(later_child, "a child that is left sleeps for some seconds"),
    CONDUCT(later_child_goes_on, "fork() without a word: two processes return"),

    CONDUCT(stdio_writes_out, "writes to the standard output"),
    CONDUCT(stdio_writes_err, "writes to the standard error"),
    CONDUCT(stdio_prints, "prints a verdict of its own"),
    CONDUCT(stdio_closes_out, "closes the standard output"),
    CONDUCT(stdio_closes_err, "closes the standard error"),
    CONDUCT(stdio_closes_all, "closes all other files"),
    CONDUCT(stdio_replaces_out, "opens /dev/null as the standard output"),

    CONDUCT(setting_folder, "changes the working directory"),
    CONDUCT(setting_environment, "sets an environment variable"),
    CONDUCT(setting_environment_gone, "unsets an environment variable"),
    CONDUCT(setting_signal_handler, "ignores a signal"),
    CONDUCT(setting_crash_handler, "ignores SIGSEGV"),
    CONDUCT(setting_signal_mask, "blocks all signals"),
    CONDUCT(setting_file_mask, "sets the mask of new files"),
    CONDUCT(setting_processors, "binds the calling thread to one processor"),
    CONDUCT(setting_priority, "lowers the priority"),
    CONDUCT(setting_limit, "lowers limits of the process"),

    CONDUCT(mode_flushes, "leaves denormals flushed to zero"),
    CONDUCT(mode_rounds_up, "leaves another rounding mode"),
    CONDUCT(mode_flushes_on_workers, "leaves denormals flushed to zero on other threads"),
    CONDUCT(mode_rounds_up_on_workers, "leaves another rounding mode on other threads"),
#if defined(__x86_64__)
    CONDUCT(mode_traps, "leaves divisions by zero unmasked"),
    CONDUCT(mode_of_the_x87, "leaves the x87 at single precision"),
#endif

    CONDUCT(writes_queries, "changes a query"),
    CONDUCT(writes_keys, "changes a key"),
    CONDUCT(writes_values, "changes a value"),
    CONDUCT(writes_behind_output, "writes behind the output"),
    CONDUCT(writes_before_output, "writes before the output"),
    CONDUCT(writes_far_before_output, "writes a page before the output"),
    CONDUCT(writes_behind_workspace, "writes behind its workspace", .workspace = a_line),
    CONDUCT(writes_before_workspace, "writes before its workspace", .workspace = a_line),
    CONDUCT(writes_the_call, "changes the call and the problem"),

    CONDUCT(heap_malloc, "malloc"),
    CONDUCT(heap_libc_malloc, "__libc_malloc"),
    CONDUCT(heap_calloc, "calloc"),
    CONDUCT(heap_realloc, "realloc"),
    CONDUCT(heap_reallocarray, "reallocarray"),
    CONDUCT(heap_memalign, "memalign"),
    CONDUCT(heap_aligned_alloc, "aligned_alloc"),
    CONDUCT(heap_posix_memalign, "posix_memalign"),
    CONDUCT(heap_valloc, "valloc"),
    CONDUCT(heap_pvalloc, "pvalloc"),
    CONDUCT(heap_strdup, "strdup"),
    CONDUCT(heap_asprintf, "asprintf"),
    CONDUCT(heap_open_file, "fopen"),
    CONDUCT(heap_sbrk, "sbrk"),
    CONDUCT(heap_mmap, "mmap"),

    CONDUCT(threads_of_openmp, "an OpenMP team of three more than it was given"),
    CONDUCT(threads_of_pthreads, "four threads beside those that it was given"),

    CONDUCT(neighbour, "right, and the last of the table"),
};
EXPORT_KERNELS;
