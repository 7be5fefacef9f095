/* Memory that is watched. A guarded buffer is a mapping of its own: guard page, slack with a canary, the
 * buffer, a slack shorter than the alignment, guard page. An access that runs over faults; a write into
 * a slack breaks its canary. The pages of a fresh mapping are not there until they are touched, so that
 * what a kernel touches of its workspace can be counted afterwards. */
#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef ATTN_HAVE_MEMCHECK
#include <valgrind/memcheck.h>
#endif

static const unsigned char canary = 0xc5;
static const uint32_t poison = GUARDED_POISON;

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static size_t round_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static bool refuse(char *why, size_t why_size, size_t bytes, const char *reason) {
  snprintf(why, why_size, "cannot have %.1f MiB of memory: %s", (double)bytes / 0x1p20, reason);
  return false;
}

/* The pages between the guards. */
static unsigned char *inner(const guarded *buffer) { return buffer->mapping + page_bytes(); }

static size_t inner_bytes(const guarded *buffer) { return buffer->mapping_bytes - 2 * page_bytes(); }

static size_t slack_before(const guarded *buffer) { return (size_t)(buffer->data - inner(buffer)); }

static size_t slack_after(const guarded *buffer) {
  return inner_bytes(buffer) - slack_before(buffer) - buffer->bytes;
}

static void fill_canaries(guarded *buffer) {
  memset(inner(buffer), canary, slack_before(buffer));
  memset(buffer->data + buffer->bytes, canary, slack_after(buffer));
}

/* From one on huge pages are asked for, as for the memory in which the machine's read bandwidth is measured:
 * half a million small ones cost up to a tenth of the time, and more or less of it from run to run. */
static const size_t huge = (size_t)2 << 20;

static void ask_for_huge_pages(const guarded *buffer) {
  if (buffer->bytes >= huge) (void)madvise(inner(buffer), inner_bytes(buffer), MADV_HUGEPAGE);
}

/* Pages without rights, for a buffer of so many bytes; MAP_FAILED: none. Of one that has room for huge pages the guard behind
 * it begins where one would: buffers end there, and those of whole ones have no part of another. */
static unsigned char *reserve(size_t mapping_bytes, size_t bytes) {
  const size_t more = bytes >= huge ? huge : 0, page = page_bytes();
  unsigned char *from = mmap(NULL, mapping_bytes + more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (from == MAP_FAILED || more == 0) return from;
  const size_t behind = (uintptr_t)(from + mapping_bytes - page) % huge,
               before = behind > 0 ? huge - behind : 0;
  if (before > 0) munmap(from, before);
  munmap(from + before + mapping_bytes, more - before);
  return from + before;
}

/* span: bytes and what they are rounded up to at the back. */
static bool create(guarded *buffer, size_t bytes, size_t span, bool front, char *why, size_t why_size) {
  *buffer = (guarded){0};
  const size_t page = page_bytes();
  /* Asked for more than there is, the kernel would grant it and kill the process at the first use. */
  const double available = memory_room_for((double)bytes);
  if (bytes > SIZE_MAX / 2) return refuse(why, why_size, bytes, "the address space is smaller");
  if ((double)bytes > available) {
    char reason[64];
    snprintf(reason, sizeof reason, "%.1f MiB are available", available / 0x1p20);
    return refuse(why, why_size, bytes, reason);
  }
  const size_t inside = round_up(span, page), mapping_bytes = inside + 2 * page;
  unsigned char *mapping = reserve(mapping_bytes, bytes);
  if (mapping == MAP_FAILED) return refuse(why, why_size, bytes, strerror(errno));
  unsigned char *end = mapping + mapping_bytes - page;
  /* Rights of no pages are none to Linux, and an error to what emulates it. */
  if (inside > 0 && mprotect(mapping + page, inside, PROT_READ | PROT_WRITE) != 0) {
    refuse(why, why_size, bytes, strerror(errno));
    munmap(mapping, mapping_bytes);
    return false;
  }
  *buffer = (guarded){front ? mapping + page : end - span, bytes, mapping, mapping_bytes, 0};
  ask_for_huge_pages(buffer);
  fill_canaries(buffer);
  return true;
}

bool guarded_create(guarded *buffer, size_t bytes, size_t alignment, char *why, size_t why_size) {
  const size_t span = bytes > SIZE_MAX / 2 ? bytes : round_up(bytes, alignment);
  return create(buffer, bytes, span, false, why, why_size);
}

bool guarded_create_front(guarded *buffer, size_t bytes, char *why, size_t why_size) {
  return create(buffer, bytes, bytes, true, why, why_size);
}

void guarded_destroy(guarded *buffer) {
  if (buffer->mapping)
    munmap(buffer->mapping - buffer->spare_bytes, buffer->mapping_bytes + buffer->spare_bytes);
  *buffer = (guarded){0};
}

/* What stays of a larger buffer is at most this. */
static const size_t most_kept = (size_t)64 << 20;

bool guarded_renew(guarded *buffer, size_t bytes, size_t alignment, char *why, size_t why_size) {
  const size_t page = page_bytes(), kept = buffer->mapping_bytes + buffer->spare_bytes;
  const size_t span = bytes > most_kept ? bytes : round_up(bytes, alignment);
  if (bytes > most_kept || kept > most_kept || kept < round_up(span, page) + 2 * page) {
    guarded_destroy(buffer);
    return guarded_create(buffer, bytes, alignment, why, why_size);
  }
  unsigned char *const behind = buffer->mapping + buffer->mapping_bytes;
  const size_t mapping_bytes = round_up(span, page) + 2 * page;
  unsigned char *const mapping = behind - mapping_bytes;
  if (mapping != buffer->mapping && (mprotect(buffer->mapping, page, PROT_READ | PROT_WRITE) != 0 ||
                                     mprotect(mapping, page, PROT_NONE) != 0))
    return refuse(why, why_size, bytes, strerror(errno));
  *buffer = (guarded){behind - page - span, bytes, mapping, mapping_bytes, kept - mapping_bytes};
  fill_canaries(buffer);
  return true;
}

void guarded_reset(guarded *buffer) {
  if (inner_bytes(buffer) == 0) return;
  /* A huge page would count 2 MiB for one byte. A system without huge pages refuses the advice, and needs
   * none. */
  (void)madvise(inner(buffer), inner_bytes(buffer), MADV_NOHUGEPAGE);
  if (madvise(inner(buffer), inner_bytes(buffer), MADV_DONTNEED) != 0) memset(buffer->data, 0, buffer->bytes);
  fill_canaries(buffer);
}

static bool all_bytes_are(const unsigned char *bytes, size_t count, unsigned char value) {
  return count == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, count - 1) == 0);
}

bool guarded_intact(const guarded *buffer) {
  if (!buffer->mapping) return true;
  return all_bytes_are(inner(buffer), slack_before(buffer), canary) &&
         all_bytes_are(buffer->data + buffer->bytes, slack_after(buffer), canary);
}

/* So few take less time to clear than to do without. */
static const size_t few_bytes = (size_t)64 << 10;

/* Fresh pages in place of the buffer's. */
static bool remap(guarded *buffer, int protection) {
  return mmap(inner(buffer), inner_bytes(buffer), protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
              0) != MAP_FAILED;
}

bool guarded_put_away(guarded *buffer, FILE *file) {
  if (!buffer->mapping || inner_bytes(buffer) == 0) return true;
  if (fwrite(inner(buffer), inner_bytes(buffer), 1, file) != 1) return false;
  if (inner_bytes(buffer) > few_bytes) return remap(buffer, PROT_NONE);
  memset(inner(buffer), 0, inner_bytes(buffer));
  return mprotect(inner(buffer), inner_bytes(buffer), PROT_NONE) == 0;
}

bool guarded_bring_back(guarded *buffer, FILE *file) {
  if (!buffer->mapping || inner_bytes(buffer) == 0) return true;
  const bool few = inner_bytes(buffer) <= few_bytes;
  const int protection = PROT_READ | PROT_WRITE;
  if (few ? mprotect(inner(buffer), inner_bytes(buffer), protection) != 0 : !remap(buffer, protection))
    return false;
  ask_for_huge_pages(buffer);
  return fread(inner(buffer), inner_bytes(buffer), 1, file) == 1;
}

void guarded_mend(guarded *buffer) { fill_canaries(buffer); }

size_t guarded_touched_bytes(const guarded *buffer) {
  const size_t page = page_bytes();
  unsigned char *const end = buffer->data + buffer->bytes;
  size_t touched = 0;
  enum { BATCH = 1024 };
  unsigned char resident[BATCH];
  for (unsigned char *from = inner(buffer); from < end; from += BATCH * page) {
    size_t pages = least(BATCH, (round_up((size_t)(end - from), page)) / page);
    if (mincore(from, pages * page, resident) != 0) return buffer->bytes;
    for (size_t n = 0; n < pages; n++) {
      unsigned char *first = from + n * page, *last = first + page;
      /* A canary made this page resident: it counts when a byte of the buffer in it is not zero. */
      bool holds_canary = first < buffer->data || last > end;
      if (first < buffer->data) first = buffer->data;
      if (last > end) last = end;
      size_t own = (size_t)(last - first);
      if (holds_canary ? !all_bytes_are(first, own, 0) : resident[n] & 1) touched += own;
    }
  }
  return touched;
}

void guarded_poison(guarded *buffer) {
  if (buffer->bytes == 0) return;
  enum { MOST_COPIED = 4096 };
  size_t done = least(sizeof poison, buffer->bytes), more;
  memcpy(buffer->data, &poison, done);
  for (; done < buffer->bytes; done += more) {
    more = least(least(done, MOST_COPIED), buffer->bytes - done);
    memcpy(buffer->data + done, buffer->data, more);
  }
}

#ifdef ATTN_HAVE_MEMCHECK
bool memory_is_watched(void) { return RUNNING_ON_VALGRIND != 0; }

void guarded_forget(guarded *buffer) {
  if (buffer->bytes > 0) (void)VALGRIND_MAKE_MEM_UNDEFINED(buffer->data, buffer->bytes);
}

void guarded_trust(guarded *buffer) {
  if (buffer->bytes > 0) (void)VALGRIND_MAKE_MEM_DEFINED(buffer->data, buffer->bytes);
}

bool memory_is_defined(const void *data, size_t bytes) {
  return VALGRIND_CHECK_MEM_IS_DEFINED(data, bytes) == 0;
}
#else
bool memory_is_watched(void) { return false; }

void guarded_forget(guarded *buffer) { (void)buffer; }

void guarded_trust(guarded *buffer) { (void)buffer; }

bool memory_is_defined(const void *data, size_t bytes) {
  (void)data, (void)bytes;
  return true;
}
#endif

/* The number after a key such as "MemAvailable:" in a file of lines, or SIZE_MAX. An empty key takes the
 * first number of the file. */
static size_t number_in_file(const char *path, const char *key) {
  FILE *file = fopen(path, "r");
  if (!file) return SIZE_MAX;
  char line[256];
  unsigned long long number = 0;
  bool found = false;
  while (!found && fgets(line, sizeof line, file))
    if (strncmp(line, key, strlen(key)) == 0) {
      char *end;
      number = strtoull(line + strlen(key), &end, 10);
      found = end != line + strlen(key);
    }
  fclose(file);
  return found && number < SIZE_MAX ? (size_t)number : SIZE_MAX;
}

/* What a control group and its parents leave: limit less use, page cache that can be dropped not counted
 * as use. SIZE_MAX without a limit. group is shortened on the way up. */
static size_t control_group_room(const char *root, char *group, const char *limit_file, const char *use_file,
                                 const char *cache_key) {
  size_t room = SIZE_MAX;
  for (;;) {
    char path[512];
    snprintf(path, sizeof path, "%s%s/%s", root, group, limit_file);
    size_t limit = number_in_file(path, "");
    snprintf(path, sizeof path, "%s%s/%s", root, group, use_file);
    size_t use = number_in_file(path, "");
    snprintf(path, sizeof path, "%s%s/memory.stat", root, group);
    size_t cache = number_in_file(path, cache_key);
    if (limit != SIZE_MAX && use != SIZE_MAX) {
      use -= cache != SIZE_MAX ? least(cache, use) : 0;
      room = least(room, limit > use ? limit - use : 0);
    }
    char *slash = strrchr(group, '/');
    if (!slash) return room;
    *slash = '\0';
  }
}

size_t memory_available_bytes(void) {
  size_t kib = number_in_file("/proc/meminfo", "MemAvailable:");
  size_t room = kib > SIZE_MAX / 1024 ? SIZE_MAX : kib * 1024;
  FILE *file = fopen("/proc/self/cgroup", "r");
  if (!file) return room;
  char line[384];
  while (fgets(line, sizeof line, file)) { /* "0::/path" (version 2) or "4:memory:/path" (version 1) */
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = '\0';
    if (strcmp(group, "/") == 0) *group = '\0';
    if (strcmp(controllers + 1, "") == 0)
      room = least(
          room, control_group_room("/sys/fs/cgroup", group, "memory.max", "memory.current", "inactive_file"));
    else if (strcmp(controllers + 1, "memory") == 0)
      room = least(room, control_group_room("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
                                            "memory.usage_in_bytes", "total_inactive_file"));
  }
  fclose(file);
  return room;
}

double memory_room_for(double bytes) {
  const double always_there = 0x1p20;
  return bytes > always_there ? (double)memory_available_bytes() : bytes;
}

size_t memory_peak_bytes(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (size_t)usage.ru_maxrss * 1024;
}
