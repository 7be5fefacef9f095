/* The forms in which a run is given: console, JSON (Google Benchmark's schema), CSV, summary, plots, page. */
#ifndef ATTN_HARNESS_REPORT_H
#define ATTN_HARNESS_REPORT_H

#include <stdio.h>

#include "measure/results.h"

/* Where a report was written. Only who drew its pictures knows whether they are there: files of their names may be older. */
typedef struct report_place {
  const char *folder;
  bool has_pictures;
} report_place;

typedef struct report_options {
  bool repetitions, aggregates; /* which rows are given */
  bool brief;                   /* on the console instead of these: one row a point, its median */
  bool color;
  int width;                 /* of the terminal that the console's table is for; 0: as wide as it gets */
  const char *time_unit;     /* "ns", "us", "ms", "s"; NULL: what suits each */
  const report_place *place; /* for the summary; NULL: it says nothing of it */

  /* For the page. */
  const struct report *former; /* a run to compare with, or NULL */
  bool whole; /* it is not written where Ctrl-C ended its pictures: the one that is there stays */
  const struct plot_style *style; /* its scripts draw the pictures; NULL: there are none */
} report_options;

void report_console(const report *report, const report_options *options, FILE *out);
/* Whether the report's context, or that of a run in a merged report, has a key of this name in any case. */
bool report_json_has_context(const char *key);

/* Whether JSON, whose text is UTF-8, can have a key of this name. */
bool report_json_takes_key(const char *key);

/* Whether the table has a column of this name, beside those of the context. */
bool report_csv_has_column(const char *key);

bool report_json(const report *report, const report_options *options, FILE *out);
void report_csv(const report *report, const report_options *options, FILE *out);

/* All of it as one HTML file. */
void report_page(const report *report, const report_options *options, FILE *out);

/* Writes beside, then renames: path holds the old file or the whole new one. format: "json", "csv",
 * "console", "summary", "html". False, with the reason in words. */
bool report_write(const report *report, const report_options *options, const char *format, const char *path,
                  char *why, size_t why_size);

/* Reads a JSON report back, ours only; false, with the reason in words. */
bool report_read(report *report, const char *path, char *why, size_t why_size);

/* A dozen lines that a person understands. place: where it was written, or NULL. */
void report_summary(const report *report, const report_place *place, FILE *out);

typedef struct plot_style {
  const char *scripts;        /* the folder of the gnuplot files */
  const char *title;          /* of each picture; NULL: what it shows */
  double font_size;           /* in points, of all but title and captions, which follow it; 0: 17 */
  const char *const *formats; /* png, svg, pdf */
  size_t format_count;        /* 0: png and svg */
  bool bare;                  /* neither title nor captions: whoever shows it says them beside it */
} plot_style;

/* Draws all plots of a report into a folder with gnuplot. False, with the reason in words (gnuplot is missing, ...). */
bool report_plot(const report *report, const plot_style *style, const char *folder, char *why,
                 size_t why_size);

#endif
