/* The emulated device (variants/cuda/emulation): its instructions beside plain loops, and mistakes that it
 * has to name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first. */
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/plugins.h"
#include "run/runner.h"

#define PLUGINS ATTN_BUILD_DIR "/tests/plugins/"

static const char *const schedules[] = {"forwards", "backwards", "random", "early_copies"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

static const attn_device *device_in(void *object) {
  const attn_device *device = dlsym(object, "attn_plugin_device");
  char words[256];
  assert_non_null(device);
  assert_true(device->open(0, words, sizeof words));
  return device;
}

static void check_instructions_of(const char *plugin) {
  void *object = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(object);
  const attn_device *device = device_in(object);
  const char *(*const *check)(void) = dlsym(object, "check_instructions");
  assert_non_null(check);
  for (int s = 0; s < SCHEDULES; s++) {
    device->keep_to(schedules[s]);
    const char *differs = (*check)(), *wrong = device->wait();
    if (differs || wrong) fail_msg("%s: %s", schedules[s], wrong ? wrong : differs);
  }
  dlclose(object);
}

static void instructions_do_what_plain_loops_do(void **state) {
  (void)state;
  check_instructions_of(PLUGINS "device_instructions.so");
}

static void instructions_of_hopper_do_what_plain_loops_do(void **state) {
  (void)state;
  check_instructions_of(PLUGINS "device_hopper.so");
}

/* What is said of it under every schedule, and what stands in the first line of its source that is named. */
typedef struct mistake {
  const char *variant, *words, *source;
} mistake;

/* Into the section that is watched clang puts those of templates too; gcc does not, and they are told by this. */
static const char gcc_in_a_template[] = "a static variable";

static const mistake mistakes[] = {
    {"no_barrier", "with no barrier between", "shared["},
    {"no_warp_barrier", "with no barrier between", "shared["},
    {"written_too_early", "with no barrier between", "shared["},
    {"beyond_the_end", "writes 4 bytes at 256 of a buffer of 256", "THREADS : threadIdx.x] = 1"},
    {"before_the_start", "reads 4 bytes at -4 of a buffer of 256", "(int)threadIdx.x - 1]"},
    {"beyond_shared", "4 bytes of shared memory are touched at 256, of 256", "[threadIdx.x + 1] = 1"},
    {"misaligned", "bytes at an address that is not aligned", "make_float4(1"},
    {"lonely", "waits for ever at a barrier of the block", NULL},
    {"nobody_waits", "with no barrier between", "shared["},
    {"absent_lane", "waits for ever at a shuffle", NULL},
    {"outside_its_mask", "comes to a shuffle whose mask 0000ffff leaves it out", NULL},
    {"different_instructions", "meet at different instructions", NULL},
    {"copied_and_read", "copies to (and has not waited for)", "(memory)[4 * threadIdx.x]"},
    {"copied_for_others", "with no barrier between", "threadIdx.x"},
    {"waits_for_the_wrong_group", "copies to (and has not waited for)", "(threadIdx.x + THREADS)]"},
    {"shared_in_a_template", "with no barrier between", "memory["},
    {"too_wide", "1025 threads in a block: 1024 are the most", NULL},
    {"too_much_shared", "bytes of shared memory: 232448 are the most", NULL},
};

static const mistake mistakes_of_hopper[] = {
    {"bulk_read_too_early", "its mbarrier it has not waited for", "ELEMENT(0) * 2"},
    {"wrong_parity", "its mbarrier it has not waited for", "ELEMENT(0) * 3"},
    {"a_phase_too_many", "waits for ever at an mbarrier at ", "wait_at_mbarrier(in.full, 1)"},
    {"expects_one_of_two", "its mbarrier it has not waited for", "ELEMENT(0) + ELEMENT(1)"},
    {"expects_too_many_bytes", "waits for ever at an mbarrier at ", "wait_at_mbarrier(in.full, 0)"},
    {"waits_at_another_barrier", "its mbarrier it has not waited for", "ELEMENT(0) - ELEMENT(1)"},
    {"arrives_twice", "more than the 1 arrivals of a phase", "for (int n = 0; n < 2; n++) arrive_expecting"},
    {"no_mbarrier", "there is no mbarrier", "arrive_at_mbarrier(in.full + 2)"},
    {"mbarrier_not_shown", "uses", "if (threadIdx.x % 32 == 0) arrive_at_mbarrier(in.full)"},
    {"mbarrier_not_fenced", "after whose initialisation fence.proxy.async is missing", "COPY(0, in.full)"},
    {"stage_refilled_too_early", " shared memory at ", NULL},
    {"bulk_never_waited_for", "ends that has not waited for a bulk copy at ", "FETCH(BOX_BYTES)"},
    {"misaligned_box", "not aligned to 128 bytes", "copy_box(in.stages[0] + 64"},
    {"box_beyond_shared", "bytes of shared memory are touched at 16128, of 16384",
     "copy_box(shared + 16384 - 256"},
    {"product_too_early", "its mbarrier it has not waited for", "multiply_group<"},
    {"refilled_while_multiplied", "multiplies (and has not waited for)", "FETCH(BOX_BYTES)"},
    {"product_without_fence", "without wgmma.fence since the last wait", "multiply_group<"},
    {"product_not_committed", "ends that has not waited for wgmma at ", "multiply_group<"},
    {"product_of_ordinary_stores", "fence.proxy.async is missing", "multiply_group<"},
    {"product_of_three_warps", "warps 0 and 3, which multiply together, were asked different", NULL},
};

/* The line of that file of tests/plugins that the words name first, in a buffer of its own; "": none. */
static const char *line_named(const char *words, const char *plugin) {
  static char line[256];
  char file[64], path[512];
  snprintf(file, sizeof file, "%s.cu:", plugin);
  snprintf(path, sizeof path, ATTN_SOURCE_DIR "/tests/plugins/%s.cu", plugin);
  const char *at = strstr(words, file);
  FILE *source = fopen(path, "r");
  assert_non_null(source);
  long number = at ? strtol(at + strlen(file), NULL, 10) : 0;
  while (number > 0 && fgets(line, sizeof line, source)) number--;
  fclose(source);
  return at && number == 0 ? line : "";
}

static const char *violation_of(const attn_variant *variant, const char *isa, inputs *in) {
  static run_outcome outcome;
  char why[256];
  const run_setup setup = {.variant = variant, .isa = isa, .threads = 1};
  const run_watch watch = {.workspace = RUN_POISONED, .inputs_checksum = inputs_checksum(in)};
  if (!runner_run(&setup, in, &watch, &outcome, why, sizeof why)) fail_msg("%s", why);
  return outcome.violation;
}

/* Of a plugin whose other variants, as many as `right`, make none. */
static void check_mistakes_of(const char *plugin, const mistake *of, size_t count, const char *const *right,
                              size_t right_count) {
  variant_list list = {0};
  workload workload;
  inputs in;
  char why[256], path[512];
  snprintf(path, sizeof path, PLUGINS "%s.so", plugin);
  if (!variant_list_add(&list, path, why, sizeof why) ||
      !workload_parse_sound("full/B:1/H:1/D:8/Dv:4/T:16", &workload, why, sizeof why) ||
      !inputs_create(&in, &workload, false, why, sizeof why))
    fail_msg("%s", why);
  for (int s = 0; s < SCHEDULES; s++) {
    for (size_t n = 0; n < right_count; n++)
      assert_string_equal(violation_of(variant_list_find(&list, right[n]), schedules[s], &in), "");
    for (size_t n = 0; n < count; n++) {
      const char *said = violation_of(variant_list_find(&list, of[n].variant), schedules[s], &in);
      const bool in_a_template = strcmp(of[n].variant, "shared_in_a_template") == 0;
      if (!strstr(said, of[n].words) && !(in_a_template && strstr(said, gcc_in_a_template)))
        fail_msg("%s, %s: '%s' does not say '%s'", of[n].variant, schedules[s], said, of[n].words);
      if (of[n].source && !strstr(line_named(said, plugin), of[n].source))
        fail_msg("%s, %s: '%s' does not name the line of '%s'", of[n].variant, schedules[s], said,
                 of[n].source);
    }
  }
  assert_int_equal(list.count, right_count + count);
  inputs_destroy(&in);
  variant_list_destroy(&list);
}

static void every_mistake_is_named_with_its_lines(void **state) {
  static const char *const right[] = {"right"};
  (void)state;
  check_mistakes_of("device_mistakes", mistakes, sizeof mistakes / sizeof *mistakes, right, 1);
}

static void every_mistake_with_hopper_is_named_with_its_lines(void **state) {
  static const char *const right[] = {"right", "right_product"};
  (void)state;
  check_mistakes_of("device_mistakes_hopper", mistakes_of_hopper,
                    sizeof mistakes_of_hopper / sizeof *mistakes_of_hopper, right, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(instructions_do_what_plain_loops_do),
      cmocka_unit_test(instructions_of_hopper_do_what_plain_loops_do),
      cmocka_unit_test(every_mistake_is_named_with_its_lines),
      cmocka_unit_test(every_mistake_with_hopper_is_named_with_its_lines),
  };
  if (access(PLUGINS "device_mistakes.so", R_OK) != 0) {
    print_message("no C++ compiler, no emulated device: nothing to test\n");
    return 0;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
