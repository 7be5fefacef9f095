/* Sweeps whose growth is known, with what spoils the times of real ones: for the tests of what is said of a sweep, and for
 * the table of how often that is true (scripts/method). */
#ifndef ATTN_TESTS_SIMULATED_SWEEPS_H
#define ATTN_TESTS_SIMULATED_SWEEPS_H

#include "measure/results.h"

/* One family: a nanosecond for each unit of work, which is T^power. */
typedef struct simulated_family {
  const char *name;
  double power;
  double constant;      /* tokens whose work is added at every T */
  bool logarithmic;     /* work is T^power log T */
  double step, step_at; /* so much slower, as a share, from this T on */
  double slow;          /* share of the runs that take three times as long */
  double drift;         /* of a speed that wanders, as a logarithm: its deviation */
  double factor;        /* of all times; 0: 1 */
} simulated_family;

/* Standard normal, as the sum of twelve uniforms; place: of the random sequence, moved on. */
double simulated_noise(uint64_t *place);
double simulated_uniform(uint64_t *place, double most);

/* A report with a point for each family and length, each named /full/B:1/H:4/Hkv:4/D:64, and room for so many
 * passes. report_destroy frees it. */
void simulated_create(report *report, const simulated_family *families, size_t count, const int64_t *lengths,
                      size_t length_count, size_t most_passes);

/* Draws the times of all points, in passes over all in random order, as a run measures them. noise: deviation of a
 * time's logarithm. */
void simulated_draw(report *report, const simulated_family *families, size_t passes, double noise,
                    uint64_t *place);

/* Fits the growths anew; every variant declares this exponent of time and a workspace of 1. */
void simulated_fit(report *report, int declared);

#endif
