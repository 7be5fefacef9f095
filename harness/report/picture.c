/* See picture.h. */
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format.h"
#include "problem/types.h"

enum { STYLES = 10 };

/* ---- what is drawn ---- */

static double value_of(picture_kind kind, const result *result) {
  switch (kind) {
    case TIME:
    case PAIRS: return result->seconds_median.estimate;
    case WORKSPACE: return (double)result->memory_bytes;
    case RATE:
    case ROOFLINE: return result->flops_per_second;
    default: return result->error_bound_fraction;
  }
}

/* The ends of its 95% interval; the value itself where there is none. */
static interval interval_of(picture_kind kind, const result *result) {
  const double value = value_of(kind, result);
  const interval median = result->seconds_median;
  if ((kind != TIME && kind != PAIRS && kind != RATE && kind != ROOFLINE) || !isfinite(median.low) ||
      !isfinite(median.high))
    return (interval){value, value, value};
  if (kind == TIME || kind == PAIRS) return (interval){value, median.low, median.high};
  return (interval){value, value * median.estimate / median.high, value * median.estimate / median.low};
}

/* Operations for each byte, if each is moved once. */
static double intensity(const result *result) {
  return result->bytes > 0 ? result->flops / result->bytes : NAN;
}

/* Pairs of a query and a key that it sees, of all heads: what the operations count. */
static double seen_pairs(const result *result) {
  const workload *w = &result->workload;
  const double of_pair = 2 * ((double)w->head_dim + (double)w->value_dim);
  return w->function == ATTN_SOFTMAX && result->flops > 0 ? result->flops / of_pair : NAN;
}

static double place_of(picture_kind kind, const result *result) {
  if (kind == PAIRS) return seen_pairs(result);
  return kind == ROOFLINE ? intensity(result) : (double)result_length(result);
}

static bool is_drawn(picture_kind kind, const result *result) {
  const bool is_known = kind == WORKSPACE ? result_has_memory(result) : result->state == RESULT_MEASURED;
  double value = is_known ? value_of(kind, result) : NAN;
  if (kind == ROOFLINE && !isfinite(intensity(result))) return false;
  if (kind == PAIRS && !isfinite(seen_pairs(result))) return false;
  return isfinite(value) && (value > 0 || (kind == ERROR && value == 0)) && result_length(result) > 0;
}

/* The peak of bfloat16 where it has one of its own and something in bfloat16 was measured. */
const machine_rate *picture_narrow_peak(const report *report) {
  const machine_rate *peak = report_peak(report, ATTN_BFLOAT16);
  if (!peak || peak->type != ATTN_BFLOAT16) return NULL;
  for (size_t i = 0; i < report->result_count; i++)
    if (report->results[i].workload.type == ATTN_BFLOAT16 && is_drawn(RATE, &report->results[i])) return peak;
  return NULL;
}

static bool is_of_some_picture(const result *result) {
  return is_drawn(TIME, result) || (result->memory_only && is_drawn(WORKSPACE, result));
}

void picture_find_families(const report *report, families *families, size_t most) {
  families->count = families->left_out = 0;
  for (int family = 0; family < report_family_count(report); family++) {
    const result *first = NULL;
    for (size_t i = 0; i < report->result_count && !first; i++)
      if (report->results[i].family_index == family && is_of_some_picture(&report->results[i]))
        first = &report->results[i];
    if (!first) continue;
    if (families->count == most || families->count == PLOT_MAX_LINES) {
      families->left_out++;
      continue;
    }
    families->index[families->count] = family;
    families->text[families->count++] = first->family;
  }
  plot_name_families(families->text, families->count, families->names);
}

/* Room for so many points more. */
static void begin_line(picture *picture, plot_line *line, size_t points) {
  memset(line, 0, sizeof *line);
  line->x = picture->numbers + picture->used;
  line->y = line->x + points;
  line->low = line->y + points;
  line->high = line->low + points;
  picture->used += 4 * points;
}

static void move_point(plot_line *line, size_t to, size_t from) {
  line->x[to] = line->x[from];
  line->y[to] = line->y[from];
  line->low[to] = line->low[from];
  line->high[to] = line->high[from];
}

/* Points in order of x. */
static void add_point(plot_line *line, double x, interval y) {
  size_t at = line->count++;
  for (; at > 0 && line->x[at - 1] > x; at--) move_point(line, at, at - 1);
  line->x[at] = x;
  line->y[at] = y.estimate;
  line->low[at] = y.low;
  line->high[at] = y.high;
}

/* What gnuplot's enhanced text would take for a mark gets a backslash. */
static void escape(char *to, size_t size, const char *text) {
  size_t used = 0;
  for (; *text && used + 3 < size; text++) {
    if (strchr("_^{}@&~\\", *text)) to[used++] = '\\';
    to[used++] = *text;
  }
  to[used] = 0;
}

/* "T^{1.99 +- 0.02}"; without the interval where it is nothing, or not known. */
static void exponent_label(char *text, size_t size, const char *length, interval exponent) {
  double half = format_half_width(exponent);
  int decimals = half >= 0.1 ? 1 : 2;
  double unit = pow(10, decimals), estimate = round(exponent.estimate * unit) / unit + 0.0;
  if (!isfinite(half))
    snprintf(text, size, "%s^{%.1f}", length, exponent.estimate);
  else if (half < 0.005)
    snprintf(text, size, "%s^{%.2f}", length, estimate);
  else
    snprintf(text, size, "%s^{%.*f±%.*f}", length, decimals, estimate, decimals, half);
}

static const result *longest_of(const report *report, picture_kind kind, int family) {
  const result *longest = NULL;
  for (size_t i = 0; i < report->result_count; i++) {
    const result *result = &report->results[i];
    if (result->family_index == family && is_drawn(kind, result) &&
        (!longest || result_length(result) > result_length(longest)))
      longest = result;
  }
  return longest;
}

/* What limits the longest: a share of its own type's peak, or of what is read. */
static double share_of(const picture *picture, const result *longest) {
  if (!longest || (picture->kind != RATE && picture->kind != ROOFLINE)) return NAN;
  const bool reads = picture->kind == ROOFLINE && result_limit_of(longest) == LIMIT_READS;
  return 100 * (reads ? longest->read_fraction : longest->peak_fraction);
}

/* "read L2" without its verb, which the picture's notes have. */
static const char *level_of(const result *result) {
  const char *space = strchr(result->read_level, ' ');
  return space ? space + 1 : result->read_level;
}

static void label_line(const picture *picture, plot_line *line, const char *name, int family) {
  const growth *growth = report_growth(picture->report, family);
  char escaped[PLOT_LABEL_BYTES - 72], more[64] = "";
  escape(escaped, sizeof escaped, name);
  if (picture->kind == TIME && growth && growth->has_time)
    exponent_label(more, sizeof more, sweep_axis_name(growth->swept), growth->time);
  if (picture->kind == WORKSPACE && growth && growth->has_workspace)
    exponent_label(more, sizeof more, sweep_axis_name(growth->swept), growth->workspace);
  const result *longest = longest_of(picture->report, picture->kind, family);
  const double share = share_of(picture, longest);
  const char *of = "";
  if (picture->kind == ROOFLINE && longest)
    of = result_limit_of(longest) == LIMIT_READS ? level_of(longest) : "peak";
  if (isfinite(share)) snprintf(more, sizeof more, "%.*f%%%s%s", share < 9.95, share, *of ? " of " : "", of);
  snprintf(line->label, sizeof line->label, "%s%s%s", escaped, *more ? "  " : "", more);
}

/* Of the roofline the longest alone. */
static bool is_of(const picture *picture, size_t family, const result *result) {
  const int index = picture->families->index[family];
  if (picture->kind == ROOFLINE) return result == longest_of(picture->report, ROOFLINE, index);
  return result->family_index == index && is_drawn(picture->kind, result);
}

static void find_lines(picture *picture) {
  const report *report = picture->report;
  for (size_t f = 0; f < picture->families->count; f++) {
    plot_line *line = &picture->lines[picture->count];
    size_t points = 0;
    for (size_t i = 0; i < report->result_count; i++) points += is_of(picture, f, &report->results[i]);
    begin_line(picture, line, points);
    for (size_t i = 0; i < report->result_count; i++) {
      const result *result = &report->results[i];
      if (is_of(picture, f, result))
        add_point(line, place_of(picture->kind, result), interval_of(picture->kind, result));
    }
    if (line->count == 0) continue;
    line->style = (int)(f % STYLES) + 1;
    line->turn = (int)(f / STYLES);
    label_line(picture, line, picture->families->names[f], picture->families->index[f]);
    picture->family_index[picture->count++] = picture->families->index[f];
  }
}

/* What the machine reaches, across the whole picture. */
static plot_line *begin_machine_line(picture *picture) {
  plot_line *line = &picture->lines[picture->count + picture->machine_count++];
  begin_line(picture, line, 2);
  line->style = STYLES + 1;
  line->count = 2;
  for (int p = 0; p < 2; p++) line->x[p] = line->y[p] = line->low[p] = line->high[p] = 0;
  return line;
}

static void add_rate_line(picture *picture, const machine_rate *rate, const char *what) {
  if (!rate || !(rate->median > 0)) return;
  plot_line *line = begin_machine_line(picture);
  char name[FORMAT_BYTES], median[FORMAT_BYTES];
  escape(name, sizeof name, rate->name);
  format_number(median, rate->median * 1e-9, 3);
  line->y[0] = line->y[1] = rate->median;
  snprintf(line->label, sizeof line->label, "%s%s  %s GFLOP/s", name, what, median);
}

/* Whether a point that is drawn is held to this rate; the memory's roof is drawn in any case. */
static bool is_roof(const picture *picture, const machine_rate *read) {
  const machine *machine = &picture->report->machine;
  bool is_one = read == &machine->reads[machine->read_count - 1];
  for (size_t f = 0; f < picture->families->count; f++) {
    const result *longest = longest_of(picture->report, ROOFLINE, picture->families->index[f]);
    is_one = is_one || (longest && strcmp(longest->read_level, read->name) == 0);
  }
  return is_one;
}

/* y[0] is the rate in bytes until the axes are known. */
static void add_roofs(picture *picture) {
  const machine *machine = &picture->report->machine;
  for (size_t n = 0; n < machine->read_count; n++) {
    if (!(machine->reads[n].median > 0) || !is_roof(picture, &machine->reads[n])) continue;
    if (picture->machine_count == PLOT_MAX_LABELS - PLOT_MAX_LINES) return; /* more than any machine has */
    plot_line *line = begin_machine_line(picture);
    char median[FORMAT_BYTES];
    format_number(median, machine->reads[n].median * 1e-9, 3);
    line->y[0] = machine->reads[n].median;
    snprintf(line->label, sizeof line->label, "%s  %s GB/s", machine->reads[n].name, median);
  }
}

static void add_machine_lines(picture *picture) {
  const report *report = picture->report;
  if (picture->kind != RATE && picture->kind != ROOFLINE) return;
  add_rate_line(picture, report_peak(report, ATTN_FLOAT32), " peak");
  add_rate_line(picture, picture_narrow_peak(report), " peak");
  if (picture->kind == RATE) add_rate_line(picture, &report->machine.sgemm, "");
  if (picture->kind == ROOFLINE) add_roofs(picture);
}

/* ---- axes ---- */

/* Below all others, a decade further down. */
static void place_zeros(picture *picture) {
  picture->zero = picture->axes.y_low / 10;
  picture->axes.y_low = picture->zero / 2.5;
  for (size_t i = 0; i < picture->count; i++)
    for (size_t p = 0; p < picture->lines[i].count; p++)
      if (picture->lines[i].y[p] == 0) picture->lines[i].y[p] = picture->zero;
}

/* The highest rate that is drawn as a line of its own. */
static double highest_peak(const report *report) {
  const machine_rate *peak = report_peak(report, ATTN_FLOAT32), *narrow = picture_narrow_peak(report);
  return fmax(peak ? peak->high : 0, narrow ? narrow->high : 0);
}

/* Where one peak is many times the other (AMX: 15), a linear axis would press all that is held to the lower one together. */
static bool peaks_are_far_apart(const report *report) {
  const machine_rate *peak = report_peak(report, ATTN_FLOAT32), *narrow = picture_narrow_peak(report);
  return peak && narrow && narrow->median > 4 * peak->median;
}

/* Of the points, with the ends of their intervals. */
static bool find_range(const picture *picture, plot_axes *axes) {
  bool zeros = false;
  for (size_t i = 0; i < picture->count; i++) {
    const plot_line *line = &picture->lines[i];
    for (size_t p = 0; p < line->count; p++) {
      axes->x_low = fmin(axes->x_low, line->x[p]);
      axes->x_high = fmax(axes->x_high, line->x[p]);
      if (line->y[p] > 0) axes->y_low = fmin(axes->y_low, line->low[p]);
      zeros = zeros || line->y[p] == 0;
      axes->y_high = fmax(axes->y_high, line->high[p]);
    }
  }
  return zeros;
}

/* Each roof rises to the highest peak, and all of them meet it within the picture. */
static void find_roofs(picture *picture) {
  plot_axes *axes = &picture->axes;
  const double peak = highest_peak(picture->report);
  for (size_t i = picture->count; i < picture->count + picture->machine_count; i++) {
    const plot_line *line = &picture->lines[i];
    if (line->y[1] > 0 || !(peak > 0)) continue;
    axes->x_low = fmin(axes->x_low, peak / line->y[0] / 2);
    axes->x_high = fmax(axes->x_high, peak / line->y[0] * 2);
  }
  axes->y_high = fmax(axes->y_high, peak);
}

static void place_machine_lines(picture *picture) {
  const plot_axes *axes = &picture->axes;
  const double peak = highest_peak(picture->report);
  for (size_t i = picture->count; i < picture->count + picture->machine_count; i++) {
    plot_line *line = &picture->lines[i];
    line->x[0] = axes->x_low;
    line->x[1] = axes->x_high;
    if (line->y[1] > 0) continue;
    const double read = line->y[0];
    line->x[1] = peak > 0 ? peak / read : axes->x_high;
    line->y[1] = read * line->x[1];
    line->x[0] = fmax(axes->x_low, 1.1 * axes->y_low / read);
    line->y[0] = read * line->x[0];
  }
}

static void find_axes(picture *picture) {
  plot_axes *axes = &picture->axes;
  const double scale = axes->scale;
  double widest = 0;
  const bool logarithmic = picture->kind != RATE || peaks_are_far_apart(picture->report);
  *axes = (plot_axes){INFINITY, 0, INFINITY, 0, logarithmic, 0, 0, scale};
  for (size_t i = 0; i < picture->count + picture->machine_count; i++)
    widest = fmax(widest, plot_label_width(axes, picture->lines[i].label));
  const bool zeros = find_range(picture, axes);
  if (picture->kind == ROOFLINE) find_roofs(picture);
  const bool single = axes->x_low == axes->x_high;
  axes->x_low /= single ? 2 : 1.2;
  axes->x_high *= single ? 2 : 1.2;
  if (picture->kind == ERROR) {
    axes->y_high = fmax(axes->y_high, 1);
    axes->y_low = fmin(axes->y_low, axes->y_high); /* nothing but zeros */
  }
  if (picture->kind == RATE) {
    axes->y_low = logarithmic ? axes->y_low / 1.5 : 0;
    axes->y_high = (logarithmic ? 1.5 : 1.1) * fmax(axes->y_high, highest_peak(picture->report));
  } else {
    /* Two decades at least, so that noise does not fill the picture. */
    double room = fmax(2.5, 10 / sqrt(axes->y_high / axes->y_low));
    axes->y_low /= room;
    axes->y_high *= room;
    if (zeros) place_zeros(picture);
  }
  place_machine_lines(picture);
  /* The labels' column takes what it needs on the right. */
  axes->left = 0.105 * scale;
  const double most = 0.965 - axes->left;
  axes->width = fmin(fmax(0.975 - axes->left - widest, 0.3), most);
}

/* Without one, time against pairs says no more than time against T. */
static bool shows_patterns(const picture *picture) {
  for (size_t f = 0; f < picture->families->count; f++) {
    const result *longest = longest_of(picture->report, PAIRS, picture->families->index[f]);
    if (longest && result_has_pattern(longest)) return true;
  }
  return false;
}

bool picture_make(picture *picture) {
  find_lines(picture);
  if (picture->count == 0 || (picture->kind == ROOFLINE && picture->report->machine.read_count == 0))
    return false;
  if (picture->kind == PAIRS && !shows_patterns(picture)) return false;
  add_machine_lines(picture);
  find_axes(picture);
  plot_place_labels(picture->lines, picture->count + picture->machine_count, &picture->axes);
  return true;
}

const char *picture_name(picture_kind kind) {
  static const char *const names[PICTURES] = {"time", "workspace", "flops", "error", "roofline", "pairs"};
  return names[kind];
}

size_t picture_numbers(const report *report) {
  return 4 * (report->result_count + (size_t)2 * (PLOT_MAX_LABELS - PLOT_MAX_LINES));
}

/* ---- what all points have in common ---- */

static const result *next_drawn(const picture *picture, const result *after) {
  const report *report = picture->report;
  for (const result *at = after ? after + 1 : report->results; at < report->results + report->result_count;
       at++)
    for (size_t f = 0; f < picture->families->count; f++)
      if (at->family_index == picture->families->index[f] && is_drawn(TIME, at)) return at;
  return NULL;
}

sweep_axis picture_axis(const picture *picture, bool *mixed) {
  const result *first = next_drawn(picture, NULL);
  *mixed = false;
  for (const result *at = first; at; at = next_drawn(picture, at))
    *mixed = *mixed || at->swept != first->swept;
  return *mixed || !first ? SWEPT_BOTH : first->swept;
}

int64_t picture_queries(const picture *picture) {
  const result *first = next_drawn(picture, NULL);
  for (const result *at = first; at; at = next_drawn(picture, at))
    if (at->swept != SWEPT_KEYS || at->workload.query_length != first->workload.query_length) return 0;
  return first ? first->workload.query_length : 0;
}

const char *picture_type(const picture *picture) {
  const result *first = next_drawn(picture, NULL);
  for (const result *at = first; at; at = next_drawn(picture, at))
    if (at->workload.type != first->workload.type) return NULL;
  if (!first) return NULL;
  return element_type_of(first->workload.type ? first->workload.type : ATTN_FLOAT32)->words;
}
