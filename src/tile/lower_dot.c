// SPDX-License-Identifier: Apache-2.0
// lower_dot.c — a product as a step: with the row program behind it (epilogue.c) and the sums that it takes along (sums.c).
#include "tile/product.h"
#include "tile/lower.h"
#include "tile/layout.h"

// The rows of ones under a sum need no buffer: dot.c sets them in SBUF.
bool lower_is_set(const Lower *l, const HloOp *dot) {
    OpId def = l->h->values.at[hlo_operand(l->h, dot, 0)].def;
    return def && lower_is_lazy(l, hlo_at(l->h, def));
}

OpId lower_stored_as(const Lower *l, OpId dot) {
    Side out;
    const HloOp *op = hlo_at(l->h, dot);
    OpId by = users_only(&l->users, op->results);
    bool only = by && hlo_at(l->h, by)->code == HLO_TRANSPOSE && l->users.region[by] == l->users.region[dot];
    return only && side_of_result(&out, l->h, op, by) ? by : 0;
}

// Where a product's result goes; who only transposes it finds it done (lower_op).
BufId lower_dot_out(Lower *l, OpId dot) {
    OpId id = lower_stored_as(l, dot);
    id = id ? id : dot;
    BufId b = lower_out(l, id, 0);
    lower_bind(l, hlo_at(l->h, id)->results, b);
    return b;
}

typedef VEC(BufId) BufIds;

// Where a product or the program behind it reads and writes: ins are the product's, then the program's; outs the program's, then the
// product itself.
static void product_ins(Lower *l, OpId dot, const Epilogue *p, BufIds *ins) {
    HloOp op = *hlo_at(l->h, dot);
    bool set = lower_is_set(l, &op);
    for (uint32_t i = 0; i < 2; i++)
        VEC_PUSH(l->c->scratch, ins, i && l->row_sum_of[dot] ? l->row_sums.at[l->row_sum_of[dot] - 1].parts : i || !set ? lower_operand(l, hlo_operand(l->h, &op, i)) : 0);
    HloOp rows = p ? *hlo_at(l->h, p->rows) : (HloOp){0};
    for (uint32_t i = 0; i < rows.noperands; i++)
        VEC_PUSH(l->c->scratch, ins, i == p->index ? 0 : lower_operand(l, hlo_operand(l->h, &rows, i)));
}

static void product_outs(Lower *l, OpId dot, const Epilogue *p, BufIds *outs) {
    if (!p) {
        VEC_PUSH(l->c->scratch, outs, lower_dot_out(l, dot));
        return;
    }
    HloOp rows = *hlo_at(l->h, p->rows);
    BufId product = p->keeps ? lower_out(l, dot, 0) : 0;
    if (product)
        lower_bind(l, hlo_at(l->h, dot)->results, product);
    for (uint32_t i = 0; i < rows.noperands; i++)
        if (i != p->index)
            lower_release(l, hlo_operand(l->h, &rows, i));
    for (uint32_t i = 0; i < rows.nresults; i++) {
        VEC_PUSH(l->c->scratch, outs, lower_out(l, p->rows, i));
        lower_bind(l, rows.results + i, outs->at[outs->n - 1]);
    }
    VEC_PUSH(l->c->scratch, outs, product);
}

static void release_operands(Lower *l, OpId dot) {
    HloOp op = *hlo_at(l->h, dot);
    for (uint32_t i = lower_is_set(l, &op); i < 2; i++)
        lower_release(l, hlo_operand(l->h, &op, i));
    if (l->row_sum_of[dot])
        lower_hold(l, l->row_sums.at[l->row_sum_of[dot] - 1].parts, -1);
}

const Epilogue *lower_epilogue(const Lower *l, OpId dot) { return l->epilogue_of[dot] ? l->epilogues.at[l->epilogue_of[dot] - 1] : NULL; }

// The first n: what the product and its program read is not written by what comes with them.
static void hold_all(Lower *l, const BufIds *ins, uint32_t n, int32_t by) {
    for (uint32_t i = 0; i < n; i++)
        if (ins->at[i])
            lower_hold(l, ins->at[i], by);
}

// A product with the row program behind it, and the sums that it takes along, whose operands and results follow. Reads of a program end
// before its results are placed, so that these may lie on its operands; those of the product last until the end.
void lower_dot(Lower *l, OpId id, uint32_t number) {
    DotSum *sum = number ? &l->sums.at[number - 1] : NULL;
    BufIds ins = {0}, outs = {0};
    product_ins(l, id, lower_epilogue(l, id), &ins);
    if (sum) {
        BufIds own = {0};
        product_ins(l, sum->dot, lower_epilogue(l, sum->dot), &own);
        sum->ins = ins.n;
        for (uint32_t i = 0; i < own.n; i++) // its second one is an operand of the product
            if (i != 1)
                VEC_PUSH(l->c->scratch, &ins, own.at[i]);
    }
    product_outs(l, id, lower_epilogue(l, id), &outs);
    uint64_t keeps = dot_keeps(l->asks, id, sum);
    if (keeps)
        VEC_PUSH(l->c->scratch, &outs, lower_buf(l, BUF_TEMP, keeps, id));
    if (sum) {
        sum->outs = outs.n;
        hold_all(l, &ins, sum->ins, 1);
        product_outs(l, sum->dot, lower_epilogue(l, sum->dot), &outs);
        hold_all(l, &ins, sum->ins, -1);
        release_operands(l, sum->dot);
    }
    release_operands(l, id);
    lower_step(l, STEP_DOT, id, ins.at, ins.n, outs.at, outs.n, l->epilogue_of[id]);
    l->steps.at[l->steps.n - 1].sum = number;
}
