// SPDX-License-Identifier: Apache-2.0
// access.c — the memory an instruction touches, operand by operand.
//
// Most rows follow one scheme: dst, src and src1 are patterns over the counts n0…n4 with their own
// strides, a and b are one value per partition, res is one value per partition. Rows that count in
// another way (a transpose, eight results, an index list) change that in special().
#include "isa/check.h"

#include "base/draw.h"

static IsaAccess access_of(const IsaInst *in, int field, uint64_t addr, int dtype) {
    IsaAccess a = {.field = (uint8_t)field, .dtype = (uint8_t)dtype, .addr = addr, .by_engine = true,
                   .parts = isa_count(in->n[0])};
    for (int i = 0; i < ISA_AXES; i++)
        a.n[i] = 1;
    return a;
}

static IsaAccess tensor(const IsaInst *in, int field) {
    const bool is_dst = field == ISA_F_dst, is_src = field == ISA_F_src;
    IsaAccess a = access_of(in, field, is_dst ? in->dst : is_src ? in->src : in->src1,
                            is_dst ? in->dtype : is_src ? in->stype : in->ttype);
    a.is_write = is_dst;
    a.reg = is_dst ? in->reg_d : is_src ? in->reg_s : in->reg_t;
    a.mul = is_dst ? in->mul_d : is_src ? in->mul_s : in->mul_t;
    if (!a.reg[0])
        a.reg = NULL;
    const int32_t *stride = is_dst ? in->d : is_src ? in->s : in->t;
    for (int i = 0; i < 5; i++) {
        a.n[i] = isa_count(in->n[i]);
        a.stride[i] = stride[i];
    }
    return a;
}

// One axis of n elements, the others gone.
static void only_axis(IsaAccess *a, uint32_t n, int32_t stride) {
    for (int i = 1; i < ISA_AXES; i++)
        a->n[i] = 1, a->stride[i] = 0;
    a->n[1] = n ? n : 1;
    a->stride[1] = stride;
}

static uint32_t ceil_div(uint32_t n, uint32_t by) { return n / by + (n % by != 0); }

static bool in_hbm(uint64_t addr) { return addr_space(addr) == SPACE_HBM; }

// DMA: its own partition rule, dst of the type of src unless another is given; the rows of an
// indirect one lie anywhere below limit.
static void special_dma(const IsaInst *in, IsaAccess *a) {
    a->by_engine = false;
    if (a->field == ISA_F_dst && !a->dtype)
        a->dtype = in->stype;
    if (in->op != ISA_DMA_INDIRECT)
        return;
    if (a->field == ISA_F_src1)
        only_axis(a, 1, 0);
    else if (in_hbm(a->addr) && (a->field == ISA_F_src || !in_hbm(in->src)))
        a->n[0] = in->limit > 0 ? (uint32_t)in->limit : 1;
}

// Scales of MX data: a byte per group of 8 partitions, in the first rows of each group of 32 (or, to
// hold four such tensors, 4, 8 or 12 rows below).
static void mx_scales(const IsaInst *in, IsaAccess *a, uint32_t columns) {
    uint32_t n0 = isa_count(in->n[0]);
    a->dtype = DT_UI8;
    a->by_engine = false;
    a->parts = n0 > 28 ? n0 - 28 : 1;
    only_axis(a, columns, 1);
}

// MX data: a column is four values, strides count columns.
static void mx_data(IsaAccess *a) {
    a->stride[1] = a->stride[1] > INT32_MAX / 4 || a->stride[1] < INT32_MIN / 4 ? INT32_MAX : a->stride[1] * 4;
    a->n[5] = 4;
    a->stride[5] = 1;
}

static void special_matmul(const IsaInst *in, IsaAccess *a) {
    bool mx = in->op == ISA_MATMUL_MX;
    if (a->field == ISA_F_src1) {
        mx_scales(in, a, isa_count(in->n[1]));
        return;
    }
    uint32_t n1 = isa_count(in->n[1]), n3 = mx ? 1 : isa_count(in->n[3]);
    const int32_t *stride = a->is_write ? in->d : in->s;
    only_axis(a, n1, stride[1]);
    a->n[2] = n3;
    a->stride[2] = mx ? 0 : stride[3];
    if (a->is_write) {
        a->parts = isa_count(in->n[2]);
        if (!a->dtype)
            a->dtype = DT_F32;
    } else if (mx) {
        mx_data(a);
    } else if (in->flags & ISA_FLAG_DOUBLE_ROW) {
        a->n[5] = 2;
        a->stride[5] = in->step;
    }
}

static void special_weights(const IsaInst *in, IsaAccess *a) {
    if (a->field == ISA_F_src1) {
        mx_scales(in, a, isa_count(in->n[1]));
    } else if (in->op == ISA_LDWEIGHTS_MX) {
        mx_data(a);
    } else if (in->flags & ISA_FLAG_DOUBLE_ROW) {
        a->n[5] = 2;
        a->stride[5] = in->step;
    }
}

// Whole array: dst has the counts changed over. Vector: 32 x 32 blocks stay where they are, a single
// smaller block changes its counts too.
static void special_transpose(const IsaInst *in, IsaAccess *a) {
    uint32_t n0 = isa_count(in->n[0]), n1 = isa_count(in->n[1]);
    if (!a->is_write || (in->engine == ENG_VECTOR && (n0 > 32 || n1 > 32)))
        return;
    a->parts = n1;
    only_axis(a, n0, in->d[1]);
}

static void special(const IsaInst *in, IsaAccess *a) {
    uint32_t n1 = isa_count(in->n[1]);
    switch (in->op) {
    case ISA_REG_LOAD:
    case ISA_REG_STORE:
        a->parts = 1;
        a->by_engine = false;
        break;
    case ISA_DMA:
    case ISA_DMA_INDIRECT:
    case ISA_DMA_TRANSPOSE:
    case ISA_SENDRECV:
        special_dma(in, a);
        break;
    case ISA_MATMUL:
    case ISA_MATMUL_MX:
        special_matmul(in, a);
        break;
    case ISA_LDWEIGHTS:
    case ISA_LDWEIGHTS_MX:
        special_weights(in, a);
        break;
    case ISA_TRANSPOSE:
        special_transpose(in, a);
        break;
    case ISA_PART_REDUCE:
        if (a->is_write)
            a->parts = 1;
        break;
    case ISA_BN_STATS:
    case ISA_BN_AGGR:
    case ISA_MAX8:
    case ISA_FIND8:
        if (a->is_write)
            only_axis(a, in->op == ISA_BN_STATS ? 6 : in->op == ISA_BN_AGGR ? 2 : 8, in->d[1]);
        else if (a->field == ISA_F_src1)
            only_axis(a, 8, in->t[1]);
        break;
    case ISA_MATCH8:
        if (a->field == ISA_F_src1)
            only_axis(a, 8, in->t[1]);
        else if (a->field == ISA_F_res)
            only_axis(a, 8, 1);
        break;
    case ISA_RNG_AT:
        if (a->field == ISA_F_src)
            only_axis(a, DRAW_WORDS, 1);
        break;
    case ISA_DROPOUT_AT:
        if (a->field == ISA_F_src1) // t is the pattern of the numbers
            only_axis(a, DRAW_WORDS, 1), a->stride[0] = 0;
        break;
    case ISA_QUANT_MX:
        if (a->field == ISA_F_res)
            mx_scales(in, a, n1 / 4);
        break;
    case ISA_LOCAL_GATHER:
        if (a->field == ISA_F_src)
            only_axis(a, (uint32_t)in->imm, in->s[1]);
        else if (a->field == ISA_F_src1) // 16 partitions hold one list between them
            only_axis(a, ceil_div(n1, 16), in->t[1]);
        break;
    case ISA_N_GATHER:
        if (a->field == ISA_F_src)
            only_axis(a, (uint32_t)in->imm, in->s[1]);
        break;
    case ISA_SEQ_BOUNDS:
        a->parts = 1;
        if (a->is_write)
            a->n[2] = 2;
        break;
    case ISA_NONZERO:
        if (a->is_write)
            only_axis(a, n1 + 1, in->d[1]);
        break;
    case ISA_TOPK: // element g at partition g mod 16, column g / 16
        if (a->field == ISA_F_src)
            only_axis(a, ceil_div(n1, 16), in->s[1]);
        else
            only_axis(a, ceil_div((uint32_t)in->imm, 16), a->is_write && a->field == ISA_F_dst ? in->d[1] : 1);
        break;
    default:
        break;
    }
}

// dst is also read: by a matmul that accumulates, a DMA that combines, a copy that keeps places.
static bool reads_dst(const IsaInst *in) {
    switch (in->op) {
    case ISA_MATMUL:
    case ISA_MATMUL_MX:
        return in->flags & ISA_FLAG_ACCUMULATE;
    case ISA_DMA:
    case ISA_DMA_INDIRECT:
        return in->op0 != ALU_BYPASS;
    default:
        return false;
    }
}

static bool has(IsaMask mask, int f) { return mask >> f & 1; }

int isa_accesses(const IsaInst *in, IsaMask mask, IsaAccess out[ISA_ACCESS_MAX]) {
    int n = 0;
    static const uint8_t tensors[] = {ISA_F_src, ISA_F_src1};
    for (int i = 0; i < 2; i++) {
        if (!has(mask, tensors[i]) || (in->op == ISA_COPY_PRED && tensors[i] == ISA_F_src && !in->src))
            continue;
        out[n] = tensor(in, tensors[i]);
        special(in, &out[n++]);
    }
    static const uint8_t scalars[] = {ISA_F_a, ISA_F_b};
    for (int i = 0; i < 2; i++) {
        uint64_t addr = i ? in->b : in->a;
        if (has(mask, scalars[i]) && addr && addr_space(addr) < SPACE_COUNT)
            out[n++] = access_of(in, scalars[i], addr, in->atype);
    }
    if (has(mask, ISA_F_dst)) {
        IsaAccess dst = tensor(in, ISA_F_dst);
        special(in, &dst);
        if (reads_dst(in)) {
            out[n] = dst;
            out[n++].is_write = false;
        }
        out[n++] = dst;
    }
    if (has(mask, ISA_F_res) && in->res) {
        out[n] = access_of(in, ISA_F_res, in->res, in->rtype);
        out[n].is_write = true;
        special(in, &out[n++]);
    }
    return n;
}

void isa_access_extent(const IsaAccess *a, __int128 *lo, __int128 *hi) {
    __int128 low = 0, high = 0;
    for (int i = in_hbm(a->addr) ? 0 : 1; i < ISA_AXES; i++) {
        __int128 reach = (__int128)(a->n[i] - 1) * a->stride[i];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    int64_t size = (int64_t)dtype_bytes(a->dtype);
    *lo = low * size;
    *hi = (high + 1) * size;
}

// --- of shapes -----------------------------------------------------------------------------------

IsaInst shape_sample(const IsaShape *s) {
    IsaInst in = s->in;
    for (int i = 0; i < SHAPE_ADDRS; i++)
        if (s->varies >> (SHAPE_WAITS + i) & 1 && !shape_addr(&in, i)) {
            const uint64_t some = addr_hbm(0, 1);
            memcpy((uint8_t *)&in + shape_addr_at[i], &some, 8);
        }
    return in;
}

static int64_t clamp(__int128 x) {
    const int64_t most = (int64_t)1 << 62;
    return x > most ? most : x < -most ? -most : (int64_t)x;
}

static bool is_dense(const IsaAccess *a) {
    int64_t run = 1;
    for (int i = ISA_AXES - 1; i >= 1; i--)
        if (a->n[i] > 1) {
            if (a->stride[i] != run)
                return false;
            if (__builtin_mul_overflow(run, (int64_t)a->n[i], &run))
                return false;
        }
    return true;
}

void shape_accesses(const IsaShape *s, ShapeAccesses *out) {
    IsaInst in = shape_sample(s);
    IsaAccess access[ISA_ACCESS_MAX];
    out->n = (uint8_t)isa_accesses(&in, isa_row_mask(in.op), access);
    for (int i = 0; i < out->n; i++) {
        const IsaAccess *a = &access[i];
        uint8_t addr = 0;
        while (shape_addr_fields[addr] != a->field)
            addr++;
        __int128 lo, hi;
        isa_access_extent(a, &lo, &hi);
        out->at[i] = (ShapeAccess){.addr = addr, .at = s->at[SHAPE_WAITS + addr], .part = (uint8_t)addr_part(a->addr), .space = (uint8_t)addr_space(a->addr), .is_write = a->is_write,
                                   .by_register = a->reg != NULL, .dense = is_dense(a), .parts = a->parts,
                                   .lo = clamp(lo), .hi = clamp(hi)};
    }
}

ShapeAccesses *shapes_accesses(Arena *a, const IsaShapes *s) {
    ShapeAccesses *out = ARENA_NEWN(a, ShapeAccesses, (size_t)s->n + 1);
    for (uint32_t i = 0; i < s->n; i++)
        shape_accesses(&s->at[i], &out[i]);
    return out;
}
