/* Commands of the shell, for tests of what a user types. */
#ifndef ATTN_TESTS_SHELL_H
#define ATTN_TESTS_SHELL_H

/* What the last command said on both outputs, as far as there is room. */
extern char shell_output[1 << 18];

/* The command's status; 128 and the signal where one ended it. */
int shell(const char *command);

/* Fails the test where the status is another, or the words were not said; NULL: any. */
void shell_expect(const char *command, int status, const char *words);

#endif
