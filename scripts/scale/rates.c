/* What the simulation takes from this machine: how long a core is about a block of queries and keys, by how long that
 * is, to join its rows and to copy them; and how long a message is under way. Two ranks do so at the same time, as
 * they do in a run: what they share (memory, cache, the chip's power) is in the rates.
 *
 *     mpirun -n 2 rates > rates.txt
 *
 * Rows of the table are those that model.c reads; `latency` and `bandwidth` are the platform's that the model is held
 * to. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "variants/elements.h"
#include "variants/team/block.h"

enum { RUNS = 7, RUNS_OF_COPIES = 31, HEAD_DIM = 128, MOST_HEADS = 16 };

/* What is timed is run so often that it takes this long, and each rank the median of RUNS. */
static const double run_seconds = 0.02;

static int rank;

static int by_size(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

/* Of both ranks the slower one's, for whom the other waits. */
static double median_of_slower(double *times, int count) {
  double slowest = 0;
  qsort(times, (size_t)count, sizeof *times, by_size);
  MPI_Allreduce(&times[count / 2], &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

typedef void work(void *of);

/* Seconds of one run of the work, of all ranks at once. */
static double seconds_of(work *run, void *of) {
  double times[RUNS] = {0};
  int repeats = 1;
  run(of);
  for (double taken = 0; taken < run_seconds / 2 && repeats < 1 << 20;
       repeats *= taken < run_seconds / 8 ? 4 : 2) {
    const double start = MPI_Wtime();
    for (int n = 0; n < repeats; n++) run(of);
    taken = MPI_Wtime() - start;
  }
  MPI_Bcast(&repeats, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int n = 0; n < RUNS; n++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int repeat = 0; repeat < repeats; repeat++) run(of);
    times[n] = (MPI_Wtime() - start) / repeats;
  }
  return median_of_slower(times, RUNS);
}

/* No rank goes on without the others. */
static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  if (memory) return memory;
  fprintf(stderr, "scale: no memory for the blocks that are measured\n");
  MPI_Abort(MPI_COMM_WORLD, 2);
  exit(2);
}

/* ---- blocks ---- */

static uint16_t *random_elements(size_t count, uint32_t state) {
  uint16_t *elements = allocate(count * sizeof *elements);
  for (size_t n = 0; n < count; n++) {
    state = state * 1664525 + 1013904223;
    elements[n] = attn_to_bfloat16((float)(state >> 8) / (1 << 23) - 1);
  }
  return elements;
}

typedef struct block {
  attn_problem problem;
  attn_call call;
  attn_slice queries;
  block_keys keys;
  block_rows rows;
  block_scratch scratch;
} block;

static void lay_out(block *of, block_memory *memory) {
  of->rows = block_rows_take(memory, &of->problem, of->problem.query_length);
  of->scratch = block_scratch_take(memory, &of->call, &of->queries, ATTN_CONTIGUOUS);
}

static void attend(void *block_of) {
  block *of = block_of;
  block_attend(&of->call, &of->queries, &of->keys, &of->scratch, &of->rows);
}

/* A single query meets each key once, wherever it lies: in a copy that was just made, as the slices of a run are. */
static double seconds_of_copies(block *of, const void *key, const void *value, size_t bytes) {
  double times[RUNS_OF_COPIES];
  for (int n = 0; n < RUNS_OF_COPIES; n++) {
    void *copies[] = {allocate(bytes), allocate(bytes)};
    of->keys.key = memcpy(copies[0], key, bytes);
    of->keys.value = memcpy(copies[1], value, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    attend(of);
    times[n] = MPI_Wtime() - start;
    free(copies[0]);
    free(copies[1]);
  }
  return median_of_slower(times, RUNS_OF_COPIES);
}

/* Of so many queries and keys; of each pair and feature. */
static double block_seconds(int64_t n, int64_t m, bool causal) {
  const double pairs = causal ? (double)n * (double)(n + 1) / 2 : (double)n * (double)m;
  int64_t heads = MOST_HEADS;
  while (heads > 1 && (double)heads * pairs > 1 << 20) heads /= 2;
  block of = {.problem = {.function = ATTN_SOFTMAX,
                          .features = causal ? ATTN_BAND : 0,
                          .batch = 1,
                          .query_heads = heads,
                          .kv_heads = 1,
                          .query_length = n,
                          .key_length = m,
                          .head_dim = HEAD_DIM,
                          .value_dim = HEAD_DIM,
                          .scale = 0.088,
                          .left = ATTN_UNLIMITED,
                          .right = causal ? 0 : ATTN_UNLIMITED,
                          .query = attn_packed(ATTN_BFLOAT16, heads, n, HEAD_DIM),
                          .key = attn_packed(ATTN_BFLOAT16, 1, m, HEAD_DIM),
                          .value = attn_packed(ATTN_BFLOAT16, 1, m, HEAD_DIM),
                          .output = attn_packed(ATTN_BFLOAT16, heads, n, HEAD_DIM)},
              .queries = attn_slice_of(ATTN_WHOLE, n, 0, 1)};
  uint16_t *query = random_elements((size_t)(heads * n * HEAD_DIM), 1),
           *key = random_elements((size_t)(m * HEAD_DIM), 2),
           *value = random_elements((size_t)(m * HEAD_DIM), 3);
  of.call = (attn_call){
      .size = sizeof of.call, .problem = &of.problem, .threads = 1, .ranks = 1, .tensors = {.query = query}};
  of.keys = (block_keys){attn_slice_of(ATTN_WHOLE, m, 0, 1), key, value, of.problem.key, of.problem.value};
  block_memory memory = {.base = NULL};
  lay_out(&of, &memory);
  memory = (block_memory){.base = allocate(memory.used)};
  lay_out(&of, &memory);
  block_rows_clear(&of.rows);
  const double seconds = n > 1 ? seconds_of(attend, &of)
                               : seconds_of_copies(&of, key, value, (size_t)(m * HEAD_DIM) * sizeof *key);
  free(memory.base);
  free(query);
  free(key);
  free(value);
  return seconds / (pairs * (double)heads * 2 * HEAD_DIM);
}

/* ---- rows ---- */

enum { ROWS = 4096 };

/* Of one run of a rank: cleared first, finished last, joined with others' between. */
typedef struct rows_of {
  attn_problem problem;
  attn_call call;
  attn_slice queries;
  block_rows own, others;
} rows_of;

static void join(void *rows) {
  rows_of *of = rows;
  block_join(&of->own, &of->others);
}

/* Rows that have seen nothing are finished sooner: what stands here is as good as any. */
static void clear_and_finish(void *rows) {
  rows_of *of = rows;
  block_rows_clear(&of->own);
  for (int64_t r = 0; r < ROWS; r++) of->own.sum[r] = 1;
  block_finish(&of->call, &of->queries, &of->own);
}

static block_rows new_rows(const attn_problem *problem, float max) {
  block_memory memory = {.base = NULL};
  block_rows_take(&memory, problem, ROWS);
  memory = (block_memory){.base = allocate(memory.used)};
  block_rows rows = block_rows_take(&memory, problem, ROWS);
  block_rows_clear(&rows);
  for (int64_t r = 0; r < ROWS; r++) rows.max[r] = max, rows.sum[r] = 1;
  return rows;
}

/* Of an element of the output. */
static void measure_rows(double *of_join, double *of_finish) {
  rows_of of = {.problem = {.batch = 1,
                            .query_heads = 1,
                            .query_length = ROWS,
                            .value_dim = HEAD_DIM,
                            .output = attn_packed(ATTN_BFLOAT16, 1, ROWS, HEAD_DIM)},
                .queries = attn_slice_of(ATTN_WHOLE, ROWS, 0, 1)};
  of.call = (attn_call){.size = sizeof of.call,
                        .problem = &of.problem,
                        .tensors = {.output = allocate(sizeof(uint16_t) * ROWS * HEAD_DIM)}};
  of.own = new_rows(&of.problem, 0);
  of.others = new_rows(&of.problem, -1);
  *of_join = seconds_of(join, &of) / (ROWS * HEAD_DIM);
  *of_finish = seconds_of(clear_and_finish, &of) / (ROWS * HEAD_DIM);
  free(of.own.max); /* where the memory begins */
  free(of.others.max);
  free(of.call.tensors.output);
}

enum { COPIED_ROW = HEAD_DIM * 2, COPIED = 1 << 23 };

static void copy(void *two) {
  char **buffers = two;
  for (size_t at = 0; at < COPIED; at += COPIED_ROW) memcpy(buffers[0] + at, buffers[1] + at, COPIED_ROW);
}

static double copy_seconds(void) {
  char *buffers[2] = {allocate(COPIED), allocate(COPIED)};
  memset(buffers[0], 1, COPIED);
  memset(buffers[1], 2, COPIED);
  const double seconds = seconds_of(copy, buffers);
  free(buffers[0]);
  free(buffers[1]);
  return seconds / COPIED;
}

/* ---- messages ---- */

typedef struct message {
  char *buffer;
  int bytes;
} message;

static void there_and_back(void *of_message) {
  const message *of = of_message;
  for (int turn = 0; turn < 2; turn++) {
    if (turn == rank)
      MPI_Send(of->buffer, of->bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
    else
      MPI_Recv(of->buffer, of->bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* Both ranks are to run as often: not seconds_of, whose ranks find out for themselves. */
static double way_seconds(int bytes, int repeats) {
  message of = {allocate((size_t)bytes), bytes};
  double times[RUNS] = {0};
  memset(of.buffer, 1, (size_t)bytes);
  for (int n = -1; n < RUNS; n++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int repeat = 0; repeat < repeats; repeat++) there_and_back(&of);
    if (n >= 0) times[n] = (MPI_Wtime() - start) / (2 * repeats);
  }
  qsort(times, RUNS, sizeof *times, by_size);
  free(of.buffer);
  return times[RUNS / 2];
}

int main(int argc, char **argv) {
  static const int64_t lengths[] = {16, 32, 64, 128, 256, 1024, 4096},
                       keys[] = {64, 256, 1024, 4096, 16384, 65536};
  enum { LENGTHS = sizeof lengths / sizeof *lengths, KEYS = sizeof keys / sizeof *keys };
  int ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) {
    if (rank == 0) fprintf(stderr, "scale: rates are measured by two ranks\n");
    MPI_Finalize();
    return 2;
  }
  for (int n = 0; n < LENGTHS; n++) {
    const double full = block_seconds(lengths[n], lengths[n], false),
                 causal = block_seconds(lengths[n], lengths[n], true);
    if (rank == 0)
      printf("full %lld %.6g\ncausal %lld %.6g\n", (long long)lengths[n], full, (long long)lengths[n],
             causal);
  }
  for (int n = 0; n < KEYS; n++) {
    const double seconds = block_seconds(1, keys[n], false);
    if (rank == 0) printf("decode %lld %.6g\n", (long long)keys[n], seconds);
  }
  double of_join, of_finish;
  measure_rows(&of_join, &of_finish);
  const double of_copy = copy_seconds();
  enum { SHORT = 8, LONG = 1 << 20, LONGER = 1 << 22 };
  const double latency = way_seconds(SHORT, 2000), a = way_seconds(LONG, 20), b = way_seconds(LONGER, 10);
  if (rank == 0)
    printf("join %.6g\nfinish %.6g\ncopy %.6g\nlatency %.6g\nbandwidth %.6g\n", of_join, of_finish, of_copy,
           latency, (LONGER - LONG) / (b - a));
  MPI_Finalize();
  return 0;
}
