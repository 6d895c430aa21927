// SPDX-License-Identifier: Apache-2.0
// conv.c — convolution by direct loops.
//
// Both operands are packed first, lhs as [batch][space…][feature], rhs as [space…][input
// feature][output feature]: then every dimension numbering is the same loop. One output position at
// a time: for every kernel position that hits the input (row-major), its input features join a row
// of output features. Sums run over kernel positions, then input features, ascending.
#include "chip/gpsimd/dot.h"

typedef struct ConvAxis { // one spatial axis
    int64_t in, kernel, out, stride, low, in_gap, kernel_gap;
    bool reversed;
    int64_t out_stride; // of the result, in elements
} ConvAxis;

typedef struct ConvShape {
    int nspace;
    ConvAxis space[OTRN_MAX_RANK];
    int64_t batch, in_features;      // of the input
    int64_t kernel_in, out_features; // of the kernel
    int64_t out_batch, feature_groups, batch_groups;
    int64_t out_batch_stride, out_feature_stride;
    int64_t positions, kernel_positions; // products over space
    CopyAxis lhs[OTRN_MAX_RANK], rhs[OTRN_MAX_RANK];
} ConvShape;

typedef struct ConvDims {
    int64_t in_batch, in_feature, k_in, k_out, out_batch, out_feature;
    const int64_t *in_space, *k_space, *out_space;
} ConvDims;

static bool all_axes(int64_t a, int64_t b, const int64_t *space, int nspace) {
    int64_t list[OTRN_MAX_RANK];
    list[0] = a, list[1] = b;
    for (int i = 0; i < nspace; i++)
        list[2 + i] = space[i];
    return gp_axes_ok(list, (size_t)nspace + 2, nspace + 2);
}

static bool conv_dims(const Kern *k, int nspace, ConvDims *d) {
    size_t n = (size_t)nspace;
    d->in_batch = gp_int(k, AK_INPUT_BATCH_DIMENSION, -1);
    d->in_feature = gp_int(k, AK_INPUT_FEATURE_DIMENSION, -1);
    d->k_in = gp_int(k, AK_KERNEL_INPUT_FEATURE_DIMENSION, -1);
    d->k_out = gp_int(k, AK_KERNEL_OUTPUT_FEATURE_DIMENSION, -1);
    d->out_batch = gp_int(k, AK_OUTPUT_BATCH_DIMENSION, -1);
    d->out_feature = gp_int(k, AK_OUTPUT_FEATURE_DIMENSION, -1);
    d->in_space = gp_ints(k, AK_INPUT_SPATIAL_DIMENSIONS, n);
    d->k_space = gp_ints(k, AK_KERNEL_SPATIAL_DIMENSIONS, n);
    d->out_space = gp_ints(k, AK_OUTPUT_SPATIAL_DIMENSIONS, n);
    return d->in_space && d->k_space && d->out_space &&
           all_axes(d->in_batch, d->in_feature, d->in_space, nspace) &&
           all_axes(d->k_in, d->k_out, d->k_space, nspace) &&
           all_axes(d->out_batch, d->out_feature, d->out_space, nspace);
}

static int64_t int_at(const Kern *k, HloAttrKey key, size_t n, size_t i, int64_t dflt) {
    const int64_t *v = kern_attr(k, key) ? gp_ints(k, key, n) : NULL;
    return v ? v[i] : dflt;
}

static bool lists_ok(const Kern *k, size_t n) {
    static const HloAttrKey keys[] = {AK_WINDOW_STRIDES, AK_LHS_DILATION, AK_RHS_DILATION,
                                      AK_WINDOW_REVERSAL};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (kern_attr(k, keys[i]) && !gp_ints(k, keys[i], n))
            return false;
    return !kern_attr(k, AK_PADDING) || gp_ints(k, AK_PADDING, 2 * n);
}

// Output extent of an axis; false when it is not what the result says or a number is out of range.
static bool conv_axis(const Kern *k, size_t n, size_t i, ConvAxis *a) {
    int64_t high = int_at(k, AK_PADDING, 2 * n, 2 * i + 1, 0), whole, span;
    a->low = int_at(k, AK_PADDING, 2 * n, 2 * i, 0);
    a->stride = int_at(k, AK_WINDOW_STRIDES, n, i, 1);
    a->in_gap = int_at(k, AK_LHS_DILATION, n, i, 1);
    a->kernel_gap = int_at(k, AK_RHS_DILATION, n, i, 1);
    a->reversed = int_at(k, AK_WINDOW_REVERSAL, n, i, 0) != 0;
    if (a->stride < 1 || a->in_gap < 1 || a->kernel_gap < 1)
        return false;
    if (__builtin_mul_overflow(a->in ? a->in - 1 : 0, a->in_gap, &whole) ||
        __builtin_add_overflow(whole, a->in ? 1 : 0, &whole) ||
        __builtin_add_overflow(whole, a->low, &whole) ||
        __builtin_add_overflow(whole, high, &whole) ||
        __builtin_mul_overflow(a->kernel ? a->kernel - 1 : 0, a->kernel_gap, &span) ||
        __builtin_add_overflow(span, a->kernel ? 1 : 0, &span))
        return false;
    return a->out == (whole < span ? 0 : (whole - span) / a->stride + 1);
}

static bool conv_shape(const Kern *k, ConvShape *s) {
    const KTensor *in = &k->in[0], *kernel = &k->in[1], *out = &k->out[0];
    int nspace = in->rank - 2;
    ConvDims d;
    if (nspace < 0 || kernel->rank != in->rank || out->rank != in->rank ||
        !conv_dims(k, nspace, &d) || !lists_ok(k, (size_t)nspace))
        return false;
    *s = (ConvShape){.nspace = nspace, .positions = 1, .kernel_positions = 1};
    int64_t is[OTRN_MAX_RANK], ks[OTRN_MAX_RANK], os[OTRN_MAX_RANK];
    gp_strides(in, is);
    gp_strides(kernel, ks);
    gp_strides(out, os);
    s->batch = in->dims[d.in_batch], s->in_features = in->dims[d.in_feature];
    s->kernel_in = kernel->dims[d.k_in], s->out_features = kernel->dims[d.k_out];
    s->out_batch = out->dims[d.out_batch];
    s->out_batch_stride = os[d.out_batch], s->out_feature_stride = os[d.out_feature];
    s->feature_groups = gp_int(k, AK_FEATURE_GROUP_COUNT, 1);
    s->batch_groups = gp_int(k, AK_BATCH_GROUP_COUNT, 1);
    if (s->feature_groups < 1 || s->batch_groups < 1 ||
        out->dims[d.out_feature] != s->out_features || s->in_features % s->feature_groups ||
        s->kernel_in != s->in_features / s->feature_groups || s->out_features % s->feature_groups ||
        s->out_features % s->batch_groups || s->batch % s->batch_groups ||
        s->out_batch != s->batch / s->batch_groups ||
        (s->feature_groups > 1 && s->batch_groups > 1))
        return false;
    for (int i = 0; i < nspace; i++) {
        ConvAxis *a = &s->space[i];
        *a = (ConvAxis){.in = in->dims[d.in_space[i]],
                        .kernel = kernel->dims[d.k_space[i]],
                        .out = out->dims[d.out_space[i]],
                        .out_stride = os[d.out_space[i]]};
        if (!conv_axis(k, (size_t)nspace, (size_t)i, a))
            return false;
        s->positions *= a->out;
        s->kernel_positions *= a->kernel;
    }
    int64_t dense = 1, dense_k = 1;
    s->lhs[nspace + 1] = (CopyAxis){s->in_features, 1, is[d.in_feature]};
    s->rhs[nspace + 1] = (CopyAxis){s->out_features, 1, ks[d.k_out]};
    s->rhs[nspace] = (CopyAxis){s->kernel_in, s->out_features, ks[d.k_in]};
    dense = s->in_features, dense_k = s->out_features * s->kernel_in;
    for (int i = nspace - 1; i >= 0; i--) {
        s->lhs[i + 1] = (CopyAxis){s->space[i].in, dense, is[d.in_space[i]]};
        s->rhs[i] = (CopyAxis){s->space[i].kernel, dense_k, ks[d.k_space[i]]};
        dense *= s->space[i].in, dense_k *= s->space[i].kernel;
    }
    s->lhs[0] = (CopyAxis){s->batch, dense, is[d.in_batch]};
    return true;
}

bool gp_conv_types_ok(const Kern *k) {
    Lane lane;
    int type = mac_dtype(k);
    uint8_t from = (uint8_t)type;
    return type != DT_INVALID && mac_find(&gp_level_portable, type) &&
           lane_find(&lane, &gp_level_portable, HLO_CONVERT, type, &k->in[0].dtype, 1, NULL) &&
           lane_find(&lane, &gp_level_portable, HLO_CONVERT, type, &k->in[1].dtype, 1, NULL) &&
           lane_find(&lane, &gp_level_portable, HLO_CONVERT, k->out[0].dtype, &from, 1, NULL);
}

bool gp_conv_check(const Kern *k) {
    ConvShape s;
    return k->nin == 2 && k->nout == 1 && conv_shape(k, &s) && gp_conv_types_ok(k);
}

size_t gp_conv_scratch(const Kern *k, int threads) {
    (void)threads;
    int type = mac_dtype(k);
    return mac_pack_bytes(&k->in[0], type) + mac_pack_bytes(&k->in[1], type);
}

#define CONV_COLS LANE_BLOCK

typedef struct ConvJob {
    const GpCall *c;
    ConvShape s;
    MacFn *mac;
    Lane store;
    const char *lhs, *rhs;
    int64_t bytes;
} ConvJob;

// Input offset (in positions) that kernel position `at` meets at output `o`, or -1.
static int64_t conv_meet(const ConvShape *s, const int64_t *o, const int64_t *at) {
    int64_t offset = 0;
    for (int i = 0; i < s->nspace; i++) {
        const ConvAxis *a = &s->space[i];
        int64_t p = o[i] * a->stride + at[i] * a->kernel_gap - a->low;
        if (p < 0 || p % a->in_gap || p / a->in_gap >= a->in)
            return -1;
        offset = offset * a->in + p / a->in_gap;
    }
    return offset;
}

// Output features [col, col + cols) of one group at one output position.
static void conv_sums(const ConvJob *j, char *sums, int64_t lhs_batch, const int64_t *o,
                      int64_t in_from, int64_t col, size_t cols) {
    const ConvShape *s = &j->s;
    int64_t at[OTRN_MAX_RANK] = {0}, in_positions = 1;
    for (int i = 0; i < s->nspace; i++)
        in_positions *= s->space[i].in;
    memset(sums, 0, cols * (size_t)j->bytes);
    for (int64_t e = 0; e < s->kernel_positions; e++) {
        int64_t meet = conv_meet(s, o, at), tap = 0;
        for (int i = 0; i < s->nspace; i++)
            tap = tap * s->space[i].kernel +
                  (s->space[i].reversed ? s->space[i].kernel - 1 - at[i] : at[i]);
        if (meet >= 0) {
            const char *x =
                j->lhs + ((lhs_batch * in_positions + meet) * s->in_features + in_from) * j->bytes;
            const char *w = j->rhs + (tap * s->kernel_in * s->out_features + col) * j->bytes;
            j->mac(sums, x, w, (size_t)s->out_features, (size_t)s->kernel_in, cols);
        }
        for (int i = s->nspace - 1; i >= 0 && ++at[i] == s->space[i].kernel; i--)
            at[i] = 0;
    }
}

static void conv_positions(void *arg, size_t begin, size_t end) {
    const ConvJob *j = arg;
    const ConvShape *s = &j->s;
    _Alignas(64) char sums[CONV_COLS * 16];
    int64_t groups = s->feature_groups * s->batch_groups, width = s->out_features / groups;
    for (size_t p = begin; p < end; p++) {
        int64_t o[OTRN_MAX_RANK], rest = (int64_t)p % s->positions,
                                  batch = (int64_t)p / s->positions;
        int64_t out = batch * s->out_batch_stride;
        for (int i = s->nspace - 1; i >= 0; i--) {
            o[i] = rest % s->space[i].out;
            rest /= s->space[i].out;
            out += o[i] * s->space[i].out_stride;
        }
        for (int64_t g = 0; g < groups; g++) {
            int64_t lhs_batch = s->batch_groups > 1 ? g * s->out_batch + batch : batch;
            int64_t in_from = s->feature_groups > 1 ? g * s->kernel_in : 0;
            for (int64_t col = g * width; col < (g + 1) * width; col += CONV_COLS) {
                int64_t left = (g + 1) * width - col;
                size_t cols = (size_t)(left < CONV_COLS ? left : CONV_COLS);
                conv_sums(j, sums, lhs_batch, o, in_from, col, cols);
                mac_store(&j->store, j->c->out[0], out + col * s->out_feature_stride,
                          s->out_feature_stride, sums, cols);
            }
        }
    }
}

otrn_status gp_conv_run(const GpCall *c) {
    const Kern *k = c->k;
    int type = mac_dtype(k);
    uint8_t from = (uint8_t)type;
    ConvJob j = {
        .c = c, .mac = mac_find(gp_level(c->level), type), .bytes = (int64_t)dtype_bytes(type)};
    if (!k->out[0].elems)
        return OTRN_OK;
    conv_shape(k, &j.s);
    lane_find(&j.store, gp_level(c->level), HLO_CONVERT, k->out[0].dtype, &from, 1, NULL);
    lane_quiet(&j.store, gp_level(c->level), type);
    char *at = c->scratch;
    mac_pack(c, 0, type, j.s.nspace + 2, j.s.lhs, &at, &j.lhs);
    mac_pack(c, 1, type, j.s.nspace + 2, j.s.rhs, &at, &j.rhs);
    size_t work = (size_t)(j.s.kernel_positions * j.s.kernel_in * j.s.out_features);
    pool_run(c->pool, (size_t)(j.s.out_batch * j.s.positions), 32768 / (work + 1) + 1,
             conv_positions, &j);
    return OTRN_OK;
}
