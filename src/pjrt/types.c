// SPDX-License-Identifier: Apache-2.0
// types.c — PJRT's element types beside the core's, and sizes of arrays.
#include "pjrt/pjrt.h"

#define TYPE_ROWS(X)                                                                               \
    X(PRED, I1)                                                                                    \
    X(S8, I8) X(S16, I16) X(S32, I32) X(S64, I64) X(U8, UI8) X(U16, UI16) X(U32, UI32)             \
    X(U64, UI64) X(F16, F16) X(F32, F32) X(F64, F64) X(BF16, BF16) X(C64, C64) X(C128, C128)       \
    X(F8E5M2, F8E5M2) X(F8E4M3FN, F8E4M3FN) X(F8E4M3B11FNUZ, F8E4M3B11FNUZ)                        \
    X(F8E5M2FNUZ, F8E5M2FNUZ) X(F8E4M3FNUZ, F8E4M3FNUZ) X(S4, I4) X(U4, UI4) X(TOKEN, TOKEN)       \
    X(S2, I2) X(U2, UI2) X(F8E4M3, F8E4M3) X(F8E3M4, F8E3M4) X(F8E8M0FNU, F8E8M0FNU)               \
    X(F4E2M1FN, F4E2M1FN) X(F6E2M3FN, F6E2M3FN) X(F6E3M2FN, F6E3M2FN)

enum { TYPE_LAST = PJRT_Buffer_Type_F6E3M2FN };

int pj_dtype(PJRT_Buffer_Type type) {
    static const uint8_t dtypes[TYPE_LAST + 1] = {
#define X(pjrt, core) [PJRT_Buffer_Type_##pjrt] = DT_##core,
        TYPE_ROWS(X)
#undef X
    };
    return (unsigned)type <= TYPE_LAST ? dtypes[type] : DT_INVALID;
}

PJRT_Buffer_Type pj_buffer_type(int dtype) {
    static const uint8_t types[DT_COUNT] = {
#define X(pjrt, core) [DT_##core] = PJRT_Buffer_Type_##pjrt,
        TYPE_ROWS(X)
#undef X
    };
    return types[dtype];
}

PJRT_Error *pj_shape_bytes(PJRT_Buffer_Type type, const int64_t *dims, size_t rank, size_t *bytes) {
    int dtype = pj_dtype(type);
    if (dtype == DT_INVALID)
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "opentrn has no element type for PJRT buffer type %d", (int)type);
    if (rank > PJ_MAX_RANK)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT, "opentrn: rank %zu is above %d", rank,
                        PJ_MAX_RANK);
    bool empty = false;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                            "opentrn: dimension %zu has size %lld", i, (long long)dims[i]);
        empty |= dims[i] == 0;
    }
    size_t n = empty ? 0 : dtype_bytes(dtype);
    for (size_t i = 0; i < rank && !empty; i++)
        if (__builtin_mul_overflow(n, (size_t)dims[i], &n) || n > PTRDIFF_MAX / 2)
            return pj_error(PJRT_Error_Code_RESOURCE_EXHAUSTED,
                            "opentrn: an array of rank %zu is larger than any memory", rank);
    *bytes = n;
    return PJ_OK;
}
