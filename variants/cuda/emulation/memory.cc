/* See emulation.h: the global memory of an emulated device, and what the harness asks of that
 * (../../device.h). */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../../device.h"

namespace emulation {

/* ---- global memory ---- */

/* Buffers end where a page does that nothing may touch, but for what their alignment leaves, which holds a
 * canary. */
struct allocation {
  unsigned char *data, *mapping;
  size_t bytes, mapping_bytes;
};
constexpr unsigned MOST_ALLOCATIONS = 64;
constexpr size_t PAGE = 4096, ALIGNMENT = 256;
constexpr unsigned char CANARY = 0xc5;
static allocation allocations[MOST_ALLOCATIONS];
static unsigned allocation_count;
unsigned char *arena;
static size_t arena_used;

static allocation *allocation_of(const void *address) {
  for (unsigned n = 0; n < allocation_count; n++)
    if ((uintptr_t)address - (uintptr_t)allocations[n].mapping < allocations[n].mapping_bytes)
      return &allocations[n];
  return nullptr;
}

static bool is_within(const allocation *of, const unsigned char *address, size_t bytes) {
  return address >= of->data && bytes <= of->bytes && (size_t)(address - of->data) <= of->bytes - bytes;
}

void look_at_global(const unsigned char *address, size_t bytes, bool writes, const void *code) {
  static const allocation *recent = allocations; /* most accesses are to the buffer of the one before */
  if (is_within(recent, address, bytes)) return;
  const allocation *in = allocation_of(address);
  if (in && is_within(in, address, bytes)) {
    recent = in;
    return;
  }
  char line[96];
  format_line(line, sizeof line, code);
  if (in)
    complain("%s %zu bytes at %td of a buffer of %zu, at %s", writes ? "writes" : "reads", bytes,
             address - in->data, in->bytes, line);
  complain("%s %zu bytes of global memory that is nobody's, at %s", writes ? "writes" : "reads", bytes, line);
}

/* ---- the device ---- */

static int count(char *, size_t) { return 1; }

static bool open_device(int index, char *words, size_t words_size) {
  if (index != 0) {
    snprintf(words, words_size, "there is one emulated device, emu");
    return false;
  }
  if (!arena) {
    void *reserved =
        mmap(nullptr, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
      snprintf(words, words_size, "no room for the addresses of an emulated device");
      return false;
    }
    arena = static_cast<unsigned char *>(reserved);
  }
  snprintf(words, words_size, "an emulated device: blocks of %u threads at most, %u KB of shared memory",
           MOST_THREADS, DYNAMIC_BYTES / 1024);
  return true;
}

static void *allocate(size_t bytes) {
  if (bytes > arena_bytes / 4 || allocation_count == MOST_ALLOCATIONS) return nullptr;
  const size_t padded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  const size_t mapped = (padded + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
  if (allocation_count == 0) arena_used = 0;
  if (arena_used + mapped > arena_bytes) return nullptr;
  allocation *made = &allocations[allocation_count];
  *made = {nullptr, arena + arena_used, bytes, mapped};
  unsigned char *const pages = made->mapping + PAGE;
  const size_t page_bytes = mapped - 2 * PAGE;
  if (page_bytes && mprotect(pages, page_bytes, PROT_READ | PROT_WRITE)) return nullptr;
  made->data = pages + page_bytes - padded;
  memset(pages, CANARY, (size_t)(made->data - pages));
  memset(made->data + bytes, CANARY, padded - bytes);
  arena_used += mapped;
  allocation_count++;
  return made->data;
}

static allocation *allocation_at(const void *data) {
  for (unsigned n = 0; n < allocation_count; n++)
    if (allocations[n].data == data) return &allocations[n];
  abort();
}

static void release(void *memory) {
  allocation *of = allocation_at(memory);
  const size_t page_bytes = of->mapping_bytes - 2 * PAGE;
  if (page_bytes) {
    madvise(of->mapping + PAGE, page_bytes, MADV_DONTNEED);
    mprotect(of->mapping + PAGE, page_bytes, PROT_NONE);
  }
  *of = allocations[--allocation_count];
  allocations[allocation_count] = {nullptr, nullptr, 0, 0};
}

static bool is_whole(const void *memory) {
  const allocation *of = allocation_at(memory);
  for (const unsigned char *at = of->mapping + PAGE; at < of->data; at++)
    if (*at != CANARY) return false;
  for (const unsigned char *at = of->data + of->bytes; at < of->mapping + of->mapping_bytes - PAGE; at++)
    if (*at != CANARY) return false;
  return true;
}

static void copy(void *to, const void *from, size_t bytes) {
  if (bytes) memcpy(to, from, bytes);
}
static void *stream(void) { return nullptr; }

static void keep_to(const char *isa) {
  scheduled = schedules;
  for (const schedule &named : schedules)
    if (isa && strcmp(isa, named.name) == 0) scheduled = &named;
}

/* Plain kernels, of which a thread touches memory for each multiply-add. */
static const double emulated_flops_per_second = 1e6;

static double started;
static double seconds_now() {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
/* What a kernel did that it may not has ended its launch, and nothing else. */
static bool is_lost(void) { return false; }

static void describe(attn_device_facts *facts) {
  *facts = {};
  snprintf(facts->name, sizeof facts->name, "emulated");
  facts->multiprocessors = 1;
  facts->shared_bytes = DYNAMIC_BYTES;
}

static void flush(void) {}

static void look_at_state(attn_device_state *state) { *state = {NAN, NAN, NAN, ""}; }

static void start_clock(void) { started = seconds_now(); }
static double stop_clock(void) { return seconds_now() - started; }

} // namespace emulation

using namespace emulation;

extern "C" {
extern const attn_device attn_plugin_device __attribute__((visibility("default")));
const attn_device attn_plugin_device = {sizeof(attn_device),
                                        "emu",
                                        emulated_flops_per_second,
                                        count,
                                        open_device,
                                        allocate,
                                        release,
                                        is_whole,
                                        copy,
                                        copy,
                                        stream,
                                        keep_to,
                                        take_complaint,
                                        start_clock,
                                        stop_clock,
                                        is_lost,
                                        describe,
                                        nullptr,
                                        0,
                                        flush,
                                        look_at_state};
}
