// SPDX-License-Identifier: Apache-2.0
// bytecode_ir.c — the program section: module, functions, ops, regions, value numbers.
//
// A value's number counts the values of its scope in order of definition: arguments, then results.
// A region's numbers begin behind those of all regions around it up to the next op whose regions
// use nothing from outside; such an op is isolated, its regions begin at 0 and lie in a section of
// their own. Ops of other dialects than StableHLO take and give builtin types, so their values pass
// through casts, which readers drop again.
#include "write/bytecode.h"

#include <assert.h>

enum {
    OP_ATTRS = 0x01,
    OP_RESULTS = 0x02,
    OP_OPERANDS = 0x04,
    OP_REGIONS = 0x10,
    OP_PROPERTIES = 0x40,
};
#define SEC_IR 4

// A cast that changes nothing but which dialect's form a type has. The writer makes its own.
static bool is_form_cast(const Hlo *h, const HloOp *op) {
    return op->code == HLO_UNREALIZED_CAST && op->noperands == 1 && op->nresults == 1 &&
           h->values.at[hlo_operand(h, op, 0)].type == h->values.at[op->results].type;
}

// --- which ops are isolated ---------------------------------------------------------------------

// Fills Bw.depths and Bw.isolated for a region at this depth; gives the smallest depth of a value
// that it uses.
static uint32_t scan_region(Bw *w, const HloRegion *r, uint32_t depth) {
    const Hlo *h = w->h;
    uint32_t least = UINT32_MAX;
    bw_enter(w);
    for (uint32_t i = 0; i < r->nargs; i++)
        w->depths[r->args + i] = depth;
    for (uint32_t i = 0; i < r->ops.n; i++) {
        const HloOp *op = hlo_at(h, r->ops.at[i]);
        w->place = op->loc;
        if (is_form_cast(h, op)) {
            w->depths[op->results] = w->depths[hlo_operand(h, op, 0)];
            continue;
        }
        for (uint32_t k = 0; k < op->noperands; k++) {
            uint32_t d = w->depths[hlo_operand(h, op, k)];
            least = d < least ? d : least;
        }
        uint32_t inner = UINT32_MAX;
        for (uint32_t k = 0; k < op->nregions; k++) {
            uint32_t d = scan_region(w, hlo_op_region(h, op, k), depth + 1);
            inner = d < inner ? d : inner;
        }
        w->isolated[r->ops.at[i]] = inner > depth;
        if (inner <= depth && inner < least)
            least = inner;
        for (uint32_t k = 0; k < op->nresults; k++)
            w->depths[op->results + k] = depth;
    }
    bw_leave(w);
    return least;
}

// --- an op's head -------------------------------------------------------------------------------

typedef struct Head { // what stands in front of an op's types and values
    BwId name, loc;
    bool has_attrs, has_props;
    BwId attrs, props;
    uint32_t nresults, noperands, nregions;
} Head;

static void put_head(Bw *w, const Head *op) {
    uint8_t mask = (op->has_attrs ? OP_ATTRS : 0) | (op->has_props ? OP_PROPERTIES : 0) |
                   (op->nresults ? OP_RESULTS : 0) | (op->noperands ? OP_OPERANDS : 0) |
                   (op->nregions ? OP_REGIONS : 0);
    bw_ref(&w->ir, BW_OP, op->name);
    bw_byte(&w->ir, mask);
    bw_ref(&w->ir, BW_ATTR, op->loc);
    if (op->has_attrs)
        bw_ref(&w->ir, BW_ATTR, op->attrs);
    if (op->has_props)
        bw_num(&w->ir, op->props);
}

static void head_extra(Bw *w, Head *op, const HloNamed *extra, uint32_t n, BwForm f) {
    op->has_attrs = n != 0;
    if (n)
        op->attrs = bw_dict(w, extra, n, f);
}

static void head_props(Bw *w, Head *op, const Buf *record) {
    op->has_props = true;
    op->props = bw_prop(w, record);
}

// --- ops ----------------------------------------------------------------------------------------

static bool is_foreign(const HloOp *op) {
    return hlo_row(op)->dialect != HD_STABLEHLO && hlo_row(op)->dialect != HD_FUNC &&
           hlo_row(op)->dialect != HD_BUILTIN;
}

static uint32_t count_values(Bw *w, const HloRegion *r) {
    uint32_t n = r->nargs;
    for (uint32_t i = 0; i < r->ops.n; i++) {
        const HloOp *op = hlo_at(w->h, r->ops.at[i]);
        n += is_form_cast(w->h, op) ? 0 : op->nresults;
        if (is_foreign(op)) // and casts
            n += op->nresults + op->noperands;
    }
    return n;
}

// One value from one dialect's type to the other's; returns the number of the cast value.
static void put_cast(Bw *w, LocId loc, uint32_t from, TypeId type, BwForm to) {
    Head head = {.name = bw_op_name(w, "builtin", "unrealized_conversion_cast", true),
                 .loc = bw_loc(w, loc),
                 .nresults = 1,
                 .noperands = 1};
    BwId t = bw_type(w, type, to);
    put_head(w, &head);
    bw_num(&w->ir, 1);
    bw_ref(&w->ir, BW_TYPE, t);
    bw_num(&w->ir, 1);
    bw_num(&w->ir, from);
}

static const char *vhlo_name(Bw *w, const HloOp *op, uint32_t version) {
    return arena_printf(w->arena, "%s_v%u", hlo_row(op)->name, version);
}

static void put_regions(Bw *w, const HloOp *op, bool isolated, uint32_t base);

static Head plain_head(Bw *w, const HloOp *op) {
    const HloOpRow *row = hlo_row(op);
    Head head = {.loc = bw_loc(w, op->loc),
                 .nresults = op->nresults,
                 .noperands = op->noperands,
                 .nregions = op->nregions};
    head_extra(w, &head, op->extra, op->nextra, BF_VHLO);
    if (row->dialect == HD_BUILTIN) {
        head.name = bw_op_name(w, "builtin", row->name, true);
        return head;
    }
    uint32_t slots;
    uint32_t version = bw_op_version(w, op, &slots);
    head.name = bw_op_name(w, "vhlo", vhlo_name(w, op, version), true);
    if (slots) {
        Buf record = {.arena = w->arena};
        for (int i = 0; i < row->nattrs; i++)
            if (slots >> i & 1)
                bw_ref(&record, BW_ATTR, bw_slot(w, op, i));
        head_props(w, &head, &record);
    }
    return head;
}

static void put_plain(Bw *w, OpId id, uint32_t *next, uint32_t base) {
    const HloOp *op = hlo_at(w->h, id);
    Head head = plain_head(w, op);
    put_head(w, &head);
    if (op->nresults)
        bw_num(&w->ir, op->nresults);
    for (uint32_t i = 0; i < op->nresults; i++)
        bw_ref(&w->ir, BW_TYPE, bw_type(w, w->h->values.at[op->results + i].type, BF_VHLO));
    if (op->noperands)
        bw_num(&w->ir, op->noperands);
    for (uint32_t i = 0; i < op->noperands; i++)
        bw_num(&w->ir, w->numbers[hlo_operand(w->h, op, i)]);
    if (op->nregions)
        put_regions(w, op, w->isolated[id], base);
    for (uint32_t i = 0; i < op->nresults; i++)
        w->numbers[op->results + i] = (*next)++;
}

static void top_k_record(Bw *w, const HloOp *op, Buf *record) {
    bw_ref(record, BW_ATTR, bw_attr(w, &op->attrs[0], BF_BUILTIN));
    if (op->attrs[1].kind == HA_BOOL && !op->attrs[1].i) // optional: older readers lack it
        bw_ref_flag(record, BW_ATTR, bw_attr(w, &op->attrs[1], BF_BUILTIN), true);
}

// Attributes of an op that is not StableHLO's. Shardy's have one property, which the graph keeps as
// a plain attribute; of CHLO's top_k has a record; for others a dictionary names what is there.
static void foreign_props(Bw *w, const HloOp *op, Head *head) {
    const HloOpRow *row = hlo_row(op);
    Buf record = {.arena = w->arena};
    if (row->dialect == HD_SDY) {
        if (op->nextra != 1)
            bw_fail(w, "sdy.%s with %u attributes", row->name, op->nextra);
        bw_ref(&record, BW_ATTR, bw_attr(w, &op->extra[0].value, BF_BUILTIN));
        head_props(w, head, &record);
        return;
    }
    HloNamed slots[HLO_MAX_ATTRS];
    uint32_t n = 0;
    for (int i = 0; i < row->nattrs; i++)
        if (op->attrs[i].kind != HA_NONE)
            slots[n++] = (HloNamed){hlo_attr_rows[row->attrs[i]].name, op->attrs[i]};
    head_extra(w, head, op->extra, op->nextra, BF_BUILTIN);
    if (op->code == HLO_CHLO_TOP_K)
        top_k_record(w, op, &record);
    else if (n && row->dialect == HD_CHLO)
        bw_ref(&record, BW_ATTR, bw_slot_dict(w, op));
    else if (n)
        bw_ref(&record, BW_ATTR, bw_dict(w, slots, n, BF_BUILTIN));
    if (record.n)
        head_props(w, head, &record);
}

// An op of another dialect: its values are builtin's.
static void put_foreign(Bw *w, OpId id, uint32_t *next, uint32_t base) {
    const HloOp *op = hlo_at(w->h, id);
    const HloOpRow *row = hlo_row(op);
    const char *dialect = hlo_dialect_names[row->dialect];
    bool chlo = row->dialect == HD_CHLO;
    // to all readers: its properties are a record, or nothing
    bool known = row->dialect == HD_SDY || (chlo && (!row->nattrs || op->code == HLO_CHLO_TOP_K));
    if (op->nregions && !chlo)
        bw_fail(w, "%s.%s", dialect, row->name);
    uint32_t first = *next;
    for (uint32_t i = 0; i < op->noperands; i++, ++*next) {
        ValueId v = hlo_operand(w->h, op, i);
        put_cast(w, op->loc, w->numbers[v], w->h->values.at[v].type, BF_BUILTIN);
    }
    Head head = {.name = bw_op_name(w, dialect, row->name, known),
                 .loc = bw_loc(w, op->loc),
                 .nresults = op->nresults,
                 .noperands = op->noperands,
                 .nregions = op->nregions};
    foreign_props(w, op, &head);
    put_head(w, &head);
    if (op->nresults)
        bw_num(&w->ir, op->nresults);
    for (uint32_t i = 0; i < op->nresults; i++)
        bw_ref(&w->ir, BW_TYPE, bw_type(w, w->h->values.at[op->results + i].type, BF_BUILTIN));
    if (op->noperands)
        bw_num(&w->ir, op->noperands);
    for (uint32_t i = 0; i < op->noperands; i++)
        bw_num(&w->ir, first + i);
    if (op->nregions)
        put_regions(w, op, w->isolated[id], base);
    uint32_t given = *next;
    *next += op->nresults;
    for (uint32_t i = 0; i < op->nresults; i++) {
        put_cast(w, op->loc, given + i, w->h->values.at[op->results + i].type, BF_VHLO);
        w->numbers[op->results + i] = (*next)++;
    }
}

static uint32_t count_ops(Bw *w, const HloRegion *r) {
    uint32_t n = r->ops.n;
    for (uint32_t i = 0; i < r->ops.n; i++) {
        const HloOp *op = hlo_at(w->h, r->ops.at[i]);
        if (is_foreign(op))
            n += op->nresults + op->noperands;
        n -= is_form_cast(w->h, op);
    }
    return n;
}

// A region whose values are numbered from `base` on; arg_locs: those of its arguments, or NULL.
static void put_region(Bw *w, const HloRegion *r, const LocId *arg_locs, uint32_t base) {
    uint32_t total = count_values(w, r), next = base;
    bw_enter(w);
    bw_num(&w->ir, 1); // block
    bw_num(&w->ir, total);
    bw_num(&w->ir, (uint64_t)count_ops(w, r) << 1 | (r->nargs != 0));
    if (r->nargs) {
        bw_num(&w->ir, r->nargs);
        for (uint32_t i = 0; i < r->nargs; i++) {
            BwId type = bw_type(w, w->h->values.at[r->args + i].type, BF_VHLO);
            LocId loc = arg_locs ? arg_locs[i] : 0;
            bw_ref_flag(&w->ir, BW_TYPE, type, loc != 0);
            if (loc)
                bw_ref(&w->ir, BW_ATTR, bw_loc(w, loc));
            w->numbers[r->args + i] = next++;
        }
        bw_byte(&w->ir, 0); // no order of uses
    }
    for (uint32_t i = 0; i < r->ops.n; i++) {
        OpId id = r->ops.at[i];
        const HloOp *op = hlo_at(w->h, id);
        w->place = op->loc;
        if (is_form_cast(w->h, op))
            w->numbers[op->results] = w->numbers[hlo_operand(w->h, op, 0)];
        else if (is_foreign(op))
            put_foreign(w, id, &next, base + total);
        else
            put_plain(w, id, &next, base + total);
    }
    assert(next == base + total);
    bw_leave(w);
}

static void put_regions(Bw *w, const HloOp *op, bool isolated, uint32_t base) {
    bw_num(&w->ir, (uint64_t)op->nregions << 1 | isolated);
    if (isolated)
        bw_section_begin(&w->ir, SEC_IR);
    for (uint32_t i = 0; i < op->nregions; i++)
        put_region(w, hlo_op_region(w->h, op, i), NULL, isolated ? 0 : base);
    if (isolated)
        bw_section_end(&w->ir);
}

// --- functions and the module -------------------------------------------------------------------

// A dictionary per argument or result, or an empty list when none has any.
static BwId func_dicts(Bw *w, const HloNamed **lists, const uint32_t *counts, uint32_t n) {
    uint32_t base = w->ids.n;
    bool some = false;
    for (uint32_t i = 0; lists && i < n; i++)
        some |= counts[i] != 0;
    for (uint32_t i = 0; some && i < n; i++) {
        BwId id = bw_vhlo_dict(w, lists[i], counts[i]);
        VEC_PUSH(w->arena, &w->ids, id);
    }
    return bw_vhlo_array(w, base);
}

// A name that a reader would take for one of the op's own attributes.
static void refuse_names(Bw *w, const HloNamed *extra, uint32_t n, const char *const *own) {
    for (; *own; own++)
        if (hlo_named_find(extra, n, *own))
            bw_fail(w, "a second attribute %s", *own);
}

static void put_func(Bw *w, const HloFunc *f) {
    static const char *const own[] = {"arg_attrs", "function_type", "res_attrs", "sym_name",
                                      "sym_visibility", NULL};
    const char *visibility = f->is_private ? "private" : "public";
    w->place = f->loc;
    Head head = {.name = bw_op_name(w, "vhlo", "func_v1", true),
                 .loc = bw_loc(w, f->loc),
                 .nregions = 1};
    refuse_names(w, f->extra, f->nextra, own);
    head_extra(w, &head, f->extra, f->nextra, BF_VHLO);
    Buf record = {.arena = w->arena};
    bw_ref(&record, BW_ATTR, func_dicts(w, f->arg_attrs, f->narg_attrs, f->nargs));
    bw_ref(&record, BW_ATTR, bw_vhlo_type(w, bw_func_type(w, f)));
    bw_ref(&record, BW_ATTR, func_dicts(w, f->res_attrs, f->nres_attrs, f->nresults));
    bw_ref(&record, BW_ATTR, bw_vhlo_str(w, f->name, strlen(f->name)));
    bw_ref(&record, BW_ATTR, bw_vhlo_str(w, visibility, strlen(visibility)));
    head_props(w, &head, &record);
    put_head(w, &head);
    bw_num(&w->ir, 1 << 1 | 1); // one region, isolated
    bw_section_begin(&w->ir, SEC_IR);
    if (f->body) {
        scan_region(w, &w->h->regions.at[f->body], 0);
        put_region(w, &w->h->regions.at[f->body], f->arg_locs, 0);
    } else {
        bw_num(&w->ir, 0); // no block: a declaration
    }
    bw_section_end(&w->ir);
}

static bool is_meshes(const HloNamed *n) {
    return !strcmp(n->name, "sdy.meshes") && n->value.kind == HA_DICT;
}

static void put_mesh(Bw *w, const HloNamed *mesh) {
    Head head = {.name = bw_op_name(w, "sdy", "mesh", true), .loc = bw_loc(w, 0)};
    Buf record = {.arena = w->arena};
    bw_ref(&record, BW_ATTR, bw_attr(w, &mesh->value, BF_BUILTIN));
    bw_ref(&record, BW_ATTR, bw_builtin_str(w, mesh->name, strlen(mesh->name)));
    head_props(w, &head, &record);
    put_head(w, &head);
}

static void put_module_head(Bw *w) {
    const Hlo *h = w->h;
    Head head = {.name = bw_op_name(w, "builtin", "module", true),
                 .loc = bw_loc(w, 0),
                 .nregions = 1};
    HloNamed *extra = ARENA_NEWN(w->arena, HloNamed, h->nextra);
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->nextra; i++)
        if (!is_meshes(&h->extra[i]))
            extra[n++] = h->extra[i];
    refuse_names(w, extra, n, (const char *const[]){"sym_name", "sym_visibility", NULL});
    head_extra(w, &head, extra, n, BF_BUILTIN);
    Buf record = {.arena = w->arena}; // optional name, optional visibility
    if (*h->name)
        bw_ref_flag(&record, BW_ATTR, bw_builtin_str(w, h->name, strlen(h->name)), true);
    else
        bw_num(&record, 0);
    bw_num(&record, 0);
    head_props(w, &head, &record);
    put_head(w, &head);
}

void bw_module(Bw *w) {
    const Hlo *h = w->h;
    uint32_t nmeshes = 0;
    for (uint32_t i = 0; i < h->nextra; i++)
        nmeshes += is_meshes(&h->extra[i]) ? h->extra[i].value.n : 0;
    bw_num(&w->ir, 1 << 1); // one op, no arguments
    put_module_head(w);
    bw_num(&w->ir, 1 << 1 | 1);
    bw_section_begin(&w->ir, SEC_IR);
    bw_num(&w->ir, 1); // block
    bw_num(&w->ir, 0); // values
    bw_num(&w->ir, (uint64_t)(h->funcs.n + nmeshes) << 1);
    for (uint32_t i = 0; i < h->nextra; i++)
        for (uint32_t k = 0; is_meshes(&h->extra[i]) && k < h->extra[i].value.n; k++)
            put_mesh(w, &h->extra[i].value.dict[k]);
    for (uint32_t i = 0; i < h->funcs.n; i++)
        put_func(w, &h->funcs.at[i]);
    bw_section_end(&w->ir);
}
