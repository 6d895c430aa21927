// SPDX-License-Identifier: Apache-2.0
// eval_ew_int.c — elementwise ops on integers and bool.
//
// Wide integers are int64_t, sign- or zero-extended from the type; the store wraps at the type's
// width, so add, subtract, multiply and negate only need wrapping 64-bit arithmetic. Where the
// specification leaves a case open the choice is XLA's: division by zero gives -1 (all ones), a
// remainder by zero the dividend, shifts by the width or more shift everything out. On bool, add
// and maximum are or, multiply and minimum are and.
#include "hlo/eval_in.h"

static bool is_signed(int dtype) {
    return dtype_row(dtype)->cls == DC_SINT;
}

static uint64_t low_bits(int dtype, int64_t x) { // the type's own bits, zero-extended
    return (uint64_t)x << (64 - dtype_row(dtype)->bits) >> (64 - dtype_row(dtype)->bits);
}

static int64_t divide(int dtype, int64_t x, int64_t y) {
    if (y == 0)
        return -1;
    if (!is_signed(dtype))
        return (int64_t)((uint64_t)x / (uint64_t)y);
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y; // INT_MIN / -1 wraps to INT_MIN
}

static int64_t remain(int dtype, int64_t x, int64_t y) {
    if (y == 0)
        return x;
    if (!is_signed(dtype))
        return (int64_t)((uint64_t)x % (uint64_t)y);
    return y == -1 ? 0 : x % y;
}

static int64_t power(int dtype, int64_t x, int64_t y) {
    if (is_signed(dtype) && y < 0)
        return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    uint64_t r = 1, base = (uint64_t)x;
    for (uint64_t k = (uint64_t)y; k; k >>= 1, base *= base)
        if (k & 1)
            r *= base;
    return (int64_t)r;
}

static bool less(int dtype, int64_t x, int64_t y) {
    return is_signed(dtype) ? x < y : (uint64_t)x < (uint64_t)y;
}

static int64_t shift(int dtype, HloOpcode code, int64_t x, int64_t y) {
    uint64_t by = low_bits(dtype, y);
    bool out = by >= dtype_row(dtype)->bits;
    switch (code) {
    case HLO_SHIFT_LEFT:
        return out ? 0 : (int64_t)((uint64_t)x << by);
    case HLO_SHIFT_RIGHT_LOGICAL:
        return out ? 0 : (int64_t)(low_bits(dtype, x) >> by);
    default: { // arithmetic: the sign bit of the type's width, whatever its signedness
        int up = 64 - dtype_row(dtype)->bits;
        int64_t s = (int64_t)((uint64_t)x << up) >> up;
        return s >> (out ? 63 : by);
    }
    }
}

static int64_t leading_zeros(int dtype, int64_t x) {
    uint64_t v = low_bits(dtype, x);
    int bits = dtype_row(dtype)->bits;
    return v ? __builtin_clzll(v) - (64 - bits) : bits;
}

// The upper half of the product of twice the type's width.
static int64_t multiply_high(int dtype, int64_t x, int64_t y) {
    int bits = dtype_row(dtype)->bits;
    if (is_signed(dtype))
        return (int64_t)((__int128)x * y >> bits);
    return (int64_t)((unsigned __int128)(uint64_t)x * (uint64_t)y >> bits);
}

#define UNARY(name, expr)                                                                          \
    static void i_##name(int dtype, size_t n, void *r, const void *a, const void *b) {             \
        (void)dtype, (void)b;                                                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            int64_t x = ((const WideInt *)a)[i];                                                   \
            ((WideInt *)r)[i] = (int64_t)(expr);                                                   \
        }                                                                                          \
    }
#define BINARY(name, expr)                                                                         \
    static void i_##name(int dtype, size_t n, void *r, const void *a, const void *b) {             \
        (void)dtype;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            int64_t x = ((const WideInt *)a)[i], y = ((const WideInt *)b)[i];                      \
            ((WideInt *)r)[i] = (int64_t)(expr);                                                   \
        }                                                                                          \
    }

UNARY(abs, x < 0 && is_signed(dtype) ? 0 - (uint64_t)x : (uint64_t)x)
UNARY(clz, leading_zeros(dtype, x))
UNARY(negate, 0 - (uint64_t)x)
UNARY(not, dtype == DT_I1 ? !x : ~x)
UNARY(popcnt, __builtin_popcountll(low_bits(dtype, x)))
UNARY(sign, x == 0 ? 0 : x < 0 && is_signed(dtype) ? -1 : 1)
UNARY(square, (uint64_t)x *(uint64_t)x)
BINARY(add, (uint64_t)x + (uint64_t)y)
BINARY(and, x &y)
BINARY(divide, divide(dtype, x, y))
BINARY(maximum, less(dtype, x, y) ? y : x)
BINARY(minimum, less(dtype, y, x) ? y : x)
BINARY(multiply, (uint64_t)x *(uint64_t)y)
BINARY(multiply_high, multiply_high(dtype, x, y))
BINARY(or, x | y)
BINARY(power, power(dtype, x, y))
BINARY(remainder, remain(dtype, x, y))
BINARY(shift_left, shift(dtype, HLO_SHIFT_LEFT, x, y))
BINARY(shift_arithmetic, shift(dtype, HLO_SHIFT_RIGHT_ARITHMETIC, x, y))
BINARY(shift_logical, shift(dtype, HLO_SHIFT_RIGHT_LOGICAL, x, y))
BINARY(subtract, (uint64_t)x - (uint64_t)y)
BINARY(xor, x ^ y)

WideFn *eval_ew_int(HloOpcode code) {
    static WideFn *const table[HLO_OPCODE_COUNT] = {
        [HLO_ABS] = i_abs,
        [HLO_ADD] = i_add,
        [HLO_AND] = i_and,
        [HLO_CHLO_MULHI] = i_multiply_high,
        [HLO_CHLO_SQUARE] = i_square,
        [HLO_COUNT_LEADING_ZEROS] = i_clz,
        [HLO_DIVIDE] = i_divide,
        [HLO_MAXIMUM] = i_maximum,
        [HLO_MINIMUM] = i_minimum,
        [HLO_MULTIPLY] = i_multiply,
        [HLO_NEGATE] = i_negate,
        [HLO_NOT] = i_not,
        [HLO_OR] = i_or,
        [HLO_POPCNT] = i_popcnt,
        [HLO_POWER] = i_power,
        [HLO_REMAINDER] = i_remainder,
        [HLO_SHIFT_LEFT] = i_shift_left,
        [HLO_SHIFT_RIGHT_ARITHMETIC] = i_shift_arithmetic,
        [HLO_SHIFT_RIGHT_LOGICAL] = i_shift_logical,
        [HLO_SIGN] = i_sign,
        [HLO_SUBTRACT] = i_subtract,
        [HLO_XOR] = i_xor,
    };
    return table[code];
}
