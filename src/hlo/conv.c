// SPDX-License-Identifier: Apache-2.0
// conv.c — reads the attributes of a convolution.
#include "hlo/conv.h"

#include <assert.h>

#include "base/dtype.h"
#include "base/num.h"
#include "hlo/query.h"

static bool fits(const HloType *t) {
    return t->kind == HT_TENSOR && !t->dynamic && !t->text && t->elems > 0 && t->elems < INT32_MAX &&
           dtype_on_tensor_engine(t->dtype);
}

void conv_form(const Hlo *h, const HloOp *op, ConvForm *f) {
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *w = hlo_value_type(h, hlo_operand(h, op, 1));
    const HloType *y = hlo_value_type(h, op->results);
    assert(op->code == HLO_CONVOLUTION);
    *f = (ConvForm){.ns = x->rank - 2,
                    .in_batch = (int)hlo_int(op, AK_INPUT_BATCH_DIMENSION, 0),
                    .in_feature = (int)hlo_int(op, AK_INPUT_FEATURE_DIMENSION, 0),
                    .kernel_in = (int)hlo_int(op, AK_KERNEL_INPUT_FEATURE_DIMENSION, 0),
                    .kernel_out = (int)hlo_int(op, AK_KERNEL_OUTPUT_FEATURE_DIMENSION, 0),
                    .out_batch = (int)hlo_int(op, AK_OUTPUT_BATCH_DIMENSION, 0),
                    .out_feature = (int)hlo_int(op, AK_OUTPUT_FEATURE_DIMENSION, 0),
                    .feature_groups = hlo_int(op, AK_FEATURE_GROUP_COUNT, 1),
                    .batch_groups = hlo_int(op, AK_BATCH_GROUP_COUNT, 1)};
    for (int i = 0; i < f->ns; i++) {
        uint32_t k = (uint32_t)i;
        ConvAxis a = {.in_dim = (int)hlo_int_at(op, AK_INPUT_SPATIAL_DIMENSIONS, k, 0),
                      .kernel_dim = (int)hlo_int_at(op, AK_KERNEL_SPATIAL_DIMENSIONS, k, 0),
                      .out_dim = (int)hlo_int_at(op, AK_OUTPUT_SPATIAL_DIMENSIONS, k, 0),
                      .stride = hlo_int_at(op, AK_WINDOW_STRIDES, k, 1),
                      .low = hlo_int_at(op, AK_PADDING, 2 * k, 0),
                      .high = hlo_int_at(op, AK_PADDING, 2 * k + 1, 0),
                      .in_gap = hlo_int_at(op, AK_LHS_DILATION, k, 1),
                      .kernel_gap = hlo_int_at(op, AK_RHS_DILATION, k, 1),
                      .reversed = hlo_int_at(op, AK_WINDOW_REVERSAL, k, 0) != 0};
        a.in = x->dims[a.in_dim], a.kernel = w->dims[a.kernel_dim], a.out = y->dims[a.out_dim];
        f->axis[i] = a;
    }
}

bool conv_read(const Hlo *h, const HloOp *op, ConvForm *f) {
    if (op->code != HLO_CONVOLUTION)
        return false;
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *w = hlo_value_type(h, hlo_operand(h, op, 1));
    if (!fits(x) || !fits(w) || !fits(hlo_value_type(h, op->results)) || x->rank > CONV_SPACE_MAX + 2)
        return false;
    conv_form(h, op, f);
    bool near = true;
    int64_t most = INT32_MAX; // positions stay far inside 64 bits
    for (const ConvAxis *a = f->axis; a < f->axis + f->ns; a++)
        near = near && a->stride <= most && a->in_gap <= most && a->kernel_gap <= most && a->low <= most && a->low >= -most && a->high <= most && a->high >= -most;
    return near;
}

void conv_span(const ConvAxis *a, int64_t *first, int64_t *last) { // between two elements of a dilated input nothing is met
    int64_t reach = (a->out - 1) * a->stride + (a->kernel - 1) * a->kernel_gap - a->low;
    *first = floor_div(-a->low + a->in_gap - 1, a->in_gap);
    *last = floor_div(reach, a->in_gap);
}

bool conv_is_inside(const ConvForm *f) {
    for (int i = 0; i < f->ns; i++) {
        int64_t first, last;
        conv_span(&f->axis[i], &first, &last);
        if (first < 0 || last >= f->axis[i].in)
            return false;
    }
    return true;
}

bool conv_is_depthwise(const Hlo *h, const HloOp *op, const ConvForm *f) {
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *w = hlo_value_type(h, hlo_operand(h, op, 1));
    int64_t outs = w->dims[f->kernel_out];
    if (f->feature_groups > 1)
        return w->dims[f->kernel_in] == 1 && outs == f->feature_groups;
    return f->batch_groups > 1 && x->dims[f->in_batch] == f->batch_groups && outs == f->batch_groups;
}
