#!/bin/bash
# A Slurm of one node for as long as a command takes: tests/measure/slurm.sh FOLDER COMMAND [ARGUMENTS]. Everything of it lies
# in FOLDER (configuration, key, sockets, logs), runs as the current user, listens on ports of its own, and is ended with the
# command. Exit status 77 and a sentence: there is no Slurm here, or it does not start.
set -u
PATH=$PATH:/usr/sbin:/sbin
folder=$(realpath -m "$1")
shift
pids=()

skip() {
  echo "no Slurm: $*"
  exit 77
}

finish() {
  local status=$? pid
  # Steps that slurmd has started are not its children: the jobs are ended first.
  [ ${#pids[@]} -gt 1 ] && SLURM_CONF=$folder/slurm.conf timeout 5 scancel --user="$(id -un)" 2>/dev/null
  for ((n = ${#pids[@]} - 1; n >= 0; n--)); do kill "${pids[n]}" 2>/dev/null; done
  for pid in ${pids[@]+"${pids[@]}"}; do
    for ((n = 0; n < 50; n++)); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
  done
  exit "$status"
}

# Two ports that nobody listens on now.
free_ports() {
  local port found=() listening
  listening=$(awk 'NR > 1 {split($2, at, ":"); print at[2]}' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  for ((port = 20000 + $$ % 20000; ${#found[@]} < 2; port++)); do
    grep -qx "$(printf %04X "$port")" <<<"$listening" || found+=("$port")
  done
  echo "${found[@]}"
}

for tool in munged slurmctld slurmd sbatch srun scancel sinfo; do
  command -v "$tool" >/dev/null || skip "$tool is not installed (apt-get install slurm-wlm munge)"
done
socket=$folder/munge.socket
[ ${#socket} -lt 100 ] || skip "$folder is too long a path for a socket"
rm -rf "$folder"
mkdir -p "$folder"/{state,spool} && chmod 755 "$folder" && cd "$folder" || skip "$folder cannot be written"
trap finish EXIT
trap 'exit 143' TERM INT

(umask 077 && head -c 1024 /dev/urandom >munge.key)
munged --foreground --force --num-threads=2 --key-file="$folder/munge.key" --socket="$socket" --pid-file="$folder/munge.pid" \
  --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" </dev/null >munged.out 2>&1 &
pids+=($!)
for ((n = 0; n < 100; n++)); do
  [ -S "$socket" ] && munge --socket="$socket" --no-input >/dev/null 2>&1 && break
  sleep 0.1
done
[ "$n" -lt 100 ] || skip "munged does not answer: $(tail -n 1 munged.out)"

read -r ctld_port slurmd_port < <(free_ports)
host=$(hostname -s)
cat >slurm.conf <<END
ClusterName=attnbench
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$socket
CredType=cred/munge
SlurmctldPort=$ctld_port
SlurmdPort=$slurmd_port
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
JobAcctGatherType=jobacct_gather/none
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
KillWait=5
MaxArraySize=1001
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
END
export SLURM_CONF=$folder/slurm.conf
slurmctld -D -f "$SLURM_CONF" </dev/null >slurmctld.out 2>&1 &
pids+=($!)
slurmd -D -f "$SLURM_CONF" -N "$host" </dev/null >slurmd.out 2>&1 &
pids+=($!)
for ((n = 0; n < 100; n++)); do
  [ "$(timeout 2 sinfo --noheader --format=%t 2>/dev/null)" = idle ] && break
  for pid in "${pids[@]}"; do
    kill -0 "$pid" 2>/dev/null || skip "a daemon ended: $(tail -qn 1 slurmctld.out slurmd.out)"
  done
  sleep 0.1
done
[ "$n" -lt 100 ] || skip "its node is not idle after ten seconds: $(tail -qn 1 slurmctld.log slurmd.log)"
cd "$OLDPWD" || exit 1
"$@" &
pids+=($!)
wait $!
