/* The command that repeats one point of a report: the variant on its problem, with the threads, the instruction set
 * and the seed that it had, and what of the run's own command line says where the variant is from. */
#include <stdio.h>
#include <string.h>

#include "html.h"
#include "page_parts.h"

enum { WORD_BYTES = 2048 };

/* A word as a shell reads it. */
static void put_word(FILE *out, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  fputc(' ', out);
  if (*word && strspn(word, plain) == strlen(word)) {
    html_text(out, word);
    return;
  }
  html_text(out, "'");
  for (; *word; word += strcspn(word, "'")) {
    if (*word == '\'') html_text(out, "'\\''"), word++;
    html_print(out, "%.*s", (int)strcspn(word, "'"), word);
  }
  html_text(out, "'");
}

/* The next word of a command line, in its quotes; its bytes, 0 at the end or where a quote does not end. */
static size_t word_bytes(const char *at) {
  const char *start = at;
  while (*at && *at != ' ') {
    const char quote = *at;
    if (quote == '\\' && at[1]) {
      at += 2;
    } else if (quote == '\'') {
      at = strchr(at + 1, quote);
      if (!at) return 0;
      at++;
    } else {
      at++;
    }
  }
  return (size_t)(at - start);
}

/* Whether the word is this option: 1 alone, 2 with the value behind '='; 0: it is another. */
static int is_option(const char *word, size_t bytes, const char *name) {
  const size_t length = strlen(name);
  if (bytes < length || strncmp(word, name, length) != 0) return 0;
  return bytes == length ? 1 : word[length] == '=' ? 2 : 0;
}

/* Options that say which kernels there are and on what they run; those with a '+' have a value. */
static void put_kept_options(const char *line, FILE *out) {
  static const char *const kept[] = {"+--plugin", "+--device", "--pin", "--isolate", "+--run-limit"};
  bool takes_next = false;
  while (*line) {
    line += strspn(line, " ");
    const size_t bytes = word_bytes(line);
    if (bytes == 0) return;
    bool keeps = takes_next;
    takes_next = false;
    for (size_t n = 0; n < sizeof kept / sizeof *kept && !keeps; n++) {
      const bool has_value = kept[n][0] == '+';
      const int is = is_option(line, bytes, kept[n] + has_value);
      keeps = is != 0;
      takes_next = is == 1 && has_value;
    }
    if (keeps) html_print(out, " %.*s", (int)bytes, line);
    line += bytes;
  }
}

void page_put_command(const report *report, const result *result, FILE *out) {
  const char *line = environment_fact(&report->environment, "command_line");
  char number[32];
  fputs("<code class=\"command\">", out);
  html_text(out, report->executable);
  fputs(" bench", out);
  if (line) put_kept_options(line, out);
  fputs(" --variant", out);
  put_word(out, result->variant);
  fputs(" --problem", out);
  put_word(out, result_problem(result->name));
  snprintf(number, sizeof number, "%d", result->threads);
  fputs(" --threads", out);
  put_word(out, number);
  if (result->isa[0]) {
    fputs(" --isa", out);
    put_word(out, result->isa);
  }
  snprintf(number, sizeof number, "%llu", (unsigned long long)report->seed);
  fputs(" --seed", out);
  put_word(out, number);
  if (report->cold) fputs(" --cold", out);
  fputs("</code>", out);
}
