/* Kernels for GPUs, which no machine of the gate's may be able to run: what the compiler made of each is exact, and the
 * same wherever the same one compiles it. See gate.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "gate.h"

/* A compiler orders instructions anew for a changed line elsewhere in the kernel; more registers let fewer warps run
 * beside each other, and one that is spilled costs more than the instructions around it. */
static const double instructions_allowed = 1.02;

enum { MOST_KERNELS = 4096, COUNTS = 4 };
static const char *const count_words[COUNTS] = {"registers", "bytes spilled", "bytes of shared memory",
                                                "instructions"};

typedef struct kernel_code {
  char gpu[16], name[GATE_NAME_BYTES]; /* "sm_90a", "cuda_fused/solve_rows<64>" */
  int64_t counts[COUNTS];
} kernel_code;

typedef struct code_list {
  kernel_code *kernels;
  size_t count;
} code_list;

/* "registers 168" */
static bool parse_count(const char *word, const char *number, int n, int64_t *count) {
  static const char *const words[COUNTS] = {"registers", "spilled", "shared", "instructions"};
  const char *end;
  return strcmp(word, words[n]) == 0 && text_integer(number, 0, INT32_MAX, &end, count) && *end == '\0';
}

static bool parse_line(const char *line, kernel_code *kernel) {
  char words[COUNTS][16], numbers[COUNTS][16], more[2];
  bool good = sscanf(line, "%15s %255s %15s %15s %15s %15s %15s %15s %15s %15s %1s", kernel->gpu,
                     kernel->name, words[0], numbers[0], words[1], numbers[1], words[2], numbers[2], words[3],
                     numbers[3], more) == 2 + 2 * COUNTS;
  for (int n = 0; good && n < COUNTS; n++) good = parse_count(words[n], numbers[n], n, &kernel->counts[n]);
  return good && strchr(kernel->name, '/');
}

static bool read_code(code_list *list, const char *path, char *why, size_t why_size) {
  char line[512];
  FILE *file = fopen(path, "r");
  bool good = true;
  list->kernels = calloc(MOST_KERNELS, sizeof *list->kernels);
  if (!file || !list->kernels) {
    snprintf(why, why_size, "%s cannot be read: %s", path, strerror(file ? ENOMEM : errno));
    good = false;
  }
  while (good && fgets(line, sizeof line, file)) {
    good = list->count < MOST_KERNELS && parse_line(line, &list->kernels[list->count]);
    if (good) list->count++;
    line[strcspn(line, "\n")] = '\0';
    if (!good)
      snprintf(why, why_size,
               "%s: '%.80s' is no line of scripts/cuda_code.sh: GPU VARIANT/KERNEL registers N spilled N "
               "shared N instructions N",
               path, line);
  }
  if (file) fclose(file);
  return good;
}

static const kernel_code *find_kernel(const code_list *list, const kernel_code *like) {
  for (size_t n = 0; n < list->count; n++)
    if (strcmp(list->kernels[n].gpu, like->gpu) == 0 && strcmp(list->kernels[n].name, like->name) == 0)
      return &list->kernels[n];
  return NULL;
}

/* What it takes more of, in words; "": nothing beyond what is allowed. */
static void describe_more(const kernel_code *now, const kernel_code *before, char *words, size_t size) {
  size_t used = 0;
  words[0] = '\0';
  for (int n = 0; n < COUNTS && used < size; n++) {
    const bool is_instructions = n == COUNTS - 1;
    const double allowed = (double)before->counts[n] * (is_instructions ? instructions_allowed : 1);
    if ((double)now->counts[n] <= allowed) continue;
    used += (size_t)snprintf(words + used, size - used, "%s%" PRId64 " %s, %" PRId64 " in the base",
                             used ? "; " : "", now->counts[n], count_words[n], before->counts[n]);
  }
}

/* before: NULL for a new kernel, which has nothing to be held to, but may not spill. */
static bool compare_kernel(const gate_options *options, gate_findings *findings, const kernel_code *now,
                           const kernel_code *before) {
  char words[160] = "", variant[GATE_WORD_BYTES];
  if (before)
    describe_more(now, before, words, sizeof words);
  else if (now->counts[1] > 0)
    snprintf(words, sizeof words, "%" PRId64 " %s; the base has no such kernel", now->counts[1],
             count_words[1]);
  if (!words[0]) return true;
  snprintf(variant, sizeof variant, "%.*s", (int)strcspn(now->name, "/"), now->name);
  return gate_find(findings, options, GATE_DEVICE, variant, now->name, "%s: %s", now->gpu, words);
}

bool gate_compare_code(const gate_options *options, gate_findings *findings, FILE *out, char *why,
                       size_t why_size) {
  code_list head = {0}, base = {0};
  size_t more = 0, fewer = 0, new = 0;
  bool good = read_code(&head, options->head_code, why, why_size) &&
              read_code(&base, options->base_code, why, why_size);
  for (size_t n = 0; good && n < head.count; n++) {
    const kernel_code *now = &head.kernels[n], *before = find_kernel(&base, now);
    new += !before;
    more += before && now->counts[COUNTS - 1] > before->counts[COUNTS - 1];
    fewer += before && now->counts[COUNTS - 1] < before->counts[COUNTS - 1];
    good = compare_kernel(options, findings, now, before);
    if (!good) snprintf(why, why_size, "out of memory");
  }
  if (good)
    fprintf(out,
            "  %-13s%zu kernels for GPUs against the base: instructions of %zu up, of %zu down; %zu new\n",
            "device", head.count - new, more, fewer, new);
  free(head.kernels);
  free(base.kernels);
  return good;
}
