// SPDX-License-Identifier: Apache-2.0
// inflate.h — what deflate has packed (RFC 1951), in zlib's wrapping (RFC 1950), as PNG files have it.
#ifndef OTRN_BASE_INFLATE_H
#define OTRN_BASE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Exactly `bytes` of it. False: the stream is damaged, or is of another length.
bool inflate_zlib(const uint8_t *from, size_t n, uint8_t *to, size_t bytes);

#endif
