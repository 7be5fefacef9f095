/* Products of four warps (wgmma) on an emulated device, as the PTX manual says ("Asynchronous Warpgroup
 * Level Matrix Instructions"). Each warp has 16 rows of a product to itself, so that each is emulated
 * alone, and what they were asked is compared at the end.
 *
 * A product reads shared memory and registers at some time between its start and the end of a wait for its
 * group: at the latest, or by the schedule at once. Meanwhile its sums hold NaN. */
#include "../../elements.h"
#include "engine.h"
#include "hopper.h"

namespace emulation {

constexpr unsigned MOST_PRODUCTS = 64, MOST_SUMS = 4, ROWS = 16, DEPTH = 16, MOST_COLUMNS = 256;

/* Sums of one array of registers, which some products add to. */
struct sums {
  float *registers[WARP], values[WARP][MOST_COLUMNS / 2];
  unsigned products;
};

struct started_product {
  product of; /* of lane 0 */
  const uint32_t *a[WARP];
  sums *to;
  unsigned group;
  bool is_done;
};

/* Of a warp. */
struct matrix_unit {
  started_product products[MOST_PRODUCTS];
  unsigned count, groups;
  bool is_fenced;
  sums open[MOST_SUMS];
  uint64_t asked; /* a digest of all products */
};
static matrix_unit units[MOST_WARPS];

/* ---- matrices in shared memory ---- */

/* The descriptor's fields (PTX manual, "Matrix Descriptor Format"). */
struct matrix {
  uint32_t start, leading, stride;
  unsigned swizzle; /* 0 to 3: none, 32, 64, 128 bytes */

  explicit matrix(uint64_t descriptor)
      : start((uint32_t)(descriptor & 0x3fff) << 4), leading((uint32_t)(descriptor >> 16 & 0x3fff) << 4),
        stride((uint32_t)(descriptor >> 32 & 0x3fff) << 4), swizzle((4 - (unsigned)(descriptor >> 62)) % 4) {}

  /* Where 8 elements lie that follow one another along the major axis ("Strides", "Canonical Layouts"):
   * chunk `chunk` along it of line `line`. 8 lines of as many bytes as the swizzle spans make an atom. */
  uint32_t chunk_at(unsigned line, unsigned chunk, bool is_k_major) const {
    const unsigned span = 1u << swizzle; /* in chunks */
    uint32_t at = start + line % 8 * span * 16 + chunk % span * 16;
    if (is_k_major)
      at += line / 8 * stride + (swizzle ? 0 : chunk * leading);
    else if (swizzle)
      at += line / 8 * stride + chunk / span * leading;
    else
      at += line / 8 * leading + chunk * stride;
    return swizzled(at, swizzle);
  }
};

/* Gives each 16 bytes that a product reads of a matrix of so many lines along its minor axis to a function,
 * with the line and the chunk. */
template <class function>
static void for_each_chunk(uint64_t descriptor, unsigned first_line, unsigned lines, unsigned chunks,
                           bool is_k_major, function of) {
  const matrix in(descriptor);
  for (unsigned line = first_line; line < first_line + lines; line++)
    for (unsigned chunk = 0; chunk < chunks; chunk++)
      of(line - first_line, chunk, shared_pointer(in.chunk_at(line, chunk, is_k_major)));
}

/* All that the running warp's part of a product reads. */
template <class function> static void for_each_chunk_read(const product &p, function of) {
  if (!p.a) for_each_chunk(p.a_matrix, running->warp % 4 * ROWS, ROWS, DEPTH / 8, true, of);
  if (p.b_is_n_major)
    for_each_chunk(p.b_matrix, 0, DEPTH, p.columns / 8, false, of);
  else
    for_each_chunk(p.b_matrix, 0, p.columns, DEPTH / 8, true, of);
}

/* ---- one product ---- */

static void read_a(const started_product &p, double (*a)[DEPTH]) {
  const attn_type type = p.of.type;
  if (!p.of.a) {
    for_each_chunk(p.of.a_matrix, running->warp % 4 * ROWS, ROWS, DEPTH / 8, true,
                   [=](unsigned row, unsigned chunk, const unsigned char *from) {
                     for (unsigned n = 0; n < 8; n++)
                       a[row][8 * chunk + n] = (double)attn_load(from, type, n);
                   });
    return;
  }
  for (unsigned lane = 0; lane < WARP; lane++)
    for (unsigned n = 0; n < 8; n++) /* as of mma: half n % 2 of register n / 2 */
      a[lane / 4 + 8 * (n / 2 % 2)][2 * (lane % 4) + 8 * (n / 4) + n % 2] =
          (double)attn_load(p.a[lane], type, n);
}

static void perform(started_product &p) {
  static double a[ROWS][DEPTH], b[DEPTH][MOST_COLUMNS], sum[ROWS][MOST_COLUMNS];
  const attn_type type = p.of.type;
  if (p.is_done) return;
  p.is_done = true;
  read_a(p, a);
  if (p.of.b_is_n_major)
    for_each_chunk(p.of.b_matrix, 0, DEPTH, p.of.columns / 8, false,
                   [=](unsigned k, unsigned chunk, const unsigned char *from) {
                     for (unsigned n = 0; n < 8; n++) b[k][8 * chunk + n] = (double)attn_load(from, type, n);
                   });
  else
    for_each_chunk(p.of.b_matrix, 0, p.of.columns, DEPTH / 8, true,
                   [=](unsigned column, unsigned chunk, const unsigned char *from) {
                     for (unsigned n = 0; n < 8; n++)
                       b[8 * chunk + n][column] = (double)attn_load(from, type, n);
                   });
  /* Lane 4 group + member has rows group and group + 8, and of each 8 columns 2 member and the next. */
  const unsigned columns = p.of.columns;
  for (unsigned lane = 0; lane < WARP; lane++)
    for (unsigned n = 0; n < columns / 2; n++)
      sum[lane / 4 + 8 * (n / 2 % 2)][n / 4 * 8 + 2 * (lane % 4) + n % 2] =
          p.of.adds ? (double)p.to->values[lane][n] : 0;
  for (unsigned row = 0; row < ROWS; row++)
    for (unsigned k = 0; k < DEPTH; k++)
      for (unsigned column = 0; column < columns; column++) sum[row][column] += a[row][k] * b[k][column];
  for (unsigned lane = 0; lane < WARP; lane++)
    for (unsigned n = 0; n < columns / 2; n++)
      p.to->values[lane][n] = truncated(sum[lane / 4 + 8 * (n / 2 % 2)][n / 4 * 8 + 2 * (lane % 4) + n % 2]);
}

/* ---- starting and waiting, by a warp whose lanes have met ---- */

/* The sums in these registers, which hold NaN from here on. */
static sums *open_sums(matrix_unit *unit, void *const brought[WARP]) {
  const product *first = static_cast<product *>(brought[0]);
  sums *unused = nullptr;
  for (sums &open : unit->open) {
    if (open.products && open.registers[0] == first->sum) return &open;
    if (!open.products) unused = &open;
  }
  if (!unused) complain("a warp has products to more than %u arrays of sums under way", MOST_SUMS);
  for (unsigned lane = 0; lane < WARP; lane++) {
    float *const registers = static_cast<product *>(brought[lane])->sum;
    unused->registers[lane] = registers;
    memcpy(unused->values[lane], registers, first->columns / 2 * sizeof(float));
    for (unsigned n = 0; n < first->columns / 2; n++) registers[n] = NAN;
  }
  return unused;
}

static void start(void *const brought[WARP], unsigned mask) {
  matrix_unit *unit = &units[running->warp];
  const product *first = static_cast<product *>(brought[0]);
  char line[96];
  if (mask != 0xffffffffu) complain("wgmma is for whole warps");
  for (unsigned lane = 1; lane < WARP; lane++) {
    const product *other = static_cast<product *>(brought[lane]);
    if (other->b_matrix != first->b_matrix || other->a_matrix != first->a_matrix ||
        other->adds != first->adds)
      complain("lanes of a warp bring different matrices to wgmma");
  }
  if (!unit->is_fenced) {
    format_line(line, sizeof line, first->code);
    complain("wgmma at %s without wgmma.fence since the last wait", line);
  }
  if (unit->count == MOST_PRODUCTS) complain("more than %u products of a warp are under way", MOST_PRODUCTS);
  started_product *p = &unit->products[unit->count++];
  p->of = *first;
  for (unsigned lane = 0; lane < WARP; lane++) p->a[lane] = static_cast<product *>(brought[lane])->a;
  p->to = open_sums(unit, brought);
  p->to->products++;
  p->group = unit->groups;
  p->is_done = false;
  leave_products();
  for_each_chunk_read(p->of, [=](unsigned, unsigned, const unsigned char *from) {
    start_product_read(from, 16, first->code);
  });
  const uint64_t parts[] = {first->a_matrix, first->b_matrix, first->columns, first->adds};
  for (const uint64_t part : parts) unit->asked = (unit->asked ^ part) * 0x100000001b3u; /* FNV-1a's prime */
  if (scheduled->copies_land_early) perform(*p);
}

static void finish(started_product *p) {
  perform(*p);
  for_each_chunk_read(p->of,
                      [](unsigned, unsigned, const unsigned char *from) { end_product_read(from, 16); });
  sums *to = p->to;
  if (--to->products) return;
  for (unsigned lane = 0; lane < WARP; lane++)
    memcpy(to->registers[lane], to->values[lane], p->of.columns / 2 * sizeof(float));
}

/* In their order. */
static void finish_groups(matrix_unit *unit, unsigned groups_left) {
  unsigned finished = 0;
  now++;
  for (; finished < unit->count; finished++) {
    if (unit->products[finished].group + groups_left >= unit->groups) break;
    finish(&unit->products[finished]);
  }
  unit->count -= finished;
  memmove(unit->products, unit->products + finished, unit->count * sizeof *unit->products);
  unit->is_fenced = false;
}

static void fence(void *const[WARP], unsigned) { units[running->warp].is_fenced = true; }
static void commit(void *const[WARP], unsigned) { units[running->warp].groups++; }
static void wait(void *const brought[WARP], unsigned) {
  finish_groups(&units[running->warp], *static_cast<unsigned *>(brought[0]));
}

constexpr unsigned ALL = 0xffffffffu;
void start_product(const product *mine) {
  product with_code = *mine;
  with_code.code = __builtin_return_address(0);
  meet_warp(ALL, &with_code, start, "wgmma");
}
void fence_products() { meet_warp(ALL, nullptr, fence, "wgmma.fence"); }
void commit_products() { meet_warp(ALL, nullptr, commit, "wgmma.commit_group"); }
void wait_for_products(unsigned groups_left) { meet_warp(ALL, &groups_left, wait, "wgmma.wait_group"); }

/* ---- blocks ---- */

void start_block_products() {
  for (matrix_unit &unit : units) {
    unit.count = unit.groups = 0;
    unit.is_fenced = false;
    unit.asked = 0;
    for (sums &open : unit.open) open.products = 0;
  }
}

void end_block_products() {
  char line[96];
  for (unsigned warp = 0; warp < MOST_WARPS; warp++) {
    const matrix_unit *unit = &units[warp], *first = &units[warp / 4 * 4];
    if (unit->count) {
      format_line(line, sizeof line, unit->products[0].of.code);
      note_complaint("a block ends that has not waited for wgmma at %s", line);
    } else if (unit->asked != first->asked)
      note_complaint("warps %u and %u, which multiply together, were asked different wgmma", warp / 4 * 4,
                     warp);
  }
}

} // namespace emulation
