// SPDX-License-Identifier: Apache-2.0
// md5.h — MD5 (RFC 1321), in pieces: the name that object stores give to what was put there. No protection against anybody.
#ifndef OTRN_BASE_MD5_H
#define OTRN_BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

#define MD5_BYTES 16

typedef struct Md5 {
    uint32_t state[4];
    uint64_t bytes;
    uint8_t part[64]; // of a block that is not full
} Md5;

void md5_init(Md5 *m);
void md5_add(Md5 *m, const void *bytes, size_t n);
void md5_end(Md5 *m, uint8_t out[MD5_BYTES]);

#endif
