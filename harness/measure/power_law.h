/* The law y = constant + coefficient x^exponent, fitted to repeated measurements or to exact numbers. */
#ifndef ATTN_HARNESS_POWER_LAW_H
#define ATTN_HARNESS_POWER_LAW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/statistics.h"

typedef struct power_law {
  double constant, coefficient, exponent;
} power_law;

typedef struct power_fit {
  power_law law;
  interval exponent; /* estimate NaN: fewer than three different x */
  double varying;    /* half of the interval, as far as noise explains it */
  size_t first;      /* the points from this one on are those of the fit */
} power_fit;

double power_law_at(power_law law, double x);

/* y is [blocks][points], positive; x ascends. The interval, of 95 %, holds what varies from block to block and what
 * bends the curve in all of them; with one block only the latter. Where y does not grow, the law is that of a constant. */
power_fit power_law_fit(const double *x, size_t points, const double *y, size_t blocks);

/* The degree of the polynomial in x, at most 3, that exact numbers y > 0 follow within a thousandth over the top five
 * octaves: the lowest that does and has a point more than it needs. -1: none. */
int power_law_degree(const double *x, const double *y, size_t points);

#endif
