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

/* Catches, says so, releases, and waits to be ended. */
static pid_t start(enum release release) {
  int ready[2];
  char byte;
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    interrupt_catch();
    if (release == AT_ONCE) interrupt_release();
    if (write(ready[1], "", 1) != 1) _exit(1);
    while (!interrupt_wanted()) usleep(1000);
    if (release == ONCE_WANTED) interrupt_release();
    for (;;) pause();
  }
  close(ready[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  return child;
}

static bool is_ended(pid_t child) {
  int status;
  usleep(APART);
  return waitpid(child, &status, WNOHANG) == child;
}

/* As a group is asked, and the process that watches passes it on when it comes to it. */
static void what_is_passed_on_late_is_the_same_wish(void **state) {
  (void)state;
  for (enum release release = NEVER; release <= ONCE_WANTED; release++) {
    const pid_t child = start(release);
    send_from_elsewhere(child);
    assert_false(is_ended(child));
    kill(child, SIGINT);
    assert_false(is_ended(child));
    send_from_elsewhere(child);
    assert_true(is_ended(child));
  }
}

static void a_second_wish_ends_at_once(void **state) {
  (void)state;
  for (int by_parent = 0; by_parent < 2; by_parent++) {
    const pid_t child = start(NEVER);
    for (int n = 0; n < 2; n++) {
      if (by_parent)
        kill(child, SIGINT);
      else
        send_from_elsewhere(child);
      assert_int_equal(is_ended(child), n == 1);
    }
  }
}

static void after_the_release_the_first_wish_ends(void **state) {
  (void)state;
  const pid_t child = start(AT_ONCE);
  send_from_elsewhere(child);
  assert_true(is_ended(child));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_passed_on_late_is_the_same_wish),
                                     cmocka_unit_test(a_second_wish_ends_at_once),
                                     cmocka_unit_test(after_the_release_the_first_wish_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
