/* See heap_calls.h. The functions below take the places of the C library's, which are reached under their
 * second names or, where they have none, by the system call. What a library calls inside itself is not
 * seen: glibc maps the stacks of threads, and the pages behind malloc, that way. free is not among them: what it
 * gives back was counted when it was taken, and the OpenMP runtime's calls of it look like those of the
 * kernel that called the runtime, because they are the last thing that a function of it does. */
#define _GNU_SOURCE
#include "heap_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0
#endif

static atomic_bool counting;
static const void *own_object; /* where the variant's was loaded; written before counting begins */

static struct tally {
  atomic_size_t count;
  const char *_Atomic first;
} by_own, by_library;

bool heap_calls_are_seen(void) { return !HAS_SANITIZER; }

static const void *object_of(const void *code) {
  Dl_info object;
  return dladdr(code, &object) ? object.dli_fbase : NULL;
}

heap_calls heap_calls_of_run(const attn_variant *variant, const attn_problem *problem,
                             const attn_tensors *tensors, void *workspace, int threads) {
  own_object = object_of((const void *)(uintptr_t)variant->run);
  for (bool again = false;; again = true) {
    by_own.count = by_library.count = 0;
    by_own.first = by_library.first = NULL;
    counting = true;
    variant->run(problem, tensors, workspace, threads);
    counting = false;
    if (by_own.count > 0) return (heap_calls){by_own.count, by_own.first};
    if (by_library.count == 0 || again) return (heap_calls){by_library.count, by_library.first};
  }
}

#if !HAS_SANITIZER

/* Whether this code is the OpenMP runtime's (gcc's, LLVM's, Intel's), the dynamic linker's, or OpenBLAS, whose
 * kernel for small matrices takes and returns some 400 bytes for each product (sgemm, 0.3.21, SkylakeX). */
static bool is_of_a_runtime(const void *code) {
  static const char *const names[] = {"libgomp.", "libomp.", "libomp-",     "libiomp5.",
                                      "ld-linux", "ld.so",   "libopenblas."};
  Dl_info object;
  if (!dladdr(code, &object) || !object.dli_fname) return false;
  const char *slash = strrchr(object.dli_fname, '/');
  const char *name = slash ? slash + 1 : object.dli_fname;
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
    if (strncmp(name, names[n], strlen(names[n])) == 0) return true;
  return false;
}

static void note(const char *function, const void *caller) {
  if (!atomic_load_explicit(&counting, memory_order_relaxed) || is_of_a_runtime(caller)) return;
  struct tally *tally = object_of(caller) == own_object ? &by_own : &by_library;
  const char *none = NULL;
  atomic_compare_exchange_strong(&tally->first, &none, function);
  atomic_fetch_add(&tally->count, 1);
}

#define NOTE() note(__func__, __builtin_return_address(0))

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void *__sbrk(intptr_t change);

void *malloc(size_t bytes) {
  NOTE();
  return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes) {
  NOTE();
  return __libc_calloc(number, bytes);
}

void *realloc(void *memory, size_t bytes) {
  NOTE();
  return __libc_realloc(memory, bytes);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes) {
  NOTE();
  return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  NOTE();
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  NOTE();
  if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void *had = __libc_memalign(alignment, bytes);
  if (!had) return ENOMEM;
  *memory = had;
  return 0;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  NOTE();
  return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int file, off64_t offset)
    __attribute__((alias("mmap")));

void *sbrk(intptr_t change) {
  NOTE();
  return __sbrk(change);
}

int brk(void *end) {
  NOTE();
  /* sbrk keeps the end in the C library's own record, which a bare system call would leave stale. */
  char *now = __sbrk(0);
  return now != (void *)-1 && __sbrk((char *)end - now) != (void *)-1 ? 0 : -1;
}

#endif
