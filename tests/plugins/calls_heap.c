/* Each variant calls for memory inside run in one of the ways there are; the one named heap_none does not. */
#define _GNU_SOURCE
#include <attention.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where the compiler cannot see that nothing comes of it. */
static void *volatile kept;

#define RUN(name) static void name(const attn_call *call)
#define UNUSED() (void)call

RUN(none) { UNUSED(); }

RUN(call_malloc) {
  UNUSED();
  kept = malloc(100);
  free(kept);
}

RUN(call_calloc) {
  UNUSED();
  kept = calloc(3, 100);
  kept = realloc(kept, 200);
  free(kept);
}

RUN(call_aligned) {
  UNUSED();
  void *memory;
  if (posix_memalign(&memory, 64, 128) != 0) abort();
  kept = memory;
  free(kept);
  kept = aligned_alloc(64, 128);
  free(kept);
  kept = memalign(64, 128);
  free(kept);
}

RUN(call_mmap) {
  UNUSED();
  kept = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(kept, 1, 4096);
  munmap(kept, 4096);
}

RUN(call_brk) {
  UNUSED();
  kept = sbrk(0);
  if (brk(kept) != 0) abort();
}

RUN(call_pages) {
  UNUSED();
  kept = valloc(100);
  free(kept);
  kept = pvalloc(100);
  free(kept);
}

RUN(call_array) {
  UNUSED();
  kept = reallocarray(NULL, 10, 10);
  free(kept);
}

RUN(call_mapped) {
  UNUSED();
  void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mapped = mremap(mapped, 4096, 8192, MREMAP_MAYMOVE);
  munmap(mapped, 8192);
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t number, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void *__libc_valloc(size_t bytes);
void *__libc_pvalloc(size_t bytes);
void *__sbrk(long change);

RUN(call_second_names) {
  UNUSED();
  kept = __libc_malloc(100);
  kept = __libc_realloc(kept, 200);
  free(kept);
  kept = __libc_calloc(3, 100);
  free(kept);
  kept = __libc_memalign(64, 100);
  free(kept);
  kept = __libc_valloc(100);
  free(kept);
  kept = __libc_pvalloc(100);
  free(kept);
  kept = __sbrk(0);
}

/* The call lies in the C library. */
RUN(call_print) {
  UNUSED();
  char *text;
  if (asprintf(&text, "%s", "a word") < 0) abort();
  kept = text;
}

RUN(call_strdup) {
  UNUSED();
  kept = strdup("a word");
}

RUN(call_once) {
  UNUSED();
  static void *own;
  if (!own) own = malloc(100);
  kept = own;
}

RUN(call_strdup_once) {
  UNUSED();
  static char *own;
  if (!own) own = strdup("a word");
  kept = own;
}

RUN(call_on_workers) {
  UNUSED();
#pragma omp parallel num_threads(call->threads)
  {
    void *volatile own = malloc(64);
    free(own);
  }
}

RUN(call_openmp) {
  UNUSED();
  for (int team = 1; team <= call->threads; team++) {
#pragma omp parallel num_threads(team)
    {
      void *volatile own = NULL;
      (void)own;
    }
  }
}

#define VARIANT(word, with)                                                                                  \
  static const attn_variant word##_variant = {                                                               \
      .name = #word, .summary = "", .types = 1u << ATTN_FLOAT32, .run = (with)}
VARIANT(heap_none, none);
VARIANT(heap_malloc, call_malloc);
VARIANT(heap_calloc, call_calloc);
VARIANT(heap_aligned, call_aligned);
VARIANT(heap_mmap, call_mmap);
VARIANT(heap_brk, call_brk);
VARIANT(heap_strdup, call_strdup);
VARIANT(heap_pages, call_pages);
VARIANT(heap_array, call_array);
VARIANT(heap_mapped, call_mapped);
VARIANT(heap_print, call_print);
VARIANT(heap_second_names, call_second_names);
VARIANT(heap_once, call_once);
VARIANT(heap_strdup_once, call_strdup_once);
VARIANT(heap_workers, call_on_workers);
VARIANT(heap_openmp, call_openmp);

static const attn_variant *const variants[] = {
    &heap_none_variant,  &heap_malloc_variant,      &heap_calloc_variant, &heap_aligned_variant,
    &heap_mmap_variant,  &heap_brk_variant,         &heap_strdup_variant, &heap_workers_variant,
    &heap_once_variant,  &heap_strdup_once_variant, &heap_openmp_variant, &heap_pages_variant,
    &heap_array_variant, &heap_mapped_variant,      &heap_print_variant,  &heap_second_names_variant};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof variants[0], variants, NULL};
