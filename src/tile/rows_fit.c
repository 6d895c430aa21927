// SPDX-License-Identifier: Apache-2.0
// rows_fit.c — how a row program is cut to fit its part of SBUF: which values have a slot in a pass, which operands stay, how wide chunks are.
//
// Every full value has a slot from the instruction that makes it to the last that reads it; slots are given to the next one then. The widest cut
// that leaves room for several tiles in work is taken.
#include "tile/rows.h"

#include <assert.h>
#include <stdlib.h>

#include "base/draw.h"
#include "base/num.h"
#include "mach/cost.h"

#define WIDTH_MAX 4096
#define GROUP_WIDTH 1024
#define INT_CHUNKS 3 // at least, and their width
#define INT_WIDTH_MIN 256
#define INT_WIDTH_MAX 1024
#define INT_SETS 8
#define COUNT_NODES 64 // of longer programs gpsimd makes the numbers of elements: that is little of it

static uint32_t align(uint32_t v) { return (v + 63) & ~63u; }

// A full value that has memory of its own in the pass.
static bool has_slot(const Node *n) {
    return n->full && !n->folded && !n->resident && !n->psum && n->kind != NODE_CONST && n->kind != NODE_EXCHANGE && (n->kind != NODE_WIDEN || n->is_output);
}

bool rows_runs_in(const Node *n, const bool *need, uint32_t i, int pass) {
    if (pass < 0)
        return true;
    if (n->full)
        return need[i];
    return n->kind == NODE_REDUCE && n->level == (uint32_t)pass + 1;
}

// Full nodes that a pass computes: what its reductions read and, in the last one, what is stored. pass -1: everything.
bool *rows_needed(const RowOp *r, int pass) {
    bool *need = ARENA_NEWN(r->e->c->scratch, bool, r->nodes.n + 1);
    for (uint32_t i = r->nodes.n; i-- > 0;) {
        const Node *n = rows_node(r, i);
        bool last = pass < 0 || (uint32_t)pass == r->levels;
        if (n->full && n->is_output && last)
            need[i] = true;
        bool reads = n->full ? need[i] : n->kind == NODE_REDUCE && (pass < 0 || n->level == (uint32_t)pass + 1);
        for (uint32_t k = 0; reads && k < n->nsrc; k++)
            need[n->src[k]] = true;
        if (pass < 0)
            need[i] = true;
    }
    return need;
}

static void set_last(RowOp *r, uint32_t i, uint32_t reader) { // through what is folded or repeats a column
    Node *n = rows_node(r, i);
    n->last = reader > n->last ? reader : n->last;
    for (uint32_t k = 0; (n->folded || n->kind == NODE_WIDEN || n->kind == NODE_EXCHANGE) && k < n->nsrc; k++)
        set_last(r, n->src[k], reader);
}

// The node's instruction reads a row in another order than it writes one.
static bool reads_exchanged(const RowOp *r, const Node *n) {
    bool found = false;
    for (uint32_t k = 0; k < n->nsrc && r->half; k++) {
        const Node *from = rows_node(r, n->src[k]);
        found = found || from->kind == NODE_EXCHANGE || (from->folded && reads_exchanged(r, from));
    }
    return found;
}

// The operand whose slot the node's result may take over: it dies here and the instruction reads before it writes.
static int32_t slot_taken(const RowOp *r, const Node *n, uint32_t i) {
    if (n->kind != NODE_OP || reads_exchanged(r, n))
        return -1;
    for (uint32_t k = 0; k < n->nsrc; k++) {
        const Node *from = rows_node(r, n->src[k]);
        if (n->code == HLO_DIVIDE && k == 1 && from->folded) // y of x / (y + b)
            from = rows_node(r, from->src[0]);
        bool ok = n->code == HLO_SELECT ? k == 2 || (k == 1 && rows_is_dropout(r, n)) : n->code == HLO_CLAMP || n->code == HLO_DIVIDE ? k == 1 : true;
        if (n->code == HLO_DIVIDE && n->src[0] == n->src[1])
            ok = false;
        if (n->code == HLO_SELECT && (n->src[0] == n->src[2] || n->src[1] == n->src[2]))
            ok = false;
        if (n->code == HLO_CLAMP && (n->src[0] == n->src[1] || n->src[2] == n->src[1]))
            ok = false;
        if (ok && has_slot(from) && !rows_once(r, from) && from->slot >= 0 && from->last == i && from->dtype == n->dtype)
            return from->slot;
    }
    return -1;
}

// Gives every full value of a pass a slot; returns how many there are at a time.
uint32_t rows_lay_out(RowOp *r, const bool *need, int pass) {
    uint32_t n = r->nodes.n, count = 0;
    int32_t *owner = ARENA_NEWN(r->e->c->scratch, int32_t, n + 1); // slot -> node + 1
    assert(pass >= -1);
    assert(pass <= (int)r->levels);
    for (uint32_t i = 0; i < n; i++)
        rows_node(r, i)->last = i, rows_node(r, i)->slot = -1;
    for (uint32_t i = 0; i < n; i++)
        if (rows_runs_in(rows_node(r, i), need, i, pass) && !rows_node(r, i)->folded && rows_node(r, i)->kind != NODE_WIDEN && rows_node(r, i)->kind != NODE_EXCHANGE)
            for (uint32_t k = 0; k < rows_node(r, i)->nsrc; k++)
                set_last(r, rows_node(r, i)->src[k], i);
    for (uint32_t i = 0; i < n && r->keep_outputs; i++) // whoever took over the slot would wait for its store
        rows_node(r, i)->last = rows_node(r, i)->is_output || rows_node(r, i)->feeds ? n : rows_node(r, i)->last;
    for (uint32_t i = 0; i < n; i++) {
        Node *node = rows_node(r, i);
        if (!rows_runs_in(node, need, i, pass))
            continue;
        if (has_slot(node)) {
            int32_t slot = slot_taken(r, node, i);
            for (uint32_t s = 0; slot < 0; s++)
                if (s == count || !owner[s])
                    slot = (int32_t)s;
            owner[slot] = (int32_t)i + 1;
            node->slot = slot;
            if ((uint32_t)slot >= count)
                count = (uint32_t)slot + 1;
        }
        for (uint32_t s = 0; s < count; s++)
            if (owner[s] && rows_node(r, (uint32_t)owner[s] - 1)->last <= i)
                owner[s] = 0;
    }
    return count;
}

static uint32_t slots_for(RowOp *r, bool whole) {
    if (whole)
        return rows_lay_out(r, rows_needed(r, -1), -1);
    uint32_t most = 0;
    for (uint32_t p = 0; p <= r->levels; p++) {
        uint32_t n = rows_lay_out(r, rows_needed(r, (int)p), (int)p);
        most = n > most ? n : most;
    }
    return most;
}

// Rows in a partition: short rows side by side, as long as all partitions have work and the cut is even.
static bool may_lie_together(const RowOp *r, int64_t g) {
    bool fits = r->rows % g == 0;
    for (uint32_t i = 0; i < r->nodes.n && fits; i++) {
        const Node *n = rows_node(r, i);
        int64_t period = n->kind == NODE_INPUT && n->full ? rows_input_period(r, n) : 0;
        int64_t block = n->kind == NODE_INPUT && n->full ? rows_input_block(r, n) : 0;
        fits = (period <= 1 || period % g == 0) && block % g == 0 && !(n->is_output && (period || block));
    }
    return fits;
}

// What so many rows a partition cost that others do not: idle partitions, and loads of what repeats, one for each time it does.
static double together_ns(const RowOp *r, int64_t g) {
    int64_t rows = r->rows / g, parts = min64(rows, PARTITIONS), ops = 0, loads = 0;
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        ops += n->kind == NODE_OP && n->full;
        if (n->kind == NODE_INPUT && n->full && rows_input_period(r, n) > g)
            loads += ceil_div(parts * g, rows_input_period(r, n));
    }
    const ChipFile *c = r->e->chip;
    return (double)ceil_div(rows, PARTITIONS) * ((double)ops * cost_pass(c, ENG_VECTOR, (double)(g * r->cols)) + (double)loads * c->dma_issue_ns);
}

static int64_t rows_together(const RowOp *r) {
    int64_t best = 1, unit = r->nparts ? r->parts_unit : 1; // a sum over rows has so many as one
    for (int64_t g = max64(2, unit); (g == unit || g * r->cols <= GROUP_WIDTH) && (!r->group_most || g <= r->group_most); g += unit)
        if (may_lie_together(r, g) && (r->rows / g >= PARTITIONS || (!r->nparts && together_ns(r, g) < together_ns(r, best))))
            best = g;
    return best;
}

static RowNumber number_at(const RowOp *r, uint32_t node, uint32_t ref) {
    const Lower *l = r->e->l;
    BufId id = l->refs.at[ref];
    const TBuf *b = &l->bufs.at[id];
    uint64_t addr = emit_addr(r->e, id), at = b->kind == BUF_VIEW ? emit_addr(r->e, b->base) : addr;
    RowNumber n = {.node = node, .addr = addr, .base = addr_seg(at), .off = (int64_t)addr_off(at)};
    if (b->kind == BUF_VIEW)
        n.off += b->at.add, n.mul = b->at.mul, n.base |= (uint64_t)(b->at.loop + 1) << 32 | (uint64_t)b->apart << 63;
    return n;
}

static int by_place(const void *x, const void *y) {
    const RowNumber *a = x, *b = y;
    if (a->base != b->base)
        return a->base < b->base ? -1 : 1;
    return a->off != b->off ? (a->off < b->off ? -1 : 1) : a->node < b->node ? -1 : a->node > b->node;
}

static bool is_column(const Node *n) { return !n->full && !n->scalar && n->kind != NODE_CONST; }

static void find_numbers(RowOp *r) {
    const Hlo *h = r->e->l->h;
    const HloOp *ret = region_return(h, hlo_op_region(h, hlo_at(h, r->s->op), 0));
    r->takes = ARENA_NEWN(r->e->c->scratch, RowNumber, r->nodes.n + ret->noperands);
    r->ntakes = r->ngives = 0;
    for (uint32_t i = 0; i < r->nodes.n; i++)
        if (is_column(rows_node(r, i)) && rows_node(r, i)->kind == NODE_INPUT && rows_node(r, i)->input < r->s->nins) // none: a question
            r->takes[r->ntakes++] = number_at(r, i, r->s->ins + rows_node(r, i)->input);
    r->gives = r->takes + r->ntakes;
    for (uint32_t k = 0; k < ret->noperands; k++) {
        uint32_t i = r->e->row_node[hlo_operand(h, ret, k)];
        if (!rows_node(r, i)->full && k < r->s->nouts && r->e->l->refs.at[r->s->outs + k])
            r->gives[r->ngives++] = number_at(r, i, r->s->outs + k);
    }
    qsort(r->takes, r->ntakes, sizeof *r->takes, by_place);
    qsort(r->gives, r->ngives, sizeof *r->gives, by_place);
}

// Values per row of every node, each with room for its inverse, its negative and a part; then what is kept. Those that come from HBM, or go
// there, lie as they lie there.
static uint32_t place_columns(RowOp *r) {
    bool *placed = ARENA_NEWN(r->e->c->scratch, bool, r->nodes.n + 1);
    uint32_t at = 0, each = (uint32_t)r->group * 16;
    find_numbers(r);
    for (uint32_t k = 0; k < r->ntakes + r->ngives + r->nodes.n; k++) {
        uint32_t given = k - r->ntakes, i = k < r->ntakes ? r->takes[k].node : given < r->ngives ? r->gives[given].node : given - r->ngives;
        if (placed[i] || !is_column(rows_node(r, i)))
            continue;
        placed[i] = true;
        rows_node(r, i)->off = at;
        at += each + (rows_node(r, i)->kind == NODE_REDUCE ? 4 * r->parts : 0);
    }
    return align(at);
}

// Bytes of an operand that is the same for every row, kept for all tiles or for two of them.
uint32_t rows_resident_bytes(const RowOp *r, const Node *n) {
    int64_t cols = r->sliced ? 2 * EPILOGUE_COLS : r->cols;
    return (uint32_t)(cols * (int64_t)dtype_bytes(n->dtype));
}

static uint32_t place_kept(RowOp *r) {
    uint32_t at = r->area_at;
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i);
        if (n->draw) {
            n->state_at = at;
            at += align(4 * DRAW_WORDS);
        }
        if (n->kind != NODE_INPUT || (!n->scalar && !n->resident))
            continue;
        n->off = at;
        at += n->scalar ? 16 * (uint32_t)r->group : align(rows_resident_bytes(r, n));
    }
    for (uint32_t i = 0; i < r->nparts; i++) {
        r->parts_of[i].at = align(at);
        r->parts_of[i].joined = r->parts_of[i].at + (r->group > r->parts_unit ? align((uint32_t)(r->group * r->cols * 4)) : 0);
        at = r->parts_of[i].joined + align((uint32_t)(r->parts_unit * r->cols * 4));
    }
    return align(at);
}

static void choose_resident(RowOp *r, bool keep) { // operands that are the same for every row, when rows are whole
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i);
        if (n->kind != NODE_INPUT || !n->full)
            continue;
        uint64_t more = r->sliced ? rows_resident_bytes(r, n) : (uint64_t)r->cols * dtype_bytes(n->dtype);
        n->resident = keep && !n->psum && rows_input_period(r, n) == 1 && bytes + more <= r->area_bytes / 4;
        bytes += n->resident ? more : 0;
    }
}

// Bytes of an element in a slot: four, but an epilogue whose values are all narrower takes no more than they need.
static uint32_t slot_elem(const RowOp *r) {
    uint32_t most = r->epi ? 1 : 4;
    for (uint32_t i = 0; i < r->nodes.n && r->epi; i++)
        if (has_slot(rows_node(r, i)) && dtype_bytes(rows_node(r, i)->dtype) > most)
            most = (uint32_t)dtype_bytes(rows_node(r, i)->dtype);
    return most;
}

static bool has_ints(const RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++)
        if (rows_is_int(r, rows_node(r, i)))
            return true;
    return false;
}

// Numbers of elements are made once and moved on from tile to tile, by the scalar engine, as long as fp32 holds them.
static bool counts_from_one(const RowOp *r) {
    bool any = false;
    for (uint32_t i = 0; i < r->nodes.n && r->flat; i++)
        any = any || rows_node(r, i)->count;
    return any && r->nodes.n <= COUNT_NODES && r->e->chip->generation >= 3 && r->rows * r->cols <= 1 << 24;
}

static uint32_t sets_most(const RowOp *r) {
    if (r->flat && has_ints(r))
        return INT_SETS;
    for (uint32_t i = 0; i < r->nodes.n && r->block; i++)
        if (rows_node(r, i)->draw)
            return DRAWN_SETS;
    return r->batch ? DRAWN_SETS : ROW_SETS;
}

bool rows_try_width(RowOp *r, int64_t width, uint32_t least_sets) {
    assert(width > 0);
    assert(least_sets > 0);
    r->spare_at = place_kept(r);
    r->slots_at = r->spare_at + (r->levels ? align((uint32_t)width * 4) : 0);
    r->count_at = r->slots_at;
    if (counts_from_one(r))
        r->slots_at += align((uint32_t)width * 4);
    r->column_bytes = place_columns(r);
    r->columns_at = r->slots_at;
    r->set_head = r->forms ? 0 : r->column_bytes;
    if (r->forms)
        r->slots_at += r->column_sets * r->column_bytes;
    uint32_t end = r->area_at + r->area_bytes, room = end - r->slots_at;
    if (r->slots_at > end || width > 32768)
        return false;
    r->slot_bytes = align((uint32_t)(width * slot_elem(r)));
    uint64_t set = r->set_head + (uint64_t)r->nslots * r->slot_bytes;
    for (r->sets = sets_most(r); r->sets > least_sets && set * r->sets > room;)
        r->sets--;
    r->width = (uint32_t)width;
    if (!r->forms)
        r->column_sets = r->sets, r->column_pitch = (uint32_t)set;
    else
        r->column_pitch = r->column_bytes;
    assert(r->slot_bytes >= width * slot_elem(r));
    return set * r->sets <= room;
}

// Integers go to and fro between engines: several chunks keep them busy.
static int64_t widest(const RowOp *r) {
    int64_t part = (r->pcols / INT_CHUNKS + 63) / 64 * 64;
    return !has_ints(r) ? WIDTH_MAX : part < INT_WIDTH_MIN ? INT_WIDTH_MIN : part > INT_WIDTH_MAX ? INT_WIDTH_MAX : part;
}

void rows_lay_whole(RowOp *r, bool keep) {
    choose_resident(r, keep);
    r->nslots = slots_for(r, true);
}

// Chooses chunk width, slots and sets. Raises CAPACITY when even narrow chunks do not fit.
bool rows_fit(RowOp *r) {
    assert(r->rows > 0);
    assert(r->cols > 0);
    assert(r->area_at + r->area_bytes <= ISA_SBUF_BYTES);
    r->group = r->flat ? 1 : rows_together(r);
    rows_fold(r);
    bool flat = r->flat;
    int64_t whole = r->group * r->pcols;
    for (int keep = 1; keep >= 0 && !flat && (r->levels || whole <= widest(r)); keep--) {
        r->keep_outputs = keep;
        rows_lay_whole(r, true);
        if (rows_try_width(r, whole, keep ? 3 : 2) || (!keep && (r->levels || r->half) && rows_try_width(r, whole, 1))) {
            rows_fold_sums(r);
            return true;
        }
    }
    if (r->group > 1 || r->half)
        return false;
    choose_resident(r, false);
    for (int64_t width = widest(r); width >= 64; width -= 64) {
        r->keep_outputs = width >= 512;
        r->nslots = slots_for(r, false);
        if (rows_try_width(r, min64(width, r->pcols), has_ints(r) && width > INT_WIDTH_MIN ? 4 : 3) || (width <= (has_ints(r) ? INT_WIDTH_MIN : 1024) && rows_try_width(r, min64(width, r->pcols), 1)))
            return true;
    }
    return false;
}
