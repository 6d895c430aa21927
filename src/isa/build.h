// SPDX-License-Identifier: Apache-2.0
// build.h — instructions from C, for compilers: small functions that fill an IsaInst from views.
//
// Operands are views (view.h), so a caller says shapes once:
//
//   View w = VIEW(mem, DT_BF16, {128}, {128, 1});
//   isa_ldweights(w);   isa_matmul(p, x, ISA_FLAG_ACCUMULATE);   isa_tensor_scalar(ENG_VECTOR, y, x, ALU_MUL, isa_f32(2), …)
//
// Results have no waits; isa_wait adds one, artifact_sync all that are needed. What does not fit together is an
// assertion: artifact_verify tells the rest.
#ifndef OTRN_ISA_BUILD_H
#define OTRN_ISA_BUILD_H

#include "isa/view.h"

typedef struct IsaScalar { // a number, or a column
    uint64_t v;
    uint8_t atype;
} IsaScalar;
IsaScalar isa_f32(float v);
IsaScalar isa_i32(int32_t v);
IsaScalar isa_per_part(View column);
IsaScalar isa_none(void);

IsaInst isa_make(int op, int engine); // no operands, no waits
IsaInst isa_wait_before(const IsaInst *in); // on its sequencer, for waits that it has no room for
IsaInst isa_dma(int engine, int queue, View dst, View src);
IsaInst isa_ldweights(View src);
IsaInst isa_matmul(View dst, View src, int flags);
IsaInst isa_transpose(int engine, View dst, View src);
IsaInst isa_memset(int engine, View dst, uint32_t bits);
// dst, src and src1 over dst's counts (over src's for a reduction): copy, reciprocal, tensor_tensor, tensor_reduce,
// scans, selects …; further fields are set by the caller. src1 may be NULL.
IsaInst isa_elementwise(int op, int engine, View dst, View src, const View *src1);
IsaInst isa_tensor_copy(int engine, View dst, View src);
IsaInst isa_tensor_tensor(int engine, View dst, View src, int op0, View src1);
IsaInst isa_tensor_scalar(int engine, View dst, View src, int op0, IsaScalar a, int op1, IsaScalar b);
IsaInst isa_reduce(View dst, View src, int op0, int flags); // dst's axes of stride 0 are those reduced
// fn(src * a + b); res (may be NULL) takes the sum by rcmd.
IsaInst isa_activation(View dst, View src, int fn, IsaScalar a, IsaScalar b, const View *res, int rcmd);
IsaInst isa_loop(int reg, int32_t first, int32_t limit, int32_t step); // imm: the caller's, the endloop
IsaInst isa_endloop(uint32_t loop);
// Axes behind the first that have one element leave no trace and the others close up, so that what means the same is the same.
void isa_pack(IsaInst *in);
void isa_wait(IsaInst *in, int sem, uint32_t value);      // sem >= value; asserts that a slot is free
void isa_wait_back(IsaInst *in, int sem, uint32_t back);  // all but the last `back`

#endif
