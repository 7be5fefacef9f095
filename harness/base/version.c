/* See version.h. The Makefile says which commit it is, to this file alone, so that a commit compiles no other. */
#include "version.h"

#ifndef ATTN_COMMIT
#define ATTN_COMMIT "unknown"
#endif

const char *version_commit(void) { return ATTN_COMMIT; }
