/* Memory that is watched: buffers between guard pages, workspaces whose touched pages are counted,
 * and what the machine has. */
#ifndef ATTN_HARNESS_MEMORY_H
#define ATTN_HARNESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A buffer in a mapping of its own with an unreadable page before and after. The slack between the
 * mapping's ends and the buffer is filled with a canary. */
typedef struct guarded {
  unsigned char *data; /* aligned as asked; as near to the guard page after it as that allows */
  size_t bytes;
  unsigned char *mapping;
  size_t mapping_bytes;
  size_t spare_bytes; /* in front of the mapping, of a larger buffer before it: guarded_renew */
} guarded;

/* False, with the reason in words, when the memory cannot be had; *buffer is then empty. bytes may be
 * 0. The buffer reads as zeros and holds no page yet but those of the canaries. alignment: a power of two up to 4096. */
bool guarded_create(guarded *buffer, size_t bytes, size_t alignment, char *why, size_t why_size);

/* The same with the buffer right behind the guard page before it. */
bool guarded_create_front(guarded *buffer, size_t bytes, char *why, size_t why_size);
void guarded_destroy(guarded *buffer);

/* As guarded_create, in place of an empty buffer or of one that guarded_create made, and where they suffice in its pages,
 * of which the contents stay: a fresh page is cleared before its first use, which takes longer than that. */
bool guarded_renew(guarded *buffer, size_t bytes, size_t alignment, char *why, size_t why_size);

/* Writes the buffer to the file and gives its memory back, or clears a few pages, and reads it again from there:
 * meanwhile the process has nothing of it, and who looks faults. The file stands where the buffer is to be written,
 * or was. False when it has no room, or ends too soon. */
bool guarded_put_away(guarded *buffer, FILE *file);
bool guarded_bring_back(guarded *buffer, FILE *file);

/* Drops the buffer's pages: it reads as zeros again and nothing is resident. From then on the system may
 * not give it huge pages, so that touched bytes are exact: do not time in a buffer that was reset. */
void guarded_reset(guarded *buffer);

/* True when the canaries around the buffer are whole; and makes them so. */
bool guarded_intact(const guarded *buffer);
void guarded_mend(guarded *buffer);

/* Bytes of the pages of the buffer that hold memory now, the buffer's own part of the first and last
 * page only: after guarded_reset and a run, what the run touched. Where a canary holds the first or
 * last page, that part counts when a byte in it is not zero. */
size_t guarded_touched_bytes(const guarded *buffer);

/* Fills the buffer with NaN patterns: the bits of float32, and either half those of bfloat16 and float16. */
enum { GUARDED_POISON = 0x7fa57fa5, GUARDED_POISON_HALF = 0x7fa5 };
void guarded_poison(guarded *buffer);

/* What valgrind's memcheck is told; nothing without it. A forgotten buffer counts as never written, though
 * its bytes stay: results that depend on them are found. A trusted one counts as written. */
bool memory_is_watched(void);
void guarded_forget(guarded *buffer);
void guarded_trust(guarded *buffer);

/* False when a byte depends on memory that was never written, of which memcheck then prints a report.
 * Always true where memory is not watched. */
bool memory_is_defined(const void *data, size_t bytes);

/* Memory that new allocations can still have, from MemAvailable and any cgroup limit. */
size_t memory_available_bytes(void);

/* The same, or as many as are asked for where these are so few that it is not worth reading files to find out. */
double memory_room_for(double bytes);

/* Peak resident size of this process. */
size_t memory_peak_bytes(void);

#endif
