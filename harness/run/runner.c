/* See runner.h. */
#include "runner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/timer.h"
#include "float_mode.h"
#include "held.h"
#include "problem/features.h"
#include "problem/types.h"
#include "reference/reference.h"
#include "side_effects.h"
#include "supervisor.h"
#include "team.h"
#include "thread_watch.h"
#include "version1.h"

/* ---- calls ---- */

attn_call runner_call(const run_setup *setup, const attn_problem *problem, const attn_tensors *tensors,
                      void *workspace) {
  const bool in_team = setup->variant->place == ATTN_TEAM;
  return (attn_call){.size = sizeof(attn_call),
                     .variant = setup->variant,
                     .problem = problem,
                     .tensors = tensors ? *tensors : (attn_tensors){0},
                     .workspace = workspace,
                     .threads = setup->threads,
                     .isa = in_team ? NULL : setup->isa,
                     .ranks = in_team && setup->isa ? team_ranks(setup->isa) : 1};
}

static const char *refused_type(const attn_variant *variant, const attn_problem *problem) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    const attn_type type = tensor_layout(problem, id)->type;
    const bool is_fixed = (tensor_table[id].types & (tensor_table[id].types - 1)) == 0;
    if (type != ATTN_ABSENT && !is_fixed && !(variant->types >> type & 1))
      return "does not compute in this data type";
  }
  return NULL;
}

/* What a variant is asked beside a run takes no time. */
static void enter_question(const attn_variant *variant, const char *problem, const char *question) {
  supervisor_enter(&(supervised_run){
      .variant = variant->name, .problem = problem, .property = question, .limit_seconds = 10});
}

const char *runner_refusal(const attn_variant *variant, const attn_problem *problem) {
  return runner_refusal_with(variant, problem, NULL);
}

const char *runner_refusal_with(const attn_variant *variant, const attn_problem *problem, const char *isa) {
  if (variant->function != problem->function) return reference_function_of(variant->function)->computes;
  const char *reason = features_refusal(variant->features, problem->features);
  if (!reason) reason = refused_type(variant, problem);
  if (reason || !variant->unsupported) return reason;
  if (supervisor_ended(variant->name)) return "ended its process";
  const run_setup setup = {.variant = variant, .threads = 1, .isa = isa};
  const attn_call call = runner_call(&setup, problem, NULL, NULL);
  const float_mode mode = float_mode_now();
  enter_question(variant, NULL, "unsupported");
  reason = variant->unsupported(&call);
  supervisor_leave();
  (void)float_mode_put_back(&mode);
  return reason;
}

size_t runner_workspace_bytes(const run_setup *setup, const attn_problem *problem) {
  if (!setup->variant->workspace_size) return 0;
  const attn_call call = runner_call(setup, problem, NULL, NULL);
  const float_mode mode = float_mode_now();
  enter_question(setup->variant, setup->problem, "workspace_size");
  const size_t bytes = setup->variant->workspace_size(&call);
  supervisor_leave();
  (void)float_mode_put_back(&mode);
  return bytes;
}

bool runner_workspace_is_sensible(size_t bytes, const attn_problem *p, char *why, size_t why_size) {
  const double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  const double scores = RUN_SCORE_BYTES * (double)p->batch * (double)p->query_heads *
                        (double)p->query_length * (double)p->key_length;
  const double most = machine > scores ? machine : scores;
  if ((double)bytes <= most) return true;
  char limit[FORMAT_BYTES], as_signed[32] = "";
  format_bytes(limit, most);
  if (bytes > SIZE_MAX / 2) snprintf(as_signed, sizeof as_signed, " (%lld)", (long long)bytes);
  snprintf(why, why_size, "asks for %zu bytes%s of workspace: %s, which is %s, would be enough for anything",
           bytes, as_signed, limit, machine > scores ? "this machine's memory" : "64 bytes a score");
  return false;
}

/* ---- one run, watched ---- */

static guarded kept_workspace;

static bool create_workspace(guarded *workspace, size_t bytes, const run_watch *watch, char *why,
                             size_t why_size) {
  if (watch->workspace == RUN_POISONED_AGAIN) {
    if (!guarded_renew(&kept_workspace, bytes, 64, why, why_size)) return false;
    *workspace = kept_workspace;
    guarded_poison(workspace);
    return true;
  }
  const bool created = watch->workspace_in_front ? guarded_create_front(workspace, bytes, why, why_size)
                                                 : guarded_create(workspace, bytes, 64, why, why_size);
  if (!created) return false;
  if (watch->workspace == RUN_FRESH)
    guarded_reset(workspace);
  else if (watch->workspace == RUN_POISONED)
    guarded_poison(workspace);
  else if (bytes > 0)
    memset(workspace->data, watch->workspace, bytes);
  return true;
}

static void destroy_workspace(guarded *workspace) {
  if (workspace->mapping != kept_workspace.mapping) guarded_destroy(workspace);
}

static bool rows_are_defined(const inputs *in, tensor_id id) {
  const attn_layout *layout = tensor_layout(&in->problem, id);
  const tensor_shape shape = tensor_shape_of(&in->problem, id);
  const char *data = tensor_data(&in->problem, &in->tensors, id);
  if (!data || shape.width == 0) return true;
  const size_t element_bytes = element_type_of(layout->type)->bytes;
  for (int64_t b = 0; b < shape.batch; b++)
    for (int64_t h = 0; h < shape.heads; h++)
      for (int64_t i = 0; i < shape.length; i++) {
        const int64_t at = b * layout->batch + h * layout->head + i * layout->position;
        if (!memory_is_defined(data + at * (int64_t)element_bytes, (size_t)shape.width * element_bytes))
          return false;
      }
  return true;
}

/* What comes after this may read the outputs, gaps included, without a complaint of memcheck's. */
static void check_defined(inputs *in, run_outcome *outcome) {
  if (!memory_is_watched()) return;
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!tensor_is_written(&in->problem, id)) continue;
    if (!rows_are_defined(in, id))
      run_violate(outcome, "has outputs that depend on memory that was never %s", "written");
    guarded_trust(&in->buffers[id]);
  }
}

static void forget_outputs(inputs *in, guarded *workspace) {
  guarded_forget(workspace);
  for (tensor_id id = 0; id < TENSORS; id++)
    if (tensor_is_written(&in->problem, id)) guarded_forget(&in->buffers[id]);
}

/* The variant's own object, and what it calls of the C library, is held to no calls from its first run on. Another
 * library behind it may set itself up once: when only such calls were seen, the variant runs a second time. */
static heap_calls run_counted(const attn_call *call) {
  for (bool again = false;; again = true) {
    heap_calls_start(variant_code(call->variant));
    runner_invoke(call);
    const heap_counts counts = heap_calls_stop();
    if (counts.own.count > 0) return counts.own;
    if (counts.library.count == 0 || again) return counts.library;
  }
}

static void run_watched(const attn_call *call, surroundings *before, bool first, run_outcome *outcome) {
  char words[RUN_VIOLATION_BYTES];
  threads_watch(variant_code(call->variant), call->threads, !first);
  outcome->heap = run_counted(call);
  const threads_seen threads = threads_end_watch();
  const bool again = side_effects_end(before, words, sizeof words);
  if (again && !words[0] && (before = side_effects_begin(false))) {
    runner_invoke(call);
    side_effects_end(before, words, sizeof words);
  }
  if (words[0]) run_violate(outcome, "%s", words);
  if (threads.most > 0) {
    snprintf(words, sizeof words, "%d threads at a time, and was given %d", threads.most, call->threads);
    run_violate(outcome, "uses %s", words);
  }
  held_say_left(threads.left, outcome);
  if (outcome->heap.count > 0) {
    snprintf(words, sizeof words, "%s first, %zu call%s", outcome->heap.first, outcome->heap.count,
             outcome->heap.count == 1 ? "" : "s");
    run_violate(outcome, "calls for memory inside run: %s", words);
  }
}

/* Neither too much nor, asked again, something else. */
static bool has_sensible_workspace(const run_setup *setup, const attn_problem *problem, size_t bytes,
                                   run_outcome *outcome) {
  char words[RUN_VIOLATION_BYTES];
  const size_t again = runner_workspace_bytes(setup, problem);
  if (!runner_workspace_is_sensible(bytes > again ? bytes : again, problem, words, sizeof words)) {
    run_violate(outcome, "%s", words);
    return false;
  }
  if (bytes == again) return true;
  snprintf(words, sizeof words, "%zu bytes of workspace, and asked again for %zu", bytes, again);
  run_violate(outcome, "asks for %s", words);
  return false;
}

bool runner_run(const run_setup *setup, inputs *in, const run_watch *watch, run_outcome *outcome, char *why,
                size_t why_size) {
  guarded workspace;
  surroundings *before = NULL;
  device_call on_device;
  device_outcome device;
  if (setup->variant->place == ATTN_TEAM) return team_run(setup, in, watch, outcome, why, why_size);
  held held = held_before();
  *outcome = (run_outcome){0};
  inputs_poison_outputs(in);
  const size_t bytes = runner_workspace_bytes(setup, &in->problem);
  if (!has_sensible_workspace(setup, &in->problem, bytes, outcome)) return true;
  if (!create_workspace(&workspace, bytes, watch, why, why_size)) return false;
  /* A device's driver has threads and memory of its own. */
  const bool watches = watch->side_effects && setup->variant->place == ATTN_HOST;
  if (watches && !(before = side_effects_begin(watch->first))) {
    snprintf(why, why_size, "no memory to look for side effects");
    destroy_workspace(&workspace);
    return false;
  }
  forget_outputs(in, &workspace);
  held_begin(&held, setup, in);
  attn_call call = runner_call(setup, &held.shown, &in->tensors, workspace.data);
  const bool begun = device_begin(&on_device, &call, bytes, why, why_size);
  const double start = wall_seconds();
  if (before)
    run_watched(&call, before, watch->first, outcome);
  else if (begun)
    runner_invoke(&call);
  outcome->seconds = wall_seconds() - start;
  outcome->ran = begun;
  device_end(&on_device, &device);
  if (device.violation[0]) run_violate(outcome, "%s", device.violation);
  outcome->device_failed = device.failed;
  outcome->workspace_touched_bytes = device.workspace_touched_bytes;
  held_end(&held, outcome);
  check_defined(in, outcome);
  held_check_buffers(in, &workspace, watch->inputs_checksum, outcome);
  if (watch->workspace == RUN_FRESH && !on_device.device)
    outcome->workspace_touched_bytes = guarded_touched_bytes(&workspace);
  destroy_workspace(&workspace);
  (void)has_sensible_workspace(setup, &in->problem, bytes, outcome);
  return begun;
}
