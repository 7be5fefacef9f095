/* See library.h. */
#include "library.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "problem/features.h"
#include "problem/fills.h"
#include "problem/random_problem.h"
#include "problem/types.h"
#include "problem/inputs.h"
#include "problem/linear_text.h"
#include "problem/pattern_text.h"
#include "reference/reference.h"
#include "reference/sees.h"
#include "verify/grid.h"
#include "verify/judge.h"

int attnbench_library_version(void) { return ATTNBENCH_LIBRARY_VERSION; }
const char *attnbench_version(void) { return ATTNBENCH_VERSION; }
void attnbench_free(void *text) { free(text); }

/* ---- problems ---- */

static json_t *json_limit(int64_t limit) {
  return limit == ATTN_UNLIMITED ? json_null() : json_integer(limit);
}

static json_t *json_list(const int64_t *numbers, int64_t count) {
  json_t *list = numbers ? json_array() : json_null();
  for (int64_t n = 0; numbers && n < count; n++) json_array_append_new(list, json_integer(numbers[n]));
  return list;
}

/* "a mask" is "mask", "key lengths" stay so. */
static const char *without_article(const char *what) {
  const size_t article = strncmp(what, "a ", 2) == 0 ? 2 : strncmp(what, "an ", 3) == 0 ? 3 : 0;
  return what + article;
}

static json_t *json_features(const attn_problem *problem) {
  json_t *features = json_array();
  for (const feature_row *row = feature_table; row < feature_table + FEATURES; row++)
    if (row->bit && problem->features & row->bit)
      json_array_append_new(features, json_string(without_article(row->what)));
  return features;
}

static json_t *json_tensor(const attn_problem *problem, tensor_id id) {
  const tensor_row *row = &tensor_table[id];
  const attn_layout *layout = tensor_layout(problem, id);
  const tensor_shape whole = tensor_shape_of(problem, id), stored = tensor_stored_shape(problem, id);
  return json_pack("{s:s, s:s, s:s, s:b, s:[I,I,I,I], s:[I,I,I,I], s:[I,I,I], s:I}", "file",
                   row->file ? row->file : row->name, "words", row->words, "type",
                   element_type_of(layout->type)->name, "written", (int)tensor_is_written(problem, id),
                   "shape", (json_int_t)whole.batch, (json_int_t)whole.heads, (json_int_t)whole.length,
                   (json_int_t)whole.width, "stored", (json_int_t)stored.batch, (json_int_t)stored.heads,
                   (json_int_t)stored.length, (json_int_t)stored.width, "strides", (json_int_t)layout->batch,
                   (json_int_t)layout->head, (json_int_t)layout->position, "bytes",
                   (json_int_t)tensor_bytes(problem, id));
}

/* [{"term": "local", "numbers": [3, 0]}, ...], as problem.json has it. */
static json_t *json_terms(const attn_problem *p) {
  json_t *terms = json_array();
  for (int n = 0; n < p->term_count; n++) {
    const int64_t numbers[] = {p->terms[n].a, p->terms[n].b, p->terms[n].seed};
    const char *name;
    const int count = pattern_term(p->terms[n].kind, &name);
    json_t *list = json_array();
    for (int m = 0; m < count && m < 3; m++) json_array_append_new(list, json_limit(numbers[m]));
    json_array_append_new(terms, json_pack("{s:s, s:o}", "term", name, "numbers", list));
  }
  return terms;
}

static json_t *json_problem(const workload *w) {
  const attn_problem p = workload_problem(w);
  char line[WORKLOAD_NAME_BYTES], band[WORKLOAD_NAME_BYTES];
  json_t *tensors = json_object();
  workload_name(w, line);
  workload_band(w, band);
  for (tensor_id id = 0; id < TENSORS; id++)
    if (tensor_layout(&p, id)->type) json_object_set_new(tensors, tensor_table[id].name, json_tensor(&p, id));
  return json_pack(
      "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:s, s:o, s:o, s:I, s:o, s:o, s:s, "
      "s:s, s:f, s:o, s:o, s:o, s:o, s:[I,I], s:I, s:I, s:I, s:b, s:s, s:b, s:f, s:I, s:I, s:b, s:I}",
      "problem", line, "function", reference_function_of(p.function)->name, "batch", (json_int_t)p.batch,
      "query_heads", (json_int_t)p.query_heads, "kv_heads", (json_int_t)p.kv_heads, "query_length",
      (json_int_t)p.query_length, "key_length", (json_int_t)p.key_length, "head_dim", (json_int_t)p.head_dim,
      "value_dim", (json_int_t)p.value_dim, "scale", p.scale, "softcap", p.softcap, "epsilon", p.epsilon,
      "band", band, "left", json_limit(p.left), "right", json_limit(p.right), "offset", (json_int_t)p.offset,
      "offsets", json_list(p.offsets, p.batch), "key_lengths", json_list(p.key_lengths, p.batch), "layout",
      workload_layout_name(w->layout), "fill", workload_fill_name(w->fill), "flops", workload_flops(w),
      "features", json_features(&p), "tensors", tensors, "query_lengths", json_list(p.query_lengths, p.batch),
      "terms", json_terms(&p), "block", (json_int_t)p.block_q, (json_int_t)p.block_k, "relative_distance",
      (json_int_t)p.relative_distance, "t5_buckets", (json_int_t)p.t5_buckets, "t5_distance",
      (json_int_t)p.t5_distance, "t5_both", (int)p.t5_both, "phi", linear_phi_name(p.feature_map),
      "normalised", (int)!p.unnormalised, "dropout_p", p.dropout_p, "rope_features",
      (json_int_t)p.rope_features, "rope_positions", (json_int_t)p.rope_positions, "rope_interleaved",
      (int)p.rope_interleaved, "model_dim", (json_int_t)p.layer.model_dim);
}

char *attnbench_describe(const char *line, uint64_t seed, char *why, size_t why_size) {
  workload w;
  if (!workload_parse_sound(line, &w, why, why_size)) return NULL;
  workload_seed_unnamed(&w, seed);
  json_t *problem = json_problem(&w);
  char *text = problem ? json_dumps(problem, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(problem);
  if (!text) snprintf(why, why_size, "no memory");
  return text;
}

/* ---- inputs ---- */

static tensor_id tensor_named(const char *name) {
  tensor_id id = 0;
  while (id < TENSORS && strcmp(tensor_table[id].name, name) != 0) id++;
  return id;
}

/* Of the backward pass, which follows from all other inputs. */
static bool draw_forward(const workload *w, tensor_id id, void *to, char *why, size_t why_size) {
  inputs in;
  if (!inputs_create(&in, w, true, why, why_size)) return false;
  memcpy(to, tensor_data(&in.problem, &in.tensors, id), tensor_bytes(&in.problem, id));
  inputs_destroy(&in);
  return true;
}

bool attnbench_draw(const char *line, const char *tensor, void *to, size_t bytes, char *why,
                    size_t why_size) {
  workload w;
  if (!workload_parse_sound(line, &w, why, why_size)) return false;
  const attn_problem problem = workload_problem(&w);
  const tensor_id id = tensor_named(tensor);
  if (id == TENSORS || tensor_is_written(&problem, id) || tensor_bytes(&problem, id) != bytes) {
    snprintf(why, why_size, "%s is no input of %zu bytes of this problem", tensor, bytes);
    return false;
  }
  if (id == TENSOR_OUTPUT || id == TENSOR_LSE) return draw_forward(&w, id, to, why, why_size);
  fill_tensor(&w, &problem, id, to);
  return true;
}

bool attnbench_sees(const char *line, uint8_t *to, size_t bytes, char *why, size_t why_size) {
  workload w;
  inputs in;
  if (!workload_parse_sound(line, &w, why, why_size)) return false;
  const attn_problem *p = &in.problem;
  if (!inputs_create(&in, &w, false, why, why_size)) return false;
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  const bool fits = bytes == (size_t)rows * (size_t)p->key_length;
  if (!fits) snprintf(why, why_size, "%zu bytes are not one for each query and key of this problem", bytes);
  for (int64_t n = 0; n < rows && fits; n++)
    for (int64_t j = 0; j < p->key_length; j++)
      *to++ = reference_sees(p, &in.tensors, n / p->query_length / p->query_heads,
                             n / p->query_length % p->query_heads, n % p->query_length, j);
  inputs_destroy(&in);
  return fits;
}

/* ---- many problems ---- */

static int64_t greatest_divisor(int64_t a, int64_t b) { return b == 0 ? a : greatest_divisor(b, a % b); }

/* In steps by the golden section, so that neighbours in the grid come far apart. */
char *attnbench_problem(uint64_t seed, int64_t n) {
  const int64_t grid = verify_grid_count();
  int64_t step = (int64_t)((double)grid * 0.618) + 1;
  while (greatest_divisor(step, grid) != 1) step++;
  char line[WORKLOAD_NAME_BYTES];
  const workload w =
      n < grid ? verify_grid_problem(n * step % grid).workload : random_problem(seed, n - grid);
  workload_name(&w, line);
  return strdup(line);
}

/* ---- verdicts ---- */

static int type_named(const char *name) {
  if (strcmp(name, "f64") == 0) return JUDGE_FLOAT64;
  if (strcmp(name, "i32") == 0) return ATTN_INT32;
  return strcmp(name, "u8") == 0 ? ATTN_UINT8 : (int)element_type_named(name);
}

static bool take_array(judge_question *question, const attnbench_array *from, char *why, size_t why_size) {
  const tensor_id id = tensor_named(from->tensor);
  const int type = type_named(from->type);
  if (id == TENSORS || type == ATTN_ABSENT) {
    snprintf(why, why_size, "%s of type %s is nothing that a problem has", from->tensor, from->type);
    return false;
  }
  judge_array *array = &question->arrays[id];
  *array = (judge_array){.data = from->data, .type = type};
  memcpy(array->strides, from->strides, sizeof array->strides);
  return true;
}

/* What print writes, as a text. */
static char *printed(const judge_verdict *verdict, void (*print)(const judge_verdict *, FILE *)) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (!out) return NULL;
  print(verdict, out);
  if (fclose(out) == 0) return text;
  free(text);
  return NULL;
}

char *attnbench_judge(const char *line, const attnbench_array *arrays, size_t count, bool with_hint,
                      char **text, char *why, size_t why_size) {
  workload w;
  judge_question question = {.workload = &w, .no_hint = !with_hint};
  judge_verdict verdict;
  if (!workload_parse_sound(line, &w, why, why_size)) return NULL;
  for (size_t n = 0; n < count; n++)
    if (!take_array(&question, &arrays[n], why, why_size)) return NULL;
  if (!judge(&question, &verdict, why, why_size)) return NULL;
  char *json = printed(&verdict, judge_json);
  if (text && json) *text = printed(&verdict, judge_print);
  if (json && (!text || *text)) return json;
  free(json);
  snprintf(why, why_size, "no memory");
  return NULL;
}
