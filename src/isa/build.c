// SPDX-License-Identifier: Apache-2.0
// build.c — the functions of build.h.
#include "isa/build.h"

#include <assert.h>

IsaScalar isa_f32(float v) { return (IsaScalar){.v = scalar_f32(v)}; }
IsaScalar isa_i32(int32_t v) { return (IsaScalar){.v = scalar_i32(v)}; }
IsaScalar isa_none(void) { return (IsaScalar){0}; }
IsaScalar isa_per_part(View column) { return (IsaScalar){column.mem.addr, column.dtype}; }

IsaInst isa_make(int op, int engine) {
    assert(isa_row_engine(op, engine));
    return (IsaInst){.op = (uint8_t)op, .engine = (uint8_t)engine, .wait_sem = {SEM_NONE, SEM_NONE}};
}

IsaInst isa_wait_before(const IsaInst *in) {
    bool stream = isa_seq(in) >= ENG_COUNT;
    IsaInst w = isa_make(stream ? ISA_STREAM_WAIT : ISA_WAIT, in->engine);
    w.queue = stream ? in->queue : 0;
    return w;
}

static void put_dst(IsaInst *in, const View *v) {
    in->dst = v->mem.addr;
    in->dtype = v->dtype;
    memcpy(in->reg_d, v->reg, sizeof v->reg);
    memcpy(in->mul_d, v->mul, sizeof v->mul);
}

static void put_src(IsaInst *in, const View *v) {
    in->src = v->mem.addr;
    in->stype = v->dtype;
    memcpy(in->reg_s, v->reg, sizeof v->reg);
    memcpy(in->mul_s, v->mul, sizeof v->mul);
}

static void put_src1(IsaInst *in, const View *v) {
    in->src1 = v->mem.addr;
    in->ttype = v->dtype;
    memcpy(in->reg_t, v->reg, sizeof v->reg);
    memcpy(in->mul_t, v->mul, sizeof v->mul);
}

static uint32_t count_of(int64_t n) {
    assert(n >= 0);
    assert(n <= UINT32_MAX);
    return (uint32_t)n;
}

static int32_t stride_of(int64_t stride) {
    assert(stride >= INT32_MIN);
    assert(stride <= INT32_MAX);
    return (int32_t)stride;
}

// Counts of the view the instruction walks along.
static void put_counts(IsaInst *in, const View *model) {
    assert(model->rank <= 5);
    for (int i = 0; i < model->rank; i++)
        in->n[i] = count_of(model->at[i].n);
}

// Strides of an operand over the instruction's counts; an operand of one element repeats.
static void put_strides(int32_t stride[5], const View *v, const View *model) {
    assert(v->rank == model->rank || v->rank == 1);
    for (int i = 0; i < v->rank; i++) {
        assert(v->at[i].n == model->at[i].n || v->at[i].n <= 1);
        stride[i] = v->at[i].n == model->at[i].n ? stride_of(v->at[i].stride) : 0;
    }
}

IsaInst isa_dma(int engine, int queue, View dst, View src) {
    IsaInst in = isa_make(ISA_DMA, engine);
    assert(dst.rank == src.rank);
    put_dst(&in, &dst);
    put_src(&in, &src);
    in.queue = (uint8_t)queue;
    if (dst.dtype == src.dtype)
        in.dtype = 0;
    put_counts(&in, &dst);
    put_strides(in.d, &dst, &dst);
    put_strides(in.s, &src, &dst);
    isa_pack(&in);
    assert(in.n[4] <= 1); // a transfer has four axes
    return in;
}

IsaInst isa_ldweights(View src) {
    IsaInst in = isa_make(ISA_LDWEIGHTS, ENG_TENSOR);
    assert(src.rank == 2);
    put_src(&in, &src);
    put_counts(&in, &src);
    in.s[1] = stride_of(src.at[1].stride);
    return in;
}

// Columns are the last axis, n1; one before it is n3. n2: what was loaded has as many columns.
IsaInst isa_matmul(View dst, View src, int flags) {
    IsaInst in = isa_make(ISA_MATMUL, ENG_TENSOR);
    assert(src.rank == dst.rank);
    assert(src.rank == 2 || src.rank == 3);
    put_dst(&in, &dst);
    put_src(&in, &src);
    if (dst.dtype == DT_F32)
        in.dtype = 0;
    in.flags = (uint8_t)flags;
    in.n[0] = count_of(src.at[0].n);
    in.n[2] = count_of(dst.at[0].n);
    for (int i = 1; i < src.rank; i++) {
        int axis = i == src.rank - 1 ? 1 : 3;
        assert(src.at[i].n == dst.at[i].n);
        in.n[axis] = count_of(src.at[i].n);
        in.s[axis] = stride_of(src.at[i].stride);
        in.d[axis] = stride_of(dst.at[i].stride);
    }
    isa_pack(&in);
    return in;
}

IsaInst isa_transpose(int engine, View dst, View src) {
    IsaInst in = isa_make(ISA_TRANSPOSE, engine);
    assert(src.rank == 2);
    assert(dst.rank == 2);
    assert(dst.at[0].n == src.at[1].n);
    assert(dst.at[1].n == src.at[0].n);
    put_dst(&in, &dst);
    put_src(&in, &src);
    put_counts(&in, &src);
    in.d[1] = stride_of(dst.at[1].stride);
    in.s[1] = stride_of(src.at[1].stride);
    return in;
}

IsaInst isa_memset(int engine, View dst, uint32_t bits) {
    IsaInst in = isa_make(ISA_MEMSET, engine);
    put_dst(&in, &dst);
    in.imm = (int32_t)bits;
    put_counts(&in, &dst);
    put_strides(in.d, &dst, &dst);
    isa_pack(&in);
    return in;
}

IsaInst isa_elementwise(int op, int engine, View dst, View src, const View *src1) {
    IsaInst in = isa_make(op, engine);
    const View *model = op == ISA_REDUCE || op == ISA_PART_REDUCE ? &src : &dst;
    put_dst(&in, &dst);
    put_src(&in, &src);
    put_counts(&in, model);
    put_strides(in.d, &dst, model);
    put_strides(in.s, &src, model);
    if (src1) {
        put_src1(&in, src1);
        put_strides(in.t, src1, model);
    }
    isa_pack(&in);
    return in;
}

IsaInst isa_tensor_copy(int engine, View dst, View src) {
    return isa_elementwise(ISA_COPY, engine, dst, src, NULL);
}

IsaInst isa_tensor_tensor(int engine, View dst, View src, int op0, View src1) {
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

IsaInst isa_tensor_scalar(int engine, View dst, View src, int op0, IsaScalar a, int op1, IsaScalar b) {
    IsaInst in = isa_elementwise(ISA_TENSOR_SCALAR, engine, dst, src, NULL);
    in.op0 = (uint8_t)op0;
    in.op1 = (uint8_t)op1;
    put_scalars(&in, a, b);
    return in;
}

IsaInst isa_reduce(View dst, View src, int op0, int flags) {
    IsaInst in = isa_elementwise(ISA_REDUCE, ENG_VECTOR, dst, src, NULL);
    in.op0 = (uint8_t)op0;
    in.flags = (uint8_t)flags;
    return in;
}

IsaInst isa_activation(View dst, View src, int fn, IsaScalar a, IsaScalar b, const View *res, int rcmd) {
    IsaInst in = isa_elementwise(ISA_ACTIVATE, ENG_SCALAR, dst, src, NULL);
    in.fn = (uint8_t)fn;
    put_scalars(&in, a, b);
    in.rcmd = (uint8_t)rcmd;
    if (res) {
        in.res = res->mem.addr;
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
    if (in->n[0] <= 1 && in->op != ISA_DMA_INDIRECT) // there the stride of axis 0 is between the rows that are named
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
