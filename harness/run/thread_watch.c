/* See thread_watch.h. A thread begins in begin_thread, which sees it end. One that was told to end is there a little
 * longer: whoever finds one too many looks again until patience is over. */
#define _GNU_SOURCE
#include "thread_watch.h"

#include "callers.h"

bool threads_are_seen(void) { return CALLERS_ARE_SEEN; }

#if CALLERS_ARE_SEEN

#include <dlfcn.h>
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <threads.h>
#include <time.h>

/* On a busy machine a thread waits so long for its turn to end. Those that never do cost no more than that in all. */
enum { PATIENCE_MS = 100, MOST_WASTED_MS = 10000 };

/* A thread that ends of itself, and costs nobody anything if it is late. */
enum { SHORT_PATIENCE_MS = 3 };

enum { MOST_SEEN = 1024 };

enum { FREE, ALIVE, COUNTED, ENDING };

/* Who started a thread: the program's OpenMP, one that a plugin brought, the variant, anybody else. */
enum { BY_OPENMP, BY_OTHER_OPENMP, BY_VARIANT, BY_OTHERS, STARTERS };

static struct started {
  atomic_int state;
  int by;
  unsigned run;             /* in which it was started */
  void *(*start)(void *);   /* what it runs: this */
  int (*start_c11)(void *); /* or this */
  void *argument;
} all[MOST_SEEN];

static atomic_int alive[STARTERS];
static atomic_int uncounted; /* of the variants', those that are ALIVE and not COUNTED */

/* code_now: NULL between runs. A thread that a variant has left running is still of its own run. */
static atomic_uint run_now;
static const void *_Atomic code_now;
static _Thread_local unsigned run_of_thread;

/* While a run is watched: how many threads it may use, 0 while none is, and how many it did. */
static atomic_int limit_now, most_now;
static atomic_bool libraries_count;
static int alive_before[STARTERS];

static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static const void *openmp; /* the runtime's object */

/* A process that was forked has one thread. */
static void forget_threads(void) {
  for (int n = 0; n < MOST_SEEN; n++) all[n].state = FREE;
  for (int by = 0; by < STARTERS; by++) alive[by] = 0;
  uncounted = 0;
}

/* At the start, because memory may be called for where these are looked for; but libraries begin before. */
__attribute__((constructor)) static void look_for_originals(void) {
  if (create) return;
  openmp = caller_object(dlsym(RTLD_NEXT, "omp_get_num_threads"));
  pthread_atfork(NULL, NULL, forget_threads);
  *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
}

/* ---- patience ---- */

/* Whether it is still so after the patience, of looks as well as of time, which goes on while nobody here gets a turn. */
static bool stays_for(int patience_ms, bool (*is_so)(int), int argument) {
  enum { LOOKS_IN_MS = 2 };
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int looks = 0; is_so(argument); looks++) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 >= patience_ms &&
        looks >= LOOKS_IN_MS * patience_ms)
      return true;
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  }
  return false;
}

static bool stays(bool (*is_so)(int), int argument) {
  static atomic_int wasted_ms;
  const int patience = wasted_ms < MOST_WASTED_MS ? PATIENCE_MS : 0;
  if (!stays_for(patience, is_so, argument)) return false;
  wasted_ms += patience;
  return true;
}

/* ---- threads that start and end ---- */

static int more(int by) { return alive[by] - alive_before[by]; }

/* With the one that is to be started. A team that OpenMP keeps is idle while the variant's own threads run, unless it
 * started them. */
static int used_with_one(int by) {
  if (by == BY_VARIANT) return more(BY_VARIANT) + 1 + (omp_in_parallel() ? omp_get_num_threads() : 1);
  return more(BY_OPENMP) + more(BY_OTHER_OPENMP) + 1 + more(BY_VARIANT) + 1;
}

static bool is_too_many(int by) { return used_with_one(by) > limit_now; }

static void count_used(int by) {
  if (limit_now == 0 || by == BY_OTHERS || !is_too_many(by)) return;
  if (most_now == 0 && !stays(is_too_many, by)) return;
  const int used = used_with_one(by);
  int most = most_now;
  while (used > most && !atomic_compare_exchange_weak(&most_now, &most, used)) {
  }
}

static int starter_of(const void *code) {
  const caller caller = caller_of(code);
  const void *running = code_now;
  if (caller.kind == CALLER_OPENMP) return caller.object == openmp ? BY_OPENMP : BY_OTHER_OPENMP;
  if (caller.kind == CALLER_RUNTIME || !running) return BY_OTHERS;
  if (run_of_thread && run_of_thread != run_now) return BY_OTHERS;
  return libraries_count || caller.object == caller_object(running) ? BY_VARIANT : BY_OTHERS;
}

/* NULL: there are more than can be seen. */
static struct started *note_start(const void *code) {
  struct started *place = NULL;
  look_for_originals();
  for (int n = 0; n < MOST_SEEN && !place; n++) {
    int state = FREE;
    if (atomic_compare_exchange_strong(&all[n].state, &state, ENDING)) place = &all[n];
  }
  if (!place) return NULL;
  place->by = starter_of(code);
  place->run = run_now;
  count_used(place->by);
  alive[place->by]++;
  if (place->by == BY_VARIANT) uncounted++;
  place->state = ALIVE;
  return place;
}

static void note_end(void *context) {
  struct started *place = context;
  const int state = atomic_exchange(&place->state, ENDING);
  alive[place->by]--;
  if (place->by == BY_VARIANT && state == ALIVE) uncounted--;
  place->state = FREE;
}

static void *begin_thread(void *context) {
  struct started *place = context;
  void *result;
  if (place->by == BY_VARIANT) run_of_thread = place->run;
  pthread_cleanup_push(note_end, place);
  if (place->start_c11)
    result = (void *)(intptr_t)place->start_c11(place->argument);
  else
    result = place->start(place->argument);
  pthread_cleanup_pop(1);
  return result;
}

static int start_thread(pthread_t *thread, struct started *place, const pthread_attr_t *attributes) {
  const int error = create(thread, attributes, begin_thread, place);
  if (error) note_end(place);
  return error;
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*start)(void *), void *restrict argument) {
  struct started *place = note_start(__builtin_return_address(0));
  if (!place) return create(thread, attributes, start, argument);
  place->start = start;
  place->start_c11 = NULL;
  place->argument = argument;
  return start_thread(thread, place, attributes);
}

int thrd_create(thrd_t *thread, thrd_start_t start, void *argument) {
  struct started *place = note_start(__builtin_return_address(0));
  if (!place) return thrd_nomem;
  place->start_c11 = start;
  place->argument = argument;
  const int error = start_thread(thread, place, NULL);
  return error == 0 ? thrd_success : error == EAGAIN || error == ENOMEM ? thrd_nomem : thrd_error;
}

/* ---- runs ---- */

int threads_of_openmp(void) { return alive[BY_OPENMP]; }

void threads_begin_run(const void *code) {
  run_now++;
  code_now = code;
}

/* for_good: they are not counted again. */
static int count_left(bool for_good) {
  int count = 0;
  for (int n = 0; n < MOST_SEEN && uncounted > 0; n++) {
    int state = ALIVE;
    if (all[n].state != ALIVE || all[n].by != BY_VARIANT || all[n].run != run_now) continue;
    if (for_good && !atomic_compare_exchange_strong(&all[n].state, &state, COUNTED)) continue;
    if (for_good) uncounted--;
    count++;
  }
  return count;
}

static bool are_left(int unused) {
  (void)unused;
  return count_left(false) > 0;
}

int threads_end_run(void) {
  const int left = uncounted > 0 && stays(are_left, 0) ? count_left(true) : 0;
  code_now = NULL;
  return left;
}

/* ---- a watched run ---- */

/* Threads of which pthread_create knows nothing, the first one among them: the kernel counts tasks as the links of a
 * folder of folders. */
static int count_unseen(void) {
  struct stat tasks;
  if (stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink < 3) return 0;
  int unseen = (int)tasks.st_nlink - 2;
  for (int by = 0; by < STARTERS; by++) unseen -= alive[by];
  return unseen;
}

static int unseen_before;

static bool are_unseen(int usual) { return count_unseen() > usual; }

static bool openmp_keeps(int by) { return alive[by] > 0; }

/* clang's runtime frees the locks of named critical sections with its threads, and uses them in the next section. */
static bool loses_locks(void *handle) { return dlsym(handle, "__kmpc_critical") != NULL; }

/* Those of the program's OpenMP, and of the one that the variant's object is linked to where that is another. */
static void end_teams(const void *code) {
  int (*end)(omp_pause_resource_t) = NULL;
  Dl_info object;
  /* A thread that a smaller team left behind may be ending still, and would be taken for one that was there before. */
  const bool ended = !loses_locks(RTLD_DEFAULT) && omp_pause_resource_all(omp_pause_hard) == 0;
  (void)stays_for(ended ? PATIENCE_MS : SHORT_PATIENCE_MS, openmp_keeps, BY_OPENMP);
  void *handle = dladdr(code, &object) ? dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (handle && !loses_locks(handle)) *(void **)&end = dlsym(handle, "omp_pause_resource_all");
  if (end && caller_object(*(void **)&end) != openmp) (void)end(omp_pause_hard);
  if (handle) dlclose(handle);
}

void threads_watch(const void *code, int limit, bool with_libraries) {
  end_teams(code);
  /* What was there before, beside tasks that are about to end, is nobody's fault. */
  if (unseen_before > 0) (void)stays_for(SHORT_PATIENCE_MS, are_unseen, unseen_before);
  unseen_before = count_unseen();
  for (int by = 0; by < STARTERS; by++) alive_before[by] = alive[by];
  most_now = 0;
  limit_now = limit;
  libraries_count = with_libraries;
}

threads_seen threads_end_watch(void) {
  limit_now = 0;
  libraries_count = false;
  threads_seen seen = {.most = most_now, .left = threads_end_run()};
  if (seen.left == 0 && are_unseen(unseen_before) && stays(are_unseen, unseen_before))
    seen.left = count_unseen() - unseen_before;
  return seen;
}

#else

int threads_of_openmp(void) { return -1; }

void threads_begin_run(const void *code) { (void)code; }

int threads_end_run(void) { return 0; }

void threads_watch(const void *code, int limit, bool with_libraries) {
  (void)code, (void)limit, (void)with_libraries;
}

threads_seen threads_end_watch(void) { return (threads_seen){0, 0}; }

#endif
