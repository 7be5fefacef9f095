/* See position_text.h. */
#include "position_text.h"

#include <inttypes.h>

bool position_read_relative(workload_reading *r, const char *key, const char *text) {
  return (words_integer(r, key, text, &r->workload.relative) && r->workload.relative > 0) ||
         wrong(r->to,
               "'%s:%s': a relative table is relative:R, the greatest distance that it tells apart, from 1",
               key, text);
}

void position_write_relative(const workload *w, const char *key, workload_writing *to) {
  if (w->relative > 0) words_add(to, "/%s:%" PRId64, key, w->relative);
}
