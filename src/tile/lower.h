// SPDX-License-Identifier: Apache-2.0
// lower.h — what the parts of lowering share.
//
//   lower.c       buffers, ordinary operations, the program
//   lower_flow.c  loops and branches
//   strided.c     slices that are read where they lie
//   donate.c      results that take over the memory of arguments
#ifndef OTRN_TILE_LOWER_H
#define OTRN_TILE_LOWER_H

#include "tile/step.h"

BufId lower_buf(Lower *l, BufKind kind, uint64_t bytes, OpId op); // a new one
void lower_bind(Lower *l, ValueId v, BufId b);                    // v lies there
uint64_t lower_bytes(Lower *l, ValueId v, OpId op);
// A use at the current step: the buffer lives at least until here, and as long as any loop that began after it was made.
void lower_touch(Lower *l, BufId id);
void lower_step(Lower *l, StepKind kind, OpId op, const BufId *ins, uint32_t nins, const BufId *outs, uint32_t nouts, uint32_t aux);
void lower_copy(Lower *l, OpId op, BufId dst, BufId src);
BufId lower_operand(Lower *l, ValueId v); // where v lies, put there now when it is made on demand
void lower_hold(Lower *l, BufId id, int32_t by);
void lower_release(Lower *l, ValueId v); // one reader less
bool lower_dies_here(const Lower *l, BufId b);
bool lower_may_overwrite(const Lower *l, const HloOp *op, uint32_t operand, uint32_t result); // reads each element before it writes its place
bool lower_is_drawn(const Lower *l, ValueId v); // draws that only row programs read: made there, its buffer is the state
typedef struct Strided { // elements run after run: from the first, a pitch from one run to the next; pitch 0: one run
    int64_t first, run, pitch;
} Strided;
bool lower_strided(const Lower *l, ValueId v, Strided *s); // strided.c: a slice, perhaps in another shape, that is read where it lies
void lower_region(Lower *l, RegionId r);
static inline BufId lower_arg(uint32_t i) { return 1 + i; }
static inline BufId lower_result(const Lower *l, uint32_t j) { return 1 + l->main->nargs + j; }

bool lower_is_lazy(const Lower *l, const HloOp *op); // a splat, put into memory where it is read
BufId lower_out(Lower *l, OpId id, uint32_t result); // where a result goes
// lower_dot.c
const struct Epilogue *lower_epilogue(const Lower *l, OpId dot); // behind it, NULL: none
BufId lower_dot_out(Lower *l, OpId dot); // where a product's result goes, as a transpose behind it lies where it may
void lower_dot(Lower *l, OpId id, uint32_t sum); // number of the sum, 0: none
bool lower_is_set(const Lower *l, const HloOp *dot); // its first operand is one number everywhere and needs no memory
ValueId lower_producer(const Lower *l, ValueId v); // through what shares its operand's buffer

// donate.c
void lower_donate(Lower *l); // fills l->alias
static inline bool is_joined(const HloOp *op) { return op->code == HLO_ROWS || op->code == HLO_FUSED; } // of several
bool lower_is_donated(const HloFunc *f, uint32_t arg);
bool lower_is_pinned(const HloNamed *attrs, uint32_t n); // of an argument or result: in host memory that the device can reach

// lower_flow.c
void lower_while(Lower *l, OpId id);
void lower_branches(Lower *l, OpId id);

#endif
