// SPDX-License-Identifier: Apache-2.0
// product.c — products as DMA in, load-stationary, matmul into PSUM, eviction, DMA out.
//
//            N: 1 or 2 banks of 512             The output is cut into blocks of up to eight PSUM banks. Contraction
//          ┌─────────────┐                      goes in chunks of tiles of up to 128 rows on the partitions. A bank leaves
//  M: up   │ bank 0      │   K: chunks of       PSUM while the next ones add up their last chunk.
//   to 8   │ bank 1      │   n x 128 on the
//   x 128  │ …           │   partitions         SBUF is cut into slots of a chunk of each side: [tile of k][column], the
//          └─────────────┘                      k inside the tile is the partition. dot_cut.c chooses all of these sizes.
//
// A block's chunk is a *step*. Slots are filled steps ahead, as long as none is taken away that a step still needs; each
// filling is a task, each step's products another one, so that they go beside each other (sched.c). The first steps of the
// first product behind a barrier come in parts of their tiles of k, and begin with the first of them; its last results leave tile by tile.
// Blocks and tiles end where axes end when that costs little, so that transfers take whole axes.
// Of small products several of a batch are a step: their columns lie beside each other in the slots and in a bank.
// What transfers cannot transpose, bytes or on some chips anything, is loaded as it lies, columns on the partitions, which the array turns
// in two banks that blocks then leave free.
// A left side that is one number everywhere (the ones of a sum) is set in SBUF instead, once: its tiles are all the same.
// Who wants the sums over k of an operand too (a bias' gradient beside that of its weights) gets them on the way: the first block of each piece
// of it multiplies that by a column of ones, into a bank behind those of its tiles.
// With a row program behind it (epilogue.c) a tile is not copied out of PSUM but goes through the program's instructions,
// in the place of the results and a part of the slots.
// Tails are shorter counts in the same instructions. The order in which k adds up is the same for all of these, so every
// target computes the same bits.
#include "tile/product.h"

#include <assert.h>

#define TILE_K PARTITIONS
#define TILE_M PARTITIONS
#define BLOCK PSUM_BANK_COLS
#define AHEAD 6     // steps that are filled before they are multiplied;
#define PARTS 3     // of a slot that are waited for apart
#define SMALL_AHEAD 2 // … of small products: their transfers are short
#define BANKS_HALF (PSUM_BANKS / 2)
#define OUT_SLOTS 2
#define OUT_TILES 4 // of rows that are stored together
#define TURN_RUN 8 // dense k of several axes that the array turns
#define SMALL_SLOTS 4

typedef struct Operand { // and its slots
    Matrix at;     // rows: contracted; columns: those of all batches
    Layout free;   // columns of one
    uint64_t addr;
    uint8_t queue; // a queue starts so many transfers a second: each side has its own
    bool turned;   // comes as it lies and the array transposes it,
    int64_t parts; // … so many columns at a time
    bool keeps;    // is stored as it is transposed, [k][free],
    uint64_t kept; // … there
    const HloAttr *same; // the number that all of it is; NULL: it lies at addr
    uint32_t pitch; // columns of a tile in a slot
    Ring slots;
    int64_t key[DOT_SLOTS]; // which block and chunk a slot holds, -1 = nothing
    uint32_t held[DOT_SLOTS]; // steps that are filled and still to read it
} Operand;

typedef struct Chunk { // of k, of a block of the result
    int64_t batch, count, m0, mlen, n0, ncols, k0, klen; // count: products
    uint32_t lslot, rslot;
} Chunk;

typedef struct Work {
    Emit *e;
    ProductJob j;
    Operand lhs, rhs;
    Matrix out; // rows: of one product; columns: those of all batches
    DotCut cut;
    int stype, dtype; // operand and result types
    size_t elem, out_elem;
    int64_t batches, m, n, k;
    int64_t tile_k, mstep, nstep; // rows of a tile of k, rows and columns of a block
    Area area;
    uint32_t out_sbuf;
    Ring outs, stages, ones, sums; // sums: of an operand, on their way out
    uint32_t sum_tiles; // banks behind a block's that they take
    double busy[ENG_COUNT]; // by evictions, ns
    uint32_t filled, multiplied; // steps so far
    bool begins; // the first product behind a barrier: nothing hides how it begins
    uint32_t bank0; // of the block in work
    RowOp *rows;
    bool turns;
    uint32_t next_turn;
} Work;

static int64_t rows_begin_of(const Work *d, int64_t batch) { return max64(0, d->j.rows_lo - batch * d->m); }
static int64_t rows_end_of(const Work *d, int64_t batch) { return min64(d->m, d->j.rows_hi - batch * d->m); }
static bool is_wide(const Work *d) { return d->cut.cols > BLOCK; }
static uint32_t turn_banks(const Work *d) { return !d->turns ? 0 : d->j.together > 1 ? BANKS_HALF : DOT_TURN_BANKS; }

// The tile of k that a part of a slot begins with: a quarter of them, another, the rest.
static int64_t part_tile(const Work *d, uint32_t part) {
    int64_t first = max64(1, d->cut.chunk / 4);
    return part == 0 ? 0 : part == 1 ? first : part == 2 ? max64(first, d->cut.chunk / 2) : d->cut.chunk;
}

static uint32_t part_of(const Work *d, int64_t tile) {
    return d->begins ? (uint32_t)((tile >= part_tile(d, 1)) + (tile >= part_tile(d, 2))) : 0;
}

// Where what comes as one ends, from row `at` of a step's chunk on: the first steps of a product that nothing hides come in parts; where
// the array transposes, its own work hides the second one.
static int64_t part_end(const Work *d, uint32_t step, int64_t at, int64_t klen) {
    return d->begins && step < (d->turns ? 1 : 2) ? min64(klen, part_tile(d, part_of(d, at / d->tile_k) + 1) * d->tile_k) : klen;
}

// Tiles of k of a slot, and who waits for them.
static Mem slot_tiles(const Work *d, const Operand *s, uint32_t slot, int64_t tile, int64_t tiles) {
    uint32_t part = part_of(d, tile), last = part_of(d, tile + max64(1, tiles) - 1);
    Mem m = ring_way(&s->slots, slot, part);
    return (Mem){m.addr + (uint64_t)(tile * s->pitch) * d->elem, m.haz, (uint8_t)(last - part)};
}

// --- filling slots -----------------------------------------------------------------------------------

static Piece piece_of(const Work *d, const Operand *s, const Chunk *x, int64_t f0, int64_t cols) {
    return (Piece){x->k0, x->klen, x->batch * s->free.size + f0, cols, d->tile_k, s->pitch};
}

// Between a slot and where an operand lies as it was transposed. Tasks of the same step store and load it: these do meet.
static void move_kept(Work *d, Operand *s, Mem to, const Chunk *x, int64_t f0, int64_t cols, bool loads) {
    Matrix kept = matrix_plain(s->at.cols.size / s->free.size * d->k, s->free.size, s->free.size, 1);
    Piece p = {x->batch * d->k + x->k0, x->klen, f0, cols, d->tile_k, s->pitch};
    bool apart = d->e->tiles_apart;
    d->e->tiles_apart = apart && !loads;
    matrix_put(d->e, loads ? s->queue : QUEUE_OUT, loads, &kept, p, d->stype, s->kept, d->stype, to);
    d->e->tiles_apart = apart;
}

// `tiles` of k from tile t0 of the filling on, columns [f0, f0 + cols): transposed side by side in a bank, copied to their slot, which
// the filling begins with tile `tile` of, from there.
static void transpose_tiles(Work *d, Operand *s, uint32_t slot, int64_t tile, Mem stage, int64_t t0, int64_t tiles, int64_t f0, int64_t cols,
                            int64_t klen) {
    uint32_t turn = d->next_turn++ % turn_banks(d); // the last ones, of a wide block of each half
    Mem bank = bank_at(d->e, is_wide(d) ? BANKS_HALF - 1 + turn * BANKS_HALF : PSUM_BANKS - turn_banks(d) + turn);
    int64_t rows = min64(d->tile_k, klen - t0 * d->tile_k), size = (int64_t)d->elem;
    for (int64_t t = 0; t < tiles; t++)
        put_transposes(d->e, d->stype, mem_off(bank, t * cols * size), s->parts, mem_off(stage, (f0 / s->parts * klen + (t0 + t) * d->tile_k) * size), klen,
                       cols, s->parts, rows);
    put_evict(d->e, d->rows ? d->rows->busy : d->busy, VIEW(mem_off(slot_tiles(d, s, slot, tile + t0, tiles), f0 * size), d->stype, {rows}, {tiles, s->pitch}, {cols, 1}),
             VIEW(bank, d->stype, {rows}, {tiles, cols}, {cols, 1}));
}

// Columns of a chunk come as they lie, groups of them on the partitions, each with its klen elements.
static void load_transposed(Work *d, Operand *s, uint32_t slot, int64_t tile, Piece p) {
    Mem stage = ring_next(&d->stages);
    Matrix turned = {s->at.cols, s->at.rows};
    int64_t room = (int64_t)(PSUM_BANK_BYTES / d->elem) / s->parts * s->parts, full = p.rows / p.tile;
    matrix_put(d->e, s->queue, true, &turned, (Piece){p.col, p.cols, p.row, p.rows, s->parts, p.rows}, d->stype, s->addr, d->stype, stage);
    for (int64_t f0 = 0, some; f0 < p.cols; f0 += some) {
        some = min64(p.cols - f0, room);
        int64_t per = room / some;
        for (int64_t t = 0; t < full; t += per)
            transpose_tiles(d, s, slot, tile, stage, t, min64(per, full - t), f0, some, p.rows);
        if (p.rows % p.tile)
            transpose_tiles(d, s, slot, tile, stage, full, 1, f0, some, p.rows);
    }
}

// Set once, as wide as the widest block reads it: the first one, or one of the next batch where a core's share begins inside of the first.
static void side_set(Work *d, Operand *s, const Chunk *x, int64_t cols) {
    int64_t next = x->batch + x->count;
    if (next < d->batches)
        cols = max64(cols, min64(d->mstep, rows_end_of(d, next)));
    assert(cols <= s->pitch);
    put_memset(d->e, ENG_GPSIMD, VIEW(ring_at(&s->slots, 0), d->stype, {TILE_K}, {cols, 1}), s->same->data);
}

// Sums of an operand, of this core's columns: those of a block, and how many.
static int64_t sum_first(const Work *d, const Chunk *s) { return max64(d->j.sums.lo, d->j.sums.of == SUMS_RHS ? s->n0 : s->m0); }
static int64_t sum_cols(const Work *d, const Chunk *s) {
    return min64(d->j.sums.hi, d->j.sums.of == SUMS_RHS ? s->n0 + s->ncols : s->m0 + s->mlen) - sum_first(d, s);
}

// Each piece of it in the first block that has it.
static bool is_summed(const Work *d, const Chunk *s) {
    bool first = d->j.sums.of == SUMS_RHS ? s->m0 == rows_begin_of(d, s->batch) : d->j.sums.of == SUMS_LHS && s->n0 == d->j.n_lo;
    return first && sum_cols(d, s) > 0;
}

static int64_t key_of(const Work *d, const Operand *s, int64_t batch, int64_t f0, int64_t k0) {
    return s->same ? 0 : (batch * s->free.size + f0) * d->k + k0;
}

static uint32_t slot_of(const Operand *s, int64_t key) { // nslots: none
    uint32_t i = 0;
    while (i < s->slots.n && s->key[i] != key)
        i++;
    return i;
}

static bool has_slot(const Operand *s, int64_t key) { return slot_of(s, key) < s->slots.n || !s->held[s->slots.next % s->slots.n]; }

// The slot that holds columns from f0 on of the step's chunk; fresh: it is yet to be filled with them.
static uint32_t side_slot(const Work *d, Operand *s, const Chunk *x, int64_t f0, bool *fresh) {
    int64_t key = key_of(d, s, x->batch, f0, x->k0);
    uint32_t slot = slot_of(s, key);
    *fresh = slot == s->slots.n;
    if (!*fresh)
        return slot;
    slot = ring_turn(&s->slots);
    assert(!s->held[slot]);
    s->key[slot] = key;
    return slot;
}

// Tiles of the slot from `tile` on are filled with k of x. `again`: they were here before.
static void side_load(Work *d, Operand *s, uint32_t slot, int64_t tile, const Chunk *x, int64_t f0, int64_t cols, bool again) {
    Mem to = slot_tiles(d, s, slot, tile, ceil_div(x->klen, d->tile_k));
    Piece p = piece_of(d, s, x, f0, cols);
    if (s->same)
        side_set(d, s, x, cols);
    else if (s->keeps && again)
        move_kept(d, s, to, x, f0, cols, true);
    else if (s->turned)
        load_transposed(d, s, slot, tile, p);
    else
        matrix_put(d->e, s->queue, true, &s->at, p, d->stype, s->addr, d->stype, to);
    if (s->keeps && !again) {
        emit_task(d->e);
        move_kept(d, s, to, x, f0, cols, false);
    }
}

static bool can_fill(const Work *d, const Chunk *s) {
    return has_slot(&d->rhs, key_of(d, &d->rhs, s->batch, s->n0, s->k0)) && has_slot(&d->lhs, key_of(d, &d->lhs, s->batch, s->m0, s->k0));
}

// Both sides of a step come by one task where one side has many more slots: it would come far ahead of what is needed sooner.
static bool side_by_side(const Work *d) {
    uint32_t l = d->lhs.slots.n, r = d->rhs.slots.n;
    return !d->turns && (l > 2 * r || r > 2 * l);
}

static void fill(Work *d, Chunk *s) {
    bool fresh_l, fresh_r;
    s->lslot = side_slot(d, &d->lhs, s, s->m0, &fresh_l), s->rslot = side_slot(d, &d->rhs, s, s->n0, &fresh_r);
    for (int64_t at = 0, end; at < s->klen; at = end) {
        end = part_end(d, d->filled, at, s->klen);
        Chunk part = *s;
        part.k0 += at, part.klen = end - at;
        for (int i = 0; i < 2; i++) { // what is transposed first: it takes longer
            bool left = (i == 0) == d->lhs.turned;
            if (left ? !fresh_l || (at && d->lhs.same) : !fresh_r)
                continue;
            if (!i || !side_by_side(d) || !fresh_l || !fresh_r)
                emit_task(d->e);
            if (left)
                side_load(d, &d->lhs, s->lslot, at / d->tile_k, &part, s->m0, s->mlen * s->count, s->n0 > d->j.n_lo);
            else
                side_load(d, &d->rhs, s->rslot, at / d->tile_k, &part, s->n0, s->ncols * s->count, s->m0 > rows_begin_of(d, s->batch));
        }
    }
    d->rhs.held[s->rslot]++, d->lhs.held[s->lslot]++, d->filled++;
}

// --- products ----------------------------------------------------------------------------------------
static View slot_view(const Work *d, const Operand *s, uint32_t slot, int64_t tile, bool two, int64_t rows, int64_t col, int64_t cols) {
    return VIEW(mem_off(slot_tiles(d, s, slot, s->same ? 0 : tile, 1 + two), col * (int64_t)d->elem), d->stype, {rows}, {cols, 1});
}

// Tiles of rows that leave together for the row program, so that its transfers are longer: as many as it has room for. The array
// transposes in the upper banks.
static uint32_t tiles_together(const Work *d) {
    return !d->rows || d->rows->width <= BLOCK ? 1 : d->n <= BLOCK / 2 && !d->turns ? BANKS_HALF : BANKS_HALF / 2;
}

// Their banks are one piece of memory.
static Haz *bank_haz(const Work *d, uint32_t bank) { return &d->e->bank_haz[bank & ~(tiles_together(d) - 1)]; }

// Two tiles of k at once: fp8 has two rows a cell from trn2 on. They lie a pitch apart, and add up as one behind the other would.
static bool doubles(const Work *d, int64_t k, int64_t end) {
    bool fp8 = d->stype == DT_F8E4M3 || d->stype == DT_F8E4M3FN || d->stype == DT_F8E5M2;
    return fp8 && d->e->chip->generation >= 3 && !d->lhs.same && k + 2 * d->tile_k <= end;
}

// One or two tiles of k for 128 rows and up to 512 columns from column n0 of the block.
static void multiply(Work *d, const Chunk *s, int64_t tile, int64_t rows, bool two, uint32_t bank, int64_t col, int64_t m0, int64_t mcols, int64_t n0,
                     bool accumulate) {
    put_weights(d->e, slot_view(d, &d->lhs, s->lslot, tile, two, rows, m0, mcols), two ? d->lhs.pitch : 0);
    for (int64_t c = 0; c < s->ncols; c += BLOCK, bank += BANKS_HALF) { // the same weights for both halves of a wide block
        int64_t n = min64(BLOCK, s->ncols - c);
        Mem to = {.addr = bank_at(d->e, bank).addr + (uint64_t)(col * 4), .haz = bank_haz(d, bank)};
        put_matmul(d->e, VIEW(to, DT_F32, {mcols}, {n, 1}), slot_view(d, &d->rhs, s->rslot, tile, two, rows, n0 + c, n), accumulate,
                   two ? d->rhs.pitch : 0);
    }
}

// Blocks take the banks in turn, wide ones those of both halves, so that the next one begins in the banks that have been free for longest.
static uint32_t block_banks(const Work *d) { return dot_block_banks(d->cut.cols, turn_banks(d)); }
static uint32_t bank_of(const Work *d, int64_t tile, int64_t col) {
    return (uint32_t)((d->bank0 + tile) % block_banks(d) + col / BLOCK * BANKS_HALF);
}

static void take_banks(Work *d, int64_t n) {
    int64_t each = tiles_together(d);
    if (block_banks(d) % each == 0) // those that leave together lie side by side
        d->bank0 = (uint32_t)((d->bank0 + ceil_div(n, each) * each) % block_banks(d));
}

// Rows [m, m + len) of a block, tile after tile through the row program, each a task of its own, so that their chains are woven together.
static void go_on(Work *d, const Chunk *s, int64_t m, int64_t len, int64_t col) {
    for (int64_t end = m + len, tiles; m < end; m += tiles * TILE_M) {
        tiles = max64(1, min64(tiles_together(d), (end - m) / TILE_M));
        uint32_t bank = bank_of(d, m / TILE_M, col);
        emit_task(d->e);
        rows_from_psum(d->rows, (uint32_t)tiles, bank * PSUM_BANK_BYTES, bank_haz(d, bank), s->batch * d->m + s->m0 + m,
                       (uint32_t)min64(TILE_M, end - m), s->n0 + col, (uint32_t)min64(BLOCK, s->ncols - col));
    }
}

// Tiles of rows where results wait for their transfer.
static Mem out_tiles(const Work *d, uint32_t slot, int64_t tile, int64_t tiles) {
    Mem m = ring_way(&d->outs, slot, (uint32_t)tile);
    return (Mem){m.addr + (uint64_t)(tile * d->cut.cols) * d->out_elem, m.haz, (uint8_t)(tiles - 1)};
}

static void store_tiles(Work *d, const Chunk *s, uint32_t slot, int64_t m, int64_t tile, int64_t rows) {
    Piece p = {s->m0 + m + tile * TILE_M, rows, s->batch * d->n + s->n0, s->ncols * s->count, TILE_M, d->cut.cols};
    matrix_put(d->e, QUEUE_OUT, false, &d->out, p, d->dtype, d->j.p.out, d->dtype, out_tiles(d, slot, tile, ceil_div(rows, TILE_M)));
}

// Rows [m, m + len) of a block, as many as the place of a result has room for, in the order in which they are ready. The last
// ones of a product that nothing was beside when it began leave tile by tile, each a task of its own, so that queues take turns; with others
// around it these would wait for the queues.
static void evict(Work *d, const Chunk *s, int64_t m, int64_t len, bool last) {
    uint32_t slot = ring_turn(&d->outs);
    int64_t width = s->ncols * s->count;
    for (int64_t t = 0; t * TILE_M < len; t++) {
        int64_t rows = min64(TILE_M, len - t * TILE_M);
        if (!t || last)
            emit_task(d->e);
        for (int64_t c = 0; c < width; c += BLOCK) { // in the result's type, on the vector and the scalar engine in turn
            int64_t cols = min64(BLOCK, width - c);
            View to = VIEW(mem_off(out_tiles(d, slot, t, 1), c * (int64_t)d->out_elem), d->dtype, {rows}, {cols, 1});
            if (d->k)
                put_evict(d->e, d->busy, to, VIEW(bank_at(d->e, bank_of(d, m / TILE_M + t, c)), DT_F32, {rows}, {cols, 1}));
            else
                put_memset(d->e, ENG_VECTOR, to, NULL);
        }
        if (last)
            store_tiles(d, s, slot, m, t, rows);
    }
    if (!last)
        store_tiles(d, s, slot, m, 0, len);
}

static void evict_block(Work *d, const Chunk *s, bool last) {
    int64_t some = d->rows ? max64(2, tiles_together(d)) * TILE_M : OUT_TILES * TILE_M * BLOCK / d->cut.cols;
    for (int64_t m = 0; m < s->mlen; m += some) {
        int64_t len = min64(some, s->mlen - m);
        for (int64_t c = 0; d->rows && c < s->ncols; c += BLOCK)
            go_on(d, s, m, len, c);
        if (!d->rows)
            evict(d, s, m, len, d->begins && last && m + len == s->mlen);
    }
}

static uint32_t sum_bank(const Work *d, int64_t col) {
    return d->j.sums.of == SUMS_RHS ? bank_of(d, d->cut.tiles, col) : bank_of(d, d->cut.tiles + col / BLOCK, 0);
}

// [k0, k1) of the chunk: columns of the operand add up over its rows, in the order in which they would alone.
static void add_rows(Work *d, const Chunk *s, int64_t k0, int64_t k1) {
    bool rhs = d->j.sums.of == SUMS_RHS;
    int64_t skip = sum_first(d, s) - (rhs ? s->n0 : s->m0);
    uint32_t loc = d->e->loc;
    emit_loc(d->e, d->j.sums.op);
    for (int64_t kt = k0; kt < k1; kt += d->tile_k) {
        int64_t rows = min64(d->tile_k, k1 - kt);
        put_weights(d->e, VIEW(ring_at(&d->ones, 0), d->stype, {rows}, {1, 1}), 0);
        for (int64_t c = 0; c < sum_cols(d, s); c += BLOCK) {
            int64_t n = min64(BLOCK, sum_cols(d, s) - c);
            uint32_t bank = sum_bank(d, c);
            Mem to = {.addr = bank_at(d->e, bank).addr, .haz = bank_haz(d, bank)};
            put_matmul(d->e, VIEW(to, DT_F32, {1}, {n, 1}), slot_view(d, rhs ? &d->rhs : &d->lhs, rhs ? s->rslot : s->lslot, kt / d->tile_k, false, rows, skip + c, n),
                       s->k0 + kt > 0, 0);
        }
    }
    d->e->loc = loc;
}

static void sums_leave(Work *d, const Chunk *s) {
    uint32_t loc = d->e->loc;
    emit_loc(d->e, d->j.sums.op);
    for (int64_t c = 0; c < sum_cols(d, s); c += BLOCK) {
        int64_t n = min64(BLOCK, sum_cols(d, s) - c), col = sum_first(d, s) + c;
        uint32_t bank = sum_bank(d, c);
        emit_task(d->e);
        if (d->j.sums.rows) {
            rows_columns(d->j.sums.rows, col, (uint32_t)n);
            rows_from_psum(d->j.sums.rows, 1, bank * PSUM_BANK_BYTES, bank_haz(d, bank), 0, 1, col, (uint32_t)n);
            continue;
        }
        View out = VIEW(ring_next(&d->sums), d->j.sums.dtype, {1}, {n, 1});
        put_evict(d->e, d->busy, out, VIEW(((Mem){.addr = bank_at(d->e, bank).addr, .haz = bank_haz(d, bank)}), DT_F32, {1}, {n, 1}));
        put_dma(d->e, QUEUE_OUT, VIEW(mem_hbm(d->j.sums.out + (uint64_t)col * dtype_bytes(d->j.sums.dtype)), d->j.sums.dtype, {1}, {n, 1}), out);
    }
    d->e->loc = loc;
}

// [k0, k1) of the chunk.
static void multiply_part(Work *d, const Chunk *s, int64_t k0, int64_t k1) {
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t mi = 0; mi < s->mlen; mi += TILE_M)
            for (int64_t kt = k0, two; kt < k1; kt += (1 + two) * d->tile_k) {
                two = doubles(d, kt, k1);
                multiply(d, s, kt / d->tile_k, min64(d->tile_k, k1 - kt), two, bank_of(d, mi / TILE_M, 0), i * s->ncols, i * s->mlen + mi,
                         min64(TILE_M, s->mlen - mi), i * s->ncols, s->k0 + kt > 0);
            }
    if (is_summed(d, s))
        add_rows(d, s, k0, k1);
}

static void multiply_chunk(Work *d, const Chunk *s, bool last) {
    emit_task(d->e);
    for (int64_t c = 0; d->rows && !s->k0 && c < s->ncols; c += BLOCK)
        rows_columns(d->rows, s->n0 + c, (uint32_t)min64(BLOCK, s->ncols - c));
    for (int64_t at = 0, end; at < s->klen; at = end) { // as it comes
        end = part_end(d, d->multiplied, at, s->klen);
        multiply_part(d, s, at, end);
    }
    d->multiplied++;
    d->lhs.held[s->lslot]--, d->rhs.held[s->rslot]--;
    if (s->k0 + s->klen < d->k)
        return;
    if (is_summed(d, s))
        sums_leave(d, s);
    evict_block(d, s, last);
    take_banks(d, is_summed(d, s) ? d->cut.tiles + d->sum_tiles : ceil_div(s->mlen, TILE_M));
}

// --- steps -------------------------------------------------------------------------------------------

static void chunk_sizes(const Work *d, Chunk *s) {
    s->count = d->j.together > 1 ? min64(d->j.together, (d->j.rows_hi - s->batch * d->m) / d->m) : 1;
    s->mlen = min64(d->mstep, rows_end_of(d, s->batch) - s->m0);
    s->ncols = min64(d->nstep, d->j.n_hi - s->n0);
    s->klen = min64(d->cut.chunk * d->tile_k, d->k - s->k0);
}

// The first step of the first batch from `batch` on that this core has rows of.
static bool chunk_first(const Work *d, Chunk *s, int64_t batch) {
    for (; batch < d->batches && d->j.n_lo < d->j.n_hi; batch++)
        if (rows_begin_of(d, batch) < rows_end_of(d, batch)) {
            *s = (Chunk){.batch = batch, .m0 = rows_begin_of(d, batch), .n0 = d->j.n_lo};
            chunk_sizes(d, s);
            return true;
        }
    return false;
}

static bool chunk_next(const Work *d, Chunk *s) {
    int64_t *inner = d->cut.by_columns ? &s->m0 : &s->n0, *outer = d->cut.by_columns ? &s->n0 : &s->m0;
    int64_t mend = rows_end_of(d, s->batch);
    s->k0 += s->klen;
    if (s->k0 == d->k) {
        s->k0 = 0;
        *inner += d->cut.by_columns ? d->mstep : d->nstep;
        if (*inner >= (d->cut.by_columns ? mend : d->j.n_hi)) {
            *inner = d->cut.by_columns ? rows_begin_of(d, s->batch) : d->j.n_lo;
            *outer += d->cut.by_columns ? d->nstep : d->mstep;
            if (*outer >= (d->cut.by_columns ? d->j.n_hi : mend))
                return chunk_first(d, s, s->batch + s->count);
        }
    }
    chunk_sizes(d, s);
    return true;
}

static void emit_chunks(Work *d) {
    Chunk next, filled[AHEAD];
    uint32_t first = 0, n = 0;
    uint32_t ahead = d->j.together > 1 ? SMALL_AHEAD : AHEAD;
    bool more = chunk_first(d, &next, 0);
    while (more || n) {
        for (; more && n < ahead && can_fill(d, &next); n++) {
            fill(d, &next);
            filled[(first + n) % AHEAD] = next;
            more = chunk_next(d, &next);
        }
        assert(n);
        multiply_chunk(d, &filled[first], !more && n == 1);
        first = (first + 1) % AHEAD, n--;
    }
}

// --- the plan ----------------------------------------------------------------------------------------

Room product_room(const Emit *e, uint32_t below, bool borrows) {
    uint32_t end = e->draws_bytes ? DRAWS_AREA_BEGIN : (uint32_t)e->chip->sbuf_usable_bytes;
    return (Room){{0, ROWS_AREA_BEGIN + (borrows ? 0 : ROWS_AREA_BYTES)}, {below, end}};
}

int64_t product_tile_k(const Layout *lhs, const Layout *rhs) {
    const Layout *shorter = layout_last(rhs)->n < layout_last(lhs)->n ? rhs : lhs;
    return lhs->size ? min64(layout_even(shorter, TILE_K, 96), lhs->size) : TILE_K;
}

static Layout layout_side(const Product *p, const Nest *axes, bool axes_dst, int batch) { // batch: 0 lhs, 1 rhs, 2 out, 3: none
    Layout v = layout_make();
    for (int i = 0; i < p->batch.rank && batch < 3; i++)
        layout_add(&v, p->batch.axis[i].n, batch == 0 ? p->batch.axis[i].src : batch == 1 ? p->batch.axis[i].dst : p->batch_out[i]);
    layout_add_nest(&v, axes, axes_dst);
    return v;
}

static void operand_init(Operand *s, const ProductJob *j, bool rhs) {
    const Product *p = &j->p;
    const Nest *free = rhs ? &p->n : &p->m;
    *s = (Operand){.addr = rhs ? p->rhs : p->lhs, .queue = rhs ? QUEUE_IN : QUEUE_IN2, .same = rhs ? NULL : j->same};
    s->at = (Matrix){layout_side(p, &p->k, rhs, 3), layout_side(p, free, false, rhs)};
    s->free = layout_side(p, free, false, 3);
    size_t elem = dtype_bytes(p->stype);
    const ViewAxis *k = layout_last(&s->at.rows);
    bool dense = k->stride == 1 && k->n >= (s->at.rows.rank > 1 ? TURN_RUN : 2);
    s->turned = (j->e->chip->dma_transpose <= 0 || elem == 1) && !s->same && dense && s->free.size > 1 && layout_last(&s->free)->stride != 1;
    s->parts = layout_even(&s->free, TILE_M, TILE_M / 2);
}

bool product_comes_turned(const ProductJob *j, bool rhs) {
    Operand s;
    operand_init(&s, j, rhs);
    return s.turned;
}

static void give_slots(Work *d, Operand *s, uint32_t n, uint32_t cols) {
    area_ring(&d->area, &s->slots, n, dot_slot_bytes(d->cut.chunk, cols, d->stype));
    area_ways(&d->area, &s->slots, d->begins ? PARTS : 1, 0);
    s->pitch = cols;
    for (uint32_t i = 0; i < n; i++)
        s->key[i] = -1;
}

static void work_init(Work *d, const ProductJob *j) {
    const Product *p = &j->p;
    *d = (Work){.e = j->e, .j = *j, .rows = j->rows, .stype = p->stype, .dtype = p->dtype, .elem = dtype_bytes(p->stype), .out_elem = dtype_bytes(p->dtype)};
    operand_init(&d->lhs, j, false), operand_init(&d->rhs, j, true);
    d->out = (Matrix){layout_side(p, &p->m, true, 3), layout_side(p, &p->n, true, 2)};
    d->batches = nest_size(&p->batch), d->m = d->lhs.free.size, d->n = d->rhs.free.size, d->k = nest_size(&p->k);
    d->turns = d->lhs.turned || d->rhs.turned;
    d->tile_k = product_tile_k(&d->lhs.at.rows, &d->rhs.at.rows);
    d->out_sbuf = product_below(j);
    assert(!j->sums.of || (d->batches == 1 && j->together == 1));
}

uint32_t product_below(const ProductJob *j) {
    return j->rows ? j->rows->area_at : ROWS_AREA_BEGIN - OUT_SLOTS * OUT_TILES * BLOCK * (uint32_t)dtype_bytes(j->p.dtype);
}

#define SUM_SLOTS 2
#define ONES_BYTES 64u

static uint32_t sums_bytes(const ProductSums *s) {
    return !s->of ? 0 : ONES_BYTES + (s->rows ? 0 : SUM_SLOTS * BLOCK * (uint32_t)dtype_bytes(s->dtype));
}

static DotSize size_of(const Work *d) {
    const ProductJob *j = &d->j;
    DotSize size = {.chip = d->e->chip, .stype = d->stype, .dtype = d->dtype, .k = max64(1, d->k), .tile_k = d->tile_k};
    size.lhs = (DotSide){&d->lhs.at.rows, &d->lhs.free, d->lhs.parts, d->lhs.turned}, size.rhs = (DotSide){&d->rhs.at.rows, &d->rhs.free, d->rhs.parts, d->rhs.turned};
    size.out = &d->out;
    size.m = max64(1, min64(d->m, j->rows_hi - j->rows_lo)), size.n = max64(1, j->n_hi - j->n_lo);
    size.batches = max64(1, (j->rows_hi - j->rows_lo) / size.m);
    size.lhs_same = j->same;
    uint32_t below = j->sums.rows ? j->sums.rows->area_at : d->out_sbuf;
    size.own = product_room(d->e, below, false), size.all = product_room(d->e, below, true);
    size.sums = j->sums.of, size.sums_bytes = sums_bytes(&j->sums);
    size.can_keep = j->may_keep, size.beside = (double)j->beside;
    return size;
}

DotCut product_cut(const ProductJob *j) {
    Work *d = ARENA_NEW(j->e->c->scratch, Work);
    work_init(d, j);
    DotSize size = size_of(d);
    return dot_cut(&size);
}

// Many small products: all of k is there.
static DotCut cut_small(const Work *d, uint32_t lhs_cols, uint32_t rhs_cols) {
    DotCut c = {.tiles = 1, .cols = BLOCK, .chunk = 1, .lhs_slots = SMALL_SLOTS, .rhs_slots = SMALL_SLOTS, .stages = d->turns ? DOT_STAGES : 0};
    DotSize size = size_of(d);
    while (!dot_cut_fits(&size, &c, lhs_cols, rhs_cols)) {
        assert(c.lhs_slots > 1);
        if (c.stages > 2)
            c.stages--;
        else
            c.lhs_slots--, c.rhs_slots--;
    }
    return c;
}

static void plan(Work *d) {
    DotSize size = size_of(d);
    bool small = d->j.together > 1;
    uint32_t lcols = (uint32_t)(d->j.together * d->m), rcols = (uint32_t)(d->j.together * d->n);
    d->cut = small ? cut_small(d, lcols, rcols) : dot_cut(&size);
    if (!small)
        lcols = d->cut.tiles * TILE_M, rcols = d->cut.cols;
    assert(d->cut.tiles >= 1);
    assert(d->cut.tiles * (d->cut.cols / BLOCK) <= PSUM_BANKS);
    assert(d->cut.chunk <= DOT_CHUNK);
    assert(d->cut.stages <= DOT_STAGES);
    d->mstep = layout_even(&d->lhs.free, lcols, lcols * 3 / 4);
    Layout n = layout_side(&d->j.p, &d->j.p.n, true, 3);
    d->nstep = layout_even(d->rhs.free.rank >= n.rank ? &d->rhs.free : &n, rcols, rcols * 3 / 4);
    if (small)
        d->mstep = d->m, d->nstep = d->n;
    d->area = (Area){.e = d->e, .room = d->cut.borrows ? size.all : size.own};
    give_slots(d, &d->lhs, d->cut.lhs_slots, lcols);
    give_slots(d, &d->rhs, d->cut.rhs_slots, rcols);
    area_ring(&d->area, &d->stages, d->cut.stages, dot_stage_bytes(&size, &d->cut, lcols, rcols));
    if (size.sums) {
        area_ring(&d->area, &d->ones, 1, ONES_BYTES);
        area_ring(&d->area, &d->sums, d->j.sums.rows ? 0 : SUM_SLOTS, BLOCK * (uint32_t)dtype_bytes(d->j.sums.dtype));
        d->sum_tiles = dot_sum_tiles(&size, d->cut.tiles);
    }
    d->area.room = (Room){{d->out_sbuf}, {ROWS_AREA_BEGIN}};
    uint32_t together = small ? 1 : OUT_TILES;
    if (d->rows)
        return;
    area_ring(&d->area, &d->outs, OUT_SLOTS * OUT_TILES / together, together * BLOCK * (uint32_t)d->out_elem);
    area_ways(&d->area, &d->outs, together, 0);
}

// Banks whose tiles leave together have one hazard.
static void pair_banks(Work *d, bool out) {
    for (uint32_t i = 0, first; i < PSUM_BANKS; i++)
        if ((first = i & ~(tiles_together(d) - 1)) != i)
            emit_merge(d->e, &d->e->bank_haz[out ? i : first], &d->e->bank_haz[out ? first : i]);
}

ProductJob product_job(Emit *e, const Product *p) {
    ProductJob j = {.e = e, .p = *p, .together = 1};
    j.rows_hi = nest_size(&p->batch) * nest_size(&p->m), j.n_hi = nest_size(&p->n);
    return j;
}

void product_emit(const ProductJob *j) {
    Work *d = ARENA_NEW(j->e->c->scratch, Work);
    work_init(d, j);
    d->begins = d->e->product_epoch != d->e->epoch + 1;
    if (!d->e->probe)
        d->e->product_epoch = d->e->epoch + 1;
    plan(d);
    if (d->cut.keeps) {
        Operand *passes = d->cut.by_columns ? &d->lhs : &d->rhs;
        passes->keeps = true, passes->kept = j->kept;
    }
    if (d->cut.borrows)
        emit_join(d->e, LANE_ROWS);
    area_open(&d->area);
    pair_banks(d, false);
    take_banks(d, d->e->next_bank);
    if (d->rows)
        rows_open(d->rows);
    if (j->sums.rows)
        rows_open(j->sums.rows);
    if (j->sums.of)
        put_memset(d->e, ENG_GPSIMD, VIEW(ring_at(&d->ones, 0), d->stype, {TILE_K}, {1, 1}), j->sums.each->data);
    emit_chunks(d);
    if (j->sums.rows)
        rows_close(j->sums.rows);
    if (d->rows)
        rows_close(d->rows);
    area_close(&d->area);
    pair_banks(d, true);
    if (!d->e->probe)
        d->e->next_bank = d->bank0;
    if (d->cut.borrows)
        emit_join(d->e, LANE_ROWS);
}
