/* attnbench report as people call it, the page that every bench leaves, and what Ctrl-C leaves. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/report/sample_report.h"
#include "tests/shell.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench"
#define PLUGINS ATTN_BUILD_DIR "/tests/plugins/"

static char folder[] = "/tmp/attnbench-page-test-XXXXXX";

static void write_sample(const char *path, int shortest) {
  report report;
  char why[512];
  sample_report(&report, sample_variants, 3, shortest);
  const bool written = report_write(&report, &sample_all_rows, "json", path, why, sizeof why);
  report_destroy(&report);
  if (!written) fail_msg("%s", why);
}

static int set_up(void **state) {
  (void)state;
  if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
  write_sample("now.json", 512);
  write_sample("before.json", 1024);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return chdir("/") == 0 ? system(command) : -1;
}

static void one_report_or_two_make_a_page(void **state) {
  (void)state;
  shell_expect(PROGRAM " report now.json", 0, "The page is index.html\n");
  shell_expect("grep -c 'Against the former run' index.html", 1, "0");
  shell_expect("mkdir -p run && cp now.json run && " PROGRAM " report run/now.json", 0,
               "The page is run/index.html\n");
  shell_expect(PROGRAM " report before.json now.json --html both.html", 0, "The page is both.html\n");
  shell_expect("grep -c '>only now</td>' both.html", 0, "3");
  shell_expect(PROGRAM " report now.json --html /dev/stdout", 0, "</html>\nThe page is /dev/stdout\n");
}

static void bad_input_is_one_sentence_and_costs_no_page(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *says;
  } cases[] = {
      {"nowhere.json", "nowhere.json: cannot be read: No such file"},
      {"broken.json", "broken.json:2: is not sound JSON"},
      {"other.json", "other.json: is not a report of attnbench"},
      {"old.json", "was written in schema version 1; this attnbench reads version 2"},
      {"now.json old.json", "was written in schema version 1"},
      {"old.json now.json", "was written in schema version 1"},
      {".", ".: cannot be read: Is a directory"},
      {"now.json --html nowhere/page.html", "--html nowhere/page.html: No such file"},
      {"now.json --html .", "--html .: Is a directory"},
      {"now.json --html now.json", "--html now.json would replace the report that it is made from"},
      {"before.json now.json --html ./before.json", "would replace the report that it is made from"},
      {"now.json --html link.json", "would replace the report that it is made from"},
  };
  shell_expect(
      "echo '{' >broken.json; echo '{}' >other.json; echo kept >index.html; ln -sf now.json link.json; "
      "sed 's/\"attnbench_schema_version\": [0-9]*/\"attnbench_schema_version\": 1/' now.json >old.json; "
      "cat *.json index.html | md5sum >sums",
      0, NULL);
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char command[256];
    snprintf(command, sizeof command, PROGRAM " report %s", cases[n].arguments);
    shell_expect(command, 2, cases[n].says);
    if (strncmp(shell_output, "attnbench: ", 11) != 0 || strchr(shell_output, '\n')[1] != '\0')
      fail_msg("%s: not one sentence:\n%s", command, shell_output);
    shell_expect("cat *.json index.html | md5sum | cmp - sums", 0, NULL);
  }
  shell_expect("ulimit -f 4; TMPDIR=/none " PROGRAM " report now.json", 2,
               "cannot write 'index.html': File too large");
  shell_expect("cat index.html; ls -A | grep -c '^index.html'", 0, "kept\n1\n");
}

static void without_gnuplot_the_page_says_so(void **state) {
  (void)state;
  shell_expect("mkdir -p tmp && TMPDIR=tmp PATH= " PROGRAM " report now.json", 0, "The page is");
  shell_expect("grep -o 'There are no pictures: gnuplot was not found[^<]*' index.html", 0, "gnuplot-nox");
  shell_expect("grep -c '<article' index.html", 0, "14\n");
  shell_expect("ls -A tmp | wc -l", 0, "0\n"); /* nothing is left of the attempt */
}

/* What a page of a plugin's run says repeats a point, wherever the plugin lies. */
static void the_command_of_a_point_repeats_it(void **state) {
  (void)state;
  shell_expect("mkdir -p \"it's here\" && cp " PLUGINS "planted.so \"it's here/a b.so\"", 0, NULL);
  shell_expect(
      "PATH=/usr/bin:/bin " PROGRAM
      " bench --plugin \"it's here/a b.so\" --variant edge --causal --heads 2 --head-dim 8"
      " --lengths 8,16 --seed 5 --threads 1 --benchmark_dry_run --quiet --scripts /none --out plugin",
      0, "edge/causal/B:1/H:2/Hkv:2/D:8/T:16/seed:5");
  shell_expect("sed -n 's|.*<code class=\"command\">\\(.*T:16/.*\\)</code>.*|\\1|p' plugin/index.html |"
               " sed \"s/&#39;/'/g; s/&quot;/\\\"/g\" >again",
               0, NULL);
  shell_expect(
      "test $(wc -l <again) = 1 && sh -c \"$(cat again) --benchmark_dry_run --quiet --benchmark_format=csv\"",
      0, "\"edge/causal/B:1/H:2/Hkv:2/D:8/T:16/seed:5\"");
  shell_expect("cat again", 0, " --threads 1");
  shell_expect("cat again", 0, " --seed 5");
}

/* Two points of three are timed when it is pressed. */
static void ctrl_c_keeps_what_was_measured_in_every_file(void **state) {
  (void)state;
  static const char *const isolated[] = {"true", "false"};
  for (size_t n = 0; n < 2; n++) {
    char command[640];
    /* What runs in the background of a shell does not hear it. */
    snprintf(
        command, sizeof command,
        "rm -rf ctrl-c && setsid -w sh -c '(until [ -d ctrl-c ]; do sleep 0.02; done; kill -INT 0; mkdir "
        "ctrl-c/pressed) & exec " PROGRAM " bench --plugin " PLUGINS
        "interrupts.so --variant interrupts --lengths 8,16,24"
        " --head-dim 8 --benchmark_dry_run --benchmark_enable_random_interleaving=false --quiet "
        "--scripts /none"
        " --isolate=%s --out interrupted%zu'",
        isolated[n], n);
    shell_expect(command, 130, "Interrupted: this is what was measured until then.");
    snprintf(command, sizeof command, "The page is interrupted%zu/index.html\n", n);
    assert_non_null(strstr(shell_output, command));
    snprintf(command, sizeof command,
             "cd interrupted%zu && grep -o 'run_name\": \"interrupts/full/[^\"]*T:[0-9]*' results.json | "
             "sort -u | wc -l",
             n);
    shell_expect(command, 0, "2\n");
    snprintf(command, sizeof command,
             "cd interrupted%zu && grep -q '\"interrupted\": true' results.json && test $(grep -c "
             "^.interrupts results.csv) = 2 && "
             "test $(grep -c '<article' index.html) = 2 && grep -q 'Interrupted: this is' index.html && tail "
             "-n 1 index.html",
             n);
    shell_expect(command, 0, "</html>");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_report_or_two_make_a_page),
      cmocka_unit_test(bad_input_is_one_sentence_and_costs_no_page),
      cmocka_unit_test(without_gnuplot_the_page_says_so),
      cmocka_unit_test(the_command_of_a_point_repeats_it),
      cmocka_unit_test(ctrl_c_keeps_what_was_measured_in_every_file),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
