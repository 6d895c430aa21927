// SPDX-License-Identifier: Apache-2.0
// pb.c — protocol buffers written by hand.
#include "base/pb.h"

enum { KIND_VARINT = 0, KIND_BYTES = 2 };

static void pb_put_varint(Buf *out, uint64_t v) {
    for (; v > 127; v >>= 7)
        put_u8(out, (uint8_t)(v | 128));
    put_u8(out, (uint8_t)v);
}

void pb_put_int(Buf *out, uint32_t field, int64_t v) {
    pb_put_varint(out, field << 3 | KIND_VARINT);
    pb_put_varint(out, (uint64_t)v);
}

void pb_put_bytes(Buf *out, uint32_t field, const void *at, size_t n) {
    pb_put_varint(out, field << 3 | KIND_BYTES);
    pb_put_varint(out, n);
    if (n)
        buf_put(out, at, n);
}

void pb_put_ints(Buf *out, uint32_t field, const int64_t *v, uint32_t n) {
    Buf list = {.arena = out->arena};
    for (uint32_t i = 0; i < n; i++)
        pb_put_varint(&list, (uint64_t)v[i]);
    pb_put_bytes(out, field, list.at, list.n);
}
