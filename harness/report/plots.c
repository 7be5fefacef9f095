/* The pictures of a report, written down for gnuplot. What is drawn is decided in picture.c; how it looks, in
 * scripts/plots. gnuplot gets three files in turn: common.gp, one that is written here and holds the
 * settings of this picture, and the picture's own script. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/replace.h"
#include "captions.h"
#include "format.h"
#include "gnuplot.h"
#include "picture.h"

enum { PATH_BYTES = 4096 };

static const double usual_font_size = 17;

static void put_labels(FILE *out, const picture *picture) {
  for (size_t i = 0; i < picture->count + picture->machine_count; i++) {
    const plot_line *line = &picture->lines[i];
    caption_string(out, "name", line->label);
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
  caption_string(out, "format", format);
  caption_string(out, "output", output);
  fprintf(out, "font_scale = %.5f\nleft_margin = %.5f\nplot_width = %.5f\n", axes->scale, axes->left,
          axes->width);
  fprintf(out, "array caption[%d]\narray caption_colour[%d]\n", CAPTIONS_MOST, CAPTIONS_MOST);
}

static bool write_settings(const picture *picture, const plot_style *style, const char *path,
                           const char *data, const char *output, const char *format) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  const plot_axes *axes = &picture->axes;
  caption_string(out, "scripts", style->scripts);
  caption_string(out, "data", data);
  put_canvas(out, picture, output, format);
  captions_put(out, picture, style);
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

static bool draw_format(const plotter *plotter, const picture *picture, const char *data,
                        const char *format) {
  const char *name = picture_name(picture->kind);
  char script[PATH_BYTES], common[PATH_BYTES], settings[PATH_BYTES], drawn[PATH_BYTES], place[PATH_BYTES],
      complaints[PATH_BYTES], suffix[8];
  snprintf(suffix, sizeof suffix, ".%s", format);
  if (!make_path(script, plotter->style->scripts, name, ".gp") ||
      !make_path(common, plotter->style->scripts, "common", ".gp") ||
      !make_path(settings, plotter->temporary, name, ".gp") ||
      !make_path(complaints, plotter->temporary, "complaints", "") ||
      !make_path(drawn, plotter->temporary, name, suffix) || !make_path(place, plotter->folder, name, suffix))
    return fail(plotter, "cannot write", plotter->folder);
  if (access(script, R_OK) != 0 || access(common, R_OK) != 0)
    return fail(plotter, "cannot read the script of a picture,", access(script, R_OK) != 0 ? script : common);
  if (!write_settings(picture, plotter->style, settings, data, drawn, format))
    return fail(plotter, "cannot write", settings);
  const char *const files[] = {common, settings, script};
  if (!gnuplot_run(files, complaints, plotter->why, plotter->why_size)) return false;
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
  if (!make_path(data, plotter->temporary, picture_name(picture->kind), ".dat") || !write_data(picture, data))
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
      if (make_path(path, plotter->temporary, picture_name((picture_kind)i), suffixes[s])) unlink(path);
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

static double scale_of(const plot_style *style) {
  return style->font_size > 0 ? style->font_size / usual_font_size : 1;
}

size_t picture_most_families(const plot_style *style) {
  const plot_axes axes = {.scale = scale_of(style)};
  return (size_t)(1 / plot_label_height(&axes)) - 3;
}

bool report_plot(const report *report, const plot_style *style, const char *folder, char *why,
                 size_t why_size) {
  plotter plotter = {.style = style, .folder = folder, .why = why, .why_size = why_size};
  families families;
  picture_find_families(report, &families, picture_most_families(style));
  if (families.count == 0) {
    snprintf(why, why_size, "nothing was measured, so there is nothing to draw");
    return false;
  }
  if (!make_path(plotter.temporary, folder, ".plots-XXXXXX", ""))
    return fail(&plotter, "cannot write", folder);
  if (!mkdtemp(plotter.temporary)) return fail(&plotter, "cannot write pictures into", folder);
  const bool good = draw_all(&plotter, report, &families, scale_of(style));
  remove_temporary(&plotter);
  return good;
}
