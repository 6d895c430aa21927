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

#endif
