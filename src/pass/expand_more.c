// SPDX-License-Identifier: Apache-2.0
// expand_more.c — more rare operations, written with common ones.
//
//   rng NORMAL          uniform numbers through erf_inv (hlo/eval_rng.c has the formula)
//   @ApproxTopK         a stable sort with the function it names, and the first elements: exact, so
//                       every recall target is met
//   @ragged_all_to_all  everybody gets all rows and, of the pieces meant for it, offsets and sizes; each row of its result is one of those, or stays
//   @mhlo.erf, …         XLA writes elementwise operations that StableHLO lacks so: the operation of that name
//   chlo.constant_like  a constant in the operand's shape
//   chlo.scan           a while loop over the slices of its inputs
//   chlo.ragged_dot     dot_general of the left side with all rows outside a group set to zero, for each group
//   chlo.broadcast_*    the operands broadcast to the result's shape, then the op of that name
#include "pass/expand.h"

#include <assert.h>
#include <string.h>

#include "base/num.h"
#include "hlo/coll.h"
#include "hlo/infer.h"

#define APPROX_TOP_K "ApproxTopK"

static void replace_result(Expand *x, uint32_t i, ValueId by) {
    walk_replace(&x->w, hlo_at(x->h, x->id)->results + i, by);
}

static TypeId value_type(const Expand *x, ValueId v) { return x->h->values.at[v].type; }

static TypeId with_dtype(Expand *x, TypeId shape, int dtype) {
    const HloType *t = hlo_type(x->h, shape);
    return hlo_type_tensor(x->h, dtype, t->rank, t->dims);
}

static ValueId constant(Expand *x, int dtype, double v) {
    TypeId scalar = hlo_type_tensor(x->h, dtype, 0, NULL);
    uint8_t bytes[16] = {0};
    if (dtype_is_float(dtype))
        dtype_from_f64(dtype, bytes, v);
    else
        dtype_from_i64(dtype, bytes, (int64_t)v);
    OpId id = expand_make(x, HLO_CONSTANT, 0, NULL, scalar);
    *hlo_attr_slot(x->h, id, AK_VALUE) = (HloAttr){.kind = HA_TENSOR, .type = scalar,
                                                   .n = (uint32_t)dtype_bytes(dtype),
                                                   .data = arena_dup(x->h->arena, bytes, sizeof bytes)};
    return expand_push(x, id);
}

static ValueId unary(Expand *x, HloOpcode code, ValueId a, TypeId type) {
    return expand_push(x, expand_make(x, code, 1, &a, type));
}

static ValueId binary(Expand *x, HloOpcode code, ValueId a, ValueId b) {
    return expand_push(x, expand_make(x, code, 2, (ValueId[]){a, b}, value_type(x, a)));
}

static ValueId convert(Expand *x, ValueId v, int dtype) {
    TypeId type = with_dtype(x, value_type(x, v), dtype);
    return type == value_type(x, v) ? v : unary(x, HLO_CONVERT, v, type);
}

static ValueId broadcast(Expand *x, ValueId v, TypeId type, const int64_t *dims, uint32_t n) {
    OpId id = expand_make(x, HLO_BROADCAST_IN_DIM, 1, &v, type);
    hlo_set_ints(x->h, id, AK_BROADCAST_DIMENSIONS, dims, n);
    return expand_push(x, id);
}

static ValueId compare(Expand *x, int direction, ValueId a, ValueId b) {
    OpId id = expand_make(x, HLO_COMPARE, 2, (ValueId[]){a, b}, with_dtype(x, value_type(x, a), DT_I1));
    *hlo_attr_slot(x->h, id, AK_COMPARISON_DIRECTION) = (HloAttr){.kind = HA_ENUM, .i = direction};
    *hlo_attr_slot(x->h, id, AK_COMPARE_TYPE) = (HloAttr){.kind = HA_ENUM, .i = CMPT_NOTYPE};
    return expand_push(x, id);
}

static ValueId iota(Expand *x, TypeId type, int64_t dim) {
    OpId id = expand_make(x, HLO_IOTA, 0, NULL, type);
    *hlo_attr_slot(x->h, id, AK_IOTA_DIMENSION) = (HloAttr){.kind = HA_INT, .i = dim};
    return expand_push(x, id);
}

// Ops made from here on go to a region: hold the list, then give it to the region.
static OpList list_begin(Expand *x) {
    OpList outer = x->w.out;
    x->w.out = (OpList){0};
    return outer;
}

static void list_end(Expand *x, RegionId r, OpList outer, const ValueId *results, uint32_t n) {
    assert(x->h->regions.at[r].ops.n == 0); // a region is filled once
    for (uint32_t i = 0; i < x->w.out.n; i++)
        hlo_region_push(x->h, r, x->w.out.at[i]);
    hlo_region_push(x->h, r, hlo_op(x->h, HLO_RETURN, hlo_at(x->h, x->id)->loc, n, results, 0, NULL));
    x->w.out = outer;
}

// --- rng -----------------------------------------------------------------------------------------

static bool expand_normal(Expand *x) {
    HloOp op = *hlo_at(x->h, x->id);
    if (hlo_int(&op, AK_RNG_DISTRIBUTION, 0) != RNGDIST_NORMAL)
        return false;
    TypeId type = value_type(x, op.results);
    int dtype = hlo_type(x->h, type)->dtype, wide = dtype == DT_F64 ? DT_F64 : DT_F32;
    TypeId wide_type = with_dtype(x, type, wide);
    ValueId a = hlo_operand(x->h, &op, 0), b = hlo_operand(x->h, &op, 1);
    ValueId low = constant(x, wide, wide == DT_F64 ? -1 + 0x1p-53 : -1 + 0x1p-24);
    ValueId in[3] = {low, constant(x, wide, 1), hlo_operand(x->h, &op, 2)};
    OpId draw = expand_make(x, HLO_RNG, 3, in, wide_type);
    *hlo_attr_slot(x->h, draw, AK_RNG_DISTRIBUTION) = (HloAttr){.kind = HA_ENUM, .i = RNGDIST_UNIFORM};
    ValueId z = unary(x, HLO_CHLO_ERF_INV, expand_push(x, draw), wide_type);
    z = binary(x, HLO_MULTIPLY, z, broadcast(x, constant(x, wide, 1.4142135623730951), wide_type, NULL, 0));
    z = binary(x, HLO_MULTIPLY, z, broadcast(x, convert(x, b, wide), wide_type, NULL, 0));
    z = binary(x, HLO_ADD, z, broadcast(x, convert(x, a, wide), wide_type, NULL, 0));
    replace_result(x, 0, convert(x, z, dtype));
    return true;
}

// --- top k by a function ---------------------------------------------------------------------------

static int64_t config_int(const HloOp *op, const char *name, int64_t absent) {
    const HloNamed *d = hlo_named_find(op->extra, op->nextra, "mhlo.backend_config");
    const HloAttr *dict = d ? &d->value : hlo_attr(op, AK_BACKEND_CONFIG);
    if (!dict || dict->kind != HA_DICT)
        return absent;
    const HloNamed *n = hlo_named_find(dict->dict, dict->n, name);
    return n && n->value.kind == HA_INT ? n->value.i : absent;
}

static ValueId first_elements(Expand *x, ValueId v, TypeId type) {
    static const int64_t zeros[OTRN_MAX_RANK];
    int64_t ones[OTRN_MAX_RANK];
    const HloType *t = hlo_type(x->h, type);
    for (int d = 0; d < t->rank; d++)
        ones[d] = 1;
    assert(t->rank == hlo_value_type(x->h, v)->rank);
    OpId id = expand_make(x, HLO_SLICE, 1, &v, type);
    hlo_set_ints(x->h, id, AK_START_INDICES, zeros, t->rank);
    hlo_set_ints(x->h, id, AK_LIMIT_INDICES, hlo_type(x->h, type)->dims, t->rank);
    hlo_set_ints(x->h, id, AK_STRIDES, ones, t->rank);
    return expand_push(x, id);
}

static bool expand_approx_top_k(Expand *x) {
    Hlo *h = x->h;
    HloOp op = *hlo_at(h, x->id);
    const HloAttr *list = hlo_attr(&op, AK_CALLED_COMPUTATIONS);
    uint32_t n = op.nresults;
    if (!n || op.noperands != 2 * n || !list || list->kind != HA_LIST || list->n != 1)
        return false;
    const HloFunc *f = list->list[0].kind == HA_SYM ? hlo_func_find(h, list->list[0].s) : NULL;
    if (!f || !f->body || h->regions.at[f->body].nargs != 2 * n)
        return false;
    const HloType *in = hlo_value_type(h, hlo_operand(h, &op, 0)), *out = hlo_value_type(h, op.results);
    if (in->rank != out->rank || !in->rank)
        return false;
    int64_t axis = config_int(&op, "reduction_dim", in->rank - 1);
    axis += axis < 0 ? in->rank : 0;
    for (int d = 0; d < in->rank; d++)
        if (out->dims[d] != in->dims[d] && (d != axis || out->dims[d] > in->dims[d]))
            return false;
    ValueId *operands = ARENA_NEWN(x->c->scratch, ValueId, n);
    TypeId *types = ARENA_NEWN(x->c->scratch, TypeId, 2 * n);
    for (uint32_t i = 0; i < n; i++) {
        operands[i] = hlo_operand(h, &op, i);
        types[i] = value_type(x, operands[i]);
    }
    OpId sort = hlo_op(h, HLO_SORT, op.loc, n, operands, n, types);
    *hlo_attr_slot(h, sort, AK_DIMENSION) = (HloAttr){.kind = HA_INT, .i = axis};
    *hlo_attr_slot(h, sort, AK_IS_STABLE) = (HloAttr){.kind = HA_BOOL, .i = 1};
    for (uint32_t i = 0; i < 2 * n; i++)
        types[i] = h->values.at[h->regions.at[f->body].args + i].type;
    inline_body(x->c, f, hlo_op_add_region(h, sort, 2 * n, types));
    ValueId sorted = expand_push(x, sort);
    for (uint32_t i = 0; i < n; i++)
        replace_result(x, i, first_elements(x, sorted + i, value_type(x, op.results + i)));
    return true;
}

// --- ragged all to all -----------------------------------------------------------------------------

typedef struct RaggedSend {
    HloAttr groups;
    int64_t channel, devices, pieces; // devices of a group, pieces that come to one of them
} RaggedSend;

static ValueId collective(Expand *x, const RaggedSend *s, OpId id) {
    *hlo_attr_slot(x->h, id, AK_CHANNEL_ID) = (HloAttr){.kind = HA_INT, .i = s->channel};
    *hlo_attr_slot(x->h, id, AK_REPLICA_GROUPS) = s->groups;
    return expand_push(x, id);
}

// Of a list that has an entry for each piece that is sent: the entries of those that come.
static ValueId of_arrivals(Expand *x, const RaggedSend *s, ValueId list) {
    list = convert(x, list, DT_I32);
    OpId id = expand_make(x, HLO_ALL_TO_ALL, 1, &list, value_type(x, list));
    *hlo_attr_slot(x->h, id, AK_SPLIT_DIMENSION) = *hlo_attr_slot(x->h, id, AK_CONCAT_DIMENSION) = (HloAttr){.kind = HA_INT, .i = 0};
    *hlo_attr_slot(x->h, id, AK_SPLIT_COUNT) = (HloAttr){.kind = HA_INT, .i = s->devices};
    return collective(x, s, id);
}

// The rows of all devices of the group, one device's behind the other's.
static ValueId all_rows(Expand *x, const RaggedSend *s, ValueId rows) {
    HloType t = *hlo_value_type(x->h, rows);
    int64_t dims[OTRN_MAX_RANK];
    memcpy(dims, t.dims, t.rank * sizeof *dims);
    dims[0] *= s->devices;
    OpId id = expand_make(x, HLO_ALL_GATHER, 1, &rows, hlo_type_tensor(x->h, t.dtype, t.rank, dims));
    *hlo_attr_slot(x->h, id, AK_ALL_GATHER_DIM) = (HloAttr){.kind = HA_INT, .i = 0};
    *hlo_attr_slot(x->h, id, AK_USE_GLOBAL_DEVICE_IDS) = (HloAttr){.kind = HA_BOOL, .i = s->channel > 0};
    return collective(x, s, id);
}

// For each row of the result the row of all rows that comes there, -1: none. A later piece wins over an earlier one.
static ValueId ragged_sources(Expand *x, const RaggedSend *s, const HloOp *op, int64_t nrows, int64_t nout) {
    static const int64_t along = 1;
    Hlo *h = x->h;
    TypeId list = hlo_type_tensor(h, DT_I32, 1, &s->pieces), table = hlo_type_tensor(h, DT_I32, 2, (int64_t[]){nout, s->pieces});
    assert(s->devices > 0 && s->pieces % s->devices == 0);
    ValueId start = of_arrivals(x, s, hlo_operand(h, op, 2)), size = of_arrivals(x, s, hlo_operand(h, op, 3));
    ValueId place = of_arrivals(x, s, hlo_operand(h, op, 4));
    ValueId each = broadcast(x, constant(x, DT_I32, (double)(s->pieces / s->devices)), list, NULL, 0);
    ValueId sender = binary(x, HLO_DIVIDE, iota(x, list, 0), each);
    ValueId shift = binary(x, HLO_MULTIPLY, sender, broadcast(x, constant(x, DT_I32, (double)nrows), list, NULL, 0));
    shift = binary(x, HLO_ADD, shift, binary(x, HLO_SUBTRACT, start, place));
    ValueId row = iota(x, table, 0), none = constant(x, DT_I32, -1), end = binary(x, HLO_ADD, place, size);
    ValueId after = compare(x, CMP_GE, row, broadcast(x, place, table, &along, 1));
    ValueId before = compare(x, CMP_LT, row, broadcast(x, end, table, &along, 1));
    ValueId in[3] = {binary(x, HLO_AND, after, before), binary(x, HLO_ADD, row, broadcast(x, shift, table, &along, 1)),
                     broadcast(x, none, table, NULL, 0)};
    ValueId from = expand_push(x, expand_make(x, HLO_SELECT, 3, in, table));
    OpId best = expand_make(x, HLO_REDUCE, 2, (ValueId[]){from, none}, hlo_type_tensor(h, DT_I32, 1, &nout));
    hlo_set_ints(h, best, AK_DIMENSIONS, &along, 1);
    hlo_op_add_combiner(h, best, HLO_MAXIMUM, hlo_type_tensor(h, DT_I32, 0, NULL));
    walk_grow(&x->w);
    return expand_push(x, best);
}

static ValueId take_rows(Expand *x, ValueId rows, ValueId from, TypeId type) {
    HloType t = *hlo_value_type(x->h, rows);
    int64_t sizes[OTRN_MAX_RANK], offsets[OTRN_MAX_RANK];
    for (int d = 0; d < t.rank; d++)
        sizes[d] = d ? t.dims[d] : 1, offsets[d] = d + 1;
    OpId id = expand_make(x, HLO_GATHER, 2, (ValueId[]){rows, from}, type);
    hlo_set_ints(x->h, id, AK_OFFSET_DIMS, offsets, t.rank - 1u);
    hlo_set_ints(x->h, id, AK_COLLAPSED_SLICE_DIMS, (int64_t[]){0}, 1);
    hlo_set_ints(x->h, id, AK_START_INDEX_MAP, (int64_t[]){0}, 1);
    hlo_set_ints(x->h, id, AK_SLICE_SIZES, sizes, t.rank);
    hlo_set_ints(x->h, id, AK_OPERAND_BATCHING_DIMS, NULL, 0);
    hlo_set_ints(x->h, id, AK_START_INDICES_BATCHING_DIMS, NULL, 0);
    *hlo_attr_slot(x->h, id, AK_INDEX_VECTOR_DIM) = (HloAttr){.kind = HA_INT, .i = 1};
    *hlo_attr_slot(x->h, id, AK_INDICES_ARE_SORTED) = (HloAttr){.kind = HA_BOOL, .i = 0};
    return expand_push(x, id);
}

static bool expand_ragged_all_to_all(Expand *x) {
    static const int64_t along = 0;
    Hlo *h = x->h;
    HloOp op = *hlo_at(h, x->id);
    RaggedSend s;
    bool ok = coll_ragged(h, &op, &s.groups, &s.channel);
    assert(ok); // verified
    (void)ok;
    ValueId rows = hlo_operand(h, &op, 0), output = hlo_operand(h, &op, 1);
    TypeId type = value_type(x, output);
    s.devices = s.groups.cols, s.pieces = hlo_value_type(h, hlo_operand(h, &op, 2))->dims[0];
    int64_t nrows = hlo_value_type(h, rows)->dims[0], nout = hlo_type(h, type)->dims[0];
    if (!hlo_value_type(h, rows)->elems || !hlo_type(h, type)->elems) {
        replace_result(x, 0, output);
        return true;
    }
    if (s.devices * nrows > INT32_MAX || nout > INT32_MAX)
        hlo_fail(h, x->id, OTRN_CAPACITY, "the rows of %lld devices are more than 32 bits count", (long long)s.devices);
    ValueId from = ragged_sources(x, &s, &op, nrows, nout);
    ValueId comes = compare(x, CMP_GE, from, broadcast(x, constant(x, DT_I32, 0), value_type(x, from), NULL, 0));
    ValueId in[3] = {broadcast(x, comes, with_dtype(x, type, DT_I1), &along, 1), take_rows(x, all_rows(x, &s, rows), from, type), output};
    replace_result(x, 0, expand_push(x, expand_make(x, HLO_SELECT, 3, in, type)));
    return true;
}

// --- chlo.scan -----------------------------------------------------------------------------------

typedef struct Scan {
    HloOp op;
    uint32_t ninputs, ncarries, noutputs;
    int64_t axis, size;
    bool reverse;
    RegionId body;
} Scan;

static void scan_read(Expand *x, Scan *s) {
    s->op = *hlo_at(x->h, x->id);
    uint32_t n;
    const int64_t *segments = hlo_ints(&s->op, AK_OPERAND_SEGMENT_SIZES, &n);
    s->ninputs = (uint32_t)segments[0];
    s->ncarries = (uint32_t)segments[1];
    s->noutputs = s->op.nresults - s->ncarries;
    s->axis = hlo_int(&s->op, AK_DIMENSION, 0);
    s->reverse = hlo_int(&s->op, AK_IS_REVERSE, 0);
    s->size = hlo_int(&s->op, AK_SCAN_DIM_SIZE, -1);
    s->body = x->h->op_regions.at[s->op.regions];
    if (s->ninputs + s->noutputs) {
        ValueId v = s->ninputs ? hlo_operand(x->h, &s->op, 0) : s->op.results;
        s->size = hlo_value_type(x->h, v)->dims[s->axis];
    }
    if (s->size < 0)
        hlo_fail(x->h, x->id, OTRN_VERIFY, "without inputs and outputs it needs scan_dim_size");
}

// Starts of a slice along the axis: zeros, and `at` there.
static void slice_starts(Expand *x, const Scan *s, int rank, ValueId at, ValueId zero, ValueId *starts) {
    (void)x;
    for (int d = 0; d < rank; d++)
        starts[d] = d == s->axis ? at : zero;
}

static ValueId scan_slice(Expand *x, const Scan *s, ValueId v, ValueId at, ValueId zero) {
    HloType t = *hlo_value_type(x->h, v);
    int64_t sizes[OTRN_MAX_RANK], left[OTRN_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < t.rank; d++) {
        sizes[d] = d == s->axis ? 1 : t.dims[d];
        if (d != s->axis)
            left[rank++] = t.dims[d];
    }
    ValueId in[OTRN_MAX_RANK + 1] = {v};
    slice_starts(x, s, t.rank, at, zero, in + 1);
    OpId id = expand_make(x, HLO_DYNAMIC_SLICE, (uint32_t)t.rank + 1, in,
                          hlo_type_tensor(x->h, t.dtype, t.rank, sizes));
    hlo_set_ints(x->h, id, AK_SLICE_SIZES, sizes, t.rank);
    return unary(x, HLO_RESHAPE, expand_push(x, id), hlo_type_tensor(x->h, t.dtype, rank, left));
}

static ValueId scan_update(Expand *x, const Scan *s, ValueId into, ValueId slice, ValueId at, ValueId zero) {
    HloType t = *hlo_value_type(x->h, into);
    int64_t sizes[OTRN_MAX_RANK];
    for (int d = 0; d < t.rank; d++)
        sizes[d] = d == s->axis ? 1 : t.dims[d];
    ValueId in[OTRN_MAX_RANK + 2] = {into};
    in[1] = unary(x, HLO_RESHAPE, slice, hlo_type_tensor(x->h, t.dtype, t.rank, sizes));
    slice_starts(x, s, t.rank, at, zero, in + 2);
    return expand_push(x, expand_make(x, HLO_DYNAMIC_UPDATE_SLICE, (uint32_t)t.rank + 2, in,
                                      value_type(x, into)));
}

// args: the counter, the outputs so far, the carries.
static void scan_body(Expand *x, const Scan *s, RegionId to, ValueId *results) {
    Hlo *h = x->h;
    ValueId args = h->regions.at[to].args, body_args = h->regions.at[s->body].args;
    ValueId one = constant(x, DT_I64, 1), zero = constant(x, DT_I64, 0);
    ValueId at = s->reverse ? binary(x, HLO_SUBTRACT, constant(x, DT_I64, (double)(s->size - 1)), args) : args;
    for (uint32_t i = 0; i < s->ninputs; i++)
        walk_replace(&x->w, body_args + i, scan_slice(x, s, hlo_operand(h, &s->op, i), at, zero));
    for (uint32_t i = 0; i < s->ncarries; i++)
        walk_replace(&x->w, body_args + s->ninputs + i, args + 1 + s->noutputs + i);
    assert(h->regions.at[s->body].nargs == s->ninputs + s->ncarries);
    walk_region(&x->w, s->body);
    uint32_t n = h->regions.at[s->body].ops.n;
    for (uint32_t i = 0; i + 1 < n; i++)
        expand_push(x, h->regions.at[s->body].ops.at[i]);
    HloOp ret = *hlo_at(h, h->regions.at[s->body].ops.at[n - 1]);
    assert(ret.noperands == s->noutputs + s->ncarries);
    results[0] = binary(x, HLO_ADD, args, one);
    for (uint32_t i = 0; i < s->noutputs; i++)
        results[1 + i] = scan_update(x, s, args + 1 + i, hlo_operand(h, &ret, i), at, zero);
    for (uint32_t i = 0; i < s->ncarries; i++)
        results[1 + s->noutputs + i] = hlo_operand(h, &ret, s->noutputs + i);
}

static bool expand_scan(Expand *x) {
    Hlo *h = x->h;
    Scan s;
    scan_read(x, &s);
    uint32_t n = 1 + s.op.nresults;
    ValueId *init = ARENA_NEWN(x->c->scratch, ValueId, n), *results = ARENA_NEWN(x->c->scratch, ValueId, n);
    TypeId *types = ARENA_NEWN(x->c->scratch, TypeId, n);
    init[0] = constant(x, DT_I64, 0);
    for (uint32_t i = 0; i < s.noutputs; i++) {
        TypeId type = value_type(x, s.op.results + i);
        ValueId zero = expand_zero(x, hlo_type_tensor(h, hlo_type(h, type)->dtype, 0, NULL));
        init[1 + i] = broadcast(x, zero, type, NULL, 0);
    }
    for (uint32_t i = 0; i < s.ncarries; i++)
        init[1 + s.noutputs + i] = hlo_operand(h, &s.op, s.ninputs + i);
    for (uint32_t i = 0; i < n; i++)
        types[i] = value_type(x, init[i]);
    OpId loop = hlo_op(h, HLO_WHILE, s.op.loc, n, init, n, types);
    RegionId cond = hlo_op_add_region(h, loop, n, types), body = hlo_op_add_region(h, loop, n, types);
    walk_grow(&x->w);
    OpList outer = list_begin(x);
    ValueId go = compare(x, CMP_LT, h->regions.at[cond].args, constant(x, DT_I64, (double)s.size));
    list_end(x, cond, outer, &go, 1);
    outer = list_begin(x);
    scan_body(x, &s, body, results);
    list_end(x, body, outer, results, n);
    ValueId out = expand_push(x, loop);
    for (uint32_t i = 0; i < s.op.nresults; i++)
        replace_result(x, i, out + 1 + i);
    return true;
}

// --- chlo.constant_like ----------------------------------------------------------------------------

static bool expand_constant_like(Expand *x) {
    HloOp op = *hlo_at(x->h, x->id);
    const HloAttr *value = hlo_attr(&op, AK_LIKE_VALUE);
    TypeId type = value_type(x, op.results);
    int dtype = hlo_type(x->h, type)->dtype;
    uint8_t bytes[16] = {0};
    if (value->kind == HA_OPAQUE) { // "#complex.number<:f32 1.0, 2.0>"
        const char *s = value->s + strcspn(value->s, " ");
        double parts[2] = {0};
        for (int i = 0; i < 2; i++) {
            s += strspn(s, " ,");
            const char *after = num_parse_f64(s, s + strlen(s), &parts[i]);
            if (after == s)
                hlo_fail(x->h, x->id, OTRN_UNSUPPORTED, "the value %.100s", value->s);
            s = after;
        }
        int part = dtype == DT_C64 ? DT_F32 : DT_F64;
        dtype_from_f64(part, bytes, parts[0]);
        dtype_from_f64(part, bytes + dtype_bytes(part), parts[1]);
    } else if (value->kind == HA_FLOAT) {
        dtype_from_f64(dtype, bytes, value->f);
    } else {
        dtype_from_i64(dtype, bytes, value->i);
    }
    OpId id = expand_make(x, HLO_CONSTANT, 0, NULL, type);
    bool some = hlo_type(x->h, type)->elems != 0;
    *hlo_attr_slot(x->h, id, AK_VALUE) = (HloAttr){.kind = HA_TENSOR, .type = type, .n = some ? (uint32_t)dtype_bytes(dtype) : 0,
                                                   .data = arena_dup(x->h->arena, bytes, sizeof bytes)};
    replace_result(x, 0, expand_push(x, id));
    return true;
}

// --- chlo.ragged_dot -------------------------------------------------------------------------------

typedef struct Ragged {
    HloOp op;
    const int64_t *lb, *rb, *lc, *rc, *ragged, *group;
    uint32_t nb, nrb, nc, nrc, nragged, ngroup;
    int64_t prefix[OTRN_MAX_RANK]; // dimensions of the left side along which group sizes may differ
} Ragged;

static bool among(const int64_t *v, uint32_t n, int64_t x) {
    for (uint32_t i = 0; i < n; i++)
        if (v[i] == x)
            return true;
    return false;
}

static void ragged_read(Expand *x, Ragged *r) {
    r->op = *hlo_at(x->h, x->id);
    r->lb = hlo_ints(&r->op, AK_LHS_BATCHING_DIMENSIONS, &r->nb);
    r->rb = hlo_ints(&r->op, AK_RHS_BATCHING_DIMENSIONS, &r->nrb);
    r->lc = hlo_ints(&r->op, AK_LHS_CONTRACTING_DIMENSIONS, &r->nc);
    r->rc = hlo_ints(&r->op, AK_RHS_CONTRACTING_DIMENSIONS, &r->nrc);
    r->ragged = hlo_ints(&r->op, AK_LHS_RAGGED_DIMENSIONS, &r->nragged);
    r->group = hlo_ints(&r->op, AK_RHS_GROUP_DIMENSIONS, &r->ngroup);
    const HloType *l = hlo_value_type(x->h, hlo_operand(x->h, &r->op, 0));
    const HloType *g = hlo_value_type(x->h, hlo_operand(x->h, &r->op, 2));
    if (l->rank >= OTRN_MAX_RANK || g->rank >= OTRN_MAX_RANK)
        hlo_fail(x->h, x->id, OTRN_CAPACITY, "groups add a dimension beyond OTRN_MAX_RANK (%d)", OTRN_MAX_RANK);
    infer_ragged_prefix(&r->op, l->rank, r->prefix);
}

// Sums of the group sizes up to and with each group: [.., g].
static ValueId group_ends(Expand *x, ValueId sizes) {
    Hlo *h = x->h;
    HloType t = *hlo_value_type(h, sizes);
    int64_t dims[OTRN_MAX_RANK], map[OTRN_MAX_RANK], last = t.rank;
    for (int d = 0; d < t.rank; d++)
        dims[d] = t.dims[d], map[d] = d == t.rank - 1 ? last : d;
    dims[last] = t.dims[t.rank - 1];
    TypeId square = hlo_type_tensor(h, t.dtype, t.rank + 1, dims); // [.., g, g']
    TypeId scalar = hlo_type_tensor(h, t.dtype, 0, NULL), scalars[2] = {scalar, scalar};
    ValueId upto = compare(x, CMP_LE, iota(x, square, last), iota(x, square, last - 1));
    ValueId zero = expand_zero(x, scalar), wide = broadcast(x, sizes, square, map, t.rank);
    ValueId in[3] = {upto, wide, broadcast(x, zero, square, NULL, 0)};
    ValueId kept = expand_push(x, expand_make(x, HLO_SELECT, 3, in, square));
    OpId sum = expand_make(x, HLO_REDUCE, 2, (ValueId[]){kept, zero}, value_type(x, sizes));
    hlo_set_ints(x->h, sum, AK_DIMENSIONS, &last, 1);
    RegionId body = hlo_op_add_region(h, sum, 2, scalars);
    ValueId args = h->regions.at[body].args;
    walk_grow(&x->w);
    OpList outer = list_begin(x);
    ValueId total = binary(x, HLO_ADD, args, args + 1);
    list_end(x, body, outer, &total, 1);
    return expand_push(x, sum);
}

// The left side once for each group, [g, lhs…], zero outside the group's part of the ragged dimension.
static ValueId left_by_group(Expand *x, const Ragged *r) {
    Hlo *h = x->h;
    ValueId lhs = hlo_operand(h, &r->op, 0), sizes = hlo_operand(h, &r->op, 2);
    HloType l = *hlo_value_type(h, lhs), g = *hlo_value_type(h, sizes);
    int64_t dims[OTRN_MAX_RANK], map[OTRN_MAX_RANK], size_map[OTRN_MAX_RANK];
    dims[0] = g.dims[g.rank - 1];
    for (int d = 0; d < l.rank; d++)
        dims[d + 1] = l.dims[d], map[d] = d + 1;
    for (int d = 0; d < g.rank; d++)
        size_map[d] = d == g.rank - 1 ? 0 : r->prefix[d] + 1;
    TypeId type = hlo_type_tensor(h, l.dtype, l.rank + 1, dims);
    TypeId counts = hlo_type_tensor(h, g.dtype, l.rank + 1, dims);
    ValueId end = group_ends(x, sizes), begin = binary(x, HLO_SUBTRACT, end, sizes);
    ValueId at = iota(x, counts, r->ragged[0] + 1);
    ValueId after = compare(x, CMP_GE, at, broadcast(x, begin, counts, size_map, g.rank));
    ValueId before = compare(x, CMP_LT, at, broadcast(x, end, counts, size_map, g.rank));
    ValueId zero = expand_zero(x, hlo_type_tensor(h, l.dtype, 0, NULL));
    ValueId in[3] = {binary(x, HLO_AND, after, before), broadcast(x, lhs, type, map, l.rank),
                     broadcast(x, zero, type, NULL, 0)};
    return expand_push(x, expand_make(x, HLO_SELECT, 3, in, type));
}

static OpId ragged_product(Expand *x, const Ragged *r, ValueId lhs, int shift, bool sum_groups, TypeId type) {
    int64_t lb[OTRN_MAX_RANK], lc[OTRN_MAX_RANK], rc[OTRN_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->nb; i++)
        lb[i] = r->lb[i] + shift;
    if (sum_groups)
        lc[n] = 0, rc[n++] = r->group[0];
    for (uint32_t i = 0; i < r->nc; i++)
        lc[n] = r->lc[i] + shift, rc[n++] = r->rc[i];
    const HloAttr *precision = hlo_attr(&r->op, AK_PRECISION_CONFIG);
    return hlo_op_dot(x->h, r->op.loc, lhs, hlo_operand(x->h, &r->op, 1), (DotPairs){r->nb, n, lb, r->rb, lc, rc}, type,
                      precision && precision->n == 2 ? precision : NULL);
}

static bool expand_ragged_dot(Expand *x) {
    Ragged r;
    ragged_read(x, &r);
    TypeId type = value_type(x, r.op.results);
    HloType t = *hlo_type(x->h, type);
    if (among(r.lb, r.nb, r.ragged[0])) { // groups of batches: each batch has its own right side already
        replace_result(x, 0, expand_push(x, ragged_product(x, &r, hlo_operand(x->h, &r.op, 0), 0, false, type)));
        return true;
    }
    ValueId lhs = left_by_group(x, &r);
    if (!among(r.lc, r.nc, r.ragged[0])) {
        replace_result(x, 0, expand_push(x, ragged_product(x, &r, lhs, 1, true, type)));
        return true;
    }
    // dot_general puts batches before the groups: [b…, g, …] becomes [g, b…, …]
    int64_t dims[OTRN_MAX_RANK], perm[OTRN_MAX_RANK];
    for (int d = 0; d < t.rank; d++) {
        perm[d] = d == 0 ? (int)r.nb : d <= (int)r.nb ? d - 1 : d;
        dims[perm[d]] = t.dims[d];
    }
    OpId dot = ragged_product(x, &r, lhs, 1, false, hlo_type_tensor(x->h, t.dtype, t.rank, dims));
    ValueId v = expand_push(x, dot);
    OpId turn = expand_make(x, HLO_TRANSPOSE, 1, &v, type);
    hlo_set_ints(x->h, turn, AK_PERMUTATION, perm, t.rank);
    replace_result(x, 0, expand_push(x, turn));
    return true;
}

// --- chlo.broadcast_* ------------------------------------------------------------------------------

// Shapes are aligned at their ends, unless broadcast_dimensions says where the smaller one's go.
static ValueId broadcast_operand(Expand *x, const HloOp *op, uint32_t i) {
    ValueId v = hlo_operand(x->h, op, i);
    HloType t = *hlo_value_type(x->h, v), out = *hlo_value_type(x->h, op->results);
    TypeId type = hlo_type_tensor(x->h, t.dtype, out.rank, out.dims);
    if (type == value_type(x, v))
        return v;
    uint32_t n;
    int64_t map[OTRN_MAX_RANK];
    const int64_t *given = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    bool fits = t.rank <= out.rank;
    for (int d = 0; d < t.rank && fits; d++) {
        map[d] = n && n == t.rank && t.rank < out.rank ? given[d] : out.rank - t.rank + d;
        fits = map[d] >= 0 && map[d] < out.rank && (t.dims[d] == 1 || t.dims[d] == out.dims[map[d]]) &&
               (!d || map[d] > map[d - 1]);
    }
    if (!fits)
        hlo_fail(x->h, x->id, OTRN_VERIFY, "operand %u cannot be broadcast to the result's shape", i);
    return broadcast(x, v, type, map, t.rank);
}

static bool expand_broadcasting(Expand *x, HloOpcode base) {
    HloOp op = *hlo_at(x->h, x->id);
    ValueId in[3] = {0};
    for (uint32_t i = 0; i < op.noperands; i++)
        in[i] = broadcast_operand(x, &op, i);
    OpId id = expand_make(x, base, op.noperands, in, value_type(x, op.results));
    if (base == HLO_COMPARE) {
        int64_t type = hlo_int(&op, AK_COMPARE_TYPE, CMPT_NOTYPE);
        *hlo_attr_slot(x->h, id, AK_COMPARISON_DIRECTION) =
            (HloAttr){.kind = HA_ENUM, .i = hlo_int(&op, AK_COMPARISON_DIRECTION, 0)};
        *hlo_attr_slot(x->h, id, AK_COMPARE_TYPE) = (HloAttr){.kind = HA_ENUM, .i = type};
    }
    replace_result(x, 0, expand_push(x, id));
    return true;
}

// --- which ---------------------------------------------------------------------------------------

static bool calls(const HloOp *op, const char *target) {
    return op->code == HLO_CUSTOM_CALL && !strcmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), target);
}

// The elementwise operation that a call to XLA's own dialect stands for.
static HloOpcode mhlo_call(const HloOp *op) {
    const char *target = op->code == HLO_CUSTOM_CALL ? hlo_attr_str(op, AK_CALL_TARGET_NAME) : "";
    if (strncmp(target, "mhlo.", 5) || op->noperands != 1 || op->nresults != 1)
        return HLO_NONE;
    HloOpcode code = hlo_op_find("mhlo", 4, target + 5, strlen(target + 5));
    return code != HLO_NONE && hlo_op_rows[code].cls == HC_EW1 ? code : HLO_NONE;
}

bool expand_more(Expand *x) {
    HloOp op = *hlo_at(x->h, x->id);
    HloOpcode meant = mhlo_call(&op);
    if (meant != HLO_NONE)
        return replace_result(x, 0, unary(x, meant, hlo_operand(x->h, &op, 0), value_type(x, op.results))), true;
    if (calls(&op, APPROX_TOP_K))
        return expand_approx_top_k(x);
    if (calls(&op, HLO_RAGGED_ALL_TO_ALL))
        return expand_ragged_all_to_all(x);
    switch (op.code) {
    case HLO_RNG: return expand_normal(x);
    case HLO_RNG_BIT_GENERATOR: // read and written with any state, but defined for one
        if (hlo_value_type(x->h, hlo_operand(x->h, &op, 0))->dtype != DT_UI64)
            hlo_fail(x->h, x->id, OTRN_VERIFY, "the state must be ui64[2] or ui64[3] (I1)");
        return false;
    case HLO_CHLO_CONSTANT_LIKE: return expand_constant_like(x);
    case HLO_CHLO_SCAN: return expand_scan(x);
    case HLO_CHLO_RAGGED_DOT: return expand_ragged_dot(x);
    default: break;
    }
    int base = hlo_broadcast_base(op.code);
    return base != HLO_NONE && expand_broadcasting(x, (HloOpcode)base);
}

bool expand_rewrites(HloOpcode code) {
    return code == HLO_CHLO_CONSTANT_LIKE || code == HLO_CHLO_SCAN || code == HLO_CHLO_RAGGED_DOT || hlo_broadcast_base(code) != HLO_NONE;
}

bool expand_needed(const Hlo *h) {
    for (OpId id = 1; id < h->ops.n; id++) {
        const HloOp *op = hlo_at(h, id);
        if (expand_rewrites((HloOpcode)op->code) || calls(op, APPROX_TOP_K) || calls(op, HLO_RAGGED_ALL_TO_ALL) ||
            mhlo_call(op) != HLO_NONE)
            return true;
    }
    return false;
}
