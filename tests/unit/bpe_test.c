// SPDX-License-Identifier: Apache-2.0
// bpe_test.c — byte pairs: learnt in a known order, decoded to what was encoded, whatever the bytes.
#include <string.h>

#include "tests/unit/unit.h"
#include "train/bpe.h"

static const char *round_trip(Arena *a, const Bpe *b, const uint8_t *text, size_t n) {
    size_t count;
    const uint32_t *tokens = bpe_encode(a, b, text, n, &count);
    Buf back = {.arena = a};
    for (size_t i = 0; i < count; i++)
        bpe_decode(b, tokens[i], &back);
    return back.n != n || (n && memcmp(back.at, text, n)) ? "another text comes back" : NULL;
}

static void known(Arena *a) {
    Bpe b;
    const char *text = "low low low lower lowest newest newest";
    bpe_learn(a, (const uint8_t *)text, strlen(text), BPE_BYTES + 4, &b);
    // "lo" and "ow" come five times each: the smaller tokens first
    bool good = b.count == 4 && b.pairs[0].left == 'l' && b.pairs[0].right == 'o' && b.pairs[1].left == BPE_BYTES && b.pairs[1].right == 'w';
    result("the most frequent first, of equals the smaller", good ? NULL : "another order");
    result("it comes back", round_trip(a, &b, (const uint8_t *)text, strlen(text)));
    size_t count;
    bpe_encode(a, &b, (const uint8_t *)"low", 3, &count);
    result("a word of one token", count == 1 ? NULL : "more tokens");
    Bpe none;
    bpe_learn(a, (const uint8_t *)"abc", 3, BPE_BYTES + 100, &none);
    result("a text without pairs", none.count == 0 ? round_trip(a, &none, (const uint8_t *)"abc", 3) : "it has some");
}

static void any(Arena *a) {
    uint8_t text[4000];
    uint64_t seed = 3;
    const char *why = NULL;
    for (int round = 0; round < 20 && !why; round++) {
        size_t n = rng_next(&seed) % sizeof text;
        for (size_t i = 0; i < n; i++)
            text[i] = round % 2 ? (uint8_t)rng_next(&seed) : (uint8_t)("ab \n"[rng_next(&seed) % 4]);
        Bpe b, again;
        bpe_learn(a, text, n, BPE_BYTES + 200, &b), bpe_learn(a, text, n, BPE_BYTES + 200, &again);
        why = round_trip(a, &b, text, n);
        if (!why && (b.count != again.count || memcmp(b.pairs, again.pairs, b.count * sizeof *b.pairs)))
            why = "learnt twice, two results";
        for (uint32_t i = 0; i < b.count && !why; i++)
            if (b.pairs[i].left >= BPE_BYTES + i || b.pairs[i].right >= BPE_BYTES + i)
                why = "a pair of what is not there yet";
    }
    result("any bytes", why);
}

int main(void) {
    Ctx ctx = {0};
    Arena a;
    arena_init(&a, &ctx);
    known(&a);
    any(&a);
    arena_fini(&a);
    return failures != 0;
}
