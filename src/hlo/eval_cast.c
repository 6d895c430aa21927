// SPDX-License-Identifier: Apache-2.0
// eval_cast.c — ops that change the element type or look at its bits: convert, bitcast_convert,
// reduce_precision, complex parts, is_finite, iota, next_after.
#include <math.h>

#include "base/elem.h"
#include "hlo/eval_in.h"

// --- convert
// ---------------------------------------------------------------------------------------

// 64-bit integers have more bits than a double. Cutting to 53 bits and keeping "something was lost"
// in the last bit (rounding to odd) makes the later rounding to a narrower type the only one.
static double eval_odd_f64(int64_t v, bool is_unsigned) {
    bool neg = !is_unsigned && v < 0;
    uint64_t mag = neg ? 0 - (uint64_t)v : (uint64_t)v;
    int drop = mag ? 11 - __builtin_clzll(mag) : 0;
    if (drop > 0) {
        uint64_t lost = mag & ((1ull << drop) - 1);
        mag = (mag >> drop | (lost != 0)) << drop;
    }
    return neg ? -(double)mag : (double)mag;
}

// Truncates toward zero, saturates at the type's range, NaN gives 0.
static int64_t int_from_f64(int dtype, double v) {
    int bits = dtype_row(dtype)->bits;
    bool is_signed = dtype_row(dtype)->cls == DC_SINT;
    double hi = ldexp(1, is_signed ? bits - 1 : bits); // first value too large
    double lo = is_signed ? -hi : 0;
    if (isnan(v))
        return 0;
    v = trunc(v);
    if (v >= hi)
        return is_signed ? (int64_t)((1ull << (bits - 1)) - 1) : -1; // all ones, cut by the store
    if (v < lo)
        return is_signed ? (int64_t)(0 - (1ull << (bits - 1))) : 0;
    return is_signed || v < 0x1p63 ? (int64_t)v : (int64_t)(uint64_t)v;
}

static double f64_from_int(int from, int to, int64_t v) {
    bool is_unsigned = dtype_row(from)->cls != DC_SINT;
    if (to == DT_F64 || to == DT_C128)
        return is_unsigned ? (double)(uint64_t)v : (double)v;
    return eval_odd_f64(v, is_unsigned);
}

static void to_ints(int from, int to, size_t n, const void *wide, WideInt *out) {
    WideKind k = eval_wide_kind(from);
    const double *f = wide;
    const WideInt *s = wide;
    for (size_t i = 0; i < n; i++) {
        if (k == WIDE_I)
            out[i] = to == DT_I1 ? s[i] != 0 : s[i];
        else if (to == DT_I1)
            out[i] = k == WIDE_F ? f[i] != 0 : f[2 * i] != 0 || f[2 * i + 1] != 0;
        else
            out[i] = int_from_f64(to, k == WIDE_F ? f[i] : f[2 * i]);
    }
}

void eval_cast(int from, int to, size_t n, const void *wide, void *out) {
    WideKind kf = eval_wide_kind(from), kt = eval_wide_kind(to);
    if (kt == WIDE_I) {
        to_ints(from, to, n, wide, out);
        return;
    }
    const double *f = wide;
    const WideInt *s = wide;
    double *r = out;
    for (size_t i = 0; i < n; i++) {
        double re = kf == WIDE_I ? f64_from_int(from, to, s[i]) : kf == WIDE_F ? f[i] : f[2 * i];
        if (kt == WIDE_F)
            r[i] = re;
        else
            r[2 * i] = re, r[2 * i + 1] = kf == WIDE_C ? f[2 * i + 1] : 0;
    }
}

void eval_cast_one(int from, int to, const void *src, void *dst) {
    double a[2], b[2];
    eval_load(from, src, 0, 1, a);
    eval_cast(from, to, 1, a, b);
    eval_store(to, dst, 1, b);
}

void eval_convert(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    eval_need(e, id, hlo_same_dims(s, t), "operand and result must have one shape");
    size_t from = dtype_bytes(s->dtype), to = dtype_bytes(t->dtype), total = (size_t)t->elems;
    const uint8_t *src = in[0].data;
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    double a[2 * EVAL_CHUNK], b[2 * EVAL_CHUNK];
    for (size_t at = 0; at < total; at += EVAL_CHUNK) {
        size_t n = total - at < EVAL_CHUNK ? total - at : EVAL_CHUNK;
        eval_load(s->dtype, src + at * from, (int64_t)from, n, a);
        eval_cast(s->dtype, t->dtype, n, a, b);
        eval_store(t->dtype, dst + at * to, n, b);
    }
}

// --- bits
// ------------------------------------------------------------------------------------------

static uint64_t own_bits(int dtype, uint64_t u) {
    int bits = dtype == DT_TF32 ? 32 : dtype_row(dtype)->bits;
    return bits < 64 ? u & ((1ull << bits) - 1) : u;
}

static uint64_t bits_load(int dtype, const void *p) { // an element's own bits, zero-extended
    uint64_t u = 0;
    memcpy(&u, p, dtype_bytes(dtype));
    return own_bits(dtype, u);
}

static void bits_store(int dtype, void *p, uint64_t u) { // higher bits do not matter
    u = own_bits(dtype, u);
    if (eval_wide_kind(dtype) == WIDE_I)
        dtype_from_i64(dtype, p, (int64_t)u);
    else
        memcpy(p, &u, dtype_bytes(dtype));
}

// Elements of unequal width: the narrower side has one more, innermost dimension that counts from
// the least significant bits.
void eval_bitcast(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    int sb = dtype_row(s->dtype)->bits, tb = dtype_row(t->dtype)->bits;
    int64_t k = sb < tb ? tb / sb : sb / tb;
    const HloType *narrow = sb < tb ? s : t, *wide = sb < tb ? t : s;
    bool ok = hlo_same_dims(s, t) && sb == tb;
    if (sb != tb)
        ok = (sb < tb ? tb % sb : sb % tb) == 0 && narrow->rank == wide->rank + 1 &&
             narrow->dims[wide->rank] == k && narrow->elems == wide->elems * k;
    eval_need(e, id, ok, "shapes do not fit the element widths");
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    const uint8_t *src = in[0].data;
    size_t se = dtype_bytes(s->dtype), te = dtype_bytes(t->dtype);
    if (dtype_is_complex(s->dtype) || dtype_is_complex(t->dtype)) {
        eval_need(e, id, dtype_is_complex(s->dtype) && dtype_is_complex(t->dtype),
                  "complex casts only to complex");
        memcpy(dst, src, hlo_type_bytes(s));
        return;
    }
    if (sb <= tb)
        for (int64_t i = 0; i < t->elems; i++, dst += te) {
            uint64_t u = 0;
            for (int64_t j = 0; j < k; j++, src += se)
                u |= bits_load(s->dtype, src) << (j * sb);
            bits_store(t->dtype, dst, u);
        }
    else
        for (int64_t i = 0; i < s->elems; i++, src += se)
            for (int64_t j = 0; j < k; j++, dst += te)
                bits_store(t->dtype, dst, bits_load(s->dtype, src) >> (j * tb));
}

// The reduced format has no subnormals: what is too small becomes zero, what is too large infinity.
static uint64_t reduce_bits(const DtypeRow *r, uint64_t x, int exp_bits, int man_bits) {
    uint64_t exp_mask = ((1ull << r->exp_bits) - 1) << r->man_bits;
    uint64_t sign = x & 1ull << (r->exp_bits + r->man_bits), abs = x & ~sign;
    if (abs > exp_mask) // NaN
        return man_bits > 0 ? x : sign | exp_mask;
    if (man_bits < r->man_bits) {
        int drop = r->man_bits - man_bits;
        uint64_t half = 1ull << (drop - 1);
        abs += half - 1 + (abs >> drop & 1); // nearest even; a carry may move into the exponent
        abs &= ~((1ull << drop) - 1);
    }
    if (exp_bits < r->exp_bits) {
        uint64_t exp = abs >> r->man_bits, reach = (1ull << (exp_bits - 1)) - 1;
        if (exp > (uint64_t)r->bias + reach)
            abs = exp_mask;
        else if (exp <= (uint64_t)r->bias - reach)
            abs = 0;
    }
    return sign | abs;
}

void eval_reduce_precision(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *t = eval_type(e, out[0]);
    int64_t exp_bits = hlo_int(op, AK_EXPONENT_BITS, -1),
            man_bits = hlo_int(op, AK_MANTISSA_BITS, -1);
    eval_need(e, id, in[0].type == out[0].type, "operand and result must have one type");
    eval_need(e, id, exp_bits >= 1 && man_bits >= 0, "exponent_bits >= 1 and mantissa_bits >= 0");
    const DtypeRow *r = dtype_row(t->dtype);
    bool plain = r->flavour == FF_IEEE && t->dtype != DT_TF32; // others: as f32, which holds them
    const DtypeRow *in_type = plain ? r : dtype_row(DT_F32);
    exp_bits = exp_bits >= r->exp_bits ? in_type->exp_bits : exp_bits;
    man_bits = man_bits >= r->man_bits ? in_type->man_bits : man_bits;
    const uint8_t *src = in[0].data;
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    for (int64_t i = 0; i < t->elems; i++, src += r->bytes, dst += r->bytes) {
        if (!plain) {
            float x = (float)dtype_to_f64(t->dtype, src);
            uint64_t u = reduce_bits(in_type, bits_load(DT_F32, &x), (int)exp_bits, (int)man_bits);
            bits_store(DT_F32, &x, u);
            dtype_from_f64(t->dtype, dst, x);
            continue;
        }
        bits_store(t->dtype, dst,
                   reduce_bits(r, bits_load(t->dtype, src), (int)exp_bits, (int)man_bits));
    }
}

// The next value of the type from x towards y.
void eval_next_after(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]);
    const DtypeRow *r = dtype_row(t->dtype);
    eval_need(e, id, in[0].type == out[0].type && in[1].type == out[0].type,
              "operands and result must have one type");
    eval_need(e, id, dtype_is_float(t->dtype) && t->dtype != DT_TF32, "not defined on this type");
    const uint8_t *a = in[0].data, *b = in[1].data;
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    for (int64_t i = 0; i < t->elems; i++, a += r->bytes, b += r->bytes, dst += r->bytes) {
        double x = dtype_to_f64(t->dtype, a), y = dtype_to_f64(t->dtype, b);
        uint64_t sign_bit = 1ull << (r->bits - 1), u = bits_load(t->dtype, a);
        if (isnan(x) || isnan(y))
            dtype_from_f64(t->dtype, dst, NAN);
        else if (x == y)
            memcpy(dst, b, r->bytes);
        else if (x == 0)
            bits_store(t->dtype, dst, 1 | (y < 0 ? sign_bit : 0));
        else if (r->flavour == FF_FNUZ && u == (sign_bit | 1) && y > x)
            bits_store(t->dtype, dst, 0); // there is no -0
        else
            bits_store(t->dtype, dst, (y > x) == (x > 0) ? u + 1 : u - 1);
    }
}

// --- complex parts, is_finite, iota
// ----------------------------------------------------------------

// result = function of the wide operand, element by element, into another type
typedef double PartFn(bool is_complex, const double *x);

static double part_real(bool is_complex, const double *x) {
    (void)is_complex;
    return x[0];
}
static double part_imag(bool is_complex, const double *x) {
    return is_complex ? x[1] : 0;
}
static double part_abs(bool is_complex, const double *x) {
    return is_complex ? elem_hypot(x[0], x[1]) : fabs(x[0]);
}

static void parts(Eval *e, OpId id, const Tensor *in, Tensor *out, PartFn *fn) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    bool is_complex = dtype_is_complex(s->dtype);
    int want = s->dtype == DT_C64 ? DT_F32 : s->dtype == DT_C128 ? DT_F64 : s->dtype;
    eval_need(e, id, hlo_same_dims(s, t) && t->dtype == want && dtype_is_float(t->dtype),
              "the result must be the operand's real type");
    const uint8_t *src = in[0].data;
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    for (int64_t i = 0; i < t->elems; i++) {
        double x[2], v;
        eval_load(s->dtype, src + (size_t)i * dtype_bytes(s->dtype), 0, 1, x);
        v = fn(is_complex, x);
        eval_store(t->dtype, dst + (size_t)i * dtype_bytes(t->dtype), 1, &v);
    }
}

void eval_real(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    parts(e, id, in, out, part_real);
}
void eval_imag(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    parts(e, id, in, out, part_imag);
}

void eval_abs(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    if (dtype_is_complex(eval_type(e, in[0])->dtype))
        parts(e, id, in, out, part_abs);
    else
        eval_ew1(e, id, in, out);
}

void eval_complex(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    int part = t->dtype == DT_C64 ? DT_F32 : DT_F64;
    eval_need(e, id,
              in[0].type == in[1].type && dtype_is_complex(t->dtype) && s->dtype == part &&
                  hlo_same_dims(s, t),
              "two real tensors make one complex tensor of their shape");
    size_t elem = dtype_bytes(part);
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    for (size_t i = 0; i < (size_t)t->elems; i++) {
        memcpy(dst + 2 * i * elem, (const uint8_t *)in[0].data + i * elem, elem);
        memcpy(dst + (2 * i + 1) * elem, (const uint8_t *)in[1].data + i * elem, elem);
    }
}

static bool asks(HloOpcode code, double x) {
    return code == HLO_IS_FINITE         ? isfinite(x)
           : code == HLO_CHLO_IS_POS_INF ? x == INFINITY
           : code == HLO_CHLO_IS_NEG_INF ? x == -INFINITY
                                         : isinf(x);
}

void eval_is_finite(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    eval_need(e, id, hlo_same_dims(s, t) && dtype_is_float(s->dtype) && t->dtype == DT_I1,
              "takes floats, gives i1 of the same shape");
    const uint8_t *src = in[0].data;
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    for (int64_t i = 0; i < t->elems; i++, src += dtype_bytes(s->dtype))
        dst[i] = asks(eval_op_at(e, id)->code, dtype_to_f64(s->dtype, src));
}

void eval_iota(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    (void)in;
    const HloType *t = eval_type(e, out[0]);
    int64_t dim = hlo_int(eval_op_at(e, id), AK_IOTA_DIMENSION, -1);
    eval_need(e, id, dim >= 0 && dim < t->rank, "iota_dimension must name a dimension");
    size_t elem = dtype_bytes(t->dtype);
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    int64_t inner = 1;
    for (int i = (int)dim + 1; i < t->rank; i++)
        inner *= t->dims[i];
    for (int64_t i = 0; i < t->elems; i++) {
        int64_t index = i / inner % t->dims[dim];
        double w[2];
        eval_cast(DT_I64, t->dtype, 1, &index, w);
        eval_store(t->dtype, dst + (size_t)i * elem, 1, w);
    }
}
