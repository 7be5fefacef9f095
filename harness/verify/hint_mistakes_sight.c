/* Who sees whom: pattern, key lengths, alignment of the diagonal, ends of the band. */
#include "hint_mistake_rows.h"

static bool has_offset(const asked *a) { return a->problem->offset != 0 || a->problem->offsets; }

static bool sees(asked *a, int64_t left, int64_t right, int64_t offset, int64_t length) {
  attn_problem other = *a->problem;
  const attn_range before = a->keys;
  other.left = left;
  other.right = right;
  other.offset = offset;
  other.offsets = NULL;
  other.key_lengths = NULL;
  other.key_length = length;
  a->keys = hint_band(&other, a->at);
  return a->keys.first != before.first || a->keys.end != before.end;
}
static bool aligned(asked *a, int64_t offset) {
  return is_limited(a) && sees(a, a->problem->left, a->problem->right, offset, length_of(a));
}

static bool top_left(asked *a, int64_t n) { return (void)n, has_offset(a) && aligned(a, 0); }
static bool bottom_right(asked *a, int64_t n) {
  return (void)n, aligned(a, a->problem->key_length - a->problem->query_length);
}
static bool bottom_right_of_length(asked *a, int64_t n) {
  return (void)n, aligned(a, length_of(a) - a->problem->query_length);
}
static bool uses_pattern(const asked *a) {
  return a->problem->term_count > 0 || a->problem->query_documents.type || a->problem->blocks.type ||
         a->problem->topk.type;
}
static bool no_pattern(asked *a, int64_t n) {
  return (void)n, uses_pattern(a) && (a->pattern_ignored = true);
}
static bool pattern_of_head(asked *a, int64_t n) {
  const attn_problem *p = a->problem;
  const bool varies = (p->blocks.type && p->blocks.head != 0) || (p->topk.type && p->topk.head != 0);
  return varies && move(&a->pattern.h, n);
}
/* Tensors are no matter of positions. */
static bool pattern_without_offset(asked *a, int64_t n) {
  const attn_problem *p = a->problem;
  if (p->term_count == 0 || p->query_documents.type || p->blocks.type || p->topk.type) return false;
  return (void)n, move(&a->pattern.i, a->at.i - offset_of(a));
}
static bool offset_of_first(asked *a, int64_t n) {
  return (void)n, a->problem->offsets && aligned(a, a->problem->offsets[0]);
}
static bool offset_sign(asked *a, int64_t n) { return (void)n, aligned(a, -offset_of(a)); }
static bool right_by(asked *a, int64_t n) {
  const int64_t right = a->problem->right, length = length_of(a);
  if (right == ATTN_UNLIMITED) return false;
  if (right + n >= 0) return sees(a, a->problem->left, right + n, offset_of(a), length);
  /* Ends before the query itself. */
  const int64_t end = a->at.i + offset_of(a) + right + n + 1;
  if (end >= a->keys.end) return false;
  a->keys.end = end > a->keys.first ? end : a->keys.first;
  return true;
}
static bool left_by(asked *a, int64_t n) {
  const int64_t left = a->problem->left;
  if (left == ATTN_UNLIMITED) return false;
  if (left + n >= 0) return sees(a, left + n, a->problem->right, offset_of(a), length_of(a));
  if (a->keys.first >= a->keys.end) return false;
  a->keys.first++;
  return true;
}
static bool both_by(asked *a, int64_t n) {
  if (a->problem->left == ATTN_UNLIMITED || a->problem->right == ATTN_UNLIMITED) return false;
  return aligned(a, offset_of(a) + n);
}
static bool no_right(asked *a, int64_t n) {
  return (void)n, a->problem->right != ATTN_UNLIMITED &&
                      sees(a, a->problem->left, ATTN_UNLIMITED, offset_of(a), length_of(a));
}
static bool no_left(asked *a, int64_t n) {
  return (void)n, a->problem->left != ATTN_UNLIMITED &&
                      sees(a, ATTN_UNLIMITED, a->problem->right, offset_of(a), length_of(a));
}
static bool no_band(asked *a, int64_t n) {
  return (void)n, is_limited(a) && sees(a, ATTN_UNLIMITED, ATTN_UNLIMITED, 0, length_of(a));
}
static bool no_lengths(asked *a, int64_t n) {
  return (void)n, a->problem->key_lengths &&
                      sees(a, a->problem->left, a->problem->right, offset_of(a), a->problem->key_length);
}
static bool length_by(asked *a, int64_t n) {
  const int64_t length = length_of(a) + n;
  if (!a->problem->key_lengths || length < 0 || length > a->problem->key_length) return false;
  return sees(a, a->problem->left, a->problem->right, offset_of(a), length);
}
static bool of_first(asked *a, int64_t offset) {
  if (!a->problem->key_lengths) return false;
  return sees(a, a->problem->left, a->problem->right, offset, a->problem->key_lengths[0]);
}
static bool length_of_first(asked *a, int64_t n) { return (void)n, of_first(a, offset_of(a)); }
static bool both_of_first(asked *a, int64_t n) {
  return (void)n, a->problem->offsets && of_first(a, a->problem->offsets[0]);
}

static bool window_of_tiles(asked *a, int64_t n) {
  const attn_range before = a->keys;
  if (before.first >= before.end || !is_limited(a)) return false;
  a->keys.first = before.first / n * n;
  a->keys.end = (before.end + n - 1) / n * n;
  if (a->keys.end > length_of(a)) a->keys.end = length_of(a);
  return a->keys.first != before.first || a->keys.end != before.end;
}

/* The ends of what the band lets a row see, whether it sees anything or not. */
static attn_range ends_of(const asked *a) {
  const attn_problem *p = a->problem;
  const int64_t centre = a->at.i + offset_of(a), length = length_of(a);
  attn_range ends = {0, length};
  if (p->left != ATTN_UNLIMITED && centre > p->left) ends.first = centre - p->left;
  if (p->right != ATTN_UNLIMITED && centre + p->right + 1 < length) ends.end = centre + p->right + 1;
  return ends;
}
static bool sees_between(asked *a, int64_t first, int64_t end) {
  const attn_range before = a->keys;
  a->keys = first < end ? (attn_range){first, end} : (attn_range){0, 0};
  return a->keys.first != before.first || a->keys.end != before.end;
}
static bool left_of_tiles(asked *a, int64_t n) {
  const attn_range ends = ends_of(a);
  return a->problem->left != ATTN_UNLIMITED && sees_between(a, ends.first / n * n, ends.end);
}
static bool right_of_tiles(asked *a, int64_t n) {
  const attn_range ends = ends_of(a);
  const int64_t end = ends.end > 0 ? (ends.end + n - 1) / n * n : 0;
  return a->problem->right != ATTN_UNLIMITED &&
         sees_between(a, ends.first, end < length_of(a) ? end : length_of(a));
}
static bool as_row(asked *a, int64_t i) {
  if (!is_limited(a)) return false;
  const attn_range range =
      hint_band(a->problem, (row_place){a->at.b, a->at.h,
                                        i < a->problem->query_length ? i : a->problem->query_length - 1});
  return sees_between(a, range.first, range.end);
}
static bool as_first_of_tile(asked *a, int64_t n) { return as_row(a, a->at.i / n * n); }
static bool as_last_of_tile(asked *a, int64_t n) { return as_row(a, a->at.i / n * n + n - 1); }

static const mistake table[] = {
    {"pattern", "the pattern is ignored: every key of the band is seen", BOTH, ONCE, no_pattern},
    {"pattern", "the pattern of head %lld is taken for every head", BOTH, WITH(0), pattern_of_head},
    {"pattern", "the pattern counts positions from i, and not from i + offset", BOTH, ONCE,
     pattern_without_offset},
    {"lengths", "the key lengths are ignored", BOTH, ONCE, no_lengths},
    {"lengths", "the key length is off by %lld", BOTH, WITH(1, -1), length_by},
    {"lengths", "the key length of the first batch entry is taken for every entry", BOTH, ONCE,
     length_of_first},
    {"lengths", "offset and key length of the first batch entry are taken for every entry", BOTH, ONCE,
     both_of_first},
    {"alignment", "the diagonal is aligned top left (offset 0)", BOTH, ONCE, top_left},
    {"alignment", "the offset of the first batch entry is taken for every entry", BOTH, ONCE,
     offset_of_first},
    {"alignment", "the diagonal is aligned bottom right (offset Tk - Tq)", BOTH, ONCE, bottom_right},
    {"alignment", "the diagonal is aligned bottom right by the key lengths", BOTH, ONCE,
     bottom_right_of_length},
    {"alignment", "the offset has the other sign", BOTH, ONCE, offset_sign},
    {"band", "the right end of the band is off by %lld", BOTH, WITH(1, -1), right_by},
    {"band", "the left end of the band is off by %lld: positive sees more", BOTH, WITH(1, -1), left_by},
    {"band", "the window is shifted by %lld", BOTH, WITH(1, -1), both_by},
    {"band", "the band is ignored: every key is seen", BOTH, ONCE, no_band},
    {"band", "the right end of the band is ignored: later keys are seen", BOTH, ONCE, no_right},
    {"band", "the left end of the band is ignored: earlier keys are seen", BOTH, ONCE, no_left},
    {"band", "the band is cut to whole tiles of %lld keys, and keys at its ends are not hidden", BOTH, TILES,
     window_of_tiles},
    {"band", "the left end of the band is cut to whole tiles of %lld keys, and what is before it not hidden",
     BOTH, TILES, left_of_tiles},
    {"band", "the right end of the band is cut to whole tiles of %lld keys, and what is behind it not hidden",
     BOTH, TILES, right_of_tiles},
    {"band", "all rows of a tile of %lld queries see what its first one sees", BOTH, TILES, as_first_of_tile},
    {"band", "all rows of a tile of %lld queries see what its last one sees", BOTH, TILES, as_last_of_tile},
};

const mistakes hint_mistakes_of_sight = MISTAKES(table);
