/* Writes a dump: everything into a folder beside, which takes its name when it is whole. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/complaint.h"
#include "base/interrupt.h"
#include "base/replace.h"
#include "dump.h"
#include "inputs.h"
#include "rows.h"

enum { PATH_BYTES = 4096 };

/* ---- files ---- */

/* What writes a file's contents; false when it cannot. */
typedef bool put_contents(FILE *file, const void *context);

static bool write_file(const char *folder, const char *name, put_contents *put, const void *context,
                       complaint why) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  bool written = file && put(file, context);
  written = file && fclose(file) == 0 && written;
  return written || wrong(why, "%s cannot be written: %s", name, strerror(errno));
}

static bool put_json(FILE *file, const void *context) {
  const json_t *object = context;
  return json_dumpf(object, file, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0 && fputc('\n', file) != EOF;
}

typedef struct list {
  const int64_t *numbers;
  int64_t count;
} list;

static bool put_list(FILE *file, const void *context) {
  const list *of = context;
  return npy_write_header(file, "<i8", 1, &of->count) &&
         fwrite(of->numbers, sizeof *of->numbers, (size_t)of->count, file) == (size_t)of->count;
}

typedef struct one_tensor {
  const inputs *in;
  tensor_id id;
} one_tensor;

/* Masks are of 0 and 1 there, which are bools in any language. */
static bool put_row(FILE *file, number_row row, int64_t width) {
  if (row.type != element_type_of(ATTN_UINT8))
    return fwrite(row.first, row.type->bytes, (size_t)width, file) == (size_t)width;
  for (int64_t n = 0; n < width; n++)
    if (fputc(row.first[n] != 0 ? 1 : 0, file) == EOF) return false;
  return true;
}

static bool put_tensor(FILE *file, const void *context) {
  const one_tensor *of = context;
  const attn_problem *p = &of->in->problem;
  const tensor_shape shape = tensor_stored_shape(p, of->id);
  const dump_file about = dump_file_of(p, of->id);
  bool written = npy_write_header(file, about.descr, about.axes, about.shape);
  for (int64_t b = 0; b < shape.batch; b++)
    for (int64_t h = 0; h < shape.heads; h++)
      for (int64_t i = 0; i < shape.length && written; i++)
        written = put_row(file, row_at(of->in, of->id, (row_place){b, h, i}), shape.width);
  return written;
}

static bool write_all(const inputs *in, const char *folder, complaint why) {
  bool written = true;
  for (tensor_id id = 0; id < TENSORS && written; id++) {
    if (tensor_is_written(&in->problem, id) || !tensor_layout(&in->problem, id)->type) continue;
    const one_tensor tensor = {in, id};
    written = write_file(folder, dump_file_of(&in->problem, id).name, put_tensor, &tensor, why) &&
              (!interrupt_wanted() || wrong(why, "ended by Ctrl-C; nothing was written"));
  }
  for (int n = 0; n < DUMP_LISTS && written; n++) {
    const char *name;
    char file[32];
    const list numbers = {dump_list(&in->workload, n, &name), in->workload.batch};
    snprintf(file, sizeof file, "%s.npy", name);
    if (numbers.numbers) written = write_file(folder, file, put_list, &numbers, why);
  }
  json_t *object = dump_describe(&in->workload);
  written = written && write_file(folder, "problem.json", put_json, object, why);
  json_decref(object);
  return written;
}

/* ---- the folder ---- */

static void remove_folder(const char *folder) {
  DIR *listing = opendir(folder);
  char path[PATH_BYTES];
  for (struct dirent *entry; listing && (entry = readdir(listing));) {
    const int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (length > 0 && length < PATH_BYTES && entry->d_name[0] != '.') unlink(path);
  }
  if (listing) closedir(listing);
  rmdir(folder);
}

static bool is_empty(const char *folder) {
  DIR *listing = opendir(folder);
  int entries = 0;
  while (listing && readdir(listing)) entries++;
  if (listing) closedir(listing);
  return listing && entries <= 2; /* . and .. */
}

static bool make_parents(char *folder) {
  for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    const bool made = mkdir(folder, 0777) == 0 || errno == EEXIST;
    *slash = '/';
    if (!made) return false;
  }
  return true;
}

/* What is there already must be an empty folder, and not the one that the shell stands in: it would be another. */
static bool is_free(const char *folder, const char *target, complaint why) {
  struct stat status, here;
  if (stat(target, &status) != 0)
    return errno == ENOENT || wrong(why, "--out %s: %s; give a new folder", folder, strerror(errno));
  if (!S_ISDIR(status.st_mode)) return wrong(why, "--out %s is no folder; give a new one", folder);
  if (!is_empty(target)) return wrong(why, "--out %s is not empty; give a new folder", folder);
  if (stat(".", &here) == 0 && here.st_dev == status.st_dev && here.st_ino == status.st_ino)
    return wrong(why, "--out %s is the folder that you are in; give a new one", folder);
  return true;
}

static bool write_beside(const inputs *in, const char *folder, const char *target, complaint why) {
  char beside[PATH_BYTES];
  snprintf(beside, sizeof beside, "%s.XXXXXX", target);
  const mode_t mask = umask(0);
  umask(mask);
  if (!mkdtemp(beside))
    return wrong(why, "--out %s: %s; give a folder that can be written", folder, strerror(errno));
  chmod(beside, 0777 & ~mask);
  bool written = write_all(in, beside, why);
  if (written && rename(beside, target) != 0) written = wrong(why, "--out %s: %s", folder, strerror(errno));
  if (!written) remove_folder(beside);
  return written;
}

bool dump_write(const workload *w, const char *folder, char *why, size_t why_size) {
  const complaint to = {why, why_size};
  inputs in;
  char *target = replace_target(folder);
  if (!target) return wrong(to, "--out %s: %s", folder, strerror(errno));
  for (size_t length = strlen(target); length > 1 && target[length - 1] == '/';) target[--length] = '\0';
  bool written = is_free(folder, target, to) && inputs_create(&in, w, false, why, why_size);
  if (written) {
    if (!make_parents(target))
      written = wrong(to, "--out %s: %s; give a folder that can be written", folder, strerror(errno));
    interrupt_catch();
    written = written && write_beside(&in, folder, target, to);
    interrupt_release();
    inputs_destroy(&in);
  }
  free(target);
  return written;
}
