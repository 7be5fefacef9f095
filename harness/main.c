/* The program: reads the command line, calls the part that does the work, and is the only place that
 * says what went wrong and decides on the exit status: 0 all is well, 1 a kernel is wrong, 2 nothing
 * could be done, 130 ended by Ctrl-C. */
#define _GNU_SOURCE
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure/bench.h"
#include "measure/shard.h"
#include "verify/golden.h"
#include "verify/fuzz.h"
#include "gate/gate.h"
#include "run/instructions.h"
#include "base/folder.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/parts.h"
#include "base/replace.h"
#include "machine/affinity.h"
#include "machine/machine.h"
#include "options.h"
#include "run/device.h"
#include "run/plugins.h"
#include "run/supervisor.h"
#include "report/merge.h"
#include "report/report.h"
#include "report/show.h"
#include "measure/sweep.h"
#include "base/text.h"
#include "base/version.h"
#include "verify/verify.h"
#include "verify/judge_folder.h"
#include "problem/dump.h"

enum { STATUS_GOOD = 0, STATUS_WRONG = 1, STATUS_UNUSABLE = 2, STATUS_INTERRUPTED = 130, WHY_BYTES = 2048 };

static int complain(const char *why) {
  fprintf(stderr, "attnbench: %s\n", why);
  return STATUS_UNUSABLE;
}

/* ---- variants and instruction sets ---- */

static bool load_variants(variant_list *list, const options *options, char *why, size_t why_size) {
  if (options->device ? !variant_list_add_device(list, options->device, why, why_size)
                      : options->own && !variant_list_add_own(list, why, why_size))
    return false;
  supervisor_note_set(options->device, options->own);
  for (size_t i = 0; i < options->plugins.count; i++) {
    const char *plugin = options->plugins.items[i];
    if (supervisor_refuses(plugin)) continue;
    supervisor_loads(plugin);
    const bool added = variant_list_add(list, plugin, why, why_size);
    supervisor_loads(NULL);
    if (!added) return false;
  }
  return true;
}

static size_t count_texts(const char *const *texts) {
  size_t count = 0;
  while (texts[count]) count++;
  return count;
}

/* The names in all tables, each once. */
static void list_isas(const variant_list *list, char *text, size_t size) {
  int written = 0;
  for (size_t t = 0; t < list->table_count; t++) {
    const char *const *sets = list->tables[t]->instruction_sets ? list->tables[t]->instruction_sets() : NULL;
    for (size_t n = 0; sets && sets[n] && written >= 0 && (size_t)written < size; n++) {
      const variant_list before = {.tables = list->tables, .table_count = t};
      if (!variant_list_find_isa(&before, sets[n]))
        written += snprintf(text + written, size - (size_t)written, " %s", sets[n]);
    }
  }
}

/* The instruction set that the command line, or else the environment, holds variants to, of whichever table; NULL when
 * neither does. False when no table has it on this processor. */
static bool find_isa(const options *options, const variant_list *list, const char **isa, char *why,
                     size_t why_size) {
  const char *wanted = options->isa ? options->isa : getenv("ATTN_ISA");
  char known[1024] = "";
  *isa = wanted ? variant_list_find_isa(list, wanted) : NULL;
  if (!wanted || *isa) return true;
  list_isas(list, known, sizeof known);
  snprintf(why, why_size, "%s: this processor has no instruction set '%s'; it has%s",
           options->isa ? "--isa" : "ATTN_ISA", wanted, known);
  return false;
}

/* ---- files ---- */

static bool check_file_folder(const char *option, const char *file, char *why, size_t why_size) {
  if (!file) return true;
  struct stat status;
  char *path = replace_target(file); /* where a link points to: there it is written */
  bool sound = path && !(stat(path, &status) == 0 && S_ISDIR(status.st_mode));
  if (!sound && path) errno = EISDIR;
  sound = sound && access(dirname(path), W_OK | X_OK) == 0;
  if (!sound)
    snprintf(why, why_size, "%s %s: %s; give a file in a folder that can be written", option, file,
             strerror(errno));
  free(path);
  return sound;
}

/* The folder of the gnuplot files; found is where the program's own is written. */
static const char *scripts_folder(const options *options, char found[PARTS_PATH_BYTES]) {
  if (options->scripts) return options->scripts;
  parts_find("plots", found);
  return found;
}

static plot_style style_from(const options *options, char found[PARTS_PATH_BYTES]) {
  return (plot_style){.scripts = scripts_folder(options, found),
                      .title = options->title,
                      .font_size = (double)options->font_size,
                      .formats = (const char *const *)options->formats.items,
                      .format_count = options->formats.count};
}

/* Everything that --out asks for. Missing plots are not a failure: gnuplot is optional. */
static bool write_folder(const report *report, const options *options, const report_options *rows, char *why,
                         size_t why_size) {
  static const char *const files[][2] = {
      {"json", "results.json"}, {"csv", "results.csv"}, {"console", "console.txt"}};
  char path[4096], found[PARTS_PATH_BYTES];
  /* It was there at the start; what was measured since must not be lost with it. */
  if (!folder_make(options->out, why, why_size)) return false;
  report_options aggregates = *rows; /* single repetitions are a table of their own: --raw */
  aggregates.repetitions = false;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    const report_options *of_file = strcmp(files[i][0], "csv") == 0 ? &aggregates : rows;
    snprintf(path, sizeof path, "%s/%s", options->out, files[i][1]);
    if (!report_write(report, of_file, files[i][0], path, why, why_size)) return false;
  }
  const plot_style style = style_from(options, found);
  bool plotted = report_plot(report, &style, options->out, why, why_size);
  if (!plotted) fprintf(stderr, "attnbench: no plots: %s\n", why);
  report_options summary = *rows;
  summary.pictures = plotted ? options->out : NULL;
  snprintf(path, sizeof path, "%s/summary.txt", options->out);
  if (!report_write(report, &summary, "summary", path, why, why_size)) return false;
  report_options page = *rows;
  page.style = &style;
  snprintf(path, sizeof path, "%s/index.html", options->out);
  return report_write(report, &page, "html", path, why, why_size);
}

/* ---- bench ---- */

static void list_presets(FILE *out) {
  for (const preset *preset = preset_list(); preset->name; preset++) {
    char shape[WORKLOAD_NAME_BYTES];
    workload_name(&preset->workload, shape);
    fprintf(out, "%-20s %s\n%-20s %s\n", preset->name, preset->summary, "", shape);
  }
}

static void list_points(const sweep *sweep, FILE *out) {
  for (size_t i = 0; i < sweep->count; i++) {
    char name[WORKLOAD_NAME_BYTES];
    sweep_point_name(&sweep->points[i], name);
    fprintf(out, "%s\n", name);
  }
}

/* Of the terminal that the table is printed on; 0: there is none. */
static int terminal_width(void) {
  struct winsize window;
  if (!isatty(STDOUT_FILENO)) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
}

static bool wants_color(const options *options) {
  bool wanted;
  if (text_flag(options->color, &wanted)) return wanted;
  return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && !terminal_is_dumb();
}

/* Without a number of repetitions, Google Benchmark makes one of min_time. We cut that time into ten, so that
 * there is an interval, and go on until it is narrow. */
static bench_options bench_options_from(const options *options, const char *isa) {
  /* Who asks for a number of iterations asks for no time: neither for a repetition nor for warming up. */
  const double repetition = options->iterations    ? 0
                            : options->repetitions ? options->min_time
                                                   : options->min_time / 10;
  bench_options result = {
      .threads = (int)options->threads,
      .isa = isa,
      .min_time = options->dry_run ? 0 : repetition,
      .iterations = options->dry_run ? 1 : options->iterations,
      .min_warmup_time = options->dry_run ? 0 : options->min_warmup_time,
      .repetitions = options->dry_run ? 1 : (int)options->repetitions,
      .precision = options->precision / 100,
      .least_time = options->iterations ? 0 : options->min_time,
      .point_budget = options->point_budget,
      .point_limit = options->point_limit,
      .machine_seconds = options->dry_run ? 0.2 : 3,
      .random_interleaving = options->random_interleaving,
      .cold = options->cold,
      .instructions = options->instructions && !options->dry_run,
      .seed = options->seed,
      .quiet = options->quiet,
  };
  return result;
}

/* Prints and writes a report in all forms that were asked for; the summary comes last. */
static bool give_report(const report *report, const options *options, char *why, size_t why_size) {
  const bool single_rows = !options->report_aggregates_only;
  report_options file_rows = {
      .repetitions = single_rows, .aggregates = true, .time_unit = options->time_unit};
  report_options console_rows = {.repetitions = single_rows && !options->display_aggregates_only,
                                 .aggregates = true,
                                 .brief = options->brief && !options->display_aggregates_only,
                                 .color = wants_color(options),
                                 .width = terminal_width(),
                                 .time_unit = options->time_unit};
  if (strcmp(options->format, "json") == 0) {
    report_json(report, &console_rows, stdout);
  } else if (strcmp(options->format, "csv") == 0) {
    report_csv(report, &console_rows, stdout);
  } else {
    report_console(report, &console_rows, stdout);
  }
  fflush(stdout);
  /* The folder first: what cannot be written elsewhere is not lost with it. */
  if (options->out && !write_folder(report, options, &file_rows, why, why_size)) return false;
  if (options->out_file &&
      !report_write(report, &file_rows, options->out_format, options->out_file, why, why_size))
    return false;
  const report_options raw_rows = {.repetitions = true, .time_unit = options->time_unit};
  if (options->raw && !report_write(report, &raw_rows, "csv", options->raw, why, why_size)) return false;
  if (strcmp(options->format, "console") == 0) {
    printf("\n");
    report_summary(report, options->out, stdout);
    if (options->out) printf("The page is %s/index.html\n", options->out);
  }
  return true;
}

static const report *with_context(report *report, const options *options) {
  report->context = (const char *const *)options->context.items;
  report->context_count = options->context.count;
  return report;
}

static int status_of(const report *report) {
  for (size_t i = 0; i < report->result_count; i++)
    if (report->results[i].state == RESULT_FAILED) return STATUS_WRONG;
  return report->interrupted ? STATUS_INTERRUPTED : STATUS_GOOD;
}

/* Google Benchmark would write a key twice; no reader expects that. */
static bool check_context(const options *options, char *why, size_t why_size) {
  for (size_t i = 0; i < options->context.count; i++) {
    char *key = strndup(options->context.items[i], strcspn(options->context.items[i], "="));
    const bool taken = !key || report_json_has_context(key) || report_csv_has_column(key);
    if (taken)
      snprintf(why, why_size, "--benchmark_context: '%s' is taken; give another key", key ? key : "");
    free(key);
    if (taken) return false;
  }
  return true;
}

/* The three places that a sweep is written to, each named by its shard; the caller frees them. */
static bool name_files(options *options, shard shard) {
  bool good = true;
  if (options->out) good = (options->out = shard_folder(options->out, shard)) && good;
  if (options->out_file) good = (options->out_file = shard_file(options->out_file, shard)) && good;
  if (options->raw) good = (options->raw = shard_file(options->raw, shard)) && good;
  return good;
}

static void say_shard(const sweep *sweep, const options *options, const sweep_plan *plan) {
  const int neighbours = strcmp(options->shard, "auto") == 0 ? shard_neighbours() : 1;
  if (sweep->count == 0)
    fprintf(stderr, "attnbench: shard %d/%d is empty: the sweep has too few points for so many shards\n",
            plan->shard, plan->shards);
  else if (neighbours > 1)
    fprintf(stderr,
            "attnbench: %d shards measure on this host at once, and slow each other down; start one on each "
            "host, as mpirun --map-by ppr:1:node --bind-to none does\n",
            neighbours);
}

/* Takes the plan. */
static int measure(const sweep *sweep, const options *options, const bench_options *how, sweep_plan *plan) {
  char why[WHY_BYTES];
  report report = {.plan = *plan};
  int status = STATUS_UNUSABLE;
  const bool ready = (!options->out || folder_make(options->out, why, sizeof why)) &&
                     check_file_folder("--benchmark_out", options->out_file, why, sizeof why) &&
                     check_file_folder("--raw", options->raw, why, sizeof why) &&
                     check_context(options, why, sizeof why);
  if (ready && !options->quiet) fputs(sweep->notes, stderr);
  if (ready && options->device && strcmp(options->device, "emu") == 0)
    fputs("attnbench: these are times of an emulation: they say nothing of a GPU's, and are no share of a "
          "peak\n",
          stderr);
  const bool measured =
      ready && bench_run(sweep->points, sweep->count, how, &report, why, sizeof why); /* empties it first */
  report.plan = *plan;
  if (!measured || !give_report(with_context(&report, options), options, why, sizeof why))
    complain(why);
  else
    status = status_of(&report);
  report_destroy(&report);
  return status;
}

/* The part of the sweep that this process is to measure. */
static int measure_shard(sweep *sweep, const options *options, const char *isa) {
  char why[WHY_BYTES];
  shard shard = {1, 1};
  sweep_plan plan = {0};
  const bench_options how = bench_options_from(options, isa);
  if ((options->shard && !shard_parse(options->shard, &shard, why, sizeof why)) ||
      !shard_take(sweep, shard, &how, &plan, why, sizeof why)) {
    sweep_plan_destroy(&plan);
    return complain(why);
  }
  if (options->list_tests) {
    list_points(sweep, stdout);
    sweep_plan_destroy(&plan);
    return STATUS_GOOD;
  }
  struct options named = *options;
  int status = STATUS_UNUSABLE;
  if (options->shard) say_shard(sweep, options, &plan);
  if (options->shard && !name_files(&named, shard)) {
    sweep_plan_destroy(&plan);
    complain("out of memory");
  } else {
    status = measure(sweep, &named, &how, &plan);
  }
  if (named.out != options->out) free((char *)(uintptr_t)named.out);
  if (named.out_file != options->out_file) free((char *)(uintptr_t)named.out_file);
  if (named.raw != options->raw) free((char *)(uintptr_t)named.raw);
  return status;
}

static int run_bench(const options *options, const variant_list *list) {
  char why[WHY_BYTES];
  const char *isa;
  sweep sweep;
  if (options->presets.count == 1 && strcmp(options->presets.items[0], "list") == 0) {
    list_presets(stdout);
    return STATUS_GOOD;
  }
  if (!find_isa(options, list, &isa, why, sizeof why)) return complain(why);
  const char *const *sets = variant_list_instruction_sets(list);
  size_t set_count = count_texts(sets);
  if (!isa && set_count) isa = sets[set_count - 1];

  const sweep_request request = {.variants = &options->variants,
                                 .problems = &options->problems,
                                 .presets = &options->presets,
                                 .batch = options->batch,
                                 .heads = options->heads,
                                 .kv_heads = options->kv_heads,
                                 .head_dim = options->head_dim,
                                 .value_dim = options->value_dim,
                                 .window = options->window,
                                 .query_length = options->query_length,
                                 .parts = &options->parts,
                                 .causal = options->causal,
                                 .lengths = options->lengths,
                                 .length_count = options->length_count,
                                 .seed = options->seed,
                                 .filter = options->filter};
  if (!sweep_create(&sweep, &request, list, why, sizeof why)) return complain(why);
  const int status = measure_shard(&sweep, options, isa ? isa : "portable");
  sweep_destroy(&sweep);
  return status;
}

/* ---- the other commands ---- */

/* A problem that was asked for by name must be one that the named variants can solve. */
static bool check_verify_problem(const options *options, const variant_list *list, const char *text,
                                 char *why, size_t why_size) {
  workload workload;
  if (!workload_parse_sound(text, &workload, why, why_size)) return false;
  attn_problem problem = workload_problem(&workload);
  for (size_t i = 0; i < options->variants.count; i++) {
    const char *name = options->variants.items[i];
    const char *reason = runner_refusal(variant_list_find(list, name), &problem);
    if (!reason || supervisor_ended(name)) continue;
    snprintf(why, why_size, "%s cannot solve this problem: it %s", name, reason);
    return false;
  }
  return true;
}

/* verify and fuzz: the same variants, problems and instruction sets. */
static int run_verify(const options *options, const variant_list *list) {
  char why[WHY_BYTES];
  const char *isa;
  if (!sweep_check_variants(list, &options->variants, why, sizeof why) ||
      !find_isa(options, list, &isa, why, sizeof why))
    return complain(why);
  for (size_t i = 0; i < options->problems.count; i++)
    if (!check_verify_problem(options, list, options->problems.items[i], why, sizeof why))
      return complain(why);
  const char *const *names = options->variants.count ? (const char *const *)options->variants.items : NULL;
  verify_options how = {
      .variant_names = names,
      .variant_count = options->variants.count,
      .problems = (const char *const *)options->problems.items,
      .problem_count = options->problems.count,
      .cases = options->cases,
      .isa = isa,
      .seed = options->seed,
      .random_count = options->count,
      .every = options->every,
      .fail_fast = options->fail_fast,
      .threads = (int)options->threads,
      .device = options->device,
      .own_left_out = !options->own,
      .plugins = (const char *const *)options->plugins.items,
      .plugin_count = options->plugins.count,
  };
  if (options->cases) return golden_verify(list, &how, stdout);
  if (options->command == COMMAND_VERIFY) return verify_all(list, &how, stdout);
  if (options->problems.count) return fuzz_shrink(&how, options->seconds, stdout);
  const int status = fuzz_all(list, &how, options->seconds, stdout);
  return status == STATUS_GOOD && interrupt_wanted() ? STATUS_INTERRUPTED : status;
}

/* "O(1)", "O(T)", "O(T^2)". */
static void describe_growth(char text[16], int exponent) {
  if (exponent < 2)
    snprintf(text, 16, exponent == 1 ? "O(T)" : "O(1)");
  else
    snprintf(text, 16, "O(T^%d)", exponent);
}

static int run_list(const variant_list *list) {
  printf("%-16s %-8s %-10s %-10s %s\n", "variant", "function", "time", "workspace", "");
  for (size_t i = 0; i < list->count; i++) {
    const attn_variant *variant = list->variants[i];
    char time[16], workspace[16];
    describe_growth(time, variant->time_exponent);
    describe_growth(workspace, variant->workspace_exponent);
    printf("%-16s %-8s %-10s %-10s %s\n", variant->name, reference_function_of(variant->function)->name, time,
           workspace, variant->summary);
  }
  const attn_device *device = device_of(list->own->variants[0]);
  if (device) printf("\ndevice %s: %s\n", device->kind, device_words(device));
  const bool is_emulated = device && strcmp(device->kind, "emu") == 0;
  printf(is_emulated ? "\nschedules, taken as instruction sets:" : "\ninstruction sets, slowest first:");
  const char *const *sets = variant_list_instruction_sets(list);
  for (size_t i = 0; sets[i]; i++) printf(" %s", sets[i]);
  printf("\n\npresets\n");
  list_presets(stdout);
  return STATUS_GOOD;
}

static int run_machine(const options *options) {
  machine machine;
  machine_describe(&machine);
  if (options->device) {
    char why[WHY_BYTES];
    variant_list list = {0};
    if (!variant_list_add_device(&list, options->device, why, sizeof why)) return complain(why);
    machine_take_device(&machine, device_of(list.own->variants[0]));
    variant_list_destroy(&list);
  }
  machine_measure(&machine, (int)options->threads, 3);
  machine_print(&machine, stdout);
  return STATUS_GOOD;
}

static int run_plots(const options *options) {
  char why[WHY_BYTES], found[PARTS_PATH_BYTES];
  report report = {0};
  const char *file = options->words.items[0];
  char *path = strdup(file);
  if (!path) return complain("out of memory");
  const char *folder = options->out ? options->out : dirname(path);
  const plot_style style = style_from(options, found);
  bool drawn = report_read(&report, file, why, sizeof why) &&
               (!options->out || folder_make(options->out, why, sizeof why)) &&
               report_plot(&report, &style, folder, why, sizeof why);
  if (drawn) printf("The pictures lie in %s\n", folder);
  report_destroy(&report);
  free(path);
  return drawn ? STATUS_GOOD : complain(why);
}

/* ---- kernels elsewhere ---- */

static int run_dump(const options *options) {
  char why[WHY_BYTES], reason[512];
  workload workload;
  const char *line = options->words.items[0];
  if (!workload_parse(line, &workload, reason, sizeof reason) ||
      !workload_check(&workload, reason, sizeof reason)) {
    snprintf(why, sizeof why, "dump %s: %s", line, reason);
    return complain(why);
  }
  workload_seed_unnamed(&workload, options->seed);
  if (!dump_write(&workload, options->out, why, sizeof why)) return complain(why);
  printf("The inputs lie in %s, with problem.json\n", options->out);
  return STATUS_GOOD;
}

static int run_judge(const options *options) {
  char why[WHY_BYTES];
  const judge_files files = {.folder = options->words.items[0],
                             .output = options->output,
                             .lse = options->lse,
                             .weights = options->weights};
  const int status = judge_folder(&files, options->json, stdout, why, sizeof why);
  return status == STATUS_UNUSABLE ? complain(why) : status;
}

/* ---- reports ---- */

/* The page must not take the place of what it is made from. */
static bool check_page(const options *options, const char *page, char *why, size_t why_size) {
  struct stat of_page, of_report;
  if (!check_file_folder("--html", page, why, why_size)) return false;
  if (stat(page, &of_page) != 0) return true;
  for (size_t n = 0; n < options->words.count; n++) {
    if (stat(options->words.items[n], &of_report) != 0) continue;
    if (of_report.st_dev != of_page.st_dev || of_report.st_ino != of_page.st_ino) continue;
    snprintf(why, why_size, "--html %.1024s would replace the report that it is made from; give another file",
             page);
    return false;
  }
  return true;
}

/* With two files the first is of the former run. */
static int run_report(const options *options) {
  char why[WHY_BYTES], found[PARTS_PATH_BYTES], beside[4096];
  report report = {0}, former = {0};
  const bool compares = options->words.count == 2;
  const char *file = options->words.items[options->words.count - 1];
  const char *slash = strrchr(file, '/');
  const int folder_bytes = slash ? (int)(slash + 1 - file) : 0;
  snprintf(beside, sizeof beside, "%.*sindex.html", folder_bytes, file);
  const char *path = options->html ? options->html : beside;
  const plot_style style = style_from(options, found);
  const report_options how = {.former = compares ? &former : NULL, .style = &style};
  const bool written = check_page(options, path, why, sizeof why) &&
                       report_read(&report, file, why, sizeof why) &&
                       (!compares || report_read(&former, options->words.items[0], why, sizeof why)) &&
                       report_write(&report, &how, "html", path, why, sizeof why);
  if (written) printf("The page is %s\n", path);
  report_destroy(&report);
  report_destroy(&former);
  return written ? STATUS_GOOD : complain(why);
}

/* A file where its name ends so, or else a folder. */
static bool is_json(const char *path) {
  const size_t length = strlen(path);
  return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

/* What is merged is never written over. */
static bool check_merged(const options *options, char *why, size_t why_size) {
  char path[4096];
  if (!options->out) return true;
  snprintf(path, sizeof path, "%s%s", options->out, is_json(options->out) ? "" : "/results.json");
  if (!merge_reads(&options->words, path))
    return !is_json(path) || !is_json(options->out) || check_file_folder("--out", path, why, why_size);
  snprintf(why, why_size, "--out %s would replace a report that is merged; give another place", options->out);
  return false;
}

static int run_merge(const options *options) {
  static const report_options rows = {.repetitions = true, .aggregates = true};
  char why[WHY_BYTES];
  report report = {0};
  int status = STATUS_UNUSABLE;
  bool good =
      check_merged(options, why, sizeof why) && merge_reports(&report, &options->words, why, sizeof why);
  if (good && options->out)
    good = is_json(options->out) ? report_write(&report, &rows, "json", options->out, why, sizeof why)
                                 : write_folder(&report, options, &rows, why, sizeof why);
  if (good) {
    const char *pictures = options->out && !is_json(options->out) ? options->out : NULL;
    report_summary(&report, pictures, stdout);
    status = status_of(&report) == STATUS_WRONG ? STATUS_WRONG : STATUS_GOOD;
  } else {
    complain(why);
  }
  report_destroy(&report);
  return status;
}

/* ---- who sees whom ---- */

static int run_show(const options *options) {
  char why[WHY_BYTES], found[PARTS_PATH_BYTES];
  const int width = terminal_width();
  const show_paper paper = {.out = stdout, .width = width ? width : 80, .color = wants_color(options)};
  const show_request request = {.problem = options->words.items[0],
                                .batch = options->show.batch,
                                .head = options->show.head,
                                .tile = options->show.tile,
                                .weights = options->show.weights,
                                .folder = options->out,
                                .style = style_from(options, found)};
  if ((options->out && !folder_make(options->out, why, sizeof why)) ||
      !show_problem(&request, &paper, why, sizeof why))
    return complain(why);
  if (options->out) printf("\nThe pictures lie in %s\n", options->out);
  return STATUS_GOOD;
}

/* ---- the gate ---- */

static const char *const *texts(const text_list *list) { return (const char *const *)list->items; }

static int run_gate(const options *options) {
  char found[PARTS_PATH_BYTES], why[WHY_BYTES];
  for (size_t n = 0; n < options->problems.count; n++) {
    workload unused;
    if (!workload_parse_sound(options->problems.items[n], &unused, why, sizeof why)) return complain(why);
  }
  if (options->problems.count > GATE_MAX_PROBLEMS) {
    snprintf(why, sizeof why, "gate takes --problem at most %d times, not %zu", GATE_MAX_PROBLEMS,
             options->problems.count);
    return complain(why);
  }
  const gate_options how = {
      .heads = texts(&options->gate.heads),
      .head_count = options->gate.heads.count,
      .bases = texts(&options->gate.bases),
      .base_count = options->gate.bases.count,
      .why_no_base = options->gate.why_no_base,
      .base_name = options->gate.base_name,
      .identical = options->gate.identical,
      .variants = texts(&options->variants),
      .variant_count = options->variants.count,
      .problems = texts(&options->problems),
      .problem_count = options->problems.count,
      .again = options->gate.again,
      .accepted = texts(&options->gate.accepted),
      .accepted_count = options->gate.accepted.count,
      .write_facts = options->gate.write_facts,
      .head_facts = options->gate.head_facts,
      .base_facts = options->gate.base_facts,
      .head_code = options->gate.head_code,
      .base_code = options->gate.base_code,
      .why_no_code = options->gate.why_no_code,
      .baseline = options->gate.baseline,
      .out = options->out,
      .scripts = scripts_folder(options, found),
      .only = options->gate.only,
      .shadow = options->gate.shadow,
      .facts = options->gate.facts || !options->gate.times,
      .times = options->gate.times || !options->gate.facts,
      .budget = options->gate.budget,
      .smallest = options->gate.smallest / 100,
      .cases = options->gate.cases,
      .every = options->every,
      .seed = options->seed,
  };
  return gate_run(&how);
}

static int run_gate_measure(const options *options) {
  const gate_measurement what = {
      .base = options->gate.bases.items[0],
      .head = options->gate.heads.items[0],
      .itself = options->gate.itself,
      .seed = options->seed,
      .quads = (size_t)options->gate.quads,
      .words = texts(&options->words),
      .word_count = options->words.count,
  };
  return gate_measure(&what);
}

/* The output is written out, or that is said. */
static int flushed(int status) {
  if (fflush(stdout) != 0 && status == STATUS_GOOD) return complain("the standard output cannot be written");
  return status;
}

/* The commands that run variants, in a child of their own. */
static int run_kernels(void *context) {
  const options *options = context;
  char why[WHY_BYTES];
  variant_list list = {0};
  int status = STATUS_UNUSABLE;
  if (options->run_limit > 0) supervisor_limit(options->run_limit);
  if (options->command == COMMAND_GATE_MEASURE) /* of a part it could say nothing */
    return supervisor_ended_count() > 0 ? STATUS_WRONG : flushed(run_gate_measure(options));
  if (!load_variants(&list, options, why, sizeof why))
    complain(why);
  else if (options->command == COMMAND_VERIFY || options->command == COMMAND_FUZZ)
    status = run_verify(options, &list);
  else if (options->command == COMMAND_LIST)
    status = run_list(&list);
  else
    status = run_bench(options, &list);
  variant_list_destroy(&list);
  return flushed(status);
}

static void put_help(const options *options, FILE *out) {
  if (strcmp(options->as, "man") == 0)
    options_manual(out);
  else if (strcmp(options->as, "bash") == 0)
    options_completion(out);
  else
    options_help(options->about, out);
}

static int run(const options *options) {
  if (options->command == COMMAND_HELP) put_help(options, stdout);
  if (options->command == COMMAND_PROBLEM) printf("%s\n", workload_grammar);
  if (options->command == COMMAND_VERSION)
    printf("attnbench %s (commit %s), interface %d\n", ATTNBENCH_VERSION, version_commit(),
           ATTN_INTERFACE_VERSION);
  if (options->command == COMMAND_HELP || options->command == COMMAND_VERSION ||
      options->command == COMMAND_PROBLEM)
    return STATUS_GOOD;
  if (options->command == COMMAND_MACHINE) return run_machine(options);
  if (options->command == COMMAND_PLOTS) return run_plots(options);
  if (options->command == COMMAND_DUMP) return run_dump(options);
  if (options->command == COMMAND_JUDGE) return run_judge(options);
  if (options->command == COMMAND_REPORT) return run_report(options);
  if (options->command == COMMAND_MERGE) return run_merge(options);
  if (options->command == COMMAND_SHOW) return run_show(options);
  if (options->command == COMMAND_GATE) return run_gate(options);
  if (options->command == COMMAND_COUNT_INSTRUCTIONS)
    return instructions_child(options->plugins.count ? options->plugins.items[0] : NULL,
                              texts(&options->words), options->words.count);

  return options->isolate ? supervise(run_kernels, (void *)(uintptr_t)options)
                          : run_kernels((void *)(uintptr_t)options);
}

/* Verification is tens of thousands of short runs. Threads that wait for each other spin for milliseconds unless OpenMP is
 * told otherwise, which takes processors from others (469 s instead of 35 on a busy machine), or else sleep at once, and
 * are woken each time (75 s instead of 52). OpenMP reads this when it is loaded, so the program begins again. */
static void wait_briefly(const options *options, char **argv) {
  if (options->command != COMMAND_VERIFY && options->command != COMMAND_FUZZ) return;
  if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
  if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0 && setenv("GOMP_SPINCOUNT", "10000", 1) == 0)
    execv("/proc/self/exe", argv);
}

/* OpenMP reads that, too, when it is loaded. */
static bool pin(const options *options, char **argv, char *why, size_t why_size) {
  if (!options->pin || affinity_is_pinned()) return true;
  affinity_pin(argv, (size_t)options->threads);
  snprintf(why, why_size, "--pin: the processors that this process may use cannot be read");
  return false;
}

int main(int argc, char **argv) {
  char why[WHY_BYTES];
  signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is then a write that fails, and is said */
  options options;
  const bool parsed = options_parse(&options, argc, argv, why, sizeof why);
  if (parsed) wait_briefly(&options, argv);
  const bool ready = parsed && pin(&options, argv, why, sizeof why);
  int status = ready ? run(&options) : complain(why);
  options_destroy(&options);
  return flushed(status);
}
