/* A run of a variant of a team, as each rank makes it: its slices of the inputs go into memory of their own between
 * guard pages, which is all that the variant gets and all that the process holds while it runs: what they were taken
 * from, which its rows are judged by afterwards, lies in a file meanwhile. See team.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "base/timer.h"
#include "float_mode.h"
#include "held.h"
#include "problem/types.h"
#include "supervisor.h"
#include "team.h"
#include "team_slices.h"

enum { LISTS = 3 };

static team_result results[TEAM_MOST_RANKS];
static uint64_t outputs_checksum;
static bool is_strict = true;

const team_result *team_results(void) { return results; }
uint64_t team_outputs_checksum(void) { return outputs_checksum; }
void team_set_strict(bool strict) { is_strict = strict; }

/* What a rank is given, and nothing else. */
typedef struct rank_run {
  const run_setup *setup;
  const run_watch *watch;
  const attn_problem *whole;
  team_deal deal;
  int rank, ranks;
  attn_problem problem;
  attn_tensors tensors;
  guarded buffers[TENSORS], lists[LISTS], workspace;
  uint64_t checksum;
} rank_run;

static attn_call call_of(const rank_run *of) {
  return (attn_call){.size = sizeof(attn_call),
                     .variant = of->setup->variant,
                     .problem = &of->problem,
                     .threads = of->setup->threads,
                     .rank = of->rank,
                     .ranks = of->ranks};
}

static team_deal deal_of(const attn_variant *variant, const attn_problem *problem, int ranks) {
  const attn_team_member *member = team_member_of(variant);
  const attn_call call = {
      .size = sizeof(attn_call), .variant = variant, .problem = problem, .threads = 1, .ranks = ranks};
  return (team_deal){member->queries(&call), member->keys(&call), ranks};
}

static uint64_t checksum_of(const rank_run *of) {
  uint64_t sum = UINT64_C(0xcbf29ce484222325);
  for (tensor_id id = 0; id < TENSORS; id++)
    if (of->buffers[id].data && !tensor_is_written(of->whole, id))
      for (size_t n = 0; n < of->buffers[id].bytes; n++)
        sum = (sum ^ of->buffers[id].data[n]) * UINT64_C(0x100000001b3);
  return sum;
}

static void create(guarded *buffer, size_t bytes, size_t alignment) {
  char why[128], words[160];
  if (guarded_create(buffer, bytes, alignment, why, sizeof why)) return;
  snprintf(words, sizeof words, "no memory for its slice: %s", why);
  team_give_up(words);
}

static const int64_t **list_of(attn_problem *problem, int n) {
  return n == 0 ? &problem->offsets : n == 1 ? &problem->key_lengths : &problem->query_lengths;
}

/* The harness's own lie beside its inputs. */
static void copy_lists(rank_run *of) {
  const size_t bytes = (size_t)of->whole->batch * sizeof(int64_t);
  for (int n = 0; n < LISTS; n++) {
    const int64_t **list = list_of(&of->problem, n);
    if (!*list) continue;
    create(&of->lists[n], bytes, sizeof(int64_t));
    memcpy(of->lists[n].data, *list, bytes);
    *list = (const int64_t *)(void *)of->lists[n].data;
  }
}

static void copy_slices(rank_run *of, const inputs *in) {
  of->problem = team_problem(of->whole, &of->deal, of->rank);
  copy_lists(of);
  for (tensor_id id = 0; id < TENSORS; id++) {
    const attn_type type = tensor_layout(of->whole, id)->type;
    if (!type) continue;
    create(&of->buffers[id], team_tensor_bytes(of->whole, id, &of->deal, of->rank),
           element_type_of(type)->bytes);
    guarded_poison(&of->buffers[id]);
    tensor_set_data(&of->problem, &of->tensors, id, of->buffers[id].data);
  }
  team_copy(&(team_rows){of->whole, &in->tensors}, &(team_rows){&of->problem, &of->tensors}, &of->deal,
            of->rank, false);
  of->checksum = checksum_of(of);
}

static void create_workspace(rank_run *of, team_result *result) {
  const attn_call asked = call_of(of);
  const attn_variant *variant = of->setup->variant;
  result->workspace_bytes = variant->workspace_size ? variant->workspace_size(&asked) : 0;
  create(&of->workspace, result->workspace_bytes, 64);
  if (of->watch->workspace >= 0 && result->workspace_bytes > 0)
    memset(of->workspace.data, of->watch->workspace, result->workspace_bytes);
  else if (of->watch->workspace != RUN_FRESH)
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

static void supervise_run(const rank_run *of, const workload *workload) {
  const double start_seconds = 10, times_slower = 10;
  char isa[24];
  snprintf(isa, sizeof isa, "ranks%d", of->ranks);
  supervisor_enter(&(supervised_run){
      .variant = of->setup->variant->name,
      .problem = of->setup->problem,
      .property = of->setup->property,
      .isa = isa,
      .threads = of->setup->threads,
      .limit_seconds = start_seconds + times_slower * run_slowest_seconds(of->setup->variant, workload)});
}

static void destroy(rank_run *of) {
  for (tensor_id id = 0; id < TENSORS; id++) guarded_destroy(&of->buffers[id]);
  for (int n = 0; n < LISTS; n++) guarded_destroy(&of->lists[n]);
  guarded_destroy(&of->workspace);
}

static void put_away(const rank_run *of, inputs *in) {
  char words[512];
  if (of->ranks == 1 || inputs_put_away(in)) return;
  snprintf(words, sizeof words,
           "what is not its own cannot be put away in %s: %s; TMPDIR can name another folder",
           folder_temporary(), strerror(errno));
  team_give_up(words);
}

static void bring_back(const rank_run *of, inputs *in) {
  if (of->ranks > 1 && !inputs_bring_back(in)) team_give_up("what is not its own cannot be read back");
}

static void run_slice(rank_run *of, inputs *in, team_result *result) {
  const attn_team *team = team_joined();
  const float_mode mode = float_mode_now();
  attn_problem shown;
  copy_slices(of, in);
  supervise_run(of, &in->workload);
  create_workspace(of, result);
  memcpy(&shown, &of->problem, sizeof shown);
  attn_call call = call_of(of);
  result->declared_bytes = team_member_of(of->setup->variant)->sent_bytes(&call);
  call.problem = &shown;
  call.tensors = of->tensors;
  call.workspace = of->workspace.data;
  put_away(of, in);
  call.communicator = team->run_begin(of->ranks, is_strict, supervisor_waits_in());
  const double start = wall_seconds();
  of->setup->variant->run(&call);
  result->seconds = wall_seconds() - start;
  team->run_end(&result->account);
  bring_back(of, in);
  supervisor_leave();
  const char *changed = float_mode_put_back(&mode);
  if (changed) violate(result, changed);
  check(of, &shown, result);
  team_copy(&(team_rows){of->whole, &in->tensors}, &(team_rows){&of->problem, &of->tensors}, &of->deal,
            of->rank, true);
  destroy(of);
}

/* ---- what all come to ---- */

/* What rank 0 tells all. */
typedef struct summary {
  char violation[RUN_VIOLATION_BYTES];
  double seconds;
  uint64_t outputs_checksum;
  bool interrupted;
} summary;

static void sum_up(const rank_run *of, summary *all) {
  const bool repeated = of->deal.queries == ATTN_WHOLE;
  for (int rank = 0; rank < team_size(); rank++) {
    team_result *result = &results[rank];
    all->interrupted |= result->interrupted;
    if (rank >= of->ranks) continue;
    if (result->seconds > all->seconds) all->seconds = result->seconds;
    all->outputs_checksum = random_mixed(all->outputs_checksum + result->outputs_checksum);
    if (repeated && result->outputs_checksum != results[0].outputs_checksum)
      violate(result, "gives other bits than rank 0, and all are to have the same");
    if (result->violation[0] && !all->violation[0])
      snprintf(all->violation, sizeof all->violation, "on rank %d of %d %.150s", rank, of->ranks,
               result->violation);
  }
}

static void agree(const rank_run *of, const team_result *result, run_outcome *outcome) {
  summary all = {.violation = ""};
  team_gather(TEAM_AT_RESULT, 0, result, sizeof *result, results);
  if (of->rank == 0) sum_up(of, &all);
  team_share(0, &all, sizeof all);
  interrupt_agree(all.interrupted);
  outputs_checksum = all.outputs_checksum;
  outcome->seconds = all.seconds;
  if (all.violation[0]) run_violate(outcome, "%s", all.violation);
}

/* Of what all are to do: the same everywhere, drawn by each. */
static uint64_t digest_of(const rank_run *of, const run_watch *watch) {
  uint64_t sum = random_mixed(watch->inputs_checksum + (uint64_t)of->ranks);
  sum = random_mixed(sum + (uint64_t)of->setup->threads + ((uint64_t)(uint32_t)watch->workspace << 32));
  for (const char *at = of->setup->variant->name; *at; at++) sum = random_mixed(sum + (unsigned char)*at);
  return sum;
}

/* False without memory. Of what every rank writes, each has all. */
static bool note_owned(const rank_run *of, inputs *in) {
  const attn_slice slice = attn_slice_of(of->deal.queries, of->whole->query_length, of->rank, of->ranks);
  free(in->owned);
  in->owned = NULL;
  if (of->rank < of->ranks && of->deal.queries == ATTN_WHOLE) return true;
  in->owned = calloc((size_t)of->whole->query_length + 1, sizeof *in->owned);
  if (!in->owned) return false;
  for (int run = 0; of->rank < of->ranks && run < slice.runs; run++)
    for (int64_t n = 0; n < slice.length[run]; n++) in->owned[attn_slice_position(&slice, run, n)] = true;
  return true;
}

bool team_run(const run_setup *setup, inputs *in, const run_watch *watch, run_outcome *outcome, char *why,
              size_t why_size) {
  const attn_team *team = team_joined();
  rank_run of = {.setup = setup, .watch = watch, .whole = &in->problem, .ranks = team_ranks(setup->isa)};
  team_result result = {.violation = ""};
  run_outcome own = {.ran = true};
  *outcome = own;
  if (!team || of.ranks > team->ranks()) {
    snprintf(why, why_size, "%s", team ? "there are fewer ranks" : "no team has begun");
    return false;
  }
  inputs_poison_outputs(in);
  of.rank = team->rank();
  of.deal = deal_of(setup->variant, of.whole, of.ranks);
  if (!note_owned(&of, in)) team_give_up("no memory for its rows");
  team_gather(TEAM_AT_RUN, digest_of(&of, watch), NULL, 0, NULL);
  if (of.rank < of.ranks) {
    run_slice(&of, in, &result);
    held_check_buffers(in, NULL, watch->inputs_checksum, &own);
    if (own.violation[0]) violate(&result, own.violation);
  }
  result.outputs_checksum = inputs_outputs_checksum(in);
  result.interrupted = interrupt_asked();
  agree(&of, &result, outcome);
  return true;
}
