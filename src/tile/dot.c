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
// A chip whose transfers cannot transpose loads rows as they lie and lets the array turn them, in two banks that
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

#define TILE_K DOT_TILE
#define TILE_M DOT_TILE
#define BLOCK DOT_BANK
#define ROOM_LEAST 8192u // bytes of SBUF beside an epilogue, a unit of them, for elements of two bytes
#define AHEAD 6     // steps that are filled before they are multiplied
#define BANKS_HALF 4
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
    uint32_t nslots, sbuf[DOT_SLOTS]; // byte offsets
    Haz slots[DOT_SLOTS];
    int64_t key[DOT_SLOTS]; // which block and chunk a slot holds, -1 = nothing
    uint32_t held[DOT_SLOTS]; // steps that are filled and still to read it
    uint32_t next;          // slot to fill next
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
    uint32_t out_sbuf;
    Haz out[OUT_SLOTS];
    uint32_t next_out;
    uint32_t evictions;
    uint32_t bank0; // of the block in work
    RowOp *rows; // what tiles go through where they leave PSUM, NULL: nothing
    bool turns;               // transfers cannot transpose: the array does
    uint32_t stage_sbuf[DOT_STAGES], stage_bytes; // where rows wait for it
    Haz stage[DOT_STAGES];
    uint32_t next_stage, next_turn;
} Dot;

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t pieces(int64_t n, int64_t each) { return (n + each - 1) / each; }
static int64_t rows_begin_of(const Dot *d, int64_t batch) { return max64(0, d->rows_lo - batch * d->m); }
static bool is_wide(const Dot *d) { return d->cut.cols > BLOCK; }

// --- filling slots -----------------------------------------------------------------------------------

// One DMA: `rows` partitions x `tiles` x `cols` from an HBM address to a slot.
static void load_part(Dot *d, DotSide *s, uint32_t slot, uint32_t tile0, int64_t rows, int64_t tiles, int64_t cols, uint64_t from,
                      int64_t k_stride, int64_t free_stride) {
    IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = s->queue, .stype = (uint8_t)d->stype, .src = from};
    in.dst = addr_sbuf(0, (uint32_t)(s->sbuf[slot] + tile0 * s->pitch * d->elem));
    in.n[0] = (uint32_t)rows, in.n[1] = (uint32_t)tiles, in.n[2] = (uint32_t)cols;
    in.d[1] = (int32_t)s->pitch, in.d[2] = 1;
    in.s[0] = (int32_t)k_stride, in.s[1] = (int32_t)(k_stride * TILE_K), in.s[2] = (int32_t)free_stride;
    emit_inst(d->e, in, NULL, 0, (Haz *[]){&s->slots[slot]}, 1);
}

static void load_parts(Dot *d, DotSide *s, uint32_t slot, int64_t cols, int64_t klen, uint64_t from, int64_t k_stride, int64_t free_stride) {
    int64_t full = klen / TILE_K, rest = klen % TILE_K;
    if (full)
        load_part(d, s, slot, 0, TILE_K, full, cols, from, k_stride, free_stride);
    if (rest)
        load_part(d, s, slot, (uint32_t)full, rest, 1, cols, from + (uint64_t)(full * TILE_K * k_stride) * d->elem, k_stride, free_stride);
}

static uint64_t kept_at(const Dot *d, const DotSide *s, const DotStep *x, int64_t f0) {
    return s->kept + (uint64_t)((x->batch * s->at.k_size + x->k0) * s->at.free_size + f0) * d->elem;
}

static void store_kept(Dot *d, DotSide *s, uint32_t slot, const DotStep *x, int64_t f0, int64_t cols) {
    int64_t full = x->klen / TILE_K, rest = x->klen % TILE_K, n = s->at.free_size;
    IsaInst out = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_OUT, .stype = (uint8_t)d->stype};
    out.src = addr_sbuf(0, s->sbuf[slot]), out.dst = kept_at(d, s, x, f0);
    out.n[0] = TILE_K, out.n[1] = (uint32_t)full, out.n[2] = (uint32_t)cols;
    out.s[1] = (int32_t)s->pitch, out.s[2] = out.d[2] = 1, out.d[0] = (int32_t)n, out.d[1] = (int32_t)(TILE_K * n);
    emit_task(d->e);
    if (full)
        emit_inst(d->e, out, (Haz *[]){&s->slots[slot]}, 1, NULL, 0);
    out.src += (uint64_t)full * s->pitch * d->elem, out.dst += (uint64_t)(full * TILE_K * n) * d->elem;
    out.n[0] = (uint32_t)rest, out.n[1] = 1;
    if (rest)
        emit_inst(d->e, out, (Haz *[]){&s->slots[slot]}, 1, NULL, 0);
}

// What a task of the same step has stored: these do meet.
static void load_kept(Dot *d, DotSide *s, uint32_t slot, const DotStep *x, int64_t f0, int64_t cols) {
    bool apart = d->e->tiles_apart;
    d->e->tiles_apart = false;
    load_parts(d, s, slot, cols, x->klen, kept_at(d, s, x, f0), s->at.free_size, 1);
    d->e->tiles_apart = apart;
}

// Rows of a chunk as they lie: groups of 128 columns on the partitions, each with its klen elements.
static void load_stage(Dot *d, const DotSide *s, uint32_t stage, int64_t cols, int64_t klen, int64_t from) {
    int64_t full = cols / TILE_M, rest = cols % TILE_M;
    IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = s->queue, .stype = (uint8_t)d->stype};
    in.src = s->addr + (uint64_t)from * d->elem, in.dst = addr_sbuf(0, d->stage_sbuf[stage]);
    in.n[0] = TILE_M, in.n[1] = (uint32_t)full, in.n[2] = (uint32_t)klen, in.d[1] = (int32_t)klen;
    in.s[0] = (int32_t)s->at.free_stride, in.s[1] = (int32_t)(s->at.free_stride * TILE_M), in.s[2] = in.d[2] = 1;
    if (full)
        emit_inst(d->e, in, NULL, 0, (Haz *[]){&d->stage[stage]}, 1);
    in.src += (uint64_t)(full * TILE_M * s->at.free_stride) * d->elem, in.dst += (uint64_t)(full * klen) * d->elem;
    in.n[0] = (uint32_t)rest, in.n[1] = 1;
    if (rest)
        emit_inst(d->e, in, NULL, 0, (Haz *[]){&d->stage[stage]}, 1);
}

// `tiles` of k from tile t0 on, columns [f0, f0 + cols): turned side by side in a bank, copied to their slot from there.
static void turn_tiles(Dot *d, DotSide *s, uint32_t slot, uint32_t stage, int64_t t0, int64_t tiles, int64_t f0, int64_t cols,
                       int64_t klen) {
    uint32_t bank = d->next_turn++ % 2 ? 7 : is_wide(d) ? 3 : 6;
    int64_t rows = min64(TILE_K, klen - t0 * TILE_K);
    Haz *bhaz = &d->e->bank_haz[bank];
    for (int64_t t = 0; t < tiles; t++)
        for (int64_t f = 0; f < cols; f += TILE_M) {
            IsaInst turn = {.op = ISA_TRANSPOSE, .engine = ENG_TENSOR, .dtype = (uint8_t)d->stype, .stype = (uint8_t)d->stype};
            int64_t at = (f0 + f) / TILE_M * klen + (t0 + t) * TILE_K;
            turn.src = addr_sbuf(0, (uint32_t)(d->stage_sbuf[stage] + (uint64_t)at * d->elem));
            turn.dst = addr_psum(0, (uint32_t)(bank * PSUM_BANK_BYTES + (uint64_t)(t * cols + f) * d->elem));
            turn.n[0] = (uint32_t)min64(TILE_M, cols - f), turn.n[1] = (uint32_t)rows, turn.d[1] = turn.s[1] = 1;
            emit_inst(d->e, turn, (Haz *[]){&d->stage[stage]}, 1, &bhaz, 1);
        }
    IsaInst cp = {.op = ISA_COPY, .stype = (uint8_t)d->stype, .dtype = (uint8_t)d->stype};
    cp.engine = d->evictions++ % 2 ? ENG_SCALAR : ENG_VECTOR;
    cp.src = addr_psum(0, bank * PSUM_BANK_BYTES);
    cp.dst = addr_sbuf(0, (uint32_t)(s->sbuf[slot] + (uint64_t)(t0 * s->pitch + f0) * d->elem));
    cp.n[0] = (uint32_t)rows, cp.n[1] = (uint32_t)tiles, cp.n[2] = (uint32_t)cols;
    cp.s[1] = tiles > 1 ? (int32_t)cols : 0, cp.d[1] = tiles > 1 ? (int32_t)s->pitch : 0, cp.s[2] = cp.d[2] = 1;
    emit_inst(d->e, cp, &bhaz, 1, (Haz *[]){&s->slots[slot]}, 1);
}

static void load_turned(Dot *d, DotSide *s, uint32_t slot, int64_t cols, int64_t klen, int64_t from) {
    uint32_t stage = d->next_stage++ % d->cut.stages;
    int64_t room = (int64_t)(PSUM_BANK_BYTES / d->elem), full = klen / TILE_K;
    load_stage(d, s, stage, cols, klen, from);
    for (int64_t f0 = 0, some; f0 < cols; f0 += some) {
        some = min64(cols - f0, room);
        int64_t per = room / some;
        for (int64_t t = 0; t < full; t += per)
            turn_tiles(d, s, slot, stage, t, min64(per, full - t), f0, some, klen);
        if (klen % TILE_K)
            turn_tiles(d, s, slot, stage, full, 1, f0, some, klen);
    }
}

static bool comes_turned(const Dot *d, const DotSide *s) {
    return d->turns && !s->same && s->at.k_stride == 1 && s->at.free_stride > 1 && s->at.k_size > 1;
}

static void side_set(Dot *d, DotSide *s, int64_t cols) {
    IsaInst set = {.op = ISA_MEMSET, .engine = ENG_GPSIMD, .dst = addr_sbuf(0, s->sbuf[0]), .dtype = (uint8_t)d->stype};
    memcpy(&set.imm, s->same->data, d->elem);
    set.n[0] = TILE_K, set.n[1] = (uint32_t)cols, set.d[1] = 1;
    emit_inst(d->e, set, NULL, 0, (Haz *[]){&s->slots[0]}, 1);
}

static int64_t key_of(const DotSide *s, int64_t batch, int64_t f0, int64_t k0) {
    return s->same ? 0 : (batch * s->at.free_size + f0) * s->at.k_size + k0;
}

static uint32_t slot_of(const DotSide *s, int64_t key) { // nslots: none
    uint32_t i = 0;
    while (i < s->nslots && s->key[i] != key)
        i++;
    return i;
}

static bool has_slot(const DotSide *s, int64_t key) { return slot_of(s, key) < s->nslots || !s->held[s->next]; }

// The slot that holds columns [f0, f0+cols) of the step's chunk; loads it when none does. `again`: they were here before.
static uint32_t side_load(Dot *d, DotSide *s, const DotStep *x, int64_t f0, int64_t cols, bool again) {
    int64_t key = key_of(s, x->batch, f0, x->k0);
    uint32_t slot = slot_of(s, key);
    if (slot < s->nslots)
        return slot;
    slot = s->next;
    s->next = (s->next + 1) % s->nslots;
    assert(!s->held[slot]);
    s->key[slot] = key;
    emit_task(d->e);
    int64_t from = side_batch_offset(&s->at, x->batch) + f0 * s->at.free_stride + x->k0 * s->at.k_stride;
    if (s->same)
        side_set(d, s, cols); // no block after it has more
    else if (s->keeps && again)
        load_kept(d, s, slot, x, f0, cols);
    else if (comes_turned(d, s))
        load_turned(d, s, slot, cols, x->klen, from);
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
static uint64_t slot_at(const Dot *d, const DotSide *s, uint32_t slot, int64_t tile, int64_t col) {
    return addr_sbuf(0, (uint32_t)(s->sbuf[slot] + (uint64_t)((s->same ? 0 : tile * s->pitch) + col) * d->elem));
}

// Banks whose tiles leave together are one piece of memory.
static bool is_paired(const Dot *d) { return d->rows && d->rows->width > BLOCK; }

static Haz *bank_haz(const Dot *d, uint32_t bank) { return &d->e->bank_haz[is_paired(d) ? bank & ~1u : bank]; }

// One tile of k for 128 rows and up to 512 columns from column n0 of the block.
static void multiply(Dot *d, uint32_t lslot, uint32_t rslot, int64_t tile, int64_t rows, uint32_t bank,
                     int64_t m0, int64_t mcols, int64_t n0, int64_t ncols, bool accumulate) {
    IsaInst ld = {.op = ISA_LDWEIGHTS, .engine = ENG_TENSOR, .stype = (uint8_t)d->stype};
    ld.src = slot_at(d, &d->lhs, lslot, tile, m0);
    ld.n[0] = (uint32_t)rows, ld.n[1] = (uint32_t)mcols, ld.s[1] = 1;
    emit_inst(d->e, ld, (Haz *[]){&d->lhs.slots[lslot]}, 1, NULL, 0);
    IsaInst mm = {.op = ISA_MATMUL, .engine = ENG_TENSOR, .stype = (uint8_t)d->stype};
    mm.flags = accumulate ? MATMUL_ACCUMULATE : 0;
    mm.n[0] = (uint32_t)rows, mm.n[2] = (uint32_t)mcols;
    mm.d[1] = 1, mm.s[1] = 1;
    for (int64_t c = 0; c < ncols; c += BLOCK, bank += 4) { // the same weights for both halves of a wide block
        mm.src = slot_at(d, &d->rhs, rslot, tile, n0 + c);
        mm.dst = addr_psum(0, bank * PSUM_BANK_BYTES);
        mm.n[1] = (uint32_t)min64(BLOCK, ncols - c);
        emit_inst(d->e, mm, (Haz *[]){&d->rhs.slots[rslot]}, 1, (Haz *[]){bank_haz(d, bank)}, 1);
    }
}

static uint32_t bank_of(const Dot *d, int64_t tile, int64_t col) { return d->bank0 + (uint32_t)(tile + col / BLOCK * 4); }

// A bank → SBUF in the result's type, on the vector and the scalar engine in turn.
static void copy_bank(Dot *d, uint32_t bank, int64_t rows, int64_t cols, uint32_t at, Haz *out) {
    IsaInst cp = {.op = ISA_COPY, .stype = DT_F32, .dtype = (uint8_t)d->dtype, .dst = addr_sbuf(0, at)};
    cp.engine = d->evictions++ % 2 ? ENG_SCALAR : ENG_VECTOR;
    cp.src = addr_psum(0, bank * PSUM_BANK_BYTES);
    cp.n[0] = (uint32_t)rows, cp.n[1] = (uint32_t)cols, cp.s[1] = cp.d[1] = 1;
    emit_inst(d->e, cp, (Haz *[]){&d->e->bank_haz[bank]}, 1, &out, 1);
}

static void store_tiles(Dot *d, uint32_t tiles, int64_t rows, int64_t cols, uint32_t at, Haz *haz, int64_t to) {
    IsaInst out = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_OUT, .stype = (uint8_t)d->dtype};
    out.src = addr_sbuf(0, at);
    out.dst = d->out_addr + (uint64_t)to * d->out_elem;
    out.n[0] = (uint32_t)rows, out.n[1] = tiles, out.n[2] = (uint32_t)cols;
    out.d[0] = (int32_t)d->n, out.d[1] = tiles > 1 ? (int32_t)(TILE_M * d->n) : 0, out.d[2] = 1;
    out.s[1] = tiles > 1 ? (int32_t)d->cut.cols : 0, out.s[2] = 1;
    emit_inst(d->e, out, &haz, 1, NULL, 0);
}

// Tile after tile through the row program, each a task of its own, so that their chains are woven together.
static void go_on(Dot *d, uint32_t bank, int64_t row, int64_t mlen, int64_t n0, int64_t ncols) {
    for (int64_t mi = 0, tiles; mi < mlen; mi += tiles * TILE_M, bank += (uint32_t)tiles) {
        tiles = is_paired(d) && mlen - mi >= 2 * TILE_M ? 2 : 1;
        emit_task(d->e);
        rows_from_psum(d->rows, (uint32_t)tiles, bank * PSUM_BANK_BYTES, bank_haz(d, bank), row + mi,
                       (uint32_t)min64(TILE_M, mlen - mi), n0, (uint32_t)ncols);
    }
}

// Rows [m, m + len) of a block, as many as the place of a result has room for, in the order in which they are ready.
static void evict(Dot *d, const DotStep *s, int64_t m, int64_t len) {
    uint32_t slot = d->next_out++ % OUT_SLOTS, at = d->out_sbuf + slot * (uint32_t)(OUT_TILES * BLOCK * d->out_elem);
    uint32_t pitch = (uint32_t)(d->cut.cols * d->out_elem), full = (uint32_t)(len / TILE_M);
    int64_t to = (s->batch * d->m + s->m0 + m) * d->n + s->n0;
    emit_task(d->e);
    for (int64_t i = 0; i < len; i += TILE_M)
        for (int64_t c = 0; c < s->ncols; c += BLOCK)
            copy_bank(d, bank_of(d, (m + i) / TILE_M, c), min64(TILE_M, len - i), min64(BLOCK, s->ncols - c),
                      (uint32_t)(at + i / TILE_M * pitch + (uint64_t)c * d->out_elem), &d->out[slot]);
    if (full)
        store_tiles(d, full, TILE_M, s->ncols, at, &d->out[slot], to);
    if (len % TILE_M)
        store_tiles(d, 1, len % TILE_M, s->ncols, at + full * pitch, &d->out[slot], to + (int64_t)full * TILE_M * d->n);
}

static void evict_block(Dot *d, const DotStep *s) {
    int64_t some = d->rows ? 2 * TILE_M : OUT_TILES * TILE_M * BLOCK / d->cut.cols;
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
        for (int64_t kt = 0; kt < s->klen; kt += TILE_K)
            multiply(d, s->lslot, s->rslot, kt / TILE_K, min64(TILE_K, s->klen - kt), bank_of(d, mi / TILE_M, 0), mi,
                     min64(TILE_M, s->mlen - mi), 0, s->ncols, s->k0 + kt > 0);
    d->lhs.held[s->lslot]--, d->rhs.held[s->rslot]--;
    if (s->k0 + s->klen < d->k)
        return;
    evict_block(d, s);
    if (d->cut.tiles <= BANKS_HALF && !is_wide(d) && !d->turns) // of a low block the next one does not wait for
        d->bank0 ^= BANKS_HALF;
}

// --- steps -------------------------------------------------------------------------------------------

static int64_t batches(const Dot *d) {
    int64_t n = 1;
    for (uint32_t i = 0; i < d->lhs.at.nbatch; i++)
        n *= d->lhs.at.batch_dims[i];
    return n;
}

static int64_t rows_end_of(const Dot *d, int64_t batch) { return min64(d->m, d->rows_hi - batch * d->m); }

static void step_sizes(const Dot *d, DotStep *s) {
    s->mlen = min64(d->cut.tiles * TILE_M, rows_end_of(d, s->batch) - s->m0);
    s->ncols = min64(d->cut.cols, d->n_end - s->n0);
    s->klen = min64(d->cut.chunk * TILE_K, d->k - s->k0);
}

// The first step of the first batch from `batch` on that this core has rows of.
static bool step_first(const Dot *d, DotStep *s, int64_t batch) {
    for (; batch < batches(d) && d->n_lo < d->n_end; batch++)
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

static void give_slots(DotSide *s, Room *room, uint32_t n, uint32_t bytes) {
    s->nslots = n;
    for (uint32_t i = 0; i < n; i++) {
        bool ok = room_take(room, bytes, &s->sbuf[i]);
        assert(ok);
        (void)ok;
        s->key[i] = -1;
    }
}

static void plan(Dot *d, bool can_keep) {
    d->out_sbuf = d->rows ? d->rows->area_at : ROWS_AREA_BEGIN - OUT_SLOTS * OUT_TILES * BLOCK * (uint32_t)d->out_elem;
    DotSize size = {.chip = d->e->chip, .stype = d->stype, .dtype = d->dtype, .k = d->k, .lhs = &d->lhs.at, .rhs = &d->rhs.at};
    size.m = max64(1, min64(d->m, d->rows_hi - d->rows_lo)), size.n = max64(1, d->n_end - d->n_lo);
    size.batches = max64(1, (d->rows_hi - d->rows_lo) / size.m);
    size.lhs_turned = comes_turned(d, &d->lhs), size.rhs_turned = comes_turned(d, &d->rhs), size.lhs_same = d->lhs.same;
    size.own = room_of(d, d->out_sbuf, false), size.all = room_of(d, d->out_sbuf, true);
    size.can_keep = can_keep;
    d->cut = dot_cut(&size);
    Room room = d->cut.borrows ? size.all : size.own;
    uint32_t l = dot_slot_bytes(d->cut.chunk, d->cut.tiles * TILE_M, d->stype), r = dot_slot_bytes(d->cut.chunk, d->cut.cols, d->stype);
    d->lhs.pitch = d->cut.tiles * TILE_M, d->rhs.pitch = d->cut.cols;
    give_slots(&d->lhs, &room, d->cut.lhs_slots, l);
    give_slots(&d->rhs, &room, d->cut.rhs_slots, r);
    d->stage_bytes = size.lhs_turned && (!size.rhs_turned || l > r) ? l : r;
    for (uint32_t i = 0; i < d->cut.stages; i++)
        room_take(&room, d->stage_bytes, &d->stage_sbuf[i]);
}

// Products of other types cut SBUF differently: what any earlier one still does with it comes in, and goes out again.
static void share_area(Dot *d, bool out) {
    for (int side = 0; side < 2; side++) {
        DotSide *s = side ? &d->rhs : &d->lhs;
        for (uint32_t i = 0; i < s->nslots; i++)
            emit_area(d->e, &s->slots[i], s->sbuf[i], dot_slot_bytes(d->cut.chunk, s->pitch, d->stype), out);
    }
    for (uint32_t i = 0; i < d->cut.stages; i++)
        emit_area(d->e, &d->stage[i], d->stage_sbuf[i], d->stage_bytes, out);
    for (uint32_t i = 0; i < ISA_PSUM_BYTES / PSUM_BANK_BYTES && is_paired(d); i += 2)
        emit_merge(d->e, &d->e->bank_haz[i + out], &d->e->bank_haz[i + !out]);
    uint32_t bytes = OUT_TILES * BLOCK * (uint32_t)d->out_elem;
    for (uint32_t i = 0; i < OUT_SLOTS && !d->rows; i++)
        emit_area(d->e, &d->out[i], d->out_sbuf + i * bytes, bytes, out);
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
    d->turns = d->e->chip->dma_transpose <= 0 && d->elem >= 2;
    d->turns = comes_turned(d, &d->lhs) || comes_turned(d, &d->rhs);
}

// Room for the row program: pairs of tiles of narrow types, whose transfers are short else, where there is enough, three in work at least; else two, narrower ones then.
static RowOp *fit_rows(Dot *d, const Step *s, const Epilogue *p) {
    static const struct { uint32_t width, sets, slots; } ways[] = {{1024, 3, 4}, {1024, 2, 4}, {512, 3, 4}, {512, 3, 3}, {512, 2, 3}, {256, 2, 3}, {128, 2, 3}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (uint32_t bytes = 16384; bytes <= 49152 && (ways[w].width <= BLOCK || d->out_elem <= 2); bytes += 8192) {
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
    set_turns(d);
    return fit_rows(d, &s, p) != NULL;
}

// How much longer than half of it the longer part of n is, cut at `unit`; of the last one a part counts as `least`.
static double uneven(int64_t n, int64_t unit, int64_t least) {
    double whole = (double)(pieces(n, least) * least);
    return 2.0 * (double)(pieces(n, 2 * unit) * unit) / whole;
}

// A shared product is cut by rows, as those of all batches lie below each other; by columns when it is low, or when three tiles of rows,
// say, would be shared unevenly.
static void share(Dot *d) {
    d->rows_lo = d->n_lo = 0, d->rows_hi = batches(d) * d->m, d->n_end = d->n;
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
    return d->cut.keeps ? (uint64_t)(batches(d) * (d->cut.by_columns ? d->m : d->n) * d->k) * d->elem : 0;
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
    share_area(d, false);
    if (d->rows)
        rows_open(d->rows);
    emit_steps(d);
    if (d->rows)
        rows_close(d->rows);
    share_area(d, true);
    if (d->cut.borrows)
        emit_join(e, LANE_ROWS);
}
