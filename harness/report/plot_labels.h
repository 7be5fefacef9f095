/* Lines of a picture and its axes, and places for the names at the ends of the lines. picture.c says what is drawn, plots.c
 * writes it down for gnuplot. */
#ifndef ATTN_HARNESS_PLOT_LABELS_H
#define ATTN_HARNESS_PLOT_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLOT_LABEL_BYTES = 160, PLOT_MAX_LINES = 24, PLOT_MAX_LABELS = PLOT_MAX_LINES + 8 };

/* One line of a picture. */
typedef struct plot_line {
  int style; /* colour and shape, counted from 1, the same in every picture */
  int turn;  /* how often all styles were taken before it: those of a second turn are dashed */
  char label[PLOT_LABEL_BYTES]; /* gnuplot's enhanced text */
  size_t count;
  double *x, *y;      /* [count], x ascending */
  double *low, *high; /* [count], of the interval of y */
  /* Where the label goes, as shares of the plot's width and height; 0, 0 is the lower left. */
  double end_x, end_y, label_x, label_y;
} plot_line;

typedef struct plot_axes {
  double x_low, x_high, y_low, y_high;
  bool y_logarithmic; /* x always is */
  double width;       /* of the plot, as a share of the picture's */
  double left;        /* where it begins, likewise */
  double scale;       /* of the font against that of scripts/plots/canvas.gp; 0: the same */
} plot_axes;

/* Shares of the plot's width and height. */
double plot_share_x(const plot_axes *axes, double x);
double plot_share_y(const plot_axes *axes, double y);

/* How high and wide a label is, as shares of the plot's height and of the picture's width. */
double plot_label_height(const plot_axes *axes);
double plot_label_width(const plot_axes *axes, const char *label);

/* Fills end and label of every line: beside the end of the line where there is room and no other line
 * passes, else in a column on the right; never one on another. */
void plot_place_labels(plot_line *lines, size_t count, const plot_axes *axes);

/* For each of the texts, parts between '/', writes the variant, and of the rest what tells it apart from
 * the other families of that variant: "fused", or "fused causal" where there is a "fused full" too. */
void plot_name_families(const char *const *families, size_t count, char names[][PLOT_LABEL_BYTES]);

/* What all families have in common, "B 1, H 8, D 64", and what single ones have instead,
 * "multi_query Hkv 1". */
void plot_common_parts(const char *const *families, char names[][PLOT_LABEL_BYTES], size_t count, char *text,
                       size_t size);
void plot_special_parts(const char *const *families, char names[][PLOT_LABEL_BYTES], size_t count, char *text,
                        size_t size);

#endif
