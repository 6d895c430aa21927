// SPDX-License-Identifier: Apache-2.0
// hoist.c — what is the same in every iteration of a loop is made once, before it; small pieces are converted all at once.
// needs: values defined before use; the first, that row programs and fused ops have what they take along (pass_row_programs, pass_fuse)
// gives: no op of a counted loop's body but constants, counts and single numbers has only operands from outside the loop
// stale: uses
//
//   for i: … b = broadcast(a); y = f(x[i], b)      ──►   b = broadcast(a); for i: … y = f(x[i], b)
//   for i: … y = f(convert(s[i]))                  ──►   t = convert(s); for i: … y = f(t[i])
//
// Bodies are given what costs nothing inside (pass/loops.c): a broadcast, for one, is part of the row program that reads it. What no program
// took along by now would be a step of every iteration, as tables of rotary positions are that heads read side by side.
#include "hlo/loop.h"
#include "hlo/query.h"
#include "mach/cost.h"
#include "pass/walk.h"

typedef struct Hoist {
    Compile *c;
    Hlo *h;
    Walk w;
    bool (*takes)(struct Hoist *p, OpId id, OpList *ops); // an op away from the body, whose ops so far these are
    // of the loop in hand:
    LoopCount count;
    ValueMap outside; // its constants, as they stand before it
    bool *inside;     // per value: the body has it of its own
    uint32_t nvalues; // that there were
} Hoist;

static bool is_single(const Hlo *h, const HloOp *op) {
    for (uint32_t k = 0; k < op->nresults; k++)
        if (hlo_value_type(h, op->results + k)->elems > 1)
            return false;
    return true;
}

static bool may_stand_outside(const Hlo *h, const HloOp *op) {
    bool plain = op->nresults && (!op->nregions || op->code == HLO_ROWS || op->code == HLO_FUSED) && op->code != HLO_CUSTOM_CALL &&
                 op->code != HLO_OPTIMIZATION_BARRIER && op->code != HLO_RNG;
    for (uint32_t k = 0; k < op->nresults && plain; k++)
        plain = hlo_is_plain(hlo_value_type(h, op->results + k));
    return plain && op->noperands && !is_single(h, op) && hlo_row(op)->cls != HC_CTRL && hlo_row(op)->cls != HC_COLL && !op_has_effect(h, op);
}

// What the op does reads a number of the body.
static bool captures(const Hlo *h, const HloOp *op, const bool *inside) {
    for (uint32_t k = 0; k < op->nregions; k++) {
        const HloRegion *r = hlo_op_region(h, op, k);
        for (uint32_t i = 0; i < r->ops.n; i++) {
            const HloOp *inner = hlo_at(h, r->ops.at[i]);
            for (uint32_t j = 0; j < inner->noperands; j++)
                if (inside[hlo_operand(h, inner, j)])
                    return true;
            if (captures(h, inner, inside))
                return true;
        }
    }
    return false;
}

static bool is_constant(const Hlo *h, ValueId v) {
    const HloOp *op = hlo_def(h, v);
    return op && op->code == HLO_CONSTANT;
}

// All operands are there before the loop, or constants, but not only splats: what they alone tell costs little, and masks are known by it.
static bool is_the_same(const Hlo *h, const HloOp *op, const bool *inside) {
    bool any = false;
    for (uint32_t k = 0; k < op->noperands; k++) {
        ValueId v = hlo_operand(h, op, k);
        if (inside[v] && !is_constant(h, v))
            return false;
        any = any || !splat_value(h, v);
    }
    return any && !captures(h, op, inside);
}

// The constant as it stands before the loop.
static ValueId constant_outside(Hoist *p, ValueId v) {
    ValueId there = value_map_get(&p->outside, v);
    if (there)
        return there;
    OpId made = value_map_copy(p->h, p->c->scratch, &p->outside, hlo_def(p->h, v));
    there = walk_push(&p->w, made);
    value_map_set(p->c->scratch, &p->outside, v, there);
    return there;
}

// Puts the op before the loop, or finds its like there, of another or of a loop before; its first result.
static ValueId push_before(Hoist *p, OpId id) {
    const HloOp *op = hlo_at(p->h, id);
    for (uint32_t i = 0; i < p->w.out.n && !op->nregions; i++)
        if (cse_equal(p->h, hlo_at(p->h, p->w.out.at[i]), op))
            return hlo_at(p->h, p->w.out.at[i])->results;
    return walk_push(&p->w, id);
}

static void hoist(Hoist *p, OpId id) {
    HloOp op = *hlo_at(p->h, id);
    for (uint32_t k = 0; k < op.noperands; k++) {
        ValueId v = hlo_operand(p->h, &op, k);
        if (p->inside[v])
            p->h->operands.at[op.operands + k] = constant_outside(p, v);
    }
    ValueId there = push_before(p, id);
    for (uint32_t k = 0; k < op.nresults && there != op.results; k++)
        walk_replace(&p->w, op.results + k, there + k);
}

static bool is_counted(const Hlo *h, OpId id, LoopCount *count) {
    return hlo_at(h, id)->code == HLO_WHILE && loop_count(h, hlo_at(h, id), count) && count->trips > 1;
}

// What the loop's body has of its own.
static bool *values_inside(Hoist *p, const HloRegion *body) {
    bool *inside = ARENA_NEWN(p->c->scratch, bool, p->h->values.n);
    for (uint32_t i = 0; i < body->nargs; i++)
        inside[body->args + i] = true;
    for (uint32_t i = 0; i < body->ops.n; i++) {
        const HloOp *op = hlo_at(p->h, body->ops.at[i]);
        for (uint32_t k = 0; k < op->nresults; k++)
            inside[op->results + k] = true;
    }
    return inside;
}

static void visit(void *pass, OpId id) {
    Hoist *p = pass;
    Hlo *h = p->h;
    if (is_counted(h, id, &p->count)) {
        RegionId body = h->op_regions.at[hlo_at(h, id)->regions + 1];
        const HloRegion was = h->regions.at[body];
        OpList ops = {0};
        p->inside = values_inside(p, &was), p->nvalues = h->values.n, p->outside = (ValueMap){0};
        for (uint32_t i = 0; i < was.ops.n; i++) {
            walk_operands(&p->w, was.ops.at[i]);
            if (!p->takes(p, was.ops.at[i], &ops))
                VEC_PUSH(p->c->scratch, &ops, was.ops.at[i]);
        }
        walk_set_ops(h, body, &ops);
        walk_region(&p->w, body);
    }
    walk_push(&p->w, id);
}

static void each_loop(Compile *c, bool (*takes)(Hoist *p, OpId id, OpList *ops)) {
    Hoist p = {.c = c, .h = c->hlo, .takes = takes};
    walk_init(&p.w, c);
    p.w.depth = WALK_CONTROL;
    walk_rewrite(&p.w, hlo_main(c->hlo)->body, visit, &p);
}

static bool takes_same(Hoist *p, OpId id, OpList *ops) {
    (void)ops;
    const HloOp *op = hlo_at(p->h, id);
    bool same = may_stand_outside(p->h, op) && is_the_same(p->h, op, p->inside);
    for (uint32_t k = 0; k < op->nresults; k++)
        p->inside[op->results + k] = !same;
    if (same)
        hoist(p, id);
    return same;
}

void pass_hoist(Compile *c) { each_loop(c, takes_same); }

// --- pieces that are converted -----------------------------------------------------------------------

// The slice of a tensor from outside the loop that a value is a reshape of; 0: it is none.
static OpId piece_of(const Hoist *p, ValueId v) {
    const HloOp *op = hlo_def_as(p->h, before_reshapes(p->h, v), HLO_DYNAMIC_SLICE);
    ValueId whole = op ? hlo_operand(p->h, op, 0) : 0;
    bool outside = whole < p->nvalues ? !p->inside[whole] : hlo_def_as(p->h, whole, HLO_CONVERT) != NULL; // of values made since, those converted whole
    return op && outside ? p->h->values.at[op->results].def : 0;
}

// A bias or a norm's scale: the transfers of all of them take less time than those of the pieces take to begin.
static bool is_quicker_whole(const Hoist *p, const HloOp *convert, ValueId whole) {
    const HloType *from = hlo_value_type(p->h, whole), *to = hlo_value_type(p->h, convert->results);
    double bytes = (double)from->elems * (double)(dtype_bytes(from->dtype) + dtype_bytes(to->dtype));
    return p->c->chip && hlo_is_plain(from) && hlo_is_plain(to) && cost_stream(p->c->chip, bytes) < (double)p->count.trips * cost_reach(p->c->chip);
}

// The piece of the converted whole, in the form that the converted piece had.
static ValueId converted_piece(Hoist *p, OpList *ops, const HloOp *convert, OpId slice) {
    Hlo *h = p->h;
    const HloOp piece = *hlo_at(h, slice);
    int to = hlo_value_type(h, convert->results)->dtype;
    ValueId operands[OTRN_MAX_RANK + 1], whole = hlo_operand(h, &piece, 0);
    TypeId type = hlo_type_as(h, h->values.at[whole].type, to);
    for (uint32_t k = 0; k < piece.noperands; k++)
        operands[k] = hlo_operand(h, &piece, k);
    operands[0] = push_before(p, hlo_op(h, HLO_CONVERT, convert->loc, 1, &whole, 1, &type));
    ValueId made = walk_push_to(&p->w, ops, hlo_op_like(h, &piece, operands, hlo_type_as(h, h->values.at[piece.results].type, to)));
    return walk_push_to(&p->w, ops, hlo_op(h, HLO_RESHAPE, convert->loc, 1, &made, 1, &h->values.at[convert->results].type));
}

static bool takes_piece(Hoist *p, OpId id, OpList *ops) {
    const HloOp op = *hlo_at(p->h, id);
    OpId slice = op.code == HLO_CONVERT ? piece_of(p, hlo_operand(p->h, &op, 0)) : 0;
    bool quicker = slice && is_quicker_whole(p, &op, hlo_operand(p->h, hlo_at(p->h, slice), 0));
    if (quicker)
        walk_replace(&p->w, op.results, converted_piece(p, ops, &op, slice));
    return quicker;
}

void pass_pieces(Compile *c) { each_loop(c, takes_piece); }
