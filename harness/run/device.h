/* Variants whose data lie on a device: the device that each came with (variants/device.h), and a call's
 * buffers there. On the host everything here does nothing, so that who runs a variant need not ask where it
 * computes. */
#ifndef ATTN_HARNESS_DEVICE_H
#define ATTN_HARNESS_DEVICE_H

#include "problem/tensors.h"
#include "variants/device.h"

/* The variants of this table compute on it. False, with the reason in words, where it was built for another version
 * of variants/device.h, or there are too many. */
bool device_register(const attn_table *table, const attn_device *device, char *why, size_t why_size);
const attn_device *device_of(const attn_variant *variant); /* NULL: the host */

/* Of devices of this kind, which is taken, from 0; the first one is, unless another is chosen. False, with the
 * reason in words, where there is none of that number or it cannot be had. */
bool device_choose(const attn_device *device, int index, char *why, size_t why_size);

/* What the one that is taken is: "NVIDIA H200, sm_90, ..."; "": it was not opened yet. */
const char *device_words(const attn_device *device);

/* Opens the one that is taken, where that was not done; false where it cannot be had. */
bool device_open(const attn_device *device);

enum { DEVICE_WORDS_BYTES = 192, DEVICE_LISTS = 3 };

/* What came of a call there. */
typedef struct device_outcome {
  char violation[DEVICE_WORDS_BYTES]; /* in words what went wrong; "": nothing */
  bool failed;                        /* it ended before it was done */
  size_t workspace_touched_bytes;
} device_outcome;

/* A call's memory on its device. */
typedef struct device_call {
  const attn_device *device; /* NULL: the host */
  attn_call host;            /* the call as it was */
  attn_problem problem;      /* with its lists on the device */
  void *tensors[TENSORS], *workspace, *lists[DEVICE_LISTS];
  size_t workspace_bytes;
} device_call;

/* Gives the call's variant buffers of its own, with the contents of those on the host, and makes the call
 * point to them. False, with the reason in words, where the device is missing or out of memory: the call is
 * then unchanged, and device_end has nothing to do. */
bool device_begin(device_call *made, attn_call *call, size_t workspace_bytes, char *why, size_t why_size);

/* Writes again what changed on the host: bytes at this distance from the tensor's first byte. */
void device_update(const device_call *made, tensor_id tensor, size_t at, size_t bytes);

/* Runs the call, already begun, and waits until the device has ended. */
void device_run(const attn_call *call);

/* Copies all tensors back, inputs too, so that who looks at the host's sees what the variant did to its own,
 * and gives the memory back. */
void device_end(device_call *made, device_outcome *outcome);

#endif
