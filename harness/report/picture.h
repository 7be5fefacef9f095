/* What is drawn of a report: the lines of each picture, their labels and axes. plots.c writes them down for gnuplot. */
#ifndef ATTN_HARNESS_PICTURE_H
#define ATTN_HARNESS_PICTURE_H

#include "plot_labels.h"
#include "report.h"

typedef enum picture_kind { TIME, WORKSPACE, RATE, ERROR, ROOFLINE, PAIRS, PICTURES } picture_kind;

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

/* What its files are called: "time". */
const char *picture_name(picture_kind kind);

/* Numbers that a picture of this report takes at most. */
size_t picture_numbers(const report *report);

/* As many families as have room for their labels beside those of the machine. */
size_t picture_most_families(const plot_style *style);

/* The first `most` families of which something was timed. */
void picture_find_families(const report *report, families *families, size_t most);

/* Fills lines and axes; kind, report, families, numbers and the font's scale of the axes are there. False where there
 * is nothing of this kind to draw. */
bool picture_make(picture *picture);

/* The axis along which all families grow; SWEPT_BOTH also where they do not grow along the same, which mixed then says. */
sweep_axis picture_axis(const picture *picture, bool *mixed);

/* The queries of all points where these are the same and fewer than the keys; 0: they are not. */
int64_t picture_queries(const picture *picture);

/* The type of all points, or NULL. */
const char *picture_type(const picture *picture);

/* The peak of bfloat16 where it has one of its own and something in bfloat16 was measured. */
const machine_rate *picture_narrow_peak(const report *report);

#endif
