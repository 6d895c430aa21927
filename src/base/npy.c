// SPDX-License-Identifier: Apache-2.0
// npy.c — numpy .npy files.
//
//   "\x93NUMPY" major minor | header length: u16 (version 1) or u32 (2, 3) | header | data
//
// The header is a Python dictionary literal with exactly three keys: descr (a string such as '<f4'),
// fortran_order (True or False) and shape (a tuple of ints). Source: numpy's format description
// (NEP 1). Files of any byte order are read; little-endian row-major ones are written.
#include "base/npy.h"

#include <string.h>

#include "base/bytes.h"
#include "base/file.h"

#define NPY_MAGIC "\x93NUMPY"
#define NPY_ALIGN 64 // data begins at a multiple, as numpy writes it

typedef struct Head { // cursor over the header text
    Ctx *ctx;
    const char *name, *at, *end;
} Head;

typedef struct Descr {
    int dtype; // DT_INVALID: raw bytes
    size_t elem_bytes;
    size_t swap_bytes; // size of the units to reverse; 0 = none
} Descr;

_Noreturn static void head_fail(const Head *h, const char *what) {
    ctx_fail(h->ctx, OTRN_PARSE, (Place){.file = h->name}, "npy header: %s", what);
}

static void skip_space(Head *h) {
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t' || *h->at == '\r'))
        h->at++;
}

static bool take(Head *h, char c) {
    skip_space(h);
    if (h->at == h->end || *h->at != c)
        return false;
    h->at++;
    return true;
}

static void need(Head *h, char c, const char *what) {
    if (!take(h, c))
        head_fail(h, what);
}

// A quoted string without escapes; returns its length, *s points into the header.
static size_t string_parse(Head *h, const char **s) {
    skip_space(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"'))
        head_fail(h, "a quoted string was expected (records are not supported)");
    char quote = *h->at++;
    *s = h->at;
    while (h->at < h->end && *h->at != quote)
        h->at++;
    if (h->at == h->end)
        head_fail(h, "a string has no end");
    return (size_t)(h->at++ - *s);
}

static bool word_is(const char *s, size_t n, const char *word) {
    return strlen(word) == n && !memcmp(s, word, n);
}

static bool bool_parse(Head *h) {
    skip_space(h);
    const char *s = h->at;
    while (h->at < h->end && ((*h->at | 32) >= 'a' && (*h->at | 32) <= 'z'))
        h->at++;
    size_t n = (size_t)(h->at - s);
    if (!word_is(s, n, "True") && !word_is(s, n, "False"))
        head_fail(h, "fortran_order is neither True nor False");
    return n == 4;
}

static int64_t int_parse(Head *h) {
    skip_space(h);
    const char *s = h->at;
    int64_t v = 0;
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
        if (__builtin_mul_overflow(v, (int64_t)10, &v) ||
            __builtin_add_overflow(v, (int64_t)(*h->at - '0'), &v))
            head_fail(h, "a dimension is too large");
    if (h->at == s)
        head_fail(h, "a dimension was expected in shape");
    if (h->at < h->end && *h->at == 'L') // Python 2 wrote long integers so
        h->at++;
    return v;
}

static void shape_parse(Head *h, Npy *out) {
    need(h, '(', "shape is not a tuple");
    out->rank = 0;
    while (!take(h, ')')) {
        if (out->rank == OTRN_MAX_RANK)
            head_fail(h, "more dimensions than OTRN_MAX_RANK (32)");
        out->dims[out->rank++] = int_parse(h);
        if (!take(h, ',')) {
            need(h, ')', "shape has no end");
            break;
        }
    }
}

static void descr_parse(Head *h, Descr *out) {
    const char *s;
    size_t n = string_parse(h, &s);
    if (word_is(s, n, "bfloat16")) {
        *out = (Descr){DT_BF16, 2, 0};
        return;
    }
    char order = n && strchr("<>|=", *s) ? *s : 0;
    if (order)
        s++, n--;
    size_t bytes = 0;
    for (size_t i = 1; i < n && bytes < 1000; i++)
        bytes = s[i] >= '0' && s[i] <= '9' ? bytes * 10 + (size_t)(s[i] - '0') : 1000;
    if (n < 2 || bytes == 0 || bytes > 16)
        head_fail(h, "descr names a type opentrn does not know");
    *out = (Descr){DT_INVALID, bytes, 0};
    // ml_dtypes writes its one-byte floats as V1 or f1: the caller knows which one it expects.
    if (s[0] == 'V' || word_is(s, n, "f1"))
        return;
    for (int d = 0; d < DT_COUNT; d++)
        if (dtype_rows[d].npy[0] && word_is(s, n, dtype_rows[d].npy + 1))
            out->dtype = d;
    if (out->dtype == DT_INVALID)
        head_fail(h, "descr names a type opentrn does not know");
    size_t unit = dtype_is_complex(out->dtype) ? bytes / 2 : bytes;
    out->swap_bytes = order == '>' && unit > 1 ? unit : 0;
}

static void header_parse(Head *h, Npy *out, Descr *descr, bool *fortran) {
    unsigned seen = 0;
    need(h, '{', "it is not a dictionary");
    while (!take(h, '}')) {
        const char *key;
        size_t n = string_parse(h, &key);
        need(h, ':', "a ':' is missing");
        if (word_is(key, n, "descr"))
            descr_parse(h, descr), seen |= 1;
        else if (word_is(key, n, "fortran_order"))
            *fortran = bool_parse(h), seen |= 2;
        else if (word_is(key, n, "shape"))
            shape_parse(h, out), seen |= 4;
        else
            head_fail(h, "it has a key besides descr, fortran_order and shape");
        if (!take(h, ',')) {
            need(h, '}', "the dictionary has no end");
            break;
        }
    }
    if (seen != 7)
        head_fail(h, "one of descr, fortran_order and shape is missing");
}

static void swap_units(uint8_t *p, size_t bytes, size_t unit) {
    for (size_t at = 0; at + unit <= bytes; at += unit)
        for (size_t i = 0; i < unit / 2; i++) {
            uint8_t t = p[at + i];
            p[at + i] = p[at + unit - 1 - i];
            p[at + unit - 1 - i] = t;
        }
}

// Column-major to row-major: walks the output in order, stepping the source by its own strides.
static void reorder(uint8_t *to, const uint8_t *from, const Npy *a, size_t elems) {
    size_t stride[OTRN_MAX_RANK], step = a->elem_bytes, off = 0;
    int64_t at[OTRN_MAX_RANK] = {0};
    for (int d = 0; d < a->rank; d++)
        stride[d] = step, step *= (size_t)a->dims[d];
    for (size_t i = 0; i < elems; i++) {
        memcpy(to + i * a->elem_bytes, from + off, a->elem_bytes);
        for (int d = a->rank - 1; d >= 0; d--) {
            off += stride[d];
            if (++at[d] < a->dims[d])
                break;
            off -= stride[d] * (size_t)a->dims[d];
            at[d] = 0;
        }
    }
}

// The file's bytes as a tensor; with `own` they are the arena's, and the data may stay among them.
static void bytes_parse(Ctx *ctx, Arena *a, const char *name, const uint8_t *bytes, uint8_t *own, size_t size,
                        Npy *out) {
    Place place = {.file = name};
    const uint8_t *p = bytes;
    if (size < 10 || memcmp(p, NPY_MAGIC, 6) != 0)
        ctx_fail(ctx, OTRN_PARSE, place, "not a .npy file: the magic bytes are missing");
    if (p[6] < 1 || p[6] > 3)
        ctx_fail(ctx, OTRN_VERSION, place, "npy format version %d; 1 to 3 are known", p[6]);
    size_t head_at = p[6] == 1 ? 10 : 12;
    if (size < head_at)
        ctx_fail(ctx, OTRN_PARSE, place, "the npy header is cut off");
    size_t head_bytes = p[6] == 1 ? le_load16(p + 8) : le_load32(p + 8);
    if (head_bytes > size - head_at)
        ctx_fail(ctx, OTRN_PARSE, place, "the npy header is cut off");
    const char *text = (const char *)p + head_at;
    Head h = {ctx, name, text, text + head_bytes};
    Descr descr = {0};
    bool fortran = false;
    header_parse(&h, out, &descr, &fortran);
    out->dtype = descr.dtype, out->elem_bytes = descr.elem_bytes;

    bool empty = false; // a zero dimension makes the product zero whatever the others are
    for (int d = 0; d < out->rank; d++)
        empty |= out->dims[d] == 0;
    size_t elems = empty ? 0 : 1;
    for (int d = 0; d < out->rank && !empty; d++)
        if (__builtin_mul_overflow(elems, (size_t)out->dims[d], &elems))
            head_fail(&h, "the shape is too large");
    if (__builtin_mul_overflow(elems, out->elem_bytes, &out->bytes))
        head_fail(&h, "the shape is too large");
    size_t have = size - head_at - head_bytes;
    if (have != out->bytes)
        ctx_fail(ctx, OTRN_PARSE, place, "%zu bytes of data, but the npy header describes %zu", have,
                 out->bytes);
    const uint8_t *from = p + head_at + head_bytes;
    bool turned = fortran && out->rank > 1, stays = own && !turned && (head_at + head_bytes) % 16 == 0;
    uint8_t *data = stays ? own + head_at + head_bytes : arena_alloc(a, out->bytes);
    if (turned)
        reorder(data, from, out, elems);
    else if (out->bytes && !stays)
        memcpy(data, from, out->bytes);
    if (descr.swap_bytes)
        swap_units(data, out->bytes, descr.swap_bytes);
    if (out->dtype == DT_I1) // any non-zero byte is true; inside opentrn only 0 and 1 exist
        for (size_t i = 0; i < elems; i++)
            data[i] = data[i] != 0;
    out->data = data;
}

void npy_parse(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, Npy *out) {
    bytes_parse(ctx, a, name, bytes, NULL, size, out);
}

void npy_read(Ctx *ctx, Arena *a, const char *path, Npy *out) {
    size_t size;
    uint8_t *bytes = file_read(ctx, a, path, &size);
    bytes_parse(ctx, a, path, bytes, bytes, size, out);
}

static const char *descr_of(int dtype) {
    if (dtype_rows[dtype].npy[0])
        return dtype_rows[dtype].npy;
    if (dtype == DT_INDEX)
        return "<i8";
    if (dtype == DT_TF32)
        return "<f4";
    return "|V1"; // sub-byte and one-byte types numpy lacks
}

void npy_write(Ctx *ctx, const char *path, int dtype, int rank, const int64_t *dims,
               const void *data) {
    Arena a;
    arena_init(&a, ctx);
    jmp_buf jb, *outer = ctx->on_fail;
    volatile bool ok = false;
    if (CTX_TRY(ctx, jb)) { // the arena is ours and must go even when the write fails
        Buf b = {.arena = &a};
        size_t bytes = dtype_bytes(dtype);
        buf_put(&b, NPY_MAGIC "\x01\x00\x00\x00", 10);
        buf_printf(&b, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr_of(dtype));
        for (int d = 0; d < rank; d++) {
            buf_printf(&b, d + 1 < rank ? "%lld, " : "%lld", (long long)dims[d]);
            bytes *= (size_t)dims[d];
        }
        buf_puts(&b, rank == 1 ? ",), }" : "), }");
        while ((b.n + 1) % NPY_ALIGN)
            put_u8(&b, ' ');
        put_u8(&b, '\n');
        le_store16(b.at + 8, (uint16_t)(b.n - 10));
        file_write_two(ctx, path, b.at, b.n, data, bytes);
        ok = true;
    }
    arena_fini(&a);
    ctx->on_fail = outer;
    if (!ok)
        longjmp(*outer, 1);
}
