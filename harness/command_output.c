/* What commands share: the one line that says what went wrong, and where results are written. */
#define _GNU_SOURCE
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/interrupt.h"
#include "base/parts.h"
#include "base/progress.h"
#include "base/replace.h"
#include "base/text.h"
#include "commands.h"

int command_complain(const char *why) {
  fprintf(stderr, "attnbench: %s\n", why);
  return STATUS_UNUSABLE;
}

const char *const *command_texts(const text_list *list) { return (const char *const *)list->items; }

/* Of the terminal that the table is printed on; 0: there is none. */
int command_terminal_width(void) {
  struct winsize window;
  if (!isatty(STDOUT_FILENO)) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
}

bool command_wants_color(const options *options) {
  bool wanted;
  if (text_flag(options->color, &wanted)) return wanted;
  return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && !terminal_is_dumb();
}

bool command_check_file(const char *option, const char *file, char *why, size_t why_size) {
  if (!file) return true;
  struct stat status;
  char *path = replace_target(file); /* where a link points to: there it is written */
  bool sound = path && !(stat(path, &status) == 0 && S_ISDIR(status.st_mode));
  if (!sound && path) errno = EISDIR;
  sound = sound && access(dirname(path), W_OK | X_OK) == 0;
  if (!sound)
    snprintf(why, why_size, "%s %s: %s; give a file in a folder that can be written", option, file,
             strerror(errno));
  free(path);
  return sound;
}

/* By the folder and the name in it, as neither need be there yet. Devices and pipes take what they are given. */
static bool is_same_file(const char *path, const char *other) {
  char *paths[2] = {replace_target(path), replace_target(other)};
  struct stat folders[2] = {0}, file;
  bool same = paths[0] && paths[1] && !(stat(paths[0], &file) == 0 && !S_ISREG(file.st_mode));
  for (int n = 0; same && n < 2; n++) {
    char *copy = strdup(paths[n]);
    same = copy && stat(dirname(copy), &folders[n]) == 0;
    free(copy);
  }
  same = same && folders[0].st_dev == folders[1].st_dev && folders[0].st_ino == folders[1].st_ino;
  if (same) {
    const char *slashes[2] = {strrchr(paths[0], '/'), strrchr(paths[1], '/')};
    same = strcmp(slashes[0] ? slashes[0] + 1 : paths[0], slashes[1] ? slashes[1] + 1 : paths[1]) == 0;
  }
  free(paths[0]);
  free(paths[1]);
  return same;
}

/* What --out writes beside pictures; the first of them as they are. */
static const struct {
  const char *format, *name;
} folder_files[] = {{"json", "results.json"},
                    {"csv", "results.csv"},
                    {"console", "console.txt"},
                    {"summary", "summary.txt"},
                    {"html", "index.html"}};
enum { SUMMARY = 3, PAGE = 4 };

bool command_check_apart(const options *options, char *why, size_t why_size) {
  const struct {
    const char *option, *path;
  } files[] = {{"--benchmark_out", options->out_file}, {"--raw", options->raw}};
  char path[4096];
  for (size_t n = 0; n < sizeof files / sizeof *files; n++) {
    for (size_t i = 0; options->out && files[n].path && i < sizeof folder_files / sizeof *folder_files; i++) {
      snprintf(path, sizeof path, "%s/%s", options->out, folder_files[i].name);
      if (!is_same_file(files[n].path, path)) continue;
      snprintf(why, why_size, "%s %s would replace what --out writes there; give another file",
               files[n].option, files[n].path);
      return false;
    }
  }
  if (!options->out_file || !options->raw || !is_same_file(options->out_file, options->raw)) return true;
  snprintf(why, why_size, "--raw %s would replace what --benchmark_out writes there; give another file",
           options->raw);
  return false;
}

/* The folder of the gnuplot files; found is where the program's own is written. */
const char *command_scripts(const options *options, char found[PARTS_PATH_BYTES]) {
  if (options->scripts) return options->scripts;
  parts_find("plots", found);
  return found;
}

plot_style command_style(const options *options, char found[PARTS_PATH_BYTES]) {
  return (plot_style){.scripts = command_scripts(options, found),
                      .title = options->title,
                      .font_size = (double)options->font_size,
                      .formats = (const char *const *)options->formats.items,
                      .format_count = options->formats.count};
}

/* Everything that --out asks for. Missing plots are not a failure: gnuplot is optional. */
bool command_write_folder(const report *report, const options *options, const report_options *rows,
                          bool *has_pictures, char *why, size_t why_size) {
  char path[4096], found[PARTS_PATH_BYTES];
  /* It was there at the start; what was measured since must not be lost with it. */
  if (!folder_make(options->out, why, why_size)) return false;
  report_options aggregates = *rows; /* single repetitions are a table of their own: --raw */
  aggregates.repetitions = false;
  for (int i = 0; i < SUMMARY; i++) {
    const report_options *of_file = strcmp(folder_files[i].format, "csv") == 0 ? &aggregates : rows;
    snprintf(path, sizeof path, "%s/%s", options->out, folder_files[i].name);
    if (!report_write(report, of_file, folder_files[i].format, path, why, why_size)) return false;
  }
  const plot_style style = command_style(options, found);
  *has_pictures = report_plot(report, &style, options->out, why, why_size);
  if (!*has_pictures) fprintf(stderr, "attnbench: no plots: %s\n", why);
  report_options summary = *rows;
  summary.place = *has_pictures ? &(report_place){options->out, true} : NULL;
  snprintf(path, sizeof path, "%s/%s", options->out, folder_files[SUMMARY].name);
  if (!report_write(report, &summary, folder_files[SUMMARY].format, path, why, why_size)) return false;
  report_options page = *rows;
  page.style = &style;
  snprintf(path, sizeof path, "%s/%s", options->out, folder_files[PAGE].name);
  return report_write(report, &page, folder_files[PAGE].format, path, why, why_size);
}

int command_report_status(const report *report) {
  for (size_t i = 0; i < report->result_count; i++)
    if (report->results[i].state == RESULT_FAILED) return STATUS_WRONG;
  return report->interrupted ? STATUS_INTERRUPTED : STATUS_GOOD;
}

int command_status(int status) {
  return status != STATUS_WRONG && interrupt_asked() ? STATUS_INTERRUPTED : status;
}
