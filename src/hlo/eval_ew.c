// SPDX-License-Identifier: Apache-2.0
// eval_ew.c — elementwise ops: the frame around them, and their meaning on floats.
//
// The frame widens a chunk of each operand, applies the op's function to the chunk and stores it.
// On floats each function is one line of double arithmetic: for f32 and narrower, add, subtract,
// multiply, divide and sqrt in double rounded once give the IEEE result of the type itself, and the
// other functions are those of base/elem.h rounded once.
#include <math.h>

#include "base/elem.h"
#include "hlo/eval_in.h"

#define UNARY(name, expr)                                                                          \
    static void f_##name(int dtype, size_t n, void *r, const void *a, const void *b) {             \
        (void)dtype, (void)b;                                                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            double x = ((const double *)a)[i];                                                     \
            ((double *)r)[i] = (expr);                                                             \
        }                                                                                          \
    }
#define BINARY(name, expr)                                                                         \
    static void f_##name(int dtype, size_t n, void *r, const void *a, const void *b) {             \
        (void)dtype;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            double x = ((const double *)a)[i], y = ((const double *)b)[i];                         \
            ((double *)r)[i] = (expr);                                                             \
        }                                                                                          \
    }

static double sign(double x) { // keeps the zeros and NaN
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static double maximum(double x, double y) { // NaN wins, then +0 over -0
    if (isnan(x) || isnan(y))
        return x + y;
    if (x == y)
        return signbit(x) ? y : x;
    return x > y ? x : y;
}

static double minimum(double x, double y) {
    if (isnan(x) || isnan(y))
        return x + y;
    if (x == y)
        return signbit(x) ? x : y;
    return x < y ? x : y;
}

UNARY(acos, elem_acos(x))
UNARY(acosh, elem_acosh(x))
UNARY(asin, elem_asin(x))
UNARY(asinh, elem_asinh(x))
UNARY(atan, elem_atan(x))
UNARY(atanh, elem_atanh(x))
UNARY(bessel_i1e, elem_bessel_i1e(x))
UNARY(cbrt, elem_cbrt(x))
UNARY(ceil, ceil(x))
UNARY(cosh, dtype == DT_F64 ? elem_cosh(x) : elem_cosh_f32((float)x))
UNARY(cosine, elem_cos(x))
UNARY(digamma, elem_digamma(x))
UNARY(erf, elem_erf(x))
UNARY(erf_inv, elem_erf_inv(x))
UNARY(erfc, elem_erfc(x))
UNARY(exponential, elem_exp(x))
UNARY(expm1, elem_expm1(x))
UNARY(floor, floor(x))
UNARY(lgamma, elem_lgamma(x))
UNARY(log, elem_log(x))
UNARY(log1p, elem_log1p(x))
UNARY(logistic, elem_logistic(x))
UNARY(conj, x)
UNARY(negate, -x)
UNARY(round_afz, round(x))
UNARY(round_even, nearbyint(x)) // the rounding mode is never changed
UNARY(rsqrt, elem_rsqrt(x))
UNARY(sign, sign(x))
UNARY(sine, elem_sin(x))
UNARY(sinh, elem_sinh(x))
UNARY(sqrt, sqrt(x))
UNARY(square, x *x)
UNARY(tan, elem_tan(x))
UNARY(tanh, elem_tanh(x))
UNARY(abs, fabs(x))
BINARY(add, x + y)
BINARY(atan2, elem_atan2(x, y))
BINARY(divide, x / y)
BINARY(maximum, maximum(x, y))
BINARY(minimum, minimum(x, y))
BINARY(multiply, x *y)
BINARY(polygamma, elem_polygamma(x, y))
BINARY(power, elem_pow(x, y))
BINARY(remainder, fmod(x, y))
BINARY(subtract, x - y)
BINARY(zeta, elem_zeta(x, y))

// NULL when the op is not defined on floats
static WideFn *eval_ew_float(HloOpcode code) {
    static WideFn *const table[HLO_OPCODE_COUNT] = {
        [HLO_ABS] = f_abs,
        [HLO_ADD] = f_add,
        [HLO_ATAN2] = f_atan2,
        [HLO_CBRT] = f_cbrt,
        [HLO_CEIL] = f_ceil,
        [HLO_CHLO_ACOS] = f_acos,
        [HLO_CHLO_ACOSH] = f_acosh,
        [HLO_CHLO_ASIN] = f_asin,
        [HLO_CHLO_ASINH] = f_asinh,
        [HLO_CHLO_ATAN] = f_atan,
        [HLO_CHLO_ATANH] = f_atanh,
        [HLO_CHLO_BESSEL_I1E] = f_bessel_i1e,
        [HLO_CHLO_CONJ] = f_conj,
        [HLO_CHLO_COSH] = f_cosh,
        [HLO_CHLO_DIGAMMA] = f_digamma,
        [HLO_CHLO_ERF] = f_erf,
        [HLO_CHLO_ERF_INV] = f_erf_inv,
        [HLO_CHLO_ERFC] = f_erfc,
        [HLO_CHLO_LGAMMA] = f_lgamma,
        [HLO_CHLO_POLYGAMMA] = f_polygamma,
        [HLO_CHLO_SINH] = f_sinh,
        [HLO_CHLO_SQUARE] = f_square,
        [HLO_CHLO_TAN] = f_tan,
        [HLO_CHLO_ZETA] = f_zeta,
        [HLO_COSINE] = f_cosine,
        [HLO_DIVIDE] = f_divide,
        [HLO_EXPONENTIAL] = f_exponential,
        [HLO_EXPONENTIAL_MINUS_ONE] = f_expm1,
        [HLO_FLOOR] = f_floor,
        [HLO_LOG] = f_log,
        [HLO_LOG_PLUS_ONE] = f_log1p,
        [HLO_LOGISTIC] = f_logistic,
        [HLO_MAXIMUM] = f_maximum,
        [HLO_MINIMUM] = f_minimum,
        [HLO_MULTIPLY] = f_multiply,
        [HLO_NEGATE] = f_negate,
        [HLO_POWER] = f_power,
        [HLO_REMAINDER] = f_remainder,
        [HLO_ROUND_NEAREST_AFZ] = f_round_afz,
        [HLO_ROUND_NEAREST_EVEN] = f_round_even,
        [HLO_RSQRT] = f_rsqrt,
        [HLO_SIGN] = f_sign,
        [HLO_SINE] = f_sine,
        [HLO_SQRT] = f_sqrt,
        [HLO_SUBTRACT] = f_subtract,
        [HLO_TAN] = f_tan,
        [HLO_TANH] = f_tanh,
    };
    return table[code];
}

WideFn *eval_ew(HloOpcode code, int dtype) {
    switch (eval_wide_kind(dtype)) {
    case WIDE_F:
        return eval_ew_float(code);
    case WIDE_I:
        return eval_ew_int(code);
    default:
        return eval_ew_complex(code);
    }
}

// --- the frame
// -------------------------------------------------------------------------------------

static void frame(Eval *e, OpId id, const Tensor *in, int operands, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *t = eval_type(e, out[0]);
    for (int k = 0; k < operands; k++)
        eval_need(e, id, in[k].type == out[0].type, "operands and result must have one type");
    WideFn *fn = eval_ew(op->code, t->dtype);
    eval_need(e, id, fn != NULL, "not defined on this element type");
    size_t elem = dtype_bytes(t->dtype), total = (size_t)t->elems;
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    const uint8_t *a = in[0].data, *b = operands > 1 ? in[1].data : NULL;
    double wa[2 * EVAL_CHUNK], wb[2 * EVAL_CHUNK];
    for (size_t at = 0; at < total; at += EVAL_CHUNK) {
        size_t n = total - at < EVAL_CHUNK ? total - at : EVAL_CHUNK;
        eval_load(t->dtype, a + at * elem, (int64_t)elem, n, wa);
        if (b)
            eval_load(t->dtype, b + at * elem, (int64_t)elem, n, wb);
        fn(t->dtype, n, wa, wa, wb);
        eval_store_computed(t->dtype, dst + at * elem, n, wa);
    }
}

void eval_ew1(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    frame(e, id, in, 1, out);
}
void eval_ew2(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    frame(e, id, in, 2, out);
}
