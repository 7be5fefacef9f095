/* A problem as columns of a table, so that rows can be chosen by any part of it and no name has to be read. */
#ifndef ATTN_HARNESS_WORKLOAD_COLUMNS_H
#define ATTN_HARNESS_WORKLOAD_COLUMNS_H

#include "workload.h"

enum { WORKLOAD_COLUMNS = 15 };

typedef struct workload_column {
  const char *key; /* the words of a problem line, where it has one */
  bool is_number;
  void (*write)(const workload *workload, char text[WORKLOAD_NAME_BYTES]);
} workload_column;

extern const workload_column workload_columns[WORKLOAD_COLUMNS];

#endif
