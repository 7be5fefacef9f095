/* See emulation.h: copies that take their time. They land as late as the program allows, which is when
 * somebody has waited for them or nobody can run on; or, by the schedule, at once. */
#include "engine.h"
#include "hopper.h"

#include <stdio.h>

#define CODE __builtin_return_address(0)

namespace emulation {

/* ---- cp.async ---- */

void copy_async(void *to, const void *from, unsigned bytes, unsigned filled) {
  fiber *me = running;
  if (bytes != 4 && bytes != 8 && bytes != 16) complain("cp.async of %u bytes: it copies 4, 8 or 16", bytes);
  if (!is_shared(to)) complain("cp.async to memory that is not shared");
  if ((uintptr_t)to % bytes || (filled && (uintptr_t)from % bytes))
    complain("cp.async of %u bytes at an address that is not aligned to them", bytes);
  if (me->copy_count == fiber::MOST_COPIES)
    complain("more than %u copies of a thread are under way", fiber::MOST_COPIES);
  asynchronous_copy *copy = &me->copies[me->copy_count++];
  *copy = {to, from, bytes, filled, me->groups, __builtin_return_address(0)};
  look_at_copy_start(copy);
  if (scheduled->copies_land_early) {
    memcpy(to, from, filled);
    memset(static_cast<char *>(to) + filled, 0, bytes - filled);
  }
}

void commit_copies() { running->groups++; }

void wait_for_copies(unsigned groups_left) {
  fiber *me = running;
  unsigned kept = 0;
  for (unsigned n = 0; n < me->copy_count; n++)
    if (me->copies[n].group + groups_left < me->groups)
      land(&me->copies[n]);
    else
      me->copies[kept++] = me->copies[n];
  me->copy_count = kept;
}

/* ---- mbarriers (PTX manual, "Parallel Synchronization and Communication Instructions: mbarrier") ---- */

struct mbarrier {
  const void *at;
  unsigned arrivals, pending, generation; /* phases that are complete */
  int64_t bytes;                          /* that are still to come */
  knowledge released, completed;          /* of who arrived, and that at the end of the last phase */
  unsigned maker;
  stamp made;
  unsigned copied, waited; /* the last phase that had copies, and that somebody waited for */
  const void *copying_code;
};
static mbarrier mbarriers[MOST_MBARRIERS];
unsigned mbarrier_count;
constexpr int64_t MOST_BYTES = (1 << 20) - 1;

void start_mbarrier(uint64_t *at, unsigned arrivals) {
  if (!is_shared(at) || (uintptr_t)at % 8)
    complain("an mbarrier is 8 bytes of shared memory, aligned to them");
  if (!arrivals || arrivals >= 1 << 20) complain("an mbarrier for %u arrivals", arrivals);
  if (mbarrier_count == MOST_MBARRIERS) complain("more than %u mbarriers in a block", MOST_MBARRIERS);
  look_at_write(at, 8, CODE);
  mbarrier *b = &mbarriers[mbarrier_count++];
  memset(b, 0, sizeof *b);
  b->at = at;
  b->arrivals = b->pending = arrivals;
  b->maker = running->number;
  b->made = now;
}

static mbarrier *mbarrier_at(const uint64_t *at, const void *code) {
  for (unsigned n = 0; n < mbarrier_count; n++)
    if (mbarriers[n].at == at) {
      look_at_made(at, code);
      return &mbarriers[n];
    }
  char line[96];
  format_line(line, sizeof line, code);
  complain("there is no mbarrier where %s uses one", line);
}

static void end_phase(mbarrier *b) {
  if (b->pending || b->bytes) return;
  now++;
  b->completed = b->released;
  b->pending = b->arrivals;
  b->generation++;
}

void arrive_at_mbarrier(uint64_t *at, unsigned bytes) {
  mbarrier *b = mbarrier_at(at, CODE);
  char line[96];
  if (!b->pending) {
    format_line(line, sizeof line, CODE);
    complain("more than the %u arrivals of a phase come to an mbarrier at %s", b->arrivals, line);
  }
  b->bytes += bytes;
  if (b->bytes > MOST_BYTES)
    complain("an mbarrier expects %lld bytes: 2^20 - 1 are the most", (long long)b->bytes);
  b->pending--;
  release(&b->released);
  end_phase(b);
}

/* Also that of the phase before the first is one that has completed. */
void wait_at_mbarrier(uint64_t *at, unsigned parity) {
  mbarrier *b = mbarrier_at(at, CODE);
  while (b->generation % 2 == parity) wait_until_changed(&b->generation, "an mbarrier", CODE);
  b->waited = b->generation;
  acquire(&b->completed);
}

void fence_async_proxy() { running->fenced = ++now; }

/* ---- copies in bulk (PTX manual, "cp.async.bulk.tensor", "Tensors") ---- */

struct bulk_copy {
  unsigned char *to;
  tensor_map map;
  int coordinates[5];
  mbarrier *of;
};
constexpr unsigned MOST_BULK_COPIES = 256;
static bulk_copy bulk_copies[MOST_BULK_COPIES];
static unsigned bulk_copy_count;

uint32_t shared_address(const void *pointer) {
  const size_t at =
      (size_t)(static_cast<const unsigned char *>(pointer) - static_cast<unsigned char *>(dynamic_shared()));
  if (at >= DYNAMIC_BYTES) complain("bulk copies and products are emulated in dynamic shared memory alone");
  return (uint32_t)at;
}
unsigned char *shared_pointer(uint32_t address) {
  return static_cast<unsigned char *>(dynamic_shared()) + address;
}

/* Of its requirements those of 16 bits without interleaving. A box that is narrower than the swizzle is
 * left out: its rows would not adjoin. */
bool encode_tiled(tensor_map *map, attn_type type, unsigned rank, const void *first, const uint64_t *sizes,
                  const uint64_t *strides, const uint32_t *box, unsigned swizzle) {
  const unsigned bytes = 2;
  if ((type != ATTN_BFLOAT16 && type != ATTN_FLOAT16) || rank < 1 || rank > 5 || (uintptr_t)first % 16 ||
      swizzle > 3 || box[0] * bytes % 16 || (swizzle && box[0] * bytes != 16u << swizzle))
    return false;
  *map = {static_cast<const unsigned char *>(first), {}, {}, {}, rank, bytes, swizzle};
  for (unsigned n = 0; n < rank; n++) {
    map->sizes[n] = sizes[n], map->box[n] = box[n], map->strides[n] = n ? strides[n - 1] : bytes;
    if (!sizes[n] || sizes[n] > UINT64_C(1) << 32 || !box[n] || box[n] > 256) return false;
    if (n && (map->strides[n] % 16 || map->strides[n] >= UINT64_C(1) << 40)) return false;
  }
  return true;
}

static size_t row_bytes(const tensor_map &map) { return map.box[0] * map.element_bytes; }
static unsigned rows_of(const tensor_map &map) {
  unsigned rows = 1;
  for (unsigned n = 1; n < map.rank; n++) rows *= map.box[n];
  return rows;
}

/* Where a row of a box begins in the tensor, and how many of its bytes the tensor has from `skipped` on. */
struct box_row {
  const unsigned char *first;
  size_t skipped, bytes;
};
static box_row row_of(const bulk_copy &copy, unsigned row) {
  const tensor_map &map = copy.map;
  box_row of = {map.first, 0, 0};
  for (unsigned n = 1; n < map.rank; row /= map.box[n++]) {
    const int64_t at = copy.coordinates[n] + (int64_t)(row % map.box[n]);
    if (at < 0 || at >= (int64_t)map.sizes[n]) return of;
    of.first += at * (int64_t)map.strides[n];
  }
  const int64_t begin = copy.coordinates[0], end = begin + map.box[0], size = (int64_t)map.sizes[0];
  const int64_t first = begin < 0 ? 0 : begin, last = end < size ? end : size;
  if (first >= last) return of;
  return {of.first + first * map.element_bytes, (size_t)(first - begin) * map.element_bytes,
          (size_t)(last - first) * map.element_bytes};
}

/* What the tensor does not have becomes 0, and counts as copied. */
static void land_bulk_copy(const bulk_copy &copy) {
  const size_t width = row_bytes(copy.map), bytes = width * rows_of(copy.map);
  const uint32_t to = shared_address(copy.to);
  mbarrier *b = copy.of;
  for (unsigned row = 0; row < rows_of(copy.map); row++) {
    const box_row from = row_of(copy, row);
    for (size_t n = 0; n < width; n++)
      *shared_pointer(swizzled((uint32_t)(to + row * width + n), copy.map.swizzle)) =
          n - from.skipped < from.bytes ? from.first[n - from.skipped] : 0;
  }
  now++;
  land_bulk(copy.to, bytes);
  b->released.until[MOST_WARPS + (unsigned)(b - mbarriers)] = ++now;
  b->bytes -= (int64_t)bytes;
  if (b->bytes < -MOST_BYTES) note_complaint("2^20 bytes more are copied than an mbarrier expects");
  b->copied = b->generation + 1;
  end_phase(b);
}

void copy_box(void *to, const tensor_map *map, const int *coordinates, uint64_t *at) {
  mbarrier *b = mbarrier_at(at, CODE);
  char line[96];
  if (b->made >= fiber_of(b->maker)->fenced) {
    format_line(line, sizeof line, CODE);
    complain("a bulk copy at %s to an mbarrier after whose initialisation fence.proxy.async is missing",
             line);
  }
  if ((uintptr_t)to % 128) {
    format_line(line, sizeof line, CODE);
    complain("a bulk copy at %s to an address that is not aligned to 128 bytes", line);
  }
  if (bulk_copy_count == MOST_BULK_COPIES)
    complain("more than %u bulk copies are under way", MOST_BULK_COPIES);
  bulk_copy *copy = &bulk_copies[bulk_copy_count];
  *copy = {static_cast<unsigned char *>(to), *map, {}, b};
  memcpy(copy->coordinates, coordinates, map->rank * sizeof *coordinates);
  (void)shared_address(to);
  for (unsigned row = 0; row < rows_of(*map); row++) {
    const box_row from = row_of(*copy, row);
    if (from.bytes) look_at_read(from.first, from.bytes, CODE);
  }
  look_at_bulk_start(to, row_bytes(*map) * rows_of(*map), MOST_WARPS + (unsigned)(b - mbarriers), CODE);
  b->copying_code = CODE;
  if (scheduled->copies_land_early)
    land_bulk_copy(*copy);
  else
    bulk_copy_count++;
}

/* Copies have no order among themselves. */
bool land_one() {
  if (!bulk_copy_count) return false;
  const unsigned last = bulk_copy_count - 1;
  const unsigned n = scheduled->order == schedule::FORWARDS    ? 0
                     : scheduled->order == schedule::BACKWARDS ? last
                                                               : random_below(bulk_copy_count);
  const bulk_copy landing = bulk_copies[n];
  memmove(bulk_copies + n, bulk_copies + n + 1, (last - n) * sizeof landing);
  bulk_copy_count--;
  land_bulk_copy(landing);
  return true;
}

void start_block_copies() { bulk_copy_count = mbarrier_count = 0; }

void end_block_copies() {
  char line[96];
  while (land_one()) {
  }
  for (unsigned n = 0; n < mbarrier_count; n++) {
    const mbarrier *b = &mbarriers[n];
    if (b->copying_code && b->copied > b->waited) {
      format_line(line, sizeof line, b->copying_code);
      note_complaint("a block ends that has not waited for a bulk copy at %s", line);
    } else if (b->bytes)
      note_complaint("a block ends where an mbarrier expects %lld bytes more", (long long)b->bytes);
  }
}

} // namespace emulation
