/* The gate command: reads its arguments, runs the parts, decides. scripts/gate.sh builds both sides and
 * calls it; README says how to use it. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "gate.h"
#include "run/instructions.h"
#include "base/text.h"

enum { WHY_BYTES = 2048, PATH_BYTES = 4096 };

static int complain(const char *why) {
  fprintf(stderr, "attnbench gate: %s\n", why);
  return GATE_UNUSABLE;
}

/* ---- arguments ---- */

typedef struct argument {
  const char *name, *value, *help;
} argument;

static const argument arguments[] = {
    {"--head", "FILE.so", "a link of the head; repeatable"},
    {"--base", "FILE.so", "a link of the base; repeatable, as often as --head"},
    {"--no-base", "REASON", "why there is no base; then there is no verdict on times"},
    {"--base-name", "TEXT", "what people call the base"},
    {"--identical", "NAMES", "variants whose object code is the base's, with spaces between"},
    {"--accept", "TEXT", "what a commit message accepts, 'KIND VARIANT reason'; repeatable"},
    {"--baseline", "FILE", "the committed facts"},
    {"--write-facts", "FILE",
     "write the head's facts there and end; with --baseline, its facts of other compilers\n"
     "                             and instruction sets are kept"},
    {"--head-facts", "FILE", "what --write-facts wrote for the head"},
    {"--base-facts", "FILE", "and for the base"},
    {"--out", "FOLDER", "where the report and the pictures go"},
    {"--scripts", "FOLDER", "the folder of the gnuplot files; without it no pictures"},
    {"--facts", NULL, "only the deterministic part"},
    {"--times", NULL, "only the timing part"},
    {"--benchmark", "TEXT", "only benchmarks with this in their names, confirmed straight away"},
    {"--budget", "SECONDS", "for times (120)"},
    {"--smallest", "PERCENT", "the smallest slowdown that is called (2)"},
    {"--shadow", NULL, "times are reported and fail nothing"},
    {"--cases", "N", "random problems of the verification (5)"},
    {"--seed", "N", "of the order of everything (the time)"},
};

static int print_help(void) {
  puts("attnbench gate holds a head to a base; scripts/gate.sh, or `make gate`, builds both and calls it.\n");
  for (size_t n = 0; n < sizeof arguments / sizeof *arguments; n++) {
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", arguments[n].name, arguments[n].value ? " " : "",
             arguments[n].value ? arguments[n].value : "");
    printf("  %-26s %s\n", left, arguments[n].help);
  }
  puts("\nStatus: 0 nothing got worse, 1 something did, 2 it could not measure, 3 the controls moved.");
  return GATE_PASS;
}

typedef struct request {
  gate_options options;
  const char *write_facts;
  bool help;
} request;

static bool wrong_value(const char *name, const char *takes, const char *value, char *why, size_t why_size) {
  snprintf(why, why_size, "%s takes %s, not '%s'", name, takes, value);
  return false;
}

static bool add_link(const char **links, size_t *count, const char *value, char *why, size_t why_size) {
  if (*count == GATE_MAX_LINKS) {
    snprintf(why, why_size, "there can be %d links", GATE_MAX_LINKS);
    return false;
  }
  links[(*count)++] = value;
  return true;
}

static bool take_number(gate_options *options, const char *name, const char *value, char *why,
                        size_t why_size) {
  const char *end = "";
  if (strcmp(name, "--seed") == 0)
    return text_seed(value, &options->seed) || wrong_value(name, "a number", value, why, why_size);
  if (strcmp(name, "--cases") == 0)
    return (text_integer(value, 0, 1000000, &end, &options->cases) && !*end) ||
           wrong_value(name, "a number", value, why, why_size);
  if (strcmp(name, "--budget") == 0)
    return (text_seconds(value, &options->budget) && options->budget >= 1) ||
           wrong_value(name, "seconds, 1 or more", value, why, why_size);
  if (!text_seconds(value, &options->smallest) || options->smallest <= 0 || options->smallest > 100)
    return wrong_value(name, "percent, above 0 and up to 100", value, why, why_size);
  options->smallest /= 100;
  return true;
}

static bool take(request *request, const char *name, const char *value, char *why, size_t why_size) {
  gate_options *o = &request->options;
  if (strcmp(name, "--head") == 0) return add_link(o->heads, &o->head_count, value, why, why_size);
  if (strcmp(name, "--base") == 0) return add_link(o->bases, &o->base_count, value, why, why_size);
  if (strcmp(name, "--accept") == 0) {
    if (o->accepted_count < GATE_MAX_ACCEPTED) o->accepted[o->accepted_count++] = value;
    return true;
  }
  const struct {
    const char *name, **place;
  } texts[] = {{"--no-base", &o->why_no_base},
               {"--base-name", &o->base_name},
               {"--identical", &o->identical},
               {"--baseline", &o->baseline},
               {"--out", &o->out},
               {"--scripts", &o->scripts},
               {"--benchmark", &o->only},
               {"--write-facts", &request->write_facts},
               {"--head-facts", &o->head_facts},
               {"--base-facts", &o->base_facts}};
  for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
    if (strcmp(name, texts[n].name) == 0) {
      *texts[n].place = value;
      return true;
    }
  return take_number(o, name, value, why, why_size);
}

static bool say_unknown(const char *word, char *why, size_t why_size) {
  const char *names[sizeof arguments / sizeof *arguments];
  for (size_t n = 0; n < sizeof arguments / sizeof *arguments; n++) names[n] = arguments[n].name;
  const char *nearest = text_nearest(word, names, sizeof names / sizeof *names);
  snprintf(why, why_size, "there is no option %s; %s%s", word,
           nearest ? "the nearest is " : "attnbench gate --help lists them all", nearest ? nearest : "");
  return false;
}

static bool parse(request *request, int argc, char **argv, char *why, size_t why_size) {
  gate_options *options = &request->options;
  bool only_facts = false, only_times = false;
  for (int i = 1; i < argc; i++) {
    const argument *known = NULL;
    if (strcmp(argv[i], "--help") == 0) request->help = true;
    if (request->help) return true;
    for (size_t n = 0; n < sizeof arguments / sizeof *arguments; n++)
      if (strcmp(argv[i], arguments[n].name) == 0) known = &arguments[n];
    if (!known) return say_unknown(argv[i], why, why_size);
    if (strcmp(argv[i], "--facts") == 0) {
      only_facts = true;
    } else if (strcmp(argv[i], "--times") == 0) {
      only_times = true;
    } else if (strcmp(argv[i], "--shadow") == 0) {
      options->shadow = true;
    } else if (i + 1 == argc) {
      snprintf(why, why_size, "%s needs a value: %s %s", known->name, known->name, known->value);
      return false;
    } else if (!take(request, known->name, argv[++i], why, why_size)) {
      return false;
    }
  }
  options->facts = !only_times || only_facts;
  options->times = !only_facts || only_times;
  if (options->head_count == 0)
    snprintf(why, why_size, "needs a head: --head FILE.so; scripts/gate.sh builds one");
  else if (!request->write_facts && options->base_count == 0 && !options->why_no_base)
    snprintf(why, why_size, "needs a base: --base FILE.so, or --no-base and the reason");
  else if (!request->write_facts && options->facts && !options->head_facts)
    snprintf(why, why_size,
             "needs the head's facts: --head-facts FILE, from --head FILE.so --write-facts FILE");
  else
    return true;
  return false;
}

/* ---- the parts ---- */

/* In a process of its own: a kernel that crashes must not take the gate with it. */
static bool verify(const gate_options *options, gate_findings *findings, FILE *out, char *why,
                   size_t why_size) {
  char count[24], *said;
  snprintf(count, sizeof count, "%lld", (long long)options->cases);
  char *argv[] = {(char *)options->program, "verify", "--count", count, NULL};
  fprintf(stderr, "gate: verifying\n");
  const int status = child_run(argv, NULL, &said, why, why_size);
  if (status < 0) return false;
  bool good = true;
  if (status != 0) fputs(said, out);
  fprintf(out, "  %-13s%s\n", "correctness", child_last_line(said));
  if (status == 2)
    snprintf(why, why_size, "the verification could not run: %s", child_last_line(said)), good = false;
  else if (status != 0)
    good = gate_find(findings, options, GATE_WRONG, "all", "attnbench verify",
                     "a variant gives wrong results; the lines above say which and how to repeat it");
  free(said);
  return good;
}

static bool read_facts(json_t **facts, const char *path, char *why, size_t why_size) {
  *facts = path ? gate_facts_read(path, why, why_size) : NULL;
  return *facts || !path;
}

static bool compare_facts(const gate_options *options, gate_findings *findings, FILE *out, char *why,
                          size_t why_size) {
  json_t *head = NULL, *base = NULL, *committed = NULL;
  const char *missing = instructions_unavailable();
  bool good = read_facts(&head, options->head_facts, why, why_size) &&
              read_facts(&base, options->base_facts, why, why_size) &&
              read_facts(&committed, options->baseline, why, why_size);
  if (good && missing) fprintf(out, "  left out     instructions were not counted: %s\n", missing);
  if (good && !base && !committed)
    fprintf(out, "  left out     there is no base and no committed baseline to compare with\n");
  if (good && !gate_compare(head, base, committed, options, findings, out)) {
    snprintf(why, why_size, "out of memory");
    good = false;
  }
  json_decref(head);
  json_decref(base);
  json_decref(committed);
  return good;
}

/* ---- all of it ---- */

/* Before anything is measured, so that minutes are not lost to a folder that cannot be made. */
static bool make_folder(const char *path, char *why, size_t why_size) {
  if (!path || mkdir(path, 0777) == 0 || errno == EEXIST) return true;
  snprintf(why, why_size, "the folder %s cannot be made: %s", path, strerror(errno));
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
  const bool written = report && gate_facts_write(report, path, why, why_size);
  json_decref(report);
  if (times->measured && options->scripts && !gate_forest_draw(times, options, why_not, sizeof why_not))
    fprintf(stderr, "attnbench gate: no plot: %s\n", why_not);
  return written;
}

/* A base of another interface is one that cannot be measured, and no fault of the head's. */
static bool find_base(const gate_options *options, char *why, size_t why_size) {
  variant_list base = {0};
  if (options->base_count == 0) {
    snprintf(why, why_size, "%s", options->why_no_base);
    return false;
  }
  const bool fits = variant_list_add(&base, options->bases[0], why, why_size);
  variant_list_destroy(&base);
  return fits;
}

/* False, with the reason in words, when nothing can be said. */
static bool measure(const gate_options *options, gate_findings *findings, gate_times *times, char *why,
                    size_t why_size) {
  if (options->facts) printf("deterministic part\n");
  if (options->facts && (!verify(options, findings, stdout, why, why_size) ||
                         !compare_facts(options, findings, stdout, why, why_size)))
    return false;
  if (!options->times) return true;
  printf("timing part\n");
  fflush(stdout);
  if (find_base(options, why, why_size)) {
    if (!gate_time(times, options, findings, why, why_size)) return false;
    if (!times->measured) printf("  left out     every kernel's object code is the base's\n");
    return true;
  }
  if (!options->facts) return false;
  printf("  no verdict on times: %s\n", why);
  return true;
}

/* What is exact and got worse has got worse, whatever else could not be measured or written. */
static int run(const gate_options *options, gate_findings *findings, gate_times *times) {
  char why[WHY_BYTES];
  if (!make_folder(options->out, why, sizeof why)) return complain(why);
  bool good = measure(options, findings, times, why, sizeof why);
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

static int write_facts(const request *request) {
  char why[WHY_BYTES];
  json_t *facts = gate_facts(request->options.program, request->options.heads[0], why, sizeof why);
  if (facts && request->options.baseline) {
    json_t *old = gate_facts_read(request->options.baseline, why, sizeof why);
    if (!old) fprintf(stderr, "attnbench gate: what it holds of other compilers is not kept: %s\n", why);
    gate_facts_keep(facts, old);
    json_decref(old);
  }
  const bool written = facts && gate_facts_write(facts, request->write_facts, why, sizeof why);
  json_decref(facts);
  return written ? GATE_PASS : complain(why);
}

int gate_main(int argc, char **argv) {
  char why[WHY_BYTES], program[PATH_BYTES];
  request request = {.options = {.base_name = "the base",
                                 .budget = 120,
                                 .smallest = 0.02,
                                 .cases = 5,
                                 .seed = (uint64_t)time(NULL)}};
  if (!parse(&request, argc, argv, why, sizeof why)) return complain(why);
  if (request.help) return print_help();
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return complain("the path of the program is not known");
  program[length] = '\0';
  request.options.program = program;
  /* Threads that wait must not spin while others want the processor; read when a process starts. */
  setenv("OMP_WAIT_POLICY", "passive", 1);
  if (request.write_facts) return write_facts(&request);
  gate_findings findings = {0};
  gate_times *times = calloc(1, sizeof *times);
  const int status = times ? run(&request.options, &findings, times) : complain("out of memory");
  gate_findings_destroy(&findings);
  free(times);
  return status;
}
