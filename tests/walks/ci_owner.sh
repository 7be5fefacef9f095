#!/usr/bin/env bash
# The owner of a CI in another repository: installs attnbench, has a kernel in a git repository of its own, and lets the action
# judge changes of it. What the workflow would run is taken out of action.yml and run here. tests/walks/ci_owner.sh SOURCE BUILD
set -u
source=$1 build=$2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export PATH="$work/usr/bin:$PATH" GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=owner GIT_AUTHOR_EMAIL=owner@example.org
export GIT_COMMITTER_NAME=owner GIT_COMMITTER_EMAIL=owner@example.org OMP_WAIT_POLICY=passive
unset ATTNBENCH GATE_SHADOW GITHUB_STEP_SUMMARY MAKEFLAGS BUILD KERNEL BASE ARGUMENTS REPORT INTO

fail() {
  echo "ci_owner: $*"
  exit 1
}

say() { echo "== $*"; }

# judge STATUS WORDS COMMAND...: what it says stands in $work/said.
judge() {
  local wanted=$1 words=$2 status
  shift 2
  say "$SECONDS s: $*"
  "$@" >"$work/said" 2>&1
  status=$?
  if [ "$status" -ne "$wanted" ] || ! grep -qF -e "$words" "$work/said"; then
    cat "$work/said"
    fail "status $status, wanted $wanted and '$words'"
  fi
}

# ---- attnbench is installed, and everything of it is moved once ----

"$source/scripts/install.sh" install "$build" /usr "$work/package" >/dev/null || fail "it cannot be installed"
mv "$work/package/usr" "$work/usr"
judge 0 "attnbench " attnbench --version
judge 0 "--kernel FILE.so" attnbench-gate --help

# ---- a repository with a kernel: the one that attnbench's README shows ----

mkdir "$work/a repository" && cd "$work/a repository" || exit 2
awk '/^## Your own kernel/ { section = 1 } section && inside && /^```/ { exit } inside { print } section && /^```c$/ { inside = 1 }' \
  "$source/README.md" >mine.c
printf '*.so\n/attnbench-report\n' >.gitignore
git init -q -b main . && git add -A && git commit -q -m "A kernel" || fail "git does not work"
# An owner's Makefile may have variables of any name, which the environment would set.
build_line="[ -z \"\$BUILD\$KERNEL\$BASE\$ARGUMENTS\$REPORT\$INTO\" ] &&"
build_line+=" ${CC:-cc} -O2 -shared -fPIC \$(pkg-config --cflags attnbench) mine.c -o mine.so -lm"
quick="--every 2000 --cases 0 --problem causal/H:2/D:8/T:32"

# change SED MESSAGE: a commit on a branch of its own.
change() {
  git checkout -q -B change main && sed -i "$1" mine.c && git commit -q --allow-empty -am "$2" || fail "git cannot commit"
}

# The step of the action that is called gate, with the inputs that a workflow would give it.
step=$(awk '/^    - name: gate$/ { inside = 1 } /^    - name: report$/ { exit } run { printf "%s ", $0 }
  inside && /^      run: >-$/ { run = 1 }' "$source/action.yml")
[ -n "$step" ] || fail "action.yml has no step gate"
action() {
  env ATTNBENCH_INTO="$work/usr" ATTNBENCH_BUILD="$build_line" ATTNBENCH_KERNEL=mine.so ATTNBENCH_BASE=main \
    ATTNBENCH_ARGUMENTS="$quick $1" ATTNBENCH_REPORT=attnbench-report GATE_SHADOW="$2" GITHUB_STEP_SUMMARY="$work/summary" \
    bash -e -o pipefail -c "$step"
}

change 's/my first kernel/my kernel/' "Other words in the summary"
change 's/^$/\n/' "Nothing but empty lines"
judge 0 "every kernel's object code is the base's" action "" 1
grep -qF "### attnbench gate: nothing got worse" "$work/summary" || fail "the summary does not say that nothing got worse"

change 's/j < keys.end/j < keys.end - (keys.end > 20)/' "Forget a key"
judge 1 "gives wrong results, as this shows: attnbench verify --variant mine" action "" 1
command_again=$(sed -n 's/.*reproduce: //p' "$work/said" | head -n 1)
grep -qF "timing part" "$work/said" && fail "a wrong kernel was timed"
grep -qF "| wrong |" "$work/summary" || fail "the summary does not say that it is wrong"

judge 1 "FAILED" sh -c "$command_again"

# Several times the work: times show it however busy the machine is, and instructions where valgrind is.
change 's/before = max;/before = max;\n      for (volatile int waited = 0; waited < 500; waited++);/' "Wait a little"
judge 1 "times as long" action "--times --budget 1 --benchmark threads:1" 0
for file in comment.md gate.json report.txt head.log base.log; do
  [ -f "attnbench-report/$file" ] || fail "the report lacks $file"
done
[ "$(wc -c <attnbench-report/comment.md)" -lt 6000 ] || fail "comment.md is no longer a comment"
if command -v valgrind >/dev/null; then
  judge 1 "  instructions mine/" action "--facts" 1
  command_again=$(sed -n 's/^ *again: //p' "$work/said" | head -n 1)
  judge 1 "  instructions mine/" sh -c "$command_again --every 2000 --cases 0"
  git commit -q --amend -m "Wait a little" -m "Gate-Accept: instructions mine it may wait" || fail "git cannot amend"
  judge 0 "accepted by a commit message" action "--facts" 1
fi

# ---- what goes wrong is one line, and status 2 ----

change 's/#include <math.h>/#include <maths.h>/' "Does not build"
judge 1 "attnbench-gate: the head does not build mine.so; all of it: " action "" 1
git checkout -q main
judge 2 "attnbench-gate: it needs the file that is built: --kernel mine.so" attnbench-gate --build true
judge 2 "attnbench-gate: git knows no commit 'v9'" attnbench-gate --build "$build_line" --kernel mine.so --base v9
judge 2 "attnbench-gate: this is no git repository" env -C / attnbench-gate --build true --kernel mine.so
# A mistyped option is told before anything is built, and the former report stays.
echo kept >attnbench-report/report.txt
judge 2 "there is no option --budgt; the nearest is --budget" attnbench-gate --build 'touch built' --kernel mine.so --budgt 7
[ ! -e built ] && [ "$(cat attnbench-report/report.txt)" = kept ] || fail "a mistyped option has cost the report, or a build"
# What was built before is there still when a build is interrupted.
echo former >mine.so
setsid attnbench-gate --build 'echo half >mine.so; touch building; sleep 60' --kernel mine.so >/dev/null 2>&1 &
for ((n = 0; n < 600; n++)); do [ ! -e building ] || break; sleep 0.1; done
kill -TERM -- -$!
wait $!
[ "$(cat mine.so)" = former ] || fail "an interrupted build has cost the kernel that was there"
# A build ends with what began it.
rm building
attnbench-gate --build 'touch building; sleep 60; touch built' --kernel mine.so >/dev/null 2>&1 &
gate=$!
for ((n = 0; n < 600; n++)); do [ ! -e building ] || break; sleep 0.1; done
sleepers() { grep -lsx 'sleep' /proc/[0-9]*/comm | while IFS= read -r comm; do readlink "${comm%comm}cwd"; done | grep -cxF "$PWD"; }
[ "$(sleepers)" -gt 0 ] || fail "the build does not run"
kill -TERM "$gate"
wait "$gate"
[ $? -eq 143 ] && [ "$(sleepers)" -eq 0 ] || fail "a build has outlived the gate that began it"
rm -f building mine.so
# The change that brings the kernel.
git checkout -q --orphan before && git rm -q --cached -r . && git commit -q --allow-empty -m "Nothing yet"
git checkout -q -f main
judge 0 "VERIFIED ALONE: the base, " attnbench-gate --build "$build_line" --kernel mine.so --base before --every 500 --cases 0
[ -z "$(git worktree list | sed 1d)" ] || fail "a work tree was left behind"

# ---- the workflow that docs/ci.md shows gives the action what it takes ----

awk '/^```yaml$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$source/docs/ci.md" >"$work/workflow.yml"
sed -n '/^        with:$/,$s/^          \([a-z-]*\): .*/\1/p' "$work/workflow.yml" | grep -v '^fetch-depth$' >"$work/given"
sed -n '/^inputs:$/,/^runs:$/s/^  \([a-z]*\):$/\1/p' "$source/action.yml" >"$work/taken"
grep -vxF -f "$work/taken" "$work/given" && fail "docs/ci.md gives what action.yml does not take"
[ "$(wc -l <"$work/given")" -ge 3 ] || fail "docs/ci.md gives the action nothing"
echo "the owner of a CI is served"
