/* See simulated_sweeps.h. */
#include "tests/measure/simulated_sweeps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "measure/complexity.h"

double simulated_uniform(uint64_t *place, double most) {
  return most * (double)(random_bits(20261121, (*place)++) >> 11) * 0x1p-53;
}

double simulated_noise(uint64_t *place) {
  double sum = -6;
  for (int n = 0; n < 12; n++) sum += simulated_uniform(place, 1);
  return sum;
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  if (!memory) abort();
  return memory;
}

void simulated_create(report *report, const simulated_family *families, size_t count, const int64_t *lengths,
                      size_t length_count, size_t most_passes) {
  *report = (struct report){.result_count = count * length_count};
  report->results = allocate(report->result_count, sizeof *report->results);
  for (size_t n = 0; n < report->result_count; n++) {
    result *result = &report->results[n];
    const size_t family = n / length_count;
    const char *name = families[family].name ? families[family].name : "simulated";
    snprintf(result->variant, sizeof result->variant, "%s", name);
    snprintf(result->family, sizeof result->family, "%s/full/B:1/H:4/Hkv:4/D:64", name);
    snprintf(result->name, sizeof result->name, "%.200s/T:%lld", result->family,
             (long long)lengths[n % length_count]);
    result->workload = workload_default();
    result->workload.query_length = result->workload.key_length = lengths[n % length_count];
    result->flops = workload_flops(&result->workload);
    result->family_index = (int)family;
    result->seconds = allocate(most_passes, sizeof *result->seconds);
    result->cpu_seconds = allocate(most_passes, sizeof *result->cpu_seconds);
  }
}

static double seconds_of(const simulated_family *family, double length) {
  double work = pow(length, family->power) * (family->logarithmic ? log(length) : 1);
  work += family->constant > 0 ? pow(family->constant, family->power) : 0;
  if (family->step > 0 && length >= family->step_at) work *= 1 + family->step;
  return 1e-9 * work * (family->factor > 0 ? family->factor : 1);
}

/* The speed forgets itself within 2 to 100 repetitions. */
void simulated_draw(report *report, const simulated_family *families, size_t passes, double noise,
                    uint64_t *place) {
  const double keeps = exp(-1 / (2 + simulated_uniform(place, 98))), changes = sqrt(1 - keeps * keeps);
  size_t *order = allocate(report->result_count, sizeof *order);
  for (size_t n = 0; n < report->result_count; n++) order[n] = n;
  double speed = simulated_noise(place);
  for (size_t pass = 0; pass < passes; pass++)
    for (size_t n = report->result_count; n-- > 0;) {
      const size_t other = (size_t)simulated_uniform(place, (double)n + 1), chosen = order[other];
      order[other] = order[n];
      order[n] = chosen;
      result *result = &report->results[chosen];
      const simulated_family *family = &families[result->family_index];
      speed = keeps * speed + changes * simulated_noise(place);
      double seconds = seconds_of(family, (double)result_length(result));
      seconds *= exp(family->drift * speed + noise * simulated_noise(place));
      if (simulated_uniform(place, 1) < family->slow) seconds *= 3;
      result->seconds[pass] = seconds;
    }
  for (size_t n = 0; n < report->result_count; n++) {
    result *result = &report->results[n];
    result->repetitions = passes;
    result->seconds_median = statistics_median_interval(result->seconds, passes, 0.95);
    result->flops_per_second = result->flops / result->seconds_median.estimate;
  }
  free(order);
}

static void declare(const char *variant, int *time_exponent, int *workspace_exponent, void *context) {
  (void)variant;
  *time_exponent = *(const int *)context;
  *workspace_exponent = 1;
}

void simulated_fit(report *report, int declared) {
  free(report->growths);
  complexity_fit(report, declare, &declared);
}
