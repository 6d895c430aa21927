// SPDX-License-Identifier: Apache-2.0
// expand_more.c — more rare operations, written with common ones.
//
//   rng NORMAL          uniform numbers through erf_inv (hlo/eval_rng.c has the formula)
//   @ApproxTopK, @TopK  a stable sort with the function it names, and the first elements: exact, so
//                       every recall target is met; XLA's TopK for CPUs counts the places itself
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
#include "hlo/dot.h"
#include "hlo/infer.h"

#define APPROX_TOP_K "ApproxTopK"
#define TOP_K "TopK"

static TypeId value_type(const Walk *w, ValueId v) { return w->hlo->values.at[v].type; }

static ValueId scalar(Walk *w, int dtype, double v) { return walk_number(w, hlo_type_tensor(w->hlo, dtype, 0, NULL), v); }

static bool calls(const HloOp *op, const char *target) {
    return op->code == HLO_CUSTOM_CALL && !strcmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), target);
}

// --- rng -----------------------------------------------------------------------------------------

ValueId expand_normal(Walk *w, const HloOp *op) {
    if (hlo_int(op, AK_RNG_DISTRIBUTION, 0) != RNGDIST_NORMAL)
        return 0;
    TypeId type = value_type(w, op->results);
    int dtype = hlo_type(w->hlo, type)->dtype, wide = dtype == DT_F64 ? DT_F64 : DT_F32;
    TypeId wide_type = hlo_type_as(w->hlo, type, wide);
    ValueId a = hlo_operand(w->hlo, op, 0), b = hlo_operand(w->hlo, op, 1);
    ValueId low = scalar(w, wide, wide == DT_F64 ? -1 + 0x1p-53 : -1 + 0x1p-24);
    ValueId in[3] = {low, scalar(w, wide, 1), hlo_operand(w->hlo, op, 2)};
    OpId draw = hlo_op(w->hlo, HLO_RNG, w->loc, 3, in, 1, &wide_type);
    hlo_set_int(w->hlo, draw, AK_RNG_DISTRIBUTION, RNGDIST_UNIFORM);
    ValueId z = walk_unary(w, HLO_CHLO_ERF_INV, walk_push(w, draw));
    z = walk_binary(w, HLO_MULTIPLY, z, walk_number(w, wide_type, 1.4142135623730951));
    z = walk_binary(w, HLO_MULTIPLY, z, walk_broadcast(w, walk_convert(w, b, wide), NULL, 0, wide_type));
    z = walk_binary(w, HLO_ADD, z, walk_broadcast(w, walk_convert(w, a, wide), NULL, 0, wide_type));
    return walk_convert(w, z, dtype);
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

ValueId expand_top_k(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    const HloAttr *list = hlo_attr(op, AK_CALLED_COMPUTATIONS);
    uint32_t n = op->nresults;
    bool counts = calls(op, TOP_K) && n == 2 && op->noperands == 1, approximate = calls(op, APPROX_TOP_K) && n && op->noperands == 2 * n;
    if ((!counts && !approximate) || !list || list->kind != HA_LIST || list->n != 1)
        return 0;
    const HloFunc *f = list->list[0].kind == HA_SYM ? hlo_func_find(h, list->list[0].s) : NULL;
    uint32_t takes = f && f->body ? h->regions.at[f->body].nargs : 0;
    if (takes != 2 * n && !(counts && takes == 2)) // XLA takes away what a function does not read
        return 0;
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    if (in->rank != out->rank || !in->rank)
        return 0;
    int64_t axis = config_int(op, "reduction_dim", in->rank - 1);
    axis += axis < 0 ? in->rank : 0;
    for (int d = 0; d < in->rank; d++)
        if (out->dims[d] != in->dims[d] && (d != axis || out->dims[d] > in->dims[d]))
            return 0;
    ValueId *operands = ARENA_NEWN(w->c->scratch, ValueId, n);
    TypeId *types = ARENA_NEWN(w->c->scratch, TypeId, 2 * n);
    for (uint32_t i = 0; i < n; i++) {
        operands[i] = counts && i ? walk_iota(w, hlo_type_as(h, types[0], hlo_value_type(h, op->results + 1)->dtype), axis) : hlo_operand(h, op, i);
        types[i] = value_type(w, operands[i]);
    }
    for (uint32_t i = 0; i < takes; i++) {
        const HloType *arg = hlo_value_type(h, h->regions.at[f->body].args + i);
        if (arg->rank || arg->dtype != hlo_type(h, types[i / 2])->dtype)
            return 0;
    }
    OpId sort = hlo_op(h, HLO_SORT, op->loc, n, operands, n, types);
    hlo_set_int(h, sort, AK_DIMENSION, axis);
    hlo_set_int(h, sort, AK_IS_STABLE, 1);
    for (uint32_t i = 2 * n; i-- > 0;)
        types[i] = hlo_type_tensor(h, hlo_type(h, types[i / 2])->dtype, 0, NULL);
    inline_body(w->c, f, hlo_op_add_region(h, sort, 2 * n, types));
    ValueId sorted = walk_push(w, sort);
    for (uint32_t i = 1; i < n; i++)
        walk_replace(w, op->results + i, walk_piece(w, sorted + i, (int64_t[OTRN_MAX_RANK]){0}, value_type(w, op->results + i)));
    return walk_piece(w, sorted, (int64_t[OTRN_MAX_RANK]){0}, value_type(w, op->results));
}

// --- ragged all to all -----------------------------------------------------------------------------

typedef struct RaggedSend {
    HloAttr groups;
    int64_t channel, devices, pieces; // devices of a group, pieces that come to one of them
} RaggedSend;

static ValueId collective(Walk *w, const RaggedSend *s, OpId id) {
    hlo_set_int(w->hlo, id, AK_CHANNEL_ID, s->channel);
    *hlo_attr_slot(w->hlo, id, AK_REPLICA_GROUPS) = s->groups;
    return walk_push(w, id);
}

// Of a list that has an entry for each piece that is sent: the entries of those that come.
static ValueId of_arrivals(Walk *w, const RaggedSend *s, ValueId list) {
    list = walk_convert(w, list, DT_I32);
    TypeId type = value_type(w, list);
    OpId id = hlo_op(w->hlo, HLO_ALL_TO_ALL, w->loc, 1, &list, 1, &type);
    hlo_set_int(w->hlo, id, AK_SPLIT_DIMENSION, 0);
    hlo_set_int(w->hlo, id, AK_CONCAT_DIMENSION, 0);
    hlo_set_int(w->hlo, id, AK_SPLIT_COUNT, s->devices);
    return collective(w, s, id);
}

// The rows of all devices of the group, one device's behind the other's.
static ValueId all_rows(Walk *w, const RaggedSend *s, ValueId rows) {
    HloType t = *hlo_value_type(w->hlo, rows);
    int64_t dims[OTRN_MAX_RANK];
    memcpy(dims, t.dims, t.rank * sizeof *dims);
    dims[0] *= s->devices;
    TypeId all = hlo_type_tensor(w->hlo, t.dtype, t.rank, dims);
    OpId id = hlo_op(w->hlo, HLO_ALL_GATHER, w->loc, 1, &rows, 1, &all);
    hlo_set_int(w->hlo, id, AK_ALL_GATHER_DIM, 0);
    hlo_set_int(w->hlo, id, AK_USE_GLOBAL_DEVICE_IDS, s->channel > 0);
    return collective(w, s, id);
}

// For each row of the result the row of all rows that comes there, -1: none. A later piece wins over an earlier one.
static ValueId ragged_sources(Walk *w, const RaggedSend *s, const HloOp *op, int64_t nrows, int64_t nout) {
    static const int64_t along = 1;
    Hlo *h = w->hlo;
    TypeId list = hlo_type_tensor(h, DT_I32, 1, &s->pieces), table = hlo_type_tensor(h, DT_I32, 2, (int64_t[]){nout, s->pieces});
    assert(s->devices > 0 && s->pieces % s->devices == 0);
    ValueId start = of_arrivals(w, s, hlo_operand(h, op, 2)), size = of_arrivals(w, s, hlo_operand(h, op, 3));
    ValueId place = of_arrivals(w, s, hlo_operand(h, op, 4));
    ValueId each = walk_number(w, list, (double)(s->pieces / s->devices));
    ValueId sender = walk_binary(w, HLO_DIVIDE, walk_iota(w, list, 0), each);
    ValueId shift = walk_binary(w, HLO_MULTIPLY, sender, walk_number(w, list, (double)nrows));
    shift = walk_binary(w, HLO_ADD, shift, walk_binary(w, HLO_SUBTRACT, start, place));
    ValueId row = walk_iota(w, table, 0), end = walk_binary(w, HLO_ADD, place, size);
    ValueId after = walk_compare(w, CMP_GE, CMPT_NOTYPE, row, walk_broadcast(w, place, &along, 1, table));
    ValueId before = walk_compare(w, CMP_LT, CMPT_NOTYPE, row, walk_broadcast(w, end, &along, 1, table));
    ValueId from = walk_select(w, walk_binary(w, HLO_AND, after, before), walk_binary(w, HLO_ADD, row, walk_broadcast(w, shift, &along, 1, table)),
                               walk_number(w, table, -1));
    return walk_reduce(w, HLO_MAXIMUM, from, scalar(w, DT_I32, -1), &along, 1, hlo_type_tensor(h, DT_I32, 1, &nout));
}

static ValueId take_rows(Walk *w, ValueId rows, ValueId from, TypeId type) {
    HloType t = *hlo_value_type(w->hlo, rows);
    int64_t sizes[OTRN_MAX_RANK], offsets[OTRN_MAX_RANK];
    for (int d = 0; d < t.rank; d++)
        sizes[d] = d ? t.dims[d] : 1, offsets[d] = d + 1;
    OpId id = hlo_op(w->hlo, HLO_GATHER, w->loc, 2, (ValueId[]){rows, from}, 1, &type);
    hlo_set_ints(w->hlo, id, AK_OFFSET_DIMS, offsets, t.rank - 1u);
    hlo_set_ints(w->hlo, id, AK_COLLAPSED_SLICE_DIMS, (int64_t[]){0}, 1);
    hlo_set_ints(w->hlo, id, AK_START_INDEX_MAP, (int64_t[]){0}, 1);
    hlo_set_ints(w->hlo, id, AK_SLICE_SIZES, sizes, t.rank);
    hlo_set_ints(w->hlo, id, AK_OPERAND_BATCHING_DIMS, NULL, 0);
    hlo_set_ints(w->hlo, id, AK_START_INDICES_BATCHING_DIMS, NULL, 0);
    hlo_set_int(w->hlo, id, AK_INDEX_VECTOR_DIM, 1);
    hlo_set_int(w->hlo, id, AK_INDICES_ARE_SORTED, 0);
    return walk_push(w, id);
}

ValueId expand_ragged_all_to_all(Walk *w, const HloOp *op) {
    static const int64_t along = 0;
    Hlo *h = w->hlo;
    RaggedSend s;
    if (!calls(op, HLO_RAGGED_ALL_TO_ALL))
        return 0;
    bool ok = coll_ragged(h, op, &s.groups, &s.channel);
    assert(ok); // verified
    (void)ok;
    ValueId rows = hlo_operand(h, op, 0), output = hlo_operand(h, op, 1);
    TypeId type = value_type(w, output);
    s.devices = s.groups.cols, s.pieces = hlo_value_type(h, hlo_operand(h, op, 2))->dims[0];
    int64_t nrows = hlo_value_type(h, rows)->dims[0], nout = hlo_type(h, type)->dims[0];
    if (!hlo_value_type(h, rows)->elems || !hlo_type(h, type)->elems) {
        return output;
    }
    if (s.devices * nrows > INT32_MAX || nout > INT32_MAX)
        hlo_fail(h, w->id, OTRN_CAPACITY, "the rows of %lld devices are more than 32 bits count", (long long)s.devices);
    ValueId from = ragged_sources(w, &s, op, nrows, nout);
    ValueId comes = walk_compare(w, CMP_GE, CMPT_NOTYPE, from, walk_number(w, value_type(w, from), 0));
    ValueId arrives = walk_broadcast(w, comes, &along, 1, hlo_type_as(w->hlo, type, DT_I1));
    return walk_select(w, arrives, take_rows(w, all_rows(w, &s, rows), from, type), output);
}

// --- chlo.scan -----------------------------------------------------------------------------------

typedef struct Scan {
    HloOp op;
    uint32_t ninputs, ncarries, noutputs;
    int64_t axis, size;
    bool reverse;
    RegionId body;
} Scan;

static void scan_read(Walk *w, const HloOp *op, Scan *s) {
    s->op = *op;
    uint32_t n;
    const int64_t *segments = hlo_ints(&s->op, AK_OPERAND_SEGMENT_SIZES, &n);
    s->ninputs = (uint32_t)segments[0];
    s->ncarries = (uint32_t)segments[1];
    s->noutputs = s->op.nresults - s->ncarries;
    s->axis = hlo_int(&s->op, AK_DIMENSION, 0);
    s->reverse = hlo_int(&s->op, AK_IS_REVERSE, 0);
    s->size = hlo_int(&s->op, AK_SCAN_DIM_SIZE, -1);
    s->body = w->hlo->op_regions.at[s->op.regions];
    if (s->ninputs + s->noutputs) {
        ValueId v = s->ninputs ? hlo_operand(w->hlo, &s->op, 0) : s->op.results;
        s->size = hlo_value_type(w->hlo, v)->dims[s->axis];
    }
    if (s->size < 0)
        hlo_fail(w->hlo, w->id, OTRN_VERIFY, "without inputs and outputs it needs scan_dim_size");
}

// Starts of a slice along the axis: zeros, and `at` there.
static void slice_starts(const Scan *s, int rank, ValueId at, ValueId zero, ValueId *starts) {
    for (int d = 0; d < rank; d++)
        starts[d] = d == s->axis ? at : zero;
}

static ValueId scan_slice(Walk *w, const Scan *s, ValueId v, ValueId at, ValueId zero) {
    HloType t = *hlo_value_type(w->hlo, v);
    int64_t sizes[OTRN_MAX_RANK], left[OTRN_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < t.rank; d++) {
        sizes[d] = d == s->axis ? 1 : t.dims[d];
        if (d != s->axis)
            left[rank++] = t.dims[d];
    }
    ValueId in[OTRN_MAX_RANK + 1] = {v};
    slice_starts(s, t.rank, at, zero, in + 1);
    TypeId piece = hlo_type_tensor(w->hlo, t.dtype, t.rank, sizes);
    OpId id = hlo_op(w->hlo, HLO_DYNAMIC_SLICE, w->loc, (uint32_t)t.rank + 1, in, 1, &piece);
    hlo_set_ints(w->hlo, id, AK_SLICE_SIZES, sizes, t.rank);
    return walk_shape(w, walk_push(w, id), hlo_type_tensor(w->hlo, t.dtype, rank, left));
}

static ValueId scan_update(Walk *w, const Scan *s, ValueId into, ValueId slice, ValueId at, ValueId zero) {
    HloType t = *hlo_value_type(w->hlo, into);
    int64_t sizes[OTRN_MAX_RANK];
    for (int d = 0; d < t.rank; d++)
        sizes[d] = d == s->axis ? 1 : t.dims[d];
    ValueId in[OTRN_MAX_RANK + 2] = {into};
    in[1] = walk_shape(w, slice, hlo_type_tensor(w->hlo, t.dtype, t.rank, sizes));
    slice_starts(s, t.rank, at, zero, in + 2);
    return walk_op(w, HLO_DYNAMIC_UPDATE_SLICE, (uint32_t)t.rank + 2, in, value_type(w, into));
}

// args: the counter, the outputs so far, the carries.
static void scan_body(Walk *w, const Scan *s, RegionId to, ValueId *results) {
    Hlo *h = w->hlo;
    ValueId args = h->regions.at[to].args, body_args = h->regions.at[s->body].args;
    ValueId one = scalar(w, DT_I64, 1), zero = scalar(w, DT_I64, 0);
    ValueId at = s->reverse ? walk_binary(w, HLO_SUBTRACT, scalar(w, DT_I64, (double)(s->size - 1)), args) : args;
    for (uint32_t i = 0; i < s->ninputs; i++)
        walk_replace(w, body_args + i, scan_slice(w, s, hlo_operand(h, &s->op, i), at, zero));
    for (uint32_t i = 0; i < s->ncarries; i++)
        walk_replace(w, body_args + s->ninputs + i, args + 1 + s->noutputs + i);
    assert(h->regions.at[s->body].nargs == s->ninputs + s->ncarries);
    walk_region(w, s->body);
    uint32_t n = h->regions.at[s->body].ops.n;
    for (uint32_t i = 0; i + 1 < n; i++)
        walk_push(w, h->regions.at[s->body].ops.at[i]);
    HloOp ret = *hlo_at(h, h->regions.at[s->body].ops.at[n - 1]);
    assert(ret.noperands == s->noutputs + s->ncarries);
    results[0] = walk_binary(w, HLO_ADD, args, one);
    for (uint32_t i = 0; i < s->noutputs; i++)
        results[1 + i] = scan_update(w, s, args + 1 + i, hlo_operand(h, &ret, i), at, zero);
    for (uint32_t i = 0; i < s->ncarries; i++)
        results[1 + s->noutputs + i] = hlo_operand(h, &ret, s->noutputs + i);
}

ValueId expand_scan(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    Scan s;
    scan_read(w, op, &s);
    uint32_t n = 1 + s.op.nresults;
    ValueId *init = ARENA_NEWN(w->c->scratch, ValueId, n), *results = ARENA_NEWN(w->c->scratch, ValueId, n);
    TypeId *types = ARENA_NEWN(w->c->scratch, TypeId, n);
    init[0] = scalar(w, DT_I64, 0);
    for (uint32_t i = 0; i < s.noutputs; i++) {
        TypeId type = value_type(w, s.op.results + i);
        init[1 + i] = walk_number(w, type, 0);
    }
    for (uint32_t i = 0; i < s.ncarries; i++)
        init[1 + s.noutputs + i] = hlo_operand(h, &s.op, s.ninputs + i);
    for (uint32_t i = 0; i < n; i++)
        types[i] = value_type(w, init[i]);
    OpId loop = hlo_op(h, HLO_WHILE, s.op.loc, n, init, n, types);
    RegionId cond = hlo_op_add_region(h, loop, n, types), body = hlo_op_add_region(h, loop, n, types);
    walk_grow(w);
    OpList outer = walk_region_begin(w);
    ValueId go = walk_compare(w, CMP_LT, CMPT_NOTYPE, h->regions.at[cond].args, scalar(w, DT_I64, (double)s.size));
    walk_region_end(w, cond, outer, &go, 1);
    outer = walk_region_begin(w);
    scan_body(w, &s, body, results);
    walk_region_end(w, body, outer, results, n);
    ValueId out = walk_push(w, loop);
    for (uint32_t i = 1; i < s.op.nresults; i++)
        walk_replace(w, s.op.results + i, out + 1 + i);
    return out + 1;
}

// --- chlo.constant_like ----------------------------------------------------------------------------

ValueId expand_constant_like(Walk *w, const HloOp *op) {
    const HloAttr *value = hlo_attr(op, AK_LIKE_VALUE);
    TypeId type = value_type(w, op->results);
    int dtype = hlo_type(w->hlo, type)->dtype;
    uint8_t bytes[16] = {0};
    if (value->kind == HA_OPAQUE) { // "#complex.number<:f32 1.0, 2.0>"
        const char *s = value->s + strcspn(value->s, " ");
        double parts[2] = {0};
        for (int i = 0; i < 2; i++) {
            s += strspn(s, " ,");
            const char *after = num_parse_f64(s, s + strlen(s), &parts[i]);
            if (after == s)
                hlo_fail(w->hlo, w->id, OTRN_UNSUPPORTED, "the value %.100s", value->s);
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
    return walk_push(w, hlo_op_splat(w->hlo, w->loc, type, bytes));
}

// --- chlo.ragged_dot -------------------------------------------------------------------------------

typedef struct Ragged {
    HloOp op;
    const int64_t *lb, *rb, *lc, *rc, *ragged, *group;
    uint32_t nb, nrb, nc, nrc, nragged, ngroup;
    int64_t prefix[OTRN_MAX_RANK]; // dimensions of the left side along which group sizes may differ
} Ragged;

static void ragged_read(Walk *w, const HloOp *op, Ragged *r) {
    r->op = *op;
    r->lb = hlo_ints(&r->op, AK_LHS_BATCHING_DIMENSIONS, &r->nb);
    r->rb = hlo_ints(&r->op, AK_RHS_BATCHING_DIMENSIONS, &r->nrb);
    r->lc = hlo_ints(&r->op, AK_LHS_CONTRACTING_DIMENSIONS, &r->nc);
    r->rc = hlo_ints(&r->op, AK_RHS_CONTRACTING_DIMENSIONS, &r->nrc);
    r->ragged = hlo_ints(&r->op, AK_LHS_RAGGED_DIMENSIONS, &r->nragged);
    r->group = hlo_ints(&r->op, AK_RHS_GROUP_DIMENSIONS, &r->ngroup);
    const HloType *l = hlo_value_type(w->hlo, hlo_operand(w->hlo, &r->op, 0));
    const HloType *g = hlo_value_type(w->hlo, hlo_operand(w->hlo, &r->op, 2));
    if (l->rank >= OTRN_MAX_RANK || g->rank >= OTRN_MAX_RANK)
        hlo_fail(w->hlo, w->id, OTRN_CAPACITY, "groups add a dimension beyond OTRN_MAX_RANK (%d)", OTRN_MAX_RANK);
    infer_ragged_prefix(&r->op, l->rank, r->prefix);
}

// Sums of the group sizes up to and with each group: [.., g].
static ValueId group_ends(Walk *w, ValueId sizes) {
    Hlo *h = w->hlo;
    HloType t = *hlo_value_type(h, sizes);
    int64_t dims[OTRN_MAX_RANK], map[OTRN_MAX_RANK], last = t.rank;
    for (int d = 0; d < t.rank; d++)
        dims[d] = t.dims[d], map[d] = d == t.rank - 1 ? last : d;
    dims[last] = t.dims[t.rank - 1];
    TypeId square = hlo_type_tensor(h, t.dtype, t.rank + 1, dims); // [.., g, g']
    ValueId upto = walk_compare(w, CMP_LE, CMPT_NOTYPE, walk_iota(w, square, last), walk_iota(w, square, last - 1));
    ValueId kept = walk_select(w, upto, walk_broadcast(w, sizes, map, t.rank, square), walk_number(w, square, 0));
    return walk_sum(w, kept, &last, 1, value_type(w, sizes));
}

// The left side once for each group, [g, lhs…], zero outside the group's part of the ragged dimension.
static ValueId left_by_group(Walk *w, const Ragged *r) {
    Hlo *h = w->hlo;
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
    ValueId end = group_ends(w, sizes), begin = walk_binary(w, HLO_SUBTRACT, end, sizes);
    ValueId at = walk_iota(w, counts, r->ragged[0] + 1);
    ValueId after = walk_compare(w, CMP_GE, CMPT_NOTYPE, at, walk_broadcast(w, begin, size_map, g.rank, counts));
    ValueId before = walk_compare(w, CMP_LT, CMPT_NOTYPE, at, walk_broadcast(w, end, size_map, g.rank, counts));
    return walk_select(w, walk_binary(w, HLO_AND, after, before), walk_broadcast(w, lhs, map, l.rank, type), walk_number(w, type, 0));
}

static OpId ragged_product(Walk *w, const Ragged *r, ValueId lhs, int shift, bool sum_groups, TypeId type) {
    int64_t lb[OTRN_MAX_RANK], lc[OTRN_MAX_RANK], rc[OTRN_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->nb; i++)
        lb[i] = r->lb[i] + shift;
    if (sum_groups)
        lc[n] = 0, rc[n++] = r->group[0];
    for (uint32_t i = 0; i < r->nc; i++)
        lc[n] = r->lc[i] + shift, rc[n++] = r->rc[i];
    const HloAttr *precision = hlo_attr(&r->op, AK_PRECISION_CONFIG);
    return hlo_op_dot(w->hlo, r->op.loc, lhs, hlo_operand(w->hlo, &r->op, 1), (DotPairs){r->nb, n, lb, r->rb, lc, rc}, type,
                      precision && precision->n == 2 ? precision : NULL);
}

ValueId expand_ragged_dot(Walk *w, const HloOp *op) {
    Ragged r;
    ragged_read(w, op, &r);
    TypeId type = value_type(w, r.op.results);
    HloType t = *hlo_type(w->hlo, type);
    if (hlo_among(r.lb, r.nb, r.ragged[0])) // groups of batches: each batch has its own right side already
        return walk_push(w, ragged_product(w, &r, hlo_operand(w->hlo, op, 0), 0, false, type));
    ValueId lhs = left_by_group(w, &r);
    if (!hlo_among(r.lc, r.nc, r.ragged[0]))
        return walk_push(w, ragged_product(w, &r, lhs, 1, true, type));
    // dot_general puts batches before the groups: [b…, g, …] becomes [g, b…, …]
    int64_t dims[OTRN_MAX_RANK], perm[OTRN_MAX_RANK];
    for (int d = 0; d < t.rank; d++) {
        perm[d] = d == 0 ? (int)r.nb : d <= (int)r.nb ? d - 1 : d;
        dims[perm[d]] = t.dims[d];
    }
    OpId dot = ragged_product(w, &r, lhs, 1, false, hlo_type_tensor(w->hlo, t.dtype, t.rank, dims));
    return walk_transpose(w, walk_push(w, dot), perm);
}

// --- chlo.broadcast_* ------------------------------------------------------------------------------

// Shapes are aligned at their ends, unless broadcast_dimensions says where the smaller one's go.
static ValueId broadcast_operand(Walk *w, const HloOp *op, uint32_t i) {
    ValueId v = hlo_operand(w->hlo, op, i);
    HloType t = *hlo_value_type(w->hlo, v), out = *hlo_value_type(w->hlo, op->results);
    TypeId type = hlo_type_tensor(w->hlo, t.dtype, out.rank, out.dims);
    if (type == value_type(w, v))
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
        hlo_fail(w->hlo, w->id, OTRN_VERIFY, "operand %u cannot be broadcast to the result's shape", i);
    return walk_broadcast(w, v, map, t.rank, type);
}

ValueId expand_broadcasting(Walk *w, const HloOp *op) {
    int base = hlo_broadcast_base(op->code);
    ValueId in[3] = {0};
    if (base == HLO_NONE)
        return 0;
    for (uint32_t i = 0; i < op->noperands; i++)
        in[i] = broadcast_operand(w, op, i);
    if (base == HLO_COMPARE)
        return walk_compare(w, hlo_int(op, AK_COMPARISON_DIRECTION, 0), hlo_int(op, AK_COMPARE_TYPE, CMPT_NOTYPE), in[0], in[1]);
    return walk_op(w, (HloOpcode)base, op->noperands, in, value_type(w, op->results));
}

// --- which ---------------------------------------------------------------------------------------

// The elementwise operation that a call to XLA's own dialect stands for.
static HloOpcode mhlo_call(const HloOp *op) {
    const char *target = op->code == HLO_CUSTOM_CALL ? hlo_attr_str(op, AK_CALL_TARGET_NAME) : "";
    if (strncmp(target, "mhlo.", 5) || op->noperands != 1 || op->nresults != 1)
        return HLO_NONE;
    HloOpcode code = hlo_op_find("mhlo", 4, target + 5, strlen(target + 5));
    return code != HLO_NONE && hlo_op_rows[code].cls == HC_EW1 ? code : HLO_NONE;
}

ValueId expand_mhlo_call(Walk *w, const HloOp *op) {
    HloOpcode meant = mhlo_call(op);
    ValueId x = op->noperands ? hlo_operand(w->hlo, op, 0) : 0;
    return meant == HLO_NONE ? 0 : walk_op(w, meant, 1, &x, value_type(w, op->results));
}

// Read and written with any state, but defined for one.
ValueId expand_check_state(Walk *w, const HloOp *op) {
    bool twister = hlo_int(op, AK_RNG_ALGORITHM, RNGALG_DEFAULT) == RNGALG_TWISTER;
    if (!twister && hlo_value_type(w->hlo, hlo_operand(w->hlo, op, 0))->dtype != DT_UI64)
        hlo_fail(w->hlo, w->id, OTRN_VERIFY, "the state must be ui64[2] or ui64[3] (I1)");
    return 0;
}

bool expand_needed(const Hlo *h) {
    for (OpId id = 1; id < h->ops.n; id++) {
        const HloOp *op = hlo_at(h, id);
        if ((hlo_row(op)->dialect == HD_CHLO && hlo_is(op, OT_REWRITTEN)) || calls(op, APPROX_TOP_K) || calls(op, TOP_K) || calls(op, HLO_RAGGED_ALL_TO_ALL) ||
            expand_is_matrices(op) || expand_is_lapack(op) || mhlo_call(op) != HLO_NONE)
            return true;
    }
    return false;
}

// --- products of bytes ---------------------------------------------------------------------------------

#define BYTES_MIN (1 << 20)         // products of numbers: fewer are soon done by a kernel
#define EXACT_SUM (int64_t)16777216 // integers up to here are exact in fp32

static int64_t most_of(int dtype) { return dtype == DT_I8 ? 128 : dtype == DT_UI8 ? 255 : 0; }

// Bytes are exact in bf16, and so is in fp32, in any order, what as many products sum up to as cannot pass 2^24. Longer sums are integers' sums of such.
ValueId expand_byte_dot(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    ValueId in[2] = {hlo_operand(h, op, 0), hlo_operand(h, op, 1)}, sum = 0;
    HloType l = *hlo_value_type(h, in[0]), r = *hlo_value_type(h, in[1]), out = *hlo_value_type(h, op->results);
    int64_t most = most_of(l.dtype) * most_of(r.dtype), all = dot_contracted(h, op), longest = 0;
    DotDims by = dot_dims(op);
    if (!most || out.dtype != DT_I32 || !by.nc || out.elems * all < BYTES_MIN)
        return 0;
    for (uint32_t i = 1; i < by.nc; i++)
        longest = l.dims[by.contract[0][i]] > l.dims[by.contract[0][longest]] ? i : longest;
    int64_t len = l.dims[by.contract[0][longest]], each = EXACT_SUM / most / (all / len);
    if (each < 1)
        return 0;
    for (int side = 0; side < 2; side++)
        in[side] = walk_convert(w, in[side], DT_BF16);
    TypeId type = hlo_type_tensor(h, DT_F32, out.rank, out.dims);
    for (int64_t at = 0; at < len; at += each) {
        ValueId piece[2];
        for (int side = 0; side < 2; side++) {
            HloType t = *hlo_value_type(h, in[side]);
            int64_t from[OTRN_MAX_RANK] = {0}, dims[OTRN_MAX_RANK], dim = by.contract[side][longest];
            memcpy(dims, t.dims, t.rank * sizeof *dims);
            from[dim] = at;
            dims[dim] = len - at < each ? len - at : each;
            piece[side] = each < len ? walk_piece(w, in[side], from, hlo_type_tensor(h, DT_BF16, t.rank, dims)) : in[side];
        }
        DotPairs pairs = {by.nb, by.nc, by.batch[0], by.batch[1], by.contract[0], by.contract[1]};
        ValueId part = walk_convert(w, walk_push(w, hlo_op_dot(h, op->loc, piece[0], piece[1], pairs, type, NULL)), DT_I32);
        sum = sum ? walk_binary(w, HLO_ADD, sum, part) : part;
    }
    return sum;
}
