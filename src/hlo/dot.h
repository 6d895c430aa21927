// SPDX-License-Identifier: Apache-2.0
// dot.h — questions about dot_general.
#ifndef OTRN_HLO_DOT_H
#define OTRN_HLO_DOT_H

#include "hlo/hlo.h"
#include "hlo/why.h"

// True when the op is a product the tensor engine does: float types, nothing empty.
bool dot_suits(const Hlo *h, const HloOp *op, Why *why);
static inline bool dot_on_tensor_engine(const Hlo *h, const HloOp *op) { return dot_suits(h, op, NULL); }
extern const HloAttrKey dot_batch_key[2], dot_contract_key[2]; // of lhs, of rhs
typedef struct DotDims {
    uint32_t nb, nc;
    const int64_t *batch[2], *contract[2];
} DotDims;
DotDims dot_dims(const HloOp *op);
int64_t dot_contracted(const Hlo *h, const HloOp *op); // elements
// Collapse a group of dimensions of a dense tensor to one size and stride (in elements).
bool dot_group(const HloType *t, const int64_t *dims, uint32_t n, int64_t *size, int64_t *stride);
// The dimensions of one operand that are neither batch nor contracting.
uint32_t dot_free_dims(const HloType *t, const HloOp *op, bool rhs, int64_t out[OTRN_MAX_RANK]);
// True when the operands may change places: nothing names their types or parts apart.
bool dot_may_swap(const Hlo *h, const HloOp *op);

#endif
