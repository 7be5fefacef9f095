#!/bin/sh
# Runs what was built for aarch64 under qemu's emulation of its processors: tests, and a short verification of every
# variant. `scripts/aarch64.sh BUILD TEST...`. First as a processor that multiplies pairs of bfloat16 (BFDOT), then as one of
# Armv8.0, which has no more than NEON: an instruction that this one lacks would end the program. The emulator
# computes exactly what the processor does; of speed it says nothing.
# The emulated program finds its libraries where Debian's packages of that architecture put them: with those of the
# cross compiler (-L /usr/aarch64-linux-gnu) it would load a C library of one build and a loader of another, and hang.
# Ends with "N passed, N failed".
set -u
build=$1
shift
passed=0
failed=0
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
export OMP_WAIT_POLICY=passive

# add GOOD BAD: to what has passed and failed
add() {
  passed=$((passed + $1))
  failed=$((failed + $2))
}

# emulated PROCESSOR COMMAND...
emulated() {
  processor=$1
  shift
  qemu-aarch64 -L / -cpu "$processor" "$@"
}

# has_sets PROCESSOR SETS: it offers these instruction sets and no others
has_sets() {
  found=$(emulated "$1" "$build/attnbench" list | sed -n 's/^instruction sets, slowest first: //p')
  if [ "$found" = "$2" ]; then add 1 0; else
    echo "$1: the instruction sets are '$found', not '$2'"
    add 0 1
  fi
}

tests() { # PROCESSOR TEST...
  ATTN_TEST_WRAPPER="qemu-aarch64 -L / -cpu $1"
  export ATTN_TEST_WRAPPER
  shift
  scripts/run_tests.sh "$@" >"$log"
  sed '$d' "$log"
  read -r good _ bad _ <<END
$(tail -n 1 "$log")
END
  add "${good:-0}" "${bad:-1}"
}

verify() { # PROCESSOR OPTION...
  started=$(date +%s)
  if emulated "$@" >"$log" 2>&1; then
    echo "verification as $1: $(tail -n 1 "$log"), $(($(date +%s) - started)) s emulated"
    add 1 0
  else
    sed 's/^/    /' "$log"
    add 0 1
  fi
}

# Every variant and type; lengths beside the edges of tiles, an odd number of features and of keys.
problems=
for type in "" /bf16 /f16; do
  for problem in full/B:2/H:2/D:65/Dv:33/T:67 causal/B:1/H:4/Hkv:1/D:64/Tq:40/Tk:131/fill:normal \
    causal_bottom_right/B:1/H:4/Hkv:2/D:33/Tq:1/Tk:97 window:9/B:1/H:2/D:32/T:70/lengths:67/fill:exact \
    full/B:1/H:2/D:17/T:50/fill:denormal linear/causal/B:1/H:2/D:33/T:90; do
    problems="$problems --problem $problem$type"
  done
done
for problem in full/B:2/H:2/D:65/Dv:33/T:67 causal/B:1/H:4/Hkv:2/D:64/Tq:40/Tk:131/fill:normal; do
  problems="$problems --problem backward/$problem"
done
problems="$problems --problem linear_backward/causal/B:1/H:4/Hkv:2/D:33/T:90"

for processor in max cortex-a57; do
  echo "aarch64, emulated: $processor"
  sets="emulated_amx emulated_bf16 portable neon"
  [ "$processor" != max ] || sets="$sets neon_bf16"
  has_sets "$processor" "$sets"
  tests "$processor" "$@"
  # The reference is the same code for either.
  # shellcheck disable=SC2046 # a test is a word
  set -- $(printf '%s\n' "$@" | grep -v /reference/)
done
verify max "$build/attnbench" verify --threads 2 --run-limit 60 $problems
# Properties of 20 drawn problems take minutes under an emulator, so that one is drawn. A variant that is posed none fails: the few
# problems of layers and of linear attention's backward pass are posed in a run of their own, of one problem in 9 and not in 70.
names() { emulated cortex-a57 "$build/attnbench" list | awk "\$3 ~ /^O[(]/ && $1 { print \$1 }" | paste -s -d , -; }
few='$2 ~ /^(linear_backward|layer)$/'
verify cortex-a57 "$build/attnbench" verify --threads 2 --run-limit 60 --count 1 --every 70 --variant "$(names "!($few)")"
verify cortex-a57 "$build/attnbench" verify --threads 2 --run-limit 60 --count 1 --every 9 --variant "$(names "$few")"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
