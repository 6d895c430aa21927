// SPDX-License-Identifier: Apache-2.0
// xla_pb.c — protocol buffers on the wire.
//
// A field is a key (number << 3 | wire) and a value: 0 a number in groups of seven bits, 1 and 5 eight and four bytes, 2 a
// length and as many bytes. Lists of numbers are fields of their own each, or one of wire 2 with all of them.
#include <string.h>

#include "read/xla.h"

enum { WIRE_NUMBER = 0, WIRE_8 = 1, WIRE_BYTES = 2, WIRE_4 = 5 };

static uint64_t varint(Xla *x, Pb *p) {
    uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (!p->n)
            break;
        uint8_t byte = *p->at++;
        p->n--;
        v |= shift < 64 ? (uint64_t)(byte & 127) << shift : 0;
        if (byte < 128)
            return v;
    }
    xla_fail(x, OTRN_PARSE, "a number of the HLO protocol buffer does not end");
}

static uint64_t fixed(Xla *x, Pb *p, size_t n) {
    if (p->n < n)
        xla_fail(x, OTRN_PARSE, "the HLO protocol buffer ends inside a number");
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p->at[i] << 8 * i;
    p->at += n, p->n -= n;
    return v;
}

bool pb_next(Xla *x, Pb *left, PbField *f) {
    if (!left->n)
        return false;
    uint64_t key = varint(x, left);
    *f = (PbField){.number = (uint32_t)(key >> 3), .wire = key & 7};
    if (key >> 3 == 0 || key >> 32)
        xla_fail(x, OTRN_PARSE, "a field of the HLO protocol buffer has no proper number");
    if (f->wire == WIRE_NUMBER) {
        f->value = varint(x, left);
    } else if (f->wire == WIRE_8 || f->wire == WIRE_4) {
        f->value = fixed(x, left, f->wire == WIRE_8 ? 8 : 4);
    } else if (f->wire == WIRE_BYTES) {
        uint64_t n = varint(x, left);
        if (n > left->n)
            xla_fail(x, OTRN_PARSE, "the HLO protocol buffer ends inside a field");
        f->bytes = (Pb){left->at, (size_t)n};
        left->at += n, left->n -= (size_t)n;
    } else {
        xla_fail(x, OTRN_PARSE, "a field of the HLO protocol buffer is of unknown kind %u", f->wire);
    }
    return true;
}

bool pb_find(Xla *x, Pb m, uint32_t number, PbField *f) {
    bool found = false;
    for (PbField at; pb_next(x, &m, &at);)
        if (at.number == number)
            *f = at, found = true;
    return found;
}

Pb pb_bytes(Xla *x, Pb m, uint32_t number) {
    PbField f = {0};
    return pb_find(x, m, number, &f) ? f.bytes : (Pb){NULL, 0};
}

int64_t pb_int(Xla *x, Pb m, uint32_t number) {
    PbField f = {0};
    return pb_find(x, m, number, &f) ? (int64_t)f.value : 0;
}

const char *pb_text(Xla *x, Pb m, uint32_t number) {
    Pb b = pb_bytes(x, m, number);
    return b.n ? arena_strndup(x->arena, (const char *)b.at, b.n) : "";
}

const int64_t *pb_ints(Xla *x, Pb m, uint32_t number, uint32_t *n) {
    VEC(int64_t) all = {0};
    for (PbField f; pb_next(x, &m, &f);) {
        if (f.number != number)
            continue;
        if (f.wire == WIRE_NUMBER)
            VEC_PUSH(x->arena, &all, (int64_t)f.value);
        while (f.bytes.n)
            VEC_PUSH(x->arena, &all, (int64_t)varint(x, &f.bytes));
    }
    *n = all.n;
    return all.at;
}

const Pb *pb_list(Xla *x, Pb m, uint32_t number, uint32_t *n) {
    VEC(Pb) all = {0};
    for (PbField f; pb_next(x, &m, &f);)
        if (f.number == number && f.wire == WIRE_BYTES)
            VEC_PUSH(x->arena, &all, f.bytes);
    *n = all.n;
    return all.at;
}
