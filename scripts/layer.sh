#!/bin/bash
# From where attention takes longer than the projections of a layer: `scripts/layer.sh BUILD FOLDER [OPTION...]`, or `make crossover`,
# measures both and the whole of them into FOLDER, whose crossover.png has counted operations beside times. With H D = d_model as many
# operations are counted of both at T = 2 d_model. A layer whose keys nobody sees (lengths:0) still projects all rows, and
# has nothing between its projections; attention alone is fused, on tensors that lie as a projection leaves them. Repetitions
# of all take turns.
set -u
[ -x "${1-}/attnbench" ] && [ $# -ge 2 ] || { echo "$0 BUILD FOLDER [OPTION...], where make has built BUILD" >&2; exit 2; }
build=$1 folder=$2
shift 2
shape=B:1/H:8/D:64
problems=()
# Twice as many lengths where the two meet.
for length in 256 512 724 1024 1448 2048 2896; do
  problems+=(--problem "layer/full/$shape/T:$length" --problem "layer/full/$shape/T:$length/lengths:0"
    --problem "full/$shape/T:$length/layout:bthd")
done
"$build/attnbench" bench --variant layer,fused --threads 1 --instructions=false --min-time 0.05 --point-budget 0.3 \
  "${problems[@]}" --out "$folder" --quiet "$@" >/dev/null || exit
"$build/scripts/layer/crossover" "$folder" "${0%/*}/plots"
