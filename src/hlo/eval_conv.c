// SPDX-License-Identifier: Apache-2.0
// eval_conv.c — convolution: cross-correlation over any number of spatial dimensions.
//
// For output position o and kernel position k of each spatial dim, the input position is
//   p = o * stride + k * rhs_dilation - pad_low,   used when p is a multiple of lhs_dilation and
//   inside.
// Everything else is zero padding. window_reversal walks the kernel backwards. Features: output
// feature f belongs to feature group f / (F / feature_group_count), which sees that group's slice
// of the input features; with batch groups it belongs to batch group f / (F / batch_group_count),
// which sees that group's slice of the batch. Rounding as in eval_dot.c, with sums over kernel
// positions in row-major order, input features innermost.
#include "hlo/eval_in.h"

typedef struct Conv {
    const HloType *l, *r, *t;
    int ns;                           // spatial dimensions
    int64_t lb, lf, rif, rof, ob, of; // axes: input batch, feature; kernel in, out; output
    const int64_t *ls, *rs, *os;      // spatial axes
    const int64_t *stride, *ldil, *rdil, *pad, *reverse;
    int64_t fgroups, bgroups;
    int64_t lstep[OTRN_MAX_RANK], rstep[OTRN_MAX_RANK], tstep[OTRN_MAX_RANK];
} Conv;

static int64_t axis_attr(Eval *e, OpId id, HloAttrKey key, const HloType *t) {
    int64_t a = hlo_int(eval_op_at(e, id), key, -1);
    eval_need(e, id, a >= 0 && a < t->rank, "a dimension number is out of range");
    return a;
}

static const int64_t *spatial_attr(Eval *e, OpId id, HloAttrKey key, const HloType *t, int64_t a,
                                   int64_t b) {
    uint32_t n;
    const int64_t *s = eval_axes(e, id, key, t->rank, &n);
    bool ok = n + 2 == t->rank && a != b;
    for (uint32_t i = 0; i < n; i++)
        ok = ok && s[i] != a && s[i] != b;
    eval_need(e, id, ok, "dimension numbers must name every axis once");
    return s;
}

static void conv_read(Eval *e, OpId id, Conv *c) {
    eval_need(e, id, c->l->rank >= 2 && c->l->rank == c->r->rank && c->l->rank == c->t->rank,
              "operands and result have one rank of at least 2");
    c->ns = c->l->rank - 2;
    c->lb = axis_attr(e, id, AK_INPUT_BATCH_DIMENSION, c->l);
    c->lf = axis_attr(e, id, AK_INPUT_FEATURE_DIMENSION, c->l);
    c->ls = spatial_attr(e, id, AK_INPUT_SPATIAL_DIMENSIONS, c->l, c->lb, c->lf);
    c->rif = axis_attr(e, id, AK_KERNEL_INPUT_FEATURE_DIMENSION, c->r);
    c->rof = axis_attr(e, id, AK_KERNEL_OUTPUT_FEATURE_DIMENSION, c->r);
    c->rs = spatial_attr(e, id, AK_KERNEL_SPATIAL_DIMENSIONS, c->r, c->rif, c->rof);
    c->ob = axis_attr(e, id, AK_OUTPUT_BATCH_DIMENSION, c->t);
    c->of = axis_attr(e, id, AK_OUTPUT_FEATURE_DIMENSION, c->t);
    c->os = spatial_attr(e, id, AK_OUTPUT_SPATIAL_DIMENSIONS, c->t, c->ob, c->of);
    uint32_t ns = (uint32_t)c->ns;
    c->stride = eval_ints(e, id, AK_WINDOW_STRIDES, ns, 1);
    c->ldil = eval_ints(e, id, AK_LHS_DILATION, ns, 1);
    c->rdil = eval_ints(e, id, AK_RHS_DILATION, ns, 1);
    c->reverse = eval_ints(e, id, AK_WINDOW_REVERSAL, ns, 0);
    c->fgroups = hlo_int(eval_op_at(e, id), AK_FEATURE_GROUP_COUNT, 1);
    c->bgroups = hlo_int(eval_op_at(e, id), AK_BATCH_GROUP_COUNT, 1);
    eval_strides(c->l, c->lstep);
    eval_strides(c->r, c->rstep);
    eval_strides(c->t, c->tstep);
}

static void conv_check(Eval *e, OpId id, const Conv *c) {
    const int64_t limit = INT64_C(1) << 40; // keeps positions inside 64 bits
    int64_t features = c->l->dims[c->lf], outs = c->r->dims[c->rof], batch = c->l->dims[c->lb];
    bool ok = c->fgroups > 0 && c->bgroups > 0 && (c->fgroups == 1 || c->bgroups == 1) &&
              features == c->r->dims[c->rif] * c->fgroups && outs % c->fgroups == 0 &&
              outs % c->bgroups == 0 && batch % c->bgroups == 0 &&
              c->t->dims[c->ob] == batch / c->bgroups && c->t->dims[c->of] == outs;
    eval_need(e, id, ok, "feature, batch and group sizes do not fit");
    for (int i = 0; i < c->ns; i++) {
        int64_t in = c->l->dims[c->ls[i]], k = c->r->dims[c->rs[i]];
        int64_t lo = c->pad[2 * i], hi = c->pad[2 * i + 1];
        ok = c->stride[i] > 0 && c->ldil[i] > 0 && c->rdil[i] > 0 && c->stride[i] < limit &&
             c->ldil[i] < 1 << 20 && c->rdil[i] < 1 << 20 && in < limit && k < limit &&
             lo > -limit && lo < limit && hi > -limit && hi < limit;
        eval_need(e, id, ok, "strides and dilations must be positive (and below 2^40)");
        int64_t padded = lo + (in ? (in - 1) * c->ldil[i] + 1 : 0) + hi;
        int64_t reach = k ? (k - 1) * c->rdil[i] + 1 : 0;
        int64_t want = padded < reach || padded <= 0 ? 0 : (padded - reach) / c->stride[i] + 1;
        eval_need(e, id, c->t->dims[c->os[i]] == want, "a spatial size of the result does not fit");
    }
}

// Byte offset of the input element under output position `o` at kernel position `k`, or -1.
static int64_t input_offset(const Conv *c, const int64_t *o, const int64_t *k) {
    int64_t at = 0;
    for (int i = 0; i < c->ns; i++) {
        int64_t p = o[i] * c->stride[i] + k[i] * c->rdil[i] - c->pad[2 * i];
        if (p < 0 || p % c->ldil[i] || p / c->ldil[i] >= c->l->dims[c->ls[i]])
            return -1;
        at += p / c->ldil[i] * c->lstep[c->ls[i]];
    }
    return at;
}

static int64_t kernel_offset(const Conv *c, const int64_t *k) {
    int64_t at = 0;
    for (int i = 0; i < c->ns; i++)
        at += (c->reverse[i] ? c->r->dims[c->rs[i]] - 1 - k[i] : k[i]) * c->rstep[c->rs[i]];
    return at;
}

// Loads n elements in the wide form of the result's class.
static void load_as(int from, int to, const uint8_t *src, int64_t step, int64_t n, double *wide) {
    if (eval_wide_kind(from) == eval_wide_kind(to)) {
        eval_load(from, src, step, (size_t)n, wide);
        return;
    }
    size_t w = eval_wide_bytes(to) / 8;
    for (int64_t i = 0; i < n; i++) {
        double x[2];
        eval_load(from, src + i * step, 0, 1, x);
        eval_cast(from, to, 1, x, wide + (size_t)i * w);
    }
}

// A double that holds what a float would: sums of two floats and products of two are exact in double
// or round the same.
static inline double single(double x) {
    return (double)(float)x;
}

static void add_products_single(bool is_complex, int64_t n, double *sum, const double *x,
                                const double *kernel) {
    for (int64_t j = 0; !is_complex && j < n; j++)
        sum[j] = single(sum[j] + single(x[0] * kernel[j]));
    for (int64_t j = 0; is_complex && j < n; j++) {
        double *s = sum + 2 * j;
        const double *k = kernel + 2 * j;
        s[0] = single(s[0] + single(single(x[0] * k[0]) - single(x[1] * k[1])));
        s[1] = single(s[1] + single(single(x[0] * k[1]) + single(x[1] * k[0])));
    }
}

// sum[f] += x * kernel[f] over the output features of a group
static void add_products(int dtype, int64_t n, double *sum, const double *x, const double *kernel) {
    if (eval_wide_kind(dtype) != WIDE_I && dtype != DT_F64 && dtype != DT_C128) {
        add_products_single(dtype_is_complex(dtype), n, sum, x, kernel);
        return;
    }
    switch (eval_wide_kind(dtype)) {
    case WIDE_F:
        for (int64_t j = 0; j < n; j++)
            sum[j] += x[0] * kernel[j];
        return;
    case WIDE_I: {
        WideUint *s = (WideUint *)sum;
        const WideUint *xi = (const WideUint *)x, *k = (const WideUint *)kernel;
        for (int64_t j = 0; j < n; j++)
            s[j] += xi[0] * k[j];
        return;
    }
    case WIDE_C:
        for (int64_t j = 0; j < n; j++) {
            sum[2 * j] += x[0] * kernel[2 * j] - x[1] * kernel[2 * j + 1];
            sum[2 * j + 1] += x[0] * kernel[2 * j + 1] + x[1] * kernel[2 * j];
        }
    }
}

typedef struct ConvData {
    const uint8_t *in;
    const double *kernel; // wide, [kernel positions][input features of a group][output features]
    double *sum, *x;      // one output position: all features of a group; one input pixel
    uint8_t *out;
} ConvData;

// All output features of group g at one output position of batch n.
static void conv_position(const Conv *c, const ConvData *d, const int64_t *kdims, int64_t n,
                          const int64_t *o, int64_t g) {
    int64_t groups = c->fgroups * c->bgroups, outs = c->r->dims[c->rof], per = outs / groups;
    int64_t ins = c->r->dims[c->rif];
    int dtype = c->t->dtype, from = c->l->dtype;
    size_t w = eval_wide_bytes(dtype) / 8;
    int64_t batch = c->bgroups > 1 ? g * (c->l->dims[c->lb] / c->bgroups) + n : n;
    int64_t feature = c->fgroups > 1 ? g * ins : 0;
    const uint8_t *in = d->in + batch * c->lstep[c->lb] + feature * c->lstep[c->lf];
    memset(d->sum, 0, (size_t)per * w * 8);
    Box k;
    int64_t pos = 0;
    for (box_init(&k, c->ns, kdims); k.more; box_next(&k), pos++) {
        int64_t at = input_offset(c, o, k.at);
        if (at < 0)
            continue;
        load_as(from, dtype, in + at, c->lstep[c->lf], ins, d->x);
        for (int64_t i = 0; i < ins; i++)
            add_products(dtype, per, d->sum, d->x + (size_t)i * w,
                         d->kernel + (size_t)((pos * ins + i) * outs + g * per) * w);
    }
    uint8_t *out = d->out + n * c->tstep[c->ob] + g * per * c->tstep[c->of];
    for (int i = 0; i < c->ns; i++)
        out += o[i] * c->tstep[c->os[i]];
    for (int64_t j = 0; j < per; j++)
        eval_store_computed(dtype, out + j * c->tstep[c->of], 1, d->sum + (size_t)j * w);
}

static void conv_run(Eval *e, const Conv *c, const Tensor *in, Tensor *out) {
    int64_t kdims[OTRN_MAX_RANK], odims[OTRN_MAX_RANK], positions = 1;
    for (int i = 0; i < c->ns; i++) {
        positions *= kdims[i] = c->r->dims[c->rs[i]];
        odims[i] = c->t->dims[c->os[i]];
    }
    int64_t ins = c->r->dims[c->rif], outs = c->r->dims[c->rof], groups = c->fgroups * c->bgroups;
    size_t w = eval_wide_bytes(c->t->dtype) / 8;
    Arena *a = eval_open(e);
    double *kernel = ARENA_NEWN(a, double, (size_t)(positions * ins * outs) * w);
    Box b;
    int64_t pos = 0;
    for (box_init(&b, c->ns, kdims); b.more; box_next(&b), pos++)
        for (int64_t i = 0; i < ins; i++)
            load_as(c->r->dtype, c->t->dtype,
                    (const uint8_t *)in[1].data + kernel_offset(c, b.at) + i * c->rstep[c->rif],
                    c->rstep[c->rof], outs, kernel + (size_t)((pos * ins + i) * outs) * w);
    ConvData d = {.in = in[0].data, .kernel = kernel, .out = out[0].data};
    d.sum = ARENA_NEWN(a, double, (size_t)outs *w);
    d.x = ARENA_NEWN(a, double, (size_t)ins *w);
    for (int64_t n = 0; n < c->t->dims[c->ob]; n++)
        for (box_init(&b, c->ns, odims); b.more; box_next(&b))
            for (int64_t g = 0; g < groups; g++)
                conv_position(c, &d, kdims, n, b.at, g);
    eval_close(e);
}

void eval_convolution(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    Conv c = {.l = eval_type(e, in[0]), .r = eval_type(e, in[1]), .t = eval_type(e, out[0])};
    conv_read(e, id, &c);
    int64_t pad[2 * OTRN_MAX_RANK];
    if (eval_op_at(e, id)->code == HLO_DYNAMIC_CONV) { // the padding is an operand
        const HloType *p = eval_type(e, in[2]);
        eval_need(e, id,
                  dtype_is_int(p->dtype) && p->rank == 2 && p->dims[0] == c.ns && p->dims[1] == 2,
                  "padding has two entries per spatial dimension");
        eval_load(p->dtype, in[2].data, (int64_t)dtype_bytes(p->dtype), (size_t)(2 * c.ns), pad);
        c.pad = pad;
    } else
        c.pad = eval_ints(e, id, AK_PADDING, 2 * (uint32_t)c.ns, 0);
    conv_check(e, id, &c);
    out[0].data = eval_new(e, out[0].type);
    conv_run(e, &c, in, out);
}
