// SPDX-License-Identifier: Apache-2.0
// dtype.c — the type table and exact conversions, driven by the row's exponent and mantissa widths.
#include "base/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "otrn.h"

const DtypeRow dtype_rows[DT_COUNT] = {
#define X(e, name, npy, cls, bytes, bits, exp, man, bias, flavour)                                 \
    [DT_##e] = {name, npy, cls, bytes, bits, exp, man, bias, flavour},
    DTYPE_ROWS(X)
#undef X
};

int dtype_parse(const char *name, size_t n) {
    for (int d = 1; d < DT_COUNT; d++)
        if (strlen(dtype_rows[d].name) == n && !memcmp(dtype_rows[d].name, name, n))
            return d;
    return -1;
}

const char *otrn_dtype_name(int dtype) {
    return dtype > 0 && dtype < DT_COUNT ? dtype_rows[dtype].name : "invalid";
}

int otrn_dtype_parse(const char *name) { return dtype_parse(name, strlen(name)); }

size_t otrn_dtype_bytes(int dtype) {
    return dtype > 0 && dtype < DT_COUNT ? dtype_rows[dtype].bytes : 0;
}

size_t otrn_type_bytes(const otrn_type *t) {
    size_t n = otrn_dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++)
        n *= (size_t)t->dims[i];
    return n;
}

// --- floats ----------------------------------------------------------------------------------------

static double small_to_f64(const DtypeRow *r, uint32_t bits) {
    int e = r->exp_bits, m = r->man_bits;
    if (r->flavour == FF_E8M0)
        return bits == 0xff ? NAN : ldexp(1.0, (int)bits - r->bias);
    uint32_t man = bits & ((1u << m) - 1), exp = bits >> m & ((1u << e) - 1);
    int neg = bits >> (e + m) & 1;
    uint32_t top = (1u << e) - 1;
    if (r->flavour == FF_IEEE && exp == top)
        return man ? (neg ? -NAN : NAN) : (neg ? -INFINITY : INFINITY);
    if (r->flavour == FF_FN && exp == top && man == (1u << m) - 1)
        return neg ? -NAN : NAN;
    if (r->flavour == FF_FNUZ && neg && !exp && !man)
        return -NAN; // as its sign bit says: total order puts it first
    double v = exp ? ldexp((double)(man | 1u << m), (int)exp - r->bias - m)
                   : ldexp((double)man, 1 - r->bias - m);
    return neg ? -v : v;
}

// Magnitude code (no sign) of the largest finite value of a row.
static uint32_t max_finite_code(const DtypeRow *r) {
    uint32_t all = (1u << (r->exp_bits + r->man_bits)) - 1;
    if (r->flavour == FF_IEEE)
        return all - (1u << r->man_bits);
    return r->flavour == FF_FN ? all - 1 : all;
}

static uint32_t e8m0_from_f64(double v) {
    if (!(v > 0) || isinf(v)) // there is no zero: it is NaN, as in ml_dtypes and JAX
        return 0xff;
    int e;
    double m = frexp(v, &e); // v = m * 2^e, m in [0.5, 1)
    int code = e - 1 + 127;
    code += m >= 0.75; // nearest power of two; its one significand is odd, so ties go up
    if (v > 0x1p-127 && v < 0x1p-126) // between the least two everything goes up, as in ml_dtypes
        code = 1;
    return code < 0 ? 0 : code > 254 ? 0xff : (uint32_t)code;
}

static uint32_t small_from_f64(const DtypeRow *r, double v) {
    if (r->flavour == FF_E8M0)
        return e8m0_from_f64(v);
    int e = r->exp_bits, m = r->man_bits;
    uint32_t sign = signbit(v) ? 1u << (e + m) : 0;
    uint32_t nan_code = r->flavour == FF_FNUZ  ? 1u << (e + m)
                        : r->flavour == FF_FN  ? sign | ((1u << (e + m)) - 1)
                        : r->flavour == FF_SAT ? 1u << (e + m)
                                               : sign | ((1u << e) - 1) << m | 1u << (m - 1);
    if (isnan(v))
        return nan_code;
    uint32_t over = r->flavour == FF_IEEE  ? sign | ((1u << e) - 1) << m
                    : r->flavour == FF_SAT ? sign | max_finite_code(r)
                                           : nan_code;
    if (isinf(v))
        return over;
    double a = fabs(v);
    int exp = a == 0 ? INT16_MIN : ilogb(a);
    int emin = 1 - r->bias;
    int scale = (exp < emin ? emin : exp) - m; // value of the last mantissa bit
    double q = nearbyint(ldexp(a, -scale));     // exact scaling, then nearest even
    uint32_t code = exp < emin ? (uint32_t)q
                               : (uint32_t)q + ((uint32_t)(exp - emin) << m); // carry is right
    if (exp > emin + (1 << e)) // far above: the code would wrap
        return over;
    if (code > max_finite_code(r))
        return over;
    if (r->flavour == FF_FNUZ && code == 0)
        return 0; // there is no -0
    return sign | code;
}

float f16_to_f32(uint16_t h) {
    uint32_t man = h & 0x3ff, exp = h >> 10 & 31, sign = (uint32_t)(h >> 15) << 31;
    union {
        uint32_t u;
        float f;
    } v;
    if (exp == 31)
        v.u = sign | 0x7f800000 | man << 13;
    else if (exp)
        v.u = sign | (exp + 112) << 23 | man << 13;
    else {
        v.f = (float)man * 0x1p-24f;
        v.u |= sign;
    }
    return v.f;
}

uint16_t f16_from_f32(float f) {
    union {
        float f;
        uint32_t u;
    } v = {.f = f};
    uint32_t sign = v.u >> 16 & 0x8000;
    v.u &= 0x7fffffff;
    if (v.u > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (v.u >> 13 & 0x3ff));
    if (v.u >= 0x477ff000) // rounds to 65536 or more
        return (uint16_t)(sign | 0x7c00);
    if (v.u < 0x38800000) { // subnormal result: let the adder round
        v.f += 0.5f;
        return (uint16_t)(sign | (v.u - 0x3f000000));
    }
    return (uint16_t)(sign | (v.u - 0x38000000 + 0xfff + (v.u >> 13 & 1)) >> 13);
}

double dtype_to_f64(int d, const void *p) {
    uint16_t h;
    float f;
    double v;
    switch (d) {
    case DT_F32:
    case DT_TF32:
        memcpy(&f, p, 4);
        return f;
    case DT_F64:
        memcpy(&v, p, 8);
        return v;
    case DT_BF16:
        memcpy(&h, p, 2);
        return bf16_to_f32(h);
    case DT_F16:
        memcpy(&h, p, 2);
        return f16_to_f32(h);
    default:
        assert(dtype_is_float(d));
        return small_to_f64(&dtype_rows[d], *(const uint8_t *)p);
    }
}

// Round a finite or infinite double once to a float format with 8 exponent bits kept in 32 bits
// (tf32) or 16 (bf16): cut the mantissa to m bits.
static double round_to_8e(double v, int m) {
    if (!isfinite(v) || v == 0)
        return v;
    int exp = ilogb(v);
    int scale = (exp < -126 ? -126 : exp) - m;
    return ldexp(nearbyint(ldexp(v, -scale)), scale);
}

void dtype_from_f64(int d, void *p, double v) {
    uint16_t h;
    float f;
    switch (d) {
    case DT_F32:
        f = (float)v;
        memcpy(p, &f, 4);
        return;
    case DT_TF32:
        f = (float)round_to_8e(v, 10);
        memcpy(p, &f, 4);
        return;
    case DT_F64:
        memcpy(p, &v, 8);
        return;
    case DT_BF16: // round once in double, the float conversion is then exact (or overflows to inf)
        h = bf16_from_f32((float)(isnan(v) ? v : round_to_8e(v, 7)));
        memcpy(p, &h, 2);
        return;
    case DT_F16:
        h = (uint16_t)small_from_f64(&dtype_rows[DT_F16], v);
        memcpy(p, &h, 2);
        return;
    default:
        assert(dtype_is_float(d));
        *(uint8_t *)p = (uint8_t)small_from_f64(&dtype_rows[d], v);
    }
}

// --- integers --------------------------------------------------------------------------------------

int64_t dtype_to_i64(int d, const void *p) {
    const DtypeRow *r = &dtype_rows[d];
    assert(r->cls == DC_SINT || r->cls == DC_UINT || r->cls == DC_BOOL);
    uint64_t u = 0;
    memcpy(&u, p, r->bytes); // little-endian hosts only, checked in bytes.c
    if (r->cls == DC_BOOL)
        return u != 0;
    int drop = 64 - r->bits;
    return r->cls == DC_SINT ? (int64_t)(u << drop) >> drop : (int64_t)(u << drop >> drop);
}

void dtype_from_i64(int d, void *p, int64_t v) {
    const DtypeRow *r = &dtype_rows[d];
    assert(r->cls == DC_SINT || r->cls == DC_UINT || r->cls == DC_BOOL);
    if (r->cls == DC_BOOL)
        v = v != 0;
    int drop = 64 - r->bits;
    uint64_t u = (uint64_t)v << drop;
    u = r->cls == DC_SINT ? (uint64_t)((int64_t)u >> drop) : u >> drop;
    memcpy(p, &u, r->bytes);
}

void dtype_canonicalise(int dtype, uint8_t *p, size_t n) {
    const DtypeRow *row = dtype_row(dtype);
    if (dtype == DT_I1) {
        for (size_t i = 0; i < n; i++)
            p[i] = p[i] != 0;
    } else if (row->bits < 8) {
        int shift = 8 - row->bits;
        if (row->cls == DC_SINT)
            for (size_t i = 0; i < n; i++)
                p[i] = (uint8_t)((int8_t)(uint8_t)(p[i] << shift) >> shift);
        else
            for (size_t i = 0; i < n; i++)
                p[i] = (uint8_t)((uint8_t)(p[i] << shift) >> shift);
    }
}
