/* A product of NVIDIA's cuBLAS, cublasGemmStridedBatchedEx, for who wants to know what two calls of it are worth; where
 * a host compiler reads this, plain loops with what its manual declares: matrices column by column, leading
 * dimensions that are checked, sums in float32. */
#ifndef ATTN_CUDA_MATRIX_LIBRARY_H
#define ATTN_CUDA_MATRIX_LIBRARY_H

#include "cuda.h"

#ifdef __CUDACC__
#include <cublas_v2.h>
/* The library takes memory of its own unless it is given some: so much of a call's workspace, as its manual recommends
 * for all but Hopper. */
constexpr size_t LIBRARY_BYTES = (size_t)4 << 20;
#else
constexpr size_t LIBRARY_BYTES = 0;
#endif

/* count times, `stride` elements apart: c = op(a) b, with op(a) of m x k elements, b of k x n and c of m x n floats;
 * each column by column, a column ld elements from the next. Transposed, a is of k x m. */
struct batched_product {
  attn_type type; /* of a and b */
  bool transposed;
  int64_t m, n, k, count;
  const void *a;
  int64_t lda, stride_a;
  const void *b;
  int64_t ldb, stride_b;
  float *c;
  int64_t ldc, stride_c;
};

#ifdef __CUDACC__

/* One for the process: making it takes memory and a second. NULL: it could not be had. */
static inline cublasHandle_t matrix_library() {
  static cublasHandle_t handle;
  if (!handle && cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) handle = nullptr;
  return handle;
}

/* False where the library refuses. */
static inline bool multiply(const batched_product &of, void *stream, void *workspace) {
  const cudaDataType type = of.type == ATTN_FLOAT32    ? CUDA_R_32F
                            : of.type == ATTN_BFLOAT16 ? CUDA_R_16BF
                                                       : CUDA_R_16F;
  const float one = 1, zero = 0;
  cublasHandle_t handle = matrix_library();
  /* A stream of its own brings memory of the library's own: so that ours is named after it. */
  return handle && cublasSetStream(handle, (cudaStream_t)stream) == CUBLAS_STATUS_SUCCESS &&
         cublasSetWorkspace(handle, workspace, LIBRARY_BYTES) == CUBLAS_STATUS_SUCCESS &&
         cublasGemmStridedBatchedEx(handle, of.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, (int)of.m,
                                    (int)of.n, (int)of.k, &one, of.a, type, (int)of.lda, of.stride_a, of.b,
                                    type, (int)of.ldb, of.stride_b, &zero, of.c, CUDA_R_32F, (int)of.ldc,
                                    of.stride_c, (int)of.count, CUBLAS_COMPUTE_32F,
                                    CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
}

#else

__attribute__((no_sanitize_thread)) static inline bool is_leading_dimension(int64_t ld, int64_t rows) {
  return ld >= (rows > 1 ? rows : 1);
}

__attribute__((no_sanitize_thread)) static inline bool multiply(const batched_product &of, void *, void *) {
  if (of.m < 0 || of.n < 0 || of.k < 0 || of.count < 0 || !is_leading_dimension(of.ldc, of.m) ||
      !is_leading_dimension(of.lda, of.transposed ? of.k : of.m) || !is_leading_dimension(of.ldb, of.k))
    return false;
  for (int64_t z = 0; z < of.count; z++)
    for (int64_t column = 0; column < of.n; column++)
      for (int64_t row = 0; row < of.m; row++) {
        float sum = 0;
        for (int64_t n = 0; n < of.k; n++) {
          const int64_t at = of.transposed ? n + row * of.lda : row + n * of.lda;
          sum += attn_load(of.a, of.type, z * of.stride_a + at) *
                 attn_load(of.b, of.type, z * of.stride_b + n + column * of.ldb);
        }
        of.c[z * of.stride_c + row + column * of.ldc] = sum;
      }
  return true;
}

#endif

#endif
