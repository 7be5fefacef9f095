#!/bin/bash
# What a decoding step costs as the sequence grows: `scripts/decode.sh BUILD FOLDER [OPTION...]` measures one new token against a cache of T
# keys (softmax attention) and one that goes on from a state (linear attention), in one thread, into FOLDER, whose decode.png has both against T.
# A step of linear attention has no T: it is measured once, and drawn at every length.
set -u
[ -x "${1-}/attnbench" ] && [ $# -ge 2 ] || { echo "$0 BUILD FOLDER [OPTION...], where make has built BUILD" >&2; exit 2; }
build=$1 folder=$2
shift 2
problems=(--problem linear/causal/B:1/H:4/D:64/T:1/state/final_state)
for length in 64 256 1024 4096 16384 65536; do
  problems+=(--problem "full/B:1/H:4/D:64/Tq:1/Tk:$length")
done
bench=("$build/attnbench" bench --variant fused,linear,linear_recurrent --threads 1 --instructions=false --min-time 0.02
  --point-budget 0.3 "${problems[@]}" --quiet "$@" --out "$folder" --benchmark_time_unit ns)
written() { stat -c '%i %y' "$folder/results.csv" 2>/dev/null; }
before=$(written)
said=$("${bench[@]}") || exit
[ "$(written)" != "$before" ] || { printf '%s\n' "$said"; exit; } # --help and the like measure nothing
# In microseconds: the median of the repetitions, or the only one there is, as in a dry run, whose row has the name alone.
row_end='[^"_]*\(_median\)\?",[^,]*,\([0-9.e+]*\),.*'
times_of() { sed -n "s#^\"$1/[^\"]*/Tk:\([0-9]*\)$row_end#\1 \3#p" "$folder/results.csv"; }
time_of() { sed -n "s#^\"$1/linear/[^\"]*/final_state$row_end#\2#p" "$folder/results.csv" | head -1; }
linear=$(time_of linear) recurrent=$(time_of linear_recurrent)
times_of fused | sort -n | awk -v a="$linear" -v b="$recurrent" '{ print $1, $2 / 1000, a / 1000, b / 1000 }' >"$folder/decode.dat"
[ -s "$folder/decode.dat" ] || { echo "decode.sh: nothing was measured" >&2; exit 1; }
echo "microseconds a step: T, fused, linear, linear_recurrent"
cat "$folder/decode.dat"
command -v gnuplot >/dev/null || exit 0
script=$(realpath "${0%/*}/plots/decode.gp")
cd "$folder" && LC_ALL=C.UTF-8 gnuplot -e "data='decode.dat'; picture='decode.png'" "$script"
