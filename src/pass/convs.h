// SPDX-License-Identifier: Apache-2.0
// convs.h — convolutions written as others, for the files of the pass.
#ifndef OTRN_PASS_CONVS_H
#define OTRN_PASS_CONVS_H

#include "hlo/conv.h"
#include "pass/walk.h"

// The product that it is, put into the list, when memory already lies as one needs it; else 0.
ValueId conv_as_dot(Walk *walk, OpId id, const ConvForm *f);

ValueId conv_by_patches(Walk *w, const HloOp *op); // a rule of the inner pass: the product that it is, over patches of few channels; else 0

typedef struct ConvPicked { // what conv_pick needs to know of a packed gradient
    int64_t size, groups, outs;
    int batch, feature; // dimensions of the result
} ConvPicked;
// The convolution with several groups as one, not in the list yet; 0 when it stays as it is. With picked->size its result has all
// pairs of a pack, of which conv_pick takes those that meet: what stands for the result of `from`.
OpId conv_packed(Walk *walk, OpId id, const ConvForm *f, ConvPicked *picked);
ValueId conv_pick(Walk *walk, OpId from, ValueId v, const ConvPicked *picked);

#endif
