// SPDX-License-Identifier: Apache-2.0
// sooner.c — small sums over devices of what is known from the start are made before anybody waits for them.
// needs: values defined before use, all collectives in the program
// gives: such a sum, the small ops it needs and those that need nothing else stand right behind the entry's first collective
// stale: nothing
//
// A mean over the targets that count is divided by their number on all replicas, and no gradient is there without it. A small
// collective is all latency; the number needs only the targets, so it can meet beside the layers.
#include "pass/schedule.h"

#define ELEMS_MAX 65536 // of every value on the way

static bool is_small(const void *hlo, const HloOp *op) {
    const Hlo *h = hlo;
    int cls = hlo_row(op)->cls;
    bool sums = op->code == HLO_ALL_REDUCE && op->nresults == 1;
    if (op->nresults != 1 || !(cls <= HC_RED || op->code == HLO_CONSTANT || sums) || (!sums && op_has_effect(h, op)))
        return false;
    const HloType *t = hlo_value_type(h, op->results);
    return hlo_is_plain(t) && t->elems <= ELEMS_MAX;
}

void pass_sooner(Compile *c) {
    Hlo *h = c->hlo;
    RegionId body = hlo_main(h)->body;
    const HloRegion *r = &h->regions.at[body];
    bool *behind = ARENA_NEWN(c->scratch, bool, h->ops.n + 1); // per op: one of the sums, or made of one
    uint32_t first = 0;
    while (first < r->ops.n && hlo_row(hlo_at(h, r->ops.at[first]))->cls != HC_COLL)
        first++;
    if (first >= r->ops.n)
        return;
    Schedule s;
    schedule_init(&s, c);
    for (uint32_t i = first + 1; i < r->ops.n; i++) {
        OpId id = r->ops.at[i];
        const HloOp *op = hlo_at(h, id);
        behind[id] = op->code == HLO_ALL_REDUCE;
        for (uint32_t k = 0; k < op->noperands && !behind[id]; k++)
            behind[id] = behind[h->values.at[hlo_operand(h, op, k)].def];
        behind[id] = behind[id] && is_small(h, op) && schedule_raise(&s, id, first + 0.5, is_small, h, UINT32_MAX);
    }
    schedule_make(&s, body);
}
