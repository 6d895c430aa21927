// SPDX-License-Identifier: Apache-2.0
// collect.c — a large collective in pieces, so that work goes on beside it.
//
//   product  │ tile tile tile tile …        A collective over whole tensors begins when the last of its operand is there, and who
//   links    │      piece0 piece1 …         reads it waits for the last of its result. Rows of an axis before the one that is
//   reader   │             tile tile …      gathered, scattered or exchanged do not meet: they may go one after the other.
//
// Each piece is a collective of its own between the same devices, with the same attributes over fewer rows: every element is summed
// as before. Instructions know the bytes they touch, so tiles that make a piece's operand go before it, and those that read its result
// behind it; nothing else waits. The two cores of a logical core each do half of the rows, which are the rows they work on.
#include <assert.h>
#include <stdlib.h>

#include "hlo/coll.h"
#include "mach/cost.h"
#include "tile/emit.h"

#define PIECES_MAX 16 // of a collective
#define LOSS 1.1      // so much longer it may take in pieces

// The outermost axis that counts, where rows of it keep to themselves; -1: none.
static int cut_axis(const Kern *k) {
    static const struct { uint16_t op; HloAttrKey dims[2]; } rows[] = {
        {HLO_ALL_REDUCE, {AK_NONE, AK_NONE}},
        {HLO_ALL_GATHER, {AK_ALL_GATHER_DIM, AK_NONE}},
        {HLO_REDUCE_SCATTER, {AK_SCATTER_DIMENSION, AK_NONE}},
        {HLO_ALL_TO_ALL, {AK_SPLIT_DIMENSION, AK_CONCAT_DIMENSION}},
    };
    int axis = 0, last = k->nin == 1 && k->nout == 1 ? k->in[0].rank : 0;
    size_t r = 0, n = sizeof rows / sizeof *rows;
    while (r < n && rows[r].op != k->op)
        r++;
    if (r == n || !last || k->out[0].rank != last)
        return -1;
    for (int i = 0; i < 2 && rows[r].dims[i] != AK_NONE; i++) {
        const HloAttr *a = kern_attr(k, rows[r].dims[i]);
        last = a && a->i < last ? (int)a->i : last;
    }
    while (axis < last && k->in[0].dims[axis] == 1)
        axis++;
    return axis < last && k->in[0].dims[axis] == k->out[0].dims[axis] ? axis : -1;
}

static KTensor *part_of(Emit *e, const KTensor *t, int axis, int64_t lo, int64_t hi) {
    KTensor *p = arena_dup(e->c->arena, t, sizeof *t);
    int64_t *dims = arena_dup(e->c->arena, t->dims, (size_t)t->rank * sizeof *dims);
    uint64_t row = t->elems / (uint64_t)t->dims[axis];
    dims[axis] = hi - lo;
    p->dims = dims;
    p->elems = row * (uint64_t)(hi - lo);
    p->addr = t->addr + row * (uint64_t)lo * dtype_bytes(t->dtype);
    return p;
}

static Kern rows_of(Emit *e, const Kern *k, int axis, int64_t lo, int64_t hi) {
    Kern p = *k;
    p.in = part_of(e, k->in, axis, lo, hi);
    p.out = part_of(e, k->out, axis, lo, hi);
    return p;
}

static double ns_of(const Emit *e, const Kern *k) { return cost_inst(e->chip, k, &(IsaInst){.op = ISA_COLLECTIVE}); }

// The most pieces of n rows that together take little longer than one, with a latency each and the way that suits their size.
static int64_t pieces(Emit *e, const Kern *k, int axis, int64_t n) {
    double all = ns_of(e, k);
    int64_t most = n < PIECES_MAX ? n : PIECES_MAX;
    for (; most > 1; most--) {
        Kern piece = rows_of(e, k, axis, 0, (n + most - 1) / most);
        if (ns_of(e, &piece) * (double)most <= LOSS * all)
            break;
    }
    return most;
}

// Collectives of one stream keep their order, those of several go beside each other. Groups of neighbours have one, those of devices
// further apart, another axis of the mesh over other links, another; which of them is the same for every device.
int collect_stream(uint16_t op, const HloAttr *attrs) {
    Groups g = {0};
    coll_groups((HloOpcode)op, attrs, &g);
    uint64_t apart = g.rows && g.cols > 1 ? (uint64_t)llabs(g.ids[1] - g.ids[0]) : 1;
    int doublings = 0;
    while (apart >> doublings > 1)
        doublings++;
    return doublings ? 1 + doublings % (STREAMS - 1) : 0;
}

static void put(Emit *e, const Kern *k) {
    VEC_PUSH(e->c->arena, &e->kerns, *k);
    emit_inst(e, (IsaInst){.op = ISA_COLLECTIVE, .engine = ENG_SYNC, .queue = (uint8_t)(QUEUE_COLL + collect_stream(k->op, k->attrs)), .imm = (int32_t)e->kerns.n - 1}, NULL, 0, NULL, 0);
}

// From the program's argument to its result: nothing makes the one or reads the other, and pieces would only take longer.
static bool is_alone(const Kern *k) {
    return addr_seg(k->in[0].addr) >= SEG_FIRST_ARG && addr_seg(k->out[0].addr) >= SEG_FIRST_ARG;
}

void emit_collective(Emit *e, const Kern *k) {
    int axis = k->nin && k->nout && !is_alone(k) ? cut_axis(k) : -1;
    int64_t lo = 0, hi = axis < 0 ? 1 : k->in[0].dims[axis], n = hi > 1 ? pieces(e, k, axis, hi) : 0;
    if (n < 2) {
        put(e, k);
        return;
    }
    emit_share(e, hi, 1, &lo, &hi);
    n = e->parts > 1 && n > 1 ? n / 2 : n;
    n = n < hi - lo ? n : hi - lo;
    for (int64_t i = 0; i < n; i++) {
        Kern piece = rows_of(e, k, axis, lo + (hi - lo) * i / n, lo + (hi - lo) * (i + 1) / n);
        emit_task(e);
        put(e, &piece);
    }
}
