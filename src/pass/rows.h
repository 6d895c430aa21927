// SPDX-License-Identifier: Apache-2.0
// rows.h — questions about row programs that passes ask and the tiler asks again.
#ifndef OTRN_PASS_ROWS_H
#define OTRN_PASS_ROWS_H

#include "hlo/query.h"
#include "hlo/why.h"
#include "mach/chipfile.h"

#define ROWS_MIN_ELEMS 512 // below this a GpSimd kernel over HBM costs less than transfers in and out

// Rows and columns of a batch up to which attention's products and its row program are better apart, a batch at a time: in one tile nothing
// overlaps, and many such products are taken together (tile/dot.c). Where the array turns operands too, each batch begins with that, and two
// tiles do not fill the time either.
static inline int64_t rows_short(const ChipFile *chip) { return chip && chip->dma_transpose <= 0 ? 256 : 128; }
// In one tile the products before the program are apart as well.
static inline bool rows_one_tile(int64_t rows, int64_t columns) { return rows <= PARTITIONS && columns <= PARTITIONS; }

// Batches of attention that share a tile, side by side in each partition, so that products and program are one step all the same
// (tile/block.c); 1: they do not.
int64_t rows_batches(const ChipFile *chip, int dtype, int64_t batches, int64_t rows, int64_t columns);
int64_t rows_batches_of(const ChipFile *chip, const Hlo *h, const HloOp *dot); // … of the product that makes the scores

// True when the op may be a member of a row program: elementwise, of types and kinds the engines do.
bool rows_may_hold(const Hlo *h, const HloOp *op, Why *why);
// Why an operation, or one of those joined in it, is in no row program; nothing for what row programs are not about.
void rows_refused(const Hlo *h, const HloOp *op, Why *why);
// Numbers 0, 1, … of all elements in order: 32 bits, perhaps in another shape. Programs make them where they are used.
bool rows_is_count(const Hlo *h, ValueId v);
// Draws of the engines' generator (otrn.draw), perhaps in another shape: the op, 0: they are none.
OpId rows_draw(const Hlo *h, ValueId v);
// A row program in which halves of rows change places.
bool rows_exchange(const Hlo *h, const HloOp *rows);
// A row program that works on integers, as those that make random numbers do.
bool rows_of_ints(const Hlo *h, const HloOp *rows);
// Nothing in the program tells rows or columns: it works on elements wherever they are.
bool rows_is_flat(const Hlo *h, const HloOp *rows);

// --- what the grouping of rows.c asks about single ops (rows_member.c) ------------------------------

// A member of a program of integers: bits on the vector engine, arithmetic that wraps on gpsimd, and what hands bits on.
bool rows_may_hold_ints(const Hlo *h, const HloOp *op);
// Columns a reduction along rows sums up; 0 when it is none, or not one the engines do.
int64_t rows_reduced_columns(const Hlo *h, const HloOp *op, Why *why);
// How a broadcast repeats its operand: each element in turn (FUSED_ROWS), all of it (FUSED_COLUMNS), each of its rows in
// turn (FUSED_BLOCKS), or in another way (-1).
int64_t rows_repeats(const Hlo *h, const HloOp *op);

// What a full value's operand from outside is before it was repeated.
typedef struct Source {
    ValueId v;
    int64_t kind;
    int64_t columns; // of a block's row
} Source;

Source rows_source(const Hlo *h, const HloOp *op, ValueId v);
// A select's predicate and the bounds of a clamp may be one element for all.
bool rows_is_for_all(const Hlo *h, const HloOp *op, ValueId v);

#endif
