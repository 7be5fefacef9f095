/* Sees the threads that a variant starts. The program defines pthread_create and thrd_create itself, so that the calls
 * of every shared object, plugins included, pass through it on their way to the C library. */
#ifndef ATTN_HARNESS_THREAD_WATCH_H
#define ATTN_HARNESS_THREAD_WATCH_H

#include <stdbool.h>

/* False in builds with a sanitizer, which must see the calls itself: nothing is counted then. */
bool threads_are_seen(void);

/* How many the program's OpenMP runtime keeps at the moment; -1 where they are not seen. */
int threads_of_openmp(void);

/* ---- every run ---- */

/* A run of the variant that this code is of begins, on this thread. */
void threads_begin_run(const void *code);

/* It ends: how many of the threads that the variant's object started in it are still there, after a moment's patience.
 * OpenMP's are not counted, nor those that a library behind the variant keeps for itself. */
int threads_end_run(void);

/* ---- a watched run ---- */

/* Before it begins: ends the threads that OpenMP keeps, so that those that the variant uses are started, and seen.
 * limit: how many threads it is given. with_libraries: what libraries behind it start counts as its own; they may set
 * themselves up in its first run. */
void threads_watch(const void *code, int limit, bool with_libraries);

/* Instead of threads_end_run. */
typedef struct threads_seen {
  int most; /* that ran at a time, the caller among them, where it was more than the limit; else 0 */
  int left; /* as threads_end_run, and those that no pthread_create started */
} threads_seen;

threads_seen threads_end_watch(void);

#endif
