/* Who sees whom, the definition: pairs of a query i and a key j, one after the other. Written from the text of
 * variants/attention.h and not from the helpers in variants/visibility.h, which variants use: a slip in one shows against
 * the other. */
#ifndef ATTN_REFERENCE_SEES_H
#define ATTN_REFERENCE_SEES_H

#include "../variants/attention.h"

static inline int64_t reference_floor(int64_t a, int64_t b) { return (a - ((a % b) + b) % b) / b; }

/* SplitMix64 of the three numbers, of so many blocks: written again from the sentence in variants/attention.h. */
static inline int64_t reference_drawn_block(int64_t seed, int64_t row, int64_t n, int64_t blocks) {
  uint64_t z = 0x9e3779b97f4a7c15u * (uint64_t)seed + 0xd1342543de82ef95u * (uint64_t)row +
               0xaf251af3b0f025b5u * (uint64_t)n;
  z = 0xbf58476d1ce4e5b9u * (z ^ (z >> 30));
  z = 0x94d049bb133111ebu * (z ^ (z >> 27));
  z = z ^ (z >> 31);
  return (int64_t)(z % (uint64_t)blocks);
}

/* p: the position of the query. */
static inline bool reference_term_shows(const attn_problem *problem, const attn_term *t, int64_t p,
                                        int64_t j) {
  const int64_t distance = p - j, size = distance < 0 ? -distance : distance;
  switch (t->kind) {
    case ATTN_LOCAL: return distance <= t->a && -distance <= t->b;
    case ATTN_FIRST: return j < t->a;
    case ATTN_GLOBAL: return j < t->a || p < t->a;
    case ATTN_DILATED: return distance % t->b == 0 && size <= t->a * t->b;
    case ATTN_STRIDED: return distance % t->a == 0;
    case ATTN_FIXED: return reference_floor(p, t->a) == reference_floor(j, t->a) || j % t->a >= t->a - t->b;
    case ATTN_RANDOM:
      for (int64_t n = 0; n < t->a; n++)
        if (reference_drawn_block(t->seed, reference_floor(p, t->b), n,
                                  (problem->key_length - 1) / t->b + 1) == j / t->b)
          return true;
      return false;
  }
  return false;
}

static inline bool reference_is_listed(const int32_t *keys, int64_t count, int64_t j) {
  for (int64_t n = 0; n < count; n++)
    if (keys[n] == j) return true;
  return false;
}

/* Where there is no term, all is shown. */
static inline bool reference_pattern_shows(const attn_problem *p, int64_t b, int64_t h, int64_t i,
                                           int64_t j) {
  const int64_t position = i + (p->offsets ? p->offsets[b] : p->offset);
  const attn_layout *of_query = &p->query_documents, *of_key = &p->key_documents, *blocks = &p->blocks,
                    *topk = &p->topk;
  for (int64_t n = 0; n < p->term_count; n++)
    if (reference_term_shows(p, &p->terms[n], position, j)) return true;
  if (of_query->type && p->query_documents_data[b * of_query->batch + i * of_query->position] ==
                            p->key_documents_data[b * of_key->batch + j * of_key->position])
    return true;
  if (blocks->type && p->blocks_data[b * blocks->batch + h * blocks->head +
                                     i / p->block_q * blocks->position + j / p->block_k] != 0)
    return true;
  if (topk->type)
    return reference_is_listed(p->topk_data + b * topk->batch + h * topk->head + i * topk->position,
                               p->topk_count, j);
  return p->term_count == 0 && !of_query->type && !blocks->type;
}

static inline bool reference_query_exists(const attn_problem *problem, int64_t b, int64_t i) {
  return !problem->query_lengths || i < problem->query_lengths[b];
}

/* Whether query i of head h in entry b sees key j: both exist, the key lies in the band, no mask hides it, and a term of
 * the pattern shows it. */
static inline bool reference_sees(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                                  int64_t h, int64_t i, int64_t j) {
  if (!reference_query_exists(problem, b, i)) return false;
  if (problem->key_lengths && j >= problem->key_lengths[b]) return false;
  int64_t distance = j - i - (problem->offsets ? problem->offsets[b] : problem->offset);
  if (distance < -problem->left || distance > problem->right) return false;
  const attn_layout *mask = &problem->mask;
  if (mask->type && tensors->mask[b * mask->batch + h * mask->head + i * mask->position + j] == 0)
    return false;
  return reference_pattern_shows(problem, b, h, i, j);
}

#endif
