/* What is added to scores, caps them or hides keys one by one: bias, softcap, sinks, mask. */
#include "hint_mistake_rows.h"

static const double log2_e = 1.4426950408889634;

static bool has_bias(const asked *a) { return a->problem->bias.type != ATTN_ABSENT; }
static bool has_mask(const asked *a) { return a->problem->mask.type != ATTN_ABSENT; }
static bool has_sink(const asked *a) { return a->problem->sink.type != ATTN_ABSENT; }

static bool no_softcap(asked *a, int64_t n) { return (void)n, a->softcap > 0 && set(&a->softcap, 0); }
static bool softcap_last(asked *a, int64_t n) {
  (void)n;
  return a->softcap > 0 && has_bias(a) && (a->softcap_last = true);
}
static bool softcap_not_given_back(asked *a, int64_t n) {
  return (void)n, a->softcap > 0 && set(&a->softcap, 1);
}
static bool softcap_not_divided(asked *a, int64_t n) {
  return (void)n, a->softcap > 0 && set(&a->softcap_inside, 1);
}
static bool softcap_of_half(asked *a, int64_t n) {
  return (void)n, a->softcap > 0 && set(&a->softcap_inside, 2 * a->softcap);
}

static bool no_bias(asked *a, int64_t n) { return (void)n, has_bias(a) && set(&a->bias_factor, 0); }
/* Of a bias of -inf that would be NaN, which explains any other NaN as well. */
static bool bias_subtracted(asked *a, int64_t n) {
  bool hides = false;
  for (int64_t j = 0; has_bias(a) && j < a->problem->key_length && !hides; j++)
    hides = hint_row(a, TENSOR_BIAS, a->bias)[j] == -INFINITY;
  return (void)n, has_bias(a) && !hides && set(&a->bias_factor, -1);
}
static bool bias_in_base_2(asked *a, int64_t n) {
  return (void)n, has_bias(a) && set(&a->bias_factor, 1 / log2_e);
}
static bool bias_twice_in_base_2(asked *a, int64_t n) {
  return (void)n, has_bias(a) && set(&a->bias_factor, log2_e);
}
static bool bias_scaled(asked *a, int64_t n) { return (void)n, has_bias(a) && (a->bias_before_scale = true); }
static bool bias_of_head(asked *a, int64_t n) {
  return has_bias(a) && a->problem->bias.head != 0 && move(&a->bias.h, n);
}
static bool bias_of_entry(asked *a, int64_t n) {
  return (void)n, has_bias(a) && a->problem->bias.batch != 0 && move(&a->bias.b, 0);
}
static bool bias_of_row(asked *a, int64_t n) {
  return (void)n, has_bias(a) && a->problem->bias.position != 0 && move(&a->bias.i, 0);
}
static bool bias_finite(asked *a, int64_t n) { return has_bias(a) && set(&a->lowest_bias, (double)-n); }
static bool bias_overflows(asked *a, int64_t n) { return (void)n, has_bias(a) && (a->bias_overflows = true); }

static bool mask_used(asked *a, mask_use use) {
  a->mask_use = use;
  return has_mask(a);
}
static bool no_mask(asked *a, int64_t n) { return (void)n, mask_used(a, MASK_IGNORED); }
static bool mask_inverted(asked *a, int64_t n) { return (void)n, mask_used(a, MASK_INVERTED); }
static bool mask_after(asked *a, int64_t n) { return (void)n, mask_used(a, MASK_AFTER_SOFTMAX); }
static bool mask_of_head(asked *a, int64_t n) {
  return has_mask(a) && a->problem->mask.head != 0 && move(&a->mask.h, n);
}
static bool mask_of_entry(asked *a, int64_t n) {
  return (void)n, has_mask(a) && a->problem->mask.batch != 0 && move(&a->mask.b, 0);
}
static bool mask_of_row(asked *a, int64_t n) {
  return (void)n, has_mask(a) && a->problem->mask.position != 0 && move(&a->mask.i, 0);
}

static bool no_sink(asked *a, int64_t n) {
  (void)n;
  a->sink_in_sum = a->sink_in_lse = false;
  return has_sink(a);
}
static bool sink_not_in_sum(asked *a, int64_t n) { return (void)n, a->sink_in_sum = false, has_sink(a); }
static bool sink_not_in_lse(asked *a, int64_t n) { return (void)n, a->sink_in_lse = false, has_sink(a); }
static bool sink_leaves_output(asked *a, int64_t n) {
  return (void)n, a->sink_leaves_output = true, has_sink(a);
}
static bool sink_of_head(asked *a, int64_t n) { return has_sink(a) && move(&a->sink_head, n); }
static bool sink_in_base_2(asked *a, int64_t n) {
  return (void)n, has_sink(a) && set(&a->sink_factor, 1 / log2_e);
}
static bool sink_twice_in_base_2(asked *a, int64_t n) {
  return (void)n, has_sink(a) && set(&a->sink_factor, log2_e);
}
static bool sink_scaled(asked *a, int64_t n) {
  return (void)n, has_sink(a) && set(&a->sink_factor, a->scale);
}

static bool has_keep(const asked *a) { return a->problem->keep.type != ATTN_ABSENT; }
static bool keep_is(asked *a, int64_t n) { return a->keep_use = (keep_use)n, has_keep(a); }
static bool keep_of_head(asked *a, int64_t n) {
  return has_keep(a) && a->problem->keep.head != 0 && move(&a->keep.h, n);
}
static bool keep_of_row(asked *a, int64_t n) {
  return (void)n, has_keep(a) && a->problem->keep.position != 0 && move(&a->keep.i, 0);
}

static const mistake table[] = {
    {"bias", "the bias is ignored", SOFTMAX, ONCE, no_bias},
    {"bias", "the bias of head %lld is taken for every head", SOFTMAX, WITH(0), bias_of_head},
    {"bias", "the bias of the first row is taken for every row", SOFTMAX, ONCE, bias_of_row},
    {"bias", "the bias of the first batch entry is taken for every entry", SOFTMAX, ONCE, bias_of_entry},
    {"bias", "the bias is added to scores in base 2 without its factor log2(e)", SOFTMAX, ONCE,
     bias_in_base_2},
    {"bias", "the bias has the factor log2(e) too often", SOFTMAX, ONCE, bias_twice_in_base_2},
    {"bias", "the bias is added before the scale is applied", SOFTMAX, ONCE, bias_scaled},
    {"bias", "the bias is subtracted", SOFTMAX, ONCE, bias_subtracted},
    {"bias", "a bias of -inf is taken as -%lld: a row of such keys alone is not empty", SOFTMAX,
     WITH(10000, 65504, 1000000000), bias_finite},
    {"bias",
     "the lowest bias is taken for -inf, as log2(e) makes of it: a row of such keys alone is not empty",
     SOFTMAX, ONCE, bias_overflows},
    {"softcap", "the softcap comes after the bias: it should come before", SOFTMAX, ONCE, softcap_last},
    {"softcap", "the softcap is ignored", SOFTMAX, ONCE, no_softcap},
    {"softcap", "the score is divided by twice the softcap inside tanh", SOFTMAX, ONCE, softcap_of_half},
    {"softcap", "tanh is not multiplied by the softcap", SOFTMAX, ONCE, softcap_not_given_back},
    {"softcap", "the score is not divided by the softcap inside tanh", SOFTMAX, ONCE, softcap_not_divided},
    {"sink", "the sinks are ignored", SOFTMAX, ONCE, no_sink},
    {"sink", "the sink does not join the sum that the output is divided by", SOFTMAX, ONCE, sink_not_in_sum},
    {"sink", "the sink does not join the log-sum-exp", SOFTMAX, ONCE, sink_not_in_lse},
    {"sink", "every head has the sink of head %lld", SOFTMAX, WITH(0), sink_of_head},
    {"sink", "the sink joins scores in base 2 without its factor log2(e)", SOFTMAX, ONCE, sink_in_base_2},
    {"sink", "the sink has the factor log2(e) too often", SOFTMAX, ONCE, sink_twice_in_base_2},
    {"sink", "where the sink is larger than every score, the output is not rescaled to it", SOFTMAX, ONCE,
     sink_leaves_output},
    {"sink", "the sink is multiplied by the scale", SOFTMAX, ONCE, sink_scaled},
    {"dropout", "the keep mask is ignored", SOFTMAX, WITH(KEEP_IGNORED), keep_is},
    {"dropout", "weights that are kept are not divided by 1 - p", SOFTMAX, WITH(KEEP_UNSCALED), keep_is},
    {"dropout", "the keep mask is applied before the softmax: the sum lacks the keys that are dropped",
     SOFTMAX, WITH(KEEP_BEFORE_SUM), keep_is},
    {"dropout", "the keep mask of head %lld is taken for every head", SOFTMAX, WITH(0), keep_of_head},
    {"dropout", "the keep mask of the first row is taken for every row", SOFTMAX, ONCE, keep_of_row},
    {"mask", "the mask is ignored", SOFTMAX, ONCE, no_mask},
    {"mask", "the mask is inverted: 1 means may be seen", SOFTMAX, ONCE, mask_inverted},
    {"mask", "the mask is applied after the softmax: hidden keys join the sum", SOFTMAX, ONCE, mask_after},
    {"mask", "the mask of head %lld is taken for every head", SOFTMAX, WITH(0), mask_of_head},
    {"mask", "the mask of the first row is taken for every row", SOFTMAX, ONCE, mask_of_row},
    {"mask", "the mask of the first batch entry is taken for every entry", SOFTMAX, ONCE, mask_of_entry},
};

const mistakes hint_mistakes_of_parts = MISTAKES(table);
