// SPDX-License-Identifier: Apache-2.0
// dot.c — a matrix product as DMA in, load-stationary, matmul into PSUM, eviction, DMA out.
//
//            N: 512 a block                     The output is cut into blocks of 512 x 512: four PSUM
//          ┌─────────────┐                      banks of 128 rows. Contraction goes in chunks of up to
//  M: 4 x  │ bank 0      │   K: chunks of       1024, each 8 tiles of 128 rows on the partitions. Both
//   128    │ bank 1      │   8 x 128 on the     operands have two SBUF slots, PSUM two sets of four
//          │ bank 2      │   partitions         banks, so loads and evictions overlap the products.
//          │ bank 3      │
//          └─────────────┘
//
// SBUF, bytes inside each partition: lhs slot 0, lhs slot 1, rhs slot 0, rhs slot 1 (16 KiB each for fp32),
// then eight output tiles of 2 KiB. A slot holds [tile of k][column]; the k inside the tile is the partition.
// Tails are shorter counts in the same instructions. The cut does not depend on the chip, so every target
// computes the same bits.
#include <assert.h>

#include "pass/dots.h"
#include "tile/emit.h"
#include "tile/side.h"

#define TILE_K 128
#define TILE_M 128
#define BLOCK 512
#define CHUNK_TILES 8
#define SLOT_COLS (CHUNK_TILES * BLOCK) // elements of a slot, per partition
#define OUT_TILES 8

typedef struct DotSide { // one operand and its slots
    Side at;
    uint64_t addr;
    uint32_t sbuf; // byte offset of slot 0
    Haz slots[2];
    int64_t key[2]; // which block and chunk a slot holds, -1 = nothing
    uint32_t next;  // slot to fill next
} DotSide;

typedef struct Dot {
    Emit *e;
    DotSide lhs, rhs;
    int stype, dtype; // operand and result types
    size_t elem, out_elem;
    int64_t m, n, k;
    uint64_t out_addr;
    uint32_t out_sbuf;
    Haz out_tiles[OUT_TILES];
    uint32_t next_out;
    uint32_t bank_set;
    uint32_t evictions;
} Dot;

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

// One DMA: `rows` partitions x `tiles` x `cols` from HBM element offset `from` to a slot.
static void load_part(Dot *d, DotSide *s, uint32_t slot, uint32_t tile0, int64_t rows, int64_t tiles,
                      int64_t cols, int64_t from) {
    IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_IN, .stype = (uint8_t)d->stype};
    in.src = s->addr + (uint64_t)from * d->elem;
    in.dst = addr_sbuf(0, (uint32_t)(s->sbuf + (slot * SLOT_COLS + tile0 * BLOCK) * d->elem));
    in.n[0] = (uint32_t)rows, in.n[1] = (uint32_t)tiles, in.n[2] = (uint32_t)cols;
    in.d[1] = BLOCK, in.d[2] = 1;
    in.s[0] = (int32_t)s->at.k_stride, in.s[1] = (int32_t)(s->at.k_stride * TILE_K);
    in.s[2] = (int32_t)s->at.free_stride;
    emit_inst(d->e, in, NULL, 0, (Haz *[]){&s->slots[slot]}, 1);
}

// The slot that holds columns [f0, f0+cols) of chunk [k0, k0+klen); loads it when neither slot does.
static uint32_t side_load(Dot *d, DotSide *s, int64_t batch, int64_t f0, int64_t cols, int64_t k0,
                          int64_t klen) {
    int64_t key = (batch * s->at.free_size + f0) * s->at.k_size + k0;
    for (uint32_t i = 0; i < 2; i++)
        if (s->key[i] == key)
            return i;
    uint32_t slot = s->next;
    s->next ^= 1;
    s->key[slot] = key;
    int64_t from = side_batch_offset(&s->at, batch) + f0 * s->at.free_stride + k0 * s->at.k_stride;
    int64_t full = klen / TILE_K, rest = klen % TILE_K;
    if (full)
        load_part(d, s, slot, 0, TILE_K, full, cols, from);
    if (rest)
        load_part(d, s, slot, (uint32_t)full, rest, 1, cols, from + full * TILE_K * s->at.k_stride);
    return slot;
}

static void multiply(Dot *d, uint32_t lslot, uint32_t rslot, uint32_t tile, int64_t rows, uint32_t bank,
                     int64_t m0, int64_t mcols, int64_t ncols, bool accumulate) {
    IsaInst ld = {.op = ISA_LDWEIGHTS, .engine = ENG_TENSOR, .stype = (uint8_t)d->stype};
    ld.src = addr_sbuf(0, (uint32_t)(d->lhs.sbuf +
                                     ((uint64_t)lslot * SLOT_COLS + tile * BLOCK + (uint64_t)m0) * d->elem));
    ld.n[0] = (uint32_t)rows, ld.n[1] = (uint32_t)mcols, ld.s[1] = 1;
    Haz *lreads[] = {&d->lhs.slots[lslot]};
    emit_inst(d->e, ld, lreads, 1, NULL, 0);
    IsaInst mm = {.op = ISA_MATMUL, .engine = ENG_TENSOR, .stype = (uint8_t)d->stype};
    mm.flags = accumulate ? MATMUL_ACCUMULATE : 0;
    mm.src = addr_sbuf(0, (uint32_t)(d->rhs.sbuf + (rslot * SLOT_COLS + tile * BLOCK) * d->elem));
    mm.dst = addr_psum(0, bank * 2048);
    mm.n[0] = (uint32_t)rows, mm.n[1] = (uint32_t)ncols, mm.n[2] = (uint32_t)mcols;
    mm.d[1] = 1, mm.s[1] = 1;
    Haz *mreads[] = {&d->rhs.slots[rslot]}, *mwrites[] = {&d->e->bank_haz[bank]};
    emit_inst(d->e, mm, mreads, 1, mwrites, 1);
}

// PSUM bank → SBUF in the result's type (vector and scalar engine in turn) → HBM.
static void evict(Dot *d, uint32_t bank, int64_t batch, int64_t m0, int64_t mrows, int64_t n0,
                  int64_t ncols) {
    uint32_t tile = d->next_out++ % OUT_TILES;
    uint32_t at = d->out_sbuf + tile * BLOCK * 4;
    IsaInst cp = {.op = ISA_COPY, .stype = DT_F32, .dtype = (uint8_t)d->dtype};
    cp.engine = d->evictions++ % 2 ? ENG_SCALAR : ENG_VECTOR;
    cp.src = addr_psum(0, bank * 2048);
    cp.dst = addr_sbuf(0, at);
    cp.n[0] = (uint32_t)mrows, cp.n[1] = (uint32_t)ncols, cp.d[1] = 1, cp.s[1] = 1;
    Haz *creads[] = {&d->e->bank_haz[bank]}, *cwrites[] = {&d->out_tiles[tile]};
    emit_inst(d->e, cp, creads, 1, cwrites, 1);
    IsaInst out = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_OUT, .stype = (uint8_t)d->dtype};
    out.src = addr_sbuf(0, at);
    out.dst = d->out_addr + (uint64_t)((batch * d->m + m0) * d->n + n0) * d->out_elem;
    out.n[0] = (uint32_t)mrows, out.n[1] = (uint32_t)ncols;
    out.d[0] = (int32_t)d->n, out.d[1] = 1, out.s[1] = 1;
    emit_store(d->e, out, &d->out_tiles[tile]);
}

static void block(Dot *d, int64_t batch, int64_t m0, int64_t n0) {
    int64_t mlen = min64(BLOCK, d->m - m0), ncols = min64(BLOCK, d->n - n0);
    uint32_t bank0 = d->bank_set * 4;
    d->bank_set ^= 1;
    for (int64_t k0 = 0; k0 < d->k; k0 += CHUNK_TILES * TILE_K) {
        int64_t klen = min64(CHUNK_TILES * TILE_K, d->k - k0);
        uint32_t rslot = side_load(d, &d->rhs, batch, n0, ncols, k0, klen);
        uint32_t lslot = side_load(d, &d->lhs, batch, m0, mlen, k0, klen);
        for (int64_t mi = 0; mi < mlen; mi += TILE_M)
            for (int64_t kt = 0; kt < klen; kt += TILE_K)
                multiply(d, lslot, rslot, (uint32_t)(kt / TILE_K), min64(TILE_K, klen - kt),
                         bank0 + (uint32_t)(mi / TILE_M), mi, min64(TILE_M, mlen - mi), ncols,
                         k0 + kt > 0);
    }
    for (int64_t mi = 0; mi < mlen; mi += TILE_M)
        evict(d, bank0 + (uint32_t)(mi / TILE_M), batch, m0 + mi, min64(TILE_M, mlen - mi), n0, ncols);
}

// Products of other types cut SBUF differently: what any earlier one still does with it comes in, and goes out again.
static void share_area(Dot *d, bool out) {
    uint32_t slot_bytes = (uint32_t)(SLOT_COLS * d->elem);
    for (uint32_t i = 0; i < 2; i++) {
        emit_area(d->e, &d->lhs.slots[i], d->lhs.sbuf + i * slot_bytes, slot_bytes, out);
        emit_area(d->e, &d->rhs.slots[i], d->rhs.sbuf + i * slot_bytes, slot_bytes, out);
    }
    for (uint32_t i = 0; i < OUT_TILES; i++)
        emit_area(d->e, &d->out_tiles[i], d->out_sbuf + i * BLOCK * 4, BLOCK * 4, out);
}

void emit_dot(Emit *e, const Step *s) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, s->op);
    const BufId *refs = e->l->refs.at;
    Dot *d = ARENA_NEW(e->c->scratch, Dot);
    *d = (Dot){.e = e};
    side_init(&d->lhs.at, h, op, false);
    side_init(&d->rhs.at, h, op, true);
    d->lhs.addr = emit_addr(e, refs[s->ins]);
    d->rhs.addr = emit_addr(e, refs[s->ins + 1]);
    for (int i = 0; i < 2; i++)
        d->lhs.key[i] = d->rhs.key[i] = -1;
    d->stype = hlo_value_type(h, hlo_operand(h, op, 0))->dtype;
    d->dtype = hlo_value_type(h, op->results)->dtype;
    d->elem = dtype_bytes(d->stype);
    d->out_elem = dtype_bytes(d->dtype);
    d->m = d->lhs.at.free_size, d->n = d->rhs.at.free_size, d->k = d->lhs.at.k_size;
    d->out_addr = emit_addr(e, refs[s->outs]);
    uint32_t slot_bytes = (uint32_t)(SLOT_COLS * d->elem);
    d->lhs.sbuf = 0;
    d->rhs.sbuf = 2 * slot_bytes;
    d->out_sbuf = 4 * slot_bytes;
    if (d->out_sbuf + OUT_TILES * BLOCK * 4 > e->chip->sbuf_usable_bytes)
        hlo_fail(e->l->h, s->op, OTRN_CAPACITY, "its tiles need %u bytes of SBUF a partition, %s has %.0f",
                 d->out_sbuf + OUT_TILES * BLOCK * 4, e->chip->name, e->chip->sbuf_usable_bytes);
    int64_t strides[] = {d->lhs.at.k_stride * TILE_K, d->lhs.at.free_stride, d->rhs.at.k_stride * TILE_K,
                         d->rhs.at.free_stride, d->n};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        if (strides[i] > INT32_MAX)
            hlo_fail(e->l->h, s->op, OTRN_CAPACITY, "a stride of %lld elements does not fit a DMA pattern",
                     (long long)strides[i]);
    int64_t batches = 1;
    for (uint32_t i = 0; i < d->lhs.at.nbatch; i++)
        batches *= d->lhs.at.batch_dims[i];
    share_area(d, false);
    for (int64_t b = 0; b < batches; b++)
        for (int64_t n0 = 0; n0 < d->n; n0 += BLOCK)
            for (int64_t m0 = 0; m0 < d->m; m0 += BLOCK) {
                emit_task(e);
                block(d, b, m0, n0);
                emit_turn(e, false);
            }
    emit_turn(e, true);
    share_area(d, true);
}
