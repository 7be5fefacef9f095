/* Workloads: text to problem and back, sizes and work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "verify/grid.h"
#include "problem/check.h"
#include "problem/random_problem.h"
#include "problem/workload_columns.h"

static workload parse(const char *text) {
  workload w;
  char why[512] = "";
  if (!workload_parse(text, &w, why, sizeof why)) fail_msg("'%s': %s", text, why);
  return w;
}

static void names_are_written_as_documented(void **state) {
  (void)state;
  const char *const names[] = {
      "full/B:1/H:4/Hkv:4/D:64/T:1024",
      "causal/B:1/H:8/Hkv:8/D:64/T:4096",
      "linear/causal/B:1/H:8/Hkv:8/D:64/T:4096",
      "window:4095/B:1/H:32/Hkv:8/D:128/T:8192",
      "causal_bottom_right/B:1/H:1/Hkv:1/D:64/Tq:1/Tk:9",
      "band:16,0,31/B:2/H:4/Hkv:2/D:80/Dv:72/Tq:1/Tk:32/lengths:7,32/mask:bq/fill:heavy/seed:7",
      "band:inf,3,-5/B:2/H:2/Hkv:1/D:8/T:9/offsets:0,3/scale:0.1/softcap:30/bias:1/weights/layout:bthd",
      "linear/full/B:1/H:1/Hkv:1/D:8/T:9/phi:relu/unnormalised",
      "linear/causal/B:1/H:1/Hkv:1/D:8/T:9/decay",
      "linear/full/B:1/H:1/Hkv:1/D:8/T:9/epsilon:0/layout:bthd/seed:18446744073709551615",
  };
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
    const workload w = parse(names[n]);
    char name[WORKLOAD_NAME_BYTES];
    workload_name(&w, name);
    assert_string_equal(name, names[n]);
  }
}

static void sizes_that_are_not_said_follow_others(void **state) {
  (void)state;
  const workload w = parse("causal/H:6/D:32");
  assert_int_equal(w.kv_heads, 6);
  assert_int_equal(w.value_dim, 32);
  assert_int_equal(w.query_length, 1024);
  assert_int_equal(w.batch, 1);
}

static bool same_bits(double a, double b) {
  return (a == b && !signbit(a) == !signbit(b)) || (isnan(a) && isnan(b));
}

static bool same(const workload *a, const workload *b) {
  return a->function == b->function && a->batch == b->batch && a->query_heads == b->query_heads &&
         a->kv_heads == b->kv_heads && a->query_length == b->query_length && a->key_length == b->key_length &&
         a->head_dim == b->head_dim && a->value_dim == b->value_dim && same_bits(a->scale, b->scale) &&
         same_bits(a->softcap, b->softcap) && same_bits(a->epsilon, b->epsilon) && a->left == b->left &&
         a->right == b->right && a->offset == b->offset && a->has_offsets == b->has_offsets &&
         a->has_lengths == b->has_lengths && memcmp(a->offsets, b->offsets, sizeof a->offsets) == 0 &&
         memcmp(a->lengths, b->lengths, sizeof a->lengths) == 0 &&
         memcmp(&a->mask, &b->mask, sizeof a->mask) == 0 && memcmp(&a->bias, &b->bias, sizeof a->bias) == 0 &&
         a->wants_lse == b->wants_lse && a->wants_weights == b->wants_weights && a->layout == b->layout &&
         a->fill == b->fill && a->seed == b->seed && a->relative == b->relative &&
         memcmp(&a->keep, &b->keep, sizeof a->keep) == 0 && a->dropout_p == b->dropout_p &&
         a->general == b->general && a->additive == b->additive && a->t5_buckets == b->t5_buckets &&
         a->t5_distance == b->t5_distance && a->t5_one == b->t5_one && a->type == b->type &&
         a->output_type == b->output_type && a->feature_map == b->feature_map &&
         a->unnormalised == b->unnormalised && a->decay == b->decay && a->rope == b->rope &&
         a->state == b->state && a->final_state == b->final_state && a->rope_features == b->rope_features;
}

static void every_name_parses_back_into_its_workload(void **state) {
  (void)state;
  const int64_t grid = verify_grid_count();
  for (int64_t n = 0; n < grid + 5000; n++) {
    const workload w = n < grid ? verify_grid_problem(n).workload : random_problem(3, n - grid);
    char name[WORKLOAD_NAME_BYTES];
    workload_name(&w, name);
    const workload back = parse(name);
    if (!same(&w, &back)) fail_msg("not the same after parsing: %s", name);
  }
}

static void the_longest_name_fits(void **state) {
  (void)state;
  workload w = parse("linear/band:1,1,1/offsets:0/lengths:0/mask:bhq/bias:bhq/lse/weights/relative:1/"
                     "t5:1,1,one/rope:interleaved,2/phi:identity/unnormalised/decay/state/final_state/"
                     "additive/general/dropout:0,bh/layout:padded");
  w.fill = FILL_CANCELLATION;
  w.batch = 16;
  w.query_heads = w.kv_heads = w.query_length = w.head_dim = w.value_dim = INT64_MIN;
  w.key_length = w.left = w.right = w.offset = INT64_MIN + 1;
  w.relative = w.t5_buckets = w.rope_features = INT64_MAX;
  w.t5_distance = INT64_MIN;
  w.dropout_p = w.scale = w.softcap = w.epsilon = -1.2345678901234567e-300;
  w.seed = UINT64_MAX;
  w.type = ATTN_BFLOAT16;
  w.output_type = ATTN_FLOAT32;
  for (int b = 0; b < 16; b++) w.offsets[b] = w.lengths[b] = INT64_MIN;
  char name[WORKLOAD_NAME_BYTES];
  workload_name(&w, name);
  assert_true(strlen(name) < WORKLOAD_NAME_BYTES - 1);
  assert_non_null(strstr(name, "/seed:18446744073709551615"));
}

static void text_that_is_no_workload_is_refused_in_words(void **state) {
  (void)state;
  const struct {
    const char *text, *words;
  } cases[] = {
      {"", "unknown part ''"},
      {"casual", "unknown part 'casual': parts are full, causal"},
      {"full/X:3", "unknown part 'X:3': parts are"},
      {"full/T:3/fp16", "unknown part 'fp16': parts are"},
      {"full/T:3/bf16/out:f16", "'out:f16': an output of another type is out:f32"},
      {"full/B:two", "'two' is not a whole number"},
      {"full/B:", "'' is not a whole number"},
      {"full/B:99999999999999999999", "is not a whole number"},
      {"full/Tq:3", "Tq is given without Tk"},
      {"full/scale:nan", "'nan' is not a number"},
      {"full/scale:1x", "'1x' is not a number"},
      {"window:-3", "not '-3'"},
      {"band:1,2", "a band is band:LEFT,RIGHT,OFFSET"},
      {"band:1,2,3,4", "is not a whole number"},
      {"full/B:2/lengths:3", "lengths lists 1 numbers, but B is 2"},
      {"full/offsets:1,,2", "'' is not a whole number"},
      {"full/mask:bb", "axes are each of b, h, q at most once"},
      {"full/mask:", "axes are"},
      {"full/fill:furry", "unknown fill 'furry': there are uniform"},
      {"full/layout:bdth", "unknown layout 'bdth': there are bhtd, bthd, shifted, padded"},
      {"full/seed:-1", "is not a whole number from 0"},
      {"full/lengths:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "lists more than 16 numbers"},
  };
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    workload w;
    char why[512] = "";
    if (workload_parse(cases[n].text, &w, why, sizeof why)) fail_msg("parsed: %s", cases[n].text);
    if (!strstr(why, cases[n].words)) fail_msg("'%s' is not in: %s", cases[n].words, why);
  }
}

static void a_pattern_without_sense_is_refused_in_words(void **state) {
  (void)state;
  const struct {
    const char *line, *words;
  } cases[] = {
      {"see:local:-1,0/T:10", "'-1' is no whole number from 0, sqrt or inf: it is local:LEFT,RIGHT"},
      {"see:first:-1/T:10", "'-1' is no whole number from 0, sqrt: it is first:COUNT"},
      {"see:strided:0/T:10", "terms[0] has a step, length or block of 0: it must be 1 or more"},
      {"see:local:1,1+first:1+global:1+strided:3+dilated:1,2/T:10", "has 5 terms: it must have at most 4"},
      {"see:local:1,1+first:1+global:1+strided:3/docs:4/T:10",
       "at most 4, documents, blocks and listed keys"},
      {"see:random:3/T:10", "see:random:3 has too few numbers: it is random:COUNT,BLOCK or"},
      {"see:random:3,0/T:10", "terms[0] has a step, length or block of 0"},
      {"see:fixed:8,9/T:10", "terms[0] shows 9 columns of every 8: it must be no more than these"},
      {"blocks:0,4/T:10", "a block mask is blocks:BQ,BK,DENSITY,AXES: rows and keys of a block, from 1"},
      {"blocks:8,8,2/T:10", "the density '2' is the share of blocks that may be seen, 0 to 1"},
      {"topk:-1/T:10", "listed keys are topk:K, from 1"},
      {"docs:-3/T:10", "documents are docs:LENGTH, their mean length from 1"},
      {"relative:0/T:10",
       "'relative:0': a relative table is relative:R, the greatest distance that it tells apart"},
      {"relative:-3/T:10", "a relative table is relative:R"},
      {"relative:/T:10", "a relative table is relative:R"},
      {"relative:3,4/T:10", "a relative table is relative:R"},
      {"relative:1073741825/T:10",
       "relative_distance is 1073741825: a relative table tells distances apart up to"},
      {"relative:9223372036854775807/T:10", "up to one of 1 to 1073741824"},
      {"t5:0,20/T:10", "'t5:0,20': T5's buckets are t5:BUCKETS,DISTANCE, their number from 2"},
      {"t5:8/T:10", "T5's buckets are t5:BUCKETS,DISTANCE"},
      {"t5:8,20,two/T:10", "or t5:BUCKETS,DISTANCE,one for one direction"},
      {"t5:8,20,one,1/T:10", "or t5:BUCKETS,DISTANCE,one for one direction"},
      {"t5:8,/T:10", "T5's buckets are t5:BUCKETS,DISTANCE"},
      {"t5:1,20,one/T:10", "t5_buckets is 1: it must be 2 to 1024"},
      {"t5:1025,2000,one/T:10", "t5_buckets is 1025: it must be 2 to 1024"},
      {"t5:2,20/T:10", "t5_buckets is 2: of both directions it must be an even number, 4 to 1024"},
      {"t5:7,20/T:10", "t5_buckets is 7: of both directions it must be an even number"},
      {"t5:32,8/T:10", "t5_distance is 8: it must be above 8, the buckets of 32 that have one distance each"},
      {"t5:32,16,one/T:10", "t5_distance is 16: it must be above 16"},
      {"t5:32,-9/T:10", "t5_distance is -9: it must be above 8"},
      {"t5:32,1048577/T:10", "and at most 1048576"},
      {"rope:all/T:10", "'rope:all': a rotary embedding is rope:half or rope:interleaved"},
      {"rope:/T:10", "a rotary embedding is rope:half or rope:interleaved"},
      {"rope:half,/T:10", "rope:half,R rotates the first R alone"},
      {"rope:half,0/T:10", "rope:half,R rotates the first R alone"},
      {"rope:half,4,4/T:10", "rope:half,R rotates the first R alone"},
      {"rope:half,7/T:10", "rope_features is 7: it must be an even number, 2 to head_dim 64"},
      {"rope:half,66/T:10", "rope_features is 66: it must be an even number, 2 to head_dim 64"},
      {"rope:interleaved/D:1/T:10", "rope_features is 0: it must be an even number, 2 to head_dim 1"},
      {"causal_bottom_right/rope:half/Tq:20/Tk:10", "query positions -10 to 9 go beyond a rotary embedding "
                                                    "of 10 positions: each i + offset must be 0 to 9"},
      {"rope:half/B:2/offsets:4,-1/T:10",
       "query positions -1 to 8 go beyond a rotary embedding of 14 positions"},
      {"band:inf,inf,1152921504606846976/rope:half/T:10",
       "rope_positions is 1152921504606846986: it must be 1 to"},
      {"linear/rope:half/T:10", "linear attention has no use for a rotary embedding"},
      {"general/D:1025/T:10", "head_dim is 1025: general scores are of at most 1024 features"},
      {"backward/general/T:10", "the backward pass has no use for general scores"},
      {"linear/general/T:10", "linear attention has no use for general scores"},
      {"linear_backward/general/T:10", "has no use for general scores"},
      {"layer/general/T:10", "a layer has no use for general scores"},
      {"additive/general/T:10", "scores are general or additive, and not both: give one of the two"},
      {"backward/additive/T:10", "the backward pass has no use for additive scores"},
      {"linear/additive/T:10", "linear attention has no use for additive scores"},
      {"layer/additive/T:10", "a layer has no use for additive scores"},
      {"dropout:1/T:10",
       "'dropout:1': dropout is dropout:P or dropout:P,AXES, with P the share of the weights"},
      {"dropout:-0.1/T:10", "from 0 up to, but not, 1"},
      {"dropout:x/T:10", "'dropout:x': 'x' is not a number"},
      {"dropout:nan/T:10", "'nan' is not a number"},
      {"dropout:0.1,k/T:10", "axes are each of b, h, q at most once, or '1'"},
      {"dropout:0.1,/T:10", "axes are each of b, h, q at most once, or '1'"},
      {"linear/dropout:0.1/T:10", "linear attention has no use for dropout"},
      {"linear/t5:8,20/T:10", "linear attention has no use for T5 buckets"},
      {"linear/phi:gelu/T:10", "'phi:gelu': a feature map is elu1, relu or identity"},
      {"phi:relu/T:10", "softmax attention has no use for a feature map"},
      {"decay/T:10", "softmax attention has no use for a decay"},
      {"unnormalised/T:10", "softmax attention has no use for sums without a normaliser"},
      {"linear/relative:3/T:10", "linear attention has no use for a relative table"},
      {"backward/weights/T:10", "the backward pass has no use for weights"},
      {"backward/T:10/fill:largest", "the backward pass has no fill:largest"},
      {"layer/T:10/lse", "a layer has no use for a log-sum-exp"},
      {"layer/T:10/weights", "a layer has no use for weights"},
      {"layer/T:10/f16", "query is of 16 bits: a layer is defined for f32"},
      {"layer/T:10/fill:nonfinite", "a layer has no fill:nonfinite"},
      {"layer/T:10/M:0", "M is 0: a layer has one feature or more, and H x D where M is not said"},
      {"layer/T:10/M:-1", "model_dim is -1: it must be 1"},
      {"layer/T:10/H:1099511627776/D:1099511627776", "H x D is out of range"},
      {"layer/H:100000000/D:64/Tq:0/Tk:0/M:100000000000", "w_q of [1, 1, 6400000000, 100000000000]"},
      {"M:8/T:10", "M is of a layer: layer/..."},
      {"linear/memory/T:10", "a memory is of a layer"},
      {"backward/biases/T:10", "the backward pass has no use for biases of projections"},
      {"linear/backward/T:10", "'backward': a problem is of one function"},
      {"linear_backward/backward/T:10", "'backward': a problem is of one function"},
      {"linear_backward/bias:h/T:10", "the backward pass of linear attention has no use for a bias"},
      {"backward/decay/T:10", "the backward pass has no use for a decay"},
      {"linear/state/T:10/window:3", "left is 3: a state holds all keys before"},
      {"linear/final_state/T:10/window:3", "left is 3: a state holds all keys before"},
      {"state/T:10", "softmax attention has no use for an initial state"},
      {"linear_backward/final_state/T:10",
       "the backward pass of linear attention has no use for a final state"},
      {"linear_backward/lse/T:10", "the backward pass of linear attention has no use for a log-sum-exp"},
      {"linear_backward/T:10/fill:largest", "the backward pass has no fill:largest"},
      {"qlengths:-1/T:10", "query_lengths[0] is -1: it must be 0 to query_length 10"},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    workload w;
    char why[512] = "";
    if (workload_parse_sound(cases[n].line, &w, why, sizeof why) || !strstr(why, cases[n].words))
      fail_msg("%s: '%s'", cases[n].line, why);
  }
}

static void parts_that_are_said_change_nothing_else(void **state) {
  (void)state;
  const struct {
    const char *before, *parts, *after;
  } cases[] = {
      {"causal/H:4/D:64/T:128", "Hkv:1", "causal/B:1/H:4/Hkv:1/D:64/T:128"},
      {"full/T:128/seed:7", "window:512", "window:512/B:1/H:4/Hkv:4/D:64/T:128/seed:7"},
      {"window:3/T:9", "full/mask:q", "full/B:1/H:4/Hkv:4/D:64/T:9/mask:q"},
      {"full/T:9", "H:8/D:32", "full/B:1/H:8/Hkv:4/D:32/Dv:64/T:9"},
      {"full/T:9/lse", "linear/fill:heavy", "linear/full/B:1/H:4/Hkv:4/D:64/T:9/lse/fill:heavy"},
  };
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    workload w = parse(cases[n].before);
    char why[512] = "", name[WORKLOAD_NAME_BYTES];
    if (!workload_say(&w, cases[n].parts, why, sizeof why)) fail_msg("%s: %s", cases[n].parts, why);
    workload_name(&w, name);
    assert_string_equal(name, cases[n].after);
  }
}

static void parts_that_are_none_leave_the_workload_as_it_was(void **state) {
  (void)state;
  workload w = parse("causal/T:128");
  const workload before = w;
  char why[512] = "";
  assert_false(workload_say(&w, "Hkv:1/windov:3", why, sizeof why));
  assert_non_null(strstr(why, "unknown part 'windov:3'"));
  assert_true(same(&w, &before));
}

/* `--seed 5` goes through workload_seed_unnamed. */
static void a_seed_that_a_line_names_is_kept(void **state) {
  (void)state;
  workload named = parse("full/T:9/seed:1"), unnamed = parse("full/T:9");
  assert_true(named.names_seed && !unnamed.names_seed && same(&named, &unnamed));
  workload_seed_unnamed(&named, 5);
  workload_seed_unnamed(&unnamed, 5);
  assert_true(named.seed == 1 && unnamed.seed == 5);
  char why[256];
  assert_true(workload_say(&unnamed, "seed:1", why, sizeof why));
  workload_seed_unnamed(&unnamed, 6);
  assert_true(unnamed.seed == 1);
  char name[WORKLOAD_NAME_BYTES];
  workload_name(&named, name);
  assert_string_equal(name, "full/B:1/H:4/Hkv:4/D:64/T:9/seed:1");
}

static void work_is_counted_on_visible_pairs(void **state) {
  (void)state;
  const struct {
    const char *text;
    double pairs, flops;
  } cases[] = {
      {"full/B:2/H:3/D:4/Dv:5/Tq:7/Tk:9", 2 * 3 * 7 * 9, 2 * 9 * 378.0},
      {"causal/H:1/D:1/T:10", 55, 4 * 55},
      {"window:1/H:2/D:1/T:10", 38, 4 * 38},
      {"causal_bottom_right/H:1/D:1/Tq:2/Tk:10", 19, 76},
      {"full/B:2/H:1/D:1/T:10/lengths:3,0", 30, 120},
      {"linear/causal/B:2/H:3/D:4/Dv:5/T:10", 2 * 3 * 55, 4 * 4 * 5 * 2 * 3 * 10},
      {"linear/full/B:2/H:6/Hkv:3/D:4/Dv:5/Tq:1/Tk:10", 2 * 6 * 10, 2 * 4 * 5 * 2 * (6 * 1 + 3 * 10)},
  };
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    const workload w = parse(cases[n].text);
    assert_true(workload_visible_pairs(&w) == cases[n].pairs);
    assert_true(workload_flops(&w) == cases[n].flops);
  }
  const workload w = parse("full/B:2/H:4/Hkv:2/D:8/Dv:4/Tq:3/Tk:5/mask:b/bias:q/lse/weights");
  const double elements = 2 * 4 * 3 * 8 + 2 * 2 * 5 * 8 + 2 * 2 * 5 * 4 + 2 * 4 * 3 * 4;
  assert_true(workload_tensor_bytes(&w) == 4 * (elements + 3 * 5 + 2 * 4 * 3 + 2 * 4 * 3 * 5) + 2 * 5);
}

static void presets_are_sound_and_have_names(void **state) {
  (void)state;
  int count = 0;
  for (const preset *p = preset_list(); p->name; p++, count++) {
    char why[256] = "", name[WORKLOAD_NAME_BYTES];
    const attn_problem problem = workload_problem(&p->workload);
    if (!check_problem(&problem, why, sizeof why)) fail_msg("%s: %s", p->name, why);
    assert_ptr_equal(preset_find(p->name), p);
    workload_name(&p->workload, name);
    const workload back = parse(name);
    assert_true(same(&p->workload, &back));
  }
  assert_int_equal(count, 20);
  assert_null(preset_find("gpt5"));
}

/* Keys and values that are seen, queries and outputs: 4 bytes each, or 2. */
static void bytes_are_counted_once(void **state) {
  (void)state;
  static const struct {
    const char *line;
    double seen, moved;
  } cases[] = {
      {"full/B:1/H:8/Hkv:2/D:16/Tq:1/Tk:100", 2 * 32 * 4 * 100, 2 * 32 * 4 * 100 + 2 * 8 * 16 * 4},
      {"full/B:1/H:8/Hkv:2/D:16/Tq:1/Tk:100/bf16", 2 * 32 * 2 * 100, 2 * 32 * 2 * 100 + 2 * 8 * 16 * 2},
      {"causal/B:1/H:1/D:4/Tq:1/Tk:50", 8 * 4, 8 * 4 + 8 * 4},
      {"band:9,0,99/B:1/H:1/D:4/Tq:1/Tk:100", 10 * 8 * 4, 10 * 8 * 4 + 8 * 4},
      {"causal/B:2/H:1/D:4/T:50", 2 * 50 * 8 * 4, 2 * 50 * 16 * 4}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    workload workload;
    char why[256] = "";
    if (!workload_parse(cases[n].line, &workload, why, sizeof why)) fail_msg("%s", why);
    assert_true(workload_seen_bytes(&workload) == cases[n].seen);
    assert_true(workload_moved_bytes(&workload) == cases[n].moved);
  }
}

static void every_part_of_a_problem_has_its_column(void **state) {
  (void)state;
  static const struct {
    const char *line, *columns;
  } cases[] = {
      {"linear/causal/B:2/H:8/Hkv:4/D:64/Dv:32/Tq:1/Tk:4096",
       "linear|causal||2|8|4|64|32|1|4096|f32|f32|bhtd|uniform|1|"},
      {"window:16/B:1/H:2/Hkv:2/D:8/T:32/softcap:30/sink/bf16/out:f32/layout:bthd/fill:heavy/"
       "seed:18446744073709551615",
       "softmax|window:16|softcap:30/sink|1|2|2|8|8|32|32|bf16|f32|bthd|heavy|18446744073709551615|"}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    workload workload;
    char why[256] = "", text[WORKLOAD_NAME_BYTES], all[2 * WORKLOAD_NAME_BYTES] = "";
    if (!workload_parse(cases[n].line, &workload, why, sizeof why)) fail_msg("%s", why);
    for (int column = 0; column < WORKLOAD_COLUMNS; column++) {
      workload_columns[column].write(&workload, text);
      const size_t used = strlen(all);
      snprintf(all + used, sizeof all - used, "%.100s|", text);
    }
    assert_string_equal(all, cases[n].columns);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_are_counted_once),
      cmocka_unit_test(every_part_of_a_problem_has_its_column),
      cmocka_unit_test(names_are_written_as_documented),
      cmocka_unit_test(sizes_that_are_not_said_follow_others),
      cmocka_unit_test(every_name_parses_back_into_its_workload),
      cmocka_unit_test(the_longest_name_fits),
      cmocka_unit_test(text_that_is_no_workload_is_refused_in_words),
      cmocka_unit_test(a_pattern_without_sense_is_refused_in_words),
      cmocka_unit_test(parts_that_are_said_change_nothing_else),
      cmocka_unit_test(parts_that_are_none_leave_the_workload_as_it_was),
      cmocka_unit_test(a_seed_that_a_line_names_is_kept),
      cmocka_unit_test(work_is_counted_on_visible_pairs),
      cmocka_unit_test(presets_are_sound_and_have_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
