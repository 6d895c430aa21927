// SPDX-License-Identifier: Apache-2.0
// wire.c — frames and proofs as bytes, and what may not be in them; see net_in.h.
#include <string.h>

#include "base/bytes.h"
#include "net/net_in.h"

#define WIRE_PROTOCOL 3u

// Text in a field: always ended, printable.
static void put_text(uint8_t *to, const char *from, size_t bytes) {
    size_t n = strnlen(from, bytes - 1);
    memset(to, 0, bytes);
    memcpy(to, from, n);
}

static void get_text(char *to, const uint8_t *from, size_t bytes) {
    memcpy(to, from, bytes);
    to[bytes - 1] = 0;
    for (char *p = to; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
}

// --- messages ------------------------------------------------------------------------------------

void wire_put(const WireHead *h, uint8_t out[WIRE_HEAD_BYTES]) {
    memset(out, 0, WIRE_HEAD_BYTES);
    le_store32(out, WIRE_MAGIC);
    le_store32(out + 4, h->kind);
    le_store32(out + 8, h->from);
    le_store32(out + 12, WIRE_PROTOCOL);
    const uint64_t words[] = {h->bytes, h->tag, h->set, h->number, h->program, h->sign};
    for (size_t i = 0; i < 6; i++)
        le_store64(out + 16 + 8 * i, words[i]);
    put_text(out + 64, h->name, sizeof h->name);
    put_text(out + 112, h->op, sizeof h->op);
    le_store64(out + 176, h->table);
    le_store32(out + 184, h->nsegs);
    le_store32(out + 188, h->offer);
}

bool wire_get(const uint8_t in[WIRE_HEAD_BYTES], uint32_t from, bool data, WireHead *h) {
    *h = (WireHead){.kind = le_load32(in + 4), .from = le_load32(in + 8), .bytes = le_load64(in + 16),
                    .tag = le_load64(in + 24), .set = le_load64(in + 32), .number = le_load64(in + 40),
                    .program = le_load64(in + 48), .sign = le_load64(in + 56),
                    .table = le_load64(in + 176), .nsegs = le_load32(in + 184), .offer = le_load32(in + 188)};
    get_text(h->name, in + 64, sizeof h->name);
    get_text(h->op, in + 112, sizeof h->op);
    if (le_load32(in) != WIRE_MAGIC || le_load32(in + 12) != WIRE_PROTOCOL || h->from != from)
        return false;
    if (data)
        return (h->kind == WIRE_DATA || h->kind == WIRE_OFFER) && h->bytes <= WIRE_BODY_MAX;
    return h->kind > WIRE_OFFER && h->kind < WIRE_KINDS && h->bytes <= WIRE_NOTE_MAX;
}

// --- what a process does -------------------------------------------------------------------------

enum { NOTE_BYTES = 32 + 48 + 64 + 160 };

size_t wire_put_note(const WireNote *n, uint8_t out[WIRE_NOTE_MAX]) {
    memset(out, 0, NOTE_BYTES);
    le_store32(out, n->state);
    le_store64(out + 8, n->set);
    le_store64(out + 16, n->number);
    le_store64(out + 24, n->moves);
    put_text(out + 32, n->name, sizeof n->name);
    put_text(out + 80, n->op, sizeof n->op);
    put_text(out + 144, n->where, sizeof n->where);
    return NOTE_BYTES;
}

bool wire_get_note(const uint8_t *in, size_t bytes, WireNote *n) {
    if (bytes != NOTE_BYTES || le_load32(in) > NET_WAITS)
        return false;
    *n = (WireNote){.state = le_load32(in), .set = le_load64(in + 8), .number = le_load64(in + 16),
                    .moves = le_load64(in + 24)};
    get_text(n->name, in + 32, sizeof n->name);
    get_text(n->op, in + 80, sizeof n->op);
    get_text(n->where, in + 144, sizeof n->where);
    return true;
}

enum { SHARE_BYTES = 16 + 2 * SHA256_BYTES };

size_t wire_put_share(const WireShare *s, uint8_t out[WIRE_NOTE_MAX]) {
    le_store32(out, s->verb);
    le_store32(out + 4, s->maker);
    le_store64(out + 8, s->bytes);
    memcpy(out + 16, s->key.at, SHA256_BYTES);
    memcpy(out + 16 + SHA256_BYTES, s->sum.at, SHA256_BYTES);
    return SHARE_BYTES;
}

bool wire_get_share(const uint8_t *in, size_t bytes, WireShare *s) {
    if (bytes != SHARE_BYTES)
        return false;
    *s = (WireShare){.verb = le_load32(in), .maker = le_load32(in + 4), .bytes = le_load64(in + 8)};
    memcpy(s->key.at, in + 16, SHA256_BYTES);
    memcpy(s->sum.at, in + 16 + SHA256_BYTES, SHA256_BYTES);
    return true;
}

// --- hello ---------------------------------------------------------------------------------------

void wire_put_hello(const WireHello *h, uint8_t out[WIRE_HELLO_BYTES]) {
    memset(out, 0, WIRE_HELLO_BYTES);
    le_store32(out, WIRE_MAGIC);
    le_store32(out + 4, WIRE_PROTOCOL);
    le_store32(out + 8, h->from);
    le_store32(out + 12, h->to);
    le_store32(out + 16, h->channel);
    memcpy(out + 24, h->nonce, sizeof h->nonce);
    memcpy(out + 40, h->proof, sizeof h->proof);
}

bool wire_get_hello(const uint8_t in[WIRE_HELLO_BYTES], WireHello *h) {
    *h = (WireHello){.from = le_load32(in + 8), .to = le_load32(in + 12), .channel = le_load32(in + 16)};
    memcpy(h->nonce, in + 24, sizeof h->nonce);
    memcpy(h->proof, in + 40, sizeof h->proof);
    return le_load32(in) == WIRE_MAGIC && le_load32(in + 4) == WIRE_PROTOCOL && h->channel <= CHANNEL_ROOT;
}

// --- the root ------------------------------------------------------------------------------------

void wire_put_ask(const WireAsk *a, uint8_t out[WIRE_ASK_BYTES]) {
    const uint32_t words[] = {WIRE_MAGIC, WIRE_PROTOCOL, a->kind, a->key_bytes, a->value_bytes, a->timeout_ms};
    for (size_t i = 0; i < 6; i++)
        le_store32(out + 4 * i, words[i]);
}

bool wire_get_ask(const uint8_t in[WIRE_ASK_BYTES], WireAsk *a) {
    *a = (WireAsk){.kind = le_load32(in + 8), .key_bytes = le_load32(in + 12), .value_bytes = le_load32(in + 16),
                   .timeout_ms = le_load32(in + 20)};
    if (le_load32(in) != WIRE_MAGIC || le_load32(in + 4) != WIRE_PROTOCOL || a->value_bytes > WIRE_VALUE_MAX ||
        a->key_bytes > WIRE_KEY_MAX)
        return false;
    bool asks = a->kind == ASK_PUT || a->kind == ASK_GET;
    return (asks && a->key_bytes && (a->kind == ASK_PUT || !a->value_bytes)) || (a->kind >= ANSWER_OK && a->kind < ANSWERS);
}

// --- proofs --------------------------------------------------------------------------------------

// HMAC (RFC 2104) with SHA-256 over a text of fixed length; the key is one block at most.
static Sha256 keyed(const uint8_t key[SHA256_BYTES], const uint8_t *text, size_t n) {
    enum { BLOCK = 64 };
    uint8_t inner[BLOCK + 64], outer[BLOCK + SHA256_BYTES];
    for (size_t i = 0; i < BLOCK; i++) {
        uint8_t k = i < SHA256_BYTES ? key[i] : 0;
        inner[i] = k ^ 0x36;
        outer[i] = k ^ 0x5c;
    }
    memcpy(inner + BLOCK, text, n);
    Sha256 h = sha256(inner, BLOCK + n);
    memcpy(outer + BLOCK, h.at, sizeof h.at);
    return sha256(outer, sizeof outer);
}

Sha256 wire_proof(const uint8_t secret[SHA256_BYTES], char side, const WireHello *caller, const uint8_t nonce[16]) {
    uint8_t text[48] = {(uint8_t)side};
    le_store32(text + 4, caller->from);
    le_store32(text + 8, caller->to);
    le_store32(text + 12, caller->channel);
    memcpy(text + 16, caller->nonce, 16);
    memcpy(text + 32, nonce, 16);
    return keyed(secret, text, sizeof text);
}

bool wire_same(const void *a, const void *b, size_t n) {
    const uint8_t *x = a, *y = b;
    uint8_t differ = 0;
    for (size_t i = 0; i < n; i++)
        differ |= x[i] ^ y[i];
    return !differ;
}
