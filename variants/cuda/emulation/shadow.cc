/* See emulation.h: the shared memory of an emulated device, and who touched what since which meeting. The
 * compiler calls the functions named __tsan_ before each access; they are those that ThreadSanitizer's
 * runtime has. */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

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
  uint16_t writer;      /* a thread, or WARP times the number of an agent */
  bool is_landing;      /* a copy into it is under way */
  uint16_t multiplying; /* warps' products that read it and are not waited for */
  uint16_t multiplying_warp;
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

/* Of a block that was ended before it waited for them. */
static bool products_left;
void leave_products() { products_left = true; }
static void forget_products() {
  if (!products_left) return;
  for (cell &c : cells) c.multiplying = 0;
  products_left = false;
}

void start_block_memory(size_t bytes) {
  const uint32_t nan = 0x7fa57fa5;
  dynamic_bytes = bytes;
  for (unsigned char *at = __start_attn_shared; at + 4 <= __stop_attn_shared;) {
    if (at == dynamic_memory) { /* of the largest part, what is used */
      wmemset(reinterpret_cast<wchar_t *>(at), (wchar_t)nan, (bytes + 3) / 4);
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
  forget_products();
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
  if (warp >= MOST_WARPS)
    complain("warp %u lane %u %s shared memory at %s that a bulk copy at %s writes: its mbarrier it has not "
             "waited for",
             running->warp, running->lane, did, here_line, there_line);
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

static cell *first_cell(const void *address) {
  const size_t at = (size_t)(static_cast<const unsigned char *>(address) - __start_attn_shared);
  return at / CELL_BYTES < CELLS ? &cells[at / CELL_BYTES] : nullptr;
}

static void check_dynamic_end(const unsigned char *address, size_t bytes, const void *code) {
  const size_t in_dynamic = (size_t)(address - dynamic_memory);
  if (in_dynamic < sizeof dynamic_memory && in_dynamic + bytes > dynamic_bytes) {
    char line[96];
    format_line(line, sizeof line, code);
    complain("%zu bytes of shared memory are touched at %zu, of %zu, at %s", bytes, in_dynamic, dynamic_bytes,
             line);
  }
}

static void look_at_shared(const unsigned char *address, size_t bytes, bool writes, bool is_landing,
                           const void *code) {
  const size_t at = (size_t)(address - __start_attn_shared);
  check_dynamic_end(address, bytes, code);
  if (bytes < CELL_BYTES) return;
  /* What happened before is ordered, whoever did it. */
  const stamp horizon = all_known[running->warp] < running->met ? all_known[running->warp] : running->met;
  for (size_t n = at / CELL_BYTES; n < (at + bytes) / CELL_BYTES && n < CELLS; n++) {
    cell *c = &cells[n];
    if (c->written >= horizon || c->is_landing) check_writer(c, writes ? "writes" : "reads", code);
    if (writes) {
      if (c->newest_read >= horizon) check_readers(c, code);
      if (c->multiplying)
        complain_of_race("writes", code, "multiplies (and has not waited for)",
                         c->reading_code[c->multiplying_warp % READERS], c->multiplying_warp, 0);
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

void look_at_read(const void *address, size_t bytes, const void *code) {
  look(address, bytes, false, false, code);
}
void look_at_write(const void *address, size_t bytes, const void *code) {
  look(address, bytes, true, false, code);
}

/* Of what threads change together, as an mbarrier: whether it was made before. */
void look_at_made(const void *address, const void *code) { check_writer(first_cell(address), "uses", code); }

void look_at_copy_start(const asynchronous_copy *copy) {
  if (copy->filled) look(copy->from, copy->filled, false, false, copy->code);
  look_at_shared(static_cast<unsigned char *>(copy->to), copy->bytes, true, true, copy->code);
}

/* ---- copies in bulk, and products ----
 *
 * They touch memory from when they are asked for until they are waited for. */

void look_at_bulk_start(void *to, size_t bytes, unsigned agent, const void *code) {
  look_at_shared(static_cast<unsigned char *>(to), bytes, true, true, code);
  for (cell *c = first_cell(to), *end = c + bytes / CELL_BYTES; c < end; c++)
    c->writer = (uint16_t)(agent * WARP);
}

void land_bulk(void *to, size_t bytes) {
  for (cell *c = first_cell(to), *end = c + bytes / CELL_BYTES; c < end; c++) {
    c->written = now;
    c->is_landing = false;
  }
}

/* What ordinary stores leave is not there for them before a fence of who wrote it. */
static void check_proxy(const cell *c, const void *code) {
  char here_line[96], there_line[96];
  if (c->written < block_began || c->writer >= MOST_THREADS) return;
  if (c->written < fiber_of(c->writer)->fenced) return;
  format_line(here_line, sizeof here_line, code);
  format_line(there_line, sizeof there_line, code_from(c->writing_code));
  complain("warp %u multiplies shared memory at %s that warp %u wrote at %s: fence.proxy.async is missing",
           running->warp, here_line, c->writer / WARP, there_line);
}

void start_product_read(const void *from, size_t bytes, const void *code) {
  const size_t at = (size_t)(static_cast<const unsigned char *>(from) - dynamic_memory);
  if (at >= sizeof dynamic_memory) {
    char line[96];
    format_line(line, sizeof line, code);
    complain("a matrix of wgmma at %s reaches %zu, beyond all shared memory: its strides are wrong", line,
             at);
  }
  check_dynamic_end(static_cast<const unsigned char *>(from), bytes, code);
  for (cell *c = first_cell(from), *end = c + bytes / CELL_BYTES; c < end; c++) {
    check_writer(c, "multiplies", code);
    check_proxy(c, code);
    c->multiplying++;
    c->multiplying_warp = (uint16_t)running->warp;
    c->reading_code[running->warp % READERS] = code_kept(code);
  }
}

/* From here on it counts as read by who waited for it. */
void end_product_read(const void *from, size_t bytes) {
  const unsigned slot = running->warp % READERS;
  for (cell *c = first_cell(from), *end = c + bytes / CELL_BYTES; c < end; c++) {
    c->multiplying--;
    c->read[slot] = c->newest_read = now;
    c->reading_lane[slot] = (uint8_t)running->lane;
  }
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
    found = !strstr(file, "emulation.h:") && !strstr(file, "cuda.h:") && !strstr(file, "hopper.h:");
    snprintf(text, size, "%s", file);
  }
  pclose(lines);
}

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
}
