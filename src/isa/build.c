// SPDX-License-Identifier: Apache-2.0
// build.c — the functions of build.h.
#include "isa/build.h"

#include <assert.h>

IsaView isa_view(uint64_t addr, int dtype, uint32_t parts, int rank, const uint32_t *n, const int32_t *stride) {
    IsaView v = {.addr = addr, .dtype = (uint8_t)dtype, .rank = (uint8_t)rank, .parts = parts};
    assert(rank <= 4);
    int64_t dense = 1;
    for (int i = rank; i-- > 0;) {
        v.n[i] = n[i];
        v.stride[i] = stride ? stride[i] : n[i] > 1 ? (int32_t)dense : 0;
        dense *= n[i];
    }
    if (addr_space(addr) == SPACE_HBM)
        v.part_stride = (int32_t)dense;
    return v;
}

IsaView isa_column(uint64_t addr, int dtype, uint32_t parts) {
    return (IsaView){.addr = addr, .dtype = (uint8_t)dtype, .parts = parts};
}

IsaView isa_view_term(IsaView v, int reg, int32_t bytes) {
    int at = v.reg[0] ? 1 : 0;
    assert(!v.reg[at]);
    v.reg[at] = (uint8_t)(reg + 1);
    v.mul[at] = bytes;
    return v;
}

IsaScalar isa_f32(float v) { return (IsaScalar){.v = scalar_f32(v)}; }
IsaScalar isa_i32(int32_t v) { return (IsaScalar){.v = scalar_i32(v)}; }
IsaScalar isa_none(void) { return (IsaScalar){0}; }
IsaScalar isa_per_part(IsaView column) { return (IsaScalar){column.addr, column.dtype}; }

IsaInst isa_make(int op, int engine) {
    assert(isa_row_engine(op, engine));
    return (IsaInst){.op = (uint8_t)op, .engine = (uint8_t)engine, .wait_sem = {SEM_NONE, SEM_NONE}};
}

static void put_dst(IsaInst *in, const IsaView *v) {
    in->dst = v->addr;
    in->dtype = v->dtype;
    memcpy(in->reg_d, v->reg, sizeof v->reg);
    memcpy(in->mul_d, v->mul, sizeof v->mul);
}

static void put_src(IsaInst *in, const IsaView *v) {
    in->src = v->addr;
    in->stype = v->dtype;
    memcpy(in->reg_s, v->reg, sizeof v->reg);
    memcpy(in->mul_s, v->mul, sizeof v->mul);
}

static void put_src1(IsaInst *in, const IsaView *v) {
    in->src1 = v->addr;
    in->ttype = v->dtype;
    memcpy(in->reg_t, v->reg, sizeof v->reg);
    memcpy(in->mul_t, v->mul, sizeof v->mul);
}

IsaInst isa_dma(int engine, int queue, IsaView dst, IsaView src) {
    IsaInst in = isa_make(ISA_DMA, engine);
    assert(dst.parts == src.parts && dst.rank == src.rank && dst.rank <= 3);
    put_dst(&in, &dst);
    put_src(&in, &src);
    in.queue = (uint8_t)queue;
    if (dst.dtype == src.dtype)
        in.dtype = 0;
    in.n[0] = dst.parts;
    in.d[0] = addr_space(dst.addr) == SPACE_HBM ? dst.part_stride : 0;
    in.s[0] = addr_space(src.addr) == SPACE_HBM ? src.part_stride : 0;
    for (int i = 0; i < dst.rank; i++) {
        assert(dst.n[i] == src.n[i]);
        in.n[1 + i] = dst.n[i];
        in.d[1 + i] = dst.stride[i];
        in.s[1 + i] = src.stride[i];
    }
    return in;
}

IsaInst isa_ldweights(IsaView src) {
    IsaInst in = isa_make(ISA_LDWEIGHTS, ENG_TENSOR);
    assert(src.rank <= 1);
    put_src(&in, &src);
    in.n[0] = src.parts;
    in.n[1] = src.rank ? src.n[0] : 1;
    in.s[1] = src.stride[0];
    return in;
}

IsaInst isa_matmul(IsaView dst, IsaView src, int flags) {
    IsaInst in = isa_make(ISA_MATMUL, ENG_TENSOR);
    assert(src.rank == dst.rank && src.rank <= 2);
    put_dst(&in, &dst);
    put_src(&in, &src);
    if (dst.dtype == DT_F32)
        in.dtype = 0;
    in.flags = (uint8_t)flags;
    in.n[0] = src.parts;
    in.n[2] = dst.parts;
    in.n[1] = 1;
    for (int i = 0; i < src.rank; i++) { // the last axis is n1, one before it n3
        int axis = i == src.rank - 1 ? 1 : 3;
        assert(src.n[i] == dst.n[i]);
        in.n[axis] = src.n[i];
        in.s[axis] = src.stride[i];
        in.d[axis] = dst.stride[i];
    }
    return in;
}

IsaInst isa_transpose(int engine, IsaView dst, IsaView src) {
    IsaInst in = isa_make(ISA_TRANSPOSE, engine);
    assert(src.rank == 1 && dst.rank == 1);
    put_dst(&in, &dst);
    put_src(&in, &src);
    in.n[0] = src.parts;
    in.n[1] = src.n[0];
    in.d[1] = dst.stride[0];
    in.s[1] = src.stride[0];
    return in;
}

// Strides of an operand over the instruction's counts; an operand of one element repeats.
static void put_free(int32_t stride[5], const IsaView *v, const IsaView *model) {
    assert(v->rank == model->rank || v->rank == 0);
    for (int i = 0; i < v->rank; i++) {
        assert(v->n[i] == model->n[i] || v->n[i] <= 1);
        stride[1 + i] = v->n[i] == model->n[i] ? v->stride[i] : 0;
    }
}

IsaInst isa_memset(int engine, IsaView dst, uint32_t bits) {
    IsaInst in = isa_make(ISA_MEMSET, engine);
    put_dst(&in, &dst);
    in.imm = (int32_t)bits;
    in.n[0] = dst.parts;
    in.n[1] = 1;
    for (int i = 0; i < dst.rank; i++)
        in.n[1 + i] = dst.n[i];
    put_free(in.d, &dst, &dst);
    return in;
}

IsaInst isa_elementwise(int op, int engine, IsaView dst, IsaView src, const IsaView *src1) {
    IsaInst in = isa_make(op, engine);
    const IsaView *model = op == ISA_REDUCE || op == ISA_PART_REDUCE ? &src : &dst;
    put_dst(&in, &dst);
    put_src(&in, &src);
    in.n[0] = model->parts;
    in.n[1] = 1;
    for (int i = 0; i < model->rank; i++)
        in.n[1 + i] = model->n[i];
    put_free(in.d, &dst, model);
    put_free(in.s, &src, model);
    if (src1) {
        put_src1(&in, src1);
        put_free(in.t, src1, model);
    }
    return in;
}

IsaInst isa_tensor_copy(int engine, IsaView dst, IsaView src) {
    return isa_elementwise(ISA_COPY, engine, dst, src, NULL);
}

IsaInst isa_tensor_tensor(int engine, IsaView dst, IsaView src, int op0, IsaView src1) {
    IsaInst in = isa_elementwise(ISA_TENSOR_TENSOR, engine, dst, src, &src1);
    in.op0 = (uint8_t)op0;
    return in;
}

static void put_scalars(IsaInst *in, IsaScalar a, IsaScalar b) {
    assert(!a.atype || !b.atype || a.atype == b.atype);
    in->a = a.v;
    in->b = b.v;
    in->atype = a.atype ? a.atype : b.atype;
}

IsaInst isa_tensor_scalar(int engine, IsaView dst, IsaView src, int op0, IsaScalar a, int op1, IsaScalar b) {
    IsaInst in = isa_elementwise(ISA_TENSOR_SCALAR, engine, dst, src, NULL);
    in.op0 = (uint8_t)op0;
    in.op1 = (uint8_t)op1;
    put_scalars(&in, a, b);
    return in;
}

IsaInst isa_reduce(IsaView dst, IsaView src, int op0, int flags) {
    IsaInst in = isa_elementwise(ISA_REDUCE, ENG_VECTOR, dst, src, NULL);
    in.op0 = (uint8_t)op0;
    in.flags = (uint8_t)flags;
    return in;
}

IsaInst isa_activation(IsaView dst, IsaView src, int fn, IsaScalar a, IsaScalar b, const IsaView *res, int rcmd) {
    IsaInst in = isa_elementwise(ISA_ACTIVATE, ENG_SCALAR, dst, src, NULL);
    in.fn = (uint8_t)fn;
    put_scalars(&in, a, b);
    in.rcmd = (uint8_t)rcmd;
    if (res) {
        in.res = res->addr;
        in.rtype = res->dtype;
        in.rop = ALU_ADD;
    }
    return in;
}

IsaInst isa_loop(int reg, int32_t first, int32_t limit, int32_t step) {
    IsaInst in = isa_make(ISA_LOOP, ENG_SYNC);
    in.reg = (uint8_t)reg;
    in.value = first;
    in.limit = limit;
    in.step = step;
    return in;
}

IsaInst isa_endloop(uint32_t loop) {
    IsaInst in = isa_make(ISA_ENDLOOP, ENG_SYNC);
    in.imm = (int32_t)loop;
    return in;
}

void isa_pack(IsaInst *in) {
    int free = 1;
    if (in->n[0] <= 1)
        in->n[0] = 1, in->d[0] = in->s[0] = in->t[0] = 0;
    if (!isa_row_has(in->op, ISA_F_n3))
        return;
    if (in->op == ISA_MATMUL) { // its axes have names
        if (in->n[3] <= 1)
            in->n[3] = 0, in->d[3] = in->s[3] = 0;
        return;
    }
    for (int i = 1; i < 5; i++) {
        uint32_t n = in->n[i];
        int32_t d = in->d[i], s = in->s[i], t = in->t[i];
        in->n[i] = 0, in->d[i] = in->s[i] = in->t[i] = 0;
        if (n > 1)
            in->n[free] = n, in->d[free] = d, in->s[free] = s, in->t[free++] = t;
    }
}

void isa_wait(IsaInst *in, int sem, uint32_t value) {
    int w = in->wait_sem[0] == SEM_NONE ? 0 : 1;
    assert(in->wait_sem[w] == SEM_NONE);
    in->wait_sem[w] = (uint8_t)sem;
    in->wait_val[w] = value;
}

void isa_wait_back(IsaInst *in, int sem, uint32_t back) { isa_wait(in, sem | SEM_BACK, back); }
