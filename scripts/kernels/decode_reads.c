/* Decoding against reading: how much of the time of one query position per head, with a long cache of keys and
 * values, reading these bytes once would take with the loops of the bandwidth peak. Both read the same memory in
 * turn, for on a shared machine the bandwidth of two allocations can differ by half. Prints for each shape the rate of
 * the reads, and the median of the ratios with its 95 % interval. Usage: decode_reads THREADS */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine/peak_loops.h"
#include "base/statistics.h"
#include "base/text.h"
#include "base/timer.h"
#include "problem/types.h"
#include "run/runner.h"
#include "variants/elements.h"
#include "numbers.h"

enum { ROUNDS = 61, LENGTH = 65536, DIM = 128 };

extern const attn_variant attn_fused, attn_grouped_query;

static double read_seconds(const peak_loops *loops, const void *x, size_t all, int threads) {
  const size_t bytes = all / (size_t)threads / PEAK_ROUND_BYTES * PEAK_ROUND_BYTES;
  const double start = wall_seconds();
#pragma omp parallel num_threads(threads)
  loops->read((const char *)x + (size_t)omp_get_thread_num() * bytes, bytes / PEAK_ROUND_BYTES, bytes / 4,
              PEAK_STREAM_BYTES);
  return wall_seconds() - start;
}

/* Numbers of a type, each in the place of a float32 that was read before. */
static float *numbers_of(attn_type type, size_t count) {
  float *x = numbers(count);
  for (size_t n = 0; type != ATTN_FLOAT32 && n < count; n++) attn_store(x, type, (int64_t)n, x[n]);
  return x;
}

static void compare(const attn_variant *variant, attn_type type, int heads, int kv_heads,
                    const peak_loops *loops, int threads) {
  const element_type *element = element_type_of(type);
  const size_t rows = (size_t)heads * DIM, cache = (size_t)kv_heads * LENGTH * DIM;
  const size_t bytes = cache * element->bytes;
  attn_problem problem = {.batch = 1, .query_heads = heads, .kv_heads = kv_heads, .scale = 1 / sqrt(DIM)};
  problem.query_length = 1;
  problem.key_length = LENGTH;
  problem.head_dim = problem.value_dim = DIM;
  problem.left = problem.right = ATTN_UNLIMITED;
  problem.query = problem.output = attn_packed(type, heads, 1, DIM);
  problem.key = problem.value = attn_packed(type, kv_heads, LENGTH, DIM);
  float *query = numbers_of(type, rows), *key = numbers_of(type, cache), *value = numbers_of(type, cache);
  float *output = numbers(rows);
  const run_setup setup = {.variant = variant, .threads = threads};
  float *workspace = numbers(runner_workspace_bytes(&setup, &problem) / sizeof(float) + 1);
  const attn_tensors tensors = {.query = query, .key = key, .value = value, .output = output};
  const attn_call call = runner_call(&setup, &problem, &tensors, workspace);
  double shares[ROUNDS], reads[ROUNDS];
  for (int r = 0; r < ROUNDS; r++) {
    const double start = wall_seconds();
    runner_invoke(&call);
    const double run = wall_seconds() - start;
    reads[r] = read_seconds(loops, key, bytes, threads) + read_seconds(loops, value, bytes, threads);
    shares[r] = reads[r] / run;
  }
  const interval share = statistics_median_interval(shares, ROUNDS, 0.95);
  const double rate = 2 * (double)bytes / statistics_median(reads, ROUNDS);
  char name[80], spread[32];
  snprintf(name, sizeof name, "%s, %s, H %d, Hkv %d, D %d, Tk %d, %d thread%s, %.0f GB/s", variant->name,
           element->name, heads, kv_heads, DIM, LENGTH, threads, threads == 1 ? "" : "s", rate / 1e9);
  snprintf(spread, sizeof spread, "[%.3f, %.3f]", share.low, share.high);
  printf("%-62s %6.3f %-16s\n", name, share.estimate, spread);
  float *const all[] = {query, key, value, output, workspace};
  for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
}

int main(int count, char **argument) {
  peak_loops loops[PEAK_MAX_LOOPS];
  const peak_loops *widest = &loops[peak_loops_available(loops) - 1];
  int64_t threads = 0;
  const char *end = "";
  if (count != 2 || !text_integer(argument[1], 1, 4096, &end, &threads) || *end) {
    fprintf(stderr, "usage: decode_reads THREADS, from 1\n");
    return 2;
  }
  static const attn_type types[] = {ATTN_FLOAT32, ATTN_BFLOAT16, ATTN_FLOAT16};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    compare(&attn_grouped_query, types[t], 32, 8, widest, (int)threads);
    if (types[t] == ATTN_BFLOAT16) compare(&attn_grouped_query, types[t], 64, 8, widest, (int)threads);
    compare(&attn_fused, types[t], 8, 8, widest, (int)threads);
  }
  compare(&attn_fused, ATTN_FLOAT32, 1, 1, widest, (int)threads);
  return 0;
}
