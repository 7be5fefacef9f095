/* See words.h. */
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole of text as an integer. */
static bool to_integer(const char *text, int64_t *number) {
  char *end;
  if (*text != '-' && (*text < '0' || *text > '9')) return false;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0) return false;
  *number = value;
  return true;
}

bool words_integer(workload_reading *r, const char *name, const char *text, int64_t *number) {
  return to_integer(text, number) || wrong(r->to, "'%s:%s': '%s' is not a whole number", name, text, text);
}

bool words_double(workload_reading *r, const char *name, const char *text, double *number) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || *text == ' ' || isnan(value))
    return wrong(r->to, "'%s:%s': '%s' is not a number", name, text, text);
  *number = value;
  return true;
}

/* One limit of a band. */
bool words_limit(workload_reading *r, const char *name, const char *text, int64_t *limit) {
  *limit = ATTN_UNLIMITED;
  if (strcmp(text, "inf") == 0) return true;
  return (to_integer(text, limit) && *limit >= 0) ||
         wrong(r->to, "'%s': a limit of the band is 'inf' or a whole number from 0, not '%s'", name, text);
}

/* A list of integers, separated by commas. */
bool words_list(workload_reading *r, const char *name, const char *text, int64_t *numbers, int64_t *count) {
  char copy[WORKLOAD_NAME_BYTES];
  snprintf(copy, sizeof copy, "%s", text);
  *count = 0;
  if (!*text) return true; /* of a batch of 0 */
  for (char *rest = copy, *item; (item = strsep(&rest, ","));) {
    if (*count == WORKLOAD_MAX_LISTED_BATCH)
      return wrong(r->to, "'%s' lists more than %d numbers", name, WORKLOAD_MAX_LISTED_BATCH);
    if (!to_integer(item, &numbers[(*count)++]))
      return wrong(r->to, "'%s:%s': '%s' is not a whole number", name, text, item);
  }
  return true;
}

bool words_axes(workload_reading *r, const char *name, const char *text, workload_axes *axes) {
  *axes = (workload_axes){.present = true};
  if (strcmp(text, "1") == 0) return true;
  for (const char *axis = text; *axis || axis == text; axis++) {
    bool *flag = *axis == 'b'   ? &axes->batch
                 : *axis == 'h' ? &axes->head
                 : *axis == 'q' ? &axes->query
                                : NULL;
    if (!flag || *flag)
      return wrong(r->to, "'%s:%s': axes are each of b, h, q at most once, or '1'", name, text);
    *flag = true;
  }
  return true;
}

bool words_choice(workload_reading *r, const char *name, const char *text, const char *const *choices,
                  int count, int *chosen) {
  for (*chosen = 0; *chosen < count; ++*chosen)
    if (strcmp(choices[*chosen], text) == 0) return true;
  char all[256] = "";
  for (int n = 0; n < count; n++) {
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", n ? ", " : "", choices[n]);
  }
  return wrong(r->to, "unknown %s '%s': there are %s", name, text, all);
}

void words_add(workload_writing *to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(to->name + to->used, WORKLOAD_NAME_BYTES - to->used, format, arguments);
  va_end(arguments);
  to->used += (size_t)length;
  if (to->used >= WORKLOAD_NAME_BYTES) to->used = WORKLOAD_NAME_BYTES - 1;
}

/* Six digits, or as many more as read back as the same number. */
void words_add_double(workload_writing *to, const char *part, double number) {
  char digits[32];
  for (int precision = 6; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, number);
    if (strtod(digits, NULL) == number) break;
  }
  words_add(to, "/%s:%s", part, digits);
}

void words_add_list(workload_writing *to, const char *part, const int64_t *numbers, int64_t count) {
  words_add(to, "/%s:", part);
  for (int64_t n = 0; n < count && n < WORKLOAD_MAX_LISTED_BATCH; n++)
    words_add(to, "%s%" PRId64, n ? "," : "", numbers[n]);
}

void words_add_axes(workload_writing *to, const char *part, workload_axes axes) {
  if (!axes.present) return;
  const bool none = !axes.batch && !axes.head && !axes.query;
  words_add(to, "/%s:%s%s%s%s", part, axes.batch ? "b" : "", axes.head ? "h" : "", axes.query ? "q" : "",
            none ? "1" : "");
}
