/* How often what attnbench says of a sweep is true: draws sweeps whose truth is known, has the program's own code judge
 * them, and prints the tables of docs/method.md. `rates DRAWS`: so many of each kind, 2000 unless said. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/crossover.h"
#include "report/format.h"
#include "tests/measure/simulated_sweeps.h"

enum { PASSES = 2, NOISES = 2, MOST_PASSES = 15 };

static const int64_t lengths[] = {128, 256, 512, 1024, 2048, 4096, 8192};
enum { LENGTHS = sizeof lengths / sizeof *lengths };
static const size_t passes[PASSES] = {6, MOST_PASSES};
static const double noises[NOISES] = {0.005, 0.025};

/* ---- growth ---- */

typedef struct growth_kind {
  const char *what;
  simulated_family family;
  int declared;
} growth_kind;

static const growth_kind growth_kinds[] = {
    {"T", {.power = 1}, 1},
    {"T^1.25", {.power = 1.25}, 1},
    {"T^1.5", {.power = 1.5}, 2},
    {"T^2", {.power = 2}, 2},
    {"T log T; the truth is its slope midway", {.power = 1, .logarithmic = true}, 1},
    {"8 tokens + T", {.power = 1, .constant = 8}, 1},
    {"24 tokens + T", {.power = 1, .constant = 24}, 1},
    {"256 tokens + T", {.power = 1, .constant = 256}, 1},
    {"256^2 + T^2", {.power = 2, .constant = 256}, 2},
    {"T, 20 % more from 1024 on", {.power = 1, .step = 0.2, .step_at = 1024}, 1},
    {"T, 20 % more from 4096 on", {.power = 1, .step = 0.2, .step_at = 4096}, 1},
    {"T^2, 20 % more from 1024 on", {.power = 2, .step = 0.2, .step_at = 1024}, 2},
    {"T^2, 5 % more from 4096 on", {.power = 2, .step = 0.05, .step_at = 4096}, 2},
    {"T, one run in ten takes three times as long", {.power = 1, .slow = 0.1}, 1},
    {"T^2, one run in ten takes three times as long", {.power = 2, .slow = 0.1}, 2},
    {"T, the speed drifts by 5 %", {.power = 1, .drift = 0.05}, 1},
    {"T^2, the speed drifts by 5 %", {.power = 2, .drift = 0.05}, 2},
    {"constant", {.power = 0, .factor = 1e6}, 1},
    {"T, declared as T^2", {.power = 1}, 2},
    {"T^2, declared as T", {.power = 2}, 1},
};

static double exponent_of(const simulated_family *family) {
  return family->logarithmic ? family->power + 1 / log(sqrt(256.0 * 8192)) : family->power;
}

static void print_growth(const growth_kind *kind, int draws) {
  report report;
  const double truth = exponent_of(&kind->family);
  int declared = 0, otherwise = 0, all = 0;
  simulated_create(&report, &kind->family, 1, lengths, LENGTHS, MOST_PASSES);
  printf("| %s |", kind->what);
  for (int n = 0; n < PASSES * NOISES; n++) {
    uint64_t place = 0;
    int covered = 0;
    double width = 0;
    for (int draw = 0; draw < draws; draw++) {
      simulated_draw(&report, &kind->family, passes[n / NOISES], noises[n % NOISES], &place);
      simulated_fit(&report, kind->declared);
      const growth *growth = &report.growths[0];
      covered += growth->time.low <= truth && truth <= growth->time.high;
      width += fmin(9.99, growth->time.high - growth->time.low) / 2;
      const char *verdict = growth->has_time ? format_verdict(growth->time, kind->declared) : "";
      declared += strcmp(verdict, "as declared") == 0;
      otherwise += strncmp(verdict, "grows", 5) == 0;
      all++;
    }
    printf(" %.3f ±%.2f |", (double)covered / draws, width / draws);
  }
  printf(" %.3f | %.3f |\n", (double)declared / all, (double)otherwise / all);
  report_destroy(&report);
}

/* ---- who is faster ---- */

typedef struct contest_kind {
  const char *what;
  simulated_family challenger, champion;
  size_t crossovers;
  double at; /* where they cross; 0: nowhere */
} contest_kind;

static const contest_kind contest_kinds[] = {
    {"two that are equal", {.power = 2, .drift = 0.05}, {.power = 2, .drift = 0.05}, 0, 0},
    {"equal, one run in ten takes three times as long",
     {.power = 2, .slow = 0.1},
     {.power = 2, .slow = 0.1},
     0,
     0},
    {"T against T^2, equal at 700", {.power = 1, .factor = 700}, {.power = 2}, 1, 700},
    {"T against T^2, equal at 2100",
     {.power = 1, .factor = 2100, .drift = 0.05},
     {.power = 2, .drift = 0.05},
     1,
     2100},
    {"a fifth faster, half as slow again from 2048 on",
     {.power = 1, .factor = 0.8, .step = 0.5, .step_at = 2048},
     {.power = 1},
     1,
     2047},
};

/* Said: a crossover anywhere; true: as many as there are, with the place between the lengths that are said; ahead: one of
 * the two is called ahead at some length. */
static void print_contest(const contest_kind *kind, int draws) {
  const simulated_family families[] = {kind->challenger, kind->champion};
  report report;
  simulated_create(&report, families, 2, lengths, LENGTHS, MOST_PASSES);
  printf("| %s |", kind->what);
  for (int n = 0; n < PASSES * NOISES; n++) {
    uint64_t place = 0;
    int true_ones = 0, said = 0, ahead = 0;
    for (int draw = 0; draw < draws; draw++) {
      simulated_draw(&report, families, passes[n / NOISES], noises[n % NOISES], &place);
      const contest found = contest_judge(&report, 0, 1);
      const crossover *one = &found.crossovers[0];
      const bool holds = kind->at == 0 || ((double)one->after <= kind->at && kind->at <= (double)one->before);
      said += found.crossover_count > 0;
      true_ones += found.crossover_count == kind->crossovers && holds;
      ahead += found.ahead + found.behind > 0;
    }
    printf(" %.3f, %.3f, %.3f |", (double)said / draws, (double)true_ones / draws, (double)ahead / draws);
  }
  putchar('\n');
  report_destroy(&report);
}

/* ---- ties ---- */

static const struct {
  const char *what;
  size_t count;
  double faster; /* that the first is */
} tie_kinds[] = {{"2 that are equal", 2, 0},
                 {"8 that are equal", 8, 0},
                 {"2, one 2 % faster", 2, 0.02},
                 {"2, one 10 % faster", 2, 0.1},
                 {"8, one 10 % faster", 8, 0.1}};

static void print_tie(const char *what, size_t count, double faster, int draws) {
  enum { MOST = 8 };
  simulated_family families[MOST] = {{.power = 2}};
  static const int64_t length[] = {4096};
  report report;
  for (size_t n = 0; n < count; n++) families[n] = (simulated_family){.power = 2, .drift = 0.05};
  families[0].factor = 1 - faster;
  simulated_create(&report, families, count, length, 1, MOST_PASSES);
  printf("| %s |", what);
  for (int n = 0; n < PASSES * NOISES; n++) {
    uint64_t place = 0;
    int named = 0, wrong = 0;
    for (int draw = 0; draw < draws; draw++) {
      simulated_draw(&report, families, passes[n / NOISES], noises[n % NOISES], &place);
      const result *rivals[MOST];
      for (size_t r = 0; r < count; r++) rivals[r] = &report.results[r];
      const bool is_alone = paired_fastest(rivals, count) == 1;
      named += is_alone;
      wrong += is_alone && (faster == 0 || rivals[0] != &report.results[0]);
    }
    printf(" %.3f, %.3f |", (double)named / draws, (double)wrong / draws);
  }
  putchar('\n');
  report_destroy(&report);
}

static void print_head(const char *title, const char *more) {
  printf("| %s |", title);
  for (int n = 0; n < PASSES * NOISES; n++)
    printf(" %zu passes, %.1f %% |", passes[n / NOISES], 100 * noises[n % NOISES]);
  printf("%s\n|---|---|---|---|---|%s\n", more, *more ? "---|---|" : "");
}

int main(int count, char **arguments) {
  char *end = NULL;
  const int draws = count > 1 ? (int)strtol(arguments[1], &end, 10) : 2000;
  if (draws < 1 || (end && *end)) {
    fprintf(stderr, "rates: takes how often to draw, such as 2000, not '%s'\n", arguments[1]);
    return 2;
  }
  print_head("time", " as declared | otherwise |");
  for (size_t n = 0; n < sizeof growth_kinds / sizeof *growth_kinds; n++)
    print_growth(&growth_kinds[n], draws);
  putchar('\n');
  print_head("two variants", "");
  for (size_t n = 0; n < sizeof contest_kinds / sizeof *contest_kinds; n++)
    print_contest(&contest_kinds[n], draws);
  putchar('\n');
  print_head("at T 4096", "");
  for (size_t n = 0; n < sizeof tie_kinds / sizeof *tie_kinds; n++)
    print_tie(tie_kinds[n].what, tie_kinds[n].count, tie_kinds[n].faster, draws);
  return 0;
}
