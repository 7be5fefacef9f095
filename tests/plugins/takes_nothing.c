/* A plugin whose variant takes no problem that there is today. */
#include "attention.h"

static void run(const attn_problem *problem, const attn_tensors *tensors, void *workspace, int threads) {
  (void)problem, (void)tensors, (void)workspace, (void)threads;
}

static const attn_variant idle = {
    .name = "idle",
    .summary = "computes in bfloat16 only",
    .function = ATTN_SOFTMAX,
    .dtypes = 1u << ATTN_BFLOAT16,
    .time_exponent = 2,
    .run = run,
};
static const attn_variant *const variants[] = {&idle};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, NULL};
