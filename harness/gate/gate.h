/* The gate: is the head worse than the base? Both come as shared objects of variants, built alike and each
 * linked several times with its objects in another order.
 *
 * Who builds both (scripts/gate.sh, or anybody with two shared objects) may hand over what is known of them already; what is
 * not, the gate finds out itself (prepare.c). The head is verified before anything else, and nothing else is looked at
 * where it is wrong.
 *
 * Two parts. Facts are exact and need no repetition: bytes of workspace, instructions, growth, error
 * (facts.c measures, compare.c decides). Times are compared in pairs within one process and
 * judged over many processes (measure.c measures, timing.c starts it, judge.c decides). */
#ifndef ATTN_HARNESS_GATE_H
#define ATTN_HARNESS_GATE_H

#include <jansson.h>
#include <stdio.h>

#include "run/plugins.h"
#include "base/statistics.h"
#include "problem/workload.h"

enum {
  GATE_MAX_BENCHMARKS = 128,
  GATE_MAX_SCREENS = 32,
  GATE_CONFIRMATIONS = 16, /* processes: 2^-16 is below 0.01 / 650, so that Holm leaves room for them all */
  GATE_MAX_PROBLEMS = 16,  /* that are asked for by name */
  GATE_NAME_BYTES = 256,
  GATE_WORD_BYTES = 64,
  GATE_FOLDER_BYTES = 1024,
  GATE_FILE_BYTES = GATE_FOLDER_BYTES + 32
};

/* The instruction set, in facts, of what has the same code under each. */
#define GATE_ANY_ISA "any"

typedef enum gate_status {
  GATE_PASS = 0,
  GATE_REGRESSION = 1,
  GATE_UNUSABLE = 2,
  GATE_CONTAMINATED = 3
} gate_status;

typedef struct gate_options {
  const char *program; /* this program, which measures in processes of its own; gate_run finds it */
  const char *const *bases, *const *heads; /* the links; no base: no timing verdict */
  size_t base_count, head_count;           /* the same where there are bases */
  const char *why_no_base;                 /* in words; NULL where there is one */
  const char *base_name;                   /* as people know it, for the report and for commands */
  const char
      *identical; /* variants whose object code is the base's, separated by spaces; NULL: to be found out */
  const char
      *itself; /* another copy of the only link of the base, for the controls; NULL: there are more links */
  const char *const *variants; /* only these; none: all */
  size_t variant_count;
  const char *const *problems; /* pose these; none: what suits the variants */
  size_t problem_count;
  const char *again; /* the command that runs this again, with % where options go; NULL: this program's own */
  const char *const *accepted; /* "KIND VARIANT reason" */
  size_t accepted_count;
  const char *write_facts;             /* only write the head's facts to this file; NULL: hold head to base */
  const char *head_facts, *base_facts; /* files, or NULL */
  const char *head_code, *base_code;   /* of kernels for GPUs: files, or NULL */
  const char *head_team, *base_team;   /* shared objects of variants of a team, or NULL */
  const char *why_no_code;             /* in words; NULL: there is, or nobody speaks of it */
  const char *baseline;                /* the committed file, or NULL */
  const char *out;                     /* a folder */
  const char *scripts;                 /* the folder of the gnuplot files, or NULL: no pictures */
  const char *only;  /* benchmarks whose names have this part are confirmed straight away; NULL: all */
  bool shadow;       /* times are reported and fail nothing */
  bool facts, times; /* the parts to run */
  double budget;     /* seconds for times */
  double smallest;   /* the smallest effect that is called, as a share: 0.02 */
  int64_t cases;     /* random problems of the verification */
  int64_t every;     /* of so many of its problems one is posed */
  uint64_t seed;
} gate_options;

/* ---- what got worse ---- */

typedef enum gate_kind {
  GATE_WRONG,
  GATE_VARIANTS, /* one of the base is missing, or takes or promises less than it did */
  GATE_WORKSPACE,
  GATE_INSTRUCTIONS,
  GATE_GROWTH,
  GATE_DEVICE, /* more registers, instructions, shared memory or spills of a kernel for GPUs */
  GATE_SENT,   /* more bytes from a rank of a team */
  GATE_ERROR,
  GATE_TIME
} gate_kind;

typedef struct gate_finding {
  gate_kind kind;
  char variant[GATE_WORD_BYTES], name[GATE_NAME_BYTES];
  char isa[GATE_WORD_BYTES]; /* of instructions, as in a benchmark */
  char text[768];            /* what got worse, in words, with the numbers or the command that shows it */
  bool accepted;             /* by a trailer of a commit message */
  bool waived;               /* instructions: the timing part shows that the kernel got faster */
} gate_finding;

typedef struct gate_findings {
  gate_finding *items;
  size_t count, capacity;
} gate_findings;

/* The word for a kind: in the report, and in a trailer that accepts it. */
const char *gate_kind_name(gate_kind kind);

/* A line for each acceptance that is of no kind: it would accept nothing, in silence. */
void gate_say_unknown_acceptances(const gate_options *options, FILE *out);

/* Adds one, marked when a trailer accepts it; false when memory is short. */
__attribute__((format(printf, 6, 7))) bool gate_find(gate_findings *findings, const gate_options *options,
                                                     gate_kind kind, const char *variant, const char *name,
                                                     const char *format, ...);
void gate_findings_destroy(gate_findings *findings);

/* Finds the variants of the base that the head lacks; one that has another name is lacking too. */
bool gate_find_missing(const variant_list *base, const variant_list *head, const gate_options *options,
                       gate_findings *findings);

/* Finds what a variant of the head does not take or promise any more: what is not posed to both is not compared, and what is not
 * promised is not verified. It is asked what it takes. */
bool gate_find_less(const variant_list *base, const variant_list *head, const gate_options *options,
                    gate_findings *findings);

/* The variants of a shared object, those that are wanted of them. Into an empty list; false, with the reason in words. */
bool gate_load(variant_list *list, const char *path, const gate_options *options, char *why, size_t why_size);

/* False, with the reason in words, where a variant is asked for by a name that neither has, or a problem that no variant
 * takes on both sides. */
bool gate_check_asked(const variant_list *base, const variant_list *head, const gate_options *options,
                      char *why, size_t why_size);

/* Whether two shared objects are the same once they are loaded: debugging information and the note of the build apart. False
 * where they cannot be read, too. */
bool gate_same_code(const char *path, const char *other);

/* ---- verification ---- */

/* Holds the head to the reference, in processes of its own; words for the report go to out. False, with the reason in words,
 * when that cannot be done; a wrong head is a finding. */
bool gate_verify(const gate_options *options, gate_findings *findings, FILE *out, char *why, size_t why_size);

/* ---- what nobody has prepared ---- */

/* Whether the object code of the variant, which is all of the name or what stands before its slash, is said to be the base's. */
bool gate_is_identical(const gate_options *options, const char *name);

typedef struct gate_prepared {
  char folder[GATE_FOLDER_BYTES]; /* of its own; "": it cannot be made */
  char head_facts[GATE_FILE_BYTES], base_facts[GATE_FILE_BYTES], itself[GATE_FILE_BYTES]; /* files in it */
  char *identical;
} gate_prepared;

/* Fills in what the options lack: whose code is the same, the facts of both, another self of the base. A base that
 * cannot be counted is told on stderr. False, with the reason in words. The folder is of the process that outlives what
 * kernels do to this one: it makes it before, and cleans up afterwards. */
void gate_make_folder(gate_prepared *made);
bool gate_prepare(gate_prepared *made, gate_options *options, char *why, size_t why_size);
void gate_clean_up(const gate_prepared *made);

/* ---- problems ---- */

typedef struct gate_pair {
  const attn_variant *variant, *other; /* of the other side, where there is one: what is posed suits both */
} gate_pair;

bool gate_takes(const gate_pair *pair, const workload *w);

/* What is posed where the usual problems are not: those that are asked for, or else, for a variant that takes none of the
 * usual ones, the nearest that it takes. How many; 0: it takes none of them. */
size_t gate_other_problems(const gate_pair *pair, const gate_options *options,
                           workload problems[GATE_MAX_PROBLEMS]);

/* The same at half the length; false, and nothing is changed, where there is no such problem or it is not taken. */
bool gate_halve(const gate_pair *pair, workload *w);

/* ---- facts ---- */

/* What is exact in the first head, and the same on other machines: a JSON object of the objects
 *   growth            {"fused": {"time": 2, "workspace": 0}}                      as declared
 *   workspace_bytes   {"avx2": {"fused/full/.../threads:1": 12345}}
 *   error_share       {"avx2": {"fused/full/...": 0.04}}                          of the bound
 *   instructions      {"gcc-12/avx2": {"fused/full/...": 123456}}                 without valgrind: none
 * NULL, with the reason in words. Where there is a base, problems are such that both take them. Variants whose code is
 * identical are left out. */
json_t *gate_facts(const gate_options *options, char *why, size_t why_size);

/* A base has the head's facts of the variants whose code is the same. */
void gate_facts_share(json_t *base, json_t *head, const gate_options *options);

/* Takes over from older facts what these lack: other compilers and instruction sets. */
void gate_facts_keep(json_t *facts, const json_t *older);

/* Facts from and to a file; written beside, then renamed. */
json_t *gate_facts_read(const char *path, char *why, size_t why_size);
bool gate_facts_room(const char *path, char *why,
                     size_t why_size); /* whether a file of that name could be written */
bool gate_facts_write(const json_t *facts, const char *path, char *why, size_t why_size);

/* Holds the head's facts to the base's and to the committed ones; either may be NULL. Notes go to out. */
bool gate_compare(const json_t *head, const json_t *base, const json_t *committed,
                  const gate_options *options, gate_findings *findings, FILE *out);

/* Holds kernels for GPUs to the base's by what the compiler made of them, as scripts/cuda_code.sh lists it. False, with
 * the reason in words, when a list cannot be read. */
bool gate_compare_code(const gate_options *options, gate_findings *findings, FILE *out, char *why,
                       size_t why_size);

/* Holds what each rank of a team sends, and its workspace, to the base's. False, with the reason in words, when an
 * object cannot be loaded. */
bool gate_compare_team(const gate_options *options, gate_findings *findings, FILE *out, char *why,
                       size_t why_size);

/* ---- times ---- */

typedef enum gate_verdict {
  GATE_SCREENED, /* nothing suspicious */
  GATE_UNCONFIRMED,
  GATE_SLOWER,
  GATE_FASTER
} gate_verdict;

typedef struct gate_benchmark {
  char name[GATE_NAME_BYTES]; /* fused/causal/B:1/H:4/Hkv:4/D:64/T:256/threads:1 */
  char variant[GATE_WORD_BYTES], problem[GATE_NAME_BYTES], isa[GATE_WORD_BYTES]; /* isa "-": the fastest */
  int threads;
  int64_t iterations;  /* of one sample, the same in both arms and all processes */
  double seconds;      /* of one iteration */
  bool against_itself; /* the base against another link of the base */
  bool identical;      /* the head's object code is the base's */

  /* Medians of log(head / base), one for each process. */
  double screens[GATE_MAX_SCREENS], confirmations[GATE_CONFIRMATIONS];
  size_t screen_count, confirmation_count;
  double screen; /* their centre */
  bool suspect;
  bool is_excuse;  /* it is confirmed in any case: less time excuses more instructions */
  interval change; /* of the log ratio: of the confirmations where there are some, else of the screens */
  char wrong[256]; /* in the head's outputs while it was timed, in words; "": nothing */
  double p;        /* that it got slower by more than half the smallest effect, by chance; corrected */
  gate_verdict verdict;
} gate_benchmark;

typedef struct gate_set {
  gate_benchmark benchmarks[GATE_MAX_BENCHMARKS];
  size_t count;
  size_t left_out, left_out_changed; /* for which there was no room; and of these, with other object code */
  size_t common;                     /* variants that both have */
  size_t base_only, head_only;       /* variants that have nothing to be compared with */
} gate_set;

/* What a quad takes (four samples, and one run of each side before them), and what it may take on average
 * over the rounds. */
#define GATE_QUAD_SECONDS 0.04
static inline double gate_quad_seconds(int64_t iterations, double seconds) {
  return seconds * (4 * (double)iterations + 2);
}

/* True for benchmarks that nothing can have made slower. */
static inline bool gate_is_control(const gate_benchmark *benchmark) {
  return benchmark->against_itself || benchmark->identical;
}

/* The default benchmarks of the variants that both have, those with other object code first, and three of the base
 * against itself. */
void gate_set_fill(gate_set *set, const variant_list *base, const variant_list *head,
                   const gate_options *options);

/* Adds the benchmarks of a variant once more on another instruction set, to be confirmed straight away; "-": those that there
 * are. */
void gate_set_add_isa(gate_set *set, const char *variant, const char *isa);

typedef struct gate_times {
  gate_set set;
  bool measured;
  bool contaminated;                    /* a control moved */
  size_t screens, confirmations, links; /* processes and links that were used */
  double threshold;                     /* that made a suspect, as a log ratio */
  double seconds;
  size_t left_out; /* suspects for which there was no time */
} gate_times;

/* Screens the set and confirms the suspects, and with them the variants whose instructions the findings
 * say to have grown. Where every kernel's object code is the base's it leaves times->measured false: nothing can have
 * got slower. False, with the reason in words, when it cannot measure. */
bool gate_time(gate_times *times, const gate_options *options, const gate_findings *findings, char *why,
               size_t why_size);

/* From the screens of a set: the change and screen of each benchmark, what is above the threshold a suspect. */
void gate_screen(gate_times *times, double smallest);

/* Who is confirmed first where time is short: controls, then what every screen found slow, because on a busy
 * machine the largest estimate is often that of the widest interval. Where time may excuse instructions, what
 * every screen found fast is as good. */
double gate_urgency(const gate_benchmark *benchmark);

/* From the confirmations: change, p and verdict of each benchmark that has them, and whether controls moved.
 * False without memory. */
bool gate_judge(gate_times *times, double smallest);

/* Adds what got slower, and what was wrong while it was timed; false without memory. */
bool gate_find_slower(const gate_times *times, const gate_options *options, gate_findings *findings);

/* Waives more instructions in less time: where some benchmark of the variant on that instruction set is
 * faster, and none slower. */
void gate_excuse(const gate_times *times, gate_findings *findings);

/* What is certain decides first; times fail nothing in shadow mode, and say nothing when controls moved. */
gate_status gate_decide(const gate_findings *findings, const gate_times *times, bool shadow);

/* What one process measures. Six words say what a benchmark is: VARIANT PROBLEM THREADS ISA ITERATIONS
 * AGAINST_ITSELF, where an ISA of - is the fastest, 0 iterations are to be found, and 1 at the end holds the base to
 * itself. */
typedef struct gate_measurement {
  const char *base, *head, *itself; /* links; itself: another one of the base */
  uint64_t seed;
  size_t quads; /* 0: only calibrate */
  const char *const *words;
  size_t word_count;
} gate_measurement;

/* The command gate-measure, which the gate starts. Prints for each benchmark a line "INDEX ITERATIONS SECONDS
 * MEDIAN". An exit status. */
int gate_measure(const gate_measurement *what);

/* ---- the report ---- */

/* The log ratio as a change in percent; the benchmarks, the slowest first; how far the axis goes, in percent;
 * what is said of a benchmark. */
double gate_percent(double log_ratio);
size_t gate_sorted(const gate_times *times, const gate_benchmark **sorted);
double gate_axis_limit(const gate_times *times);
const char *gate_verdict_word(const gate_benchmark *benchmark);

/* Intervals as a picture in letters; forest.dat, forest.png and forest.svg in the folder. */
void gate_forest_text(const gate_times *times, FILE *out);
bool gate_forest_draw(const gate_times *times, const gate_options *options, char *why, size_t why_size);

/* Why the deterministic part does not hold the head to the base, in words; NULL where it does, or is not run. */
const char *gate_why_no_base_facts(const gate_options *options);

/* The command that runs it again with these options more. */
void gate_put_again(const gate_options *options, const char *more, FILE *out);

/* The table of what got worse, and the verdict. */
void gate_report(const gate_findings *findings, const gate_times *times, const gate_options *options,
                 gate_status status, FILE *out);
json_t *gate_report_json(const gate_findings *findings, const gate_times *times, const gate_options *options,
                         gate_status status);

/* The same for people who read a pull request, in Markdown. */
void gate_comment(const gate_findings *findings, const gate_times *times, const gate_options *options,
                  gate_status status, FILE *out);

/* The program's `gate` command; an exit status. */
int gate_run(const gate_options *options);

#endif
