/* Says which variant and problem ran when a kernel crashes, instead of a bare signal. */
#ifndef ATTN_HARNESS_CRASH_H
#define ATTN_HARNESS_CRASH_H

/* Catches SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT from now on. On one of them, prints
 * "attnbench: variant 'x' crashed (SIGSEGV: ...) on PROBLEM" with the command that runs it alone, and
 * ends the process with status 1. */
void crash_install(void);

/* From now on a crash does not end the process after its report, which then lacks the command: it becomes
 * `PROGRAM fuzz --problem ...`, which shrinks the problem. Any thread may crash in any state, so nothing less than a fresh program will
 * do. The path is kept, not copied. */
void crash_shrinks(const char *program);

/* What runs from now on; the texts are copied. A variant of NULL: nothing, a signal then keeps its usual
 * meaning. origin: the plugin, NULL for our own variants; isa: NULL when none is forced; threads: as asked. */
void crash_context(const char *variant, const char *problem, const char *origin, const char *isa,
                   int threads);

#endif
