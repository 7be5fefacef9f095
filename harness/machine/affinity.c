/* See affinity.h. OpenMP binds its threads itself, whenever it starts one: what the program bound would be lost with the thread,
 * and inherited by the next. The list that the program was started with is kept in an environment variable. */
#define _GNU_SOURCE
#include "affinity.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char variable[] = "ATTNBENCH_PINNED";

/* "0-3,6" as numbers; what makes no sense ends it. */
static size_t read_list(const char *text, int processors[AFFINITY_MOST]) {
  size_t count = 0;
  while (*text >= '0' && *text <= '9') {
    char *end;
    long first = strtol(text, &end, 10), last = first;
    if (*end == '-') last = strtol(end + 1, &end, 10);
    for (; first <= last && count < AFFINITY_MOST; first++) processors[count++] = (int)first;
    if (*end != ',') break;
    text = end + 1;
  }
  return count;
}

/* Those that the program keeps to; 0: it does not. Somebody else's variable of this name pins nothing. */
static size_t pinned_processors(int processors[AFFINITY_MOST]) {
  const char *pinned = getenv(variable);
  return pinned && getenv("OMP_PLACES") && getenv("OMP_PROC_BIND") ? read_list(pinned, processors) : 0;
}

bool affinity_is_pinned(void) {
  int processors[AFFINITY_MOST];
  return pinned_processors(processors) > 0;
}

size_t affinity_processors(int processors[AFFINITY_MOST]) {
  const size_t pinned = pinned_processors(processors);
  if (pinned) return pinned;
  cpu_set_t allowed;
  size_t count = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  for (int n = 0; n < CPU_SETSIZE && count < AFFINITY_MOST; n++)
    if (CPU_ISSET(n, &allowed)) processors[count++] = n;
  return count;
}

static void write_list(const int *processors, size_t count, char *text, size_t size) {
  size_t used = 0;
  snprintf(text, size, "%s", count ? "" : "not readable");
  for (size_t n = 0, last; n < count && used < size; n = last + 1) {
    for (last = n; last + 1 < count && processors[last + 1] == processors[last] + 1;) last++;
    used += (size_t)snprintf(text + used, size - used, "%s%d", n ? "," : "", processors[n]);
    if (last > n && used < size) used += (size_t)snprintf(text + used, size - used, "-%d", processors[last]);
  }
}

void affinity_name(char *text, size_t size) {
  int processors[AFFINITY_MOST] = {0};
  const size_t count = affinity_processors(processors);
  write_list(processors, count, text, size);
}

void affinity_pin(char **argv, size_t threads) {
  enum { PLACE_BYTES = sizeof "{1023}," };
  int processors[AFFINITY_MOST];
  char list[4 * AFFINITY_MOST], places[AFFINITY_MOST * PLACE_BYTES] = "";
  const size_t known = affinity_processors(processors), count = threads < known ? threads : known;
  size_t used = 0;
  if (affinity_is_pinned() || count == 0) return;
  write_list(processors, count, list, sizeof list);
  for (size_t n = 0; n < count; n++)
    used += (size_t)snprintf(places + used, sizeof places - used, "%s{%d}", n ? "," : "", processors[n]);
  if (setenv(variable, list, 1) == 0 && setenv("OMP_PLACES", places, 1) == 0 &&
      setenv("OMP_PROC_BIND", "close", 1) == 0)
    execv("/proc/self/exe", argv);
  unsetenv(variable);
}
