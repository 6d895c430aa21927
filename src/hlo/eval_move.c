// SPDX-License-Identifier: Apache-2.0
// eval_move.c — shape and data movement: every op here is one strided copy of a box.
#include "hlo/eval_in.h"

void eval_constant(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    (void)in;
    const HloAttr *v = hlo_attr(eval_op_at(e, id), AK_VALUE);
    eval_need(e, id, v && v->kind == HA_TENSOR && v->type == out[0].type,
              "the value must have the result's type");
    const HloType *t = eval_type(e, out[0]);
    size_t bytes = hlo_type_bytes(t);
    eval_need(e, id, v->n == bytes || v->n == dtype_bytes(t->dtype), "the value has a wrong size");
    if (v->n == bytes && bytes) { // read-only: values are never written after they are made
        out[0].data = (void *)(uintptr_t)v->data;
        return;
    }
    out[0].data = eval_new(e, out[0].type);
    hlo_tensor_expand(e->h, v, out[0].data);
}

void eval_reshape(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    eval_need(e, id, s->dtype == t->dtype && s->elems == t->elems,
              "operand and result must have as many elements of one type");
    out[0].data = eval_new(e, out[0].type);
    memcpy(out[0].data, in[0].data, hlo_type_bytes(t));
}

// Result axis axes[i] walks operand axis i; operand axes of size 1 repeat.
static void broadcast_along(Eval *e, OpId id, Tensor in, const int64_t *axes, Tensor *out) {
    const HloType *s = eval_type(e, in), *t = eval_type(e, *out);
    eval_need(e, id, s->dtype == t->dtype, "operand and result must have one element type");
    int64_t step[OTRN_MAX_RANK], from[OTRN_MAX_RANK] = {0}, to[OTRN_MAX_RANK];
    eval_strides(s, step);
    eval_strides(t, to);
    for (int i = 0; i < s->rank; i++) {
        eval_need(e, id, s->dims[i] == 1 || s->dims[i] == t->dims[axes[i]],
                  "an operand dimension is neither 1 nor the result's");
        from[axes[i]] = s->dims[i] == 1 ? 0 : step[i];
    }
    out->data = eval_new(e, out->type);
    eval_copy_box(dtype_bytes(t->dtype), t->rank, t->dims, out->data, to, in.data, from);
}

void eval_broadcast_in_dim(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    uint32_t n;
    const int64_t *axes = eval_axes(e, id, AK_BROADCAST_DIMENSIONS, t->rank, &n);
    eval_need(e, id, n == s->rank, "broadcast_dimensions must name one axis per operand axis");
    broadcast_along(e, id, in[0], axes, &out[0]);
}

void eval_broadcast(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    uint32_t n;
    hlo_ints(eval_op_at(e, id), AK_BROADCAST_SIZES, &n);
    eval_need(e, id, n + s->rank == t->rank, "the result has the new axes before the operand's");
    int64_t axes[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < s->rank; i++)
        axes[i] = n + i;
    broadcast_along(e, id, in[0], axes, &out[0]);
}

void eval_transpose(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    uint32_t n;
    const int64_t *perm = eval_axes(e, id, AK_PERMUTATION, s->rank, &n);
    eval_need(e, id, n == s->rank && t->rank == n && s->dtype == t->dtype,
              "permutation must name every axis once");
    int64_t step[OTRN_MAX_RANK], from[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    eval_strides(s, step);
    eval_strides(t, to);
    for (uint32_t i = 0; i < n; i++) {
        eval_need(e, id, t->dims[i] == s->dims[perm[i]], "result shape is not the permuted one");
        from[i] = step[perm[i]];
    }
    out[0].data = eval_new(e, out[0].type);
    eval_copy_box(dtype_bytes(t->dtype), t->rank, t->dims, out[0].data, to, in[0].data, from);
}

// Elements start, start + stride, … of each axis into the result.
static void take(Eval *e, OpId id, Tensor in, const int64_t *start, const int64_t *stride,
                 Tensor *out) {
    const HloType *s = eval_type(e, in), *t = eval_type(e, *out);
    eval_need(e, id, s->dtype == t->dtype && s->rank == t->rank, "rank or element type changed");
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK], base = 0;
    eval_strides(s, from);
    eval_strides(t, to);
    for (int i = 0; i < t->rank; i++) {
        int64_t last = t->dims[i] - 1;
        bool fits = start[i] >= 0 && stride[i] > 0 && start[i] <= s->dims[i] &&
                    (last < 0 || last <= (s->dims[i] - 1 - start[i]) / stride[i]);
        eval_need(e, id, fits && (last < 0 || start[i] < s->dims[i]), "slice out of bounds");
        base += start[i] * from[i];
        from[i] *= stride[i];
    }
    out->data = eval_new(e, out->type);
    if (t->elems)
        eval_copy_box(dtype_bytes(t->dtype), t->rank, t->dims, out->data, to,
                      (const uint8_t *)in.data + base, from);
}

static void need_slice_dims(Eval *e, OpId id, const HloType *t, const int64_t *start,
                            const int64_t *limit, const int64_t *stride) {
    for (int i = 0; i < t->rank; i++) {
        bool ok = start[i] >= 0 && limit[i] >= start[i] && stride[i] > 0;
        eval_need(e, id, ok && t->dims[i] == (limit[i] - start[i] + stride[i] - 1) / stride[i],
                  "result size is not ceil((limit - start) / stride)");
    }
}

void eval_slice(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]);
    const int64_t *start = eval_ints(e, id, AK_START_INDICES, t->rank, -1);
    const int64_t *limit = eval_ints(e, id, AK_LIMIT_INDICES, t->rank, -1);
    const int64_t *stride = eval_ints(e, id, AK_STRIDES, t->rank, 1);
    need_slice_dims(e, id, t, start, limit, stride);
    take(e, id, in[0], start, stride, &out[0]);
}

// Reads a one-dimensional integer operand into ints of the given count.
static void read_ints(Eval *e, OpId id, Tensor t, int n, int64_t *out) {
    const HloType *ty = eval_type(e, t);
    eval_need(e, id, dtype_is_int(ty->dtype) && ty->rank == 1 && ty->dims[0] == n,
              "shape operands are vectors of one integer per dimension");
    eval_load(ty->dtype, t.data, (int64_t)dtype_bytes(ty->dtype), (size_t)n, out);
}

void eval_real_dynamic_slice(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]);
    int64_t start[OTRN_MAX_RANK], limit[OTRN_MAX_RANK], stride[OTRN_MAX_RANK];
    read_ints(e, id, in[1], t->rank, start);
    read_ints(e, id, in[2], t->rank, limit);
    read_ints(e, id, in[3], t->rank, stride);
    need_slice_dims(e, id, t, start, limit, stride);
    take(e, id, in[0], start, stride, &out[0]);
}

void eval_reverse(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]);
    eval_need(e, id, in[0].type == out[0].type, "operand and result must have one type");
    uint32_t n;
    const int64_t *dims = eval_axes(e, id, AK_DIMENSIONS, t->rank, &n);
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK], base = 0;
    eval_strides(t, from);
    eval_strides(t, to);
    for (uint32_t i = 0; i < n; i++) {
        base += (t->dims[dims[i]] - 1) * from[dims[i]];
        from[dims[i]] = -from[dims[i]];
    }
    out[0].data = eval_new(e, out[0].type);
    if (t->elems)
        eval_copy_box(dtype_bytes(t->dtype), t->rank, t->dims, out[0].data, to,
                      (const uint8_t *)in[0].data + base, from);
}

void eval_exchange(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]);
    eval_need(e, id, in[0].type == out[0].type && t->rank && t->dims[t->rank - 1] % 2 == 0, "operand and result must have one type, of halves");
    int64_t half = t->dims[t->rank - 1] / 2;
    size_t bytes = (size_t)half * dtype_bytes(t->dtype);
    out[0].data = eval_new(e, out[0].type);
    for (int64_t i = 0; half && i < t->elems / half; i++)
        memcpy((uint8_t *)out[0].data + (size_t)i * bytes, (const uint8_t *)in[0].data + (size_t)(i ^ 1) * bytes, bytes);
}

void eval_concatenate(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *t = eval_type(e, out[0]);
    int64_t dim = hlo_int(op, AK_DIMENSION, -1), at = 0;
    eval_need(e, id, dim >= 0 && dim < t->rank, "dimension must name an axis");
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    eval_strides(t, to);
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    for (uint32_t k = 0; k < op->noperands; k++) {
        const HloType *s = eval_type(e, in[k]);
        bool ok = s->dtype == t->dtype && s->rank == t->rank && s->dims[dim] <= t->dims[dim] - at;
        for (int i = 0; ok && i < t->rank; i++)
            ok = i == dim || s->dims[i] == t->dims[i];
        eval_need(e, id, ok, "operand shapes do not add up to the result's");
        eval_strides(s, from);
        if (s->elems)
            eval_copy_box(dtype_bytes(t->dtype), t->rank, s->dims, dst + at * to[dim], to,
                          in[k].data, from);
        at += s->dims[dim];
    }
    eval_need(e, id, at == t->dims[dim], "operand shapes do not add up to the result's");
}

// The result is full of the padding value; then the operand elements that land inside are copied:
// element i of an axis goes to low + i * (interior + 1).
static void pad(Eval *e, OpId id, const Tensor *in, const int64_t *low, const int64_t *high,
                const int64_t *interior, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]), *v = eval_type(e, in[1]);
    eval_need(e, id,
              s->dtype == t->dtype && v->dtype == t->dtype && v->rank == 0 && s->rank == t->rank,
              "operand, padding value and result must have one element type");
    size_t elem = dtype_bytes(t->dtype);
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK], count[OTRN_MAX_RANK], zero[OTRN_MAX_RANK] = {0};
    int64_t src = 0, dst = 0;
    bool any = true;
    eval_strides(s, from);
    eval_strides(t, to);
    out[0].data = eval_new(e, out[0].type);
    eval_copy_box(elem, t->rank, t->dims, out[0].data, to, in[1].data, zero);
    for (int i = 0; i < t->rank; i++) {
        int64_t step, body, size;
        bool bad = interior[i] < 0 || __builtin_add_overflow(interior[i], 1, &step) ||
                   __builtin_mul_overflow(s->dims[i] - 1, step, &body) ||
                   __builtin_add_overflow(low[i], high[i], &size) ||
                   __builtin_add_overflow(size, s->dims[i] ? body + 1 : 0, &size);
        eval_need(e, id, !bad && t->dims[i] == (size > 0 ? size : 0),
                  "result size does not fit the padding");
        int64_t first = low[i] < 0 ? (-low[i] + step - 1) / step : 0; // first element inside
        int64_t room = t->dims[i] - 1 - low[i];                       // last offset inside
        int64_t last = room < 0 ? -1 : room / step;
        if (last > s->dims[i] - 1)
            last = s->dims[i] - 1;
        count[i] = last - first + 1;
        any = any && count[i] > 0;
        src += first * from[i];
        dst += (low[i] + first * step) * to[i];
        to[i] *= step;
    }
    if (any)
        eval_copy_box(elem, t->rank, count, (uint8_t *)out[0].data + dst, to,
                      (const uint8_t *)in[0].data + src, from);
}

void eval_pad(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    uint32_t rank = eval_type(e, out[0])->rank;
    pad(e, id, in, eval_ints(e, id, AK_EDGE_PADDING_LOW, rank, -1),
        eval_ints(e, id, AK_EDGE_PADDING_HIGH, rank, -1),
        eval_ints(e, id, AK_INTERIOR_PADDING, rank, -1), out);
}

void eval_dynamic_pad(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    int rank = eval_type(e, out[0])->rank;
    int64_t low[OTRN_MAX_RANK], high[OTRN_MAX_RANK], interior[OTRN_MAX_RANK];
    read_ints(e, id, in[2], rank, low);
    read_ints(e, id, in[3], rank, high);
    read_ints(e, id, in[4], rank, interior);
    pad(e, id, in, low, high, interior, out);
}

void eval_get_dimension_size(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    int64_t dim = hlo_int(eval_op_at(e, id), AK_DIMENSION, -1);
    eval_need(e, id, dim >= 0 && dim < s->rank, "dimension must name an axis");
    eval_need(e, id, t->rank == 0 && t->dtype == DT_I32, "the result is a scalar i32");
    out[0].data = eval_new(e, out[0].type);
    dtype_from_i64(DT_I32, out[0].data, s->dims[dim]);
}
