// SPDX-License-Identifier: Apache-2.0
// parts.c — large complex tensors as two of fp32: real and imaginary parts.
// needs: values defined before use
// gives: sums, products, movement and matrix products of large complex64 tensors as operations on their parts, which the engines know
// stale: nothing (dce drops what became unused, cse joins equal parts)
//
//   (a + bi)(c + di) = (ac - bd) + (ad + bc)i, elementwise and as matrix products
//
// An operation of another kind, and whoever else needs the whole, reads complex(re, im), which stands behind every pair and is
// dropped where nobody does. Small tensors stay as they are: a kernel costs less.
#include <string.h>

#include "pass/rows.h"
#include "pass/walk.h"

#define PARTS_MIN 4096 // elements

typedef struct Pair {
    ValueId re, im;
} Pair;

typedef struct Parts {
    Compile *c;
    Hlo *h;
    Walk w;
    VEC(Pair) of; // value -> its parts, 0: not known
    LocId loc;
} Parts;

static ValueId push(Parts *s, HloOpcode code, uint32_t n, const ValueId *in, TypeId type) {
    return walk_push(&s->w, hlo_op(s->h, code, s->loc, n, in, 1, &type));
}

static bool is_complex(const Hlo *h, ValueId v) {
    const HloType *t = hlo_value_type(h, v);
    return t->kind == HT_TENSOR && !t->dynamic && !t->text && t->dtype == DT_C64;
}

static TypeId part_type(Parts *s, TypeId type) {
    HloType t = *hlo_type(s->h, type);
    return hlo_type_tensor(s->h, DT_F32, t.rank, t.dims);
}

static void note(Parts *s, ValueId v, Pair p) {
    while (s->of.n <= v)
        VEC_PUSH(s->c->scratch, &s->of, (Pair){0});
    s->of.at[v] = p;
}

static ValueId constant_part(Parts *s, const HloAttr *whole, TypeId type, uint32_t part) {
    assert(part < 2 && whole->n % 8 == 0);
    uint32_t n = whole->n / 8; // one number when all are the same
    float *data = ARENA_NEWN(s->h->arena, float, n + 1);
    for (uint32_t i = 0; i < n; i++)
        memcpy(&data[i], (const char *)whole->data + 8 * (size_t)i + 4 * part, sizeof *data);
    OpId id = hlo_op(s->h, HLO_CONSTANT, s->loc, 0, NULL, 1, &type);
    *hlo_attr_slot(s->h, id, AK_VALUE) = (HloAttr){.kind = HA_TENSOR, .n = n * 4, .type = type, .data = (void *)data};
    return walk_push(&s->w, id);
}

static Pair parts_of(Parts *s, ValueId v) {
    assert(is_complex(s->h, v));
    Hlo *h = s->h;
    if (v < s->of.n && s->of.at[v].re)
        return s->of.at[v];
    OpId def = h->values.at[v].def;
    if (def && hlo_at(h, def)->code == HLO_COMPLEX)
        return (Pair){hlo_operand(h, hlo_at(h, def), 0), hlo_operand(h, hlo_at(h, def), 1)};
    TypeId type = part_type(s, h->values.at[v].type);
    const HloAttr *whole = def && hlo_at(h, def)->code == HLO_CONSTANT ? hlo_attr(hlo_at(h, def), AK_VALUE) : NULL;
    if (whole && whole->kind == HA_TENSOR && whole->n % 8 == 0) {
        HloAttr a = *whole;
        ValueId real = constant_part(s, &a, type, 0);
        return (Pair){real, constant_part(s, &a, type, 1)};
    }
    ValueId re = push(s, HLO_REAL, 1, &v, type);
    return (Pair){re, push(s, HLO_IMAG, 1, &v, type)};
}

static ValueId two(Parts *s, HloOpcode code, ValueId a, ValueId b) {
    return push(s, code, 2, (ValueId[]){a, b}, s->h->values.at[a].type);
}

static ValueId zero_of(Parts *s, TypeId type) {
    static const float zero = 0;
    return walk_push(&s->w, hlo_op_splat(s->h, s->loc, type, &zero));
}

static bool is_zero(const Hlo *h, ValueId v) {
    const HloAttr *a = splat_value(h, v);
    return a && dtype_to_f64(DT_F32, a->data) == 0;
}

// --- operations --------------------------------------------------------------------------------------

// The op on one part: complex operands by that part, others as they are.
static ValueId on_part(Parts *s, const HloOp *op, const Pair *in, bool imaginary) {
    Hlo *h = s->h;
    ValueId *operands = ARENA_NEWN(s->c->scratch, ValueId, op->noperands + 1);
    for (uint32_t i = 0; i < op->noperands; i++)
        operands[i] = in[i].re ? (imaginary ? in[i].im : in[i].re) : hlo_operand(h, op, i);
    TypeId type = part_type(s, h->values.at[op->results].type);
    OpId made = hlo_op(h, op->code, op->loc, op->noperands, operands, 1, &type);
    hlo_at(h, made)->attrs = op->attrs;
    if (op->code == HLO_REDUCE) {
        reduce_region_like(h, op, made, hlo_type_tensor(h, DT_F32, 0, NULL));
        walk_grow(&s->w);
    }
    return walk_push(&s->w, made);
}

static ValueId dot(Parts *s, const HloOp *op, ValueId a, ValueId b) {
    Hlo *h = s->h;
    if (is_zero(h, a) || is_zero(h, b))
        return 0;
    TypeId type = part_type(s, h->values.at[op->results].type);
    OpId made = hlo_op(h, HLO_DOT_GENERAL, op->loc, 2, (ValueId[]){a, b}, 1, &type);
    hlo_at(h, made)->attrs = op->attrs;
    return walk_push(&s->w, made);
}

static Pair product(Parts *s, const HloOp *op, Pair a, Pair b) {
    if (op->code == HLO_MULTIPLY)
        return (Pair){two(s, HLO_SUBTRACT, two(s, HLO_MULTIPLY, a.re, b.re), two(s, HLO_MULTIPLY, a.im, b.im)),
                      two(s, HLO_ADD, two(s, HLO_MULTIPLY, a.re, b.im), two(s, HLO_MULTIPLY, a.im, b.re))};
    ValueId rr = dot(s, op, a.re, b.re), ii = dot(s, op, a.im, b.im), ri = dot(s, op, a.re, b.im), ir = dot(s, op, a.im, b.re);
    Pair out = {rr && ii ? two(s, HLO_SUBTRACT, rr, ii) : rr, ri && ir ? two(s, HLO_ADD, ri, ir) : ri ? ri : ir};
    if (!rr && ii)
        out.re = push(s, HLO_NEGATE, 1, &ii, s->h->values.at[ii].type);
    TypeId type = part_type(s, s->h->values.at[op->results].type);
    return (Pair){out.re ? out.re : zero_of(s, type), out.im ? out.im : zero_of(s, type)};
}

static bool acts_on_parts(const Hlo *h, const HloOp *op) {
    switch (op->code) {
    case HLO_ADD: case HLO_SUBTRACT: case HLO_NEGATE: case HLO_SELECT:
    case HLO_BROADCAST_IN_DIM: case HLO_RESHAPE: case HLO_TRANSPOSE: case HLO_SLICE: case HLO_REVERSE: case HLO_CONCATENATE:
    case HLO_PAD: case HLO_DYNAMIC_SLICE: case HLO_DYNAMIC_UPDATE_SLICE: case HLO_GATHER:
        return true;
    case HLO_REDUCE:
        return reduce_body(h, op) == HLO_ADD;
    default:
        return false;
    }
}

// The parts of the op's result; false: it stays whole.
static bool in_parts(Parts *s, const HloOp *op, Pair *out) {
    Hlo *h = s->h;
    ValueId first = op->noperands ? hlo_operand(h, op, 0) : 0;
    if (op->code == HLO_CONVERT && !is_complex(h, first)) {
        out->re = push(s, HLO_CONVERT, 1, &first, part_type(s, h->values.at[op->results].type));
        out->im = zero_of(s, h->values.at[out->re].type);
        return true;
    }
    bool multiplies = op->code == HLO_MULTIPLY || op->code == HLO_DOT_GENERAL, same = acts_on_parts(h, op);
    if (!same && !multiplies && op->code != HLO_CHLO_CONJ)
        return false;
    for (uint32_t i = 0; i < op->noperands && multiplies; i++)
        if (!is_complex(h, hlo_operand(h, op, i)))
            return false;
    Pair *in = ARENA_NEWN(s->c->scratch, Pair, op->noperands + 1);
    for (uint32_t i = 0; i < op->noperands; i++)
        in[i] = is_complex(h, hlo_operand(h, op, i)) ? parts_of(s, hlo_operand(h, op, i)) : (Pair){0};
    if (multiplies)
        *out = product(s, op, in[0], in[1]);
    else if (same)
        *out = (Pair){on_part(s, op, in, false), on_part(s, op, in, true)};
    else
        *out = (Pair){in[0].re, push(s, HLO_NEGATE, 1, &in[0].im, h->values.at[in[0].im].type)};
    return true;
}

static bool is_large(const Hlo *h, const HloOp *op) {
    for (uint32_t i = 0; i < op->noperands; i++)
        if (is_complex(h, hlo_operand(h, op, i)) && hlo_value_type(h, hlo_operand(h, op, i))->elems >= PARTS_MIN)
            return true;
    return hlo_value_type(h, op->results)->elems >= PARTS_MIN;
}

static void parts_visit(void *pass, OpId id) {
    Parts *s = pass;
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    ValueId of = op.noperands ? hlo_operand(h, &op, 0) : 0;
    s->loc = op.loc;
    bool part = (op.code == HLO_REAL || op.code == HLO_IMAG) && of < s->of.n && s->of.at[of].re;
    if (part) {
        walk_replace(&s->w, op.results, op.code == HLO_REAL ? s->of.at[of].re : s->of.at[of].im);
        return;
    }
    Pair p;
    if (op.nresults != 1 || !is_complex(h, op.results) || !is_large(h, &op) || !in_parts(s, &op, &p)) {
        walk_push(&s->w, id);
        return;
    }
    assert(s->h->values.at[p.re].type == s->h->values.at[p.im].type);
    ValueId whole = push(s, HLO_COMPLEX, 2, (ValueId[]){p.re, p.im}, h->values.at[op.results].type);
    note(s, whole, p);
    walk_replace(&s->w, op.results, whole);
}

void pass_parts(Compile *c) {
    Parts s = {.c = c, .h = c->hlo};
    walk_init(&s.w, c);
    walk_rewrite(&s.w, hlo_main(c->hlo)->body, WALK_CONTROL, parts_visit, &s);
}
