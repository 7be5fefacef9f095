/* See text.h. */
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t smallest(size_t a, size_t b, size_t c) {
  if (b < a) a = b;
  return c < a ? c : a;
}

/* Levenshtein distance; words longer than the row that is kept are far from everything. */
static size_t edit_distance(const char *a, const char *b) {
  enum { LONGEST = 63 };
  size_t previous[LONGEST + 1], current[LONGEST + 1];
  size_t length = strlen(b);
  if (length > LONGEST || strlen(a) > LONGEST) return SIZE_MAX;
  for (size_t j = 0; j <= length; j++) previous[j] = j;
  for (size_t i = 0; a[i]; i++) {
    current[0] = i + 1;
    for (size_t j = 0; j < length; j++)
      current[j + 1] = smallest(previous[j] + (a[i] != b[j]), previous[j + 1] + 1, current[j] + 1);
    memcpy(previous, current, sizeof previous);
  }
  return previous[length];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t count) {
  const char *nearest = NULL;
  size_t nearest_distance = strlen(word) / 2 + 1; /* more than half changed is another word */
  for (size_t i = 0; i < count; i++) {
    size_t distance = edit_distance(word, candidates[i]);
    if (distance < nearest_distance) {
      nearest = candidates[i];
      nearest_distance = distance;
    }
  }
  return nearest;
}

bool text_is_choice(const char *choices, const char *text) {
  size_t length = strlen(text);
  for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
    if (strcspn(at, "|") == length && strncmp(at, text, length) == 0) return true;
  return false;
}

bool text_integer(const char *text, int64_t minimum, int64_t maximum, const char **end, int64_t *result) {
  char *after = NULL;
  if (!isdigit((unsigned char)*text)) return false;
  errno = 0;
  long long value = strtoll(text, &after, 10);
  *end = after;
  *result = value;
  return errno == 0 && value >= minimum && value <= maximum;
}

static bool number_with_unit(const char *text, char unit, double *result) {
  char *after = NULL;
  if (!isdigit((unsigned char)*text) && *text != '.') return false;
  *result = strtod(text, &after);
  if (after == text || !isfinite(*result)) return false;
  if (*after == unit) after++;
  return *after == '\0';
}

bool text_seconds(const char *text, double *result) { return number_with_unit(text, 's', result); }

bool text_percent(const char *text, double *result) { return number_with_unit(text, '%', result); }

bool text_flag(const char *text, bool *result) {
  *result = !text || strcmp(text, "true") == 0 || strcmp(text, "1") == 0 || strcmp(text, "yes") == 0;
  return *result || strcmp(text, "false") == 0 || strcmp(text, "0") == 0 || strcmp(text, "no") == 0;
}

bool text_seed(const char *text, uint64_t *result) {
  char *after = NULL;
  if (!isdigit((unsigned char)*text)) return false;
  errno = 0;
  *result = strtoull(text, &after, 10);
  return errno == 0 && *after == '\0';
}

void text_put_quoted(const char *word, FILE *out) {
  fputc('\'', out);
  for (; *word; word++) {
    if (*word == '\'')
      fputs("'\\''", out);
    else
      fputc(*word, out);
  }
  fputc('\'', out);
}
