/* Kernels of the other functions, linear attention, its backward pass, layers and scores that are no products, which are
 * right where sizes are odd and threads are few. They are naive kernels of variants/, linked into this plugin, that are
 * asked something else, or whose outputs are spoiled, where sizes are those that models have, or threads are many. */
#include <attention.h>

extern const attn_variant attn_naive, attn_linear_recurrent, attn_naive_linear_backward, attn_layer_naive;

typedef struct kernel {
  const char *name, *summary;
  const attn_variant *of;
  bool (*where)(const attn_problem *p, int threads); /* it is wrong */
  void (*ask)(attn_problem *p);                      /* what it takes to be asked there, or */
  void (*spoil)(const attn_call *call);              /* what becomes of its outputs */
} kernel;

/* The variant that the program sees, and the kernel that it stands for. */
typedef struct kernel_variant {
  attn_variant variant;
  const kernel *of;
} kernel_variant;

static const kernel *kernel_of(const attn_call *call) {
  return ((const kernel_variant *)(const void *)call->variant)->of;
}

static attn_call passed_on(const attn_call *call) {
  attn_call of = *call;
  of.variant = kernel_of(call)->of;
  return of;
}

static const char *unsupported(const attn_call *call) {
  const attn_call of = passed_on(call);
  return of.variant->unsupported ? of.variant->unsupported(&of) : NULL;
}

static size_t workspace_size(const attn_call *call) {
  const attn_call of = passed_on(call);
  return of.variant->workspace_size ? of.variant->workspace_size(&of) : 0;
}

static void run(const attn_call *call) {
  const kernel *kernel = kernel_of(call);
  attn_call of = passed_on(call);
  attn_problem problem = *call->problem;
  const bool is_wrong = kernel->where(&problem, call->threads);
  of.problem = &problem;
  if (is_wrong && kernel->ask) kernel->ask(&problem);
  of.variant->run(&of);
  if (is_wrong && kernel->spoil) kernel->spoil(call);
}

/* ---- where ---- */

#define WHERE(word, when)                                                                                    \
  static bool word(const attn_problem *p, int threads) {                                                     \
    (void)p, (void)threads;                                                                                  \
    return when;                                                                                             \
  }

static bool has_groups(const attn_problem *p) { return p->kv_heads > 1 && p->kv_heads < p->query_heads; }

/* As a kernel of tiles takes them without looking at edges. */
static bool is_of_tiles(const attn_problem *p, int64_t dim) {
  return p->head_dim == dim && p->key_length > 0 && p->key_length % 64 == 0 &&
         p->query_length == p->key_length;
}

/* M is what the heads have together, as in most models. */
static bool is_square(const attn_problem *p) {
  return p->layer.model_dim == p->query_heads * p->head_dim && p->head_dim == p->value_dim;
}

WHERE(of_tiles_64, is_of_tiles(p, 64))
WHERE(of_tiles_128, is_of_tiles(p, 128))
WHERE(of_groups_64, is_of_tiles(p, 64) && has_groups(p))
WHERE(of_one_group_64, is_of_tiles(p, 64) && p->kv_heads == 1 && p->query_heads > 4)
WHERE(of_dim_128, p->head_dim == 128)
WHERE(of_dim_256, p->head_dim == 256)
WHERE(of_values_256, p->value_dim % 256 == 0 && p->value_dim > 0)
WHERE(from_2048_keys, p->key_length > 2048)
WHERE(from_512_rows, p->query_length > 550 && p->right == 0)
WHERE(of_decayed_parts, p->decay.type && p->query_length < p->key_length && p->key_length % 64 == 0)
WHERE(of_relu_from_state, is_of_tiles(p, 64) && p->feature_map == ATTN_RELU && p->states.state.type)
WHERE(of_square_64, is_square(p) && p->head_dim == 64)
WHERE(of_square_groups, is_square(p) && has_groups(p) && p->query_length != p->key_length)
WHERE(of_wide_model, p->layer.model_dim >= 512 && p->layer.model_dim % 64 == 0 && !is_square(p))
WHERE(from_4_threads, threads >= 4)
WHERE(from_4_threads_with_state, threads >= 4 && p->states.state.type)

/* ---- what it takes to be asked ---- */

#define ASK(word, ...)                                                                                       \
  static void word(attn_problem *p) { __VA_ARGS__; }

ASK(without_decay, p->decay.type = ATTN_ABSENT)
ASK(with_decay_of_first_head, p->decay.head = 0)
ASK(without_state, p->states.state.type = p->states.state_sum.type = ATTN_ABSENT)
ASK(with_state_of_first_head, p->states.state.head = 0)
ASK(with_keys_that_are_seen, p->key_length = p->query_length)
ASK(with_elu, p->feature_map = ATTN_ELU1)
ASK(with_next_key, p->right = 1)
ASK(without_value_bias, p->layer.b_v.type = ATTN_ABSENT, p->layer.b_v_data = NULL)
ASK(with_matrix_of_first_head, p->general.head = 0)
ASK(with_weights_of_first_head, p->additive.head = 0)

/* ---- what becomes of the outputs: the last row of each tensor is half of what it should be ---- */

static void halve(float *row, int64_t count) {
  for (int64_t n = 0; n < count; n++) row[n] /= 2;
}

/* Of one entry and head; NULL: there is none. */
static float *last_row(const attn_layout *s, void *data, int64_t batch, int64_t heads, int64_t rows) {
  if (!s->type || batch == 0 || heads == 0 || rows == 0) return NULL;
  return (float *)data + (batch - 1) * s->batch + (heads - 1) * s->head + (rows - 1) * s->position;
}

static void halve_last_row(const attn_layout *s, void *data, int64_t batch, int64_t heads, int64_t rows,
                           int64_t columns) {
  float *row = last_row(s, data, batch, heads, rows);
  if (row) halve(row, columns);
}

static void spoil_final_state(const attn_call *call) {
  const attn_problem *p = call->problem;
  halve_last_row(&p->states.final_state, p->states.final_state_data, p->batch, p->kv_heads, p->head_dim,
                 p->value_dim);
}

static void spoil_query_grad(const attn_call *call) {
  const attn_problem *p = call->problem;
  halve_last_row(&p->query_grad, p->query_grad_data, p->batch, p->query_heads, p->query_length, p->head_dim);
}

static void spoil_key_grad(const attn_call *call) {
  const attn_problem *p = call->problem;
  halve_last_row(&p->key_grad, p->key_grad_data, p->batch, p->kv_heads, p->key_length, p->head_dim);
}

static void spoil_value_grad(const attn_call *call) {
  const attn_problem *p = call->problem;
  halve_last_row(&p->value_grad, p->value_grad_data, p->batch, p->kv_heads, p->key_length, p->value_dim);
}

static void spoil_state_grad(const attn_call *call) {
  const attn_problem *p = call->problem;
  halve_last_row(&p->state_grad, p->state_grad_data, p->batch, p->kv_heads, p->head_dim, p->value_dim);
}

/* Of the first key, which has the most of it. */
static void spoil_decay_grad(const attn_call *call) {
  const attn_problem *p = call->problem;
  float *first = last_row(&p->decay_grad, p->decay_grad_data, p->batch, p->kv_heads, p->key_length > 0);
  if (first) halve(first, 1);
}

static void spoil_layer(const attn_call *call) {
  const attn_problem *p = call->problem;
  halve_last_row(&p->output, call->tensors.output, p->batch, 1, p->query_length, p->layer.model_dim);
}

/* ---- the table ---- */

#define LINEAR(word, words, ...)                                                                             \
  { .name = #word, .summary = (words), .of = &attn_linear_recurrent, __VA_ARGS__ }
#define GRADIENT(word, words, ...)                                                                           \
  { .name = #word, .summary = (words), .of = &attn_naive_linear_backward, __VA_ARGS__ }
#define LAYER(word, words, ...)                                                                              \
  { .name = #word, .summary = (words), .of = &attn_layer_naive, __VA_ARGS__ }
#define SCORE(word, words, ...)                                                                              \
  { .name = #word, .summary = (words), .of = &attn_naive, __VA_ARGS__ }

static const kernel kernels[] = {
    LINEAR(linear_decay_of_tiles_64, "of whole tiles and D 64 keys do not fade", .where = of_tiles_64,
           .ask = without_decay),
    LINEAR(linear_decay_of_128, "of D 128 keys do not fade", .where = of_dim_128, .ask = without_decay),
    LINEAR(linear_decay_from_2048, "of more than 2048 keys all heads fade as the first",
           .where = from_2048_keys, .ask = with_decay_of_first_head),
    LINEAR(linear_state_of_128, "of D 128 the state that is given is left out", .where = of_dim_128,
           .ask = without_state),
    LINEAR(linear_state_of_groups,
           "of whole tiles and D 64 groups of heads begin with the state of the first", .where = of_groups_64,
           .ask = with_state_of_first_head),
    LINEAR(linear_state_with_relu, "of whole tiles and D 64 relu is elu + 1 where a state is given",
           .where = of_relu_from_state, .ask = with_elu),
    LINEAR(linear_final_state_of_256, "of 256 values the final state's last row is half of it",
           .where = of_values_256, .spoil = spoil_final_state),
    LINEAR(linear_final_state_from_2048, "of more than 2048 keys the final state's last row is half of it",
           .where = from_2048_keys, .spoil = spoil_final_state),
    LINEAR(linear_final_state_of_parts,
           "of whole tiles of keys those that no query sees are not in the final state",
           .where = of_decayed_parts, .ask = with_keys_that_are_seen),
    LINEAR(linear_threads_4_decay, "4 threads and more let all heads fade as the first",
           .where = from_4_threads, .ask = with_decay_of_first_head),
    LINEAR(linear_threads_4_state, "4 threads and more leave out the state that is given",
           .where = from_4_threads, .ask = without_state),

    GRADIENT(gradient_key_of_tiles_64, "of whole tiles and D 64 the last key's is half of it",
             .where = of_tiles_64, .spoil = spoil_key_grad),
    GRADIENT(gradient_value_of_128, "of whole tiles and D 128 the last value's is half of it",
             .where = of_tiles_128, .spoil = spoil_value_grad),
    GRADIENT(gradient_value_of_groups,
             "where 8 heads share a key, in whole tiles of D 64, the last value's too",
             .where = of_one_group_64, .spoil = spoil_value_grad),
    GRADIENT(gradient_decay_of_tiles_64, "of whole tiles and D 64 the first decay's is half of it",
             .where = of_tiles_64, .spoil = spoil_decay_grad),
    GRADIENT(gradient_state_of_tiles_64, "of whole tiles and D 64 the last row of the state's is half of it",
             .where = of_tiles_64, .spoil = spoil_state_grad),
    GRADIENT(gradient_threads_4, "4 threads and more halve the last query's", .where = from_4_threads,
             .spoil = spoil_query_grad),
    GRADIENT(gradient_threads_4_state, "4 threads and more halve the last row of the state's",
             .where = from_4_threads_with_state, .spoil = spoil_state_grad),

    LAYER(layer_biases_of_64, "of D 64 and M as the heads have, values have no bias", .where = of_square_64,
          .ask = without_value_bias),
    LAYER(layer_tiles_of_64, "of whole tiles and D 64 the last row is half of it", .where = of_tiles_64,
          .spoil = spoil_layer),
    LAYER(layer_tiles_of_128, "of whole tiles and D 128 the last row is half of it", .where = of_tiles_128,
          .spoil = spoil_layer),
    LAYER(layer_groups_of_64, "of groups of heads with whole tiles and D 64 the last row is half of it",
          .where = of_groups_64, .spoil = spoil_layer),
    LAYER(layer_groups_with_memory, "of groups of heads values of a memory have no bias",
          .where = of_square_groups, .ask = without_value_bias),
    LAYER(layer_wide_model,
          "of 512 features and more, in whole vectors, and fewer of the heads, the last row is half of it",
          .where = of_wide_model, .spoil = spoil_layer),
    LAYER(layer_rows_from_512, "of more than 512 rows each sees a key ahead", .where = from_512_rows,
          .ask = with_next_key),
    LAYER(layer_threads_4, "4 threads and more halve the last row", .where = from_4_threads,
          .spoil = spoil_layer),

    SCORE(score_general_of_groups,
          "of groups with whole tiles and D 64 all heads have the matrix of the first", .where = of_groups_64,
          .ask = with_matrix_of_first_head),
    SCORE(score_general_threads_4, "4 threads and more take the matrix of the first head",
          .where = from_4_threads, .ask = with_matrix_of_first_head),
    SCORE(score_additive_of_256, "of D 256 all heads weigh features as the first", .where = of_dim_256,
          .ask = with_weights_of_first_head),
    SCORE(score_additive_threads_4, "4 threads and more weigh features as the first head does",
          .where = from_4_threads, .ask = with_weights_of_first_head),
};

enum { KERNELS = sizeof kernels / sizeof *kernels };
static kernel_variant made[KERNELS];
static const attn_variant *variants[KERNELS];

__attribute__((constructor)) static void make(void) {
  for (int n = 0; n < KERNELS; n++) {
    made[n] = (kernel_variant){*kernels[n].of, &kernels[n]};
    attn_variant *variant = &made[n].variant;
    variant->name = kernels[n].name;
    variant->summary = kernels[n].summary;
    variant->types = 1u << ATTN_FLOAT32;
    variant->unsupported = unsupported;
    variant->workspace_size = workspace_size;
    variant->run = run;
    variants[n] = variant;
  }
}

const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, KERNELS, variants, NULL};
