/* A plugin whose variant takes no problem that there is today. */
#include "attention.h"

static void run(const attn_call *call) { (void)call; }

static const attn_variant idle = {
    .name = "idle",
    .summary = "computes in bytes only",
    .function = ATTN_SOFTMAX,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP | ATTN_LSE |
                ATTN_WEIGHTS,
    .types = 1u << ATTN_UINT8,
    .time_exponent = 2,
    .run = run,
};
static const attn_variant *const variants[] = {&idle};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, NULL};
