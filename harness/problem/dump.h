/* A problem as a folder that any language reads: problem.json and the inputs as .npy files. */
#ifndef ATTN_HARNESS_DUMP_H
#define ATTN_HARNESS_DUMP_H

#include <jansson.h>

#include "npy.h"
#include "tensors.h"
#include "workload.h"

/* ---- one file ---- */

/* Where a tensor lies in a dump: "q.npy", with those axes of [batch, heads, length, width] that it has, 1 where the problem
 * broadcasts it. */
typedef struct dump_file {
  char name[32];
  const char *descr;    /* of the problem's type: "<f4", of bfloat16 "<u2", its bits */
  int axes, axis_of[4]; /* which of the four each is */
  int64_t shape[4];
} dump_file;

dump_file dump_file_of(const attn_problem *problem, tensor_id id);

/* The numbers of a batch's list, "lengths", "offsets" or "qlengths": int64, [B]. NULL: the problem has none. */
const int64_t *dump_list(const workload *w, int n, const char **name);
enum { DUMP_LISTS = 3 };

/* What problem.json says of a workload; NULL when memory is short. */
json_t *dump_describe(const workload *w);

/* ---- the folder ---- */

/* Made whole or not at all: what is there already has to be an empty folder. False, with the reason in a sentence. */
bool dump_write(const workload *w, const char *folder, char *why, size_t why_size);

/* What a folder asks, and the inputs that lie in it: its line may have made them, or somebody put others there. */
typedef struct dump_folder {
  workload workload;
  npy_array inputs[TENSORS];
} dump_folder;

/* False, with a sentence that names the file, where it is no dump, or one of its files is missing, unsound or not of the problem
 * that problem.json's line says. */
bool dump_read(dump_folder *dump, const char *folder, char *why, size_t why_size);
void dump_destroy(dump_folder *dump);

#endif
