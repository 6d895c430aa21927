// SPDX-License-Identifier: Apache-2.0
// matmul_bf16.c — tensor-engine tiles in pairs of bf16: AVX512_BF16, whose vdpbf16ps does two steps of a chain.
//
// For each 32-bit word it computes fma(low, low', fma(high, high', sum)): rounded twice, subnormals as zero whatever
// the mode of the thread. That is two steps of one of the narrow order's chains when a word holds rows of the same
// parity, the earlier one on top:
//
//   rows of k      0  1  2  3 | 4  5  6  7 …       even word 0|2, odd word 1|3, even word 4|6 …
//
// Where k ends within four rows the stationary side is filled with -0 and the moving side with 0: a product of -0
// changes no sum. On Zen 4 this is twice the rate of fp32, on Intel's cores half of it: matmul_choose.c measures.
#if defined(__x86_64__)

#include <assert.h>
#include <immintrin.h>

#include "chip/host/matmul.h"

#define TARGET __attribute__((target("avx512bf16,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))
#define LANES 16
#define ROWS 8
#define BLOCK MM_BLOCK_COLS
#define BLOCK_WORDS (MM_BLOCK_FLOATS / 2)
#define HALF 4 // rows of a pass: sums and both chains of a group in 24 registers
#define GROUP_QUADS (MM_GROUP / 4)
#define NEGATIVE_ZERO 0x8000u
#define UNROLL _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline)) TARGET

INLINE __m512bh as_pairs(__m512i x) { return (__m512bh)x; }

INLINE float *row_at(float *c, size_t c_pitch, int r) { return (float *)((uint8_t *)c + (size_t)r * c_pitch); }

// One word of each row into one of the two chains.
INLINE void pair_step(__m512 chain[HALF][2], const uint32_t *s, const uint32_t *v, size_t v_next, const int nv) {
    __m512i b[2];
    UNROLL for (int j = 0; j < nv; j++) {
        b[j] = _mm512_load_si512(v + (size_t)j * v_next);
        MM_IN_REGISTER(b[j]);
    }
    UNROLL for (int r = 0; r < HALF; r++) {
        __m512i a = _mm512_set1_epi32((int)s[r]);
        UNROLL for (int j = 0; j < nv; j++) chain[r][j] = _mm512_dpbf16_ps(chain[r][j], as_pairs(a), as_pairs(b[j]));
    }
}

INLINE void group_add(__m512 sum[HALF][2], __m512 even[HALF][2], __m512 odd[HALF][2], const int nv) {
    UNROLL for (int r = 0; r < HALF; r++) {
        UNROLL for (int j = 0; j < nv; j++) sum[r][j] = _mm512_add_ps(sum[r][j], _mm512_add_ps(even[r][j], odd[r][j]));
    }
}

INLINE void chains_zero(__m512 even[HALF][2], __m512 odd[HALF][2], const int nv) {
    UNROLL for (int r = 0; r < HALF; r++) {
        UNROLL for (int j = 0; j < nv; j++) even[r][j] = odd[r][j] = _mm512_setzero_ps();
    }
}

INLINE void sums_store(const MmPanel *t, float *out, __m512 sum[HALF][2], const int nv) {
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32((int)MM_NAN));
    size_t out_pitch = t->out_pitch; // or it would be read again after each store
    if (!t->goes_on) {
        UNROLL for (int r = 0; r < HALF; r++) {
            UNROLL for (int j = 0; j < nv; j++) sum[r][j] =
                _mm512_mask_mov_ps(sum[r][j], _mm512_cmp_ps_mask(sum[r][j], sum[r][j], _CMP_UNORD_Q), nan);
        }
    }
    UNROLL for (int r = 0; r < HALF; r++) {
        UNROLL for (int j = 0; j < nv; j++) _mm512_storeu_ps(row_at(out, out_pitch, r) + j * LANES, sum[r][j]);
    }
}

// HALF rows. Whole groups have a loop of their own, without a branch inside.
INLINE void half_tile(const MmPanel *t, const uint32_t *s, float *c, float *out, const int nv) {
    const uint32_t *v = (const uint32_t *)t->v;
    size_t v_next = t->v_next;
    uint32_t quads = (t->k + 3) / 4;
    __m512 sum[HALF][2], even[HALF][2], odd[HALF][2];
    UNROLL for (int r = 0; r < HALF; r++) {
        UNROLL for (int j = 0; j < nv; j++) sum[r][j] =
            t->accumulate ? _mm512_loadu_ps(row_at(c, t->c_pitch, r) + j * LANES) : _mm512_setzero_ps();
    }
    for (; quads >= GROUP_QUADS; quads -= GROUP_QUADS) {
        chains_zero(even, odd, nv);
        UNROLL for (int i = 0; i < GROUP_QUADS; i++, s += 2 * BLOCK, v += 2 * BLOCK) {
            pair_step(even, s, v, v_next, nv);
            pair_step(odd, s + BLOCK, v + BLOCK, v_next, nv);
        }
        group_add(sum, even, odd, nv);
    }
    if (quads) {
        chains_zero(even, odd, nv);
        for (; quads; quads--, s += 2 * BLOCK, v += 2 * BLOCK) {
            pair_step(even, s, v, v_next, nv);
            pair_step(odd, s + BLOCK, v + BLOCK, v_next, nv);
        }
        group_add(sum, even, odd, nv);
    }
    sums_store(t, out, sum, nv);
}

INLINE void tile(const MmPanel *t, const float *s, float *c, float *out, const int nv) {
    UNROLL for (int r = 0; r < ROWS; r++) {
        __builtin_prefetch(row_at(out, t->out_pitch, r), 1, 3);
        __builtin_prefetch(row_at(out, t->out_pitch, r) + nv * LANES - 1, 1, 3);
    }
    for (int r = 0; r < ROWS; r += HALF)
        half_tile(t, (const uint32_t *)s + r, row_at(c, t->c_pitch, r), row_at(out, t->out_pitch, r), nv);
}

static TARGET void pairs_1(const MmPanel *t, const float *s, float *c, float *out) { tile(t, s, c, out, 1); }
static TARGET void pairs_2(const MmPanel *t, const float *s, float *c, float *out) { tile(t, s, c, out, 2); }

MmTile *const mm_pair_tiles[2] = {pairs_1, pairs_2};

// --- packing ---------------------------------------------------------------------------------------------

// Four rows of fp32, of which bf16 holds all, to their two words; width is a multiple of 16.
static TARGET void words_of(uint32_t *even, uint32_t *odd, const float *rows, uint32_t width) {
    const __m512i top = _mm512_set1_epi32((int)0xffff0000);
    for (uint32_t j = 0; j < width; j += LANES) {
        __m512i r[4];
        for (int i = 0; i < 4; i++)
            r[i] = _mm512_loadu_si512(rows + (size_t)i * width + j);
        _mm512_storeu_si512(even + j, _mm512_or_si512(_mm512_and_si512(r[0], top), _mm512_srli_epi32(r[2], 16)));
        _mm512_storeu_si512(odd + j, _mm512_or_si512(_mm512_and_si512(r[1], top), _mm512_srli_epi32(r[3], 16)));
    }
}

// The same from bf16 that lies side by side.
static TARGET void words_of_bf16(uint32_t *even, uint32_t *odd, const uint8_t *at, size_t pitch, uint32_t width) {
    for (uint32_t j = 0; j < width; j += LANES) {
        __m512i r[4];
        for (int i = 0; i < 4; i++)
            r[i] = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(at + (size_t)i * pitch + j * 2)));
        _mm512_storeu_si512(even + j, _mm512_or_si512(_mm512_slli_epi32(r[0], 16), r[2]));
        _mm512_storeu_si512(odd + j, _mm512_or_si512(_mm512_slli_epi32(r[1], 16), r[3]));
    }
}

// Rows [k, k + 4) of columns [col, col + cols); rows beyond the end hold `pad` (as bf16), columns beyond it anything.
static void quad_pack(uint32_t *even, uint32_t *odd, const MmOperand *o, uint32_t rows, uint32_t k, uint32_t col,
                      uint32_t cols, uint32_t width, uint32_t pad) {
    MmOperand part = *o;
    part.at += k * o->pitch;
    if (rows - k >= 4 && cols == width && o->stype == DT_BF16 && o->step == 2) {
        words_of_bf16(even, odd, part.at + (size_t)col * 2, o->pitch, width);
        return;
    }
    _Alignas(64) float buf[4 * ISA_PE_COLS];
    uint32_t n = rows - k < 4 ? rows - k : 4, word = pad << 16;
    mm_widen_block(&mm_avx512, buf, width, &part, n, col, cols);
    for (uint32_t i = n * width; i < 4 * width; i++)
        memcpy(&buf[i], &word, 4);
    words_of(even, odd, buf, width);
}

void mm_load_pairs(MmStationary *st, const MmOperand *o) {
    _Alignas(64) uint32_t even[ISA_PE_COLS], odd[ISA_PE_COLS];
    uint32_t width = (st->m + LANES - 1) / LANES * LANES;
    for (uint32_t k = 0; k < st->k; k += 4) {
        if (st->k - k >= 4 && st->m == width && o->stype == DT_BF16 && o->step == 2) { // straight to their places
            uint32_t *out = (uint32_t *)st->panels + k / 2 * BLOCK;
            for (uint32_t m = 0; m < st->m; m += BLOCK, out += BLOCK_WORDS)
                words_of_bf16(out, out + BLOCK, o->at + k * o->pitch + m * 2, o->pitch, BLOCK);
            continue;
        }
        quad_pack(even, odd, o, st->k, k, 0, st->m, width, NEGATIVE_ZERO);
        for (uint32_t m = 0; m < st->m; m += BLOCK) {
            uint32_t *out = (uint32_t *)st->panels + m / BLOCK * BLOCK_WORDS + k / 2 * BLOCK;
            memcpy(out, even + m, BLOCK * 4);
            memcpy(out + BLOCK, odd + m, BLOCK * 4);
        }
    }
}

static float weight_at(const MmStationary *st, uint32_t k, uint32_t r) {
    const uint32_t *words = (const uint32_t *)st->panels + r / BLOCK * BLOCK_WORDS;
    uint32_t word = words[(k / 4 * 2 + (k & 1)) * BLOCK + r % BLOCK], bits = k & 2 ? word << 16 : word & 0xffff0000u;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

void mm_unpack_pairs(float *panels, const MmStationary *st) {
    for (uint32_t m = 0; m < st->m; m++)
        for (uint32_t k = 0; k < st->k; k++)
            panels[m / BLOCK * MM_BLOCK_FLOATS + k * BLOCK + m % BLOCK] = weight_at(st, k, m);
}

void mm_pair_weights(const MmStationary *st, uint32_t r, float *out) {
    for (uint32_t k = 0; k < st->k; k++)
        out[k] = weight_at(st, k, r);
}

void mm_pack_pairs(float *panel, const MmOperand *o, uint32_t rows, uint32_t col, uint32_t cols) {
    _Alignas(64) uint32_t even[MM_COLS_MAX], odd[MM_COLS_MAX];
    uint32_t width = (cols + LANES - 1) / LANES * LANES;
    assert(width <= MM_COLS_MAX);
    for (uint32_t k = 0; k < rows; k += 4) {
        quad_pack(even, odd, o, rows, k, col, cols, width, 0);
        for (uint32_t j = 0; j < width; j += BLOCK) {
            uint32_t *out = (uint32_t *)panel + j / BLOCK * BLOCK_WORDS + k / 2 * BLOCK;
            memcpy(out, even + j, BLOCK * 4);
            memcpy(out + BLOCK, odd + j, BLOCK * 4);
        }
    }
}

#endif
