/* See emulation.h: the memory of an emulated device, and who touched what since which meeting. The compiler
 * calls the functions named __tsan_ before each access; they are those that ThreadSanitizer's runtime has. */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../../device.h"

namespace emulation {

/* ---- shared memory ---- */

/* The linker's names for the ends of the section in which all of it lies. */
extern "C" unsigned char __start_attn_shared[] __attribute__((visibility("hidden")));
extern "C" unsigned char __stop_attn_shared[] __attribute__((visibility("hidden")));
static unsigned char dynamic_memory[DYNAMIC_BYTES] __attribute__((section("attn_shared"), aligned(1024)));
static size_t dynamic_bytes;

void *dynamic_shared() { return dynamic_memory; }

bool is_shared(const void *address) {
  return (uintptr_t)address - (uintptr_t)__start_attn_shared <
         (size_t)(__stop_attn_shared - __start_attn_shared);
}

/* Who touched two bytes of it. Single bytes are not followed: neighbours would look as if they were one. Of
 * the reads of a warp, the last one. */
constexpr unsigned CELL_BYTES = 2, CELLS = (DYNAMIC_BYTES + 256 * 1024) / CELL_BYTES, READERS = 16;
struct cell {
  stamp written;
  uint32_t writing_code;
  uint16_t writer;
  bool is_landing; /* a copy into it is under way */
  stamp newest_read;
  stamp read[READERS];
  uint32_t reading_code[READERS];
  uint8_t reading_lane[READERS];
};
static cell cells[CELLS];
static stamp block_began;

/* Code is kept as its distance from here. */
static uint32_t code_kept(const void *code) {
  return (uint32_t)((uintptr_t)code - (uintptr_t)__start_attn_shared);
}
static const void *code_from(uint32_t kept) {
  return (const void *)((uintptr_t)__start_attn_shared + (uintptr_t)(intptr_t)(int32_t)kept);
}

void start_block_memory(size_t bytes) {
  const uint32_t nan = 0x7fa57fa5;
  dynamic_bytes = bytes;
  for (unsigned char *at = __start_attn_shared; at + 4 <= __stop_attn_shared;) {
    if (at == dynamic_memory) { /* of the largest part, what is used */
      for (size_t n = 0; n < bytes; n += 4) memcpy(at + n, &nan, 4);
      at += sizeof dynamic_memory;
    } else {
      memcpy(at, &nan, 4);
      at += 4;
    }
  }
  if (now > UINT32_MAX / 2) {
    memset(cells, 0, sizeof cells);
    now = 1;
  }
  block_began = ++now;
}

static bool is_ordered(stamp when, unsigned warp, unsigned lane) {
  if (when < block_began) return true;
  if (warp != running->warp) return when < known[running->warp].until[warp];
  return lane == running->lane || when < running->met;
}

[[noreturn]] static void complain_of_race(const char *did, const void *code, const char *others,
                                          uint32_t other_code, unsigned warp, unsigned lane) {
  char here_line[96], there_line[96];
  format_line(here_line, sizeof here_line, code);
  format_line(there_line, sizeof there_line, code_from(other_code));
  complain("warp %u lane %u %s shared memory at %s that warp %u lane %u %s at %s, with no barrier between",
           running->warp, running->lane, did, here_line, warp, lane, others, there_line);
}

static void check_writer(const cell *c, const char *did, const void *code) {
  const unsigned warp = c->writer / WARP, lane = c->writer % WARP;
  if (c->is_landing && c->written >= block_began)
    complain_of_race(did, code, "copies to (and has not waited for)", c->writing_code, warp, lane);
  if (!is_ordered(c->written, warp, lane)) complain_of_race(did, code, "wrote", c->writing_code, warp, lane);
}

static void check_readers(const cell *c, const void *code) {
  for (unsigned slot = 0; slot < READERS; slot++)
    if (!is_ordered(c->read[slot], slot, c->reading_lane[slot]))
      complain_of_race("writes", code, "read", c->reading_code[slot], slot, c->reading_lane[slot]);
}

static void look_at_shared(const unsigned char *address, size_t bytes, bool writes, bool is_landing,
                           const void *code) {
  const size_t at = (size_t)(address - __start_attn_shared);
  const size_t in_dynamic = (size_t)(address - dynamic_memory);
  if (in_dynamic < sizeof dynamic_memory && in_dynamic + bytes > dynamic_bytes) {
    char line[96];
    format_line(line, sizeof line, code);
    complain("%zu bytes of shared memory are touched at %zu, of %zu, at %s", bytes, in_dynamic, dynamic_bytes,
             line);
  }
  if (bytes < CELL_BYTES) return;
  /* What happened before is ordered, whoever did it. */
  const stamp horizon = all_known[running->warp] < running->met ? all_known[running->warp] : running->met;
  for (size_t n = at / CELL_BYTES; n < (at + bytes) / CELL_BYTES && n < CELLS; n++) {
    cell *c = &cells[n];
    if (c->written >= horizon || c->is_landing) check_writer(c, writes ? "writes" : "reads", code);
    if (writes) {
      if (c->newest_read >= horizon) check_readers(c, code);
      c->written = now;
      c->writer = (uint16_t)running->number;
      c->writing_code = code_kept(code);
      c->is_landing = is_landing;
    } else {
      const unsigned slot = running->warp % READERS;
      c->read[slot] = c->newest_read = now;
      c->reading_code[slot] = code_kept(code);
      c->reading_lane[slot] = (uint8_t)running->lane;
    }
  }
}

/* ---- global memory ---- */

/* Buffers end where a page does that nothing may touch, but for what their alignment leaves, which holds a
 * canary. */
struct allocation {
  unsigned char *data, *mapping;
  size_t bytes, mapping_bytes;
};
constexpr unsigned MOST_ALLOCATIONS = 64;
constexpr size_t PAGE = 4096, ALIGNMENT = 256, arena_bytes = (size_t)1 << 38;
constexpr unsigned char CANARY = 0xc5;
static allocation allocations[MOST_ALLOCATIONS];
static unsigned allocation_count;
static unsigned char *arena;
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

static void look_at_global(const unsigned char *address, size_t bytes, bool writes, const void *code) {
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

/* Of this object, as the linker names it: what is neither stack nor device memory. */
extern "C" unsigned char __bss_start[] __attribute__((visibility("hidden")));
extern "C" unsigned char _end[] __attribute__((visibility("hidden")));

static void check_not_static(const unsigned char *address, const void *code) {
  if (address < __bss_start || address >= _end) return;
  char line[96];
  format_line(line, sizeof line, code);
  complain("writes to a static variable at %s: a __shared__ one of a template cannot be watched, take "
           "ATTN_DYNAMIC_SHARED",
           line);
}

__attribute__((always_inline)) static inline void look(const void *address, size_t bytes, bool writes,
                                                       bool is_aligned, const void *code) {
  const unsigned char *at = static_cast<const unsigned char *>(address);
  if (!running) return;
  const bool shared = is_shared(address);
  const bool global = !shared && (uintptr_t)address - (uintptr_t)arena < arena_bytes && arena;
  if (!shared && !global) { /* its own stack, or constants */
    if (writes) check_not_static(at, code);
    return;
  }
  if (is_aligned && ((uintptr_t)address & (bytes - 1))) {
    char line[96];
    format_line(line, sizeof line, code);
    complain("%s %zu bytes at an address that is not aligned to them, at %s", writes ? "writes" : "reads",
             bytes, line);
  }
  if (shared)
    look_at_shared(at, bytes, writes, false, code);
  else
    look_at_global(at, bytes, writes, code);
}

void look_at_copy_start(const asynchronous_copy *copy) {
  if (copy->filled) look(copy->from, copy->filled, false, false, copy->code);
  look_at_shared(static_cast<unsigned char *>(copy->to), copy->bytes, true, true, copy->code);
}

/* From here on it counts as written by who waited for it. */
void land(const asynchronous_copy *copy) {
  unsigned char *to = static_cast<unsigned char *>(copy->to);
  const size_t first = (size_t)(to - __start_attn_shared) / CELL_BYTES;
  if (!scheduled->copies_land_early) {
    memcpy(to, copy->from, copy->filled);
    memset(to + copy->filled, 0, copy->bytes - copy->filled);
  }
  for (size_t n = first; n < first + copy->bytes / CELL_BYTES && n < CELLS; n++) {
    cells[n].written = now;
    cells[n].is_landing = false;
  }
}

/* ---- lines ---- */

void format_line(char *text, size_t size, const void *code) {
  Dl_info in;
  char command[4352], answer[4096];
  snprintf(text, size, "an unknown line");
  if (!dladdr(code, &in) || !in.dli_fname) return;
  /* The call lies before the address that it returns to. */
  snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%zx 2>/dev/null", in.dli_fname,
           (size_t)((uintptr_t)code - (uintptr_t)in.dli_fbase - 1));
  FILE *lines = popen(command, "r");
  if (!lines) return;
  bool found = false;
  /* From the innermost of inlined functions outwards: the first line that a kernel's author wrote. */
  while (!found && fgets(answer, sizeof answer, lines)) {
    answer[strcspn(answer, " \n")] = '\0';
    const char *file = strrchr(answer, '/') ? strrchr(answer, '/') + 1 : answer;
    if (file[0] == '?') continue;
    found = !strstr(file, "emulation.h:") && !strstr(file, "cuda.h:");
    snprintf(text, size, "%s", file);
  }
  pclose(lines);
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

/* ---- what the compiler calls ---- */

using namespace emulation;

extern "C" {
#pragma GCC visibility push(hidden)
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
#define CODE __builtin_return_address(0)
#define ACCESS(bytes)                                                                                        \
  void __tsan_read##bytes(void *at) { look(at, bytes, false, true, CODE); }                                  \
  void __tsan_write##bytes(void *at) { look(at, bytes, true, true, CODE); }                                  \
  void __tsan_read_write##bytes(void *at) { look(at, bytes, true, true, CODE); }                             \
  void __tsan_unaligned_read##bytes(void *at) { look(at, bytes, false, false, CODE); }                       \
  void __tsan_unaligned_write##bytes(void *at) { look(at, bytes, true, false, CODE); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void *at, size_t bytes) { look(at, bytes, false, false, CODE); }
void __tsan_write_range(void *at, size_t bytes) { look(at, bytes, true, false, CODE); }
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void *__tsan_memcpy(void *to, const void *from, size_t bytes) {
  look(from, bytes, false, false, CODE);
  look(to, bytes, true, false, CODE);
  return memcpy(to, from, bytes);
}
void *__tsan_memset(void *to, int byte, size_t bytes) {
  look(to, bytes, true, false, CODE);
  return memset(to, byte, bytes);
}
#pragma GCC visibility pop

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
