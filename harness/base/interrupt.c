/* See interrupt.h. Some parents (timeout, some shells) send a signal to the process and then to its whole
 * group: what comes right after the first one is the same wish. And what was sent to the group comes again from
 * the process that watches this one, on a busy machine much later: so each way has a first one of its own. */
#define _GNU_SOURCE
#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "timer.h"

static const int signals[2] = {SIGINT, SIGTERM};
static const double same_wish_seconds = 0.2;
static struct sigaction before[2];
static bool caught;
enum { DIRECT, FORWARDED, WAYS };
/* 0: nobody has wished it. Two threads may handle a signal at once. */
static _Atomic double wanted_since[WAYS];

/* A signal from this very process is nobody's wish: a kernel raised it, and ends by it. */
static void on_signal(int number, siginfo_t *from, void *context) {
  (void)context;
  const bool is_sent = from->si_code <= 0; /* by a process */
  const int way = is_sent && from->si_pid == getppid() ? FORWARDED : DIRECT;
  const double now = wall_seconds();
  double since = 0;
  if ((is_sent && from->si_pid == getpid()) ||
      (!atomic_compare_exchange_strong(&wanted_since[way], &since, now) && now - since > same_wish_seconds)) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

void interrupt_catch(void) {
  for (int way = 0; way < WAYS; way++) wanted_since[way] = 0;
  if (caught) return;
  caught = true;
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
  /* Neither interrupts the handler of the other. */
  sigemptyset(&action.sa_mask);
  for (int n = 0; n < 2; n++) sigaddset(&action.sa_mask, signals[n]);
  for (int n = 0; n < 2; n++) {
    sigaction(signals[n], &action, &before[n]);
    /* What is ignored, as under nohup, stays ignored. */
    if (before[n].sa_handler == SIG_IGN) sigaction(signals[n], &before[n], NULL);
  }
}

void interrupt_release(void) {
  if (interrupt_asked()) return; /* what passes it on may come to it only now */
  caught = false;
  for (int n = 0; n < 2; n++) sigaction(signals[n], &before[n], NULL);
}

static bool is_agreed, agreed;

void interrupt_agree(bool wanted) {
  is_agreed = true;
  agreed = wanted;
}

void interrupt_decide_alone(void) { is_agreed = false; }
bool interrupt_asked(void) { return wanted_since[DIRECT] > 0 || wanted_since[FORWARDED] > 0; }
bool interrupt_wanted(void) { return is_agreed ? agreed : interrupt_asked(); }
