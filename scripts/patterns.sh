#!/bin/bash
# How time grows where most pairs are hidden: `scripts/patterns.sh PROGRAM FOLDER [OPTION...]` measures the patterns of the
# literature at a few lengths each into FOLDER, whose time.png has their exponents and pairs.png all of them against the
# pairs that are seen. `make bench` runs it.
set -u
[ -x "${1-}" ] && [ $# -ge 2 ] || { echo "$0 PROGRAM FOLDER [OPTION...], such as build/attnbench" >&2; exit 2; }
program=$1 folder=$2
shift 2
problems=()

# at LENGTHS PATTERN: one head, for a pattern costs the reference as many pairs as are hidden.
at() {
  local length
  for length in $1; do problems+=(--problem "$2/H:1/D:64/T:$length"); done
}

# Those whose exponents are to be known: T^1.5 (Child 2019), and T (Zaheer 2020, Beltagy 2020), from where what the terms
# show twice, and the edges of the windows, are few of the pairs. With one thread, which others disturb least.
long="1536 3072 6144 12288"
at "$long" causal/see:local:sqrt,0+strided:sqrt
at "$long" see:local:96,96+global:128+random:3,64
at "$long" see:local:256,256+global:1
# The others, where they lie beside these at one length.
few="6144"
at "$few" causal/see:fixed:128,8
at "$few" causal/see:local:1019,0+first:4
at "$few" causal/docs:1024
at "$few" blocks:128,128,0.1
at "$few" blocks:128,128,0.5
at "$few" causal
exec "$program" bench --variant block_sparse --threads 1 --instructions=false --min-time 0.05 --point-budget 0.3 "${problems[@]}" --out "$folder" "$@"
