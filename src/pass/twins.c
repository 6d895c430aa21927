// SPDX-License-Identifier: Apache-2.0
// twins.c — which values of a loop are those of an earlier one: what is read of its stacks, and what is made of that in the same way.
//
// 1. The first loop counts its pieces from 0, one an iteration, and writes each stack at its counter: piece k is iteration k's.
// 2. The second loop reads pieces at one index, which is each of their numbers once: all pieces of an iteration are of one iteration of the first,
//    and that index is what its counter was.
// 3. Ops without effects give the same of the same operands (cse_alike); what stands before both loops is the same in both.
#include "pass/loops.h"

#include <string.h>

#include "hlo/loop.h"

#define OPS_MOST 4096 // of a body that are looked at

ValueId twins_plain(const Hlo *h, ValueId v) {
    ValueId same = v;
    for (OpId def = h->values.at[v].def; def && is_reshape(h, hlo_at(h, def)); def = h->values.at[v].def) {
        v = hlo_operand(h, hlo_at(h, def), 0);
        same = h->values.at[v].type == h->values.at[same].type ? v : same;
    }
    return same;
}

static bool is_of(const Twins *t, RegionId r, ValueId v) {
    const HloValue *x = &t->u->h->values.at[v];
    return x->def ? t->u->region[x->def] == r : x->region == r;
}

static bool gives_the_same(const Hlo *h, const HloOp *op) {
    return op->nresults == 1 && (!op->nregions || reduce_body(h, op)) && op->code != HLO_OPTIMIZATION_BARRIER && op->code != HLO_CUSTOM_CALL &&
           op->code != HLO_RNG && hlo_row(op)->cls != HC_CTRL && hlo_row(op)->cls != HC_COLL && !op_has_effect(h, op);
}

// One piece [1, …] of the whole.
static bool is_piece(const Hlo *h, ValueId piece, ValueId whole) {
    const HloType *p = hlo_value_type(h, piece), *w = hlo_value_type(h, whole);
    bool same = p->rank == w->rank && p->rank > 0 && p->dims[0] == 1 && !w->text && !w->dynamic;
    for (int d = 1; same && d < p->rank; d++)
        same = p->dims[d] == w->dims[d];
    return same;
}

// What iteration k of the first loop puts at k of the stack; 0: that is none.
static ValueId stacked(const Twins *t, OpId first, ValueId whole, const LoopCount *n) {
    const Hlo *h = t->u->h;
    const HloOp *loop = hlo_at(h, first);
    if (h->values.at[whole].def != first)
        return 0;
    uint32_t k = h->values.at[whole].index;
    const HloOp *put = loop_stacks(t->u, loop, k);
    const HloType *w = hlo_value_type(h, whole);
    bool at_counter = put && hlo_operand(h, put, 2) == h->regions.at[t->first].args + n->counter && is_piece(h, hlo_operand(h, put, 1), whole);
    return at_counter && w->dims[0] == n->trips ? hlo_operand(h, put, 1) : 0;
}

bool twins_are(const Twins *t, ValueId second, ValueId first) {
    const Hlo *h = t->u->h;
    if (second > t->nvalues || h->values.at[second].type != h->values.at[first].type)
        return false;
    return is_of(t, t->second, second) ? t->of[second] && t->of[second] == before_forms(h, first) : second == first;
}

// The same op in the first body.
static ValueId alike(const Twins *t, const HloOp *op) {
    const Hlo *h = t->u->h;
    const HloRegion *body = &h->regions.at[t->first];
    for (uint32_t k = 0; k < op->noperands; k++)
        if (is_of(t, t->second, hlo_operand(h, op, k)) && !t->of[hlo_operand(h, op, k)])
            return 0;
    for (uint32_t i = 0; i < body->ops.n; i++) {
        const HloOp *other = hlo_at(h, body->ops.at[i]);
        bool same = other->code == op->code && cse_alike(h, op, other);
        for (uint32_t k = 0; same && k < op->noperands; k++)
            same = twins_are(t, hlo_operand(h, op, k), hlo_operand(h, other, k));
        if (same)
            return other->results;
    }
    return 0;
}

static ValueId twin_of(const Twins *t, OpId first, const LoopCount *n, const HloOp *op) {
    const Hlo *h = t->u->h;
    if (!gives_the_same(h, op))
        return 0;
    if (is_reshape(h, op) && is_of(t, t->second, hlo_operand(h, op, 0)))
        return t->of[hlo_operand(h, op, 0)];
    bool reads = op->code == HLO_DYNAMIC_SLICE && hlo_operand(h, op, 1) == t->index && is_piece(h, op->results, hlo_operand(h, op, 0));
    ValueId v = reads ? stacked(t, first, hlo_operand(h, op, 0), n) : 0;
    v = v ? v : alike(t, op);
    return v ? before_forms(h, v) : 0;
}

// Where the second loop reads the stacks of the first; 0: nowhere.
static ValueId index_of(const Twins *t, OpId first, const LoopCount *n) {
    const Hlo *h = t->u->h;
    const HloRegion *body = &h->regions.at[t->second];
    for (uint32_t i = 0; i < body->ops.n; i++) {
        const HloOp *op = hlo_at(h, body->ops.at[i]);
        if (op->code == HLO_DYNAMIC_SLICE && is_piece(h, op->results, hlo_operand(h, op, 0)) && stacked(t, first, hlo_operand(h, op, 0), n))
            return hlo_operand(h, op, 1);
    }
    return 0;
}

bool twins_find(Twins *t, Compile *c, const Users *u, OpId first, OpId second) {
    const Hlo *h = u->h;
    LoopCount n, back;
    const HloOp *a = hlo_at(h, first), *b = hlo_at(h, second);
    assert(u->region[first] == u->region[second]);
    *t = (Twins){.u = u};
    if (a->code != HLO_WHILE || b->code != HLO_WHILE || u->position[first] >= u->position[second] || !loop_count(h, a, &n) || n.first || n.step != 1 ||
        !loop_count(h, b, &back) || back.trips != n.trips)
        return false;
    t->first = h->op_regions.at[a->regions + 1], t->second = h->op_regions.at[b->regions + 1];
    const HloRegion *body = &h->regions.at[t->second];
    if (body->ops.n > OPS_MOST || h->regions.at[t->first].ops.n > OPS_MOST)
        return false;
    t->index = index_of(t, first, &n);
    ValueId counter = h->regions.at[t->first].args + n.counter;
    if (!t->index || !loop_goes_over(h, b, &back, t->index) || h->values.at[t->index].type != h->values.at[counter].type)
        return false;
    t->of = ARENA_NEWN(c->scratch, ValueId, h->values.n + 1);
    t->nvalues = h->values.n;
    t->of[t->index] = counter;
    for (uint32_t i = 0; i < body->ops.n; i++) {
        const HloOp *op = hlo_at(h, body->ops.at[i]);
        if (op->nresults == 1 && op->results != t->index)
            t->of[op->results] = twin_of(t, first, &n, op);
    }
    return true;
}

ValueId twins_there(const Twins *t, ValueId v, OpId before) {
    const Hlo *h = t->u->h;
    const HloRegion *body = &h->regions.at[t->second];
    ValueId from = before_forms(h, v);
    for (uint32_t i = 0; i < t->u->position[before]; i++) {
        ValueId there = hlo_at(h, body->ops.at[i])->results;
        if (hlo_at(h, body->ops.at[i])->nresults == 1 && t->of[there] == from && h->values.at[there].type == h->values.at[v].type)
            return there;
    }
    return 0;
}
