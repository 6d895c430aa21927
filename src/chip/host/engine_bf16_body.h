// SPDX-License-Identifier: Apache-2.0
// engine_bf16_body.h — loops of engine.h over bf16 in one pass instead of widen, compute, narrow; and exp with the sum of
// its results. Included by engine_body.h.
//
// Two neighbours are one 32-bit word: the even one shifted up and the odd one with the rest cleared are fp32 already, so
// that lanes need no change of width. The same bits as element by element.

typedef uint32_t Pair __attribute__((aligned(2), may_alias));

static inline float pair_even(uint32_t v) { return f32_of(v << 16); }
static inline float pair_odd(uint32_t v) { return f32_of(v & 0xffff0000u); }
static inline uint32_t pair_round(float x) { // to the upper half; of a number, or the NaN of quiet
    uint32_t u = f32_bits(x);
    return u + 0x7fff + (u >> 16 & 1);
}
static inline uint32_t pair_of(float even, float odd) {
    return pair_round(even) >> 16 | (pair_round(odd) & 0xffff0000u);
}

// z[i] = EXPR of x and y, where y of the other operand is Y(word or element, how to take it apart).
#define PAIRS(n, EXPR, YS, YLAST)                                                                  \
    Pair *zs = (Pair *)z;                                                                          \
    const Pair *xs = (const Pair *)v;                                                              \
    LANES((n) / 2) {                                                                               \
        float x = pair_even(xs[i]), y = YS(pair_even), even = EXPR;                                \
        x = pair_odd(xs[i]), y = YS(pair_odd);                                                     \
        (void)y;                                                                                   \
        zs[i] = pair_of(even, EXPR);                                                               \
    }                                                                                              \
    if ((n) & 1) {                                                                                 \
        float x = f32_of_bf16(v[(n) - 1]), y = YLAST;                                              \
        (void)y;                                                                                   \
        z[(n) - 1] = (uint16_t)(pair_round(EXPR) >> 16);                                           \
    }

#define ENG_BF16_ROWS(X)                                                                           \
    X(ADD, quiet(x + y)) X(SUB, quiet(x - y)) X(MUL, quiet(x *y)) X(MAX, larger(x, y))             \
    X(MIN, smaller(x, y))
#define OTHER(half) half(ys[i])
#define VALUE(half) value
#define X(E, EXPR)                                                                                 \
    static void eng_bf16_##E(void *pz, const void *px, const void *py, size_t n) {                 \
        uint16_t *z = pz;                                                                          \
        const uint16_t *v = px, *w = py;                                                           \
        const Pair *ys = py;                                                                       \
        PAIRS(n, EXPR, OTHER, f32_of_bf16(w[n - 1]))                                               \
    }                                                                                              \
    static void eng_one_bf16_##E(uint16_t *z, const uint16_t *v, float value, size_t n) {          \
        PAIRS(n, EXPR, VALUE, value)                                                               \
    }
ENG_BF16_ROWS(X)
#undef X

// tanh has a shorter form in bf16 (gp_body_bf16.h).
static void eng_bf16_fn_TANH(uint16_t *z, const uint16_t *v, size_t n) {
    float value = 0;
    PAIRS(n, quiet(tanh_short(x)), VALUE, value)
}
#undef OTHER
#undef VALUE
#undef PAIRS

// --- reductions ---------------------------------------------------------------------------------------------
// Partial 2k is even[k], 2k + 1 is odd[k]: folding in halves leaves the two for the last step.
#define HALF (ENG_PARTIALS / 2)
typedef float Lanes __attribute__((vector_size(4 * HALF)));
typedef uint32_t Words __attribute__((vector_size(4 * HALF), aligned(2), may_alias));
static void eng_run_bf16_ADD(void *pacc, const void *px, size_t n) {
    const uint16_t *v = px;
    float *acc = pacc;
    Lanes even = {0}, odd = {0};
    size_t i = 0;
    for (; i + ENG_PARTIALS <= n; i += ENG_PARTIALS) {
        Words w = *(const Words *)(v + i);
        even += (Lanes)(w << 16);
        odd += (Lanes)(w & 0xffff0000u);
    }
    float e[HALF], o[HALF];
    memcpy(e, &even, sizeof e);
    memcpy(o, &odd, sizeof o);
    for (size_t j = 0; i + j < n; j++)
        *(j & 1 ? &o[j / 2] : &e[j / 2]) += f32_of_bf16(v[i + j]);
    *acc = quiet(*acc + (lanes_fold(e) + lanes_fold(o)));
}

// The largest and the smallest: as integers, negative ones turned over, -0 below +0 and NaNs at both ends.
#define EXTREMES 64
static inline int16_t bf16_key(uint16_t x) { return (int16_t)(x ^ (uint16_t)((uint16_t)((int16_t)x >> 15) & 0x7fff)); }
static float run_extreme(const uint16_t *v, size_t n, bool largest) {
    int16_t lo[EXTREMES], hi[EXTREMES];
    for (size_t j = 0; j < EXTREMES; j++)
        lo[j] = INT16_MAX, hi[j] = INT16_MIN;
    size_t i = 0;
    for (; i + EXTREMES <= n; i += EXTREMES)
        for (size_t j = 0; j < EXTREMES; j++) {
            int16_t k = bf16_key(v[i + j]);
            lo[j] = k < lo[j] ? k : lo[j];
            hi[j] = k > hi[j] ? k : hi[j];
        }
    for (; i < n; i++) {
        int16_t k = bf16_key(v[i]);
        lo[0] = k < lo[0] ? k : lo[0];
        hi[0] = k > hi[0] ? k : hi[0];
    }
    for (size_t j = 1; j < EXTREMES; j++) {
        lo[0] = lo[j] < lo[0] ? lo[j] : lo[0];
        hi[0] = hi[j] > hi[0] ? hi[j] : hi[0];
    }
    if (hi[0] > bf16_key(0x7f80) || lo[0] < bf16_key(0xff80))
        return NAN;
    return f32_of_bf16((uint16_t)bf16_key((uint16_t)(largest ? hi[0] : lo[0]))); // it is its own inverse
}
static void eng_run_bf16_MAX(void *pacc, const void *px, size_t n) {
    float *acc = pacc;
    *acc = larger(*acc, run_extreme(px, n, true));
}
static void eng_run_bf16_MIN(void *pacc, const void *px, size_t n) {
    float *acc = pacc;
    *acc = smaller(*acc, run_extreme(px, n, false));
}

// --- exp and the sum of its results ---------------------------------------------------------------------------
#if GP_ISA == 2
// Two vectors, quiet. Beyond 89 exp is infinite, so that both limits may be 104: one instruction, which loses NaNs.
static inline void exp_two(__m512 *x, __m512 *y, __m512 a, __m512 b) {
    const __m512 most = _mm512_set1_ps(104.0f), nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    __m512 u = _mm512_add_ps(_mm512_mul_ps(*x, a), b), w = _mm512_add_ps(_mm512_mul_ps(*y, a), b);
    *x = exp_within(_mm512_range_ps(u, most, 2)); // the smaller magnitude with the sign of u
    *y = exp_within(_mm512_range_ps(w, most, 2));
    if (__builtin_expect(_mm512_cmp_ps_mask(u, w, _CMP_UNORD_Q), 0)) {
        *x = _mm512_mask_mov_ps(*x, _mm512_cmp_ps_mask(u, u, _CMP_UNORD_Q), nan);
        *y = _mm512_mask_mov_ps(*y, _mm512_cmp_ps_mask(w, w, _CMP_UNORD_Q), nan);
    }
}

static void eng_exp_f32(void *py, const void *px, float a, float b, float *acc, size_t n) {
    const float *x = px;
    float *y = py;
    __m512 p0 = _mm512_setzero_ps(), p1 = p0, va = _mm512_set1_ps(a), vb = _mm512_set1_ps(b);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512 u = _mm512_loadu_ps(x + i), w = _mm512_loadu_ps(x + i + 16);
        exp_two(&u, &w, va, vb);
        _mm512_storeu_ps(y + i, u);
        _mm512_storeu_ps(y + i + 16, w);
        p0 = _mm512_add_ps(p0, u);
        p1 = _mm512_add_ps(p1, w);
    }
    uint32_t rest = (1u << (n - i)) - 1; // at most 31
    __mmask16 m0 = (__mmask16)rest, m1 = (__mmask16)(rest >> 16);
    if (m0) {
        __m512 u = _mm512_maskz_loadu_ps(m0, x + i), w = _mm512_maskz_loadu_ps(m1, x + i + 16);
        exp_two(&u, &w, va, vb);
        _mm512_mask_storeu_ps(y + i, m0, u);
        _mm512_mask_storeu_ps(y + i + 16, m1, w);
        p0 = _mm512_mask_add_ps(p0, m0, p0, u);
        p1 = _mm512_mask_add_ps(p1, m1, p1, w);
    }
    float sum[16];
    _mm512_storeu_ps(sum, _mm512_add_ps(p0, p1));
    *acc = quiet(*acc + lanes_fold(sum));
}

static inline __m512i round_vector(__m512 x) { // pair_round
    __m512i u = _mm512_castps_si512(x), r = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
    return _mm512_mask_add_epi32(r, _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000)), r, _mm512_set1_epi32(1));
}

// Masks: of words with an even and an odd element.
static inline void exp_pairs(uint16_t *y, const uint16_t *x, __m512 a, __m512 b, __m512 p[2], __mmask16 even,
                             __mmask16 odd, __mmask32 all) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
    __m512i v = _mm512_maskz_loadu_epi16(all, x);
    __m512 e = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)), o = _mm512_castsi512_ps(_mm512_and_si512(v, upper));
    exp_two(&e, &o, a, b);
    __m512i word = _mm512_or_si512(_mm512_srli_epi32(round_vector(e), 16), _mm512_and_si512(round_vector(o), upper));
    _mm512_mask_storeu_epi16(y, all, word);
    p[0] = _mm512_mask_add_ps(p[0], even, p[0], e);
    p[1] = _mm512_mask_add_ps(p[1], odd, p[1], o);
}

static void eng_exp_bf16(void *py, const void *px, float a, float b, float *acc, size_t n) {
    const uint16_t *x = px;
    uint16_t *y = py;
    __m512 p[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()}, va = _mm512_set1_ps(a), vb = _mm512_set1_ps(b);
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        exp_pairs(y + i, x + i, va, vb, p, 0xffff, 0xffff, UINT32_MAX);
    size_t left = n - i;
    if (left)
        exp_pairs(y + i, x + i, va, vb, p, (__mmask16)((1u << (left + 1) / 2) - 1), (__mmask16)((1u << left / 2) - 1),
                  (1u << left) - 1);
    float even[16], odd[16];
    _mm512_storeu_ps(even, p[0]);
    _mm512_storeu_ps(odd, p[1]);
    *acc = quiet(*acc + (lanes_fold(even) + lanes_fold(odd)));
}
#endif
