// SPDX-License-Identifier: Apache-2.0
// rows.c — a row program as a loop over tiles of 128 partitions: transfers in, engine instructions, transfers out.
//
//   SBUF above what products use:  | kept for all tiles | set 0: columns, slots | set 1 | … |
//
// A partition holds one row or, when rows are short, several. Rows are worked on whole when all that lives at a time
// fits twice; else in chunks of columns. With reductions that takes a pass over the chunks for each of their levels:
// a pass computes again what it needs, loads included, and only numbers per row stay. Results are stored in the last
// pass, so a result may lie on an operand of the same shape. A program without rows or columns is cut into 128 long
// ones. Sets take turns, so that the transfers of a tile run beside the work on others. The cut does not depend on the
// chip: every target computes the same bits.
#include "tile/block.h"
#include "tile/area.h"

#include <assert.h>
#include <string.h>

#include "base/draw.h"
#include "mach/cost.h"

#define CUT_COLS_MIN 8 // of a row cut for more partitions

// --- memory ------------------------------------------------------------------------------------------------

static uint32_t slot_at(const RowOp *r, uint32_t set, uint32_t slot) {
    return r->slots_at + set * (r->set_head + r->nslots * r->slot_bytes) + r->set_head + slot * r->slot_bytes;
}

uint64_t rows_place(const RowOp *r, uint32_t i) {
    const Node *n = rows_node(r, i);
    if (n->psum)
        return addr_psum(0, r->epi ? r->psum_at : n->off + r->pro_copy * r->pro_bytes);
    if (n->scalar)
        return addr_sbuf(0, n->off);
    if (n->resident)
        return addr_sbuf(0, n->off + (uint32_t)((r->slice * EPILOGUE_COLS + r->col0) * dtype_bytes(n->dtype)));
    if (!n->full)
        return addr_sbuf(0, r->columns_at + r->column_set * r->column_pitch + n->off);
    assert(n->slot >= 0);
    return addr_sbuf(0, slot_at(r, r->set, (uint32_t)n->slot));
}

Haz *rows_haz(RowOp *r, uint32_t i) {
    Node *n = rows_node(r, i);
    if (n->psum)
        return r->epi ? r->psum_haz : &n->haz[r->pro_copy];
    if (n->scalar || n->resident)
        return &n->haz[n->resident ? r->slice : 0];
    return n->full ? &r->slots[r->set * r->nslots + (uint32_t)n->slot] : &n->haz[r->column_set];
}

// What earlier programs still do with the area comes in, and goes out again at the end.
static void share_area(RowOp *r, bool out) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i);
        uint32_t kept = n->scalar ? 16 * (uint32_t)r->group : n->resident ? rows_resident_bytes(r, n) : 0, parts = n->resident && r->sliced ? 2 : 1;
        for (uint32_t k = 0; n->kind == NODE_INPUT && kept && k < parts; k++)
            emit_area(r->e, &n->haz[k], n->off + k * kept / parts, kept / parts, out);
        if (n->draw)
            emit_area(r->e, &n->haz[0], n->state_at, 4 * DRAW_WORDS, out);
        bool column = !n->full && !n->scalar && n->kind != NODE_CONST;
        uint32_t bytes = 16 * (uint32_t)r->group + (n->kind == NODE_REDUCE ? 4 * r->parts : 0);
        for (r->column_set = 0; r->column_set < r->column_sets && column; r->column_set++)
            emit_area(r->e, &n->haz[r->column_set], addr_poff(rows_place(r, i)), bytes, out);
    }
    for (uint32_t i = 0; i < r->nparts; i++)
        emit_area(r->e, &r->parts_of[i].haz, r->parts_of[i].at, r->parts_of[i].joined - r->parts_of[i].at + 4 * (uint32_t)(r->parts_unit * r->cols), out);
    if (r->levels)
        emit_area(r->e, &r->spare, r->spare_at, r->count_at - r->spare_at, out);
    if (r->columns_at > r->count_at)
        emit_area(r->e, &r->count_haz, r->count_at, r->columns_at - r->count_at, out);
    for (uint32_t set = 0; set < r->sets; set++)
        for (uint32_t k = 0; k < r->nslots; k++)
            emit_area(r->e, &r->slots[set * r->nslots + k], slot_at(r, set, k), r->slot_bytes, out);
    r->set = r->column_set = 0;
}

void rows_loc(RowOp *r, uint32_t node) { emit_loc(r->e, rows_node(r, node)->op ? rows_node(r, node)->op : r->s->op); }

// What gpsimd and the vector engine both do (draws, sums of tensors) is for the one with less to do.
static uint8_t either_engine(const RowOp *r, IsaInst in) {
    double done[2];
    for (int k = 0; k < 2; k++) {
        in.engine = k ? ENG_GPSIMD : ENG_VECTOR;
        done[k] = r->busy[in.engine] + cost_inst(r->e->chip, NULL, &in);
    }
    return done[1] < done[0] && !r->e->chip->vector_gpsimd_port ? ENG_GPSIMD : ENG_VECTOR;
}

// --- transfers ---------------------------------------------------------------------------------------------

// Queues take turns; behind a product also those that have no other work then.
static uint8_t queue_for(RowOp *r, bool out) {
    static const uint8_t queues[2][4] = {{QUEUE_ROWS_IN, QUEUE_ROWS_IN2, QUEUE_IN2, QUEUE_CAST}, {QUEUE_ROWS_OUT, QUEUE_ROWS_OUT2, QUEUE_OUT, QUEUE_COPY}};
    return queues[out][r->transfers++ % (r->epi ? 4 : 2)];
}

// A tile's rows in HBM and in SBUF: runs of elements on each of `parts` partitions.
typedef struct Rows {
    View hbm, sbuf;
} Rows;

static Rows rows_of(RowOp *r, uint32_t i, uint32_t part, uint64_t hbm, int64_t stride, int64_t parts, int64_t n) {
    const Node *node = rows_node(r, i);
    int64_t runs = 1, cols = n, far = 0;
    if (node->pitch && r->group > 1)
        runs = r->group, cols = r->cols, far = node->pitch;
    if (r->tiles > 1 && !node->resident) // those of several tiles lie 128 rows apart in HBM
        runs = r->tiles, cols = r->w / r->tiles, far = PARTITIONS * r->cols;
    if (r->batch && node->full && !node->resident && !rows_once(r, node))
        runs = r->group, cols = r->cols, far = r->batch * r->cols;
    if (r->wedge && node->full) // rows of several batches side by side in a partition
        runs = r->wedge_parts, cols = r->w / r->wedge_parts, far = r->wedge->m * r->wedge->n, stride = r->wedge->n;
    Mem near = mem_part((Mem){.addr = rows_place(r, i), .haz = rows_haz(r, i)}, part);
    return (Rows){VIEW(mem_hbm(hbm), node->dtype, {parts, stride}, {runs, far}, {cols, 1}), VIEW(near, node->dtype, {parts}, {runs, cols}, {cols, 1})};
}

static void load(RowOp *r, uint32_t i, uint32_t part, int64_t from, int64_t stride, uint32_t parts, uint32_t n) {
    const Node *node = rows_node(r, i);
    uint64_t at = emit_addr(r->e, r->e->l->refs.at[r->s->ins + node->input]) + (uint64_t)from * dtype_bytes(node->dtype);
    int queue = queue_for(r, false);
    rows_loc(r, i);
    Rows rows = rows_of(r, i, part, at, stride, parts, rows_once(r, node) ? r->w / r->group : n);
    put_dma(r->e, queue, rows.sbuf, rows.hbm);
}

// An instruction that makes something of the number of each element, as they lie in HBM.
static IsaInst numbered(RowOp *r, uint32_t i, int op, uint64_t dst, int64_t from, int64_t stride) {
    Rows rows = rows_of(r, i, 0, 0, stride, r->m, r->w);
    IsaInst in = {.op = (uint8_t)op, .engine = ENG_GPSIMD, .dst = dst, .dtype = rows_node(r, i)->dtype, .imm = (int32_t)from};
    for (int k = 0; k < rows.hbm.rank; k++)
        in.n[k] = (uint32_t)rows.hbm.at[k].n, in.t[k] = (int32_t)rows.hbm.at[k].stride, in.d[k] = (int32_t)rows.sbuf.at[k].stride;
    return in;
}

// The numbers of the elements, instead of loading them.
static void load_count(RowOp *r, uint32_t i, int64_t from, int64_t stride) {
    int dtype = rows_node(r, i)->dtype;
    if (r->columns_at == r->count_at) {
        rows_put(r, numbered(r, i, ISA_IOTA, rows_place(r, i), from, stride), NULL, 0, rows_haz(r, i));
        return;
    }
    uint32_t parts = r->wedge ? r->wedge_parts : 1;
    if (r->count_of[0] != r->m || r->count_of[1] != r->w || r->count_of[2] != parts)
        rows_put(r, numbered(r, i, ISA_IOTA, addr_sbuf(0, r->count_at), 0, stride), NULL, 0, &r->count_haz);
    r->count_of[0] = r->m, r->count_of[1] = r->w, r->count_of[2] = parts;
    IsaInst in = {.op = ISA_ACTIVATE, .engine = ENG_SCALAR, .fn = ACT_IDENTITY, .dst = rows_place(r, i), .dtype = (uint8_t)dtype,
                  .src = addr_sbuf(0, r->count_at), .stype = (uint8_t)dtype, .b = scalar_f32((float)from)};
    in.n[0] = r->m, in.n[1] = r->w;
    in.d[1] = in.s[1] = 1;
    rows_put(r, in, (Haz *[]){&r->count_haz}, 1, rows_haz(r, i));
}

// --- draws -------------------------------------------------------------------------------------------------

static void load_state(RowOp *r, uint32_t i) {
    Node *n = rows_node(r, i);
    rows_loc(r, i);
    Mem state = {.addr = addr_sbuf(0, n->state_at), .haz = &n->haz[0]};
    put_dma(r->e, queue_for(r, false), VIEW(state, DT_UI32, {PARTITIONS}, {DRAW_WORDS, 1}),
            VIEW(mem_hbm(emit_addr(r->e, r->e->l->refs.at[r->s->ins + n->input])), DT_UI32, {PARTITIONS, 0}, {DRAW_WORDS, 1}));
}

void rows_draw_by(const RowOp *r, IsaInst *in, const Node *n, bool chosen) {
    const HloOp *draw = hlo_at(r->e->l->h, n->draw);
    assert(n->dtype == DT_I1);
    in->op0 = (hlo_int(draw, AK_COMPARISON_DIRECTION, CMP_LT) == CMP_LT) == chosen ? ALU_LT : ALU_GE;
    in->value = (int32_t)hlo_int(draw, AK_BOUND, 0);
}

static void make_draws(RowOp *r, uint32_t i, int64_t from, int64_t stride) {
    Node *n = rows_node(r, i);
    IsaInst in = numbered(r, i, ISA_RNG_AT, rows_place(r, i), from, stride);
    in.src = addr_sbuf(0, n->state_at), in.stype = DT_UI32;
    if (n->dtype == DT_I1)
        rows_draw_by(r, &in, n, true);
    in.engine = either_engine(r, in);
    rows_put(r, in, (Haz *[]){&n->haz[0]}, 1, rows_haz(r, i));
}

// Of the chunk; where rows mean nothing a chunk is one run of elements for all partitions together.
static int64_t first_element(const RowOp *r, int64_t p0, int64_t c0) {
    if (r->wedge)
        return r->wedge_at;
    return r->flat ? r->base + c0 * r->m : r->base + p0 * rows_stride(r) + c0;
}

// Of batches side by side: what repeats does so for each of them, or not before the last (block.c).
static void load_batches(RowOp *r, uint32_t i, int64_t row, int64_t period, int64_t block) {
    int64_t from = block ? row / block : rows_once(r, rows_node(r, i)) ? 0 : row % period;
    load(r, i, 0, from * r->pcols, block || period == 1 ? 0 : r->pcols, r->m, r->w);
}

// A row of the operand for each block of rows; blocks are no shorter than a partition's rows.
static void load_blocks(RowOp *r, uint32_t i, int64_t p0, int64_t c0, int64_t block) {
    block /= r->group; // in partition rows
    for (uint32_t done = 0; done < r->m;) {
        int64_t row = p0 + done, n_run = min64(block - row % block, (int64_t)r->m - done);
        load(r, i, done, row / block * r->pcols + c0, 0, (uint32_t)n_run, r->w);
        done += (uint32_t)n_run;
    }
}

static void load_full(RowOp *r, uint32_t i, int64_t p0, int64_t c0) {
    const Node *n = rows_node(r, i);
    int64_t per = rows_stride(r), period = rows_input_period(r, n), block = rows_input_block(r, n);
    rows_loc(r, i);
    if (r->batch && (period || block)) {
        load_batches(r, i, p0, period, block);
        return;
    }
    if (block) {
        load_blocks(r, i, p0, c0, block);
        return;
    }
    if (n->draw) {
        make_draws(r, i, first_element(r, p0, c0), per);
        return;
    }
    if (n->count) {
        load_count(r, i, first_element(r, p0, c0), per);
        return;
    }
    if (n->pitch) {
        load(r, i, 0, n->first + (r->base / r->cols + p0 * r->group) * n->pitch + c0, r->group * n->pitch, r->m, r->w);
        return;
    }
    if (!period) {
        load(r, i, 0, n->first + first_element(r, p0, c0), per, r->m, r->w);
        return;
    }
    if (period == 1 || period == r->group) {
        load(r, i, 0, c0, 0, r->m, r->w);
        return;
    }
    period /= r->group; // in partition rows
    for (uint32_t done = 0; done < r->m;) {
        int64_t at = (p0 + done) % period, n_run = min64(period - at, (int64_t)r->m - done);
        load(r, i, done, at * per + c0, per, (uint32_t)n_run, r->w);
        done += (uint32_t)n_run;
    }
}

static void store(RowOp *r, uint32_t i, uint32_t result, int64_t to, int64_t stride, uint32_t n) {
    uint64_t at = emit_addr(r->e, r->e->l->refs.at[r->s->outs + result]) + (uint64_t)to * dtype_bytes(rows_node(r, i)->dtype);
    int queue = queue_for(r, true);
    rows_loc(r, i);
    Rows rows = rows_of(r, i, 0, at, stride, r->m, n);
    put_dma(r->e, queue, rows.hbm, rows.sbuf);
}

// --- numbers per row ---------------------------------------------------------------------------------

// A queue begins a transfer now and then only, so those of numbers are few: one for all that lie equally far apart, in HBM and in SBUF
// (place_columns), which are most often all that a program takes or gives.
static void move_joined(RowOp *r, const RowNumber *a, uint32_t n, int64_t p0, bool out) {
    const Node *node = rows_node(r, a->node);
    int64_t size = (int64_t)dtype_bytes(node->dtype), far = n > 1 ? (a[1].off - a->off) / size : 1;
    int64_t near = n > 1 ? ((int64_t)rows_place(r, a[1].node) - (int64_t)rows_place(r, a->node)) / size : 1;
    int queue = queue_for(r, out);
    Haz *haz[NUMBERS_MOST];
    assert(n <= NUMBERS_MOST && NUMBERS_MOST <= REC_READS && NUMBERS_MOST <= REC_WRITES);
    for (uint32_t i = 0; i < n; i++)
        haz[i] = rows_haz(r, a[i].node);
    int64_t step = r->batch ? 1 : r->group; // rows from a partition to the next
    View there = VIEW(mem_hbm(a->addr + (uint64_t)(p0 * step * size)), node->dtype, {r->m, step}, {n, far}, {r->group, r->batch ? r->batch : 1});
    View here = VIEW((Mem){.addr = rows_place(r, a->node)}, node->dtype, {r->m}, {n, near}, {r->group, 1});
    rows_loc(r, a->node);
    emit_inst(r->e, isa_dma(ENG_SYNC, queue, out ? there : here, out ? here : there), out ? haz : NULL, out ? n : 0, out ? NULL : haz, out ? 0 : n);
}

// From one to the next, in HBM and in SBUF.
static bool is_as_far(const RowOp *r, const RowNumber *a, const RowNumber *b) {
    return a[1].off - a->off == b[1].off - b->off &&
           rows_place(r, a[1].node) - rows_place(r, a->node) == rows_place(r, b[1].node) - rows_place(r, b->node);
}

static bool may_join(const RowOp *r, const RowNumber *a, const RowNumber *b) {
    int64_t size = (int64_t)dtype_bytes(rows_node(r, a->node)->dtype), far = b->off - a->off;
    return rows_node(r, a->node)->dtype == rows_node(r, b->node)->dtype && a->base == b->base && a->mul == b->mul && far % size == 0 &&
           far >= r->rows * size && far / size <= INT32_MAX;
}

static void move_numbers(RowOp *r, const RowNumber *a, uint32_t n, int64_t p0, bool out) {
    for (uint32_t i = 0, k; i < n; i += k) {
        for (k = 1; i + k < n && k < NUMBERS_MOST && may_join(r, a + i + k - 1, a + i + k) && is_as_far(r, a + i, a + i + k - 1);)
            k++;
        move_joined(r, a + i, k, p0, out);
    }
}

// The first of the nodes, or the last.
static uint32_t end_of(const RowNumber *a, uint32_t n, bool last) {
    uint32_t end = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        end = end == UINT32_MAX || (a[i].node > end) == last ? a[i].node : end;
    return end;
}

void rows_store_columns(RowOp *r, int64_t p0) { move_numbers(r, r->gives, r->ngives, p0, true); }

static void store_outputs(RowOp *r, uint32_t node, int64_t p0, int64_t c0) {
    const Hlo *h = r->e->l->h;
    const HloRegion *region = hlo_op_region(h, hlo_at(h, r->s->op), 0);
    const HloOp *ret = region_return(h, region);
    int64_t per = rows_stride(r);
    if (r->epi && r->epi->keeps && node == r->product)
        store(r, node, ret->noperands, first_element(r, p0, c0), per, r->w);
    for (uint32_t k = 0; k < ret->noperands; k++) {
        if (r->e->row_node[hlo_operand(h, ret, k)] != node || r->s->nouts <= k || !r->e->l->refs.at[r->s->outs + k])
            continue; // not its result, or one that stays on the chip
        store(r, node, k, first_element(r, p0, c0), per, r->w);
    }
}

// --- sums over rows (rows_sums.c) ----------------------------------------------------------------------

static View parts_view(RowParts *p, uint32_t m, int64_t c0, int64_t n) {
    return VIEW(((Mem){.addr = addr_sbuf(0, p->at + (uint32_t)c0 * 4), .haz = &p->haz}), DT_F32, {m}, {n, 1});
}

// The chunk's rows, each on what its partition has.
static void add_parts(RowOp *r, uint32_t node, int64_t c0) {
    for (uint32_t i = 0; i < r->nparts; i++) {
        if (r->parts_of[i].node != node)
            continue;
        Mem from = {.addr = rows_place(r, node), .haz = rows_haz(r, node)};
        View x = VIEW(from, rows_node(r, node)->dtype, {r->m}, {r->w, 1}), sum = parts_view(&r->parts_of[i], r->m, c0, r->w);
        IsaInst in = r->parts_begin ? isa_tensor_copy(ENG_VECTOR, sum, x) : isa_tensor_tensor(ENG_VECTOR, sum, sum, ALU_ADD, x);
        in.engine = either_engine(r, in);
        r->busy[in.engine] += cost_inst(r->e->chip, NULL, &in);
        emit_loc(r->e, r->parts_of[i].op);
        put_inst(r->e, in, &sum, r->parts_begin ? &x : &sum, r->parts_begin ? NULL : &x);
    }
}

// A tile that does not fill the partitions leaves some without a row.
static void begin_parts(RowOp *r, int64_t rows) {
    r->parts_begin = rows >= PARTITIONS;
    for (uint32_t i = 0; i < r->nparts && !r->parts_begin; i++)
        put_memset(r->e, ENG_VECTOR, parts_view(&r->parts_of[i], PARTITIONS, 0, r->group * r->cols), NULL);
}

static void store_parts(RowOp *r, uint32_t half) {
    int64_t cols = r->parts_unit * r->cols, times = r->group / r->parts_unit;
    for (uint32_t i = 0; i < r->nparts; i++) {
        RowParts *p = &r->parts_of[i];
        uint64_t at = emit_addr(r->e, r->e->l->refs.at[r->s->outs + p->out]) + half * (uint64_t)(PARTITIONS * cols * 4);
        Mem all = {.addr = addr_sbuf(0, p->at), .haz = &p->haz}, sum = {.addr = addr_sbuf(0, p->joined), .haz = &p->haz};
        emit_loc(r->e, p->op);
        if (times > 1) { // rows side by side
            View dst = VIEW(sum, DT_F32, {PARTITIONS}, {cols, 1}, {times, 0}), src = VIEW(all, DT_F32, {PARTITIONS}, {cols, 1}, {times, cols});
            put_inst(r->e, isa_reduce(dst, src, ALU_ADD, 0), &dst, &src, NULL);
        }
        put_dma(r->e, queue_for(r, true), VIEW(mem_hbm(at), DT_F32, {PARTITIONS, cols}, {cols, 1}), VIEW(sum, DT_F32, {PARTITIONS}, {cols, 1}));
    }
}

// --- tiles -------------------------------------------------------------------------------------------------

static void load_kept(RowOp *r) {
    r->m = PARTITIONS;
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        if (n->draw)
            load_state(r, i);
        if (n->kind != NODE_INPUT || (!n->scalar && (!n->resident || r->sliced)))
            continue;
        load(r, i, 0, 0, 0, PARTITIONS, n->scalar ? 1 : (uint32_t)r->cols);
        if (n->scalar)
            rows_emit_node(r, i, true);
    }
}

// Numbers per row that need the reductions of `level` levels and no more.
void rows_emit_columns(RowOp *r, uint32_t level, int64_t p0) {
    if (level == 0)
        move_numbers(r, r->takes, r->ntakes, p0, false);
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        if (n->full || n->scalar || n->kind == NODE_CONST || n->level != level)
            continue;
        if (n->kind != NODE_REDUCE)
            rows_emit_node(r, i, true);
    }
}

// Operands that products make are made when they are first needed: PSUM is small.
static void make_operands(RowOp *r, uint32_t i) {
    Node *n = rows_node(r, i);
    for (uint32_t k = 0; k < n->nsrc; k++) {
        Node *from = rows_node(r, n->src[k]);
        if (from->psum && !from->made) {
            from->made = true;
            block_make(r->block_op, from->input);
        } else if (from->folded) {
            make_operands(r, n->src[k]);
        }
    }
}

static bool is_loaded(const Node *n) { return n->kind == NODE_INPUT && n->full && !n->scalar && !n->resident && !n->psum && !n->folded; }

// What is read first is loaded first: transfers begin in order, and one that waits until its slot is free, as that of a result which takes the
// slot over, keeps those behind it waiting.
static void order_loads(RowOp *r, const bool *need, int pass) {
    uint32_t n = r->nodes.n;
    for (uint32_t i = 0; i < n; i++)
        r->order[i] = i, r->reader[i] = n;
    for (uint32_t i = n; i-- > 0;) {
        const Node *node = rows_node(r, i);
        uint32_t at = node->folded || node->kind == NODE_WIDEN || node->kind == NODE_EXCHANGE ? r->reader[i] : i;
        for (uint32_t k = 0; k < node->nsrc && rows_runs_in(node, need, i, pass); k++)
            r->reader[node->src[k]] = at < r->reader[node->src[k]] ? at : r->reader[node->src[k]];
    }
    for (uint32_t i = 1; i < n; i++) // a few, mostly in order
        for (uint32_t k = i, before = i; is_loaded(rows_node(r, r->order[k])) && before-- > 0;) {
            if (!is_loaded(rows_node(r, r->order[before])))
                continue;
            if (r->reader[r->order[before]] <= r->reader[r->order[k]])
                break;
            uint32_t other = r->order[before];
            r->order[before] = r->order[k], r->order[k] = other;
            k = before;
        }
}

void rows_emit_chunk(RowOp *r, const bool *need, int pass, int64_t p0, int64_t c0) {
    bool last = pass < 0 || (uint32_t)pass == r->levels;
    r->first = first_element(r, p0, c0);
    order_loads(r, need, pass);
    for (uint32_t at = 0; at < r->nodes.n; at++) {
        uint32_t i = r->order[at];
        if (pass < 0 && i == end_of(r->takes, r->ntakes, false))
            move_numbers(r, r->takes, r->ntakes, p0, false);
        const Node *n = rows_node(r, i);
        if (!rows_runs_in(n, need, i, pass) || n->scalar || n->resident || n->kind == NODE_CONST)
            continue;
        if (n->kind == NODE_INPUT && n->full && !n->psum && !n->folded)
            load_full(r, i, p0, c0);
        if (r->block && !n->folded)
            make_operands(r, i);
        if (n->kind != NODE_INPUT || !n->full)
            rows_emit_node(r, i, c0 == 0);
        if (n->is_output && last && n->full) {
            store_outputs(r, i, p0, c0);
            add_parts(r, i, c0);
        }
        if (pass < 0 && i == end_of(r->gives, r->ngives, true))
            rows_store_columns(r, p0);
    }
}

static void emit_tile(RowOp *r, int64_t p0) {
    int64_t per = r->group * r->pcols;
    r->w = (uint32_t)min64(per, r->width);
    if (r->tile_cols)
        r->w = r->tile_cols;
    if (r->width >= per) {
        rows_emit_chunk(r, rows_needed(r, -1), -1, p0, 0);
        return;
    }
    for (uint32_t p = 0; p <= r->levels; p++) {
        const bool *need = rows_needed(r, (int)p);
        rows_lay_out(r, need, (int)p);
        rows_emit_columns(r, p, p0);
        for (int64_t c0 = 0; c0 < per; c0 += r->width) {
            r->w = (uint32_t)min64(r->width, per - c0);
            emit_task(r->e);
            rows_emit_chunk(r, need, (int)p, p0, c0);
            r->set = (r->set + 1) % r->sets; // chunks have nothing in common but their columns
        }
        for (uint32_t i = 0; i < r->nodes.n; i++) // reductions are over
            if (rows_node(r, i)->kind == NODE_REDUCE && rows_node(r, i)->level == p + 1 &&
                (rows_node(r, i)->wants_inverse || rows_node(r, i)->wants_negative))
                rows_emit_beside(r, i);
    }
    rows_store_columns(r, p0);
}

// What is decided anew for a part of the program.
static void forget_choices(RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        Node *n = rows_node(r, i);
        n->folded = n->gone;
        n->wants_inverse = n->wants_negative = n->resident = false;
        n->summed = 0;
    }
}

void rows_open(RowOp *r) {
    assert(r->prow % r->group == 0);
    assert(r->sets > 0);
    assert(r->width > 0);
    r->prow /= r->batch ? 1 : r->group;
    r->slots = ARENA_NEWN(r->e->c->scratch, Haz, r->sets * r->nslots + 1);
    r->order = ARENA_NEWN(r->e->c->scratch, uint32_t, r->nodes.n + 1);
    r->reader = ARENA_NEWN(r->e->c->scratch, uint32_t, r->nodes.n + 1);
    memset(r->busy, 0, sizeof r->busy);
    memset(r->count_of, 0, sizeof r->count_of);
    if (r->epi || (!r->forms && r->width >= r->group * r->pcols))
        rows_lay_out(r, rows_needed(r, -1), -1);
    share_area(r, false);
    uint32_t loc = r->e->loc;
    load_kept(r);
    r->e->loc = loc;
}

void rows_tile(RowOp *r, int64_t p0, uint32_t m) {
    assert(m > 0);
    assert(m <= PARTITIONS);
    assert(p0 >= 0);
    assert(p0 + m <= r->prow);
    r->m = m;
    for (uint32_t i = 0; i < r->nodes.n; i++)
        rows_node(r, i)->made = false;
    uint32_t loc = r->e->loc;
    emit_tile(r, p0);
    r->e->loc = loc;
    r->column_set = (r->column_set + 1) % r->sets;
    if (r->width >= r->group * r->pcols)
        r->set = r->column_set;
}

void rows_close(RowOp *r) {
    share_area(r, true);
}

static void emit_tiles(RowOp *r, int64_t lo, int64_t hi) {
    for (int64_t p0 = lo; p0 < hi; p0 += PARTITIONS) {
        emit_task(r->e);
        rows_tile(r, p0, (uint32_t)min64(PARTITIONS, hi - p0));
        r->parts_begin = false;
    }
}

// Where two cores cut the rows, in partition rows.
static int64_t middle(const RowOp *r) {
    int64_t at = emit_middle(r->rows, PARTITIONS);
    return at % r->group ? emit_middle(r->prow, 1) : at / r->group;
}

static void emit_half(RowOp *r, int64_t lo, int64_t hi, uint32_t half) {
    if (lo >= hi)
        return;
    begin_parts(r, hi - lo);
    emit_tiles(r, lo, hi);
    store_parts(r, half);
}

// Rows side by side, columns in work and slots; false: one row does not fit.
static bool fit(RowOp *r, int64_t prow, int64_t pcols) {
    r->prow = prow, r->pcols = pcols;
    forget_choices(r);
    while (!rows_fit(r)) {
        if (r->group == 1)
            return false;
        r->group_most = r->group - 1; // fewer short rows
        forget_choices(r);
    }
    return true;
}

static void emit_part(RowOp *r, int64_t base, int64_t prow, int64_t pcols) {
    r->base = base;
    if (!fit(r, prow, pcols))
        hlo_fail(r->e->l->h, r->s->op, OTRN_CAPACITY, "its values for one row do not fit SBUF");
    rows_open(r);
    int64_t lo = 0, hi = r->prow;
    if (!r->flat) { // cut where other steps over these rows are
        emit_share(r->e, r->rows, PARTITIONS, &lo, &hi);
        if (lo % r->group || hi % r->group)
            emit_share(r->e, r->prow, 1, &lo, &hi);
        else
            lo /= r->group, hi /= r->group;
    }
    if (r->nparts) {
        emit_half(r, lo, min64(hi, middle(r)), 0);
        emit_half(r, max64(lo, middle(r)), hi, 1);
    } else {
        emit_tiles(r, lo, hi);
    }
    rows_close(r);
}

static RowOp *row_op_make(Emit *e, const Step *s, Block *b) {
    RowOp *r = ARENA_NEW(e->c->scratch, RowOp);
    *r = (RowOp){.e = e, .s = s, .block = b, .area_at = ROWS_AREA_BEGIN, .area_bytes = ROWS_AREA_BYTES};
    if (!b && emit_draws(e, s))
        r->area_at = DRAWS_AREA_BEGIN, r->area_bytes = e->draws_bytes;
    bool ok = rows_shape(e->l->h, hlo_at(e->l->h, s->op), &r->rows, &r->cols);
    assert(ok);
    (void)ok;
    return r;
}

// What repeats does so with the batches of a tile.
static bool repeats_with_batches(const RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        int64_t period = n->kind == NODE_INPUT && n->full ? rows_input_period(r, n) : 0, block = n->kind == NODE_INPUT && n->full ? rows_input_block(r, n) : 0;
        if ((period > 1 && period != r->batch && period % (r->group * r->batch)) || block % (r->group * r->batch) || (n->is_output && (period || block)))
            return false;
    }
    return true;
}

// With products before and behind: one row a partition, or one of each of several batches, rows whole and two tiles at a time at least; or in
// chunks. NULL: does not fit.
RowOp *rows_begin(Emit *e, const Step *s, Block *b) {
    RowOp *r = row_op_make(e, s, b);
    if (b->width < b->n)
        r->area_at = b->rows_at, r->area_bytes = ROWS_AREA_BEGIN + ROWS_AREA_BYTES - b->rows_at;
    rows_read(r);
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        uint32_t psum = 0;
        for (uint32_t k = 0; k < n->nsrc; k++)
            psum += rows_node(r, n->src[k])->psum;
        if (psum > 1 || (n->psum && n->is_output)) // an instruction reads one operand there, a transfer none
            return NULL;
    }
    r->prow = r->rows, r->pcols = r->cols, r->group = b->together, r->batch = b->together > 1 ? b->m : 0;
    if (r->batch && !repeats_with_batches(r))
        return NULL;
    r->keep_outputs = true;
    rows_defer(r);
    if (b->width < b->n)
        return rows_forms(r) ? r : NULL;
    rows_fold(r);
    rows_lay_whole(r, true);
    if (!rows_try_width(r, r->group * r->cols, 2))
        return NULL;
    rows_fold_sums(r);
    return r;
}

// --- behind a product ------------------------------------------------------------------------------------

// Tiles may go together: nothing is one a row, what is the same for every row is kept, nothing else repeats.
static bool joins_tiles(const RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        if (!n->full ? !n->scalar && n->kind != NODE_CONST : n->kind == NODE_INPUT && !n->psum && !n->resident && (rows_input_period(r, n) || rows_input_block(r, n)))
            return false;
    }
    return true;
}

RowOp *rows_epilogue(Emit *e, const Step *s, const Epilogue *p, uint32_t at, uint32_t bytes, uint32_t width, uint32_t sets) {
    RowOp *r = row_op_make(e, s, NULL);
    assert(at + bytes <= ISA_SBUF_BYTES);
    r->epi = p;
    r->rows = r->prow = p->rows_n, r->cols = r->pcols = p->n, r->group = 1;
    r->area_at = at, r->area_bytes = bytes;
    r->slice_key[0] = r->slice_key[1] = -1;
    rows_read(r);
    r->keep_outputs = true;
    rows_fold(r);
    for (int keep = 0; keep < 3; keep++) { // all columns of what is the same for every row, or those of two tiles, or none
        r->sliced = keep == 1;
        rows_lay_whole(r, keep < 2);
        bool all = width <= EPILOGUE_COLS || joins_tiles(r);
        for (uint32_t i = 0; i < r->nodes.n && keep < 2; i++) {
            const Node *n = rows_node(r, i);
            all = all && (n->kind != NODE_INPUT || n->psum || !n->full || n->resident || rows_input_period(r, n) != 1);
        }
        if (all && rows_try_width(r, width, sets)) {
            r->need = rows_needed(r, -1);
            return r;
        }
    }
    return NULL;
}

void rows_columns(RowOp *r, int64_t c0, uint32_t n) {
    assert(n > 0);
    assert(n <= EPILOGUE_COLS);
    assert(c0 + n <= r->cols);
    uint32_t slice = (uint32_t)(c0 / EPILOGUE_COLS % 2);
    if (!r->sliced || r->slice_key[slice] == c0)
        return;
    r->slice_key[slice] = c0, r->slice = slice, r->col0 = 0;
    uint32_t loc = r->e->loc;
    for (uint32_t i = 0; i < r->nodes.n; i++)
        if (rows_node(r, i)->kind == NODE_INPUT && rows_node(r, i)->resident)
            load(r, i, 0, c0, 0, PARTITIONS, n);
    r->e->loc = loc;
}

void rows_from_psum(RowOp *r, uint32_t tiles, uint32_t psum_at, Haz *haz, int64_t row, uint32_t m, int64_t c0, uint32_t n) {
    uint32_t width = r->width / tiles, loc = r->e->loc;
    assert(tiles > 0);
    assert(m > 0);
    assert(m <= PARTITIONS);
    assert(r->epi);
    assert(n <= EPILOGUE_COLS);
    r->m = m, r->psum_haz = haz, r->tiles = tiles;
    r->slice = r->sliced ? (uint32_t)(c0 / EPILOGUE_COLS % 2) : 0;
    for (uint32_t c = 0; c < n; c += width) {
        r->w = tiles * (n - c < width ? n - c : width);
        r->psum_at = psum_at + c * 4;
        r->col0 = r->sliced ? c : (uint32_t)c0 + c;
        rows_emit_chunk(r, r->need, -1, row, c0 + c);
        r->set = r->column_set = (r->set + 1) % r->sets;
    }
    r->col0 = r->slice = 0, r->tiles = 1;
    r->e->loc = loc;
}

// Columns of a row of tiles, for as many batches together as fit.
static void emit_wedge_columns(RowOp *r, const bool *need, int64_t t, int64_t c0, int64_t end, int64_t lo, int64_t hi) {
    const Wedge *g = r->wedge;
    for (int64_t w; c0 < end; c0 += w) {
        w = min64(end - c0, r->width);
        for (int64_t b = lo, n; b < hi; b += n) {
            n = min64(hi - b, r->width / w);
            r->wedge_at = b * g->m * g->n + t * PARTITIONS * g->n + c0, r->wedge_parts = (uint32_t)n;
            r->w = (uint32_t)(n * w);
            emit_task(r->e);
            rows_emit_chunk(r, need, 0, 0, 0);
            r->set = (r->set + 1) % r->sets;
        }
    }
}

static void emit_wedge(RowOp *r) {
    const Wedge *g = r->wedge;
    int64_t lo, hi;
    emit_share(r->e, r->rows * r->cols / (g->m * g->n), 1, &lo, &hi);
    r->base = 0, r->prow = PARTITIONS, r->pcols = r->rows * r->cols / PARTITIONS;
    forget_choices(r);
    if (!rows_fit(r))
        hlo_fail(r->e->l->h, r->s->op, OTRN_CAPACITY, "its values for one row do not fit SBUF");
    rows_open(r);
    const bool *need = rows_needed(r, 0);
    rows_lay_out(r, need, 0);
    r->m = PARTITIONS;
    for (int64_t t = 0; t < g->m / PARTITIONS; t++) {
        const bool *read = g->read + t * g->across;
        for (uint32_t c = 0, end; c < g->across; c = end) {
            for (end = c + 1; end < g->across && read[end] == read[c];)
                end++;
            if (read[c])
                emit_wedge_columns(r, need, t, (int64_t)c * PARTITIONS, min64((int64_t)end * PARTITIONS, g->n), lo, hi);
        }
    }
    rows_close(r);
}

// Few rows leave most partitions idle. Where nothing is one a row, each is cut into as many short ones as fill them, if engines save more by that
// than it takes to start the transfers of operands that every row has: as many as there are rows, not one.
static void cut_few_rows(RowOp *r) {
    int64_t parts = 1, ops = 0, starts = 0;
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        if ((!n->full && !n->scalar && n->kind != NODE_CONST) || (n->kind == NODE_INPUT && n->full && rows_input_block(r, n)))
            return;
        ops += n->kind == NODE_OP;
        starts += n->kind == NODE_INPUT && n->full && rows_input_period(r, n) == 1 ? r->rows - 1 : 0;
    }
    for (int64_t k = 2; k * r->rows <= PARTITIONS && r->cols / k >= CUT_COLS_MIN; k++)
        if (r->cols % k == 0)
            parts = k;
    if (cost_pass(r->e->chip, ENG_VECTOR, (double)(ops * (r->cols - r->cols / parts))) > (double)starts * r->e->chip->dma_issue_ns)
        r->rows *= parts, r->cols /= parts;
}

// The results whose rows are summed.
static void take_sums(RowOp *r) {
    const Hlo *h = r->e->l->h;
    const HloOp *ret = region_return(h, hlo_op_region(h, hlo_at(h, r->s->op), 0));
    RowSum *sums;
    r->nparts = row_sums_of(r->e->l, r->s->op, &sums);
    assert(r->nparts <= ROW_SUMS_MAX);
    for (uint32_t i = 0; i < r->nparts; i++)
        r->parts_of[i] = (RowParts){.op = sums[i].dot, .node = r->e->row_node[hlo_operand(h, ret, sums[i].result)], .out = ret->noperands + i};
    if (!r->nparts)
        return;
    if (r->flat) // rows are whatever is summed
        r->rows = r->rows * r->cols / sums->n, r->cols = sums->n, r->flat = false;
    r->parts_unit = sums->n / r->cols;
}

bool rows_suit_sums(Emit *e, OpId id) {
    RowOp *r = row_op_make(e, &(Step){.kind = STEP_ROWS, .op = id}, NULL);
    RowSum *sums;
    rows_read(r);
    take_sums(r);
    row_sums_of(e->l, id, &sums);
    for (uint32_t i = 0; i < r->nparts; i++)
        if (rows_node(r, r->parts_of[i].node)->kind == NODE_CONST)
            return false;
    return sums->n % r->cols == 0 && fit(r, r->rows, r->cols) && r->group % r->parts_unit == 0 && r->rows / r->group >= 2 * PARTITIONS;
}

bool rows_take(const Lower *l, const HloOp *op, Why *why) {
    (void)l, (void)why;
    return op->code == HLO_ROWS;
}

void emit_rows(Emit *e, const Step *s) {
    RowOp *r = row_op_make(e, s, NULL);
    assert(s->kind == STEP_ROWS);
    rows_read(r);
    take_sums(r);
    if (!r->flat && !r->strided && !r->half) // rows are what they are
        cut_few_rows(r);
    r->wedge = r->flat ? e->l->wedge_of[s->op] : NULL;
    if (r->wedge) {
        emit_wedge(r);
    } else if (r->flat) {
        int64_t lo, hi;
        if (r->rows > PARTITIONS)
            emit_share(e, r->rows, PARTITIONS, &lo, &hi), lo *= r->cols, hi *= r->cols;
        else
            emit_share(e, r->rows * r->cols, PARTITIONS * PARTITIONS, &lo, &hi);
        int64_t n = hi - lo;
        if (n / PARTITIONS)
            emit_part(r, lo, PARTITIONS, n / PARTITIONS);
        if (n % PARTITIONS)
            emit_part(r, lo + n / PARTITIONS * PARTITIONS, 1, n % PARTITIONS);
    } else {
        emit_part(r, 0, r->rows, r->cols);
    }
}
