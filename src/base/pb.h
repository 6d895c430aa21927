// SPDX-License-Identifier: Apache-2.0
// pb.h — protocol buffers written by hand: a field is a varint of its number and kind, then its value.
#ifndef OTRN_BASE_PB_H
#define OTRN_BASE_PB_H

#include "base/bytes.h"

void pb_put_int(Buf *out, uint32_t field, int64_t v);
void pb_put_bytes(Buf *out, uint32_t field, const void *at, size_t n); // text, bytes, a message
void pb_put_ints(Buf *out, uint32_t field, const int64_t *v, uint32_t n); // packed

#endif
