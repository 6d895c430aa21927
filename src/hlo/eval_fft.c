// SPDX-License-Identifier: Apache-2.0
// eval_fft.c — discrete Fourier transforms over the last one to three axes, in double.
//
// Forward: X[k] = sum x[j] exp(-2 pi i j k / n), unnormalised; inverse: + in the exponent, divided
// by n. RFFT keeps n/2 + 1 outputs of its innermost axis; IRFFT fills the missing half by conjugate
// symmetry. A line of length n = p·q splits by its smallest prime p (Cooley–Tukey); primes are
// summed directly.
#include "base/elem.h"
#include "hlo/eval_in.h"

typedef double complex cplx;

static cplx mul(cplx a, cplx b) {
    double ar = creal(a), ai = cimag(a), br = creal(b), bi = cimag(b);
    return CMPLX(ar * br - ai * bi, ar * bi + ai * br);
}

static cplx root(int64_t k, int64_t n) {
    return elem_c_root((k % n + n) % n, n);
}

// Transforms n elements x[0], x[step], … into y[0..n). w: roots of unity of the whole length
// `total`, conjugated for the inverse; n divides total.
static void transform(int64_t n, const cplx *x, int64_t step, cplx *y, const cplx *w, int64_t total,
                      cplx *tmp) {
    if (n == 1) {
        y[0] = x[0];
        return;
    }
    int64_t p = 2;
    while (n % p && p * p <= n)
        p++;
    if (n % p)
        p = n;
    int64_t q = n / p;
    for (int64_t r = 0; r < p; r++)
        transform(q, x + r * step, step * p, y + r * q, w, total, tmp);
    // y holds p transforms of length q: combine X[k + q s] = sum_r w^(r (k + q s)) Y_r[k]
    for (int64_t k = 0; k < q; k++)
        for (int64_t s = 0; s < p; s++) {
            cplx sum = 0;
            for (int64_t r = 0; r < p; r++)
                sum += mul(w[(total / n) * (r * (k + q * s) % n)], y[r * q + k]);
            tmp[k + q * s] = sum;
        }
    memcpy(y, tmp, (size_t)n * sizeof *y);
}

// Transforms every line of axis `axis` of a row-major complex array in place.
static void along_axis(Arena *mem, cplx *data, int rank, const int64_t *dims, int axis,
                       bool inverse) {
    int64_t n = dims[axis], inner = 1, outer = 1;
    for (int i = axis + 1; i < rank; i++)
        inner *= dims[i];
    for (int i = 0; i < axis; i++)
        outer *= dims[i];
    cplx *w = ARENA_NEWN(mem, cplx, (size_t)n), *y = ARENA_NEWN(mem, cplx, (size_t)n);
    cplx *tmp = ARENA_NEWN(mem, cplx, (size_t)n);
    for (int64_t k = 0; k < n; k++)
        w[k] = inverse ? root(k, n) : conj(root(k, n));
    for (int64_t o = 0; n && o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            cplx *line = data + o * n * inner + i;
            transform(n, line, inner, y, w, n, tmp);
            for (int64_t k = 0; k < n; k++)
                line[k * inner] = inverse ? y[k] / (double)n : y[k];
        }
}

// Copies between tensors whose last axis differs: the first `keep` of each row.
static void rows_load(int dtype, const uint8_t *src, int64_t rows, int64_t have, int64_t width,
                      cplx *dst) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < have; i++) {
            double x[2] = {0, 0};
            eval_load(dtype, src + (r * have + i) * (int64_t)dtype_bytes(dtype), 0, 1, x);
            dst[r * width + i] = CMPLX(x[0], x[1]);
        }
}

static void rows_store(int dtype, uint8_t *dst, int64_t rows, int64_t have, int64_t width,
                       const cplx *src) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < have; i++) {
            double x[2] = {creal(src[r * width + i]), cimag(src[r * width + i])};
            eval_store_computed(dtype, dst + (r * have + i) * (int64_t)dtype_bytes(dtype), 1, x);
        }
}

// IRFFT: the innermost rows hold n/2 + 1 values; the rest are conjugates of the mirrored ones.
static void mirror(cplx *data, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = n / 2 + 1; i < n; i++)
            data[r * n + i] = conj(data[r * n + n - i]);
}

static void fft_types(Eval *e, OpId id, int64_t kind, const HloType *s, const HloType *t,
                      const int64_t *len, uint32_t nlen) {
    int real = kind == FFT_RFFT ? s->dtype : t->dtype, cpl = kind == FFT_RFFT ? t->dtype : s->dtype;
    bool ok = s->rank == t->rank && nlen >= 1 && nlen <= 3 && nlen <= s->rank;
    if (kind == FFT_FFT || kind == FFT_IFFT)
        ok = ok && s->dtype == t->dtype && dtype_is_complex(s->dtype);
    else
        ok = ok && ((real == DT_F32 && cpl == DT_C64) || (real == DT_F64 && cpl == DT_C128));
    eval_need(e, id, ok, "operand and result types do not fit fft_type");
    for (int i = 0; i < s->rank; i++) {
        int k = i - (s->rank - (int)nlen);
        bool last = i == s->rank - 1;
        int64_t half = k >= 0 ? len[k] / 2 + 1 : 0;
        int64_t want_s = k < 0 ? s->dims[i] : last && kind == FFT_IRFFT ? half : len[k];
        int64_t want_t = k < 0 ? s->dims[i] : last && kind == FFT_RFFT ? half : len[k];
        // an empty transform has an empty half too
        if (k >= 0 && len[k] == 0)
            want_s = want_t = 0;
        eval_need(e, id, s->dims[i] == want_s && t->dims[i] == want_t,
                  "shapes do not fit fft_length");
    }
}

void eval_fft(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    int64_t kind = hlo_int(op, AK_FFT_TYPE, -1), dims[OTRN_MAX_RANK], rows = 1;
    uint32_t nlen;
    const int64_t *len = hlo_ints(op, AK_FFT_LENGTH, &nlen);
    eval_need(e, id, kind >= FFT_FFT && kind <= FFT_IRFFT, "unknown fft_type");
    fft_types(e, id, kind, s, t, len, nlen);
    out[0].data = eval_new(e, out[0].type);
    if (!t->elems || !s->elems)
        return;
    int rank = s->rank, last = rank - 1;
    for (int i = 0; i < rank; i++) {
        dims[i] = i == last ? len[nlen - 1] : s->dims[i]; // of the full complex array
        rows *= i < last ? dims[i] : 1;
    }
    bool inverse = kind == FFT_IFFT || kind == FFT_IRFFT;
    int64_t n = dims[last];
    Arena *mem = eval_open(e);
    cplx *data = ARENA_NEWN(mem, cplx, (size_t)(rows * n));
    rows_load(s->dtype, in[0].data, rows, s->dims[last], n, data);
    if (inverse) // outer axes first: the mirror needs the innermost axis still in its half form
        for (int k = 0; k < (int)nlen - 1; k++)
            along_axis(mem, data, rank, dims, rank - (int)nlen + k, true);
    if (kind == FFT_IRFFT)
        mirror(data, rows, n);
    along_axis(mem, data, rank, dims, last, inverse);
    if (!inverse)
        for (int k = (int)nlen - 2; k >= 0; k--)
            along_axis(mem, data, rank, dims, rank - (int)nlen + k, false);
    rows_store(t->dtype, out[0].data, rows, t->dims[last], n, data);
    eval_close(e);
}
