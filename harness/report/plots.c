/* The pictures of a report, written down for gnuplot, and gnuplot. What is drawn is decided in picture.c; how it looks, in
 * scripts/plots. gnuplot gets three files in turn: common.gp, one that is written here and holds the
 * settings of this picture, and the picture's own script. */
#define _GNU_SOURCE
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
#include "format.h"
#include "picture.h"

extern char **environ;

enum { PATH_BYTES = 4096, CAPTION_BYTES = 2048, MOST_CAPTIONS = 32 };

static const double usual_font_size = 17;

static const struct picture_text {
  const char *name, *title, *note;
} texts[PICTURES] = {
    {"time", "Time",
     "Bars: 95% intervals of the medians. Lines with an exponent are fits, with 95% intervals. Other lines "
     "join the points."},
    {"workspace", "Memory",
     "Touched workspace, stacks, static data and hidden mappings, summed. Exponents: of the workspace asked "
     "for."},
    {"flops", "Rate",
     "Bars: 95% intervals. Operations on visible pairs only. Labels: share of the peak at the longest "
     "length."},
    {"error", "Worst error", "As a share of the bound computed from the input. Above 1, a result is wrong."},
    {"roofline", "Roofline",
     "Each variant at its longest length, with its 95% interval. Labels: the share that limits. Bytes: each "
     "input and output "
     "moved once."}};

/* ---- what stands around a picture ---- */

/* A string of gnuplot's, in single quotes. */
static void put_string(FILE *out, const char *name, const char *text) {
  fprintf(out, "%s = '", name);
  for (; *text; text++) {
    if (*text == '\'') fputc('\'', out);
    fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
  }
  fputs("'\n", out);
}

/* Letters of UTF-8 up to `bytes`. */
static size_t letters_in(const char *text, size_t bytes) {
  size_t letters = 0;
  for (size_t n = 0; n < bytes && text[n]; n++) letters += ((unsigned char)text[n] & 0xC0) != 0x80;
  return letters;
}

/* Bytes of the text that make a line of at most so many letters: up to a space, where there is one. */
static size_t line_bytes(const char *text, size_t most) {
  if (letters_in(text, strlen(text)) <= most) return strlen(text);
  size_t space = 0, bytes = 0;
  for (; letters_in(text, bytes + 1) <= most; bytes++)
    if (text[bytes] == ' ') space = bytes;
  return space ? space : bytes;
}

typedef struct caption_writer {
  FILE *out;
  size_t letters, lines;
} caption_writer;

/* Over as many lines as it takes. */
static void put_caption(caption_writer *to, const char *text, const char *colour) {
  char line[CAPTION_BYTES], name[32];
  while (*text && to->lines < MOST_CAPTIONS) {
    const size_t bytes = line_bytes(text, to->letters);
    snprintf(line, sizeof line, "%.*s", (int)bytes, text);
    snprintf(name, sizeof name, "caption[%zu]", ++to->lines);
    put_string(to->out, name, line);
    snprintf(name, sizeof name, "caption_colour[%zu]", to->lines);
    put_string(to->out, name, colour);
    text += bytes;
    text += strspn(text, " ");
  }
}

/* "Time against key length, Tq = 1". */
static void write_title(const picture *picture, char title[CAPTION_BYTES]) {
  bool mixed;
  const sweep_axis axis = picture_axis(picture, &mixed);
  const int64_t queries = picture_queries(picture);
  const char *what = texts[picture->kind].title;
  const char *against = mixed                   ? "the length that is swept"
                        : axis == SWEPT_KEYS    ? "key length"
                        : axis == SWEPT_QUERIES ? "query length"
                                                : "sequence length";
  char of[48] = "";
  if (queries > 0) snprintf(of, sizeof of, ", Tq = %lld", (long long)queries);
  if (picture->kind == ROOFLINE)
    snprintf(title, CAPTION_BYTES, "%s: rate against operations for each byte%s", what, of);
  else
    snprintf(title, CAPTION_BYTES, "%s against %s%s", what, against, of);
}

static void write_axis(const picture *picture, char text[CAPTION_BYTES]) {
  bool mixed;
  const sweep_axis axis = picture_axis(picture, &mixed);
  const int64_t queries = picture_queries(picture);
  if (picture->kind == ROOFLINE)
    snprintf(text, CAPTION_BYTES, "operations for each byte (FLOP/byte)");
  else if (mixed)
    snprintf(text, CAPTION_BYTES, "length that is swept (tokens): T, Tk where Tq stays, Tq where Tk stays");
  else if (axis == SWEPT_KEYS && queries > 0)
    snprintf(text, CAPTION_BYTES, "key length Tk (tokens), Tq = %lld", (long long)queries);
  else
    snprintf(text, CAPTION_BYTES, "%s (tokens)",
             axis == SWEPT_KEYS      ? "key length Tk"
             : axis == SWEPT_QUERIES ? "query length Tq"
                                     : "sequence length T");
}

static void write_shapes(const picture *picture, char text[CAPTION_BYTES]) {
  const families *families = picture->families;
  char common[512], special[512], names[PLOT_MAX_LINES][PLOT_LABEL_BYTES];
  const char *type = picture_type(picture);
  memcpy(names, families->names, sizeof names);
  plot_common_parts(families->text, families->count, common, sizeof common);
  plot_special_parts(families->text, names, families->count, special, sizeof special);
  snprintf(text, CAPTION_BYTES, "%s, %s%s%s%s", common, type ? type : "float32 where nothing else is said",
           *special ? " (" : "", special, *special ? ")" : "");
}

/* All that report_warnings says, in one line; "" where nothing disturbed. */
static void write_disturbance(const report *report, char text[CAPTION_BYTES]) {
  FILE *lines = fmemopen(text, CAPTION_BYTES, "w");
  text[0] = '\0';
  if (!lines) return;
  fputs("Disturbed:", lines);
  report_warnings(report, " ", lines);
  fclose(lines);
  size_t kept = 0; /* each warning begins with the space between it and the one before */
  for (const char *at = text; *at; at++)
    if (*at != '\n') text[kept++] = *at;
  text[kept] = '\0';
  if (!strchr(text, ' ')) text[0] = '\0';
}

static void put_captions(FILE *out, const picture *picture, const plot_style *style) {
  static const char grey[] = "#555555", red[] = "#B03000";
  const families *families = picture->families;
  const machine *machine = &picture->report->machine;
  const double scale = picture->axes.scale;
  char text[CAPTION_BYTES], title[CAPTION_BYTES];
  caption_writer to = {.out = out, .letters = (size_t)((0.965 - picture->axes.left) / (0.0065 * scale))};
  write_title(picture, title);
  put_string(out, "title", style->title ? style->title : title);
  if (style->title) put_caption(&to, title, grey);
  snprintf(text, sizeof text, "%s, %d thread%s, %s", machine->cpu, machine->threads,
           machine->threads == 1 ? "" : "s", picture->report->isa);
  put_caption(&to, text, grey);
  write_disturbance(picture->report, text);
  put_caption(&to, text, red);
  write_shapes(picture, text);
  put_caption(&to, text, grey);
  const bool says_nothing = picture->kind == TIME && picture->report->growth_count == 0;
  int used = 0;
  if (families->left_out > 0)
    used = snprintf(text, sizeof text, "Drawn: the first %zu of %zu families. ", families->count,
                    families->count + families->left_out);
  snprintf(text + used, sizeof text - (size_t)used, "%s",
           says_nothing ? "Bars: 95% intervals of the medians." : texts[picture->kind].note);
  put_caption(&to, text, grey);
  write_axis(picture, text);
  put_string(out, "x_title", text);
  fprintf(out, "captions = %zu\n", to.lines);
}

static void put_labels(FILE *out, const picture *picture) {
  for (size_t i = 0; i < picture->count + picture->machine_count; i++) {
    const plot_line *line = &picture->lines[i];
    put_string(out, "name", line->label);
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

/* What captions and all others need before. */
static void put_canvas(FILE *out, const picture *picture, const char *output, const char *format) {
  const plot_axes *axes = &picture->axes;
  put_string(out, "format", format);
  put_string(out, "output", output);
  fprintf(out, "font_scale = %.5f\nleft_margin = %.5f\nplot_width = %.5f\n", axes->scale, axes->left,
          axes->width);
  fprintf(out, "array caption[%d]\narray caption_colour[%d]\n", MOST_CAPTIONS, MOST_CAPTIONS);
}

static bool write_settings(const picture *picture, const plot_style *style, const char *path,
                           const char *data, const char *output, const char *format) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  const plot_axes *axes = &picture->axes;
  put_string(out, "scripts", style->scripts);
  put_string(out, "data", data);
  put_canvas(out, picture, output, format);
  put_captions(out, picture, style);
  fprintf(out, "lines = %zu\nmachine_lines = %zu\narray style[%zu] = [", picture->count,
          picture->machine_count, picture->count);
  for (size_t i = 0; i < picture->count; i++) fprintf(out, "%s%d", i ? ", " : "", picture->lines[i].style);
  fprintf(out, "]\nx_low = %.17g\nx_high = %.17g\ny_low = %.17g\ny_high = %.17g\n", axes->x_low, axes->x_high,
          axes->y_low, axes->y_high);
  fprintf(out, "zero = %.17g\n", picture->zero);
  put_labels(out, picture);
  put_guides(out, picture);
  put_rate(out, "peak", report_peak(picture->report, ATTN_FLOAT32));
  put_rate(out, "narrow", picture_narrow_peak(picture->report));
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

static void put_points(FILE *out, const plot_line *line) {
  for (size_t p = 0; p < line->count; p++)
    fprintf(out, "%.17g %.17g %.17g %.17g\n", line->x[p], line->y[p], line->low[p], line->high[p]);
}

/* Blocks of x and y: first the points of each line, with the ends of their intervals; then the curve of each; then what is of
 * the machine. */
static bool write_data(const picture *picture, const char *path) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  for (size_t i = 0; i < picture->count; i++) {
    put_points(out, &picture->lines[i]);
    fputs("\n\n", out);
  }
  for (size_t i = 0; i < picture->count; i++) {
    put_curve(out, picture, i);
    fputs("\n\n", out);
  }
  for (size_t i = 0; i < picture->machine_count; i++) {
    put_points(out, &picture->lines[picture->count + i]);
    fputs("\n\n", out);
  }
  bool good = !ferror(out);
  return fclose(out) == 0 && good;
}

/* ---- gnuplot ---- */

typedef struct plotter {
  const plot_style *style;
  const char *folder;         /* where the pictures go */
  char temporary[PATH_BYTES]; /* in folder, so that a finished picture can be renamed into place */
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
  if (!make_path(script, plotter->style->scripts, name, ".gp") ||
      !make_path(common, plotter->style->scripts, "common", ".gp") ||
      !make_path(settings, plotter->temporary, name, ".gp") ||
      !make_path(drawn, plotter->temporary, name, suffix) || !make_path(place, plotter->folder, name, suffix))
    return fail(plotter, "cannot write", plotter->folder);
  if (access(script, R_OK) != 0 || access(common, R_OK) != 0)
    return fail(plotter, "cannot read the script of a picture,", access(script, R_OK) != 0 ? script : common);
  if (!write_settings(picture, plotter->style, settings, data, drawn, format))
    return fail(plotter, "cannot write", settings);
  if (!run_gnuplot(plotter, common, settings, script)) return false;
  return replace_rename(drawn, place) == 0 || fail(plotter, "cannot write", place);
}

static const char *const all_formats[] = {"png", "svg", "pdf"};

/* A picture of which nothing was measured, such as errors where no reference was run, is not drawn. */
static bool draw_picture(const plotter *plotter, picture *picture) {
  const plot_style *style = plotter->style;
  const size_t count = style->format_count ? style->format_count : 2;
  const char *const *formats = style->format_count ? style->formats : all_formats;
  char data[PATH_BYTES];
  if (!picture_make(picture)) return true;
  if (!make_path(data, plotter->temporary, texts[picture->kind].name, ".dat") || !write_data(picture, data))
    return fail(plotter, "cannot write", data);
  for (size_t n = 0; n < count; n++)
    if (!draw_format(plotter, picture, data, formats[n])) return false;
  return true;
}

static void remove_temporary(const plotter *plotter) {
  static const char *const suffixes[] = {".gp", ".dat", ".png", ".svg", ".pdf"};
  char path[PATH_BYTES];
  for (size_t i = 0; i < PICTURES; i++)
    for (size_t s = 0; s < sizeof suffixes / sizeof suffixes[0]; s++)
      if (make_path(path, plotter->temporary, texts[i].name, suffixes[s])) unlink(path);
  if (make_path(path, plotter->temporary, "complaints", "")) unlink(path);
  rmdir(plotter->temporary);
}

static bool draw_all(const plotter *plotter, const report *report, const families *families, double scale) {
  double *numbers = calloc(picture_numbers(report), sizeof *numbers);
  picture *picture = calloc(1, sizeof *picture);
  bool good = numbers && picture;
  if (!good) snprintf(plotter->why, plotter->why_size, "out of memory");
  for (int kind = 0; good && kind < PICTURES; kind++) {
    *picture = (struct picture){.kind = (picture_kind)kind,
                                .report = report,
                                .families = families,
                                .axes.scale = scale,
                                .numbers = numbers};
    good = draw_picture(plotter, picture);
  }
  free(picture);
  free(numbers);
  return good;
}

bool report_plot(const report *report, const plot_style *style, const char *folder, char *why,
                 size_t why_size) {
  plotter plotter = {.style = style, .folder = folder, .why = why, .why_size = why_size};
  const plot_axes axes = {.scale = style->font_size > 0 ? style->font_size / usual_font_size : 1};
  families families;
  /* As many as have room for their labels beside those of the machine. */
  picture_find_families(report, &families, (size_t)(1 / plot_label_height(&axes)) - 3);
  if (families.count == 0) {
    snprintf(why, why_size, "nothing was measured, so there is nothing to draw");
    return false;
  }
  if (!make_path(plotter.temporary, folder, ".plots-XXXXXX", ""))
    return fail(&plotter, "cannot write", folder);
  if (!mkdtemp(plotter.temporary)) return fail(&plotter, "cannot write pictures into", folder);
  const bool good = draw_all(&plotter, report, &families, axes.scale);
  remove_temporary(&plotter);
  return good;
}
