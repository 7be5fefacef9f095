/* Names and places for the labels of a picture: a label stands at the end of its line, moved up or down
 * just far enough to leave its neighbours readable. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plot_labels.h"

/* At the size and font of scripts/plots/common.gp: heights as shares of the plot's, a letter's width as a
 * share of the picture's. */
static const double label_height = 0.042, letter_width = 0.0084, gap_to_line = 0.014;

double plot_share_x(const plot_axes *axes, double x) {
  return log(x / axes->x_low) / log(axes->x_high / axes->x_low);
}

double plot_share_y(const plot_axes *axes, double y) {
  if (axes->y_logarithmic) return log(y / axes->y_low) / log(axes->y_high / axes->y_low);
  return (y - axes->y_low) / (axes->y_high - axes->y_low);
}

static double scale_of(const plot_axes *axes) { return axes->scale > 0 ? axes->scale : 1; }

double plot_label_height(const plot_axes *axes) { return label_height * scale_of(axes); }

/* Letters that are seen: not the marks of enhanced text. */
double plot_label_width(const plot_axes *axes, const char *label) {
  size_t letters = 0;
  for (; *label; label++) letters += !strchr("{}^\\", *label) && ((unsigned char)*label & 0xC0) != 0x80;
  return (double)letters * letter_width * scale_of(axes);
}

/* Moves labels apart in height, wherever they stand in width: neighbours that overlap become a block, centred on where its labels
 * want to be; blocks that then overlap are merged in turn. They come sorted by wanted place, lowest
 * first. */
static void spread(plot_line **labels, size_t count, double height) {
  double centre[PLOT_MAX_LABELS];
  size_t size[PLOT_MAX_LABELS], blocks = 0;
  for (size_t i = 0; i < count; i++) {
    centre[blocks] = labels[i]->end_y;
    size[blocks++] = 1;
    for (;;) {
      /* Each block stays inside the plot, whatever its labels want. */
      size_t last = blocks - 1;
      double half = 0.5 * height * (double)size[last];
      centre[last] = fmin(fmax(centre[last], half), 1 - half);
      if (last == 0) break;
      double below = 0.5 * height * (double)size[last - 1];
      if (centre[last - 1] + below <= centre[last] - half) break;
      double sum = (double)(size[last - 1] + size[last]);
      centre[last - 1] =
          (centre[last - 1] * (double)size[last - 1] + centre[last] * (double)size[last]) / sum;
      size[last - 1] += size[last];
      blocks--;
    }
  }
  size_t next = 0;
  for (size_t block = 0; block < blocks; block++)
    for (size_t i = 0; i < size[block]; i++)
      labels[next++]->label_y = centre[block] + height * ((double)i - 0.5 * (double)(size[block] - 1));
}

/* Ties, as of lines that end in the same point, keep the order of the lines. */
static void sort_by_end(plot_line **labels, size_t count) {
  for (size_t i = 1; i < count; i++) {
    plot_line *line = labels[i];
    size_t j = i;
    for (; j > 0 && labels[j - 1]->end_y > line->end_y; j--) labels[j] = labels[j - 1];
    labels[j] = line;
  }
}

/* Whether another line passes through the place of this label. */
static bool is_crossed(const plot_line *label, const plot_line *lines, size_t count, const plot_axes *axes) {
  double left = label->end_x, right = label->label_x + plot_label_width(axes, label->label) / axes->width;
  for (size_t i = 0; i < count; i++) {
    const plot_line *line = &lines[i];
    /* A label on the right is led to from the end of its line. */
    bool is_led = line != label && line->label_x > 1 && line->end_x < right;
    if (is_led && fabs(line->end_y - label->label_y) < 0.6 * plot_label_height(axes)) return true;
    for (size_t p = 1; line != label && p < line->count; p++) {
      double x0 = plot_share_x(axes, line->x[p - 1]), x1 = plot_share_x(axes, line->x[p]);
      double y0 = plot_share_y(axes, line->y[p - 1]), y1 = plot_share_y(axes, line->y[p]);
      double from = fmax(x0, left), to = fmin(x1, right);
      if (from >= to) continue;
      double at_from = y0 + (y1 - y0) * (from - x0) / (x1 - x0),
             at_to = y0 + (y1 - y0) * (to - x0) / (x1 - x0);
      if (fmin(at_from, at_to) < label->label_y + 0.6 * plot_label_height(axes) &&
          fmax(at_from, at_to) > label->label_y - 0.6 * plot_label_height(axes))
        return true;
    }
  }
  return false;
}

static void spread_labels(plot_line *lines, size_t count, const plot_axes *axes, bool on_the_right) {
  plot_line *labels[PLOT_MAX_LABELS];
  size_t members = 0;
  for (size_t i = 0; i < count; i++)
    if ((lines[i].label_x > 1) == on_the_right) labels[members++] = &lines[i];
  sort_by_end(labels, members);
  spread(labels, members, plot_label_height(axes));
}

void plot_place_labels(plot_line *lines, size_t count, const plot_axes *axes) {
  const double right = 1 + gap_to_line;
  for (size_t i = 0; i < count; i++) {
    lines[i].end_x = plot_share_x(axes, lines[i].x[lines[i].count - 1]);
    lines[i].end_y = plot_share_y(axes, lines[i].y[lines[i].count - 1]);
    lines[i].label_x = lines[i].end_x + gap_to_line;
    if (lines[i].label_x + plot_label_width(axes, lines[i].label) / axes->width > 0.99)
      lines[i].label_x = right;
  }
  /* A label that another line would cross moves to the column on the right; the others then have more room. */
  for (bool moved = true; moved;) {
    moved = false;
    spread_labels(lines, count, axes, false);
    for (size_t i = 0; i < count && !moved; i++)
      if (lines[i].label_x <= 1 && is_crossed(&lines[i], lines, count, axes)) {
        lines[i].label_x = right;
        moved = true;
      }
  }
  spread_labels(lines, count, axes, true);
}

/* ---- names ---- */

static bool next_part(const char **text, char part[64]) {
  if (**text == 0) return false;
  size_t length = strcspn(*text, "/");
  snprintf(part, 64, "%.*s", (int)(length < 63 ? length : 63), *text);
  *text += length + ((*text)[length] == '/');
  return true;
}

static bool has_part(const char *family, const char *wanted) {
  char part[64];
  while (next_part(&family, part))
    if (strcmp(part, wanted) == 0) return true;
  return false;
}

static bool same_variant(const char *a, const char *b) {
  size_t length = strcspn(a, "/");
  return length == strcspn(b, "/") && strncmp(a, b, length) == 0;
}

static void append(char *text, size_t size, const char *more) {
  size_t used = strlen(text);
  if (used < size) snprintf(text + used, size - used, "%s", more);
}

/* "Hkv:8" is read as "Hkv 8". */
static void append_part(char *text, size_t size, const char *separator, const char *part) {
  char said[64];
  snprintf(said, sizeof said, "%s", part);
  char *colon = strchr(said, ':');
  if (colon) *colon = ' ';
  append(text, size, separator);
  append(text, size, said);
}

void plot_name_families(const char *const *families, size_t count, char names[][PLOT_LABEL_BYTES]) {
  for (size_t i = 0; i < count; i++) {
    const char *rest = families[i];
    char part[64];
    names[i][0] = 0;
    if (next_part(&rest, part)) append(names[i], PLOT_LABEL_BYTES, part);
    while (next_part(&rest, part)) {
      bool tells = false;
      for (size_t j = 0; j < count; j++)
        tells = tells || (same_variant(families[i], families[j]) && !has_part(families[j], part));
      if (tells) append_part(names[i], PLOT_LABEL_BYTES, " ", part);
    }
  }
}

static size_t families_with(const char *const *families, size_t count, const char *part) {
  size_t with = 0;
  for (size_t i = 0; i < count; i++) with += has_part(families[i], part);
  return with;
}

/* What the name says already needs no second word. */
static bool name_says(const char *name, const char *part) {
  char said[64];
  snprintf(said, sizeof said, "%s", part);
  if (strchr(said, ':')) *strchr(said, ':') = ' ';
  return strstr(name, said) != NULL;
}

static bool names_say(const char *const *families, char names[][PLOT_LABEL_BYTES], size_t count,
                      const char *part) {
  for (size_t i = 0; i < count; i++)
    if (has_part(families[i], part) && !name_says(names[i], part)) return false;
  return true;
}

/* Parts that more than half of the families have, but for what their names tell them from the others by. */
void plot_common_parts(const char *const *families, char names[][PLOT_LABEL_BYTES], size_t count, char *text,
                       size_t size) {
  char part[64], seen[512] = "";
  text[0] = 0;
  for (size_t i = 0; i < count; i++) {
    const char *rest = families[i];
    next_part(&rest, part);
    while (next_part(&rest, part)) {
      const size_t with = families_with(families, count, part);
      if (has_part(seen, part) || 2 * with <= count) continue;
      if (with < count && names_say(families, names, count, part)) continue;
      append(seen, sizeof seen, "/");
      append(seen, sizeof seen, part);
      append_part(text, size, *text ? ", " : "", part);
    }
  }
}

void plot_special_parts(const char *const *families, char names[][PLOT_LABEL_BYTES], size_t count, char *text,
                        size_t size) {
  text[0] = 0;
  for (size_t i = 0; i < count; i++) {
    const char *rest = families[i];
    char variant[64], part[64];
    bool named = false;
    next_part(&rest, variant);
    while (next_part(&rest, part)) {
      if (2 * families_with(families, count, part) > count || strcmp(part, variant) == 0) continue;
      if (name_says(names[i], part)) continue;
      if (!named) {
        append(text, size, *text ? "; " : "");
        append(text, size, names[i]);
      }
      append_part(text, size, named ? ", " : " ", part);
      named = true;
    }
  }
}
