#!/bin/bash
# What recomputation saves against storage: `scripts/backward.sh PROGRAM FOLDER [OPTION...]` measures both backward passes, and
# the forward pass beside them, into FOLDER. Its workspace.png has the T x T weights that naive_backward keeps and the rows that
# fused_backward keeps instead (gradient checkpointing), its time.png what each costs.
set -u
[ -x "${1-}" ] && [ $# -ge 2 ] || { echo "$0 PROGRAM FOLDER [OPTION...], such as build/attnbench" >&2; exit 2; }
program=$1 folder=$2
shift 2
problems=()
# From where fused_backward cuts the keys of a head into as many parts at each length. Stored weights end where a run takes a second.
for length in 512 768 1024 1536 2048; do
  problems+=(--problem "backward/full/H:4/D:64/T:$length" --problem "full/H:4/D:64/T:$length")
done
exec "$program" bench --variant naive_backward,fused_backward,fused --threads 1 --instructions=false --min-time 0.05 --point-budget 0.3 \
  --point-limit 1 "${problems[@]}" --out "$folder" "$@"
