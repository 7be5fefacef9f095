/* What the gate measures: for each variant a few shapes that use different parts of a kernel, small enough
 * that one run takes milliseconds. Long sequences are for `attnbench bench`; what makes a kernel slower
 * there shows here, or in the growth of its instructions. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "measure/sweep.h"
#include "run/runner.h"

enum { HEADS = 4, WINDOW = 64, CONTROLS = 3 };

static const struct shape {
  int64_t query_length, key_length, head_dim;
  bool causal, decoding, team;
} shapes[] = {
    {256, 256, 64, false, false, false}, /* whole tiles */
    {60, 60, 64, false, false, false},   /* the overhead of a call, and tiles that are not whole */
    {200, 200, 128, true, false, false}, /* a causal edge, wide heads */
    {1, 2048, 64, true, true, false},    /* one new token against a cache */
    {256, 256, 64, false, false, true},  /* shared among threads */
};

static int team_size(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 4 ? 4 : count;
}

/* False where the shape says nothing new of the variant: a windowed one is causal always. */
static bool workload_for(const attn_variant *variant, const struct shape *shape, workload *w) {
  const bool windowed = sweep_window(variant) != ATTN_UNLIMITED;
  if (windowed && shape->decoding) return false;
  *w = workload_default();
  w->function = variant->function;
  w->query_heads = HEADS;
  w->kv_heads = sweep_kv_heads(variant, HEADS);
  w->query_length = windowed ? 2 * shape->query_length : shape->query_length;
  w->key_length = windowed ? w->query_length : shape->key_length;
  w->head_dim = w->value_dim = shape->head_dim;
  if (windowed) w->left = WINDOW;
  if (windowed || shape->causal) w->right = 0;
  if (shape->decoding) w->offset = w->key_length - w->query_length;
  return true;
}

/* "fused/full/.../threads:1/isa:avx2", as findings name it and as --benchmark may ask for it. */
static bool hold_to_isa(gate_benchmark *benchmark, const char *isa) {
  const size_t length = strlen(benchmark->name), room = sizeof benchmark->name - length;
  snprintf(benchmark->isa, sizeof benchmark->isa, "%s", isa);
  return snprintf(benchmark->name + length, room, "/isa:%s", isa) < (int)room;
}

/* The instruction set that --benchmark asks for, or NULL. */
static const char *asked_isa(const gate_options *options) {
  const char *mark = options->only ? strstr(options->only, "/isa:") : NULL;
  return mark ? mark + strlen("/isa:") : NULL;
}

static bool has_isa(const variant_list *list, const char *isa) {
  const char *const *set = list->tables[0]->instruction_sets ? list->tables[0]->instruction_sets() : NULL;
  while (set && *set && strcmp(*set, isa) != 0) set++;
  return set && *set;
}

/* True when a list with spaces between its words, or NULL, has this one. */
static bool has_word(const char *list, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = list; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
    if (strcspn(at, " ") == length && strncmp(at, word, length) == 0) return true;
  return false;
}

static void add(gate_set *set, const attn_variant *variant, const workload *w, int threads,
                bool against_itself, const gate_options *options) {
  if (set->count == GATE_MAX_BENCHMARKS) return;
  gate_benchmark *benchmark = &set->benchmarks[set->count];
  char problem[WORKLOAD_NAME_BYTES];
  workload_name(w, problem);
  *benchmark = (gate_benchmark){.isa = "-", .threads = threads, .against_itself = against_itself};
  snprintf(benchmark->variant, sizeof benchmark->variant, "%s", variant->name);
  if (snprintf(benchmark->problem, sizeof benchmark->problem, "%s", problem) >=
      (int)sizeof benchmark->problem)
    return;
  const int length = snprintf(benchmark->name, sizeof benchmark->name, "%s%s/%s/threads:%d",
                              against_itself ? "control:" : "", variant->name, problem, threads);
  if (length >= (int)sizeof benchmark->name) return;
  if (asked_isa(options) && !against_itself && !hold_to_isa(benchmark, asked_isa(options))) return;
  if (options->only && !against_itself && !strstr(benchmark->name, options->only)) return;
  benchmark->identical = has_word(options->identical, variant->name);
  set->count++;
}

void gate_set_fill(gate_set *set, const variant_list *base, const variant_list *head,
                   const gate_options *options) {
  const int team = team_size();
  size_t controls = 0;
  set->count = 0;
  if (asked_isa(options) && !has_isa(head, asked_isa(options))) return;
  for (size_t n = 0; n < head->count; n++) {
    const attn_variant *variant = head->variants[n], *before = variant_list_find(base, variant->name);
    bool itself = controls < CONTROLS && (n % 3 == 1 || head->count <= CONTROLS);
    for (size_t s = 0; before && s < sizeof shapes / sizeof *shapes; s++) {
      workload w;
      if ((shapes[s].team && team < 2) || !workload_for(variant, &shapes[s], &w)) continue;
      const attn_problem problem = workload_problem(&w);
      if (runner_refusal(variant, &problem) || runner_refusal(before, &problem)) continue;
      add(set, variant, &w, shapes[s].team ? team : 1, false, options);
      if (!itself) continue;
      add(set, variant, &w, 1, true, options);
      controls++;
      itself = false;
    }
  }
}

void gate_set_add_isa(gate_set *set, const char *variant, const char *isa) {
  const size_t count = set->count;
  for (size_t n = 0; n < count && set->count < GATE_MAX_BENCHMARKS; n++) {
    const gate_benchmark *original = &set->benchmarks[n];
    if (strcmp(original->variant, variant) != 0 || original->threads > 1 || original->against_itself)
      continue;
    gate_benchmark *added = &set->benchmarks[set->count];
    *added = *original;
    if (hold_to_isa(added, isa)) set->count++;
  }
}
