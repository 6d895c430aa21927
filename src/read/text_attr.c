// SPDX-License-Identifier: Apache-2.0
// text_attr.c — attribute literals as they stand in dictionaries.
#include "read/text.h"

#include <stdlib.h>

#include "base/num.h"

// --- numbers -------------------------------------------------------------------------------------

// A float literal has a point; everything else that begins with a digit is an integer.
static bool at_float(const TextRead *p) {
    const char *s = p->at;
    s += s < p->end && *s == '-';
    while (s < p->end && text_is_digit(*s))
        s++;
    return s < p->end && *s == '.';
}

static TypeId literal_type(TextRead *p, int *dtype) {
    *dtype = DT_INVALID;
    if (!text_eat(p, ':'))
        return 0;
    TypeId t = text_type(p);
    *dtype = hlo_type(p->h, t)->kind == HT_OTHER ? hlo_type(p->h, t)->dtype : DT_INVALID;
    return t;
}

static HloAttr number_float(TextRead *p) {
    HloAttr a = {.kind = HA_FLOAT};
    p->at = num_parse_f64(p->at, p->end, &a.f);
    const char *at = p->at;
    int dtype;
    a.type = literal_type(p, &dtype);
    if (a.type && !dtype_is_float(dtype))
        text_fail(p, at, OTRN_PARSE, "a number with a point needs a float type");
    if (a.type) { // a literal has the precision of its type
        uint8_t bytes[8];
        dtype_from_f64(dtype, bytes, a.f);
        a.f = dtype_to_f64(dtype, bytes);
    }
    if (dtype == DT_F64)
        a.type = 0;
    return a;
}

// The bits of a number whose type the type table does not have: 0x7d : i7.
static HloAttr number_odd(TextRead *p, TypeId type, uint64_t v) {
    const char *name = hlo_type(p->h, type)->text, *digits = strchr(name, 'i');
    long bits = digits ? strtol(digits + 1, NULL, 10) : 64;
    if (bits < 64)
        v &= ((uint64_t)1 << bits) - 1;
    Buf text = {.arena = p->arena};
    buf_printf(&text, "0x%llx : %s", (unsigned long long)v, name);
    return (HloAttr){.kind = HA_OPAQUE, .n = (uint32_t)text.n, .s = buf_cstr(&text)};
}

// More than 64 bits of hexadecimal digits are carried as they are.
static bool at_wide(const TextRead *p) {
    const char *s = p->at;
    if (p->end - s < 3 || s[0] != '0' || s[1] != 'x')
        return false;
    for (s += 2; s < p->end && text_hex_digit(*s) >= 0; s++)
        ;
    return s - p->at > 2 + 16;
}

static HloAttr number_wide(TextRead *p) {
    Buf text = {.arena = p->arena};
    buf_puts(&text, "0x");
    for (p->at += 2; p->at < p->end && text_hex_digit(*p->at) >= 0; p->at++)
        buf_put(&text, p->at, 1);
    const char *at = p->at;
    text_need(p, ':');
    TypeId type = text_type(p);
    const HloType *t = hlo_type(p->h, type);
    if (t->kind != HT_OTHER || t->dtype != DT_INVALID)
        text_fail(p, at, OTRN_PARSE, "this number does not fit 64 bits");
    buf_printf(&text, " : %s", t->text);
    return (HloAttr){.kind = HA_OPAQUE, .n = (uint32_t)text.n, .s = buf_cstr(&text)};
}

static HloAttr number_int(TextRead *p) {
    const char *at = p->at;
    bool neg = *at == '-';
    int64_t v = text_int(p, "a number");
    HloAttr a = {.kind = HA_INT, .i = v};
    int dtype;
    a.type = literal_type(p, &dtype);
    if (!a.type)
        return a;
    if (dtype_is_float(dtype)) { // a hexadecimal integer of a float type is its bit pattern
        uint8_t bytes[8];
        for (int i = 0; i < 8; i++)
            bytes[i] = (uint8_t)((uint64_t)v >> 8 * i);
        if (neg || (at[1] | 32) != 'x')
            text_fail(p, at, OTRN_PARSE, "a float literal needs a point, or 0x and its bits");
        return (HloAttr){.kind = HA_FLOAT,
                         .type = dtype == DT_F64 ? 0 : a.type,
                         .f = dtype_to_f64(dtype, bytes)};
    }
    if (dtype == DT_I1)
        return (HloAttr){.kind = HA_BOOL, .i = v != 0};
    if (text_type_is_odd(p, a.type))
        return number_odd(p, a.type, (uint64_t)v);
    if (!dtype_is_int(dtype))
        text_fail(p, at, OTRN_PARSE, "an integer literal needs an integer type");
    int bits = dtype_row(dtype)->bits;
    bool is_unsigned = dtype_row(dtype)->cls == DC_UINT;
    uint64_t most = ~(uint64_t)0 >> (64 - bits), magnitude = neg ? 0 - (uint64_t)v : (uint64_t)v;
    if (neg)
        most = is_unsigned ? 0 : most / 2 + 1;
    if (magnitude > most)
        text_fail(p, at, OTRN_PARSE, "%s%llu does not fit %s", neg ? "-" : "",
                  (unsigned long long)magnitude, dtype_row(dtype)->name);
    if (dtype == DT_I64)
        a.type = 0;
    return a;
}

static HloAttr number(TextRead *p) {
    if (p->at < p->end && at_float(p))
        return number_float(p);
    if (at_wide(p))
        return number_wide(p);
    return number_int(p);
}

// --- lists and dictionaries ----------------------------------------------------------------------

HloAttr text_list(TextRead *p, HloAttr (*item)(TextRead *p)) {
    uint32_t base = p->attrs.n;
    text_need(p, '[');
    if (text_peek(p) != ']') {
        do {
            HloAttr one = item(p);
            VEC_PUSH(p->arena, &p->attrs, one);
        } while (text_eat(p, ','));
    }
    text_need(p, ']');
    HloAttr a = {.kind = HA_LIST, .n = p->attrs.n - base};
    a.list = arena_dup(p->arena, p->attrs.at + base, a.n * sizeof *a.list);
    p->attrs.n = base;
    return a;
}

const char *text_attr_name(TextRead *p) {
    if (text_peek(p) == '"')
        return text_name_string(p);
    Span name = text_ident(p, "an attribute name");
    return arena_strndup(p->arena, name.s, name.n);
}

static int named_order(const void *a, const void *b) {
    return strcmp(((const HloNamed *)a)->name, ((const HloNamed *)b)->name);
}

HloNamed *text_named_take(TextRead *p, uint32_t base, uint32_t *n) {
    *n = p->named.n - base;
    HloNamed *out = arena_dup(p->arena, p->named.at + base, *n * sizeof *out);
    p->named.n = base;
    if (*n > 1)
        qsort(out, *n, sizeof *out, named_order);
    for (uint32_t i = 1; i < *n; i++)
        if (!strcmp(out[i - 1].name, out[i].name))
            text_fail(p, p->at, OTRN_PARSE, "the attribute '%s' is given twice", out[i].name);
    return *n ? out : NULL;
}

HloNamed *text_dict(TextRead *p, uint32_t *n) {
    uint32_t base = p->named.n;
    text_need(p, '{');
    if (text_peek(p) != '}') {
        do {
            HloNamed e = {.name = text_attr_name(p), .value = {.kind = HA_UNIT}};
            if (text_eat(p, '='))
                e.value = text_attr(p);
            VEC_PUSH(p->arena, &p->named, e);
        } while (text_eat(p, ','));
    }
    text_need(p, '}');
    return text_named_take(p, base, n);
}

uint32_t text_int_list(TextRead *p) {
    uint32_t n = 0;
    text_need(p, '[');
    if (text_peek(p) != ']') {
        do {
            int64_t v = text_int(p, "an integer");
            VEC_PUSH(p->arena, &p->ints, v);
            n++;
        } while (text_eat(p, ','));
    }
    text_need(p, ']');
    return n;
}

HloAttr text_ints_take(TextRead *p, uint32_t base) {
    HloAttr a = {.kind = HA_INTS, .n = p->ints.n - base};
    a.ints = hlo_ints_dup(p->h, p->ints.at + base, a.n);
    p->ints.n = base;
    return a;
}

// --- any attribute -------------------------------------------------------------------------------

static HloAttr opaque(TextRead *p, const char *from) {
    Buf text = {.arena = p->arena};
    buf_put(&text, from, (size_t)(p->at - from));
    if (p->at < p->end && (*p->at == '<' || *p->at == '(' || *p->at == '['))
        text_raw_balanced(p, &text);
    return (HloAttr){.kind = HA_OPAQUE, .n = (uint32_t)text.n, .s = buf_cstr(&text)};
}

static HloAttr word(TextRead *p) {
    if (text_eat_word(p, "true"))
        return (HloAttr){.kind = HA_BOOL, .i = 1};
    if (text_eat_word(p, "false"))
        return (HloAttr){.kind = HA_BOOL, .i = 0};
    if (text_eat_word(p, "unit"))
        return (HloAttr){.kind = HA_UNIT};
    if (text_at_word(p, "dense") || text_at_word(p, "dense_resource"))
        return text_dense(p);
    if (text_at_word(p, "array"))
        return text_array(p);
    if (text_at_type(p))
        return (HloAttr){.kind = HA_TYPE, .type = text_type(p)};
    const char *from = p->at;
    Span w = text_ident(p, "an attribute");
    static const char *const carried[] = {"loc", "affine_map", "affine_set", "strided", "distinct"};
    for (size_t i = 0; i < sizeof carried / sizeof *carried; i++)
        if (span_is(w, carried[i]))
            return opaque(p, from);
    if (span_is(w, "sparse"))
        text_fail(p, from, OTRN_UNSUPPORTED, "sparse<…> constants");
    p->at = from;
    text_expected(p, "an attribute");
}

static HloAttr any(TextRead *p, char c) {
    HloAttr a = {0};
    if (c == '"') {
        a.kind = HA_STR;
        a.s = text_string(p, &a.n);
        if (text_eat(p, ':'))
            text_type(p); // a string's type says nothing here
        return a;
    }
    if (c == '[')
        return text_list(p, text_attr);
    if (c == '{') {
        a.kind = HA_DICT;
        a.dict = text_dict(p, &a.n);
        return a;
    }
    if (c == '@') {
        a.kind = HA_SYM;
        a.s = text_symbol(p);
        a.n = (uint32_t)strlen(a.s);
        return a;
    }
    if (c == '#') {
        if (text_at_alias(p))
            return text_alias_attr(p);
        const char *from = p->at++;
        Span name = text_suffix_id(p, "an attribute name");
        a = opaque(p, from);
        if (span_is(name, "complex.number") && text_eat(p, ':')) { // its type stays with it
            Buf text = {.arena = p->arena};
            buf_printf(&text, "%s : ", a.s);
            hlo_print_type(p->h, text_type(p), &text);
            a.s = buf_cstr(&text), a.n = (uint32_t)text.n;
        }
        return a;
    }
    if (c == '!' || c == '(')
        return (HloAttr){.kind = HA_TYPE, .type = text_type(p)};
    if (c == '-' || text_is_digit(c))
        return number(p);
    return word(p);
}

HloAttr text_attr(TextRead *p) {
    text_deeper(p);
    p->weight++;
    HloAttr a = any(p, text_peek(p));
    p->depth--;
    return a;
}
