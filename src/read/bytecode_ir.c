// SPDX-License-Identifier: Apache-2.0
// bytecode_ir.c — the program section: modules, functions, ops, regions.
//
// Operands are value numbers. A number belongs to an open region: entering a region reserves the
// range behind all regions open around it, leaving gives the range back, and an isolated op hides
// everything outside, so its regions start at zero again. Whether an op is isolated is written at
// the op and says nothing about its kind. Ranges are only promises until ops define the values, so
// a frame holds the promised range and the values defined so far lie on one stack:
//
//   frames   [base 0, size 5] [base 5, size 3] [base 8, …]      scope = first visible frame
//   values   v v v v          v v              v                as many as are defined
#include <stdio.h>

#include "read/bytecode.h"

enum { // which parts an op has
    OP_ATTRS = 0x01,
    OP_RESULTS = 0x02,
    OP_OPERANDS = 0x04,
    OP_SUCCESSORS = 0x08,
    OP_REGIONS = 0x10,
    OP_USE_ORDERS = 0x20,
    OP_PROPERTIES = 0x40,
};

typedef struct OpHead { // an op up to its regions; types and operands are in the scratch vectors
    BcOpName *name;
    LocId loc;
    uint32_t attrs, props; // BC_NO_ATTR when absent
    uint32_t nresults, noperands;
    uint32_t nregions;
    bool isolated;
    const LocId **arg_locs; // where those of a function's arguments go; else NULL
} OpHead;

static void read_ops(Bc *b, Rd *r, RegionId region, uint64_t count);

static _Noreturn void fail_op(Bc *b, const OpHead *op, otrn_status code, const char *text) {
    ctx_fail(b->ctx, code, hlo_place(b->h, op->loc), "op %.100s.%.100s %s",
             b->dialects[op->name->dialect].name, op->name->name, text);
}

static _Noreturn void fail_unknown(Bc *b, const OpHead *op) {
    unsigned major, minor;
    if (sscanf(b->producer, "StableHLO_v%9u.%9u", &major, &minor) == 2 && minor > VHLO_NEWEST_MINOR)
        ctx_hint(b->ctx, "the program was written by StableHLO %u.%u; export it for %d.%d", major,
                 minor, VHLO_NEWEST_MAJOR, VHLO_NEWEST_MINOR);
    else if (b->dialects[op->name->dialect].known == BD_OTHER)
        ctx_hint(b->ctx, "programs are those of StableHLO, CHLO and MHLO");
    fail_op(b, op, OTRN_UNSUPPORTED, "is not supported");
}

// --- value numbers ------------------------------------------------------------------------------

static uint32_t frame_defined(const Bc *b, uint32_t f) {
    uint32_t end = f + 1 < b->frames.n ? b->frames.at[f + 1].first : b->values.n;
    return end - b->frames.at[f].first;
}

static void frame_push(Bc *b, Rd *r, uint64_t size) {
    uint64_t base = 0;
    if (b->frames.n > b->scope) {
        const BcFrame *outer = &b->frames.at[b->frames.n - 1];
        base = outer->base + outer->size;
    }
    if (size > (size_t)(r->end - r->at)) // a value takes a byte at least
        rd_fail(r, "a region of %llu values cannot be true", (unsigned long long)size);
    BcFrame f = {base, size, b->values.n};
    VEC_PUSH(b->arena, &b->frames, f);
}

static void frame_pop(Bc *b, Rd *r) {
    const BcFrame *f = &b->frames.at[b->frames.n - 1];
    if (frame_defined(b, b->frames.n - 1) != f->size)
        rd_fail(r, "a region announces %llu values and defines %u", (unsigned long long)f->size,
                frame_defined(b, b->frames.n - 1));
    b->values.n = f->first;
    b->frames.n--;
}

static void value_define(Bc *b, Rd *r, ValueId first, uint32_t n) {
    uint32_t top = b->frames.n - 1;
    if (n > b->frames.at[top].size - frame_defined(b, top))
        rd_fail(r, "a region defines more than the %llu values it announces",
                (unsigned long long)b->frames.at[top].size);
    for (uint32_t i = 0; i < n; i++)
        VEC_PUSH(b->arena, &b->values, first + i);
}

static ValueId value_find(Bc *b, Rd *r, uint64_t number) {
    for (uint32_t f = b->frames.n; f-- > b->scope;) {
        const BcFrame *frame = &b->frames.at[f];
        if (number < frame->base)
            continue;
        if (number - frame->base >= frame_defined(b, f))
            break;
        return b->values.at[frame->first + (number - frame->base)];
    }
    rd_fail(r, "value %llu is used before its definition", (unsigned long long)number);
}

// --- one op up to its regions -------------------------------------------------------------------

// How uses were ordered in the writer's memory: means nothing here.
static void skip_use_orders(Rd *r, uint32_t nvalues) {
    uint32_t n = nvalues > 1 ? bc_count(r) : 1;
    for (uint32_t i = 0; i < n; i++) {
        if (nvalues > 1)
            bc_index(r, nvalues, "value");
        bool pairs;
        uint64_t count = bc_flagged(r, &pairs);
        for (; count; count--)
            bc_varint(r);
    }
}

static void read_op_values(Bc *b, Rd *r, OpHead *op, uint8_t mask) {
    b->type_scratch.n = b->value_scratch.n = 0;
    if (mask & OP_RESULTS)
        op->nresults = bc_count(r);
    for (uint32_t i = 0; i < op->nresults; i++)
        VEC_PUSH(b->arena, &b->type_scratch, bc_type_ref(b, r)->id);
    if (mask & OP_OPERANDS)
        op->noperands = bc_count(r);
    for (uint32_t i = 0; i < op->noperands; i++)
        VEC_PUSH(b->arena, &b->value_scratch, value_find(b, r, bc_varint(r)));
    if (mask & OP_SUCCESSORS && bc_varint(r))
        fail_op(b, op, OTRN_UNSUPPORTED, "branches to other blocks");
    if (mask & OP_USE_ORDERS && b->version >= 3)
        skip_use_orders(r, op->nresults);
}

static OpHead read_op_head(Bc *b, Rd *r) {
    OpHead op = {.name = &b->opnames[bc_index(r, b->nopnames, "op name")]};
    if (op.name->kind == BO_UNSEEN)
        vhlo_op_resolve(b, op.name);
    uint8_t mask = rd_u8(r);
    op.loc = bc_loc(b, bc_attr_index(b, r));
    if (op.name->kind == BO_UNKNOWN)
        fail_unknown(b, &op);
    op.attrs = mask & OP_ATTRS ? bc_attr_index(b, r) : BC_NO_ATTR;
    op.props = mask & OP_PROPERTIES ? bc_index(r, b->nprops, "property record") : BC_NO_ATTR;
    read_op_values(b, r, &op, mask);
    if (mask & OP_REGIONS) {
        uint64_t n = bc_flagged(r, &op.isolated);
        if (n > (size_t)(r->end - r->at))
            rd_fail(r, "an op of %llu regions cannot be true", (unsigned long long)n);
        op.nregions = (uint32_t)n;
    }
    return op;
}

// --- attributes ---------------------------------------------------------------------------------

static const HloAttr *dict_of(Bc *b, uint32_t i) { // its names and values are checked, too
    const HloAttr *dict = bc_attr(b, i);
    Rd r = bc_rd(b, b->attrs[i].entry.bytes);
    if (dict->kind != HA_DICT)
        rd_fail(&r, "an op's attributes are no dictionary");
    return dict;
}

void bc_dict_walk(Bc *b, uint32_t i, BcTake *take, void *arg) {
    const HloAttr *dict = dict_of(b, i);
    bc_spend(b, dict->n * sizeof(HloNamed));
    Rd r = bc_rd(b, b->attrs[i].entry.bytes);
    bc_varint(&r); // code
    bc_varint(&r); // count
    for (uint32_t k = 0; k < dict->n; k++) {
        bc_attr_index(b, &r);
        take(b, arg, dict->dict[k].name, bc_attr_index(b, &r));
    }
}

// Named attributes find their slot; names the row does not have are discardable.
typedef struct SlotFill {
    const OpHead *op;
    HloAttr *slots;
    uint32_t filled; // bit per slot
    VEC(HloNamed) extra;
} SlotFill;

static void fill_named(Bc *b, void *arg, const char *name, uint32_t value) {
    SlotFill *f = arg;
    const BcOpName *op = f->op->name;
    const HloOpRow *row = &hlo_op_rows[op->code];
    if (op->gone && !strcmp(name, hlo_attr_rows[op->gone].name))
        return;
    for (int i = 0; i < row->nattrs; i++)
        if (!strcmp(name, hlo_attr_rows[row->attrs[i]].name)) {
            f->slots[i] = vhlo_slot(b, (HloAttrKey)row->attrs[i], value);
            f->filled |= 1u << i;
            return;
        }
    VEC_PUSH(b->arena, &f->extra, ((HloNamed){name, *bc_attr(b, value)}));
}

// A record is the attributes' indices in slot order, without names.
static void fill_record(Bc *b, SlotFill *f, BcSpan record) {
    static const char *const sdy_props[][2] = {{"sharding_constraint", "sharding"},
                                               {"reshard", "sharding"},
                                               {"sharding_group", "group_id"},
                                               {"manual_computation", "in_shardings"},
                                               {"manual_computation", "manual_axes"},
                                               {"manual_computation", "out_shardings"},
                                               {"propagation_barrier", "allowed_direction"}};
    // optional but for its name
    static const char *const named_props[] = {"in_shardings", "name", "out_shardings"};
    const BcOpName *name = f->op->name;
    const HloOpRow *row = &hlo_op_rows[name->code];
    Rd r = bc_rd(b, record);
    for (int i = 0; i < row->nattrs; i++) {
        if (name->gone && name->gone_at == i)
            bc_attr_index(b, &r);
        if (name->present >> i & 1)
            f->slots[i] = vhlo_slot(b, (HloAttrKey)row->attrs[i], bc_attr_index(b, &r));
    }
    f->filled = name->present;
    for (size_t i = 0; row->dialect == HD_SDY && i < sizeof sdy_props / sizeof *sdy_props; i++)
        if (!strcmp(row->name, sdy_props[i][0])) {
            HloNamed n = {sdy_props[i][1], *bc_attr_ref(b, &r)};
            VEC_PUSH(b->arena, &f->extra, n);
        }
    for (size_t i = 0; name->code == HLO_SDY_NAMED_COMPUTATION && i < 3; i++) {
        bool present = i == 1;
        uint64_t v = present ? bc_attr_index(b, &r) : bc_flagged(&r, &present);
        if (present)
            VEC_PUSH(b->arena, &f->extra, ((HloNamed){named_props[i], *bc_attr(b, bc_check(&r, v, b->nattrs, "attribute"))}));
    }
    bc_done(&r, "a property record");
}

uint32_t bc_record_dict(Bc *b, BcSpan record) {
    Rd r = bc_rd(b, record);
    uint32_t i = bc_attr_index(b, &r);
    bc_done(&r, "a property record");
    return i;
}

static void fill_attrs(Bc *b, const OpHead *op, OpId id) {
    if (b->dialects[op->name->dialect].known == BD_RAW) {
        raw_fill(b, op->name, id, op->attrs, op->props);
        return;
    }
    SlotFill f = {.op = op, .slots = hlo_at(b->h, id)->attrs};
    if (op->props != BC_NO_ATTR && op->name->registered)
        fill_record(b, &f, b->props[op->props]);
    else if (op->props != BC_NO_ATTR)
        bc_dict_walk(b, bc_record_dict(b, b->props[op->props]), fill_named, &f);
    bool shared = b->version >= 5 && !f.extra.n; // then the dictionary holds discardable ones only
    if (op->attrs != BC_NO_ATTR && !shared)
        bc_dict_walk(b, op->attrs, fill_named, &f);
    const HloOpRow *row = &hlo_op_rows[op->name->code];
    for (int i = 0; i < row->nattrs; i++)
        if (!((op->name->present | f.filled) >> i & 1))
            f.slots[i] = vhlo_slot_default((HloAttrKey)row->attrs[i]);
    if (op->name->present & ~f.filled) {
        int slot = __builtin_ctz(op->name->present & ~f.filled);
        char text[100];
        snprintf(text, sizeof text, "lacks its attribute %s", hlo_attr_rows[row->attrs[slot]].name);
        fail_op(b, op, OTRN_PARSE, text);
    }
    hlo_at(b->h, id)->extra = f.extra.at;
    hlo_at(b->h, id)->nextra = f.extra.n;
    if (op->attrs != BC_NO_ATTR && shared) {
        const HloAttr *dict = dict_of(b, op->attrs);
        hlo_at(b->h, id)->extra = dict->dict;
        hlo_at(b->h, id)->nextra = dict->n;
    }
}

// --- regions ------------------------------------------------------------------------------------

// Their types, to the scratch vector.
static void read_block_args(Bc *b, Rd *r, const OpHead *op) {
    uint32_t n = bc_count(r);
    b->type_scratch.n = 0;
    VEC(LocId) locs = {0};
    for (uint32_t i = 0; i < n; i++) {
        bool has_loc = true;
        uint64_t type = b->version >= 4 ? bc_flagged(r, &has_loc) : bc_varint(r);
        VEC_PUSH(b->arena, &b->type_scratch, bc_type(b, bc_check(r, type, b->ntypes, "type"))->id);
        uint32_t at = has_loc ? bc_attr_index(b, r) : BC_NO_ATTR;
        if (op->arg_locs)
            VEC_PUSH(b->arena, &locs, has_loc ? bc_loc(b, at) : 0);
    }
    if (op->arg_locs)
        *op->arg_locs = locs.at;
    if (b->version >= 3 && rd_u8(r))
        skip_use_orders(r, n);
}

// Gives a region made without arguments its own.
static void region_set_args(Bc *b, RegionId region) {
    Hlo *h = b->h;
    h->regions.at[region].args = h->values.n;
    h->regions.at[region].nargs = b->type_scratch.n;
    for (uint32_t i = 0; i < b->type_scratch.n; i++) {
        ValueId v = hlo_value(h, b->type_scratch.at[i]);
        h->values.at[v].region = region;
        h->values.at[v].index = i;
    }
}

static void read_region(Bc *b, Rd *r, const OpHead *op, RegionId region) {
    uint64_t nblocks = bc_varint(r);
    if (!nblocks)
        return;
    if (nblocks > 1)
        fail_op(b, op, OTRN_UNSUPPORTED, "has a region of more than one block");
    bc_enter(b, r);
    frame_push(b, r, bc_varint(r));
    bool has_args;
    uint64_t nops = bc_flagged(r, &has_args);
    b->type_scratch.n = 0;
    if (has_args && region)
        read_block_args(b, r, op);
    else if (has_args || (region && !nops))
        rd_fail(r, has_args ? "a module with arguments" : "a block without ops");
    if (region) {
        region_set_args(b, region);
        value_define(b, r, b->h->regions.at[region].args, b->type_scratch.n);
    }
    read_ops(b, r, region, nops);
    frame_pop(b, r);
    bc_leave(b);
}

// The regions of one op, in a section of their own when the op is isolated (from version 2 on).
static void read_regions(Bc *b, Rd *r, const OpHead *op, const RegionId *regions) {
    uint32_t scope = b->scope;
    Rd own = *r;
    bool nested = op->isolated && b->version >= 2;
    if (nested) {
        uint8_t id;
        BcSpan section = bc_section(r, &id);
        if (id != 4)
            rd_fail(r, "section %u where regions should be", id);
        own = bc_rd(b, section);
    }
    if (op->isolated)
        b->scope = b->frames.n;
    for (uint32_t i = 0; i < op->nregions; i++)
        read_region(b, &own, op, regions[i]);
    b->scope = scope;
    if (nested)
        bc_done(&own, "an op's regions");
    else
        *r = own;
}

// --- functions and the module -------------------------------------------------------------------

// Attributes of the two ops that are no HloOps, by name in record order.
enum { FUNC_ARG_ATTRS, FUNC_TYPE, FUNC_RES_ATTRS, FUNC_NAME, FUNC_VISIBILITY, FUNC_ATTRS };
static const char *const func_attrs[FUNC_ATTRS] = {"arg_attrs", "function_type", "res_attrs",
                                                   "sym_name", "sym_visibility"};

typedef struct FuncFill {
    const HloAttr *attrs[FUNC_ATTRS];
    VEC(HloNamed) extra;
} FuncFill;

static void func_named(Bc *b, void *arg, const char *name, uint32_t value) {
    FuncFill *f = arg;
    for (int i = 0; i < FUNC_ATTRS; i++)
        if (!strcmp(name, func_attrs[i])) {
            f->attrs[i] = bc_attr(b, value);
            return;
        }
    VEC_PUSH(b->arena, &f->extra, ((HloNamed){name, *bc_attr(b, value)}));
}

static const HloAttr *func_attr(Bc *b, const OpHead *op, const FuncFill *f, int i,
                                HloAttrKind kind) {
    static const HloAttr none[FUNC_ATTRS] = {[FUNC_ARG_ATTRS] = {.kind = HA_LIST},
                                             [FUNC_RES_ATTRS] = {.kind = HA_LIST},
                                             [FUNC_VISIBILITY] = {.kind = HA_STR, .s = "public"}};
    if (!f->attrs[i] && none[i].kind && b->dialects[op->name->dialect].known == BD_RAW)
        return &none[i];
    if (!f->attrs[i] || f->attrs[i]->kind != kind)
        fail_op(b, op, OTRN_PARSE, "lacks its name, type, visibility or argument attributes");
    return f->attrs[i];
}

// One dictionary per argument or result, or none at all.
static void func_dicts(Bc *b, const OpHead *op, const HloAttr *list, uint32_t n,
                       const HloNamed ***dicts, const uint32_t **counts) {
    if (!list->n)
        return;
    bool fits = list->n == n;
    for (uint32_t i = 0; fits && i < n; i++)
        fits = list->list[i].kind == HA_DICT;
    if (!fits)
        fail_op(b, op, OTRN_PARSE, "has not one dictionary per argument or result");
    bc_spend(b, n * (sizeof **dicts + sizeof **counts));
    *dicts = ARENA_NEWN(b->arena, const HloNamed *, n);
    uint32_t *sizes = ARENA_NEWN(b->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        (*dicts)[i] = list->list[i].dict;
        sizes[i] = list->list[i].n;
    }
    *counts = sizes;
}

static HloFunc func_make(Bc *b, const OpHead *op) {
    FuncFill fill = {0};
    if (op->props != BC_NO_ATTR && op->name->registered && b->dialects[op->name->dialect].known == BD_RAW) {
        raw_record(b, op->name, b->props[op->props], func_named, &fill);
    } else if (op->props != BC_NO_ATTR && op->name->registered) {
        Rd r = bc_rd(b, b->props[op->props]);
        for (int i = 0; i < FUNC_ATTRS; i++)
            fill.attrs[i] = bc_attr_ref(b, &r);
        bc_done(&r, "a property record");
    } else if (op->props != BC_NO_ATTR) {
        bc_dict_walk(b, bc_record_dict(b, b->props[op->props]), func_named, &fill);
    }
    if (op->attrs != BC_NO_ATTR)
        bc_dict_walk(b, op->attrs, func_named, &fill);
    TypeId type = func_attr(b, op, &fill, FUNC_TYPE, HA_TYPE)->type;
    const HloType *ty = hlo_type(b->h, type);
    if (ty->kind != HT_FUNC)
        fail_op(b, op, OTRN_PARSE, "has a type that is not a function's");
    HloFunc f = {.name = func_attr(b, op, &fill, FUNC_NAME, HA_STR)->s, .loc = op->loc};
    if (!bc_is_name(fill.attrs[FUNC_NAME]))
        fail_op(b, op, OTRN_PARSE, "has a zero byte in its name");
    f.is_private = !strcmp(func_attr(b, op, &fill, FUNC_VISIBILITY, HA_STR)->s, "private");
    f.nargs = ty->ninputs;
    f.nresults = ty->nmembers - ty->ninputs;
    f.result_types = ty->members + ty->ninputs;
    f.extra = fill.extra.at;
    f.nextra = fill.extra.n;
    func_dicts(b, op, func_attr(b, op, &fill, FUNC_ARG_ATTRS, HA_LIST), f.nargs, &f.arg_attrs,
               &f.narg_attrs);
    func_dicts(b, op, func_attr(b, op, &fill, FUNC_RES_ATTRS, HA_LIST), f.nresults, &f.res_attrs,
               &f.nres_attrs);
    return f;
}

static void read_func(Bc *b, Rd *r, const OpHead *op) {
    if (op->nresults || op->noperands || op->nregions != 1)
        fail_op(b, op, OTRN_PARSE, "must have one region and no values");
    HloFunc f = func_make(b, op);
    const TypeId *inputs = f.result_types - f.nargs; // a function type lists inputs, then results
    RegionId body = hlo_region(b->h, 0, 0, NULL);
    OpHead head = *op;
    head.arg_locs = &f.arg_locs;
    read_regions(b, r, &head, &body);
    const HloRegion *region = &b->h->regions.at[body];
    if (region->ops.n) { // else a declaration
        f.body = body;
        bool same = region->nargs == f.nargs;
        for (uint32_t i = 0; same && i < f.nargs; i++)
            same = b->h->values.at[region->args + i].type == inputs[i];
        if (!same)
            fail_op(b, op, OTRN_PARSE, "has arguments that its type does not tell");
    }
    VEC_PUSH(b->arena, &b->h->funcs, f);
}

// A mesh belongs to the module: entry @name of its attribute "sdy.meshes".
static void mesh_named(Bc *b, void *arg, const char *name, uint32_t value) {
    HloNamed *mesh = arg;
    const HloAttr *v = bc_attr(b, value);
    if (!strcmp(name, "sym_name") && bc_is_name(v))
        mesh->name = v->s;
    if (!strcmp(name, "mesh") && v->kind == HA_OPAQUE && !strncmp(v->s, "#sdy.mesh<", 10))
        mesh->value = *v;
}

static void read_mesh(Bc *b, const OpHead *op) {
    HloNamed mesh = {0};
    if (op->props != BC_NO_ATTR && op->name->registered) {
        Rd r = bc_rd(b, b->props[op->props]);
        mesh_named(b, &mesh, "mesh", bc_attr_index(b, &r));
        mesh_named(b, &mesh, "sym_name", bc_attr_index(b, &r));
        bc_done(&r, "a property record");
    } else if (op->props != BC_NO_ATTR) {
        bc_dict_walk(b, bc_record_dict(b, b->props[op->props]), mesh_named, &mesh);
    }
    if (op->attrs != BC_NO_ATTR)
        bc_dict_walk(b, op->attrs, mesh_named, &mesh);
    if (!mesh.name || !mesh.value.kind)
        fail_op(b, op, OTRN_PARSE, "lacks its name or its mesh");
    VEC_PUSH(b->arena, &b->meshes, mesh);
}

typedef struct ModuleFill {
    VEC(HloNamed) extra;
} ModuleFill;

static void module_named(Bc *b, void *arg, const char *name, uint32_t value) {
    ModuleFill *f = arg;
    const HloAttr *v = bc_attr(b, value);
    if (!strcmp(name, "sym_name") && bc_is_name(v))
        b->h->name = v->s;
    else if (strcmp(name, "sym_visibility"))
        VEC_PUSH(b->arena, &f->extra, ((HloNamed){name, *v}));
}

static void read_module_props(Bc *b, BcSpan record) { // optional sym_name, optional sym_visibility
    Rd r = bc_rd(b, record);
    ModuleFill none = {0};
    for (int i = 0; i < 2; i++) {
        bool present;
        uint64_t index = bc_flagged(&r, &present);
        if (present)
            module_named(b, &none, i ? "sym_visibility" : "sym_name",
                         bc_check(&r, index, b->nattrs, "attribute"));
    }
    bc_done(&r, "a property record");
}

static void read_module(Bc *b, Rd *r, const OpHead *op) {
    ModuleFill fill = {0};
    if (op->props != BC_NO_ATTR && op->name->registered)
        read_module_props(b, b->props[op->props]);
    else if (op->props != BC_NO_ATTR)
        bc_dict_walk(b, bc_record_dict(b, b->props[op->props]), module_named, &fill);
    if (op->attrs != BC_NO_ATTR)
        bc_dict_walk(b, op->attrs, module_named, &fill);
    if (op->nresults || op->noperands || op->nregions != 1)
        fail_op(b, op, OTRN_PARSE, "must have one region and no values");
    read_regions(b, r, op, &(RegionId){0});
    if (b->meshes.n) {
        HloAttr dict = {.kind = HA_DICT, .n = b->meshes.n, .dict = b->meshes.at};
        VEC_PUSH(b->arena, &fill.extra, ((HloNamed){"sdy.meshes", dict}));
    }
    b->h->extra = fill.extra.at;
    b->h->nextra = fill.extra.n;
}

// --- ops ----------------------------------------------------------------------------------------

// From VHLO's form of a type to builtin's or back: here both are one type, and the cast is nothing.
static bool is_form_cast(const Bc *b, const OpHead *op) {
    return op->name->code == HLO_UNREALIZED_CAST && op->nresults == 1 && op->noperands == 1 &&
           !op->nregions && b->h->values.at[b->value_scratch.at[0]].type == b->type_scratch.at[0];
}

static void read_plain_op(Bc *b, Rd *r, const OpHead *op, RegionId region) {
    if (op->nresults > UINT16_MAX)
        fail_op(b, op, OTRN_CAPACITY, "has more than 65535 results");
    if (is_form_cast(b, op)) {
        value_define(b, r, b->value_scratch.at[0], 1);
        return;
    }
    OpId id = hlo_op(b->h, (HloOpcode)op->name->code, op->loc, op->noperands, b->value_scratch.at,
                     op->nresults, b->type_scratch.at);
    ValueId results = hlo_at(b->h, id)->results;
    fill_attrs(b, op, id);
    if (op->nregions) {
        // All at once, so that an op's regions lie together however deep the first one is.
        RegionId *regions = ARENA_NEWN(b->arena, RegionId, op->nregions);
        for (uint32_t i = 0; i < op->nregions; i++)
            regions[i] = hlo_op_add_region(b->h, id, 0, NULL);
        read_regions(b, r, op, regions);
    }
    value_define(b, r, results, op->nresults);
    hlo_region_push(b->h, region, id);
}

// Region 0 stands for the module's body: functions and meshes; all others hold ops.
static void read_ops(Bc *b, Rd *r, RegionId region, uint64_t count) {
    for (; count; count--) {
        OpHead op = read_op_head(b, r);
        if (op.name->kind == BO_OP && region)
            read_plain_op(b, r, &op, region);
        else if (op.name->kind == BO_FUNC && !region)
            read_func(b, r, &op);
        else if (op.name->kind == BO_MESH && !region && !op.nregions)
            read_mesh(b, &op);
        else
            fail_op(b, &op, OTRN_UNSUPPORTED, "is not supported in this place");
    }
}

void bc_read_ir(Bc *b, BcSpan section) {
    Rd r = bc_rd(b, section);
    bool has_args;
    if (bc_flagged(&r, &has_args) != 1 || has_args)
        rd_fail(&r, "the program is not one op");
    OpHead op = read_op_head(b, &r);
    if (op.name->kind != BO_MODULE)
        fail_op(b, &op, OTRN_UNSUPPORTED, "stands where a module should be");
    read_module(b, &r, &op);
    bc_done(&r, "the program");
}
