#!/bin/sh
# Runs a short verification of the kernels for GPUs on cuda:0 under compute-sanitizer: memcheck, for addresses that
# nobody was given, and racecheck, for shared memory that is touched without a barrier in between. What the emulated device
# sees of both, a second witness sees here in the code that really runs. `scripts/memcheck_cuda.sh BUILD`. A plugin holds a kernel
# with each fault, and a check that lets it pass is worth nothing. Never run on a GPU.
set -u
build=$1
program=$build/attnbench
planted=$build/cuda/device_mistakes.so
status=0

leave_out() {
  echo "$1: kernels for GPUs are not run under compute-sanitizer; --device emu looks for the same mistakes"
  exit 0
}
[ -n "${NVCC:-}" ] || leave_out "nvcc is not installed"
command -v compute-sanitizer >/dev/null || leave_out "compute-sanitizer is not installed"
[ -e /dev/nvidiactl ] || leave_out "there is no GPU"

make --no-print-directory cuda "$planted" || exit 2
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT

# Buffers then end where their allocations do, instead of within guards of ours.
export ATTN_CUDA_GUARDS=no

arguments="verify --device cuda:0 --isolate=false"
while read -r problem; do arguments="$arguments --problem $problem"; done <<'PROBLEMS'
causal/B:2/H:2/Hkv:1/D:24/Dv:20/T:70/sink/lse
band:3,70,-5/B:1/H:2/D:16/Tq:100/Tk:90/lse/f16
full/B:1/H:8/Hkv:1/D:128/Tq:1/Tk:600/lse/bf16
linear/causal/B:1/H:4/Hkv:2/D:8/T:150
PROBLEMS

for tool in memcheck racecheck; do
  # shellcheck disable=SC2086 # they are several words
  compute-sanitizer --tool $tool --error-exitcode 99 "$program" $arguments >"$log" 2>&1
  found=$?
  if [ $found -ne 0 ]; then
    cat "$log"
    echo "memcheck-cuda: $tool found errors, or the verification failed (status $found)"
    status=1
  fi
  fault=beyond_the_end
  [ $tool = memcheck ] || fault=no_barrier
  compute-sanitizer --tool $tool --error-exitcode 99 "$program" verify --device cuda:0 --isolate=false \
    --plugin "$planted" --variant $fault --problem full/B:1/H:1/D:8/Dv:4/T:16 >"$log" 2>&1
  if [ $? -ne 99 ]; then
    cat "$log"
    echo "memcheck-cuda: $tool does not see the fault of $fault, and says nothing of the others then"
    status=1
  fi
done
[ $status -ne 0 ] || echo "memcheck-cuda: no errors"
exit $status
