// SPDX-License-Identifier: Apache-2.0
// side.c — strides of a product's operand.
#include "tile/layout.h"

#include <assert.h>

#include "hlo/dot.h"
#include "tile/nest.h"

void side_init(Side *s, const Hlo *h, const HloOp *op, bool rhs) {
    const HloType *t = hlo_value_type(h, hlo_operand(h, op, rhs));
    int64_t dims[OTRN_MAX_RANK], strides[OTRN_MAX_RANK];
    nest_strides(t, strides);
    uint32_t nf = dot_free_dims(t, op, rhs, dims);
    DotDims by = dot_dims(op);
    bool ok = dot_group(t, dims, nf, &s->free_size, &s->free_stride);
    assert(ok);
    ok = dot_group(t, by.contract[rhs], by.nc, &s->k_size, &s->k_stride);
    assert(ok);
    (void)ok;
    s->nbatch = by.nb;
    for (uint32_t i = 0; i < s->nbatch; i++) {
        s->batch_dims[i] = t->dims[by.batch[rhs][i]];
        s->batch_strides[i] = strides[by.batch[rhs][i]];
    }
}

// Dimensions [from, to) as one: false when no single stride goes over them.
static bool join_dims(const HloType *t, const int64_t *strides, int from, int to, int64_t *size, int64_t *stride) {
    *size = *stride = 1;
    for (int i = to; i-- > from;) {
        if (t->dims[i] == 1)
            continue;
        if (*size == 1)
            *stride = strides[i];
        else if (strides[i] != *stride * *size)
            return false;
        *size *= t->dims[i];
    }
    return true;
}

bool side_of_result(Side *s, const Hlo *h, const HloOp *dot, OpId transpose) {
    const HloType *t = hlo_value_type(h, dot->results);
    int64_t strides[OTRN_MAX_RANK], dims[OTRN_MAX_RANK], unit = 1;
    uint32_t n;
    const int64_t *perm = transpose ? hlo_ints(hlo_at(h, transpose), AK_PERMUTATION, &n) : NULL;
    for (int i = t->rank; i-- > 0;) {
        int64_t d = perm ? perm[i] : i;
        strides[d] = unit;
        unit *= t->dims[d];
    }
    *s = (Side){0};
    s->nbatch = dot_dims(dot).nb;
    for (uint32_t i = 0; i < s->nbatch; i++)
        s->batch_dims[i] = t->dims[i], s->batch_strides[i] = strides[i];
    int rows = (int)s->nbatch, cols = rows + (int)dot_free_dims(hlo_value_type(h, hlo_operand(h, dot, 0)), dot, false, dims);
    return join_dims(t, strides, rows, cols, &s->free_size, &s->free_stride) && join_dims(t, strides, cols, t->rank, &s->k_size, &s->k_stride) &&
           s->k_stride == 1;
}

int64_t side_batches(const Side *s) {
    int64_t n = 1;
    for (uint32_t i = 0; i < s->nbatch; i++)
        n *= s->batch_dims[i];
    return n;
}

int64_t side_batch_offset(const Side *s, int64_t batch) {
    assert(batch >= 0);
    int64_t off = 0;
    for (uint32_t i = s->nbatch; i-- > 0;) {
        off += batch % s->batch_dims[i] * s->batch_strides[i];
        batch /= s->batch_dims[i];
    }
    return off;
}
