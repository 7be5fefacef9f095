/* See backward_problems.h: what a backward kernel can get wrong, each line with every fill that is finite in turn. */
#include "backward_problems.h"

#include <stdio.h>

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

static const char *const single[] = {
    /* nothing at all, one of each, sizes around tiles */
    "backward/full/B:1/H:1/D:1/T:1",
    "backward/full/B:0/H:2/D:8/T:5",
    "backward/full/B:1/H:2/D:8/Tq:0/Tk:5",
    "backward/full/B:1/H:2/D:8/Tq:5/Tk:0",
    "backward/full/B:1/H:2/D:8/Dv:0/T:5",
    "backward/full/B:1/H:2/D:8/Dv:1/T:5",
    "backward/full/B:1/H:1/D:130/Dv:3/T:33",
    "backward/full/B:1/H:1/D:3/Dv:130/T:33",
    "backward/full/B:1/H:1/D:64/Tq:1/Tk:300",
    "backward/full/B:1/H:1/D:64/Tq:300/Tk:1",
    "backward/full/B:1/H:1/D:16/Tq:4/Tk:2000",
    "backward/full/B:1/H:1/D:16/Tq:2000/Tk:4",
    "backward/full/B:1/H:2/D:64/Tq:63/Tk:65",
    "backward/full/B:1/H:2/D:64/Tq:65/Tk:63",
    "backward/causal/B:1/H:2/D:64/T:129",
    "backward/causal/B:1/H:1/D:40/Dv:72/T:257",
    "backward/causal/B:1/H:1/D:16/T:600",
    /* queries that share a key, tasks enough for every thread and too few */
    "backward/full/B:2/H:6/Hkv:2/D:24/T:70",
    "backward/causal/B:1/H:8/Hkv:1/D:16/T:100",
    "backward/causal_bottom_right/B:1/H:4/Hkv:2/D:32/Tq:40/Tk:150",
    "backward/full/B:9/H:5/D:8/T:20",
    "backward/full/B:1/H:71/Hkv:1/D:8/T:20",
    /* bands and lengths: rows that see nothing, keys that nobody sees */
    "backward/window:20/B:1/H:2/D:24/T:200",
    "backward/band:5,70,3/B:1/H:2/D:24/Tq:100/Tk:180",
    "backward/band:inf,0,-30/B:1/H:2/D:24/T:100",
    "backward/band:0,0,40/B:1/H:1/D:16/T:90",
    "backward/causal/B:3/H:2/D:24/Tq:50/Tk:90/offsets:0,40,-20",
    "backward/full/B:4/H:2/D:24/T:130/lengths:0,1,77,130",
    "backward/causal/B:3/H:2/D:16/T:140/qlengths:139,65,0/sink",
    "backward/full/B:2/H:2/D:16/T:90/qlengths:90,30/lengths:64,90",
    /* masks, biases over all axes and over some, sinks, softcaps, scales */
    "backward/full/B:2/H:3/D:24/T:70/mask:bhq",
    "backward/full/B:2/H:2/D:24/T:70/mask:q/sink",
    "backward/full/B:2/H:3/D:24/T:60/bias:bhq",
    "backward/causal/B:2/H:4/Hkv:2/D:24/T:60/bias:h",
    "backward/window:30/B:1/H:4/Hkv:2/D:24/Tq:70/Tk:110/bias:bhq/softcap:9",
    "backward/full/B:2/H:2/D:24/Tq:65/Tk:49/bias:bhq/mask:q/alibi/layout:bthd",
    "backward/full/B:2/H:2/D:24/Tq:50/Tk:30/bias:q",
    "backward/full/B:2/H:2/D:24/Tq:50/Tk:30/bias:b/softcap:3",
    "backward/full/B:2/H:2/D:24/Tq:20/Tk:30/bias:1",
    "backward/causal_bottom_right/B:3/H:6/Hkv:3/D:24/Tq:70/Tk:290/bias:hq/softcap:4",
    "backward/full/B:2/H:6/Hkv:3/D:17/Tq:70/Tk:150/bias:bq/layout:padded",
    "backward/causal/B:2/H:4/Hkv:2/D:24/T:90/sink",
    "backward/full/B:1/H:2/D:24/T:90/softcap:2/scale:1",
    "backward/causal/B:1/H:2/D:64/T:130/softcap:30",
    "backward/full/B:1/H:2/D:24/T:90/scale:-0.3",
    "backward/full/B:1/H:2/D:24/T:90/scale:0",
    "backward/full/B:1/H:2/D:24/T:90/scale:1e-30",
    /* positions and patterns */
    "backward/causal/B:1/H:4/Hkv:2/D:24/T:150/alibi",
    "backward/full/B:1/H:4/Hkv:2/D:16/Tq:90/Tk:130/offsets:20/relative:9",
    "backward/causal/B:2/H:2/D:16/T:140/t5:16,60,one/softcap:5",
    "backward/full/B:2/H:3/D:16/Tq:40/Tk:90/offsets:50,-20/alibi/softcap:4",
    "backward/full/B:1/H:3/D:16/Tq:20/Tk:45/offsets:2500/alibi", /* weights of keys that are not there would be infinite */
    "backward/causal/B:1/H:2/D:16/T:200/see:local:9,0+strided:17",
    "backward/full/B:1/H:2/D:24/T:150/see:dilated:6,5+first:3",
    "backward/full/B:1/H:2/D:16/T:200/see:local:5,5+global:2+random:2,16",
    "backward/causal/B:2/H:2/D:16/T:190/docs:40",
    "backward/full/B:2/H:2/D:16/Tq:70/Tk:190/docs:30,shuffled",
    "backward/full/B:1/H:2/D:16/T:260/blocks:64,64,0.4",
    "backward/full/B:1/H:2/D:16/T:140/blocks:17,33,0.3,h",
    "backward/full/B:2/H:4/Hkv:2/D:16/T:100/topk:9",
    /* rotary embeddings */
    "backward/causal/B:1/H:4/Hkv:2/D:64/T:150/rope:half",
    "backward/full/B:2/H:2/D:24/Dv:40/Tq:90/Tk:70/offsets:0,300/rope:interleaved/softcap:5",
    "backward/causal_bottom_right/B:1/H:3/D:33/Tq:50/Tk:130/rope:interleaved,10/alibi/sink",
    "backward/window:20/B:2/H:2/D:16/T:140/rope:half,6/see:strided:5+local:3,0/bias:bhq",
    "backward/causal/B:2/H:4/Hkv:2/D:24/T:90/rope:half/layout:mixed",
    /* dropout */
    "backward/full/B:2/H:3/D:24/T:70/dropout:0.1",
    "backward/causal/B:2/H:4/Hkv:2/D:24/T:130/dropout:0.5,bq/sink",
    "backward/full/B:2/H:4/Hkv:2/D:17/Dv:9/Tq:70/Tk:131/dropout:0.3,h/bias:bhq/softcap:5/layout:padded",
    "backward/window:30/B:1/H:2/D:16/T:150/dropout:0.9/alibi/fill:equal",
    "backward/full/B:1/H:2/D:16/T:50/dropout:0,1/qlengths:33/sink",
    "backward/full/B:1/H:6/Hkv:1/D:1/Dv:34/Tq:1/Tk:8/bias:h/dropout:0.9,1/fill:huge/seed:1603815770",
    /* layouts */
    "backward/causal/B:2/H:4/Hkv:2/D:24/T:90/layout:bthd",
    "backward/full/B:2/H:4/Hkv:2/D:24/T:70/bias:hq/sink/layout:padded",
    "backward/causal/B:2/H:4/Hkv:1/D:33/T:70/layout:shifted",
    "backward/causal/B:2/H:3/D:20/T:60/mask:bhq/bias:bh/layout:mixed",
    "backward/full/B:2/H:3/Hkv:1/D:16/Tq:5/Tk:0/bias:bhq/layout:mixed",
    "backward/full/B:2/H:3/Hkv:1/D:16/Tq:0/Tk:5/bias:q/layout:mixed",
    /* elements of 16 bits */
    "backward/full/B:1/H:1/D:1/T:1/bf16",
    "backward/full/B:1/H:2/D:8/Dv:0/T:5/f16",
    "backward/full/B:1/H:2/D:8/Tq:5/Tk:0/bf16",
    "backward/full/B:1/H:2/D:64/Tq:65/Tk:63/bf16",
    "backward/full/B:1/H:2/D:33/Dv:17/Tq:63/Tk:130/f16/layout:shifted",
    "backward/causal/B:2/H:4/Hkv:2/D:24/T:150/bf16/sink/layout:bthd",
    "backward/causal/B:1/H:2/D:40/Dv:72/T:257/f16/softcap:9",
    "backward/causal/B:3/H:2/D:24/Tq:50/Tk:90/offsets:0,40,-20/bf16",
    "backward/full/B:4/H:2/D:24/T:130/lengths:0,1,77,130/bf16/mask:bhq/layout:padded",
    "backward/full/B:2/H:3/D:24/Tq:65/Tk:90/bias:bhq/bf16/alibi/layout:mixed",
    "backward/window:30/B:2/H:6/Hkv:3/D:17/Tq:70/Tk:150/bias:hq/f16",
    "backward/full/B:2/H:4/Hkv:2/D:24/Tq:70/Tk:90/bias:b/bf16",
    "backward/causal/B:2/H:4/Hkv:2/D:64/T:90/bf16/rope:half/bias:hq",
    "backward/full/B:2/H:4/Hkv:2/D:16/T:90/f16/dropout:0.3/rope:interleaved,6",
    "backward/full/B:2/H:2/D:16/T:100/see:local:5,5+global:2/bf16/out:f32",
    /* a gap that overflows beside a key that nobody sees */
    "backward/causal/B:2/H:40/D:4/Dv:100/Tq:1/Tk:2/fill:huge",
    /* gradients of scores below the float32 range */
    "backward/full/B:1/H:1/Hkv:1/D:1/Tq:1/Tk:45/bias:1/alibi/seed:2740912256",
};

/* Of linear attention: nothing at all and sizes around tiles, queries that share a key, bands, lengths, layouts. */
static const char *const linear[] = {
    "B:1/H:1/D:1/T:1",
    "B:0/H:2/D:8/T:5",
    "B:1/H:2/D:8/Tq:0/Tk:5",
    "B:1/H:2/D:8/Tq:5/Tk:0",
    "B:1/H:2/D:8/Dv:0/T:5",
    "B:1/H:2/D:8/Dv:1/T:5",
    "B:1/H:1/D:130/Dv:3/T:33",
    "B:1/H:1/D:3/Dv:130/T:40/causal",
    "B:1/H:1/D:64/Tq:1/Tk:300",
    "B:1/H:1/D:64/Tq:300/Tk:1",
    "B:1/H:1/D:16/Tq:2000/Tk:4/causal",
    "B:1/H:2/D:64/Tq:63/Tk:65",
    "B:1/H:2/D:64/Tq:65/Tk:63/causal",
    "causal/B:1/H:2/D:64/T:129",
    "causal/B:1/H:1/D:40/Dv:72/T:257",
    "causal/B:1/H:1/D:16/T:600",
    "causal/B:1/H:1/D:96/Dv:80/T:200/epsilon:2",
    "full/B:2/H:6/Hkv:2/D:24/T:70",
    "causal/B:1/H:8/Hkv:1/D:16/T:100",
    "causal_bottom_right/B:1/H:4/Hkv:2/D:32/Tq:40/Tk:150",
    "causal_bottom_right/B:1/H:2/D:32/Tq:150/Tk:40",
    "full/B:9/H:5/D:8/T:20",
    "window:20/B:1/H:2/D:24/T:200",
    "band:5,70,3/B:1/H:2/D:24/Tq:100/Tk:180",
    "band:inf,0,-30/B:1/H:2/D:24/T:100",
    "band:inf,0,30/B:1/H:4/Hkv:2/D:24/T:100/epsilon:0",
    "band:inf,17,2/B:1/H:2/D:33/Tq:150/Tk:130",
    "band:0,0,40/B:1/H:1/D:16/T:90",
    "causal/B:3/H:2/D:24/Tq:50/Tk:90/offsets:0,40,-20",
    "full/B:4/H:2/D:24/T:130/lengths:0,1,77,130",
    "causal/B:3/H:4/Hkv:2/D:24/T:130/lengths:33,64,129",
    "full/B:1/H:2/D:24/T:90/epsilon:0.5",
    "full/B:1/H:4/Hkv:2/D:24/T:90/phi:relu",
    "causal/B:1/H:2/D:24/T:130/phi:relu/epsilon:1",
    "full/B:1/H:2/D:24/Tq:40/Tk:70/phi:identity/epsilon:100",
    "causal/B:1/H:2/D:40/T:150/phi:identity/unnormalised",
    "full/B:1/H:2/D:24/T:90/unnormalised",
    "causal/B:1/H:4/Hkv:2/D:24/T:90/phi:relu/unnormalised",
    "causal/B:2/H:4/Hkv:2/D:24/T:90/layout:bthd",
    "full/B:2/H:4/Hkv:2/D:24/T:70/layout:padded",
    "causal/B:2/H:4/Hkv:1/D:33/T:70/layout:shifted",
    "causal/B:2/H:3/D:20/T:60/layout:mixed",
    /* decay: sizes around tiles, which begin where the offset says, keys before all queries and behind them, lengths
     * that end within a tile, queries that stand behind all keys, and rows that see all, or none */
    "causal/B:1/H:1/D:1/T:1/decay",
    "causal/B:0/H:2/D:8/T:5/decay",
    "causal/B:1/H:2/D:8/Tq:0/Tk:5/decay",
    "causal/B:1/H:2/D:8/Tq:5/Tk:0/decay",
    "causal/B:1/H:2/D:8/Dv:0/T:40/decay",
    "causal/B:1/H:2/D:24/T:65/decay",
    "causal/B:1/H:2/D:24/T:129/decay/unnormalised",
    "causal/B:2/H:4/Hkv:2/D:24/Dv:40/T:300/decay/layout:bthd",
    "causal/B:1/H:6/Hkv:2/D:17/Dv:33/T:150/decay/phi:identity/unnormalised",
    "causal/B:1/H:2/D:24/T:90/decay/phi:relu/epsilon:1",
    "causal_bottom_right/B:1/H:4/Hkv:2/D:32/Tq:40/Tk:150/decay",
    "causal_bottom_right/B:1/H:2/D:32/Tq:150/Tk:40/decay/epsilon:0",
    "causal_bottom_right/B:1/H:2/D:16/Tq:1/Tk:200/decay",
    "causal/B:3/H:2/D:24/Tq:100/Tk:90/offsets:-20,3,40/decay/layout:padded",
    "causal/B:4/H:4/Hkv:2/D:24/T:130/lengths:0,33,64,129/decay",
    "band:inf,0,-30/B:1/H:2/D:24/T:100/decay",
    "band:inf,0,100/B:1/H:2/D:24/T:100/decay",
    "causal/B:1/H:2/D:16/Tq:40/Tk:150/decay",
    "causal/B:1/H:1/D:16/T:900/decay/layout:mixed",
    "window:20/B:1/H:2/D:16/T:90/decay",
    "band:9,3,5/B:1/H:4/Hkv:2/D:16/Tq:70/Tk:90/decay/unnormalised",
    "full/B:1/H:2/D:16/T:50/decay/phi:relu/epsilon:1",
    /* an initial state: without keys and without queries, of rows that see nothing else, of heads that share one,
     * fading and not */
    "causal/B:1/H:2/D:8/Tq:0/Tk:5/state",
    "causal/B:1/H:4/Hkv:2/D:8/Tq:5/Tk:0/state/decay",
    "full/B:1/H:4/Hkv:2/D:24/Dv:40/Tq:70/Tk:90/state/layout:padded",
    "causal/B:2/H:4/Hkv:2/D:24/T:130/state",
    "causal/B:2/H:4/Hkv:2/D:70/Dv:33/T:130/state/decay/layout:bthd",
    "causal/B:3/H:2/D:24/Tq:100/Tk:90/offsets:-20,3,40/state/decay",
    "causal/B:4/H:4/Hkv:2/D:17/T:90/lengths:0,33,64,89/state/decay/phi:identity/unnormalised",
    "causal_bottom_right/B:1/H:2/D:32/Tq:150/Tk:40/state/phi:relu/epsilon:0.5",
    "causal_bottom_right/B:1/H:4/Hkv:1/D:16/Tq:40/Tk:150/state/decay/layout:mixed",
    "band:inf,3,-9/B:1/H:2/D:16/T:60/state/decay",
    /* elements of 16 bits */
    "causal/B:1/H:2/D:8/Dv:0/T:5/f16",
    "full/B:1/H:2/D:8/Tq:5/Tk:0/bf16",
    "full/B:2/H:4/Hkv:2/D:33/Dv:17/Tq:70/Tk:90/f16/layout:shifted",
    "causal/B:2/H:4/Hkv:2/D:24/T:150/bf16/layout:bthd",
    "causal/B:3/H:2/D:24/Tq:50/Tk:90/offsets:0,40,-20/bf16/out:f32",
    "full/B:4/H:2/D:24/T:130/lengths:0,1,77,130/phi:relu/epsilon:1/f16/layout:padded",
    "causal/B:1/H:4/Hkv:2/D:17/Dv:33/T:130/decay/bf16/layout:mixed",
    "causal/B:1/H:2/D:24/T:90/state/decay/f16/phi:identity/unnormalised",
    /* queries without a feature, whose normaliser is 0, among others of their tile */
    "causal/B:3/H:4/Hkv:2/D:1/Dv:5/T:90/epsilon:0/phi:relu",
    "causal/B:3/H:4/Hkv:4/D:2/Dv:3/T:40/epsilon:0/phi:relu/decay/state",
    /* features of 0 whose products are divided by epsilon alone, and overflow */
    "full/B:1/H:1/D:1/T:1/phi:relu/fill:huge",
};

/* Each with every fill. */
static const char *const with_fills[] = {
    "backward/full/B:1/H:2/D:32/Tq:40/Tk:90/fill:",
    "backward/causal/B:1/H:4/Hkv:2/D:24/T:110/sink/fill:",
    "backward/window:30/B:1/H:2/D:16/T:130/bias:q/softcap:9/fill:",
    "backward/causal/B:1/H:4/Hkv:2/D:24/T:110/bias:hq/bf16/fill:",
    "backward/full/B:1/H:2/D:32/Tq:40/Tk:90/f16/fill:",
    "linear_backward/full/B:1/H:2/D:32/Tq:40/Tk:90/fill:",
    "linear_backward/causal/B:1/H:4/Hkv:2/D:24/T:110/fill:",
    "linear_backward/causal/B:1/H:4/Hkv:2/D:24/T:110/decay/fill:",
    "linear_backward/causal/B:1/H:4/Hkv:2/D:24/T:70/state/decay/fill:",
    "linear_backward/causal/B:1/H:4/Hkv:2/D:24/T:50/state/bf16/fill:",
    "linear_backward/full/B:1/H:2/D:16/Tq:40/Tk:60/f16/fill:",
};
static const char *const fills[] = {"normal", "heavy",   "dominant",     "equal",      "saturated",
                                    "rising", "falling", "cancellation", "around_one", "denormal",
                                    "huge",   "zeros",   "exact",        "powers"};

int64_t backward_problems_count(void) {
  return COUNT(single) + COUNT(linear) + COUNT(with_fills) * COUNT(fills);
}

workload backward_problem(int64_t n) {
  char text[WORKLOAD_NAME_BYTES];
  const int64_t with_fill = n - COUNT(single) - COUNT(linear);
  if (n < COUNT(single))
    snprintf(text, sizeof text, "%s", single[n]);
  else if (with_fill < 0)
    snprintf(text, sizeof text, "linear_backward/%s", linear[n - COUNT(single)]);
  else
    snprintf(text, sizeof text, "%s%s", with_fills[with_fill % COUNT(with_fills)],
             fills[with_fill / COUNT(with_fills)]);
  return workload_written(text);
}
