// SPDX-License-Identifier: Apache-2.0
// tf_graph.c — lists of tensors (TensorArray, what a loop keeps for its gradient) and whole loops in TensorFlow's functions without jit_compile.
//
// XLA has kernels for operators on such lists, so TensorFlow places them on the device; but a list is no array that could go in or
// out of a program, and there a program is one operator. Placed on the CPU they work: elements are copied in and out, what computes
// with them stays on the device. Loops and branches that TensorFlow has not taken apart (those of ctc_loss) go there whole where
// they carry int32 numbers, which it keeps on the host and would hand to a program as the device's. TensorFlow lets a device change graphs
// behind placement (TF_InitGraph); that is where all these move.
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"
#include "pjrt/tf_abi.h"

OTRN_API void TF_InitGraph(TfOptimizing *p, TfStatus *s);

enum { GRAPH_NODE = 1, NODE_OP = 2, NODE_DEVICE = 4, NODE_ATTR = 5, ENTRY_VALUE = 2, VALUE_LIST = 1, VALUE_TYPE = 6, INT32 = 3, VARIANT = 21 };
enum { WIRE_NUMBER = 0, WIRE_8 = 1, WIRE_BYTES = 2, WIRE_4 = 5 };

typedef struct Bytes {
    const uint8_t *at;
    size_t n;
} Bytes;

typedef struct Field {
    uint32_t number, wire;
    uint64_t value;
    Bytes bytes, all; // all: with its key and length
} Field;

static bool varint(Bytes *b, uint64_t *v) {
    *v = 0;
    for (unsigned shift = 0; b->n && shift < 64; shift += 7) {
        uint8_t byte = *b->at++;
        b->n--;
        *v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

// Takes the next field; false at the end, or where it is none.
static bool field_next(Bytes *b, Field *f) {
    uint64_t key, n = 0;
    *f = (Field){.all = {b->at, 0}};
    if (!varint(b, &key))
        return false;
    f->number = (uint32_t)(key >> 3);
    f->wire = key & 7;
    if (f->wire == WIRE_NUMBER ? !varint(b, &f->value) : f->wire == WIRE_BYTES ? !varint(b, &n) : f->wire != WIRE_8 && f->wire != WIRE_4)
        return false;
    n = f->wire == WIRE_8 ? 8 : f->wire == WIRE_4 ? 4 : n;
    if (n > b->n)
        return false;
    f->bytes = (Bytes){b->at, (size_t)n};
    b->at += n;
    b->n -= (size_t)n;
    f->all.n = (size_t)(b->at - f->all.at);
    return true;
}

static const uint8_t *found_in(Bytes b, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= b.n; i++)
        if (!memcmp(b.at + i, word, n))
            return b.at + i;
    return NULL;
}

// The types that an attribute names, alone or in a list, as bits; those we ask for are below 64.
static uint64_t types_of(Bytes entry) {
    Field f, v, t;
    uint64_t found = 0, type;
    while (field_next(&entry, &f))
        while (f.number == ENTRY_VALUE && f.wire == WIRE_BYTES && field_next(&f.bytes, &v)) {
            if (v.number == VALUE_TYPE && v.wire == WIRE_NUMBER)
                found |= 1ull << (v.value & 63);
            while (v.number == VALUE_LIST && v.wire == WIRE_BYTES && field_next(&v.bytes, &t))
                while (t.number == VALUE_TYPE && t.wire == WIRE_BYTES && varint(&t.bytes, &type))
                    found |= 1ull << (type & 63);
        }
    return found;
}

static bool is_whole(Bytes op) { // a loop or a branch with its functions
    static const char *const names[] = {"While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase", "For"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (op.n == strlen(names[i]) && !memcmp(op.at, names[i], op.n))
            return true;
    return false;
}

static bool moves(Bytes node) {
    Field f;
    bool list = false, whole = false, here = false;
    uint64_t types = 0;
    while (field_next(&node, &f)) {
        list |= f.number == NODE_OP && found_in(f.bytes, "TensorList");
        whole |= f.number == NODE_OP && is_whole(f.bytes);
        here |= f.number == NODE_DEVICE && found_in(f.bytes, "/device:" TF_DEVICE ":");
        types |= f.number == NODE_ATTR ? types_of(f.bytes) : 0;
    }
    return here && (list || types >> VARIANT & 1 || (whole && types >> INT32 & 1));
}

static void put(Bytes *out, const void *from, size_t n) {
    memcpy((uint8_t *)out->at + out->n, from, n);
    out->n += n;
}

static void put_field(Bytes *out, uint32_t number, uint64_t n) { // its key and length
    uint64_t v[] = {(uint64_t)number << 3 | WIRE_BYTES, n};
    for (int i = 0; i < 2; i++)
        for (bool more = true; more; v[i] >>= 7) {
            more = v[i] > 127;
            put(out, &(uint8_t){(uint8_t)((v[i] & 127) | (more ? 128 : 0))}, 1);
        }
}

// The node on the host's CPU, whose name is no longer than the device's, so everything becomes shorter.
static void put_moved(Bytes *out, Bytes node) {
    static const char to[] = "/device:CPU:0";
    uint8_t *made = malloc(node.n + 1);
    Bytes m = {made, 0};
    Field f;
    if (!made) {
        put_field(out, GRAPH_NODE, node.n);
        put(out, node.at, node.n);
        return;
    }
    while (field_next(&node, &f)) {
        const uint8_t *at = f.number == NODE_DEVICE ? found_in(f.bytes, "/device:" TF_DEVICE ":") : NULL;
        size_t before = at ? (size_t)(at - f.bytes.at) : 0;
        if (!at) {
            put(&m, f.all.at, f.all.n);
            continue;
        }
        put_field(&m, NODE_DEVICE, before + sizeof to - 1);
        put(&m, f.bytes.at, before);
        put(&m, to, sizeof to - 1);
    }
    put_field(out, GRAPH_NODE, m.n);
    put(out, m.at, m.n);
    free(made);
}

static void give_back(void *data, size_t bytes) { (void)bytes, free(data); }

static void place(void *optimizer, const TfBuffer *given, const void *item, TfBuffer *out, TfStatus *s) {
    (void)optimizer, (void)item, (void)s;
    Bytes graph = {given->data, given->bytes}, made = {NULL, 0};
    Field f;
    made.at = out->data = malloc(given->bytes + 1);
    if (!made.at)
        return;
    while (field_next(&graph, &f))
        if (f.number == GRAPH_NODE && f.wire == WIRE_BYTES && moves(f.bytes))
            put_moved(&made, f.bytes);
        else
            put(&made, f.all.at, f.all.n);
    out->bytes = made.n;
    out->free = give_back;
}

static void *nothing_new(void) { return NULL; }
static void nothing_delete(void *optimizer) { (void)optimizer; }

void TF_InitGraph(TfOptimizing *p, TfStatus *s) {
    (void)s;
    p->device_type = TF_DEVICE;
    p->optimizer->create = nothing_new;
    p->optimizer->optimize = place;
    p->optimizer->destroy = nothing_delete;
}
