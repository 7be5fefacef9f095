/* See supervisor.h. */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PLUGIN_BYTES = 4096, MOST_ENDED = 256, STATUS_WRONG = 1, STATUS_UNUSABLE = 2 };
static const size_t kept_most_bytes = (size_t)1 << 30; /* pages of it are there once they are used */
static const double tick_seconds = 0.1;

typedef struct supervised {
  /* What runs, or ran last. */
  ended_run last;
  char plugin[PLUGIN_BYTES];
  char device[32];
  bool own_left_out;
  double limit_seconds, asked_seconds; /* infinite: no limit was asked for */
  atomic_bool running;
  atomic_uint steps;
  char loading[PLUGIN_BYTES];
  char waits_in[SUPERVISOR_WAITS_BYTES];
  /* How the child ended, where it ended of itself. */
  bool finished, renews;
  char abandoned[128];
  int status;
  /* What came of earlier ones. */
  ended_run ended[MOST_ENDED];
  size_t ended_count;
  char refused[MOST_ENDED][PLUGIN_BYTES];
  size_t refused_count;
  size_t kept_bytes;
  void *root;
} supervised;

static supervised *shared;
static char *kept;
static pid_t owner;   /* the child that is supervised; 0: nobody is */
static pid_t entered; /* the process that was, when the run began */
static double most_seconds = INFINITY;
static int team_rank = -1; /* -1: in no team */

/* ---- in the child ---- */

static void *map_shared(size_t bytes) {
  void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return mapped == MAP_FAILED ? NULL : mapped;
}

static bool is_mapped(void) {
  if (!shared) shared = map_shared(sizeof *shared);
  if (!kept) kept = map_shared(kept_most_bytes);
  return shared && kept;
}

static void copy(char *to, size_t size, const char *text) { snprintf(to, size, "%s", text ? text : ""); }

void supervisor_enter(const supervised_run *run) {
  if (!is_mapped()) return;
  ended_run *last = &shared->last;
  copy(last->variant, sizeof last->variant, run->variant);
  copy(last->problem, sizeof last->problem, run->problem);
  copy(last->property, sizeof last->property, run->property);
  copy(last->isa, sizeof last->isa, run->isa);
  copy(shared->plugin, sizeof shared->plugin, run->plugin);
  last->threads = run->threads;
  shared->limit_seconds = fmin(run->limit_seconds, most_seconds);
  shared->asked_seconds = most_seconds;
  entered = getpid();
  supervisor_step();
  shared->running = true;
}

void supervisor_step(void) {
  if (shared) atomic_fetch_add_explicit(&shared->steps, 1, memory_order_relaxed);
}

void supervisor_leave(void) {
  if (!shared) return;
  if (getpid() != entered)
    _exit(0); /* a copy that the run made of its process, and that would go on beside it */
  shared->running = false;
}

void supervisor_limit(double seconds) { most_seconds = seconds; }

void supervisor_loads(const char *plugin) {
  if (is_mapped()) copy(shared->loading, sizeof shared->loading, plugin);
}

void supervisor_note_set(const char *device, bool own) {
  if (!is_mapped()) return;
  copy(shared->device, sizeof shared->device, device);
  shared->own_left_out = !own;
}

const ended_run *supervisor_ended(const char *variant) {
  for (size_t n = 0; shared && n < shared->ended_count; n++)
    if (strcmp(shared->ended[n].variant, variant) == 0) return &shared->ended[n];
  return NULL;
}

size_t supervisor_ended_count(void) { return shared ? shared->ended_count : 0; }

bool supervisor_refuses(const char *plugin) {
  for (size_t n = 0; shared && n < shared->refused_count; n++)
    if (strcmp(shared->refused[n], plugin) == 0) return true;
  return false;
}

void *supervisor_keep(size_t bytes) {
  const size_t line = 64;
  if (!is_mapped() || bytes > kept_most_bytes - line - shared->kept_bytes) return NULL;
  void *memory = kept + shared->kept_bytes;
  shared->kept_bytes += (bytes + line - 1) / line * line;
  return memory;
}

void **supervisor_root(void) {
  static void *nothing;
  return is_mapped() ? &shared->root : &nothing;
}

/* Of AddressSanitizer: without it, leaks are looked for by exit, which would run what kernels left for it. */
extern void __lsan_do_leak_check(void) __attribute__((weak)); /* NOLINT(bugprone-reserved-identifier) */

static void finish(void) {
  if (__lsan_do_leak_check) __lsan_do_leak_check();
  shared->finished = true;
  _exit(shared->status);
}

void supervisor_in_team(int rank) { team_rank = rank; }

char *supervisor_waits_in(void) { return is_mapped() ? shared->waits_in : NULL; }

void supervisor_renew(void) {
  if (owner == 0 || team_rank >= 0) return;
  shared->renews = true;
  fflush(NULL);
  finish();
}

void supervisor_abandon(const char *how) {
  if (owner == 0) return;
  copy(shared->abandoned, sizeof shared->abandoned, how);
  fflush(NULL);
  _exit(STATUS_WRONG);
}

void supervisor_give_up(int status) {
  if (is_mapped()) {
    shared->status = status;
    shared->finished = true;
  }
  _exit(status);
}

static void run_child(int (*command)(void *), void *context, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(STATUS_UNUSABLE);
  /* As a program has them; AddressSanitizer, for one, takes some itself, and the signal says more. */
  static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  for (size_t n = 0; n < sizeof crashes / sizeof *crashes; n++) signal(crashes[n], SIG_DFL);
  owner = getpid();
  shared->status = command(context);
  finish();
}

/* ---- in the parent ---- */

static const char *signal_words(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV: access to memory that it was not given";
    case SIGBUS: return "SIGBUS: access to memory that is not there";
    case SIGILL: return "SIGILL: instruction that this processor does not have";
    case SIGFPE: return "SIGFPE: arithmetic fault";
    case SIGABRT: return "SIGABRT: it gave up";
    case SIGKILL: return "SIGKILL: by itself, from outside, or for lack of memory";
    default: return NULL;
  }
}

static void describe_end(char how[128], int status, bool hangs) {
  char name[32];
  if (shared->abandoned[0]) {
    copy(how, 128, shared->abandoned);
    shared->abandoned[0] = '\0';
  } else if (hangs) {
    const bool waits = shared->waits_in[0] != '\0';
    snprintf(how, 128, "did not end within %.3g s%s%s", shared->limit_seconds,
             waits ? ": it waits for others in " : "", waits ? shared->waits_in : "");
  } else if (WIFSIGNALED(status)) {
    snprintf(name, sizeof name, "SIG%s",
             sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "");
    const char *words = signal_words(WTERMSIG(status));
    snprintf(how, 128, "crashed (%s)", words ? words : name);
  } else {
    snprintf(how, 128, "ended the process with status %d", WEXITSTATUS(status));
  }
}

static void say_ended(const ended_run *end, bool running) {
  char rank[32] = "";
  if (team_rank >= 0)
    snprintf(rank, sizeof rank, "rank %d of %s: ", team_rank, end->isa + strcspn(end->isa, "0123456789"));
  fprintf(stderr, "\nattnbench: %svariant '%s' %s%s%s", rank, end->variant, end->how,
          running ? "" : ", after its run,", end->problem[0] ? " on " : "");
  fprintf(stderr, "%s%s%s with %d thread%s\n", end->problem, end->property[0] ? ", while held to: " : "",
          end->property, end->threads, end->threads == 1 ? "" : "s");
  if (!end->problem[0] || shared->waits_in[0]) return;
  char ranks[32] = "", limit[32] = "";
  if (team_rank >= 0)
    snprintf(ranks, sizeof ranks, "mpirun -n %s ", end->isa + strcspn(end->isa, "0123456789"));
  if (isfinite(shared->asked_seconds))
    snprintf(limit, sizeof limit, " --run-limit %g", shared->asked_seconds);
  const bool foreign = shared->plugin[0];
  fprintf(stderr,
          "  reproduce: %sattnbench verify --variant %s --problem '%s'%s%s --threads %d%s%s%s%s%s%s%s\n",
          ranks, end->variant, end->problem, end->isa[0] ? " --isa " : "", end->isa, end->threads, limit,
          shared->device[0] ? " --device " : "", shared->device, shared->own_left_out ? " --own=false" : "",
          foreign ? " --plugin '" : "", shared->plugin, foreign ? "'" : "");
}

/* Notes what ended the child; false where that is nobody whom the next one could leave out. */
static bool note_end(int status, bool hangs) {
  char how[128];
  describe_end(how, status, hangs);
  if (shared->loading[0]) {
    fprintf(stderr, "attnbench: plugin %s %s while it was loaded: it is left out\n", shared->loading, how);
    if (supervisor_refuses(shared->loading) || shared->refused_count == MOST_ENDED) return false;
    copy(shared->refused[shared->refused_count++], PLUGIN_BYTES, shared->loading);
    shared->loading[0] = '\0';
    return true;
  }
  ended_run *end = &shared->last;
  if (!end->variant[0] || supervisor_ended(end->variant) || shared->ended_count == MOST_ENDED) {
    fprintf(stderr, "attnbench: this process %s\n", how);
    return false;
  }
  copy(end->how, sizeof end->how, how);
  say_ended(end, shared->running);
  shared->ended[shared->ended_count++] = *end;
  *end = (ended_run){0};
  shared->running = false;
  return true;
}

/* Signals that are meant for the command. What a terminal sends reaches the child as well. */
static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { FORWARDED = sizeof forwarded / sizeof *forwarded };

static void forwarded_set(sigset_t *set) {
  sigemptyset(set);
  for (int n = 0; n < FORWARDED; n++) sigaddset(set, forwarded[n]);
}

/* Waits for the child; how it ended. stopped_by: the signal that asked for it, 0: none. */
static int await(pid_t child, const sigset_t *set, bool *hangs, int *stopped_by) {
  int status = 0;
  unsigned steps = shared->steps;
  double waited = 0;
  sigset_t awaited = *set;
  sigaddset(&awaited, SIGCHLD);
  *hangs = false;
  for (;;) {
    const struct timespec tick = {.tv_nsec = (long)(tick_seconds * 1e9)};
    siginfo_t from = {0};
    const int signal = sigtimedwait(&awaited, &from, &tick);
    const bool is_forwarded = signal > 0 && signal != SIGCHLD;
    if (is_forwarded) *stopped_by = signal;
    if (waitpid(child, &status, WNOHANG) == child) {
      /* What was sent to the group may have ended the child before this process comes to it. */
      const struct timespec at_once = {0};
      const int pending = is_forwarded ? 0 : sigtimedwait(set, NULL, &at_once);
      if (pending > 0 && pending != SIGCHLD) *stopped_by = pending;
      return status;
    }
    if (is_forwarded && from.si_code != SI_KERNEL) kill(child, signal);
    /* In ticks, and not by a clock, which goes on while both processes are stopped. */
    waited = shared->running && steps == shared->steps ? waited + (signal > 0 ? 0 : tick_seconds) : 0;
    steps = shared->steps;
    /* Who waits for another is heard after it. */
    const double patience = team_rank >= 0 && shared->waits_in[0] ? 1 : 0;
    if (waited > shared->limit_seconds + patience && !*hangs) {
      *hangs = true;
      kill(child, SIGKILL);
    }
  }
}

/* Dies of it, as the command would have. */
static void die_of(int number) {
  sigset_t set;
  forwarded_set(&set);
  signal(number, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  raise(number);
}

static int status_after(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) != shared->status) return WEXITSTATUS(status);
  const bool left_out = shared->ended_count + shared->refused_count > 0;
  return shared->status == 0 && left_out ? STATUS_WRONG : shared->status;
}

int supervise(int (*command)(void *), void *context) {
  sigset_t set, before;
  if (!is_mapped()) return command(context);
  const pid_t parent = getpid();
  signal(SIGCHLD, SIG_DFL);
  forwarded_set(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, &before);
  for (;;) {
    int status, stopped_by = 0;
    bool hangs;
    shared->finished = shared->renews = false;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      sigprocmask(SIG_SETMASK, &before, NULL);
      run_child(command, context, parent);
    }
    if (child < 0) {
      fprintf(stderr, "attnbench: cannot fork: %s\n", strerror(errno));
      return STATUS_UNUSABLE;
    }
    status = await(child, &set, &hangs, &stopped_by);
    if (shared->finished && !shared->renews && !WIFSIGNALED(status)) return status_after(status);
    if (shared->finished && shared->renews) continue;
    if (stopped_by && WIFSIGNALED(status) && WTERMSIG(status) == stopped_by) die_of(stopped_by);
    /* Who read its words has gone, as head does; what happens within a run is the kernel's. */
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE && !shared->running && !shared->loading[0])
      die_of(SIGPIPE);
    if (!note_end(status, hangs)) return STATUS_UNUSABLE;
    if (team_rank >= 0) return STATUS_WRONG;
  }
}
