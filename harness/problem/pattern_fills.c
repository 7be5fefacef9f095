/* See pattern_fills.h. */
#include "pattern_fills.h"

#include <stdlib.h>

#include "base/random.h"
#include "shown.h"

/* Streams of random numbers, apart from those of fills.c. */
enum { DOCUMENTS = 40, BLOCKS, KEYS, ORDER };

static uint64_t stream_of(const workload *w, uint64_t purpose) {
  return random_mixed(w->seed * 64 + purpose);
}

/* The document of key x: lengths are uniform in [1, 2 LENGTH), or each key belongs to any of as many documents. */
static void draw_documents(const workload *w, int64_t b, int64_t length, int32_t *ids, int64_t stride) {
  const uint64_t stream = stream_of(w, DOCUMENTS) + (uint64_t)b;
  const int64_t most = 2 * w->document_length - 1, count = 1 + (length - 1) / w->document_length;
  int32_t id = 0;
  int64_t left = 1 + (int64_t)(random_bits(stream, 0) % (uint64_t)most);
  for (int64_t x = 0; x < length; x++) {
    if (w->documents_shuffled) {
      ids[x * stride] = (int32_t)(random_bits(stream, (uint64_t)x) % (uint64_t)count) * 7 - 3;
      continue;
    }
    if (left-- == 0) left = (int64_t)(random_bits(stream, (uint64_t)++id) % (uint64_t)most);
    ids[x * stride] = id;
  }
}

static void fill_key_documents(const workload *w, const attn_problem *p, int32_t *data) {
  const attn_layout *of = &p->key_documents;
  for (int64_t b = 0; b < p->batch; b++)
    draw_documents(w, b, p->key_length, data + b * of->batch, of->position);
}

/* As those of the keys, where the documents of queries are longer or shorter by the ratio of the lengths. */
static void fill_query_documents(const workload *w, const attn_problem *p, int32_t *data) {
  const attn_layout *of = &p->query_documents;
  int32_t *ids = calloc((size_t)p->key_length + 1, sizeof *ids);
  for (int64_t b = 0; b < p->batch && ids; b++) {
    draw_documents(w, b, p->key_length, ids, 1);
    for (int64_t i = 0; i < p->query_length; i++) {
      const int64_t j =
          p->key_length ? (int64_t)((double)i * (double)p->key_length / (double)p->query_length) : 0;
      data[b * of->batch + i * of->position] = ids[j];
    }
  }
  free(ids);
}

/* Of each row of blocks the same number, but for one where that is no whole one; all choices are equally likely (Knuth,
 * The Art of Computer Programming, volume 2, section 3.4.2, algorithm S). */
static void fill_blocks(const workload *w, const attn_problem *p, uint8_t *data) {
  const attn_layout *of = &p->blocks;
  const tensor_shape s = tensor_stored_shape(p, TENSOR_BLOCKS);
  const uint64_t stream = stream_of(w, BLOCKS);
  for (int64_t row = 0; row < s.batch * s.heads * s.length; row++) {
    uint8_t *blocks = data + row / s.length / s.heads * of->batch + row / s.length % s.heads * of->head +
                      row % s.length * of->position;
    const double wanted = w->block_density * (double)s.width;
    const double more = (double)(random_bits(stream, (uint64_t)row) >> 11) * 0x1p-53;
    int64_t left = (int64_t)(wanted + more);
    if (left > s.width) left = s.width;
    for (int64_t n = 0; n < s.width; n++) {
      const uint64_t bits = random_bits(stream + ORDER, (uint64_t)(row * s.width + n));
      const bool shows = (int64_t)(bits % (uint64_t)(s.width - n)) < left;
      blocks[n] = shows ? fill_shown(bits >> 60) : 0;
      left -= shows;
    }
  }
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Different keys in no order, every second row in order; of every fifth row some places hold none. */
static void fill_topk(const workload *w, const attn_problem *p, int32_t *data) {
  const attn_layout *of = &p->topk;
  const tensor_shape s = tensor_stored_shape(p, TENSOR_TOPK);
  const uint64_t stream = stream_of(w, KEYS);
  for (int64_t row = 0; row < s.batch * s.heads * s.length; row++) {
    int32_t *keys = data + row / s.length / s.heads * of->batch + row / s.length % s.heads * of->head +
                    row % s.length * of->position;
    const uint64_t bits = random_bits(stream, (uint64_t)row);
    const int64_t length = p->key_length > 0 ? p->key_length : 1;
    const int64_t first = (int64_t)((bits >> 32) % (uint64_t)length);
    int64_t step = 1 + (int64_t)(bits % (uint64_t)length);
    while (common_divisor(step, length) != 1) step++;
    if (bits >> 31 & 1) step = 1 + (length - first - 1) / s.width, step = step > 0 ? step : 1;
    for (int64_t n = 0; n < s.width; n++) {
      const bool is_one = n < p->key_length && !(row % 5 == 4 && random_bits(bits, (uint64_t)n) % 3 == 0);
      const int64_t key = (first + n * step) % length;
      /* In order they end with the keys. */
      const bool beyond = bits >> 31 & 1 && first + n * step >= length;
      keys[n] = is_one && !beyond ? (int32_t)key : -1;
    }
  }
}

void pattern_fill(const workload *w, const attn_problem *problem, tensor_id id, void *data) {
  switch (id) {
    case TENSOR_QUERY_DOCUMENTS: fill_query_documents(w, problem, data); break;
    case TENSOR_KEY_DOCUMENTS: fill_key_documents(w, problem, data); break;
    case TENSOR_BLOCKS: fill_blocks(w, problem, data); break;
    case TENSOR_TOPK: fill_topk(w, problem, data); break;
    default: break;
  }
}

bool pattern_tensors_create(pattern_tensors *made, const workload *w, attn_problem *problem) {
  *made = (pattern_tensors){{NULL}};
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!tensor_table[id].says_who_sees || !tensor_layout(problem, id)->type) continue;
    made->of[id] = malloc(tensor_bytes(problem, id) + 1);
    if (!made->of[id]) return false;
    pattern_fill(w, problem, id, made->of[id]);
    tensor_set_data(problem, NULL, id, made->of[id]);
  }
  return true;
}

void pattern_tensors_destroy(pattern_tensors *made) {
  for (tensor_id id = 0; id < TENSORS; id++) free(made->of[id]);
}
