/* See captions.h. */
#define _GNU_SOURCE
#include "captions.h"

#include <stdio.h>
#include <string.h>

#include "format.h"

enum { CAPTION_BYTES = 2048 };

static const struct caption_text {
  const char *title, *note;
} texts[PICTURES] = {
    {"Time",
     "Bars: 95% intervals of the medians. Lines with an exponent are fits, with 95% intervals. Other lines "
     "join the points."},
    {"Memory",
     "Touched workspace, stacks, static data and hidden mappings, summed. Exponents: of the workspace asked "
     "for, which is all that is known of what was not run."},
    {"Rate",
     "Bars: 95% intervals. Operations on visible pairs only. Labels: share of the peak at the longest "
     "length."},
    {"Worst error", "As a share of the bound computed from the input. Above 1, a result is wrong."},
    {"Roofline",
     "Each variant at its longest length, with its 95% interval. Labels: the share that limits. Bytes: each "
     "input and output moved once."},
    {"Time and pairs",
     "Each point is a length. Where nothing is computed in vain the points of all patterns lie on "
     "one line of "
     "slope 1. Bars: 95% intervals."}};

void caption_string(FILE *out, const char *name, const char *text) {
  fprintf(out, "%s = '", name);
  for (; *text; text++) {
    if (*text == '\'') fputc('\'', out);
    fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
  }
  fputs("'\n", out);
}

/* Letters of UTF-8 up to `bytes`. */
static size_t letters_in(const char *text, size_t bytes) {
  size_t letters = 0;
  for (size_t n = 0; n < bytes && text[n]; n++) letters += ((unsigned char)text[n] & 0xC0) != 0x80;
  return letters;
}

/* Bytes of the text that make a line of at most so many letters: up to a space, where there is one. */
static size_t line_bytes(const char *text, size_t most) {
  if (letters_in(text, strlen(text)) <= most) return strlen(text);
  size_t space = 0, bytes = 0;
  for (; letters_in(text, bytes + 1) <= most; bytes++)
    if (text[bytes] == ' ') space = bytes;
  return space ? space : bytes;
}

typedef struct caption_writer {
  FILE *out;
  size_t letters, lines;
} caption_writer;

/* Over as many lines as it takes. */
static void put_caption(caption_writer *to, const char *text, const char *colour) {
  char line[CAPTION_BYTES], name[32];
  while (*text && to->lines < CAPTIONS_MOST) {
    const size_t bytes = line_bytes(text, to->letters);
    snprintf(line, sizeof line, "%.*s", (int)bytes, text);
    snprintf(name, sizeof name, "caption[%zu]", ++to->lines);
    caption_string(to->out, name, line);
    snprintf(name, sizeof name, "caption_colour[%zu]", to->lines);
    caption_string(to->out, name, colour);
    text += bytes;
    text += strspn(text, " ");
  }
}

/* "Time against key length, Tq = 1". */
static void write_title(const picture *picture, char title[CAPTION_BYTES]) {
  bool mixed;
  const sweep_axis axis = picture_axis(picture, &mixed);
  const int64_t queries = picture_queries(picture);
  const char *what = texts[picture->kind].title;
  const char *against = mixed                    ? "the length that is swept"
                        : axis == SWEPT_KEYS     ? "key length"
                        : axis == SWEPT_QUERIES  ? "query length"
                        : axis == SWEPT_BATCH    ? "batch"
                        : axis == SWEPT_HEAD_DIM ? "head dimension"
                                                 : "sequence length";
  char of[48] = "";
  if (queries > 0) snprintf(of, sizeof of, ", Tq = %lld", (long long)queries);
  if (picture->kind == ROOFLINE)
    snprintf(title, CAPTION_BYTES, "%s: rate against operations for each byte%s", what, of);
  else if (picture->kind == PAIRS)
    snprintf(title, CAPTION_BYTES, "Time against pairs that are seen");
  else
    snprintf(title, CAPTION_BYTES, "%s against %s%s", what, against, of);
}

static void write_axis(const picture *picture, char text[CAPTION_BYTES]) {
  bool mixed;
  const sweep_axis axis = picture_axis(picture, &mixed);
  const int64_t queries = picture_queries(picture);
  if (picture->kind == ROOFLINE)
    snprintf(text, CAPTION_BYTES, "operations for each byte (FLOP/byte)");
  else if (picture->kind == PAIRS)
    snprintf(text, CAPTION_BYTES, "pairs of a query and a key that it sees, of all heads");
  else if (mixed)
    snprintf(text, CAPTION_BYTES,
             "what is swept: T, Tk where Tq stays, Tq where Tk stays, B or D where lengths stay");
  else if (axis == SWEPT_KEYS && queries > 0)
    snprintf(text, CAPTION_BYTES, "key length Tk (tokens), Tq = %lld", (long long)queries);
  else if (axis >= SWEPT_BATCH)
    snprintf(text, CAPTION_BYTES, "%s", axis == SWEPT_BATCH ? "batch B" : "head dimension D");
  else
    snprintf(text, CAPTION_BYTES, "%s (tokens)",
             axis == SWEPT_KEYS      ? "key length Tk"
             : axis == SWEPT_QUERIES ? "query length Tq"
                                     : "sequence length T");
}

const char *caption_title(picture_kind kind) { return texts[kind].title; }

const char *caption_note(picture_kind kind) { return texts[kind].note; }

void caption_shapes(const report *report, const families *families, char *text, size_t size) {
  const picture picture = {.report = report, .families = families};
  char common[512], special[512], names[PLOT_MAX_LINES][PLOT_LABEL_BYTES];
  const char *type = picture_type(&picture);
  memcpy(names, families->names, sizeof names);
  plot_common_parts(families->text, names, families->count, common, sizeof common);
  plot_special_parts(families->text, names, families->count, special, sizeof special);
  snprintf(text, size, "%s, %s%s%s%s", common, type ? type : "float32 where nothing else is said",
           *special ? " (" : "", special, *special ? ")" : "");
}

/* All that report_warnings says, in one line; "" where nothing disturbed. */
static void write_disturbance(const report *report, char text[CAPTION_BYTES]) {
  FILE *lines = fmemopen(text, CAPTION_BYTES, "w");
  text[0] = '\0';
  if (!lines) return;
  fputs("Disturbed:", lines);
  report_warnings(report, " ", lines);
  fclose(lines);
  size_t kept = 0; /* each warning begins with the space between it and the one before */
  for (const char *at = text; *at; at++)
    if (*at != '\n') text[kept++] = *at;
  text[kept] = '\0';
  if (!strchr(text, ' ')) text[0] = '\0';
}

/* Of several hosts, which are told apart by their names, what each is. */
static void write_machine(const report *report, char text[CAPTION_BYTES]) {
  const machine *machine = &report->machine;
  size_t used = 0;
  if (strcmp(machine->host, "several") != 0 || report->run_count == 0) {
    snprintf(text, CAPTION_BYTES, "%s, %d thread%s, %s", machine->cpu, machine->threads,
             machine->threads == 1 ? "" : "s", report->isa);
    return;
  }
  for (size_t n = 0; n < report->run_count && used < CAPTION_BYTES; n++) {
    const merged_run *run = &report->runs[n];
    bool is_first = true;
    for (size_t before = 0; before < n; before++)
      is_first = is_first && strcmp(report->runs[before].host, run->host) != 0;
    if (is_first)
      used += (size_t)snprintf(text + used, CAPTION_BYTES - used, "%s%s: %s, %d thread%s, %s",
                               used ? "; " : "", run->host, run->machine.cpu, run->machine.threads,
                               run->machine.threads == 1 ? "" : "s", run->isa);
  }
}

/* All but the title and what the axis is called. */
static void put_notes(caption_writer *to, const picture *picture) {
  static const char grey[] = "#555555", red[] = "#B03000";
  const families *families = picture->families;
  char text[CAPTION_BYTES];
  write_machine(picture->report, text);
  put_caption(to, text, grey);
  write_disturbance(picture->report, text);
  put_caption(to, text, red);
  caption_shapes(picture->report, families, text, sizeof text);
  put_caption(to, text, grey);
  const bool says_nothing = picture->kind == TIME && picture->report->growth_count == 0;
  int used = 0;
  if (families->left_out > 0)
    used = snprintf(text, sizeof text, "Drawn: the first %zu of %zu families. ", families->count,
                    families->count + families->left_out);
  snprintf(text + used, sizeof text - (size_t)used, "%s",
           says_nothing ? "Bars: 95% intervals of the medians." : texts[picture->kind].note);
  put_caption(to, text, grey);
}

void captions_put(FILE *out, const picture *picture, const plot_style *style) {
  const double scale = picture->axes.scale;
  char text[CAPTION_BYTES], title[CAPTION_BYTES];
  caption_writer to = {.out = out, .letters = (size_t)((0.965 - picture->axes.left) / (0.0069 * scale))};
  write_title(picture, title);
  caption_string(out, "title", style->bare ? "" : style->title ? style->title : title);
  if (style->title && !style->bare) put_caption(&to, title, "#555555");
  if (!style->bare) put_notes(&to, picture);
  write_axis(picture, text);
  caption_string(out, "x_title", text);
  fprintf(out, "captions = %zu\n", to.lines);
}

void captions_put_lines(FILE *out, size_t letters, const char *const *lines, size_t count) {
  caption_writer to = {.out = out, .letters = letters};
  for (size_t n = 0; n < count; n++) put_caption(&to, lines[n], "#555555");
  fprintf(out, "captions = %zu\n", to.lines);
}
