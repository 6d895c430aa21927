// SPDX-License-Identifier: Apache-2.0
// sha256_test.c — the published values of SHA-256 (FIPS 180-4 and NIST's example messages), both forms, every tail.
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "tests/unit/unit.h"

typedef struct Vector {
    const char *name, *text, *hash; // text as many times as `times` says
    size_t times;
} Vector;

static const Vector vectors[] = {
    {"nothing", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 1},
    {"abc", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 1},
    {"448 bits", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", 1},
    {"896 bits", "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1", 1},
    {"a million a", "a", "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", 1000000},
};

int main(void) {
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const Vector *v = &vectors[i];
        size_t n = strlen(v->text), all = n * v->times;
        char *bytes = malloc(all + 1), text[SHA256_TEXT];
        for (size_t k = 0; k < v->times; k++)
            memcpy(bytes + k * n, v->text, n);
        Sha256 h = sha256(bytes, all);
        sha256_print(&h, text);
        Sha256 plain = sha256_portable(bytes, all);
        expect(!strcmp(text, v->hash) && !memcmp(&plain, &h, sizeof h), v->name, text);
        free(bytes);
    }
    uint8_t bytes[600];
    uint64_t seed = 1;
    const char *why = NULL;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)rng_next(&seed);
    for (size_t n = 0; n + 3 <= sizeof bytes && !why; n++) {
        Sha256 a = sha256(bytes + n % 3, n), b = sha256_portable(bytes + n % 3, n);
        why = memcmp(&a, &b, sizeof a) ? "the two forms differ" : NULL;
    }
    result("every length up to 597, both forms", why);
    return failures != 0;
}
