// SPDX-License-Identifier: Apache-2.0
// text_type.c — types: tensors by far the most, so each spelling is read once and then looked up.
#include "read/text.h"

#include <stdio.h>

#include "base/num.h"

static TypeId type_other(TextRead *p, Buf *text, int dtype) {
    return hlo_type_intern(
        p->h, &(HloType){.kind = HT_OTHER, .dtype = (uint8_t)dtype, .text = buf_cstr(text)});
}

TypeId text_type_scalar(TextRead *p, int dtype) {
    return hlo_type_intern(p->h, &(HloType){.kind = HT_OTHER,
                                            .dtype = (uint8_t)dtype,
                                            .text = dtype_row(dtype)->name});
}

// --- quantised elements --------------------------------------------------------------------------

// Numbers are written anew in one form, so that equal types have equal text.
static void quant_number(TextRead *p, Buf *out) {
    double v;
    text_space(p);
    const char *after = num_parse_f64(p->at, p->end, &v);
    if (after == p->at)
        text_expected(p, "a scale");
    char s[NUM_TEXT_BYTES];
    num_print_exact(s, v);
    buf_puts(out, s);
    p->at = after;
}

static void quant_scale(TextRead *p, Buf *out) {
    quant_number(p, out);
    if (!text_eat(p, ':'))
        return;
    int64_t zero_point = text_int(p, "a zero point");
    if (zero_point)
        buf_printf(out, ":%lld", (long long)zero_point);
}

// i8 or u8, optionally <min:max>; the dtype that holds it.
static int quant_storage(TextRead *p, Buf *out) {
    const char *at = p->at;
    Span name = text_ident(p, "a storage type");
    char row_name[8];
    bool is_u = *name.s == 'u';
    if (name.n > 1 && is_u && name.s[1] == 'i') // ui8 is another way to write u8
        name.s++, name.n--;
    if (name.n > 4)
        name.n = 0;
    int n = snprintf(row_name, sizeof row_name, "%s%.*s", is_u ? "ui" : "",
                     (int)(name.n ? name.n - is_u : 0), name.s + is_u);
    int dtype = dtype_parse(row_name, (size_t)n);
    if (dtype < 0 || !dtype_is_int(dtype))
        text_fail(p, at, OTRN_PARSE, "a quantised type needs an integer storage type");
    buf_puts(out, is_u ? "u" : "");
    buf_put(out, name.s + is_u, name.n - is_u);
    if (text_eat(p, '<')) {
        int64_t low = text_int(p, "the smallest storage value");
        text_need(p, ':');
        int64_t high = text_int(p, "the largest storage value");
        text_need(p, '>');
        int bits = dtype_row(dtype)->bits;
        int64_t type_low = is_u ? 0 : (int64_t)-((uint64_t)1 << (bits - 1));
        int64_t type_high = is_u ? (int64_t)(((uint64_t)1 << (bits - 1)) * 2 - 1)
                                 : (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
        if (low != type_low || high != type_high)
            buf_printf(out, "<%lld:%lld>", (long long)low, (long long)high);
    }
    return dtype;
}

// {0:2, 1:4}: dimensions and the sizes of their blocks, behind "{".
static void quant_blocks(TextRead *p, Buf *out) {
    const char *before = ":{";
    do {
        long long dim = text_int(p, "a quantised dimension");
        text_need(p, ':');
        buf_printf(out, "%s%lld:%lld", before, dim, (long long)text_int(p, "the size of a block"));
        before = ", ";
    } while (text_eat(p, ','));
    text_need(p, '}');
    buf_puts(out, "}");
}

// {0.1:-30, 0.5}, or lists in a list, one level for each dimension of the tensor; behind "{".
static void quant_list(TextRead *p, Buf *out) {
    text_deeper(p);
    buf_puts(out, "{");
    do {
        if (text_eat(p, '{'))
            quant_list(p, out);
        else
            quant_scale(p, out);
    } while (text_eat(p, ',') && (buf_puts(out, ", "), true));
    text_need(p, '}');
    buf_puts(out, "}");
    p->depth--;
}

// !quant.uniform<i8:f32, 0.1:-30>, <i8:f32:0, {0.1:-30, 0.5}> or <i8:f32:{0:1, 1:2}, {{0.1, 0.2}, {0.3, 0.4}}>, behind
// "!quant.uniform".
static int quant_uniform(TextRead *p, Buf *out) {
    buf_puts(out, "!quant.uniform<");
    text_need(p, '<');
    int dtype = quant_storage(p, out);
    text_need(p, ':');
    Span expressed = text_ident(p, "an expressed type");
    buf_printf(out, ":%.*s", (int)expressed.n, expressed.s);
    if (text_eat(p, ':')) {
        if (text_eat(p, '{'))
            quant_blocks(p, out);
        else
            buf_printf(out, ":%lld", (long long)text_int(p, "the quantised dimension"));
    }
    text_need(p, ',');
    buf_puts(out, ", ");
    if (text_eat(p, '{'))
        quant_list(p, out);
    else
        quant_scale(p, out);
    text_need(p, '>');
    buf_puts(out, ">");
    return dtype;
}

// --- elements and tensors ------------------------------------------------------------------------

static int element_complex(TextRead *p, const char *at) {
    text_need(p, '<');
    Span part = text_ident(p, "f32 or f64");
    text_need(p, '>');
    if (span_is(part, "f32"))
        return DT_C64;
    if (span_is(part, "f64"))
        return DT_C128;
    text_fail(p, at, OTRN_UNSUPPORTED, "complex numbers of %.*s", (int)part.n, part.s);
}

static int element_named(TextRead *p) {
    const char *at = p->at;
    Span name = text_ident(p, "an element type");
    if (span_is(name, "complex"))
        return element_complex(p, at);
    int dtype = dtype_parse(name.s, name.n);
    if (dtype < 0 || dtype == DT_INVALID)
        text_fail(p, at, OTRN_UNSUPPORTED, "the element type '%.*s' is not known", (int)name.n,
                  name.s);
    return dtype;
}

static int element(TextRead *p, Buf *quant) {
    text_space(p);
    const char *back = text_alias_enter(p), *at = p->at;
    int dtype;
    if (text_peek(p) != '!') {
        dtype = element_named(p);
    } else {
        p->at++;
        Span name = text_suffix_id(p, "an element type");
        if (!span_is(name, "quant.uniform"))
            text_fail(p, at, OTRN_UNSUPPORTED, "the element type '!%.*s' is not known", (int)name.n,
                      name.s);
        dtype = quant_uniform(p, quant);
    }
    text_alias_leave(p, back);
    return dtype;
}

// Dimensions are read digit by digit: 0x17 here is two of them.
static int dimensions(TextRead *p, int64_t dims[OTRN_MAX_RANK]) {
    int rank = 0;
    for (;; p->at++) {
        char c = p->at < p->end ? *p->at : 0;
        if (c == '*')
            text_fail(p, p->at, OTRN_UNSUPPORTED, "unranked tensors");
        if (c != '?' && !text_is_digit(c))
            return rank;
        if (rank == OTRN_MAX_RANK)
            text_fail(p, p->at, OTRN_CAPACITY, "more than OTRN_MAX_RANK (%d) dimensions",
                      OTRN_MAX_RANK);
        int64_t v = c == '?' ? HLO_DYNAMIC : 0;
        const char *at = p->at;
        if (c == '?')
            p->at++;
        for (; p->at < p->end && text_is_digit(*p->at) && c != '?'; p->at++)
            if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p->at - '0', &v))
                text_fail(p, at, OTRN_PARSE, "this dimension does not fit 64 bits");
        dims[rank++] = v;
        if (p->at == p->end || *p->at != 'x')
            text_expected(p, "'x' behind a dimension");
    }
}

// #stablehlo.bounds<3, ?> and the older #stablehlo.type_extensions<bounds = [3, ?]> in one form.
static void encoding(TextRead *p, Buf *out) {
    text_space(p);
    const char *back = text_alias_enter(p);
    text_need(p, '#');
    Span name = text_suffix_id(p, "a tensor encoding");
    bool bounds = span_is(name, "stablehlo.bounds");
    bool old = span_is(name, "stablehlo.type_extensions");
    if (bounds || old) {
        text_need(p, '<');
        if (old) {
            text_need_word(p, "bounds");
            text_need(p, '=');
            text_need(p, '[');
        }
        buf_puts(out, "#stablehlo.bounds<");
        do {
            if (text_eat(p, '?'))
                buf_puts(out, "?");
            else
                buf_printf(out, "%lld", (long long)text_int(p, "a bound"));
        } while (text_eat(p, ',') && (buf_puts(out, ", "), true));
        if (old)
            text_need(p, ']');
        text_need(p, '>');
        buf_puts(out, ">");
    } else {
        buf_printf(out, "#%.*s", (int)name.n, name.s);
        if (text_peek(p) == '<')
            text_raw_balanced(p, out);
    }
    text_alias_leave(p, back);
}

static TypeId type_tensor(TextRead *p) {
    int64_t dims[OTRN_MAX_RANK];
    text_space(p);
    HloType t = {.kind = HT_TENSOR, .dims = dims};
    t.rank = (uint8_t)dimensions(p, dims);
    Buf text = {.arena = p->arena};
    t.dtype = (uint8_t)element(p, &text);
    if (text_eat(p, ',')) {
        if (text.n)
            buf_puts(&text, ", ");
        encoding(p, &text);
    }
    text_need(p, '>');
    if (text.n)
        t.text = buf_cstr(&text);
    return hlo_type_intern(p->h, &t);
}

// A tensor whose text holds no inner bracket is found by that text.
static TypeId type_tensor_cached(TextRead *p, const char *at) {
    const char *s = p->at;
    while (s < p->end && *s != '>' && *s != '<' && *s != '\n')
        s++;
    bool simple = s < p->end && *s == '>';
    Span text = {at, (size_t)(s - at)};
    TextName *known = simple ? text_map_find(&p->typetexts, text) : NULL;
    if (known) {
        p->at = s + 1;
        return known->a;
    }
    TypeId t = type_tensor(p);
    if (simple && p->at == s + 1)
        text_map_at(p->arena, &p->typetexts, text)->a = t;
    return t;
}

// --- the rest ------------------------------------------------------------------------------------

static TypeId type_tuple(TextRead *p) {
    uint32_t base = p->types.n;
    text_need(p, '<');
    if (text_peek(p) != '>')
        text_types(p);
    text_need(p, '>');
    TypeId t = hlo_type_intern(p->h, &(HloType){.kind = HT_TUPLE,
                                                .members = p->types.at + base,
                                                .nmembers = p->types.n - base});
    p->types.n = base;
    return t;
}

static TypeId type_func(TextRead *p) {
    uint32_t base = p->types.n, nin, nout;
    text_type_function(p, &nin, &nout);
    TypeId t = hlo_type_intern(p->h, &(HloType){.kind = HT_FUNC,
                                                .members = p->types.at + base,
                                                .nmembers = nin + nout,
                                                .ninputs = nin});
    p->types.n = base;
    return t;
}

static TypeId type_dialect(TextRead *p) {
    if (text_at_alias(p))
        return text_alias_type(p);
    const char *at = p->at++;
    Span name = text_suffix_id(p, "a type name");
    if (span_is(name, "stablehlo.token") || span_is(name, "mhlo.token"))
        return hlo_type_intern(p->h, &(HloType){.kind = HT_TOKEN, .dtype = DT_TOKEN});
    Buf text = {.arena = p->arena};
    if (span_is(name, "quant.uniform")) {
        int dtype = quant_uniform(p, &text);
        return type_other(p, &text, dtype);
    }
    buf_put(&text, at, (size_t)(p->at - at));
    if (p->at < p->end && *p->at == '<')
        text_raw_balanced(p, &text);
    return type_other(p, &text, DT_INVALID);
}

// Scalars the type table does not have: integers of any width, f80, f128.
static bool scalar_is_odd(Span w) {
    size_t head = w.n && (*w.s == 's' || *w.s == 'u');
    if (span_is(w, "f80") || span_is(w, "f128"))
        return true;
    if (w.n < head + 2 || w.n > head + 6 || w.s[head] != 'i' || w.s[head + 1] == '0')
        return false;
    for (size_t i = head + 1; i < w.n; i++)
        if (!text_is_digit(w.s[i]))
            return false;
    return true;
}

static bool type_word_is_carried(Span w) {
    return span_is(w, "memref") || span_is(w, "vector") || span_is(w, "none") ||
           (scalar_is_odd(w) && dtype_parse(w.s, w.n) <= DT_INVALID);
}

bool text_type_is_odd(TextRead *p, TypeId type) {
    const HloType *t = hlo_type(p->h, type);
    return t->kind == HT_OTHER && t->dtype == DT_INVALID &&
           scalar_is_odd((Span){t->text, strlen(t->text)});
}

// complex<f16>, tensor<*xf32>: types of values no op computes with.
static bool type_is_carried(TextRead *p, Span w) {
    const char *s = p->at;
    if (s == p->end || *s++ != '<')
        return false;
    while (s < p->end && *s == ' ')
        s++;
    size_t left = (size_t)(p->end - s);
    if (span_is(w, "tensor"))
        return left && *s == '*';
    return span_is(w, "complex") && left > 3 && strncmp(s, "f32", 3) && strncmp(s, "f64", 3);
}

static TypeId type_carried(TextRead *p, Span w) {
    Buf text = {.arena = p->arena};
    buf_put(&text, w.s, w.n);
    if (p->at < p->end && *p->at == '<')
        text_raw_balanced(p, &text);
    return type_other(p, &text, DT_INVALID);
}

static TypeId type_word(TextRead *p) {
    const char *at = p->at;
    Span w = text_ident(p, "a type");
    if (type_word_is_carried(w) || type_is_carried(p, w))
        return type_carried(p, w);
    if (span_is(w, "tensor")) {
        text_need(p, '<');
        return type_tensor_cached(p, at);
    }
    if (span_is(w, "tuple"))
        return type_tuple(p);
    if (span_is(w, "complex"))
        return text_type_scalar(p, element_complex(p, at));
    int dtype = dtype_parse(w.s, w.n);
    if (dtype <= DT_INVALID)
        text_fail(p, at, OTRN_PARSE, "expected a type, found '%.*s'", (int)(w.n < 40 ? w.n : 40),
                  w.s);
    return text_type_scalar(p, dtype);
}

TypeId text_type(TextRead *p) {
    text_deeper(p);
    p->weight++;
    char c = text_peek(p);
    TypeId t = c == '!' ? type_dialect(p) : c == '(' ? type_func(p) : type_word(p);
    p->depth--;
    return t;
}

bool text_at_type(TextRead *p) {
    char c = text_peek(p);
    if (c == '!' || c == '(')
        return true;
    if (!text_at_ident(p))
        return false;
    const char *save = p->at;
    Span w = text_ident(p, "");
    p->at = save;
    return span_is(w, "tensor") || span_is(w, "tuple") || span_is(w, "complex") ||
           type_word_is_carried(w) || dtype_parse(w.s, w.n) > DT_INVALID;
}

uint32_t text_types(TextRead *p) {
    uint32_t n = 0;
    do {
        TypeId t = text_type(p);
        VEC_PUSH(p->arena, &p->types, t);
        n++;
    } while (text_eat(p, ','));
    return n;
}

void text_type_results(TextRead *p, uint32_t *nresults) {
    if (text_eat(p, '(')) {
        *nresults = text_peek(p) == ')' ? 0 : text_types(p);
        text_need(p, ')');
    } else {
        TypeId t = text_type(p);
        VEC_PUSH(p->arena, &p->types, t);
        *nresults = 1;
    }
}

void text_type_function(TextRead *p, uint32_t *ninputs, uint32_t *nresults) {
    text_need(p, '(');
    *ninputs = text_peek(p) == ')' ? 0 : text_types(p);
    text_need(p, ')');
    if (!text_eat_arrow(p))
        text_expected(p, "'->'");
    text_type_results(p, nresults);
}
