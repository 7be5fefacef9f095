/* Reads a case folder: case.txt and the raw little-endian arrays beside it. */
#include "cases.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 256 };

/* Both machines that this runs on are little-endian, as the files are. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "case files are read without swapping bytes");

/* ---- case.txt ---- */

typedef struct case_key {
  const char *name;
  int64_t *integer; /* where the value goes: one of these */
  double *number;
  bool *flag;
  bool seen;
} case_key;

static bool parse_value(const case_key *key, const char *text) {
  char *end;
  errno = 0;
  if (key->number) {
    *key->number = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*key->number);
  }
  const long long value = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0) return false;
  if (key->flag) {
    *key->flag = value == 1;
    return value == 0 || value == 1;
  }
  *key->integer = value;
  return true;
}

static bool parse_function(const char *text, attn_function *function) {
  *function = strcmp(text, "linear") == 0 ? ATTN_LINEAR : ATTN_SOFTMAX;
  return *function == ATTN_LINEAR || strcmp(text, "softmax") == 0;
}

/* One line: "key value". */
static bool parse_line(case_key *keys, size_t key_count, attn_function *function, const char *path,
                       const char *line, char *why, size_t why_size) {
  char name[LINE_BYTES], value[LINE_BYTES], more;
  _Static_assert(LINE_BYTES == 256, "the widths below are one less");
  const int fields = sscanf(line, "%255s %255s %c", name, value, &more);
  if (fields <= 0) return true;
  if (fields != 2) {
    snprintf(why, why_size, "%s: '%s' is not 'key value'", path, name);
    return false;
  }
  for (size_t n = 0; n < key_count; n++) {
    if (strcmp(name, keys[n].name) != 0) continue;
    const bool has_target = keys[n].integer || keys[n].number || keys[n].flag;
    if (keys[n].seen) {
      snprintf(why, why_size, "%s: '%s' is given twice", path, name);
    } else if (has_target ? !parse_value(&keys[n], value) : !parse_function(value, function)) {
      const char *right = !has_target      ? "softmax or linear"
                          : keys[n].flag   ? "0 or 1"
                          : keys[n].number ? "a finite number"
                                           : "a whole number";
      snprintf(why, why_size, "%s: '%s %s' should be %s", path, name, value, right);
    } else {
      return keys[n].seen = true;
    }
    return false;
  }
  snprintf(why, why_size, "%s: unknown key '%s'", path, name);
  return false;
}

static bool read_case_text(attn_problem *problem, bool *has_lengths, const char *folder, char *why,
                           size_t why_size) {
  case_key keys[] = {
      {.name = "function"},
      {.name = "batch", .integer = &problem->batch},
      {.name = "query_heads", .integer = &problem->query_heads},
      {.name = "kv_heads", .integer = &problem->kv_heads},
      {.name = "query_length", .integer = &problem->query_length},
      {.name = "key_length", .integer = &problem->key_length},
      {.name = "head_dim", .integer = &problem->head_dim},
      {.name = "value_dim", .integer = &problem->value_dim},
      {.name = "scale", .number = &problem->scale},
      {.name = "left", .integer = &problem->left},
      {.name = "right", .integer = &problem->right},
      {.name = "offset", .integer = &problem->offset},
      {.name = "softcap", .number = &problem->softcap},
      {.name = "epsilon", .number = &problem->epsilon},
      {.name = "has_mask", .flag = &problem->has_mask},
      {.name = "has_bias", .flag = &problem->has_bias},
      {.name = "has_lengths", .flag = has_lengths},
  };
  const size_t key_count = sizeof keys / sizeof *keys;

  char path[PATH_BYTES], line[LINE_BYTES];
  snprintf(path, sizeof path, "%s/case.txt", folder);
  FILE *file = fopen(path, "r");
  if (!file) {
    snprintf(why, why_size, "%s: %s", path, strerror(errno));
    return false;
  }
  bool sound = true;
  while (sound && fgets(line, sizeof line, file))
    sound = parse_line(keys, key_count, &problem->function, path, line, why, why_size);
  if (sound && ferror(file)) {
    snprintf(why, why_size, "%s cannot be read", path);
    sound = false;
  }
  fclose(file);
  for (size_t n = 0; sound && n < key_count; n++)
    if (!keys[n].seen) {
      snprintf(why, why_size, "%s: the key '%s' is missing", path, keys[n].name);
      sound = false;
    }
  return sound;
}

/* -1 is how a case says "no limit". The limit on sizes keeps products of three within int64_t. */
static bool finish_case_text(attn_problem *problem, const char *folder, char *why, size_t why_size) {
  const int64_t largest = INT64_C(1) << 20;
  const int64_t sizes[] = {problem->batch,        problem->query_heads, problem->kv_heads,
                           problem->query_length, problem->key_length,  problem->head_dim,
                           problem->value_dim};
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
    if (sizes[n] < 0 || sizes[n] > largest) {
      snprintf(why, why_size, "%s/case.txt: a size of %lld: sizes are 0 to %lld", folder, (long long)sizes[n],
               (long long)largest);
      return false;
    }
  if (problem->left < -1 || problem->right < -1) {
    snprintf(why, why_size, "%s/case.txt: left and right are 0 or more, or -1 for no limit", folder);
    return false;
  }
  if (problem->left == -1) problem->left = ATTN_UNLIMITED;
  if (problem->right == -1) problem->right = ATTN_UNLIMITED;
  return true;
}

/* ---- The arrays ---- */

static bool multiply(size_t *bytes, int64_t factor) {
  return factor >= 0 && !__builtin_mul_overflow(*bytes, (uint64_t)factor, bytes);
}

/* Reads a whole file of exactly so many bytes. */
static bool read_exactly(const char *folder, const char *name, void *data, size_t bytes, char *why,
                         size_t why_size) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) {
    snprintf(why, why_size, "%s: %s", path, strerror(errno));
    return false;
  }
  const size_t got = bytes ? fread(data, 1, bytes, file) : 0;
  const bool longer = got == bytes && fgetc(file) != EOF;
  const bool failed = ferror(file) != 0;
  fclose(file);
  if (failed)
    snprintf(why, why_size, "%s cannot be read", path);
  else if (longer)
    snprintf(why, why_size, "%s is longer than the %zu bytes of its shape", path, bytes);
  else if (got < bytes)
    snprintf(why, why_size, "%s is too short: %zu bytes, its shape needs %zu", path, got, bytes);
  return !failed && !longer && got == bytes;
}

/* The shape of an array in a file, as the problem gives it. */
typedef struct shape {
  int64_t sizes[4];
} shape;

static bool array_bytes(const char *folder, const char *name, shape expected, size_t element_bytes,
                        size_t *bytes, char *why, size_t why_size) {
  *bytes = element_bytes;
  for (int axis = 0; axis < 4; axis++)
    if (!multiply(bytes, expected.sizes[axis])) {
      snprintf(why, why_size, "%s/%s: its shape does not fit in memory", folder, name);
      return false;
    }
  return true;
}

static bool create_array(guarded *buffer, const char *folder, const char *name, shape expected,
                         size_t element_bytes, char *why, size_t why_size) {
  size_t bytes;
  return array_bytes(folder, name, expected, element_bytes, &bytes, why, why_size) &&
         guarded_create(buffer, bytes, element_bytes, why, why_size);
}

static bool read_array(guarded *buffer, const char *folder, const char *name, shape expected,
                       size_t element_bytes, char *why, size_t why_size) {
  return create_array(buffer, folder, name, expected, element_bytes, why, why_size) &&
         read_exactly(folder, name, buffer->data, buffer->bytes, why, why_size);
}

static void *read_plain(const char *folder, const char *name, shape expected, size_t element_bytes, char *why,
                        size_t why_size) {
  size_t bytes;
  if (!array_bytes(folder, name, expected, element_bytes, &bytes, why, why_size)) return NULL;
  void *data = calloc(bytes ? bytes : 1, 1);
  if (!data) {
    snprintf(why, why_size, "%s/%s: no memory for %zu bytes", folder, name, bytes);
    return NULL;
  }
  if (read_exactly(folder, name, data, bytes, why, why_size)) return data;
  free(data);
  return NULL;
}

static bool read_lengths(golden_case *loaded, const char *folder, char *why, size_t why_size) {
  const shape expected = {{loaded->problem.batch, 1, 1, 1}};
  int32_t *stored = read_plain(folder, "lengths.i32", expected, sizeof *stored, why, why_size);
  if (!stored) return false;
  loaded->lengths = calloc((size_t)loaded->problem.batch + 1, sizeof *loaded->lengths);
  if (loaded->lengths)
    for (int64_t b = 0; b < loaded->problem.batch; b++) loaded->lengths[b] = stored[b];
  else
    snprintf(why, why_size, "%s/lengths.i32: no memory", folder);
  free(stored);
  loaded->problem.key_lengths = loaded->lengths;
  return loaded->lengths != NULL;
}

static bool read_arrays(golden_case *loaded, bool has_lengths, const char *folder, char *why,
                        size_t why_size) {
  const attn_problem *p = &loaded->problem;
  const shape query = {{p->batch, p->query_heads, p->query_length, p->head_dim}};
  const shape key = {{p->batch, p->kv_heads, p->key_length, p->head_dim}};
  const shape value = {{p->batch, p->kv_heads, p->key_length, p->value_dim}};
  const shape mask = {{p->batch, 1, p->query_length, p->key_length}};
  const shape bias = {{1, p->query_heads, p->query_length, p->key_length}};
  const shape output = {{p->batch, p->query_heads, p->query_length, p->value_dim}};
  const shape lse = {{p->batch, p->query_heads, p->query_length, 1}};
  if (!read_array(&loaded->query, folder, "q.f32", query, sizeof(float), why, why_size) ||
      !read_array(&loaded->key, folder, "k.f32", key, sizeof(float), why, why_size) ||
      !read_array(&loaded->value, folder, "v.f32", value, sizeof(float), why, why_size))
    return false;
  if (p->has_mask && !read_array(&loaded->mask, folder, "mask.u8", mask, 1, why, why_size)) return false;
  if (p->has_bias && !read_array(&loaded->bias, folder, "bias.f32", bias, sizeof(float), why, why_size))
    return false;
  if (has_lengths && !read_lengths(loaded, folder, why, why_size)) return false;

  loaded->expected_output = read_plain(folder, "output.f64", output, sizeof(double), why, why_size);
  if (!loaded->expected_output) return false;
  if (p->wants_lse) {
    loaded->expected_lse = read_plain(folder, "lse.f64", lse, sizeof(double), why, why_size);
    if (!loaded->expected_lse) return false;
  }
  return create_array(&loaded->output, folder, "output.f64", output, sizeof(float), why, why_size) &&
         create_array(&loaded->lse, folder, "lse.f64", lse, sizeof(float), why, why_size);
}

static void set_strides(attn_problem *p) {
  p->query = attn_packed(p->query_heads, p->query_length, p->head_dim);
  p->key = attn_packed(p->kv_heads, p->key_length, p->head_dim);
  p->value = attn_packed(p->kv_heads, p->key_length, p->value_dim);
  p->output = attn_packed(p->query_heads, p->query_length, p->value_dim);
  p->lse = attn_packed(p->query_heads, p->query_length, 1);
  p->mask = attn_packed(1, p->query_length, p->key_length);
  p->mask.head = 0;
  p->bias = attn_packed(p->query_heads, p->query_length, p->key_length);
  p->bias.batch = 0;
}

static void set_tensors(golden_case *loaded) {
  const attn_problem *p = &loaded->problem;
  loaded->tensors = (attn_tensors){.query = loaded->query.data,
                                   .key = loaded->key.data,
                                   .value = loaded->value.data,
                                   .mask = p->has_mask ? loaded->mask.data : NULL,
                                   .bias = p->has_bias ? loaded->bias.data : NULL,
                                   .output = loaded->output.data,
                                   .lse = p->wants_lse ? (float *)(void *)loaded->lse.data : NULL};
}

bool case_load(golden_case *loaded, const char *folder, char *why, size_t why_size) {
  *loaded = (golden_case){.problem.dtype = ATTN_FLOAT32};
  if (strlen(folder) > PATH_BYTES - 32) {
    snprintf(why, why_size, "the path of the case is too long");
    return false;
  }
  bool has_lengths = false;
  if (!read_case_text(&loaded->problem, &has_lengths, folder, why, why_size) ||
      !finish_case_text(&loaded->problem, folder, why, why_size))
    return false;
  loaded->problem.wants_lse = loaded->problem.function == ATTN_SOFTMAX;
  if (read_arrays(loaded, has_lengths, folder, why, why_size)) {
    set_strides(&loaded->problem);
    set_tensors(loaded);
    char reason[LINE_BYTES];
    if (attn_check_problem(&loaded->problem, reason, sizeof reason)) return true;
    snprintf(why, why_size, "%s/case.txt: %s", folder, reason);
  }
  case_destroy(loaded);
  return false;
}

void case_destroy(golden_case *loaded) {
  guarded *buffers[] = {&loaded->query, &loaded->key,    &loaded->value, &loaded->mask,
                        &loaded->bias,  &loaded->output, &loaded->lse};
  for (size_t n = 0; n < sizeof buffers / sizeof *buffers; n++)
    if (buffers[n]->mapping) guarded_destroy(buffers[n]);
  free(loaded->lengths);
  free(loaded->expected_output);
  free(loaded->expected_lse);
  *loaded = (golden_case){.problem.dtype = ATTN_FLOAT32};
}
