/* The gate command: runs the parts, decides. scripts/gate.sh builds both sides and calls it; README says
 * how to use it. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/folder.h"
#include "base/parts.h"
#include "base/replace.h"
#include "gate.h"
#include "run/instructions.h"

enum { WHY_BYTES = 2048, PATH_BYTES = 4096 };

static int complain(const char *why) {
  fprintf(stderr, "attnbench gate: %s\n", why);
  return GATE_UNUSABLE;
}

/* ---- the parts ---- */

static bool read_facts(json_t **facts, const char *path, char *why, size_t why_size) {
  *facts = path ? gate_facts_read(path, why, why_size) : NULL;
  return *facts || !path;
}

/* What both have. */
static bool compare_promises(const gate_options *options, gate_findings *findings, FILE *out, char *why,
                             size_t why_size) {
  variant_list base = {0}, head = {0};
  const size_t before = findings->count;
  bool good = gate_load(&base, options->bases[0], options, why, why_size) &&
              gate_load(&head, options->heads[0], options, why, why_size);
  if (good && !gate_find_less(&base, &head, options, findings)) {
    snprintf(why, why_size, "out of memory");
    good = false;
  }
  if (good)
    fprintf(out, "  %-13s%s\n", "variants",
            findings->count == before ? "none takes or promises less than in the base"
                                      : "not all take or promise what they did");
  variant_list_destroy(&base);
  variant_list_destroy(&head);
  return good;
}

static bool compare_facts(const gate_options *options, gate_findings *findings, FILE *out, char *why,
                          size_t why_size) {
  json_t *head = NULL, *base = NULL, *committed = NULL;
  const char *missing = instructions_unavailable();
  bool good = read_facts(&head, options->head_facts, why, why_size) &&
              read_facts(&base, options->base_facts, why, why_size) &&
              read_facts(&committed, options->baseline, why, why_size);
  if (good && missing) fprintf(out, "  left out     instructions were not counted: %s\n", missing);
  if (good && !base) fprintf(out, "  no base      %s\n", gate_why_no_base_facts(options));
  if (good && !base && !committed) {
    snprintf(why, why_size, "there is no base and no committed baseline to compare with");
    good = false;
  }
  if (good && base && head) gate_facts_share(base, head, options);
  if (good && !gate_compare(head, base, committed, options, findings, out)) {
    snprintf(why, why_size, "out of memory");
    good = false;
  }
  json_decref(head);
  json_decref(base);
  json_decref(committed);
  if (good && options->why_no_code) fprintf(out, "  left out     code for GPUs: %s\n", options->why_no_code);
  if (good && options->head_code && options->base_code)
    good = gate_compare_code(options, findings, out, why, why_size);
  if (good && options->head_team && options->base_team)
    good = gate_compare_team(options, findings, out, why, why_size);
  return good;
}

/* ---- all of it ---- */

static bool write_comment(const gate_findings *findings, const gate_times *times, const gate_options *options,
                          gate_status status, char *why, size_t why_size) {
  char path[PATH_BYTES], beside[PATH_BYTES + 8];
  snprintf(path, sizeof path, "%s/comment.md", options->out);
  snprintf(beside, sizeof beside, "%s.new", path);
  FILE *file = fopen(beside, "w");
  if (file) gate_comment(findings, times, options, status, file);
  const bool good = file && !ferror(file);
  if (file && fclose(file) == 0 && good && replace_rename(beside, path) == 0) return true;
  snprintf(why, why_size, "%.1024s cannot be written: %s", path, strerror(errno));
  remove(beside);
  return false;
}

/* Without gnuplot there are no pictures, and no harm is done. */
static bool write_files(const gate_findings *findings, const gate_times *times, const gate_options *options,
                        gate_status status, char *why, size_t why_size) {
  char path[PATH_BYTES], why_not[WHY_BYTES];
  if (!options->out) return true;
  snprintf(path, sizeof path, "%s/gate.json", options->out);
  json_t *report = gate_report_json(findings, times, options, status);
  if (!report) snprintf(why, why_size, "no memory for the report");
  const bool written = report && gate_facts_write(report, path, why, why_size) &&
                       write_comment(findings, times, options, status, why, why_size);
  json_decref(report);
  if (times->measured && options->scripts && !gate_forest_draw(times, options, why_not, sizeof why_not))
    fprintf(stderr, "attnbench gate: no plot: %s\n", why_not);
  return written;
}

/* A base of another interface is one that cannot be measured, and no fault of the head's: *no_base then says so, and
 * is "" else. False, with the reason in words, when the head cannot be loaded. */
static bool compare_variants(const gate_options *options, gate_findings *findings, char *no_base,
                             size_t no_base_size, char *why, size_t why_size) {
  variant_list base = {0}, head = {0};
  no_base[0] = '\0';
  if (options->base_count == 0)
    snprintf(no_base, no_base_size, "%s", options->why_no_base);
  else if (!gate_load(&base, options->bases[0], options, why, why_size))
    snprintf(no_base, no_base_size, "%s", why);
  bool good = gate_load(&head, options->heads[0], options, why, why_size) &&
              gate_check_asked(&base, &head, options, why, why_size);
  if (good && !no_base[0] && !gate_find_missing(&base, &head, options, findings)) {
    snprintf(why, why_size, "out of memory");
    good = false;
  }
  variant_list_destroy(&base);
  variant_list_destroy(&head);
  return good;
}

static void say_what_is_not_timed(const gate_set *set) {
  if (set->base_only + set->head_only == 0)
    printf("  left out     every kernel's object code is the base's\n");
  else
    printf("  left out     the object code of each kernel that both have is the base's; "
           "%zu more are only in the base, %zu only in the head\n",
           set->base_only, set->head_only);
}

/* A head that is wrong is looked at no further. */
static bool is_wrong(const gate_findings *findings) {
  bool is = false;
  for (size_t n = 0; n < findings->count; n++) is = is || findings->items[n].kind == GATE_WRONG;
  return is;
}

/* False, with the reason in words, when nothing can be said. */
static bool measure(gate_options *options, gate_prepared *prepared, gate_findings *findings,
                    gate_times *times, char *why, size_t why_size) {
  if (options->facts) printf("deterministic part\n");
  if (options->facts && !gate_verify(options, findings, stdout, why, why_size)) return false;
  if (is_wrong(findings)) {
    printf("  left out     everything else: a kernel that is wrong can be as fast as it likes\n");
    return true;
  }
  if (!gate_prepare(prepared, options, why, why_size)) return false;
  if (options->facts && !options->why_no_base && !compare_promises(options, findings, stdout, why, why_size))
    return false;
  if (options->facts && !compare_facts(options, findings, stdout, why, why_size)) return false;
  if (!options->times) return true;
  printf("timing part\n");
  fflush(stdout);
  if (!options->why_no_base) {
    if (!gate_time(times, options, findings, why, why_size)) return false;
    if (!times->measured) say_what_is_not_timed(&times->set);
    return true;
  }
  snprintf(why, why_size, "%s", options->why_no_base);
  if (!options->facts) return false;
  printf("  no verdict on times: %s\n", why);
  return true;
}

/* What is exact and got worse has got worse, whatever else could not be measured or written. */
static int run(const gate_options *asked, gate_prepared *prepared, gate_findings *findings,
               gate_times *times) {
  char why[WHY_BYTES], no_base[WHY_BYTES];
  gate_options found = *asked;
  const gate_options *options = &found;
  /* Before anything is measured, so that minutes are not lost to a folder that cannot be made. */
  if (options->out && !folder_make(options->out, why, sizeof why)) return complain(why);
  gate_say_unknown_acceptances(options, stderr);
  if (!compare_variants(options, findings, no_base, sizeof no_base, why, sizeof why)) return complain(why);
  found.why_no_base = no_base[0] ? no_base : NULL;
  bool good = measure(&found, prepared, findings, times, why, sizeof why);
  if (good && !gate_find_slower(times, options, findings)) {
    snprintf(why, sizeof why, "out of memory");
    good = false;
  }
  gate_excuse(times, findings);
  const gate_status decided = gate_decide(findings, times, options->shadow);
  const gate_status status = good || decided == GATE_REGRESSION ? decided : GATE_UNUSABLE;
  if (times->measured) gate_forest_text(times, stdout);
  gate_report(findings, times, options, status, stdout);
  if (fflush(stdout) != 0 && good) {
    snprintf(why, sizeof why, "the standard output cannot be written");
    good = false;
  }
  if (!good) complain(why);
  if (!write_files(findings, times, options, status, why, sizeof why)) {
    complain(why);
    good = false;
  }
  if (!good && status != GATE_REGRESSION) return GATE_UNUSABLE;
  return status;
}

static int write_facts(const gate_options *options) {
  char why[WHY_BYTES];
  if (!gate_facts_room(options->write_facts, why, sizeof why)) return complain(why);
  json_t *facts = gate_facts(options, why, sizeof why);
  if (facts && options->baseline) {
    json_t *old = gate_facts_read(options->baseline, why, sizeof why);
    if (!old) fprintf(stderr, "attnbench gate: what it holds of other compilers is not kept: %s\n", why);
    gate_facts_keep(facts, old);
    json_decref(old);
  }
  const bool written = facts && gate_facts_write(facts, options->write_facts, why, sizeof why);
  json_decref(facts);
  return written ? GATE_PASS : complain(why);
}

typedef struct job {
  const gate_options *options;
  gate_prepared prepared;
} job;

static int run_all(void *context) {
  job *job = context;
  /* What a count puts away lies in the folder, and goes with it whatever ends this process. */
  if (job->prepared.folder[0]) setenv("TMPDIR", job->prepared.folder, 1);
  if (job->options->write_facts) return write_facts(job->options);
  gate_findings findings = {0};
  gate_times *times = calloc(1, sizeof *times);
  const int status = times ? run(job->options, &job->prepared, &findings, times) : complain("out of memory");
  free(job->prepared.identical);
  gate_findings_destroy(&findings);
  free(times);
  return status;
}

/* A terminal sends SIGINT to both processes; what others send comes to this one alone. */
static const int passed_on[] = {SIGTERM, SIGHUP};
enum { PASSED_ON = sizeof passed_on / sizeof *passed_on };
static volatile sig_atomic_t measuring, asked_by; /* the child; the signal that came before there was one */

static void pass_on(int signal) {
  asked_by = signal;
  if (measuring > 0) kill(measuring, signal);
}

/* With what is ignored, as under nohup, ignored still. */
static void set_handlers(void (*handler)(int)) {
  for (int n = 0; n < PASSED_ON; n++)
    if (signal(passed_on[n], handler) == SIG_IGN) signal(passed_on[n], SIG_IGN);
}

/* Variants are loaded, and asked what they take, in a child: whatever they do to it, a verdict is only what it has said
 * when it ends. */
static int run_apart(int (*command)(void *context), void *context) {
  int *said = mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), status = 0;
  if (said == MAP_FAILED) return complain("out of memory");
  *said = -1;
  fflush(NULL);
  set_handlers(pass_on);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    set_handlers(SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(GATE_UNUSABLE);
    const int verdict = command(context);
    fflush(NULL);
    *said = verdict;
    _exit(verdict);
  }
  measuring = child;
  if (child > 0 && asked_by) kill(child, asked_by);
  /* Ctrl-C ends the child; what it leaves is taken away here. */
  void (*const before)(int) = signal(SIGINT, SIG_IGN);
  for (pid_t ended = 0; child > 0 && ended != child;) {
    ended = waitpid(child, &status, 0);
    if (ended < 0 && errno != EINTR) break;
  }
  measuring = 0;
  set_handlers(SIG_DFL);
  signal(SIGINT, before);
  if (child > 0 && *said >= 0) return *said;
  const int died_of = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (child > 0 && died_of && (died_of == SIGINT || died_of == asked_by)) return 128 + died_of;
  if (child < 0) return complain("a process cannot be started");
  return complain(WIFSIGNALED(status)
                      ? "a kernel crashed as it was loaded, or asked what it takes"
                      : "a kernel ended the process as it was loaded, or asked what it takes");
}

int gate_run(const gate_options *asked) {
  char program[PARTS_PATH_BYTES];
  gate_options options = *asked;
  if (!parts_program(program)) return complain("the path of the program is not known");
  options.program = program;
  /* Threads that wait must not spin while others want the processor; read when a process starts. */
  setenv("OMP_WAIT_POLICY", "passive", 1);
  job job = {.options = &options};
  gate_make_folder(&job.prepared);
  const int status = run_apart(run_all, &job);
  gate_clean_up(&job.prepared);
  return status;
}
