/* Prints the name of each problem that `attnbench verify` poses without options, a line each: what fails on one of them fails
 * in verify too. scripts/adversary.sh asks. */
#include <stdio.h>

#include "problem/random_problem.h"
#include "verify/grid.h"
#include "verify/properties.h"

/* Of verify's options --count and --seed. */
enum { RANDOM = 100, SEED = 1 };

static void print(workload w) {
  char name[WORKLOAD_NAME_BYTES];
  workload_name(&w, name);
  puts(name);
}

int main(void) {
  for (int64_t n = 0; n < verify_grid_count(); n++) print(verify_grid_problem(n).workload);
  for (int64_t n = 0; n < RANDOM; n++) print(random_problem(SEED, n));
  for (int64_t n = 0; n < properties_problems(RANDOM); n++) print(properties_problem(SEED, n));
  return 0;
}
