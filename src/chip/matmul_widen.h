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
