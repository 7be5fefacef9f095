#!/bin/bash
# How close the fast kernels come to what this machine can do: `scripts/kernels/table.sh BUILD`, or `make
# kernels`. Rows that belong together are points of one run of attnbench, whose repetitions take turns, so that a
# slow minute of a shared machine falls on all of them; each run measures the machine too. Takes some fifteen minutes.
set -u
build=${1:-build}
program=$build/attnbench
export OMP_WAIT_POLICY=passive
threads=$(nproc)
[ "$threads" -gt 2 ] && threads=2
results=$(mktemp) || exit 2
trap 'rm -f "$results"' EXIT

# measure THREADS ISA SECONDS NAME...: points by their names, into $results; ISA "best" for the fastest there is.
measure() {
  local options=(--threads "$1" --point-budget "$3" --precision 0.1) names name variants=
  [ "$2" != best ] && options+=(--isa "$2")
  shift 3
  for name in "$@"; do
    variants+=,${name%%/*}
    options+=(--problem "$(problem "$name")")
  done
  names=$(IFS='|' && echo "$*")
  "$program" bench --quiet --instructions=false --variant "${variants#,}" "${options[@]}" \
    --benchmark_filter="^($names)\$" --benchmark_format=json >"$results"
}

# The problem of a point: its name without the variant.
problem() { echo "${1#*/}"; }

# figures NAME: "median low high" of a point in $results: seconds of the median and its interval. figures NAME
# peak: the same with the share of the peak for the seconds.
figures() {
  awk -v wanted="\"$1\"," -v what="${2:-time}" '
    /"run_name":/ { ours = $2 == wanted; median = 0 }
    /"aggregate_name":/ { median = ours && /median/ }
    median && /"real_time":/ { time = $2 + 0 }
    median && /"real_time_low":/ { low = $2 + 0 }
    median && /"real_time_high":/ { high = $2 + 0 }
    median && /"peak_fraction":/ { share = $2 + 0 }
    END {
      if (!time) exit 1
      if (!low) low = high = time
      if (what == "peak") print share, share * time / high, share * time / low
      else print time / 1e9, low / 1e9, high / 1e9
    }' "$results"
}

print() { printf '%-62s %6s %-16s %s\n' "$@"; }

# shares THREADS ISA BAR NAME BAR NAME ...: of the multiply-add peak.
shares() {
  local label="$1 thread, $2" bars=() names=() figure
  local run=("$1" "$2" 6)
  shift 2
  while [ $# -gt 0 ]; do
    bars+=("$1")
    names+=("$2")
    shift 2
  done
  measure "${run[@]}" "${names[@]}" || return
  for n in "${!names[@]}"; do
    figure=$(figures "${names[$n]}" peak) || continue
    read -r median low high <<<"$figure"
    print "${names[$n]}, $label" "$(printf %.3f "$median")" "$(printf '[%.3f, %.3f]' "$low" "$high")" "${bars[$n]}"
  done
}

# spread LABEL BAR: the median of what comes in, with the least and the most.
spread() {
  sort -g | awk -v label="$1" -v bar="$2" '{ x[NR] = $1 }
    END { if (NR) printf "%-62s %6.3f %-16s %s\n", label, x[int((NR + 1) / 2)], sprintf("[%.3f, %.3f]", x[1], x[NR]), bar }'
}

# paired LABEL BAR NAME NAME: time of the first over that of the second, points of the run in $results, whose
# repetitions took turns.
paired() {
  awk -v first="\"$3\"," -v second="\"$4\"," '
    /"run_name":/ { name = $2 }
    /"repetition_index":/ { round = $2 + 0; single = 1 }
    /"aggregate_name":/ { single = 0 }
    /"real_time":/ && single { time[name, round] = $2 + 0; single = 0 }
    END { for (n = 0; (first, n) in time && (second, n) in time; n++) print time[first, n] / time[second, n] }
  ' "$results" | spread "$1" "$2"
}

# rates LABEL BAR NAME NAME: rate of the first over that of the second, over the pairs that each sees.
rates() {
  local flops
  flops=$(awk -v first="\"$3\"," -v second="\"$4\"," '
    /"run_name":/ { name = $2 }
    /"flops":/ { flops[name] = $2 + 0 }
    END { print flops[first] / flops[second] }' "$results")
  awk -v first="\"$3\"," -v second="\"$4\"," -v flops="$flops" '
    /"run_name":/ { name = $2 }
    /"repetition_index":/ { round = $2 + 0; single = 1 }
    /"aggregate_name":/ { single = 0 }
    /"real_time":/ && single { time[name, round] = $2 + 0; single = 0 }
    END { for (n = 0; (first, n) in time && (second, n) in time; n++) print flops * time[second, n] / time[first, n] }
  ' "$results" | spread "$1" "$2"
}

# ratio LABEL BAR THREADS NAME THREADS NAME: the same of runs in turn, where one run cannot have both.
ratio() {
  local a b
  for _ in 1 2 3 4 5; do
    measure "$3" best 1 "$4" && read -r a _ <<<"$(figures "$4")" || continue
    measure "$5" best 1 "$6" && read -r b _ <<<"$(figures "$6")" || continue
    awk -v a="$a" -v b="$b" 'BEGIN { print a / b }'
  done | spread "$1" "$2"
}

"$program" machine --threads 1
echo
"$build/scripts/kernels/tile_steps"
echo
print "share of the multiply-add peak" median "95% interval" bar
shares 1 best \
  0.80 fused/full/B:1/H:4/Hkv:4/D:64/T:4096 \
  0.85 fused/full/B:1/H:4/Hkv:4/D:128/T:4096 \
  0.75 fused/causal/B:1/H:4/Hkv:4/D:64/T:4096 \
  0.80 fused/causal/B:1/H:4/Hkv:4/D:128/T:4096 \
  0.70 fused/full/B:1/H:4/Hkv:4/D:64/T:512 \
  0.70 fused/full/B:1/H:4/Hkv:4/D:72/T:2048 \
  0.70 fused/full/B:1/H:4/Hkv:4/D:80/T:2048 \
  0.70 fused/full/B:1/H:4/Hkv:4/D:96/T:2048 \
  0.70 fused/full/B:1/H:4/Hkv:4/D:256/T:2048 \
  0.65 sliding_window/window:512/B:1/H:4/Hkv:4/D:64/T:16384 \
  "" fused/full/B:1/H:32/Hkv:32/D:128/T:2048 \
  fused grouped_query/full/B:1/H:32/Hkv:8/D:128/T:2048 \
  fused multi_query/full/B:1/H:32/Hkv:1/D:128/T:2048 \
  0.80 linear/linear/full/B:1/H:4/Hkv:4/D:64/T:16384 \
  0.60 linear/linear/causal/B:1/H:4/Hkv:4/D:64/T:16384 \
  "" linear/linear/causal/B:1/H:4/Hkv:4/D:64/T:16384/phi:identity/unnormalised \
  "" linear/linear/causal/B:1/H:4/Hkv:4/D:64/T:16384/decay \
  "" linear_recurrent/linear/causal/B:1/H:4/Hkv:4/D:64/T:16384
shares 1 best \
  "" fused/full/B:1/H:4/Hkv:4/D:64/T:4096 \
  "" fused/full/B:1/H:4/Hkv:4/D:128/T:4096 \
  0.60 fused_backward/backward/full/B:1/H:4/Hkv:4/D:64/T:4096 \
  0.60 fused_backward/backward/full/B:1/H:4/Hkv:4/D:128/T:4096 \
  "" fused_backward/backward/causal/B:1/H:4/Hkv:4/D:64/T:4096 \
  "" fused_backward/backward/causal/B:1/H:4/Hkv:4/D:128/T:4096 \
  "" fused_backward/backward/full/B:1/H:4/Hkv:4/D:64/T:4096/bf16
shares 1 best \
  0.50 linear_backward/linear_backward/full/B:1/H:4/Hkv:4/D:64/T:16384 \
  0.33 linear_backward/linear_backward/causal/B:1/H:4/Hkv:4/D:64/T:16384 \
  "" linear_backward/linear_backward/causal/B:1/H:4/Hkv:4/D:64/T:16384/decay \
  "" linear_backward/linear_backward/causal/B:1/H:4/Hkv:4/D:64/T:16384/bf16
shares 1 best \
  "" layer/layer/full/B:1/H:8/Hkv:8/D:64/M:512/T:1024 \
  "" layer/layer/causal/B:1/H:12/Hkv:12/D:64/M:768/T:1024/biases \
  "" fused/full/B:1/H:4/Hkv:4/D:64/T:4096/general \
  "" fused/full/B:1/H:4/Hkv:4/D:128/T:4096/general
# The formula beside what is fast: stored weights beside weights that are made again, loops beside products.
against=$(while read -r slow fast problem; do
  measure 1 best 2 "$slow/$problem" "$fast/$problem" || continue
  paired "$slow over $fast, ${problem##*/}, 1 thread" "" "$slow/$problem" "$fast/$problem"
done <<'END'
naive_backward fused_backward backward/full/B:1/H:1/Hkv:1/D:64/T:1024
naive_linear_backward linear_backward linear_backward/full/B:1/H:1/Hkv:1/D:64/T:1024
layer_naive layer layer/full/B:1/H:8/Hkv:8/D:64/M:512/T:256
END
)
grouped=$(
  for variant in grouped_query multi_query; do
    heads=$([ $variant = multi_query ] && echo 1 || echo 8)
    paired "fused with 32 key/value heads over $variant with $heads" 1 \
      fused/full/B:1/H:32/Hkv:32/D:128/T:2048 "$variant/full/B:1/H:32/Hkv:$heads/D:128/T:2048"
  done
)
narrow=
if "$program" list | grep -q avx512_bf16; then
  bars=(0.80 0.85 0.75 0.80) times=(1.8 1.8)
  # The peak of AMX's tiles is many times that of pairs.
  "$program" list | grep -q avx512_amx && bars=(0.35 0.50 "" "") times=(6 9)
  shares 1 best \
    "" fused/full/B:1/H:4/Hkv:4/D:64/T:4096 \
    "" fused/full/B:1/H:4/Hkv:4/D:128/T:4096 \
    "${bars[0]}" fused/full/B:1/H:4/Hkv:4/D:64/T:4096/bf16 \
    "${bars[1]}" fused/full/B:1/H:4/Hkv:4/D:128/T:4096/bf16 \
    "${bars[2]}" fused/causal/B:1/H:4/Hkv:4/D:64/T:4096/bf16 \
    "${bars[3]}" fused/causal/B:1/H:4/Hkv:4/D:128/T:4096/bf16
  narrow=$(for D in 64 128; do
    paired "fused float32 over bfloat16, D $D, T 4096, 1 thread" "${times[D / 128]}" \
      fused/full/B:1/H:4/Hkv:4/D:$D/T:4096 fused/full/B:1/H:4/Hkv:4/D:$D/T:4096/bf16
  done)
fi
converted=$(for set in avx2 avx512; do
  "$program" list | grep -q $set || continue
  for D in 64 128; do
    run=(fused/full/B:1/H:4/Hkv:4/D:$D/T:4096 fused/full/B:1/H:4/Hkv:4/D:$D/T:4096/{f16,bf16})
    measure 1 $set 4 "${run[@]}" || continue
    for type in f16 bf16; do
      paired "fused float32 over $type by conversion, $set, D $D, 1 thread" 0.97 "${run[0]}" "${run[0]}/$type"
    done
  done
done)
decoding=$(for set in avx2 avx512; do
  "$program" list | grep -q $set || continue
  run=(fused/full/B:1/H:8/Hkv:8/D:128/Tq:1/Tk:32768{,/f16,/bf16})
  measure "$threads" $set 2 "${run[@]}" || continue
  for type in f16 bf16; do
    paired "decoding, float32 over $type, $set, D 128, Tk 32768, $threads threads" 1.8 "${run[0]}" "${run[0]}/$type"
  done
done)
rotated=$(for D in 64 128; do
  plain=fused/full/B:1/H:4/Hkv:4/D:$D/T:4096
  measure 1 best 4 "$plain"{,/alibi,/bias:hq,/mask:hq,/rope:half,/rope:interleaved,/bf16,/rope:half/bf16} || continue
  paired "fused over fused with alibi, D $D, T 4096, 1 thread" "$([ "$D" -lt 128 ] || echo 0.95)" "$plain" "$plain/alibi"
  for added in bias:hq mask:hq; do
    paired "fused over fused with $added, D $D, T 4096, 1 thread" "" "$plain" "$plain/$added"
  done
  for pairs in half interleaved; do
    paired "fused over fused with rope:$pairs, D $D, T 4096, 1 thread" 0.9 "$plain" "$plain/rope:$pairs"
  done
  paired "fused over fused with rope:half, bfloat16, D $D, T 4096, 1 thread" "" "$plain/bf16" "$plain/rope:half/bf16"
done)
sparse=$(for D in 64 128; do
  shape=B:1/H:1/Hkv:1/D:$D/T:8192
  dense=block_sparse/full/$shape causal=block_sparse/causal/$shape
  tenth=$dense/blocks:128,128,0.1 half=$dense/blocks:128,128 small=$dense/blocks:64,64,0.1
  measure 1 best 3 "$dense" "$causal" "$tenth" "$half" "$small" || continue
  paired "block_sparse, 90 % of 128x128 blocks empty, over dense, D $D, T 8192" 0.17 "$tenth" "$dense"
  paired "block_sparse, 50 % of 128x128 blocks empty, over dense, D $D, T 8192" 0.58 "$half" "$dense"
  rates "its rate over visible pairs, 128x128 at 10 %, over causal's, D $D" 0.9 "$tenth" "$causal"
  rates "its rate over visible pairs, 128x128 at 50 %, over causal's, D $D" 0.9 "$half" "$causal"
  rates "its rate over visible pairs, 64x64 at 10 %, over causal's, D $D" 0.9 "$small" "$causal"
done)
if "$program" list | grep -q avx2; then
  shares 1 avx2 \
    0.75 fused/full/B:1/H:4/Hkv:4/D:64/T:4096 \
    0.80 fused/full/B:1/H:4/Hkv:4/D:128/T:4096
fi
echo
print "decoding: time to read keys and values once over its time" median "95% interval" bar
"$build/scripts/kernels/decode_reads" "$threads" | sed 's/$/ 0.85/'
echo
print "additive scores: tanh a second of fused over the machine's" median "95% interval" bar
for set in avx2 avx512; do
  for T in 1024 4096; do
    figure=$("$build/scripts/kernels/additive_share" $T 64 $set) || continue
    read -r share interval <<<"$figure"
    print "fused/full/B:1/H:1/Hkv:1/D:64/T:$T/additive, 1 thread, $set" "$share" "$interval" 0.60
  done
done
echo
print "ratios of times" median "least, most" bar
if [ "$threads" = 2 ]; then
  ratio "fused, 1 thread over 2 threads, D 64, T 4096" 1.9 1 fused/full/B:1/H:4/Hkv:4/D:64/T:4096 \
    2 fused/full/B:1/H:4/Hkv:4/D:64/T:4096
fi
echo "$grouped"
echo "$sparse"
echo "$against"
printf '%s\n' ${rotated:+"$rotated"} ${narrow:+"$narrow"} ${converted:+"$converted"} ${decoding:+"$decoding"}
for compiler in gcc clang; do
  command -v $compiler >/dev/null || continue
  make --no-print-directory -s "-j$(nproc)" all CC=$compiler BUILD="$build/$compiler" >/dev/null || continue
  program=$build/$compiler/attnbench
  ratio "naive over blocked, D 64, T 2048, 1 thread, $compiler" 4 1 naive/full/B:1/H:1/Hkv:1/D:64/T:2048 \
    1 blocked/full/B:1/H:1/Hkv:1/D:64/T:2048
done
"$build/scripts/kernels/mask_share"
if [ -x "$build/scripts/kernels/two_sgemm" ]; then
  for D in 64 128; do
    read -r share interval <<<"$("$build/scripts/kernels/two_sgemm" 2048 $D)"
    print "two sgemm calls over blas, D $D, T 2048, 1 thread" "$share" "$interval" 0.90
  done
fi
