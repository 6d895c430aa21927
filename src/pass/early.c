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
#include "hlo/users.h"
#include "pass/walk.h"

#define DEPTH_MAX 8

typedef struct Early {
    Compile *c;
    Hlo *h;
    Users u;
    uint32_t *to; // per op: position of the program it goes before, plus one; 0: it stays
    bool views;   // only what moves nothing
    Moves moves;
} Early;

static bool may_go(const Early *e, const HloOp *op) {
    return op->code == HLO_RESHAPE || (!e->views && (op->code == HLO_CONVERT || op->code == HLO_TRANSPOSE || op->code == HLO_ROWS));
}

// The row program whose result, reshaped or not, the value is.
static OpId program_of(const Hlo *h, ValueId v) {
    OpId def = h->values.at[before_reshapes(h, v)].def;
    return def && hlo_at(h, def)->code == HLO_ROWS ? def : 0;
}

static bool may_stand_before(const Early *e, ValueId v, OpId rows, uint32_t depth) {
    if (users_there_before(&e->u, v, rows))
        return true;
    OpId def = e->h->values.at[v].def;
    const HloOp *op = hlo_at(e->h, def);
    bool may = depth < DEPTH_MAX && def != rows && may_go(e, op);
    for (uint32_t k = 0; k < op->noperands && may; k++)
        may = may_stand_before(e, hlo_operand(e->h, op, k), rows, depth + 1);
    return may;
}

static void stand_before(Early *e, ValueId v, OpId rows) {
    if (users_there_before(&e->u, v, rows))
        return;
    OpId def = e->h->values.at[v].def;
    const HloOp *op = hlo_at(e->h, def);
    uint32_t at = e->u.position[rows] + 1;
    e->to[def] = e->to[def] && e->to[def] < at ? e->to[def] : at;
    for (uint32_t k = 0; k < op->noperands; k++)
        stand_before(e, hlo_operand(e->h, op, k), rows);
}

static void early_region(Early *e, RegionId r) {
    Hlo *h = e->h;
    uint32_t n = h->regions.at[r].ops.n;
    bool moves = false;
    for (uint32_t i = 0; i < n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        const HloOp *op = hlo_at(h, id);
        for (uint32_t k = 0; k < op->nregions && hlo_row(op)->cls == HC_CTRL; k++)
            early_region(e, h->op_regions.at[op->regions + k]);
        for (uint32_t side = 0; side < 2 && dot_on_tensor_engine(h, op); side++) {
            OpId rows = program_of(h, hlo_operand(h, op, side));
            ValueId other = hlo_operand(h, op, !side);
            if (!rows || e->u.region[rows] != r || users_there_before(&e->u, other, rows) || !may_stand_before(e, other, rows, 0))
                continue;
            stand_before(e, other, rows);
            moves = true;
        }
    }
    if (!moves)
        return;
    for (uint32_t i = 0; i < n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        if (e->to[id])
            moves_before(&e->moves, id, h->regions.at[r].ops.at[e->to[id] - 1]);
    }
    moves_make(&e->moves, r);
}

static void early(Compile *c, bool views) {
    Early e = {.c = c, .h = c->hlo, .to = ARENA_NEWN(c->scratch, uint32_t, c->hlo->ops.n + 1), .views = views};
    moves_init(&e.moves, c);
    users_make(&e.u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    early_region(&e, hlo_main(c->hlo)->body);
}

void pass_early(Compile *c) { early(c, false); }
void early_views(Compile *c) { early(c, true); }
