/* Reads a report back from its JSON, so that pictures, summaries and comparisons need no measuring. Only
 * our own files are read; whatever is wrong with another is said in one sentence with its name and, where
 * it can be told, the line. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/shard.h"
#include "problem/types.h"
#include "format.h"
#include "json.h"
#include "base/text.h"

enum { MAX_FILE_BYTES = 256 << 20, MAX_FAMILIES = 1 << 14 };

typedef struct reader {
  const char *path;
  const char *bytes; /* of the whole file, NUL-terminated */
  const char *at;    /* text that stands near what is being read, to name the line; NULL: none */
  report *report;
  char *why;
  size_t why_size;
} reader;

static __attribute__((format(printf, 2, 3))) bool fail(const reader *reader, const char *format, ...) {
  char sentence[512], place[32] = "";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  /* A line stays one, and a terminal as it is, whatever the file has. */
  for (char *byte = sentence; *byte; byte++)
    if ((unsigned char)*byte < ' ' || *byte == 127) *byte = '?';
  const char *found = reader->at ? strstr(reader->bytes, reader->at) : NULL;
  if (found) {
    size_t line = 1;
    for (const char *byte = reader->bytes; byte < found; byte++) line += *byte == '\n';
    snprintf(place, sizeof place, ":%zu", line);
  }
  snprintf(reader->why, reader->why_size, "%s%s: %s", reader->path, place, sentence);
  return false;
}

/* ---- one value ---- */

static bool get_text(const reader *reader, const json_t *object, const char *key, char *text, size_t size) {
  const char *value = json_string_value(json_object_get(object, key));
  if (!value) return fail(reader, "lacks the text \"%s\"", key);
  if (strlen(value) >= size) return fail(reader, "\"%s\" is longer than %zu bytes", key, size - 1);
  memcpy(text, value, strlen(value) + 1);
  return true;
}

static bool get_number(const reader *reader, const json_t *object, const char *key, double *number) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) return fail(reader, "lacks the number \"%s\"", key);
  *number = json_number_value(value);
  return true;
}

/* A number that the writer leaves out where it is not finite. */
static double optional_number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

static bool get_integer(const reader *reader, const json_t *object, const char *key, int64_t high,
                        int64_t *integer) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value)) return fail(reader, "lacks the integer \"%s\"", key);
  *integer = json_integer_value(value);
  if (*integer < 0 || *integer > high) return fail(reader, "\"%s\" must be 0 to %" PRId64, key, high);
  return true;
}

static bool get_int(const reader *reader, const json_t *object, const char *key, int high, int *integer) {
  int64_t value = 0;
  if (!get_integer(reader, object, key, high, &value)) return false;
  *integer = (int)value;
  return true;
}

static bool get_bytes(const reader *reader, const json_t *object, const char *key, size_t *bytes) {
  int64_t value = 0;
  if (!get_integer(reader, object, key, INT64_MAX, &value)) return false;
  *bytes = (size_t)value;
  return true;
}

static sweep_axis get_axis(const json_t *row) {
  const char *name = json_string_value(json_object_get(row, "swept")); /* reports of before have none */
  for (int n = SWEPT_BOTH; name && n <= SWEPT_HEAD_DIM; n++)
    if (strcmp(name, sweep_axis_name((sweep_axis)n)) == 0) return (sweep_axis)n;
  return SWEPT_BOTH;
}

/* ---- context ---- */

static bool get_rates(const reader *reader, const json_t *context, const char *key, machine_rate *rates,
                      size_t limit, size_t *count) {
  const json_t *array = json_object_get(context, key);
  *count = json_array_size(array);
  if (!json_is_array(array)) return fail(reader, "lacks the list \"%s\"", key);
  if (*count > limit) return fail(reader, "\"%s\" has more than %zu entries", key, limit);
  for (size_t i = 0; i < *count; i++) {
    const json_t *entry = json_array_get(array, i);
    machine_rate *rate = &rates[i];
    if (!get_text(reader, entry, "name", rate->name, sizeof rate->name) ||
        !get_number(reader, entry, "median", &rate->median) ||
        !get_bytes(reader, entry, "working_set_bytes", &rate->working_set_bytes))
      return false;
    const char *type = json_string_value(json_object_get(entry, "type"));
    rate->type = type ? element_type_named(type) : ATTN_FLOAT32; /* reports of before knew no other */
    rate->low = optional_number(entry, "low");
    rate->high = optional_number(entry, "high");
    rate->fastest = optional_number(entry, "fastest");
  }
  return true;
}

static bool get_caches(const reader *reader, const json_t *context, machine *machine) {
  size_t *const sizes[] = {&machine->l1_bytes, &machine->l2_bytes, &machine->l3_bytes};
  const json_t *cache;
  size_t i;
  json_array_foreach(json_object_get(context, "caches"), i, cache) {
    int level;
    if (!get_int(reader, cache, "level", 8, &level)) return false;
    if (level >= 1 && level <= 3 && !get_bytes(reader, cache, "size", sizes[level - 1])) return false;
  }
  return true;
}

static bool get_machine(const reader *reader, const json_t *context, machine *machine) {
  size_t sgemm_count;
  bool good = get_text(reader, context, "cpu", machine->cpu, sizeof machine->cpu) &&
              get_text(reader, context, "compiler", machine->compiler, sizeof machine->compiler) &&
              get_text(reader, context, "flags", machine->flags, sizeof machine->flags) &&
              get_text(reader, context, "host_name", machine->host, sizeof machine->host) &&
              get_text(reader, context, "kernel", machine->kernel, sizeof machine->kernel) &&
              get_int(reader, context, "num_cpus", INT32_MAX, &machine->cores) &&
              get_number(reader, context, "mhz_per_cpu", &machine->mhz) &&
              get_bytes(reader, context, "memory_bytes", &machine->memory_bytes) &&
              get_int(reader, context, "threads", INT32_MAX, &machine->threads) &&
              get_caches(reader, context, machine) &&
              get_rates(reader, context, "peaks", machine->peaks, MACHINE_MAX_RATES, &machine->peak_count) &&
              get_rates(reader, context, "sgemm", &machine->sgemm, 1, &sgemm_count) &&
              get_rates(reader, context, "reads", machine->reads, MACHINE_MAX_RATES, &machine->read_count);
  const char *build = json_string_value(json_object_get(context, "library_build_type"));
  machine->optimised = build && strcmp(build, "release") == 0;
  machine->frequency_scaling = json_is_true(json_object_get(context, "cpu_scaling_enabled"));
  device_json_get(context, machine);
  const json_t *load = json_array_get(json_object_get(context, "load_avg"), 0);
  machine->load_average = json_is_number(load) ? json_number_value(load) : NAN;
  return good;
}

static void get_disturbance(const json_t *context, disturbance *found) {
  const double switches = optional_number(context, "involuntary_switches");
  found->seconds = optional_number(context, "watched_seconds");
  found->involuntary_switches = switches > 0 ? (int64_t)switches : 0;
  found->others_share = optional_number(context, "others_share");
  found->stolen_share = optional_number(context, "stolen_share");
  found->clock_step_seconds = optional_number(context, "clock_step_seconds");
  found->shortest_batch_seconds = optional_number(context, "shortest_batch_seconds");
}

/* Of the runs that a report was merged from. */
static bool get_runs(const reader *reader, const json_t *context) {
  report *report = reader->report;
  const json_t *runs = json_object_get(context, "runs"), *of;
  size_t n;
  report->runs = json_array_size(runs) ? calloc(json_array_size(runs), sizeof *report->runs) : NULL;
  if (!report->runs) return !json_array_size(runs) || fail(reader, "needs more memory than there is");
  json_array_foreach(runs, n, of) {
    merged_run *run = &report->runs[report->run_count++];
    const json_t *sweep = json_object_get(of, "sweep");
    if (!get_machine(reader, of, &run->machine) ||
        !get_text(reader, of, "host", run->host, sizeof run->host) ||
        !get_text(reader, of, "isa", run->isa, sizeof run->isa) ||
        !get_int(reader, sweep, "shard", INT32_MAX, &run->shard) ||
        !get_int(reader, sweep, "shards", INT32_MAX, &run->shards))
      return false;
    get_disturbance(of, &run->disturbance);
    run->interrupted = json_is_true(json_object_get(of, "interrupted"));
    run->context = json_dumps(of, JSON_COMPACT);
    if (!run->context) return fail(reader, "needs more memory than there is");
  }
  return true;
}

/* Reports of before lack some. */
static void get_environment(const json_t *context, environment *environment) {
  for (size_t n = 0; n < ENVIRONMENT_FACTS; n++) {
    const char *text = json_string_value(json_object_get(context, environment_key(n)));
    snprintf(environment->facts[n], ENVIRONMENT_TEXT_BYTES, "%s", text ? text : "");
  }
}

static bool get_context(reader *reader, const json_t *root) {
  report *report = reader->report;
  const json_t *context = json_object_get(root, "context");
  const json_t *version = json_object_get(context, REPORT_VERSION_KEY);
  char seed[24];
  if (!json_is_integer(version))
    return fail(reader, "is not a report of attnbench: no \"%s\" in its context", REPORT_VERSION_KEY);
  reader->at = "\"" REPORT_VERSION_KEY "\"";
  if (json_integer_value(version) != REPORT_VERSION)
    return fail(reader,
                "was written in schema version %" JSON_INTEGER_FORMAT "; this attnbench reads version %d",
                json_integer_value(version), REPORT_VERSION);
  if (json_object_get(context, REPORT_TEAM_KEY))
    return fail(reader,
                "is a report of a team of processes, which no page, plot or merge is made of: its rows are "
                "read as JSON or CSV alone");
  reader->at = "\"context\"";
  if (!get_machine(reader, context, &report->machine) ||
      !get_text(reader, context, "date", report->started, sizeof report->started) ||
      !get_text(reader, context, "executable", report->executable, sizeof report->executable) ||
      !get_text(reader, context, "isa", report->isa, sizeof report->isa) ||
      !get_text(reader, context, "seed", seed, sizeof seed) ||
      !get_bytes(reader, context, "peak_memory_bytes", &report->peak_memory_bytes))
    return false;
  if (!sweep_json_get(context, &report->plan)) return fail(reader, "needs more memory than there is");
  if (!sweep_json_is_sound(&report->plan))
    return fail(reader, "\"shards\" must be 0 to %d, and each \"shard\" one of these", SHARDS_MOST);
  if (!get_runs(reader, context)) return false;
  get_disturbance(context, &report->disturbance);
  get_environment(context, &report->environment);
  const char *counted = json_string_value(json_object_get(context, "instructions_isa"));
  snprintf(report->instructions_isa, sizeof report->instructions_isa, "%s", counted ? counted : "");
  if (!text_seed(seed, &report->seed)) return fail(reader, "\"seed\" is not a whole number: '%s'", seed);
  report->cold = json_is_true(json_object_get(context, "cold"));
  report->interrupted = json_is_true(json_object_get(context, "interrupted"));
  return true;
}

/* ---- benchmarks ---- */

static void *grow(void *array, size_t count, size_t size) {
  return count >= SIZE_MAX / size ? NULL : realloc(array, (count + 1) * size);
}

static bool get_variant(const reader *reader, const char *name, char variant[VARIANT_NAME_BYTES],
                        const char **rest) {
  size_t length = strcspn(name, "/");
  if (length == 0 || length >= VARIANT_NAME_BYTES || name[length] == 0)
    return fail(reader, "'%s' does not name a benchmark: VARIANT/WORKLOAD", name);
  memcpy(variant, name, length);
  variant[length] = 0;
  *rest = name + length + 1;
  return true;
}

/* Of a merged report: which host stands in front of the problem, and what stands behind it. */
static const char *get_host(const json_t *row, const char *workload, char host[HOST_NAME_BYTES]) {
  const char *name = json_string_value(json_object_get(row, "host"));
  snprintf(host, HOST_NAME_BYTES, "%s", name ? name : "");
  const size_t length = strlen(host);
  const bool has = length && strncmp(workload, "host:", 5) == 0 && strncmp(workload + 5, host, length) == 0 &&
                   workload[5 + length] == '/';
  return has ? workload + 5 + length + 1 : workload;
}

/* The result that this row belongs to, made where the row is its first. Rows of a result follow each other. */
static result *find_result(const reader *reader, const json_t *row, const char *name, bool *made) {
  report *report = reader->report;
  *made = false;
  if (report->result_count > 0 && strcmp(report->results[report->result_count - 1].name, name) == 0)
    return &report->results[report->result_count - 1];
  result *grown = grow(report->results, report->result_count, sizeof *grown);
  if (!grown) {
    fail(reader, "needs more memory than there is");
    return NULL;
  }
  report->results = grown;
  result *new = &grown[report->result_count++];
  memset(new, 0, sizeof *new);
  *made = true;
  const char *workload;
  char why[256];
  const double projected = optional_number(row, "rows_projected"); /* older reports have none */
  const char *isa = json_string_value(json_object_get(row, "isa"));
  snprintf(new->isa, sizeof new->isa, "%s", isa ? isa : "");
  new->rows_projected = projected > 0 ? (int64_t)projected : 0;
  if (!get_text(reader, row, "run_name", new->name, sizeof new->name) ||
      !get_variant(reader, name, new->variant, &workload) ||
      !get_text(reader, row, "family", new->family, sizeof new->family) ||
      !get_int(reader, row, "family_index", MAX_FAMILIES, &new->family_index) ||
      !get_int(reader, row, "per_family_instance_index", INT32_MAX, &new->instance_index) ||
      !get_int(reader, row, "threads", INT32_MAX, &new->threads) ||
      !get_integer(reader, row, "rows_checked", INT64_MAX, &new->rows_checked) ||
      !get_integer(reader, row, "rows_total", INT64_MAX, &new->rows_total))
    return NULL;
  new->swept = get_axis(row);
  workload = get_host(row, workload, new->host);
  if (workload_parse(workload, &new->workload, why, sizeof why)) return new;
  fail(reader, "'%s' does not name a workload: %s", name, why);
  return NULL;
}

/* As for the peak, finish_result makes a share of it. */
static void get_bytes_moved(const json_t *row, result *result, double rate) {
  const char *level = json_string_value(json_object_get(row, "read_level"));
  const double bytes = optional_number(row, "bytes");
  result->bytes = bytes > 0 ? bytes : 0;
  result->read_fraction = optional_number(row, "read_fraction") / rate;
  snprintf(result->read_level, sizeof result->read_level, "%s", level ? level : "");
}

static bool append_seconds(const reader *reader, result *result, double seconds, double cpu_seconds) {
  double *grown = grow(result->seconds, result->repetitions, sizeof *grown);
  if (grown) result->seconds = grown;
  double *cpu_grown = grow(result->cpu_seconds, result->repetitions, sizeof *cpu_grown);
  if (cpu_grown) result->cpu_seconds = cpu_grown;
  if (!grown || !cpu_grown) return fail(reader, "needs more memory than there is");
  result->seconds[result->repetitions] = seconds;
  result->cpu_seconds[result->repetitions++] = cpu_seconds;
  return true;
}

static bool get_unit(const reader *reader, const json_t *row, double *scale) {
  char unit[8];
  if (!get_text(reader, row, "time_unit", unit, sizeof unit)) return false;
  *scale = format_unit_seconds(unit);
  return *scale > 0 || fail(reader, "\"time_unit\" must be ns, us, ms or s, not '%s'", unit);
}

static bool get_memory(const reader *reader, const json_t *row, result *result) {
  for (int part = 0; part < FORMAT_MEMORY_PARTS; part++) {
    size_t bytes;
    if (!get_bytes(reader, row, format_memory_parts[part].key, &bytes)) return false;
    memcpy((char *)result + format_memory_parts[part].offset, &bytes, sizeof bytes);
  }
  return true;
}

static bool get_measured(const reader *reader, const json_t *row, result *result) {
  double scale = 0, seconds = 0, cpu_seconds = 0, rate = 0;
  if (!get_unit(reader, row, &scale) || !get_number(reader, row, "real_time", &seconds) ||
      !get_number(reader, row, "cpu_time", &cpu_seconds) ||
      !get_integer(reader, row, "iterations", INT64_MAX, &result->iterations) ||
      !get_number(reader, row, "flops", &result->flops) ||
      !get_number(reader, row, "flops_per_second", &rate) || !get_memory(reader, row, result) ||
      !append_seconds(reader, result, seconds * scale, cpu_seconds * scale))
    return false;
  if (!(seconds > 0 && isfinite(seconds * scale)))
    return fail(reader, "\"real_time\" must be above 0, and a time");
  if (result->flops < 0 || rate < 0)
    return fail(reader, "\"flops\" and \"flops_per_second\" must not be negative");
  /* Over one measured run the share's ratio to the rate is the peak's inverse; finish_result applies it. */
  result->peak_fraction = optional_number(row, "peak_fraction") / rate;
  get_bytes_moved(row, result, rate);
  result->error_bound_fraction = optional_number(row, "error_bound_fraction");
  result->seconds_median.low = optional_number(row, "real_time_low") * scale;
  result->seconds_median.high = optional_number(row, "real_time_high") * scale;
  if (result->peak_fraction < 0 || result->read_fraction < 0 || result->error_bound_fraction < 0)
    return fail(reader, "a share of a peak or of a bound must not be negative");
  if (result->seconds_median.low < 0 || result->seconds_median.low > result->seconds_median.high)
    return fail(reader, "\"real_time_low\" must not be negative, nor above \"real_time_high\"");
  return true;
}

static bool get_result(const reader *reader, const json_t *row, const char *name) {
  bool made;
  result *result = find_result(reader, row, name, &made);
  if (!result) return false;
  bool failed = json_is_true(json_object_get(row, "error_occurred"));
  if (failed || json_is_true(json_object_get(row, "skipped"))) {
    result->state = failed ? RESULT_FAILED : RESULT_SKIPPED;
    result->error_bound_fraction = optional_number(row, "error_bound_fraction");
    result->memory_only = json_is_true(json_object_get(row, "memory_only"));
    if (result->memory_only && !get_memory(reader, row, result)) return false;
    return get_text(reader, row, failed ? "error_message" : "skip_message", result->reason,
                    sizeof result->reason);
  }
  return get_measured(reader, row, result);
}

/* With aggregates only, the median stands for the repetitions; beside them it says nothing new. */
static bool get_median(const reader *reader, const json_t *row, const char *name) {
  const report *report = reader->report;
  if (report->result_count > 0 && strcmp(report->results[report->result_count - 1].name, name) == 0)
    return true;
  bool made;
  result *result = find_result(reader, row, name, &made);
  return result && get_measured(reader, row, result);
}

/* Statistics that follow from the repetitions are made again, not read. */
static void finish_result(result *result) {
  if (result->repetitions == 0) return;
  interval read = result->seconds_median;
  result->seconds_median = statistics_median_interval(result->seconds, result->repetitions, 0.95);
  if (result->repetitions == 1 && isfinite(read.low) && isfinite(read.high)) {
    result->seconds_median.low = read.low;
    result->seconds_median.high = read.high;
  }
  result->flops_per_second = result->flops / result->seconds_median.estimate;
  result->peak_fraction *= result->flops_per_second;
  result->read_fraction *= result->flops_per_second;
  result->bytes_per_second = result->bytes / result->seconds_median.estimate;
}

/* ---- growth ---- */

static bool get_exponent(const json_t *row, const char *what, interval *exponent) {
  char key[40];
  snprintf(key, sizeof key, "%s_exponent", what);
  exponent->estimate = optional_number(row, key);
  snprintf(key, sizeof key, "%s_exponent_low", what);
  exponent->low = optional_number(row, key);
  snprintf(key, sizeof key, "%s_exponent_high", what);
  exponent->high = optional_number(row, key);
  return isfinite(exponent->estimate);
}

static bool get_growth(const reader *reader, const json_t *row, const char *family) {
  report *report = reader->report;
  growth *grown = grow(report->growths, report->growth_count, sizeof *grown);
  if (!grown) return fail(reader, "needs more memory than there is");
  report->growths = grown;
  growth *new = &grown[report->growth_count++];
  memset(new, 0, sizeof *new);
  const char *rest;
  double scale;
  new->workspace_declared = GROWTH_UNDECLARED;
  if (!get_text(reader, row, "run_name", new->family, sizeof new->family) ||
      !get_variant(reader, family, new->variant, &rest) || !get_unit(reader, row, &scale) ||
      !get_int(reader, row, "family_index", MAX_FAMILIES, &new->family_index) ||
      !get_number(reader, row, "time_declared", &new->time_declared) ||
      (json_object_get(row, "workspace_declared") &&
       !get_int(reader, row, "workspace_declared", 16, &new->workspace_declared)))
    return false;
  if (!(new->time_declared >= 0 && new->time_declared <= 16))
    return fail(reader, "\"time_declared\" must be 0 to 16");
  new->swept = get_axis(row);
  new->from_length = optional_number(row, "from_length");
  new->to_length = optional_number(row, "to_length");
  new->has_time = get_exponent(row, "time", &new->time);
  new->memory_only = json_is_true(json_object_get(row, "memory_only"));
  new->is_hidden = json_is_true(json_object_get(row, "time_hidden"));
  new->has_workspace = get_exponent(row, "workspace", &new->workspace);
  new->has_instructions = get_exponent(row, "instructions", &new->instructions);
  const double passes = optional_number(row, "time_passes");
  new->blocks = passes > 0 ? (size_t)passes : 0;
  new->time_varying = optional_number(row, "time_exponent_varying");
  new->time_coefficient = optional_number(row, "real_coefficient") * scale;
  /* An exponent may lie beside the law's, whose constant is uncertain; reports of before have not said by how much. */
  const double power = optional_number(row, "time_power");
  new->time_law =
      (power_law){optional_number(row, "time_constant") * scale, optional_number(row, "time_factor") * scale,
                  isfinite(power) ? power : new->time.estimate};
  return true;
}

/* An RMS row follows the BigO row of its family. */
static bool get_rms(const reader *reader, const json_t *row, const char *family) {
  report *report = reader->report;
  growth *last = report->growth_count ? &report->growths[report->growth_count - 1] : NULL;
  if (!last || strcmp(last->family, family) != 0)
    return fail(reader, "an RMS row stands without its BigO row");
  last->time_rms = optional_number(row, "rms");
  return true;
}

static bool get_row(const reader *reader, const json_t *row, const char *name) {
  const char *type = json_string_value(json_object_get(row, "run_type"));
  if (type && strcmp(type, "iteration") == 0) return get_result(reader, row, name);
  const char *aggregate = json_string_value(json_object_get(row, "aggregate_name"));
  if (!type || strcmp(type, "aggregate") != 0 || !aggregate)
    return fail(reader, "'%s' is neither an iteration nor an aggregate", name);
  if (strcmp(aggregate, "median") == 0) return get_median(reader, row, name);
  if (strcmp(aggregate, "BigO") == 0) return get_growth(reader, row, name);
  if (strcmp(aggregate, "RMS") == 0) return get_rms(reader, row, name);
  return true; /* follows from the rows above */
}

static bool get_rows(reader *reader, const json_t *root) {
  const json_t *rows = json_object_get(root, "benchmarks"), *row;
  char quoted[WORKLOAD_NAME_BYTES + 32];
  size_t i;
  reader->at = NULL;
  if (!json_is_array(rows)) return fail(reader, "lacks the list \"benchmarks\"");
  json_array_foreach(rows, i, row) {
    const char *run_name = json_string_value(json_object_get(row, "run_name"));
    const char *name = json_string_value(json_object_get(row, "name"));
    if (!run_name || !name) return fail(reader, "entry %zu of \"benchmarks\" has no name", i);
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    reader->at = quoted;
    const bool good = get_row(reader, row, run_name);
    reader->at = NULL;
    if (!good) return false;
  }
  for (i = 0; i < reader->report->result_count; i++) finish_result(&reader->report->results[i]);
  return true;
}

/* ---- the file ---- */

static char *read_file(const reader *reader) {
  FILE *file = fopen(reader->path, "r");
  char *bytes = file ? malloc(1) : NULL;
  size_t used = 0, size = 1;
  while (bytes && !ferror(file) && !feof(file) && used < MAX_FILE_BYTES) {
    size += 1 << 16;
    char *grown = realloc(bytes, size);
    if (!grown) {
      free(bytes);
      bytes = NULL;
      break;
    }
    bytes = grown;
    used += fread(bytes + used, 1, size - 1 - used, file);
  }
  if (!file || !bytes || ferror(file)) {
    fail(reader, "cannot be read: %s", strerror(errno ? errno : EIO));
    free(bytes);
    bytes = NULL;
  } else if (used >= MAX_FILE_BYTES) {
    fail(reader, "is too long for a report");
    free(bytes);
    bytes = NULL;
  } else {
    bytes[used] = 0;
  }
  if (file) fclose(file);
  return bytes;
}

bool report_read(report *report, const char *path, char *why, size_t why_size) {
  memset(report, 0, sizeof *report);
  reader reader = {path, NULL, NULL, report, why, why_size};
  errno = 0;
  char *bytes = read_file(&reader);
  if (!bytes) return false;
  reader.bytes = bytes;
  json_error_t error;
  json_t *root = json_loads(bytes, JSON_REJECT_DUPLICATES, &error);
  bool good = false;
  if (!root)
    snprintf(why, why_size, "%s:%d: is not sound JSON: %s", path, error.line > 0 ? error.line : 1,
             error.text);
  else
    good = get_context(&reader, root) && get_rows(&reader, root);
  json_decref(root);
  free(bytes);
  if (!good) report_destroy(report);
  return good;
}
