// SPDX-License-Identifier: Apache-2.0
// expand_eigh.c — XLA's call for eigenvalues of symmetric (Hermitian) matrices, by Jacobi's rotations.
//
//   @Eigh(a) -> v, w      a v = v w; backend_config says whether the lower triangle counts and whether w ascends ("1,1,100,1e-6")
//
// A round rotates disjoint pairs of columns at once, so that the element of each pair becomes zero: with an odd number m of columns i and j
// are a pair in round r when i + j = r modulo m, and one is alone; a further column is the partner of that one. After m rounds
// each pair has met. Exchanging partners is a product with the pairs' matrix of zeros and ones, which is exact. It ends when
// what is off the diagonal has vanished beside the whole, as its number (30 sweeps) does in the worst case.
// Source: Golub and Van Loan, Matrix Computations, 8.5.
#include "pass/expand_mats.h"

#include <math.h>
#include <string.h>

enum { SWEEPS = 30 };

static ValueId both(Mats *q, ValueId x, ValueId y) { return walk_binary(q->w, HLO_AND, x, y); }
static ValueId times(Mats *q, ValueId x, ValueId y) { return walk_binary(q->w, HLO_MULTIPLY, x, y); }
static ValueId minus(Mats *q, ValueId x, ValueId y) { return walk_binary(q->w, HLO_SUBTRACT, x, y); }

static ValueId compared(Mats *q, int64_t direction, ValueId x, ValueId y) { return walk_compare(q->w, direction, CMPT_NOTYPE, x, y); }

static ValueId real_part(Mats *q, ValueId v) {
    return dtype_is_complex(q->dtype) ? walk_op(q->w, HLO_REAL, 1, &v, mats_typed(q, mats_type_of(q, v), q->real)) : v;
}

static ValueId size_of(Mats *q, ValueId v) { return walk_op(q->w, HLO_ABS, 1, &v, mats_typed(q, mats_type_of(q, v), q->real)); }

static ValueId as_element(Mats *q, ValueId real) { return walk_convert(q->w, real, q->dtype); }

static int64_t odd(const Mats *q) { return q->n < 2 ? 1 : q->n - !(q->n % 2); } // m of the pairs

// Who is whose partner in a round, [b, n, n] of flags.
static ValueId pairs(Mats *q, ValueId step) {
    Walk *w = q->w;
    ValueId i = mats_places(q, q->all, 1), j = mats_places(q, q->all, 2);
    TypeId counts = mats_type_of(q, i), scalar = mats_type_of(q, step);
    ValueId m = walk_number(w, counts, (double)odd(q)), last = walk_number(w, counts, (double)(q->n - 1));
    ValueId round = walk_binary(w, HLO_REMAINDER, step, walk_number(w, scalar, (double)odd(q)));
    round = walk_broadcast(w, round, NULL, 0, counts);
    ValueId lower = walk_binary(w, HLO_MINIMUM, i, j), upper = walk_binary(w, HLO_MAXIMUM, i, j);
    ValueId met = walk_binary(w, HLO_ADD, lower, upper);
    if (q->n % 2 == 0) // the further column meets who would meet itself
        met = walk_select(w, compared(q, CMP_EQ, upper, last), walk_binary(w, HLO_ADD, lower, lower), met);
    return both(q, compared(q, CMP_EQ, walk_binary(w, HLO_REMAINDER, met, m), round), compared(q, CMP_NE, i, j));
}

static ValueId product(Mats *q, ValueId x, ValueId y) {
    static const int64_t batch = 0, inner = 2, outer = 1;
    return walk_push(q->w, hlo_op_dot(q->w->hlo, q->w->loc, x, y, (DotPairs){1, 1, &batch, &batch, &inner, &outer}, q->all, NULL));
}

typedef struct Turn { // of each column, [b, n]
    ValueId cosine, sine, phase, square; // phases make a pair's element real; square is the pairs' matrix of zeros and ones
} Turn;

// Columns (dims: mats_outer) or rows (mats_at) against their partners.
static ValueId turned(Mats *q, const Turn *t, ValueId x, bool columns) {
    const int64_t *dims = columns ? mats_outer : mats_at;
    ValueId phase = columns ? t->phase : mats_conjugate(q, t->phase);
    ValueId own = times(q, x, mats_wide(q, phase, dims, q->all));
    ValueId other = columns ? product(q, own, t->square) : product(q, t->square, own);
    return walk_binary(q->w, HLO_ADD, times(q, own, mats_wide(q, t->cosine, dims, q->all)), times(q, other, mats_wide(q, t->sine, dims, q->all)));
}

// carried: the matrices, the product of the rotations, and what off-diagonal elements may be left (real, [b]).
static void eigh_step(Mats *q, ValueId step, const ValueId *carried, ValueId *next) {
    Walk *w = q->w;
    TypeId real = mats_typed(q, q->rows, q->real);
    ValueId a = carried[0], pair = pairs(q, step), i = mats_places(q, q->all, 1), j = mats_places(q, q->all, 2), same = compared(q, CMP_EQ, i, j);
    ValueId own = real_part(q, mats_total(q, HLO_ADD, mats_where(q, same, a, 0), 2, q->rows));
    ValueId other = mats_total(q, HLO_ADD, mats_where(q, pair, mats_wide(q, own, mats_outer, q->all), 0), 2, q->rows);
    ValueId element = mats_total(q, HLO_ADD, mats_where(q, pair, a, 0), 2, q->rows), size = size_of(q, element);
    // 1 of a pair's first, -1 of its second
    ValueId up = mats_number(q, q->all, q->real, 1);
    up = walk_select(w, compared(q, CMP_LT, i, j), up, mats_number(q, q->all, q->real, -1));
    ValueId side = mats_total(q, HLO_ADD, mats_where(q, pair, up, 0), 2, q->rows);
    ValueId zero = walk_number(w, real, 0), one = walk_number(w, real, 1), none = compared(q, CMP_EQ, size, zero);
    ValueId safe = walk_select(w, none, one, size);
    ValueId tau = walk_binary(w, HLO_DIVIDE, times(q, side, minus(q, other, own)), walk_binary(w, HLO_ADD, safe, safe));
    ValueId root = walk_unary(w, HLO_SQRT, walk_binary(w, HLO_ADD, one, times(q, tau, tau)));
    ValueId sign = walk_select(w, compared(q, CMP_GE, tau, zero), one, walk_number(w, real, -1));
    ValueId tangent = walk_binary(w, HLO_DIVIDE, sign, walk_binary(w, HLO_ADD, walk_unary(w, HLO_ABS, tau), root));
    tangent = walk_select(w, none, zero, tangent);
    ValueId cosine = walk_binary(w, HLO_DIVIDE, one, walk_unary(w, HLO_SQRT, walk_binary(w, HLO_ADD, one, times(q, tangent, tangent))));
    ValueId sine = walk_unary(w, HLO_NEGATE, times(q, side, times(q, tangent, cosine)));
    ValueId first = walk_binary(w, HLO_OR, none, compared(q, CMP_GE, side, zero));
    ValueId phase = walk_binary(w, HLO_DIVIDE, element, as_element(q, safe));
    phase = walk_select(w, first, mats_number(q, q->rows, q->dtype, 1), phase);
    Turn t = {as_element(q, cosine), as_element(q, sine), phase, mats_where(q, pair, mats_number(q, q->all, q->dtype, 1), 0)};
    ValueId made = mats_where(q, pair, mats_number(q, q->all, q->dtype, 0), 0);
    made = walk_select(w, pair, made, turned(q, &t, turned(q, &t, a, true), false));
    ValueId diagonal = minus(q, own, times(q, side, times(q, tangent, size)));
    next[0] = walk_select(w, same, mats_wide(q, as_element(q, diagonal), mats_at, q->all), made);
    next[1] = turned(q, &t, carried[1], true);
    next[2] = carried[2];
}

static ValueId squares(Mats *q, ValueId v) { // their sum, [b]
    ValueId size = size_of(q, v);
    return mats_total(q, HLO_ADD, mats_total(q, HLO_ADD, times(q, size, size), 2, q->rows), 1, q->one);
}

static ValueId eigh_more(Mats *q, const ValueId *carried) {
    ValueId off = compared(q, CMP_NE, mats_places(q, q->all, 1), mats_places(q, q->all, 2));
    ValueId left = minus(q, squares(q, mats_where(q, off, carried[0], 0)), carried[2]);
    TypeId scalar = hlo_type_tensor(q->w->hlo, q->real, 0, NULL);
    ValueId zero = walk_number(q->w, scalar, 0);
    return compared(q, CMP_GT, mats_total(q, HLO_MAXIMUM, left, 0, scalar), zero);
}

// Its triangle and that one's mirror image, with a real diagonal.
static ValueId hermitian(Mats *q, ValueId a, bool lower) {
    static const int64_t perm[3] = {0, 2, 1};
    ValueId i = mats_places(q, q->all, 1), j = mats_places(q, q->all, 2), mirror = mats_conjugate(q, walk_transpose(q->w, a, perm));
    ValueId chosen = walk_select(q->w, compared(q, lower ? CMP_GT : CMP_LT, i, j), a, mirror);
    return walk_select(q->w, compared(q, CMP_EQ, i, j), as_element(q, real_part(q, a)), chosen);
}

// Eigenvalues [b, n] in ascending order, and the columns with them: each goes to the place that as many precede.
static void sort(Mats *q, ValueId *v, ValueId *values) {
    Walk *w = q->w;
    ValueId i = mats_places(q, q->all, 1), j = mats_places(q, q->all, 2), mine = mats_wide(q, *values, mats_at, q->all);
    ValueId others = mats_wide(q, *values, mats_outer, q->all);
    ValueId before = both(q, compared(q, CMP_EQ, others, mine), compared(q, CMP_LT, j, i));
    before = walk_binary(w, HLO_OR, before, compared(q, CMP_LT, others, mine));
    TypeId counts = mats_type_of(q, i);
    ValueId place = mats_total(q, HLO_ADD, mats_where(q, before, walk_number(w, counts, 1), 0), 2, q->rows);
    ValueId goes = compared(q, CMP_EQ, mats_wide(q, place, mats_at, counts), j); // [from, to]
    *v = product(q, *v, mats_where(q, goes, mats_number(q, q->all, q->dtype, 1), 0));
    *values = mats_total(q, HLO_ADD, mats_where(q, goes, mine, 0), 1, q->cols);
}

static void eigh_check(Mats *q, const HloOp *op) {
    HloType v = *hlo_value_type(q->w->hlo, op->results), t = *hlo_value_type(q->w->hlo, op->results + 1);
    if (q->m != q->n || mats_type_of(q, op->results) != mats_type_of(q, hlo_operand(q->w->hlo, op, 0)) || !hlo_is_plain(&t) ||
        t.rank != v.rank - 1 || t.dtype != q->real || t.elems != q->b * q->n)
        mats_fail(q, op);
}

ValueId expand_eigh(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    if (mats_call(op) != MATS_EIGH)
        return 0;
    const char *config = hlo_attr(op, AK_BACKEND_CONFIG) && hlo_attr(op, AK_BACKEND_CONFIG)->kind == HA_STR ? hlo_attr_str(op, AK_BACKEND_CONFIG) : "1,1";
    bool lower = config[0] != '0', ascends = strlen(config) < 3 || config[2] != '0';
    Mats q = {.w = w};
    mats_read(&q, op);
    eigh_check(&q, op);
    q.k = SWEEPS * odd(&q);
    ValueId a = hermitian(&q, walk_shape(w, hlo_operand(h, op, 0), q.all), lower), size = size_of(&q, a);
    TypeId one = mats_typed(&q, q.one, q.real);
    ValueId largest = mats_total(&q, HLO_MAXIMUM, mats_total(&q, HLO_MAXIMUM, size, 2, q.rows), 1, q.one);
    ValueId finite = walk_op(w, HLO_IS_FINITE, 1, &largest, mats_typed(&q, q.one, DT_I1)), zero = walk_number(w, one, 0);
    ValueId usual = both(&q, finite, compared(&q, CMP_GT, largest, zero));
    ValueId scale = mats_where(&q, usual, largest, 1), wide = mats_wide(&q, as_element(&q, scale), mats_at, q.all);
    a = mats_where(&q, mats_wide(&q, finite, mats_at, q.all), walk_binary(w, HLO_DIVIDE, a, wide), 0);
    double eps = q.real == DT_F64 ? 0x1p-52 : 0x1p-23;
    ValueId goal = times(&q, squares(&q, a), walk_number(w, one, eps * eps));
    ValueId out = mats_steps(&q, false, eigh_more, eigh_step, 3, (ValueId[]){a, mats_identity(&q), goal}), v = out + 1;
    ValueId same = compared(&q, CMP_EQ, mats_places(&q, q.all, 1), mats_places(&q, q.all, 2));
    ValueId values = real_part(&q, mats_total(&q, HLO_ADD, mats_where(&q, same, out, 0), 2, q.rows));
    values = times(&q, values, mats_wide(&q, scale, mats_at, q.rows));
    if (ascends)
        sort(&q, &v, &values);
    values = mats_where(&q, mats_wide(&q, finite, mats_at, q.rows), values, NAN);
    v = mats_where(&q, mats_wide(&q, finite, mats_at, q.all), v, NAN);
    walk_replace(w, op->results + 1, walk_shape(w, values, mats_type_of(&q, op->results + 1)));
    return walk_shape(w, v, mats_type_of(&q, op->results));
}
