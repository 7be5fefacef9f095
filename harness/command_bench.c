/* bench: the sweep that the command line asks for, or this process's shard of it, and its report. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"
#include "commands.h"
#include "measure/bench.h"
#include "measure/shard.h"
#include "measure/sweep.h"
#include "measure/team_sweep.h"
#include "report/report.h"
#include "report/team_report.h"

static void list_points(const sweep *sweep, FILE *out) {
  for (size_t i = 0; i < sweep->count; i++) {
    char name[WORKLOAD_NAME_BYTES];
    sweep_point_name(&sweep->points[i], name);
    fprintf(out, "%s\n", name);
  }
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
      .machine_seconds = options->dry_run ? 0.05 : 3,
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
                                 .color = command_wants_color(options),
                                 .width = command_terminal_width(),
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
  report_place place = {.folder = options->out};
  if (options->out && !command_write_folder(report, options, &file_rows, &place.has_pictures, why, why_size))
    return false;
  if (options->out_file &&
      !report_write(report, &file_rows, options->out_format, options->out_file, why, why_size))
    return false;
  const report_options raw_rows = {.repetitions = true, .time_unit = options->time_unit};
  if (options->raw && !report_write(report, &raw_rows, "csv", options->raw, why, why_size)) return false;
  if (strcmp(options->format, "console") == 0) {
    printf("\n");
    report_summary(report, options->out ? &place : NULL, stdout);
    if (options->out) printf("The page is %s/index.html\n", options->out);
  }
  return true;
}

static const report *with_context(report *report, const options *options) {
  report->context = (const char *const *)options->context.items;
  report->context_count = options->context.count;
  return report;
}

/* Google Benchmark would write a key twice; no reader expects that. And without its context there is no report. */
static bool check_context(const options *options, char *why, size_t why_size) {
  for (size_t i = 0; i < options->context.count; i++) {
    char *key = strndup(options->context.items[i], strcspn(options->context.items[i], "="));
    const bool taken = !key || report_json_has_context(key) || report_csv_has_column(key);
    const bool sound = key && report_json_takes_key(key);
    if (taken)
      snprintf(why, why_size, "--benchmark_context: '%s' is taken; give another key", key ? key : "");
    else if (!sound)
      snprintf(why, why_size, "--benchmark_context: the key '%s' is not UTF-8; give one that is", key);
    free(key);
    if (taken || !sound) return false;
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
                     command_check_file("--benchmark_out", options->out_file, why, sizeof why) &&
                     command_check_file("--raw", options->raw, why, sizeof why) &&
                     command_check_apart(options, why, sizeof why) && check_context(options, why, sizeof why);
  if (ready && !options->quiet) fputs(sweep->notes, stderr);
  if (ready && options->device && strcmp(options->device, "emu") == 0)
    fputs("attnbench: these are times of an emulation: they say nothing of a GPU's, and are no share of a "
          "peak\n",
          stderr);
  const bool measured =
      ready && bench_run(sweep->points, sweep->count, how, &report, why, sizeof why); /* empties it first */
  report.plan = *plan;
  if (!measured || !give_report(with_context(&report, options), options, why, sizeof why))
    command_complain(why);
  else
    status = command_status(command_report_status(&report));
  report_destroy(&report);
  return status;
}

/* The part of the sweep that this process is to measure. */
static int measure_shard(sweep *sweep, const options *options, const char *isa) {
  char why[WHY_BYTES];
  shard shard = {1, 1};
  sweep_plan plan = {0};
  const bench_options how = bench_options_from(options, isa);
  if (options->shard && !shard_parse(options->shard, &shard, why, sizeof why)) {
    /* Wrong for all ranks alike, or for one that is none. */
    return shard_is_first() || strcmp(options->shard, "auto") == 0 ? command_complain(why) : STATUS_UNUSABLE;
  }
  if (!shard_take(sweep, shard, &how, &plan, why, sizeof why)) {
    sweep_plan_destroy(&plan);
    return command_complain(why);
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
    command_complain("out of memory");
  } else {
    status = measure(sweep, &named, &how, &plan);
  }
  if (named.out != options->out) free((char *)(uintptr_t)named.out);
  if (named.out_file != options->out_file) free((char *)(uintptr_t)named.out_file);
  if (named.raw != options->raw) free((char *)(uintptr_t)named.raw);
  return status;
}

/* An option that says how to measure what a team measures in its own way: each point a few times, on each number of ranks. */
static const char *not_of_teams(const options *options) {
  const struct {
    bool said;
    const char *name;
  } rows[] = {{options->cold, "--cold"},
              {options->memory_only.count > 0, "--memory-only"},
              {options->dry_run, "--benchmark_dry_run"},
              {options->repetitions > 0, "--benchmark_repetitions"},
              {options->iterations > 0, "--benchmark_min_time"}};
  for (size_t n = 0; n < sizeof rows / sizeof *rows; n++)
    if (rows[n].said) return rows[n].name;
  return NULL;
}

/* Of what the command line asks for, what a bench of a team does not give. */
static bool check_team(const options *options, char *why, size_t why_size) {
  const char *other = not_of_teams(options);
  if (other) {
    snprintf(why, why_size, "%s: a bench of a team does not take it; leave it out", other);
    return false;
  }
  if (options->raw) {
    snprintf(why, why_size,
             "--raw: a bench of a team has its runs in the JSON report; give --out or --benchmark_out");
    return false;
  }
  if (options->out_file &&
      !team_report_check_format("--benchmark_out_format", options->out_format, why, why_size))
    return false;
  return (!options->out || folder_make(options->out, why, why_size)) &&
         command_check_file("--benchmark_out", options->out_file, why, why_size) &&
         command_check_apart(options, why, why_size) && check_context(options, why, why_size);
}

static bool give_team_report(const report *run, const team_report *team, const options *options, char *why,
                             size_t why_size) {
  char path[4096];
  if (strcmp(options->format, "json") == 0) team_report_json(run, team, stdout);
  if (strcmp(options->format, "csv") == 0) team_report_csv(team, stdout);
  static const char *const formats[] = {"json", "csv"};
  for (size_t n = 0; options->out && n < sizeof formats / sizeof *formats; n++) {
    snprintf(path, sizeof path, "%s/results.%s", options->out, formats[n]);
    if (!team_report_write(run, team, formats[n], path, why, why_size)) return false;
  }
  return !options->out_file ||
         team_report_write(run, team, options->out_format, options->out_file, why, why_size);
}

/* All ranks measure; rank 0 has the results. */
static int measure_team(const sweep *sweep, const options *options, const variant_list *list) {
  char why[WHY_BYTES] = "/dev/null cannot be opened";
  static report run;
  team_report team;
  const bench_options how = bench_options_from(options, NULL);
  const bool has_table = strcmp(options->format, "console") == 0;
  FILE *table = has_table ? stdout : fopen("/dev/null", "w");
  if (options->list_tests) {
    list_points(sweep, table);
    if (!has_table && table) fclose(table);
    return STATUS_GOOD;
  }
  const bool ready = table && (team_rank() > 0 || check_team(options, why, sizeof why));
  if (!team_decides(ready)) return command_complain(why);
  int status = team_sweep(sweep, list, (int)options->threads, &team, table);
  bench_describe(&run, &how);
  run.machine.threads = (int)options->threads;
  if (status != STATUS_UNUSABLE && team_rank() == 0 &&
      !give_team_report(with_context(&run, options), &team, options, why, sizeof why))
    status = command_complain(why);
  if (!has_table) fclose(table);
  team_report_destroy(&team);
  report_destroy(&run);
  return status;
}

static size_t count_texts(const char *const *texts) {
  size_t count = 0;
  while (texts[count]) count++;
  return count;
}

int run_bench(const options *options, const variant_list *list) {
  char why[WHY_BYTES];
  const char *isa;
  sweep sweep;
  if (options->presets.count == 1 && strcmp(options->presets.items[0], "list") == 0) {
    command_list_presets(stdout);
    return STATUS_GOOD;
  }
  if (!command_isa(options, list, &isa, why, sizeof why)) return command_complain(why);
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
                                 .lengths = options->lengths.sizes,
                                 .length_count = options->lengths.count,
                                 .batches = options->batches.sizes,
                                 .batch_count = options->batches.count,
                                 .head_dims = options->head_dims.sizes,
                                 .head_dim_count = options->head_dims.count,
                                 .seed = options->seed,
                                 .memory_only = &options->memory_only,
                                 .filter = options->filter};
  if (!sweep_create(&sweep, &request, list, why, sizeof why)) return command_complain(why);
  const int status = list->team ? measure_team(&sweep, options, list)
                                : measure_shard(&sweep, options, isa ? isa : "portable");
  sweep_destroy(&sweep);
  return status;
}
