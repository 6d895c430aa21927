// SPDX-License-Identifier: Apache-2.0
// parts.c — large complex tensors as two of fp32: real and imaginary parts.
// needs: values defined before use
// gives: sums, products, movement, matrix products and transforms of large complex64 tensors as operations on their parts, which the engines know
// stale: nothing (dce drops what became unused, cse joins equal parts)
//
//   (a + bi)(c + di) = (ac - bd) + (ad + bc)i, elementwise and as matrix products
//
// An operation of another kind, and whoever else needs the whole, reads complex(re, im), which stands behind every pair and is
// dropped where nobody does. Small tensors stay as they are: a kernel costs less.
#include <string.h>

#include "pass/parts.h"

#define PARTS_MIN 4096 // elements

static bool is_complex(const Hlo *h, ValueId v) { return hlo_is_plain(hlo_value_type(h, v)) && hlo_value_type(h, v)->dtype == DT_C64; }

static TypeId part_type(Walk *w, ValueId v) { return hlo_type_as(w->hlo, w->hlo->values.at[v].type, DT_F32); }

static ValueId constant_part(Walk *w, const HloAttr *whole, TypeId type, uint32_t part) {
    assert(part < 2);
    assert(whole->n % 8 == 0);
    uint32_t n = whole->n / 8; // one number when all are the same
    float *data = ARENA_NEWN(w->arena, float, n + 1);
    for (uint32_t i = 0; i < n; i++)
        memcpy(&data[i], (const char *)whole->data + 8 * (size_t)i + 4 * part, sizeof *data);
    return walk_push(w, hlo_op_constant(w->hlo, w->loc, type, data, n * sizeof *data));
}

Pair parts_of(Walk *w, ValueId v) {
    const Hlo *h = w->hlo;
    assert(is_complex(h, v));
    const HloOp *whole = hlo_def_as(h, v, HLO_COMPLEX), *constant = hlo_def_as(h, v, HLO_CONSTANT);
    if (whole)
        return (Pair){hlo_operand(h, whole, 0), hlo_operand(h, whole, 1)};
    TypeId type = part_type(w, v);
    if (constant) {
        HloAttr value = *hlo_attr(constant, AK_VALUE);
        ValueId re = constant_part(w, &value, type, 0);
        return (Pair){re, constant_part(w, &value, type, 1)};
    }
    ValueId re = walk_op(w, HLO_REAL, 1, &v, type);
    return (Pair){re, walk_op(w, HLO_IMAG, 1, &v, type)};
}

// --- operations --------------------------------------------------------------------------------------

static bool is_large(const Hlo *h, const HloOp *op) {
    bool large = hlo_value_type(h, op->results)->elems >= PARTS_MIN;
    for (uint32_t i = 0; i < op->noperands && !large; i++)
        large = is_complex(h, hlo_operand(h, op, i)) && hlo_value_type(h, hlo_operand(h, op, i))->elems >= PARTS_MIN;
    return large && is_complex(h, op->results);
}

static ValueId joined(Walk *w, const HloOp *op, ValueId re, ValueId im) {
    assert(w->hlo->values.at[re].type == w->hlo->values.at[im].type);
    return walk_op(w, HLO_COMPLEX, 2, (ValueId[]){re, im}, w->hlo->values.at[op->results].type);
}

// The op on one part: complex operands by that part, others as they are.
static ValueId on_part(Walk *w, const HloOp *op, const Pair *in, bool imaginary) {
    Hlo *h = w->hlo;
    ValueId *operands = ARENA_NEWN(w->arena, ValueId, op->noperands + 1);
    for (uint32_t i = 0; i < op->noperands; i++)
        operands[i] = in[i].re ? (imaginary ? in[i].im : in[i].re) : hlo_operand(h, op, i);
    OpId made = hlo_op_like(h, op, operands, part_type(w, op->results));
    if (op->code == HLO_REDUCE)
        reduce_region_like(h, op, made, hlo_type_tensor(h, DT_F32, 0, NULL));
    return walk_push(w, made);
}

// A piece of a whole that is not there in parts, as a loop's stack is: taking all of that apart would cost more than the piece.
static bool is_of_whole(const Hlo *h, const HloOp *op) {
    const HloOp *whole = hlo_def(h, hlo_operand(h, op, 0));
    bool piece = op->code == HLO_DYNAMIC_UPDATE_SLICE || op->code == HLO_DYNAMIC_SLICE || op->code == HLO_SLICE;
    return piece && (!whole || (whole->code != HLO_COMPLEX && whole->code != HLO_CONSTANT));
}

static ValueId each_part(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    if ((!hlo_is(op, OT_PARTS) && reduce_body(h, op) != HLO_ADD) || !is_large(h, op) || is_of_whole(h, op))
        return 0;
    Pair *in = ARENA_NEWN(w->arena, Pair, op->noperands + 1);
    for (uint32_t i = 0; i < op->noperands; i++)
        in[i] = is_complex(h, hlo_operand(h, op, i)) ? parts_of(w, hlo_operand(h, op, i)) : (Pair){0};
    ValueId re = on_part(w, op, in, false);
    return joined(w, op, re, on_part(w, op, in, true));
}

static ValueId convert(Walk *w, const HloOp *op) {
    ValueId x = hlo_operand(w->hlo, op, 0);
    if (!is_large(w->hlo, op) || is_complex(w->hlo, x))
        return 0;
    ValueId re = walk_op(w, HLO_CONVERT, 1, &x, part_type(w, op->results));
    return joined(w, op, re, walk_number(w, w->hlo->values.at[re].type, 0));
}

static ValueId conjugate(Walk *w, const HloOp *op) {
    if (!is_large(w->hlo, op))
        return 0;
    Pair in = parts_of(w, hlo_operand(w->hlo, op, 0));
    return joined(w, op, in.re, walk_unary(w, HLO_NEGATE, in.im));
}

static ValueId multiply(Walk *w, const HloOp *op) {
    if (!is_large(w->hlo, op))
        return 0;
    Pair a = parts_of(w, hlo_operand(w->hlo, op, 0)), b = parts_of(w, hlo_operand(w->hlo, op, 1));
    ValueId rr = walk_binary(w, HLO_MULTIPLY, a.re, b.re), ii = walk_binary(w, HLO_MULTIPLY, a.im, b.im);
    ValueId ri = walk_binary(w, HLO_MULTIPLY, a.re, b.im), ir = walk_binary(w, HLO_MULTIPLY, a.im, b.re);
    ValueId re = walk_binary(w, HLO_SUBTRACT, rr, ii);
    return joined(w, op, re, walk_binary(w, HLO_ADD, ri, ir));
}

static ValueId dot_part(Walk *w, const HloOp *op, ValueId a, ValueId b) { // 0: nothing
    if (splat_is_zero(w->hlo, a) || splat_is_zero(w->hlo, b))
        return 0;
    return walk_push(w, hlo_op_like(w->hlo, op, (ValueId[]){a, b}, part_type(w, op->results)));
}

static ValueId dot(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    if (!is_large(h, op) || !is_complex(h, hlo_operand(h, op, 0)) || !is_complex(h, hlo_operand(h, op, 1)))
        return 0;
    Pair a = parts_of(w, hlo_operand(h, op, 0)), b = parts_of(w, hlo_operand(h, op, 1));
    ValueId rr = dot_part(w, op, a.re, b.re), ii = dot_part(w, op, a.im, b.im), ri = dot_part(w, op, a.re, b.im), ir = dot_part(w, op, a.im, b.re);
    ValueId re = rr && ii ? walk_binary(w, HLO_SUBTRACT, rr, ii) : ii ? walk_unary(w, HLO_NEGATE, ii) : rr;
    ValueId im = ri && ir ? walk_binary(w, HLO_ADD, ri, ir) : ri ? ri : ir;
    TypeId type = part_type(w, op->results);
    re = re ? re : walk_number(w, type, 0);
    return joined(w, op, re, im ? im : walk_number(w, type, 0));
}

// Of a whole that was put together just for readers like this.
static ValueId part(Walk *w, const HloOp *op) {
    const HloOp *whole = hlo_def_as(w->hlo, hlo_operand(w->hlo, op, 0), HLO_COMPLEX);
    return whole ? hlo_operand(w->hlo, whole, op->code == HLO_IMAG) : 0;
}

const Rule parts_rules[] = {
    {"real(complex(x, y)): x", HLO_REAL, RULE_EXACT, part},
    {"imag(complex(x, y)): y", HLO_IMAG, RULE_EXACT, part},
    {"complex product: of the parts", HLO_MULTIPLY, RULE_TWICE, multiply},
    {"complex dot_general: of the parts, without those that are zero", HLO_DOT_GENERAL, RULE_ORDER, dot},
    {"Fourier transform: products with roots of unity", HLO_FFT, RULE_ORDER, parts_fourier},
    {"complex(x) of real x: x, and zero", HLO_CONVERT, RULE_EXACT, convert},
    {"conjugate: its imaginary part negated", HLO_CHLO_CONJ, RULE_EXACT, conjugate},
    {"complex sum along dimensions: of each part", HLO_REDUCE, RULE_EXACT, each_part},
    {"complex sum, choice or movement: of each part", HLO_NONE, RULE_EXACT, each_part},
    {0},
};
