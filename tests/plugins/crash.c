/* A kernel that writes where it may not: the report must name it and the problem. */
#include "attention.h"

static void run(const attn_call *call) {
  (void)call;
  volatile float *nowhere = (volatile float *)8;
  *nowhere = 1;
}

static const attn_variant crashing = {
    .name = "crashing",
    .summary = "writes to an address that nobody owns",
    .function = ATTN_SOFTMAX,
    .types = 1u << ATTN_FLOAT32,
    .time_exponent = 2,
    .run = run,
};
static const attn_variant *const variants[] = {&crashing};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, NULL};
