// SPDX-License-Identifier: Apache-2.0
// effect_test.c — random legal engine instructions: the same bits on every host level and thread count, and those
// of a reference that takes one element after another.
//
// Usage: effect_test [seed [cases]]. A failing case prints its instruction and the seed that repeats it alone.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "chip/core/effect.h"
#include "isa/check.h"
#include "unit.h"

#define ROW 8192 // bytes of a partition that instructions use
#define PITCH (ROW + 64)
#define SPACE_BYTES ((size_t)PITCH * PARTITIONS)

typedef struct Memory {
    uint8_t *at; // SBUF, then PSUM
    EngineState state;
} Memory;

static EffOperand operand(const Memory *m, uint64_t addr) {
    EffOperand o = {0};
    if (!addr || addr_space(addr) >= SPACE_COUNT)
        return o;
    o.at = m->at + (addr_space(addr) == SPACE_PSUM ? SPACE_BYTES : 0) + addr_part(addr) * (size_t)PITCH +
           addr_poff(addr);
    o.pitch = PITCH;
    return o;
}

static otrn_status run(const IsaInst *in, Memory *m, Pool *pool, HostLevel level, char why[200]) {
    const EffRound round = {.stochastic = in->n[0] % 5 == 0, .seed = 7, .instruction = 3};
    EffCall c = {.in = in, .round = &round, .state = &m->state, .pool = pool, .level = level, .why = why, .why_bytes = 200};
    c.dst = operand(m, in->dst), c.src = operand(m, in->src), c.src1 = operand(m, in->src1);
    c.res = operand(m, in->res), c.a = operand(m, in->a), c.b = operand(m, in->b);
    return effect_find(in->op)(&c);
}

static bool by_itself(int op) { // needs no chip around it
    int cost = isa_rows[op].cost;
    return effect_find(op) && cost != COST_DMA && cost != COST_LDWEIGHTS && cost != COST_MATMUL && cost != COST_REMOTE;
}

// --- random instructions ---------------------------------------------------------------------------------

static const uint8_t dtypes[] = {DT_F32, DT_F32, DT_F32,   DT_BF16,    DT_BF16,  DT_F16, DT_TF32, DT_F8E4M3, DT_F8E4M3FN,
                                 DT_F8E5M2, DT_F8E3M4, DT_I8, DT_I16, DT_I32, DT_UI8, DT_UI16, DT_UI32, DT_I1};
static int pick(uint64_t *s) { return dtypes[rng_below(s, sizeof dtypes)]; }

// A pattern of the counts that fits into [lo, hi) bytes of a row; dense, gapped, backward, repeated.
static bool place(uint64_t *s, IsaInst *in, int32_t stride[5], int dtype, uint32_t lo, uint32_t hi, bool repeat,
                  uint32_t *at) {
    int64_t size = (int64_t)dtype_bytes(dtype), step = 1, low = 0, high = 0;
    int order[4] = {4, 3, 2, 1};
    if (rng_below(s, 4) == 0)
        order[0] = 3, order[1] = 4;
    for (int i = 0; i < 4; i++) {
        int a = order[i];
        uint32_t n = isa_count(in->n[a]);
        int64_t mine = step;
        if (n == 1)
            mine = 0;
        else if (repeat && rng_below(s, 8) == 0)
            mine = 0;
        else
            step = step * n + (rng_below(s, 5) == 0 ? rng_below(s, 4) : 0);
        if (rng_below(s, 8) == 0)
            mine = -mine;
        stride[a] = (int32_t)mine;
        *(mine < 0 ? &low : &high) += mine * (int64_t)(n - 1);
    }
    int64_t room = ((int64_t)hi - lo) / size - (high - low + 1);
    if (room < 0)
        return false;
    *at = (uint32_t)((lo / size + (int64_t)rng_below(s, (uint32_t)(room < 9 ? room + 1 : 9)) - low) * size);
    return true;
}

static uint64_t scalar(uint64_t *s, IsaInst *in, uint32_t part) {
    static const float values[] = {0, 1, -1, 0.5f, 2, 3, -0.25f, 100, 1e-3f, INFINITY};
    switch (rng_below(s, 4)) {
    case 0:
        return addr_sbuf(part, (ROW - 256 + 4 * rng_below(s, 8)) & ~3u);
    case 1:
        return scalar_i32((int32_t)rng_below(s, 40) - 4);
    default:
        (void)in;
        return scalar_f32(values[rng_below(s, 10)]);
    }
}

static void random_pattern(uint64_t *s, IsaInst *in) {
    in->n[0] = rng_below(s, 3) ? 1 + rng_below(s, 128) : 128u >> rng_below(s, 8);
    uint32_t left = rng_below(s, 3) ? 40 : 1100;
    for (int a = 4; a > 0; a--)
        if (rng_below(s, 2)) {
            in->n[a] = 1 + rng_below(s, left);
            left = left / in->n[a] + 1;
        }
}

// Fields that chance alone would hardly get right.
static void random_fit(uint64_t *s, IsaInst *in) {
    static const uint8_t words[] = {DT_UI16, DT_UI32, DT_UI8, DT_I1};
    uint8_t word = words[rng_below(s, 2)], small = words[rng_below(s, 4)];
    switch (in->op) {
    case ISA_TRANSPOSE:
        if (rng_below(s, 2))
            in->n[0] = 32 * (1 + rng_below(s, 4)), in->n[1] = 32 * (1 + rng_below(s, 4));
        break;
    case ISA_RANGE_SELECT:
        in->op0 = (uint8_t)(ALU_EQ + rng_below(s, 6)), in->op1 = (uint8_t)(ALU_EQ + rng_below(s, 6));
        in->rop = ALU_MAX, in->atype = DT_F32;
        break;
    case ISA_SELECT_REDUCE:
        in->rop = ALU_MAX, in->ttype = small == DT_UI32 ? DT_UI8 : small;
        break;
    case ISA_SCAN:
    case ISA_SCALAR_CUM:
        in->op1 = (uint8_t)(ALU_ADD + rng_below(s, 5));
        break;
    case ISA_COPY_PRED:
        in->ttype = small;
        break;
    case ISA_MAX8:
    case ISA_FIND8:
    case ISA_MATCH8:
        in->n[1] = 8 + rng_below(s, 400), in->rtype = word;
        if (in->op == ISA_FIND8)
            in->dtype = word;
        break;
    case ISA_RNG_SET:
    case ISA_RNG_GET:
        in->n[1] = in->engine == ENG_VECTOR ? 24 : 6;
        *(in->op == ISA_RNG_SET ? &in->stype : &in->dtype) = word;
        break;
    case ISA_ACTIVATE2:
        in->op0 = ALU_MUL, in->op1 = rng_below(s, 2) ? ALU_ADD : ALU_SUB;
        break;
    case ISA_RNG_AT:
        in->stype = DT_UI32, in->dtype = small & 1 ? DT_UI8 : DT_UI32;
        in->op0 = (uint8_t[]){ALU_BYPASS, ALU_LT, ALU_GE}[rng_below(s, 3)];
        break;
    case ISA_DROPOUT_AT:
        in->ttype = DT_UI32, in->op0 = (uint8_t[]){ALU_LT, ALU_GE}[rng_below(s, 2)];
        break;
    case ISA_TOPK:
        in->n[0] = 16 * (1 + rng_below(s, 8)), in->n[1] = 8 + rng_below(s, 300);
        in->imm = (int32_t)(1 + rng_below(s, in->n[1])), in->rtype = word;
        break;
    case ISA_N_GATHER:
    case ISA_LOCAL_GATHER:
        in->n[2] = in->op == ISA_N_GATHER ? 0 : 1u << rng_below(s, 4);
        in->ttype = word, in->imm = (int32_t)(1 + rng_below(s, 300));
        break;
    case ISA_QUANT_MX:
        in->n[0] = 32 * (1 + rng_below(s, 4)), in->n[1] = 4 * (1 + rng_below(s, 100));
        in->stype = small & 1 ? DT_BF16 : DT_F16, in->dtype = word & 1 ? DT_F8E4M3FN : DT_F8E5M2, in->rtype = DT_UI8;
        break;
    default:
        break;
    }
}

// False: try again.
static bool random_inst(uint64_t *s, IsaInst *in, bool apart) {
    memset(in, 0, sizeof *in);
    do
        in->op = (uint8_t)rng_below(s, ISA_OP_COUNT);
    while (!by_itself(in->op));
    IsaMask mask = isa_row_mask(in->op);
    do
        in->engine = (uint8_t)rng_below(s, ENG_COUNT);
    while (!isa_row_engine(in->op, in->engine));
    in->wait_sem[0] = in->wait_sem[1] = SEM_NONE;
#define HAS(f) (mask >> ISA_F_##f & 1)
    random_pattern(s, in);
    for (int a = 0; a < 5; a++)
        if (!(mask >> (ISA_F_n0 + a) & 1))
            in->n[a] = 0;
    in->dtype = HAS(dtype) ? (uint8_t)pick(s) : 0;
    in->stype = HAS(stype) ? rng_below(s, 2) || !in->dtype ? (uint8_t)pick(s) : in->dtype : 0;
    in->ttype = HAS(ttype) ? rng_below(s, 2) || !in->stype ? (uint8_t)pick(s) : in->stype : 0;
    in->atype = HAS(atype) ? (uint8_t)(rng_below(s, 2) ? DT_F32 : pick(s)) : 0;
    in->rtype = HAS(rtype) ? (uint8_t)(rng_below(s, 2) ? DT_F32 : pick(s)) : 0;
    in->op0 = HAS(op0) ? (uint8_t)rng_below(s, ALU_COUNT) : 0;
    in->op1 = HAS(op1) && rng_below(s, 2) ? (uint8_t)rng_below(s, ALU_COUNT) : 0;
    in->rop = HAS(rop) ? (uint8_t)rng_below(s, ALU_ABS_MIN + 1) : 0;
    in->rcmd = HAS(rcmd) ? (uint8_t)rng_below(s, RCMD_COUNT) : 0;
    in->fn = HAS(fn) ? (uint8_t)rng_below(s, ACT_COUNT) : 0;
    in->imm = HAS(imm) ? (int32_t)rng_below(s, 2000) - (rng_below(s, 2) ? 1000 : 0) : 0;
    in->value = HAS(value) ? 0x3e800000 : 0;
    in->limit = HAS(limit) ? (int32_t)0xff7fffff : 0;
    if (HAS(flags) && rng_below(s, 2))
        in->flags = rng_below(s, 2) ? ISA_FLAG_REVERSE0 : rng_below(s, 2) ? ISA_FLAG_REVERSE1 : ISA_FLAG_NEGATE;
    for (int i = 0; HAS(mask) && i < 32; i++)
        in->mask[i / 8] |= (uint64_t)(rng_below(s, 9) ? rng_below(s, 32) : 255) << i % 8 * 8;
    random_fit(s, in);
    uint32_t parts = isa_count(in->n[0]), step = parts > 64 ? 128 : parts > 32 ? 64 : 32, starts = 128 / step;
    uint32_t at, hi = apart ? 2048 : 6000;
    bool psum = rng_below(s, 3) == 0 && in->engine != ENG_GPSIMD;
    if (HAS(src)) {
        if (!place(s, in, in->s, in->stype, 0, hi, true, &at))
            return false;
        in->src = psum ? addr_psum(step * rng_below(s, starts), at) : addr_sbuf(step * rng_below(s, starts), at);
    }
    if (HAS(src1)) {
        if (!place(s, in, in->t, in->ttype, apart ? 2048 : 0, apart ? 4096 : 6000, true, &at))
            return false;
        in->src1 = addr_sbuf(step * rng_below(s, starts), at);
    } else if (HAS(t0)) {
        for (int a = 0; a < 5; a++)
            in->t[a] = (int32_t)rng_below(s, 9) - 4;
    }
    uint32_t part = step * rng_below(s, starts);
    if (HAS(dst)) {
        bool same = HAS(src) && rng_below(s, 4) == 0 && in->op != ISA_REDUCE;
        if (same) {
            in->dtype = in->stype, in->dst = in->src;
            memcpy(in->d, in->s, sizeof in->d);
        } else if (!place(s, in, in->d, in->dtype, apart ? 4096 : 0, apart ? 7900 : 6000, in->op == ISA_REDUCE, &at)) {
            return false;
        } else {
            in->dst = rng_below(s, 4) == 0 && in->engine != ENG_GPSIMD ? addr_psum(part, at) : addr_sbuf(part, at);
        }
        for (int a = 1; in->op != ISA_REDUCE && a < 5; a++)
            if (isa_count(in->n[a]) > 1 && !in->d[a])
                return false; // two elements in one place: which one stays is not said
    }
    if (HAS(a) && rng_below(s, 8))
        in->a = scalar(s, in, part);
    if (HAS(b) && rng_below(s, 8))
        in->b = scalar(s, in, part);
    if (HAS(res) && (in->op == ISA_QUANT_MX || in->op == ISA_TOPK || rng_below(s, 2)))
        in->res = addr_sbuf(part, ROW - 128);
    for (int a = 0; a < 5; a++) { // only what the row has
        if (!(mask >> (ISA_F_d0 + a) & 1))
            in->d[a] = 0;
        if (!(mask >> (ISA_F_s0 + a) & 1))
            in->s[a] = 0;
        if (!(mask >> (ISA_F_t0 + a) & 1))
            in->t[a] = 0;
    }
    char why[ISA_WHY];
    const IsaChip chip = {4, ROW, ROW, 0};
    if (isa_check(in, mask, &chip, why))
        return false;
    IsaAccess access[ISA_ACCESS_MAX];
    int n = isa_accesses(in, mask, access);
    for (int i = 0; i < n; i++)
        if (isa_check_access(in, &access[i], &chip, 0, 0, why))
            return false;
    return true;
}

// Numbers of all sizes, whole ones often, and now and then NaN and infinity, in whatever type is read.
static void fill_memory(uint64_t *s, Memory *m) {
    for (size_t i = 0; i < 2 * SPACE_BYTES; i += 4) {
        uint64_t r = rng_next(s);
        float f = (r & 7) < 5 ? (float)((int)(r >> 40 & 31) - 16) : (float)(int32_t)(r >> 32) * 0x1p-24f;
        uint32_t u = (uint32_t)(r >> 32);
        if ((r & 0x38) != 0)
            memcpy(&u, &f, 4);
        memcpy(m->at + i, &u, 4);
    }
    for (int p = 0; p < PARTITIONS; p++)
        m->state.vector_acc[p] = (float)p, m->state.scalar_acc[p] = (float)-p;
    for (size_t i = 0; i < sizeof m->state.rng / 4; i++)
        ((uint32_t *)m->state.rng)[i] = (uint32_t)rng_next(s);
}

// --- the reference ----------------------------------------------------------------------------------------

static float get(int dtype, const uint8_t *p) {
    return dtype_is_float(dtype) ? (float)dtype_to_f64(dtype, p) : (float)dtype_to_i64(dtype, p);
}
static void put(int dtype, uint8_t *p, float v) {
    const DtypeRow *r = dtype_row(dtype);
    if (dtype_is_float(dtype)) {
        dtype_from_f64(dtype, p, v);
        return;
    }
    bool is_signed = r->cls == DC_SINT;
    double hi = ldexp(1, r->bits - is_signed) - 1, lo = is_signed ? -hi - 1 : 0, d = nearbyint(v);
    d = isnan(v) ? 0 : d < lo ? lo : d > hi ? hi : d;
    dtype_from_i64(dtype, p, dtype == DT_I1 ? v != 0 : (int64_t)d);
}
static uint32_t get_bits(int dtype, const uint8_t *p) {
    uint32_t u = 0;
    memcpy(&u, p, dtype_bytes(dtype));
    return u;
}

static float alu(int op, float x, float y) {
    switch (op) {
    case ALU_ADD: return x + y;
    case ALU_SUB: return x - y;
    case ALU_MUL: return x * y;
    case ALU_MAX: return isnan(x) || isnan(y) ? NAN : x > y || (x == y && !signbit(x)) ? x : y;
    case ALU_MIN: return isnan(x) || isnan(y) ? NAN : x < y || (x == y && signbit(x)) ? x : y;
    case ALU_ABS_MAX: return alu(ALU_MAX, fabsf(x), fabsf(y));
    case ALU_ABS_MIN: return alu(ALU_MIN, fabsf(x), fabsf(y));
    case ALU_EQ: return x == y;
    case ALU_NE: return x != y;
    case ALU_LT: return x < y;
    case ALU_LE: return x <= y;
    case ALU_GT: return x > y;
    case ALU_GE: return x >= y;
    case ALU_LAND: return x != 0 && y != 0;
    case ALU_LOR: return x != 0 || y != 0;
    case ALU_LXOR: return (x != 0) != (y != 0);
    case ALU_ABS: return fabsf(x);
    case ALU_SQUARE: return x * x;
    case ALU_RELU: return x > 0 ? x : 0;
    case ALU_RSQRT: return (float)(1.0 / sqrt((double)x));
    case ALU_RECIP: return 1 / x;
    default: return x;
    }
}
static uint32_t alu_bits(int op, uint32_t x, uint32_t y) {
    switch (op) {
    case ALU_AND: return x & y;
    case ALU_OR: return x | y;
    case ALU_XOR: return x ^ y;
    case ALU_NOT: return ~x;
    case ALU_SHL: return y > 31 ? 0 : x << y;
    case ALU_SHR: return y > 31 ? 0 : x >> y;
    default: return x;
    }
}

typedef struct At { // one element
    uint32_t p, i[5];
} At;
static uint8_t *elem(EffOperand o, int dtype, const int32_t stride[5], const At *e) {
    int64_t off = 0;
    for (int a = 1; a < 5; a++)
        off += (int64_t)e->i[a] * stride[a];
    return o.at + (size_t)e->p * PITCH + off * (int64_t)dtype_bytes(dtype);
}

static float number(uint64_t field, EffOperand o, int atype, uint32_t p) {
    if (o.at)
        return get(atype, o.at + (size_t)p * PITCH);
    float f;
    uint32_t u = (uint32_t)field;
    memcpy(&f, &u, 4);
    return addr_space(field) == SPACE_I32 ? (float)(int32_t)u : f;
}

static bool on_bits(const IsaInst *in) {
    return alu_rows[in->op0].kind == 'B' || alu_rows[in->op1].kind == 'B';
}

static bool exact_op(int op) { return op == ALU_BYPASS || (op >= ALU_ADD && op <= ALU_MIN); }
static bool int_number(uint64_t field) { return !field || addr_space(field) == SPACE_I32; }
static bool exact_ints(const IsaInst *in) {
    return exact_op(in->op0) && exact_op(in->op1) &&
           (in->op == ISA_TENSOR_TENSOR ? dtype_is_int(in->ttype)
                                        : in->op == ISA_TENSOR_SCALAR && int_number(in->a) && int_number(in->b));
}
static int64_t alu_int(int op, int64_t x, int64_t y) {
    return op == ALU_MAX ? (x > y ? x : y) : op == ALU_MIN ? (x < y ? x : y) : isa_alu_reg(op, x, y);
}
static void put_int(int dtype, uint8_t *p, int64_t v) { // 32 bits wrap, fewer saturate
    if (dtype_bytes(dtype) == 4)
        dtype_from_i64(dtype, p, v);
    else
        put(dtype, p, (float)(int32_t)(uint32_t)(uint64_t)v);
}

// False: it does not know this one.
static bool reference(const IsaInst *in, Memory *m) {
    EffOperand dst = operand(m, in->dst), src = operand(m, in->src), src1 = operand(m, in->src1);
    EffOperand a = operand(m, in->a), b = operand(m, in->b);
    bool known = in->op == ISA_COPY || in->op == ISA_TENSOR_TENSOR || in->op == ISA_TENSOR_SCALAR ||
                 in->op == ISA_SCALAR_TT || in->op == ISA_RECIPROCAL || in->op == ISA_MEMSET || in->op == ISA_IOTA;
    bool ints = in->engine == ENG_GPSIMD && in->op != ISA_COPY && in->op != ISA_IOTA && in->op != ISA_MEMSET &&
                dtype_is_int(in->dtype) && dtype_is_int(in->stype);
    if (!known || (ints && !exact_ints(in)) || in->op0 == ALU_POW || in->op1 == ALU_POW)
        return false;
    if (on_bits(in) && in->op == ISA_TENSOR_SCALAR &&
        ((in->a && addr_space(in->a) != SPACE_I32) || (in->b && addr_space(in->b) != SPACE_I32)))
        return false;
    At e = {0};
    for (e.p = 0; e.p < isa_count(in->n[0]); e.p++) {
        float fa = number(in->a, a, in->atype, e.p), fb = number(in->b, b, in->atype, e.p);
        uint32_t n = isa_count(in->n[1]) * isa_count(in->n[2]) * isa_count(in->n[3]) * isa_count(in->n[4]);
        for (uint32_t k = 0; k < n; k++) {
            uint32_t rest = k;
            for (int x = 4; x > 0; rest /= isa_count(in->n[x--]))
                e.i[x] = rest % isa_count(in->n[x]);
            uint8_t *d = elem(dst, in->dtype, in->d, &e), *s = src.at ? elem(src, in->stype, in->s, &e) : NULL;
            uint8_t *t = src1.at ? elem(src1, in->ttype, in->t, &e) : NULL;
            bool rev0 = in->flags & ISA_FLAG_REVERSE0, rev1 = in->flags & ISA_FLAG_REVERSE1;
            if (in->op == ISA_MEMSET) {
                memcpy(d, &in->imm, dtype_bytes(in->dtype));
            } else if (in->op == ISA_IOTA) {
                int64_t v = in->imm + (int64_t)e.p * in->t[0];
                for (int x = 1; x < 5; x++)
                    v += (int64_t)e.i[x] * in->t[x];
                if (dtype_bytes(in->dtype) == 4 && dtype_is_int(in->dtype))
                    dtype_from_i64(in->dtype, d, v);
                else
                    put(in->dtype, d, (float)v);
            } else if (in->op == ISA_COPY && in->dtype == in->stype) {
                memcpy(d, s, dtype_bytes(in->dtype));
            } else if (ints) {
                int64_t x = dtype_to_i64(in->stype, s);
                int64_t y = t ? dtype_to_i64(in->ttype, t) : (int32_t)(uint32_t)in->a, z = (int32_t)(uint32_t)in->b;
                x = in->op0 ? alu_int(in->op0, rev0 ? y : x, rev0 ? x : y) : x;
                x = in->op1 ? alu_int(in->op1, rev1 ? z : x, rev1 ? x : z) : x;
                put_int(in->dtype, d, x);
            } else if (on_bits(in)) {
                uint32_t x = get_bits(in->stype, s), y = in->op == ISA_TENSOR_TENSOR ? get_bits(in->ttype, t) : (uint32_t)in->a;
                x = alu_bits(in->op0, rev0 ? y : x, rev0 ? x : y), y = (uint32_t)in->b;
                x = alu_bits(in->op1, rev1 && in->op1 ? y : x, rev1 ? x : y);
                memcpy(d, &x, dtype_bytes(in->dtype));
            } else {
                float x = get(in->stype, s), y = in->op == ISA_TENSOR_TENSOR ? get(in->ttype, t) : fa;
                if (in->op == ISA_RECIPROCAL)
                    x = 1 / x;
                else if (in->op0)
                    x = alu(in->op0, rev0 ? y : x, rev0 ? x : y);
                y = in->op == ISA_SCALAR_TT ? get(in->ttype, t) : fb;
                if (in->op1)
                    x = alu(in->op1, rev1 ? y : x, rev1 ? x : y);
                put(in->dtype, d, x);
            }
        }
    }
    return true;
}

// Equal but for the payload of NaNs that dst holds.
static bool same_values(const IsaInst *in, const Memory *x, const Memory *y) {
    if (!memcmp(x->at, y->at, 2 * SPACE_BYTES))
        return true;
    size_t size = dtype_bytes(in->dtype);
    for (size_t i = 0; i < 2 * SPACE_BYTES; i += size)
        if (memcmp(x->at + i, y->at + i, size) &&
            !(dtype_is_float(in->dtype) && isnan(dtype_to_f64(in->dtype, x->at + i)) &&
              isnan(dtype_to_f64(in->dtype, y->at + i))))
            return false;
    return true;
}

static void print_inst(const IsaInst *in, uint64_t seed, const char *why) {
    Ctx ctx = {0};
    Arena a;
    arena_init(&a, &ctx);
    Buf text = {.arena = &a};
    isa_print(in, &text);
    printf("seed %llu: %s: %.*s\n", (unsigned long long)seed, why, (int)text.n, (const char *)text.at);
    arena_fini(&a);
}

static bool check_one(uint64_t seed, Pool *pool, Memory m[3], uint32_t seen[ISA_OP_COUNT], uint32_t *referred) {
    uint64_t s = seed;
    IsaInst in;
    bool apart = rng_below(&s, 3) != 0;
    while (!random_inst(&s, &in, apart))
        ;
    seen[in.op]++;
    fill_memory(&s, &m[0]);
    memcpy(m[1].at, m[0].at, 2 * SPACE_BYTES), m[1].state = m[0].state;
    char why[2][200] = {"", ""};
    otrn_status first = run(&in, &m[1], NULL, HOST_PORTABLE, why[0]);
    for (int level = 0; level <= (int)host_best(); level++) {
        memcpy(m[2].at, m[0].at, 2 * SPACE_BYTES), m[2].state = m[0].state;
        otrn_status status = run(&in, &m[2], pool, (HostLevel)level, why[1]);
        if (status != first || strcmp(why[0], why[1]) || memcmp(m[1].at, m[2].at, 2 * SPACE_BYTES) ||
            memcmp(&m[1].state, &m[2].state, sizeof m[1].state)) {
            print_inst(&in, seed, "bits differ between levels or thread counts");
            return false;
        }
    }
    if (apart && first == OTRN_OK && in.n[0] % 5 && reference(&in, &m[0])) {
        ++*referred;
        if (!same_values(&in, &m[0], &m[1])) {
            print_inst(&in, seed, "not what the reference gives");
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int cases = argc > 2 ? atoi(argv[2]) : argc > 1 ? 1 : 1500, bad = 0;
    Pool *pool = pool_make(3);
    Memory *m = calloc(3, sizeof *m);
    uint32_t seen[ISA_OP_COUNT] = {0}, referred = 0;
    for (int i = 0; i < 3; i++)
        m[i].at = malloc(2 * SPACE_BYTES);
    for (int i = 0; i < cases && bad < 10; i++)
        bad += !check_one(seed + (uint64_t)i * 1000003, pool, m, seen, &referred);
    expect(!bad, "random instructions", "see above");
    printf("%u of %d held against the reference\n", referred, cases);
    for (int op = 0; cases >= 1500 && op < ISA_OP_COUNT; op++)
        if (by_itself(op) && seen[op] < 3)
            expect(false, isa_rows[op].name, "the generator hardly makes it");
    for (int i = 0; i < 3; i++)
        free(m[i].at);
    free(m);
    pool_free(pool);
    return failures != 0;
}
