/* What this machine is and what it can do at best, measured in the run that uses it. */
#ifndef ATTN_HARNESS_MACHINE_H
#define ATTN_HARNESS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "variants/device.h"

/* A rate over interleaved repetitions: the median and its 95 % interval. */
typedef struct machine_rate {
  char name[32];            /* "avx512", "sgemm", "read L1", "read memory" */
  double median, low, high; /* FLOP/s or bytes/s */
  size_t working_set_bytes; /* of a bandwidth; else 0 */
  double fastest;           /* of all repetitions that were ever made */
  attn_type type;           /* of what is multiplied; else ATTN_ABSENT */
} machine_rate;

/* More than this was no rate of the machine's. Other load only lowers what is measured, so a true rate lies above the
 * fastest repetition only where all were held up: by how much is not known, and is taken to be no more than the fastest
 * lies above the median, which on a quiet machine is next to nothing. */
double machine_most(const machine_rate *rate);

enum { MACHINE_MAX_RATES = 8 };

typedef struct machine {
  char cpu[128], compiler[128], flags[256], host[64], kernel[128];
  int cores;
  double mhz;
  size_t l1_bytes, l2_bytes, l3_bytes; /* 0: unknown */
  size_t memory_bytes;
  bool optimised;         /* this build is, and has no sanitizers */
  bool frequency_scaling; /* a governor other than performance */
  double load_average;

  const attn_device *measured_on; /* what the peaks below are of; NULL: this machine's processor */
  attn_device_facts device;       /* of that, or name "" */
  attn_device_state state;        /* of that: lowest clock and highest temperature since it was described */

  int threads;                           /* that the peaks below were measured with */
  machine_rate peaks[MACHINE_MAX_RATES]; /* multiply-add, per instruction set, slowest first */
  size_t peak_count;
  machine_rate tanhs[MACHINE_MAX_RATES]; /* tanh/s, per instruction set, slowest first; not in reports */
  size_t tanh_count;
  machine_rate sgemm;                    /* median 0: no BLAS in this build */
  machine_rate reads[MACHINE_MAX_RATES]; /* read bandwidth, by cache level and of memory */
  size_t read_count;
} machine;

/* Reads what the system says; measures nothing. */
void machine_describe(machine *machine);

/* From here on what is measured is this device, which is open; some have nothing that can be measured. */
void machine_take_device(machine *machine, const attn_device *device);

/* Notes how the device is just now, in machine->state. */
void machine_watch_device(machine *machine);

/* Measures all peaks with so many threads, in interleaved repetitions; about `seconds` seconds, none for 0. In fewer than
 * MACHINE_HURRY_SECONDS, those of a dry run, they tell nothing: that of the memory is then of the last cache. */
#define MACHINE_HURRY_SECONDS 0.25
void machine_measure(machine *machine, int threads, double seconds);

/* Once more, and the highest median counts: on a shared machine a slow minute must not lower the peak that
 * all is drawn under. */
void machine_measure_again(machine *machine, int threads, double seconds);

/* The rate of one of its peaks just now, by as many threads, in about so many seconds; 0: it cannot be had. */
double machine_rate_now(const machine *machine, const machine_rate *peak, double seconds);

/* What shares are taken of: the multiply-add peak of that instruction set for elements of the type, or of float32, to
 * which others are converted. isa NULL, or one that has neither: the fastest of the type, or else of float32. NULL when
 * none was measured. */
const machine_rate *machine_peak(const machine *machine, const char *isa, attn_type type);

/* The rate at which so many bytes, read again and again, are read by all threads: that of the first level that holds them,
 * which is twice what its rate was measured over. NULL when none was measured. */
const machine_rate *machine_read(const machine *machine, double bytes);

void machine_print(const machine *machine, FILE *out);

#endif
