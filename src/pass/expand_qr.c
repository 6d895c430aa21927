// SPDX-License-Identifier: Apache-2.0
// expand_qr.c — XLA's calls for QR decompositions, written as loops over columns.
//
//   @Qr(a) -> packed, taus                              a = H(0) H(1) … R with H(j) = I - tau v v^H, as LAPACK's geqrf has it
//   @ProductOfElementaryHouseholderReflectors(a, taus)  their product, as far as it has columns (orgqr, ungqr)
//
// TensorFlow's qr, solve, inverse, determinant and lstsq are made of them, and initial weights of recurrent layers. A step takes one
// column; it is chosen by a mask, so that all steps are the same program on whole matrices. Batches are one dimension: [b, m, n].
#include "pass/expand.h"

#include <string.h>

#define QR "Qr"
#define PRODUCT "ProductOfElementaryHouseholderReflectors"

typedef struct Qr {
    Walk *w;
    int dtype, real; // of the elements, and of their absolute values
    int64_t b, m, n, k; // matrices, rows, columns, reflections
    TypeId all, rows, one, cols; // [b, m, n], [b, m], [b], [b, n]
} Qr;

static const int64_t AT[3] = {0, 1, 2}, OUTER[2] = {0, 2};

static TypeId typed(Qr *q, TypeId shape, int dtype) {
    HloType t = *hlo_type(q->w->hlo, shape);
    return hlo_type_tensor(q->w->hlo, dtype, t.rank, t.dims);
}

static TypeId type_of(const Qr *q, ValueId v) { return q->w->hlo->values.at[v].type; }

static ValueId number(Qr *q, TypeId shape, int dtype, double v) {
    if (!dtype_is_complex(dtype))
        return walk_number(q->w, typed(q, shape, dtype), v);
    return walk_convert(q->w, walk_number(q->w, typed(q, shape, q->real), v), dtype);
}

static ValueId wide(Qr *q, ValueId v, const int64_t *dims, TypeId shape) {
    const HloType *t = hlo_value_type(q->w->hlo, v);
    return walk_broadcast(q->w, v, dims, t->rank, typed(q, shape, t->dtype));
}

static ValueId where(Qr *q, ValueId p, ValueId v, double otherwise) {
    return walk_select(q->w, p, v, number(q, type_of(q, v), hlo_value_type(q->w->hlo, v)->dtype, otherwise));
}

static ValueId total(Qr *q, HloOpcode code, ValueId v, int64_t over, TypeId shape) {
    int dtype = hlo_value_type(q->w->hlo, v)->dtype;
    return walk_reduce(q->w, code, v, number(q, hlo_type_tensor(q->w->hlo, dtype, 0, NULL), dtype, 0), &over, 1, typed(q, shape, dtype));
}

// Places along a dimension of the shape, compared with the step's.
static ValueId along(Qr *q, int64_t direction, TypeId shape, int64_t dim, ValueId step) {
    TypeId counts = typed(q, shape, DT_I32);
    return walk_compare(q->w, direction, CMPT_NOTYPE, walk_iota(q->w, counts, dim), walk_broadcast(q->w, step, NULL, 0, counts));
}

static ValueId conjugate(Qr *q, ValueId v) {
    if (!dtype_is_complex(q->dtype))
        return v;
    TypeId part = typed(q, type_of(q, v), q->real);
    ValueId re = walk_op(q->w, HLO_REAL, 1, &v, part), im = walk_op(q->w, HLO_IMAG, 1, &v, part);
    return walk_op(q->w, HLO_COMPLEX, 2, (ValueId[]){re, walk_unary(q->w, HLO_NEGATE, im)}, type_of(q, v));
}

// The step's column of matrices, [b, m].
static ValueId column(Qr *q, ValueId a, ValueId step) {
    return total(q, HLO_ADD, where(q, along(q, CMP_EQ, q->all, 2, step), a, 0), 2, q->rows);
}

// a - factor v (v^H a)
static ValueId reflected(Qr *q, ValueId a, ValueId v, ValueId factor) {
    ValueId w = total(q, HLO_ADD, walk_binary(q->w, HLO_MULTIPLY, wide(q, conjugate(q, v), AT, q->all), a), 1, q->cols);
    ValueId scaled = walk_binary(q->w, HLO_MULTIPLY, wide(q, factor, AT, q->rows), v);
    ValueId outer = walk_binary(q->w, HLO_MULTIPLY, wide(q, scaled, AT, q->all), wide(q, w, OUTER, q->all));
    return walk_binary(q->w, HLO_SUBTRACT, a, outer);
}

// v of column x: 1 at the step's row, `below` under it.
static ValueId reflector(Qr *q, ValueId below, ValueId step) {
    ValueId here = along(q, CMP_EQ, q->rows, 1, step);
    return walk_select(q->w, here, number(q, q->rows, q->dtype, 1), where(q, along(q, CMP_GT, q->rows, 1, step), below, 0));
}

typedef struct House {
    ValueId v, tau, beta; // [b, m], [b], [b]
} House;

// Of column x [b, m] from the step's row on; where nothing is below it the matrix stays (tau 0). Lengths are taken of elements
// divided by the largest, so that squares neither overflow nor vanish.
static House house(Qr *q, ValueId x, ValueId step) {
    Walk *w = q->w;
    TypeId one = typed(q, q->one, q->real);
    ValueId alpha = total(q, HLO_ADD, where(q, along(q, CMP_EQ, q->rows, 1, step), x, 0), 1, q->one);
    ValueId size = walk_op(w, HLO_ABS, 1, &x, typed(q, q->rows, q->real));
    ValueId from = where(q, along(q, CMP_GE, q->rows, 1, step), size, 0), below = where(q, along(q, CMP_GT, q->rows, 1, step), size, 0);
    ValueId largest = total(q, HLO_MAXIMUM, from, 1, q->one), zero = walk_number(w, one, 0);
    ValueId finite = walk_op(w, HLO_IS_FINITE, 1, &largest, typed(q, q->one, DT_I1));
    ValueId usual = walk_binary(w, HLO_AND, walk_compare(w, CMP_GT, CMPT_NOTYPE, largest, zero), finite);
    ValueId scale = where(q, usual, largest, 1), part = walk_binary(w, HLO_DIVIDE, from, wide(q, scale, AT, q->rows));
    ValueId square = total(q, HLO_ADD, walk_binary(w, HLO_MULTIPLY, part, part), 1, q->one);
    ValueId length = walk_binary(w, HLO_MULTIPLY, walk_unary(w, HLO_SQRT, square), scale);
    ValueId re = alpha, other = total(q, HLO_MAXIMUM, below, 1, q->one);
    if (dtype_is_complex(q->dtype)) {
        re = walk_op(w, HLO_REAL, 1, &alpha, one);
        other = walk_binary(w, HLO_MAXIMUM, other, walk_unary(w, HLO_ABS, walk_op(w, HLO_IMAG, 1, &alpha, one)));
    }
    ValueId stays = walk_compare(w, CMP_EQ, CMPT_NOTYPE, other, zero);
    ValueId turned = walk_select(w, walk_compare(w, CMP_GE, CMPT_NOTYPE, re, zero), walk_unary(w, HLO_NEGATE, length), length);
    ValueId beta = walk_convert(w, walk_select(w, stays, re, turned), q->dtype);
    ValueId none = number(q, q->one, q->dtype, 0), unit = number(q, q->one, q->dtype, 1);
    ValueId tau = walk_binary(w, HLO_DIVIDE, walk_binary(w, HLO_SUBTRACT, beta, alpha), walk_select(w, stays, unit, beta));
    ValueId by = walk_select(w, stays, unit, walk_binary(w, HLO_SUBTRACT, alpha, beta));
    ValueId v = reflector(q, walk_binary(w, HLO_DIVIDE, x, wide(q, by, AT, q->rows)), step);
    return (House){v, walk_select(w, stays, none, tau), beta};
}

// --- the loops -----------------------------------------------------------------------------------------

typedef void Step(Qr *q, ValueId step, const ValueId *carried, ValueId *next);

// Steps 0 … k-1 or back, over carried values; the first result of the loop that carries them.
static ValueId steps(Qr *q, bool back, Step *body, uint32_t n, const ValueId *init) {
    Hlo *h = q->w->hlo;
    TypeId counter = hlo_type_tensor(h, DT_I32, 0, NULL), types[4] = {counter};
    ValueId in[4] = {walk_number(q->w, counter, 0)}, out[4];
    for (uint32_t i = 0; i < n; i++)
        in[1 + i] = init[i], types[1 + i] = type_of(q, init[i]);
    OpId loop = hlo_op(h, HLO_WHILE, q->w->loc, n + 1, in, n + 1, types);
    RegionId cond = hlo_op_add_region(h, loop, n + 1, types), inner = hlo_op_add_region(h, loop, n + 1, types);
    walk_grow(q->w);
    OpList outer = expand_list_begin(q->w);
    ValueId last = walk_number(q->w, counter, (double)q->k);
    ValueId go = walk_compare(q->w, CMP_LT, CMPT_NOTYPE, h->regions.at[cond].args, last);
    expand_list_end(q->w, cond, outer, &go, 1);
    outer = expand_list_begin(q->w);
    ValueId args = h->regions.at[inner].args, step = args, carried[3];
    for (uint32_t i = 0; i < n; i++)
        carried[i] = args + 1 + i;
    if (back)
        step = walk_binary(q->w, HLO_SUBTRACT, walk_number(q->w, counter, (double)(q->k - 1)), args);
    body(q, step, carried, out + 1);
    out[0] = walk_binary(q->w, HLO_ADD, args, walk_number(q->w, counter, 1));
    expand_list_end(q->w, inner, outer, out, n + 1);
    return walk_push(q->w, loop) + 1;
}

// carried: the matrices, R above what is done and reflectors below; taus [b, k].
static void qr_step(Qr *q, ValueId step, const ValueId *carried, ValueId *next) {
    Walk *w = q->w;
    ValueId a = carried[0];
    House r = house(q, column(q, a, step), step);
    ValueId turned = reflected(q, a, r.v, conjugate(q, r.tau));
    ValueId done = walk_select(w, along(q, CMP_EQ, q->all, 1, step), wide(q, r.beta, AT, q->all), a);
    done = walk_select(w, along(q, CMP_GT, q->all, 1, step), wide(q, r.v, AT, q->all), done);
    next[0] = walk_select(w, along(q, CMP_EQ, q->all, 2, step), done, a);
    next[0] = walk_select(w, along(q, CMP_GT, q->all, 2, step), turned, next[0]);
    TypeId taus = type_of(q, carried[1]);
    next[1] = walk_select(w, along(q, CMP_EQ, taus, 1, step), wide(q, r.tau, AT, taus), carried[1]);
}

// carried: the product, the reflectors, taus. H(j) goes to the product's left, the last first.
static void product_step(Qr *q, ValueId step, const ValueId *carried, ValueId *next) {
    ValueId v = reflector(q, column(q, carried[1], step), step);
    ValueId tau = total(q, HLO_ADD, where(q, along(q, CMP_EQ, type_of(q, carried[2]), 1, step), carried[2], 0), 1, q->one);
    next[0] = reflected(q, carried[0], v, tau);
    next[1] = carried[1], next[2] = carried[2];
}

static ValueId identity(Qr *q) {
    TypeId counts = typed(q, q->all, DT_I32);
    ValueId same = walk_compare(q->w, CMP_EQ, CMPT_NOTYPE, walk_iota(q->w, counts, 1), walk_iota(q->w, counts, 2));
    return where(q, same, number(q, q->all, q->dtype, 1), 0);
}

// --- which ---------------------------------------------------------------------------------------------

static bool calls(const HloOp *op, const char *target, uint32_t operands, uint32_t results) {
    return op->code == HLO_CUSTOM_CALL && op->noperands == operands && op->nresults == results &&
           !strcmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), target);
}

bool expand_is_qr(const HloOp *op) { return calls(op, QR, 1, 2) || calls(op, PRODUCT, 2, 1); }

// The shapes of a call; an error where they do not fit each other.
static void qr_read(Qr *q, const HloOp *op, ValueId taus, ValueId result) {
    Hlo *h = q->w->hlo;
    HloType a = *hlo_value_type(h, hlo_operand(h, op, 0)), t = *hlo_value_type(h, taus), r = *hlo_value_type(h, result);
    bool fits = a.rank >= 2 && t.rank == a.rank - 1 && t.dtype == a.dtype && type_of(q, result) == type_of(q, hlo_operand(h, op, 0)) &&
                hlo_is_plain(&a) && (dtype_is_float(a.dtype) || dtype_is_complex(a.dtype));
    q->b = 1;
    for (int d = 0; fits && d < a.rank - 2; d++)
        fits = t.dims[d] == a.dims[d], q->b *= a.dims[d];
    if (!fits)
        hlo_fail(h, q->w->id, OTRN_VERIFY, "@%s of shapes that do not fit each other", hlo_attr_str(op, AK_CALL_TARGET_NAME));
    q->dtype = a.dtype, q->real = a.dtype == DT_C64 ? DT_F32 : a.dtype == DT_C128 ? DT_F64 : a.dtype;
    q->m = a.dims[a.rank - 2], q->n = a.dims[a.rank - 1], q->k = t.dims[t.rank - 1];
    if (q->k > q->m || q->k > q->n)
        hlo_fail(h, q->w->id, OTRN_VERIFY, "%lld reflections of matrices of %lld x %lld", (long long)q->k, (long long)r.dims[r.rank - 2],
                 (long long)q->n);
    q->all = hlo_type_tensor(h, q->dtype, 3, (int64_t[]){q->b, q->m, q->n});
    q->rows = hlo_type_tensor(h, q->dtype, 2, (int64_t[]){q->b, q->m});
    q->cols = hlo_type_tensor(h, q->dtype, 2, (int64_t[]){q->b, q->n});
    q->one = hlo_type_tensor(h, q->dtype, 1, &q->b);
}

ValueId expand_qr(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    if (!expand_is_qr(op))
        return 0;
    bool product = op->nresults == 1;
    Qr q = {.w = w};
    qr_read(&q, op, product ? hlo_operand(h, op, 1) : op->results + 1, op->results);
    ValueId a = walk_shape(w, hlo_operand(h, op, 0), q.all);
    TypeId list = hlo_type_tensor(h, q.dtype, 2, (int64_t[]){q.b, q.k});
    ValueId out;
    if (product)
        out = steps(&q, true, product_step, 3, (ValueId[]){identity(&q), a, walk_shape(w, hlo_operand(h, op, 1), list)});
    else
        out = steps(&q, false, qr_step, 2, (ValueId[]){a, number(&q, list, q.dtype, 0)});
    if (!product)
        walk_replace(w, op->results + 1, walk_shape(w, out + 1, type_of(&q, op->results + 1)));
    return walk_shape(w, out, type_of(&q, op->results));
}
