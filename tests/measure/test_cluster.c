/* Shards as clusters start them: an array job of a real Slurm of one node, and ranks of a real mpirun. Where these are not
 * installed, or do not start, that is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/shell.h"

#define PROGRAM "OMP_WAIT_POLICY=passive " ATTN_BUILD_DIR "/attnbench "
#define FOLDER ATTN_BUILD_DIR "/tests/cluster"

/* Of tests/measure/slurm.sh, where there is none. */
enum { NO_SLURM = 77 };

static int slurm_status;
static char slurm_said[4096];

/* One Slurm for all tests, which starts in seconds. */
static int use_slurm(void **state) {
  (void)state;
  shell("rm -rf " FOLDER " && mkdir -p " FOLDER);
  slurm_status = shell("export OMP_WAIT_POLICY=passive; " ATTN_SOURCE_DIR "/tests/measure/slurm.sh " FOLDER
                       "/slurm " ATTN_SOURCE_DIR "/tests/measure/slurm_jobs.sh " ATTN_BUILD_DIR
                       "/attnbench " ATTN_SOURCE_DIR "/scripts/cluster/bench.sbatch " FOLDER
                       "/run || { s=$?; cat " FOLDER "/run.*.log 2>/dev/null; exit $s; }");
  snprintf(slurm_said, sizeof slurm_said, "%.4000s", shell_output);
  return 0;
}

static void need_slurm(void) {
  if (slurm_status == NO_SLURM) {
    print_message("%s", slurm_said);
    skip();
  }
  if (slurm_status != 0) fail_msg("status %d, and this was said:\n%s", slurm_status, slurm_said);
}

static void an_array_job_measures_a_sweep_and_a_killed_task_runs_again_alone(void **state) {
  (void)state;
  need_slurm();
  shell_expect("cat " FOLDER "/run.partial", 0, "Merged: 2 runs on 1 host, 2 of 3 points");
  shell_expect("cat " FOLDER "/run.partial", 0, "(shard 2/3)\nRun again: --shard 2/3\n");
  shell_expect("cmp " FOLDER "/run.before " FOLDER "/run.after", 0, NULL);
  shell_expect(PROGRAM "merge " FOLDER "/run --out " FOLDER "/run.json", 0,
               "Merged: 3 runs on 1 host, 3 of 3 points");
  assert_null(strstr(shell_output, "Missing"));
}

static void srun_gives_each_task_its_shard(void **state) {
  (void)state;
  need_slurm();
  shell_expect("sort " FOLDER "/run.tasks", 0,
               "naive/full/B:1/H:4/Hkv:4/D:64/T:16\nnaive/full/B:1/H:4/Hkv:4/D:64/T:32\n");
}

/* By command line or environment; a daemon that waits to be noticed by init has neither. */
static void the_slurm_has_left_no_process(void **state) {
  (void)state;
  need_slurm();
  shell_expect("for p in /proc/[0-9]*; do grep -qsa '" ATTN_BUILD_DIR
               "/tests/cluster/[s]lurm/' $p/cmdline $p/environ && echo left: $p $(tr '\\0' ' ' <$p/cmdline); "
               "done; echo looked",
               0, "looked");
  if (strstr(shell_output, "left: ")) fail_msg("%.4000s", shell_output);
}

static void each_rank_of_mpirun_measures_its_shard(void **state) {
  (void)state;
  if (shell("command -v mpirun >/dev/null") != 0) {
    print_message("no MPI: mpirun is not installed (apt-get install openmpi-bin)\n");
    skip();
  }
  shell_expect(
      "OMP_WAIT_POLICY=passive OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun "
      "--oversubscribe --bind-to none -n 2 " ATTN_BUILD_DIR
      "/attnbench bench --variant naive --lengths 16:64 --benchmark_dry_run --threads 1 --shard auto "
      "--benchmark_out " FOLDER "/rank.json --raw " FOLDER "/rank.csv --quiet",
      0, "2 shards measure on this host at once");
  shell_expect("ls " FOLDER "/rank.*", 0, "rank.1-of-2.json");
  assert_non_null(strstr(shell_output, "rank.2-of-2.csv"));
  shell_expect(PROGRAM "merge " FOLDER "/rank.1-of-2.json " FOLDER "/rank.2-of-2.json", 0,
               "Merged: 2 runs on 1 host, 3 of 3 points");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_array_job_measures_a_sweep_and_a_killed_task_runs_again_alone),
      cmocka_unit_test(srun_gives_each_task_its_shard),
      cmocka_unit_test(the_slurm_has_left_no_process),
      cmocka_unit_test(each_rank_of_mpirun_measures_its_shard),
  };
  return cmocka_run_group_tests_name("cluster", tests, use_slurm, NULL);
}
