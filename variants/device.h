/* Where the data of a variant lie that does not compute on the host: what the harness asks of such a device. A
 * shared object of variants whose place is not the host exports one under the name attn_plugin_device; who
 * writes kernels links an object that is there for it (variants/cuda/README.md) and does not need this header. */
#ifndef ATTN_DEVICE_H
#define ATTN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attn_device {
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

  /* Seconds of the device between the two. */
  void (*start_clock)(void);
  double (*stop_clock)(void);
} attn_device;

#ifdef __cplusplus
}
#endif
#endif
