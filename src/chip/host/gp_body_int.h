// SPDX-License-Identifier: Apache-2.0
// gp_body_int.h — integer and bool lanes: two's complement, wrapping; what StableHLO leaves open
// follows XLA (division by zero gives all ones, remainder by zero the dividend, shift amounts are
// unsigned and may exceed the width).
#include "chip/host/gp_body_base.h"

#define INT_COMMON(S, T, U, BITS)                                                                  \
    static void lane_add_##S(LANE_ARGS) {                                                          \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = (U)(a[i] + b[i]);                                                          \
    }                                                                                              \
    static void lane_subtract_##S(LANE_ARGS) {                                                     \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = (U)(a[i] - b[i]);                                                          \
    }                                                                                              \
    static void lane_multiply_##S(LANE_ARGS) {                                                     \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = (U)((uint64_t)a[i] * b[i]);                                                \
    }                                                                                              \
    static void lane_maximum_##S(LANE_ARGS) {                                                      \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = a[i] > b[i] ? a[i] : b[i];                                                 \
    }                                                                                              \
    static void lane_minimum_##S(LANE_ARGS) {                                                      \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = a[i] < b[i] ? a[i] : b[i];                                                 \
    }                                                                                              \
    static void lane_clamp_##S(LANE_ARGS) {                                                        \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *lo = src[0], *x = src[1], *hi = src[2];                                           \
        LANES(n) {                                                                                 \
            T v = x[i] > lo[i] ? x[i] : lo[i];                                                     \
            y[i] = v < hi[i] ? v : hi[i];                                                          \
        }                                                                                          \
    }                                                                                              \
    static void lane_and_##S(LANE_ARGS) {                                                          \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = a[i] & b[i];                                                               \
    }                                                                                              \
    static void lane_or_##S(LANE_ARGS) {                                                           \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = a[i] | b[i];                                                               \
    }                                                                                              \
    static void lane_xor_##S(LANE_ARGS) {                                                          \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        LANES(n) y[i] = a[i] ^ b[i];                                                               \
    }                                                                                              \
    static void lane_not_##S(LANE_ARGS) {                                                          \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *x = src[0];                                                                       \
        LANES(n) y[i] = (U)~x[i];                                                                  \
    }                                                                                              \
    static void lane_negate_##S(LANE_ARGS) {                                                       \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *x = src[0];                                                                       \
        LANES(n) y[i] = (U)(0 - x[i]);                                                             \
    }                                                                                              \
    static void lane_shift_left_##S(LANE_ARGS) {                                                   \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        LANES(n) {                                                                                 \
            U v = (U)(a[i] << (b[i] & (BITS - 1)));                                                \
            y[i] = b[i] < BITS ? v : 0;                                                            \
        }                                                                                          \
    }                                                                                              \
    static void lane_shift_right_##S(LANE_ARGS) {                                                  \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        LANES(n) {                                                                                 \
            U v = (U)(a[i] >> (b[i] & (BITS - 1)));                                                \
            y[i] = b[i] < BITS ? v : 0;                                                            \
        }                                                                                          \
    }                                                                                              \
    static void lane_shift_sign_##S(LANE_ARGS) {                                                   \
        UNUSED_ATTR;                                                                               \
        int##BITS##_t *y = dst;                                                                    \
        const int##BITS##_t *a = src[0];                                                           \
        const U *b = src[1];                                                                       \
        LANES(n) {                                                                                 \
            U by = b[i] < BITS ? b[i] : BITS - 1;                                                  \
            y[i] = (int##BITS##_t)(a[i] >> by);                                                    \
        }                                                                                          \
    }                                                                                              \
    static void lane_clz_##S(LANE_ARGS) {                                                          \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *x = src[0];                                                                       \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = (U)(x[i] ? __builtin_clzll((uint64_t)x[i]) - (64 - BITS) : BITS);               \
    }                                                                                              \
    static void lane_popcnt_##S(LANE_ARGS) {                                                       \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *x = src[0];                                                                       \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = (U)__builtin_popcountll((uint64_t)x[i]);                                        \
    }                                                                                              \
    static void lane_compare_##S(LANE_ARGS) {                                                      \
        uint8_t *y = dst;                                                                          \
        const T *a = src[0], *b = src[1];                                                          \
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
    static void lane_square_##S(LANE_ARGS) {                                                       \
        const void *both[2] = {src[0], src[0]};                                                    \
        lane_multiply_##S(dst, both, n, attr);                                                     \
    }                                                                                              \
    static U power_bits_##S(U base, U expo) {                                                      \
        U r = 1;                                                                                   \
        for (; expo; expo >>= 1, base = (U)((uint64_t)base * base))                                \
            r = expo & 1 ? (U)((uint64_t)r * base) : r;                                            \
        return r;                                                                                  \
    }

#define SIGNED_LANES(S, T, U, BITS)                                                                \
    INT_COMMON(S, T, U, BITS)                                                                      \
    static void lane_divide_##S(LANE_ARGS) {                                                       \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = b[i] == 0 ? (T)-1 : b[i] == -1 ? (T)(U)(0 - (U)a[i]) : (T)(a[i] / b[i]);        \
    }                                                                                              \
    static void lane_remainder_##S(LANE_ARGS) {                                                    \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = b[i] == 0 ? a[i] : b[i] == -1 ? (T)0 : (T)(a[i] % b[i]);                        \
    }                                                                                              \
    static void lane_power_##S(LANE_ARGS) {                                                        \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            T x = a[i], e = b[i];                                                                  \
            if (e >= 0)                                                                            \
                y[i] = (T)power_bits_##S((U)x, (U)e);                                              \
            else                                                                                   \
                y[i] = x == 1 ? (T)1 : x == -1 ? (e & 1 ? (T)-1 : (T)1) : (T)0;                    \
        }                                                                                          \
    }                                                                                              \
    static void lane_abs_##S(LANE_ARGS) {                                                          \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) {                                                                                 \
            T neg = (T)(U)(0 - (U)x[i]);                                                           \
            y[i] = x[i] < 0 ? neg : x[i];                                                          \
        }                                                                                          \
    }                                                                                              \
    static void lane_sign_##S(LANE_ARGS) {                                                         \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const T *x = src[0];                                                                       \
        LANES(n) y[i] = (T)((x[i] > 0) - (x[i] < 0));                                              \
    }

#define UNSIGNED_LANES(S, T, U, BITS)                                                              \
    INT_COMMON(S, T, U, BITS)                                                                      \
    static void lane_divide_##S(LANE_ARGS) {                                                       \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = b[i] == 0 ? (U) ~(U)0 : (U)(a[i] / b[i]);                                       \
    }                                                                                              \
    static void lane_remainder_##S(LANE_ARGS) {                                                    \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = b[i] == 0 ? a[i] : (U)(a[i] % b[i]);                                            \
    }                                                                                              \
    static void lane_power_##S(LANE_ARGS) {                                                        \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *a = src[0], *b = src[1];                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = power_bits_##S(a[i], b[i]);                                                     \
    }                                                                                              \
    static void lane_abs_##S(LANE_ARGS) {                                                          \
        UNUSED_ATTR;                                                                               \
        memmove(dst, src[0], n * sizeof(U));                                                       \
    }                                                                                              \
    static void lane_sign_##S(LANE_ARGS) {                                                         \
        UNUSED_ATTR;                                                                               \
        U *y = dst;                                                                                \
        const U *x = src[0];                                                                       \
        LANES(n) y[i] = x[i] != 0;                                                                 \
    }

SIGNED_LANES(i8, int8_t, uint8_t, 8)
SIGNED_LANES(i16, int16_t, uint16_t, 16)
SIGNED_LANES(i32, int32_t, uint32_t, 32)
SIGNED_LANES(i64, int64_t, uint64_t, 64)
UNSIGNED_LANES(u8, uint8_t, uint8_t, 8)
UNSIGNED_LANES(u16, uint16_t, uint16_t, 16)
UNSIGNED_LANES(u32, uint32_t, uint32_t, 32)
UNSIGNED_LANES(u64, uint64_t, uint64_t, 64)

// x << a | x >> b, as a rotation is written; a and b are the same for all lanes.
static void turn_u32(LANE_ARGS) {
    UNUSED_ATTR;
    uint32_t *y = dst;
    const uint32_t *x = src[0];
    uint32_t left = *(const uint32_t *)src[1], right = *(const uint32_t *)src[2];
    uint32_t keep_left = left < 32 ? UINT32_MAX : 0, keep_right = right < 32 ? UINT32_MAX : 0;
    left &= 31, right &= 31;
    LANES(n) y[i] = (x[i] << left & keep_left) | (x[i] >> right & keep_right);
}

static void lane_not_bool(LANE_ARGS) {
    UNUSED_ATTR;
    uint8_t *y = dst;
    const uint8_t *x = src[0];
    LANES(n) y[i] = x[i] == 0;
}

#define SELECT_LANES(BYTES, T)                                                                     \
    static void lane_select_##BYTES(LANE_ARGS) {                                                   \
        UNUSED_ATTR;                                                                               \
        T *y = dst;                                                                                \
        const uint8_t *p = src[0];                                                                 \
        const T *a = src[1], *b = src[2];                                                          \
        LANES(n) {                                                                                 \
            T yes = a[i], no = b[i];                                                               \
            y[i] = p[i] ? yes : no;                                                                \
        }                                                                                          \
    }
SELECT_LANES(1, uint8_t)
SELECT_LANES(2, uint16_t)
SELECT_LANES(4, uint32_t)
SELECT_LANES(8, uint64_t)
static void lane_select_16(LANE_ARGS) {
    UNUSED_ATTR;
    uint64_t *y = dst;
    const uint8_t *p = src[0];
    const uint64_t *a = src[1], *b = src[2];
    for (size_t i = 0; i < n; i++) {
        const uint64_t *from = p[i] ? a + 2 * i : b + 2 * i;
        uint64_t lo = from[0], hi = from[1];
        y[2 * i] = lo, y[2 * i + 1] = hi;
    }
}

#define INT_ROWS(S)                                                                                \
    [HLO_ADD] = lane_add_##S, [HLO_SUBTRACT] = lane_subtract_##S,                                  \
    [HLO_MULTIPLY] = lane_multiply_##S, [HLO_DIVIDE] = lane_divide_##S,                            \
    [HLO_REMAINDER] = lane_remainder_##S, [HLO_POWER] = lane_power_##S,                            \
    [HLO_MAXIMUM] = lane_maximum_##S, [HLO_MINIMUM] = lane_minimum_##S,                            \
    [HLO_CLAMP] = lane_clamp_##S, [HLO_AND] = lane_and_##S, [HLO_OR] = lane_or_##S,                \
    [HLO_XOR] = lane_xor_##S, [HLO_NOT] = lane_not_##S, [HLO_NEGATE] = lane_negate_##S,            \
    [HLO_ABS] = lane_abs_##S, [HLO_SIGN] = lane_sign_##S, [HLO_CHLO_SQUARE] = lane_square_##S,     \
    [HLO_SHIFT_LEFT] = lane_shift_left_##S, [HLO_SHIFT_RIGHT_LOGICAL] = lane_shift_right_##S,      \
    [HLO_SHIFT_RIGHT_ARITHMETIC] = lane_shift_sign_##S, [HLO_COUNT_LEADING_ZEROS] = lane_clz_##S,  \
    [HLO_POPCNT] = lane_popcnt_##S, [HLO_COMPARE] = lane_compare_##S

// Sum and product of bools are or and and; they are stored as 0 and 1.
#define BOOL_ROWS                                                                                  \
    [HLO_ADD] = lane_or_u8, [HLO_MULTIPLY] = lane_and_u8, [HLO_MAXIMUM] = lane_or_u8,              \
    [HLO_MINIMUM] = lane_and_u8, [HLO_AND] = lane_and_u8, [HLO_OR] = lane_or_u8,                   \
    [HLO_XOR] = lane_xor_u8, [HLO_NOT] = lane_not_bool, [HLO_COMPARE] = lane_compare_u8,           \
    [HLO_CLAMP] = lane_clamp_u8
