#!/usr/bin/env bash
# Plants faults into the variants, one at a time, and sees that each is caught:
#
#   scripts/mutants.sh BUILD [--check | --hints | --readme] [NAME...]
#
# The faults stand in tests/mutants/faults.txt. For each, the sources of the variants are copied, the fault is
# written into the copy, the object is built from it with this repository's Makefile and QUICK=1 (what the fault does
# not touch is built so once for all), and the program of BUILD runs `verify --fail-fast` on it. The row "none" is the
# same path without a fault, on one problem in eight, and must pass. A fault of variants/cuda is compiled for the emulated
# device and verified on the problems of tests/variants/cuda_problems.txt, which make test poses too. Prints a row for each fault and last "N caught,
# M survived". A race that needs two processors is not testable on a machine with one: its row says so, and it counts
# as neither.
#
#   NAME...     only these faults
#   --each      a fault of several instruction sets is verified under each of them, and not the first alone
#   --check     only see that every fault still fits the sources; builds nothing
#   --hints     only faults that have a kind: say of each what the hint names, and last how often that is the fault's kind
#   --readme    of all faults: also write the table to tests/mutants/README.md
#
# Status: 0 every fault is caught, 1 one survived or could not be planted. With --hints: 0 where two thirds of the kinds are named.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/check_of.sh"
table=${ATTN_FAULTS:-$root/tests/mutants/faults.txt}
build= check= hints= readme= each= wanted=
for argument; do
  case $argument in
  --check) check=yes ;;
  --hints) hints=yes ;;
  --readme) readme=yes ;;
  --each) each=yes ;;
  -*) echo "mutants: there is no option $argument; there are --each, --check, --hints and --readme" >&2; exit 2 ;;
  *) if [ -z "$build" ]; then build=$argument; else wanted="$wanted $argument"; fi ;;
  esac
done
[ -n "$build" ] || { echo "mutants: the build folder is missing: scripts/mutants.sh build" >&2; exit 2; }
build=$(cd "$root" && realpath -m "$build")
work=$build/mutants
mkdir -p "$work" || exit 2

complain() { echo "mutants: $*" >&2; }

# ---- the table: names, and of each fault its fields and its edits in order ------------------------------

names=()
declare -A what file variant kind isa needs old new edits

read_table() {
  local line name= key= value
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    '#'* | '') key= ; continue ;;
    ' '*)
      case $key in
      old) old[$name.${edits[$name]}]+=$'\n'$line ;;
      new) new[$name.${edits[$name]}]+=$'\n'$line ;;
      *) complain "$table: only old and new texts go on in the next line: $line"; return 1 ;;
      esac
      continue ;;
    esac
    key=${line%%:*} value=${line#*:} value=${value# }
    case $line in
    name:*) name=$value; names+=("$name"); edits[$name]=0 ;;
    what:*) what[$name]=$value ;;
    file:*) file[$name]=$value ;;
    variant:*) variant[$name]=$value ;;
    kind:*) kind[$name]=$value ;;
    isa:*) isa[$name]=$value ;;
    needs:*) needs[$name]=$value ;;
    old:*) edits[$name]=$((edits[$name] + 1)); old[$name.${edits[$name]}]=$value ;;
    new:*) new[$name.${edits[$name]}]=$value ;;
    *) complain "$table: not a field of a fault: $line"; return 1 ;;
    esac
  done <"$table"
}

# What hints name: harness/verify/hint*.c.
all_kinds="alignment band bias columns empty features function heads hidden keys lengths lse mask maximum precision rows scale sink \
softcap sum"
all_sets="emulated_amx emulated_bf16 portable avx2 avx512 avx512_bf16 avx512_amx"

# The source file, without .c, that has the kernels of an instruction set.
file_of() { # set
  if [ "$1" = emulated_bf16 ]; then echo portable; else echo "$1"; fi
}

# Replaces the text OLD, which must stand in the input exactly once, by NEW; else says why not, status 1.
replace_once() {
  awk '
    { text = text $0 "\n" }
    END {
      old = ENVIRON["OLD"]
      at = index(text, old)
      rest = substr(text, at + length(old))
      if (!at || index(rest, old)) {
        print (at ? "holds more than once: " : "does not hold: ") old >"/dev/stderr"
        exit 1
      }
      printf "%s%s%s", substr(text, 1, at - 1), ENVIRON["NEW"], rest
    }'
}

# The source of a fault on standard output. An old text that fits no longer would be a fault that is not planted.
edited() { # name
  local name=$1 text n
  text=$(cat "$root/${file[$name]}") || return 1
  for ((n = 1; n <= edits[$name]; n++)); do
    text=$(printf '%s\n' "$text" | OLD=${old[$name.$n]} NEW=${new[$name.$n]-} replace_once 2>"$work/$name.why") || {
      complain "$name is stale: ${file[$name]} $(cat "$work/$name.why")"
      return 1
    }
  done
  printf '%s\n' "$text"
}

check_table() {
  local name bad=0
  for name in "${names[@]}"; do
    if [ -z "${what[$name]-}" ] || [ -z "${file[$name]-}" ] || [ -z "${variant[$name]-}" ] ||
      [ "${edits[$name]}" -eq 0 ]; then
      complain "$name lacks what, file, variant, or old and new"; bad=1
    fi
    case ${needs[$name]-two processors} in
    'two processors') ;;
    *) complain "$name needs something unknown: ${needs[$name]}; there is: two processors"; bad=1 ;;
    esac
    for set in ${isa[$name]-portable}; do
      case " $all_sets " in
      *" $set "*) ;;
      *) complain "$name is for no instruction set: $set"; bad=1 ;;
      esac
    done
    for word in ${kind[$name]-}; do
      case " $all_kinds " in
      *" $word "*) ;;
      *) complain "$name is of no kind that a hint names: $word"; bad=1 ;;
      esac
    done
    edited "$name" >"$work/check" || bad=1
  done
  [ "$(printf '%s\n' "${names[@]}" | sort -u | wc -l)" -eq ${#names[@]} ] ||
    { complain "two faults have the same name"; bad=1; }
  return $bad
}

# ---- one fault -------------------------------------------------------------------------------------------

same_code() { # two objects, debugging information left out
  objcopy --strip-debug "$1" "$work/$3.a" && objcopy --strip-debug "$2" "$work/$3.b" &&
    cmp -s "$work/$3.a" "$work/$3.b"
}

# Whether a fault is one of the kernels for GPUs.
is_for_device() { # name
  case ${file[$1]} in variants/cuda/*) ;; *) false ;; esac
}

# How such a one is verified: on those of the problems that the variant solves, and under one schedule, for a race is seen
# under any; the whole grid would take minutes.
on_device() { # variant
  echo --device emu --isa forwards
  # shellcheck disable=SC2046 # an option and a problem on each line
  "$build/attnbench" bench --benchmark_list_tests --quiet --device emu --variant "$1" \
    $(sed 's/^/--problem /' "$root/tests/variants/cuda_problems.txt") | sed 's#^[a-z_]*/#--problem #'
}

objects=build/attnbench_variants.so
device_objects=build/attnbench_emu.so

# The Makefile on the variants of a tree.
build_variants() { # tree, jobs, what, options...
  local tree=$1 jobs=$2 what=$3
  shift 3
  # A fault may give a warning.
  make --no-print-directory -j"$jobs" -C "$tree" "$@" BUILD=build SETUP=no WERROR= QUICK=1 CFLAGS= \
    $what >"$tree/make.log" 2>&1
}

# The variants without a fault: what the trees of all faults are copies of.
sound=$work/sound
build_sound() {
  rm -rf "$sound/variants"
  mkdir -p "$sound/build" &&
    cp -pr "$root/variants" "$root/Makefile" "$sound" &&
    cp -p "$build/attnbench" "$sound/build" &&
    ln -sfn "$root/scripts" "$root/harness" "$root/reference" "$root/tests" "$sound" || return 1
  if ! build_variants "$sound" "$(nproc)" "$objects $([ ! -f "$build/attnbench_emu.so" ] || echo $device_objects)"; then
    complain "the variants do not compile: $(grep -m 1 error "$sound/make.log")"
    return 1
  fi
}

# A tree of its own, in which make finds all objects up to date but those of the fault. The kernels of instruction
# sets that the fault is not for stay as they are: they take longest to build.
plant() { # name
  local name=$1 tree=$work/$1 object different= set wanted= kept=() what=$objects
  if is_for_device "$name"; then what=$device_objects; fi
  rm -rf "$tree"
  cp -pr "$sound" "$tree" || return 1
  [ "$name" != none ] || return 0
  for set in ${isa[$name]-$all_sets}; do wanted+=" $(file_of "$set") "; done
  for set in emulated_amx portable avx2 avx512 avx512_bf16 avx512_amx; do
    case $wanted in
    *" $set "*) ;;
    *) kept+=(-o "build/variants/tile/$set.o") ;;
    esac
  done
  edited "$name" >"$tree/${file[$name]}" || return 1
  if ! build_variants "$tree" 1 $what -o build/flags "${kept[@]}"; then
    complain "$name does not compile: $(grep -m 1 error "$tree/make.log")"
    return 1
  fi
  for object in $(cd "$tree/build" && find variants emulated -name '*.o' -newer "$tree/${file[$name]}"); do
    same_code "$tree/build/$object" "$sound/build/$object" "$name" || different=yes
  done
  rm -f "$work/$name.a" "$work/$name.b"
  if [ -z "$different" ]; then complain "$name changes no code"; return 1; fi
}

# Plants a fault and verifies; leaves "outcome TAB seconds TAB check TAB problem" in NAME.result. The outcome is
# caught, survived or broken (could not be planted or run); of "none": passed or failed.
try() { # name
  local name=$1 tree=$work/$1 outcome=broken check= problem= words set status started=${EPOCHREALTIME/[.,]/}
  if plant "$name"; then
    for set in ${isa[$name]-any}; do
      (cd "$tree" && OMP_WAIT_POLICY=passive timeout 300 build/attnbench verify --fail-fast --threads 2 \
        $(! is_for_device "$name" || on_device "${variant[$name]}") ${variant[$name]:+--variant "${variant[$name]}"} ${isa[$name]:+--isa "$set"} \
        $([ "$name" != none ] || echo --every 8) >verify.log 2>&1)
      status=$?
      [ $status -eq 1 ] || break # it has to be seen in each
    done
    words=$(grep -m 1 -E '^ *FAILED: |crashed \(' "$tree/verify.log" | sed 's/^ *FAILED: //')
    problem=$(sed -n "s/.*reproduce: .*--problem '\([^']*\)'\( --isa \([a-z0-9_]*\)\)\{0,1\}.*/\1 \3/p" "$tree/verify.log" |
      head -n 1)
    if [ $status -eq 0 ]; then
      outcome=survived
    elif [ $status -eq 1 ] && [ -n "$words" ]; then
      outcome=caught check=$(check_of "$words")
    else
      complain "$name: verify ended with status $status: $(tail -n 1 "$tree/verify.log")"
    fi
    if [ "$name" = none ]; then
      case $outcome in survived) outcome=passed ;; caught) outcome=failed ;; esac
    fi
  fi
  printf '%s\t%d\t%s\t%s\n' $outcome $(((${EPOCHREALTIME/[.,]/} - started) / 100000)) "$check" "${problem% }" \
    >"$work/$name.result.new"
  sed -n 's/^ *hint: //p' "$tree/verify.log" 2>/dev/null | head -n 1 >"$work/$name.hint"
  mv "$work/$name.result.new" "$work/$name.result"
}

# ---- all of them -----------------------------------------------------------------------------------------

# What the hint says of a fault, and whether that is its kind.
print_hint() { # name
  local said answer=no
  said=$(cat "$work/$1.hint")
  case " ${kind[$1]} " in *" ${said%%:*} "*) answer=yes named=$((named + 1)) ;; esac
  hinted=$((hinted + 1))
  printf '%-40s %-14s %-3s  %s\n' "$1" "${kind[$1]}" $answer "${said:-no hint}"
}

print_row() { # name
  if [ -n "$hints" ] && [ "$1" != none ]; then
    print_hint "$1"
    rm -rf "${work:?}/$1"
    return
  fi
  local outcome tenths check problem
  IFS=$'\t' read -r outcome tenths check problem < <(sed 's/\t\t/\t-\t/' "$work/$1.result")
  printf '%-32s %-9s %3d.%d s  %-28s %-58s %s\n' "$1" "$outcome" $((tenths / 10)) $((tenths % 10)) "$check" \
    "${what[$1]}" "${problem:+on $problem}"
  case $outcome in
  caught) caught=$((caught + 1)) ;;
  passed) ;;
  *) survived=$((survived + 1)) ;;
  esac
  if [ $outcome != survived ] && [ $outcome != broken ]; then rm -rf "${work:?}/$1"; fi
}

write_readme() {
  local name outcome tenths check problem
  cat <<'TEXT'
# Planted faults

Each row is a fault of [faults.txt](faults.txt) that `make mutants` writes into a copy of the sources, builds and
verifies. This page is what `make mutants ARGS=--readme` writes: the check that catches each fault first, and the
problem on which it does, and the seconds to build and catch it beside another, on two cores with AVX-512.

| fault | what | file | caught by | seconds | on |
|---|---|---|---|---|---|
TEXT
  for name in "${list[@]:1}"; do
    IFS=$'\t' read -r outcome tenths check problem < <(sed 's/\t\t/\t-\t/' "$work/$name.result")
    [ "$outcome" = caught ] || check="**$outcome**"
    printf '| %s | %s | %s | %s | %d.%d | `%s` |\n' "$name" "${what[$name]}" "${file[$name]#variants/}" "$check" \
      $((tenths / 10)) $((tenths % 10)) "$problem"
  done
}

# Whether this processor has the instruction set: verify refuses one that it has not.
runs_here() { # instruction set
  [ "$1" = portable ] ||
    "$build/attnbench" verify --variant fused --isa "$1" --problem full/B:1/H:1/D:1/T:1/bf16 >"$work/isa.log" 2>&1
}

# Keeps of a fault's instruction sets those that this build and this machine have; status 1: none.
sets_here() { # name
  local set kept=
  [ -n "${isa[$1]-}" ] || return 0
  for set in ${isa[$1]}; do
    if [ -f "$build/variants/tile/$(file_of "$set").o" ] && runs_here "$set"; then kept+="${kept:+ }$set"; fi
    if [ -n "$kept" ] && [ -z "$each" ]; then break; fi
  done
  [ -n "$kept" ] && isa[$1]=$kept
}

read_table && check_table || exit 1
[ -z "$check" ] || { echo "${#names[@]} faults fit the sources"; exit 0; }
for name in $wanted; do
  [ -n "${what[$name]-}" ] || { complain "there is no fault $name; tests/mutants/faults.txt names them"; exit 2; }
done
what[none]="the variants as they are" variant[none]= file[none]=variants
list=(none) untestable=0
if [ -n "$hints" ]; then list=(); fi
for name in ${wanted:-"${names[@]}"}; do
  if [ -n "$hints" ]; then
    [ -n "${kind[$name]-}" ] || continue
    # Under one instruction set, which is enough to see what is said and built in a fifth of the time.
    is_for_device "$name" || isa[$name]=${isa[$name]:-portable}
  fi
  if ! "$build/attnbench" list $(! is_for_device "$name" || echo --device emu) 2>&1 | grep -q "^${variant[$name]} "; then
    complain "$name is left out: this build has no variant ${variant[$name]}"
  elif ! sets_here "$name"; then
    complain "$name is left out: this machine has no ${isa[$name]}"
  elif [ -n "${needs[$name]-}" ] && [ "$(nproc)" -lt 2 ]; then
    printf '%-32s not testable here: one processor  %s\n' "$name" "${what[$name]}"
    untestable=$((untestable + 1))
  else
    list+=("$name")
  fi
done
if [ ${#list[@]} -le 1 ] && [ $untestable -gt 0 ]; then
  echo "0 caught, 0 survived, $SECONDS s"
  exit 0
fi

rm -f "$work"/*.result
build_sound || exit 1
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
caught=0 survived=0 printed=0 hinted=0 named=0
for name in "${list[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
  while [ -f "$work/${list[printed]}.result" ]; do print_row "${list[printed++]}"; done
  try "$name" &
done
wait
while [ $printed -lt ${#list[@]} ]; do print_row "${list[printed++]}"; done
if [ -n "$readme" ]; then write_readme >"$root/tests/mutants/README.md"; fi
if [ -n "$hints" ]; then
  echo "the hint names the kind of $named of $hinted faults, $SECONDS s"
  [ $((3 * named)) -ge $((2 * hinted)) ]
  exit
fi
echo "$caught caught, $survived survived, $SECONDS s"
[ $survived -eq 0 ] && [ $caught -gt 0 ]
