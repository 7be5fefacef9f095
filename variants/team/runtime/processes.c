/* The processes of a team and what the harness asks of them (../../team.h): MPI's side of it. Linked with the variants that
 * it is for. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

#include "watch.h"

extern const attn_team attn_plugin_team __attribute__((visibility("default")));

enum { HARNESS_TAG = 77, MOST_TEAMS = 1024 };

/* That of the harness, and those of variants: the first so many ranks. */
static MPI_Comm everybody = MPI_COMM_NULL, current = MPI_COMM_NULL;
static MPI_Comm teams[MOST_TEAMS + 1];
static int world_rank, world_ranks = 1;

static bool begin(char *why, size_t why_size) {
  int is_begun = 0, provided = 0;
  PMPI_Initialized(&is_begun);
  /* A second plugin of the same process. */
  if (!is_begun && PMPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    snprintf(why, why_size, "MPI cannot be started");
    return false;
  }
  PMPI_Comm_dup(MPI_COMM_WORLD, &everybody);
  PMPI_Comm_rank(everybody, &world_rank);
  PMPI_Comm_size(everybody, &world_ranks);
  for (int n = 0; n <= MOST_TEAMS; n++) teams[n] = MPI_COMM_NULL;
  if (world_ranks <= MOST_TEAMS) return true;
  snprintf(why, why_size, "a team has at most %d ranks", MOST_TEAMS);
  return false;
}

static void finish(void) {
  int is_over = 0;
  PMPI_Finalized(&is_over);
  if (!is_over) PMPI_Finalize();
}

static int rank(void) { return world_rank; }
static int ranks(void) { return world_ranks; }

/* In pieces whose length an int holds. */
static const size_t most_bytes = (size_t)1 << 30;

static void receive(int from, void *data, size_t bytes) {
  for (size_t at = 0; at < bytes || at == 0; at += most_bytes) {
    const size_t piece = bytes - at < most_bytes ? bytes - at : most_bytes;
    PMPI_Recv((char *)data + at, (int)piece, MPI_BYTE, from, HARNESS_TAG, everybody, MPI_STATUS_IGNORE);
  }
}

/* Between two problems rank 0 works for a while, and needs the processors: who waits for it looks often at first, and then
 * after a sixteenth of the time that it has waited, at most 10 ms. A look costs a tenth of a millisecond. */
typedef struct patience {
  int looks;
  long pause; /* ns */
} patience;

static void wait_to_look(patience *of) {
  enum { OFTEN = 200, FIRST_PAUSE = 300000, LONGEST_PAUSE = 10000000 };
  if (++of->looks <= OFTEN) return;
  if (of->pause == 0) of->pause = FIRST_PAUSE;
  nanosleep(&(struct timespec){.tv_nsec = of->pause}, NULL);
  if (of->pause < LONGEST_PAUSE) of->pause += of->pause / 16;
}

static void await(int from) {
  int has_come = 0;
  for (patience patience = {0}; !has_come; wait_to_look(&patience))
    PMPI_Iprobe(from, HARNESS_TAG, everybody, &has_come, MPI_STATUS_IGNORE);
}

/* What is brief: it may be met by nobody until rank 0 has shrunk a failure, and PMPI_Send would keep a processor so long. */
static void send_patiently(int to, const void *data, size_t bytes) {
  int is_sent = 0;
  MPI_Request request;
  PMPI_Isend(data, (int)bytes, MPI_BYTE, to, HARNESS_TAG, everybody, &request);
  for (patience patience = {0}; !is_sent; wait_to_look(&patience))
    PMPI_Test(&request, &is_sent, MPI_STATUS_IGNORE);
}

static void send(int to, const void *data, size_t bytes) {
  enum { BRIEF = 4096 };
  if (bytes <= BRIEF) send_patiently(to, data, bytes);
  for (size_t at = 0; bytes > BRIEF && at < bytes; at += most_bytes) {
    const size_t piece = bytes - at < most_bytes ? bytes - at : most_bytes;
    PMPI_Send((const char *)data + at, (int)piece, MPI_BYTE, to, HARNESS_TAG, everybody);
  }
}

/* Made by those who are in it, at the first run of so many, and again after one that went wrong. */
static MPI_Comm team_of(int count) {
  MPI_Group all, some;
  if (teams[count] != MPI_COMM_NULL) return teams[count];
  int range[1][3] = {{0, count - 1, 1}};
  PMPI_Comm_group(everybody, &all);
  PMPI_Group_range_incl(all, 1, range, &some);
  PMPI_Comm_create_group(everybody, some, HARNESS_TAG + 1, &teams[count]);
  PMPI_Group_free(&some);
  PMPI_Group_free(&all);
  return teams[count];
}

static int current_ranks;

static void *run_begin(int count, bool strict, char *waits_in) {
  current_ranks = count;
  current = team_of(count);
  /* What is timed begins at once on all ranks: rank 0 has served them one after the other. */
  if (!strict) PMPI_Barrier(current);
  watch_begin(current, strict, waits_in);
  return &current;
}

static void run_end(attn_team_account *account) {
  watch_end(account);
  /* Another rank's violation may have left something for this one. */
  int wrong = account->violation[0] != '\0', any = 0;
  PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, current);
  if (any) teams[current_ranks] = MPI_COMM_NULL; /* not freed: messages are still on their way in it */
}

const char *const *attn_team_sizes(void) {
  static const int usual[] = {1, 2, 3, 4, 7, 8};
  enum { USUAL = sizeof usual / sizeof *usual };
  static char names[USUAL + 1][16];
  static const char *sizes[USUAL + 2];
  int count = 0;
  bool has_all = false;
  for (int n = 0; everybody != MPI_COMM_NULL && n < USUAL; n++) {
    if (usual[n] > world_ranks) continue;
    has_all |= usual[n] == world_ranks;
    snprintf(names[count], sizeof names[count], "ranks%d", usual[n]);
    sizes[count] = names[count];
    count++;
  }
  if (everybody != MPI_COMM_NULL && !has_all) {
    snprintf(names[count], sizeof names[count], "ranks%d", world_ranks);
    sizes[count] = names[count];
    count++;
  }
  sizes[count] = NULL;
  return sizes;
}

const attn_team attn_plugin_team = {
    .size = sizeof(attn_team),
    .members = attn_team_members,
    .begin = begin,
    .end = finish,
    .rank = rank,
    .ranks = ranks,
    .send = send,
    .receive = receive,
    .await = await,
    .run_begin = run_begin,
    .run_end = run_end,
};
