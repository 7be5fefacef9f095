/* See emulation.h: where threads of an emulated block meet, and what they know of one another from then
 * on. */
#include "engine.h"

namespace emulation {

stamp now = 1;
knowledge known[MOST_WARPS];
stamp all_known[MOST_WARPS];

/* ---- meetings of a warp ---- */

/* Lanes that meet under one mask. Some meetings of a warp can be under way, with masks that have no lane in
 * common. */
struct warp_meeting {
  unsigned mask, arrived, generation;
  perform_function *perform;
  void *brought[WARP];
};
constexpr unsigned MEETINGS = 8;
static warp_meeting warp_meetings[MOST_WARPS][MEETINGS];

static warp_meeting *meeting_of(unsigned warp, unsigned mask) {
  warp_meeting *unused = nullptr;
  for (warp_meeting &meeting : warp_meetings[warp]) {
    if (meeting.arrived && meeting.mask == mask) return &meeting;
    if (!meeting.arrived && !unused) unused = &meeting;
  }
  if (!unused) complain("a warp meets under more than %u masks at once", MEETINGS);
  unused->mask = mask;
  return unused;
}

void meet_warp(unsigned mask, void *mine, perform_function *perform, const char *what) {
  fiber *me = running;
  const unsigned bit = 1u << me->lane;
  const unsigned there = fiber_count - me->warp * WARP; /* lanes that the warp has */
  if (there < WARP) mask &= (1u << there) - 1;
  if (!(mask & bit)) complain("lane %u comes to %s whose mask %08x leaves it out", me->lane, what, mask);
  warp_meeting *meeting = meeting_of(me->warp, mask);
  if (!meeting->arrived)
    meeting->perform = perform;
  else if (meeting->perform != perform)
    complain("lanes of a warp meet at different instructions, one of them %s", what);
  meeting->brought[me->lane] = mine;
  meeting->arrived |= bit;
  if (meeting->arrived != mask) {
    wait_until_changed(&meeting->generation, what, nullptr);
    return;
  }
  if (perform) perform(meeting->brought, mask);
  now++;
  for (unsigned n = 0; n < WARP; n++)
    if (mask >> n & 1) fiber_of(me->warp * WARP + n)->met = now;
  meeting->arrived = 0;
  meeting->generation++;
}

/* ---- who knows what ---- */

static unsigned agents() { return mbarrier_count ? MOST_WARPS + mbarrier_count : MOST_WARPS; }

static stamp least_known(unsigned warp) {
  stamp least = now;
  for (unsigned other = 0; other < agents(); other++)
    if (other != warp && (other * WARP < fiber_count || other >= MOST_WARPS) &&
        known[warp].until[other] < least)
      least = known[warp].until[other];
  return least;
}

static void learn(unsigned warp, const knowledge *from) {
  for (unsigned other = 0; other < agents(); other++)
    if (from->until[other] > known[warp].until[other]) known[warp].until[other] = from->until[other];
  all_known[warp] = least_known(warp);
}

void release(knowledge *to) {
  knowledge *mine = &known[running->warp];
  mine->until[running->warp] = ++now;
  for (unsigned w = 0; w < agents(); w++)
    if (mine->until[w] > to->until[w]) to->until[w] = mine->until[w];
}

/* Lanes of one's own warp are known by what they released. */
void acquire(const knowledge *from) {
  const stamp own = from->until[running->warp];
  learn(running->warp, from);
  if (own > running->met) running->met = own;
}

/* ---- barriers of a block ---- */

/* bar.sync and bar.arrive of the PTX manual: 16 of them. */
struct barrier {
  unsigned expected, arrived, generation;
  bool warps[MOST_WARPS];
  knowledge released; /* what those who arrived knew */
};
constexpr unsigned BARRIERS = 16;
static barrier barriers[BARRIERS];

static barrier *come_to(unsigned id, unsigned threads) {
  if (id >= BARRIERS) complain("barrier %u: there are %u", id, BARRIERS);
  barrier *b = &barriers[id];
  if (!b->arrived)
    b->expected = threads;
  else if (b->expected != threads)
    complain("barrier %u is met by %u threads and by %u", id, b->expected, threads);
  release(&b->released);
  b->arrived++;
  return b;
}

static void complete(barrier *b) {
  now++;
  for (unsigned w = 0; w < MOST_WARPS; w++) {
    if (!b->warps[w]) continue;
    learn(w, &b->released);
    for (unsigned n = w * WARP; n < (w + 1) * WARP; n++) fiber_of(n)->met = now;
  }
  b->arrived = 0;
  b->generation++;
  memset(b->warps, 0, sizeof b->warps);
  memset(&b->released, 0, sizeof b->released);
}

void meet_block(unsigned id, unsigned threads) {
  barrier *b = come_to(id, threads);
  b->warps[running->warp] = true;
  if (b->arrived == b->expected)
    complete(b);
  else
    wait_until_changed(&b->generation, "a barrier of the block", nullptr);
}

void arrive_block(unsigned id, unsigned threads) {
  barrier *b = come_to(id, threads);
  if (b->arrived == b->expected) complete(b);
}

/* All know what was before the block. */
void start_block_meetings() {
  memset(warp_meetings, 0, sizeof warp_meetings);
  memset(barriers, 0, sizeof barriers);
  now++;
  for (unsigned w = 0; w < MOST_WARPS; w++)
    for (unsigned other = 0; other < AGENTS; other++) known[w].until[other] = now;
  for (unsigned w = 0; w < MOST_WARPS; w++) all_known[w] = now;
}

} // namespace emulation
