/* Variants that take little are posed problems that they take, of many sizes and all features that they have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "problem/random_problem.h"
#include "verify/fitted_pairs.h"
#include "verify/fitting.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench"
#define PACKED "--plugin " ATTN_BUILD_DIR "/tests/plugins/packed.so"

static void run_nothing(const attn_call *call) { (void)call; }

/* ---- what kernels outside take ---- */

static const char *flash(const attn_call *call) {
  const attn_problem *p = call->problem;
  if (p->right != 0 || p->left != ATTN_UNLIMITED) return "causal only";
  if (p->head_dim != 64 && p->head_dim != 128) return "D 64 or 128";
  if (p->value_dim != p->head_dim || p->query_length != p->key_length) return "square only";
  return p->query.head == p->head_dim && p->key.head == p->head_dim ? NULL : "packed only";
}

static const char *whole_tiles(const attn_call *call) {
  const attn_problem *p = call->problem;
  return p->query_length % 128 || p->key_length % 128 || p->head_dim != 128 || p->value_dim != 128
             ? "whole tiles"
         : p->query_heads != p->kv_heads ? "as many key/value heads"
                                         : NULL;
}

static const char *decodes(const attn_call *call) {
  const attn_problem *p = call->problem;
  return p->query_length != 1 || p->query_heads / (p->kv_heads ? p->kv_heads : 1) != 8 || p->head_dim % 16
             ? "one query, groups of 8"
             : NULL;
}

static const char *latent(const attn_call *call) {
  return call->problem->head_dim == 576 && call->problem->value_dim == 512 ? NULL : "D 576, Dv 512";
}

static const char *trains(const attn_call *call) {
  return call->problem->lse.type ? flash(call) : "wants lse";
}

static const char *nothing(const attn_call *call) {
  (void)call;
  return "nothing";
}

#define FLOAT32 (1u << ATTN_FLOAT32)
#define KERNEL(word, has, of_types, refusal)                                                                 \
  {                                                                                                          \
    .name = (word), .function = ATTN_SOFTMAX, .features = (has), .types = (of_types),                        \
    .unsupported = (refusal), .run = run_nothing                                                             \
  }
static const struct {
  attn_variant variant;
  int sizes; /* of which there have to be several: bits of fitting_size */
} kernels[] = {
    {KERNEL("flash", ATTN_BAND, FLOAT32, flash),
     1 << SIZE_KEYS | 1 << SIZE_HEAD_DIM | 1 << SIZE_BATCH | 1 << SIZE_KV_HEADS | 1 << SIZE_GROUP},
    {KERNEL("whole_tiles", 0, 1u << ATTN_BFLOAT16, whole_tiles),
     1 << SIZE_KEYS | 1 << SIZE_QUERIES | 1 << SIZE_BATCH},
    {KERNEL("decodes", ATTN_KEY_LENGTHS, FLOAT32, decodes),
     1 << SIZE_KEYS | 1 << SIZE_HEAD_DIM | 1 << SIZE_VALUE_DIM},
    {KERNEL("latent", ATTN_BAND | ATTN_OFFSET, FLOAT32, latent), 1 << SIZE_KEYS | 1 << SIZE_QUERIES},
    {KERNEL("trains", ATTN_BAND | ATTN_LSE, 1u << ATTN_FLOAT16, trains), 1 << SIZE_KEYS | 1 << SIZE_GROUP},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The values that a size had, some of them. */
typedef struct seen {
  int count;
  int64_t values[64];
} seen;

static void see(seen *to, int64_t value) {
  for (int n = 0; n < to->count; n++)
    if (to->values[n] == value) return;
  if (to->count < 64) to->values[to->count++] = value;
}

static void see_sizes(seen to[FITTING_SIZES], const workload *w) {
  see(&to[SIZE_KEYS], w->key_length);
  see(&to[SIZE_QUERIES], w->query_length);
  see(&to[SIZE_HEAD_DIM], w->head_dim);
  see(&to[SIZE_VALUE_DIM], w->value_dim);
  see(&to[SIZE_BATCH], w->batch);
  see(&to[SIZE_KV_HEADS], w->kv_heads);
  see(&to[SIZE_GROUP], w->kv_heads ? w->query_heads / w->kv_heads : 0);
}

static void random_problems_are_fitted_to_what_a_kernel_takes(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(kernels); k++) {
    const attn_variant *variant = &kernels[k].variant;
    fitting *fitting = fitting_create(variant);
    seen sizes[FITTING_SIZES] = {0};
    assert_non_null(fitting);
    for (int64_t n = 0; n < 400; n++) {
      workload w = random_problem(3, n);
      if (w.function != ATTN_SOFTMAX) continue;
      if (!fitting_fit(fitting, n, &w)) fail_msg("%s: nothing is found that it takes", variant->name);
      if (!fitting_takes(variant, &w)) fail_msg("%s refuses what is fitted to it", variant->name);
      see_sizes(sizes, &w);
    }
    for (int size = 0; size < FITTING_SIZES; size++)
      if (kernels[k].sizes >> size & 1 && sizes[size].count < 2)
        fail_msg("%s: size %d is always %lld", variant->name, size, (long long)sizes[size].values[0]);
    fitting_destroy(fitting);
  }
}

/* A feature that it takes is posed as often as it is drawn. */
static void features_are_kept_where_they_are_taken(void **state) {
  (void)state;
  fitting *fitting = fitting_create(&kernels[2].variant);
  int64_t wanted = 0, kept = 0;
  for (int64_t n = 0; n < 400; n++) {
    workload w = random_problem(4, n);
    if (w.function != ATTN_SOFTMAX) continue;
    const bool has = w.has_lengths;
    assert_true(fitting_fit(fitting, n, &w));
    wanted += has;
    kept += has && w.has_lengths;
  }
  fitting_destroy(fitting);
  if (wanted < 50 || 10 * kept < 9 * wanted)
    fail_msg("key lengths in %lld of %lld", (long long)kept, (long long)wanted);
}

static void who_takes_nothing_is_fitted_nothing(void **state) {
  (void)state;
  const attn_variant variant = KERNEL("nothing", 0, FLOAT32, nothing);
  fitting *fitting = fitting_create(&variant);
  workload w = workload_default();
  assert_false(fitting_fit(fitting, 0, &w));
  assert_null(fitted_pairs_create(fitting));
  fitting_destroy(fitting);
}

/* Any two of what it takes meet: groups with every D, every length with every number of heads. */
static void pairs_of_what_a_kernel_takes_meet(void **state) {
  (void)state;
  fitting *fitting = fitting_create(&kernels[0].variant);
  fitted_pairs *pairs = fitted_pairs_create(fitting);
  int64_t all, possible;
  bool grouped_at[2] = {false}, tail_of[2] = {false};
  assert_non_null(pairs);
  fitted_pairs_pairs(pairs, &all, &possible);
  assert_true(possible > 500 && possible <= all);
  for (int64_t n = 0; n < fitted_pairs_count(pairs); n++) {
    const workload w = fitted_pairs_problem(pairs, n).workload;
    assert_true(fitting_takes(&kernels[0].variant, &w));
    grouped_at[w.head_dim == 128] |= w.kv_heads > 1 && w.query_heads > w.kv_heads;
    tail_of[w.head_dim == 128] |= w.key_length > 64 && w.key_length % 64;
  }
  assert_true(grouped_at[0] && grouped_at[1] && tail_of[0] && tail_of[1]);
  fitted_pairs_destroy(pairs);
  fitting_destroy(fitting);
}

/* ---- the commands ---- */

static void says(const char *arguments, int wanted, const char *const *words) {
  char command[4096], why[256], *said;
  snprintf(command, sizeof command, PROGRAM " %s 2>&1", arguments);
  char *argv[] = {"sh", "-c", command, NULL};
  const int status = child_run(argv, NULL, &said, why, sizeof why);
  for (; *words; words++)
    if (status != wanted || !strstr(said, *words))
      fail_msg("%s: status %d instead of %d, without '%s':\n%s", arguments, status, wanted, *words, said);
  free(said);
}

#define SAYS(arguments, status, ...) says(arguments, status, (const char *const[]){__VA_ARGS__, NULL})

static void a_narrow_kernel_is_verified_where_it_lives(void **state) {
  (void)state;
  SAYS("verify --every 80 --count 5 " PACKED " --variant packed", 0, "passed", "fitted to what it takes",
       "a band", "(all causal)", "layout bthd", "D 64 or 128");
  SAYS("verify --every 80 --fail-fast --count 5 " PACKED " --variant packed_wrong_heads", 1,
       "FAILED: output");
  SAYS("verify --every 80 --fail-fast --count 5 " PACKED " --variant packed_wrong_tail", 1, "FAILED: output");
  SAYS("fuzz --seconds 600 --seed 3 " PACKED " --variant packed_wrong_tail", 1, "rows from ",
       "T % 64 matters: it fails where T is no multiple of 64", "reproduce: ");
  SAYS("fuzz --seconds 1 " PACKED " --variant packed", 0, "fitted to what it takes");
}

static void who_takes_too_little_is_warned(void **state) {
  (void)state;
  SAYS("verify --every 40 --count 5 " PACKED " --variant packed_one_size", 0, "Beware: a pass means little",
       "so few lengths", "one head of one batch entry");
  SAYS("verify --every 80 --count 5 " PACKED " --variant packed_nothing", 2, "nothing was verified",
       "takes nothing", "Beware: a pass means little");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_problems_are_fitted_to_what_a_kernel_takes),
      cmocka_unit_test(features_are_kept_where_they_are_taken),
      cmocka_unit_test(who_takes_nothing_is_fitted_nothing),
      cmocka_unit_test(pairs_of_what_a_kernel_takes_meet),
      cmocka_unit_test(a_narrow_kernel_is_verified_where_it_lives),
      cmocka_unit_test(who_takes_too_little_is_warned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
