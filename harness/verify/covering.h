/* Covering arrays of strength two: rows that choose a level of every factor, so that any two levels of different
 * factors that can stand together do so in some row. Faults that need one or two things to meet are nearly all there
 * are (Kuhn, Wallace and Gallo 2004); all of them meet here in few rows. */
#ifndef ATTN_HARNESS_COVERING_H
#define ATTN_HARNESS_COVERING_H

#include <stdbool.h>
#include <stdint.h>

/* The most factors, levels of all of them together, and rows. */
enum { COVERING_FACTORS = 28, COVERING_LEVELS = 256, COVERING_ROWS = 2048, COVERING_OPEN = -1 };

typedef struct covering_design {
  int factors;
  int levels
      [COVERING_FACTORS]; /* of each factor; level 0 is its plainest, taken where nothing asks for another */

  /* Rows come in phases, and each covers all that its rows can. Says whether these levels, of which some are open, can
   * be completed to a row of the phase; the last phase takes every row that there is. */
  int phases;
  bool (*can_be)(const int *levels, int phase);
} covering_design;

typedef struct covering {
  int count;
  int rows[COVERING_ROWS][COVERING_FACTORS];
  int pairs;    /* of levels of different factors */
  int possible; /* of these, those that can stand together in a row: all of them do */
} covering;

/* Always the same rows. */
void covering_make(const covering_design *design, covering *made);

#endif
