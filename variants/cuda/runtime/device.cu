/* A GPU, through CUDA's runtime: variants/device.h. */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../../device.h"

namespace {

/* On both sides of each buffer, holding a canary. */
constexpr size_t GUARD = 4096;
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
/* An error sticks to the process's context: what comes after it fails too. */
cudaError_t failure = cudaSuccess;

bool note(cudaError_t error) {
  if (error != cudaSuccess && failure == cudaSuccess) failure = error;
  return error == cudaSuccess;
}

int count(char *why, size_t why_size) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return devices;
  snprintf(why, why_size, "there is no GPU that CUDA can use: %s; --device emu needs none",
           error == cudaSuccess ? "no device" : cudaGetErrorString(error));
  return 0;
}

bool open_device(int index, char *words, size_t words_size) {
  cudaDeviceProp is;
  int driver = 0;
  cudaError_t error = cudaSetDevice(index);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&is, index);
  if (error == cudaSuccess) error = cudaDriverGetVersion(&driver);
  if (error == cudaSuccess) error = cudaStreamCreate(&launched_on);
  if (error == cudaSuccess) error = cudaEventCreate(&started);
  if (error == cudaSuccess) error = cudaEventCreate(&stopped);
  if (error != cudaSuccess) {
    snprintf(words, words_size, "device cuda:%d cannot be had: %s", index, cudaGetErrorString(error));
    return false;
  }
  snprintf(words, words_size, "%s, sm_%d%d, %d multiprocessors, %.0f GB, CUDA %d.%d", is.name, is.major,
           is.minor, is.multiProcessorCount, (double)is.totalGlobalMem / 1e9, driver / 1000,
           driver % 1000 / 10);
  return true;
}

allocation *allocation_at(const void *data) {
  for (unsigned n = 0; n < allocation_count; n++)
    if (allocations[n].memory + GUARD == data) return &allocations[n];
  return nullptr;
}

void *allocate(size_t bytes) {
  allocation made = {nullptr, bytes};
  if (allocation_count == MOST_ALLOCATIONS || bytes > SIZE_MAX / 2) return nullptr;
  if (cudaMalloc(&made.memory, bytes + 2 * GUARD) != cudaSuccess) {
    (void)cudaGetLastError(); /* this error does not stick */
    return nullptr;
  }
  note(cudaMemset(made.memory, CANARY, GUARD));
  note(cudaMemset(made.memory + GUARD + bytes, CANARY, GUARD));
  allocations[allocation_count++] = made;
  return made.memory + GUARD;
}

void release(void *memory) {
  allocation *of = allocation_at(memory);
  if (!of) return;
  note(cudaFree(of->memory));
  *of = allocations[--allocation_count];
}

bool is_canary(const unsigned char *memory) {
  unsigned char guard[GUARD];
  if (!note(cudaMemcpy(guard, memory, GUARD, cudaMemcpyDeviceToHost)))
    return true; /* which is said elsewhere */
  for (size_t n = 0; n < GUARD; n++)
    if (guard[n] != CANARY) return false;
  return true;
}

bool is_whole(const void *memory) {
  const allocation *of = allocation_at(memory);
  return of && is_canary(of->memory) && is_canary(of->memory + GUARD + of->bytes);
}

void write(void *to, const void *from, size_t bytes) {
  if (bytes) note(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}

void read(void *to, const void *from, size_t bytes) {
  if (bytes) note(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

void *stream(void) { return launched_on; }

void keep_to(const char *) {}

const char *wait(void) {
  note(cudaGetLastError()); /* of a launch that was refused */
  note(cudaStreamSynchronize(launched_on));
  return failure == cudaSuccess ? nullptr : cudaGetErrorString(failure);
}

void start_clock(void) { note(cudaEventRecord(started, launched_on)); }

double stop_clock(void) {
  float milliseconds = 0;
  note(cudaEventRecord(stopped, launched_on));
  note(cudaEventSynchronize(stopped));
  note(cudaEventElapsedTime(&milliseconds, started, stopped));
  return 1e-3 * (double)milliseconds;
}

} // namespace

extern "C" {
extern const attn_device attn_plugin_device __attribute__((visibility("default")));
const attn_device attn_plugin_device = {"cuda", 0,    count,  open_device, allocate, release,     is_whole,
                                        write,  read, stream, keep_to,     wait,     start_clock, stop_clock};
}
