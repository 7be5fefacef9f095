/* Whether two shared objects are the same once they are loaded. Who builds base and head from the same source in two folders
 * gets files that differ, in names of folders that a debugger reads, and in nothing that runs. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate.h"

typedef struct image {
  const unsigned char *bytes;
  size_t size;
} image;

static bool open_image(image *image, const char *path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status;
  *image = (struct image){.bytes = NULL};
  if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
    void *mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped != MAP_FAILED) *image = (struct image){mapped, (size_t)status.st_size};
  }
  if (file >= 0) close(file);
  return image->bytes != NULL;
}

static void close_image(const image *image) {
  if (image->bytes) munmap((void *)(uintptr_t)image->bytes, image->size);
}

/* What lies there in the file, or NULL where it is shorter. */
static const void *part(const image *image, size_t offset, size_t size) {
  return offset <= image->size && size <= image->size - offset ? image->bytes + offset : NULL;
}

static const ElfW(Shdr) * sections_of(const image *image, size_t *count) {
  const ElfW(Ehdr) *header = part(image, 0, sizeof *header);
  if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_shentsize != sizeof(ElfW(Shdr)))
    return NULL;
  *count = header->e_shnum;
  return part(image, header->e_shoff, *count * sizeof(ElfW(Shdr)));
}

/* The next section that is loaded and no note, from the n-th on. */
static const ElfW(Shdr) * next_loaded(const ElfW(Shdr) * sections, size_t count, size_t *n) {
  for (; *n < count; ++*n)
    if (sections[*n].sh_flags & SHF_ALLOC && sections[*n].sh_type != SHT_NOTE) return &sections[(*n)++];
  return NULL;
}

static bool same_section(const image *a, const ElfW(Shdr) * left, const image *b, const ElfW(Shdr) * right) {
  if (left->sh_type != right->sh_type || left->sh_flags != right->sh_flags ||
      left->sh_addr != right->sh_addr || left->sh_size != right->sh_size)
    return false;
  if (left->sh_type == SHT_NOBITS) return true;
  const void *one = part(a, left->sh_offset, left->sh_size),
             *other = part(b, right->sh_offset, right->sh_size);
  return one && other && memcmp(one, other, left->sh_size) == 0;
}

static bool same_image(const image *a, const image *b) {
  size_t count[2] = {0, 0}, at[2] = {0, 0}, same = 0;
  const ElfW(Shdr) *left = sections_of(a, &count[0]), *right = sections_of(b, &count[1]);
  while (left && right) {
    const ElfW(Shdr) *one = next_loaded(left, count[0], &at[0]),
                     *other = next_loaded(right, count[1], &at[1]);
    if (!one && !other) return same > 0;
    if (!one || !other || !same_section(a, one, b, other)) return false;
    same++;
  }
  return false;
}

bool gate_same_code(const char *path, const char *other) {
  image a, b = {.bytes = NULL};
  const bool same = open_image(&a, path) && open_image(&b, other) && same_image(&a, &b);
  close_image(&a);
  close_image(&b);
  return same;
}
