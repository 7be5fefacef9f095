/* See team.h. */
#include "team.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/timer.h"
#include "float_mode.h"
#include "held.h"
#include "problem/types.h"
#include "supervisor.h"
#include "team_slices.h"

enum { MOST_TABLES = 16, MOST_RANKS = 1024, LISTS = 3, NAME_BYTES = 48, RANKS_BYTES = 24 };

static struct {
  const attn_table *table;
  const attn_team *team;
} registered[MOST_TABLES];
static size_t registered_count;
static const attn_team *joined; /* whose processes these are */
static team_result results[MOST_RANKS];

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

static const attn_variant *find_variant(const char *name) {
  for (size_t n = 0; n < registered_count; n++)
    for (uint32_t v = 0; v < registered[n].table->count; v++)
      if (strcmp(registered[n].table->variants[v]->name, name) == 0) return registered[n].table->variants[v];
  return NULL;
}

static const attn_team_member *member_of(const attn_variant *variant) {
  const attn_team *team = team_of(variant);
  for (const attn_team_member *const *member = team ? team->members : NULL; member && *member; member++)
    if ((*member)->variant == variant) return *member;
  return NULL;
}

bool team_begin(char *why, size_t why_size) {
  for (size_t n = 0; n < registered_count; n++)
    if (!registered[n].team->begin(why, why_size)) return false;
  joined = registered_count > 0 ? registered[0].team : NULL;
  if (joined) return true;
  snprintf(why, why_size, "no variant here works in a team of processes");
  return false;
}

int team_ranks(const char *isa) {
  const char *end;
  int64_t ranks = joined ? joined->ranks() : 1;
  if (isa && strncmp(isa, "ranks", 5) == 0 && text_integer(isa + 5, 1, MOST_RANKS, &end, &ranks) && !*end)
    return (int)ranks;
  return (int)ranks;
}

const char *team_all(void) {
  static char name[16];
  snprintf(name, sizeof name, "ranks%d", team_ranks(NULL));
  return name;
}

const team_result *team_results(void) { return results; }

static bool is_strict = true;

void team_set_strict(bool strict) { is_strict = strict; }

/* ---- what rank 0 asks of the others ---- */

typedef enum order_kind { ORDER_RUN, ORDER_END } order_kind;

typedef struct order {
  order_kind kind;
  int status; /* of the end */
  int ranks, threads, workspace;
  bool strict;
  char variant[NAME_BYTES], line[WORKLOAD_NAME_BYTES], property[64];
  double limit_seconds;
  attn_problem problem; /* without its pointers */
  bool has_lists[LISTS];
} order;

static const int64_t **list_of(attn_problem *problem, int n) {
  return n == 0 ? &problem->offsets : n == 1 ? &problem->key_lengths : &problem->query_lengths;
}

static size_t lists_bytes(const order *order) {
  size_t bytes = 0;
  for (int n = 0; n < LISTS; n++)
    bytes += order->has_lists[n] ? (size_t)order->problem.batch * sizeof(int64_t) : 0;
  return bytes;
}

/* ---- a run on this rank ---- */

/* What a rank is given, and nothing else. */
typedef struct rank_run {
  const order *order;
  const attn_variant *variant;
  team_deal deal;
  int rank;
  attn_problem whole, problem; /* both with the lists of this rank */
  attn_tensors tensors;
  guarded buffers[TENSORS], workspace;
  uint64_t checksum;
} rank_run;

static attn_call call_of(const rank_run *of) {
  return (attn_call){.size = sizeof(attn_call),
                     .variant = of->variant,
                     .problem = &of->problem,
                     .threads = of->order->threads,
                     .rank = of->rank,
                     .ranks = of->order->ranks};
}

static team_deal deal_of(const attn_variant *variant, const attn_problem *problem, int ranks) {
  const attn_team_member *member = member_of(variant);
  const attn_call call = {
      .size = sizeof(attn_call), .variant = variant, .problem = problem, .threads = 1, .ranks = ranks};
  return (team_deal){member->queries(&call), member->keys(&call), ranks};
}

static uint64_t checksum_of(const rank_run *of) {
  uint64_t sum = UINT64_C(0xcbf29ce484222325);
  for (tensor_id id = 0; id < TENSORS; id++)
    if (of->buffers[id].data && !tensor_is_written(&of->whole, id))
      for (size_t n = 0; n < of->buffers[id].bytes; n++)
        sum = (sum ^ of->buffers[id].data[n]) * UINT64_C(0x100000001b3);
  return sum;
}

/* Nobody can go on without this rank. */
static void give_up(const char *why) {
  fprintf(stderr, "attnbench: rank %d has no memory for its slice: %s\n", joined->rank(), why);
  fflush(stderr);
  _Exit(2);
}

/* Buffers of this rank's slices, with what stands in the package. */
static void receive_slices(rank_run *of, unsigned char *package) {
  char why[128];
  const size_t batch_bytes = (size_t)of->order->problem.batch * sizeof(int64_t);
  memcpy(&of->whole, &of->order->problem, sizeof of->whole);
  for (int n = 0; n < LISTS; n++) {
    if (!of->order->has_lists[n]) continue;
    *list_of(&of->whole, n) = (const int64_t *)(void *)package;
    package += batch_bytes;
  }
  of->deal = deal_of(of->variant, &of->whole, of->order->ranks);
  of->problem = team_problem(&of->whole, &of->deal, of->rank);
  for (tensor_id id = 0; id < TENSORS; id++) {
    const attn_type type = tensor_layout(&of->whole, id)->type;
    if (!type) continue;
    const size_t bytes = team_tensor_bytes(&of->whole, id, &of->deal, of->rank);
    if (!guarded_create(&of->buffers[id], bytes, element_type_of(type)->bytes, why, sizeof why)) give_up(why);
    guarded_poison(&of->buffers[id]);
    tensor_set_data(&of->problem, &of->tensors, id, of->buffers[id].data);
  }
  team_copy(&of->whole, &of->problem, &of->tensors, false, &of->deal, of->rank, TEAM_UNPACK, package);
  of->checksum = checksum_of(of);
}

static void create_workspace(rank_run *of, team_result *result) {
  char why[128];
  const attn_call asked = call_of(of);
  result->workspace_bytes = of->variant->workspace_size ? of->variant->workspace_size(&asked) : 0;
  if (!guarded_create(&of->workspace, result->workspace_bytes, 64, why, sizeof why)) give_up(why);
  if (of->order->workspace >= 0 && result->workspace_bytes > 0)
    memset(of->workspace.data, of->order->workspace, result->workspace_bytes);
  else if (of->order->workspace != RUN_FRESH)
    guarded_poison(&of->workspace);
}

static void violate(team_result *result, const char *words) {
  if (!result->violation[0]) snprintf(result->violation, sizeof result->violation, "%s", words);
}

static void check(rank_run *of, const attn_problem *shown, team_result *result) {
  char words[RUN_VIOLATION_BYTES];
  if (result->account.violation[0]) violate(result, result->account.violation);
  if (!result->account.violation[0] && result->account.sent_bytes != result->declared_bytes) {
    snprintf(words, sizeof words, "sends %" PRIu64 " bytes, and declares %" PRIu64,
             result->account.sent_bytes, result->declared_bytes);
    violate(result, words);
  }
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!of->buffers[id].mapping || guarded_intact(&of->buffers[id])) continue;
    snprintf(words, sizeof words, "writes beyond %s", tensor_table[id].words);
    violate(result, words);
  }
  if (!guarded_intact(&of->workspace)) violate(result, "writes beyond its workspace");
  if (checksum_of(of) != of->checksum) violate(result, "changes its inputs");
  if (memcmp((const char *)shown, (const char *)&of->problem, sizeof *shown) != 0)
    violate(result, "changes its problem");
}

static void supervise_run(const rank_run *of) {
  char isa[RANKS_BYTES];
  snprintf(isa, sizeof isa, "ranks%d", of->order->ranks);
  supervisor_enter(&(supervised_run){.variant = of->variant->name,
                                     .problem = of->order->line,
                                     .property = of->order->property[0] ? of->order->property : NULL,
                                     .isa = isa,
                                     .threads = of->order->threads,
                                     .limit_seconds = of->order->limit_seconds});
}

/* Fills the package of outputs too. */
static void run_slice(rank_run *of, unsigned char *package, team_result *result, unsigned char *outputs) {
  const attn_team_member *member = member_of(of->variant);
  const float_mode mode = float_mode_now();
  attn_problem shown;
  *result = (team_result){.violation = ""};
  receive_slices(of, package);
  supervise_run(of);
  create_workspace(of, result);
  memcpy(&shown, &of->problem, sizeof shown);
  attn_call call = call_of(of);
  result->declared_bytes = member->sent_bytes(&call);
  call.problem = &shown;
  call.tensors = of->tensors;
  call.workspace = of->workspace.data;
  call.communicator = joined->run_begin(of->order->ranks, of->order->strict, supervisor_waits_in());
  const double start = wall_seconds();
  of->variant->run(&call);
  result->seconds = wall_seconds() - start;
  joined->run_end(&result->account);
  supervisor_leave();
  const char *changed = float_mode_put_back(&mode);
  if (changed) violate(result, changed);
  check(of, &shown, result);
  team_copy(&of->whole, &of->problem, &of->tensors, true, &of->deal, of->rank, TEAM_PACK, outputs);
  for (tensor_id id = 0; id < TENSORS; id++) guarded_destroy(&of->buffers[id]);
  guarded_destroy(&of->workspace);
}

/* ---- the other ranks ---- */

static void serve_run(const order *asked) {
  rank_run of = {.order = asked, .rank = joined->rank(), .variant = find_variant(asked->variant)};
  team_result result;
  size_t sizes[2];
  joined->receive(0, sizes, sizeof sizes);
  unsigned char *package = malloc(sizes[0] + 1), *outputs = malloc(sizes[1] + 1);
  if (!package || !outputs || !of.variant) give_up("for messages");
  joined->receive(0, package, sizes[0]);
  run_slice(&of, package, &result, outputs);
  joined->send(0, &result, sizeof result);
  joined->send(0, outputs, sizes[1]);
  free(package);
  free(outputs);
}

int team_serve(void) {
  order *asked = malloc(sizeof *asked);
  if (!asked) give_up("for messages");
  for (;;) {
    joined->await(0);
    joined->receive(0, asked, sizeof *asked);
    if (asked->kind == ORDER_END) break;
    serve_run(asked);
  }
  const int status = asked->status;
  free(asked);
  joined->end();
  return status;
}

int team_dismiss(int status) {
  static order last = {.kind = ORDER_END};
  last.status = status;
  if (!joined) return status;
  for (int rank = 1; rank < joined->ranks(); rank++) joined->send(rank, &last, sizeof last);
  joined->end();
  return status;
}

/* ---- rank 0 ---- */

static void make_order(const run_setup *setup, const inputs *in, const run_watch *watch, order *to) {
  const double start_seconds = 10, times_slower = 10;
  memset(to, 0, sizeof *to);
  to->kind = ORDER_RUN;
  to->ranks = team_ranks(setup->isa);
  to->threads = setup->threads;
  to->strict = is_strict;
  to->workspace = watch->workspace;
  to->limit_seconds = start_seconds + times_slower * run_slowest_seconds(setup->variant, &in->workload);
  snprintf(to->variant, sizeof to->variant, "%s", setup->variant->name);
  snprintf(to->line, sizeof to->line, "%s", setup->problem ? setup->problem : "");
  snprintf(to->property, sizeof to->property, "%s", setup->property ? setup->property : "");
  memcpy(&to->problem, &in->problem, sizeof to->problem);
  for (int n = 0; n < LISTS; n++) {
    to->has_lists[n] = *list_of(&to->problem, n) != NULL;
    *list_of(&to->problem, n) = NULL;
  }
}

/* The lists, and the rows of this rank. NULL: no memory. */
static unsigned char *pack_for(const order *order, const inputs *in, const team_deal *deal, int rank,
                               size_t *bytes) {
  const size_t batch_bytes = (size_t)in->problem.batch * sizeof(int64_t);
  *bytes = lists_bytes(order) + team_rows_bytes(&in->problem, false, deal, rank);
  unsigned char *package = malloc(*bytes + 1), *at = package;
  if (!package) return NULL;
  attn_problem problem = in->problem;
  for (int n = 0; n < LISTS; n++) {
    if (!order->has_lists[n]) continue;
    memcpy(at, *list_of(&problem, n), batch_bytes);
    at += batch_bytes;
  }
  team_copy(&in->problem, &in->problem, &in->tensors, false, deal, rank, TEAM_PACK, at);
  return package;
}

static void take_outputs(inputs *in, const team_deal *deal, int rank, unsigned char *outputs,
                         team_result *result) {
  const bool repeated = deal->queries == ATTN_WHOLE && rank > 0;
  if (!team_copy(&in->problem, &in->problem, &in->tensors, true, deal, rank,
                 repeated ? TEAM_COMPARE : TEAM_UNPACK, outputs))
    violate(result, "gives other bits than rank 0, and all are to have the same");
}

static void deal_out(const order *asked, const inputs *in, const team_deal *deal) {
  for (int rank = 1; rank < asked->ranks; rank++) {
    size_t sizes[2] = {0, team_rows_bytes(&in->problem, true, deal, rank)};
    unsigned char *package = pack_for(asked, in, deal, rank, &sizes[0]);
    if (!package) give_up("for messages");
    joined->send(rank, asked, sizeof *asked);
    joined->send(rank, sizes, sizeof sizes);
    joined->send(rank, package, sizes[0]);
    free(package);
  }
}

static void collect(int ranks, inputs *in, const team_deal *deal) {
  for (int rank = 1; rank < ranks; rank++) {
    const size_t bytes = team_rows_bytes(&in->problem, true, deal, rank);
    unsigned char *outputs = malloc(bytes + 1);
    if (!outputs) give_up("for messages");
    joined->receive(rank, &results[rank], sizeof results[rank]);
    joined->receive(rank, outputs, bytes);
    take_outputs(in, deal, rank, outputs, &results[rank]);
    free(outputs);
  }
}

static void sum_up(int ranks, run_outcome *outcome) {
  char words[RUN_VIOLATION_BYTES + 32];
  for (int rank = 0; rank < ranks; rank++) {
    if (results[rank].seconds > outcome->seconds) outcome->seconds = results[rank].seconds;
    if (!results[rank].violation[0]) continue;
    snprintf(words, sizeof words, "on rank %d of %d %.150s", rank, ranks, results[rank].violation);
    run_violate(outcome, "%s", words);
  }
}

bool team_run(const run_setup *setup, inputs *in, const run_watch *watch, run_outcome *outcome, char *why,
              size_t why_size) {
  *outcome = (run_outcome){.ran = true};
  inputs_poison_outputs(in);
  order *asked = malloc(sizeof *asked);
  if (!joined || !asked || team_ranks(setup->isa) > joined->ranks()) {
    snprintf(why, why_size, "%s", joined ? "no memory for messages" : "no team has begun");
    free(asked);
    return false;
  }
  make_order(setup, in, watch, asked);
  const team_deal deal = deal_of(setup->variant, &in->problem, asked->ranks);
  deal_out(asked, in, &deal);
  rank_run own = {.order = asked, .variant = setup->variant};
  size_t bytes;
  unsigned char *package = pack_for(asked, in, &deal, 0, &bytes);
  unsigned char *outputs = malloc(team_rows_bytes(&in->problem, true, &deal, 0) + 1);
  if (!package || !outputs) give_up("for messages");
  run_slice(&own, package, &results[0], outputs);
  take_outputs(in, &deal, 0, outputs, &results[0]);
  free(package);
  free(outputs);
  collect(asked->ranks, in, &deal);
  sum_up(asked->ranks, outcome);
  held_check_buffers(in, NULL, watch->inputs_checksum, outcome);
  free(asked);
  return true;
}
