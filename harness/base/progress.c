/* See progress.h. The line ends where the terminal does: one that wraps cannot be wiped. */
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "timer.h"

static const double seconds_between_drawings = 0.1, seconds_between_lines = 10;

bool terminal_is_dumb(void) {
  const char *term = getenv("TERM");
  return term && strcmp(term, "dumb") == 0;
}

progress progress_begin(bool quiet) {
  const double now = wall_seconds();
  const bool on_terminal = isatty(STDERR_FILENO) && !terminal_is_dumb();
  return (progress){
      .shown = !quiet, .on_terminal = on_terminal, .started = now, .drawn = on_terminal ? 0 : now};
}

/* 75 as 1:15. */
static void format_clock(char text[16], double seconds) {
  const unsigned whole = seconds > 0 && seconds < 1e6 ? (unsigned)seconds : 0;
  snprintf(text, 16, "%u:%02u", whole / 60, whole % 60);
}

void progress_show(progress *progress, size_t done, size_t total, double seconds_left, const char *what) {
  const double now = wall_seconds();
  if (!progress->shown) return;
  if (now - progress->drawn < (progress->on_terminal ? seconds_between_drawings : seconds_between_lines))
    return;
  progress->drawn = now;
  char line[512], elapsed[16], left[16];
  format_clock(elapsed, now - progress->started);
  format_clock(left, seconds_left);
  snprintf(line, sizeof line, "%zu of %zu  %s, about %s left  %s", done, total, elapsed, left, what);
  if (!progress->on_terminal) {
    fprintf(stderr, "%s\n", line);
    return;
  }
  struct winsize window = {.ws_col = 80};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) window.ws_col = 80;
  fprintf(stderr, "\r%.*s\033[K", window.ws_col - 1, line);
  fflush(stderr);
}

void progress_end(progress *progress) {
  if (progress->shown && progress->on_terminal && progress->drawn > 0) fprintf(stderr, "\r\033[K");
  progress->shown = false;
}
