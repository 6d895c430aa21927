// SPDX-License-Identifier: Apache-2.0
// linalg.c — cholesky and triangular_solve, in double (complex double), one matrix per task.
#include <complex.h>
#include <math.h>

#include "chip/gpsimd/gp.h"

typedef double complex Z;

static Z load(int dtype, const void *p, int64_t i) {
    if (dtype == DT_C64)
        return CMPLX(((const float *)p)[2 * i], ((const float *)p)[2 * i + 1]);
    if (dtype == DT_C128)
        return CMPLX(((const double *)p)[2 * i], ((const double *)p)[2 * i + 1]);
    return dtype_to_f64(dtype, (const char *)p + i * (int64_t)dtype_bytes(dtype));
}

static void save(int dtype, void *p, int64_t i, Z v) {
    if (dtype == DT_C64) {
        ((float *)p)[2 * i] = (float)creal(v);
        ((float *)p)[2 * i + 1] = (float)cimag(v);
    } else if (dtype == DT_C128) {
        ((double *)p)[2 * i] = creal(v);
        ((double *)p)[2 * i + 1] = cimag(v);
    } else {
        dtype_from_f64(dtype, (char *)p + i * (int64_t)dtype_bytes(dtype), creal(v));
    }
}

static bool is_field(int dtype) { return dtype_is_float(dtype) || dtype_is_complex(dtype); }

// Plain product: C's own repairs infinities at a price.
static inline Z mul(Z a, Z b) {
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b),
                 creal(a) * cimag(b) + cimag(a) * creal(b));
}

typedef struct LinJob {
    const GpCall *c;
    int64_t n, m, count; // matrix order, right-hand sides, matrices
    size_t slots;
} LinJob;

// --- cholesky ----------------------------------------------------------------------------------

bool gp_cholesky_check(const Kern *k) {
    if (k->nin != 1 || k->nout != 1 || !gp_same_type(&k->in[0], &k->out[0]) ||
        !is_field(k->in[0].dtype))
        return false;
    int r = k->in[0].rank;
    return r >= 2 && k->in[0].dims[r - 1] == k->in[0].dims[r - 2];
}

size_t gp_cholesky_scratch(const Kern *k, int threads) {
    size_t n = (size_t)k->in[0].dims[k->in[0].rank - 1];
    return (size_t)threads * gp_align(n * n * sizeof(Z));
}

// a = l l^H by columns; only the chosen triangle is read, the other one of the result is zero.
static void cholesky_one(const LinJob *j, Z *l, int64_t which) {
    const Kern *k = j->c->k;
    int dtype = k->in[0].dtype;
    int64_t n = j->n, base = which * n * n;
    bool lower = gp_int(k, AK_LOWER, 0) != 0;
    for (int64_t col = 0; col < n; col++)
        for (int64_t row = col; row < n; row++) {
            Z a = load(dtype, j->c->in[0], base + (lower ? row * n + col : col * n + row));
            Z sum = lower ? a : conj(a);
            for (int64_t i = 0; i < col; i++)
                sum -= mul(l[row * n + i], conj(l[col * n + i]));
            l[row * n + col] = row == col ? sqrt(creal(sum)) : sum / creal(l[col * n + col]);
        }
    for (int64_t row = 0; row < n; row++)
        for (int64_t col = 0; col < n; col++) {
            Z v = 0;
            if (lower ? col <= row : row <= col)
                v = lower ? l[row * n + col] : conj(l[col * n + row]);
            save(dtype, j->c->out[0], base + row * n + col, v);
        }
}

static void cholesky_slot(void *arg, size_t begin, size_t end) {
    const LinJob *j = arg;
    for (size_t slot = begin; slot < end; slot++) {
        Z *l = (Z *)((char *)j->c->scratch + slot * gp_align((size_t)(j->n * j->n) * sizeof(Z)));
        int64_t to = j->count * (int64_t)(slot + 1) / (int64_t)j->slots;
        for (int64_t i = j->count * (int64_t)slot / (int64_t)j->slots; i < to; i++)
            cholesky_one(j, l, i);
    }
}

otrn_status gp_cholesky_run(const GpCall *c) {
    const KTensor *t = &c->k->in[0];
    if (!t->elems)
        return OTRN_OK;
    LinJob j = {.c = c, .n = t->dims[t->rank - 1]};
    j.count = t->elems / (j.n * j.n);
    j.slots = gp_slots(c, (size_t)j.count);
    pool_run(c->pool, j.slots, 1, cholesky_slot, &j);
    return gp_quiet(c);
}

// --- triangular_solve --------------------------------------------------------------------------

bool gp_tri_solve_check(const Kern *k) {
    if (k->nin != 2 || k->nout != 1 || !gp_same_type(&k->in[1], &k->out[0]) ||
        !is_field(k->in[0].dtype) || k->in[0].dtype != k->in[1].dtype ||
        k->in[0].rank != k->in[1].rank || k->in[0].rank < 2)
        return false;
    int r = k->in[0].rank;
    int64_t side = gp_int(k, AK_LEFT_SIDE, 1) ? k->in[1].dims[r - 2] : k->in[1].dims[r - 1];
    for (int d = 0; d < r - 2; d++)
        if (k->in[0].dims[d] != k->in[1].dims[d])
            return false;
    return k->in[0].dims[r - 1] == k->in[0].dims[r - 2] && side == k->in[0].dims[r - 1];
}

size_t gp_tri_solve_scratch(const Kern *k, int threads) {
    size_t n = (size_t)k->in[0].dims[k->in[0].rank - 1];
    return (size_t)threads * gp_align((n * n + n) * sizeof(Z));
}

// t x = b by substitution, t lower or upper as it stands after the transpose.
static void substitute(const Z *t, Z *x, int64_t n, bool lower, bool unit) {
    for (int64_t s = 0; s < n; s++) {
        int64_t row = lower ? s : n - 1 - s;
        Z sum = x[row];
        for (int64_t col = lower ? 0 : row + 1; col < (lower ? row : n); col++)
            sum -= mul(t[row * n + col], x[col]);
        x[row] = unit                           ? sum
                 : cimag(t[row * n + row]) == 0 ? sum / creal(t[row * n + row])
                                                : sum / t[row * n + row];
    }
}

// op(a) x = b column by column; x op(a) = b is op(a)^T x^T = b^T, row by row.
static void solve_one(const LinJob *j, Z *t, int64_t which) {
    const Kern *k = j->c->k;
    int dtype = k->in[0].dtype;
    int64_t n = j->n, m = j->m, mode = gp_int(k, AK_TRANSPOSE_A, TRANSPOSE_NO);
    bool left = gp_int(k, AK_LEFT_SIDE, 1) != 0, lower = gp_int(k, AK_LOWER, 0) != 0;
    bool unit = gp_int(k, AK_UNIT_DIAGONAL, 0) != 0;
    bool turned = (mode == TRANSPOSE_YES || mode == TRANSPOSE_ADJOINT) == left;
    Z *x = t + n * n;
    for (int64_t row = 0; row < n; row++)
        for (int64_t col = 0; col < n; col++) {
            Z a =
                load(dtype, j->c->in[0], which * n * n + (turned ? col * n + row : row * n + col));
            t[row * n + col] = mode == TRANSPOSE_ADJOINT ? conj(a) : a;
        }
    for (int64_t rhs = 0; rhs < m; rhs++) {
        int64_t first = which * n * m + (left ? rhs : rhs * n), step = left ? m : 1;
        for (int64_t i = 0; i < n; i++)
            x[i] = load(dtype, j->c->in[1], first + i * step);
        substitute(t, x, n, lower != turned, unit);
        for (int64_t i = 0; i < n; i++)
            save(dtype, j->c->out[0], first + i * step, x[i]);
    }
}

static void solve_slot(void *arg, size_t begin, size_t end) {
    const LinJob *j = arg;
    for (size_t slot = begin; slot < end; slot++) {
        Z *t = (Z *)((char *)j->c->scratch +
                     slot * gp_align((size_t)(j->n * j->n + j->n) * sizeof(Z)));
        int64_t to = j->count * (int64_t)(slot + 1) / (int64_t)j->slots;
        for (int64_t i = j->count * (int64_t)slot / (int64_t)j->slots; i < to; i++)
            solve_one(j, t, i);
    }
}

otrn_status gp_tri_solve_run(const GpCall *c) {
    const KTensor *t = &c->k->in[0], *b = &c->k->in[1];
    if (!t->elems || !b->elems)
        return OTRN_OK;
    LinJob j = {.c = c, .n = t->dims[t->rank - 1]};
    j.count = t->elems / (j.n * j.n);
    j.m = b->elems / j.count / j.n;
    j.slots = gp_slots(c, (size_t)j.count);
    pool_run(c->pool, j.slots, 1, solve_slot, &j);
    return gp_quiet(c);
}
