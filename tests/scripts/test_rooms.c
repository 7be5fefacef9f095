/* The map of CONTRIBUTING.md holds: scripts/rooms.sh finds no breach in the sources, and finds those that are made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/shell.h"

static void the_sources_keep_to_the_map(void **state) {
  (void)state;
  if (shell(ATTN_SOURCE_DIR "/scripts/rooms.sh " ATTN_SOURCE_DIR " " ATTN_BUILD_DIR " 2>&1") != 0)
    fail_msg("%s", shell_output);
}

static void a_breach_is_named(void **state) {
  (void)state;
  const struct {
    const char *files, *words;
  } cases[] = {
      {"echo '#include \"run/b.h\"' >harness/base/a.c; touch harness/run/b.h", "from a room above its own"},
      {"echo '#include \"variants/x.h\"' >harness/run/a.c; touch variants/x.h", "only through attention.h"},
      {"echo '#include \"base/a.h\"' >variants/x.c; touch harness/base/a.h", "variants/ knows only itself"},
      {"echo '#include \"variants/x.h\"' >reference/r.c; touch variants/x.h", "reference/ knows only"},
      {"mkdir harness/attic; touch harness/base/a.h; echo '#include \"base/a.h\"' >harness/attic/a.c",
       "lies in no room"},
      {"echo '#include \"b.h\"' >harness/base/a.c; touch harness/base/a.h; echo '#include \"a.h\"' "
       ">harness/base/b.h",
       "in a circle: harness/base/a harness/base/b"},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char command[2048];
    snprintf(command, sizeof command,
             "f=$(mktemp -d) && cd $f && mkdir -p harness/base harness/run variants reference && { %s; } && "
             "%s/scripts/rooms.sh . 2>&1; s=$?; rm -rf $f; exit $s",
             cases[n].files, ATTN_SOURCE_DIR);
    assert_int_equal(shell(command), 1);
    if (!strstr(shell_output, cases[n].words)) fail_msg("'%s' is not said: %s", cases[n].words, shell_output);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_sources_keep_to_the_map),
      cmocka_unit_test(a_breach_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
