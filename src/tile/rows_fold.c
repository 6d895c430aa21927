// SPDX-License-Identifier: Apache-2.0
// rows_fold.c — which operations of a row program the instruction of their reader takes along.
//
// The scalar engine's functions take a scale and a bias, the vector engine two operations at once, and every engine rounds to the
// type it writes. What is folded has no slot and no instruction of its own; rows_inst.c makes the reader's of it.
#include <math.h>

#include "tile/rows.h"

static bool is_scalar_operand(const RowOp *r, uint32_t i) { // a number, or f32 once a partition
    const Node *n = rows_node(r, rows_narrow(r, i));
    return n->kind == NODE_CONST || (n->dtype == DT_F32 && (n->scalar || (!n->full && rows_single(r))));
}

static bool may_fold(const Node *n) {
    return n->kind == NODE_OP && n->full && n->uses == 1 && !n->is_output && n->dtype == DT_F32 && !n->folded;
}

static bool is_full_tensor(const RowOp *r, uint32_t i) {
    const Node *n = rows_node(r, rows_narrow(r, i));
    return n->full && n->kind != NODE_CONST;
}

// The inner operation is x op scalar or scalar op x.
static bool has_scalar(const RowOp *r, const Node *n) {
    if (rows_alu(n->code) == ALU_BYPASS || n->nsrc != 2)
        return false;
    return (is_full_tensor(r, n->src[0]) && is_scalar_operand(r, n->src[1])) ||
           (is_full_tensor(r, n->src[1]) && is_scalar_operand(r, n->src[0]));
}

// One operand of an instruction may lie there: what products leave for two of them is not taken along by one.
static bool reads_psum(const RowOp *r, const Node *n) {
    return rows_node(r, n->src[0])->psum || rows_node(r, n->src[1])->psum;
}

static bool has_folded(const RowOp *r, const Node *n) {
    for (uint32_t k = 0; k < n->nsrc; k++)
        if (rows_node(r, n->src[k])->folded)
            return true;
    return false;
}

bool rows_is_one_select(const RowOp *r, const Node *n) {
    const Node *p = rows_node(r, rows_narrow(r, n->src[0]));
    bool a = is_full_tensor(r, n->src[1]), b = is_full_tensor(r, n->src[2]);
    uint32_t one = a ? n->src[2] : n->src[1];
    return n->full && p->kind != NODE_CONST && p->full && a != b && is_scalar_operand(r, one);
}

bool rows_is_dropout(const RowOp *r, const Node *n) {
    if (n->kind != NODE_OP || n->code != HLO_SELECT || r->wedge || !dtype_is_float(n->dtype) || !rows_is_one_select(r, n))
        return false;
    const Node *flags = rows_node(r, n->src[0]);
    uint32_t x = is_full_tensor(r, n->src[1]) ? 1 : 2;
    const Node *other = rows_node(r, rows_narrow(r, n->src[3 - x]));
    return flags->draw && flags->dtype == DT_I1 && !flags->is_output && dtype_is_float(rows_node(r, rows_narrow(r, n->src[x]))->dtype) &&
           other->kind == NODE_CONST && other->value == 0 && !signbit(other->value);
}

// Flags that nobody else reads: the choice by them draws for itself.
static void fold_draws(RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        bool once = rows_node(r, i)->draw;
        for (uint32_t j = i + 1; j < r->nodes.n && once; j++)
            for (uint32_t k = 0; k < rows_node(r, j)->nsrc; k++)
                once = once && (rows_node(r, j)->src[k] != i || (k == 0 && rows_is_dropout(r, rows_node(r, j))));
        rows_node(r, i)->folded |= once;
    }
}

// x / a, with a computed by the run: its inverse is kept beside it.
static bool is_scaled_by_inverse(const RowOp *r, const Node *n) {
    return n->code == HLO_DIVIDE && rows_node(r, rows_narrow(r, n->src[1]))->kind != NODE_CONST;
}

static void fold_function(RowOp *r, Node *n) {
    Node *inner = rows_node(r, n->src[0]);
    bool old = r->e->chip->generation < 3;
    if (inner->kind == NODE_OP && inner->code == HLO_NEGATE && inner->full && inner->uses == 1 && !inner->is_output && !inner->folded) {
        inner->folded = !has_folded(r, inner); // exact in any type: a scale of -1
        return;
    }
    if (!may_fold(inner) || has_folded(r, inner) || inner->nsrc != 2 || !is_full_tensor(r, inner->src[0]) ||
        !is_scalar_operand(r, inner->src[1]))
        return;
    Node *by = rows_node(r, rows_narrow(r, inner->src[1]));
    bool number = by->kind == NODE_CONST;
    if (inner->code != HLO_MULTIPLY && inner->code != HLO_ADD && inner->code != HLO_SUBTRACT && !is_scaled_by_inverse(r, inner))
        return;
    if (old && (inner->code == HLO_ADD || inner->code == HLO_SUBTRACT) && number)
        return; // the bias is a vector there
    if (inner->code == HLO_SUBTRACT && !number)
        by->wants_negative = true;
    inner->folded = true;
    Node *scaled = rows_node(r, inner->src[0]);
    if ((inner->code == HLO_ADD || inner->code == HLO_SUBTRACT) && may_fold(scaled) && scaled->code == HLO_MULTIPLY && !has_folded(r, scaled) &&
        is_full_tensor(r, scaled->src[0]) && rows_node(r, rows_narrow(r, scaled->src[1]))->kind == NODE_CONST)
        scaled->folded = true;
}

// Of a quotient of tensors: the scale of what is divided, and what is added to the divisor.
static void fold_divide(RowOp *r, const Node *n) {
    if (!n->full || n->dtype != DT_F32 || n->src[0] == n->src[1] || !is_full_tensor(r, n->src[1]))
        return;
    for (uint32_t k = 0; k < 2; k++) {
        Node *inner = rows_node(r, n->src[k]);
        if (!may_fold(inner) || has_folded(r, inner) || inner->nsrc != 2 || !is_full_tensor(r, inner->src[0]) || !is_scalar_operand(r, inner->src[1]))
            continue;
        bool number = rows_node(r, rows_narrow(r, inner->src[1]))->kind == NODE_CONST;
        bool bias = k == 1 && inner->code == HLO_ADD && !(r->e->chip->generation < 3 && number); // a vector there
        inner->folded = bias || (k == 0 && (inner->code == HLO_MULTIPLY || is_scaled_by_inverse(r, inner)));
    }
}

// The operation before a conversion to a narrower type writes that type by itself: engines round as they write.
static void fold_narrowing(RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i);
        if (n->kind != NODE_OP || n->code != HLO_CONVERT || !n->full || n->dtype == DT_I1)
            continue;
        Node *from = rows_node(r, n->src[0]);
        bool plain = rows_alu(from->code) != ALU_BYPASS || rows_function(from->code) != ACT_COPY || from->code == HLO_NEGATE ||
                     from->code == HLO_CHLO_SQUARE || from->code == HLO_ABS ||
                     (from->code == HLO_SELECT && rows_is_one_select(r, from)) ||
                     (from->code == HLO_DIVIDE && rows_node(r, rows_narrow(r, from->src[1]))->kind != NODE_CONST);
        if (!may_fold(from) || !plain)
            continue;
        from->folded = from->gone = true; // nobody reads it any more
        n->code = from->code;
        n->op = from->op;
        n->nsrc = from->nsrc;
        for (uint32_t k = 0; k < from->nsrc; k++)
            n->src[k] = from->src[k];
        from->nsrc = 0;
    }
}

// A choice between numbers of a narrower type and one number of it rounds as it writes, so it reads what was to be rounded first.
static void fold_narrow_choice(RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i);
        if (n->kind != NODE_OP || n->code != HLO_SELECT || !rows_is_one_select(r, n))
            continue;
        uint32_t *chosen = &n->src[is_full_tensor(r, n->src[1]) ? 1 : 2];
        Node *from = rows_node(r, *chosen);
        if (from->kind != NODE_OP || from->code != HLO_CONVERT || from->uses != 1 || from->is_output || from->dtype != n->dtype ||
            rows_node(r, from->src[0])->dtype != DT_F32 || !rows_node(r, from->src[0])->full)
            continue;
        from->folded = from->gone = true;
        *chosen = from->src[0];
        from->nsrc = 0;
    }
}

void rows_fold(RowOp *r) {
    fold_narrowing(r);
    fold_narrow_choice(r);
    fold_draws(r);
    rows_fold_ints(r);
    for (uint32_t i = 0; i < r->nodes.n; i++) // functions first: they take scale and bias
        if (rows_node(r, i)->kind == NODE_OP && rows_node(r, i)->full && rows_function(rows_node(r, i)->code) != ACT_COPY)
            fold_function(r, rows_node(r, i));
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i);
        if (n->kind == NODE_OP && n->code == HLO_DIVIDE) {
            Node *by = rows_node(r, rows_narrow(r, n->src[1]));
            if (by->kind != NODE_CONST && (!by->full || by->scalar))
                by->wants_inverse = true;
            fold_divide(r, n);
        }
        if (n->kind != NODE_OP || !n->full)
            continue;
        if (n->folded)
            continue; // with what is behind it, which takes no third
        if (rows_alu(n->code) == ALU_BYPASS || n->nsrc != 2 || n->dtype == DT_I1)
            continue;
        for (uint32_t k = 0; k < 2; k++) {
            Node *inner = rows_node(r, n->src[k]);
            const uint32_t other = n->src[!k];
            if (!may_fold(inner) || !has_scalar(r, inner) || has_folded(r, inner) || n->src[0] == n->src[1] ||
                (rows_node(r, other)->psum && reads_psum(r, inner)) || !(is_full_tensor(r, other) || is_scalar_operand(r, other)))
                continue;
            inner->folded = true;
            break;
        }
    }
}

void rows_fold_sums(RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n && rows_single(r); i++) {
        const Node *n = rows_node(r, i);
        if (n->kind != NODE_REDUCE || (n->code != HLO_ADD && n->code != HLO_MAXIMUM))
            continue;
        Node *from = rows_node(r, n->src[0]);
        if (n->code == HLO_MAXIMUM) {
            if (from->kind == NODE_OP && from->code == HLO_SELECT && rows_is_one_select(r, from) && !rows_node(r, from->src[0])->folded && !from->summed)
                from->summed = i + 1;
            continue;
        }
        if (from->kind == NODE_OP && from->full && rows_function(from->code) != ACT_COPY && !from->summed)
            from->summed = i + 1;
    }
}
