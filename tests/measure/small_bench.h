/* Small problems in a bench, and the formula that solves them. */
#ifndef ATTN_TESTS_SMALL_BENCH_H
#define ATTN_TESTS_SMALL_BENCH_H

#include "measure/bench.h"

/* The formula, for one thread; nothing but a query, a key and a value head each, packed. */
void small_bench_solve(const attn_call *call);

#define SMALL_BENCH_VARIANT(called, with, ...)                                                               \
  static const attn_variant called = {.name = #called,                                                       \
                                      .summary = "of a test",                                                \
                                      .types =                                                               \
                                          1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16 | 1u << ATTN_FLOAT16,     \
                                      .time_exponent = 2,                                                    \
                                      .run = with,                                                           \
                                      __VA_ARGS__}

/* As short as it can be. */
extern const bench_options small_bench_options;

/* Adds the variant at so many lengths, from 32 in doublings, to the points; how many there are then. */
size_t small_bench_add(bench_point *points, size_t count, const attn_variant *variant, int lengths);

/* bench_run, which must measure something. */
void small_bench_run(const bench_point *points, size_t count, const bench_options *options, report *report);

#endif
