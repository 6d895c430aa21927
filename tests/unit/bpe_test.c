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

// The definition: count every pair of every word, take the most frequent, of equals the smaller, again and again.
static uint32_t plain_learn(const uint8_t *text, size_t n, uint32_t most, BpePair *out) {
    enum { END = UINT32_MAX };
    static uint32_t tokens[4096];
    static uint32_t counts[512][512];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && (text[i] == ' ' || text[i] == '\n'))
            tokens[count++] = END; // words begin with white space
        tokens[count++] = text[i];
    }
    uint32_t learnt = 0;
    for (; learnt < most; learnt++) {
        BpePair best = {0, 0};
        memset(counts, 0, sizeof counts);
        for (size_t i = 0; i + 1 < count; i++)
            if (tokens[i] != END && tokens[i + 1] != END)
                counts[tokens[i]][tokens[i + 1]]++;
        for (uint32_t l = 0; l < 512; l++)
            for (uint32_t r = 0; r < 512; r++)
                if (counts[l][r] > counts[best.left][best.right])
                    best = (BpePair){l, r};
        if (counts[best.left][best.right] < 2)
            break;
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
            bool both = i + 1 < count && tokens[i] == best.left && tokens[i + 1] == best.right;
            tokens[kept++] = both ? BPE_BYTES + learnt : tokens[i];
            i += both;
        }
        count = kept, out[learnt] = best;
    }
    return learnt;
}

static void as_defined(Arena *a) {
    uint8_t text[1500];
    uint64_t seed = 11;
    const char *why = NULL;
    for (int round = 0; round < 6 && !why; round++) {
        size_t n = 200 + rng_next(&seed) % 1300;
        for (size_t i = 0; i < n; i++)
            text[i] = (uint8_t)("aabbcde \n"[rng_next(&seed) % (round % 2 ? 9 : 5)]);
        for (size_t i = 30; i < n; i += 30)
            text[i] = ' '; // no word is cut
        Bpe b;
        BpePair plain[60];
        bpe_learn(a, text, n, BPE_BYTES + 60, &b);
        uint32_t count = plain_learn(text, n, 60, plain);
        if (count != b.count || memcmp(plain, b.pairs, count * sizeof *plain))
            why = "other pairs than by the definition";
    }
    result("pairs as defined", why);
}

int main(void) {
    Ctx ctx = {0};
    Arena a;
    arena_init(&a, &ctx);
    known(&a);
    any(&a);
    as_defined(&a);
    arena_fini(&a);
    return failures != 0;
}
