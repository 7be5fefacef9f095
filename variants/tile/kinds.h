/* The kernels of an instruction set for each type of elements, with products of floats: its file includes this behind
 * arithmetic.h, having defined load_bfloat16, load_bfloat16_part, store_bfloat16 and the same of float16 besides. It may load
 * two vectors of bfloat16 faster with the even features in the first (BFLOAT16_IN_TWO: load_two_bfloat16, and even_and_odd and
 * in_turn for what meets them), and store two squares of rows by features at once (BFLOAT16_IN_PAIRS: store_in_pairs). Where it
 * multiplies pairs of bfloat16, pairs.h comes behind it.
 *
 * ONLY_BFLOAT16, where it is defined: a set that adds products to another needs no more; with AND_FLOAT16 rows of that, too. */
#include "../elements.h"

#ifndef ONLY_BFLOAT16
#define KIND floats
#define STEP 1
#define operand float
#define BROADCAST(x) broadcast(x)
#define MULTIPLY_ADD(a, b, sum) fused_multiply_add(a, b, sum)
#define SCALED(score, factor) ((void)(factor), (score)) /* they are: the queries were */
#include "products.h"

#include "additive.h"

#define KIND float32
#define element float
#define LOAD(x) load(x)
#define LOAD_PART(x, n) load_part(x, n)
#define STORE(x, a) store(x, a)
#define FROM_ELEMENT(x) (x)
#define TO_ELEMENT(x) (x)
#include "element_rows.h"
#endif

#if !defined ONLY_BFLOAT16 || defined AND_FLOAT16
#define KIND float16
#define element uint16_t
#define LOAD(x) load_float16(x)
#define LOAD_PART(x, n) load_float16_part(x, n)
#define STORE(x, a) store_float16(x, a)
#define FROM_ELEMENT(x) attn_from_float16(x)
#define TO_ELEMENT(x) attn_to_float16(x)
#include "element_rows.h"
#endif

#define KIND bfloat16
#define element uint16_t
#define LOAD(x) load_bfloat16(x)
#define LOAD_PART(x, n) load_bfloat16_part(x, n)
#define STORE(x, a) store_bfloat16(x, a)
#define FROM_ELEMENT(x) attn_from_bfloat16(x)
#define TO_ELEMENT(x) attn_to_bfloat16(x)
#ifdef BFLOAT16_IN_TWO
#define LOAD_TWO(from, x) load_two_bfloat16(from, x)
#define APART(x) even_and_odd(x)
#define TOGETHER(x) in_turn(x)
#endif
#ifdef BFLOAT16_TURNED
#define TURNED_LOW(x) low_bfloat16(x)
#define TURNED_HIGH(x) high_bfloat16(x)
#endif
#ifdef BFLOAT16_IN_PAIRS
#define STORE_IN_PAIRS store_in_pairs
#endif
#include "element_rows.h"

/* Pairs are not what gradients and linear attention are added up from. Sums of floats leave no registers for the largest. */
#define ADD_PRODUCTS_floats add_products_floats
#define ADD_PRODUCTS_pairs NULL
#define SUM_PRODUCTS_floats sum_products
#define SUM_PRODUCTS_pairs NULL
#ifdef OWN_ELU1
#define MAPS_BESIDE_floats true
#else
#define MAPS_BESIDE_floats false
#endif
#define MAPS_BESIDE_pairs false
#define ADDITIVE_floats(kernel) kernel
#define ADDITIVE_pairs(kernel) NULL
#define WITH_LARGEST_floats(kernel) NULL
#define WITH_LARGEST_pairs(kernel) kernel
#define WITH_LARGEST_tiles(kernel) NULL
#define ATTEND_floats NULL
#define ATTEND_pairs NULL
#define ATTEND_tiles attend_tiles
#define TILED_SCORES_floats NULL
#define TILED_SCORES_pairs NULL
#define TILED_SCORES_tiles tiled_scores
#define TILED_ACCUMULATE_floats NULL
#define TILED_ACCUMULATE_pairs NULL
#define TILED_ACCUMULATE_tiles tiled_accumulate
#define PARTS_floats 1
#define PARTS_pairs 1
#define PARTS_tiles 1

/* kind: of the elements; operands: of the products. */
#define TILE_TABLE(set, elements, kind, operands, products, each, copies_keys, copies_values, transposes,    \
                   packs)                                                                                    \
  {                                                                                                          \
    .name = (set), .type = (elements), .element_bytes = (elements) == ATTN_FLOAT32 ? 4 : 2, .lanes = LANES,  \
    .max_rows = MAX_VECTORS * LANES,                                                                         \
    .few_rows = (elements) == ATTN_FLOAT32 ? FEW_OF_FLOATS : 2 * TILE_FEW_ROWS,                              \
    .keys = (each) == 1 ? TILE_KEYS : TILE_MOST_KEYS, .step = (each), .parts = PARTS_##products,             \
    .copy_keys = (copies_keys), .copy_values = (copies_values), .transposes_values = (transposes),           \
    .scores = scores_##products, .add_products = ADD_PRODUCTS_##operands,                                    \
    .sum_products = SUM_PRODUCTS_##operands, .maps_beside = MAPS_BESIDE_##operands, .grade = grade,          \
    .scores_and_largest = WITH_LARGEST_##products(scores_and_largest),                                       \
    .softmax_of_largest = WITH_LARGEST_##products(softmax_of_largest), .accumulate = accumulate_##products,  \
    .attend = ATTEND_##products, .softmax = softmax_##operands, .drop = drop_##operands, .hide = hide,       \
    .look = look, .hide_masked = hide_masked, .add_run = add_run, .add_bias = add_bias_##kind,               \
    .all_finite = all_finite_##kind, .copy_finite = copy_finite_##kind, .read = read_floats_##kind,          \
    .rotate = rotate_##kind, .softmax_row = softmax_row, .softcap = softcap, .exp2 = exp2_all,               \
    .elu1 = elu1_##kind, .at_least = at_least_##kind, .pack = (packs), .unpack = unpack_##kind,              \
    .scale_rows = scale_rows_##kind, .join = join, .add_rows = add_rows, .dot_rows = dot_rows,               \
    .dot_pairs = dot_pairs, .scale_slopes = scale_slopes, .few_order = few_order_##kind,                     \
    .few_scores = few_scores_##kind, .few_accumulate = few_accumulate_##kind,                                \
    .tiled_scores = TILED_SCORES_##products, .tiled_accumulate = TILED_ACCUMULATE_##products,                \
    .additive_powers = ADDITIVE_##operands(additive_powers),                                                 \
    .additive_scores = ADDITIVE_##operands(additive_scores),                                                 \
    .few_additive = ADDITIVE_##operands(few_additive)                                                        \
  }

/* In the order of attn_type. */
#define TILE_TABLES(set)                                                                                     \
  {                                                                                                          \
    TILE_TABLE(set, ATTN_FLOAT32, float32, floats, floats, 1, NULL, copy_floats_float32, false,              \
               pack_float32),                                                                                \
        TILE_TABLE(set, ATTN_BFLOAT16, bfloat16, floats, floats, 1, copy_floats_bfloat16,                    \
                   copy_floats_bfloat16, false, pack_bfloat16),                                              \
        TILE_TABLE(set, ATTN_FLOAT16, float16, floats, floats, 1, copy_floats_float16, copy_floats_float16,  \
                   false, pack_float16)                                                                      \
  }
