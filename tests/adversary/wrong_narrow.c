/* Kernels of linear attention in elements of 16 bits: a recurrence over the keys of each head (linear_recurrent.c) in float32,
 * but for one thing that each rounds or reads in its own way. Right is that what is given is exact and that the output alone
 * rounds, to nearest and once. */
#include <elements.h>

typedef struct kernel {
  const char *name, *summary;
  /* What becomes of these before they are used; NULL: nothing. */
  float (*given)(float x, attn_type type); /* elements of queries, keys and values */
  float (*feature)(float x, attn_type type);
  float (*summed_feature)(float x, attn_type type); /* in the normaliser alone */
  float (*gate)(float x, attn_type type);
  float (*state)(float x, attn_type type);     /* once a key was added to it */
  float (*numerator)(float x, attn_type type); /* of an output that is normalised */
  float (*output)(float x, attn_type type);
  int64_t chunk;   /* keys that are added to the state from one change of it to the next; 0: one */
  bool mixes_rows; /* the last element of an odd row is the next row's first */
} kernel;

/* The variant that the program sees, and the kernel that it stands for. */
typedef struct kernel_variant {
  attn_variant variant;
  const kernel *of;
} kernel_variant;

/* One query head on its way along the keys. */
typedef struct walk {
  const kernel *kernel;
  const attn_problem *problem;
  const attn_tensors *tensors;
  int64_t b, h, kv_head;
  int64_t next;      /* the keys before it are in the state */
  float *state;      /* [D, Dv] */
  float *normaliser; /* [D] */
  float *features;   /* [D], of a key or a query */
  float *row;        /* [Dv], a value or an output */
} walk;

static int64_t at(const attn_layout *strides, int64_t b, int64_t h, int64_t i) {
  return b * strides->batch + h * strides->head + i * strides->position;
}

static float changed(float (*by)(float, attn_type), const walk *of, float x) {
  return by ? by(x, of->problem->output.type) : x;
}

/* ---- what becomes of a number ---- */

static uint16_t stored(float x, attn_type type) {
  return type == ATTN_BFLOAT16 ? attn_to_bfloat16(x) : attn_to_float16(x);
}

static float loaded(uint16_t half, attn_type type) {
  return type == ATTN_BFLOAT16 ? attn_from_bfloat16(half) : attn_from_float16(half);
}

static float rounded(float x, attn_type type) { return loaded(stored(x, type), type); }

/* To the next number towards zero. */
static float cut(float x, attn_type type) {
  const uint16_t half = stored(x, type);
  return loaded((uint16_t)(fabsf(loaded(half, type)) > fabsf(x) ? half - 1 : half), type);
}

/* As who moves float16's exponent up and takes an exponent of 0 for a zero. */
static float without_denormals(float x, attn_type type) {
  return type == ATTN_FLOAT16 && fabsf(x) < 0x1p-14f ? copysignf(0, x) : x;
}

/* ---- the recurrence ---- */

static void read_row(const walk *of, const void *tensor, const attn_layout *layout, int64_t first,
                     int64_t count, bool is_last, float *to) {
  for (int64_t n = 0; n < count; n++) {
    const bool mixed = of->kernel->mixes_rows && n % 2 == 0 && n == count - 1 && !is_last;
    to[n] = changed(of->kernel->given, of,
                    attn_load(tensor, layout->type, first + (mixed ? layout->position : n)));
  }
}

static void map_features(const walk *of) {
  float *x = of->features;
  for (int64_t d = 0; d < of->problem->head_dim; d++) {
    if (of->problem->feature_map == ATTN_ELU1) x[d] = x[d] > 0 ? x[d] + 1 : expf(x[d]);
    if (of->problem->feature_map == ATTN_RELU) x[d] = x[d] < 0 ? 0 : x[d];
    x[d] = changed(of->kernel->feature, of, x[d]);
  }
}

static float gate_of(const walk *of) {
  const attn_problem *p = of->problem;
  if (!p->decay.type) return 1;
  return changed(of->kernel->gate, of, expf(p->decay_data[at(&p->decay, of->b, of->kv_head, 0) + of->next]));
}

static void add_key(walk *of) {
  const attn_problem *p = of->problem;
  const bool is_last = of->next == p->key_length - 1;
  const float gate = gate_of(of);
  const bool ends_chunk = of->kernel->chunk == 0 || (of->next + 1) % of->kernel->chunk == 0;
  read_row(of, of->tensors->key, &p->key, at(&p->key, of->b, of->kv_head, of->next), p->head_dim, is_last,
           of->features);
  read_row(of, of->tensors->value, &p->value, at(&p->value, of->b, of->kv_head, of->next), p->value_dim,
           is_last, of->row);
  map_features(of);
  for (int64_t d = 0; d < p->head_dim; d++) {
    float *state = of->state + d * p->value_dim;
    of->normaliser[d] = gate * of->normaliser[d] + changed(of->kernel->summed_feature, of, of->features[d]);
    for (int64_t e = 0; e < p->value_dim; e++)
      state[e] =
          changed(ends_chunk ? of->kernel->state : NULL, of, gate * state[e] + of->features[d] * of->row[e]);
  }
  of->next++;
}

static void answer(const walk *of, int64_t i) {
  const attn_problem *p = of->problem;
  float sum = (float)p->epsilon;
  for (int64_t e = 0; e < p->value_dim; e++) of->row[e] = 0;
  read_row(of, of->tensors->query, &p->query, at(&p->query, of->b, of->h, i), p->head_dim,
           i == p->query_length - 1, of->features);
  map_features(of);
  for (int64_t d = 0; d < p->head_dim && of->next > 0; d++) {
    sum += of->features[d] * of->normaliser[d];
    for (int64_t e = 0; e < p->value_dim; e++)
      of->row[e] += of->features[d] * of->state[d * p->value_dim + e];
  }
  for (int64_t e = 0; e < p->value_dim; e++) {
    float x = of->row[e];
    if (!p->unnormalised && of->next > 0) x = changed(of->kernel->numerator, of, x) / sum;
    attn_store(of->tensors->output, p->output.type, at(&p->output, of->b, of->h, i) + e,
               changed(of->kernel->output, of, x));
  }
}

static size_t floats_of_head(const attn_problem *p) {
  return (size_t)(p->head_dim * (p->value_dim + 2) + p->value_dim);
}

static size_t workspace_size(const attn_call *call) {
  const attn_problem *p = call->problem;
  return (size_t)(p->batch * p->query_heads) * floats_of_head(p) * sizeof(float);
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
#pragma omp parallel for num_threads(call->threads)
  for (int64_t n = 0; n < p->batch * p->query_heads; n++) {
    const size_t count = floats_of_head(p);
    float *memory = (float *)call->workspace + (size_t)n * count;
    const int64_t h = n % p->query_heads;
    walk of = {.kernel = ((const kernel_variant *)(const void *)call->variant)->of,
               .problem = p,
               .tensors = &call->tensors,
               .b = n / p->query_heads,
               .h = h,
               .kv_head = h / (p->query_heads / p->kv_heads),
               .state = memory,
               .normaliser = memory + p->head_dim * p->value_dim,
               .features = memory + p->head_dim * (p->value_dim + 1),
               .row = memory + p->head_dim * (p->value_dim + 2)};
    for (size_t m = 0; m < count; m++) memory[m] = 0;
    for (int64_t i = 0; i < p->query_length; i++) {
      const int64_t end = attn_visible_keys(p, of.b, i).end;
      while (of.next < end) add_key(&of);
      answer(&of, i);
    }
  }
}

static const char *unsupported(const attn_call *call) {
  if (call->problem->left != ATTN_UNLIMITED) return "keeps a state, from which nothing leaves";
  if (call->problem->decay.type && call->problem->right != 0)
    return "keys that have decayed are not ahead of a query: needs a causal band";
  return NULL;
}

/* ---- the table ---- */

static const kernel kernels[] = {
    {"narrow_state", "the running state is kept in 16 bits", .state = rounded},
    {"narrow_state_of_chunks", "the state is in 16 bits between chunks of 64 keys", .state = rounded,
     .chunk = 64},
    {"narrow_features", "features are rounded to 16 bits, of queries and of keys", .feature = rounded},
    {"narrow_normaliser",
     "the normaliser sums features that were rounded to 16 bits, the state those that were not",
     .summed_feature = rounded},
    {"narrow_gates", "gates of the decay are rounded to 16 bits", .gate = rounded},
    {"narrow_output_cut", "the output is cut to 16 bits, and not rounded", .output = cut},
    {"narrow_output_twice", "the output is stored before it is normalised, and again after that",
     .numerator = rounded},
    {"narrow_odd_element", "the last element of an odd row is the first of the next row", .mixes_rows = true},
    {"narrow_denormals", "of float16 what is below the normal range is read as 0, and written so",
     .given = without_denormals, .output = without_denormals},
};

enum { KERNELS = sizeof kernels / sizeof *kernels };
static kernel_variant made[KERNELS];
static const attn_variant *variants[KERNELS];

__attribute__((constructor)) static void make(void) {
  for (int n = 0; n < KERNELS; n++) {
    made[n] = (kernel_variant){{.name = kernels[n].name,
                                .summary = kernels[n].summary,
                                .function = ATTN_LINEAR,
                                .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_FEATURE_MAP |
                                            ATTN_UNNORMALISED | ATTN_DECAY,
                                .types = 1u << ATTN_BFLOAT16 | 1u << ATTN_FLOAT16,
                                .time_exponent = 1,
                                .unsupported = unsupported,
                                .workspace_size = workspace_size,
                                .run = run},
                               &kernels[n]};
    variants[n] = &made[n].variant;
  }
}

const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, KERNELS, variants, NULL};
