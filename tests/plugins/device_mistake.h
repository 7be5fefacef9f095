/* A kernel of a test as a variant. */
#ifndef ATTN_TESTS_DEVICE_MISTAKE_H
#define ATTN_TESTS_DEVICE_MISTAKE_H

#include "variants/cuda/cuda.h"

#define MISTAKE(name, how)                                                                                   \
  const attn_variant name##_variant = {#name,                                                                \
                                       "a kernel of a test",                                                 \
                                       ATTN_SOFTMAX,                                                         \
                                       0,                                                                    \
                                       1 << ATTN_FLOAT32,                                                    \
                                       ATTN_CUDA,                                                            \
                                       0,                                                                    \
                                       2,                                                                    \
                                       0,                                                                    \
                                       nullptr,                                                              \
                                       nullptr,                                                              \
                                       nullptr,                                                              \
                                       how};

#endif
