// SPDX-License-Identifier: Apache-2.0
// rows_read.c — the region of a row program as nodes: a list in order, operands by number.
#include "tile/block.h"
#include "tile/lower.h"

static uint32_t node_of(const RowOp *r, ValueId v) { return r->e->row_node[v]; }

static uint32_t push_node(RowOp *r, const Node *n) {
    VEC_PUSH(r->e->c->scratch, &r->nodes, *n);
    r->nodes.at[r->nodes.n - 1].haz = ARENA_NEWN(r->e->c->scratch, Haz, PRO_COPIES > DRAWN_SETS ? PRO_COPIES : DRAWN_SETS);
    return r->nodes.n - 1;
}

static uint32_t add_node(RowOp *r, ValueId v, const Node *n) { return r->e->row_node[v] = push_node(r, n); }

static float constant_of(const Hlo *h, const HloOp *op) {
    const HloAttr *a = hlo_attr(op, AK_VALUE);
    int dtype = hlo_type(h, a->type)->dtype;
    if (dtype_is_int(dtype))
        return (float)dtype_to_i64(dtype, a->data);
    return dtype == DT_I1 ? *(const uint8_t *)a->data != 0 : (float)dtype_to_f64(dtype, a->data);
}

static bool is_returned(const RowOp *r, ValueId v) {
    const Hlo *h = r->e->l->h;
    const HloRegion *region = hlo_op_region(h, hlo_at(h, r->s->op), 0);
    const HloOp *ret = region_return(h, region);
    for (uint32_t i = 0; i < ret->noperands; i++)
        if (hlo_operand(h, ret, i) == v)
            return true;
    return false;
}

// A conversion to fp32 that readers do by themselves: engines widen what they read. Products leave fp32 in PSUM anyway.
static bool widens_for_readers(const RowOp *r, const HloOp *op, const HloType *t) {
    if (op->code != HLO_CONVERT || t->dtype != DT_F32)
        return false;
    const Node *from = rows_node(r, node_of(r, hlo_operand(r->e->l->h, op, 0)));
    return from->psum || (from->full && from->kind != NODE_CONST && from->kind != NODE_WIDEN &&
                          (from->dtype == DT_BF16 || from->dtype == DT_F16) && !is_returned(r, op->results));
}

// What is chosen between two tensors is copied as bits (put_select), so whoever chooses does not widen what it reads.
static uint32_t widened_choice(RowOp *r, const Node *n) {
    const Node *x = rows_node(r, n->src[1]);
    if (!x->full || x->kind == NODE_CONST || x->kind == NODE_WIDEN || x->dtype == n->dtype ||
        rows_node(r, rows_narrow(r, n->src[2]))->kind == NODE_CONST)
        return n->src[1];
    Node wide = {.kind = NODE_OP, .dtype = n->dtype, .full = true, .code = HLO_CONVERT, .op = n->op, .slot = -1,
                 .src = {n->src[1]}, .nsrc = 1, .uses = 1, .level = x->level};
    return push_node(r, &wide);
}

static void read_op(RowOp *r, OpId id) {
    const Hlo *h = r->e->l->h;
    const HloOp *op = hlo_at(h, id);
    const HloType *t = hlo_value_type(h, op->results);
    Node n = {.kind = NODE_OP, .dtype = t->dtype, .full = t->rank == 1, .code = op->code, .op = id, .slot = -1};
    if (op->code == HLO_CONSTANT) {
        n.kind = NODE_CONST;
        n.value = constant_of(h, op);
        n.number = dtype_is_int(t->dtype) ? (int32_t)dtype_to_i64(t->dtype, hlo_attr(op, AK_VALUE)->data) : 0;
        add_node(r, op->results, &n);
        return;
    }
    for (uint32_t k = 0; r->block && k < MASK_IDLE; k++)
        if (r->block->masked.idle[k] == id) { // zeros where zeros are
            r->e->row_node[op->results] = node_of(r, hlo_operand(h, op, 1));
            return;
        }
    if (widens_for_readers(r, op, t)) {
        r->e->row_node[op->results] = node_of(r, hlo_operand(h, op, 0));
        return;
    }
    n.nsrc = op->code == HLO_REDUCE ? 1 : op->noperands;
    for (uint32_t k = 0; k < n.nsrc; k++) {
        n.src[k] = node_of(r, hlo_operand(h, op, k));
        Node *from = rows_node(r, n.src[k]);
        from->uses++;
        if (!from->op) // an input's transfers count for who reads it first
            from->op = id;
        n.level = from->level > n.level ? from->level : n.level;
    }
    if (op->code == HLO_REDUCE) {
        n.kind = NODE_REDUCE;
        n.code = reduce_body(h, op);
        n.level++;
    }
    if (op->code == HLO_BROADCAST_IN_DIM)
        n.kind = NODE_WIDEN;
    if (op->code == HLO_EXCHANGE) {
        r->half = t->dims[0] / 2;
        n.kind = NODE_EXCHANGE;
        if (is_returned(r, op->results)) { // as a copy
            n.uses = 1;
            n.src[0] = push_node(r, &n);
            n.kind = NODE_OP, n.code = HLO_CONVERT, n.uses = 0;
        }
    }
    if (op->code == HLO_SELECT)
        n.src[1] = widened_choice(r, &n);
    if (n.level > r->levels)
        r->levels = n.level;
    add_node(r, op->results, &n);
}

// Whether more than one operand of the region's ops is the value, or it is returned.
static bool is_read_again(const RowOp *r, ValueId v) {
    const Hlo *h = r->e->l->h;
    const HloRegion *region = hlo_op_region(h, hlo_at(h, r->s->op), 0);
    uint32_t reads = 0;
    for (uint32_t i = 0; i < region->ops.n; i++) {
        const HloOp *op = hlo_at(h, region->ops.at[i]);
        for (uint32_t k = 0; k < op->noperands; k++)
            reads += hlo_operand(h, op, k) == v;
    }
    return reads > 1 || is_returned(r, v);
}

// A product's tile is read in PSUM where one instruction does so; else it is rounded to its type and copied first.
static void take_product(RowOp *r, ValueId v) {
    Node *tile = rows_node(r, node_of(r, v));
    int dtype = tile->dtype;
    tile->dtype = DT_F32;
    if (dtype == DT_F32 && !r->epi->keeps && !is_read_again(r, v))
        return;
    Node copy = {.kind = NODE_OP, .dtype = (uint8_t)dtype, .full = true, .code = HLO_CONVERT, .op = r->epi->dot, .slot = -1,
                 .src = {node_of(r, v)}, .nsrc = 1, .is_output = r->epi->keeps};
    tile->uses++;
    r->product = add_node(r, v, &copy);
}

// An operand that is read where it lies.
static void take_strided(RowOp *r, Node *in, ValueId v) {
    Strided s;
    if (!in->full || !lower_strided(r->e->l, v, &s))
        return;
    in->first = s.first, in->pitch = s.pitch;
    if (s.pitch && r->flat)
        r->rows = r->rows * r->cols / s.run, r->cols = s.run;
    assert(!s.pitch || r->cols == s.run);
    r->strided = r->strided || s.pitch;
    r->flat = r->flat && !r->strided;
}

void rows_read(RowOp *r) {
    const Hlo *h = r->e->l->h;
    const HloOp *op = hlo_at(h, r->s->op);
    const HloRegion *region = hlo_op_region(h, op, 0);
    uint32_t n;
    const int64_t *kinds = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    assert(op->code == HLO_ROWS);
    assert(n == op->noperands);
    assert(region->nargs == n);
    r->flat = !r->block && !r->epi && rows_is_flat(h, op);
    VEC_RESERVE(r->e->c->scratch, &r->nodes, n + region->ops.n);
    for (uint32_t i = 0; i < n; i++) {
        const HloType *t = hlo_value_type(h, hlo_operand(h, op, i));
        Node in = {.kind = NODE_INPUT, .dtype = t->dtype, .full = kinds[i] != FUSED_ROWS, .input = i, .slot = -1,
                   .scalar = kinds[i] == FUSED_ROWS && t->elems == 1,
                   .count = kinds[i] == FUSED_SAME && rows_is_count(h, hlo_operand(h, op, i)),
                   .draw = lower_is_drawn(r->e->l, hlo_operand(h, op, i)) ? rows_draw(h, hlo_operand(h, op, i)) : 0};
        for (uint32_t k = 0; r->block && k < r->block->npro; k++)
            if (r->block->pro[k].index == i) { // as the product left it, not rounded yet
                in.psum = true;
                in.dtype = DT_F32;
                in.off = r->block->pro[k].bank * PSUM_BANK_BYTES;
            }
        in.psum = in.psum || (r->epi && r->epi->index == i);
        if (!r->block && !r->epi)
            take_strided(r, &in, hlo_operand(h, op, i));
        add_node(r, region->args + i, &in);
        if (r->epi && r->epi->index == i)
            take_product(r, region->args + i);
    }
    for (uint32_t i = 0; i + 1 < region->ops.n; i++)
        read_op(r, region->ops.at[i]);
    const HloOp *ret = region_return(h, region);
    for (uint32_t i = 0; i < ret->noperands; i++)
        rows_node(r, node_of(r, hlo_operand(h, ret, i)))->is_output = true;
    for (uint32_t k = 0; r->block && k < r->block->nepi; k++)
        rows_node(r, node_of(r, hlo_operand(h, ret, r->block->epi[k].index)))->feeds = true;
}
