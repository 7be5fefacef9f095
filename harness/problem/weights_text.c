/* See weights_text.h. */
#include "weights_text.h"

#include <stdio.h>
#include <string.h>

bool weights_read_dropout(workload_reading *r, const char *key, const char *text) {
  workload *w = &r->workload;
  char copy[WORKLOAD_NAME_BYTES];
  snprintf(copy, sizeof copy, "%s", text);
  char *rest = copy;
  const char *p = strsep(&rest, ",");
  if (!words_double(r, key, p, &w->dropout_p)) return false;
  if (!(w->dropout_p >= 0 && w->dropout_p < 1))
    return wrong(r->to,
                 "'%s:%s': dropout is dropout:P or dropout:P,AXES, with P the share of the weights that is "
                 "dropped, from 0 up to, but not, 1",
                 key, text);
  return words_axes(r, key, rest ? rest : "bhq", &w->keep);
}

void weights_write_dropout(const workload *w, const char *key, workload_writing *to) {
  const workload_axes *axes = &w->keep;
  if (!axes->present) return;
  words_add_double(to, key, w->dropout_p);
  if (axes->batch && axes->head && axes->query) return;
  const bool none = !axes->batch && !axes->head && !axes->query;
  words_add(to, ",%s%s%s%s", axes->batch ? "b" : "", axes->head ? "h" : "", axes->query ? "q" : "",
            none ? "1" : "");
}
