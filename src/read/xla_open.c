// SPDX-License-Identifier: Apache-2.0
// xla_open.c — shapes that HLO text leaves out, as its short form does: `y = add(x, x)`.
//
// Elements and ranks of the results are told here, sizes by the rules of hlo/infer.h once the operation is verified with its sizes
// open. What operands do not tell (convert, reshape, broadcast, slices …) has to be written, as XLA has it.
#include "base/pb.h"
#include "hlo/infer.h"
#include "hlo/query.h"
#include "hlo/verify.h"
#include "read/xla.h"

enum { SHAPE_TYPE = 2, SHAPE_DIMS = 3, SHAPE_MEMBERS = 4, TYPE_TUPLE = 13, TYPE_TOKEN = 17 };

typedef struct Open { // a result
    const Hlo *h;
    const HloOp *op;
    uint32_t k;
} Open;

static const HloType *in(const Open *o, uint32_t i) { return hlo_value_type(o->h, hlo_operand(o->h, o->op, i < o->op->noperands ? i : 0)); }

// --- how many ----------------------------------------------------------------------------------------

uint32_t xla_open_count(HloOpcode code, uint32_t noperands) {
    switch ((int)code) {
    case HLO_REDUCE:
    case HLO_REDUCE_WINDOW:
    case HLO_SCATTER:
        return noperands > 1 ? noperands / 2 : 1;
    case HLO_SORT:
    case HLO_WHILE:
    case HLO_OPTIMIZATION_BARRIER:
        return noperands;
    case HLO_BATCH_NORM_TRAINING:
    case HLO_BATCH_NORM_GRAD:
        return 3;
    case HLO_CHLO_TOP_K:
        return 2;
    default:
        return 1;
    }
}

// --- elements ----------------------------------------------------------------------------------------

static int fft_elements(const Open *o) {
    int dtype = in(o, 0)->dtype;
    int64_t type = hlo_int(o->op, AK_FFT_TYPE, 0);
    if (type == FFT_RFFT)
        return dtype == DT_F64 ? DT_C128 : DT_C64;
    return type == FFT_IRFFT ? verify_complex_part(dtype) : dtype;
}

static int region_elements(const Open *o) { // what the computation gives
    const HloRegion *r = o->op->nregions ? &o->h->regions.at[o->h->op_regions.at[o->op->regions]] : NULL;
    HloOp ret = r && r->ops.n ? *hlo_at((Hlo *)o->h, r->ops.at[r->ops.n - 1]) : (HloOp){0};
    return o->k < ret.noperands ? hlo_value_type(o->h, hlo_operand(o->h, &ret, o->k))->dtype : in(o, o->k)->dtype;
}

static int elements(const Open *o) {
    int dtype = in(o, 0)->dtype;
    switch ((int)o->op->code) {
    case HLO_COMPARE:
    case HLO_IS_FINITE:
        return DT_I1;
    case HLO_REAL:
    case HLO_IMAG:
    case HLO_ABS:
        return verify_complex_part(dtype);
    case HLO_COMPLEX:
        return dtype == DT_F64 ? DT_C128 : DT_C64;
    case HLO_SELECT:
        return in(o, 1)->dtype;
    case HLO_FFT:
        return fft_elements(o);
    case HLO_REDUCE:
    case HLO_REDUCE_WINDOW:
    case HLO_MAP:
        return region_elements(o);
    case HLO_GET_DIMENSION_SIZE:
        return DT_I32;
    case HLO_CHLO_TOP_K:
        return o->k ? DT_I32 : dtype;
    case HLO_SORT:
    case HLO_SCATTER:
    case HLO_OPTIMIZATION_BARRIER:
        return in(o, o->k)->dtype;
    default:
        return dtype;
    }
}

// --- ranks -------------------------------------------------------------------------------------------

static int64_t count(const Open *o, HloAttrKey key) {
    uint32_t n;
    hlo_ints(o->op, key, &n);
    return n;
}

// -1: operands do not tell.
static int64_t rank(const Open *o) {
    const HloType *a = in(o, 0), *b = in(o, 1);
    switch ((int)o->op->code) {
    case HLO_CONVERT:
    case HLO_REDUCE_PRECISION:
        return -1;
    case HLO_SELECT: // one flag, or bounds, may stand for all elements
    case HLO_CLAMP:
    case HLO_TRIANGULAR_SOLVE:
        return b->rank;
    case HLO_TRANSPOSE:
    case HLO_REVERSE:
    case HLO_PAD:
    case HLO_CONCATENATE:
    case HLO_FFT:
    case HLO_CHOLESKY:
    case HLO_MAP:
    case HLO_CONVOLUTION:
    case HLO_SELECT_AND_SCATTER:
    case HLO_BATCH_NORM_INFERENCE:
    case HLO_CHLO_TOP_K:
        return a->rank;
    case HLO_SORT:
    case HLO_SCATTER:
    case HLO_REDUCE_WINDOW:
        return in(o, o->k)->rank;
    case HLO_BATCH_NORM_TRAINING:
    case HLO_BATCH_NORM_GRAD:
        return o->k ? 1 : a->rank;
    case HLO_REDUCE:
        return a->rank - count(o, AK_DIMENSIONS);
    case HLO_DOT_GENERAL:
        return a->rank + b->rank - count(o, AK_LHS_BATCHING_DIMENSIONS) - 2 * count(o, AK_LHS_CONTRACTING_DIMENSIONS);
    case HLO_GATHER:
        return b->rank + count(o, AK_OFFSET_DIMS) - (hlo_int(o->op, AK_INDEX_VECTOR_DIM, 0) < b->rank);
    case HLO_GET_DIMENSION_SIZE:
        return 0;
    default:
        return hlo_is_elementwise(o->op) ? a->rank : -1;
    }
}

// --- all of it ---------------------------------------------------------------------------------------

static bool set_open(Hlo *h, Open o) {
    int64_t dims[OTRN_MAX_RANK], r = o.op->noperands && in(&o, 0)->kind == HT_TENSOR ? rank(&o) : -1;
    int dtype = r >= 0 && r <= OTRN_MAX_RANK ? elements(&o) : DT_INVALID;
    if (dtype == DT_INVALID)
        return false;
    for (int64_t d = 0; d < r; d++)
        dims[d] = HLO_DYNAMIC;
    h->values.at[o.op->results + o.k].type = hlo_type_tensor(h, dtype, (int)r, dims);
    return true;
}

static bool set_sizes(Hlo *h, Open o) {
    const HloType *t = hlo_value_type(h, o.op->results + o.k);
    int64_t dims[OTRN_MAX_RANK];
    int r = t->rank, dtype = t->dtype;
    for (int d = 0; d < r; d++)
        dims[d] = HLO_DYNAMIC;
    infer_dims(h, o.op, o.k, dims);
    TypeId type = hlo_type_tensor(h, dtype, r, dims);
    h->values.at[o.op->results + o.k].type = type;
    return !hlo_type(h, type)->dynamic;
}

static bool all_sizes(Xla *x, OpId id) {
    const HloOp op = *hlo_at(x->h, id);
    if (op.code == HLO_PARTITION_ID || op.code == HLO_REPLICA_ID || op.code == HLO_AFTER_ALL) {
        HloType token = {.kind = HT_TOKEN, .dtype = DT_TOKEN};
        x->h->values.at[op.results].type = op.code == HLO_AFTER_ALL ? hlo_type_intern(x->h, &token) : hlo_type_tensor(x->h, DT_UI32, 0, NULL);
        return true;
    }
    for (uint32_t k = 0; k < op.nresults; k++)
        if (!set_open(x->h, (Open){x->h, &op, k}))
            return false;
    hlo_verify_op(x->h, id);
    for (uint32_t k = 0; k < op.nresults; k++)
        if (!set_sizes(x->h, (Open){x->h, &op, k}))
            return false;
    return true;
}

void xla_open_close(Xla *x, OpId id, const char *opcode) {
    if (!all_sizes(x, id))
        xla_fail(x, OTRN_UNSUPPORTED, "the shape of the HLO instruction '%.60s' is left out, and its operands do not tell it", opcode);
}

// --- as messages -------------------------------------------------------------------------------------

static void put_array(const HloType *t, Buf *out) {
    const XlaKind *kind = t->kind == HT_TENSOR ? xla_kind(NULL, t->dtype) : NULL;
    pb_put_int(out, SHAPE_TYPE, kind ? kind->number : TYPE_TOKEN);
    if (kind)
        pb_put_ints(out, SHAPE_DIMS, t->dims, (uint32_t)t->rank);
}

Pb xla_open_tuple(Xla *x, const Pb *members, uint32_t n) {
    Buf out = {.arena = x->arena};
    pb_put_int(&out, SHAPE_TYPE, TYPE_TUPLE);
    for (uint32_t k = 0; k < n; k++)
        pb_put_bytes(&out, SHAPE_MEMBERS, members[k].at, members[k].n);
    return (Pb){out.at, out.n};
}

Pb xla_open_shape(Xla *x, XlaVals v) {
    Pb *members = ARENA_NEWN(x->arena, Pb, v.n + 1);
    for (uint32_t k = 0; k < v.n; k++) {
        Buf one = {.arena = x->arena};
        put_array(hlo_value_type(x->h, v.at[k]), &one);
        members[k] = (Pb){one.at, one.n};
    }
    return v.n == 1 ? members[0] : xla_open_tuple(x, members, v.n);
}
