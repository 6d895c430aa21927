// SPDX-License-Identifier: Apache-2.0
// branches.c — in a branch of a select its condition is known: selects by the same condition, there alone, have been made.
// needs: values defined before use
// gives: no select by a condition in what only one branch of a select by the same condition reads
// stale: nothing (dce drops what became unused)
//
//   select(p, a, f(select(p, b, x)))  ──►  select(p, a, f(x))
//
// Programs guard a function against arguments its gradient cannot take so, once inside and once outside. Where p is one number for
// all, f may be anything without effects: optax' norms sum a tensor a second time for it. Else f goes element by element.
#include <string.h>

#include "pass/rules.h"

#define DEPTH_MAX 8

typedef struct Known {
    ValueId p;
    bool holds, one; // … in this branch; for all elements
} Known;

// Through reshapes and broadcasts, whose only element says the same.
static ValueId number_behind(const Hlo *h, ValueId v) {
    for (const HloOp *op = hlo_def(h, v); op && (op->code == HLO_RESHAPE || op->code == HLO_BROADCAST_IN_DIM); op = hlo_def(h, v)) {
        if (hlo_value_type(h, hlo_operand(h, op, 0))->elems != 1)
            break;
        v = hlo_operand(h, op, 0);
    }
    return v;
}

static bool same_number(const Hlo *h, ValueId a, ValueId b, int depth) {
    a = number_behind(h, a), b = number_behind(h, b);
    const HloOp *x = hlo_def(h, a), *y = hlo_def(h, b);
    const HloType *s = hlo_value_type(h, a), *t = hlo_value_type(h, b);
    if (a == b)
        return true;
    if (!x || !y || x->code != y->code || s->dtype != t->dtype || s->elems != 1 || t->elems != 1 || depth == DEPTH_MAX)
        return false;
    if (x->code == HLO_CONSTANT)
        return !memcmp(splat_value(h, a)->data, splat_value(h, b)->data, dtype_bytes(s->dtype));
    return x->code == HLO_COMPARE && hlo_int(x, AK_COMPARISON_DIRECTION, -1) == hlo_int(y, AK_COMPARISON_DIRECTION, -1) &&
           hlo_int(x, AK_COMPARE_TYPE, -1) == hlo_int(y, AK_COMPARE_TYPE, -1) &&
           same_number(h, hlo_operand(h, x, 0), hlo_operand(h, y, 0), depth + 1) && same_number(h, hlo_operand(h, x, 1), hlo_operand(h, y, 1), depth + 1);
}

static bool is_same(const Hlo *h, const Known *k, ValueId p) { return p == k->p || (k->one && same_number(h, p, k->p, 0)); }

static bool may_pass(const Hlo *h, const Known *k, const HloOp *op) {
    if (op->nresults != 1 || op_has_effect(h, op))
        return false;
    return hlo_is_elementwise(op) || (k->one && (op->code == HLO_RESHAPE || op->code == HLO_TRANSPOSE || op->code == HLO_BROADCAST_IN_DIM ||
                                      (op->code == HLO_REDUCE && op->noperands == 2 && reduce_body(h, op))));
}

static uint32_t reads_of(const Hlo *h, const HloOp *op, ValueId v) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->noperands; i++)
        n += hlo_operand(h, op, i) == v;
    return n;
}

static ValueId copy_with(Walk *w, const HloOp *op, const ValueId *operands) {
    Hlo *h = w->hlo;
    OpId made = hlo_op_like(h, op, operands, h->values.at[op->results].type);
    if (op->code == HLO_REDUCE)
        reduce_region_like(h, op, made, h->values.at[operands[1]].type);
    return walk_push(w, made);
}

// The value where the condition is known; itself where that changes nothing. `reader` alone reads it.
static ValueId in_branch(Walk *w, const Known *k, const HloOp *reader, ValueId v, int depth) {
    const Hlo *h = w->hlo;
    ValueId operands[3];
    if (walk_uses(w, v) != reads_of(h, reader, v) || depth == DEPTH_MAX || !hlo_def(h, v))
        return v;
    HloOp op = *hlo_def(h, v);
    if (op.code == HLO_SELECT && is_same(h, k, hlo_operand(h, &op, 0)))
        return hlo_operand(h, &op, k->holds ? 1 : 2);
    if (op.noperands > 3 || !may_pass(h, k, &op))
        return v;
    bool changed = false;
    for (uint32_t i = 0; i < op.noperands; i++) {
        operands[i] = i && hlo_operand(h, &op, i) == hlo_operand(h, &op, i - 1) ? operands[i - 1] : in_branch(w, k, &op, hlo_operand(h, &op, i), depth + 1);
        changed |= operands[i] != hlo_operand(h, &op, i);
    }
    return changed ? copy_with(w, &op, operands) : v;
}

static ValueId known_inside(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    ValueId in[3] = {hlo_operand(h, op, 0), hlo_operand(h, op, 1), hlo_operand(h, op, 2)};
    bool one = hlo_value_type(h, number_behind(h, in[0]))->elems == 1;
    for (int i = 1; i < 3; i++)
        in[i] = in_branch(w, &(Known){in[0], i == 1, one}, op, in[i], 0);
    if (in[1] == hlo_operand(h, op, 1) && in[2] == hlo_operand(h, op, 2))
        return 0;
    return walk_op(w, HLO_SELECT, 3, in, h->values.at[op->results].type);
}

const Rule branches_rules[] = {
    {"select(p, a, f(select(p, b, x))): select(p, a, f(x))", HLO_SELECT, RULE_EXACT, known_inside},
    {0},
};

void pass_branches(Compile *c) {
    Walk w;
    walk_init(&w, c);
    walk_note_uses(&w, 0);
    rules_walk(&w, branches_rules);
}
