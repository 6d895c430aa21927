// SPDX-License-Identifier: Apache-2.0
// gp_f64.c — elementary functions of f64 lanes, by libm. The chip has no f64: these exist so that
// programs run. Everything here is one call per lane.
#include <math.h>

#include "chip/gp.h"

#define F64_1(name, EXPR)                                                                          \
    static void name(void *dst, const void *const *src, size_t n, const int16_t *attr) {           \
        (void)attr;                                                                                \
        double *y = dst;                                                                           \
        const double *px = src[0];                                                                 \
        for (size_t i = 0; i < n; i++) {                                                           \
            double x = px[i];                                                                      \
            y[i] = EXPR;                                                                           \
        }                                                                                          \
    }
#define F64_2(name, EXPR)                                                                          \
    static void name(void *dst, const void *const *src, size_t n, const int16_t *attr) {           \
        (void)attr;                                                                                \
        double *y = dst;                                                                           \
        const double *pa = src[0], *pb = src[1];                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            double a = pa[i], b = pb[i];                                                           \
            y[i] = EXPR;                                                                           \
        }                                                                                          \
    }
F64_1(lane_exp, exp(x))
F64_1(lane_expm1, expm1(x))
F64_1(lane_log, log(x))
F64_1(lane_log1p, log1p(x))
F64_1(lane_tanh, tanh(x))
F64_1(lane_logistic, 1 / (1 + exp(-x)))
F64_1(lane_sin, sin(x))
F64_1(lane_cos, cos(x))
F64_1(lane_tan, tan(x))
F64_1(lane_rsqrt, 1 / sqrt(x))
F64_1(lane_cbrt, cbrt(x))
F64_1(lane_erf, erf(x))
F64_1(lane_erf_inv, vmath_erf_inv(x))
F64_2(lane_pow, pow(a, b))
F64_2(lane_atan2, atan2(a, b))

LaneFn *const lane_math_f64[HLO_OPCODE_COUNT] = {
    [HLO_EXPONENTIAL] = lane_exp,
    [HLO_EXPONENTIAL_MINUS_ONE] = lane_expm1,
    [HLO_LOG] = lane_log,
    [HLO_LOG_PLUS_ONE] = lane_log1p,
    [HLO_TANH] = lane_tanh,
    [HLO_LOGISTIC] = lane_logistic,
    [HLO_SINE] = lane_sin,
    [HLO_COSINE] = lane_cos,
    [HLO_TAN] = lane_tan,
    [HLO_RSQRT] = lane_rsqrt,
    [HLO_CBRT] = lane_cbrt,
    [HLO_CHLO_ERF] = lane_erf,
    [HLO_CHLO_ERF_INV] = lane_erf_inv,
    [HLO_POWER] = lane_pow,
    [HLO_ATAN2] = lane_atan2,
};
