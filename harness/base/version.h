/* Which attnbench this is. */
#ifndef ATTN_HARNESS_VERSION_H
#define ATTN_HARNESS_VERSION_H

#define ATTNBENCH_VERSION "0.1.0"

/* The commit that this was built from, "-dirty" behind it where a file was changed since; "unknown" where the sources did
 * not lie in a repository of their own. */
const char *version_commit(void);

#endif
