/* A plugin built for an interface that this program does not speak. Nothing behind the version can be
 * trusted, so the table is poison. */
#include "attention.h"

const attn_table attn_plugin = {3, 1000, (const attn_variant *const *)8, NULL};
