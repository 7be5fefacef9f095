/* The loops are written out in assembly: a compiler may spill, merge, fuse or drop the operations of the same loop in
 * C, and then the "peak" is one of that compiler. Registers 0 to 11 hold a chain each, x = x/2 + 1/2, which stays at
 * 1: zeros or numbers too small would draw less power or run slower. Twelve chains hide the latency of two units for
 * 4 to 5 cycles, twice as many that of pairs, 6 on a Zen 5; reads need no sum, so their loops only load. None needs a
 * compiler flag, and none is entered on a processor without its instructions. */
#include "peak_loops.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const float half = 0.5f;

/* The instruction for each register of the list, whose number is \each. */
#define EACH(list, instruction) ".irp each," list "\n" instruction "\n.endr\n"
#define CHAINS "0,1,2,3,4,5,6,7,8,9,10,11"
#define PAIR_CHAINS CHAINS ",13,14,15,16,17,18,19,20,21,22,23,24"
enum { CHAIN_COUNT = 12, PAIR_CHAIN_COUNT = 24 };

#if defined(__x86_64__)

#define CLOBBERS                                                                                             \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
      "cc", "memory"

/* One instruction to a line, as they run. */
/* clang-format off */

/* Register 12 is 1/2 in every lane. SSE2 has no multiply-add, so it takes two instructions. */
static void multiply_add_sse2(int64_t rounds) {
  __asm__ volatile("movss %1, %%xmm12\n"
                   "shufps $0, %%xmm12, %%xmm12\n"
                   EACH(CHAINS, "movaps %%xmm12, %%xmm\\each")
                   ".p2align 6\n"
                   "1:\n"
                   EACH(CHAINS, "mulps %%xmm12, %%xmm\\each")
                   EACH(CHAINS, "addps %%xmm12, %%xmm\\each")
                   "dec %0\n"
                   "jnz 1b\n"
                   : "+r"(rounds) : "m"(half) : CLOBBERS);
}

static void multiply_add_avx2(int64_t rounds) {
  __asm__ volatile("vbroadcastss %1, %%ymm12\n"
                   EACH(CHAINS, "vmovaps %%ymm12, %%ymm\\each")
                   ".p2align 6\n"
                   "1:\n"
                   EACH(CHAINS, "vfmadd213ps %%ymm12, %%ymm12, %%ymm\\each")
                   "dec %0\n"
                   "jnz 1b\n"
                   "vzeroupper\n"
                   : "+r"(rounds) : "m"(half) : CLOBBERS);
}

static void multiply_add_avx512(int64_t rounds) {
  __asm__ volatile("vbroadcastss %1, %%zmm12\n"
                   EACH(CHAINS, "vmovaps %%zmm12, %%zmm\\each")
                   ".p2align 6\n"
                   "1:\n"
                   EACH(CHAINS, "vfmadd213ps %%zmm12, %%zmm12, %%zmm\\each")
                   "dec %0\n"
                   "jnz 1b\n"
                   "vzeroupper\n"
                   : "+r"(rounds) : "m"(half) : CLOBBERS);
}

/* Pairs of bfloat16, each 1/2: every round adds 1/2 to a chain, until that no longer counts. */
static void multiply_add_avx512_bf16(int64_t rounds) {
  static const uint32_t halves = 0x3f003f00;
  __asm__ volatile("vpbroadcastd %1, %%zmm12\n"
                   EACH(PAIR_CHAINS, "vmovaps %%zmm12, %%zmm\\each")
                   ".p2align 6\n"
                   "1:\n"
                   EACH(PAIR_CHAINS, "vdpbf16ps %%zmm12, %%zmm12, %%zmm\\each")
                   "dec %0\n"
                   "jnz 1b\n"
                   "vzeroupper\n"
                   : "+r"(rounds) : "m"(halves) : "xmm13", "xmm14", "xmm15", CLOBBERS);
  /* The compiler has no use for registers above 15 here. */
}

/* Tiles of 16 rows of 16 pairs, each half of one 1/2: six of sums, which hide the latency, by the seventh and eighth. All
 * their rows are loaded from the same place. */
#define TILE_CHAINS "0,1,2,3,4,5"
enum { TILE_CHAIN_COUNT = 6 };
static void multiply_add_avx512_amx(int64_t rounds) {
  /* Palette 1; from byte 16 the bytes of a row of each tile, in two bytes; from byte 48 the rows of each. */
  uint8_t tiles[64] = {1};
  uint32_t halves[16];
  for (int n = 0; n < 8; n++) tiles[16 + 2 * n] = 64, tiles[48 + n] = 16;
  for (int n = 0; n < 16; n++) halves[n] = 0x3f003f00;
  __asm__ volatile("ldtilecfg %1\n"
                   "tileloadd (%2,%3,1), %%tmm6\n"
                   "tileloadd (%2,%3,1), %%tmm7\n"
                   EACH(TILE_CHAINS, "tilezero %%tmm\\each")
                   ".p2align 6\n"
                   "1:\n"
                   EACH(TILE_CHAINS, "tdpbf16ps %%tmm7, %%tmm6, %%tmm\\each")
                   "dec %0\n"
                   "jnz 1b\n"
                   "tilerelease\n"
                   : "+r"(rounds) : "m"(tiles), "r"(halves), "r"((int64_t)0) : "cc", "memory");
}

/* Linux leaves the tiles to a process that has asked for them. */
static bool has_tiles(void) {
  enum { FEATURES = 7, BFLOAT16_TILES = 1 << 22, TILES = 1 << 24, ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
  unsigned a, b, c, d;
  return __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) && (d & BFLOAT16_TILES) && (d & TILES) &&
         syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}

/* 128 bytes from an address on, so many bytes with each load. */
#define LOADS(load, width, address)                                                                          \
  ".set offset, 0\n"                                                                                         \
  ".rept 128 / " #width "\n"                                                                                 \
  load(address) "\n"                                                                                         \
  ".set offset, offset + " #width "\n"                                                                       \
  ".endr\n"

#define READ_LOOP(name, load, width, finish)                                                                 \
  static void name(const void *data, size_t rounds, size_t pitch, size_t advance) {                          \
    __asm__ volatile(".p2align 6\n"                                                                          \
                     "1:\n"                                                                                  \
                     LOADS(load, width, "(%0)")                                                              \
                     LOADS(load, width, "(%0, %2)")                                                          \
                     LOADS(load, width, "(%0, %2, 2)")                                                       \
                     LOADS(load, width, "(%0, %3)")                                                          \
                     "add %4, %0\n"                                                                          \
                     "dec %1\n"                                                                              \
                     "jnz 1b\n" finish                                                                       \
                     : "+r"(data), "+r"(rounds)                                                              \
                     : "r"(pitch), "r"(3 * pitch), "r"(advance)                                              \
                     : CLOBBERS);                                                                            \
  }

#define LOAD_16(address) "movaps offset" address ", %%xmm0"
#define LOAD_32(address) "vmovaps offset" address ", %%ymm0"
#define LOAD_64(address) "vmovaps offset" address ", %%zmm0"

READ_LOOP(read_sse2, LOAD_16, 16, "")
READ_LOOP(read_avx2, LOAD_32, 32, "vzeroupper\n")
READ_LOOP(read_avx512, LOAD_64, 64, "vzeroupper\n")

/* clang-format on */

size_t peak_loops_available(peak_loops loops[PEAK_MAX_LOOPS]) {
  size_t count = 0;
  loops[count++] = (peak_loops){"portable", ATTN_FLOAT32, 2 * 4 * CHAIN_COUNT, multiply_add_sse2, read_sse2};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    loops[count++] = (peak_loops){"avx2", ATTN_FLOAT32, 2 * 8 * CHAIN_COUNT, multiply_add_avx2, read_avx2};
  if (__builtin_cpu_supports("avx512f"))
    loops[count++] =
        (peak_loops){"avx512", ATTN_FLOAT32, 2 * 16 * CHAIN_COUNT, multiply_add_avx512, read_avx512};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16"))
    loops[count++] = (peak_loops){"avx512_bf16", ATTN_BFLOAT16, 2 * 32 * PAIR_CHAIN_COUNT,
                                  multiply_add_avx512_bf16, read_avx512};
  if (__builtin_cpu_supports("avx512f") && has_tiles()) {
    const double flops = 2 * 16 * 16 * 32 * TILE_CHAIN_COUNT;
    loops[count++] = (peak_loops){"avx512_amx", ATTN_BFLOAT16, flops, multiply_add_avx512_amx, read_avx512};
    /* A float16 is two bfloat16, and a product of two of these four. */
    loops[count++] =
        (peak_loops){"avx512_amx_f16", ATTN_FLOAT16, flops / 4, multiply_add_avx512_amx, read_avx512};
  }
  return count;
}

#elif defined(__aarch64__)

#define CLOBBERS                                                                                             \
  "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v16", "v17", "v18", "v19",      \
      "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v30", "v31", "cc", "memory"

/* One instruction to a line, as they run. */
/* clang-format off */

/* Four units of 4 cycles need sixteen chains, so there are two dozen. Each adds 1/4 a round: it ends at
 * 2^22, where a quarter no longer counts. */
#define MORE_CHAINS "16,17,18,19,20,21,22,23,24,25,26,27"

static void multiply_add_neon(int64_t rounds) {
  __asm__ volatile("dup v30.4s, %1.s[0]\n"
                   EACH(CHAINS, "mov v\\each\\().16b, v30.16b")
                   EACH(MORE_CHAINS, "mov v\\each\\().16b, v30.16b")
                   ".p2align 6\n"
                   "1:\n"
                   EACH(CHAINS, "fmla v\\each\\().4s, v30.4s, v30.4s")
                   EACH(MORE_CHAINS, "fmla v\\each\\().4s, v30.4s, v30.4s")
                   "subs %0, %0, #1\n"
                   "b.ne 1b\n"
                   : "+r"(rounds) : "w"(half) : CLOBBERS);
}

#define LOADS(base)                                                                                          \
  "ldp q0, q1, [" base "]\n"                                                                                 \
  "ldp q0, q1, [" base ", #32]\n"                                                                            \
  "ldp q0, q1, [" base ", #64]\n"                                                                            \
  "ldp q0, q1, [" base ", #96]\n"

static void read_neon(const void *data, size_t rounds, size_t pitch, size_t advance) {
  const char *first = data, *second = first + pitch, *third = second + pitch, *fourth = third + pitch;
  __asm__ volatile(".p2align 6\n"
                   "1:\n"
                   LOADS("%0")
                   LOADS("%1")
                   LOADS("%2")
                   LOADS("%3")
                   "add %0, %0, %5\n"
                   "add %1, %1, %5\n"
                   "add %2, %2, %5\n"
                   "add %3, %3, %5\n"
                   "subs %4, %4, #1\n"
                   "b.ne 1b\n"
                   : "+r"(first), "+r"(second), "+r"(third), "+r"(fourth), "+r"(rounds)
                   : "r"(advance)
                   : CLOBBERS);
}

/* clang-format on */

size_t peak_loops_available(peak_loops loops[PEAK_MAX_LOOPS]) {
  loops[0] = (peak_loops){"portable", ATTN_FLOAT32, 2 * 4 * 2 * CHAIN_COUNT, multiply_add_neon, read_neon};
  return 1;
}

#else
#error "the peaks are measured on x86-64 and aarch64 only"
#endif
