// SPDX-License-Identifier: Apache-2.0
// print_attr.c — types, attributes and constants as MLIR text.
//
// Everything reads back to the same bits: floats are printed with as many digits as they need, or
// as their bit pattern when digits cannot say it (NaN, infinities).
#include "hlo/print.h"

#include <math.h>

#include "base/num.h"

// --- names and strings ---------------------------------------------------------------------------

static bool is_plain(const char *s) { // [A-Za-z_][A-Za-z0-9_$.]*
    for (const char *p = s; *p; p++) {
        bool alpha = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
        bool later = (*p >= '0' && *p <= '9') || *p == '$' || *p == '.';
        if (!alpha && !(p > s && later))
            return false;
    }
    return *s != 0;
}

void print_string(Buf *out, const char *s, size_t n) {
    static const char hex[] = "0123456789ABCDEF";
    buf_put(out, "\"", 1);
    for (size_t i = 0; i < n;) {
        size_t run = i;
        while (run < n && (uint8_t)s[run] >= 0x20 && (uint8_t)s[run] < 0x7f && s[run] != '"' &&
               s[run] != '\\')
            run++;
        buf_put(out, s + i, run - i);
        if (run < n) {
            uint8_t c = (uint8_t)s[run++];
            buf_put(out, (char[]){'\\', hex[c >> 4], hex[c & 15]}, 3);
        }
        i = run;
    }
    buf_put(out, "\"", 1);
}

// key of a dictionary
static void print_name(Buf *out, const char *s) {
    if (is_plain(s))
        buf_puts(out, s);
    else
        print_string(out, s, strlen(s));
}

void print_symbol(Buf *out, const char *s) {
    buf_put(out, "@", 1);
    const char *nested = strstr(s, "::@");
    if (nested && nested > s && nested[3]) // a path: its parts were plain when it was read
        buf_puts(out, s);
    else
        print_name(out, s);
}

// --- types ---------------------------------------------------------------------------------------

static void type_list(const Hlo *h, const TypeId *types, uint32_t n, Buf *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            buf_put(out, ", ", 2);
        hlo_print_type(h, types[i], out);
    }
}

static void type_tensor(const HloType *t, Buf *out) {
    buf_puts(out, "tensor<");
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] == HLO_DYNAMIC)
            buf_puts(out, "?x");
        else
            buf_printf(out, "%lldx", (long long)t->dims[i]);
    }
    bool quantised = t->text && t->text[0] == '!';
    buf_puts(out, quantised ? t->text : dtype_row(t->dtype)->name);
    if (t->text && !quantised) {
        buf_puts(out, ", ");
        buf_puts(out, t->text);
    }
    buf_put(out, ">", 1);
}

void hlo_print_type(const Hlo *h, TypeId id, Buf *out) {
    const HloType *t = hlo_type(h, id);
    switch (t->kind) {
    case HT_TENSOR:
        type_tensor(t, out);
        break;
    case HT_TOKEN:
        buf_puts(out, "!stablehlo.token");
        break;
    case HT_TUPLE:
        buf_puts(out, "tuple<");
        type_list(h, t->members, t->nmembers, out);
        buf_puts(out, ">");
        break;
    case HT_FUNC: {
        uint32_t nout = t->nmembers - t->ninputs;
        bool parens = nout != 1 || hlo_type(h, t->members[t->ninputs])->kind == HT_FUNC;
        buf_puts(out, "(");
        type_list(h, t->members, t->ninputs, out);
        buf_puts(out, parens ? ") -> (" : ") -> ");
        type_list(h, t->members + t->ninputs, nout, out);
        buf_puts(out, parens ? ")" : "");
        break;
    }
    default:
        buf_puts(out, t->text ? t->text : "none");
    }
}

// --- numbers -------------------------------------------------------------------------------------

// The element at p; decimal when that reads back to the same bytes, else its bits.
static void float_element(Buf *out, int dtype, const uint8_t *p) {
    double v = dtype_to_f64(dtype, p), back;
    size_t bytes = dtype_bytes(dtype);
    char text[NUM_TEXT_BYTES];
    uint8_t again[8] = {0};
    static const int digits[] = {7, 9, 16, 17};
    for (int i = 0; isfinite(v) && i < 4; i++) {
        int n = num_print_f64(text, v, digits[i]);
        num_parse_f64(text, text + n, &back);
        dtype_from_f64(dtype, again, back);
        if (!memcmp(again, p, bytes)) {
            buf_puts(out, text);
            return;
        }
    }
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; i++)
        bits |= (uint64_t)p[i] << 8 * i;
    buf_printf(out, "0x%0*llX", (dtype_row(dtype)->bits + 3) / 4, (unsigned long long)bits);
}

void print_float(Buf *out, int dtype, double v) {
    uint8_t bytes[8] = {0};
    dtype_from_f64(dtype, bytes, v);
    float_element(out, dtype, bytes);
}

void print_ints(Buf *out, const int64_t *v, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        buf_printf(out, "%s%lld", i ? ", " : "", (long long)v[i]);
}

// --- constants -----------------------------------------------------------------------------------

static void element(Buf *out, int dtype, const uint8_t *p) {
    int part = dtype == DT_C64 ? DT_F32 : DT_F64;
    switch (dtype_row(dtype)->cls) {
    case DC_COMPLEX:
        buf_puts(out, "(");
        float_element(out, part, p);
        buf_puts(out, ",");
        float_element(out, part, p + dtype_bytes(part));
        buf_puts(out, ")");
        break;
    case DC_FLOAT:
        float_element(out, dtype, p);
        break;
    case DC_BOOL:
        buf_puts(out, *p ? "true" : "false");
        break;
    case DC_UINT:
        buf_printf(out, "%llu", (unsigned long long)dtype_to_i64(dtype, p));
        break;
    default:
        buf_printf(out, "%lld", (long long)dtype_to_i64(dtype, p));
    }
}

static const uint8_t *nested(Buf *out, const HloType *t, int depth, const uint8_t *p) {
    if (depth == t->rank) {
        element(out, t->dtype, p);
        return p + dtype_bytes(t->dtype);
    }
    buf_puts(out, "[");
    for (int64_t i = 0; i < t->dims[depth]; i++) {
        if (i)
            buf_puts(out, ", ");
        p = nested(out, t, depth + 1, p);
    }
    buf_puts(out, "]");
    return p;
}

static void blob(Buf *out, const uint8_t *p, size_t n) {
    static const char hex[] = "0123456789ABCDEF";
    buf_puts(out, "\"0x");
    buf_reserve(out, 2 * n);
    for (size_t i = 0; i < n; i++) {
        out->at[out->n++] = (uint8_t)hex[p[i] >> 4];
        out->at[out->n++] = (uint8_t)hex[p[i] & 15];
    }
    buf_puts(out, "\"");
}

static void tensor(const Hlo *h, const HloAttr *a, Buf *out) {
    const HloType *t = hlo_type(h, a->type);
    buf_puts(out, "dense<");
    if (t->elems && hlo_tensor_is_splat(h, a))
        element(out, t->dtype, a->data);
    else if (t->elems > PRINT_LIST_ELEMS && t->dtype != DT_I1 && dtype_row(t->dtype)->bits >= 8)
        blob(out, a->data, a->n);
    else if (t->elems)
        nested(out, t, 0, a->data);
    buf_puts(out, "> : ");
    hlo_print_type(h, a->type, out);
}

// --- any attribute -------------------------------------------------------------------------------

static void ints(const Hlo *h, const HloAttr *a, Buf *out) {
    buf_puts(out, "array<");
    bool bools = a->type && hlo_type(h, a->type)->dtype == DT_I1;
    if (a->type)
        hlo_print_type(h, a->type, out);
    else
        buf_puts(out, "i64");
    buf_puts(out, a->n ? ": " : "");
    if (!bools)
        print_ints(out, a->ints, a->n);
    for (uint32_t i = 0; bools && i < a->n; i++)
        buf_printf(out, "%s%s", i ? ", " : "", a->ints[i] ? "true" : "false");
    buf_puts(out, ">");
}

static void ints2(const HloAttr *a, Buf *out) {
    uint32_t rows = a->cols ? a->n / a->cols : 0;
    buf_puts(out, "dense<");
    if (a->n) {
        buf_puts(out, "[");
        for (uint32_t i = 0; i < rows; i++) {
            buf_puts(out, i ? ", [" : "[");
            print_ints(out, a->ints + i * a->cols, a->cols);
            buf_puts(out, "]");
        }
        buf_puts(out, "]");
    }
    buf_printf(out, "> : tensor<%ux%uxi64>", rows, a->cols);
}

static void list(const Hlo *h, const HloAttr *a, Buf *out) {
    buf_puts(out, "[");
    for (uint32_t i = 0; i < a->n; i++) {
        if (i)
            buf_puts(out, ", ");
        print_attr(h, &a->list[i], out);
    }
    buf_puts(out, "]");
}

static void typed(const Hlo *h, TypeId type, const char *dflt, Buf *out) {
    buf_puts(out, " : ");
    if (type)
        hlo_print_type(h, type, out);
    else
        buf_puts(out, dflt);
}

void print_attr(const Hlo *h, const HloAttr *a, Buf *out) {
    switch ((HloAttrKind)a->kind) {
    case HA_INT:
    case HA_ENUM:
        if (a->type && dtype_row(hlo_type(h, a->type)->dtype)->cls == DC_UINT)
            buf_printf(out, "%llu", (unsigned long long)a->i);
        else
            buf_printf(out, "%lld", (long long)a->i);
        typed(h, a->type, "i64", out);
        break;
    case HA_BOOL:
        buf_puts(out, a->i ? "true" : "false");
        break;
    case HA_FLOAT: {
        int dtype = a->type ? hlo_type(h, a->type)->dtype : DT_F64;
        print_float(out, dtype_is_float(dtype) ? dtype : DT_F64, a->f);
        typed(h, a->type, "f64", out);
        break;
    }
    case HA_STR:
        print_string(out, a->s, a->n);
        break;
    case HA_SYM:
        print_symbol(out, a->s);
        break;
    case HA_INTS:
        ints(h, a, out);
        break;
    case HA_INTS2:
        ints2(a, out);
        break;
    case HA_TYPE:
        hlo_print_type(h, a->type, out);
        break;
    case HA_TENSOR:
        tensor(h, a, out);
        break;
    case HA_LIST:
        list(h, a, out);
        break;
    case HA_DICT:
        buf_puts(out, "{");
        print_named(h, a->dict, a->n, out);
        buf_puts(out, "}");
        break;
    case HA_OPAQUE:
        buf_puts(out, a->s);
        break;
    default:
        buf_puts(out, "unit");
    }
}

void print_named(const Hlo *h, const HloNamed *named, uint32_t n, Buf *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            buf_puts(out, ", ");
        print_name(out, named[i].name);
        if (named[i].value.kind == HA_UNIT)
            continue;
        buf_puts(out, " = ");
        print_attr(h, &named[i].value, out);
    }
}
