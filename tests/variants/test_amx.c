/* The emulated instructions of AMX: against plain loops that follow the manual's pseudocode, in every configuration; their
 * faults; and, on a processor that has the tiles, against these. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef ATTN_X86_64
#include <immintrin.h>
#endif

#include <cmocka.h>

#include "variants/elements.h"
#include "variants/tile/amx_emulated.h"
#include "variants/tile/tile.h"

/* C = C + A B: of C and A `rows` rows, of C and B `columns` columns of 32 bits, and `pairs` pairs deep. */
typedef struct product {
  int rows, columns, pairs;
  uint16_t a[AMX_ROWS][32], b[AMX_ROWS][32];
  float c[AMX_ROWS][AMX_COLUMNS];
} product;

static uint32_t drawn(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 32);
}

/* What numbers are drawn: exponents of elements and of sums, and how often something else. */
typedef struct inputs {
  const char *name;
  int least, exponents, sum_least, sum_exponents;
  uint32_t others; /* one in so many: 0, an infinity, NaN; 0: none */
  bool powers;     /* of two, all of them */
} inputs;

static const inputs kinds[] = {
    {"as usual", -6, 9, -4, 8, 0, false},
    {"as usual, with zeros, infinities and NaN", -6, 9, -4, 8, 40, false},
    {"wide", -50, 101, -100, 200, 0, false},
    {"products about 2^-126", -68, 10, -128, 6, 0, false},
    {"denormal elements", -134, 140, -149, 60, 0, false},
    {"products below 2^-149, sums about 2^-126", -90, 20, -127, 4, 0, false},
    {"sums next to 2^-126", -79, 17, -127, 4, 0, true},
    {"products about 2^128", 60, 6, 120, 8, 0, false},
    {"anything", -133, 260, -149, 276, 100, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static float number(uint64_t *seed, const inputs *kind, int least, int exponents) {
  static const float other[] = {0, -0.0f, INFINITY, -INFINITY, NAN};
  if (kind->others > 0 && drawn(seed) % kind->others == 0) return other[drawn(seed) % 5];
  const int exponent = least + (int)(drawn(seed) % (uint32_t)exponents);
  const float mantissa = kind->powers ? 1 : 1 + (float)(drawn(seed) >> 9) * 0x1p-23f;
  return ldexpf(drawn(seed) % 2 ? mantissa : -mantissa, exponent);
}

static void draw(product *of, const inputs *kind, uint64_t seed) {
  for (int m = 0; m < AMX_ROWS; m++)
    for (int n = 0; n < 32; n++) {
      of->a[m][n] = attn_to_bfloat16(number(&seed, kind, kind->least, kind->exponents));
      of->b[m][n] = attn_to_bfloat16(number(&seed, kind, kind->least, kind->exponents));
      of->c[m][n / 2] = number(&seed, kind, kind->sum_least, kind->sum_exponents);
    }
}

/* ---- the manual's loops ---- */

static float denormal_is_zero(float x) { return isless(fabsf(x), FLT_MIN) ? copysignf(0, x) : x; }

/* fma with denormal numbers as 0, in and out. A result that is small is computed again 2^120 times as large, where rounding
 * does not know that it is; but for differences of large numbers, which are exactly 0 where they are so small. */
static float fused(float a, float b, float c) {
  a = denormal_is_zero(a), b = denormal_is_zero(b), c = denormal_is_zero(c);
  const float result = fmaf(a, b, c);
  if (a == 0 || b == 0 || fabsf(c) > 0x1p-90f || !(fabsf(result) <= 2 * FLT_MIN)) return result;
  int a_exponent, b_exponent;
  const float a_part = frexpf(a, &a_exponent), b_part = frexpf(b, &b_exponent);
  const float scaled = fmaf(a_part, ldexpf(b_part, a_exponent + b_exponent + 120),
                            ldexpf(c, 120)); /* all of it exact but fma */
  return fabsf(scaled) < 0x1p-6f ? copysignf(0, scaled) : ldexpf(scaled, -120);
}

static float sum(float a, float b) { return denormal_is_zero(denormal_is_zero(a) + denormal_is_zero(b)); }

static void multiply_as_documented(const product *of, float c[AMX_ROWS][AMX_COLUMNS]) {
  memset(c, 0, sizeof of->c);
  for (int m = 0; m < of->rows; m++) {
    float temporary[2 * AMX_COLUMNS] = {0};
    for (int64_t k = 0; k < of->pairs; k++)
      for (int64_t n = 0; n < (int64_t)2 * of->columns; n++)
        temporary[n] =
            fused(attn_from_bfloat16(of->a[m][2 * k + n % 2]), attn_from_bfloat16(of->b[k][n]), temporary[n]);
    for (int64_t n = 0; n < of->columns; n++)
      c[m][n] = sum(of->c[m][n], sum(temporary[2 * n], temporary[2 * n + 1]));
  }
}

/* ---- the emulation, and the processor ---- */

static amx_configuration configuration_of(const product *of) {
  const uint8_t rows = (uint8_t)of->rows, depth = (uint8_t)of->pairs;
  const uint16_t columns = (uint16_t)(4 * of->columns);
  return (amx_configuration){
      .palette = 1, .rows = {rows, rows, depth}, .row_bytes = {columns, (uint16_t)(4 * of->pairs), columns}};
}

static void multiply_emulated(const product *of, float c[AMX_ROWS][AMX_COLUMNS]) {
  amx_unit unit = {0};
  const amx_configuration tiles = configuration_of(of);
  amx_ldtilecfg(&unit, &tiles);
  amx_tileloadd(&unit, 0, of->c, sizeof *of->c);
  amx_tileloadd(&unit, 1, of->a, sizeof *of->a);
  amx_tileloaddt1(&unit, 2, of->b, sizeof *of->b);
  amx_tdpbf16ps(&unit, 0, 1, 2);
  memset(c, 0, sizeof of->c);
  amx_tilestored(&unit, 0, c, sizeof *c);
}

#ifdef ATTN_X86_64
__attribute__((target("amx-tile,amx-bf16"))) static void
multiply_by_processor(const product *of, float c[AMX_ROWS][AMX_COLUMNS]) {
  const amx_configuration tiles = configuration_of(of);
  memset(c, 0, sizeof of->c);
  _tile_loadconfig(&tiles);
  __asm__ volatile("" ::: "memory");
  _tile_loadd(0, of->c, sizeof *of->c);
  _tile_loadd(1, of->a, sizeof *of->a);
  _tile_stream_loadd(2, of->b, sizeof *of->b);
  _tile_dpbf16ps(0, 1, 2);
  _tile_stored(0, c, sizeof *c);
  _tile_release();
}
#endif

typedef void multiply(const product *of, float c[AMX_ROWS][AMX_COLUMNS]);

/* Every configuration, with every kind of inputs; the sign of a zero counts, which NaN it is does not. */
static void assert_same_bits(multiply *one, multiply *other) {
  static product of;
  float found[AMX_ROWS][AMX_COLUMNS], expected[AMX_ROWS][AMX_COLUMNS];
  for (int shape = 0; shape < 16 * 16 * 16; shape++) {
    const inputs *kind = &kinds[(shape + shape / KINDS) % KINDS];
    of.rows = shape % 16 + 1, of.columns = shape / 16 % 16 + 1, of.pairs = shape / 256 + 1;
    draw(&of, kind, (uint64_t)shape);
    one(&of, found), other(&of, expected);
    for (int m = 0; m < AMX_ROWS; m++)
      for (int n = 0; n < AMX_COLUMNS; n++)
        if (attn_bits_of_float(found[m][n]) != attn_bits_of_float(expected[m][n]) &&
            !(isnan(found[m][n]) && isnan(expected[m][n])))
          fail_msg("%s, %d rows, %d columns, %d pairs: sum %d, %d is %a, not %a", kind->name, of.rows,
                   of.columns, of.pairs, m, n, (double)found[m][n], (double)expected[m][n]);
  }
}

static void products_are_the_manuals_in_every_configuration(void **state) {
  (void)state;
  assert_same_bits(multiply_emulated, multiply_as_documented);
}

static void the_mode_for_denormal_numbers_changes_no_bit(void **state) {
  (void)state;
#ifdef ATTN_X86_64
  static product of;
  enum { DENORMALS_ARE_ZERO = 0x0040, FLUSH_TO_ZERO = 0x8000 };
  for (int n = 0; n < 20 * KINDS; n++) {
    float found[AMX_ROWS][AMX_COLUMNS], expected[AMX_ROWS][AMX_COLUMNS];
    of.rows = of.columns = of.pairs = 16;
    draw(&of, &kinds[n % KINDS], (uint64_t)n);
    multiply_emulated(&of, expected);
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | DENORMALS_ARE_ZERO | FLUSH_TO_ZERO);
    multiply_emulated(&of, found);
    _mm_setcsr(mode);
    for (int m = 0; m < AMX_ROWS; m++)
      for (int e = 0; e < AMX_COLUMNS; e++)
        assert_true(attn_bits_of_float(found[m][e]) == attn_bits_of_float(expected[m][e]) ||
                    (isnan(found[m][e]) && isnan(expected[m][e])));
  }
#else
  skip();
#endif
}

static void the_emulation_has_the_bits_of_the_processor(void **state) {
  (void)state;
#ifdef ATTN_X86_64
  /* That the set is there says that the process may use the tiles. */
  if (strcmp(tile_select("avx512_amx", ATTN_BFLOAT16)->name, "avx512_amx") == 0) {
    assert_same_bits(multiply_emulated, multiply_by_processor);
    return;
  }
#endif
  print_message("this processor has no AMX: its bits are not compared\n");
  skip();
}

/* ---- configurations, loads and stores ---- */

static void a_configuration_is_stored_as_it_was_loaded_and_released(void **state) {
  (void)state;
  amx_unit unit = {0};
  const amx_configuration tiles = {.palette = 1, .rows = {3, 16}, .row_bytes = {8, 64}}, none = {0};
  amx_configuration stored;
  amx_ldtilecfg(&unit, &tiles);
  amx_sttilecfg(&unit, &stored);
  assert_memory_equal(&stored, &tiles, sizeof tiles);
  amx_tilerelease(&unit);
  amx_sttilecfg(&unit, &stored);
  assert_memory_equal(&stored, &none, sizeof none);
  amx_ldtilecfg(&unit, &tiles);
  amx_ldtilecfg(&unit, &none); /* palette 0 releases too */
  amx_sttilecfg(&unit, &stored);
  assert_memory_equal(&stored, &none, sizeof none);
}

/* Of rows that are strides apart the configured bytes alone, and of other tiles nothing. */
static void loads_and_stores_touch_what_is_configured(void **state) {
  (void)state;
  enum { STRIDE = 80 };
  uint8_t from[AMX_ROWS * STRIDE], to[AMX_ROWS * STRIDE], again[AMX_ROWS * STRIDE];
  for (int n = 0; n < (int)sizeof from; n++) from[n] = (uint8_t)(1 + n % 255);
  for (int rows = 1; rows <= AMX_ROWS; rows++)
    for (int bytes = 4; bytes <= AMX_ROW_BYTES; bytes += 4) {
      amx_unit unit = {0};
      const amx_configuration tiles = {
          .palette = 1, .rows = {(uint8_t)rows, 16}, .row_bytes = {(uint16_t)bytes, 64}};
      amx_ldtilecfg(&unit, &tiles);
      amx_tileloadd(&unit, 1, from, STRIDE);
      amx_tileloadd(&unit, 0, from, STRIDE);
      memset(to, 0, sizeof to);
      amx_tilestored(&unit, 0, to, STRIDE);
      for (int n = 0; n < (int)sizeof to; n++)
        assert_int_equal(to[n], n / STRIDE < rows && n % STRIDE < bytes ? from[n] : 0);
      for (int m = 0; m < AMX_ROWS; m++)
        for (int n = 0; n < AMX_ROW_BYTES; n++)
          if (m >= rows || n >= bytes) assert_int_equal(unit.tile[0][m][n], 0);
      amx_tilezero(&unit, 0);
      amx_tilestored(&unit, 0, to, STRIDE);
      assert_true(amx_all_zero(to, sizeof to));
      amx_tilestored(&unit, 1, again, STRIDE);
      for (int64_t m = 0; m < AMX_ROWS; m++)
        assert_memory_equal(again + m * STRIDE, from + m * STRIDE, AMX_ROW_BYTES);
    }
}

/* ---- faults ---- */

/* A configuration with which tiles 0, 1, 2 are 5 x 7, 5 x 3 and 3 x 7, but for what a fault changes; then what is done. */
typedef struct fault {
  const char *words;
  void (*spoil)(amx_configuration *tiles);
  int c, a, b;
} fault;

static void nothing(amx_configuration *tiles) { (void)tiles; }
static void palette_2(amx_configuration *tiles) { tiles->palette = 2; }
static void palette_0(amx_configuration *tiles) { tiles->palette = 0; }
static void started(amx_configuration *tiles) { tiles->start_row = 1; }
static void reserved_head(amx_configuration *tiles) { tiles->reserved[13] = 1; }
static void ninth_bytes(amx_configuration *tiles) { tiles->row_bytes[8] = 4; }
static void ninth_rows(amx_configuration *tiles) { tiles->rows[8] = 1; }
static void many_rows(amx_configuration *tiles) { tiles->rows[0] = 17; }
static void many_bytes(amx_configuration *tiles) { tiles->row_bytes[0] = 68; }
static void rows_alone(amx_configuration *tiles) { tiles->rows[3] = 1; }
static void bytes_alone(amx_configuration *tiles) { tiles->row_bytes[3] = 4; }
static void half_a_pair(amx_configuration *tiles) { tiles->row_bytes[1] = 14; }
static void c_higher_than_a(amx_configuration *tiles) { tiles->rows[0] = 6; }
static void c_wider_than_b(amx_configuration *tiles) { tiles->row_bytes[0] = 32; }
static void a_deeper_than_b(amx_configuration *tiles) { tiles->row_bytes[1] = 16; }

static const fault faults[] = {
    {"#GP, LDTILECFG: there is no such palette", palette_2, 0, 1, 2},
    {"LDTILECFG: a start_row is not emulated", started, 0, 1, 2},
    {"#GP, LDTILECFG: a reserved byte is not 0", reserved_head, 0, 1, 2},
    {"#GP, LDTILECFG: a reserved byte is not 0", ninth_bytes, 0, 1, 2},
    {"#GP, LDTILECFG: a reserved byte is not 0", ninth_rows, 0, 1, 2},
    {"#GP, LDTILECFG: more than 16 rows", many_rows, 0, 1, 2},
    {"#GP, LDTILECFG: rows of more than 64 bytes", many_bytes, 0, 1, 2},
    {"#GP, LDTILECFG: rows without bytes, or bytes without rows", rows_alone, 0, 1, 2},
    {"#GP, LDTILECFG: rows without bytes, or bytes without rows", bytes_alone, 0, 1, 2},
    {"#UD: no tiles are configured", palette_0, 0, 1, 2},
    {"#UD: there is no such tile", nothing, 8, 1, 2},
    {"#UD: this tile has no rows", nothing, 0, 1, 3},
    {"#UD: rows of a tile that are no multiple of 4 bytes", half_a_pair, 0, 1, 2},
    {"#UD, TDPBF16PS: one tile as two operands", nothing, 0, 1, 1},
    {"#UD, TDPBF16PS: one tile as two operands", nothing, 0, 0, 2},
    {"#UD, TDPBF16PS: the rows of C are not those of A", c_higher_than_a, 0, 1, 2},
    {"#UD, TDPBF16PS: the columns of C are not those of B", c_wider_than_b, 0, 1, 2},
    {"#UD, TDPBF16PS: the columns of A are not the rows of B", a_deeper_than_b, 0, 1, 2},
};

static void multiply_with(const fault *of) {
  amx_unit unit = {0};
  amx_configuration tiles = {.palette = 1, .rows = {5, 5, 3}, .row_bytes = {28, 12, 28}};
  of->spoil(&tiles);
  amx_ldtilecfg(&unit, &tiles);
  amx_tdpbf16ps(&unit, of->c, of->a, of->b);
}

/* In a child, whose stderr is `words`; returns its status. */
static int status_of(const fault *of, char *words, size_t size) {
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    multiply_with(of);
    _exit(0);
  }
  close(ends[1]);
  ssize_t count = read(ends[0], words, size - 1);
  words[count > 0 ? count : 0] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void faults_end_the_program_with_a_word(void **state) {
  (void)state;
  char words[256];
  const fault none = {"", nothing, 0, 1, 2};
  assert_int_equal(status_of(&none, words, sizeof words), 0);
  for (size_t n = 0; n < sizeof faults / sizeof *faults; n++) {
    const int status = status_of(&faults[n], words, sizeof words);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    if (!strstr(words, faults[n].words))
      fail_msg("fault %d says '%s', not '%s'", (int)n, words, faults[n].words);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_are_the_manuals_in_every_configuration),
      cmocka_unit_test(the_mode_for_denormal_numbers_changes_no_bit),
      cmocka_unit_test(the_emulation_has_the_bits_of_the_processor),
      cmocka_unit_test(a_configuration_is_stored_as_it_was_loaded_and_released),
      cmocka_unit_test(loads_and_stores_touch_what_is_configured),
      cmocka_unit_test(faults_end_the_program_with_a_word),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
