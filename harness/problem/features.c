/* See features.h. The order of the rows is that of their parts in a problem line, and of the draws. */
#include "features.h"

#include <math.h>
#include <string.h>

#include "linear_text.h"
#include "pattern_text.h"
#include "position_text.h"
#include "weights_text.h"

#define SOFTMAX (1u << ATTN_SOFTMAX)
#define LINEAR (1u << ATTN_LINEAR)
#define SCORES (SOFTMAX | 1u << ATTN_SOFTMAX_BACKWARD)
#define ALL_LINEAR (LINEAR | 1u << ATTN_LINEAR_BACKWARD)
#define LAYER (1u << ATTN_LAYER)
#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

/* ---- the band, which has words of its own in workload_text.c ---- */

static bool uses_band(const attn_problem *p) {
  return p->left != ATTN_UNLIMITED || p->right != ATTN_UNLIMITED;
}
static void leave_out_band(workload *w) {
  w->left = w->right = ATTN_UNLIMITED;
  w->offset = 0;
  w->has_offsets = false;
}
static void copy_band(const workload *from, workload *to) {
  to->left = from->left;
  to->right = from->right;
  to->offset = from->offset;
}

static bool uses_offset(const attn_problem *p) { return p->offset != 0 || p->offsets; }
static bool read_offsets(workload_reading *r, const char *key, const char *text) {
  r->workload.has_offsets = true;
  return words_list(r, key, text, r->workload.offsets, &r->offset_count);
}
static void write_offsets(const workload *w, const char *key, workload_writing *to) {
  if (w->has_offsets) words_add_list(to, key, w->offsets, w->batch);
}
static void leave_out_offsets(workload *w) { w->has_offsets = false; }
static void copy_offsets(const workload *from, workload *to) {
  to->has_offsets = from->has_offsets;
  memcpy(to->offsets, from->offsets, sizeof to->offsets);
}

static bool uses_key_lengths(const attn_problem *p) { return p->key_lengths != NULL; }
static bool read_lengths(workload_reading *r, const char *key, const char *text) {
  r->workload.has_lengths = true;
  return words_list(r, key, text, r->workload.lengths, &r->length_count);
}
static void write_lengths(const workload *w, const char *key, workload_writing *to) {
  if (w->has_lengths) words_add_list(to, key, w->lengths, w->batch);
}
static void leave_out_lengths(workload *w) { w->has_lengths = false; }
static void copy_lengths(const workload *from, workload *to) {
  to->has_lengths = from->has_lengths;
  memcpy(to->lengths, from->lengths, sizeof to->lengths);
}

/* ---- numbers ---- */

static bool read_scale(workload_reading *r, const char *key, const char *text) {
  return words_double(r, key, text, &r->workload.scale);
}
static void write_scale(const workload *w, const char *key, workload_writing *to) {
  if (!isnan(w->scale)) words_add_double(to, key, w->scale);
}
static void draw_scale(draws *from, workload *w) {
  static const double scales[] = {0, 1, -1, 1e-30, -1e-3, 30};
  if (draw_one_in(from, 4)) w->scale = (double)draw_between(from, -40, 40) / 32 / sqrt((double)w->head_dim);
  if (draw_one_in(from, 20)) w->scale = scales[draw_between(from, 0, COUNT(scales) - 1)];
}
static void leave_out_scale(workload *w) { w->scale = NAN; }
static void copy_scale(const workload *from, workload *to) { to->scale = from->scale; }

static bool uses_softcap(const attn_problem *p) { return p->softcap != 0; }
static bool read_softcap(workload_reading *r, const char *key, const char *text) {
  return words_double(r, key, text, &r->workload.softcap);
}
static void write_softcap(const workload *w, const char *key, workload_writing *to) {
  if (w->softcap != 0) words_add_double(to, key, w->softcap);
}
static void draw_softcap(draws *from, workload *w) {
  static const double softcaps[] = {1e-3, 0.5, 1e4};
  if (draw_one_in(from, 5)) w->softcap = (double)draw_between(from, 1, 100) / 2;
  if (draw_one_in(from, 40)) w->softcap = softcaps[draw_between(from, 0, COUNT(softcaps) - 1)];
}
static void leave_out_softcap(workload *w) { w->softcap = 0; }
static void copy_softcap(const workload *from, workload *to) { to->softcap = from->softcap; }

static bool read_epsilon(workload_reading *r, const char *key, const char *text) {
  return words_double(r, key, text, &r->workload.epsilon);
}
static void write_epsilon(const workload *w, const char *key, workload_writing *to) {
  if (w->epsilon != WORKLOAD_EPSILON) words_add_double(to, key, w->epsilon);
}
static void draw_epsilon(draws *from, workload *w) {
  if (draw_one_in(from, 4)) w->epsilon = draw_one_in(from, 2) ? 0 : (double)draw_between(from, 1, 100) / 64;
}
static void leave_out_epsilon(workload *w) { w->epsilon = WORKLOAD_EPSILON; }
static void copy_epsilon(const workload *from, workload *to) { to->epsilon = from->epsilon; }

/* ---- the pattern ---- */

static bool uses_query_lengths(const attn_problem *p) { return p->query_lengths != NULL; }
static bool read_query_lengths(workload_reading *r, const char *key, const char *text) {
  r->workload.has_query_lengths = true;
  return words_list(r, key, text, r->workload.query_lengths, &r->query_length_count);
}
static void write_query_lengths(const workload *w, const char *key, workload_writing *to) {
  if (w->has_query_lengths) words_add_list(to, key, w->query_lengths, w->batch);
}
static void leave_out_query_lengths(workload *w) { w->has_query_lengths = false; }
static void copy_query_lengths(const workload *from, workload *to) {
  to->has_query_lengths = from->has_query_lengths;
  memcpy(to->query_lengths, from->query_lengths, sizeof to->query_lengths);
}

static bool uses_terms(const attn_problem *p) { return p->term_count > 0; }
static void leave_out_terms(workload *w) { w->term_count = 0; }
static void copy_terms(const workload *from, workload *to) {
  to->term_count = from->term_count;
  memcpy(to->terms, from->terms, sizeof to->terms);
}

static void leave_out_documents(workload *w) { w->document_length = 0, w->documents_shuffled = false; }
static void copy_documents(const workload *from, workload *to) {
  to->document_length = from->document_length;
  to->documents_shuffled = from->documents_shuffled;
}

static void copy_blocks(const workload *from, workload *to) {
  to->block_q = from->block_q;
  to->block_k = from->block_k;
  to->block_density = from->block_density;
}

static void leave_out_topk(workload *w) { w->topk = 0; }
static void copy_topk(const workload *from, workload *to) { to->topk = from->topk; }

/* ---- positions ---- */

static void leave_out_relative(workload *w) { w->relative = 0; }
static void copy_relative(const workload *from, workload *to) { to->relative = from->relative; }

static void leave_out_t5(workload *w) { w->t5_buckets = w->t5_distance = 0, w->t5_one = false; }
static void copy_t5(const workload *from, workload *to) {
  to->t5_buckets = from->t5_buckets;
  to->t5_distance = from->t5_distance;
  to->t5_one = from->t5_one;
}

static void leave_out_rope(workload *w) { w->rope = ROPE_NONE, w->rope_features = 0; }
static void copy_rope(const workload *from, workload *to) {
  to->rope = from->rope;
  to->rope_features = from->rope_features;
}

/* ---- of linear attention ---- */

static bool uses_feature_map(const attn_problem *p) { return p->feature_map != ATTN_ELU1; }
static void leave_out_feature_map(workload *w) { w->feature_map = ATTN_ELU1; }
static void copy_feature_map(const workload *from, workload *to) { to->feature_map = from->feature_map; }

static bool uses_unnormalised(const attn_problem *p) { return p->unnormalised; }

/* ---- what becomes of the weights ---- */

static void leave_out_dropout(workload *w) { w->dropout_p = 0; }
static void copy_dropout(const workload *from, workload *to) { to->dropout_p = from->dropout_p; }

/* ---- a layer ---- */

static bool uses_memory(const attn_problem *p) {
  return tensors_are_of_layer(p) && p->key.type != ATTN_ABSENT;
}

/* ---- the table ---- */

#define NO_TENSOR .tensor = TENSORS

const feature_row feature_table[FEATURES] = {
    {ATTN_BAND, "a band", "takes no band", SCORES | ALL_LINEAR | LAYER, NULL, NO_TENSOR, .is_used = uses_band,
     .leave_out = leave_out_band, .copy = copy_band},
    {ATTN_OFFSET, "an offset", "takes no offset", SCORES | ALL_LINEAR | LAYER, "offsets", NO_TENSOR,
     .is_used = uses_offset, .read = read_offsets, .write = write_offsets, .leave_out = leave_out_offsets,
     .copy = copy_offsets},
    {ATTN_KEY_LENGTHS, "key lengths", "takes no key lengths", SCORES | ALL_LINEAR | LAYER, "lengths",
     NO_TENSOR, .is_used = uses_key_lengths, .read = read_lengths, .write = write_lengths,
     .leave_out = leave_out_lengths, .copy = copy_lengths},
    {0, "a scale", NULL, SCORES | LAYER, "scale", NO_TENSOR, .read = read_scale, .write = write_scale,
     .draw = draw_scale, .leave_out = leave_out_scale, .copy = copy_scale},
    {ATTN_SOFTCAP, "a softcap", "takes no softcap", SCORES | LAYER, "softcap", NO_TENSOR,
     .is_used = uses_softcap, .read = read_softcap, .write = write_softcap, .draw = draw_softcap,
     .leave_out = leave_out_softcap, .copy = copy_softcap},
    {0, "an epsilon", NULL, ALL_LINEAR, "epsilon", NO_TENSOR, .read = read_epsilon, .write = write_epsilon,
     .draw = draw_epsilon, .leave_out = leave_out_epsilon, .copy = copy_epsilon},
    {ATTN_MASK, "a mask", "takes no mask", SCORES | LAYER, "mask", TENSOR_MASK,
     .axes = offsetof(workload, mask), .rarity = 5},
    {ATTN_BIAS, "a bias", "takes no bias", SCORES | LAYER, "bias", TENSOR_BIAS,
     .axes = offsetof(workload, bias), .rarity = 5},
    {ATTN_SINK, "sinks", "takes no attention sinks", SCORES | LAYER, "sink", TENSOR_SINK,
     .flag = offsetof(workload, sink), .rarity = 4},
    {ATTN_LSE, "a log-sum-exp", "gives no log-sum-exp", SCORES, "lse", TENSOR_LSE,
     .flag = offsetof(workload, wants_lse), .rarity = 2},
    {ATTN_WEIGHTS, "weights", "never holds the attention weights", SOFTMAX, "weights", TENSOR_WEIGHTS,
     .flag = offsetof(workload, wants_weights), .rarity = 12},
    {ATTN_QUERY_LENGTHS, "query lengths", "takes no query lengths", SCORES | LAYER, "qlengths", NO_TENSOR,
     .is_used = uses_query_lengths, .read = read_query_lengths, .write = write_query_lengths,
     .leave_out = leave_out_query_lengths, .copy = copy_query_lengths},
    {ATTN_PATTERN, "a pattern", "takes no pattern of terms", SCORES | LAYER, "see", NO_TENSOR,
     .is_used = uses_terms, .read = pattern_read_see, .write = pattern_write_see,
     .leave_out = leave_out_terms, .copy = copy_terms},
    {ATTN_DOCUMENTS, "documents", "takes no documents", SCORES | LAYER, "docs", TENSOR_QUERY_DOCUMENTS,
     .number = offsetof(workload, document_length), .read = pattern_read_documents,
     .write = pattern_write_documents, .leave_out = leave_out_documents, .copy = copy_documents},
    {ATTN_BLOCKS, "a block mask", "takes no block mask", SCORES | LAYER, "blocks", TENSOR_BLOCKS,
     .axes = offsetof(workload, blocks), .read = pattern_read_blocks, .write = pattern_write_blocks,
     .copy = copy_blocks},
    {ATTN_TOPK, "listed keys", "takes no listed keys", SCORES | LAYER, "topk", TENSOR_TOPK,
     .number = offsetof(workload, topk), .read = pattern_read_topk, .write = pattern_write_topk,
     .leave_out = leave_out_topk, .copy = copy_topk},
    {ATTN_ALIBI, "ALiBi slopes", "takes no ALiBi slopes", SCORES | LAYER, "alibi", TENSOR_ALIBI,
     .flag = offsetof(workload, alibi)},
    {ATTN_RELATIVE, "a relative table", "takes no relative table", SCORES | LAYER, "relative",
     TENSOR_RELATIVE, .number = offsetof(workload, relative), .read = position_read_relative,
     .write = position_write_relative, .leave_out = leave_out_relative, .copy = copy_relative},
    {ATTN_T5, "T5 buckets", "takes no T5 buckets", SCORES | LAYER, "t5", TENSOR_T5,
     .number = offsetof(workload, t5_buckets), .read = position_read_t5, .write = position_write_t5,
     .leave_out = leave_out_t5, .copy = copy_t5},
    {ATTN_ROPE, "a rotary embedding", "takes no rotary embedding", SCORES, "rope", TENSOR_ROPE_COS,
     .number = offsetof(workload, rope), .read = position_read_rope, .write = position_write_rope,
     .leave_out = leave_out_rope, .copy = copy_rope},
    {ATTN_FEATURE_MAP, "a feature map", "has no feature map but elu + 1", ALL_LINEAR, "phi", NO_TENSOR,
     .is_used = uses_feature_map, .read = linear_read_phi, .write = linear_write_phi,
     .leave_out = leave_out_feature_map, .copy = copy_feature_map},
    {ATTN_UNNORMALISED, "sums without a normaliser", "divides by the sum of the weights", ALL_LINEAR,
     "unnormalised", NO_TENSOR, .flag = offsetof(workload, unnormalised), .is_used = uses_unnormalised},
    {ATTN_DECAY, "a decay", "takes no decay", ALL_LINEAR, "decay", TENSOR_DECAY,
     .flag = offsetof(workload, decay)},
    {ATTN_STATE, "an initial state", "takes no initial state", ALL_LINEAR, "state", TENSOR_STATE,
     .flag = offsetof(workload, state)},
    {ATTN_FINAL_STATE, "a final state", "gives no final state", LINEAR, "final_state", TENSOR_FINAL_STATE,
     .flag = offsetof(workload, final_state)},
    {ATTN_GENERAL, "general scores", "takes no general scores", SOFTMAX, "general", TENSOR_GENERAL,
     .flag = offsetof(workload, general)},
    {ATTN_ADDITIVE, "additive scores", "takes no additive scores", SOFTMAX, "additive", TENSOR_ADDITIVE,
     .flag = offsetof(workload, additive)},
    {ATTN_DROPOUT, "dropout", "takes no dropout", SCORES, "dropout", TENSOR_KEEP,
     .axes = offsetof(workload, keep), .read = weights_read_dropout, .write = weights_write_dropout,
     .leave_out = leave_out_dropout, .copy = copy_dropout},
    {ATTN_MEMORY, "a memory", "takes no memory: keys and values are of x itself", LAYER, "memory", NO_TENSOR,
     .flag = offsetof(workload, memory), .is_used = uses_memory},
    {ATTN_PROJECTION_BIAS, "biases of projections", "takes no biases of projections", LAYER, "biases",
     TENSOR_B_Q, .flag = offsetof(workload, biases)},
};

/* ---- rows ---- */

static bool *flag_of(const feature_row *row, workload *w) {
  return row->flag ? (bool *)(void *)((char *)w + row->flag) : NULL;
}

workload_axes *feature_axes(const feature_row *row, workload *w) {
  return row->axes ? (workload_axes *)(void *)((char *)w + row->axes) : NULL;
}

/* The same of a workload that is only looked at. */
static bool has_flag(const feature_row *row, const workload *w) {
  return *flag_of(row, (workload *)(uintptr_t)w);
}

static workload_axes axes_of(const feature_row *row, const workload *w) {
  return *feature_axes(row, (workload *)(uintptr_t)w);
}

const feature_row *feature_find(const char *key, bool has_text) {
  for (const feature_row *row = feature_table; row < feature_table + FEATURES; row++)
    if (row->key && strcmp(row->key, key) == 0 && has_text == !row->flag) return row;
  return NULL;
}

bool feature_read(const feature_row *row, workload_reading *r, const char *text) {
  if (row->flag) return *flag_of(row, &r->workload) = true;
  return row->read ? row->read(r, row->key, text)
                   : words_axes(r, row->key, text, feature_axes(row, &r->workload));
}

void feature_write(const feature_row *row, const workload *w, workload_writing *to) {
  if (row->flag && has_flag(row, w)) words_add(to, "/%s", row->key);
  if (row->write)
    row->write(w, row->key, to);
  else if (row->axes)
    words_add_axes(to, row->key, axes_of(row, w));
}

void feature_draw(const feature_row *row, draws *from, workload *w) {
  workload_axes *axes = feature_axes(row, w);
  if (row->draw) row->draw(from, w);
  if (row->flag && row->rarity > 0) *flag_of(row, w) = draw_one_in(from, row->rarity);
  if (!axes || row->rarity == 0 || !(axes->present = draw_one_in(from, row->rarity))) return;
  axes->batch = draw_one_in(from, 2);
  axes->head = draw_one_in(from, 2);
  axes->query = draw_one_in(from, 2);
}

void feature_leave_out(const feature_row *row, workload *w) {
  if (row->flag) *flag_of(row, w) = false;
  if (row->axes) *feature_axes(row, w) = (workload_axes){0};
  if (row->leave_out) row->leave_out(w);
}

void feature_copy(const feature_row *row, const workload *from, workload *to) {
  if (row->flag) *flag_of(row, to) = has_flag(row, from);
  if (row->axes) *feature_axes(row, to) = axes_of(row, from);
  if (row->copy) row->copy(from, to);
}

bool features_have_tensor(const workload *w, tensor_id tensor, workload_axes *axes) {
  const char *letters = tensor_axes(w->function, tensor);
  *axes = (workload_axes){true, letters[0] != '1', letters[1] != '1', letters[2] != '1'};
  if (tensor == TENSOR_KEY_DOCUMENTS) return w->document_length > 0; /* as those of the queries */
  if (tensor == TENSOR_ROPE_SIN) return w->rope != ROPE_NONE;        /* as the cosines */
  if (tensor == TENSOR_STATE_SUM) return w->state && !w->unnormalised;
  if (tensor == TENSOR_FINAL_STATE_SUM) return w->final_state && !w->unnormalised;
  if (tensor_is_gradient(tensor) && !function_is_backward(w->function)) return false;
  if (tensor == TENSOR_LSE && w->function == ATTN_SOFTMAX_BACKWARD) return true;
  if (tensor_of_gradient(tensor) != TENSORS) { /* as what it is of, and over the axes that a bias has */
    workload_axes own;
    const bool has = features_have_tensor(w, tensor_of_gradient(tensor), &own);
    if (tensor == TENSOR_BIAS_GRAD) *axes = own;
    return has;
  }
  if (tensor_is_projection(tensor)) return tensor <= TENSOR_W_O ? w->function == ATTN_LAYER : w->biases;
  if (w->function == ATTN_LAYER && tensor == TENSOR_KEY) return w->memory || w->query_length != w->key_length;
  if (w->function == ATTN_LAYER && tensor == TENSOR_VALUE) return false;
  for (const feature_row *row = feature_table; row < feature_table + FEATURES; row++) {
    if (row->tensor != tensor) continue;
    if (row->axes) *axes = axes_of(row, w);
    axes->query |= tensor == TENSOR_BLOCKS;
    if (row->number) return *(const int64_t *)(const void *)((const char *)w + row->number) > 0;
    return row->flag ? has_flag(row, w) : axes->present;
  }
  return true;
}

/* ---- problems and variants ---- */

bool feature_is_used(const feature_row *row, const attn_problem *problem) {
  if (row->tensor != TENSORS) return tensor_layout(problem, row->tensor)->type != ATTN_ABSENT;
  return row->is_used && row->is_used(problem);
}

uint64_t features_of(const attn_problem *problem) {
  uint64_t features = 0;
  for (const feature_row *row = feature_table; row < feature_table + FEATURES; row++)
    if (feature_is_used(row, problem)) features |= row->bit;
  return features;
}

const char *features_refusal(uint64_t supported, uint64_t used) {
  const uint64_t lacking = used & ~supported;
  for (const feature_row *row = feature_table; row < feature_table + FEATURES; row++)
    if (lacking & row->bit) return row->refusal;
  return lacking ? "does not know a part of the problem that is newer than this program" : NULL;
}
