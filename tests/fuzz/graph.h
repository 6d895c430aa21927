// SPDX-License-Identifier: Apache-2.0
// graph.h — whatever a reader accepts must be a graph whose ids are all in range, since everything behind it relies on that.
#ifndef OTRN_FUZZ_GRAPH_H
#define OTRN_FUZZ_GRAPH_H

#include <assert.h>

#include "hlo/hlo.h"
#include "tests/fuzz/fuzz.h"

static void check_attr(const Hlo *h, const HloAttr *a, int depth) {
    assert(a->kind < HA_KIND_COUNT && depth < 300);
    assert(a->type < h->types.n);
    if (a->kind == HA_TENSOR) {
        const HloType *t = hlo_type(h, a->type);
        assert(t->kind == HT_TENSOR && !t->dynamic);
        assert(a->n == hlo_type_bytes(t) || (t->elems && a->n == dtype_bytes(t->dtype)));
    }
    if (a->kind == HA_STR || a->kind == HA_SYM || a->kind == HA_OPAQUE)
        assert(a->s[a->n] == 0);
    if (a->kind == HA_LIST && depth < 3) // shared lists make a full walk exponential
        for (uint32_t i = 0; i < a->n; i++)
            check_attr(h, &a->list[i], depth + 1);
    if (a->kind == HA_DICT && depth < 3)
        for (uint32_t i = 0; i < a->n; i++)
            check_attr(h, &a->dict[i].value, depth + 1);
    if (a->kind == HA_INTS || a->kind == HA_INTS2) {
        int64_t sum = 0;
        for (uint32_t i = 0; i < a->n; i++)
            sum ^= a->ints[i];
        assert(sum == sum);
    }
}

static void check_graph(const Hlo *h) {
    for (OpId id = 1; id < h->ops.n; id++) {
        const HloOp *op = hlo_at(h, id);
        assert(op->code > HLO_NONE && op->code < HLO_OPCODE_COUNT && op->loc < h->locs.n);
        for (uint32_t i = 0; i < op->noperands; i++)
            assert(hlo_operand(h, op, i) && hlo_operand(h, op, i) < h->values.n);
        for (uint32_t i = 0; i < op->nregions; i++)
            assert(hlo_op_region(h, op, i)->parent == id);
        for (uint32_t i = 0; i < hlo_row(op)->nattrs; i++)
            check_attr(h, &op->attrs[i], 0);
        for (uint32_t i = 0; i < op->nextra; i++)
            check_attr(h, &op->extra[i].value, 0);
    }
    for (ValueId v = 1; v < h->values.n; v++)
        assert(h->values.at[v].type && h->values.at[v].type < h->types.n);
    for (TypeId t = 1; t < h->types.n; t++) // members were made before what holds them
        for (uint32_t i = 0; i < h->types.at[t].nmembers; i++)
            assert(h->types.at[t].members[i] < t);
    for (LocId l = 1; l < h->locs.n; l++)
        assert(h->locs.at[l].a < l && h->locs.at[l].b < l && h->locs.at[l].str < h->strs.n);
}

#endif
