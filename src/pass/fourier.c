// SPDX-License-Identifier: Apache-2.0
// fourier.c — large Fourier transforms as products with roots of unity: a rule of the pass parts.
//
//   short: X[k] = sum over t of x[t] root(n, t k)
//   long:  n = p q, t = q a + b, k = c + p d                                         (Cooley and Tukey, 1965)
//          X[c + p d] = sum over b of (sum over a of x[q a + b] root(p, a c)) root(n, b (c + p d))
//
// Real and imaginary parts lie behind each other, so that a complex product is a real one of twice as many rows, with nothing to add up behind it. There are more
// sums so than in a kernel on GpSimd, and they are the array's.
#include "base/elem.h"
#include "pass/parts.h"

#define FOURIER_MIN 16384         // elements
#define SHORT_MIN 8               // shorter ones leave the array idle
#define SHORT_MAX 256             // its roots are a constant of the program, and their square is the work
#define ROOTS_MAX (int64_t)524288 // of the second sum of a long one

typedef struct Fourier { // along one dimension
    int64_t n, in, out;  // length, and parts: 1 is real
    bool inverse, half;  // half: what is there stands for its mirror image too, as the result is real
} Fourier;

static int64_t second(int64_t n) { // q: 1 of a short one
    int64_t best = 1;
    for (int64_t d = 2; d * d <= n && n > SHORT_MAX; d++)
        best = n % d ? best : d;
    return best;
}

static bool suits(int64_t n) {
    int64_t q = second(n);
    return n / q >= SHORT_MIN && n / q <= SHORT_MAX && (q == 1 || (q >= SHORT_MIN && n * q <= ROOTS_MAX));
}

// What part `from` of a number gives to part `to` of its product with root(n, t).
static float root(const Fourier *f, int64_t n, int64_t t, int64_t from, int64_t to) {
    double complex r = elem_c_root(t % n, n);
    double im = f->inverse ? cimag(r) : -cimag(r);
    return (float)(from == to ? creal(r) : from ? -im : im);
}

static float weight(const Fourier *f, int64_t t) { // the first and the middle one have no mirror image
    return (f->half && t && 2 * t != f->n ? 2 : 1) / (f->inverse ? (float)f->n : 1);
}

static ValueId constant(Walk *w, const float *data, int rank, const int64_t *dims) {
    TypeId type = hlo_type_tensor(w->hlo, DT_F32, rank, dims);
    return walk_push(w, hlo_op_constant(w->hlo, w->loc, type, data, (size_t)hlo_type(w->hlo, type)->elems * sizeof *data));
}

// [part t; part k] of a short one with so many parts in and out, those out from `to` on.
static ValueId short_roots(Walk *w, const Fourier *f, int64_t rows, int64_t cols, int64_t out, int64_t to) {
    float *data = ARENA_NEWN(w->arena, float, f->in * rows * out * cols);
    for (int64_t i = 0; i < f->in * rows * out * cols; i++) {
        int64_t row = i / (out * cols), col = i % (out * cols);
        data[i] = weight(f, row % rows) * root(f, f->n, row % rows * (col % cols), row / rows, to + col / cols);
    }
    return constant(w, data, 2, (int64_t[]){f->in * rows, out * cols});
}

// [part a; c part] of the first sum.
static ValueId first_roots(Walk *w, const Fourier *f, int64_t p) {
    float *data = ARENA_NEWN(w->arena, float, f->in * p * 2 * p);
    for (int64_t i = 0; i < f->in * p * 2 * p; i++)
        data[i] = root(f, p, i / (2 * p) % p * (i % (2 * p) / 2), i / (2 * p * p), i % 2);
    return constant(w, data, 2, (int64_t[]){f->in * p, 2 * p});
}

// [c, part b; part d] of the second.
static ValueId second_roots(Walk *w, const Fourier *f, int64_t p, int64_t q) {
    float *data = ARENA_NEWN(w->arena, float, p * 2 * q * f->out * q), *at = data;
    for (int64_t c = 0; c < p; c++)
        for (int64_t row = 0; row < 2 * q; row++)
            for (int64_t col = 0; col < f->out * q; col++)
                *at++ = root(f, f->n, row % q * (c + p * (col % q)), row / q, col / q);
    return constant(w, data, 3, (int64_t[]){p, 2 * q, f->out * q});
}

static ValueId product(Walk *w, ValueId x, ValueId y, DotPairs by, int rank, const int64_t *dims) {
    return walk_push(w, hlo_op_dot(w->hlo, w->loc, x, y, by, hlo_type_tensor(w->hlo, DT_F32, rank, dims), NULL));
}

static ValueId beside(Walk *w, const ValueId x[2], int64_t parts, int64_t dim) { // matrices
    if (parts == 1)
        return x[0];
    const HloType *t = hlo_value_type(w->hlo, x[0]);
    TypeId type = hlo_type_tensor(w->hlo, DT_F32, 2, (int64_t[]){t->dims[0] * (2 - dim), t->dims[1] * (1 + dim)});
    OpId made = hlo_op(w->hlo, HLO_CONCATENATE, w->loc, 2, x, 1, &type);
    hlo_set_int(w->hlo, made, AK_DIMENSION, dim);
    return walk_push(w, made);
}

// Columns of parts [t m] to those of the result, [part k; m].
static ValueId long_columns(Walk *w, const Fourier *f, ValueId x[2]) {
    static const int64_t none[2], first = 0, next = 1;
    HloType t = *hlo_value_type(w->hlo, x[0]);
    int64_t q = second(f->n), p = f->n / q, m = t.dims[1];
    TypeId type = hlo_type_tensor(w->hlo, DT_F32, 2, (int64_t[]){f->n, m});
    float *weights = ARENA_NEWN(w->arena, float, f->n);
    for (int64_t i = 0; i < f->n; i++)
        weights[i] = weight(f, i);
    for (int64_t i = 0; i < f->in; i++) {
        if (t.dims[0] < f->n)
            x[i] = walk_pad(w, x[i], walk_number(w, hlo_type_tensor(w->hlo, DT_F32, 0, NULL), 0), none, (int64_t[]){f->n - t.dims[0], 0}, none, type);
        if (f->inverse)
            x[i] = walk_binary(w, HLO_MULTIPLY, x[i], walk_broadcast(w, constant(w, weights, 1, &f->n), &first, 1, type));
    }
    DotPairs by = {.nc = 1, .lc = &first, .rc = &first};
    ValueId v = walk_reshape(w, beside(w, x, f->in, 0), 2, (int64_t[]){f->in * p, q * m}); // part a; b m
    v = product(w, first_roots(w, f, p), v, by, 2, (int64_t[]){2 * p, q * m});             // c part; b m
    by = (DotPairs){.nb = 1, .nc = 1, .lb = &first, .rb = &first, .lc = &next, .rc = &next};
    v = product(w, second_roots(w, f, p, q), walk_reshape(w, v, 3, (int64_t[]){p, 2 * q, m}), by, 3, (int64_t[]){p, f->out * q, m});
    v = walk_transpose(w, walk_reshape(w, v, 4, (int64_t[]){p, f->out, q, m}), (int64_t[]){1, 2, 0, 3}); // part d c m
    return walk_reshape(w, v, 2, (int64_t[]){f->out * f->n, m});
}

static ValueId transposed(Walk *w, ValueId v, const int64_t *perm) {
    const HloOp *def = hlo_def_as(w->hlo, v, HLO_TRANSPOSE);
    if (!def)
        return walk_transpose(w, v, perm);
    uint32_t n;
    int64_t both[OTRN_MAX_RANK];
    const int64_t *before = hlo_ints(def, AK_PERMUTATION, &n);
    for (uint32_t i = 0; i < n; i++)
        both[i] = before[perm[i]];
    return walk_transpose(w, hlo_operand(w->hlo, def, 0), both);
}

// The first `want` numbers of the transforms of x along `dim`; numbers behind those there are count as zero.
static void along(Walk *w, const Fourier *f, ValueId x[2], int64_t dim, int64_t want) {
    static const int64_t first = 0, next = 1;
    HloType t = *hlo_value_type(w->hlo, x[0]);
    int64_t perm[OTRN_MAX_RANK] = {0}, back[OTRN_MAX_RANK], dims[OTRN_MAX_RANK], have = t.dims[dim], m = t.elems / have;
    bool rows = dim == t.rank - 1 && f->n <= SHORT_MAX; // as they lie
    for (int64_t i = 0; i < t.rank; i++) {
        perm[i] = rows ? i : i == 0 ? dim : i - (i <= dim);
        dims[i] = perm[i] == dim ? want : t.dims[perm[i]];
        back[perm[i]] = i;
    }
    for (int64_t i = 0; i < f->in; i++)
        x[i] = walk_reshape(w, transposed(w, x[i], perm), 2, rows ? (int64_t[]){m, have} : (int64_t[]){have, m});
    ValueId all = rows || f->n <= SHORT_MAX ? beside(w, x, f->in, rows) : long_columns(w, f, x);
    DotPairs by = {.nc = 1, .lc = rows ? &next : &first, .rc = &first};
    if (!rows && f->n <= SHORT_MAX)
        all = product(w, short_roots(w, f, have, want, f->out, 0), all, by, 2, (int64_t[]){f->out * want, m});
    int64_t each = f->n <= SHORT_MAX ? want : f->n;
    for (int64_t i = 0; i < f->out; i++) {
        x[i] = rows ? product(w, all, short_roots(w, f, have, want, 1, i), by, 2, (int64_t[]){m, want})
                    : walk_piece(w, all, (int64_t[]){i * each, 0}, hlo_type_tensor(w->hlo, DT_F32, 2, (int64_t[]){want, m}));
        x[i] = walk_transpose(w, walk_reshape(w, x[i], t.rank, dims), back);
    }
}

ValueId parts_fourier(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    uint32_t n;
    int64_t kind = hlo_int(op, AK_FFT_TYPE, 0);
    const int64_t *len = hlo_ints(op, AK_FFT_LENGTH, &n);
    ValueId v = hlo_operand(h, op, 0), x[2] = {v, 0};
    HloType in = *hlo_value_type(h, v), out = *hlo_value_type(h, op->results);
    bool ok = n <= 3 && (in.dtype == DT_C64 || in.dtype == DT_F32) && in.elems + out.elems >= FOURIER_MIN;
    Fourier f[3];
    for (uint32_t i = 0; i < n && ok; i++) {
        f[i] = (Fourier){len[i], 2, 2, kind == FFT_IFFT || kind == FFT_IRFFT, false};
        ok = suits(len[i]);
    }
    if (!ok)
        return 0;
    Fourier *last = &f[n - 1];
    if (kind == FFT_RFFT) {
        last->in = 1;
        along(w, last, x, in.rank - 1, out.dims[in.rank - 1]);
    } else {
        Pair p = parts_of(w, v);
        x[0] = p.re, x[1] = p.im;
    }
    for (int64_t i = n - 1; i-- > 0;)
        along(w, &f[i], x, in.rank - (int64_t)n + i, f[i].n);
    if (kind != FFT_RFFT) {
        last->half = kind == FFT_IRFFT, last->out = last->half ? 1 : 2;
        along(w, last, x, in.rank - 1, out.dims[in.rank - 1]);
    }
    return kind == FFT_IRFFT ? x[0] : walk_op(w, HLO_COMPLEX, 2, x, h->values.at[op->results].type);
}
