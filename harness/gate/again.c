/* The command that runs a part of the gate again. */
#include <string.h>

#include "base/text.h"
#include "gate.h"

/* One word of a shell's line. */
static void put_word(const char *word, FILE *out) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,+=%@-";
  if (*word && strspn(word, plain) == strlen(word))
    fputs(word, out);
  else
    text_put_quoted(word, out);
}

static void put_all(const char *option, const char *const *words, size_t count, FILE *out) {
  for (size_t n = 0; n < count; n++) {
    fprintf(out, "%s ", option);
    put_word(words[n], out);
    fputc(' ', out);
  }
}

/* A script knows both sides; what else it handed on is said again. */
void gate_put_again(const gate_options *options, const char *more, FILE *out) {
  const char *place = options->again ? strrchr(options->again, '%') : NULL;
  if (place) {
    fprintf(out, "%.*s", (int)(place - options->again), options->again);
  } else {
    fputs("attnbench gate ", out);
    put_all("--base", options->bases, options->base_count, out);
    put_all("--head", options->heads, options->head_count, out);
  }
  put_all("--variant", options->variants, options->variant_count, out);
  put_all("--problem", options->problems, options->problem_count, out);
  fprintf(out, "%s%s", more, place ? place + 1 : "");
}
