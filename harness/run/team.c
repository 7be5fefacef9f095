/* Which processes these are, and where they meet: see team.h. team_run.c makes the runs. */
#include "team.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "supervisor.h"

enum { MOST_TABLES = 16, MOST_SAID = 256 };

static struct {
  const attn_table *table;
  const attn_team *team;
} registered[MOST_TABLES];
static size_t registered_count;
static const attn_team *joined; /* whose processes these are */
static char *said;              /* what a rank other than 0 would have written on stderr */
static size_t said_bytes;

/* ---- which process this is ---- */

static bool find_launched(int *rank) {
  static const char *const launchers[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                             {"PMI_RANK", "PMI_SIZE"}};
  for (size_t n = 0; n < sizeof launchers / sizeof *launchers; n++) {
    const char *of_rank = getenv(launchers[n][0]), *of_size = getenv(launchers[n][1]), *end = "";
    int64_t r = 0, size = 0;
    if (!of_rank || !of_size || !text_integer(of_size, 1, INT32_MAX, &end, &size) || *end) continue;
    if (!text_integer(of_rank, 0, size - 1, &end, &r) || *end) continue;
    *rank = (int)r;
    return true;
  }
  return false;
}

bool team_is_launched(void) {
  int rank;
  return find_launched(&rank);
}

int team_rank(void) {
  int rank = 0;
  find_launched(&rank);
  return rank;
}

bool team_register(const attn_table *table, const attn_team *team, char *why, size_t why_size) {
  if (team->size < sizeof *team || registered_count == MOST_TABLES) {
    snprintf(why, why_size,
             "its team is of another version: build it again, with this version's team/runtime.o");
    return false;
  }
  registered[registered_count].table = table;
  registered[registered_count++].team = team;
  return true;
}

const attn_team *team_of(const attn_variant *variant) {
  for (size_t n = 0; n < registered_count; n++)
    for (uint32_t v = 0; v < registered[n].table->count; v++)
      if (registered[n].table->variants[v] == variant) return registered[n].team;
  return NULL;
}

const attn_team_member *team_member_of(const attn_variant *variant) {
  const attn_team *team = team_of(variant);
  for (const attn_team_member *const *member = team ? team->members : NULL; member && *member; member++)
    if ((*member)->variant == variant) return *member;
  return NULL;
}

/* What the harness writes; a sanitizer's report goes to the descriptor. */
static void fall_silent(void) {
  FILE *nowhere = fopen("/dev/null", "w"), *heard = open_memstream(&said, &said_bytes);
  fflush(stdout);
  if (nowhere) stdout = nowhere;
  if (heard) stderr = heard;
}

bool team_begin(char *why, size_t why_size) {
  for (size_t n = 0; n < registered_count; n++)
    if (!registered[n].team->begin(why, why_size)) return false;
  joined = registered_count > 0 ? registered[0].team : NULL;
  if (joined && joined->rank() > 0) fall_silent();
  if (joined) return true;
  snprintf(why, why_size, "no variant here works in a team of processes");
  return false;
}

int team_size(void) { return joined ? joined->ranks() : 1; }
const attn_team *team_joined(void) { return joined; }

int team_ranks(const char *isa) {
  const char *end;
  int64_t ranks = joined ? joined->ranks() : 1;
  if (isa && strncmp(isa, "ranks", 5) == 0 && text_integer(isa + 5, 1, TEAM_MOST_RANKS, &end, &ranks) &&
      !*end)
    return (int)ranks;
  return (int)ranks;
}

const char *team_all(void) {
  static char name[16];
  snprintf(name, sizeof name, "ranks%d", team_ranks(NULL));
  return name;
}

/* ---- places where all meet ---- */

typedef struct message {
  team_place place;
  uint64_t what;
  char said[MOST_SAID]; /* at the end: why, as far as it is known here */
  unsigned char body[TEAM_MOST_BYTES];
} message;

static const char *place_name(team_place place) {
  static const char *const names[] = {[TEAM_AT_RUN] = "begins a run",
                                      [TEAM_AT_RESULT] = "has ended a run",
                                      [TEAM_AT_VERDICT] = "has judged a run",
                                      [TEAM_AT_PROPERTY] = "holds a property",
                                      [TEAM_AT_END] = "is at its end"};
  return names[place];
}

void team_give_up(const char *why) {
  dprintf(STDERR_FILENO, "attnbench: rank %d: %s\n", team_rank(), why);
  supervisor_give_up(2);
}

/* Each does the same, or nobody can go on: all would wait for ever. */
static void expect_here(const message *here, const message *there, int rank) {
  char why[MOST_SAID + 192];
  if (there->place == here->place && there->what == here->what) return;
  if (there->place == here->place)
    snprintf(why, sizeof why, "rank %d has another problem than rank 0", rank);
  else
    snprintf(why, sizeof why, "rank %d %s, where rank 0 %s%s%s", rank, place_name(there->place),
             place_name(here->place), there->said[0] ? ": " : "", there->said);
  team_give_up(why);
}

static void fill(message *to, team_place place, uint64_t what, const void *mine, size_t bytes) {
  memset(to, 0, sizeof *to);
  to->place = place;
  to->what = what;
  if (bytes > 0) memcpy(to->body, mine, bytes);
  if (place != TEAM_AT_END || joined->rank() == 0) return;
  fflush(stderr);
  if (!said) return;
  snprintf(to->said, sizeof to->said, "%.*s", (int)strcspn(said, "\n"), said);
}

void team_gather(team_place place, uint64_t what, const void *mine, size_t bytes, void *all) {
  static message own, other;
  assert(bytes <= TEAM_MOST_BYTES);
  fill(&own, place, what, mine, bytes);
  if (joined->rank() > 0) {
    joined->send(0, &own, sizeof own);
    return;
  }
  if (bytes > 0) memcpy(all, mine, bytes);
  for (int rank = 1; rank < joined->ranks(); rank++) {
    joined->receive(rank, &other, sizeof other);
    expect_here(&own, &other, rank);
    if (bytes > 0) memcpy((char *)all + (size_t)rank * bytes, other.body, bytes);
  }
}

void team_share(int from, void *data, size_t bytes) {
  const int rank = joined->rank();
  if (from > 0 && rank == from) joined->send(0, data, bytes);
  if (from > 0 && rank == 0) joined->receive(from, data, bytes);
  for (int to = 1; rank == 0 && to < joined->ranks(); to++)
    if (to != from) joined->send(to, data, bytes);
  if (rank == 0 || rank == from) return;
  joined->await(0);
  joined->receive(0, data, bytes);
}

bool team_decides(bool answer) {
  if (joined) team_share(0, &answer, sizeof answer);
  return answer;
}

int team_end(int status) {
  if (!joined) return status;
  team_gather(TEAM_AT_END, 0, NULL, 0, NULL);
  team_share(0, &status, sizeof status);
  joined->end();
  return status;
}
