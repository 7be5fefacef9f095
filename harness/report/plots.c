/* The pictures of a report. What is drawn, and where each label stands, is decided here; how it looks, in
 * scripts/plots. gnuplot gets three files in turn: common.gp, one that is written here and holds the
 * settings of this picture, and the picture's own script. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/replace.h"
#include "plots.h"
#include "format.h"

extern char **environ;

enum { PATH_BYTES = 4096, CAPTION_BYTES = 512, CAPTION_LETTERS = 150, STYLES = 10 };

typedef enum picture_kind { TIME, WORKSPACE, RATE, ERROR, PICTURES } picture_kind;

static const struct picture_text {
  const char *name, *title, *note;
} texts[PICTURES] = {{"time", "Time against sequence length",
                      "Lines with an exponent are fits, with 95% intervals. Other lines join the points."},
                     {"workspace", "Memory against sequence length",
                      "Touched workspace, stacks, static data and hidden mappings, summed. Exponents: of the "
                      "workspace asked for."},
                     {"flops", "Rate against sequence length",
                      "Operations on visible pairs only. Labels: share of the peak at the longest T."},
                     {"error", "Worst error against sequence length",
                      "As a share of the bound computed from the input. Above 1, a result is wrong."}};

/* The families of a report, in order, and what they are called. */
typedef struct families {
  int index[PLOT_MAX_LINES];
  const char *text[PLOT_MAX_LINES];
  char names[PLOT_MAX_LINES][PLOT_LABEL_BYTES];
  size_t count, left_out;
} families;

typedef struct picture {
  picture_kind kind;
  const report *report;
  const families *families;
  plot_line lines[PLOT_MAX_LABELS]; /* those of the families, then those of the machine */
  int family_index[PLOT_MAX_LINES];
  size_t count, machine_count;
  plot_axes axes;
  double zero;     /* where an error of exactly 0 stands on the logarithmic axis; 0: there is none */
  double *numbers; /* of all lines */
  size_t used;
} picture;

/* ---- what is drawn ---- */

static double value_of(picture_kind kind, const result *result) {
  switch (kind) {
    case TIME: return result->seconds_median.estimate;
    case WORKSPACE: return (double)result->memory_bytes;
    case RATE: return result->flops_per_second;
    default: return result->error_bound_fraction;
  }
}

static bool is_drawn(picture_kind kind, const result *result) {
  double value = result->state == RESULT_MEASURED ? value_of(kind, result) : NAN;
  return isfinite(value) && (value > 0 || (kind == ERROR && value == 0)) && result_length(result) > 0;
}

/* The peak of bfloat16 where it has one of its own and something in bfloat16 was measured. */
static const machine_rate *narrow_peak(const report *report) {
  const machine_rate *peak = report_peak(report, ATTN_BFLOAT16);
  if (!peak || peak->type != ATTN_BFLOAT16) return NULL;
  for (size_t i = 0; i < report->result_count; i++)
    if (report->results[i].workload.type == ATTN_BFLOAT16 && is_drawn(RATE, &report->results[i])) return peak;
  return NULL;
}

static void find_families(const report *report, families *families) {
  families->count = families->left_out = 0;
  for (int family = 0; family < report_family_count(report); family++) {
    const result *first = NULL;
    for (size_t i = 0; i < report->result_count && !first; i++)
      if (report->results[i].family_index == family && is_drawn(TIME, &report->results[i]))
        first = &report->results[i];
    if (!first) continue;
    if (families->count == PLOT_MAX_LINES) {
      families->left_out++;
      continue;
    }
    families->index[families->count] = family;
    families->text[families->count++] = first->family;
  }
  plot_name_families(families->text, families->count, families->names);
}

/* Room for so many points more. */
static void begin_line(picture *picture, plot_line *line, size_t points) {
  memset(line, 0, sizeof *line);
  line->x = picture->numbers + picture->used;
  line->y = line->x + points;
  picture->used += 2 * points;
}

/* Points in order of T. */
static void add_point(plot_line *line, double x, double y) {
  size_t at = line->count++;
  for (; at > 0 && line->x[at - 1] > x; at--) {
    line->x[at] = line->x[at - 1];
    line->y[at] = line->y[at - 1];
  }
  line->x[at] = x;
  line->y[at] = y;
}

/* What gnuplot's enhanced text would take for a mark gets a backslash. */
static void escape(char *to, size_t size, const char *text) {
  size_t used = 0;
  for (; *text && used + 3 < size; text++) {
    if (strchr("_^{}@&~\\", *text)) to[used++] = '\\';
    to[used++] = *text;
  }
  to[used] = 0;
}

/* "T^{1.99 +- 0.02}"; without the interval where it is nothing, or not known. */
static void exponent_label(char *text, size_t size, interval exponent) {
  double half = format_half_width(exponent);
  int decimals = half >= 0.1 ? 1 : 2;
  double unit = pow(10, decimals), estimate = round(exponent.estimate * unit) / unit + 0.0;
  if (!isfinite(half))
    snprintf(text, size, "T^{%.1f}", exponent.estimate);
  else if (half < 0.005)
    snprintf(text, size, "T^{%.2f}", estimate);
  else
    snprintf(text, size, "T^{%.*f±%.*f}", decimals, estimate, decimals, half);
}

/* Of its own type's peak. */
static double share_at_longest(const report *report, int family) {
  const result *longest = NULL;
  for (size_t i = 0; i < report->result_count; i++) {
    const result *result = &report->results[i];
    if (result->family_index == family && is_drawn(RATE, result) &&
        (!longest || result_length(result) > result_length(longest)))
      longest = result;
  }
  return longest ? longest->peak_fraction : NAN;
}

static void label_line(const picture *picture, plot_line *line, const char *name, int family) {
  const growth *growth = report_growth(picture->report, family);
  char escaped[PLOT_LABEL_BYTES - 48], more[40] = "";
  escape(escaped, sizeof escaped, name);
  if (picture->kind == TIME && growth && growth->has_time) exponent_label(more, sizeof more, growth->time);
  if (picture->kind == WORKSPACE && growth && growth->has_workspace)
    exponent_label(more, sizeof more, growth->workspace);
  const double share = picture->kind == RATE ? 100 * share_at_longest(picture->report, family) : NAN;
  if (isfinite(share)) snprintf(more, sizeof more, "%.*f%%", share < 9.95, share);
  snprintf(line->label, sizeof line->label, "%s%s%s", escaped, *more ? "  " : "", more);
}

static bool is_of(const picture *picture, size_t family, const result *result) {
  return result->family_index == picture->families->index[family] && is_drawn(picture->kind, result);
}

static void find_lines(picture *picture) {
  const report *report = picture->report;
  for (size_t f = 0; f < picture->families->count; f++) {
    plot_line *line = &picture->lines[picture->count];
    size_t points = 0;
    for (size_t i = 0; i < report->result_count; i++) points += is_of(picture, f, &report->results[i]);
    begin_line(picture, line, points);
    for (size_t i = 0; i < report->result_count; i++) {
      const result *result = &report->results[i];
      if (is_of(picture, f, result))
        add_point(line, (double)result_length(result), value_of(picture->kind, result));
    }
    if (line->count == 0) continue;
    line->style = (int)(f % STYLES) + 1;
    label_line(picture, line, picture->families->names[f], picture->families->index[f]);
    picture->family_index[picture->count++] = picture->families->index[f];
  }
}

/* What the machine reaches, across the whole picture. */
static void add_machine_line(picture *picture, const machine_rate *rate, const char *what) {
  if (!rate || !(rate->median > 0)) return;
  plot_line *line = &picture->lines[picture->count + picture->machine_count++];
  char name[FORMAT_BYTES], median[FORMAT_BYTES];
  escape(name, sizeof name, rate->name);
  format_number(median, rate->median * 1e-9, 3);
  begin_line(picture, line, 2);
  line->style = STYLES + 1;
  line->count = 2;
  line->y[0] = line->y[1] = rate->median;
  snprintf(line->label, sizeof line->label, "%s%s  %s GFLOP/s", name, what, median);
}

/* ---- axes ---- */

/* Below all others, a decade further down. */
static void place_zeros(picture *picture) {
  picture->zero = picture->axes.y_low / 10;
  picture->axes.y_low = picture->zero / 2.5;
  for (size_t i = 0; i < picture->count; i++)
    for (size_t p = 0; p < picture->lines[i].count; p++)
      if (picture->lines[i].y[p] == 0) picture->lines[i].y[p] = picture->zero;
}

static void find_axes(picture *picture) {
  plot_axes *axes = &picture->axes;
  size_t all = picture->count + picture->machine_count;
  *axes = (plot_axes){INFINITY, 0, INFINITY, 0, picture->kind != RATE, 0};
  double widest = 0;
  bool zeros = false;
  for (size_t i = 0; i < all; i++) widest = fmax(widest, plot_label_width(picture->lines[i].label));
  for (size_t i = 0; i < picture->count; i++) {
    const plot_line *line = &picture->lines[i];
    for (size_t p = 0; p < line->count; p++) {
      axes->x_low = fmin(axes->x_low, line->x[p]);
      axes->x_high = fmax(axes->x_high, line->x[p]);
      if (line->y[p] > 0) axes->y_low = fmin(axes->y_low, line->y[p]);
      zeros = zeros || line->y[p] == 0;
      axes->y_high = fmax(axes->y_high, line->y[p]);
    }
  }
  bool single = axes->x_low == axes->x_high;
  axes->x_low /= single ? 2 : 1.2;
  axes->x_high *= single ? 2 : 1.2;
  for (size_t i = picture->count; i < all; i++) {
    picture->lines[i].x[0] = axes->x_low;
    picture->lines[i].x[1] = axes->x_high;
  }
  if (picture->kind == ERROR) {
    axes->y_high = fmax(axes->y_high, 1);
    axes->y_low = fmin(axes->y_low, axes->y_high); /* nothing but zeros */
  }
  if (picture->kind == RATE) {
    const machine_rate *peak = report_peak(picture->report, ATTN_FLOAT32);
    axes->y_low = 0;
    const machine_rate *narrow = narrow_peak(picture->report);
    axes->y_high = 1.1 * fmax(axes->y_high, fmax(peak ? peak->high : 0, narrow ? narrow->high : 0));
  } else {
    /* Two decades at least, so that noise does not fill the picture. */
    double room = fmax(2.5, 10 / sqrt(axes->y_high / axes->y_low));
    axes->y_low /= room;
    axes->y_high *= room;
    if (zeros) place_zeros(picture);
  }
  /* The labels' column takes what it needs on the right, up to half of the picture. */
  axes->width = fmin(fmax(0.87 - widest, 0.45), 0.86);
}

/* ---- the files for gnuplot ---- */

/* A string of gnuplot's, in single quotes; cut with an ellipsis where it would leave the picture. */
static void put_string(FILE *out, const char *name, const char *text, size_t letters) {
  fprintf(out, "%s = '", name);
  size_t seen = 0;
  for (; *text; text++) {
    if (((unsigned char)*text & 0xC0) != 0x80 && seen++ == letters) {
      fputs("…", out);
      break;
    }
    if (*text == '\'') fputc('\'', out);
    fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
  }
  fputs("'\n", out);
}

static void put_captions(FILE *out, const picture *picture) {
  const families *families = picture->families;
  const machine *machine = &picture->report->machine;
  char common[CAPTION_BYTES], special[CAPTION_BYTES], text[3 * CAPTION_BYTES],
      names[PLOT_MAX_LINES][PLOT_LABEL_BYTES];
  memcpy(names, families->names, sizeof names);
  plot_common_parts(families->text, families->count, common, sizeof common);
  plot_special_parts(families->text, names, families->count, special, sizeof special);
  put_string(out, "title", texts[picture->kind].title, CAPTION_LETTERS);
  snprintf(text, sizeof text, "%s, %d thread%s, %s", machine->cpu, machine->threads,
           machine->threads == 1 ? "" : "s", picture->report->isa);
  put_string(out, "machine", text, CAPTION_LETTERS);
  snprintf(text, sizeof text, "%s%s%s%s", common, *special ? " (" : "", special, *special ? ")" : "");
  put_string(out, "shapes", text, CAPTION_LETTERS);
  bool says_nothing = picture->kind == TIME && picture->report->growth_count == 0;
  int used = 0;
  if (families->left_out > 0)
    used = snprintf(text, sizeof text, "Drawn: the first %zu of %zu families. ", families->count,
                    families->count + families->left_out);
  snprintf(text + used, sizeof text - (size_t)used, "%s", says_nothing ? "" : texts[picture->kind].note);
  put_string(out, "note", text, CAPTION_LETTERS);
}

static void put_labels(FILE *out, const picture *picture) {
  for (size_t i = 0; i < picture->count + picture->machine_count; i++) {
    const plot_line *line = &picture->lines[i];
    put_string(out, "name", line->label, PLOT_LABEL_BYTES);
    fprintf(out, "set label %zu name at graph %.5f,%.5f left front tc rgb colour[%d]\n", i + 10,
            line->label_x, line->label_y, line->style);
    bool beside = line->label_x - line->end_x < 0.03 && fabs(line->label_y - line->end_y) < 0.012;
    if (!beside)
      fprintf(out,
              "set arrow %zu from graph %.5f,%.5f to graph %.5f,%.5f nohead lc rgb colour[%d] lw 1 dt 3\n",
              i + 10, line->end_x, line->end_y, line->label_x - 0.004, line->label_y, line->style);
  }
}

/* Two short lines from one point in the upper left, which growing curves leave free. */
static void put_guides(FILE *out, const picture *picture) {
  const plot_axes *axes = &picture->axes;
  const double length = 3; /* in x, as a factor */
  fputs("guides = 0\n", out);
  if (picture->kind != TIME && picture->kind != WORKSPACE) return;
  double range = log(axes->y_high / axes->y_low);
  bool grows = axes->x_high / axes->x_low > 4 * length && 2 * log(length) / range < 0.3;
  if (!grows) return;
  fprintf(out, "guides = 1\nguide_x = %.17g\nguide_y = %.17g\nguide_length = %g\n", 1.15 * axes->x_low,
          exp(log(axes->y_low) + 0.95 * range) / (length * length), length);
}

/* 0 for what was not measured. */
static void put_rate(FILE *out, const char *name, const machine_rate *rate) {
  bool known = rate && rate->median > 0;
  bool spread = known && isfinite(rate->low) && isfinite(rate->high);
  fprintf(out, "%s = %.17g\n%s_low = %.17g\n%s_high = %.17g\n", name, known ? rate->median : 0, name,
          spread ? rate->low : 0, name, spread ? rate->high : 0);
}

static bool write_settings(const picture *picture, const char *path, const char *scripts, const char *data,
                           const char *output, const char *format) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  const plot_axes *axes = &picture->axes;
  put_string(out, "scripts", scripts, PATH_BYTES);
  put_string(out, "format", format, PATH_BYTES);
  put_string(out, "output", output, PATH_BYTES);
  put_string(out, "data", data, PATH_BYTES);
  put_captions(out, picture);
  fprintf(out, "lines = %zu\narray style[%zu] = [", picture->count, picture->count);
  for (size_t i = 0; i < picture->count; i++) fprintf(out, "%s%d", i ? ", " : "", picture->lines[i].style);
  fprintf(out, "]\nx_low = %.17g\nx_high = %.17g\ny_low = %.17g\ny_high = %.17g\nplot_width = %.5f\n",
          axes->x_low, axes->x_high, axes->y_low, axes->y_high, axes->width);
  fprintf(out, "zero = %.17g\n", picture->zero);
  put_labels(out, picture);
  put_guides(out, picture);
  put_rate(out, "peak", report_peak(picture->report, ATTN_FLOAT32));
  put_rate(out, "narrow", narrow_peak(picture->report));
  put_rate(out, "sgemm", &picture->report->machine.sgemm);
  bool good = !ferror(out);
  return fclose(out) == 0 && good;
}

/* The line through the points: the fit of time, else the points. */
static void put_curve(FILE *out, const picture *picture, size_t i) {
  const report *report = picture->report;
  const growth *growth = report_growth(report, picture->family_index[i]);
  const plot_line *line = &picture->lines[i];
  /* Reports of before have no law. */
  const bool has_law = growth && growth->has_time && isfinite(growth->time_law.coefficient);
  if (picture->kind == TIME && has_law && growth->from_length > 0) {
    enum { STEPS = 64 };
    for (int step = 0; step <= STEPS; step++) {
      const double x =
          growth->from_length * pow(growth->to_length / growth->from_length, (double)step / STEPS);
      fprintf(out, "%.17g %.17g\n", x, power_law_at(growth->time_law, x));
    }
    return;
  }
  for (size_t p = 0; p < line->count; p++) fprintf(out, "%.17g %.17g\n", line->x[p], line->y[p]);
}

/* Blocks of x and y: first the points of each line, then the curve of each. */
static bool write_data(const picture *picture, const char *path) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  for (size_t i = 0; i < picture->count; i++) {
    const plot_line *line = &picture->lines[i];
    for (size_t p = 0; p < line->count; p++) fprintf(out, "%.17g %.17g\n", line->x[p], line->y[p]);
    fputs("\n\n", out);
  }
  for (size_t i = 0; i < picture->count; i++) {
    put_curve(out, picture, i);
    fputs("\n\n", out);
  }
  bool good = !ferror(out);
  return fclose(out) == 0 && good;
}

/* ---- gnuplot ---- */

typedef struct plotter {
  const char *scripts, *folder; /* where the scripts and the pictures lie */
  char temporary[PATH_BYTES];   /* in folder, so that a finished picture can be renamed into place */
  char *why;
  size_t why_size;
} plotter;

static bool fail(const plotter *plotter, const char *what, const char *about) {
  snprintf(plotter->why, plotter->why_size, "%s '%s': %s", what, about, strerror(errno));
  return false;
}

static bool make_path(char path[PATH_BYTES], const char *folder, const char *name, const char *suffix) {
  errno = ENAMETOOLONG;
  return (size_t)snprintf(path, PATH_BYTES, "%s/%s%s", folder, name, suffix) < PATH_BYTES;
}

/* The first line of what gnuplot complained of that names a fault. */
static void read_complaint(const char *path, char *line, size_t size) {
  char next[256];
  FILE *file = fopen(path, "r");
  snprintf(line, size, "it did not say why");
  while (file && fgets(next, sizeof next, file)) {
    next[strcspn(next, "\n")] = 0;
    if (strspn(next, " ^\t") == strlen(next)) continue;
    snprintf(line, size, "%s", next);
    if (strstr(next, "line ") || strstr(next, "annot")) break;
  }
  if (file) fclose(file);
}

static bool run_gnuplot(const plotter *plotter, const char *common, const char *settings,
                        const char *script) {
  char complaints[PATH_BYTES], complaint[256];
  if (!make_path(complaints, plotter->temporary, "complaints", ""))
    return fail(plotter, "cannot write", complaints);
  char program[] = "gnuplot", defaults[] = "-d"; /* no settings of the user's own */
  char *arguments[] = {program, defaults, (char *)common, (char *)settings, (char *)script, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, complaints, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child;
  int error = posix_spawnp(&child, program, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 127 << 8;
  if (error == 0) {
    pid_t ended;
    do ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (error == ENOENT || error == EACCES || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    snprintf(plotter->why, plotter->why_size, "gnuplot was not found; apt-get install gnuplot-nox");
    return false;
  }
  read_complaint(complaints, complaint, sizeof complaint);
  snprintf(plotter->why, plotter->why_size, "gnuplot failed on %s: %s", script, complaint);
  return false;
}

static bool draw_format(const plotter *plotter, const picture *picture, const char *data,
                        const char *format) {
  const char *name = texts[picture->kind].name;
  char script[PATH_BYTES], common[PATH_BYTES], settings[PATH_BYTES], drawn[PATH_BYTES], place[PATH_BYTES],
      suffix[8];
  snprintf(suffix, sizeof suffix, ".%s", format);
  if (!make_path(script, plotter->scripts, name, ".gp") ||
      !make_path(common, plotter->scripts, "common", ".gp") ||
      !make_path(settings, plotter->temporary, name, ".gp") ||
      !make_path(drawn, plotter->temporary, name, suffix) || !make_path(place, plotter->folder, name, suffix))
    return fail(plotter, "cannot write", plotter->folder);
  if (access(script, R_OK) != 0 || access(common, R_OK) != 0)
    return fail(plotter, "cannot read the script of a picture,", access(script, R_OK) != 0 ? script : common);
  if (!write_settings(picture, settings, plotter->scripts, data, drawn, format))
    return fail(plotter, "cannot write", settings);
  if (!run_gnuplot(plotter, common, settings, script)) return false;
  return replace_rename(drawn, place) == 0 || fail(plotter, "cannot write", place);
}

/* A picture of which nothing was measured, such as errors where no reference was run, is not drawn. */
static bool draw_picture(const plotter *plotter, picture *picture) {
  char data[PATH_BYTES];
  find_lines(picture);
  if (picture->count == 0) return true;
  if (picture->kind == RATE) {
    add_machine_line(picture, report_peak(picture->report, ATTN_FLOAT32), " peak");
    add_machine_line(picture, narrow_peak(picture->report), " peak");
    add_machine_line(picture, &picture->report->machine.sgemm, "");
  }
  find_axes(picture);
  plot_place_labels(picture->lines, picture->count + picture->machine_count, &picture->axes);
  if (!make_path(data, plotter->temporary, texts[picture->kind].name, ".dat") || !write_data(picture, data))
    return fail(plotter, "cannot write", data);
  return draw_format(plotter, picture, data, "png") && draw_format(plotter, picture, data, "svg");
}

static void remove_temporary(const plotter *plotter) {
  static const char *const suffixes[] = {".gp", ".dat", ".png", ".svg"};
  char path[PATH_BYTES];
  for (size_t i = 0; i < PICTURES; i++)
    for (size_t s = 0; s < sizeof suffixes / sizeof suffixes[0]; s++)
      if (make_path(path, plotter->temporary, texts[i].name, suffixes[s])) unlink(path);
  if (make_path(path, plotter->temporary, "complaints", "")) unlink(path);
  rmdir(plotter->temporary);
}

bool report_plot(const report *report, const char *script_folder, const char *folder, char *why,
                 size_t why_size) {
  plotter plotter = {.scripts = script_folder, .folder = folder, .why = why, .why_size = why_size};
  families families;
  find_families(report, &families);
  if (families.count == 0) {
    snprintf(why, why_size, "nothing was measured, so there is nothing to draw");
    return false;
  }
  if (!make_path(plotter.temporary, folder, ".plots-XXXXXX", ""))
    return fail(&plotter, "cannot write", folder);
  enum { MACHINE_NUMBERS = 3 * 2 * 2 }; /* three lines of two points */
  picture *picture = calloc(1, sizeof *picture);
  if (picture)
    picture->numbers = calloc(2 * report->result_count + MACHINE_NUMBERS, sizeof *picture->numbers);
  if (!picture || !picture->numbers || !mkdtemp(plotter.temporary)) {
    fail(&plotter, "cannot write pictures into", folder);
    if (picture) free(picture->numbers);
    free(picture);
    return false;
  }
  bool good = true;
  for (int kind = 0; good && kind < PICTURES; kind++) {
    *picture = (struct picture){
        .kind = (picture_kind)kind, .report = report, .families = &families, .numbers = picture->numbers};
    good = draw_picture(&plotter, picture);
  }
  remove_temporary(&plotter);
  free(picture->numbers);
  free(picture);
  return good;
}
