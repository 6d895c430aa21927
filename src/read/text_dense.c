// SPDX-License-Identifier: Apache-2.0
// text_dense.c — dense<…>, dense_resource<…> and array<…>: text to elements.
//
// The type stands behind the elements, so their end is found first (no bracket of the kind stands
// between), the type read, and then the elements go straight into their final place. What a blob or
// a list holds is brought to the one form of HloAttr: row-major host elements, or a single one when
// all are the same.
#include "read/text.h"

#include "base/num.h"

typedef struct Dense {
    TextRead *p;
    const char *open; // for messages about the whole
    const char *s, *end;
    const HloType *type;
    int dtype, part; // part: of a complex element
    size_t bytes;    // one element
    uint8_t *out;
} Dense;

_Noreturn static void dense_fail(Dense *d, const char *what) {
    text_fail(d->p, d->s < d->end ? d->s : d->open, OTRN_PARSE, "%s", what);
}

static void skip(Dense *d) {
    const char *s = d->s;
    while (s < d->end && (*s == ' ' || *s == '\n' || *s == '\t' || *s == '\r'))
        s++;
    d->s = s;
    if (s < d->end && *s == '/') { // a comment inside the list
        const char *save = d->p->at;
        d->p->at = s;
        text_space(d->p);
        if (d->p->at > d->end)
            dense_fail(d, "the list of elements ends inside a comment");
        d->s = d->p->at;
        d->p->at = save;
    }
}

// --- one element ---------------------------------------------------------------------------------

static void store_int(Dense *d, int dtype, uint8_t *out, uint64_t magnitude, bool neg) {
    int bits = dtype_row(dtype)->bits;
    uint64_t most = dtype_row(dtype)->cls == DC_UINT || !neg
                        ? (bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1)
                        : (uint64_t)1 << (bits - 1);
    if (magnitude > most || (neg && magnitude && dtype_row(dtype)->cls == DC_UINT))
        dense_fail(d, "this number does not fit the element type");
    dtype_from_i64(dtype, out, (int64_t)(neg ? 0 - magnitude : magnitude));
}

static void store_float(int dtype, uint8_t *out, double v) {
    if (dtype == DT_F32) {
        float f = (float)v;
        memcpy(out, &f, sizeof f);
    } else {
        dtype_from_f64(dtype, out, v);
    }
}

// 0x…: the bits of a float, the value of an integer.
static void scalar_hex(Dense *d, int dtype, uint8_t *out, bool neg) {
    uint64_t v = 0;
    const char *s = d->s + 2;
    for (; s < d->end && text_hex_digit(*s) >= 0; s++) {
        if (v >> 60)
            dense_fail(d, "this number does not fit the element type");
        v = v << 4 | (uint64_t)text_hex_digit(*s);
    }
    if (!dtype_is_float(dtype)) {
        store_int(d, dtype, out, v, neg);
    } else {
        int bits = dtype_row(dtype)->bits;
        if (neg || (bits < 64 && v >> bits))
            dense_fail(d, "these bits do not fit the element type");
        for (size_t i = 0; i < dtype_bytes(dtype); i++)
            out[i] = (uint8_t)(v >> 8 * i);
    }
    d->s = s;
}

static bool scalar_word(Dense *d, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(d->end - d->s) < n || memcmp(d->s, word, n))
        return false;
    d->s += n;
    return true;
}

static void scalar(Dense *d, int dtype, uint8_t *out) {
    const char *s = d->s, *end = d->end;
    bool neg = s < end && *s == '-';
    s += neg;
    if (s == end || !text_is_digit(*s)) {
        bool yes = !neg && dtype == DT_I1 && scalar_word(d, "true");
        if (!yes && (neg || dtype != DT_I1 || !scalar_word(d, "false")))
            dense_fail(d, "expected an element of the constant");
        *out = yes;
        return;
    }
    if (*s == '0' && end - s > 2 && s[1] == 'x') {
        d->s = s;
        scalar_hex(d, dtype, out, neg);
        return;
    }
    if (dtype_is_float(dtype)) {
        double v = 0;
        d->s = num_parse_f64(d->s, end, &v);
        store_float(dtype, out, v);
        return;
    }
    uint64_t v = 0;
    bool over = false;
    for (; s < end && text_is_digit(*s); s++)
        over |= __builtin_mul_overflow(v, 10u, &v) ||
                __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v);
    if (over || (s < end && *s == '.'))
        dense_fail(d, over ? "this number does not fit the element type"
                           : "a number with a point in a constant of integers");
    store_int(d, dtype, out, v, neg);
    d->s = s;
}

void text_scalar(TextRead *p, int dtype, uint8_t *out) {
    Dense d = {.p = p, .open = p->at, .s = p->at, .end = p->end};
    scalar(&d, dtype, out);
    p->at = d.s;
}

static void element(Dense *d, uint8_t *out) {
    if (!dtype_is_complex(d->dtype)) {
        scalar(d, d->dtype, out);
        return;
    }
    for (int i = 0; i < 2; i++) {
        skip(d);
        if (d->s == d->end || *d->s != "(,"[i])
            dense_fail(d, "expected a complex element: (real, imaginary)");
        d->s++;
        skip(d);
        scalar(d, d->part, out + (size_t)i * dtype_bytes(d->part));
    }
    skip(d);
    if (d->s == d->end || *d->s != ')')
        dense_fail(d, "expected ')' behind a complex element");
    d->s++;
}

// --- lists ---------------------------------------------------------------------------------------

// Elements [a, b, …] of the innermost dimension, the reader behind '['.
static uint8_t *row(Dense *d, int64_t n, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        skip(d);
        if (i) {
            if (d->s == d->end || *d->s != ',')
                dense_fail(d, "a list with fewer elements than its dimension");
            d->s++;
            skip(d);
        }
        element(d, out);
        out += d->bytes;
    }
    return out;
}

// Walks the brackets; depth counts the open ones, seen[k] the items so far in the one at level k.
static void nested(Dense *d) {
    int64_t seen[OTRN_MAX_RANK + 1] = {0};
    int rank = d->type->rank, depth = 0;
    uint8_t *out = d->out;
    do {
        skip(d);
        if (depth && d->s < d->end && *d->s == ']') {
            if (seen[depth - 1] != d->type->dims[depth - 1])
                dense_fail(d, "a list with fewer items than its dimension");
            depth--;
            d->s++;
            continue;
        }
        if (depth == rank)
            dense_fail(d, rank ? "a list with more elements than its dimension"
                               : "a list of elements for a type without dimensions");
        if (depth && seen[depth - 1]) {
            if (d->s == d->end || *d->s != ',')
                dense_fail(d, "expected ',' or ']' in the list of elements");
            d->s++;
            skip(d);
        }
        if (d->s == d->end || *d->s != '[')
            dense_fail(d, "expected '[': the type has more dimensions");
        if (depth && seen[depth - 1]++ == d->type->dims[depth - 1])
            dense_fail(d, "a list with more items than its dimension");
        d->s++;
        seen[depth++] = 0;
        if (depth == rank) {
            out = row(d, d->type->dims[depth - 1], out);
            seen[depth - 1] = d->type->dims[depth - 1];
        }
    } while (depth);
}

// --- blobs ---------------------------------------------------------------------------------------

static uint8_t *hex_decode(TextRead *p, const char *s, size_t digits, size_t *bytes) {
    if (digits % 2)
        text_fail(p, s, OTRN_PARSE, "a blob with an odd number of hex digits");
    uint8_t table[256];
    memset(table, 255, sizeof table);
    for (int i = 0; i < 256; i++)
        if (text_hex_digit((char)i) >= 0)
            table[i] = (uint8_t)text_hex_digit((char)i);
    *bytes = digits / 2;
    uint8_t *out = arena_alloc(p->arena, *bytes + 1), bad = 0;
    for (size_t i = 0; i < *bytes; i++) {
        uint8_t hi = table[(uint8_t)s[2 * i]], lo = table[(uint8_t)s[2 * i + 1]];
        bad |= hi | lo;
        out[i] = (uint8_t)(hi << 4 | (lo & 15));
    }
    if (bad > 15)
        text_fail(p, s, OTRN_PARSE, "a blob with a character that is no hex digit");
    return out;
}

// Booleans packed eight to a byte, first one lowest.
static uint8_t *bits_unpack(TextRead *p, const uint8_t *in, size_t n) {
    uint8_t *out = arena_alloc(p->arena, n);
    for (size_t i = 0; i < n; i++)
        out[i] = in[i / 8] >> (i % 8) & 1;
    return out;
}

// Host form of small elements: booleans 0 or 1, integers extended to their byte.
static void small_normalise(int dtype, uint8_t *bytes, size_t n) {
    int bits = dtype_row(dtype)->bits;
    for (size_t i = 0; bits < 8 && i < n; i++) {
        if (dtype == DT_I1)
            bytes[i] = bytes[i] != 0;
        else if (dtype_is_int(dtype))
            dtype_from_i64(dtype, bytes + i, bytes[i]);
        else
            bytes[i] &= (uint8_t)((1 << bits) - 1);
    }
}

static size_t blob_take(Dense *d, uint8_t *bytes, size_t n) {
    size_t elems = (size_t)d->type->elems, total = elems * d->bytes;
    d->out = bytes;
    if (d->dtype == DT_I1 && n == (elems + 7) / 8 && n != elems) {
        // one byte for several booleans: all ones is a splat, anything else is packed
        if (n == 1 && bytes[0] == 0xff) {
            bytes[0] = 1;
            return 1;
        }
        d->out = bits_unpack(d->p, bytes, elems);
        return elems;
    }
    if (n != total && !(n == d->bytes && elems > 1))
        text_fail(d->p, d->open, OTRN_PARSE, "a blob of %zu bytes for a type of %zu", n, total);
    small_normalise(d->dtype, bytes, n);
    return n;
}

// --- dense<…> ------------------------------------------------------------------------------------

static TypeId tensor_type(TextRead *p) {
    text_need(p, ':');
    const char *at = p->at;
    TypeId t = text_type(p);
    const HloType *ty = hlo_type(p->h, t);
    if (ty->kind != HT_TENSOR || ty->dynamic)
        text_fail(p, at, OTRN_PARSE, "a constant needs a tensor type of known shape");
    return t;
}

static Dense dense_begin(TextRead *p, const char *open, TypeId type) {
    Dense d = {.p = p, .open = open, .type = hlo_type(p->h, type)};
    d.dtype = d.type->dtype;
    d.part = d.dtype == DT_C64 ? DT_F32 : DT_F64;
    d.bytes = dtype_bytes(d.dtype);
    return d;
}

// n bytes at d->out as an attribute; one element when all are the same.
static HloAttr dense_attr(Dense *d, TypeId type, size_t n) {
    if (n > d->bytes && !memcmp(d->out, d->out + d->bytes, n - d->bytes))
        n = d->bytes;
    if (n > UINT32_MAX)
        text_fail(d->p, d->open, OTRN_CAPACITY, "a constant of 4 GB or more");
    return (HloAttr){.kind = HA_TENSOR, .type = type, .n = (uint32_t)n, .data = d->out};
}

static HloAttr dense_list(TextRead *p, const char *open) {
    // A '>' inside a comment would be found too early; the element reader then complains.
    const char *s = p->at, *end = memchr(s, '>', (size_t)(p->end - s));
    if (!end)
        text_fail(p, open, OTRN_PARSE, "this constant is never closed");
    p->at = end + 1;
    TypeId type = tensor_type(p);
    Dense d = dense_begin(p, open, type);
    d.s = s;
    d.end = end;
    skip(&d);
    if (d.s == d.end) {
        if (d.type->elems)
            dense_fail(&d, "an empty constant for a type that has elements");
        return (HloAttr){.kind = HA_TENSOR, .type = type, .data = ""};
    }
    size_t n = d.bytes;
    if (*d.s == '[') {
        // Every element takes a character and a separator, so the text bounds the memory.
        if (d.type->elems > end - s)
            text_fail(p, open, OTRN_PARSE, "fewer elements than the type's %lld",
                      (long long)d.type->elems);
        n = hlo_type_bytes(d.type);
        d.out = arena_alloc(p->arena, n);
        nested(&d);
    } else {
        d.out = arena_alloc(p->arena, n);
        element(&d, d.out);
    }
    skip(&d);
    if (d.s != d.end)
        dense_fail(&d, "expected '>' behind the elements");
    return d.type->elems ? dense_attr(&d, type, n)
                         : (HloAttr){.kind = HA_TENSOR, .type = type, .data = ""};
}

static HloAttr dense_blob(TextRead *p, const char *open) {
    const char *s = p->at + 1;
    const char *end = memchr(s, '"', (size_t)(p->end - s));
    if (!end || end - s < 2 || s[0] != '0' || s[1] != 'x')
        text_fail(p, open, OTRN_UNSUPPORTED, "a constant of strings");
    p->at = end + 1;
    text_need(p, '>');
    TypeId type = tensor_type(p);
    size_t n;
    uint8_t *bytes = hex_decode(p, s + 2, (size_t)(end - s - 2), &n);
    Dense d = dense_begin(p, open, type);
    n = blob_take(&d, bytes, n);
    return dense_attr(&d, type, n);
}

// --- resources -----------------------------------------------------------------------------------

// key: "0x…" is noted; a key of anything else is passed over.
static void resource_entry(TextRead *p) {
    const char *at = p->at;
    Span key;
    if (text_peek(p) == '"') {
        key.s = text_name_string(p);
        key.n = strlen(key.s);
    } else {
        key = text_suffix_id(p, "a resource name");
    }
    text_need(p, ':');
    char c = text_peek(p);
    if (c == '{') // a group: its entries follow
        return;
    if (c != '"') {
        text_attr(p);
        return;
    }
    const char *end = memchr(p->at + 1, '"', (size_t)(p->end - p->at - 1));
    if (!end)
        text_fail(p, at, OTRN_PARSE, "this resource is never closed");
    text_map_at(p->arena, &p->resources, key)->a = p->blobs.n;
    VEC_PUSH(p->arena, &p->blobs,
             ((TextBlob){.text = {p->at + 1, (size_t)(end - p->at - 1)}}));
    p->at = end + 1;
}

// {-# dialect_resources: { builtin: { key: "0x…", … }, … }, external_resources: {…} #-}
static void resources_read(TextRead *p) {
    p->resources_read = true;
    if (!p->resources_at)
        return;
    const char *save = p->at;
    p->at = p->resources_at + 3;
    int open = 0;
    for (char c; (c = text_peek(p)) && (open > 0 || c != '#');) {
        if (text_eat(p, '{'))
            open++;
        else if (text_eat(p, '}'))
            open--;
        else if (!text_eat(p, ','))
            resource_entry(p);
    }
    p->at = save;
}

static HloAttr dense_resource(TextRead *p, const char *open) {
    text_need(p, '<');
    text_space(p);
    Span key = text_suffix_id(p, "a resource name");
    text_need(p, '>');
    TypeId type = tensor_type(p);
    if (!p->resources_read)
        resources_read(p);
    TextName *t = text_map_find(&p->resources, key);
    if (!t) {
        ctx_hint(p->ctx, "print the program with its resources, not elided");
        text_fail(p, open, OTRN_PARSE, "the resource '%.*s' has no data in this file", (int)key.n,
                  key.s);
    }
    TextBlob *blob = &p->blobs.at[t->a];
    if (blob->text.n < 10 || memcmp(blob->text.s, "0x", 2))
        text_fail(p, open, OTRN_PARSE, "the resource '%.*s' is no blob", (int)key.n, key.s);
    if (!blob->bytes) // the first four bytes give the blob's alignment
        blob->bytes = hex_decode(p, blob->text.s + 2, blob->text.n - 2, &blob->n) + 4;
    Dense d = dense_begin(p, open, type);
    size_t n = blob->n - 4;
    uint8_t *bytes = blob->bytes;
    if (dtype_row(d.dtype)->bits < 8) { // brought to host form in place, so each use has its own
        text_expand(p, n);
        bytes = arena_dup(p->arena, bytes, n);
    }
    n = blob_take(&d, bytes, n);
    return dense_attr(&d, type, n);
}

HloAttr text_dense(TextRead *p) {
    text_space(p);
    const char *open = p->at;
    if (text_eat_word(p, "dense_resource"))
        return dense_resource(p, open);
    text_need_word(p, "dense");
    text_need(p, '<');
    return text_peek(p) == '"' ? dense_blob(p, open) : dense_list(p, open);
}

// --- array<…> ------------------------------------------------------------------------------------

HloAttr text_array(TextRead *p) {
    const char *from = p->at;
    text_need_word(p, "array");
    text_need(p, '<');
    TypeId type = text_type(p);
    int dtype = hlo_type(p->h, type)->dtype;
    if (dtype_is_float(dtype)) { // carried along as text
        Buf text = {.arena = p->arena};
        p->at = from + strlen("array");
        buf_puts(&text, "array");
        text_raw_balanced(p, &text);
        return (HloAttr){.kind = HA_OPAQUE, .n = (uint32_t)text.n, .s = buf_cstr(&text)};
    }
    if (!dtype_is_int(dtype) && dtype != DT_I1)
        text_fail(p, from, OTRN_PARSE, "array<…> needs a number type");
    uint32_t base = p->ints.n;
    if (text_eat(p, ':')) {
        do {
            int64_t v = text_eat_word(p, "true")    ? 1
                        : text_eat_word(p, "false") ? 0
                                                    : text_int(p, "an integer");
            VEC_PUSH(p->arena, &p->ints, v);
        } while (text_eat(p, ','));
    }
    text_need(p, '>');
    HloAttr a = text_ints_take(p, base);
    a.type = dtype == DT_I64 ? 0 : type;
    return a;
}
