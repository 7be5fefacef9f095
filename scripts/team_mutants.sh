#!/usr/bin/env bash
# Plants faults into the variants whose work is spread over ranks of MPI, one at a time, and sees that each is caught:
# `scripts/team_mutants.sh BUILD [--readme] [NAME...]`. As scripts/mutants.sh, whose table has the same form, but in
# attnbench_mpi.so, and verified by `mpirun -n 4`, first on what caught it last. Last comes the control: without a fault, all that caught one passes.
# --readme: also write the table to tests/mutants/TEAM.md. Status: 0 every fault is caught.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/check_of.sh"
export ATTN_FAULTS=$root/tests/mutants/team_faults.txt OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
build= readme= wanted=
for argument; do
  case $argument in
  --readme) readme=yes ;;
  *) if [ -z "$build" ]; then build=$(realpath "$argument"); else wanted="$wanted $argument"; fi ;;
  esac
done
[ -n "$build" ] || { echo "team_mutants: the build folder is missing: scripts/team_mutants.sh build" >&2; exit 2; }
command -v mpirun >/dev/null && [ -f "$build/attnbench_mpi.so" ] ||
  { echo "team_mutants: left out: MPI is not installed, or attnbench_mpi.so was not built"; exit 0; }
"$root/scripts/mutants.sh" "$build" --check >/dev/null || exit 1

work=$build/team_mutants
rm -rf "$work"
mkdir -p "$work/none"
cp "$build/attnbench" "$build/attnbench_mpi.so" "$work/none"
field() { awk -v name="$1" -v field="$2:" '$1 == "name:" { at = $2 == name } at && $1 == field { sub(/^[a-z]*: */, ""); print; exit }' "$ATTN_FAULTS"; }

# Small, and among them each thing that ranks can do wrong.
problems=(causal/B:2/H:4/Hkv:2/D:8/T:37/lse full/B:1/H:4/Hkv:4/D:8/T:30/sink window:5/B:2/H:4/Hkv:2/D:8/T:60
  full/B:2/H:5/Hkv:5/D:8/Tq:9/Tk:21/lengths:7,21 causal/B:2/H:4/Hkv:4/D:8/T:33/offsets:0,5
  full/B:2/H:8/Hkv:4/D:8/T:29/qlengths:5,29 causal/B:1/H:6/Hkv:2/D:8/T:24/alibi full/B:1/H:6/Hkv:2/D:8/Dv:4/T:31/bf16
  full/B:1/H:4/Hkv:2/D:16/Tq:1/Tk:100/fill:rising full/B:1/H:4/Hkv:2/D:16/Tq:1/Tk:100/sink/lengths:20)
verify() { # folder, ranks, variant, options...
  local folder=$1 ranks=$2 variant=$3
  shift 3
  OMPI_MCA_pml=ob1 timeout 300 mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca odls_base_sigkill_timeout 0 -n "$ranks" "$folder/attnbench" verify \
    --variant "$variant" --threads 1 --run-limit 3 --fail-fast "$@" >"$folder/log" 2>&1
}
problems_of() { # variant, which takes them
  local problem
  for problem in "${problems[@]}"; do
    [[ $1 == ring_striped && $problem == */alibi ]] || printf -- '--problem %s ' "$problem"
  done
}

what_failed() { # folder
  grep -m 1 -E '^ *FAILED: |crashed \(|did not end within' "$1/log" | sed 's/^ *FAILED: //'
}

# On what caught the fault when TEAM.md was written, with no more ranks than that takes: they start slowly. Status 1 where the same check
# catches it again.
verify_known() { # name, variant
  local check problem ranks
  IFS=$'\t' read -r check problem ranks < <(sed -n "s/^| $1 | .* | \([^|]*\) | \`\([^ ]*\) on \([1-4]\) ranks\` |\$/\1\t\2\t\3/p" "$root/tests/mutants/TEAM.md")
  [ -n "${ranks-}" ] || return 0
  verify "$work/$1" "$ranks" "$2" --problem "$problem"
  [ $? -eq 1 ] && [ "$(check_of "$(what_failed "$work/$1")")" = "$check" ] && return 1
  return 0
}

plant() { # name
  local file object
  file=$(field "$1" file)
  mkdir -p "$work/$1/source/$(dirname "$file")"
  cp -r "$root/variants" "$work/$1/source" && "$root/scripts/mutants.sh" "$build" --print "$1" >"$work/$1/source/$file" || return 1
  object=$work/$1/fault.o
  OMPI_CC=${CC:-gcc} MPICH_CC=${CC:-gcc} mpicc -std=gnu17 -w -O1 -fopenmp -fPIC -fvisibility=hidden -DATTN_X86_64 -I"$work/$1/source" \
    -c -o "$object" "$work/$1/source/$file" >"$work/$1/log" 2>&1 || return 1
  # shellcheck disable=SC2046 # objects
  OMPI_CC=${CC:-gcc} MPICH_CC=${CC:-gcc} mpicc -fopenmp -shared -o "$work/$1/attnbench_mpi.so" "$object" "$build/team/runtime.o" \
    $(ls "$build"/variants/team/*.o "$build"/variants/tile/*.o | grep -v "/${file%.c}.o") -lm >>"$work/$1/log" 2>&1 &&
    rm -r "$work/$1/source" && cp "$build/attnbench" "$work/$1"
}

caught=0 survived=0 rows=
for name in ${wanted:-$(sed -n 's/^name: //p' "$ATTN_FAULTS")}; do
  outcome=broken check= words=
  if plant "$name"; then
    variant=$(field "$name" variant)
    verify_known "$name" "$variant"
    status=$?
    if [ $status -eq 0 ]; then
      # shellcheck disable=SC2046 # words
      verify "$work/$name" 4 "$variant" $(problems_of "$variant")
      status=$?
    fi
    words=$(what_failed "$work/$name")
    if [ $status -eq 0 ]; then outcome=survived; elif [ -n "$words" ]; then outcome=caught check=$(check_of "$words"); fi
  fi
  problem=$(sed -n "s/.*reproduce: .*--problem '\([^']*\)'\( --isa ranks\([0-9]*\)\)\{0,1\}.*/\1 on \3 ranks/p" "$work/$name/log" | head -n 1)
  printf '%-38s %-9s %-34s %s\n' "$name" $outcome "$check" "$problem"
  rows+="| $name | $(field "$name" what) | $(field "$name" file | sed 's#variants/team/##') | $check | \`$problem\` |"$'\n'
  if [ $outcome = caught ]; then caught=$((caught + 1)) && rm -rf "${work:?}/$name"; else survived=$((survived + 1)); fi
done
for variant in ring ring_striped ulysses tree_decode; do
  # shellcheck disable=SC2046 # words
  verify "$work/none" 4 $variant $(problems_of $variant) ||
    { echo "none: $variant fails without a fault: $(grep -m 1 -E 'FAILED: |attnbench: ' "$work/none/log")"; survived=$((survived + 1)); }
done
if [ -n "$readme" ]; then
  cat >"$root/tests/mutants/TEAM.md" <<TEXT
# Planted faults of the variants whose work is spread over ranks

Each row is a fault of [team_faults.txt](team_faults.txt) that \`scripts/team_mutants.sh build\` writes into a copy of the sources,
builds and verifies with \`mpirun -n 4\`, with one, two, three and four ranks: the check that catches it, and on what. This page is
what \`--readme\` writes.

| fault | what | file | caught by | on |
|---|---|---|---|---|
$rows
TEXT
fi
echo "$caught caught, $survived survived, $SECONDS s"
[ $survived -eq 0 ] && [ $caught -gt 0 ]
