/* See judge_folder.h. */
#include "judge_folder.h"

#include <stdio.h>
#include <string.h>

#include "base/complaint.h"
#include "problem/dump.h"
#include "problem/types.h"
#include "judge.h"

/* What an array's elements are; 16 bits of no type of NumPy's are a bfloat16 where the problem says so. */
static bool type_of(const char *path, const char *descr, attn_type wanted, int *type, complaint why) {
  static const struct {
    const char *descr;
    int type;
  } known[] = {{"<f4", ATTN_FLOAT32},  {"<f2", ATTN_FLOAT16},  {"<f8", JUDGE_FLOAT64},
               {"<u2", ATTN_BFLOAT16}, {"|V2", ATTN_BFLOAT16}, {"<V2", ATTN_BFLOAT16}};
  for (size_t n = 0; n < sizeof known / sizeof *known; n++) {
    if (strcmp(descr, known[n].descr) != 0) continue;
    *type = known[n].type;
    if (*type != ATTN_BFLOAT16 || wanted == ATTN_BFLOAT16) return true;
  }
  return wrong(why, "%s has elements '%s': the problem says %s, and <f4 or <f8 may stand for it", path, descr,
               element_type_of(wanted)->words);
}

/* C order, with an axis of one element where the file has none. */
static judge_array array_of(const npy_array *from, const dump_file *file, int type) {
  judge_array array = {.data = from->data, .type = type};
  int64_t stride = from->descr[2] - '0';
  for (int axis = file->axes - 1; axis >= 0; axis--) {
    array.strides[file->axis_of[axis]] = stride;
    stride *= file->shape[axis];
  }
  return array;
}

/* As the problem would have it if it asked for it. */
static attn_problem problem_with(const workload *w, tensor_id id) {
  workload asked = *w;
  asked.wants_lse = asked.wants_lse || id == TENSOR_LSE;
  asked.wants_weights = asked.wants_weights || id == TENSOR_WEIGHTS;
  attn_problem p = workload_problem(&asked);
  p.offsets = p.key_lengths = p.query_lengths = NULL; /* of what is gone when this returns */
  return p;
}

static bool read_output(const char *path, const workload *w, tensor_id id, npy_array *array, judge_array *to,
                        complaint why) {
  char found[NPY_SHAPE_BYTES], right[NPY_SHAPE_BYTES];
  const attn_problem p = problem_with(w, id);
  const dump_file file = dump_file_of(&p, id);
  int type = ATTN_ABSENT;
  if (!npy_read(path, array, why.text, why.size)) return false;
  npy_name_shape(array->axes, array->shape, found);
  npy_name_shape(file.axes, file.shape, right);
  if (strcmp(found, right) != 0)
    return wrong(why, "%s is of shape %s: %s of this problem is %s", path, found, tensor_table[id].words,
                 right);
  if (!type_of(path, array->descr, tensor_layout(&p, id)->type, &type, why)) return false;
  *to = array_of(array, &file, type);
  return true;
}

/* Where an output lies, or NULL. */
static const char *path_of(const judge_files *files, const attn_problem *p, tensor_id id, char *path,
                           size_t path_size) {
  if (id == TENSOR_OUTPUT) return files->output;
  if (id == TENSOR_LSE) return files->lse;
  if (id == TENSOR_WEIGHTS) return files->weights;
  const char *folder = tensors_are_backward(p) ? files->gradients : files->states;
  if (!folder || !tensor_is_written(p, id) || !tensor_layout(p, id)->type) return NULL;
  snprintf(path, path_size, "%s/%s.npy", folder, tensor_table[id].file);
  return path;
}

static bool read_outputs(const judge_files *files, const workload *w, npy_array outputs[TENSORS],
                         judge_question *question, complaint why) {
  const attn_problem p = workload_problem(w);
  char path[4096];
  if (tensors_are_backward(&p) ? !files->gradients : !files->output)
    return wrong(why,
                 tensors_are_backward(&p)
                     ? "the problem in %s is of the backward pass: give --gradients FOLDER"
                     : "the problem in %s is of the forward pass: give --output o.npy",
                 files->folder);
  if (tensor_layout(&p, TENSOR_FINAL_STATE)->type && !files->states)
    return wrong(why, "the problem in %s asks for final states: give --states FOLDER", files->folder);
  if (!tensor_layout(&p, TENSOR_FINAL_STATE)->type && files->states)
    return wrong(why, "the problem in %s asks for no final states: leave --states out", files->folder);
  for (tensor_id id = 0; id < TENSORS; id++) {
    const char *from = path_of(files, &p, id, path, sizeof path);
    if (from && !read_output(from, w, id, &outputs[id], &question->arrays[id], why)) return false;
  }
  return true;
}

int judge_folder(const judge_files *files, bool as_json, FILE *out, char *why, size_t why_size) {
  const complaint to = {why, why_size};
  dump_folder dump;
  npy_array outputs[TENSORS] = {0};
  judge_verdict verdict;
  if (!dump_read(&dump, files->folder, why, why_size)) return 2;
  judge_question question = {.workload = &dump.workload};
  const attn_problem p = workload_problem(&dump.workload);
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!dump.inputs[id].data) continue;
    const dump_file file = dump_file_of(&p, id);
    question.arrays[id] = array_of(&dump.inputs[id], &file, (int)tensor_layout(&p, id)->type);
  }
  const bool judged = read_outputs(files, &dump.workload, outputs, &question, to) &&
                      judge(&question, &verdict, why, why_size);
  if (judged) (as_json ? judge_json : judge_print)(&verdict, out);
  for (tensor_id id = 0; id < TENSORS; id++) npy_destroy(&outputs[id]);
  dump_destroy(&dump);
  return !judged ? 2 : verdict.ok ? 0 : 1;
}
