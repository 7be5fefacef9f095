/* The problems of verification. The grid is written out as workloads in words: what stands here is what
 * --problem takes. Sizes are small, because every row of the reference is computed, but lie around every
 * edge that a kernel may have: multiples of vectors (4, 8, 16) and of tiles (16, 48, 64, 128). */
#include "verify_grid.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "random.h"

static const char *const single[] = {
    /* sizes at their ends */
    "full/B:1/H:1/D:1/T:1/lse",
    "causal/B:2/H:2/D:3/T:1/lse",
    "full/B:2/H:4/Hkv:2/D:16/Tq:5/Tk:0/lse",
    "full/B:1/H:2/D:16/Tq:0/Tk:7/lse",
    "full/B:0/H:2/D:16/T:7/lse",
    "causal/B:1/H:4/Hkv:1/D:64/Dv:0/T:9/lse",
    "linear/full/B:2/H:2/D:8/Tq:5/Tk:0",
    "linear/causal/B:1/H:1/D:1/T:1",
    "full/B:1/H:71/Hkv:1/D:64/T:20/lse",
    "causal/B:1/H:32/Hkv:8/D:128/T:33/lse",
    "causal/B:1/H:12/Hkv:3/D:64/T:70/lse",
    "full/B:5/H:3/D:32/T:40",
    "full/B:1/H:1/D:64/Tq:30/Tk:1000/lse",
    "causal/B:1/H:2/Hkv:1/D:64/T:400/lse",
    "window:100/B:1/H:2/D:32/T:500/lse",
    "linear/causal/B:1/H:1/D:64/T:300",
    "linear/full/B:1/H:2/Hkv:1/D:64/Tq:30/Tk:1000",
    /* queries and keys of different lengths; decoding */
    "full/B:2/H:3/D:64/Tq:33/Tk:150/lse",
    "full/B:2/H:3/D:64/Tq:150/Tk:33/lse",
    "causal/B:1/H:4/Hkv:2/D:64/Tq:40/Tk:130/lse",
    "causal/B:1/H:4/Hkv:2/D:64/Tq:130/Tk:40/lse",
    "causal_bottom_right/B:1/H:4/Hkv:1/D:64/Tq:40/Tk:130/lse",
    "causal_bottom_right/B:1/H:4/Hkv:2/D:64/Tq:130/Tk:40/lse",
    "causal_bottom_right/B:3/H:8/Hkv:2/D:128/Tq:1/Tk:257/lse",
    "causal_bottom_right/B:2/H:8/Hkv:1/D:64/Tq:1/Tk:300/lse",
    "causal_bottom_right/B:1/H:4/D:64/Tq:2/Tk:300/lse",
    "linear/causal/B:1/H:2/D:32/Tq:40/Tk:130",
    "linear/causal/B:1/H:2/D:32/Tq:130/Tk:40",
    "linear/causal_bottom_right/B:1/H:4/Hkv:2/D:32/Tq:40/Tk:130",
    "linear/causal_bottom_right/B:2/H:4/Hkv:1/D:32/Tq:130/Tk:40",
    "linear/causal_bottom_right/B:1/H:2/D:64/Tq:1/Tk:300",
    /* bands */
    "window:0/B:1/H:2/D:32/T:70/lse",
    "window:1/B:1/H:2/D:32/T:70/lse",
    "window:16/B:1/H:4/Hkv:2/D:64/T:200/lse",
    "window:63/B:1/H:4/Hkv:1/D:64/T:200/lse",
    "window:64/B:1/H:2/D:64/T:200/lse",
    "window:65/B:1/H:2/D:64/T:200/lse",
    "window:1000/B:1/H:2/D:64/T:130/lse",
    "band:10,10,0/B:1/H:4/Hkv:2/D:48/T:150/lse",
    "band:0,0,0/B:1/H:2/D:48/T:90/lse",
    "band:0,20,0/B:1/H:2/D:48/T:90/lse",
    "band:inf,20,0/B:1/H:2/D:48/T:90/lse",
    "band:20,inf,0/B:1/H:4/Hkv:1/D:48/T:90/lse",
    "band:0,inf,0/B:1/H:2/D:48/T:90/lse",
    "band:3,3,50/B:1/H:2/D:40/Tq:60/Tk:100/lse",
    "band:3,3,-50/B:1/H:2/D:40/Tq:100/Tk:60/lse",
    "band:5,0,200/B:1/H:2/D:40/Tq:60/Tk:100/lse",
    "band:5,0,-200/B:1/H:4/Hkv:2/D:40/Tq:60/Tk:100/lse",
    "band:inf,0,-30/B:1/H:4/Hkv:1/D:40/T:80/lse",
    "band:inf,0,30/B:1/H:4/Hkv:1/D:40/T:80/lse",
    "window:20/B:3/H:4/Hkv:2/D:64/Tq:50/Tk:120/offsets:0,70,-10/lse",
    "causal/B:3/H:4/Hkv:1/D:64/Tq:50/Tk:120/offsets:0,70,-10/lse",
    "causal/B:3/H:2/D:64/Tq:50/Tk:120/offsets:119,1,-49/lse",
    "linear/window:16/B:1/H:2/D:32/T:100",
    "linear/band:10,10,0/B:1/H:2/D:32/T:100",
    "linear/band:inf,0,-30/B:1/H:2/D:32/T:80",
    "linear/band:inf,0,30/B:1/H:2/D:32/T:80",
    "linear/causal/B:3/H:2/D:32/Tq:50/Tk:120/offsets:0,70,-10",
    /* key lengths */
    "full/B:4/H:4/Hkv:2/D:64/T:130/lengths:0,1,77,130/lse",
    "full/B:4/H:4/Hkv:1/D:64/T:130/lengths:64,65,129,0/lse",
    "full/B:3/H:2/D:32/Tq:20/Tk:90/lengths:90,16,17/lse",
    "causal/B:4/H:4/Hkv:2/D:64/T:130/lengths:0,1,77,130/lse",
    "causal_bottom_right/B:3/H:4/Hkv:1/D:64/Tq:30/Tk:130/lengths:130,100,40/lse",
    "window:20/B:4/H:2/D:64/T:130/lengths:0,1,77,130/lse",
    "window:8/B:3/H:4/Hkv:2/D:64/Tq:1/Tk:200/offsets:199,99,0/lengths:200,100,1/lse",
    "linear/full/B:4/H:4/Hkv:2/D:32/T:130/lengths:0,1,77,130",
    "linear/causal/B:4/H:4/Hkv:2/D:32/T:130/lengths:0,1,77,130",
    /* masks and biases, over all axes and over some */
    "full/B:2/H:4/Hkv:2/D:64/T:100/mask:bhq/lse",
    "full/B:2/H:4/Hkv:1/D:64/T:100/mask:q/lse",
    "full/B:2/H:3/D:64/T:100/mask:b/lse",
    "full/B:2/H:3/D:64/T:100/mask:h/lse",
    "full/B:2/H:3/D:64/T:100/mask:1/lse",
    "causal/B:2/H:4/Hkv:2/D:64/T:130/mask:bq/lse",
    "window:30/B:2/H:3/D:64/T:130/mask:hq/lse",
    "full/B:2/H:4/Hkv:2/D:64/T:100/bias:bhq/lse",
    "full/B:2/H:4/Hkv:1/D:64/T:100/bias:hq/lse",
    "full/B:2/H:3/D:64/T:100/bias:b/lse",
    "full/B:2/H:3/D:64/T:100/bias:h/lse",
    "full/B:2/H:3/D:64/T:100/bias:1/lse",
    "causal/B:2/H:4/Hkv:2/D:64/T:130/bias:bq/lse",
    "window:30/B:2/H:3/D:64/T:130/bias:q/lse",
    "causal/B:2/H:4/Hkv:1/D:64/Tq:50/Tk:90/lengths:90,33/mask:bhq/bias:hq/softcap:15/lse",
    "full/B:1/H:2/D:16/Tq:300/Tk:4/mask:q/lse",
    /* scales and softcaps */
    "full/B:1/H:4/Hkv:2/D:64/T:100/scale:1/lse",
    "causal/B:1/H:4/Hkv:1/D:64/T:100/scale:-0.3/lse",
    "full/B:1/H:2/D:64/T:100/scale:0/lse",
    "full/B:1/H:2/D:64/T:100/scale:1e-30/lse",
    "full/B:1/H:4/Hkv:2/D:64/T:100/softcap:30/lse",
    "causal/B:1/H:4/Hkv:1/D:64/T:130/scale:2/softcap:5/lse",
    "window:20/B:1/H:2/D:64/T:130/scale:2/softcap:0.5/lse",
    "full/B:1/H:2/D:64/T:100/softcap:50/bias:hq/fill:normal/lse",
    "linear/full/B:1/H:2/D:32/T:100/epsilon:0",
    "linear/causal/B:1/H:2/D:32/T:100/epsilon:0.5",
    /* layouts */
    "full/B:2/H:4/Hkv:2/D:64/T:90/lse/layout:bthd",
    "causal/B:2/H:4/Hkv:1/D:64/T:90/lse/layout:bthd",
    "window:20/B:2/H:3/D:64/T:90/lse/layout:bthd",
    "linear/full/B:2/H:4/Hkv:2/D:32/T:90/layout:bthd",
    "linear/causal/B:2/H:4/Hkv:2/D:32/T:90/layout:bthd",
    "full/B:2/H:4/Hkv:2/D:64/T:90/mask:bhq/bias:bhq/lse/layout:padded",
    "causal/B:2/H:4/Hkv:1/D:60/T:90/bias:hq/lse/layout:padded",
    "window:20/B:2/H:3/D:64/T:90/mask:q/lse/layout:padded",
    "full/B:2/H:2/D:32/T:60/lse/weights/layout:padded",
    "linear/full/B:2/H:4/Hkv:2/D:32/T:90/layout:padded",
    "linear/causal/B:2/H:4/Hkv:1/D:32/T:90/layout:padded",
    /* weights */
    "full/B:2/H:2/D:32/T:70/weights",
    "causal/B:1/H:4/Hkv:2/D:64/T:100/lse/weights",
    "causal/B:1/H:4/Hkv:1/D:64/T:100/weights",
    "window:9/B:1/H:2/D:32/T:100/mask:q/weights",
    "causal/B:3/H:2/D:32/Tq:40/Tk:60/lengths:0,33,60/bias:hq/weights",
};

/* Each with every length below, and each with every dimension. %s is replaced by sizes. */
static const char *const with_lengths[] = {
    "full/B:1/H:2/D:32/%s/lse",
    "causal/B:1/H:4/Hkv:1/D:32/%s/lse",
    "window:17/B:1/H:4/Hkv:2/D:32/%s/lse",
    "causal_bottom_right/B:1/H:2/D:32/%s/lse",
    "linear/full/B:1/H:2/Hkv:1/D:16/%s",
    "linear/causal/B:1/H:2/D:16/%s",
};
static const int lengths[] = {2,  3,  7,  8,  9,  15, 16,  17,  31,  32,  33, 47,
                              48, 49, 63, 64, 65, 95, 127, 128, 129, 193, 257};
static const char *const with_dims[] = {
    "full/B:1/H:4/Hkv:2/T:37/%s/lse",
    "causal/B:1/H:4/Hkv:1/T:70/%s/lse",
    "window:20/B:1/H:2/T:70/%s/lse/layout:padded",
    "linear/full/B:1/H:2/T:37/%s",
    "linear/causal/B:1/H:2/Hkv:1/T:70/%s",
};
static const int dims[][2] = {{1, 1},   {2, 3},     {3, 2},     {4, 4},     {5, 7},     {7, 1},    {8, 8},
                              {9, 16},  {15, 15},   {16, 16},   {17, 17},   {24, 5},    {31, 33},  {33, 31},
                              {40, 40}, {63, 65},   {65, 63},   {72, 80},   {80, 80},   {96, 96},  {100, 12},
                              {12, 97}, {127, 129}, {128, 128}, {130, 126}, {192, 128}, {256, 256}};
static const char *const with_fills[] = {
    "full/B:1/H:2/D:64/Tq:20/Tk:150/%s/lse",
    "causal/B:2/H:4/Hkv:1/D:48/T:110/%s/lse",
    "causal_bottom_right/B:2/H:4/Hkv:2/D:64/Tq:70/Tk:140/lengths:140,90/%s/lse",
    "window:20/B:1/H:2/D:32/T:170/%s/lse",
    "linear/full/B:2/H:1/D:32/T:70/lengths:70,60/%s",
    "linear/causal/B:1/H:2/Hkv:1/D:32/T:140/%s",
};
static const char *const fills[] = {"normal",  "heavy",        "dominant", "equal", "saturated", "rising",
                                    "falling", "cancellation", "denormal", "huge",  "nonfinite"};

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

int64_t verify_grid_count(void) {
  return COUNT(single) + COUNT(with_lengths) * COUNT(lengths) + COUNT(with_dims) * COUNT(dims) +
         COUNT(with_fills) * COUNT(fills);
}

static workload parsed(const char *text) {
  workload result = workload_default();
  char why[256] = "";
  bool sound = workload_parse(text, &result, why, sizeof why);
  assert(sound && "the grid is written in workload's own words");
  (void)sound;
  return result;
}

/* The text before %s, the part, the text behind it. */
static workload with_part(const char *text, const char *part) {
  char whole[WORKLOAD_NAME_BYTES];
  int before = 0;
  while (text[before] != '%') before++;
  snprintf(whole, sizeof whole, "%.*s%s%s", before, text, part, text + before + 2);
  return parsed(whole);
}

workload verify_grid_problem(int64_t n) {
  char part[64];
  if (n < COUNT(single)) return parsed(single[n]);
  n -= COUNT(single);
  if (n < COUNT(with_lengths) * COUNT(lengths)) {
    snprintf(part, sizeof part, "T:%d", lengths[n / COUNT(with_lengths)]);
    return with_part(with_lengths[n % COUNT(with_lengths)], part);
  }
  n -= COUNT(with_lengths) * COUNT(lengths);
  if (n < COUNT(with_dims) * COUNT(dims)) {
    const int *dim = dims[n / COUNT(with_dims)];
    snprintf(part, sizeof part, "D:%d/Dv:%d", dim[0], dim[1]);
    return with_part(with_dims[n % COUNT(with_dims)], part);
  }
  n -= COUNT(with_dims) * COUNT(dims);
  snprintf(part, sizeof part, "fill:%s", fills[n / COUNT(with_fills)]);
  return with_part(with_fills[n % COUNT(with_fills)], part);
}

/* Draws, one after the other. */
typedef struct draws {
  uint64_t stream, count;
} draws;

static uint64_t draw(draws *from) { return random_bits(from->stream, from->count++); }

static int64_t between(draws *from, int64_t low, int64_t high) {
  return low + (int64_t)(draw(from) % (uint64_t)(high - low + 1));
}

static bool one_in(draws *from, int64_t n) { return between(from, 1, n) == 1; }

static int64_t random_length(draws *from) {
  static const int64_t edges[] = {8, 16, 32, 48, 64, 96, 128, 192, 256};
  if (one_in(from, 3)) return edges[between(from, 0, COUNT(edges) - 1)] + between(from, -1, 1);
  return one_in(from, 2) ? between(from, 1, 24) : between(from, 1, 220);
}

static int64_t random_dim(draws *from) {
  static const int64_t usual[] = {16, 32, 64, 80, 128};
  return one_in(from, 2) ? usual[between(from, 0, COUNT(usual) - 1)] : between(from, 1, 130);
}

static void draw_sizes(draws *from, workload *w) {
  static const int64_t groups[] = {1, 1, 2, 3, 4, 8};
  w->batch = between(from, 1, 3);
  w->kv_heads = one_in(from, 2) ? 1 : between(from, 1, 3);
  w->query_heads = w->kv_heads * groups[between(from, 0, COUNT(groups) - 1)];
  w->head_dim = random_dim(from);
  w->value_dim = one_in(from, 3) ? random_dim(from) : w->head_dim;
  w->query_length = random_length(from);
  w->key_length = one_in(from, 2) ? w->query_length : random_length(from);
  /* Few seconds have to do for thousands of problems. */
  while (w->batch * w->query_heads * w->query_length * w->key_length * (w->head_dim + w->value_dim) >
         4000000) {
    if (w->batch > 1)
      w->batch--;
    else if (w->query_length >= w->key_length)
      w->query_length = w->query_length * 2 / 3;
    else
      w->key_length = w->key_length * 2 / 3;
  }
}

static void draw_band(draws *from, workload *w) {
  const int64_t longest = w->key_length > w->query_length ? w->key_length : w->query_length;
  const int64_t kind = between(from, 0, 7);
  w->right = kind < 2 ? ATTN_UNLIMITED : kind < 6 ? 0 : between(from, 0, longest);
  w->left = kind < 4 ? ATTN_UNLIMITED : between(from, 0, one_in(from, 2) ? 20 : longest);
  if (kind >= 2 && one_in(from, 3)) w->offset = w->key_length - w->query_length;
  if (kind >= 2 && one_in(from, 6)) w->offset = between(from, -longest, longest);
  w->has_offsets = kind >= 2 && one_in(from, 6);
  w->has_lengths = one_in(from, 3);
  for (int64_t b = 0; b < w->batch; b++) {
    if (w->has_offsets) w->offsets[b] = between(from, -longest, longest);
    if (w->has_lengths) w->lengths[b] = one_in(from, 6) ? 0 : between(from, 0, w->key_length);
  }
}

static void draw_axes(draws *from, workload_axes *axes) {
  axes->present = one_in(from, 5);
  if (!axes->present) return;
  axes->batch = one_in(from, 2);
  axes->head = one_in(from, 2);
  axes->query = one_in(from, 2);
}

workload verify_random_problem(uint64_t seed, int64_t n) {
  draws from = {random_mixed(seed ^ UINT64_C(0x5eed)) + random_mixed((uint64_t)n), 0};
  workload w = workload_default();
  w.function = one_in(&from, 5) ? ATTN_LINEAR : ATTN_SOFTMAX;
  draw_sizes(&from, &w);
  if (w.function == ATTN_LINEAR && one_in(&from, 2)) w.kv_heads = w.query_heads;
  draw_band(&from, &w);
  w.layout = (workload_layout)between(&from, LAYOUT_BHTD, LAYOUT_PADDED);
  w.fill = one_in(&from, 2) ? FILL_UNIFORM : (workload_fill)between(&from, FILL_NORMAL, FILL_NONFINITE);
  w.seed = draw(&from) >> 32;
  if (w.function == ATTN_LINEAR) {
    if (one_in(&from, 4)) w.epsilon = one_in(&from, 2) ? 0 : (double)between(&from, 1, 100) / 64;
    return w;
  }
  if (one_in(&from, 4)) w.scale = (double)between(&from, -40, 40) / 32 / sqrt((double)w.head_dim);
  if (one_in(&from, 5)) w.softcap = (double)between(&from, 1, 100) / 2;
  draw_axes(&from, &w.mask);
  draw_axes(&from, &w.bias);
  w.wants_lse = one_in(&from, 2);
  w.wants_weights = one_in(&from, 12);
  return w;
}
