// SPDX-License-Identifier: Apache-2.0
// mask.c — causal attention: half of the scores are masked, and the compiler can see which.
//
// A mask is known when it is a constant, or when this or another row program compares counts (pass/counters.c). A column behind the last unmasked one of 128 rows may be left out when
// what the program makes of it is nothing, whatever the scores: -inf under a maximum or an exponential, zeros under sums and products. A finite number
// instead of -inf, chosen by select, does as well where scores are shown to be so far above it (a tanh, scaled) that the exponential of the
// distance is zero; where they are not, a row of scores as low as that looks at masked columns, and so do we, unless the program has
// asked the run before (-1e9: pass/guards.c). Numbers
// below -2e38 count as -inf: no score is lower than f32's lowest, and those between it and 0.7 of it are a step before their product overflows; a
// row of nothing else sees the columns that count. Each value has a
// fact about its masked columns; a program qualifies when every reduction and every result sees one that changes nothing.
// Of two masks joined by `and` (causal, and a window) what the causal one masks is left out, where that becomes -inf.
// Every row must have a column that counts. Scores are numbers: of a row with NaN or all of -inf this leaves NaN in the columns that count.
#include "pass/mask.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "hlo/affine.h"
#include "pass/rows.h"

#define PARTS 128

#define EXP_IS_ZERO (-256.0) // below -104 it is; bf16 rounds what comes here

typedef enum Class { CLASS_ANY, CLASS_LOW, CLASS_ZERO } Class;
typedef struct Fact { // of masked columns
    Class is;
    double x; // CLASS_LOW: they are this number or lower; -inf: they are that
} Fact;

// --- the mask ----------------------------------------------------------------------------------------

static ValueId whole_rows(const Hlo *h, ValueId v) { // before reshapes that leave rows and columns as they are
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
    bool constant, some; // some: others are masked too
    const uint8_t *data;
    Affine a; // of columns; its counter is the row. Compared with zero
    int64_t direction;
} Mask;

// Values that a row program works with: a vector that counts rows, or columns, is an argument of it.
typedef struct Inside {
    const HloOp *rows;
    int64_t m, n;
} Inside;

static bool vector_count(const AffineReader *reader, ValueId v, Affine *out) {
    const Inside *in = reader->of;
    const Hlo *h = reader->h;
    ValueId args = hlo_op_region(h, in->rows, 0)->args;
    if (h->values.at[v].def)
        return false; // by what makes it
    const int64_t *kinds = rows_kinds(in->rows);
    assert(v - args < in->rows->noperands);
    int64_t kind = kinds[v - args];
    ValueId from = whole_rows(h, hlo_operand(h, in->rows, v - args));
    const HloOp *op = hlo_def_as(h, from, HLO_IOTA);
    const HloType *t = hlo_value_type(h, from);
    out->at = (Form){.known = op && dtype_is_float(t->dtype) && t->dims[hlo_int(op, AK_IOTA_DIMENSION, 0)] == t->elems &&
                              ((kind == FUSED_ROWS && t->elems == in->m) || (kind == FUSED_COLUMNS && t->elems == in->n)),
                     .loop = kind == FUSED_ROWS, .mul = kind == FUSED_ROWS};
    out->by[0] = kind == FUSED_COLUMNS;
    return true;
}

static void row_range(const AffineReader *reader, uint32_t loop, int64_t *first, int64_t *last) {
    assert(loop == 1);
    *first = 0, *last = ((const Inside *)reader->of)->m - 1;
}

static bool mask_at(const Mask *m, int64_t row, int64_t col) { // of the whole mask
    if (m->constant)
        return m->data[row * m->all + col] != 0;
    return affine_compare(m->direction, m->a.at.mul * row + m->a.by[0] * col + m->a.at.add);
}

static bool inner_mask(const Hlo *h, const HloOp *rows, OpId id, Mask *m);

// Of two masks the one that masks the first row's last columns.
static bool joint_mask(const Hlo *h, const HloOp *rows, const HloOp *op, Mask *m) {
    for (uint32_t i = 0; i < op->noperands; i++) {
        OpId def = h->values.at[hlo_operand(h, op, i)].def;
        if (def && inner_mask(h, rows, def, m) && !mask_at(m, 0, m->all - 1))
            return m->some = true;
    }
    return false;
}

// A comparison inside a row program.
static bool inner_mask(const Hlo *h, const HloOp *rows, OpId id, Mask *m) {
    const HloOp *op = hlo_at(h, id);
    if (op->code == HLO_AND)
        return joint_mask(h, rows, op, m);
    Inside in = {.rows = rows};
    AffineReader r = {h, &in, vector_count, row_range};
    Affine x, y;
    *m = (Mask){.h = h};
    if (op->code != HLO_COMPARE || !rows_shape(h, rows, &in.m, &in.n) || !affine_read(&r, hlo_operand(h, op, 0), &x) ||
        !affine_read(&r, hlo_operand(h, op, 1), &y))
        return false;
    m->all = in.n;
    m->a = affine_sum(&x, &y, -1);
    m->direction = hlo_int(op, AK_COMPARISON_DIRECTION, -1);
    return m->a.by[0];
}

// A row program that makes nothing but the mask.
static bool made_mask(const Hlo *h, OpId rows, ValueId v, Mask *m) {
    const HloOp *op = hlo_at(h, rows);
    Mask in;
    const HloRegion *r = hlo_op_region(h, op, 0);
    OpId def = h->values.at[hlo_operand(h, hlo_at(h, r->ops.at[r->ops.n - 1]), v - op->results)].def;
    if (!def || !inner_mask(h, op, def, &in) || in.all != m->all)
        return false;
    m->a = in.a, m->direction = in.direction, m->some = in.some;
    return true;
}

static bool mask_known(const Hlo *h, ValueId v, Mask *m) {
    *m = (Mask){.h = h};
    v = whole_rows(h, v);
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

// --- what becomes of masked columns ------------------------------------------------------------------

typedef struct Look {
    const Hlo *h;
    const HloOp *rows;
    ValueId mask; // inside the region
    Mask as;      // what it is
    ValueId first; // of `of`
    Fact *of;      // per value inside the region
    uint32_t n;
    OpId *idle;
    uint32_t nidle;
    double bound;     // 0, or: of operands nothing else is known of, no number is below minus this
    uint64_t *leaves; // … which of them that was asked of, as bits
} Look;

static Fact of_number(const Hlo *h, ValueId v) {
    double x;
    if (!splat_f64(h, v, &x))
        return (Fact){CLASS_ANY, 0};
    return x == 0 ? (Fact){CLASS_ZERO, 0} : x < 0 ? (Fact){CLASS_LOW, x <= MASK_NOTHING ? -HUGE_VAL : x} : (Fact){CLASS_ANY, 0};
}

static Fact fact_of(const Look *l, ValueId v) {
    Fact f = v >= l->first && v - l->first < l->n ? l->of[v - l->first] : (Fact){CLASS_ANY, 0};
    return f.is == CLASS_ANY ? of_number(l->h, v) : f;
}

static bool is_row_value(const Hlo *h, ValueId v) { // one number for the row
    OpId def = h->values.at[v].def;
    return splat_value(h, v) || (def && hlo_at(h, def)->code == HLO_BROADCAST_IN_DIM);
}

static double scale_of(const Hlo *h, ValueId v) { // a positive number, or 0
    double x;
    return splat_f64(h, v, &x) && x > 0 && x < HUGE_VAL ? x : 0;
}

static bool same_mask(const Look *l, const HloOp *rows, ValueId v) { // as the one we look at, perhaps in another program
    const HloRegion *r = hlo_op_region(l->h, rows, 0);
    OpId def = l->h->values.at[v].def;
    Mask m;
    if (l->as.some)
        return false; // columns that count may be masked
    if (rows == l->rows && v == l->mask)
        return true;
    if (!def && v >= r->args && v - r->args < rows->noperands)
        return l->mask - hlo_op_region(l->h, l->rows, 0)->args < l->rows->noperands &&
               hlo_operand(l->h, rows, v - r->args) == hlo_operand(l->h, l->rows, l->mask - hlo_op_region(l->h, l->rows, 0)->args);
    return def && !l->as.constant && inner_mask(l->h, rows, def, &m) && !m.some && m.all == l->as.all && m.direction == l->as.direction &&
           m.a.at.mul == l->as.a.at.mul && m.a.by[0] == l->as.a.by[0] && m.a.at.add == l->as.a.at.add;
}

static double low_of(const Look *l, const HloOp *rows, ValueId v, int depth);

// By what makes it: a number per row of another program.
static double low_of_maker(const Look *l, ValueId from, int depth) {
    const Hlo *h = l->h;
    from = before_reshapes(h, from);
    OpId def = h->values.at[from].def;
    if (!def || hlo_at(h, def)->code != HLO_ROWS)
        return -HUGE_VAL;
    const HloOp *maker = hlo_at(h, def);
    const HloRegion *r = hlo_op_region(h, maker, 0);
    return low_of(l, maker, hlo_operand(h, hlo_at(h, r->ops.at[r->ops.n - 1]), from - maker->results), depth + 1);
}

static double low_of_argument(const Look *l, const HloOp *rows, ValueId v, int depth) {
    uint32_t k = v - hlo_op_region(l->h, rows, 0)->args;
    if (k >= rows->noperands)
        return -HUGE_VAL;
    int64_t kind = rows_kinds(rows)[k];
    double known = kind == FUSED_ROWS ? low_of_maker(l, hlo_operand(l->h, rows, k), depth) : -HUGE_VAL;
    bool asks = known == -HUGE_VAL && l->bound > 0 && rows == l->rows && k < 64 && (kind == FUSED_ROWS || kind == FUSED_SAME) &&
                dtype_is_float(hlo_value_type(l->h, v)->dtype);
    if (asks)
        *l->leaves |= (uint64_t)1 << k;
    return asks ? -l->bound : known;
}

// No number of the columns that count is lower, by what makes it; -inf: nothing is known. A row's maximum is one of them.
static double low_of(const Look *l, const HloOp *rows, ValueId v, int depth) {
    const Hlo *h = l->h;
    double c;
    if (splat_value(h, v))
        return splat_f64(h, v, &c) ? c : -HUGE_VAL;
    OpId def = h->values.at[v].def;
    if (depth > 12)
        return -HUGE_VAL;
    if (!def)
        return low_of_argument(l, rows, v, depth);
    const HloOp *op = hlo_at(h, def);
    ValueId a = op->noperands ? hlo_operand(h, op, 0) : 0;
    switch (op->code) {
    case HLO_CONVERT: // here and below: rounding may lead away from zero
        return dtype_is_float(hlo_value_type(h, a)->dtype) ? fmin(1.01 * low_of(l, rows, a, depth + 1), 0) : -HUGE_VAL;
    case HLO_BROADCAST_IN_DIM:
        return low_of(l, rows, a, depth + 1);
    case HLO_REDUCE:
        return reduce_body(h, op) == HLO_MAXIMUM ? low_of(l, rows, a, depth + 1) : -HUGE_VAL;
    case HLO_SELECT:
        return same_mask(l, rows, a) ? low_of(l, rows, hlo_operand(h, op, 1), depth + 1) : -HUGE_VAL;
    case HLO_MULTIPLY:
        c = scale_of(h, hlo_operand(h, op, 1));
        return c ? fmin(1.01 * c * low_of(l, rows, a, depth + 1), 0) : -HUGE_VAL;
    case HLO_DIVIDE:
        c = scale_of(h, hlo_operand(h, op, 1));
        return c ? fmin(1.01 / c * low_of(l, rows, a, depth + 1), 0) : -HUGE_VAL;
    case HLO_TANH:
        return -1;
    case HLO_EXPONENTIAL:
    case HLO_ABS:
    case HLO_LOGISTIC:
        return 0;
    default:
        return -HUGE_VAL;
    }
}

static Fact low(double x) { return (Fact){x < 0 ? CLASS_LOW : CLASS_ANY, x}; }

static Fact fact_for(const Look *l, const HloOp *op) {
    const Hlo *h = l->h;
    ValueId a = op->noperands ? hlo_operand(h, op, 0) : 0, b = op->noperands > 1 ? hlo_operand(h, op, 1) : 0;
    Fact fa = a ? fact_of(l, a) : low(0), fb = b ? fact_of(l, b) : low(0), any = {CLASS_ANY, 0}, fc;
    bool zeros = fa.is == CLASS_ZERO && fb.is == CLASS_ZERO;
    switch (op->code) {
    case HLO_SELECT:
        fc = fact_of(l, hlo_operand(h, op, 2));
        if (a == l->mask)
            return fc;
        return fb.is == fc.is ? (Fact){fc.is, fmax(fb.x, fc.x)} : any; // dropout: zeros either way
    case HLO_CONVERT:
        return fa.is == CLASS_LOW ? low(0.99 * fa.x) : fa;
    case HLO_NEGATE:
        return fa.is == CLASS_ZERO ? fa : any;
    case HLO_MULTIPLY:
        if (fa.is == CLASS_ZERO || fb.is == CLASS_ZERO)
            return (Fact){CLASS_ZERO, 0};
        return fa.is == CLASS_LOW && scale_of(h, b) ? low(fa.x * scale_of(h, b)) : any;
    case HLO_DIVIDE:
        return fa.is == CLASS_ZERO ? fa : fa.is == CLASS_LOW && scale_of(h, b) ? low(fa.x / scale_of(h, b)) : any;
    case HLO_ADD:
        if (zeros)
            return fa;
        return (fa.is == CLASS_LOW && fa.x == -HUGE_VAL) || (fb.is == CLASS_LOW && fb.x == -HUGE_VAL) ? low(-HUGE_VAL) : any;
    case HLO_SUBTRACT:
        if (zeros || fa.is != CLASS_LOW)
            return zeros ? fa : any;
        return fa.x == -HUGE_VAL ? fa : is_row_value(h, b) ? low(fa.x - low_of(l, l->rows, b, 0)) : any;
    case HLO_EXPONENTIAL:
        return fa.is == CLASS_LOW && fa.x <= EXP_IS_ZERO ? (Fact){CLASS_ZERO, 0} : any;
    default:
        return any;
    }
}

static bool reduces_nothing(const Look *l, const HloOp *op) {
    Fact f = fact_of(l, hlo_operand(l->h, op, 0));
    switch (reduce_body(l->h, op)) {
    case HLO_ADD:
        return f.is == CLASS_ZERO;
    case HLO_MAXIMUM:
        return f.is == CLASS_LOW && (f.x == -HUGE_VAL || f.x < low_of(l, l->rows, hlo_operand(l->h, op, 0), 0));
    default:
        return false;
    }
}

static bool columns_are_nothing(Look *l, const HloRegion *r, const bool *feeds) {
    const Hlo *h = l->h;
    for (uint32_t i = 0; i + 1 < r->ops.n; i++) {
        const HloOp *op = hlo_at(h, r->ops.at[i]);
        if (op->code == HLO_REDUCE) {
            if (!reduces_nothing(l, op))
                return false;
            continue;
        }
        bool zeros = op->code == HLO_SELECT && !l->as.some && hlo_operand(h, op, 0) == l->mask &&
                     fact_of(l, hlo_operand(h, op, 1)).is == CLASS_ZERO && of_number(h, hlo_operand(h, op, 2)).is == CLASS_ZERO;
        if (zeros && l->nidle < MASK_IDLE)
            l->idle[l->nidle++] = r->ops.at[i];
        if (op->results >= l->first && op->results - l->first < l->n)
            l->of[op->results - l->first] = fact_for(l, op);
    }
    const HloOp *ret = hlo_at(h, r->ops.at[r->ops.n - 1]);
    for (uint32_t k = 0; k < ret->noperands; k++) {
        ValueId v = hlo_operand(h, ret, k);
        if (hlo_value_type(h, v)->rank == 1 && (!feeds[k] || fact_of(l, v).is != CLASS_ZERO))
            return false;
    }
    return true;
}

// Of a row, the columns up to the last one that counts, and those before the first one that does not.
typedef struct Reach {
    int64_t last, clear;
} Reach;

static Reach reach_constant(const uint8_t *flags, int64_t n) {
    const uint8_t *hole = memchr(flags, 0, (size_t)n);
    Reach r = {.last = n, .clear = hole ? hole - flags : n};
    while (r.last > r.clear && !flags[r.last - 1])
        r.last--;
    return r;
}

static Reach reach_affine(const Mask *mask, int64_t row, int64_t n) {
    Reach r = {n, 0};
    if (mask->direction == CMP_EQ || mask->direction == CMP_NE) { // no order: one by one
        while (r.last > 0 && !mask_at(mask, row, r.last - 1))
            r.last--;
        while (r.clear < n && mask_at(mask, row, r.clear))
            r.clear++;
        return r;
    }
    bool begins = mask_at(mask, row, 0), ends = mask_at(mask, row, n - 1);
    if (begins == ends || ends)
        return begins == ends ? (Reach){begins ? n : 0, begins ? n : 0} : r;
    while (r.last - r.clear > 1) { // true at clear, false at last
        int64_t middle = (r.clear + r.last) / 2;
        *(mask_at(mask, row, middle) ? &r.clear : &r.last) = middle;
    }
    return (Reach){r.last, r.last};
}

static Reach reach_of(const Mask *mask, int64_t row, int64_t n) {
    return mask->constant ? reach_constant(mask->data + row * mask->all, n) : reach_affine(mask, row, n);
}

static bool set_widths(Compile *c, const Mask *mask, int64_t m, int64_t n, Masked *o) {
    int64_t rows = mask->rows ? mask->rows : m, tiles = (m + PARTS - 1) / PARTS;
    uint32_t *out = ARENA_NEWN(c->scratch, uint32_t, (size_t)tiles + 1), *clear = ARENA_NEWN(c->scratch, uint32_t, (size_t)tiles + 1);
    for (int64_t row = 0; row < m; row++) {
        Reach r = reach_of(mask, row % rows, n);
        int64_t need = (r.last + PARTS - 1) / PARTS * PARTS;
        if (!r.last)
            return false; // nothing counts in this row
        uint32_t *at = &out[row / PARTS];
        need = need < n ? need : n;
        *at = need > *at ? (uint32_t)need : *at;
        if (row % PARTS == 0 || r.clear < clear[row / PARTS] || mask->some)
            clear[row / PARTS] = mask->some ? 0 : (uint32_t)r.clear;
    }
    o->widths = out, o->clear = clear;
    return out[tiles - 1] == n && tiles > 1; // every column counts for some row
}

static bool operand_mask(const Hlo *h, const HloOp *rows, uint32_t i, int64_t m, int64_t n, Mask *mask) {
    int64_t kind = rows_kinds(rows)[i];
    ValueId v = hlo_operand(h, rows, i);
    const HloType *t = hlo_value_type(h, v);
    int64_t again = t->rank >= 2 ? t->dims[t->rank - 2] : 0; // heads of a group have the same rows of it
    bool fits = (kind == FUSED_COLUMNS || kind == FUSED_SAME) && t->dtype == DT_I1 && again && t->dims[t->rank - 1] == n &&
                m % again == 0 && t->elems == again * n && mask_known(h, v, mask);
    mask->rows = again;
    return fits;
}

bool mask_find_if(Compile *c, OpId rows, int64_t m, int64_t n, const bool *feeds, double bound, Masked *out) {
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
        Look l = {.h = h, .rows = op, .mask = inner, .as = mask, .first = first, .n = last - first, .idle = out->idle,
                  .of = ARENA_NEWN(c->scratch, Fact, last - first + 1), .bound = bound, .leaves = &out->leaves};
        if (columns_are_nothing(&l, r, feeds))
            return mask.all == n && set_widths(c, &mask, m, n, out);
    }
    return false;
}

bool mask_find(Compile *c, OpId rows, int64_t m, int64_t n, const bool *feeds, Masked *out) {
    return mask_find_if(c, rows, m, n, feeds, 0, out);
}
