/* Where the data of a variant lie that does not compute on the host: what the harness asks of such a device. A
 * shared object of variants whose place is not the host exports one under the name attn_plugin_device; who
 * writes kernels links an object that is there for it (variants/cuda/README.md) and does not need this header. */
#ifndef ATTN_DEVICE_H
#define ATTN_DEVICE_H

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a device is; 0: unknown, or there is no such thing on it. */
typedef struct attn_device_facts {
  char name[96];
  int capability; /* 90: sm_90 */
  int multiprocessors;
  size_t memory_bytes, l2_bytes, shared_bytes; /* shared: the most that a block may have */
  int driver, runtime;                         /* CUDA 13.1: 13010 */
} attn_device_facts;

/* Something that is measured for what the device can do at best. */
typedef struct attn_device_peak {
  const char *name; /* "f32", "read memory" */
  attn_type type;   /* of what is multiplied; ATTN_ABSENT: bytes are read */
  /* FLOP/s, or bytes/s, over about so many seconds; 0: it cannot be measured. */
  double (*measure)(double seconds);
} attn_device_peak;

/* How it is just now; NaN: unknown. */
typedef struct attn_device_state {
  double clock_mhz, highest_clock_mhz, celsius;
  char throttled[64]; /* what holds its clock down, in words; "": nothing that is known */
} attn_device_state;

typedef struct attn_device {
  size_t size;      /* of this struct, as who fills it knows it: fields are added at its end */
  const char *kind; /* one word: "cuda", "emu" */

  /* What kernels get done on it at least; 0: no less than on a host. A run is given time by it, and where it
   * is known, verification leaves problems out that would take seconds. */
  double flops_per_second;

  /* How many there are; 0, with the reason in words, where there is none. */
  int (*count)(char *why, size_t why_size);

  /* Everything below is of this one from here on. In words what it is; false: why it cannot be had. */
  bool (*open)(int index, char *words, size_t words_size);

  /* Memory that begins at a multiple of 256 bytes, with guards around it; NULL: there is not that much. */
  void *(*allocate)(size_t bytes);
  void (*release)(void *memory);

  /* Whether nothing was written around it. */
  bool (*is_whole)(const void *memory);

  void (*write)(void *to, const void *from, size_t bytes);
  void (*read)(void *to, const void *from, size_t bytes);

  /* What a call's kernels are launched on. */
  void *(*stream)(void);

  /* What follows keeps to this instruction set of the table's; NULL: as the device likes. */
  void (*keep_to)(const char *isa);

  /* Until all that was launched has ended. NULL, or in words what went wrong. */
  const char *(*wait)(void);

  /* Seconds of the device from the first to the end of what was launched since; asked for after wait. */
  void (*start_clock)(void);
  double (*stop_clock)(void);

  /* Whether nothing runs on it any more in this process, after what wait said. */
  bool (*is_lost)(void);

  void (*describe)(attn_device_facts *facts);

  /* NULL and 0: how fast it is says nothing of a device. */
  const attn_device_peak *peaks;
  size_t peak_count;

  /* Of what earlier kernels touched nothing lies in its caches when this ends. */
  void (*flush)(void);

  void (*look)(attn_device_state *state);
} attn_device;

#ifdef __cplusplus
}
#endif
#endif
