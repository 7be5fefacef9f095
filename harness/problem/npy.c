/* See npy.h. The header is a Python dictionary of three keys, read as that and no more. */
#include "npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/complaint.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files are read and written without swapping bytes");

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* NumPy itself refuses more than 10000 where it does not trust a file. */
enum { LONGEST_HEADER = 1 << 16 };

/* ---- the dictionary ---- */

typedef struct reading {
  const char *path, *at, *end;
  complaint to;
} reading;

static void skip_blanks(reading *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t')) r->at++;
}

/* The next sign, if it is this one. */
static bool takes(reading *r, char sign) {
  skip_blanks(r);
  if (r->at == r->end || *r->at != sign) return false;
  r->at++;
  return true;
}

static bool takes_word(reading *r, const char *word) {
  const size_t length = strlen(word);
  skip_blanks(r);
  if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
  r->at += length;
  return true;
}

static bool malformed(reading *r) {
  return wrong(r->to, "%s: its header is not that of a .npy file", r->path);
}

/* A text in either kind of quotes, which has none inside. */
static bool read_text(reading *r, char *text, size_t size) {
  skip_blanks(r);
  if (r->at == r->end || (*r->at != '\'' && *r->at != '"')) return malformed(r);
  const char quote = *r->at++;
  size_t length = 0;
  for (; r->at < r->end && *r->at != quote; r->at++)
    if (length + 1 < size) text[length++] = *r->at;
  text[length] = '\0';
  return takes(r, quote) || malformed(r);
}

static bool read_size(reading *r, int64_t *size) {
  skip_blanks(r);
  const char *const first = r->at;
  *size = 0;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
    if (__builtin_mul_overflow(*size, 10, size) || __builtin_add_overflow(*size, *r->at - '0', size))
      return wrong(r->to, "%s: a size in its shape is too large for any memory", r->path);
  return r->at > first || malformed(r);
}

/* (), (3,) or (3, 4): a tuple of one has a comma. */
static bool read_shape(reading *r, npy_array *array) {
  bool comma = true;
  if (!takes(r, '(')) return malformed(r);
  while (!takes(r, ')')) {
    if (!comma) return malformed(r);
    if (array->axes == NPY_MOST_AXES)
      return wrong(r->to, "%s has more than %d axes: give an array of four at most", r->path, NPY_MOST_AXES);
    if (!read_size(r, &array->shape[array->axes++])) return false;
    comma = takes(r, ',');
  }
  return comma || array->axes > 1 || malformed(r);
}

static bool read_order(reading *r) {
  if (takes_word(r, "False")) return true;
  if (takes_word(r, "True"))
    return wrong(r->to, "%s is in Fortran order: save numpy.ascontiguousarray(...) of it", r->path);
  return malformed(r);
}

static bool read_descr(reading *r, npy_array *array) {
  skip_blanks(r);
  if (r->at < r->end && *r->at == '[')
    return wrong(r->to, "%s has records for elements: give an array of numbers", r->path);
  return read_text(r, array->descr, sizeof array->descr);
}

/* Each key once, in any order. */
static bool read_header(reading *r, npy_array *array) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  unsigned seen = 0;
  bool comma = true;
  if (!takes(r, '{')) return malformed(r);
  while (!takes(r, '}')) {
    char key[16];
    unsigned n = 0;
    if (!comma || !read_text(r, key, sizeof key) || !takes(r, ':')) return malformed(r);
    while (n < 3 && strcmp(key, keys[n]) != 0) n++;
    if (n == 3 || seen >> n & 1) return malformed(r);
    seen |= 1u << n;
    if (!(n == 0 ? read_descr(r, array) : n == 1 ? read_order(r) : read_shape(r, array))) return false;
    comma = takes(r, ',');
  }
  skip_blanks(r);
  return (seen == 7 && r->at == r->end) || malformed(r);
}

/* ---- the file ---- */

static bool read_bytes(FILE *file, const char *path, void *to, size_t bytes, complaint why) {
  if (bytes == 0 || fread(to, 1, bytes, file) == bytes) return true;
  if (ferror(file)) return wrong(why, "%s: %s", path, strerror(errno));
  return wrong(why, "%s ends within its header: it is cut off, or no .npy file", path);
}

/* Up to the data; *length: of everything before them. */
static bool read_beginning(FILE *file, const char *path, npy_array *array, size_t *length, complaint why) {
  unsigned char start[12];
  if (!read_bytes(file, path, start, 8, why)) return false;
  if (memcmp(start, magic, sizeof magic) != 0)
    return wrong(why, "%s is no .npy file: numpy.save writes one", path);
  if (start[6] < 1 || start[6] > 3 || start[7] != 0)
    return wrong(why, "%s is a .npy file of version %d.%d: 1.0 to 3.0 are read", path, start[6], start[7]);
  const size_t size_bytes = start[6] == 1 ? 2 : 4;
  if (!read_bytes(file, path, start + 8, size_bytes, why)) return false;
  size_t header_bytes = 0;
  for (size_t n = size_bytes; n-- > 0;) header_bytes = header_bytes << 8 | start[8 + n];
  if (header_bytes > LONGEST_HEADER)
    return wrong(why, "%s: its header has %zu bytes, where no array needs more than %d", path, header_bytes,
                 LONGEST_HEADER);
  char *header = malloc(header_bytes + 1);
  if (!header) return wrong(why, "%s: no memory for its header", path);
  reading r = {.path = path, .at = header, .end = header + header_bytes, .to = why};
  const bool sound = read_bytes(file, path, header, header_bytes, why) && read_header(&r, array);
  free(header);
  *length = 8 + size_bytes + header_bytes;
  return sound;
}

/* How many bytes an element has; 0, with the reason in words, of what is no number. */
static size_t element_bytes(const char *path, const char *descr, complaint why) {
  const char *const size = descr[0] ? descr + 2 : descr;
  const size_t bytes = strlen(size) == 1 && *size >= '1' && *size <= '8' ? (size_t)(*size - '0') : 0;
  if (descr[0] == '>' && bytes > 1)
    wrong(why, "%s is big-endian (%s): save it little-endian, <%s", path, descr, descr + 1);
  else if (bytes == 0 || !strchr("<|>=", descr[0]) || !strchr("fuibV", descr[1]) || !descr[1])
    wrong(why, "%s has elements '%s': give floating-point numbers", path, descr);
  else
    return bytes;
  return 0;
}

static bool read_data(FILE *file, const char *path, npy_array *array, size_t before, complaint why) {
  char shape[NPY_SHAPE_BYTES];
  struct stat status;
  size_t bytes = element_bytes(path, array->descr, why);
  if (bytes == 0) return false;
  npy_name_shape(array->axes, array->shape, shape);
  for (int n = 0; n < array->axes; n++)
    if (__builtin_mul_overflow(bytes, (uint64_t)array->shape[n], &bytes) || bytes > SIZE_MAX / 4)
      return wrong(why, "%s: its shape %s is too large for any memory", path, shape);
  if (fstat(fileno(file), &status) != 0) return wrong(why, "%s: %s", path, strerror(errno));
  const size_t there = (size_t)status.st_size > before ? (size_t)status.st_size - before : 0;
  if (there != bytes)
    return wrong(why, "%s: its shape %s of %s needs %zu bytes of data, and there are %zu: it %s", path, shape,
                 array->descr, bytes, there, there < bytes ? "is cut off" : "goes on behind them");
  array->data = malloc(bytes + 1);
  array->bytes = bytes;
  if (!array->data) return wrong(why, "%s: no memory for %zu bytes", path, bytes);
  return read_bytes(file, path, array->data, bytes, why);
}

bool npy_read(const char *path, npy_array *array, char *why, size_t why_size) {
  const complaint to = {why, why_size};
  struct stat status;
  size_t before = 0;
  *array = (npy_array){0};
  if (stat(path, &status) != 0) return wrong(to, "%s: %s", path, strerror(errno));
  if (!S_ISREG(status.st_mode)) return wrong(to, "%s is no file: give one that numpy.save wrote", path);
  FILE *file = fopen(path, "rb");
  if (!file) return wrong(to, "%s: %s", path, strerror(errno));
  const bool sound =
      read_beginning(file, path, array, &before, to) && read_data(file, path, array, before, to);
  fclose(file);
  if (!sound) npy_destroy(array);
  return sound;
}

void npy_destroy(npy_array *array) {
  free(array->data);
  *array = (npy_array){0};
}

bool npy_write_header(FILE *file, const char *descr, int axes, const int64_t *shape) {
  char header[128 + NPY_SHAPE_BYTES];
  int used = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int n = 0; n < axes; n++)
    used += snprintf(header + used, sizeof header - (size_t)used, "%lld%s", (long long)shape[n],
                     axes == 1      ? ","
                     : n + 1 < axes ? ", "
                                    : "");
  used += snprintf(header + used, sizeof header - (size_t)used, "), }");
  /* Data begin at a multiple of 64 bytes, behind a line's end. */
  while ((10 + used + 1) % 64 != 0) header[used++] = ' ';
  header[used++] = '\n';
  const unsigned char start[] = {1, 0, (unsigned char)(used & 0xff), (unsigned char)(used >> 8)};
  return fwrite(magic, sizeof magic, 1, file) == 1 && fwrite(start, sizeof start, 1, file) == 1 &&
         fwrite(header, (size_t)used, 1, file) == 1;
}

void npy_name_shape(int axes, const int64_t *shape, char text[NPY_SHAPE_BYTES]) {
  int used = snprintf(text, NPY_SHAPE_BYTES, "[");
  for (int n = 0; n < axes; n++)
    used +=
        snprintf(text + used, NPY_SHAPE_BYTES - (size_t)used, "%s%lld", n ? ", " : "", (long long)shape[n]);
  snprintf(text + used, NPY_SHAPE_BYTES - (size_t)used, "]");
}
