// SPDX-License-Identifier: Apache-2.0
// gp_body_bf16.h — ops on bf16, widened, computed in f32 and rounded inside the loop. Ops that are not here go over
// blocks of f32 (gp_lane.c), which gives the same bits and is quicker for longer functions.
#include "chip/host/gp_body_base.h"

// tanh_one with less of everything. The relative error is below 2^-17, and every one of the 2^16 results is the one
// nearest to the exact value, as tanh_one's are when they are rounded.
static inline float tanh_short(float x) {
    float a = f32_abs(x), b = a > 10.0f ? 20.0f : a + a; // NaN stays NaN
    float shifted = b * 0x1.715476p+0f + F32_ROUND, r = b - (shifted - F32_ROUND) * 0x1.62e430p-1f, r2 = r * r;
    float p = r + r2 * ((0.5f + r * 0x1.5554d8p-3f) + r2 * (0x1.555516p-5f + r * 0x1.12106cp-7f));
    float s = f32_of((f32_bits(shifted) << 23) + 0x3f800000u), t = s * p + (s - 1.0f);
    return f32_sign(t / (t + 2.0f), x);
}
NOINLINE static void lane_tanh_bf16(LANE_ARGS) {
    UNUSED_ATTR;
    uint16_t *y = dst;
    const uint16_t *x = src[0];
    LANES(n) y[i] = bf16_of_f32(tanh_short(f32_of_bf16(x[i])));
}

#define BF2(name, EXPR)                                                                            \
    static void lane_##name##_bf16(LANE_ARGS) {                                                    \
        UNUSED_ATTR;                                                                               \
        uint16_t *y = dst;                                                                         \
        const uint16_t *p = src[0], *q = src[1];                                                   \
        LANES(n) {                                                                                 \
            float a = f32_of_bf16(p[i]), b = f32_of_bf16(q[i]);                                    \
            y[i] = bf16_of_f32(EXPR);                                                              \
        }                                                                                          \
    }
BF2(add, a + b)
BF2(subtract, a - b)
BF2(multiply, a *b)
BF2(divide, a / b)
BF2(maximum, max_f32(a, b))
BF2(minimum, min_f32(a, b))

#define BF16_ROWS                                                                                  \
    [HLO_TANH] = lane_tanh_bf16, [HLO_ADD] = lane_add_bf16, [HLO_SUBTRACT] = lane_subtract_bf16,   \
    [HLO_MULTIPLY] = lane_multiply_bf16, [HLO_DIVIDE] = lane_divide_bf16,                          \
    [HLO_MAXIMUM] = lane_maximum_bf16, [HLO_MINIMUM] = lane_minimum_bf16
