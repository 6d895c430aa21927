// SPDX-License-Identifier: Apache-2.0
// sooner.c — small sums over devices of what is known from the start are made before anybody waits for them.
// needs: values defined before use, all collectives in the program
// gives: such a sum, the small ops it needs and those that need nothing else stand right behind the entry's first collective
// stale: nothing
//
// A mean over the targets that count is divided by their number on all replicas, and no gradient is there without it. A small
// collective is all latency; the number needs only the targets, so it can meet beside the layers.
#include "pass/walk.h"

#define ELEMS_MAX 65536 // of every value on the way

typedef struct Sooner {
    const Hlo *h;
    bool *known;  // per op: needs only arguments
    bool *behind; // … and one of the sums
    bool *moved;
} Sooner;

static bool is_coll(const HloOp *op) { return hlo_row(op)->cls == HC_COLL; }

static bool is_small(const Hlo *h, const HloOp *op) {
    int cls = hlo_row(op)->cls;
    bool sums = op->code == HLO_ALL_REDUCE && op->nresults == 1;
    if (op->nresults != 1 || !(cls <= HC_RED || op->code == HLO_CONSTANT || sums) || (!sums && op_has_effect(h, op)))
        return false;
    const HloType *t = hlo_value_type(h, op->results);
    return hlo_is_plain(t) && t->elems <= ELEMS_MAX;
}

// One walk in the order of the program, so operands are decided.
static void note(Sooner *s, OpId id) {
    const HloOp *op = hlo_at(s->h, id);
    bool known = is_small(s->h, op), behind = op->code == HLO_ALL_REDUCE;
    for (uint32_t k = 0; k < op->noperands; k++) {
        OpId def = s->h->values.at[hlo_operand(s->h, op, k)].def;
        known = known && (!def || s->known[def]);
        behind = behind || (def && s->behind[def]);
    }
    s->known[id] = known;
    s->behind[id] = known && behind;
}

// … and one against it: what the moved need moves.
static void need(Sooner *s, OpId id) {
    const HloOp *op = hlo_at(s->h, id);
    s->moved[id] = s->moved[id] || s->behind[id];
    for (uint32_t k = 0; s->moved[id] && k < op->noperands; k++) {
        OpId def = s->h->values.at[hlo_operand(s->h, op, k)].def;
        if (def)
            s->moved[def] = true;
    }
}

void pass_sooner(Compile *c) {
    Hlo *h = c->hlo;
    RegionId body = hlo_main(h)->body;
    const HloRegion *r = &h->regions.at[body];
    Sooner s = {h, ARENA_NEWN(c->scratch, bool, h->ops.n + 1), ARENA_NEWN(c->scratch, bool, h->ops.n + 1), ARENA_NEWN(c->scratch, bool, h->ops.n + 1)};
    uint32_t first = 0;
    while (first < r->ops.n && !is_coll(hlo_at(h, r->ops.at[first])))
        first++;
    if (first >= r->ops.n)
        return;
    for (uint32_t i = 0; i < r->ops.n; i++)
        note(&s, r->ops.at[i]);
    for (uint32_t i = r->ops.n; i-- > 0;)
        need(&s, r->ops.at[i]);
    Moves moves;
    moves_init(&moves, c);
    for (uint32_t i = first + 1; i < r->ops.n; i++)
        if (s.moved[r->ops.at[i]])
            moves_behind(&moves, r->ops.at[i], r->ops.at[first]);
    moves_make(&moves, body);
}
