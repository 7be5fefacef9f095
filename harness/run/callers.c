/* See callers.h. */
#define _GNU_SOURCE
#include "callers.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stddef.h>
#include <string.h>

/* Objects by the beginnings of their names. OpenBLAS starts threads of its own, and its kernel for small matrices takes
 * and returns some 400 bytes for each product (sgemm, 0.3.21, SkylakeX). */
static const struct {
  const char *name;
  caller_kind kind;
} known[] = {{"libc.so.", CALLER_C},       {"libc-2", CALLER_C},       {"libstdc++.", CALLER_C},
             {"libc++.", CALLER_C},        {"libc++abi.", CALLER_C},   {"libgomp.", CALLER_OPENMP},
             {"libomp.", CALLER_OPENMP},   {"libomp-", CALLER_OPENMP}, {"libiomp5.", CALLER_OPENMP},
             {"ld-linux", CALLER_RUNTIME}, {"ld.so", CALLER_RUNTIME},  {"libopenblas", CALLER_RUNTIME}};

static caller_kind kind_of(const Dl_info *object) {
  const char *slash = object->dli_fname ? strrchr(object->dli_fname, '/') : NULL;
  const char *name = slash ? slash + 1 : object->dli_fname ? object->dli_fname : "";
  for (size_t n = 0; n < sizeof known / sizeof *known; n++)
    if (strncmp(name, known[n].name, strlen(known[n].name)) == 0) return known[n].kind;
  return CALLER_OTHER;
}

static caller described(const void *code) {
  Dl_info object;
  if (!dladdr(code, &object)) return (caller){NULL, CALLER_OTHER};
  return (caller){object.dli_fbase, kind_of(&object)};
}

caller caller_of(const void *code) {
  const caller first = described(code);
  void *frames[32];
  if (first.kind != CALLER_C) return first;
  const int count = backtrace(frames, sizeof frames / sizeof *frames);
  int n = 0;
  while (n < count && frames[n] != code) n++;
  for (; n < count; n++) {
    const caller behind = described(frames[n]);
    if (behind.object && behind.kind != CALLER_C) return behind;
  }
  return first;
}

const void *caller_object(const void *code) {
  Dl_info object;
  return dladdr(code, &object) ? object.dli_fbase : NULL;
}

void callers_prepare(void) {
  void *frame;
  backtrace(&frame, 1); /* its first call loads what it needs, from the heap */
}
