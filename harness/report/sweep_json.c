/* What a report says of the sweep that it is a part of, and of the runs that it was merged from: objects of its context. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "measure/shard.h"

/* Appended in any case, so that it is freed with the array. */
static bool append(json_t *array, json_t *value) { return value && json_array_append_new(array, value) == 0; }

static bool put_plan(json_t *context, const sweep_plan *plan) {
  json_t *points = json_array(), *declared = json_array();
  bool good = points && declared;
  for (size_t n = 0; good && n < plan->point_count; n++)
    good =
        append(points, json_pack("{s:s, s:i}", "name", plan->points[n].name, "shard", plan->points[n].shard));
  for (size_t n = 0; good && n < plan->declared_count; n++)
    good = append(declared, json_pack("{s:s, s:i, s:i}", "variant", plan->declared[n].variant, "time",
                                      plan->declared[n].time_exponent, "workspace",
                                      plan->declared[n].workspace_exponent));
  json_t *sweep = json_pack("{s:i, s:i, s:s, s:i, s:s, s:o, s:o}", "shard", plan->shard, "shards",
                            plan->shards, "version", plan->version, "interface", plan->interface, "options",
                            plan->options, "points", points, "declared", declared);
  return good && sweep && json_object_set_new(context, "sweep", sweep) == 0;
}

/* As their reports said it, with the host's name as it stands in the names of its points. */
static bool put_runs(json_t *context, const report *report) {
  json_t *runs = json_array();
  bool good = runs != NULL;
  for (size_t n = 0; good && n < report->run_count; n++) {
    json_t *run = json_loads(report->runs[n].context, 0, NULL);
    good = run && json_object_set_new(run, "host", json_string(report->runs[n].host)) == 0;
    good = append(runs, run) && good;
  }
  return json_object_set_new(context, "runs", runs) == 0 && good;
}

bool sweep_json_put(json_t *context, const report *report) {
  return (!report->plan.point_count || put_plan(context, &report->plan)) &&
         (!report->run_count || put_runs(context, report));
}

static void text(const json_t *object, const char *key, char *to, size_t size) {
  const char *value = json_string_value(json_object_get(object, key));
  snprintf(to, size, "%s", value ? value : "");
}

/* -1, which is none of these numbers, for one that no int holds. */
static int integer(const json_t *object, const char *key) {
  const json_int_t found = json_integer_value(json_object_get(object, key));
  return found >= 0 && found <= INT_MAX ? (int)found : -1;
}

bool sweep_json_is_sound(const sweep_plan *plan) {
  bool sound =
      plan->shards >= 0 && plan->shards <= SHARDS_MOST && plan->shard >= 0 && plan->shard <= plan->shards;
  for (size_t n = 0; n < plan->point_count; n++)
    sound = sound && plan->points[n].shard >= 0 && plan->points[n].shard <= plan->shards;
  return sound;
}

bool sweep_json_get(const json_t *context, sweep_plan *plan) {
  const json_t *sweep = json_object_get(context, "sweep"), *points = json_object_get(sweep, "points"),
               *declared = json_object_get(sweep, "declared"), *one;
  size_t n;
  *plan = (sweep_plan){.shard = integer(sweep, "shard"),
                       .shards = integer(sweep, "shards"),
                       .interface = integer(sweep, "interface")};
  if (!sweep) return true;
  text(sweep, "version", plan->version, sizeof plan->version);
  text(sweep, "options", plan->options, sizeof plan->options);
  plan->points = calloc(json_array_size(points) + 1, sizeof *plan->points);
  plan->declared = calloc(json_array_size(declared) + 1, sizeof *plan->declared);
  if (!plan->points || !plan->declared) return false;
  json_array_foreach(points, n, one) {
    text(one, "name", plan->points[n].name, sizeof plan->points[n].name);
    plan->points[n].shard = integer(one, "shard");
  }
  plan->point_count = json_array_size(points);
  json_array_foreach(declared, n, one) {
    text(one, "variant", plan->declared[n].variant, sizeof plan->declared[n].variant);
    plan->declared[n].time_exponent = integer(one, "time");
    plan->declared[n].workspace_exponent = integer(one, "workspace");
  }
  plan->declared_count = json_array_size(declared);
  return true;
}
