/* See layer_problems.h: what can go wrong around attention; attention itself has the rest of the grid. */
#include "layer_problems.h"

#include <stdio.h>

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

static const char *const single[] = {
    /* nothing at all, one of each */
    "layer/full/B:1/H:1/D:1/M:1/T:1",
    "layer/full/B:0/H:2/D:8/T:5/biases",
    "layer/full/B:1/H:0/Hkv:0/D:8/M:5/T:5/biases",
    "layer/full/B:1/H:2/D:8/Tq:0/Tk:5",
    "layer/full/B:1/H:2/D:8/Tq:5/Tk:0/biases",
    "layer/full/B:1/H:2/D:8/Dv:0/M:7/T:5/biases",
    "layer/full/B:1/H:2/D:8/Dv:1/T:5",
    /* features that come in, of the heads, and of values: none is another */
    "layer/causal/B:1/H:3/D:20/M:33/T:70/biases",
    "layer/full/B:2/H:2/D:16/Dv:24/M:40/T:50",
    "layer/full/B:1/H:2/D:130/Dv:3/M:31/T:20/biases",
    "layer/full/B:1/H:2/D:3/Dv:130/M:257/T:20/biases",
    "layer/full/B:1/H:1/D:4/M:600/T:30/biases",
    "layer/full/B:1/H:8/D:40/M:300/T:40",
    "layer/full/B:1/H:5/D:64/M:5/T:40/biases",
    /* pieces of rows and of features, and their ends */
    "layer/full/B:2/H:1/D:8/M:12/T:255/biases",
    "layer/causal/B:1/H:2/D:8/M:12/T:257/biases",
    "layer/full/B:1/H:4/D:64/M:20/T:60/biases",
    "layer/full/B:1/H:4/D:65/M:20/Tq:3/Tk:20/biases",
    "layer/full/B:1/H:2/D:8/M:256/T:30/biases",
    "layer/full/B:1/H:2/D:8/M:257/T:30",
    "layer/full/B:1/H:1/D:8/M:8/T:520",
    /* keys enough that one of them is hard to see */
    "layer/full/B:1/H:2/D:8/M:8/Tq:5/Tk:2000/biases",
    "layer/causal_bottom_right/B:1/H:1/D:4/M:4/Tq:3/Tk:3000",
    /* a memory, of as many positions too */
    "layer/full/B:2/H:2/D:16/M:24/T:60/memory/biases",
    "layer/full/B:2/H:4/Hkv:2/D:16/M:24/Tq:20/Tk:150/biases",
    "layer/full/B:3/H:2/D:16/M:24/Tq:70/Tk:1",
    "layer/full/B:3/H:2/D:16/M:24/Tq:1/Tk:90/biases",
    /* heads that share keys and values */
    "layer/causal/B:2/H:6/Hkv:2/D:12/M:30/T:60/biases",
    "layer/causal/B:1/H:8/Hkv:1/D:8/Dv:20/M:30/T:90",
    "layer/full/B:9/H:5/D:8/M:16/T:20/biases",
    /* who sees whom, rows that see nothing, which have the bias alone */
    "layer/window:20/B:1/H:2/D:16/M:24/T:120/biases",
    "layer/band:inf,0,-30/B:1/H:2/D:16/M:24/T:80/biases",
    "layer/band:5,40,3/B:1/H:2/D:16/M:24/Tq:60/Tk:110",
    "layer/causal/B:3/H:2/D:16/M:24/T:50/offsets:0,40,-20/lengths:50,20,0/biases",
    "layer/full/B:3/H:2/D:16/M:24/T:60/qlengths:60,25,0/sink/biases",
    "layer/full/B:2/H:3/D:16/M:24/T:50/mask:bhq/biases",
    "layer/causal/B:2/H:2/D:16/M:24/T:80/docs:20",
    "layer/full/B:1/H:2/D:16/M:24/T:130/see:local:9,4+first:2/biases",
    "layer/full/B:1/H:2/D:16/M:24/T:130/blocks:32,64,0.4,h",
    "layer/full/B:2/H:4/Hkv:2/D:16/M:24/T:70/topk:9/biases",
    /* what adds to scores */
    "layer/full/B:2/H:2/D:16/M:24/Tq:40/Tk:60/bias:bhq/softcap:9/sink",
    "layer/causal/B:1/H:4/Hkv:2/D:16/M:24/T:80/alibi/biases",
    "layer/full/B:1/H:2/D:16/M:24/T:80/relative:9/t5:16,60/biases",
    "layer/full/B:1/H:2/D:16/M:24/T:60/scale:-0.7/biases",
    "layer/full/B:1/H:2/D:16/M:24/T:60/scale:0",
    /* layouts */
    "layer/causal/B:3/H:2/D:16/M:24/T:60/layout:bthd/biases",
    "layer/full/B:2/H:4/Hkv:2/D:12/M:30/Tq:50/Tk:70/layout:padded/biases",
    "layer/full/B:2/H:2/D:16/M:23/T:60/layout:shifted/biases",
    "layer/full/B:3/H:2/D:16/M:24/T:60/memory/layout:mixed/biases",
};

/* Each with every fill. */
static const char *const with_fills[] = {
    "layer/causal/B:1/H:2/D:16/M:24/T:90/biases/fill:",
    "layer/full/B:1/H:4/Hkv:2/D:12/M:40/Tq:40/Tk:110/fill:",
};
static const char *const fills[] = {"normal", "heavy",   "dominant",     "equal",      "saturated",
                                    "rising", "falling", "cancellation", "around_one", "denormal",
                                    "huge",   "zeros",   "exact",        "powers"};

int64_t layer_problems_count(void) { return COUNT(single) + COUNT(with_fills) * COUNT(fills); }

workload layer_problem(int64_t n) {
  char text[WORKLOAD_NAME_BYTES];
  const int64_t with_fill = n - COUNT(single);
  if (with_fill < 0)
    snprintf(text, sizeof text, "%s", single[n]);
  else
    snprintf(text, sizeof text, "%s%s", with_fills[with_fill % COUNT(with_fills)],
             fills[with_fill / COUNT(with_fills)]);
  return workload_written(text);
}
