// SPDX-License-Identifier: Apache-2.0
// eval_lin.c — cholesky and triangular_solve on batches of matrices, in double or double complex,
// rounded once per result element.
#include <complex.h>
#include <math.h>

#include "hlo/eval_in.h"

typedef double complex cplx;

static cplx mul(cplx a, cplx b) { // the plain product: real inputs stay real, infinities included
    double ar = creal(a), ai = cimag(a), br = creal(b), bi = cimag(b);
    if (ai == 0 && bi == 0)
        return CMPLX(ar * br, 0);
    return CMPLX(ar * br - ai * bi, ar * bi + ai * br);
}

static cplx quotient(cplx a, cplx b) {
    return cimag(a) == 0 && cimag(b) == 0 ? CMPLX(creal(a) / creal(b), 0) : a / b;
}

static cplx load(int dtype, const uint8_t *p, int64_t i) {
    double x[2] = {0, 0};
    eval_load(dtype, p + i * (int64_t)dtype_bytes(dtype), 0, 1, x);
    return CMPLX(x[0], x[1]);
}

static void store(int dtype, uint8_t *p, int64_t i, cplx v) {
    double x[2] = {creal(v), cimag(v)};
    eval_store_computed(dtype, p + i * (int64_t)dtype_bytes(dtype), 1, x);
}

static void need_square(Eval *e, OpId id, const HloType *t) {
    eval_need(e, id, t->rank >= 2 && t->dims[t->rank - 1] == t->dims[t->rank - 2],
              "matrices must be square");
    eval_need(e, id, dtype_is_float(t->dtype) || dtype_is_complex(t->dtype),
              "float or complex only");
}

// --- cholesky
// ------------------------------------------------------------------------------------------

// Lower factor L of a Hermitian matrix: reads one triangle of a, row by row. A matrix that is not
// positive definite gives NaN.
static void cholesky_lower(int64_t n, const cplx *a, cplx *l) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            cplx s = a[i * n + j];
            for (int64_t k = 0; k < j; k++)
                s -= mul(l[i * n + k], conj(l[j * n + k]));
            l[i * n + j] = i == j ? sqrt(creal(s)) : quotient(s, l[j * n + j]);
        }
}

void eval_cholesky(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]);
    eval_need(e, id, in[0].type == out[0].type, "operand and result must have one type");
    need_square(e, id, t);
    bool lower = hlo_int(eval_op_at(e, id), AK_LOWER, 0);
    int64_t n = t->dims[t->rank - 1], size = n * n;
    out[0].data = eval_new(e, out[0].type);
    Arena *mem = eval_open(e);
    cplx *a = ARENA_NEWN(mem, cplx, (size_t)size), *l = ARENA_NEWN(mem, cplx, (size_t)size);
    for (int64_t at = 0; n && at < t->elems; at += size) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) // the upper triangle holds the conjugate
                a[i * n + j] = lower ? load(t->dtype, in[0].data, at + i * n + j)
                                     : conj(load(t->dtype, in[0].data, at + j * n + i));
        cholesky_lower(n, a, l);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                bool kept = lower ? j <= i : i <= j;
                cplx v = !kept ? 0 : lower ? l[i * n + j] : conj(l[j * n + i]);
                store(t->dtype, out[0].data, at + i * n + j, v);
            }
    }
    eval_close(e);
}

// --- triangular_solve
// ------------------------------------------------------------------------------------

typedef struct Tri { // op(a) of one matrix, as a function of its indices
    int dtype;
    const uint8_t *a;
    int64_t at, n;
    bool lower; // of op(a)
    bool flip, conjugate, unit;
} Tri;

static cplx tri_at(const Tri *t, int64_t i, int64_t j) {
    if (t->unit && i == j)
        return 1;
    cplx v = load(t->dtype, t->a, t->at + (t->flip ? j * t->n + i : i * t->n + j));
    return t->conjugate ? conj(v) : v;
}

// Solves op(a) x = b (left) for one column, or x op(a) = b for one row: both are substitution over
// n unknowns; `x` holds b and becomes the solution. On the right op(a) acts transposed.
static void substitute(const Tri *t, bool left, cplx *x) {
    bool forward = t->lower == left;
    for (int64_t s = 0; s < t->n; s++) {
        int64_t i = forward ? s : t->n - 1 - s;
        cplx v = x[i];
        for (int64_t r = 0; r < s; r++) {
            int64_t j = forward ? r : t->n - 1 - r;
            v -= mul(left ? tri_at(t, i, j) : tri_at(t, j, i), x[j]);
        }
        x[i] = quotient(v, tri_at(t, i, i));
    }
}

void eval_triangular_solve(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *a = eval_type(e, in[0]), *b = eval_type(e, in[1]);
    need_square(e, id, a);
    bool left = hlo_int(op, AK_LEFT_SIDE, 0), lower = hlo_int(op, AK_LOWER, 0);
    int64_t tr = hlo_int(op, AK_TRANSPOSE_A, TRANSPOSE_NO);
    eval_need(e, id, tr >= TRANSPOSE_NO && tr <= TRANSPOSE_ADJOINT, "transpose_a is invalid");
    bool ok = in[1].type == out[0].type && a->dtype == b->dtype && a->rank == b->rank;
    for (int i = 0; ok && i < a->rank - 2; i++)
        ok = a->dims[i] == b->dims[i];
    int64_t n = a->dims[a->rank - 1];
    eval_need(e, id, ok && b->dims[b->rank - (left ? 2 : 1)] == n, "shapes of a and b do not fit");
    int64_t rows = b->dims[b->rank - 2], cols = b->dims[b->rank - 1];
    int64_t lines = left ? cols : rows, step = left ? cols : 1, next = left ? 1 : cols;
    out[0].data = eval_new(e, out[0].type);
    Arena *mem = eval_open(e);
    cplx *x = ARENA_NEWN(mem, cplx, (size_t)n);
    for (int64_t m = 0; b->elems && m < b->elems / (rows * cols); m++) {
        Tri t = {.dtype = a->dtype,
                 .a = in[0].data,
                 .at = m * n * n,
                 .n = n,
                 .lower = lower == (tr == TRANSPOSE_NO),
                 .flip = tr != TRANSPOSE_NO,
                 .conjugate = tr == TRANSPOSE_ADJOINT,
                 .unit = hlo_int(op, AK_UNIT_DIAGONAL, 0)};
        for (int64_t line = 0; line < lines; line++) {
            int64_t base = m * rows * cols + line * next;
            for (int64_t i = 0; i < n; i++)
                x[i] = load(b->dtype, in[1].data, base + i * step);
            substitute(&t, left, x);
            for (int64_t i = 0; i < n; i++)
                store(b->dtype, out[0].data, base + i * step, x[i]);
        }
    }
    eval_close(e);
}
