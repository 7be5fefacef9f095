/* See instructions.h. The program runs itself under callgrind, which collects only while
 * instructions_counted_run is on the stack and writes one file each time that function is left
 * (Callgrind manual, --toggle-collect and --dump-after). */
#define _GNU_SOURCE
#include "instructions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/folder.h"
#include "plugins.h"
#include "runner.h"

#define COUNTED "instructions_counted_run"
enum { PATH_BYTES = 4096 };

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INSTRUMENTED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED 1
#endif

/* ---- under valgrind ---- */

/* Named on valgrind's command line, so it must be a function of its own, and one that the kernel returns
 * to: hence the empty statement after the call. */
__attribute__((noinline, used)) void instructions_counted_run(const attn_call *call) {
  runner_invoke(call);
  __asm__ volatile("" ::: "memory");
}

static int complain(const char *variant, const char *why) {
  fprintf(stderr, "%s: %s\n", variant, why);
  return 2;
}

/* False, with the reason in words, where it does not run. */
static bool run_once(const run_setup *setup, const workload *w, bool counted, char *why, size_t why_size) {
  inputs inputs;
  if (!inputs_create(&inputs, w, true, why, why_size)) return false;
  const char *reason = runner_refusal(setup->variant, &inputs.problem);
  if (reason) snprintf(why, why_size, "%s", reason);
  const size_t bytes = reason ? 0 : runner_workspace_bytes(setup, &inputs.problem);
  bool good = !reason && runner_workspace_is_sensible(bytes, &inputs.problem, why, why_size);
  void *workspace = good ? aligned_alloc(64, (bytes + 64) / 64 * 64) : NULL;
  if (good && !workspace) {
    snprintf(why, why_size, "its workspace cannot be had");
    good = false;
  }
  const attn_call call = runner_call(setup, &inputs.problem, &inputs.tensors, workspace);
  if (good && counted)
    instructions_counted_run(&call);
  else if (good)
    runner_invoke(&call);
  free(workspace);
  inputs_destroy(&inputs);
  return good;
}

/* First a short problem, uncounted, or the same where the kernel takes none so short: libraries that it calls may set
 * themselves up at the first call. */
static int count_one(const attn_variant *variant, const char *isa, const workload *wanted) {
  char why[512];
  const run_setup setup = {.variant = variant, .isa = isa, .threads = 1};
  workload brief = *wanted;
  if (brief.query_length > 16) brief.query_length = 16;
  if (brief.key_length > 16) brief.key_length = 16;
  brief.has_lengths = brief.has_query_lengths = false;
  const bool good = (run_once(&setup, &brief, false, why, sizeof why) ||
                     run_once(&setup, wanted, false, why, sizeof why)) &&
                    run_once(&setup, wanted, true, why, sizeof why);
  return good ? 0 : complain(variant->name, why);
}

/* The instruction set that will be used: the table knows what the processor has, here valgrind's. */
static void say_isa(const variant_list *list) {
  const char *const *(*sets)(void) = list->table_count ? list->tables[0]->instruction_sets : NULL;
  const char *used = getenv("ATTN_ISA");
  for (const char *const *set = sets ? sets() : NULL; !used && set && *set; set++)
    if (!set[1]) used = *set;
  printf("isa %s\n", used ? used : "portable");
  fflush(stdout);
}

int instructions_child(const char *plugin, const char *const *words, size_t count) {
  variant_list list = {0};
  char why[512];
  if (count % 2 != 0) return complain("count-instructions", "needs variants, each with a problem");
  const bool loaded = plugin ? variant_list_add(&list, plugin, why, sizeof why)
                             : variant_list_add_own(&list, why, sizeof why);
  if (!loaded) return complain("count-instructions", why);
  say_isa(&list);
  int status = 0;
  for (size_t i = 0; i < count && status == 0; i += 2) {
    workload workload;
    const attn_variant *variant = variant_list_find(&list, words[i]);
    if (!variant)
      status = complain(words[i], "there is no such variant");
    else if (!workload_parse_sound(words[i + 1], &workload, why, sizeof why))
      status = complain(words[i], why);
    else
      status =
          count_one(variant, isa_among(variant_list_instruction_sets_of(&list, variant), getenv("ATTN_ISA")),
                    &workload);
  }
  variant_list_destroy(&list);
  return status;
}

/* ---- around valgrind ---- */

const char *instructions_unavailable(void) {
#ifdef INSTRUMENTED
  return "valgrind cannot run a build with sanitizers";
#endif
  bool found = false;
  char path[PATH_BYTES], *rest = NULL;
  const char *searched = getenv("PATH");
  char *folders = strdup(searched ? searched : "/usr/bin:/bin");
  for (char *folder = folders ? strtok_r(folders, ":", &rest) : NULL; folder && !found;
       folder = strtok_r(NULL, ":", &rest)) {
    snprintf(path, sizeof path, "%s/valgrind", folder);
    found = access(path, X_OK) == 0;
  }
  free(folders);
  return found ? NULL : "valgrind is not installed";
}

/* The total in a file of callgrind's; false when it has none. */
static bool read_total(const char *path, uint64_t *total) {
  FILE *file = fopen(path, "r");
  char line[1024];
  bool found = false;
  static const char key[] = "totals: ";
  while (file && !found && fgets(line, sizeof line, file)) {
    if (strncmp(line, key, sizeof key - 1) != 0) continue;
    char *end;
    *total = strtoull(line + sizeof key - 1, &end, 10);
    found = end != line + sizeof key - 1;
  }
  if (file) fclose(file);
  return found;
}

static bool read_totals(const char *out, instruction_point *points, size_t count, char *why,
                        size_t why_size) {
  for (size_t n = 0; n < count; n++) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s.%zu", out, n + 1);
    if (read_total(path, &points[n].instructions)) continue;
    snprintf(why, why_size, "valgrind left no count for %s/%s", points[n].variant, points[n].problem);
    return false;
  }
  return true;
}

static void remove_counts(const char *folder, const char *out, size_t count) {
  char path[PATH_BYTES];
  unlink(out);
  for (size_t n = 1; n <= count; n++) {
    snprintf(path, sizeof path, "%s.%zu", out, n);
    unlink(path);
  }
  rmdir(folder);
}

/* The child sees nothing of our environment, which would move its stack and might set thread counts. */
static bool run_valgrind(const char *program, const char *plugin, const char *isa,
                         const instruction_point *points, size_t count, const char *out, char **said,
                         char *why, size_t why_size) {
  char *argv[16 + 2 * INSTRUCTIONS_MAX_POINTS];
  char path[PATH_BYTES + 8], isa_setting[64], out_option[PATH_BYTES + 32];
  snprintf(path, sizeof path, "PATH=%s", getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
  snprintf(isa_setting, sizeof isa_setting, "ATTN_ISA=%s", isa ? isa : "");
  snprintf(out_option, sizeof out_option, "--callgrind-out-file=%s", out);
  char *environment[] = {path, "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", isa ? isa_setting : NULL, NULL};
  char *const fixed[] = {"valgrind",
                         "--tool=callgrind",
                         "-q",
                         "--collect-atstart=no",
                         ("--toggle-collect=" COUNTED),
                         ("--dump-after=" COUNTED),
                         out_option,
                         (char *)program,
                         "count-instructions"};
  size_t used = sizeof fixed / sizeof *fixed;
  memcpy(argv, fixed, sizeof fixed);
  if (plugin) {
    argv[used++] = "--plugin";
    argv[used++] = (char *)plugin;
  }
  for (size_t n = 0; n < count; n++) {
    argv[used++] = (char *)points[n].variant;
    argv[used++] = (char *)points[n].problem;
  }
  argv[used] = NULL;
  const int status = child_run(argv, environment, said, why, why_size);
  if (status > 0)
    snprintf(why, why_size, "valgrind ended with status %d: %s", status, child_last_line(*said));
  return status == 0;
}

bool instructions_count(const char *program, const char *plugin, const char *isa, instruction_point *points,
                        size_t count, char used_isa[INSTRUCTIONS_ISA_BYTES], char *why, size_t why_size) {
  char folder[PATH_BYTES - 32], out[sizeof folder + 8], *said = NULL;
  const char *missing = instructions_unavailable();
  if (missing || count > INSTRUCTIONS_MAX_POINTS) {
    snprintf(why, why_size, "%s", missing ? missing : "there are too many points for one count");
    return false;
  }
  snprintf(folder, sizeof folder, "%s/attnbench-count-XXXXXX", folder_temporary());
  if (!mkdtemp(folder)) {
    snprintf(why, why_size, "cannot make a folder in %s for the counts", folder_temporary());
    return false;
  }
  snprintf(out, sizeof out, "%s/out", folder);
  const bool counted = run_valgrind(program, plugin, isa, points, count, out, &said, why, why_size) &&
                       read_totals(out, points, count, why, why_size);
  const char *word = said ? strstr(said, "isa ") : NULL;
  if (!word || sscanf(word, "isa %31s", used_isa) != 1)
    snprintf(used_isa, INSTRUCTIONS_ISA_BYTES, "portable");
  free(said);
  remove_counts(folder, out, count);
  return counted;
}
