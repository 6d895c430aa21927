// SPDX-License-Identifier: Apache-2.0
// block_emit.c — a row program between products, tile by tile of 128 rows.
//
// The operands of a batch lie in SBUF, turned by the array where transfers cannot; products before the program leave its operands in PSUM, where it reads them. What
// a product behind contracts must lie on the partitions: columns are turned by the array first, rows lie there already
// and add up over the tiles of a batch in PSUM. Long rows come in chunks of columns, inside a tile of rows or around all of them;
// around a part of them where SBUF has no room for the sums of all, and what PSUM then holds waits in HBM for the next part.
// Of batches that are one tile each several go together: side by side in every partition, so that an instruction has enough to do.
// sched.c weaves neighbouring tiles together.
#include <assert.h>

#include "tile/block.h"
#include "tile/area.h"

typedef struct Tile {
    int64_t batch, row; // the first of those together; first row inside it
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
    Area area;
    uint32_t chunks, behind; // made so far; turned for products behind
    uint32_t unit[3];
    int64_t key[3];         // of the latest panels
    Tile tile;              // in work
} BlockOp;

enum { UNIT_BATCH, UNIT_ROWS, UNIT_COLS };

static uint32_t in_part(const Block *b, uint32_t index) { return index % block_tiles(b->part); } // a tile's number inside its part

// --- operands ----------------------------------------------------------------------------------------

static uint32_t unit_of(const Panel *p) { return p->part == PANEL_ALL ? UNIT_BATCH : p->part < COLS_FREE ? UNIT_ROWS : UNIT_COLS; }

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

// Of batch g of the tile columns [free, free + cols) of a tile of k, of which there are `rows`.
static View panel_view(const BlockOp *o, const Panel *p, const Tile *t, int64_t g, int64_t tile, int64_t rows, int64_t free, int64_t cols) {
    Mem copy = ring_at(&p->copies, t->unit[unit_of(p)] % o->b->panel_copies);
    int64_t at = (tile * o->b->together + g) * panel_pitch(o, p) + free;
    return VIEW(mem_off(copy, at * (int64_t)dtype_bytes(p->dtype)), p->dtype, {rows}, {cols, 1});
}

// How many of the tile's batches from g on lie equally far apart, and how far.
static int64_t batches_alike(const BlockOp *o, const Side *s, const Tile *t, int64_t g, int64_t *apart) {
    int64_t n = 1, at = side_batch_offset(s, t->batch + g);
    *apart = g + 1 < o->b->together ? side_batch_offset(s, t->batch + g + 1) - at : 0;
    while (g + n < o->b->together && *apart >= 0 && side_batch_offset(s, t->batch + g + n) - at == n * *apart)
        n++;
    return n;
}

// A matrix of every batch of the tile, which lie as the side says, that of the first at `hbm`; in SBUF columns of the batches are side by side in
// each tile of rows, `pitch` apart.
static void move_batches(BlockOp *o, int queue, bool loads, const Side *side, const Tile *t, Matrix m, int64_t pitch, int dtype, uint64_t hbm, Mem sbuf) {
    int64_t size = (int64_t)dtype_bytes(dtype), first = side_batch_offset(side, t->batch), apart;
    for (int64_t g = 0, n; g < o->b->together; g += n) {
        n = batches_alike(o, side, t, g, &apart);
        assert(n == 1 || pitch == m.cols.size);
        Matrix all = {m.rows, layout_make()};
        layout_add(&all.cols, n, apart);
        layout_add(&all.cols, m.cols.size, m.cols.at[0].stride);
        Piece piece = {0, m.rows.size, 0, all.cols.size, PARTITIONS, o->b->together * pitch};
        matrix_put(o->e, queue, loads, &all, piece, dtype, hbm + (uint64_t)((side_batch_offset(side, t->batch + g) - first) * size), dtype, mem_off(sbuf, g * pitch * size));
    }
}

// A panel of up to 128 k that lies as [free][k]: rows come as they lie, and the array turns them tile by tile.
static void load_turned(BlockOp *o, Panel *p, const Tile *t, const Side *part, uint64_t from) {
    Mem stage = ring_next(&o->b->stages);
    int64_t size = (int64_t)dtype_bytes(p->dtype), k = part->k_size, rows = part->free_size, per = PSUM_BANK_BYTES / size;
    move_batches(o, QUEUE_IN, true, &p->at, t, matrix_plain(rows, part->free_stride, k, 1), k, p->dtype, from, stage);
    int64_t all = o->b->together;
    if (all > 1) { // no more than a bank holds
        for (int64_t g0 = 0, n = per / rows; g0 < all; g0 += n) {
            Mem bank = ring_next(&o->b->turns);
            n = min64(n, all - g0);
            for (int64_t g = 0; g < n; g++)
                put_transposes(o->e, p->dtype, mem_off(bank, g * rows * size), PARTITIONS, mem_off(stage, (g0 + g) * k * size), all * k, rows, PARTITIONS, k);
            put_evict(o->e, o->r->busy, panel_view(o, p, t, g0, 0, k, 0, n * rows), VIEW(bank, p->dtype, {k}, {n * rows, 1}));
        }
        return;
    }
    for (int64_t at = 0; at < rows; at += per) {
        Mem bank = ring_next(&o->b->turns);
        int64_t cols = min64(per, rows - at);
        put_transposes(o->e, p->dtype, bank, PARTITIONS, mem_off(stage, at / PARTITIONS * k * size), k, cols, PARTITIONS, k);
        put_evict(o->e, o->r->busy, panel_view(o, p, t, 0, 0, k, at, cols), VIEW(bank, p->dtype, {k}, {cols, 1}));
    }
}

static void load_panel(BlockOp *o, Panel *p, const Tile *t) {
    if (!t->fresh[unit_of(p)])
        return;
    int64_t offset;
    Side part = panel_part(p, t, &offset);
    uint64_t from = emit_addr(o->e, o->e->l->refs.at[o->s->ins + p->in]) + (uint64_t)offset * dtype_bytes(p->dtype);
    if (p->turned) {
        load_turned(o, p, t, &part, from);
        return;
    }
    Matrix m = matrix_plain(part.k_size, part.k_stride, part.free_size, part.free_stride); // k on the partitions
    move_batches(o, QUEUE_IN, true, &p->at, t, m, panel_pitch(o, p), p->dtype, from, panel_view(o, p, t, 0, 0, part.k_size, 0, part.free_size).mem);
}

// dst[cols of weights][cols of moving] (+)= weights^T moving, over k partitions.
static void multiply(BlockOp *o, View weights, View moving, Mem dst, bool accumulate) {
    put_weights(o->e, weights, 0);
    put_matmul(o->e, VIEW(dst, DT_F32, {weights.at[1].n}, {moving.at[1].n, 1}), moving, accumulate, 0);
}

// --- before ------------------------------------------------------------------------------------------

static void load_panels(BlockOp *o, const Tile *t) {
    Block *b = o->b;
    for (uint32_t i = 0; i < b->npro; i++) {
        emit_loc(o->e, b->pro[i].op);
        load_panel(o, &b->pro[i].rhs, t);
        load_panel(o, &b->pro[i].lhs, t);
    }
    for (uint32_t i = 0; i < b->nepi; i++) {
        emit_loc(o->e, b->epi[i].op);
        load_panel(o, &b->epi[i].rhs, t);
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

static void make_product(BlockOp *o, BlockDot *d, int64_t g, Mem to) {
    const Tile *t = &o->tile;
    for (int64_t c = 0; c < t->n; c += PSUM_BANK_COLS)
        for (int64_t k = 0; k < d->lhs.at.k_size; k += PARTITIONS) {
            int64_t rows = min64(PARTITIONS, d->lhs.at.k_size - k);
            multiply(o, panel_view(o, &d->lhs, t, g, k / PARTITIONS, rows, t->row - t->row0, t->m),
                     panel_view(o, &d->rhs, t, g, k / PARTITIONS, rows, column_in(&d->rhs, t) + c, min64(PSUM_BANK_COLS, t->n - c)), mem_off(to, c * 4), k > 0);
        }
}

void block_make(BlockOp *o, uint32_t operand) {
    Block *b = o->b;
    uint32_t copy = o->r->pro_copy;
    assert(copy < PRO_COPIES);
    for (uint32_t i = 0; i < b->npro; i++) {
        BlockDot *d = &b->pro[i];
        if (d->index != operand)
            continue;
        emit_loc(o->e, d->op);
        for (int64_t g = 0; g < b->together; g++)
            make_product(o, d, g, mem_off(ring_at(&d->psum, copy), g * b->n * 4));
    }
}

// --- behind ------------------------------------------------------------------------------------------

// Where the program left result `index` of the tile.
static Mem value_at(BlockOp *o, const Tile *t, uint32_t index) {
    const Hlo *h = o->e->l->h;
    const HloOp *ret = region_return(h, hlo_op_region(h, hlo_at(h, o->s->op), 0));
    uint32_t node = o->r->e->row_node[hlo_operand(h, ret, index)], set = o->r->set;
    o->r->set = t->set;
    Mem at = {.addr = rows_place(o->r, node), .haz = rows_haz(o->r, node)};
    o->r->set = set;
    return at;
}

// PSUM where a product behind adds up over columns.
static Mem out_bank(const BlockOp *o, const Tile *t, const BlockDot *d) {
    return ring_at(&d->psum, (o->b->by_columns ? o->behind : (uint32_t)(t->batch / o->b->together * block_tiles(o->b->m)) + t->index) % d->psum.n);
}

static Mem turned_at(const BlockOp *o, uint32_t slot) {
    return ring_at(&o->b->turned, slot * o->b->turn_copies + o->behind % o->b->turn_copies);
}

// Of batch g of the tile its value with columns on the partitions: [column tile][row].
static void turn(BlockOp *o, const Tile *t, const BlockDot *d, Mem from, Mem to) {
    int64_t tile = PARTITIONS * (int64_t)dtype_bytes(d->dtype), per = PSUM_BANK_BYTES / tile, n = block_tiles(t->n), rest = t->n % PARTITIONS;
    for (int64_t k0 = 0; k0 < n; k0 += per) {
        int64_t count = min64(per, n - k0), full = min64(count, t->n / PARTITIONS - k0);
        Mem bank = ring_next(&o->b->turns), at = mem_off(to, k0 * tile);
        for (int64_t k = 0; k < count; k++) {
            int64_t cols = k < full ? PARTITIONS : rest;
            put_transpose(o->e, VIEW(mem_off(bank, k * tile), d->dtype, {cols}, {t->m, 1}), VIEW(mem_off(from, (k0 + k) * tile), d->dtype, {t->m}, {cols, 1}));
        }
        if (full && t->m == PARTITIONS) // tiles follow each other
            put_evict(o->e, o->r->busy, VIEW(at, d->dtype, {PARTITIONS}, {full * PARTITIONS, 1}), VIEW(bank, d->dtype, {PARTITIONS}, {full * PARTITIONS, 1}));
        else if (full)
            put_evict(o->e, o->r->busy, VIEW(at, d->dtype, {PARTITIONS}, {full, PARTITIONS}, {t->m, 1}), VIEW(bank, d->dtype, {PARTITIONS}, {full, PARTITIONS}, {t->m, 1}));
        if (full < count)
            put_evict(o->e, o->r->busy, VIEW(mem_off(at, full * tile), d->dtype, {rest}, {t->m, 1}), VIEW(mem_off(bank, full * tile), d->dtype, {rest}, {t->m, 1}));
    }
}

// Batches of no more than 128 columns share banks.
static void turn_all(BlockOp *o, const Tile *t, const BlockDot *d, uint32_t slot) {
    Mem from = value_at(o, t, d->index), to = turned_at(o, slot);
    int64_t size = (int64_t)dtype_bytes(d->dtype), all = o->b->together, per = PSUM_BANK_BYTES / size / t->m;
    if (all == 1 || t->n > PARTITIONS) {
        for (int64_t g = 0; g < all; g++)
            turn(o, t, d, mem_off(from, g * t->n * size), mem_off(to, g * block_tiles(t->n) * PARTITIONS * size));
        return;
    }
    for (int64_t g0 = 0, n; g0 < all; g0 += n) {
        Mem bank = ring_next(&o->b->turns);
        n = min64(per, all - g0);
        for (int64_t g = 0; g < n; g++)
            put_transpose(o->e, VIEW(mem_off(bank, g * t->m * size), d->dtype, {t->n}, {t->m, 1}),
                          VIEW(mem_off(from, (g0 + g) * t->n * size), d->dtype, {t->m}, {t->n, 1}));
        put_evict(o->e, o->r->busy, VIEW(mem_off(to, g0 * t->m * size), d->dtype, {t->n}, {n * t->m, 1}), VIEW(bank, d->dtype, {t->n}, {n * t->m, 1}));
    }
}

static int64_t turned_elems(const BlockOp *o, const Tile *t) { // of a batch
    return o->b->together > 1 && t->n <= PARTITIONS ? t->m : block_tiles(t->n) * PARTITIONS;
}

static Mem gather_at(const BlockOp *o, const BlockDot *d, const Tile *t, int64_t elems) {
    bool columns = o->b->by_columns;
    uint32_t turn = d->over_rows ? t->unit[columns ? UNIT_COLS : UNIT_BATCH] : columns ? t->index : t->unit[UNIT_ROWS];
    return mem_off(ring_at(&d->outs, turn % o->b->gathers), elems * (int64_t)dtype_bytes(d->otype));
}

// Where columns [c, c + …) of the result of batch g lie in PSUM, or gather: [c][g][m] where it is turned, else [g][d].
static int64_t beside(const Block *b, const BlockDot *d, int64_t g, int64_t c, int64_t m) {
    return d->turned ? c / PARTITIONS * b->together * m + g * m : g * d->d;
}

static void over_columns(BlockOp *o, const Tile *t, BlockDot *d, int64_t g, uint32_t slot) {
    int64_t size = (int64_t)dtype_bytes(d->dtype), m = o->b->together > 1 ? t->m : PARTITIONS;
    Mem dst = out_bank(o, t, d);
    for (int64_t k = 0; k < block_tiles(t->n); k++) {
        int64_t rows = min64(PARTITIONS, t->n - k * PARTITIONS), at = column_in(&d->rhs, t) / PARTITIONS + k;
        bool more = k > 0 || (!o->b->by_columns && !t->first);
        View value = VIEW(mem_off(turned_at(o, slot), (g * turned_elems(o, t) + k * PARTITIONS) * size), d->dtype, {rows}, {t->m, 1});
        for (int64_t c = 0; c < d->d && d->turned; c += PARTITIONS)
            multiply(o, panel_view(o, &d->rhs, t, g, at, rows, c, min64(PARTITIONS, d->d - c)), value, mem_off(dst, beside(o->b, d, g, c, m) * 4), more);
        if (!d->turned)
            multiply(o, value, panel_view(o, &d->rhs, t, g, at, rows, 0, d->d), mem_off(dst, beside(o->b, d, g, 0, m) * 4), more);
    }
}

// One tile of a result over columns: PSUM times the number per row, or plus what its earlier columns gave.
static void take_tile(BlockOp *o, const BlockDot *d, int64_t g, View dst, View psum, const View *sum) {
    if (!d->scale && !sum) {
        put_evict(o->e, o->r->busy, dst, psum);
        return;
    }
    if (sum) {
        rows_put(o->r, isa_tensor_tensor(ENG_VECTOR, dst, psum, ALU_ADD, *sum), (Haz *[]){psum.mem.haz, sum->mem.haz}, 2, dst.mem.haz);
        return;
    }
    Arg c = rows_arg(o->r, d->scale - 1, false), inverse = rows_beside(o->r, &c, 1);
    IsaInst in = isa_tensor_scalar(ENG_VECTOR, dst, psum, ALU_MUL, (IsaScalar){inverse.addr + (uint64_t)g * 4, inverse.dtype}, 0, isa_none());
    rows_put(o->r, in, (Haz *[]){psum.mem.haz, c.haz}, 2, dst.mem.haz);
}

// A result over columns of all batches of the tile.
static void take_together(BlockOp *o, const Tile *t, BlockDot *d) {
    int64_t all = o->b->together, size = (int64_t)dtype_bytes(d->otype), each = d->scale ? 1 : all;
    for (int64_t c = 0; c < d->d; c += d->turned ? PARTITIONS : d->d)
        for (int64_t g = 0; g < all; g += each) {
            int64_t parts = d->turned ? min64(PARTITIONS, d->d - c) : t->m, n = each * (d->turned ? t->m : d->d), at = beside(o->b, d, g, c, t->m);
            take_tile(o, d, g, VIEW(mem_off(gather_at(o, d, t, 0), at * size), d->otype, {parts}, {n, 1}),
                      VIEW(mem_off(out_bank(o, t, d), at * 4), DT_F32, {parts}, {n, 1}), NULL);
        }
}

static void take_columns(BlockOp *o, const Tile *t, BlockDot *d) {
    Block *b = o->b;
    if (b->together > 1) {
        take_together(o, t, d);
        return;
    }
    bool out = !b->by_columns || t->last;
    int64_t tile = b->by_columns ? 0 : (t->row - t->row0) / PARTITIONS;
    uint32_t index = in_part(b, t->index);
    for (int64_t c = 0; c < d->d; c += d->turned ? PARTITIONS : d->d) {
        int64_t parts = d->turned ? min64(PARTITIONS, d->d - c) : t->m, n = d->turned ? t->m : d->d;
        View psum = VIEW(mem_off(out_bank(o, t, d), c * 4), DT_F32, {parts}, {n, 1}), sum = psum, dst;
        if (b->by_columns)
            sum.mem = mem_off(ring_way(&d->sums, 0, index), (d->turned ? c / PARTITIONS * b->part + index * PARTITIONS : index * d->d) * 4);
        dst = VIEW(gather_at(o, d, t, d->turned ? c / PARTITIONS * block_gathered(b, d) + tile * PARTITIONS : tile * d->d), d->otype, {parts}, {n, 1});
        take_tile(o, d, 0, out ? dst : sum, psum, b->by_columns && !t->first ? &sum : NULL);
    }
}

// The first tile of rows for which a tile of columns counts.
static uint32_t first_tile(const Block *b, int64_t k) {
    uint32_t t = 0;
    while (b->masked.widths && b->masked.widths[t] <= k * PARTITIONS)
        t++;
    return t;
}

// Where rows f… of a result with the columns last gather.
static Mem turned_bank(const Block *b, const BlockDot *d, int64_t f) {
    return mem_off(ring_at(&d->psum, 0), f / PARTITIONS * ceil_div(b->width, PSUM_BANK_COLS) * PSUM_BANK_BYTES);
}

// Batches that are a tile each: side by side in one bank, [d][g][n] where the result is turned, else [tile of n][g][d].
static void over_rows_together(BlockOp *o, const Tile *t, BlockDot *d) {
    int64_t size = (int64_t)dtype_bytes(d->dtype), n = t->n, all = o->b->together;
    Mem value = value_at(o, t, d->index), bank = ring_at(&d->psum, 0);
    for (int64_t g = 0; g < all; g++) {
        for (int64_t f = 0; f < d->d && d->turned; f += PARTITIONS)
            multiply(o, panel_view(o, &d->rhs, t, g, 0, t->m, f, min64(PARTITIONS, d->d - f)), VIEW(mem_off(value, g * n * size), d->dtype, {t->m}, {n, 1}),
                     mem_off(bank, (f / PARTITIONS * all + g) * n * 4), false);
        for (int64_t k = 0; k < block_tiles(n) && !d->turned; k++)
            multiply(o, VIEW(mem_off(value, (g * n + k * PARTITIONS) * size), d->dtype, {t->m}, {min64(PARTITIONS, n - k * PARTITIONS), 1}),
                     panel_view(o, &d->rhs, t, g, 0, t->m, 0, d->d), mem_off(bank, (k * all + g) * d->d * 4), false);
    }
}

static void take_rows_together(BlockOp *o, const Tile *t, BlockDot *d) {
    int64_t n = t->n, all = o->b->together, tiles = block_tiles(n), full = n % PARTITIONS && n > PARTITIONS ? 1 : tiles; // one that is not for itself
    Mem bank = ring_at(&d->psum, 0);
    for (int64_t f = 0; f < d->d && d->turned; f += PARTITIONS)
        put_evict(o->e, o->r->busy, VIEW(gather_at(o, d, t, f / PARTITIONS * all * n), d->otype, {min64(PARTITIONS, d->d - f)}, {all * n, 1}),
                  VIEW(mem_off(bank, f / PARTITIONS * all * n * 4), DT_F32, {min64(PARTITIONS, d->d - f)}, {all * n, 1}));
    for (int64_t k = 0; k < tiles && !d->turned; k += full) {
        int64_t parts = min64(PARTITIONS, n - k * PARTITIONS), at = k * all * d->d;
        put_evict(o->e, o->r->busy, VIEW(gather_at(o, d, t, at), d->otype, {parts}, {full * all * d->d, 1}), VIEW(mem_off(bank, at * 4), DT_F32, {parts}, {full * all * d->d, 1}));
    }
}

static void over_rows(BlockOp *o, const Tile *t, BlockDot *d) {
    Block *b = o->b;
    if (b->together > 1) {
        over_rows_together(o, t, d);
        return;
    }
    int64_t size = (int64_t)dtype_bytes(d->dtype), at = (t->row - t->row0) / PARTITIONS, each = PSUM_BANK_COLS / d->d;
    Mem value = value_at(o, t, d->index);
    for (int64_t f = 0; f < d->d && d->turned; f += PARTITIONS)
        for (int64_t c = 0; c < t->cols; c += PSUM_BANK_COLS)
            multiply(o, panel_view(o, &d->rhs, t, 0, at, t->m, f, min64(PARTITIONS, d->d - f)),
                     VIEW(mem_off(value, c * size), d->dtype, {t->m}, {min64(PSUM_BANK_COLS, t->cols - c), 1}), mem_off(turned_bank(b, d, f), c * 4), t->row > 0);
    for (int64_t k = 0; k < block_tiles(t->n) && !d->turned; k++)
        multiply(o, VIEW(mem_off(value, k * PARTITIONS * size), d->dtype, {t->m}, {min64(PARTITIONS, t->n - k * PARTITIONS), 1}),
                 panel_view(o, &d->rhs, t, 0, at, t->m, 0, d->d), mem_off(ring_at(&d->psum, 0), k / each * PSUM_BANK_BYTES + k % each * d->d * 4),
                 t->index > first_tile(b, t->c0 / PARTITIONS + k));
}

// Sums over rows of a chunk of columns lie in banks, and in SBUF one behind the other.
typedef struct SumRun {
    View psum;
    int64_t elem; // the first of a partition in SBUF
} SumRun;

#define SUM_RUNS 16

static uint32_t sum_runs(const Block *b, const BlockDot *d, int64_t cols, SumRun *out) {
    uint32_t n = 0;
    int64_t wide = d->d, each = PSUM_BANK_COLS / wide, tiles = block_tiles(cols);
    for (int64_t f = 0; f < wide && d->turned; f += PARTITIONS)
        out[n++] = (SumRun){VIEW(turned_bank(b, d, f), DT_F32, {min64(PARTITIONS, wide - f)}, {cols, 1}), f / PARTITIONS * b->width};
    for (int64_t k = 0; k < tiles && !d->turned; k += each) {
        int64_t count = min64(each, tiles - k), full = min64(count, cols / PARTITIONS - k);
        Mem bank = mem_off(ring_at(&d->psum, 0), k / each * PSUM_BANK_BYTES);
        if (full)
            out[n++] = (SumRun){VIEW(bank, DT_F32, {PARTITIONS}, {full * wide, 1}), k * wide};
        if (full < count)
            out[n++] = (SumRun){VIEW(mem_off(bank, full * wide * 4), DT_F32, {cols % PARTITIONS}, {wide, 1}), (k + full) * wide};
    }
    assert(n <= SUM_RUNS);
    return n;
}

static View with_mem(View v, Mem mem, int dtype) {
    v.mem = mem, v.dtype = (uint8_t)dtype;
    return v;
}

static void take_rows(BlockOp *o, const Tile *t, BlockDot *d) {
    SumRun run[SUM_RUNS];
    if (o->b->together > 1) {
        take_rows_together(o, t, d);
        return;
    }
    uint32_t n = sum_runs(o->b, d, t->cols, run);
    for (uint32_t i = 0; i < n; i++)
        put_evict(o->e, o->r->busy, with_mem(run[i].psum, gather_at(o, d, t, run[i].elem), d->otype), run[i].psum);
}

// Sums of so many columns, over the rows of parts so far, go to HBM, or come back: terms add up in the order they would without parts.
static void hold_sums(BlockOp *o, BlockDot *d, int64_t c0, int64_t cols, bool back) {
    const Block *b = o->b;
    int64_t chunk = c0 / b->width, chunks = ceil_div(b->n, b->width), pitch = d->hold_bytes / 4;
    uint64_t hbm = emit_addr(o->e, o->e->l->refs.at[o->s->outs + d->hold]) + (uint64_t)((o->e->part * chunks + chunk) * PARTITIONS * d->hold_bytes);
    Haz *held = &d->held_haz[chunk];
    SumRun run[SUM_RUNS];
    assert(d->over_rows);
    assert(d->hold_bytes);
    assert(o->e->part < 2);
    emit_loc(o->e, d->op);
    uint32_t n = sum_runs(b, d, cols, run);
    for (uint32_t i = 0; i < n; i++) {
        View psum = run[i].psum, sbuf = with_mem(psum, mem_off(ring_at(&d->holds, back), run[i].elem * 4), DT_F32);
        View far = VIEW(mem_hbm(hbm + (uint64_t)run[i].elem * 4), DT_F32, {psum.at[0].n, pitch}, {psum.at[1].n, 1});
        if (!back)
            put_evict(o->e, o->r->busy, sbuf, psum);
        emit_inst(o->e, isa_dma(ENG_SYNC, back ? QUEUE_IN : QUEUE_OUT, back ? sbuf : far, back ? far : sbuf), (Haz *[]){back ? held : sbuf.mem.haz}, 1,
                  (Haz *[]){back ? sbuf.mem.haz : held}, 1);
        if (back)
            put_evict(o->e, o->r->busy, psum, sbuf);
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
    int64_t row0 = d->over_rows ? t->c0 : tile ? t->row : t->row0, rows = d->over_rows ? t->cols : tile ? t->m : t->rows;
    int64_t pitch = d->lies.free_stride, size = (int64_t)dtype_bytes(d->otype); // pitch: of the result's rows, which are d's where it is turned
    int64_t off = side_batch_offset(&d->lies, t->batch) + row0 * (d->turned ? 1 : pitch);
    uint64_t to = emit_addr(o->e, o->e->l->refs.at[o->s->outs + d->out]) + (uint64_t)(off * size);
    Matrix m = d->turned ? matrix_plain(d->d, pitch, rows, 1) : matrix_plain(rows, pitch, d->d, 1);
    int64_t apart = b->together > 1 ? m.cols.size : d->turned ? block_gathered(b, d) : d->d;
    move_batches(o, QUEUE_OUT, false, &d->lies, t, m, apart, d->otype, to, gather_at(o, d, t, 0));
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
            turn_all(o, t, d, slot);
        if (d->over_rows)
            over_rows(o, t, d);
        for (int64_t g = 0; g < b->together && !d->over_rows; g++)
            over_columns(o, t, d, g, slot);
        if (takes)
            take(o, t, d);
    }
}

// --- the step ----------------------------------------------------------------------------------------

// In the order in which block.c counts them.
static void take_rings(BlockOp *o) {
    Block *b = o->b;
    Area *a = &o->area;
    *a = area_make(o->e, 0, b->rows_at);
    area_ring(a, &b->stages, b->stage_bytes ? b->stage_copies : 0, b->stage_bytes);
    for (uint32_t i = 0; i < b->npro; i++) {
        BlockDot *d = &b->pro[i];
        area_ring(a, &d->lhs.copies, b->panel_copies, d->lhs.bytes);
        area_ring(a, &d->rhs.copies, b->panel_copies, d->rhs.bytes);
        area_banks(a, &d->psum, d->bank, b->pro_copies, d->banks, input_node(o, d->index)->haz); // the program reads it there
    }
    for (uint32_t i = 0; i < b->nepi; i++) {
        BlockDot *d = &b->epi[i];
        area_ring(a, &d->rhs.copies, b->panel_copies, d->rhs.bytes);
        area_ring(a, &d->outs, b->gathers, d->out_bytes);
        area_banks(a, &d->psum, d->bank, d->over_rows ? 1 : b->out_copies, d->banks, NULL);
        area_ring(a, &d->sums, d->sum_bytes > 0, d->sum_bytes);
        if (d->sum_bytes) // turned ones are not told apart by address
            area_ways(a, &d->sums, block_tiles(b->part), d->turned ? 0 : (uint32_t)d->d * 4);
        area_ring(a, &d->holds, d->hold_bytes ? 2 : 0, d->hold_bytes);
        d->held_haz = ARENA_NEWN(o->e->c->scratch, Haz, (size_t)ceil_div(b->n, b->width));
    }
    area_ring(a, &b->turned, b->turn_slots * b->turn_copies, b->turn_bytes);
    area_banks(a, &b->turns, b->turn_bank, b->turn_banks, 1, NULL);
}

static int64_t width_of(const Block *b, uint32_t index) { return b->masked.widths ? b->masked.widths[index] : b->n; }

// Rows `index` of a batch and the chunk of columns from c0 on, in a pass; brings the panels it needs.
static void take_up(BlockOp *o, int64_t batch, uint32_t index, uint32_t pass, int64_t c0) {
    const Block *b = o->b;
    int64_t row = index * (int64_t)PARTITIONS, chunk = row / b->chunk, row0 = chunk * b->chunk, rows = min64(b->chunk, b->m - row0), n = width_of(b, index);
    int64_t parts = (b->m + b->part - 1) / b->part, part = batch * parts + row / b->part;
    int64_t outer = b->by_columns ? (part * (o->r->levels + 1) + pass) * b->n + c0 : batch;
    int64_t key[3] = {batch, chunk + (b->chunk < b->part ? outer : batch) * b->m, outer};
    o->tile = (Tile){.batch = batch, .row = row, .m = (uint32_t)min64(PARTITIONS, b->m - row), .index = index, .set = o->r->set, .c0 = c0,
                     .n = min64(b->width, n - c0), .cols = min64(b->width, b->n - c0), .first = c0 == 0, .last = c0 + b->width >= n,
                     .end = row + PARTITIONS >= b->m, .row0 = row0, .rows = rows, .chunk_last = row + PARTITIONS >= row0 + rows};
    for (int i = 0; i < 3; i++) {
        o->tile.fresh[i] = key[i] > o->key[i];
        o->unit[i] += o->tile.fresh[i];
        o->tile.unit[i] = o->unit[i] - (key[i] < o->key[i]); // of the one before, in a pipeline
        o->key[i] = o->tile.fresh[i] ? key[i] : o->key[i];
    }
    load_panels(o, &o->tile);
}

static void emit_whole(BlockOp *o, int64_t batch) {
    const Block *b = o->b;
    o->tile.set = o->r->set;
    o->r->pro_copy = o->chunks++ % b->pro_copies;
    o->r->tile_cols = (uint32_t)(b->together * o->tile.n);
    rows_tile(o->r, batch * o->b->m + o->tile.row, o->tile.m);
    o->r->column_set = (o->r->column_set + o->r->sets - 1) % o->r->sets; // numbers per row are still this tile's
    behind(o, &o->tile, true);
    o->r->column_set = o->r->set;
}

// A tile of each turn, the operands of the next one before it: the array turns them beside it, in banks that it also turns values in.
static void emit_together(BlockOp *o, int64_t lo, int64_t hi) {
    Tile tile = {0};
    for (int64_t batch = lo; batch < hi + o->b->together; batch += o->b->together) {
        emit_task(o->e);
        if (batch < hi)
            take_up(o, batch, 0, 0, 0);
        Tile next = o->tile;
        o->tile = tile;
        if (batch > lo)
            emit_task(o->e), emit_whole(o, tile.batch);
        tile = next;
    }
}

static void emit_chunk(BlockOp *o, int64_t batch, uint32_t index, uint32_t pass, int64_t c0) {
    RowOp *r = o->r;
    const Block *b = o->b;
    emit_task(o->e);
    take_up(o, batch, index, pass, c0);
    r->pro_copy = o->chunks++ % b->pro_copies;
    bool masked = !b->masked.clear || c0 + o->tile.n > b->masked.clear[index];
    r->chunk = (uint32_t)(c0 / b->width), r->chunks = (uint32_t)((width_of(b, index) + b->width - 1) / b->width);
    r->m = o->tile.m;
    bool used = rows_chunk(r, pass, masked, batch * b->m + o->tile.row, c0, (uint32_t)o->tile.n);
    if (pass == r->levels)
        behind(o, &o->tile, b->by_columns);
    r->set = (r->set + used) % r->sets;
}

static uint32_t column_set(const BlockOp *o, int64_t batch, uint32_t index) {
    return (uint32_t)((o->b->by_columns ? in_part(o->b, index) : batch * block_tiles(o->b->m) + index) % o->r->column_sets);
}

static void begin_pass(BlockOp *o, int64_t batch, uint32_t index, uint32_t pass) {
    int64_t row = index * (int64_t)PARTITIONS;
    o->r->column_set = column_set(o, batch, index);
    emit_task(o->e);
    rows_pass_begin(o->r, pass, batch * o->b->m + row, (uint32_t)min64(PARTITIONS, o->b->m - row));
}

static void end_pass(BlockOp *o, int64_t batch, uint32_t index, uint32_t pass) {
    const Block *b = o->b;
    int64_t row = index * (int64_t)PARTITIONS;
    o->r->column_set = column_set(o, batch, index), o->r->m = (uint32_t)min64(PARTITIONS, b->m - row);
    o->r->chunks = (uint32_t)((width_of(b, index) + b->width - 1) / b->width);
    rows_pass_end(o->r, pass);
    if (pass == o->r->levels)
        rows_tile_end(o->r, batch * b->m + row);
}

// One chunk of a pass over a tile, counted over all batches; chunks of a tile come in order.
static void emit_step(BlockOp *o, int64_t number, uint32_t pass, int64_t c0) {
    const Block *b = o->b;
    uint32_t tiles = block_tiles(b->m), index = (uint32_t)(number % tiles);
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
    int64_t tiles = block_tiles(b->m), last = o->r->levels;
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
    int64_t unit = block_tiles(b->chunk < b->m ? b->chunk : b->m);
    return b->panel_copies > 1 && block_tiles(b->m) % unit == 0 && unit > o->r->levels ? all : unit;
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
    assert(to < block_tiles(b->m) || sums || pass < o->r->levels);
    if (sums && before)
        hold_all(o, c0, before, true);
    for (uint32_t i = from; i < to; i++) {
        if (width_of(b, i) <= c0)
            continue;
        o->r->column_set = column_set(o, batch, i);
        emit_chunk(o, batch, i, pass, c0);
    }
    if (sums && to < block_tiles(b->m))
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
    o->r->pro_bytes = b->pro[0].banks * PSUM_BANK_BYTES;
    o->r->block_op = o;
    emit_join(e, LANE_ROWS);
    rows_open(o->r);
    take_rings(o);
    area_open(&o->area);
    int64_t lo, hi;
    emit_share(e, b->batches, b->together, &lo, &hi);
    if (b->together > 1 && lo < hi)
        emit_together(o, lo, hi);
    for (int64_t batch = lo; batch < hi && b->together == 1; batch++) {
        for (uint32_t i = 0; i < block_tiles(b->m) && b->width == b->n; i++) {
            emit_task(e);
            take_up(o, batch, i, 0, 0);
            emit_whole(o, batch);
        }
        for (int64_t row = 0; row < b->m && b->by_columns; row += b->part)
            emit_columns_first(o, batch, block_tiles(row), block_tiles(min64(row + b->part, b->m)));
    }
    int64_t tiles = block_tiles(b->m), each = pipeline_tiles(o, (hi - lo) * tiles);
    for (int64_t i = lo * tiles; i < hi * tiles && b->width < b->n && !b->by_columns; i += each)
        emit_rows_first(o, i, min64(i + each, (each < tiles ? (i / tiles + 1) : hi) * tiles));
    rows_close(o->r);
    area_close(&o->area);
    emit_join(e, LANE_ROWS);
}
