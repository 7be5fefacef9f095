/* Workloads as text, both ways: the grammar stands in workload.h. Parsing is a table of parts, one
 * function each; naming writes the same parts in a fixed order and leaves defaults out, so that a name
 * parses back into the workload that it came from. */
#include "workload.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "features.h"
#include "reference/reference.h"
#include "types.h"
#include "words.h"

workload workload_default(void) {
  return (workload){
      .function = ATTN_SOFTMAX,
      .batch = 1,
      .query_heads = 4,
      .kv_heads = 4,
      .query_length = 1024,
      .key_length = 1024,
      .head_dim = 64,
      .value_dim = 64,
      .scale = NAN,
      .epsilon = WORKLOAD_EPSILON,
      .left = ATTN_UNLIMITED,
      .right = ATTN_UNLIMITED,
      .layout = LAYOUT_BHTD,
      .fill = FILL_UNIFORM,
      .seed = 1,
  };
}

static const char *const fill_names[] = {
    [FILL_UNIFORM] = "uniform",       [FILL_NORMAL] = "normal",      [FILL_HEAVY] = "heavy",
    [FILL_DOMINANT] = "dominant",     [FILL_EQUAL] = "equal",        [FILL_SATURATED] = "saturated",
    [FILL_RISING] = "rising",         [FILL_FALLING] = "falling",    [FILL_CANCELLATION] = "cancellation",
    [FILL_AROUND_ONE] = "around_one", [FILL_DENORMAL] = "denormal",  [FILL_HUGE] = "huge",
    [FILL_ZEROS] = "zeros",           [FILL_EXACT] = "exact",        [FILL_POWERS] = "powers",
    [FILL_LARGEST] = "largest",       [FILL_NONFINITE] = "nonfinite"};
static const char *const layout_names[] = {[LAYOUT_BHTD] = "bhtd",
                                           [LAYOUT_BTHD] = "bthd",
                                           [LAYOUT_SHIFTED] = "shifted",
                                           [LAYOUT_PADDED] = "padded",
                                           [LAYOUT_MIXED] = "mixed"};

enum { FILLS = sizeof fill_names / sizeof fill_names[0] };
enum { LAYOUTS = sizeof layout_names / sizeof layout_names[0] };

static bool read_band(workload_reading *r, const char *text) {
  char copy[WORKLOAD_NAME_BYTES];
  snprintf(copy, sizeof copy, "%s", text);
  char *rest = copy, *left = strsep(&rest, ","), *right = strsep(&rest, ","), *offset = rest;
  if (!left || !right || !offset) return wrong(r->to, "'band:%s': a band is band:LEFT,RIGHT,OFFSET", text);
  workload *w = &r->workload;
  return words_limit(r, "band", left, &w->left) && words_limit(r, "band", right, &w->right) &&
         words_integer(r, "band", offset, &w->offset);
}

/* Adds "word, " to a list of words. */
static void list_word(char *all, size_t size, const char *word, const char *ending) {
  const size_t used = strlen(all);
  snprintf(all + used, size - used, "%s%s, ", word, ending);
}

/* The words of all parts, for the message about one that is none. */
static bool refuse_part(const workload_reading *r, const char *part) {
  char all[640] = "full, causal, causal_bottom_right, window:W, band:LEFT,RIGHT,OFFSET, ";
  for (int n = 0; n < REFERENCE_FUNCTIONS; n++)
    if (n != ATTN_SOFTMAX && reference_function_of((attn_function)n))
      list_word(all, sizeof all, reference_function_of((attn_function)n)->name, "");
  list_word(all, sizeof all, "B:, H:, Hkv:, D:, Dv:, M:, T:, Tq:, Tk:", "");
  for (int n = 0; n < FEATURES; n++)
    if (feature_table[n].key)
      list_word(all, sizeof all, feature_table[n].key, feature_table[n].flag ? "" : ":");
  return wrong(r->to, "unknown part '%s': parts are %sf32, bf16, f16, out:, layout:, fill:, seed:", part,
               all);
}

static bool read_function(workload_reading *r, const char *word) {
  for (int n = 0; n < REFERENCE_FUNCTIONS; n++) {
    const reference_function *function = reference_function_of((attn_function)n);
    if (!function || strcmp(function->name, word) != 0) continue;
    r->workload.function = (attn_function)n;
    return true;
  }
  return false;
}

/* A part without a colon. */
static bool read_word(workload_reading *r, const char *word) {
  workload *w = &r->workload;
  const feature_row *feature = feature_find(word, false);
  if (feature) return feature_read(feature, r, "");
  if (read_function(r, word)) {
    if (r->said_function)
      return wrong(r->to, "'%s': a problem is of one function, and another is said before it", word);
    return r->said_function = true;
  }
  if (element_type_named(word)) {
    w->type = element_type_named(word);
    return true;
  }
  if (strcmp(word, "full") == 0) {
    w->left = w->right = ATTN_UNLIMITED;
    w->offset = 0;
    return true;
  }
  if (strcmp(word, "causal") != 0 && strcmp(word, "causal_bottom_right") != 0) return refuse_part(r, word);
  w->left = ATTN_UNLIMITED;
  w->right = w->offset = 0;
  r->bottom_right = strcmp(word, "causal") != 0;
  return true;
}

/* The sizes: a name, where it goes, and the note that it was said. */
static bool read_size(workload_reading *r, const char *name, const char *text, bool *known) {
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
               {"M", &w->model_dim, &r->said_model_dim},
               {"Tq", &w->query_length, &r->said_query_length},
               {"Tk", &w->key_length, &r->said_key_length}};
  for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
    if (strcmp(sizes[n].name, name) != 0) continue;
    *known = true;
    if (sizes[n].said) *sizes[n].said = true;
    return words_integer(r, name, text, sizes[n].size);
  }
  if (strcmp(name, "T") != 0) return true;
  *known = r->said_query_length = r->said_key_length = true;
  if (!words_integer(r, name, text, &w->query_length)) return false;
  w->key_length = w->query_length;
  return true;
}

static bool read_part(workload_reading *r, char *part) {
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
    return words_limit(r, name, text, &w->left);
  }
  if (strcmp(name, "band") == 0) return read_band(r, text);
  const feature_row *feature = feature_find(name, true);
  if (feature) return feature_read(feature, r, text);
  if (strcmp(name, "out") == 0) {
    w->output_type = element_type_named(text);
    return w->output_type == ATTN_FLOAT32 ||
           wrong(r->to, "'out:%s': an output of another type is out:f32", text);
  }
  if (strcmp(name, "layout") == 0) {
    if (!words_choice(r, name, text, layout_names, LAYOUTS, &chosen)) return false;
    w->layout = (workload_layout)chosen;
    return true;
  }
  if (strcmp(name, "fill") == 0) {
    if (!words_choice(r, name, text, fill_names, FILLS, &chosen)) return false;
    w->fill = (workload_fill)chosen;
    return true;
  }
  if (strcmp(name, "seed") == 0) {
    char *end;
    errno = 0;
    w->seed = strtoull(text, &end, 10);
    w->names_seed = true;
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
      return wrong(r->to, "'seed:%s': '%s' is not a whole number from 0", text, text);
    return true;
  }
  text[-1] = ':';
  return refuse_part(r, part);
}

static bool check_lists(const workload_reading *r, bool has_offsets, bool has_lengths,
                        bool has_query_lengths) {
  const workload *w = &r->workload;
  if (has_query_lengths && r->query_length_count != w->batch)
    return wrong(r->to, "qlengths lists %" PRId64 " numbers, but B is %" PRId64, r->query_length_count,
                 w->batch);
  if (has_offsets && r->offset_count != w->batch)
    return wrong(r->to, "offsets lists %" PRId64 " numbers, but B is %" PRId64, r->offset_count, w->batch);
  if (has_lengths && r->length_count != w->batch)
    return wrong(r->to, "lengths lists %" PRId64 " numbers, but B is %" PRId64, r->length_count, w->batch);
  return true;
}

bool workload_say(workload *w, const char *parts, char *why, size_t why_size) {
  workload_reading r = {.workload = *w, .to = {why, why_size}};
  char copy[WORKLOAD_NAME_BYTES];
  snprintf(copy, sizeof copy, "%s", parts);
  for (char *rest = copy, *part; (part = strsep(&rest, "/"));)
    if (!read_part(&r, part)) return false;
  if (!check_lists(&r, r.offset_count > 0, r.length_count > 0, r.query_length_count > 0)) return false;
  if (r.bottom_right) r.workload.offset = r.workload.key_length - r.workload.query_length;
  *w = r.workload;
  return true;
}

/* Sizes that follow others, and lists against the batch. */
static bool finish(workload_reading *r) {
  workload *w = &r->workload;
  if (!r->said_kv_heads) w->kv_heads = w->query_heads;
  if (!r->said_value_dim) w->value_dim = w->head_dim;
  if (r->said_model_dim && w->model_dim == 0)
    return wrong(r->to, "M is 0: a layer has one feature or more, and H x D where M is not said");
  if (w->function == ATTN_LAYER && w->model_dim == 0 &&
      __builtin_mul_overflow(w->query_heads, w->head_dim, &w->model_dim))
    return wrong(r->to, "H x D is out of range");
  if (r->said_query_length != r->said_key_length)
    return wrong(r->to, "%s is given without %s: give both, or T for both",
                 r->said_query_length ? "Tq" : "Tk", r->said_query_length ? "Tk" : "Tq");
  if (r->bottom_right && __builtin_sub_overflow(w->key_length, w->query_length, &w->offset))
    return wrong(r->to, "Tk - Tq is out of range");
  return check_lists(r, w->has_offsets, w->has_lengths, w->has_query_lengths);
}

bool workload_parse(const char *text, workload *result, char *why, size_t why_size) {
  workload_reading r = {.workload = workload_default(), .to = {why, why_size}};
  char copy[WORKLOAD_NAME_BYTES];
  const size_t length = strlen(text);
  if (length >= sizeof copy)
    return wrong(r.to, "a workload of %zu letters is too long: at most %zu", length, sizeof copy - 1);
  memcpy(copy, text, length + 1);
  for (char *rest = copy, *part; (part = strsep(&rest, "/"));)
    if (!read_part(&r, part)) return false;
  if (!finish(&r)) return false;
  *result = r.workload;
  return true;
}

workload workload_written(const char *text) {
  workload result = workload_default();
  char why[256] = "";
  const bool sound = workload_parse(text, &result, why, sizeof why);
  assert(sound && "written in workload's own words");
  (void)sound;
  return result;
}

static void add_limit(workload_writing *to, int64_t limit) {
  if (limit == ATTN_UNLIMITED)
    words_add(to, "inf,");
  else
    words_add(to, "%" PRId64 ",", limit);
}

static void add_band(workload_writing *to, const workload *w) {
  const bool left = w->left != ATTN_UNLIMITED, right = w->right != ATTN_UNLIMITED;
  if (!left && !right && w->offset == 0) {
    words_add(to, "full");
  } else if (!left && w->right == 0 && w->offset == 0) {
    words_add(to, "causal");
  } else if (!left && w->right == 0 && w->offset == w->key_length - w->query_length) {
    words_add(to, "causal_bottom_right");
  } else if (left && w->right == 0 && w->offset == 0) {
    words_add(to, "window:%" PRId64, w->left);
  } else {
    words_add(to, "band:");
    add_limit(to, w->left);
    add_limit(to, w->right);
    words_add(to, "%" PRId64, w->offset);
  }
}

void workload_band(const workload *w, char text[WORKLOAD_NAME_BYTES]) {
  workload_writing to = {text, 0};
  add_band(&to, w);
}

const char *workload_layout_name(workload_layout layout) { return layout_names[layout]; }
const char *workload_fill_name(workload_fill fill) { return fill_names[fill]; }

void workload_seed_unnamed(workload *w, uint64_t seed) {
  if (!w->names_seed) w->seed = seed;
}

void workload_name(const workload *w, char name[WORKLOAD_NAME_BYTES]) {
  workload_writing to = {name, 0};
  if (w->function != ATTN_SOFTMAX) words_add(&to, "%s/", reference_function_of(w->function)->name);
  add_band(&to, w);
  words_add(&to, "/B:%" PRId64 "/H:%" PRId64 "/Hkv:%" PRId64 "/D:%" PRId64, w->batch, w->query_heads,
            w->kv_heads, w->head_dim);
  if (w->value_dim != w->head_dim) words_add(&to, "/Dv:%" PRId64, w->value_dim);
  if (w->function == ATTN_LAYER) words_add(&to, "/M:%" PRId64, w->model_dim);
  if (w->query_length == w->key_length)
    words_add(&to, "/T:%" PRId64, w->query_length);
  else
    words_add(&to, "/Tq:%" PRId64 "/Tk:%" PRId64, w->query_length, w->key_length);
  for (int n = 0; n < FEATURES; n++) feature_write(&feature_table[n], w, &to);
  const workload usual = workload_default();
  if (element_type_is_narrow(w->type)) {
    words_add(&to, "/%s", element_type_of(w->type)->name);
    if (w->output_type == ATTN_FLOAT32) words_add(&to, "/out:f32");
  }
  if (w->layout != usual.layout) words_add(&to, "/layout:%s", layout_names[w->layout]);
  if (w->fill != usual.fill) words_add(&to, "/fill:%s", fill_names[w->fill]);
  if (w->seed != usual.seed || w->names_seed) words_add(&to, "/seed:%" PRIu64, w->seed);
}
