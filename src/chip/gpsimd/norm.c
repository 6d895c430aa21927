// SPDX-License-Identifier: Apache-2.0
// norm.c — batch normalisation: training, inference, gradient.
//
// The tensor is [outer][feature][inner]. Each feature is one task; sums run in double over outer,
// then inner, and results are rounded once.
#include <math.h>

#include "chip/gpsimd/gp.h"

typedef struct Norm {
    const GpCall *c;
    int dtype;
    size_t bytes;
    int64_t outer, features, inner, count; // count: elements per feature
    double eps;
} Norm;

static bool norm_shape(const Kern *k, Norm *n) {
    const KTensor *x = &k->in[0];
    int64_t f = gp_int(k, AK_FEATURE_INDEX, -1);
    const HloAttr *eps = kern_attr(k, AK_EPSILON);
    if (f < 0 || f >= x->rank || !dtype_is_float(x->dtype) || !eps || eps->kind != HA_FLOAT)
        return false;
    *n = (Norm){.dtype = x->dtype,
                .bytes = dtype_bytes(x->dtype),
                .outer = 1,
                .inner = 1,
                .eps = (float)eps->f};
    n->features = x->dims[f];
    for (int d = 0; d < x->rank; d++)
        if (d != f)
            *(d < f ? &n->outer : &n->inner) *= x->dims[d];
    n->count = n->outer * n->inner;
    return true;
}

static bool is_feature(const KTensor *t, const Norm *n) {
    return t->rank == 1 && t->dtype == n->dtype && t->dims[0] == n->features;
}

static double get(const Norm *n, const void *p, int64_t i) {
    if (n->dtype == DT_F32)
        return ((const float *)p)[i];
    return dtype_to_f64(n->dtype, (const char *)p + i * (int64_t)n->bytes);
}
static void put(const Norm *n, void *p, int64_t i, double v) {
    dtype_from_f64(n->dtype, (char *)p + i * (int64_t)n->bytes, v);
}
static int64_t at(const Norm *n, int64_t f, int64_t i) { // element i of a feature
    return (i / n->inner * n->features + f) * n->inner + i % n->inner;
}

// --- training ----------------------------------------------------------------------------------

bool gp_bn_train_check(const Kern *k) {
    Norm n;
    return k->nin == 3 && k->nout == 3 && norm_shape(k, &n) && is_feature(&k->in[1], &n) &&
           is_feature(&k->in[2], &n) && gp_same_type(&k->in[0], &k->out[0]) &&
           is_feature(&k->out[1], &n) && is_feature(&k->out[2], &n);
}

static void apply(const Norm *n, int64_t f, double mean, double var, double scale, double offset) {
    double root = sqrt(var + n->eps);
    for (int64_t i = 0; i < n->count; i++) {
        int64_t e = at(n, f, i);
        put(n, n->c->out[0], e, scale * ((get(n, n->c->in[0], e) - mean) / root) + offset);
    }
}

static void train_features(void *arg, size_t begin, size_t end) {
    const Norm *n = arg;
    const GpCall *c = n->c;
    for (int64_t f = (int64_t)begin; f < (int64_t)end; f++) {
        double sum = 0, square = 0;
        for (int64_t i = 0; i < n->count; i++)
            sum += get(n, c->in[0], at(n, f, i));
        double mean = sum / (double)n->count;
        for (int64_t i = 0; i < n->count; i++) {
            double d = get(n, c->in[0], at(n, f, i)) - mean;
            square += d * d;
        }
        double var = square / (double)n->count;
        put(n, c->out[1], f, mean);
        put(n, c->out[2], f, var);
        apply(n, f, mean, var, get(n, c->in[1], f), get(n, c->in[2], f));
    }
}

static otrn_status norm_run(const GpCall *c, PoolFn *fn) {
    Norm n;
    norm_shape(c->k, &n);
    n.c = c;
    pool_run(c->pool, (size_t)n.features, 1, fn, &n);
    return gp_quiet(c);
}

otrn_status gp_bn_train_run(const GpCall *c) { return norm_run(c, train_features); }

// --- inference ---------------------------------------------------------------------------------

bool gp_bn_infer_check(const Kern *k) {
    Norm n;
    if (k->nin != 5 || k->nout != 1 || !norm_shape(k, &n) || !gp_same_type(&k->in[0], &k->out[0]))
        return false;
    for (int i = 1; i < 5; i++)
        if (!is_feature(&k->in[i], &n))
            return false;
    return true;
}

static void infer_features(void *arg, size_t begin, size_t end) {
    const Norm *n = arg;
    void *const *in = n->c->in;
    for (int64_t f = (int64_t)begin; f < (int64_t)end; f++)
        apply(n, f, get(n, in[3], f), get(n, in[4], f), get(n, in[1], f), get(n, in[2], f));
}

otrn_status gp_bn_infer_run(const GpCall *c) { return norm_run(c, infer_features); }

// --- gradient ----------------------------------------------------------------------------------

bool gp_bn_grad_check(const Kern *k) {
    Norm n;
    if (k->nin != 5 || k->nout != 3 || !norm_shape(k, &n) || !gp_same_type(&k->in[0], &k->out[0]) ||
        !gp_same_type(&k->in[4], &k->in[0]))
        return false;
    for (int i = 1; i < 4; i++)
        if (!is_feature(&k->in[i], &n))
            return false;
    return is_feature(&k->out[1], &n) && is_feature(&k->out[2], &n);
}

static void grad_features(void *arg, size_t begin, size_t end) {
    const Norm *n = arg;
    void *const *in = n->c->in, *const *out = n->c->out;
    double count = (double)n->count;
    for (int64_t f = (int64_t)begin; f < (int64_t)end; f++) {
        double scale = get(n, in[1], f), mean = get(n, in[2], f), var = get(n, in[3], f) + n->eps;
        double sum = 0, product = 0;
        for (int64_t i = 0; i < n->count; i++) {
            int64_t e = at(n, f, i);
            double dy = get(n, in[4], e);
            sum += dy;
            product += dy * (get(n, in[0], e) - mean);
        }
        for (int64_t i = 0; i < n->count; i++) {
            int64_t e = at(n, f, i);
            double centred = get(n, in[0], e) - mean;
            put(n, out[0], e,
                scale / sqrt(var) / count *
                    (count * get(n, in[4], e) - sum - centred * (product / var)));
        }
        put(n, out[1], f, product / sqrt(var));
        put(n, out[2], f, sum);
    }
}

otrn_status gp_bn_grad_run(const GpCall *c) { return norm_run(c, grad_features); }
