// SPDX-License-Identifier: Apache-2.0
// plan_test.c — random programs: the same bits in HBM with the host plan and without it, on every host level and
// thread count.
//
// Operands come from a few places of SBUF that overlap, transfers from segments of which one takes over another's
// memory, so that what the planner has to notice is frequent. Usage: plan_test [seed [programs]].
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chip/core/chip.h"
#include "chip/host/plan.h"

#define AREA 20480u      // bytes of a partition that programs use
#define SEG_BYTES (128u * 6400u)
#define CODE_MAX 112

static int failures;
static uint64_t state;
static uint64_t next(void) { // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}
static uint32_t below(uint32_t n) { return (uint32_t)(next() >> 32) % n; }
static bool chance(uint32_t percent) { return below(100) < percent; }

// --- programs --------------------------------------------------------------------------------------------
// Segments: scratch, constants (none), three arguments, and three results: the first takes the first argument's memory.
enum { ARG0 = SEG_FIRST_ARG, ARG1, ARG2, RES0, RES1, RES2, SEGS };

typedef struct Program {
    IsaInst code[CODE_MAX];
    uint32_t n;
    uint32_t part, rows; // of the instructions being made
    bool tidy;           // rows of one length in places of their own, as a compiler would have it
    uint32_t cols;
} Program;

static IsaInst *push(Program *p, int op, int engine) {
    IsaInst *in = &p->code[p->n++];
    *in = (IsaInst){.op = (uint8_t)op, .engine = (uint8_t)engine, .wait_sem = {SEM_NONE, SEM_NONE}};
    in->n[0] = p->rows;
    return in;
}

static int some_type(const Program *p) { return chance(p->tidy ? 90 : 60) ? DT_F32 : chance(70) ? DT_BF16 : DT_I32; }
static uint32_t some_cols(const Program *p) {
    if (p->tidy && chance(90))
        return p->cols;
    static const uint32_t cols[] = {1, 2, 16, 17, 64, 100, 256, 512, 600};
    return cols[below(sizeof cols / sizeof *cols)];
}
static uint64_t some_place(const Program *p, uint32_t cols, int dtype) {
    static const uint32_t at[] = {0, 64, 1024, 1028, 2048, 2560, 3072, 3136};
    if (p->tidy && cols * dtype_bytes(dtype) <= 1024)
        return addr_sbuf(p->part, cols == 1 ? 5120 + 64 * below(8) : 1024 * below(5));
    uint32_t off = at[below(8)];
    return cols * (uint32_t)dtype_bytes(dtype) + off <= 6144 ? addr_sbuf(p->part, off) : addr_sbuf(p->part, 0);
}

static void dma(Program *p, bool out) {
    IsaInst *in = push(p, ISA_DMA, ENG_SYNC);
    int dtype = some_type(p);
    uint32_t cols = some_cols(p), bytes = (uint32_t)dtype_bytes(dtype);
    uint32_t pitch = chance(40) ? cols : chance(80) ? 1024 : 600, column = chance(50) ? 0 : below(4) * 16;
    static const uint8_t ins[] = {SEG_SCRATCH, ARG0, ARG1, ARG2, RES0, RES1}, outs[] = {SEG_SCRATCH, RES0, RES1, RES2};
    uint32_t seg = out ? outs[below(4)] : ins[below(6)];
    if (!out && chance(15))
        pitch = 0;
    in->stype = (uint8_t)dtype;
    in->n[1] = cols;
    uint64_t hbm = addr_hbm(seg, (uint64_t)column * bytes + (chance(80) ? 0 : 64 * bytes)), sbuf = some_place(p, cols, dtype);
    in->dst = out ? hbm : sbuf, in->src = out ? sbuf : hbm;
    int32_t *hs = out ? in->d : in->s, *ps = out ? in->s : in->d;
    hs[0] = (int32_t)pitch;
    hs[1] = ps[1] = 1;
    if (cols % 2 == 0 && chance(15)) { // in two pieces with a gap in HBM; rows do not meet
        hs[0] = hs[0] ? 1024 : 0;
        in->n[1] = 2, in->n[2] = cols / 2;
        ps[1] = (int32_t)cols / 2, hs[1] = (int32_t)cols / 2 + 8, ps[2] = hs[2] = 1;
    }
    if (chance(8))
        in->dtype = (uint8_t)(dtype == DT_F32 ? DT_BF16 : DT_F32);
}

static uint64_t number_or_column(const Program *p) {
    return chance(50) ? scalar_f32((float)below(9) - 4) : some_place(p, 1, DT_F32);
}

static void engine(Program *p) {
    static const uint8_t ops[] = {ISA_COPY, ISA_COPY, ISA_TENSOR_TENSOR, ISA_TENSOR_TENSOR, ISA_TENSOR_SCALAR, ISA_SCALAR_TT,
                                  ISA_RECIPROCAL, ISA_ACTIVATE, ISA_ACTIVATE, ISA_SCALAR_REDUCE, ISA_REDUCE,
                                  ISA_MEMSET, ISA_COPY_PRED, ISA_SELECT_REDUCE, ISA_IOTA};
    static const uint8_t alus[] = {ALU_ADD, ALU_SUB, ALU_MUL, ALU_MAX, ALU_MIN};
    int op = ops[below(sizeof ops)];
    IsaInst *in = push(p, op, op == ISA_ACTIVATE ? ENG_SCALAR : op == ISA_IOTA ? ENG_GPSIMD : ENG_VECTOR);
    uint32_t cols = some_cols(p);
    bool pred = op == ISA_COPY_PRED || op == ISA_SELECT_REDUCE;
    int dtype = some_type(p), stype = op == ISA_COPY_PRED ? dtype : some_type(p);
    in->dtype = (uint8_t)dtype;
    in->dst = some_place(p, cols, dtype);
    in->n[1] = cols, in->d[1] = 1;
    if (op == ISA_REDUCE)
        in->d[1] = 0;
    if (op != ISA_MEMSET && op != ISA_IOTA) {
        in->stype = (uint8_t)stype, in->src = some_place(p, cols, stype);
        in->s[1] = chance(90) ? 1 : 0;
    } else {
        in->imm = (int32_t)below(1000);
        in->t[1] = op == ISA_IOTA, in->t[0] = op == ISA_IOTA ? 5 : 0;
    }
    if (op == ISA_TENSOR_TENSOR || op == ISA_SCALAR_TT || pred) {
        in->ttype = (uint8_t)(pred ? DT_UI8 : some_type(p));
        in->src1 = some_place(p, cols, in->ttype), in->t[1] = 1;
    }
    if (op != ISA_COPY && op != ISA_MEMSET && op != ISA_IOTA && op != ISA_RECIPROCAL && op != ISA_ACTIVATE && !pred)
        in->op0 = alus[below(5)];
    if (op == ISA_TENSOR_SCALAR || op == ISA_SCALAR_TT || op == ISA_SCALAR_REDUCE || op == ISA_SELECT_REDUCE)
        in->a = number_or_column(p), in->atype = DT_F32;
    if (op == ISA_SCALAR_TT)
        in->op1 = alus[below(3)];
    if (op == ISA_ACTIVATE) {
        in->fn = chance(50) ? ACT_EXP : ACT_TANH, in->atype = DT_F32;
        in->b = chance(50) ? some_place(p, 1, DT_F32) : 0;
        if (!in->b)
            in->atype = 0;
    }
    if (op == ISA_SCALAR_REDUCE || (op == ISA_ACTIVATE && chance(50))) {
        in->res = some_place(p, 1, DT_F32), in->rtype = DT_F32;
        in->rcmd = RCMD_RESET_REDUCE, in->rop = chance(70) || op == ISA_ACTIVATE ? ALU_ADD : ALU_MAX;
    }
}

static void row_dma(Program *p, bool out, uint64_t hbm, uint32_t sbuf) {
    IsaInst *in = push(p, ISA_DMA, ENG_SYNC);
    in->stype = DT_F32, in->n[1] = p->cols, in->s[1] = in->d[1] = 1;
    *(out ? in->d : in->s) = (int32_t)p->cols;
    in->dst = out ? hbm : addr_sbuf(0, sbuf), in->src = out ? addr_sbuf(0, sbuf) : hbm;
}

static void combine(Program *p, uint32_t to, uint32_t x, uint32_t y, uint32_t cols) {
    IsaInst *in = push(p, ISA_TENSOR_TENSOR, ENG_VECTOR);
    in->dtype = in->stype = in->ttype = DT_F32, in->op0 = chance(50) ? ALU_ADD : ALU_MUL;
    in->n[1] = cols, in->d[1] = in->s[1] = in->t[1] = 1;
    in->dst = addr_sbuf(0, to), in->src = addr_sbuf(0, x), in->src1 = addr_sbuf(0, y);
}

// An update in place, as of an optimizer: what was there before is perhaps still read after it is made, or written.
static void update(Program *p) {
    if (p->n + 8 >= CODE_MAX)
        return;
    p->rows = 128;
    uint64_t x = addr_hbm(chance(50) ? ARG0 : RES0, chance(70) ? 0 : 64);
    uint32_t shift = chance(30) ? 4 : 0, cols = p->cols - shift / 4;
    row_dma(p, false, x, 0);
    row_dma(p, false, addr_hbm(ARG1, 0), 1024);
    combine(p, 2048, shift, 1024, cols);
    if (shift)
        combine(p, 2048, 0, 1024, p->cols);
    if (chance(50))
        combine(p, shift, 0, 1024, cols);
    bool early = chance(50);
    if (early)
        row_dma(p, true, addr_hbm(RES0, addr_off(x)), 2048);
    combine(p, 3072, 0, chance(50) ? 1024 : 2048, p->cols);
    if (!early)
        row_dma(p, true, addr_hbm(RES0, addr_off(x)), 2048);
    row_dma(p, true, addr_hbm(RES1, 0), 3072);
}

// Rows of several blocks whose operands overlap, in SBUF or where they lie in HBM: element by element is not all at once.
static void shifted(Program *p) {
    if (p->n + 4 >= CODE_MAX)
        return;
    uint32_t cols = p->cols;
    p->rows = 128;
    p->cols = 1536;
    if (chance(50)) { // widened in its own place
        row_dma(p, false, addr_hbm(ARG0, 0), 0);
        p->code[p->n - 1].stype = DT_BF16;
        IsaInst *in = push(p, ISA_COPY, ENG_VECTOR);
        in->dtype = DT_F32, in->stype = DT_BF16, in->n[1] = 1536, in->d[1] = in->s[1] = 1;
        in->dst = in->src = addr_sbuf(0, 0);
        row_dma(p, true, addr_hbm(RES1, 0), 0);
    } else { // row[i] = row[i + 1] + …, back to its place
        row_dma(p, false, addr_hbm(ARG0, 0), 0);
        combine(p, 8192, chance(50) ? 4 : 0, 64, 1520);
        p->cols = 1520;
        row_dma(p, true, addr_hbm(RES0, chance(50) ? 0 : 4), 8192);
        p->code[p->n - 1].d[0] = 1536;
    }
    p->cols = cols;
}

// bf16 that is widened to be summed up, as a compiler writes it; perhaps somebody else reads it too.
static void widened(Program *p) {
    if (p->n + 10 >= CODE_MAX)
        return;
    uint32_t cols = p->cols, to = 1024 * (1 + below(3));
    p->rows = 128;
    row_dma(p, false, addr_hbm(ARG1, 64 * below(3)), 0);
    p->code[p->n - 1].stype = DT_BF16;
    if (chance(50)) {
        combine(p, 0, 0, 0, cols);
        IsaInst *in = &p->code[p->n - 1];
        in->dtype = in->stype = in->ttype = DT_BF16;
    }
    IsaInst *in = push(p, ISA_COPY, ENG_VECTOR);
    in->dtype = DT_F32, in->stype = DT_BF16, in->n[1] = cols, in->d[1] = in->s[1] = 1;
    in->dst = addr_sbuf(0, to), in->src = addr_sbuf(0, 0);
    bool reduce = chance(50);
    in = push(p, reduce ? ISA_REDUCE : ISA_ACTIVATE, reduce ? ENG_VECTOR : ENG_SCALAR);
    in->dtype = in->stype = DT_F32, in->n[1] = cols, in->d[1] = !reduce, in->s[1] = 1;
    in->src = addr_sbuf(0, to), in->dst = addr_sbuf(0, reduce ? 5120 : chance(70) ? to : 0);
    if (reduce)
        in->op0 = chance(70) ? ALU_ADD : ALU_MAX;
    else
        in->fn = ACT_IDENTITY, in->res = addr_sbuf(0, 5120), in->rtype = DT_F32, in->rcmd = RCMD_RESET_REDUCE, in->rop = ALU_ADD;
    if (chance(30))
        combine(p, 4096, to, to, cols);
    p->cols = 1;
    row_dma(p, true, addr_hbm(RES2, 0), 5120);
    p->cols = cols;
    if (chance(50))
        row_dma(p, true, addr_hbm(RES1, 0), chance(50) ? 4096 : to);
}

// A copy by way of SBUF, turned or not; perhaps somebody else reads it, or it goes over its own source.
static void through(Program *p) {
    if (p->n + 5 >= CODE_MAX)
        return;
    p->rows = 128;
    IsaInst *in = push(p, ISA_DMA, ENG_SYNC);
    bool turned = chance(60);
    in->stype = DT_F32, in->n[1] = 96, in->d[1] = 1, in->s[0] = turned ? 1 : 96, in->s[1] = turned ? 128 : 1;
    in->src = addr_hbm(chance(50) ? ARG0 : ARG1, 64 * below(2)), in->dst = addr_sbuf(0, 16384);
    if (chance(30))
        row_dma(p, true, addr_hbm(RES0, 0), 0);
    if (chance(20))
        combine(p, chance(50) ? 0 : 16384, 16384, 16384, 64);
    in = push(p, ISA_DMA, ENG_SYNC);
    in->stype = DT_F32, in->n[1] = 96, in->s[1] = 1, in->d[0] = 96, in->d[1] = 1;
    in->dst = addr_hbm(chance(50) ? RES0 : RES1, 0), in->src = addr_sbuf(0, 16384);
    if (chance(20))
        combine(p, 0, 16384, 16384, 64);
}

// Rows added to rows by index, some of them to the same one; perhaps their source is written in between.
static void scattered(Program *p) {
    if (p->n + 6 >= CODE_MAX)
        return;
    uint32_t cols = p->cols;
    p->rows = 128, p->cols = 64;
    IsaInst *in = push(p, ISA_IOTA, ENG_GPSIMD);
    in->dtype = DT_I32, in->n[1] = 1, in->d[1] = 1, in->t[0] = (int32_t)below(3), in->imm = (int32_t)below(20) - 5;
    in->dst = addr_sbuf(0, 17408);
    row_dma(p, false, addr_hbm(chance(50) ? ARG0 : ARG1, 0), 18432);
    if (chance(30))
        row_dma(p, true, addr_hbm(RES0, 0), 0);
    in = push(p, ISA_DMA_INDIRECT, ENG_GPSIMD);
    in->stype = DT_F32, in->op0 = chance(50) ? ALU_ADD : ALU_BYPASS, in->ttype = DT_I32, in->flags = ISA_FLAG_SKIP, in->limit = 200;
    in->n[1] = 64, in->d[0] = 64, in->d[1] = in->s[1] = 1;
    in->dst = addr_hbm(chance(50) ? RES0 : RES1, 0), in->src = addr_sbuf(0, 18432), in->src1 = addr_sbuf(0, 17408);
    if (chance(20))
        combine(p, 0, 18432, 18432, 64);
    p->cols = cols;
}

// Something that looks beyond its partition.
static void across(Program *p) {
    if (p->n + 3 >= CODE_MAX)
        return;
    if (chance(50)) {
        IsaInst *in = push(p, ISA_PART_REDUCE, ENG_GPSIMD);
        in->dtype = in->stype = DT_F32, in->op0 = ALU_MAX, in->n[1] = 64, in->d[1] = in->s[1] = 1;
        in->dst = some_place(p, 64, DT_F32), in->src = some_place(p, 64, DT_F32);
        return;
    }
    IsaInst *in = push(p, ISA_LDWEIGHTS, ENG_TENSOR);
    in->stype = DT_F32, in->n[1] = 32, in->s[1] = 1, in->src = some_place(p, 32, DT_F32);
    in = push(p, ISA_MATMUL, ENG_TENSOR);
    in->stype = DT_F32, in->n[1] = 100, in->n[2] = 32, in->s[1] = in->d[1] = 1, in->src = some_place(p, 100, DT_F32);
    in->dst = addr_psum(0, 0);
    in = push(p, ISA_COPY, ENG_VECTOR);
    in->dtype = in->stype = DT_F32, in->n[0] = 32, in->n[1] = 100, in->d[1] = in->s[1] = 1;
    in->dst = addr_sbuf(0, 1024), in->src = addr_psum(0, 0);
}

// A product whose operands are brought for it: in two chunks, perhaps used twice, perhaps written over before.
static void product(Program *p) {
    if (p->n + 14 >= CODE_MAX)
        return;
    uint32_t cols = p->cols, wide = 12288 + 2048 * below(2);
    p->rows = 128;
    p->cols = 64;
    row_dma(p, false, addr_hbm(ARG1, chance(50) ? 0 : 256), 8192);
    IsaInst *in = push(p, ISA_DMA, ENG_SYNC);
    in->stype = DT_F32, in->n[1] = 2, in->n[2] = 128, in->d[1] = 128, in->d[2] = in->s[2] = 1;
    in->s[0] = 256, in->s[1] = chance(50) ? 128 : 128 * 256;
    in->dst = addr_sbuf(0, wide), in->src = addr_hbm(chance(50) ? ARG0 : SEG_SCRATCH, 0);
    if (chance(30))
        row_dma(p, true, addr_hbm(chance(50) ? RES0 : SEG_SCRATCH, 0), 8192);
    if (chance(15))
        combine(p, wide, 8192, 8192, 64);
    for (uint32_t i = 0; i < 2 + below(2); i++) {
        in = push(p, ISA_LDWEIGHTS, ENG_TENSOR);
        in->stype = DT_F32, in->n[1] = 1 + below(3), in->s[1] = 1, in->src = addr_sbuf(0, 8192 + 64 * i);
        uint32_t m = in->n[1];
        in = push(p, ISA_MATMUL, ENG_TENSOR);
        in->stype = DT_F32, in->n[1] = chance(75) ? 128 : 130, in->n[2] = m, in->s[1] = in->d[1] = 1;
        in->flags = i ? MATMUL_ACCUMULATE : 0;
        in->src = addr_sbuf(0, wide + 512 * (i % 2)), in->dst = addr_psum(0, 0);
        if (in->n[1] == 130)
            in->src = addr_sbuf(0, wide);
    }
    in = push(p, ISA_COPY, ENG_VECTOR);
    in->dtype = in->stype = DT_F32, in->n[0] = 1, in->n[1] = 128, in->d[1] = in->s[1] = 1;
    in->dst = addr_sbuf(0, 1024), in->src = addr_psum(0, 0);
    p->cols = 128, p->rows = 1;
    row_dma(p, true, addr_hbm(RES2, 0), 1024);
    p->cols = cols;
}

// Products into several banks between each other, each with the load before it or an older one, whose operand is
// perhaps written over meanwhile; transposes beside them.
static void banks(Program *p) {
    if (p->n + 34 >= CODE_MAX)
        return;
    uint32_t used = 0, at = 1024 * below(4);
    p->part = 0, p->rows = 128;
    for (uint32_t i = 0; i < 4 + below(4); i++) {
        IsaInst *in;
        if (!i || chance(70)) {
            in = push(p, ISA_LDWEIGHTS, ENG_TENSOR);
            in->stype = DT_F32, in->n[1] = 32, in->s[1] = 1, in->src = addr_sbuf(0, at = 1024 * below(4));
        }
        if (chance(30))
            combine(p, chance(60) ? at : 8192, 4096, at, 64);
        if (chance(20)) {
            in = push(p, ISA_TRANSPOSE, ENG_VECTOR);
            in->dtype = in->stype = DT_F32, in->n[0] = in->n[1] = 32, in->s[1] = in->d[1] = 1;
            in->dst = addr_sbuf(0, 1024 * below(5)), in->src = addr_sbuf(0, 1024 * below(5));
        }
        uint32_t bank = below(3);
        in = push(p, ISA_MATMUL, ENG_TENSOR);
        in->stype = DT_F32, in->n[1] = chance(80) ? 256 : 100, in->n[2] = 32, in->s[1] = in->d[1] = 1;
        in->src = addr_sbuf(0, 1024 * below(4)), in->dst = addr_psum(0, PSUM_BANK_BYTES * bank);
        in->flags = used >> bank & 1 && chance(60) ? MATMUL_ACCUMULATE : 0;
        used |= 1u << bank;
    }
    for (uint32_t bank = 0; bank < 3; bank++) {
        if (!(used >> bank & 1))
            continue;
        IsaInst *in = push(p, ISA_COPY, ENG_VECTOR);
        in->dtype = in->stype = DT_F32, in->n[0] = 32, in->n[1] = 100, in->d[1] = in->s[1] = 1;
        in->dst = addr_sbuf(0, 1024 * bank), in->src = addr_psum(0, PSUM_BANK_BYTES * bank);
    }
}

// An operand as a compiler brings it: rows or columns adjacent in HBM, in one chunk or two.
static void operand(Program *p, int stype, uint32_t sbuf, uint32_t cols, uint64_t hbm) {
    IsaInst *in = push(p, ISA_DMA, ENG_SYNC);
    bool turned = chance(50), halves = chance(40);
    in->stype = (uint8_t)stype, in->dst = addr_sbuf(p->part, sbuf), in->src = hbm;
    in->n[1] = halves ? 2 : 1, in->n[2] = halves ? cols / 2 : cols;
    in->d[1] = (int32_t)(halves ? cols / 2 : cols), in->d[2] = 1;
    in->s[0] = turned ? 1 : 256, in->s[2] = turned ? 160 : 1, in->s[1] = halves && turned ? 160 * (int32_t)cols / 2 : 130;
}

// What may come between: most of it has to do with tiles of `products`, and some of it spoils them.
static void beside(Program *p, uint32_t out) {
    uint32_t cols = p->cols, rows = p->rows, part = p->part;
    p->cols = 64, p->rows = chance(80) ? 128 : 32, p->part = 0;
    static const uint32_t at[] = {8192, 9216, 12288, 12800, 16384, 16896, 17408, 18432};
    switch (below(8)) {
    case 0:
        combine(p, at[below(8)], 1024, 2048, 64);
        break;
    case 1:
        combine(p, 4096, at[below(8)], 2048, 64);
        break;
    case 2:
        row_dma(p, chance(50), addr_hbm(RES1, chance(50) ? 0 : out), at[below(8)]);
        break;
    case 3: {
        IsaInst *in = push(p, ISA_COPY, ENG_VECTOR);
        in->dtype = in->stype = DT_F32, in->n[1] = 64, in->d[1] = in->s[1] = 1;
        in->dst = addr_sbuf(0, 4096), in->src = addr_psum(0, PSUM_BANK_BYTES * below(3));
        if (chance(50))
            in->src = in->dst, in->dst = addr_psum(0, PSUM_BANK_BYTES * below(3));
        break;
    }
    default: // nothing
        break;
    }
    p->cols = cols, p->rows = rows, p->part = part;
}

// Sums of products over operands that are used more than once, copied from their banks to SBUF and from there out.
static void products(Program *p) {
    if (p->n + 42 >= CODE_MAX)
        return;
    bool calm = chance(60); // as a compiler would write it
    int stype = chance(60) ? DT_F32 : DT_BF16, other = calm || chance(80) ? stype : DT_F32 + DT_BF16 - stype;
    uint32_t bytes = (uint32_t)dtype_bytes(stype), m = calm || chance(80) ? 32 : 20, n = chance(80) ? 128 : 81;
    uint32_t banks = 1 + below(3), steps = 1 + below(3), out = 4096 * below(3);
    p->part = 0, p->rows = chance(70) ? 128 : chance(50) ? 64 : 50;
    uint32_t k = p->rows;
    operand(p, stype, 8192, 192, addr_hbm(ARG1, 512 * below(2)));
    operand(p, other, 12288, 256, addr_hbm(chance(50) ? ARG0 : SEG_SCRATCH, 0));
    for (uint32_t i = 0; i < steps; i++)
        for (uint32_t b = 0; b < banks; b++) {
            if (!calm)
                beside(p, out);
            IsaInst *in;
            p->rows = k;
            if (calm || chance(80) || !(i + b)) {
                in = push(p, ISA_LDWEIGHTS, ENG_TENSOR);
                in->stype = (uint8_t)stype, in->n[1] = m, in->s[1] = 1;
                in->src = addr_sbuf(0, 8192 + 32 * bytes * (i + (calm || chance(90) ? b : 1)));
            }
            in = push(p, ISA_MATMUL, ENG_TENSOR);
            in->stype = (uint8_t)other, in->n[1] = n, in->n[2] = m, in->s[1] = in->d[1] = 1;
            in->src = addr_sbuf(0, 12288 + 64 * (uint32_t)dtype_bytes(other) * below(3));
            in->dst = addr_psum(0, PSUM_BANK_BYTES * b), in->flags = i ? MATMUL_ACCUMULATE : 0;
        }
    bool each = chance(50) || n != 128;
    p->rows = m;
    for (uint32_t b = 0; b < banks; b += each ? 1 : banks) {
        IsaInst *in = push(p, ISA_COPY, ENG_VECTOR);
        in->dtype = in->stype = DT_F32, in->n[1] = each ? 1 : banks, in->n[2] = n, in->d[1] = 128, in->s[1] = 512;
        in->d[2] = in->s[2] = 1;
        in->dst = addr_sbuf(0, 16384 + 512 * b), in->src = addr_psum(0, PSUM_BANK_BYTES * b);
        if (!calm)
            beside(p, out), p->rows = m;
    }
    IsaInst *in = push(p, ISA_DMA, ENG_SYNC);
    in->stype = DT_F32, in->n[1] = banks, in->n[2] = n, in->s[1] = 128, in->s[2] = in->d[2] = 1;
    in->d[0] = 128, in->d[1] = chance(50) ? 128 * 128 : 128 * 64;
    in->src = addr_sbuf(0, 16384), in->dst = addr_hbm(chance(70) ? RES1 : RES0, out);
    if (!calm)
        beside(p, out);
    if (chance(30)) { // what is over the tiles when all is done
        p->rows = 128;
        combine(p, 16384, 1024, 2048, 384);
    }
}

// Instructions one behind the other over the same rows, as an optimizer has them: what one makes another takes, the same
// place is read and written, rows are longer than a block or no multiple of anything.
typedef struct Rows {
    uint32_t cols, step;
    bool half[4]; // place i holds bf16
} Rows;

static uint64_t rows_column(const Program *p, const Rows *r) {
    return addr_sbuf(p->part, r->step * (1 + below(4)) - 64 + 4 * below(6));
}

static void rows_inst(Program *p, const Rows *r) {
    static const uint8_t ops[] = {ISA_COPY, ISA_TENSOR_TENSOR, ISA_TENSOR_TENSOR, ISA_TENSOR_SCALAR, ISA_SCALAR_TT, ISA_SCALAR_TT,
                                  ISA_RECIPROCAL, ISA_ACTIVATE, ISA_ACTIVATE, ISA_ACTIVATE, ISA_SELECT_REDUCE};
    static const uint8_t alus[] = {ALU_ADD, ALU_SUB, ALU_MUL, ALU_MUL, ALU_ADD, ALU_MAX};
    static const uint8_t fns[] = {ACT_EXP, ACT_TANH, ACT_SQRT, ACT_RECIPROCAL, ACT_SQUARE, ACT_IDENTITY, ACT_RELU};
    int op = ops[below(sizeof ops)];
    IsaInst *in = push(p, op, op == ISA_ACTIVATE ? ENG_SCALAR : ENG_VECTOR);
    uint32_t dst = below(4), src = below(4), src1 = below(4);
    bool select = op == ISA_SELECT_REDUCE, numbers = op == ISA_TENSOR_SCALAR || op == ISA_SCALAR_TT || select;
    in->n[1] = r->cols, in->d[1] = in->s[1] = 1;
    in->dst = addr_sbuf(p->part, r->step * dst), in->dtype = r->half[dst] ? DT_BF16 : DT_F32;
    in->src = addr_sbuf(p->part, r->step * src), in->stype = r->half[src] ? DT_BF16 : DT_F32;
    if (op == ISA_TENSOR_TENSOR || op == ISA_SCALAR_TT || select) {
        in->src1 = addr_sbuf(p->part, r->step * src1), in->t[1] = 1;
        in->ttype = select ? DT_UI8 : r->half[src1] ? DT_BF16 : DT_F32;
    }
    if (op == ISA_TENSOR_TENSOR || op == ISA_TENSOR_SCALAR || op == ISA_SCALAR_TT)
        in->op0 = alus[below(sizeof alus)];
    if (op == ISA_SCALAR_TT)
        in->op1 = alus[below(sizeof alus)], in->flags = (uint8_t)((chance(30) ? ISA_FLAG_REVERSE0 : 0) | (chance(30) ? ISA_FLAG_REVERSE1 : 0));
    if (numbers)
        in->a = chance(60) ? scalar_f32((float)below(9) / 4 - 1) : rows_column(p, r), in->atype = DT_F32;
    if (op == ISA_ACTIVATE) {
        in->fn = fns[below(sizeof fns)];
        in->a = chance(40) ? scalar_f32(0.125f) : 0, in->b = chance(40) ? rows_column(p, r) : 0;
        in->atype = in->b ? DT_F32 : 0;
    }
    if ((op == ISA_ACTIVATE || select) && chance(40)) {
        in->res = rows_column(p, r), in->rtype = DT_F32;
        in->rcmd = RCMD_RESET_REDUCE, in->rop = select ? ALU_MAX : ALU_ADD;
    }
}

static void chained(Program *p) {
    static const uint32_t cols[] = {128, 130, 230, 1100};
    Rows r = {.cols = cols[below(4)], .half = {chance(25), chance(25), chance(25), chance(25)}};
    r.step = r.cols > 256 ? 5120 : 1024;
    uint32_t seg = chance(50) ? ARG0 : ARG1, out = chance(50) ? RES0 : RES1; // perhaps the same memory
    p->rows = chance(60) ? 128 : 32, p->part = p->rows < 128 ? 32 * below(4) : 0;
    for (uint32_t i = 0, n = 4 + below(10); i < n && p->n < CODE_MAX - 12; i++) {
        uint32_t place = below(4), kind = below(10);
        if (kind > 2) {
            rows_inst(p, &r);
            continue;
        }
        IsaInst *in = push(p, ISA_DMA, ENG_SYNC);
        in->stype = r.half[place] ? DT_BF16 : DT_F32, in->n[1] = r.cols, in->s[1] = in->d[1] = 1;
        uint64_t sbuf = addr_sbuf(p->part, r.step * place), hbm = addr_hbm(kind ? out : seg, 0);
        in->dst = kind ? hbm : sbuf, in->src = kind ? sbuf : hbm;
        *(kind ? in->d : in->s) = (int32_t)r.cols;
    }
    if (chance(50)) { // what was gathered
        IsaInst *in = push(p, ISA_DMA, ENG_SYNC);
        in->stype = DT_F32, in->n[1] = 16, in->d[0] = 16, in->s[1] = in->d[1] = 1;
        in->dst = addr_hbm(RES2, 0), in->src = addr_sbuf(p->part, r.step * (1 + below(4)) - 64);
    }
}

static void program_make(Program *p) {
    static const uint32_t rows[] = {128, 128, 128, 100, 32, 1};
    p->n = 0;
    p->tidy = chance(60);
    p->cols = chance(50) ? 256 : 100;
    p->part = 0, p->rows = 128;
    IsaInst *in = push(p, ISA_DMA, ENG_SYNC); // everything has a value
    in->stype = DT_F32, in->n[1] = AREA / 4, in->s[0] = 8, in->s[1] = in->d[1] = 1;
    in->src = addr_hbm(ARG2, 0), in->dst = addr_sbuf(0, 0);
    in = push(p, ISA_COPY, ENG_VECTOR);
    in->dtype = in->stype = DT_F32, in->n[1] = 3 * PSUM_BANK_BYTES / 4, in->d[1] = in->s[1] = 1;
    in->dst = addr_psum(0, 0), in->src = addr_sbuf(0, 0);
    uint32_t want = 8 + below(44), loop = 0;
    while (p->n < want) {
        uint32_t kind = below(100);
        p->rows = p->tidy ? 128 : rows[below(6)];
        p->part = p->rows <= 32 && chance(50) ? 32 * below(4) : 0;
        if (kind < 20)
            dma(p, false);
        else if (kind < 38)
            dma(p, true);
        else if (kind < 42)
            chained(p);
        else if (kind < 48)
            update(p);
        else if (kind < 52)
            shifted(p);
        else if (kind < 58)
            product(p);
        else if (kind < 63)
            products(p);
        else if (kind < 70)
            widened(p);
        else if (kind < 73)
            through(p);
        else if (kind < 76)
            scattered(p);
        else if (kind < 81)
            banks(p);
        else if (kind < 95)
            engine(p);
        else if (kind < 98)
            across(p);
        else if (!loop)
            loop = p->n, in = push(p, ISA_LOOP, ENG_SYNC), in->n[0] = 0, in->limit = 2, in->step = 1;
    }
    if (loop) {
        p->code[loop].imm = (int32_t)p->n;
        in = push(p, ISA_ENDLOOP, ENG_SYNC), in->n[0] = 0, in->imm = (int32_t)loop;
    }
    p->part = 0, p->rows = 128;
    for (int i = 0; i < 2 && !p->tidy; i++) { // what is left can be seen
        in = push(p, ISA_DMA, ENG_SYNC);
        in->stype = DT_F32, in->n[1] = 512, in->d[0] = 512, in->s[1] = in->d[1] = 1;
        in->dst = addr_hbm(RES2, 128u * 2048u * (uint32_t)i), in->src = addr_sbuf(0, 2048u * (uint32_t)i);
    }
    in = push(p, ISA_HALT, ENG_SYNC), in->n[0] = 0;
}

// --- running ---------------------------------------------------------------------------------------------

typedef struct Setup {
    const char *name;
    HostLevel level;
    ChipPlan plan;
    Pool *pool;
    Chip *chip;
} Setup;

static Artifact artifact_of(Program *p, ArtValue args[3], ArtValue results[3], uint32_t *locs, ArtLoc *loc) {
    for (int i = 0; i < 3; i++) {
        args[i] = results[i] = (ArtValue){.dtype = DT_F32, .rank = 1, .dims = {SEG_BYTES / 4}, .bytes = SEG_BYTES,
                                          .name = "", .alias = -1};
        results[i].alias = i ? -1 : 0;
    }
    args[0].donated = 1;
    *loc = (ArtLoc){.file = "", .name = ""};
    return (Artifact){.name = "random", .target = "trn2", .producer = "", .nargs = 3, .nresults = 3, .args = args,
                      .results = results, .scratch_bytes = SEG_BYTES, .ncode = p->n, .code = p->code,
                      .code_loc = locs, .nlocs = 1, .locs = loc};
}

static const uint8_t *first_bytes;
static void memory_fill(uint8_t *mem) { memcpy(mem, first_bytes, (size_t)SEGS * SEG_BYTES); }

static bool run(const Setup *s, ChipProg *prog, ChipPlan plan, uint8_t *mem) {
    uint8_t *segs[SEGS];
    for (int i = 0; i < SEGS; i++)
        segs[i] = mem + (size_t)i * SEG_BYTES;
    segs[RES0] = segs[ARG0];
    memory_fill(mem);
    chip_set_plan(s->chip, plan);
    char why[200];
    uint32_t pc;
    return chip_run(s->chip, prog, segs, &pc, why, sizeof why) == OTRN_OK;
}

static uint32_t spared[5]; // left out, read or written in HBM, in memory of the slice, operands of products, bf16 not widened

static uint32_t tiles[2]; // products that write to HBM; instructions with an operand in blocks

static uint32_t singles; // runs of one instruction, which would end the flow otherwise

static void count_spared(const Plan *plan, uint32_t ncode) {
    for (uint32_t i = 0; i < plan->nruns; i++)
        singles += plan->runs[i].end - plan->runs[i].first == 1;
    for (uint32_t i = 0; i < plan->pe.n; i++) {
        bool out = plan->out_at && plan->out_at[plan->pe.at[i].pc] == i + 1;
        tiles[0] += out, spared[3] += !out;
    }
    for (uint32_t i = 0; plan->blocks && i < ncode; i++)
        tiles[1] += plan->blocks[i];
    for (size_t i = 0; i < plan->overs.n; i++)
        spared[4] += plan->overs.at[i].dtype != 0;
    for (size_t i = 0; i < plan->overs.n; i++)
        spared[plan->overs.at[i].slot == PLAN_SKIP ? 0 : plan->overs.at[i].how == PLAN_HBM ? 1 : 2]++;
}

static void program_print(const Program *p) {
    Ctx ctx = {0};
    Arena a;
    arena_init(&a, &ctx);
    for (uint32_t i = 0; i < p->n; i++) {
        Buf b = {.arena = &a};
        isa_print(&p->code[i], &b);
        printf("  %3u %.*s\n", i, (int)b.n, (const char *)b.at);
    }
    arena_fini(&a);
}

// False: the program was not legal.
static bool program_test(Program *p, uint64_t seed, const Setup *setups, int nsetups, uint8_t *want, uint8_t *got) {
    static uint32_t locs[CODE_MAX];
    Ctx ctx = {0};
    Arena arena;
    arena_init(&arena, &ctx);
    Arena *volatile keep = &arena;
    jmp_buf here;
    ArtValue args[3], results[3];
    ArtLoc loc;
    Artifact art = artifact_of(p, args, results, locs, &loc);
    ChipProg *volatile prog = NULL;
    uint8_t plain[CODE_MAX + 1];
    memset(plain, 1, sizeof plain);
    if (CTX_TRY(&ctx, here)) {
        artifact_verify(&ctx, &art, "random");
        prog = chip_load(&ctx, keep, &art, 2, false, NULL);
        count_spared(plan_make(keep, &art, shapes_find(keep, art.code, art.ncode), artifact_dynamic(keep, &art), plain, NULL), art.ncode);
    }
    bool ok = prog && run(&setups[0], prog, CHIP_PLAN_OFF, want);
    for (int i = 0; ok && i < nsetups; i++)
        if (!run(&setups[i], prog, setups[i].plan, got) || memcmp(want, got, (size_t)SEGS * SEG_BYTES)) {
            size_t at = 0;
            while (at < (size_t)SEGS * SEG_BYTES && want[at] == got[at])
                at++;
            printf("FAIL seed %llu: %s: segment %zu differs at byte %zu\n", (unsigned long long)seed, setups[i].name,
                   at / SEG_BYTES, at % SEG_BYTES);
            if (!failures++)
                program_print(p);
            break;
        }
    if (!prog && getenv("PLAN_TEST_WHY"))
        printf("%s\n", ctx.err.text);
    arena_fini(keep);
    return ok;
}

static void data_make(uint8_t *at) {
    float *f = (float *)at;
    for (size_t i = 0; i < (size_t)SEGS * SEG_BYTES / 4; i++) {
        uint32_t bits = (uint32_t)next();
        f[i] = (float)((int)below(4001) - 2000) / 64;
        if (below(500) == 0)
            memcpy(&f[i], &bits, 4);
    }
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint32_t programs = argc > 2 ? (uint32_t)atoi(argv[2]) : argc > 1 ? 1 : 250;
    uint8_t *mem = malloc(3u * SEGS * SEG_BYTES), *want = mem + (size_t)SEGS * SEG_BYTES, *got = want + (size_t)SEGS * SEG_BYTES;
    state = 99;
    data_make(mem);
    first_bytes = mem;
    HostLevel avx2 = HOST_AVX2 < host_best() ? HOST_AVX2 : host_best();
    Setup setups[] = {{"portable, 1 thread", HOST_PORTABLE, CHIP_PLAN_ON, pool_make(1), NULL},
                      {"best host, 2 threads", host_best(), CHIP_PLAN_ON, pool_make(2), NULL},
                      {"avx2, 2 threads", avx2, CHIP_PLAN_ON, pool_make(2), NULL},
                      {"best host, 1 thread, flowing", host_best(), CHIP_PLAN_ALL, pool_make(1), NULL},
                      {"best host, 2 threads, flowing", host_best(), CHIP_PLAN_ALL, pool_make(2), NULL}};
    int n = sizeof setups / sizeof *setups;
    for (int i = 0; i < n; i++)
        setups[i].chip = chip_make(setups[i].pool, setups[i].level);
    uint32_t legal = 0;
    Program *p = malloc(sizeof *p);
    for (uint32_t i = 0; i < programs; i++, seed++) {
        state = seed * 0x2545f4914f6cdd1dull;
        program_make(p);
        legal += program_test(p, seed, setups, n, want, got);
    }
    for (int i = 0; i < n; i++)
        chip_free(setups[i].chip), pool_free(setups[i].pool);
    free(p), free(mem);
    if (programs >= 100) {
        bool some = legal >= programs * 3 / 4 && spared[0] > programs / 4 && spared[1] > programs / 4 && spared[2] > programs && spared[3] > programs / 16 &&
                    spared[4] > programs / 50 && singles > programs / 16 && tiles[0] > programs / 4 && tiles[1] > programs;
        printf("%s what the plan spares: %u programs, %u transfers, %u operands in HBM, %u in the slice, %u of products, %u not widened, %u products to HBM, %u in blocks\n", some ? "ok" : "FAIL", legal,
               spared[0], spared[1], spared[2], spared[3], spared[4], tiles[0], tiles[1]);
        failures += !some;
    }
    if (!failures)
        printf("ok the same bits with the plan\n");
    return failures != 0;
}
