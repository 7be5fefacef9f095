/* Sliding window (Beltagy et al. 2020, Longformer; Jiang et al. 2023, Mistral): each query sees only the W
 * keys around it, so time is O(T W) and nothing outside the band is read. It is fused on a band, but with
 * tiles cut to the window: R rows together see W + R - 1 keys of which each row needs W, so a narrow
 * window wants few rows, and a wide one the full tile that keeps the multiply-adds fed. */
#include "attention.h"
#include "tile/schedule.h"

/* Multiply-adds a cycle that a register tile of so many vectors reaches, as a share of the full tile: one vector
 * of rows needs a load for every multiply-add (measured on AVX-512). */
static double tile_speed(int64_t vectors, int64_t full) {
  return vectors == full ? 1.0 : vectors == 1 ? 0.55 : vectors == 2 ? 0.85 : 0.985;
}

static schedule_shape choose(const attn_problem *problem, const tile_kernels *kernels) {
  schedule_shape best = {.heads = 1, .rows = kernels->max_rows};
  if (problem->left >= problem->key_length || problem->right >= problem->key_length) return best;
  const double window = (double)(problem->left + problem->right + 1);
  double best_speed = 0;
  for (int64_t rows = kernels->lanes; rows <= kernels->max_rows; rows += kernels->lanes) {
    const double speed = tile_speed(rows / kernels->lanes, kernels->max_rows / kernels->lanes) * window /
                         (window + (double)rows - 1);
    if (speed > best_speed) {
      best_speed = speed;
      best.rows = rows;
    }
  }
  return best;
}

static size_t workspace_size(const attn_call *call) { return schedule_workspace_size(call, choose); }

static void run(const attn_call *call) { schedule_run(call, choose); }

const attn_variant attn_sliding_window = {
    .name = "sliding_window",
    .summary = "softmax over a band, with tiles cut to the window: O(T W)",
    .function = ATTN_SOFTMAX,
    .features = SCHEDULE_FEATURES,
    .types = SCHEDULE_TYPES,
    .traits = ATTN_BATCH_INVARIANT,
    .time_exponent = 1,
    .workspace_exponent = 0,
    .showcase = "window:512",
    .unsupported = schedule_unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
