/* Each variant takes memory in one way, and computes nothing. */
#define _GNU_SOURCE
#include <attention.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MEBIBYTE = 1 << 20, PAGE = 4096, LARGE = 300000 };

char static_zeros[10000];
char static_ones[5000] = {1};
_Thread_local char static_of_thread[1000];
static char large_zeros[LARGE];
static _Thread_local char large_of_thread[LARGE];

#define RUN(name) static void name(const attn_call *call)
#define UNUSED() (void)call

static size_t a_mebibyte(const attn_call *call) {
  (void)call;
  return MEBIBYTE;
}

RUN(take_none) { UNUSED(); }

/* Beside a mapping that is not used, where pages that are touched elsewhere would count as its. */
RUN(use_static_data) {
  UNUSED();
  static char *kept;
  if (!kept)
    kept = (char *)syscall(SYS_mmap, NULL, (size_t)MEBIBYTE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
#pragma omp parallel num_threads(call->threads)
  for (int n = 0; n < LARGE; n += 64) {
    ((volatile char *)large_of_thread)[n]++;
#pragma omp master
    ((volatile char *)large_zeros)[n]++;
  }
}

RUN(touch_little) {
  memset(call->workspace, 1, 5000);
  memset((char *)call->workspace + 500000, 0, 3000);
}

/* What the workspace may hold before the run. */
RUN(touch_with_patterns) {
  memset(call->workspace, 0x5a, 1000);
  memset((char *)call->workspace + MEBIBYTE - 1000, 0xa5, 1000);
}

__attribute__((noinline)) static void use_stack(size_t bytes) {
  volatile char *frame = __builtin_alloca(bytes);
  for (size_t n = 0; n < bytes; n++) frame[n] = 0;
}

RUN(use_frame) {
  UNUSED();
  use_stack(300000);
}

RUN(use_frame_on_each_thread) {
  UNUSED();
#pragma omp parallel num_threads(call->threads)
  use_stack(100000);
}

static char *map(size_t bytes) {
  return (char *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
}

RUN(map_once_and_keep) {
  UNUSED();
  static char *kept;
  if (!kept) kept = memset(map(MEBIBYTE), 1, MEBIBYTE);
}

RUN(map_and_give_back) {
  UNUSED();
  char *mapped = memset(map(MEBIBYTE), 1, MEBIBYTE);
  syscall(SYS_munmap, mapped, (size_t)MEBIBYTE);
}

RUN(map_and_touch_little) {
  UNUSED();
  static char *kept;
  if (!kept) kept = memset(map((size_t)64 * MEBIBYTE), 1, (size_t)3 * PAGE);
}

RUN(call_malloc) {
  UNUSED();
  void *volatile taken = malloc(100);
  free(taken);
}

RUN(crash) {
  UNUSED();
  raise(SIGKILL);
}

RUN(leave) {
  UNUSED();
  _exit(0);
}

#define VARIANT(word, with, workspace)                                                                       \
  static const attn_variant word##_variant = {.name = #word,                                                 \
                                              .summary = "",                                                 \
                                              .types = 1u << ATTN_FLOAT32,                                   \
                                              .workspace_size = (workspace),                                 \
                                              .run = (with)}
VARIANT(none, take_none, NULL);
VARIANT(little, touch_little, a_mebibyte);
VARIANT(pattern, touch_with_patterns, a_mebibyte);
VARIANT(frame, use_frame, NULL);
VARIANT(frames, use_frame_on_each_thread, NULL);
VARIANT(keeps, map_once_and_keep, NULL);
VARIANT(returns, map_and_give_back, NULL);
VARIANT(sparse, map_and_touch_little, NULL);
VARIANT(mallocs, call_malloc, NULL);
VARIANT(crashes, crash, NULL);
VARIANT(leaves, leave, NULL);
VARIANT(statics, use_static_data, NULL);

static const attn_variant *const variants[] = {
    &none_variant,    &little_variant, &pattern_variant, &frame_variant,   &frames_variant, &keeps_variant,
    &returns_variant, &sparse_variant, &mallocs_variant, &crashes_variant, &leaves_variant, &statics_variant};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof variants[0], variants, NULL};
