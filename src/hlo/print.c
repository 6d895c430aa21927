// SPDX-License-Identifier: Apache-2.0
// print.c — the graph as MLIR text that read_text and other MLIR tools take.
//
// Printing what was read from our own text gives that text again. Elementwise ops of one type print
// in their pretty form, everything else in the generic form; values are numbered per function in
// the order they appear.
#include "hlo/print.h"

// --- locations -----------------------------------------------------------------------------------

// MLIR wants an alias defined before another definition uses it, so numbers are given children
// first, in the order in which ops ask. A stack of our own: call stacks nest as their program does.
typedef struct LocVisit {
    LocId loc;
    bool tail; // the rest of a fused list, which has no alias of its own
} LocVisit;

static void loc_number(Print *p, LocId loc) {
    const Hlo *h = p->h;
    VEC(LocVisit) stack = {0};
    VEC_PUSH(p->out->arena, &stack, ((LocVisit){loc, false}));
    while (stack.n) {
        LocVisit v = stack.at[stack.n - 1];
        const HloLoc *l = &h->locs.at[v.loc];
        uint8_t *seen = &p->loc_seen[v.loc];
        if (*seen < 2) { // 0: children first; 1: they are done when we come back
            LocId children[2] = {l->a, l->b};
            bool first = *seen == 0;
            *seen = first ? 1 : 2;
            for (int i = 1; first && i >= 0; i--) // the one pushed last is visited first
                if (children[i])
                    VEC_PUSH(p->out->arena, &stack,
                             ((LocVisit){children[i], i == 1 && l->kind == HL_FUSED}));
            if (first)
                continue;
        }
        stack.n--;
        if (!v.tail && l->kind != HL_UNKNOWN && !p->loc_alias[v.loc]) {
            VEC_PUSH(p->out->arena, &p->locs, v.loc);
            p->loc_alias[v.loc] = p->locs.n;
        }
    }
}

static void loc_use(Print *p, LocId loc) {
    if (p->h->locs.at[loc].kind == HL_HERE)
        loc = p->h->locs.at[loc].a;
    if (loc && !p->loc_alias[loc])
        loc_number(p, loc);
    if (loc && p->loc_alias[loc])
        buf_printf(p->out, "#loc%u", p->loc_alias[loc]);
    else
        buf_puts(p->out, "unknown");
}

static void loc_trailing(Print *p, LocId loc) {
    if (!p->with_locs)
        return;
    buf_puts(p->out, " loc(");
    loc_use(p, loc);
    buf_puts(p->out, ")");
}

static void loc_define(Print *p, LocId loc) {
    const Hlo *h = p->h;
    const HloLoc *l = &h->locs.at[loc];
    const char *s = h->strs.at[l->str];
    switch ((HloLocKind)l->kind) {
    case HL_FILE:
        print_string(p->out, s, strlen(s));
        buf_printf(p->out, ":%u:%u", l->line, l->col);
        break;
    case HL_NAME:
        print_string(p->out, s, strlen(s));
        if (h->locs.at[l->a].kind != HL_UNKNOWN) {
            buf_puts(p->out, "(");
            loc_use(p, l->a);
            buf_puts(p->out, ")");
        }
        break;
    case HL_CALL:
        buf_puts(p->out, "callsite(");
        loc_use(p, l->a);
        buf_puts(p->out, " at ");
        loc_use(p, l->b);
        buf_puts(p->out, ")");
        break;
    default:
        buf_puts(p->out, "fused[");
        for (; loc; loc = h->locs.at[loc].b) {
            loc_use(p, h->locs.at[loc].a);
            buf_puts(p->out, h->locs.at[loc].b ? ", " : "]");
        }
    }
}

static void loc_aliases(Print *p) {
    for (uint32_t i = 0; i < p->locs.n; i++) {
        buf_printf(p->out, "#loc%u = loc(", i + 1);
        loc_define(p, p->locs.at[i]);
        buf_puts(p->out, ")\n");
    }
}

// --- values --------------------------------------------------------------------------------------

static void value_use(Print *p, ValueId v) {
    const HloValue *val = &p->h->values.at[v];
    if (!val->def)
        buf_printf(p->out, "%%arg%u", p->names[v]);
    else if (hlo_at(p->h, val->def)->nresults == 1)
        buf_printf(p->out, "%%%u", p->names[v]);
    else
        buf_printf(p->out, "%%%u#%u", p->names[v], val->index);
}

static void argument(Print *p, ValueId v) {
    p->names[v] = p->next_arg++;
    value_use(p, v);
    buf_puts(p->out, ": ");
    hlo_print_type(p->h, p->h->values.at[v].type, p->out);
}

static void results(Print *p, const HloOp *op) {
    if (!op->nresults)
        return;
    buf_printf(p->out, "%%%u", p->next_result);
    if (op->nresults > 1)
        buf_printf(p->out, ":%u", op->nresults);
    buf_puts(p->out, " = ");
}

// After the op's regions, so that numbers follow the order of definitions in the text.
static void results_name(Print *p, const HloOp *op, uint32_t number) {
    for (uint32_t i = 0; i < op->nresults; i++)
        p->names[op->results + i] = number;
}

static void operands(Print *p, const HloOp *op) {
    for (uint32_t i = 0; i < op->noperands; i++) {
        if (i)
            buf_puts(p->out, ", ");
        value_use(p, hlo_operand(p->h, op, i));
    }
}

static TypeId operand_type(const Hlo *h, const HloOp *op, uint32_t i) {
    return h->values.at[hlo_operand(h, op, i)].type;
}

static void operand_types(Print *p, const HloOp *op) {
    for (uint32_t i = 0; i < op->noperands; i++) {
        if (i)
            buf_puts(p->out, ", ");
        hlo_print_type(p->h, operand_type(p->h, op, i), p->out);
    }
}

static void function_type(Print *p, const HloOp *op) {
    buf_puts(p->out, " : (");
    operand_types(p, op);
    buf_puts(p->out, op->nresults == 1 ? ") -> " : ") -> (");
    for (uint32_t i = 0; i < op->nresults; i++) {
        if (i)
            buf_puts(p->out, ", ");
        hlo_print_type(p->h, p->h->values.at[op->results + i].type, p->out);
    }
    buf_puts(p->out, op->nresults == 1 ? "" : ")");
}

// --- ops -----------------------------------------------------------------------------------------

static void indent(Print *p, int depth) {
    for (int i = 0; i < depth; i++)
        buf_puts(p->out, "  ");
}

static void discardable(Print *p, const HloOp *op) {
    if (!op->nextra)
        return;
    buf_puts(p->out, " {");
    print_named(p->h, op->extra, op->nextra, p->out);
    buf_puts(p->out, "}");
}

// Elementwise, all operands and the one result of one type, nothing else to say.
static bool is_plain(const Hlo *h, const HloOp *op) {
    const HloOpRow *row = hlo_row(op);
    if (row->dialect != HD_STABLEHLO || row->cls > HC_EW3 || op->nresults != 1 || !op->noperands ||
        op->code == HLO_COMPARE || op->code == HLO_SELECT || op->code == HLO_COMPLEX ||
        !print_slots_empty(op))
        return false;
    TypeId t = h->values.at[op->results].type;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (operand_type(h, op, i) != t)
            return false;
    return true;
}

static bool is_plain_constant(const Hlo *h, const HloOp *op) {
    const HloAttr *v = op->code == HLO_CONSTANT ? hlo_attr(op, AK_VALUE) : NULL;
    return v && v->kind == HA_TENSOR && op->nresults == 1 && op->noperands == 0 &&
           v->type == h->values.at[op->results].type;
}

static void region(Print *p, const HloRegion *r, int depth);

static void op_generic(Print *p, const HloOp *op, int depth) {
    const HloOpRow *row = hlo_row(op);
    // A sharding is a property of its op, though the row has no slot for it.
    bool properties = row->dialect == HD_SDY && op->nextra;
    buf_printf(p->out, "\"%s.%s\"(", hlo_dialect_names[row->dialect], row->name);
    operands(p, op);
    buf_puts(p->out, ")");
    print_slots(p->h, op, p->out);
    if (properties) {
        buf_puts(p->out, " <{");
        print_named(p->h, op->extra, op->nextra, p->out);
        buf_puts(p->out, "}>");
    }
    for (uint32_t i = 0; i < op->nregions; i++) {
        buf_puts(p->out, i ? ", {\n" : " ({\n");
        region(p, hlo_op_region(p->h, op, i), depth + 1);
        indent(p, depth);
        buf_puts(p->out, "}");
    }
    buf_puts(p->out, op->nregions ? ")" : "");
    if (!properties)
        discardable(p, op);
    function_type(p, op);
}

static void op_return(Print *p, const HloOp *op, HloDialect of) {
    buf_printf(p->out, "%s.return", hlo_dialect_names[of]);
    buf_puts(p->out, op->noperands ? " " : "");
    operands(p, op);
    discardable(p, op);
    buf_puts(p->out, op->noperands ? " : " : "");
    operand_types(p, op);
}

// `of`: whose return ends the region it stands in.
static void op(Print *p, const HloOp *op, int depth, HloDialect of) {
    uint32_t number = p->next_result;
    indent(p, depth);
    results(p, op);
    p->next_result += op->nresults != 0;
    if (op->code == HLO_RETURN) {
        op_return(p, op, of);
    } else if (is_plain_constant(p->h, op)) {
        buf_puts(p->out, "stablehlo.constant");
        discardable(p, op);
        buf_puts(p->out, " ");
        print_attr(p->h, hlo_attr(op, AK_VALUE), p->out);
    } else if (is_plain(p->h, op)) {
        buf_printf(p->out, "stablehlo.%s ", hlo_row(op)->name);
        operands(p, op);
        discardable(p, op);
        buf_puts(p->out, " : ");
        hlo_print_type(p->h, p->h->values.at[op->results].type, p->out);
    } else {
        op_generic(p, op, depth);
    }
    results_name(p, op, number);
    loc_trailing(p, op->loc);
    buf_puts(p->out, "\n");
}

static void region_ops(Print *p, const HloRegion *r, int depth) {
    bool sdy = r->parent && hlo_row(hlo_at(p->h, r->parent))->dialect == HD_SDY;
    HloDialect of = !r->parent ? HD_FUNC : sdy ? HD_SDY : HD_STABLEHLO;
    for (uint32_t i = 0; i < r->ops.n; i++)
        op(p, hlo_at(p->h, r->ops.at[i]), depth, of);
}

static void region(Print *p, const HloRegion *r, int depth) {
    if (r->nargs) {
        indent(p, depth - 1);
        buf_puts(p->out, "^bb0(");
        for (uint32_t i = 0; i < r->nargs; i++) {
            if (i)
                buf_puts(p->out, ", ");
            argument(p, r->args + i);
        }
        buf_puts(p->out, "):\n");
    }
    region_ops(p, r, depth);
}

// --- functions and module ------------------------------------------------------------------------

static void attr_dict(Print *p, const HloNamed **lists, const uint32_t *counts, uint32_t i) {
    if (!lists || !counts[i])
        return;
    buf_puts(p->out, " {");
    print_named(p->h, lists[i], counts[i], p->out);
    buf_puts(p->out, "}");
}

static void func_arguments(Print *p, const HloFunc *f) {
    const HloRegion *r = &p->h->regions.at[f->body];
    buf_puts(p->out, "(");
    for (uint32_t i = 0; i < f->nargs; i++) {
        if (i)
            buf_puts(p->out, ", ");
        if (f->body)
            argument(p, r->args + i);
        else
            hlo_print_type(p->h, f->result_types[(int64_t)i - f->nargs], p->out);
        attr_dict(p, f->arg_attrs, f->narg_attrs, i);
        if (f->arg_locs && f->arg_locs[i])
            loc_trailing(p, f->arg_locs[i]);
    }
    buf_puts(p->out, ")");
}

static void func_results(Print *p, const HloFunc *f) {
    if (!f->nresults)
        return;
    buf_puts(p->out, " -> (");
    for (uint32_t i = 0; i < f->nresults; i++) {
        if (i)
            buf_puts(p->out, ", ");
        hlo_print_type(p->h, f->result_types[i], p->out);
        attr_dict(p, f->res_attrs, f->nres_attrs, i);
    }
    buf_puts(p->out, ")");
}

static void func(Print *p, const HloFunc *f) {
    p->next_arg = p->next_result = 0;
    indent(p, 1);
    buf_puts(p->out, f->is_private ? "func.func private " : "func.func public ");
    print_symbol(p->out, f->name);
    func_arguments(p, f);
    func_results(p, f);
    if (f->nextra) {
        buf_puts(p->out, " attributes {");
        print_named(p->h, f->extra, f->nextra, p->out);
        buf_puts(p->out, "}");
    }
    if (f->body) {
        buf_puts(p->out, " {\n");
        region_ops(p, &p->h->regions.at[f->body], 2);
        indent(p, 1);
        buf_puts(p->out, "}");
    }
    loc_trailing(p, f->loc);
    buf_puts(p->out, "\n");
}

static bool is_meshes(const HloNamed *n) {
    return !strcmp(n->name, "sdy.meshes") && n->value.kind == HA_DICT;
}

static void module_head(Print *p) {
    const Hlo *h = p->h;
    buf_puts(p->out, "module");
    if (*h->name) {
        buf_puts(p->out, " ");
        print_symbol(p->out, h->name);
    }
    const char *before = " attributes {";
    for (uint32_t i = 0; i < h->nextra; i++) {
        if (is_meshes(&h->extra[i]))
            continue;
        buf_puts(p->out, before);
        print_named(h, &h->extra[i], 1, p->out);
        before = ", ";
    }
    buf_puts(p->out, *before == ',' ? "} {\n" : " {\n");
}

// The meshes of the module attribute "sdy.meshes", each an op as Shardy writes it.
static void meshes(Print *p) {
    for (uint32_t i = 0; i < p->h->nextra; i++) {
        const HloNamed *n = &p->h->extra[i];
        for (uint32_t k = 0; is_meshes(n) && k < n->value.n; k++) {
            const HloNamed *m = &n->value.dict[k];
            const char *body = m->value.kind == HA_OPAQUE ? strchr(m->value.s, '<') : NULL;
            buf_puts(p->out, "  sdy.mesh ");
            print_symbol(p->out, m->name);
            buf_printf(p->out, " = %s\n", body ? body : "<[]>");
        }
    }
}

void hlo_print(const Hlo *h, Buf *out, bool with_locs) {
    Print p = {.h = h, .out = out, .with_locs = with_locs};
    p.names = ARENA_NEWN(out->arena, uint32_t, h->values.n);
    if (with_locs)
        p.loc_alias = ARENA_NEWN(out->arena, uint32_t, h->locs.n);
    if (with_locs)
        p.loc_seen = ARENA_NEWN(out->arena, uint8_t, h->locs.n);
    module_head(&p);
    meshes(&p);
    for (uint32_t i = 0; i < h->funcs.n; i++)
        func(&p, &h->funcs.at[i]);
    buf_puts(out, "}\n");
    loc_aliases(&p);
}
