/* What the system says of this machine. Everything is optional: what cannot be read is 0, empty or NaN. */
#define _GNU_SOURCE
#include "machine.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "affinity.h"
#include "system.h"

/* Set by the build: the flags that the kernels were compiled with. */
#ifndef ATTN_BUILD_FLAGS
#define ATTN_BUILD_FLAGS ""
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOWED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWED 1
#endif
#if defined(__OPTIMIZE__) && !defined(SLOWED)
enum { OPTIMISED = 1 };
#else
enum { OPTIMISED = 0 };
#endif

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void describe_processor(machine *machine) {
  char text[64];
  /* aarch64 gives no model name. */
  if (!system_value("/proc/cpuinfo", "model name", machine->cpu, sizeof machine->cpu) &&
      !system_line("/sys/firmware/devicetree/base/model", machine->cpu, sizeof machine->cpu))
    snprintf(machine->cpu, sizeof machine->cpu, "unknown processor");
  if (system_value("/proc/cpuinfo", "cpu MHz", text, sizeof text))
    machine->mhz = strtod(text, NULL);
  else if (system_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", text, sizeof text))
    machine->mhz = strtod(text, NULL) / 1000;

  int processors[AFFINITY_MOST];
  const size_t known = affinity_processors(processors);
  machine->cores = known ? (int)known : (int)sysconf(_SC_NPROCESSORS_ONLN);

  char governor[64];
  machine->frequency_scaling =
      system_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof governor) &&
      strcmp(governor, "performance") != 0;
}

/* Bytes of "32K" or "36608K"; 0 when it is neither. */
static size_t parse_cache_size(const char *text) {
  char *end;
  const unsigned long long number = strtoull(text, &end, 10);
  const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  return number > SIZE_MAX >> shift ? 0 : (size_t)number << shift;
}

static size_t or_sysconf(size_t bytes, int name) {
  const long fallback = bytes ? 0 : sysconf(name);
  return fallback > 0 ? (size_t)fallback : bytes;
}

static void describe_caches(machine *machine) {
  size_t *const levels[] = {&machine->l1_bytes, &machine->l2_bytes, &machine->l3_bytes};
  for (int index = 0; index < 8; index++) {
    static const char folder[] = "/sys/devices/system/cpu/cpu0/cache/index";
    char path[128], level[16], type[32], size[32];
    snprintf(path, sizeof path, "%s%d/level", folder, index);
    if (!system_line(path, level, sizeof level)) continue;
    snprintf(path, sizeof path, "%s%d/type", folder, index);
    if (!system_line(path, type, sizeof type) || strcmp(type, "Instruction") == 0) continue;
    snprintf(path, sizeof path, "%s%d/size", folder, index);
    if (!system_line(path, size, sizeof size)) continue;
    const long n = strtol(level, NULL, 10);
    if (n >= 1 && n <= 3) *levels[n - 1] = parse_cache_size(size);
  }
  machine->l1_bytes = or_sysconf(machine->l1_bytes, _SC_LEVEL1_DCACHE_SIZE);
  machine->l2_bytes = or_sysconf(machine->l2_bytes, _SC_LEVEL2_CACHE_SIZE);
  machine->l3_bytes = or_sysconf(machine->l3_bytes, _SC_LEVEL3_CACHE_SIZE);
}

static void describe_system(machine *machine) {
  struct utsname names;
  if (uname(&names) == 0) {
    snprintf(machine->host, sizeof machine->host, "%.*s", (int)sizeof machine->host - 1, names.nodename);
    snprintf(machine->kernel, sizeof machine->kernel, "%.40s %.60s %.20s", names.sysname, names.release,
             names.machine);
  }
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) machine->memory_bytes = (size_t)pages * (size_t)page_bytes;
  if (getloadavg(&machine->load_average, 1) != 1) machine->load_average = NAN;
}

void machine_describe(machine *machine) {
  memset(machine, 0, sizeof *machine);
  snprintf(machine->compiler, sizeof machine->compiler, "%s", COMPILER);
  snprintf(machine->flags, sizeof machine->flags, "%s", ATTN_BUILD_FLAGS);
  machine->optimised = OPTIMISED;
  machine->state = (attn_device_state){NAN, NAN, NAN, ""};
  describe_processor(machine);
  describe_caches(machine);
  describe_system(machine);
}

/* ---- a device ---- */

void machine_take_device(machine *machine, const attn_device *device) {
  machine->measured_on = device;
  device->describe(&machine->device);
  machine_watch_device(machine);
}

void machine_watch_device(machine *machine) {
  attn_device_state *kept = &machine->state, now;
  if (!machine->measured_on) return;
  machine->measured_on->look(&now);
  kept->highest_clock_mhz = now.highest_clock_mhz;
  kept->clock_mhz = fmin(kept->clock_mhz, now.clock_mhz);
  kept->celsius = fmax(kept->celsius, now.celsius);
  if (!kept->throttled[0]) memcpy(kept->throttled, now.throttled, sizeof kept->throttled);
}

/* ---- printing ---- */

static void print_size(size_t bytes, FILE *out) {
  if (bytes == 0)
    fprintf(out, "unknown");
  else if (bytes < (size_t)1 << 20)
    fprintf(out, "%.4g KiB", (double)bytes / 0x1p10);
  else if (bytes < (size_t)1 << 30)
    fprintf(out, "%.4g MiB", (double)bytes / 0x1p20);
  else
    fprintf(out, "%.4g GiB", (double)bytes / 0x1p30);
}

static void print_device(const machine *machine, FILE *out) {
  const attn_device_facts *is = &machine->device;
  const attn_device_state *now = &machine->state;
  fprintf(out, "device      %s", is->name);
  if (is->capability) fprintf(out, ", sm_%d", is->capability);
  fprintf(out, ", %d multiprocessor%s\nmemory      ", is->multiprocessors,
          is->multiprocessors == 1 ? "" : "s");
  print_size(is->memory_bytes, out);
  fprintf(out, ", L2 ");
  print_size(is->l2_bytes, out);
  fprintf(out, ", shared by a block ");
  print_size(is->shared_bytes, out);
  if (is->driver)
    fprintf(out, "\nCUDA        %d.%d in the driver, %d.%d in the runtime", is->driver / 1000,
            is->driver % 1000 / 10, is->runtime / 1000, is->runtime % 1000 / 10);
  if (isfinite(now->clock_mhz))
    fprintf(out, "\nclock       %.0f of %.0f MHz, %.0f degrees%s%s", now->clock_mhz, now->highest_clock_mhz,
            now->celsius, now->throttled[0] ? ", held down by " : "", now->throttled);
  fprintf(out, "\n");
  if (!machine->measured_on->peak_count)
    fprintf(out, "No peak is measured: how fast this is says nothing of a device.\n");
}

static void print_rate(const machine_rate *rate, const char *unit, FILE *out) {
  fprintf(out, "  %-12s %9.4g %s  [%.4g, %.4g]", rate->name, rate->median * 1e-9, unit, rate->low * 1e-9,
          rate->high * 1e-9);
  if (rate->working_set_bytes) {
    fprintf(out, "  of ");
    print_size(rate->working_set_bytes, out);
  }
  fprintf(out, "\n");
}

static void print_system(const machine *machine, FILE *out) {
  fprintf(out, "processor   %s, %d cores, %.0f MHz\n", machine->cpu, machine->cores, machine->mhz);
  const size_t sizes[] = {machine->l1_bytes, machine->l2_bytes, machine->l3_bytes, machine->memory_bytes};
  static const char *const names[] = {"L1 data ", ", L2 ", ", L3 ", "\nmemory      "};
  fprintf(out, "caches      ");
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    fprintf(out, "%s", names[n]);
    print_size(sizes[n], out);
  }
  fprintf(out, "\nsystem      %s, %s\n", machine->host, machine->kernel);
  fprintf(out, "compiler    %s%s%s\n", machine->compiler, *machine->flags ? ", " : "", machine->flags);
  if (isfinite(machine->load_average)) fprintf(out, "load        %.2f\n", machine->load_average);
  if (machine->frequency_scaling)
    fprintf(out, "The frequency governor is not 'performance': times will vary with it.\n");
}

void machine_print(const machine *machine, FILE *out) {
  (machine->measured_on ? print_device : print_system)(machine, out);
  if (machine->peak_count == 0) return;
  if (machine->measured_on)
    fprintf(out, "\nmultiply-adds, median [95 %% interval]\n");
  else
    fprintf(out, "\nmultiply-adds with %d thread%s, median [95 %% interval]\n", machine->threads,
            machine->threads == 1 ? "" : "s");
  for (size_t n = 0; n < machine->peak_count; n++) print_rate(&machine->peaks[n], "GFLOP/s", out);
  if (machine->sgemm.median > 0) print_rate(&machine->sgemm, "GFLOP/s", out);
  for (size_t n = 0; n < machine->tanh_count; n++) print_rate(&machine->tanhs[n], "G/s", out);
  if (machine->read_count) fprintf(out, "\nreads\n");
  for (size_t n = 0; n < machine->read_count; n++) print_rate(&machine->reads[n], "GB/s", out);
}
