/* See watch.h. */
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PENDING = 1024, WAITS_BYTES = 32 };

/* A request that was not waited for yet. */
typedef struct pending {
  MPI_Request request;
  bool receives;
  void *buffer, *hidden; /* hidden: where a strict receive goes until it is waited for */
  size_t bytes;
  uint64_t checksum; /* of what is sent */
} pending;

static struct {
  bool on, strict;
  MPI_Comm communicator;
  char *waits_in;
  attn_team_account account;
  pending of[MOST_PENDING];
  int count;
  double flight_began;
} watch;

static uint64_t checksum_of(const void *data, size_t bytes) {
  const unsigned char *at = data;
  uint64_t sum = UINT64_C(0xcbf29ce484222325);
  for (size_t n = 0; n < bytes; n++) sum = (sum ^ at[n]) * UINT64_C(0x100000001b3);
  return sum;
}

static void violate(const char *words) {
  if (watch.on && !watch.account.violation[0])
    snprintf(watch.account.violation, sizeof watch.account.violation, "%s", words);
}

static size_t bytes_of(int count, MPI_Datatype type) {
  int size = 0;
  if (count < 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS) return 0;
  return (size_t)count * (size_t)size;
}

/* ---- the time inside ---- */

static double enter(const char *function) {
  if (watch.on && watch.waits_in) snprintf(watch.waits_in, WAITS_BYTES, "%s", function);
  return PMPI_Wtime();
}

static void leave(double entered) {
  if (!watch.on) return;
  watch.account.waiting_seconds += PMPI_Wtime() - entered;
  if (watch.waits_in) watch.waits_in[0] = '\0';
}

/* A stretch that begins with the first message that is asked for and ends with the last that has come. */
static void flight_begins(void) {
  if (watch.count == 0) watch.flight_began = PMPI_Wtime();
}

static void flight_may_end(void) {
  if (watch.count == 0 && watch.on) watch.account.in_flight_seconds += PMPI_Wtime() - watch.flight_began;
}

static void count_sent(MPI_Comm communicator, int to, size_t bytes) {
  int rank = -1;
  PMPI_Comm_rank(communicator, &rank);
  if (!watch.on || to == rank || to == MPI_PROC_NULL) return;
  watch.account.sent_bytes += bytes;
  watch.account.messages++;
}

/* ---- requests ---- */

static void note(pending entry) {
  if (watch.count == MOST_PENDING)
    violate("has more than 1024 messages on their way");
  else
    watch.of[watch.count++] = entry;
}

static int find(MPI_Request request) {
  for (int n = 0; n < watch.count; n++)
    if (watch.of[n].request == request) return n;
  return -1;
}

/* It was waited for. */
static void finish(MPI_Request request) {
  const int n = find(request);
  if (n < 0) return;
  const pending *of = &watch.of[n];
  if (of->hidden) {
    memcpy(of->buffer, of->hidden, of->bytes);
    free(of->hidden);
  } else if (!of->receives && watch.strict && checksum_of(of->buffer, of->bytes) != of->checksum) {
    violate("changes a buffer while it is sent");
  }
  watch.of[n] = watch.of[--watch.count];
  flight_may_end();
}

static int send_later(const char *name, bool waits, const void *buffer, int count, MPI_Datatype type, int to,
                      int tag, MPI_Comm communicator, MPI_Request *request) {
  const size_t bytes = bytes_of(count, type);
  const double entered = enter(name);
  const int status = (waits ? PMPI_Issend : PMPI_Isend)(buffer, count, type, to, tag, communicator, request);
  count_sent(communicator, to, bytes);
  flight_begins();
  if (watch.on)
    note((pending){.request = *request,
                   .buffer = (void *)(uintptr_t)buffer,
                   .bytes = bytes,
                   .checksum = watch.strict ? checksum_of(buffer, bytes) : 0});
  leave(entered);
  return status;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator,
              MPI_Request *request) {
  return send_later("MPI_Isend", watch.strict, buffer, count, type, to, tag, communicator, request);
}

int MPI_Issend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator,
               MPI_Request *request) {
  return send_later("MPI_Issend", true, buffer, count, type, to, tag, communicator, request);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm communicator,
              MPI_Request *request) {
  const size_t bytes = bytes_of(count, type);
  const double entered = enter("MPI_Irecv");
  void *hidden = watch.on && watch.strict && bytes > 0 ? malloc(bytes) : NULL;
  if (hidden) memset(buffer, 0x7f, bytes), memset(hidden, 0x7f, bytes);
  const int status = PMPI_Irecv(hidden ? hidden : buffer, count, type, from, tag, communicator, request);
  flight_begins();
  if (watch.on)
    note(
        (pending){.request = *request, .receives = true, .buffer = buffer, .hidden = hidden, .bytes = bytes});
  else
    free(hidden);
  leave(entered);
  return status;
}

/* What MPI overwrites as requests end. */
static MPI_Request *copy_of(int count, const MPI_Request *requests) {
  MPI_Request *copy = count > 0 ? malloc((size_t)count * sizeof *copy) : NULL;
  if (copy) memcpy(copy, requests, (size_t)count * sizeof *copy);
  return copy;
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses) {
  const double entered = enter("MPI_Waitall");
  MPI_Request *before = copy_of(count, requests);
  const int status = PMPI_Waitall(count, requests, statuses);
  for (int n = 0; before && n < count; n++) finish(before[n]);
  free(before);
  leave(entered);
  return status;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  const double entered = enter("MPI_Wait");
  const MPI_Request before = *request;
  const int result = PMPI_Wait(request, status);
  finish(before);
  leave(entered);
  return result;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  const double entered = enter("MPI_Test");
  const MPI_Request before = *request;
  const int result = PMPI_Test(request, flag, status);
  if (*flag) finish(before);
  leave(entered);
  return result;
}

int MPI_Testall(int count, MPI_Request *requests, int *flag, MPI_Status *statuses) {
  const double entered = enter("MPI_Testall");
  MPI_Request *before = copy_of(count, requests);
  const int result = PMPI_Testall(count, requests, flag, statuses);
  for (int n = 0; before && *flag && n < count; n++) finish(before[n]);
  free(before);
  leave(entered);
  return result;
}

static void finish_some(int count, const int *indices, MPI_Request *before) {
  for (int n = 0; before && n < count; n++) finish(before[indices[n]]);
  free(before);
}

int MPI_Waitany(int count, MPI_Request *requests, int *index, MPI_Status *status) {
  const double entered = enter("MPI_Waitany");
  MPI_Request *before = copy_of(count, requests);
  const int result = PMPI_Waitany(count, requests, index, status);
  finish_some(*index != MPI_UNDEFINED, index, before);
  leave(entered);
  return result;
}

int MPI_Testany(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status) {
  const double entered = enter("MPI_Testany");
  MPI_Request *before = copy_of(count, requests);
  const int result = PMPI_Testany(count, requests, index, flag, status);
  finish_some(*flag && *index != MPI_UNDEFINED, index, before);
  leave(entered);
  return result;
}

int MPI_Waitsome(int count, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses) {
  const double entered = enter("MPI_Waitsome");
  MPI_Request *before = copy_of(count, requests);
  const int result = PMPI_Waitsome(count, requests, ended, indices, statuses);
  finish_some(*ended == MPI_UNDEFINED ? 0 : *ended, indices, before);
  leave(entered);
  return result;
}

int MPI_Testsome(int count, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses) {
  const double entered = enter("MPI_Testsome");
  MPI_Request *before = copy_of(count, requests);
  const int result = PMPI_Testsome(count, requests, ended, indices, statuses);
  finish_some(*ended == MPI_UNDEFINED ? 0 : *ended, indices, before);
  leave(entered);
  return result;
}

/* ---- what waits itself ---- */

static int send_now(const char *name, bool waits, const void *buffer, int count, MPI_Datatype type, int to,
                    int tag, MPI_Comm communicator) {
  const double entered = enter(name);
  count_sent(communicator, to, bytes_of(count, type));
  flight_begins();
  const int status = (waits ? PMPI_Ssend : PMPI_Send)(buffer, count, type, to, tag, communicator);
  flight_may_end();
  leave(entered);
  return status;
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator) {
  return send_now("MPI_Send", watch.strict, buffer, count, type, to, tag, communicator);
}

int MPI_Ssend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator) {
  return send_now("MPI_Ssend", true, buffer, count, type, to, tag, communicator);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm communicator,
             MPI_Status *status) {
  const double entered = enter("MPI_Recv");
  flight_begins();
  const int result = PMPI_Recv(buffer, count, type, from, tag, communicator, status);
  flight_may_end();
  leave(entered);
  return result;
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
                 int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm communicator,
                 MPI_Status *status) {
  const double entered = enter("MPI_Sendrecv");
  count_sent(communicator, to, bytes_of(out_count, out_type));
  flight_begins();
  const int result = PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag,
                                   communicator, status);
  flight_may_end();
  leave(entered);
  return result;
}

int MPI_Alltoallv(const void *out, const int *out_counts, const int *out_places, MPI_Datatype out_type,
                  void *in, const int *in_counts, const int *in_places, MPI_Datatype in_type,
                  MPI_Comm communicator) {
  int ranks = 0;
  const double entered = enter("MPI_Alltoallv");
  PMPI_Comm_size(communicator, &ranks);
  for (int rank = 0; rank < ranks; rank++)
    if (out_counts[rank] > 0) count_sent(communicator, rank, bytes_of(out_counts[rank], out_type));
  flight_begins();
  const int status =
      PMPI_Alltoallv(out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, communicator);
  flight_may_end();
  leave(entered);
  return status;
}

int MPI_Barrier(MPI_Comm communicator) {
  const double entered = enter("MPI_Barrier");
  const int status = PMPI_Barrier(communicator);
  leave(entered);
  return status;
}

void watch_refuse(const char *function) {
  char words[sizeof watch.account.violation];
  snprintf(words, sizeof words, "calls %s, whose bytes nobody counts", function);
  violate(words);
}

/* ---- around a run ---- */

void watch_begin(MPI_Comm communicator, bool strict, char *waits_in) {
  watch.account = (attn_team_account){.violation = ""};
  watch.communicator = communicator;
  watch.strict = strict;
  watch.waits_in = waits_in;
  watch.count = 0;
  watch.on = true;
}

static bool anything_is_left(void) {
  int waits = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, watch.communicator, &waits, MPI_STATUS_IGNORE);
  return waits;
}

void watch_end(attn_team_account *account) {
  if (watch.count > 0) violate("ends before its messages have: nobody waited for them");
  /* All have ended, and what they sent each other has come, or nobody asked for it. */
  PMPI_Barrier(watch.communicator);
  if (anything_is_left()) violate("leaves a message that nobody receives");
  watch.on = watch.strict = false;
  *account = watch.account;
}
