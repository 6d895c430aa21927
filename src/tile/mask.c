// SPDX-License-Identifier: Apache-2.0
// mask.c — causal attention: half of the scores are masked, and the compiler can see which.
//
// A mask is known when it is a constant, or when this or another row program compares counts (pass/counters.c). A column behind the last unmasked one of 128 rows may be left out when
// what the program makes of it is nothing: choose(mask, x, a large negative number) under a maximum or an exponential,
// zeros under sums and products. Each value has a class for its masked columns; a program qualifies when every reduction
// and every result sees a class that changes nothing. Every row must have a column that counts: then its maximum
// is a score, which we take to be above -1e8, and the exponential of what is masked is zero.
#include "tile/mask.h"

#include <string.h>

#include "hlo/hlo.h"
#include "pass/rows.h"

#define PARTS 128

typedef enum Class { CLASS_ANY, CLASS_LOW, CLASS_ZERO } Class; // of masked columns

// --- the mask ----------------------------------------------------------------------------------------

typedef struct Affine { // r * row + c * column + k
    int64_t r, c, k;
} Affine;

static ValueId before_reshapes(const Hlo *h, ValueId v) { // that leave rows and columns as they are
    int64_t n = hlo_value_type(h, v)->rank ? hlo_value_type(h, v)->dims[hlo_value_type(h, v)->rank - 1] : 1;
    for (OpId def = h->values.at[v].def; def && hlo_at(h, def)->code == HLO_RESHAPE; def = h->values.at[v].def) {
        ValueId from = hlo_operand(h, hlo_at(h, def), 0);
        const HloType *t = hlo_value_type(h, from);
        if (t->rank < 1 || t->dims[t->rank - 1] != n)
            break;
        v = from;
    }
    return v;
}

typedef struct Mask { // of `all` columns
    const Hlo *h;
    int64_t all, rows; // rows: after which it begins again; 0: not at all
    bool constant;
    const uint8_t *data;
    Affine a; // compared with zero
    int64_t direction;
} Mask;

// A count that a row program works with: a vector that counts rows, or `all` columns, numbers, sums.
typedef struct Count {
    Affine a;
    int64_t all;
} Count;

static bool vector_count(const Hlo *h, ValueId v, bool rows, Count *out) {
    v = before_reshapes(h, v);
    OpId def = h->values.at[v].def;
    if (!def || hlo_at(h, def)->code != HLO_IOTA)
        return false;
    const HloType *t = hlo_value_type(h, v);
    out->a = (Affine){.r = rows, .c = !rows};
    out->all = rows ? 0 : t->elems;
    return t->dims[hlo_int(hlo_at(h, def), AK_IOTA_DIMENSION, 0)] == t->elems;
}

static bool inner_count(const Hlo *h, const HloOp *rows, ValueId v, int depth, Count *out) {
    const HloRegion *r = hlo_op_region(h, rows, 0);
    OpId def = h->values.at[v].def;
    uint32_t n;
    *out = (Count){0};
    if (!def) {
        int64_t kind = hlo_ints(rows, AK_BROADCAST_DIMENSIONS, &n)[v - r->args];
        ValueId from = hlo_operand(h, rows, v - r->args);
        return dtype_is_float(hlo_value_type(h, from)->dtype) && (kind == FUSED_ROWS || kind == FUSED_COLUMNS) &&
               vector_count(h, from, kind == FUSED_ROWS, out);
    }
    const HloAttr *splat = splat_value(h, v);
    if (splat) {
        double x = dtype_is_float(hlo_value_type(h, v)->dtype) ? dtype_to_f64(hlo_value_type(h, v)->dtype, splat->data) : 1e30;
        out->a.k = x > -1e9 && x < 1e9 ? (int64_t)x : 0;
        return (double)out->a.k == x;
    }
    const HloOp *op = hlo_at(h, def);
    Count b;
    if (depth > 8)
        return false;
    switch (op->code) {
    case HLO_BROADCAST_IN_DIM:
        return inner_count(h, rows, hlo_operand(h, op, 0), depth + 1, out);
    case HLO_NEGATE:
        if (!inner_count(h, rows, hlo_operand(h, op, 0), depth + 1, out))
            return false;
        out->a = (Affine){-out->a.r, -out->a.c, -out->a.k};
        return true;
    case HLO_MULTIPLY: {
        uint32_t k = splat_value(h, hlo_operand(h, op, 1)) ? 1 : 0;
        if (!inner_count(h, rows, hlo_operand(h, op, !k), depth + 1, out) || !inner_count(h, rows, hlo_operand(h, op, k), depth + 1, &b) ||
            b.a.r || b.a.c)
            return false;
        out->a = (Affine){out->a.r * b.a.k, out->a.c * b.a.k, out->a.k * b.a.k};
        return true;
    }
    case HLO_ADD:
    case HLO_SUBTRACT: {
        int64_t sign = op->code == HLO_ADD ? 1 : -1;
        if (!inner_count(h, rows, hlo_operand(h, op, 0), depth + 1, out) || !inner_count(h, rows, hlo_operand(h, op, 1), depth + 1, &b))
            return false;
        out->a = (Affine){out->a.r + sign * b.a.r, out->a.c + sign * b.a.c, out->a.k + sign * b.a.k};
        out->all = out->all ? out->all : b.all;
        return true;
    }
    default:
        return false;
    }
}

// A comparison inside a row program.
static bool inner_mask(const Hlo *h, const HloOp *rows, OpId id, Mask *m) {
    const HloOp *op = hlo_at(h, id);
    Count x, y;
    *m = (Mask){.h = h};
    if (op->code != HLO_COMPARE || !inner_count(h, rows, hlo_operand(h, op, 0), 0, &x) ||
        !inner_count(h, rows, hlo_operand(h, op, 1), 0, &y) || (!x.all && !y.all) || (x.all && y.all))
        return false;
    m->all = x.all ? x.all : y.all;
    m->a = (Affine){x.a.r - y.a.r, x.a.c - y.a.c, x.a.k - y.a.k};
    m->direction = hlo_int(op, AK_COMPARISON_DIRECTION, -1);
    return true;
}

// A row program that makes nothing but the mask.
static bool made_mask(const Hlo *h, OpId rows, ValueId v, Mask *m) {
    const HloOp *op = hlo_at(h, rows);
    Mask in;
    const HloRegion *r = hlo_op_region(h, op, 0);
    OpId def = h->values.at[hlo_operand(h, hlo_at(h, r->ops.at[r->ops.n - 1]), v - op->results)].def;
    if (!def || !inner_mask(h, op, def, &in) || in.all != m->all)
        return false;
    m->a = in.a, m->direction = in.direction;
    return true;
}

static bool mask_known(const Hlo *h, ValueId v, Mask *m) {
    *m = (Mask){.h = h};
    v = before_reshapes(h, v);
    const HloType *t = hlo_value_type(h, v);
    m->all = t->rank ? t->dims[t->rank - 1] : 1;
    OpId def = h->values.at[v].def;
    if (!def)
        return false;
    const HloOp *op = hlo_at(h, def);
    if (op->code == HLO_CONSTANT) {
        const HloAttr *a = hlo_attr(op, AK_VALUE);
        m->constant = true;
        m->data = a->data;
        return a->kind == HA_TENSOR && !hlo_tensor_is_splat(h, a);
    }
    return op->code == HLO_ROWS && made_mask(h, def, v, m);
}

static bool mask_at(const Mask *m, int64_t row, int64_t col) { // of the whole mask
    if (m->constant)
        return m->data[row * m->all + col] != 0;
    int64_t x = m->a.r * row + m->a.c * col + m->a.k;
    switch (m->direction) {
    case CMP_EQ:
        return x == 0;
    case CMP_NE:
        return x != 0;
    case CMP_LT:
        return x < 0;
    case CMP_LE:
        return x <= 0;
    case CMP_GT:
        return x > 0;
    default:
        return x >= 0;
    }
}

// --- what becomes of masked columns ------------------------------------------------------------------

typedef struct Look {
    const Hlo *h;
    ValueId mask; // inside the region
    ValueId first; // of `of`
    uint8_t *of;   // per value inside the region
    uint32_t n;
    OpId *idle;
    uint32_t nidle;
} Look;

static Class class_of(const Look *l, ValueId v) {
    return v >= l->first && v - l->first < l->n ? (Class)l->of[v - l->first] : CLASS_ANY;
}

static Class of_number(const Hlo *h, ValueId v) {
    const HloAttr *a = splat_value(h, v);
    if (!a || !dtype_is_float(hlo_value_type(h, v)->dtype))
        return CLASS_ANY;
    double x = dtype_to_f64(hlo_value_type(h, v)->dtype, a->data);
    return x == 0 ? CLASS_ZERO : x <= MASK_LOW ? CLASS_LOW : CLASS_ANY;
}

static bool is_row_value(const Hlo *h, ValueId v) { // one number for the row
    OpId def = h->values.at[v].def;
    return splat_value(h, v) || (def && hlo_at(h, def)->code == HLO_BROADCAST_IN_DIM);
}

static bool is_fraction(const Hlo *h, ValueId v) { // a positive number that leaves low ones low
    const HloAttr *a = splat_value(h, v);
    return a && dtype_to_f64(hlo_value_type(h, v)->dtype, a->data) >= 0.01;
}

static Class number_or_class(const Look *l, ValueId v) {
    Class c = class_of(l, v);
    return c != CLASS_ANY ? c : of_number(l->h, v);
}

static Class class_for(const Look *l, const HloOp *op) {
    const Hlo *h = l->h;
    ValueId a = op->noperands ? hlo_operand(h, op, 0) : 0, b = op->noperands > 1 ? hlo_operand(h, op, 1) : 0;
    Class ca = a ? class_of(l, a) : CLASS_ANY, cb = b ? class_of(l, b) : CLASS_ANY, cc;
    switch (op->code) {
    case HLO_SELECT:
        cb = number_or_class(l, b), cc = number_or_class(l, hlo_operand(h, op, 2));
        return a == l->mask || cb == cc ? cc : CLASS_ANY; // dropout: zeros either way
    case HLO_CONVERT:
    case HLO_NEGATE:
        return ca == CLASS_ZERO || op->code == HLO_CONVERT ? ca : CLASS_ANY;
    case HLO_MULTIPLY:
        if (ca == CLASS_ZERO || cb == CLASS_ZERO)
            return CLASS_ZERO;
        return ca == CLASS_LOW && is_fraction(h, b) ? CLASS_LOW : CLASS_ANY;
    case HLO_DIVIDE:
        return ca == CLASS_ZERO ? CLASS_ZERO : CLASS_ANY;
    case HLO_ADD:
        if (ca == CLASS_ZERO && cb == CLASS_ZERO)
            return CLASS_ZERO;
        return (ca == CLASS_LOW && is_row_value(h, b)) || (cb == CLASS_LOW && is_row_value(h, a)) ? CLASS_LOW : CLASS_ANY;
    case HLO_SUBTRACT:
        if (ca == CLASS_ZERO && cb == CLASS_ZERO)
            return CLASS_ZERO;
        return ca == CLASS_LOW && is_row_value(h, b) ? CLASS_LOW : CLASS_ANY;
    case HLO_EXPONENTIAL:
        return ca == CLASS_LOW ? CLASS_ZERO : CLASS_ANY;
    default:
        return CLASS_ANY;
    }
}

static bool columns_are_nothing(Look *l, const HloRegion *r, const bool *feeds) {
    const Hlo *h = l->h;
    for (uint32_t i = 0; i + 1 < r->ops.n; i++) {
        const HloOp *op = hlo_at(h, r->ops.at[i]);
        if (op->code == HLO_REDUCE) {
            Class c = class_of(l, hlo_operand(h, op, 0));
            uint16_t body = reduce_body(h, op);
            if (!(body == HLO_ADD && c == CLASS_ZERO) && !(body == HLO_MAXIMUM && c == CLASS_LOW))
                return false;
            continue;
        }
        bool zeros = op->code == HLO_SELECT && hlo_operand(h, op, 0) == l->mask &&
                     class_of(l, hlo_operand(h, op, 1)) == CLASS_ZERO && of_number(h, hlo_operand(h, op, 2)) == CLASS_ZERO;
        if (zeros && l->nidle < MASK_IDLE)
            l->idle[l->nidle++] = r->ops.at[i];
        if (op->results >= l->first && op->results - l->first < l->n)
            l->of[op->results - l->first] = (uint8_t)class_for(l, op);
    }
    const HloOp *ret = hlo_at(h, r->ops.at[r->ops.n - 1]);
    for (uint32_t k = 0; k < ret->noperands; k++) {
        ValueId v = hlo_operand(h, ret, k);
        if (hlo_value_type(h, v)->rank == 1 && (!feeds[k] || class_of(l, v) != CLASS_ZERO))
            return false;
    }
    return true;
}

// Of a row, the columns up to the last one that counts, and those before the first one that does not.
static int64_t counting(const Mask *mask, int64_t row, int64_t n) {
    while (n > 0 && !mask_at(mask, row, n - 1))
        n--;
    return n;
}

static int64_t unmasked(const Mask *mask, int64_t row, int64_t n) {
    int64_t c = 0;
    while (c < n && mask_at(mask, row, c))
        c++;
    return c;
}

static bool set_widths(Compile *c, const Mask *mask, int64_t m, int64_t n, Masked *o) {
    int64_t rows = mask->rows ? mask->rows : m, tiles = (m + PARTS - 1) / PARTS;
    uint32_t *out = ARENA_NEWN(c->scratch, uint32_t, (size_t)tiles + 1), *clear = ARENA_NEWN(c->scratch, uint32_t, (size_t)tiles + 1);
    for (int64_t row = 0; row < m; row++) {
        int64_t last = counting(mask, row % rows, n), need = (last + PARTS - 1) / PARTS * PARTS, all = unmasked(mask, row % rows, n);
        if (!last)
            return false; // nothing counts in this row
        uint32_t *at = &out[row / PARTS];
        need = need < n ? need : n;
        *at = need > *at ? (uint32_t)need : *at;
        if (row % PARTS == 0 || all < clear[row / PARTS])
            clear[row / PARTS] = (uint32_t)all;
    }
    o->widths = out, o->clear = clear;
    return out[tiles - 1] == n && tiles > 1; // every column counts for some row
}

static bool operand_mask(const Hlo *h, const HloOp *rows, uint32_t i, int64_t m, int64_t n, Mask *mask) {
    uint32_t nk;
    int64_t kind = hlo_ints(rows, AK_BROADCAST_DIMENSIONS, &nk)[i];
    ValueId v = hlo_operand(h, rows, i);
    const HloType *t = hlo_value_type(h, v);
    int64_t again = t->rank >= 2 ? t->dims[t->rank - 2] : 0; // heads of a group have the same rows of it
    bool fits = (kind == FUSED_COLUMNS || kind == FUSED_SAME) && t->dtype == DT_I1 && again && t->dims[t->rank - 1] == n &&
                m % again == 0 && t->elems == again * n && mask_known(h, v, mask);
    mask->rows = again;
    return fits;
}

bool mask_find(Compile *c, OpId rows, int64_t m, int64_t n, const bool *feeds, Masked *out) {
    const Hlo *h = c->hlo;
    const HloOp *op = hlo_at(h, rows);
    const HloRegion *r = hlo_op_region(h, op, 0);
    uint32_t nk = op->noperands;
    ValueId first = r->args, last = first + op->noperands;
    for (uint32_t i = 0; i < r->ops.n; i++) {
        const HloOp *inner = hlo_at(h, r->ops.at[i]);
        if (inner->nresults && inner->results + 1 > last)
            last = inner->results + 1;
    }
    for (uint32_t i = 0; i < nk + r->ops.n; i++) { // operands, then comparisons inside
        ValueId inner = i < nk ? r->args + i : hlo_at(h, r->ops.at[i - nk])->results;
        Mask mask;
        if (i < nk ? !operand_mask(h, op, i, m, n, &mask) : !inner_mask(h, op, r->ops.at[i - nk], &mask))
            continue;
        *out = (Masked){.mask = inner};
        Look l = {.h = h, .mask = inner, .first = first, .n = last - first, .idle = out->idle,
                  .of = ARENA_NEWN(c->scratch, uint8_t, last - first + 1)};
        if (columns_are_nothing(&l, r, feeds))
            return mask.all == n && set_widths(c, &mask, m, n, out);
    }
    return false;
}
