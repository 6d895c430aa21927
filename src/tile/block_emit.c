// SPDX-License-Identifier: Apache-2.0
// block_emit.c — a row program between products, tile by tile of 128 rows.
//
// The operands of a batch lie in SBUF, turned by the array where transfers cannot; products before the program leave its operands in PSUM, where it reads them. What
// a product behind contracts must lie on the partitions: columns are turned by the array first, rows lie there already
// and add up over the tiles of a batch in PSUM. sched.c weaves neighbouring tiles together.
#include <assert.h>

#include "tile/block.h"

#define PARTS 128
#define BANK_COLS 512u
#define BANK_BYTES ISA_PSUM_BANK_BYTES

typedef struct Tile {
    int64_t batch, row; // first row inside the batch
    uint32_t m, set, index; // rows; set of slots that holds them; number inside the batch
    int64_t n;              // columns that count
    bool first, last; // of the batch
    int64_t unit, row0, rows; // its chunk of rows: number over all batches, first row, how many
    bool chunk_first, chunk_last;
} Tile;

typedef struct BlockOp {
    Emit *e;
    const Step *s;
    Block *b;
    RowOp *r;
    uint32_t turns, stages; // banks of values, and panels, turned so far
    int64_t first;  // tile
    Tile tile;      // in work
} BlockOp;

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static uint32_t blocks_of(int64_t n) { return (uint32_t)((n + PARTS - 1) / PARTS); }

// --- operands ----------------------------------------------------------------------------------------

static int lighter(const BlockOp *o, double cols) {
    const ChipFile *c = o->e->chip;
    double *busy = o->r->busy;
    int engine = busy[ENG_SCALAR] + cols / c->scalar_ghz < busy[ENG_VECTOR] + cols / c->vector_ghz ? ENG_SCALAR : ENG_VECTOR;
    busy[engine] += cols / (engine == ENG_SCALAR ? c->scalar_ghz : c->vector_ghz);
    return engine;
}

static void copy_out(BlockOp *o, uint64_t src, int stype, Haz *shaz, uint64_t dst, int dtype, Haz *dhaz, uint32_t parts,
                     uint32_t runs, uint32_t n, int32_t sstride, int32_t dstride) {
    IsaInst cp = {.op = ISA_COPY, .engine = (uint8_t)lighter(o, (double)runs * n), .src = src, .stype = (uint8_t)stype,
                  .dst = dst, .dtype = (uint8_t)dtype};
    cp.n[0] = parts, cp.n[1] = runs, cp.n[2] = n;
    cp.s[1] = sstride, cp.d[1] = dstride, cp.s[2] = cp.d[2] = 1;
    emit_inst(o->e, cp, &shaz, 1, &dhaz, 1);
}

static uint32_t panel_copy(const BlockOp *o, const Panel *p, const Tile *t) {
    return (uint32_t)((p->rows ? t->unit : t->batch) % o->b->panel_copies);
}

// What is loaded of a panel: all of the batch, or the chunk's rows.
static Side panel_part(const Panel *p, const Tile *t, int64_t *offset) {
    Side part = p->at;
    *offset = side_batch_offset(&p->at, t->batch);
    if (p->rows) {
        *(p->rows == ROWS_K ? &part.k_size : &part.free_size) = t->rows;
        *offset += t->row0 * (p->rows == ROWS_K ? part.k_stride : part.free_stride);
    }
    return part;
}

static int64_t panel_pitch(const BlockOp *o, const Panel *p) { // columns of a tile of k
    return p->rows == ROWS_FREE ? min64(p->at.free_size, o->b->chunk) : p->at.free_size;
}

static void load_lying(BlockOp *o, Panel *p, int dtype, const Tile *tile) { // k on the partitions
    uint32_t copy = panel_copy(o, p, tile);
    BufId buf = o->e->l->refs.at[o->s->ins + p->in];
    size_t size = dtype_bytes(dtype);
    int64_t offset;
    Side part = panel_part(p, tile, &offset);
    int64_t full = part.k_size / PARTS, rest = part.k_size % PARTS, pitch = panel_pitch(o, p);
    IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_IN, .stype = (uint8_t)dtype};
    uint64_t from = emit_addr(o->e, buf) + (uint64_t)offset * size;
    uint32_t to = p->sbuf + copy * p->bytes;
    in.n[2] = (uint32_t)part.free_size, in.d[1] = (int32_t)pitch, in.d[2] = 1;
    in.s[0] = (int32_t)p->at.k_stride, in.s[1] = (int32_t)(p->at.k_stride * PARTS), in.s[2] = (int32_t)p->at.free_stride;
    Haz *writes[] = {&p->haz[copy]};
    if (full) {
        in.src = from, in.dst = addr_sbuf(0, to);
        in.n[0] = PARTS, in.n[1] = (uint32_t)full;
        emit_inst(o->e, in, NULL, 0, writes, 1);
    }
    if (rest) {
        in.src = from + (uint64_t)(full * PARTS * p->at.k_stride) * size;
        in.dst = addr_sbuf(0, (uint32_t)(to + (uint64_t)(full * pitch) * size));
        in.n[0] = (uint32_t)rest, in.n[1] = 1;
        emit_inst(o->e, in, NULL, 0, writes, 1);
    }
}

// Element [k tile][free] of a panel.
static uint64_t panel_at(const BlockOp *o, const Panel *p, int dtype, const Tile *t, int64_t tile, int64_t free) {
    return addr_sbuf(0, (uint32_t)(p->sbuf + panel_copy(o, p, t) * p->bytes + (uint64_t)(tile * panel_pitch(o, p) + free) * dtype_bytes(dtype)));
}

static Haz *panel_haz(const BlockOp *o, Panel *p, const Tile *t) { return &p->haz[panel_copy(o, p, t)]; }

// A panel of up to 128 k that lies as [free][k]: rows come as they lie, and the array turns them tile by tile.
static void load_turned(BlockOp *o, Panel *p, int dtype, const Tile *tile) {
    Block *b = o->b;
    size_t size = dtype_bytes(dtype);
    uint32_t k = (uint32_t)p->at.k_size, stage = o->stages++ % 2, at = b->stage_sbuf + stage * b->stage_bytes;
    int64_t offset;
    Side part = panel_part(p, tile, &offset);
    int64_t rows = part.free_size, full = rows / PARTS, rest = rows % PARTS;
    Haz *shaz = &b->stage_haz[stage];
    IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_IN, .stype = (uint8_t)dtype};
    in.src = emit_addr(o->e, o->e->l->refs.at[o->s->ins + p->in]) + (uint64_t)offset * size;
    in.dst = addr_sbuf(0, at);
    in.n[0] = PARTS, in.n[1] = (uint32_t)full, in.n[2] = k, in.d[1] = (int32_t)k, in.d[2] = in.s[2] = 1;
    in.s[0] = (int32_t)p->at.free_stride, in.s[1] = (int32_t)(p->at.free_stride * PARTS);
    if (full)
        emit_inst(o->e, in, NULL, 0, &shaz, 1);
    in.src += (uint64_t)(full * PARTS * p->at.free_stride) * size, in.dst += (uint64_t)full * k * size;
    in.n[0] = (uint32_t)rest, in.n[1] = 1;
    if (rest)
        emit_inst(o->e, in, NULL, 0, &shaz, 1);
    uint32_t per = BANK_BYTES / (uint32_t)(PARTS * size), tiles = blocks_of(rows);
    for (uint32_t t0 = 0; t0 < tiles; t0 += per) {
        uint32_t bank = o->turns++ % b->turn_banks;
        Haz *bhaz = &b->turn_haz[bank];
        uint64_t psum = addr_psum(0, (b->turn_bank + bank) * BANK_BYTES);
        for (uint32_t t = t0; t < tiles && t < t0 + per; t++) {
            IsaInst turn = {.op = ISA_TRANSPOSE, .engine = ENG_TENSOR, .dtype = (uint8_t)dtype, .stype = (uint8_t)dtype};
            turn.src = addr_sbuf(0, (uint32_t)(at + (uint64_t)t * k * size)), turn.dst = psum + (t - t0) * PARTS * size;
            turn.n[0] = (uint32_t)min64(PARTS, rows - (int64_t)t * PARTS), turn.n[1] = k, turn.d[1] = turn.s[1] = 1;
            emit_inst(o->e, turn, &shaz, 1, &bhaz, 1);
        }
        uint32_t cols = (uint32_t)min64((int64_t)per * PARTS, rows - (int64_t)t0 * PARTS);
        copy_out(o, psum, dtype, bhaz, panel_at(o, p, dtype, tile, 0, (int64_t)t0 * PARTS), dtype, panel_haz(o, p, tile), k,
                 1, cols, 1, 1);
    }
}

static void load_panel(BlockOp *o, Panel *p, int dtype, const Tile *t) {
    if (p->rows ? !t->chunk_first : !t->first)
        return;
    if (p->turned)
        load_turned(o, p, dtype, t);
    else
        load_lying(o, p, dtype, t);
}

// dst[cols of weights][cols of moving] (+)= weights^T moving, over k partitions.
static void multiply(BlockOp *o, int dtype, uint32_t k, uint64_t weights, uint32_t wcols, Haz *whaz, uint64_t moving,
                     uint32_t mcols, Haz *mhaz, uint64_t dst, Haz *dhaz, bool accumulate) {
    IsaInst ld = {.op = ISA_LDWEIGHTS, .engine = ENG_TENSOR, .stype = (uint8_t)dtype, .src = weights};
    ld.n[0] = k, ld.n[1] = wcols, ld.s[1] = 1;
    emit_inst(o->e, ld, &whaz, 1, NULL, 0);
    IsaInst mm = {.op = ISA_MATMUL, .engine = ENG_TENSOR, .stype = (uint8_t)dtype, .src = moving, .dst = dst};
    mm.flags = accumulate ? MATMUL_ACCUMULATE : 0;
    mm.n[0] = k, mm.n[1] = mcols, mm.n[2] = wcols, mm.d[1] = 1, mm.s[1] = 1;
    emit_inst(o->e, mm, &mhaz, 1, &dhaz, 1);
}

// --- before ------------------------------------------------------------------------------------------

static void load_panels(BlockOp *o, const Tile *t) {
    Block *b = o->b;
    for (uint32_t i = 0; i < b->npro; i++) {
        emit_loc(o->e, b->pro[i].op);
        load_panel(o, &b->pro[i].rhs, b->pro[i].dtype, t);
        load_panel(o, &b->pro[i].lhs, b->pro[i].dtype, t);
    }
    for (uint32_t i = 0; i < b->nepi; i++) {
        emit_loc(o->e, b->epi[i].op);
        load_panel(o, &b->epi[i].rhs, b->epi[i].dtype, t);
    }
}

static Node *input_node(const BlockOp *o, uint32_t input) {
    for (uint32_t i = 0; i < o->r->nodes.n; i++)
        if (o->r->nodes.at[i].kind == NODE_INPUT && o->r->nodes.at[i].input == input)
            return &o->r->nodes.at[i];
    assert(false);
    return NULL;
}

void block_make(BlockOp *o, uint32_t operand) {
    Block *b = o->b;
    const Tile *t = &o->tile;
    uint32_t copy = o->r->pro_copy;
    for (uint32_t i = 0; i < b->npro; i++) {
        BlockDot *d = &b->pro[i];
        if (d->index != operand)
            continue;
        emit_loc(o->e, d->op);
        Haz *haz = &input_node(o, d->index)->haz[copy];
        for (int64_t c = 0; c < t->n; c += BANK_COLS)
            for (int64_t k = 0; k < d->lhs.at.k_size; k += PARTS)
                multiply(o, d->dtype, (uint32_t)min64(PARTS, d->lhs.at.k_size - k),
                         panel_at(o, &d->lhs, d->dtype, t, k / PARTS, t->row - t->row0), t->m, panel_haz(o, &d->lhs, t),
                         panel_at(o, &d->rhs, d->dtype, t, k / PARTS, c), (uint32_t)min64(BANK_COLS, t->n - c),
                         panel_haz(o, &d->rhs, t),
                         addr_psum(0, (d->bank + copy * o->r->pro_bytes / BANK_BYTES) * BANK_BYTES + (uint32_t)c * 4), haz, k > 0);
    }
}

// --- behind ------------------------------------------------------------------------------------------

// Where the program left result `index` of the tile.
static uint64_t value_at(BlockOp *o, const Tile *t, uint32_t index, Haz **haz) {
    const Hlo *h = o->e->l->h;
    const HloRegion *region = hlo_op_region(h, hlo_at(h, o->s->op), 0);
    const HloOp *ret = hlo_at(h, region->ops.at[region->ops.n - 1]);
    uint32_t node = o->r->e->row_node[hlo_operand(h, ret, index)], set = o->r->set;
    o->r->set = t->set;
    uint64_t at = rows_place(o->r, node);
    *haz = rows_haz(o->r, node);
    o->r->set = set;
    return at;
}

// The tile's value with columns on the partitions: [column tile][row].
static void turn(BlockOp *o, const Tile *t, const BlockDot *d, uint32_t slot) {
    Block *b = o->b;
    size_t size = dtype_bytes(d->dtype);
    Haz *from, *to = &b->turned_haz[slot];
    uint64_t at = value_at(o, t, d->index, &from);
    uint32_t per = BANK_BYTES / (uint32_t)(PARTS * size), n = blocks_of(t->n);
    for (uint32_t k0 = 0; k0 < n; k0 += per) {
        uint32_t bank = o->turns++ % b->turn_banks, count = n - k0 < per ? n - k0 : per;
        Haz *bhaz = &b->turn_haz[bank];
        uint64_t psum = addr_psum(0, (b->turn_bank + bank) * BANK_BYTES);
        for (uint32_t k = k0; k < k0 + count; k++) {
            IsaInst in = {.op = ISA_TRANSPOSE, .engine = ENG_TENSOR, .dtype = d->dtype, .stype = d->dtype};
            in.src = at + k * PARTS * size, in.dst = psum + (k - k0) * PARTS * size;
            in.n[0] = t->m, in.n[1] = (uint32_t)min64(PARTS, t->n - (int64_t)k * PARTS), in.d[1] = in.s[1] = 1;
            emit_inst(o->e, in, &from, 1, &bhaz, 1);
        }
        uint32_t full = (uint32_t)min64(count, t->n / PARTS - k0), rest = (uint32_t)(t->n % PARTS);
        uint64_t sbuf = addr_sbuf(0, (uint32_t)(b->turn_sbuf + slot * b->turn_bytes + k0 * PARTS * size));
        if (full)
            copy_out(o, psum, d->dtype, bhaz, sbuf, d->dtype, to, PARTS, full, t->m, PARTS, PARTS);
        if (full < count)
            copy_out(o, psum + full * PARTS * size, d->dtype, bhaz, sbuf + full * PARTS * size, d->dtype, to, rest, 1, t->m,
                     PARTS, PARTS);
    }
}

static uint32_t gather_copy(const BlockDot *d, const Tile *t) { return (uint32_t)((d->over_rows ? t->batch : t->unit) % 2); }

static uint64_t gather_at(const BlockDot *d, const Tile *t, uint64_t elems) {
    return addr_sbuf(0, (uint32_t)(d->out_sbuf + gather_copy(d, t) * d->out_bytes + elems * dtype_bytes(d->otype)));
}

static void over_columns(BlockOp *o, const Tile *t, BlockDot *d, uint32_t slot) {
    Block *b = o->b;
    size_t size = dtype_bytes(d->dtype);
    uint64_t dst = addr_psum(0, d->bank * BANK_BYTES);
    Haz *ohaz = panel_haz(o, &d->rhs, t), *thaz = &b->turned_haz[slot];
    for (uint32_t k = 0; k < blocks_of(t->n); k++) {
        uint32_t rows = (uint32_t)min64(PARTS, t->n - (int64_t)k * PARTS);
        uint64_t turned = addr_sbuf(0, (uint32_t)(b->turn_sbuf + slot * b->turn_bytes + k * PARTS * size));
        for (int64_t c = 0; c < d->d && d->turned; c += PARTS)
            multiply(o, d->dtype, rows, panel_at(o, &d->rhs, d->dtype, t, k, c), (uint32_t)min64(PARTS, d->d - c), ohaz, turned,
                     t->m, thaz, dst + (uint64_t)c * 4, &d->bank_haz, k > 0);
        if (!d->turned)
            multiply(o, d->dtype, rows, turned, t->m, thaz, panel_at(o, &d->rhs, d->dtype, t, k, 0), (uint32_t)d->d, ohaz, dst,
                     &d->bank_haz, k > 0);
    }
    int64_t tile = (t->row - t->row0) / PARTS;
    Haz *ghaz = &d->out_haz[gather_copy(d, t)];
    for (int64_t c = 0; c < d->d && d->turned; c += PARTS)
        copy_out(o, dst + (uint64_t)c * 4, DT_F32, &d->bank_haz, gather_at(d, t, (uint64_t)(c / PARTS * b->chunk + tile * PARTS)),
                 d->otype, ghaz, (uint32_t)min64(PARTS, d->d - c), 1, t->m, 1, 1);
    if (!d->turned)
        copy_out(o, dst, DT_F32, &d->bank_haz, gather_at(d, t, (uint64_t)(tile * d->d)), d->otype, ghaz, t->m, 1, (uint32_t)d->d,
                 1, 1);
}

// The first tile of rows for which a tile of columns counts.
static uint32_t first_tile(const Block *b, uint32_t k) {
    uint32_t t = 0;
    while (b->widths && b->widths[t] <= k * PARTS)
        t++;
    return t;
}

// Where rows f… of a result with the columns last gather.
static uint32_t turned_bank(const Block *b, const BlockDot *d, int64_t f) {
    return d->bank + (uint32_t)(f / PARTS) * (uint32_t)((b->n + BANK_COLS - 1) / BANK_COLS);
}

static void over_rows(BlockOp *o, const Tile *t, BlockDot *d) {
    Block *b = o->b;
    size_t size = dtype_bytes(d->dtype);
    Haz *vhaz, *ohaz = panel_haz(o, &d->rhs, t);
    uint64_t value = value_at(o, t, d->index, &vhaz), other = panel_at(o, &d->rhs, d->dtype, t, (t->row - t->row0) / PARTS, 0);
    if (d->turned) {
        for (int64_t f = 0; f < d->d; f += PARTS)
            for (int64_t c = 0; c < b->n; c += BANK_COLS)
                multiply(o, d->dtype, t->m, other + (uint64_t)f * size, (uint32_t)min64(PARTS, d->d - f), ohaz,
                         value + (uint64_t)c * size, (uint32_t)min64(BANK_COLS, b->n - c), vhaz,
                         addr_psum(0, turned_bank(b, d, f) * BANK_BYTES + (uint32_t)c * 4), &d->bank_haz, !t->first);
    } else {
        uint32_t each = BANK_COLS / (uint32_t)d->d;
        for (uint32_t k = 0; k < blocks_of(t->n); k++)
            multiply(o, d->dtype, t->m, value + k * PARTS * size, (uint32_t)min64(PARTS, t->n - (int64_t)k * PARTS), vhaz,
                     other, (uint32_t)d->d, ohaz,
                     addr_psum(0, (d->bank + k / each) * BANK_BYTES + k % each * (uint32_t)d->d * 4), &d->bank_haz,
                     t->index > first_tile(b, k));
    }
    if (!t->last)
        return;
    if (d->turned) {
        for (int64_t f = 0; f < d->d; f += PARTS)
            copy_out(o, addr_psum(0, turned_bank(b, d, f) * BANK_BYTES), DT_F32, &d->bank_haz,
                     gather_at(d, t, (uint64_t)(f / PARTS * b->n)), d->otype, &d->out_haz[gather_copy(d, t)],
                     (uint32_t)min64(PARTS, d->d - f), 1, (uint32_t)b->n, (int32_t)b->n, (int32_t)b->n);
        return;
    }
    uint32_t each = BANK_COLS / (uint32_t)d->d, n = blocks_of(b->n);
    for (uint32_t k = 0; k < n; k += each) {
        uint32_t count = n - k < each ? n - k : each, full = (uint32_t)min64(count, b->n / PARTS - k);
        uint64_t from = addr_psum(0, (d->bank + k / each) * BANK_BYTES), to = gather_at(d, t, k * (uint64_t)d->d);
        Haz *ghaz = &d->out_haz[gather_copy(d, t)];
        if (full)
            copy_out(o, from, DT_F32, &d->bank_haz, to, d->otype, ghaz, PARTS, 1, full * (uint32_t)d->d, 1, 1);
        if (full < count)
            copy_out(o, from + (uint64_t)full * (uint64_t)d->d * 4, DT_F32, &d->bank_haz,
                     to + (uint64_t)full * (uint64_t)d->d * dtype_bytes(d->otype), d->otype, ghaz,
                     (uint32_t)(b->n % PARTS), 1, (uint32_t)d->d, 1, 1);
    }
}

// The result of the batch or chunk: [rows][d] with rows on the partitions in tiles, or turned [d][rows].
static void store_gathered(BlockOp *o, const Tile *t, BlockDot *d) {
    Block *b = o->b;
    int64_t all = d->over_rows ? b->n : b->m, row0 = d->over_rows ? 0 : t->row0, rows = d->over_rows ? b->n : t->rows;
    int64_t full = rows / PARTS, rest = rows % PARTS;
    size_t size = dtype_bytes(d->otype);
    IsaInst out = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_OUT, .stype = d->otype};
    uint64_t to = emit_addr(o->e, o->e->l->refs.at[o->s->outs + d->out]) +
                  (uint64_t)(t->batch * all * d->d + row0 * (d->turned ? 1 : d->d)) * size;
    Haz *haz = &d->out_haz[gather_copy(d, t)];
    out.d[2] = out.s[2] = 1;
    for (int64_t f = 0; f < d->d && d->turned; f += PARTS) {
        out.dst = to + (uint64_t)(f * all) * size;
        out.src = gather_at(d, t, (uint64_t)(f / PARTS * (d->over_rows ? b->n : b->chunk)));
        out.n[0] = (uint32_t)min64(PARTS, d->d - f), out.n[1] = 1, out.n[2] = (uint32_t)rows, out.d[0] = (int32_t)all;
        emit_inst(o->e, out, (Haz *[]){haz}, 1, NULL, 0);
    }
    if (d->turned)
        return;
    out.d[0] = (int32_t)d->d, out.d[1] = (int32_t)(PARTS * d->d), out.s[1] = (int32_t)d->d;
    out.n[2] = (uint32_t)d->d;
    if (full) {
        out.dst = to, out.src = gather_at(d, t, 0);
        out.n[0] = PARTS, out.n[1] = (uint32_t)full;
        emit_inst(o->e, out, (Haz *[]){haz}, 1, NULL, 0);
    }
    if (rest) {
        out.dst = to + (uint64_t)(full * PARTS * d->d) * size, out.src = gather_at(d, t, (uint64_t)(full * d->d));
        out.n[0] = (uint32_t)rest, out.n[1] = 1, out.d[1] = out.s[1] = 0;
        emit_inst(o->e, out, (Haz *[]){haz}, 1, NULL, 0);
    }
}

static void behind(BlockOp *o, const Tile *t) {
    Block *b = o->b;
    for (uint32_t i = 0; i < b->nepi; i++) {
        BlockDot *d = &b->epi[i];
        emit_loc(o->e, d->op);
        uint32_t slot = d->over_rows ? 0 : block_turned_slot(b, i);
        bool turned = d->over_rows;
        for (uint32_t k = 0; k < i && !turned; k++)
            turned = !b->epi[k].over_rows && b->epi[k].index == d->index;
        if (!turned)
            turn(o, t, d, slot);
        if (d->over_rows)
            over_rows(o, t, d);
        else
            over_columns(o, t, d, slot);
        if (d->over_rows ? t->last : t->chunk_last)
            store_gathered(o, t, d);
    }
}

// --- the step ----------------------------------------------------------------------------------------

static void area(BlockOp *o, Haz *haz, uint32_t copies, uint32_t at, uint32_t bytes, bool out) {
    for (uint32_t i = 0; i < copies && bytes; i++)
        emit_area(o->e, &haz[i], at + i * bytes, bytes, out);
}

static void banks(BlockOp *o, Haz *haz, uint32_t first, uint32_t n, bool out) {
    for (uint32_t i = first; i < first + n; i++)
        emit_merge(o->e, out ? &o->e->bank_haz[i] : haz, out ? haz : &o->e->bank_haz[i]);
}

// What other steps still do with the memories comes in, and goes out again.
static void share(BlockOp *o, bool out) {
    Block *b = o->b;
    uint32_t turned = 0;
    for (uint32_t i = 0; i < b->npro; i++) {
        BlockDot *d = &b->pro[i];
        area(o, d->lhs.haz, b->panel_copies, d->lhs.sbuf, d->lhs.bytes, out);
        area(o, d->rhs.haz, b->panel_copies, d->rhs.sbuf, d->rhs.bytes, out);
        for (uint32_t k = 0; k < b->pro_copies; k++)
            banks(o, &input_node(o, d->index)->haz[k], d->bank + k * o->r->pro_bytes / BANK_BYTES, d->banks, out);
    }
    for (uint32_t i = 0; i < b->nepi; i++) {
        BlockDot *d = &b->epi[i];
        area(o, d->rhs.haz, b->panel_copies, d->rhs.sbuf, d->rhs.bytes, out);
        area(o, d->out_haz, 2, d->out_sbuf, d->out_bytes, out);
        banks(o, &d->bank_haz, d->bank, d->banks, out);
        if (!d->over_rows && block_turned_slot(b, i) + 1 > turned)
            turned = block_turned_slot(b, i) + 1;
    }
    area(o, b->turned_haz, turned, b->turn_sbuf, b->turn_bytes, out);
    area(o, b->stage_haz, 2, b->stage_sbuf, b->stage_bytes, out);
    for (uint32_t i = 0; (turned || b->stage_bytes) && i < b->turn_banks; i++)
        banks(o, &b->turn_haz[i], b->turn_bank + i, 1, out);
}

static Tile tile_at(const BlockOp *o, int64_t i) {
    const Block *b = o->b;
    int64_t per = blocks_of(b->m), batch = i / per, k = i % per, row = k * PARTS, chunk = row / b->chunk;
    int64_t chunks = (b->m + b->chunk - 1) / b->chunk, row0 = chunk * b->chunk, rows = min64(b->chunk, b->m - row0);
    return (Tile){.batch = batch, .row = row, .m = (uint32_t)min64(PARTS, b->m - row), .n = b->widths ? b->widths[k] : b->n,
                  .set = (uint32_t)((i - o->first) % o->r->sets), .index = (uint32_t)k, .first = k == 0, .last = k == per - 1,
                  .unit = batch * chunks + chunk, .row0 = row0, .rows = rows, .chunk_first = row == row0,
                  .chunk_last = row + PARTS >= row0 + rows};
}

void emit_block(Emit *e, const Step *s) {
    BlockOp *o = ARENA_NEW(e->c->scratch, BlockOp);
    Block *b = arena_dup(e->c->scratch, e->l->blocks.at[s->aux - 1], sizeof *b); // its waits are this core's
    *o = (BlockOp){.e = e, .s = s, .b = b};
    o->r = rows_begin(e, s, b);
    assert(o->r);
    o->r->pro_bytes = b->pro[0].banks * BANK_BYTES;
    o->r->block_op = o;
    emit_join(e, LANE_ROWS);
    rows_open(o->r);
    share(o, false);
    int64_t lo, hi, per = blocks_of(b->m);
    emit_share(e, b->batches, 1, &lo, &hi);
    o->first = lo * per;
    for (int64_t i = lo * per; i < hi * per; i++) {
        Tile t = tile_at(o, i);
        emit_task(e);
        o->r->pro_copy = (uint32_t)((i - o->first) % b->pro_copies);
        o->tile = t;
        load_panels(o, &t);
        assert(o->r->set == t.set);
        o->r->tile_cols = (uint32_t)t.n;
        rows_tile(o->r, t.batch * b->m + t.row, t.m);
        behind(o, &t);
    }
    rows_close(o->r);
    share(o, true);
    emit_join(e, LANE_ROWS);
}
