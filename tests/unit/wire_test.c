// SPDX-License-Identifier: Apache-2.0
// wire_test.c — the tree's order, and frames between processes as bytes.
#include <stdio.h>
#include <string.h>

#include "coll/tree.h"
#include "net/net_in.h"
#include "tests/unit/unit.h"

// --- the tree --------------------------------------------------------------------------------------

typedef struct Text { // a sum as it is written: (0+1)+2
    char at[2048];
} Text;

static void sum_text(uint32_t a, uint32_t b, char *out) {
    uint32_t half = 1;
    if (b - a == 1) {
        sprintf(out, "%u", a);
        return;
    }
    while (2 * half < b - a)
        half *= 2;
    char left[2048], right[2048];
    sum_text(a, a + half, left);
    sum_text(a + half, b, right);
    snprintf(out, 2048, "(%.1000s+%.1000s)", left, right);
}

// Nodes of the tree of n at random, folded as they come.
static uint32_t cut_nodes(uint32_t a, uint32_t b, uint32_t *seed, TreeSpan *out) {
    *seed = *seed * 1664525u + 1013904223u;
    if (b - a == 1 || *seed >> 30 == 0) {
        *out = (TreeSpan){a, b};
        return 1;
    }
    uint32_t half = 1;
    while (2 * half < b - a)
        half *= 2;
    uint32_t n = cut_nodes(a, a + half, seed, out);
    return n + cut_nodes(a + half, b, seed, out + n);
}

static void test_tree(void) {
    static Text stack[TREE_DEPTH];
    uint32_t wrong = 0, deepest = 0, seed = 1;
    for (uint32_t n = 1; n <= 70; n++)
        for (int round = 0; round < 20; round++) {
            TreeSpan nodes[70];
            uint32_t count = cut_nodes(0, n, &seed, nodes), depth = 0;
            for (uint32_t i = 0; i < count; i++) {
                sum_text(nodes[i].begin, nodes[i].end, stack[depth++].at);
                deepest = depth > deepest ? depth : deepest;
                for (uint32_t f = tree_folds(nodes[i], n, depth); f; f--, depth--) {
                    Text t;
                    snprintf(t.at, sizeof t.at, "(%.1000s+%.1000s)", stack[depth - 2].at, stack[depth - 1].at);
                    stack[depth - 2] = t;
                }
            }
            char want[2048];
            sum_text(0, n, want);
            wrong += depth != 1 || strcmp(want, stack[0].at);
        }
    char why[64];
    snprintf(why, sizeof why, "%u wrong, depth %u", wrong, deepest);
    expect(!wrong && deepest <= TREE_DEPTH, "any cut of the tree folds to the same sum", why);
}

// --- bytes -----------------------------------------------------------------------------------------

static void test_wire(void) {
    WireHead h = {.kind = WIRE_DATA, .from = 3, .bytes = 77, .tag = 1, .set = 2, .number = 3, .program = 4, .sign = 5}, got;
    strcpy(h.name, "step");
    strcpy(h.op, "all_reduce");
    uint8_t b[WIRE_HEAD_BYTES];
    wire_put(&h, b);
    expect(wire_get(b, 3, true, &got) && !memcmp(&h, &got, sizeof h), "a head comes back", "differs");
    expect(!wire_get(b, 2, true, &got), "another sender", "taken");
    expect(!wire_get(b, 3, false, &got), "data among control", "taken");
    b[0] ^= 1;
    expect(!wire_get(b, 3, true, &got), "wrong magic", "taken");
    h.bytes = WIRE_BODY_MAX + 1;
    wire_put(&h, b);
    expect(!wire_get(b, 3, true, &got), "more bytes than can be", "taken");
    h = (WireHead){.kind = WIRE_BEAT, .from = 3, .bytes = WIRE_NOTE_MAX + 1};
    wire_put(&h, b);
    expect(!wire_get(b, 3, false, &got), "a long heartbeat", "taken");
    memset(b + 64, 0xff, 128);
    wire_get(b, 3, false, &got);
    expect(strnlen(got.name, sizeof got.name) < sizeof got.name && strnlen(got.op, sizeof got.op) < sizeof got.op, "names end", "they do not");
    WireNote note = {.state = NET_WAITS, .set = 9, .number = 8, .moves = 7}, back;
    uint8_t n[WIRE_NOTE_MAX];
    strcpy(note.where, "train.py:41");
    size_t bytes = wire_put_note(&note, n);
    expect(wire_get_note(n, bytes, &back) && !memcmp(&note, &back, sizeof note), "a note comes back", "differs");
    expect(!wire_get_note(n, bytes - 1, &back), "a short note", "taken");
    uint8_t secret[SHA256_BYTES] = {1}, other[SHA256_BYTES] = {2}, nonce[16] = {5};
    WireHello hello = {.from = 1, .to = 0, .channel = 1};
    Sha256 a = wire_proof(secret, 'a', &hello, nonce), c = wire_proof(secret, 'c', &hello, nonce), o = wire_proof(other, 'a', &hello, nonce);
    expect(!wire_same(a.at, c.at, 32) && !wire_same(a.at, o.at, 32), "proofs differ by side and secret", "they do not");
}


int main(void) {
    test_tree();
    test_wire();
    return failures != 0;
}
