// SPDX-License-Identifier: Apache-2.0
// tol.c — the tolerance table and the comparison that uses it.
//
// Where the chip may differ from the evaluator:
//   1. The evaluator sums dot products and convolutions in f32 in the order of the axes; the chip
//      sums in f32 in its tile order. With K terms of one size the f32 error grows like sqrt(K) u relative
//      to the norm of the terms, u = 2^-24: 4e-6 for K = 4096, 2e-5 for K = 100,000.
//   2. Reductions are sequential in the evaluator and in parallel lanes on the chip: same bound.
//   3. Elementary functions on the chip are a few ulp off the rounded double ones.
//   4. bf16 and f16 programs: fused chains may keep f32 between ops where the evaluator rounds, so
//      results differ by a few roundings of the narrow type.
// The relative part covers 1 to 4 for results that did not cancel; the absolute part covers results
// that are small because terms of size about 1 cancelled. ulps admits neighbours where rel is finer
// than the type's spacing (tiny formats, subnormals). Integers and bool are exact on both sides.
#include "hlo/tol.h"

#include <math.h>
#include <string.h>

// all zero for integers and bool: exact
static TolRow tol_row(int dtype) {
    switch (dtype) {
    case DT_F64: // K terms in another order: sqrt(1e5) * 2^-53 is 4e-14
    case DT_C128:
        return (TolRow){8, 1e-13, 1e-13};
    case DT_F32: // 2e-5 is sqrt(1e5) * 2^-24; small sums of unit terms: a tenth of that
    case DT_C64:
        return (TolRow){8, 2e-5, 2e-6};
    case DT_TF32: // 10 mantissa bits
    case DT_F16:  // two spacings of 2^-10, plus the same of values near 0.5
        return (TolRow){2, 2e-3, 1e-3};
    case DT_BF16: // two spacings of 2^-7
        return (TolRow){2, 1.6e-2, 8e-3};
    default: // formats of 8 bits and fewer: the neighbour, since both sides round once
        return dtype_is_float(dtype) ? (TolRow){1, 0, 0} : (TolRow){0, 0, 0};
    }
}

uint64_t tol_line_position(int dtype, const void *p) {
    uint64_t u = 0, sign = 1ull << ((dtype == DT_TF32 ? 32 : dtype_row(dtype)->bits) - 1);
    memcpy(&u, p, dtype_bytes(dtype));
    if (dtype_row(dtype)->flavour == FF_E8M0)
        return u;
    uint64_t mag = u & (sign - 1);
    return u & sign ? (1ull << 63) - mag : (1ull << 63) + mag;
}

static bool float_close(TolRow r, int dtype, const void *got, const void *want) {
    double g = dtype_to_f64(dtype, got), w = dtype_to_f64(dtype, want);
    if (isnan(g) || isnan(w))
        return isnan(g) && isnan(w);
    if (isinf(g) || isinf(w))
        return g == w;
    if (fabs(g - w) <= r.abs_ + r.rel * fabs(w))
        return true;
    uint64_t a = tol_line_position(dtype, got), b = tol_line_position(dtype, want);
    return (a > b ? a - b : b - a) <= r.ulps;
}

bool tol_close(int dtype, const void *got, const void *want, size_t elems, size_t *bad) {
    TolRow r = tol_row(dtype);
    int part = dtype == DT_C64 ? DT_F32 : dtype == DT_C128 ? DT_F64 : dtype;
    size_t parts = part == dtype ? 1 : 2, bytes = dtype_bytes(part);
    const uint8_t *g = got, *w = want;
    for (size_t i = 0; i < elems * parts; i++, g += bytes, w += bytes) {
        bool ok = dtype_is_float(part) ? float_close(r, part, g, w)
                                       : dtype_to_i64(part, g) == dtype_to_i64(part, w);
        if (!ok) {
            if (bad)
                *bad = i / parts;
            return false;
        }
    }
    return true;
}
