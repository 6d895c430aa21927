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
// A merge changes only the words that have its pair: each pair knows them (some no longer have it), and the most frequent pair is on top of
// a heap. A heap's row may say more than is true, never less: what has become rarer is put back when it comes to the top.

typedef struct Pair {
    uint64_t key;
    int64_t count, told; // told: in its row of the heap; 0: it has none
    VEC(uint32_t) words;
} Pair;

typedef struct Row {
    int64_t count;
    uint64_t key;
    uint32_t pair;
} Row;

typedef struct Learn {
    Arena *arena;
    Words words;
    Table index; // of pairs, by key
    VEC(Pair) pairs;
    VEC(Row) heap;
    VEC(uint32_t) more; // pairs of words that were just counted
} Learn;

static bool above(const Row *x, const Row *y) { return x->count > y->count || (x->count == y->count && x->key < y->key); }

static void heap_push(Learn *l, Row row) {
    VEC_PUSH(l->arena, &l->heap, row);
    size_t i = l->heap.n - 1;
    for (; i && above(&row, &l->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap.at[i] = l->heap.at[(i - 1) / 2];
    l->heap.at[i] = row;
}

static Row heap_pop(Learn *l) {
    Row *h = l->heap.at, top = h[0], last = h[--l->heap.n];
    size_t n = l->heap.n, i = 0;
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        k += k + 1 < n && above(&h[k + 1], &h[k]);
        if (!above(&h[k], &last))
            break;
        h[i] = h[k];
    }
    if (n)
        h[i] = last;
    return top;
}

static uint32_t pair_get(Learn *l, uint64_t key) {
    Slot *s = slot_get(l->arena, &l->index, key);
    if (!s->value) {
        VEC_PUSH(l->arena, &l->pairs, (Pair){.key = key});
        s->value = l->pairs.n;
    }
    return (uint32_t)s->value - 1;
}

static void word_count(Learn *l, uint32_t word, bool there) {
    const Word *w = &l->words.all.at[word];
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        uint32_t at = pair_get(l, key_of((BpePair){w->tokens[i], w->tokens[i + 1]}));
        Pair *p = &l->pairs.at[at];
        p->count += there ? w->count : -w->count;
        if (there && (!p->words.n || p->words.at[p->words.n - 1] != word))
            VEC_PUSH(l->arena, &p->words, word);
        if (there)
            VEC_PUSH(l->arena, &l->more, at);
    }
}

static void row_tell(Learn *l, uint32_t at) {
    Pair *p = &l->pairs.at[at];
    if (p->count > 1 && p->count > p->told)
        p->told = p->count, heap_push(l, (Row){p->count, p->key, at});
}

static void more_tell(Learn *l) {
    for (uint32_t i = 0; i < l->more.n; i++)
        row_tell(l, l->more.at[i]);
    l->more.n = 0;
}

static bool has(const Word *w, BpePair p) {
    for (uint32_t i = 0; i + 1 < w->n; i++)
        if (w->tokens[i] == p.left && w->tokens[i + 1] == p.right)
            return true;
    return false;
}

static bool best_find(Learn *l, uint32_t *out) {
    while (l->heap.n) {
        Row top = heap_pop(l);
        Pair *p = &l->pairs.at[top.pair];
        if (top.count != p->told) // an older row of it
            continue;
        p->told = 0, *out = top.pair;
        if (p->count == top.count)
            return true;
        row_tell(l, top.pair);
    }
    return false;
}

static void merge(Learn *l, uint32_t pair, uint32_t token, BpePair *out) {
    uint64_t key = l->pairs.at[pair].key - 1;
    *out = (BpePair){(uint32_t)(key >> 32), (uint32_t)key};
    uint32_t n = l->pairs.at[pair].words.n, *in = l->pairs.at[pair].words.at; // it gets no more of them
    for (uint32_t i = 0; i < n; i++) {
        if (!has(&l->words.all.at[in[i]], *out))
            continue;
        word_count(l, in[i], false);
        word_merge(&l->words.all.at[in[i]], *out, token);
        word_count(l, in[i], true);
    }
    more_tell(l);
}

void bpe_learn(Arena *a, const uint8_t *text, size_t n, uint32_t tokens, Bpe *out) {
    Learn l = {.arena = a};
    assert(tokens >= BPE_BYTES && tokens <= BPE_TOKENS_MAX);
    n = n < LEARN_BYTES ? n : LEARN_BYTES;
    for (size_t i = 0; i < n;) {
        size_t end = word_end(text, i, n);
        word_get(a, &l.words, text + i, end - i)->count++;
        i = end;
    }
    for (uint32_t i = 0; i < l.words.all.n; i++)
        word_count(&l, i, true);
    more_tell(&l);
    *out = (Bpe){.pairs = ARENA_NEWN(a, BpePair, tokens - BPE_BYTES + 1)};
    for (uint32_t best; out->count < tokens - BPE_BYTES && best_find(&l, &best); out->count++)
        merge(&l, best, BPE_BYTES + out->count, &out->pairs[out->count]);
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
