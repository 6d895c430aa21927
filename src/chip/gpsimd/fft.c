// SPDX-License-Identifier: Apache-2.0
// fft.c — FFT, IFFT, RFFT, IRFFT over the last one to three axes, in complex double.
//
// Each matrix of the transformed axes is one task: it is loaded into scratch, every axis is
// transformed line by line by decimation in time over the prime factors of its length, and the
// result is rounded once.
#include "base/elem.h"
#include "chip/gpsimd/gp.h"

typedef double complex Z;

#define FFT_AXES 3

typedef struct FftShape {
    int rank;
    int64_t len[FFT_AXES];               // transform lengths
    int64_t in[FFT_AXES], out[FFT_AXES]; // extents stored
    int64_t in_elems, out_elems, elems, longest, count;
    bool inverse, real_in, real_out;
} FftShape;

static bool fft_shape(const Kern *k, FftShape *s) {
    const HloAttr *a = kern_attr(k, AK_FFT_LENGTH);
    int64_t type = gp_int(k, AK_FFT_TYPE, -1);
    if (k->nin != 1 || k->nout != 1 || !a || a->kind != HA_INTS || a->n < 1 || a->n > FFT_AXES)
        return false;
    const KTensor *in = &k->in[0], *out = &k->out[0];
    *s = (FftShape){
        .rank = (int)a->n, .in_elems = 1, .out_elems = 1, .elems = 1, .count = 1, .longest = 1};
    s->inverse = type == FFT_IFFT || type == FFT_IRFFT;
    s->real_in = type == FFT_RFFT, s->real_out = type == FFT_IRFFT;
    int lead = in->rank - s->rank;
    if (type < FFT_FFT || type > FFT_IRFFT || lead < 0 || out->rank != in->rank)
        return false;
    bool wide = in->dtype == DT_C128 || in->dtype == DT_F64;
    if (in->dtype != (s->real_in ? (wide ? DT_F64 : DT_F32) : (wide ? DT_C128 : DT_C64)) ||
        out->dtype != (s->real_out ? (wide ? DT_F64 : DT_F32) : (wide ? DT_C128 : DT_C64)))
        return false;
    for (int d = 0; d < lead; d++) {
        if (in->dims[d] != out->dims[d])
            return false;
        s->count *= in->dims[d];
    }
    for (int i = 0; i < s->rank; i++) {
        int64_t n = a->ints[i], half = n / 2 + 1;
        bool last = i == s->rank - 1;
        s->len[i] = n;
        s->in[i] = last && s->real_out ? half : n;
        s->out[i] = last && s->real_in ? half : n;
        if (n < 0 || n > INT32_MAX)
            return false;
        if (in->elems && out->elems &&
            (in->dims[lead + i] != s->in[i] || out->dims[lead + i] != s->out[i]))
            return false;
        s->in_elems *= s->in[i], s->out_elems *= s->out[i];
        if (__builtin_mul_overflow(s->elems, n, &s->elems))
            return false;
        s->longest = n > s->longest ? n : s->longest;
    }
    return s->elems <= INT64_MAX / 64;
}

bool gp_fft_check(const Kern *k) {
    FftShape s;
    return fft_shape(k, &s);
}

// The whole transform, a line with its spare, and the roots of unity of the longest axis.
static size_t fft_slot_bytes(const FftShape *s) {
    return gp_align((size_t)(s->elems + 4 * s->longest) * sizeof(Z));
}

size_t gp_fft_scratch(const Kern *k, int threads) {
    FftShape s;
    return fft_shape(k, &s) ? (size_t)threads * fft_slot_bytes(&s) : 0;
}

static inline Z mul(Z a, Z b) {
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b),
                 creal(a) * cimag(b) + cimag(a) * creal(b));
}

static int64_t least_factor(int64_t n) {
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

// out[0..n) = transform of in[0], in[step], …; roots[i] = w^i for the full length `full`; room
// holds a spare of the longest prime factor.
static void fft_line(Z *out, const Z *in, int64_t step, int64_t n, const Z *roots, int64_t full,
                     Z *room) {
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    int64_t p = least_factor(n), m = n / p;
    for (int64_t r = 0; r < p; r++)
        fft_line(out + r * m, in + r * step, step * p, m, roots, full, room);
    int64_t scale = full / n;
    for (int64_t q = 0; q < m; q++) {
        for (int64_t r = 0; r < p; r++)
            room[r] = mul(out[r * m + q], roots[r * q * scale]);
        for (int64_t k = 0; k < p; k++) {
            Z sum = room[0];
            for (int64_t r = 1; r < p; r++)
                sum += mul(room[r], roots[r * k % p * (full / p)]);
            out[k * m + q] = sum;
        }
    }
}

typedef struct FftJob {
    const GpCall *c;
    FftShape s;
    size_t slots;
} FftJob;

static void fft_load(const FftJob *j, Z *x, int64_t which) {
    const FftShape *s = &j->s;
    int dtype = j->c->k->in[0].dtype;
    int64_t row = s->in[s->rank - 1], full = s->len[s->rank - 1],
            rows = row ? s->in_elems / row : 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < row; i++) {
            int64_t at = which * s->in_elems + r * row + i;
            const void *in = j->c->in[0];
            Z *to = &x[r * full + i];
            switch (dtype) {
            case DT_F32: *to = ((const float *)in)[at]; break;
            case DT_F64: *to = ((const double *)in)[at]; break;
            case DT_C64:
                *to = CMPLX(((const float *)in)[2 * at], ((const float *)in)[2 * at + 1]);
                break;
            default: *to = CMPLX(((const double *)in)[2 * at], ((const double *)in)[2 * at + 1]);
            }
        }
}

static void fft_save(const FftJob *j, const Z *x, int64_t which) {
    const FftShape *s = &j->s;
    int64_t row = s->out[s->rank - 1], full = s->len[s->rank - 1],
            rows = row ? s->out_elems / row : 0;
    double scale = s->inverse ? 1.0 / (double)s->elems : 1.0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < row; i++) {
            int64_t at = which * s->out_elems + r * row + i;
            void *out = j->c->out[0];
            double re = creal(x[r * full + i]) * scale, im = cimag(x[r * full + i]) * scale;
            switch (j->c->k->out[0].dtype) {
            case DT_F32: ((float *)out)[at] = (float)re; break;
            case DT_F64: ((double *)out)[at] = re; break;
            case DT_C64:
                ((float *)out)[2 * at] = (float)re, ((float *)out)[2 * at + 1] = (float)im;
                break;
            default: ((double *)out)[2 * at] = re, ((double *)out)[2 * at + 1] = im;
            }
        }
}

// The missing half of a real signal's last axis. By then the other axes are signals again, so that
// a line is the mirror of itself.
static void fft_mirror(const FftShape *s, Z *x) {
    int64_t n = s->len[s->rank - 1], rows = n ? s->elems / n : 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = n / 2 + 1; i < n; i++)
            x[r * n + i] = conj(x[r * n + n - i]);
}

static void fft_axis(const FftShape *s, Z *x, int axis, Z *room) {
    int64_t n = s->len[axis], inner = 1;
    for (int i = axis + 1; i < s->rank; i++)
        inner *= s->len[i];
    // A real signal's spectrum is stored in half: columns beyond it are filled by fft_mirror.
    int64_t cols = s->real_out && axis < s->rank - 1
                       ? inner / s->len[s->rank - 1] * s->in[s->rank - 1]
                       : inner;
    Z *line = room, *done = room + s->longest, *spare = done + s->longest,
      *roots = spare + s->longest;
    for (int64_t i = 0; i < n; i++) {
        Z root = elem_c_root(i, n);
        roots[i] = s->inverse ? root : conj(root);
    }
    for (int64_t outer = 0; outer < s->elems / n / inner; outer++)
        for (int64_t c = 0; c < cols; c++) {
            int64_t half = s->in[s->rank - 1], full = s->len[s->rank - 1];
            int64_t col = cols == inner ? c : c / half * full + c % half;
            Z *at = x + outer * n * inner + col;
            for (int64_t i = 0; i < n; i++)
                line[i] = at[i * inner];
            fft_line(done, line, 1, n, roots, n, spare);
            for (int64_t i = 0; i < n; i++)
                at[i * inner] = done[i];
        }
}

static void fft_slot(void *arg, size_t begin, size_t end) {
    const FftJob *j = arg;
    const FftShape *s = &j->s;
    for (size_t slot = begin; slot < end; slot++) {
        Z *x = (Z *)((char *)j->c->scratch + slot * fft_slot_bytes(s));
        int64_t to = s->count * (int64_t)(slot + 1) / (int64_t)j->slots;
        for (int64_t i = s->count * (int64_t)slot / (int64_t)j->slots; i < to; i++) {
            fft_load(j, x, i);
            for (int a = 0; a < s->rank;
                 a++) { // the last axis last: irfft completes its lines before
                if (s->real_out && a == s->rank - 1)
                    fft_mirror(s, x);
                fft_axis(s, x, a, x + s->elems);
            }
            fft_save(j, x, i);
        }
    }
}

otrn_status gp_fft_run(const GpCall *c) {
    FftJob j = {.c = c};
    fft_shape(c->k, &j.s);
    if (!c->k->out[0].elems)
        return OTRN_OK;
    if (!c->k->in[0].elems) {
        memset(c->out[0], 0, gp_bytes(&c->k->out[0]));
        return OTRN_OK;
    }
    j.slots = gp_slots(c, (size_t)j.s.count);
    pool_run(c->pool, j.slots, 1, fft_slot, &j);
    return gp_quiet(c);
}
