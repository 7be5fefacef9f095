/* See crossover.h. */
#include "crossover.h"

#include <math.h>
#include <stdlib.h>

/* One length. */
typedef struct meeting {
  int64_t length;
  const result *challenger, *champion;
} meeting;

static const result *find(const report *report, int family, int64_t length) {
  for (size_t n = 0; n < report->result_count; n++) {
    const result *result = &report->results[n];
    if (result->family_index == family && result_length(result) == length &&
        result->state == RESULT_MEASURED && result->repetitions > 0)
      return result;
  }
  return NULL;
}

static int by_length(const void *left, const void *right) {
  const int64_t a = ((const meeting *)left)->length, b = ((const meeting *)right)->length;
  return (a > b) - (a < b);
}

/* The lengths at which both were measured, ascending. */
static size_t find_meetings(const report *report, int challenger, int champion, meeting *meetings) {
  size_t count = 0;
  for (size_t n = 0; n < report->result_count; n++) {
    const result *one = &report->results[n];
    const int64_t length = result_length(one);
    if (one->family_index != challenger || find(report, challenger, length) != one) continue;
    const result *other = find(report, champion, length);
    if (other) meetings[count++] = (meeting){length, one, other};
  }
  qsort(meetings, count, sizeof *meetings, by_length);
  return count;
}

/* Which of the ratios within their intervals: the nearest to what holds at the earlier length, or the farthest from it. */
typedef enum edge { NEAREST, MIDDLE, FARTHEST } edge;

/* Turned so that it is above 0 at `after` and below at `before`. */
static double lag_of(const meeting *at, lead before, edge edge, size_t questions) {
  const interval lag = paired_lag(at->challenger, at->champion, 1 - 0.05 / (double)questions);
  const bool turned = before == LEAD_BEHIND;
  if (edge == MIDDLE) return turned ? -lag.estimate : lag.estimate;
  return turned ? (edge == NEAREST ? -lag.high : -lag.low) : (edge == NEAREST ? lag.low : lag.high);
}

/* Where these ratios pass 1, between two lengths at which they lie on different sides of it: at first, or the
 * farthest at last. */
static double find_place(const meeting *after, const meeting *before, lead now, edge edge, size_t questions) {
  double place = (double)after->length;
  for (const meeting *next = after + 1; next <= before; next++) {
    const double from = lag_of(next - 1, now, edge, questions), to = lag_of(next, now, edge, questions);
    if (!(from > 0 && to <= 0)) continue;
    const double share = isinf(from) ? 1 : from / (from - to);
    place = (double)next[-1].length * exp(share * log((double)next->length / (double)next[-1].length));
    if (edge != FARTHEST) break;
  }
  return place;
}

static interval find_smooth(const meeting *after, const meeting *before, lead now, size_t questions) {
  return (interval){find_place(after, before, now, MIDDLE, questions),
                    find_place(after, before, now, NEAREST, questions),
                    find_place(after, before, now, FARTHEST, questions)};
}

contest contest_judge(const report *report, int challenger, int champion) {
  contest contest = {0};
  meeting *meetings = calloc(report->result_count + 1, sizeof *meetings);
  if (!meetings) return contest;
  contest.lengths = find_meetings(report, challenger, champion, meetings);
  if (contest.lengths > 0) {
    contest.first = meetings[0].length;
    contest.last = meetings[contest.lengths - 1].length;
  }
  lead last = LEAD_UNDECIDED;
  const meeting *sure = NULL;
  for (size_t n = 0; n < contest.lengths; n++) {
    const lead now = paired_lead(meetings[n].challenger, meetings[n].champion, contest.lengths);
    contest.ahead += now == LEAD_AHEAD;
    contest.behind += now == LEAD_BEHIND;
    if (now == LEAD_UNDECIDED) continue;
    if (sure && now != last && contest.crossover_count++ < CROSSOVERS_KEPT)
      contest.crossovers[contest.crossover_count - 1] = (crossover){
          sure->length, meetings[n].length, now, find_smooth(sure, &meetings[n], now, contest.lengths)};
    last = now;
    sure = &meetings[n];
  }
  free(meetings);
  return contest;
}
