/* Random problems: the n-th of a seed. Every feature of a problem and every kind of input is drawn, the usual
 * ones often and the corners (nothing at all, the largest numbers allowed, one size that is long) now and then. */
#include "random_problem.h"

#include "features.h"
#include "reference/reference.h"

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

/* Multiply-adds of one problem at most: few seconds have to do for thousands of problems. */
static const int64_t most_work = 4000000;

static int64_t random_length(draws *from) {
  static const int64_t edges[] = {4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256};
  if (draw_one_in(from, 40)) return draw_between(from, 0, 1);
  if (draw_one_in(from, 2)) return edges[draw_between(from, 0, COUNT(edges) - 1)] + draw_between(from, -1, 1);
  return draw_one_in(from, 2) ? draw_between(from, 1, 24) : draw_between(from, 1, 220);
}

static int64_t random_dim(draws *from) {
  static const int64_t usual[] = {16, 32, 64, 80, 128};
  if (draw_one_in(from, 40)) return draw_between(from, 131, 300);
  return draw_one_in(from, 3) ? usual[draw_between(from, 0, COUNT(usual) - 1)] : draw_between(from, 1, 130);
}

static int64_t work_of(const workload *w) {
  return w->batch * w->query_heads * w->query_length * w->key_length * (w->head_dim + w->value_dim);
}

/* Lowers the largest of batch, heads and lengths until the work is small enough. */
static void cut_down(workload *w) {
  const int64_t group = w->query_heads / w->kv_heads;
  while (work_of(w) > most_work) {
    if (w->batch > 1)
      w->batch--;
    else if (w->kv_heads > 3)
      w->query_heads = group * --w->kv_heads;
    else if (w->query_length >= w->key_length)
      w->query_length = w->query_length * 2 / 3;
    else
      w->key_length = w->key_length * 2 / 3;
  }
}

/* Around a power of two, or any. */
static int64_t random_long(draws *from, int64_t most) {
  const int64_t powers = 63 - __builtin_clzll((unsigned long long)most);
  if (draw_one_in(from, 3)) return draw_between(from, 1, most);
  const int64_t near = (INT64_C(1) << draw_between(from, 3, powers)) + draw_between(from, -1, 1);
  return near < most ? near : most;
}

/* One size as large as a kernel may meet it, and the others small, so that it costs little. */
static void draw_thin(draws *from, workload *w) {
  const int64_t which = draw_between(from, 0, 6);
  w->batch = which == 0 ? random_long(from, 65) : draw_between(from, 1, 2);
  w->kv_heads = which == 1 ? random_long(from, 129) : draw_between(from, 1, 2);
  w->query_heads =
      w->kv_heads * (which == 2 ? random_long(from, 129 / w->kv_heads) : draw_between(from, 1, 2));
  w->query_length = which == 3 ? random_long(from, 4099) : draw_between(from, 1, 3);
  w->key_length = which == 4 ? random_long(from, 65537) : draw_between(from, 1, 20);
  w->head_dim = which == 5 ? random_long(from, 1025) : draw_between(from, 1, 12);
  w->value_dim = which == 6 ? random_long(from, 1025) : draw_between(from, 1, 12);
}

static void draw_sizes(draws *from, workload *w) {
  static const int64_t groups[] = {1, 1, 1, 2, 2, 3, 4, 5, 8, 71};
  w->batch =
      draw_one_in(from, 20) ? draw_between(from, 4, WORKLOAD_MAX_LISTED_BATCH) : draw_between(from, 1, 3);
  w->kv_heads = draw_one_in(from, 2) ? 1 : draw_between(from, 1, 3);
  w->query_heads = w->kv_heads * groups[draw_between(from, 0, COUNT(groups) - 1)];
  if (w->function == ATTN_LINEAR && draw_one_in(from, 2)) w->kv_heads = w->query_heads;
  w->head_dim = random_dim(from);
  w->value_dim = draw_one_in(from, 3) ? random_dim(from) : w->head_dim;
  w->query_length = random_length(from);
  w->key_length = draw_one_in(from, 2) ? w->query_length : random_length(from);
  if (draw_one_in(from, 20)) { /* many keys for a few queries */
    w->query_length = draw_between(from, 1, 4);
    w->key_length = draw_between(from, 300, 5000);
  }
  if (draw_one_in(from, 8)) draw_thin(from, w);
  cut_down(w);
  if (draw_one_in(from, 50)) *(draw_one_in(from, 2) ? &w->batch : &w->value_dim) = 0;
}

/* A whole number that a band may have: small, as long as the sequence, or as large as is allowed. */
static int64_t random_reach(draws *from, int64_t longest) {
  if (draw_one_in(from, 20)) return ATTN_FARTHEST - draw_between(from, 0, 1);
  if (draw_one_in(from, 20)) return draw_between(from, INT64_C(1) << 30, INT64_C(1) << 33);
  return draw_between(from, 0, draw_one_in(from, 2) ? 20 : longest);
}

static int64_t random_offset(draws *from, int64_t longest) {
  const int64_t distance =
      draw_one_in(from, 2) ? draw_between(from, 0, longest) : random_reach(from, longest);
  return draw_one_in(from, 2) ? distance : -distance;
}

static int64_t random_key_length(draws *from, int64_t most) {
  if (draw_one_in(from, 3)) return draw_one_in(from, 2) ? 0 : most;
  return draw_between(from, 0, most);
}

static void draw_band(draws *from, workload *w) {
  const int64_t longest = w->key_length > w->query_length ? w->key_length : w->query_length;
  const int64_t kind = draw_between(from, 0, 7);
  w->right = kind < 2 ? ATTN_UNLIMITED : kind < 6 ? 0 : random_reach(from, longest);
  w->left = kind < 4 || draw_one_in(from, 8) ? ATTN_UNLIMITED : random_reach(from, longest);
  if (kind >= 2 && draw_one_in(from, 3)) w->offset = w->key_length - w->query_length;
  if (kind >= 2 && draw_one_in(from, 6)) w->offset = random_offset(from, longest);
  const bool can_list = w->batch <= WORKLOAD_MAX_LISTED_BATCH;
  w->has_offsets = kind >= 2 && draw_one_in(from, 6) && can_list;
  w->has_lengths = draw_one_in(from, 3) && can_list;
  for (int64_t b = 0; b < w->batch; b++) {
    if (w->has_offsets) w->offsets[b] = random_offset(from, longest);
    if (w->has_lengths) w->lengths[b] = random_key_length(from, w->key_length);
  }
}

static void draw_type(draws *from, workload *w) {
  if (!draw_one_in(from, 3)) return;
  w->type = draw_one_in(from, 2) ? ATTN_BFLOAT16 : ATTN_FLOAT16;
  if (draw_one_in(from, 3)) w->output_type = ATTN_FLOAT32;
}

static attn_term random_term(draws *from, const workload *w) {
  const int64_t longest = w->key_length > w->query_length ? w->key_length : w->query_length;
  const attn_term_kind kind = (attn_term_kind)draw_between(from, ATTN_LOCAL, ATTN_RANDOM);
  attn_term term = {kind, draw_between(from, 0, draw_one_in(from, 2) ? 6 : longest), 0, 0};
  const bool has_two =
      kind == ATTN_LOCAL || kind == ATTN_DILATED || kind == ATTN_FIXED || kind == ATTN_RANDOM;
  if (has_two) term.b = draw_between(from, 0, draw_one_in(from, 2) ? 6 : longest);
  if (kind == ATTN_LOCAL && draw_one_in(from, 8))
    *(draw_one_in(from, 2) ? &term.a : &term.b) = ATTN_UNLIMITED;
  if ((kind == ATTN_STRIDED || kind == ATTN_FIXED) && term.a == 0) term.a = 1 + term.b;
  if ((kind == ATTN_DILATED || kind == ATTN_RANDOM) && term.b == 0) term.b = 1;
  if (kind == ATTN_FIXED && term.b > term.a) term.b %= term.a + 1;
  if (kind == ATTN_RANDOM) term.a %= 5, term.seed = draw_between(from, 0, 3);
  if (kind != ATTN_LOCAL && kind != ATTN_FIXED && kind != ATTN_RANDOM && draw_one_in(from, 10))
    term.a = WORKLOAD_SQRT;
  return term;
}

enum { FEW_LISTED = 12 };

/* Who asks key by key whether it is listed looks through the list for each pair: lists are no longer than that takes seconds. */
static int64_t most_listed(const workload *w, int64_t longest) {
  const double rows = (double)w->batch * (double)w->query_heads * (double)w->query_length;
  const double most = 0x1p28 / fmax(1, rows * (double)longest);
  return most < (double)longest + 1 ? (int64_t)fmax(most, FEW_LISTED) : longest + 1;
}

/* One problem in four has a pattern, or query lengths, from a stream of their own. */
static void draw_pattern(draws *from, workload *w) {
  const int64_t kind = draw_between(from, 0, 5), longest = w->key_length > 0 ? w->key_length : 1;
  if (w->function != ATTN_SOFTMAX || !draw_one_in(from, 4)) return;
  if (kind < 3 || draw_one_in(from, 4)) w->term_count = draw_between(from, 1, 2 + (kind == 0));
  for (int64_t n = 0; n < w->term_count; n++) w->terms[n] = random_term(from, w);
  if (kind == 3 && w->term_count < ATTN_MOST_TERMS) {
    w->document_length = draw_between(from, 1, draw_one_in(from, 2) ? 20 : longest);
    w->documents_shuffled = draw_one_in(from, 4);
  }
  if (kind == 4) {
    static const int64_t sizes[] = {1, 3, 8, 16, 32, 33, 64, 128};
    static const double shares[] = {0, 0.1, 0.25, 0.5, 0.75, 1};
    w->blocks = (workload_axes){true, draw_one_in(from, 2), draw_one_in(from, 2), false};
    w->block_q = sizes[draw_between(from, 0, COUNT(sizes) - 1)];
    w->block_k = sizes[draw_between(from, 0, COUNT(sizes) - 1)];
    w->block_density = shares[draw_between(from, 0, COUNT(shares) - 1)];
  }
  if (kind == 5) w->topk = draw_between(from, 1, draw_one_in(from, 2) ? FEW_LISTED : most_listed(w, longest));
  if (w->batch > WORKLOAD_MAX_LISTED_BATCH || !draw_one_in(from, 4)) return;
  w->has_query_lengths = true;
  for (int64_t b = 0; b < w->batch; b++) w->query_lengths[b] = random_key_length(from, w->query_length);
}

/* One problem in six has a bias by positions, from a stream of their own. */
static void draw_position(draws *from, workload *w) {
  if (w->function != ATTN_SOFTMAX || !draw_one_in(from, 6)) return;
  w->alibi = true;
}

/* One problem in twelve is of the backward pass, in float32, from a stream of its own. What is no number or overflows
 * is not posed. */
static void draw_pass(draws *from, workload *w) {
  if (w->function != ATTN_SOFTMAX || w->type != ATTN_ABSENT || !draw_one_in(from, 12)) return;
  w->function = ATTN_SOFTMAX_BACKWARD;
  w->wants_lse = w->wants_weights = false;
  if (w->fill == FILL_LARGEST || w->fill == FILL_NONFINITE) w->fill = FILL_UNIFORM;
}

/* And one in four of linear attention's. */
static void draw_linear_pass(draws *from, workload *w) {
  if (w->function != ATTN_LINEAR || w->type != ATTN_ABSENT || !draw_one_in(from, 4)) return;
  w->function = ATTN_LINEAR_BACKWARD;
  if (w->fill == FILL_LARGEST || w->fill == FILL_NONFINITE) w->fill = FILL_UNIFORM;
}

/* Of the others one in twelve has a relative table, from another stream. */
static void draw_relative(draws *from, workload *w) {
  const int64_t longest = w->key_length > w->query_length ? w->key_length : w->query_length;
  if (w->function != ATTN_SOFTMAX || !draw_one_in(from, 12)) return;
  w->relative = draw_between(from, 1, draw_one_in(from, 2) ? 8 : longest + 1);
}

/* One in twelve has T5's buckets, from one more. */
static void draw_t5(draws *from, workload *w) {
  const int64_t longest = w->key_length > w->query_length ? w->key_length : w->query_length;
  if (w->function != ATTN_SOFTMAX || !draw_one_in(from, 12)) return;
  w->t5_one = draw_one_in(from, 2);
  w->t5_buckets = w->t5_one ? draw_between(from, 2, 40) : 2 * draw_between(from, 2, 20);
  w->t5_distance =
      w->t5_buckets / (w->t5_one ? 2 : 4) + draw_between(from, 1, draw_one_in(from, 2) ? 24 : longest + 1);
}

/* Of linear attention half have another feature map, and a third no normaliser, from a stream of their own. */
static void draw_linear(draws *from, workload *w) {
  if (!reference_function_of(w->function)->has_states) return;
  if (draw_one_in(from, 2)) w->feature_map = draw_one_in(from, 2) ? ATTN_RELU : ATTN_IDENTITY;
  w->unnormalised = draw_one_in(from, 3);
  w->decay = draw_one_in(from, 3) && w->right == 0;
}

/* One in eight is rotated, from another stream, and gradients too: where all positions are in the tables, and these
 * not too long. */
static void draw_rope(draws *from, workload *w) {
  enum { FARTHEST = 8192 };
  int64_t least = w->has_offsets ? w->offsets[0] : w->offset, most = least;
  for (int64_t b = 1; w->has_offsets && b < w->batch; b++) {
    least = w->offsets[b] < least ? w->offsets[b] : least;
    most = w->offsets[b] > most ? w->offsets[b] : most;
  }
  const int64_t kind = draw_between(from, ROPE_HALF, ROPE_INTERLEAVED);
  const int64_t pairs = draw_between(from, 1, w->head_dim > 1 ? w->head_dim / 2 : 1);
  const bool all = draw_one_in(from, 2);
  const bool has_scores = w->function == ATTN_SOFTMAX || w->function == ATTN_SOFTMAX_BACKWARD;
  if (!has_scores || !draw_one_in(from, 8) || w->head_dim < 2) return;
  if (least < 0 || most > FARTHEST || w->key_length > FARTHEST) return;
  w->rope = kind;
  w->rope_features = all ? 0 : 2 * pairs;
}

/* One in ten has dropout, from yet another. */
static void draw_dropout(draws *from, workload *w) {
  static const double shares[] = {0, 0.1, 0.25, 0.5, 0.9};
  const bool has_scores = w->function == ATTN_SOFTMAX || w->function == ATTN_SOFTMAX_BACKWARD;
  if (!has_scores || !draw_one_in(from, 10)) return;
  w->keep = (workload_axes){true, draw_one_in(from, 2), draw_one_in(from, 2), !draw_one_in(from, 4)};
  w->dropout_p = shares[draw_between(from, 0, COUNT(shares) - 1)];
}

/* One problem in sixteen is of a whole layer, in float32, from a stream of its own. */
static void draw_layer(draws *from, workload *w) {
  if (w->function != ATTN_SOFTMAX || w->type != ATTN_ABSENT || !draw_one_in(from, 16)) return;
  if (w->rope || w->keep.present) return;
  w->function = ATTN_LAYER;
  w->wants_lse = w->wants_weights = false;
  if (w->fill == FILL_LARGEST || w->fill == FILL_NONFINITE) w->fill = FILL_UNIFORM;
  w->model_dim = draw_one_in(from, 2) ? draw_between(from, 1, 40) : draw_between(from, 1, 300);
  if (draw_one_in(from, 3) && w->query_heads * w->head_dim <= 512)
    w->model_dim = w->query_heads * w->head_dim;
  w->memory = draw_one_in(from, 3);
  w->biases = draw_one_in(from, 2);
}

/* One in fourteen of the forward pass has general scores, from one more; of denormal numbers only where few are multiplied by the
 * matrices, for each such product takes a processor a hundred cycles. */
static void draw_general(draws *from, workload *w) {
  enum { MOST_FEATURES = 160 };
  const int64_t products = w->batch * w->query_heads * w->query_length * w->head_dim * w->head_dim;
  w->general = w->function == ATTN_SOFTMAX && w->head_dim <= MOST_FEATURES && draw_one_in(from, 14) &&
               (w->fill != FILL_DENORMAL || products <= most_work);
}

/* One in sixteen of those left has additive scores. */
static void draw_additive(draws *from, workload *w) {
  enum { MOST_FEATURES = 160 };
  w->additive =
      w->function == ATTN_SOFTMAX && !w->general && w->head_dim <= MOST_FEATURES && draw_one_in(from, 16);
}

/* Of linear attention that forgets nothing a third goes on from a state, or leaves one, or both, from a stream of its own. */
static void draw_states(draws *from, workload *w) {
  const bool is_backward = function_is_backward(w->function);
  if (!reference_function_of(w->function)->has_states || w->left != ATTN_UNLIMITED || !draw_one_in(from, 3))
    return;
  w->state = !draw_one_in(from, 3);
  w->final_state = !w->state || draw_one_in(from, 2);
  if (is_backward) w->final_state = false; /* of which there are no gradients */
}

/* Of those of 16 bits that are left one in sixteen asks for gradients, of linear attention one in four, from a stream
 * of its own. */
static void draw_narrow_pass(draws *from, workload *w) {
  const bool narrow = w->type == ATTN_BFLOAT16 || w->type == ATTN_FLOAT16,
             linear = w->function == ATTN_LINEAR;
  if (!(w->function == ATTN_SOFTMAX || linear) || !narrow || w->general || w->additive) return;
  if (!draw_one_in(from, linear ? 4 : 16)) return;
  w->function = reference_function_of(w->function)->backward;
  w->wants_lse = w->wants_weights = w->final_state = false;
  if (w->fill == FILL_LARGEST || w->fill == FILL_NONFINITE) w->fill = FILL_UNIFORM;
}

workload random_problem(uint64_t seed, int64_t n) {
  draws from = {random_mixed(seed ^ UINT64_C(0x5eed)) + random_mixed((uint64_t)n), 0};
  workload w = workload_default();
  w.function = draw_one_in(&from, 5) ? ATTN_LINEAR : ATTN_SOFTMAX;
  draw_sizes(&from, &w);
  draw_band(&from, &w);
  w.layout = (workload_layout)draw_between(&from, LAYOUT_BHTD, LAYOUT_MIXED);
  w.fill =
      draw_one_in(&from, 3) ? FILL_UNIFORM : (workload_fill)draw_between(&from, FILL_NORMAL, FILL_NONFINITE);
  w.seed = draw(&from) >> 32;
  for (const feature_row *row = feature_table; row < feature_table + FEATURES; row++)
    if (row->functions >> w.function & 1) feature_draw(row, &from, &w);
  draw_type(&from, &w);
  draws pattern = {from.stream ^ UINT64_C(0x9a77e2), 0};
  draw_pattern(&pattern, &w);
  draws position = {from.stream ^ UINT64_C(0xa11b1), 0};
  draw_position(&position, &w);
  draws pass = {from.stream ^ UINT64_C(0xbac4), 0};
  draw_pass(&pass, &w);
  draws linear_pass = {from.stream ^ UINT64_C(0x11ba4), 0};
  draw_linear_pass(&linear_pass, &w);
  draws relative = {from.stream ^ UINT64_C(0x5ba3), 0};
  draw_relative(&relative, &w);
  draws t5 = {from.stream ^ UINT64_C(0x75b3), 0};
  draw_t5(&t5, &w);
  draws linear = {from.stream ^ UINT64_C(0x11ea2), 0};
  draw_linear(&linear, &w);
  draws rope = {from.stream ^ UINT64_C(0x409e), 0};
  draw_rope(&rope, &w);
  draws dropout = {from.stream ^ UINT64_C(0xd809), 0};
  draw_dropout(&dropout, &w);
  draws layer = {from.stream ^ UINT64_C(0x1a7e4), 0};
  draw_layer(&layer, &w);
  draws general = {from.stream ^ UINT64_C(0x6e4e), 0};
  draw_general(&general, &w);
  draws additive = {from.stream ^ UINT64_C(0xadd17), 0};
  draw_additive(&additive, &w);
  draws states = {from.stream ^ UINT64_C(0x57a7e5), 0};
  draw_states(&states, &w);
  draws narrow_pass = {from.stream ^ UINT64_C(0xbac416), 0};
  draw_narrow_pass(&narrow_pass, &w);
  return w;
}
