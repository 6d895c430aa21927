// SPDX-License-Identifier: Apache-2.0
// gp_body_reduce.h — reductions of contiguous runs and of rows, in orders fixed by length alone.
//
// A run of floats: 64 partial results, element i joins partial i mod 64, then halves are folded.
// Callers cut long runs into blocks of RUN_BLOCK and fold the blocks pairwise (gp_reduce.c). Rows:
// four rows are combined pairwise before they join the accumulator.
#include "chip/host/gp_body_base.h"

#define OP_ADD(S, a, b) ((a) + (b))
#define OP_MUL(S, a, b) ((a) * (b))
#define OP_MAX(S, a, b) max_##S(a, b)
#define OP_MIN(S, a, b) min_##S(a, b)
#define OP_AND(S, a, b) ((a) & (b))
#define OP_OR(S, a, b) ((a) | (b))
#define OP_XOR(S, a, b) ((a) ^ (b))

#define INT_MAX_MIN(S, T)                                                                          \
    static inline T max_##S(T a, T b) { return a > b ? a : b; }                                    \
    static inline T min_##S(T a, T b) { return a < b ? a : b; }
INT_MAX_MIN(i8, int8_t)
INT_MAX_MIN(i16, int16_t)
INT_MAX_MIN(i32, int32_t)
INT_MAX_MIN(i64, int64_t)
INT_MAX_MIN(u8, uint8_t)
INT_MAX_MIN(u16, uint16_t)
INT_MAX_MIN(u32, uint32_t)
INT_MAX_MIN(u64, uint64_t)

// GET makes an element its compute type: f32_of_bf16 where bf16 is read, `same` elsewhere.
#define same(v) (v)
#define PARTIALS 64
#define RUN_FLOAT(OP, S, C, T, X, GET)                                                             \
    static void run_##OP##_##S(void *dst, const void *src, size_t n) {                             \
        const X *x = src;                                                                          \
        T acc[PARTIALS];                                                                           \
        size_t i = PARTIALS, width = n;                                                            \
        if (n < PARTIALS) {                                                                        \
            for (size_t j = 0; j < n; j++)                                                         \
                acc[j] = GET(x[j]);                                                                \
            for (size_t h = PARTIALS / 2; h; h >>= 1) {                                            \
                for (size_t j = h; j < width; j++)                                                 \
                    acc[j - h] = (T)OP_##OP(C, acc[j - h], acc[j]);                                \
                width = width < h ? width : h;                                                     \
            }                                                                                      \
            *(T *)dst = acc[0];                                                                    \
            return;                                                                                \
        }                                                                                          \
        for (size_t j = 0; j < PARTIALS; j++)                                                      \
            acc[j] = GET(x[j]);                                                                    \
        for (; i + PARTIALS <= n; i += PARTIALS)                                                   \
            for (size_t j = 0; j < PARTIALS; j++)                                                  \
                acc[j] = (T)OP_##OP(C, acc[j], GET(x[i + j]));                                     \
        for (size_t j = 0; i < n; i++, j++)                                                        \
            acc[j] = (T)OP_##OP(C, acc[j], GET(x[i]));                                             \
        for (size_t j = 0; j < 32; j++) /* the lengths are constants: no loop is left of these */  \
            acc[j] = (T)OP_##OP(C, acc[j], acc[j + 32]);                                           \
        for (size_t j = 0; j < 16; j++)                                                            \
            acc[j] = (T)OP_##OP(C, acc[j], acc[j + 16]);                                           \
        for (size_t j = 0; j < 8; j++)                                                             \
            acc[j] = (T)OP_##OP(C, acc[j], acc[j + 8]);                                            \
        for (size_t j = 0; j < 4; j++)                                                             \
            acc[j] = (T)OP_##OP(C, acc[j], acc[j + 4]);                                            \
        T a = (T)OP_##OP(C, acc[0], acc[2]), b = (T)OP_##OP(C, acc[1], acc[3]);                    \
        *(T *)dst = (T)OP_##OP(C, a, b);                                                           \
    }

// Integers: any order gives the same bits, so the compiler may choose it.
#define RUN_INT(OP, S, T)                                                                          \
    static void run_##OP##_##S(void *dst, const void *src, size_t n) {                             \
        const T *x = src;                                                                          \
        T acc = x[0];                                                                              \
        for (size_t i = 1; i < n; i++)                                                             \
            acc = (T)OP_##OP(S, acc, x[i]);                                                        \
        *(T *)dst = acc;                                                                           \
    }

#define ROWS(OP, S, C, T, X, GET)                                                                  \
    static void rows_##OP##_##S(void *dst, const void *src, size_t pitch, size_t rows, size_t n) { \
        T *acc = dst;                                                                              \
        const X *x = src;                                                                          \
        for (; rows >= 4; rows -= 4, x += 4 * pitch) {                                             \
            const X *r0 = x, *r1 = x + pitch, *r2 = x + 2 * pitch, *r3 = x + 3 * pitch;            \
            LANES(n) {                                                                             \
                T p = (T)OP_##OP(C, GET(r0[i]), GET(r1[i]));                                       \
                T q = (T)OP_##OP(C, GET(r2[i]), GET(r3[i]));                                       \
                T s = (T)OP_##OP(C, p, q);                                                         \
                acc[i] = (T)OP_##OP(C, acc[i], s);                                                 \
            }                                                                                      \
        }                                                                                          \
        for (; rows; rows--, x += pitch)                                                           \
            LANES(n) acc[i] = (T)OP_##OP(C, acc[i], GET(x[i]));                                    \
    }

// Results of all beginnings of a run, each rounded to the element's type before it goes on.
#define SCAN(OP, S, C, T, X, GET, PUT)                                                             \
    static void scan_##OP##_##S(void *dst, const void *src, size_t n, ptrdiff_t step) {            \
        X *y = dst;                                                                                \
        const X *x = src;                                                                          \
        T acc = GET(x[0]);                                                                         \
        *y = PUT(acc);                                                                             \
        for (size_t i = 1; i < n; i++) {                                                           \
            x += step, y += step;                                                                  \
            acc = (T)OP_##OP(C, acc, GET(*x));                                                     \
            *y = PUT(acc);                                                                         \
            acc = GET(*y);                                                                         \
        }                                                                                          \
    }

#define REDUCE(OP, S, T)                                                                           \
    RUN_INT(OP, S, T) ROWS(OP, S, S, T, T, same) SCAN(OP, S, S, T, T, same, same)
#define REDUCE_ONE_FLOAT(OP, S, C, T, X, GET, PUT)                                                 \
    RUN_FLOAT(OP, S, C, T, X, GET) ROWS(OP, S, C, T, X, GET) SCAN(OP, S, C, T, X, GET, PUT)
#define REDUCE_FLOAT(...)                                                                          \
    REDUCE_ONE_FLOAT(ADD, __VA_ARGS__)                                                             \
    REDUCE_ONE_FLOAT(MUL, __VA_ARGS__)                                                             \
    REDUCE_ONE_FLOAT(MAX, __VA_ARGS__)                                                             \
    REDUCE_ONE_FLOAT(MIN, __VA_ARGS__)
#define REDUCE_BITS(S, T) REDUCE(ADD, S, T) REDUCE(AND, S, T) REDUCE(OR, S, T) REDUCE(XOR, S, T)
#define REDUCE_ORDER(S, T) REDUCE(MAX, S, T) REDUCE(MIN, S, T)
REDUCE_FLOAT(f32, f32, float, float, same, same)
REDUCE_FLOAT(f64, f64, double, double, same, same)
REDUCE_FLOAT(bf16, f32, float, uint16_t, f32_of_bf16, bf16_of_f32)
REDUCE_BITS(u8, uint8_t)
REDUCE_BITS(u16, uint16_t)
REDUCE_BITS(u32, uint32_t)
REDUCE_BITS(u64, uint64_t)
REDUCE(MUL, u8, uint8_t)
#undef OP_MUL
#define OP_MUL(S, a, b) ((uint64_t)(a) * (b)) // 16-bit factors would promote to int and overflow
REDUCE(MUL, u16, uint16_t)
REDUCE(MUL, u32, uint32_t)
REDUCE(MUL, u64, uint64_t)
REDUCE_ORDER(i8, int8_t)
REDUCE_ORDER(i16, int16_t)
REDUCE_ORDER(i32, int32_t)
REDUCE_ORDER(i64, int64_t)
REDUCE_ORDER(u8, uint8_t)
REDUCE_ORDER(u16, uint16_t)
REDUCE_ORDER(u32, uint32_t)
REDUCE_ORDER(u64, uint64_t)

#define BITS_ROW(F, OP)                                                                            \
    [LC_I8] = F##_##OP##_u8, [LC_I16] = F##_##OP##_u16, [LC_I32] = F##_##OP##_u32,                 \
    [LC_I64] = F##_##OP##_u64, [LC_U8] = F##_##OP##_u8, [LC_U16] = F##_##OP##_u16,                 \
    [LC_U32] = F##_##OP##_u32, [LC_U64] = F##_##OP##_u64
#define ORDER_ROW(F, OP)                                                                           \
    [LC_I8] = F##_##OP##_i8, [LC_I16] = F##_##OP##_i16, [LC_I32] = F##_##OP##_i32,                 \
    [LC_I64] = F##_##OP##_i64, [LC_U8] = F##_##OP##_u8, [LC_U16] = F##_##OP##_u16,                 \
    [LC_U32] = F##_##OP##_u32, [LC_U64] = F##_##OP##_u64
#define FLOATS_ROW(F, OP)                                                                          \
    [LC_F32] = F##_##OP##_f32, [LC_F64] = F##_##OP##_f64, [LC_BF16] = F##_##OP##_bf16
#define REDUCE_ROWS(F)                                                                             \
    [RED_ADD] = {BITS_ROW(F, ADD), FLOATS_ROW(F, ADD), [LC_BOOL] = F##_OR_u8},                     \
    [RED_MUL] = {BITS_ROW(F, MUL), FLOATS_ROW(F, MUL), [LC_BOOL] = F##_AND_u8},                    \
    [RED_MAX] = {ORDER_ROW(F, MAX), FLOATS_ROW(F, MAX), [LC_BOOL] = F##_OR_u8},                    \
    [RED_MIN] = {ORDER_ROW(F, MIN), FLOATS_ROW(F, MIN), [LC_BOOL] = F##_AND_u8},                   \
    [RED_AND] = {BITS_ROW(F, AND), [LC_BOOL] = F##_AND_u8},                                        \
    [RED_OR] = {BITS_ROW(F, OR), [LC_BOOL] = F##_OR_u8},                                           \
    [RED_XOR] = {BITS_ROW(F, XOR), [LC_BOOL] = F##_XOR_u8}

// --- products ----------------------------------------------------------------------------------

// Columns in strips that stay in registers while the rows go by, in order.
#define STRIP 64
#define MAC(S, T, W)                                                                               \
    static void mac_##S(void *dst, const void *px, const void *pw, size_t pitch, size_t k,         \
                        size_t n) {                                                                \
        T *acc = dst;                                                                              \
        const T *x = px, *w = pw;                                                                  \
        size_t j = 0;                                                                              \
        for (; j + STRIP <= n; j += STRIP) {                                                       \
            T sum[STRIP];                                                                          \
            memcpy(sum, acc + j, sizeof sum);                                                      \
            for (size_t r = 0; r < k; r++) {                                                       \
                const T *row = w + r * pitch + j;                                                  \
                for (size_t i = 0; i < STRIP; i++)                                                 \
                    sum[i] = (T)(sum[i] + (T)((W)x[r] * row[i]));                                  \
            }                                                                                      \
            memcpy(acc + j, sum, sizeof sum);                                                      \
        }                                                                                          \
        for (size_t r = 0; r < k && j < n; r++) {                                                  \
            const T *row = w + r * pitch;                                                          \
            T v = x[r];                                                                            \
            for (size_t i = j; i < n; i++)                                                         \
                acc[i] = (T)(acc[i] + (T)((W)v * row[i]));                                         \
        }                                                                                          \
    }
MAC(f32, float, float)
MAC(f64, double, double)
MAC(u8, uint8_t, uint32_t)
MAC(u16, uint16_t, uint32_t)
MAC(u32, uint32_t, uint32_t)
MAC(u64, uint64_t, uint64_t)
