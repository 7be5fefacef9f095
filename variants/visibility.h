/* Who sees whom, for variants: what attention.h defines pair by pair, as a range of keys, as a row of bytes, as a tile
 * that is empty, partial or full, and as the next key that is worth looking at. A kernel that asks these gets every band,
 * length, mask and pattern right, and computes nothing that nobody sees. attention.h includes this; include that. */
#ifndef ATTN_VISIBILITY_H
#define ATTN_VISIBILITY_H

/* Of a problem's features those that the code which includes this may meet. A kernel for GPUs that takes no patterns defines it
 * as less, and is spared the questions for them and the registers that these take. */
#ifndef ATTN_FEATURES_MET
#define ATTN_FEATURES_MET (~UINT64_C(0))
#endif

ATTN_INLINE bool attn_uses(const attn_problem *problem, uint64_t any) {
  return (problem->features & any & ATTN_FEATURES_MET) != 0;
}

/* A packed [B, heads, length, width] tensor. */
ATTN_INLINE attn_layout attn_packed(attn_type type, int64_t heads, int64_t length, int64_t width) {
  attn_layout packed = {type, heads * length * width, length * width, width};
  return packed;
}

/* Keys first <= j < end, with first == end == 0 where there is none. */
typedef struct attn_range {
  int64_t first, end;
} attn_range;

/* What queries see of keys: no query any key, every query all of them, or something between. */
typedef enum attn_visibility { ATTN_EMPTY = 0, ATTN_PARTIAL = 1, ATTN_FULL = 2 } attn_visibility;

ATTN_INLINE int64_t attn_smaller(int64_t a, int64_t b) { return a < b ? a : b; }
ATTN_INLINE int64_t attn_larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Rounded down, and what is left then; b > 0. */
ATTN_INLINE int64_t attn_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }
ATTN_INLINE int64_t attn_remainder(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

ATTN_INLINE bool attn_has_pattern(const attn_problem *problem) {
  return attn_uses(problem, ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK);
}

ATTN_INLINE int64_t attn_offset_of(const attn_problem *problem, int64_t b) {
  return problem->offsets ? problem->offsets[b] : problem->offset;
}

ATTN_INLINE int64_t attn_key_count(const attn_problem *problem, int64_t b) {
  return problem->key_lengths ? problem->key_lengths[b] : problem->key_length;
}

/* Queries from here on see nothing. */
ATTN_INLINE int64_t attn_query_count(const attn_problem *problem, int64_t b) {
  const bool listed = attn_uses(problem, ATTN_QUERY_LENGTHS) && problem->query_lengths;
  return listed ? problem->query_lengths[b] : problem->query_length;
}

/* The n-th of the blocks of keys that row `row` of blocks sees of ATTN_RANDOM, of so many that there are: the output
 * function of SplitMix64 (Steele, Lea and Flood 2014). The same block may be drawn twice. */
ATTN_INLINE int64_t attn_random_block(int64_t seed, int64_t row, int64_t n, int64_t blocks) {
  uint64_t x = (uint64_t)seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)row * UINT64_C(0xd1342543de82ef95) +
               (uint64_t)n * UINT64_C(0xaf251af3b0f025b5);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return (int64_t)((x ^ x >> 31) % (uint64_t)blocks);
}

/* ---- terms ---- */

/* Queries [i0, i1) of head h of entry b, all of which exist, with the positions of the first and the last; and the
 * documents of these, which lie in a range. */
typedef struct attn_queries {
  const attn_problem *problem;
  int64_t b, h, i0, i1, p0, p1;
  int32_t least, most;
} attn_queries;

ATTN_INLINE attn_queries attn_queries_of(const attn_problem *problem, int64_t b, int64_t h, int64_t i0,
                                         int64_t i1) {
  const int64_t offset = attn_offset_of(problem, b), end = attn_smaller(i1, attn_query_count(problem, b));
  attn_queries q = {problem, b, h, i0, end, i0 + offset, end - 1 + offset, INT32_MAX, INT32_MIN};
  if (!(problem->features & ATTN_DOCUMENTS)) return q;
  const attn_layout *of = &problem->query_documents;
  for (int64_t i = i0; i < end; i++) {
    const int32_t id = problem->query_documents_data[b * of->batch + i * of->position];
    q.least = id < q.least ? id : q.least;
    q.most = id > q.most ? id : q.most;
  }
  return q;
}

/* The keys from the first to the last that the term lets through, of all queries. */
ATTN_INLINE attn_range attn_term_reach(const attn_term *term, const attn_queries *q) {
  attn_range reach = {0, q->problem->key_length};
  int64_t left = ATTN_UNLIMITED, right = ATTN_UNLIMITED;
  if (term->kind == ATTN_LOCAL) left = term->a, right = term->b;
  if (term->kind == ATTN_DILATED) left = right = term->a * term->b;
  if (left != ATTN_UNLIMITED) reach.first = attn_larger(0, q->p0 - left);
  if (right != ATTN_UNLIMITED) reach.end = attn_smaller(reach.end, q->p1 + right + 1);
  if (term->kind == ATTN_FIRST || (term->kind == ATTN_GLOBAL && q->p0 >= term->a))
    reach.end = attn_smaller(reach.end, term->a);
  return reach;
}

ATTN_INLINE int64_t attn_random_blocks(const attn_queries *q, const attn_term *term) {
  return (q->problem->key_length + term->b - 1) / term->b;
}

/* Whether row `row` of blocks draws the block. */
ATTN_INLINE bool attn_random_draws(const attn_queries *q, const attn_term *term, int64_t row, int64_t block) {
  for (int64_t n = 0; n < term->a; n++)
    if (attn_random_block(term->seed, row, n, attn_random_blocks(q, term)) == block) return true;
  return false;
}

/* The first key from j on whose distance to some query is a multiple of `apart`. */
ATTN_INLINE int64_t attn_next_multiple(const attn_queries *q, int64_t apart, int64_t j) {
  const int64_t ahead = attn_remainder(j - q->p0, apart);
  return ahead <= q->p1 - q->p0 ? j : j + apart - ahead;
}

ATTN_INLINE int64_t attn_next_random(const attn_queries *q, const attn_term *term, int64_t j) {
  int64_t next = q->problem->key_length;
  for (int64_t row = attn_quotient(q->p0, term->b); row <= attn_quotient(q->p1, term->b); row++)
    for (int64_t n = 0; n < term->a; n++) {
      const int64_t first = attn_random_block(term->seed, row, n, attn_random_blocks(q, term)) * term->b;
      if (first + term->b > j) next = attn_smaller(next, attn_larger(j, first));
    }
  return next;
}

/* The first key from j on that the term may let some query see; the key length where there is none. */
ATTN_INLINE int64_t attn_term_next(const attn_term *term, const attn_queries *q, int64_t j) {
  const attn_range reach = attn_term_reach(term, q);
  const int64_t none = q->problem->key_length;
  int64_t next = attn_larger(j, reach.first);
  if (term->kind == ATTN_DILATED) next = attn_next_multiple(q, term->b, next);
  if (term->kind == ATTN_STRIDED) next = attn_next_multiple(q, term->a, next);
  if (term->kind == ATTN_RANDOM) next = attn_next_random(q, term, next);
  if (term->kind == ATTN_FIXED) {
    const int64_t first = attn_quotient(q->p0, term->a) * term->a,
                  end = (attn_quotient(q->p1, term->a) + 1) * term->a, column = term->a - term->b;
    const int64_t behind = next % term->a >= column ? 0 : column - next % term->a;
    const int64_t listed = term->b > 0 ? next + behind : none;
    next = next < end ? attn_smaller(attn_larger(next, first), listed) : listed;
  }
  return next < reach.end ? next : none;
}

ATTN_INLINE bool attn_random_covers(const attn_queries *q, const attn_term *term, int64_t j0, int64_t j1) {
  for (int64_t row = attn_quotient(q->p0, term->b); row <= attn_quotient(q->p1, term->b); row++)
    for (int64_t block = j0 / term->b; block <= (j1 - 1) / term->b; block++)
      if (!attn_random_draws(q, term, row, block)) return false;
  return true;
}

/* Whether the term lets every query see all of keys [j0, j1). */
ATTN_INLINE bool attn_term_covers(const attn_term *term, const attn_queries *q, int64_t j0, int64_t j1) {
  const int64_t a = term->a, b = term->b, farthest = q->p1 - j0, nearest = q->p0 - (j1 - 1);
  const bool single = nearest == farthest; /* pair */
  switch (term->kind) {
    case ATTN_LOCAL: return (a == ATTN_UNLIMITED || farthest <= a) && (b == ATTN_UNLIMITED || -nearest <= b);
    case ATTN_FIRST: return j1 <= a;
    case ATTN_GLOBAL: return j1 <= a || q->p1 < a;
    case ATTN_DILATED:
      return farthest <= a * b && -nearest <= a * b && (b == 1 || (single && nearest % b == 0));
    case ATTN_STRIDED: return a == 1 || (single && nearest % a == 0);
    case ATTN_FIXED:
      if (j0 / a != (j1 - 1) / a) return a == b;
      return j0 % a >= a - b || (attn_quotient(q->p0, a) == j0 / a && attn_quotient(q->p1, a) == j0 / a);
    case ATTN_RANDOM: return attn_random_covers(q, term, j0, j1);
  }
  return false;
}

/* ---- tensors ---- */

ATTN_INLINE const uint8_t *attn_block_row(const attn_queries *q, int64_t row) {
  const attn_layout *of = &q->problem->blocks;
  return q->problem->blocks_data + q->b * of->batch + q->h * of->head + row * of->position;
}

ATTN_INLINE const int32_t *attn_topk_row(const attn_queries *q, int64_t i) {
  const attn_layout *of = &q->problem->topk;
  return q->problem->topk_data + q->b * of->batch + q->h * of->head + i * of->position;
}

ATTN_INLINE int64_t attn_next_in_blocks(const attn_queries *q, int64_t j) {
  const attn_problem *p = q->problem;
  for (int64_t block = j / p->block_k; block * p->block_k < p->key_length; block++)
    for (int64_t row = q->i0 / p->block_q; row <= (q->i1 - 1) / p->block_q; row++)
      if (attn_block_row(q, row)[block]) return attn_larger(j, block * p->block_k);
  return p->key_length;
}

ATTN_INLINE bool attn_blocks_cover(const attn_queries *q, int64_t j0, int64_t j1) {
  const attn_problem *p = q->problem;
  for (int64_t row = q->i0 / p->block_q; row <= (q->i1 - 1) / p->block_q; row++)
    for (int64_t block = j0 / p->block_k; block <= (j1 - 1) / p->block_k; block++)
      if (!attn_block_row(q, row)[block]) return false;
  return true;
}

ATTN_INLINE int64_t attn_next_in_documents(const attn_queries *q, int64_t j) {
  const attn_layout *of = &q->problem->key_documents;
  const int32_t *id = q->problem->key_documents_data + q->b * of->batch;
  while (j < q->problem->key_length && (id[j * of->position] < q->least || id[j * of->position] > q->most))
    j++;
  return j;
}

ATTN_INLINE bool attn_documents_cover(const attn_queries *q, int64_t j0, int64_t j1) {
  const attn_layout *of = &q->problem->key_documents;
  const int32_t *id = q->problem->key_documents_data + q->b * of->batch;
  bool all = q->least == q->most;
  for (int64_t j = j0; j < j1 && all; j++) all = id[j * of->position] == q->least;
  return all;
}

ATTN_INLINE int64_t attn_next_in_topk(const attn_queries *q, int64_t j) {
  int64_t next = q->problem->key_length;
  for (int64_t i = q->i0; i < q->i1; i++)
    for (int64_t n = 0; n < q->problem->topk_count; n++) {
      const int64_t key = attn_topk_row(q, i)[n];
      if (key >= j && key < next) next = key;
    }
  return next;
}

ATTN_INLINE bool attn_topk_covers(const attn_queries *q, int64_t j0, int64_t j1) {
  for (int64_t i = q->i0; i < q->i1; i++) {
    int64_t listed = 0;
    for (int64_t n = 0; n < q->problem->topk_count; n++) {
      const int64_t key = attn_topk_row(q, i)[n];
      listed += key >= j0 && key < j1;
    }
    if (listed < j1 - j0) return false;
  }
  return true;
}

/* ---- the pattern ---- */

/* The first key from j on that the pattern may let some query see; the key length where there is none. */
ATTN_INLINE int64_t attn_pattern_next(const attn_queries *q, int64_t j) {
  const attn_problem *p = q->problem;
  int64_t next = p->key_length;
  if (!attn_has_pattern(p)) return j;
  for (int64_t n = 0; n < p->term_count && next > j; n++)
    next = attn_smaller(next, attn_term_next(&p->terms[n], q, j));
  if (p->features & ATTN_BLOCKS && next > j) next = attn_smaller(next, attn_next_in_blocks(q, j));
  if (p->features & ATTN_DOCUMENTS && next > j) next = attn_smaller(next, attn_next_in_documents(q, j));
  if (p->features & ATTN_TOPK && next > j) next = attn_smaller(next, attn_next_in_topk(q, j));
  return next;
}

/* Whether one of its terms alone lets every query see all of keys [j0, j1). */
ATTN_INLINE bool attn_pattern_covers(const attn_queries *q, int64_t j0, int64_t j1) {
  const attn_problem *p = q->problem;
  if (!attn_has_pattern(p)) return true;
  for (int64_t n = 0; n < p->term_count; n++)
    if (attn_term_covers(&p->terms[n], q, j0, j1)) return true;
  return (p->features & ATTN_BLOCKS && attn_blocks_cover(q, j0, j1)) ||
         (p->features & ATTN_DOCUMENTS && attn_documents_cover(q, j0, j1)) ||
         (p->features & ATTN_TOPK && attn_topk_covers(q, j0, j1));
}

/* ---- what kernels ask ---- */

/* By band and lengths query i of entry b, if it is one of so many, sees keys j with 0 <= j < length and
 * i + before <= j < i + behind. Both ends move with i: the first and the last of some queries see the ends of what any
 * sees and of what all see, and no key between is left out. */
typedef struct attn_band {
  int64_t before, behind, length, queries;
} attn_band;

ATTN_INLINE attn_band attn_band_of(const attn_problem *problem, int64_t b) {
  const int64_t offset = attn_offset_of(problem, b), far = INT64_MAX / 2;
  attn_band band = {-far, far, attn_key_count(problem, b), attn_query_count(problem, b)};
  /* Offsets are kept within a range where these sums cannot overflow. */
  if (problem->left != ATTN_UNLIMITED) band.before = offset - problem->left;
  if (problem->right != ATTN_UNLIMITED) band.behind = offset + problem->right + 1;
  return band;
}

/* From the first to the last key that band, lengths and pattern may let some of queries [i0, i1) see, all of which exist.
 * Not by attn_band_of: pairs are asked for one by one, and naive would count 3 % more instructions. */
ATTN_INLINE attn_range attn_keys_of_existing(const attn_problem *problem, int64_t b, int64_t i0, int64_t i1) {
  const int64_t length = attn_key_count(problem, b), offset = attn_offset_of(problem, b);
  const int64_t p0 = i0 + offset, p1 = i1 - 1 + offset;
  attn_range range = {0, length};
  if (problem->left != ATTN_UNLIMITED && p0 - problem->left > 0) range.first = p0 - problem->left;
  if (problem->right != ATTN_UNLIMITED && p1 + problem->right < length - 1)
    range.end = p1 + problem->right + 1;
  /* Those of tensors are not searched here. */
  if (attn_uses(problem, ATTN_PATTERN) && !attn_uses(problem, ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK)) {
    const attn_queries q = {problem, b, 0, i0, i1, p0, p1, 0, 0};
    attn_range all = {length, 0};
    for (int64_t n = 0; n < problem->term_count; n++) {
      const attn_range reach = attn_term_reach(&problem->terms[n], &q);
      all.first = attn_smaller(all.first, reach.first);
      all.end = attn_larger(all.end, reach.end);
    }
    range.first = attn_larger(range.first, all.first);
    range.end = attn_smaller(range.end, all.end);
  }
  return range;
}

/* The keys that the band and the lengths let query i of entry b see. Masks are not looked at. With a pattern: from the
 * first to the last that it may let through as well. */
ATTN_INLINE attn_range attn_visible_keys(const attn_problem *problem, int64_t b, int64_t i) {
  attn_range range = attn_keys_of_existing(problem, b, i, i + 1);
  const bool exists = !attn_uses(problem, ATTN_QUERY_LENGTHS) || i < attn_query_count(problem, b);
  if (!exists || range.first >= range.end) range.first = range.end = 0;
  return range;
}

/* The same of some of queries [i0, i1): from the first of them all to the last. */
ATTN_INLINE attn_range attn_keys_of(const attn_problem *problem, int64_t b, int64_t i0, int64_t i1) {
  const int64_t end = attn_smaller(i1, attn_query_count(problem, b));
  attn_range range = attn_keys_of_existing(problem, b, i0, end);
  if (i0 >= end || range.first >= range.end) range.first = range.end = 0;
  return range;
}

/* By band, lengths and whether there is a mask. */
ATTN_INLINE attn_visibility attn_band_tile(const attn_problem *problem, int64_t b, int64_t i0, int64_t i1,
                                           int64_t j0, int64_t j1) {
  const attn_band band = attn_band_of(problem, b);
  const int64_t last = attn_smaller(i1, band.queries) - 1, end = attn_smaller(j1, band.length);
  const attn_range any = {attn_larger(j0, i0 + band.before), attn_smaller(end, last + band.behind)};
  if (i0 > last || any.first >= any.end) return ATTN_EMPTY;
  const bool all =
      i1 <= band.queries && j0 >= last + band.before && j1 <= band.length && j1 <= i0 + band.behind;
  return all && !problem->mask.type ? ATTN_FULL : ATTN_PARTIAL;
}

/* What queries [i0, i1) of entry b see of keys [j0, j1) by band and lengths. Whole tiles can be left out so, or computed
 * without hiding. The answer holds for every head. Masks and patterns are not looked at: with one no tile is full, and one
 * that is empty may be called partial. */
ATTN_INLINE attn_visibility attn_tile_visibility(const attn_problem *problem, int64_t b, int64_t i0,
                                                 int64_t i1, int64_t j0, int64_t j1) {
  const attn_visibility seen = attn_band_tile(problem, b, i0, i1, j0, j1);
  return seen == ATTN_FULL && attn_has_pattern(problem) ? ATTN_PARTIAL : seen;
}

/* The same of head h with the pattern, whose tensors are there. Partial may stand for what terms only together make full,
 * and for what documents, a mask, or two of band, lengths and pattern together make empty. */
ATTN_INLINE attn_visibility attn_visible_tile(const attn_problem *problem, int64_t b, int64_t h, int64_t i0,
                                              int64_t i1, int64_t j0, int64_t j1) {
  const attn_visibility seen = attn_band_tile(problem, b, i0, i1, j0, j1);
  if (seen == ATTN_EMPTY || !attn_has_pattern(problem)) return seen;
  const attn_queries q = attn_queries_of(problem, b, h, i0, i1);
  if (attn_pattern_next(&q, j0) >= j1) return ATTN_EMPTY;
  return seen == ATTN_FULL && attn_pattern_covers(&q, j0, j1) ? ATTN_FULL : ATTN_PARTIAL;
}

/* The first key from j on that some query of [i0, i1) of head h may see by its pattern, and none before it; the key length
 * where there is none. */
ATTN_INLINE int64_t attn_next_visible(const attn_problem *problem, int64_t b, int64_t h, int64_t i0,
                                      int64_t i1, int64_t j) {
  const attn_queries q = attn_queries_of(problem, b, h, i0, i1);
  return q.i0 < q.i1 ? attn_pattern_next(&q, j) : problem->key_length;
}

/* ---- a row, as bytes: visible[j - keys.first] = 1 for the keys of a range ---- */

ATTN_INLINE void attn_mark(attn_range keys, int64_t first, int64_t end, uint8_t *visible) {
  for (int64_t j = attn_larger(keys.first, first); j < attn_smaller(keys.end, end); j++)
    visible[j - keys.first] = 1;
}

ATTN_INLINE void attn_mark_term(const attn_term *term, const attn_queries *q, attn_range keys,
                                uint8_t *visible) {
  const attn_range reach = attn_term_reach(term, q);
  const int64_t first = attn_larger(keys.first, reach.first), end = attn_smaller(keys.end, reach.end);
  const int64_t step = term->kind == ATTN_DILATED ? term->b : term->kind == ATTN_STRIDED ? term->a : 1;
  if (term->kind == ATTN_RANDOM) {
    const int64_t row = attn_quotient(q->p0, term->b);
    for (int64_t n = 0; n < term->a; n++) {
      const int64_t block = attn_random_block(term->seed, row, n, attn_random_blocks(q, term));
      attn_mark(keys, block * term->b, (block + 1) * term->b, visible);
    }
  } else if (term->kind == ATTN_FIXED) {
    const int64_t own = attn_quotient(q->p0, term->a) * term->a;
    attn_mark(keys, own, own + term->a, visible);
    for (int64_t chunk = keys.first / term->a * term->a; chunk < keys.end && term->b > 0; chunk += term->a)
      attn_mark(keys, chunk + term->a - term->b, chunk + term->a, visible);
  } else if (first < end) {
    for (int64_t j = attn_next_multiple(q, step, first); j < end; j += step) visible[j - keys.first] = 1;
  }
}

ATTN_INLINE void attn_mark_tensors(const attn_queries *q, attn_range keys, uint8_t *visible) {
  const attn_problem *p = q->problem;
  if (p->features & ATTN_BLOCKS) {
    const uint8_t *row = attn_block_row(q, q->i0 / p->block_q);
    for (int64_t block = keys.first / p->block_k; block * p->block_k < keys.end; block++)
      if (row[block]) attn_mark(keys, block * p->block_k, (block + 1) * p->block_k, visible);
  }
  if (p->features & ATTN_DOCUMENTS) {
    const attn_layout *of = &p->key_documents;
    const int32_t *id = p->key_documents_data + q->b * of->batch;
    for (int64_t j = keys.first; j < keys.end; j++)
      if (id[j * of->position] == q->least) visible[j - keys.first] = 1;
  }
  if (p->features & ATTN_TOPK)
    for (int64_t n = 0; n < p->topk_count; n++) {
      const int64_t key = attn_topk_row(q, q->i0)[n];
      if (key >= keys.first && key < keys.end) visible[key - keys.first] = 1;
    }
}

/* visible[j - j0] = 1 where query i of head h of entry b sees key j, by band, lengths, mask and pattern, and 0 where it
 * does not, for j0 <= j < j1. Returns how many it sees. */
ATTN_INLINE int64_t attn_visible_row(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                                     int64_t h, int64_t i, int64_t j0, int64_t j1, uint8_t *visible) {
  const attn_range range = attn_visible_keys(problem, b, i);
  const attn_range keys = {attn_larger(j0, range.first), attn_smaller(j1, range.end)};
  const bool has_pattern = attn_has_pattern(problem);
  const uint8_t *mask = NULL;
  int64_t count = 0;
  if (problem->mask.type)
    mask = tensors->mask + b * problem->mask.batch + h * problem->mask.head + i * problem->mask.position;
  for (int64_t j = j0; j < j1; j++) visible[j - j0] = !has_pattern && j >= keys.first && j < keys.end;
  if (has_pattern && keys.first < keys.end) {
    const attn_queries q = attn_queries_of(problem, b, h, i, i + 1);
    uint8_t *first = visible + (keys.first - j0);
    for (int64_t n = 0; n < problem->term_count; n++) attn_mark_term(&problem->terms[n], &q, keys, first);
    attn_mark_tensors(&q, keys, first);
  }
  for (int64_t j = j0; j < j1; j++) {
    visible[j - j0] &= !mask || mask[j] != 0;
    count += visible[j - j0];
  }
  return count;
}

/* The same for whole tiles of rows: any number but 0 where it does. Without a pattern the keys that it sees lie side by side, and
 * their bytes of the mask are copied. */
ATTN_INLINE void attn_seen_row(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                               int64_t i, int64_t j0, int64_t j1, uint8_t *seen) {
  if (attn_has_pattern(problem)) {
    attn_visible_row(problem, tensors, b, h, i, j0, j1, seen);
    return;
  }
  const attn_range range = attn_visible_keys(problem, b, i);
  const int64_t from = attn_larger(j0, range.first), end = attn_smaller(j1, range.end);
  const attn_layout *of = &problem->mask;
  const uint8_t *mask = NULL;
  if (of->type) mask = tensors->mask + b * of->batch + h * of->head + i * of->position;
  for (int64_t j = j0; j < j1; j++) seen[j - j0] = 0;
  for (int64_t j = from; j < end; j++) seen[j - j0] = mask ? mask[j] : 1;
}

/* Whether query i sees key j. */
ATTN_INLINE bool attn_sees(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                           int64_t i, int64_t j) {
  uint8_t seen = 0;
  return attn_visible_row(problem, tensors, b, h, i, j, j + 1, &seen) == 1;
}

#endif
