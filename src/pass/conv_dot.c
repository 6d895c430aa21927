// SPDX-License-Identifier: Apache-2.0
// conv_dot.c — convolutions that are matrix products as they lie in memory.
//
// An axis with one tap, step one and nothing around it only numbers places; an axis whose kernel covers the whole input is
// only summed over. When all axes are one or the other (1x1 kernels, their gradients, a kernel as large as its image), and
// free and summed dimensions each lie together in both operands and in the result, reshapes make it a plain product:
// it is loaded in large pieces, and row programs behind it take its tiles.
#include "pass/convs.h"

#define THIN 384 // elements of the smallest of the three matrices: with fewer, loading long thin ones is all of the time

typedef enum Label { NO_LABEL, FREE_X, FREE_W, SUMMED } Label;

typedef struct Dim {
    Label label;
    int id; // which one of its label: spatial axis + 2, or 0
} Dim;

typedef struct Order { // dimensions of more than one element as they lie
    Dim at[OTRN_MAX_RANK];
    int n;
} Order;

static Order order_of(const HloType *t, const Dim *dims) {
    Order o = {0};
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] > 1)
            o.at[o.n++] = dims[i];
    return o;
}

static Order only(const Order *o, Label label) {
    Order r = {0};
    for (int i = 0; i < o->n; i++)
        if (o->at[i].label == label)
            r.at[r.n++] = o->at[i];
    return r;
}

static bool same(const Order *a, const Order *b) {
    bool equal = a->n == b->n;
    for (int i = 0; equal && i < a->n; i++)
        equal = a->at[i].label == b->at[i].label && a->at[i].id == b->at[i].id;
    return equal;
}

// Dimensions of each label lie together.
static bool is_grouped(const Order *o) {
    int changes = 0;
    for (int i = 1; i < o->n; i++)
        changes += o->at[i].label != o->at[i - 1].label;
    return changes <= 1;
}

// Labels of the dimensions of x, w and y; false when an axis is neither kind.
static bool label(const ConvForm *f, Dim *x, Dim *w, Dim *y) {
    x[f->in_batch] = y[f->out_batch] = (Dim){FREE_X, 0};
    x[f->in_feature] = w[f->kernel_in] = (Dim){SUMMED, 0};
    w[f->kernel_out] = y[f->out_feature] = (Dim){FREE_W, 0};
    for (int i = 0; i < f->ns; i++) {
        const ConvAxis *a = &f->axis[i];
        bool around = a->low || a->high || a->in_gap > 1;
        bool places = a->kernel == 1 && (a->stride == 1 || a->out == 1) && a->out == a->in;
        bool summed = a->out == 1 && a->kernel == a->in && (a->kernel_gap == 1 || a->kernel == 1) && !(a->reversed && a->kernel > 1);
        if (around || (!places && !summed))
            return false;
        x[a->in_dim] = y[a->out_dim] = w[a->kernel_dim] = (Dim){places ? FREE_X : SUMMED, i + 2};
    }
    return true;
}

static ValueId flat(Walk *walk, ValueId v, bool first_summed, int64_t summed) {
    const HloType *t = hlo_value_type(walk->hlo, v);
    assert(summed > 0 && t->elems % summed == 0);
    int64_t dims[2] = {t->elems / summed, summed};
    if (first_summed)
        dims[0] = summed, dims[1] = t->elems / summed;
    return walk_reshape(walk, v, 2, dims);
}

ValueId conv_as_dot(Walk *walk, OpId id, const ConvForm *f) {
    Hlo *h = walk->hlo;
    assert(hlo_at(h, id)->code == HLO_CONVOLUTION);
    HloOp op = *hlo_at(h, id);
    ValueId in[2] = {hlo_operand(h, &op, 0), hlo_operand(h, &op, 1)};
    const HloType *y = hlo_value_type(h, op.results), *x = hlo_value_type(h, in[0]), *w = hlo_value_type(h, in[1]);
    Dim xd[OTRN_MAX_RANK], wd[OTRN_MAX_RANK], yd[OTRN_MAX_RANK];
    int64_t least = x->elems < w->elems ? x->elems : w->elems;
    if ((y->elems < least ? y->elems : least) < THIN || f->feature_groups > 1 || f->batch_groups > 1 || !label(f, xd, wd, yd))
        return 0;
    Order xo = order_of(x, xd), wo = order_of(w, wd), yo = order_of(y, yd);
    Order xk = only(&xo, SUMMED), wk = only(&wo, SUMMED), xf = only(&xo, FREE_X), yf = only(&yo, FREE_X);
    if (!is_grouped(&xo) || !is_grouped(&wo) || !is_grouped(&yo) || !same(&xk, &wk) || !same(&xf, &yf))
        return 0;
    int64_t summed = x->dims[f->in_feature];
    for (int i = 0; i < f->ns; i++)
        summed *= xd[f->axis[i].in_dim].label == SUMMED ? f->axis[i].in : 1;
    bool swapped = yo.n && yo.at[0].label == FREE_W && yf.n; // the kernel's features come first in the result
    int64_t at[2];
    for (int side = 0; side < 2; side++) {
        const Order *o = side ? &wo : &xo;
        bool first = o->n && o->at[0].label == SUMMED;
        in[side] = flat(walk, in[side], first, summed);
        at[side] = !first;
    }
    const HloType *l = hlo_value_type(h, in[swapped]), *r = hlo_value_type(h, in[!swapped]);
    TypeId type = hlo_type_tensor(h, y->dtype, 2, (int64_t[]){l->elems / summed, r->elems / summed});
    assert(hlo_type(h, type)->elems == hlo_value_type(h, op.results)->elems);
    DotPairs by = {.nc = 1, .lc = &at[swapped], .rc = &at[!swapped]};
    ValueId made = walk_push(walk, hlo_op_dot(h, op.loc, in[swapped], in[!swapped], by, type, hlo_attr(&op, AK_PRECISION_CONFIG)));
    y = hlo_value_type(h, op.results);
    return walk_reshape(walk, made, y->rank, y->dims);
}
