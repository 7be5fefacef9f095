/* See position_text.h. */
#include "position_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool position_read_relative(workload_reading *r, const char *key, const char *text) {
  return (words_integer(r, key, text, &r->workload.relative) && r->workload.relative > 0) ||
         wrong(r->to,
               "'%s:%s': a relative table is relative:R, the greatest distance that it tells apart, from 1",
               key, text);
}

void position_write_relative(const workload *w, const char *key, workload_writing *to) {
  if (w->relative > 0) words_add(to, "/%s:%" PRId64, key, w->relative);
}

bool position_read_t5(workload_reading *r, const char *key, const char *text) {
  workload *w = &r->workload;
  char copy[WORKLOAD_NAME_BYTES];
  snprintf(copy, sizeof copy, "%s", text);
  char *rest = copy;
  const char *buckets = strsep(&rest, ","), *distance = strsep(&rest, ",");
  w->t5_one = rest != NULL;
  return (distance && words_integer(r, key, buckets, &w->t5_buckets) && w->t5_buckets > 0 &&
          words_integer(r, key, distance, &w->t5_distance) && (!rest || strcmp(rest, "one") == 0)) ||
         wrong(r->to,
               "'%s:%s': T5's buckets are t5:BUCKETS,DISTANCE, their number from 2 and the greatest "
               "distance, or "
               "t5:BUCKETS,DISTANCE,one for one direction",
               key, text);
}

void position_write_t5(const workload *w, const char *key, workload_writing *to) {
  if (w->t5_buckets > 0)
    words_add(to, "/%s:%" PRId64 ",%" PRId64 "%s", key, w->t5_buckets, w->t5_distance,
              w->t5_one ? ",one" : "");
}

static const char *const rope_pairs[] = {[ROPE_HALF] = "half", [ROPE_INTERLEAVED] = "interleaved"};

bool position_read_rope(workload_reading *r, const char *key, const char *text) {
  workload *w = &r->workload;
  char copy[WORKLOAD_NAME_BYTES];
  snprintf(copy, sizeof copy, "%s", text);
  char *rest = copy;
  const char *pairs = strsep(&rest, ",");
  w->rope_features = 0;
  for (w->rope = ROPE_HALF; w->rope <= ROPE_INTERLEAVED && strcmp(pairs, rope_pairs[w->rope]) != 0;)
    w->rope++;
  return (w->rope <= ROPE_INTERLEAVED &&
          (!rest || (words_integer(r, key, rest, &w->rope_features) && w->rope_features > 0))) ||
         wrong(r->to,
               "'%s:%s': a rotary embedding is rope:half or rope:interleaved, by which features are pairs; "
               "rope:half,R rotates the first R alone",
               key, text);
}

void position_write_rope(const workload *w, const char *key, workload_writing *to) {
  if (w->rope == ROPE_NONE) return;
  words_add(to, "/%s:%s", key, rope_pairs[w->rope]);
  if (w->rope_features > 0) words_add(to, ",%" PRId64, w->rope_features);
}
