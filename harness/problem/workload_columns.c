/* See workload_columns.h. */
#include "workload_columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "features.h"
#include "reference/reference.h"
#include "types.h"

typedef char column_text[WORKLOAD_NAME_BYTES];

static void write_number(column_text text, int64_t number) {
  snprintf(text, WORKLOAD_NAME_BYTES, "%" PRId64, number);
}

static void write_function(const workload *w, column_text text) {
  snprintf(text, WORKLOAD_NAME_BYTES, "%s", reference_function_of(w->function)->name);
}

static void write_band(const workload *w, column_text text) { workload_band(w, text); }
static void write_batch(const workload *w, column_text text) { write_number(text, w->batch); }
static void write_heads(const workload *w, column_text text) { write_number(text, w->query_heads); }
static void write_kv_heads(const workload *w, column_text text) { write_number(text, w->kv_heads); }
static void write_head_dim(const workload *w, column_text text) { write_number(text, w->head_dim); }
static void write_value_dim(const workload *w, column_text text) { write_number(text, w->value_dim); }
static void write_queries(const workload *w, column_text text) { write_number(text, w->query_length); }
static void write_keys(const workload *w, column_text text) { write_number(text, w->key_length); }

static void write_type(const workload *w, column_text text) {
  snprintf(text, WORKLOAD_NAME_BYTES, "%s", element_type_of(w->type ? w->type : ATTN_FLOAT32)->name);
}

static void write_output_type(const workload *w, column_text text) {
  workload output = *w;
  if (w->output_type) output.type = w->output_type;
  write_type(&output, text);
}

static void write_layout(const workload *w, column_text text) {
  snprintf(text, WORKLOAD_NAME_BYTES, "%s", workload_layout_name(w->layout));
}

static void write_fill(const workload *w, column_text text) {
  snprintf(text, WORKLOAD_NAME_BYTES, "%s", workload_fill_name(w->fill));
}

static void write_seed(const workload *w, column_text text) {
  snprintf(text, WORKLOAD_NAME_BYTES, "%" PRIu64, w->seed);
}

/* What has no column of its own, in the words of a problem line: "lengths:500/softcap:30/sink". */
static void write_features(const workload *w, column_text text) {
  workload_writing to = {text, 0};
  text[0] = '\0';
  for (int n = 0; n < FEATURES; n++) feature_write(&feature_table[n], w, &to);
  memmove(text, text + (text[0] == '/'), strlen(text + (text[0] == '/')) + 1);
}

const workload_column workload_columns[WORKLOAD_COLUMNS] = {
    {"function", false, write_function},
    {"band", false, write_band},
    {"features", false, write_features},
    {"B", true, write_batch},
    {"H", true, write_heads},
    {"Hkv", true, write_kv_heads},
    {"D", true, write_head_dim},
    {"Dv", true, write_value_dim},
    {"Tq", true, write_queries},
    {"Tk", true, write_keys},
    {"type", false, write_type},
    {"output_type", false, write_output_type},
    {"layout", false, write_layout},
    {"fill", false, write_fill},
    {"seed", false, write_seed}, /* up to 2^64, of which JSON's readers keep 53 bits */
};
