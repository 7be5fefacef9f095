/* See disturbance.h. The figures are the kernel's own: getrusage(2), and a line of /proc/stat for each processor. In a
 * container they tell of the whole machine, which is what disturbs. */
#define _GNU_SOURCE
#include "disturbance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "affinity.h"
#include "base/timer.h"

static int64_t involuntary_switches(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal. Guests count as user already. */
static bool add_ticks(disturbance_watch *watch, char *figures) {
  double ticks[8];
  char *end = figures;
  for (int n = 0; n < 8; n++) {
    const char *figure = end;
    ticks[n] = strtod(figure, &end);
    if (end == figure) return false;
  }
  const double busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
  watch->busy += busy;
  watch->stolen += ticks[7];
  watch->all += busy + ticks[3] + ticks[4] + ticks[7];
  return true;
}

static bool is_ours(long processor, const int *ours, size_t count) {
  for (size_t n = 0; n < count; n++)
    if (ours[n] == processor) return true;
  return false;
}

/* Its lines cpu0, cpu1 and so on. */
void disturbance_read_ticks(disturbance_watch *watch, FILE *stat, const int *processors, size_t count) {
  char line[512], *end;
  size_t found = 0;
  while (fgets(line, sizeof line, stat)) {
    if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9') continue;
    const long processor = strtol(line + 3, &end, 10);
    found += is_ours(processor, processors, count) && add_ticks(watch, end);
  }
  if (count == 0 || found < count) watch->busy = watch->stolen = watch->all = NAN;
}

static void read_ticks(disturbance_watch *watch) {
  int processors[AFFINITY_MOST];
  const size_t count = affinity_processors(processors);
  FILE *stat = fopen("/proc/stat", "r");
  watch->busy = watch->stolen = watch->all = stat ? 0 : NAN;
  if (stat) disturbance_read_ticks(watch, stat, processors, count);
  if (stat) fclose(stat);
}

static double clock_step(void) {
  double step = INFINITY;
  for (int n = 0; n < 200; n++) {
    const double start = wall_seconds();
    double now = start;
    for (int tries = 0; now == start && tries < 1000000; tries++) now = wall_seconds();
    if (now > start) step = fmin(step, now - start);
  }
  return step;
}

disturbance_watch disturbance_begin(void) {
  disturbance_watch watch = {
      .wall = wall_seconds(), .cpu = cpu_seconds(), .involuntary_switches = involuntary_switches()};
  read_ticks(&watch);
  return watch;
}

disturbance disturbance_end(const disturbance_watch *watch) {
  const disturbance_watch now = disturbance_begin();
  const double ticks = now.all - watch->all, ours = (now.cpu - watch->cpu) * (double)sysconf(_SC_CLK_TCK);
  disturbance found = {
      .seconds = now.wall - watch->wall,
      .involuntary_switches = now.involuntary_switches - watch->involuntary_switches,
      .others_share = ticks > 0 ? fmax(0, now.busy - watch->busy - ours) / ticks : NAN,
      .stolen_share = ticks > 0 ? (now.stolen - watch->stolen) / ticks : NAN,
      .clock_step_seconds = clock_step(),
  };
  return found;
}
