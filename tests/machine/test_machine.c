/* What is said of the machine, and that its peaks are peaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "machine/environment.h"
#include "machine/machine.h"

static void the_machine_is_described(void **state) {
  (void)state;
  machine machine;
  machine_describe(&machine);
  assert_true(machine.cpu[0] && machine.compiler[0] && machine.kernel[0]);
  assert_true(machine.cores >= 1);
  assert_true(machine.memory_bytes > (size_t)1 << 20);
  assert_int_equal(machine.peak_count, 0);
  if (machine.l1_bytes && machine.l2_bytes) assert_true(machine.l1_bytes < machine.l2_bytes);
}

static void assert_sound(const machine_rate *rate) {
  if (!(rate->low > 0 && rate->low <= rate->median && rate->median <= rate->high && rate->high < 1e18))
    fail_msg("%s: %g [%g, %g]", rate->name, rate->median, rate->low, rate->high);
}

static void every_rate_lies_within_its_interval(void **state) {
  (void)state;
  machine machine;
  machine_describe(&machine);
  for (int threads = 1; threads <= 2; threads++) {
    machine_measure(&machine, threads, 0.3);
    assert_int_equal(machine.threads, threads);
    assert_true(machine.peak_count >= 1);
    assert_string_equal(machine.peaks[0].name, "portable");
    for (size_t n = 0; n < machine.peak_count; n++) assert_sound(&machine.peaks[n]);
    for (size_t n = 0; n < machine.read_count; n++) {
      assert_sound(&machine.reads[n]);
      assert_true(machine.reads[n].working_set_bytes > 0);
      if (n > 0) assert_true(machine.reads[n].working_set_bytes > machine.reads[n - 1].working_set_bytes);
    }
    if (machine.read_count) assert_string_equal(machine.reads[machine.read_count - 1].name, "read memory");
    if (machine.sgemm.median > 0) assert_sound(&machine.sgemm);
    for (size_t n = 0; n < machine.tanh_count; n++) assert_sound(&machine.tanhs[n]);
    /* Where there is such a peak: of no rate there is none just now. */
    for (size_t n = 0; n < machine.peak_count; n++) {
      machine_rate none = machine.peaks[n];
      assert_true(machine_rate_now(&machine, &none, 1e-4) > 0);
      none.median = 0;
      assert_true(machine_rate_now(&machine, &none, 1e-4) == 0);
    }
    assert_true(machine_rate_now(&machine, &machine.sgemm, 1e-4) == 0);
  }
}

/* On rates that are made up, as real ones of a busy machine may come in any order. */
static void shares_are_taken_of_the_named_peak_or_the_fastest(void **state) {
  (void)state;
  const attn_type wide = ATTN_FLOAT32, narrow = ATTN_BFLOAT16;
  machine machine = {.peak_count = 4,
                     .peaks = {{.name = "portable", .median = 10, .type = wide},
                               {.name = "avx2", .median = 90, .type = wide},
                               {.name = "avx512", .median = 80, .type = wide},
                               {.name = "avx512_bf16", .median = 170, .type = narrow}}};
  const struct {
    const char *isa;
    attn_type type;
    double peak;
  } cases[] = {{"avx512", wide, 80},
               {"portable", wide, 10},
               {"sve", wide, 90},
               {NULL, wide, 90},
               {"avx512_bf16", wide, 90}, /* nobody multiplies float32 so */
               {"avx512_bf16", narrow, 170},
               {NULL, narrow, 170},
               {"avx512", narrow, 80}, /* converted */
               {"avx512_bf16", ATTN_FLOAT16, 90}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
    assert_true(machine_peak(&machine, cases[n].isa, cases[n].type)->median == cases[n].peak);
  machine.peak_count = 0;
  assert_null(machine_peak(&machine, "avx2", wide));
}

static void reads_are_those_of_the_first_level_that_holds_the_bytes(void **state) {
  (void)state;
  machine machine = {.read_count = 3,
                     .reads = {{.name = "read L1", .median = 400e9, .working_set_bytes = 32 << 10},
                               {.name = "read L2", .median = 200e9, .working_set_bytes = 1 << 20},
                               {.name = "read memory", .median = 20e9, .working_set_bytes = 256 << 20}}};
  assert_string_equal(machine_read(&machine, 64 << 10)->name, "read L1");
  assert_string_equal(machine_read(&machine, (64 << 10) + 1)->name, "read L2");
  assert_string_equal(machine_read(&machine, 3 << 20)->name, "read memory");
  assert_string_equal(machine_read(&machine, INFINITY)->name, "read memory");
  machine.read_count = 0;
  assert_null(machine_read(&machine, 1));
}

static void the_description_prints_every_rate(void **state) {
  (void)state;
  machine machine;
  machine_describe(&machine);
  machine_measure(&machine, 1, 0.1);
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  machine_print(&machine, out);
  fclose(out);
  for (size_t n = 0; n < machine.peak_count; n++) assert_non_null(strstr(text, machine.peaks[n].name));
  for (size_t n = 0; n < machine.read_count; n++) assert_non_null(strstr(text, machine.reads[n].name));
  free(text);
}

static const char *fact(const environment *environment, const char *key) {
  const char *text = environment_fact(environment, key);
  if (!text) fail_msg("no fact '%s'", key);
  return text;
}

static void a_run_can_be_cited_with_its_environment(void **state) {
  (void)state;
  static environment found;
  assert_int_equal(setenv("OMP_DISPLAY_AFFINITY", "it's false", 1), 0);
  environment_describe(&found);
  unsetenv("OMP_DISPLAY_AFFINITY");
  for (size_t n = 0; n < ENVIRONMENT_FACTS; n++)
    if (!found.facts[n][0]) fail_msg("nothing is said of %s", environment_key(n));
  assert_string_equal(fact(&found, "attnbench_commit"), version_commit());
  assert_non_null(strstr(fact(&found, "command_line"), "test_machine"));
  assert_true(fact(&found, "affinity")[strspn(fact(&found, "affinity"), "0123456789,-")] == '\0');
  assert_non_null(strstr(fact(&found, "openmp_settings"), "'OMP_DISPLAY_AFFINITY=it'\\''s false'"));
  assert_non_null(strstr(fact(&found, "libc"), "glibc 2."));
  assert_null(environment_fact(&found, "no such fact"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_machine_is_described),
      cmocka_unit_test(a_run_can_be_cited_with_its_environment),
      cmocka_unit_test(every_rate_lies_within_its_interval),
      cmocka_unit_test(shares_are_taken_of_the_named_peak_or_the_fastest),
      cmocka_unit_test(reads_are_those_of_the_first_level_that_holds_the_bytes),
      cmocka_unit_test(the_description_prints_every_rate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
