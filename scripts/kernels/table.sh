#!/bin/bash
# How close the fast kernels come to what this machine can do: `scripts/kernels/table.sh BUILD`, or `make
# kernels`. Each row is a run of attnbench of its own, which measures the machine first; its share is the
# median over repetitions with the 95% interval. Takes some seven minutes.
set -u
build=${1:-build}
program=$build/attnbench
export OMP_WAIT_POLICY=passive
threads=$(nproc)
[ "$threads" -gt 2 ] && threads=2

# run THREADS ISA VARIANT PROBLEM: the JSON of a run; ISA "best" for the fastest there is.
run() {
  local isa=()
  [ "$2" != best ] && isa=(--isa "$2")
  "$program" bench --quiet --instructions=false --threads "$1" "${isa[@]}" --variant "$3" --problem "$4" \
    --point-budget 1.5 --benchmark_format=json --benchmark_report_aggregates_only
}

# figures: "median low high read" from a run: seconds of the median and its interval, read bandwidth.
# figures peak: the same with the share of the peak for the seconds.
figures() {
  awk -v what="${1:-time}" '
    /"name": "read memory"/ { memory = 1 }
    memory && /"median":/ { gsub(/[^0-9.e+]/, "", $2); read = $2; memory = 0 }
    /"aggregate_name":/ { median = /median/ }
    median && /"real_time":/ { time = $2 + 0 }
    median && /"real_time_low":/ { low = $2 + 0 }
    median && /"real_time_high":/ { high = $2 + 0 }
    median && /"peak_fraction":/ { share = $2 + 0 }
    END {
      if (!time) exit 1
      if (!low) low = high = time
      if (what == "peak") print share, share * time / high, share * time / low, read
      else print time / 1e9, low / 1e9, high / 1e9, read
    }'
}

print() { printf '%-62s %6s %-16s %s\n' "$@"; }

# share BAR THREADS ISA VARIANT PROBLEM: of the multiply-add peak.
share() {
  local bar=$1 figure
  shift
  figure=$(run "$@" | figures peak) || return
  read -r median low high _ <<<"$figure"
  print "$3 $4, $1 thread(s), $2" "$(printf %.3f "$median")" "$(printf '[%.3f, %.3f]' "$low" "$high")" "$bar"
}

# bandwidth BAR VARIANT H HKV: decoding, keys and values once over the read bandwidth of all threads.
bandwidth() {
  local problem="full/B:1/H:$3/Hkv:$4/D:128/Tq:1/Tk:65536" figure
  figure=$(run "$threads" best "$2" "$problem" | figures) || return
  read -r median low high read <<<"$figure"
  awk -v heads="$4" -v m="$median" -v l="$low" -v h="$high" -v r="$read" \
    'BEGIN { b = heads * 65536 * 128 * 8; printf "%.3f [%.3f,%.3f]\n", b / m / r, b / h / r, b / l / r }' |
    { read -r share interval && print "$2 $problem, $threads threads, of read" "$share" "$interval" "$1"; }
}

# ratio LABEL BAR "RUN" "RUN": time of the first over that of the second, the median of three pairs in turn.
ratio() {
  local a b
  for _ in 1 2 3; do
    read -r a _ <<<"$(run $3 | figures)"
    read -r b _ <<<"$(run $4 | figures)"
    awk -v a="$a" -v b="$b" 'BEGIN { print a / b }'
  done | sort -g | awk -v label="$1" -v bar="$2" '{ x[NR] = $1 }
    END { printf "%-62s %6.2f %-16s %s\n", label, x[2], sprintf("[%.2f, %.2f]", x[1], x[3]), bar }'
}

"$program" machine --threads 1
echo
print "share of the multiply-add peak" median "95% interval" bar
for mask in full causal; do
  for D in 64 128; do
    [ $mask = full ] && bar=$([ $D = 64 ] && echo 0.80 || echo 0.85)
    [ $mask = causal ] && bar=$([ $D = 64 ] && echo 0.75 || echo 0.80)
    share $bar 1 best fused "$mask/B:1/H:4/D:$D/T:4096"
  done
done
share 0.70 1 best fused full/B:1/H:4/D:64/T:512
for D in 72 80 96 256; do share 0.70 1 best fused full/B:1/H:4/D:$D/T:2048; done
if "$program" list | grep -q avx2; then
  share 0.75 1 avx2 fused full/B:1/H:4/D:64/T:4096
  share 0.80 1 avx2 fused full/B:1/H:4/D:128/T:4096
fi
share 0.65 1 best sliding_window window:512/B:1/H:4/D:64/T:16384
share fused 1 best fused full/B:1/H:32/Hkv:32/D:128/T:2048
share ">= fused" 1 best grouped_query full/B:1/H:32/Hkv:8/D:128/T:2048
share ">= fused" 1 best multi_query full/B:1/H:32/Hkv:1/D:128/T:2048
share 0.55 1 best linear linear/full/B:1/H:4/D:64/T:16384
share 0.40 1 best linear linear/causal/B:1/H:4/D:64/T:16384
echo
print "decoding: bytes of K and V over the read bandwidth of memory" median "95% interval" bar
bandwidth 0.85 grouped_query 32 8
bandwidth 0.85 fused 8 8
bandwidth 0.85 fused 1 1
echo
print "ratios of times" median "least, most" bar
if [ "$threads" = 2 ]; then
  ratio "fused, 1 thread over 2 threads, D 64, T 4096" 1.9 "1 best fused full/B:1/H:4/D:64/T:4096" \
    "2 best fused full/B:1/H:4/D:64/T:4096"
fi
for compiler in gcc clang; do
  command -v $compiler >/dev/null || continue
  make --no-print-directory -s "-j$(nproc)" all CC=$compiler BUILD="$build/$compiler" >/dev/null || continue
  program=$build/$compiler/attnbench
  ratio "naive over blocked, D 64, T 2048, 1 thread, $compiler" 4 "1 best naive full/B:1/H:1/D:64/T:2048" \
    "1 best blocked full/B:1/H:1/D:64/T:2048"
done
if [ -x "$build/scripts/kernels/two_sgemm" ]; then
  for D in 64 128; do
    read -r share interval <<<"$("$build/scripts/kernels/two_sgemm" "$build/attnbench_variants.so" 2048 $D)"
    print "two sgemm calls over blas, D $D, T 2048, 1 thread" "$share" "$interval" 0.90
  done
fi
