// SPDX-License-Identifier: Apache-2.0
// unroll.c — short loops of elementwise work in one piece.
// needs: no calls, values defined before use
// gives: loops of few turns whose bodies only compute element by element are gone; those that walk over data stay
// stale: uses
//
// JAX lowers its random numbers for CPUs as a loop of five turns over whole tensors. In one piece the turns join, and constants
// that go round from turn to turn are known.
#include "hlo/loop.h"
#include "pass/rules.h"

#define TRIPS_MAX 8
#define OPS_MAX 512

static bool is_plain_work(const Hlo *h, const HloOp *op) {
    bool moves = op->code == HLO_RESHAPE || op->code == HLO_BROADCAST_IN_DIM || op->code == HLO_SLICE || op->code == HLO_CONCATENATE;
    bool works = hlo_is_elementwise(op) || moves || op->code == HLO_CONSTANT || op->code == HLO_IOTA;
    return works && !op->nregions && !op_has_effect(h, op);
}

static bool may_unroll(const Hlo *h, const HloOp *op, LoopCount *n) {
    if (!loop_count(h, op, n) || n->trips > TRIPS_MAX)
        return false;
    const HloRegion *body = hlo_op_region(h, op, 1);
    if ((int64_t)body->ops.n * n->trips > OPS_MAX)
        return false;
    for (uint32_t i = 0; i + 1 < body->ops.n; i++)
        if (!is_plain_work(h, hlo_at(h, body->ops.at[i])))
            return false;
    return true;
}

static void turn(Walk *w, const HloRegion *body, ValueMap *m) {
    Hlo *h = w->hlo;
    for (uint32_t i = 0; i + 1 < body->ops.n; i++) {
        HloOp op = *hlo_at(h, body->ops.at[i]);
        OpId made = value_map_copy(h, w->arena, m, &op); // or from outside the loop
        hlo_op_own_attrs(h, made);
        value_map_set(w->arena, m, op.results, walk_push(w, made));
    }
}

static ValueId unrolled(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    LoopCount n;
    if (!may_unroll(h, op, &n))
        return 0;
    const HloRegion body = *hlo_op_region(h, op, 1);
    const HloOp ret = *region_return(h, &body);
    ValueId *carry = ARENA_NEWN(w->arena, ValueId, op->noperands + 1);
    for (uint32_t k = 0; k < op->noperands; k++)
        carry[k] = hlo_operand(h, op, k);
    for (int64_t i = 0; i < n.trips; i++) {
        ValueMap m = {0};
        for (uint32_t k = 0; k < op->noperands; k++)
            value_map_set(w->arena, &m, body.args + k, carry[k]);
        turn(w, &body, &m);
        for (uint32_t k = 0; k < op->noperands; k++)
            carry[k] = value_map_or_same(&m, hlo_operand(h, &ret, k));
    }
    for (uint32_t k = 1; k < op->noperands; k++)
        walk_replace(w, op->results + k, carry[k]);
    return carry[0];
}

const Rule unroll_rules[] = {{"while of few turns that only compute element by element: the turns", HLO_WHILE, RULE_EXACT, unrolled}, {0}};
