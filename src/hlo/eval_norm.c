// SPDX-License-Identifier: Apache-2.0
// eval_norm.c — batch_norm training, inference and gradient.
//
// With n elements per feature: mean = sum(x) / n, variance = sum((x - mean)²) / n (biased).
// Sums are double; each result element is rounded once.
#include <math.h>

#include "hlo/eval_in.h"

typedef struct Norm {
    const HloType *t;
    int64_t features, inner, per_feature; // element i belongs to feature i / inner % features
    double epsilon;
} Norm;

static Norm norm_read(Eval *e, OpId id, const Tensor *in, int vectors, const int *vector_at,
                      const Tensor *out, int results) {
    const HloOp *op = eval_op_at(e, id);
    const HloAttr *eps = hlo_attr(op, AK_EPSILON);
    Norm n = {.t = eval_type(e, in[0]), .inner = 1};
    int64_t axis = hlo_int(op, AK_FEATURE_INDEX, -1);
    eval_need(e, id, axis >= 0 && axis < n.t->rank && dtype_is_float(n.t->dtype),
              "feature_index must name an axis");
    n.epsilon = eps && eps->kind == HA_FLOAT ? (float)eps->f : 0;
    n.features = n.t->dims[axis];
    for (int i = (int)axis + 1; i < n.t->rank; i++)
        n.inner *= n.t->dims[i];
    n.per_feature = n.features ? n.t->elems / n.features : 0;
    for (int k = 0; k < vectors + results - 1; k++) {
        const HloType *v = eval_type(e, k < vectors ? in[vector_at[k]] : out[1 + k - vectors]);
        eval_need(e, id, v->dtype == n.t->dtype && v->rank == 1 && v->dims[0] == n.features,
                  "scale, offset, mean and variance have one element per feature");
    }
    eval_need(e, id, out[0].type == in[0].type, "operand and result must have one type");
    return n;
}

static double at(const Norm *n, Tensor t, int64_t i) {
    return dtype_to_f64(n->t->dtype,
                        (const uint8_t *)t.data + i * (int64_t)dtype_bytes(n->t->dtype));
}

static void put(const Norm *n, Tensor *t, int64_t i, double v) {
    eval_store_computed(n->t->dtype, (uint8_t *)t->data + i * (int64_t)dtype_bytes(n->t->dtype), 1, &v);
}

static int64_t feature_of(const Norm *n, int64_t i) {
    return i / n->inner % n->features;
}

// scale * (x - mean) / sqrt(variance + epsilon) + offset
static void normalize(const Norm *n, const Tensor *in, const double *mean, const double *var,
                      Tensor *out) {
    for (int64_t i = 0; i < n->t->elems; i++) {
        int64_t f = feature_of(n, i);
        double v = (at(n, in[0], i) - mean[f]) / sqrt(var[f] + n->epsilon);
        put(n, out, i, at(n, in[1], f) * v + at(n, in[2], f));
    }
}

void eval_bn_inference(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    Norm n = norm_read(e, id, in, 4, (int[]){1, 2, 3, 4}, out, 1);
    out[0].data = eval_new(e, out[0].type);
    Arena *mem = eval_open(e);
    double *mean = ARENA_NEWN(mem, double, (size_t)n.features),
           *var = ARENA_NEWN(mem, double, (size_t)n.features);
    for (int64_t f = 0; f < n.features; f++)
        mean[f] = at(&n, in[3], f), var[f] = at(&n, in[4], f);
    normalize(&n, in, mean, var, &out[0]);
    eval_close(e);
}

void eval_bn_training(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    Norm n = norm_read(e, id, in, 2, (int[]){1, 2}, out, 3);
    for (int k = 0; k < 3; k++)
        out[k].data = eval_new(e, out[k].type);
    Arena *mem = eval_open(e);
    double *mean = ARENA_NEWN(mem, double, (size_t)n.features),
           *var = ARENA_NEWN(mem, double, (size_t)n.features);
    for (int64_t i = 0; i < n.t->elems; i++)
        mean[feature_of(&n, i)] += at(&n, in[0], i);
    for (int64_t f = 0; f < n.features; f++)
        mean[f] /= (double)n.per_feature;
    for (int64_t i = 0; i < n.t->elems; i++) {
        double d = at(&n, in[0], i) - mean[feature_of(&n, i)];
        var[feature_of(&n, i)] += d * d;
    }
    for (int64_t f = 0; f < n.features; f++) {
        var[f] /= (double)n.per_feature;
        put(&n, &out[1], f, mean[f]);
        put(&n, &out[2], f, var[f]);
    }
    normalize(&n, in, mean, var, &out[0]);
    eval_close(e);
}

// Operands: x, scale, mean, variance, dy. With r = 1 / sqrt(variance + epsilon):
//   dx = scale r / n (n dy - sum(dy) - (x - mean) sum(dy (x - mean)) r²)
//   dscale = sum(dy (x - mean) r), doffset = sum(dy)
void eval_bn_grad(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    Norm n = norm_read(e, id, in, 3, (int[]){1, 2, 3}, out, 3);
    eval_need(e, id, in[4].type == in[0].type, "grad_output has the operand's type");
    for (int k = 0; k < 3; k++)
        out[k].data = eval_new(e, out[k].type);
    Arena *mem = eval_open(e);
    double *dy = ARENA_NEWN(mem, double, (size_t)n.features),
           *dyx = ARENA_NEWN(mem, double, (size_t)n.features);
    for (int64_t i = 0; i < n.t->elems; i++) {
        int64_t f = feature_of(&n, i);
        dy[f] += at(&n, in[4], i);
        dyx[f] += at(&n, in[4], i) * (at(&n, in[0], i) - at(&n, in[2], f));
    }
    double count = (double)n.per_feature;
    for (int64_t i = 0; i < n.t->elems; i++) {
        int64_t f = feature_of(&n, i);
        double v = at(&n, in[3], f) + n.epsilon, d = at(&n, in[0], i) - at(&n, in[2], f);
        double g = count * at(&n, in[4], i) - dy[f] - d * dyx[f] / v;
        put(&n, &out[0], i, at(&n, in[1], f) / sqrt(v) / count * g);
    }
    for (int64_t f = 0; f < n.features; f++) {
        put(&n, &out[1], f, dyx[f] / sqrt(at(&n, in[3], f) + n.epsilon));
        put(&n, &out[2], f, dy[f]);
    }
    eval_close(e);
}
