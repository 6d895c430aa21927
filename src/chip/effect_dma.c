// SPDX-License-Identifier: Apache-2.0
// effect_dma.c — DMA that does more than move bits: converts, combines with what dst holds, goes by index.
//
// Conversions and sums are in fp32, as on the engines. Axis 0 is the row, of partitions or of HBM; rows of an indirect
// transfer are handled in order, so that a row named twice has one meaning.
#include "chip/dma.h"
#include "chip/effects.h"

typedef struct Dma {
    EngWalk walk;
    EngTensor dst, src;
    EngAlu *alu; // NULL: dst is overwritten
    bool bits;   // same type
} Dma;

// n0 is the rows; n1…n3 are the free axes, which engines number alike.
static EngTensor dma_tensor(EffOperand o, int dtype, const IsaInst *in, const int32_t stride[5]) {
    const uint32_t n[5] = {0, in->n[1], in->n[2], in->n[3], 0};
    if (!o.pitch)
        o.pitch = stride[0] * (int64_t)dtype_bytes(dtype);
    return eng_tensor(o, dtype, n, stride);
}

static Dma dma_begin(const EffCall *c) {
    const IsaInst *in = c->in;
    int dtype = in->dtype ? in->dtype : in->stype;
    Dma k = {.walk = eng_walk(c, ENG_F32), .dst = dma_tensor(c->dst, dtype, in, in->d),
             .src = dma_tensor(c->src, in->stype, in, in->s)};
    k.alu = in->op0 ? k.walk.level->eng->alu[ENG_F32][in->op0] : NULL;
    k.bits = dtype == in->stype && !k.alu;
    return k;
}

static void dma_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Dma *k = arg;
    const void *x = eng_load(&k->walk, &k->src, b, s->x, s);
    if (k->alu) {
        const void *old = eng_load(&k->walk, &k->dst, b, s->y, s);
        k->alu(s->z, old, x, b->rows * b->cols);
        x = s->z;
    }
    eng_store(&k->walk, &k->dst, b, x, s);
}

// The same type on both sides: bits. Elements of more than 4 bytes come in runs only.
static void bits_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Dma *k = arg;
    if (k->dst.flat && k->src.flat && b->cols == 1 && k->dst.bytes == 4) {
        for (uint32_t r = b->row; r < b->row + b->rows; r++)
            memcpy(eng_row(&k->dst, b, r), eng_row(&k->src, b, r), 4);
    } else if (!eng_move(&k->dst, &k->src, b)) {
        eng_gather(&k->src, b, s->raw);
        eng_scatter(&k->dst, b, s->raw);
    }
}

// Rows that may touch each other's bytes go one after another; whoever asks for a job knows that none do.
otrn_status eff_dma(const EffCall *c) {
    Dma k = dma_begin(c);
    uint32_t rows = isa_count(c->in->n[0]);
    if (c->job) {
        eng_rows(c, k.dst.cols, 1, k.bits ? bits_body : dma_body, &k, sizeof k);
        return OTRN_OK;
    }
    if (!eng_cross_overlap(&k.dst, rows, &k.src, rows) && !eng_rows_overlap(&k.dst, rows)) {
        eng_run(c->pool, rows, k.dst.cols, 1, dma_body, &k);
        return OTRN_OK;
    }
    for (uint32_t p = 0; p < rows; p++, k.dst.at += k.dst.pitch, k.src.at += k.src.pitch) {
        k.dst.careful = k.src.careful = true;
        eng_run(NULL, 1, k.dst.cols, 1, dma_body, &k);
    }
    return OTRN_OK;
}

// --- by index ----------------------------------------------------------------------------------------------

static void row_bits(const EffCall *c, const Dma *k) { // any element size
    int64_t d[4], s[4];
    for (int i = 0; i < 4; i++)
        d[i] = c->in->d[i] * (int64_t)k->dst.bytes, s[i] = c->in->s[i] * (int64_t)k->src.bytes;
    const uint32_t n[4] = {1, c->in->n[1], c->in->n[2], c->in->n[3]};
    dma_copy(c->pool, c->level, k->dst.at, d, k->src.at, s, n, k->dst.bytes, false);
}

// A row that is one stretch on both sides, and bits or fp32: no blocks are needed.
static bool row_flat(const Dma *k) {
    bool f32 = k->dst.dtype == DT_F32 && k->src.dtype == DT_F32;
    if (!k->dst.flat || !k->src.flat || !(k->bits || (k->alu && f32)))
        return false;
    if (k->bits)
        memmove(k->dst.at, k->src.at, k->dst.cols * k->dst.bytes);
    else
        k->alu(k->dst.at, k->dst.at, k->src.at, k->dst.cols);
    return true;
}

#define AHEAD 8      // rows that are asked for early
#define AHEAD_MOST 512 // bytes of each

static int64_t index_at(const EffCall *c, uint32_t p) {
    const uint8_t *at = c->src1.at + p * c->src1.pitch;
    int32_t v;
    if (c->in->ttype != DT_I32)
        return dtype_to_i64(c->in->ttype, at);
    memcpy(&v, at, 4);
    return v;
}

static void fetch_ahead(const EffCall *c, const Dma *k, uint32_t p, bool gather) {
    const EngTensor *t = gather ? &k->src : &k->dst;
    if (p >= isa_count(c->in->n[0]))
        return;
    int64_t row = index_at(c, p);
    size_t bytes = t->cols * t->bytes < AHEAD_MOST ? t->cols * t->bytes : AHEAD_MOST;
    for (size_t i = 0; i < bytes && row >= 0 && row < c->in->limit; i += 64)
        __builtin_prefetch(t->at + row * t->pitch + (int64_t)i);
}

otrn_status eff_dma_indirect(const EffCall *c) {
    const IsaInst *in = c->in;
    Dma all = dma_begin(c);
    bool gather = addr_space(in->src) == SPACE_HBM;
    for (uint32_t p = 0; p < isa_count(in->n[0]); p++) {
        int64_t row = index_at(c, p);
        if (row < 0 || row >= in->limit) {
            if (in->flags & ISA_FLAG_SKIP)
                continue;
            return eff_fail(c, "src1: row %lld of partition %u is outside the %d rows of %s", (long long)row, p,
                            in->limit, gather ? "src" : "dst");
        }
        Dma one = all;
        one.dst.at += (gather ? p : row) * one.dst.pitch;
        one.src.at += (gather ? row : p) * one.src.pitch;
        fetch_ahead(c, &all, p + AHEAD, gather);
        if (row_flat(&one))
            continue;
        if (one.bits)
            row_bits(c, &one);
        else
            eng_run(c->pool, 1, one.dst.cols, 1, dma_body, &one);
    }
    return OTRN_OK;
}
