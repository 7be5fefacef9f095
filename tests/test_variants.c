/* What every variant must keep to on any problem that it takes, on every instruction set: properties that
 * need no tolerance of ours, or only the bound of the reference. Problems are drawn by a fixed seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/verify.h"
#include "../harness/verify_grid.h"

enum { PROBLEMS = 40, SEED = 20, LARGEST_OUTPUT = 1 << 20 };

static variant_list list;

/* One variant on one workload with one instruction set. */
typedef struct subject {
  const attn_variant *variant;
  inputs *in;
  const char *isa;
  char name[WORKLOAD_NAME_BYTES];
} subject;

typedef bool check(const subject *subject); /* false: says nothing of this problem */

static void run_with(const subject *subject, int threads, int filling) {
  char why[256];
  guarded workspace;
  const attn_problem *problem = &subject->in->problem;
  const attn_variant *variant = subject->variant;
  const size_t bytes = variant->workspace_size ? variant->workspace_size(problem, threads) : 0;
  if (!guarded_create(&workspace, bytes, 64, why, sizeof why)) fail_msg("%s", why);
  if (filling)
    memset(workspace.data, filling, bytes);
  else
    guarded_poison(&workspace);
  inputs_poison_outputs(subject->in);
  variant->run(problem, &subject->in->tensors, workspace.data, threads);
  guarded_destroy(&workspace);
}

static void fail_on(const subject *subject, const char *what) {
  fail_msg("%s with %s: %s on %s", subject->variant->name, subject->isa, what, subject->name);
}

/* Every variant must have been checked on some problem, or the property was not. */
static void for_every_variant(workload (*draw)(int64_t n), check *holds) {
  int checked[64] = {0};
  for (int64_t n = 0; n < PROBLEMS; n++) {
    const workload w = draw(n);
    inputs in;
    char why[256];
    if (!inputs_create(&in, &w, false, why, sizeof why)) fail_msg("%s", why);
    for (size_t v = 0; v < list.count; v++) {
      if (attn_unsupported(list.variants[v], &in.problem)) continue;
      const char *const *isa = list.tables[0]->instruction_sets();
      for (; *isa; isa++) {
        setenv("ATTN_ISA", *isa, 1);
        subject subject = {list.variants[v], &in, *isa, ""};
        workload_name(&w, subject.name);
        checked[v] += holds(&subject);
      }
    }
    unsetenv("ATTN_ISA");
    inputs_destroy(&in);
  }
  for (size_t v = 0; v < list.count; v++)
    if (!checked[v]) fail_msg("%s was checked on no problem", list.variants[v]->name);
}

static workload any_problem(int64_t n) {
  workload w = verify_random_problem(SEED, n);
  if (n % 4 == 0) w.kv_heads = 1; /* for multi_query */
  return w;
}

static float *output_row(const inputs *in, int64_t b, int64_t h, int64_t i) {
  const attn_strides *s = &in->problem.output;
  return (float *)in->tensors.output + b * s->batch + h * s->head + i * s->position;
}

static bool bits_depend_on_nothing_else(const subject *subject) {
  run_with(subject, 1, 0);
  const uint64_t once = inputs_outputs_checksum(subject->in);
  static const int threads[] = {1, 2, 3, 5};
  for (size_t n = 0; n < sizeof threads / sizeof *threads; n++) {
    run_with(subject, threads[n], 0);
    if (inputs_outputs_checksum(subject->in) != once) fail_on(subject, "other bits with more threads");
    run_with(subject, threads[n], 0x01);
    if (inputs_outputs_checksum(subject->in) != once) fail_on(subject, "other bits with another workspace");
  }
  return true;
}

static void threads_and_workspace_change_no_bit(void **state) {
  (void)state;
  for_every_variant(any_problem, bits_depend_on_nothing_else);
}

static bool sees(const inputs *in, int64_t b, int64_t h, int64_t i, int64_t j) {
  const attn_problem *p = &in->problem;
  const attn_range range = attn_visible_keys(p, b, i);
  if (j < range.first || j >= range.end) return false;
  return !p->has_mask ||
         in->tensors.mask[b * p->mask.batch + h * p->mask.head + i * p->mask.position + j] != 0;
}

/* Inputs are ours to change between runs. */
static float *writable(const void *data) { return (float *)(uintptr_t)data; }

/* Overwrites key and value j of every head with a number, and puts what was there into old. */
static void swap_key(const inputs *in, int64_t b, int64_t j, float number, float *old, bool back) {
  const attn_problem *p = &in->problem;
  for (int64_t h = 0; h < p->kv_heads; h++) {
    float *key = writable(in->tensors.key) + b * p->key.batch + h * p->key.head + j * p->key.position;
    float *value =
        writable(in->tensors.value) + b * p->value.batch + h * p->value.head + j * p->value.position;
    for (int64_t d = 0; d < p->head_dim; d++, old++) {
      if (back)
        key[d] = *old;
      else
        *old = key[d], key[d] = number;
    }
    for (int64_t e = 0; e < p->value_dim; e++, old++) {
      if (back)
        value[e] = *old;
      else
        *old = value[e], value[e] = number;
    }
  }
}

/* Copies or compares the rows of entry b that cannot see key j; returns how many there are. */
static int64_t hidden_rows(const subject *subject, int64_t b, int64_t j, float *kept, bool compare) {
  const inputs *in = subject->in;
  const attn_problem *p = &in->problem;
  const size_t bytes = (size_t)p->value_dim * sizeof(float);
  int64_t rows = 0;
  for (int64_t h = 0; h < p->query_heads; h++)
    for (int64_t i = 0; i < p->query_length; i++) {
      if (sees(in, b, h, i, j)) continue;
      float *row = kept + rows++ * p->value_dim;
      if (!compare)
        memcpy(row, output_row(in, b, h, i), bytes);
      else if (memcmp(row, output_row(in, b, h, i), bytes) != 0)
        fail_on(subject, "a key that a row cannot see changed it");
    }
  return rows;
}

static bool hidden_keys_are_not_felt(const subject *subject) {
  static float kept[LARGEST_OUTPUT], old[1 << 16];
  const attn_problem *p = &subject->in->problem;
  if (p->key_length == 0 || p->batch == 0) return false;
  int64_t hidden = 0;
  run_with(subject, 2, 0);
  for (int64_t j = 0; j < p->key_length; j += 1 + p->key_length / 3) {
    const int64_t b = p->batch - 1;
    if (p->query_heads * p->query_length * p->value_dim > LARGEST_OUTPUT) return false;
    hidden_rows(subject, b, j, kept, false);
    static const float numbers[] = {NAN, INFINITY, 1e30f};
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
      swap_key(subject->in, b, j, numbers[n], old, false);
      run_with(subject, 2, 0);
      hidden += hidden_rows(subject, b, j, kept, true);
      swap_key(subject->in, b, j, 0, old, true);
    }
    run_with(subject, 2, 0);
  }
  return hidden > 0;
}

static void future_and_masked_keys_change_no_bit_of_a_row(void **state) {
  (void)state;
  for_every_variant(any_problem, hidden_keys_are_not_felt);
}

/* Whole problems of finite numbers that every key takes part in. */
static workload plain_problem(int64_t n) {
  workload w = any_problem(n);
  w.left = w.right = ATTN_UNLIMITED;
  w.has_lengths = w.has_offsets = w.wants_weights = false;
  w.mask = w.bias = (workload_axes){0};
  w.offset = 0;
  w.fill = n % 2 ? FILL_NORMAL : FILL_HEAVY;
  if (w.key_length == 0) w.key_length = 9;
  return w;
}

static bool agrees(const subject *subject, const truth *truth, const char *what) {
  verdict verdict = {.passed = true};
  truth_compare(truth, &verdict);
  if (!verdict.passed) {
    char text[512];
    snprintf(text, sizeof text, "%s: %s", what, verdict.problem);
    fail_on(subject, text);
  }
  return true;
}

static bool a_wide_band_is_none(const subject *subject) {
  attn_problem *p = &subject->in->problem;
  char why[256];
  truth truth;
  if (!truth_solve(&truth, subject->in, 64, why, sizeof why)) fail_msg("%s", why);
  const attn_problem whole = *p;
  p->right = p->query_length + p->key_length;
  if (p->function == ATTN_SOFTMAX) p->left = p->right;
  run_with(subject, 2, 0);
  *p = whole;
  const bool good = agrees(subject, &truth, "a band wider than the sequence");
  truth_destroy(&truth);
  return good;
}

static void a_band_wider_than_the_sequence_is_no_band(void **state) {
  (void)state;
  for_every_variant(plain_problem, a_wide_band_is_none);
}

static void reverse(float *data, const attn_strides *strides, int64_t batch, int64_t heads, int64_t length,
                    int64_t width) {
  for (int64_t b = 0; b < batch; b++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t j = 0; j < length / 2; j++)
        for (int64_t d = 0; d < width; d++) {
          float *head = data + b * strides->batch + h * strides->head;
          float *one = head + j * strides->position + d,
                *other = head + (length - 1 - j) * strides->position + d;
          const float kept = *one;
          *one = *other;
          *other = kept;
        }
}

static void reverse_keys(const subject *subject) {
  const inputs *in = subject->in;
  const attn_problem *p = &in->problem;
  reverse(writable(in->tensors.key), &p->key, p->batch, p->kv_heads, p->key_length, p->head_dim);
  reverse(writable(in->tensors.value), &p->value, p->batch, p->kv_heads, p->key_length, p->value_dim);
}

static bool order_does_not_matter(const subject *subject) {
  char why[256];
  truth truth;
  if (!truth_solve(&truth, subject->in, 64, why, sizeof why)) fail_msg("%s", why);
  reverse_keys(subject);
  run_with(subject, 2, 0);
  reverse_keys(subject);
  const bool good = agrees(subject, &truth, "keys and values in another order");
  truth_destroy(&truth);
  return good;
}

static void the_order_of_keys_does_not_matter(void **state) {
  (void)state;
  for_every_variant(plain_problem, order_does_not_matter);
}

/* Every output feature lies between the smallest and the largest value that the row can see, but for the
 * rounding of a sum of so many terms; linear with an epsilon pulls towards zero. */
static bool stays_within_its_values(const subject *subject) {
  const inputs *in = subject->in;
  const attn_problem *p = &in->problem;
  run_with(subject, 2, 0);
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t e = 0; e < p->value_dim; e++) {
        float least = p->function == ATTN_LINEAR ? 0 : INFINITY,
              most = p->function == ATTN_LINEAR ? 0 : -INFINITY;
        for (int64_t j = 0; j < p->key_length; j++) {
          const float value =
              ((const float *)in->tensors
                   .value)[b * p->value.batch + h / (p->query_heads / p->kv_heads) * p->value.head +
                           j * p->value.position + e];
          least = fminf(least, value);
          most = fmaxf(most, value);
        }
        const float slack =
            4e-7f * (float)(p->key_length + p->head_dim + 8) * fmaxf(fabsf(least), fabsf(most));
        for (int64_t i = 0; i < p->query_length; i++) {
          const float got = output_row(in, b, h, i)[e];
          if (!(got >= least - slack && got <= most + slack))
            fail_on(subject, "an output outside its values");
        }
      }
  return p->value_dim > 0 && p->query_length > 0;
}

static void outputs_lie_between_the_smallest_and_largest_value(void **state) {
  (void)state;
  for_every_variant(plain_problem, stays_within_its_values);
}

static int load(void **state) {
  (void)state;
  char why[256];
  if (variant_list_add(&list, ATTN_BUILD_DIR "/attnbench_variants.so", why, sizeof why)) return 0;
  fprintf(stderr, "%s\n", why);
  return 1;
}

static int unload(void **state) {
  (void)state;
  variant_list_destroy(&list);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_and_workspace_change_no_bit),
      cmocka_unit_test(future_and_masked_keys_change_no_bit_of_a_row),
      cmocka_unit_test(a_band_wider_than_the_sequence_is_no_band),
      cmocka_unit_test(the_order_of_keys_does_not_matter),
      cmocka_unit_test(outputs_lie_between_the_smallest_and_largest_value),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
