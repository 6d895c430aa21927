// SPDX-License-Identifier: Apache-2.0
// copies.c — what a loop stacks up as it was carried in is stored by a row program that reads it.
// needs: row programs
// gives: such a value comes from HBM once, and its copy goes to the stack from SBUF, beside the program's own work
// stale: uses
//
//   for i: x … S[i] = x; y = norm(x) …      ──►   for i: x … y, c = norm(x), x; S[i] = c
//
// A gradient needs what each layer began with. As a step of its own the copy would stand at the begin of every iteration, where everybody waits
// for the same rows, and take all of the DMA engines.
#include "hlo/loop.h"
#include "hlo/query.h"
#include "mach/cost.h"
#include "pass/rows.h"
#include "pass/rows_make.h"

#define RESULTS_MAX 12 // of a program

typedef struct Copies {
    Compile *c;
    Hlo *h;
    Walk w;
    Users u;
} Copies;

// The first program of the region that reads the value's rows, and as which operand; 0: none does.
static OpId find_reader(const Copies *p, RegionId r, ValueId v, uint32_t *operand) {
    const Hlo *h = p->h;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        const HloOp *op = hlo_at(h, h->regions.at[r].ops.at[i]);
        const int64_t *kinds = op->code == HLO_ROWS ? rows_kinds(op) : NULL;
        bool apart = kinds && op->nresults < RESULTS_MAX; // no product in one step with it, which may have its rows several times
        for (uint32_t k = 0; apart && k < op->noperands; k++)
            apart = !rows_score(h, &p->u, h->regions.at[r].ops.at[i], k, 2 * SCORE_NARROW);
        for (*operand = 0; apart && *operand < op->noperands; ++*operand)
            if (kinds[*operand] == FUSED_SAME && before_reshapes(h, hlo_operand(h, op, *operand)) == v)
                return h->regions.at[r].ops.at[i];
    }
    return 0;
}

// The program with one more result, the operand itself.
static OpId give_operand(Copies *p, OpId rows, uint32_t operand) {
    Hlo *h = p->h;
    const HloOp op = *hlo_at(h, rows);
    int64_t shape[2];
    RowsResults r = {0};
    RowsMake m = {.c = p->c, .h = h};
    rows_shape(h, &op, &shape[0], &shape[1]);
    rows_make_results(&m, &r, rows);
    rows_make_result(&m, &r, hlo_op_region(h, &op, 0)->args + operand, 0, hlo_type_tensor(h, hlo_value_type(h, hlo_operand(h, &op, operand))->dtype, 2, shape));
    return rows_make_again(&p->w, rows, &r);
}

// The update follows the program whose result it puts into the stack.
static void store_there(Copies *p, RegionId r, OpId update, OpId rows, uint32_t operand) {
    Hlo *h = p->h;
    OpList ops = {0};
    OpId made = give_operand(p, rows, operand);
    ValueId copy = hlo_at(h, made)->results + hlo_at(h, made)->nresults - 1, piece = hlo_operand(h, hlo_at(h, update), 1);
    OpId shaped = hlo_op(h, HLO_RESHAPE, hlo_at(h, update)->loc, 1, &copy, 1, &h->values.at[piece].type);
    walk_grow(&p->w);
    h->operands.at[hlo_at(h, update)->operands + 1] = hlo_at(h, shaped)->results;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        if (id != update)
            VEC_PUSH(p->c->scratch, &ops, id == rows ? made : id);
        if (id == rows) {
            VEC_PUSH(p->c->scratch, &ops, shaped);
            VEC_PUSH(p->c->scratch, &ops, update);
        }
    }
    walk_set_ops(h, r, &ops);
    walk_region(&p->w, r);
}

// A little copy is made beside other work, and a store more would keep the program waiting.
static bool is_worth_it(const Copies *p, ValueId v) {
    double bytes = (double)hlo_type_bytes(hlo_value_type(p->h, v));
    return p->c->chip && cost_stream(p->c->chip, 2 * bytes) > cost_reach(p->c->chip);
}

static bool visit(void *pass, RegionId region, uint32_t at) {
    Copies *p = pass;
    Hlo *h = p->h;
    HloOp loop = *hlo_at(h, h->regions.at[region].ops.at[at]);
    for (uint32_t k = 0; loop.code == HLO_WHILE && k < loop.noperands; k++) {
        RegionId body = h->op_regions.at[loop.regions + 1];
        const HloOp *update = loop_stacks(&p->u, &loop, k);
        ValueId v = update ? before_reshapes(h, hlo_operand(h, update, 1)) : 0, args = h->regions.at[body].args;
        uint32_t operand;
        OpId rows = v >= args && v < args + loop.noperands && is_worth_it(p, v) ? find_reader(p, body, v, &operand) : 0;
        if (!rows || p->u.region[h->values.at[update->results].def] != body)
            continue;
        store_there(p, body, h->values.at[update->results].def, rows, operand);
        return true;
    }
    return false;
}

void pass_copies(Compile *c) {
    Copies p = {.c = c, .h = c->hlo};
    RegionId body = hlo_main(c->hlo)->body;
    bool more = true;
    while (more) {
        walk_init(&p.w, c);
        users_make(&p.u, c->hlo, c->scratch, body);
        more = walk_find(c->hlo, body, visit, &p);
        pass_dce(c);
    }
}
