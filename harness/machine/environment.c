/* See environment.h. A fact is a row of the table at the end, and a function that finds it. */
#define _GNU_SOURCE
#include "environment.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <omp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef ATTN_X86_64
#include <cpuid.h>
#endif
#ifdef ATTN_HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "affinity.h"
#include "base/version.h"
#include "system.h"

typedef char fact_text[ENVIRONMENT_TEXT_BYTES];

static const char unreadable[] = "not readable";

/* Adds to what is there; what does not fit is left out. */
static __attribute__((format(printf, 2, 3))) void add(fact_text text, const char *format, ...) {
  const size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, ENVIRONMENT_TEXT_BYTES - used, format, arguments);
  va_end(arguments);
}

/* ---- the program ---- */

static void find_commit(fact_text text) { add(text, "%s", version_commit()); }

/* In single quotes where a shell would take a letter for more than itself. */
static void add_word(fact_text text, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (*text) add(text, " ");
  if (*word && word[strspn(word, plain)] == '\0') {
    add(text, "%s", word);
    return;
  }
  add(text, "'");
  for (; *word; word++)
    if (*word == '\'')
      add(text, "'\\''");
    else
      add(text, "%c", *word);
  add(text, "'");
}

static void find_command_line(fact_text text) {
  FILE *file = fopen("/proc/self/cmdline", "r");
  char *word = NULL;
  size_t size = 0;
  while (file && getdelim(&word, &size, '\0', file) > 0) add_word(text, word);
  free(word);
  if (file) fclose(file);
  if (!*text) add(text, "%s", unreadable);
}

/* ---- its processors and threads ---- */

static void find_affinity(fact_text text) { affinity_name(text, ENVIRONMENT_TEXT_BYTES); }

static void find_pinned(fact_text text) {
  char list[ENVIRONMENT_TEXT_BYTES - 64];
  affinity_name(list, sizeof list);
  if (affinity_is_pinned())
    add(text, "each thread to one processor, in the order %s", list);
  else
    add(text, "no");
}

static void find_openmp_runtime(fact_text text) {
  void *function = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
  Dl_info found;
  char *path = function && dladdr(function, &found) ? realpath(found.dli_fname, NULL) : NULL;
  add(text, "%s, OpenMP %d", path ? strrchr(path, '/') + 1 : unreadable, _OPENMP);
  free(path);
}

static void find_openmp_threads(fact_text text) { add(text, "%d", omp_get_max_threads()); }

/* What is set of what says how threads are started, placed and wait. */
static void find_openmp_settings(fact_text text) {
  static const char *const prefixes[] = {"OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_"};
  for (char **setting = environ; *setting; setting++)
    for (size_t n = 0; n < sizeof prefixes / sizeof *prefixes; n++)
      if (strncmp(*setting, prefixes[n], strlen(prefixes[n])) == 0) add_word(text, *setting);
  if (!*text) add(text, "none set");
}

/* Each of the processors that this process may use; a name once. */
static void find_governor(fact_text text) {
  int processors[AFFINITY_MOST];
  const size_t count = affinity_processors(processors);
  for (size_t n = 0; n < count; n++) {
    char path[96], name[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", processors[n]);
    if (system_line(path, name, sizeof name) && !strstr(text, name))
      add(text, "%s%s", *text ? ", " : "", name);
  }
  if (!*text) add(text, "%s", unreadable);
}

static void find_turbo(fact_text text) {
  char state[16];
  if (system_line("/sys/devices/system/cpu/intel_pstate/no_turbo", state, sizeof state))
    add(text, *state == '0' ? "on" : "off");
  else if (system_line("/sys/devices/system/cpu/cpufreq/boost", state, sizeof state))
    add(text, *state == '1' ? "on" : "off");
  else
    add(text, "%s", unreadable);
}

/* ---- the machine ---- */

/* aarch64 has other words for it. */
static void find_in_cpuinfo(fact_text text, const char *key, const char *other) {
  if (!system_value("/proc/cpuinfo", key, text, ENVIRONMENT_TEXT_BYTES) &&
      !system_value("/proc/cpuinfo", other, text, ENVIRONMENT_TEXT_BYTES))
    add(text, "%s", unreadable);
}

static void find_family(fact_text text) { find_in_cpuinfo(text, "cpu family", "CPU implementer"); }
static void find_model(fact_text text) { find_in_cpuinfo(text, "model", "CPU part"); }
static void find_stepping(fact_text text) { find_in_cpuinfo(text, "stepping", "CPU revision"); }
static void find_microcode(fact_text text) { find_in_cpuinfo(text, "microcode", "CPU variant"); }

/* Its own name, such as KVMKVMKVM; false where there is none or the processor cannot say. */
static bool name_hypervisor(char name[13]) {
  memset(name, 0, 13);
#ifdef ATTN_X86_64
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31)) return false;
  __cpuid(0x40000000, a, b, c, d);
  memcpy(name, &b, 4);
  memcpy(name + 4, &c, 4);
  memcpy(name + 8, &d, 4);
#endif
  return name[0] != '\0';
}

static void find_hypervisor(fact_text text) {
  char name[13], vendor[64] = "", product[64] = "";
  if (!name_hypervisor(name)) {
    char type[64];
    if (system_line("/sys/hypervisor/type", type, sizeof type))
      add(text, "%s", type);
    else
      add(text, "none seen");
    return;
  }
  add(text, "%s", name);
  if (system_line("/sys/class/dmi/id/sys_vendor", vendor, sizeof vendor) &&
      system_line("/sys/class/dmi/id/product_name", product, sizeof product))
    add(text, " (%s %s)", vendor, product);
}

/* ---- libraries ---- */

static void find_libc(fact_text text) { add(text, "glibc %s", gnu_get_libc_version()); }

static void find_blas(fact_text text) {
#ifdef ATTN_HAVE_OPENBLAS
  add(text, "%s, %s", openblas_get_config(), openblas_get_corename());
#else
  add(text, "none in this build");
#endif
}

/* ---- all of them ---- */

static const struct fact {
  const char *key;
  void (*find)(fact_text text);
} table[ENVIRONMENT_FACTS] = {
    {"attnbench_commit", find_commit},
    {"command_line", find_command_line},
    {"affinity", find_affinity},
    {"pinned", find_pinned},
    {"openmp_runtime", find_openmp_runtime},
    {"openmp_threads", find_openmp_threads},
    {"openmp_settings", find_openmp_settings},
    {"governor", find_governor},
    {"turbo", find_turbo},
    {"cpu_family", find_family},
    {"cpu_model", find_model},
    {"cpu_stepping", find_stepping},
    {"cpu_microcode", find_microcode},
    {"hypervisor", find_hypervisor},
    {"libc", find_libc},
    {"blas", find_blas},
};

const char *environment_key(size_t n) { return table[n].key; }

void environment_describe(environment *environment) {
  memset(environment, 0, sizeof *environment);
  for (size_t n = 0; n < ENVIRONMENT_FACTS; n++) table[n].find(environment->facts[n]);
}

const char *environment_fact(const environment *environment, const char *key) {
  for (size_t n = 0; n < ENVIRONMENT_FACTS; n++)
    if (strcmp(table[n].key, key) == 0) return environment->facts[n];
  return NULL;
}
