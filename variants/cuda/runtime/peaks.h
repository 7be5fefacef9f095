/* What a GPU can do at best: as many multiply-adds in float32 and on the matrix units as its schedulers take, with
 * operands that cost nothing, and reads of memory that no cache holds. Part of device.cu; each measures itself for
 * as long as it is told. Never run on a GPU. */

/* What keeps a compiler from leaving the work out: it cannot know that no sum is this. */
constexpr float NO_SUM = -1.5f;

/* Chains that do not wait for each other, to hide that each multiply-add takes its time. */
constexpr int CHAINS = 16, PEAK_THREADS = 256, PEAK_BLOCKS = 8; /* blocks: of a multiprocessor */

__global__ void float_products(float *to, int rounds) {
  float sums[CHAINS];
  const float factor = 1 - 0x1p-20f * (float)threadIdx.x;
  ATTN_UNROLL
  for (int n = 0; n < CHAINS; n++) sums[n] = (float)n;
  for (int round = 0; round < rounds; round++) {
    ATTN_UNROLL
    for (int n = 0; n < CHAINS; n++) sums[n] = __fmaf_rn(sums[n], factor, 1);
  }
  float sum = 0;
  ATTN_UNROLL
  for (int n = 0; n < CHAINS; n++) sum += sums[n];
  if (sum == NO_SUM) *to = sum;
}
constexpr double FLOAT_FLOPS = 2.0 * CHAINS; /* of a thread and a round */

/* ---- matrix units ---- */

/* Hopper's reach their rate with wgmma alone, which other GPUs do not have. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ATTN_PEAK_OF_WARP_GROUPS 1
#else
#define ATTN_PEAK_OF_WARP_GROUPS 0
#endif

/* Products of a round: each warp makes so many 16 x 8 x 16, or its group of four one 64 x 128 x 16 in as many. */
constexpr int MATRIX_CHAINS = 8, GROUP_PRODUCTS = 4;
constexpr double WARP_FLOPS = MATRIX_CHAINS * 2.0 * 16 * 8 * 16,
                 GROUP_FLOPS = GROUP_PRODUCTS * 2.0 * 64 * 128 * 16;

#if ATTN_PEAK_OF_WARP_GROUPS
/* Rows of 16 elements without a swizzle: cores of 8 rows of 16 bytes, 128 bytes apart along a row, 256 from rows to
 * rows (PTX manual, "Matrix Descriptor Format"). */
__device__ __forceinline__ uint64_t descriptor_of(const void *memory) {
  return (uint64_t)(shared_address(memory) & 0x3ffff) >> 4 | (uint64_t)(128 >> 4) << 16 |
         (uint64_t)(256 >> 4) << 32;
}

#define ATTN_GROUP_PRODUCT(types)                                                                            \
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." types " {"                                     \
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "            \
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "            \
               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"              \
               "}, %64, %65, 1, 1, 1, 0, 0;"                                                                 \
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]),         \
                 "+f"(sum[6]), "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]),       \
                 "+f"(sum[12]), "+f"(sum[13]), "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]),   \
                 "+f"(sum[18]), "+f"(sum[19]), "+f"(sum[20]), "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]),   \
                 "+f"(sum[24]), "+f"(sum[25]), "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]),   \
                 "+f"(sum[30]), "+f"(sum[31]), "+f"(sum[32]), "+f"(sum[33]), "+f"(sum[34]), "+f"(sum[35]),   \
                 "+f"(sum[36]), "+f"(sum[37]), "+f"(sum[38]), "+f"(sum[39]), "+f"(sum[40]), "+f"(sum[41]),   \
                 "+f"(sum[42]), "+f"(sum[43]), "+f"(sum[44]), "+f"(sum[45]), "+f"(sum[46]), "+f"(sum[47]),   \
                 "+f"(sum[48]), "+f"(sum[49]), "+f"(sum[50]), "+f"(sum[51]), "+f"(sum[52]), "+f"(sum[53]),   \
                 "+f"(sum[54]), "+f"(sum[55]), "+f"(sum[56]), "+f"(sum[57]), "+f"(sum[58]), "+f"(sum[59]),   \
                 "+f"(sum[60]), "+f"(sum[61]), "+f"(sum[62]), "+f"(sum[63])                                  \
               : "l"(a), "l"(b))

template <attn_type type>
__device__ __forceinline__ void multiply_add_group(float sum[64], uint64_t a, uint64_t b) {
  if (type == ATTN_BFLOAT16)
    ATTN_GROUP_PRODUCT("bf16.bf16");
  else
    ATTN_GROUP_PRODUCT("f16.f16");
}
#endif

template <attn_type type>
__global__ void __launch_bounds__(PEAK_THREADS) matrix_products(float *to, int rounds) {
  float sum = 0;
#if ATTN_PEAK_OF_WARP_GROUPS
  __shared__ __align__(128) uint16_t operands[128 * 16 * 2];
  for (unsigned n = threadIdx.x; n < sizeof operands / 2; n += blockDim.x) operands[n] = 0x1000;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  const uint64_t a = descriptor_of(operands), b = descriptor_of(operands + 128 * 16);
  float sums[64] = {};
  for (int round = 0; round < rounds; round++) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    ATTN_UNROLL
    for (int n = 0; n < GROUP_PRODUCTS; n++) multiply_add_group<type>(sums, a, b);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  ATTN_UNROLL
  for (int n = 0; n < 64; n++) sum += sums[n];
#else
  const uint32_t a[4] = {threadIdx.x, 1, 2, 3}, b[2] = {threadIdx.x, 5};
  float sums[MATRIX_CHAINS][4] = {};
  for (int round = 0; round < rounds; round++) {
    ATTN_UNROLL
    for (int n = 0; n < MATRIX_CHAINS; n++) multiply_add<type>(sums[n], a, b);
  }
  ATTN_UNROLL
  for (int n = 0; n < MATRIX_CHAINS; n++) sum += sums[n][0] + sums[n][1] + sums[n][2] + sums[n][3];
#endif
  if (sum == NO_SUM) *to = sum;
}

/* ---- reads ---- */

__global__ void read_all(const uint4 *from, size_t count, unsigned *to) {
  unsigned sum = 0;
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t n = (size_t)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
    const uint4 four = from[n];
    sum += four.x ^ four.y ^ four.z ^ four.w;
  }
  if (sum == 0xdeadbeefu) *to = sum;
}

/* ---- rates ---- */

/* launch(rounds), again with ten times the rounds until it takes as long as wanted; units of a round per second. */
template <class Launch> double rate_of(Launch launch, double units, double seconds) {
  cudaEvent_t begun, ended;
  double rate = 0;
  if (cudaEventCreate(&begun) != cudaSuccess) return 0;
  if (cudaEventCreate(&ended) != cudaSuccess) return cudaEventDestroy(begun), 0;
  for (int rounds = 1; rounds <= 100000000; rounds *= 10) {
    float milliseconds = 0;
    cudaEventRecord(begun, launched_on);
    launch(rounds);
    cudaEventRecord(ended, launched_on);
    if (cudaEventSynchronize(ended) != cudaSuccess || cudaGetLastError() != cudaSuccess ||
        cudaEventElapsedTime(&milliseconds, begun, ended) != cudaSuccess)
      break;
    const double taken = 1e-3 * (double)milliseconds;
    if (taken > 0) rate = units * rounds / taken;
    if (taken >= 0.2 * seconds) break;
  }
  cudaEventDestroy(begun);
  cudaEventDestroy(ended);
  return rate;
}

unsigned peak_blocks() { return (unsigned)gpu.multiProcessorCount * PEAK_BLOCKS; }

double float_rate(double seconds) {
  void *to;
  if (cudaMalloc(&to, sizeof(float)) != cudaSuccess) return 0;
  const double rate = rate_of(
      [=](int rounds) {
        float_products<<<peak_blocks(), PEAK_THREADS, 0, launched_on>>>(static_cast<float *>(to), rounds);
      },
      FLOAT_FLOPS * PEAK_THREADS * peak_blocks(), seconds);
  cudaFree(to);
  return rate;
}

template <attn_type type> double matrix_rate(double seconds) {
  void *to;
  if (cudaMalloc(&to, sizeof(float)) != cudaSuccess) return 0;
  /* The code that runs is that of sm_90a on a GPU of that number, and on no other. */
  const bool by_groups = gpu.major == 9 && gpu.minor == 0;
  const double flops = by_groups ? GROUP_FLOPS * (PEAK_THREADS / 128) : WARP_FLOPS * (PEAK_THREADS / 32);
  const double rate = rate_of(
      [=](int rounds) {
        matrix_products<type>
            <<<peak_blocks(), PEAK_THREADS, 0, launched_on>>>(static_cast<float *>(to), rounds);
      },
      flops * peak_blocks(), seconds);
  cudaFree(to);
  return rate;
}

double read_rate(double seconds) {
  const size_t least = (size_t)1 << 30,
               bytes = 16 * (size_t)gpu.l2CacheSize > least ? 16 * (size_t)gpu.l2CacheSize : least;
  void *memory;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) return (void)cudaGetLastError(), 0;
  cudaMemset(memory, 0, bytes);
  const double rate = rate_of(
      [=](int rounds) {
        for (int n = 0; n < rounds; n++)
          read_all<<<peak_blocks(), PEAK_THREADS, 0, launched_on>>>(
              static_cast<const uint4 *>(memory), bytes / sizeof(uint4), static_cast<unsigned *>(memory));
      },
      (double)bytes, seconds);
  cudaFree(memory);
  return rate;
}

const attn_device_peak peaks[] = {{"f32", ATTN_FLOAT32, float_rate},
                                  {"bf16 matrix units", ATTN_BFLOAT16, matrix_rate<ATTN_BFLOAT16>},
                                  {"f16 matrix units", ATTN_FLOAT16, matrix_rate<ATTN_FLOAT16>},
                                  {"read memory", ATTN_ABSENT, read_rate}};
