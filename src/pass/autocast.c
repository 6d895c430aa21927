// SPDX-License-Identifier: Apache-2.0
// autocast.c — compute f32 operations in a narrower type, as the options say.
// needs: one function without calls
// gives: products (or all plain operations) on the narrow type, with converts at their borders
// stale: nothing; converts of one value are many (cse), some of them of constants (fold)
//
//   --auto-cast=matmult     operands of products and convolutions are rounded to --auto-cast-type; sums
//                           stay fp32, as the tensor engine makes them
//   --auto-cast=all         so are operands and results of elementwise operations and movement; reductions,
//                           random numbers and everything with a region of its own stay f32
//   --cast-ops=NAME=TYPE,…  another type, or none, for an operation (`exponential`) or a source line
//                           (`train.py:41`); lines win over operations, both over the rest
//
// An algorithm that a product names is one of its own: one product of operands rounded to bf16 or f16, sums in fp32, is what the tensor
// engine does with operands of that type. A product the program marks HIGHEST keeps its type. Arguments, results and what loops carry keep theirs: a
// value is converted where it is used.
#include <stdlib.h>

#include "pass/autocast.h"
#include "pass/walk.h"

static const struct {
    const char *name;
    uint8_t dtype;
} cast_types[] = {{"bf16", DT_BF16}, {"fp16", DT_F16}, {"tf32", DT_TF32}, {"fp8_e4m3", DT_F8E4M3}, {"none", DT_F32}};

static int cast_type(const char *s, size_t n) { // DT_INVALID: no such type
    for (size_t i = 0; i < sizeof cast_types / sizeof *cast_types; i++)
        if (strlen(cast_types[i].name) == n && !memcmp(cast_types[i].name, s, n))
            return cast_types[i].dtype;
    return DT_INVALID;
}

typedef struct Rule { // NAME=TYPE
    const char *name;
    size_t n;
    uint8_t dtype;
    bool is_line;
} Rule;

typedef struct Cast {
    Compile *c;
    Hlo *h;
    Walk w;
    bool all, products;
    uint8_t dtype;
    VEC(Rule) rules;
} Cast;

// --- rules ---------------------------------------------------------------------------------------

static bool is_product(int op) { return op == HLO_DOT || op == HLO_DOT_GENERAL || op == HLO_CONVOLUTION; }

// Can an operation of this code compute in another type at all? Whether one does depends on its types too.
static bool can_change(int op) {
    return is_product(op) || (hlo_op_rows[op].cls <= HC_MOVE && op != HLO_BITCAST_CONVERT && op != HLO_REDUCE_PRECISION &&
                              op != HLO_IOTA && op != HLO_COMPLEX && op != HLO_CONSTANT &&
                              op != HLO_CHLO_NEXT_AFTER); // the neighbour in another type is another number
}

static void check_op(Cast *k, const Rule *r) {
    const char *name = arena_strndup(k->c->scratch, r->name, r->n), *near = NULL;
    int found = HLO_NONE;
    for (int op = HLO_NONE + 1; op < HLO_OPCODE_COUNT; op++) {
        if (!strcmp(hlo_op_rows[op].name, name))
            found = op;
        near = opt_nearer(name, near, hlo_op_rows[op].name);
    }
    if (found == HLO_NONE && near)
        ctx_hint(k->c->ctx, "did you mean `%s`?", near);
    else if (found == HLO_NONE)
        ctx_hint(k->c->ctx, "`otrn info ops` lists operations; a line is FILE:NUMBER");
    if (found == HLO_NONE)
        ctx_fail(k->c->ctx, OTRN_USAGE, NO_PLACE, "--cast-ops: there is no operation `%s`", name);
    if (r->dtype != DT_F32 && !can_change(found)) {
        ctx_hint(k->c->ctx, "products, convolutions, elementwise operations and movement can");
        ctx_fail(k->c->ctx, OTRN_USAGE, NO_PLACE, "--cast-ops: `%s` does not compute in a narrower type", name);
    }
}

static void check_line(Cast *k, const Rule *r) {
    size_t at = r->n;
    while (r->name[at - 1] >= '0' && r->name[at - 1] <= '9')
        at--;
    if (at < 2 || at == r->n || r->name[at - 1] != ':')
        ctx_fail(k->c->ctx, OTRN_USAGE, NO_PLACE, "--cast-ops: `%.*s` is not FILE:NUMBER", (int)r->n, r->name);
}

static void rules_parse(Cast *k, const char *list) {
    for (const char *at = list; *at;) {
        size_t all = strcspn(at, ","), n = strcspn(at, "=");
        Rule r = {.name = at, .n = n, .is_line = memchr(at, ':', n < all ? n : all) != NULL};
        r.dtype = n < all ? (uint8_t)cast_type(at + n + 1, all - n - 1) : DT_INVALID;
        if (r.dtype == DT_INVALID) {
            ctx_hint(k->c->ctx, "types: bf16 fp16 tf32 fp8_e4m3 none");
            ctx_fail(k->c->ctx, OTRN_USAGE, NO_PLACE, "--cast-ops: `%.*s` is not NAME=TYPE", (int)all, at);
        }
        (r.is_line ? check_line : check_op)(k, &r);
        VEC_PUSH(k->c->arena, &k->rules, r);
        at += all + (at[all] == ',');
    }
}

// Does the place end in the rule's "file.py:41"?
static bool at_line(const Cast *k, const Rule *r, LocId loc) {
    Place p = hlo_place(k->h, loc);
    size_t file = r->n;
    while (file && r->name[file - 1] != ':')
        file--;
    if (!p.file || !file || strtoul(r->name + file, NULL, 10) != p.line)
        return false;
    size_t n = strlen(p.file);
    file--;
    return n >= file && !memcmp(p.file + n - file, r->name, file) && (n == file || p.file[n - file - 1] == '/');
}

static bool wants_highest(const HloOp *op) {
    const HloAttr *a = op->code == HLO_CONVOLUTION || op->code == HLO_DOT || op->code == HLO_DOT_GENERAL
                           ? hlo_attr(op, AK_PRECISION_CONFIG) : NULL;
    for (uint32_t i = 0; a && a->kind == HA_LIST && i < a->n; i++)
        if (a->list[i].i == PREC_HIGHEST)
            return true;
    return false;
}

// The type an operation is to compute in; DT_F32: as it is.
static int type_for(const Cast *k, const HloOp *op, bool product) {
    int named = DT_INVALID;
    for (uint32_t i = 0; i < k->rules.n; i++) {
        const Rule *r = &k->rules.at[i];
        if (r->is_line && at_line(k, r, op->loc))
            return r->dtype;
        const char *name = hlo_row(op)->name;
        if (!r->is_line && strlen(name) == r->n && !memcmp(name, r->name, r->n))
            named = r->dtype;
    }
    if (named != DT_INVALID)
        return named;
    return (k->all || (k->products && product)) && !wants_highest(op) ? k->dtype : DT_F32;
}

// --- rewriting -----------------------------------------------------------------------------------

static ValueId push(Cast *k, OpId id) { return walk_push(&k->w, id); }

static TypeId retyped(Cast *k, ValueId v, int dtype) {
    HloType t = *hlo_value_type(k->h, v);
    return hlo_type_tensor(k->h, dtype, t.rank, t.dims);
}

static ValueId convert(Cast *k, ValueId v, int dtype, LocId loc) {
    const HloValue *value = &k->h->values.at[v];
    const HloOp *def = value->def ? hlo_at(k->h, value->def) : NULL;
    if (def && def->code == HLO_CONVERT) { // it was of this type just before
        ValueId before = hlo_operand(k->h, def, 0);
        if (hlo_value_type(k->h, before)->dtype == dtype && hlo_value_type(k->h, v)->dtype == DT_F32)
            return before;
    }
    TypeId to = retyped(k, v, dtype);
    return push(k, hlo_op(k->h, HLO_CONVERT, loc, 1, &v, 1, &to));
}

static bool is_plain_f32(const Cast *k, ValueId v) {
    const HloType *t = hlo_value_type(k->h, v);
    return t->kind == HT_TENSOR && t->dtype == DT_F32 && !t->dynamic && !t->text;
}

// No region, every float in it f32 and nothing complex: its types can change together.
static bool is_plain(const Cast *k, const HloOp *op) {
    bool some = false;
    if (op->nregions || is_product(op->code) || !can_change(op->code))
        return false;
    for (uint32_t i = 0; i < op->noperands + op->nresults; i++) {
        ValueId v = i < op->noperands ? hlo_operand(k->h, op, i) : op->results + i - op->noperands;
        const HloType *t = hlo_value_type(k->h, v);
        bool f32 = is_plain_f32(k, v);
        if (t->kind != HT_TENSOR || t->dynamic || t->text || (!f32 && !dtype_is_int(t->dtype) && t->dtype != DT_I1))
            return false;
        some |= f32;
    }
    return some;
}

static void narrow_operands(Cast *k, OpId id, int dtype) {
    assert(dtype != DT_F32 && dtype_is_float(dtype));
    for (uint32_t i = 0; i < hlo_at(k->h, id)->noperands; i++) {
        HloOp op = *hlo_at(k->h, id);
        ValueId v = hlo_operand(k->h, &op, i);
        if (is_plain_f32(k, v)) {
            ValueId narrow = convert(k, v, dtype, op.loc);
            k->h->operands.at[op.operands + i] = narrow;
        }
    }
}

// The op computes in dtype from here on; whoever uses its results sees them widened again.
static void narrow_results(Cast *k, OpId id, int dtype) {
    assert(dtype != DT_F32 && !hlo_at(k->h, id)->nregions); // what a region computes would not change
    HloOp op = *hlo_at(k->h, id);
    for (uint32_t i = 0; i < op.nresults; i++) {
        ValueId v = op.results + i;
        if (!is_plain_f32(k, v))
            continue;
        TypeId wide = k->h->values.at[v].type;
        k->h->values.at[v].type = retyped(k, v, dtype);
        ValueId back = push(k, hlo_op(k->h, HLO_CONVERT, op.loc, 1, &v, 1, &wide));
        walk_replace(&k->w, v, back);
    }
}

// A product contracts over the fastest dimension of an operand: its load turns the operand around, which the
// DMA does for elements of two and four bytes only.
static bool turns(const Cast *k, const HloOp *op) {
    static const HloAttrKey keys[] = {AK_LHS_CONTRACTING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS};
    if (op->code != HLO_DOT_GENERAL)
        return op->code == HLO_DOT;
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t n;
        const int64_t *dims = hlo_ints(op, keys[side], &n);
        for (uint32_t i = 0; i < n; i++)
            if (dims[i] == hlo_value_type(k->h, hlo_operand(k->h, op, side))->rank - 1)
                return true;
    }
    return false;
}

// The type to which a product's algorithm rounds its operands; DT_F32: none that the tensor engine has.
static int algorithm_type(const Hlo *h, const HloOp *op) {
    const HloAttr *l = op->code == HLO_DOT_GENERAL ? hlo_attr(op, AK_LHS_PRECISION_TYPE) : NULL, *r = l ? hlo_attr(op, AK_RHS_PRECISION_TYPE) : NULL;
    if (!r || l->kind != HA_TYPE || r->kind != HA_TYPE || hlo_int(op, AK_NUM_PRIMITIVE_OPERATIONS, 1) != 1)
        return DT_F32;
    int lt = hlo_type(h, l->type)->dtype, rt = hlo_type(h, r->type)->dtype;
    return lt == rt && (lt == DT_BF16 || lt == DT_F16) ? lt : DT_F32;
}

static bool names_algorithms(const Hlo *h) {
    for (uint32_t i = 1; i < h->ops.n; i++)
        if (algorithm_type(h, hlo_at(h, i)) != DT_F32)
            return true;
    return false;
}

static void cast_visit(void *pass, OpId id) {
    Cast *k = pass;
    HloOp op = *hlo_at(k->h, id);
    if (algorithm_type(k->h, &op) != DT_F32) {
        narrow_operands(k, id, algorithm_type(k->h, &op));
        push(k, id);
        return;
    }
    bool product = is_product(op.code) && is_plain_f32(k, hlo_operand(k->h, &op, 0)) &&
                   is_plain_f32(k, hlo_operand(k->h, &op, 1)) && is_plain_f32(k, op.results);
    bool plain = !product && is_plain(k, &op);
    int dtype = product || plain ? type_for(k, &op, product) : DT_F32;
    if (dtype == DT_F32) {
        push(k, id);
        return;
    }
    narrow_operands(k, id, dtype);
    if (product && dtype_bytes(dtype) == 1 && turns(k, &op)) // the same numbers in two bytes: the same sums
        for (uint32_t i = 0; i < 2; i++) {
            ValueId wider = convert(k, hlo_operand(k->h, hlo_at(k->h, id), i), DT_BF16, op.loc);
            k->h->operands.at[op.operands + i] = wider;
        }
    push(k, id);
    if (plain)
        narrow_results(k, id, dtype);
}


const char *autocast_text(Arena *a, const Options *o) {
    const char *mode = o->val[OPT_AUTO_CAST], *ops = o->val[OPT_CAST_OPS];
    if (!strcmp(mode, "none") && !*ops)
        return "";
    return arena_printf(a, "%s %s%s%s", mode, o->val[OPT_AUTO_CAST_TYPE], *ops ? " " : "", ops);
}

static void options_read(Cast *k, const Options *o) {
    const char *type = o->val[OPT_AUTO_CAST_TYPE];
    k->all = !strcmp(o->val[OPT_AUTO_CAST], "all");
    k->products = !strcmp(o->val[OPT_AUTO_CAST], "matmult");
    k->dtype = (uint8_t)cast_type(type, strlen(type));
    rules_parse(k, o->val[OPT_CAST_OPS]);
}

void pass_autocast(Compile *c) {
    const Options *o = c->opts;
    Cast k = {.c = c, .h = c->hlo};
    bool asked = o && *autocast_text(c->scratch, o);
    if (!asked && !names_algorithms(c->hlo))
        return;
    walk_init(&k.w, c);
    if (asked)
        options_read(&k, o);
    walk_rewrite(&k.w, hlo_main(c->hlo)->body, WALK_CONTROL, cast_visit, &k);
}
