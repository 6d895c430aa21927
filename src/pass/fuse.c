// SPDX-License-Identifier: Apache-2.0
// fuse.c — join elementwise ops over one shape, so that what they hand each other never reaches memory.
// needs: no dead ops, values defined before use
// gives: otrn.fused ops, whose region is one element's work; their results are what others read
// stale: nothing
//
// Ops are visited in order. An elementwise op joins the open group that made one of its operands; any other use
// of a group's values closes the group, and the fused op stands where it is closed. So inputs are always there
// before it and no use comes before its results. Splat constants become constants of the region, broadcast
// scalars are read by it directly, and a tensor repeated along rows or columns is read as it was before that. Groups
// that one op reads become one. Each step rounds as the op alone would: fusing changes no bit.
#include <string.h>

#include "pass/walk.h"

#define GROUP_OPS_MAX 192
#define GROUP_INPUTS_MAX 16

typedef struct Group {
    VEC(OpId) ops;
    TypeId shape; // type of one member's result: only its dimensions count
    bool open;
} Group;

typedef struct Fuse {
    Compile *c;
    Hlo *h;
    Walk w;
    VEC(Group) groups;    // slot 0 is none
    VEC(uint32_t) of;     // value -> group that makes it
    uint32_t *uses;       // value -> reads in the whole program, before fusing
    uint32_t nuses;
} Fuse;

static uint32_t group_of(const Fuse *f, ValueId v) { return v < f->of.n ? f->of.at[v] : 0; }

static bool same_dims(const HloType *a, const HloType *b) {
    return a->rank == b->rank && (!a->rank || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}

static bool is_fusible(const Hlo *h, const HloOp *op) {
    const HloOpRow *row = hlo_row(op);
    if (row->cls > HC_EW3 || row->dialect != HD_STABLEHLO || op->nresults != 1)
        return false;
    const HloType *out = hlo_value_type(h, op->results);
    if (out->kind != HT_TENSOR || out->dynamic || out->text || !out->elems || dtype_is_complex(out->dtype))
        return false;
    for (uint32_t i = 0; i < op->noperands; i++) {
        const HloType *in = hlo_value_type(h, hlo_operand(h, op, i));
        if (in->kind != HT_TENSOR || in->text || !same_dims(in, out) || dtype_is_complex(in->dtype))
            return false;
    }
    return true;
}

// The splat constant or the broadcast scalar behind an operand, when it is one.
static const HloAttr *splat_of(const Hlo *h, ValueId v) {
    OpId def = h->values.at[v].def;
    if (!def || hlo_at(h, def)->code != HLO_CONSTANT)
        return NULL;
    const HloAttr *a = hlo_attr(hlo_at(h, def), AK_VALUE);
    return a && a->n == dtype_bytes(hlo_type(h, a->type)->dtype) ? a : NULL;
}

static ValueId scalar_behind(const Hlo *h, ValueId v) {
    OpId def = h->values.at[v].def;
    if (!def || hlo_at(h, def)->code != HLO_BROADCAST_IN_DIM)
        return 0;
    ValueId s = hlo_operand(h, hlo_at(h, def), 0);
    return hlo_value_type(h, s)->rank == 0 ? s : 0;
}

// The smaller tensor behind an operand that only repeats it along leading or trailing dimensions; *kind says which.
static ValueId repeated_behind(const Hlo *h, ValueId v, int64_t *kind) {
    *kind = FUSED_SAME;
    OpId def = h->values.at[v].def;
    if (!def || hlo_at(h, def)->code != HLO_BROADCAST_IN_DIM)
        return v;
    uint32_t n;
    const int64_t *dims = hlo_ints(hlo_at(h, def), AK_BROADCAST_DIMENSIONS, &n);
    ValueId s = hlo_operand(h, hlo_at(h, def), 0);
    const HloType *in = hlo_value_type(h, s), *out = hlo_value_type(h, v);
    if (!n || n != in->rank || in->text)
        return v;
    for (int64_t way = FUSED_ROWS; way <= FUSED_COLUMNS; way++) {
        bool fits = hlo_fused_fits(in->dims, in->rank, out->dims, out->rank, way);
        uint32_t ones = 0; // dimensions of size one at the repeated end say nothing about the order
        while (ones < n && in->dims[way == FUSED_ROWS ? n - 1 - ones : ones] == 1)
            ones++;
        for (uint32_t i = 0; i < n - ones; i++)
            fits = fits && (way == FUSED_ROWS ? dims[i] == i : dims[n - 1 - i] == out->rank - 1 - (int64_t)i);
        if (fits) {
            *kind = way;
            return s;
        }
    }
    return v;
}

// --- building the fused op ---------------------------------------------------------------------------------

static TypeId scalar_type(Hlo *h, ValueId v) {
    return hlo_type_tensor(h, hlo_value_type(h, v)->dtype, 0, NULL);
}

typedef VEC(ValueId) Values;

static bool has_value(const Values *list, ValueId v) {
    for (uint32_t i = 0; i < list->n; i++)
        if (list->at[i] == v)
            return true;
    return false;
}

// Operands that come from outside and are neither splats nor broadcast scalars, each once.
static void add_inputs(Fuse *f, const HloOp *op, uint32_t group, Values *inputs) {
    for (uint32_t k = 0; k < op->noperands; k++) {
        ValueId v = hlo_operand(f->h, op, k);
        if (group_of(f, v) != group && !splat_of(f->h, v) && !scalar_behind(f->h, v) &&
            !has_value(inputs, v))
            VEC_PUSH(f->c->scratch, inputs, v);
    }
}

static void copy_member(Fuse *f, ValueMap *b, RegionId r, OpId id) {
    Hlo *h = f->h;
    HloOp op = *hlo_at(h, id);
    ValueId operands[3];
    for (uint32_t k = 0; k < op.noperands; k++) {
        ValueId v = hlo_operand(h, &op, k), in = value_map_get(b, v);
        const HloAttr *splat = in ? NULL : splat_of(h, v);
        if (!in && splat) {
            TypeId t = scalar_type(h, v);
            HloAttr value = *splat;
            value.type = t;
            OpId c = hlo_op(h, HLO_CONSTANT, op.loc, 0, NULL, 1, &t);
            *hlo_attr_slot(h, c, AK_VALUE) = value;
            hlo_region_push(h, r, c);
            in = hlo_at(h, c)->results;
            value_map_set(f->c->scratch, b, v, in);
        } else if (!in) {
            in = scalar_behind(h, v); // read from outside the region
        }
        assert(in && hlo_value_type(h, in)->rank == 0); // one element's work
        operands[k] = in;
    }
    TypeId t = scalar_type(h, op.results);
    OpId made = hlo_op(h, op.code, op.loc, op.noperands, operands, 1, &t);
    hlo_at(h, made)->attrs = op.attrs;
    hlo_region_push(h, r, made);
    value_map_set(f->c->scratch, b, op.results, hlo_at(h, made)->results);
}

// Members whose value somebody outside the group reads.
static void find_outputs(Fuse *f, uint32_t group, Values *outputs) {
    Hlo *h = f->h;
    const Group *g = &f->groups.at[group];
    for (uint32_t i = 0; i < g->ops.n; i++) {
        ValueId v = hlo_at(h, g->ops.at[i])->results;
        uint32_t within = 0;
        for (uint32_t j = i + 1; j < g->ops.n; j++) {
            const HloOp *user = hlo_at(h, g->ops.at[j]);
            for (uint32_t k = 0; k < user->noperands; k++)
                within += hlo_operand(h, user, k) == v;
        }
        if (v < f->nuses && f->uses[v] > within)
            VEC_PUSH(f->c->scratch, outputs, v);
    }
}

// A single op is worth it when an operand then need not be written out at full size.
static bool saves_alone(const Hlo *h, const HloOp *op) {
    for (uint32_t k = 0; k < op->noperands; k++) {
        int64_t kind;
        ValueId v = hlo_operand(h, op, k);
        repeated_behind(h, v, &kind);
        if (kind != FUSED_SAME || scalar_behind(h, v) || (splat_of(h, v) && hlo_value_type(h, v)->elems > 1))
            return true;
    }
    return false;
}

static void close_group(Fuse *f, uint32_t group, OpList *out) {
    Hlo *h = f->h;
    assert(group && group < f->groups.n && f->groups.at[group].open);
    f->groups.at[group].open = false;
    Group g = f->groups.at[group];
    if (g.ops.n == 1 && !saves_alone(h, hlo_at(h, g.ops.at[0]))) {
        VEC_PUSH(f->c->scratch, out, g.ops.at[0]);
        return;
    }
    Values inputs = {0}, outputs = {0};
    for (uint32_t i = 0; i < g.ops.n; i++)
        add_inputs(f, hlo_at(h, g.ops.at[i]), group, &inputs);
    find_outputs(f, group, &outputs);
    TypeId *types = ARENA_NEWN(f->c->scratch, TypeId, inputs.n + outputs.n + 1);
    for (uint32_t i = 0; i < outputs.n; i++)
        types[i] = h->values.at[outputs.at[i]].type;
    LocId loc = hlo_at(h, g.ops.at[g.ops.n - 1])->loc;
    int64_t *kinds = ARENA_NEWN(h->arena, int64_t, inputs.n + 1);
    ValueId *operands = ARENA_NEWN(f->c->scratch, ValueId, inputs.n + 1);
    for (uint32_t i = 0; i < inputs.n; i++)
        operands[i] = repeated_behind(h, inputs.at[i], &kinds[i]);
    OpId fused = hlo_op(h, HLO_FUSED, loc, inputs.n, operands, outputs.n, types);
    *hlo_attr_slot(h, fused, AK_BROADCAST_DIMENSIONS) = (HloAttr){.kind = HA_INTS, .n = inputs.n, .ints = kinds};
    for (uint32_t i = 0; i < inputs.n; i++)
        types[i] = scalar_type(h, inputs.at[i]);
    RegionId r = hlo_op_add_region(h, fused, inputs.n, types);
    ValueMap b = {0}; // value outside -> value inside the region
    for (uint32_t i = 0; i < inputs.n; i++)
        value_map_set(f->c->scratch, &b, inputs.at[i], h->regions.at[r].args + i);
    for (uint32_t i = 0; i < g.ops.n; i++)
        copy_member(f, &b, r, g.ops.at[i]);
    ValueId *yield = ARENA_NEWN(f->c->scratch, ValueId, outputs.n + 1);
    for (uint32_t i = 0; i < outputs.n; i++)
        yield[i] = value_map_get(&b, outputs.at[i]);
    hlo_region_push(h, r, hlo_op(h, HLO_RETURN, loc, outputs.n, yield, 0, NULL));
    walk_grow(&f->w);
    for (uint32_t i = 0; i < outputs.n; i++)
        walk_replace(&f->w, outputs.at[i], hlo_at(h, fused)->results + i);
    VEC_PUSH(f->c->scratch, out, fused);
}

// --- grouping ----------------------------------------------------------------------------------------------

static bool has_room(Fuse *f, uint32_t group, const HloOp *op) {
    const Group *g = &f->groups.at[group];
    if (g->ops.n >= GROUP_OPS_MAX ||
        !same_dims(hlo_type(f->h, g->shape), hlo_value_type(f->h, op->results)))
        return false;
    Values inputs = {0};
    for (uint32_t i = 0; i < g->ops.n; i++)
        add_inputs(f, hlo_at(f->h, g->ops.at[i]), group, &inputs);
    add_inputs(f, op, group, &inputs);
    return inputs.n <= GROUP_INPUTS_MAX;
}

static void close_users(Fuse *f, const HloOp *op, uint32_t except, OpList *out) {
    for (uint32_t k = 0; k < op->noperands; k++) {
        uint32_t g = group_of(f, hlo_operand(f->h, op, k));
        if (g && g != except && f->groups.at[g].open)
            close_group(f, g, out);
    }
    for (uint32_t r = 0; r < op->nregions; r++) { // values that its regions read from outside
        const HloRegion *region = hlo_op_region(f->h, op, r);
        for (uint32_t i = 0; i < region->ops.n; i++)
            close_users(f, hlo_at(f->h, region->ops.at[i]), except, out);
    }
}

static void retag(Fuse *f, uint32_t first, uint32_t group) { // members of `group` from `first` on
    const Group *g = &f->groups.at[group];
    for (uint32_t i = first; i < g->ops.n; i++)
        f->of.at[hlo_at(f->h, g->ops.at[i])->results] = group;
}

// Open groups know nothing of each other, so that two of them become one by putting their members in a row. Done
// when `op`, which reads values of both, still finds room.
static void merge(Fuse *f, uint32_t into, uint32_t from, const HloOp *op) {
    Group *a = &f->groups.at[into], *b = &f->groups.at[from];
    uint32_t had = a->ops.n;
    if (had + b->ops.n >= GROUP_OPS_MAX)
        return;
    for (uint32_t i = 0; i < b->ops.n; i++)
        VEC_PUSH(f->c->scratch, &a->ops, b->ops.at[i]);
    retag(f, had, into);
    if (has_room(f, into, op)) {
        b->open = false;
        return;
    }
    a->ops.n = had;
    retag(f, 0, from);
}

// The open group that op joins: that of an operand, with those of the others as far as they fit; 0: none.
static uint32_t group_for(Fuse *f, const HloOp *op) {
    uint32_t target = 0;
    for (uint32_t k = 0; k < op->noperands; k++) {
        uint32_t g = group_of(f, hlo_operand(f->h, op, k));
        if (!g || g == target || !f->groups.at[g].open || !has_room(f, g, op))
            continue;
        uint32_t older = g < target ? g : target, newer = g < target ? target : g;
        if (older)
            merge(f, newer, older, op);
        target = newer;
    }
    return target;
}

static void join(Fuse *f, uint32_t group, OpId id) {
    Hlo *h = f->h;
    if (!group) {
        VEC_PUSH(f->c->scratch, &f->groups, (Group){.open = true});
        group = f->groups.n - 1;
        f->groups.at[group].shape = h->values.at[hlo_at(h, id)->results].type;
    }
    VEC_PUSH(f->c->scratch, &f->groups.at[group].ops, id);
    ValueId v = hlo_at(h, id)->results;
    if (v >= f->of.n) {
        VEC_RESERVE(f->c->scratch, &f->of, h->values.n);
        memset(f->of.at + f->of.n, 0, (h->values.n - f->of.n) * sizeof *f->of.at);
        f->of.n = h->values.n;
    }
    f->of.at[v] = group;
}

static void fuse_region(Fuse *f, RegionId r) {
    Hlo *h = f->h;
    OpList out = {0};
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        walk_operands(&f->w, id);
        HloOp op = *hlo_at(h, id);
        bool fusible = is_fusible(h, &op);
        uint32_t target = fusible ? group_for(f, &op) : 0;
        close_users(f, &op, target, &out);
        walk_operands(&f->w, id); // closing gave some operands new names
        op = *hlo_at(h, id);
        if (hlo_row(&op)->cls == HC_CTRL)
            for (uint32_t k = 0; k < op.nregions; k++)
                fuse_region(f, h->op_regions.at[op.regions + k]);
        else
            for (uint32_t k = 0; k < op.nregions; k++)
                walk_region(&f->w, h->op_regions.at[op.regions + k]);
        if (fusible)
            join(f, target, id);
        else
            VEC_PUSH(f->c->scratch, &out, id);
    }
    walk_set_ops(h, r, &out);
}

// A reduction in f32 reads bf16 itself, in the order and with the bits of one that reads it converted.
static void read_narrow(Hlo *h, RegionId r) {
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        const HloOp *op = hlo_at(h, h->regions.at[r].ops.at[i]);
        for (uint32_t k = 0; k < op->nregions && hlo_row(op)->cls == HC_CTRL; k++)
            read_narrow(h, h->op_regions.at[op->regions + k]);
        if (op->code != HLO_REDUCE || op->nresults != 1)
            continue;
        ValueId *v = &h->operands.at[op->operands];
        OpId def = h->values.at[*v].def;
        if (!def || hlo_at(h, def)->code != HLO_CONVERT || hlo_value_type(h, *v)->dtype != DT_F32)
            continue;
        ValueId narrow = hlo_operand(h, hlo_at(h, def), 0);
        const HloType *t = hlo_value_type(h, narrow);
        if (t->kind == HT_TENSOR && t->dtype == DT_BF16 && !t->text && !t->dynamic)
            *v = narrow;
    }
}

void pass_fuse(Compile *c) {
    read_narrow(c->hlo, hlo_main(c->hlo)->body);
    pass_dce(c);
    Fuse f = {.c = c, .h = c->hlo};
    walk_init(&f.w, c);
    f.nuses = c->hlo->values.n;
    f.uses = ARENA_NEWN(c->scratch, uint32_t, f.nuses);
    VEC_PUSH(c->scratch, &f.groups, (Group){0});
    walk_count_uses(c->hlo, hlo_main(c->hlo)->body, f.uses);
    fuse_region(&f, hlo_main(c->hlo)->body);
    pass_dce(c); // broadcasts and constants that went into groups
}
