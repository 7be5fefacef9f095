/* A device made of the host's memory that fails as GPUs do, and kernels each of which makes it: a launch that is refused,
 * an error after which nothing runs in the process any more, a kernel that never ends, more memory than there is. Where
 * FAILING_DEVICE says "old" it cannot be had. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"

static const size_t guard_bytes = 64, memory_bytes = (size_t)16 << 20;

static const char *failure; /* of the last launch */
static bool is_broken;
static bool hangs;

static int count(char *why, size_t why_size) {
  (void)why, (void)why_size;
  return 1;
}

static bool open_device(int index, char *words, size_t words_size) {
  const char *how = getenv("FAILING_DEVICE");
  snprintf(words, words_size, "device failing:%d%s", index,
           how ? " is sm_70, for which nothing was compiled" : "");
  return !how;
}

static void *allocate(size_t bytes) {
  char *memory = bytes > memory_bytes
                     ? NULL
                     : aligned_alloc(guard_bytes, (bytes + 3 * guard_bytes) / guard_bytes * guard_bytes);
  return memory ? memory + guard_bytes : NULL;
}
static void release(void *memory) { free((char *)memory - guard_bytes); }
static bool is_whole(const void *memory) {
  (void)memory;
  return true;
}
static void copy(void *to, const void *from, size_t bytes) {
  if (bytes) memcpy(to, from, bytes);
}
static void *stream(void) { return NULL; }
static void keep_to(const char *isa) { (void)isa; }

static const char *wait_for_all(void) {
  const char *words = is_broken ? "an illegal memory access was encountered" : failure;
  while (hangs) pause();
  failure = NULL;
  return words;
}
static bool is_lost(void) { return is_broken; }
static void start_clock(void) {}
static double stop_clock(void) { return 1e-3; }
static void describe(attn_device_facts *facts) {
  *facts =
      (attn_device_facts){.name = "failing", .capability = 70, .multiprocessors = 2, .l2_bytes = 1 << 20};
}
static void flush(void) {}
static void look(attn_device_state *state) { *state = (attn_device_state){900, 1800, 88, "its temperature"}; }

/* A kernel of the test takes 1 ms, by stop_clock. */
static double float_rate(double seconds) { return seconds > 0 ? 1e9 : 0; }
static double read_rate(double seconds) { return seconds > 0 ? 2e9 : 0; }
static double no_rate(double seconds) { return 0 * seconds; }
static const attn_device_peak peaks[] = {{"f32", ATTN_FLOAT32, float_rate},
                                         {"bf16", ATTN_BFLOAT16, no_rate},
                                         {"read memory", ATTN_ABSENT, read_rate}};

const attn_device attn_plugin_device = {.size = sizeof(attn_device),
                                        .kind = "failing",
                                        .count = count,
                                        .open = open_device,
                                        .allocate = allocate,
                                        .release = release,
                                        .is_whole = is_whole,
                                        .write = copy,
                                        .read = copy,
                                        .stream = stream,
                                        .keep_to = keep_to,
                                        .wait = wait_for_all,
                                        .start_clock = start_clock,
                                        .stop_clock = stop_clock,
                                        .is_lost = is_lost,
                                        .describe = describe,
                                        .peaks = peaks,
                                        .peak_count = sizeof peaks / sizeof *peaks,
                                        .flush = flush,
                                        .look = look};

/* ---- its kernels ---- */

static void solve(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_tensors *x = &call->tensors;
  for (int64_t i = 0; i < p->query_length; i++) {
    float *o = (float *)x->output + i * p->output.position;
    double sum = 0;
    memset(o, 0, (size_t)p->value_dim * sizeof *o);
    for (int pass = 0; pass < 2; pass++)
      for (int64_t j = 0; j < p->key_length; j++) {
        double dot = 0;
        for (int64_t d = 0; d < p->head_dim; d++)
          dot += (double)((const float *)x->query)[i * p->query.position + d] *
                 ((const float *)x->key)[j * p->key.position + d];
        const double weight = exp(p->scale * dot);
        for (int64_t e = 0; pass && e < p->value_dim; e++)
          o[e] += (float)(weight / sum * ((const float *)x->value)[j * p->value.position + e]);
        if (!pass) sum += weight;
      }
  }
}

static void refuse(const attn_call *call) {
  (void)call;
  failure = "no kernel image is available for execution on the device";
}
static void break_it(const attn_call *call) {
  (void)call;
  is_broken = true;
}
static void hang(const attn_call *call) {
  (void)call;
  hangs = true;
}
static size_t too_much(const attn_call *call) {
  (void)call;
  return 2 * memory_bytes;
}

/* Of 4096 bytes: zeros are written too. */
static void solve_and_zero(const attn_call *call) {
  solve(call);
  memset(call->workspace, 0, 1024);
}
static size_t four_times_as_much(const attn_call *call) {
  (void)call;
  return 4096;
}

static const char *one_head(const attn_call *call) {
  return call->problem->batch * call->problem->query_heads > 1 ? "takes one head" : NULL;
}

#define KERNEL(text, how, bytes)                                                                             \
  {                                                                                                          \
    .name = (text), .summary = (text), .types = 1u << ATTN_FLOAT32, .place = ATTN_CUDA, .time_exponent = 2,  \
    .unsupported = one_head, .workspace_size = (bytes), .run = (how)                                         \
  }
static const attn_variant kernels[] = {
    KERNEL("breaks_it", break_it, NULL), KERNEL("is_refused", refuse, NULL),
    KERNEL("hungry", solve, too_much),   KERNEL("endless", hang, NULL),
    KERNEL("right", solve, NULL),        KERNEL("zeroes", solve_and_zero, four_times_as_much)};
static const attn_variant *const variants[] = {&kernels[0], &kernels[1], &kernels[2],
                                               &kernels[3], &kernels[4], &kernels[5]};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof *variants, variants, NULL};
