// SPDX-License-Identifier: Apache-2.0
// affine.c — reads affine forms off the operations that make a value.
#include "hlo/affine.h"

#include <assert.h>

#include "hlo/query.h"

#define DEPTH_MAX 16
#define TABLE_MAX 4096 // numbers of a constant that is looked at
#define FACTOR_MAX ((int64_t)1 << 31) // of each factor: their products do not overflow

bool affine_fits(int dtype, AffineRange x) {
    const DtypeRow *row = dtype_row(dtype);
    if (dtype == DT_I1)
        return x.least >= 0 && x.most <= 1;
    if (!dtype_is_int(dtype) && (!dtype_is_float(dtype) || row->bits < 16))
        return false;
    bool is_signed = row->cls != DC_UINT;
    __int128 top = (__int128)1 << (dtype_is_float(dtype) ? row->man_bits + 1 : is_signed ? row->bits - 1 : row->bits);
    return x.least >= (is_signed ? -top : 0) && x.most < top;
}

AffineRange affine_range(const AffineReader *r, const HloType *t, const Affine *a) {
    AffineRange x = {a->at.add, a->at.add};
    int64_t first = 0, last = 0;
    if (a->at.loop)
        r->counts(r, a->at.loop, &first, &last);
    assert(first <= last);
    x.least += (__int128)a->at.mul * (a->at.mul < 0 ? last : first);
    x.most += (__int128)a->at.mul * (a->at.mul < 0 ? first : last);
    for (int i = 0; i < t->rank; i++)
        *(a->by[i] < 0 ? &x.least : &x.most) += (__int128)a->by[i] * (t->dims[i] - 1);
    return x;
}

Affine affine_sum(const Affine *a, const Affine *b, int64_t sign) {
    assert(!a->at.loop || !b->at.loop || a->at.loop == b->at.loop);
    Affine out = {.at = {true, a->at.loop ? a->at.loop : b->at.loop, a->at.mul + sign * b->at.mul, a->at.add + sign * b->at.add}};
    for (int i = 0; i < OTRN_MAX_RANK; i++)
        out.by[i] = a->by[i] + sign * b->by[i];
    return out;
}

bool affine_compare(int64_t direction, int64_t x) {
    switch (direction) {
    case CMP_EQ:
        return x == 0;
    case CMP_NE:
        return x != 0;
    case CMP_LT:
        return x < 0;
    case CMP_LE:
        return x <= 0;
    case CMP_GT:
        return x > 0;
    default:
        return x >= 0;
    }
}

static bool is_number(const Affine *a) {
    bool alone = !a->at.loop;
    for (int i = 0; i < OTRN_MAX_RANK; i++)
        alone = alone && !a->by[i];
    return alone;
}

static bool is_small(const Affine *a) {
    bool small = a->at.mul >= -FACTOR_MAX && a->at.mul <= FACTOR_MAX && a->at.add >= -FACTOR_MAX && a->at.add <= FACTOR_MAX;
    for (int i = 0; i < OTRN_MAX_RANK; i++)
        small = small && a->by[i] >= -FACTOR_MAX && a->by[i] <= FACTOR_MAX;
    return small;
}

typedef struct Operand {
    Affine a;
    AffineRange x;
} Operand;

static bool product(const Affine *a, const Affine *b, Affine *out) {
    if (!is_number(b))
        return is_number(a) && product(b, a, out);
    *out = *a;
    out->at.mul *= b->at.add, out->at.add *= b->at.add;
    for (int i = 0; i < OTRN_MAX_RANK; i++)
        out->by[i] *= b->at.add;
    return true;
}

// The larger (or smaller) of two that never cross; NULL: they may.
static const Operand *extreme(const Operand *a, const Operand *b, bool larger) {
    bool over = a->x.least >= b->x.most, under = a->x.most <= b->x.least;
    return !over && !under ? NULL : over == larger ? a : b;
}

// The comparison comes out the same for all elements, always.
static bool outcome(const HloOp *op, const Operand *a, const Operand *b, Affine *out) {
    int64_t direction = hlo_int(op, AK_COMPARISON_DIRECTION, -1);
    __int128 least = a->x.least - b->x.most, most = a->x.most - b->x.least;
    bool low = affine_compare(direction, least < 0 ? -1 : least > 0), high = affine_compare(direction, most < 0 ? -1 : most > 0);
    bool ordered = direction != CMP_EQ && direction != CMP_NE;
    out->at.add = low;
    return low == high && (ordered || least >= 0 || most <= 0) && hlo_int(op, AK_COMPARE_TYPE, 0) != CMPT_TOTALORDER;
}

// A reshape that only adds and drops dimensions of 1, or has the same everywhere.
static bool reshaped(const HloType *from, const HloType *to, const Affine *a, Affine *out) {
    bool flat = true;
    for (int i = 0; i < from->rank; i++)
        flat = flat && !a->by[i];
    out->at = a->at;
    for (int i = 0, k = 0; i < from->rank && !flat; i++) {
        if (from->dims[i] == 1)
            continue;
        while (k < to->rank && to->dims[k] == 1)
            k++;
        if (k == to->rank || to->dims[k] != from->dims[i])
            return false;
        out->by[k++] = a->by[i];
    }
    return true;
}

static void spread(const HloOp *op, const Affine *a, Affine *out) {
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    out->at = a->at;
    for (uint32_t i = 0; i < n; i++)
        out->by[dims[i]] = a->by[i];
}

static void sliced(const HloOp *op, int rank, const Affine *a, Affine *out) {
    uint32_t n;
    const int64_t *from = hlo_ints(op, AK_START_INDICES, &n), *strides = hlo_ints(op, AK_STRIDES, &n);
    out->at = a->at;
    for (int i = 0; i < rank; i++) {
        out->at.add += a->by[i] * from[i];
        out->by[i] = a->by[i] * strides[i];
    }
}

static uint32_t operands_of(uint16_t code) { // of an operation that is read; 0: it is not
    switch (code) {
    case HLO_CONVERT:
    case HLO_RESHAPE:
    case HLO_BROADCAST_IN_DIM:
    case HLO_NEGATE:
    case HLO_SLICE:
        return 1;
    case HLO_ADD:
    case HLO_SUBTRACT:
    case HLO_MULTIPLY:
    case HLO_MAXIMUM:
    case HLO_MINIMUM:
    case HLO_COMPARE:
        return 2;
    case HLO_SELECT:
    case HLO_CLAMP:
        return 3;
    default:
        return 0;
    }
}

static bool of_operands(const Hlo *h, const HloOp *op, const Operand *in, Affine *out) {
    const Operand *one = NULL;
    switch (op->code) {
    case HLO_CONVERT:
        one = in;
        break;
    case HLO_RESHAPE:
        return reshaped(hlo_value_type(h, hlo_operand(h, op, 0)), hlo_value_type(h, op->results), &in->a, out);
    case HLO_BROADCAST_IN_DIM:
        spread(op, &in->a, out);
        return true;
    case HLO_SLICE:
        sliced(op, hlo_value_type(h, op->results)->rank, &in->a, out);
        return true;
    case HLO_NEGATE:
        *out = affine_sum(&(Affine){0}, &in->a, -1);
        return true;
    case HLO_ADD:
    case HLO_SUBTRACT:
        if (in[0].a.at.loop && in[1].a.at.loop && in[0].a.at.loop != in[1].a.at.loop)
            return false;
        *out = affine_sum(&in[0].a, &in[1].a, op->code == HLO_ADD ? 1 : -1);
        return true;
    case HLO_MULTIPLY:
        return product(&in[0].a, &in[1].a, out);
    case HLO_MAXIMUM:
    case HLO_MINIMUM:
        one = extreme(&in[0], &in[1], op->code == HLO_MAXIMUM);
        break;
    case HLO_COMPARE:
        return outcome(op, &in[0], &in[1], out);
    case HLO_SELECT:
        one = is_number(&in[0].a) ? in[0].a.at.add ? &in[1] : &in[2] : NULL;
        break;
    default:
        assert(op->code == HLO_CLAMP);
        one = extreme(&in[1], &in[0], true);
        one = one ? extreme(one, &in[2], false) : NULL;
    }
    if (one)
        *out = one->a;
    return one;
}

static bool read(const AffineReader *r, ValueId v, int depth, Affine *out);

// Pieces of which each goes on counting where the one before it ended.
static bool continued(const AffineReader *r, const HloOp *op, int depth, Affine *out) {
    int dim = (int)hlo_int(op, AK_DIMENSION, 0);
    int64_t done = 0, step = 0;
    for (uint32_t i = 0; i < op->noperands; i++) {
        const HloType *t = hlo_value_type(r->h, hlo_operand(r->h, op, i));
        Affine a;
        if (!read(r, hlo_operand(r->h, op, i), depth - 1, &a))
            return false;
        if (!i)
            *out = a;
        if (done <= 1) // a piece of one does not tell
            step = t->dims[dim] > 1 ? a.by[dim] : a.at.add - out->at.add;
        a.by[dim] = t->dims[dim] > 1 ? a.by[dim] : step;
        out->by[dim] = step;
        Affine apart = affine_sum(&a, out, -1);
        if ((a.at.loop && out->at.loop && a.at.loop != out->at.loop) || apart.at.mul || apart.at.add != step * done)
            return false;
        for (int k = 0; k < t->rank; k++)
            if (apart.by[k])
                return false;
        done += t->dims[dim];
    }
    return true;
}

static bool read_op(const AffineReader *r, const HloOp *op, int depth, Affine *out) {
    Operand in[3];
    if (op->code == HLO_IOTA) {
        out->by[hlo_int(op, AK_IOTA_DIMENSION, 0)] = 1;
        return true;
    }
    if (depth && op->code == HLO_CONCATENATE)
        return continued(r, op, depth, out);
    if (!depth || !op->noperands || op->noperands != operands_of(op->code))
        return false;
    for (uint32_t i = 0; i < op->noperands; i++) {
        if (!read(r, hlo_operand(r->h, op, i), depth - 1, &in[i].a))
            return false;
        in[i].x = affine_range(r, hlo_value_type(r->h, hlo_operand(r->h, op, i)), &in[i].a);
    }
    return of_operands(r->h, op, in, out);
}

static bool read_number(const HloType *t, const HloAttr *splat, Affine *out) {
    if (!dtype_is_float(t->dtype)) {
        out->at.add = dtype_to_i64(t->dtype, splat->data);
        return true;
    }
    double x = dtype_to_f64(t->dtype, splat->data);
    out->at.add = x > -FACTOR_MAX && x < FACTOR_MAX ? (int64_t)x : 0;
    return (double)out->at.add == x;
}

// A small constant whose numbers count.
static bool read_table(const Hlo *h, const HloType *t, const HloOp *op, Affine *out) {
    const HloAttr *a = hlo_attr(op, AK_VALUE);
    size_t bytes = dtype_bytes(t->dtype);
    if (!dtype_is_int(t->dtype) || t->elems > TABLE_MAX || a->kind != HA_TENSOR || hlo_type(h, a->type)->text || a->n != bytes * (size_t)t->elems)
        return false;
    const uint8_t *data = a->data;
    int64_t first = dtype_to_i64(t->dtype, data), stride = 1;
    out->at.add = first;
    for (int i = t->rank; i-- > 0; stride *= t->dims[i])
        out->by[i] = t->dims[i] > 1 ? dtype_to_i64(t->dtype, data + bytes * (size_t)stride) - first : 0;
    bool counts = is_small(out);
    for (int64_t k = 1; k < t->elems && counts; k++) {
        int64_t x = first, rest = k;
        for (int i = t->rank; i-- > 0; rest /= t->dims[i])
            x += out->by[i] * (rest % t->dims[i]);
        counts = dtype_to_i64(t->dtype, data + bytes * (size_t)k) == x;
    }
    return counts;
}

static bool read(const AffineReader *r, ValueId v, int depth, Affine *out) {
    const HloType *t = hlo_value_type(r->h, v);
    *out = (Affine){0};
    if (!hlo_has_elems(t) || dtype_is_complex(t->dtype))
        return false;
    if (r->known && r->known(r, v, out))
        return out->at.known;
    *out = (Affine){0};
    const HloAttr *splat = splat_value(r->h, v);
    const HloOp *op = hlo_def(r->h, v);
    bool table = op && op->code == HLO_CONSTANT;
    if (splat ? !read_number(t, splat, out) : table ? !read_table(r->h, t, op, out) : !op || !read_op(r, op, depth, out))
        return false;
    for (int i = 0; i < t->rank; i++)
        out->by[i] = t->dims[i] == 1 ? 0 : out->by[i];
    out->at.known = true;
    out->at.loop = out->at.mul ? out->at.loop : 0;
    return is_small(out) && affine_fits(t->dtype, affine_range(r, t, out));
}

bool affine_read(const AffineReader *r, ValueId v, Affine *out) { return read(r, v, DEPTH_MAX, out); }
