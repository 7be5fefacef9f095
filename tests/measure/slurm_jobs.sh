#!/bin/bash
# What somebody does with a Slurm: PROGRAM, the array's script, where reports go. An array of three shards, of which one is
# killed in the middle; the same one again, alone; and two tasks of one srun. tests/measure/test_cluster.c looks at what is left.
set -eu
program=$1 script=$2 out=$3
sweep="--variant naive --lengths 16:64 --benchmark_dry_run --threads 1 --scripts /nowhere"

# Not --wait, which looks every few seconds.
run_array() {
  local job
  job=$(SHARDS=3 OUT=$out ATTNBENCH=$2 sbatch --parsable --array="$1" --output="$out.%a.log" "$script" $sweep)
  for ((n = 0; n < 900; n++)); do
    [ -n "$(squeue --noheader --jobs="$job" 2>/dev/null)" ] || return 0
    sleep 0.1
  done
  echo "job $job does not end: $(squeue)"
  scancel "$job"
  return 1
}

cat >"$out.killed" <<END
#!/bin/bash
case " \$* " in *" 2/3 "*) "$program" "\$@" & sleep 0.2; kill -KILL \$!; wait \$! ;; *) exec "$program" "\$@" ;; esac
END
chmod +x "$out.killed"
run_array 1-3 "$out.killed"
"$program" merge "$out" >"$out.partial"
cksum "$out"/shard-[13]-of-3/results.json >"$out.before"
run_array 2 "$program"
cksum "$out"/shard-[13]-of-3/results.json >"$out.after"
srun --ntasks=2 --overcommit "$program" bench --variant naive --lengths 16,32 --shard auto --benchmark_list_tests >"$out.tasks"
