// SPDX-License-Identifier: Apache-2.0
// early.c — what a product needs beside the rows of a program is there when the program runs.
// needs: row programs
// gives: where an operand of a product is a row program's result, conversions and movement that make its other operand stand
//        before that program, if what they move is there
// stale: nothing
//
// Gradients of keys and values are products of rows with queries and values that are converted, or turned, just for them. Standing
// before the rows they let tile/block.c take rows and product together.
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
} Early;

static bool only_moves(const Hlo *h, const HloOp *op) {
    if (op->code == HLO_ROWS) {
        const HloRegion *r = hlo_op_region(h, op, 0);
        return op->noperands == 1 && op->nresults == 1 && r->ops.n == 2 && hlo_at(h, r->ops.at[0])->code == HLO_CONVERT;
    }
    return op->code == HLO_RESHAPE || op->code == HLO_CONVERT || op->code == HLO_TRANSPOSE;
}

// The row program whose result, reshaped or not, the value is.
static OpId program_of(const Hlo *h, ValueId v) {
    OpId def = h->values.at[v].def;
    while (def && hlo_at(h, def)->code == HLO_RESHAPE)
        def = h->values.at[hlo_operand(h, hlo_at(h, def), 0)].def;
    return def && hlo_at(h, def)->code == HLO_ROWS ? def : 0;
}

static bool may_stand_before(const Early *e, ValueId v, OpId rows, uint32_t depth) {
    if (users_there_before(&e->u, v, rows))
        return true;
    const HloOp *op = hlo_at(e->h, e->h->values.at[v].def);
    return depth < DEPTH_MAX && (e->views ? op->code == HLO_RESHAPE : only_moves(e->h, op)) && may_stand_before(e, hlo_operand(e->h, op, 0), rows, depth + 1);
}

static void stand_before(Early *e, ValueId v, OpId rows) {
    for (; !users_there_before(&e->u, v, rows); v = hlo_operand(e->h, hlo_at(e->h, e->h->values.at[v].def), 0)) {
        uint32_t *to = &e->to[e->h->values.at[v].def], at = e->u.position[rows] + 1;
        *to = *to && *to < at ? *to : at;
    }
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
    OpList *before = ARENA_NEWN(e->c->scratch, OpList, n), out = {0};
    for (uint32_t i = 0; i < n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        if (e->to[id])
            VEC_PUSH(e->c->scratch, &before[e->to[id] - 1], id);
    }
    for (uint32_t i = 0; i < n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        for (uint32_t k = 0; k < before[i].n; k++)
            VEC_PUSH(e->c->scratch, &out, before[i].at[k]);
        if (!e->to[id])
            VEC_PUSH(e->c->scratch, &out, id);
    }
    walk_set_ops(h, r, &out);
}

static void early(Compile *c, bool views) {
    Early e = {.c = c, .h = c->hlo, .to = ARENA_NEWN(c->scratch, uint32_t, c->hlo->ops.n + 1), .views = views};
    users_make(&e.u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    early_region(&e, hlo_main(c->hlo)->body);
}

void pass_early(Compile *c) { early(c, false); }
void early_views(Compile *c) { early(c, true); }
