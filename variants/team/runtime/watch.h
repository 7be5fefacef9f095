/* What variants do through MPI, seen through its profiling interface (MPI standard, chapter "Tool support"): each function
 * that they may call is defined in watch.c too, counts what is sent, and calls the one whose name begins with PMPI. */
#ifndef ATTN_TEAM_WATCH_H
#define ATTN_TEAM_WATCH_H

#include <mpi.h>

#include "../../team.h"

/* strict: a send waits for its receiver, whatever its size, so that who relies on MPI's buffers stands still; what is
 * received is in the buffer once it was waited for and not before; and what is sent must not change until then. */
void watch_begin(MPI_Comm communicator, bool strict, char *waits_in);
void watch_end(attn_team_account *account);

/* The variant has called what nobody counts. */
void watch_refuse(const char *function);

#endif
