/* What problem.json says, and how the tensors of a problem lie in files. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "reference/reference.h"
#include "dump.h"
#include "linear_text.h"
#include "pattern_text.h"
#include "types.h"

/* NumPy has no bfloat16. */
static const char *descr_of(attn_type type) {
  switch (type) {
    case ATTN_FLOAT32: return "<f4";
    case ATTN_FLOAT16: return "<f2";
    case ATTN_BFLOAT16: return "<u2";
    case ATTN_INT32: return "<i4";
    default: return "|u1";
  }
}

dump_file dump_file_of(const attn_problem *p, tensor_id id) {
  const tensor_shape shape = tensor_stored_shape(p, id);
  const int64_t sizes[4] = {shape.batch, shape.heads, shape.length, shape.width};
  const tensor_row *row = &tensor_table[id];
  dump_file file = {.descr = descr_of(tensor_layout(p, id)->type)};
  snprintf(file.name, sizeof file.name, "%s.npy", row->file ? row->file : row->name);
  for (int axis = 0; axis < 4; axis++) {
    if (tensor_axes(p->function, id)[axis] == '1') continue;
    file.axis_of[file.axes] = axis;
    file.shape[file.axes++] = sizes[axis];
  }
  return file;
}

const int64_t *dump_list(const workload *w, int n, const char **name) {
  static const char *const names[DUMP_LISTS] = {"lengths", "offsets", "qlengths"};
  *name = names[n];
  if (n == 0) return w->has_lengths ? w->lengths : NULL;
  if (n == 1) return w->has_offsets ? w->offsets : NULL;
  return w->has_query_lengths ? w->query_lengths : NULL;
}

static json_t *list_of(const int64_t *numbers, int64_t count) {
  json_t *list = json_array();
  for (int64_t n = 0; n < count; n++) json_array_append_new(list, json_integer(numbers[n]));
  return list;
}

/* The field's letters: what a tensor's axes are called. */
static json_t *axes_of(const char *letters) {
  json_t *list = json_array();
  for (; *letters; letters++) {
    const char *name = *letters == 'B'   ? "B"
                       : *letters == 'H' ? "H"
                       : *letters == 'K' ? "Hkv"
                       : *letters == 'q' ? "Tq"
                       : *letters == 'k' ? "Tk"
                       : *letters == 'D' ? "D"
                       : *letters == 'V' ? "Dv"
                       : *letters == 'u' ? "query_blocks"
                       : *letters == 'v' ? "key_blocks"
                       : *letters == 't' ? "listed"
                       : *letters == 'r' ? "distances"
                       : *letters == 's' ? "buckets"
                       : *letters == 'p' ? "positions"
                       : *letters == 'n' ? "pairs"
                       : *letters == 'M' ? "M"
                       : *letters == 'd' ? "H D"
                       : *letters == 'e' ? "Hkv D"
                       : *letters == 'f' ? "Hkv Dv"
                       : *letters == 'g' ? "H Dv"
                                         : NULL;
    if (name) json_array_append_new(list, json_string(name));
  }
  return list;
}

static json_t *describe_tensor(const attn_problem *p, tensor_id id) {
  const dump_file file = dump_file_of(p, id);
  json_t *object = json_object();
  if (!tensor_is_written(p, id)) json_object_set_new(object, "file", json_string(file.name));
  json_object_set_new(object, "type", json_string(element_type_of(tensor_layout(p, id)->type)->words));
  json_object_set_new(object, "numpy", json_string(file.descr));
  json_object_set_new(object, "axes", axes_of(tensor_axes(p->function, id)));
  json_object_set_new(object, "shape", list_of(file.shape, file.axes));
  return object;
}

static json_t *limit(int64_t width) { return width == ATTN_UNLIMITED ? json_null() : json_integer(width); }

/* The terms in the order of the line, and how many queries and keys a block has. sqrt of Tk is a number here. */
static void describe_pattern(json_t *object, const workload *w) {
  const attn_problem p = workload_problem(w);
  json_t *terms = json_array();
  for (int n = 0; n < p.term_count; n++) {
    const int64_t numbers[] = {p.terms[n].a, p.terms[n].b, p.terms[n].seed};
    const char *name;
    const int count = pattern_term((attn_term_kind)p.terms[n].kind, &name);
    json_t *list = json_array();
    for (int m = 0; m < count && m < 3; m++) json_array_append_new(list, limit(numbers[m]));
    json_array_append_new(terms, json_pack("{s:s, s:o}", "term", name, "numbers", list));
  }
  if (p.term_count > 0) json_object_set(object, "see", terms);
  json_decref(terms);
  if (p.blocks.type)
    json_object_set_new(object, "block", json_pack("[I, I]", (json_int_t)p.block_q, (json_int_t)p.block_k));
}

/* The numbers that tables by position go with. */
static void describe_position(json_t *object, const attn_problem *p) {
  if (p->relative.type) json_object_set_new(object, "relative_distance", json_integer(p->relative_distance));
  if (p->t5.type)
    json_object_set_new(object, "t5",
                        json_pack("{s:I, s:I, s:b}", "buckets", (json_int_t)p->t5_buckets, "distance",
                                  (json_int_t)p->t5_distance, "both", (int)p->t5_both));
  if (p->rope_cos.type)
    json_object_set_new(object, "rope",
                        json_pack("{s:I, s:b}", "features", (json_int_t)p->rope_features, "interleaved",
                                  (int)p->rope_interleaved));
}

static void describe_dropout(json_t *object, const attn_problem *p) {
  if (p->keep.type) json_object_set_new(object, "dropout_p", json_real(p->dropout_p));
}

static void describe_visibility(json_t *object, const workload *w) {
  json_object_set_new(object, "left", limit(w->left));
  json_object_set_new(object, "right", limit(w->right));
  json_object_set_new(object, "offset", json_integer(w->offset));
  for (int n = 0; n < DUMP_LISTS; n++) {
    const char *name;
    const int64_t *numbers = dump_list(w, n, &name);
    if (numbers) json_object_set_new(object, name, list_of(numbers, w->batch));
  }
  describe_pattern(object, w);
}

/* JSON's integers end at 2^63 here. */
static json_t *seed_of(uint64_t seed) {
  char text[24];
  if (seed <= INT64_MAX) return json_integer((json_int_t)seed);
  snprintf(text, sizeof text, "%" PRIu64, seed);
  return json_string(text);
}

json_t *dump_describe(const workload *w) {
  static const struct {
    const char *name;
    size_t place;
  } sizes[] = {{"batch", offsetof(attn_problem, batch)},
               {"query_heads", offsetof(attn_problem, query_heads)},
               {"kv_heads", offsetof(attn_problem, kv_heads)},
               {"query_length", offsetof(attn_problem, query_length)},
               {"key_length", offsetof(attn_problem, key_length)},
               {"head_dim", offsetof(attn_problem, head_dim)},
               {"value_dim", offsetof(attn_problem, value_dim)},
               {"model_dim", offsetof(attn_problem, layer.model_dim)}};
  const attn_problem p = workload_problem(w);
  char line[WORKLOAD_NAME_BYTES];
  json_t *object = json_object(), *inputs = json_object(), *outputs = json_object();
  workload_name(w, line);
  json_object_set_new(object, "attnbench", json_string(ATTNBENCH_VERSION));
  json_object_set_new(object, "problem", json_string(line));
  json_object_set_new(object, "seed", seed_of(w->seed));
  json_object_set_new(object, "function", json_string(reference_function_of(p.function)->name));
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    int64_t size;
    memcpy(&size, (const char *)&p + sizes[n].place, sizeof size);
    if (size > 0 || sizes[n].place != offsetof(attn_problem, layer.model_dim))
      json_object_set_new(object, sizes[n].name, json_integer(size));
  }
  if (reference_function_of(p.function)->has_scores) {
    json_object_set_new(object, "scale", json_real(p.scale));
    json_object_set_new(object, "softcap", json_real(p.softcap));
  } else {
    json_object_set_new(object, "epsilon", json_real(p.epsilon));
    json_object_set_new(object, "phi", json_string(linear_phi_name(p.feature_map)));
    json_object_set_new(object, "normalised", json_boolean(!p.unnormalised));
  }
  describe_visibility(object, w);
  describe_position(object, &p);
  describe_dropout(object, &p);
  for (tensor_id id = 0; id < TENSORS; id++)
    if (tensor_layout(&p, id)->type)
      json_object_set_new(tensor_is_written(&p, id) ? outputs : inputs, tensor_table[id].name,
                          describe_tensor(&p, id));
  json_object_set_new(object, "inputs", inputs);
  json_object_set_new(object, "outputs", outputs);
  return object;
}
