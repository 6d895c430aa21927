// SPDX-License-Identifier: Apache-2.0
// rows.h — copies of many short rows: a call of memcpy for each would cost more than its bytes.
#ifndef OTRN_BASE_ROWS_H
#define OTRN_BASE_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ROWS_SHORT 64 // bytes of a row that rows_copy is meant for

#define ROWS_OF(n)                                                                                 \
    case n:                                                                                        \
        for (size_t r = 0; r < rows; r++, dst += d, src += s)                                      \
            memcpy(dst, src, n);                                                                   \
        return

// rows of `bytes` adjacent bytes, d and s bytes apart. They do not overlap.
static inline void rows_copy(uint8_t *dst, int64_t d, const uint8_t *src, int64_t s, size_t rows, size_t bytes) {
    switch (bytes) {
        ROWS_OF(4);
        ROWS_OF(8);
        ROWS_OF(16);
        ROWS_OF(32);
        ROWS_OF(64);
    }
    for (size_t r = 0; r < rows; r++, dst += d, src += s)
        memcpy(dst, src, bytes);
}
#undef ROWS_OF

#endif
