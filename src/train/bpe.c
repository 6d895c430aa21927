// SPDX-License-Identifier: Apache-2.0
// bpe.c — byte pairs learnt, and texts as tokens.
#include "train/bpe.h"

#include <assert.h>

#define LEARN_BYTES ((size_t)4 << 20) // of a text, to learn from

static bool is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static size_t word_end(const uint8_t *text, size_t from, size_t n) {
    size_t i = from + 1;
    while (i < n && !is_space(text[i]) && i - from < BPE_WORD_BYTES)
        i++;
    return i;
}

// --- a table from two numbers to one ---------------------------------------------------------------

typedef struct Slot {
    uint64_t key; // plus one; 0: free
    int64_t value;
} Slot;

typedef struct Table {
    Slot *at;
    size_t cap, n;
} Table;

static uint64_t key_of(BpePair p) { return ((uint64_t)p.left << 32 | p.right) + 1; }

static Slot *slot_find(const Table *t, uint64_t key) {
    size_t i = (size_t)(key * 0x9e3779b97f4a7c15ull >> 20) & (t->cap - 1);
    while (t->at[i].key && t->at[i].key != key)
        i = (i + 1) & (t->cap - 1);
    return &t->at[i];
}

static Slot *slot_get(Arena *a, Table *t, uint64_t key) { // makes it, with value 0
    if (2 * (t->n + 1) > t->cap) {
        Table more = {.cap = t->cap ? 2 * t->cap : 1024};
        more.at = ARENA_NEWN(a, Slot, more.cap);
        for (size_t i = 0; i < t->cap; i++)
            if (t->at[i].key)
                *slot_find(&more, t->at[i].key) = t->at[i];
        more.n = t->n;
        *t = more;
    }
    Slot *s = slot_find(t, key);
    if (!s->key)
        s->key = key, t->n++;
    return s;
}

// --- words -----------------------------------------------------------------------------------------

typedef struct Word {
    const uint8_t *text;
    uint32_t bytes, n; // n: tokens
    int64_t count;     // in the text
    uint32_t *tokens;
} Word;

typedef struct Words {
    VEC(Word) all;
    uint32_t *index; // by hash; plus one
    size_t cap;
} Words;

static uint32_t *place_of(Words *w, const uint8_t *text, size_t bytes) {
    size_t i = (size_t)hash64(7, text, bytes) & (w->cap - 1);
    while (w->index[i]) {
        const Word *at = &w->all.at[w->index[i] - 1];
        if (at->bytes == bytes && !memcmp(at->text, text, bytes))
            break;
        i = (i + 1) & (w->cap - 1);
    }
    return &w->index[i];
}

static Word *word_get(Arena *a, Words *w, const uint8_t *text, size_t bytes) {
    if (2 * ((size_t)w->all.n + 1) > w->cap) {
        w->cap = w->cap ? 2 * w->cap : 4096;
        w->index = ARENA_NEWN(a, uint32_t, w->cap);
        for (uint32_t i = 0; i < w->all.n; i++)
            *place_of(w, w->all.at[i].text, w->all.at[i].bytes) = i + 1;
    }
    uint32_t *place = place_of(w, text, bytes);
    if (!*place) {
        Word word = {.text = text, .bytes = (uint32_t)bytes, .n = (uint32_t)bytes, .tokens = ARENA_NEWN(a, uint32_t, bytes)};
        for (size_t i = 0; i < bytes; i++)
            word.tokens[i] = text[i];
        VEC_PUSH(a, &w->all, word);
        *place = w->all.n;
    }
    return &w->all.at[*place - 1];
}

static void word_merge(Word *w, BpePair p, uint32_t token) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        bool both = i + 1 < w->n && w->tokens[i] == p.left && w->tokens[i + 1] == p.right;
        w->tokens[n++] = both ? token : w->tokens[i];
        i += both;
    }
    w->n = n;
}

// --- learning --------------------------------------------------------------------------------------

static void word_count(Arena *a, Table *t, const Word *w, int64_t times) {
    for (uint32_t i = 0; i + 1 < w->n; i++)
        slot_get(a, t, key_of((BpePair){w->tokens[i], w->tokens[i + 1]}))->value += times;
}

static bool has(const Word *w, BpePair p) {
    for (uint32_t i = 0; i + 1 < w->n; i++)
        if (w->tokens[i] == p.left && w->tokens[i + 1] == p.right)
            return true;
    return false;
}

static bool best_find(const Table *t, BpePair *out) {
    const Slot *best = NULL;
    for (size_t i = 0; i < t->cap; i++) {
        const Slot *s = &t->at[i];
        if (s->key && s->value > 1 && (!best || s->value > best->value || (s->value == best->value && s->key < best->key)))
            best = s;
    }
    if (best)
        *out = (BpePair){(uint32_t)((best->key - 1) >> 32), (uint32_t)(best->key - 1)};
    return best;
}

void bpe_learn(Arena *a, const uint8_t *text, size_t n, uint32_t tokens, Bpe *out) {
    Words words = {0};
    Table pairs = {0};
    assert(tokens >= BPE_BYTES && tokens <= BPE_TOKENS_MAX);
    n = n < LEARN_BYTES ? n : LEARN_BYTES;
    for (size_t i = 0; i < n;) {
        size_t end = word_end(text, i, n);
        word_get(a, &words, text + i, end - i)->count++;
        i = end;
    }
    for (uint32_t i = 0; i < words.all.n; i++)
        word_count(a, &pairs, &words.all.at[i], words.all.at[i].count);
    *out = (Bpe){.pairs = ARENA_NEWN(a, BpePair, tokens - BPE_BYTES + 1)};
    BpePair best;
    while (out->count < tokens - BPE_BYTES && best_find(&pairs, &best)) {
        for (uint32_t i = 0; i < words.all.n; i++) {
            Word *w = &words.all.at[i];
            if (!has(w, best))
                continue;
            word_count(a, &pairs, w, -w->count);
            word_merge(w, best, BPE_BYTES + out->count);
            word_count(a, &pairs, w, w->count);
        }
        out->pairs[out->count++] = best;
    }
}

// --- texts -----------------------------------------------------------------------------------------

// The pair that was learnt first goes first, as long as there is one.
static void word_encode(const Table *ranks, const Bpe *b, Word *w) {
    for (;;) {
        int64_t first = b->count;
        for (uint32_t i = 0; i + 1 < w->n; i++) {
            const Slot *s = ranks->cap ? slot_find(ranks, key_of((BpePair){w->tokens[i], w->tokens[i + 1]})) : NULL;
            if (s && s->key && s->value < first)
                first = s->value;
        }
        if (first == b->count)
            return;
        word_merge(w, b->pairs[first], BPE_BYTES + (uint32_t)first);
    }
}

uint32_t *bpe_encode(Arena *a, const Bpe *b, const uint8_t *text, size_t n, size_t *count) {
    Words words = {0};
    Table ranks = {0};
    VEC(uint32_t) out = {0};
    for (uint32_t i = 0; i < b->count; i++)
        slot_get(a, &ranks, key_of(b->pairs[i]))->value = i;
    for (size_t i = 0; i < n;) {
        size_t end = word_end(text, i, n);
        Word *w = word_get(a, &words, text + i, end - i);
        if (!w->count++)
            word_encode(&ranks, b, w);
        for (uint32_t k = 0; k < w->n; k++)
            VEC_PUSH(a, &out, w->tokens[k]);
        i = end;
    }
    *count = out.n;
    return out.at;
}

void bpe_decode(const Bpe *b, uint32_t token, Buf *out) {
    if (token < BPE_BYTES) {
        put_u8(out, (uint8_t)token);
    } else if (token - BPE_BYTES < b->count) {
        bpe_decode(b, b->pairs[token - BPE_BYTES].left, out); // of smaller tokens, and a word is short
        bpe_decode(b, b->pairs[token - BPE_BYTES].right, out);
    }
}
