/* What a hint says. */
#ifndef ATTN_HARNESS_HINT_WORDS_H
#define ATTN_HARNESS_HINT_WORDS_H

/* All kinds that there are. */
#define HINT_KINDS                                                                                           \
  "alignment, band, bias, columns, dropout, empty, features, function, heads, hidden, keys, lengths, lse,\n" \
  "mask, maximum, pattern, precision, rows, scale, sink, softcap, state, sum"

enum { HINT_KIND_BYTES = 16, HINT_WORDS_BYTES = 256 };

typedef struct hint {
  char kind[HINT_KIND_BYTES];   /* a word: scale, heads, keys ...; empty: nothing suggests itself */
  char words[HINT_WORDS_BYTES]; /* a sentence without its full stop */
} hint;

#endif
