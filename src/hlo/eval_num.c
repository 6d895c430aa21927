// SPDX-License-Identifier: Apache-2.0
// eval_num.c — elements in and out of their wide form, index odometers, strided copies.
#include <assert.h>
#include <math.h>

#include "hlo/eval_in.h"

// --- floats
// ----------------------------------------------------------------------------------------

// A double rounded to odd at float precision: rounding that once more to a format at least two bits
// narrower gives what rounding the double directly would (no double rounding).
static float odd_f32(double v) {
    float f = (float)v;
    if (f == v || v != v)
        return f;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if (!(bits & 1))
        bits += fabs((double)f) < fabs(v) ? 1u : -1u;
    memcpy(&f, &bits, 4);
    return f;
}

// Loops per common type; the others go through the type table one by one.
#define LOAD_LOOP(T, expr)                                                                         \
    for (size_t i = 0; i < n; i++, src += stride) {                                                \
        T x;                                                                                       \
        memcpy(&x, src, sizeof x);                                                                 \
        out[i] = (expr);                                                                           \
    }
#define STORE_LOOP(T, expr)                                                                        \
    for (size_t i = 0; i < n; i++, dst += sizeof(T)) {                                             \
        T x = (T)(expr);                                                                           \
        memcpy(dst, &x, sizeof x);                                                                 \
    }

static void load_floats(int dtype, const uint8_t *src, int64_t stride, size_t n, double *out) {
    if (dtype == DT_F32)
        LOAD_LOOP(float, x)
    else if (dtype == DT_F64)
        LOAD_LOOP(double, x)
    else if (dtype == DT_BF16)
        LOAD_LOOP(uint16_t, bf16_to_f32(x))
    else if (dtype == DT_F16)
        LOAD_LOOP(uint16_t, f16_to_f32(x))
    else
        for (size_t i = 0; i < n; i++, src += stride)
            out[i] = dtype_to_f64(dtype, src);
}

static void store_floats(int dtype, uint8_t *dst, size_t n, const double *in) {
    if (dtype == DT_F32)
        STORE_LOOP(float, in[i])
    else if (dtype == DT_F64)
        STORE_LOOP(double, in[i])
    else if (dtype == DT_BF16)
        STORE_LOOP(uint16_t, bf16_from_f32(odd_f32(in[i])))
    else if (dtype == DT_F16)
        STORE_LOOP(uint16_t, f16_from_f32(odd_f32(in[i])))
    else
        for (size_t i = 0; i < n; i++, dst += dtype_bytes(dtype))
            dtype_from_f64(dtype, dst, in[i]);
}

// --- integers
// --------------------------------------------------------------------------------------

static void load_ints(int dtype, const uint8_t *src, int64_t stride, size_t n, WideInt *out) {
    if (dtype == DT_I32)
        LOAD_LOOP(int32_t, x)
    else if (dtype == DT_UI32)
        LOAD_LOOP(uint32_t, x)
    else if (dtype == DT_I64 || dtype == DT_UI64)
        LOAD_LOOP(int64_t, x)
    else
        for (size_t i = 0; i < n; i++, src += stride)
            out[i] = dtype_to_i64(dtype, src);
}

static void store_ints(int dtype, uint8_t *dst, size_t n, const WideInt *in) {
    if (dtype == DT_I32 || dtype == DT_UI32)
        STORE_LOOP(uint32_t, (uint64_t)in[i])
    else if (dtype == DT_I64 || dtype == DT_UI64)
        STORE_LOOP(int64_t, in[i])
    else
        for (size_t i = 0; i < n; i++, dst += dtype_bytes(dtype))
            dtype_from_i64(dtype, dst, in[i]);
}

// --- either
// ----------------------------------------------------------------------------------------

static int complex_part(int dtype) {
    return dtype == DT_C64 ? DT_F32 : DT_F64;
}

void eval_load(int dtype, const void *src, int64_t stride, size_t n, void *wide) {
    switch (eval_wide_kind(dtype)) {
    case WIDE_F:
        load_floats(dtype, src, stride, n, wide);
        return;
    case WIDE_I:
        load_ints(dtype, src, stride, n, wide);
        return;
    case WIDE_C:
        for (size_t i = 0; i < n; i++) {
            int part = complex_part(dtype);
            const uint8_t *p = (const uint8_t *)src + (int64_t)i * stride;
            load_floats(part, p, (int64_t)dtype_bytes(part), 2, (double *)wide + 2 * i);
        }
    }
}

void eval_store(int dtype, void *dst, size_t n, const void *wide) {
    switch (eval_wide_kind(dtype)) {
    case WIDE_F:
        store_floats(dtype, dst, n, wide);
        return;
    case WIDE_I:
        store_ints(dtype, dst, n, wide);
        return;
    case WIDE_C:
        store_floats(complex_part(dtype), dst, 2 * n, wide);
    }
}

void eval_store_computed(int dtype, void *dst, size_t n, void *wide) {
    WideKind kind = eval_wide_kind(dtype);
    double *x = wide;
    for (size_t i = 0; kind != WIDE_I && i < (kind == WIDE_C ? 2 * n : n); i++) {
        if (dtype_row(dtype)->flavour == FF_E8M0) // it has no zero: what f32 has as one is none of its numbers
            x[i] = (float)x[i];
        if (isnan(x[i]))
            x[i] = NAN;
    }
    eval_store(dtype, dst, n, wide);
}

void eval_round(int dtype, size_t n, void *wide) {
    if (dtype == DT_F64 || dtype == DT_C128 || dtype == DT_I64 || dtype == DT_UI64)
        return;
    if (dtype == DT_F32) {
        double *v = wide;
        for (size_t i = 0; i < n; i++)
            v[i] = (float)v[i];
        return;
    }
    size_t elem = dtype_bytes(dtype), wide_elem = eval_wide_bytes(dtype);
    for (size_t i = 0; i < n; i++) {
        uint8_t host[16];
        uint8_t *w = (uint8_t *)wide + i * wide_elem;
        eval_store(dtype, host, 1, w);
        eval_load(dtype, host, (int64_t)elem, 1, w);
    }
}

// --- odometers and boxes
// ---------------------------------------------------------------------------

void box_init(Box *b, int rank, const int64_t *dims) {
    assert(rank >= 0 && rank <= OTRN_MAX_RANK);
    b->rank = rank;
    b->dims = dims;
    b->more = true;
    for (int i = 0; i < rank; i++) {
        b->at[i] = 0;
        if (dims[i] <= 0)
            b->more = false;
    }
}

void box_next(Box *b) {
    for (int i = b->rank - 1; i >= 0; i--) {
        if (++b->at[i] < b->dims[i])
            return;
        b->at[i] = 0;
    }
    b->more = false;
}

void eval_strides(const HloType *t, int64_t *bytes) {
    int64_t s = (int64_t)dtype_bytes(t->dtype);
    for (int i = t->rank - 1; i >= 0; i--) {
        bytes[i] = s;
        s *= t->dims[i];
    }
}

static void copy_row(size_t elem, int64_t n, uint8_t *dst, int64_t ds, const uint8_t *src,
                     int64_t ss) {
    if (ds == (int64_t)elem && ss == (int64_t)elem) {
        memcpy(dst, src, (size_t)n * elem);
        return;
    }
#define ROW(bytes)                                                                                 \
    for (int64_t i = 0; i < n; i++)                                                                \
        memcpy(dst + i * ds, src + i * ss, (bytes));
    switch (elem) { // constant sizes become single moves
    case 1:
        ROW(1) break;
    case 2:
        ROW(2) break;
    case 4:
        ROW(4) break;
    case 8:
        ROW(8) break;
    default:
        ROW(elem)
    }
#undef ROW
}

void eval_copy_box(size_t elem, int rank, const int64_t *dims, void *dst, const int64_t *dst_stride,
                   const void *src, const int64_t *src_stride) {
    if (rank == 0) {
        memcpy(dst, src, elem);
        return;
    }
    int last = rank - 1;
    if (dims[last] <= 0)
        return;
    Box b;
    for (box_init(&b, last, dims); b.more; box_next(&b)) {
        int64_t d = 0, s = 0;
        for (int i = 0; i < last; i++) {
            d += b.at[i] * dst_stride[i];
            s += b.at[i] * src_stride[i];
        }
        copy_row(elem, dims[last], (uint8_t *)dst + d, dst_stride[last], (const uint8_t *)src + s,
                 src_stride[last]);
    }
}
