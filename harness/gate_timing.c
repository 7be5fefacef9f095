/* The timing part of the gate: processes that measure, and what follows from their numbers.
 *
 * The process is the sampling unit: within one, medians of identical code differ with an error far below
 * their real spread. So every benchmark is screened in a few fresh processes, and what looks slower is
 * confirmed in 16 others, over several links of both sides: where the linker puts a kernel changes its time
 * too, and says nothing about the source. Slower is what an exact signed-rank test says to lie above half
 * the smallest effect, Holm-corrected over all that were confirmed, and whose estimate reaches the
 * smallest effect. Nothing is ever divided by the suite's median, which would hide what hits all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "gate.h"
#include "random.h"
#include "text.h"
#include "timer.h"

enum { SCREENS = 5, LEAST_QUADS = 6, MOST_QUADS = 32, FIELDS = 6, FIXED = 7, NUMBER_BYTES = 24 };

static const double screen_share = 0.4; /* of the budget */
static const double significance = 0.01;
static const double confidence = 0.95;

typedef struct session {
  gate_times *times;
  const gate_options *options;
  double deadline, startup; /* seconds: on the clock, and of a process that measures nothing */
  uint64_t processes;       /* that were started */
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
static bool read_line(const char *line, int64_t *index, int64_t *iterations, double *seconds,
                      double *median) {
  const char *at;
  char *after_seconds, *after_median;
  if (!text_integer(line, 0, INT64_MAX, &at, index) || *at != ' ') return false;
  if (!text_integer(at + 1, 0, INT64_MAX, &at, iterations) || *at != ' ') return false;
  *seconds = strtod(at, &after_seconds);
  *median = strtod(after_seconds, &after_median);
  return after_seconds != at && after_median != after_seconds;
}

static bool take_results(const char *said, gate_benchmark **chosen, size_t count, take_result *take) {
  size_t taken = 0;
  for (const char *line = said; line && *line; line = strchr(line, '\n'), line += line != NULL) {
    int64_t index, iterations;
    double seconds, median;
    if (!read_line(line, &index, &iterations, &seconds, &median)) continue;
    if (taken >= count || index != (int64_t)taken || !isfinite(median)) return false;
    take(chosen[taken++], iterations, seconds, median);
  }
  return taken == count;
}

/* One process on the chosen benchmarks. Each takes the next link of both sides, and for the controls
 * the one after it as the base's other self. */
static bool run_process(session *session, gate_benchmark **chosen, size_t count, size_t quads,
                        take_result *take) {
  const gate_options *options = session->options;
  char *argv[2 + FIXED + FIELDS * GATE_MAX_BENCHMARKS + 1];
  char seed[NUMBER_BYTES], quads_text[NUMBER_BYTES],
      (*numbers)[2][NUMBER_BYTES] = calloc(count + 1, sizeof *numbers);
  if (!numbers) return fail(session, "out of memory");
  const size_t link = session->processes++ % session->times->links;
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)random_bits(options->seed, session->processes));
  snprintf(quads_text, sizeof quads_text, "%zu", quads);
  char *const fixed[] = {(char *)options->program,
                         "gate-measure",
                         (char *)options->bases[link],
                         (char *)options->heads[link],
                         (char *)options->bases[(link + 1) % session->times->links],
                         seed,
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

static size_t quads_within(double seconds, size_t processes, const session *session, double round) {
  const double quads = (seconds / (double)processes - session->startup) / round;
  return quads < LEAST_QUADS ? LEAST_QUADS : quads > MOST_QUADS ? MOST_QUADS : (size_t)quads;
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
  session->startup = wall_seconds() - start;
  return true;
}

/* The run's own noise, from the spread over the benchmarks, raises the bar; but never so far that 5 % would
 * pass below it: a suspect more costs seconds. */
static double suspicion_threshold(const gate_set *set, double smallest) {
  double distances[GATE_MAX_BENCHMARKS], means[GATE_MAX_BENCHMARKS];
  for (size_t n = 0; n < set->count; n++) means[n] = set->benchmarks[n].screen;
  const double middle = statistics_median(means, set->count);
  for (size_t n = 0; n < set->count; n++) distances[n] = fabs(means[n] - middle);
  const double spread = 1.4826 * statistics_median(distances, set->count);
  return fmin(fmax(0.6 * smallest, 2.5 * spread), 1.5 * smallest);
}

static bool screen(session *session) {
  gate_times *times = session->times;
  gate_benchmark *chosen[GATE_MAX_BENCHMARKS];
  const size_t count = choose_all(&times->set, chosen);
  const double budget = screen_share * session->options->budget;
  const size_t quads = quads_within(budget, SCREENS, session, round_seconds(chosen, count));
  for (times->screens = 0; times->screens < SCREENS; times->screens++) {
    fprintf(stderr, "gate: screening %zu benchmarks, process %zu of %d, %zu quads each\n", count,
            times->screens + 1, SCREENS, quads);
    if (!run_process(session, chosen, count, quads, take_screen)) return false;
  }
  for (size_t n = 0; n < count; n++) {
    chosen[n]->change = statistics_centre_interval(chosen[n]->screens, chosen[n]->screen_count, confidence);
    chosen[n]->screen = chosen[n]->change.estimate;
  }
  times->threshold = suspicion_threshold(&times->set, log1p(session->options->smallest));
  for (size_t n = 0; n < count; n++)
    chosen[n]->suspect = chosen[n]->screen > times->threshold ||
                         (gate_is_control(chosen[n]) && -chosen[n]->screen > times->threshold);
  return true;
}

/* ---- confirmation ---- */

/* Controls first, then the slowest. */
static int compare_suspects(const void *left, const void *right) {
  const gate_benchmark *a = *(gate_benchmark *const *)left, *b = *(gate_benchmark *const *)right;
  const int controls = gate_is_control(b) - gate_is_control(a);
  return controls ? controls : (a->screen < b->screen) - (a->screen > b->screen);
}

/* Suspects, and with them the base against itself: it says what the machine did meanwhile. What does not
 * fit the time is left out, the least slow first. */
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
  while (count > 1 && !gate_is_control(chosen[count - 2]) &&
         GATE_CONFIRMATIONS * (session->startup + LEAST_QUADS * round_seconds(chosen, count)) > left) {
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
  const size_t quads = quads_within(session->deadline - wall_seconds(), GATE_CONFIRMATIONS, session,
                                    round_seconds(chosen, count));
  for (times->confirmations = 0; times->confirmations < GATE_CONFIRMATIONS; times->confirmations++) {
    fprintf(stderr, "gate: confirming %zu benchmarks, process %zu of %d, %zu quads each\n", count,
            times->confirmations + 1, GATE_CONFIRMATIONS, quads);
    if (!run_process(session, chosen, count, quads, take_confirmation)) return false;
  }
  return true;
}

/* ---- the decision ---- */

/* Slower: above half the smallest effect beyond chance, and as large as the smallest effect. Faster, which
 * fails nothing: below nothing beyond chance, and by half the smallest effect. */
static void judge(gate_times *times, double smallest) {
  gate_benchmark *chosen[GATE_MAX_BENCHMARKS];
  double slower[GATE_MAX_BENCHMARKS], faster[GATE_MAX_BENCHMARKS];
  size_t count = 0;
  for (size_t n = 0; n < times->set.count; n++) {
    gate_benchmark *benchmark = &times->set.benchmarks[n];
    if (benchmark->confirmation_count == 0) continue;
    double inverse[GATE_CONFIRMATIONS];
    for (size_t i = 0; i < benchmark->confirmation_count; i++) inverse[i] = -benchmark->confirmations[i];
    slower[count] =
        statistics_signed_rank(benchmark->confirmations, benchmark->confirmation_count, log1p(smallest / 2));
    faster[count] = statistics_signed_rank(inverse, benchmark->confirmation_count, 0);
    benchmark->change =
        statistics_centre_interval(benchmark->confirmations, benchmark->confirmation_count, confidence);
    chosen[count++] = benchmark;
  }
  if (!statistics_holm(slower, count, slower) || !statistics_holm(faster, count, faster)) return;
  for (size_t n = 0; n < count; n++) {
    gate_benchmark *benchmark = chosen[n];
    benchmark->p = slower[n];
    benchmark->verdict = GATE_UNCONFIRMED;
    if (slower[n] <= significance && benchmark->change.estimate >= log1p(smallest))
      benchmark->verdict = GATE_SLOWER;
    if (faster[n] <= significance && benchmark->change.estimate <= -log1p(smallest / 2))
      benchmark->verdict = GATE_FASTER;
    if (gate_is_control(benchmark) && benchmark->verdict != GATE_UNCONFIRMED &&
        fabs(benchmark->change.estimate) >= log1p(smallest))
      times->contaminated = true;
  }
}

/* Where instructions have grown, time on that instruction set can excuse it: those are confirmed too. */
static void add_excuses(gate_set *set, const gate_findings *findings) {
  for (size_t n = 0; n < findings->count; n++) {
    const gate_finding *finding = &findings->items[n];
    bool known = finding->kind != GATE_INSTRUCTIONS;
    for (size_t other = 0; other < n; other++)
      known |= findings->items[other].kind == GATE_INSTRUCTIONS &&
               strcmp(findings->items[other].variant, finding->variant) == 0;
    if (!known) gate_set_add_isa(set, finding->variant, finding->isa);
  }
}

static bool fill_set(session *session, const gate_findings *findings) {
  const gate_options *options = session->options;
  gate_times *times = session->times;
  variant_list base = {0}, head = {0};
  const bool loaded = variant_list_add(&base, options->bases[0], session->why, session->why_size) &&
                      variant_list_add(&head, options->heads[0], session->why, session->why_size);
  if (loaded) gate_set_fill(&times->set, &base, &head, options);
  variant_list_destroy(&base);
  variant_list_destroy(&head);
  if (!loaded) return false;
  size_t wanted = 0;
  for (size_t n = 0; n < times->set.count; n++) wanted += !times->set.benchmarks[n].against_itself;
  if (wanted == 0)
    return fail(session,
                options->only ? "no benchmark has such a name" : "base and head have no variant in common");
  add_excuses(&times->set, findings);
  return true;
}

bool gate_time(gate_times *times, const gate_options *options, const gate_findings *findings, char *why,
               size_t why_size) {
  const double start = wall_seconds();
  session session = {times, options, start + options->budget, 0, 0, why, why_size};
  times->links = options->base_count < options->head_count ? options->base_count : options->head_count;
  if (!fill_set(&session, findings) || !calibrate(&session)) return false;
  for (size_t n = 0; options->only && n < times->set.count; n++) times->set.benchmarks[n].suspect = true;
  if (!options->only && !screen(&session)) return false;
  for (size_t n = 0; n < times->set.count; n++)
    if (strcmp(times->set.benchmarks[n].isa, "-") != 0) times->set.benchmarks[n].suspect = true;
  if (!confirm(&session)) return false;
  judge(times, options->smallest);
  times->measured = true;
  times->seconds = wall_seconds() - start;
  return true;
}
