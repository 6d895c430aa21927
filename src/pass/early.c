// SPDX-License-Identifier: Apache-2.0
// early.c — what a product needs beside the rows of a program is there when the program runs.
// needs: row programs
// gives: where an operand of a product is a row program's result, the row programs, conversions and movement that make its other operand
//        stand before that program, if what they take is there
// stale: nothing
//
// Gradients of keys and values are products of rows with queries and values that are converted, or turned, just for them; weights of
// attention meet values whose bias is added then. Standing before the rows they let tile/block.c take rows and product together.
#include "hlo/dot.h"
#include "pass/schedule.h"

#define CONE_MAX 64 // ops that go together

static bool may_move(const void *again, const HloOp *op) {
    return op->code == HLO_RESHAPE || op->code == HLO_CONVERT || op->code == HLO_TRANSPOSE || (!*(const bool *)again && op->code == HLO_ROWS);
}

// The row program whose result, reshaped or not, the value is.
static OpId program_of(const Hlo *h, ValueId v) {
    OpId def = h->values.at[before_reshapes(h, v)].def;
    return def && hlo_at(h, def)->code == HLO_ROWS ? def : 0;
}

typedef struct Early {
    Schedule s;
    bool again; // programs have their places
} Early;

static void early_region(void *pass, RegionId r) {
    Early *e = pass;
    const Hlo *h = e->s.h;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        const HloOp *op = hlo_at(h, h->regions.at[r].ops.at[i]);
        for (uint32_t side = 0; side < 2 && dot_on_tensor_engine(h, op); side++) {
            OpId rows = program_of(h, hlo_operand(h, op, side)), other = h->values.at[hlo_operand(h, op, !side)].def;
            bool behind = rows && e->s.u.region[rows] == r && !users_there_before(&e->s.u, hlo_operand(h, op, !side), rows);
            if (behind && other != rows && may_move(&e->again, hlo_at(h, other)))
                schedule_raise(&e->s, other, e->s.u.position[rows] - 0.5, may_move, &e->again, CONE_MAX);
        }
    }
    schedule_make(&e->s, r);
}

static void early(Compile *c, bool again) {
    Early e = {.again = again};
    schedule_init(&e.s, c);
    walk_regions(c->hlo, hlo_main(c->hlo)->body, early_region, &e);
}

void pass_early(Compile *c) { early(c, false); }
void early_again(Compile *c) { early(c, true); }
