// SPDX-License-Identifier: Apache-2.0
// verify.c — is this graph a program? Structure first, then each op's own rules.
//
// needs: a graph as a reader or pass left it
// gives: what later code may rely on without looking:
//   1. every operand is defined before its use, in the region of the use or one around it
//   2. operands, results and regions are as many as the op's row says; every slot has the row's kind
//      and only the slots that hlo.h names may be empty
//   3. every region ends with RETURN and has it nowhere else
//   4. functions return what they declare, calls fit their callee, no function calls itself
//   5. types follow the StableHLO specification
// One walk over the ops and one over the calls.
#include "hlo/verify.h"

#define VERIFY_MAX_DEPTH 500 // regions inside regions

typedef struct Walk {
    Hlo *h;
    uint8_t *visible; // by ValueId
    uint8_t *placed;  // by OpId: an op stands in one region only
    VEC(ValueId) scope;
    uint32_t depth;
    const HloFunc *func;
    VerifyWhole whole;
} Walk;

// --- one op's frame --------------------------------------------------------------------------------

static void check_counts(Verify *v) {
    const HloOpRow *row = hlo_row(v->op);
    if (row->operands >= 0 && v->op->noperands != (uint32_t)row->operands)
        verify_fail(v, "%d operands are needed, %u are given", row->operands, v->op->noperands);
    if (row->results >= 0 && v->op->nresults != (uint32_t)row->results)
        verify_fail(v, "%d results are needed, %u are given", row->results, v->op->nresults);
    if (row->regions >= 0 && v->op->nregions != (uint32_t)row->regions)
        verify_fail(v, "%d regions are needed, %u are given", row->regions, v->op->nregions);
}

static bool may_be_empty(HloAttrKey key) {
    switch ((int)key) {
    case AK_RESULT_ACCURACY:
    case AK_TOLERANCE:
    case AK_MAX_ULP_DIFFERENCE:
    case AK_MIN_ULP_DIFFERENCE:
    case AK_LHS_PRECISION_TYPE:
    case AK_RHS_PRECISION_TYPE:
    case AK_ACCUMULATION_TYPE:
    case AK_LHS_COMPONENT_COUNT:
    case AK_RHS_COMPONENT_COUNT:
    case AK_NUM_PRIMITIVE_OPERATIONS:
    case AK_ALLOW_IMPRECISE_ACCUMULATION:
    case AK_SCAN_DIM_SIZE:
    case AK_RESULT_SEGMENT_SIZES:
    case AK_PRODUCT:
        return true;
    default:
        return false;
    }
}

// How the op's text names the attribute that holds this slot.
static const char *attr_text_name(const HloOp *op, HloAttrKey key) {
    switch ((int)key) {
    case AK_OFFSET_DIMS:
    case AK_INPUT_BATCH_DIMENSION:
        return "dimension_numbers";
    case AK_LHS_BATCHING_DIMENSIONS:
        return "dot_dimension_numbers";
    case AK_INDEX_VECTOR_DIM:
        return op->code == HLO_SCATTER ? "scatter_dimension_numbers" : "dimension_numbers";
    default:
        return hlo_attr_rows[key].name;
    }
}

static void check_slots(Verify *v) {
    const HloOpRow *row = hlo_row(v->op);
    for (int i = 0; i < row->nattrs; i++) {
        HloAttrKey key = row->attrs[i];
        int kind = v->op->attrs[i].kind, want = hlo_attr_rows[key].kind;
        if (kind == HA_NONE && !may_be_empty(key))
            verify_fail(v, "the attribute %s is missing", attr_text_name(v->op, key));
        if (kind == HA_NONE || want == HA_ANY || kind == want ||
            (key == AK_REPLICA_GROUPS && kind == HA_OPAQUE))
            continue;
        verify_fail(v, "the attribute %s has a value of the wrong kind", hlo_attr_rows[key].name);
    }
}

static void check_operands(Walk *w, Verify *v) {
    for (uint32_t i = 0; i < v->op->noperands; i++) {
        ValueId id = hlo_operand(w->h, v->op, i);
        if (!id || id >= w->h->values.n || !w->visible[id])
            verify_fail(v, "operand %u is used before its definition or outside its region", i);
    }
}

// --- functions -------------------------------------------------------------------------------------

_Noreturn static void func_fail(Hlo *h, const HloFunc *f, const char *what) {
    ctx_fail(h->ctx, OTRN_VERIFY, hlo_place(h, f->loc), "function @%s %s", f->name, what);
}

static TypeId func_type_at(const Hlo *h, const HloFunc *f, bool args, uint32_t i) {
    if (!args)
        return f->result_types[i];
    return f->body ? h->values.at[h->regions.at[f->body].args + i].type
                   : f->result_types[(int64_t)i - f->nargs];
}

static void check_types_against(Verify *v, const char *rule, const char *what, const HloFunc *f, bool args, uint32_t n,
                                const ValueId *ids) {
    uint32_t want = args ? f->nargs : f->nresults;
    if (n != want)
        verify_break(v, rule, "%u %s where @%s has %u", n, what, f->name, want);
    for (uint32_t i = 0; i < n; i++) {
        TypeId t = func_type_at(v->h, f, args, i);
        TypeId have = v->h->values.at[ids[i]].type;
        if (t != have)
            verify_break(v, rule, "%s %u: %s where @%s has %s", what, i, verify_type_text(v, hlo_type(v->h, have)), f->name,
                         verify_type_text(v, hlo_type(v->h, t)));
    }
}

// Results have consecutive ids; a list of them for check_types_against.
static const ValueId *result_ids(Verify *v) {
    ValueId *ids = ARENA_NEWN(v->h->arena, ValueId, v->op->nresults);
    for (uint32_t i = 0; i < v->op->nresults; i++)
        ids[i] = v->op->results + i;
    return ids;
}

static void check_call(Verify *v) {
    bool composite = v->op->code == HLO_COMPOSITE;
    const char *name = hlo_attr_str(v->op, composite ? AK_DECOMPOSITION : AK_CALLEE);
    verify_that(v, !composite || verify_is_namespaced(hlo_attr_str(v->op, AK_NAME)), "C1",
                "name must be a namespace and a name, as in my.op");
    const HloFunc *f = hlo_func_find(v->h, name);
    if (!f)
        verify_break(v, composite ? "C2" : NULL, "there is no function @%s", name);
    const ValueId *operands = v->h->operands.at + v->op->operands;
    check_types_against(v, composite ? "C3" : NULL, "argument", f, true, v->op->noperands, operands);
    check_types_against(v, composite ? "C4" : NULL, "result", f, false, v->op->nresults, result_ids(v));
}

static const HloFunc *named_func(Verify *v, const HloAttr *a) {
    const HloFunc *f = a->kind == HA_SYM ? hlo_func_find(v->h, a->s) : NULL;
    if (!f || !f->body)
        verify_fail(v, "there is no function @%s", a->kind == HA_SYM ? a->s : "");
    return f;
}

// Operands and results are those of all programs, one after the other.
static void check_run_parallel(Verify *v) {
    const HloAttr *rows = hlo_attr(v->op, AK_PROGRAMS), *feeds = hlo_attr(v->op, AK_INFEED);
    const ValueId *operands = v->h->operands.at + v->op->operands, *results = result_ids(v);
    uint32_t in = 0, out = 0;
    for (uint32_t r = 0; r < rows->n; r++) {
        const HloAttr *row = &rows->list[r];
        if (row->kind != HA_LIST || !row->n || row->n != rows->list[0].n)
            verify_fail(v, "programs must list as many functions for each replica");
        for (uint32_t p = 0; p < row->n; p++) {
            const HloFunc *f = named_func(v, &row->list[p]);
            if (f->nargs > v->op->noperands - in || f->nresults > v->op->nresults - out)
                verify_fail(v, "its programs have more arguments or results than it has");
            check_types_against(v, NULL, "argument", f, true, f->nargs, operands + in);
            check_types_against(v, NULL, "result", f, false, f->nresults, results + out);
            in += f->nargs;
            out += f->nresults;
        }
    }
    for (uint32_t i = 0; i < feeds->n; i++) {
        const HloFunc *f = named_func(v, &feeds->list[i]);
        if (f->nargs || f->nresults != 1 || hlo_type(v->h, f->result_types[0])->kind != HT_TENSOR)
            verify_fail(v, "an infeed function takes no arguments and returns one tensor");
    }
    if (!rows->n || in != v->op->noperands || out != v->op->nresults)
        verify_fail(v, "its programs have %u arguments and %u results together", in, out);
}

// --- walking ---------------------------------------------------------------------------------------

static void define(Walk *w, ValueId first, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        w->visible[first + i] = 1;
        VEC_PUSH(w->h->arena, &w->scope, first + i);
    }
}

static void walk_region(Walk *w, RegionId r);

static void check_rules(Verify *v) {
    verify_quantised_operands(v);
    if (v->op->code == HLO_CALL || v->op->code == HLO_COMPOSITE)
        check_call(v);
    else if (v->op->code == HLO_INTERPRETER_RUN_PARALLEL)
        check_run_parallel(v);
    else if (v->op->code != HLO_RETURN)
        (void)(verify_ew(v) || verify_move(v) || verify_index(v) || verify_dot(v) ||
               verify_region(v) || verify_chlo(v) || verify_misc(v));
}

void hlo_verify_op(Hlo *h, OpId id) {
    VerifyWhole whole = {0};
    Verify v = {h, id, hlo_at(h, id), &whole};
    check_counts(&v);
    check_slots(&v);
    check_rules(&v);
}

static void walk_op(Walk *w, OpId id, bool last) {
    Verify v = {w->h, id, hlo_at(w->h, id), &w->whole};
    if (w->placed[id]++)
        verify_fail(&v, "stands in two places of the program");
    check_counts(&v);
    check_slots(&v);
    check_operands(w, &v);
    if ((v.op->code == HLO_RETURN) != last)
        verify_fail(&v, last ? "stands at the end of a region, where return must be"
                             : "must be the last op of its region");
    for (uint32_t i = 0; i < v.op->nregions; i++)
        walk_region(w, w->h->op_regions.at[v.op->regions + i]);
    check_rules(&v);
    define(w, v.op->results, v.op->nresults);
}

static void region_fail(Walk *w, const HloRegion *r, const char *what) {
    if (!r->parent)
        func_fail(w->h, w->func, what);
    Verify v = {w->h, r->parent, hlo_at(w->h, r->parent), &w->whole};
    verify_fail(&v, "its region %s", what);
}

static void walk_region(Walk *w, RegionId id) {
    const HloRegion *r = &w->h->regions.at[id];
    if (++w->depth > VERIFY_MAX_DEPTH)
        ctx_fail(w->h->ctx, OTRN_CAPACITY, (Place){.file = w->h->file},
                 "regions nested deeper than VERIFY_MAX_DEPTH (%d)", VERIFY_MAX_DEPTH);
    if (!r->ops.n)
        region_fail(w, r, "is empty: it needs a return");
    uint32_t mark = w->scope.n;
    define(w, r->args, r->nargs);
    for (uint32_t i = 0; i < r->ops.n; i++)
        walk_op(w, r->ops.at[i], i + 1 == r->ops.n);
    while (w->scope.n > mark)
        w->visible[w->scope.at[--w->scope.n]] = 0;
    w->depth--;
}

static void walk_func(Walk *w, const HloFunc *f) {
    if (!f->body) {
        if (!f->is_private)
            func_fail(w->h, f, "is public and has no body");
        return;
    }
    w->func = f;
    const HloRegion *r = &w->h->regions.at[f->body];
    if (r->nargs != f->nargs)
        func_fail(w->h, f, "has a body with another number of arguments");
    walk_region(w, f->body);
    r = &w->h->regions.at[f->body];
    OpId last = r->ops.at[r->ops.n - 1];
    Verify v = {w->h, last, hlo_at(w->h, last), &w->whole};
    check_types_against(&v, NULL, "returned value", f, false, v.op->noperands,
                        w->h->operands.at + v.op->operands);
}

// --- recursion -------------------------------------------------------------------------------------

// Calls as edges between functions; an op's function is found by walking its regions up.
typedef struct Calls {
    uint32_t *head, *next, *to; // lists of edges by function
    uint32_t n;
} Calls;

static void calls_collect(Hlo *h, Calls *c, uint32_t func, RegionId region) {
    const HloRegion *r = &h->regions.at[region];
    for (uint32_t i = 0; i < r->ops.n; i++) {
        const HloOp *op = hlo_at(h, r->ops.at[i]);
        for (uint32_t k = 0; k < op->nregions; k++)
            calls_collect(h, c, func, h->op_regions.at[op->regions + k]);
        if (op->code != HLO_CALL && op->code != HLO_COMPOSITE)
            continue;
        const char *name = hlo_attr_str(op, op->code == HLO_CALL ? AK_CALLEE : AK_DECOMPOSITION);
        c->to[++c->n] = (uint32_t)(hlo_func_find(h, name) - h->funcs.at);
        c->next[c->n] = c->head[func];
        c->head[func] = c->n;
    }
}

// Depth first without recursion: a function met again while it is open calls itself.
static void check_recursion(Hlo *h) {
    uint32_t calls = 0, nf = h->funcs.n;
    for (uint32_t i = 1; i < h->ops.n; i++)
        calls += h->ops.at[i].code == HLO_CALL || h->ops.at[i].code == HLO_COMPOSITE;
    if (!calls)
        return;
    Calls c = {ARENA_NEWN(h->arena, uint32_t, nf), ARENA_NEWN(h->arena, uint32_t, calls + 1),
               ARENA_NEWN(h->arena, uint32_t, calls + 1), 0};
    for (uint32_t f = 0; f < nf; f++)
        if (h->funcs.at[f].body)
            calls_collect(h, &c, f, h->funcs.at[f].body);
    uint8_t *state = ARENA_NEWN(h->arena, uint8_t, nf); // 1 open, 2 done
    VEC(uint32_t) stack = {0};
    for (uint32_t f = 0; f < nf; f++) {
        if (!state[f])
            VEC_PUSH(h->arena, &stack, f);
        while (stack.n) {
            uint32_t at = stack.at[stack.n - 1], edge = c.head[at];
            state[at] = 1;
            if (!edge) {
                state[at] = 2;
                stack.n--;
                continue;
            }
            c.head[at] = c.next[edge];
            if (state[c.to[edge]] == 1)
                func_fail(h, &h->funcs.at[c.to[edge]], "calls itself");
            if (!state[c.to[edge]])
                VEC_PUSH(h->arena, &stack, c.to[edge]);
        }
    }
}

// --- types -----------------------------------------------------------------------------------------

static const char *bounds_error(const HloType *t) {
    if (t->kind != HT_TENSOR || !t->text || strncmp(t->text, "#stablehlo.bounds<", 18))
        return NULL;
    int n = 1;
    for (const char *s = t->text; *s; s++)
        n += *s == ',';
    return n == t->rank ? NULL : "bounds are as many as dimensions";
}

static const char *dialect_type_error(const HloType *t) {
    if (t->kind != HT_OTHER || !t->text || strncmp(t->text, "!stablehlo.", 11))
        return NULL;
    if (strncmp(t->text, "!stablehlo.future<", 18))
        return "this type is not known";
    int depth = 0;
    for (const char *s = t->text + 17; *s; s++) { // every member: behind "<" and behind commas of this depth
        bool starts = (*s == '<' && !depth) || (*s == ',' && depth == 1);
        depth += (*s == '<') - (*s == '>');
        if (starts && strncmp(s + 1 + strspn(s + 1, " "), "tensor<", 7))
            return "a future is one of tensors";
    }
    return NULL;
}

// Where a type is met first: the op that makes such a value, or the function that takes one.
static Place type_place(Hlo *h, TypeId t) {
    for (ValueId v = 1; v < h->values.n; v++) {
        if (h->values.at[v].type == t && h->values.at[v].def)
            return hlo_place(h, hlo_at(h, h->values.at[v].def)->loc);
        for (uint32_t f = 0; f < h->funcs.n && h->values.at[v].type == t; f++)
            if (h->funcs.at[f].body && h->funcs.at[f].body == h->values.at[v].region)
                return hlo_place(h, h->funcs.at[f].loc);
    }
    return (Place){.file = h->file};
}

static void check_types(Hlo *h) {
    for (TypeId t = 1; t < h->types.n; t++) {
        Quant q;
        const HloType *type = hlo_type(h, t);
        const char *why = quant_is(type) ? quant_parse(h->arena, type, &q) : bounds_error(type);
        if (!why)
            why = dialect_type_error(type);
        if (why)
            ctx_fail(h->ctx, OTRN_VERIFY, type_place(h, t), "%.200s: %s", type->text, why);
    }
}

void hlo_verify(Hlo *h) {
    check_types(h);
    Walk w = {.h = h};
    w.visible = ARENA_NEWN(h->arena, uint8_t, h->values.n);
    w.placed = ARENA_NEWN(h->arena, uint8_t, h->ops.n);
    for (uint32_t i = 0; i < h->funcs.n; i++)
        walk_func(&w, &h->funcs.at[i]);
    check_recursion(h);
}
