/* Which tile kernels run: the fastest that the processor has, or the set that the caller names. */
#include <string.h>
#ifdef ATTN_X86_64
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#ifdef ATTN_AARCH64
#include <sys/auxv.h>
#endif

#include "tile.h"

extern const tile_kernels tile_portable[], tile_emulated_bf16, tile_emulated_amx, tile_emulated_amx_parts;
#ifdef ATTN_X86_64
extern const tile_kernels tile_avx2[], tile_avx512[], tile_avx512_bf16, tile_avx512_amx,
    tile_avx512_amx_parts;
#endif
#ifdef ATTN_AARCH64
extern const tile_kernels tile_neon[], tile_neon_bf16;
#endif

enum { MAX_SETS = 8 };

/* Kernels of an instruction set: for each type with products of floats, and with products of bfloat16 where it has
 * them, or of float16 in parts of these. A set that adds these to another, whose floats it has, has nothing else of its own. */
typedef struct instruction_set {
  const char *name;
  const tile_kernels *floats, *bfloat16, *parts;
} instruction_set;

#ifdef ATTN_X86_64
/* Linux leaves the tiles to a process that has asked for them, since all its threads then have 8 KiB more to save. The
 * answer is of the process, so that it is enough to ask once. */
static bool has_tiles(void) {
  enum {
    FEATURES = 7,
    BFLOAT16_TILES = 1 << 22,
    TILES = 1 << 24,
    ARCH_REQ_XCOMP_PERM = 0x1023,
    TILE_DATA = 18
  };
  enum { UNKNOWN, NO, YES };
  static _Atomic int answer = UNKNOWN;
  if (answer == UNKNOWN) {
    unsigned a, b, c, d;
    const bool exist = __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) && (d & BFLOAT16_TILES) && (d & TILES);
    answer = exist && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 ? YES : NO;
  }
  return answer == YES;
}
#endif

/* Slowest first. */
static size_t available(instruction_set sets[MAX_SETS]) {
  size_t count = 0;
  sets[count++] =
      (instruction_set){"emulated_amx", tile_portable, &tile_emulated_amx, &tile_emulated_amx_parts};
  sets[count++] = (instruction_set){"emulated_bf16", tile_portable, &tile_emulated_bf16, NULL};
  sets[count++] = (instruction_set){"portable", tile_portable, NULL, NULL};
#ifdef ATTN_X86_64
  __builtin_cpu_init();
  /* F16C came before AVX2; clang 14 cannot ask for it. */
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    sets[count++] = (instruction_set){"avx2", tile_avx2, NULL, NULL};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    sets[count++] = (instruction_set){"avx512", tile_avx512, NULL, NULL};
    if (__builtin_cpu_supports("avx512bf16")) {
      sets[count++] = (instruction_set){"avx512_bf16", tile_avx512, &tile_avx512_bf16, NULL};
      if (has_tiles())
        sets[count++] =
            (instruction_set){"avx512_amx", tile_avx512, &tile_avx512_amx, &tile_avx512_amx_parts};
    }
  }
#endif
#ifdef ATTN_AARCH64
  if (getauxval(AT_HWCAP) & HWCAP_ASIMD) {
    sets[count++] = (instruction_set){"neon", tile_neon, NULL, NULL};
    if (getauxval(AT_HWCAP2) & HWCAP2_BF16)
      sets[count++] = (instruction_set){"neon_bf16", tile_neon, &tile_neon_bf16, NULL};
  }
#endif
  return count;
}

static instruction_set find(const char *isa) {
  instruction_set sets[MAX_SETS];
  const size_t count = available(sets);
  for (size_t n = 0; isa && n < count; n++)
    if (strcmp(sets[n].name, isa) == 0) return sets[n];
  return sets[count - 1];
}

const tile_kernels *tile_select(const char *isa, attn_type type) {
  const instruction_set set = find(isa);
  return type == ATTN_BFLOAT16 && set.bfloat16 ? set.bfloat16 : set.floats + (type - ATTN_FLOAT32);
}

const tile_kernels *tile_select_parts(const char *isa, attn_type type) {
  return type == ATTN_FLOAT16 ? find(isa).parts : NULL;
}

const tile_kernels *tile_select_floats(const char *isa, attn_type type) {
  const tile_kernels *floats = find(isa).floats;
  return floats + (type - ATTN_FLOAT32);
}

const char *tile_refusal(const char *isa, attn_type type) {
  return isa && find(isa).bfloat16 && type != ATTN_BFLOAT16
             ? "has nothing of its own there: this instruction set multiplies bfloat16"
             : NULL;
}

const char *const *tile_instruction_sets(void) {
  static const char *names[MAX_SETS + 1];
  instruction_set sets[MAX_SETS];
  const size_t count = available(sets);
  for (size_t n = 0; n < count; n++) names[n] = sets[n].name;
  return names;
}
