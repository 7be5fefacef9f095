/* What the machine can do at best, as the denominator of every share: multiply-adds, sgemm, reads. All
 * rates are taken in turn, round after round, so that a slow second of a shared machine hits each of
 * them; the median is given with its 95 % interval. All threads work at the same time, and their rates
 * add up. */
#define _GNU_SOURCE
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef ATTN_HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "base/interrupt.h"
#include "machine.h"
#include "base/memory.h"
#include "peak_loops.h"
#include "base/statistics.h"
#include "base/timer.h"

/* 768 x 768: OpenBLAS is near its best from 512 on, and three matrices stay within 7 MiB. */
enum { MAX_PROBES = 2 * MACHINE_MAX_RATES, MAX_ROUNDS = 15, SGEMM_SIZE = 768 };

/* One rate that is measured. */
typedef struct probe {
  machine_rate *rate;
  const peak_loops *loops;
  const tanh_loops *tanhs;
  size_t bytes;   /* that each thread reads in turn; 0: not a read */
  bool streams;   /* four at a time: out of L2 the prefetchers then bring 10 to 20 % more */
  double units;   /* that one repetition of work() does, in all threads: FLOP or bytes */
  int64_t amount; /* rounds, calls or passes in one repetition */
  double samples[MAX_ROUNDS];
} probe;

/* What the threads work on. */
typedef struct bench_ground {
  int threads;
  unsigned char *memory;
  size_t bytes_per_thread;
} bench_ground;

static void sgemm(const unsigned char *memory) {
#ifdef ATTN_HAVE_OPENBLAS
  const int n = SGEMM_SIZE;
  const size_t square = (size_t)n * (size_t)n;
  float *a = (float *)(void *)memory, *b = a + square, *c = b + square;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
#else
  (void)memory;
#endif
}

/* One thread's part of a repetition. */
static void work(const probe *probe, int64_t amount, const unsigned char *memory) {
  if (probe->tanhs) {
    probe->tanhs->take(amount);
  } else if (!probe->loops) {
    for (int64_t n = 0; n < amount; n++) sgemm(memory);
  } else if (probe->bytes == 0) {
    probe->loops->multiply_add(amount);
  } else {
    const size_t rounds = probe->bytes / PEAK_ROUND_BYTES;
    const size_t pitch = probe->streams ? probe->bytes / 4 : PEAK_STREAM_BYTES;
    const size_t advance = probe->streams ? PEAK_STREAM_BYTES : PEAK_ROUND_BYTES;
    for (int64_t n = 0; n < amount; n++) probe->loops->read(memory, rounds, pitch, advance);
  }
}

/* Seconds of one repetition: the harmonic mean over the threads, so that the rates of the threads add up.
 * A thread that shares its core with another process then counts for what it did, not for all. */
static double time_work(const probe *probe, int64_t amount, const bench_ground *ground) {
  double pace = 0;
#pragma omp parallel num_threads(ground->threads) reduction(+ : pace)
  {
    const size_t offset = (size_t)omp_get_thread_num() * ground->bytes_per_thread;
    const unsigned char *memory = ground->memory ? ground->memory + offset : NULL;
#pragma omp barrier
    const double start = wall_seconds();
    work(probe, amount, memory);
    pace += 1 / fmax(wall_seconds() - start, 1e-9);
  }
  return ground->threads / pace;
}

/* So much work that one repetition takes about as long as wanted. */
static void calibrate(probe *probe, const bench_ground *ground, double seconds) {
  const int64_t most = INT64_C(1) << 40;
  for (probe->amount = 1; probe->amount < most && !interrupt_wanted();) {
    double taken = time_work(probe, probe->amount, ground);
    /* A short one that another process held up looks like a long one. */
    for (int again = 0; again < 2 && taken >= 0.5 * seconds; again++)
      taken = fmin(taken, time_work(probe, probe->amount, ground));
    if (taken >= 0.5 * seconds) break;
    const double growth = fmin(10, fmax(1.5, 0.8 * seconds / fmax(taken, 1e-9)));
    probe->amount = (int64_t)ceil((double)probe->amount * growth);
  }
}

static void measure(probe *probes, size_t count, const bench_ground *ground, double seconds) {
  const int wanted = seconds < 1 ? 5 : MAX_ROUNDS;
  const double share = seconds / (double)((size_t)(wanted + 2) * count);
  for (size_t n = 0; n < count; n++) calibrate(&probes[n], ground, share);
  int rounds = 0;
  /* A machine whose memory is slow for its size may need longer than its share for one pass. */
  for (const double end = wall_seconds() + seconds;
       rounds < wanted && (rounds < 3 || wall_seconds() < end) && !(rounds && interrupt_wanted()); rounds++)
    for (size_t n = 0; n < count; n++) {
      const double done = probes[n].units * (double)probes[n].amount * (double)ground->threads;
      probes[n].samples[rounds] = done / time_work(&probes[n], probes[n].amount, ground);
    }
  for (size_t n = 0; n < count; n++) {
    const interval median = statistics_median_interval(probes[n].samples, (size_t)rounds, 0.95);
    probes[n].rate->median = median.estimate;
    probes[n].rate->low = median.low;
    probes[n].rate->high = median.high;
    for (int round = 0; round < rounds; round++)
      probes[n].rate->fastest = fmax(probes[n].rate->fastest, probes[n].samples[round]);
  }
}

/* ---- what is measured ---- */

static void add_reads(machine *machine, probe *probes, size_t *count, const peak_loops *widest,
                      const bench_ground *ground) {
  const size_t threads = (size_t)ground->threads;
  const struct {
    const char *name;
    size_t bytes; /* of one thread: half a level, so that what else lives there fits too */
  } sets[] = {{"read L1", machine->l1_bytes / 2},
              {"read L2", machine->l2_bytes / 2},
              {"read L3", machine->l3_bytes / 2 / threads},
              {"read memory", ground->bytes_per_thread}};
  size_t before = 0;
  for (size_t n = 0; n < sizeof sets / sizeof *sets; n++) {
    const size_t bytes = sets[n].bytes / PEAK_ROUND_BYTES * PEAK_ROUND_BYTES;
    /* Not a level of its own on this machine, or its share is no more than that of the level before it. */
    if (bytes <= before || bytes > ground->bytes_per_thread) continue;
    before = bytes;
    machine_rate *rate = &machine->reads[machine->read_count++];
    *rate = (machine_rate){.working_set_bytes = bytes * threads};
    snprintf(rate->name, sizeof rate->name, "%s", sets[n].name);
    probes[(*count)++] =
        (probe){.rate = rate, .loops = widest, .bytes = bytes, .streams = n >= 2, .units = (double)bytes};
  }
}

static size_t plan(machine *machine, probe *probes, const peak_loops *loops, size_t loop_count,
                   const tanh_loops *tanhs, size_t tanh_count, const bench_ground *ground) {
  size_t count = 0;
  for (size_t n = 0; n < loop_count; n++) {
    machine_rate *rate = &machine->peaks[machine->peak_count++];
    *rate = (machine_rate){.type = loops[n].type};
    snprintf(rate->name, sizeof rate->name, "%s", loops[n].isa);
    probes[count++] = (probe){.rate = rate, .loops = &loops[n], .units = loops[n].flops_per_round};
  }
  for (size_t n = 0; n < tanh_count; n++) {
    machine_rate *rate = &machine->tanhs[machine->tanh_count++];
    snprintf(rate->name, sizeof rate->name, "%s", tanhs[n].name);
    probes[count++] = (probe){.rate = rate, .tanhs = &tanhs[n], .units = tanhs[n].tanhs_per_round};
  }
  const size_t matrices = (size_t)3 * SGEMM_SIZE * SGEMM_SIZE * sizeof(float);
  snprintf(machine->sgemm.name, sizeof machine->sgemm.name, "sgemm");
#ifdef ATTN_HAVE_OPENBLAS
  const double size = SGEMM_SIZE;
  if (ground->bytes_per_thread >= matrices)
    probes[count++] = (probe){.rate = &machine->sgemm, .units = 2 * size * size * size};
#else
  (void)matrices;
#endif
  if (ground->memory) add_reads(machine, probes, &count, &loops[loop_count - 1], ground);
  return count;
}

/* Fewer than asked for where OMP_THREAD_LIMIT says so. */
static int granted_threads(int threads) {
  int granted = 1;
#pragma omp parallel num_threads(threads)
#pragma omp single
  granted = omp_get_num_threads();
  return granted;
}

/* Each thread touches its own part, which lays it near that thread. Numbers are for sgemm and the first caches: what a memory
 * holds does not change its rate, and a GiB of them takes half a second. */
static void fill(unsigned char *part, size_t bytes) {
  const size_t matrices = (size_t)3 * SGEMM_SIZE * SGEMM_SIZE, page = 4096;
  float *numbers = (float *)(void *)part;
  for (size_t n = 0; n < bytes / sizeof *numbers && n < matrices; n++) numbers[n] = (float)(n % 7) - 3;
  for (size_t at = matrices * sizeof *numbers / page * page; at < bytes; at += page) part[at] = 0;
}

/* Four times the last cache, or from a GiB on twice; no less than 256 MiB and 16 MiB a thread, within a quarter of what is free.
 * In a hurry only the latter: each of many tests would fill and read the rest. */
static bench_ground acquire_ground(const machine *machine, int threads, double seconds) {
  bench_ground ground = {threads, NULL, 0};
  const size_t page = (size_t)2 << 20, least = (size_t)256 << 20, much = (size_t)1 << 30;
  const size_t l3 = machine->l3_bytes < much ? machine->l3_bytes : much;
  size_t wanted = 4 * l3 < much ? 4 * l3 : 2 * l3 < much ? much : 2 * l3;
  if (wanted < least) wanted = least;
  if (seconds < MACHINE_HURRY_SECONDS) wanted = 0;
  if (wanted < (size_t)threads << 24) wanted = (size_t)threads << 24;
  const size_t room = memory_available_bytes() / 4;
  if (wanted > room) wanted = room;
  ground.bytes_per_thread = wanted / (size_t)threads / page * page;
  const size_t bytes = ground.bytes_per_thread * (size_t)threads;
  if (bytes) ground.memory = aligned_alloc(page, bytes);
  if (!ground.memory) {
    ground.bytes_per_thread = 0;
    return ground;
  }
  /* Without huge pages the rate would be one of address translation. */
  (void)madvise(ground.memory, bytes, MADV_HUGEPAGE);
#pragma omp parallel num_threads(threads)
  fill(ground.memory + (size_t)omp_get_thread_num() * ground.bytes_per_thread, ground.bytes_per_thread);
  return ground;
}

/* What each of its peaks measures itself, in rounds as above. */
static void measure_device(machine *machine, double seconds) {
  const attn_device *device = machine->measured_on;
  size_t count = device->peak_count;
  if (count == 0) return;
  if (count > MACHINE_MAX_RATES) count = MACHINE_MAX_RATES;
  double samples[MACHINE_MAX_RATES][MAX_ROUNDS];
  for (int round = 0; round < MAX_ROUNDS; round++)
    for (size_t n = 0; n < count; n++)
      samples[n][round] = device->peaks[n].measure(seconds / (double)(MAX_ROUNDS * count));
  for (size_t n = 0; n < count; n++) {
    const attn_device_peak *peak = &device->peaks[n];
    const interval median = statistics_median_interval(samples[n], MAX_ROUNDS, 0.95);
    const bool reads = peak->type == ATTN_ABSENT;
    if (!(median.estimate > 0)) continue;
    machine_rate *rate =
        reads ? &machine->reads[machine->read_count++] : &machine->peaks[machine->peak_count++];
    *rate =
        (machine_rate){.median = median.estimate, .low = median.low, .high = median.high, .type = peak->type};
    snprintf(rate->name, sizeof rate->name, "%s", peak->name);
    for (int round = 0; round < MAX_ROUNDS; round++) rate->fastest = fmax(rate->fastest, samples[n][round]);
  }
}

void machine_measure(machine *machine, int threads, double seconds) {
  peak_loops loops[PEAK_MAX_LOOPS];
  tanh_loops tanhs[PEAK_MAX_LOOPS];
  probe *probes = calloc(MAX_PROBES, sizeof *probes);
  machine->threads = threads;
  machine->peak_count = machine->tanh_count = machine->read_count = 0;
  memset(&machine->sgemm, 0, sizeof machine->sgemm);
  if (machine->measured_on && seconds > 0) measure_device(machine, seconds);
  if (!probes || seconds <= 0 || machine->measured_on) {
    free(probes);
    return;
  }
#ifdef ATTN_HAVE_OPENBLAS
  openblas_set_num_threads(1); /* it is our threads that call it */
#endif
  const size_t loop_count = peak_loops_available(loops), tanh_count = tanh_loops_available(tanhs);
  const bench_ground ground = acquire_ground(machine, granted_threads(threads), seconds);
  measure(probes, plan(machine, probes, loops, loop_count, tanhs, tanh_count, &ground), &ground, seconds);
  free(ground.memory);
  free(probes);
}

double machine_rate_now(const machine *machine, const machine_rate *peak, double seconds) {
  peak_loops loops[PEAK_MAX_LOOPS];
  const bench_ground ground = {.threads = granted_threads(machine->threads)};
  if (machine->measured_on) return 0;
  for (size_t n = peak_loops_available(loops); n-- > 0 && peak->median > 0;) {
    if (loops[n].type != peak->type || strcmp(loops[n].isa, peak->name) != 0) continue;
    const double of_all = loops[n].flops_per_round * ground.threads;
    const double rounds = fmax(1, ceil(seconds * peak->median / of_all));
    const probe probe = {.loops = &loops[n]};
    return of_all * rounds / time_work(&probe, (int64_t)rounds, &ground);
  }
  return 0;
}

static const machine_rate *fastest_of(const machine *machine, attn_type type) {
  const machine_rate *fastest = NULL;
  for (size_t n = 0; n < machine->peak_count; n++)
    if (machine->peaks[n].type == type && (!fastest || machine->peaks[n].median > fastest->median))
      fastest = &machine->peaks[n];
  return fastest;
}

const machine_rate *machine_peak(const machine *machine, const char *isa, attn_type type) {
  for (size_t n = 0; isa && n < machine->peak_count; n++) {
    const machine_rate *rate = &machine->peaks[n];
    if (strcmp(rate->name, isa) == 0 && (rate->type == type || rate->type == ATTN_FLOAT32)) return rate;
  }
  const machine_rate *of_type = fastest_of(machine, type);
  return of_type ? of_type : fastest_of(machine, ATTN_FLOAT32);
}

const machine_rate *machine_read(const machine *machine, double bytes) {
  for (size_t n = 0; n + 1 < machine->read_count; n++)
    if (bytes <= 2 * (double)machine->reads[n].working_set_bytes && machine->reads[n].median > 0)
      return &machine->reads[n];
  const machine_rate *memory = machine->read_count ? &machine->reads[machine->read_count - 1] : NULL;
  return memory && memory->median > 0 ? memory : NULL;
}

double machine_most(const machine_rate *rate) {
  return rate->fastest * fmax(1, rate->fastest / rate->median);
}

static void keep_higher(machine_rate *rate, const machine_rate *again) {
  const double fastest = fmax(rate->fastest, again->fastest);
  if (again->median > rate->median) *rate = *again;
  rate->fastest = fastest;
}

/* A peak that could not be measured this time is none of them. */
static void keep_highest(machine_rate *rates, size_t count, const machine_rate *again, size_t again_count) {
  for (size_t n = 0; n < count; n++)
    for (size_t m = 0; m < again_count; m++)
      if (strcmp(rates[n].name, again[m].name) == 0) keep_higher(&rates[n], &again[m]);
}

void machine_measure_again(machine *machine, int threads, double seconds) {
  struct machine again = *machine;
  machine_measure(&again, threads, seconds);
  keep_highest(machine->peaks, machine->peak_count, again.peaks, again.peak_count);
  keep_highest(machine->tanhs, machine->tanh_count, again.tanhs, again.tanh_count);
  keep_highest(machine->reads, machine->read_count, again.reads, again.read_count);
  keep_higher(&machine->sgemm, &again.sgemm);
}
