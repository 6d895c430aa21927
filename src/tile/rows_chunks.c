// SPDX-License-Identifier: Apache-2.0
// rows_chunks.c — a row program between products whose rows are too long for PSUM, in chunks of columns.
//
//   pass 0   max of each chunk ──► their maximum                      a pass for each level of reductions: it makes the products'
//   pass 1   exp(chunk - max), its sum ──product──► … ──► / sum       tiles again, which costs the tensor engine less than
//                                                                     keeping them would cost the others
//
// A reduction has a place for each chunk, so that chunks wait for nothing of each other. A pass has forms of its own: what folds
// into one instruction depends on who reads it there. Where a mask is all true for a chunk, choices by it are gone.
#include <math.h>

#include "tile/block.h"

static RowForm *form_of(const RowOp *r, uint32_t pass, bool masked) { return &r->forms[2 * pass + masked]; }

// --- scales behind the product -----------------------------------------------------------------------

static bool is_const(const RowOp *r, uint32_t i) { return rows_node(r, rows_narrow(r, i))->kind == NODE_CONST; }
static bool is_zero(const RowOp *r, uint32_t i) { return is_const(r, i) && rows_node(r, rows_narrow(r, i))->value == 0; }

static bool is_number_per_row(const RowOp *r, uint32_t i) {
    const Node *n = rows_node(r, i);
    if (n->kind != NODE_WIDEN)
        return false;
    n = rows_node(r, n->src[0]);
    return !n->full && !n->scalar && n->kind != NODE_CONST && n->dtype == DT_F32;
}

// The operand through which the value is linear, as scaling its rows needs; none: nsrc.
static uint32_t linear_operand(const RowOp *r, const Node *n) {
    if (n->kind != NODE_OP || !n->full)
        return n->nsrc;
    if (n->code == HLO_CONVERT && (n->dtype == DT_BF16 || n->dtype == DT_F32))
        return 0;
    if ((n->code == HLO_MULTIPLY || n->code == HLO_DIVIDE) && is_const(r, n->src[1]))
        return 0;
    return n->code == HLO_SELECT && is_zero(r, n->src[2]) ? 1 : n->nsrc;
}

// Only products read the result, and each has its rows as rows of its own result.
static bool scales_behind(const Block *b, uint32_t result) {
    bool any = false;
    for (uint32_t i = 0; i < b->nepi; i++) {
        if (b->epi[i].index != result)
            continue;
        any = true;
        if (b->epi[i].over_rows || b->epi[i].turned || b->by_columns)
            return false;
    }
    return any;
}

static void set_levels(RowOp *r) {
    r->levels = 0;
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i);
        n->level = 0;
        for (uint32_t k = 0; k < n->nsrc; k++)
            n->level = rows_node(r, n->src[k])->level > n->level ? rows_node(r, n->src[k])->level : n->level;
        n->level += n->kind == NODE_REDUCE;
        r->levels = n->level > r->levels ? n->level : r->levels;
    }
}

// The node that stands for a result from now on.
static void returns(RowOp *r, ValueId v, uint32_t from, uint32_t to) {
    r->e->row_node[v] = to;
    rows_node(r, to)->is_output = rows_node(r, to)->feeds = true;
    rows_node(r, from)->gone = rows_node(r, from)->folded = true;
    rows_node(r, from)->is_output = rows_node(r, from)->feeds = false;
    rows_node(r, from)->nsrc = 0;
}

// (x / c) y = (x y) / c for numbers c per row: dividing the product's result is less work than dividing its operand.
static void defer(RowOp *r, ValueId v, uint32_t result) {
    uint32_t top = r->e->row_node[v], i = top, parent = UINT32_MAX, at = 0;
    while (rows_node(r, i)->uses == (i != top) && linear_operand(r, rows_node(r, i)) < rows_node(r, i)->nsrc) {
        parent = i, at = linear_operand(r, rows_node(r, i));
        i = rows_node(r, i)->src[at];
    }
    Node *n = rows_node(r, i);
    if (n->kind != NODE_OP || n->code != HLO_DIVIDE || n->uses != (i != top) || !is_number_per_row(r, n->src[1]) || !rows_node(r, n->src[0])->full ||
        rows_node(r, n->src[0])->kind != NODE_OP)
        return;
    uint32_t x = n->src[0], by = rows_node(r, n->src[1])->src[0];
    rows_node(r, by)->wants_inverse = true;
    for (uint32_t k = 0; k < r->block->nepi; k++)
        if (r->block->epi[k].index == result)
            r->block->epi[k].scale = by + 1;
    if (parent == UINT32_MAX) {
        rows_node(r, x)->uses--;
        returns(r, v, i, x);
        return;
    }
    rows_node(r, parent)->src[at] = x;
    n->gone = n->folded = true, n->nsrc = 0;
}

// exp(x), summed in fp32 and handed on in a narrower type: the instruction that sums it writes that type.
static void narrow_summed(RowOp *r, ValueId v) {
    uint32_t top = r->e->row_node[v];
    Node *n = rows_node(r, top);
    if (n->kind != NODE_OP || n->code != HLO_CONVERT || n->uses || n->dtype == DT_I1)
        return;
    uint32_t from = n->src[0], sum = 0;
    Node *f = rows_node(r, from);
    for (uint32_t i = 0; i < r->nodes.n; i++)
        if (rows_node(r, i)->kind == NODE_REDUCE && rows_node(r, i)->code == HLO_ADD && rows_node(r, i)->src[0] == from)
            sum = i + 1;
    if (f->kind != NODE_OP || f->code != HLO_EXPONENTIAL || !f->full || f->uses != 2 || f->is_output || !sum)
        return;
    f->dtype = n->dtype;
    f->uses = 1;
    returns(r, v, top, from);
}

// x / c is x times 1 / c on the engines (rows_inst.c), and as a product it folds into more.
static void multiply_by_inverses(RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i);
        if (n->kind != NODE_OP || n->code != HLO_DIVIDE || n->dtype != DT_F32 || !is_const(r, n->src[1]))
            continue;
        Node *by = rows_node(r, n->src[1]), *c = rows_node(r, rows_narrow(r, n->src[1]));
        if (by->uses != 1 || c->uses != 1 || by->is_output || c->is_output || !isnormal(c->value) || !isnormal(1 / c->value))
            continue;
        n->code = HLO_MULTIPLY, c->value = 1 / c->value;
    }
}

// The largest of x times a positive number is the largest x times that number, to the bit: rounding keeps the order.
static void scale_extremes(RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i), *from = n->kind == NODE_REDUCE ? rows_node(r, n->src[0]) : NULL;
        if (!from || n->code == HLO_ADD || from->kind != NODE_OP || from->code != HLO_MULTIPLY || from->dtype != DT_F32 ||
            n->dtype != DT_F32 || !is_const(r, from->src[1]) || !rows_node(r, from->src[0])->full)
            continue;
        float c = rows_node(r, rows_narrow(r, from->src[1]))->value;
        if (!isnormal(c) || c < 0)
            continue;
        n->value = c;
        n->src[0] = from->src[0];
        from->uses--, rows_node(r, n->src[0])->uses++;
    }
}

void rows_defer(RowOp *r) {
    const Hlo *h = r->e->l->h;
    const HloRegion *region = hlo_op_region(h, hlo_at(h, r->s->op), 0);
    const HloOp *ret = region_return(h, region);
    multiply_by_inverses(r);
    for (uint32_t i = 0; i < r->block->nepi; i++)
        r->block->epi[i].scale = 0;
    for (uint32_t k = 0; k < ret->noperands; k++) {
        ValueId v = hlo_operand(h, ret, k);
        bool once = true;
        for (uint32_t j = 0; j < ret->noperands; j++)
            once = once && (j == k || hlo_operand(h, ret, j) != v);
        if (!once || !scales_behind(r->block, k))
            continue;
        defer(r, v, k);
        narrow_summed(r, v);
    }
    scale_extremes(r);
    set_levels(r);
}

// --- forms -------------------------------------------------------------------------------------------

// The last pass: rows come out in it; where columns are the outer loop, reductions are over before.
static uint32_t last_pass(const RowOp *r) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        uint32_t at = n->kind == NODE_REDUCE ? n->level - !r->block->by_columns : n->full && n->is_output ? n->level : 0;
        last = at > last ? at : last;
    }
    return last;
}

// Readers of choices by the mask read what is chosen where it is true.
static void drop_choices(RowOp *r, uint32_t mask) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i);
        for (uint32_t k = 0; k < n->nsrc; k++) {
            const Node *from = rows_node(r, n->src[k]);
            while (from->kind == NODE_OP && from->code == HLO_SELECT && from->src[0] == mask && !from->is_output && rows_node(r, from->src[1])->full) {
                n->src[k] = from->src[1];
                from = rows_node(r, n->src[k]);
            }
        }
    }
}

static void count_uses(RowOp *r, const bool *need, uint32_t pass) {
    for (uint32_t i = 0; i < r->nodes.n; i++)
        rows_node(r, i)->uses = 0;
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        bool reads = n->full ? need[i] : n->kind != NODE_REDUCE || n->level == pass + 1;
        for (uint32_t k = 0; k < n->nsrc && reads; k++)
            rows_node(r, n->src[k])->uses++;
    }
}

static void make_form(RowOp *r, const Node *base, uint32_t pass, bool masked) {
    uint32_t n = r->nodes.n;
    r->nodes.at = arena_dup(r->e->c->scratch, base, n * sizeof *base);
    if (!masked)
        drop_choices(r, r->e->row_node[r->block->masked.mask]);
    scale_extremes(r);
    for (uint32_t i = 0; i < n && pass < r->levels; i++)
        if (rows_node(r, i)->full)
            rows_node(r, i)->is_output = rows_node(r, i)->feeds = false;
    const bool *need = rows_needed(r, (int)pass);
    count_uses(r, need, pass);
    for (uint32_t i = 0; i < n; i++)
        if (rows_node(r, i)->full && !need[i])
            rows_node(r, i)->kind = NODE_CONST, rows_node(r, i)->nsrc = 0; // nothing folds into it
    rows_fold(r);
    rows_fold_sums(r);
    need = rows_needed(r, (int)pass);
    uint32_t slots = rows_lay_out(r, need, (int)pass);
    r->nslots = slots > r->nslots ? slots : r->nslots;
    *form_of(r, pass, masked) = (RowForm){r->nodes.at, need, slots};
}

// What one form wants beside a number per row, all have.
static void join_wants(RowOp *r, uint32_t forms) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        bool inverse = false, negative = false;
        for (uint32_t k = 0; k < forms; k++)
            inverse |= r->forms[k].nodes[i].wants_inverse, negative |= r->forms[k].nodes[i].wants_negative;
        for (uint32_t k = 0; k < forms; k++)
            r->forms[k].nodes[i].wants_inverse = inverse, r->forms[k].nodes[i].wants_negative = negative;
        rows_node(r, i)->wants_inverse = inverse, rows_node(r, i)->wants_negative = negative;
    }
}

static void copy_places(RowOp *r, uint32_t forms) {
    for (uint32_t i = 0; i < r->nodes.n; i++)
        for (uint32_t k = 0; k < forms; k++)
            r->forms[k].nodes[i].off = rows_node(r, i)->off, r->forms[k].nodes[i].state_at = rows_node(r, i)->state_at;
}

bool rows_forms(RowOp *r) {
    const Block *b = r->block;
    Arena *a = r->e->c->scratch;
    uint32_t tiles = (uint32_t)((b->part + 127) / 128);
    assert(b->width > 0);
    assert(b->width <= b->n);
    r->levels = last_pass(r);
    r->column_sets = b->by_columns ? tiles : r->levels + 2 > ROW_SETS ? r->levels + 2 : ROW_SETS;
    r->parts = (uint32_t)((b->n + b->width - 1) / b->width);
    for (uint32_t i = 0; i < r->nodes.n; i++)
        if (r->column_sets > ROW_SETS && !rows_node(r, i)->full && !rows_node(r, i)->scalar)
            rows_node(r, i)->haz = ARENA_NEWN(a, Haz, r->column_sets);
    uint32_t forms = 2 * (r->levels + 1);
    r->forms = ARENA_NEWN(a, RowForm, forms);
    Node *base = r->nodes.at;
    for (uint32_t k = 0; k < forms; k++)
        make_form(r, base, k / 2, k % 2 || !b->masked.mask);
    for (uint32_t k = 0; k < forms && !b->masked.mask; k += 2)
        r->forms[k] = r->forms[k + 1];
    r->nodes.at = base;
    join_wants(r, forms);
    bool fits = rows_try_width(r, b->width, 2);
    copy_places(r, forms);
    return fits;
}

// --- passes ------------------------------------------------------------------------------------------

void rows_pass_begin(RowOp *r, uint32_t pass, int64_t p0, uint32_t m) {
    assert(pass <= r->levels);
    assert(m > 0);
    assert(m <= 128);
    r->m = m;
    r->nodes.at = form_of(r, pass, true)->nodes;
    rows_emit_columns(r, pass, p0);
}

bool rows_chunk(RowOp *r, uint32_t pass, bool masked, int64_t p0, int64_t c0, uint32_t n) {
    assert(pass <= r->levels);
    assert(n > 0);
    assert(n <= r->width);
    RowForm *f = form_of(r, pass, masked);
    r->nodes.at = f->nodes, r->w = n;
    for (uint32_t i = 0; i < r->nodes.n; i++)
        rows_node(r, i)->made = false;
    rows_emit_chunk(r, f->need, (int)pass, p0, c0);
    return f->slots > 0;
}

void rows_pass_end(RowOp *r, uint32_t pass) {
    r->nodes.at = form_of(r, pass, true)->nodes;
    for (uint32_t i = 0; i < r->nodes.n; i++)
        if (rows_node(r, i)->kind == NODE_REDUCE && rows_node(r, i)->level == pass + 1)
            rows_join_parts(r, i);
}

void rows_tile_end(RowOp *r, int64_t p0) {
    rows_emit_columns(r, r->levels + 1, p0);
    rows_store_columns(r, p0);
}
