// SPDX-License-Identifier: Apache-2.0
// text_op.c — one op: names of results, generic form, and the parts all pretty forms share.
//
//   %r:2 = "dialect.op"(%a, %b) <{properties}> ({ region }, …) {attributes} : (T, T) -> (T, T)
//
// Types come last, regions before them, so the op is made as soon as its operands are known, its
// regions are read into it, and its results are added at the end.
#include "read/text.h"
#include "read/read.h"

#include <stdio.h>
#include <string.h>

#include "base/opt.h"

// --- values --------------------------------------------------------------------------------------

ValueId text_operand(TextRead *p) {
    text_need(p, '%');
    const char *at = p->at - 1;
    Span name = text_suffix_id(p, "a value name");
    TextName *t = text_map_find(&p->values, name);
    if (!t || !t->b)
        text_fail(p, at, OTRN_PARSE, "the value %%%.*s is not defined here", (int)name.n, name.s);
    if (p->at == p->end || *p->at != '#')
        return t->a; // of a pack, the first
    p->at++;
    int64_t k = text_int(p, "the number of a result");
    if (k < 0 || k >= t->b)
        text_fail(p, at, OTRN_PARSE, "%%%.*s has %u results, there is no #%lld", (int)name.n,
                  name.s, t->b, (long long)k);
    return t->a + (ValueId)k;
}

// %a, %b:2 = in front of an op, pushed on p->results.
static void result_names(TextRead *p) {
    do {
        text_need(p, '%');
        TextResult r = {.name = text_suffix_id(p, "a value name"), .count = 1};
        if (text_eat(p, ':')) {
            const char *at = p->at;
            int64_t n = text_int(p, "how many results");
            if (n < 1 || n > UINT16_MAX)
                text_fail(p, at, OTRN_PARSE, "a wrong number of results");
            r.count = (uint32_t)n;
        }
        VEC_PUSH(p->arena, &p->results, r);
    } while (text_eat(p, ','));
    text_need(p, '=');
}

// --- making the op -------------------------------------------------------------------------------

void text_op_make(TextRead *p, TextOp *o, uint32_t vals_base) {
    uint32_t n = p->vals.n - vals_base;
    o->id = hlo_op(p->h, o->code, 0, n, p->vals.at + vals_base, 0, NULL);
    p->vals.n = vals_base;
}

void text_op_dict(TextRead *p, TextOp *o) {
    if (!text_eat(p, '{'))
        return;
    if (text_peek(p) != '}') {
        do {
            text_space(p);
            const char *at = p->at;
            text_slot_entry(p, o->id, text_attr_name(p), at);
        } while (text_eat(p, ','));
    }
    text_need(p, '}');
}

static const char *op_name(const TextOp *o, char out[64]) {
    const HloOpRow *row = &hlo_op_rows[o->code];
    snprintf(out, 64, "%s.%s", hlo_dialect_names[row->dialect], row->name);
    return out;
}

void text_op_results(TextRead *p, TextOp *o, uint32_t n, const TypeId *types) {
    uint32_t named = 0;
    for (uint32_t i = o->results_base; i < p->results.n; i++)
        named += p->results.at[i].count;
    char name[64];
    if (p->results.n > o->results_base && named != n)
        text_fail(p, o->at, OTRN_PARSE, "%u names for the %u results of %s", named, n,
                  op_name(o, name));
    if (n > UINT16_MAX)
        text_fail(p, o->at, OTRN_CAPACITY, "%s with more than %d results", op_name(o, name),
                  UINT16_MAX);
    HloOp *op = hlo_at(p->h, o->id);
    op->nresults = (uint16_t)n;
    op->results = p->h->values.n;
    for (uint32_t i = 0; i < n; i++) {
        ValueId v = hlo_value(p->h, types[i]);
        p->h->values.at[v].def = o->id;
        p->h->values.at[v].index = i;
    }
}

void text_op_check_operands(TextRead *p, TextOp *o, uint32_t n, const TypeId *types) {
    const HloOp *op = hlo_at(p->h, o->id);
    char name[64];
    if (n != op->noperands)
        text_fail(p, o->at, OTRN_PARSE, "%s has %u operands and %u operand types", op_name(o, name),
                  op->noperands, n);
    for (uint32_t i = 0; i < n; i++) {
        TypeId have = p->h->values.at[hlo_operand(p->h, op, i)].type;
        if (have == types[i])
            continue;
        Buf is = {.arena = p->arena}, said = {.arena = p->arena};
        hlo_print_type(p->h, have, &is);
        hlo_print_type(p->h, types[i], &said);
        text_fail(p, o->at, OTRN_VERIFY,
                  "%s: operand %u is %.200s, but its type is given as %.200s", op_name(o, name), i,
                  buf_cstr(&is), buf_cstr(&said));
    }
}

// --- types of pretty forms -----------------------------------------------------------------------

// `: T`. Most ops have all operands and results of this type; these two say only the result.
static bool one_type_is_result(HloOpcode code) { return code == HLO_COMPLEX || code == HLO_TUPLE; }

static void types_one(TextRead *p, TextOp *o, TypeId t) {
    const HloOpRow *row = &hlo_op_rows[o->code];
    uint32_t noperands = hlo_at(p->h, o->id)->noperands, base = p->types.n;
    uint32_t nresults = row->results >= 0 ? (uint32_t)row->results : noperands;
    uint32_t n = noperands > nresults ? noperands : nresults;
    for (uint32_t i = 0; i < n; i++)
        VEC_PUSH(p->arena, &p->types, t);
    if (!one_type_is_result(o->code))
        text_op_check_operands(p, o, noperands, p->types.at + base);
    text_op_results(p, o, nresults, p->types.at + base);
    p->types.n = base;
}

// `: T, U, …` without an arrow.
static void types_list(TextRead *p, TextOp *o, uint32_t base) {
    uint32_t n = p->types.n - base;
    const HloOpRow *row = &hlo_op_rows[o->code];
    if (o->code == HLO_SELECT && n == 2) { // predicate, then the type of both values and the result
        TypeId pred = p->types.at[base], t = p->types.at[base + 1];
        text_op_check_operands(p, o, 3, (TypeId[]){pred, t, t});
        text_op_results(p, o, 1, &t);
    } else if (row->results == 0) {
        text_op_check_operands(p, o, n, p->types.at + base);
        text_op_results(p, o, 0, NULL);
    } else if (row->results < 0) { // each result has its operand's type
        text_op_check_operands(p, o, n, p->types.at + base);
        text_op_results(p, o, n, p->types.at + base);
    } else {
        text_expected(p, "'->' and the result types");
    }
}

void text_op_types(TextRead *p, TextOp *o) {
    uint32_t base = p->types.n, nin, nout;
    if (!text_eat(p, ':')) {
        if (hlo_at(p->h, o->id)->noperands || hlo_op_rows[o->code].results > 0)
            text_expected(p, "':' and the types");
        text_op_results(p, o, 0, NULL);
        return;
    }
    if (text_peek(p) == '(') {
        text_type_function(p, &nin, &nout);
        text_op_check_operands(p, o, nin, p->types.at + base);
        text_op_results(p, o, nout, p->types.at + base + nin);
    } else {
        nin = text_types(p);
        if (text_eat_arrow(p) || text_eat_word(p, "to")) {
            text_type_results(p, &nout);
            text_op_check_operands(p, o, nin, p->types.at + base);
            text_op_results(p, o, nout, p->types.at + base + nin);
        } else if (nin == 1) {
            types_one(p, o, p->types.at[base]);
        } else {
            types_list(p, o, base);
        }
    }
    p->types.n = base;
}

// --- generic form --------------------------------------------------------------------------------

// The op that was perhaps meant.
static void hint_op(TextRead *p, Span name) {
    const char *dot = memchr(name.s, '.', name.n), *near = NULL;
    if (!dot || name.n > 64)
        return;
    size_t dialect = (size_t)(dot - name.s);
    const char *typed = arena_strndup(p->arena, dot + 1, name.n - dialect - 1);
    for (int i = 1; i < HLO_OPCODE_COUNT; i++) {
        const char *of = hlo_dialect_names[hlo_op_rows[i].dialect];
        if (strlen(of) == dialect && !memcmp(of, name.s, dialect))
            near = opt_nearer(typed, near, hlo_op_rows[i].name);
    }
    if (near)
        ctx_hint(p->ctx, "did you mean '%.*s.%s'?", (int)dialect, name.s, near);
}

static HloOpcode opcode_of(TextRead *p, Span name, const char *at) {
    TextName *t = text_map_at(p->arena, &p->opnames, name);
    if (!t->a) {
        const char *dot = memchr(name.s, '.', name.n);
        size_t dialect = dot ? (size_t)(dot - name.s) : 0;
        t->a = dot ? hlo_op_find(name.s, dialect, dot + 1, name.n - dialect - 1)
               : span_is(name, "return")                     ? HLO_RETURN
               : span_is(name, "call")                       ? HLO_CALL
               : span_is(name, "unrealized_conversion_cast") ? HLO_UNREALIZED_CAST
                                                             : HLO_NONE;
        if (!t->a) {
            hint_op(p, name);
            text_fail(p, at, OTRN_UNSUPPORTED, "the op '%.*s' is not known to opentrn",
                      (int)(name.n < 200 ? name.n : 200), name.s);
        }
    }
    return (HloOpcode)t->a;
}

static void generic(TextRead *p, TextOp *o) {
    const char *at = p->at;
    uint32_t base = p->vals.n;
    char *name = text_name_string(p);
    o->code = opcode_of(p, (Span){name, strlen(name)}, at);
    text_need(p, '(');
    if (text_peek(p) != ')') {
        do {
            ValueId v = text_operand(p);
            VEC_PUSH(p->arena, &p->vals, v);
        } while (text_eat(p, ','));
    }
    text_need(p, ')');
    text_op_make(p, o, base);
    if (text_peek(p) == '[')
        text_fail(p, p->at, OTRN_UNSUPPORTED, "ops with successor blocks");
    if (text_eat(p, '<')) {
        text_op_dict(p, o);
        text_need(p, '>');
    }
    if (text_eat(p, '(')) {
        do {
            text_region(p, o->id);
        } while (text_eat(p, ','));
        text_need(p, ')');
    }
    text_op_dict(p, o);
    if (text_peek(p) != ':')
        text_expected(p, "':' and the op's type");
    text_op_types(p, o);
}

// --- an op ---------------------------------------------------------------------------------------

void text_op(TextRead *p, RegionId into) {
    text_deeper(p);
    text_space(p);
    TextOp o = {.at = p->at, .results_base = p->results.n, .named_base = p->named.n};
    o.pos = text_pos(p, p->at);
    if (text_peek(p) == '%')
        result_names(p);
    if (text_peek(p) == '"') {
        generic(p, &o);
        if (o.code == HLO_SDY_RESHARD)
            text_sdy_collective(p, &o);
    } else {
        const char *at = p->at;
        o.code = opcode_of(p, text_ident(p, "an op"), at);
        text_form(p, &o);
    }
    HloOp *op = hlo_at(p->h, o.id);
    uint32_t nextra;
    op->extra = text_named_take(p, o.named_base, &nextra);
    op->nextra = nextra;
    read_slot_defaults(p->h, o.id);
    LocId loc = text_loc_or_here(p, text_loc_trailing(p), o.pos);
    op = hlo_at(p->h, o.id);
    op->loc = loc;
    ValueId v = op->results;
    for (uint32_t i = o.results_base; i < p->results.n; i++) {
        text_bind(p, p->results.at[i].name, o.at, v, p->results.at[i].count);
        v += p->results.at[i].count;
    }
    p->results.n = o.results_base;
    hlo_region_push(p->h, into, o.id);
    p->depth--;
}
