/* The instructions of AMX, each as a function, by their documented semantics (Intel, Software Developer's Manual, volume 2,
 * TDPBF16PS and its neighbours; exception classes AMX-E1 to E6), so that kernels of tiles run and are verified on any
 * processor. What is a fault there ends the program here, with a word. MXCSR's flags for denormal numbers make no
 * difference; its rounding mode is taken to be the usual one. Operations that a fault interrupted are not restarted: a
 * start_row has to be 0.
 *
 * The unit, which a thread of such a processor has for itself, is a variable of the caller. It begins as zeros. */
#ifndef ATTN_AMX_EMULATED_H
#define ATTN_AMX_EMULATED_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../elements.h"
#include "amx_configuration.h"

typedef struct amx_unit {
  amx_configuration is; /* palette 0: nothing is configured */
  uint8_t tile[AMX_TILES][AMX_ROWS][AMX_ROW_BYTES];
} amx_unit;

static inline void amx_fault_where(bool condition, const char *fault) {
  if (!condition) return;
  fprintf(stderr, "AMX, emulated: %s\n", fault);
  abort();
}

static inline bool amx_all_zero(const void *bytes, size_t count) {
  for (size_t n = 0; n < count; n++)
    if (((const uint8_t *)bytes)[n] != 0) return false;
  return true;
}

static inline void amx_ldtilecfg(amx_unit *unit, const void *memory) {
  amx_configuration to;
  memcpy(&to, memory, sizeof to);
  amx_fault_where(to.palette > 1, "#GP, LDTILECFG: there is no such palette");
  if (to.palette == 1) {
    amx_fault_where(to.start_row != 0, "LDTILECFG: a start_row is not emulated");
    amx_fault_where(!amx_all_zero(to.reserved, sizeof to.reserved) ||
                        !amx_all_zero(to.row_bytes + AMX_TILES, AMX_TILES * sizeof *to.row_bytes) ||
                        !amx_all_zero(to.rows + AMX_TILES, AMX_TILES * sizeof *to.rows),
                    "#GP, LDTILECFG: a reserved byte is not 0");
    for (int n = 0; n < AMX_TILES; n++) {
      amx_fault_where(to.rows[n] > AMX_ROWS, "#GP, LDTILECFG: more than 16 rows");
      amx_fault_where(to.row_bytes[n] > AMX_ROW_BYTES, "#GP, LDTILECFG: rows of more than 64 bytes");
      amx_fault_where((to.rows[n] == 0) != (to.row_bytes[n] == 0),
                      "#GP, LDTILECFG: rows without bytes, or bytes without rows");
    }
  }
  memset(unit, 0, sizeof *unit);
  if (to.palette == 1) unit->is = to;
}

static inline void amx_sttilecfg(const amx_unit *unit, void *memory) {
  memcpy(memory, &unit->is, sizeof unit->is);
}

static inline void amx_tilerelease(amx_unit *unit) { memset(unit, 0, sizeof *unit); }

static inline void amx_use(const amx_unit *unit, int tile) {
  amx_fault_where(unit->is.palette == 0, "#UD: no tiles are configured");
  amx_fault_where(tile < 0 || tile >= AMX_TILES, "#UD: there is no such tile");
  amx_fault_where(unit->is.rows[tile] == 0, "#UD: this tile has no rows");
  amx_fault_where(unit->is.row_bytes[tile] % 4 != 0, "#UD: rows of a tile that are no multiple of 4 bytes");
}

/* Bytes and rows beyond those configured become 0. The stride is in bytes. */
static inline void amx_tileloadd(amx_unit *unit, int tile, const void *memory, int64_t stride) {
  amx_use(unit, tile);
  memset(unit->tile[tile], 0, sizeof unit->tile[tile]);
  for (int64_t m = 0; m < unit->is.rows[tile]; m++)
    memcpy(unit->tile[tile][m], (const char *)memory + m * stride, unit->is.row_bytes[tile]);
}

/* The same: that the data are not wanted again is a hint. */
static inline void amx_tileloaddt1(amx_unit *unit, int tile, const void *memory, int64_t stride) {
  amx_tileloadd(unit, tile, memory, stride);
}

static inline void amx_tilestored(const amx_unit *unit, int tile, void *memory, int64_t stride) {
  amx_use(unit, tile);
  for (int64_t m = 0; m < unit->is.rows[tile]; m++)
    memcpy((char *)memory + m * stride, unit->tile[tile][m], unit->is.row_bytes[tile]);
}

static inline void amx_tilezero(amx_unit *unit, int tile) {
  amx_use(unit, tile);
  memset(unit->tile[tile], 0, sizeof unit->tile[tile]);
}

static inline float amx_without_denormals(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

/* a b + c, rounded once: in double precision the product is exact, and so is the sum, unless one of the two is less than
 * 2^-30 of the other; then it is close to this one and far from the middle between two floats, for which 16 bits and 24 are too
 * few. What would round to less than 2^-126, if there were such floats with all their bits, becomes 0. */
static inline float amx_multiply_add(float a, float b, float c) {
  const double sum = (double)a * (double)b + (double)c;
  return fabs(sum) < 0x1p-126 - 0x1p-151 ? copysignf(0, (float)sum) : (float)sum;
}

typedef float amx_row __attribute__((vector_size(AMX_ROW_BYTES)));

/* The elements of a tile of pairs as floats, denormal numbers being 0: of each row those that are first in their pairs, and
 * the second ones. */
typedef struct amx_halves {
  amx_row first[AMX_ROWS], second[AMX_ROWS];
  bool plain; /* all are 0 or from 2^-50 to 2^50 */
} amx_halves;

static inline void amx_take_halves(const amx_unit *unit, int tile, amx_halves *halves) {
  float first[AMX_ROWS][AMX_COLUMNS], second[AMX_ROWS][AMX_COLUMNS];
  int others = 0;
  for (int m = 0; m < AMX_ROWS; m++)
    for (int64_t n = 0; n < AMX_COLUMNS; n++) {
      uint32_t both;
      memcpy(&both, unit->tile[tile][m] + 4 * n, sizeof both);
      const float x[] = {amx_without_denormals(attn_float_of_bits(both << 16)),
                         amx_without_denormals(attn_float_of_bits(both & 0xffff0000))};
      first[m][n] = x[0], second[m][n] = x[1];
      for (int h = 0; h < 2; h++) others += x[h] != 0 && !(fabsf(x[h]) >= 0x1p-50f && fabsf(x[h]) <= 0x1p50f);
    }
  memcpy(halves->first, first, sizeof first);
  memcpy(halves->second, second, sizeof second);
  halves->plain = others == 0;
}

/* One row of sums of products, each added with one rounding, first and second elements apart. */
static inline void amx_add_products(const amx_halves *a, const amx_halves *b, int m, int depth,
                                    amx_row sum[2]) {
  for (int k = 0; k < depth; k++)
    for (int n = 0; n < AMX_COLUMNS; n++) {
      sum[0][n] = amx_multiply_add(a->first[m][k], b->first[k][n], sum[0][n]);
      sum[1][n] = amx_multiply_add(a->second[m][k], b->second[k][n], sum[1][n]);
    }
}

/* The same bits, in a tenth of the time, where all elements are plain: then each product is exact in float32, and all sums
 * are multiples of 2^-114, so that none is a denormal number. */
static inline void amx_add_plain_products(const amx_halves *a, const amx_halves *b, int m, int depth,
                                          amx_row sum[2]) {
  amx_row first = sum[0], second = sum[1];
  for (int k = 0; k < depth; k++) {
    first += a->first[m][k] * b->first[k];
    second += a->second[m][k] * b->second[k];
  }
  sum[0] = first, sum[1] = second;
}

static inline void amx_tdpbf16ps(amx_unit *unit, int c, int a, int b) {
  amx_fault_where(c == a || c == b || a == b, "#UD, TDPBF16PS: one tile as two operands");
  amx_use(unit, c), amx_use(unit, a), amx_use(unit, b);
  const amx_configuration *is = &unit->is;
  amx_fault_where(is->rows[c] != is->rows[a], "#UD, TDPBF16PS: the rows of C are not those of A");
  amx_fault_where(is->row_bytes[c] != is->row_bytes[b],
                  "#UD, TDPBF16PS: the columns of C are not those of B");
  amx_fault_where(is->row_bytes[a] != 4 * is->rows[b],
                  "#UD, TDPBF16PS: the columns of A are not the rows of B");
  amx_halves left, right;
  amx_take_halves(unit, a, &left);
  amx_take_halves(unit, b, &right);
  const bool plain = left.plain && right.plain;
  for (int m = 0; m < is->rows[c]; m++) {
    amx_row sum[2] = {{0}, {0}};
    if (plain)
      amx_add_plain_products(&left, &right, m, is->rows[b], sum);
    else
      amx_add_products(&left, &right, m, is->rows[b], sum);
    float row[AMX_COLUMNS];
    memcpy(row, unit->tile[c][m], sizeof row);
    for (int n = 0; n < is->row_bytes[c] / 4; n++)
      row[n] =
          amx_without_denormals(amx_without_denormals(row[n]) + amx_without_denormals(sum[0][n] + sum[1][n]));
    memcpy(unit->tile[c][m], row, sizeof row);
  }
}

#endif
