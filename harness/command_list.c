/* list and machine: what there is to run, and what it runs on. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "commands.h"
#include "machine/machine.h"
#include "problem/workload.h"
#include "reference/reference.h"
#include "run/device.h"

void command_list_presets(FILE *out) {
  for (const preset *preset = preset_list(); preset->name; preset++) {
    char shape[WORKLOAD_NAME_BYTES];
    workload_name(&preset->workload, shape);
    fprintf(out, "%-20s %s\n%-20s %s\n", preset->name, preset->summary, "", shape);
  }
}

/* "O(1)", "O(T)", "O(T^2)". */
static void describe_growth(char text[16], int exponent) {
  if (exponent < 2)
    snprintf(text, 16, exponent == 1 ? "O(T)" : "O(1)");
  else
    snprintf(text, 16, "O(T^%d)", exponent);
}

/* Those of a team, or all others. */
static void print_variants(const attn_variant *const *variants, size_t count, bool of_team) {
  for (size_t i = 0; i < count; i++) {
    const attn_variant *variant = variants[i];
    char time[16], workspace[16];
    if ((variant->place == ATTN_TEAM) != of_team) continue;
    describe_growth(time, variant->time_exponent);
    describe_growth(workspace, variant->workspace_exponent);
    printf("%-*s %-15s %-10s %-10s %s\n", VARIANT_COLUMN, variant->name,
           reference_function_of(variant->function)->name, time, workspace, variant->summary);
  }
}

static const attn_variant *first_of_team(const variant_list *list) {
  for (size_t n = 0; n < list->count; n++)
    if (list->variants[n]->place == ATTN_TEAM) return list->variants[n];
  return NULL;
}

/* Ours where they were built, but beside a device, and those of plugins. */
static void print_team(const variant_list *list, bool ours) {
  char why[WHY_BYTES];
  const attn_table *team = ours ? variant_list_peek_team(why, sizeof why) : NULL;
  const attn_variant *first = team ? team->variants[0] : first_of_team(list);
  if (!first) return;
  printf("\nin a team of processes: mpirun -n 4 attnbench verify --variant %s\n", first->name);
  if (team) print_variants(team->variants, team->count, true);
  print_variants(list->variants, list->count, true);
}

int run_list(const variant_list *list) {
  printf("%-*s %-15s %-10s %-10s %s\n", VARIANT_COLUMN, "variant", "function", "time", "workspace", "");
  print_variants(list->variants, list->count, false);
  const attn_device *device = device_of(list->own->variants[0]);
  if (device) printf("\ndevice %s: %s\n", device->kind, device_words(device));
  const bool is_emulated = device && strcmp(device->kind, "emu") == 0;
  printf(is_emulated ? "\nschedules, taken as instruction sets:" : "\ninstruction sets, slowest first:");
  const char *const *sets = variant_list_instruction_sets(list);
  for (size_t i = 0; sets[i]; i++) printf(" %s", sets[i]);
  printf("\n");
  print_team(list, !device);
  printf("\npresets\n");
  command_list_presets(stdout);
  return STATUS_GOOD;
}

int run_machine(const options *options) {
  machine machine;
  machine_describe(&machine);
  if (options->device) {
    char why[WHY_BYTES];
    variant_list list = {0};
    if (!variant_list_add_device(&list, options->device, why, sizeof why)) return command_complain(why);
    machine_take_device(&machine, device_of(list.own->variants[0]));
    variant_list_destroy(&list);
  }
  machine_measure(&machine, (int)options->threads, 3);
  machine_print(&machine, stdout);
  return STATUS_GOOD;
}
