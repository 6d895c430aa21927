// SPDX-License-Identifier: Apache-2.0
// rows_member.h — what the grouping of rows.c asks about single ops.
#ifndef OTRN_PASS_ROWS_MEMBER_H
#define OTRN_PASS_ROWS_MEMBER_H

#include "pass/rows.h"

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
