/* Kernels of a team whose ranks each have all queries and a slice of the keys: each solves its part of every row, all send their
 * parts to all, and each merges them in the order of ranks. Alone each of them is right; what they do wrong is in the merge. */
#include <mpi.h>

#include <team.h>

typedef struct kernel {
  const char *name, *summary;
  bool (*merges)(int rank, int of, int ranks); /* whether a rank takes the part of another */
  bool adds_as_they_are;                       /* without bringing sums under one maximum */
} kernel;

static bool all(int rank, int of, int ranks) {
  (void)rank, (void)of, (void)ranks;
  return true;
}

static bool all_but_last(int rank, int of, int ranks) {
  (void)rank;
  return of < ranks - 1 || ranks == 1;
}

/* Who sits beside it in the ring: of up to three ranks all. */
static bool neighbours(int rank, int of, int ranks) {
  const int distance = (of - rank + ranks) % ranks;
  return distance <= 1 || distance == ranks - 1;
}

/* Name and words stand on one line: scripts/adversary.sh reads them here. */
static const kernel kernels[] = {
    {"team_without_maximum", "parts are added whatever maximum each is under", all, true},
    {"team_last_rank", "the part of the last rank is not merged", all_but_last, false},
    {"team_from_4_ranks", "only its neighbours' parts are merged, of up to three ranks all", neighbours,
     false},
};

enum { KERNELS = sizeof kernels / sizeof *kernels };
static attn_variant made[KERNELS];

/* ---- a part: of each row its maximum, the sum of weights under it, and the output of these weights ---- */

static int64_t rows_of(const attn_problem *p) { return p->batch * p->query_heads * p->query_length; }

static int64_t floats_of_part(const attn_problem *p) { return rows_of(p) * (p->value_dim + 2); }

static const float *at(const void *tensor, const attn_layout *s, int64_t b, int64_t h, int64_t i) {
  return (const float *)tensor + b * s->batch + h * s->head + i * s->position;
}

/* Keys from `first` on, which is the position of the first that the rank has. */
static void solve_row(const attn_call *call, int64_t n, const attn_slice *keys, float *part) {
  const attn_problem *p = call->problem;
  const int64_t i = n % p->query_length, h = n / p->query_length % p->query_heads;
  const int64_t b = n / p->query_length / p->query_heads, kv = h / (p->query_heads / p->kv_heads);
  const attn_range seen = attn_visible_keys(p, b, i);
  const float *query = at(call->tensors.query, &p->query, b, h, i);
  float *max = part, *sum = part + 1, *o = part + 2;
  *max = -INFINITY, *sum = 0;
  for (int64_t e = 0; e < p->value_dim; e++) o[e] = 0;
  for (int64_t j = 0; j < keys->length[0]; j++) {
    if (keys->first[0] + j < seen.first || keys->first[0] + j >= seen.end) continue;
    const float *key = at(call->tensors.key, &p->key, b, kv, j);
    const float *value = at(call->tensors.value, &p->value, b, kv, j);
    float score = 0;
    for (int64_t d = 0; d < p->head_dim; d++) score += query[d] * key[d];
    score *= (float)p->scale;
    const float higher = fmaxf(*max, score), before = expf(*max - higher), weight = expf(score - higher);
    *sum = *sum * before + weight;
    for (int64_t e = 0; e < p->value_dim; e++) o[e] = o[e] * before + weight * value[e];
    *max = higher;
  }
}

static void merge_row(const attn_call *call, const kernel *of, int64_t n, const float *parts) {
  const attn_problem *p = call->problem;
  const int64_t i = n % p->query_length, h = n / p->query_length % p->query_heads;
  float *output =
      (float *)(size_t)at(call->tensors.output, &p->output, n / p->query_length / p->query_heads, h, i);
  float max = -INFINITY, sum = 0;
  for (int64_t e = 0; e < p->value_dim; e++) output[e] = 0;
  for (int rank = 0; rank < call->ranks; rank++) {
    const float *part = parts + rank * floats_of_part(p) + n * (p->value_dim + 2);
    if (of->merges(call->rank, rank, call->ranks)) max = fmaxf(max, part[0]);
  }
  for (int rank = 0; rank < call->ranks; rank++) {
    const float *part = parts + rank * floats_of_part(p) + n * (p->value_dim + 2);
    if (part[1] == 0 || !of->merges(call->rank, rank, call->ranks)) continue;
    const float by = of->adds_as_they_are ? 1 : expf(part[0] - max);
    sum += by * part[1];
    for (int64_t e = 0; e < p->value_dim; e++) output[e] += by * part[2 + e];
  }
  for (int64_t e = 0; e < p->value_dim && sum > 0; e++) output[e] /= sum;
}

/* ---- a call ---- */

static attn_slicing of_queries(const attn_call *call) {
  (void)call;
  return ATTN_WHOLE;
}

static attn_slicing of_keys(const attn_call *call) {
  (void)call;
  return ATTN_CONTIGUOUS;
}

static uint64_t sent_bytes(const attn_call *call) {
  return (uint64_t)(call->ranks - 1) * (uint64_t)floats_of_part(call->problem) * sizeof(float);
}

static size_t workspace_size(const attn_call *call) {
  return (size_t)(call->ranks * floats_of_part(call->problem)) * sizeof(float);
}

static const char *unsupported(const attn_call *call) {
  return floats_of_part(call->problem) > INT32_MAX ? "sends no more numbers at a time than an int counts"
                                                   : NULL;
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_slice keys = attn_slice_of(ATTN_CONTIGUOUS, p->key_length, call->rank, call->ranks);
  const int64_t size = floats_of_part(p);
  float *parts = call->workspace, *own = parts + call->rank * size;
  for (int64_t n = 0; n < rows_of(p); n++) solve_row(call, n, &keys, own + n * (p->value_dim + 2));
  for (int step = 1; step < call->ranks; step++) {
    const int to = (call->rank + step) % call->ranks, from = (call->rank + call->ranks - step) % call->ranks;
    MPI_Sendrecv(own, (int)size, MPI_FLOAT, to, step, parts + from * size, (int)size, MPI_FLOAT, from, step,
                 *(const MPI_Comm *)call->communicator, MPI_STATUS_IGNORE);
  }
  for (int64_t n = 0; n < rows_of(p); n++) merge_row(call, &kernels[call->variant - made], n, parts);
}

#define MEMBER(n)                                                                                            \
  { .variant = &made[n], .queries = of_queries, .keys = of_keys, .sent_bytes = sent_bytes }
static const attn_team_member members[KERNELS] = {MEMBER(0), MEMBER(1), MEMBER(2)};
const attn_team_member *const attn_team_members[] = {&members[0], &members[1], &members[2], NULL};
static const attn_variant *variants[KERNELS];

__attribute__((constructor)) static void make(void) {
  for (int n = 0; n < KERNELS; n++) {
    made[n] = (attn_variant){.name = kernels[n].name,
                             .summary = kernels[n].summary,
                             .function = ATTN_SOFTMAX,
                             .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS,
                             .types = 1u << ATTN_FLOAT32,
                             .place = ATTN_TEAM,
                             .traits = ATTN_FINITE,
                             .time_exponent = 2,
                             .unsupported = unsupported,
                             .workspace_size = workspace_size,
                             .run = run};
    variants[n] = &made[n];
  }
}

const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, KERNELS, variants, attn_team_sizes};
