/* Many runs in a row, timed (runner.h): what changes from run to run, so that who remembers an answer is seen. */
#include <string.h>

#include "base/random.h"
#include "base/timer.h"
#include "held.h"
#include "problem/types.h"
#include "runner.h"
#include "supervisor.h"

static int64_t drawn_below(uint64_t seed, uint64_t n, int64_t count) {
  return (int64_t)(random_bits(seed, n) % (uint64_t)count);
}

static char *element_of(const attn_tensors *tensors, tensor_id id, attn_type type, int64_t at) {
  return (char *)(uintptr_t)tensor_data(NULL, tensors, id) + at * (int64_t)element_type_of(type)->bytes;
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

/* Of x and of what its keys are made of: a row of each, and an element of the second. */
static int64_t change_layer(run_batch *batch, int64_t b, int64_t i, int64_t j) {
  const attn_problem *p = &batch->inputs->problem;
  const tensor_id memory = p->key.type ? TENSOR_KEY : TENSOR_QUERY;
  const attn_layout *k = p->key.type ? &p->key : &p->query;
  const int64_t M = p->layer.model_dim, key = b * k->batch + j * k->position;
  batch->changes[0] = change_of(batch->inputs, TENSOR_QUERY, b * p->query.batch + i * p->query.position, M);
  batch->changes[1] = change_of(batch->inputs, memory, key, M);
  batch->changes[2] = change_of(batch->inputs, memory, key + drawn_below(batch->seed, 3, M), 1);
  return b * p->output.batch + i * p->output.position + drawn_below(batch->seed, 7, M);
}

/* Finds a row that the band, the lengths and the mask let see a key, and notes what changes; returns an
 * element of the row's output (or of its query's gradient), -1 when there is none. */
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
    const attn_layout *out = tensors_are_backward(p) ? &p->query_grad : &p->output;
    const attn_range keys = attn_visible_keys(p, b, i);
    if (keys.first == keys.end) continue;
    const int64_t j = keys.first + drawn_below(batch->seed, 4 * n + 1, keys.end - keys.first);
    if (!attn_sees(p, &in->tensors, b, h, i, j)) continue;
    const int64_t kv_head = h / (p->query_heads / p->kv_heads);
    const attn_layout *q = &p->query, *k = &p->key, *v = &p->value;
    batch->changed_row = row;
    if (tensors_are_of_layer(p)) return change_layer(batch, b, i, j);
    batch->changes[0] =
        change_of(in, TENSOR_QUERY, b * q->batch + h * q->head + i * q->position, p->head_dim);
    batch->changes[1] =
        change_of(in, TENSOR_KEY, b * k->batch + kv_head * k->head + j * k->position, p->head_dim);
    batch->changes[2] =
        change_of(in, TENSOR_VALUE, b * v->batch + kv_head * v->head + j * v->position + e, 1);
    return b * out->batch + h * out->head + i * out->position + (out == &p->output ? e : e % p->head_dim);
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

/* Into these tensors, what run n of the batch gets: queries and keys keep their size, whatever they were
 * filled with, and the value is of the size that is usual. This is timed, so the bits of one random number
 * have to do for all. */
static void make_changes(const run_batch *batch, const attn_tensors *tensors, int64_t n) {
  uint64_t bits = random_bits(batch->seed ^ UINT64_C(0xc4a9e), (uint64_t)n);
  const run_change *value = &batch->changes[2];
  write_value(element_of(tensors, value->tensor, value->type, value->at), value->type, bits);
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

static size_t marked_bytes(const attn_problem *p) {
  return element_type_of(tensors_are_backward(p) ? p->query_grad.type : p->output.type)->bytes;
}

/* The element of the output that find_changes chose. Gradients are in the problem, not among the copies. */
static char *marked_element(const run_batch *batch, const attn_tensors *tensors, int64_t at) {
  const attn_problem *p = &batch->inputs->problem;
  return tensors_are_backward(p) ? (char *)p->query_grad_data + at * (int64_t)marked_bytes(p)
                                 : element_of(tensors, TENSOR_OUTPUT, p->output.type, at);
}

/* What run n of the batch finds changed in these tensors. poisoned: an element of the output; -1: nothing changes. */
static void prepare_run(const run_batch *batch, const attn_tensors *tensors, int64_t n, int64_t poisoned) {
  if (poisoned < 0) return;
  make_changes(batch, tensors, n);
  poison_element(marked_element(batch, tensors, poisoned), marked_bytes(&batch->inputs->problem));
}

/* The outputs that a copy holds, into the buffers of the inputs. */
static void take_outputs(inputs *in, const attn_tensors *from) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!tensor_is_written(&in->problem, id) || tensor_table[id].in_problem) continue;
    void *to = (void *)(uintptr_t)tensor_data(NULL, &in->tensors, id);
    const void *data = tensor_data(NULL, from, id);
    if (data != to) memcpy(to, data, tensor_bytes(&in->problem, id));
  }
}

/* ---- on a device ---- */

static void update(const device_call *on_device, tensor_id tensor, attn_type type, int64_t at,
                   int64_t count) {
  const size_t bytes = element_type_of(type)->bytes;
  device_update(on_device, tensor, (size_t)at * bytes, (size_t)count * bytes);
}

/* The changes are made on the host and copied; the device's own clock runs while its kernels do. */
static int64_t time_on_device(const attn_call *host_call, run_batch *batch, int64_t poisoned,
                              run_elapsed *elapsed, run_outcome *outcome) {
  const attn_type type = batch->inputs->problem.output.type;
  const size_t workspace_bytes = runner_workspace_bytes(
      &(run_setup){.variant = host_call->variant, .threads = host_call->threads, .isa = host_call->isa},
      &batch->inputs->problem);
  char why[RUN_VIOLATION_BYTES];
  attn_call call = *host_call;
  device_call on_device;
  device_outcome device;
  int64_t made = 0;
  if (!device_begin(&on_device, &call, workspace_bytes, why, sizeof why)) {
    run_violate(outcome, "is not timed: %s", why);
    return 0;
  }
  while (made < batch->iterations) {
    prepare_run(batch, &host_call->tensors, made, poisoned);
    if (poisoned >= 0) {
      for (const run_change *change = batch->changes; change < batch->changes + 3; change++)
        update(&on_device, change->tensor, change->type, change->at, change->count);
      update(&on_device, TENSOR_OUTPUT, type, poisoned, 1);
    }
    if (batch->cold) on_device.device->flush();
    on_device.device->start_clock();
    runner_invoke(&call);
    elapsed->wall += on_device.device->stop_clock();
    supervisor_step();
    made++;
    if (batch->ends && made < batch->iterations && batch->ends()) break;
  }
  device_end(&on_device, &device);
  if (device.violation[0]) run_violate(outcome, "%s", device.violation);
  return made;
}

bool runner_time(const run_setup *setup, run_batch *batch, run_elapsed *elapsed) {
  inputs *in = batch->inputs;
  const int64_t poisoned = find_changes(batch);
  const attn_tensors *tensors = batch->copy_count ? batch->copies : &in->tensors;
  const size_t copies = batch->copy_count ? batch->copy_count : 1;
  const size_t bytes = marked_bytes(&in->problem);
  int64_t made = 0;
  held held = held_before();
  held_begin(&held, setup, in);
  attn_call call = runner_call(setup, &held.shown, tensors, batch->workspace);
  run_outcome outcome = {0};
  *elapsed = (run_elapsed){0};
  const bool on_device = setup->variant->place != ATTN_HOST;
  if (on_device) made = time_on_device(&call, batch, poisoned, elapsed, &outcome);
  const double cpu_start = cpu_seconds(), start = wall_seconds();
  while (!on_device && made < batch->iterations) {
    call.tensors = tensors[(size_t)made % copies];
    prepare_run(batch, &call.tensors, made, poisoned);
    runner_invoke(&call);
    supervisor_step();
    made++;
    if (batch->ends && made < batch->iterations && batch->ends()) break;
  }
  if (!on_device) *elapsed = (run_elapsed){wall_seconds() - start, cpu_seconds() - cpu_start};
  held_end(&held, &outcome);
  if (poisoned >= 0 && made > 0 && is_poison(marked_element(batch, &call.tensors, poisoned), bytes))
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
