/* See emulation.h: blocks, one after the other, whose threads are fibers. */
#include "engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

namespace emulation {

const place *here;
fiber *running;

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
fiber *fiber_of(unsigned thread) { return &fibers[thread]; }
unsigned fiber_count;
static unsigned finished_count;
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
  made->fenced = 0;
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

void note_complaint(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (!complaint[0]) vsnprintf(complaint, sizeof complaint, format, arguments);
  va_end(arguments);
}

const char *take_complaint(void) {
  static char taken[sizeof complaint];
  memcpy(taken, complaint, sizeof taken);
  complaint[0] = '\0';
  return taken[0] ? taken : nullptr;
}

/* ---- waiting ---- */

void wait_until_changed(const unsigned *generation, const char *what, const void *code) {
  running->waits_on = generation;
  running->seen = *generation;
  running->waits_for = what;
  running->waits_at = code;
  leave_fiber();
}

unsigned lane() { return running->lane; }

/* ---- blocks ---- */

static uint32_t random_state;

/* xorshift32: Marsaglia 2003. */
uint32_t random_below(uint32_t n) {
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
  char line[96] = "";
  if (waiting->waits_at) format_line(line, sizeof line, waiting->waits_at);
  note_complaint("thread %u waits for ever at %s%s%s: %u of %u threads have ended", waiting->number,
                 waiting->waits_for, line[0] ? " at " : "", line, finished, fiber_count);
}

static void run_block(dim3 block, dim3 threads, dim3 blocks) {
  start_block_meetings();
  finished_count = 0;
  start_block_copies();
  start_block_products();
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
    if (!ran && finished_count < fiber_count && !land_one()) {
      say_stuck();
      break;
    }
  }
  end_block_products();
  end_block_copies();
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
