/* See emulation.h: blocks, one after the other, whose threads are fibers. */
#include "engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

namespace emulation {

const place *here;
fiber *running;
stamp now = 1;
knowledge known[MOST_WARPS];
stamp all_known[MOST_WARPS];

const schedule schedules[4] = {{"forwards", schedule::FORWARDS, false},
                               {"backwards", schedule::BACKWARDS, false},
                               {"random", schedule::RANDOM, false},
                               {"early_copies", schedule::FORWARDS, true}};
const schedule *scheduled = schedules;

const char *const *schedule_names() {
  static const char *const names[] = {schedules[0].name, schedules[1].name, schedules[2].name,
                                      schedules[3].name, nullptr};
  return names;
}

/* ---- fibers ---- */

static fiber fibers[MOST_THREADS];
static unsigned fiber_count, finished_count;
static void *scheduler_stack;
static void (*kernel_body)(void *);
static void *kernel_context;

constexpr size_t STACK_BYTES = 128 * 1024;
static unsigned char *stacks;

/* Saves the callee's registers on the stack, whose pointer goes to *from, and takes them up again at `to`. */
extern "C" void attn_emulation_switch(void **from, void *to);
#if defined(__x86_64__)
__asm__(".text\n.hidden attn_emulation_switch\n.globl attn_emulation_switch\n"
        ".type attn_emulation_switch, @function\nattn_emulation_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
        ".size attn_emulation_switch, . - attn_emulation_switch\n");
constexpr unsigned SAVED_WORDS = 8, ENTRY_WORD = 6;
#elif defined(__aarch64__)
__asm__(".text\n.hidden attn_emulation_switch\n.globl attn_emulation_switch\n"
        ".type attn_emulation_switch, %function\nattn_emulation_switch:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n  add sp, sp, #160\n  ret\n"
        ".size attn_emulation_switch, . - attn_emulation_switch\n");
constexpr unsigned SAVED_WORDS = 20, ENTRY_WORD = 11;
#else
#error "fibers are written for x86-64 and aarch64"
#endif

static void leave_fiber() {
  fiber *left = running;
  attn_emulation_switch(&left->stack_pointer, scheduler_stack);
}

static void run_fiber(fiber *next) {
  running = next;
  here = &next->at;
  attn_emulation_switch(&scheduler_stack, next->stack_pointer);
  running = nullptr;
}

static void fiber_main() {
  kernel_body(kernel_context);
  running->finished = true;
  finished_count++;
  leave_fiber();
  __builtin_unreachable();
}

static void prepare_fiber(unsigned n) {
  fiber *made = &fibers[n];
  /* As the instruction after a call finds it: 8 beside a multiple of 16 on x86-64, where the return address
   * was. */
  void **top = reinterpret_cast<void **>(stacks + (n + 1) * STACK_BYTES) - 2;
  void **words = top - (SAVED_WORDS == 8 ? ENTRY_WORD : SAVED_WORDS);
  memset(words, 0, SAVED_WORDS * sizeof *words);
  words[ENTRY_WORD] = reinterpret_cast<void *>(fiber_main);
  made->stack_pointer = words;
  made->number = n;
  made->warp = n / WARP;
  made->lane = n % WARP;
  made->finished = false;
  made->waits_on = nullptr;
  made->met = now;
  made->copy_count = made->groups = 0;
}

/* ---- what went wrong ---- */

static char complaint[512];

[[noreturn]] void complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (!complaint[0]) vsnprintf(complaint, sizeof complaint, format, arguments);
  va_end(arguments);
  /* Nothing of the launch runs on: its stacks are taken by the next one. */
  finished_count = fiber_count;
  leave_fiber();
  __builtin_unreachable();
}

const char *take_complaint(void) {
  static char taken[sizeof complaint];
  memcpy(taken, complaint, sizeof taken);
  complaint[0] = '\0';
  return taken[0] ? taken : nullptr;
}

/* ---- waiting ---- */

static void wait_until_changed(const unsigned *generation, const char *what) {
  running->waits_on = generation;
  running->seen = *generation;
  running->waits_for = what;
  leave_fiber();
}

unsigned lane() { return running->lane; }

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
    wait_until_changed(&meeting->generation, what);
    return;
  }
  if (perform) perform(meeting->brought, mask);
  now++;
  for (unsigned n = 0; n < WARP; n++)
    if (mask >> n & 1) fibers[me->warp * WARP + n].met = now;
  meeting->arrived = 0;
  meeting->generation++;
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
  knowledge *mine = &known[running->warp];
  mine->until[running->warp] = ++now;
  for (unsigned w = 0; w < MOST_WARPS; w++)
    if (mine->until[w] > b->released.until[w]) b->released.until[w] = mine->until[w];
  b->arrived++;
  return b;
}

static stamp least_known(unsigned warp) {
  stamp least = now;
  for (unsigned other = 0; other * WARP < fiber_count; other++)
    if (other != warp && known[warp].until[other] < least) least = known[warp].until[other];
  return least;
}

static void complete(barrier *b) {
  now++;
  for (unsigned w = 0; w < MOST_WARPS; w++) {
    if (!b->warps[w]) continue;
    for (unsigned other = 0; other < MOST_WARPS; other++)
      if (b->released.until[other] > known[w].until[other]) known[w].until[other] = b->released.until[other];
    all_known[w] = least_known(w);
    for (unsigned n = w * WARP; n < (w + 1) * WARP; n++) fibers[n].met = now;
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
    wait_until_changed(&b->generation, "a barrier of the block");
}

void arrive_block(unsigned id, unsigned threads) {
  barrier *b = come_to(id, threads);
  if (b->arrived == b->expected) complete(b);
}

/* ---- cp.async ---- */

void copy_async(void *to, const void *from, unsigned bytes, unsigned filled) {
  fiber *me = running;
  if (bytes != 4 && bytes != 8 && bytes != 16) complain("cp.async of %u bytes: it copies 4, 8 or 16", bytes);
  if (!is_shared(to)) complain("cp.async to memory that is not shared");
  if ((uintptr_t)to % bytes || (filled && (uintptr_t)from % bytes))
    complain("cp.async of %u bytes at an address that is not aligned to them", bytes);
  if (me->copy_count == fiber::MOST_COPIES)
    complain("more than %u copies of a thread are under way", fiber::MOST_COPIES);
  asynchronous_copy *copy = &me->copies[me->copy_count++];
  *copy = {to, from, bytes, filled, me->groups, __builtin_return_address(0)};
  look_at_copy_start(copy);
  if (scheduled->copies_land_early) {
    memcpy(to, from, filled);
    memset(static_cast<char *>(to) + filled, 0, bytes - filled);
  }
}

void commit_copies() { running->groups++; }

void wait_for_copies(unsigned groups_left) {
  fiber *me = running;
  unsigned kept = 0;
  for (unsigned n = 0; n < me->copy_count; n++)
    if (me->copies[n].group + groups_left < me->groups)
      land(&me->copies[n]);
    else
      me->copies[kept++] = me->copies[n];
  me->copy_count = kept;
}

/* ---- blocks ---- */

static uint32_t random_state;

/* xorshift32: Marsaglia 2003. */
static uint32_t random_below(uint32_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  random_state ^= random_state << 5;
  return random_state % n;
}

static void order_numbers(unsigned *numbers, unsigned count) {
  for (unsigned n = 0; n < count; n++)
    numbers[n] = scheduled->order == schedule::BACKWARDS ? count - 1 - n : n;
  if (scheduled->order == schedule::RANDOM)
    for (unsigned n = count; n > 1; n--) {
      const unsigned other = random_below(n), last = numbers[n - 1];
      numbers[n - 1] = numbers[other];
      numbers[other] = last;
    }
}

static bool can_run(const fiber *f) { return !f->finished && (!f->waits_on || *f->waits_on != f->seen); }

/* As far as it comes alone: so warps are as far apart as the kernel lets them be. */
static bool run_warp(unsigned warp) {
  const unsigned first = warp * WARP, count = fiber_count - first < WARP ? fiber_count - first : WARP;
  unsigned order[WARP];
  bool ran = false;
  order_numbers(order, count);
  for (bool again = true; again;) {
    again = false;
    for (unsigned n = 0; n < count && finished_count < fiber_count; n++) {
      fiber *next = &fibers[first + order[n]];
      if (!can_run(next)) continue;
      next->waits_on = nullptr;
      run_fiber(next);
      ran = again = true;
    }
  }
  return ran;
}

/* Nobody can run on. */
static void say_stuck() {
  unsigned finished = 0;
  const fiber *waiting = nullptr;
  for (unsigned n = 0; n < fiber_count; n++) {
    finished += fibers[n].finished;
    if (!fibers[n].finished) waiting = &fibers[n];
  }
  snprintf(complaint, sizeof complaint, "thread %u waits for ever at %s: %u of %u threads have ended",
           waiting->number, waiting->waits_for, finished, fiber_count);
}

static void run_block(dim3 block, dim3 threads, dim3 blocks) {
  memset(warp_meetings, 0, sizeof warp_meetings);
  memset(barriers, 0, sizeof barriers);
  finished_count = 0;
  now++;
  for (unsigned w = 0; w < MOST_WARPS; w++)
    for (unsigned other = 0; other < MOST_WARPS; other++) known[w].until[other] = now;
  for (unsigned w = 0; w < MOST_WARPS; w++) all_known[w] = now;
  for (unsigned n = 0; n < fiber_count; n++) {
    prepare_fiber(n);
    fibers[n].at = {dim3(n % threads.x, n / threads.x % threads.y, n / threads.x / threads.y), block, threads,
                    blocks};
  }
  const unsigned warps = (fiber_count + WARP - 1) / WARP;
  unsigned order[MOST_WARPS];
  while (finished_count < fiber_count) {
    bool ran = false;
    order_numbers(order, warps);
    for (unsigned n = 0; n < warps; n++) ran |= run_warp(order[n]);
    if (!ran && finished_count < fiber_count) {
      say_stuck();
      return;
    }
  }
}

static void complain_of_launch(const char *what, unsigned long long is, unsigned long long most) {
  snprintf(complaint, sizeof complaint, "a launch with %llu %s: %llu are the most", is, what, most);
}

void launch(void (*body)(void *), void *context, dim3 grid, dim3 block, size_t shared_bytes) {
  const uint64_t threads = (uint64_t)block.x * block.y * block.z;
  if (complaint[0]) return; /* as after an error that sticks */
  if (threads == 0 || threads > MOST_THREADS)
    return complain_of_launch("threads in a block", threads, MOST_THREADS);
  if (shared_bytes > DYNAMIC_BYTES)
    return complain_of_launch("bytes of shared memory", shared_bytes, DYNAMIC_BYTES);
  if (!grid.x || !grid.y || !grid.z) return complain_of_launch("blocks", 0, 0);
  if (grid.y > 65535 || grid.z > 65535)
    return complain_of_launch("blocks along y or z", grid.y > grid.z ? grid.y : grid.z, 65535);
  if (!stacks) {
    void *mapped = mmap(nullptr, MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      snprintf(complaint, sizeof complaint, "no memory for the stacks of an emulated block");
      return;
    }
    stacks = static_cast<unsigned char *>(mapped);
  }
  kernel_body = body;
  kernel_context = context;
  fiber_count = (unsigned)threads;
  random_state = 2463534242u;
  for (unsigned z = 0; z < grid.z && !complaint[0]; z++)
    for (unsigned y = 0; y < grid.y && !complaint[0]; y++)
      for (unsigned x = 0; x < grid.x && !complaint[0]; x++) {
        start_block_memory(shared_bytes);
        run_block(dim3(x, y, z), block, grid);
      }
}

} // namespace emulation
