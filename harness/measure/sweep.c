/* See sweep.h. A sweep is built from shapes in one of three ways: problems in words, presets, or the
 * sizes and lengths of the command line; each shape is then given to every chosen variant. */
#define _GNU_SOURCE
#include "sweep.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "run/supervisor.h"

/* A sweep that is being built. */
typedef struct builder {
  sweep *sweep;
  size_t capacity;
  const sweep_request *request;
  const variant_list *list;
  FILE *notes;
  char last_reason[2048]; /* why the last point was left out */
  /* Of the curves that are being added: whether the function of their variant has what was asked for, as the first shape tells. */
  enum { UNKNOWN, SENSIBLE, SENSELESS } curves;
  char senseless[1024]; /* what was wrong with the first shape of all that made no sense */
  bool has_sensible;
  char *why;
  size_t why_size;
} builder;

/* ---- names ---- */

static bool text_list_has(const text_list *list, const char *text) {
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->items[i], text) == 0) return true;
  return false;
}

/* It may be one that works in a team of processes, which this is not. */
static void say_team(const char *name, char *why, size_t why_size) {
  char missing[256];
  const attn_table *team = variant_list_peek_team(missing, sizeof missing);
  const size_t used = strlen(why);
  if (!team) snprintf(why + used, why_size - used, " (%s)", missing);
  for (uint32_t n = 0; team && n < team->count; n++)
    if (strcmp(team->variants[n]->name, name) == 0)
      snprintf(why, why_size, "%s works in a team of processes: mpirun -n 4 attnbench verify --variant %s",
               name, name);
}

bool sweep_check_variants(const variant_list *list, const text_list *names, char *why, size_t why_size) {
  for (size_t i = 0; i < names->count; i++) {
    if (variant_list_find(list, names->items[i])) continue;
    const char **candidates = calloc(list->count, sizeof *candidates);
    for (size_t v = 0; candidates && v < list->count; v++) candidates[v] = list->variants[v]->name;
    const char *nearest = candidates ? text_nearest(names->items[i], candidates, list->count) : NULL;
    snprintf(why, why_size, "there is no variant '%s'; %s%s", names->items[i],
             nearest ? "the nearest is " : "attnbench list names them all", nearest ? nearest : "");
    free(candidates);
    if (!list->team) say_team(names->items[i], why, why_size);
    return false;
  }
  return true;
}

static const preset *find_preset(const char *name, char *why, size_t why_size) {
  enum { MOST = 64 };
  const preset *found = preset_find(name);
  if (found) return found;
  const char *candidates[MOST];
  size_t count = 0;
  for (const preset *each = preset_list(); each->name && count < MOST; each++)
    candidates[count++] = each->name;
  const char *nearest = text_nearest(name, candidates, count);
  snprintf(why, why_size, "there is no preset '%s'; %s%s", name,
           nearest ? "the nearest is " : "attnbench --preset list names them all", nearest ? nearest : "");
  return NULL;
}

void sweep_point_name(const bench_point *point, char name[WORKLOAD_NAME_BYTES]) {
  char shape[WORKLOAD_NAME_BYTES];
  workload_name(&point->workload, shape);
  snprintf(name, WORKLOAD_NAME_BYTES, "%s/%.*s", point->variant->name,
           WORKLOAD_NAME_BYTES - 2 - (int)strlen(point->variant->name), shape);
}

/* ---- shapes ---- */

/* Line n of a variant's own words, from 0 on; false: there are fewer. */
static bool showcase_line(const attn_variant *variant, int n, char line[WORKLOAD_NAME_BYTES]) {
  const char *at = variant->showcase ? variant->showcase : "";
  for (; n > 0 && *at; n--) at += strcspn(at, " "), at += strspn(at, " ");
  snprintf(line, WORKLOAD_NAME_BYTES, "%.*s", (int)strcspn(at, " "), at);
  return *line != '\0';
}

/* A workload in that line's words. */
static workload showcase_of(const attn_variant *variant, int n, int64_t query_heads) {
  char why[8], line[WORKLOAD_NAME_BYTES];
  workload shown = workload_default();
  shown.query_heads = shown.kv_heads = query_heads;
  workload said = shown;
  if (!showcase_line(variant, n, line) || !workload_say(&said, line, why, sizeof why)) return shown;
  if (said.kv_heads < 1 || query_heads % said.kv_heads != 0) said.kv_heads = query_heads;
  return said;
}

int64_t sweep_kv_heads(const attn_variant *variant, int64_t query_heads) {
  return showcase_of(variant, 0, query_heads).kv_heads;
}

int64_t sweep_window(const attn_variant *variant) { return showcase_of(variant, 0, 1).left; }

/* The shape of the command line for one variant, without its length: 0 queries are as many as keys. What is not said
 * is what shows the variant best. */
static workload shape_for(const sweep_request *request, const attn_variant *variant, int line) {
  workload shape =
      showcase_of(variant, line, request->heads > 0 ? request->heads : workload_default().query_heads);
  shape.seed = request->seed;
  if (request->batch > 0) shape.batch = request->batch;
  if (request->head_dim > 0) shape.head_dim = request->head_dim;
  shape.value_dim = request->value_dim > 0 ? request->value_dim : shape.head_dim;
  if (request->kv_heads > 0) shape.kv_heads = request->kv_heads;
  if (shape.query_length == shape.key_length) shape.query_length = 0;
  if (request->query_length > 0) shape.query_length = request->query_length;
  if (request->causal) shape.right = 0;
  if (request->window >= 0) shape.left = request->window;
  if (shape.left != ATTN_UNLIMITED) shape.right = 0;
  workload_pose_to(&shape, variant->function);
  return shape;
}

/* ---- points ---- */

static const char *origin_of(const variant_list *list, const attn_variant *variant) {
  for (size_t n = 0; n < list->count; n++)
    if (list->variants[n] == variant) return list->origins[n];
  return NULL;
}

static bool is_same(const bench_point *point, const attn_variant *variant, const workload *workload) {
  char name[WORKLOAD_NAME_BYTES], other[WORKLOAD_NAME_BYTES];
  if (point->variant != variant || point->workload.key_length != workload->key_length) return false;
  workload_name(&point->workload, name);
  workload_name(workload, other);
  return strcmp(name, other) == 0;
}

static bool is_memory_only(const sweep_request *request, const attn_variant *variant) {
  return request->memory_only && text_list_has(request->memory_only, variant->name);
}

/* A problem that was asked for twice is one row of the report. */
static bool append_point(builder *builder, const attn_variant *variant, const workload *workload) {
  sweep *sweep = builder->sweep;
  for (size_t n = 0; n < sweep->count; n++)
    if (is_same(&sweep->points[n], variant, workload)) {
      char name[WORKLOAD_NAME_BYTES];
      sweep_point_name(&sweep->points[n], name);
      fprintf(builder->notes, "%s was asked for more than once, and is measured once\n", name);
      return true;
    }
  if (sweep->count == builder->capacity) {
    size_t capacity = builder->capacity ? 2 * builder->capacity : 64;
    bench_point *points = realloc(sweep->points, capacity * sizeof *points);
    if (!points) {
      snprintf(builder->why, builder->why_size, "out of memory");
      return false;
    }
    sweep->points = points;
    builder->capacity = capacity;
  }
  sweep->points[sweep->count++] = (bench_point){variant, *workload, origin_of(builder->list, variant),
                                                variant_list_instruction_sets_of(builder->list, variant),
                                                is_memory_only(builder->request, variant)};
  return true;
}

static void leave_out(builder *builder, const attn_variant *variant, const workload *workload,
                      const char *reason) {
  char shape[WORKLOAD_NAME_BYTES];
  workload_name(workload, shape);
  snprintf(builder->last_reason, sizeof builder->last_reason, "%s cannot solve %s: %s", variant->name, shape,
           reason);
  fprintf(builder->notes, "%s\n", builder->last_reason);
}

/* Why the variant cannot solve the shape; NULL: it can, or ended an earlier process, which its points say when their
 * turn comes. False for a shape that makes no sense. */
static bool find_refusal(builder *builder, const attn_variant *variant, const workload *shape,
                         const char **reason) {
  if (!workload_check(shape, builder->why, builder->why_size)) return false;
  const attn_problem problem = workload_problem(shape);
  *reason = supervisor_ended(variant->name) ? NULL : runner_refusal(variant, &problem);
  return true;
}

static bool add_shape(builder *builder, const attn_variant *variant, const workload *shape) {
  const char *reason;
  if (!find_refusal(builder, variant, shape, &reason)) return false;
  if (!reason) return append_point(builder, variant, shape);
  leave_out(builder, variant, shape, reason);
  return true;
}

/* The shape at one length. Where queries are fewer than keys they are the last ones, as with a cache. Lists and what ends
 * bottom right follow the lengths, so that parts are said behind them. */
static bool set_length(builder *builder, const workload *of_all, int64_t length, workload *shape) {
  const sweep_request *request = builder->request;
  *shape = *of_all;
  shape->key_length = length;
  if (of_all->query_length == 0) shape->query_length = length;
  if (shape->left != ATTN_UNLIMITED || shape->right != ATTN_UNLIMITED)
    shape->offset = length - shape->query_length;
  for (size_t n = 0; request->parts && n < request->parts->count; n++)
    if (!workload_say(shape, request->parts->items[n], builder->why, builder->why_size)) return false;
  return true;
}

/* Adds the shape at each length for the variant. A length that it refuses is skipped and counted when its turn comes; a
 * variant that refuses all of them is left out, and so is one whose function has no such thing; what makes sense for it
 * and then at one size does not is a mistake. */
static bool add_lengths(builder *builder, const attn_variant *variant, workload of_all,
                        const int64_t *lengths, size_t count) {
  const char *reason = NULL;
  size_t solved = 0;
  workload shape = of_all;
  if (builder->curves == SENSELESS) return true;
  for (size_t i = 0; i < count; i++) {
    if (!set_length(builder, &of_all, lengths[i], &shape)) return false;
    if (!find_refusal(builder, variant, &shape, &reason)) {
      if (builder->curves == SENSIBLE) return false;
      builder->curves = SENSELESS;
      if (!builder->senseless[0]) snprintf(builder->senseless, sizeof builder->senseless, "%s", builder->why);
      leave_out(builder, variant, &shape, builder->why);
      return true;
    }
    builder->curves = SENSIBLE;
    builder->has_sensible = true;
    solved += !reason;
  }
  if (solved == 0 && reason) {
    leave_out(builder, variant, &shape, reason);
    return true;
  }
  for (size_t i = 0; i < count; i++) {
    if (!set_length(builder, &of_all, lengths[i], &shape)) return false;
    if (!append_point(builder, variant, &shape)) return false;
  }
  return true;
}

static bool has_point(const builder *builder, const attn_variant *variant, const workload *workload) {
  for (size_t n = 0; n < builder->sweep->count; n++)
    if (is_same(&builder->sweep->points[n], variant, workload)) return true;
  return false;
}

/* At one length; what another curve has already is not asked for again. */
static bool add_once(builder *builder, const attn_variant *variant, const workload *of_all, int64_t length) {
  workload shape = *of_all;
  if (!set_length(builder, of_all, length, &shape)) return false;
  return has_point(builder, variant, &shape) || add_lengths(builder, variant, *of_all, &length, 1);
}

/* Growth in the batch and in the head dimension; what goes into a layer and comes out has as many features whatever
 * its heads have. */
static bool add_sizes(builder *builder, const attn_variant *variant, const workload *of_all, int64_t length) {
  const sweep_request *request = builder->request;
  for (size_t n = 0; n < request->batch_count; n++) {
    workload shape = *of_all;
    shape.batch = request->batches[n];
    if (!add_once(builder, variant, &shape, length)) return false;
  }
  for (size_t n = 0; n < request->head_dim_count; n++) {
    workload shape = *of_all;
    shape.head_dim = request->head_dims[n];
    if (request->value_dim <= 0) shape.value_dim = shape.head_dim;
    if (!add_once(builder, variant, &shape, length)) return false;
  }
  return true;
}

static bool add_sweep_of(builder *builder, const attn_variant *variant, int line) {
  const sweep_request *request = builder->request;
  const workload shape = shape_for(request, variant, line);
  const bool of_sizes = request->batch_count > 0 || request->head_dim_count > 0;
  int64_t usual[16];
  size_t count = 0;
  const int64_t last = variant->time_exponent >= 2 && shape.query_length == 0 ? 8192 : 65536;
  for (int64_t length = 128; length <= last; length *= 2) usual[count++] = length;
  if (of_sizes) usual[0] = 1024, count = 1;
  const int64_t *lengths = request->length_count ? request->lengths : usual;
  if (request->length_count) count = request->length_count;
  builder->curves = UNKNOWN;
  if ((!of_sizes || count > 1) && !add_lengths(builder, variant, shape, lengths, count)) return false;
  return add_sizes(builder, variant, &shape, lengths[count - 1]);
}

static bool add_variant(builder *builder, const attn_variant *variant) {
  const sweep_request *request = builder->request;
  for (size_t i = 0; i < request->problems->count; i++) {
    workload workload;
    if (!workload_parse_sound(request->problems->items[i], &workload, builder->why, builder->why_size))
      return false;
    workload_seed_unnamed(&workload, request->seed);
    if (!add_shape(builder, variant, &workload)) return false;
  }
  for (size_t i = 0; i < request->presets->count; i++) {
    const preset *preset = find_preset(request->presets->items[i], builder->why, builder->why_size);
    if (!preset) return false;
    workload workload = preset->workload;
    workload_pose_to(&workload, variant->function);
    workload.seed = request->seed;
    if (!add_shape(builder, variant, &workload)) return false;
  }
  if (request->problems->count || request->presets->count) return true;
  if (!add_sweep_of(builder, variant, 0)) return false;
  /* Who names a variant asks for one thing; a sweep of all shows what else there is. */
  char more[WORKLOAD_NAME_BYTES];
  for (int line = 1; request->variants->count == 0 && showcase_line(variant, line, more); line++)
    if (!add_sweep_of(builder, variant, line)) return false;
  return true;
}

/* Keeps the points whose names match, or with a '-' in front those that do not. */
static bool apply_filter(builder *builder) {
  const char *pattern = builder->request->filter;
  if (!pattern || strcmp(pattern, "all") == 0) return true; /* Google Benchmark's word for all */
  bool wanted = *pattern != '-';
  regex_t regex;
  int status = regcomp(&regex, pattern + !wanted, REG_EXTENDED | REG_NOSUB);
  if (status) {
    char reason[128];
    regerror(status, &regex, reason, sizeof reason);
    snprintf(builder->why, builder->why_size, "--benchmark_filter takes a regular expression, not '%s': %s",
             pattern, reason);
    return false;
  }
  sweep *sweep = builder->sweep;
  size_t kept = 0;
  for (size_t i = 0; i < sweep->count; i++) {
    char name[WORKLOAD_NAME_BYTES];
    sweep_point_name(&sweep->points[i], name);
    if ((regexec(&regex, name, 0, NULL, 0) == 0) == wanted) sweep->points[kept++] = sweep->points[i];
  }
  regfree(&regex);
  sweep->count = kept;
  if (!kept)
    snprintf(builder->why, builder->why_size,
             "no point matches --benchmark_filter '%s'; --benchmark_list_tests prints the names", pattern);
  return kept > 0;
}

static bool build(builder *builder) {
  const sweep_request *request = builder->request;
  if (!sweep_check_variants(builder->list, request->variants, builder->why, builder->why_size)) return false;
  if (request->memory_only &&
      !sweep_check_variants(builder->list, request->memory_only, builder->why, builder->why_size))
    return false;
  for (size_t v = 0; v < builder->list->count; v++) {
    const attn_variant *variant = builder->list->variants[v];
    if (request->variants->count && !text_list_has(request->variants, variant->name)) continue;
    if (!add_variant(builder, variant)) return false;
  }
  if (!builder->sweep->count) {
    if (builder->senseless[0] && !builder->has_sensible)
      snprintf(builder->why, builder->why_size, "%s", builder->senseless);
    else
      snprintf(builder->why, builder->why_size, "nothing is left to measure: %s", builder->last_reason);
    return false;
  }
  return apply_filter(builder);
}

bool sweep_create(sweep *sweep, const sweep_request *request, const variant_list *list, char *why,
                  size_t why_size) {
  *sweep = (struct sweep){0};
  size_t notes_size;
  builder builder = {.sweep = sweep, .request = request, .list = list, .why = why, .why_size = why_size};
  builder.notes = open_memstream(&sweep->notes, &notes_size);
  if (!builder.notes) {
    snprintf(why, why_size, "out of memory");
    return false;
  }
  bool built = build(&builder);
  fclose(builder.notes);
  if (!built) sweep_destroy(sweep);
  return built;
}

void sweep_destroy(sweep *sweep) {
  free(sweep->points);
  free(sweep->notes);
  *sweep = (struct sweep){0};
}
