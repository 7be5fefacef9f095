/* See families.h. */
#define _GNU_SOURCE
#include "families.h"

#include <stdio.h>
#include <string.h>

/* A band that ends at the last key, whatever the lengths, has another offset at each of them. */
static bool is_aligned_band(const char *part, const workload *w) {
  return !strncmp(part, "/band:", 6) && w->offset != 0 && w->offset == w->key_length - w->query_length;
}

/* The name with its lengths T:, Tq: and Tk: left out, but the one that stays, if any. */
static void strip_lengths(const char *name, const workload *w, sweep_axis swept,
                          char family[WORKLOAD_NAME_BYTES]) {
  size_t used = 0;
  for (const char *part = name; *part;) {
    const size_t bytes = 1 + strcspn(part + 1, "/"); /* with the slash before it */
    const bool is_first = !strncmp(part, "/T:", 3) || !strncmp(part, "/Tq:", 4);
    if (is_first && swept != SWEPT_BOTH)
      used += (size_t)snprintf(family + used, WORKLOAD_NAME_BYTES - used, "/%s:%lld",
                               swept == SWEPT_KEYS ? "Tq" : "Tk",
                               (long long)(swept == SWEPT_KEYS ? w->query_length : w->key_length));
    if (is_aligned_band(part, w)) {
      const size_t kept = (size_t)((const char *)memrchr(part, ',', bytes) - part);
      used += (size_t)snprintf(family + used, WORKLOAD_NAME_BYTES - used, "%.*s,Tk-Tq", (int)kept, part);
    } else if (!is_first && strncmp(part, "/Tk:", 4) != 0) {
      memcpy(family + used, part, bytes);
      used += bytes;
    }
    part += bytes;
  }
  family[used] = '\0';
}

/* Of the points whose names differ from this one's in lengths only, itself among them: all, those with as many queries, as
 * many keys, and as many of both. */
typedef struct kin {
  size_t all, same_queries, same_keys, diagonal;
} kin;

static kin kin_of(const result *point, const result *results, size_t count) {
  kin found = {0};
  for (size_t n = 0; n < count; n++) {
    const workload *w = &results[n].workload;
    if (strcmp(results[n].family, point->family) != 0) continue;
    found.all++;
    found.same_queries += w->query_length == point->workload.query_length;
    found.same_keys += w->key_length == point->workload.key_length;
    found.diagonal += w->query_length == w->key_length;
  }
  return found;
}

/* A length that more points share than the other one is what stays. One point alone with fewer queries than keys is decoding, of
 * which more keys would be more of the same. */
static sweep_axis axis_of(const result *point, const result *results, size_t count) {
  const kin kin = kin_of(point, results, count);
  const bool is_diagonal = point->workload.query_length == point->workload.key_length;
  if (is_diagonal && (kin.diagonal > 1 || kin.all == 1)) return SWEPT_BOTH;
  if (kin.all > 1 && kin.same_queries == 1 && kin.same_keys == 1) return SWEPT_BOTH;
  return kin.same_queries >= kin.same_keys ? SWEPT_KEYS : SWEPT_QUERIES;
}

/* The name with its batch left out, or its head dimension. Values as wide as keys are said by no part of it: they may
 * follow the keys' width, or be of one width along the curve, which is then said. */
static void strip_size(const result *point, sweep_axis axis, bool values_follow,
                       char family[WORKLOAD_NAME_BYTES]) {
  const char *name = point->name, *at = strstr(name, axis == SWEPT_BATCH ? "/B:" : "/D:");
  const workload *w = &point->workload;
  char width[32] = "";
  if (axis == SWEPT_HEAD_DIM && !values_follow && w->value_dim == w->head_dim)
    snprintf(width, sizeof width, "/Dv:%lld", (long long)w->value_dim);
  if (!at)
    snprintf(family, WORKLOAD_NAME_BYTES, "%s", name);
  else
    snprintf(family, WORKLOAD_NAME_BYTES, "%.*s%s%s", (int)(at - name), name, width,
             at + 1 + strcspn(at + 1, "/"));
}

/* Of all points, those that are of the same family. */
static size_t count_along(const char *family, sweep_axis axis, bool values_follow, const result *results,
                          size_t count) {
  char other[WORKLOAD_NAME_BYTES];
  size_t kin = 0;
  for (size_t m = 0; m < count; m++) {
    const workload *w = &results[m].workload;
    if (axis == SWEPT_HEAD_DIM && values_follow && w->value_dim != w->head_dim) continue;
    strip_size(&results[m], axis, values_follow, other);
    kin += strcmp(family, other) == 0;
  }
  return kin;
}

/* Points that are of no length's curve, and of which three and more differ in this alone, are a curve along it. */
static void find_along(sweep_axis axis, result *results, size_t count) {
  enum { LEAST_POINTS = 3 };
  char family[2][WORKLOAD_NAME_BYTES];
  for (size_t n = 0; n < count; n++) {
    const workload *w = &results[n].workload;
    if (results[n].swept >= SWEPT_BATCH || kin_of(&results[n], results, count).all > 1) continue;
    size_t kin[2] = {0};
    for (int follows = 0; follows < 2; follows++) {
      strip_size(&results[n], axis, follows, family[follows]);
      if (!follows || w->value_dim == w->head_dim || axis == SWEPT_BATCH)
        kin[follows] = count_along(family[follows], axis, follows, results, count);
    }
    const int chosen = kin[1] >= kin[0];
    if (kin[chosen] < LEAST_POINTS) continue;
    memcpy(results[n].family, family[chosen], sizeof results[n].family);
    results[n].swept = axis;
  }
}

void families_find(result *results, size_t count) {
  for (size_t n = 0; n < count; n++)
    strip_lengths(results[n].name, &results[n].workload, SWEPT_BOTH, results[n].family);
  for (size_t n = 0; n < count; n++) results[n].swept = axis_of(&results[n], results, count);
  find_along(SWEPT_BATCH, results, count);
  find_along(SWEPT_HEAD_DIM, results, count);
  for (size_t n = 0; n < count; n++)
    if (results[n].swept < SWEPT_BATCH)
      strip_lengths(results[n].name, &results[n].workload, results[n].swept, results[n].family);
}
