// SPDX-License-Identifier: Apache-2.0
// block_emit.c — a row program between products, tile by tile of 128 rows.
//
// The operands of a batch lie in SBUF, turned by the array where transfers cannot; products before the program leave its operands in PSUM, where it reads them. What
// a product behind contracts must lie on the partitions: columns are turned by the array first, rows lie there already
// and add up over the tiles of a batch in PSUM. Long rows come in chunks of columns, inside a tile of rows or around all of them;
// around a part of them where SBUF has no room for the sums of all, and what PSUM then holds waits in HBM for the next part.
// sched.c weaves neighbouring tiles together.
#include <assert.h>

#include "mach/price.h"
#include "tile/block.h"

#define PARTS 128
#define BANK_COLS 512u
#define BANK_BYTES PSUM_BANK_BYTES

typedef struct Tile {
    int64_t batch, row; // first row inside the batch
    uint32_t m, set, index; // rows; set of slots that holds them; number inside the batch
    int64_t c0, n;      // columns: first, how many of them count
    int64_t cols;       // … of the chunk for any row
    bool first, last;   // chunk of columns of these rows
    bool end;           // last rows of the batch
    int64_t row0, rows; // its chunk of rows: first row, how many
    bool chunk_last;
    uint32_t unit[3];   // panels of its batch, rows, columns: how many came before
    bool fresh[3];      // … and these are new
} Tile;

typedef struct BlockOp {
    Emit *e;
    const Step *s;
    Block *b;
    RowOp *r;
    uint32_t turns, stages; // banks of values, and panels, turned so far
    uint32_t chunks, behind; // made so far; turned for products behind
    uint32_t unit[3];
    int64_t key[3];         // of the latest panels
    Tile tile;              // in work
} BlockOp;

enum { UNIT_BATCH, UNIT_ROWS, UNIT_COLS };

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static uint32_t blocks_of(int64_t n) { return (uint32_t)((n + PARTS - 1) / PARTS); }
static uint32_t in_part(const Block *b, uint32_t index) { return index % blocks_of(b->part); } // a tile's number inside its part

// --- operands ----------------------------------------------------------------------------------------

// The engine that is through with the instruction first.
static void put_lighter(BlockOp *o, IsaInst in, Haz *const *reads, uint32_t n, Haz *write) {
    static const uint8_t engines[2] = {ENG_VECTOR, ENG_SCALAR};
    double *busy = o->r->busy, best = 0;
    for (int k = 0; k < 2; k++) {
        Price price;
        IsaInst on = in;
        on.engine = engines[k];
        price_alone(o->e->chip, NULL, &on, &price);
        double done = busy[on.engine] + (double)price.busy * 1e-3;
        if (!k || done < best)
            best = done, in.engine = on.engine;
    }
    busy[in.engine] = best;
    emit_inst(o->e, in, reads, n, &write, 1);
}

static void copy_out(BlockOp *o, uint64_t src, int stype, Haz *shaz, uint64_t dst, int dtype, Haz *dhaz, uint32_t parts,
                     uint32_t runs, uint32_t n, int32_t sstride, int32_t dstride) {
    IsaInst cp = {.op = ISA_COPY, .src = src, .stype = (uint8_t)stype, .dst = dst, .dtype = (uint8_t)dtype};
    cp.n[0] = parts, cp.n[1] = runs, cp.n[2] = n;
    cp.s[1] = sstride, cp.d[1] = dstride, cp.s[2] = cp.d[2] = 1;
    put_lighter(o, cp, &shaz, 1, dhaz);
}

static uint32_t unit_of(const Panel *p) { return p->part == PANEL_ALL ? UNIT_BATCH : p->part < COLS_FREE ? UNIT_ROWS : UNIT_COLS; }

static uint32_t panel_copy(const BlockOp *o, const Panel *p, const Tile *t) { return t->unit[unit_of(p)] % o->b->panel_copies; }

// What is loaded of a panel: all of the batch, or the chunk's rows or columns.
static Side panel_part(const Panel *p, const Tile *t, int64_t *offset) {
    Side part = p->at;
    *offset = side_batch_offset(&p->at, t->batch);
    if (p->part == PANEL_ALL)
        return part;
    bool k = p->part == ROWS_K || p->part == COLS_K, rows = p->part < COLS_FREE;
    *(k ? &part.k_size : &part.free_size) = rows ? t->rows : t->cols;
    *offset += (rows ? t->row0 : t->c0) * (k ? part.k_stride : part.free_stride);
    return part;
}

static int64_t panel_pitch(const BlockOp *o, const Panel *p) { // columns of a tile of k
    return p->part == ROWS_FREE ? min64(p->at.free_size, o->b->chunk) : p->part == COLS_FREE ? min64(p->at.free_size, o->b->width) : p->at.free_size;
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
    if (!t->fresh[unit_of(p)])
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

static int64_t column_in(const Panel *p, const Tile *t) { return p->part == PANEL_ALL ? t->c0 : 0; } // of the panel

void block_make(BlockOp *o, uint32_t operand) {
    Block *b = o->b;
    const Tile *t = &o->tile;
    uint32_t copy = o->r->pro_copy;
    assert(copy < PRO_COPIES);
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
                         panel_at(o, &d->rhs, d->dtype, t, k / PARTS, column_in(&d->rhs, t) + c), (uint32_t)min64(BANK_COLS, t->n - c),
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

// Which of the places for turned values, and of PSUM for what they are multiplied into.
static uint32_t turned_copy(const BlockOp *o, uint32_t slot) { return slot * o->b->turn_copies + o->behind % o->b->turn_copies; }
static uint32_t out_copy(const BlockOp *o, const Tile *t) {
    return (o->b->by_columns ? o->behind : (uint32_t)(t->batch * blocks_of(o->b->m)) + t->index) % o->b->out_copies;
}

static uint64_t turned_at(const BlockOp *o, uint32_t slot, uint64_t bytes) {
    return addr_sbuf(0, (uint32_t)(o->b->turn_sbuf + turned_copy(o, slot) * o->b->turn_bytes + bytes));
}

// The tile's value with columns on the partitions: [column tile][row].
static void turn(BlockOp *o, const Tile *t, const BlockDot *d, uint32_t slot) {
    Block *b = o->b;
    size_t size = dtype_bytes(d->dtype);
    Haz *from, *to = &b->turned_haz[turned_copy(o, slot)];
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
        uint64_t sbuf = turned_at(o, slot, k0 * PARTS * size);
        bool whole = t->m == PARTS; // then tiles follow each other
        if (full)
            copy_out(o, psum, d->dtype, bhaz, sbuf, d->dtype, to, PARTS, whole ? 1 : full, whole ? full * PARTS : t->m, PARTS, PARTS);
        if (full < count)
            copy_out(o, psum + full * PARTS * size, d->dtype, bhaz, sbuf + full * PARTS * size, d->dtype, to, rest, 1, t->m,
                     PARTS, PARTS);
    }
}

static int64_t gathered_rows(const Block *b, const BlockDot *d) { return d->over_rows ? b->width : b->by_columns ? PARTS : b->chunk; }

static uint32_t gather_copy(const BlockOp *o, const BlockDot *d, const Tile *t) {
    return (d->over_rows ? t->unit[o->b->by_columns ? UNIT_COLS : UNIT_BATCH] : o->b->by_columns ? t->index : t->unit[UNIT_ROWS]) % 2;
}

static uint64_t gather_at(const BlockOp *o, const BlockDot *d, const Tile *t, uint64_t elems) {
    return addr_sbuf(0, (uint32_t)(d->out_sbuf + gather_copy(o, d, t) * d->out_bytes + elems * dtype_bytes(d->otype)));
}

static void over_columns(BlockOp *o, const Tile *t, BlockDot *d, uint32_t slot) {
    Block *b = o->b;
    size_t size = dtype_bytes(d->dtype);
    uint64_t dst = addr_psum(0, (d->bank + out_copy(o, t)) * BANK_BYTES);
    Haz *ohaz = panel_haz(o, &d->rhs, t), *thaz = &b->turned_haz[turned_copy(o, slot)], *bhaz = &d->bank_haz[out_copy(o, t)];
    for (uint32_t k = 0; k < blocks_of(t->n); k++) {
        uint32_t rows = (uint32_t)min64(PARTS, t->n - (int64_t)k * PARTS);
        int64_t tile = column_in(&d->rhs, t) / PARTS + k;
        bool more = k > 0 || (!b->by_columns && !t->first);
        for (int64_t c = 0; c < d->d && d->turned; c += PARTS)
            multiply(o, d->dtype, rows, panel_at(o, &d->rhs, d->dtype, t, tile, c), (uint32_t)min64(PARTS, d->d - c), ohaz,
                     turned_at(o, slot, k * PARTS * size), t->m, thaz, dst + (uint64_t)c * 4, bhaz, more);
        if (!d->turned)
            multiply(o, d->dtype, rows, turned_at(o, slot, k * PARTS * size), t->m, thaz, panel_at(o, &d->rhs, d->dtype, t, tile, 0),
                     (uint32_t)d->d, ohaz, dst, bhaz, more);
    }
}

// One tile of a result over columns: PSUM times the number per row, or plus what its earlier columns gave.
static void take_tile(BlockOp *o, const Tile *t, BlockDot *d, uint64_t dst, int dtype, Haz *haz, uint64_t sum, uint64_t psum, uint32_t parts, uint32_t n) {
    Haz *bhaz = &d->bank_haz[out_copy(o, t)], *reads[2] = {bhaz};
    if (!d->scale && !sum) {
        copy_out(o, psum, DT_F32, bhaz, dst, dtype, haz, parts, 1, n, 1, 1);
        return;
    }
    IsaInst in = {.op = sum ? ISA_TENSOR_TENSOR : ISA_TENSOR_SCALAR, .engine = ENG_VECTOR, .src = psum, .stype = DT_F32, .dst = dst,
                  .dtype = (uint8_t)dtype, .op0 = sum ? ALU_ADD : ALU_MUL};
    in.n[0] = parts, in.n[1] = n, in.s[1] = in.d[1] = 1;
    if (sum) {
        in.src1 = sum, in.ttype = DT_F32, in.t[1] = 1, reads[1] = &d->sum_haz[in_part(o->b, t->index)];
    } else {
        Arg c = rows_arg(o->r, d->scale - 1, false), inverse = rows_beside(o->r, &c, 1);
        in.a = inverse.addr, in.atype = inverse.dtype, reads[1] = c.haz;
    }
    rows_put(o->r, in, reads, 2, haz);
}

static void take_columns(BlockOp *o, const Tile *t, BlockDot *d) {
    Block *b = o->b;
    uint64_t psum = addr_psum(0, (d->bank + out_copy(o, t)) * BANK_BYTES);
    bool out = !b->by_columns || t->last;
    int64_t tile = b->by_columns ? 0 : (t->row - t->row0) / PARTS;
    uint32_t index = in_part(b, t->index);
    Haz *haz = out ? &d->out_haz[gather_copy(o, d, t)] : &d->sum_haz[index];
    for (int64_t c = 0; c < d->d; c += d->turned ? PARTS : d->d) {
        uint32_t parts = d->turned ? (uint32_t)min64(PARTS, d->d - c) : t->m, n = d->turned ? t->m : (uint32_t)d->d;
        uint64_t sum = addr_sbuf(0, d->sum_sbuf + (uint32_t)(d->turned ? c / PARTS * b->part + index * PARTS : index * d->d) * 4);
        uint64_t to = gather_at(o, d, t, (uint64_t)(d->turned ? c / PARTS * gathered_rows(b, d) + tile * PARTS : tile * d->d));
        take_tile(o, t, d, out ? to : sum, out ? d->otype : DT_F32, haz, b->by_columns && !t->first ? sum : 0, psum + (uint64_t)c * 4, parts, n);
    }
}

// The first tile of rows for which a tile of columns counts.
static uint32_t first_tile(const Block *b, int64_t k) {
    uint32_t t = 0;
    while (b->masked.widths && b->masked.widths[t] <= k * PARTS)
        t++;
    return t;
}

// Where rows f… of a result with the columns last gather.
static uint32_t turned_bank(const Block *b, const BlockDot *d, int64_t f) {
    return d->bank + (uint32_t)(f / PARTS) * (uint32_t)((b->width + BANK_COLS - 1) / BANK_COLS);
}

static void over_rows(BlockOp *o, const Tile *t, BlockDot *d) {
    Block *b = o->b;
    size_t size = dtype_bytes(d->dtype);
    Haz *vhaz, *ohaz = panel_haz(o, &d->rhs, t), *bhaz = &d->bank_haz[0];
    uint64_t value = value_at(o, t, d->index, &vhaz), other = panel_at(o, &d->rhs, d->dtype, t, (t->row - t->row0) / PARTS, 0);
    if (d->turned) {
        for (int64_t f = 0; f < d->d; f += PARTS)
            for (int64_t c = 0; c < t->cols; c += BANK_COLS)
                multiply(o, d->dtype, t->m, other + (uint64_t)f * size, (uint32_t)min64(PARTS, d->d - f), ohaz,
                         value + (uint64_t)c * size, (uint32_t)min64(BANK_COLS, t->cols - c), vhaz,
                         addr_psum(0, turned_bank(b, d, f) * BANK_BYTES + (uint32_t)c * 4), bhaz, t->row > 0);
        return;
    }
    uint32_t each = BANK_COLS / (uint32_t)d->d;
    for (uint32_t k = 0; k < blocks_of(t->n); k++)
        multiply(o, d->dtype, t->m, value + k * PARTS * size, (uint32_t)min64(PARTS, t->n - (int64_t)k * PARTS), vhaz, other, (uint32_t)d->d,
                 ohaz, addr_psum(0, (d->bank + k / each) * BANK_BYTES + k % each * (uint32_t)d->d * 4), bhaz,
                 t->index > first_tile(b, t->c0 / PARTS + k));
}

// Sums over rows of a chunk of columns lie in banks, and in SBUF one behind the other.
typedef struct SumRun {
    uint64_t psum;
    uint32_t elem, parts, n; // first element of a partition in SBUF
} SumRun;

#define SUM_RUNS 16

static uint32_t sum_runs(const Block *b, const BlockDot *d, int64_t cols, SumRun *out) {
    uint32_t n = 0, wide = (uint32_t)d->d, each = BANK_COLS / wide, tiles = blocks_of(cols);
    for (int64_t f = 0; f < d->d && d->turned; f += PARTS)
        out[n++] = (SumRun){addr_psum(0, turned_bank(b, d, f) * BANK_BYTES), (uint32_t)(f / PARTS * b->width), (uint32_t)min64(PARTS, d->d - f), (uint32_t)cols};
    for (uint32_t k = 0; k < tiles && !d->turned; k += each) {
        uint32_t count = tiles - k < each ? tiles - k : each, full = (uint32_t)min64(count, cols / PARTS - k), bank = (d->bank + k / each) * BANK_BYTES;
        if (full)
            out[n++] = (SumRun){addr_psum(0, bank), k * wide, PARTS, full * wide};
        if (full < count)
            out[n++] = (SumRun){addr_psum(0, bank + full * wide * 4), (k + full) * wide, (uint32_t)(cols % PARTS), wide};
    }
    assert(n <= SUM_RUNS);
    return n;
}

static void take_rows(BlockOp *o, const Tile *t, BlockDot *d) {
    SumRun run[SUM_RUNS];
    uint32_t n = sum_runs(o->b, d, t->cols, run);
    for (uint32_t i = 0; i < n; i++)
        copy_out(o, run[i].psum, DT_F32, &d->bank_haz[0], gather_at(o, d, t, run[i].elem), d->otype, &d->out_haz[gather_copy(o, d, t)], run[i].parts, 1,
                 run[i].n, 1, 1);
}

// Sums of so many columns, over the rows of parts so far, go to HBM, or come back: terms add up in the order they would without parts.
static void hold_sums(BlockOp *o, BlockDot *d, int64_t c0, int64_t cols, bool back) {
    const Block *b = o->b;
    uint32_t chunk = (uint32_t)(c0 / b->width), at = d->hold_sbuf + back * d->hold_bytes;
    uint64_t chunks = (uint64_t)((b->n + b->width - 1) / b->width);
    uint64_t hbm = emit_addr(o->e, o->e->l->refs.at[o->s->outs + d->hold]) + ((uint64_t)o->e->part * chunks + chunk) * PARTS * d->hold_bytes;
    Haz *haz = &d->hold_haz[back], *held = &d->held_haz[chunk];
    SumRun run[SUM_RUNS];
    assert(d->over_rows && d->hold_bytes && o->e->part < 2);
    emit_loc(o->e, d->op);
    uint32_t n = sum_runs(b, d, cols, run);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t sbuf = addr_sbuf(0, at + run[i].elem * 4), far = hbm + run[i].elem * 4;
        IsaInst dma = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = back ? QUEUE_IN : QUEUE_OUT, .stype = DT_F32, .src = back ? far : sbuf, .dst = back ? sbuf : far};
        dma.n[0] = run[i].parts, dma.n[1] = 1, dma.n[2] = run[i].n, dma.s[2] = dma.d[2] = 1;
        *(back ? &dma.s[0] : &dma.d[0]) = (int32_t)(d->hold_bytes / 4);
        if (!back)
            copy_out(o, run[i].psum, DT_F32, &d->bank_haz[0], sbuf, DT_F32, haz, run[i].parts, 1, run[i].n, 1, 1);
        emit_inst(o->e, dma, (Haz *[]){back ? held : haz}, 1, (Haz *[]){back ? haz : held}, 1);
        if (back)
            copy_out(o, sbuf, DT_F32, haz, run[i].psum, DT_F32, &d->bank_haz[0], run[i].parts, 1, run[i].n, 1, 1);
    }
}

static void hold_all(BlockOp *o, int64_t c0, int64_t cols, bool back) {
    emit_task(o->e);
    for (uint32_t i = 0; i < o->b->nepi; i++)
        if (o->b->epi[i].over_rows)
            hold_sums(o, &o->b->epi[i], c0, cols, back);
}

// What gathered of a result: [rows][d] with rows on the partitions in tiles, or turned [d][rows].
static void store_gathered(BlockOp *o, const Tile *t, BlockDot *d) {
    Block *b = o->b;
    bool tile = !d->over_rows && b->by_columns;
    int64_t row0 = d->over_rows ? t->c0 : tile ? t->row : t->row0;
    int64_t rows = d->over_rows ? t->cols : tile ? t->m : t->rows, full = rows / PARTS, rest = rows % PARTS;
    size_t size = dtype_bytes(d->otype);
    IsaInst out = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_OUT, .stype = d->otype};
    int64_t pitch = d->lies.free_stride; // of the result's rows, which are d's where it is turned
    uint64_t to = emit_addr(o->e, o->e->l->refs.at[o->s->outs + d->out]) +
                  (uint64_t)(side_batch_offset(&d->lies, t->batch) + row0 * (d->turned ? 1 : pitch)) * size;
    Haz *haz = &d->out_haz[gather_copy(o, d, t)];
    out.d[2] = out.s[2] = 1;
    for (int64_t f = 0; f < d->d && d->turned; f += PARTS) {
        out.dst = to + (uint64_t)(f * pitch) * size;
        out.src = gather_at(o, d, t, (uint64_t)(f / PARTS * gathered_rows(b, d)));
        out.n[0] = (uint32_t)min64(PARTS, d->d - f), out.n[1] = 1, out.n[2] = (uint32_t)rows, out.d[0] = (int32_t)pitch;
        emit_inst(o->e, out, (Haz *[]){haz}, 1, NULL, 0);
    }
    if (d->turned)
        return;
    out.d[0] = (int32_t)pitch, out.d[1] = (int32_t)(PARTS * pitch), out.s[1] = (int32_t)d->d;
    out.n[2] = (uint32_t)d->d;
    if (full) {
        out.dst = to, out.src = gather_at(o, d, t, 0);
        out.n[0] = PARTS, out.n[1] = (uint32_t)full;
        emit_inst(o->e, out, (Haz *[]){haz}, 1, NULL, 0);
    }
    if (rest) {
        out.dst = to + (uint64_t)(full * PARTS * pitch) * size, out.src = gather_at(o, d, t, (uint64_t)(full * d->d));
        out.n[0] = (uint32_t)rest, out.n[1] = 1, out.d[1] = out.s[1] = 0;
        emit_inst(o->e, out, (Haz *[]){haz}, 1, NULL, 0);
    }
}

// A result that is complete with the tile, or with this chunk of it, leaves PSUM.
static void take(BlockOp *o, const Tile *t, BlockDot *d) {
    emit_loc(o->e, d->op);
    if (d->over_rows && t->end)
        take_rows(o, t, d);
    else if (!d->over_rows)
        take_columns(o, t, d);
    if (d->over_rows ? t->end : o->b->by_columns ? t->last : t->chunk_last)
        store_gathered(o, t, d);
}

// The products behind; `takes`: what else their results need is there.
static void behind(BlockOp *o, const Tile *t, bool takes) {
    Block *b = o->b;
    o->behind++;
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
        if (takes)
            take(o, t, d);
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

static void share_behind(BlockOp *o, BlockDot *d, bool out) {
    Block *b = o->b;
    area(o, d->rhs.haz, b->panel_copies, d->rhs.sbuf, d->rhs.bytes, out);
    area(o, d->out_haz, 2, d->out_sbuf, d->out_bytes, out);
    for (uint32_t k = 0; k < (d->over_rows ? 1 : b->out_copies); k++)
        banks(o, &d->bank_haz[k], d->bank + k * d->banks, d->banks, out);
    uint32_t tiles = d->sum_bytes ? blocks_of(b->part) : 0;
    area(o, d->hold_haz, 2, d->hold_sbuf, d->hold_bytes, out);
    if (tiles && !out)
        d->sum_haz = ARENA_NEWN(o->e->c->scratch, Haz, tiles);
    if (d->hold_bytes && !out)
        d->held_haz = ARENA_NEWN(o->e->c->scratch, Haz, (size_t)((b->n + b->width - 1) / b->width));
    for (uint32_t k = 0; k < tiles; k++) // turned ones are not told apart by address
        emit_area(o->e, &d->sum_haz[k], d->turned ? d->sum_sbuf : d->sum_sbuf + k * (uint32_t)d->d * 4, d->turned ? d->sum_bytes : (uint32_t)d->d * 4, out);
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
        share_behind(o, &b->epi[i], out);
        if (!b->epi[i].over_rows && block_turned_slot(b, i) + 1 > turned)
            turned = block_turned_slot(b, i) + 1;
    }
    area(o, b->turned_haz, turned * b->turn_copies, b->turn_sbuf, b->turn_bytes, out);
    area(o, b->stage_haz, 2, b->stage_sbuf, b->stage_bytes, out);
    for (uint32_t i = 0; (turned || b->stage_bytes) && i < b->turn_banks; i++)
        banks(o, &b->turn_haz[i], b->turn_bank + i, 1, out);
}

static int64_t width_of(const Block *b, uint32_t index) { return b->masked.widths ? b->masked.widths[index] : b->n; }

// Rows `index` of a batch and the chunk of columns from c0 on, in a pass; brings the panels it needs.
static void take_up(BlockOp *o, int64_t batch, uint32_t index, uint32_t pass, int64_t c0) {
    const Block *b = o->b;
    int64_t row = index * (int64_t)PARTS, chunk = row / b->chunk, row0 = chunk * b->chunk, rows = min64(b->chunk, b->m - row0), n = width_of(b, index);
    int64_t parts = (b->m + b->part - 1) / b->part, part = batch * parts + row / b->part;
    int64_t outer = b->by_columns ? (part * (o->r->levels + 1) + pass) * b->n + c0 : batch;
    int64_t key[3] = {batch, chunk + (b->chunk < b->part ? outer : batch) * b->m, outer};
    o->tile = (Tile){.batch = batch, .row = row, .m = (uint32_t)min64(PARTS, b->m - row), .index = index, .set = o->r->set, .c0 = c0,
                     .n = min64(b->width, n - c0), .cols = min64(b->width, b->n - c0), .first = c0 == 0, .last = c0 + b->width >= n,
                     .end = row + PARTS >= b->m, .row0 = row0, .rows = rows, .chunk_last = row + PARTS >= row0 + rows};
    for (int i = 0; i < 3; i++) {
        o->tile.fresh[i] = key[i] > o->key[i];
        o->unit[i] += o->tile.fresh[i];
        o->tile.unit[i] = o->unit[i] - (key[i] < o->key[i]); // of the one before, in a pipeline
        o->key[i] = o->tile.fresh[i] ? key[i] : o->key[i];
    }
    load_panels(o, &o->tile);
    o->r->pro_copy = o->chunks++ % b->pro_copies;
}

static void emit_whole(BlockOp *o, int64_t batch, uint32_t index) {
    emit_task(o->e);
    take_up(o, batch, index, 0, 0);
    o->r->tile_cols = (uint32_t)o->tile.n;
    rows_tile(o->r, batch * o->b->m + o->tile.row, o->tile.m);
    o->r->column_set = (o->r->column_set + o->r->sets - 1) % o->r->sets; // numbers per row are still this tile's
    behind(o, &o->tile, true);
    o->r->column_set = o->r->set;
}

static void emit_chunk(BlockOp *o, int64_t batch, uint32_t index, uint32_t pass, int64_t c0) {
    RowOp *r = o->r;
    const Block *b = o->b;
    emit_task(o->e);
    take_up(o, batch, index, pass, c0);
    bool masked = !b->masked.clear || c0 + o->tile.n > b->masked.clear[index];
    r->chunk = (uint32_t)(c0 / b->width), r->chunks = (uint32_t)((width_of(b, index) + b->width - 1) / b->width);
    r->m = o->tile.m;
    bool used = rows_chunk(r, pass, masked, batch * b->m + o->tile.row, c0, (uint32_t)o->tile.n);
    if (pass == r->levels)
        behind(o, &o->tile, b->by_columns);
    r->set = (r->set + used) % r->sets;
}

static uint32_t column_set(const BlockOp *o, int64_t batch, uint32_t index) {
    return (uint32_t)((o->b->by_columns ? in_part(o->b, index) : batch * blocks_of(o->b->m) + index) % o->r->column_sets);
}

static void begin_pass(BlockOp *o, int64_t batch, uint32_t index, uint32_t pass) {
    int64_t row = index * (int64_t)PARTS;
    o->r->column_set = column_set(o, batch, index);
    emit_task(o->e);
    rows_pass_begin(o->r, pass, batch * o->b->m + row, (uint32_t)min64(PARTS, o->b->m - row));
}

static void end_pass(BlockOp *o, int64_t batch, uint32_t index, uint32_t pass) {
    const Block *b = o->b;
    int64_t row = index * (int64_t)PARTS;
    o->r->column_set = column_set(o, batch, index), o->r->m = (uint32_t)min64(PARTS, b->m - row);
    o->r->chunks = (uint32_t)((width_of(b, index) + b->width - 1) / b->width);
    rows_pass_end(o->r, pass);
    if (pass == o->r->levels)
        rows_tile_end(o->r, batch * b->m + row);
}

// One chunk of a pass over a tile, counted over all batches; chunks of a tile come in order.
static void emit_step(BlockOp *o, int64_t number, uint32_t pass, int64_t c0) {
    const Block *b = o->b;
    uint32_t tiles = blocks_of(b->m), index = (uint32_t)(number % tiles);
    int64_t batch = number / tiles;
    if (c0 == 0)
        begin_pass(o, batch, index, pass);
    o->r->column_set = column_set(o, batch, index);
    emit_chunk(o, batch, index, pass, c0);
    if (c0 + b->width < width_of(b, index))
        return;
    end_pass(o, batch, index, pass);
    for (uint32_t i = 0; i < b->nepi && pass == o->r->levels; i++)
        take(o, &o->tile, &o->b->epi[i]);
}

// Tiles [from, to) as a pipeline: a pass over one beside the pass before it over the next.
static void emit_rows_first(BlockOp *o, int64_t from, int64_t to) {
    const Block *b = o->b;
    int64_t tiles = blocks_of(b->m), last = o->r->levels;
    for (int64_t i = from; i < to + last; i++)
        for (int64_t c0 = 0; c0 < b->n; c0 += b->width)
            for (int64_t pass = last; pass >= 0; pass--) {
                int64_t number = i - pass;
                if (number >= from && number < to && c0 < width_of(b, (uint32_t)(number % tiles)))
                    emit_step(o, number, (uint32_t)pass, c0);
            }
}

// Tiles that go through the pipeline together: those of all batches, where the panels of two are there.
static int64_t pipeline_tiles(const BlockOp *o, int64_t all) {
    const Block *b = o->b;
    int64_t unit = blocks_of(b->chunk < b->m ? b->chunk : b->m);
    return b->panel_copies > 1 && blocks_of(b->m) % unit == 0 && unit > o->r->levels ? all : unit;
}

// How many columns of the chunk one of the tiles has.
static int64_t reach(const Block *b, uint32_t from, uint32_t to, int64_t c0) {
    int64_t most = 0;
    for (uint32_t i = from; i < to; i++)
        most = width_of(b, i) > most ? width_of(b, i) : most;
    return most > c0 ? min64(b->width, most - c0) : 0;
}

// A chunk of columns for tiles [from, to) of the rows.
static void emit_columns(BlockOp *o, int64_t batch, uint32_t pass, int64_t c0, uint32_t from, uint32_t to) {
    const Block *b = o->b;
    bool sums = pass == o->r->levels && reach(b, from, to, c0);
    int64_t before = reach(b, 0, from, c0);
    assert(to < blocks_of(b->m) || sums || pass < o->r->levels);
    if (sums && before)
        hold_all(o, c0, before, true);
    for (uint32_t i = from; i < to; i++) {
        if (width_of(b, i) <= c0)
            continue;
        o->r->column_set = column_set(o, batch, i);
        emit_chunk(o, batch, i, pass, c0);
    }
    if (sums && to < blocks_of(b->m))
        hold_all(o, c0, reach(b, 0, to, c0), false);
}

static void emit_columns_first(BlockOp *o, int64_t batch, uint32_t from, uint32_t to) {
    for (uint32_t pass = 0; pass <= o->r->levels; pass++) {
        for (uint32_t i = from; i < to; i++)
            begin_pass(o, batch, i, pass);
        for (int64_t c0 = 0; c0 < o->b->n; c0 += o->b->width)
            emit_columns(o, batch, pass, c0, from, to);
        for (uint32_t i = from; i < to; i++)
            end_pass(o, batch, i, pass);
    }
}

void emit_block(Emit *e, const Step *s) {
    BlockOp *o = ARENA_NEW(e->c->scratch, BlockOp);
    Block *b = arena_dup(e->c->scratch, e->l->blocks.at[s->aux - 1], sizeof *b); // its waits are this core's
    *o = (BlockOp){.e = e, .s = s, .b = b, .key = {-1, -1, -1}};
    o->r = rows_begin(e, s, b);
    assert(o->r);
    o->r->pro_bytes = b->pro[0].banks * BANK_BYTES;
    o->r->block_op = o;
    emit_join(e, LANE_ROWS);
    rows_open(o->r);
    share(o, false);
    int64_t lo, hi;
    emit_share(e, b->batches, 1, &lo, &hi);
    for (int64_t batch = lo; batch < hi; batch++) {
        for (uint32_t i = 0; i < blocks_of(b->m) && b->width == b->n; i++)
            emit_whole(o, batch, i);
        for (int64_t row = 0; row < b->m && b->by_columns; row += b->part)
            emit_columns_first(o, batch, blocks_of(row), blocks_of(min64(row + b->part, b->m)));
    }
    int64_t tiles = blocks_of(b->m), each = pipeline_tiles(o, (hi - lo) * tiles);
    for (int64_t i = lo * tiles; i < hi * tiles && b->width < b->n && !b->by_columns; i += each)
        emit_rows_first(o, i, min64(i + each, (each < tiles ? (i / tiles + 1) : hi) * tiles));
    rows_close(o->r);
    share(o, true);
    emit_join(e, LANE_ROWS);
}
