#!/bin/sh
# Runs a small verification under valgrind's memcheck, which sees what poisoned bytes cannot show: a result
# or a branch that depends on workspace that the variant never wrote. Workspace and outputs are declared
# unwritten before each run (harness/base/memory.h). `scripts/memcheck.sh PROGRAM PLUGIN`: the plugin holds a
# variant with that fault, and a memcheck that lets it pass is worth nothing.
# valgrind 3.19 does not know AVX-512, so that those kernels are left to AddressSanitizer.
set -u
program=$1
planted=$2
status=0
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
# Threads that wait must not spin: valgrind runs one thread at a time.
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1

# Every variant, every kind of tensor and of elements, lengths beside the edges of tiles.
problems="full/B:2/H:2/D:17/T:33/lse
causal/B:1/H:4/Hkv:2/D:64/Tq:40/Tk:65/lse
causal_bottom_right/B:2/H:4/Hkv:1/D:64/Tq:1/Tk:97/lse
window:16/B:1/H:4/Hkv:2/D:32/T:70/lse
full/B:2/H:2/Hkv:1/D:20/Dv:13/T:49/lengths:0,31/lse/layout:padded
full/B:1/H:2/D:16/T:35/mask:hq/bias:b/softcap:5/lse/weights/layout:bthd
causal/B:1/H:2/D:24/T:50/fill:nonfinite
full/B:2/H:2/D:16/Tq:5/Tk:0/lse
linear/full/B:2/H:4/Hkv:2/D:33/Tq:20/Tk:70/lengths:0,41
linear/causal/B:1/H:2/D:32/Dv:20/T:90/layout:padded
linear/causal_bottom_right/B:1/H:2/Hkv:1/D:16/Tq:1/Tk:66"
# And without the properties, which take ten times as long.
more="full/B:1/H:2/Hkv:1/D:17/Dv:9/T:67/sink/lse/bf16
causal/B:1/H:4/Hkv:2/D:40/Tq:3/Tk:130/lse/bf16/out:f32
window:20/B:1/H:2/D:33/T:70/bias:h/lse/f16
causal/B:1/H:2/Hkv:1/D:24/T:70/docs:30/lse
full/B:1/H:2/D:24/T:66/blocks:16,16,0.4,h/lse
causal/B:1/H:2/D:32/T:50/lse/rope:half
full/B:1/H:2/D:16/T:50/alibi/dropout:0.3
backward/causal/B:1/H:4/Hkv:2/D:24/T:50
backward/full/B:1/H:2/Hkv:1/D:17/Dv:9/Tq:20/Tk:67/bias:h/sink/bf16
linear/causal/B:1/H:2/Hkv:1/D:24/T:70/state/final_state
linear/causal/B:1/H:2/D:20/T:70/decay/bf16
linear_backward/causal/B:1/H:2/Hkv:1/D:24/T:50
layer/causal/B:1/H:2/D:16/T:20"
options_of() { for problem in $1; do echo "--problem $problem"; done; }

memcheck() {
  valgrind --quiet --error-exitcode=9 "$program" "$@" >"$log" 2>&1
}

memcheck verify --threads 2 --plugin "$planted" --variant unwritten --problem full/B:1/H:1/D:8/T:5
if [ $? -ne 9 ]; then
  cat "$log"
  echo "memcheck let a planted read of unwritten workspace pass"
  status=1
fi

instruction_sets=portable
[ "$(uname -m)" != x86_64 ] || instruction_sets="portable avx2"
hold() { # name, options of verify
  name=$1
  shift
  started=$(date +%s)
  if memcheck verify --threads 2 "$@"; then
    echo "$name: $(grep ' variants, ' "$log"), $(($(date +%s) - started)) s under memcheck"
  else
    echo "$name: memcheck or verification failed; to see it alone:"
    echo "  valgrind --track-origins=yes $program verify --threads 2 $*"
    sed 's/^/    /' "$log" | tail -n 100
    status=1
  fi
}

for isa in $instruction_sets; do
  hold "$isa" $(options_of "$problems") --isa "$isa"
  hold "$isa, without properties" --properties none $(options_of "$more") --isa "$isa"
done
exit "$status"
