/* The timing part of the gate: processes that measure, and what follows from their numbers.
 *
 * The process is the sampling unit: within one, medians of identical code differ with an error far below
 * their real spread. So every benchmark is screened in a few fresh processes, and what looks slower is
 * confirmed in 16 others, over several links of both sides: where the linker puts a kernel changes its time
 * too, and says nothing about the source. judge.c says what follows from the numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "gate.h"
#include "base/random.h"
#include "base/text.h"
#include "base/timer.h"

enum {
  SCREENS = 5,
  LEAST_QUADS = 6,
  LEAST_CONFIRMED = 10,
  MOST_QUADS = 32,
  FIELDS = 6,
  FIXED = 12,
  NUMBER_BYTES = 24
};

static const double screen_share = 0.4; /* of the budget */

typedef struct session {
  gate_times *times;
  const gate_options *options;
  double deadline;    /* seconds on the clock */
  double startup;     /* seconds for each benchmark of a process before it measures */
  double pace;        /* what processes take on this machine, which may be busy, over what they should */
  uint64_t processes; /* that were started */
  char *why;
  size_t why_size;
} session;

/* ---- processes ---- */

static bool fail(session *session, const char *reason) {
  snprintf(session->why, session->why_size, "%s", reason);
  return false;
}

typedef void take_result(gate_benchmark *benchmark, int64_t iterations, double seconds, double median);

static void take_calibration(gate_benchmark *benchmark, int64_t iterations, double seconds, double median) {
  (void)median;
  benchmark->iterations = iterations;
  benchmark->seconds = seconds;
}

static void take_screen(gate_benchmark *benchmark, int64_t iterations, double seconds, double median) {
  (void)iterations, (void)seconds;
  benchmark->screens[benchmark->screen_count++] = median;
}

static void take_confirmation(gate_benchmark *benchmark, int64_t iterations, double seconds, double median) {
  (void)iterations, (void)seconds;
  benchmark->confirmations[benchmark->confirmation_count++] = median;
}

/* What gate-measure prints of one benchmark. */
static bool read_line(const char *line, int64_t *index, int64_t *iterations, double *seconds, double *median,
                      const char **wrong) {
  const char *at;
  char *after_seconds, *after_median;
  if (!text_integer(line, 0, INT64_MAX, &at, index) || *at != ' ') return false;
  if (!text_integer(at + 1, 0, INT64_MAX, &at, iterations) || *at != ' ') return false;
  *seconds = strtod(at, &after_seconds);
  *median = strtod(after_seconds, &after_median);
  *wrong = after_median + (*after_median == ' ');
  return after_seconds != at && after_median != after_seconds;
}

static bool take_results(const char *said, gate_benchmark **chosen, size_t count, take_result *take) {
  size_t taken = 0;
  for (const char *line = said; line && *line; line = strchr(line, '\n'), line += line != NULL) {
    int64_t index, iterations;
    double seconds, median;
    const char *wrong;
    if (!read_line(line, &index, &iterations, &seconds, &median, &wrong)) continue;
    if (taken >= count || index != (int64_t)taken || !isfinite(median)) return false;
    gate_benchmark *benchmark = chosen[taken++];
    take(benchmark, iterations, seconds, median);
    if (!benchmark->wrong[0] && !benchmark->against_itself)
      snprintf(benchmark->wrong, sizeof benchmark->wrong, "%.*s", (int)strcspn(wrong, "\n"), wrong);
  }
  return taken == count;
}

/* One process on the chosen benchmarks. Each takes the next link of both sides, and for the controls
 * the one after it as the base's other self. */
static bool run_process(session *session, gate_benchmark **chosen, size_t count, size_t quads,
                        take_result *take) {
  const gate_options *options = session->options;
  char *argv[FIXED + FIELDS * GATE_MAX_BENCHMARKS + 1];
  char seed[NUMBER_BYTES], quads_text[NUMBER_BYTES],
      (*numbers)[2][NUMBER_BYTES] = calloc(count + 1, sizeof *numbers);
  if (!numbers) return fail(session, "out of memory");
  const size_t link = session->processes++ % session->times->links;
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)random_bits(options->seed, session->processes));
  snprintf(quads_text, sizeof quads_text, "%zu", quads);
  char *const fixed[] = {(char *)options->program,
                         "gate-measure",
                         "--base",
                         (char *)options->bases[link],
                         "--head",
                         (char *)options->heads[link],
                         "--itself",
                         (char *)(options->itself && session->times->links == 1
                                      ? options->itself
                                      : options->bases[(link + 1) % session->times->links]),
                         "--seed",
                         seed,
                         "--quads",
                         quads_text};
  memcpy(argv, fixed, sizeof fixed);
  size_t used = FIXED;
  for (size_t n = 0; n < count; n++) {
    gate_benchmark *benchmark = chosen[n];
    snprintf(numbers[n][0], NUMBER_BYTES, "%d", benchmark->threads);
    snprintf(numbers[n][1], NUMBER_BYTES, "%lld", (long long)benchmark->iterations);
    char *const fields[FIELDS] = {benchmark->variant, benchmark->problem,
                                  numbers[n][0],      benchmark->isa,
                                  numbers[n][1],      benchmark->against_itself ? "1" : "0"};
    memcpy(argv + used, fields, sizeof fields);
    used += FIELDS;
  }
  argv[used] = NULL;
  char *said;
  const int status = child_run(argv, NULL, &said, session->why, session->why_size);
  const bool good = status == 0 && take_results(said, chosen, count, take);
  if (status >= 0 && !good)
    snprintf(session->why, session->why_size, "a measuring process ended with status %d: %s", status,
             child_last_line(said));
  free(said);
  free(numbers);
  return good;
}

/* ---- how much ---- */

/* A quad is four samples and one run of each side before them; the measuring process lets those that take
 * long sit out some rounds. */
static double round_seconds(gate_benchmark **chosen, size_t count) {
  double seconds = 0;
  for (size_t n = 0; n < count; n++)
    seconds += fmin(gate_quad_seconds(chosen[n]->iterations, chosen[n]->seconds), GATE_QUAD_SECONDS);
  return seconds;
}

static double process_seconds(const session *session, gate_benchmark **chosen, size_t count, size_t quads) {
  return session->pace * (session->startup * (double)count + (double)quads * round_seconds(chosen, count));
}

static size_t quads_within(const session *session, gate_benchmark **chosen, size_t count, double seconds) {
  const double start = process_seconds(session, chosen, count, 0);
  const double quads = (seconds - start) / (process_seconds(session, chosen, count, 1) - start);
  return quads < LEAST_QUADS ? LEAST_QUADS : quads > MOST_QUADS ? MOST_QUADS : (size_t)quads;
}

/* So many processes, with as many quads each as end at the given time. Processors that others use too make
 * them take longer than their own quads do, so what they took says how many the next ones have. */
static bool run_processes(session *session, gate_benchmark **chosen, size_t count, size_t wanted, double end,
                          take_result *take, size_t *made) {
  for (*made = 0; *made < wanted; ++*made) {
    const double start = wall_seconds();
    const size_t quads = quads_within(session, chosen, count, (end - start) / (double)(wanted - *made));
    fprintf(stderr, "gate: %s %zu benchmarks, process %zu of %zu, %zu quads each\n",
            take == take_screen ? "screening" : "confirming", count, *made + 1, wanted, quads);
    if (!run_process(session, chosen, count, quads, take)) return false;
    const double slower = (wall_seconds() - start) / process_seconds(session, chosen, count, quads);
    session->pace *= 0.5 * (1 + slower);
  }
  return true;
}

/* ---- screening ---- */

static size_t choose_all(gate_set *set, gate_benchmark **chosen) {
  for (size_t n = 0; n < set->count; n++) chosen[n] = &set->benchmarks[n];
  return set->count;
}

static bool calibrate(session *session) {
  gate_benchmark *chosen[GATE_MAX_BENCHMARKS];
  const size_t count = choose_all(&session->times->set, chosen);
  const double start = wall_seconds();
  if (!run_process(session, chosen, count, 0, take_calibration)) return false;
  session->startup = (wall_seconds() - start) / (double)count;
  return true;
}

static bool screen(session *session) {
  gate_times *times = session->times;
  gate_benchmark *chosen[GATE_MAX_BENCHMARKS];
  const size_t count = choose_all(&times->set, chosen);
  const double end = wall_seconds() + screen_share * session->options->budget;
  if (!run_processes(session, chosen, count, SCREENS, end, take_screen, &times->screens)) return false;
  gate_screen(times, session->options->smallest);
  return true;
}

/* ---- confirmation ---- */

static int compare_suspects(const void *left, const void *right) {
  const double a = gate_urgency(*(gate_benchmark *const *)left),
               b = gate_urgency(*(gate_benchmark *const *)right);
  return (a < b) - (a > b);
}

/* Suspects, and with them the base against itself: it says what the machine did meanwhile. What does not
 * fit the time is left out, the least urgent first; but never so much that no room is left for what is slower
 * beside what the machine made look so. */
static size_t choose_suspects(session *session, gate_benchmark **chosen) {
  gate_set *set = &session->times->set;
  size_t count = 0, real = 0;
  for (size_t n = 0; n < set->count; n++) {
    gate_benchmark *benchmark = &set->benchmarks[n];
    if (benchmark->suspect || benchmark->against_itself) chosen[count++] = benchmark;
    real += benchmark->suspect;
  }
  if (real == 0) return 0;
  qsort(chosen, count, sizeof *chosen, compare_suspects);
  const double left = session->deadline - wall_seconds();
  while (count > LEAST_CONFIRMED && !gate_is_control(chosen[count - 1]) &&
         GATE_CONFIRMATIONS * process_seconds(session, chosen, count, LEAST_QUADS) > left) {
    chosen[--count]->suspect = false;
    session->times->left_out++;
  }
  return count;
}

static bool confirm(session *session) {
  gate_times *times = session->times;
  gate_benchmark *chosen[GATE_MAX_BENCHMARKS];
  const size_t count = choose_suspects(session, chosen);
  if (count == 0) return true;
  return run_processes(session, chosen, count, GATE_CONFIRMATIONS, session->deadline, take_confirmation,
                       &times->confirmations);
}

/* Where instructions have grown, time on that instruction set can excuse it: those are confirmed too, by
 * benchmarks of their own where the set is not the fastest. */
static void add_excuses(gate_set *set, const gate_findings *findings) {
  for (size_t n = 0; n < findings->count; n++) {
    const gate_finding *finding = &findings->items[n];
    bool known = finding->kind != GATE_INSTRUCTIONS || finding->accepted;
    for (size_t other = 0; other < n; other++)
      known |= findings->items[other].kind == GATE_INSTRUCTIONS &&
               strcmp(findings->items[other].variant, finding->variant) == 0;
    if (known) continue;
    gate_set_add_isa(set, finding->variant, finding->isa);
  }
}

static bool nothing_changed(const gate_set *set) {
  size_t controls = 0;
  for (size_t n = 0; n < set->count; n++) controls += gate_is_control(&set->benchmarks[n]);
  return controls == set->count && set->left_out_changed == 0;
}

static bool fill_set(session *session, const gate_findings *findings) {
  const gate_options *options = session->options;
  gate_times *times = session->times;
  variant_list base = {0}, head = {0};
  const bool loaded = gate_load(&base, options->bases[0], options, session->why, session->why_size) &&
                      gate_load(&head, options->heads[0], options, session->why, session->why_size);
  if (loaded) gate_set_fill(&times->set, &base, &head, options);
  variant_list_destroy(&base);
  variant_list_destroy(&head);
  if (!loaded) return false;
  size_t wanted = 0;
  for (size_t n = 0; n < times->set.count; n++) wanted += !times->set.benchmarks[n].against_itself;
  if (wanted == 0)
    return fail(session, options->only            ? "no benchmark has such a name"
                         : times->set.common == 0 ? "base and head have no variant in common"
                         : options->problem_count
                             ? "no variant that both have takes --problem on both sides"
                             : "no problem was found that base and head both take: give one "
                               "with --problem");
  add_excuses(&times->set, findings);
  return true;
}

bool gate_time(gate_times *times, const gate_options *options, const gate_findings *findings, char *why,
               size_t why_size) {
  const double start = wall_seconds();
  session session = {times, options, start + options->budget, 0, 1, 0, why, why_size};
  times->links = options->base_count < options->head_count ? options->base_count : options->head_count;
  if (!fill_set(&session, findings)) return false;
  if (nothing_changed(&times->set)) return true;
  if (!calibrate(&session)) return false;
  for (size_t n = 0; options->only && n < times->set.count; n++) times->set.benchmarks[n].suspect = true;
  if (!options->only && !screen(&session)) return false;
  for (size_t n = 0; n < times->set.count; n++)
    if (strcmp(times->set.benchmarks[n].isa, "-") != 0 || times->set.benchmarks[n].is_excuse)
      times->set.benchmarks[n].suspect = true;
  if (!confirm(&session)) return false;
  if (!gate_judge(times, options->smallest)) return fail(&session, "out of memory");
  times->measured = true;
  times->seconds = wall_seconds() - start;
  return true;
}
