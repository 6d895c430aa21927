// SPDX-License-Identifier: Apache-2.0
// unroll.c — short loops of elementwise work in one piece.
// needs: no calls, values defined before use
// gives: loops of few turns whose bodies only compute element by element are gone; those that walk over data stay
// stale: uses
//
// JAX lowers its random numbers for CPUs as a loop of five turns over whole tensors. In one piece the turns join, and constants
// that go round from turn to turn are known.
#include "hlo/loop.h"

#include "pass/rows.h"
#include "pass/walk.h"

#define TRIPS_MAX 8
#define OPS_MAX 512

// --- loops that count ---------------------------------------------------------------------------------

// --- in one piece -------------------------------------------------------------------------------------

typedef struct Unroll {
    Compile *c;
    Hlo *h;
    Walk w;
} Unroll;

static bool is_plain_work(const Hlo *h, const HloOp *op) {
    HloClass cls = hlo_row(op)->cls;
    bool moves = op->code == HLO_RESHAPE || op->code == HLO_BROADCAST_IN_DIM || op->code == HLO_SLICE || op->code == HLO_CONCATENATE;
    bool works = cls == HC_EW1 || cls == HC_EW2 || cls == HC_EW3 || moves || op->code == HLO_CONSTANT || op->code == HLO_IOTA;
    return works && !op->nregions && !op_has_effect(h, op);
}

static bool may_unroll(const Hlo *h, const HloOp *op, LoopCount *n) {
    if (op->code != HLO_WHILE || !loop_count(h, op, n) || n->trips > TRIPS_MAX)
        return false;
    const HloRegion *body = hlo_op_region(h, op, 1);
    if ((int64_t)body->ops.n * n->trips > OPS_MAX)
        return false;
    for (uint32_t i = 0; i + 1 < body->ops.n; i++)
        if (!is_plain_work(h, hlo_at(h, body->ops.at[i])))
            return false;
    return true;
}

static ValueId now(const ValueMap *m, ValueId v) {
    ValueId to = value_map_get(m, v);
    return to ? to : v; // from outside the loop
}

static void turn(Unroll *u, const HloRegion *body, ValueMap *m) {
    Hlo *h = u->h;
    for (uint32_t i = 0; i + 1 < body->ops.n; i++) {
        HloOp op = *hlo_at(h, body->ops.at[i]);
        ValueId *operands = ARENA_NEWN(u->c->scratch, ValueId, op.noperands + 1);
        TypeId *types = ARENA_NEWN(u->c->scratch, TypeId, op.nresults + 1u);
        for (uint32_t k = 0; k < op.noperands; k++)
            operands[k] = now(m, hlo_operand(h, &op, k));
        for (uint32_t k = 0; k < op.nresults; k++)
            types[k] = h->values.at[op.results + k].type;
        assert(!op.nregions);
        OpId made = hlo_op(h, op.code, op.loc, op.noperands, operands, op.nresults, types);
        hlo_at(h, made)->attrs = arena_dup(h->arena, op.attrs, hlo_row(&op)->nattrs * sizeof *op.attrs);
        ValueId first = walk_push(&u->w, made);
        for (uint32_t k = 0; k < op.nresults; k++)
            value_map_set(u->c->scratch, m, op.results + k, first + k);
    }
}

static void visit(void *pass, OpId id) {
    Unroll *u = pass;
    HloOp op = *hlo_at(u->h, id);
    LoopCount n;
    if (op.code != HLO_WHILE || !may_unroll(u->h, &op, &n)) {
        walk_push(&u->w, id);
        return;
    }
    const HloRegion body = *hlo_op_region(u->h, &op, 1);
    const HloOp ret = *region_return(u->h, &body);
    ValueId *carry = ARENA_NEWN(u->c->scratch, ValueId, op.noperands + 1);
    for (uint32_t k = 0; k < op.noperands; k++)
        carry[k] = hlo_operand(u->h, &op, k);
    for (int64_t i = 0; i < n.trips; i++) {
        ValueMap m = {0};
        for (uint32_t k = 0; k < op.noperands; k++)
            value_map_set(u->c->scratch, &m, body.args + k, carry[k]);
        turn(u, &body, &m);
        for (uint32_t k = 0; k < op.noperands; k++)
            carry[k] = now(&m, hlo_operand(u->h, &ret, k));
    }
    for (uint32_t k = 0; k < op.noperands; k++)
        walk_replace(&u->w, op.results + k, carry[k]);
}

void pass_unroll(Compile *c) {
    Unroll u = {.c = c, .h = c->hlo};
    walk_init(&u.w, c);
    walk_rewrite(&u.w, hlo_main(c->hlo)->body, WALK_CONTROL, visit, &u);
}
