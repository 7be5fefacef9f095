/* See progress.h. The line ends where the terminal does: one that wraps cannot be wiped. */
#include "progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "timer.h"

progress progress_begin(bool quiet) {
  return (progress){.shown = !quiet && isatty(STDERR_FILENO), .started = wall_seconds()};
}

/* 75 as 1:15. */
static void format_clock(char text[16], double seconds) {
  const unsigned whole = seconds > 0 && seconds < 1e6 ? (unsigned)seconds : 0;
  snprintf(text, 16, "%u:%02u", whole / 60, whole % 60);
}

void progress_show(progress *progress, size_t done, size_t total, double seconds_left, const char *what) {
  const double now = wall_seconds();
  if (!progress->shown || now - progress->drawn < 0.1) return;
  progress->drawn = now;
  char line[512], elapsed[16], left[16];
  format_clock(elapsed, now - progress->started);
  format_clock(left, seconds_left);
  snprintf(line, sizeof line, "%zu of %zu  %s, about %s left  %s", done, total, elapsed, left, what);
  struct winsize window = {.ws_col = 80};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) window.ws_col = 80;
  fprintf(stderr, "\r%.*s\033[K", window.ws_col - 1, line);
  fflush(stderr);
}

void progress_end(progress *progress) {
  if (progress->shown && progress->drawn > 0) fprintf(stderr, "\r\033[K");
  progress->shown = false;
}
