/* Inputs: what the layouts, fills and masks of a problem promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "problem/check.h"
#include "problem/inputs.h"
#include "problem/random_problem.h"

static workload parse(const char *text) {
  workload w;
  char why[512] = "";
  if (!workload_parse(text, &w, why, sizeof why)) fail_msg("'%s': %s", text, why);
  return w;
}

static void create(inputs *in, const char *text) {
  const workload w = parse(text);
  char why[512] = "";
  if (!inputs_create(in, &w, false, why, sizeof why)) fail_msg("'%s': %s", text, why);
}

static void inputs_do_not_depend_on_threads_or_layout(void **state) {
  (void)state;
  const int threads = omp_get_max_threads();
  for (int fill = FILL_UNIFORM; fill <= FILL_NONFINITE; fill++) {
    inputs one, three, other_layout;
    workload w = parse("causal/B:2/H:4/Hkv:2/D:20/Tq:150/Tk:170/mask:bq/bias:h");
    w.fill = (workload_fill)fill;
    char why[256];
    omp_set_num_threads(1);
    assert_true(inputs_create(&one, &w, false, why, sizeof why));
    omp_set_num_threads(3);
    assert_true(inputs_create(&three, &w, true, why, sizeof why));
    assert_true(inputs_checksum(&one) == inputs_checksum(&three));
    w.layout = LAYOUT_PADDED;
    assert_true(inputs_create(&other_layout, &w, false, why, sizeof why));
    const attn_layout near = one.problem.key, far = other_layout.problem.key;
    for (int64_t j = 0; j < 170; j++)
      assert_memory_equal((const float *)one.tensors.key + near.batch + near.head + j * near.position,
                          (const float *)other_layout.tensors.key + far.batch + far.head + j * far.position,
                          80);
    inputs_destroy(&one);
    inputs_destroy(&three);
    inputs_destroy(&other_layout);
  }
  omp_set_num_threads(threads);
}

/* Where the inputs of a sound line lie. */
static attn_problem problem_of(const char *text, workload *w) {
  char why[256];
  *w = parse(text);
  const attn_problem p = workload_problem(w);
  if (!check_problem(&p, why, sizeof why)) fail_msg("%s: %s", text, why);
  return p;
}

static void a_padded_layout_gives_tensors_of_one_width_other_strides(void **state) {
  (void)state;
  workload w;
  const attn_problem p =
      problem_of("full/B:2/H:3/D:16/T:20/mask:bhq/bias:bhq/sink/lse/weights/layout:padded", &w);
  for (tensor_id a = 0; a < TENSORS; a++)
    for (tensor_id b = 0; b < a; b++) {
      const attn_layout *one = tensor_layout(&p, a), *other = tensor_layout(&p, b);
      if (!one->type || !other->type || a == TENSOR_SINK) continue;
      if (tensor_shape_of(&p, a).width != tensor_shape_of(&p, b).width) continue;
      assert_true(one->batch != other->batch && one->head != other->head && one->position != other->position);
    }
}

/* A kernel that looks at the strides of one tensor and takes them for those of another meets each case. */
static void a_mixed_layout_packs_one_tensor_and_not_the_other(void **state) {
  (void)state;
  bool packed_alone[TENSORS][TENSORS] = {{false}};
  for (int seed = 1; seed <= 40; seed++) {
    char text[128];
    workload w;
    snprintf(text, sizeof text, "full/B:2/H:3/D:16/T:20/mask:bhq/bias:bhq/lse/weights/layout:mixed/seed:%d",
             seed);
    const attn_problem p = problem_of(text, &w);
    for (tensor_id a = 0; a < TENSOR_SINK; a++)
      for (tensor_id b = 0; b < TENSOR_SINK; b++) {
        const int64_t one = tensor_layout(&p, a)->position, other = tensor_layout(&p, b)->position;
        packed_alone[a][b] |= one == tensor_shape_of(&p, a).width && other != tensor_shape_of(&p, b).width;
      }
  }
  for (tensor_id a = 0; a < TENSOR_SINK; a++)
    for (tensor_id b = 0; b < TENSOR_SINK; b++) assert_true(a == b || packed_alone[a][b]);
}

static double score(const inputs *in, int64_t i, int64_t j) {
  const attn_problem *p = &in->problem;
  const float *q = (const float *)in->tensors.query + i * p->query.position;
  const float *k = (const float *)in->tensors.key + j * p->key.position;
  double dot = 0;
  for (int64_t d = 0; d < p->head_dim; d++) dot += (double)q[d] * k[d];
  return p->scale * dot;
}

static void fills_give_the_scores_that_they_promise(void **state) {
  (void)state;
  inputs in;
  create(&in, "full/H:1/D:64/T:200/fill:rising");
  for (int64_t j = 1; j < 200; j++) assert_true(score(&in, 7, j) > score(&in, 7, j - 1));
  inputs_destroy(&in);
  create(&in, "full/H:1/D:64/T:200/fill:falling/scale:-2");
  for (int64_t j = 1; j < 200; j++) assert_true(score(&in, 7, j) < score(&in, 7, j - 1));
  inputs_destroy(&in);
  create(&in, "full/H:1/D:64/T:200/fill:equal");
  for (int64_t j = 1; j < 200; j++) assert_true(score(&in, 7, j) == score(&in, 7, 0));
  inputs_destroy(&in);
  create(&in, "full/H:1/D:64/T:200/fill:dominant");
  double first = -INFINITY, second = -INFINITY, largest = 0;
  for (int64_t j = 0; j < 200; j++) {
    double s = score(&in, 7, j);
    if (s > first)
      second = first, first = s;
    else if (s > second)
      second = s;
  }
  assert_true(first > second + 20);
  inputs_destroy(&in);
  create(&in, "full/H:1/D:64/T:200/fill:saturated");
  for (int64_t i = 0; i < 200; i++)
    for (int64_t j = 0; j < 200; j++) largest = fmax(largest, fabs(score(&in, i, j)));
  assert_true(largest > 8e3 && largest < 2e4);
  inputs_destroy(&in);
}

/* Powers of two, a quarter of the largest float among them and as low ones, and of each row the largest is shared. */
static void scores_of_powers_reach_the_largest_of_either_sign(void **state) {
  (void)state;
  inputs in;
  double lowest_top = 0, highest_top = 0;
  int shared = 0;
  create(&in, "full/H:1/D:20/T:200/fill:powers");
  for (int64_t i = 0; i < 200; i++) {
    double top = -INFINITY;
    int count = 0, exponent;
    for (int64_t j = 0; j < 200; j++) {
      const double s = score(&in, i, j);
      assert_true(frexp(fabs(s), &exponent) == 0.5);
      count = s > top ? 1 : count + (s == top);
      top = fmax(top, s);
    }
    shared += count > 1;
    lowest_top = fmin(lowest_top, top);
    highest_top = fmax(highest_top, top);
  }
  assert_true(lowest_top < -1e36 && highest_top > 1e37 && shared > 190);
  inputs_destroy(&in);
}

/* Where the scale or a bias rounds, they are kept to where the bound still sees something. */
static void scores_of_powers_that_round_are_smaller(void **state) {
  (void)state;
  static const char *const lines[] = {"full/H:1/D:20/T:50/fill:powers/scale:0.3",
                                      "full/H:1/D:20/T:50/fill:powers/bias:hq",
                                      "full/H:1/D:20/T:50/fill:powers/softcap:5"};
  for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
    inputs in;
    create(&in, lines[n]);
    for (int64_t i = 0; i < 50; i++)
      for (int64_t j = 0; j < 50; j++) assert_true(fabs(score(&in, i, j)) < 0x1p15);
    inputs_destroy(&in);
  }
}

/* The weights are powers of two, each key has a value in one feature, and few queries differ. */
static bool same_numbers(const float *a, const float *b, int count) {
  int n = 0;
  while (n < count && a[n] == b[n]) n++;
  return n == count;
}

static void an_exact_fill_is_exact(void **state) {
  (void)state;
  inputs in;
  create(&in, "full/B:1/H:1/D:20/Dv:12/Tq:50/Tk:9000/bias:q/sink/fill:exact");
  const float *q = in.tensors.query, *v = in.tensors.value, *bias = in.tensors.bias;
  int levels[2] = {0}, patterns = 0;
  for (int64_t i = 0; i < 50; i++) {
    bool seen = false;
    for (int64_t other = 0; other < i && !seen; other++) seen = same_numbers(q + i * 20, q + other * 20, 20);
    patterns += !seen;
    for (int64_t j = 0; j < 9000; j++) {
      const double level = -score(&in, i, j) / log(2);
      if (fabs(level - rint(level)) > 1e-12 || level < 0 || level > 1) fail_msg("a score at level %g", level);
      levels[(int)rint(level)]++;
      assert_true(bias[i * 9000 + j] == 0 || bias[i * 9000 + j] == -INFINITY);
    }
  }
  assert_in_range(patterns, 3, 8);
  assert_true(levels[1] > 50 * 32 && levels[1] < 50 * 128);
  int sums[12] = {0};
  for (ptrdiff_t j = 0; j < 9000; j++) {
    int count = 0;
    for (ptrdiff_t e = 0; e < 12; e++) {
      assert_true(v[j * 12 + e] == 0 || fabsf(v[j * 12 + e]) == 1);
      count += v[j * 12 + e] != 0;
      sums[e] += (int)v[j * 12 + e];
      assert_in_range(sums[e] + 5, 0, 10); /* of all keys up to here */
    }
    assert_int_equal(count, 1);
  }
  inputs_destroy(&in);
}

/* Four keys of each feature where these are all keys and more; one is the last. */
static void few_keys_of_an_exact_fill_have_values(void **state) {
  (void)state;
  inputs in;
  create(&in, "full/B:1/H:1/D:20/Dv:12/Tq:2/Tk:48/fill:exact");
  const float *v = in.tensors.value;
  for (ptrdiff_t e = 0; e < 12; e++) {
    int count = 0;
    for (ptrdiff_t j = 0; j < 48; j++) count += v[j * 12 + e] != 0;
    assert_int_equal(count, 4);
  }
  assert_true(v[(ptrdiff_t)47 * 12] != 0);
  inputs_destroy(&in);
}

static void fills_give_the_values_that_they_promise(void **state) {
  (void)state;
  inputs in;
  int nonfinite = 0;
  double pair = 0, magnitude = 0, sum = 0, squares = 0, largest = 0;
  create(&in, "full/B:2/H:1/D:64/T:200/lengths:200,150/fill:nonfinite");
  const float *v = in.tensors.value;
  for (int n = 0; n < 200 * 64; n++) nonfinite += !isfinite(v[n]);
  assert_true(nonfinite == 1 || nonfinite == 2);
  assert_true(isnan(v[in.problem.value.batch + 150L * 64]) && isfinite(v[in.problem.value.batch + 63]));
  inputs_destroy(&in);
  create(&in, "full/H:1/D:64/T:200/fill:cancellation");
  v = in.tensors.value;
  for (int d = 0; d < 64; d++)
    pair = fmax(pair, fabs((double)v[d] + v[64 + d])), magnitude += fabsf(v[d]) / 64;
  assert_true(pair < 3e-3 && magnitude > 0.2);
  inputs_destroy(&in);
  create(&in, "full/H:1/D:64/T:200/fill:denormal");
  v = in.tensors.value;
  for (int n = 0; n < 200 * 64; n++) assert_true(fpclassify(v[n]) == FP_SUBNORMAL || v[n] == 0);
  inputs_destroy(&in);
  create(&in, "full/H:1/D:64/T:1000/fill:normal");
  v = in.tensors.value;
  for (int n = 0; n < 64000; n++) sum += v[n], squares += (double)v[n] * v[n];
  assert_true(fabs(sum / 64000) < 0.02 && fabs(squares / 64000 - 1) < 0.03);
  inputs_destroy(&in);
  create(&in, "full/H:1/D:64/T:200/fill:huge");
  v = in.tensors.value;
  for (int n = 0; n < 64; n++) largest = fmax(largest, fabsf(v[n]));
  assert_true(largest > 1e35);
  inputs_destroy(&in);
}

static void some_rows_are_zero_and_some_elements_the_largest(void **state) {
  (void)state;
  inputs in;
  create(&in, "full/H:1/D:8/T:300/fill:zeros");
  const float *v = in.tensors.value;
  int zero = 0, negative = 0, largest = 0;
  for (int64_t j = 0; j < 300; j++) {
    int zeros = 0;
    for (int64_t d = 0; d < 8; d++) zeros += v[8 * j + d] == 0;
    assert_true(zeros == 0 || zeros == 8);
    zero += zeros == 8;
    negative += zeros == 8 && signbit(v[8 * j]);
  }
  assert_in_range(zero, 70, 130);
  assert_in_range(negative, 30, 90);
  inputs_destroy(&in);
  create(&in, "full/B:2/H:1/D:8/T:300/lengths:300,200/fill:largest");
  v = in.tensors.value;
  for (int n = 0; n < 300 * 8; n++) largest += fabsf(v[n]) == FLT_MAX;
  assert_true(largest == 1 || largest == 2);
  for (int n = (300 + 200) * 8; n < 600 * 8; n++) assert_true(v[n] == FLT_MAX);
  inputs_destroy(&in);
}

static void shifted_tensors_are_aligned_to_no_more_than_an_element(void **state) {
  (void)state;
  workload w = parse("full/B:2/H:2/D:64/T:32/mask:bhq/bias:bhq/lse/layout:shifted");
  for (int aligned = 0; aligned < 2; aligned++) {
    inputs in;
    char why[256];
    assert_true(inputs_create(&in, &w, aligned, why, sizeof why));
    const void *const tensors[] = {in.tensors.query,  in.tensors.key,  in.tensors.value,
                                   in.tensors.output, in.tensors.bias, in.tensors.lse};
    for (size_t n = 0; n < sizeof tensors / sizeof *tensors; n++)
      assert_int_equal((uintptr_t)tensors[n] % 8, 4);
    assert_int_equal((uintptr_t)in.tensors.mask % 2, 1);
    inputs_destroy(&in);
  }
}

/* Of [2, 1024] rows by 200 keys. */
static void masks_hide_about_two_fifths_some_rows_wholly_and_beginnings_and_ends_of_others(void **state) {
  (void)state;
  enum { ROWS = 2048, KEYS = 200, BLOCK = 64, FAR = 20 };
  inputs in;
  create(&in, "full/B:2/H:2/D:8/Tq:1024/Tk:200/mask:bq");
  int64_t seen = 0, empty = 0, late = 0, early = 0, blocks = 0;
  for (int64_t row = 0, late_before = 0; row < ROWS; row++) {
    int64_t in_row = 0, first = KEYS, last = 0;
    for (int64_t j = 0; j < KEYS; j++)
      if (in.tensors.mask[row * KEYS + j] != 0) in_row++, last = j, first = first == KEYS ? j : first;
    seen += in_row;
    empty += in_row == 0;
    late += in_row > 0 && first > FAR;
    early += in_row > 0 && last < KEYS - FAR;
    late_before = first > FAR ? late_before + 1 : 0;
    blocks += row % BLOCK == BLOCK - 1 && late_before >= BLOCK;
  }
  inputs_destroy(&in);
  assert_in_range(empty, ROWS / 32, ROWS / 8);
  assert_in_range(late, ROWS / 8, ROWS / 3);
  assert_in_range(early, ROWS / 12, ROWS / 3);
  assert_in_range(blocks, 1, ROWS / BLOCK / 4);
  assert_in_range(seen * 100 / ((ROWS - empty) * KEYS), 57, 70);
}

static void of_what_a_mask_shows_half_are_1_and_others_any_byte(void **state) {
  (void)state;
  const char *const lines[] = {"full/B:1/H:1/D:8/T:200/mask:q", "full/B:1/H:1/D:8/T:200/dropout:0.3",
                               "full/B:1/H:1/D:8/T:200/blocks:1,1,0.7"};
  for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
    inputs in;
    create(&in, lines[n]);
    const uint8_t *bytes = n == 0 ? in.tensors.mask : n == 1 ? in.problem.keep_data : in.problem.blocks_data;
    int64_t shown = 0, of[UINT8_MAX + 1] = {0};
    for (int64_t at = 0; at < 40000; at++) of[bytes[at]]++, shown += bytes[at] != 0;
    assert_in_range(of[1] * 100 / shown, 47, 53);
    for (int bit = 1; bit < 8; bit++) assert_in_range(of[1 << bit] * 1000 / shown, 50, 75);
    assert_in_range(of[UINT8_MAX] * 1000 / shown, 50, 75);
    inputs_destroy(&in);
  }
}

/* Position over 10000 to the share of the features before the pair; rows from 0 to the last position of a query or a key. */
static void cosines_and_sines_are_of_positions(void **state) {
  (void)state;
  inputs in;
  create(&in, "full/B:2/H:1/D:9/Tq:5/Tk:7/offsets:0,11/rope:interleaved/layout:padded");
  const attn_problem *p = &in.problem;
  assert_true(p->rope_features == 8 && p->rope_positions == 16 && p->rope_cos.position > 4);
  for (int64_t position = 0; position < 16; position++)
    for (int64_t pair = 0; pair < 4; pair++) {
      static const double apart[] = {1, 10, 100, 1000};
      const double angle = (double)position / apart[pair];
      assert_true(fabs(p->rope_cos_data[position * p->rope_cos.position + pair] - cos(angle)) < 1e-7);
      assert_true(fabs(p->rope_sin_data[position * p->rope_sin.position + pair] - sin(angle)) < 1e-7);
    }
  inputs_destroy(&in);
}

static void exchange(uint64_t *a, uint64_t *b) {
  const uint64_t kept = *a;
  *a = *b;
  *b = kept;
}

/* Of more words than are summed in one piece: each counts, where it stands, and however many threads sum them. */
static void a_checksum_sees_each_word_of_a_long_tensor(void **state) {
  (void)state;
  enum { WORDS = 3 * 65536 + 8 };
  const int64_t places[] = {0, 1, 65535, 65536, 131072, WORDS - 1};
  const int threads = omp_get_max_threads();
  inputs in;
  create(&in, "full/B:1/H:1/D:16/Tq:1/Tk:24577"); /* its keys are so many words */
  assert_int_equal(in.buffers[TENSOR_KEY].bytes, 8 * WORDS);
  uint64_t *words = (uint64_t *)(void *)in.buffers[TENSOR_KEY].data;
  const uint64_t sum = inputs_checksum(&in);
  omp_set_num_threads(1);
  assert_true(inputs_checksum(&in) == sum);
  omp_set_num_threads(threads);
  for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
    words[places[n]] ^= UINT64_C(1) << 63;
    assert_true(inputs_checksum(&in) != sum);
    words[places[n]] ^= UINT64_C(1) << 63;
    for (size_t m = 0; m < n; m++) {
      exchange(&words[places[n]], &words[places[m]]);
      assert_true(inputs_checksum(&in) != sum);
      exchange(&words[places[n]], &words[places[m]]);
    }
  }
  assert_true(inputs_checksum(&in) == sum);
  inputs_destroy(&in);
}

static uint64_t checksum_with(inputs *in, int64_t n, uint32_t bits) {
  const bool narrow = in->problem.output.type != ATTN_FLOAT32;
  unsigned char *output = in->tensors.output;
  if (narrow)
    memcpy(output + 2 * n, &(uint16_t){(uint16_t)(bits >> 16)}, 2);
  else
    memcpy(output + 4 * n, &bits, 4);
  return inputs_outputs_checksum(in);
}

/* 15 elements, so that the last ones fill no word. */
static void of_outputs_all_bits_count_but_the_sign_of_a_nan(void **state) {
  (void)state;
  static const char *const types[] = {"f32", "bf16", "f16"};
  static const uint32_t infinities[] = {0x7f800000, 0x7f800000, 0x7c000000};
  for (int t = 0; t < 3; t++)
    for (int64_t n = 0; n < 15; n++) {
      char text[64];
      inputs in;
      snprintf(text, sizeof text, "full/B:1/H:1/D:5/T:3/%s", types[t]);
      create(&in, text);
      const uint32_t infinity = infinities[t], nan = infinity + 0x10000, sign = 0x80000000;
      assert_true(checksum_with(&in, n, nan) == checksum_with(&in, n, nan | sign));
      assert_true(checksum_with(&in, n, 0x7fff0000) == checksum_with(&in, n, 0xffff0000));
      assert_true(checksum_with(&in, n, nan) != checksum_with(&in, n, nan + 0x10000));
      assert_true(checksum_with(&in, n, infinity) != checksum_with(&in, n, infinity | sign));
      assert_true(checksum_with(&in, n, 0) != checksum_with(&in, n, sign));
      assert_true(checksum_with(&in, n, nan) != checksum_with(&in, n, infinity));
      inputs_destroy(&in);
    }
}

static void impossible_inputs_are_refused_in_words(void **state) {
  (void)state;
  inputs in;
  char why[256] = "";
  workload w = parse("full/B:1/H:6/Hkv:4");
  assert_false(inputs_create(&in, &w, false, why, sizeof why));
  assert_non_null(strstr(why, "not a multiple"));
  w = parse("full/B:1000/H:1000/T:1000000/D:128");
  assert_false(inputs_create(&in, &w, false, why, sizeof why));
  assert_non_null(strstr(why, "of memory are available"));
  w = parse("full/B:1000000000000/H:1000000000000/T:1000000/D:128");
  assert_false(inputs_create(&in, &w, false, why, sizeof why));
}
/* Asked of the system, which says no where a read would end the process. */
static bool can_be_read(const void *byte) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const bool can = write(ends[1], byte, 1) == 1;
  assert_int_equal(close(ends[0]) + close(ends[1]), 0);
  return can;
}

static bool is_at_hand(const inputs *in) {
  const bool at_hand = can_be_read(in->tensors.query);
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (in->buffers[id].bytes > 0) assert_int_equal(can_be_read(in->buffers[id].data), at_hand);
    if (in->kept[id].bytes > 0) assert_int_equal(can_be_read(in->kept[id].data), at_hand);
  }
  return at_hand;
}

static void what_rests_is_away_until_it_is_needed(void **state) {
  (void)state;
  enum { MADE = 3, ROUNDS = 4 };
  inputs in[MADE];
  const char *const texts[MADE] = {"full/H:2/D:8/T:20", "causal/H:2/D:8/T:700/bias:h",
                                   "full/H:1/D:64/T:300/bf16"};
  uint64_t sums[MADE];
  for (int n = 0; n < MADE; n++) {
    create(&in[n], texts[n]);
    sums[n] = inputs_checksum(&in[n]);
  }
  inputs_rest(&in[1]);
  for (int round = 0; round < ROUNDS; round++) {
    assert_true(inputs_put_away(&in[0]));
    for (int n = 0; n < MADE; n++) assert_false(is_at_hand(&in[n]));
    assert_true(inputs_bring_back(&in[0]));
    for (int n = 0; n < MADE; n++) assert_int_equal(is_at_hand(&in[n]), n != 1);
    assert_true(inputs_checksum(&in[0]) == sums[0] && inputs_checksum(&in[2]) == sums[2]);
    /* A place becomes too small, and what is there changes. */
    *(uint16_t *)(uintptr_t)in[2].tensors.value ^= 0x40;
    sums[2] = inputs_checksum(&in[2]);
    if (round == 1) {
      char why[256];
      assert_true(inputs_keep(&in[2], why, sizeof why));
    }
    if (round < 2) continue;
    assert_true(inputs_need(&in[1]));
    assert_true(is_at_hand(&in[1]) && inputs_checksum(&in[1]) == sums[1]);
    if (round == 2) inputs_rest(&in[1]);
  }
  assert_true(inputs_put_away(&in[2]) && inputs_bring_back(&in[2]));
  for (int n = 0; n < MADE; n++) {
    assert_true(is_at_hand(&in[n]) && inputs_checksum(&in[n]) == sums[n]);
    inputs_destroy(&in[n]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inputs_do_not_depend_on_threads_or_layout),
      cmocka_unit_test(a_padded_layout_gives_tensors_of_one_width_other_strides),
      cmocka_unit_test(a_mixed_layout_packs_one_tensor_and_not_the_other),
      cmocka_unit_test(fills_give_the_scores_that_they_promise),
      cmocka_unit_test(scores_of_powers_reach_the_largest_of_either_sign),
      cmocka_unit_test(scores_of_powers_that_round_are_smaller),
      cmocka_unit_test(an_exact_fill_is_exact),
      cmocka_unit_test(few_keys_of_an_exact_fill_have_values),
      cmocka_unit_test(fills_give_the_values_that_they_promise),
      cmocka_unit_test(some_rows_are_zero_and_some_elements_the_largest),
      cmocka_unit_test(shifted_tensors_are_aligned_to_no_more_than_an_element),
      cmocka_unit_test(masks_hide_about_two_fifths_some_rows_wholly_and_beginnings_and_ends_of_others),
      cmocka_unit_test(of_what_a_mask_shows_half_are_1_and_others_any_byte),
      cmocka_unit_test(cosines_and_sines_are_of_positions),
      cmocka_unit_test(a_checksum_sees_each_word_of_a_long_tensor),
      cmocka_unit_test(of_outputs_all_bits_count_but_the_sign_of_a_nan),
      cmocka_unit_test(what_rests_is_away_until_it_is_needed),
      cmocka_unit_test(impossible_inputs_are_refused_in_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
