// SPDX-License-Identifier: Apache-2.0
// engine_body.h — the loops of engine.h for one host level: ALU operations in three domains, reductions,
// functions of the scalar engine. Included by gp_level_body.h behind vmath_body.h.
#include "base/round.h"
#include "chip/host/engine_level.h"
#include "chip/host/gp_body_base.h"

static inline float quiet(float v) { return v != v ? f32_of(0x7fc00000u) : v; }
// NaN when one of them is; +0 above -0.
static inline float larger(float x, float y) { return quiet(max_f32(x, y)); }
static inline float smaller(float x, float y) { return quiet(min_f32(x, y)); }

// --- ALU operations: what alu.def says of x and y -------------------------------------------------------
#define ENG_F32_ROWS(X)                                                                            \
    X(BYPASS, x) X(ADD, quiet(x + y)) X(SUB, quiet(x - y)) X(MUL, quiet(x *y))                     \
    X(MAX, larger(x, y)) X(MIN, smaller(x, y)) X(ABS_MAX, larger(f32_abs(x), f32_abs(y)))          \
    X(ABS_MIN, smaller(f32_abs(x), f32_abs(y))) X(POW, quiet(pow_one(x, y)))                       \
    X(AVERAGE, quiet(x + y)) X(EQ, x == y ? 1.0f : 0.0f) X(NE, x != y ? 1.0f : 0.0f)               \
    X(LT, x < y ? 1.0f : 0.0f) X(LE, x <= y ? 1.0f : 0.0f) X(GT, x > y ? 1.0f : 0.0f)              \
    X(GE, x >= y ? 1.0f : 0.0f) X(LAND, (x != 0) & (y != 0) ? 1.0f : 0.0f)                         \
    X(LOR, (x != 0) | (y != 0) ? 1.0f : 0.0f) X(LXOR, (x != 0) ^ (y != 0) ? 1.0f : 0.0f)           \
    X(ABS, f32_abs(quiet(x))) X(SQUARE, quiet(x *x)) X(RELU, x > 0 ? x : 0.0f)                     \
    X(RECIP, quiet(1.0f / x))
#define ENG_BITS_ROWS(X)                                                                           \
    X(BYPASS, x) X(AND, x &y) X(OR, x | y) X(XOR, x ^ y) X(NOT, ~x)                                \
    X(SHL, y > 31 ? 0 : x << (y & 31)) X(SHR, y > 31 ? 0 : x >> (y & 31))
#define ENG_INT_ROWS(X)                                                                            \
    X(BYPASS, x) X(ADD, (int64_t)((uint64_t)x + (uint64_t)y))                                      \
    X(SUB, (int64_t)((uint64_t)x - (uint64_t)y)) X(MUL, (int64_t)((uint64_t)x * (uint64_t)y))      \
    X(MAX, x > y ? x : y) X(MIN, x < y ? x : y)

#define ALU_LOOP(S, T, E, EXPR)                                                                    \
    static void eng_##S##_##E(void *pz, const void *px, const void *py, size_t n) {                \
        T *z = pz;                                                                                 \
        const T *xs = px, *ys = py;                                                                \
        LANES(n) {                                                                                 \
            T x = xs[i], y = ys[i];                                                                \
            (void)y;                                                                               \
            z[i] = EXPR;                                                                           \
        }                                                                                          \
    }
#define X(E, EXPR) ALU_LOOP(f32, float, E, EXPR)
ENG_F32_ROWS(X)
#undef X
#define X(E, EXPR) ALU_LOOP(bits, uint32_t, E, EXPR)
ENG_BITS_ROWS(X)
#undef X
#define X(E, EXPR) ALU_LOOP(int, int64_t, E, EXPR)
ENG_INT_ROWS(X)
#undef X

// Common pairs: only fewer passes over a block.
#define ENG_PAIR_ROWS(X)                                                                           \
    X(MUL, ADD, quiet(x *a + b)) X(MUL, SUB, quiet(x *a - b)) X(SUB, MUL, quiet((x - a) * b))      \
    X(ADD, MUL, quiet((x + a) * b)) X(MUL, MUL, quiet(x *a *b))
#define X(E, F, EXPR)                                                                              \
    static void eng_pair_##E##_##F(float *z, const float *xs, const float *as, const float *bs,    \
                                   size_t n) {                                                     \
        LANES(n) {                                                                                 \
            float x = xs[i], a = as[i], b = bs[i];                                                 \
            z[i] = EXPR;                                                                           \
        }                                                                                          \
    }
ENG_PAIR_ROWS(X)
#undef X
#define X(E, F, EXPR)                                                                              \
    static void eng_ones_##E##_##F(float *z, const float *xs, float a, float b, size_t n) {        \
        LANES(n) {                                                                                 \
            float x = xs[i];                                                                       \
            z[i] = EXPR;                                                                           \
        }                                                                                          \
    }                                                                                              \
    static void eng_pair_one_##E##_##F(float *z, const float *xs, float a, const float *bs,        \
                                       size_t n) {                                                 \
        LANES(n) {                                                                                 \
            float x = xs[i], b = bs[i];                                                            \
            z[i] = EXPR;                                                                           \
        }                                                                                          \
    }
ENG_PAIR_ROWS(X)
#undef X
#define ENG_ONE_ROWS(X)                                                                            \
    X(ADD, quiet(x + y)) X(SUB, quiet(x - y)) X(MUL, quiet(x *y)) X(MAX, larger(x, y))             \
    X(MIN, smaller(x, y)) X(BACK, quiet(y - x))
#define X(E, EXPR)                                                                                 \
    static void eng_one_##E(float *z, const float *xs, float y, size_t n) {                        \
        LANES(n) {                                                                                 \
            float x = xs[i];                                                                       \
            z[i] = EXPR;                                                                           \
        }                                                                                          \
    }
ENG_ONE_ROWS(X)
#undef X
static void eng_f32_RSQRT(void *z, const void *x, const void *y, size_t n) {
    (void)y;
    vm_rsqrt(z, x, n);
    float *out = z;
    LANES(n) out[i] = quiet(out[i]);
}

// --- reductions -------------------------------------------------------------------------------------------
// The first values of a row are taken with a mask: rows of small programs are shorter than all partial values.
#define RUN_LOOP(S, T, E, FIRST, EXPR, DONE)                                                             \
    static void eng_run_##S##_##E(void *pacc, const void *px, size_t n) {                          \
        T p[ENG_PARTIALS], *acc = pacc;                                                            \
        const T *v = px;                                                                           \
        for (size_t j = 0; j < ENG_PARTIALS; j++) {                                                \
            T x = FIRST, y = j < n ? v[j] : FIRST;                                                 \
            p[j] = j < n ? EXPR : FIRST;                                                           \
        }                                                                                          \
        size_t i = ENG_PARTIALS;                                                                   \
        for (; i + ENG_PARTIALS <= n; i += ENG_PARTIALS)                                           \
            for (size_t j = 0; j < ENG_PARTIALS; j++) {                                            \
                T x = p[j], y = v[i + j];                                                          \
                p[j] = EXPR;                                                                       \
            }                                                                                      \
        for (size_t j = 0; i < n; i++, j++) {                                                      \
            T x = p[j], y = v[i];                                                                  \
            p[j] = EXPR;                                                                           \
        }                                                                                          \
        FOLD(T, EXPR, 16) FOLD(T, EXPR, 8) FOLD(T, EXPR, 4) FOLD(T, EXPR, 2) FOLD(T, EXPR, 1)      \
        T x = *acc, y = p[0];                                                                      \
        *acc = DONE(EXPR);                                                                         \
    }
#define FOLD(T, EXPR, h)                                                                           \
    for (size_t j = 0; j < h; j++) {                                                               \
        T x = p[j], y = p[j + h];                                                                  \
        p[j] = EXPR;                                                                               \
    }
#define ENG_RUN_F32_ROWS(X)                                                                        \
    X(MUL, 1, x *y) X(ABS_MAX, 0, larger(f32_abs(x), f32_abs(y)))                  \
    X(ABS_MIN, INFINITY, smaller(f32_abs(x), f32_abs(y)))                                          \
    X(LAND, 1, (x != 0) & (y != 0) ? 1.0f : 0.0f) X(LOR, 0, (x != 0) | (y != 0) ? 1.0f : 0.0f)     \
    X(LXOR, 0, (x != 0) ^ (y != 0) ? 1.0f : 0.0f)
#define ENG_RUN_BITS_ROWS(X) X(AND, 0xffffffffu, x &y) X(OR, 0, x | y) X(XOR, 0, x ^ y)
#define X(E, FIRST, EXPR) RUN_LOOP(f32, float, E, FIRST, EXPR, quiet)
ENG_RUN_F32_ROWS(X)
#undef X
#define X(E, FIRST, EXPR) RUN_LOOP(bits, uint32_t, E, FIRST, EXPR, same)
ENG_RUN_BITS_ROWS(X)
#undef X

static inline float lanes_fold(const float *p) { // in halves, down to the first
    float x[8], y[4];
    for (size_t j = 0; j < 8; j++)
        x[j] = p[j] + p[j + 8];
    for (size_t j = 0; j < 4; j++)
        y[j] = x[j] + x[j + 4];
    return (y[0] + y[2]) + (y[1] + y[3]);
}
#if GP_ISA == 2
static void eng_run_f32_ADD(void *pacc, const void *px, size_t n) {
    const float *v = px;
    float *acc = pacc, sum[16];
    __m512 p0 = _mm512_setzero_ps(), p1 = p0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        p0 = _mm512_add_ps(p0, _mm512_loadu_ps(v + i));
        p1 = _mm512_add_ps(p1, _mm512_loadu_ps(v + i + 16));
    }
    uint32_t rest = (1u << (n - i)) - 1; // at most 31
    __mmask16 m0 = (__mmask16)rest, m1 = (__mmask16)(rest >> 16);
    p0 = _mm512_mask_add_ps(p0, m0, p0, _mm512_maskz_loadu_ps(m0, v + i));
    p1 = _mm512_mask_add_ps(p1, m1, p1, _mm512_maskz_loadu_ps(m1, v + i + 16));
    _mm512_storeu_ps(sum, _mm512_add_ps(p0, p1));
    *acc = quiet(*acc + lanes_fold(sum));
}
#else
RUN_LOOP(f32, float, ADD, 0, x + y, quiet)
#endif

// The largest and the smallest, whatever the order: compared as they come, with a look at the end for NaNs and for
// the sign of a zero.
#define ENDS 64
#define RUN_ENDS(E, FIRST, BEYOND, EXPR, ZERO)                                                     \
    static void eng_run_f32_##E(void *pacc, const void *px, size_t n) {                            \
        float p[ENDS], *acc = pacc;                                                                \
        uint32_t bad[ENDS];                                                                        \
        const float *v = px;                                                                       \
        for (size_t j = 0; j < ENDS; j++) {                                                        \
            float y = j < n ? v[j] : FIRST;                                                        \
            p[j] = y BEYOND FIRST ? y : FIRST;                                                     \
            bad[j] = y != y;                                                                       \
        }                                                                                          \
        size_t i = ENDS;                                                                           \
        for (; i + ENDS <= n; i += ENDS)                                                           \
            for (size_t j = 0; j < ENDS; j++) {                                                    \
                float y = v[i + j];                                                                \
                p[j] = y BEYOND p[j] ? y : p[j];                                                   \
                bad[j] |= y != y;                                                                  \
            }                                                                                      \
        for (size_t j = 0; i < n; i++, j++) {                                                      \
            p[j] = v[i] BEYOND p[j] ? v[i] : p[j];                                                 \
            bad[j] |= v[i] != v[i];                                                                \
        }                                                                                          \
        ENDS_FOLD(BEYOND, 32) ENDS_FOLD(BEYOND, 16) ENDS_FOLD(BEYOND, 8)                           \
        ENDS_FOLD(BEYOND, 4) ENDS_FOLD(BEYOND, 2) ENDS_FOLD(BEYOND, 1)                             \
        uint32_t zero = 0;                                                                         \
        for (i = 0; p[0] == 0 && i < n; i++)                                                       \
            zero |= f32_bits(v[i]) == f32_bits(ZERO);                                              \
        float x = *acc, y = bad[0] ? NAN : zero ? ZERO : p[0] == 0 ? -ZERO : p[0];                 \
        *acc = EXPR;                                                                               \
    }
#define ENDS_FOLD(BEYOND, h)                                                                       \
    for (size_t j = 0; j < h; j++) {                                                               \
        p[j] = p[j + h] BEYOND p[j] ? p[j + h] : p[j];                                             \
        bad[j] |= bad[j + h];                                                                      \
    }
#if GP_ISA == 2
// As integers, negative ones turned over: then -0 lies below +0, and one comparison does.
static inline __m512i ends_turned(__m512 x) {
    __m512i u = _mm512_castps_si512(x);
    return _mm512_xor_si512(u, _mm512_srli_epi32(_mm512_srai_epi32(u, 31), 1));
}
#define RUN_TURNED(E, FIRST, end, EXPR)                                                            \
    static void eng_run_f32_##E(void *pacc, const void *px, size_t n) {                            \
        const float *v = px;                                                                       \
        float *acc = pacc;                                                                         \
        __m512i most = ends_turned(_mm512_set1_ps(FIRST));                                         \
        uint32_t bad = 0;                                                                          \
        for (size_t i = 0; i < n; i += 16) {                                                       \
            __mmask16 lanes = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;              \
            __m512 a = _mm512_maskz_loadu_ps(lanes, v + i);                                        \
            most = _mm512_mask_##end##_epi32(most, lanes, most, ends_turned(a));                   \
            bad |= _mm512_mask_cmp_ps_mask(lanes, a, a, _CMP_UNORD_Q);                             \
        }                                                                                          \
        int32_t bits = _mm512_reduce_##end##_epi32(most);                                          \
        float x = *acc, y = bad ? NAN : f32_of((uint32_t)(bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1))); \
        *acc = EXPR;                                                                               \
    }
RUN_TURNED(MAX, -INFINITY, max, larger(x, y))
RUN_TURNED(MIN, INFINITY, min, smaller(x, y))
#else
RUN_ENDS(MAX, -INFINITY, >, larger(x, y), 0.0f)
RUN_ENDS(MIN, INFINITY, <, smaller(x, y), -0.0f)
#endif

// --- functions of the scalar engine -----------------------------------------------------------------------
// Where a factor goes to 0 while x grows without end, x stops where the product has reached its limit.
static inline float act_within(float x, float lo, float hi) { // NaN stays NaN
    x = x < lo ? lo : x;
    return x > hi ? hi : x;
}
static inline float act_softplus(float x) {
    return (x > 0 ? x : x * 0) + log1p_one(exp_one(-f32_abs(x)));
}
static inline float act_silu_dx(float x) {
    float v = act_within(x, -110, 110), s = logistic_one(v);
    return s * (1.0f + v * (1.0f - s));
}
static inline float act_gelu_sig_dx(float x) {
    float v = act_within(x, -110, 110), s = logistic_one(1.702f * v);
    return s * (1.0f + 1.702f * v * (1.0f - s));
}
static inline float act_gelu_tanh(float x) {
    float v = act_within(x, -16, INFINITY);
    return 0.5f * v * (1.0f + tanh_one(0x1.988454p-1f * (v + 0.044715f * v * v * v)));
}
static inline float act_gelu_dx(float x) {
    float v = act_within(x, -16, 16), density = 0x1.988454p-2f * exp_one(-0.5f * v * v);
    return 0.5f * (1.0f + erf_one(0x1.6a09e6p-1f * v)) + v * density;
}
// Outside [-pi, pi] the last cubic goes on: -t + t^3 / 6 with t the way beyond.
static inline float act_sin(float x) {
    float v = act_within(x, -0x1.921fb6p+1f, 0x1.921fb6p+1f), t = x - v;
    float in = sin_quarter(quarter_small(v)), out = t * t * t * (1.0f / 6) - t;
    return t != 0 ? out : x == 0 ? x : in;
}
#define ENG_FN_ROWS(X)                                                                             \
    X(COPY, x) X(IDENTITY, x) X(SQUARE, x *x) X(RELU, x > 0 ? x : 0.0f)                            \
    X(PRELU, x > 0 ? x : parameter * x) X(SIGN, x > 0 ? 1.0f : x < 0 ? -1.0f : x)                  \
    X(ABS, f32_abs(x)) X(LOG, log_one(x)) X(SOFTPLUS, act_softplus(x)) X(SIGMOID, logistic_one(x)) \
    X(TANH, tanh_one(x)) X(SILU, act_within(x, -110, INFINITY) * logistic_one(x))                  \
    X(SILU_DX, act_silu_dx(x))                                                                     \
    X(MISH, act_within(x, -110, INFINITY) * tanh_one(act_softplus(x)))                             \
    X(GELU, 0.5f * act_within(x, -16, INFINITY) * (1.0f + erf_one(0x1.6a09e6p-1f * x)))            \
    X(GELU_DX, act_gelu_dx(x)) X(GELU_TANH, act_gelu_tanh(x))                                      \
    X(GELU_SIG, act_within(x, -110, INFINITY) * logistic_one(1.702f * x))                          \
    X(GELU_SIG_DX, act_gelu_sig_dx(x))                                                             \
    X(ERF_DX, 0x1.20dd76p+0f * exp_one(-(x * x))) X(SIN, act_sin(x)) X(ARCTAN, atan2_one(x, 1.0f)) \
    X(RECIPROCAL, 1.0f / x)
#define X(E, EXPR)                                                                                 \
    static void eng_fn_##E(float *ys, const float *xs, size_t n, float parameter) {                \
        (void)parameter;                                                                           \
        LANES(n) {                                                                                 \
            float x = xs[i];                                                                       \
            ys[i] = quiet(EXPR);                                                                   \
        }                                                                                          \
    }
ENG_FN_ROWS(X)
#undef X
#define ENG_FN_VM_ROWS(X) X(EXP, vm_exp) X(SQRT, vm_sqrt) X(RSQRT, vm_rsqrt) X(ERF, vm_erf)
#define X(E, vm)                                                                                   \
    static void eng_fn_##E(float *y, const float *x, size_t n, float parameter) {                  \
        (void)parameter;                                                                           \
        vm(y, x, n);                                                                               \
        LANES(n) y[i] = quiet(y[i]);                                                               \
    }
ENG_FN_VM_ROWS(X)
#undef X

#include "chip/host/engine_bf16_body.h"
#include "chip/host/engine_chain_body.h"

// --- the rest ---------------------------------------------------------------------------------------------
static void eng_round(float *y, const float *x, size_t n, float lo, float hi) {
    LANES(n) {
        float v = x[i] < lo ? lo : x[i];
        y[i] = round_even_f32(v > hi ? hi : v);
    }
}
static void eng_clamp(int64_t *y, const int64_t *x, size_t n, int64_t lo, int64_t hi) {
    LANES(n) {
        int64_t v = (int32_t)x[i];
        v = v < lo ? lo : v;
        y[i] = v > hi ? hi : v;
    }
}
static void eng_stochastic(float *y, const float *x, size_t n, uint32_t key, uint32_t counter, int drop,
                           float normal, float least) {
    uint32_t mask = (1u << drop) - 1;
    float inverse = least > 0 ? 1.0f / least : 0;
    LANES(n) {
        uint32_t bits = round_bits(key, counter + (uint32_t)i), u = f32_bits(x[i]), mag = u & 0x7fffffffu;
        uint32_t cut = (mag + (bits & mask)) & ~mask;
        float a = f32_of(mag < f32_bits(normal) ? mag : 0) * inverse; // exact, below 2^23
        float whole = (float)(int32_t)a;
        float tiny = (a - whole > (float)(int32_t)(bits >> 8) * 0x1p-24f ? whole + 1.0f : whole) * least;
        uint32_t r = mag < f32_bits(normal) ? f32_bits(tiny) : cut;
        y[i] = f32_of(mag >= 0x7f800000u ? u : r | (u & 0x80000000u));
    }
}
static void eng_mx(float *out, const float *w, const float *v, size_t pitch, size_t n) {
    for (size_t at = 0; at < n; at += 64) {
        float even[64] = {0}, odd[64] = {0};
        size_t m = n - at < 64 ? n - at : 64;
        for (size_t k = 0; k < 32; k += 2) {
            const float *v0 = v + k * pitch + at, *v1 = v0 + pitch;
            for (size_t i = 0; i < m; i++) {
                even[i] += w[k] * v0[i]; // products of fp8 are exact
                odd[i] += w[k + 1] * v1[i];
            }
        }
        for (size_t i = 0; i < m; i++)
            out[at + i] = quiet(even[i] + odd[i]);
    }
}
static void eng_draw(uint32_t *z, size_t n, DrawKeys d) { LANES(n) z[i] = draw_bits(d, z[i]); }
static void eng_draw_flags(uint8_t *y, const uint32_t *bits, size_t n, uint32_t bound, bool below) {
    LANES(n) y[i] = (bits[i] >> (32 - DRAW_BITS) < bound) == below;
}
static void eng_select(uint32_t *z, const uint32_t *mask, const uint32_t *x, const uint32_t *y,
                       size_t n) {
    LANES(n) z[i] = mask[i] ? x[i] : y[i];
}

static const EngLevel eng_table = {
#define X(E, ...) [ALU_##E] = eng_f32_##E,
    .alu[ENG_F32] = {ENG_F32_ROWS(X)[ALU_RSQRT] = eng_f32_RSQRT},
#undef X
#define X(E, ...) [ALU_##E] = eng_bits_##E,
    .alu[ENG_BITS] = {ENG_BITS_ROWS(X)},
#undef X
#define X(E, ...) [ALU_##E] = eng_int_##E,
    .alu[ENG_INT] = {ENG_INT_ROWS(X)},
#undef X
#define X(E, ...) [ALU_##E] = eng_bf16_##E,
    .bf16 = {ENG_BF16_ROWS(X)},
#undef X
#define X(E, F, ...) [ALU_##E][ALU_##F] = eng_pair_##E##_##F,
    .pair = {ENG_PAIR_ROWS(X)},
#undef X
#define X(E, F, ...) [ALU_##E][ALU_##F] = eng_ones_##E##_##F,
    .ones = {ENG_PAIR_ROWS(X)},
#undef X
#define X(E, F, ...) [ALU_##E][ALU_##F] = eng_pair_one_##E##_##F,
    .pair_one = {ENG_PAIR_ROWS(X)},
#undef X
    .one = {[ALU_ADD] = eng_one_ADD, [ALU_SUB] = eng_one_SUB, [ALU_MUL] = eng_one_MUL, [ALU_MAX] = eng_one_MAX,
            [ALU_MIN] = eng_one_MIN},
    .back = eng_one_BACK,
    .bf16_fn = {[ACT_TANH] = eng_bf16_fn_TANH},
    .run_bf16 = {[ALU_ADD] = eng_run_bf16_ADD, [ALU_MAX] = eng_run_bf16_MAX, [ALU_MIN] = eng_run_bf16_MIN},
#define X(E, ...) [ALU_##E] = eng_one_bf16_##E,
    .one_bf16 = {ENG_BF16_ROWS(X)},
#undef X
#if GP_ISA == 2
    .exp_f32 = eng_exp_f32,
    .exp_bf16 = eng_exp_bf16,
    .chain = eng_chain,
    .short_fn = {[ACT_TANH] = eng_tanh_short},
#endif
#define X(E, ...) [ALU_##E] = eng_run_f32_##E,
    .run[ENG_F32] = {ENG_RUN_F32_ROWS(X)[ALU_ADD] = eng_run_f32_ADD, [ALU_MAX] = eng_run_f32_MAX, [ALU_MIN] = eng_run_f32_MIN},
#undef X
#define X(E, ...) [ALU_##E] = eng_run_bits_##E,
    .run[ENG_BITS] = {ENG_RUN_BITS_ROWS(X)},
#undef X
#define X(E, ...) [ACT_##E] = eng_fn_##E,
    .fn = {ENG_FN_ROWS(X) ENG_FN_VM_ROWS(X)},
#undef X
    .round = eng_round,
    .clamp = eng_clamp,
    .stochastic = eng_stochastic,
    .mx = eng_mx,
    .select = eng_select,
    .draw = eng_draw,
    .draw_flags = eng_draw_flags,
};
