/* Where the program's other parts lie: shared objects of variants, the folder of the gnuplot files. */
#ifndef ATTN_HARNESS_PARTS_H
#define ATTN_HARNESS_PARTS_H

#include <stdbool.h>

enum { PARTS_PATH_BYTES = 4096 };

/* The path of this program; false where it is not known. */
bool parts_program(char path[PARTS_PATH_BYTES]);

/* The part of this name: beside the program, as it is built; in ../lib/attnbench or ../share/attnbench, as it is installed;
 * or in the scripts of the tree that it was built in. Everything is found from where the program is now, so that
 * a tree can be copied. False where there is none: the path is then the one beside the program, or "". */
bool parts_find(const char *name, char path[PARTS_PATH_BYTES]);

#endif
