/* See interrupt.h. The handler is dropped at the first signal, so that the second has its usual effect
 * even when the program is stuck. */
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t wanted;
static struct sigaction before[2];
static const int signals[2] = {SIGINT, SIGTERM};

static void on_signal(int number) {
  (void)number;
  wanted = 1;
  for (int n = 0; n < 2; n++) signal(signals[n], SIG_DFL);
}

void interrupt_catch(void) {
  wanted = 0;
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  for (int n = 0; n < 2; n++) {
    sigaction(signals[n], &action, &before[n]);
    /* What is ignored, as under nohup, stays ignored. */
    if (before[n].sa_handler == SIG_IGN) sigaction(signals[n], &before[n], NULL);
  }
}

void interrupt_release(void) {
  for (int n = 0; n < 2; n++) sigaction(signals[n], &before[n], NULL);
}

bool interrupt_wanted(void) { return wanted != 0; }
