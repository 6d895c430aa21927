// SPDX-License-Identifier: Apache-2.0
// spmd.c — the program of all devices becomes the program of each: tensors shrink to parts.
// needs: the entry function without calls
// gives: arguments and results of a device's own shapes, collectives where parts must meet; marks of
//        Shardy gone; "otrn.sharding" on arguments and results that lie in parts (shard_text)
// stale: nothing
//
// A value has up to two forms: whole (every device has all of it) and a device's own part. An op
// that has no rule here takes and gives whole values: parts are gathered before it, so every program
// is correct, at the price of memory. Rules that work on parts:
//   manual_computation   its region is what each device does with its parts; taken in as it is
//   elementwise ops      part by part, when some operand is in parts
// A value may also be left unreduced: each device has a term of it. Its part is the device's term; the whole is
// combined before it is gathered. A value becomes terms by one device keeping it and the others taking 0.
// Results, and operands of the first rule, are cut out of whole values by the device's number.
//
// Inside a manual region "whole" means whole for the devices that share its manual axes: nothing
// else changes, and regions may nest.
#include <string.h>

#include "pass/walk.h"
#include "spmd/shard.h"

typedef struct Form {
    ValueId whole, part; // 0: not there
    const Shards *shards; // of part
} Form;

typedef struct Undo {
    ValueId value;
    Form form;
} Undo;

typedef struct Spmd {
    Compile *c;
    Hlo *h;
    uint32_t devices;
    RegionId to; // where ops are added
    LocId loc;   // of the op at hand
    OpId op;     // for messages
    VEC(Form) forms; // by value of the old body
    VEC(Undo) undo;  // forms changed inside a nested region, which end with it
    uint32_t depth;  // of nested regions
    uint32_t manual; // of manual regions
} Spmd;

static void copy_ops(Spmd *s, RegionId from);

static ShardRead reader(const Spmd *s, const AxisSet *only) {
    return (ShardRead){.h = s->h, .arena = s->c->arena, .op = s->op, .devices = s->devices, .only = only};
}

// --- making ops --------------------------------------------------------------------------------

static OpId add_op(Spmd *s, HloOpcode code, uint32_t n, const ValueId *operands, TypeId type) {
    OpId id = hlo_op(s->h, code, s->loc, n, operands, 1, &type);
    hlo_region_push(s->h, s->to, id);
    return id;
}

static ValueId result(const Spmd *s, OpId id) { return hlo_at(s->h, id)->results; }

static ValueId add_i32s(Spmd *s, const int32_t *v, int64_t n, bool scalar) {
    TypeId type = hlo_type_tensor(s->h, DT_I32, scalar ? 0 : 1, &n);
    OpId id = add_op(s, HLO_CONSTANT, 0, NULL, type);
    void *data = arena_alloc(s->h->arena, (size_t)n * 4);
    memcpy(data, v, (size_t)n * 4);
    *hlo_attr_slot(s->h, id, AK_VALUE) =
        (HloAttr){.kind = HA_TENSOR, .type = type, .data = data, .n = (uint32_t)n * 4};
    return result(s, id);
}

static HloAttr ints_attr(Spmd *s, const int64_t *v, uint32_t n) {
    return (HloAttr){.kind = HA_INTS, .n = n, .ints = hlo_ints_dup(s->h, v, n)};
}

static TypeId part_type(Spmd *s, TypeId whole, const Shards *sh) {
    HloType t = *hlo_type(s->h, whole);
    int64_t dims[OTRN_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        dims[i] = t.dims[i] / sh->parts[i];
        if (t.dims[i] % sh->parts[i])
            ctx_fail(s->h->ctx, OTRN_UNSUPPORTED, hlo_place(s->h, s->loc),
                     "dimension %d of size %lld cannot be cut into %lld equal parts", i,
                     (long long)t.dims[i], (long long)sh->parts[i]);
    }
    t.dims = dims;
    if (t.text) // an encoding or a quantised type stays
        return hlo_type_intern(s->h, &t);
    return t.kind == HT_TENSOR ? hlo_type_tensor(s->h, t.dtype, t.rank, dims) : whole;
}

// --- between whole and part --------------------------------------------------------------------

// The devices of a collective that has a dimension's parts meet.
static void meet(Spmd *s, OpId id, const Shards *sh, uint32_t dim) {
    ShardRead r = reader(s, NULL);
    *hlo_attr_slot(s->h, id, AK_CHANNEL_ID) = (HloAttr){.kind = HA_INT, .i = 1};
    *hlo_attr_slot(s->h, id, AK_REPLICA_GROUPS) =
        (HloAttr){.kind = HA_INTS2,
                  .n = s->devices,
                  .cols = (uint32_t)sh->parts[dim],
                  .ints = shard_groups(&r, sh, dim)};
    *hlo_attr_slot(s->h, id, AK_USE_GLOBAL_DEVICE_IDS) = (HloAttr){.kind = HA_BOOL, .i = 1};
}

static ValueId gather_dim(Spmd *s, ValueId v, const Shards *sh, uint32_t dim) {
    HloType t = *hlo_value_type(s->h, v);
    int64_t dims[OTRN_MAX_RANK];
    memcpy(dims, t.dims, t.rank * sizeof *dims);
    dims[dim] *= sh->parts[dim];
    OpId id = add_op(s, HLO_ALL_GATHER, 1, &v, hlo_type_tensor(s->h, t.dtype, t.rank, dims));
    *hlo_attr_slot(s->h, id, AK_ALL_GATHER_DIM) = (HloAttr){.kind = HA_INT, .i = dim};
    meet(s, id, sh, dim);
    return result(s, id);
}

static ValueId combine_terms(Spmd *s, ValueId v, const Shards *sh) {
    static const HloOpcode codes[] = {[SHARD_ADD] = HLO_ADD, [SHARD_MAX] = HLO_MAXIMUM, [SHARD_MIN] = HLO_MINIMUM};
    Hlo *h = s->h;
    OpId id = add_op(s, HLO_ALL_REDUCE, 1, &v, h->values.at[v].type);
    meet(s, id, sh, sh->rank);
    TypeId scalar = hlo_type_tensor(h, hlo_value_type(h, v)->dtype, 0, NULL), types[2] = {scalar, scalar};
    RegionId body = hlo_op_add_region(h, id, 2, types);
    ValueId args[2] = {h->regions.at[body].args, h->regions.at[body].args + 1};
    OpId step = hlo_op(h, codes[sh->combine], s->loc, 2, args, 1, &scalar);
    hlo_region_push(h, body, step);
    ValueId out = hlo_at(h, step)->results;
    hlo_region_push(h, body, hlo_op(h, HLO_RETURN, s->loc, 1, &out, 0, NULL));
    return result(s, id);
}

// The device's offset in a dimension: a table, looked up by its number.
static ValueId offset_of(Spmd *s, const Shards *sh, uint32_t dim, int64_t part_size) {
    int32_t zero = 0;
    if (sh->parts[dim] == 1)
        return add_i32s(s, &zero, 1, true);
    int32_t *table = ARENA_NEWN(s->c->scratch, int32_t, s->devices);
    for (uint32_t d = 0; d < s->devices; d++)
        table[d] = (int32_t)(sh->index[(size_t)dim * s->devices + d] * part_size);
    OpId number = add_op(s, HLO_PARTITION_ID, 0, NULL, hlo_type_tensor(s->h, DT_UI32, 0, NULL));
    ValueId from[2] = {add_i32s(s, table, s->devices, false), result(s, number)};
    int64_t one = 1;
    OpId row = add_op(s, HLO_DYNAMIC_SLICE, 2, from, hlo_type_tensor(s->h, DT_I32, 1, &one));
    *hlo_attr_slot(s->h, row, AK_SLICE_SIZES) = ints_attr(s, &one, 1);
    ValueId v = result(s, row);
    return result(s, add_op(s, HLO_RESHAPE, 1, &v, hlo_type_tensor(s->h, DT_I32, 0, NULL)));
}

static ValueId cut(Spmd *s, ValueId whole, const Shards *sh) {
    TypeId type = part_type(s, s->h->values.at[whole].type, sh);
    if (type == s->h->values.at[whole].type)
        return whole;
    uint32_t rank = sh->rank;
    ValueId operands[OTRN_MAX_RANK + 1] = {whole};
    for (uint32_t i = 0; i < rank; i++)
        operands[i + 1] = offset_of(s, sh, i, hlo_type(s->h, type)->dims[i]);
    OpId id = add_op(s, HLO_DYNAMIC_SLICE, rank + 1, operands, type);
    *hlo_attr_slot(s->h, id, AK_SLICE_SIZES) = ints_attr(s, hlo_type(s->h, type)->dims, rank);
    return result(s, id);
}

static void set_form(Spmd *s, ValueId v, Form f) {
    if (s->depth)
        VEC_PUSH(s->c->scratch, &s->undo, ((Undo){v, s->forms.at[v]}));
    s->forms.at[v] = f;
}

static ValueId whole_of(Spmd *s, ValueId v) {
    Form f = s->forms.at[v];
    if (f.whole)
        return f.whole;
    f.whole = shard_has_terms(f.shards) ? combine_terms(s, f.part, f.shards) : f.part;
    for (uint32_t i = 0; i < f.shards->rank; i++)
        if (f.shards->parts[i] > 1)
            f.whole = gather_dim(s, f.whole, f.shards, i);
    set_form(s, v, f);
    return f.whole;
}

// A value that is the same everywhere needs no cutting: it is made again in the smaller shape.
static ValueId remade(Spmd *s, ValueId whole, const Shards *sh) {
    OpId def = s->h->values.at[whole].def;
    HloOp op = *hlo_at(s->h, def);
    const HloAttr *value = def && op.code == HLO_CONSTANT ? hlo_attr(&op, AK_VALUE) : NULL;
    bool splat = value && value->kind == HA_TENSOR && hlo_tensor_is_splat(s->h, value);
    bool scalar = def && op.code == HLO_BROADCAST_IN_DIM &&
                  hlo_value_type(s->h, hlo_operand(s->h, &op, 0))->rank == 0;
    if (!splat && !scalar)
        return 0;
    TypeId type = part_type(s, s->h->values.at[whole].type, sh);
    ValueId operand = scalar ? hlo_operand(s->h, &op, 0) : 0;
    OpId id = add_op(s, op.code, scalar, &operand, type);
    HloAttr *slot = hlo_attr_slot(s->h, id, scalar ? AK_BROADCAST_DIMENSIONS : AK_VALUE);
    *slot = scalar ? op.attrs[0] : *value;
    if (splat)
        slot->type = type;
    return result(s, id);
}

// The device with term 0 keeps the value, the others take 0; the largest and smallest of equals need nothing.
static ValueId make_terms(Spmd *s, ValueId v, const Shards *sh) {
    if (!shard_has_terms(sh) || sh->combine != SHARD_ADD)
        return v;
    Hlo *h = s->h;
    TypeId type = h->values.at[v].type;
    int dtype = hlo_type(h, type)->dtype;
    int32_t zero = 0;
    ValueId term = offset_of(s, sh, sh->rank, 1), none = add_i32s(s, &zero, 1, true);
    ValueId other = result(s, add_op(s, HLO_CONVERT, 1, &term, hlo_type_tensor(h, DT_I1, 0, NULL)));
    none = result(s, add_op(s, HLO_CONVERT, 1, &none, hlo_type_tensor(h, dtype, 0, NULL)));
    OpId zeros = add_op(s, HLO_BROADCAST_IN_DIM, 1, &none, type);
    *hlo_attr_slot(h, zeros, AK_BROADCAST_DIMENSIONS) = (HloAttr){.kind = HA_INTS};
    ValueId pick[3] = {other, result(s, zeros), v};
    return result(s, add_op(s, HLO_SELECT, 3, pick, type));
}

static ValueId part_as(Spmd *s, ValueId v, const Shards *sh) {
    const Form *f = &s->forms.at[v];
    if (f->part && shard_same(f->shards, sh))
        return f->part;
    ValueId whole = whole_of(s, v);
    if (shard_is_whole(sh))
        return whole;
    ValueId again = remade(s, whole, sh);
    return make_terms(s, again ? again : cut(s, whole, sh), sh);
}

// --- ops ---------------------------------------------------------------------------------------

static const char *opaque(Spmd *s, const HloOp *op, const char *name) {
    const HloNamed *n = hlo_named_find(op->extra, op->nextra, name);
    if (!n || n->value.kind != HA_OPAQUE)
        hlo_fail(s->h, s->op, OTRN_VERIFY, "the attribute %s is missing", name);
    return n->value.s;
}

static const Shards **shards_list(Spmd *s, const HloOp *op, const char *name, const AxisSet *axes,
                                  uint32_t n, const ValueId *values) {
    uint32_t *ranks = ARENA_NEWN(s->c->scratch, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        ranks[i] = hlo_value_type(s->h, values[i])->rank;
    ShardRead r = reader(s, axes);
    return shard_parse_list(&r, opaque(s, op, name), n, ranks);
}

static ValueId *result_ids(Spmd *s, const HloOp *op) {
    ValueId *v = ARENA_NEWN(s->c->scratch, ValueId, op->nresults + 1u);
    for (uint32_t i = 0; i < op->nresults; i++)
        v[i] = op->results + i;
    return v;
}

static void copy_manual(Spmd *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    HloRegion body = *hlo_op_region(h, &op, 0);
    HloOp ret = *hlo_at(h, body.ops.at[body.ops.n - 1]);
    ShardRead r = reader(s, NULL);
    AxisSet axes = shard_parse_axes(&r, opaque(s, &op, "manual_axes"));
    if (body.nargs != op.noperands || ret.noperands != op.nresults)
        hlo_fail(h, id, OTRN_VERIFY, "its region takes or returns another number of values");
    const Shards **in = shards_list(s, &op, "in_shardings", &axes, op.noperands,
                                    h->operands.at + op.operands);
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId part = part_as(s, hlo_operand(h, &op, i), in[i]);
        if (h->values.at[part].type != h->values.at[body.args + i].type)
            hlo_fail(h, id, OTRN_VERIFY, "argument %u of its region is not a part of the operand", i);
        set_form(s, body.args + i, (Form){.whole = part});
    }
    s->manual++;
    copy_ops(s, h->op_regions.at[op.regions]);
    s->manual--;
    s->op = id;
    s->loc = op.loc;
    const Shards **out = shards_list(s, &op, "out_shardings", &axes, op.nresults, result_ids(s, &op));
    for (uint32_t i = 0; i < op.nresults; i++) {
        ValueId v = whole_of(s, hlo_operand(h, &ret, i));
        if (h->values.at[v].type != part_type(s, h->values.at[op.results + i].type, out[i]))
            hlo_fail(h, id, OTRN_VERIFY, "result %u of its region is not a part of the result", i);
        bool whole = shard_is_whole(out[i]);
        set_form(s, op.results + i,
                 whole ? (Form){.whole = v} : (Form){.part = v, .shards = out[i]});
    }
}

static void copy_constraint(Spmd *s, const HloOp *op) {
    ValueId v = hlo_operand(s->h, op, 0);
    const HloNamed *n = hlo_named_find(op->extra, op->nextra, "sharding");
    Form f = s->forms.at[v];
    if (n && n->value.kind == HA_OPAQUE) {
        ShardRead r = reader(s, NULL);
        const HloType *t = hlo_value_type(s->h, v);
        const Shards *sh = shard_parse(&r, n->value.s, t->rank);
        bool even = true;
        for (uint32_t i = 0; i < sh->rank; i++)
            even &= t->dims[i] % sh->parts[i] == 0; // uneven parts stay a wish
        if (even && !shard_is_whole(sh)) {
            ValueId part = part_as(s, v, sh);
            f = (Form){.whole = s->forms.at[v].whole, .part = part, .shards = sh};
        } else if (even) {
            f = (Form){.whole = whole_of(s, v)};
        }
    }
    set_form(s, op->results, f);
}

// The sharding an elementwise op works in: that of its first operand in parts; NULL: whole.
static const Shards *elementwise_shards(const Spmd *s, const HloOp *op) {
    if (hlo_row(op)->cls > HC_EW3 || op->nresults != 1)
        return NULL;
    const HloType *r = hlo_value_type(s->h, op->results);
    const Shards *found = NULL;
    for (uint32_t i = 0; i < op->noperands; i++) {
        ValueId v = hlo_operand(s->h, op, i);
        const HloType *t = hlo_value_type(s->h, v);
        if (t->rank != r->rank && t->rank)
            return NULL;
        if (!found && t->rank == r->rank && s->forms.at[v].part && !shard_has_terms(s->forms.at[v].shards))
            found = s->forms.at[v].shards;
    }
    return r->kind == HT_TENSOR && r->rank && !r->text ? found : NULL;
}

static void note_outer(Spmd *s, RegionId region);

// A copy of the op with the operands given. Regions follow.
static OpId clone(Spmd *s, const HloOp *op, const ValueId *operands, const TypeId *types) {
    OpId copy = hlo_op(s->h, op->code, op->loc, op->noperands, operands, op->nresults, types);
    HloOp *made = hlo_at(s->h, copy);
    made->attrs = op->attrs; // contents are never changed in place once shared
    made->extra = op->extra;
    made->nextra = op->nextra;
    return copy;
}

static void copy_region_of(Spmd *s, OpId copy, RegionId from) {
    Hlo *h = s->h;
    HloRegion src = h->regions.at[from];
    TypeId *types = ARENA_NEWN(s->c->scratch, TypeId, src.nargs + 1);
    for (uint32_t i = 0; i < src.nargs; i++)
        types[i] = h->values.at[src.args + i].type;
    RegionId dst = hlo_op_add_region(h, copy, src.nargs, types);
    RegionId outer = s->to;
    uint32_t mark = s->undo.n;
    s->to = dst;
    s->depth++;
    for (uint32_t i = 0; i < src.nargs; i++)
        set_form(s, src.args + i, (Form){.whole = h->regions.at[dst].args + i});
    copy_ops(s, from);
    HloOp ret = *hlo_at(h, src.ops.at[src.ops.n - 1]);
    ValueId *values = ARENA_NEWN(s->c->scratch, ValueId, ret.noperands + 1);
    for (uint32_t i = 0; i < ret.noperands; i++)
        values[i] = whole_of(s, hlo_operand(h, &ret, i));
    OpId back = clone(s, &ret, values, NULL);
    hlo_region_push(h, dst, back);
    while (s->undo.n > mark) {
        Undo u = s->undo.at[--s->undo.n];
        s->forms.at[u.value] = u.form;
    }
    s->depth--;
    s->to = outer;
}

static void copy_plain(Spmd *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    const Shards *sh = elementwise_shards(s, &op);
    ValueId *operands = ARENA_NEWN(s->c->scratch, ValueId, op.noperands + 1);
    TypeId *types = ARENA_NEWN(s->c->scratch, TypeId, op.nresults + 1u);
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId v = hlo_operand(h, &op, i);
        bool in_parts = sh && hlo_value_type(h, v)->rank == sh->rank;
        operands[i] = in_parts ? part_as(s, v, sh) : whole_of(s, v);
    }
    for (uint32_t i = 0; i < op.nresults; i++) {
        TypeId whole = h->values.at[op.results + i].type;
        types[i] = sh ? part_type(s, whole, sh) : whole;
    }
    for (uint32_t r = 0; r < op.nregions; r++)
        note_outer(s, h->op_regions.at[op.regions + r]);
    OpId copy = clone(s, &op, operands, types);
    for (uint32_t r = 0; r < op.nregions; r++)
        copy_region_of(s, copy, h->op_regions.at[op.regions + r]);
    hlo_region_push(h, s->to, copy);
    for (uint32_t i = 0; i < op.nresults; i++) {
        ValueId v = hlo_at(h, copy)->results + i;
        set_form(s, op.results + i, sh ? (Form){.part = v, .shards = sh} : (Form){.whole = v});
    }
}

// Values of outside that a region wants whole are gathered before it, once.
static void note_outer(Spmd *s, RegionId region) {
    Hlo *h = s->h;
    for (uint32_t i = 0; i < h->regions.at[region].ops.n; i++) {
        const HloOp op = *hlo_at(h, h->regions.at[region].ops.at[i]);
        bool manual = op.code == HLO_SDY_MANUAL_COMPUTATION;
        for (uint32_t k = 0; k < op.noperands && !manual; k++) {
            ValueId v = hlo_operand(h, &op, k);
            if (s->forms.at[v].part)
                whole_of(s, v);
        }
        for (uint32_t r = 0; r < op.nregions; r++)
            note_outer(s, h->op_regions.at[op.regions + r]);
    }
}

static void call_once(Spmd *s, OpId call) {
    HloOp *op = hlo_at(s->h, call);
    size_t n = hlo_row(op)->nattrs;
    HloAttr *attrs = ARENA_NEWN(s->h->arena, HloAttr, n); // the old ones are shared
    memcpy(attrs, op->attrs, n * sizeof *attrs);
    op->attrs = attrs;
    HloAttr *config = hlo_attr_slot(s->h, call, AK_BACKEND_CONFIG);
    const char *number = config->kind == HA_STR ? config->s : "";
    const char *text = arena_printf(s->h->arena, "%s once", number);
    *config = (HloAttr){.kind = HA_STR, .s = text, .n = (uint32_t)strlen(text)};
}

// A call to the host that works on whole values is made by the first device, which sends what came
// back to the others.
static void copy_host_call(Spmd *s, OpId id) {
    Hlo *h = s->h;
    copy_plain(s, id);
    HloOp op = *hlo_at(h, id);
    if (s->devices == 1 || s->manual)
        return;
    const HloRegion *to = &h->regions.at[s->to];
    call_once(s, to->ops.at[to->ops.n - 1]);
    for (uint32_t i = 0; i < op.nresults; i++) {
        Form f = s->forms.at[op.results + i];
        if (hlo_value_type(h, f.whole)->kind != HT_TENSOR)
            continue;
        int64_t *all = ARENA_NEWN(h->arena, int64_t, s->devices);
        for (uint32_t d = 0; d < s->devices; d++)
            all[d] = d;
        OpId send = add_op(s, HLO_COLLECTIVE_BROADCAST, 1, &f.whole, h->values.at[f.whole].type);
        *hlo_attr_slot(h, send, AK_CHANNEL_ID) = (HloAttr){.kind = HA_INT, .i = 1};
        *hlo_attr_slot(h, send, AK_HAS_DYNAMIC_ROOT) = (HloAttr){.kind = HA_BOOL};
        *hlo_attr_slot(h, send, AK_REPLICA_GROUPS) =
            (HloAttr){.kind = HA_INTS2, .n = s->devices, .cols = s->devices, .ints = all};
        set_form(s, op.results + i, (Form){.whole = result(s, send)});
    }
}

static bool is_host_call(const HloOp *op) {
    return op->code == HLO_CUSTOM_CALL && !strcmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), HLO_HOST_CALL);
}

// All but the last op of a region, its return.
static void copy_ops(Spmd *s, RegionId from) {
    Hlo *h = s->h;
    for (uint32_t i = 0; i + 1 < h->regions.at[from].ops.n; i++) {
        OpId id = h->regions.at[from].ops.at[i];
        const HloOp op = *hlo_at(h, id);
        s->op = id;
        s->loc = op.loc;
        switch (op.code) {
        case HLO_SDY_MANUAL_COMPUTATION:
            copy_manual(s, id);
            break;
        case HLO_SDY_SHARDING_CONSTRAINT:
        case HLO_SDY_RESHARD:
            copy_constraint(s, &op);
            break;
        case HLO_SDY_PROPAGATION_BARRIER:
            set_form(s, op.results, s->forms.at[hlo_operand(h, &op, 0)]);
            break;
        case HLO_SDY_SHARDING_GROUP:
            break;
        default:
            if (is_host_call(&op))
                copy_host_call(s, id);
            else
                copy_plain(s, id);
        }
    }
}

// --- the signature -----------------------------------------------------------------------------

static const Shards *attr_shards(Spmd *s, const HloNamed *attrs, uint32_t n, TypeId type) {
    const HloNamed *a = attrs ? hlo_named_find(attrs, n, "sdy.sharding") : NULL;
    if (!a || a->value.kind != HA_OPAQUE || hlo_type(s->h, type)->kind != HT_TENSOR)
        return NULL;
    ShardRead r = reader(s, NULL);
    return shard_parse(&r, a->value.s, hlo_type(s->h, type)->rank);
}

// An argument without a sharding lies as the first manual computation wants it.
static void wishes(Spmd *s, RegionId body, const Shards **args) {
    Hlo *h = s->h;
    HloRegion r = h->regions.at[body];
    for (uint32_t i = 0; i < r.ops.n; i++) {
        const HloOp op = *hlo_at(h, r.ops.at[i]);
        if (op.code != HLO_SDY_MANUAL_COMPUTATION)
            continue;
        s->op = r.ops.at[i];
        ShardRead read = reader(s, NULL);
        AxisSet axes = shard_parse_axes(&read, opaque(s, &op, "manual_axes"));
        const Shards **in = shards_list(s, &op, "in_shardings", &axes, op.noperands,
                                        h->operands.at + op.operands);
        for (uint32_t k = 0; k < op.noperands; k++) {
            ValueId v = hlo_operand(h, &op, k);
            if (v >= r.args && v < r.args + r.nargs && !args[v - r.args])
                args[v - r.args] = in[k];
        }
    }
}

// attrs[i] with the sharding's text added.
static void tell(Spmd *s, const HloNamed **attrs, uint32_t *n, const Shards *sh) {
    const char *text = shard_text(sh, s->h->arena);
    if (!*text)
        return;
    HloNamed *list = ARENA_NEWN(s->h->arena, HloNamed, *n + 1);
    if (*n)
        memcpy(list, *attrs, *n * sizeof *list);
    list[(*n)++] = (HloNamed){
        "otrn.sharding", {.kind = HA_STR, .s = text, .n = (uint32_t)strlen(text)}};
    *attrs = list;
}

typedef struct Attrs { // of arguments or results, to be changed
    const HloNamed **at;
    uint32_t *n;
} Attrs;

static Attrs attrs_dup(Spmd *s, const HloNamed **at, const uint32_t *n, uint32_t count) {
    Attrs a = {ARENA_NEWN(s->h->arena, const HloNamed *, count + 1),
               ARENA_NEWN(s->h->arena, uint32_t, count + 1)};
    for (uint32_t i = 0; at && i < count; i++) {
        a.at[i] = at[i];
        a.n[i] = n[i];
    }
    return a;
}

static void copy_main(Spmd *s, HloFunc *f) {
    Hlo *h = s->h;
    RegionId from = f->body;
    HloRegion src = h->regions.at[from];
    HloOp ret = *hlo_at(h, src.ops.at[src.ops.n - 1]);
    Attrs in = attrs_dup(s, f->arg_attrs, f->narg_attrs, f->nargs);
    Attrs out = attrs_dup(s, f->res_attrs, f->nres_attrs, f->nresults);
    const Shards **args = ARENA_NEWN(s->c->scratch, const Shards *, f->nargs + 1);
    TypeId *types = ARENA_NEWN(h->arena, TypeId, f->nargs + f->nresults + 1);
    s->loc = f->loc;
    for (uint32_t i = 0; i < f->nargs; i++)
        args[i] = attr_shards(s, in.at[i], in.n[i], h->values.at[src.args + i].type);
    wishes(s, from, args);
    s->op = 0;
    for (uint32_t i = 0; i < f->nargs; i++) {
        TypeId whole = h->values.at[src.args + i].type;
        types[i] = args[i] ? part_type(s, whole, args[i]) : whole;
    }
    s->to = hlo_region(h, 0, f->nargs, types);
    for (uint32_t i = 0; i < f->nargs; i++) {
        ValueId v = h->regions.at[s->to].args + i;
        bool in_parts = args[i] && !shard_is_whole(args[i]);
        s->forms.at[src.args + i] =
            in_parts ? (Form){.part = v, .shards = args[i]} : (Form){.whole = v};
        if (in_parts)
            tell(s, &in.at[i], &in.n[i], args[i]);
    }
    copy_ops(s, from);
    s->op = 0;
    ValueId *values = ARENA_NEWN(s->c->scratch, ValueId, ret.noperands + 1);
    for (uint32_t i = 0; i < ret.noperands; i++) {
        ValueId v = hlo_operand(h, &ret, i);
        const Shards *sh = attr_shards(s, out.at[i], out.n[i], f->result_types[i]);
        if (!sh && s->forms.at[v].part && !shard_has_terms(s->forms.at[v].shards))
            sh = s->forms.at[v].shards;
        values[i] = sh ? part_as(s, v, sh) : whole_of(s, v);
        types[f->nargs + i] = h->values.at[values[i]].type;
        if (sh)
            tell(s, &out.at[i], &out.n[i], sh);
    }
    hlo_region_push(h, s->to, clone(s, &ret, values, NULL));
    f->body = s->to;
    f->result_types = types + f->nargs;
    f->arg_attrs = in.at;
    f->narg_attrs = in.n;
    f->res_attrs = out.at;
    f->nres_attrs = out.n;
}

uint32_t spmd_partitions(const Hlo *h) {
    const HloNamed *n = hlo_named_find(h->extra, h->nextra, "mhlo.num_partitions");
    return n && n->value.kind == HA_INT && n->value.i > 1 && n->value.i <= SHARD_DEVICES_MAX
               ? (uint32_t)n->value.i
               : 1;
}

static bool speaks_of_shards(const Hlo *h) {
    if (hlo_named_find(h->extra, h->nextra, "sdy.meshes"))
        return true;
    for (OpId id = 1; id < h->ops.n; id++)
        if ((hlo_row(hlo_at(h, id))->dialect == HD_SDY && hlo_at(h, id)->code) ||
            (is_host_call(hlo_at(h, id)) && spmd_partitions(h) > 1))
            return true;
    return false;
}

void pass_spmd(Compile *c) {
    Hlo *h = c->hlo;
    if (!speaks_of_shards(h))
        return;
    Spmd s = {.c = c, .h = h, .devices = spmd_partitions(h)};
    VEC_RESERVE(c->scratch, &s.forms, h->values.n);
    memset(s.forms.at, 0, h->values.n * sizeof *s.forms.at);
    s.forms.n = h->values.n;
    copy_main(&s, hlo_main(h));
}
