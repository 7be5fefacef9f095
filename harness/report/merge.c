/* See merge.h. A host's name becomes a part of the names of its points, in front of the problem. What compares variants on one
 * problem then never compares two hosts, and each host has families, growths and curves of its own. */
#define _GNU_SOURCE
#include "merge.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "measure/complexity.h"
#include "measure/families.h"
#include "measure/shard.h"
#include "report.h"

typedef struct merger {
  char **paths; /* [count], of files */
  report *parts;
  size_t count;
  report *merged;
  char *why;
  size_t why_size;
} merger;

/* ---- the files ---- */

static bool append_path(merger *merger, const char *path) {
  char **grown = realloc(merger->paths, (merger->count + 1) * sizeof *grown);
  if (grown) merger->paths = grown;
  char *copy = grown ? strdup(path) : NULL;
  if (copy) merger->paths[merger->count++] = copy;
  if (!copy) snprintf(merger->why, merger->why_size, "out of memory");
  return copy != NULL;
}

/* As a pattern that matches nothing else; for the caller to free, NULL without memory. */
static char *escape_pattern(const char *path) {
  char *pattern = malloc(2 * strlen(path) + 1), *at = pattern;
  for (; pattern && *path; path++) {
    if (strchr("\\*?[", *path)) *at++ = '\\';
    *at++ = *path;
  }
  if (pattern) *at = '\0';
  return pattern;
}

/* Of its shards, or else its own: what is merged into a folder of shards is no part of them. */
static bool append_folder(merger *merger, const char *folder) {
  static const char *const forms[] = {"shard-*-of-*/results.json", "results.json"};
  bool good = true, any = false;
  char *plain = escape_pattern(folder);
  for (int form = 0; plain && form < 2 && !any; form++) {
    char *pattern;
    glob_t found = {0};
    if (asprintf(&pattern, "%s/%s", plain, forms[form]) < 0) break;
    any = glob(pattern, 0, NULL, &found) == 0;
    for (size_t n = 0; any && good && n < found.gl_pathc; n++) good = append_path(merger, found.gl_pathv[n]);
    globfree(&found);
    free(pattern);
  }
  free(plain);
  if (any) return good;
  snprintf(merger->why, merger->why_size,
           "%s has neither a results.json nor shard-K-of-N/results.json in it; give what bench --out wrote",
           folder);
  return false;
}

static bool find_files(merger *merger, const text_list *paths) {
  for (size_t n = 0; n < paths->count; n++) {
    struct stat status;
    const char *path = paths->items[n];
    const bool is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    if (is_folder ? !append_folder(merger, path) : !append_path(merger, path)) return false;
  }
  return true;
}

static void forget(merger *merger) {
  for (size_t n = 0; n < merger->count; n++) {
    free(merger->paths[n]);
    if (merger->parts) report_destroy(&merger->parts[n]);
  }
  free(merger->paths);
  free(merger->parts);
}

bool merge_reads(const text_list *paths, const char *file) {
  char why[8];
  merger merger = {.why = why, .why_size = sizeof why};
  struct stat written, read;
  bool found = false;
  if (stat(file, &written) == 0 && find_files(&merger, paths))
    for (size_t n = 0; n < merger.count; n++)
      found = found || (stat(merger.paths[n], &read) == 0 && read.st_dev == written.st_dev &&
                        read.st_ino == written.st_ino);
  forget(&merger);
  return found;
}

/* ---- what belongs together ---- */

static bool same_points(const sweep_plan *a, const sweep_plan *b) {
  if (a->point_count != b->point_count) return false;
  for (size_t n = 0; n < a->point_count; n++)
    if (strcmp(a->points[n].name, b->points[n].name) != 0) return false;
  return true;
}

static __attribute__((format(printf, 4, 5))) bool differ(const merger *merger, size_t n, const char *what,
                                                         const char *format, ...) {
  char how[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(how, sizeof how, format, arguments);
  va_end(arguments);
  snprintf(merger->why, merger->why_size, "%s and %s are not of one sweep: %s %s", merger->paths[0],
           merger->paths[n], what, how);
  return false;
}

static bool is_sweep(const merger *merger, size_t n) {
  const report *part = &merger->parts[n];
  if (part->run_count)
    snprintf(merger->why, merger->why_size, "%s is merged already; give the reports that it was made of",
             merger->paths[n]);
  else if (part->plan.point_count == 0)
    snprintf(
        merger->why, merger->why_size,
        "%s does not say which sweep it is a part of; only what this version of bench writes can be merged",
        merger->paths[n]);
  else
    return true;
  return false;
}

static bool is_of_the_same(const merger *merger, size_t n) {
  const report *first = &merger->parts[0], *part = &merger->parts[n];
  const sweep_plan *a = &first->plan, *b = &part->plan;
  if (a->interface != b->interface)
    return differ(merger, n, "interface", "%d against %d", a->interface, b->interface);
  if (strcmp(a->version, b->version) != 0)
    return differ(merger, n, "attnbench", "%s against %s", a->version, b->version);
  if (first->seed != part->seed)
    return differ(merger, n, "seed", "%llu against %llu", (unsigned long long)first->seed,
                  (unsigned long long)part->seed);
  if (strcmp(a->options, b->options) != 0)
    return differ(merger, n, "options", "'%s' against '%s'", a->options, b->options);
  if (!same_points(a, b)) return differ(merger, n, "their", "points differ");
  if (a->shards != b->shards) return differ(merger, n, "shards of", "%d against %d", a->shards, b->shards);
  return true;
}

/* Two machines of one name would be taken for one. */
static bool is_same_host(const merger *merger, size_t a, size_t b) {
  const machine *one = &merger->parts[a].machine, *other = &merger->parts[b].machine;
  if (strcmp(one->host, other->host) != 0) return true;
  const bool same = strcmp(one->cpu, other->cpu) == 0 && one->cores == other->cores &&
                    one->threads == other->threads &&
                    strcmp(merger->parts[a].isa, merger->parts[b].isa) == 0 &&
                    strcmp(one->device.name, other->device.name) == 0;
  if (!same)
    snprintf(
        merger->why, merger->why_size,
        "%s and %s are both of host '%s', but measured with %d of %d processors, %s, %s, and with %d of %d, "
        "%s, %s; measure them alike",
        merger->paths[a], merger->paths[b], one->host, one->threads, one->cores, one->cpu,
        merger->parts[a].isa, other->threads, other->cores, other->cpu, merger->parts[b].isa);
  return same;
}

static bool has_point(const report *report, const char *name) {
  for (size_t n = 0; n < report->result_count; n++)
    if (strcmp(report->results[n].name, name) == 0) return true;
  return false;
}

static bool share_no_point(const merger *merger, size_t a, size_t b) {
  const report *one = &merger->parts[a], *other = &merger->parts[b];
  const char *first = NULL;
  size_t count = 0;
  if (strcmp(one->machine.host, other->machine.host) != 0) return true;
  for (size_t n = 0; n < one->result_count; n++) {
    if (!has_point(other, one->results[n].name)) continue;
    if (count++ == 0) first = one->results[n].name;
  }
  if (count > 0)
    snprintf(merger->why, merger->why_size,
             "%s and %s both have %zu point%s of host '%s', such as %s; leave one of them out",
             merger->paths[a], merger->paths[b], count, count == 1 ? "" : "s", one->machine.host, first);
  return count == 0;
}

static bool read_all(merger *merger) {
  merger->parts = calloc(merger->count + 1, sizeof *merger->parts);
  if (!merger->parts) {
    snprintf(merger->why, merger->why_size, "out of memory");
    return false;
  }
  for (size_t n = 0; n < merger->count; n++)
    if (!report_read(&merger->parts[n], merger->paths[n], merger->why, merger->why_size) ||
        !is_sweep(merger, n) || !is_of_the_same(merger, n))
      return false;
  for (size_t a = 0; a < merger->count; a++)
    for (size_t b = a + 1; b < merger->count; b++)
      if (!is_same_host(merger, a, b) || !share_no_point(merger, a, b)) return false;
  return true;
}

/* ---- hosts ---- */

/* As a part of a name. */
static void name_host(const machine *machine, char host[HOST_NAME_BYTES]) {
  snprintf(host, HOST_NAME_BYTES, "%s", machine->host[0] ? machine->host : "unnamed");
  for (char *at = host; *at; at++)
    if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_", *at)) *at = '-';
}

static bool note_run(merger *merger, size_t n) {
  report *merged = merger->merged;
  const report *part = &merger->parts[n];
  merged_run *run = &merged->runs[merged->run_count++];
  *run = (merged_run){.machine = part->machine,
                      .disturbance = part->disturbance,
                      .shard = part->plan.shard,
                      .shards = part->plan.shards,
                      .interrupted = part->interrupted};
  name_host(&part->machine, run->host);
  memcpy(run->isa, part->isa, sizeof run->isa);
  json_t *context = report_json_context(part), *sweep = json_object_get(context, "sweep");
  json_object_del(sweep, "points"); /* the same in all, and said once */
  json_object_del(sweep, "declared");
  run->context = context ? json_dumps(context, JSON_COMPACT) : NULL;
  json_decref(context);
  return run->context != NULL;
}

static void raise_rates(machine_rate *rates, size_t count, const machine_rate *others, size_t other_count) {
  for (size_t n = 0; n < count; n++)
    for (size_t m = 0; m < other_count; m++)
      if (strcmp(rates[n].name, others[m].name) == 0 && rates[n].type == others[m].type &&
          others[m].median > rates[n].median)
        rates[n] = others[m];
}

/* A host's peaks are the highest of its runs: other load only lowers what is measured. */
static void raise_peaks(report *merged) {
  for (size_t a = 0; a < merged->run_count; a++)
    for (size_t b = 0; b < merged->run_count; b++) {
      machine *to = &merged->runs[a].machine;
      const machine *from = &merged->runs[b].machine;
      if (strcmp(merged->runs[a].host, merged->runs[b].host) != 0) continue;
      raise_rates(to->peaks, to->peak_count, from->peaks, from->peak_count);
      raise_rates(to->reads, to->read_count, from->reads, from->read_count);
      raise_rates(&to->sgemm, to->sgemm.median > 0, &from->sgemm, from->sgemm.median > 0);
    }
}

static const machine_rate *rate_named(const machine *machine, const char *name) {
  for (size_t n = 0; n < machine->read_count; n++)
    if (strcmp(machine->reads[n].name, name) == 0) return &machine->reads[n];
  return NULL;
}

static double ratio(const machine_rate *was, const machine_rate *now) {
  return was && now && now->median > 0 ? was->median / now->median : 1;
}

/* Shares were of the run's own peaks. */
static void take_shares(result *result, const machine *was, const merged_run *run) {
  const attn_type type = result->workload.type ? result->workload.type : ATTN_FLOAT32;
  result->peak_fraction *=
      ratio(machine_peak(was, run->isa, type), machine_peak(&run->machine, run->isa, type));
  result->read_fraction *=
      ratio(rate_named(was, result->read_level), rate_named(&run->machine, result->read_level));
}

/* ---- one report ---- */

static const char *common_text(const merger *merger, size_t offset, const char *otherwise) {
  const char *first = (const char *)&merger->parts[0] + offset;
  for (size_t n = 1; n < merger->count; n++)
    if (strcmp(first, (const char *)&merger->parts[n] + offset) != 0) return otherwise;
  return first;
}

static bool is_one_host(const report *merged) {
  for (size_t n = 1; n < merged->run_count; n++)
    if (strcmp(merged->runs[0].host, merged->runs[n].host) != 0) return false;
  return true;
}

/* What all hosts have in common; rates are of one host alone. */
static void describe_machine(const merger *merger) {
  report *merged = merger->merged;
  machine *machine = &merged->machine;
  *machine = merged->runs[0].machine;
  snprintf(merged->isa, sizeof merged->isa, "%s", common_text(merger, offsetof(report, isa), "various"));
  if (is_one_host(merged)) return;
  snprintf(machine->host, sizeof machine->host, "several");
#define COMMON(field)                                                                                        \
  snprintf(machine->field, sizeof machine->field, "%s",                                                      \
           common_text(merger, offsetof(report, machine.field), "various"))
  COMMON(cpu);
  COMMON(compiler);
  COMMON(flags);
  COMMON(kernel);
#undef COMMON
  machine->peak_count = machine->read_count = 0;
  machine->sgemm.median = 0;
  machine->device = (attn_device_facts){0};
  machine->load_average = NAN;
  machine->mhz = 0;
  machine->l1_bytes = machine->l2_bytes = machine->l3_bytes = 0;
  for (size_t n = 0; n < merged->run_count; n++) {
    const struct machine *of = &merged->runs[n].machine;
    machine->optimised = machine->optimised && of->optimised;
    machine->frequency_scaling = machine->frequency_scaling || of->frequency_scaling;
    if (of->threads != machine->threads) machine->threads = 0;
    if (of->cores != machine->cores) machine->cores = 0;
    if (of->memory_bytes < machine->memory_bytes) machine->memory_bytes = of->memory_bytes;
  }
}

/* The worst of all runs. */
static disturbance worst_disturbance(const report *merged) {
  disturbance worst = {0};
  for (size_t n = 0; n < merged->run_count; n++) {
    const disturbance *of = &merged->runs[n].disturbance;
    if (!(of->seconds > 0)) continue;
    const bool first = !(worst.seconds > 0);
    if (first) {
      worst = *of;
      continue;
    }
    worst.seconds += of->seconds;
    worst.involuntary_switches += of->involuntary_switches;
    worst.others_share = fmax(worst.others_share, of->others_share);
    worst.stolen_share = fmax(worst.stolen_share, of->stolen_share);
    if (fabs(of->clock_step_seconds) > fabs(worst.clock_step_seconds))
      worst.clock_step_seconds = of->clock_step_seconds;
    worst.shortest_batch_seconds = fmin(worst.shortest_batch_seconds, of->shortest_batch_seconds);
  }
  return worst;
}

static void describe(const merger *merger) {
  report *merged = merger->merged;
  const report *first = &merger->parts[0];
  memcpy(merged->started, first->started, sizeof merged->started);
  memcpy(merged->executable, first->executable, sizeof merged->executable);
  merged->seed = first->seed;
  merged->cold = first->cold;
  for (size_t n = 0; n < merger->count; n++) {
    const report *part = &merger->parts[n];
    if (strcmp(part->started, merged->started) < 0)
      memcpy(merged->started, part->started, sizeof merged->started);
    merged->interrupted = merged->interrupted || part->interrupted;
    if (part->peak_memory_bytes > merged->peak_memory_bytes)
      merged->peak_memory_bytes = part->peak_memory_bytes;
    if (part->instructions_isa[0])
      memcpy(merged->instructions_isa, part->instructions_isa, sizeof merged->instructions_isa);
  }
  for (size_t n = 0; n < ENVIRONMENT_FACTS; n++)
    snprintf(merged->environment.facts[n], ENVIRONMENT_TEXT_BYTES, "%s",
             common_text(merger, offsetof(report, environment.facts) + n * ENVIRONMENT_TEXT_BYTES, ""));
  describe_machine(merger);
  merged->disturbance = worst_disturbance(merged);
}

/* Moves the part's result of this name, if it has one, to the end of those that are merged. */
static bool take_point(merger *merger, size_t n, const char *name) {
  report *part = &merger->parts[n], *merged = merger->merged;
  const merged_run *run = &merged->runs[n];
  for (size_t r = 0; r < part->result_count; r++) {
    if (strcmp(part->results[r].name, name) != 0) continue;
    result *to = &merged->results[merged->result_count++];
    *to = part->results[r];
    part->results[r].seconds = part->results[r].cpu_seconds = part->results[r].shares = NULL;
    take_shares(to, &part->machine, run);
    snprintf(to->host, sizeof to->host, "%s", run->host);
    if (snprintf(to->name, sizeof to->name, "%s/host:%s/%s", to->variant, run->host,
                 name + strlen(to->variant) + 1) < (int)sizeof to->name)
      return true;
    snprintf(merger->why, merger->why_size, "the name of %s leaves no room for its host", name);
    return false;
  }
  return true;
}

/* In the order of the sweep, and within a point in that of the files. */
static bool take_points(merger *merger) {
  const sweep_plan *plan = &merger->merged->plan;
  for (size_t p = 0; p < plan->point_count; p++)
    for (size_t n = 0; n < merger->count; n++)
      if (!take_point(merger, n, plan->points[p].name)) return false;
  return true;
}

static void join_families(report *merged) {
  int families = 0;
  families_find(merged->results, merged->result_count);
  for (size_t n = 0; n < merged->result_count; n++) {
    result *one = &merged->results[n];
    one->family_index = families;
    one->instance_index = 0;
    for (size_t m = 0; m < n; m++)
      if (strcmp(merged->results[m].family, one->family) == 0) {
        one->family_index = merged->results[m].family_index;
        one->instance_index++;
      }
    families += one->family_index == families;
  }
}

static void find_declared(const char *variant, int *time_exponent, int *workspace_exponent, void *context) {
  const sweep_plan *plan = context;
  for (size_t n = 0; n < plan->declared_count; n++)
    if (strcmp(plan->declared[n].variant, variant) == 0) {
      *time_exponent = plan->declared[n].time_exponent;
      *workspace_exponent = plan->declared[n].workspace_exponent;
    }
}

/* Instructions are of small problems of a kind, the same on every run of a host that counted them. */
static void take_instructions(const merger *merger) {
  report *merged = merger->merged;
  char family[WORKLOAD_NAME_BYTES];
  for (size_t g = 0; g < merged->growth_count; g++)
    for (size_t n = 0; n < merger->count; n++)
      for (size_t m = 0; m < merger->parts[n].growth_count; m++) {
        const growth *from = &merger->parts[n].growths[m];
        growth *to = &merged->growths[g];
        const char *problem = strchr(from->family, '/');
        snprintf(family, sizeof family, "%s/host:%s%.1000s", from->variant, merged->runs[n].host,
                 problem ? problem : "");
        if (!from->has_instructions || strcmp(family, to->family) != 0) continue;
        to->has_instructions = true;
        to->instructions = from->instructions;
      }
}

static bool make(merger *merger) {
  report *merged = merger->merged;
  size_t results = 0;
  for (size_t n = 0; n < merger->count; n++) results += merger->parts[n].result_count;
  merged->runs = calloc(merger->count + 1, sizeof *merged->runs);
  merged->results = calloc(results + 1, sizeof *merged->results);
  bool good = merged->runs && merged->results;
  for (size_t n = 0; good && n < merger->count; n++) good = note_run(merger, n);
  if (!good) {
    snprintf(merger->why, merger->why_size, "out of memory for %zu points", results);
    return false;
  }
  raise_peaks(merged);
  describe(merger);
  merged->plan = merger->parts[0].plan;
  merger->parts[0].plan = (sweep_plan){0};
  merged->plan.shard = 0;
  if (!take_points(merger)) return false;
  join_families(merged);
  complexity_fit(merged, find_declared, &merged->plan);
  take_instructions(merger);
  return true;
}

bool merge_reports(report *merged, const text_list *paths, char *why, size_t why_size) {
  memset(merged, 0, sizeof *merged);
  merger merger = {.merged = merged, .why = why, .why_size = why_size};
  const bool good = find_files(&merger, paths) && read_all(&merger) && make(&merger);
  forget(&merger);
  if (!good) report_destroy(merged);
  return good;
}
