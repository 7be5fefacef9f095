/* Which tile kernels run: the fastest that the processor has, or the set that the caller names. */
#include <string.h>

#include "tile.h"

enum { MAX_SETS = 8 };

/* Slowest first. */
static size_t available(const tile_kernels *sets[MAX_SETS]) {
  size_t count = 0;
  sets[count++] = &tile_portable;
#ifdef ATTN_X86_64
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets[count++] = &tile_avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    sets[count++] = &tile_avx512;
#endif
  return count;
}

const tile_kernels *tile_select(const char *isa) {
  const tile_kernels *sets[MAX_SETS];
  size_t count = available(sets);
  for (size_t n = 0; isa && n < count; n++)
    if (strcmp(sets[n]->name, isa) == 0) return sets[n];
  return sets[count - 1];
}

const char *const *tile_instruction_sets(void) {
  static const char *names[MAX_SETS + 1];
  const tile_kernels *sets[MAX_SETS];
  size_t count = available(sets);
  for (size_t n = 0; n < count; n++) names[n] = sets[n]->name;
  return names;
}
