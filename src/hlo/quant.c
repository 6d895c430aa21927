// SPDX-License-Identifier: Apache-2.0
// quant.c — the text of a quantised element type taken apart.
#include "hlo/quant.h"

#include <math.h>

#include "base/num.h"

typedef struct Cursor {
    const char *at, *end;
} Cursor;

static bool eat(Cursor *c, char ch) {
    while (c->at < c->end && *c->at == ' ')
        c->at++;
    if (c->at == c->end || *c->at != ch)
        return false;
    c->at++;
    return true;
}

static bool read_int(Cursor *c, int64_t *out) {
    bool negative = eat(c, '-');
    const char *first = c->at;
    int64_t v = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, *c->at - '0', &v))
            return false;
    if (c->at == first || (!negative && v == INT64_MIN))
        return false;
    *out = negative ? v : -v;
    return true;
}

static size_t word(const Cursor *c) {
    const char *s = c->at;
    for (; s < c->end; s++) {
        bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');
        if (!letter && (*s < '0' || *s > '9'))
            break;
    }
    return (size_t)(s - c->at);
}

static const char head[] = "!quant.uniform<";

// Behind the storage type and its range: at ":f32…".
static bool open_text(const HloType *t, Cursor *c) {
    *c = (Cursor){t->text, t->text + strlen(t->text)};
    if (strncmp(c->at, head, sizeof head - 1))
        return false;
    c->at += sizeof head - 1;
    c->at += word(c);
    return true;
}

static int read_expressed(Cursor *c) {
    if (!eat(c, ':'))
        return DT_INVALID;
    size_t n = word(c);
    int dtype = dtype_parse(c->at, n);
    c->at += n;
    return dtype > 0 && dtype_is_float(dtype) ? dtype : DT_INVALID;
}

static bool read_range(Cursor *c, Quant *q) {
    const DtypeRow *row = dtype_row(q->storage);
    int value_bits = row->bits - (row->cls == DC_SINT);
    int64_t low = row->cls == DC_SINT ? -((int64_t)1 << value_bits) : 0;
    int64_t high = ((int64_t)1 << value_bits) - 1;
    q->min = low, q->max = high;
    if (!eat(c, '<'))
        return true;
    return read_int(c, &q->min) && eat(c, ':') && read_int(c, &q->max) && eat(c, '>') &&
           q->min < q->max && q->min >= low && q->max <= high;
}

int quant_expressed(const HloType *t) {
    Cursor c;
    if (!open_text(t, &c))
        return DT_INVALID;
    if (eat(&c, '<'))
        while (c.at < c.end && *c.at++ != '>')
            ;
    return read_expressed(&c);
}

static const char *read_scale(Cursor *c, const Quant *q, double *scale, int64_t *zero_point) {
    while (c->at < c->end && *c->at == ' ')
        c->at++;
    const char *after = num_parse_f64(c->at, c->end, scale);
    if (after == c->at)
        return "a scale is missing (C9)";
    c->at = after;
    double held;
    uint8_t bytes[8];
    dtype_from_f64(q->expressed, bytes, *scale);
    held = dtype_to_f64(q->expressed, bytes);
    const DtypeRow *row = dtype_row(q->expressed);
    if (!(held > 0) || !isfinite(held) || *scale < ldexp(1, 1 - row->bias - row->man_bits))
        return "a scale must be a positive number of the expressed type (C5, C6)";
    *zero_point = 0;
    if (eat(c, ':') && !read_int(c, zero_point))
        return "a zero point is no integer (C8)";
    if (*zero_point < q->min || *zero_point > q->max)
        return "a zero point lies outside the storage range (C7)";
    return NULL;
}

static const char *read_axis(Arena *a, Cursor *c, const HloType *t, Quant *q) {
    uint32_t commas = 0;
    for (const char *s = c->at; s < c->end; s++)
        commas += *s == ',';
    double *scales = ARENA_NEWN(a, double, commas + 1);
    int64_t *zero_points = ARENA_NEWN(a, int64_t, commas + 1);
    q->scales = scales, q->zero_points = zero_points;
    do {
        const char *why = read_scale(c, q, scales + q->n, zero_points + q->n);
        if (why)
            return why;
        q->n++;
    } while (eat(c, ','));
    if (!eat(c, '}'))
        return "the list of scales does not end (C9)";
    if (q->axis >= t->rank)
        return "the quantised dimension is none of the tensor's (C12)";
    if (t->dims[q->axis] != HLO_DYNAMIC && t->dims[q->axis] != q->n)
        return "there must be one scale for each index along the quantised dimension (C13)";
    return NULL;
}

static const char *const bad_blocks = "block sizes must be positive and belong to different dimensions of the tensor";

// {0:1, 1:2}, behind "{": the sizes of blocks, 0 where a dimension is one block.
static const char *read_block_sizes(Cursor *c, const HloType *t, int64_t size[OTRN_MAX_RANK]) {
    do {
        int64_t dim, n;
        if (!read_int(c, &dim) || !eat(c, ':') || !read_int(c, &n) || dim < 0 || dim >= t->rank || n < 1 || size[dim])
            return bad_blocks;
        size[dim] = n;
    } while (eat(c, ','));
    return eat(c, '}') ? NULL : bad_blocks;
}

// One level of the list for dimension d; counts[d] is 0 before the first list of that level.
static const char *read_block_scales(Cursor *c, const HloType *t, int d, Quant *q, int64_t *counts, double *scales,
                                     int64_t *zero_points) {
    if (!eat(c, '{'))
        return "scales of blocks are lists in lists, one level for each dimension of the tensor";
    int64_t n = 0;
    do {
        const char *why = d + 1 < t->rank ? read_block_scales(c, t, d + 1, q, counts, scales, zero_points)
                                          : read_scale(c, q, scales + q->n, zero_points + q->n);
        if (why)
            return why;
        q->n += d + 1 == t->rank;
        n++;
    } while (eat(c, ','));
    if (!eat(c, '}') || (counts[d] && counts[d] != n))
        return "lists of scales of one level must be of one length";
    counts[d] = n;
    return NULL;
}

static const char *read_blocks(Arena *a, Cursor *c, const HloType *t, Quant *q) {
    int64_t size[OTRN_MAX_RANK] = {0}, *counts = ARENA_NEWN(a, int64_t, OTRN_MAX_RANK);
    const char *why = read_block_sizes(c, t, size);
    if (why)
        return why;
    if (!eat(c, ','))
        return "the scales are missing";
    uint32_t commas = 0;
    for (const char *s = c->at; s < c->end; s++)
        commas += *s == ',';
    double *scales = ARENA_NEWN(a, double, commas + 1);
    int64_t *zero_points = ARENA_NEWN(a, int64_t, commas + 1);
    q->scales = scales, q->zero_points = zero_points, q->blocks = counts;
    why = read_block_scales(c, t, 0, q, counts, scales, zero_points);
    for (int d = 0; d < t->rank && !why; d++) {
        int64_t dim = t->dims[d], blocks = size[d] && dim != HLO_DYNAMIC ? dim / size[d] : 1;
        if (size[d] && dim != HLO_DYNAMIC && dim % size[d])
            return "blocks must divide the dimension";
        if ((!size[d] || dim != HLO_DYNAMIC) && counts[d] != blocks)
            why = "there must be one scale for each block";
    }
    return why;
}

const char *quant_parse(Arena *a, const HloType *t, Quant *out) {
    Cursor c;
    *out = (Quant){.storage = t->dtype, .axis = -1};
    if (!dtype_is_int(t->dtype) || dtype_row(t->dtype)->bits > 32)
        return "storage types are integers of at most 32 bits";
    if (!open_text(t, &c) || !read_range(&c, out))
        return "the storage range does not fit the storage type (C3)";
    out->expressed = (uint8_t)read_expressed(&c);
    if (!out->expressed)
        return "the expressed type must be a float type (C4)";
    int64_t axis = -1;
    if (eat(&c, ':')) {
        if (eat(&c, '{'))
            return read_blocks(a, &c, t, out);
        if (!read_int(&c, &axis) || axis < 0 || axis > OTRN_MAX_RANK)
            return "the quantised dimension is none of the tensor's (C11, C12)";
        out->axis = (int)axis;
    }
    if (!eat(&c, ','))
        return "the scale is missing";
    if (eat(&c, '{') != (out->axis >= 0))
        return "a list of scales goes with a quantised dimension (C10)";
    if (out->axis >= 0)
        return read_axis(a, &c, t, out);
    double *scale = ARENA_NEW(a, double);
    int64_t *zero_point = ARENA_NEW(a, int64_t);
    out->scales = scale, out->zero_points = zero_point, out->n = 1;
    return read_scale(&c, out, scale, zero_point);
}

static bool blocks_same(const Quant *a, const Quant *b) {
    return !a->blocks || !memcmp(a->blocks, b->blocks, OTRN_MAX_RANK * sizeof *a->blocks);
}

bool quant_alike(const Quant *a, const Quant *b) {
    return !a->blocks == !b->blocks && blocks_same(a, b) && a->expressed == b->expressed && (a->axis < 0) == (b->axis < 0) && a->n == b->n &&
           !memcmp(a->scales, b->scales, a->n * sizeof *a->scales) &&
           !memcmp(a->zero_points, b->zero_points, a->n * sizeof *a->zero_points);
}

bool quant_same(const Quant *a, const Quant *b) {
    return a == b || (a->storage == b->storage && a->min == b->min && a->max == b->max &&
                      quant_alike(a, b));
}
