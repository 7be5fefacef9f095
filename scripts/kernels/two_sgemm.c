/* How much of blas' time its two products take alone: runs the variant and the bare sgemm calls of its
 * shapes, whole heads, in turn and prints the median of their ratio with its quartiles.
 * Usage: two_sgemm VARIANTS.so T D */
#include <cblas.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../variants/attention.h"

enum { ROUNDS = 41 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static float *numbers(size_t count) {
  float *x = aligned_alloc(4096, (count * sizeof *x + 4095) / 4096 * 4096);
  for (size_t n = 0; x && n < count; n++) x[n] = (float)rand() / (float)RAND_MAX - 0.5f;
  return x;
}

static const attn_variant *find_blas(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  const attn_table *table = library ? dlsym(library, "attn_plugin") : NULL;
  for (uint32_t n = 0; table && n < table->count; n++)
    if (strcmp(table->variants[n]->name, "blas") == 0) return table->variants[n];
  return NULL;
}

int main(int count, char **argument) {
  const int T = count == 4 ? atoi(argument[2]) : 0, D = count == 4 ? atoi(argument[3]) : 0;
  const attn_variant *blas = T > 0 && T <= 16384 && D > 0 && D <= 1024 ? find_blas(argument[1]) : NULL;
  if (!blas) {
    fprintf(stderr, "usage: two_sgemm VARIANTS.so T D, with a build that has blas\n");
    return 2;
  }
  attn_problem problem = {.batch = 1, .query_heads = 1, .kv_heads = 1, .scale = 0.125};
  problem.query_length = problem.key_length = T;
  problem.head_dim = problem.value_dim = D;
  problem.left = problem.right = ATTN_UNLIMITED;
  problem.query = problem.key = problem.value = problem.output = attn_packed(1, T, D);
  const size_t size = (size_t)T * (size_t)D;
  float *query = numbers(size), *key = numbers(size), *value = numbers(size), *output = numbers(size);
  float *workspace = numbers(blas->workspace_size(&problem, 1) / sizeof(float) + (size_t)T * (size_t)T);
  if (!query || !key || !value || !output || !workspace) return 2;
  const attn_tensors tensors = {.query = query, .key = key, .value = value, .output = output};
  double share[ROUNDS];
  openblas_set_num_threads(1);
  for (int round = 0; round < ROUNDS; round++) {
    const double start = seconds();
    blas->run(&problem, &tensors, workspace, 1);
    const double middle = seconds();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, T, T, D, 0.125f, query, D, key, D, 0, workspace, T);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, T, D, T, 1, workspace, T, value, D, 0, output, D);
    share[round] = (seconds() - middle) / (middle - start);
  }
  qsort(share, ROUNDS, sizeof *share, compare);
  printf("%.3f [%.3f, %.3f]\n", share[ROUNDS / 2], share[ROUNDS / 4], share[ROUNDS * 3 / 4]);
  return 0;
}
