// SPDX-License-Identifier: Apache-2.0
// dot.c — a matrix product as DMA in, load-stationary, matmul into PSUM, eviction, DMA out.
//
//            N: 1 or 2 banks of 512             The output is cut into blocks of up to eight PSUM banks. Contraction
//          ┌─────────────┐                      goes in chunks of tiles of 128 rows on the partitions. A bank leaves
//  M: up   │ bank 0      │   K: chunks of       PSUM while the next ones add up their last chunk.
//   to 8   │ bank 1      │   n x 128 on the
//   x 128  │ …           │   partitions         SBUF is cut into slots of a chunk of each side: [tile of k][column], the
//          └─────────────┘                      k inside the tile is the partition. dot_cut.c chooses all of these sizes.
//
// A block's chunk is a *step*. Slots are filled steps ahead, as long as none is taken away that a step still needs; each
// filling is a task, each step's products another one, so that they go beside each other (sched.c).
// What transfers cannot transpose, bytes or on some chips anything, is loaded in rows, which the array turns in two banks that
// blocks then leave free.
// A left side that is one number everywhere (the ones of a sum) is set in SBUF instead, once: its tiles are all the same.
// With a row program behind it (epilogue.c) a tile is not copied out of PSUM but goes through the program's instructions,
// in the place of the results and a part of the slots.
// Tails are shorter counts in the same instructions. The order in which k adds up is the same for all of these, so every
// target computes the same bits.
#include <assert.h>
#include <string.h>

#include "hlo/dot.h"
#include "pass/rows.h"
#include "tile/dot.h"
#include "tile/dot_cut.h"
#include "tile/put.h"

#define TILE_K PARTITIONS
#define TILE_M PARTITIONS
#define BLOCK PSUM_BANK_COLS
#define ROOM_LEAST 8192u // bytes of SBUF beside an epilogue, a unit of them, for elements of two bytes
#define AHEAD 6     // steps that are filled before they are multiplied
#define BANKS_HALF (PSUM_BANKS / 2)
#define OUT_SLOTS 2
#define OUT_TILES 4 // of rows that are stored together
#define ROWS_FIRST 0.1 // cut by rows rather than by columns: what follows is mostly, and then needs no meeting
#define LOW_CUT 64 // columns at which a low and narrow product is cut: fewer take the array as long

typedef struct DotSide { // one operand and its slots
    Side at;
    uint8_t queue; // a queue starts so many transfers a second: each side has its own
    uint64_t addr;
    bool keeps;    // is stored as it is transposed, [k][free],
    uint64_t kept; // … there
    const HloAttr *same; // the number that all of it is; NULL: it lies at addr
    uint32_t pitch; // columns of a tile in a slot
    Ring slots;
    int64_t key[DOT_SLOTS]; // which block and chunk a slot holds, -1 = nothing
    uint32_t held[DOT_SLOTS]; // steps that are filled and still to read it
} DotSide;

typedef struct DotStep { // a chunk of a block
    int64_t batch, m0, mlen, n0, ncols, k0, klen;
    uint32_t lslot, rslot;
} DotStep;

typedef struct Dot {
    Emit *e;
    OpId op;
    DotSide lhs, rhs;
    DotCut cut;
    int stype, dtype; // operand and result types
    size_t elem, out_elem;
    int64_t m, n, k;
    int64_t rows_lo, rows_hi, n_lo, n_end; // what of it this core does: rows of all batches, columns
    uint64_t out_addr;
    Area area;
    uint32_t out_sbuf;
    Ring outs, stages;
    uint32_t evictions;
    uint32_t bank0; // of the block in work
    RowOp *rows; // what tiles go through where they leave PSUM, NULL: nothing
    int64_t beside; // bytes that it loads and stores for an element
    bool turns;               // transfers cannot transpose: the array does
    uint32_t next_turn;
} Dot;

static int64_t rows_begin_of(const Dot *d, int64_t batch) { return max64(0, d->rows_lo - batch * d->m); }
static bool is_wide(const Dot *d) { return d->cut.cols > BLOCK; }

// --- filling slots -----------------------------------------------------------------------------------

// Columns of a chunk: tiles of k on the partitions, [tile of k][column].
static void load_parts(Dot *d, DotSide *s, uint32_t slot, int64_t cols, int64_t klen, uint64_t from, int64_t k_stride, int64_t free_stride) {
    put_dma_tiles(d->e, s->queue, VIEW(ring_at(&s->slots, slot), d->stype, {klen}, {cols, 1}),
                  VIEW(mem_hbm(from), d->stype, {klen, k_stride}, {cols, free_stride}), s->pitch);
}

static uint64_t kept_at(const Dot *d, const DotSide *s, const DotStep *x, int64_t f0) {
    return s->kept + (uint64_t)((x->batch * s->at.k_size + x->k0) * s->at.free_size + f0) * d->elem;
}

static void store_kept(Dot *d, DotSide *s, uint32_t slot, const DotStep *x, int64_t f0, int64_t cols) {
    emit_task(d->e);
    put_dma_tiles(d->e, QUEUE_OUT, VIEW(mem_hbm(kept_at(d, s, x, f0)), d->stype, {x->klen, s->at.free_size}, {cols, 1}),
                  VIEW(ring_at(&s->slots, slot), d->stype, {x->klen}, {cols, 1}), s->pitch);
}

// What a task of the same step has stored: these do meet.
static void load_kept(Dot *d, DotSide *s, uint32_t slot, const DotStep *x, int64_t f0, int64_t cols) {
    bool apart = d->e->tiles_apart;
    d->e->tiles_apart = false;
    load_parts(d, s, slot, cols, x->klen, kept_at(d, s, x, f0), s->at.free_size, 1);
    d->e->tiles_apart = apart;
}

// `tiles` of k from tile t0 on, columns [f0, f0 + cols): transposed side by side in a bank, copied to their slot from there.
static void transpose_tiles(Dot *d, DotSide *s, uint32_t slot, Mem stage, int64_t t0, int64_t tiles, int64_t f0, int64_t cols,
                            int64_t klen) {
    Mem bank = bank_at(d->e, d->next_turn++ % 2 ? 7 : is_wide(d) ? 3 : 6);
    int64_t rows = min64(TILE_K, klen - t0 * TILE_K), size = (int64_t)d->elem;
    for (int64_t t = 0; t < tiles; t++)
        put_transposes(d->e, d->stype, mem_off(bank, t * cols * size), TILE_M, mem_off(stage, (f0 / TILE_M * klen + (t0 + t) * TILE_K) * size), klen, cols, TILE_M, rows);
    put_copy(d->e, d->evictions++ % 2 ? ENG_SCALAR : ENG_VECTOR,
             VIEW(mem_off(ring_at(&s->slots, slot), (t0 * s->pitch + f0) * size), d->stype, {rows}, {tiles, s->pitch}, {cols, 1}),
             VIEW(bank, d->stype, {rows}, {tiles, cols}, {cols, 1}));
}

// Rows of a chunk come as they lie, groups of 128 columns on the partitions, each with its klen elements.
static void load_transposed(Dot *d, DotSide *s, uint32_t slot, int64_t cols, int64_t klen, int64_t from) {
    Mem stage = ring_next(&d->stages);
    int64_t room = (int64_t)(PSUM_BANK_BYTES / d->elem), full = klen / TILE_K;
    put_dma_tiles(d->e, s->queue, VIEW(stage, d->stype, {cols}, {klen, 1}),
                  VIEW(mem_hbm(s->addr + (uint64_t)from * d->elem), d->stype, {cols, s->at.free_stride}, {klen, 1}), klen);
    for (int64_t f0 = 0, some; f0 < cols; f0 += some) {
        some = min64(cols - f0, room);
        int64_t per = room / some;
        for (int64_t t = 0; t < full; t += per)
            transpose_tiles(d, s, slot, stage, t, min64(per, full - t), f0, some, klen);
        if (klen % TILE_K)
            transpose_tiles(d, s, slot, stage, full, 1, f0, some, klen);
    }
}

static bool comes_turned(const Dot *d, const DotSide *s) {
    return d->turns && !s->same && s->at.k_stride == 1 && s->at.free_stride > 1 && s->at.k_size > 1;
}

static void side_set(Dot *d, DotSide *s, int64_t cols) {
    put_memset(d->e, ENG_GPSIMD, VIEW(ring_at(&s->slots, 0), d->stype, {TILE_K}, {cols, 1}), s->same->data);
}

static int64_t key_of(const DotSide *s, int64_t batch, int64_t f0, int64_t k0) {
    return s->same ? 0 : (batch * s->at.free_size + f0) * s->at.k_size + k0;
}

static uint32_t slot_of(const DotSide *s, int64_t key) { // nslots: none
    uint32_t i = 0;
    while (i < s->slots.n && s->key[i] != key)
        i++;
    return i;
}

static bool has_slot(const DotSide *s, int64_t key) { return slot_of(s, key) < s->slots.n || !s->held[s->slots.next % s->slots.n]; }

// The slot that holds columns [f0, f0+cols) of the step's chunk; loads it when none does. `again`: they were here before.
static uint32_t side_load(Dot *d, DotSide *s, const DotStep *x, int64_t f0, int64_t cols, bool again) {
    int64_t key = key_of(s, x->batch, f0, x->k0);
    uint32_t slot = slot_of(s, key);
    if (slot < s->slots.n)
        return slot;
    slot = ring_turn(&s->slots);
    assert(!s->held[slot]);
    s->key[slot] = key;
    emit_task(d->e);
    int64_t from = side_batch_offset(&s->at, x->batch) + f0 * s->at.free_stride + x->k0 * s->at.k_stride;
    if (s->same)
        side_set(d, s, cols); // no block after it has more
    else if (s->keeps && again)
        load_kept(d, s, slot, x, f0, cols);
    else if (comes_turned(d, s))
        load_transposed(d, s, slot, cols, x->klen, from);
    else
        load_parts(d, s, slot, cols, x->klen, s->addr + (uint64_t)from * d->elem, s->at.k_stride, s->at.free_stride);
    if (s->keeps && !again)
        store_kept(d, s, slot, x, f0, cols);
    return slot;
}

static bool can_fill(const Dot *d, const DotStep *s) {
    return has_slot(&d->rhs, key_of(&d->rhs, s->batch, s->n0, s->k0)) && has_slot(&d->lhs, key_of(&d->lhs, s->batch, s->m0, s->k0));
}

static void fill(Dot *d, DotStep *s) {
    for (int i = 0; i < 2; i++) // what is transposed first: it takes longer
        if ((i == 0) == comes_turned(d, &d->lhs))
            s->lslot = side_load(d, &d->lhs, s, s->m0, s->mlen, s->n0 > d->n_lo);
        else
            s->rslot = side_load(d, &d->rhs, s, s->n0, s->ncols, s->m0 > rows_begin_of(d, s->batch));
    d->rhs.held[s->rslot]++, d->lhs.held[s->lslot]++;
}

// --- products ----------------------------------------------------------------------------------------
static View slot_view(const Dot *d, const DotSide *s, uint32_t slot, int64_t tile, int64_t rows, int64_t col, int64_t cols) {
    int64_t at = (s->same ? 0 : tile * s->pitch) + col;
    return VIEW(mem_off(ring_at(&s->slots, slot), at * (int64_t)d->elem), d->stype, {rows}, {cols, 1});
}

// Tiles of rows that leave together for the row program, so that its transfers are longer: as many as it has room for. The array
// transposes in the upper banks.
static uint32_t tiles_together(const Dot *d) {
    return !d->rows || d->rows->width <= BLOCK ? 1 : d->n <= BLOCK / 2 && !d->turns ? BANKS_HALF : BANKS_HALF / 2;
}

// Their banks are one piece of memory.
static Haz *bank_haz(const Dot *d, uint32_t bank) { return &d->e->bank_haz[bank & ~(tiles_together(d) - 1)]; }

// Two tiles of k at once: fp8 has two rows a cell from trn2 on. They lie a pitch apart, and add up as one behind the other would.
static bool doubles(const Dot *d, const DotStep *s, int64_t k) {
    bool fp8 = d->stype == DT_F8E4M3 || d->stype == DT_F8E4M3FN || d->stype == DT_F8E5M2;
    return fp8 && d->e->chip->generation >= 3 && !d->lhs.same && k + 2 * TILE_K <= s->klen;
}

// One or two tiles of k for 128 rows and up to 512 columns from column n0 of the block.
static void multiply(Dot *d, uint32_t lslot, uint32_t rslot, int64_t tile, int64_t rows, bool two, uint32_t bank, int64_t m0,
                     int64_t mcols, int64_t n0, int64_t ncols, bool accumulate) {
    put_weights(d->e, slot_view(d, &d->lhs, lslot, tile, rows, m0, mcols), two ? d->lhs.pitch : 0);
    for (int64_t c = 0; c < ncols; c += BLOCK, bank += BANKS_HALF) { // the same weights for both halves of a wide block
        int64_t n = min64(BLOCK, ncols - c);
        Mem to = {bank_at(d->e, bank).addr, bank_haz(d, bank)};
        put_matmul(d->e, VIEW(to, DT_F32, {mcols}, {n, 1}), slot_view(d, &d->rhs, rslot, tile, rows, n0 + c, n), accumulate,
                   two ? d->rhs.pitch : 0);
    }
}

static uint32_t bank_of(const Dot *d, int64_t tile, int64_t col) { return d->bank0 + (uint32_t)(tile + col / BLOCK * BANKS_HALF); }

static void store_tiles(Dot *d, int64_t tiles, int64_t rows, int64_t cols, Mem from, int64_t to) {
    put_dma(d->e, QUEUE_OUT, VIEW(mem_hbm(d->out_addr + (uint64_t)to * d->out_elem), d->dtype, {rows, d->n}, {tiles, TILE_M * d->n}, {cols, 1}),
            VIEW(from, d->dtype, {rows}, {tiles, d->cut.cols}, {cols, 1}));
}

// Tile after tile through the row program, each a task of its own, so that their chains are woven together.
static void go_on(Dot *d, uint32_t bank, int64_t row, int64_t mlen, int64_t n0, int64_t ncols) {
    for (int64_t mi = 0, tiles; mi < mlen; mi += tiles * TILE_M, bank += (uint32_t)tiles) {
        tiles = max64(1, min64(tiles_together(d), (mlen - mi) / TILE_M));
        emit_task(d->e);
        rows_from_psum(d->rows, (uint32_t)tiles, bank * PSUM_BANK_BYTES, bank_haz(d, bank), row + mi,
                       (uint32_t)min64(TILE_M, mlen - mi), n0, (uint32_t)ncols);
    }
}

// Rows [m, m + len) of a block, as many as the place of a result has room for, in the order in which they are ready.
static void evict(Dot *d, const DotStep *s, int64_t m, int64_t len) {
    Mem slot = ring_next(&d->outs);
    int64_t pitch = (int64_t)(d->cut.cols * d->out_elem), full = len / TILE_M, to = (s->batch * d->m + s->m0 + m) * d->n + s->n0;
    emit_task(d->e);
    for (int64_t i = 0; i < len; i += TILE_M)
        for (int64_t c = 0; c < s->ncols; c += BLOCK) { // in the result's type, on the vector and the scalar engine in turn
            int64_t rows = min64(TILE_M, len - i), cols = min64(BLOCK, s->ncols - c);
            put_copy(d->e, d->evictions++ % 2 ? ENG_SCALAR : ENG_VECTOR,
                     VIEW(mem_off(slot, i / TILE_M * pitch + c * (int64_t)d->out_elem), d->dtype, {rows}, {cols, 1}),
                     VIEW(bank_at(d->e, bank_of(d, (m + i) / TILE_M, c)), DT_F32, {rows}, {cols, 1}));
        }
    if (full)
        store_tiles(d, full, TILE_M, s->ncols, slot, to);
    if (len % TILE_M)
        store_tiles(d, 1, len % TILE_M, s->ncols, mem_off(slot, full * pitch), to + full * TILE_M * d->n);
}

static void evict_block(Dot *d, const DotStep *s) {
    int64_t some = d->rows ? max64(2, tiles_together(d)) * TILE_M : OUT_TILES * TILE_M * BLOCK / d->cut.cols;
    for (int64_t m = 0; m < s->mlen; m += some) {
        int64_t len = min64(some, s->mlen - m);
        for (int64_t c = 0; d->rows && c < s->ncols; c += BLOCK)
            go_on(d, bank_of(d, m / TILE_M, c), s->batch * d->m + s->m0 + m, len, s->n0 + c, min64(BLOCK, s->ncols - c));
        if (!d->rows)
            evict(d, s, m, len);
    }
}

static void multiply_step(Dot *d, const DotStep *s) {
    emit_task(d->e);
    for (int64_t c = 0; d->rows && !s->k0 && c < s->ncols; c += BLOCK)
        rows_columns(d->rows, s->n0 + c, (uint32_t)min64(BLOCK, s->ncols - c));
    for (int64_t mi = 0; mi < s->mlen; mi += TILE_M)
        for (int64_t kt = 0, two; kt < s->klen; kt += (1 + two) * TILE_K) {
            two = doubles(d, s, kt);
            multiply(d, s->lslot, s->rslot, kt / TILE_K, min64(TILE_K, s->klen - kt), two, bank_of(d, mi / TILE_M, 0), mi,
                     min64(TILE_M, s->mlen - mi), 0, s->ncols, s->k0 + kt > 0);
        }
    d->lhs.held[s->lslot]--, d->rhs.held[s->rslot]--;
    if (s->k0 + s->klen < d->k)
        return;
    evict_block(d, s);
    if (d->cut.tiles <= BANKS_HALF && !is_wide(d) && !d->turns) // of a low block the next one does not wait for
        d->bank0 ^= BANKS_HALF;
}

// --- steps -------------------------------------------------------------------------------------------

static int64_t rows_end_of(const Dot *d, int64_t batch) { return min64(d->m, d->rows_hi - batch * d->m); }

static void step_sizes(const Dot *d, DotStep *s) {
    s->mlen = min64(d->cut.tiles * TILE_M, rows_end_of(d, s->batch) - s->m0);
    s->ncols = min64(d->cut.cols, d->n_end - s->n0);
    s->klen = min64(d->cut.chunk * TILE_K, d->k - s->k0);
}

// The first step of the first batch from `batch` on that this core has rows of.
static bool step_first(const Dot *d, DotStep *s, int64_t batch) {
    for (; batch < side_batches(&d->lhs.at) && d->n_lo < d->n_end; batch++)
        if (rows_begin_of(d, batch) < rows_end_of(d, batch)) {
            *s = (DotStep){.batch = batch, .m0 = rows_begin_of(d, batch), .n0 = d->n_lo};
            step_sizes(d, s);
            return true;
        }
    return false;
}

static bool step_next(const Dot *d, DotStep *s) {
    int64_t *inner = d->cut.by_columns ? &s->m0 : &s->n0, *outer = d->cut.by_columns ? &s->n0 : &s->m0;
    int64_t mstep = d->cut.tiles * TILE_M, mend = rows_end_of(d, s->batch);
    s->k0 += s->klen;
    if (s->k0 == d->k) {
        s->k0 = 0;
        *inner += d->cut.by_columns ? mstep : d->cut.cols;
        if (*inner >= (d->cut.by_columns ? mend : d->n_end)) {
            *inner = d->cut.by_columns ? rows_begin_of(d, s->batch) : d->n_lo;
            *outer += d->cut.by_columns ? d->cut.cols : mstep;
            if (*outer >= (d->cut.by_columns ? d->n_end : mend))
                return step_first(d, s, s->batch + 1);
        }
    }
    step_sizes(d, s);
    return true;
}

static void emit_steps(Dot *d) {
    DotStep next, filled[AHEAD];
    uint32_t first = 0, n = 0;
    bool more = step_first(d, &next, 0);
    while (more || n) {
        for (; more && n < AHEAD && can_fill(d, &next); n++) {
            fill(d, &next);
            filled[(first + n) % AHEAD] = next;
            more = step_next(d, &next);
        }
        assert(n);
        multiply_step(d, &filled[first]);
        first = (first + 1) % AHEAD, n--;
    }
}

// --- the plan ----------------------------------------------------------------------------------------

// SBUF below the results, and above the row programs' area or from its beginning on.
static Room room_of(const Dot *d, uint32_t below, bool borrows) {
    uint32_t end = d->e->draws_bytes ? DRAWS_AREA_BEGIN : (uint32_t)d->e->chip->sbuf_usable_bytes;
    return (Room){{0, ROWS_AREA_BEGIN + (borrows ? 0 : ROWS_AREA_BYTES)}, {below, end}};
}

static uint32_t room_bytes(Room r) { return r.end[0] - r.at[0] + (r.end[1] > r.at[1] ? r.end[1] - r.at[1] : 0); }

static void give_slots(Dot *d, DotSide *s, uint32_t n, uint32_t cols) {
    area_ring(&d->area, &s->slots, n, dot_slot_bytes(d->cut.chunk, cols, d->stype));
    s->pitch = cols;
    for (uint32_t i = 0; i < n; i++)
        s->key[i] = -1;
}

static void plan(Dot *d, bool can_keep) {
    d->out_sbuf = d->rows ? d->rows->area_at : ROWS_AREA_BEGIN - OUT_SLOTS * OUT_TILES * BLOCK * (uint32_t)d->out_elem;
    DotSize size = {.chip = d->e->chip, .stype = d->stype, .dtype = d->dtype, .k = d->k, .lhs = &d->lhs.at, .rhs = &d->rhs.at};
    size.m = max64(1, min64(d->m, d->rows_hi - d->rows_lo)), size.n = max64(1, d->n_end - d->n_lo);
    size.batches = max64(1, (d->rows_hi - d->rows_lo) / size.m);
    size.lhs_turned = comes_turned(d, &d->lhs), size.rhs_turned = comes_turned(d, &d->rhs), size.lhs_same = d->lhs.same;
    size.own = room_of(d, d->out_sbuf, false), size.all = room_of(d, d->out_sbuf, true);
    size.can_keep = can_keep, size.beside = (double)d->beside;
    d->cut = dot_cut(&size);
    assert(d->cut.tiles >= 1);
    assert(d->cut.tiles * (d->cut.cols / BLOCK) <= PSUM_BANKS);
    assert(d->cut.chunk <= DOT_CHUNK);
    assert(d->cut.stages <= DOT_STAGES);
    d->area = (Area){.e = d->e, .room = d->cut.borrows ? size.all : size.own};
    give_slots(d, &d->lhs, d->cut.lhs_slots, d->cut.tiles * TILE_M);
    give_slots(d, &d->rhs, d->cut.rhs_slots, d->cut.cols);
    uint32_t l = d->lhs.slots.bytes, r = d->rhs.slots.bytes;
    area_ring(&d->area, &d->stages, d->cut.stages, size.lhs_turned && (!size.rhs_turned || l > r) ? l : r);
    d->area.room = (Room){{d->out_sbuf}, {ROWS_AREA_BEGIN}};
    if (!d->rows)
        area_ring(&d->area, &d->outs, OUT_SLOTS, OUT_TILES * BLOCK * (uint32_t)d->out_elem);
}

// Banks whose tiles leave together have one hazard.
static void pair_banks(Dot *d, bool out) {
    for (uint32_t i = 0, first; i < PSUM_BANKS; i++)
        if ((first = i & ~(tiles_together(d) - 1)) != i)
            emit_merge(d->e, &d->e->bank_haz[out ? i : first], &d->e->bank_haz[out ? first : i]);
}

static void dot_init(Dot *d, Emit *e, OpId id) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, id);
    *d = (Dot){.e = e, .op = id, .lhs.queue = QUEUE_IN2, .rhs.queue = QUEUE_IN};
    side_init(&d->lhs.at, h, op, false);
    side_init(&d->rhs.at, h, op, true);
    d->stype = hlo_value_type(h, hlo_operand(h, op, 0))->dtype;
    d->dtype = hlo_value_type(h, op->results)->dtype;
    d->elem = dtype_bytes(d->stype);
    d->out_elem = dtype_bytes(d->dtype);
    d->m = d->lhs.at.free_size, d->n = d->rhs.at.free_size, d->k = d->lhs.at.k_size;
}

static void set_turns(Dot *d) {
    d->turns = d->e->chip->dma_transpose <= 0 || d->elem == 1; // transfers transpose elements of 2 and 4 bytes
    d->turns = comes_turned(d, &d->lhs) || comes_turned(d, &d->rhs);
}

// Bytes of an element that the program loads or stores by rows of the product: of the narrowest, of all together.
static void bytes_beside(const Hlo *h, OpId program, uint32_t product, int64_t *narrowest, int64_t *all) {
    const HloOp *rows = hlo_at(h, program);
    uint32_t n;
    const int64_t *kinds = hlo_ints(rows, AK_BROADCAST_DIMENSIONS, &n);
    *narrowest = 8, *all = 0;
    for (uint32_t i = 0; i < rows->noperands + rows->nresults; i++) {
        bool loads = i < rows->noperands;
        if (loads && (i == product || kinds[i] != FUSED_SAME))
            continue;
        int64_t bytes = (int64_t)dtype_bytes(hlo_value_type(h, loads ? hlo_operand(h, rows, i) : rows->results + i - rows->noperands)->dtype);
        *narrowest = min64(*narrowest, bytes), *all += bytes;
    }
}

// Room for the row program: several tiles of rows whose transfers are short else, where there is enough, three in work at least; else two, narrower ones then.
// Four in work where transfers are long: an update waits for HBM before and behind its instructions.
static RowOp *fit_rows(Dot *d, const Step *s, const Epilogue *p) {
    int64_t narrowest, all;
    bytes_beside(d->e->l->h, p->rows, p->index, &narrowest, &all);
    d->beside = all;
    bool is_short = min64(d->n, BLOCK) * narrowest <= 2 * BLOCK;
    bool is_tiny = (double)(d->n * (int64_t)d->out_elem) < d->e->chip->dma_descriptor_bytes; // one by one they take longer than the program alone
    static const struct { uint32_t width, sets, slots; } ways[] = {{1024, 3, 4}, {1024, 2, 4}, {512, 4, 4}, {512, 3, 4}, {512, 3, 3}, {512, 2, 3}, {256, 2, 3}, {128, 2, 3}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (uint32_t bytes = 16384; bytes <= 49152 && (ways[w].width <= BLOCK ? !is_tiny : is_short); bytes += 8192) {
            if (room_bytes(room_of(d, ROWS_AREA_BEGIN - bytes, false)) < ways[w].slots * ROOM_LEAST * (d->elem > 2 ? 2 : 1))
                break;
            RowOp *r = rows_epilogue(d->e, s, p, ROWS_AREA_BEGIN - bytes, bytes, ways[w].width, ways[w].sets);
            if (r)
                return r;
        }
    return NULL;
}

bool dot_fits_epilogue(Emit *e, const Epilogue *p) {
    Dot *d = ARENA_NEW(e->c->scratch, Dot);
    Step s = {.op = p->rows};
    dot_init(d, e, p->dot);
    assert(d->m > 0);
    assert(d->n > 0);
    assert(d->k > 0);
    set_turns(d);
    return fit_rows(d, &s, p) != NULL;
}

// How much longer than half of it the longer part of n is, cut at `unit`; of the last one a part counts as `least`.
static double uneven(int64_t n, int64_t unit, int64_t least) {
    double whole = (double)(ceil_div(n, least) * least);
    return 2.0 * (double)(ceil_div(n, 2 * unit) * unit) / whole;
}

// A shared product is cut by rows, as those of all batches lie below each other; by columns when it is low, or when three tiles of rows,
// say, would be shared unevenly.
static void share(Dot *d) {
    d->rows_lo = d->n_lo = 0, d->rows_hi = side_batches(&d->lhs.at) * d->m, d->n_end = d->n;
    if (d->rows_hi > TILE_M && uneven(d->rows_hi, TILE_M, TILE_M) <= uneven(d->n, TILE_M, 1) + ROWS_FIRST)
        emit_share(d->e, d->rows_hi, TILE_M, &d->rows_lo, &d->rows_hi);
    else
        emit_share(d->e, d->n, d->n > 2 * TILE_M ? TILE_M : LOW_CUT, &d->n_lo, &d->n_end);
}

uint64_t dot_keeps(Emit *e, OpId id, const Epilogue *p) {
    Dot *d = ARENA_NEW(e->c->scratch, Dot);
    dot_init(d, e, id);
    set_turns(d);
    if (!comes_turned(d, &d->lhs) || !comes_turned(d, &d->rhs) || d->m < BLOCK || d->n < BLOCK)
        return 0;
    Step *rows = ARENA_NEW(e->c->scratch, Step);
    *rows = (Step){.op = p ? p->rows : 0};
    d->rows = p ? fit_rows(d, rows, p) : NULL;
    share(d);
    plan(d, true);
    return d->cut.keeps ? (uint64_t)(side_batches(&d->lhs.at) * (d->cut.by_columns ? d->m : d->n) * d->k) * d->elem : 0;
}

static void check(const Dot *d) {
    Hlo *h = d->e->l->h;
    if (ROWS_AREA_BEGIN > d->e->chip->sbuf_usable_bytes)
        hlo_fail(h, d->op, OTRN_CAPACITY, "its tiles need %u bytes of SBUF a partition, %s has %.0f", ROWS_AREA_BEGIN,
                 d->e->chip->name, d->e->chip->sbuf_usable_bytes);
    int64_t strides[] = {d->lhs.at.k_stride * TILE_K, d->lhs.at.free_stride, d->rhs.at.k_stride * TILE_K,
                         d->rhs.at.free_stride, d->n * TILE_M};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        if (strides[i] > INT32_MAX)
            hlo_fail(h, d->op, OTRN_CAPACITY, "a stride of %lld elements does not fit a DMA pattern", (long long)strides[i]);
}

void emit_dot(Emit *e, const Step *s) {
    const BufId *refs = e->l->refs.at;
    Dot *d = ARENA_NEW(e->c->scratch, Dot);
    dot_init(d, e, s->op);
    check(d);
    if (refs[s->ins])
        d->lhs.addr = emit_addr(e, refs[s->ins]);
    else
        d->lhs.same = splat_value(e->l->h, hlo_operand(e->l->h, hlo_at(e->l->h, s->op), 0));
    d->rhs.addr = emit_addr(e, refs[s->ins + 1]);
    set_turns(d);
    if (s->aux) { // operands of the program follow those of the product; its results come first
        const Epilogue *p = e->l->epilogues.at[s->aux - 1];
        Step *rows = ARENA_NEW(e->c->scratch, Step);
        *rows = (Step){.op = p->rows, .ins = s->ins + 2, .nins = s->nins - 2, .outs = s->outs, .nouts = s->nouts};
        d->rows = fit_rows(d, rows, p);
        assert(d->rows);
    } else {
        d->out_addr = emit_addr(e, refs[s->outs]);
    }
    uint32_t outs = d->rows ? hlo_at(e->l->h, d->rows->s->op)->nresults + 1 : 1; // behind them: HBM for a transposed operand
    share(d);
    plan(d, s->nouts > outs && !e->parts); // two cores would both store it
    if (d->cut.keeps) {
        DotSide *passes = d->cut.by_columns ? &d->lhs : &d->rhs;
        passes->keeps = true, passes->kept = emit_addr(e, refs[s->outs + outs]);
    }
    if (d->cut.borrows)
        emit_join(e, LANE_ROWS);
    area_open(&d->area);
    pair_banks(d, false);
    if (d->rows)
        rows_open(d->rows);
    emit_steps(d);
    if (d->rows)
        rows_close(d->rows);
    area_close(&d->area);
    pair_banks(d, true);
    if (d->cut.borrows)
        emit_join(e, LANE_ROWS);
}
