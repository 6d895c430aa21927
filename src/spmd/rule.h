// SPDX-License-Identifier: Apache-2.0
// rule.h — which dimensions of an op's operands and results are the same, so that a cut of one is a cut of all.
//
// A factor is an index the op runs over: in a product of [m, k] and [k, n] they are m, k and n. Dimensions without
// a factor must be whole. When a factor that sums is cut, every device has a term of the result.
#ifndef OTRN_SPMD_RULE_H
#define OTRN_SPMD_RULE_H

#include <assert.h>

#include "spmd/shard.h"

#define RULE_FACTORS_MAX 128

typedef enum FactorKind { FACTOR_KEEP, FACTOR_ADD, FACTOR_MAX, FACTOR_MIN } FactorKind;

typedef struct Rule {
    uint32_t nfactors, ntensors; // tensors: operands, then results
    uint8_t kind[RULE_FACTORS_MAX]; // FactorKind
    const int16_t *of; // [tensor * OTRN_MAX_RANK + dimension]: factor, or -1
    uint32_t ninto;    // the first so many operands take on terms with the result (scatter's)
    int picked;        // factor of the dimension that gather's or scatter's indices speak of, or -1: they are shifted
                       // to the device's part
} Rule;

static inline int rule_factor(const Rule *r, uint32_t tensor, uint32_t dim) {
    assert(tensor < r->ntensors && dim < OTRN_MAX_RANK);
    return r->of[(size_t)tensor * OTRN_MAX_RANK + dim];
}
// False when the op has no rule and works on whole tensors.
bool rule_of(Arena *a, const Hlo *h, const HloOp *op, Rule *out);
// What the program itself says of a call (rule_said.c). It is good for plans; how to cut the call is another matter.
bool rule_said(Arena *a, const Hlo *h, const HloOp *op, Rule *out);

#endif
