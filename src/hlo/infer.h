// SPDX-License-Identifier: Apache-2.0
// infer.h — the shape of a result as it follows from operands and attributes.
#ifndef OTRN_HLO_INFER_H
#define OTRN_HLO_INFER_H

#include "hlo/hlo.h"

// dims holds the dimensions of result k as far as they are known, HLO_DYNAMIC where not; those that
// follow from the operands' types are filled in. Known ones stay, right or wrong: see the verifier.
// Shapes that are data (the dynamic_ ops' operands) and regions are the caller's business.
// The graph is verified as far as its dimensions are known.
void infer_dims(const Hlo *h, const HloOp *op, uint32_t k, int64_t dims[OTRN_MAX_RANK]);

// chlo.ragged_dot: the dimensions of its left side along which group sizes may differ, in the order the group sizes have
// them: the batching ones, then those of the ragged dimension's kind (free, contracting) that stand before it; of a
// batching ragged dimension only the batching ones before it. Returns how many.
uint32_t infer_ragged_prefix(const HloOp *op, int rank, int64_t out[OTRN_MAX_RANK]);

#endif
