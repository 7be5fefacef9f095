/* See linear_text.h. */
#include "linear_text.h"

#include <string.h>

static const char *const names[] = {[ATTN_ELU1] = "elu1", [ATTN_RELU] = "relu", [ATTN_IDENTITY] = "identity"};

enum { MAPS = sizeof names / sizeof names[0] };

const char *linear_phi_name(attn_feature_map map) { return (unsigned)map < MAPS ? names[map] : NULL; }

bool linear_phi_named(const char *name, attn_feature_map *map) {
  for (int n = 0; n < MAPS; n++) {
    if (strcmp(names[n], name) != 0) continue;
    *map = (attn_feature_map)n;
    return true;
  }
  return false;
}

bool linear_read_phi(workload_reading *r, const char *key, const char *text) {
  return linear_phi_named(text, &r->workload.feature_map) ||
         wrong(r->to, "'%s:%s': a feature map is elu1, relu or identity", key, text);
}

void linear_write_phi(const workload *w, const char *key, workload_writing *to) {
  const char *name = linear_phi_name(w->feature_map);
  if (w->feature_map != ATTN_ELU1 && name) words_add(to, "/%s:%s", key, name);
}
