// SPDX-License-Identifier: Apache-2.0
// expand_svd.c — singular values by Jacobi's rotations of columns on one side.
//
// Columns are rotated in pairs (expand_turn.c) until they are orthogonal: a v = u s. Below the matrix lies the one that begins as the
// identity and becomes v: rotations take columns of both. It ends when a whole sweep found nothing to rotate, or after 30. The
// lengths of the columns are the singular values; a QR decomposition of the columns in descending order gives u, orthonormal also
// where lengths are zero. A wide matrix is decomposed transposed. Source: Golub and Van Loan, Matrix Computations, 8.6.3.
#include "pass/expand_mats.h"

#include <math.h>

static ValueId squared(Mats *q, ValueId v) { return mats_times(q, mats_size(q, v), mats_size(q, v)); }
static ValueId turned_over(Mats *q, ValueId v) { return mats_conjugate(q, walk_transpose(q->w, v, (int64_t[]){0, 2, 1})); }

// q in the loop: both matrices, of which the first m - n rows are a.
static ValueId of_matrix(Mats *q, ValueId v) { // zero below
    ValueId row = mats_places(q, q->all, 1);
    return mats_where(q, mats_compared(q, CMP_LT, row, walk_number(q->w, mats_type_of(q, row), (double)(q->m - q->n))), v, 0);
}

// carried: the matrices, and rounds since there was something to rotate.
static void svd_step(Mats *q, ValueId step, const ValueId *carried, ValueId *next) {
    Walk *w = q->w;
    Mats s = mats_of(q, q->n, q->n);
    ValueId pair = turn_pairs(&s, step), square = mats_where(&s, pair, mats_number(&s, s.all, s.dtype, 1), 0);
    ValueId x = of_matrix(q, carried[0]), partner = mats_product(q, x, square);
    ValueId own = mats_total(q, HLO_ADD, squared(q, x), 1, s.rows);
    ValueId element = mats_total(q, HLO_ADD, mats_times(q, mats_conjugate(q, x), partner), 1, s.rows);
    ValueId other = mats_total(&s, HLO_ADD, mats_where(&s, pair, mats_wide(&s, own, mats_outer, s.all), 0), 2, s.rows);
    // |element| beside the lengths' product: what is below a quarter of the last bit is nothing
    double eps = q->real == DT_F64 ? 0x1p-52 : 0x1p-23;
    TypeId real = mats_type_of(q, own);
    ValueId bound = mats_times(q, walk_unary(w, HLO_SQRT, own), walk_unary(w, HLO_SQRT, other)), size = mats_size(q, element);
    ValueId some = mats_compared(q, CMP_GT, size, mats_times(q, bound, walk_number(w, real, eps / 4)));
    Turn t = turn_of(&s, pair, own, mats_where(q, some, element, 0));
    next[0] = turn_columns(q, &t, carried[0]);
    ValueId much = mats_compared(q, CMP_GT, size, mats_times(q, bound, walk_number(w, real, eps * sqrt((double)(q->m - q->n)))));
    TypeId count = mats_type_of(q, carried[1]), flags = mats_typed(q, real, DT_I32);
    ValueId any = mats_total(q, HLO_MAXIMUM, mats_where(q, much, walk_number(w, flags, 1), 0), 1, q->one);
    any = mats_total(q, HLO_MAXIMUM, any, 0, count);
    ValueId quiet = walk_binary(w, HLO_ADD, carried[1], walk_number(w, count, 1)), none = walk_number(w, count, 0);
    next[1] = walk_select(w, mats_compared(q, CMP_EQ, any, none), quiet, none);
}

static ValueId svd_more(Mats *q, const ValueId *carried) {
    return mats_compared(q, CMP_LT, carried[1], walk_number(q->w, mats_type_of(q, carried[1]), (double)turn_rounds(q->n)));
}

static ValueId part(Mats *q, ValueId v, int64_t row, int64_t rows) { // some rows
    const HloType t = *hlo_value_type(q->w->hlo, v);
    TypeId type = hlo_type_tensor(q->w->hlo, t.dtype, 3, (int64_t[]){t.dims[0], rows, t.dims[2]});
    return walk_piece(q->w, v, (int64_t[]){0, row, 0}, type);
}

static ValueId padded(Mats *q, ValueId v, int64_t low, int64_t columns) { // rows above, columns behind
    const HloType t = *hlo_value_type(q->w->hlo, v);
    TypeId type = hlo_type_tensor(q->w->hlo, t.dtype, 3, (int64_t[]){t.dims[0], t.dims[1] + low, t.dims[2] + columns});
    ValueId zero = mats_number(q, hlo_type_tensor(q->w->hlo, t.dtype, 0, NULL), t.dtype, 0);
    return walk_pad(q->w, v, zero, (int64_t[]){0, low, 0}, (int64_t[]){0, 0, columns}, (int64_t[]){0, 0, 0}, type);
}

// The orthonormal matrix, with as many columns as said, of which the given ones are multiples.
static ValueId orthonormal(Mats *q, const HloOp *op, ValueId x, int64_t columns) {
    Walk *w = q->w;
    TypeId list = hlo_type_tensor(w->hlo, q->dtype, 2, (int64_t[]){q->b, q->n});
    HloOp qr = mats_call_as(w, op, "Qr", "", 1, &x, 2, (TypeId[]){q->all, list});
    ValueId in[2] = {expand_qr(w, &qr)};
    in[1] = w->repl.at[qr.results + 1];
    ValueId diagonal = mats_real(q, mats_diagonal(q, in[0], 1));
    ValueId zero = walk_number(w, mats_type_of(q, diagonal), 0), negative = mats_compared(q, CMP_LT, diagonal, zero);
    Mats wide = mats_of(q, q->m, columns);
    in[0] = columns > q->n ? padded(q, in[0], 0, columns - q->n) : in[0];
    HloOp product = mats_call_as(w, op, "ProductOfElementaryHouseholderReflectors", "", 2, in, 1, &wide.all);
    ValueId u = expand_qr(w, &product), sign = mats_number(q, q->cols, q->dtype, 1);
    sign = walk_select(w, negative, mats_number(q, q->cols, q->dtype, -1), sign);
    if (columns > q->n) {
        TypeId type = hlo_type_tensor(w->hlo, q->dtype, 2, (int64_t[]){q->b, columns});
        ValueId one = mats_number(q, hlo_type_tensor(w->hlo, q->dtype, 0, NULL), q->dtype, 1);
        sign = walk_pad(w, sign, one, (int64_t[]){0, 0}, (int64_t[]){0, columns - q->n}, (int64_t[]){0, 0}, type);
    }
    return mats_times(q, u, mats_wide(q, sign, mats_outer, wide.all));
}

static MatsSvd svd_tall(Mats *q, const HloOp *op, ValueId a, int mode) { // m >= n
    Walk *w = q->w;
    Mats s = mats_of(q, q->n, q->n), stack = mats_of(q, q->m + q->n, q->n);
    stack.k = TURN_SWEEPS * turn_rounds(q->n);
    ValueId none = mats_number(q, hlo_type_tensor(w->hlo, q->dtype, 0, NULL), q->dtype, 0), x = padded(q, mats_identity(&s), q->m, 0);
    x = walk_binary(w, HLO_ADD, x, walk_pad(w, a, none, (int64_t[]){0, 0, 0}, (int64_t[]){0, q->n, 0}, (int64_t[]){0, 0, 0}, stack.all));
    TypeId count = hlo_type_tensor(w->hlo, DT_I32, 0, NULL);
    x = mats_steps(&stack, false, svd_more, svd_step, 2, (ValueId[]){x, walk_number(w, count, 0)});
    ValueId values = walk_unary(w, HLO_SQRT, mats_total(&stack, HLO_ADD, squared(&stack, of_matrix(&stack, x)), 1, s.cols));
    values = walk_unary(w, HLO_NEGATE, values);
    turn_sort(&s, &stack, &x, &values);
    MatsSvd made = {.values = walk_unary(w, HLO_NEGATE, values)};
    if (mode == 'N')
        return made;
    made.left = orthonormal(q, op, part(q, x, 0, q->m), mode == 'A' ? q->m : q->n);
    made.right = turned_over(&s, part(q, x, q->m, q->n));
    return made;
}

// What the call's results are: one form for each mode.
static void svd_check(Mats *q, const HloOp *op, int mode, int64_t k) {
    int64_t rows[4] = {0, k, q->m, mode == 'A' ? q->n : k}, columns[4] = {0, 1, mode == 'A' ? q->m : k, q->n};
    bool fits = (mode == 'A' || mode == 'S' || mode == 'N') && k > 0;
    for (uint32_t i = 1; i < 4; i++) {
        HloType t = *hlo_value_type(q->w->hlo, op->results + i);
        fits = fits && hlo_is_plain(&t) && t.dtype == (i == 1 ? q->real : q->dtype) && t.rank >= 1;
        if (i == 1 || mode != 'N')
            fits = fits && t.elems == q->b * rows[i] * columns[i] && (i == 1 || (t.rank >= 2 && t.dims[t.rank - 1] == columns[i]));
    }
    if (!fits)
        mats_fail(q, op);
}

MatsSvd mats_svd(Mats *q, const HloOp *op, int mode) {
    Walk *w = q->w;
    Hlo *h = w->hlo;
    bool tall = q->m >= q->n;
    svd_check(q, op, mode, tall ? q->n : q->m);
    ValueId scale, finite, a = mats_scaled(q, walk_shape(w, hlo_operand(h, op, 0), q->all), &scale, &finite);
    Mats turned = mats_of(q, q->n, q->m);
    MatsSvd made = svd_tall(tall ? q : &turned, op, tall ? a : turned_over(q, a), mode);
    if (!tall && mode != 'N') {
        ValueId left = turned_over(q, made.right);
        made.right = turned_over(q, made.left), made.left = left;
    }
    made.finite = finite;
    made.values = mats_times(q, made.values, mats_wide(q, scale, mats_at, mats_type_of(q, made.values)));
    ValueId *const results[] = {&made.values, &made.left, &made.right};
    for (uint32_t i = 0; i < 3; i++)
        if (i && mode == 'N') // nobody reads them
            *results[i] = mats_number(q, mats_type_of(q, op->results + i + 1), q->dtype, 0);
        else
            *results[i] = mats_where(q, mats_wide(q, finite, mats_at, mats_type_of(q, *results[i])), *results[i], NAN);
    return made;
}
