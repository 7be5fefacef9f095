/* See version1.h. The structs below are those of version 1 of attention.h, which never change again. */
#define _GNU_SOURCE
#include "version1.h"

#include <stdlib.h>
#include <string.h>

typedef struct v1_strides {
  int64_t batch, head, position;
} v1_strides;

typedef struct v1_problem {
  int function, dtype;
  int64_t batch, query_heads, kv_heads, query_length, key_length, head_dim, value_dim;
  double scale, softcap, epsilon;
  int64_t left, right, offset;
  const int64_t *offsets, *key_lengths;
  bool has_mask, has_bias, wants_lse, wants_weights;
  v1_strides query, key, value, output, mask, bias, lse, weights;
} v1_problem;

typedef struct v1_tensors {
  const void *query, *key, *value;
  const uint8_t *mask;
  const void *bias;
  void *output;
  float *lse;
  void *weights;
} v1_tensors;

typedef struct v1_variant {
  const char *name, *summary;
  int function;
  uint32_t dtypes;
  int time_exponent, workspace_exponent;
  const char *(*unsupported)(const v1_problem *problem);
  size_t (*workspace_size)(const v1_problem *problem, int threads);
  void (*run)(const v1_problem *problem, const v1_tensors *tensors, void *workspace, int threads);
} v1_variant;

typedef struct v1_table {
  uint32_t interface_version, count;
  const v1_variant *const *variants;
  const char *const *(*instruction_sets)(void);
} v1_table;

enum {
  V1_FEATURES = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP | ATTN_LSE |
                ATTN_WEIGHTS
};

/* A variant of this version, and the one that it calls. */
typedef struct adapted {
  attn_variant variant;
  const v1_variant *original;
} adapted;

static const v1_variant *original_of(const attn_call *call) {
  return ((const adapted *)(const void *)call->variant)->original;
}

static v1_strides strides_of(attn_layout layout) {
  return (v1_strides){layout.batch, layout.head, layout.position};
}

static v1_problem problem_of(const attn_problem *p) {
  return (v1_problem){
      .function = (int)p->function,
      .dtype = (int)p->query.type - ATTN_FLOAT32,
      .batch = p->batch,
      .query_heads = p->query_heads,
      .kv_heads = p->kv_heads,
      .query_length = p->query_length,
      .key_length = p->key_length,
      .head_dim = p->head_dim,
      .value_dim = p->value_dim,
      .scale = p->scale,
      .softcap = p->softcap,
      .epsilon = p->epsilon,
      .left = p->left,
      .right = p->right,
      .offset = p->offset,
      .offsets = p->offsets,
      .key_lengths = p->key_lengths,
      .has_mask = p->mask.type != ATTN_ABSENT,
      .has_bias = p->bias.type != ATTN_ABSENT,
      .wants_lse = p->lse.type != ATTN_ABSENT,
      .wants_weights = p->weights.type != ATTN_ABSENT,
      .query = strides_of(p->query),
      .key = strides_of(p->key),
      .value = strides_of(p->value),
      .output = strides_of(p->output),
      .mask = strides_of(p->mask),
      .bias = strides_of(p->bias),
      .lse = strides_of(p->lse),
      .weights = strides_of(p->weights),
  };
}

/* Version 1 read the instruction set from the environment, at each call. */
static void hold_to(const char *isa) {
  const char *now = getenv("ATTN_ISA");
  if (!isa && now) unsetenv("ATTN_ISA");
  if (isa && (!now || strcmp(now, isa) != 0)) setenv("ATTN_ISA", isa, 1);
}

static const char *unsupported(const attn_call *call) {
  const v1_problem problem = problem_of(call->problem);
  hold_to(call->isa);
  return original_of(call)->unsupported(&problem);
}

/* Asked before each run, so that the environment does not change in one. */
static size_t workspace_size(const attn_call *call) {
  const v1_problem problem = problem_of(call->problem);
  hold_to(call->isa);
  return original_of(call)->workspace_size ? original_of(call)->workspace_size(&problem, call->threads) : 0;
}

static void run(const attn_call *call) {
  const v1_problem problem = problem_of(call->problem);
  const attn_tensors *t = &call->tensors;
  const v1_tensors tensors = {t->query, t->key, t->value, t->mask, t->bias, t->output, t->lse, t->weights};
  hold_to(call->isa);
  original_of(call)->run(&problem, &tensors, call->workspace, call->threads);
}

/* What the program of version 1 knew of its own variants by their names. */
static const char *showcase_of(const char *name) {
  static const char *const known[][2] = {
      {"multi_query", "Hkv:1"}, {"grouped_query", "Hkv:2"}, {"sliding_window", "window:512"}};
  for (size_t n = 0; name && n < sizeof known / sizeof *known; n++)
    if (strcmp(name, known[n][0]) == 0) return known[n][1];
  return NULL;
}

static attn_variant adapt(const v1_variant *original) {
  return (attn_variant){
      .name = original->name,
      .summary = original->summary,
      .function = (attn_function)original->function,
      .features = V1_FEATURES,
      .types = original->dtypes << ATTN_FLOAT32,
      .time_exponent = original->time_exponent,
      .workspace_exponent = original->workspace_exponent,
      .showcase = showcase_of(original->name),
      .unsupported = original->unsupported ? unsupported : NULL,
      .workspace_size = workspace_size,
      .run = original->run ? run : NULL,
  };
}

const void *variant_code(const attn_variant *variant) {
  if (variant->run != run) return (const void *)(uintptr_t)variant->run;
  return (const void *)(uintptr_t)((const adapted *)(const void *)variant)->original->run;
}

const attn_table *version1_adapt(const attn_table *table) {
  const v1_table *original = (const v1_table *)(const void *)table;
  struct memory {
    attn_table table;
    adapted *variants;
    const attn_variant **list;
    struct memory *before; /* keeps them in reach until the end */
  } *made = calloc(1, sizeof *made);
  static struct memory *all;
  const size_t count = original->variants ? original->count : 0;
  adapted *variants = calloc(count + 1, sizeof *variants);
  const attn_variant **list = calloc(count + 1, sizeof *list);
  if (!made || !variants || !list) {
    free(made);
    free(variants);
    free(list);
    return NULL;
  }
  for (size_t n = 0; n < count; n++) {
    if (!original->variants[n]) continue;
    variants[n] = (adapted){adapt(original->variants[n]), original->variants[n]};
    list[n] = &variants[n].variant;
  }
  made->table = (attn_table){ATTN_INTERFACE_VERSION, original->count, original->variants ? list : NULL,
                             original->instruction_sets};
  made->variants = variants;
  made->list = list;
  made->before = all;
  all = made;
  return &made->table;
}
