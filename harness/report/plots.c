/* The pictures of a report, written down for gnuplot. What is drawn is decided in picture.c; how it looks, in
 * scripts/plots. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "captions.h"
#include "drawing.h"
#include "format.h"
#include "picture.h"

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
  if (picture->kind != TIME && picture->kind != WORKSPACE && picture->kind != PAIRS) return;
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

static void put_settings(const void *what, const plot_style *style, FILE *out) {
  const picture *picture = what;
  const plot_axes *axes = &picture->axes;
  fprintf(out, "left_margin = %.5f\nplot_width = %.5f\n", axes->left, axes->width);
  captions_put(out, picture, style);
  fprintf(out, "lines = %zu\nmachine_lines = %zu\narray style[%zu] = [", picture->count,
          picture->machine_count, picture->count);
  for (size_t i = 0; i < picture->count; i++) fprintf(out, "%s%d", i ? ", " : "", picture->lines[i].style);
  fprintf(out, "]\narray turn[%zu] = [", picture->count);
  for (size_t i = 0; i < picture->count; i++) fprintf(out, "%s%d", i ? ", " : "", picture->lines[i].turn);
  fprintf(out, "]\nx_low = %.17g\nx_high = %.17g\ny_low = %.17g\ny_high = %.17g\n", axes->x_low, axes->x_high,
          axes->y_low, axes->y_high);
  fprintf(out, "zero = %.17g\n", picture->zero);
  put_labels(out, picture);
  put_guides(out, picture);
  put_rate(out, "peak", report_peak(picture->report, ATTN_FLOAT32));
  put_rate(out, "narrow", picture_narrow_peak(picture->report));
  put_rate(out, "sgemm", &picture->report->machine.sgemm);
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
static void put_data(const void *what, FILE *out) {
  const picture *picture = what;
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
}

/* A picture of which nothing was measured, such as errors where no reference was run, is not drawn. */
static bool draw_all(const drawing *drawing, const report *report, const families *families) {
  double *numbers = calloc(picture_numbers(report), sizeof *numbers);
  picture *picture = calloc(1, sizeof *picture);
  bool good = numbers && picture;
  if (!good) snprintf(drawing->why, drawing->why_size, "out of memory");
  for (int kind = 0; good && kind < PICTURES; kind++) {
    *picture = (struct picture){.kind = (picture_kind)kind,
                                .report = report,
                                .families = families,
                                .axes.scale = drawing_scale(drawing->style),
                                .numbers = numbers};
    const drawing_picture drawn = {picture_name(picture->kind), picture_name(picture->kind), picture,
                                   put_settings, put_data};
    good = !picture_make(picture) || drawing_make(drawing, &drawn);
  }
  free(picture);
  free(numbers);
  return good;
}

size_t picture_most_families(const plot_style *style) {
  const plot_axes axes = {.scale = drawing_scale(style)};
  return (size_t)(1 / plot_label_height(&axes)) - 3;
}

bool report_plot(const report *report, const plot_style *style, const char *folder, char *why,
                 size_t why_size) {
  drawing drawing;
  families families;
  picture_find_families(report, &families, picture_most_families(style));
  if (families.count == 0) {
    snprintf(why, why_size, "nothing was measured, so there is nothing to draw");
    return false;
  }
  if (!drawing_begin(&drawing, style, folder, why, why_size)) return false;
  const bool good = draw_all(&drawing, report, &families);
  drawing_end(&drawing);
  return good;
}
