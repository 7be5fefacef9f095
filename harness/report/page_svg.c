/* See page_svg.h. Tags are read one by one and written again; what is not known is left out, or ends it: a picture may come from
 * somebody's own scripts (--scripts), and may neither fetch anything nor run anything. */
#define _GNU_SOURCE
#include "page_svg.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "html.h"

/* Colours of scripts/plots, and what the page calls them (page.css). */
static const struct named_colour {
  unsigned rgb;
  const char *name;
} colours[] = {{0x000000, "c1"},   {0xD55E00, "c2"},   {0x0072B2, "c3"},   {0x009E73, "c4"},
               {0xCC79A7, "c5"},   {0xE69F00, "c6"},   {0x56B4E9, "c7"},   {0x7F7F7F, "c8"},
               {0x882255, "c9"},   {0x999933, "c10"},  {0x444444, "c11"},  {0x555555, "soft"},
               {0x666666, "soft"}, {0x888888, "soft"}, {0xDDDDDD, "rule"}, {0xE0E0E0, "rule"},
               {0xFFFFFF, "paper"}};

static const char *const elements[] = {"svg",         "g",        "defs",     "path",           "rect",
                                       "circle",      "ellipse",  "use",      "text",           "tspan",
                                       "polygon",     "line",     "polyline", "filter",         "feFlood",
                                       "feComposite", "clipPath", "pattern",  "linearGradient", "stop"};

typedef struct rewriting {
  FILE *out;
  const char *name, *title;
  bool keeps_colours;
  bool has_own_colours; /* found: one that the page has no name for */
  bool begun;           /* the outermost tag is written */
} rewriting;

/* ---- attributes ---- */

/* "rgb( 85,  85,  85)". */
static bool parts_number(const char *text, unsigned *rgb) {
  static const char start[] = "rgb(";
  if (strncmp(text, start, strlen(start)) != 0) return false;
  text += strlen(start);
  *rgb = 0;
  for (int part = 0; part < 3; part++) {
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    if (end == text || value > 255 || *end != (part < 2 ? ',' : ')')) return false;
    *rgb = *rgb << 8 | (unsigned)value;
    text = end + 1;
  }
  return true;
}

static bool colour_number(const char *value, size_t bytes, unsigned *rgb) {
  char text[32];
  if (bytes >= sizeof text) return false;
  memcpy(text, value, bytes);
  text[bytes] = '\0';
  if (parts_number(text, rgb)) return true;
  if (text[0] == '#' && bytes == 7)
    *rgb = (unsigned)strtoul(text + 1, NULL, 16);
  else if (strcmp(text, "black") == 0)
    *rgb = 0;
  else if (strcmp(text, "gray") == 0)
    *rgb = 0x7F7F7F;
  else if (strcmp(text, "lightgrey") == 0)
    *rgb = 0xDDDDDD;
  else
    return false;
  return true;
}

/* False where it is no colour, or one to be kept. */
static bool put_colour(rewriting *to, const char *value, size_t bytes) {
  unsigned rgb;
  if (to->keeps_colours || !colour_number(value, bytes, &rgb)) return false;
  for (size_t n = 0; n < sizeof colours / sizeof *colours; n++)
    if (colours[n].rgb == rgb) {
      fprintf(to->out, "var(--%s)", colours[n].name);
      return true;
    }
  to->has_own_colours = true;
  return false;
}

/* With the picture's name in front of each id that it refers to: behind the '#' of a link, or of url(#id). */
static void put_references(const rewriting *to, const char *value, size_t bytes, bool is_link) {
  for (size_t n = 0; n < bytes; n++) {
    const bool refers = value[n] == '#' && (n == 0 ? is_link : value[n - 1] == '(');
    fputc(value[n], to->out);
    if (refers) fprintf(to->out, "%s-", to->name);
  }
}

static bool is_named(const char *at, size_t bytes, const char *name) {
  return bytes == strlen(name) && strncmp(at, name, bytes) == 0;
}

static bool is_left_out(const rewriting *to, const char *at, size_t bytes, const char *value,
                        size_t value_bytes) {
  const bool is_link = is_named(at, bytes, "href") || is_named(at, bytes, "xlink:href");
  const bool is_size = is_named(at, bytes, "width") || is_named(at, bytes, "height");
  const char *url = memmem(value, value_bytes, "url(", 4);
  return (bytes > 2 && strncasecmp(at, "on", 2) == 0) || (bytes >= 5 && strncmp(at, "xmlns", 5) == 0) ||
         is_named(at, bytes, "style") || is_named(at, bytes, "class") || is_named(at, bytes, "xml:space") ||
         (is_size && !to->begun) || (is_link && value[0] != '#') || (url && url[4] != '#') ||
         memchr(value, '<', value_bytes);
}

static void put_attribute(rewriting *to, const char *at, size_t bytes, const char *value,
                          size_t value_bytes) {
  if (is_left_out(to, at, bytes, value, value_bytes)) return;
  const bool is_old_link = is_named(at, bytes, "xlink:href"),
             is_link = is_old_link || is_named(at, bytes, "href");
  const char quote = memchr(value, '"', value_bytes) ? '\'' : '"';
  fprintf(to->out, " %.*s=%c", is_old_link ? 4 : (int)bytes, is_old_link ? "href" : at, quote);
  if (is_named(at, bytes, "id")) fprintf(to->out, "%s-", to->name);
  const bool has_colour = is_named(at, bytes, "fill") || is_named(at, bytes, "stroke") ||
                          is_named(at, bytes, "color") || is_named(at, bytes, "flood-color") ||
                          is_named(at, bytes, "stop-color");
  if (!has_colour || !put_colour(to, value, value_bytes)) put_references(to, value, value_bytes, is_link);
  fputc(quote, to->out);
}

/* What stands between the name of a tag and its end; NULL where it is not sound. */
static const char *put_attributes(rewriting *to, const char *at) {
  for (;;) {
    at += strspn(at, " \t\r\n");
    if (*at == '>' || (*at == '/' && at[1] == '>')) return at;
    const size_t bytes = strcspn(at, " \t\r\n=<>/\"'");
    const char *value = at + bytes + strspn(at + bytes, " \t\r\n");
    if (bytes == 0 || *value != '=') return NULL;
    value++;
    value += strspn(value, " \t\r\n");
    if (*value != '"' && *value != '\'') return NULL;
    const char *end = strchr(value + 1, *value);
    if (!end) return NULL;
    put_attribute(to, at, bytes, value + 1, (size_t)(end - value - 1));
    at = end + 1;
  }
}

/* ---- tags ---- */

/* What opens the picture. */
static void put_names(rewriting *to) {
  fprintf(to->out, " class=\"plot%s\" role=\"img\" aria-labelledby=\"%s-title\"",
          to->keeps_colours ? " own" : "", to->name);
}

static bool is_element(const char *at, size_t bytes) {
  for (size_t n = 0; n < sizeof elements / sizeof *elements; n++)
    if (is_named(at, bytes, elements[n])) return true;
  return false;
}

/* Behind the tag that begins here, which is not of ours; of a title, behind all of it. NULL: it does not end. */
static const char *skip(const char *at) {
  static const char *const pairs[][2] = {
      {"<?", "?>"}, {"<!--", "-->"}, {"<!", ">"}, {"<title", "</title>"}, {"<desc", "</desc>"}};
  for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
    if (strncmp(at, pairs[n][0], strlen(pairs[n][0])) != 0) continue;
    const char *end = strstr(at, pairs[n][1]);
    return end ? end + strlen(pairs[n][1]) : NULL;
  }
  return at;
}

/* Behind the tag; NULL where it is none that may stand here. */
static const char *put_tag(rewriting *to, const char *at, int *depth) {
  const bool closes = at[1] == '/';
  const char *name = at + 1 + closes;
  const size_t bytes = strcspn(name, " \t\r\n/>");
  const bool opens_all = !to->begun;
  if (!is_element(name, bytes) || (opens_all && (closes || !is_named(name, bytes, "svg")))) return NULL;
  fprintf(to->out, "<%s%.*s", closes ? "/" : "", (int)bytes, name);
  if (opens_all) put_names(to);
  const char *end =
      closes ? name + bytes + strspn(name + bytes, " \t\r\n") : put_attributes(to, name + bytes);
  if (!end || (closes && *end != '>')) return NULL;
  to->begun = true;
  const bool is_empty = *end == '/';
  fputs(is_empty ? "/>" : ">", to->out);
  if (opens_all) {
    fprintf(to->out, "<title id=\"%s-title\">", to->name);
    html_text(to->out, to->title);
    fputs("</title>", to->out);
  }
  *depth += closes ? -1 : !is_empty;
  return end + 1 + is_empty;
}

/* False where the picture is not sound. */
static bool rewrite(rewriting *to, const char *at) {
  int depth = 0;
  while (*at) {
    if (*at != '<') {
      const size_t bytes = strcspn(at, "<");
      if (to->begun && depth > 0) fwrite(at, 1, bytes, to->out);
      at += bytes;
      continue;
    }
    const char *next = skip(at);
    if (next == at) next = put_tag(to, at, &depth);
    if (!next || depth < 0) return false;
    at = next;
  }
  return to->begun && depth == 0;
}

/* The picture as text, for the caller to free; NULL where it is not sound. */
static char *rewritten(rewriting *how, const char *svg) {
  char *text = NULL;
  size_t size = 0;
  how->out = open_memstream(&text, &size);
  how->begun = false;
  const bool good = how->out && rewrite(how, svg);
  if (how->out && fclose(how->out) == 0 && good) return text;
  free(text);
  return NULL;
}

bool page_svg(FILE *out, const char *svg, const char *name, const char *title) {
  rewriting how = {.name = name, .title = title};
  char *text = rewritten(&how, svg);
  if (text && how.has_own_colours) {
    free(text);
    how.keeps_colours = true;
    text = rewritten(&how, svg);
  }
  if (text) fputs(text, out);
  const bool good = text != NULL;
  free(text);
  return good;
}
