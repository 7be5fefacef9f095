/* An honest attention kernel in float32, softmax and linear, and the places at which a kernel may differ from it.
 * The plugins of this folder are tables of such kernels: a name, a line of words, and a function for each place
 * where the kernel has something of its own. One row at a time; the keys in tiles, under a running maximum
 * (Milakov and Gimelshein 2018). */
#ifndef ADVERSARY_KERNEL_H
#define ADVERSARY_KERNEL_H

#include <attention.h>

#include <math.h>

enum { TILE = 64 };

typedef struct kernel kernel;

/* A row while it is solved. */
typedef struct row {
  const kernel *of;
  const attn_call *call;
  const attn_problem *p; /* as the kernel takes it to be */
  const attn_tensors *t;
  int64_t b, h, i;   /* what is solved */
  int64_t entry, kv; /* the entry and head whose keys and values are read */
  attn_range keys;
  float max, sum; /* of the scores so far, and of their weights under it */
  bool sees_a_key;
  float *o;
} row;

/* NULL: as the honest kernel. */
struct kernel {
  const char *name, *summary;
  attn_function function;
  uint64_t lacks;  /* features that it does not support */
  uint32_t traits; /* that it promises */

  void (*problem)(attn_problem *p, attn_tensors *t, const attn_call *call); /* what it takes to be asked */
  void (*row)(row *r);                          /* which entry, head and keys the row reads */
  void (*solve)(row *r);                        /* the pass over the keys */
  bool (*sees)(const row *r, int64_t j);        /* of the keys in the range */
  float (*dot)(const row *r, int64_t j);        /* q.k */
  float (*score)(const row *r, int64_t j);      /* of linear attention: the weight */
  float (*phi)(float x);                        /* linear attention's feature map */
  void (*raise)(row *r, float max);             /* to a higher maximum */
  float (*weight)(float exponent);              /* exp */
  void (*add)(row *r, int64_t j, float weight); /* weight * v to the output */
  void (*sink)(row *r);                         /* joins the sum */
  void (*normalise)(row *r);                    /* the output by the sum */
  void (*after)(row *r);                        /* once outputs are written */
  void (*run)(const attn_call *call);           /* the whole of it */
  size_t (*workspace)(const attn_call *call);
  const char *(*unsupported)(const attn_call *call);
};

/* ---- reading ---- */

static inline int64_t place(attn_layout s, int64_t b, int64_t h, int64_t i) {
  return b * s.batch + h * s.head + i * s.position;
}

static inline const float *query_of(const row *r) {
  return (const float *)r->t->query + place(r->p->query, r->b, r->h, r->i);
}

static inline const float *key_of(const row *r, int64_t j) {
  return (const float *)r->t->key + place(r->p->key, r->entry, r->kv, j);
}

static inline const float *value_of(const row *r, int64_t j) {
  return (const float *)r->t->value + place(r->p->value, r->entry, r->kv, j);
}

static inline float bias_of(const row *r, int64_t j) {
  return r->p->bias.type ? ((const float *)r->t->bias)[place(r->p->bias, r->b, r->h, r->i) + j] : 0;
}

static inline bool mask_shows(const row *r, int64_t j) {
  return !r->p->mask.type || r->t->mask[place(r->p->mask, r->b, r->h, r->i) + j] != 0;
}

static inline float sink_of(const row *r) {
  return r->p->sink.type ? r->t->sink[r->h * r->p->sink.head] : -INFINITY;
}

static inline bool in_band(const row *r, int64_t j) { return j >= r->keys.first && j < r->keys.end; }

/* A bias of -inf is no mask: its key follows the formula, with a weight of zero, which a NaN survives. */
static inline bool honest_sees(const row *r, int64_t j) { return mask_shows(r, j); }

static inline bool sees(const row *r, int64_t j) {
  return r->of->sees ? r->of->sees(r, j) : honest_sees(r, j);
}

/* ---- scores ---- */

static inline float dot_of(const float *a, const float *b, int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t d = 0; d < count; d++) sum += a[d] * b[d];
  return sum;
}

static inline float dot(const row *r, int64_t j) {
  return r->of->dot ? r->of->dot(r, j) : dot_of(query_of(r), key_of(r, j), r->p->head_dim);
}

static inline float scaled(const row *r, int64_t j) { return (float)r->p->scale * dot(r, j); }

static inline float capped(const row *r, float score) {
  const float softcap = (float)r->p->softcap;
  return softcap > 0 ? softcap * tanhf(score / softcap) : score;
}

static inline float honest_score(const row *r, int64_t j) { return capped(r, scaled(r, j)) + bias_of(r, j); }

static inline float honest_phi(float x) { return x > 0 ? x + 1 : expf(x); }

static inline float honest_linear_weight(const row *r, int64_t j) {
  const float *q = query_of(r), *k = key_of(r, j);
  float (*const phi)(float) = r->of->phi ? r->of->phi : honest_phi;
  float sum = 0;
  for (int64_t d = 0; d < r->p->head_dim; d++) sum += phi(q[d]) * phi(k[d]);
  return sum;
}

static inline float score(const row *r, int64_t j) {
  if (r->of->score) return r->of->score(r, j);
  return r->p->function == ATTN_LINEAR ? honest_linear_weight(r, j) : honest_score(r, j);
}

static inline float weight(const row *r, float exponent) {
  return r->of->weight ? r->of->weight(exponent) : expf(exponent);
}

/* ---- sums ---- */

static inline void add_scaled(float *restrict o, const float *restrict v, float by, int64_t count) {
#pragma omp simd
  for (int64_t e = 0; e < count; e++) o[e] += by * v[e];
}

static inline void scale_output(row *r, float by) {
  for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] *= by;
}

static inline void honest_add(row *r, int64_t j, float weight) {
  add_scaled(r->o, value_of(r, j), weight, r->p->value_dim);
}

static inline void add(row *r, int64_t j, float weight) {
  (r->of->add ? r->of->add : honest_add)(r, j, weight);
}

static inline void honest_raise(row *r, float max) {
  const float before = r->max == -INFINITY ? 0 : weight(r, r->max - max);
  r->sum *= before;
  scale_output(r, before);
  r->max = max;
}

static inline void raise_to(row *r, float max) {
  if (max <= r->max) return; /* false for NaN */
  (r->of->raise ? r->of->raise : honest_raise)(r, max);
}

/* NaN where one is. */
static inline float larger(float a, float b) { return isnan(b) || b > a ? b : a; }

/* At most so many keys, under one maximum. */
static inline void solve_tile(row *r, int64_t first, int64_t end) {
  float scores[TILE], max = -INFINITY;
  bool seen[TILE];
  for (int64_t j = first; j < end; j++) {
    seen[j - first] = sees(r, j);
    scores[j - first] = seen[j - first] ? score(r, j) : -INFINITY;
    max = larger(max, scores[j - first]);
  }
  raise_to(r, max);
  r->sees_a_key |= max != -INFINITY;
  for (int64_t j = first; j < end; j++) {
    if (!seen[j - first]) continue;
    const float w = scores[j - first] == -INFINITY ? 0 : weight(r, scores[j - first] - r->max);
    r->sum += w;
    add(r, j, w);
  }
}

static inline void solve_tiles_of(row *r, int64_t first, int64_t end, int64_t tile) {
  for (int64_t j = first; j < end; j += tile) solve_tile(r, j, j + tile < end ? j + tile : end);
}

static inline void solve_tiles(row *r, int64_t first, int64_t end) { solve_tiles_of(r, first, end, TILE); }

static inline void honest_solve(row *r) { solve_tiles(r, r->keys.first, r->keys.end); }

static inline void solve_linear(row *r) {
  for (int64_t j = r->keys.first; j < r->keys.end; j++) {
    const float w = score(r, j);
    r->sees_a_key = true;
    r->sum += w;
    add(r, j, w);
  }
}

/* ---- a row ---- */

static inline void honest_sink(row *r) {
  const float sink = sink_of(r);
  if (sink == -INFINITY) return;
  raise_to(r, sink);
  r->sum += weight(r, sink - r->max);
}

static inline void honest_normalise(row *r) {
  for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] /= r->sum;
}

static inline float *lse_at(const row *r) {
  return r->p->lse.type ? r->t->lse + place(r->p->lse, r->b, r->h, r->i) : NULL;
}

static inline float *weights_at(const row *r) {
  return r->p->weights.type ? (float *)r->t->weights + place(r->p->weights, r->b, r->h, r->i) : NULL;
}

static inline void finish_softmax(row *r) {
  float *lse = lse_at(r), *weights = weights_at(r);
  if (r->sees_a_key) {
    (r->of->sink ? r->of->sink : honest_sink)(r);
    (r->of->normalise ? r->of->normalise : honest_normalise)(r);
  } else {
    for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] = 0;
  }
  if (lse) *lse = r->sees_a_key ? r->max + logf(r->sum) : sink_of(r);
  for (int64_t j = 0; weights && j < r->p->key_length; j++)
    weights[j] = r->sees_a_key && in_band(r, j) && sees(r, j) ? weight(r, score(r, j) - r->max) / r->sum : 0;
}

static inline void finish_linear(row *r) {
  for (int64_t e = 0; e < r->p->value_dim && r->sees_a_key; e++) r->o[e] /= r->sum + (float)r->p->epsilon;
}

static inline void solve_row(row *r) {
  const bool linear = r->p->function == ATTN_LINEAR;
  for (int64_t e = 0; e < r->p->value_dim; e++) r->o[e] = 0;
  if (r->of->row) r->of->row(r);
  (r->of->solve ? r->of->solve : linear ? solve_linear : honest_solve)(r);
  (linear ? finish_linear : finish_softmax)(r);
  if (r->of->after) r->of->after(r);
}

static inline row row_of(const kernel *of, const attn_call *call, const attn_problem *p,
                         const attn_tensors *t, int64_t n) {
  const int64_t i = n % p->query_length, h = n / p->query_length % p->query_heads;
  const int64_t b = n / p->query_length / p->query_heads;
  return (row){.of = of,
               .call = call,
               .p = p,
               .t = t,
               .b = b,
               .h = h,
               .i = i,
               .entry = b,
               .kv = h / (p->query_heads / p->kv_heads),
               .keys = attn_visible_keys(p, b, i),
               .max = -INFINITY,
               .o = (float *)t->output + place(p->output, b, h, i)};
}

/* ---- a call ---- */

/* The variant that the program sees, and the kernel that it stands for. */
typedef struct kernel_variant {
  attn_variant variant;
  const kernel *of;
} kernel_variant;

static inline const kernel *kernel_of(const attn_call *call) {
  return ((const kernel_variant *)(const void *)call->variant)->of;
}

static inline int64_t rows_in(const attn_problem *p) { return p->batch * p->query_heads * p->query_length; }

static inline void solve_problem(const attn_call *call, const attn_problem *p, const attn_tensors *t) {
  const kernel *of = kernel_of(call);
#pragma omp parallel for num_threads(call->threads)
  for (int64_t n = 0; n < rows_in(p); n++) {
    row r = row_of(of, call, p, t, n);
    solve_row(&r);
  }
}

static inline void solve(const attn_call *call) {
  attn_problem p = *call->problem;
  attn_tensors t = call->tensors;
  if (kernel_of(call)->problem) kernel_of(call)->problem(&p, &t, call);
  solve_problem(call, &p, &t);
}

static inline void run_kernel(const attn_call *call) {
  (kernel_of(call)->run ? kernel_of(call)->run : solve)(call);
}

/* ---- tables ---- */

/* A kernel that has a function of its own name at that place: KERNEL(row, edge_last_key, "in a line", more...). */
#define KERNEL(where, word, ...)                                                                             \
  { .name = #word, .where = (word), .summary = __VA_ARGS__ }

#define SOFTMAX_FEATURES                                                                                     \
  ((uint64_t)(ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP | ATTN_LSE | \
              ATTN_WEIGHTS | ATTN_SINK))
#define LINEAR_FEATURES ((uint64_t)(ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS))

/* What a plugin exports of its kernels; called when it is loaded. */
static inline void make_variants(const kernel *kernels, size_t count, kernel_variant *made,
                                 const attn_variant **variants) {
  for (size_t n = 0; n < count; n++) {
    const kernel *k = &kernels[n];
    made[n] = (kernel_variant){
        {.name = k->name,
         .summary = k->summary,
         .function = k->function,
         .features = (k->function == ATTN_LINEAR ? LINEAR_FEATURES : SOFTMAX_FEATURES) & ~k->lacks,
         .types = 1u << ATTN_FLOAT32,
         .traits = k->traits,
         .time_exponent = 2,
         .unsupported = k->unsupported,
         .workspace_size = k->workspace,
         .run = run_kernel},
        k};
    variants[n] = &made[n].variant;
  }
}

/* Behind a table that is named kernels. */
#define EXPORT_KERNELS                                                                                       \
  enum { KERNELS = sizeof kernels / sizeof *kernels };                                                       \
  static kernel_variant made[KERNELS];                                                                       \
  static const attn_variant *variants[KERNELS];                                                              \
  __attribute__((constructor)) static void make(void) { make_variants(kernels, KERNELS, made, variants); }   \
  const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, KERNELS, variants, NULL}

#endif
