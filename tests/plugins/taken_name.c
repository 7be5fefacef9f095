/* A plugin whose variant has the name of one of ours. */
#include "attention.h"

static void run(const attn_problem *problem, const attn_tensors *tensors, void *workspace, int threads) {
  (void)problem, (void)tensors, (void)workspace, (void)threads;
}

static const attn_variant impostor = {
    .name = "naive",
    .summary = "has a name that is taken",
    .function = ATTN_SOFTMAX,
    .dtypes = 1u << ATTN_FLOAT32,
    .time_exponent = 2,
    .run = run,
};
static const attn_variant *const variants[] = {&impostor};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, NULL};
