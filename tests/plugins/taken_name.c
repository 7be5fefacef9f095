/* A plugin whose variant has the name of one of ours. */
#include "attention.h"

static void run(const attn_call *call) { (void)call; }

static const attn_variant impostor = {
    .name = "naive",
    .summary = "has a name that is taken",
    .function = ATTN_SOFTMAX,
    .types = 1u << ATTN_FLOAT32,
    .time_exponent = 2,
    .run = run,
};
static const attn_variant *const variants[] = {&impostor};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, NULL};
