/* The three steps of an online softmax in one (tile.h, attend), of every instruction set that has it, against plain
 * loops in double precision; and that what is beside a row changes no bit of it. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "near.h"
#include "variants/elements.h"
#include "variants/tile/tile.h"

static const int64_t CHUNK = TILE_CHUNK;
enum { ROWS = TILE_CHUNK_ROWS, CHUNKS = 5, KEYS = CHUNKS * TILE_CHUNK, DEPTH = 192, WIDTH = 80 };

/* Elements of bfloat16, or of float16, which are two of those: with room for both parts. */
enum { PARTS = 2 };
static uint16_t queries[ROWS * DEPTH], keys[KEYS * DEPTH], values[KEYS * WIDTH];
static float columns[PARTS * ROWS * DEPTH / 2], copies[PARTS * KEYS * WIDTH / 2],
    copied_keys[PARTS * KEYS * DEPTH / 2], scores[TILE_CHUNKS * TILE_CHUNK * ROWS * 3 / 2];
static attn_type type;
static uint64_t left_out[CHUNKS];

static uint16_t element_of(float x) {
  return type == ATTN_FLOAT16 ? attn_to_float16(x) : attn_to_bfloat16(x);
}
static double number_of(uint16_t x) {
  return (double)(type == ATTN_FLOAT16 ? attn_from_float16(x) : attn_from_bfloat16(x));
}

typedef struct state {
  float output[WIDTH * ROWS], max[ROWS], sum[ROWS];
} state;

/* What is asked of a kernel: sizes, what the rows see, and how large scores are in each chunk. */
typedef struct question {
  int64_t keys, depth, width;
  bool hides;
  float first[ROWS], end[ROWS], size[CHUNKS];
} question;

static uint32_t drawn(uint32_t *seed) { return *seed = *seed * 1664525u + 1013904223u; }
static float number(uint32_t *seed) { return (float)(int32_t)drawn(seed) * 0x1p-31f; }

static void with_each(void (*check)(const tile_kernels *)) {
  int count = 0;
  for (const char *const *name = tile_instruction_sets(); *name; name++)
    for (type = ATTN_BFLOAT16; type <= ATTN_FLOAT16; type++) {
      const tile_kernels *kernels =
          type == ATTN_FLOAT16 ? tile_select_parts(*name, type) : tile_select(*name, type);
      if (kernels && kernels->attend && strcmp(kernels->name, *name) == 0) check(kernels), count++;
    }
  assert_true(count >= 2); /* emulated, of both types */
}

/* The first features of queries are positive, and those of a chunk's keys as large as the question says. */
static void fill(const question *of, uint32_t seed) {
  for (int64_t r = 0; r < ROWS; r++)
    for (int64_t d = 0; d < of->depth; d++)
      queries[r * of->depth + d] = element_of(d == 0 ? 1 + (float)r / ROWS : number(&seed));
  for (int64_t j = 0; j < of->keys; j++) {
    for (int64_t d = 0; d < of->depth; d++)
      keys[j * of->depth + d] = element_of(d == 0 ? of->size[j / CHUNK] : number(&seed));
    for (int64_t e = 0; e < of->width; e++) values[j * of->width + e] = element_of(number(&seed));
  }
}

static void clear(state *of) {
  memset(of, 0, sizeof *of);
  for (int r = 0; r < ROWS; r++) of->max[r] = -INFINITY;
}

/* What the kernel is given for one tile of rows. */
static tile_passage passage_of(const tile_kernels *kernels, const question *of, state *to) {
  const void *row[ROWS];
  for (int64_t r = 0; r < ROWS; r++) row[r] = queries + r * of->depth;
  const int64_t parts = kernels->parts;
  const float factor = kernels->pack(ROWS, ROWS, of->depth, row, 0.37f, columns);
  for (int64_t c = 0; c < of->keys / CHUNK; c++)
    kernels->copy_values(CHUNK, of->width, (tile_rows){values + c * CHUNK * of->width, of->width},
                         copies + c * CHUNK * of->width * parts / 2, CHUNK * parts / 2);
  tile_rows key = {keys, of->depth};
  if (kernels->copy_keys) {
    kernels->copy_keys(of->keys, of->depth, key, copied_keys, of->depth);
    key = (tile_rows){copied_keys, 2 * of->depth};
  }
  memset(scores, 0xff, sizeof scores);
  return (tile_passage){.keys = of->keys,
                        .depth = of->depth,
                        .width = of->width,
                        .queries = columns,
                        .factor = factor,
                        .key = key,
                        .values = copies,
                        .first = of->hides ? of->first : NULL,
                        .end = of->hides ? of->end : NULL,
                        .left_out = left_out,
                        .scores = scores,
                        .state = {to->max, to->sum, NULL},
                        .output = to->output};
}

static void attend(const tile_kernels *kernels, const question *of, state *to) {
  const tile_passage passage = passage_of(kernels, of, to);
  kernels->attend(1, &passage);
}

static double score(const question *of, int64_t r, int64_t j) {
  double sum = 0;
  for (int64_t d = 0; d < of->depth; d++)
    sum += number_of(queries[r * of->depth + d]) * number_of(keys[j * of->depth + d]);
  return 0.37f * sum;
}

static bool sees(const question *of, int64_t r, int64_t j) {
  if (left_out[j / CHUNK] >> j % CHUNK & 1) return false;
  return !of->hides || ((float)j >= of->first[r] && (float)j < of->end[r]);
}

/* Weights are as large as the kernel's own maximum has them, and none is large. */
static void check_row(const tile_kernels *kernels, const question *of, const state *found, int64_t r) {
  double sum = 0, output[WIDTH] = {0}, sizes[WIDTH] = {0}, largest = -INFINITY;
  for (int64_t j = 0; j < of->keys; j++) {
    if (!sees(of, r, j)) continue;
    const double exponent = score(of, r, j), weight = exp2(exponent - (double)found->max[r]);
    largest = fmax(largest, exponent);
    sum += weight;
    for (int64_t e = 0; e < of->width; e++) {
      const double value = number_of(values[j * of->width + e]);
      output[e] += weight * value, sizes[e] += weight * fabs(value);
    }
  }
  if (largest == -INFINITY) {
    assert_true(found->max[r] == -INFINITY && found->sum[r] == 0);
    return;
  }
  if ((double)found->max[r] > largest + 1e-4 || (double)found->max[r] < largest - 8.001)
    fail_msg("%s: the maximum of row %d is %g where the largest is %g", kernels->name, (int)r,
             (double)found->max[r], largest);
  assert_near(kernels, "sum", (double)found->sum[r], sum, 2e-6 * (1 + fabs(largest)) * sum);
  for (int64_t e = 0; e < of->width; e++)
    assert_near(kernels, "output", (double)found->output[e * ROWS + r], output[e],
                (type == ATTN_FLOAT16 ? 0x1p-16 : 0x1p-8) * sizes[e]);
}

static void check_sums(const tile_kernels *kernels) {
  static const float sizes[][CHUNKS] = {
      {0}, {-9, 3, 1, 8, 4}, {0, 15, 30, 45, 60}, {60, 0, 60, -60, 61}, {-100, 5, 5, 40, 100}};
  static state found;
  for (int n = 0; n < 60; n++) {
    question of = {.keys = (1 + n % 5) * CHUNK,
                   .depth = (1 + n / 2 % 3) * CHUNK,
                   .width = n % 4 < 2 ? 16 : WIDTH,
                   .hides = n % 3 > 0};
    uint32_t seed = (uint32_t)n;
    memcpy(of.size, sizes[n / 5 % 5], sizeof of.size);
    for (int r = 0; r < ROWS; r++) {
      of.first[r] = n % 3 == 1 ? 0 : (float)(drawn(&seed) % (uint32_t)of.keys);
      of.end[r] = (float)(drawn(&seed) % (uint32_t)of.keys);
    }
    fill(&of, seed);
    clear(&found);
    attend(kernels, &of, &found);
    for (int64_t r = 0; r < ROWS; r++) check_row(kernels, &of, &found, r);
  }
}

static void sums_are_those_of_the_three_steps(void **state) {
  (void)state;
  with_each(check_sums);
}

/* Keys in one call or in several, and neighbours that make a chunk be weighed again, change no bit of a row. */
static void check_bits(const tile_kernels *kernels) {
  static state all, parts, other;
  question of = {.keys = KEYS, .depth = CHUNK, .width = WIDTH, .size = {0, 1, 0, 2, 0}};
  fill(&of, 5);
  clear(&all), clear(&parts), clear(&other);
  attend(kernels, &of, &all);
  question second = of;
  of.keys = 2 * CHUNK, second.keys = KEYS - of.keys;
  attend(kernels, &of, &parts);
  memmove(keys, keys + of.keys * of.depth, (size_t)(second.keys * of.depth) * sizeof *keys);
  memmove(values, values + of.keys * of.width, (size_t)(second.keys * of.width) * sizeof *values);
  attend(kernels, &second, &parts);
  assert_memory_equal(&all, &parts, sizeof all);
  of.keys = KEYS;
  fill(&of, 5);
  for (int64_t r = 1; r < ROWS; r += 2)
    for (int64_t d = 0; d < of.depth; d++) queries[r * of.depth + d] = element_of(20.0f * (float)r);
  attend(kernels, &of, &other);
  for (int r = 0; r < ROWS; r += 2) {
    assert_true(all.max[r] == other.max[r] && all.sum[r] == other.sum[r]);
    for (int64_t e = 0; e < of.width; e++)
      assert_true(all.output[e * ROWS + r] == other.output[e * ROWS + r]);
  }
}

static void a_row_has_its_bits_whatever_is_beside_it(void **state) {
  (void)state;
  with_each(check_bits);
}

/* What is left out is nothing to any row, in whichever chunk, weighed again too. */
static void check_left_out(const tile_kernels *kernels) {
  static state found;
  const question of = {.keys = KEYS, .depth = CHUNK, .width = WIDTH, .size = {3, 60, 0, 2, 40}};
  fill(&of, 3);
  for (int64_t c = 0; c < CHUNKS; c++) left_out[c] = UINT64_C(0x8000000100010001) << c;
  clear(&found);
  attend(kernels, &of, &found);
  for (int64_t r = 0; r < ROWS; r++) check_row(kernels, &of, &found, r);
  memset(left_out, 0, sizeof left_out);
}

static void keys_that_are_left_out_are_not_seen(void **state) {
  (void)state;
  with_each(check_left_out);
}

/* Tiles of one call, of which some have a single chunk, some rows that see nothing at first, and one is weighed again. */
static void check_together(const tile_kernels *kernels) {
  enum { TILES = 5 };
  static const int64_t chunks[TILES] = {2, 1, 1, CHUNKS, 1};
  static state alone[TILES], together[TILES];
  static float packed[TILES][PARTS * ROWS * DEPTH / 2];
  question of[TILES];
  tile_passage passages[TILES];
  for (int64_t depth = CHUNK; depth <= DEPTH; depth += CHUNK) {
    for (int n = 0; n < TILES; n++) {
      of[n] = (question){
          .keys = KEYS, .depth = depth, .width = WIDTH, .hides = n % 2 == 0, .size = {(float)n, 30, 0, 60}};
      for (int r = 0; r < ROWS; r++) of[n].first[r] = (float)(r * n), of[n].end[r] = (float)(KEYS - 3 * r);
      fill(&of[n], 7); /* the keys of the last stay */
    }
    for (int n = 0; n < TILES; n++) {
      of[n].keys = chunks[n] * CHUNK;
      for (int64_t d = 0; d < ROWS * depth; d++) queries[d] = element_of((float)((d + n) % 7 - 3) / 4);
      clear(&alone[n]), clear(&together[n]);
      attend(kernels, &of[n], &alone[n]);
      passages[n] = passage_of(kernels, &of[n], &together[n]);
      memcpy(packed[n], columns, sizeof columns);
      passages[n].queries = packed[n];
    }
    of[0].keys = KEYS; /* copies of all values */
    (void)passage_of(kernels, &of[0], &together[0]);
    kernels->attend(TILES, passages);
    assert_memory_equal(alone, together, sizeof alone);
  }
}

static void tiles_are_taken_together_as_each_alone(void **state) {
  (void)state;
  with_each(check_together);
}

/* NaN among the scores is the row's own, and an infinite key of a row that does not see it is nothing to it; one in two
 * parts is left out. */
static void check_nonfinite(const tile_kernels *kernels) {
  static state found;
  question of = {.keys = 3 * CHUNK, .depth = CHUNK, .width = 16, .hides = true};
  for (int r = 0; r < ROWS; r++) of.first[r] = 0, of.end[r] = r < 16 ? 70 : 3 * TILE_CHUNK;
  fill(&of, 9);
  for (int64_t d = 0; d < of.depth; d++) keys[80 * of.depth + d] = element_of(d % 2 ? INFINITY : NAN);
  clear(&found);
  if (kernels->parts > 1) left_out[1] = UINT64_C(1) << (80 - CHUNK);
  attend(kernels, &of, &found);
  for (int64_t r = 0; r < ROWS; r++)
    if (r < 16 || kernels->parts > 1)
      check_row(kernels, &of, &found, r);
    else
      assert_true(isnan(found.sum[r]) && isnan(found.output[r]) && found.max[r] < INFINITY);
  left_out[1] = 0;
}

static void hidden_keys_that_are_no_numbers_are_not_seen(void **state) {
  (void)state;
  with_each(check_nonfinite);
}

/* ---- through the variants ---- */

enum { HEADS = 3, QUERIES = 150, CACHE = 333, DIM = 64 };

extern const attn_variant attn_fused, attn_multi_query;

static uint16_t all_queries[HEADS * QUERIES * DIM], cache[2][CACHE * DIM];

static void solve(const attn_variant *variant, const attn_problem *problem, const char *isa, uint16_t *output,
                  float *lse) {
  attn_call call = {
      .size = sizeof call,
      .variant = variant,
      .problem = problem,
      .tensors = {.query = all_queries, .key = cache[0], .value = cache[1], .output = output, .lse = lse},
      .threads = 1,
      .isa = isa};
  call.workspace = aligned_alloc(64, variant->workspace_size(&call) / 64 * 64 + 64);
  assert_non_null(call.workspace);
  variant->run(&call);
  free(call.workspace);
}

/* fused has a head in each tile, multi_query stacks all of them: a tile then has fewer positions, and sees other keys. */
static void check_stacks(const tile_kernels *kernels) {
  static const attn_range bands[] = {
      {ATTN_UNLIMITED, 0}, {90, 0}, {7, 130}, {ATTN_UNLIMITED, ATTN_UNLIMITED}};
  static uint16_t alone[HEADS * QUERIES * DIM], stacked[HEADS * QUERIES * DIM];
  static float lse[2][HEADS * QUERIES];
  uint32_t seed = 1;
  for (size_t n = 0; n < sizeof all_queries / sizeof *all_queries; n++)
    all_queries[n] = element_of(3 * number(&seed));
  for (int64_t n = 0; n < 2 * (int64_t)CACHE * DIM; n++)
    cache[n % 2][n / 2] = element_of(n / 2 == (int64_t)100 * DIM ? INFINITY : number(&seed));
  for (size_t b = 0; b < sizeof bands / sizeof *bands; b++) {
    attn_problem problem = {.batch = 1, .query_heads = HEADS, .kv_heads = 1, .scale = 0.3, .offset = 160};
    problem.query_length = QUERIES, problem.key_length = CACHE;
    problem.head_dim = problem.value_dim = DIM;
    problem.left = bands[b].first, problem.right = bands[b].end;
    problem.query = problem.output = attn_packed(type, HEADS, QUERIES, DIM);
    problem.key = problem.value = attn_packed(type, 1, CACHE, DIM);
    problem.lse = attn_packed(ATTN_FLOAT32, HEADS, QUERIES, 1);
    solve(&attn_fused, &problem, kernels->name, alone, lse[0]);
    solve(&attn_multi_query, &problem, kernels->name, stacked, lse[1]);
    assert_memory_equal(alone, stacked, sizeof alone);
    assert_memory_equal(lse[0], lse[1], sizeof lse[0]);
  }
}

static void a_row_has_its_bits_however_heads_are_stacked(void **state) {
  (void)state;
  with_each(check_stacks);
}

/* Queries that are infinite, where all keys have the same sign: the row's scores are all -inf, or all inf. */
static void check_infinite_queries(const tile_kernels *kernels) {
  static const int64_t LOW = 3, HIGH = 70;
  static uint16_t found[QUERIES * DIM], expected[QUERIES * DIM];
  static float lse[2][QUERIES];
  uint32_t seed = 2;
  for (size_t n = 0; n < (size_t)QUERIES * DIM; n++) all_queries[n] = element_of(number(&seed));
  for (int64_t n = 0; n < 2 * (int64_t)CACHE * DIM; n++)
    cache[n % 2][n / 2] = element_of(n / 2 % DIM == 0 ? 1 : number(&seed));
  all_queries[LOW * DIM] = element_of(-INFINITY);
  all_queries[HIGH * DIM] = element_of(INFINITY);
  attn_problem problem = {.batch = 1, .query_heads = 1, .kv_heads = 1, .scale = 0.3};
  problem.query_length = QUERIES, problem.key_length = CACHE;
  problem.head_dim = problem.value_dim = DIM;
  problem.left = problem.right = ATTN_UNLIMITED;
  problem.query = problem.output = attn_packed(type, 1, QUERIES, DIM);
  problem.key = problem.value = attn_packed(type, 1, CACHE, DIM);
  problem.lse = attn_packed(ATTN_FLOAT32, 1, QUERIES, 1);
  solve(&attn_fused, &problem, kernels->name, found, lse[0]);
  solve(&attn_fused, &problem, "portable", expected, lse[1]);
  assert_memory_equal(found + LOW * DIM, expected + LOW * DIM, DIM * sizeof *found);
  assert_true(lse[0][LOW] == lse[1][LOW]);
  for (int64_t e = 0; e < DIM; e++) assert_true(isnan(number_of(found[HIGH * DIM + e])));
  for (int64_t r = 0; r < QUERIES; r++) assert_true(r == HIGH || isfinite(number_of(found[r * DIM])));
}

static void infinite_queries_are_as_elsewhere(void **state) {
  (void)state;
  with_each(check_infinite_queries);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_are_those_of_the_three_steps),
      cmocka_unit_test(a_row_has_its_bits_whatever_is_beside_it),
      cmocka_unit_test(keys_that_are_left_out_are_not_seen),
      cmocka_unit_test(tiles_are_taken_together_as_each_alone),
      cmocka_unit_test(hidden_keys_that_are_no_numbers_are_not_seen),
      cmocka_unit_test(a_row_has_its_bits_however_heads_are_stacked),
      cmocka_unit_test(infinite_queries_are_as_elsewhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
