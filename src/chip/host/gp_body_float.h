// SPDX-License-Identifier: Apache-2.0
// gp_body_float.h — f32 and f64 lanes: arithmetic, comparisons, rounding. Meaning: IEEE 754 and the
// StableHLO rules for maximum, minimum (NaN wins, +0 above -0), clamp and sign.
#include "chip/host/gp_body_base.h"

static inline float max_f32(float a, float b) {
    float r = a > b ? a : b;
    r = a == b ? f32_of(f32_bits(a) & f32_bits(b)) : r;
    return a != a ? a : r;
}
static inline float min_f32(float a, float b) {
    float r = a < b ? a : b;
    r = a == b ? f32_of(f32_bits(a) | f32_bits(b)) : r;
    return a != a ? a : r;
}
static inline double max_f64(double a, double b) {
    double r = a > b ? a : b;
    r = a == b ? f64_of(f64_bits(a) & f64_bits(b)) : r;
    return a != a ? a : r;
}
static inline double min_f64(double a, double b) {
    double r = a < b ? a : b;
    r = a == b ? f64_of(f64_bits(a) | f64_bits(b)) : r;
    return a != a ? a : r;
}

// Total order as a signed integer: negative values have their magnitude bits inverted.
static inline int32_t order_f32(float x) {
    int32_t u = (int32_t)f32_bits(x);
    return u < 0 ? u ^ 0x7fffffff : u;
}
static inline int64_t order_f64(double x) {
    int64_t u = (int64_t)f64_bits(x);
    return u < 0 ? u ^ 0x7fffffffffffffff : u;
}
#define COMPARE_ORDER(S, T, I, INTS)                                                               \
    static void compare_order_##S(uint8_t *y, const T *a, const T *b, size_t n,                    \
                                  const int16_t *attr) {                                           \
        I ka[256], kb[256];                                                                        \
        for (size_t at = 0; at < n; at += 256) {                                                   \
            size_t m = n - at < 256 ? n - at : 256;                                                \
            for (size_t i = 0; i < m; i++)                                                         \
                ka[i] = order_##S(a[at + i]), kb[i] = order_##S(b[at + i]);                        \
            lane_compare_##INTS(y + at, (const void *[2]){ka, kb}, m, attr);                       \
        }                                                                                          \
    }
COMPARE_ORDER(f32, float, int32_t, i32)
COMPARE_ORDER(f64, double, int64_t, i64)

// Magnitudes from 2^23 (2^52) up are integers already.
static inline float round_even_f32(float x) {
    float a = f32_abs(x), r = (a + 0x1p23f) - 0x1p23f;
    return a < 0x1p23f ? f32_sign(r, x) : x;
}
static inline double round_even_f64(double x) {
    double a = f64_abs(x), r = (a + 0x1p52) - 0x1p52;
    return a < 0x1p52 ? f64_sign(r, x) : x;
}

// Nearly always there is none: one look over a few, and stores only where it found some.
#define QUIET(S, T, I, IS_NAN, ONE)                                                                \
    static void quiet_##S(void *y, size_t n) {                                                     \
        T *at = y;                                                                                 \
        for (size_t from = 0; from < n; from += 256) {                                             \
            size_t m = n - from < 256 ? n - from : 256;                                            \
            I any = 0;                                                                             \
            for (size_t i = 0; i < m; i++)                                                         \
                any |= (I)(IS_NAN(at[from + i]));                                                  \
            for (size_t i = from; any && i < from + m; i++)                                        \
                at[i] = IS_NAN(at[i]) ? ONE : at[i];                                               \
        }                                                                                          \
    }
#define IS_NAN_BITS_32(u) (((u) & 0x7fffffffu) > 0x7f800000u)
#define IS_NAN_BITS_64(u) (((u) & 0x7fffffffffffffffu) > 0x7ff0000000000000u)
#define IS_NAN_BITS_16(u) (((u) & 0x7fffu) > 0x7f80u)
QUIET(f32, uint32_t, uint32_t, IS_NAN_BITS_32, 0x7fc00000u)
QUIET(f64, uint64_t, uint64_t, IS_NAN_BITS_64, 0x7ff8000000000000u)
QUIET(bf16, uint16_t, uint16_t, IS_NAN_BITS_16, 0x7fc0u)
static void quiet_c64(void *y, size_t n) { quiet_f32(y, 2 * n); }
static void quiet_c128(void *y, size_t n) { quiet_f64(y, 2 * n); }

#define FLOAT_LANES(S, T, U, ABS, SIGN, ONE_EXP)                                                   \
    static inline T floor_##S(T x) {                                                               \
        T r = round_even_##S(x), down = r - 1;                                                     \
        return SIGN(r > x ? down : r, x);                                                          \
    }                                                                                              \
    static inline T ceil_##S(T x) {                                                                \
        T r = round_even_##S(x), up = r + 1;                                                       \
        return SIGN(r < x ? up : r, x);                                                            \
    }                                                                                              \
    static inline T round_away_##S(T x) {                                                          \
        T a = ABS(x), r = round_even_##S(a), up = r + 1;                                           \
        return SIGN(a - r == (T)0.5 ? up : r, x);                                                  \
    }                                                                                              \
    static inline T sign_##S(T x) {                                                                \
        T r = x > 0 ? (T)1 : (T)-1;                                                                \
        return (x == 0) | (x != x) ? x : r;                                                        \
    }                                                                                              \
    static void lane_add_##S(LANE_ARGS) {                                                          \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = a[i] + b[i];                                                               \
    }                                                                                              \
    static void lane_subtract_##S(LANE_ARGS) {                                                     \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = a[i] - b[i];                                                               \
    }                                                                                              \
    static void lane_multiply_##S(LANE_ARGS) {                                                     \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = a[i] * b[i];                                                               \
    }                                                                                              \
    static void lane_divide_##S(LANE_ARGS) {                                                       \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = a[i] / b[i];                                                               \
    }                                                                                              \
    static void lane_maximum_##S(LANE_ARGS) {                                                      \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = max_##S(a[i], b[i]);                                                       \
    }                                                                                              \
    static void lane_minimum_##S(LANE_ARGS) {                                                      \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = min_##S(a[i], b[i]);                                                       \
    }                                                                                              \
    static void lane_clamp_##S(LANE_ARGS) {                                                        \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *lo = src[0], *x = src[1], *hi = src[2];                                           \
        LANES(n) y[i] = min_##S(max_##S(x[i], lo[i]), hi[i]);                                      \
    }                                                                                              \
    static void lane_negate_##S(LANE_ARGS) {                                                       \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = -x[i];                                                                     \
    }                                                                                              \
    static void lane_abs_##S(LANE_ARGS) {                                                          \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = ABS(x[i]);                                                                 \
    }                                                                                              \
    static void lane_sign_##S(LANE_ARGS) {                                                         \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = sign_##S(x[i]);                                                            \
    }                                                                                              \
    static void lane_square_##S(LANE_ARGS) {                                                       \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = x[i] * x[i];                                                               \
    }                                                                                              \
    static void lane_floor_##S(LANE_ARGS) {                                                        \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = floor_##S(x[i]);                                                           \
    }                                                                                              \
    static void lane_ceil_##S(LANE_ARGS) {                                                         \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = ceil_##S(x[i]);                                                            \
    }                                                                                              \
    static void lane_round_even_##S(LANE_ARGS) {                                                   \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = round_even_##S(x[i]);                                                      \
    }                                                                                              \
    static void lane_round_away_##S(LANE_ARGS) {                                                   \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = round_away_##S(x[i]);                                                      \
    }                                                                                              \
    static void lane_is_finite_##S(LANE_ARGS) {                                                    \
        UNUSED_ATTR;                                                                               \
        uint8_t *y = dst;                                                                          \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = ABS(x[i]) < (T)INFINITY;                                                   \
    }                                                                                              \
    static void lane_copy_##S(LANE_ARGS) {                                                         \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = x[i];                                                                      \
    }                                                                                              \
    static void lane_zero_##S(LANE_ARGS) {                                                         \
        UNUSED_ATTR;                                                                               \
        (void)src;                                                                                 \
        memset(dst, 0, n * sizeof(T));                                                             \
    }                                                                                              \
    static void lane_complex_##S(LANE_ARGS) {                                                      \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *re = src[0], *im = src[1];                                                        \
        LANES(n) y[2 * i] = re[i], y[2 * i + 1] = im[i];                                           \
    }                                                                                              \
    static void lane_remainder_##S(LANE_ARGS) { /* exact by definition, so libm's will do */       \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = (T)fmod(a[i], b[i]);                                                            \
    }                                                                                              \
    static void lane_compare_##S(LANE_ARGS) {                                                      \
        uint8_t *y = dst;                                                                          \
        const T *a = src[0], *b = src[1];                                                          \
        if (attr[1] == CMPT_TOTALORDER) {                                                          \
            compare_order_##S(y, a, b, n, attr);                                                   \
            return;                                                                                \
        }                                                                                          \
        if (attr[0] == CMP_GE || attr[0] == CMP_GT)                                                \
            a = src[1], b = src[0];                                                                \
        switch (attr[0]) {                                                                         \
        case CMP_EQ: LANES(n) y[i] = a[i] == b[i]; break;                                          \
        case CMP_NE: LANES(n) y[i] = a[i] != b[i]; break;                                          \
        case CMP_GE:                                                                               \
        case CMP_LE: LANES(n) y[i] = a[i] <= b[i]; break;                                          \
        default: LANES(n) y[i] = a[i] < b[i]; break;                                               \
        }                                                                                          \
    }                                                                                              \
    /* Mantissa to nearest even first, then the exponent range: above it infinity, below it 0. */  \
    static void lane_reduce_precision_##S(LANE_ARGS) {                                             \
        const int man = (int)(sizeof(T) == 4 ? 23 : 52), bias = (1 << (ONE_EXP - 1)) - 1;          \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        int e = attr[0] < ONE_EXP ? attr[0] : ONE_EXP, m = attr[1] < man ? attr[1] : man;          \
        int drop = man - m;                                                                        \
        U unit = (U)1 << drop, half = unit >> 1, sign_bit = (U)1 << (sizeof(U) * 8 - 1);           \
        int top = (1 << (e - 1)) - 1; /* bias of the narrow format */                              \
        U least = (U)(bias + 1 - top) << man, inf = (U)(2 * bias + 1) << man;                      \
        U over = (U)(bias + top + 1) << man;                                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            U u, a, r;                                                                             \
            memcpy(&u, &x[i], sizeof u);                                                           \
            a = u & ~sign_bit;                                                                     \
            r = drop ? (a + (half - 1) + (a / unit & 1)) & ~(unit - 1) : a;                        \
            r = r >= over ? inf : r;                                                               \
            r = e < ONE_EXP && r < least ? 0 : r;                                                  \
            r = a > inf ? (m ? a : inf) : r;                                                       \
            r |= u & sign_bit;                                                                     \
            memcpy(&y[i], &r, sizeof r);                                                           \
        }                                                                                          \
    }

FLOAT_LANES(f32, float, uint32_t, f32_abs, f32_sign, 8)
FLOAT_LANES(f64, double, uint64_t, f64_abs, f64_sign, 11)

#define MATH1(name)                                                                                \
    static void lane_##name##_f32(LANE_ARGS) {                                                     \
        UNUSED_ATTR;                                                                               \
        vm_##name(dst, src[0], n);                                                                 \
    }
#define MATH2(name)                                                                                \
    static void lane_##name##_f32(LANE_ARGS) {                                                     \
        UNUSED_ATTR;                                                                               \
        vm_##name(dst, src[0], src[1], n);                                                         \
    }
VMATH1_ROWS(MATH1)
VMATH2_ROWS(MATH2)
static void lane_sqrt_f64(LANE_ARGS) {
    UNUSED_ATTR;
    vd_sqrt(dst, src[0], n);
}

#define FLOAT_ROWS(S)                                                                              \
    [HLO_ADD] = lane_add_##S, [HLO_SUBTRACT] = lane_subtract_##S,                                  \
    [HLO_MULTIPLY] = lane_multiply_##S, [HLO_DIVIDE] = lane_divide_##S,                            \
    [HLO_MAXIMUM] = lane_maximum_##S, [HLO_MINIMUM] = lane_minimum_##S,                            \
    [HLO_CLAMP] = lane_clamp_##S, [HLO_NEGATE] = lane_negate_##S, [HLO_ABS] = lane_abs_##S,        \
    [HLO_SIGN] = lane_sign_##S, [HLO_CHLO_SQUARE] = lane_square_##S, [HLO_FLOOR] = lane_floor_##S, \
    [HLO_CEIL] = lane_ceil_##S, [HLO_ROUND_NEAREST_EVEN] = lane_round_even_##S,                    \
    [HLO_ROUND_NEAREST_AFZ] = lane_round_away_##S, [HLO_IS_FINITE] = lane_is_finite_##S,           \
    [HLO_REAL] = lane_copy_##S, [HLO_IMAG] = lane_zero_##S, [HLO_COMPLEX] = lane_complex_##S,      \
    [HLO_REMAINDER] = lane_remainder_##S, [HLO_COMPARE] = lane_compare_##S,                        \
    [HLO_REDUCE_PRECISION] = lane_reduce_precision_##S

#define MATH_ROWS(S)                                                                               \
    [HLO_EXPONENTIAL] = lane_exp_##S, [HLO_EXPONENTIAL_MINUS_ONE] = lane_expm1_##S,                \
    [HLO_LOG] = lane_log_##S, [HLO_LOG_PLUS_ONE] = lane_log1p_##S, [HLO_TANH] = lane_tanh_##S,     \
    [HLO_LOGISTIC] = lane_logistic_##S, [HLO_SINE] = lane_sin_##S, [HLO_COSINE] = lane_cos_##S,    \
    [HLO_TAN] = lane_tan_##S, [HLO_SQRT] = lane_sqrt_##S, [HLO_RSQRT] = lane_rsqrt_##S,            \
    [HLO_CBRT] = lane_cbrt_##S, [HLO_CHLO_ERF] = lane_erf_##S,                                     \
    [HLO_CHLO_ERF_INV] = lane_erf_inv_##S, [HLO_POWER] = lane_pow_##S,                             \
    [HLO_ATAN2] = lane_atan2_##S
