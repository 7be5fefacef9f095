/* Who sees whom, and with what weight, in letters: a line for each query, or for several, down the page. */
#ifndef ATTN_HARNESS_SHOW_TEXT_H
#define ATTN_HARNESS_SHOW_TEXT_H

#include <stdio.h>

#include "show_cells.h"

typedef struct show_paper {
  FILE *out;
  int width; /* letters in a line */
  bool color;
} show_paper;

/* How many cells there is room for; as many as queries and keys at most, and at least one. */
void show_text_size(const show_paper *paper, int64_t queries, int64_t keys, int64_t *rows, int64_t *columns);

void show_text_pairs(const show_paper *paper, const show_cells *cells);
void show_text_tiles(const show_paper *paper, const show_tiles *tiles, const attn_problem *problem);
void show_text_weights(const show_paper *paper, const show_cells *cells);

#endif
