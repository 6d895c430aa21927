// SPDX-License-Identifier: Apache-2.0
// text_sdy.c — Shardy's own forms of its ops, as JAX prints them.
//
//   %0 = sdy.sharding_constraint %x <@mesh, [{"x"}]> : T
//   %0 = sdy.all_gather [{"x"}] %x out_sharding=<@mesh, [{}]> : T
//   %0 = sdy.propagation_barrier %x allowed_direction=NONE : T
//   sdy.sharding_group %x group_id=3 : T
//   %0 = sdy.manual_computation(%x) in_shardings=[<…>] out_shardings=[<…>] manual_axes={"x"} (%a: T) { … } : (T) -> U
//   %0 = sdy.named_computation<"f">(%x) (%a: T) { … } : (T) -> U
//
// Shardings are carried along as text, with the prefix that generic form has (#sdy.sharding<…>), as the bytecode reader
// leaves them. Shardy's collectives move parts and leave values as they are: all of them are a reshard here.
#include <string.h>

#include "read/text.h"

static void add_named(TextRead *p, const char *name, HloAttr value) {
    VEC_PUSH(p->arena, &p->named, ((HloNamed){name, value}));
}

static void add_int(TextRead *p, const char *name, int64_t v, int dtype) {
    add_named(p, name, (HloAttr){.kind = HA_INT, .i = v, .type = text_type_scalar(p, dtype)});
}

// Balanced text at hand, between these.
static void add_raw(TextRead *p, const char *name, const char *before, const char *behind) {
    Buf text = {.arena = p->arena};
    buf_puts(&text, before);
    text_raw_balanced(p, &text);
    buf_puts(&text, behind);
    add_named(p, name, (HloAttr){.kind = HA_OPAQUE, .n = (uint32_t)text.n, .s = buf_cstr(&text)});
}

static void form_direction(TextRead *p) {
    static const char *const names[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
    text_need_word(p, "allowed_direction");
    text_need(p, '=');
    int64_t v = 0;
    while (v < 4 && !text_eat_word(p, names[v]))
        v++;
    if (v == 4)
        text_expected(p, "NONE, FORWARD, BACKWARD or BOTH");
    add_int(p, "allowed_direction", v, DT_I32);
}

// --- computations --------------------------------------------------------------------------------

// (%a: T, …) { ops }
static void body(TextRead *p, TextOp *o) {
    uint32_t types = p->types.n, names = p->results.n, mark = text_scope_begin(p);
    text_need(p, '(');
    while (text_peek(p) == '%') {
        TypeId t;
        TextResult r = text_argument(p, &t);
        VEC_PUSH(p->arena, &p->types, t);
        VEC_PUSH(p->arena, &p->results, r);
        if (!text_eat(p, ','))
            break;
    }
    text_need(p, ')');
    uint32_t n = p->types.n - types;
    RegionId r = hlo_op_add_region(p->h, o->id, n, p->types.at + types);
    for (uint32_t i = 0; i < n; i++)
        text_bind(p, p->results.at[names + i].name, o->at, p->h->regions.at[r].args + i, 1);
    p->types.n = types;
    p->results.n = names;
    text_region_body(p, r);
    text_scope_end(p, mark);
}

static bool shardings(TextRead *p, const char *name, bool needed) {
    if (!needed && !text_at_word(p, name))
        return false;
    text_need_word(p, name);
    text_need(p, '=');
    add_raw(p, name, "#sdy.sharding_per_value<", ">");
    return true;
}

static void form_computation(TextRead *p, TextOp *o) {
    bool manual = o->code == HLO_SDY_MANUAL_COMPUTATION;
    uint32_t base = p->vals.n;
    if (!manual) {
        text_need(p, '<');
        HloAttr name = {.kind = HA_STR};
        name.s = text_string(p, &name.n);
        text_need(p, '>');
        add_named(p, "name", name);
    }
    text_operands_in_parens(p);
    text_op_make(p, o, base);
    shardings(p, "in_shardings", manual);
    shardings(p, "out_shardings", manual);
    if (manual) {
        text_need_word(p, "manual_axes");
        text_need(p, '=');
        add_raw(p, "manual_axes", "#sdy<manual_axes", ">");
    }
    body(p, o);
    text_op_dict(p, o);
    text_op_types(p, o);
}

// A collective in generic form: where its result lies is all that counts.
void text_sdy_collective(TextRead *p, const TextOp *o) {
    for (uint32_t i = o->named_base; i < p->named.n; i++)
        if (!strcmp(p->named.at[i].name, "out_sharding")) {
            HloAttr v = p->named.at[i].value;
            p->named.n = o->named_base;
            add_named(p, "sharding", v);
        }
}

// --- which ---------------------------------------------------------------------------------------

void text_form_sdy(TextRead *p, TextOp *o) {
    if (o->code == HLO_SDY_MANUAL_COMPUTATION || o->code == HLO_SDY_NAMED_COMPUTATION) {
        form_computation(p, o);
        return;
    }
    uint32_t base = p->vals.n;
    Buf axes = {.arena = p->arena};
    if (text_peek(p) == '[' || text_peek(p) == '{') // what a collective moves follows from what lies where
        text_raw_balanced(p, &axes);
    text_operands(p);
    text_op_make(p, o, base);
    if (o->code == HLO_SDY_PROPAGATION_BARRIER) {
        form_direction(p);
    } else if (o->code == HLO_SDY_SHARDING_GROUP) {
        text_need_word(p, "group_id");
        text_need(p, '=');
        add_int(p, "group_id", text_int(p, "the number of a group"), DT_I64);
    } else {
        if (text_eat_word(p, "out_sharding"))
            text_need(p, '=');
        add_raw(p, "sharding", "#sdy.sharding", "");
    }
    text_op_dict(p, o);
    text_op_types(p, o);
}
