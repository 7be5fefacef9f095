/* Runs a command of attnbench among ranks of its own, from inside a process that is a rank. */
#ifndef ATTN_HARNESS_TEAM_COMMAND_H
#define ATTN_HARNESS_TEAM_COMMAND_H

#include <stddef.h>

/* child_run of `mpirun -n RANKS WORDS...`, as if nobody had started a team before. Words end in NULL. */
int team_command_run(int ranks, char *const words[], char **said, char *why, size_t why_size);

#endif
