// SPDX-License-Identifier: Apache-2.0
// reduce_edit.c — carries edits of a graph out; the idea is in reduce_edit.h.
#include "write/reduce_edit.h"

#include <assert.h>

Edit edit_begin(Hlo *h) {
    Edit e = {.h = h, .nops = h->ops.n, .nvalues = h->values.n};
    e.to = ARENA_NEWN(h->arena, ValueId, e.nvalues);
    e.gone = ARENA_NEWN(h->arena, uint8_t, e.nops);
    e.splice = ARENA_NEWN(h->arena, RegionId, e.nops);
    e.fresh = arena_array(h->arena, e.nops, sizeof *e.fresh);
    e.taken = ARENA_NEWN(h->arena, uint8_t, h->funcs.n + 1u);
    return e;
}

// --- walking ------------------------------------------------------------------------------------

static void walk_region(Hlo *h, RegionId r, uint32_t func, WalkOps *out) {
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId op = h->regions.at[r].ops.at[i];
        VEC_PUSH(h->arena, out, ((WalkOp){op, func}));
        for (uint32_t k = 0; k < hlo_at(h, op)->nregions; k++)
            walk_region(h, h->op_regions.at[hlo_at(h, op)->regions + k], func, out);
    }
}

WalkOps edit_walk(Hlo *h) {
    WalkOps out = {0};
    for (uint32_t i = 0; i < h->funcs.n; i++)
        if (h->funcs.at[i].body)
            walk_region(h, h->funcs.at[i].body, i, &out);
    return out;
}

HloFunc *edit_entry(Hlo *h) {
    HloFunc *first = NULL;
    for (uint32_t i = 0; i < h->funcs.n; i++) {
        HloFunc *f = &h->funcs.at[i];
        if (f->body && !strcmp(f->name, "main"))
            return f;
        if (f->body && !f->is_private && !first)
            first = f;
    }
    return first;
}

OpId edit_return(const Hlo *h, RegionId r) {
    const HloRegion *region = &h->regions.at[r];
    return region->ops.n ? region->ops.at[region->ops.n - 1] : 0;
}

// --- edits --------------------------------------------------------------------------------------

static void fresh_add(Edit *e, OpId before, OpId op) {
    assert(before < e->nops);
    if (!e->fresh[before].n)
        e->fresh[before].first = op;
    assert(e->fresh[before].first + e->fresh[before].n == op);
    e->fresh[before].n++;
}

ValueId edit_zero(Edit *e, OpId before, TypeId type) {
    Hlo *h = e->h;
    const HloType *ty = hlo_type(h, type);
    bool tensor = ty->kind == HT_TENSOR && !ty->dynamic && !ty->text;
    if (!tensor && ty->kind != HT_TOKEN)
        return 0;
    size_t elem = tensor ? dtype_bytes(ty->dtype) : 0;
    uint32_t n = tensor && ty->elems ? (uint32_t)elem : 0;
    LocId loc = hlo_at(h, before)->loc;
    OpId op = hlo_op(h, tensor ? HLO_CONSTANT : HLO_CREATE_TOKEN, loc, 0, NULL, 1, &type);
    if (tensor)
        *hlo_attr_slot(h, op, AK_VALUE) = (HloAttr){
            .kind = HA_TENSOR, .type = type, .n = n, .data = arena_zalloc(h->arena, elem)};
    fresh_add(e, before, op);
    return hlo_at(h, op)->results;
}

void edit_drop(Edit *e, OpId op) {
    e->gone[op] = 1;
    e->changed = true;
}

void edit_splice(Edit *e, OpId op, RegionId region, const ValueId *args) {
    Hlo *h = e->h;
    const HloRegion *r = &h->regions.at[region];
    const HloOp *ret = hlo_at(h, edit_return(h, region)), *from = hlo_at(h, op);
    assert(ret->code == HLO_RETURN);
    assert(ret->noperands == from->nresults);
    for (uint32_t i = 0; i < r->nargs; i++)
        e->to[r->args + i] = args[i];
    for (uint32_t i = 0; i < from->nresults; i++)
        e->to[from->results + i] = hlo_operand(h, ret, i);
    e->splice[op] = region;
    e->changed = true;
}

// Things of a list but for those dropped, in a new array.
static uint32_t keep_dicts(Hlo *h, const HloNamed ***dicts, const uint32_t **counts, uint32_t n,
                           const uint8_t *drop, uint32_t more) {
    const HloNamed **kept = ARENA_NEWN(h->arena, const HloNamed *, (size_t)n + more + 1);
    uint32_t *sizes = ARENA_NEWN(h->arena, uint32_t, (size_t)n + more + 1), k = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (drop && drop[i])
            continue;
        kept[k] = *dicts ? (*dicts)[i] : NULL;
        sizes[k++] = *dicts ? (*counts)[i] : 0;
    }
    if (*dicts) {
        *dicts = kept;
        *counts = sizes;
    }
    return k + more;
}

// Those of the arguments that stay, and of those lifted.
static const LocId *keep_locs(Hlo *h, const HloFunc *f, const Signature *s) {
    if (!f->arg_locs)
        return NULL;
    LocId *kept = ARENA_NEWN(h->arena, LocId, (size_t)f->nargs + s->nlifted + 1);
    uint32_t k = 0;
    for (uint32_t i = 0; i < f->nargs; i++)
        if (!s->drop_args || !s->drop_args[i])
            kept[k++] = f->arg_locs[i];
    return kept;
}

// New arguments for the ones that stay and those lifted: a region's arguments are consecutive
// values.
static void new_args(Edit *e, HloFunc *f, const Signature *s) {
    Hlo *h = e->h;
    RegionId body = f->body;
    ValueId old = h->regions.at[body].args, first = h->values.n;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->nargs + s->nlifted; i++) {
        bool is_lifted = i >= f->nargs;
        if (!is_lifted && s->drop_args && s->drop_args[i])
            continue;
        ValueId from = is_lifted ? s->lifted[i - f->nargs] : old + i;
        ValueId v = hlo_value(h, h->values.at[from].type);
        h->values.at[v].region = body;
        h->values.at[v].index = n++;
        e->to[from] = v;
    }
    h->regions.at[body].args = first;
    h->regions.at[body].nargs = n;
}

void edit_signature(Edit *e, HloFunc *f, const Signature *s) {
    Hlo *h = e->h;
    new_args(e, f, s);
    OpId ret = edit_return(h, f->body);
    VEC(TypeId) types = {0};
    VEC(ValueId) values = {0};
    const HloRegion *r = &h->regions.at[f->body];
    for (uint32_t i = 0; i < r->nargs; i++)
        VEC_PUSH(h->arena, &types, h->values.at[r->args + i].type);
    for (uint32_t i = 0; i < f->nresults; i++) {
        if (s->drop_results && s->drop_results[i])
            continue;
        VEC_PUSH(h->arena, &types, f->result_types[i]);
        VEC_PUSH(h->arena, &values, hlo_operand(h, hlo_at(h, ret), i));
    }
    hlo_op_set_operands(h, ret, values.n, values.at);
    f->arg_locs = keep_locs(h, f, s);
    f->nargs = keep_dicts(h, &f->arg_attrs, &f->narg_attrs, f->nargs, s->drop_args, s->nlifted);
    f->nresults = keep_dicts(h, &f->res_attrs, &f->nres_attrs, f->nresults, s->drop_results, 0);
    VEC_PUSH(h->arena, &types, 0); // never empty
    f->result_types = types.at + f->nargs;
    e->changed = true;
}

void edit_results(Edit *e, HloFunc *f, const ValueId *values, uint32_t n) {
    Hlo *h = e->h;
    TypeId *types = ARENA_NEWN(h->arena, TypeId, (size_t)f->nargs + n + 1);
    for (uint32_t i = 0; i < f->nargs; i++)
        types[i] = f->result_types[(int64_t)i - f->nargs];
    for (uint32_t i = 0; i < n; i++)
        types[f->nargs + i] = h->values.at[values[i]].type;
    hlo_op_set_operands(h, edit_return(h, f->body), n, values);
    f->result_types = types + f->nargs;
    f->nresults = n;
    f->res_attrs = NULL;
    f->nres_attrs = NULL;
    e->changed = true;
}

// --- carrying out -------------------------------------------------------------------------------

static ValueId resolve(const Edit *e, ValueId v) { // values are replaced by earlier ones only
    while (v < e->nvalues && e->to[v])
        v = e->to[v];
    return v;
}

typedef VEC(OpId) OpList;

static void rebuild(Edit *e, RegionId r);

static void take_ops(Edit *e, RegionId r, bool with_return, OpList *out) {
    Hlo *h = e->h;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        if (i + 1 == h->regions.at[r].ops.n && !with_return)
            return;
        for (uint32_t k = 0; k < e->fresh[id].n; k++)
            VEC_PUSH(h->arena, out, e->fresh[id].first + k);
        if (e->gone[id])
            continue;
        if (e->splice[id]) {
            take_ops(e, e->splice[id], false, out);
            continue;
        }
        HloOp *op = hlo_at(h, id);
        for (uint32_t k = 0; k < op->noperands; k++)
            h->operands.at[op->operands + k] = resolve(e, h->operands.at[op->operands + k]);
        for (uint32_t k = 0; k < op->nregions; k++)
            rebuild(e, h->op_regions.at[hlo_at(h, id)->regions + k]);
        VEC_PUSH(h->arena, out, id);
    }
}

static void rebuild(Edit *e, RegionId r) {
    OpList ops = {0};
    take_ops(e, r, true, &ops);
    e->h->regions.at[r].ops.at = ops.at;
    e->h->regions.at[r].ops.n = ops.n;
    e->h->regions.at[r].ops.cap = ops.cap;
}

bool edit_end(Edit *e) {
    Hlo *h = e->h;
    if (!e->changed)
        return false;
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->funcs.n; i++)
        if (!e->taken[i])
            h->funcs.at[n++] = h->funcs.at[i];
    h->funcs.n = n;
    for (uint32_t i = 0; i < n; i++)
        if (h->funcs.at[i].body)
            rebuild(e, h->funcs.at[i].body);
    return true;
}
