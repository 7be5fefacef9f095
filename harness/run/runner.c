/* See runner.h. */
#include "runner.h"

#include <fenv.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/timer.h"
#include "crash.h"
#include "problem/features.h"
#include "problem/types.h"
#include "reference/reference.h"

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

const char *runner_refusal(const attn_variant *variant, const attn_problem *problem) {
  if (variant->function != problem->function) return reference_function_of(variant->function)->computes;
  const char *reason = features_refusal(variant->features, problem->features);
  if (!reason) reason = refused_type(variant, problem);
  if (reason || !variant->unsupported) return reason;
  const run_setup setup = {.variant = variant, .threads = 1};
  const attn_call call = runner_call(&setup, problem, NULL, NULL);
  return variant->unsupported(&call);
}

size_t runner_workspace_bytes(const run_setup *setup, const attn_problem *problem) {
  const attn_call call = runner_call(setup, problem, NULL, NULL);
  return setup->variant->workspace_size ? setup->variant->workspace_size(&call) : 0;
}

static void begin_context(const run_setup *setup) {
  if (setup->problem)
    crash_context(setup->variant->name, setup->problem, setup->origin, setup->isa, setup->threads);
}

static void end_context(const run_setup *setup) {
  if (setup->problem) crash_context(NULL, NULL, NULL, NULL, 0);
}

/* ---- one run, watched ---- */

static void violate(run_outcome *outcome, const char *violation, const char *of) {
  if (outcome->violation[0]) return; /* the first is the clearest */
  snprintf(outcome->violation, sizeof outcome->violation, violation, of);
}

static bool create_workspace(guarded *workspace, size_t bytes, const run_watch *watch, char *why,
                             size_t why_size) {
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

/* Whoever called the kernel goes on in the mode that it left. */
static void check_arithmetic(int rounding, run_outcome *outcome) {
  volatile float least_normal = FLT_MIN;
  if (fegetround() != rounding)
    violate(outcome, "leaves the %s", "rounding mode changed");
  else if (!(least_normal * 0.5f > 0))
    violate(outcome, "leaves %s", "denormal numbers flushed to zero");
}

static void check_untouched(const inputs *in, const guarded *workspace, uint64_t checksum,
                            run_outcome *outcome) {
  if (!guarded_intact(workspace)) violate(outcome, "writes beyond %s", "its workspace");
  for (tensor_id id = 0; id < TENSORS; id++)
    if (!guarded_intact(&in->buffers[id])) violate(outcome, "writes beyond %s", tensor_table[id].words);
  if (inputs_checksum(in) != checksum) violate(outcome, "changes its %s", "inputs");
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
      violate(outcome, "has outputs that depend on memory that was never %s", "written");
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
    heap_calls_start(call->variant);
    runner_invoke(call);
    const heap_counts counts = heap_calls_stop();
    if (counts.own.count > 0) return counts.own;
    if (counts.library.count == 0 || again) return counts.library;
  }
}

bool runner_run(const run_setup *setup, inputs *in, const run_watch *watch, run_outcome *outcome, char *why,
                size_t why_size) {
  guarded workspace;
  *outcome = (run_outcome){0};
  const size_t bytes = runner_workspace_bytes(setup, &in->problem);
  if (!create_workspace(&workspace, bytes, watch, why, why_size)) return false;
  inputs_poison_outputs(in);
  forget_outputs(in, &workspace);
  const attn_call call = runner_call(setup, &in->problem, &in->tensors, workspace.data);
  fenv_t before;
  fegetenv(&before);
  const int rounding = fegetround();
  begin_context(setup);
  const double start = wall_seconds();
  if (watch->heap)
    outcome->heap = run_counted(&call);
  else
    runner_invoke(&call);
  outcome->seconds = wall_seconds() - start;
  end_context(setup);
  check_arithmetic(rounding, outcome);
  fesetenv(&before);
  check_defined(in, outcome);
  check_untouched(in, &workspace, watch->inputs_checksum, outcome);
  if (watch->workspace == RUN_FRESH) outcome->workspace_touched_bytes = guarded_touched_bytes(&workspace);
  guarded_destroy(&workspace);
  return true;
}

/* ---- many runs, timed ---- */

/* The element of the values that changes, and that of the outputs which is poisoned; -1: there is none. */
typedef struct change {
  int64_t row, value, output;
} change;

static int64_t drawn_below(uint64_t seed, uint64_t n, int64_t count) {
  return (int64_t)(random_bits(seed, n) % (uint64_t)count);
}

/* A row that the band and the lengths let see a key, that key's value, and an element of the row's output. */
static change find_change(const run_batch *batch) {
  enum { TRIES = 64 };
  const attn_problem *p = &batch->inputs->problem;
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  for (uint64_t n = 0; n < TRIES && rows > 0 && p->value_dim > 0; n++) {
    const int64_t row = drawn_below(batch->seed, 4 * n, rows);
    const int64_t b = row / p->query_length / p->query_heads, h = row / p->query_length % p->query_heads;
    const int64_t i = row % p->query_length, e = drawn_below(batch->seed, 4 * n + 2, p->value_dim);
    const attn_range keys = attn_visible_keys(p, b, i);
    if (keys.first == keys.end) continue;
    const int64_t j = keys.first + drawn_below(batch->seed, 4 * n + 1, keys.end - keys.first);
    const uint8_t *mask = batch->inputs->tensors.mask;
    if (mask && !mask[b * p->mask.batch + h * p->mask.head + i * p->mask.position + j]) continue;
    const int64_t kv_head = h / (p->query_heads / p->kv_heads);
    return (change){row, b * p->value.batch + kv_head * p->value.head + j * p->value.position + e,
                    b * p->output.batch + h * p->output.head + i * p->output.position + e};
  }
  return (change){-1, -1, -1};
}

/* Of the size of the values that are usual, and another one each time. */
static float changed_value(const run_batch *batch, int64_t n) {
  return (float)(random_bits(batch->seed ^ UINT64_C(0xc4a9e), (uint64_t)n) >> 40) * 0x1p-24f - 0.5f;
}

static void poison_element(void *element) {
  const uint32_t poison = GUARDED_POISON;
  memcpy(element, &poison, sizeof poison);
}

static bool is_poison(const void *element) {
  const uint32_t poison = GUARDED_POISON;
  return memcmp(element, &poison, sizeof poison) == 0;
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
  const change at = find_change(batch);
  inputs *in = batch->inputs;
  float *own_values = (float *)(uintptr_t)in->tensors.value;
  batch->changed_row = at.row;
  batch->changed_at = at.value;
  batch->unchanged = at.row >= 0 ? own_values[at.value] : 0;
  const attn_tensors *tensors = batch->copy_count ? batch->copies : &in->tensors;
  const size_t copies = batch->copy_count ? batch->copy_count : 1;
  attn_call call = runner_call(setup, &in->problem, tensors, batch->workspace);
  void (*const run)(const attn_call *) = setup->variant->run;
  int64_t made = 0;
  begin_context(setup);
  const double cpu_start = cpu_seconds(), start = wall_seconds();
  while (made < batch->iterations) {
    call.tensors = tensors[(size_t)made % copies];
    if (at.row >= 0) {
      ((float *)(uintptr_t)call.tensors.value)[at.value] = changed_value(batch, made);
      poison_element((float *)call.tensors.output + at.output);
    }
    run(&call);
    made++;
    if (batch->ends && made < batch->iterations && batch->ends()) break;
  }
  elapsed->wall = wall_seconds() - start;
  elapsed->cpu = cpu_seconds() - cpu_start;
  end_context(setup);
  if (at.row >= 0 && made > 0) own_values[at.value] = changed_value(batch, made - 1);
  batch->unwritten = at.row >= 0 && made > 0 && is_poison((const float *)call.tensors.output + at.output);
  if (batch->copy_count) take_outputs(in, &call.tensors);
  return made == batch->iterations;
}

void runner_restore(const run_batch *batch) {
  if (batch->changed_row >= 0)
    ((float *)(uintptr_t)batch->inputs->tensors.value)[batch->changed_at] = batch->unchanged;
}
