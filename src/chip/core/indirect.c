// SPDX-License-Identifier: Apache-2.0
// indirect.c — transfers by index that follow each other, as one piece of work for all threads.
//
// A gather or scatter of many rows is hundreds of transfers of 128 rows. Gathers write places of their own, so each may go
// to any thread. Scatters meet in the rows that they name: each thread takes some of the rows through all transfers, in
// order, so that a row named twice gets its sums in the same order as ever.
#include "chip/core/core.h"
#include "chip/core/effects.h"

#define MANY 64 // transfers

// They differ in places only.
static bool same_pattern(const IsaInst *a, const IsaInst *b) {
    bool same = a->op == b->op && a->op0 == b->op0 && a->dtype == b->dtype && a->stype == b->stype && a->ttype == b->ttype &&
                a->flags == b->flags && a->limit == b->limit && addr_space(a->dst) == addr_space(b->dst) &&
                addr_space(a->src) == addr_space(b->src) && addr_space(b->src1) == SPACE_SBUF;
    for (int i = 0; i < 4 && same; i++)
        same = a->n[i] == b->n[i] && a->d[i] == b->d[i] && a->s[i] == b->s[i];
    return same;
}

static uint64_t gather_end(const IsaInst *in) { // of what it writes
    uint64_t last = 0;
    for (int i = 0; i < 4; i++)
        last += (isa_count(in->n[i]) - 1) * (uint64_t)in->d[i];
    return addr_off(in->dst) + (last + 1) * dtype_bytes(in->stype);
}

// May the two go in any order, but for rows that both name? from: the HBM address that src is read at, or src itself.
static bool apart(const IsaInst *first, const IsaInst *before, const IsaInst *in, uint64_t from, const uint32_t *same_seg) {
    bool gather = addr_space(in->src) == SPACE_HBM;
    if (addr_space(in->dst) != SPACE_HBM ||
        (addr_space(from) == SPACE_HBM && same_seg[addr_seg(from)] == same_seg[addr_seg(in->dst)]))
        return false;
    if (!gather)
        return in->dst == first->dst;
    for (int i = 0; i < 4; i++)
        if (in->d[i] < 0)
            return false;
    return !before || (addr_seg(in->dst) == addr_seg(before->dst) && addr_off(in->dst) >= gather_end(before));
}

uint32_t indirect_run(Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs, otrn_status *status, char *why,
                      size_t why_bytes) {
    EffCall calls[MANY];
    const Plan *plan = p->plan;
    const IsaInst *first = &p->art->code[pc], *before = NULL;
    uint32_t n = 0, end = pc;
    for (uint32_t i = pc; i < p->art->ncode && n < MANY; i++) {
        const IsaInst *in = &p->art->code[i];
        if (p->dynamic[i] || plan->run_at[i])
            break;
        if (plan->spared && plan->spared[i])
            continue;
        const IsaInst *through = plan->through && plan->through[i] ? &p->art->code[plan->through[i] - 1] : NULL;
        if (in->op != ISA_DMA_INDIRECT || !same_pattern(first, in) ||
            !apart(first, before, in, through ? through->src : in->src, plan->same_seg))
            break;
        EffCall *call = &calls[n];
        *call = chip_effect_of(c, in, segs);
        call->state = &c->engines, call->pool = c->pool, call->round = &c->round;
        call->why = why, call->why_bytes = why_bytes;
        if (through)
            call->src = (EffOperand){.at = segs[addr_seg(through->src)] + addr_off(through->src),
                                     .pitch = through->s[0] * (int64_t)dtype_bytes(through->stype)};
        if (n && call->src.pitch != calls[0].src.pitch)
            break;
        n++, end = i + 1, before = in;
    }
    if (n < 2 || !eff_indirect_suits(calls))
        return pc;
    *status = eff_indirect_many(calls, n);
    return end;
}
