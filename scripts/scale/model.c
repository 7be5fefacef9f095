/* See model.h. The variants of a team come from their own sources, and so does how blocks are cut and whom they meet
 * (variants/team/block.c). Only the loops over elements are not run: the linker puts these functions in their place
 * (--wrap), which spend as much simulated time. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "variants/team/block.h"

enum { MOST_SIZES = 32, TABLES = 3 };

/* Seconds of a core for each pair of a query and a key that sees it, and each feature of D + Dv, by how long the block is: all
 * pairs of a square, those below its diagonal, and one query's. */
typedef enum table_id { FULL, CAUSAL, DECODE } table_id;
static const char *const table_words[TABLES] = {"full", "causal", "decode"};
typedef struct table {
  int sizes;
  double size[MOST_SIZES], seconds[MOST_SIZES];
} table;

static table tables[TABLES];
static double copy_seconds, join_seconds, finish_seconds; /* of a byte; of an element of an output row */
static model_node node = {1, 0, 0};
static model_spend *spend_seconds;
static size_t copied;

/* "full 256 1.1e-11", or "copy 3e-11"; the rest is the platform's. */
static bool read_row(const char *words) {
  static const struct {
    const char *name;
    double *seconds;
  } numbers[] = {{"copy", &copy_seconds}, {"join", &join_seconds}, {"finish", &finish_seconds}};
  const size_t length = strcspn(words, " ");
  char *end;
  const double first = strtod(words + length, &end), second = strtod(end, NULL);
  for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
    if (strncmp(words, numbers[n].name, length) == 0) *numbers[n].seconds = first;
  for (int t = 0; t < TABLES; t++) {
    table *to = &tables[t];
    if (strncmp(words, table_words[t], length) != 0) continue;
    if (to->sizes == MOST_SIZES || first <= 0 || second <= 0) return false;
    to->size[to->sizes] = first;
    to->seconds[to->sizes++] = second;
  }
  return true;
}

bool model_read(const char *file, model_node of) {
  char words[256];
  FILE *in = fopen(file, "r");
  bool sound = in != NULL;
  node = of;
  while (sound && fgets(words, sizeof words, in)) sound = read_row(words);
  if (in) fclose(in);
  for (int t = 0; t < TABLES; t++) sound &= tables[t].sizes > 0;
  sound &= copy_seconds > 0 && join_seconds > 0 && finish_seconds > 0;
  if (!sound) fprintf(stderr, "scale: %s is not a table of rates\n", file);
  return sound;
}

/* Between two measured sizes along a straight line of both logarithms; beyond them as at the last. */
static double look_up(const table *of, double size) {
  if (size <= of->size[0]) return of->seconds[0];
  for (int n = 1; n < of->sizes; n++) {
    if (size > of->size[n]) continue;
    const double part = log(size / of->size[n - 1]) / log(of->size[n] / of->size[n - 1]);
    return of->seconds[n - 1] * pow(of->seconds[n] / of->seconds[n - 1], part);
  }
  return of->seconds[of->sizes - 1];
}

/* Beyond the largest block below a diagonal that was measured: such blocks along it, and full ones under them. */
static double look_up_causal(double size) {
  const table *of = &tables[CAUSAL];
  const double largest = of->size[of->sizes - 1];
  if (size <= largest) return look_up(of, size);
  return look_up(of, largest) * largest / size + look_up(&tables[FULL], size) * (1 - largest / size);
}

/* Pairs of n queries and m keys where query i sees keys up to i + offset, or all. */
static double pairs_of(const attn_problem *p, int64_t n, int64_t m, int64_t offset) {
  if (p->right == ATTN_UNLIMITED) return (double)n * (double)m;
  const int64_t first = attn_larger(-offset, 0);          /* the first that sees a key */
  const int64_t all = attn_larger(m - 1 - offset, first); /* the first that sees all of them */
  const int64_t growing = attn_larger(attn_smaller(all, n) - first, 0),
                rest = attn_larger(n - attn_larger(all, 0), 0);
  return (double)growing * ((double)(first + offset + 1) + (double)(growing - 1) / 2) +
         (double)rest * (double)m;
}

/* Of one node, for all heads of all entries. */
static double part_seconds(const attn_problem *p, int64_t heads, int64_t n, int64_t m, int64_t offset) {
  const double pairs = pairs_of(p, n, m, offset), all = (double)n * (double)m;
  if (pairs <= 0) return 0;
  const table_id id = n == 1 ? DECODE : pairs < all ? CAUSAL : FULL;
  const double size = n == 1 ? (double)m : sqrt(all), width = (double)(p->head_dim + p->value_dim);
  const double pair_seconds = id == CAUSAL ? look_up_causal(size) : look_up(&tables[id], size);
  const double seconds = pair_seconds * pairs * width * (double)(p->batch * heads) / node.cores;
  if (!node.bytes_per_second || n > 1) return seconds;
  /* One query reads keys and values as fast as memory gives them. Those of a group of heads read the same ones, each anew, for
   * block.c does not stack heads: from memory, where they do not stay in the cache. */
  const double head_bytes = (double)(p->batch * m) * width * (double)block_element_bytes(p->key.type);
  const double once = head_bytes * (double)attn_larger(heads * p->kv_heads / p->query_heads, 1);
  const double bytes = once > node.cache_bytes ? head_bytes * (double)heads : once;
  return fmax(seconds, bytes / node.bytes_per_second);
}

double model_alone_seconds(const attn_problem *p) {
  return part_seconds(p, p->query_heads, p->query_length, p->key_length, p->offset);
}

/* ---- time that is spent ---- */

void model_begin(model_spend *spend) {
  spend_seconds = spend;
  copied = 0;
}

void model_settle(void) {
  const double seconds = (double)copied * copy_seconds / node.cores;
  copied = 0;
  if (seconds > 0) spend_seconds(seconds);
}

static void spend(double seconds) {
  model_settle();
  if (seconds > 0) spend_seconds(seconds);
}

void *model_copy(void *to, const void *from, size_t bytes) {
  (void)from;
  copied += bytes;
  return to;
}

/* ---- in the place of block.h's loops ---- */

void __wrap_block_rows_clear(block_rows *rows);
void __wrap_block_join(block_rows *rows, const block_rows *others);
void __wrap_block_finish(const attn_call *call, const attn_slice *queries, block_rows *rows);
void __wrap_block_attend(const attn_call *call, const attn_slice *queries, const block_keys *keys,
                         const block_scratch *scratch, block_rows *rows);

static void spend_rows(const block_rows *rows, double element_seconds) {
  spend((double)(rows->count * rows->width) * element_seconds / node.cores);
}

/* Measured with what is finished. */
void __wrap_block_rows_clear(block_rows *rows) {
  (void)rows;
  model_settle();
}

void __wrap_block_join(block_rows *rows, const block_rows *others) {
  (void)others;
  spend_rows(rows, join_seconds);
}

void __wrap_block_finish(const attn_call *call, const attn_slice *queries, block_rows *rows) {
  (void)call, (void)queries;
  spend_rows(rows, finish_seconds);
}

void __wrap_block_attend(const attn_call *call, const attn_slice *queries, const block_keys *keys,
                         const block_scratch *scratch, block_rows *rows) {
  const attn_problem *p = call->problem;
  double seconds = 0;
  (void)scratch, (void)rows;
  for (int q = 0; q < queries->runs; q++)
    for (int k = 0; k < keys->slice.runs; k++) {
      const block_part part = block_part_of(queries, q, &keys->slice, k);
      const int64_t offset = block_band_of(p, p->offset, &part).offset;
      if (block_is_seen(p, &part)) seconds += part_seconds(p, p->query_heads, part.n, part.m, offset);
    }
  spend(seconds);
}

/* ---- in the place of tile/schedule.h ---- */

/* fused's own takes what its threads need, which does not travel. */
size_t schedule_workspace_size(const attn_call *call, schedule_choice choose) {
  (void)call, (void)choose;
  return 0;
}

const char *schedule_unsupported(const attn_call *call) {
  (void)call;
  return NULL;
}

void schedule_run(const attn_call *call, schedule_choice choose) {
  const attn_problem *p = call->problem;
  (void)choose;
  spend(part_seconds(p, p->query_heads, p->query_length, p->key_length, p->offset));
}

void schedule_run_part(const attn_call *call, schedule_choice choose, float *sums) {
  (void)call, (void)choose, (void)sums;
  abort(); /* block_attend would have called it */
}
