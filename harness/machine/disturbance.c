/* See disturbance.h. The figures are the kernel's own: getrusage(2), and the first line of /proc/stat. In a
 * container that line tells of the whole machine, which is what disturbs. */
#define _GNU_SOURCE
#include "disturbance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/timer.h"

static int64_t involuntary_switches(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal. Guests count as user already. */
static void read_ticks(disturbance_watch *watch) {
  double ticks[8];
  char line[512], *end = line + strlen("cpu");
  FILE *file = fopen("/proc/stat", "r");
  watch->busy = watch->stolen = watch->all = NAN;
  if (!file) return;
  const bool read = fgets(line, sizeof line, file) && strncmp(line, "cpu ", 4) == 0;
  fclose(file);
  if (!read) return;
  for (int n = 0; n < 8; n++) {
    const char *figure = end;
    ticks[n] = strtod(figure, &end);
    if (end == figure) return;
  }
  watch->busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
  watch->stolen = ticks[7];
  watch->all = watch->busy + ticks[3] + ticks[4] + ticks[7];
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
