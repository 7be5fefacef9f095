/* See usual_problems.h. Elsewhere sizes lie beside those at which something ends: a kernel that takes another way where all
 * lengths are whole tiles and the head dimension is 64 or 128 would not take it there. */
#include "usual_problems.h"

#include <assert.h>
#include <stdio.h>

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

/* Each with each; how heads share keys, and the threads, in turn. */
static const char *const bands[] = {"full", "causal", "window:64"};
static const char *const lengths[] = {"T:64", "T:128", "T:256"};
static const char *const dims[] = {"D:64", "D:128"};
static const char *const types[] = {"", "/bf16", "/f16"};
static const char *const heads[] = {"H:2", "H:4/Hkv:2"};
static const int threads[] = {0, 8, 0, 5, 3};
enum { ALIGNED = 3 * 3 * 2 * 3 };

static const char *const others[] = {
    /* head dimensions of models, in each type */
    "causal/B:1/H:2/D:256/T:64/bf16/lse",
    "full/B:1/H:1/D:256/T:128/f16",
    "causal/B:1/H:1/D:256/T:128/lse",
    "causal/B:1/H:2/Hkv:1/D:192/Dv:128/T:192/lse",
    "causal/B:1/H:1/D:192/Dv:128/T:192/bf16",
    "full/B:1/H:4/Hkv:1/D:576/Dv:512/Tq:2/Tk:128/bf16/lse",
    "full/B:1/H:2/D:64/Dv:128/T:128/lse",
    "causal/B:1/H:2/D:128/T:128/rope:half/bf16",
    "full/B:1/H:2/D:128/T:256/blocks:64,64,0.5/lse",
    "causal/B:1/H:4/Hkv:2/D:64/T:64/general/lse",
    "causal/B:1/H:2/D:256/T:64/additive/lse",
    /* long in both directions, or in 16 bits */
    "causal/B:1/H:1/D:8/T:1100/lse",
    "window:200/B:1/H:1/D:8/T:1100/lse",
    "causal/B:1/H:1/D:8/T:1024/bf16",
    "causal_bottom_right/B:1/H:2/D:64/Tq:4/Tk:1024/lse",
    "causal_bottom_right/B:1/H:4/Hkv:1/D:128/Tq:1/Tk:2048/bf16/lse",
    "full/B:1/H:2/D:16/Tq:640/Tk:20/bf16",
    "full/B:1/H:1/D:16/Tq:100/Tk:2200/lse", /* more than 512 keys for each rank of a team of four */
    "full/B:1/H:1/D:16/Tq:2/Tk:16384/bf16/lse",
    "full/B:1/H:1/D:16/Tq:1/Tk:16384/f16/lse",
    /* top-k, blocks, dropout and decoding with what they come with */
    "full/B:1/H:2/D:16/T:100/topk:9/bias:hq/lse",
    "full/B:1/H:2/D:16/T:100/topk:9/softcap:3/lse",
    "full/B:1/H:2/D:16/T:100/topk:9/mask:q/lse",
    "full/B:1/H:2/D:16/T:100/topk:9/sink/weights/lse",
    "full/B:2/H:4/Hkv:2/D:16/T:100/topk:9/lengths:100,40/lse",
    "full/B:2/H:2/D:16/T:140/blocks:32,64,0.5/lengths:140,70/weights/lse",
    "causal/B:1/H:4/Hkv:2/D:16/T:140/blocks:32,64,0.5/softcap:3/rope:half/sink/lse",
    "full/B:2/H:2/D:16/T:100/dropout:0.3/lengths:100,50/lse",
    "full/B:2/H:2/D:16/T:100/dropout:0.3/qlengths:100,50/lse",
    "full/B:2/H:2/D:16/T:100/dropout:0.3/weights/bf16/lse",
    "full/B:1/H:4/Hkv:2/D:16/Tq:1/Tk:100/softcap:3/lse",
    "full/B:2/H:4/Hkv:2/D:16/Tq:1/Tk:100/lengths:100,50/rope:half/lse",
    "causal_bottom_right/B:1/H:2/D:16/Tq:1/Tk:200/see:local:5,0+first:2/lse",
    "full/B:1/H:1/D:16/T:100/see:local:5,0+first:2+strided:9+random:2,16/weights/lse",
    "window:30/B:1/H:2/D:16/T:100/alibi/mask:q/lse",
    "causal/B:2/H:4/Hkv:2/D:16/T:90/docs:30/rope:half/lse",
    /* linear attention: head dimensions of models with whole tiles, each with decay, with states, and without, of heads
     * that share keys and of those that do not */
    "linear/causal/B:1/H:2/D:64/T:256",
    "linear/causal/B:1/H:1/D:128/T:128/bf16",
    "linear/full/B:1/H:4/Hkv:1/D:64/T:256/f16",
    "linear/causal/B:1/H:2/D:64/T:128/decay",
    "linear/causal/B:1/H:2/D:128/T:128/decay",
    "linear/causal/B:1/H:8/Hkv:4/D:64/T:64/decay/bf16",
    "linear/causal/B:1/H:2/D:64/T:128/unnormalised/decay/bf16",
    "linear/causal/B:1/H:2/D:64/T:64/phi:relu/decay/state",
    "linear/causal/B:1/H:4/Hkv:2/D:64/T:64/state",
    "linear/causal/B:1/H:2/D:128/T:64/state",
    "linear/causal/B:1/H:2/D:64/Dv:256/T:64/final_state",
    "linear/causal/B:2/H:2/D:64/Dv:128/T:64/bf16/layout:bthd",
    "linear/causal/B:1/H:2/D:64/T:64/bf16/layout:shifted",
    /* a step of decoding in 16 bits, a part of a sequence, and more keys than 2048, of many heads for few rows alone: the
     * reference takes seconds for all of eight heads */
    "linear/causal/B:1/H:4/Hkv:2/D:64/T:1/state/bf16",
    "linear/causal/B:1/H:2/D:16/Tq:10/Tk:64/decay/final_state",
    "linear/causal/B:1/H:1/D:16/T:2200/final_state",
    "linear/causal/B:1/H:1/D:8/T:2100/decay",
    "linear/causal_bottom_right/B:1/H:8/D:16/Tq:60/Tk:2100/decay",
    /* its backward pass: the same */
    "linear_backward/causal/B:1/H:2/D:64/T:128",
    "linear_backward/causal/B:1/H:2/D:64/T:128/decay",
    "linear_backward/causal/B:1/H:1/D:128/T:64",
    "linear_backward/causal/B:1/H:8/Hkv:1/D:64/T:64",
    "linear_backward/causal/B:1/H:4/Hkv:2/D:64/T:64/state",
    "linear_backward/causal/B:1/H:2/D:64/T:64/decay/state",
    "linear_backward/causal/B:1/H:2/D:16/T:64/decay",
    /* layers: head dimensions of models, features that are more or fewer than those of the heads, heads that share keys,
     * a memory, and more rows than 512 and than 1024 */
    "layer/causal/B:1/H:2/D:64/T:64/biases",
    "layer/causal/B:1/H:2/D:128/T:64/biases",
    "layer/full/B:1/H:2/D:64/M:768/T:64",
    "layer/full/B:1/H:4/D:32/M:64/T:64",
    "layer/causal/B:1/H:8/Hkv:4/D:64/T:64",
    "layer/full/B:1/H:4/Hkv:2/D:16/Tq:20/Tk:30/biases",
    "layer/causal/B:1/H:2/D:16/T:600",
    "layer/causal/B:1/H:2/D:8/T:1100/biases",
    /* backward passes of softmax: head dimensions, lengths, and features in 16 bits */
    "backward/full/B:1/H:2/D:64/T:128",
    "backward/causal/B:1/H:2/Hkv:1/D:64/T:256",
    "backward/causal/B:1/H:2/D:128/T:64",
    "backward/causal/B:1/H:2/Hkv:1/D:128/T:128/bf16",
    "backward/window:64/B:1/H:2/D:128/T:128/f16",
    "backward/causal/B:1/H:1/D:8/T:1024",
    "backward/window:20/B:1/H:2/D:16/T:64/bf16",
    "backward/causal/B:4/H:2/D:16/T:64/sink",
    "backward/full/B:2/H:2/D:16/T:64/sink/lengths:64,30",
    "backward/causal/B:1/H:2/D:16/T:64/bf16/softcap:5/sink",
    "backward/causal/B:1/H:4/Hkv:2/D:16/T:64/bf16/alibi",
    "backward/full/B:2/H:4/Hkv:2/D:16/T:64/bf16/dropout:0.2/lengths:64,30",
    "backward/causal/B:1/H:4/Hkv:2/D:16/Dv:32/T:64/bf16/rope:half",
};

/* With 4 to 8 threads, which share out what one or two take whole, on a machine of any number of processors: of each function
 * heads fewer than they are and rows that they do not divide. */
static const char *const for_many_threads[] = {
    "causal/B:1/H:2/D:64/T:64/additive/lse",
    "causal/B:1/H:2/D:33/T:63/general/lse",
    "linear/causal/B:1/H:2/D:33/T:64/state",
    "linear/causal/B:1/H:1/D:16/T:600/decay",
    "linear_backward/causal/B:1/H:2/D:33/T:64/state",
    "linear_backward/causal/B:1/H:1/D:16/T:130/decay",
    "layer/full/B:1/H:2/D:16/T:63",
    "layer/causal/B:1/H:2/D:33/T:64/biases",
    "backward/causal/B:1/H:2/D:33/T:63",
};
enum { FEWEST_OF_MANY = 4, MOST_OF_MANY = 8 };

int64_t usual_problems_count(void) { return ALIGNED + COUNT(others) + COUNT(for_many_threads); }

planned_problem usual_problem(int64_t n) {
  static_assert(COUNT(bands) * COUNT(lengths) * COUNT(dims) * COUNT(types) == ALIGNED, "each with each");
  if (n >= ALIGNED + COUNT(others)) {
    const int64_t line = n - ALIGNED - COUNT(others);
    return (planned_problem){workload_written(for_many_threads[line]),
                             FEWEST_OF_MANY + (int)(line % (MOST_OF_MANY - FEWEST_OF_MANY + 1)), -1};
  }
  if (n >= ALIGNED)
    return (planned_problem){workload_written(others[n - ALIGNED]), threads[n % COUNT(threads)], -1};
  const int64_t band = n % COUNT(bands), length = n / COUNT(bands) % COUNT(lengths);
  const int64_t dim = n / COUNT(bands) / COUNT(lengths) % COUNT(dims),
                type = n / COUNT(bands) / COUNT(lengths) / COUNT(dims);
  char text[WORKLOAD_NAME_BYTES];
  snprintf(text, sizeof text, "%s/B:1/%s/%s/%s%s/lse", bands[band],
           heads[(band + length + type) % COUNT(heads)], dims[dim], lengths[length], types[type]);
  return (planned_problem){workload_written(text), threads[n % COUNT(threads)], (int)(n + n / COUNT(bands))};
}
