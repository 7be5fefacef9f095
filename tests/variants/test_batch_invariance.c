/* A row of output has the same bits whatever the batch is that it came in, and whichever other heads: alone, among
 * few, among many, with one thread and with several. Each call here is cut another way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/features.h"
#include "run/heap_calls.h"
#include "run/runner.h"
#include "variants/attention.h"
#include "variants/tile/tile.h"

enum { BATCH = 48, HEADS = 4, DIM = 16 };

extern const attn_variant attn_fused, attn_sliding_window, attn_linear, attn_grouped_query, attn_multi_query,
    attn_block_sparse;
static const attn_variant *const variants[] = {&attn_fused,         &attn_sliding_window, &attn_linear,
                                               &attn_grouped_query, &attn_multi_query,    &attn_block_sparse};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* What a batch of BATCH entries with HEADS query heads is asked. Where entries differ, each has an offset and a key
 * length of its own, and to every third one the band shows all keys. */
typedef struct shape {
  const char *name;
  int64_t kv_heads, query_length, key_length, left, right, offset;
  bool entries_differ;
} shape;

static const shape shapes[] = {
    {"decode", 4, 1, 8192, ATTN_UNLIMITED, ATTN_UNLIMITED, 0, false},
    {"decode, one key/value head", 1, 1, 8192, ATTN_UNLIMITED, ATTN_UNLIMITED, 0, false},
    {"decode, causal, entries differ", 2, 1, 8192, ATTN_UNLIMITED, 0, 8191, true},
    {"decode in a window", 2, 1, 8192, 3000, 0, 7000, false},
    {"few rows", 2, 7, 3001, ATTN_UNLIMITED, 0, 2994, false},
    {"few rows, one key/value head", 1, 5, 2600, ATTN_UNLIMITED, 0, 2595, true},
    {"full, keys in parts", 2, 19, 4100, ATTN_UNLIMITED, ATTN_UNLIMITED, 0, false},
    {"window, keys in parts", 4, 20, 5000, 2601, 3, 4980, false},
    {"causal", 4, 200, 200, ATTN_UNLIMITED, 0, 0, false},
    {"causal, one key/value head", 1, 333, 333, ATTN_UNLIMITED, 0, 0, false},
    {"causal, entries differ", 2, 333, 300, ATTN_UNLIMITED, 0, -33, true},
    {"full", 2, 300, 290, ATTN_UNLIMITED, ATTN_UNLIMITED, 0, false},
    {"window", 4, 333, 333, 50, 0, 0, false},
    {"window, one key/value head", 1, 333, 333, 77, 9, 0, true},
    {"causal, long", 4, 150, 1100, ATTN_UNLIMITED, 0, 950, false},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct batch {
  attn_problem problem;
  attn_tensors tensors;
  int64_t offsets[BATCH], lengths[BATCH];
} batch;

static float *numbers(int64_t count, uint32_t seed) {
  float *x = malloc((size_t)count * sizeof *x);
  assert_non_null(x);
  for (int64_t n = 0; n < count; n++) {
    seed = seed * 1664525u + 1013904223u;
    x[n] = (float)(int32_t)seed * 0x1p-30f;
  }
  return x;
}

/* Keys and values of long caches are shared by all entries, which saves memory and hides nothing. */
static void make_batch(const shape *of, batch *all) {
  attn_problem *p = &all->problem;
  *p = (attn_problem){.batch = BATCH,
                      .query_heads = HEADS,
                      .kv_heads = of->kv_heads,
                      .query_length = of->query_length,
                      .key_length = of->key_length,
                      .head_dim = DIM,
                      .value_dim = DIM,
                      .scale = 1 / sqrt(DIM),
                      .left = of->left,
                      .right = of->right,
                      .offset = of->offset};
  p->query = p->output = attn_packed(ATTN_FLOAT32, HEADS, p->query_length, DIM);
  p->key = p->value = attn_packed(ATTN_FLOAT32, p->kv_heads, p->key_length, DIM);
  p->lse = attn_packed(ATTN_FLOAT32, HEADS, p->query_length, 1);
  if (p->key_length > 1000) p->key.batch = p->value.batch = 0;
  for (int64_t b = 0; b < BATCH; b++) {
    all->offsets[b] = b % 3 == 0 ? p->key_length : of->offset - b;
    all->lengths[b] = b % 5 == 0 ? p->key_length : p->key_length - 13 * b % p->key_length;
  }
  if (of->entries_differ) p->offsets = all->offsets, p->key_lengths = all->lengths;
  const int64_t queries = BATCH * p->query.batch,
                keys = BATCH * attn_packed(ATTN_FLOAT32, p->kv_heads, p->key_length, DIM).batch;
  all->tensors = (attn_tensors){.query = numbers(queries, 1),
                                .key = numbers(keys, 2),
                                .value = numbers(keys, 3),
                                .output = numbers(queries, 4),
                                .lse = numbers(queries / DIM, 5)};
}

static bool same_bits(const void *a, const void *b, size_t bytes) { return memcmp(a, b, bytes) == 0; }

static void free_batch(batch *all) {
  const void *const tensors[] = {all->tensors.query, all->tensors.key, all->tensors.value,
                                 all->tensors.output, all->tensors.lse};
  for (size_t n = 0; n < sizeof tensors / sizeof *tensors; n++) free((void *)(uintptr_t)tensors[n]);
}

static void solve(const attn_variant *variant, const attn_problem *problem, const attn_tensors *tensors,
                  int threads, const char *isa) {
  attn_call call = {.size = sizeof call,
                    .variant = variant,
                    .problem = problem,
                    .tensors = *tensors,
                    .threads = threads,
                    .isa = isa};
  call.workspace = aligned_alloc(64, variant->workspace_size(&call) / 64 * 64 + 64);
  assert_non_null(call.workspace);
  variant->run(&call);
  free(call.workspace);
}

/* Some heads of some entries, alone. */
typedef struct selection {
  int64_t first_entry, entries;
  int64_t first_head, heads, kv_heads; /* query heads, and the key/value heads that they read */
} selection;

/* Solves a selection alone, and holds it to the outputs of the whole batch. */
static void hold(const attn_variant *variant, const shape *of, const batch *all, selection part, int threads,
                 const char *isa) {
  attn_problem problem = all->problem;
  const int64_t first_kv_head = part.first_head / (HEADS / problem.kv_heads);
  const int64_t b = part.first_entry, rows = problem.query_length;
  problem.batch = part.entries;
  problem.query_heads = part.heads;
  problem.kv_heads = part.kv_heads;
  if (problem.offsets) problem.offsets += b;
  if (problem.key_lengths) problem.key_lengths += b;
  problem.output = attn_packed(ATTN_FLOAT32, part.heads, rows, DIM);
  problem.lse = attn_packed(ATTN_FLOAT32, part.heads, rows, 1);
  float *output = numbers(part.entries * problem.output.batch, 6),
        *lse = numbers(part.entries * problem.lse.batch, 7);
  if (problem.function != ATTN_SOFTMAX) problem.lse = (attn_layout){0};
  const attn_tensors tensors = {
      .query =
          (const float *)all->tensors.query + b * problem.query.batch + part.first_head * problem.query.head,
      .key = (const float *)all->tensors.key + b * problem.key.batch + first_kv_head * problem.key.head,
      .value =
          (const float *)all->tensors.value + b * problem.value.batch + first_kv_head * problem.value.head,
      .output = output,
      .lse = lse};
  solve(variant, &problem, &tensors, threads, isa);
  for (int64_t entry = 0; entry < part.entries; entry++)
    for (int64_t head = 0; head < part.heads; head++)
      for (int64_t i = 0; i < rows; i++) {
        const float *own = output + ((entry * part.heads + head) * rows + i) * DIM;
        const int64_t row = ((b + entry) * HEADS + part.first_head + head) * rows + i;
        const bool same_output =
            same_bits(own, (const float *)all->tensors.output + row * DIM, DIM * sizeof *own);
        const bool same_lse = !problem.lse.type || same_bits(lse + (entry * part.heads + head) * rows + i,
                                                             all->tensors.lse + row, sizeof *lse);
        if (!same_output || !same_lse)
          fail_msg("%s on %s, %s, %d threads: row %d of head %d of entry %d has other bits among %d heads of "
                   "%d entries",
                   variant->name, isa, of->name, threads, (int)i, (int)(part.first_head + head),
                   (int)(b + entry), (int)part.heads, (int)part.entries);
      }
  free(output);
  free(lse);
}

/* Calls a check for each variant, shape and instruction set, with the outputs of the whole batch. */
static void with_each(void (*check)(const attn_variant *, const shape *, const batch *, const char *isa)) {
  /* Under a sanitizer, which looks for other things, some have to do. */
  for (int s = 0; s < SHAPES; s += heap_calls_are_seen() ? 1 : 5) {
    batch all;
    make_batch(&shapes[s], &all);
    for (int v = 0; v < VARIANTS; v++)
      for (const char *const *isa = tile_instruction_sets(); *isa; isa++) {
        if (tile_refusal(*isa, ATTN_FLOAT32)) continue;
        all.problem.function = variants[v]->function;
        all.problem.lse.type = variants[v]->function == ATTN_SOFTMAX ? ATTN_FLOAT32 : ATTN_ABSENT;
        all.problem.features = features_of(&all.problem);
        if (runner_refusal(variants[v], &all.problem)) continue;
        solve(variants[v], &all.problem, &all.tensors, 2, *isa);
        check(variants[v], &shapes[s], &all, *isa);
      }
    free_batch(&all);
  }
}

static void check_batch(const attn_variant *variant, const shape *of, const batch *all, const char *isa) {
  const int64_t kv_heads = all->problem.kv_heads;
  hold(variant, of, all, (selection){0, 1, 0, HEADS, kv_heads}, 1, isa);
  hold(variant, of, all, (selection){17, 1, 0, HEADS, kv_heads}, 3, isa);
  hold(variant, of, all, (selection){BATCH - 1, 1, 0, HEADS, kv_heads}, 2, isa);
  hold(variant, of, all, (selection){9, 5, 0, HEADS, kv_heads}, 2, isa);
}

static void the_batch_changes_no_bit_of_a_row(void **state) {
  (void)state;
  with_each(check_batch);
}

/* One key/value head with its group. */
static void check_heads(const attn_variant *variant, const shape *of, const batch *all, const char *isa) {
  const int64_t kv_heads = all->problem.kv_heads, group = HEADS / kv_heads;
  hold(variant, of, all, (selection){1, 1, 0, group, 1}, 1, isa);
  hold(variant, of, all, (selection){21, 2, HEADS - group, group, 1}, 3, isa);
  hold(variant, of, all, (selection){0, BATCH, HEADS - group, group, 1}, 2, isa);
  /* These take query heads one by one, whatever they share. */
  if (variant == &attn_fused || variant == &attn_sliding_window)
    hold(variant, of, all, (selection){30, 1, 2, 1, 1}, 2, isa);
}

static void other_heads_change_no_bit_of_a_row(void **state) {
  (void)state;
  with_each(check_heads);
}

/* A row of a full tile has the bits that it has in any other: so whatever is stacked, and however narrow tiles are.
 * But where all that a tile sees may be a single step: with other rows beside it, that may be two. */
static void check_tiles(const attn_variant *variant, const shape *of, const batch *all, const char *isa) {
  enum { MOST_FEW_ROWS = 8 };
  const bool narrow = of->left < TILE_KEYS + TILE_MAX_ROWS;
  if (variant->function != ATTN_SOFTMAX || of->query_length <= MOST_FEW_ROWS || narrow) return;
  hold(&attn_fused, of, all, (selection){3, 1, 0, HEADS, all->problem.kv_heads}, 2, isa);
}

static void full_tiles_give_a_row_the_same_bits_whichever_it_is_in(void **state) {
  (void)state;
  with_each(check_tiles);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_batch_changes_no_bit_of_a_row),
      cmocka_unit_test(other_heads_change_no_bit_of_a_row),
      cmocka_unit_test(full_tiles_give_a_row_the_same_bits_whichever_it_is_in),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
