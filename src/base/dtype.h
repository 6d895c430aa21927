// SPDX-License-Identifier: Apache-2.0
// dtype.h — the table of element types: all of StableHLO's, one row each.
//
// Host form: one element takes `bytes` bytes (sub-byte types take one byte each, value in the low
// bits; integers sign- or zero-extended to the byte). Complex is real then imaginary.
// Columns: enum, StableHLO name, npy descriptor ("" = none), class, host bytes, bits, exponent
// bits, mantissa bits, bias, float flavour.
#ifndef OTRN_BASE_DTYPE_H
#define OTRN_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum DtypeClass { DC_NONE, DC_BOOL, DC_SINT, DC_UINT, DC_FLOAT, DC_COMPLEX } DtypeClass;

// How a float format spends its top exponent and its sign of zero.
typedef enum FloatFlavour {
    FF_NONE,
    FF_IEEE, // inf and nan as in IEEE 754
    FF_FN,   // no inf, nan = all ones
    FF_FNUZ, // no inf, no -0, nan = the pattern of -0
    FF_SAT,  // neither inf nor nan (f4, f6): conversion saturates, nan becomes -0
    FF_E8M0, // power of two only, nan = 0xff, no sign, no zero: that becomes nan
} FloatFlavour;

#define DTYPE_ROWS(X)                                                                              \
    /* enum      name             npy     class  bytes bits exp man bias flavour */                \
    X(INVALID, "invalid", "", DC_NONE, 0, 0, 0, 0, 0, FF_NONE)                                     \
    X(I1, "i1", "|b1", DC_BOOL, 1, 1, 0, 0, 0, FF_NONE)                                            \
    X(I2, "i2", "", DC_SINT, 1, 2, 0, 0, 0, FF_NONE)                                               \
    X(I4, "i4", "", DC_SINT, 1, 4, 0, 0, 0, FF_NONE)                                               \
    X(I8, "i8", "|i1", DC_SINT, 1, 8, 0, 0, 0, FF_NONE)                                            \
    X(I16, "i16", "<i2", DC_SINT, 2, 16, 0, 0, 0, FF_NONE)                                         \
    X(I32, "i32", "<i4", DC_SINT, 4, 32, 0, 0, 0, FF_NONE)                                         \
    X(I64, "i64", "<i8", DC_SINT, 8, 64, 0, 0, 0, FF_NONE)                                         \
    X(UI2, "ui2", "", DC_UINT, 1, 2, 0, 0, 0, FF_NONE)                                             \
    X(UI4, "ui4", "", DC_UINT, 1, 4, 0, 0, 0, FF_NONE)                                             \
    X(UI8, "ui8", "|u1", DC_UINT, 1, 8, 0, 0, 0, FF_NONE)                                          \
    X(UI16, "ui16", "<u2", DC_UINT, 2, 16, 0, 0, 0, FF_NONE)                                       \
    X(UI32, "ui32", "<u4", DC_UINT, 4, 32, 0, 0, 0, FF_NONE)                                       \
    X(UI64, "ui64", "<u8", DC_UINT, 8, 64, 0, 0, 0, FF_NONE)                                       \
    X(F4E2M1FN, "f4E2M1FN", "", DC_FLOAT, 1, 4, 2, 1, 1, FF_SAT)                                   \
    X(F6E2M3FN, "f6E2M3FN", "", DC_FLOAT, 1, 6, 2, 3, 1, FF_SAT)                                   \
    X(F6E3M2FN, "f6E3M2FN", "", DC_FLOAT, 1, 6, 3, 2, 3, FF_SAT)                                   \
    X(F8E3M4, "f8E3M4", "", DC_FLOAT, 1, 8, 3, 4, 3, FF_IEEE)                                      \
    X(F8E4M3, "f8E4M3", "", DC_FLOAT, 1, 8, 4, 3, 7, FF_IEEE)                                      \
    X(F8E4M3FN, "f8E4M3FN", "", DC_FLOAT, 1, 8, 4, 3, 7, FF_FN)                                    \
    X(F8E4M3FNUZ, "f8E4M3FNUZ", "", DC_FLOAT, 1, 8, 4, 3, 8, FF_FNUZ)                              \
    X(F8E4M3B11FNUZ, "f8E4M3B11FNUZ", "", DC_FLOAT, 1, 8, 4, 3, 11, FF_FNUZ)                       \
    X(F8E5M2, "f8E5M2", "", DC_FLOAT, 1, 8, 5, 2, 15, FF_IEEE)                                     \
    X(F8E5M2FNUZ, "f8E5M2FNUZ", "", DC_FLOAT, 1, 8, 5, 2, 16, FF_FNUZ)                             \
    X(F8E8M0FNU, "f8E8M0FNU", "", DC_FLOAT, 1, 8, 8, 0, 127, FF_E8M0)                              \
    X(BF16, "bf16", "<V2", DC_FLOAT, 2, 16, 8, 7, 127, FF_IEEE)                                    \
    X(F16, "f16", "<f2", DC_FLOAT, 2, 16, 5, 10, 15, FF_IEEE)                                      \
    X(TF32, "tf32", "", DC_FLOAT, 4, 19, 8, 10, 127, FF_IEEE)                                      \
    X(F32, "f32", "<f4", DC_FLOAT, 4, 32, 8, 23, 127, FF_IEEE)                                     \
    X(F64, "f64", "<f8", DC_FLOAT, 8, 64, 11, 52, 1023, FF_IEEE)                                   \
    X(C64, "complex<f32>", "<c8", DC_COMPLEX, 8, 64, 0, 0, 0, FF_NONE)                             \
    X(C128, "complex<f64>", "<c16", DC_COMPLEX, 16, 128, 0, 0, 0, FF_NONE)                         \
    X(INDEX, "index", "", DC_SINT, 8, 64, 0, 0, 0, FF_NONE)                                        \
    X(TOKEN, "!stablehlo.token", "", DC_NONE, 0, 0, 0, 0, 0, FF_NONE)

typedef enum Dtype {
#define X(e, ...) DT_##e,
    DTYPE_ROWS(X)
#undef X
        DT_COUNT
} Dtype;

typedef struct DtypeRow {
    const char *name, *npy;
    uint8_t cls, bytes, bits, exp_bits, man_bits;
    int16_t bias;
    uint8_t flavour;
} DtypeRow;

extern const DtypeRow dtype_rows[DT_COUNT];

static inline const DtypeRow *dtype_row(int d) { return &dtype_rows[d]; }
static inline size_t dtype_bytes(int d) { return dtype_rows[d].bytes; }
static inline bool dtype_is_float(int d) { return dtype_rows[d].cls == DC_FLOAT; }
static inline bool dtype_is_complex(int d) { return dtype_rows[d].cls == DC_COMPLEX; }
static inline bool dtype_is_int(int d) { // signed or unsigned, not bool
    return dtype_rows[d].cls == DC_SINT || dtype_rows[d].cls == DC_UINT;
}
static inline bool dtype_on_tensor_engine(int d) { // types the array multiplies
    return d == DT_F32 || d == DT_TF32 || d == DT_BF16 || d == DT_F16 || d == DT_F8E3M4 ||
           d == DT_F8E4M3 || d == DT_F8E4M3FN || d == DT_F8E5M2;
}
int dtype_parse(const char *name, size_t n); // -1 when unknown

// Exact conversions through the table. to_f64 is lossless for every float type but none for
// complex; from_f64 rounds once, to nearest even, with the overflow rule of the format's flavour.
double dtype_to_f64(int float_dtype, const void *p);
void dtype_from_f64(int float_dtype, void *p, double v);
// Integers and bool, through int64 (unsigned 64 keeps its bits). Storing wraps at the type's width.
int64_t dtype_to_i64(int int_dtype, const void *p);
void dtype_from_i64(int int_dtype, void *p, int64_t v);
// n elements of a type of less than 8 bits in their host form: integers extended, floats with clear top bits, bools 0 or 1.
void dtype_canonicalise(int dtype, uint8_t *p, size_t n);

// Quick forms for the types every kernel meets.
static inline float bf16_to_f32(uint16_t h) {
    union {
        uint32_t u;
        float f;
    } v = {.u = (uint32_t)h << 16};
    return v.f;
}
static inline uint16_t bf16_from_f32(float f) { // nearest even, NaN kept quiet
    union {
        float f;
        uint32_t u;
    } v = {.f = f};
    if ((v.u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(v.u >> 16 | 0x40);
    return (uint16_t)((v.u + 0x7fff + (v.u >> 16 & 1)) >> 16);
}
float f16_to_f32(uint16_t h);
uint16_t f16_from_f32(float f);

#endif
