#!/usr/bin/env bash
# What the variants of a team would take on a cluster that nobody here has: `scripts/scale/scale.sh BUILD FOLDER`, which `make scale`
# runs. Their own sources run among up to 1024 simulated ranks (SimGrid's SMPI), with messages of their real sizes; the work on a
# block takes as long as this machine's rates say, which are measured first. Then the model is held to what it can be: real
# runs of OpenMPI with 2 and 4 ranks on this machine beside their simulation, in several rounds. Into FOLDER: points.txt, validation.txt, and what draw.sh
# makes of them. Status 1: these runs were disturbed (check.sh), and the results are kept.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "$1") folder=$2

# ---- the cluster that is simulated ----
# A node: one rank, whose work all cores share evenly, each at the rate that a core here has with its neighbour busy. Cores, last cache and
# memory are those of a server with one 64-core processor of this one's family.
node_cores=64 node_cache=$((256 << 20)) node_memory=460e9
# The network: a fat tree of two levels, 32 switches of 32 nodes with as much capacity up as down, which is the largest that switches of 64
# ports make without a bottleneck. 100 Gb/s, 0.5 us for each link: 2 us from one node to one behind another switch.
nodes=1024 topology="2;32,32;1,32;1,1" link_bandwidth=12.5GBps link_latency=500ns
# The model: 128 query heads, 8 heads of keys and values, of 128 features, in bfloat16; one sequence, causal; or one query
# decoded. That is the attention of a layer of the larger open models.
heads=128,8,128
lengths=(65536 262144 1048576 4194304)
ranks=(1 2 4 8 16 32 64 128 256 512 1024)
# For where ring and ulysses cross: shorter ones too.
crossing_lengths=(4096 8192 16384 32768 131072 524288)
crossing_ranks=(8 16 32 64 128)

fail() { echo "scale: $*" >&2; exit 2; }
for tool in smpicc smpirun mpirun gnuplot; do
  command -v $tool >/dev/null || fail "$tool is missing: make scale needs SimGrid, OpenMPI and gnuplot (on Debian libsimgrid-dev openmpi-bin libopenmpi-dev gnuplot-nox)"
done
ls "$build/scale/simulate" "$build/scale/rates" >/dev/null 2>&1 || fail "$build/scale is not built: make scale does"
mkdir -p "$folder" || exit 2
cores=$(nproc) # which heeds OMP_NUM_THREADS
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
log=$folder/log.txt
: >"$log"

# Where ranks outnumber processors those that wait make room.
mpi=(mpirun --oversubscribe --mca mpi_yield_when_idle 1)
[ "$(id -u)" != 0 ] || mpi+=(--allow-run-as-root)

# ---- what is measured ----
# Rates and real runs take turns: what this machine does besides, and how fast it is now, meets both alike.
rounds=3
real() { # variants, problem...
  local names=$1 problem options=()
  shift
  for problem; do options+=(--problem "$problem"); done
  "${mpi[@]}" -n 4 "$build/attnbench" bench --variant "$names" "${options[@]}" --threads 1 2>>"$log" |
    awk '$4 ~ /^(ns|us|ms|s)$/ && ($2 == 2 || $2 == 4) { print $1, $2, $3 * ($4 == "ns" ? 1e-9 : $4 == "us" ? 1e-6 : $4 == "ms" ? 1e-3 : 1) }'
}
line=B:1/H:16/Hkv:1/D:128
for ((round = 1; round <= rounds; round++)); do
  echo "Measuring blocks, joins and messages on two cores of this machine, and running 2 and 4 ranks on its $cores: $round of $rounds"
  "${mpi[@]}" -n 2 "$build/scale/rates" >"$folder/rates.$round" 2>>"$log" || fail "the rates could not be measured: $log"
  {
    real ring,ulysses "causal/$line/T:1024/bf16" "causal/$line/T:4096/bf16"
    real tree_decode "full/$line/Tq:1/Tk:16384/bf16" "full/$line/Tq:1/Tk:65536/bf16"
  } >"$folder/real.$round"
  [ "$(wc -l <"$folder/real.$round")" -eq 12 ] || fail "not all real runs have a time: $log"
done
# For awk: the numbers in a text, from 1 on, the smallest first; the one in the middle.
sorted='function sorted(numbers, of,   count, n, m, x) {
    count = split(numbers, of, " ")
    for (n = 2; n <= count; n++) { x = of[n]; for (m = n - 1; m > 0 && of[m] + 0 > x + 0; m--) of[m + 1] = of[m]; of[m + 1] = x }
    return count }
  function median(numbers,   of, count) { count = sorted(numbers, of); return of[int((count + 1) / 2)] }'
awk "$sorted"'
  { name = NF > 2 ? $1 " " $2 : $1; if (!(name in all)) names[++count] = name; all[name] = all[name] " " $NF }
  END { for (n = 1; n <= count; n++) print names[n], median(all[names[n]]) }' "$folder"/rates.[0-9] >"$folder/rates.txt"
rate() { awk -v name="$1" '$1 == name { print $2 }' "$folder/$2"; }

xml() { printf '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n%s\n</platform>\n' "$1"; }
xml "<cluster id=\"cluster\" prefix=\"n\" suffix=\"\" radical=\"0-$((nodes - 1))\" speed=\"1Gf\" bw=\"$link_bandwidth\" lat=\"$link_latency\"
  topology=\"FAT_TREE\" topo_parameters=\"$topology\" loopback_bw=\"100GBps\" loopback_lat=\"100ns\"/>" >"$folder/cluster.xml"
machine() { # rates
  xml "<zone id=\"machine\" routing=\"Full\"><host id=\"n0\" speed=\"1Gf\" core=\"$cores\"/>
  <link id=\"memory\" bandwidth=\"$(rate bandwidth "$1")Bps\" latency=\"$(rate latency "$1")s\" sharing_policy=\"FATPIPE\"/>
  <route src=\"n0\" dst=\"n0\"><link_ctn id=\"memory\"/></route></zone>" >"$folder/machine.xml"
}
seq -f 'n%.0f' 0 $((nodes - 1)) >"$folder/cluster.hosts"
yes n0 | head -n 4 >"$folder/machine.hosts"

# simulate PLATFORM RATES RANKS NODE POINT...: messages as fast as the links are, without the corrections for Ethernet and TCP that SMPI comes with;
# nothing that this process computes takes simulated time.
simulate() {
  local platform=$1 rates=$folder/$2 count=$3 node=$4
  shift 4
  # shellcheck disable=SC2086 # three numbers
  smpirun -np "$count" -hostfile "$folder/$platform.hosts" -platform "$folder/$platform.xml" --cfg=smpi/privatization:no \
    --cfg=smpi/simulate-computation:no --cfg=smpi/shared-malloc:global --cfg=smpi/shared-malloc-blocksize:16777216 \
    --cfg=smpi/coll-selector:ompi --cfg=contexts/stack-size:256 --cfg=network/crosstraffic:0 --cfg=network/weight-S:0 \
    --cfg=smpi/lat-factor:0:1 --cfg=smpi/bw-factor:0:1 "$build/scale/simulate" "$rates" $node "$@" 2>>"$log"
}

# ---- the cluster ----
echo "Simulating up to ${ranks[-1]} nodes"
mkdir -p "$folder/parts"
trap 'rm -rf "$folder/parts"' EXIT
# part RANKS POINT...: beside others, as many as there are processors.
running=0 part=0
part() {
  if [ $running -ge "$cores" ]; then wait -n; running=$((running - 1)); fi
  part=$((part + 1)) running=$((running + 1))
  simulate cluster rates.txt "$1" "$node_cores $node_cache $node_memory" "${@:2}" >"$folder/parts/$part" || : >"$folder/parts/failed" &
}
for ((n = ${#ranks[@]} - 1; n >= 0; n--)); do # the longest first
  for length in "${lengths[@]}"; do
    part "${ranks[n]}" "ring:$heads,$length,$length,causal" "ulysses:$heads,$length,$length,causal" \
      "tree_decode:$heads,1,$length,full"
  done
done
for count in "${crossing_ranks[@]}"; do
  for length in "${crossing_lengths[@]}"; do
    part "$count" "ring:$heads,$length,$length,causal" "ulysses:$heads,$length,$length,causal"
  done
done
wait
[ ! -e "$folder/parts/failed" ] || fail "a simulation failed: $log"
{
  echo "# variant, ranks, Tq, Tk, seconds, seconds on one node, bytes sent by the rank that sends most; simulated"
  sort -u "$folder"/parts/[0-9]* | sort -k1,1 -k4,4n -k2,2n
} >"$folder/points.txt"
! grep -q 'not what is declared' "$folder/points.txt" || fail "a rank sends other bytes than its variant declares: $folder/points.txt"

# ---- this machine ----
for ((round = 1; round <= rounds; round++)); do
  machine "rates.$round"
  for count in 2 4; do
    simulate machine "rates.$round" $count "1 0 0" {ring,ulysses}:16,1,128,1024,1024,causal {ring,ulysses}:16,1,128,4096,4096,causal \
      tree_decode:16,1,128,1,{16384,65536},full
  done >"$folder/simulated.$round"
  awk 'NR == FNR { seconds[$1 "/" $4 "/" $2] = $5; next }
    { match($1, /T(k)?:[0-9]+/); split(substr($1, RSTART, RLENGTH), length_of, ":"); split($1, name, "/")
      print $1, $2, $3, seconds[name[1] "/" length_of[2] "/" $2] }' "$folder/simulated.$round" "$folder/real.$round"
done >"$folder/pairs.txt"
{
  echo "Real runs of OpenMPI on this machine, which has $cores processors, beside their simulation: medians of $rounds rounds, and the errors of each."
  printf '%-58s %5s %12s %12s %8s   %s\n' "" ranks run simulated error "of rounds"
  awk "$sorted"'
    { name = $1 " " $2; if (!(name in run)) names[++count] = name
      run[name] = run[name] " " 1e3 * $3; simulated[name] = simulated[name] " " 1e3 * $4; error[name] = error[name] " " 100 * ($4 / $3 - 1) }
    END { for (n = 1; n <= count; n++) { name = names[n]; rounds = sorted(error[name], errors); split(name, point, " ")
      printf "%-58s %5d %9.2f ms %9.2f ms %+6.0f %%   %+.0f to %+.0f\n", point[1], point[2], median(run[name]), median(simulated[name]),
        median(error[name]), errors[1], errors[rounds] } }' "$folder/pairs.txt"
} >"$folder/validation.txt"

# ---- what came of it ----
processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
cat >"$folder/cluster.txt" <<TEXT
$nodes nodes of $node_cores cores, fat tree of 100 Gb/s; rates of a core measured on ${processor:-this processor}
128 query heads, 8 of keys and values, D = 128, bfloat16, one causal sequence; decoding: one query
TEXT
rm -f "$folder"/{real,simulated,rates}.[0-9] "$folder/pairs.txt" "$folder"/*.hosts
if ! grep -qv INFO "$log"; then rm -f "$log"; fi
"$root/scripts/scale/draw.sh" "$folder" || exit 2
sed -n '/^Faster:/,$p' "$folder/summary.txt"
echo "Pictures and tables are in $folder"
"$root/scripts/scale/check.sh" "$folder"
