/* See heap_calls.h. The functions below take the places of the C library's, under their second names too; the
 * originals are found behind this program in the order in which objects are searched, or are system calls. What a
 * library calls inside itself is not seen: glibc maps the stacks of threads, and the pages behind malloc, that way.
 * free is not among them: what it gives back was counted when it was taken, and the OpenMP runtime's calls of it look
 * like those of the kernel that called the runtime, because they are the last thing that a function of it does. */
#define _GNU_SOURCE
#include "heap_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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

static struct {
  void *(*malloc)(size_t bytes);
  void *(*calloc)(size_t number, size_t bytes);
  void *(*realloc)(void *memory, size_t bytes);
  void *(*memalign)(size_t alignment, size_t bytes);
  void *(*sbrk)(intptr_t change);
} original;

/* The first call comes before any constructor, when there is one thread only. dlsym itself takes no memory where it
 * finds what it was asked for. */
static void find_originals(void) {
  static const char *const names[] = {"malloc", "calloc", "realloc", "memalign", "sbrk"};
  void *found[sizeof names / sizeof names[0]];
  _Static_assert(sizeof found == sizeof original, "a name for each function");
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
    if (!(found[n] = dlsym(RTLD_NEXT, names[n]))) abort();
  memcpy(&original, found, sizeof original);
}

#define ORIGINAL(function) (original.function ? (void)0 : find_originals(), original.function)

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* What is too large for that stays as it is, and cannot be had. */
static size_t whole_pages(size_t bytes) {
  const size_t page = page_bytes();
  return bytes > SIZE_MAX - page ? bytes : (bytes + page - 1) / page * page;
}

void *malloc(size_t bytes) {
  NOTE();
  return ORIGINAL(malloc)(bytes);
}

void *calloc(size_t number, size_t bytes) {
  NOTE();
  return ORIGINAL(calloc)(number, bytes);
}

void *realloc(void *memory, size_t bytes) {
  NOTE();
  return ORIGINAL(realloc)(memory, bytes);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes) {
  NOTE();
  return ORIGINAL(memalign)(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  NOTE();
  return ORIGINAL(memalign)(alignment, bytes);
}

void *valloc(size_t bytes) {
  NOTE();
  return ORIGINAL(memalign)(page_bytes(), bytes);
}

void *pvalloc(size_t bytes);
void *pvalloc(size_t bytes) {
  NOTE();
  return ORIGINAL(memalign)(page_bytes(), whole_pages(bytes));
}

void *reallocarray(void *memory, size_t number, size_t bytes) {
  size_t all;
  NOTE();
  if (!__builtin_mul_overflow(number, bytes, &all)) return ORIGINAL(realloc)(memory, all);
  errno = ENOMEM;
  return NULL;
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  NOTE();
  if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void *had = ORIGINAL(memalign)(alignment, bytes);
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
  return ORIGINAL(sbrk)(change);
}

int brk(void *end) {
  NOTE();
  /* sbrk keeps the end in the C library's own record, which a bare system call would leave stale. */
  char *now = ORIGINAL(sbrk)(0);
  return now != (void *)-1 && ORIGINAL(sbrk)((char *)end - now) != (void *)-1 ? 0 : -1;
}

/* ---- their second names ---- */

#define SECOND_NAME(function, parameters, value)                                                             \
  void *function parameters;                                                                                 \
  void *function parameters {                                                                                \
    NOTE();                                                                                                  \
    return value;                                                                                            \
  }

SECOND_NAME(__libc_malloc, (size_t bytes), ORIGINAL(malloc)(bytes))
SECOND_NAME(__libc_calloc, (size_t number, size_t bytes), ORIGINAL(calloc)(number, bytes))
SECOND_NAME(__libc_realloc, (void *memory, size_t bytes), ORIGINAL(realloc)(memory, bytes))
SECOND_NAME(__libc_memalign, (size_t alignment, size_t bytes), ORIGINAL(memalign)(alignment, bytes))
SECOND_NAME(__libc_valloc, (size_t bytes), ORIGINAL(memalign)(page_bytes(), bytes))
SECOND_NAME(__libc_pvalloc, (size_t bytes), ORIGINAL(memalign)(page_bytes(), whole_pages(bytes)))
SECOND_NAME(__sbrk, (intptr_t change), ORIGINAL(sbrk)(change))

#endif
