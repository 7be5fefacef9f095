/* What the emulation's own files share: fibers, and what is known of the order of their accesses. */
#ifndef ATTN_EMULATION_ENGINE_H
#define ATTN_EMULATION_ENGINE_H

#include "emulation.h"

namespace emulation {

constexpr unsigned MOST_WARPS = MOST_THREADS / WARP, DYNAMIC_BYTES = 227 * 1024;

/* Time counts the meetings of a launch. What happened before a meeting that both took part in is ordered;
 * known[w] says for the warp of who asks until when it knows all that warp w did (vector clocks: Mattern 1989;
 * Flanagan and Freund 2009 for stamps in the place of clocks). */
typedef uint32_t stamp;
extern stamp now;

struct knowledge {
  stamp until[MOST_WARPS];
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
  const char *waits_for; /* in words */
  bool finished;
  stamp met; /* when it last met lanes of its warp */

  static constexpr unsigned MOST_COPIES = 256;
  asynchronous_copy copies[MOST_COPIES];
  unsigned copy_count, groups;
};

extern fiber *running; /* NULL: no kernel is */
extern knowledge known[MOST_WARPS];
extern stamp all_known[MOST_WARPS]; /* the least of a row: until when the warp knows of everybody */

/* ---- the schedule ---- */

/* In which order warps and lanes run, and when copies land: each finds another kind of mistake. */
struct schedule {
  const char *name;
  enum { FORWARDS, BACKWARDS, RANDOM } order;
  bool copies_land_early;
};
extern const schedule schedules[4];
extern const schedule *scheduled;

/* ---- memory ---- */

void start_block_memory(size_t dynamic_bytes);
void look_at_copy_start(const asynchronous_copy *copy);
void land(const asynchronous_copy *copy);
bool is_shared(const void *address);

/* What went wrong in launches, in words, which is then forgotten; NULL: nothing. */
const char *take_complaint(void);

/* "fused.cu:120", or what is known of where this code comes from. */
void format_line(char *text, size_t size, const void *code);

} // namespace emulation

#endif
