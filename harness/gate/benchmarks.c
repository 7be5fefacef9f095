/* What the gate measures: for each variant a few shapes that use different parts of a kernel, small enough
 * that one run takes milliseconds. Long sequences are for `attnbench bench`; what makes a kernel slower
 * there shows here, or in the growth of its instructions. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "measure/sweep.h"

enum { HEADS = 4, WINDOW = 64, CONTROLS = 3 };

static const struct shape {
  int64_t query_length, key_length, head_dim;
  bool causal, decoding, team;
  attn_type type; /* ATTN_ABSENT: float32 */
} shapes[] = {
    {256, 256, 64, .causal = false}, /* whole tiles */
    {60, 60, 64, .causal = false},   /* the overhead of a call, and tiles that are not whole */
    {200, 200, 128, .causal = true}, /* a causal edge, wide heads */
    {1, 2048, 64, .causal = true, .decoding = true}, /* one new token against a cache */
    {256, 256, 64, .team = true},                    /* shared among threads */
    {256, 256, 64, .type = ATTN_BFLOAT16},           /* other products, where the processor has them */
    {1, 2048, 64, .causal = true, .decoding = true, .type = ATTN_BFLOAT16},
    {60, 60, 64, .type = ATTN_FLOAT16}, /* conversions */
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
  w->query_heads = HEADS;
  w->kv_heads = sweep_kv_heads(variant, HEADS);
  w->query_length = windowed ? 2 * shape->query_length : shape->query_length;
  w->key_length = windowed ? w->query_length : shape->key_length;
  w->head_dim = w->value_dim = shape->head_dim;
  w->type = shape->type;
  if (windowed) w->left = WINDOW;
  if (windowed || shape->causal) w->right = 0;
  if (shape->decoding) w->offset = w->key_length - w->query_length;
  workload_pose_to(w, variant->function);
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

/* False where its name is too long, or there are too many. */
static bool name_benchmark(gate_benchmark *benchmark, const attn_variant *variant, const char *problem) {
  const size_t problem_size = sizeof benchmark->problem, name_size = sizeof benchmark->name;
  snprintf(benchmark->variant, sizeof benchmark->variant, "%s", variant->name);
  return snprintf(benchmark->problem, problem_size, "%s", problem) < (int)problem_size &&
         snprintf(benchmark->name, name_size, "%s%s/%s/threads:%d",
                  benchmark->against_itself ? "control:" : "", variant->name, problem,
                  benchmark->threads) < (int)name_size;
}

/* What has no room is counted, so that it can be said. */
static void append(gate_set *set, const gate_benchmark *benchmark, bool named) {
  if (named && set->count < GATE_MAX_BENCHMARKS) {
    set->benchmarks[set->count++] = *benchmark;
  } else {
    set->left_out++;
    set->left_out_changed += !gate_is_control(benchmark);
  }
}

static void add(gate_set *set, const attn_variant *variant, const workload *w, int threads,
                bool against_itself, const gate_options *options) {
  char problem[WORKLOAD_NAME_BYTES];
  gate_benchmark benchmark = {.isa = "-",
                              .threads = threads,
                              .against_itself = against_itself,
                              .identical = gate_is_identical(options, variant->name)};
  workload_name(w, problem);
  bool named = name_benchmark(&benchmark, variant, problem);
  if (named && asked_isa(options) && !against_itself) named = hold_to_isa(&benchmark, asked_isa(options));
  if (options->only && !against_itself && !strstr(benchmark.name, options->only)) return;
  append(set, &benchmark, named);
}

/* Where the usual shapes are posed: how many of them both take. */
static size_t add_usual(gate_set *set, const gate_pair *pair, bool itself, const gate_options *options) {
  const int team = team_size();
  size_t taken = 0;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    workload w;
    if ((shapes[s].team && team < 2) || !workload_for(pair->variant, &shapes[s], &w)) continue;
    if (!gate_takes(pair, &w)) continue;
    add(set, pair->variant, &w, shapes[s].team ? team : 1, false, options);
    if (itself && taken++ == 0) add(set, pair->variant, &w, 1, true, options);
    taken += !itself;
  }
  return taken;
}

/* What is asked for, or what was found for it, half as long too. */
static size_t add_other_problems(gate_set *set, const gate_pair *pair, bool itself,
                                 const gate_options *options) {
  const int team = team_size();
  workload problems[GATE_MAX_PROBLEMS];
  const size_t count = gate_other_problems(pair, options, problems);
  for (size_t n = 0; n < count; n++) {
    add(set, pair->variant, &problems[n], 1, false, options);
    if (team > 1) add(set, pair->variant, &problems[n], team, false, options);
    if (itself && n == 0) add(set, pair->variant, &problems[n], 1, true, options);
    if (options->problem_count == 0 && gate_halve(pair, &problems[n]))
      add(set, pair->variant, &problems[n], 1, false, options);
  }
  return count;
}

/* The benchmarks of one variant that both have; returns whether the base is held to itself in one of them. */
static bool add_variant(gate_set *set, const gate_pair *pair, bool itself, const gate_options *options) {
  size_t taken = options->problem_count ? 0 : add_usual(set, pair, itself, options);
  if (taken == 0) taken = add_other_problems(set, pair, itself, options);
  return itself && taken > 0;
}

void gate_set_fill(gate_set *set, const variant_list *base, const variant_list *head,
                   const gate_options *options) {
  size_t controls = 0;
  memset(set, 0, sizeof *set);
  for (size_t n = 0; n < base->count; n++)
    set->base_only += !variant_list_find(head, base->variants[n]->name);
  if (asked_isa(options) && !has_isa(head, asked_isa(options))) return;
  for (int identical = 0; identical < 2; identical++)
    for (size_t n = 0; n < head->count; n++) {
      const attn_variant *variant = head->variants[n], *before = variant_list_find(base, variant->name);
      if (gate_is_identical(options, variant->name) != (identical != 0)) continue;
      if (!before) {
        set->head_only++;
        continue;
      }
      set->common++;
      const bool itself = controls < CONTROLS && (set->common % 3 == 1 || head->count <= CONTROLS);
      const gate_pair pair = {variant, before};
      controls += add_variant(set, &pair, itself, options);
    }
}

void gate_set_add_isa(gate_set *set, const char *variant, const char *isa) {
  const size_t count = set->count;
  for (size_t n = 0; n < count; n++) {
    gate_benchmark added = set->benchmarks[n];
    if (strcmp(added.variant, variant) != 0 || added.threads > 1 || added.against_itself) continue;
    if (strcmp(isa, "-") == 0) {
      set->benchmarks[n].is_excuse = true;
      continue;
    }
    const bool named = hold_to_isa(&added, isa);
    append(set, &added, named);
  }
}
