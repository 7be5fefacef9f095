/* Workloads as text, both ways: the grammar stands in workload.h. Parsing is a table of parts, one
 * function each; naming writes the same parts in a fixed order and leaves defaults out, so that a name
 * parses back into the workload that it came from. */
#include "workload.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const fill_names[] = {
    [FILL_UNIFORM] = "uniform",   [FILL_NORMAL] = "normal",      [FILL_HEAVY] = "heavy",
    [FILL_DOMINANT] = "dominant", [FILL_EQUAL] = "equal",        [FILL_SATURATED] = "saturated",
    [FILL_RISING] = "rising",     [FILL_FALLING] = "falling",    [FILL_CANCELLATION] = "cancellation",
    [FILL_DENORMAL] = "denormal", [FILL_HUGE] = "huge",          [FILL_ZEROS] = "zeros",
    [FILL_LARGEST] = "largest",   [FILL_NONFINITE] = "nonfinite"};
static const char *const layout_names[] = {
    [LAYOUT_BHTD] = "bhtd", [LAYOUT_BTHD] = "bthd", [LAYOUT_SHIFTED] = "shifted", [LAYOUT_PADDED] = "padded"};

enum { FILLS = sizeof fill_names / sizeof fill_names[0] };
enum { LAYOUTS = sizeof layout_names / sizeof layout_names[0] };

/* What has been read so far; sizes that were not said follow others. */
typedef struct reading {
  workload workload;
  bool said_kv_heads, said_value_dim, said_query_length, said_key_length;
  bool bottom_right;
  int64_t offset_count, length_count;
  char *why;
  size_t why_size;
} reading;

__attribute__((format(printf, 2, 3))) static bool wrong(reading *r, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (r->why_size > 0) vsnprintf(r->why, r->why_size, format, arguments);
  va_end(arguments);
  return false;
}

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

static bool read_integer(reading *r, const char *name, const char *text, int64_t *number) {
  return to_integer(text, number) || wrong(r, "'%s:%s': '%s' is not a whole number", name, text, text);
}

static bool read_double(reading *r, const char *name, const char *text, double *number) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || *text == ' ' || isnan(value))
    return wrong(r, "'%s:%s': '%s' is not a number", name, text, text);
  *number = value;
  return true;
}

/* One limit of a band. */
static bool read_limit(reading *r, const char *name, const char *text, int64_t *limit) {
  *limit = ATTN_UNLIMITED;
  if (strcmp(text, "inf") == 0) return true;
  return (to_integer(text, limit) && *limit >= 0) ||
         wrong(r, "'%s': a limit of the band is 'inf' or a whole number from 0, not '%s'", name, text);
}

/* A list of integers, separated by commas. */
static bool read_list(reading *r, const char *name, const char *text, int64_t *numbers, int64_t *count) {
  char copy[WORKLOAD_NAME_BYTES];
  snprintf(copy, sizeof copy, "%s", text);
  *count = 0;
  if (!*text) return true; /* of a batch of 0 */
  for (char *rest = copy, *item; (item = strsep(&rest, ","));) {
    if (*count == WORKLOAD_MAX_LISTED_BATCH)
      return wrong(r, "'%s' lists more than %d numbers", name, WORKLOAD_MAX_LISTED_BATCH);
    if (!to_integer(item, &numbers[(*count)++]))
      return wrong(r, "'%s:%s': '%s' is not a whole number", name, text, item);
  }
  return true;
}

static bool read_axes(reading *r, const char *name, const char *text, workload_axes *axes) {
  *axes = (workload_axes){.present = true};
  if (strcmp(text, "1") == 0) return true;
  for (const char *axis = text; *axis || axis == text; axis++) {
    bool *flag = *axis == 'b'   ? &axes->batch
                 : *axis == 'h' ? &axes->head
                 : *axis == 'q' ? &axes->query
                                : NULL;
    if (!flag || *flag) return wrong(r, "'%s:%s': axes are each of b, h, q at most once, or '1'", name, text);
    *flag = true;
  }
  return true;
}

static bool read_choice(reading *r, const char *name, const char *text, const char *const *choices, int count,
                        int *chosen) {
  for (*chosen = 0; *chosen < count; ++*chosen)
    if (strcmp(choices[*chosen], text) == 0) return true;
  char all[256] = "";
  for (int n = 0; n < count; n++) {
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", n ? ", " : "", choices[n]);
  }
  return wrong(r, "unknown %s '%s': there are %s", name, text, all);
}

static bool read_band(reading *r, const char *text) {
  char copy[WORKLOAD_NAME_BYTES];
  snprintf(copy, sizeof copy, "%s", text);
  char *rest = copy, *left = strsep(&rest, ","), *right = strsep(&rest, ","), *offset = rest;
  if (!left || !right || !offset) return wrong(r, "'band:%s': a band is band:LEFT,RIGHT,OFFSET", text);
  workload *w = &r->workload;
  return read_limit(r, "band", left, &w->left) && read_limit(r, "band", right, &w->right) &&
         read_integer(r, "band", offset, &w->offset);
}

/* A part without a colon. */
static bool read_word(reading *r, const char *word) {
  workload *w = &r->workload;
  if (strcmp(word, "linear") == 0) {
    w->function = ATTN_LINEAR;
  } else if (strcmp(word, "lse") == 0) {
    w->wants_lse = true;
  } else if (strcmp(word, "weights") == 0) {
    w->wants_weights = true;
  } else if (strcmp(word, "full") == 0) {
    w->left = w->right = ATTN_UNLIMITED;
    w->offset = 0;
  } else if (strcmp(word, "causal") == 0 || strcmp(word, "causal_bottom_right") == 0) {
    w->left = ATTN_UNLIMITED;
    w->right = w->offset = 0;
    r->bottom_right = strcmp(word, "causal") != 0;
  } else {
    return wrong(r,
                 "unknown part '%s': parts are full, causal, causal_bottom_right, window:W, "
                 "band:LEFT,RIGHT,OFFSET, linear, B:, H:, Hkv:, D:, Dv:, T:, Tq:, Tk:, offsets:, lengths:, "
                 "scale:, softcap:, epsilon:, mask:, bias:, lse, weights, layout:, fill:, seed:",
                 word);
  }
  return true;
}

/* The sizes: a name, where it goes, and the note that it was said. */
static bool read_size(reading *r, const char *name, const char *text, bool *known) {
  workload *w = &r->workload;
  const struct {
    const char *name;
    int64_t *size;
    bool *said;
  } sizes[] = {{"B", &w->batch, NULL},
               {"H", &w->query_heads, NULL},
               {"Hkv", &w->kv_heads, &r->said_kv_heads},
               {"D", &w->head_dim, NULL},
               {"Dv", &w->value_dim, &r->said_value_dim},
               {"Tq", &w->query_length, &r->said_query_length},
               {"Tk", &w->key_length, &r->said_key_length}};
  for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
    if (strcmp(sizes[n].name, name) != 0) continue;
    *known = true;
    if (sizes[n].said) *sizes[n].said = true;
    return read_integer(r, name, text, sizes[n].size);
  }
  if (strcmp(name, "T") != 0) return true;
  *known = r->said_query_length = r->said_key_length = true;
  if (!read_integer(r, name, text, &w->query_length)) return false;
  w->key_length = w->query_length;
  return true;
}

static bool read_part(reading *r, char *part) {
  workload *w = &r->workload;
  char *text = strchr(part, ':');
  if (!text) return read_word(r, part);
  const char *name = part;
  int chosen = 0;
  bool known = false;
  *text++ = '\0';
  if (!read_size(r, name, text, &known)) return false;
  if (known) return true;
  if (strcmp(name, "window") == 0) {
    w->right = w->offset = 0;
    return read_limit(r, name, text, &w->left);
  }
  if (strcmp(name, "band") == 0) return read_band(r, text);
  if (strcmp(name, "offsets") == 0) {
    w->has_offsets = true;
    return read_list(r, name, text, w->offsets, &r->offset_count);
  }
  if (strcmp(name, "lengths") == 0) {
    w->has_lengths = true;
    return read_list(r, name, text, w->lengths, &r->length_count);
  }
  if (strcmp(name, "scale") == 0) return read_double(r, name, text, &w->scale);
  if (strcmp(name, "softcap") == 0) return read_double(r, name, text, &w->softcap);
  if (strcmp(name, "epsilon") == 0) return read_double(r, name, text, &w->epsilon);
  if (strcmp(name, "mask") == 0) return read_axes(r, name, text, &w->mask);
  if (strcmp(name, "bias") == 0) return read_axes(r, name, text, &w->bias);
  if (strcmp(name, "layout") == 0) {
    if (!read_choice(r, name, text, layout_names, LAYOUTS, &chosen)) return false;
    w->layout = (workload_layout)chosen;
    return true;
  }
  if (strcmp(name, "fill") == 0) {
    if (!read_choice(r, name, text, fill_names, FILLS, &chosen)) return false;
    w->fill = (workload_fill)chosen;
    return true;
  }
  if (strcmp(name, "seed") == 0) {
    char *end;
    errno = 0;
    w->seed = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
      return wrong(r, "'seed:%s': '%s' is not a whole number from 0", text, text);
    return true;
  }
  text[-1] = ':';
  return read_word(r, part); /* says which parts there are */
}

/* Sizes that follow others, and lists against the batch. */
static bool finish(reading *r) {
  workload *w = &r->workload;
  if (!r->said_kv_heads) w->kv_heads = w->query_heads;
  if (!r->said_value_dim) w->value_dim = w->head_dim;
  if (r->said_query_length != r->said_key_length)
    return wrong(r, "%s is given without %s: give both, or T for both", r->said_query_length ? "Tq" : "Tk",
                 r->said_query_length ? "Tk" : "Tq");
  if (r->bottom_right && __builtin_sub_overflow(w->key_length, w->query_length, &w->offset))
    return wrong(r, "Tk - Tq is out of range");
  if (w->has_offsets && r->offset_count != w->batch)
    return wrong(r, "offsets lists %" PRId64 " numbers, but B is %" PRId64, r->offset_count, w->batch);
  if (w->has_lengths && r->length_count != w->batch)
    return wrong(r, "lengths lists %" PRId64 " numbers, but B is %" PRId64, r->length_count, w->batch);
  return true;
}

bool workload_parse(const char *text, workload *result, char *why, size_t why_size) {
  reading r = {.workload = workload_default(), .why = why, .why_size = why_size};
  char copy[WORKLOAD_NAME_BYTES];
  const size_t length = strlen(text);
  if (length >= sizeof copy)
    return wrong(&r, "a workload of %zu letters is too long: at most %zu", length, sizeof copy - 1);
  memcpy(copy, text, length + 1);
  for (char *rest = copy, *part; (part = strsep(&rest, "/"));)
    if (!read_part(&r, part)) return false;
  if (!finish(&r)) return false;
  *result = r.workload;
  return true;
}

/* A name while it is written. It always fits: see WORKLOAD_NAME_BYTES. */
typedef struct writing {
  char *name;
  size_t used;
} writing;

__attribute__((format(printf, 2, 3))) static void add(writing *to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(to->name + to->used, WORKLOAD_NAME_BYTES - to->used, format, arguments);
  va_end(arguments);
  to->used += (size_t)length;
  if (to->used >= WORKLOAD_NAME_BYTES) to->used = WORKLOAD_NAME_BYTES - 1;
}

/* Six digits, or as many more as read back as the same number. */
static void add_double(writing *to, const char *part, double number) {
  char digits[32];
  for (int precision = 6; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, number);
    if (strtod(digits, NULL) == number) break;
  }
  add(to, "/%s:%s", part, digits);
}

static void add_limit(writing *to, int64_t limit) {
  if (limit == ATTN_UNLIMITED)
    add(to, "inf,");
  else
    add(to, "%" PRId64 ",", limit);
}

static void add_band(writing *to, const workload *w) {
  const bool left = w->left != ATTN_UNLIMITED, right = w->right != ATTN_UNLIMITED;
  if (!left && !right && w->offset == 0) {
    add(to, "full");
  } else if (!left && w->right == 0 && w->offset == 0) {
    add(to, "causal");
  } else if (!left && w->right == 0 && w->offset == w->key_length - w->query_length) {
    add(to, "causal_bottom_right");
  } else if (left && w->right == 0 && w->offset == 0) {
    add(to, "window:%" PRId64, w->left);
  } else {
    add(to, "band:");
    add_limit(to, w->left);
    add_limit(to, w->right);
    add(to, "%" PRId64, w->offset);
  }
}

static void add_list(writing *to, const char *part, const int64_t *numbers, int64_t count) {
  add(to, "/%s:", part);
  for (int64_t n = 0; n < count && n < WORKLOAD_MAX_LISTED_BATCH; n++)
    add(to, "%s%" PRId64, n ? "," : "", numbers[n]);
}

static void add_axes(writing *to, const char *part, workload_axes axes) {
  if (!axes.present) return;
  const bool none = !axes.batch && !axes.head && !axes.query;
  add(to, "/%s:%s%s%s%s", part, axes.batch ? "b" : "", axes.head ? "h" : "", axes.query ? "q" : "",
      none ? "1" : "");
}

void workload_seed_unnamed(workload *w, uint64_t seed) {
  if (w->seed == workload_default().seed) w->seed = seed;
}

void workload_name(const workload *w, char name[WORKLOAD_NAME_BYTES]) {
  writing to = {name, 0};
  if (w->function == ATTN_LINEAR) add(&to, "linear/");
  add_band(&to, w);
  add(&to, "/B:%" PRId64 "/H:%" PRId64 "/Hkv:%" PRId64 "/D:%" PRId64, w->batch, w->query_heads, w->kv_heads,
      w->head_dim);
  if (w->value_dim != w->head_dim) add(&to, "/Dv:%" PRId64, w->value_dim);
  if (w->query_length == w->key_length)
    add(&to, "/T:%" PRId64, w->query_length);
  else
    add(&to, "/Tq:%" PRId64 "/Tk:%" PRId64, w->query_length, w->key_length);
  if (w->has_offsets) add_list(&to, "offsets", w->offsets, w->batch);
  if (w->has_lengths) add_list(&to, "lengths", w->lengths, w->batch);
  const workload usual = workload_default();
  if (!isnan(w->scale)) add_double(&to, "scale", w->scale);
  if (w->softcap != usual.softcap) add_double(&to, "softcap", w->softcap);
  if (w->epsilon != usual.epsilon) add_double(&to, "epsilon", w->epsilon);
  add_axes(&to, "mask", w->mask);
  add_axes(&to, "bias", w->bias);
  if (w->wants_lse) add(&to, "/lse");
  if (w->wants_weights) add(&to, "/weights");
  if (w->layout != usual.layout) add(&to, "/layout:%s", layout_names[w->layout]);
  if (w->fill != usual.fill) add(&to, "/fill:%s", fill_names[w->fill]);
  if (w->seed != usual.seed) add(&to, "/seed:%" PRIu64, w->seed);
}
