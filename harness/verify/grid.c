/* The problems of verification. The grid is written out as workloads in words: what stands here is what
 * --problem takes. Sizes are small, because every row of the reference is computed, but lie around every
 * edge that a kernel may have: multiples of vectors (4, 8, 16) and of tiles (16, 48, 64, 128). */
#include "grid.h"

#include <stdio.h>

#include "backward_problems.h"
#include "layer_problems.h"
#include "usual_problems.h"

static const char *const single[] = {
    /* sizes at their ends */
    "full/B:1/H:1/D:1/Dv:130/T:30/lse",
    "full/B:1/H:3/Hkv:1/D:256/T:40/lse",
    "full/B:1/H:2/Hkv:1/D:200/T:67/lse",
    "full/B:1/H:1/D:800/Dv:40/T:67/lse",
    "causal/B:1/H:2/D:192/Dv:128/T:70/lse",
    "linear/causal/B:1/H:2/D:256/Dv:192/T:40",
    "linear/causal/B:0/H:2/D:8/T:5",
    "linear/full/B:1/H:2/D:8/Dv:0/T:5",
    "full/B:1/H:1/D:1/T:1/lse",
    "band:1500,0,2990/B:1/H:2/Hkv:1/D:16/Tq:8/Tk:3000/lse", /* keys in parts that a band cuts */
    "band:1500,2,2980/B:2/H:2/D:16/Tq:20/Tk:3000/lse",
    "window:100/B:4/H:2/Hkv:2/D:16/T:300", /* a window wider than a key tile, under blocks of tiles */
    /* sinks: many tiles, few rows, keys in parts, rows that see nothing, beside everything else */
    "causal/B:2/H:4/Hkv:2/D:32/T:150/sink/lse",
    "full/B:1/H:6/Hkv:2/D:40/Tq:2/Tk:130/sink/lse",
    "full/B:1/H:4/Hkv:1/D:16/Tq:1/Tk:3100/sink/fill:dominant/lse",
    "full/B:1/H:2/D:16/Tq:20/Tk:2500/sink/fill:saturated/lse",
    "band:5,2,-20/B:2/H:3/D:24/Tq:60/Tk:50/lengths:50,7/sink/lse/weights",
    "window:9/B:1/H:4/Hkv:2/D:24/T:70/softcap:4/mask:bq/bias:h/sink/lse",
    "full/B:1/H:3/D:8/Tq:4/Tk:0/sink/lse",
    "causal/B:1/H:16/Hkv:4/D:16/T:66/sink/lse/fill:nonfinite",
    /* a row that a key's score of -inf reaches, and nothing else but the sink */
    "window:70/B:7/H:4/Hkv:1/D:8/Dv:9/Tq:127/Tk:7/sink/fill:nonfinite/seed:15",
    "causal/B:2/H:2/D:3/T:1/lse",
    "full/B:2/H:4/Hkv:2/D:16/Tq:5/Tk:0/lse",
    "full/B:1/H:2/D:16/Tq:0/Tk:7/lse",
    "full/B:0/H:2/D:16/T:7/lse",
    "full/B:1/H:0/Hkv:0/D:16/T:7/lse",
    "full/B:1/H:0/Hkv:1/D:16/T:7/lse",
    "linear/causal/B:1/H:0/Hkv:0/D:16/T:7",
    "causal/B:1/H:4/Hkv:1/D:64/Dv:0/T:9/lse",
    "linear/full/B:2/H:2/D:8/Tq:5/Tk:0",
    "linear/full/B:2/H:2/D:8/Tq:5/Tk:0/fill:nonfinite",
    "linear/causal/B:1/H:4/Hkv:1/D:32/Tq:40/Tk:90/lengths:0/fill:nonfinite",
    "linear/band:inf,0,-30/B:1/H:4/Hkv:1/D:80/T:70/fill:nonfinite",
    "linear/causal/B:1/H:1/D:1/T:1",
    "full/B:1/H:71/Hkv:1/D:64/T:20/lse",
    "causal/B:1/H:32/Hkv:8/D:128/T:33/lse",
    "causal/B:1/H:12/Hkv:3/D:64/T:70/lse",
    "full/B:5/H:3/D:32/T:40",
    "full/B:1/H:1/D:64/Tq:30/Tk:1000/lse",
    "causal/B:1/H:2/Hkv:1/D:64/T:400/lse",
    "window:100/B:1/H:2/D:32/T:500/lse",
    "linear/causal/B:1/H:1/D:64/T:300",
    "linear/full/B:1/H:2/Hkv:1/D:64/Tq:30/Tk:1000",
    /* queries and keys of different lengths; decoding */
    "full/B:2/H:3/D:64/Tq:33/Tk:150/lse",
    "full/B:2/H:3/D:64/Tq:150/Tk:33/lse",
    "causal/B:1/H:4/Hkv:2/D:64/Tq:40/Tk:130/lse",
    "causal/B:1/H:4/Hkv:2/D:64/Tq:130/Tk:40/lse",
    "causal_bottom_right/B:1/H:4/Hkv:1/D:64/Tq:40/Tk:130/lse",
    "causal_bottom_right/B:1/H:4/Hkv:2/D:64/Tq:130/Tk:40/lse",
    "causal_bottom_right/B:3/H:8/Hkv:2/D:128/Tq:1/Tk:257/lse",
    "causal_bottom_right/B:2/H:8/Hkv:1/D:64/Tq:1/Tk:300/lse",
    "causal_bottom_right/B:1/H:4/D:64/Tq:2/Tk:300/lse",
    "linear/causal/B:1/H:2/D:32/Tq:40/Tk:130",
    "linear/causal/B:1/H:2/D:32/Tq:130/Tk:40",
    "linear/causal_bottom_right/B:1/H:4/Hkv:2/D:32/Tq:40/Tk:130",
    "linear/causal_bottom_right/B:2/H:4/Hkv:1/D:32/Tq:130/Tk:40",
    "linear/causal_bottom_right/B:1/H:2/D:64/Tq:1/Tk:300",
    /* so many keys, or tiles, that the work is cut further */
    "causal_bottom_right/B:1/H:4/Hkv:2/D:64/Tq:1/Tk:2100/lse",
    "full/B:1/H:2/Hkv:1/D:32/Tq:3/Tk:3100/mask:q/fill:normal/lse",
    "full/B:2/H:2/Hkv:1/D:32/Tq:30/Tk:2100/lengths:2100,1000/mask:q/fill:rising/lse",
    "band:40,0,1500/B:1/H:2/Hkv:1/D:32/Tq:30/Tk:2100/lse",
    "causal/B:2/H:32/Hkv:1/D:8/T:70/lse",
    "linear/full/B:1/H:2/Hkv:1/D:16/Tq:20/Tk:1600",
    "linear/causal/B:1/H:1/D:16/T:1100",
    /* bands */
    "window:0/B:1/H:2/D:32/T:70/lse",
    "window:1/B:1/H:2/D:32/T:70/lse",
    "window:16/B:1/H:4/Hkv:2/D:64/T:200/lse",
    "window:63/B:1/H:4/Hkv:1/D:64/T:200/lse",
    "window:64/B:1/H:2/D:64/T:200/lse",
    "window:65/B:1/H:2/D:64/T:200/lse",
    "window:1000/B:1/H:2/D:64/T:130/lse",
    "band:10,10,0/B:1/H:4/Hkv:2/D:48/T:150/lse",
    "band:0,0,0/B:1/H:2/D:48/T:90/lse",
    "band:0,20,0/B:1/H:2/D:48/T:90/lse",
    "band:inf,20,0/B:1/H:2/D:48/T:90/lse",
    "band:20,inf,0/B:1/H:4/Hkv:1/D:48/T:90/lse",
    "band:0,inf,0/B:1/H:2/D:48/T:90/lse",
    "band:3,3,50/B:1/H:2/D:40/Tq:60/Tk:100/lse",
    "band:3,3,-50/B:1/H:2/D:40/Tq:100/Tk:60/lse",
    "band:5,0,200/B:1/H:2/D:40/Tq:60/Tk:100/lse",
    "band:5,0,-200/B:1/H:4/Hkv:2/D:40/Tq:60/Tk:100/lse",
    "band:inf,0,-30/B:1/H:4/Hkv:1/D:40/T:80/lse",
    "band:inf,0,30/B:1/H:4/Hkv:1/D:40/T:80/lse",
    "window:20/B:3/H:4/Hkv:2/D:64/Tq:50/Tk:120/offsets:0,70,-10/lse",
    "causal/B:3/H:4/Hkv:1/D:64/Tq:50/Tk:120/offsets:0,70,-10/lse",
    "causal/B:3/H:2/D:64/Tq:50/Tk:120/offsets:119,1,-49/lse",
    "linear/window:16/B:1/H:2/D:32/T:100",
    "linear/band:10,10,0/B:1/H:2/D:32/T:100",
    "linear/band:inf,0,-30/B:1/H:2/D:32/T:80",
    "linear/band:inf,0,30/B:1/H:2/D:32/T:80",
    "linear/causal/B:3/H:2/D:32/Tq:50/Tk:120/offsets:0,70,-10",
    "band:1152921504606846976,1152921504606846976,1152921504606846976/B:1/H:2/Hkv:1/D:16/T:70/lse",
    "band:1152921504606846976,0,1152921504606846976/B:1/H:2/Hkv:1/D:16/T:70/lse",
    "band:4294967300,4294967300,-4294967290/B:1/H:2/Hkv:1/D:16/T:70/lse",
    "band:4294967290,0,4294967300/B:1/H:2/Hkv:1/D:16/T:70/lse",
    "linear/band:inf,1152921504606846976,-1152921504606846976/B:1/H:1/D:16/T:70",
    "linear/band:inf,0,4294967300/B:1/H:1/D:16/T:70",
    /* key lengths */
    "full/B:4/H:4/Hkv:2/D:64/T:130/lengths:0,1,77,130/lse",
    "full/B:4/H:4/Hkv:1/D:64/T:130/lengths:64,65,129,0/lse",
    "full/B:3/H:2/D:32/Tq:20/Tk:90/lengths:90,16,17/lse",
    "causal/B:4/H:4/Hkv:2/D:64/T:130/lengths:0,1,77,130/lse",
    "causal_bottom_right/B:3/H:4/Hkv:1/D:64/Tq:30/Tk:130/lengths:130,100,40/lse",
    "window:20/B:4/H:2/D:64/T:130/lengths:0,1,77,130/lse",
    "window:8/B:3/H:4/Hkv:2/D:64/Tq:1/Tk:200/offsets:199,99,0/lengths:200,100,1/lse",
    "linear/full/B:4/H:4/Hkv:2/D:32/T:130/lengths:0,1,77,130",
    "linear/causal/B:4/H:4/Hkv:2/D:32/T:130/lengths:0,1,77,130",
    /* masks and biases, over all axes and over some */
    "full/B:2/H:4/Hkv:2/D:64/T:100/mask:bhq/lse",
    "full/B:2/H:4/Hkv:1/D:64/T:100/mask:q/lse",
    "full/B:2/H:3/D:64/T:100/mask:b/lse",
    "full/B:2/H:3/D:64/T:100/mask:h/lse",
    "full/B:2/H:3/D:64/T:100/mask:1/lse",
    "causal/B:2/H:4/Hkv:2/D:64/T:130/mask:bq/lse",
    "window:30/B:2/H:3/D:64/T:130/mask:hq/lse",
    "full/B:2/H:4/Hkv:2/D:64/T:100/bias:bhq/lse",
    "full/B:2/H:4/Hkv:1/D:64/T:100/bias:hq/lse",
    "full/B:2/H:3/D:64/T:100/bias:b/lse",
    "full/B:2/H:3/D:64/T:100/bias:h/lse",
    "full/B:2/H:3/D:64/T:100/bias:1/lse",
    "causal/B:2/H:4/Hkv:2/D:64/T:130/bias:bq/lse",
    "window:30/B:2/H:3/D:64/T:130/bias:q/lse",
    "causal/B:2/H:4/Hkv:1/D:64/Tq:50/Tk:90/lengths:90,33/mask:bhq/bias:hq/softcap:15/lse",
    "full/B:1/H:2/D:16/Tq:300/Tk:4/mask:q/lse",
    /* scales and softcaps */
    "full/B:1/H:4/Hkv:2/D:64/T:100/scale:1/lse",
    "causal/B:1/H:4/Hkv:1/D:64/T:100/scale:-0.3/lse",
    "full/B:1/H:2/D:64/T:100/scale:0/lse",
    "full/B:1/H:2/D:64/T:100/scale:0/lse/fill:nonfinite",
    "full/B:1/H:2/D:64/T:100/scale:1e-30/lse",
    "full/B:1/H:4/Hkv:2/D:64/T:100/softcap:30/lse",
    "causal/B:1/H:4/Hkv:1/D:64/T:130/scale:2/softcap:5/lse",
    "window:20/B:1/H:2/D:64/T:130/scale:2/softcap:0.5/lse",
    "full/B:1/H:2/D:64/T:100/softcap:50/bias:hq/fill:normal/lse",
    "full/B:1/H:2/D:16/Tq:200/Tk:1/softcap:3e+38/bias:hq",
    "full/B:1/H:1/D:64/Tq:64/Tk:128/softcap:3e+38/mask:hq/bf16/fill:zeros",
    "linear/full/B:1/H:2/D:32/T:100/epsilon:0",
    "linear/causal/B:1/H:2/D:32/T:100/epsilon:0.5",
    "linear/full/B:1/H:2/D:32/T:100/phi:relu",
    "linear/causal/B:2/H:4/Hkv:2/D:33/Dv:20/T:150/phi:relu/epsilon:0",
    "linear/causal/B:1/H:2/D:32/T:150/unnormalised",
    "linear/causal/B:1/H:4/Hkv:2/D:40/T:300/phi:identity/unnormalised",
    "linear/full/B:1/H:2/Hkv:1/D:16/Dv:65/Tq:70/Tk:1200/phi:relu/unnormalised/layout:mixed",
    "linear/causal/B:2/H:2/D:17/T:100/phi:identity/layout:padded",
    "linear/causal/B:1/H:2/D:24/T:90/phi:relu/unnormalised/fill:nonfinite",
    "linear/causal/B:2/H:4/Hkv:2/D:32/T:150/decay",
    "linear/causal/B:1/H:6/Hkv:2/D:20/Dv:33/T:300/phi:identity/unnormalised/decay",
    "linear/causal/B:1/H:2/D:64/T:150/decay",
    "linear/causal_bottom_right/B:1/H:4/Hkv:2/D:32/Dv:64/Tq:40/Tk:130",
    "linear/causal_bottom_right/B:2/H:2/D:16/Tq:70/Tk:200/lengths:200,130/decay/phi:relu",
    "linear/causal/B:3/H:3/D:17/Tq:140/Tk:90/offsets:-20,3,40/decay/layout:bthd",
    "linear/causal/B:2/H:4/Hkv:2/D:32/T:150/state/final_state",
    "linear/full/B:1/H:4/Hkv:2/D:17/Dv:70/Tq:40/Tk:1300/phi:relu/state/final_state/layout:mixed",
    "linear/causal/B:3/H:3/D:17/Dv:33/Tq:140/Tk:90/offsets:-20,3,40/decay/state/final_state/layout:bthd",
    ("linear/causal/B:2/H:2/D:65/Dv:16/T:1100/lengths:1100,700/phi:identity/unnormalised/decay/state/"
     "final_state"),
    "linear/causal/B:4/H:8/Hkv:4/D:64/Tq:1/Tk:1/decay/state/final_state",
    "linear/full/B:2/H:2/D:16/Tq:70/Tk:0/state/final_state",
    "linear/causal/B:1/H:2/Hkv:1/D:40/Dv:9/T:1100/state/final_state",
    "linear/full/B:2/H:3/D:9/Tq:0/Tk:200/final_state/layout:padded",
    "linear/causal/B:2/H:4/Hkv:1/D:40/T:200/state/final_state/bf16",
    "linear/full/B:1/H:2/D:24/Tq:9/Tk:130/unnormalised/state/final_state/f16/out:f32",
    /* layouts */
    "full/B:2/H:4/Hkv:2/D:64/T:90/lse/layout:bthd",
    "causal/B:2/H:4/Hkv:1/D:64/T:90/lse/layout:bthd",
    "window:20/B:2/H:3/D:64/T:90/lse/layout:bthd",
    /* enough tiles for some to pass the keys together, rows that crowd a cache */
    "full/B:1/H:64/D:16/T:66/lse/layout:bthd",
    "window:30/B:1/H:64/D:16/T:70/layout:bthd",
    "linear/full/B:2/H:4/Hkv:2/D:32/T:90/layout:bthd",
    "linear/causal/B:2/H:4/Hkv:2/D:32/T:90/layout:bthd",
    "full/B:2/H:4/Hkv:2/D:64/T:90/mask:bhq/bias:bhq/lse/layout:padded",
    "causal/B:2/H:4/Hkv:1/D:60/T:90/bias:hq/lse/layout:padded",
    "window:20/B:2/H:3/D:64/T:90/mask:q/lse/layout:padded",
    "full/B:2/H:2/D:32/T:60/lse/weights/layout:padded",
    "full/B:2/H:4/Hkv:2/D:64/T:70/mask:bhq/bias:bhq/lse/layout:shifted",
    "causal/B:2/H:4/Hkv:1/D:64/T:70/weights/layout:shifted",
    "full/B:2/H:4/Hkv:1/D:128/Tq:1/Tk:90/lse/layout:shifted",
    "linear/causal/B:2/H:4/Hkv:2/D:64/T:70/layout:shifted",
    "linear/full/B:2/H:4/Hkv:2/D:32/T:90/layout:padded",
    "linear/causal/B:2/H:4/Hkv:1/D:32/T:90/layout:padded",
    /* sums that are exact, for one key or value among many; more rows than 16 bits count */
    "full/B:1/H:1/D:64/Tq:8/Tk:4096/fill:exact/lse",
    "full/B:1/H:1/D:32/Tq:2/Tk:65537/fill:exact/lse",
    "full/B:1/H:1/D:64/Tq:600/Tk:1100/fill:exact",
    "causal/B:1/H:2/Hkv:1/D:64/T:200/fill:exact/layout:mixed",
    "linear/full/B:1/H:1/D:16/Tq:8/Tk:40000/fill:exact",
    "full/B:2/H:17/Hkv:1/D:4/Tq:2049/Tk:3",
    "full/B:1/H:2/D:20/Dv:20/T:60/layout:mixed/seed:2",
    "full/B:2/H:3/D:20/Dv:20/T:60/mask:bhq/bias:bhq/lse/weights/layout:mixed/seed:3",
    "causal/B:2/H:3/D:20/Dv:20/T:60/lse/layout:mixed/seed:4",
    "full/B:2/H:2/D:20/Dv:20/T:60/layout:mixed/seed:7",
    "full/B:2/H:2/D:20/Dv:20/T:60/layout:mixed/seed:12",
    /* weights */
    "full/B:2/H:2/D:32/T:70/weights",
    "causal/B:1/H:4/Hkv:2/D:64/T:100/lse/weights",
    "causal/B:1/H:4/Hkv:1/D:64/T:100/weights",
    "window:9/B:1/H:2/D:32/T:100/mask:q/weights",
    "causal/B:3/H:2/D:32/Tq:40/Tk:60/lengths:0,33,60/bias:hq/weights",
    /* patterns: each term around tiles, together, under a band, with few rows, with keys in parts, with heads that differ */
    "full/B:1/H:2/D:24/T:150/see:local:20,3/lse",
    "causal/B:1/H:4/Hkv:2/D:24/T:200/see:local:sqrt,0+strided:sqrt/lse",
    "causal/B:1/H:2/D:16/T:200/see:fixed:33,4/lse",
    "full/B:1/H:2/D:16/Tq:120/Tk:100/see:fixed:33,4/offsets:-50/lse",
    "full/B:1/H:2/D:16/Tq:64/Tk:300/see:first:1+strided:90/offsets:1/lse",
    "full/B:1/H:2/D:16/T:200/see:local:5,5+global:2+random:2,16/lse/sink",
    "causal/B:1/H:4/Hkv:1/D:32/T:300/see:local:40,0+first:4/lse",
    "full/B:2/H:2/D:16/Tq:90/Tk:150/see:dilated:6,5/offsets:0,60/lse",
    "window:60/B:1/H:2/D:16/T:150/see:strided:3+first:70/fill:nonfinite/lse",
    "causal/B:2/H:4/Hkv:2/D:24/T:190/docs:40/lse",
    "full/B:2/H:2/D:24/Tq:70/Tk:190/docs:30,shuffled/lse",
    "full/B:1/H:2/D:24/T:260/blocks:64,64,0.4/lse",
    "causal/B:2/H:4/Hkv:2/D:24/T:300/blocks:128,64,0.5,bh/lse",
    "full/B:1/H:4/Hkv:1/D:16/Tq:70/Tk:300/blocks:17,33,0.3,h/lse/fill:nonfinite",
    "full/B:1/H:2/D:16/T:140/blocks:16,256,0.5/mask:q/bias:h/lse",
    "full/B:2/H:4/Hkv:2/D:16/T:100/topk:9/lse",
    "full/B:3/H:2/D:16/T:140/qlengths:140,65,0/sink/lse/weights",
    "causal/B:3/H:2/D:16/T:140/qlengths:139,65,0/sink/lse",
    "causal_bottom_right/B:2/H:4/Hkv:2/D:32/Tq:3/Tk:700/see:local:9,0+first:4+strided:90/lse",
    "full/B:1/H:2/D:16/Tq:2/Tk:5000/blocks:1,512,0.3,h/lse",
    "full/B:1/H:2/D:16/Tq:70/Tk:5000/docs:700/lse",
    "full/B:1/H:2/D:16/Tq:4/Tk:4100/topk:40/lse",
    "causal/B:1/H:64/D:16/T:200/blocks:32,64,0.5/lse", /* blocks of tiles that pass the keys together */
    /* positions: on both sides, for heads that are stacked and not, with few rows and with many, with keys in parts, after a
     * softcap, beside a bias, of scores that the softmax would scale */
    "full/B:1/H:3/Hkv:1/D:24/T:150/alibi/lse",
    "causal/B:2/H:4/Hkv:2/D:24/Tq:90/Tk:150/offsets:60,-20/alibi/lse/weights",
    "full/B:1/H:14/Hkv:2/D:16/Tq:45/Tk:130/alibi/mask:q/lse",
    "causal_bottom_right/B:2/H:8/Hkv:2/D:32/Tq:1/Tk:700/alibi/sink/lse",
    "full/B:1/H:2/D:16/Tq:20/Tk:3000/offsets:2500/alibi/lse",
    "window:40/B:1/H:2/Hkv:1/D:24/T:200/alibi/softcap:4/bias:hq/lse",
    "band:inf,0,1152921504606846976/B:1/H:4/Hkv:2/D:8/T:70/alibi/lse",
    "causal/B:1/H:12/Hkv:4/D:16/T:130/alibi/see:strided:3+first:9/fill:nonfinite/lse",
    "full/B:1/H:64/D:8/T:90/alibi/bf16/lse",
    "causal/B:2/H:6/Hkv:2/D:17/T:140/alibi/f16/out:f32/layout:mixed/lse",
    /* tables by distance: shorter and longer than the distances that there are, with ALiBi, with heads whose tables lie apart */
    "full/B:1/H:3/Hkv:1/D:24/T:150/relative:20/lse",
    "causal/B:2/H:4/Hkv:2/D:24/Tq:90/Tk:150/offsets:60,-20/relative:7/lse/weights",
    "full/B:1/H:14/Hkv:2/D:16/Tq:45/Tk:130/alibi/relative:200/mask:q/lse",
    "causal_bottom_right/B:2/H:8/Hkv:2/D:32/Tq:1/Tk:700/relative:128/sink/lse",
    "full/B:1/H:2/D:16/Tq:20/Tk:3000/offsets:2500/relative:64/lse",
    "window:40/B:1/H:2/Hkv:1/D:24/T:200/relative:1/softcap:4/bias:hq/lse",
    "band:inf,0,1152921504606846976/B:1/H:4/Hkv:2/D:8/T:70/relative:3/lse",
    "causal/B:1/H:12/Hkv:4/D:16/T:130/relative:40/see:strided:3+first:9/fill:nonfinite/lse",
    "full/B:1/H:64/D:8/T:90/relative:16/bf16/lse",
    "causal/B:2/H:6/Hkv:2/D:17/T:140/relative:33/f16/out:f32/layout:mixed/lse",
    "full/B:1/H:6/Hkv:3/D:16/T:100/relative:9/layout:padded/lse",
    /* T5's buckets, in both directions and in one: the paper's, where steps of the logarithm are whole numbers, the
     * fewest, more than there are distances, and with the other biases by position */
    "full/B:1/H:3/Hkv:1/D:24/T:150/t5:32,128/lse",
    "causal/B:2/H:4/Hkv:2/D:24/T:200/t5:32,128,one/lse/weights",
    "full/B:1/H:14/Hkv:2/D:16/Tq:45/Tk:130/t5:16,64,one/alibi/mask:q/lse",
    "causal_bottom_right/B:2/H:8/Hkv:2/D:32/Tq:1/Tk:700/t5:64,512,one/sink/lse",
    "full/B:1/H:2/D:16/Tq:20/Tk:3000/offsets:2500/t5:32,800/relative:9/alibi/lse",
    "window:40/B:1/H:2/Hkv:1/D:24/T:200/t5:2,3,one/softcap:4/bias:hq/lse",
    "band:inf,0,1152921504606846976/B:1/H:4/Hkv:2/D:8/T:70/t5:4,2/lse",
    "causal/B:1/H:12/Hkv:4/D:16/T:130/t5:32,128/see:strided:3+first:9/fill:nonfinite/lse",
    "full/B:1/H:64/D:8/T:90/t5:512,1048576/bf16/lse",
    "causal/B:2/H:6/Hkv:2/D:17/Tq:140/Tk:190/offsets:30,-60/t5:20,81/f16/out:f32/layout:mixed/lse",
    "full/B:1/H:6/Hkv:3/D:16/T:100/t5:9,60,one/layout:padded/lse",
    /* rotary embeddings: of all features and of some, an odd number of them, widths that vectors do not divide,
     * decoding at the end of a cache and in parts of it, entries that stand elsewhere, few rows and one, windows,
     * patterns, and with all else */
    "causal/B:2/H:4/Hkv:2/D:64/T:150/rope:half/lse",
    "full/B:1/H:3/Hkv:1/D:24/T:150/rope:interleaved/lse/weights",
    "causal/B:2/H:4/Hkv:2/D:24/Tq:90/Tk:150/offsets:60,20/rope:half,10/lse/weights",
    "full/B:1/H:14/Hkv:2/D:33/Tq:45/Tk:130/rope:interleaved,32/mask:q/lse",
    "causal_bottom_right/B:2/H:8/Hkv:2/D:128/Tq:1/Tk:700/rope:half/sink/lse",
    "causal_bottom_right/B:1/H:4/Hkv:2/D:80/Tq:3/Tk:2600/rope:interleaved/lse",
    "full/B:1/H:2/D:2/Tq:20/Tk:3000/offsets:2500/rope:half/lse",
    "window:40/B:1/H:2/Hkv:1/D:40/T:200/rope:half/softcap:4/bias:hq/lse",
    "band:30,5,100/B:1/H:4/Hkv:2/D:72/T:170/rope:interleaved,18/lse",
    "causal/B:1/H:12/Hkv:4/D:16/T:130/rope:half/see:strided:23+first:9/fill:nonfinite/lse",
    "causal/B:2/H:4/Hkv:1/D:65/T:140/rope:half/lengths:90,140/qlengths:140,70/alibi/relative:9/sink/lse",
    "full/B:1/H:64/D:16/T:90/rope:half/bf16/lse",
    "causal/B:2/H:6/Hkv:2/D:66/T:140/rope:interleaved/bf16/out:f32/layout:shifted/lse",
    "causal/B:2/H:6/Hkv:2/D:17/Tq:140/Tk:190/offsets:30,0/rope:half/f16/out:f32/layout:mixed/lse",
    "causal_bottom_right/B:1/H:4/Hkv:1/D:96/Tq:2/Tk:2300/rope:half,64/bf16/lse",
    "full/B:1/H:6/Hkv:3/D:16/T:100/rope:interleaved/layout:padded/lse",
    /* general scores: heads that are stacked and not, with few rows and with many, with keys in parts, beside
     * rotations and a softcap, of features that vectors do not divide and of one, in each type */
    "full/B:2/H:3/Hkv:1/D:24/T:150/general/lse",
    "causal/B:2/H:4/Hkv:2/D:64/Tq:90/Tk:150/offsets:60,20/general/rope:half/lse/weights",
    "full/B:1/H:14/Hkv:2/D:33/Tq:45/Tk:130/general/mask:q/lse",
    "causal_bottom_right/B:2/H:8/Hkv:2/D:32/Tq:1/Tk:700/general/sink/lse",
    "full/B:1/H:2/D:130/Dv:3/Tq:3/Tk:2600/general/lse",
    "window:40/B:1/H:2/Hkv:1/D:40/T:200/general/softcap:4/bias:hq/alibi/lse",
    "causal/B:1/H:12/Hkv:4/D:16/T:130/general/see:strided:13+first:9/fill:nonfinite/lse",
    "full/B:1/H:32/D:16/T:131/general/bf16/lse",
    "causal/B:2/H:6/Hkv:2/D:17/T:141/general/f16/out:f32/layout:mixed/lse",
    "causal/B:2/H:6/Hkv:2/D:18/T:90/general/rope:interleaved/bf16/lse",
    "full/B:2/H:4/Hkv:2/D:1/T:60/general/dropout:0.2/layout:padded/lse",
    "full/B:1/H:2/D:20/Tq:70/Tk:3000/general/fill:saturated/lse",
    "full/B:1/H:2/D:20/T:70/general/fill:largest/layout:bthd/lse",
    /* additive scores: the same, and arguments that are large, lie around one, or are huge */
    "full/B:2/H:3/Hkv:1/D:24/T:150/additive/lse",
    "causal/B:2/H:4/Hkv:2/D:64/Tq:90/Tk:150/offsets:60,20/additive/rope:half/lse/weights",
    "full/B:1/H:14/Hkv:2/D:33/Tq:45/Tk:130/additive/mask:q/lse",
    "causal_bottom_right/B:2/H:8/Hkv:2/D:32/Tq:1/Tk:700/additive/sink/lse",
    "full/B:1/H:2/D:130/Dv:3/Tq:3/Tk:2600/additive/lse",
    "window:40/B:1/H:2/Hkv:1/D:40/T:200/additive/softcap:4/bias:hq/alibi/lse",
    "causal/B:1/H:12/Hkv:4/D:16/T:130/additive/see:strided:13+first:9/fill:nonfinite/lse",
    "full/B:1/H:32/D:16/T:131/additive/bf16/lse",
    "causal/B:2/H:6/Hkv:2/D:17/T:141/additive/f16/out:f32/layout:mixed/lse",
    "causal/B:2/H:6/Hkv:2/D:18/T:90/additive/rope:interleaved/bf16/lse",
    "full/B:2/H:4/Hkv:2/D:1/T:60/additive/dropout:0.2/layout:padded/lse",
    "full/B:1/H:2/D:20/Tq:70/Tk:1500/additive/fill:saturated/lse",
    "causal/B:1/H:4/Hkv:2/D:7/T:150/additive/fill:heavy/lse",
    "full/B:1/H:2/D:20/T:70/additive/fill:normal/scale:-0.7/layout:bthd/lse",
    "full/B:1/H:4/Hkv:1/D:20/T:70/additive/fill:huge/lse",
    "full/B:1/H:2/D:20/T:70/additive/fill:largest/layout:bthd/lse",
    "full/B:1/H:2/D:20/T:70/additive/fill:denormal/lse",
    /* dropout: masks over all axes and over some, of heads that are stacked, with few rows and with many, with keys
     * in parts and keys run by run, of odd numbers of keys, with weights that are wanted, and sums that are exact */
    "full/B:2/H:3/Hkv:1/D:24/T:150/dropout:0.1/lse",
    "causal/B:2/H:4/Hkv:2/D:24/Tq:90/Tk:150/offsets:60,-20/dropout:0.5,bq/lse/weights",
    "full/B:2/H:14/Hkv:2/D:16/Tq:45/Tk:131/dropout:0.25,h/mask:q/lse",
    "causal_bottom_right/B:2/H:8/Hkv:2/D:32/Tq:1/Tk:700/dropout:0.3/sink/lse",
    "full/B:1/H:2/D:16/Tq:3/Tk:5000/dropout:0.9/lse",
    "full/B:2/H:2/D:16/Tq:70/Tk:3001/dropout:0.1,1/lse",
    "full/B:1/H:3/Hkv:1/D:24/Tq:2/Tk:300/dropout:0.4/lse",
    "window:40/B:1/H:2/Hkv:1/D:24/T:200/dropout:0.5/softcap:4/bias:hq/alibi/lse",
    "causal/B:1/H:12/Hkv:4/D:16/T:130/dropout:0.4,hq/see:strided:13+first:9/fill:nonfinite/lse",
    "full/B:1/H:32/D:8/T:131/dropout:0.2/bf16/lse",
    "band:141,5,0/B:1/H:32/D:8/Dv:2/T:389/dropout:0.6/bf16/fill:nonfinite/sink",
    "causal/B:2/H:6/Hkv:2/D:17/T:141/dropout:0.35/f16/out:f32/layout:mixed/lse",
    "full/B:1/H:6/Hkv:3/D:16/T:100/dropout:0/weights/layout:padded/lse",
    "full/B:2/H:3/D:20/T:60/dropout:0.75/mask:bhq/bias:bhq/lse/weights/layout:mixed/seed:3",
    "full/B:1/H:1/D:64/Tq:600/Tk:1100/dropout:0.5/fill:exact",
    "full/B:1/H:2/D:20/T:70/dropout:0.5/fill:huge/lse/weights",
    /* AMX takes another way without dropout, or a pattern, and rounds otherwise. */
    "full/B:1/H:1/D:64/Dv:16/Tq:9/Tk:76/dropout:0.25,1/bf16",
    "full/B:1/H:2/Hkv:1/D:64/Dv:16/Tq:59/Tk:176/see:local:20,20/bf16",
    /* A row whose only key has a score of -inf, beside a sink that is NaN or infinite; and beside one that is finite. */
    "full/B:1/H:6/Hkv:1/D:1/T:1/sink/t5:16,14/fill:nonfinite/seed:3431631088",
    "band:0,inf,0/B:1/H:2/Hkv:2/D:9/Tq:13/Tk:4/sink/lse/fill:nonfinite/seed:1579075825",
    /* Rows that see one key are exact, and their values flushed. */
    "full/B:1/H:1/D:2/Dv:10/Tq:20/Tk:3/lengths:1/bf16/out:f32/fill:denormal",
    "full/B:1/H:2/D:20/T:70/dropout:0.999/fill:equal/sink/lse/weights",
    /* The first of them has fewer rows than the next: where tiles have 48, and where they have 64. */
    "full/B:1/H:24/D:16/T:200/blocks:100,64,0.5/bf16/lse",
    "full/B:1/H:24/D:8/T:258/blocks:129,64,0.5/bf16/lse",
    "causal/B:1/H:32/Hkv:4/D:16/T:260/blocks:64,64,0.4,h/bf16/fill:nonfinite/lse",
    "full/B:2/H:2/D:40/T:260/blocks:128,128,0.4,b/f16/out:f32/lse",
    "full/B:1/H:2/D:32/T:260/docs:50/blocks:64,64,0.2/topk:3/see:first:2/bf16/lse",
    "full/B:1/H:1/D:64/Tq:600/Tk:1100/see:strided:5+local:30,30/fill:exact",
    /* Query tiles that pass the same pairs of keys, and see other ones of them; of scores that the softmax scales, and that
     * it must not; more features than a slice has. */
    "band:inf,0,-16/B:1/H:32/D:8/T:390/bf16/fill:nonfinite",
    "band:141,5,0/B:1/H:32/D:8/T:390/bf16",
    "band:141,5,0/B:1/H:32/D:8/Dv:2/T:390/bf16/fill:nonfinite/seed:2",
    "linear/full/B:2/H:1/D:32/T:70/lengths:70,60/f16/fill:nonfinite",
    "window:20/B:1/H:2/D:33/T:170/lse/f16/fill:nonfinite",
    /* More heads that share keys than a tile has rows: tiles begin to see with the same key, and do not end so. */
    "window:20/B:1/H:20/Hkv:1/D:8/T:130/lse/f16",
    "causal/B:1/H:1/D:16/T:33/scale:0/bf16",
    "full/B:1/H:1/D:1601/Dv:3/Tq:17/Tk:9/bias:h/bf16",
    /* Chunks of keys of which one is multiplied while another becomes weights: with a rest, and more than a key tile has; weights
     * that grow large, in all rows or in some; keys hidden at either end, and values there that are no numbers. */
    "causal/B:1/H:2/Hkv:1/D:64/Dv:48/T:230/bf16/fill:rising/lse",
    "full/B:1/H:1/D:128/Dv:16/Tq:33/Tk:1190/bf16/fill:rising/lse",
    "window:90/B:1/H:4/Hkv:2/D:64/T:300/bf16/fill:nonfinite/lse",
    "window:9/B:1/H:1/Hkv:1/D:64/T:200/bf16/fill:nonfinite/lse",
    "band:70,3,40/B:2/H:1/D:128/T:200/lengths:200,130/bf16/fill:saturated/lse/layout:bthd",
    "full/B:1/H:1/D:64/T:130/scale:-0.2/bf16/out:f32/fill:heavy/lse",
    "causal/B:1/H:2/Hkv:1/D:64/Dv:48/T:230/f16/fill:rising/lse",
    "full/B:1/H:1/D:128/Dv:16/Tq:33/Tk:1190/f16/fill:rising/lse",
    "window:90/B:1/H:4/Hkv:2/D:64/T:300/f16/fill:nonfinite/lse",
    "window:9/B:1/H:1/Hkv:1/D:64/T:200/f16/fill:nonfinite/lse",
    "causal/B:1/H:2/Hkv:1/D:128/T:140/f16/fill:nonfinite/lse/seed:2",
    "band:70,3,40/B:2/H:1/D:128/T:200/lengths:200,130/f16/fill:saturated/lse/layout:bthd",
    "full/B:1/H:1/D:64/T:130/scale:-0.2/f16/out:f32/fill:heavy/lse",
    "causal_bottom_right/B:1/H:2/D:64/Tq:5/Tk:100/f16/fill:nonfinite/lse",
    /* What comes between scores and their softmax in chunks of keys: scores that grow by much from one to the next, in both directions,
     * several passages, a rest of keys, halves that change places, values that are no numbers. */
    "full/B:1/H:4/D:64/T:700/alibi/bf16/lse",
    "causal/B:1/H:8/Hkv:2/D:64/T:330/alibi/mask:q/bias:h/bf16/lse",
    "full/B:1/H:2/D:128/Dv:32/Tq:70/Tk:2100/relative:900/bias:hq/bf16/lse",
    "window:150/B:1/H:2/D:64/T:460/softcap:3/t5:32,128/mask:hq/bf16/fill:nonfinite/lse",
    "causal_bottom_right/B:2/H:3/D:64/Tq:99/Tk:600/lengths:600,410/mask:bhq/bf16/fill:rising/layout:bthd",
    "full/B:1/H:8/D:64/Tq:40/Tk:64/mask:hq/bf16/fill:nonfinite/seed:29",
    "full/B:1/H:3/Hkv:1/D:64/T:150/alibi/bf16/lse",
    "full/B:1/H:71/Hkv:1/D:64/Tq:3/Tk:330/relative:128/bf16/lse",
    /* Only a later passage has values that are no numbers; rows of a tile's first half see nothing of its first chunk. */
    "full/B:1/H:1/D:64/Tq:64/Tk:2304/mask:hq/bf16/fill:nonfinite/seed:10",
    "full/B:1/H:2/D:64/T:512/mask:hq/bf16/lse",
    /* Of masks of whole entries or heads, edges anywhere in a chunk. */
    "full/B:5/H:1/D:64/Tq:40/Tk:150/mask:b/bf16",
    "full/B:3/H:4/D:64/Tq:40/Tk:300/mask:bh/bf16/fill:nonfinite/seed:7",
    "full/B:3/H:4/D:64/Tq:40/Tk:257/mask:bh/bf16/seed:1",
    "full/B:5/H:4/D:64/Tq:40/Tk:256/mask:bh/bf16/seed:59",
    "full/B:5/H:4/D:64/Tq:40/Tk:256/mask:bh/bf16/seed:3",
    "full/B:1/H:8/Hkv:1/D:64/Tq:5/Tk:300/mask:h/bf16/seed:1",
    /* Far keys weigh nothing, and some have values that are no numbers. */
    "full/B:1/H:4/Hkv:2/D:16/T:900/alibi/fill:nonfinite",
    "full/B:1/H:4/Hkv:2/D:16/Tq:1/Tk:900/alibi/fill:nonfinite",
    /* Few rows by tiles, up to 16 and one more: with keys in parts and a rest, features behind the tiles' and behind 128 of them,
     * scores of floats, what hides and what is added, values that are no numbers. */
    "causal_bottom_right/B:1/H:8/Hkv:2/D:72/Tq:4/Tk:700/rope:half/bf16/lse",
    "full/B:1/H:16/Hkv:1/D:40/Dv:200/Tq:1/Tk:600/mask:q/bias:h/alibi/bf16/lse",
    "window:300/B:2/H:14/Hkv:2/D:128/Tq:2/Tk:2500/softcap:5/sink/bf16/lse/layout:bthd",
    "full/B:1/H:10/Hkv:2/D:96/Dv:33/Tq:3/Tk:2100/bf16/out:f32/fill:rising/lse",
    "full/B:1/H:12/Hkv:4/D:64/Tq:3/Tk:300/mask:hq/dropout:0.3/bf16/fill:nonfinite/lse",
    "full/B:2/H:17/Hkv:1/D:128/Tq:1/Tk:1100/bf16/fill:saturated/lse",
    "full/B:1/H:4/Hkv:1/D:31/Tq:3/Tk:64/bf16/fill:nonfinite/lse",
    /* Of a key tile that several blocks of queries see each begins with another chunk. */
    "band:520,0,580/B:1/H:1/D:64/Tq:512/Tk:1100/f16/lse",
    /* Hidden values that are not finite, of keys that fill no chunk, which two tiles see. */
    "causal/B:1/H:2/D:64/T:100/bf16/fill:nonfinite/lse",
};

/* Each with every length below. %s is replaced by sizes, by a fill. */
static const char *const with_lengths[] = {
    "full/B:1/H:2/D:32/%s/lse",
    "causal/B:1/H:4/Hkv:1/D:32/%s/lse",
    "window:17/B:1/H:4/Hkv:2/D:32/%s/lse",
    "causal_bottom_right/B:1/H:2/D:32/%s/lse",
    "linear/full/B:1/H:2/Hkv:1/D:16/%s",
    "linear/causal/B:1/H:2/D:16/%s",
};
static const int lengths[] = {2,  3,  7,  8,  9,  15, 16,  17,  31,  32,  33, 47,
                              48, 49, 63, 64, 65, 95, 127, 128, 129, 193, 257};

/* Tiles of queries (4, 8, 16, 64 rows) against tiles of keys (64, 256): each pair once, with one of these. */
static const char *const with_tiles[] = {
    "full/B:1/H:1/D:20/%s/lse",
    "causal_bottom_right/B:1/H:2/Hkv:1/D:12/%s/lse",
    "band:70,3,40/B:1/H:1/D:17/%s/layout:shifted",
    "full/B:2/H:3/Hkv:1/D:8/%s/mask:bq/lse",
    "linear/causal_bottom_right/B:1/H:2/Hkv:1/D:9/%s",
};
static const int query_edges[] = {1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 129};
static const int key_edges[] = {1, 7, 16, 63, 64, 65, 127, 128, 129, 192, 255, 256, 257};

/* Every D from 1 to 130 with each: once with Dv = D, else with a Dv that runs through all of them too. */
enum { LARGEST_DIM = 130 };
static const struct {
  const char *text;
  int value_factor; /* Dv = D * this modulo 131, a prime */
} with_dims[] = {
    {"full/B:1/H:2/Hkv:1/T:21/%s/lse", 1},
    {"causal/B:1/H:1/T:67/%s", 61},
    {"window:9/B:1/H:1/T:18/%s/lse/layout:padded", 1},
    {"linear/full/B:1/H:2/T:19/%s/layout:shifted", 1},
    {"linear/causal/B:1/H:1/T:37/%s", 37},
};

static const char *const with_fills[] = {
    "full/B:1/H:2/D:64/Tq:20/Tk:150/%s/lse",
    "causal/B:2/H:4/Hkv:1/D:48/T:90/%s/lse",
    "causal_bottom_right/B:2/H:4/Hkv:2/D:64/Tq:40/Tk:140/lengths:140,90/%s/lse",
    "window:20/B:1/H:2/D:32/T:170/%s/lse/layout:shifted",
    "full/B:2/H:2/Hkv:1/D:24/Tq:30/Tk:70/%s/mask:bhq/lse",
    "causal/B:1/H:3/Hkv:1/D:16/T:70/%s/bias:hq/softcap:20/lse/weights",
    "linear/full/B:2/H:1/D:32/T:70/lengths:70,60/%s",
    "linear/causal/B:1/H:2/Hkv:1/D:32/T:140/%s",
};
static const char *const fills[] = {
    "normal",     "heavy",    "dominant", "equal", "saturated", "rising", "falling", "cancellation",
    "around_one", "denormal", "huge",     "zeros", "exact",     "powers", "largest", "nonfinite"};

/* With each fill, and the types in turn. */
static const char *const with_types[] = {
    "full/B:1/H:2/D:64/Tq:20/Tk:150/%s/lse",
    "full/B:1/H:1/D:16/Tq:4/Tk:4097/%s/lse",
    "causal/B:2/H:4/Hkv:1/D:48/Dv:33/T:90/%s/lse/layout:bthd",
    "causal_bottom_right/B:2/H:4/Hkv:2/D:64/Tq:40/Tk:140/lengths:140,90/%s/lse/layout:padded",
    "window:20/B:1/H:2/D:33/T:170/%s/lse/layout:shifted",
    "full/B:2/H:2/Hkv:1/D:24/Tq:30/Tk:70/%s/mask:bhq/bias:bq/lse/layout:mixed",
    "causal/B:2/H:3/Hkv:1/D:16/T:70/%s/bias:h/softcap:20/sink/lse/weights",
    "window:20/B:4/H:16/D:8/T:130/%s/lse", /* blocks of tiles that pass the keys together */
    "linear/full/B:2/H:1/D:32/T:70/lengths:70,60/%s/layout:bthd",
    "linear/causal/B:1/H:2/Hkv:1/D:17/T:140/%s/layout:padded",
};
static const char *const types[] = {"bf16", "f16", "bf16/out:f32"};

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

/* The text before %s, the part, the text behind it. */
static workload with_part(const char *text, const char *part) {
  char whole[WORKLOAD_NAME_BYTES];
  int before = 0;
  while (text[before] != '%') before++;
  snprintf(whole, sizeof whole, "%.*s%s%s", before, text, part, text + before + 2);
  return workload_written(whole);
}

/* The families: the n-th problem of each. */
static workload with_length(int64_t n) {
  char part[64];
  snprintf(part, sizeof part, "T:%d", lengths[n / COUNT(with_lengths)]);
  return with_part(with_lengths[n % COUNT(with_lengths)], part);
}

static workload with_tile(int64_t n) {
  char part[64];
  const int64_t row = n / COUNT(key_edges), column = n % COUNT(key_edges);
  snprintf(part, sizeof part, "Tq:%d/Tk:%d", query_edges[row], key_edges[column]);
  /* A step of two from row to row, so that each row and each column meets every text. */
  return with_part(with_tiles[(2 * row + column) % COUNT(with_tiles)], part);
}

static workload with_dim(int64_t n) {
  char part[64];
  const int dim = (int)(n / COUNT(with_dims)) + 1;
  const int value_dim = dim * with_dims[n % COUNT(with_dims)].value_factor % (LARGEST_DIM + 1);
  snprintf(part, sizeof part, "D:%d/Dv:%d", dim, value_dim);
  return with_part(with_dims[n % COUNT(with_dims)].text, part);
}

static workload with_fill(int64_t n) {
  char part[64];
  snprintf(part, sizeof part, "fill:%s", fills[n / COUNT(with_fills)]);
  return with_part(with_fills[n % COUNT(with_fills)], part);
}

static workload with_type(int64_t n) {
  char part[64];
  const int64_t text = n % COUNT(with_types), fill = n / COUNT(with_types);
  snprintf(part, sizeof part, "%s/fill:%s", types[(text + fill) % COUNT(types)], fills[fill]);
  return with_part(with_types[text], part);
}

static workload alone(int64_t n) { return workload_written(single[n]); }

static const struct family {
  int64_t count;
  workload (*problem)(int64_t n);
  bool in_turn; /* each is posed under one instruction set: there are many that are alike */
} families[] = {
    {COUNT(single), alone, false},
    {COUNT(with_lengths) * COUNT(lengths), with_length, false},
    {COUNT(query_edges) * COUNT(key_edges), with_tile, false},
    {COUNT(with_dims) * LARGEST_DIM, with_dim, true},
    {COUNT(with_fills) * COUNT(fills), with_fill, false},
    {COUNT(with_types) * COUNT(fills), with_type, true},
};

int64_t verify_grid_count(void) {
  int64_t count =
      pair_problems_count() + backward_problems_count() + layer_problems_count() + usual_problems_count();
  for (int64_t n = 0; n < COUNT(families); n++) count += families[n].count;
  return count;
}

/* Every other one has as many threads as are asked for, which on a small machine is few; the others 4 to 8, among whom
 * work is cut elsewhere. A number of entries in which no family repeats its texts: so each text meets each. */
static int threads_in_turn(int64_t n) {
  static const int threads[] = {0, 4, 0, 5, 0, 8, 0, 6, 0, 7, 0};
  return threads[n % COUNT(threads)];
}

planned_problem verify_grid_problem(int64_t n) {
  const int64_t chosen = pair_problems_count();
  if (n < chosen) return pair_problem(n);
  n -= chosen;
  const int threads = threads_in_turn(n);
  if (n < backward_problems_count()) return (planned_problem){backward_problem(n), threads, -1};
  n -= backward_problems_count();
  if (n < layer_problems_count()) return (planned_problem){layer_problem(n), threads, -1};
  n -= layer_problems_count();
  const struct family *family = families;
  while (family < families + COUNT(families) && n >= family->count) n -= (family++)->count;
  if (family == families + COUNT(families)) return usual_problem(n);
  /* Of the texts of a dimension, neighbours take another one each: so a dimension meets them all. */
  return (planned_problem){family->problem(n), threads,
                           family->in_turn ? (int)(n % COUNT(with_dims) + n / COUNT(with_dims)) : -1};
}
