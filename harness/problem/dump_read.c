/* Reads a dump. What problem.json says is made again from its line: who changes one of both means another problem. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/complaint.h"
#include "dump.h"
#include "types.h"

enum { PATH_BYTES = 4096 };

/* ---- problem.json ---- */

static bool parse_line(dump_folder *dump, const char *path, const json_t *said, complaint why) {
  char reason[512];
  const char *line = json_string_value(json_object_get(said, "problem"));
  if (!line) return wrong(why, "%s has no \"problem\": it is not what attnbench dump wrote", path);
  if (workload_parse(line, &dump->workload, reason, sizeof reason) &&
      workload_check(&dump->workload, reason, sizeof reason))
    return true;
  return wrong(why, "%s: its problem %s: %s", path, line, reason);
}

/* All but the version that wrote it. A whole number may have become a real one on its way through other hands. */
static bool is_same(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
  return json_equal(a, b);
}

static bool check_keys(const char *path, const json_t *said, const workload *w, complaint why) {
  json_t *means = dump_describe(w), *value;
  const char *key;
  bool same = means != NULL;
  json_object_foreach(means, key, value) {
    const json_t *other = json_object_get(said, key);
    if (!same || strcmp(key, "attnbench") == 0 || !other) continue;
    if (strcmp(key, "problem") != 0 && !is_same(value, other))
      same = wrong(why, "%s: \"%s\" is not what its \"problem\" says; change that line, which is what counts",
                   path, key);
  }
  json_decref(means);
  return same;
}

static bool read_problem(dump_folder *dump, const char *folder, complaint why) {
  char path[PATH_BYTES];
  json_error_t error;
  struct stat status;
  snprintf(path, sizeof path, "%s/problem.json", folder);
  if (stat(folder, &status) != 0) return wrong(why, "%s: %s", folder, strerror(errno));
  if (!S_ISDIR(status.st_mode))
    return wrong(why, "%s is no folder: give one that attnbench dump wrote", folder);
  if (stat(path, &status) != 0)
    return wrong(why, "%s has no problem.json: give a folder that attnbench dump wrote", folder);
  json_t *said = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (!said) return wrong(why, "%s, line %d: %s", path, error.line, error.text);
  const bool sound = parse_line(dump, path, said, why) && check_keys(path, said, &dump->workload, why);
  json_decref(said);
  return sound;
}

/* ---- arrays ---- */

/* bool for bytes, and what ml_dtypes calls a bfloat16 when it is saved. */
static bool is_type(const char *descr, const char *wanted) {
  if (strcmp(descr, wanted) == 0) return true;
  if (strcmp(wanted, "|u1") == 0) return strcmp(descr, "|b1") == 0 || strcmp(descr, "<u1") == 0;
  return strcmp(wanted, "<u2") == 0 && (strcmp(descr, "|V2") == 0 || strcmp(descr, "<V2") == 0);
}

static bool check_array(const char *path, const npy_array *array, const dump_file *wanted, complaint why) {
  char found[NPY_SHAPE_BYTES], right[NPY_SHAPE_BYTES];
  npy_name_shape(array->axes, array->shape, found);
  npy_name_shape(wanted->axes, wanted->shape, right);
  if (strcmp(found, right) != 0)
    return wrong(why, "%s is of shape %s: the problem says %s", path, found, right);
  return is_type(array->descr, wanted->descr) ||
         wrong(why, "%s is of type %s: the problem says %s", path, array->descr, wanted->descr);
}

static bool read_list(const char *folder, const char *name, const int64_t *numbers, int64_t count,
                      complaint why) {
  char path[PATH_BYTES];
  npy_array array;
  const dump_file wanted = {.descr = "<i8", .axes = 1, .shape = {count}};
  snprintf(path, sizeof path, "%s/%s.npy", folder, name);
  if (!npy_read(path, &array, why.text, why.size)) return false;
  bool same = check_array(path, &array, &wanted, why);
  if (same && memcmp(array.data, numbers, array.bytes) != 0)
    same = wrong(why,
                 "%s: its numbers are not those of the \"problem\" of problem.json; change that line, which "
                 "is what counts",
                 path);
  npy_destroy(&array);
  return same;
}

bool dump_read(dump_folder *dump, const char *folder, char *why, size_t why_size) {
  const complaint to = {why, why_size};
  *dump = (dump_folder){0};
  if (strlen(folder) > PATH_BYTES - 64) return wrong(to, "the path of the folder is too long");
  if (!read_problem(dump, folder, to)) return false;
  const attn_problem p = workload_problem(&dump->workload);
  bool sound = true;
  for (tensor_id id = 0; id < TENSORS && sound; id++) {
    if (tensor_is_written(&p, id) || !tensor_layout(&p, id)->type) continue;
    char path[PATH_BYTES];
    const dump_file file = dump_file_of(&p, id);
    snprintf(path, sizeof path, "%s/%s", folder, file.name);
    sound =
        npy_read(path, &dump->inputs[id], why, why_size) && check_array(path, &dump->inputs[id], &file, to);
  }
  for (int n = 0; n < DUMP_LISTS && sound; n++) {
    const char *name;
    const int64_t *numbers = dump_list(&dump->workload, n, &name);
    sound = !numbers || read_list(folder, name, numbers, dump->workload.batch, to);
  }
  if (!sound) dump_destroy(dump);
  return sound;
}

void dump_destroy(dump_folder *dump) {
  for (tensor_id id = 0; id < TENSORS; id++) npy_destroy(&dump->inputs[id]);
}
