/* Numbers, lists and axes in a problem line, read and written. */
#ifndef ATTN_HARNESS_WORDS_H
#define ATTN_HARNESS_WORDS_H

#include "base/complaint.h"
#include "workload.h"

/* A line while it is read; sizes that were not said follow others. */
typedef struct workload_reading {
  workload workload;
  bool said_kv_heads, said_value_dim, said_query_length, said_key_length, said_model_dim;
  bool bottom_right, said_function;
  int64_t offset_count, length_count, query_length_count;
  complaint to;
} workload_reading;

/* Each reads the whole text of the part of that name; false, with the reason in words. */
bool words_integer(workload_reading *r, const char *name, const char *text, int64_t *number);
bool words_double(workload_reading *r, const char *name, const char *text, double *number);
bool words_limit(workload_reading *r, const char *name, const char *text, int64_t *limit); /* or 'inf' */
bool words_list(workload_reading *r, const char *name, const char *text, int64_t *numbers, int64_t *count);
bool words_axes(workload_reading *r, const char *name, const char *text, workload_axes *axes);
bool words_choice(workload_reading *r, const char *name, const char *text, const char *const *choices,
                  int count, int *chosen);

/* A line while it is written. It always fits: see WORKLOAD_NAME_BYTES. */
typedef struct workload_writing {
  char *name;
  size_t used;
} workload_writing;

__attribute__((format(printf, 2, 3))) void words_add(workload_writing *to, const char *format, ...);
void words_add_double(workload_writing *to, const char *part, double number);
void words_add_list(workload_writing *to, const char *part, const int64_t *numbers, int64_t count);
void words_add_axes(workload_writing *to, const char *part, workload_axes axes);

#endif
