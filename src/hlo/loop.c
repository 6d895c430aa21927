// SPDX-License-Identifier: Apache-2.0
// loop.c — reads condition and body of a while that counts.
#include "hlo/loop.h"

#include <assert.h>

#include "hlo/affine.h"
#include "hlo/query.h"

bool loop_count(const Hlo *h, const HloOp *op, LoopCount *out) {
    const HloRegion *cond = hlo_op_region(h, op, 0), *body = hlo_op_region(h, op, 1);
    OpId def = h->values.at[hlo_operand(h, region_return(h, cond), 0)].def;
    if (!def || hlo_at(h, def)->code != HLO_COMPARE)
        return false;
    const HloOp *cmp = hlo_at(h, def);
    int64_t dir = hlo_int(cmp, AK_COMPARISON_DIRECTION, -1), begin, end, step;
    ValueId i = hlo_operand(h, cmp, 0);
    if (h->values.at[i].region != h->op_regions.at[op->regions] || !constant_int(h, hlo_operand(h, cmp, 1), &end) ||
        (dir != CMP_LT && dir != CMP_LE))
        return false;
    uint32_t k = h->values.at[i].index;
    OpId next = h->values.at[hlo_operand(h, region_return(h, body), k)].def;
    if (!constant_int(h, hlo_operand(h, op, k), &begin) || !next || hlo_at(h, next)->code != HLO_ADD)
        return false;
    const HloOp *add = hlo_at(h, next);
    uint32_t self = hlo_operand(h, add, 0) == body->args + k ? 0 : 1;
    if (hlo_operand(h, add, self) != body->args + k || !constant_int(h, hlo_operand(h, add, !self), &step) || step <= 0)
        return false;
    __int128 span = (__int128)end - begin + (dir == CMP_LE), trips = (span + step - 1) / step;
    if (span <= 0 || trips > INT32_MAX || begin + trips * step > INT64_MAX || !affine_fits(hlo_value_type(h, i)->dtype, (AffineRange){begin, begin + trips * step}))
        return false;
    *out = (LoopCount){.first = begin, .step = step, .trips = (int64_t)trips, .counter = k};
    return true;
}

const HloOp *loop_stacks(const Users *u, const HloOp *loop, uint32_t k) {
    const Hlo *h = u->h;
    assert(loop->code == HLO_WHILE && k < loop->noperands);
    const HloRegion *body = hlo_op_region(h, loop, 1);
    ValueId next = hlo_operand(h, region_return(h, body), k);
    const HloOp *op = hlo_def_as(h, next, HLO_DYNAMIC_UPDATE_SLICE);
    uint32_t reads, writes, asked;
    users_of(u, body->args + k, &reads);
    users_of(u, next, &writes);
    users_of(u, hlo_op_region(h, loop, 0)->args + k, &asked);
    return op && hlo_operand(h, op, 0) == body->args + k && reads == 1 && writes == 1 && !asked ? op : NULL;
}

typedef struct Counter { // of one loop
    ValueId v;
    const LoopCount *n;
} Counter;

static bool is_counter(const AffineReader *r, ValueId v, Affine *out) {
    const Counter *c = r->of;
    out->at = (Form){.known = true, .loop = 1, .mul = 1};
    return v == c->v;
}

static void counter_range(const AffineReader *r, uint32_t loop, int64_t *first, int64_t *last) {
    const Counter *c = r->of;
    assert(loop == 1);
    *first = c->n->first, *last = c->n->first + (c->n->trips - 1) * c->n->step;
}

bool loop_goes_over(const Hlo *h, const HloOp *op, const LoopCount *count, ValueId v) {
    Counter c = {hlo_op_region(h, op, 1)->args + count->counter, count};
    Affine a;
    if (!affine_read(&(AffineReader){h, &c, is_counter, counter_range}, v, &a))
        return false;
    int64_t by = a.at.mul * count->step, first = a.at.add + a.at.mul * count->first;
    return (by == 1 && !first) || (by == -1 && first == count->trips - 1);
}
