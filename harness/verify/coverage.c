/* See coverage.h. */
#include "coverage.h"

#include <inttypes.h>
#include <math.h>

#include "problem/types.h"

static const char *const size_names[COVERAGE_SIZES] = {"B", "H", "Hkv", "Tq", "Tk", "D", "Dv", "M"};
enum { SIZE_B, SIZE_H, SIZE_HKV, SIZE_TQ, SIZE_TK, SIZE_D, SIZE_DV, SIZE_M };

static void note_size(coverage_size *to, bool is_first, int64_t value) {
  if (is_first || value < to->least) to->least = value;
  if (is_first || value > to->most) to->most = value;
  for (int n = 0; n < to->values && n < COVERAGE_VALUES; n++)
    if (to->of[n] == value) return;
  if (to->values >= COVERAGE_VALUES) {
    to->values = COVERAGE_VALUES + 1;
    return;
  }
  to->values++;
  int place = to->values - 1;
  for (; place > 0 && to->of[place - 1] > value; place--) to->of[place] = to->of[place - 1];
  to->of[place] = value;
}

/* float32, then the narrow types, then these with an output of float32. */
static int type_of(const workload *w) {
  if (!element_type_is_narrow(w->type)) return 0;
  return (w->type == ATTN_BFLOAT16 ? 1 : 2) + (w->output_type == ATTN_FLOAT32 ? 2 : 0);
}

void coverage_add(coverage *to, const workload *w, bool fitted) {
  const int64_t sizes[COVERAGE_SIZES] = {w->batch,      w->query_heads, w->kv_heads,  w->query_length,
                                         w->key_length, w->head_dim,    w->value_dim, w->model_dim};
  const attn_problem problem = workload_problem(w);
  for (int n = 0; n < COVERAGE_SIZES; n++) note_size(&to->sizes[n], to->problems == 0, sizes[n]);
  for (int n = 0; n < FEATURES; n++)
    to->with[n] += feature_table[n].bit ? feature_is_used(&feature_table[n], &problem) : 0;
  to->layouts[w->layout]++;
  to->types[type_of(w)]++;
  to->fills[w->fill]++;
  to->grouped += w->query_heads > w->kv_heads && w->kv_heads > 1;
  to->square += w->query_length == w->key_length;
  to->causal += w->right == 0 && w->left == ATTN_UNLIMITED;
  to->problems++;
  to->fitted += fitted;
}

/* ---- in words ---- */

static void print_size(const coverage_size *size, const char *name, FILE *out) {
  fprintf(out, "%s ", name);
  if (size->values > COVERAGE_VALUES) {
    fprintf(out, "%" PRId64 " to %" PRId64, size->least, size->most);
    return;
  }
  for (int n = 0; n < size->values; n++)
    fprintf(out, "%s%" PRId64, n == 0 ? "" : n + 1 == size->values ? " or " : ", ", size->of[n]);
}

static void print_sizes(const coverage *of, FILE *out) {
  const bool square = of->square == of->problems;
  fputs("    sizes: ", out);
  for (int n = 0; n < COVERAGE_SIZES; n++) {
    if ((square && n == SIZE_TQ) || (n == SIZE_M && of->sizes[n].most == 0)) continue;
    fputs(n ? ", " : "", out);
    print_size(&of->sizes[n], square && n == SIZE_TK ? "Tq = Tk" : size_names[n], out);
  }
  fputc('\n', out);
}

static void print_features(const coverage *of, FILE *out) {
  static const char *const types[COVERAGE_TYPES] = {"float32", "bf16", "f16", "bf16/out:f32", "f16/out:f32"};
  static const char *const layouts[COVERAGE_LAYOUTS] = {"bhtd", "bthd", "shifted", "padded", "mixed"};
  const char *before = "    with: ";
  for (int n = 0; n < FEATURES; n++) {
    if (of->with[n] == 0) continue;
    fprintf(out, "%s%s %" PRId64, before, feature_table[n].what, of->with[n]);
    if (feature_table[n].bit == ATTN_BAND && of->causal == of->with[n]) fputs(" (all causal)", out);
    before = ", ";
  }
  for (int n = 0; n < COVERAGE_TYPES; n++)
    if (of->types[n]) fprintf(out, "%s%s %" PRId64, before, types[n], of->types[n]), before = ", ";
  for (int n = 0; n < COVERAGE_LAYOUTS; n++)
    if (of->layouts[n])
      fprintf(out, "%slayout %s %" PRId64, before, layouts[n], of->layouts[n]), before = ", ";
  fputc('\n', out);
}

/* What no problem that it takes could have shown. Of a handful of problems only their number says something. */
static void print_blind_spots(const coverage *of, int64_t asked, FILE *out) {
  enum { FEW_PROBLEMS = 50, FEW_LENGTHS = 4 };
  const coverage_size *sizes = of->sizes;
  const char *const beware = "    Beware: a pass means little:";
  if (4 * of->problems < asked)
    fprintf(out, "%s %" PRId64 " of %" PRId64 " problems could be posed\n", beware, of->problems, asked);
  if (of->problems < FEW_PROBLEMS) return;
  if (sizes[SIZE_TK].values < FEW_LENGTHS)
    fprintf(out, "%s it takes so few lengths that faults at the edges of tiles cannot show\n", beware);
  if (sizes[SIZE_H].most == 1 && sizes[SIZE_B].most == 1)
    fprintf(out, "%s it takes one head of one batch entry alone, so that none can be mixed up with another\n",
            beware);
  if (of->fills[FILL_EXACT] == 0)
    fprintf(out, "%s it takes no scale of ln 2 (fill:exact), so that one key among many may not show\n",
            beware);
}

void coverage_print(const coverage *of, const char *variant, int64_t asked, FILE *out) {
  fprintf(out, "  %s: %" PRId64 " problems", variant, of->problems);
  if (of->fitted > 0) fprintf(out, ", %" PRId64 " of them fitted to what it takes", of->fitted);
  if (of->possible > 0)
    fprintf(out, "; all %" PRId64 " pairs of this that it takes together meet (of %" PRId64 ")", of->possible,
            of->pairs);
  fputc('\n', out);
  if (of->problems > 0) {
    print_features(of, out);
    print_sizes(of, out);
  }
  print_blind_spots(of, asked, out);
}
