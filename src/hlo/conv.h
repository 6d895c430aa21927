// SPDX-License-Identifier: Apache-2.0
// conv.h — a convolution's numbers.
#ifndef OTRN_HLO_CONV_H
#define OTRN_HLO_CONV_H

#include "hlo/hlo.h"

#define CONV_SPACE_MAX 4 // of conv_read

// For output position o and tap t the input position is (o * stride + t * kernel_gap - low) / in_gap, when that is whole.
typedef struct ConvAxis {
    int64_t in, kernel, out, stride, low, high, in_gap, kernel_gap;
    int in_dim, kernel_dim, out_dim;
    bool reversed; // tap t is kernel element kernel - 1 - t
} ConvAxis;

typedef struct ConvForm {
    int ns; // spatial axes
    ConvAxis axis[OTRN_MAX_RANK];
    int in_batch, in_feature, kernel_in, kernel_out, out_batch, out_feature; // dimensions
    int64_t feature_groups, batch_groups;
} ConvForm;

void conv_form(const Hlo *h, const HloOp *op, ConvForm *f); // of any convolution
// The input position of an output position and a tap; -1: there is none.
static inline int64_t conv_at(const ConvAxis *a, int64_t out, int64_t tap) {
    int64_t p = out * a->stride + tap * a->kernel_gap - a->low;
    return p < 0 || p % a->in_gap || p / a->in_gap >= a->in ? -1 : p / a->in_gap;
}
// False when the op is no convolution, or one the tensor engine does not do: its types, empty, of unknown size.
bool conv_read(const Hlo *h, const HloOp *op, ConvForm *f);
// The first and the last position of the input that taps may meet; last < first: they meet none.
void conv_span(const ConvAxis *a, int64_t *first, int64_t *last);
// Every position that a tap meets lies inside the input.
bool conv_is_inside(const ConvForm *f);
// Every channel by itself: one input and one output channel in each group, or the gradient by the kernel of such a one.
bool conv_is_depthwise(const Hlo *h, const HloOp *op, const ConvForm *f);

#endif
