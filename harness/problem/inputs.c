/* The inputs of a workload in memory: buffers between guard pages, filled by fills.c, and their checksums. */
#include "inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"
#include "base/random.h"
#include "check.h"
#include "fills.h"
#include "forward_fill.h"
#include "types.h"
#include "widened.h"

/* Elements below which waking threads costs more than they save. */
static const int64_t worth_threads = 1 << 16;

/* What lies between the rows. A kernel that lets it into a result shows a NaN. */
static void fill_gaps(inputs *in, tensor_id id) {
  const workload_layout layout = in->workload.layout;
  if (layout == LAYOUT_SHIFTED || layout == LAYOUT_PADDED || layout == LAYOUT_MIXED)
    guarded_poison(&in->buffers[id]);
}

/* A buffer for a tensor, or NULL. In timing every tensor begins at a cache line; shifted and padded ones one
 * element behind it. In verification every tensor ends where its guard page begins; shifted ones one element
 * before it, so that widths of whole vectors do not make them aligned. */
static void *tensor_create(inputs *in, tensor_id id, bool aligned, char *why, size_t why_size) {
  const workload_layout layout = in->workload.layout;
  const bool shifted = layout == LAYOUT_SHIFTED, padded = layout == LAYOUT_PADDED || layout == LAYOUT_MIXED;
  const size_t element_bytes = element_type_of(tensor_layout(&in->problem, id)->type)->bytes;
  const size_t lead = aligned && (shifted || padded) ? element_bytes : 0;
  const size_t tail = !aligned && shifted ? element_bytes : 0;
  const size_t bytes = tensor_bytes(&in->problem, id) + lead + tail;
  guarded *buffer = &in->buffers[id];
  if (!guarded_create(buffer, bytes, aligned ? 64 : element_bytes, why, why_size)) return NULL;
  fill_gaps(in, id);
  return buffer->data + lead;
}

void inputs_draw_tensor(inputs *in, tensor_id id) {
  void *data = (void *)(uintptr_t)tensor_data(&in->problem, &in->tensors, id);
  const bool is_forward = id == TENSOR_OUTPUT || id == TENSOR_LSE;
  if (data && !is_forward && !tensor_is_written(&in->problem, id))
    fill_tensor(&in->workload, &in->problem, id, data);
}

void inputs_draw(inputs *in) {
  for (tensor_id id = 0; id < TENSORS; id++) inputs_draw_tensor(in, id);
  widened widened;
  if (!tensors_are_backward(&in->problem) || !widened_create(&widened, &in->problem, &in->tensors, false))
    return;
  widened.tensors.output = in->tensors.output;
  fill_forward(&widened.problem, &widened.tensors);
  widened_destroy(&widened);
}

static inputs *last_made;

static void enlist(inputs *in) {
  in->before = last_made;
  if (last_made) last_made->next = in;
  last_made = in;
}

static void strike(inputs *in) {
  if (in->before) in->before->next = in->next;
  if (in->next) in->next->before = in->before;
  if (last_made == in) last_made = in->before;
  in->before = in->next = NULL;
}

bool inputs_create_undrawn(inputs *in, const workload *w, bool aligned, char *why, size_t why_size) {
  *in = (inputs){.workload = *w};
  if (w->batch > WORKLOAD_MAX_LISTED_BATCH && (w->has_offsets || w->has_lengths || w->has_query_lengths)) {
    snprintf(why, why_size, "offsets, lengths and qlengths can be listed for a batch of at most %d",
             WORKLOAD_MAX_LISTED_BATCH);
    return false;
  }
  in->problem = workload_problem(&in->workload);
  if (!check_problem(&in->problem, why, why_size)) return false;
  const double bytes = workload_tensor_bytes(w), available = memory_room_for(bytes);
  if (bytes > available) {
    snprintf(why, why_size, "the tensors take %.1f MiB, and %.1f MiB of memory are available", bytes / 0x1p20,
             available / 0x1p20);
    return false;
  }
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!tensor_layout(&in->problem, id)->type) continue;
    void *data = tensor_create(in, id, aligned, why, why_size);
    if (!data) {
      inputs_destroy(in);
      return false;
    }
    tensor_set_data(&in->problem, &in->tensors, id, data);
  }
  enlist(in);
  return true;
}

bool inputs_create(inputs *in, const workload *w, bool aligned, char *why, size_t why_size) {
  if (!inputs_create_undrawn(in, w, aligned, why, why_size)) return false;
  inputs_draw(in);
  return true;
}

/* One file for all that is put away, since making it takes longer than most runs; what passes to it and from it; where its
 * places end, and how many inputs have one. */
static FILE *away;
static char passing[1 << 16];
static long away_end;
static int placed;

void inputs_destroy(inputs *in) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    guarded_destroy(&in->buffers[id]);
    guarded_destroy(&in->kept[id]);
  }
  if (in->away_bytes > 0 && --placed == 0) away_end = 0;
  in->away_bytes = 0;
  in->is_away = false;
  free(in->owned);
  in->owned = NULL;
  in->tensors = (attn_tensors){0};
  strike(in);
}

typedef bool move_fn(guarded *buffer, FILE *file);

static bool move(inputs *in, move_fn *each) {
  bool moved = fseek(away, in->away_at, SEEK_SET) == 0;
  for (tensor_id id = 0; id < TENSORS; id++)
    moved = moved && each(&in->buffers[id], away) && each(&in->kept[id], away);
  return moved;
}

/* Copies that were kept since they had a place need a larger one. */
static void find_place(inputs *in) {
  long bytes = 0;
  for (tensor_id id = 0; id < TENSORS; id++)
    bytes += (long)(in->buffers[id].mapping_bytes + in->kept[id].mapping_bytes);
  if (bytes <= in->away_bytes) return;
  placed += in->away_bytes == 0;
  in->away_at = away_end;
  in->away_bytes = bytes;
  away_end += bytes;
}

static bool put_one_away(inputs *in) {
  if (in->is_away) return true;
  find_place(in);
  return in->is_away = move(in, guarded_put_away);
}

bool inputs_put_away(inputs *in) {
  if (!away) {
    away = folder_nameless_file();
    if (!away) return false;
    setvbuf(away, passing, _IOFBF, sizeof passing);
  }
  bool moved = put_one_away(in); /* a case from a file is in no list */
  for (inputs *other = last_made; other; other = other->before) moved = moved && put_one_away(other);
  moved = moved && fflush(away) == 0;
  memset(passing, 0, sizeof passing); /* nothing of it is to stay */
  return moved;
}

static bool bring_one_back(inputs *in) {
  if (!in->is_away || in->rests) return true;
  in->is_away = false;
  return move(in, guarded_bring_back);
}

bool inputs_bring_back(inputs *in) {
  bool moved = bring_one_back(in);
  for (inputs *other = last_made; other; other = other->before) moved = moved && bring_one_back(other);
  return moved;
}

void inputs_rest(inputs *in) { in->rests = true; }

bool inputs_need(inputs *in) {
  in->rests = false;
  return bring_one_back(in);
}

bool inputs_keep(inputs *in, char *why, size_t why_size) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    const guarded *buffer = &in->buffers[id];
    if (!buffer->mapping || tensor_is_written(&in->problem, id)) continue;
    if (!in->kept[id].mapping && !guarded_create(&in->kept[id], buffer->bytes, 64, why, why_size)) {
      snprintf(why, why_size, "no memory for a copy of %s", tensor_table[id].words);
      return false;
    }
    memcpy(in->kept[id].data, buffer->data, buffer->bytes);
  }
  return true;
}

void inputs_restore(inputs *in) {
  bool is_kept = false;
  for (tensor_id id = 0; id < TENSORS; id++) {
    guarded *buffer = &in->buffers[id];
    if (!buffer->mapping) continue;
    guarded_mend(buffer);
    if (tensor_is_written(&in->problem, id)) continue;
    if (in->kept[id].mapping)
      memcpy(buffer->data, in->kept[id].data, buffer->bytes);
    else
      fill_gaps(in, id);
    is_kept = is_kept || in->kept[id].mapping;
  }
  if (!is_kept) inputs_draw(in);
}

bool inputs_move_to_front(inputs *in, char *why, size_t why_size) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    guarded moved, *buffer = &in->buffers[id];
    if (!buffer->mapping) continue;
    if (!guarded_create_front(&moved, buffer->bytes, why, why_size)) return false;
    memcpy(moved.data, buffer->data, moved.bytes);
    guarded_destroy(buffer);
    *buffer = moved;
    tensor_set_data(&in->problem, &in->tensors, id, moved.data);
  }
  return true;
}

void inputs_poison_outputs(inputs *in) {
  for (tensor_id id = 0; id < TENSORS; id++)
    if (tensor_is_written(&in->problem, id)) guarded_poison(&in->buffers[id]);
}

/* Of a word of elements: all their sign bits, and the word in which each is infinity. */
typedef struct element_bits {
  uint64_t signs, infinities;
} element_bits;

static element_bits bits_of(attn_type type) {
  switch (type) {
    case ATTN_FLOAT32: return (element_bits){UINT64_C(0x8000000080000000), UINT64_C(0x7f8000007f800000)};
    case ATTN_BFLOAT16: return (element_bits){UINT64_C(0x8000800080008000), UINT64_C(0x7f807f807f807f80)};
    case ATTN_FLOAT16: return (element_bits){UINT64_C(0x8000800080008000), UINT64_C(0x7c007c007c007c00)};
    default: return (element_bits){0, 0};
  }
}

/* Without the signs of its NaNs: from which operand a NaN has its sign is for the compiler to say (IEEE 754-2019, section 6.3).
 * Of magnitudes only those beyond infinity reach the sign bit with what is added, and none goes beyond that. */
static uint64_t without_signs_of_nans(uint64_t word, element_bits of) {
  const uint64_t nans = ((word & ~of.signs) + (~of.signs - of.infinities)) & of.signs;
  return word & ~nans;
}

/* Of each run's inputs and outputs this is made: compiled once more for processors with wider vectors, which sum the same. An
 * instrumented program cannot choose so early. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&    \
    !defined(__SANITIZE_THREAD__)
#define FOR_WIDER_VECTORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_WIDER_VECTORS
#endif

FOR_WIDER_VECTORS
static uint64_t sum_words(const unsigned char *data, int64_t first, int64_t count, element_bits of) {
  uint64_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t n = 0; n < count; n++) {
    uint64_t word;
    memcpy(&word, data + 8 * n, 8);
    sum += random_bits(of.signs ? without_signs_of_nans(word, of) : word, (uint64_t)(first + n));
  }
  return sum;
}

/* of: {0, 0} where all bits count. */
static uint64_t checksum(const guarded *buffer, element_bits of) {
  const int64_t words = (int64_t)(buffer->bytes / 8);
  uint64_t sum = buffer->bytes;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (words > worth_threads)
  for (int64_t first = 0; first < words; first += worth_threads) {
    const int64_t left = words - first;
    sum += sum_words(buffer->data + 8 * first, first, left < worth_threads ? left : worth_threads, of);
  }
  uint64_t rest = 0;
  if (buffer->bytes % 8 == 0) return sum;
  memcpy(&rest, buffer->data + 8 * words, buffer->bytes % 8);
  return sum + random_bits(of.signs ? without_signs_of_nans(rest, of) : rest, (uint64_t)words);
}

static uint64_t checksum_of(const inputs *in, bool written) {
  uint64_t sum = 0;
  for (tensor_id id = 0; id < TENSORS; id++)
    if (tensor_is_written(&in->problem, id) == written) {
      const attn_type type = tensor_layout(&in->problem, id)->type;
      sum = random_mixed(sum + checksum(&in->buffers[id], written ? bits_of(type) : (element_bits){0, 0}));
    }
  return sum;
}

uint64_t inputs_checksum(const inputs *in) { return checksum_of(in, false); }

bool inputs_are_whole(const inputs *in, uint64_t expected) {
  for (tensor_id id = 0; id < TENSORS; id++)
    if (!guarded_intact(&in->buffers[id])) return false;
  return inputs_checksum(in) == expected;
}

uint64_t inputs_outputs_checksum(const inputs *in) { return checksum_of(in, true); }
