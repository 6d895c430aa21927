// SPDX-License-Identifier: Apache-2.0
// vmath_f64_body.h — lanes of the f64 functions of base/elem_body.h, and of those f32 functions that are
// computed in double and rounded once. The bits are those of base/elem.h, which the evaluator calls.
#include "base/elem.h"
#include "base/elem_body.h"
#include "chip/host/gp_body_base.h"

#define X(name)                                                                                    \
    static void lane_##name##_f64(LANE_ARGS) {                                                     \
        UNUSED_ATTR;                                                                               \
        double *y = dst;                                                                           \
        const double *x = src[0];                                                                  \
        LANES(n) y[i] = e_result(e_##name(x[i]));                                                  \
    }
ELEM_ONE_ROWS(X)
#undef X
#define X(name)                                                                                    \
    static void lane_##name##_f64(LANE_ARGS) {                                                     \
        UNUSED_ATTR;                                                                               \
        double *y = dst;                                                                           \
        const double *a = src[0], *b = src[1];                                                     \
        LANES(n) y[i] = e_result(e_##name(a[i], b[i]));                                            \
    }
X(pow)
X(atan2)
#undef X

// Blocks without a large angle take the vector loop; the others go lane by lane through the exact
// reduction, which gives the small angles the same bits.
#define X(name)                                                                                    \
    static void lane_##name##_f64(LANE_ARGS) {                                                     \
        UNUSED_ATTR;                                                                               \
        for (size_t at = 0; at < n; at += 256) {                                                   \
            size_t m = n - at < 256 ? n - at : 256;                                                \
            const double *x = (const double *)src[0] + at;                                         \
            double *y = (double *)dst + at;                                                        \
            uint64_t large = 0;                                                                    \
            for (size_t i = 0; i < m; i++)                                                         \
                large |= !(e_abs(x[i]) < E_TURN_MAX);                                              \
            if (large)                                                                             \
                for (size_t i = 0; i < m; i++)                                                     \
                    y[i] = elem_##name(x[i]);                                                      \
            else                                                                                   \
                LANES(m) y[i] = e_result(e_##name##_of(e_turn_small(x[i]), x[i]));                 \
        }                                                                                          \
    }
ELEM_TURN_ROWS(X)
#undef X

#define X(name)                                                                                    \
    static void lane_##name##_f32(LANE_ARGS) {                                                     \
        UNUSED_ATTR;                                                                               \
        float *y = dst;                                                                            \
        const float *x = src[0];                                                                   \
        LANES(n) y[i] = (float)e_result(e_##name(x[i]));                                           \
    }
X(sinh) X(asinh) X(acosh) X(atanh) X(asin) X(acos) X(atan) X(erfc)
#undef X

static void lane_cosh_f32(LANE_ARGS) {
    UNUSED_ATTR;
    float *y = dst;
    const float *x = src[0];
    LANES(n) y[i] = (float)e_result(e_cosh_f32(x[i]));
}

// For both types.
#define ELEM_ROWS(S)                                                                               \
    [HLO_CHLO_SINH] = lane_sinh_##S, [HLO_CHLO_COSH] = lane_cosh_##S,                              \
    [HLO_CHLO_ASINH] = lane_asinh_##S, [HLO_CHLO_ACOSH] = lane_acosh_##S,                          \
    [HLO_CHLO_ATANH] = lane_atanh_##S, [HLO_CHLO_ASIN] = lane_asin_##S,                            \
    [HLO_CHLO_ACOS] = lane_acos_##S, [HLO_CHLO_ATAN] = lane_atan_##S,                              \
    [HLO_CHLO_ERFC] = lane_erfc_##S, [HLO_CHLO_TAN] = lane_tan_##S
