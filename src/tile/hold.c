// SPDX-License-Identifier: Apache-2.0
// hold.c — what a collective reads stays where it is until it has been read, and what it writes is free when it may begin.
//
//   steps        │ … product │ all_reduce │ product product product … │ reader
//   collective   │           │ ···································    │
//   operand      │      made │ ←———— held ————→ │ somebody else's
//
//   steps        │ operand made │ product product │ all_gather │ reader
//   result       │ somebody's   │ ←—— ahead ————→ │ written    │
//
// A collective goes on beside the steps behind it. A buffer's life is counted in steps, so its operands' memory would be free right behind it, and who
// gets that would wait for the collective, and with it everybody behind. So an operand lives until by the chip's prices the collective is
// done, but not beyond the first reader of its results or control flow, which wait for it anyway, nor beyond as many bytes of other collectives as
// links that lag behind would only pile up. Its memory shares no piece with others', which sched.c could not tell apart.
//
// A collective whose operand is there begins before the steps that stand before it are done, unless its result's memory was just somebody's who is still
// read or written. So that is kept free for as long as the collective takes before its step, but not before its operands are made.
#include "mach/cost.h"
#include "tile/emit.h"

#define FLIGHT_BYTES (32u << 20) // of collectives that have begun and are thought to be under way

static bool is_collective(const Lower *l, const Step *s) {
    const HloOp *op = s->op ? hlo_at(l->h, s->op) : NULL;
    return op && s->kind == STEP_KERNEL && hlo_row(op)->cls == HC_COLL && op->noperands && op->nresults && cost_wire_bytes(l->h, op);
}

static BufId memory_of(const Lower *l, BufId b) { return l->bufs.at[b].kind == BUF_VIEW ? l->bufs.at[b].base : b; }

// Per step: the first behind it that reads what it writes, or is control flow.
static uint32_t *first_reads(const Lower *l) {
    uint32_t *read = ARENA_NEWN(l->c->scratch, uint32_t, l->bufs.n + 1), *first = ARENA_NEWN(l->c->scratch, uint32_t, l->steps.n + 1), control = l->steps.n;
    for (uint32_t i = l->steps.n; i-- > 0;) {
        const Step *s = &l->steps.at[i];
        first[i] = control;
        for (uint32_t k = 0; k < s->nouts; k++) {
            uint32_t at = read[memory_of(l, l->refs.at[s->outs + k])];
            first[i] = at && at < first[i] ? at : first[i];
        }
        for (uint32_t k = 0; k < s->nins; k++)
            read[memory_of(l, l->refs.at[s->ins + k])] = i;
        control = s->kind >= STEP_LOOP_BEGIN ? i : control;
    }
    return first;
}

static uint32_t hold_until(const Lower *l, uint32_t i, uint32_t end, const double *at, double done) {
    uint64_t bytes = 0;
    uint32_t until = i;
    for (; until < end && at[until] < done && bytes <= FLIGHT_BYTES; until++)
        bytes += is_collective(l, &l->steps.at[until]) ? cost_wire_bytes(l->h, hlo_at(l->h, l->steps.at[until].op)) : 0;
    return until;
}

// Per step: behind the last that writes what it reads, or is control flow.
static uint32_t *last_writes(const Lower *l) {
    uint32_t *written = ARENA_NEWN(l->c->scratch, uint32_t, l->bufs.n + 1), *last = ARENA_NEWN(l->c->scratch, uint32_t, l->steps.n + 1), control = 0;
    for (uint32_t i = 0; i < l->steps.n; i++) {
        const Step *s = &l->steps.at[i];
        last[i] = control;
        for (uint32_t k = 0; k < s->nins; k++) {
            uint32_t at = written[memory_of(l, l->refs.at[s->ins + k])];
            last[i] = at > last[i] ? at : last[i];
        }
        for (uint32_t k = 0; k < s->nouts; k++)
            written[memory_of(l, l->refs.at[s->outs + k])] = i + 1;
        control = s->kind >= STEP_LOOP_BEGIN ? i + 1 : control;
    }
    return last;
}

// Steps before step i from which a collective's results are kept free: as far back as it takes, `ns`, but not before step `begin`.
static uint32_t free_ahead(uint32_t i, uint32_t begin, const double *at, double ns) {
    uint32_t from = i;
    while (from > begin && at[i] - at[from] < ns)
        from--;
    return i - from;
}

void hold_operands(Lower *l, const ChipFile *chip, uint32_t cores) {
    double *at = ARENA_NEWN(l->c->scratch, double, l->steps.n + 1), done = 0;
    for (uint32_t i = 0; i < l->steps.n; i++) {
        const Step *s = &l->steps.at[i];
        bool works = s->op && s->kind < STEP_LOOP_BEGIN && !is_collective(l, s);
        at[i + 1] = at[i] + (works ? cost_op(l->h, chip, hlo_at(l->h, s->op)) / cores : 0);
    }
    const uint32_t *first = first_reads(l), *last = last_writes(l);
    for (uint32_t i = 0; i < l->steps.n; i++) {
        const Step *s = &l->steps.at[i];
        if (!is_collective(l, s))
            continue;
        const HloOp *op = hlo_at(l->h, s->op);
        double ns = cost_wire(l->h, chip, op, cost_wire_bytes(l->h, op));
        done = (done > at[i] ? done : at[i]) + ns;
        uint32_t until = hold_until(l, i, first[i], at, done), ahead = free_ahead(i, last[i], at, ns);
        for (uint32_t k = 0; k < s->nins + s->nouts; k++) {
            TBuf *b = &l->bufs.at[memory_of(l, l->refs.at[k < s->nins ? s->ins + k : s->outs + k - s->nins])];
            b->alone = true;
            b->held = k < s->nins && b->held < until ? until : b->held;
            b->ahead = k >= s->nins && b->first == i ? ahead : b->ahead;
        }
    }
}

void hold_nothing(Lower *l) {
    for (BufId b = 1; b < l->bufs.n; b++)
        l->bufs.at[b].held = l->bufs.at[b].ahead = 0, l->bufs.at[b].alone = false;
}
