/* Which signals are one wish to end, and which are a second one, which ends at once. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/interrupt.h"

/* Longer than signals are apart that are the same wish. */
enum { APART = 400000 };

/* Another process than the parent sends the signal. */
static void send_from_elsewhere(pid_t to) {
  const pid_t sender = fork();
  assert_true(sender >= 0);
  if (sender == 0) _exit(kill(to, SIGINT) != 0);
  int status;
  assert_int_equal(waitpid(sender, &status, 0), sender);
  assert_int_equal(status, 0);
}

enum release { NEVER, ONCE_WANTED, AT_ONCE };

typedef struct catcher {
  pid_t process;
  int said; /* what it reads from it: a byte once it catches, another once the wish has come */
} catcher;

static void hear(const catcher *from) {
  char byte;
  assert_int_equal(read(from->said, &byte, 1), 1);
}

/* Catches, says so, waits for a wish, says so, releases, and waits to be ended. */
static catcher start(enum release release) {
  int ready[2];
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    interrupt_catch();
    if (release == AT_ONCE) interrupt_release();
    if (write(ready[1], "", 1) != 1) _exit(1);
    while (!interrupt_wanted()) usleep(1000);
    if (write(ready[1], "", 1) != 1) _exit(1);
    if (release == ONCE_WANTED) interrupt_release();
    for (;;) pause();
  }
  close(ready[1]);
  const catcher made = {child, ready[0]};
  hear(&made);
  return made;
}

static void goes_on(const catcher *child) {
  int status;
  usleep(APART);
  assert_int_equal(waitpid(child->process, &status, WNOHANG), 0);
}

static void ends(const catcher *child) {
  int status;
  assert_int_equal(waitpid(child->process, &status, 0), child->process);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
  close(child->said);
}

/* As a group is asked, and the process that watches passes it on when it comes to it. */
static void what_is_passed_on_late_is_the_same_wish(void **state) {
  (void)state;
  for (enum release release = NEVER; release <= ONCE_WANTED; release++) {
    const catcher child = start(release);
    send_from_elsewhere(child.process);
    hear(&child);
    goes_on(&child);
    kill(child.process, SIGINT);
    goes_on(&child);
    send_from_elsewhere(child.process);
    ends(&child);
  }
}

static void a_second_wish_ends_at_once(void **state) {
  (void)state;
  for (int by_parent = 0; by_parent < 2; by_parent++) {
    const catcher child = start(NEVER);
    for (int n = 0; n < 2; n++) {
      if (by_parent)
        kill(child.process, SIGINT);
      else
        send_from_elsewhere(child.process);
      if (n > 0) break;
      hear(&child);
      goes_on(&child);
    }
    ends(&child);
  }
}

static void after_the_release_the_first_wish_ends(void **state) {
  (void)state;
  const catcher child = start(AT_ONCE);
  send_from_elsewhere(child.process);
  ends(&child);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_passed_on_late_is_the_same_wish),
                                     cmocka_unit_test(a_second_wish_ends_at_once),
                                     cmocka_unit_test(after_the_release_the_first_wish_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
