// SPDX-License-Identifier: Apache-2.0
// ahead.c — random numbers, and numbers that are known from the start, are made before anybody waits for them.
// needs: programs of integers (pass_row_integers), values defined before use
// gives: such a program, with the few small ops it needs, stands where an earlier one is read; what makes single numbers of the
//        entry's single numbers for row programs stands at its begin
// stale: nothing
//
// An optimizer's update reads numbers that the step's count alone decides: rates, corrections of moments. Written where the updates are, at
// the end, they would keep all of them there. With them at hand an update takes its gradient's tiles as these leave the tensor engine
// (pass/epilogue.c): no gradient goes to HBM and back, and the update's transfers go beside products of other layers.
//
// Random numbers need a key and nothing else. Vector engine and gpsimd then make them in a lane of their own (tile/sched.c), beside products and what
// comes before their reader. A few programs ahead are enough to keep that lane busy; more would only hold memory.
#include <math.h>

#include "pass/rows.h"
#include "pass/schedule.h"

#define AHEAD 4        // programs
#define CONE_MAX 48    // ops that come along
#define SMALL_MAX 1024 // … elements of each

static bool is_small(const void *hlo, const HloOp *op) {
    const Hlo *h = hlo;
    bool small = !op_has_effect(h, op) && op->nresults && hlo_row(op)->cls != HC_CTRL;
    for (uint32_t k = 0; k < op->nresults && small; k++) {
        const HloType *t = hlo_value_type(h, op->results + k);
        small = t->kind == HT_TENSOR && !t->dynamic && t->elems <= SMALL_MAX;
    }
    return small || op->code == HLO_IOTA || (op->code == HLO_RESHAPE && rows_is_count(h, op->results)) || op->code == HLO_CONSTANT;
}

// Each program goes where the one so many before it, and all before that, is read. What a loop or a branch reads is not moved.
static void raise_programs(void *pass, RegionId r) {
    Schedule *s = pass;
    VEC(double) until = {0}; // per program: where it and those before it are read
    for (uint32_t i = 0; i < s->h->regions.at[r].ops.n; i++) {
        OpId id = s->h->regions.at[r].ops.at[i];
        const HloOp *op = hlo_at(s->h, id);
        double read = INFINITY;
        for (uint32_t k = 0; op->code == HLO_ROWS && k < op->nresults; k++)
            read = fmin(read, schedule_first_read(s, r, op->results + k));
        if (read == INFINITY || read <= 0 || !rows_of_ints(s->h, op))
            continue;
        double place = until.n < AHEAD ? 0 : until.at[until.n - AHEAD];
        if (place < s->key[id])
            schedule_raise(s, id, place - 0.5, is_small, s->h, CONE_MAX);
        read = until.n ? fmax(until.at[until.n - 1], read) : read;
        VEC_PUSH(s->c->scratch, &until, read);
    }
    schedule_make(s, r);
}

// --- single numbers ----------------------------------------------------------------------------------

static bool is_number(const Hlo *h, ValueId v) {
    const HloType *t = hlo_value_type(h, v);
    return hlo_is_plain(t) && t->elems == 1;
}

static bool is_number_op(const void *hlo, const HloOp *op) {
    const Hlo *h = hlo;
    bool suits = op->nresults && hlo_row(op)->cls != HC_CTRL && hlo_row(op)->cls != HC_COLL && !op_has_effect(h, op);
    for (uint32_t k = 0; k < op->nresults && suits; k++)
        suits = is_number(h, op->results + k);
    for (uint32_t k = 0; k < op->noperands && suits; k++)
        suits = is_number(h, hlo_operand(h, op, k));
    return suits;
}

static void raise_numbers(Schedule *s, RegionId r) {
    for (uint32_t i = 0; i < s->h->regions.at[r].ops.n; i++) {
        const HloOp *op = hlo_at(s->h, s->h->regions.at[r].ops.at[i]);
        for (uint32_t k = 0; op->code == HLO_ROWS && k < op->noperands; k++) {
            OpId def = s->h->values.at[hlo_operand(s->h, op, k)].def;
            if (def && s->u.region[def] == r && s->key[def] >= 0 && is_number_op(s->h, hlo_at(s->h, def)))
                schedule_raise(s, def, -0.5, is_number_op, s->h, UINT32_MAX);
        }
    }
    schedule_make(s, r);
}

void pass_ahead(Compile *c) {
    Schedule s;
    schedule_init(&s, c);
    raise_numbers(&s, hlo_main(c->hlo)->body);
    schedule_init(&s, c);
    walk_regions(c->hlo, hlo_main(c->hlo)->body, raise_programs, &s);
}
