// SPDX-License-Identifier: Apache-2.0
// take.c — ops of another graph, taken into this one.
//
// Types are interned anew, values follow a table, attributes that name types are copied; everything taken gets one
// place, because the other graph's places are not the user's.
#include <string.h>

#include "hlo/hlo.h"

typedef struct Take {
    Hlo *h;
    const Hlo *from;
    LocId loc;
    ValueId *values; // by value of the other graph
} Take;

static TypeId take_type(Take *t, TypeId id) {
    if (!id)
        return 0;
    HloType type = *hlo_type(t->from, id);
    TypeId *members = ARENA_NEWN(t->h->arena, TypeId, type.nmembers + 1);
    for (uint32_t i = 0; i < type.nmembers; i++)
        members[i] = take_type(t, type.members[i]);
    type.members = members;
    return hlo_type_intern(t->h, &type);
}

static HloAttr take_attr(Take *t, HloAttr a);

static const HloNamed *take_named(Take *t, const HloNamed *list, uint32_t n) {
    HloNamed *out = ARENA_NEWN(t->h->arena, HloNamed, n + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = (HloNamed){list[i].name, take_attr(t, list[i].value)};
    return out;
}

static HloAttr take_attr(Take *t, HloAttr a) {
    a.type = take_type(t, a.type);
    if (a.kind == HA_DICT) {
        a.dict = take_named(t, a.dict, a.n);
    } else if (a.kind == HA_LIST) {
        HloAttr *list = ARENA_NEWN(t->h->arena, HloAttr, a.n + 1);
        for (uint32_t i = 0; i < a.n; i++)
            list[i] = take_attr(t, a.list[i]);
        a.list = list;
    }
    return a;
}

static void take_ops(Take *t, const HloRegion *from, RegionId to);

static void take_op(Take *t, const HloOp *op, RegionId to) {
    ValueId *operands = ARENA_NEWN(t->h->arena, ValueId, op->noperands + 1);
    TypeId *types = ARENA_NEWN(t->h->arena, TypeId, op->nresults + 1u);
    for (uint32_t i = 0; i < op->noperands; i++)
        operands[i] = t->values[hlo_operand(t->from, op, i)];
    for (uint32_t i = 0; i < op->nresults; i++)
        types[i] = take_type(t, t->from->values.at[op->results + i].type);
    OpId id = hlo_op(t->h, op->code, t->loc, op->noperands, operands, op->nresults, types);
    for (uint32_t i = 0; i < hlo_row(op)->nattrs; i++)
        hlo_at(t->h, id)->attrs[i] = take_attr(t, op->attrs[i]);
    hlo_at(t->h, id)->extra = take_named(t, op->extra, op->nextra);
    hlo_at(t->h, id)->nextra = op->nextra;
    for (uint32_t i = 0; i < op->nresults; i++)
        t->values[op->results + i] = hlo_at(t->h, id)->results + i;
    for (uint32_t r = 0; r < op->nregions; r++) {
        const HloRegion *src = hlo_op_region(t->from, op, r);
        TypeId *args = ARENA_NEWN(t->h->arena, TypeId, src->nargs + 1);
        for (uint32_t i = 0; i < src->nargs; i++)
            args[i] = take_type(t, t->from->values.at[src->args + i].type);
        take_ops(t, src, hlo_op_add_region(t->h, id, src->nargs, args));
    }
    hlo_region_push(t->h, to, id);
}

static void take_ops(Take *t, const HloRegion *from, RegionId to) {
    for (uint32_t i = 0; i < from->nargs; i++)
        t->values[from->args + i] = t->h->regions.at[to].args + i;
    for (uint32_t i = 0; i < from->ops.n; i++)
        take_op(t, hlo_at(t->from, from->ops.at[i]), to);
}

RegionId hlo_take(Hlo *h, OpId parent, const Hlo *from, RegionId body, LocId loc) {
    Take t = {.h = h, .from = from, .loc = loc, .values = ARENA_NEWN(h->arena, ValueId, from->values.n + 1)};
    const HloRegion *src = &from->regions.at[body];
    TypeId *args = ARENA_NEWN(h->arena, TypeId, src->nargs + 1);
    for (uint32_t i = 0; i < src->nargs; i++)
        args[i] = take_type(&t, from->values.at[src->args + i].type);
    RegionId to = hlo_op_add_region(h, parent, src->nargs, args);
    take_ops(&t, src, to);
    return to;
}
