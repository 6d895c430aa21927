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

#include "hlo/dot.h"
#include "pass/autocast.h"
#include "pass/rules.h"

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

typedef struct CastOp { // NAME=TYPE
    const char *name;
    size_t n;
    uint8_t dtype;
    bool is_line;
} CastOp;

typedef struct Cast {
    Walk w; // first: rules are handed it
    bool all, products;
    uint8_t dtype;
    VEC(CastOp) ops;
} Cast;

// --- what is asked ---------------------------------------------------------------------------------------

static bool is_product(int op) { return op == HLO_DOT || op == HLO_DOT_GENERAL || op == HLO_CONVOLUTION; }

// Can an operation of this code compute in another type at all? Whether one does depends on its types too.
static bool can_change(int op) {
    return is_product(op) || (hlo_op_rows[op].cls <= HC_MOVE && op != HLO_BITCAST_CONVERT && op != HLO_REDUCE_PRECISION &&
                              op != HLO_IOTA && op != HLO_COMPLEX && op != HLO_CONSTANT &&
                              op != HLO_CHLO_NEXT_AFTER); // the neighbour in another type is another number
}

static void check_op(Cast *k, const CastOp *r) {
    const char *name = arena_strndup(k->w.c->scratch, r->name, r->n), *near = NULL;
    int found = HLO_NONE;
    for (int op = HLO_NONE + 1; op < HLO_OPCODE_COUNT; op++) {
        if (!strcmp(hlo_op_rows[op].name, name))
            found = op;
        near = opt_nearer(name, near, hlo_op_rows[op].name);
    }
    if (found == HLO_NONE && near)
        ctx_hint(k->w.c->ctx, "did you mean `%s`?", near);
    else if (found == HLO_NONE)
        ctx_hint(k->w.c->ctx, "`otrn info ops` lists operations; a line is FILE:NUMBER");
    if (found == HLO_NONE)
        ctx_fail(k->w.c->ctx, OTRN_USAGE, NO_PLACE, "--cast-ops: there is no operation `%s`", name);
    if (r->dtype != DT_F32 && !can_change(found)) {
        ctx_hint(k->w.c->ctx, "products, convolutions, elementwise operations and movement can");
        ctx_fail(k->w.c->ctx, OTRN_USAGE, NO_PLACE, "--cast-ops: `%s` does not compute in a narrower type", name);
    }
}

static void check_line(Cast *k, const CastOp *r) {
    size_t at = r->n;
    while (r->name[at - 1] >= '0' && r->name[at - 1] <= '9')
        at--;
    if (at < 2 || at == r->n || r->name[at - 1] != ':')
        ctx_fail(k->w.c->ctx, OTRN_USAGE, NO_PLACE, "--cast-ops: `%.*s` is not FILE:NUMBER", (int)r->n, r->name);
}

static void ops_parse(Cast *k, const char *list) {
    for (const char *at = list; *at;) {
        size_t all = strcspn(at, ","), n = strcspn(at, "=");
        CastOp r = {.name = at, .n = n, .is_line = memchr(at, ':', n < all ? n : all) != NULL};
        r.dtype = n < all ? (uint8_t)cast_type(at + n + 1, all - n - 1) : DT_INVALID;
        if (r.dtype == DT_INVALID) {
            ctx_hint(k->w.c->ctx, "types: bf16 fp16 tf32 fp8_e4m3 none");
            ctx_fail(k->w.c->ctx, OTRN_USAGE, NO_PLACE, "--cast-ops: `%.*s` is not NAME=TYPE", (int)all, at);
        }
        (r.is_line ? check_line : check_op)(k, &r);
        VEC_PUSH(k->w.c->arena, &k->ops, r);
        at += all + (at[all] == ',');
    }
}

// Does the place end in the rule's "file.py:41"?
static bool at_line(const Cast *k, const CastOp *r, LocId loc) {
    Place p = hlo_place(k->w.hlo, loc);
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
    for (uint32_t i = 0; i < k->ops.n; i++) {
        const CastOp *r = &k->ops.at[i];
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

// The value in another type: what it was just before it was widened, if that was of this type.
static ValueId convert(Walk *w, ValueId v, int dtype) {
    const HloOp *def = hlo_def_as(w->hlo, v, HLO_CONVERT);
    ValueId before = def ? hlo_operand(w->hlo, def, 0) : 0;
    if (before && hlo_value_type(w->hlo, before)->dtype == dtype && hlo_value_type(w->hlo, v)->dtype == DT_F32)
        return before;
    return walk_convert(w, v, dtype);
}

static bool is_plain_f32(const Hlo *h, ValueId v) { return hlo_is_plain(hlo_value_type(h, v)) && hlo_value_type(h, v)->dtype == DT_F32; }

// No region, every float in it f32 and nothing complex: its types can change together.
static bool is_plain(const Hlo *h, const HloOp *op) {
    bool some = false;
    if (op->nregions || is_product(op->code) || !can_change(op->code))
        return false;
    assert(op->nresults == 1);
    for (uint32_t i = 0; i <= op->noperands; i++) {
        ValueId v = i < op->noperands ? hlo_operand(h, op, i) : op->results;
        const HloType *t = hlo_value_type(h, v);
        bool f32 = is_plain_f32(h, v);
        if (!hlo_is_plain(t) || (!f32 && !dtype_is_int(t->dtype) && t->dtype != DT_I1))
            return false;
        some |= f32;
    }
    return some;
}

// A product contracts over the fastest dimension of an operand: its load turns the operand around, which the
// DMA does for elements of two and four bytes only.
static bool turns(const Hlo *h, const HloOp *op) {
    if (op->code != HLO_DOT_GENERAL)
        return op->code == HLO_DOT;
    DotDims by = dot_dims(op);
    bool last[2];
    for (uint32_t side = 0; side < 2; side++)
        last[side] = hlo_among(by.contract[side], by.nc, hlo_value_type(h, hlo_operand(h, op, side))->rank - 1);
    return last[0] || last[1];
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

// The op on operands of another type; whoever reads what it gives sees that as before.
static ValueId narrowed(Walk *w, const HloOp *op, int dtype, bool product) {
    Hlo *h = w->hlo;
    assert(dtype != DT_F32);
    assert(dtype_is_float(dtype));
    ValueId *in = ARENA_NEWN(w->arena, ValueId, op->noperands + 1);
    bool twice = product && dtype_bytes(dtype) == 1 && turns(h, op); // the same numbers in two bytes: the same sums
    for (uint32_t i = 0; i < op->noperands; i++) {
        in[i] = hlo_operand(h, op, i);
        in[i] = is_plain_f32(h, in[i]) ? convert(w, in[i], dtype) : in[i];
        in[i] = twice ? convert(w, in[i], DT_BF16) : in[i];
    }
    HloType t = *hlo_value_type(h, op->results);
    int gives = product || t.dtype != DT_F32 ? t.dtype : dtype;
    return walk_convert(w, walk_push(w, hlo_op_like(h, op, in, hlo_type_tensor(h, gives, t.rank, t.dims))), t.dtype);
}

static ValueId cast_algorithm(Walk *w, const HloOp *op) {
    int dtype = algorithm_type(w->hlo, op);
    return dtype == DT_F32 ? 0 : narrowed(w, op, dtype, true);
}

static ValueId cast_asked(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    bool product = is_product(op->code) && is_plain_f32(h, hlo_operand(h, op, 0)) && is_plain_f32(h, hlo_operand(h, op, 1)) &&
                   is_plain_f32(h, op->results);
    int dtype = product || is_plain(h, op) ? type_for((Cast *)w, op, product) : DT_F32;
    return dtype == DT_F32 ? 0 : narrowed(w, op, dtype, product);
}

const Rule autocast_rules[] = {
    {"dot_general with an algorithm: operands rounded to its type", HLO_DOT_GENERAL, RULE_ASKED, cast_algorithm},
    {"f32 work that --auto-cast or --cast-ops names: in that type", HLO_NONE, RULE_ASKED, cast_asked},
    {0},
};

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
    ops_parse(k, o->val[OPT_CAST_OPS]);
}

void pass_autocast(Compile *c) {
    const Options *o = c->opts;
    Cast k = {0};
    bool asked = o && *autocast_text(c->scratch, o);
    if (!asked && !names_algorithms(c->hlo))
        return;
    walk_init(&k.w, c);
    if (asked)
        options_read(&k, o);
    k.w.depth = WALK_CONTROL; // what a region computes with stays what it is
    rules_walk(&k.w, autocast_rules);
}
