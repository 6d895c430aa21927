// SPDX-License-Identifier: Apache-2.0
// query.h — small questions about one operation or value that passes and lowerings ask.
#ifndef OTRN_HLO_QUERY_H
#define OTRN_HLO_QUERY_H

#include <assert.h>

#include "hlo/hlo.h"

// The op of two operands that a region of two arguments applies to them, in either order, and nothing else; else HLO_NONE.
uint16_t region_combiner(const Hlo *h, const HloRegion *r);
// The op that combines two elements of a reduction with one operand, when its region is just that; else HLO_NONE.
uint16_t reduce_body(const Hlo *h, const HloOp *op);
// Gives a new reduction the region of one like it, over scalars of this type.
void reduce_region_like(Hlo *h, const HloOp *like, OpId made, TypeId scalar);
// One number for all elements: a splat or a constant of one element. NULL when v is not such a constant.
const HloAttr *splat_value(const Hlo *h, ValueId v);
// … of a float type.
bool splat_f64(const Hlo *h, ValueId v, double *x);
static inline bool splat_is_zero(const Hlo *h, ValueId v) { // of either sign
    double x;
    return splat_f64(h, v, &x) && x == 0;
}
// True when v is a constant integer of one element.
bool constant_int(const Hlo *h, ValueId v, int64_t *out);
// True when `v` is such a constant and leaves every x as it is, to the last bit, in `code`(x, v).
bool is_neutral(const Hlo *h, uint16_t code, ValueId v);
// Rows and columns of a row program; false: it is none.
static inline bool rows_shape(const Hlo *h, const HloOp *rows, int64_t *nrows, int64_t *columns) {
    char why[128];
    return rows->code == HLO_ROWS && hlo_rows_fit(h, rows, nrows, columns, why);
}
// How a row program or fused work repeats each of its operands: FUSED_SAME …
static inline const int64_t *rows_kinds(const HloOp *rows) {
    uint32_t n;
    const int64_t *kinds = hlo_ints(rows, AK_BROADCAST_DIMENSIONS, &n);
    assert(n == rows->noperands);
    return kinds;
}
// The last op of a region, which hands its values out.
static inline const HloOp *region_return(const Hlo *h, const HloRegion *r) {
    return hlo_at(h, r->ops.at[r->ops.n - 1]);
}
// What reshapes make the value of.
static inline ValueId before_reshapes(const Hlo *h, ValueId v) {
    for (const HloOp *op = hlo_def_as(h, v, HLO_RESHAPE); op; op = hlo_def_as(h, v, HLO_RESHAPE))
        v = hlo_operand(h, op, 0);
    return v;
}
// The same memory in other words: a reshape, or a broadcast that only adds dimensions of 1.
bool is_reshape(const Hlo *h, const HloOp *op);
// What those and broadcasts that only add dimensions of 1 make the value of.
static inline ValueId before_forms(const Hlo *h, ValueId v) {
    for (const HloOp *op = hlo_def(h, v); op && is_reshape(h, op); op = hlo_def(h, v))
        v = hlo_operand(h, op, 0);
    return v;
}
// Instructions over its elements that an elementwise op takes of an engine, about: parts of one where another does it beside its own.
double hlo_instructions(const Hlo *h, const HloOp *op);
// … and takes none where a function of the scalar engine reads it alone: x * r, x + r, with r the same along a row.
bool hlo_is_taken_along(const Hlo *h, const HloOp *op, const HloOp *reader);
// Number i of an attribute, `none` where it has not so many.
static inline int64_t hlo_int_at(const HloOp *op, HloAttrKey key, uint32_t i, int64_t none) {
    uint32_t n;
    const int64_t *v = hlo_ints(op, key, &n);
    return i < n ? v[i] : none;
}
static inline bool hlo_among(const int64_t *list, uint32_t n, int64_t v) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}
// The words that gather and scatter have for the same things.
typedef struct IndexKeys {
    HloAttrKey window, gone, batching, index_batching, map;
} IndexKeys;
extern const IndexKeys index_of_gather, index_of_scatter;
// True when running the op twice, or not at all, can be told apart from outside.
bool op_has_effect(const Hlo *h, const HloOp *op);

#endif
