// SPDX-License-Identifier: Apache-2.0
// md5_test.c — the values of RFC 1321, whole and in two pieces cut anywhere.
#include <string.h>

#include "base/md5.h"
#include "tests/unit/unit.h"

static const char *const vectors[][2] = {
    {"", "d41d8cd98f00b204e9800998ecf8427e"},
    {"abc", "900150983cd24fb0d6963f7d28e17f72"},
    {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"},
    {"12345678901234567890123456789012345678901234567890123456789012345678901234567890", "57edf4a22be3c955ac49da2e2107b67a"},
};

int main(void) {
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const char *text = vectors[i][0], *why = NULL;
        size_t n = strlen(text);
        for (size_t cut = 0; cut <= n && !why; cut++) {
            Md5 m;
            uint8_t hash[MD5_BYTES];
            char hex[2 * MD5_BYTES + 1];
            md5_init(&m);
            md5_add(&m, text, cut), md5_add(&m, text + cut, n - cut);
            md5_end(&m, hash);
            for (int k = 0; k < MD5_BYTES; k++)
                snprintf(hex + 2 * k, 3, "%02x", hash[k]);
            why = strcmp(hex, vectors[i][1]) ? "another value" : NULL;
        }
        result(*text ? text : "nothing", why);
    }
    return failures != 0;
}
