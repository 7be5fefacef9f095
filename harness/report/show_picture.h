/* Who sees whom, and with what weight, as pictures. */
#ifndef ATTN_HARNESS_SHOW_PICTURE_H
#define ATTN_HARNESS_SHOW_PICTURE_H

#include "drawing.h"
#include "show_cells.h"

typedef struct show_subject {
  const char *line; /* the problem's */
  const show_head *head;
  const show_tiles *tiles;
} show_subject;

/* How many cells a picture in this style has at most; as many as queries and keys at most. */
void show_picture_size(const plot_style *style, const attn_problem *problem, int64_t *rows, int64_t *columns);

/* Draws pattern.png and so on. */
bool show_picture_pairs(const drawing *drawing, const show_subject *of, const show_cells *cells);

/* Draws weights.png and so on. */
bool show_picture_weights(const drawing *drawing, const show_subject *of, const show_cells *cells);

#endif
