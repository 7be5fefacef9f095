/* Variants of a team: what each of their ranks sends and needs is a formula, which verification holds to what is counted. So the
 * gate asks both sides' formulas, for up to 64 ranks, and starts none. See gate.h. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "run/team_slices.h"

/* Long ones, and each way in which a rank can be spared a message: the window, one query, groups of heads. */
static const char *const lines[] = {"full/B:1/H:8/Hkv:8/D:64/T:4096",
                                    "causal/B:1/H:64/Hkv:64/D:64/T:8192",
                                    "full/B:2/H:64/Hkv:8/D:128/T:65536/bf16/lse",
                                    "window:1024/B:1/H:64/Hkv:8/D:128/T:65536/bf16",
                                    "full/B:1/H:64/Hkv:8/D:128/Tq:1/Tk:65536/bf16",
                                    "full/B:1/H:60/Hkv:12/D:80/Tq:37/Tk:4099/sink",
                                    "causal/B:2/H:64/Hkv:64/D:64/T:4096/lengths:100,4096"};
enum { LINES = sizeof lines / sizeof *lines };
static const int sizes[] = {2, 3, 4, 7, 8, 64};

typedef struct object {
  void *handle;
  const attn_team *team;
} object;

static bool load(object *to, const char *path, char *why, size_t why_size) {
  to->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  to->team = to->handle ? dlsym(to->handle, "attn_plugin_team") : NULL;
  if (to->team && to->team->size >= sizeof *to->team) return true;
  snprintf(why, why_size, "%s has no team of this version: %s", path,
           to->handle ? "build it again" : dlerror());
  return false;
}

static const attn_team_member *find(const object *of, const char *name) {
  for (const attn_team_member *const *member = of->team->members; *member; member++)
    if (strcmp((*member)->variant->name, name) == 0) return *member;
  return NULL;
}

/* Of the rank that sends, or needs, most. */
typedef struct bytes {
  uint64_t sent, workspace;
} bytes;

/* False where the variant does not take the problem among so many ranks. */
static bool measure(const attn_team_member *member, const attn_problem *whole, int ranks, bytes *most) {
  const attn_variant *variant = member->variant;
  attn_call call = {.size = sizeof call, .variant = variant, .problem = whole, .threads = 1, .ranks = ranks};
  *most = (bytes){0, 0};
  if (whole->function != variant->function || (whole->features & ~variant->features) ||
      !(variant->types & 1u << whole->query.type))
    return false;
  if (variant->unsupported && variant->unsupported(&call)) return false;
  const team_deal deal = {member->queries(&call), member->keys(&call), ranks};
  for (int rank = 0; rank < ranks; rank++) {
    const attn_problem own = team_problem(whole, &deal, rank);
    call.problem = &own;
    call.rank = rank;
    const uint64_t sent = member->sent_bytes(&call);
    const uint64_t workspace = variant->workspace_size ? variant->workspace_size(&call) : 0;
    if (sent > most->sent) most->sent = sent;
    if (workspace > most->workspace) most->workspace = workspace;
  }
  return true;
}

typedef struct counts {
  size_t compared, fewer;
} counts;

/* False where a finding cannot be kept. */
static bool compare(const gate_options *options, gate_findings *findings, const attn_team_member *now,
                    const attn_team_member *before, const workload *workload, const char *line, int ranks,
                    counts *counts) {
  char name[GATE_NAME_BYTES];
  const char *variant = now->variant->name;
  bytes head, base;
  const attn_problem whole = workload_problem(workload);
  if (!measure(before, &whole, ranks, &base)) return true;
  snprintf(name, sizeof name, "%s/%s/ranks:%d", variant, line, ranks);
  if (!measure(now, &whole, ranks, &head))
    return gate_find(findings, options, GATE_VARIANTS, variant, name,
                     "the base takes it, and the head does not");
  counts->compared++;
  counts->fewer += head.sent < base.sent;
  if (head.sent > base.sent &&
      !gate_find(findings, options, GATE_SENT, variant, name,
                 "a rank sends %" PRIu64 " bytes, %" PRIu64 " in the base", head.sent, base.sent))
    return false;
  return head.workspace <= base.workspace ||
         gate_find(findings, options, GATE_WORKSPACE, variant, name,
                   "a rank needs %" PRIu64 " bytes of workspace, %" PRIu64 " in the base", head.workspace,
                   base.workspace);
}

static bool is_wanted(const gate_options *options, const char *variant) {
  for (size_t n = 0; n < options->variant_count; n++)
    if (strcmp(options->variants[n], variant) == 0) return true;
  return options->variant_count == 0;
}

/* They are ours: one that cannot be read, after a change of the grammar, would be compared by nobody. */
static bool read_lines(workload workloads[LINES], char *why, size_t why_size) {
  char reason[128];
  for (size_t n = 0; n < LINES; n++) {
    if (workload_parse_sound(lines[n], &workloads[n], reason, sizeof reason)) continue;
    snprintf(why, why_size, "the gate's own problem '%s' cannot be read: %s", lines[n], reason);
    return false;
  }
  return true;
}

bool gate_compare_team(const gate_options *options, gate_findings *findings, FILE *out, char *why,
                       size_t why_size) {
  object head, base;
  counts counts = {0, 0};
  bool good = true;
  static workload workloads[LINES];
  if (!read_lines(workloads, why, why_size) || !load(&head, options->head_team, why, why_size) ||
      !load(&base, options->base_team, why, why_size))
    return false;
  for (const attn_team_member *const *member = base.team->members; good && *member; member++) {
    const char *name = (*member)->variant->name;
    const attn_team_member *now = find(&head, name);
    if (!is_wanted(options, name)) continue;
    if (!now)
      good =
          gate_find(findings, options, GATE_VARIANTS, name, name, "the base has it, and the head does not");
    for (size_t line = 0; now && good && line < LINES; line++)
      for (size_t size = 0; good && size < sizeof sizes / sizeof *sizes; size++)
        good = compare(options, findings, now, *member, &workloads[line], lines[line], sizes[size], &counts);
  }
  if (!good) snprintf(why, why_size, "out of memory");
  if (good)
    fprintf(out, "  %-13s%zu problems and teams of up to 64 ranks against the base: bytes sent of %zu down\n",
            "sent", counts.compared, counts.fewer);
  return good;
}
