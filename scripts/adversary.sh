#!/usr/bin/env bash
# Attacks the program with the kernels of tests/adversary, one at a time, and sees that each gets the verdict that it
# deserves:
#
#   scripts/adversary.sh BUILD [--quick | --full] [--whole] [--readme] [NAME...]
#
#   wrong_*.c       verify finds each wrong: first on the problem on which the same check did when tests/adversary/README.md was
#                   written, if verify still poses that among others, and where it does not find it wrong there, on all.
#                   Kernels of a team (team/wrong_team.c) are verified among four processes of mpirun, where there is MPI.
#   cheats.c        bench finds each wrong: while it is timed, or in the one row of thousands that it spoils.
#   misbehaving.c   verify ends with status 1, names the kernel and the problem, and judges the right kernel that
#                   comes after it as if nothing had been.
#   right.c, fast_math.c, flushes_when_loaded.c
#                   verify, fuzz and bench find nothing.
#
# A kernel is named for its class and itself, edge_last_key; NAME is such a name or a class. --quick takes a kernel of
# each class and few problems, --full fuzzes the right ones for four minutes and the wrong ones that verify missed, --whole
# poses all problems at once. Prints a row for each kernel and last "N as expected, M not". --readme poses all too and writes the
# rows into tests/adversary/README.md.
# A race that needs two processors is left out on a machine with one.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 2
. "$root/scripts/check_of.sh"
build= quick= full= readme= whole= wanted=
for argument; do
  case $argument in
  --quick) quick=yes ;;
  --full) full=yes ;;
  --whole) whole=yes ;;
  --readme) readme=yes ;;
  -*) echo "adversary: there is no option $argument; there are --quick, --full, --whole and --readme" >&2; exit 2 ;;
  *) if [ -z "$build" ]; then build=$argument; else wanted="$wanted $argument"; fi ;;
  esac
done
[ -n "$build" ] || { echo "adversary: the build folder is missing: scripts/adversary.sh build" >&2; exit 2; }
build=$(cd "$root" && realpath -m "$build")
program=$build/attnbench
plugins=$build/tests/adversary
# A test of this script, which runs beside it in CI, has a folder of its own: each begins by removing what is there.
work=${ATTN_ADVERSARY_FOLDER:-$build/adversary}
rm -rf "$work"
mkdir -p "$work" || exit 2
# One kernel on each processor: threads that wait must not spin.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
unset ADVERSARY

# One of each class, which verify finds soon.
quick_kernels="edge_last_key mask_top_left heads_modulo stride_batch_packed size_keys_to_1024 score_scaled_twice
max_rescales_sum exp_off_by_1e3 round_weights_to_half keys_last_dropped lse_in_base_2 sink_of_the_entry
weights_not_normalised nan_scores_are_hidden linear_relu gradient_threads_4 layer_threads_4 narrow_state
state_second_call race_on_the_scores company_of_threads memory_read_behind_keys heap_malloc mode_flushes
writes_before_workspace"

quick_right="right_kahan right_exp2 right_raises_late right_split_keys right_sink_first right_half_of_the_threads
right_transposed_keys"

# Kernels that misbehave do so on any problem.
misbehaving_problems="full/B:1/H:2/D:16/T:33/lse causal/B:2/H:4/Hkv:2/D:32/T:70/lse"
quick_problems="full/B:2/H:4/Hkv:2/D:16/T:33/lse full/B:1/H:2/D:8/T:40/fill:denormal full/B:1/H:2/D:8/T:70/fill:rising/lse
causal_bottom_right/B:2/H:4/Hkv:1/D:17/Tq:9/Tk:130/lengths:130,5 causal/B:1/H:3/Hkv:1/D:16/T:70/fill:nonfinite
window:9/B:1/H:2/D:24/T:70/softcap:4/mask:bq/bias:h/sink/lse/weights/layout:padded"
# A short one; many rows that are cheap to check; many rows that are not.
cheat_problems="full/B:1/H:2/D:16/T:100 full/B:1/H:1/D:16/Tq:4097/Tk:32 causal/B:2/H:4/D:8/T:1024"
cheat_options="--min-time 0.03 --repetitions 2 --point-limit 60"
right_options="--lengths 256 --heads 2 --head-dim 16 --min-time 0.02 --repetitions 2 --point-limit 60"

complain() { echo "adversary: $*" >&2; }

# ---- what there is ---------------------------------------------------------------------------------------

kernels=() # in the order of the tables
declare -A plugin_of what

# list takes no kernels of a team: these by their table.
list_kernels() { # plugin
  case $1 in
  team/*) sed -n 's/^ *{"\(team_[a-z0-9_]*\)", "\([^"]*\)",.*/\1 softmax O(T^2) O(T) \2/p' "$root/tests/adversary/$1.c" ;;
  *) "$program" list --plugin "$plugins/$1.so" ;;
  esac
}

read_kernels() { # plugin
  local name function time workspace words
  while read -r name function time workspace words; do
    case $time in 'O('*) ;; *) continue ;; esac
    if grep -q "^$name " "$work/own"; then continue; fi
    kernels+=("$name")
    plugin_of[$name]=$1
    what[$name]=$words
  done < <(list_kernels "$1")
  [ "${#kernels[@]}" -gt 0 ] && [ "${plugin_of[${kernels[-1]}]}" = "$1" ] || { complain "$1 lists no kernels"; return 1; }
}

# The problem on which verify found a kernel wrong, with the threads, and the check that saw it, where verify poses it still.
declare -A known known_check
read_known() {
  local name check problem threads list=$build/scripts/list_problems/list_problems
  [ -x "$list" ] && "$list" >"$work/problems" || return 0
  while IFS=$'\t' read -r name check problem threads; do
    known[$name]="$problem $threads" known_check[$name]=$check
  done < <(sed -n "s/^| \([a-z0-9_]*\) | .* | caught | \([^|]*\) | [^|]* | [^|]* | '\([^']*\)' \(\(--isa ranks[0-9]* \)\{0,1\}--threads [0-9]*\) |\$/\1\t\2\t\3\t\4/p" \
    "$root/tests/adversary/README.md" | awk -F '\t' 'NR == FNR { known[$0]; next } $3 in known' "$work/problems" -)
}

# ---- one kernel ------------------------------------------------------------------------------------------

what_failed() { # log
  grep -h -m 1 -E '^ *FAILED: |crashed \(' "$1" | sed 's/^ *FAILED: //'
}

# Leaves "outcome TAB tenths of a second TAB cases TAB check TAB problem" in NAME.result.
conclude() { # name, outcome, started, log
  local words problem cases check=
  words=$(what_failed "$4")
  problem=$(grep -h -o -m 1 -- "--problem '[^']*'\( --isa [a-z0-9]*\)\{0,1\} --threads [0-9]*" "$4" | head -n 1)
  cases=$(sed -n 's/.* \([0-9]*\) cases, [0-9]* failed.*/\1/p' "$4" | tail -n 1)
  if [ -n "$words" ]; then check=$(check_of "$words"); fi
  problem=${problem#--problem }
  printf '%s\t%d\t%s\t%s\t%s\n' "$2" $(((${EPOCHREALTIME/[.,]/} - $3) / 100000)) "${cases:--}" "${check:--}" \
    "${problem:--}" >"$work/$1.result.new"
  mv "$work/$1.result.new" "$work/$1.result"
}

# Before the program, where the kernels are those of a team: as scripts/team_mutants.sh has it.
launcher=()
team_launcher=(mpirun --allow-run-as-root --oversubscribe --mca pml ob1 --mca mpi_yield_when_idle 1
  --mca odls_base_sigkill_timeout 0 -n 4)

# The program under a limit, with all that it says in LOG. `timeout` leads a process group of its own, of which nothing
# stays.
run() { # log, limit, arguments
  local log=$1 limit=$2 process status
  shift 2
  (cd "$work" && exec env ATTN_ADVERSARY="$log" timeout -k 5 "$limit" "${launcher[@]}" "$program" "$@" >"$log" 2>&1 \
    </dev/null) &
  process=$!
  { wait $process; } 2>/dev/null
  status=$?
  kill -KILL -- -$process 2>/dev/null
  return $status
}

# The processes that a run of this log has left, by their environment: another of these scripts may run beside this one.
processes_of() { # log
  grep -l -s -z -x -F -e "ATTN_ADVERSARY=$1" /proc/[0-9]*/environ | tr -dc '0-9\n'
}

# The same, once those that are ended have had the time to go: a second.
processes_left() { # log
  local left= wait
  for wait in 0 0.1 0.2 0.3 0.4; do
    sleep $wait
    left=$(processes_of "$1")
    [ -n "$left" ] || return 0
  done
  echo "$left"
}

named() { # word before each, words
  local before=$1 word
  shift
  for word; do printf '%s\n%s\n' "$before" "$word"; done
}

try_wrong() { # name
  local name=$1 log=$work/$1.log started=${EPOCHREALTIME/[.,]/} status outcome=missed
  local kernel=(--plugin "$plugins/${plugin_of[$name]}.so" --variant "$name")
  # One runtime of MPI to a process.
  case ${plugin_of[$name]} in team/*) local launcher=("${team_launcher[@]}"); kernel+=(--own=false) ;; esac
  if [ -n "${known[$name]-}" ]; then
    # shellcheck disable=SC2086 # a problem, --threads and a number
    run "$log" 300 verify --fail-fast "${kernel[@]}" --problem ${known[$name]}
    if [ $? -eq 1 ] && [ "$(check_of "$(what_failed "$log")")" = "${known_check[$name]}" ]; then
      conclude "$name" caught "$started" "$log"
      return
    fi
  fi
  touch "$work/$name.searched"
  run "$log" 300 verify --fail-fast "${kernel[@]}"
  status=$?
  if [ $status -eq 1 ] && [ -n "$(what_failed "$log")" ]; then outcome=caught; fi
  if [ $outcome = missed ] && [ -n "$full" ]; then
    run "$log.fuzz" 120 fuzz --seconds 20 "${kernel[@]}" &&
      echo "fuzz finds nothing in 20 s" >>"$log" || { cat "$log.fuzz" >>"$log"; outcome='only fuzz'; }
  fi
  conclude "$name" "$outcome" "$started" "$log"
}

# What must be seen of one that misbehaves: it is judged, by name and on a problem or as it was asked whether it takes one,
# and so is its neighbour.
try_misbehaving() { # name
  local name=$1 log=$work/$1.log started=${EPOCHREALTIME/[.,]/} status outcome=missed arguments left
  mapfile -t arguments < <(named --problem $misbehaving_problems)
  run "$log" 120 verify --plugin "$plugins/misbehaving.so" --variant "$name,neighbour" --threads 2 --run-limit 3s \
    "${arguments[@]}"
  status=$?
  case $status in
  0) outcome=missed ;;
  1) outcome=caught ;;
  124 | 137) outcome=endless ;;
  *) outcome="status $status" ;;
  esac
  left=$(processes_left "$log")
  if [ -n "$left" ]; then
    kill -KILL $left 2>/dev/null
    [ "$outcome" != caught ] || outcome='left running'
  fi
  if [ "$outcome" = caught ] && ! grep -q -E "$name.*(/B:|--problem|: unsupported)" "$log"; then outcome=unnamed; fi
  if [ "$outcome" = caught ] && ! grep -q '^neighbour  *passed' "$log"; then outcome='neighbour lost'; fi
  conclude "$name" "$outcome" "$started" "$log"
}

try_loading() { # name: of the only kernel of its plugin
  local name=$1 log=$work/$1.log started=${EPOCHREALTIME/[.,]/} plugin=$plugins/exits_when_loaded.so status
  run "$log" 60 verify --plugin "$plugin" --variant "$name" --problem full/B:1/H:1/D:8/T:8
  status=$?
  if [ $status -eq 0 ] || ! grep -q -F "$plugin" "$log"; then
    conclude "$name" missed "$started" "$log"
  else
    conclude "$name" caught "$started" "$log"
  fi
}

# ---- many kernels in one command -------------------------------------------------------------------------

joined() { local IFS=,; echo "$*"; }

right_plugins=$(named --plugin "$plugins/right.so" "$plugins/fast_math.so")
[ -n "$quick" ] || right_plugins="$right_plugins --plugin $plugins/flushes_when_loaded.so"

# The log, without other kernels than this one.
part_of() { # log, name
  awk -v name="$2" '
    /^[a-z][a-z0-9_]* / { mine = $1 == name }
    mine || index($0, "\"" name "/") == 1 || index($0, "'\''" name "'\''") || index($0, "FAILED: " name " ")' "$1"
}

# Each kernel has a row that says passed, and no other words. A verify that ends before its table leaves none: why it ended
# stands in its log alone.
judge_verified() { # log, status, started, names
  local log=$1 status=$2 started=$3 name cases
  shift 3
  if [ "$status" -gt 1 ] || ! grep -q ' cases, [0-9]* failed' "$log"; then
    complain "verify of the right kernels ended with status $status; its last words:"
    tail -n 20 "$log" | cut -c 1-300 >&2
  fi
  for name; do
    part_of "$log" "$name" >"$work/$name.log"
    cases=$(sed -n "s/^$name  *passed  *\([0-9]*\).*/\1/p" "$work/$name.log")
    if [ -z "$cases" ]; then
      conclude "$name" failed "$started" "$work/$name.log"
    else
      echo "1 variant, $cases cases, 0 failed" >>"$work/$name.log"
      conclude "$name" passed "$started" "$work/$name.log"
    fi
  done
}

# The search stops at the first failure, and says whose it is.
judge_fuzzed() { # log, status, started, names
  local log=$1 status=$2 started=$3 name
  shift 3
  [ "$status" -ne 0 ] || return 0
  for name; do
    part_of "$log" "$name" | grep "FAILED: $name \|crashed (" >"$work/$name.log" || continue
    conclude "$name" 'failed in fuzz' "$started" "$work/$name.log"
    return 0
  done
  complain "fuzz ended with status $status: $(tail -n 1 "$log")"
  touch "$work/fuzz.lost"
}

# Each kernel has rows of times.
judge_measured() { # log, started, expected outcome, names
  local log=$1 started=$2 expected=$3 name
  shift 3
  for name; do
    part_of "$log" "$name" | sed -n 's/.*,true,"\{0,1\}\([^"]*\).*/FAILED: \1/p' >"$work/$name.bench"
    if [ "$expected" = caught ]; then
      conclude "$name" "$([ -s "$work/$name.bench" ] && echo caught || echo missed)" "$started" "$work/$name.bench"
    elif [ -s "$work/$name.bench" ] || ! grep -q "^\"$name/.*,[0-9]" "$log"; then
      conclude "$name" 'failed in bench' "$started" "$work/$name.bench"
    fi
  done
}

try_cheats() { # names
  local log=$work/cheats.csv started=${EPOCHREALTIME/[.,]/} arguments
  mapfile -t arguments < <(named --problem $cheat_problems)
  run "$log" 300 bench --plugin "$plugins/cheats.so" --variant "$(joined "$@")" "${arguments[@]}" $cheat_options \
    --instructions=false --quiet --benchmark_format csv
  judge_measured "$log" "$started" caught "$@"
}

try_right() { # names
  local started=${EPOCHREALTIME/[.,]/} arguments=() seeds seed seconds=10 log
  [ -n "$full" ] || arguments=(--count 10 --every 10)
  [ -z "$quick" ] || mapfile -t arguments < <(named --problem $quick_problems)
  run "$work/verify.log" 600 verify $right_plugins --variant "$(joined "$@")" "${arguments[@]}"
  judge_verified "$work/verify.log" $? "$started" "$@"
  [ -z "$quick" ] || return 0
  seeds=$(date +%s)
  if [ -n "$full" ]; then seeds="1 2 3 4" seconds=60; fi
  for seed in $seeds; do
    log=$work/fuzz-$seed.log
    run "$log" 600 fuzz --seed "$seed" --seconds $seconds $right_plugins --variant "$(joined "$@")"
    judge_fuzzed "$log" $? "$started" "$@"
  done
  run "$work/bench.csv" 300 bench $right_plugins --variant "$(joined "$@")" $right_options \
    --instructions=false --quiet --benchmark_format csv
  judge_measured "$work/bench.csv" "$started" passed "$@"
}

# ---- all of them -----------------------------------------------------------------------------------------

expected_of() { # name
  case ${plugin_of[$1]} in right | fast_math | flushes_when_loaded) echo passed ;; *) echo caught ;; esac
}

print_row() { # name
  local outcome tenths cases check problem mark=
  IFS=$'\t' read -r outcome tenths cases check problem <"$work/$1.result"
  if [ "$outcome" = "$(expected_of "$1")" ]; then
    as_expected=$((as_expected + 1))
  else
    not_so=$((not_so + 1)) mark='  <-- not as expected' surprises+=("$1")
  fi
  printf '%-28s %-14s %5s cases %3d.%d s  %-40s %s%s\n' "$1" "$outcome" "$cases" $((tenths / 10)) $((tenths % 10)) \
    "$check" "$problem" "$mark"
}

# Again, and what the program said: of hundreds of rows only the last are looked at.
print_surprise() { # name
  local log
  echo
  print_row "$1"
  for log in "$work/$1".*; do
    case $log in *.result) ;; *) tail -n 20 "$log" | cut -c 1-300 ;; esac
  done
}

write_readme() {
  local name plugin=none outcome tenths cases check problem
  sed '/^<!-- rows -->$/q' "$root/tests/adversary/README.md"
  for name in "${list[@]}"; do
    IFS=$'\t' read -r outcome tenths cases check problem <"$work/$name.result"
    if [ "${plugin_of[$name]}" != "$plugin" ]; then
      plugin=${plugin_of[$name]}
      printf '\n## %s.c\n\n| kernel | what it does | verdict | by | cases | seconds | on |\n|---|---|---|---|---|---|---|\n' \
        "$plugin"
    fi
    [ "$outcome" = "$(expected_of "$name")" ] || outcome="**$outcome**"
    printf '| %s | %s | %s | %s | %s | %d.%d | %s |\n' "$name" "${what[$name]}" "$outcome" "$check" "$cases" \
      $((tenths / 10)) $((tenths % 10)) "$problem"
  done
}

is_wanted() { # name
  local word
  [ -n "$wanted" ] || return 0
  for word in $wanted; do
    case $1 in "$word") return 0 ;; "$word"_*) [ -n "$quick" ] || return 0 ;; esac
  done
  return 1
}

"$program" list >"$work/own" || exit 2
[ -n "$quick$full$whole$readme" ] || read_known
untestable=0
for plugin in wrong_shapes wrong_numbers wrong_functions wrong_narrow wrong_conduct team/wrong_team misbehaving cheats right \
  fast_math flushes_when_loaded; do
  # Built where MPI is installed.
  if [ $plugin = team/wrong_team ] && { [ ! -f "$plugins/$plugin.so" ] || ! command -v mpirun >/dev/null; }; then
    if [ -z "$quick" ] && is_wanted team_; then
      printf '%-28s not testable here: MPI is not installed\n' 'team_*'
      untestable=1
    fi
    continue
  fi
  read_kernels $plugin || exit 2
done
kernels+=(never_loaded)
plugin_of[never_loaded]=exits_when_loaded what[never_loaded]="exit(0) in the constructor of the plugin"
[ -z "$quick" ] || wanted="$quick_kernels $quick_right"

list=() single=() cheats=() right=()
for name in "${kernels[@]}"; do
  is_wanted "$name" && [ "$name" != neighbour ] || continue
  case $name in
  race_*)
    if [ "$(nproc)" -lt 2 ]; then
      printf '%-28s not testable here: one processor\n' "$name"
      untestable=$((untestable + 1))
      continue
    fi ;;
  esac
  list+=("$name")
  case ${plugin_of[$name]} in
  cheats) cheats+=("$name") ;;
  right | fast_math | flushes_when_loaded) right+=("$name") ;;
  *) single+=("$name") ;;
  esac
done
[ $((${#list[@]} + untestable)) -gt 0 ] || { complain "there is no kernel$wanted; tests/adversary has them"; exit 2; }

trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
as_expected=0 not_so=0 printed=0 surprises=()
# What takes long, and mostly one processor, begins first.
[ ${#right[@]} -eq 0 ] || try_right "${right[@]}" &
for name in "${single[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
  while [ -f "$work/${single[printed]}.result" ]; do print_row "${single[printed++]}"; done
  case ${plugin_of[$name]} in
  misbehaving) try_misbehaving "$name" & ;;
  exits_when_loaded) try_loading "$name" & ;;
  *) try_wrong "$name" & ;;
  esac
done
wait
while [ $printed -lt ${#single[@]} ]; do print_row "${single[printed++]}"; done
[ ! -f "$work/fuzz.lost" ] || not_so=$((not_so + 1))
[ ${#cheats[@]} -eq 0 ] || try_cheats "${cheats[@]}"
for name in "${cheats[@]}" "${right[@]}"; do print_row "$name"; done
if [ -n "$readme" ]; then
  write_readme >"$work/README.md" && mv "$work/README.md" "$root/tests/adversary/README.md"
fi
counts="$as_expected as expected, $not_so not"
# Races and what counts calls do not keep to a problem; of others the table is out of date, for which problems are drawn changes with
# what can be drawn.
if [ -z "$quick$full$whole$readme" ] && ls "$work"/*.searched >/dev/null 2>&1; then
  searched=$(cd "$work" && echo *.searched)
  echo "not caught on the problem of the table, so that all was posed (TABLE=1 writes the table again): ${searched//.searched/}"
fi
for name in "${surprises[@]}"; do print_surprise "$name"; done
echo "$counts, $SECONDS s"
[ $not_so -eq 0 ]
