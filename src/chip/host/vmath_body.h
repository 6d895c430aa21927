// SPDX-License-Identifier: Apache-2.0
// vmath_body.h — the f32 functions of vmath.h: double cores, then one loop per function.
//
// Polynomials are near-minimax fits at Chebyshev nodes made with 40 digits; the relative error of
// each stands beside it. Selections are written as conditional expressions over values that are
// both computed: the compiler blends, no lane branches.
#include "chip/host/gp_body_base.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define NOINLINE __attribute__((noinline)) // called from two places each

#define LOG2_E 0x1.71547652b82fep+0
#define LN_2 0x1.62e42fefa39efp-1
#define PI_4 0x1.921fb54442d18p-1
#define PI_2 0x1.921fb54442d18p+0
#define PI_1 0x1.921fb54442d18p+1

static inline double d_clamp(double x, double lo, double hi) { // NaN stays NaN
    x = x < lo ? lo : x;
    return x > hi ? hi : x;
}

// 2^t for |t| <= 1000. The integer part goes straight into the exponent; the rest is 1 + r q(r), so
// that 2^t - 1 keeps its relative accuracy near zero. q: 2^-31.8.
static inline double d_exp2(double t) {
    double shifted = t + F64_ROUND;
    double r = t - (shifted - F64_ROUND);
    double r2 = r * r;
    double low = (0x1.62e42fefa39efp-1 + r * 0x1.ebfbe045f4d3cp-3) +
                 r2 * (0x1.c6b08d883dca1p-5 + r * 0x1.3b2a1b7152bf1p-7);
    double high = (0x1.5d879ead06a99p-10 + r * 0x1.443fffc90da44p-13) + r2 * 0x1.00a5815946400p-16;
    double p = 1.0 + r * (low + (r2 * r2) * high);
    return f64_of(f64_bits(p) + (f64_bits(shifted) << 52));
}

// x = m 2^k with m in [sqrt(1/2), sqrt(2)), x positive and normal: log(m) by the series of
// 2 atanh(s), s = (m - 1) / (m + 1). Error 2^-45.
static inline double d_log_parts(double x, double *k) {
    uint64_t bits = f64_bits(x), half = 0x3fe6a09e667f3bcdu;     // sqrt(1/2)
    uint64_t biased = (bits - half + ((uint64_t)1 << 62)) >> 52; // k + 1024
    double m = f64_of(bits - (biased << 52) + ((uint64_t)1 << 62));
    *k = f64_of(0x4330000000000000u | biased) - (0x1p52 + 1024);
    double f = m - 1.0, s = f / (2.0 + f), z = s * s, z2 = z * z;
    double p = (0x1.fffffffffff12p-1 + z * 0x1.555555567148ep-2) +
               z2 * ((0x1.9999962c05c9dp-3 + z * 0x1.2494381ef8092p-3) +
                     z2 * (0x1.c620ee6972971p-4 + z * 0x1.9192e4ac957a7p-4));
    return 2.0 * s * p;
}

static inline double d_log(double x) {
    double k, m = d_log_parts(x, &k);
    double y = k * LN_2 + m;
    y = x < INFINITY ? y : x; // +inf and NaN
    y = x == 0 ? -INFINITY : y;
    return x < 0 ? NAN : y;
}

static inline double d_log2_abs(double x) { // -inf at 0, +inf at inf, NaN at NaN
    double k, a = f64_abs(x), m = d_log_parts(a, &k);
    double y = k + m * LOG2_E;
    y = a < INFINITY ? y : a;
    return a == 0 ? -INFINITY : y;
}

// The functions that training spends its time in stay in f32: twice the lanes, at most 1.2 ulp, tanh 2.5.
//
// x = n ln2 + r. The high part of ln2 has 15 bits, so that its product with n is exact;
// e^r = 1 + (r + r^2 q(r)), q: 2^-32. 2^n is applied in two halves: the first product is exact, the
// second rounds once where the result is subnormal, and overflows to infinity by itself.
static inline float exp_one(float x) {
    x = x < -104.0f ? -104.0f : x; // NaN stays NaN
    x = x > 89.0f ? 89.0f : x;
    float shifted = x * 0x1.715476p+0f + F32_ROUND, n = shifted - F32_ROUND;
    float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f, r2 = r * r;
    float q = (0.5f + r * 0x1.555556p-3f) + r2 * ((0x1.5554e4p-5f + r * 0x1.1110e0p-7f) +
                                                  r2 * (0x1.6d4920p-10f + r * 0x1.a12a42p-13f));
    float p = 1.0f + (r + r2 * q);
    int32_t whole = (int32_t)(f32_bits(shifted) - 0x4b400000u), half = whole >> 1;
    float first = f32_of((uint32_t)(half + 127) << 23);
    float second = f32_of((uint32_t)(whole - half + 127) << 23);
    return p * first * second;
}

static inline float expm1_one(float x) {
    double d = x, y = d_exp2(d_clamp(d * LOG2_E, -200, 200)) - 1.0;
    double small = d + 0.5 * d * d;
    y = f64_abs(d) < 0x1p-14 ? small : y;
    return d == 0 ? x : (float)y;
}

static inline float log_one(float x) { return (float)d_log(x); }

static inline float log1p_one(float x) {
    double d = x, y = d_log(1.0 + d);
    double small = d - 0.5 * d * d;
    y = f64_abs(d) < 0x1p-20 ? small : y;
    return d == 0 ? x : (float)y;
}

// t / (t + 2) with t = e^2|x| - 1 = 2^n (e^r - 1) + (2^n - 1), 1 from 10 on: there the exponent is far from its
// ends, and a shorter q does.
static inline float tanh_one(float x) {
    float a = f32_abs(x), b = a > 10.0f ? 20.0f : a + a; // NaN stays NaN
    float shifted = b * 0x1.715476p+0f + F32_ROUND, n = shifted - F32_ROUND;
    float r = (b - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f, r2 = r * r;
    float q = (0.5f + r * 0x1.5554d8p-3f) +
              r2 * ((0x1.555516p-5f + r * 0x1.12106cp-7f) + r2 * 0x1.6d1606p-10f);
    float s = f32_of((f32_bits(shifted) << 23) + 0x3f800000u), t = s * (r + r2 * q) + (s - 1.0f);
    return f32_sign(t / (t + 2.0f), x);
}

// With t = e^-|x|: 1 / (1 + t), or t / (1 + t) for a negative x, which keeps the small results. What
// the sum 1 + t lost in rounding is put back: 1 / (1 + t) is y itself, or 1 - y.
static inline float logistic_one(float x) {
    float t = exp_one(-f32_abs(x)), sum = 1.0f + t, lost = t - (sum - 1.0f);
    float y = (x < 0 ? t : 1.0f) / sum;
    return y - y * lost * (x < 0 ? 1.0f - y : y);
}

static inline float cbrt_one(float x) {
    double d = x, t = d_clamp(d_log2_abs(d) * (1.0 / 3), -200, 200);
    return (float)f64_sign(d_exp2(t), d);
}

// C's pow. A negative base takes the sign of an odd exponent and NaN for a fractional one.
static inline float pow_one(float base, float expo) {
    double x = base, y = expo, ax = f64_abs(x), ay = f64_abs(y);
    double t = d_clamp(y * d_log2_abs(x), -300, 300);
    double v = d_exp2(t);
    double half = 0.5 * y;
    double y_round = ay < 0x1p40 ? (y + F64_ROUND) - F64_ROUND : y;
    double half_round = ay < 0x1p40 ? (half + F64_ROUND) - F64_ROUND : half;
    double odd_v = half_round != half ? -v : v;
    double neg_v = y_round == y ? odd_v : NAN;
    neg_v = (ay == INFINITY) | (ax == INFINITY) | (ax == 0) ? (y_round == y ? odd_v : v) : neg_v;
    neg_v = (ax == 1) & (ay == INFINITY) ? 1.0 : neg_v;
    v = (f64_bits(x) >> 63) ? neg_v : v;
    v = y != y ? y : v;
    v = x != x ? x : v;
    v = (x == 1.0) | (y == 0.0) ? 1.0 : v;
    return (float)v;
}

// Sine and cosine of r in [-pi/4, pi/4] (a little more is harmless). 2^-35.
static inline double d_sin(double r) {
    double z = r * r;
    double p = (-0x1.555555545b845p-3 + z * 0x1.11110de90cf73p-7) +
               (z * z) * (-0x1.a0139f4f379d8p-13 + z * 0x1.6dbb5afff1a02p-19);
    return r + r * z * p;
}
static inline double d_cos(double r) {
    double z = r * r;
    double p = (0x1.5555555501f79p-5 + z * -0x1.6c16bf50cf978p-10) +
               (z * z) * (0x1.a015bef87bf62p-16 + z * -0x1.252284a1774c0p-22);
    return (1.0 - 0.5 * z) + z * z * p;
}

typedef struct Quarter { // x = q pi/2 + r
    double r;
    uint64_t q; // low two bits
} Quarter;

#define QUARTER_MAX 0x1p20f // up to here the two-part reduction keeps more than 34 bits
static inline Quarter quarter_small(float x) {
    double d = x, shifted = d * 0x1.45f306dc9c883p-1 + F64_ROUND;
    double q = shifted - F64_ROUND;
    double r = (d - q * 0x1.921fb544p+0) - q * 0x1.0b4611a626331p-34; // first product is exact
    return (Quarter){r, f64_bits(shifted)};
}

// Any finite x: multiply its 24 bits by the 96 bits of 2/pi that matter (after Payne and Hanek).
static Quarter quarter_large(float x) {
    static const uint32_t two_over_pi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                           0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561};
    uint32_t u = f32_bits(x) & 0x7fffffffu;
    if (u >= 0x7f800000u)
        return (Quarter){NAN, 0};
    if (u < 0x49800000u) // below 2^20
        return quarter_small(x);
    uint32_t man = (u & 0x7fffffu) | 0x800000u;
    int expo = (int)(u >> 23) - 150; // |x| = man 2^expo, expo >= -3
    int first = expo - 2;            // bits of 2/pi before this one give multiples of four
    unsigned __int128 window = 0;    // bits first .. first + 95
    for (int b = 0; b < 96; b++) {
        int at = first + b;
        uint32_t bit = at < 0 ? 0 : two_over_pi[at / 32] >> (31 - at % 32) & 1;
        window = window << 1 | bit;
    }
    unsigned __int128 prod = window * man << 32; // 2 integer bits, then 126 of fraction
    uint64_t top = (uint64_t)(prod >> 64);
    uint64_t q = top >> 62;
    int64_t frac = (int64_t)(top << 2 | (uint64_t)prod >> 62); // of one, in 2^-64, wrapped to +-1/2
    q += (uint64_t)frac >> 63;
    double r = (double)frac * (PI_2 * 0x1p-64);
    return f32_bits(x) >> 31 ? (Quarter){-r, 0 - q} : (Quarter){r, q};
}

static inline float sin_quarter(Quarter a) {
    double s = d_sin(a.r), c = d_cos(a.r);
    double v = a.q & 1 ? c : s;
    return (float)(a.q & 2 ? -v : v);
}
static inline float cos_quarter(Quarter a) {
    double s = d_sin(a.r), c = d_cos(a.r);
    double v = a.q & 1 ? s : c;
    return (float)((a.q + 1) & 2 ? -v : v);
}
static inline float tan_quarter(Quarter a) {
    double s = d_sin(a.r), c = d_cos(a.r);
    double num = a.q & 1 ? -c : s, den = a.q & 1 ? s : c;
    return (float)(num / den);
}

// Blocks without a large angle take the vector loop; the others go lane by lane through the exact
// reduction, which gives the small angles the same bits.
#define TRIG(name)                                                                                 \
    NOINLINE static void vm_##name(float *y, const float *x, size_t n) {                           \
        for (size_t at = 0; at < n; at += 256) {                                                   \
            size_t m = n - at < 256 ? n - at : 256;                                                \
            const float *xb = x + at;                                                              \
            float *yb = y + at;                                                                    \
            uint32_t large = 0;                                                                    \
            for (size_t i = 0; i < m; i++)                                                         \
                large |= (f32_bits(xb[i]) & 0x7fffffffu) >= 0x49800000u;                           \
            if (large) {                                                                           \
                for (size_t i = 0; i < m; i++)                                                     \
                    yb[i] =                                                                        \
                        xb[i] == 0 ? name##_zero(xb[i]) : name##_quarter(quarter_large(xb[i]));    \
            } else {                                                                               \
                LANES(m) {                                                                         \
                    float v = name##_quarter(quarter_small(xb[i]));                                \
                    yb[i] = xb[i] == 0 ? name##_zero(xb[i]) : v;                                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
static inline float sin_zero(float x) { return x; }
static inline float tan_zero(float x) { return x; }
static inline float cos_zero(float x) { return x * 0 + 1.0f; }
TRIG(sin)
TRIG(cos)
TRIG(tan)

// atan of a ratio in [0, 1], folded at tan(pi/8) so that one division serves both. 2^-35.
static inline float atan2_one(float fy, float fx) {
    double y = fy, x = fx, ay = f64_abs(y), ax = f64_abs(x);
    double big = ay > ax ? ay : ax, small = ay > ax ? ax : ay;
    small = small == INFINITY ? 1.0 : small; // both infinite: the diagonal
    big = (big == INFINITY) & (ay == ax) ? 1.0 : big;
    big = big == 0 ? 1.0 : big;
    bool fold = small > 0.41421356237309503 * big;
    double num = fold ? small - big : small, den = fold ? small + big : big;
    double b = num / den, z = b * b, z2 = z * z;
    double p =
        (0x1.ffffffffd07f9p-1 + z * -0x1.55555481099e9p-2) +
        z2 *
            ((0x1.9998fdb703d04p-3 + z * -0x1.247ca7f913deep-3) +
             z2 * ((0x1.c437eb9a09f07p-4 + z * -0x1.5a5d9befb13e9p-4) + z2 * 0x1.81a03ee69abf7p-5));
    double r = b * p;
    r = fold ? r + PI_4 : r;
    r = ay > ax ? PI_2 - r : r;
    r = f64_bits(x) >> 63 ? PI_1 - r : r;
    r = f64_sign(r, y);
    r = y != y ? y : r;
    return (float)(x != x ? x : r);
}

// x P(x^2) below 1 (2^-34.7); 1 - 2^R(x) above, R fits log2(erfc) on [1, 4] (2^-28 of a part that
// is at most 0.16).
static inline float erf_near(float x) {
    double d = x, z = d * d, z2 = z * z;
    double p = (0x1.20dd7504045d6p+0 + z * -0x1.81274665754c3p-2) +
               z2 * (0x1.ce2f08fec14fdp-4 + z * -0x1.b829c897922e5p-6) +
               (z2 * z2) * ((0x1.562a60ddba6e6p-8 + z * -0x1.bccf664d7f763p-11) +
                            z2 * (0x1.d887505de3ba6p-14 + z * -0x1.445f47d33d87bp-17));
    return (float)(d * p);
}
static inline float erf_one(float x) {
    double d = x, a = f64_abs(d), c = d_clamp(a, 1, 4), c2 = c * c, c4 = c2 * c2;
    double r = (0x1.9db4dd5a7c946p-12 + c * -0x1.a154d6f4026fcp+0) +
               c2 * (-0x1.d32fe567218afp-1 + c * -0x1.4282884a96266p-3) +
               c4 * ((0x1.2e668dcb064c6p-5 + c * -0x1.92e141ecb1fdep-8) +
                     c2 * (0x1.2be61b9059222p-11 + c * 0x1.6887404b4aa30p-17)) +
               (c4 * c4) * ((-0x1.69788d0c26c12p-17 + c * 0x1.59a6c0d057451p-20) +
                            c2 * -0x1.db39122e4784ep-25);
    float tail = (float)f64_sign(1.0 - d_exp2(r), d);
    return a >= 1 ? tail : erf_near(x);
}

// x P(w), w = -log(1 - x^2): one fit below w = 5, one up to 17 (the last f32 before 1). 2^-27.
static inline float erf_inv_one(float x) {
    double d = x, w = -d_log((1.0 - d) * (1.0 + d)), w2 = w * w, w4 = w2 * w2;
    double lo = (0x1.c5bf893d966b4p-1 + w * 0x1.db29e139d2f7ep-3) +
                w2 * (0x1.7a7ffa716824dp-7 + w * -0x1.32b6478644d19p-9) +
                w4 * ((-0x1.f76c9d9228df2p-14 + w * 0x1.47006dc735e9dp-15) +
                      w2 * (0x1.b65120705fcd4p-18 + w * -0x1.69ec2f33c9c2ap-19)) +
                (w4 * w4) * ((0x1.7160ca2725674p-22 + w * -0x1.5ecb044728dd1p-26) +
                             w2 * 0x1.00d79ace31a9fp-31);
    double hi = (0x1.d37d2eb64823ap-1 + w * 0x1.8f06670206307p-3) +
                w2 * (0x1.18204586f2a36p-5 + w * -0x1.4cec64616dde7p-7) +
                w4 * ((0x1.87ae5edeaf0a3p-10 + w * -0x1.2453947fd470dp-13) +
                      w2 * (0x1.1797bfae34870p-17 + w * -0x1.27554375e29a4p-22)) +
                (w4 * w4) * ((0x1.8986358076069p-33 + w * 0x1.df4fcf3dc5845p-32) +
                             w2 * (-0x1.63567f34acfeap-36 + w * 0x1.dccfeea36763cp-42) +
                             w4 * -0x1.04393a839df83p-48);
    double y = d * (w < 5 ? lo : hi), a = f64_abs(d);
    y = a == 1 ? d * INFINITY : y;
    return (float)(a > 1 ? NAN : y);
}

#define ERF_BLOCK 64
#define VM1(name)                                                                                  \
    NOINLINE static void vm_##name(float *y, const float *x, size_t n) {                           \
        LANES(n) y[i] = name##_one(x[i]);                                                          \
    }
#define VM2(name)                                                                                  \
    NOINLINE static void vm_##name(float *y, const float *a, const float *b, size_t n) {           \
        LANES(n) y[i] = name##_one(a[i], b[i]);                                                    \
    }
#if GP_ISA == 2
// exp_one step by step behind its limits, but for two things: an instruction rounds to n, and one multiplies by 2^n,
// rounding once too.
static inline __m512 exp_within(__m512 x) {
#define C(v) _mm512_set1_ps(v)
#define ADD _mm512_add_ps
#define MUL _mm512_mul_ps
    __m512 n = _mm512_roundscale_ps(MUL(x, C(0x1.715476p+0f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_sub_ps(_mm512_sub_ps(x, MUL(n, C(0x1.62e4p-1f))), MUL(n, C(0x1.7f7d1cp-20f)));
    __m512 r2 = MUL(r, r), top = ADD(C(0x1.6d4920p-10f), MUL(r, C(0x1.a12a42p-13f)));
    __m512 mid = ADD(ADD(C(0x1.5554e4p-5f), MUL(r, C(0x1.1110e0p-7f))), MUL(r2, top));
    __m512 q = ADD(ADD(C(0.5f), MUL(r, C(0x1.555556p-3f))), MUL(r2, mid));
    return _mm512_scalef_ps(ADD(C(1.0f), ADD(r, MUL(r2, q))), n);
#undef C
#undef ADD
#undef MUL
}
static inline __m512 exp_vector(__m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(-104.0f), x); // NaN stays NaN: the second operand wins
    return exp_within(_mm512_min_ps(_mm512_set1_ps(89.0f), x));
}
NOINLINE static void vm_exp(float *y, const float *x, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, exp_vector(_mm512_loadu_ps(x + i)));
    __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);
    if (rest)
        _mm512_mask_storeu_ps(y + i, rest, exp_vector(_mm512_maskz_loadu_ps(rest, x + i)));
}
#else
VM1(exp)
#endif
VM1(expm1)
VM1(log)
VM1(log1p)
VM1(tanh)
VM1(logistic)
VM1(cbrt)
// Most arguments are near zero, where the part far out, three quarters of the work, is not needed.
NOINLINE static void vm_erf(float *y, const float *x, size_t n) {
    for (size_t at = 0; at < n; at += ERF_BLOCK) {
        size_t m = n - at < ERF_BLOCK ? n - at : ERF_BLOCK;
        const float *xb = x + at;
        float *yb = y + at;
        uint32_t far = 0;
        for (size_t i = 0; i < m; i++)
            far |= f32_abs(xb[i]) >= 1;
        if (far)
            LANES(m) yb[i] = erf_one(xb[i]);
        else
            LANES(m) yb[i] = erf_near(xb[i]);
    }
}
VM1(erf_inv)
VM2(pow)
VM2(atan2)

// The compiler keeps errno in mind at sqrtf and does not vectorise it, so the vector forms are
// written out; all are IEEE square roots.
NOINLINE static void vm_sqrt(float *y, const float *x, size_t n) {
    size_t i = 0;
#if GP_ISA == 2
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_sqrt_ps(_mm512_loadu_ps(x + i)));
#elif GP_ISA == 1
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_sqrt_ps(_mm256_loadu_ps(x + i)));
#elif defined(__x86_64__)
    for (; i + 4 <= n; i += 4)
        _mm_storeu_ps(y + i, _mm_sqrt_ps(_mm_loadu_ps(x + i)));
#endif
    for (; i < n; i++)
        y[i] = sqrtf(x[i]);
}

static void vd_sqrt(double *y, const double *x, size_t n) {
    size_t i = 0;
#if GP_ISA == 2
    for (; i + 8 <= n; i += 8)
        _mm512_storeu_pd(y + i, _mm512_sqrt_pd(_mm512_loadu_pd(x + i)));
#elif GP_ISA == 1
    for (; i + 4 <= n; i += 4)
        _mm256_storeu_pd(y + i, _mm256_sqrt_pd(_mm256_loadu_pd(x + i)));
#elif defined(__x86_64__)
    for (; i + 2 <= n; i += 2)
        _mm_storeu_pd(y + i, _mm_sqrt_pd(_mm_loadu_pd(x + i)));
#endif
    for (; i < n; i++)
        y[i] = sqrt(x[i]);
}

// The root in double: in f32 two roundings would add up to 1.5 ulp.
NOINLINE static void vm_rsqrt(float *y, const float *x, size_t n) {
    double root[256];
    for (size_t at = 0; at < n; at += 256) {
        size_t m = n - at < 256 ? n - at : 256;
        for (size_t i = 0; i < m; i++)
            root[i] = x[at + i];
        vd_sqrt(root, root, m);
        for (size_t i = 0; i < m; i++)
            y[at + i] = (float)(1.0 / root[i]);
    }
}

static const VMath vmath_table = {
#define X(name) .name = vm_##name,
    VMATH1_ROWS(X) VMATH2_ROWS(X)
#undef X
};
