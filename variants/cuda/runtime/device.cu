/* A GPU, through CUDA's runtime: variants/device.h. One object for kernels of one's own to be linked with, so that
 * what measures the GPU (peaks.h) and what asks its driver how it is (nvml.h) are parts of this file. */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device.h"
#include "../cuda.h"

namespace {

/* On both sides of each buffer, holding a canary; ATTN_CUDA_GUARDS=no: none, so that what looks for addresses itself
 * (scripts/memcheck_cuda.sh) sees a buffer's end. */
constexpr size_t MOST_GUARD = 4096;
size_t guard() {
  static const char *const wanted = getenv("ATTN_CUDA_GUARDS");
  return wanted && strcmp(wanted, "no") == 0 ? 0 : MOST_GUARD;
}
constexpr unsigned char CANARY = 0xc5;
constexpr unsigned MOST_ALLOCATIONS = 64;

struct allocation {
  unsigned char *memory;
  size_t bytes;
};
allocation allocations[MOST_ALLOCATIONS];
unsigned allocation_count;
cudaStream_t launched_on;
cudaEvent_t started, stopped;
cudaDeviceProp gpu;
cudaError_t failure = cudaSuccess; /* since wait was asked last */
bool lost;                         /* an error that sticks to the process's context */

bool note(cudaError_t error) {
  if (error != cudaSuccess && failure == cudaSuccess) failure = error;
  return error == cudaSuccess;
}

#include "nvml.h"
#include "peaks.h"

int count(char *why, size_t why_size) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return devices;
  snprintf(why, why_size, "there is no GPU that CUDA can use: %s; --device emu needs none",
           error == cudaSuccess ? "no device" : cudaGetErrorString(error));
  return 0;
}

__global__ void nothing() {}

/* Of this file, and so of all that are compiled with it: whether it holds code for this GPU. */
bool has_code() {
  cudaFuncAttributes attributes;
  const bool has = cudaFuncGetAttributes(&attributes, nothing) == cudaSuccess;
  (void)cudaGetLastError();
  return has;
}

bool open_device(int index, char *words, size_t words_size) {
  int driver = 0;
  cudaError_t error = cudaSetDevice(index);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&gpu, index);
  if (error == cudaSuccess) error = cudaDriverGetVersion(&driver);
  if (error == cudaSuccess) error = cudaStreamCreate(&launched_on);
  if (error == cudaSuccess) error = cudaEventCreate(&started);
  if (error == cudaSuccess) error = cudaEventCreate(&stopped);
  if (error != cudaSuccess) {
    snprintf(words, words_size, "device cuda:%d cannot be had: %s", index, cudaGetErrorString(error));
    return false;
  }
  if (!has_code()) {
    snprintf(words, words_size,
             "device cuda:%d is a %.60s, sm_%d%d, for which nothing was compiled: add it to CUDA_TARGETS in "
             "the Makefile",
             index, gpu.name, gpu.major, gpu.minor);
    return false;
  }
  find_in_nvml(index);
  snprintf(words, words_size, "%s, sm_%d%d, %d multiprocessors, %.0f GB, CUDA %d.%d", gpu.name, gpu.major,
           gpu.minor, gpu.multiProcessorCount, (double)gpu.totalGlobalMem / 1e9, driver / 1000,
           driver % 1000 / 10);
  return true;
}

allocation *allocation_at(const void *data) {
  for (unsigned n = 0; n < allocation_count; n++)
    if (allocations[n].memory + guard() == data) return &allocations[n];
  return nullptr;
}

void *allocate(size_t bytes) {
  allocation made = {nullptr, bytes};
  if (allocation_count == MOST_ALLOCATIONS || bytes > SIZE_MAX / 2) return nullptr;
  if (cudaMalloc(&made.memory, bytes + 2 * guard()) != cudaSuccess) {
    (void)cudaGetLastError(); /* this error does not stick */
    return nullptr;
  }
  note(cudaMemset(made.memory, CANARY, guard()));
  note(cudaMemset(made.memory + guard() + bytes, CANARY, guard()));
  allocations[allocation_count++] = made;
  return made.memory + guard();
}

void release(void *memory) {
  allocation *of = allocation_at(memory);
  if (!of) return;
  note(cudaFree(of->memory));
  *of = allocations[--allocation_count];
}

bool is_canary(const unsigned char *memory) {
  unsigned char bytes[MOST_GUARD];
  if (!note(cudaMemcpy(bytes, memory, guard(), cudaMemcpyDeviceToHost)))
    return true; /* which is said elsewhere */
  for (size_t n = 0; n < guard(); n++)
    if (bytes[n] != CANARY) return false;
  return true;
}

bool is_whole(const void *memory) {
  const allocation *of = allocation_at(memory);
  return of && is_canary(of->memory) && is_canary(of->memory + guard() + of->bytes);
}

void write(void *to, const void *from, size_t bytes) {
  if (bytes) note(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}

void read(void *to, const void *from, size_t bytes) {
  if (bytes) note(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

void *stream(void) { return launched_on; }

void keep_to(const char *) {}

/* An error of a launch that was refused is forgotten when it was asked for; one that sticks is there again. */
const char *wait(void) {
  note(cudaGetLastError());
  note(cudaEventRecord(stopped, launched_on));
  note(cudaStreamSynchronize(launched_on));
  if (failure == cudaSuccess) return nullptr;
  const char *words = cudaGetErrorString(failure);
  (void)cudaGetLastError();
  lost = cudaDeviceSynchronize() != cudaSuccess;
  failure = cudaSuccess;
  return words;
}

bool is_lost(void) { return lost; }

void describe(attn_device_facts *facts) {
  *facts = {};
  snprintf(facts->name, sizeof facts->name, "%.*s", (int)sizeof facts->name - 1, gpu.name);
  facts->capability = 10 * gpu.major + gpu.minor;
  facts->multiprocessors = gpu.multiProcessorCount;
  facts->memory_bytes = gpu.totalGlobalMem;
  facts->l2_bytes = (size_t)gpu.l2CacheSize;
  facts->shared_bytes = gpu.sharedMemPerBlockOptin;
  cudaDriverGetVersion(&facts->driver);
  cudaRuntimeGetVersion(&facts->runtime);
}

/* Twice the L2 is written. */
void flush(void) {
  static void *memory;
  const size_t bytes = 2 * (size_t)gpu.l2CacheSize;
  if (!memory && !note(cudaMalloc(&memory, bytes))) return;
  note(cudaMemsetAsync(memory, 0, bytes, launched_on));
  note(cudaStreamSynchronize(launched_on));
}

constexpr unsigned long long LAUNCH_NANOSECONDS = 30000; /* a handful of launches */

/* Keeps the stream busy while the host launches what is timed, so that the clock shows the kernels and not the way to
 * them: some 5 us for each launch. */
__global__ void delay(unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}

void start_clock(void) {
  delay<<<1, 1, 0, launched_on>>>(LAUNCH_NANOSECONDS);
  note(cudaEventRecord(started, launched_on));
}

/* After wait, which noted the end: what the host takes to learn of it does not count. */
double stop_clock(void) {
  float milliseconds = 0;
  note(cudaEventElapsedTime(&milliseconds, started, stopped));
  return 1e-3 * (double)milliseconds;
}

} // namespace

extern "C" {
extern const attn_device attn_plugin_device __attribute__((visibility("default")));
const attn_device attn_plugin_device = {sizeof(attn_device),
                                        "cuda",
                                        0,
                                        count,
                                        open_device,
                                        allocate,
                                        release,
                                        is_whole,
                                        write,
                                        read,
                                        stream,
                                        keep_to,
                                        wait,
                                        start_clock,
                                        stop_clock,
                                        is_lost,
                                        describe,
                                        peaks,
                                        sizeof peaks / sizeof *peaks,
                                        flush,
                                        look};
}
