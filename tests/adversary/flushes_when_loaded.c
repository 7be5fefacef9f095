/* A right kernel whose object sets flush-to-zero when it is loaded, as the start file does that gcc 12 links into every
 * shared object for -Ofast (crtfastmath.o). What the program has to do is to put the mode back. */
#define NAME "flushes_when_loaded"
#include "fast_math.c" /* NOLINT(bugprone-suspicious-include): the same kernel, loaded otherwise */

#if defined(__x86_64__)
#include <immintrin.h>
#endif

__attribute__((constructor)) static void flush_denormals(void) {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  __asm__ volatile("msr fpcr, %0" : : "r"(mode | (UINT64_C(1) << 24)));
#endif
}
