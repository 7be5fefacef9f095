/* See device.h. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor.h"

enum { MOST_TABLES = 16 };

static struct {
  const attn_table *table;
  const attn_device *device;
  int index;    /* of the device that is taken */
  pid_t opened; /* the process that has opened it: what a parent has of a device is not for its children */
  char words[DEVICE_WORDS_BYTES];
} registered[MOST_TABLES];
static size_t registered_count;

/* In words what went wrong, "" where nothing did. */
static char failure[DEVICE_WORDS_BYTES - 24];

/* Before it had a size, a device began with a pointer. */
static bool is_of_this_version(const attn_device *device) {
  return device->size >= sizeof *device && device->size <= 64 * sizeof *device;
}

bool device_register(const attn_table *table, const attn_device *device, char *why, size_t why_size) {
  if (!is_of_this_version(device)) {
    snprintf(why, why_size, "its device is of another version: build it again, with this version's device.o");
    return false;
  }
  if (registered_count == MOST_TABLES) {
    snprintf(why, why_size, "it brings one device more than there is room for");
    return false;
  }
  registered[registered_count].table = table;
  registered[registered_count++].device = device;
  return true;
}

static size_t place_of(const attn_variant *variant) {
  for (size_t n = 0; n < registered_count; n++)
    for (uint32_t v = 0; v < registered[n].table->count; v++)
      if (registered[n].table->variants[v] == variant) return n;
  return MOST_TABLES;
}

const attn_device *device_of(const attn_variant *variant) {
  if (variant->place == ATTN_HOST) return NULL;
  const size_t n = place_of(variant);
  return n < MOST_TABLES ? registered[n].device : NULL;
}

static bool open_registered(size_t n, char *why, size_t why_size) {
  char words[DEVICE_WORDS_BYTES];
  if (registered[n].opened == getpid()) return true;
  if (!registered[n].device->open(registered[n].index, words, sizeof words)) {
    snprintf(why, why_size, "%s", words);
    return false;
  }
  memcpy(registered[n].words, words, sizeof words);
  registered[n].opened = getpid();
  return true;
}

bool device_choose(const attn_device *device, int index, char *why, size_t why_size) {
  const int count = device->count(why, why_size);
  if (count == 0) return false;
  if (index < 0 || index >= count) {
    snprintf(why, why_size, "there is no device %s:%d, but %s:0%s", device->kind, index, device->kind,
             count > 1 ? " and so on" : "");
    return false;
  }
  for (size_t n = 0; n < registered_count; n++) {
    if (registered[n].device != device) continue;
    registered[n].index = index;
    return open_registered(n, why, why_size);
  }
  return false;
}

const char *device_words(const attn_device *device) {
  for (size_t n = 0; n < registered_count; n++)
    if (registered[n].device == device) return registered[n].words;
  return "";
}

bool device_open(const attn_device *device) {
  char why[DEVICE_WORDS_BYTES];
  for (size_t n = 0; n < registered_count; n++)
    if (registered[n].device == device) return open_registered(n, why, sizeof why);
  return false;
}

static bool open_for(const attn_variant *variant, char *why, size_t why_size) {
  const size_t n = place_of(variant);
  if (n == MOST_TABLES) {
    snprintf(why, why_size, "%s computes on a device, and came without one", variant->name);
    return false;
  }
  return open_registered(n, why, why_size);
}

/* ---- buffers ---- */

static void *take(const attn_device *device, const void *from, size_t bytes) {
  void *memory = device->allocate(bytes);
  if (memory) device->write(memory, from, bytes);
  return memory;
}

static void give_back(device_call *made) {
  for (tensor_id id = 0; id < TENSORS; id++)
    if (made->tensors[id]) made->device->release(made->tensors[id]);
  for (int n = 0; n < DEVICE_LISTS; n++)
    if (made->lists[n]) made->device->release(made->lists[n]);
  if (made->workspace) made->device->release(made->workspace);
}

static bool take_lists(device_call *made) {
  const int64_t **const lists[DEVICE_LISTS] = {&made->problem.offsets, &made->problem.key_lengths,
                                               &made->problem.query_lengths};
  const size_t bytes = (size_t)made->problem.batch * sizeof(int64_t);
  for (int n = 0; n < DEVICE_LISTS; n++) {
    if (!*lists[n]) continue;
    made->lists[n] = take(made->device, *lists[n], bytes);
    if (!made->lists[n]) return false;
    *lists[n] = made->lists[n];
  }
  return true;
}

static bool take_all(device_call *made, attn_call *call) {
  if (!take_lists(made)) return false;
  for (tensor_id id = 0; id < TENSORS; id++) {
    const void *data = tensor_data(made->host.problem, &made->host.tensors, id);
    if (!data) continue;
    made->tensors[id] = take(made->device, data, tensor_bytes(made->host.problem, id));
    if (!made->tensors[id]) return false;
    tensor_set_data(&made->problem, &call->tensors, id, made->tensors[id]);
  }
  if (made->host.workspace) {
    made->workspace = take(made->device, made->host.workspace, made->workspace_bytes);
    if (!made->workspace) return false;
    call->workspace = made->workspace;
  }
  return true;
}

bool device_begin(device_call *made, attn_call *call, size_t workspace_bytes, char *why, size_t why_size) {
  *made = (device_call){.host = *call, .workspace_bytes = workspace_bytes};
  failure[0] = '\0';
  if (call->variant->place == ATTN_HOST) return true;
  if (!open_for(call->variant, why, why_size)) return false;
  made->device = device_of(call->variant);
  made->problem = *call->problem;
  if (!take_all(made, call)) {
    snprintf(why, why_size, "no memory on the device");
    give_back(made);
    *call = made->host;
    *made = (device_call){.host = *call};
    return false;
  }
  call->problem = &made->problem;
  call->stream = made->device->stream();
  made->device->keep_to(call->isa);
  return true;
}

void device_update(const device_call *made, tensor_id tensor, size_t at, size_t bytes) {
  const char *from = tensor_data(made->host.problem, &made->host.tensors, tensor);
  if (made->device) made->device->write((char *)made->tensors[tensor] + at, from + at, bytes);
}

void device_run(const attn_call *call) {
  call->variant->run(call);
  const attn_device *device = device_of(call->variant);
  const char *wrong = device->wait();
  if (wrong && !failure[0]) snprintf(failure, sizeof failure, "%s", wrong);
}

/* Of the workspace, in words of an element's size: what does not hold what it held before. */
static size_t changed_bytes(const device_call *made) {
  enum { PIECE = 4096 };
  char piece[PIECE];
  size_t changed = 0;
  for (size_t at = 0; at < made->workspace_bytes; at += PIECE) {
    const size_t bytes = made->workspace_bytes - at < PIECE ? made->workspace_bytes - at : PIECE;
    made->device->read(piece, (const char *)made->workspace + at, bytes);
    for (size_t n = 0; n + sizeof(float) <= bytes; n += sizeof(float))
      if (memcmp(piece + n, (const char *)made->host.workspace + at + n, sizeof(float)) != 0)
        changed += sizeof(float);
  }
  return changed;
}

/* The host's buffers are the harness's own, and may be written though a variant gets some as inputs. */
static void fetch(const attn_device *device, const void *host, const void *memory, size_t bytes) {
  device->read((void *)(uintptr_t)host, memory, bytes);
}

/* The first is kept. */
static void violate(device_outcome *outcome, const char *violation, const char *of) {
  if (!outcome->violation[0]) snprintf(outcome->violation, sizeof outcome->violation, violation, of);
}

void device_end(device_call *made, device_outcome *outcome) {
  const attn_device *device = made->device;
  *outcome = (device_outcome){.failed = failure[0] != '\0'};
  if (!device) return;
  if (failure[0]) violate(outcome, "fails on its device: %s", failure);
  if (failure[0] && device->is_lost()) supervisor_abandon(outcome->violation); /* nobody can go on here */
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!made->tensors[id]) continue;
    fetch(device, tensor_data(made->host.problem, &made->host.tensors, id), made->tensors[id],
          tensor_bytes(made->host.problem, id));
    if (!device->is_whole(made->tensors[id])) violate(outcome, "writes beyond %s", tensor_table[id].words);
  }
  const int64_t *const lists[DEVICE_LISTS] = {made->host.problem->offsets, made->host.problem->key_lengths,
                                              made->host.problem->query_lengths};
  const size_t list_bytes = (size_t)made->problem.batch * sizeof(int64_t);
  for (int n = 0; n < DEVICE_LISTS; n++)
    if (made->lists[n]) fetch(device, lists[n], made->lists[n], list_bytes);
  if (made->workspace) {
    outcome->workspace_touched_bytes = changed_bytes(made);
    if (!device->is_whole(made->workspace)) violate(outcome, "writes beyond %s", "its workspace");
  }
  give_back(made);
}
