// SPDX-License-Identifier: Apache-2.0
// matmul_amx.c — packing for AMX and the walk over its blocks; the tile instructions are in matmul_tiles.c.
//
// A tile is 16 rows of 64 bytes. One TDPBF16PS takes 32 rows of k, two to a 32-bit word:
//
//            b: 16 columns                   word [p][n] of b = rows 2p (low) and 2p + 1 of column n,
//          +---------------+                 word [m][p] of a = the same of the stationary's column m.
//     p 16 |               |
//   p      +---------------+                 It chains the low halves, chains the high halves, each from
//  +---+   +---------------+                 zero, and adds their sum to c, flushing subnormals: one group
//  | a | m |       c       |                 of the narrow order (design: "Numbers are the chip's").
//  +---+   +---------------+
//
// Rows of k beyond the last are -0 in a and +0 in b: adding -0 changes nothing, a zero's sign included. The
// packed stationary operand is [block of 16 columns][group][tile], an even number of blocks.
#if defined(__x86_64__)

#include <immintrin.h>

#include "chip/host/matmul.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))
#define BLOCK (2 * AMX_TILE)
#define PAD_A 0x8000u // -0 in bf16

static uint32_t groups_of(uint32_t k) {
    return (k + MM_GROUP - 1) / MM_GROUP;
}

// Two rows of widened values as one row of words. Exact: their low halves are zero.
static TARGET __m512i words_join(__m512i even, __m512i odd) {
    return _mm512_or_si512(_mm512_srli_epi32(even, 16), _mm512_maskz_mov_epi16(0xaaaaaaaau, odd));
}

// Words [p][n], n < 16, of rows [2p] and [2p + 1] of a block of widened values that has `rows` rows.
static TARGET void words_from_f32(uint32_t *out, const float *in, uint32_t width, uint32_t rows,
                                  uint32_t pad) {
    const __m512i none = _mm512_set1_epi32((int)(pad << 16));
    for (uint32_t p = 0; p < AMX_TILE; p++, out += AMX_TILE) {
        __m512i even = 2 * p < rows ? _mm512_loadu_si512(in + 2 * p * width) : none;
        __m512i odd = 2 * p + 1 < rows ? _mm512_loadu_si512(in + (2 * p + 1) * width) : none;
        _mm512_storeu_si512(out, words_join(even, odd));
    }
}

// out[m][p] = in[p][m], 16 x 16 words: four rounds that interleave at growing distance.
static TARGET void words_transpose(uint32_t *out, const uint32_t *in) {
    __m512i r[16], t[16];
    for (int i = 0; i < 16; i++)
        r[i] = _mm512_loadu_si512(in + i * AMX_TILE);
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { // r[i + j]: rows i .. i + 3 of columns j, j + 4, j + 8, j + 12
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int j = 0; j < 4; j++) { // t: rows 0 .. 7, then 8 .. 15, of columns j and j + 8, j + 4 and j + 12
        t[j] = _mm512_shuffle_i32x4(r[j], r[j + 4], 0x88);
        t[j + 4] = _mm512_shuffle_i32x4(r[j], r[j + 4], 0xdd);
        t[j + 8] = _mm512_shuffle_i32x4(r[j + 8], r[j + 12], 0x88);
        t[j + 12] = _mm512_shuffle_i32x4(r[j + 8], r[j + 12], 0xdd);
    }
    for (int j = 0; j < 4; j++) {
        _mm512_storeu_si512(out + j * AMX_TILE, _mm512_shuffle_i32x4(t[j], t[j + 8], 0x88));
        _mm512_storeu_si512(out + (j + 8) * AMX_TILE, _mm512_shuffle_i32x4(t[j], t[j + 8], 0xdd));
        _mm512_storeu_si512(out + (j + 4) * AMX_TILE, _mm512_shuffle_i32x4(t[j + 4], t[j + 12], 0x88));
        _mm512_storeu_si512(out + (j + 12) * AMX_TILE, _mm512_shuffle_i32x4(t[j + 4], t[j + 12], 0xdd));
    }
}

static uint32_t *stationary_tile(const MmStationary *st, uint32_t block, uint32_t group) {
    return (uint32_t *)st->panels + (block * groups_of(st->k) + group) * AMX_TILE_WORDS;
}

void mm_load_amx(MmStationary *st, const MmOperand *o) {
    _Alignas(64) float rows[MM_GROUP * ISA_PE_COLS];
    _Alignas(64) uint32_t words[AMX_TILE_WORDS];
    uint32_t width = (st->m + BLOCK - 1) / BLOCK * BLOCK;
    for (uint32_t g = 0; g < groups_of(st->k); g++) {
        uint32_t k0 = g * MM_GROUP, n = st->k - k0 < MM_GROUP ? st->k - k0 : MM_GROUP;
        MmOperand part = *o;
        part.at += k0 * o->pitch;
        mm_widen_block(&mm_avx512, rows, width, &part, n, 0, st->m);
        for (uint32_t b = 0; b < width / AMX_TILE; b++) {
            words_from_f32(words, rows + b * AMX_TILE, width, n, PAD_A);
            words_transpose(stationary_tile(st, b, g), words);
        }
    }
}

void mm_unpack_amx(float *panels, const MmStationary *st) {
    uint32_t width = (st->m + MM_BLOCK_COLS - 1) / MM_BLOCK_COLS * MM_BLOCK_COLS; // within the even number of blocks
    for (uint32_t m = 0; m < width; m++)
        for (uint32_t k = 0; k < st->k; k++) {
            const uint32_t *tile = stationary_tile(st, m / AMX_TILE, k / MM_GROUP);
            uint32_t word = tile[m % AMX_TILE * AMX_TILE + k % MM_GROUP / 2];
            uint16_t half = (uint16_t)(k & 1 ? word >> 16 : word);
            panels[m / MM_BLOCK_COLS * MM_BLOCK_FLOATS + k * MM_BLOCK_COLS + m % MM_BLOCK_COLS] = bf16_to_f32(half);
        }
}

// 32 adjacent columns of bf16: no detour over fp32.
static TARGET void moving_pack_bf16(uint32_t *out[2], const uint8_t *src, size_t pitch, uint32_t k) {
    static const uint16_t low[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                     8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
    const __m512i first = _mm512_loadu_si512(low);
    const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
    const __m512i none = _mm512_setzero_si512();
    for (uint32_t p = 0; p < groups_of(k) * AMX_TILE; p++, src += 2 * pitch) {
        __m512i even = 2 * p < k ? _mm512_loadu_si512(src) : none;
        __m512i odd = 2 * p + 1 < k ? _mm512_loadu_si512(src + pitch) : none;
        _mm512_storeu_si512(out[0] + p * AMX_TILE, _mm512_permutex2var_epi16(even, first, odd));
        _mm512_storeu_si512(out[1] + p * AMX_TILE, _mm512_permutex2var_epi16(even, second, odd));
    }
}

// out[s]: columns j + 16 s …, of which cols exist.
static void moving_pack(uint32_t *out[2], const MmOperand *o, uint32_t k, uint32_t j, uint32_t cols) {
    if (o->stype == DT_BF16 && o->step == 2 && cols == BLOCK) {
        moving_pack_bf16(out, o->at + (ptrdiff_t)j * 2, o->pitch, k);
        return;
    }
    _Alignas(64) float rows[MM_GROUP * BLOCK];
    for (uint32_t g = 0; g < groups_of(k); g++) {
        uint32_t k0 = g * MM_GROUP, n = k - k0 < MM_GROUP ? k - k0 : MM_GROUP;
        MmOperand part = *o;
        part.at += k0 * o->pitch;
        mm_widen_block(&mm_avx512, rows, BLOCK, &part, n, j, cols);
        words_from_f32(out[0] + g * AMX_TILE_WORDS, rows, BLOCK, n, 0);
        words_from_f32(out[1] + g * AMX_TILE_WORDS, rows + AMX_TILE, BLOCK, n, 0);
    }
}

// Every NaN of 32 x 32 results as 0x7fc00000; the common case is one look.
static TARGET void block_clean(float *c, size_t pitch) {
    __mmask16 any = 0;
    for (uint32_t r = 0; r < BLOCK; r++) {
        const float *row = (const float *)((const uint8_t *)c + r * pitch);
        any |= _mm512_cmp_ps_mask(_mm512_loadu_ps(row), _mm512_loadu_ps(row + 16), _CMP_UNORD_Q);
    }
    if (!any)
        return;
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(MM_NAN));
    for (uint32_t r = 0; r < BLOCK; r++)
        for (uint32_t h = 0; h < BLOCK; h += 16) {
            float *at = (float *)((uint8_t *)c + r * pitch) + h;
            __m512 x = _mm512_loadu_ps(at);
            _mm512_mask_storeu_ps(at, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
        }
}

// A block at an edge, or into a strided result: by way of a full one. rows and cols are wanted.
static void block_edge(MmAmxBlock *b, MmAmxBlockFn *block, int32_t stride, uint32_t rows, uint32_t cols) {
    _Alignas(64) float tmp[BLOCK * BLOCK] = {0};
    float *c = b->c;
    size_t pitch = b->c_pitch;
    for (uint32_t r = 0; b->accumulate && r < rows; r++)
        for (uint32_t j = 0; j < cols; j++)
            tmp[r * BLOCK + j] = ((float *)((uint8_t *)c + r * pitch))[(ptrdiff_t)j * stride];
    b->c = tmp, b->c_pitch = BLOCK * sizeof(float);
    block(b);
    block_clean(tmp, b->c_pitch);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t j = 0; j < cols; j++)
            ((float *)((uint8_t *)c + r * pitch))[(ptrdiff_t)j * stride] = tmp[r * BLOCK + j];
}

void mm_multiply_tiles(const MmCall *c, uint32_t j0, uint32_t j1, MmAmxBlockFn *block) {
    const MmStationary *st = c->st;
    MmOperand o = mm_operand(c->src, c->src_pitch, c->stype, c->src_stride);
    _Alignas(64) uint32_t words[2][AMX_GROUPS_MAX * AMX_TILE_WORDS];
    uint32_t *out[2] = {words[0], words[1]};
    uint32_t blocks = (st->m + BLOCK - 1) / BLOCK;
    MmFetch load = mm_load_fetch(c->next_load);
    uint32_t load_lines = mm_fetch_share(&load, (j1 - j0 + BLOCK - 1) / BLOCK * blocks);
    for (uint32_t j = j0, cols; j < j1; j += cols) {
        cols = j1 - j < BLOCK ? j1 - j : BLOCK;
        moving_pack(out, &o, st->k, j, cols);
        const uint8_t *at = j + cols < j1 ? o.at + (ptrdiff_t)(j + cols) * o.step
                            : c->next_src ? (const uint8_t *)c->next_src + (ptrdiff_t)j0 * o.step
                                          : NULL;
        MmFetch next = {.row = at, .pitch = o.pitch, .bytes = BLOCK * dtype_bytes(o.stype),
                        .rows = at ? st->k : 0};
        uint32_t next_lines = mm_fetch_share(&next, blocks);
        for (uint32_t i = 0; i < blocks; i++) {
            mm_fetch_lines(&next, next_lines, true);
            mm_fetch_lines(&load, load_lines, false);
            uint32_t m = i * BLOCK, rows = st->m - m < BLOCK ? st->m - m : BLOCK;
            MmAmxBlock b = {.a = {stationary_tile(st, 2 * i, 0), stationary_tile(st, 2 * i + 1, 0)},
                            .b = {words[0], words[1]},
                            .c = (float *)((uint8_t *)c->dst + m * c->dst_pitch) +
                                 (ptrdiff_t)j * c->dst_stride,
                            .c_pitch = c->dst_pitch,
                            .groups = groups_of(st->k),
                            .accumulate = c->accumulate};
            if (rows < BLOCK || cols < BLOCK || c->dst_stride != 1) {
                block_edge(&b, block, c->dst_stride, rows, cols);
            } else {
                block(&b);
                block_clean(b.c, b.c_pitch);
            }
        }
    }
}

void mm_multiply_amx(const MmCall *c, uint32_t j0, uint32_t j1) {
    mm_amx_begin();
    mm_multiply_tiles(c, j0, j1, mm_amx_block);
    mm_amx_end();
}

#else // no host offers HOST_AMX

#include <assert.h>

#include "chip/host/matmul.h"

void mm_load_amx(MmStationary *st, const MmOperand *o) {
    (void)st, (void)o;
    assert(!"x86 only");
}
void mm_multiply_amx(const MmCall *c, uint32_t j0, uint32_t j1) {
    (void)c, (void)j0, (void)j1;
    assert(!"x86 only");
}
void mm_unpack_amx(float *panels, const MmStationary *st) {
    (void)panels, (void)st;
    assert(!"x86 only");
}

#endif
