/* What `attnbench show` gives: who sees whom in one head of a problem, and with what weight; in letters, and as pictures. */
#ifndef ATTN_HARNESS_SHOW_H
#define ATTN_HARNESS_SHOW_H

#include "report.h"
#include "show_text.h"

/* One pair after the other is asked for, so there is a limit: of pairs, of tiles, and of multiply-adds for the scores. */
#define SHOW_MOST_PAIRS (INT64_C(1) << 32)
#define SHOW_MOST_TILES (INT64_C(1) << 22)
#define SHOW_MOST_PRODUCTS (INT64_C(1) << 34)

typedef struct show_request {
  const char *problem; /* a line, or the name of a preset */
  int64_t batch, head;
  const char *tile;   /* "64x64": queries x keys */
  bool weights;       /* these too */
  const char *folder; /* for pictures, or NULL */
  plot_style style;
} show_request;

/* False, with the reason in words; letters may have been printed by then, where only pictures failed. */
bool show_problem(const show_request *request, const show_paper *paper, char *why, size_t why_size);

#endif
