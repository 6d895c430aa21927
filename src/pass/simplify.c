// SPDX-License-Identifier: Apache-2.0
// simplify.c — one table of rules: movement that moves nothing, operations that do nothing, work that is cheaper elsewhere.
// needs: values defined before use, constants folded
// gives: transposes and broadcasts without dimensions of size one; no transpose of a transpose, broadcast of a
//        broadcast or reshape of a reshape; dot_generals that read operands and give results as they lie; equal ops once
// stale: nothing (dce drops what became unused)
//
// Every row of `simplify_rules` says whether its rule is exact or what it gives up (rules.h); tests/unit/simplify_test.c holds each to that. Exact: the same
// bits, and a NaN for a NaN. x / 8 is x * 0.125, x / 3 is not x * (1/3); x + -0.0 is x, x + 0.0 is x but for the sign of a zero.
#include <math.h>
#include <string.h>

#include "hlo/coll.h"
#include "hlo/dot.h"
#include "hlo/loop.h"
#include "hlo/users.h"
#include "pass/rules.h"


typedef struct Simplify {
    Walk w; // first: rules are handed it
    uint32_t *factors; // value -> reads of it as a factor of a product, through reshapes and stacks of loops, before the pass
    Users u;           // of the program before the pass
} Simplify;

static bool used_once(const Walk *w, ValueId v) { return walk_uses(w, v) == 1; }

// --- making ----------------------------------------------------------------------------------------

static ValueId reshape_to(Walk *w, ValueId v, TypeId type) {
    const HloOp *inner = hlo_def_as(w->hlo, v, HLO_RESHAPE);
    return walk_shape(w, inner ? hlo_operand(w->hlo, inner, 0) : v, type);
}

static ValueId splat_like(Walk *w, ValueId like, const void *one) {
    return walk_push(w, hlo_op_splat(w->hlo, w->loc, w->hlo->values.at[like].type, one));
}

// --- products --------------------------------------------------------------------------------------

// A transpose that swaps the two halves of a product's result is the product of the swapped operands: the same sums in
// the same order.
static ValueId swap_product(Walk *w, ValueId v, const int64_t *perm, uint32_t n, TypeId type) {
    Hlo *h = w->hlo;
    const HloOp *def = hlo_def_as(h, v, HLO_DOT_GENERAL);
    if (!def || !used_once(w, v) || !dot_may_swap(h, def))
        return 0;
    HloOp dot = *def;
    DotDims by = dot_dims(&dot);
    uint32_t nb = by.nb, nl = hlo_value_type(h, hlo_operand(h, &dot, 0))->rank - nb - by.nc;
    uint32_t nr = hlo_value_type(h, hlo_operand(h, &dot, 1))->rank - nb - by.nc;
    for (uint32_t i = 0; i < n; i++)
        if (perm[i] != (i < nb ? i : i < nb + nr ? i + nl : i - nr))
            return 0;
    ValueId operands[2] = {hlo_operand(h, &dot, 1), hlo_operand(h, &dot, 0)};
    OpId made = hlo_op_like(h, &dot, operands, type);
    hlo_op_own_attrs(h, made);
    for (int side = 0; side < 2; side++) {
        hlo_set_ints(h, made, dot_batch_key[side], by.batch[!side], nb);
        hlo_set_ints(h, made, dot_contract_key[side], by.contract[!side], by.nc);
    }
    return walk_push(w, made);
}

// An operand that is a transpose is read where it came from, when its free dimensions keep their order: passes behind turns leave such transposes.
static void read_through(Hlo *h, OpId id, uint32_t side) {
    HloOp op = *hlo_at(h, id);
    const HloOp *from = hlo_def_as(h, hlo_operand(h, &op, side), HLO_TRANSPOSE);
    if (!from)
        return;
    uint32_t n, nfree;
    const int64_t *perm = hlo_ints(from, AK_PERMUTATION, &n);
    DotDims by = dot_dims(&op);
    int64_t b[OTRN_MAX_RANK], c[OTRN_MAX_RANK], kept[OTRN_MAX_RANK];
    nfree = dot_free_dims(hlo_value_type(h, hlo_operand(h, &op, side)), &op, side, kept);
    for (uint32_t i = 1; i < nfree; i++)
        if (perm[kept[i]] < perm[kept[i - 1]])
            return;
    for (uint32_t i = 0; i < by.nb; i++)
        b[i] = perm[by.batch[side][i]];
    for (uint32_t i = 0; i < by.nc; i++)
        c[i] = perm[by.contract[side][i]];
    h->operands.at[op.operands + side] = hlo_operand(h, from, 0);
    hlo_set_ints(h, id, dot_batch_key[side], b, by.nb);
    hlo_set_ints(h, id, dot_contract_key[side], c, by.nc);
}

static ValueId product(Walk *w, const HloOp *op) {
    (void)op;
    hlo_op_own_attrs(w->hlo, w->id);
    read_through(w->hlo, w->id, 0);
    read_through(w->hlo, w->id, 1);
    return 0;
}

// --- movement --------------------------------------------------------------------------------------

// Dimensions of size one say nothing about order: move the others only.
static ValueId transpose(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    uint32_t n;
    const int64_t *attr = hlo_ints(op, AK_PERMUTATION, &n);
    ValueId v = hlo_operand(h, op, 0);
    int64_t perm[OTRN_MAX_RANK];
    memcpy(perm, attr, n * sizeof *perm);
    const HloOp *inner = hlo_def_as(h, v, HLO_TRANSPOSE);
    bool twice = inner != NULL;
    if (inner) {
        const int64_t *first = hlo_ints(inner, AK_PERMUTATION, &n);
        v = hlo_operand(h, inner, 0);
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
    assert(k == m);
    TypeId result = h->values.at[op->results].type;
    if (!moves)
        return reshape_to(w, v, result);
    TypeId squeezed = hlo_type_tensor(h, in.dtype, (int)m, dims), type = hlo_type_tensor(h, in.dtype, (int)m, out);
    ValueId plain = reshape_to(w, v, squeezed), swapped = swap_product(w, plain, kept, m, type);
    if (swapped) {
        ValueId to = reshape_to(w, swapped, result);
        walk_set_uses(w, swapped, to == swapped ? walk_uses(w, op->results) : 1); // it may be swapped back
        return to;
    }
    return twice || m != (uint32_t)in.rank ? reshape_to(w, walk_transpose(w, plain, kept), result) : 0;
}

static ValueId broadcast(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    uint32_t n;
    const int64_t *attr = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    ValueId v = hlo_operand(h, op, 0);
    int64_t to[OTRN_MAX_RANK];
    if (n) // of a number there are none
        memcpy(to, attr, n * sizeof *to);
    const HloOp *inner = hlo_def_as(h, v, HLO_BROADCAST_IN_DIM);
    if (inner) {
        const int64_t *first = hlo_ints(inner, AK_BROADCAST_DIMENSIONS, &n);
        int64_t both[OTRN_MAX_RANK];
        v = hlo_operand(h, inner, 0);
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
        return reshape_to(w, v, result);
    if (!inner && m == n)
        return 0;
    v = reshape_to(w, v, hlo_type_tensor(h, in.dtype, (int)m, dims));
    return walk_broadcast(w, v, kept, m, result);
}

static ValueId slice(Walk *w, const HloOp *op) {
    ValueId v = hlo_operand(w->hlo, op, 0); // the same type means: all of it, in order
    return w->hlo->values.at[v].type == w->hlo->values.at[op->results].type ? v : 0;
}

static ValueId slice_of_slice(Walk *w, const HloOp *op) {
    const HloOp *of = hlo_def_as(w->hlo, hlo_operand(w->hlo, op, 0), HLO_SLICE);
    const HloType *t = hlo_value_type(w->hlo, op->results);
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK], by[OTRN_MAX_RANK];
    uint32_t n, of_n, op_n;
    if (!of || !t->elems)
        return 0;
    ValueId whole = hlo_operand(w->hlo, of, 0);
    const int64_t *in_from = hlo_ints(of, AK_START_INDICES, &n), *in_by = hlo_ints(of, AK_STRIDES, &of_n);
    const int64_t *out_from = hlo_ints(op, AK_START_INDICES, &n), *out_by = hlo_ints(op, AK_STRIDES, &op_n);
    for (uint32_t i = 0; i < n; i++) { // no strides: ones
        int64_t inner = of_n ? in_by[i] : 1;
        from[i] = in_from[i] + out_from[i] * inner;
        by[i] = inner * (op_n ? out_by[i] : 1);
        to[i] = from[i] + (t->dims[i] - 1) * by[i] + 1;
    }
    OpId made = hlo_op(w->hlo, HLO_SLICE, w->loc, 1, &whole, 1, &w->hlo->values.at[op->results].type);
    hlo_set_ints(w->hlo, made, AK_START_INDICES, from, n);
    hlo_set_ints(w->hlo, made, AK_LIMIT_INDICES, to, n);
    hlo_set_ints(w->hlo, made, AK_STRIDES, by, n);
    return n == t->rank ? walk_push(w, made) : 0;
}

static ValueId pad(Walk *w, const HloOp *op) {
    static const HloAttrKey keys[3] = {AK_EDGE_PADDING_LOW, AK_EDGE_PADDING_HIGH, AK_INTERIOR_PADDING};
    for (int k = 0; k < 3; k++) {
        uint32_t n;
        const int64_t *v = hlo_ints(op, keys[k], &n);
        for (uint32_t i = 0; i < n; i++)
            if (v[i])
                return 0;
    }
    return hlo_operand(w->hlo, op, 0);
}

// x times a number, in its type.
static ValueId times(Walk *w, ValueId x, double by) {
    return walk_binary(w, HLO_MULTIPLY, x, walk_number(w, w->hlo->values.at[x].type, by));
}

// --- arithmetic ------------------------------------------------------------------------------------

// A reduction over nothing but dimensions of size one, of which there is something; the value, or 0.
static ValueId reduced_of_one(const Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    ValueId v = hlo_operand(h, op, 0);
    const HloType *in = hlo_value_type(h, v), *out = hlo_value_type(h, op->results);
    bool ok = reduce_body(h, op) && in->elems == out->elems && in->dtype == out->dtype &&
              splat_value(h, hlo_operand(h, op, 1));
    return ok ? v : 0;
}

// … combines each element with the initial value.
static ValueId reduce(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    uint16_t code = reduce_body(h, op);
    TypeId result = h->values.at[op->results].type;
    ValueId v = reduced_of_one(w, op), init = hlo_operand(h, op, 1);
    if (!v)
        return 0;
    v = reshape_to(w, v, result);
    if (is_neutral(h, code, init))
        return v;
    return walk_binary(w, code, splat_like(w, v, splat_value(h, init)->data), v);
}

// A sum that begins at 0.0.
static ValueId reduce_zero(Walk *w, const HloOp *op) {
    ValueId v = reduce_body(w->hlo, op) == HLO_ADD && splat_is_zero(w->hlo, hlo_operand(w->hlo, op, 1)) ? reduced_of_one(w, op) : 0;
    return v ? reshape_to(w, v, w->hlo->values.at[op->results].type) : 0;
}

// Division by a power of two is multiplication by its inverse, as long as that is a normal number.
static ValueId divide(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    int dtype = hlo_value_type(h, op->results)->dtype, e;
    double x;
    if (!splat_f64(h, hlo_operand(h, op, 1), &x) || (dtype != DT_F32 && dtype != DT_F64 && dtype != DT_BF16))
        return 0;
    if (x == 0 || !isfinite(x) || fabs(frexp(x, &e)) != 0.5 || e < -100 || e > 100)
        return 0;
    return times(w, hlo_operand(h, op, 0), 1 / x);
}

static ValueId neutral(Walk *w, const HloOp *op) {
    ValueId a = hlo_operand(w->hlo, op, 0), b = hlo_operand(w->hlo, op, 1);
    if (is_neutral(w->hlo, op->code, b))
        return a;
    return hlo_is(op, OT_COMMUTES) && is_neutral(w->hlo, op->code, a) ? b : 0;
}

// The sign of a zero is given up, as XLA does: gradients begin as such sums.
static ValueId add_zero(Walk *w, const HloOp *op) {
    ValueId a = hlo_operand(w->hlo, op, 0), b = hlo_operand(w->hlo, op, 1);
    return splat_is_zero(w->hlo, b) ? a : splat_is_zero(w->hlo, a) ? b : 0;
}

// --- pads that do not meet: gradients of slices, and scans that put odd and even places together again ---------------------------

#define JOINED_MAX 8

typedef struct Padded { // with zeros, along one dimension
    ValueId of;
    int64_t low, n, step; // n elements, `step` from one to the next
} Padded;

// The dimension; -1: not such a pad, or not only this one's.
static int padded(const Walk *w, ValueId v, Padded *out) {
    const HloOp *op = used_once(w, v) ? hlo_def_as(w->hlo, v, HLO_PAD) : NULL;
    if (!op || !splat_is_zero(w->hlo, hlo_operand(w->hlo, op, 1)))
        return -1;
    uint32_t n;
    const int64_t *low = hlo_ints(op, AK_EDGE_PADDING_LOW, &n), *high = hlo_ints(op, AK_EDGE_PADDING_HIGH, &n), *inner = hlo_ints(op, AK_INTERIOR_PADDING, &n);
    int dim = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (low[i] < 0 || high[i] < 0 || ((low[i] || high[i] || inner[i]) && dim >= 0))
            return -1;
        if (low[i] || high[i] || inner[i])
            dim = (int)i, *out = (Padded){hlo_operand(w->hlo, op, 0), low[i], hlo_value_type(w->hlo, hlo_operand(w->hlo, op, 0))->dims[i], inner[i] + 1};
    }
    return dim >= 0 && out->n ? dim : -1;
}

// The terms of ((a + b) + c) + … along `dim`, the last one first; 0: something else is among them, or they are too many.
static uint32_t padded_terms(const Walk *w, const HloOp *op, Padded *to, int *dim) {
    for (uint32_t n = 0; n + 1 < JOINED_MAX;) {
        ValueId a = hlo_operand(w->hlo, op, 0), b = hlo_operand(w->hlo, op, 1);
        Padded x = {0}, y = {0};
        int dx = padded(w, a, &x), dy = padded(w, b, &y);
        if ((dx < 0 && dy < 0) || (n && (dx < 0 ? dy : dx) != *dim) || (dx >= 0 && dy >= 0 && dx != dy))
            return 0;
        *dim = dx < 0 ? dy : dx;
        to[n++] = dy < 0 ? x : y;
        if (dx >= 0 && dy >= 0) {
            to[n++] = x;
            return n;
        }
        op = used_once(w, dy < 0 ? b : a) ? hlo_def_as(w->hlo, dy < 0 ? b : a, HLO_ADD) : NULL;
        if (!op)
            return 0;
    }
    return 0;
}

static TypeId resized(Walk *w, ValueId v, int dim, int64_t n) {
    HloType t = *hlo_value_type(w->hlo, v);
    int64_t dims[OTRN_MAX_RANK];
    memcpy(dims, t.dims, (size_t)t.rank * sizeof *dims);
    dims[dim] = n;
    return hlo_type_tensor(w->hlo, t.dtype, t.rank, dims);
}

static ValueId join(Walk *w, const ValueId *in, uint32_t n, int dim) {
    int64_t whole = 0;
    assert(n > 1 && dim >= 0 && dim < hlo_value_type(w->hlo, in[0])->rank);
    for (uint32_t i = 0; i < n; i++)
        whole += hlo_value_type(w->hlo, in[i])->dims[dim];
    OpId made = hlo_op(w->hlo, HLO_CONCATENATE, w->loc, n, in, 1, (TypeId[]){resized(w, in[0], dim, whole)});
    hlo_set_int(w->hlo, made, AK_DIMENSION, dim);
    return walk_push(w, made);
}

// Zeros before and behind, n in all.
static ValueId pad_to(Walk *w, ValueId v, int dim, int64_t low, int64_t n) {
    const HloType *t = hlo_value_type(w->hlo, v);
    int64_t below[OTRN_MAX_RANK] = {0}, above[OTRN_MAX_RANK] = {0}, none[OTRN_MAX_RANK] = {0};
    below[dim] = low, above[dim] = n - low - t->dims[dim];
    assert(above[dim] >= 0);
    if (!low && !above[dim])
        return v;
    ValueId zero = walk_number(w, hlo_type_tensor(w->hlo, t->dtype, 0, NULL), 0);
    return walk_pad(w, v, zero, below, above, none, resized(w, v, dim, n));
}

// a0 b0 a1 b1 …: side by side in a dimension of their own.
static ValueId interleave(Walk *w, ValueId a, ValueId b, int dim) {
    HloType t = *hlo_value_type(w->hlo, a);
    int64_t dims[OTRN_MAX_RANK];
    assert(w->hlo->values.at[a].type == w->hlo->values.at[b].type && t.rank < OTRN_MAX_RANK);
    for (int i = 0; i <= t.rank; i++)
        dims[i] = i <= dim ? t.dims[i] : i == dim + 1 ? 1 : t.dims[i - 1];
    ValueId both = join(w, (ValueId[]){walk_reshape(w, a, t.rank + 1, dims), walk_reshape(w, b, t.rank + 1, dims)}, 2, dim + 1);
    return walk_shape(w, both, resized(w, a, dim, 2 * t.dims[dim]));
}

// Terms one behind the other.
static ValueId side_by_side(Walk *w, const Padded *at, uint32_t n, int dim, int64_t whole) {
    ValueId in[JOINED_MAX];
    int64_t first = INT64_MAX, next;
    for (uint32_t i = 0; i < n; i++)
        first = at[i].low < first ? at[i].low : first;
    next = first;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = 0;
        while (i < n && (at[i].low != next || (at[i].n > 1 && at[i].step > 1)))
            i++;
        if (i == n)
            return 0;
        in[k] = at[i].of, next += at[i].n;
    }
    return pad_to(w, join(w, in, n, dim), dim, first, whole);
}

// Terms at even places and terms at odd ones are sums of their own, in the order they had.
static ValueId by_turns(Walk *w, const Padded *at, uint32_t n, int dim, int64_t whole) {
    ValueId sum[2] = {0};
    int64_t half = (whole + 1) / 2;
    for (uint32_t i = 0; i < n; i++)
        if (at[i].n > 1 && at[i].step != 2)
            return 0;
    assert(n > 1);
    for (uint32_t i = n; i-- > 0;) {
        ValueId term = pad_to(w, at[i].of, dim, at[i].low / 2, half);
        ValueId *to = &sum[at[i].low % 2];
        *to = *to ? walk_binary(w, HLO_ADD, *to, term) : term;
    }
    if (!sum[0] || !sum[1])
        return 0;
    ValueId both = interleave(w, sum[0], sum[1], dim);
    return whole % 2 ? walk_piece(w, both, (int64_t[OTRN_MAX_RANK]){0}, resized(w, both, dim, whole)) : both;
}

// Whoever adds another such term has this one's among its own.
static bool goes_on(const Simplify *s, const HloOp *op) {
    OpId by = users_only(&s->u, op->results);
    const HloOp *next = by ? hlo_at(s->w.hlo, by) : NULL;
    ValueId other = next && next->code == HLO_ADD ? hlo_operand(s->w.hlo, next, hlo_operand(s->w.hlo, next, 0) == op->results) : 0;
    return other && padded(&s->w, other, &(Padded){0}) >= 0;
}

static ValueId add_pads(Walk *w, const HloOp *op) {
    Padded at[JOINED_MAX];
    int dim = -1;
    const HloType *t = hlo_value_type(w->hlo, op->results);
    uint32_t n = t->rank < OTRN_MAX_RANK && !goes_on((const Simplify *)w, op) ? padded_terms(w, op, at, &dim) : 0;
    if (!n)
        return 0;
    int64_t whole = t->dims[dim];
    ValueId joined = side_by_side(w, at, n, dim, whole);
    return joined ? joined : by_turns(w, at, n, dim, whole);
}

// --- signs: what rounds rounds both ways alike, so a minus may go into a number or a sum ---------------

static ValueId negated(const Walk *w, ValueId v) { // x when v is -x, of floats; else 0
    const HloOp *op = hlo_def_as(w->hlo, v, HLO_NEGATE);
    return op && dtype_is_float(hlo_value_type(w->hlo, v)->dtype) ? hlo_operand(w->hlo, op, 0) : 0;
}

// x * -c of x and a value that is c everywhere; 0: it is not.
static ValueId times_negative(Walk *w, ValueId x, ValueId number) {
    double c;
    return !splat_f64(w->hlo, number, &c) || isnan(c) ? 0 : times(w, x, -c);
}

static ValueId multiply_negated(Walk *w, const HloOp *op) {
    ValueId a = hlo_operand(w->hlo, op, 0), b = hlo_operand(w->hlo, op, 1), x = negated(w, a), y = negated(w, b);
    return x ? times_negative(w, x, b) : y ? times_negative(w, y, a) : 0;
}

static ValueId negate_product(Walk *w, const HloOp *op) {
    ValueId v = hlo_operand(w->hlo, op, 0);
    const HloOp *of = used_once(w, v) ? hlo_def_as(w->hlo, v, HLO_MULTIPLY) : NULL;
    if (!of)
        return 0;
    ValueId a = hlo_operand(w->hlo, of, 0), b = hlo_operand(w->hlo, of, 1), made = times_negative(w, a, b);
    return made ? made : times_negative(w, b, a);
}

static ValueId add_negated(Walk *w, const HloOp *op) {
    ValueId a = hlo_operand(w->hlo, op, 0), b = hlo_operand(w->hlo, op, 1), x = negated(w, a), y = negated(w, b);
    return y ? walk_binary(w, HLO_SUBTRACT, a, y) : x ? walk_binary(w, HLO_SUBTRACT, b, x) : 0;
}

static ValueId subtract_negated(Walk *w, const HloOp *op) {
    ValueId y = negated(w, hlo_operand(w->hlo, op, 1));
    return y ? walk_binary(w, HLO_ADD, hlo_operand(w->hlo, op, 0), y) : 0;
}

static ValueId choose(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
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

// The one element that all of them are; 0: they are not known to be.
static ValueId one_for_all(const Hlo *h, ValueId v) {
    const HloOp *op = hlo_def_as(h, v, HLO_BROADCAST_IN_DIM);
    v = op ? hlo_operand(h, op, 0) : v;
    return hlo_value_type(h, v)->elems == 1 ? v : 0;
}

// As gradients are clipped where their norm asks for that.
static ValueId choose_scale(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    ValueId p = one_for_all(h, hlo_operand(h, op, 0));
    TypeId type = h->values.at[op->results].type;
    for (uint32_t k = 1; k < 3 && p && dtype_is_float(hlo_type(h, type)->dtype) && hlo_type(h, type)->elems > 1; k++) {
        ValueId x = hlo_operand(h, op, k), scaled = hlo_operand(h, op, 3 - k);
        const HloOp *by = used_once(w, scaled) ? hlo_def(h, scaled) : NULL;
        if (!by || (by->code != HLO_DIVIDE && by->code != HLO_MULTIPLY))
            continue;
        bool first = by->code == HLO_MULTIPLY && hlo_operand(h, by, 1) == x; // what scales it
        ValueId r = hlo_operand(h, by, !first) != x ? one_for_all(h, hlo_operand(h, by, !first)) : 0;
        if (hlo_operand(h, by, first) != x || !r)
            continue;
        HloOpcode code = (HloOpcode)by->code;
        r = walk_reshape(w, r, 0, NULL);
        ValueId one = walk_number(w, h->values.at[r].type, 1), yes = k == 1 ? one : r;
        r = walk_select(w, walk_reshape(w, p, 0, NULL), yes, k == 1 ? r : one);
        return walk_binary(w, code, x, walk_broadcast(w, r, NULL, 0, type));
    }
    return 0;
}

// erfc of a large tensor that is only a factor of products, as in a GELU, is 1 - erf, in fp32, which the engines have: right to an
// absolute 1e-7. Elsewhere its tail may matter, and GpSimd computes it to the last places.
#define ERFC_ON_ENGINES 8192

static ValueId erfc_as_erf(Walk *w, const HloOp *op) {
    const Simplify *s = (const Simplify *)w;
    const HloType *t = hlo_value_type(w->hlo, op->results);
    int dtype = t->dtype;
    if (t->elems < ERFC_ON_ENGINES || (dtype != DT_F32 && dtype != DT_BF16 && dtype != DT_F16))
        return 0;
    if (op->results >= s->u.nvalues || s->factors[op->results] != walk_uses(w, op->results))
        return 0;
    ValueId erf = walk_unary(w, HLO_CHLO_ERF, walk_convert(w, hlo_operand(w->hlo, op, 0), DT_F32));
    ValueId one = walk_number(w, w->hlo->values.at[erf].type, 1);
    return walk_convert(w, walk_binary(w, HLO_SUBTRACT, one, erf), dtype);
}

// --- picking and placing -----------------------------------------------------------------------------
//
// The loss of a classifier picks one score a row, its gradient adds to one: neither should make a tensor of scores.

// gather(convert(x)) is convert(gather(x)), of fewer elements.
static ValueId gather_first(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    const HloOp *convert = hlo_def_as(h, before_reshapes(h, hlo_operand(h, op, 0)), HLO_CONVERT);
    const HloType *out = hlo_value_type(h, op->results);
    HloType of = *hlo_value_type(h, hlo_operand(h, op, 0));
    if (!convert)
        return 0;
    ValueId x = hlo_operand(h, convert, 0);
    const HloType *from = hlo_value_type(h, x);
    int dtype = out->dtype;
    if (out->elems >= from->elems || !dtype_is_float(from->dtype) || !dtype_is_float(out->dtype))
        return 0;
    TypeId type = hlo_type_tensor(h, from->dtype, out->rank, out->dims);
    ValueId operands[2] = {walk_reshape(w, x, of.rank, of.dims), hlo_operand(h, op, 1)};
    return walk_convert(w, walk_push(w, hlo_op_like(h, op, operands, type)), dtype);
}

// A scatter of one operand that adds, used once; NULL: none.
static const HloOp *adding_scatter(const Walk *w, ValueId v) {
    const Hlo *h = w->hlo;
    const HloOp *def = used_once(w, v) ? hlo_def_as(h, v, HLO_SCATTER) : NULL;
    if (!def || def->noperands != 3 || !dtype_is_float(hlo_value_type(h, v)->dtype))
        return NULL;
    return region_combiner(h, hlo_op_region(h, def, 0)) == HLO_ADD ? def : NULL;
}

static ValueId scatter_into(Walk *w, const HloOp *scatter, ValueId x, ValueId updates) { // scatter: a copy
    Hlo *h = w->hlo;
    int dtype = hlo_value_type(h, x)->dtype;
    assert(scatter->code == HLO_SCATTER && hlo_value_type(h, updates)->dtype == dtype);
    ValueId operands[3] = {x, hlo_operand(h, scatter, 1), updates};
    OpId made = hlo_op_like(h, scatter, operands, h->values.at[x].type);
    hlo_op_add_combiner(h, made, HLO_ADD, hlo_type_tensor(h, dtype, 0, NULL));
    ValueId v = walk_push(w, made);
    walk_set_uses(w, v, 1);
    return v;
}

// x + scatter(0, u) is scatter(x, u); scatter(0, u) - y is scatter(-y, u), and y - scatter(0, u) is scatter(y, -u).
static ValueId into_scatter(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    bool minus = op->code == HLO_SUBTRACT;
    for (uint32_t k = 0; k < 2; k++) {
        const HloOp *scatter = adding_scatter(w, hlo_operand(h, op, k));
        if (!scatter || !splat_is_zero(h, hlo_operand(h, scatter, 0)))
            continue;
        HloOp from = *scatter;
        ValueId y = hlo_operand(h, op, !k), u = hlo_operand(h, &from, 2);
        return scatter_into(w, &from, minus && !k ? walk_unary(w, HLO_NEGATE, y) : y, minus && k ? walk_unary(w, HLO_NEGATE, u) : u);
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
static ValueId convert_scatter(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    ValueId v = hlo_operand(h, op, 0);
    while (hlo_def_as(h, v, HLO_RESHAPE) && used_once(w, v))
        v = hlo_operand(h, hlo_def(h, v), 0);
    const HloOp *scatter = adding_scatter(w, v);
    HloType t = *hlo_value_type(h, op->results);
    int to = t.dtype;
    if (!scatter || (to != DT_BF16 && to != DT_F16) || hlo_value_type(h, hlo_operand(h, op, 0))->dtype != DT_F32 ||
        !hits_once(h, scatter))
        return 0;
    HloOp from = *scatter;
    ValueId x = walk_convert(w, hlo_operand(h, &from, 0), to);
    return walk_reshape(w, scatter_into(w, &from, x, walk_convert(w, hlo_operand(h, &from, 2), to)), t.rank, t.dims);
}

// --- powers of two -----------------------------------------------------------------------------------
//
// Multiplication by one is exact, so it may go where another instruction does it on the way: out of a choice or a maximum
// towards the exponential behind them, into a choice between numbers and zero, past another product.

// x when v is x times a positive power of two, and that number; else 0.
static ValueId scaled_by(const Walk *w, ValueId v, double *by) {
    const HloOp *op = hlo_def_as(w->hlo, v, HLO_MULTIPLY);
    if (!op)
        return 0;
    int dtype = hlo_value_type(w->hlo, v)->dtype, e;
    if ((dtype != DT_F32 && dtype != DT_BF16) || !splat_f64(w->hlo, hlo_operand(w->hlo, op, 1), by))
        return 0;
    return frexp(*by, &e) == 0.5 && e > -32 && e < 32 ? hlo_operand(w->hlo, op, 0) : 0;
}

// choose(p, x * c, number) is choose(p, x, number / c) * c.
static ValueId scale_out(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    double by, number;
    ValueId a = hlo_operand(h, op, 1), x = used_once(w, a) ? scaled_by(w, a, &by) : 0;
    if (!x || hlo_value_type(h, x)->dtype != DT_F32 || !splat_f64(h, hlo_operand(h, op, 2), &number))
        return 0;
    uint8_t bytes[16];
    dtype_from_f64(DT_F32, bytes, number / by);
    if (number == 0 || !(dtype_to_f64(DT_F32, bytes) * by == number)) // a NaN, or not held by fp32
        return 0;
    return times(w, walk_select(w, hlo_operand(h, op, 0), x, splat_like(w, x, bytes)), by);
}

// The largest x * c is c times the largest x.
static ValueId scale_out_max(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    double by;
    ValueId x = reduce_body(h, op) == HLO_MAXIMUM ? scaled_by(w, hlo_operand(h, op, 0), &by) : 0;
    if (!x || hlo_value_type(h, x)->dtype != DT_F32 || !is_neutral(h, HLO_MAXIMUM, hlo_operand(h, op, 1)))
        return 0;
    uint32_t n;
    const int64_t *over = hlo_ints(op, AK_DIMENSIONS, &n);
    return times(w, walk_reduce(w, HLO_MAXIMUM, x, hlo_operand(h, op, 1), over, n, h->values.at[op->results].type), by);
}

static bool chooses_or_zero(const Hlo *h, const HloOp *select) {
    return splat_is_zero(h, hlo_operand(h, select, 2)) && !splat_value(h, hlo_operand(h, select, 1));
}

// choose(p, y, 0) * c is choose(p, y * c, 0); (y * z) * c is (y * c) * z. The product asked about is not made yet.
static ValueId scale_in(Walk *w, ValueId x, double by) {
    Hlo *h = w->hlo;
    const HloOp *def = used_once(w, x) ? hlo_def(h, x) : NULL;
    HloOp op = def ? *def : (HloOp){0};
    TypeId type = h->values.at[x].type;
    if (op.code == HLO_SELECT) {
        if (!chooses_or_zero(h, &op))
            return 0;
        ValueId y = hlo_operand(h, &op, 1), in = scale_in(w, y, by);
        return walk_push(w, hlo_op_like(h, &op, (ValueId[]){hlo_operand(h, &op, 0), in ? in : times(w, y, by), hlo_operand(h, &op, 2)}, type));
    }
    if (op.code != HLO_MULTIPLY)
        return 0;
    ValueId y = hlo_operand(h, &op, 0), z = hlo_operand(h, &op, 1);
    if (splat_value(h, y) || splat_value(h, z))
        return 0;
    return walk_push(w, hlo_op_like(h, &op, (ValueId[]){times(w, y, by), z}, type));
}

static ValueId scale(Walk *w, const HloOp *op) {
    double x;
    int e;
    if (hlo_value_type(w->hlo, op->results)->dtype != DT_F32 || !splat_f64(w->hlo, hlo_operand(w->hlo, op, 1), &x))
        return 0;
    double by = op->code == HLO_DIVIDE ? 1 / x : x;
    return frexp(by, &e) == 0.5 && e > -32 && e < 32 ? scale_in(w, hlo_operand(w->hlo, op, 0), by) : 0;
}

// --- numbers into numbers per row ----------------------------------------------------------------------
//
// A softmax's weights are divided by a number per row, and dropout then by one of its own: a pass over all elements that one over the rows'
// numbers does as well. Engines have no division (x / r is x * (1 / r)), so a quotient's last place is nobody's; what multiplications alone make
// stays as it is.

#define PLAIN_NUMBER 16 // rows' numbers have room for it and for its inverse

// y when v is y times or over a number, for which *by is the factor; else 0.
static ValueId by_number(const Hlo *h, ValueId v, bool *divides, double *by) {
    const HloOp *op = hlo_def(h, v);
    if (!op || (op->code != HLO_MULTIPLY && op->code != HLO_DIVIDE) || !splat_f64(h, hlo_operand(h, op, 1), by))
        return 0;
    *divides = op->code == HLO_DIVIDE;
    return *by >= 1.0 / PLAIN_NUMBER && *by <= PLAIN_NUMBER ? hlo_operand(h, op, 0) : 0;
}

// The broadcast of fp32 numbers that many elements share.
static const HloOp *shared_numbers(const Hlo *h, ValueId v) {
    const HloOp *op = hlo_def_as(h, v, HLO_BROADCAST_IN_DIM);
    bool wide = op && !splat_value(h, v) && hlo_value_type(h, v)->dtype == DT_F32;
    return wide && hlo_value_type(h, hlo_operand(h, op, 0))->elems * 2 <= hlo_value_type(h, v)->elems ? op : NULL;
}

static ValueId shared_by(Walk *w, const HloOp *broadcast, bool divides, double by) {
    HloOp wide = *broadcast;
    ValueId r = hlo_operand(w->hlo, &wide, 0);
    r = walk_binary(w, divides ? HLO_DIVIDE : HLO_MULTIPLY, r, walk_number(w, w->hlo->values.at[r].type, by));
    return walk_push(w, hlo_op_like(w->hlo, &wide, &r, w->hlo->values.at[wide.results].type));
}

// v times or over the number, where v is a quotient by rows' numbers, narrowed, or chosen instead of zero; 0: it is not.
static ValueId into_quotient(Walk *w, ValueId v, bool divides, double by) {
    Hlo *h = w->hlo;
    const HloOp *def = used_once(w, v) ? hlo_def(h, v) : NULL;
    HloOp op = def ? *def : (HloOp){0};
    if (op.code == HLO_DIVIDE) {
        const HloOp *r = shared_numbers(h, hlo_operand(h, &op, 1));
        return r ? walk_binary(w, HLO_DIVIDE, hlo_operand(h, &op, 0), shared_by(w, r, !divides, by)) : 0;
    }
    if (op.code != HLO_CONVERT && (op.code != HLO_SELECT || !chooses_or_zero(h, &op)))
        return 0;
    uint32_t at = op.code == HLO_SELECT;
    ValueId in = dtype_is_float(hlo_value_type(h, hlo_operand(h, &op, at))->dtype) ? into_quotient(w, hlo_operand(h, &op, at), divides, by) : 0;
    ValueId operands[3] = {in, in, op.code == HLO_SELECT ? hlo_operand(h, &op, 2) : 0};
    if (at)
        operands[0] = hlo_operand(h, &op, 0);
    return in ? walk_push(w, hlo_op_like(h, &op, operands, h->values.at[v].type)) : 0;
}

static ValueId number_into_quotient(Walk *w, const HloOp *op) {
    bool divides;
    double by;
    ValueId y = by_number(w->hlo, op->results, &divides, &by);
    return y ? into_quotient(w, y, divides, by) : 0;
}

// The op is x times or over numbers that rows share, and a quotient anyway: x was divided, is, or those numbers are quotients.
static const HloOp *shared_factor(const Hlo *h, const HloOp *op, bool divided) {
    if (op->code != HLO_MULTIPLY && op->code != HLO_DIVIDE)
        return NULL;
    const HloOp *r = shared_numbers(h, hlo_operand(h, op, 1));
    return r && (divided || op->code == HLO_DIVIDE || hlo_def_as(h, hlo_operand(h, r, 0), HLO_DIVIDE)) ? r : NULL;
}

// Whoever reads it takes it times or over such numbers, once widened perhaps: nobody needs it itself then.
static bool all_shared(const Simplify *s, ValueId v, bool divided) {
    const Hlo *h = s->w.hlo;
    for (Reader by = readers_of(&s->u, v); reader_next(&by);) {
        bool widens = by.op->code == HLO_CONVERT && hlo_value_type(h, by.op->results)->dtype == DT_F32;
        if (widens ? !all_shared(s, by.op->results, divided) : hlo_operand(h, by.op, 0) != v || !shared_factor(h, by.op, divided))
            return false;
    }
    return v < s->u.nvalues && users_reads(&s->u, v) > 0;
}

static ValueId number_into_factor(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    ValueId x = hlo_operand(h, op, 0), narrow = x;
    const HloOp *widened = hlo_def_as(h, x, HLO_CONVERT);
    if (widened)
        narrow = hlo_operand(h, widened, 0);
    bool divides;
    double by;
    ValueId y = by_number(h, narrow, &divides, &by);
    const HloOp *r = y ? shared_factor(h, op, divides) : NULL;
    if (!r || !all_shared((const Simplify *)w, narrow, divides))
        return 0;
    ValueId numbers = shared_by(w, r, divides != (op->code == HLO_DIVIDE), by);
    return walk_binary(w, op->code, walk_convert(w, y, DT_F32), numbers);
}

// --- the table -------------------------------------------------------------------------------------

static ValueId reshape(Walk *w, const HloOp *op) {
    ValueId v = hlo_operand(w->hlo, op, 0);
    return hlo_def_as(w->hlo, v, HLO_RESHAPE) ? reshape_to(w, v, w->hlo->values.at[op->results].type) : 0;
}

static ValueId concatenate(Walk *w, const HloOp *op) { return op->noperands == 1 ? hlo_operand(w->hlo, op, 0) : 0; }

// Nothing is sent and nothing combined, where everybody is alone in its group.
static ValueId collective_alone(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    Groups g;
    if (!coll_groups(op->code, op->attrs, &g) || !g.rows || g.cols != 1 || g.mode == GROUP_BOTH)
        return 0;
    for (uint32_t i = 0; i < op->nresults; i++)
        if (h->values.at[hlo_operand(h, op, i)].type != h->values.at[op->results + i].type)
            return 0;
    for (uint32_t i = 1; i < op->nresults; i++)
        walk_replace(w, op->results + i, hlo_operand(h, op, i));
    return hlo_operand(h, op, 0);
}

// Rules for the same operation are tried in this order.
const Rule simplify_rules[] = {
    {"reshape of a reshape: one", HLO_RESHAPE, RULE_EXACT, reshape},
    {"transpose that moves nothing, of a transpose, of a product: reshape, one, the product swapped", HLO_TRANSPOSE, RULE_EXACT, transpose},
    {"broadcast that repeats nothing, of a broadcast: reshape, one", HLO_BROADCAST_IN_DIM, RULE_EXACT, broadcast},
    {"slice of everything: its operand", HLO_SLICE, RULE_EXACT, slice},
    {"slice of a slice: one", HLO_SLICE, RULE_EXACT, slice_of_slice},
    {"pad by nothing: its operand", HLO_PAD, RULE_EXACT, pad},
    {"concatenate of one: its operand", HLO_CONCATENATE, RULE_EXACT, concatenate},
    {"all_reduce of one device: its operand", HLO_ALL_REDUCE, RULE_EXACT, collective_alone},
    {"all_gather of one device: its operand", HLO_ALL_GATHER, RULE_EXACT, collective_alone},
    {"reduce_scatter of one device: its operand", HLO_REDUCE_SCATTER, RULE_EXACT, collective_alone},
    {"all_to_all of one device: its operand", HLO_ALL_TO_ALL, RULE_EXACT, collective_alone},
    {"sum of one from 0.0: it", HLO_REDUCE, RULE_ZERO, reduce_zero},
    {"reduction of one: combined with the initial value", HLO_REDUCE, RULE_EXACT, reduce},
    {"largest of x * 2^k: the largest x, * 2^k", HLO_REDUCE, RULE_EXACT, scale_out_max},
    {"select known, or of equals: one of them", HLO_SELECT, RULE_EXACT, choose},
    {"select(p, x, x / r), select(p, x, x * r), p and r the same for all: x / select(p, 1, r), x * select(p, 1, r)", HLO_SELECT, RULE_EXACT, choose_scale},
    {"select(p, x * 2^k, number): select(p, x, number / 2^k) * 2^k", HLO_SELECT, RULE_EXACT, scale_out},
    {"x * 1: x", HLO_MULTIPLY, RULE_EXACT, neutral},
    {"select(p, y, 0) * 2^k, (y * z) * 2^k: 2^k into y", HLO_MULTIPLY, RULE_RANGE, scale},
    {"(x / r) * number, r broadcast, narrowed or chosen on the way: x / (r / number)", HLO_MULTIPLY, RULE_LESS, number_into_quotient},
    {"(x / number) * r, x * number * (1 / r), r broadcast: x * (r / number), x * (number / r)", HLO_MULTIPLY, RULE_LESS, number_into_factor},
    {"-x * c: x * -c", HLO_MULTIPLY, RULE_EXACT, multiply_negated},
    {"-(x * c): x * -c", HLO_NEGATE, RULE_EXACT, negate_product},
    {"x / 1: x", HLO_DIVIDE, RULE_EXACT, neutral},
    {"select(p, y, 0) / 2^k, (y * z) / 2^k: 2^-k into y", HLO_DIVIDE, RULE_RANGE, scale},
    {"(x / r) / number, r broadcast, narrowed or chosen on the way: x / (r * number)", HLO_DIVIDE, RULE_LESS, number_into_quotient},
    {"(x / number) / r, (x * number) / r, r broadcast: x / (r * number), x / (r / number)", HLO_DIVIDE, RULE_LESS, number_into_factor},
    {"x / 2^k: x * 2^-k", HLO_DIVIDE, RULE_EXACT, divide},
    {"x + -0.0: x", HLO_ADD, RULE_EXACT, neutral},
    {"x + 0.0: x", HLO_ADD, RULE_ZERO, add_zero},
    {"pad(x, 0) + pad(y, 0) side by side: concatenate(x, y); … by turns: sums at even places and at odd ones, concatenated", HLO_ADD, RULE_ZERO, add_pads},
    {"x + scatter(0, u): scatter(x, u)", HLO_ADD, RULE_ORDER, into_scatter},
    {"x + -y: x - y", HLO_ADD, RULE_EXACT, add_negated},
    {"x - 0.0: x", HLO_SUBTRACT, RULE_EXACT, neutral},
    {"scatter(0, u) - x, x - scatter(0, u): scatter(-x, u), scatter(x, -u)", HLO_SUBTRACT, RULE_ORDER, into_scatter},
    {"x - -y: x + y", HLO_SUBTRACT, RULE_EXACT, subtract_negated},
    {"max(x, -inf): x", HLO_MAXIMUM, RULE_EXACT, neutral},
    {"min(x, inf): x", HLO_MINIMUM, RULE_EXACT, neutral},
    {"x & true: x", HLO_AND, RULE_EXACT, neutral},
    {"x | 0: x", HLO_OR, RULE_EXACT, neutral},
    {"x ^ 0: x", HLO_XOR, RULE_EXACT, neutral},
    {"gather of a conversion, reshaped perhaps: the conversion of what was gathered", HLO_GATHER, RULE_EXACT, gather_first},
    {"narrow(scatter(x, u)), reshaped perhaps: scatter(narrow(x), narrow(u))", HLO_CONVERT, RULE_TWICE, convert_scatter},
    {"erfc that is only a factor: 1 - erf", HLO_CHLO_ERFC, RULE_CLOSE, erfc_as_erf},
    {"product of a transpose: of what it transposes, where free dimensions keep their order", HLO_DOT_GENERAL, RULE_EXACT, product},
    {0},
};

// --- the walk --------------------------------------------------------------------------------------

static void replaced(Walk *w, ValueId from, ValueId to) {
    if (!walk_uses(w, to))
        walk_set_uses(w, to, walk_uses(w, from)); // made just now
}

static bool all_factors(const Simplify *s, ValueId v) { return walk_uses(&s->w, v) && s->factors[v] == walk_uses(&s->w, v); }

// The op puts a piece into a stack of the loop whose body this is, and whoever reads the stack takes what is put there for a factor.
static bool stacks_factors(const Simplify *s, const HloOp *loop, RegionId body, const HloOp *op) {
    const Hlo *h = s->w.hlo;
    uint32_t k = op->code == HLO_DYNAMIC_UPDATE_SLICE ? hlo_operand(h, op, 0) - h->regions.at[body].args : UINT32_MAX;
    return loop && loop->code == HLO_WHILE && k < h->regions.at[body].nargs && loop_stacks(&s->u, loop, k) == op && all_factors(s, loop->results + k);
}

static void count_factors(Simplify *s, const HloOp *of, RegionId r) {
    const Hlo *h = s->w.hlo;
    const HloRegion *region = &h->regions.at[r];
    for (uint32_t i = region->ops.n; i-- > 0;) { // readers first
        const HloOp *op = hlo_at(h, region->ops.at[i]);
        bool moves = (is_reshape(h, op) || op->code == HLO_DYNAMIC_SLICE) && all_factors(s, op->results), stack = stacks_factors(s, of, r, op);
        for (uint32_t k = 0; k < op->noperands; k++)
            s->factors[hlo_operand(h, op, k)] += op->code == HLO_MULTIPLY || (moves && k == 0) || (stack && k == 1);
        for (uint32_t k = 0; k < op->nregions; k++)
            count_factors(s, op, h->op_regions.at[op->regions + k]);
    }
}

void pass_simplify(Compile *c) {
    pass_dce(c);
    Simplify s;
    walk_init(&s.w, c);
    s.w.replaced = replaced;
    s.factors = ARENA_NEWN(c->scratch, uint32_t, c->hlo->values.n);
    users_make(&s.u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    walk_note_uses(&s.w, s.u.nvalues);
    count_factors(&s, NULL, hlo_main(c->hlo)->body);
    rules_walk(&s.w, simplify_rules);
    pass_cse(c); // transposes that went different ways may have met
}
