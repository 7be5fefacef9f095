/* What scripts/gate.sh prepares for the gate, where nobody did: the facts of both sides, whose code is the same, and another
 * copy of the base where there is one link of it. */
#define _GNU_SOURCE
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/folder.h"
#include "gate.h"

void gate_make_folder(gate_prepared *made) {
  snprintf(made->folder, sizeof made->folder, "%s/attnbench-gate-XXXXXX", folder_temporary());
  if (!mkdtemp(made->folder)) made->folder[0] = '\0';
}

static void name_file(const gate_prepared *made, char path[GATE_FILE_BYTES], const char *name) {
  snprintf(path, GATE_FILE_BYTES, "%.*s/%s", (int)sizeof made->folder - 1, made->folder, name);
}

/* ---- whose code is the same ---- */

static bool all_links_are_same(const gate_options *options) {
  bool same = options->base_count > 0;
  for (size_t n = 0; same && n < options->base_count; n++)
    same = gate_same_code(options->bases[n], options->heads[n]);
  return same;
}

/* The names of all variants, with spaces between. */
static char *name_all(const gate_options *options) {
  char why[512];
  variant_list list = {0};
  char *names = NULL;
  size_t size;
  FILE *text = open_memstream(&names, &size);
  const bool loaded = text && gate_load(&list, options->heads[0], options, why, sizeof why);
  for (size_t n = 0; loaded && n < list.count; n++)
    fprintf(text, "%s%s", n ? " " : "", list.variants[n]->name);
  if (text) fclose(text);
  variant_list_destroy(&list);
  return names;
}

/* ---- another self of the base ---- */

/* In another file: the loader takes two names of one file for the same. */
static bool copy_file(const char *from, const char *to, char *why, size_t why_size) {
  FILE *source = fopen(from, "rb"), *copy = fopen(to, "wb");
  char bytes[1 << 14];
  size_t count = 1;
  bool good = source && copy;
  while (good && (count = fread(bytes, 1, sizeof bytes, source)) > 0)
    good = fwrite(bytes, 1, count, copy) == count;
  good = good && !ferror(source);
  if (source) fclose(source);
  if (copy && fclose(copy) != 0) good = false;
  if (!good) snprintf(why, why_size, "%s cannot be copied to %s", from, to);
  return good;
}

/* ---- facts ---- */

typedef struct counting {
  const gate_options *options;
  const char *path, *other, *file; /* other: NULL, or the side that is to take the problems too */
  int status;
  char why[512];
} counting;

/* A process of this program that writes a side's facts. */
static void *count_side(void *context) {
  counting *of = context;
  const gate_options *options = of->options;
  enum { FIXED = 10 };
  char **argv = calloc(FIXED + 2 * (options->variant_count + options->problem_count), sizeof *argv),
       *said = NULL;
  size_t used = 0;
  of->status = -1;
  snprintf(of->why, sizeof of->why, "out of memory");
  if (!argv) return NULL;
  const char *const fixed[] = {options->program, "gate",   "--write-facts", of->file,
                               "--head",         of->path, "--base",        of->other};
  for (size_t n = 0; n < (of->other ? 8 : 6); n++) argv[used++] = (char *)(uintptr_t)fixed[n];
  for (size_t n = 0; n < options->variant_count; n++) {
    argv[used++] = "--variant";
    argv[used++] = (char *)(uintptr_t)options->variants[n];
  }
  for (size_t n = 0; n < options->problem_count; n++) {
    argv[used++] = "--problem";
    argv[used++] = (char *)(uintptr_t)options->problems[n];
  }
  of->status = child_run(argv, NULL, &said, of->why, sizeof of->why);
  if (of->status == 0) fputs(said, stderr); /* what it left out */
  if (of->status > 0) snprintf(of->why, sizeof of->why, "%.500s", child_last_line(said));
  free(said);
  free(argv);
  return NULL;
}

/* Both at the same time. */
static bool count_both(gate_prepared *made, gate_options *options, char *why, size_t why_size) {
  const bool has_base =
      options->base_count > 0 && !options->why_no_base && !options->base_facts && !made->identical;
  name_file(made, made->head_facts, "head.json");
  name_file(made, made->base_facts, "base.json");
  counting head = {
      options, options->heads[0], options->why_no_base ? NULL : options->bases[0], made->head_facts, 0, ""};
  counting base = {options, has_base ? options->bases[0] : NULL, options->heads[0], made->base_facts, 0, ""};
  pthread_t beside;
  fprintf(stderr, "gate: counting\n");
  const bool started = has_base && pthread_create(&beside, NULL, count_side, &base) == 0;
  count_side(&head);
  if (started) pthread_join(beside, NULL);
  if (has_base && !started) count_side(&base);
  if (head.status != 0) {
    snprintf(why, why_size, "the head cannot be counted: %s", head.why);
    return false;
  }
  options->head_facts = made->head_facts;
  if (has_base && base.status == 0) options->base_facts = made->base_facts;
  if (made->identical) options->base_facts = options->head_facts; /* what runs is the same */
  if (has_base && base.status != 0)
    fprintf(stderr, "attnbench gate: the base cannot be counted: %s\n", base.why);
  return true;
}

/* ---- all of it ---- */

bool gate_prepare(gate_prepared *made, gate_options *options, char *why, size_t why_size) {
  const bool counts = options->facts && !options->head_facts;
  const bool copies = options->times && options->base_count == 1 && !options->why_no_base;
  if (!options->identical && all_links_are_same(options))
    options->identical = made->identical = name_all(options);
  if ((counts || copies) && !made->folder[0]) {
    snprintf(why, why_size, "cannot make a folder in %s for what both sides need", folder_temporary());
    return false;
  }
  if (copies) {
    name_file(made, made->itself, "base.so");
    if (!copy_file(options->bases[0], made->itself, why, why_size)) return false;
    options->itself = made->itself;
  }
  return !counts || count_both(made, options, why, why_size);
}

/* What cannot be removed is no reason to leave the rest. */
static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place) {
  (void)status, (void)kind, (void)place;
  remove(path);
  return 0;
}

void gate_clean_up(const gate_prepared *made) {
  enum { MOST_OPEN = 8 };
  if (made->folder[0]) nftw(made->folder, remove_entry, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
}
