/* Is the head right? Asked before anything else, in processes of their own: a kernel that crashes must not take the gate
 * with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "gate.h"
#include "verify/verify.h"

typedef struct arguments {
  char **items;
  size_t count;
} arguments;

static void add(arguments *to, const char *word) { to->items[to->count++] = (char *)(uintptr_t)word; }

/* On these problems; none: on all. -1, with the reason in words, where it cannot run. */
static int run_verify(const gate_options *options, const char *const *problems, size_t problem_count,
                      char **said, char *why, size_t why_size) {
  enum { FIXED = 12 };
  char count[24], every[24];
  arguments line = {calloc(FIXED + 2 * (options->variant_count + problem_count), sizeof *line.items), 0};
  *said = NULL;
  if (!line.items) return snprintf(why, why_size, "out of memory"), -1;
  snprintf(count, sizeof count, "%lld", (long long)options->cases);
  snprintf(every, sizeof every, "%lld", (long long)options->every);
  add(&line, options->program);
  add(&line, "verify");
  add(&line, "--own=false"); /* the head's variants may have our variants' names */
  add(&line, "--plugin");
  add(&line, options->heads[0]);
  for (size_t n = 0; n < options->variant_count; n++) {
    add(&line, "--variant");
    add(&line, options->variants[n]);
  }
  for (size_t n = 0; n < problem_count; n++) {
    add(&line, "--problem");
    add(&line, problems[n]);
  }
  if (problem_count == 0) {
    add(&line, "--count");
    add(&line, count);
    add(&line, "--every");
    add(&line, every);
  }
  const int status = child_run(line.items, NULL, said, why, why_size);
  free(line.items);
  return status;
}

typedef struct question {
  const gate_options *options;
  FILE *out;
  char *why;
  size_t why_size;
  char shown_by[640]; /* the first command that shows it wrong; "": there is none */
  bool refuses;       /* the last answer: it takes none of the problems */
} question;

static void take_command(question *question, const char *said) {
  static const char mark[] = "reproduce: ";
  const char *at = strstr(said, mark);
  if (!at || question->shown_by[0]) return;
  at += strlen(mark);
  snprintf(question->shown_by, sizeof question->shown_by, "%.*s", (int)strcspn(at, "\n"), at);
}

/* 0, 1 or 2 as verify; -1, with the reason in words. */
static int verify_on(question *question, const char *const *problems, size_t problem_count) {
  char *said;
  const int status =
      run_verify(question->options, problems, problem_count, &said, question->why, question->why_size);
  if (status < 0) return status;
  if (status == 1) {
    fputs(said, question->out);
    take_command(question, said);
  }
  const char *last = child_last_line(said);
  if (strncmp(last, "attnbench: ", 11) == 0) last += 11;
  fprintf(question->out, "  %-13s%s%s\n", "correctness",
          problem_count ? "on the problems of the benchmarks: " : "", last);
  question->refuses = status == 2 && strstr(said, VERIFY_NOTHING);
  if (status > 1) snprintf(question->why, question->why_size, "the verification could not run: %s", last);
  free(said);
  return status;
}

/* A head so narrow that no usual problem suits it: what its benchmarks pose. */
static int verify_narrow(question *question) {
  enum { MOST = 64 };
  const gate_options *options = question->options;
  char names[MOST][WORKLOAD_NAME_BYTES];
  const char *problems[MOST];
  size_t count = 0;
  variant_list head = {0};
  if (!gate_load(&head, options->heads[0], options, question->why, question->why_size)) return -1;
  for (size_t n = 0; n < head.count && count < MOST; n++) {
    workload others[GATE_MAX_PROBLEMS];
    if (gate_other_problems(&(gate_pair){.variant = head.variants[n]}, options, others) == 0) continue;
    workload_name(&others[0], names[count]);
    problems[count] = names[count];
    count++;
  }
  variant_list_destroy(&head);
  return count ? verify_on(question, problems, count) : 2;
}

/* Of the variants that are asked for, those that the head has and that take the problem; NULL: any. */
static size_t choose(const gate_options *options, const variant_list *head, const workload *w,
                     const char **names) {
  size_t count = 0;
  for (size_t n = 0; n < options->variant_count; n++) {
    const attn_variant *variant = variant_list_find(head, options->variants[n]);
    if (variant && (!w || gate_takes(&(gate_pair){.variant = variant}, w)))
      names[count++] = options->variants[n];
  }
  return count;
}

/* verify refuses names and problems that do not go together; the gate has said of them what there is to say. */
static int verify_asked(question *question, const variant_list *head, const char **names) {
  const gate_options *all = question->options;
  gate_options some = *all;
  int status = 0;
  some.variants = names;
  /* cppcheck-suppress autoVariables ; put back at the end */
  question->options = &some;
  for (size_t n = 0; status == 0 && n < all->problem_count; n++) {
    workload w;
    if (!workload_parse_sound(all->problems[n], &w, question->why, question->why_size)) continue;
    some.variant_count = choose(all, head, &w, names);
    if (some.variant_count || !all->variant_count) status = verify_on(question, &all->problems[n], 1);
  }
  some.variant_count = choose(all, head, NULL, names);
  if (status == 0 && (some.variant_count || !all->variant_count)) {
    status = verify_on(question, NULL, 0);
    if (question->refuses) status = all->problem_count ? 0 : verify_narrow(question);
  }
  question->options = all;
  return status;
}

bool gate_verify(const gate_options *options, gate_findings *findings, FILE *out, char *why,
                 size_t why_size) {
  question question = {options, out, why, why_size, "", false};
  fprintf(stderr, "gate: verifying\n");
  int status = -1;
  variant_list head = {0};
  const char **names = calloc(options->variant_count + 1, sizeof *names);
  if (!names)
    snprintf(why, why_size, "out of memory");
  else if (gate_load(&head, options->heads[0], options, why, why_size))
    status = verify_asked(&question, &head, names);
  variant_list_destroy(&head);
  free(names);
  if (status != 0 && status != 1) return false;
  return status == 0 || gate_find(findings, options, GATE_WRONG, "all", "attnbench verify",
                                  question.shown_by[0] ? "gives wrong results, as this shows: %s"
                                                       : "gives wrong results; the lines above say which%s",
                                  question.shown_by);
}
