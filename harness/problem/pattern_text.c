/* See pattern_text.h. */
#include "pattern_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The terms of numbers: what each takes, in the order of attn_term_kind. */
static const struct {
  const char *name, *form;
  int least, most; /* numbers */
  bool may_be_sqrt, may_be_inf;
} kinds[] = {
    [ATTN_LOCAL] = {"local", "local:LEFT,RIGHT", 2, 2, true, true},
    [ATTN_FIRST] = {"first", "first:COUNT", 1, 1, true, false},
    [ATTN_GLOBAL] = {"global", "global:COUNT", 1, 1, true, false},
    [ATTN_DILATED] = {"dilated", "dilated:WIDTH,STEP", 2, 2, true, false},
    [ATTN_STRIDED] = {"strided", "strided:STEP", 1, 1, true, false},
    [ATTN_FIXED] = {"fixed", "fixed:LENGTH,COLUMNS", 2, 2, true, false},
    [ATTN_RANDOM] = {"random", "random:COUNT,BLOCK or random:COUNT,BLOCK,SEED", 2, 3, false, false},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

int pattern_term(attn_term_kind kind, const char **name) {
  *name = kinds[kind].name;
  return kinds[kind].most;
}

static bool is_count(const char *text) { return *text >= '0' && *text <= '9'; }

static bool read_number(workload_reading *r, int kind, const char *term, const char *text, int64_t *number) {
  *number = strcmp(text, "sqrt") == 0 ? WORKLOAD_SQRT : ATTN_UNLIMITED;
  if (*number == WORKLOAD_SQRT && kinds[kind].may_be_sqrt) return true;
  if (strcmp(text, "inf") == 0 && kinds[kind].may_be_inf) return true;
  char *end;
  if (is_count(text)) {
    *number = strtoll(text, &end, 10);
    if (*end == '\0' && *number < ATTN_FARTHEST) return true;
  }
  return wrong(r->to, "see:%s: '%s' is no whole number from 0%s%s: it is %s", term, text,
               kinds[kind].may_be_sqrt ? ", sqrt" : "", kinds[kind].may_be_inf ? " or inf" : "",
               kinds[kind].form);
}

static bool read_numbers(workload_reading *r, int kind, const char *term, char *text) {
  workload *w = &r->workload;
  int64_t numbers[3] = {0};
  int count = 0;
  for (char *rest = text, *item; (item = strsep(&rest, ",")); count++) {
    if (count == kinds[kind].most)
      return wrong(r->to, "see:%s has too many numbers: it is %s", term, kinds[kind].form);
    if (!read_number(r, kind, term, item, &numbers[count])) return false;
  }
  if (count < kinds[kind].least)
    return wrong(r->to, "see:%s has too few numbers: it is %s", term, kinds[kind].form);
  if (w->term_count < ATTN_MOST_TERMS)
    w->terms[w->term_count] = (attn_term){(attn_term_kind)kind, numbers[0], numbers[1], numbers[2]};
  w->term_count++; /* the problem is refused where these are too many */
  return true;
}

static bool read_term(workload_reading *r, char *term) {
  char whole[WORKLOAD_NAME_BYTES];
  snprintf(whole, sizeof whole, "%s", term);
  char *text = strchr(term, ':');
  if (text) *text++ = '\0';
  for (int kind = 0; kind < KINDS; kind++) {
    if (strcmp(kinds[kind].name, term) != 0) continue;
    if (!text) return wrong(r->to, "see:%s has no numbers: it is %s", whole, kinds[kind].form);
    return read_numbers(r, kind, whole, text);
  }
  if (strcmp(term, "docs") == 0) return pattern_read_documents(r, term, text ? text : "");
  if (strcmp(term, "blocks") == 0) return pattern_read_blocks(r, term, text ? text : "");
  if (strcmp(term, "topk") == 0) return pattern_read_topk(r, term, text ? text : "");
  return wrong(
      r->to,
      "see:%s is no term: there are local:L,R, first:G, global:G, dilated:W,S, strided:L, fixed:L,C, "
      "random:K,BLOCK, docs:LENGTH, blocks:BQ,BK and topk:K, joined by +",
      whole);
}

bool pattern_read_see(workload_reading *r, const char *key, const char *text) {
  char copy[WORKLOAD_NAME_BYTES];
  (void)key;
  r->workload.term_count = 0;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *rest = copy, *term; (term = strsep(&rest, "+"));)
    if (!read_term(r, term)) return false;
  return true;
}

void pattern_write_see(const workload *w, const char *key, workload_writing *to) {
  for (int n = 0; n < ATTN_MOST_TERMS && n < w->term_count; n++) {
    const attn_term *term = &w->terms[n];
    const int64_t numbers[] = {term->a, term->b, term->seed};
    const int kind = (int)term->kind, count = term->seed != 0 ? kinds[kind].most : kinds[kind].least;
    if (n == 0)
      words_add(to, "/%s:%s:", key, kinds[kind].name);
    else
      words_add(to, "+%s:", kinds[kind].name);
    for (int m = 0; m < count && m < 3; m++) {
      if (numbers[m] == WORKLOAD_SQRT || numbers[m] == ATTN_UNLIMITED)
        words_add(to, "%s%s", m ? "," : "", numbers[m] == WORKLOAD_SQRT ? "sqrt" : "inf");
      else
        words_add(to, "%s%" PRId64, m ? "," : "", numbers[m]);
    }
  }
}

bool pattern_read_documents(workload_reading *r, const char *key, const char *text) {
  char copy[WORKLOAD_NAME_BYTES];
  snprintf(copy, sizeof copy, "%s", text);
  char *rest = copy;
  const char *length = strsep(&rest, ",");
  r->workload.documents_shuffled = rest != NULL;
  if (!is_count(length) || !words_integer(r, key, length, &r->workload.document_length) ||
      r->workload.document_length < 1 || (rest && strcmp(rest, "shuffled") != 0))
    return wrong(r->to,
                 "'%s:%s': documents are docs:LENGTH, their mean length from 1, or docs:LENGTH,shuffled", key,
                 text);
  return true;
}

void pattern_write_documents(const workload *w, const char *key, workload_writing *to) {
  if (w->document_length > 0)
    words_add(to, "/%s:%" PRId64 "%s", key, w->document_length, w->documents_shuffled ? ",shuffled" : "");
}

bool pattern_read_blocks(workload_reading *r, const char *key, const char *text) {
  char copy[WORKLOAD_NAME_BYTES];
  snprintf(copy, sizeof copy, "%s", text);
  char *rest = copy, *sizes[2] = {strsep(&rest, ","), strsep(&rest, ",")};
  const char *density = rest ? strsep(&rest, ",") : "0.5", *axes = rest ? rest : "1";
  workload *w = &r->workload;
  if (!sizes[1] || !is_count(sizes[0]) || !is_count(sizes[1]) ||
      !words_integer(r, key, sizes[0], &w->block_q) || !words_integer(r, key, sizes[1], &w->block_k) ||
      w->block_q < 1 || w->block_k < 1)
    return wrong(r->to,
                 "'%s:%s': a block mask is blocks:BQ,BK,DENSITY,AXES: rows and keys of a block, from 1", key,
                 text);
  if (!words_double(r, key, density, &w->block_density)) return false;
  if (!(w->block_density >= 0 && w->block_density <= 1))
    return wrong(r->to, "'%s:%s': the density '%s' is the share of blocks that may be seen, 0 to 1", key,
                 text, density);
  if (!words_axes(r, key, axes, &w->blocks)) return false;
  if (w->blocks.query)
    return wrong(r->to, "'%s:%s': the axes of a block mask are b, h, bh or 1: it always varies over queries",
                 key, text);
  return true;
}

void pattern_write_blocks(const workload *w, const char *key, workload_writing *to) {
  if (!w->blocks.present) return;
  words_add(to, "/%s:%" PRId64 ",%" PRId64, key, w->block_q, w->block_k);
  char digits[32];
  for (int precision = 2; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, w->block_density);
    if (strtod(digits, NULL) == w->block_density) break;
  }
  if (w->block_density != 0.5 || w->blocks.batch || w->blocks.head) words_add(to, ",%s", digits);
  if (w->blocks.batch || w->blocks.head)
    words_add(to, ",%s%s", w->blocks.batch ? "b" : "", w->blocks.head ? "h" : "");
}

bool pattern_read_topk(workload_reading *r, const char *key, const char *text) {
  return (is_count(text) && words_integer(r, key, text, &r->workload.topk) && r->workload.topk > 0) ||
         wrong(r->to, "'%s:%s': listed keys are topk:K, from 1", key, text);
}

void pattern_write_topk(const workload *w, const char *key, workload_writing *to) {
  if (w->topk > 0) words_add(to, "/%s:%" PRId64, key, w->topk);
}
