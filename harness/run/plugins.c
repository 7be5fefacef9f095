/* Loading variants. Ours and everybody else's come from shared objects that export attn_plugin, and pass
 * the same checks. Objects stay loaded until the process ends: their threads may outlive a list. */
#include "plugins.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complaint.h"
#include "base/parts.h"
#include "base/text.h"
#include "device.h"
#include "float_mode.h"
#include "reference/reference.h"
#include "team.h"
#include "version1.h"

/* The table of a shared object, or NULL. Its device is noted where it has one. */
static const attn_table *load(const char *path, complaint to) {
  char file[4096];
  /* Without a slash, dlopen would look in the library path and not in the current folder. */
  int length = snprintf(file, sizeof file, "%s%s", strchr(path, '/') ? "" : "./", path);
  if (length < 0 || (size_t)length >= sizeof file) {
    wrong(to, "the path of a plugin is longer than %zu bytes", sizeof file - 1);
    return NULL;
  }
  void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    wrong(to, "cannot load plugin %s: %s", path, dlerror());
    return NULL;
  }
  const attn_table *table = dlsym(object, "attn_plugin");
  if (!table) {
    wrong(to, "plugin %s exports no attn_plugin: it must define 'const attn_table attn_plugin'", path);
    dlclose(object);
    return NULL;
  }
  const attn_device *device = dlsym(object, "attn_plugin_device");
  char why[128];
  if (device && !device_register(table, device, why, sizeof why)) {
    wrong(to, "plugin %s cannot be taken: %s", path, why);
    return NULL;
  }
  const attn_team *team = dlsym(object, "attn_plugin_team");
  if (team && !team_register(table, team, why, sizeof why)) {
    wrong(to, "plugin %s cannot be taken: %s", path, why);
    return NULL;
  }
  return table;
}

/* The same in the floating-point mode that there was. */
static const attn_table *load_in_mode(const char *path, complaint to) {
  const float_mode mode = float_mode_now();
  const attn_table *table = load(path, to);
  const char *changed = float_mode_put_back(&mode);
  if (changed)
    fprintf(stderr,
            "attnbench: plugin %s left %s as it was loaded, which is undone: the mode is the process's "
            "(gcc's -Ofast "
            "and -ffast-math do so where they link)\n",
            path, changed);
  return table;
}

static bool is_one_word(const char *name) {
  return name && *name && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static bool check_variant(const variant_list *list, const attn_variant *variant, const char *path,
                          complaint to) {
  if (!variant) return wrong(to, "plugin %s has a NULL in its table of variants", path);
  if (!is_one_word(variant->name))
    return wrong(to, "plugin %s names a variant '%s': a name is one word of a-z, 0-9 and _", path,
                 variant->name ? variant->name : "(NULL)");
  if (strlen(variant->name) >= VARIANT_NAME_BYTES)
    return wrong(to, "plugin %s names a variant '%s': a name has at most %d letters", path, variant->name,
                 VARIANT_NAME_BYTES - 1);
  if (!variant->run) return wrong(to, "variant '%s' of plugin %s has no run function", variant->name, path);
  if (!variant->summary) return wrong(to, "variant '%s' of plugin %s has no summary", variant->name, path);
  if (!reference_function_of(variant->function))
    return wrong(to,
                 "variant '%s' of plugin %s computes function %d: there are %d (softmax), %d (linear), %d "
                 "(softmax, backward), %d (linear, backward) and %d (layer)",
                 variant->name, path, (int)variant->function, ATTN_SOFTMAX, ATTN_LINEAR,
                 ATTN_SOFTMAX_BACKWARD, ATTN_LINEAR_BACKWARD, ATTN_LAYER);
  if (variant->place == ATTN_TEAM && !team_of(variant))
    return wrong(to,
                 "variant '%s' of plugin %s works in a team, and the plugin has no attn_plugin_team: link "
                 "build/team/runtime.o",
                 variant->name, path);
  if (variant->place == ATTN_TEAM && !list->team)
    return wrong(to, "variant '%s' of plugin %s works in a team of processes: mpirun -n 4 attnbench ...",
                 variant->name, path);
  if (variant->place != ATTN_HOST && variant->place != ATTN_CUDA && variant->place != ATTN_TEAM)
    return wrong(to,
                 "variant '%s' of plugin %s has its data in place %d: there are %d (the host) and %d (CUDA)",
                 variant->name, path, (int)variant->place, ATTN_HOST, ATTN_CUDA);
  if (variant->place == ATTN_CUDA && !device_of(variant))
    return wrong(
        to,
        "variant '%s' of plugin %s computes on a device, and the plugin has no attn_plugin_device: link "
        "build/cuda/device.o, or for g++ build/emulated/device.o",
        variant->name, path);
  if (!variant->types)
    return wrong(to, "variant '%s' of plugin %s has no data type: types is 1 << ATTN_FLOAT32, or more bits",
                 variant->name, path);
  for (size_t n = 0; n < list->count; n++)
    if (strcmp(list->variants[n]->name, variant->name) == 0)
      return wrong(to, "variant '%s' of plugin %s: the name is taken by %s%s; give it another one",
                   variant->name, path, list->origins[n] ? "plugin " : "a variant of our own",
                   list->origins[n] ? list->origins[n] : "");
  return true;
}

static bool check_table(const attn_table *table, const char *path, complaint to) {
  if (table->interface_version != ATTN_INTERFACE_VERSION)
    return wrong(to, "plugin %s was built for interface version %u, this is version %d: rebuild it", path,
                 table->interface_version, ATTN_INTERFACE_VERSION);
  if (table->count == 0 || !table->variants) return wrong(to, "plugin %s has no variants", path);
  return true;
}

/* They are arguments of commands that are printed. */
static bool is_isa_name(const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
  const size_t length = strlen(name);
  return length > 0 && length < ISA_NAME_BYTES && name[0] != '-' && strspn(name, letters) == length;
}

static bool check_instruction_sets(const attn_table *table, const char *path, complaint to) {
  const char *const *sets = table->instruction_sets ? table->instruction_sets() : NULL;
  if (table->instruction_sets && !sets) return wrong(to, "plugin %s gives no list of instruction sets", path);
  for (size_t n = 0; sets && sets[n]; n++)
    if (!is_isa_name(sets[n]))
      return wrong(to,
                   "plugin %s names an instruction set '%s': a name has 1 to %d letters, digits and _ . + -",
                   path, sets[n], ISA_NAME_BYTES - 1);
  return true;
}

/* Room for more entries; the list is unchanged when memory is short. */
static bool reserve(variant_list *list, size_t more) {
  const attn_variant **variants = realloc(list->variants, (list->count + more) * sizeof *variants);
  if (!variants) return false;
  list->variants = variants;
  const char **origins = realloc(list->origins, (list->count + more) * sizeof *origins);
  if (!origins) return false;
  list->origins = origins;
  const attn_table **tables = realloc(list->tables, (list->table_count + 1) * sizeof *tables);
  if (!tables) return false;
  list->tables = tables;
  return true;
}

/* path: for loading and messages; origin: what the list keeps. */
static const attn_table *add(variant_list *list, const char *path, const char *origin, complaint to) {
  const attn_table *table = load_in_mode(path, to);
  if (table && table->interface_version == 1 && !(table = version1_adapt(table))) {
    wrong(to, "no memory for the variants of plugin %s", path);
    return NULL;
  }
  if (!table || !check_table(table, path, to) || !check_instruction_sets(table, path, to)) return NULL;
  if (!reserve(list, table->count)) {
    wrong(to, "no memory for the variants of plugin %s", path);
    return NULL;
  }
  const size_t count = list->count;
  for (uint32_t n = 0; n < table->count; n++) {
    if (!check_variant(list, table->variants[n], path, to)) {
      list->count = count;
      return NULL;
    }
    list->variants[list->count] = table->variants[n];
    list->origins[list->count++] = origin;
  }
  list->tables[list->table_count++] = table;
  return table;
}

bool variant_list_add(variant_list *list, const char *path, char *why, size_t why_size) {
  return add(list, path, path, (complaint){why, why_size}) != NULL;
}

bool variant_list_add_own(variant_list *list, char *why, size_t why_size) {
  const complaint to = {why, why_size};
  char path[PARTS_PATH_BYTES];
  if (!parts_find("attnbench_variants.so", path))
    return wrong(to, "cannot find attnbench_variants.so: it lies beside the program or in ../lib/attnbench");
  list->own = add(list, path, NULL, to);
  return list->own != NULL;
}

static bool no_team(complaint to) {
  return wrong(
      to,
      "attnbench_mpi.so, whose variants work in a team of processes, was not built: it takes MPI (on Debian: "
      "openmpi-bin libopenmpi-dev), and `make`");
}

const attn_table *variant_list_peek_team(char *why, size_t why_size) {
  char path[PARTS_PATH_BYTES];
  if (!parts_find("attnbench_mpi.so", path)) {
    no_team((complaint){why, why_size});
    return NULL;
  }
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!object) wrong((complaint){why, why_size}, "cannot load %s: %s", path, dlerror());
  return object ? dlsym(object, "attn_plugin") : NULL;
}

bool variant_list_add_team(variant_list *list, char *why, size_t why_size) {
  char path[PARTS_PATH_BYTES];
  list->team = true;
  if (!parts_find("attnbench_mpi.so", path)) return no_team((complaint){why, why_size});
  list->own = add(list, path, NULL, (complaint){why, why_size});
  return list->own != NULL;
}

bool variant_list_add_device(variant_list *list, const char *device, char *why, size_t why_size) {
  const complaint to = {why, why_size};
  const bool emulated = strcmp(device, "emu") == 0;
  const char *end = "";
  int64_t index = 0;
  char path[PARTS_PATH_BYTES];
  if (!emulated && strcmp(device, "cuda") != 0 &&
      (strncmp(device, "cuda:", 5) != 0 || !text_integer(device + 5, 0, 1023, &end, &index) || *end))
    return wrong(to, "--device takes emu, or cuda:0 and so on, not '%s'", device);
  if (!parts_find(emulated ? "attnbench_emu.so" : "attnbench_cuda.so", path))
    return wrong(to, "--device %s: %s was not built: %s", device, path,
                 emulated ? "it takes a C++ compiler, and `make`"
                          : "it takes nvcc, and `make`; --device emu needs neither it nor a GPU");
  list->own = add(list, path, NULL, to);
  return list->own && device_choose(device_of(list->own->variants[0]), (int)index, why, why_size);
}

const attn_variant *variant_list_find(const variant_list *list, const char *name) {
  for (size_t n = 0; n < list->count; n++)
    if (strcmp(list->variants[n]->name, name) == 0) return list->variants[n];
  return NULL;
}

const char *variant_list_origin(const variant_list *list, const attn_variant *variant) {
  for (size_t n = 0; n < list->count; n++)
    if (list->variants[n] == variant) return list->origins[n];
  return NULL;
}

void variant_list_destroy(variant_list *list) {
  free(list->variants);
  free(list->origins);
  free(list->tables);
  *list = (variant_list){0};
}

const char *const *variant_list_instruction_sets(const variant_list *list) {
  static const char *const none[] = {NULL};
  return list->own && list->own->instruction_sets ? list->own->instruction_sets() : none;
}

const char *const *variant_list_instruction_sets_of(const variant_list *list, const attn_variant *variant) {
  static const char *const none[] = {NULL};
  for (size_t t = 0; t < list->table_count; t++)
    for (uint32_t n = 0; n < list->tables[t]->count; n++)
      if (list->tables[t]->variants[n] == variant)
        return list->tables[t]->instruction_sets ? list->tables[t]->instruction_sets() : none;
  return none;
}

const char *isa_among(const char *const *sets, const char *isa) {
  for (; isa && sets && *sets; sets++)
    if (strcmp(*sets, isa) == 0) return *sets;
  return NULL;
}

const char *variant_list_find_isa(const variant_list *list, const char *name) {
  const char *found = NULL;
  for (size_t t = 0; t < list->table_count && !found; t++)
    if (list->tables[t]->instruction_sets) found = isa_among(list->tables[t]->instruction_sets(), name);
  return found;
}
