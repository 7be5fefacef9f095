/* What a reader must know before believing the times of a report. The thresholds are where a share begins to
 * show beside the 1 % that medians are measured to. */
#include <math.h>
#include <stdio.h>

#include "format.h"

static const double shown_share = 0.01, switches_per_second = 20, steps_per_batch = 1000;

static void warn_of_machine(const report *report, const char *prefix, FILE *out) {
  if (!report->machine.optimised)
    fprintf(out, "%sThis build is not optimised, or has sanitizers: its times say nothing.\n", prefix);
  if (report->machine.frequency_scaling)
    fprintf(out, "%sFrequency scaling is on: times follow the clock, so compare ratios within one run.\n",
            prefix);
}

static void warn_of_device(const report *report, const char *prefix, FILE *out) {
  const attn_device_state *state = &report->machine.state;
  if (state->throttled[0])
    fprintf(out, "%s%s was slowed down by %s: %.0f of %.0f MHz at the least, %.0f degrees.\n", prefix,
            report->machine.device.name, state->throttled, state->clock_mhz, state->highest_clock_mhz,
            state->celsius);
}

void report_warnings(const report *report, const char *prefix, FILE *out) {
  const disturbance *found = &report->disturbance;
  warn_of_machine(report, prefix, out);
  warn_of_device(report, prefix, out);
  if (!(found->seconds > 0)) return;
  if (found->others_share > shown_share)
    fprintf(out, "%sOther processes took %.0f%% of the processors' time.\n", prefix,
            100 * found->others_share);
  if (found->stolen_share > shown_share)
    fprintf(out, "%sOther virtual machines took %.0f%% of the processors' time.\n", prefix,
            100 * found->stolen_share);
  const double rate = (double)found->involuntary_switches / found->seconds;
  if (rate > switches_per_second)
    fprintf(out, "%sKernels were interrupted %.0f times a second by others that wanted the processor.\n",
            prefix, rate);
  if (found->shortest_batch_seconds < steps_per_batch * found->clock_step_seconds)
    fprintf(out,
            "%sThe clock steps by %.0f ns, and the shortest repetition took %.0f ns: take more of them.\n",
            prefix, 1e9 * found->clock_step_seconds, 1e9 * found->shortest_batch_seconds);
}

/* The whole range of n values holds the median with 1 - 2^(1 - n): that is 95 % from six on. */
void report_few_repetitions(const report *report, const char *prefix, FILE *out) {
  enum { ENOUGH = 6 };
  size_t fewest = ENOUGH;
  for (size_t n = 0; n < report->result_count; n++)
    if (report->results[n].repetitions > 1 && report->results[n].repetitions < fewest)
      fewest = report->results[n].repetitions;
  if (fewest < ENOUGH)
    fprintf(
        out,
        "%s%zu repetitions are too few for a 95%% interval: the range of all holds the median with %.3g%%.\n",
        prefix, fewest, 100 * (1 - exp2(1 - (double)fewest)));
}
