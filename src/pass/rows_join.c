// SPDX-License-Identifier: Apache-2.0
// rows_join.c — let two row programs that read the same rows be one.
// needs: row programs
// gives: a program takes in one that stands a few products further down, has a row as operand that it has too, and needs nothing made in
//        between but little that can stand before both (a loop's slice of a stack, a converted scale): those rows come from HBM once, and
//        what only the two need of others (pass/scores.c) is made once
// stale: nothing
//
//   gradients of a layer norm   gy x̂ ──► its scale's     ;   gy, x ──► x's: both read gy
//
// Programs that go on with a product's tiles stay with them (pass/epilogue.c), so do those around scores (tile/block.c).
#include "pass/epilogue.h"
#include "pass/rows.h"
#include "pass/rows_make.h"

#define OPERANDS_MAX 20
#define OPS_MAX 128
#define RESULTS_MAX 12
#define PRODUCTS_BETWEEN 3 // of programs further apart the second one's results would wait in HBM
#define SHARED_MIN (1 << 19) // elements of an operand that is worth it,
#define LOOP_MIN (1 << 10)   // … in each iteration of a loop, which waits for the transfers of every program
#define LITTLE (1 << 14)     // elements that are made before both for the second
#define CHAIN_MAX 8
#define LONG 4096            // columns that come in chunks, with a pass over them for each level of sums: one program has those of both
#define TILE 128             // rows that are done at once: no other tile fills the time in which a sum waits
#define ROUNDS 4

typedef struct Join {
    Compile *c;
    Hlo *h;
    Walk w;
    Users u;
    uint32_t nops; // of the picture
    bool *taken;   // per op: joined already
    OpId *instead; // per op: what stands in its place; itself where it is gone
    bool *there;   // per op: in the region's new list
} Join;

// A program by itself: no product goes before or behind it in one step.
static bool stands_alone(const Join *j, OpId id) {
    const HloOp *op = hlo_at(j->h, id);
    Epilogue e;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (epilogue_suits(&j->u, id, i, &e) || rows_score(j->h, &j->u, id, i, 2 * SCORE_NARROW))
            return false;
    return !rows_of_ints(j->h, op);
}

static bool reads(const Join *j, const HloOp *op, ValueId v) {
    for (uint32_t i = 0; i < op->noperands; i++)
        if (rows_kinds(op)[i] == FUSED_SAME && before_reshapes(j->h, hlo_operand(j->h, op, i)) == v)
            return true;
    return false;
}

static bool shares_rows(const Join *j, const HloOp *a, const HloOp *b, int64_t least) {
    for (uint32_t k = 0; k < a->nresults; k++)
        if (hlo_value_type(j->h, a->results + k)->elems >= least && reads(j, b, a->results + k))
            return true;
    for (uint32_t i = 0; i < a->noperands; i++) {
        ValueId v = before_reshapes(j->h, hlo_operand(j->h, a, i));
        if (rows_kinds(a)[i] == FUSED_SAME && hlo_value_type(j->h, v)->elems >= least && reads(j, b, v))
            return true;
    }
    return false;
}

// It has numbers of its rows, so that a row stays whole (cut_few_rows in tile/rows.c).
static bool has_numbers(const Hlo *h, const HloOp *rows) {
    bool has = false;
    for (uint32_t i = 0; i < rows->noperands; i++)
        has = has || (rows_kinds(rows)[i] == FUSED_ROWS && hlo_value_type(h, hlo_operand(h, rows, i))->elems > 1);
    const HloRegion *region = hlo_op_region(h, rows, 0);
    for (uint32_t i = 0; i < region->ops.n; i++)
        has = has || hlo_at(h, region->ops.at[i])->code == HLO_REDUCE;
    return has;
}

// The value is there before the op, or can be: views, and little, made of what is.
static bool may_be_before(const Join *j, ValueId v, OpId id, int depth) {
    const Hlo *h = j->h;
    if (users_there_before(&j->u, v, id))
        return true;
    OpId def = h->values.at[v].def;
    if (!def || def == id || depth == CHAIN_MAX || j->u.region[def] != j->u.region[id] || j->taken[def])
        return false;
    const HloOp *op = hlo_at(h, def);
    bool view = op->code == HLO_RESHAPE || op->code == HLO_DYNAMIC_SLICE || op->code == HLO_DRAW; // whoever reads draws makes them
    if (op_has_effect(h, op) || (op->nregions && op->code != HLO_ROWS))
        return false;
    for (uint32_t k = 0; k < op->nresults; k++)
        if (!view && hlo_value_type(h, op->results + k)->elems > LITTLE)
            return false;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (!may_be_before(j, hlo_operand(h, op, i), id, depth + 1))
            return false;
    return true;
}

// Which result of the first program an operand of the second is; -1: none.
static int64_t result_of(const Join *j, OpId first, ValueId operand) {
    ValueId v = before_reshapes(j->h, operand);
    return j->h->values.at[v].def == first ? (int64_t)(v - hlo_at(j->h, first)->results) : -1;
}

// The program goes on with the result as it was made: a row, or a number of each.
static bool goes_on(const Join *j, OpId first, uint32_t k, int64_t kind) {
    return kind == (hlo_value_type(j->h, rows_returned(j->h, first, k))->rank ? FUSED_SAME : FUSED_ROWS);
}

static bool fit_together(const Join *j, OpId first, OpId second) {
    const Hlo *h = j->h;
    const HloOp *a = hlo_at(h, first), *b = hlo_at(h, second);
    int64_t ra, ca, rb, cb;
    bool small = a->noperands + b->noperands <= OPERANDS_MAX && a->nresults + b->nresults <= RESULTS_MAX &&
                 hlo_op_region(h, a, 0)->ops.n + hlo_op_region(h, b, 0)->ops.n <= OPS_MAX;
    if (!small || !rows_shape(h, a, &ra, &ca) || !rows_shape(h, b, &rb, &cb) || ra != rb || ca != cb)
        return false;
    bool loops = j->u.region[first] != hlo_main(j->h)->body && (ra >= TILE || has_numbers(h, a) == has_numbers(h, b));
    if (!shares_rows(j, a, b, loops ? LOOP_MIN : SHARED_MIN))
        return false;
    for (uint32_t i = 0; i < b->noperands; i++) {
        int64_t k = result_of(j, first, hlo_operand(h, b, i));
        if (k >= 0 ? ca > LONG || ra <= TILE || !goes_on(j, first, (uint32_t)k, rows_kinds(b)[i]) : !may_be_before(j, before_reshapes(h, hlo_operand(h, b, i)), first, 0))
            return false;
    }
    return stands_alone(j, second);
}

// Somebody beside the second program reads it.
static bool others_read(const Join *j, ValueId v, OpId second) {
    for (Reader by = readers_of(&j->u, v); reader_next(&by);) {
        if (by.id != second && (by.op->code != HLO_RESHAPE || others_read(j, by.op->results, second)))
            return true;
    }
    return false;
}

static void join(Join *j, OpId first, OpId second) {
    Hlo *h = j->h;
    RowsMake m = {.c = j->c, .h = h, .once = true};
    RowsResults r = {0};
    OpId both[2] = {first, second};
    int64_t at[2][OPERANDS_MAX];
    for (int p = 0; p < 2; p++) {
        HloOp op = *hlo_at(h, both[p]);
        for (uint32_t i = 0; i < op.noperands; i++) {
            ValueId v = before_reshapes(h, hlo_operand(h, &op, i));
            at[p][i] = result_of(j, first, v) >= 0 ? -1 : (int64_t)rows_make_operand(&m, v, rows_kinds(&op)[i]);
        }
        for (uint32_t k = 0; k < op.nresults; k++)
            if (p || others_read(j, op.results + k, second))
                rows_make_result(&m, &r, rows_returned(h, both[p], k), op.results + k, h->values.at[op.results + k].type);
    }
    rows_make_begin(&m, hlo_at(h, second)->loc, hlo_int(hlo_at(h, first), AK_DIMENSION, 0), r.types.n, r.types.at);
    for (int p = 0; p < 2; p++) {
        for (uint32_t i = 0; i < hlo_at(h, both[p])->noperands; i++) {
            ValueId arg = hlo_op_region(h, hlo_at(h, both[p]), 0)->args + i;
            int64_t k = result_of(j, first, hlo_operand(h, hlo_at(h, both[p]), i));
            rows_make_set(&m, arg, k < 0 ? rows_make_arg(&m, (uint32_t)at[p][i]) : rows_make_get(&m, rows_returned(h, first, (uint32_t)k)));
        }
        rows_make_all(&m, both[p]);
    }
    rows_make_end(&m, &r, &j->w);
    j->instead[first] = m.op, j->instead[second] = second;
    j->taken[first] = j->taken[second] = true;
}

// Takes in the next program that fits.
static void look_down(Join *j, const OpList *ops, uint32_t from) {
    OpId first = ops->at[from];
    if (!stands_alone(j, first))
        return;
    for (uint32_t i = from + 1, products = 0; i < ops->n && products <= PRODUCTS_BETWEEN; i++) {
        const HloOp *op = hlo_at(j->h, ops->at[i]);
        products += op->code == HLO_DOT_GENERAL;
        if (op->code == HLO_ROWS && !j->taken[ops->at[i]] && fit_together(j, first, ops->at[i])) {
            join(j, first, ops->at[i]);
            return;
        }
    }
}

// The op, or what stands in its place, behind what that reads of the region.
static void put(Join *j, RegionId r, OpId id, OpList *out) {
    const Hlo *h = j->h;
    if (id >= j->nops || j->u.region[id] != r || j->there[id] || j->instead[id] == id)
        return;
    OpId to = j->instead[id] ? j->instead[id] : id;
    j->there[id] = true;
    for (uint32_t i = 0; i < hlo_at(h, to)->noperands; i++)
        if (h->values.at[hlo_operand(h, hlo_at(h, to), i)].def)
            put(j, r, h->values.at[hlo_operand(h, hlo_at(h, to), i)].def, out);
    VEC_PUSH(j->c->scratch, out, to);
}

static void join_region(void *pass, RegionId r) {
    Join *j = pass;
    OpList ops = {0}, out = {0};
    walk_list(j->c->scratch, j->h, r, &ops);
    for (uint32_t i = 0; i < ops.n; i++)
        if (hlo_at(j->h, ops.at[i])->code == HLO_ROWS && !j->taken[ops.at[i]])
            look_down(j, &ops, i);
    for (uint32_t i = 0; i < ops.n; i++)
        put(j, r, ops.at[i], &out);
    walk_set_ops(j->h, r, &out);
}

void pass_row_join(Compile *c) {
    for (int i = 0; i < ROUNDS; i++) {
        Join j = {.c = c, .h = c->hlo, .nops = c->hlo->ops.n};
        RegionId body = hlo_main(c->hlo)->body;
        walk_init(&j.w, c);
        users_make(&j.u, c->hlo, c->scratch, body);
        j.taken = ARENA_NEWN(c->scratch, bool, c->hlo->ops.n + 1);
        j.instead = ARENA_NEWN(c->scratch, OpId, c->hlo->ops.n + 1);
        j.there = ARENA_NEWN(c->scratch, bool, c->hlo->ops.n + 1);
        walk_regions(c->hlo, body, join_region, &j);
        if (c->hlo->ops.n == j.nops)
            return;
        walk_region(&j.w, body);
        pass_dce(c);
    }
}
