/* See team_report.h. */
#include "team_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/replace.h"
#include "json.h"

/* Appended in any case, so that it is freed with the array. */
static bool append(json_t *array, json_t *value) { return value && json_array_append_new(array, value) == 0; }

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static void name_row(const team_measurement *m, char name[WORKLOAD_NAME_BYTES + 16]) {
  char point[WORKLOAD_NAME_BYTES];
  sweep_point_name(m->point, point);
  snprintf(name, WORKLOAD_NAME_BYTES + 16, "%s/ranks:%d", point, m->ranks);
}

static json_t *measured_row(const team_measurement *m) {
  char name[WORKLOAD_NAME_BYTES + 16];
  json_t *runs = json_array();
  bool good = runs != NULL;
  name_row(m, name);
  for (int n = 0; good && n < TEAM_RUNS; n++) good = append(runs, json_real(1e9 * m->runs[n]));
  json_t *row =
      json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:s, s:o, s:I, s:I, s:o}", "name", name, "run_name",
                name, "run_type", "aggregate", "aggregate_name", "median", "variant", m->point->variant->name,
                "ranks", m->ranks, "iterations", TEAM_RUNS, "real_time", 1e9 * m->seconds, "time_unit", "ns",
                "runs", runs, "sent_bytes", (json_int_t)m->sent, "workspace_bytes", (json_int_t)m->workspace,
                "hidden_share", number(m->hidden));
  if (row && m->violation[0])
    good = json_object_set_new(row, "error_occurred", json_true()) == 0 &&
           json_object_set_new(row, "error_message", json_string(m->violation)) == 0;
  if (good) return row;
  json_decref(row);
  return NULL;
}

static json_t *growth_row(const team_growth *growth) {
  const char *axis = growth->by_ranks ? "1/P" : "T";
  return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:I}", "name", growth->variant,
                   "run_type", "aggregate", "aggregate_name", "growth", "variant", growth->variant,
                   "quantity", growth->quantity, "grows_in", axis, "exponent",
                   number(growth->exponent.estimate), "exponent_low", number(growth->exponent.low),
                   "exponent_high", number(growth->exponent.high), "at",
                   growth->by_ranks ? "key_length" : "ranks", growth->by_ranks ? "key_length" : "ranks",
                   growth->by_ranks ? (json_int_t)growth->length : (json_int_t)growth->ranks);
}

bool team_report_json(const report *run, const team_report *team, FILE *out) {
  json_t *root = json_object(), *context = report_json_context(run), *rows = json_array();
  bool good = root && context && rows &&
              json_object_set_new(context, REPORT_TEAM_KEY, json_integer(team_size())) == 0;
  for (size_t n = 0; good && n < team->count; n++) good = append(rows, measured_row(&team->points[n]));
  for (size_t n = 0; good && n < team->growth_count; n++) good = append(rows, growth_row(&team->growths[n]));
  good = good && json_object_set(root, "context", context) == 0 &&
         json_object_set(root, "benchmarks", rows) == 0 && json_dumpf(root, out, JSON_INDENT(2)) == 0 &&
         fputc('\n', out) != EOF;
  json_decref(rows);
  json_decref(context);
  json_decref(root);
  return good;
}

void team_report_csv(const team_report *team, FILE *out) {
  fprintf(out, "name,variant,ranks,iterations,real_time,time_unit,sent_bytes,workspace_bytes,hidden_share,"
               "error_message\n");
  for (size_t n = 0; n < team->count; n++) {
    const team_measurement *m = &team->points[n];
    char name[WORKLOAD_NAME_BYTES + 16], hidden[32] = "";
    name_row(m, name);
    if (isfinite(m->hidden)) snprintf(hidden, sizeof hidden, "%.6g", m->hidden);
    fprintf(out, "\"%s\",%s,%d,%d,%.9g,ns,%" PRIu64 ",%zu,%s,\"%s\"\n", name, m->point->variant->name,
            m->ranks, TEAM_RUNS, 1e9 * m->seconds, m->sent, m->workspace, hidden, m->violation);
  }
}

typedef struct written_team {
  const report *run;
  const team_report *team;
  const char *format;
} written_team;

static bool write_team(const void *what, FILE *file) {
  const written_team *of = what;
  if (strcmp(of->format, "json") == 0) return team_report_json(of->run, of->team, file);
  team_report_csv(of->team, file);
  return true;
}

bool team_report_check_format(const char *option, const char *format, char *why, size_t why_size) {
  if (strcmp(format, "json") == 0 || strcmp(format, "csv") == 0) return true;
  snprintf(why, why_size, "%s: a bench of a team is written as json or csv, and not as '%s'", option, format);
  return false;
}

bool team_report_write(const report *run, const team_report *team, const char *format, const char *path,
                       char *why, size_t why_size) {
  return replace_write(path, write_team, &(written_team){run, team, format}, why, why_size);
}
