// SPDX-License-Identifier: Apache-2.0
// dynamic.c — ops that take as operands what their static twins have as attributes: dynamic_pad,
// dynamic_conv, dynamic_gather, real_dynamic_slice, into results of known shape.
//
// The lists are read when the kernel runs and the static twin is put together on the stack. Its own
// check then decides whether those numbers give a result of the planned shape, so a twin never runs
// on lists it would not have been given: numbers that do not fit are an error of the run.
#include <stdio.h>

#include "chip/gpsimd/gp.h"

typedef struct ListRow { // operand of the dynamic op that becomes an attribute
    uint8_t operand;
    HloAttrKey key;
} ListRow;

typedef struct TwinRow {
    HloOpcode dynamic, op;
    uint8_t nin; // operands of the twin: the first ones of the dynamic op
    GpFn *run;
    bool (*check)(const Kern *k);
    ListRow lists[3]; // key AK_NONE: no more
} TwinRow;

static const TwinRow twins[] = {
    {HLO_DYNAMIC_PAD,
     HLO_PAD,
     2,
     gp_pad_run,
     gp_pad_check,
     {{2, AK_EDGE_PADDING_LOW}, {3, AK_EDGE_PADDING_HIGH}, {4, AK_INTERIOR_PADDING}}},
    {HLO_DYNAMIC_CONV, HLO_CONVOLUTION, 2, gp_conv_run, gp_conv_check, {{2, AK_PADDING}}},
    {HLO_DYNAMIC_GATHER, HLO_GATHER, 2, gp_gather_run, gp_gather_check, {{2, AK_SLICE_SIZES}}},
    {HLO_REAL_DYNAMIC_SLICE,
     HLO_SLICE,
     1,
     gp_slice_run,
     gp_slice_check,
     {{1, AK_START_INDICES}, {2, AK_LIMIT_INDICES}, {3, AK_STRIDES}}},
};

typedef struct Twin {
    Kern k;
    HloAttr attrs[HLO_MAX_ATTRS];
    int64_t lists[3][2 * OTRN_MAX_RANK];
} Twin;

static const TwinRow *twin_row(const Kern *k) {
    for (size_t i = 0; i < sizeof twins / sizeof *twins; i++)
        if (twins[i].dynamic == k->op)
            return &twins[i];
    return NULL;
}

static int list_count(const TwinRow *row) {
    int n = 0;
    while (n < 3 && row->lists[n].key != AK_NONE)
        n++;
    return n;
}

static HloAttr *twin_attr(Twin *t, HloAttrKey key) {
    const HloOpRow *row = &hlo_op_rows[t->k.op];
    for (int i = 0; i < row->nattrs; i++)
        if (row->attrs[i] == key)
            return &t->attrs[i];
    return NULL;
}

// The twin without its lists: attributes of the same name are taken over.
static void twin_init(Twin *t, const TwinRow *row, const Kern *k) {
    t->k = *k;
    t->k.op = row->op;
    t->k.nin = row->nin;
    t->k.nattrs = hlo_op_rows[row->op].nattrs;
    t->k.attrs = t->attrs;
    for (int i = 0; i < t->k.nattrs; i++) {
        const HloAttr *a = kern_attr(k, hlo_op_rows[row->op].attrs[i]);
        t->attrs[i] = a ? *a : (HloAttr){.kind = HA_NONE};
    }
}

bool gp_dynamic_check(const Kern *k) {
    const TwinRow *row = twin_row(k);
    if (!row || k->nin != (uint32_t)(row->nin + list_count(row)) || k->nout != 1)
        return false;
    for (int i = 0; i < list_count(row); i++) {
        const KTensor *t = &k->in[row->lists[i].operand];
        if (!gp_is_index(t->dtype) || t->elems > 2 * OTRN_MAX_RANK)
            return false;
    }
    for (uint32_t i = 0; i < row->nin; i++) // what the twin's scratch is sized by
        if (lane_class(k->in[i].dtype) == LC_NONE)
            return false;
    return row->op != HLO_CONVOLUTION || gp_conv_types_ok(k);
}

size_t gp_dynamic_scratch(const Kern *k, int threads) {
    return k->op == HLO_DYNAMIC_CONV ? gp_conv_scratch(k, threads) : 0;
}

otrn_status gp_dynamic_run(const GpCall *c) {
    const TwinRow *row = twin_row(c->k);
    Twin t;
    twin_init(&t, row, c->k);
    for (int i = 0; i < list_count(row); i++) {
        const KTensor *list = &c->k->in[row->lists[i].operand];
        for (int64_t j = 0; j < list->elems; j++)
            t.lists[i][j] = gp_index_at(list->dtype, c->in[row->lists[i].operand], (size_t)j);
        *twin_attr(&t, row->lists[i].key) =
            (HloAttr){.kind = HA_INTS, .n = (uint32_t)list->elems, .ints = t.lists[i]};
    }
    if (!row->check(&t.k))
        return gp_fail(c, "the sizes given to %s do not fit its result",
                       hlo_op_rows[c->k->op].name);
    GpCall call = *c;
    call.k = &t.k;
    return row->run(&call);
}
