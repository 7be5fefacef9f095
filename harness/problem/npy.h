/* Arrays in .npy files (NumPy Enhancement Proposal 1): versions 1.0 to 3.0 are read, 1.0 is written. */
#ifndef ATTN_HARNESS_NPY_H
#define ATTN_HARNESS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { NPY_MOST_AXES = 8, NPY_DESCR_BYTES = 8 };

/* In C order, little-endian. */
typedef struct npy_array {
  char descr[NPY_DESCR_BYTES]; /* "<f4", "|u1" */
  int axes;
  int64_t shape[NPY_MOST_AXES];
  size_t bytes; /* of data */
  void *data;   /* never NULL once it is read */
} npy_array;

/* False, with a sentence that names the file, where it cannot be read, is no such file, is cut off or goes on behind its data,
 * is in Fortran order or big-endian, or has elements that are no numbers of 1 to 8 bytes. */
bool npy_read(const char *path, npy_array *array, char *why, size_t why_size);
void npy_destroy(npy_array *array);

/* What stands before the data in a file. False when it cannot be written. */
bool npy_write_header(FILE *file, const char *descr, int axes, const int64_t *shape);

/* "[1, 4, 16, 64]" */
enum { NPY_SHAPE_BYTES = 24 * NPY_MOST_AXES };
void npy_name_shape(int axes, const int64_t *shape, char text[NPY_SHAPE_BYTES]);

#endif
