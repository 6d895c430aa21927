// SPDX-License-Identifier: Apache-2.0
// rows.h — questions about reductions and row programs that passes ask and the tiler asks again.
#ifndef OTRN_PASS_ROWS_H
#define OTRN_PASS_ROWS_H

#include "hlo/hlo.h"
#include "hlo/why.h"

// The op that combines two elements of a reduction with one operand, when its region is just that; else HLO_NONE.
uint16_t reduce_body(const Hlo *h, const HloOp *op);
// Gives a new reduction the region of one like it, over scalars of this type.
void reduce_region_like(Hlo *h, const HloOp *like, OpId made, TypeId scalar);
// One number for all elements: a splat or a constant of one element. NULL when v is not such a constant.
const HloAttr *splat_value(const Hlo *h, ValueId v);
// True when `v` is such a constant and leaves every x as it is, to the last bit, in `code`(x, v).
bool is_neutral(const Hlo *h, uint16_t code, ValueId v);

#define MASK_LOW (-1e8) // what is masked is lower, every score is above

#define ROWS_MIN_ELEMS 512 // below this a GpSimd kernel over HBM costs less than transfers in and out

// True when the op may be a member of a row program: elementwise, of types and kinds the engines do.
bool rows_may_hold(const Hlo *h, const HloOp *op, Why *why);
// Why an operation, or one of those joined in it, is in no row program; nothing for what row programs are not about.
void rows_refused(const Hlo *h, const HloOp *op, Why *why);
// Numbers 0, 1, … of all elements in order: 32 bits, perhaps in another shape. Programs make them where they are used.
bool rows_is_count(const Hlo *h, ValueId v);
// A row program that works on integers, as those that make random numbers do.
bool rows_of_ints(const Hlo *h, const HloOp *rows);

#endif
