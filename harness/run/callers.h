/* Who calls the functions that the program defines in the C library's place (heap_calls.c, thread_watch.c). */
#ifndef ATTN_HARNESS_CALLERS_H
#define ATTN_HARNESS_CALLERS_H

#include <stdbool.h>

/* AddressSanitizer and ThreadSanitizer define these functions themselves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CALLERS_ARE_SEEN 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CALLERS_ARE_SEEN 0
#endif
#endif
#ifndef CALLERS_ARE_SEEN
#define CALLERS_ARE_SEEN 1
#endif

typedef enum caller_kind {
  CALLER_OTHER,   /* a variant's object, or a library behind it */
  CALLER_OPENMP,  /* gcc's, LLVM's and Intel's runtime */
  CALLER_RUNTIME, /* the dynamic linker, and OpenBLAS */
  CALLER_C        /* the C and C++ libraries, where nobody behind them is known */
} caller_kind;

typedef struct caller {
  const void *object; /* where it was loaded; NULL: not known */
  caller_kind kind;
} caller;

/* The object whose code called. code: the address that the call returns to; where that lies in the C or C++ library,
 * whoever called there. */
caller caller_of(const void *code);

/* The object that a function lies in, or NULL. */
const void *caller_object(const void *code);

/* To be called once before the first caller_of where that may not call for memory. */
void callers_prepare(void);

#endif
