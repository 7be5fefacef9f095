/* A command's kernels run in a child process, so that none can end the command, stall it or fake its result. What runs
 * at the moment stands in memory that the two share. When the child ends before the command has, or one run takes far
 * too long, the parent says which variant did so on which problem, and starts another child, which takes up what the
 * first one kept and leaves that variant out. Where nobody supervises, as in tests, everything here but the first
 * function works within the process. */
#ifndef ATTN_HARNESS_SUPERVISOR_H
#define ATTN_HARNESS_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>

#include "problem/workload.h"

/* Runs the command in children, until one of them ends as it should. Its status; 1 where that is 0 but a variant or a
 * plugin had to be left out. */
int supervise(int (*command)(void *context), void *context);

/* This process is one of a team that ends with any of its processes (team.h): there is one child, and what ends it is said
 * with the rank's number. */
void supervisor_in_team(int rank);

/* Where a child of a team notes which function of MPI it waits in, "": none; in memory that outlives it. */
enum { SUPERVISOR_WAITS_BYTES = 32 };
char *supervisor_waits_in(void);

/* ---- for the command, in the child ---- */

/* What runs from here on; the texts are copied, and any but the variant may be NULL. */
typedef struct supervised_run {
  const char *variant, *problem, *property, *plugin, *isa;
  int threads;
  double limit_seconds; /* between two steps */
} supervised_run;

void supervisor_enter(const supervised_run *run);
void supervisor_step(void); /* it is alive: the time counts from here */
void supervisor_leave(void);

/* No run is given more seconds than this, whatever its own limit is. */
void supervisor_limit(double seconds);

/* From here on this plugin is loaded; NULL: it is. */
void supervisor_loads(const char *plugin);

/* Of the command line, for the command that reproduces what ended a child: the device, NULL: the host; and whether the
 * program's own variants are there. */
void supervisor_note_set(const char *device, bool own);

/* Ends this child; another one goes on. Returns where nobody supervises. */
void supervisor_renew(void);

/* The same, and the variant that ran last counts as having ended it: how, in words, it spoiled the process for those
 * that come after it. */
void supervisor_abandon(const char *how);

/* The command is at its end here, whoever ran last; it has said why. */
_Noreturn void supervisor_give_up(int status);

/* ---- what came of earlier children ---- */

/* How a variant ended one. */
typedef struct ended_run {
  char variant[64], isa[32], property[64], problem[WORKLOAD_NAME_BYTES];
  char how[128]; /* "crashed (SIGSEGV: access to memory that it was not given)" */
  int threads;
} ended_run;

const ended_run *supervisor_ended(const char *variant); /* NULL: it did not */
size_t supervisor_ended_count(void);
bool supervisor_refuses(const char *plugin); /* it ended one while it was loaded */

/* Memory that outlives the child, zeroed, at the same address in the next one; NULL where there is no more. It is never
 * given back. The root is where a command finds again what it kept; NULL at first. */
void *supervisor_keep(size_t bytes);
void **supervisor_root(void);

#endif
