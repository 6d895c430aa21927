// SPDX-License-Identifier: Apache-2.0
// quant_lower.c — operations on quantised tensors written as operations on integers and floats.
// needs: a verified graph; quantised tensors have known shapes
// gives: a graph without quantised types and without uniform_quantize and uniform_dequantize
//
//   dequantize   (q - zero point) * scale        the difference is an exact integer, then a float
//   quantize     x / scale + zero point, clamped to the storage range, rounded to nearest even
//   any other op dequantize the operands, the op in the expressed type, quantize the results
//
// Ops that only move elements, choose among them or hand them to a region work on the stored
// integers when operands and results are quantised alike; a region's arguments are stored integers.
//
// Every value that held a quantised type keeps its id and gets the storage type; `quant` remembers
// what it means. Ops that are replaced leave their results to a table that operands are looked up in.
#include "hlo/quant.h"

typedef VEC(OpId) OpList;

typedef struct Lower {
    Hlo *h;
    Arena *scratch;
    const Quant **quant; // by value, for the `known` first: how it is quantised, NULL: not at all
    ValueId known;
    VEC(ValueId) repl; // by value: what stands for it now
    OpList *out;       // ops of the region being written
    OpId op;           // the op being rewritten, for messages
    LocId loc;
} Lower;

// --- writing ops -----------------------------------------------------------------------------------

static ValueId emit(Lower *l, HloOpcode code, uint32_t n, const ValueId *operands, TypeId type) {
    OpId id = hlo_op(l->h, code, l->loc, n, operands, 1, &type);
    VEC_PUSH(l->scratch, l->out, id);
    return hlo_at(l->h, id)->results;
}

static ValueId emit1(Lower *l, HloOpcode code, ValueId a, TypeId type) {
    return emit(l, code, 1, &a, type);
}

static ValueId emit2(Lower *l, HloOpcode code, ValueId a, ValueId b, TypeId type) {
    return emit(l, code, 2, (ValueId[]){a, b}, type);
}

static TypeId with_dtype(Lower *l, TypeId like, int dtype) {
    const HloType *t = hlo_type(l->h, like);
    return hlo_type_tensor(l->h, dtype, t->rank, t->dims);
}

static ValueId constant(Lower *l, TypeId type, const void *data, size_t bytes) {
    ValueId v = emit(l, HLO_CONSTANT, 0, NULL, type);
    *hlo_attr_slot(l->h, l->h->values.at[v].def, AK_VALUE) =
        (HloAttr){.kind = HA_TENSOR,
                  .n = (uint32_t)bytes,
                  .type = type,
                  .data = arena_dup(l->h->arena, data, bytes)};
    return v;
}

static void put_number(int dtype, void *p, double f, int64_t i) {
    if (dtype_is_float(dtype))
        dtype_from_f64(dtype, p, f);
    else
        dtype_from_i64(dtype, p, i);
}

static ValueId scalar(Lower *l, int dtype, int64_t i) {
    uint8_t bytes[8];
    put_number(dtype, bytes, (double)i, i);
    return constant(l, hlo_type_tensor(l->h, dtype, 0, NULL), bytes, dtype_bytes(dtype));
}

static ValueId broadcast(Lower *l, ValueId v, TypeId type, const int64_t *dims, uint32_t n) {
    ValueId wide = emit1(l, HLO_BROADCAST_IN_DIM, v, type);
    hlo_set_ints(l->h, l->h->values.at[wide].def, AK_BROADCAST_DIMENSIONS, dims, n);
    return wide;
}

// One number for each block, as a tensor of this type: [blocks…] repeated to [blocks, size of a block, …], reshaped.
static ValueId spread_blocks(Lower *l, const Quant *q, TypeId type, const void *data) {
    const HloType t = *hlo_type(l->h, type);
    int64_t dims[2 * OTRN_MAX_RANK], at[OTRN_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < t.rank; d++) {
        at[d] = rank;
        dims[rank++] = q->blocks[d];
        if (q->blocks[d] == 1) // one block: its own dimension can be repeated
            dims[at[d]] = t.dims[d];
        else if (t.dims[d] != q->blocks[d])
            dims[rank++] = t.dims[d] / q->blocks[d];
    }
    if (rank > OTRN_MAX_RANK)
        hlo_fail(l->h, l->op, OTRN_CAPACITY, "blocks along so many dimensions need a tensor beyond OTRN_MAX_RANK (%d)", OTRN_MAX_RANK);
    TypeId few = hlo_type_tensor(l->h, t.dtype, t.rank, q->blocks), wide = hlo_type_tensor(l->h, t.dtype, rank, dims);
    ValueId v = broadcast(l, constant(l, few, data, q->n * dtype_bytes(t.dtype)), wide, at, t.rank);
    return rank == t.rank ? v : emit1(l, HLO_RESHAPE, v, type);
}

// The scales, or the zero points, as a tensor of this type.
static ValueId parameters(Lower *l, const Quant *q, bool scales, TypeId type) {
    const HloType t = *hlo_type(l->h, type);
    if (t.dynamic)
        hlo_fail(l->h, l->op, OTRN_UNSUPPORTED,
                 "a quantised tensor has a dimension of unknown size");
    size_t elem = dtype_bytes(t.dtype);
    uint8_t *data = arena_alloc(l->scratch, q->n * elem);
    for (uint32_t i = 0; i < q->n; i++) {
        int64_t zero_point = q->zero_points[i];
        double number = scales ? q->scales[i] : (double)zero_point;
        put_number(t.dtype, data + i * elem, number, zero_point);
    }
    if (q->blocks)
        return spread_blocks(l, q, type, data);
    if (q->axis < 0)
        return constant(l, type, data, t.elems ? elem : 0);
    int64_t n = q->n, axis = q->axis;
    ValueId list = constant(l, hlo_type_tensor(l->h, t.dtype, 1, &n), data, q->n * elem);
    return broadcast(l, list, type, &axis, 1);
}

static bool has_zero_points(const Quant *q) {
    for (uint32_t i = 0; i < q->n; i++)
        if (q->zero_points[i])
            return true;
    return false;
}

static ValueId dequantize(Lower *l, ValueId v, const Quant *q) {
    TypeId held = l->h->values.at[v].type, type = with_dtype(l, held, q->expressed);
    if (has_zero_points(q)) {
        TypeId wide = with_dtype(l, held, dtype_row(q->storage)->bits > 16 ? DT_I64 : DT_I32);
        v = emit1(l, HLO_CONVERT, v, wide);
        v = emit2(l, HLO_SUBTRACT, v, parameters(l, q, false, wide), wide);
    }
    v = emit1(l, HLO_CONVERT, v, type);
    return emit2(l, HLO_MULTIPLY, v, parameters(l, q, true, type), type);
}

static ValueId quantize(Lower *l, ValueId v, const Quant *q) {
    TypeId type = l->h->values.at[v].type;
    v = emit2(l, HLO_DIVIDE, v, parameters(l, q, true, type), type);
    if (has_zero_points(q))
        v = emit2(l, HLO_ADD, v, parameters(l, q, false, type), type);
    ValueId bounds[] = {scalar(l, q->expressed, q->min), v, scalar(l, q->expressed, q->max)};
    v = emit(l, HLO_CLAMP, 3, bounds, type);
    v = emit1(l, HLO_ROUND_NEAREST_EVEN, v, type);
    return emit1(l, HLO_CONVERT, v, with_dtype(l, type, q->storage));
}

// --- which ops work on stored integers -------------------------------------------------------------

static const Quant *quant_at(const Lower *l, ValueId v) {
    return v < l->known ? l->quant[v] : NULL;
}

// Ops that do not look at their elements' values.
static bool moves_elements(const HloOp *op) {
    switch (op->code) {
    case HLO_IOTA:
    case HLO_DYNAMIC_IOTA:
        return false;
    case HLO_SELECT:
    case HLO_CUSTOM_CALL:
    case HLO_GET_DIMENSION_SIZE:
    case HLO_SET_DIMENSION_SIZE:
    case HLO_INFEED:
    case HLO_OUTFEED:
    case HLO_CHLO_TOP_K: // a positive scale keeps the order
        return true;
    default:
        break;
    }
    const HloOpRow *row = hlo_row(op);
    return row->cls == HC_MOVE || row->cls == HC_RED || row->cls == HC_CTRL ||
           row->cls == HC_COLL || row->cls == HC_META || row->dialect == HD_CHECK;
}

// Of those, the ones that take the scales along when the axis moves, or take the tensor whole.
static bool moves_axis(const HloOp *op) {
    switch (op->code) {
    case HLO_RESHAPE:
    case HLO_TRANSPOSE:
    case HLO_BROADCAST_IN_DIM:
    case HLO_BITCAST_CONVERT:
    case HLO_CUSTOM_CALL:
    case HLO_GET_DIMENSION_SIZE:
        return true;
    default:
        return hlo_row(op)->cls == HC_CTRL || hlo_row(op)->cls == HC_META ||
               hlo_row(op)->dialect == HD_CHECK;
    }
}

// Ops whose results are unrelated to each other: each has the type of its own operand.
static bool is_parallel(const HloOp *op) {
    const HloOpRow *row = hlo_row(op);
    return op->code == HLO_BITCAST_CONVERT || op->code == HLO_SORT || op->code == HLO_MAP ||
           op->code == HLO_CUSTOM_CALL || (row->cls == HC_RED && op->nresults > 1) ||
           row->cls == HC_CTRL || row->cls == HC_META || row->cls == HC_COLL ||
           row->dialect == HD_CHECK;
}

// quants: of the operands, then of the results.
static bool works_on_storage(const HloOp *op, const Quant *const *quants) {
    if (!moves_elements(op))
        return false;
    const Quant *first = NULL;
    bool may_widen = hlo_row(op)->cls == HC_RED;
    for (uint32_t i = 0; i < op->noperands + op->nresults; i++) {
        const Quant *q = quants[i];
        if (!q)
            continue;
        if ((q->axis >= 0 || q->blocks) && !moves_axis(op))
            return false;
        first = first ? first : q;
        bool same = may_widen ? quant_alike(first, q) : quant_same(first, q);
        if (!is_parallel(op) && !same)
            return false;
    }
    return true;
}

// The operand whose elements argument k of a region stands for.
static uint32_t operand_of(const HloOp *op, uint32_t k) {
    switch (op->code) {
    case HLO_SORT:
        return k / 2;
    case HLO_MAP:
    case HLO_WHILE:
        return k;
    default:
        return op->nresults ? k % op->nresults : 0;
    }
}

static void region_fail(Lower *l, const char *what, uint32_t k) {
    hlo_fail(l->h, l->op, OTRN_UNSUPPORTED,
             "%s %u of its region is quantised in another way than the %s", what, k,
             *what == 'a' ? "operand" : "result");
}

static void check_regions(Lower *l, const HloOp *op, const Quant *const *quants) {
    for (uint32_t r = 0; r < op->nregions; r++) {
        const HloRegion *region = hlo_op_region(l->h, op, r);
        for (uint32_t k = 0; k < region->nargs; k++) {
            uint32_t i = operand_of(op, k);
            const Quant *arg = quant_at(l, region->args + k);
            const Quant *in = i < op->noperands ? quants[i] : NULL;
            if (!arg != !in || (arg && !quant_alike(arg, in)))
                region_fail(l, "argument", k);
        }
        const HloOp *ret = hlo_at(l->h, region->ops.at[region->ops.n - 1]);
        for (uint32_t k = 0; k < ret->noperands && k < op->nresults; k++) {
            const Quant *value = quant_at(l, hlo_operand(l->h, ret, k));
            const Quant *out = quants[op->noperands + k];
            if (value && (!out || !quant_alike(value, out)))
                region_fail(l, "value", k);
        }
    }
}

// --- rewriting -------------------------------------------------------------------------------------

static void lower_region(Lower *l, RegionId id);

static void replace(Lower *l, ValueId from, ValueId to) { l->repl.at[from] = to; }

// The op on numbers: quantised operands become floats, quantised results are made from floats.
static void lower_float(Lower *l, OpId id, const Quant *const *quants) {
    Hlo *h = l->h;
    HloOp op = *hlo_at(h, id);
    ValueId *operands = ARENA_NEWN(l->scratch, ValueId, op.noperands + 1);
    TypeId *types = ARENA_NEWN(l->scratch, TypeId, op.nresults + 1u);
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId v = hlo_operand(h, &op, i);
        operands[i] = quants[i] ? dequantize(l, v, quants[i]) : v;
    }
    for (uint32_t i = 0; i < op.nresults; i++) {
        const Quant *q = quants[op.noperands + i];
        TypeId held = h->values.at[op.results + i].type;
        types[i] = q ? with_dtype(l, held, q->expressed) : held;
    }
    OpId made = hlo_op(h, op.code, op.loc, op.noperands, operands, op.nresults, types);
    HloOp *at = hlo_at(h, made);
    at->attrs = op.attrs, at->extra = op.extra, at->nextra = op.nextra;
    VEC_PUSH(l->scratch, l->out, made);
    ValueId first = at->results;
    for (uint32_t i = 0; i < op.nresults; i++) {
        const Quant *q = quants[op.noperands + i];
        replace(l, op.results + i, q ? quantize(l, first + i, q) : first + i);
    }
}

static void lower_op(Lower *l, OpId id) {
    Hlo *h = l->h;
    HloOp op = *hlo_at(h, id);
    const Quant **quants = ARENA_NEWN(l->scratch, const Quant *, op.noperands + op.nresults + 1u);
    bool any = false;
    for (uint32_t i = 0; i < op.noperands + op.nresults; i++) {
        bool is_in = i < op.noperands;
        quants[i] = quant_at(l, is_in ? hlo_operand(h, &op, i) : op.results + (i - op.noperands));
        any = any || quants[i];
    }
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId *v = &h->operands.at[op.operands + i];
        *v = *v < l->known ? l->repl.at[*v] : *v;
    }
    l->op = id, l->loc = op.loc;
    if (any && op.nregions)
        check_regions(l, &op, quants);
    for (uint32_t r = 0; r < op.nregions; r++)
        lower_region(l, h->op_regions.at[op.regions + r]);
    l->op = id, l->loc = op.loc;
    if (!any || works_on_storage(&op, quants)) {
        VEC_PUSH(l->scratch, l->out, id);
        return;
    }
    if (op.nregions)
        hlo_fail(h, id, OTRN_UNSUPPORTED, "operands and results are quantised in different ways");
    ValueId v = op.noperands ? hlo_operand(h, &op, 0) : 0;
    if (op.code == HLO_UNIFORM_DEQUANTIZE) {
        replace(l, op.results, dequantize(l, v, quants[0]));
    } else if (op.code == HLO_UNIFORM_QUANTIZE) {
        v = quants[0] ? dequantize(l, v, quants[0]) : v;
        replace(l, op.results, quantize(l, v, quants[1]));
    } else {
        lower_float(l, id, quants);
    }
}

static void lower_region(Lower *l, RegionId id) {
    OpList out = {0}, *outer = l->out;
    l->out = &out;
    for (uint32_t i = 0; i < l->h->regions.at[id].ops.n; i++)
        lower_op(l, l->h->regions.at[id].ops.at[i]);
    l->out = outer;
    HloRegion *r = &l->h->regions.at[id];
    r->ops.n = 0;
    VEC_RESERVE(l->h->arena, &r->ops, out.n);
    for (uint32_t i = 0; i < out.n; i++)
        r->ops.at[r->ops.n++] = out.at[i];
}

// --- types -----------------------------------------------------------------------------------------

typedef struct TypeMap {
    uint32_t n;
    const Quant **quant; // by type
    TypeId *plain;       // by type: the type without quantised parts
} TypeMap;

static TypeId map_type(const TypeMap *m, TypeId t) { return t < m->n ? m->plain[t] : t; }

static void map_one(Lower *l, TypeMap *m, TypeId id) {
    Hlo *h = l->h;
    HloType t = *hlo_type(h, id);
    m->plain[id] = id;
    if (quant_is(&t)) {
        Quant *q = ARENA_NEW(l->scratch, Quant);
        const char *why = quant_parse(l->scratch, &t, q);
        if (why)
            ctx_fail(h->ctx, OTRN_VERIFY, (Place){.file = h->file}, "%s: %.200s", t.text, why);
        m->quant[id] = q;
        t.text = strchr(t.text, '#'); // an encoding may stand behind the element
        m->plain[id] = hlo_type_intern(h, &t);
    } else if (t.nmembers) { // members are interned before what holds them
        TypeId *members = ARENA_NEWN(l->scratch, TypeId, t.nmembers);
        for (uint32_t i = 0; i < t.nmembers; i++)
            members[i] = map_type(m, t.members[i]);
        t.members = members;
        m->plain[id] = hlo_type_intern(h, &t);
    }
}

static bool map_types(Lower *l, TypeMap *m) {
    Hlo *h = l->h;
    bool any = false;
    for (TypeId t = 1; t < h->types.n && !any; t++)
        any = quant_is(hlo_type(h, t));
    if (!any)
        return false;
    m->n = h->types.n;
    m->quant = ARENA_NEWN(l->scratch, const Quant *, m->n);
    m->plain = ARENA_NEWN(l->scratch, TypeId, m->n);
    for (TypeId t = 1; t < m->n; t++)
        map_one(l, m, t);
    return true;
}

static void map_func(Lower *l, const TypeMap *m, HloFunc *f) {
    uint32_t n = f->nargs + f->nresults;
    TypeId *types = ARENA_NEWN(l->h->arena, TypeId, n + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = map_type(m, f->result_types[(int64_t)i - f->nargs]);
    f->result_types = types + f->nargs;
}

// Tensors in attributes: constants and expected values. Ops may share attributes: copied on change.
static void map_attrs(Lower *l, const TypeMap *m, HloOp *op) {
    const HloOpRow *row = hlo_row(op);
    for (int i = 0; op->attrs && i < row->nattrs; i++) {
        TypeId type = op->attrs[i].type;
        if (op->attrs[i].kind != HA_TENSOR || map_type(m, type) == type)
            continue;
        op->attrs = arena_dup(l->h->arena, op->attrs, row->nattrs * sizeof *op->attrs);
        op->attrs[i].type = map_type(m, type);
    }
}

void hlo_lower_quant(Hlo *h, Arena *scratch) {
    Lower l = {.h = h, .scratch = scratch, .known = h->values.n};
    TypeMap m = {0};
    if (!map_types(&l, &m))
        return;
    l.quant = ARENA_NEWN(scratch, const Quant *, l.known);
    VEC_RESERVE(scratch, &l.repl, l.known);
    l.repl.n = l.known;
    for (ValueId v = 0; v < l.known; v++) {
        l.repl.at[v] = v;
        l.quant[v] = m.quant[h->values.at[v].type];
        h->values.at[v].type = map_type(&m, h->values.at[v].type);
    }
    for (OpId id = 1; id < h->ops.n; id++)
        map_attrs(&l, &m, hlo_at(h, id));
    for (uint32_t i = 0; i < h->funcs.n; i++) {
        map_func(&l, &m, &h->funcs.at[i]);
        if (h->funcs.at[i].body)
            lower_region(&l, h->funcs.at[i].body);
    }
}
