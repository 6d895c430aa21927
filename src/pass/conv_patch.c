// SPDX-License-Identifier: Apache-2.0
// conv_patch.c — pictures cut into patches, each of which a product takes.
//
// A convolution whose kernel steps by its own size meets every element once: what it sums over is a patch, as vision transformers write with reshapes, and
// with few channels the array is nearly empty tap by tap. The gradient by such a kernel has its taps as far apart as the kernel is large.
//
//   x[b, f, (out k)], w[o, f, k]  ──►  x[b, f, out, k] · w                over f and k
//   x[f, b, (out k)], g[o, b, out] of taps k apart  ──►  x[f, b, out, k] · g        over b and out
#include "hlo/conv.h"
#include "pass/convs.h"

#define FEW 32 // channels

// Of an axis cut into pieces and what is in one: are the pieces places of the result, or is what is in one?
static bool is_cut(const ConvAxis *a, bool pieces, int64_t *n, int64_t *size) {
    *n = pieces ? a->out : a->kernel, *size = pieces ? a->kernel : a->out;
    bool steps = pieces ? a->stride == *size && (a->kernel_gap == 1 || *size == 1) : (a->stride == 1 || a->out == 1) && a->kernel_gap == *size;
    return steps && a->in == *n * *size && !a->low && !a->high && a->in_gap == 1 && !(a->reversed && a->kernel > 1);
}

static ValueId product(Walk *w, const HloOp *op, const ConvForm *f, bool pieces) {
    Hlo *h = w->hlo;
    HloType x = *hlo_value_type(h, hlo_operand(h, op, 0)), k = *hlo_value_type(h, hlo_operand(h, op, 1)), y = *hlo_value_type(h, op->results);
    int64_t cut[OTRN_MAX_RANK], dims[OTRN_MAX_RANK], lc[OTRN_MAX_RANK], rc[OTRN_MAX_RANK], perm[OTRN_MAX_RANK];
    int n = 0, nc = 0, nfree = 0, place[OTRN_MAX_RANK] = {0};
    for (int d = 0; d < x.rank; d++) { // of x in its order; place: where a dimension begins
        const ConvAxis *a = NULL;
        for (int i = 0; i < f->ns && !a; i++)
            a = f->axis[i].in_dim == d ? &f->axis[i] : NULL;
        place[d] = n;
        cut[n++] = x.dims[d];
        if (a && is_cut(a, pieces, &cut[n - 1], &cut[n]))
            n++;
    }
    lc[nc] = place[f->in_feature], rc[nc++] = f->kernel_in;
    for (int i = 0; i < f->ns; i++)
        lc[nc] = place[f->axis[i].in_dim] + pieces, rc[nc++] = f->axis[i].kernel_dim;
    for (int d = 0; d < x.rank; d++) { // what is left, in the order of x, then the kernel's features
        int axis = -1;
        for (int i = 0; i < f->ns; i++)
            axis = f->axis[i].in_dim == d ? i : axis;
        if (d == f->in_feature)
            continue;
        perm[axis < 0 ? f->out_batch : f->axis[axis].out_dim] = nfree;
        dims[nfree++] = cut[place[d] + (axis >= 0 && !pieces)];
    }
    perm[f->out_feature] = nfree;
    dims[nfree++] = k.dims[f->kernel_out];
    assert(nfree == y.rank);
    ValueId lhs = walk_reshape(w, hlo_operand(h, op, 0), n, cut);
    DotPairs by = {.nc = (uint32_t)nc, .lc = lc, .rc = rc};
    TypeId type = hlo_type_tensor(h, y.dtype, nfree, dims);
    return walk_transpose(w, walk_push(w, hlo_op_dot(h, op->loc, lhs, hlo_operand(h, op, 1), by, type, hlo_attr(op, AK_PRECISION_CONFIG))), perm);
}

ValueId conv_by_patches(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    ConvForm f;
    if (!conv_read(h, op, &f) || f.feature_groups > 1 || f.batch_groups > 1 || hlo_value_type(h, op->results)->rank + f.ns > OTRN_MAX_RANK)
        return 0;
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0));
    for (int pieces = 1; pieces >= 0; pieces--) {
        bool all = x->dims[pieces ? f.in_feature : f.in_batch] < FEW && x->dtype == hlo_value_type(h, hlo_operand(h, op, 1))->dtype, many = false;
        for (int i = 0; i < f.ns && all; i++) {
            int64_t n, size;
            all = is_cut(&f.axis[i], pieces, &n, &size);
            many = many || (n > 1 && size > 1);
        }
        if (all && many)
            return product(w, op, &f, pieces);
    }
    return 0;
}
