// SPDX-License-Identifier: Apache-2.0
// gp_body_base.h — what the loop bodies share: bit views, and the promise that lanes are
// independent.
//
// The gp_body_*.h and vmath_body.h files hold static functions. Each gp_level_*.c includes them
// once under its own target options, so the same source becomes code for every host level.
#ifndef OTRN_CHIP_GP_BODY_BASE_H
#define OTRN_CHIP_GP_BODY_BASE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "chip/gpsimd/gp.h"

// dst may equal a source but never overlaps it otherwise: no test at run time is needed.
#if defined(__clang__)
#define LANES(n) _Pragma("clang loop vectorize(assume_safety)") for (size_t i = 0; i < (n); i++)
#else
#define LANES(n) _Pragma("GCC ivdep") for (size_t i = 0; i < (n); i++)
#endif

#define LANE_ARGS void *dst, const void *const *src, size_t n, const int16_t *attr
#define UNUSED_ATTR (void)attr

static inline float f32_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint32_t f32_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline double f64_of(uint64_t u) {
    double f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint64_t f64_bits(double f) {
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
// The sign of s on the magnitude of m.
static inline float f32_sign(float m, float s) {
    return f32_of((f32_bits(m) & 0x7fffffffu) | (f32_bits(s) & 0x80000000u));
}
static inline double f64_sign(double m, double s) {
    return f64_of((f64_bits(m) & 0x7fffffffffffffffu) | (f64_bits(s) & 0x8000000000000000u));
}
static inline float f32_abs(float x) { return f32_of(f32_bits(x) & 0x7fffffffu); }
static inline double f64_abs(double x) { return f64_of(f64_bits(x) & 0x7fffffffffffffffu); }

// Adding and taking away 1.5 * 2^52 rounds |x| < 2^51 to the nearest even integer.
#define F64_ROUND 0x1.8p52
#define F32_ROUND 0x1.8p23f

#endif
