// SPDX-License-Identifier: Apache-2.0
// simplify.c — one table of rules: movement that moves nothing, operations that do nothing, work that is cheaper elsewhere.
// needs: values defined before use, constants folded
// gives: transposes and broadcasts without dimensions of size one; no transpose of a transpose, broadcast of a
//        broadcast or reshape of a reshape; dot_generals that read operands and give results as they lie
// stale: nothing (dce drops what became unused)
//
// Every row of `simplify_rules` says whether its rule is exact or what it gives up (simplify.h); tests/unit/simplify_test.c holds each to that. Exact: the same
// bits, and a NaN for a NaN. x / 8 is x * 0.125, x / 3 is not x * (1/3); x + -0.0 is x, x + 0.0 is x but for the sign of a zero.
#include "pass/simplify.h"

#include <math.h>
#include <string.h>

#include "hlo/dot.h"
#include "pass/rows.h"
#include "pass/walk.h"

struct Simplify {
    Compile *c;
    Hlo *h;
    Walk w;
    uint32_t *uses; // value -> reads in the whole program, before the pass; 0 of values made since, but for products
    uint32_t *factors; // … of these, as a factor of a product, through reshapes
    uint32_t nuses;
};

// --- questions -------------------------------------------------------------------------------------

// Adding it changes nothing but the sign of a zero, which we give up as XLA does: gradients begin as such sums.
static bool is_float_zero(const Hlo *h, ValueId v) {
    const HloAttr *a = splat_value(h, v);
    int dtype = a ? hlo_type(h, a->type)->dtype : DT_INVALID;
    return a && dtype_is_float(dtype) && dtype_to_f64(dtype, a->data) == 0;
}

static OpId def_of(const Simplify *s, ValueId v, uint16_t code) {
    OpId def = s->h->values.at[v].def;
    return def && hlo_at(s->h, def)->code == code ? def : 0;
}

static bool is_static(const HloType *t) {
    return t->kind == HT_TENSOR && !t->dynamic && !t->text;
}

static bool used_once(const Simplify *s, ValueId v) { return v < s->nuses && s->uses[v] == 1; }

// --- making ----------------------------------------------------------------------------------------

static ValueId push(Simplify *s, OpId id) { return walk_push(&s->w, id); }

static ValueId reshape_to(Simplify *s, ValueId v, TypeId type, LocId loc) {
    OpId def = def_of(s, v, HLO_RESHAPE);
    if (def)
        v = hlo_operand(s->h, hlo_at(s->h, def), 0);
    if (s->h->values.at[v].type == type)
        return v;
    return push(s, hlo_op(s->h, HLO_RESHAPE, loc, 1, &v, 1, &type));
}

static ValueId splat_like(Simplify *s, ValueId like, const void *one, LocId loc) {
    TypeId type = s->h->values.at[like].type;
    return push(s, hlo_op_splat(s->h, loc, type, one));
}

// --- products --------------------------------------------------------------------------------------

typedef struct Side {
    HloAttrKey batch, contract;
} Side;
static const Side sides[2] = {{AK_LHS_BATCHING_DIMENSIONS, AK_LHS_CONTRACTING_DIMENSIONS},
                              {AK_RHS_BATCHING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS}};

// A transpose that swaps the two halves of a product's result is the product of the swapped operands: the same sums in
// the same order.
static ValueId swap_product(Simplify *s, ValueId v, const int64_t *perm, uint32_t n, TypeId type) {
    Hlo *h = s->h;
    OpId def = def_of(s, v, HLO_DOT_GENERAL);
    if (!def || !used_once(s, v) || !dot_may_swap(h, hlo_at(h, def)))
        return 0;
    HloOp dot = *hlo_at(h, def);
    uint32_t nb, nc;
    hlo_ints(&dot, AK_LHS_BATCHING_DIMENSIONS, &nb);
    hlo_ints(&dot, AK_LHS_CONTRACTING_DIMENSIONS, &nc);
    uint32_t nl = hlo_value_type(h, hlo_operand(h, &dot, 0))->rank - nb - nc;
    uint32_t nr = hlo_value_type(h, hlo_operand(h, &dot, 1))->rank - nb - nc;
    for (uint32_t i = 0; i < n; i++)
        if (perm[i] != (i < nb ? i : i < nb + nr ? i + nl : i - nr))
            return 0;
    ValueId operands[2] = {hlo_operand(h, &dot, 1), hlo_operand(h, &dot, 0)};
    OpId made = hlo_op(h, HLO_DOT_GENERAL, dot.loc, 2, operands, 1, &type);
    hlo_at(h, made)->attrs = arena_dup(h->arena, dot.attrs, hlo_row(&dot)->nattrs * sizeof *dot.attrs);
    for (int side = 0; side < 2; side++) {
        const int64_t *b = hlo_ints(&dot, sides[!side].batch, &nb);
        hlo_set_ints(s->h, made, sides[side].batch, b, nb);
        const int64_t *c = hlo_ints(&dot, sides[!side].contract, &nc);
        hlo_set_ints(s->h, made, sides[side].contract, c, nc);
    }
    return push(s, made);
}

// An operand that is a transpose is read where it came from, when its free dimensions keep their order.
static void read_through(Simplify *s, OpId id, uint32_t side) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    OpId from = def_of(s, hlo_operand(h, &op, side), HLO_TRANSPOSE);
    if (!from)
        return;
    uint32_t n, nb, nc;
    const int64_t *perm = hlo_ints(hlo_at(h, from), AK_PERMUTATION, &n);
    const int64_t *batch = hlo_ints(&op, sides[side].batch, &nb);
    const int64_t *contract = hlo_ints(&op, sides[side].contract, &nc);
    bool taken[OTRN_MAX_RANK] = {0};
    int64_t b[OTRN_MAX_RANK], c[OTRN_MAX_RANK], last = -1;
    for (uint32_t i = 0; i < nb; i++)
        taken[batch[i]] = true, b[i] = perm[batch[i]];
    for (uint32_t i = 0; i < nc; i++)
        taken[contract[i]] = true, c[i] = perm[contract[i]];
    for (uint32_t i = 0; i < n; i++) {
        if (taken[i])
            continue;
        if (perm[i] < last)
            return;
        last = perm[i];
    }
    h->operands.at[op.operands + side] = hlo_operand(h, hlo_at(h, from), 0);
    hlo_set_ints(s->h, id, sides[side].batch, b, nb);
    hlo_set_ints(s->h, id, sides[side].contract, c, nc);
}

// --- movement --------------------------------------------------------------------------------------

// Dimensions of size one say nothing about order: move the others only.
static ValueId transpose(Simplify *s, const HloOp *op) {
    Hlo *h = s->h;
    uint32_t n;
    const int64_t *attr = hlo_ints(op, AK_PERMUTATION, &n);
    ValueId v = hlo_operand(h, op, 0);
    int64_t perm[OTRN_MAX_RANK];
    memcpy(perm, attr, n * sizeof *perm);
    OpId inner = def_of(s, v, HLO_TRANSPOSE);
    if (inner) {
        const int64_t *first = hlo_ints(hlo_at(h, inner), AK_PERMUTATION, &n);
        v = hlo_operand(h, hlo_at(h, inner), 0);
        for (uint32_t i = 0; i < n; i++)
            perm[i] = first[perm[i]];
    }
    HloType in = *hlo_value_type(h, v);
    int64_t place[OTRN_MAX_RANK], dims[OTRN_MAX_RANK], kept[OTRN_MAX_RANK], out[OTRN_MAX_RANK];
    uint32_t m = 0, k = 0;
    for (int i = 0; i < in.rank; i++)
        if (in.dims[i] != 1) {
            place[i] = m;
            dims[m++] = in.dims[i];
        }
    bool moves = false;
    for (uint32_t i = 0; i < n; i++)
        if (in.dims[perm[i]] != 1) {
            kept[k] = place[perm[i]];
            out[k] = in.dims[perm[i]];
            moves = moves || kept[k] != k;
            k++;
        }
    TypeId result = h->values.at[op->results].type;
    if (!moves)
        return reshape_to(s, v, result, op->loc);
    TypeId squeezed = hlo_type_tensor(h, in.dtype, (int)m, dims), type = hlo_type_tensor(h, in.dtype, (int)m, out);
    ValueId plain = reshape_to(s, v, squeezed, op->loc), swapped = swap_product(s, plain, kept, m, type);
    if (swapped) {
        ValueId to = reshape_to(s, swapped, result, op->loc);
        if (swapped < s->nuses && op->results < s->nuses) // it may be swapped back
            s->uses[swapped] = to == swapped ? s->uses[op->results] : 1;
        return to;
    }
    if (!inner && m == (uint32_t)in.rank)
        return 0;
    v = plain;
    OpId made = hlo_op(h, HLO_TRANSPOSE, op->loc, 1, &v, 1, &type);
    hlo_set_ints(s->h, made, AK_PERMUTATION, kept, m);
    return reshape_to(s, push(s, made), result, op->loc);
}

static ValueId broadcast(Simplify *s, const HloOp *op) {
    Hlo *h = s->h;
    uint32_t n;
    const int64_t *attr = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    ValueId v = hlo_operand(h, op, 0);
    int64_t to[OTRN_MAX_RANK];
    if (n) // of a number there are none
        memcpy(to, attr, n * sizeof *to);
    OpId inner = def_of(s, v, HLO_BROADCAST_IN_DIM);
    if (inner) {
        const int64_t *first = hlo_ints(hlo_at(h, inner), AK_BROADCAST_DIMENSIONS, &n);
        int64_t both[OTRN_MAX_RANK];
        v = hlo_operand(h, hlo_at(h, inner), 0);
        for (uint32_t i = 0; i < n; i++)
            both[i] = to[first[i]];
        memcpy(to, both, n * sizeof *to);
    }
    HloType in = *hlo_value_type(h, v);
    TypeId result = h->values.at[op->results].type;
    int64_t dims[OTRN_MAX_RANK], kept[OTRN_MAX_RANK];
    uint32_t m = 0;
    bool in_order = true;
    for (uint32_t i = 0; i < n; i++)
        if (in.dims[i] != 1) {
            in_order = in_order && (!m || to[i] > kept[m - 1]);
            dims[m] = in.dims[i];
            kept[m++] = to[i];
        }
    if (in_order && in.elems == hlo_type(h, result)->elems)
        return reshape_to(s, v, result, op->loc);
    if (!inner && m == n)
        return 0;
    v = reshape_to(s, v, hlo_type_tensor(h, in.dtype, (int)m, dims), op->loc);
    OpId made = hlo_op(h, HLO_BROADCAST_IN_DIM, op->loc, 1, &v, 1, &result);
    hlo_set_ints(s->h, made, AK_BROADCAST_DIMENSIONS, kept, m);
    return push(s, made);
}

static ValueId slice(Simplify *s, const HloOp *op) {
    ValueId v = hlo_operand(s->h, op, 0); // the same type means: all of it, in order
    return s->h->values.at[v].type == s->h->values.at[op->results].type ? v : 0;
}

static ValueId pad(Simplify *s, const HloOp *op) {
    static const HloAttrKey keys[3] = {AK_EDGE_PADDING_LOW, AK_EDGE_PADDING_HIGH, AK_INTERIOR_PADDING};
    for (int k = 0; k < 3; k++) {
        uint32_t n;
        const int64_t *v = hlo_ints(op, keys[k], &n);
        for (uint32_t i = 0; i < n; i++)
            if (v[i])
                return 0;
    }
    return hlo_operand(s->h, op, 0);
}

// --- arithmetic ------------------------------------------------------------------------------------

// A reduction over nothing but dimensions of size one, of which there is something; the value, or 0.
static ValueId reduced_of_one(const Simplify *s, const HloOp *op) {
    const Hlo *h = s->h;
    ValueId v = hlo_operand(h, op, 0);
    const HloType *in = hlo_value_type(h, v), *out = hlo_value_type(h, op->results);
    bool ok = reduce_body(h, op) && is_static(in) && is_static(out) && in->elems == out->elems && in->elems && in->dtype == out->dtype &&
              splat_value(h, hlo_operand(h, op, 1));
    return ok ? v : 0;
}

// … combines each element with the initial value.
static ValueId reduce(Simplify *s, const HloOp *op) {
    Hlo *h = s->h;
    uint16_t code = reduce_body(h, op);
    TypeId result = h->values.at[op->results].type;
    ValueId v = reduced_of_one(s, op), init = hlo_operand(h, op, 1);
    if (!v)
        return 0;
    v = reshape_to(s, v, result, op->loc);
    if (is_neutral(h, code, init))
        return v;
    ValueId operands[2] = {splat_like(s, v, splat_value(h, init)->data, op->loc), v};
    return push(s, hlo_op(h, code, op->loc, 2, operands, 1, &result));
}

// A sum that begins at 0.0.
static ValueId reduce_zero(Simplify *s, const HloOp *op) {
    ValueId v = reduce_body(s->h, op) == HLO_ADD && is_float_zero(s->h, hlo_operand(s->h, op, 1)) ? reduced_of_one(s, op) : 0;
    return v ? reshape_to(s, v, s->h->values.at[op->results].type, op->loc) : 0;
}

// Division by a power of two is multiplication by its inverse, as long as that is a normal number.
static ValueId divide(Simplify *s, const HloOp *op) {
    Hlo *h = s->h;
    const HloAttr *a = splat_value(h, hlo_operand(h, op, 1));
    int dtype = hlo_value_type(h, op->results)->dtype, e;
    if (!a || (dtype != DT_F32 && dtype != DT_F64 && dtype != DT_BF16))
        return 0;
    double x = dtype_to_f64(dtype, a->data);
    if (x == 0 || !isfinite(x) || fabs(frexp(x, &e)) != 0.5 || e < -100 || e > 100)
        return 0;
    uint8_t one[16];
    dtype_from_f64(dtype, one, 1 / x);
    ValueId operands[2] = {hlo_operand(h, op, 0), splat_like(s, op->results, one, op->loc)};
    TypeId type = h->values.at[op->results].type;
    return push(s, hlo_op(h, HLO_MULTIPLY, op->loc, 2, operands, 1, &type));
}

static bool is_commutative(uint16_t code) {
    return code == HLO_ADD || code == HLO_MULTIPLY || code == HLO_MAXIMUM || code == HLO_MINIMUM ||
           code == HLO_AND || code == HLO_OR || code == HLO_XOR;
}

static ValueId neutral(Simplify *s, const HloOp *op) {
    ValueId a = hlo_operand(s->h, op, 0), b = hlo_operand(s->h, op, 1);
    if (is_neutral(s->h, op->code, b))
        return a;
    return is_commutative(op->code) && is_neutral(s->h, op->code, a) ? b : 0;
}

static ValueId add_zero(Simplify *s, const HloOp *op) {
    ValueId a = hlo_operand(s->h, op, 0), b = hlo_operand(s->h, op, 1);
    return is_float_zero(s->h, b) ? a : is_float_zero(s->h, a) ? b : 0;
}

static ValueId choose(Simplify *s, const HloOp *op) {
    const Hlo *h = s->h;
    ValueId p = hlo_operand(h, op, 0), a = hlo_operand(h, op, 1), b = hlo_operand(h, op, 2);
    const HloAttr *known = splat_value(h, p);
    if (known)
        return *(const uint8_t *)known->data ? a : b;
    const HloAttr *x = splat_value(h, a), *y = splat_value(h, b);
    if (x && y && hlo_value_type(h, a)->dtype == DT_I1 && h->values.at[p].type == h->values.at[a].type &&
        *(const uint8_t *)x->data && !*(const uint8_t *)y->data)
        return p;
    return a == b ? a : 0;
}

// erfc of a large tensor that is only a factor of products, as in a GELU, is 1 - erf, in fp32, which the engines have: right to an
// absolute 1e-7. Elsewhere its tail may matter, and GpSimd computes it to the last places.
#define ERFC_ON_ENGINES 8192

static ValueId erfc_as_erf(Simplify *s, const HloOp *op) {
    Hlo *h = s->h;
    const HloType *t = hlo_value_type(h, op->results);
    if (t->elems < ERFC_ON_ENGINES || (t->dtype != DT_F32 && t->dtype != DT_BF16 && t->dtype != DT_F16))
        return 0;
    if (op->results >= s->nuses || s->factors[op->results] != s->uses[op->results])
        return 0;
    TypeId type = h->values.at[op->results].type, wide = hlo_type_tensor(h, DT_F32, t->rank, t->dims);
    ValueId x = hlo_operand(h, op, 0);
    if (type != wide)
        x = push(s, hlo_op(h, HLO_CONVERT, op->loc, 1, &x, 1, &wide));
    float one = 1;
    ValueId erf = push(s, hlo_op(h, HLO_CHLO_ERF, op->loc, 1, &x, 1, &wide));
    ValueId operands[2] = {splat_like(s, x, (const uint8_t *)&one, op->loc), erf};
    ValueId y = push(s, hlo_op(h, HLO_SUBTRACT, op->loc, 2, operands, 1, &wide));
    return type == wide ? y : push(s, hlo_op(h, HLO_CONVERT, op->loc, 1, &y, 1, &type));
}

// --- picking and placing -----------------------------------------------------------------------------
//
// The loss of a classifier picks one score a row, its gradient adds to one: neither should make a tensor of scores.

static ValueId convert_like(Simplify *s, ValueId v, int dtype, LocId loc) {
    const HloType *t = hlo_value_type(s->h, v);
    TypeId type = hlo_type_tensor(s->h, dtype, t->rank, t->dims);
    return push(s, hlo_op(s->h, HLO_CONVERT, loc, 1, &v, 1, &type));
}

// gather(convert(x)) is convert(gather(x)), of fewer elements.
static ValueId gather_first(Simplify *s, const HloOp *op) {
    Hlo *h = s->h;
    OpId def = def_of(s, hlo_operand(h, op, 0), HLO_CONVERT);
    const HloType *out = hlo_value_type(h, op->results);
    if (!def)
        return 0;
    ValueId x = hlo_operand(h, hlo_at(h, def), 0);
    const HloType *from = hlo_value_type(h, x);
    if (!is_static(from) || out->elems >= from->elems || !dtype_is_float(from->dtype) || !dtype_is_float(out->dtype))
        return 0;
    ValueId operands[2] = {x, hlo_operand(h, op, 1)};
    TypeId type = hlo_type_tensor(h, from->dtype, out->rank, out->dims);
    OpId made = hlo_op(h, HLO_GATHER, op->loc, 2, operands, 1, &type);
    hlo_at(h, made)->attrs = op->attrs;
    return convert_like(s, push(s, made), out->dtype, op->loc);
}

// A scatter of one operand that adds, used once; 0: none.
static OpId adding_scatter(const Simplify *s, ValueId v) {
    OpId def = used_once(s, v) ? def_of(s, v, HLO_SCATTER) : 0;
    if (!def || hlo_at(s->h, def)->noperands != 3 || !dtype_is_float(hlo_value_type(s->h, v)->dtype))
        return 0;
    const HloRegion *r = hlo_op_region(s->h, hlo_at(s->h, def), 0);
    const HloOp *body = r->ops.n == 2 ? hlo_at(s->h, r->ops.at[0]) : NULL, *ret = body ? hlo_at(s->h, r->ops.at[1]) : NULL;
    return body && body->code == HLO_ADD && ret->noperands == 1 && hlo_operand(s->h, ret, 0) == body->results &&
           hlo_operand(s->h, body, 0) != hlo_operand(s->h, body, 1) ? def : 0;
}

static ValueId scatter_into(Simplify *s, OpId scatter, ValueId x, ValueId updates) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, scatter);
    int dtype = hlo_value_type(h, x)->dtype;
    ValueId operands[3] = {x, hlo_operand(h, &op, 1), updates};
    TypeId type = h->values.at[x].type, scalar = hlo_type_tensor(h, dtype, 0, NULL);
    OpId made = hlo_op(h, HLO_SCATTER, op.loc, 3, operands, 1, &type);
    hlo_at(h, made)->attrs = op.attrs;
    hlo_op_add_combiner(h, made, HLO_ADD, scalar);
    ValueId made_value = push(s, made);
    if (made_value < s->nuses)
        s->uses[made_value] = 1;
    return made_value;
}

// x + scatter(0, …) is scatter(x, …).
static ValueId add_scatter(Simplify *s, const HloOp *op) {
    Hlo *h = s->h;
    for (uint32_t k = 0; k < 2; k++) {
        OpId scatter = adding_scatter(s, hlo_operand(h, op, k));
        if (scatter && is_float_zero(h, hlo_operand(h, hlo_at(h, scatter), 0)))
            return scatter_into(s, scatter, hlo_operand(h, op, !k), hlo_operand(h, hlo_at(h, scatter), 2));
    }
    return 0;
}

// No place is added to twice: indices are said to differ, or every batch has one.
static bool hits_once(const Hlo *h, const HloOp *scatter) {
    const HloType *t = hlo_value_type(h, hlo_operand(h, scatter, 1));
    int64_t along = hlo_int(scatter, AK_INDEX_VECTOR_DIM, 0), vectors = 1, batches = 1;
    uint32_t n;
    const int64_t *dims = hlo_ints(scatter, AK_SCATTER_INDICES_BATCHING_DIMS, &n);
    for (uint32_t i = 0; i < n; i++)
        batches *= t->dims[dims[i]];
    for (int i = 0; i < t->rank; i++)
        vectors *= i == along ? 1 : t->dims[i];
    return vectors == batches || hlo_int(scatter, AK_UNIQUE_INDICES, 0);
}

// narrow(scatter(x, …)) is scatter(narrow(x), …), rounded twice where something is added. Several terms for a place stay fp32.
static ValueId convert_scatter(Simplify *s, const HloOp *op) {
    Hlo *h = s->h;
    OpId scatter = adding_scatter(s, hlo_operand(h, op, 0));
    int to = hlo_value_type(h, op->results)->dtype;
    if (!scatter || (to != DT_BF16 && to != DT_F16) || hlo_value_type(h, hlo_operand(h, op, 0))->dtype != DT_F32 ||
        !hits_once(h, hlo_at(h, scatter)))
        return 0;
    HloOp from = *hlo_at(h, scatter);
    ValueId x = convert_like(s, hlo_operand(h, &from, 0), to, op->loc);
    return scatter_into(s, scatter, x, convert_like(s, hlo_operand(h, &from, 2), to, op->loc));
}

// --- powers of two -----------------------------------------------------------------------------------
//
// Multiplication by one is exact, so it may go where another instruction does it on the way: out of a choice or a maximum
// towards the exponential behind them, into a choice between numbers and zero, past another product.

// x when v is x times a positive power of two, and that number; else 0.
static ValueId scaled_by(const Simplify *s, ValueId v, double *by) {
    OpId def = def_of(s, v, HLO_MULTIPLY);
    if (!def)
        return 0;
    const HloOp *op = hlo_at(s->h, def);
    const HloAttr *a = splat_value(s->h, hlo_operand(s->h, op, 1));
    int dtype = hlo_value_type(s->h, v)->dtype, e;
    if (!a || (dtype != DT_F32 && dtype != DT_BF16))
        return 0;
    *by = dtype_to_f64(dtype, a->data);
    return frexp(*by, &e) == 0.5 && e > -32 && e < 32 ? hlo_operand(s->h, op, 0) : 0;
}

static ValueId times(Simplify *s, ValueId x, double by, LocId loc) {
    uint8_t number[16];
    dtype_from_f64(hlo_value_type(s->h, x)->dtype, number, by);
    ValueId operands[2] = {x, splat_like(s, x, number, loc)};
    TypeId type = s->h->values.at[x].type;
    return push(s, hlo_op(s->h, HLO_MULTIPLY, loc, 2, operands, 1, &type));
}

// choose(p, x * c, number) is choose(p, x, number / c) * c.
static ValueId scale_out(Simplify *s, const HloOp *op) {
    Hlo *h = s->h;
    double by;
    ValueId a = hlo_operand(h, op, 1), x = used_once(s, a) ? scaled_by(s, a, &by) : 0;
    const HloAttr *other = splat_value(h, hlo_operand(h, op, 2));
    if (!x || !other || hlo_value_type(h, x)->dtype != DT_F32)
        return 0;
    double number = dtype_to_f64(DT_F32, other->data);
    uint8_t bytes[16];
    dtype_from_f64(DT_F32, bytes, number / by);
    if (number == 0 || !(dtype_to_f64(DT_F32, bytes) * by == number)) // a NaN, or not held by fp32
        return 0;
    ValueId operands[3] = {hlo_operand(h, op, 0), x, splat_like(s, x, bytes, op->loc)};
    TypeId type = h->values.at[op->results].type;
    return times(s, push(s, hlo_op(h, HLO_SELECT, op->loc, 3, operands, 1, &type)), by, op->loc);
}

// The largest x * c is c times the largest x.
static ValueId scale_out_max(Simplify *s, const HloOp *op) {
    Hlo *h = s->h;
    double by;
    ValueId x = reduce_body(h, op) == HLO_MAXIMUM ? scaled_by(s, hlo_operand(h, op, 0), &by) : 0;
    if (!x || hlo_value_type(h, x)->dtype != DT_F32 || !is_neutral(h, HLO_MAXIMUM, hlo_operand(h, op, 1)))
        return 0;
    TypeId type = h->values.at[op->results].type, scalar = hlo_type_tensor(h, DT_F32, 0, NULL);
    ValueId operands[2] = {x, hlo_operand(h, op, 1)};
    OpId made = hlo_op(h, HLO_REDUCE, op->loc, 2, operands, 1, &type);
    hlo_at(h, made)->attrs = op->attrs;
    hlo_op_add_combiner(h, made, HLO_MAXIMUM, scalar);
    return times(s, push(s, made), by, op->loc);
}

// choose(p, y, 0) * c is choose(p, y * c, 0); (y * z) * c is (y * c) * z. The product asked about is not made yet.
static ValueId scale_in(Simplify *s, ValueId x, double by, LocId loc) {
    Hlo *h = s->h;
    TypeId type = h->values.at[x].type;
    OpId def = used_once(s, x) ? def_of(s, x, HLO_SELECT) : 0;
    if (def) {
        HloOp op = *hlo_at(h, def);
        const HloAttr *zero = splat_value(h, hlo_operand(h, &op, 2));
        if (!zero || dtype_to_f64(DT_F32, zero->data) != 0 || splat_value(h, hlo_operand(h, &op, 1)))
            return 0;
        ValueId y = hlo_operand(h, &op, 1), in = scale_in(s, y, by, loc);
        ValueId operands[3] = {hlo_operand(h, &op, 0), in ? in : times(s, y, by, loc), hlo_operand(h, &op, 2)};
        return push(s, hlo_op(h, HLO_SELECT, op.loc, 3, operands, 1, &type));
    }
    def = used_once(s, x) ? def_of(s, x, HLO_MULTIPLY) : 0;
    if (!def)
        return 0;
    HloOp op = *hlo_at(h, def);
    ValueId y = hlo_operand(h, &op, 0), z = hlo_operand(h, &op, 1);
    if (splat_value(h, y) || splat_value(h, z))
        return 0;
    ValueId operands[2] = {times(s, y, by, loc), z};
    return push(s, hlo_op(h, HLO_MULTIPLY, op.loc, 2, operands, 1, &type));
}

static ValueId scale(Simplify *s, const HloOp *op) {
    const HloAttr *a = splat_value(s->h, hlo_operand(s->h, op, 1));
    int e;
    if (!a || hlo_value_type(s->h, op->results)->dtype != DT_F32)
        return 0;
    double x = dtype_to_f64(DT_F32, a->data), by = op->code == HLO_DIVIDE ? 1 / x : x;
    return frexp(by, &e) == 0.5 && e > -32 && e < 32 ? scale_in(s, hlo_operand(s->h, op, 0), by, op->loc) : 0;
}

// --- the table -------------------------------------------------------------------------------------

static ValueId reshape(Simplify *s, const HloOp *op) {
    ValueId v = hlo_operand(s->h, op, 0);
    return def_of(s, v, HLO_RESHAPE) ? reshape_to(s, v, s->h->values.at[op->results].type, op->loc) : 0;
}

static ValueId concatenate(Simplify *s, const HloOp *op) { return op->noperands == 1 ? hlo_operand(s->h, op, 0) : 0; }

// Rules for the same operation are tried in this order.
const SimplifyRule simplify_rules[] = {
    {"reshape of a reshape: one", HLO_RESHAPE, RULE_EXACT, reshape},
    {"transpose that moves nothing, of a transpose, of a product: reshape, one, the product swapped", HLO_TRANSPOSE, RULE_EXACT, transpose},
    {"broadcast that repeats nothing, of a broadcast: reshape, one", HLO_BROADCAST_IN_DIM, RULE_EXACT, broadcast},
    {"slice of everything: its operand", HLO_SLICE, RULE_EXACT, slice},
    {"pad by nothing: its operand", HLO_PAD, RULE_EXACT, pad},
    {"concatenate of one: its operand", HLO_CONCATENATE, RULE_EXACT, concatenate},
    {"sum of one from 0.0: it", HLO_REDUCE, RULE_ZERO, reduce_zero},
    {"reduction of one: combined with the initial value", HLO_REDUCE, RULE_EXACT, reduce},
    {"largest of x * 2^k: the largest x, * 2^k", HLO_REDUCE, RULE_EXACT, scale_out_max},
    {"select known, or of equals: one of them", HLO_SELECT, RULE_EXACT, choose},
    {"select(p, x * 2^k, number): select(p, x, number / 2^k) * 2^k", HLO_SELECT, RULE_EXACT, scale_out},
    {"x * 1: x", HLO_MULTIPLY, RULE_EXACT, neutral},
    {"select(p, y, 0) * 2^k, (y * z) * 2^k: 2^k into y", HLO_MULTIPLY, RULE_RANGE, scale},
    {"x / 1: x", HLO_DIVIDE, RULE_EXACT, neutral},
    {"select(p, y, 0) / 2^k, (y * z) / 2^k: 2^-k into y", HLO_DIVIDE, RULE_RANGE, scale},
    {"x / 2^k: x * 2^-k", HLO_DIVIDE, RULE_EXACT, divide},
    {"x + -0.0: x", HLO_ADD, RULE_EXACT, neutral},
    {"x + 0.0: x", HLO_ADD, RULE_ZERO, add_zero},
    {"x + scatter(0, u): scatter(x, u)", HLO_ADD, RULE_ORDER, add_scatter},
    {"x - 0.0: x", HLO_SUBTRACT, RULE_EXACT, neutral},
    {"max(x, -inf): x", HLO_MAXIMUM, RULE_EXACT, neutral},
    {"min(x, inf): x", HLO_MINIMUM, RULE_EXACT, neutral},
    {"x & true: x", HLO_AND, RULE_EXACT, neutral},
    {"x | 0: x", HLO_OR, RULE_EXACT, neutral},
    {"x ^ 0: x", HLO_XOR, RULE_EXACT, neutral},
    {"gather of a conversion: the conversion of what was gathered", HLO_GATHER, RULE_EXACT, gather_first},
    {"narrow(scatter(x, u)): scatter(narrow(x), narrow(u))", HLO_CONVERT, RULE_TWICE, convert_scatter},
    {"erfc that is only a factor: 1 - erf", HLO_CHLO_ERFC, RULE_CLOSE, erfc_as_erf},
};
const int simplify_rule_count = sizeof simplify_rules / sizeof *simplify_rules;

// --- the walk --------------------------------------------------------------------------------------

static ValueId instead(Simplify *s, const HloOp *op) {
    const HloType *t = op->nresults == 1 ? hlo_value_type(s->h, op->results) : NULL;
    if (!t || !is_static(t) || !t->elems)
        return 0;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (!is_static(hlo_value_type(s->h, hlo_operand(s->h, op, i))))
            return 0;
    ValueId to = 0;
    for (int i = 0; i < simplify_rule_count && !to; i++)
        to = simplify_rules[i].code == op->code ? simplify_rules[i].to(s, op) : 0;
    return to;
}

static void simplify_visit(void *pass, OpId id) {
    Simplify *s = pass;
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    ValueId to = instead(s, &op);
    if (to && h->values.at[to].type == h->values.at[op.results].type) {
        if (to < s->nuses && op.results < s->nuses && !s->uses[to])
            s->uses[to] = s->uses[op.results]; // made just now
        walk_replace(&s->w, op.results, to);
        return;
    }
    push(s, id);
    if (op.code == HLO_DOT_GENERAL) {
        hlo_at(h, id)->attrs = arena_dup(h->arena, op.attrs, hlo_row(&op)->nattrs * sizeof *op.attrs);
        read_through(s, id, 0);
        read_through(s, id, 1);
    }
}

static void count_uses(Simplify *s, RegionId r) {
    const HloRegion *region = &s->h->regions.at[r];
    for (uint32_t i = region->ops.n; i-- > 0;) { // readers first
        const HloOp *op = hlo_at(s->h, region->ops.at[i]);
        bool factor = op->code == HLO_MULTIPLY || (is_reshape(s->h, op) && s->factors[op->results] == s->uses[op->results]);
        for (uint32_t k = 0; k < op->noperands; k++) {
            s->uses[hlo_operand(s->h, op, k)]++;
            s->factors[hlo_operand(s->h, op, k)] += factor;
        }
        for (uint32_t k = 0; k < op->nregions; k++)
            count_uses(s, s->h->op_regions.at[op->regions + k]);
    }
}

void pass_simplify(Compile *c) {
    pass_dce(c);
    Simplify s = {.c = c, .h = c->hlo};
    walk_init(&s.w, c);
    s.nuses = 2 * c->hlo->values.n; // the pass makes values, a few of which are asked about
    s.uses = ARENA_NEWN(c->scratch, uint32_t, s.nuses);
    s.factors = ARENA_NEWN(c->scratch, uint32_t, s.nuses);
    count_uses(&s, hlo_main(c->hlo)->body);
    walk_rewrite(&s.w, hlo_main(c->hlo)->body, WALK_ALL, simplify_visit, &s);
}
