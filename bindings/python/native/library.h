/* libattnbench.so, what bindings/python asks of the suite: problems in words, their inputs, the verdict on arrays. Texts that
 * are given out are JSON or lines, and go back to attnbench_free. Where a function returns false, or NULL, why holds the
 * reason in one sentence. */
#ifndef ATTNBENCH_LIBRARY_H
#define ATTNBENCH_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of this header; who was built for another one refuses the library. */
enum { ATTNBENCH_LIBRARY_VERSION = 1 };
int attnbench_library_version(void);
const char *attnbench_version(void); /* of the suite */

/* What a problem line poses, as JSON: its line with every part and the seed, function, sizes, numbers, band, lists,
 * the features that it uses, the terms of its pattern and how many queries and keys a block of its mask has, and each
 * tensor with its file's name, element type, shape and strides in elements. seed: where the line names none. */
char *attnbench_describe(const char *line, uint64_t seed, char *why, size_t why_size);

/* Draws an input, laid out as described, into so many bytes. Gaps between its rows are left as they are. */
bool attnbench_draw(const char *line, const char *tensor, void *to, size_t bytes, char *why, size_t why_size);

/* Who sees whom with the inputs that the line draws, by band, lengths, mask and pattern: a byte for each of [B, H, Tq, Tk]. */
bool attnbench_sees(const char *line, uint8_t *to, size_t bytes, char *why, size_t why_size);

/* Problem n of a seed, of an endless sequence: those of the grid, each once and scattered, then random ones. */
char *attnbench_problem(uint64_t seed, int64_t n);

/* An array from anywhere, under the name of its tensor: "output". Four axes as described, 1 where the tensor lacks one. */
typedef struct attnbench_array {
  const char *tensor;
  const void *data;
  const char *type;   /* "f32", "bf16", "f16", "u8", "i32" or "f64" */
  int64_t strides[4]; /* in bytes */
} attnbench_array;

/* The verdict as JSON, and in words where text is not NULL. Inputs that are given stand in the place of those that the line
 * draws. */
char *attnbench_judge(const char *line, const attnbench_array *arrays, size_t count, bool with_hint,
                      char **text, char *why, size_t why_size);

void attnbench_free(void *text);

/* ---- to be timed in turns with what is not of this suite (timed.c) ---- */

/* A variant of a plugin, with memory and drawn inputs for one problem; device: which one of its kind, where it computes on
 * one. */
typedef struct attnbench_kernel attnbench_kernel;
attnbench_kernel *attnbench_ready(const char *line, const char *plugin, const char *variant, int device,
                                  int threads, char *why, size_t why_size);
double attnbench_repeat(attnbench_kernel *kernel,
                        int64_t calls); /* runs it; seconds, by its device's clock */
const void *
attnbench_output(attnbench_kernel *kernel); /* what the last run wrote, as described; never NULL */

/* The same of any tensor that a variant of the host writes, by its name; NULL: this problem has none. */
const void *attnbench_written(attnbench_kernel *kernel, const char *tensor);
void attnbench_release(attnbench_kernel *kernel);

/* A median and the ends of its 95% interval, by ranks: the extremes where values are few. */
void attnbench_median(const double *values, size_t count, double median_low_high[3]);

#endif
