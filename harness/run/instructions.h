/* How many instructions a kernel takes, counted by valgrind's callgrind: the same number in every run with
 * the same compiler and libraries, whatever else the machine does. Only the kernel is counted, on one
 * thread. A few hundred instructions are OpenMP's and depend on the points that were counted before.
 * Instructions are not time, but their growth in T is the growth of the work. */
#ifndef ATTN_HARNESS_INSTRUCTIONS_H
#define ATTN_HARNESS_INSTRUCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugins.h"

typedef struct instruction_point {
  const char *variant;
  const char *problem;   /* a workload in words, without the variant's name */
  uint64_t instructions; /* filled by instructions_count */
} instruction_point;

enum { INSTRUCTIONS_MAX_POINTS = 256, INSTRUCTIONS_ISA_BYTES = ISA_NAME_BYTES };

/* NULL when instructions can be counted here, else the reason in words. */
const char *instructions_unavailable(void);

/* Counts all points in one run of the program (the path of an attnbench) under valgrind. plugin: the shared
 * object that all variants are taken from, NULL: the program's own. isa: the instruction set to hold
 * them to, NULL: the fastest that valgrind knows (it knows no AVX-512); used_isa: the one that was
 * used. A point takes about 50 times as long as in a plain run. False, with the reason in words. */
bool instructions_count(const char *program, const char *plugin, const char *isa, instruction_point *points,
                        size_t count, char used_isa[INSTRUCTIONS_ISA_BYTES], char *why, size_t why_size);

/* The command count-instructions, which runs under valgrind: words are variants, each with a problem; plugin as
 * above. An exit status. */
int instructions_child(const char *plugin, const char *const *words, size_t count);

#endif
