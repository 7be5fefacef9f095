/* See runner.h. */
#include "runner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/random.h"
#include "base/timer.h"
#include "float_mode.h"
#include "held.h"
#include "problem/features.h"
#include "problem/types.h"
#include "reference/reference.h"
#include "side_effects.h"
#include "supervisor.h"
#include "thread_watch.h"
#include "version1.h"

/* ---- calls ---- */

attn_call runner_call(const run_setup *setup, const attn_problem *problem, const attn_tensors *tensors,
                      void *workspace) {
  return (attn_call){.size = sizeof(attn_call),
                     .variant = setup->variant,
                     .problem = problem,
                     .tensors = tensors ? *tensors : (attn_tensors){0},
                     .workspace = workspace,
                     .threads = setup->threads,
                     .isa = setup->isa};
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
  const char *data = tensor_data(&in->tensors, id);
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
    if (!tensor_table[id].written) continue;
    if (!rows_are_defined(in, id))
      run_violate(outcome, "has outputs that depend on memory that was never %s", "written");
    guarded_trust(&in->buffers[id]);
  }
}

static void forget_outputs(inputs *in, guarded *workspace) {
  guarded_forget(workspace);
  for (tensor_id id = 0; id < TENSORS; id++)
    if (tensor_table[id].written) guarded_forget(&in->buffers[id]);
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
  held held = held_before();
  *outcome = (run_outcome){0};
  inputs_poison_outputs(in);
  const size_t bytes = runner_workspace_bytes(setup, &in->problem);
  if (!has_sensible_workspace(setup, &in->problem, bytes, outcome)) return true;
  if (!create_workspace(&workspace, bytes, watch, why, why_size)) return false;
  if (watch->side_effects && !(before = side_effects_begin(watch->first))) {
    snprintf(why, why_size, "no memory to look for side effects");
    destroy_workspace(&workspace);
    return false;
  }
  forget_outputs(in, &workspace);
  held_begin(&held, setup, in);
  const attn_call call = runner_call(setup, &held.shown, &in->tensors, workspace.data);
  const double start = wall_seconds();
  if (before)
    run_watched(&call, before, watch->first, outcome);
  else
    runner_invoke(&call);
  outcome->seconds = wall_seconds() - start;
  outcome->ran = true;
  held_end(&held, outcome);
  check_defined(in, outcome);
  held_check_buffers(in, &workspace, watch->inputs_checksum, outcome);
  if (watch->workspace == RUN_FRESH) outcome->workspace_touched_bytes = guarded_touched_bytes(&workspace);
  destroy_workspace(&workspace);
  (void)has_sensible_workspace(setup, &in->problem, bytes, outcome);
  return true;
}

/* ---- many runs, timed ---- */

static int64_t drawn_below(uint64_t seed, uint64_t n, int64_t count) {
  return (int64_t)(random_bits(seed, n) % (uint64_t)count);
}

static char *element_of(const attn_tensors *tensors, tensor_id id, attn_type type, int64_t at) {
  return (char *)(uintptr_t)tensor_data(tensors, id) + at * (int64_t)element_type_of(type)->bytes;
}

static run_change change_of(const inputs *in, tensor_id id, int64_t at, int64_t count) {
  run_change change = {.tensor = id,
                       .type = tensor_layout(&in->problem, id)->type,
                       .at = at,
                       .count = count < RUN_MOST_CHANGED ? count : RUN_MOST_CHANGED};
  memcpy(change.unchanged, element_of(&in->tensors, id, change.type, at),
         (size_t)change.count * element_type_of(change.type)->bytes);
  return change;
}

/* Finds a row that the band, the lengths and the mask let see a key, and notes what changes; returns an element of the
 * row's output, -1 when there is none. */
static int64_t find_changes(run_batch *batch) {
  enum { TRIES = 64 };
  const inputs *in = batch->inputs;
  const attn_problem *p = &in->problem;
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  batch->changed_row = -1;
  for (uint64_t n = 0; n < TRIES && rows > 0 && p->value_dim > 0; n++) {
    const int64_t row = drawn_below(batch->seed, 4 * n, rows);
    const int64_t b = row / p->query_length / p->query_heads, h = row / p->query_length % p->query_heads;
    const int64_t i = row % p->query_length, e = drawn_below(batch->seed, 4 * n + 2, p->value_dim);
    const attn_range keys = attn_visible_keys(p, b, i);
    if (keys.first == keys.end) continue;
    const int64_t j = keys.first + drawn_below(batch->seed, 4 * n + 1, keys.end - keys.first);
    const uint8_t *mask = in->tensors.mask;
    if (mask && !mask[b * p->mask.batch + h * p->mask.head + i * p->mask.position + j]) continue;
    const int64_t kv_head = h / (p->query_heads / p->kv_heads);
    const attn_layout *q = &p->query, *k = &p->key, *v = &p->value;
    batch->changed_row = row;
    batch->changes[0] =
        change_of(in, TENSOR_QUERY, b * q->batch + h * q->head + i * q->position, p->head_dim);
    batch->changes[1] =
        change_of(in, TENSOR_KEY, b * k->batch + kv_head * k->head + j * k->position, p->head_dim);
    batch->changes[2] =
        change_of(in, TENSOR_VALUE, b * v->batch + kv_head * v->head + j * v->position + e, 1);
    return b * p->output.batch + h * p->output.head + i * p->output.position + e;
  }
  return -1;
}

/* A number of the size that is usual, from random bits. */
static void write_value(char *to, attn_type type, uint64_t bits) {
  if (type == ATTN_FLOAT32) {
    const float number = (float)(bits >> 40) * 0x1p-24f - 0.5f;
    memcpy(to, &number, sizeof number);
  } else { /* a sign and a fraction for 2^-2 */
    const uint16_t half =
        type == ATTN_BFLOAT16 ? 125 << 7 | (bits >> 40 & 0x807f) : 13 << 10 | (bits >> 40 & 0x83ff);
    memcpy(to, &half, sizeof half);
  }
}

static void flip_signs(char *to, const run_change *change, uint64_t bits) {
  if (change->type == ATTN_FLOAT32)
    for (int64_t d = 0; d < change->count; d++) {
      uint32_t word;
      memcpy(&word, change->unchanged + d * (int64_t)sizeof word, sizeof word);
      word ^= (uint32_t)(bits >> d) << 31;
      memcpy(to + d * (int64_t)sizeof word, &word, sizeof word);
    }
  else
    for (int64_t d = 0; d < change->count; d++) {
      uint16_t half;
      memcpy(&half, change->unchanged + d * (int64_t)sizeof half, sizeof half);
      half ^= (uint16_t)((bits >> d & 1) << 15);
      memcpy(to + d * (int64_t)sizeof half, &half, sizeof half);
    }
}

/* Into these tensors, what run n of the batch gets: queries and keys keep their size, whatever they were filled with, and
 * the value is of the size that is usual. This is timed, so the bits of one random number have to do for all. */
static void make_changes(const run_batch *batch, const attn_tensors *tensors, int64_t n) {
  uint64_t bits = random_bits(batch->seed ^ UINT64_C(0xc4a9e), (uint64_t)n);
  const run_change *value = &batch->changes[2];
  write_value(element_of(tensors, TENSOR_VALUE, value->type, value->at), value->type, bits);
  for (const run_change *change = batch->changes; change < batch->changes + 2; change++) {
    flip_signs(element_of(tensors, change->tensor, change->type, change->at), change, bits);
    bits >>= RUN_MOST_CHANGED;
  }
}

/* Of 16 bits or 32: either half of the pattern is no number. */
static void poison_element(void *element, size_t bytes) {
  const uint32_t poison = GUARDED_POISON;
  memcpy(element, &poison, bytes);
}

static bool is_poison(const void *element, size_t bytes) {
  const uint32_t poison = GUARDED_POISON;
  return memcmp(element, &poison, bytes) == 0;
}

/* The outputs that a copy holds, into the buffers of the inputs. */
static void take_outputs(inputs *in, const attn_tensors *from) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    void *to = (void *)(uintptr_t)tensor_data(&in->tensors, id);
    const void *data = tensor_data(from, id);
    if (tensor_table[id].written && data != to) memcpy(to, data, tensor_bytes(&in->problem, id));
  }
}

bool runner_time(const run_setup *setup, run_batch *batch, run_elapsed *elapsed) {
  inputs *in = batch->inputs;
  const int64_t poisoned = find_changes(batch);
  const attn_tensors *tensors = batch->copy_count ? batch->copies : &in->tensors;
  const size_t copies = batch->copy_count ? batch->copy_count : 1;
  void (*const run)(const attn_call *) = setup->variant->run;
  const attn_type type = in->problem.output.type;
  const size_t bytes = element_type_of(type)->bytes;
  int64_t made = 0;
  held held = held_before();
  held_begin(&held, setup, in);
  attn_call call = runner_call(setup, &held.shown, tensors, batch->workspace);
  const double cpu_start = cpu_seconds(), start = wall_seconds();
  while (made < batch->iterations) {
    call.tensors = tensors[(size_t)made % copies];
    if (poisoned >= 0) {
      make_changes(batch, &call.tensors, made);
      poison_element(element_of(&call.tensors, TENSOR_OUTPUT, type, poisoned), bytes);
    }
    run(&call);
    supervisor_step();
    made++;
    if (batch->ends && made < batch->iterations && batch->ends()) break;
  }
  elapsed->wall = wall_seconds() - start;
  elapsed->cpu = cpu_seconds() - cpu_start;
  run_outcome outcome = {0};
  held_end(&held, &outcome);
  if (poisoned >= 0 && made > 0 && is_poison(element_of(&call.tensors, TENSOR_OUTPUT, type, poisoned), bytes))
    run_violate(&outcome, "leaves a part of the output %s", "unwritten");
  memcpy(batch->violation, outcome.violation, sizeof batch->violation);
  if (batch->copy_count && made > 0) {
    if (poisoned >= 0) make_changes(batch, &in->tensors, made - 1);
    take_outputs(in, &call.tensors);
  }
  return made == batch->iterations;
}

bool runner_restore(run_batch *batch, uint64_t checksum) {
  inputs *in = batch->inputs;
  for (int n = 0; n < 3 && batch->changed_row >= 0; n++) {
    const run_change *change = &batch->changes[n];
    memcpy(element_of(&in->tensors, change->tensor, change->type, change->at), change->unchanged,
           (size_t)change->count * element_type_of(change->type)->bytes);
  }
  if (checksum == 0) return true;
  run_outcome outcome = {0};
  held_check_buffers(in, NULL, checksum, &outcome);
  if (!outcome.violation[0]) return true;
  memcpy(batch->violation, outcome.violation, sizeof batch->violation);
  return false;
}
