/* Cases from outside: sound folders load and hold variants to their answers; damaged ones are refused
 * with the name of the file that is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "problem/cases.h"
#include "verify/golden.h"

static char folder[] = "/tmp/attnbench_cases_XXXXXX";
static const char one[] = ATTN_SOURCE_DIR "/tests/cases/bias_and_mask_causal";

static void shell(const char *format, ...) {
  char command[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(command, sizeof command, format, arguments);
  va_end(arguments);
  assert_int_equal(system(command), 0);
}

static int make_folder(void **unused) {
  (void)unused;
  return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void **unused) {
  (void)unused;
  shell("rm -rf '%s'", folder);
  return 0;
}

static void a_case_loads_with_its_shapes(void **unused) {
  (void)unused;
  golden_case given;
  char why[512] = "";
  if (!case_load(&given, one, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(given.inputs.problem.query_heads, 2);
  assert_true(given.inputs.problem.left == ATTN_UNLIMITED && given.inputs.problem.right == 0);
  assert_true(given.inputs.problem.mask.type && given.inputs.problem.bias.type &&
              given.inputs.problem.lse.type);
  assert_int_equal(given.inputs.buffers[TENSOR_MASK].bytes, 7 * 7);
  assert_int_equal(given.inputs.buffers[TENSOR_BIAS].bytes, 2 * 7 * 7 * 4);
  assert_true(given.inputs.problem.mask.head == 0 && given.inputs.problem.bias.batch == 0);
  /* What is asked is 7 x 7 of 2 heads: no run of it takes long anywhere. */
  const double flops = workload_flops(&given.inputs.workload), pairs = 2 * 28;
  assert_true(flops >= 2 * pairs && flops < 1000 * pairs);
  case_destroy(&given);
}

static void a_damaged_case_is_refused_by_the_name_of_its_file(void **unused) {
  (void)unused;
  const struct {
    const char *damage, *complaint;
  } table[] = {
      {"rm case.txt", "case.txt: No such file"},
      {"rm k.f32", "k.f32: No such file"},
      {"truncate -s 100 v.f32", "v.f32 is too short"},
      {"echo x >> output.f64", "output.f64 is longer"},
      {"rm lse.f64", "lse.f64: No such file"},
      {"truncate -s 3 mask.u8", "mask.u8 is too short"},
      {"echo colour red >> case.txt", "case.txt: unknown key 'colour'"},
      {"echo scale 1 >> case.txt", "case.txt: 'scale' is given twice"},
      {"sed -i /softcap/d case.txt", "case.txt: the key 'softcap' is missing"},
      {"sed -i 's/^batch.*/batch one/' case.txt", "'batch one' should be a whole number"},
      {"sed -i 's/^batch.*/batch/' case.txt", "'batch' is not 'key value'"},
      {"sed -i 's/^batch.*/batch -1/' case.txt", "a size of -1"},
      {"sed -i 's/^scale.*/scale nan/' case.txt", "'scale nan' should be a finite number"},
      {"sed -i 's/^has_bias.*/has_bias 2/' case.txt", "'has_bias 2' should be 0 or 1"},
      {"sed -i 's/^function.*/function relu/' case.txt", "should be softmax, linear or layer"},
      {"sed -i 's/^has_lengths.*/has_lengths 1/' case.txt", "lengths.i32: No such file"},
      {"sed -i 's/^left.*/left -2/' case.txt", "left and right"},
  };
  for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
    char why[512] = "", path[256];
    golden_case given;
    shell("rm -rf '%s'/* && cp -r %s '%s/damaged' && chmod -R u+w '%s' && cd '%s/damaged' && %s", folder, one,
          folder, folder, folder, table[n].damage);
    snprintf(path, sizeof path, "%s/damaged", folder);
    assert_false(case_load(&given, path, why, sizeof why));
    if (!strstr(why, table[n].complaint)) fail_msg("%s: '%s'", table[n].damage, why);
  }
}

/* What a tensor says of who sees whom is an index before it is looked at. */
static void a_pattern_that_no_kernel_may_read_is_refused(void **unused) {
  (void)unused;
  const struct {
    const char *from, *damage, *complaint;
  } table[] = {
      {"topk", "printf '\\011\\0\\0\\0' | dd conv=notrunc status=none of=topk.i32",
       "topk[0, 0, 0, 0] is 9: it must be a key, 0 to 8, or -1 for none"},
      {"topk", "printf '\\376\\377\\377\\377' | dd conv=notrunc status=none of=topk.i32",
       "topk[0, 0, 0, 0] is -2"},
      {"topk", "printf '\\005\\0\\0\\0' | dd conv=notrunc status=none of=topk.i32",
       "topk[0, 0, 0, 1] lists key 5 twice: a key is listed once"},
      {"topk", "sed -i 's/^topk.*/topk -4/' case.txt", "a size of -4: sizes are 0 to"},
      {"blocks", "sed -i 's/^block_k.*/block_k 3/' case.txt", "blocks.u8 is too short"},
      {"blocks", "sed -i 's/^block_k.*/block_k 12/' case.txt", "blocks.u8 is longer"},
      {"blocks", "sed -i 's/^block_q.*/block_q 0/' case.txt", "block"},
      {"documents", "truncate -s 4 *doc*.i32", "too short"},
      {"relative", "sed -i 's/^rel_distance.*/rel_distance 4/' case.txt",
       "rel.f32 is too short: 56 bytes, its shape needs 72"},
      {"relative", "sed -i 's/^rel_distance.*/rel_distance 2/' case.txt",
       "rel.f32 is longer than the 40 bytes"},
      {"relative", "sed -i 's/^rel_distance.*/rel_distance 0/' case.txt", "rel.f32 is longer"},
      {"relative", "sed -i 's/^rel_distance.*/rel_distance -1/' case.txt", "a size of -1: sizes are 0 to"},
      {"relative", "sed -i /rel_distance/d case.txt && truncate -s 8 rel.f32",
       "relative_distance is 0: a relative table tells distances apart up to one of 1 to"},
      {"t5_both", "sed -i 's/^t5_buckets.*/t5_buckets 12/' case.txt",
       "t5.f32 is too short: 64 bytes, its shape needs 96"},
      {"t5_both", "sed -i 's/^t5_buckets.*/t5_buckets 6/' case.txt", "t5.f32 is longer than the 48 bytes"},
      {"t5_both", "sed -i 's/^t5_max_distance.*/t5_max_distance 2/' case.txt",
       "t5_distance is 2: it must be above 2"},
      {"t5_one", "sed -i 's/^t5_max_distance.*/t5_max_distance 4/' case.txt",
       "t5_distance is 4: it must be above 4"},
      {"t5_one", "sed -i 's/^t5_both.*/t5_both 2/' case.txt", "'t5_both 2' should be 0 or 1"},
      {"t5_one", "sed -i /t5_buckets/d case.txt && truncate -s 0 t5.f32",
       "t5_buckets is 0: it must be 2 to 1024"},
      {"t5_one", "rm t5.f32",
       "t5_buckets is 8, t5_distance 20 without numbers of T5's buckets: give all or none"},
      {"linear_relu_plain", "sed -i 's/^phi.*/phi gelu/' case.txt",
       "'phi gelu' should be elu1, relu or identity"},
      {"linear_relu_plain", "sed -i 's/^normalise.*/normalise 2/' case.txt",
       "'normalise 2' should be 0 or 1"},
      {"rope_half", "sed -i 's/^rope_positions.*/rope_positions 6/' case.txt",
       "cos.f32 is longer than the 96 bytes"},
      {"rope_half",
       "sed -i 's/^rope_positions.*/rope_positions 6/' case.txt && truncate -s 96 cos.f32 sin.f32",
       "keys stand at positions up to 6: a rotary embedding of 6 has no such row"},
      {"rope_half", "sed -i 's/^rope_features.*/rope_features 10/' case.txt",
       "cos.f32 is too short: 112 bytes, its shape needs 140"},
      {"rope_half", "sed -i 's/^rope half/rope whole/' case.txt",
       "'rope whole' should be half or interleaved"},
      {"rope_half", "rm sin.f32", "rope_cos and rope_sin go together: give both or none"},
      {"rope_half", "rm cos.f32 sin.f32",
       "rope_features is 8, rope_positions 7 without cosines and sines: give all or none"},
      {"rope_half_part_decode", "sed -i 's/^offset.*/offset 8/' case.txt",
       "query positions 8 to 9 go beyond a rotary embedding of 9 positions: each i + offset must be 0 to 8"},
      {"rope_half_part_decode", "sed -i 's/^offset.*/offset -1/' case.txt",
       "query positions -1 to 0 go beyond"},
      {"dropout", "sed -i 's/^dropout_p.*/dropout_p 1/' case.txt",
       "dropout_p is 1: it must be 0 up to, but not, 1"},
      {"dropout", "sed -i 's/^dropout_p.*/dropout_p -0.5/' case.txt",
       "dropout_p is -0.5: it must be 0 up to"},
      {"dropout", "rm keep.u8", "dropout_p is 0.25 without a keep mask: give both or none"},
      {"dropout", "truncate -s 391 keep.u8", "keep.u8 is too short: 391 bytes, its shape needs 392"},
      {"layer", "rm w_o.f32", "w_o.f32: No such file"},
      {"layer", "truncate -s 252 w_v.f32", "w_v.f32 is too short: 252 bytes, its shape needs 256"},
      {"layer", "sed -i 's/^model_dim.*/model_dim 9/' case.txt", "q.f32 is too short"},
      {"layer", "sed -i /^model_dim/d case.txt && truncate -s 0 *.f32 output.f64",
       "model_dim is 0: it must be 1"},
      {"layer", "sed -i 's/^model_dim.*/model_dim -1/' case.txt", "a size of -1: sizes are 0 to"},
      {"layer_causal_biases", "rm b_k.f32", "b_k"},
      {"layer_memory_mask", "truncate -s 4 k.f32", "k.f32 is too short"},
      {"layer_no_key", "rm k.f32", "6"},
      {"full", "echo model_dim 8 >> case.txt", "model_dim is 8: only a layer has one"},
      {"relative", "rm rel.f32", "relative_distance is 3 without a relative table: give both or none"},
  };
  for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
    char why[512] = "", path[256];
    golden_case given;
    shell("rm -rf '%s'/* && cp -r '%s/../%s' '%s/damaged' && chmod -R u+w '%s' && cd '%s/damaged' && %s",
          folder, one, table[n].from, folder, folder, folder, table[n].damage);
    snprintf(path, sizeof path, "%s/damaged", folder);
    if (case_load(&given, path, why, sizeof why) || !strstr(why, table[n].complaint))
      fail_msg("%s: '%s'", table[n].damage, why);
  }
}

/* ---- Variants to hold to the cases: the formula, with the scale that the caller gives ---- */

static void solve(const attn_call *call, double scale) {
  const attn_problem *p = call->problem;
  const attn_tensors *x = &call->tensors;
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    const int64_t i = n % p->query_length, h = n / p->query_length % p->query_heads;
    const int64_t b = n / p->query_length / p->query_heads;
    const float *q = (const float *)x->query + n * p->head_dim;
    float *o = (float *)x->output + n * p->value_dim;
    const attn_range seen = attn_visible_keys(p, b, i);
    double sum = 0;
    for (int64_t e = 0; e < p->value_dim; e++) o[e] = 0;
    for (int64_t j = seen.first; j < seen.end; j++) {
      const int64_t row = (b * p->kv_heads + h / (p->query_heads / p->kv_heads)) * p->key_length + j;
      double dot = 0;
      for (int64_t d = 0; d < p->head_dim; d++)
        dot += (double)q[d] * ((const float *)x->key)[row * p->head_dim + d];
      sum += exp(scale * dot);
      for (int64_t e = 0; e < p->value_dim; e++)
        o[e] += (float)exp(scale * dot) * ((const float *)x->value)[row * p->value_dim + e];
    }
    for (int64_t e = 0; e < p->value_dim && sum > 0; e++) o[e] = (float)(o[e] / sum);
    if (p->lse.type) x->lse[n] = (float)log(sum);
  }
}

static void solve_right(const attn_call *call) { solve(call, call->problem->scale); }

static void solve_with_half_the_scale(const attn_call *call) { solve(call, call->problem->scale / 2); }

static void write_too_far(const attn_call *call) {
  solve(call, call->problem->scale);
  ((unsigned char *)call->tensors.output)[-1] = 0;
}

#define VARIANT(text, solver)                                                                                \
  {                                                                                                          \
    .name = (text), .summary = (text), .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_LSE,    \
    .types = 1u << ATTN_FLOAT32, .run = (solver)                                                             \
  }
static const attn_variant right = VARIANT("right", solve_right);
static const attn_variant half_scale = VARIANT("half_scale", solve_with_half_the_scale);
static const attn_variant too_far = VARIANT("too_far", write_too_far);

/* Runs one variant over three cases, the last of which it does not support. */
static int verify(const attn_variant *variant, char *said, size_t said_size) {
  const attn_variant *variants[] = {variant};
  const char *origins[] = {NULL};
  const variant_list list = {.variants = variants, .origins = origins, .count = 1};
  shell("rm -rf '%s'/* && cp -r '%s/../causal_top_left' '%s/../grouped' %s '%s'", folder, one, one, one,
        folder);
  FILE *out = tmpfile();
  assert_non_null(out);
  const verify_options options = {.cases = folder, .threads = 2};
  const int status = golden_verify(&list, &options, out);
  rewind(out);
  said[fread(said, 1, said_size - 1, out)] = '\0';
  fclose(out);
  return status;
}

static void a_right_variant_passes_and_says_what_it_skipped(void **unused) {
  (void)unused;
  char said[4096];
  const int status = verify(&right, said, sizeof said);
  if (status != 0 || !strstr(said, "1 variant, 2 cases, 0 failed") ||
      !strstr(said, "skipped 1: takes no mask (1)"))
    fail_msg("%s", said);
}

static void a_wrong_variant_fails_by_the_name_of_each_case(void **unused) {
  (void)unused;
  char said[4096];
  const int status = verify(&half_scale, said, sizeof said);
  if (status != 1 || !strstr(said, "FAILED: causal_top_left: ") || !strstr(said, "FAILED: grouped: ") ||
      !strstr(said, "1 variant, 2 cases, 2 failed"))
    fail_msg("%s", said);
}

static void a_write_outside_the_output_fails(void **unused) {
  (void)unused;
  char said[4096];
  const int status = verify(&too_far, said, sizeof said);
  if (status != 1 || !strstr(said, ": writes beyond the output")) fail_msg("%s", said);
}

static void what_cannot_run_is_status_2(void **unused) {
  (void)unused;
  const char *names[] = {"unheard_of"};
  const attn_variant *variants[] = {&right};
  const char *origins[] = {NULL};
  const variant_list list = {.variants = variants, .origins = origins, .count = 1};
  verify_options options = {.cases = folder, .threads = 1, .variant_names = names, .variant_count = 1};
  assert_int_equal(golden_verify(&list, &options, stdout), 2);
  options.variant_count = 0;
  options.cases = "/nowhere";
  assert_int_equal(golden_verify(&list, &options, stdout), 2);
  options.cases = folder;
  shell("rm -rf '%s'/*", folder);
  assert_int_equal(golden_verify(&list, &options, stdout), 2);
  shell("cp -r '%s/../softcap' '%s'", one, folder); /* which it does not take */
  assert_int_equal(golden_verify(&list, &options, stdout), 2);
  shell("cp -r %s '%s/short' && chmod -R u+w '%s' && truncate -s 5 '%s/short/q.f32'", one, folder, folder,
        folder);
  assert_int_equal(golden_verify(&list, &options, stdout), 2);
}

static const char *const *two_sets(void) {
  static const char *const names[] = {"plain", "fast", NULL};
  return names;
}

static const char *isas_seen[16];
static int runs_seen;

static void solve_and_note(const attn_call *call) {
  if (runs_seen < 16) isas_seen[runs_seen++] = call->isa;
  solve(call, call->problem->scale);
}

static void a_case_counts_once_for_each_instruction_set(void **unused) {
  (void)unused;
  static const attn_variant noting = VARIANT("noting", solve_and_note);
  const attn_variant *variants[] = {&noting};
  const char *origins[] = {NULL};
  const attn_table table = {ATTN_INTERFACE_VERSION, 1, variants, two_sets}, *tables[] = {&table};
  const variant_list list = {
      .variants = variants, .origins = origins, .count = 1, .tables = tables, .table_count = 1};
  verify_options options = {.cases = folder, .threads = 1};
  char said[4096];
  shell("rm -rf '%s'/* && cp -r '%s/../grouped' '%s'", folder, one, folder);
  for (int held = 0; held < 2; held++) {
    runs_seen = 0;
    options.isa = held ? "fast" : NULL;
    FILE *out = tmpfile();
    assert_int_equal(golden_verify(&list, &options, out), 0);
    rewind(out);
    said[fread(said, 1, sizeof said - 1, out)] = '\0';
    fclose(out);
    if (!strstr(said, held ? ", 1 cases, 0 failed" : ", 2 cases, 0 failed")) fail_msg("%s", said);
    assert_string_equal(isas_seen[0], held ? "fast" : "plain");
    assert_string_equal(isas_seen[runs_seen - 1], "fast");
  }
}

static void the_command_that_repeats_a_case_names_its_folder(void **unused) {
  (void)unused;
  char said[4096], command[256];
  verify(&half_scale, said, sizeof said);
  snprintf(command, sizeof command,
           "reproduce: attnbench verify --variant half_scale --cases '%s' --threads 2\n", folder);
  if (!strstr(said, command)) fail_msg("'%s' is not in: %s", command, said);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_case_loads_with_its_shapes),
      cmocka_unit_test(a_damaged_case_is_refused_by_the_name_of_its_file),
      cmocka_unit_test(a_pattern_that_no_kernel_may_read_is_refused),
      cmocka_unit_test(a_right_variant_passes_and_says_what_it_skipped),
      cmocka_unit_test(a_wrong_variant_fails_by_the_name_of_each_case),
      cmocka_unit_test(a_write_outside_the_output_fails),
      cmocka_unit_test(what_cannot_run_is_status_2),
      cmocka_unit_test(a_case_counts_once_for_each_instruction_set),
      cmocka_unit_test(the_command_that_repeats_a_case_names_its_folder),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
