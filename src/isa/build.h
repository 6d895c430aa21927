// SPDX-License-Identifier: Apache-2.0
// build.h — instructions from C, for compilers: small functions that fill an IsaInst from views.
//
// A view is an operand: address, type, and up to four free axes behind the partitions (or, in HBM, five axes
// of its own). Counts come from the operands, so a caller says shapes once:
//
//   IsaView w = isa_view(addr_sbuf(0, 0), DT_BF16, 128, 1, (uint32_t[]){128}, NULL);
//   isa_ldweights(w);   isa_matmul(p, x, ISA_FLAG_ACCUMULATE);   isa_tensor_scalar(ENG_VECTOR, y, x, ALU_MUL, isa_f32(2), …)
//
// Results have no waits; isa_wait adds one, artifact_sync all that are needed. What does not fit together is an
// assertion: artifact_verify tells the rest.
#ifndef OTRN_ISA_BUILD_H
#define OTRN_ISA_BUILD_H

#include "isa/isa.h"

typedef struct IsaView {
    uint64_t addr;
    uint8_t dtype;
    uint8_t rank;       // free axes
    uint32_t parts;     // partitions; in HBM: the count of axis 0
    int32_t part_stride; // of axis 0 in HBM, elements
    uint32_t n[4];      // outermost first
    int32_t stride[4];  // elements
    uint8_t reg[2];     // register + 1 of an address term; 0: none
    int32_t mul[2];
} IsaView;

// strides NULL: dense, row-major.
IsaView isa_view(uint64_t addr, int dtype, uint32_t parts, int rank, const uint32_t *n, const int32_t *stride);
IsaView isa_column(uint64_t addr, int dtype, uint32_t parts); // one element per partition
IsaView isa_view_term(IsaView v, int reg, int32_t bytes);     // adds r[reg] * bytes to its address

typedef struct IsaScalar { // a number, or a column
    uint64_t v;
    uint8_t atype;
} IsaScalar;
IsaScalar isa_f32(float v);
IsaScalar isa_i32(int32_t v);
IsaScalar isa_per_part(IsaView column);
IsaScalar isa_none(void);

IsaInst isa_make(int op, int engine); // no operands, no waits
IsaInst isa_dma(int engine, int queue, IsaView dst, IsaView src);
IsaInst isa_ldweights(IsaView src);
IsaInst isa_matmul(IsaView dst, IsaView src, int flags);
IsaInst isa_transpose(int engine, IsaView dst, IsaView src);
IsaInst isa_memset(int engine, IsaView dst, uint32_t bits);
// dst, src and src1 over dst's counts (over src's for a reduction): copy, reciprocal, tensor_tensor, tensor_reduce,
// scans, selects …; further fields are set by the caller. src1 may be NULL.
IsaInst isa_elementwise(int op, int engine, IsaView dst, IsaView src, const IsaView *src1);
IsaInst isa_tensor_copy(int engine, IsaView dst, IsaView src);
IsaInst isa_tensor_tensor(int engine, IsaView dst, IsaView src, int op0, IsaView src1);
IsaInst isa_tensor_scalar(int engine, IsaView dst, IsaView src, int op0, IsaScalar a, int op1, IsaScalar b);
IsaInst isa_reduce(IsaView dst, IsaView src, int op0, int flags); // dst's axes of stride 0 are those reduced
// fn(src * a + b); res (may be NULL) takes the sum by rcmd.
IsaInst isa_activation(IsaView dst, IsaView src, int fn, IsaScalar a, IsaScalar b, const IsaView *res, int rcmd);
IsaInst isa_loop(int reg, int32_t first, int32_t limit, int32_t step); // imm: the caller's, the endloop
IsaInst isa_endloop(uint32_t loop);
// Axes behind the first that have one element leave no trace and the others close up, so that what means the same is the same.
void isa_pack(IsaInst *in);
void isa_wait(IsaInst *in, int sem, uint32_t value);      // sem >= value; asserts that a slot is free
void isa_wait_back(IsaInst *in, int sem, uint32_t back);  // all but the last `back`

#endif
