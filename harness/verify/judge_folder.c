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

int judge_folder(const judge_files *files, bool as_json, FILE *out, char *why, size_t why_size) {
  static const tensor_id ids[] = {TENSOR_OUTPUT, TENSOR_LSE, TENSOR_WEIGHTS};
  const char *const paths[] = {files->output, files->lse, files->weights};
  const complaint to = {why, why_size};
  dump_folder dump;
  npy_array outputs[3] = {0};
  judge_verdict verdict;
  if (!dump_read(&dump, files->folder, why, why_size)) return 2;
  judge_question question = {.workload = &dump.workload};
  const attn_problem p = workload_problem(&dump.workload);
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!dump.inputs[id].data) continue;
    const dump_file file = dump_file_of(&p, id);
    question.arrays[id] = array_of(&dump.inputs[id], &file, (int)tensor_layout(&p, id)->type);
  }
  bool judged = true;
  for (int n = 0; n < 3 && judged; n++)
    judged =
        !paths[n] || read_output(paths[n], &dump.workload, ids[n], &outputs[n], &question.arrays[ids[n]], to);
  judged = judged && judge(&question, &verdict, why, why_size);
  if (judged) (as_json ? judge_json : judge_print)(&verdict, out);
  for (int n = 0; n < 3; n++) npy_destroy(&outputs[n]);
  dump_destroy(&dump);
  return !judged ? 2 : verdict.ok ? 0 : 1;
}
