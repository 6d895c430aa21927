// SPDX-License-Identifier: Apache-2.0
// convs.h — a convolution's numbers, as the pass reads them and the tiler reads them again.
#ifndef OTRN_PASS_CONVS_H
#define OTRN_PASS_CONVS_H

#include "pass/walk.h"

#define CONV_SPACE_MAX 4

// For output position o and tap t the input position is (o * stride + t * kernel_gap - low) / in_gap, when that is whole.
typedef struct ConvAxis {
    int64_t in, kernel, out, stride, low, high, in_gap, kernel_gap;
    int in_dim, kernel_dim, out_dim;
    bool reversed; // tap t is kernel element kernel - 1 - t
} ConvAxis;

typedef struct ConvForm {
    int ns; // spatial axes
    ConvAxis axis[CONV_SPACE_MAX];
    int in_batch, in_feature, kernel_in, kernel_out, out_batch, out_feature; // dimensions
    int64_t feature_groups, batch_groups;
} ConvForm;

// False when the op is no convolution, or one the tensor engine does not do: its types, empty, of unknown size.
bool conv_read(const Hlo *h, const HloOp *op, ConvForm *f);
// Every position that a tap meets lies inside the input.
bool conv_is_inside(const ConvForm *f);
// Every channel by itself: one input and one output channel in each group, or the gradient by the kernel of such a one.
bool conv_is_depthwise(const Hlo *h, const HloOp *op, const ConvForm *f);
// The product that it is, put into the list, when memory already lies as one needs it; else 0.
ValueId conv_as_dot(Walk *walk, OpId id, const ConvForm *f);


typedef struct ConvPicked { // what conv_pick needs to know of a packed gradient
    int64_t size, groups, outs;
    int batch, feature; // dimensions of the result
} ConvPicked;
// The convolution with several groups as one, not in the list yet; 0 when it stays as it is. With picked->size its result has all
// pairs of a pack, of which conv_pick takes those that meet: what stands for the result of `from`.
OpId conv_packed(Walk *walk, OpId id, const ConvForm *f, ConvPicked *picked);
ValueId conv_pick(Walk *walk, OpId from, ValueId v, const ConvPicked *picked);

#endif
