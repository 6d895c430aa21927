// SPDX-License-Identifier: Apache-2.0
// sha256.h — SHA-256 (FIPS 180-4): names of contents that nobody can make two of.
#ifndef OTRN_BASE_SHA256_H
#define OTRN_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_TEXT (2 * SHA256_BYTES + 1) // as hexadecimal digits and a zero

typedef struct Sha256 {
    uint8_t at[SHA256_BYTES];
} Sha256;

Sha256 sha256(const void *bytes, size_t n);
void sha256_print(const Sha256 *h, char out[SHA256_TEXT]);
// The same without the host's SHA instructions, the definition; for tests.
Sha256 sha256_portable(const void *bytes, size_t n);

#endif
