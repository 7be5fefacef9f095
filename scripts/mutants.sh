#!/usr/bin/env bash
# Plants faults into the variants, one at a time, and sees that each is caught:
#
#   scripts/mutants.sh BUILD [--check | --hints | --readme] [--each] [--whole] [--since=COMMIT] [NAME...]
#
# The faults stand in tests/mutants/faults.txt. For each, the fault is written into a copy of its source, the objects made
# from that are built as this repository's Makefile does with QUICK=1 (what the fault does not touch is built so once for
# all), and the program of BUILD runs `verify --fail-fast` on it: first on the problem on which the same check caught the
# fault when tests/mutants/README.md was written, and where it does not now, on all. A fault of variants/cuda is compiled
# for the emulated device and verified on the problems of tests/variants/cuda_problems.txt, which make test poses too. The row
# "none" is the control: without a fault, each problem that caught one passes. Prints a row for each fault and last "N caught,
# M survived". A race that needs two processors is not testable on a machine with one: its row says so, and it counts
# as neither.
#
#   NAME...     only these faults
#   --each      a fault of several instruction sets is verified under each of them, and not the first alone
#   --print     only print the source with the one fault that is named
#   --check     only see that every fault still fits the sources; builds nothing
#   --hints     only faults that have a kind: say of each what the hint names, and last how often that is the fault's kind
#   --whole     pose all problems at once: no fault is known
#   --since=COMMIT  only faults of variants that are not what they were at that commit, at which all were caught. For who knows that the rest
#               is as it was: the table, the Makefile, what verifies and the headers that it shares with variants
#   --readme    also write these faults' rows of tests/mutants/README.md; the others stay
#
# Status: 0 every fault is caught, 1 one survived or could not be planted. With --hints: 0 where two thirds of the kinds are named.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/check_of.sh"
table=${ATTN_FAULTS:-$root/tests/mutants/faults.txt}
build= check= print= hints= readme= each= whole= since= wanted=
for argument; do
  case $argument in
  --check) check=yes ;;
  --print) print=yes ;;
  --hints) hints=yes ;;
  --readme) readme=yes ;;
  --whole) whole=yes ;;
  --each) each=yes ;;
  --since=*) since=${argument#*=} ;;
  -*) echo "mutants: there is no option $argument; there are --each, --whole, --check, --hints, --readme and --since=COMMIT" >&2; exit 2 ;;
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

# What hints name, as `judge --help` says.
all_kinds=$("$build/attnbench" judge --help | sed -n '/^A hint begins with its kind: /,/[.]$/p' |
  sed 's/.*kind: //; s/[.]$//' | tr -d ',' | tr '\n' ' ')
[ -n "$all_kinds" ] || { complain "$build/attnbench does not say which kinds there are: make"; exit 2; }
all_properties=", $("$build/attnbench" verify --properties '?' 2>&1 | sed 's/.*there are: //')"
all_sets="emulated_amx emulated_bf16 portable avx2 avx512 avx512_bf16 avx512_amx"

# The source of a fault on standard output. An old text that does not stand there exactly once would be a fault that is not planted,
# or elsewhere.
edited() { # name
  local name=$1 text before rest found n LC_ALL=C
  [ -r "$root/${file[$name]}" ] || { complain "$name: there is no ${file[$name]}"; return 1; }
  IFS= read -r -d '' text <"$root/${file[$name]}"
  for ((n = 1; n <= edits[$name]; n++)); do
    found=${old[$name.$n]}
    before=${text%%"$found"*}
    rest=${text:${#before}+${#found}}
    if [ "$before" = "$text" ]; then complain "$name is stale: ${file[$name]} does not hold: $found"; return 1; fi
    case $rest in *"$found"*) complain "$name is stale: ${file[$name]} holds more than once: $found"; return 1 ;; esac
    text=$before${new[$name.$n]-}$rest
  done
  printf '%s' "$text"
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

# Whether a fault is one of the kernels for GPUs.
is_for_device() { # name
  case ${file[$1]} in variants/cuda/*) ;; *) false ;; esac
}

# What such a one is verified on: those of the problems that the variant solves; the whole grid would take minutes. Asked once
# for all of its faults.
on_device() { # variant
  local part=$work/$1.problems.$BASHPID
  if [ ! -f "$work/$1.problems" ]; then
    # shellcheck disable=SC2046 # an option and a problem on each line
    "$build/attnbench" bench --benchmark_list_tests --quiet --device emu --variant "$1" \
      $(sed 's/^/--problem /' "$root/tests/variants/cuda_problems.txt") | sed 's#^[a-z_]*/##' >"$part"
    mv "$part" "$work/$1.problems"
  fi
  cat "$work/$1.problems"
}

objects=build/attnbench_variants.so
device_objects=build/attnbench_emu.so

# The Makefile on the variants as they are. A fault may give a warning.
make_sound() { # options and targets...
  make --no-print-directory -C "$sound" BUILD=build SETUP=no WERROR= WARNINGS=-w QUICK=1 CFLAGS= "$@"
}

# Of each object and shared object how it is made, and of each source file which objects are made from it: a fault then
# costs what is made again and no more. make itself takes half a second to look around.
declare -A command users
read_commands() { # targets
  local line target object source
  while IFS= read -r line; do
    target=${line##* -o }
    command[${target%% *}]=$line
  done < <(make_sound -n -B V=1 "$@" 2>/dev/null | grep -- ' -o build/')
  while read -r object source; do
    case " ${users[$source]-} " in *" $object "*) ;; *) users[$source]+=" $object" ;; esac
  done < <(cd "$sound" && find build -name '*.d' -exec awk '
    { for (n = 1; n <= NF; n++) {
        source = $n
        sub(/:$/, "", source)
        while (sub(/[^\/]+\/[.][.]\//, "", source));
        object = FILENAME
        sub(/[.]d$/, ".o", object)
        if (source ~ /^variants\//) print object, source
      } }' {} +)
}

# Of each variant the objects that it needs, by their undefined symbols: what is in no other may be made again in vain.
declare -A needed
read_needed() {
  local name object
  while read -r name object; do
    needed[$name]+=" $object"
  done < <(cd "$sound" && find build/variants -name '*.o' -exec nm -g -A {} + | awk '
    { object = $1; sub(/:.*/, "", object) }
    $(NF - 1) == "U" { needs[object] = needs[object] " " $NF; next }
    { home[$NF] = object }
    function visit(object, symbols, count, n) {
      if (object == "" || seen[object]) return
      seen[object] = 1
      count = split(needs[object], symbols, " ")
      for (n = 1; n <= count; n++) if (symbols[n] in home) visit(home[symbols[n]])
    }
    END {
      for (symbol in home) {
        if (symbol !~ /^attn_[a-z0-9_]+$/) continue
        split("", seen)
        visit(home[symbol])
        for (object in seen) if (seen[object]) print substr(symbol, 6), object
      }
    }')
}

# The variants without a fault, which the trees of all faults share with each other.
sound=$work/sound
build_sound() {
  local what=$objects
  [ ! -f "$build/attnbench_emu.so" ] || what="$objects $device_objects"
  rm -rf "$sound/variants"
  mkdir -p "$sound/build" &&
    cp -pr "$root/variants" "$root/Makefile" "$sound" &&
    cp -p "$build/attnbench" "$sound/build" &&
    ln -sfn "$root/scripts" "$root/harness" "$root/reference" "$root/tests" "$sound" || return 1
  if ! make_sound -j"$(nproc)" $what >"$sound/make.log" 2>&1; then
    complain "the variants do not compile: $(grep -m 1 error "$sound/make.log")"
    return 1
  fi
  # shellcheck disable=SC2086 # two words
  read_commands $what
  # The program has it loaded, and to go through its names takes longer than all else of the linking.
  command[$objects]=${command[$objects]/-lopenblas/}
  read_needed
}

# Leaves in the list the faults of variants of which a source has changed since the commit, of kernels for GPUs any of theirs.
keep_changed() {
  local source object name device= all=${#list[@]} kept=()
  declare -A changed=()
  while IFS= read -r source; do
    case $source in variants/cuda/*) device=yes ;; esac
    for object in ${users[$source]-}; do changed[$object]=yes; done
  done < <(cd "$root" && git diff --name-only "$since" -- variants && git ls-files --others --exclude-standard variants)
  for name in "${list[@]}"; do
    if is_for_device "$name"; then
      [ -z "$device" ] || kept+=("$name")
      continue
    fi
    for object in ${needed[${variant[$name]}]-}; do
      if [ -n "${changed[$object]-}" ]; then kept+=("$name"); break; fi
    done
  done
  list=("${kept[@]}")
  echo "$((all - ${#list[@]})) faults are of variants that are what they were at $since, and are not planted"
}

# The objects that are made again. The kernels of instruction sets that a host's fault is not for stay as they are, and so
# do those of other variants than the one that is verified: neither would be run, and they take longest to build.
made_again() { # name
  local name=$1 object base wanted=
  if is_for_device "$name"; then
    for object in "${file[$name]}" $(cd "$root" && grep -l "^const attn_variant ${variant[$name]} = " variants/cuda/*.cu); do
      object=${object##*/}
      wanted+=" ${object%.cu}"
    done
  else
    wanted=" ${isa[$name]-$all_sets}" # a file each
  fi
  for object in ${users[${file[$name]}]-}; do
    case $object in
    build/variants/*) case "${needed[${variant[$name]}]-} " in *" $object "*) ;; *) continue ;; esac ;;
    esac
    case $object in
    build/variants/tile/emulated_*.o | build/variants/tile/portable.o | build/variants/tile/avx*.o | build/emulated/*)
      base=${object##*/}
      case "$wanted " in *" ${base%.o} "*) echo "$object" ;; esac ;;
    *) echo "$object" ;;
    esac
  done
}

# A tree of links to the variants without a fault, in which one fault after the other is planted: to make it takes a tenth of
# what a fault takes.
make_tree() { # tree
  rm -rf "$1"
  mkdir -p "$1" && cp -rs "$sound/variants" "$sound/build" "$1" || return 1
  # The program looks for its variants where it lies itself, not where a link to it does.
  rm "$1/build/attnbench" && { ln "$sound/build/attnbench" "$1/build" 2>/dev/null ||
    cp -p "$sound/build/attnbench" "$1/build"; }
}

# Of a function that several objects have out of one header the linker takes the first: those with the fault come before others.
link_first() { # command, objects...
  local made=$1 object
  shift
  for object; do made=${made/" $object"/}; done
  echo "${made/ -o / "$*" -o }"
}

plant() { # name, tree
  local name=$1 tree=$2 object again made different= what=$objects paths
  if is_for_device "$name"; then what=$device_objects; fi
  [ -d "$tree" ] || make_tree "$tree" || return 1
  again=$(made_again "$name")
  # shellcheck disable=SC2206 # words without blanks
  paths=("${file[$name]}" $again $what)
  printf '%s\n' "${paths[@]}" >"$tree/planted"
  for object in $again; do paths+=("${object%.o}.d"); done
  rm -f "${paths[@]/#/$tree/}"
  edited "$name" >"$tree/${file[$name]}" || return 1
  for object in $again $what; do
    made=${command[$object]:-false}
    if [ "$object" = "$what" ]; then made=$(link_first "$made" $again); fi
    if ! (cd "$tree" && eval "$made") >"$tree/make.log" 2>&1; then
      complain "$name does not compile: $(grep -m 1 error "$tree/make.log")"
      return 1
    fi
  done
  for object in $again; do
    cmp -s "$tree/$object" "$sound/$object" || different=yes # neither has lines of debugging
  done
  if [ -z "$different" ]; then complain "$name changes no code"; return 1; fi
}

# Takes the fault out of the tree; one that was not caught keeps it, under its own name.
clear_tree() { # name, tree, outcome
  local path
  if [ "$3" != caught ]; then
    rm -rf "${work:?}/$1"
    mv "$2" "$work/$1"
  elif [ -f "$2/planted" ]; then
    while read -r path; do ln -sfn "$sound/$path" "$2/$path"; done <"$2/planted"
  fi
}

# verify of a tree: status as it ends, words in LOG.
verify() { # tree, log, options...
  local tree=$1 log=$2
  shift 2
  (cd "$tree" && OMP_WAIT_POLICY=passive timeout 600 build/attnbench verify --threads 2 "$@" >"$log" 2>&1)
}

# What a log of verify says first: sets words and check of the failure, problem (instruction set and threads with it where they are
# not the usual ones) of the command that reproduces it, and the hint.
read_log() { # log
  local line reproduces="reproduce: .*--problem '([^']*)'( --isa ([a-z0-9_]*))?( --threads [0-9]*)?"
  words= check= problem= hint=
  while IFS= read -r line; do
    line=${line#"${line%%[! ]*}"}
    case $line in
    'FAILED: '* | *'crashed ('*) [ -n "$words" ] || words=${line#FAILED: } ;;
    'hint: '*) [ -n "$hint" ] || hint=${line#hint: } ;;
    esac
    if [ -z "$problem" ] && [[ $line =~ $reproduces ]]; then
      problem="${BASH_REMATCH[1]} ${BASH_REMATCH[3]}${BASH_REMATCH[4]}"
      problem=${problem% --threads 2} problem=${problem//  / } problem=${problem% }
    fi
  done <"$1"
  [ -z "$words" ] || check=$(check_of "$words")
}

# The problem on which a fault was caught when tests/mutants/README.md was written, and the check that saw it.
declare -A known known_check
read_known() {
  local name check problem words
  while IFS=$'\t' read -r name check words; do
    read -r problem words <<<"$words"
    case $words in *--threads*) problem+=" --threads ${words##*--threads }" ;; esac
    known[$name]=$problem known_check[$name]=$check
  done < <(sed -n 's/^| \([a-z0-9_]*\) | .* | \([^|]*\) | `\([^`]*\)` |$/\1\t\2\t\3/p' "$root/tests/mutants/README.md")
}

# Whether there is one. On a device it has to be among those that are posed, for on these the kernels have been verified
# without a fault, by test_cuda; under the emulation it would take long to do that again.
is_known() { # name
  [ -n "${known[$1]-}" ] && { ! is_for_device "$1" || on_device "${variant[$1]}" | grep -q -x -F -e "${known[$1]}"; }
}

# Sets options of verify: for a fault under an instruction set, or "any".
options_of() { # name, set
  options=(--variant "${variant[$1]}")
  # Under one schedule, for a race is seen under any.
  if is_for_device "$1"; then options+=(--device emu --isa forwards); elif [ "$2" != any ]; then options+=(--isa "$2"); fi
}

# Verifies a planted fault, first on the problem that caught it last. verify poses that among others (test_mutants sees to
# it), so that it would catch the fault by the same check; all others, where this one does not: then NAME.searched is left.
# Sets what read_log does.
catch() { # name, instruction set, tree
  local name=$1 tree=$3 log=$3/verify.log status options
  options_of "$name" "$2"
  if [ -z "$whole" ] && is_known "$name"; then
    # shellcheck disable=SC2086 # a problem, and perhaps --threads and a number
    verify "$tree" "$log" --fail-fast "${options[@]}" --problem ${known[$name]}
    status=$?
    read_log "$log"
    if [ $status -eq 1 ] && [ "$check" = "${known_check[$name]}" ]; then return 1; fi
  fi
  touch "$work/$name.searched"
  if is_for_device "$name"; then mapfile -O ${#options[@]} -t options < <(on_device "${variant[$name]}" | sed 's/^/--problem\n/'); fi
  verify "$tree" "$log" --fail-fast "${options[@]}"
  status=$?
  read_log "$log"
  return $status
}

# Plants a fault and verifies; leaves "outcome TAB seconds TAB check TAB problem" in NAME.result. The outcome is
# caught, survived or broken (could not be planted or run).
try() { # name, tree
  local name=$1 tree=$2 outcome=broken words= check= problem= hint= set status started=${EPOCHREALTIME/[.,]/}
  [ ! -d "$work/$name" ] || rm -rf "${work:?}/$name"
  if plant "$name" "$tree"; then
    for set in ${isa[$name]-any}; do
      catch "$name" "$set" "$tree"
      status=$?
      [ $status -eq 1 ] || break # it has to be seen in each
    done
    if [ $status -eq 0 ]; then
      outcome=survived
    elif [ $status -eq 1 ] && [ -n "$words" ]; then
      outcome=caught
      leave_for_control "$name" "$set" "$problem" "$check"
    else
      complain "$name: verify ended with status $status: $(tail -n 1 "$tree/verify.log")"
    fi
  fi
  echo "$hint" >"$work/$name.hint"
  clear_tree "$name" "$tree" $outcome
  conclude "$name" $outcome "$started" "$check" "$problem"
}

conclude() { # name, outcome, started, check, problem
  printf '%s\t%d\t%s\t%s\n' "$2" $(((${EPOCHREALTIME/[.,]/} - $3) / 100000)) "$4" "$5" >"$work/$1.result.new"
  mv "$work/$1.result.new" "$work/$1.result"
}

# On what a fault was caught: options, the property if it was one, and problem of one for the host. Those for a device were on
# known problems.
leave_for_control() { # name, instruction set, problem and threads, check
  local threads= property=none options
  ! is_for_device "$1" || return 0
  options_of "$1" "$2"
  case $3 in *--threads*) threads=" --threads ${3##*--threads }" ;; esac
  case $all_properties in *", $4, "*) property=${4// /_} ;; esac
  echo "${options[*]}$threads $property ${3%% *}" >"$work/$1.control"
}

# The same without a fault, or being caught would mean nothing: what is right passes the check on each problem that caught a fault.
control() {
  local log=$work/none.log started=${EPOCHREALTIME/[.,]/} words check problem hint options
  rm -f "$work"/none.*
  cat "$work"/*.control 2>/dev/null | sort -u >"$work/none.runs"
  while read -r options; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    control_of "$options" &
  done < <(sed 's/ [^ ]*$//' "$work/none.runs" | sort -u)
  wait
  cat "$work"/none.of.* >"$log" 2>/dev/null
  if [ -f "$work/none.failed" ]; then
    read_log "$log"
    conclude none failed "$started" "$check" "$(cat "$work/none.failed")"
  else
    conclude none passed "$started" "" ""
  fi
}

# All problems under the same options.
control_of() { # options and a property
  local part problems property
  part=$work/none.of.${1//[^a-z0-9_]/_}
  mapfile -t problems < <(grep -x -e "$1 [^ ]*" "$work/none.runs" | sed 's/.* /--problem\n/')
  property=${1##* }
  # shellcheck disable=SC2086 # words without blanks
  verify "$sound" "$part" ${1% *} --properties "${property//_/ }" "${problems[@]}" ||
    echo "$1 ended with status $?" >>"$work/none.failed"
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
}

write_readme() {
  local name outcome tenths check problem
  cat <<'TEXT'
# Planted faults

Each row is a fault of [faults.txt](faults.txt) that `make mutants` writes into a copy of the sources, builds and
verifies. This page is what `make mutants ARGS=--readme` writes: the check that catches each fault, and the problem on
which it does, with the instruction set and the number of threads where that is not 2. `make mutants` poses that problem
first; what the same check does not catch there again meets all that `attnbench verify` poses, which `ARGS=--whole` does
with each fault. A problem here is one that verify poses without options, as a test sees to.

| fault | what | file | caught by | on |
|---|---|---|---|---|
TEXT
  for name in "${names[@]}"; do
    if [ ! -f "$work/$name.result" ]; then
      grep -F "| $name |" "$page"
      continue
    fi
    IFS=$'\t' read -r outcome tenths check problem < <(sed 's/\t\t/\t-\t/' "$work/$name.result")
    [ "$outcome" = caught ] || check="**$outcome**"
    printf '| %s | %s | %s | %s | `%s` |\n' "$name" "${what[$name]}" "${file[$name]#variants/}" "$check" "$problem"
  done
}

# Whether this processor has the instruction set: verify refuses one that it has not. Asked once of each.
runs_here() { # instruction set
  if [ -z "${here[$1]-}" ]; then
    here[$1]=no
    if [ "$1" = portable ] ||
      "$build/attnbench" verify --variant fused --isa "$1" --problem full/B:1/H:1/D:1/T:1/bf16 >"$work/isa.log" 2>&1; then
      here[$1]=yes
    fi
  fi
  [ "${here[$1]}" = yes ]
}

# Keeps of a fault's instruction sets those that this build and this machine have; status 1: none.
sets_here() { # name
  local set kept=
  [ -n "${isa[$1]-}" ] || return 0
  for set in ${isa[$1]}; do
    if [ -f "$build/variants/tile/$set.o" ] && runs_here "$set"; then kept+="${kept:+ }$set"; fi
    if [ -n "$kept" ] && [ -z "$each" ]; then break; fi
  done
  [ -n "$kept" ] && isa[$1]=$kept
}

read_table && { [ -z "$print" ] || { edited ${wanted}; exit; } } && check_table || exit 1
[ -z "$check" ] || { echo "${#names[@]} faults fit the sources"; exit 0; }
[ -z "$since" ] || git -C "$root" rev-parse -q --verify "$since^{commit}" >/dev/null ||
  { complain "git knows no commit '$since'; give --since a branch, a tag or a hash"; exit 2; }
for name in $wanted; do
  [ -n "${what[$name]-}" ] || { complain "there is no fault $name; tests/mutants/faults.txt names them"; exit 2; }
done
what[none]="the variants as they are"
list=() untestable=0
variants=" $("$build/attnbench" list | cut -d ' ' -f 1 | tr '\n' ' ')"
device_variants=" $("$build/attnbench" list --device emu 2>/dev/null | cut -d ' ' -f 1 | tr '\n' ' ')"
declare -A here=() # of an instruction set: yes or no
for name in ${wanted:-"${names[@]}"}; do
  if [ -n "$hints" ]; then
    [ -n "${kind[$name]-}" ] || continue
    # Under one instruction set, which is enough to see what is said and built in a fifth of the time.
    is_for_device "$name" || isa[$name]=${isa[$name]:-portable}
  fi
  present=$variants
  if is_for_device "$name"; then present=$device_variants; fi
  if [[ $present != *" ${variant[$name]} "* ]]; then
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
if [ ${#list[@]} -eq 0 ] && [ $untestable -gt 0 ]; then
  echo "0 caught, 0 survived, $SECONDS s"
  exit 0
fi

rm -f "$work"/*.result "$work"/*.control "$work"/*.searched "$work"/*.problems
read_known
build_sound || exit 1
[ -z "$since" ] || keep_changed
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
caught=0 survived=0 printed=0 hinted=0 named=0
free=() # trees
for ((n = 0; n < $(nproc); n++)); do free+=("$work/tree.$n"); done
rm -rf "${free[@]}"
declare -A tree_of=() # of a process
for name in "${list[@]}"; do
  while [ ${#free[@]} -eq 0 ]; do
    wait -n -p process "${!tree_of[@]}"
    free+=("${tree_of[$process]}")
    unset "tree_of[$process]"
  done
  while [ -f "$work/${list[printed]}.result" ]; do print_row "${list[printed++]}"; done
  try "$name" "${free[-1]}" &
  tree_of[$!]=${free[-1]}
  unset 'free[-1]'
done
wait
rm -rf "$work"/tree.*
while [ $printed -lt ${#list[@]} ]; do print_row "${list[printed++]}"; done
if [ -z "$hints" ]; then
  control
  print_row none
fi
page=$root/tests/mutants/README.md
if [ -n "$readme" ]; then write_readme >"$work/page.md" && mv "$work/page.md" "$page"; fi
if [ -n "$hints" ]; then
  echo "the hint names the kind of $named of $hinted faults, $SECONDS s"
  [ $((3 * named)) -ge $((2 * hinted)) ]
  exit
fi
echo "$caught caught, $survived survived, $SECONDS s"
[ $survived -eq 0 ] && { [ $caught -gt 0 ] || [ -n "$since" ]; }
