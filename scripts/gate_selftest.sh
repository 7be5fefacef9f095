#!/usr/bin/env bash
# The gate's own proof: what it calls when nothing changed, and what it calls when something did.
#
#   scripts/gate_selftest.sh short|full|table [EXPERIMENT...]
#
# Each run adds a line to build/gate-selftest/runs.tsv (the short one: to short.tsv, which begins anew), and the
# table is made from that file: an experiment that was interrupted goes on where it stopped, and `table` prints
# what there is. Experiments:
#   quiet, busy    the base against itself, as if no kernel were known to be the same, and linked with a file
#                  more, so that every kernel lies elsewhere; busy: beside a process that computes all the
#                  time. No run may be red.
#   slow5, slow10  fused takes 5 and 10 % longer, in the timing part alone
#   workspace      fused asks for 64 KiB more; quadratic: linear has a loop over T^2. The deterministic part alone.
#   cost           the whole gate from an empty build folder, as if no kernel were known to be the same; it has
#                  to end below 300 s
# BUDGET=seconds is what the timing part gets (the gate's default).
set -u
cd "$(dirname "$0")/.." || exit 2
mode=${1:-short}
shift
folder=build/gate-selftest
runs=$folder/runs.tsv
[ "$mode" != short ] || runs=$folder/short.tsv
budget=${BUDGET:-120}
jobs=-j$(nproc)
export OMP_WAIT_POLICY=passive

fail() {
  echo "gate-selftest: $*" >&2
  exit 2
}

# ---- what is planted ----

# Nothing calls it; but the objects are linked in other orders, and all that follows it lies elsewhere.
plant_nothing() {
  cat >"$1/variants/planted.c" <<'PLANTED'
float attn_planted(const float *values, int count);
const float attn_planted_table[1237] = {1};
float attn_planted(const float *values, int count) {
  float sum = 0;
  for (int n = 0; n < count; n++) sum += values[n] / attn_planted_table[n % 1237];
  return sum;
}
PLANTED
}

# Puts a function planted_run, whose text comes from the standard input, in the place of a variant's run, which it calls.
plant_run() { # file
  local text
  text=$(cat)
  awk -v text="$text" '/^const attn_variant / { print text } { sub(/\.run = run,/, ".run = planted_run,"); print }' \
    "$1" >"$1.new" && mv "$1.new" "$1"
  grep -q '\.run = planted_run,' "$1" && grep -q '^static void planted_run' "$1" || fail "$1 has no run to plant in"
}

# Runs the real kernel, then waits for PERCENT of the time that it took. The clock sees what the gate sees: processor
# time for one thread.
plant_slowdown() { # source folder, percent
  plant_run "$1/variants/fused.c" <<PLANTED
#include <time.h>
static double planted_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static void planted_run(const attn_call *call) {
  const double start = planted_seconds();
  run(call);
  const double end = planted_seconds(), wait = (end - start) * $2 / 100;
  while (planted_seconds() - end < wait) continue;
}
PLANTED
}

plant_workspace() {
  sed -i 's/return schedule_workspace_size(call, choose);/return 65536 + schedule_workspace_size(call, choose);/' \
    "$1/variants/fused.c"
  grep -q 65536 "$1/variants/fused.c" || fail "fused.c has no line to plant 64 KiB in"
}

# Sums that are thrown away, one for each query and key.
plant_quadratic() {
  plant_run "$1/variants/linear.c" <<'PLANTED'
static void planted_run(const attn_call *call) {
  volatile float sum = 0;
  for (int64_t i = 0; i < call->problem->query_length; i++)
    for (int64_t j = 0; j < call->problem->key_length; j++) sum += 1;
  run(call);
}
PLANTED
}

# ---- builds ----

make_links() { # name: builds build/gate-selftest/NAME/source; make is given no path that may have spaces
  local arm=$folder/$1
  make --no-print-directory "$jobs" -C "$arm/source" -f "$PWD/Makefile" BUILD=../build relinks >"$arm/log" 2>&1 ||
    fail "$1 does not build: $arm/log"
}

# The base, and copies of it with something planted, built like the work tree.
build_arms() {
  rm -rf "${folder:?}"/{base,itself,slow5,slow10,workspace,quadratic}
  mkdir -p "$folder/base/source"
  cp -r variants "$folder/base/source/"
  make_links base
  for arm in itself slow5 slow10 workspace quadratic; do cp -a "$folder/base" "$folder/$arm"; done
  plant_nothing "$folder/itself/source"
  plant_slowdown "$folder/slow5/source" 5
  plant_slowdown "$folder/slow10/source" 10
  plant_workspace "$folder/workspace/source"
  plant_quadratic "$folder/quadratic/source"
  for arm in itself slow5 slow10 workspace quadratic; do make_links "$arm"; done
}

links() { # option, build folder
  local link
  for link in "$2"/relinks/*.so; do printf '%s\n%s\n' "$1" "$link"; done
}

# ---- runs ----

record() { # experiment, status, seconds
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$budget" "$(date -u +%FT%TZ)" \
    "$(cut -d ' ' -f 2 /proc/loadavg)" >>"$runs"
  echo "gate-selftest: $1: status $2 after $3 s" >&2
}

run_gate() { # experiment, head, arguments
  local experiment=$1 head=$2 started=$SECONDS status bases heads
  shift 2
  mapfile -t bases < <(links --base "$folder/base/build")
  mapfile -t heads < <(links --head "$folder/$head/build")
  "$folder/attnbench" gate "${bases[@]}" "${heads[@]}" --out "$folder/report-$experiment" "$@" \
    >"$folder/$experiment.log" 2>&1
  status=$?
  record "$experiment" "$status" $((SECONDS - started))
}

run_quiet() { run_gate "$1" itself --times --budget "$budget"; }
run_busy() {
  sh -c 'while :; do :; done' &
  neighbour=$!
  run_gate "$1" itself --times --budget "$budget"
  end_neighbour
}
end_neighbour() {
  [ -z "$neighbour" ] || kill "$neighbour" 2>/dev/null
  neighbour=
}
neighbour=
trap end_neighbour EXIT
run_slow5() { run_gate "$1" slow5 --times --budget "$budget"; }
run_slow10() { run_gate "$1" slow10 --times --budget "$budget"; }
run_facts() {
  local arm
  for arm in base "$1"; do
    [ ! -f "$folder/$arm/facts.json" ] || continue
    "$folder/attnbench" gate --head "$folder/$arm/build/relinks/1.so" --write-facts "$folder/$arm/facts.json" || return
  done
  run_gate "$1" "$1" --facts --cases 0 --head-facts "$folder/$1/facts.json" --base-facts "$folder/base/facts.json"
}
run_workspace() { run_facts "$1"; }
run_quadratic() { run_facts "$1"; }
run_cost() {
  local started=$SECONDS status
  rm -rf "$folder/cost"
  BUILD=$folder/cost/build GATE_FOLDER=$folder/cost/gate scripts/gate.sh HEAD --identical '' --budget "$budget" \
    >"$folder/cost.log" 2>&1
  status=$?
  record "$1" "$status" $((SECONDS - started))
}

made_runs() { awk -F '\t' -v e="$1" '$1 == e' "$runs" | wc -l; }

# Rounds of one run each, so that there is something of everything whenever it is interrupted.
run_all() { # experiments
  local experiment more=yes
  while [ -n "$more" ]; do
    more=
    for experiment; do
      [ "$(made_runs "$experiment")" -lt "$(wanted_runs "$experiment")" ] || continue
      "run_$experiment" "$experiment" || fail "$experiment could not run"
      more=yes
    done
  done
}

wanted_runs() { # experiment
  case "$mode-$1" in
  full-quiet | full-busy) echo 15 ;;
  full-slow*) echo 20 ;;
  *) echo 1 ;;
  esac
}

table() {
  [ -f "$runs" ] || fail "nothing was run yet"
  awk -F '\t' '
    BEGIN {
      split("quiet busy slow5 slow10 workspace quadratic cost", order, " ")
      says["quiet"] = "base against itself"; says["busy"] = "the same beside a busy process"
      says["slow5"] = "fused 5 % slower"; says["slow10"] = "fused 10 % slower"
      says["workspace"] = "64 KiB more workspace"; says["quadratic"] = "a loop over T^2 in linear"
      says["cost"] = "the whole gate, build included"
      goal["quiet"] = goal["busy"] = "at most 1 red in 30"; goal["slow5"] = "red in 19 of 20"
      goal["slow10"] = goal["workspace"] = goal["quadratic"] = "always red"; goal["cost"] = "below 300 s"
    }
    { count[$1]++; status[$1, $2]++; seconds[$1] += $3; if ($3 > most[$1]) most[$1] = $3 }
    { load[$1] += $6; budgets[$4] }
    END {
      printf "%-32s %5s %5s %5s %8s %13s %8s %8s %6s   %s\n", "experiment", "runs", "red", "pass", "neutral",
        "not measured", "mean s", "most s", "load", "wanted"
      for (n = 1; n in order; n++) {
        e = order[n]
        if (!count[e]) continue
        printf "%-32s %5d %5d %5d %8d %13d %8.0f %8.0f %6.1f   %s\n", says[e], count[e], status[e, 1], status[e, 0],
          status[e, 3], status[e, 2], seconds[e] / count[e], most[e], load[e] / count[e], goal[e]
      }
      printf "load: of the machine, over the last five minutes of a run, the run itself being 1; seconds for times:"
      for (budget in budgets) printf " %s", budget
      print ""
    }' "$runs"
}

# False where the experiments that were run do not show what is wanted of them.
judge() {
  awk -F '\t' '
    { count[$1]++; red[$1] += $2 == 1; if ($2 == 2) bad = 1; if ($1 == "cost" && $3 >= 300) bad = 1 }
    END {
      if (red["quiet"] + red["busy"] > (count["quiet"] + count["busy"] >= 30)) bad = 1
      if (red["slow5"] < 0.95 * count["slow5"]) bad = 1
      if (red["slow10"] < count["slow10"] || red["workspace"] < count["workspace"] || red["quadratic"] < count["quadratic"]) bad = 1
      exit bad
    }' "$runs"
}

mkdir -p "$folder" || exit 2
if [ "$mode" != table ]; then
  [ "$mode" != short ] || rm -f "$runs"
  touch "$runs"
  echo "gate-selftest: building" >&2
  make --no-print-directory "$jobs" all >"$folder/log" 2>&1 || fail "the work tree does not build: $folder/log"
  cp build/attnbench build/attnbench_variants.so "$folder/"
  build_arms
  [ $# -gt 0 ] || set -- quiet busy slow5 slow10 workspace quadratic cost
  run_all "$@"
fi
table && judge && echo "gate-selftest: as wanted" || { echo "gate-selftest: not as wanted, see build/gate-selftest/*.log"; exit 1; }
