/* What the emulation's own files share: fibers, and what is known of the order of their accesses. */
#ifndef ATTN_EMULATION_ENGINE_H
#define ATTN_EMULATION_ENGINE_H

#include "emulation.h"

namespace emulation {

constexpr unsigned MOST_WARPS = MOST_THREADS / WARP, DYNAMIC_BYTES = 227 * 1024;

/* Who acts in a block: its warps, and the copies in bulk of each mbarrier. */
constexpr unsigned MOST_MBARRIERS = 32, AGENTS = MOST_WARPS + MOST_MBARRIERS;

/* Time counts the meetings of a launch. What happened before a meeting that both took part in is ordered;
 * known[w] says for the warp of who asks until when it knows all that agent w did (vector clocks: Mattern
 * 1989; Flanagan and Freund 2009 for stamps in the place of clocks). */
typedef uint32_t stamp;
extern stamp now;

struct knowledge {
  stamp until[AGENTS];
};

struct asynchronous_copy {
  void *to;
  const void *from;
  unsigned bytes, filled, group;
  const void *code;
};

struct fiber {
  void *stack_pointer;
  place at;
  unsigned number, warp, lane;
  const unsigned *waits_on; /* runs again when this is not `seen` any more */
  unsigned seen;
  const char *waits_for; /* in words, and where */
  const void *waits_at;
  bool finished;
  stamp met;    /* when it last met lanes of its warp */
  stamp fenced; /* when what it wrote was last made visible to copies in bulk and products */

  static constexpr unsigned MOST_COPIES = 256;
  asynchronous_copy copies[MOST_COPIES];
  unsigned copy_count, groups;
};

extern fiber *running; /* NULL: no kernel is */
fiber *fiber_of(unsigned thread);
extern unsigned fiber_count;
extern knowledge known[MOST_WARPS];
extern stamp all_known[MOST_WARPS]; /* the least of a row: until when the warp knows of everybody */

/* ---- waiting ---- */

void wait_until_changed(const unsigned *generation, const char *what, const void *code);

/* What the running thread did and knows joins that, after which it has to count as something new; and the
 * other way about. */
void release(knowledge *to);
void acquire(const knowledge *from);

/* ---- the schedule ---- */

/* In which order warps and lanes run, and when copies land: each finds another kind of mistake. */
struct schedule {
  const char *name;
  enum { FORWARDS, BACKWARDS, RANDOM } order;
  bool copies_land_early;
};
extern const schedule schedules[4];
extern const schedule *scheduled;
uint32_t random_below(uint32_t n);

/* ---- memory ---- */

void start_block_memory(size_t dynamic_bytes);
void look_at_copy_start(const asynchronous_copy *copy);
void land(const asynchronous_copy *copy);
bool is_shared(const void *address);
void look_at_read(const void *address, size_t bytes, const void *code);
void look_at_write(const void *address, size_t bytes, const void *code);
void look_at_made(const void *address, const void *code);
void look_at_bulk_start(void *to, size_t bytes, unsigned agent, const void *code);
void land_bulk(void *to, size_t bytes);
void start_product_read(const void *from, size_t bytes, const void *code);
void end_product_read(const void *from, size_t bytes);
void leave_products();

extern unsigned char *arena; /* global memory lies in it */
constexpr size_t arena_bytes = (size_t)1 << 38;
void look_at_global(const unsigned char *address, size_t bytes, bool writes, const void *code);

/* ---- what is under way in a block (meetings.cc, copies.cc, warpgroup.cc) ---- */

void start_block_meetings();
void start_block_copies();
void start_block_products();

/* Where nobody can run on: one copy in bulk lands. false: there is none. */
bool land_one();

/* Of a block whose threads have all ended: what is still under way is a mistake. */
void end_block_copies();
void end_block_products();

extern unsigned mbarrier_count;

/* Products are exact. Their sum is cut off, not rounded, to float32 (measured: Fasi, Higham, Mikaitis and
 * Pranesh 2021, section 3); the two bits more or less that devices keep before that are not imitated. */
inline float truncated(double x) {
  const float rounded = (float)x;
  if (!isfinite(rounded) && isfinite(x)) return copysignf(3.40282347e38f, rounded);
  return isfinite(rounded) && fabs((double)rounded) > fabs(x) ? nextafterf(rounded, 0) : rounded;
}

/* What went wrong in launches, in words, which is then forgotten; NULL: nothing. */
const char *take_complaint(void);

/* Says it without a thread that could be left. */
void note_complaint(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "fused.cu:120", or what is known of where this code comes from. */
void format_line(char *text, size_t size, const void *code);

} // namespace emulation

#endif
