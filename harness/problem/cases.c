/* Reads a case folder: case.txt and the raw little-endian arrays beside it. */
#include "cases.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "features.h"
#include "linear_text.h"
#include "pattern_text.h"
#include "reference/reference.h"
#include "types.h"

enum { PATH_BYTES = 4096, LINE_BYTES = 256 };

/* Both machines that this runs on are little-endian, as the files are. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "case files are read without swapping bytes");

/* ---- case.txt ---- */

typedef struct case_key {
  const char *name;
  int64_t *integer; /* where the value goes: one of these */
  double *number;
  bool *flag;
  attn_type *type;
  char *text;
  bool optional, seen;
} case_key;

static bool parse_type(const char *text, attn_type *type) {
  for (*type = ATTN_FLOAT32; element_type_of(*type); ++*type)
    if (strcmp(element_type_of(*type)->name, text) == 0) return element_type_of(*type)->store != NULL;
  return false;
}

static bool parse_function(const char *text, attn_function *function) {
  for (int n = 0; n < REFERENCE_FUNCTIONS; n++) {
    *function = (attn_function)n;
    const reference_function *row = reference_function_of(*function);
    if (row && strcmp(row->name, text) == 0) return true;
  }
  return false;
}

static bool parse_value(const case_key *key, const char *text) {
  char *end;
  errno = 0;
  if (key->type) return parse_type(text, key->type);
  if (key->text) return snprintf(key->text, LINE_BYTES, "%s", text) > 0;
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
    const bool has_target = keys[n].integer || keys[n].number || keys[n].flag || keys[n].type || keys[n].text;
    if (keys[n].seen) {
      snprintf(why, why_size, "%s: '%s' is given twice", path, name);
    } else if (has_target ? !parse_value(&keys[n], value) : !parse_function(value, function)) {
      const char *right = !has_target      ? "softmax, linear or layer"
                          : keys[n].type   ? "f32, bf16 or f16"
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

/* What a case says beside its problem. */
typedef struct case_words {
  attn_type type; /* of queries, keys and values */
  bool has_mask, has_bias, has_lengths;
  char see[LINE_BYTES];  /* the terms of the pattern; "": none of numbers */
  char pass[LINE_BYTES]; /* "backward", or as "forward" */
  char phi[LINE_BYTES];  /* the feature map, or as "elu1" */
  bool normalise;
  char rope[LINE_BYTES]; /* "half", or "interleaved"; "": none */
} case_words;

static bool read_case_text(attn_problem *problem, case_words *words, const char *folder, char *why,
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
      {.name = "has_mask", .flag = &words->has_mask},
      {.name = "has_bias", .flag = &words->has_bias},
      {.name = "has_lengths", .flag = &words->has_lengths},
      {.name = "type", .type = &words->type, .optional = true},
      {.name = "see", .text = words->see, .optional = true},
      {.name = "block_q", .integer = &problem->block_q, .optional = true},
      {.name = "block_k", .integer = &problem->block_k, .optional = true},
      {.name = "topk", .integer = &problem->topk_count, .optional = true},
      {.name = "pass", .text = words->pass, .optional = true},
      {.name = "rel_distance", .integer = &problem->relative_distance, .optional = true},
      {.name = "t5_buckets", .integer = &problem->t5_buckets, .optional = true},
      {.name = "t5_max_distance", .integer = &problem->t5_distance, .optional = true},
      {.name = "t5_both", .flag = &problem->t5_both, .optional = true},
      {.name = "phi", .text = words->phi, .optional = true},
      {.name = "normalise", .flag = &words->normalise, .optional = true},
      {.name = "rope", .text = words->rope, .optional = true},
      {.name = "rope_features", .integer = &problem->rope_features, .optional = true},
      {.name = "rope_positions", .integer = &problem->rope_positions, .optional = true},
      {.name = "model_dim", .integer = &problem->layer.model_dim, .optional = true},
      {.name = "dropout_p", .number = &problem->dropout_p, .optional = true},
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
    if (!keys[n].seen && !keys[n].optional) {
      snprintf(why, why_size, "%s: the key '%s' is missing", path, keys[n].name);
      sound = false;
    }
  return sound;
}

/* -1 is how a case says "no limit". The limit on sizes keeps products of three within int64_t. */
static bool finish_case_text(attn_problem *problem, const char *folder, char *why, size_t why_size) {
  const int64_t largest = INT64_C(1) << 20;
  const int64_t sizes[] = {
      problem->batch,       problem->query_heads,   problem->kv_heads,          problem->query_length,
      problem->key_length,  problem->head_dim,      problem->value_dim,         problem->block_q,
      problem->block_k,     problem->topk_count,    problem->relative_distance, problem->t5_buckets,
      problem->t5_distance, problem->rope_features, problem->rope_positions,    problem->layer.model_dim};
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

static bool read_pass(attn_problem *problem, const case_words *words, const char *folder, char *why,
                      size_t why_size) {
  const bool backward = strcmp(words->pass, "backward") == 0;
  if (backward) problem->function = reference_function_of(problem->function)->backward;
  if (!*words->pass || tensors_are_backward(problem) || strcmp(words->pass, "forward") == 0) return true;
  snprintf(why, why_size, "%s/case.txt: 'pass %s' should be forward or backward", folder, words->pass);
  return false;
}

static bool read_phi(attn_problem *problem, const case_words *words, const char *folder, char *why,
                     size_t why_size) {
  problem->unnormalised = !words->normalise;
  if (!*words->phi || linear_phi_named(words->phi, &problem->feature_map)) return true;
  snprintf(why, why_size, "%s/case.txt: 'phi %s' should be elu1, relu or identity", folder, words->phi);
  return false;
}

static bool read_rope(attn_problem *problem, const case_words *words, const char *folder, char *why,
                      size_t why_size) {
  problem->rope_interleaved = strcmp(words->rope, "interleaved") == 0;
  if (!*words->rope || problem->rope_interleaved || strcmp(words->rope, "half") == 0) return true;
  snprintf(why, why_size, "%s/case.txt: 'rope %s' should be half or interleaved", folder, words->rope);
  return false;
}

static bool read_terms(attn_problem *problem, const case_words *words, const char *folder, char *why,
                       size_t why_size) {
  char reason[LINE_BYTES];
  workload_reading reading = {.workload = workload_default(), .to = {reason, sizeof reason}};
  workload *w = &reading.workload;
  if (!*words->see) return true;
  w->key_length = problem->key_length;
  if (!pattern_read_see(&reading, "see", words->see)) {
    snprintf(why, why_size, "%s/case.txt: %s", folder, reason);
    return false;
  }
  if (w->document_length || w->blocks.present || w->topk) {
    snprintf(why, why_size,
             "%s/case.txt: 'see %s': docs, blocks and topk are terms where their files are there", folder,
             words->see);
    return false;
  }
  workload_terms(w, problem);
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

/* One for each entry; NULL, with the reason in words. */
static int64_t *read_list(const golden_case *loaded, const char *file, const char *folder, char *why,
                          size_t why_size) {
  const int64_t batch = loaded->inputs.problem.batch;
  int32_t *stored = read_plain(folder, file, (shape){{batch, 1, 1, 1}}, sizeof *stored, why, why_size);
  if (!stored) return NULL;
  int64_t *list = calloc((size_t)batch + 1, sizeof *list);
  if (!list) snprintf(why, why_size, "%s/%s: no memory", folder, file);
  for (int64_t b = 0; b < batch && list; b++) list[b] = stored[b];
  free(stored);
  return list;
}

static bool is_there(const char *folder, const char *name) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

static bool read_lengths(golden_case *loaded, const case_words *words, const char *folder, char *why,
                         size_t why_size) {
  static const char query_lengths[] = "query_lengths.i32";
  attn_problem *problem = &loaded->inputs.problem;
  const bool of_queries = is_there(folder, query_lengths);
  if (words->has_lengths) loaded->lengths = read_list(loaded, "lengths.i32", folder, why, why_size);
  if (words->has_lengths && !loaded->lengths) return false;
  if (of_queries) loaded->query_lengths = read_list(loaded, query_lengths, folder, why, why_size);
  problem->key_lengths = loaded->lengths;
  problem->query_lengths = loaded->query_lengths;
  return loaded->query_lengths || !of_queries;
}

/* The file of a tensor: its name, and the name of its elements' type. */
static void name_file(char name[LINE_BYTES], tensor_id id, attn_type type) {
  snprintf(name, LINE_BYTES, "%s.%s", tensor_table[id].file, element_type_of(type)->name);
}

/* Whether the case has this tensor, and of which type. Those that case.txt says nothing of are there when their file
 * is. */
static attn_type type_in_case(const golden_case *loaded, const case_words *words, const char *folder,
                              tensor_id id) {
  char name[LINE_BYTES];
  attn_type type = ATTN_FLOAT32;
  while (!(tensor_table[id].types >> type & 1)) type++;
  if (tensor_table[id].types >> words->type & 1) type = words->type;
  if (!tensor_is_optional(&loaded->inputs.problem, id)) return type;
  if (!tensor_table[id].file) return ATTN_ABSENT;
  if (id == TENSOR_MASK) return words->has_mask ? type : ATTN_ABSENT;
  if (id == TENSOR_BIAS) return words->has_bias ? ATTN_FLOAT32 : ATTN_ABSENT;
  if (id == TENSOR_LSE)
    return reference_function_of(loaded->inputs.problem.function)->has_scores &&
                   !tensors_are_of_layer(&loaded->inputs.problem)
               ? ATTN_FLOAT32
               : ATTN_ABSENT;
  if (tensor_is_gradient(id)) {
    const tensor_id input = tensor_of_gradient(id);
    const bool has =
        id == TENSOR_BIAS_GRAD
            ? words->has_bias
            : input == TENSORS || tensor_layout(&loaded->inputs.problem, input)->type != ATTN_ABSENT;
    return has && tensors_are_backward(&loaded->inputs.problem) ? type : ATTN_ABSENT;
  }
  if (tensor_is_final_state(id)) /* whose file is its answer */
    snprintf(name, sizeof name, "%s.f64", tensor_table[id].file);
  else
    name_file(name, id, type);
  return is_there(folder, name) ? type : ATTN_ABSENT;
}

/* Packed; a mask is for all heads, a bias for all entries. */
static attn_layout packed_layout(const attn_problem *p, tensor_id id, attn_type type) {
  const char *axes = tensor_axes(p->function, id);
  const bool of_bias = id == TENSOR_BIAS || id == TENSOR_BIAS_GRAD;
  const bool batch = axes[0] != '1' && !of_bias, head = axes[1] != '1' && id != TENSOR_MASK;
  const tensor_shape whole = tensor_shape_of(p, id);
  attn_layout layout = attn_packed(type, head ? whole.heads : 1, whole.length, whole.width);
  if (!batch) layout.batch = 0;
  if (!head) layout.head = 0;
  if (axes[2] == '1') layout.position = 0;
  return layout;
}

static bool read_tensor(golden_case *loaded, tensor_id id, attn_type type, const char *folder, char *why,
                        size_t why_size) {
  attn_problem *p = &loaded->inputs.problem;
  char name[LINE_BYTES];
  size_t bytes;
  *tensor_layout_of(p, id) = packed_layout(p, id, type);
  const tensor_shape stored = tensor_stored_shape(p, id);
  const shape expected = {{stored.batch, stored.heads, stored.length, stored.width}};
  const size_t element_bytes = element_type_of(type)->bytes;
  guarded *buffer = &loaded->inputs.buffers[id];
  name_file(name, id, type);
  if (!array_bytes(folder, name, expected, element_bytes, &bytes, why, why_size) ||
      !guarded_create(buffer, bytes, element_bytes, why, why_size))
    return false;
  tensor_set_data(p, &loaded->inputs.tensors, id, buffer->data);
  const bool is_answer = id == TENSOR_OUTPUT || id == TENSOR_LSE; /* which the backward pass is given */
  return is_answer || tensor_is_written(p, id) ||
         read_exactly(folder, name, buffer->data, bytes, why, why_size);
}

static double *read_answer(const golden_case *loaded, tensor_id id, const char *folder, char *why,
                           size_t why_size) {
  char name[LINE_BYTES];
  const attn_problem *p = &loaded->inputs.problem;
  const tensor_shape whole = id == TENSOR_BIAS_GRAD ? tensor_stored_shape(p, id) : tensor_shape_of(p, id);
  const shape expected = {{whole.batch, whole.heads, whole.length, whole.width}};
  snprintf(name, sizeof name, "%s.f64", tensor_table[id].file);
  return read_plain(folder, name, expected, sizeof(double), why, why_size);
}

/* What the forward pass gives is an answer; the backward pass is given it, rounded to its type. */
static bool read_answers(golden_case *loaded, const char *folder, char *why, size_t why_size) {
  inputs *in = &loaded->inputs;
  for (tensor_id id = 0; id < TENSORS; id++) {
    const bool of_forward = id == TENSOR_OUTPUT || id == TENSOR_LSE;
    if (!tensor_layout(&in->problem, id)->type || !(of_forward || tensor_is_written(&in->problem, id)))
      continue;
    double *answer = loaded->answers[id] = read_answer(loaded, id, folder, why, why_size);
    if (!answer) return false;
    const element_type *type = element_type_of(tensor_layout(&in->problem, id)->type);
    for (size_t n = 0;
         tensors_are_backward(&in->problem) && of_forward && n < tensor_elements(&in->problem, id); n++)
      type->store((char *)in->buffers[id].data + n * type->bytes, answer[n]);
  }
  return true;
}

static bool read_arrays(golden_case *loaded, const case_words *words, const char *folder, char *why,
                        size_t why_size) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    const attn_type type = type_in_case(loaded, words, folder, id);
    if (type != ATTN_ABSENT && !read_tensor(loaded, id, type, folder, why, why_size)) return false;
  }
  if (!read_lengths(loaded, words, folder, why, why_size)) return false;
  return read_answers(loaded, folder, why, why_size);
}

/* How large it is, for who asks what it costs. */
static void note_sizes(workload *w, const attn_problem *p) {
  w->function = p->function;
  w->batch = p->batch;
  w->query_heads = p->query_heads;
  w->kv_heads = p->kv_heads;
  w->query_length = p->query_length;
  w->key_length = p->key_length;
  w->head_dim = p->head_dim;
  w->value_dim = p->value_dim;
  w->model_dim = p->layer.model_dim;
  w->left = p->left;
  w->right = p->right;
  w->offset = p->offset;
}

bool case_load(golden_case *loaded, const char *folder, char *why, size_t why_size) {
  *loaded = (golden_case){.inputs.workload = workload_default()};
  if (strlen(folder) > PATH_BYTES - 32) {
    snprintf(why, why_size, "the path of the case is too long");
    return false;
  }
  attn_problem *problem = &loaded->inputs.problem;
  case_words words = {.type = ATTN_FLOAT32, .normalise = true};
  if (!read_case_text(problem, &words, folder, why, why_size) ||
      !finish_case_text(problem, folder, why, why_size) ||
      !read_pass(problem, &words, folder, why, why_size) ||
      !read_phi(problem, &words, folder, why, why_size) ||
      !read_rope(problem, &words, folder, why, why_size) ||
      !read_terms(problem, &words, folder, why, why_size))
    return false;
  if (read_arrays(loaded, &words, folder, why, why_size)) {
    char reason[LINE_BYTES];
    problem->features = features_of(problem);
    note_sizes(&loaded->inputs.workload, problem);
    if (check_problem(problem, reason, sizeof reason) &&
        check_pattern_tensors(problem, reason, sizeof reason))
      return true;
    snprintf(why, why_size, "%s/case.txt: %s", folder, reason);
  }
  case_destroy(loaded);
  return false;
}

void case_destroy(golden_case *loaded) {
  inputs_destroy(&loaded->inputs);
  free(loaded->lengths);
  free(loaded->query_lengths);
  for (tensor_id id = 0; id < TENSORS; id++) free(loaded->answers[id]);
  *loaded = (golden_case){0};
}
