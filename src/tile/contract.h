// SPDX-License-Identifier: Apache-2.0
// contract.h — a product of two tensors that are read and written through strides.
//
//   out[m][n] = sum over k of lhs[k][m] * rhs[k][n]
//
// k, m and n are lists of axes, each with its stride in the two tensors that have it; an element's place is the sum
// of index * stride over its axes. Strides may overlap (windows of a convolution) and be negative (a reversed
// kernel). An axis list counts with its last axis fastest.
#ifndef OTRN_TILE_CONTRACT_H
#define OTRN_TILE_CONTRACT_H

#include "tile/nest.h"

typedef struct Contract {
    int stype, dtype;       // of the operands, of the result
    uint64_t lhs, rhs, out; // addresses of element 0
    Nest k; // src: lhs, dst: rhs; an axis of no elements makes a result of zeros
    Nest m; // src: lhs, dst: out
    Nest n; // src: rhs, dst: out
} Contract;

void contract_emit(Emit *e, const Contract *c);
// Nanoseconds it is likely to take, and the transfers and products it is made of. Depends on no chip.
double contract_cost(const Contract *c, int64_t *insts);

#endif
