// SPDX-License-Identifier: Apache-2.0
// dot.c — a matrix product as DMA in, load-stationary, matmul into PSUM, eviction, DMA out.
//
//            N: 512 a block                     The output is cut into blocks of 512 x 512: four PSUM
//          ┌─────────────┐                      banks of 128 rows. Contraction goes in chunks of up to
//  M: 4 x  │ bank 0      │   K: chunks of       1024, each 8 tiles of 128 rows on the partitions. PSUM
//   128    │ bank 1      │   8 x 128 on the     has two sets of four banks, so evictions overlap the
//          │ bank 2      │   partitions         products.
//          │ bank 3      │
//          └─────────────┘
//
// SBUF is cut into slots of a chunk of 512 columns, as many as the chip has room for: [tile of k][column], the k inside
// the tile is the partition. The side of the outer loop keeps all its chunks when its slots suffice, the other side is
// streamed; which is which follows from the traffic, rows first where it matters little, since what comes next wants
// whole rows. A long contraction, of which neither side fits, goes in blocks of 512 x 1024 over all banks.
// A chip whose transfers cannot transpose loads rows as they lie and lets the array turn them, in four of the banks.
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
#include "tile/side.h"

#define TILE_K 128
#define TILE_M 128
#define BLOCK 512
#define CHUNK_TILES 8
#define SLOT_COLS (CHUNK_TILES * BLOCK) // elements of a slot, per partition
#define SLOTS_MAX 24
#define SAME_SHARE 2 // of a slot, when the left side is one number and the contraction long
#define TURN_SLOTS 6
#define TURN_SHARE 2
#define OUT_SLOTS 2
#define ROWS_FIRST 0.1 // cut by rows rather than by columns: what follows is mostly, and then needs no meeting
#define LOW_CUT 64 // columns at which a low and narrow product is cut: fewer take the array as long
#define OUT_BYTES (4 * BLOCK * 4)

typedef struct DotSide { // one operand and its slots
    Side at;
    uint64_t addr;
    const HloAttr *same; // the number that all of it is; NULL: it lies at addr
    uint32_t pitch; // columns of a tile in a slot
    uint32_t nslots, sbuf[SLOTS_MAX]; // byte offsets
    Haz slots[SLOTS_MAX];
    int64_t key[SLOTS_MAX]; // which block and chunk a slot holds, -1 = nothing
    uint32_t next;          // slot to fill next
} DotSide;

typedef struct Dot {
    Emit *e;
    OpId op;
    DotSide lhs, rhs;
    int stype, dtype; // operand and result types
    size_t elem, out_elem;
    int64_t m, n, k;
    int64_t rows_lo, rows_hi, n_lo; // what of it this core does: rows of all batches, columns
    int64_t m_end, n_end;           // of the part in work
    int64_t block_n, chunk; // columns of a block; rows of a chunk
    uint32_t slot_bytes;
    bool by_columns;        // rhs is the side that stays
    uint64_t out_addr;
    uint32_t out_sbuf;
    Haz out[OUT_SLOTS];
    uint32_t next_out;
    uint32_t bank_set;
    uint32_t evictions;
    RowOp *rows; // what tiles go through where they leave PSUM, NULL: nothing
    bool turns;               // transfers cannot transpose: the array does
    uint32_t stage_sbuf;      // where rows wait for it, twice
    Haz stage[2];
    uint32_t next_stage, next_turn;
} Dot;

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t pieces(int64_t n, int64_t each) { return (n + each - 1) / each; }

// One DMA: `rows` partitions x `tiles` x `cols` from HBM element offset `from` to a slot.
static void load_part(Dot *d, DotSide *s, uint32_t slot, uint32_t tile0, int64_t rows, int64_t tiles,
                      int64_t cols, int64_t from) {
    IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_IN, .stype = (uint8_t)d->stype};
    in.src = s->addr + (uint64_t)from * d->elem;
    in.dst = addr_sbuf(0, (uint32_t)(s->sbuf[slot] + tile0 * s->pitch * d->elem));
    in.n[0] = (uint32_t)rows, in.n[1] = (uint32_t)tiles, in.n[2] = (uint32_t)cols;
    in.d[1] = (int32_t)s->pitch, in.d[2] = 1;
    in.s[0] = (int32_t)s->at.k_stride, in.s[1] = (int32_t)(s->at.k_stride * TILE_K);
    in.s[2] = (int32_t)s->at.free_stride;
    emit_inst(d->e, in, NULL, 0, (Haz *[]){&s->slots[slot]}, 1);
}

// Tiles [t0, t0 + n) of up to 128 columns from column f0, turned in PSUM, to their slot.
static void copy_turned(Dot *d, DotSide *s, uint32_t slot, uint32_t bank, uint32_t t0, uint32_t n, int64_t rows, int64_t f0,
                        int64_t cols) {
    IsaInst cp = {.op = ISA_COPY, .stype = (uint8_t)d->stype, .dtype = (uint8_t)d->stype};
    cp.engine = d->evictions++ % 2 ? ENG_SCALAR : ENG_VECTOR;
    cp.src = addr_psum(0, bank * ISA_PSUM_BANK_BYTES);
    cp.dst = addr_sbuf(0, (uint32_t)(s->sbuf[slot] + (uint64_t)(t0 * s->pitch + f0) * d->elem));
    cp.n[0] = (uint32_t)rows, cp.n[1] = n, cp.n[2] = (uint32_t)cols;
    cp.s[1] = n > 1 ? TILE_M : 0, cp.d[1] = n > 1 ? (int32_t)s->pitch : 0, cp.s[2] = cp.d[2] = 1;
    emit_inst(d->e, cp, (Haz *[]){&d->e->bank_haz[bank]}, 1, (Haz *[]){&s->slots[slot]}, 1);
}

// Rows x k elements that wait at `at` to place `index` of a bank, k on the partitions.
static void turn_tile(Dot *d, uint32_t at, uint32_t stage, uint32_t bank, uint32_t index, int64_t rows, int64_t k) {
    IsaInst turn = {.op = ISA_TRANSPOSE, .engine = ENG_TENSOR, .dtype = (uint8_t)d->stype, .stype = (uint8_t)d->stype};
    turn.src = addr_sbuf(0, at);
    turn.dst = addr_psum(0, (uint32_t)(bank * ISA_PSUM_BANK_BYTES + index * TILE_M * d->elem));
    turn.n[0] = (uint32_t)rows, turn.n[1] = (uint32_t)k, turn.d[1] = turn.s[1] = 1;
    emit_inst(d->e, turn, (Haz *[]){&d->stage[stage]}, 1, (Haz *[]){&d->e->bank_haz[bank]}, 1);
}

// The same by the array: rows of 128 columns come as they lie, tiles of them are transposed into the banks that such
// products leave free.
static void load_turned(Dot *d, DotSide *s, uint32_t slot, int64_t cols, int64_t klen, int64_t from) {
    uint32_t per = ISA_PSUM_BANK_BYTES / (uint32_t)(TILE_M * d->elem);
    per = per > CHUNK_TILES ? CHUNK_TILES : per;
    for (int64_t f0 = 0; f0 < cols; f0 += TILE_M) {
        int64_t fn = min64(TILE_M, cols - f0);
        uint32_t stage = d->next_stage++ % 2, at = d->stage_sbuf + (uint32_t)(stage * CHUNK_TILES * TILE_K * d->elem);
        IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_IN, .stype = (uint8_t)d->stype};
        in.src = s->addr + (uint64_t)(from + f0 * s->at.free_stride) * d->elem, in.dst = addr_sbuf(0, at);
        in.n[0] = (uint32_t)fn, in.n[1] = (uint32_t)klen, in.s[0] = (int32_t)s->at.free_stride, in.s[1] = in.d[1] = 1;
        emit_inst(d->e, in, NULL, 0, (Haz *[]){&d->stage[stage]}, 1);
        uint32_t tiles = (uint32_t)pieces(klen, TILE_K), full = (uint32_t)(klen / TILE_K);
        for (uint32_t t0 = 0; t0 < tiles; t0 += per) {
            uint32_t n = tiles - t0 < per ? tiles - t0 : per, bank = 4 + d->next_turn++ % 4;
            for (uint32_t t = t0; t < t0 + n; t++)
                turn_tile(d, (uint32_t)(at + t * TILE_K * d->elem), stage, bank, t - t0, fn, min64(TILE_K, klen - (int64_t)t * TILE_K));
            uint32_t whole = full > t0 + n ? n : full > t0 ? full - t0 : 0;
            if (whole)
                copy_turned(d, s, slot, bank, t0, whole, TILE_K, f0, fn);
            if (whole < n) { // the last tile is shorter; alone in its bank when it is not the first
                assert(whole + 1 == n);
                IsaInst cp = {.op = ISA_COPY, .engine = ENG_VECTOR, .stype = (uint8_t)d->stype, .dtype = (uint8_t)d->stype};
                cp.src = addr_psum(0, (uint32_t)(bank * ISA_PSUM_BANK_BYTES + whole * TILE_M * d->elem));
                cp.dst = addr_sbuf(0, (uint32_t)(s->sbuf[slot] + (uint64_t)((t0 + whole) * s->pitch + f0) * d->elem));
                cp.n[0] = (uint32_t)(klen % TILE_K), cp.n[1] = (uint32_t)fn, cp.s[1] = cp.d[1] = 1;
                emit_inst(d->e, cp, (Haz *[]){&d->e->bank_haz[bank]}, 1, (Haz *[]){&s->slots[slot]}, 1);
            }
        }
    }
}

// One tile of k: the rows of all columns come together, are turned side by side in a bank and leave it at once.
static void load_turned_short(Dot *d, DotSide *s, uint32_t slot, int64_t cols, int64_t klen, int64_t from) {
    uint32_t stage = d->next_stage++ % 2, at = d->stage_sbuf + (uint32_t)(stage * CHUNK_TILES * TILE_K * d->elem);
    uint32_t bank = 4 + d->next_turn++ % 4;
    int64_t full = cols / TILE_M, rest = cols % TILE_M;
    IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_IN, .stype = (uint8_t)d->stype};
    in.src = s->addr + (uint64_t)from * d->elem, in.dst = addr_sbuf(0, at);
    in.n[0] = TILE_M, in.n[1] = (uint32_t)full, in.n[2] = (uint32_t)klen, in.d[1] = (int32_t)klen;
    in.s[0] = (int32_t)s->at.free_stride, in.s[1] = (int32_t)(s->at.free_stride * TILE_M), in.s[2] = in.d[2] = 1;
    if (full)
        emit_inst(d->e, in, NULL, 0, (Haz *[]){&d->stage[stage]}, 1);
    in.src += (uint64_t)(full * TILE_M * s->at.free_stride) * d->elem, in.dst += (uint64_t)(full * klen) * d->elem;
    in.n[0] = (uint32_t)rest, in.n[1] = 1;
    if (rest)
        emit_inst(d->e, in, NULL, 0, (Haz *[]){&d->stage[stage]}, 1);
    for (int64_t t = 0; t < pieces(cols, TILE_M); t++)
        turn_tile(d, at + (uint32_t)(t * klen * (int64_t)d->elem), stage, bank, (uint32_t)t, min64(TILE_M, cols - t * TILE_M), klen);
    copy_turned(d, s, slot, bank, 0, 1, klen, 0, cols);
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

// The slot that holds columns [f0, f0+cols) of chunk [k0, k0+klen); loads it when none does.
static uint32_t side_load(Dot *d, DotSide *s, int64_t batch, int64_t f0, int64_t cols, int64_t k0,
                          int64_t klen) {
    int64_t key = s->same ? 0 : (batch * s->at.free_size + f0) * s->at.k_size + k0;
    for (uint32_t i = 0; i < s->nslots; i++)
        if (s->key[i] == key)
            return i;
    uint32_t slot = s->next;
    s->next = (s->next + 1) % s->nslots;
    s->key[slot] = key;
    if (s->same) {
        side_set(d, s, cols); // no block after it has more
        return slot;
    }
    int64_t from = side_batch_offset(&s->at, batch) + f0 * s->at.free_stride + k0 * s->at.k_stride;
    int64_t full = klen / TILE_K, rest = klen % TILE_K;
    if (comes_turned(d, s)) {
        bool alone = klen <= TILE_K && cols * (int64_t)d->elem <= ISA_PSUM_BANK_BYTES;
        (alone ? load_turned_short : load_turned)(d, s, slot, cols, klen, from);
        return slot;
    }
    if (full)
        load_part(d, s, slot, 0, TILE_K, full, cols, from);
    if (rest)
        load_part(d, s, slot, (uint32_t)full, rest, 1, cols, from + full * TILE_K * s->at.k_stride);
    return slot;
}

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
        mm.dst = addr_psum(0, bank * ISA_PSUM_BANK_BYTES);
        mm.n[1] = (uint32_t)min64(BLOCK, ncols - c);
        emit_inst(d->e, mm, (Haz *[]){&d->rhs.slots[rslot]}, 1, (Haz *[]){bank_haz(d, bank)}, 1);
    }
}

// PSUM banks → SBUF in the result's type, two at a time, on the vector and the scalar engine in turn.
static void copy_banks(Dot *d, uint32_t bank, uint32_t tiles, int64_t rows, int64_t cols, uint32_t at, Haz *out) {
    for (uint32_t t = 0; t < tiles; t += 2) {
        uint32_t n = tiles - t < 2 ? 1 : 2;
        IsaInst cp = {.op = ISA_COPY, .stype = DT_F32, .dtype = (uint8_t)d->dtype};
        cp.engine = d->evictions++ % 2 ? ENG_SCALAR : ENG_VECTOR;
        cp.src = addr_psum(0, (bank + t) * ISA_PSUM_BANK_BYTES);
        cp.dst = addr_sbuf(0, (uint32_t)(at + t * BLOCK * d->out_elem));
        cp.n[0] = (uint32_t)rows, cp.n[1] = n, cp.n[2] = (uint32_t)cols;
        cp.s[1] = cp.d[1] = n > 1 ? BLOCK : 0, cp.s[2] = cp.d[2] = 1;
        Haz *reads[] = {&d->e->bank_haz[bank + t], &d->e->bank_haz[bank + t + n - 1]};
        emit_inst(d->e, cp, reads, n, &out, 1);
    }
}

static void store_tiles(Dot *d, uint32_t tiles, int64_t rows, int64_t cols, uint32_t at, Haz *haz, int64_t to) {
    IsaInst out = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_OUT, .stype = (uint8_t)d->dtype};
    out.src = addr_sbuf(0, at);
    out.dst = d->out_addr + (uint64_t)to * d->out_elem;
    out.n[0] = (uint32_t)rows, out.n[1] = tiles, out.n[2] = (uint32_t)cols;
    out.d[0] = (int32_t)d->n, out.d[1] = tiles > 1 ? (int32_t)(TILE_M * d->n) : 0, out.d[2] = 1;
    out.s[1] = tiles > 1 ? BLOCK : 0, out.s[2] = 1;
    emit_inst(d->e, out, &haz, 1, NULL, 0);
}

// Tile after tile through the row program, each a task of its own, so that their chains are woven together.
static void go_on(Dot *d, uint32_t bank, int64_t row, int64_t mlen, int64_t n0, int64_t ncols) {
    emit_loc(d->e, d->rows->s->op);
    for (int64_t mi = 0, tiles; mi < mlen; mi += tiles * TILE_M, bank += (uint32_t)tiles) {
        tiles = is_paired(d) && mlen - mi >= 2 * TILE_M ? 2 : 1;
        emit_task(d->e);
        rows_from_psum(d->rows, (uint32_t)tiles, bank * ISA_PSUM_BANK_BYTES, bank_haz(d, bank), row + mi,
                       (uint32_t)min64(TILE_M, mlen - mi), n0, (uint32_t)ncols);
    }
    emit_loc(d->e, d->op);
}

static void evict(Dot *d, uint32_t bank, int64_t batch, int64_t m0, int64_t mlen, int64_t n0, int64_t ncols) {
    if (d->rows) {
        go_on(d, bank, batch * d->m + m0, mlen, n0, ncols);
        return;
    }
    uint32_t slot = d->next_out++ % OUT_SLOTS, at = d->out_sbuf + slot * OUT_BYTES;
    uint32_t full = (uint32_t)(mlen / TILE_M), rest = (uint32_t)(mlen % TILE_M);
    int64_t to = (batch * d->m + m0) * d->n + n0;
    if (full) {
        copy_banks(d, bank, full, TILE_M, ncols, at, &d->out[slot]);
        store_tiles(d, full, TILE_M, ncols, at, &d->out[slot], to);
    }
    if (rest) {
        at += (uint32_t)(full * BLOCK * d->out_elem);
        copy_banks(d, bank + full, 1, rest, ncols, at, &d->out[slot]);
        store_tiles(d, 1, rest, ncols, at, &d->out[slot], to + (int64_t)full * TILE_M * d->n);
    }
}

static void block(Dot *d, int64_t batch, int64_t m0, int64_t n0) {
    int64_t mlen = min64(BLOCK, d->m_end - m0), ncols = min64(d->block_n, d->n_end - n0);
    bool wide = ncols > BLOCK;
    uint32_t bank0 = wide ? 0 : d->bank_set * 4;
    d->bank_set = wide || d->turns ? 0 : d->bank_set ^ 1;
    for (int64_t c = 0; d->rows && c < ncols; c += BLOCK)
        rows_columns(d->rows, n0 + c, (uint32_t)min64(BLOCK, ncols - c));
    for (int64_t k0 = 0; k0 < d->k; k0 += d->chunk) {
        int64_t klen = min64(d->chunk, d->k - k0);
        uint32_t rslot = side_load(d, &d->rhs, batch, n0, ncols, k0, klen);
        uint32_t lslot = side_load(d, &d->lhs, batch, m0, mlen, k0, klen);
        for (int64_t mi = 0; mi < mlen; mi += TILE_M)
            for (int64_t kt = 0; kt < klen; kt += TILE_K)
                multiply(d, lslot, rslot, kt / TILE_K, min64(TILE_K, klen - kt), bank0 + (uint32_t)(mi / TILE_M), mi,
                         min64(TILE_M, mlen - mi), 0, ncols, k0 + kt > 0);
    }
    for (int64_t c = 0; c < ncols; c += BLOCK)
        evict(d, bank0 + (uint32_t)(c / BLOCK) * 4, batch, m0, mlen, n0 + c, min64(BLOCK, ncols - c));
}

static int64_t batches(const Dot *d) {
    int64_t n = 1;
    for (uint32_t i = 0; i < d->lhs.at.nbatch; i++)
        n *= d->lhs.at.batch_dims[i];
    return n;
}

// --- the plan ----------------------------------------------------------------------------------------

static void give_slots(DotSide *s, const uint32_t *at, uint32_t n) {
    s->nslots = n;
    for (uint32_t i = 0; i < n; i++) {
        s->sbuf[i] = at[i];
        s->key[i] = -1;
    }
}

// Slots below the row programs' area and above it, as far as the chip goes.
static uint32_t find_slots(const Dot *d, uint32_t bytes, uint32_t at[SLOTS_MAX]) {
    uint32_t n = 0, end = d->e->draws_bytes ? DRAWS_AREA_BEGIN : (uint32_t)d->e->chip->sbuf_usable_bytes;
    for (uint32_t p = 0; p + bytes <= d->stage_sbuf && n < SLOTS_MAX; p += bytes)
        at[n++] = p;
    for (uint32_t p = ROWS_AREA_BEGIN + ROWS_AREA_BYTES; p + bytes <= end && n < SLOTS_MAX; p += bytes)
        at[n++] = p;
    return n;
}

static void plan(Dot *d) {
    uint32_t at[SLOTS_MAX], n;
    d->out_sbuf = d->rows ? d->rows->area_at : ROWS_AREA_BEGIN - OUT_SLOTS * OUT_BYTES;
    d->stage_sbuf = d->out_sbuf - (d->turns ? 2 * CHUNK_TILES * TILE_K * (uint32_t)d->elem : 0);
    // Products with one number take less than the transfers: shorter ones, so that the first begin sooner.
    uint32_t share = d->lhs.same && d->k > CHUNK_TILES * TILE_K ? SAME_SHARE : 1;
    d->slot_bytes = (uint32_t)(SLOT_COLS * d->elem) / share;
    n = find_slots(d, d->slot_bytes, at);
    assert(n >= 3);
    if (d->turns && n < TURN_SLOTS) { // one is turned while others are multiplied
        share = TURN_SHARE;
        d->slot_bytes /= share;
        n = find_slots(d, d->slot_bytes, at);
    }
    int64_t chunks = pieces(d->k, CHUNK_TILES * TILE_K / share);
    int64_t rows = min64(d->m, d->rows_hi - d->rows_lo), cols = d->n_end - d->n_lo;
    double by_rows = (double)rows + (double)pieces(rows, BLOCK) * (double)cols;
    double by_columns = (double)cols + (double)pieces(cols, BLOCK) * (double)rows;
    d->by_columns = by_columns * 1.5 < by_rows;
    d->block_n = BLOCK, d->chunk = CHUNK_TILES * TILE_K / share;
    d->lhs.pitch = d->rhs.pitch = BLOCK;
    uint32_t least = n < 4 ? 1 : 2;
    uint32_t stay = n - least < chunks + 1 ? n - least : (uint32_t)chunks + 1, stream = n - stay < 4 ? n - stay : 4;
    stay = stay < 2 ? 2 : stay;
    if (d->lhs.same) {
        d->by_columns = false;
        stay = 1, stream = n - 1 < 4 * share ? n - 1 : 4 * share;
    } else if (chunks > stay && cols > BLOCK && !d->turns) { // neither side stays
        d->block_n = 2 * BLOCK, d->chunk = CHUNK_TILES / 2 * TILE_K;
        d->rhs.pitch = 2 * BLOCK;
        stay = n / 2, stream = n - stay;
        d->by_columns = false;
    }
    give_slots(d->by_columns ? &d->rhs : &d->lhs, at, stay);
    give_slots(d->by_columns ? &d->lhs : &d->rhs, at + stay, stream);
}

// Products of other types cut SBUF differently: what any earlier one still does with it comes in, and goes out again.
static void share_area(Dot *d, bool out) {
    uint32_t bytes = d->slot_bytes;
    for (uint32_t i = 0; i < d->lhs.nslots; i++)
        emit_area(d->e, &d->lhs.slots[i], d->lhs.sbuf[i], bytes, out);
    for (uint32_t i = 0; i < d->rhs.nslots; i++)
        emit_area(d->e, &d->rhs.slots[i], d->rhs.sbuf[i], bytes, out);
    for (uint32_t i = 0; i < 2 && d->turns; i++) {
        uint32_t stage = (uint32_t)(CHUNK_TILES * TILE_K * d->elem);
        emit_area(d->e, &d->stage[i], d->stage_sbuf + i * stage, stage, out);
    }
    for (uint32_t i = 0; i < ISA_PSUM_BYTES / ISA_PSUM_BANK_BYTES && is_paired(d); i += 2)
        emit_merge(d->e, &d->e->bank_haz[i + out], &d->e->bank_haz[i + !out]);
    for (uint32_t i = 0; i < OUT_SLOTS && !d->rows; i++)
        emit_area(d->e, &d->out[i], d->out_sbuf + i * OUT_BYTES, OUT_BYTES, out);
}

static void dot_init(Dot *d, Emit *e, OpId id) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, id);
    *d = (Dot){.e = e, .op = id};
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
    uint32_t at[SLOTS_MAX], stage = d->turns ? 2 * CHUNK_TILES * TILE_K * (uint32_t)d->elem : 0;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (uint32_t bytes = 16384; bytes <= 49152 && (ways[w].width <= BLOCK || d->out_elem <= 2); bytes += 8192) {
            d->stage_sbuf = ROWS_AREA_BEGIN - bytes - stage;
            if (find_slots(d, (uint32_t)(SLOT_COLS * d->elem), at) < ways[w].slots)
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

// Rows [m0, m_end) and columns [n0, n_end) of a batch's result.
static void emit_part(Dot *d, int64_t batch, int64_t m0, int64_t n0) {
    int64_t outer = d->by_columns ? d->n_end : d->m_end, inner = d->by_columns ? d->m_end : d->n_end;
    int64_t outer_step = d->by_columns ? d->block_n : BLOCK, inner_step = d->by_columns ? BLOCK : d->block_n;
    for (int64_t i = d->by_columns ? n0 : m0; i < outer; i += outer_step)
        for (int64_t j = d->by_columns ? m0 : n0; j < inner; j += inner_step) {
            emit_task(d->e);
            block(d, batch, d->by_columns ? j : i, d->by_columns ? i : j);
        }
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

static void emit_blocks(Dot *d) {
    for (int64_t b = 0; b < batches(d); b++) {
        int64_t above = b * d->m;
        d->m_end = min64(d->m, d->rows_hi - above);
        emit_part(d, b, d->rows_lo > above ? d->rows_lo - above : 0, d->n_lo);
    }
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
    share(d);
    plan(d);
    share_area(d, false);
    if (d->rows) {
        emit_loc(e, d->rows->s->op);
        rows_open(d->rows);
        emit_loc(e, d->op);
    }
    emit_blocks(d);
    if (d->rows)
        rows_close(d->rows);
    share_area(d, true);
}
