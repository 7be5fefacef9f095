/* See heap_calls.h. The functions below take the places of the C library's, which are reached under their
 * second names or, where they have none, by the system call. What a library calls inside itself is not
 * seen: glibc maps the stacks of threads, and the pages behind malloc, that way. free is not among them: what it
 * gives back was counted when it was taken, and the OpenMP runtime's calls of it look like those of the
 * kernel that called the runtime, because they are the last thing that a function of it does. */
#define _GNU_SOURCE
#include "heap_calls.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "callers.h"

static atomic_bool counting;
static const void *own_object; /* where the variant's was loaded; written before counting begins */

static struct counter {
  atomic_size_t count;
  const char *_Atomic first;
} by_own, by_library;

bool heap_calls_are_seen(void) { return CALLERS_ARE_SEEN; }

void heap_calls_start(const void *code) {
  callers_prepare();
  own_object = caller_object(code);
  by_own.count = by_library.count = 0;
  by_own.first = by_library.first = NULL;
  counting = true;
}

heap_counts heap_calls_stop(void) {
  counting = false;
  return (heap_counts){{by_own.count, by_own.first}, {by_library.count, by_library.first}};
}

#if CALLERS_ARE_SEEN

static void note(const char *function, const void *code) {
  if (!atomic_load_explicit(&counting, memory_order_relaxed)) return;
  const caller caller = caller_of(code);
  if (caller.kind == CALLER_OPENMP || caller.kind == CALLER_RUNTIME) return;
  struct counter *counter = caller.object == own_object ? &by_own : &by_library;
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

void *valloc(size_t bytes) {
  NOTE();
  return __libc_memalign((size_t)sysconf(_SC_PAGESIZE), bytes);
}

void *pvalloc(size_t bytes);
void *pvalloc(size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  NOTE();
  return __libc_memalign(page, bytes > SIZE_MAX - page ? bytes : (bytes + page - 1) / page * page);
}

void *reallocarray(void *memory, size_t number, size_t bytes) {
  size_t all;
  NOTE();
  if (!__builtin_mul_overflow(number, bytes, &all)) return __libc_realloc(memory, all);
  errno = ENOMEM;
  return NULL;
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

int munmap(void *address, size_t bytes) {
  NOTE();
  return (int)syscall(SYS_munmap, address, bytes);
}

void *mremap(void *address, size_t bytes, size_t new_bytes, int flags, ...) {
  va_list more;
  va_start(more, flags);
  void *new_address = (flags & MREMAP_FIXED) ? va_arg(more, void *) : NULL;
  va_end(more);
  NOTE();
  return (void *)syscall(SYS_mremap, address, bytes, new_bytes, flags, new_address);
}

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
