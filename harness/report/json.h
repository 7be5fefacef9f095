/* What the writer and the reader of JSON reports share. */
#ifndef ATTN_HARNESS_REPORT_JSON_H
#define ATTN_HARNESS_REPORT_JSON_H

/* Raised when a file of an earlier attnbench can no longer be read. */
enum { REPORT_VERSION = 2 };

#define REPORT_VERSION_KEY "attnbench_schema_version"

#endif
