/* What the three steps of an online softmax take, one tile of query rows against one of keys, for each instruction
 * set: products as a share of the multiply-add peak, the softmax as the number of multiply-adds for each score
 * that would take as long; all together as one after the other, or as a set has them that takes them at once. Keys and values
 * go round in the L2 cache. Peak and steps take turns; medians.
 * Usage: tile_steps */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/peak_loops.h"
#include "base/statistics.h"
#include "base/timer.h"
#include "variants/tile/tile.h"
#include "numbers.h"

/* Four tiles of keys and of values: more than L1 holds, and a quarter of a 1 MiB L2 at D = 128. */
enum { LARGEST_DIM = 128, KEY_TILES = 4, PASSES = 16, ROUNDS = 301, PEAK_ROUNDS = 4000 };

typedef enum step { CLOCK, SCORES, SOFTMAX, ACCUMULATE, STEPS } step;

/* Room for floats; keys of pairs take half of it. What is in it does not matter to the time. */
typedef struct tile_buffers {
  float queries[LARGEST_DIM * TILE_MAX_ROWS], output[LARGEST_DIM * TILE_MAX_ROWS];
  float keys[KEY_TILES][TILE_MOST_KEYS * LARGEST_DIM], values[KEY_TILES][TILE_MOST_KEYS * LARGEST_DIM];
  float scores[TILE_MOST_KEYS * TILE_MAX_ROWS], max[TILE_MAX_ROWS], sum[TILE_MAX_ROWS],
      rescale[TILE_MAX_ROWS];
} tile_buffers;

static void take_scores(const tile_kernels *kernels, tile_size size, tile_rows keys, tile_buffers *of) {
  if (kernels->scores_and_largest)
    kernels->scores_and_largest(size, of->queries, keys, NULL, of->scores, of->rescale);
  else
    kernels->scores(size, (tile_matrix){of->queries, size.rows}, keys, 1, NULL,
                    (tile_target){of->scores, size.rows});
}

/* Seconds of each step, of all tiles and passes. Reading the clock is a step too, for the others contain it. */
static void take_steps(const tile_kernels *kernels, int64_t D, tile_buffers *of, double seconds[STEPS]) {
  const int64_t rows = kernels->max_rows;
  const tile_size size = {rows, kernels->keys, D};
  /* From a row of values to the next, in operands. */
  const int64_t values = kernels->transposes_values ? kernels->keys + 32 : kernels->step * D;
  const tile_state state = {of->max, of->sum, of->rescale};
  memset(seconds, 0, STEPS * sizeof *seconds);
  for (int n = 0; n < PASSES * KEY_TILES; n++) {
    double at[STEPS + 1] = {wall_seconds(), wall_seconds()};
    take_scores(kernels, size, (tile_rows){of->keys[n % KEY_TILES], D}, of);
    at[2] = wall_seconds();
    (kernels->softmax_of_largest ? kernels->softmax_of_largest : kernels->softmax)(rows, kernels->keys,
                                                                                   of->scores, 1, state);
    at[3] = wall_seconds();
    kernels->accumulate(size, (tile_matrix){of->scores, rows}, (tile_rows){of->values[n % KEY_TILES], values},
                        of->rescale, NULL, (tile_target){of->output, rows});
    at[4] = wall_seconds();
    for (int s = 0; s < STEPS; s++) seconds[s] += at[s + 1] - at[s];
  }
  for (int s = SCORES; s < STEPS; s++) seconds[s] -= seconds[CLOCK];
}

/* Seconds of all steps at once, of as many scores. */
static double take_at_once(const tile_kernels *kernels, int64_t D, tile_buffers *of) {
  const tile_passage passage = {.keys = KEY_TILES * kernels->keys,
                                .depth = D,
                                .width = D,
                                .queries = of->queries,
                                .factor = 1,
                                .key = {of->keys, D},
                                .values = of->values,
                                .scores = of->scores,
                                .state = {of->max, of->sum, of->rescale},
                                .output = of->output};
  const double start = wall_seconds();
  for (int n = 0; n < PASSES; n++)
    for (int64_t r = 0; r < kernels->max_rows; r += TILE_CHUNK_ROWS) kernels->attend(1, &passage);
  return wall_seconds() - start;
}

static double multiply_adds_per_second(const peak_loops *loops) {
  const double start = wall_seconds();
  loops->multiply_add(PEAK_ROUNDS);
  return loops->flops_per_round / 2 * PEAK_ROUNDS / (wall_seconds() - start);
}

static void measure(const peak_loops *loops, int64_t D, tile_buffers *buffers) {
  static double figures[STEPS][ROUNDS]; /* all steps together in the place of the clock */
  const tile_kernels *kernels = tile_select(loops->isa, loops->type);
  const double scores = (double)PASSES * KEY_TILES * (double)kernels->keys * (double)kernels->max_rows,
               products = scores * (double)D;
  for (int r = 0; r < ROUNDS; r++) {
    double seconds[STEPS];
    const double peak = multiply_adds_per_second(loops);
    take_steps(kernels, D, buffers, seconds);
    figures[SCORES][r] = products / seconds[SCORES] / peak;
    figures[SOFTMAX][r] = seconds[SOFTMAX] * peak / scores;
    figures[ACCUMULATE][r] = products / seconds[ACCUMULATE] / peak;
    const double all = kernels->attend ? take_at_once(kernels, D, buffers)
                                       : seconds[SCORES] + seconds[SOFTMAX] + seconds[ACCUMULATE];
    figures[CLOCK][r] = 2 * products / all / peak;
  }
  printf("%-11s %4d %7d %9.3f %9.1f %12.3f %10.3f\n", loops->isa, (int)D, (int)kernels->max_rows,
         statistics_median(figures[SCORES], ROUNDS), statistics_median(figures[SOFTMAX], ROUNDS),
         statistics_median(figures[ACCUMULATE], ROUNDS), statistics_median(figures[CLOCK], ROUNDS));
}

int main(void) {
  peak_loops loops[PEAK_MAX_LOOPS];
  const size_t count = peak_loops_available(loops);
  tile_buffers *buffers = (tile_buffers *)(void *)numbers(sizeof *buffers / sizeof(float));
  printf("%-11s %4s %7s %9s %9s %12s %10s\n", "steps", "D", "rows", "scores", "softmax", "accumulate", "all");
  for (size_t n = 0; n < count; n++) {
    if (loops[n].type == ATTN_FLOAT16) continue; /* of elements in parts, which have steps at once alone */
    for (int64_t D = 64; D <= LARGEST_DIM; D *= 2) measure(&loops[n], D, buffers);
  }
  free(buffers);
  return 0;
}
