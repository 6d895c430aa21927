// SPDX-License-Identifier: Apache-2.0
// masks.h — masks that compare iotas: causal ones, bands, diagonals.
#ifndef OTRN_PASS_MASKS_H
#define OTRN_PASS_MASKS_H

#include "pass/users.h"

typedef struct Affine { // r * row + c * column + k, in the last two dimensions
    int64_t r, c, k;
} Affine;
bool mask_affine(const Hlo *h, ValueId v, Affine *out);

// The mask is whether row * r + column * c + add compares so with zero, r and c the places in the last two dimensions.
typedef struct MaskSign {
    int64_t row, column, add, direction;
} MaskSign;
bool mask_sign(const Hlo *h, ValueId v, MaskSign *out);
// The op is such a mask, large enough to be made by gpsimd's affine_select; its operands are not read then.
bool mask_is_made(const Hlo *h, const HloOp *op);
// An iota, or a sum of iotas and numbers, that nothing but such masks reads.
bool mask_only(const Users *u, ValueId v);

#endif
