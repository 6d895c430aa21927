// SPDX-License-Identifier: Apache-2.0
// cast.c — tensor_copy: rows of one type to rows of another, chiefly PSUM to SBUF.
//
// One element is converted as dtype.h says; that is the definition (cast_element). Adjacent
// elements of the pairs that matter go through vector rows with the same bits: fp32 to itself, to
// bf16, f16 and the 8-bit floats, and from them to fp32.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "chip/dma.h"
#include "chip/matmul.h"

#define GRAIN_BYTES (32u << 10)

static void float_to_int(int dtype, uint8_t *p, double v) {
    const DtypeRow *r = dtype_row(dtype);
    bool is_signed = r->cls == DC_SINT;
    uint64_t max = ~0ull >> (64 - r->bits + is_signed);
    double top = ldexp(1, r->bits - is_signed); // one above the largest
    int64_t i = r->cls == DC_BOOL             ? v != 0
                : isnan(v)                    ? 0
                : v >= top                    ? (int64_t)max
                : is_signed && v <= -top      ? (int64_t)~max
                : !is_signed && v <= 0        ? 0
                : !is_signed && r->bits == 64 ? (int64_t)(uint64_t)v
                                              : (int64_t)v;
    dtype_from_i64(dtype, p, i);
}

static void int_to_float(int dst_dtype, uint8_t *dst, int src_dtype, const uint8_t *src) {
    int64_t i = dtype_to_i64(src_dtype, src);
    bool negative = dtype_row(src_dtype)->cls == DC_SINT && i < 0;
    uint64_t mag = negative ? 0 - (uint64_t)i : (uint64_t)i;
    double v = (double)mag;
    if (mag >> 53 && dst_dtype != DT_F64) {
        // Too long for a double: keep 53 bits, the last one standing for all that was dropped, so
        // that the narrower format still rounds as from the integer itself.
        int drop = 11 - __builtin_clzll(mag);
        bool sticky = mag & ((1ull << drop) - 1);
        v = ldexp((double)(mag >> drop | sticky), drop);
    }
    dtype_from_f64(dst_dtype, dst, negative ? -v : v);
}

static void f16_to_f32_quiet(uint8_t *dst, const uint8_t *src) {
    uint16_t h;
    memcpy(&h, src, 2);
    float f = f16_to_f32(h);
    uint32_t u;
    memcpy(&u, &f, 4);
    if ((u & 0x7fffffff) > 0x7f800000)
        u |= 0x400000; // the vector instruction quiets
    memcpy(dst, &u, 4);
}

static void cast_element(int dst_dtype, uint8_t *dst, int src_dtype, const uint8_t *src) {
    float f;
    uint16_t h;
    if (dst_dtype == src_dtype) {
        memcpy(dst, src, dtype_bytes(dst_dtype));
    } else if (src_dtype == DT_F32 && dst_dtype == DT_BF16) {
        memcpy(&f, src, 4);
        h = bf16_from_f32(f);
        memcpy(dst, &h, 2);
    } else if (src_dtype == DT_BF16 && dst_dtype == DT_F32) {
        memcpy(&h, src, 2);
        f = bf16_to_f32(h);
        memcpy(dst, &f, 4);
    } else if (src_dtype == DT_F32 && dst_dtype == DT_F16) {
        memcpy(&f, src, 4);
        h = f16_from_f32(f);
        memcpy(dst, &h, 2);
    } else if (src_dtype == DT_F16 && dst_dtype == DT_F32) {
        f16_to_f32_quiet(dst, src);
    } else if (dtype_is_float(src_dtype)) {
        double v = dtype_to_f64(src_dtype, src);
        if (dtype_is_float(dst_dtype))
            dtype_from_f64(dst_dtype, dst, v);
        else
            float_to_int(dst_dtype, dst, v);
    } else if (dtype_is_float(dst_dtype)) {
        int_to_float(dst_dtype, dst, src_dtype, src);
    } else {
        dtype_from_i64(dst_dtype, dst, dtype_to_i64(src_dtype, src));
    }
}

// --- adjacent elements, vector rows ------------------------------------------------------------

// Converts whole vectors from the front of a row and says how many elements that was.
typedef size_t CastRow(uint8_t *dst, const uint8_t *src, size_t n);

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma,f16c")))
#define INLINE static inline __attribute__((always_inline)) TARGET

// bf16_from_f32 in eight lanes of 32 bits.
INLINE __m256i bf16_lanes(__m256i u) {
    __m256i top = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
    __m256 f = _mm256_castsi256_ps(u), nan = _mm256_cmp_ps(f, f, _CMP_UNORD_Q);
    return _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), quiet, _mm256_castps_si256(nan));
}

static TARGET size_t row_f32_bf16(uint8_t *dst, const uint8_t *src, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = bf16_lanes(_mm256_loadu_si256((const __m256i *)(src + i * 4)));
        __m256i b = bf16_lanes(_mm256_loadu_si256((const __m256i *)(src + i * 4 + 32)));
        __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
        _mm256_storeu_si256((__m256i *)(dst + i * 2), packed);
    }
    return i;
}

static TARGET size_t row_bf16_f32(uint8_t *dst, const uint8_t *src, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i u = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(src + i * 2)));
        _mm256_storeu_si256((__m256i *)(dst + i * 4), _mm256_slli_epi32(u, 16));
    }
    return i;
}

static TARGET size_t row_f32_f16(uint8_t *dst, const uint8_t *src, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 f = _mm256_loadu_ps((const float *)(src + i * 4));
        _mm_storeu_si128((__m128i *)(dst + i * 2), _mm256_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT));
    }
    return i;
}

static TARGET size_t row_f16_f32(uint8_t *dst, const uint8_t *src, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 f = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i * 2)));
        _mm256_storeu_ps((float *)(dst + i * 4), f);
    }
    return i;
}

// An 8-bit float from fp32: normal results by integer rounding of the mantissa, subnormal ones by
// the adder (a constant whose last bit is the format's smallest step), then overflow and NaN by
// code.
//   max      code of the largest finite value
//   over     code for what rounds beyond it
INLINE __m256i f8_lanes(__m256 x, const int man, const int bias, const int max, const int over,
                        const int nan_code) {
    __m256i u = _mm256_castps_si256(x), sign = _mm256_srli_epi32(u, 31);
    u = _mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff));
    const int drop = 23 - man, least = 1 - bias - man; // exponent of the smallest step
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, drop), _mm256_set1_epi32(1));
    __m256i round = _mm256_add_epi32(_mm256_set1_epi32((1 << (drop - 1)) - 1), odd);
    __m256i code = _mm256_srli_epi32(_mm256_add_epi32(u, round), drop);
    code = _mm256_sub_epi32(code, _mm256_set1_epi32((127 - bias) << man));
    __m256i magic = _mm256_set1_epi32((127 + least + 23) << 23);
    __m256 moved = _mm256_add_ps(_mm256_castsi256_ps(u), _mm256_castsi256_ps(magic));
    __m256i small = _mm256_sub_epi32(_mm256_castps_si256(moved), magic);
    __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32((127 + 1 - bias) << 23), u);
    code = _mm256_blendv_epi8(code, small, is_small);
    code = _mm256_blendv_epi8(code, _mm256_set1_epi32(over),
                              _mm256_cmpgt_epi32(code, _mm256_set1_epi32(max)));
    code = _mm256_blendv_epi8(code, _mm256_set1_epi32(nan_code),
                              _mm256_cmpgt_epi32(u, _mm256_set1_epi32(0x7f800000)));
    return _mm256_or_si256(code, _mm256_slli_epi32(sign, 7));
}

#define ROW_F8(name, man, bias, max, over, nan)                                                    \
    static TARGET size_t row_f32_##name(uint8_t *dst, const uint8_t *src, size_t n) {              \
        size_t i = 0;                                                                              \
        for (; i + 8 <= n; i += 8) {                                                               \
            __m256i c = f8_lanes(_mm256_loadu_ps((const float *)(src + i * 4)), man, bias, max,    \
                                 over, nan);                                                       \
            __m128i h =                                                                            \
                _mm_packus_epi32(_mm256_castsi256_si128(c), _mm256_extracti128_si256(c, 1));       \
            _mm_storel_epi64((__m128i *)(dst + i), _mm_packus_epi16(h, h));                        \
        }                                                                                          \
        return i;                                                                                  \
    }
ROW_F8(f8e4m3, 3, 7, 0x77, 0x78, 0x7c)
ROW_F8(f8e4m3fn, 3, 7, 0x7e, 0x7f, 0x7f)
ROW_F8(f8e5m2, 2, 15, 0x7b, 0x7c, 0x7e)
ROW_F8(f8e3m4, 4, 3, 0x6f, 0x70, 0x78)

#define ROW_FROM_F8(name, type)                                                                    \
    static size_t row_##name##_f32(uint8_t *dst, const uint8_t *src, size_t n) {                   \
        size_t whole = n / 8 * 8;                                                                  \
        mm_avx2.widen((float *)dst, whole, src, whole, type, 1, (uint32_t)whole);                  \
        return whole;                                                                              \
    }
ROW_FROM_F8(f8e4m3, DT_F8E4M3)
ROW_FROM_F8(f8e4m3fn, DT_F8E4M3FN)
ROW_FROM_F8(f8e5m2, DT_F8E5M2)
ROW_FROM_F8(f8e3m4, DT_F8E3M4)

static const struct {
    uint8_t dst, src;
    CastRow *row;
} rows[] = {
    {DT_BF16, DT_F32, row_f32_bf16},         {DT_F32, DT_BF16, row_bf16_f32},
    {DT_F16, DT_F32, row_f32_f16},           {DT_F32, DT_F16, row_f16_f32},
    {DT_F8E4M3, DT_F32, row_f32_f8e4m3},     {DT_F32, DT_F8E4M3, row_f8e4m3_f32},
    {DT_F8E4M3FN, DT_F32, row_f32_f8e4m3fn}, {DT_F32, DT_F8E4M3FN, row_f8e4m3fn_f32},
    {DT_F8E5M2, DT_F32, row_f32_f8e5m2},     {DT_F32, DT_F8E5M2, row_f8e5m2_f32},
    {DT_F8E3M4, DT_F32, row_f32_f8e3m4},     {DT_F32, DT_F8E3M4, row_f8e3m4_f32},
};
#endif

static CastRow *row_find(HostLevel level, int dst_dtype, int src_dtype) {
#if defined(__x86_64__)
    for (size_t i = 0; level >= HOST_AVX2 && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dst == dst_dtype && rows[i].src == src_dtype)
            return rows[i].row;
#endif
    (void)level, (void)dst_dtype, (void)src_dtype;
    return NULL;
}

// --- rows and threads ----------------------------------------------------------------------------

typedef struct Cast {
    uint8_t *dst;
    const uint8_t *src;
    size_t dst_pitch, src_pitch;
    ptrdiff_t dst_step, src_step; // bytes between neighbours
    int dst_dtype, src_dtype;
    uint32_t cols;
    bool same; // adjacent elements of one type: memcpy
    CastRow *row;
} Cast;

static __attribute__((noinline)) void cast_rows(const Cast *c, size_t begin, size_t end) {
    for (size_t p = begin; p < end; p++) {
        uint8_t *dst = c->dst + p * c->dst_pitch;
        const uint8_t *src = c->src + p * c->src_pitch;
        if (c->same) {
            memmove(dst, src, c->cols * dtype_bytes(c->dst_dtype));
            continue;
        }
        for (size_t j = c->row ? c->row(dst, src, c->cols) : 0; j < c->cols; j++)
            cast_element(c->dst_dtype, dst + (ptrdiff_t)j * c->dst_step, c->src_dtype,
                         src + (ptrdiff_t)j * c->src_step);
    }
}

static void cast_task(void *arg, size_t begin, size_t end) {
    HostFp old = host_fp_begin(HOST_FP_IEEE);
    cast_rows(arg, begin, end);
    host_fp_end(old);
}

void tensor_copy(Pool *pool, HostLevel level, uint8_t *dst, size_t dst_pitch, int dst_dtype,
                 int32_t dst_stride, const uint8_t *src, size_t src_pitch, int src_dtype,
                 int32_t src_stride, uint32_t parts, uint32_t cols) {
    assert(!dtype_is_complex(dst_dtype) && dtype_bytes(dst_dtype));
    assert(!dtype_is_complex(src_dtype) && dtype_bytes(src_dtype));
    Cast c = {dst,
              src,
              dst_pitch,
              src_pitch,
              (ptrdiff_t)dst_stride * (ptrdiff_t)dtype_bytes(dst_dtype),
              (ptrdiff_t)src_stride * (ptrdiff_t)dtype_bytes(src_dtype),
              dst_dtype,
              src_dtype,
              cols,
              false,
              NULL};
    if (dst_stride == 1 && src_stride == 1) {
        c.same = dst_dtype == src_dtype;
        c.row = row_find(level, dst_dtype, src_dtype);
    }
    if (cols)
        pool_run(pool, parts, GRAIN_BYTES / (cols * dtype_bytes(src_dtype)) + 1, cast_task, &c);
}
