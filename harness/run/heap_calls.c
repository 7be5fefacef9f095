/* See heap_calls.h. The functions below take the places of the C library's, which are reached under their
 * second names or, where they have none, by the system call. What a library calls inside itself is not
 * seen: glibc maps the stacks of threads, and the pages behind malloc, that way. free is not among them: what it
 * gives back was counted when it was taken, and the OpenMP runtime's calls of it look like those of the
 * kernel that called the runtime, because they are the last thing that a function of it does. */
#define _GNU_SOURCE
#include "heap_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
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

static struct counter {
  atomic_size_t count;
  const char *_Atomic first;
} by_own, by_library;

bool heap_calls_are_seen(void) { return !HAS_SANITIZER; }

static const void *object_of(const void *code) {
  Dl_info object;
  return dladdr(code, &object) ? object.dli_fbase : NULL;
}

void heap_calls_start(const void *code) {
  void *frame;
  backtrace(&frame, 1); /* its first call loads what it needs, from the heap */
  own_object = object_of(code);
  by_own.count = by_library.count = 0;
  by_own.first = by_library.first = NULL;
  counting = true;
}

heap_counts heap_calls_stop(void) {
  counting = false;
  return (heap_counts){{by_own.count, by_own.first}, {by_library.count, by_library.first}};
}

#if !HAS_SANITIZER

/* Whether this object is one of these, by the beginnings of their names. */
static bool is_one_of(const Dl_info *object, const char *const *names, size_t count) {
  const char *slash = object->dli_fname ? strrchr(object->dli_fname, '/') : NULL;
  const char *name = slash ? slash + 1 : object->dli_fname ? object->dli_fname : "";
  for (size_t n = 0; n < count; n++)
    if (strncmp(name, names[n], strlen(names[n])) == 0) return true;
  return false;
}

/* The object that made this call; where it lies in the C library, the one that called that. */
static bool find_caller(const void *code, Dl_info *object) {
  static const char *const names[] = {"libc.so.", "libc-2"};
  void *frames[32];
  if (!dladdr(code, object)) return false;
  if (!is_one_of(object, names, 2)) return true;
  const int count = backtrace(frames, sizeof frames / sizeof frames[0]);
  int n = 0;
  while (n < count && frames[n] != code) n++;
  for (; n < count; n++)
    if (dladdr(frames[n], object) && !is_one_of(object, names, 2)) return true;
  return false;
}

static void note(const char *function, const void *code) {
  /* gcc's, LLVM's and Intel's OpenMP; the dynamic linker; OpenBLAS, whose kernel for small matrices takes and
   * returns some 400 bytes for each product (sgemm, 0.3.21, SkylakeX). */
  static const char *const runtimes[] = {"libgomp.", "libomp.", "libomp-",     "libiomp5.",
                                         "ld-linux", "ld.so",   "libopenblas."};
  Dl_info caller;
  if (!atomic_load_explicit(&counting, memory_order_relaxed)) return;
  const bool known = find_caller(code, &caller);
  if (known && is_one_of(&caller, runtimes, sizeof runtimes / sizeof runtimes[0])) return;
  struct counter *counter = known && caller.dli_fbase == own_object ? &by_own : &by_library;
  const char *none = NULL;
  atomic_compare_exchange_strong(&counter->first, &none, function);
  atomic_fetch_add(&counter->count, 1);
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
