/* See html.h. */
#define _GNU_SOURCE
#include "html.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the sound character of UTF-8 that text begins with; 0: there is none. Overlong forms, surrogates and what lies
 * beyond U+10FFFF are not sound (RFC 3629). */
static size_t character_bytes(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  const size_t bytes = at[0] < 0x80   ? 1
                       : at[0] < 0xC2 ? 0
                       : at[0] < 0xE0 ? 2
                       : at[0] < 0xF0 ? 3
                       : at[0] < 0xF5 ? 4
                                      : 0;
  for (size_t n = 1; n < bytes; n++)
    if ((at[n] & 0xC0) != 0x80) return 0;
  const bool overlong = (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xF0 && at[1] < 0x90);
  const bool beyond = (at[0] == 0xED && at[1] > 0x9F) || (at[0] == 0xF4 && at[1] > 0x8F);
  return overlong || beyond ? 0 : bytes;
}

static bool is_control(const char *text) {
  const unsigned char byte = (unsigned char)*text;
  if (byte == '\n' || byte == '\t') return false;
  return byte < 0x20 || byte == 0x7F || (byte == 0xC2 && (unsigned char)text[1] < 0xA0);
}

void html_text(FILE *out, const char *text) {
  while (*text) {
    const size_t bytes = character_bytes(text);
    if (bytes == 0 || is_control(text))
      fputs("\xEF\xBF\xBD", out);
    else if (*text == '&')
      fputs("&amp;", out);
    else if (*text == '<')
      fputs("&lt;", out);
    else if (*text == '>')
      fputs("&gt;", out);
    else if (*text == '"')
      fputs("&quot;", out);
    else if (*text == '\'')
      fputs("&#39;", out);
    else
      fwrite(text, 1, bytes, out);
    text += bytes ? bytes : 1;
  }
}

void html_print(FILE *out, const char *format, ...) {
  va_list arguments;
  char *text = NULL;
  va_start(arguments, format);
  if (vasprintf(&text, format, arguments) >= 0) html_text(out, text);
  va_end(arguments);
  free(text);
}

void html_name(FILE *out, const char *name) {
  while (*name) {
    const size_t bytes = strcspn(name, "/") + (name[strcspn(name, "/")] == '/');
    html_print(out, "%.*s", (int)bytes, name);
    name += bytes;
    if (*name) fputs("<wbr/>", out);
  }
}

void html_lines(FILE *out, const char *text, const char *before, const char *after) {
  while (*text) {
    const size_t bytes = strcspn(text, "\n");
    fputs(before, out);
    html_print(out, "%.*s", (int)bytes, text);
    fputs(after, out);
    fputc('\n', out);
    text += bytes + (text[bytes] == '\n');
  }
}

void html_table(FILE *out, const char *name, const char *const *heads, size_t count) {
  fputs("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"", out);
  html_text(out, name);
  fputs("\"><table class=\"sorts\"><thead><tr>", out);
  for (size_t n = 0; n < count; n++) {
    const bool is_number = heads[n][0] == '#';
    fprintf(out, "<th scope=\"col\"%s>", is_number ? " class=\"n\"" : "");
    html_text(out, heads[n] + is_number);
    fputs("</th>", out);
  }
  fputs("</tr></thead>\n<tbody>\n", out);
}

void html_table_end(FILE *out) { fputs("</tbody></table></div>\n", out); }

void html_number(FILE *out, double number, const char *text) {
  fputs("<td class=\"n\"", out);
  if (isfinite(number)) fprintf(out, " data-sort=\"%.9g\"", number);
  fputc('>', out);
  html_text(out, text);
  fputs("</td>", out);
}

void html_words(FILE *out, const char *text) {
  fputs("<td>", out);
  html_text(out, text);
  fputs("</td>", out);
}
