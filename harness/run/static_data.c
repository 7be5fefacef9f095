/* See static_data.h. The sections of the object's file are read: in memory only segments are left, and
 * those hold tables that are constant after loading as well. */
#define _GNU_SOURCE
#include "static_data.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct image {
  const unsigned char *bytes;
  size_t size;
} image;

/* What lies there in the file, or NULL where it is shorter. */
static const void *part(const image *image, size_t offset, size_t count, size_t size) {
  if (offset > image->size || count > (image->size - offset) / size) return NULL;
  return image->bytes + offset;
}

static bool is_data(const ElfW(Shdr) * section, const char *name) {
  const bool writable = (section->sh_flags & (SHF_ALLOC | SHF_WRITE)) == (SHF_ALLOC | SHF_WRITE);
  return writable && (strcmp(name, ".data") == 0 || strcmp(name, ".bss") == 0);
}

static bool sum_sections(const image *image, int threads, size_t *bytes) {
  const ElfW(Ehdr) *header = part(image, 0, 1, sizeof *header);
  if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_shentsize != sizeof(ElfW(Shdr)))
    return false;
  const ElfW(Shdr) *sections = part(image, header->e_shoff, header->e_shnum, sizeof *sections);
  if (!sections || header->e_shstrndx >= header->e_shnum) return false;
  const ElfW(Shdr) *names = &sections[header->e_shstrndx];
  const char *text = part(image, names->sh_offset, names->sh_size, 1);
  if (!text || names->sh_size == 0 || text[names->sh_size - 1] != '\0') return false;
  *bytes = 0;
  for (size_t n = 0; n < header->e_shnum; n++) {
    const ElfW(Shdr) *section = &sections[n];
    if (section->sh_name >= names->sh_size) return false;
    if (section->sh_flags & SHF_TLS)
      *bytes += section->sh_size * (size_t)threads;
    else if (is_data(section, text + section->sh_name))
      *bytes += section->sh_size;
  }
  return true;
}

/* Others may be writing there. */
static void touch(unsigned char *bytes, size_t count) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (count == 0) return;
  for (size_t n = 0; n < count; n += page) __atomic_fetch_or(&bytes[n], 0, __ATOMIC_RELAXED);
  __atomic_fetch_or(&bytes[count - 1], 0, __ATOMIC_RELAXED);
}

/* What the compiler calls where code names thread-local data of a shared object; the first call of a thread takes the
 * memory for them (Drepper, ELF Handling For Thread-Local Storage, section 3). */
typedef struct thread_data_place {
  unsigned long module, offset;
} thread_data_place;
void *__tls_get_addr(thread_data_place *place);

static int touch_object(struct dl_phdr_info *object, size_t size, void *base) {
  (void)size;
  if (object->dlpi_addr != *(const ElfW(Addr) *)base) return 0;
  size_t constant_end = 0; /* what is constant after loading comes first in its segment */
  for (size_t n = 0; n < object->dlpi_phnum; n++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[n];
    if (segment->p_type == PT_GNU_RELRO) constant_end = segment->p_vaddr + segment->p_memsz;
  }
  for (size_t n = 0; n < object->dlpi_phnum; n++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[n];
    const size_t end = segment->p_vaddr + segment->p_memsz;
    const size_t first =
        segment->p_vaddr < constant_end && constant_end < end ? constant_end : segment->p_vaddr;
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) && first >= constant_end)
      touch((unsigned char *)object->dlpi_addr + first, end - first);
    if (segment->p_type == PT_TLS && segment->p_memsz > 0)
      touch(__tls_get_addr(&(thread_data_place){object->dlpi_tls_modid, 0}), segment->p_memsz);
  }
  return 1;
}

void static_data_touch(const void *code) {
  Dl_info object;
  struct link_map *map = NULL;
  if (!dladdr1(code, &object, (void **)&map, RTLD_DL_LINKMAP) || !map) return;
  ElfW(Addr) base = map->l_addr;
  dl_iterate_phdr(touch_object, &base);
}

bool static_data_bytes(const void *code, int threads, size_t *bytes, char *why, size_t why_size) {
  Dl_info object;
  struct link_map *map = NULL;
  const bool known = dladdr1(code, &object, (void **)&map, RTLD_DL_LINKMAP) != 0;
  /* The name of the program itself is empty. */
  const char *path = known && map && *map->l_name ? map->l_name : "/proc/self/exe";
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status;
  image image = {.size = file >= 0 && fstat(file, &status) == 0 ? (size_t)status.st_size : 0};
  void *mapping = image.size > 0 ? mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  const int error = errno;
  if (file >= 0) close(file);
  if (mapping == MAP_FAILED) {
    snprintf(why, why_size, "cannot read the sections of %s: %s", path, strerror(error));
    return false;
  }
  image.bytes = mapping;
  const bool good = sum_sections(&image, threads, bytes);
  if (!good) snprintf(why, why_size, "cannot read the sections of %s: it has no sound table of them", path);
  munmap(mapping, image.size);
  return good;
}
