// SPDX-License-Identifier: Apache-2.0
// matmul_widen.h — the widening copy into a panel, once for every vector instruction set.
//
// Included after matmul_tile.h by files that also define widen_TYPE(p): LANES floats from p. The
// type is decided outside the loops.

#define WIDEN_LOOP(expr, bytes)                                                                    \
    for (uint32_t i = 0; i < rows; i++, out += out_cols, src += pitch)                             \
        for (uint32_t j = 0; j < cols; j += LANES) {                                               \
            const uint8_t *p = src + j * (bytes);                                                  \
            v_storeu(out + j, expr);                                                               \
        }                                                                                          \
    return

static TARGET void widen(float *out, size_t out_cols, const uint8_t *src, size_t pitch, int stype,
                         uint32_t rows, uint32_t cols) {
    switch (stype) {
    case DT_F32:
        WIDEN_LOOP(widen_f32(p), 4);
    case DT_TF32:
        WIDEN_LOOP(widen_tf32(p), 4);
    case DT_BF16:
        WIDEN_LOOP(widen_bf16(p), 2);
    case DT_F16:
        WIDEN_LOOP(widen_f16(p), 2);
    case DT_F8E4M3: // bias 7 against f16's 15
        WIDEN_LOOP(widen_f8(p, 3, 0x1p8f, 0x78, 0x78), 1);
    case DT_F8E4M3FN:
        WIDEN_LOOP(widen_f8(p, 3, 0x1p8f, -1, 0x7e), 1);
    case DT_F8E3M4:
        WIDEN_LOOP(widen_f8(p, 4, 0x1p12f, 0x70, 0x70), 1);
    case DT_F8E5M2: // f16's own exponent
        WIDEN_LOOP(widen_f8(p, 2, 1.0f, -1, 0x7f), 1);
    }
    __builtin_unreachable(); // dtype_on_tensor_engine
}

// --- thin products ---------------------------------------------------------------------------------------
// Few rows of results are no work for tiles: the moving operand is read once, where it lies, THIN vectors at a time, as many
// as there are registers for. Its rows may lie pages apart, where the host fetches nothing ahead by itself.
#define THIN (LANES == 16 ? 16 : 8)
#define THIN_AHEAD 6 // rows

INLINE void thin_clean(float *c, V chain, bool accumulate) {
    v_storeu(c, v_clean(accumulate ? v_add(v_loadu(c), chain) : chain));
}

INLINE void thin_wide_some(const float *s, const uint8_t *v, size_t pitch, float *c, uint32_t k, bool accumulate,
                           const int n) {
    V chain[16];
    UNROLL for (int j = 0; j < n; j++) chain[j] = v_zero();
    for (uint32_t i = 0; i < k; i++, v += pitch) {
        V a = v_splat(s[i]);
        for (int j = 0; j < n * LANES * 4; j += 64) // behind the last row the next product's lie, as a rule
            __builtin_prefetch(v + THIN_AHEAD * pitch + j);
        UNROLL for (int j = 0; j < n; j++) chain[j] = v_fma(a, widen_f32(v + j * LANES * 4), chain[j]);
    }
    UNROLL for (int j = 0; j < n; j++) thin_clean(c + j * LANES, chain[j], accumulate);
}

static TARGET void thin_wide(const float *s, const uint8_t *v, size_t pitch, float *c, uint32_t k, uint32_t vecs,
                             bool accumulate) {
    for (; vecs >= THIN; vecs -= THIN, v += THIN * LANES * 4, c += THIN * LANES)
        thin_wide_some(s, v, pitch, c, k, accumulate, THIN);
    for (; vecs >= THIN / 2; vecs -= THIN / 2, v += THIN * LANES * 2, c += THIN / 2 * LANES)
        thin_wide_some(s, v, pitch, c, k, accumulate, THIN / 2);
    for (; vecs; vecs--, v += LANES * 4, c += LANES)
        thin_wide_some(s, v, pitch, c, k, accumulate, 1);
}

// A single number.
static TARGET float dot_wide(const float *s, const uint8_t *v, size_t pitch, uint32_t k) {
    float chain = 0;
    for (uint32_t i = 0; i < k; i++, v += pitch)
        chain = __builtin_fmaf(s[i], *(const float *)v, chain);
    return chain;
}

// Half of them: each has two chains and a sum.
INLINE void thin_bf16_some(const float *s, const uint8_t *v, size_t pitch, float *c, uint32_t k, bool accumulate,
                           const int n) {
    V sum[8], even[8], odd[8];
    UNROLL for (int j = 0; j < n; j++) sum[j] = accumulate ? v_loadu(c + j * LANES) : v_zero();
    for (uint32_t i = 0; i < k;) {
        uint32_t end = k - i < MM_GROUP ? k : i + MM_GROUP;
        UNROLL for (int j = 0; j < n; j++) even[j] = odd[j] = v_zero();
        for (; i + 1 < end; i += 2, v += 2 * pitch) {
            V a = v_splat(s[i]), b = v_splat(s[i + 1]);
            for (int j = 0; j < n * LANES * 2; j += 64) {
                __builtin_prefetch(v + 2 * THIN_AHEAD * pitch + j);
                __builtin_prefetch(v + (2 * THIN_AHEAD + 1) * pitch + j);
            }
            UNROLL for (int j = 0; j < n; j++) {
                even[j] = v_fma(a, widen_bf16(v + j * LANES * 2), even[j]);
                odd[j] = v_fma(b, widen_bf16(v + pitch + j * LANES * 2), odd[j]);
            }
        }
        if (i < end) {
            V a = v_splat(s[i]);
            UNROLL for (int j = 0; j < n; j++) even[j] = v_fma(a, widen_bf16(v + j * LANES * 2), even[j]);
            i++, v += pitch;
        }
        UNROLL for (int j = 0; j < n; j++) sum[j] = v_add(sum[j], v_add(even[j], odd[j]));
    }
    UNROLL for (int j = 0; j < n; j++) v_storeu(c + j * LANES, v_clean(sum[j]));
}

static TARGET void thin_bf16(const float *s, const uint8_t *v, size_t pitch, float *c, uint32_t k, uint32_t vecs,
                             bool accumulate) {
    for (; vecs >= THIN / 2; vecs -= THIN / 2, v += THIN * LANES, c += THIN / 2 * LANES)
        thin_bf16_some(s, v, pitch, c, k, accumulate, THIN / 2);
    for (; vecs; vecs--, v += LANES * 2, c += LANES)
        thin_bf16_some(s, v, pitch, c, k, accumulate, 1);
}
