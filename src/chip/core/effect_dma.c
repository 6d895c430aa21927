// SPDX-License-Identifier: Apache-2.0
// effect_dma.c — DMA that does more than move bits: converts, combines with what dst holds, goes by index.
//
// Conversions and sums are in fp32, as on the engines. Axis 0 is the row, of partitions or of HBM; rows of an indirect
// transfer are handled in order, so that a row named twice has one meaning.
#include <stdatomic.h>

#include "base/rows.h"
#include "chip/core/dma.h"
#include "chip/core/effect_ew.h"

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
    bool narrow = in->op0 && k.dst.dtype == DT_BF16 && k.src.dtype == DT_BF16 && !k.walk.stochastic;
    k.bf16 = narrow ? k.walk.level->eng->bf16[in->op0] : NULL;
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
void eff_bits_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Dma *k = arg;
    size_t bytes = b->cols * k->dst.bytes, at = b->col * k->dst.bytes; // a row's last block may be as short
    if (k->dst.flat && k->src.flat && bytes <= ROWS_SHORT) {
        rows_copy(eng_row(&k->dst, b, b->row) + at, k->dst.pitch, eng_row(&k->src, b, b->row) + at, k->src.pitch, b->rows, bytes);
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
        eng_rows(c, k.dst.cols, 1, k.bits ? eff_bits_body : dma_body, &k, sizeof k);
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

// A row that is one stretch on both sides, and bits or numbers of one type: no blocks are needed.
static bool is_flat(const Dma *k) {
    bool f32 = k->dst.dtype == DT_F32 && k->src.dtype == DT_F32;
    return k->dst.flat && k->src.flat && (k->bits || k->bf16 || (k->alu && f32));
}

static void row_flat(const Dma *k, uint8_t *dst, const uint8_t *src) {
    if (k->bits)
        memmove(dst, src, k->dst.cols * k->dst.bytes);
    else
        (k->bf16 ? k->bf16 : k->alu)(dst, dst, src, k->dst.cols);
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
    bool gather = addr_space(in->src) == SPACE_HBM, flat = is_flat(&all);
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
        if (flat)
            row_flat(&one, one.dst.at, one.src.at);
        else if (one.bits)
            row_bits(c, &one);
        else
            eng_run(c->pool, 1, one.dst.cols, 1, dma_body, &one);
    }
    return OTRN_OK;
}

// --- many by index -------------------------------------------------------------------------------------------

#define MOVES 1024     // rows that are looked up before they are moved
#define MOVES_AHEAD 12

typedef struct RowMove {
    uint8_t *dst;
    const uint8_t *src;
} RowMove;

typedef struct Many {
    const EffCall *calls;
    uint32_t n, classes; // classes of rows that are written by index, each in order by one thread
    bool gather;
    Dma dma; // of the first; the others differ in places only
    atomic_uint failed; // the first call with a row outside
} Many;

static void moves_run(const Many *m, const RowMove *moves, uint32_t n) {
    size_t bytes = m->dma.dst.cols * m->dma.dst.bytes, ahead = bytes < AHEAD_MOST ? bytes : AHEAD_MOST;
    for (uint32_t i = 0; i < n; i++) {
        if (i + MOVES_AHEAD < n)
            for (size_t at = 0; at < ahead; at += 64) {
                __builtin_prefetch(moves[i + MOVES_AHEAD].src + at);
                if (!m->gather) // every other row or fewer: nothing comes by itself
                    __builtin_prefetch(moves[i + MOVES_AHEAD].dst + at);
            }
        row_flat(&m->dma, moves[i].dst, moves[i].src);
    }
}

static void call_failed(Many *m, uint32_t call) {
    unsigned first = atomic_load(&m->failed);
    while (call < first && !atomic_compare_exchange_weak(&m->failed, &first, call))
        ;
}

// The rows of a class, of calls [begin, end).
static __attribute__((noinline)) void many_rows(Many *m, uint32_t begin, uint32_t end, uint32_t class) {
    RowMove moves[MOVES];
    uint32_t n = 0;
    int64_t dp = m->dma.dst.pitch, sp = m->dma.src.pitch;
    for (uint32_t i = begin; i < end; i++) {
        const EffCall *c = &m->calls[i];
        uint32_t rows = isa_count(c->in->n[0]);
        for (uint32_t p = 0; p < rows; p++) {
            int64_t row = index_at(c, p);
            if (row < 0 || row >= c->in->limit) {
                if (!(c->in->flags & ISA_FLAG_SKIP))
                    call_failed(m, i);
                continue;
            }
            // neighbours in different classes, whatever the number of classes
            if (m->classes > 1 && (uint64_t)((uint32_t)row * 2654435761u) * m->classes >> 32 != class)
                continue;
            moves[n++] = (RowMove){c->dst.at + (m->gather ? p : row) * dp, c->src.at + (m->gather ? row : p) * sp};
            if (n == MOVES)
                moves_run(m, moves, n), n = 0;
        }
    }
    moves_run(m, moves, n);
}

static void gather_task(void *arg, size_t begin, size_t end) {
    HostFp old = host_fp_begin(HOST_FP_IEEE);
    many_rows(arg, (uint32_t)begin, (uint32_t)end, 0);
    host_fp_end(old);
}

static void scatter_task(void *arg, size_t begin, size_t end) {
    HostFp old = host_fp_begin(HOST_FP_IEEE);
    Many *m = arg;
    for (; begin < end; begin++)
        many_rows(m, 0, m->n, (uint32_t)begin);
    host_fp_end(old);
}

bool eff_indirect_suits(const EffCall *c) {
    Dma k = dma_begin(c);
    uint32_t rows = addr_space(c->in->src) == SPACE_HBM ? isa_count(c->in->n[0]) : (uint32_t)c->in->limit;
    return is_flat(&k) && !eng_rows_overlap(&k.dst, rows);
}

otrn_status eff_indirect_many(const EffCall *calls, uint32_t n) {
    const EffCall *c = calls;
    Many m = {.calls = calls, .n = n, .dma = dma_begin(c), .gather = addr_space(c->in->src) == SPACE_HBM};
    m.classes = m.gather ? 1 : (uint32_t)pool_threads(c->pool);
    atomic_init(&m.failed, UINT32_MAX);
    pool_run(c->pool, m.gather ? n : m.classes, 1, m.gather ? gather_task : scatter_task, &m);
    unsigned failed = atomic_load(&m.failed);
    return failed == UINT32_MAX ? OTRN_OK : eff_dma_indirect(&calls[failed]); // which says what is wrong
}
