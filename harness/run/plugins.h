/* The variants that a run knows: our own, in a shared object of the program's, and those of every
 * --plugin, through the same door. */
#ifndef ATTN_HARNESS_PLUGINS_H
#define ATTN_HARNESS_PLUGINS_H

#include "variants/attention.h"

/* With their zeros: what reports, files and the names of points have room for. */
enum { VARIANT_NAME_BYTES = 48, ISA_NAME_BYTES = 32 };

typedef struct variant_list {
  const attn_variant **variants;
  const char **origins; /* the plugin that each came from, as the user named it; NULL: our own */
  size_t count;
  const attn_table **tables;
  size_t table_count;
  bool team;             /* it may have variants of a team */
  const attn_table *own; /* our own table or the device's, or NULL before variant_list_add_own */
} variant_list;

/* Adds the variants of a shared object; false, with the reason in words, when it cannot be loaded,
 * exports no attn_plugin, was built for an unknown interface version (1 is adapted), has a name that is already taken,
 * too long or not one word of [a-z0-9_], or lacks run. Whatever it makes of the floating-point mode as it is loaded is
 * undone, and said on stderr. The path is kept, not copied. */
bool variant_list_add(variant_list *list, const char *path, char *why, size_t why_size);

/* Adds our own: attnbench_variants.so, wherever the program has its parts. */
bool variant_list_add_own(variant_list *list, char *why, size_t why_size);

/* Adds those of a team of processes, in the place of our own. */
bool variant_list_add_team(variant_list *list, char *why, size_t why_size);

/* Where they are not in a list: their table, or NULL with what is missing in words. Nothing can be run. */
const attn_table *variant_list_peek_team(char *why, size_t why_size);

/* Adds those of a device, in the place of our own, and takes the device: "emu", or "cuda:0"; of cuda the number may be left
 * out. */
bool variant_list_add_device(variant_list *list, const char *device, char *why, size_t why_size);

const attn_variant *variant_list_find(const variant_list *list, const char *name); /* or NULL */
const char *variant_list_origin(const variant_list *list,
                                const attn_variant *variant); /* its plugin; NULL: our own */
void variant_list_destroy(variant_list *list);

/* The instruction sets that our own variants, or the device's, can be held to, slowest first, NULL-terminated. */
const char *const *variant_list_instruction_sets(const variant_list *list);

/* The same of the table that a variant came in; none when it names none. */
const char *const *variant_list_instruction_sets_of(const variant_list *list, const attn_variant *variant);

/* The instruction set of this name in any of the tables, or NULL. */
const char *variant_list_find_isa(const variant_list *list, const char *name);

/* It, where these have it; NULL: the variant is to choose. */
const char *isa_among(const char *const *sets, const char *isa);

#endif
