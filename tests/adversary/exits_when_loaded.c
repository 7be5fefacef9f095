/* A plugin that ends the program while it is loaded, as if all were well. */
#include "kernel.h"

#include <stdlib.h>

__attribute__((constructor)) static void leave(void) { exit(0); }

static void never_loaded(const attn_call *call) { solve(call); }

static const kernel kernels[] = {KERNEL(run, never_loaded, "exit(0) in the constructor of the plugin")};
EXPORT_KERNELS;
