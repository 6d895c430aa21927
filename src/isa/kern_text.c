// SPDX-License-Identifier: Apache-2.0
// kern_text.c — kernels as text: one line each, printed and parsed, exact inverses.
//
//   stablehlo.reduce (arg0[0]: f32[8,4], const[0]: f32[]) -> (scratch[64]: f32[8])
//       {dimensions = [1]} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
//
// (on one line). Attribute values: 5, true, 0.5, <GT> or <3> (enum), "text", @"symbol", [1, 2],
// x2[1, 2, 3, 4] (rows of two), (a, b) list, {name = a} dictionary, unit, opaque "text"; a float
// that is not finite is f0x followed by its 64 bits. Region registers are r0…; the list in
// parentheses has their types; the first `inputs` are the region's arguments, the next `captures`
// the kernel's last operands. A constant is its bytes in hex, lowest first.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "isa/isa.h"
#include "isa/kern.h"
#include "isa/text.h"

#define TEXT_DEPTH_MAX 8
#define TENSOR_ELEMS_MAX ((int64_t)1 << 40)

// --- print ---------------------------------------------------------------------------------------

static void print_float(double f, Buf *out) {
    uint64_t bits;
    memcpy(&bits, &f, 8);
    char s[40];
    snprintf(s, sizeof s, "%.17g", f);
    if (!isfinite(f))
        buf_printf(out, "f0x%" PRIx64, bits);
    else
        buf_printf(out, "%s%s", s, strpbrk(s, ".e") ? "" : ".0");
}

static void print_ints(const int64_t *v, uint32_t n, Buf *out) {
    buf_puts(out, "[");
    for (uint32_t i = 0; i < n; i++)
        buf_printf(out, "%s%" PRId64, i ? ", " : "", v[i]);
    buf_puts(out, "]");
}

// "[0; 12288 x 8, 8 x 1]": the first id, then counts and strides, the last one fastest.
static bool print_shape(const HloAttr *at, Buf *out) {
    IdShape s;
    if (at->n < SHAPE_FROM || at->n > SHAPE_IDS_MAX || !shape_of(at->ints, at->n, &s))
        return false;
    buf_printf(out, "[%" PRId64 ";", s.first);
    for (uint32_t d = 0; d < s.dims; d++)
        buf_printf(out, "%s%u x %" PRId64, d ? ", " : " ", s.dim[d].count, s.dim[d].stride);
    buf_puts(out, "]");
    return true;
}

static void print_enum(HloAttrKey key, int64_t v, Buf *out) {
    const char *name = hlo_enum_name(key, v);
    if (name)
        buf_printf(out, "<%s>", name);
    else
        buf_printf(out, "<%" PRId64 ">", v);
}

static void print_attr(const HloAttr *at, HloAttrKey key, Buf *out) {
    switch (at->kind) {
    case HA_INT:
        buf_printf(out, "%" PRId64, at->i);
        break;
    case HA_BOOL:
        buf_puts(out, at->i ? "true" : "false");
        break;
    case HA_FLOAT:
        print_float(at->f, out);
        break;
    case HA_ENUM:
        print_enum(key, at->i, out);
        break;
    case HA_STR:
        txt_print_string(out, at->s, at->n);
        break;
    case HA_SYM:
    case HA_OPAQUE:
        buf_puts(out, at->kind == HA_SYM ? "@" : "opaque ");
        txt_print_string(out, at->s, strlen(at->s));
        break;
    case HA_INTS2:
        buf_printf(out, "x%u", at->cols);
        if (print_shape(at, out))
            break;
        print_ints(at->ints, at->n, out);
        break;
    case HA_INTS:
        print_ints(at->ints, at->n, out);
        break;
    case HA_LIST:
        buf_puts(out, "(");
        for (uint32_t i = 0; i < at->n; i++) {
            buf_puts(out, i ? ", " : "");
            print_attr(&at->list[i], key, out);
        }
        buf_puts(out, ")");
        break;
    case HA_DICT:
        buf_puts(out, "{");
        for (uint32_t i = 0; i < at->n; i++) {
            buf_puts(out, i ? ", " : "");
            txt_print_string(out, at->dict[i].name, strlen(at->dict[i].name));
            buf_puts(out, " = ");
            print_attr(&at->dict[i].value, key, out);
        }
        buf_puts(out, "}");
        break;
    default:
        buf_puts(out, "unit");
    }
}

static void print_tensors(const KTensor *t, uint32_t n, const IsaNames *names, Buf *out) {
    buf_puts(out, "(");
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(out, i ? ", " : "");
        isa_print_addr(t[i].addr, names, out);
        buf_printf(out, ": %s[", dtype_row(t[i].dtype)->name);
        for (int d = 0; d < t[i].rank; d++)
            buf_printf(out, "%s%" PRId64, d ? "," : "", t[i].dims[d]);
        buf_puts(out, "]");
    }
    buf_puts(out, ")");
}

static void print_step(const KStep *s, Buf *out) {
    buf_printf(out, "r%u = ", s->dst);
    dict_op_name(s->op, out);
    for (int k = 0; k < kern_step_operands(s->op); k++)
        buf_printf(out, "%s r%u", k ? "," : "", s->src[k]);
    if (s->op == HLO_COMPARE) {
        buf_puts(out, " ");
        print_enum(AK_COMPARISON_DIRECTION, s->attr[0], out);
        buf_puts(out, " ");
        print_enum(AK_COMPARE_TYPE, s->attr[1], out);
    } else if (s->attr[0] || s->attr[1]) {
        buf_printf(out, " <%d> <%d>", s->attr[0], s->attr[1]);
    }
    buf_puts(out, "; ");
}

static void print_region(const KProg *p, Buf *out) {
    buf_puts(out, " region(");
    for (int i = 0; i < p->nregs; i++)
        buf_printf(out, "%s%s", i ? ", " : "", dtype_row(p->dtypes[i])->name);
    buf_printf(out, ") inputs %u ", p->ninputs);
    if (p->ncaptures)
        buf_printf(out, "captures %u ", p->ncaptures);
    buf_puts(out, "{ ");
    for (int i = 0; i < p->nconsts; i++) {
        buf_printf(out, "r%u = const ", p->const_regs[i]);
        size_t n = dtype_bytes(p->dtypes[p->const_regs[i]]);
        for (size_t b = 0; b < n; b++)
            buf_printf(out, "%02x", p->consts[i][b]);
        buf_puts(out, "; ");
    }
    for (int i = 0; i < p->nsteps; i++)
        print_step(&p->steps[i], out);
    buf_puts(out, "return");
    for (int i = 0; i < p->nouts; i++)
        buf_printf(out, "%s r%u", i ? "," : "", p->outs[i]);
    buf_puts(out, " }");
}

static void print_attrs(const Kern *k, Buf *out) {
    const HloOpRow *row = &hlo_op_rows[k->op];
    const char *sep = " {";
    for (int i = 0; i < k->nattrs; i++) {
        if (k->attrs[i].kind == HA_NONE)
            continue;
        buf_printf(out, "%s%s = ", sep, hlo_attr_rows[row->attrs[i]].name);
        print_attr(&k->attrs[i], (HloAttrKey)row->attrs[i], out);
        sep = ", ";
    }
    if (sep[0] == ',')
        buf_puts(out, "}");
}

void kern_print(const Kern *k, const IsaNames *names, Buf *out) {
    dict_op_name(k->op, out);
    buf_puts(out, " ");
    print_tensors(k->in, k->nin, names, out);
    buf_puts(out, " -> ");
    print_tensors(k->out, k->nout, names, out);
    if (k->target && k->target[0]) {
        buf_puts(out, " target ");
        txt_print_string(out, k->target, strlen(k->target));
    }
    print_attrs(k, out);
    for (uint32_t i = 0; i < k->nregions; i++)
        print_region(&k->regions[i], out);
}

// --- parse ---------------------------------------------------------------------------------------

static int parse_op(Txt *t) {
    Txt begin = *t;
    TxtWord w = txt_word(t, "an operation");
    int op = dict_op_find(w.s, w.n);
    if (op <= 0) {
        ctx_hint(t->ctx, "operations are named with their dialect: stablehlo.add");
        txt_fail(&begin, "unknown operation `%.*s`", (int)w.n, w.s);
    }
    return op;
}

static const int64_t *parse_ints(Txt *t, uint32_t *n) {
    VEC(int64_t) v = {0};
    VEC_RESERVE(t->arena, &v, 1);
    txt_need(t, "[");
    while (!txt_take(t, "]")) {
        if (v.n)
            txt_need(t, ",");
        VEC_PUSH(t->arena, &v, txt_i64(t, INT64_MIN, INT64_MAX, "list element"));
    }
    *n = v.n;
    return v.at;
}

static const int64_t *parse_shape(Txt *t, int64_t first, uint32_t *n) {
    IdShape s = {.first = first};
    Txt begin = *t;
    while (!txt_take(t, "]")) {
        if (s.dims)
            txt_need(t, ",");
        if (s.dims == SHAPE_DIMS)
            txt_fail(t, "more than %d dimensions", SHAPE_DIMS);
        s.dim[s.dims].count = (uint32_t)txt_u64(t, UINT32_MAX, "count");
        txt_need(t, "x");
        s.dim[s.dims++].stride = txt_i64(t, INT32_MIN, INT32_MAX, "stride");
    }
    uint64_t count = shape_count(&s);
    if (!count || count > SHAPE_IDS_MAX || first < INT32_MIN || first > INT32_MAX)
        txt_fail(&begin, "no devices have groups of %llu", (unsigned long long)count);
    int64_t *ids = ARENA_NEWN(t->arena, int64_t, count);
    shape_fill(&s, ids);
    *n = (uint32_t)count;
    return ids;
}

// Rows of them may be told by their shape.
static const int64_t *parse_rows(Txt *t, uint32_t *n) {
    Txt begin = *t;
    if (txt_take(t, "[") && !txt_take(t, "]")) {
        int64_t first = txt_i64(t, INT64_MIN, INT64_MAX, "list element");
        if (txt_take(t, ";"))
            return parse_shape(t, first, n);
    }
    *t = begin;
    return parse_ints(t, n);
}

static int64_t parse_enum(Txt *t, HloAttrKey key) {
    txt_need(t, "<");
    char c = txt_peek(t);
    int64_t v;
    if ((c >= '0' && c <= '9') || c == '-') {
        v = txt_i64(t, INT64_MIN, INT64_MAX, "enum value");
    } else {
        Txt begin = *t;
        TxtWord w = txt_word(t, "an enum name or number");
        v = hlo_enum_parse(key, w.s, w.n);
        if (v < 0)
            txt_fail(&begin, "`%s` has no value `%.*s`", hlo_attr_rows[key].name, (int)w.n, w.s);
    }
    txt_need(t, ">");
    return v;
}

static HloAttr parse_attr(Txt *t, HloAttrKey key, int depth);

static HloAttr parse_list(Txt *t, HloAttrKey key, int depth) {
    VEC(HloAttr) v = {0};
    VEC_RESERVE(t->arena, &v, 1);
    while (!txt_take(t, ")")) {
        if (v.n)
            txt_need(t, ",");
        HloAttr item = parse_attr(t, key, depth + 1);
        VEC_PUSH(t->arena, &v, item);
    }
    return (HloAttr){.kind = HA_LIST, .n = v.n, .list = v.at};
}

static HloAttr parse_dict(Txt *t, HloAttrKey key, int depth) {
    VEC(HloNamed) v = {0};
    VEC_RESERVE(t->arena, &v, 1);
    while (!txt_take(t, "}")) {
        if (v.n)
            txt_need(t, ",");
        HloNamed item = {.name = txt_cstring(t)};
        txt_need(t, "=");
        item.value = parse_attr(t, key, depth + 1);
        VEC_PUSH(t->arena, &v, item);
    }
    return (HloAttr){.kind = HA_DICT, .n = v.n, .dict = v.at};
}

// A number is a float when it holds one of the characters only floats have.
static HloAttr parse_number(Txt *t) {
    if (txt_take(t, "f0x")) {
        t->at -= 2; // keep the 0x
        uint64_t bits = txt_u64(t, UINT64_MAX, "float bits");
        HloAttr at = {.kind = HA_FLOAT};
        memcpy(&at.f, &bits, 8);
        return at;
    }
    size_t n = 0;
    bool is_float = false, is_hex = false;
    for (; t->at + n < t->end && t->at[n] && strchr("+-.0123456789abcdefABCDEFxX", t->at[n]); n++) {
        is_hex |= t->at[n] == 'x';
        is_float |= !is_hex && (t->at[n] == '.' || t->at[n] == 'e' || t->at[n] == 'E');
    }
    if (is_float)
        return (HloAttr){.kind = HA_FLOAT, .f = txt_f64(t, "attribute value")};
    return (HloAttr){.kind = HA_INT, .i = txt_i64(t, INT64_MIN, INT64_MAX, "attribute value")};
}

static HloAttr parse_attr(Txt *t, HloAttrKey key, int depth) {
    if (depth > TEXT_DEPTH_MAX)
        txt_fail(t, "attribute lists nest deeper than %d", TEXT_DEPTH_MAX);
    HloAttr at = {0};
    char c = txt_peek(t);
    if (c == '"') {
        at.kind = HA_STR;
        at.s = txt_string(t, &at.n);
    } else if (c == '<') {
        at = (HloAttr){.kind = HA_ENUM, .i = parse_enum(t, key)};
    } else if (c == '[') {
        at.kind = HA_INTS;
        at.ints = parse_ints(t, &at.n);
    } else if (txt_take(t, "(")) {
        at = parse_list(t, key, depth);
    } else if (txt_take(t, "{")) {
        at = parse_dict(t, key, depth);
    } else if (txt_take(t, "@")) {
        at = (HloAttr){.kind = HA_SYM, .s = txt_cstring(t)};
        at.n = (uint32_t)strlen(at.s);
    } else if (txt_take_word(t, "opaque")) {
        at = (HloAttr){.kind = HA_OPAQUE, .s = txt_cstring(t)};
        at.n = (uint32_t)strlen(at.s);
    } else if (txt_take_word(t, "unit")) {
        at.kind = HA_UNIT;
    } else if (txt_take_word(t, "true") || txt_take_word(t, "false")) {
        at = (HloAttr){.kind = HA_BOOL, .i = t->at[-2] == 'u'}; // tr-u-e
    } else if (c == 'x') {
        Txt begin = *t;
        t->at++;
        at.kind = HA_INTS2;
        at.cols = (uint32_t)txt_u64(t, UINT32_MAX, "row length");
        at.ints = parse_rows(t, &at.n);
        if (at.n && (!at.cols || at.n % at.cols))
            txt_fail(&begin, "%u numbers do not fill rows of %u", at.n, at.cols);
    } else {
        at = parse_number(t);
    }
    return at;
}

static void parse_attrs(Txt *t, Kern *k) {
    const HloOpRow *row = &hlo_op_rows[k->op];
    k->nattrs = row->nattrs;
    HloAttr *attrs = ARENA_NEWN(t->arena, HloAttr, row->nattrs ? row->nattrs : 1);
    k->attrs = attrs;
    if (!txt_take(t, "{"))
        return;
    for (bool first = true; !txt_take(t, "}"); first = false) {
        if (!first)
            txt_need(t, ",");
        Txt begin = *t;
        TxtWord w = txt_word(t, "an attribute name");
        int slot = 0;
        while (slot < row->nattrs && !txt_word_is(w, hlo_attr_rows[row->attrs[slot]].name))
            slot++;
        if (slot == row->nattrs)
            txt_fail(&begin, "`%s` has no attribute `%.*s`", row->name, (int)w.n, w.s);
        if (attrs[slot].kind != HA_NONE)
            txt_fail(&begin, "`%.*s` is given twice", (int)w.n, w.s);
        txt_need(t, "=");
        begin = *t;
        attrs[slot] = parse_attr(t, (HloAttrKey)row->attrs[slot], 0);
        int want = hlo_attr_rows[row->attrs[slot]].kind;
        if (want != HA_ANY && attrs[slot].kind != want)
            txt_fail(&begin, "`%.*s` has the wrong kind of value", (int)w.n, w.s);
    }
}

static void parse_tensor(Txt *t, const IsaNames *names, KTensor *out) {
    out->addr = isa_parse_addr(t, names);
    txt_need(t, ":");
    out->dtype = (uint8_t)txt_dtype(t);
    int64_t dims[OTRN_MAX_RANK];
    out->elems = 1;
    if (txt_take(t, "[")) {
        while (!txt_take(t, "]")) {
            if (out->rank)
                txt_need(t, ",");
            if (out->rank == OTRN_MAX_RANK)
                txt_fail(t, "a tensor has at most %d dimensions", OTRN_MAX_RANK);
            int64_t d = dims[out->rank++] = txt_i64(t, 0, TENSOR_ELEMS_MAX, "dimension");
            if (__builtin_mul_overflow(out->elems, d, &out->elems) || out->elems > TENSOR_ELEMS_MAX)
                txt_fail(t, "a tensor of more than 2^40 elements");
        }
    }
    out->dims = arena_dup(t->arena, dims, sizeof *dims * out->rank);
}

static const KTensor *parse_tensors(Txt *t, const IsaNames *names, uint32_t *n) {
    VEC(KTensor) v = {0};
    VEC_RESERVE(t->arena, &v, 1);
    txt_need(t, "(");
    while (!txt_take(t, ")")) {
        if (v.n)
            txt_need(t, ",");
        KTensor item = {0};
        parse_tensor(t, names, &item);
        VEC_PUSH(t->arena, &v, item);
    }
    *n = v.n;
    return v.at;
}

// Registers of a region being read; `defined` says which have a value.
typedef struct Regs {
    uint8_t *defined;
    uint16_t n;
} Regs;

static uint16_t parse_reg(Txt *t, Regs *regs, bool is_use) {
    Txt begin = *t;
    char c = txt_peek(t);
    if (c != 'r')
        txt_fail(t, "expected a register (r0, r1, …)");
    t->at++;
    uint16_t reg = (uint16_t)txt_u64(t, UINT16_MAX, "register");
    if (reg >= regs->n)
        txt_fail(&begin, "the region has registers r0…r%d only", regs->n - 1);
    if (is_use && !regs->defined[reg])
        txt_fail(&begin, "r%u is used before it is set", reg);
    return reg;
}

static int hex_value(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void parse_const_bytes(Txt *t, int dtype, uint8_t out[16]) {
    Txt begin = *t;
    TxtWord w = txt_word(t, "the constant's bytes in hex");
    if (w.n != 2 * dtype_bytes(dtype))
        txt_fail(&begin, "a constant of type %s has %zu hex digits, not %u", dtype_row(dtype)->name,
                 2 * dtype_bytes(dtype), w.n);
    for (uint32_t i = 0; i < w.n / 2; i++) {
        int hi = hex_value(w.s[2 * i]), lo = hex_value(w.s[2 * i + 1]);
        if (hi < 0 || lo < 0)
            txt_fail(&begin, "`%.*s` is not hex", (int)w.n, w.s);
        out[i] = (uint8_t)(hi << 4 | lo);
    }
}

static void parse_step(Txt *t, Regs *regs, KStep *s) {
    Txt begin = *t;
    s->op = (uint16_t)parse_op(t);
    const HloOpRow *row = &hlo_op_rows[s->op];
    if (!kern_is_step(s->op))
        txt_fail(&begin, "`%s` cannot be a step of a region", row->name);
    for (int k = 0; k < kern_step_operands(s->op); k++) {
        if (k)
            txt_need(t, ",");
        s->src[k] = parse_reg(t, regs, true);
    }
    const HloAttrKey keys[2] = {AK_COMPARISON_DIRECTION, AK_COMPARE_TYPE};
    for (int i = 0; i < 2 && txt_peek(t) == '<'; i++) {
        begin = *t;
        int64_t v = parse_enum(t, keys[i]);
        if (v < INT16_MIN || v > INT16_MAX)
            txt_fail(&begin, "a step's attribute has 16 bits");
        s->attr[i] = (int16_t)v;
    }
}

typedef struct RegionParts {
    VEC(uint16_t) const_regs;
    VEC(KStep) steps;
    VEC(uint16_t) outs;
    uint8_t (*consts)[16];
    uint32_t consts_cap;
} RegionParts;

static void parse_region_body(Txt *t, Regs *regs, const uint8_t *dtypes, RegionParts *parts) {
    txt_need(t, "{");
    while (!txt_take_word(t, "return")) {
        Txt begin = *t;
        uint16_t dst = parse_reg(t, regs, false);
        txt_need(t, "=");
        if (txt_take_word(t, "const")) {
            if (parts->steps.n)
                txt_fail(&begin, "constants come before steps");
            uint32_t n = parts->const_regs.n;
            VEC_PUSH(t->arena, &parts->const_regs, dst);
            if (n == parts->consts_cap)
                parts->consts =
                    arena_grow(t->arena, parts->consts, n, &parts->consts_cap, n + 1, 16);
            memset(parts->consts[n], 0, 16);
            parse_const_bytes(t, dtypes[dst], parts->consts[n]);
        } else {
            KStep step = {.dst = dst};
            parse_step(t, regs, &step);
            VEC_PUSH(t->arena, &parts->steps, step);
        }
        regs->defined[dst] = 1;
        txt_need(t, ";");
    }
    while (!txt_take(t, "}")) {
        if (parts->outs.n)
            txt_need(t, ",");
        VEC_PUSH(t->arena, &parts->outs, parse_reg(t, regs, true));
    }
}

static const uint8_t *parse_region_types(Txt *t, uint16_t *n) {
    VEC(uint8_t) v = {0};
    VEC_RESERVE(t->arena, &v, 1);
    txt_need(t, "(");
    while (!txt_take(t, ")")) {
        if (v.n)
            txt_need(t, ",");
        Txt begin = *t;
        uint8_t d = (uint8_t)txt_dtype(t);
        if (d == DT_TOKEN || v.n == UINT16_MAX)
            txt_fail(&begin, d == DT_TOKEN ? "a register cannot be a token" : "too many registers");
        VEC_PUSH(t->arena, &v, d);
    }
    *n = (uint16_t)v.n;
    return v.at;
}

static void parse_region(Txt *t, KProg *p) {
    *p = (KProg){0};
    p->dtypes = parse_region_types(t, &p->nregs);
    if (txt_take_word(t, "inputs"))
        p->ninputs = (uint16_t)txt_u64(t, p->nregs, "inputs");
    if (txt_take_word(t, "captures"))
        p->ncaptures = (uint16_t)txt_u64(t, (uint64_t)(p->nregs - p->ninputs), "captures");
    Regs regs = {arena_zalloc(t->arena, p->nregs + 1u), p->nregs};
    memset(regs.defined, 1, (size_t)p->ninputs + p->ncaptures);
    RegionParts parts = {0};
    VEC_RESERVE(t->arena, &parts.const_regs, 1);
    VEC_RESERVE(t->arena, &parts.steps, 1);
    VEC_RESERVE(t->arena, &parts.outs, 1);
    Txt begin = *t;
    parse_region_body(t, &regs, p->dtypes, &parts);
    if (parts.const_regs.n > UINT16_MAX || parts.steps.n > UINT16_MAX || parts.outs.n > UINT16_MAX)
        txt_fail(&begin, "a region has at most %d constants, steps or results", UINT16_MAX);
    p->nconsts = (uint16_t)parts.const_regs.n;
    p->const_regs = parts.const_regs.at;
    p->consts = (const uint8_t(*)[16])parts.consts;
    p->nsteps = (uint16_t)parts.steps.n;
    p->steps = parts.steps.at;
    p->nouts = (uint16_t)parts.outs.n;
    p->outs = parts.outs.at;
}

void kern_parse(Txt *t, const IsaNames *names, Kern *out) {
    *out = (Kern){.target = ""};
    Txt begin = *t;
    out->op = (uint16_t)parse_op(t);
    const HloOpRow *row = &hlo_op_rows[out->op];
    out->in = parse_tensors(t, names, &out->nin);
    txt_need(t, "->");
    out->out = parse_tensors(t, names, &out->nout);
    if (txt_take_word(t, "target"))
        out->target = txt_cstring(t);
    parse_attrs(t, out);
    VEC(KProg) regions = {0};
    VEC_RESERVE(t->arena, &regions, 1);
    while (txt_take_word(t, "region")) {
        KProg p;
        parse_region(t, &p);
        VEC_PUSH(t->arena, &regions, p);
    }
    out->nregions = regions.n;
    out->regions = regions.at;
    if (row->regions >= 0 && out->nregions != (uint32_t)row->regions)
        txt_fail(&begin, "`%s` has %d regions, not %u", row->name, row->regions, out->nregions);
}
