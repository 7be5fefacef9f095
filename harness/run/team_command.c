/* See team_command.h. A launcher tells its processes by their environment whose ranks they are (OpenMPI's, PMIx', MPICH's);
 * with it, another launcher inside would take itself for one of them. */
#include "team_command.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"

extern char **environ;

static bool is_of_launcher(const char *variable) {
  static const char *const prefixes[] = {"OMPI_", "PMIX_",  "PMI_",  "PMI2_",
                                         "ORTE_", "HYDRA_", "HYDI_", "MPIR_"};
  for (size_t n = 0; n < sizeof prefixes / sizeof *prefixes; n++)
    if (strncmp(variable, prefixes[n], strlen(prefixes[n])) == 0) return true;
  return false;
}

/* The ranks outside wait beside those inside: these may outnumber the processors, and are to make room. And who runs
 * outside as root has allowed it there. All are on this host: without a look for networks (ob1) a team starts in
 * three fifths of the time. Where one process has failed, the others need no second to end. */
static const char *const inside[] = {
    "OMPI_MCA_rmaps_base_oversubscribe=1",     "OMPI_MCA_mpi_yield_when_idle=1",
    "OMPI_MCA_hwloc_base_binding_policy=none", "OMPI_MCA_pml=ob1",
    "OMPI_MCA_odls_base_sigkill_timeout=0",    "OMPI_ALLOW_RUN_AS_ROOT=1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
enum { INSIDE = sizeof inside / sizeof *inside };

/* For the caller to free; its words stay where they are. */
static char **environment_inside(void) {
  size_t count = 0, kept = 0;
  while (environ[count]) count++;
  char **variables = calloc(count + INSIDE + 1, sizeof *variables);
  for (size_t n = 0; variables && n < count; n++)
    if (!is_of_launcher(environ[n])) variables[kept++] = environ[n];
  for (size_t n = 0; variables && n < INSIDE; n++) variables[kept++] = (char *)(uintptr_t)inside[n];
  return variables;
}

int team_command_run(int ranks, char *const words[], char **said, char *why, size_t why_size) {
  char number[16];
  size_t count = 0;
  while (words[count]) count++;
  char **environment = environment_inside(), **all = calloc(count + 4, sizeof *all);
  int status = -1;
  snprintf(number, sizeof number, "%d", ranks);
  snprintf(why, why_size, "no memory for a command");
  if (environment && all) {
    const char *const launcher[] = {"mpirun", "-n", number};
    for (size_t n = 0; n < 3; n++) all[n] = (char *)(uintptr_t)launcher[n];
    memcpy(all + 3, words, count * sizeof *all);
    status = child_run(all, environment, said, why, why_size);
  }
  free(all);
  free(environment);
  return status;
}
