#!/usr/bin/env bash
# The gate: builds the work tree (the head) and the base, and holds one to the other.
#
#   scripts/gate.sh [BASE | --base BASE] [options of `attnbench gate`]
#   scripts/gate.sh --baseline        renew tests/gate/baseline.json from the work tree
#
# BASE is a git reference; without one, the merge base with the main branch, or the last commit where
# that is the same and something has been changed since. The base's kernels are built in build/gate from a copy, with
# the Makefile, compiler and flags of the head; the checkout is not touched.
#
# GATE_SHADOW=1: times are reported and fail nothing.
#
# Status: 0 nothing got worse, 1 something did, 2 it could not measure, 3 the controls moved: say nothing, run
# it again. `make gate` shows the same, but make itself ends with 2 in all cases but the first.
set -u
cd "$(dirname "$0")/.." || exit 2
folder=${GATE_FOLDER:-build/gate}
build=${BUILD:-build}
jobs=-j$(nproc)
. scripts/gate_git.sh
committed=tests/gate/baseline.json

fail() {
  echo "gate: $*" >&2
  exit 2
}

build_head() {
  make --no-print-directory "$jobs" BUILD="$build" PYTHON_PARTS= all relinks >"$folder/head.log" 2>&1 ||
    { tail -n 20 "$folder/head.log" >&2; fail "the work tree does not build; all of it: $folder/head.log"; }
}

links() { # option, build folder
  local link
  for link in "$2"/relinks/*.so; do printf '%s\n%s\n' "$1" "$link"; done
}

# Of equal text the same compiler makes equal objects: the base has those of the head that were made from what it has itself, and
# make then builds the others. They are younger than their sources, and the flags are the head's in any case.
share_objects() { # sources, build folder
  local object list part equal
  if ! cmp -s "$build/flags" "$2/flags"; then
    rm -rf "$2"
    mkdir -p "$2" && cp "$build/flags" "$2/flags" || return
  fi
  find "$build/variants" -name '*.d' | while IFS= read -r list; do
    object=${list#"$build"/}
    object=${object%.d}.o
    if [ -f "$2/$object" ] || [ ! -f "$build/$object" ]; then continue; fi
    equal=yes
    for part in $(sed 's/^[^:]*://; s/\\$//; /:$/d' "$list"); do cmp -s "$part" "$1/$part" || equal=; done
    if [ -n "$equal" ]; then
      mkdir -p "$(dirname "$2/$object")"
      cp "$build/$object" "$2/$object"
      sed "1s|^[^ :]*:|../build/$object:|" "$list" >"$2/${object%.o}.d"
    fi
  done
}

# Sets why_no_base when there is no base to build. All paths that make sees are relative: their folder may have spaces.
build_base() { # commit
  local source=$folder/base/source
  if [ "$(cat "$folder/base/commit" 2>/dev/null)" != "$1" ]; then
    rm -rf "$folder/base"
    mkdir -p "$source"
    git archive "$1" variants 2>/dev/null | tar -x -C "$source" 2>/dev/null
    echo "$1" >"$folder/base/commit"
  fi
  share_objects "$source" "$folder/base/build"
  if [ ! -f "$source/variants/attention.h" ]; then
    why_no_base="the base is older than variants/attention.h"
  elif ! make --no-print-directory "$jobs" -C "$source" -f "$PWD/Makefile" BUILD=../build relinks \
    >"$folder/base.log" 2>&1; then
    why_no_base="the base does not build with the head's Makefile ($folder/base.log)"
  fi
}

count_facts() { # build folder, file, more options
  "$build/attnbench" gate --head "$1/relinks/1.so" --write-facts "$2" "${@:3}"
}

# What ranks send, where MPI is and both sides have variants of a team. Sets team: options of the gate.
count_team() {
  local source=$folder/base/source object=$folder/base/build/attnbench_mpi.so
  team=()
  if [ ! -f "$build/attnbench_mpi.so" ] || [ ! -f "$source/variants/team/registry.c" ]; then return; fi
  make --no-print-directory "$jobs" -C "$source" -f "$PWD/Makefile" BUILD=../build ../build/attnbench_mpi.so \
    >"$folder/team.log" 2>&1 && team=(--head-team "$build/attnbench_mpi.so" --base-team "$object")
}

# Exact numbers of both sides, at the same time; of the base those of the variants alone whose code is not the head's. They
# stay until base or program change, or whose code it is.
count_both() {
  local base_process="" file=$folder/base/facts.json
  head_facts=$folder/head-facts.json
  base_facts=
  if [ -z "$why_no_base" ]; then
    base_facts=$file
    if [ ! "$file" -nt "$folder/base/build/relinks/1.so" ] || [ ! "$file" -nt "$build/attnbench" ] ||
      [ "$(cat "$folder/base/identical" 2>/dev/null)" != "$identical" ]; then
      echo "$identical" >"$folder/base/identical"
      count_facts "$folder/base/build" "$file" --identical "$identical" &
      base_process=$!
    fi
  fi
  count_facts "$build" "$head_facts" || exit 2
  if [ -n "$base_process" ] && ! wait "$base_process"; then
    base_facts=
    rm -f "$file"
  fi
}

mkdir -p "$folder" || exit 2
if [ "${1:-}" = --baseline ]; then
  build_head
  mkdir -p "$(dirname "$committed")"
  keep=()
  [ ! -f "$committed" ] || keep=(--baseline "$committed")
  count_facts "$build" "$committed" "${keep[@]}" || exit 2
  echo "gate: $committed is renewed; commit it with the reason"
  exit 0
fi

wanted=
case "${1:-}" in --*) ;; *) wanted=${1:-}; [ $# -gt 0 ] && shift ;; esac
# As attnbench-gate takes it. The program's own --base is a file, which it would miss only when all is built and counted.
options=()
while [ $# -gt 0 ]; do
  case $1 in --base=*) set -- --base "${1#*=}" "${@:2}" ;; esac
  case $1 in
  --base)
    [ $# -gt 1 ] || fail "--base needs a value: a branch, a tag or a hash"
    [ -z "$wanted" ] || fail "there are two bases, '$wanted' and '$2'; give one"
    wanted=$2
    shift
    ;;
  *) options+=("$1") ;;
  esac
  shift
done
set -- "${options[@]}"
command -v git >/dev/null 2>&1 || fail "git is not installed, and the base comes from git"
why_no_base=
commit=$(find_base "$wanted")
[ -n "$commit" ] || [ -z "$wanted" ] || fail "git knows no commit '$wanted'; give a branch, a tag or a hash"
if [ -z "$commit" ]; then
  why_no_base="there is no main branch to find a base on; give one with BASE="
elif [ -z "$wanted" ] && [ "$commit" = "$(git rev-parse HEAD)" ] && git diff --quiet HEAD -- variants Makefile; then
  commit=$(git rev-parse -q --verify HEAD^) || why_no_base="the first commit has no base"
fi

echo "gate: building" >&2
build_head
[ -n "$why_no_base" ] || build_base "$commit"
arguments=()
if [ -n "$why_no_base" ]; then
  arguments+=(--no-base "$why_no_base")
else
  mapfile -t bases < <(links --base "$folder/base/build")
  name=$(name_of_base "$commit" "$wanted")
  case " $* " in
  *" --identical "*) identical= ;; # whoever says it himself, as a trial of the gate does, has all counted
  *) identical=$(scripts/gate_identical.sh "$folder/base/build" "$build") ;;
  esac
  arguments+=("${bases[@]}" --base-name "$name" --again "make gate BASE=$name ARGS='%'" --identical "$identical")
  echo "gate: the work tree against $(git log -1 --format='%h %s' "$commit")"
fi
if [ -n "$commit" ]; then
  mapfile -t accepted < <(accepted_since "$commit")
  arguments+=("${accepted[@]}")
fi
mapfile -t heads < <(links --head "$build")
# Of some variants or problems the program counts itself.
case " $* " in
*" --times "* | *" --variant"* | *" --problem"*) ;;
*)
  echo "gate: counting" >&2
  count_both
  arguments+=(--head-facts "$head_facts" ${base_facts:+--base-facts "$base_facts"})
  if [ -z "$why_no_base" ]; then
    rm -f "$folder"/*-code.txt
    scripts/gate_cuda.sh "$build" "$folder" >"$folder/code" || fail "the kernels for GPUs do not compile; all of it: $folder/cuda.log"
    mapfile -t code <"$folder/code"
    arguments+=("${code[@]}")
    count_team || echo "gate: the base's variants of a team do not build ($folder/team.log)" >&2
    arguments+=("${team[@]}")
  fi
  ;;
esac
[ "${GATE_SHADOW:-}" != 1 ] || arguments+=(--shadow)
[ ! -f "$committed" ] || arguments+=(--baseline "$committed")
"$build/attnbench" gate "${heads[@]}" "${arguments[@]}" --out "$folder/report" \
  "$@" | tee "$folder/report.new"
status=${PIPESTATUS[0]}
mv "$folder/report.new" "$folder/report.txt"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  { echo '```'; cat "$folder/report.txt"; echo '```'; } >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
