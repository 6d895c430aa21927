// SPDX-License-Identifier: Apache-2.0
// gen.c — the generator: gen.h says what a program looks like.
#include "tests/random/gen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t gen_rnd(Gen *g, uint32_t below) {
    uint64_t z = (g->rng += 0x9e3779b97f4a7c15u); // splitmix64
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 33) % below;
}

int64_t gen_elems(const GenType *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

static void out(Gen *g, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(g->text + g->n, GEN_TEXT_MAX - g->n, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= GEN_TEXT_MAX - g->n)
        abort();
    g->n += (size_t)n;
}

static void out_type(Gen *g, const GenType *t) {
    out(g, "tensor<");
    for (int i = 0; i < t->rank; i++)
        out(g, "%lldx", (long long)t->dims[i]);
    out(g, "%s>", dtype_row(t->dtype)->name);
}

static void out_list(Gen *g, const int64_t *v, int n) {
    out(g, "[");
    for (int i = 0; i < n; i++)
        out(g, "%s%lld", i ? ", " : "", (long long)v[i]);
    out(g, "]");
}

static int add_value(Gen *g, GenType t, bool exact) {
    if (g->nvals == g->cap) {
        g->cap = g->cap ? g->cap * 2 : 256;
        g->vals = realloc(g->vals, (size_t)g->cap * sizeof *g->vals);
        if (!g->vals)
            abort();
    }
    g->vals[g->nvals++] = (GenValue){.name = g->next, .type = t, .exact = exact};
    return g->next++;
}

static bool same_type(const GenType *a, const GenType *b) {
    return a->dtype == b->dtype && a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * 8);
}

// --- element types -------------------------------------------------------------------------------------

static const int all_dtypes[] = {DT_I1, DT_I8, DT_I16, DT_I32, DT_I32, DT_I64, DT_UI8, DT_UI16, DT_UI32,
                                 DT_UI64, DT_BF16, DT_F16, DT_F32, DT_F32, DT_F32, DT_F64};
static const int rare_dtypes[] = {DT_I4, DT_UI4, DT_F8E4M3FN, DT_F8E5M2, DT_F8E4M3, DT_F8E4M3FNUZ,
                                  DT_F8E5M2FNUZ, DT_F8E4M3B11FNUZ, DT_F4E2M1FN, DT_C64, DT_F8E3M4, DT_I2, DT_UI2, DT_F6E2M3FN,
                                  DT_F6E3M2FN};
// The last ones: XLA has no f6, and its CPU sorts 2-bit numbers wrongly and rounds 1.0 of f8E3M4 to NaN.
#define XLA_LACKS 5

static char class_of(int dtype) { // P bool, S signed, U unsigned, F float, C complex
    switch (dtype_row(dtype)->cls) {
    case DC_BOOL:
        return 'P';
    case DC_SINT:
        return 'S';
    case DC_UINT:
        return 'U';
    case DC_COMPLEX:
        return 'C';
    default:
        return 'F';
    }
}

static int any_dtype(Gen *g) { return g->dtypes[gen_rnd(g, (uint32_t)g->ndtypes)]; }

static GenType any_type(Gen *g) {
    GenType t = g->shapes[gen_rnd(g, (uint32_t)g->nshapes)];
    t.dtype = any_dtype(g);
    return t;
}

static GenType scalar(int dtype) { return (GenType){.dtype = dtype}; }

// --- values --------------------------------------------------------------------------------------------

static void out_literal(Gen *g, int dtype) {
    int v = (int)gen_rnd(g, 9) - 4;
    switch (class_of(dtype)) {
    case 'P':
        out(g, v > 0 ? "true" : "false");
        return;
    case 'U':
        out(g, "%d", (v < 0 ? -v : v) % (dtype_row(dtype)->bits < 4 ? 4 : 16));
        return;
    case 'S':
        out(g, "%d", dtype_row(dtype)->bits < 4 ? v / 3 : v);
        return;
    case 'C':
        out(g, "(%d.0, %d.5)", v, (int)gen_rnd(g, 5));
        return;
    default:
        out(g, "%d.%s", v, gen_rnd(g, 2) ? "5" : "0");
    }
}

static int constant(Gen *g, GenType t) {
    int64_t n = gen_elems(&t);
    bool list = t.rank == 1 && n > 0 && n < 20 && gen_rnd(g, 2);
    out(g, "%%v%d = stablehlo.constant dense<", g->next);
    if (list)
        out(g, "[");
    for (int64_t i = 0; i < (list ? n : 1); i++) {
        if (i)
            out(g, ", ");
        out_literal(g, t.dtype);
    }
    out(g, list ? "]> : " : "> : ");
    out_type(g, &t);
    out(g, "\n");
    return add_value(g, t, true);
}

// A value of this type in scope, or a new constant.
static int pick(Gen *g, GenType t, bool need_exact, bool *exact) {
    if (exact)
        *exact = true;
    uint32_t at = g->nvals ? gen_rnd(g, (uint32_t)g->nvals) : 0;
    for (int i = 0; i < g->nvals; i++) {
        const GenValue *v = &g->vals[((int)at + i) % g->nvals];
        if (same_type(&v->type, &t) && (v->exact || !need_exact)) {
            if (exact)
                *exact = v->exact;
            return v->name;
        }
    }
    return constant(g, t);
}

static const GenValue *pick_any(Gen *g, bool need_exact) { // copy before making new values
    for (int i = 0; i < 20; i++) {
        const GenValue *v = &g->vals[gen_rnd(g, (uint32_t)g->nvals)];
        if (v->exact || !need_exact)
            return v;
    }
    return NULL;
}

// --- elementwise ---------------------------------------------------------------------------------------

typedef struct EwRow {
    const char *op, *classes;
    int operands;
    bool exact; // for floats
} EwRow;

// Left out because XLA's CPU differs from the specification there: add of bool, leading zeros of negative numbers.
static const EwRow ew_rows[] = {
    {"add", "SUF", 2, true},           {"subtract", "SUF", 2, true},      {"multiply", "PSUF", 2, true},
    {"divide", "SUF", 2, true},        {"remainder", "SUF", 2, true},     {"maximum", "PSUF", 2, true},
    {"minimum", "PSUF", 2, true},      {"and", "PSU", 2, true},           {"or", "PSU", 2, true},
    {"xor", "PSU", 2, true},           {"shift_left", "SU", 2, true},     {"shift_right_logical", "SU", 2, true},
    {"shift_right_arithmetic", "SU", 2, true},
    {"power", "SU", 2, true},          {"atan2", "F", 2, false},          {"power", "F", 2, false},
    {"negate", "SUF", 1, true},        {"abs", "SF", 1, true},            {"sign", "SF", 1, true},
    {"not", "PSU", 1, true},           {"popcnt", "SU", 1, true},         {"count_leading_zeros", "U", 1, true},
    {"ceil", "F", 1, true},            {"floor", "F", 1, true},           {"round_nearest_afz", "F", 1, true},
    {"round_nearest_even", "F", 1, true},
    {"sqrt", "F", 1, true},            {"exponential", "F", 1, false},    {"exponential_minus_one", "F", 1, false},
    {"log", "F", 1, false},            {"log_plus_one", "F", 1, false},   {"tanh", "F", 1, false},
    {"logistic", "F", 1, false},       {"sine", "F", 1, false},           {"cosine", "F", 1, false},
    {"tan", "F", 1, false},            {"rsqrt", "F", 1, false},          {"cbrt", "F", 1, false},
};
#define EW_ROWS (sizeof ew_rows / sizeof *ew_rows)

static void gen_elementwise(Gen *g) {
    GenType t = any_type(g);
    const EwRow *r = &ew_rows[gen_rnd(g, EW_ROWS)];
    if (!strchr(r->classes, class_of(t.dtype)))
        return;
    bool counts_bits = !strcmp(r->op, "popcnt") || !strcmp(r->op, "count_leading_zeros");
    if (g->plain && counts_bits && dtype_row(t.dtype)->bits < 8)
        return; // XLA counts those of the byte that holds the number
    if (g->plain && !strcmp(r->op, "power") && class_of(t.dtype) == 'S')
        return; // in XLA -1 to a negative power is 0, where StableHLO's interpreter has 1 or -1
    int a = pick(g, t, true, NULL), b = r->operands > 1 ? pick(g, t, true, NULL) : 0;
    out(g, "%%v%d = stablehlo.%s %%v%d", g->next, r->op, a);
    if (r->operands > 1)
        out(g, ", %%v%d", b);
    out(g, " : ");
    out_type(g, &t);
    out(g, "\n");
    add_value(g, t, r->exact || class_of(t.dtype) != 'F');
}

static void gen_convert(Gen *g) {
    GenType from = any_type(g), to = from;
    to.dtype = any_dtype(g);
    if (class_of(from.dtype) == 'C' || class_of(to.dtype) == 'C')
        return;
    int a = pick(g, from, true, NULL);
    out(g, "%%v%d = stablehlo.convert %%v%d : (", g->next, a);
    out_type(g, &from);
    out(g, ") -> ");
    out_type(g, &to);
    out(g, "\n");
    add_value(g, to, true);
}

static void gen_select(Gen *g) {
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    GenType c = any_type(g), p = c, t = c;
    p.dtype = DT_I1;
    t.dtype = any_dtype(g);
    if (class_of(c.dtype) == 'C')
        return;
    int a = pick(g, c, true, NULL), b = pick(g, c, true, NULL);
    bool ex, ey;
    int x = pick(g, t, false, &ex), y = pick(g, t, false, &ey);
    out(g, "%%v%d = stablehlo.compare %s, %%v%d, %%v%d : (", g->next, directions[gen_rnd(g, 6)], a, b);
    out_type(g, &c);
    out(g, ", ");
    out_type(g, &c);
    out(g, ") -> ");
    out_type(g, &p);
    out(g, "\n");
    int pred = add_value(g, p, true);
    out(g, "%%v%d = stablehlo.select %%v%d, %%v%d, %%v%d : ", g->next, pred, x, y);
    out_type(g, &p);
    out(g, ", ");
    out_type(g, &t);
    out(g, "\n");
    add_value(g, t, ex && ey);
}

static void gen_clamp(Gen *g) {
    GenType t = any_type(g);
    if (t.dtype == DT_I1 || class_of(t.dtype) == 'C')
        return;
    int lo = pick(g, t, true, NULL), x = pick(g, t, true, NULL), hi = pick(g, t, true, NULL);
    out(g, "%%v%d = stablehlo.clamp %%v%d, %%v%d, %%v%d : ", g->next, lo, x, hi);
    out_type(g, &t);
    out(g, "\n");
    add_value(g, t, true);
}

// --- movement ------------------------------------------------------------------------------------------

static void out_arrow(Gen *g, const GenType *from, const GenType *to) {
    out(g, " : (");
    out_type(g, from);
    out(g, ") -> ");
    out_type(g, to);
    out(g, "\n");
}

static void gen_reshape(Gen *g) {
    const GenValue *p = pick_any(g, false);
    if (!p)
        return;
    GenValue v = *p;
    GenType to = {.dtype = v.type.dtype};
    int64_t n = gen_elems(&v.type);
    if (gen_rnd(g, 2) && v.type.rank > 1) { // drop to one axis, or split off a factor
        to.rank = 1, to.dims[0] = n;
    } else if (n % 2 == 0 && n) {
        to.rank = 2, to.dims[0] = 2, to.dims[1] = n / 2;
    } else {
        to.rank = 2, to.dims[0] = n, to.dims[1] = 1;
    }
    out(g, "%%v%d = stablehlo.reshape %%v%d", g->next, v.name);
    out_arrow(g, &v.type, &to);
    add_value(g, to, v.exact);
}

static void gen_transpose(Gen *g) {
    const GenValue *p = pick_any(g, false);
    if (!p || p->type.rank < 2)
        return;
    GenValue v = *p;
    int64_t perm[GEN_RANK_MAX] = {0, 1, 2, 3};
    for (int i = v.type.rank - 1; i > 0; i--) {
        uint32_t j = gen_rnd(g, (uint32_t)i + 1);
        int64_t x = perm[i];
        perm[i] = perm[j], perm[j] = x;
    }
    GenType to = v.type;
    for (int i = 0; i < to.rank; i++)
        to.dims[i] = v.type.dims[perm[i]];
    out(g, "%%v%d = stablehlo.transpose %%v%d, dims = ", g->next, v.name);
    out_list(g, perm, to.rank);
    out_arrow(g, &v.type, &to);
    add_value(g, to, v.exact);
}

static void gen_broadcast(Gen *g) {
    GenType to = any_type(g), from = {.dtype = to.dtype};
    int64_t dims[GEN_RANK_MAX];
    for (int i = 0; i < to.rank; i++)
        if (gen_rnd(g, 2)) {
            dims[from.rank] = i;
            from.dims[from.rank++] = gen_rnd(g, 3) ? to.dims[i] : 1;
        }
    bool exact;
    int a = pick(g, from, false, &exact);
    out(g, "%%v%d = stablehlo.broadcast_in_dim %%v%d, dims = ", g->next, a);
    out_list(g, dims, from.rank);
    out_arrow(g, &from, &to);
    add_value(g, to, exact);
}

static void gen_slice(Gen *g) {
    const GenValue *p = pick_any(g, false);
    if (!p || !p->type.rank)
        return;
    GenValue v = *p;
    GenType to = v.type;
    out(g, "%%v%d = stablehlo.slice %%v%d [", g->next, v.name);
    for (int i = 0; i < to.rank; i++) {
        int64_t n = v.type.dims[i], b = gen_rnd(g, (uint32_t)n + 1), e = b + gen_rnd(g, (uint32_t)(n - b) + 1);
        int64_t step = 1 + gen_rnd(g, 2);
        to.dims[i] = (e - b + step - 1) / step;
        out(g, "%s%lld:%lld:%lld", i ? ", " : "", (long long)b, (long long)e, (long long)step);
    }
    out(g, "]");
    out_arrow(g, &v.type, &to);
    add_value(g, to, v.exact);
}

static void gen_pad(Gen *g) {
    const GenValue *p = pick_any(g, false);
    if (!p || !p->type.rank)
        return;
    GenValue v = *p;
    GenType to = v.type, s = scalar(v.type.dtype);
    int64_t lo[GEN_RANK_MAX], hi[GEN_RANK_MAX], in[GEN_RANK_MAX];
    for (int i = 0; i < to.rank; i++) {
        int64_t n = v.type.dims[i];
        in[i] = gen_rnd(g, 3) == 0, lo[i] = (int64_t)gen_rnd(g, 4) - 1, hi[i] = (int64_t)gen_rnd(g, 4) - 1;
        to.dims[i] = (n ? n + (n - 1) * in[i] : 0) + lo[i] + hi[i];
        if (to.dims[i] < 0 || to.dims[i] > 20)
            return;
    }
    int z = pick(g, s, true, NULL);
    out(g, "%%v%d = stablehlo.pad %%v%d, %%v%d, low = ", g->next, v.name, z);
    out_list(g, lo, to.rank);
    out(g, ", high = ");
    out_list(g, hi, to.rank);
    out(g, ", interior = ");
    out_list(g, in, to.rank);
    out(g, " : (");
    out_type(g, &v.type);
    out(g, ", ");
    out_type(g, &s);
    out(g, ") -> ");
    out_type(g, &to);
    out(g, "\n");
    add_value(g, to, v.exact);
}

static void gen_concatenate(Gen *g) {
    GenType t = any_type(g), to = t;
    if (!t.rank)
        return;
    int dim = (int)gen_rnd(g, (uint32_t)t.rank);
    bool ea, eb;
    int a = pick(g, t, false, &ea), b = pick(g, t, false, &eb);
    to.dims[dim] *= 2;
    out(g, "%%v%d = stablehlo.concatenate %%v%d, %%v%d, dim = %d : (", g->next, a, b, dim);
    out_type(g, &t);
    out(g, ", ");
    out_type(g, &t);
    out(g, ") -> ");
    out_type(g, &to);
    out(g, "\n");
    add_value(g, to, ea && eb);
}

static void gen_reverse(Gen *g) {
    const GenValue *p = pick_any(g, false);
    if (!p || !p->type.rank)
        return;
    GenValue v = *p;
    out(g, "%%v%d = stablehlo.reverse %%v%d, dims = [%u] : ", g->next, v.name,
        gen_rnd(g, (uint32_t)v.type.rank));
    out_type(g, &v.type);
    out(g, "\n");
    add_value(g, v.type, v.exact);
}

static void gen_iota(Gen *g) {
    GenType t = any_type(g);
    if (!t.rank || t.dtype == DT_I1 || class_of(t.dtype) == 'C' || dtype_row(t.dtype)->bits < 8)
        return;
    out(g, "%%v%d = stablehlo.iota dim = %u : ", g->next, gen_rnd(g, (uint32_t)t.rank));
    out_type(g, &t);
    out(g, "\n");
    add_value(g, t, true);
}

static void gen_dynamic(Gen *g) { // dynamic_slice or dynamic_update_slice
    GenType t = any_type(g), part = t, index = scalar(DT_I32);
    if (!t.rank)
        return;
    for (int i = 0; i < t.rank; i++)
        part.dims[i] = gen_rnd(g, (uint32_t)t.dims[i] + 1);
    bool update = gen_rnd(g, 2), ea, eu = true;
    int at[GEN_RANK_MAX], a = pick(g, t, false, &ea), u = update ? pick(g, part, false, &eu) : 0;
    for (int i = 0; i < t.rank; i++)
        at[i] = pick(g, index, true, NULL);
    out(g, "%%v%d = stablehlo.dynamic_%s %%v%d", g->next, update ? "update_slice" : "slice", a);
    if (update)
        out(g, ", %%v%d", u);
    for (int i = 0; i < t.rank; i++)
        out(g, ", %%v%d", at[i]);
    if (!update) {
        out(g, ", sizes = ");
        out_list(g, part.dims, part.rank);
    }
    out(g, " : (");
    out_type(g, &t);
    if (update)
        out(g, ", "), out_type(g, &part);
    for (int i = 0; i < t.rank; i++)
        out(g, ", tensor<i32>");
    out(g, ") -> ");
    out_type(g, update ? &t : &part);
    out(g, "\n");
    add_value(g, update ? t : part, ea && eu);
}

// --- reductions, products, sorts -------------------------------------------------------------------------

// The init value of a reduction may be used any number of times, so only the identity gives one answer.
static int identity(Gen *g, int dtype, const char *op) {
    const DtypeRow *row = dtype_row(dtype);
    char cls = class_of(dtype);
    bool max = !strcmp(op, "maximum"), ones = !strcmp(op, "multiply") || !strcmp(op, "and") || !strcmp(op, "minimum");
    uint64_t top = 1ull << (row->bits - 1);
    out(g, "%%v%d = stablehlo.constant dense<", g->next);
    if (cls == 'P')
        out(g, ones ? "true" : "false");
    else if (cls == 'F' && (max || ones)) // an infinity by its bits
        out(g, "0x%0*llX", row->bits / 4,
            (unsigned long long)((((1ull << row->exp_bits) - 1) << row->man_bits) | (max ? top : 0)));
    else if (!strcmp(op, "multiply"))
        out(g, "1");
    else if (cls == 'S' && !strcmp(op, "and"))
        out(g, "-1");
    else if (max && cls == 'S')
        out(g, "-%llu", (unsigned long long)top);
    else if (!strcmp(op, "minimum") && cls == 'S')
        out(g, "%llu", (unsigned long long)(top - 1));
    else if (ones)
        out(g, "%llu", (unsigned long long)(top - 1 + top));
    else
        out(g, cls == 'F' ? "0.0" : "0");
    out(g, "> : tensor<%s>\n", row->name);
    return add_value(g, scalar(dtype), true);
}

static void gen_reduce(Gen *g) {
    static const char *const ops[] = {"add", "maximum", "minimum", "multiply", "and", "or"};
    GenType t = any_type(g), to = {.dtype = t.dtype}, s = scalar(t.dtype);
    uint32_t k = gen_rnd(g, 6);
    char cls = class_of(t.dtype);
    bool sum = cls == 'F' && k == 0;
    if (!t.rank || (cls == 'F' && (k >= 3 || dtype_row(t.dtype)->flavour != FF_IEEE)) || cls == 'C')
        return; // an identity must be at hand
    if (sum && dtype_bytes(t.dtype) < 4)
        return; // the evaluator rounds each partial sum to the narrow type, the chip only the last
    int64_t dims[GEN_RANK_MAX];
    int n = 0;
    for (int i = 0; i < t.rank; i++)
        if (gen_rnd(g, 2))
            dims[n++] = i;
        else
            to.dims[to.rank++] = t.dims[i];
    int a = pick(g, t, true, NULL), z = identity(g, t.dtype, ops[k]);
    out(g, "%%v%d = stablehlo.reduce(%%v%d init: %%v%d) applies stablehlo.%s across dimensions = ", g->next, a, z,
        ops[k]);
    out_list(g, dims, n);
    out(g, " : (");
    out_type(g, &t);
    out(g, ", ");
    out_type(g, &s);
    out(g, ") -> ");
    out_type(g, &to);
    out(g, "\n");
    add_value(g, to, !sum);
}

static void gen_argmax(Gen *g) { // two inputs, a body with compares: a real scalar program
    GenType t = any_type(g);
    if (!t.rank || !strchr("SU", class_of(t.dtype)))
        return;
    int dim = (int)gen_rnd(g, (uint32_t)t.rank), a = pick(g, t, true, NULL), z = identity(g, t.dtype, "maximum");
    GenType idx = t, to = {.dtype = t.dtype}, ito;
    idx.dtype = DT_I32;
    for (int i = 0; i < t.rank; i++)
        if (i != dim)
            to.dims[to.rank++] = t.dims[i];
    ito = to, ito.dtype = DT_I32;
    int zi = identity(g, DT_I32, "minimum"), io = g->next++, r = g->next++;
    const char *e = dtype_row(t.dtype)->name;
    out(g, "%%v%d = stablehlo.iota dim = %d : ", io, dim);
    out_type(g, &idx);
    out(g, "\n%%v%d:2 = stablehlo.reduce(%%v%d init: %%v%d), (%%v%d init: %%v%d) across dimensions = [%d] : (", r, a,
        z, io, zi, dim);
    out_type(g, &t), out(g, ", "), out_type(g, &idx);
    out(g, ", tensor<%s>, tensor<i32>) -> (", e);
    out_type(g, &to), out(g, ", "), out_type(g, &ito);
    out(g, ")\n reducer(%%a: tensor<%s>, %%b: tensor<%s>) (%%c: tensor<i32>, %%d: tensor<i32>) {\n", e, e);
    out(g, "%%gt = stablehlo.compare GT, %%a, %%b : (tensor<%s>, tensor<%s>) -> tensor<i1>\n", e, e);
    out(g, "%%eq = stablehlo.compare EQ, %%a, %%b : (tensor<%s>, tensor<%s>) -> tensor<i1>\n", e, e);
    out(g, "%%lt = stablehlo.compare LT, %%c, %%d : (tensor<i32>, tensor<i32>) -> tensor<i1>\n");
    out(g, "%%tie = stablehlo.and %%eq, %%lt : tensor<i1>\n%%k = stablehlo.or %%gt, %%tie : tensor<i1>\n");
    out(g, "%%m = stablehlo.select %%k, %%a, %%b : tensor<i1>, tensor<%s>\n", e);
    out(g, "%%n = stablehlo.select %%k, %%c, %%d : tensor<i1>, tensor<i32>\n");
    out(g, "stablehlo.return %%m, %%n : tensor<%s>, tensor<i32>\n}\n", e);
    for (int i = 0; i < 2; i++) {
        GenType rt = i ? ito : to;
        out(g, "%%v%d = stablehlo.optimization_barrier %%v%d#%d : ", g->next, r, i);
        out_type(g, &rt);
        out(g, "\n");
        add_value(g, rt, true);
    }
}

static void gen_sort(Gen *g) {
    GenType t = any_type(g);
    if (!t.rank || !strchr("SU", class_of(t.dtype))) // NaN has no place in an order
        return;
    int a = pick(g, t, true, NULL), dim = (int)gen_rnd(g, (uint32_t)t.rank);
    bool eb;
    int b = pick(g, t, false, &eb), r = g->next++;
    const char *e = dtype_row(t.dtype)->name;
    out(g, "%%v%d:2 = \"stablehlo.sort\"(%%v%d, %%v%d) <{dimension = %d : i64, is_stable = true}> ({\n", r, a, b, dim);
    out(g, "^bb0(%%a: tensor<%s>, %%b: tensor<%s>, %%c: tensor<%s>, %%d: tensor<%s>):\n", e, e, e, e);
    out(g, "%%k = stablehlo.compare %s, %%a, %%b : (tensor<%s>, tensor<%s>) -> tensor<i1>\n",
        gen_rnd(g, 2) ? "LT" : "GT", e, e);
    out(g, "stablehlo.return %%k : tensor<i1>\n}) : (");
    out_type(g, &t), out(g, ", "), out_type(g, &t), out(g, ") -> ("), out_type(g, &t), out(g, ", ");
    out_type(g, &t);
    out(g, ")\n");
    for (int i = 0; i < 2; i++) {
        out(g, "%%v%d = stablehlo.optimization_barrier %%v%d#%d : ", g->next, r, i);
        out_type(g, &t);
        out(g, "\n");
        add_value(g, t, i ? eb : true);
    }
}

static void gen_dot(Gen *g) {
    int dtype = any_dtype(g);
    if (dtype == DT_I1 || class_of(dtype) == 'C' || dtype_row(dtype)->bits < 8)
        return;
    int64_t b = 1 + gen_rnd(g, 3), m = 1 + gen_rnd(g, 9), n = 1 + gen_rnd(g, 9), k = gen_rnd(g, 9);
    bool batch = gen_rnd(g, 2), lt = gen_rnd(g, 2), rt = gen_rnd(g, 2);
    int o = batch;
    GenType l = {.dtype = dtype, .rank = 2 + batch}, r = l, to = l;
    if (batch)
        l.dims[0] = r.dims[0] = to.dims[0] = b;
    l.dims[o + lt] = m, l.dims[o + !lt] = k;
    r.dims[o + rt] = n, r.dims[o + !rt] = k;
    to.dims[o] = m, to.dims[o + 1] = n;
    int x = pick(g, l, true, NULL), y = pick(g, r, true, NULL);
    out(g, "%%v%d = stablehlo.dot_general %%v%d, %%v%d, %scontracting_dims = [%d] x [%d] : (", g->next, x, y,
        batch ? "batching_dims = [0] x [0], " : "", o + !lt, o + !rt);
    out_type(g, &l);
    out(g, ", ");
    out_type(g, &r);
    out(g, ") -> ");
    out_type(g, &to);
    out(g, "\n");
    add_value(g, to, class_of(dtype) != 'F');
}

static void gen_gather(Gen *g) { // rows by index, out-of-range ones clamped
    GenType t = any_type(g);
    if (!t.rank || t.dims[0] == 0)
        return;
    int64_t n = 1 + gen_rnd(g, 6);
    GenType index = {.dtype = DT_I32, .rank = 2, .dims = {n, 1}}, to = t;
    to.dims[0] = n;
    bool exact;
    int a = pick(g, t, false, &exact), i = pick(g, index, true, NULL);
    out(g, "%%v%d = \"stablehlo.gather\"(%%v%d, %%v%d) <{dimension_numbers = #stablehlo.gather<offset_dims = [", g->next,
        a, i);
    for (int d = 1; d < t.rank; d++)
        out(g, "%s%d", d > 1 ? ", " : "", d);
    out(g, "], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1");
    for (int d = 1; d < t.rank; d++)
        out(g, ", %lld", (long long)t.dims[d]);
    out(g, ">}> : (");
    out_type(g, &t), out(g, ", "), out_type(g, &index), out(g, ") -> "), out_type(g, &to);
    out(g, "\n");
    add_value(g, to, exact);
}

static void gen_scatter(Gen *g) { // integer rows added, out-of-range ones skipped
    GenType t = any_type(g);
    if (!t.rank || t.dims[0] == 0 || !strchr("SU", class_of(t.dtype)))
        return;
    int64_t n = 1 + gen_rnd(g, 6);
    GenType index = {.dtype = DT_I32, .rank = 2, .dims = {n, 1}}, up = t;
    up.dims[0] = n;
    int a = pick(g, t, true, NULL), i = pick(g, index, true, NULL), u = pick(g, up, true, NULL);
    const char *e = dtype_row(t.dtype)->name;
    out(g, "%%v%d = \"stablehlo.scatter\"(%%v%d, %%v%d, %%v%d) <{scatter_dimension_numbers = #stablehlo.scatter<", g->next, a,
        i, u);
    out(g, "update_window_dims = [");
    for (int d = 1; d < t.rank; d++)
        out(g, "%s%d", d > 1 ? ", " : "", d);
    out(g, "], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n");
    out(g, "^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n%%c = stablehlo.%s %%a, %%b : tensor<%s>\n", e, e,
        gen_rnd(g, 2) ? "add" : "maximum", e);
    out(g, "stablehlo.return %%c : tensor<%s>\n}) : (", e);
    out_type(g, &t), out(g, ", "), out_type(g, &index), out(g, ", "), out_type(g, &up), out(g, ") -> ");
    out_type(g, &t);
    out(g, "\n");
    add_value(g, t, true);
}

#include "tests/random/gen_more.c"

// --- control flow ----------------------------------------------------------------------------------------

static void gen_block(Gen *g, int count);

static void out_types(Gen *g, const GenType *t, int n) {
    for (int i = 0; i < n; i++)
        out(g, "%s", i ? ", " : ""), out_type(g, &t[i]);
}

// Names the results of a pack, so that they can be used like any value.
static void unpack(Gen *g, int pack, int first, const GenType *t, const bool *exact, int n) {
    for (int i = 0; i < n; i++) {
        out(g, "%%v%d = stablehlo.optimization_barrier %%v%d#%d : ", g->next, pack, first + i);
        out_type(g, &t[i]);
        out(g, "\n");
        add_value(g, t[i], exact[i]);
    }
}

static void gen_while(Gen *g) {
    int n = 1 + (int)gen_rnd(g, 5), init[5], yield[5], trips = (int)gen_rnd(g, 4);
    GenType t[5];
    bool exact[5] = {true, true, true, true, true};
    for (int i = 0; i < n; i++) {
        t[i] = any_type(g);
        init[i] = pick(g, t[i], true, NULL); // carried values stay exact: the body must yield exact ones
    }
    int zero = g->next++, pack = g->next++, counter = g->next++, limit = g->next++, p = g->next++;
    out(g, "%%v%d = stablehlo.constant dense<0> : tensor<i32>\n", zero);
    out(g, "%%v%d:%d = stablehlo.while(%%v%d = %%v%d", pack, n + 1, counter, zero);
    int scope = g->nvals;
    for (int i = 0; i < n; i++) {
        out(g, ", %%v%d = %%v%d", g->next, init[i]);
        add_value(g, t[i], true);
    }
    out(g, ") : tensor<i32>, ");
    out_types(g, t, n);
    out(g, "\n cond {\n%%v%d = stablehlo.constant dense<%d> : tensor<i32>\n", limit, trips);
    out(g, "%%v%d = stablehlo.compare LT, %%v%d, %%v%d : (tensor<i32>, tensor<i32>) -> tensor<i1>\n", p, counter,
        limit);
    out(g, "stablehlo.return %%v%d : tensor<i1>\n} do {\n", p);
    int one = g->next++, next = g->next++;
    out(g, "%%v%d = stablehlo.constant dense<1> : tensor<i32>\n", one);
    gen_block(g, 2 + (int)gen_rnd(g, 8));
    for (int i = 0; i < n; i++)
        yield[i] = pick(g, t[i], true, NULL);
    out(g, "%%v%d = stablehlo.add %%v%d, %%v%d : tensor<i32>\nstablehlo.return %%v%d", next, counter, one, next);
    for (int i = 0; i < n; i++)
        out(g, ", %%v%d", yield[i]);
    out(g, " : tensor<i32>, ");
    out_types(g, t, n);
    out(g, "\n}\n");
    g->nvals = scope; // what the body made is out of scope
    unpack(g, pack, 1, t, exact, n);
}

static void gen_case(Gen *g) {
    int n = 1 + (int)gen_rnd(g, 3), index = pick(g, scalar(DT_I32), true, NULL), pack = g->next++;
    int branches = 1 + (int)gen_rnd(g, 3), scope = g->nvals;
    GenType t[3];
    bool exact[3] = {true, true, true};
    for (int i = 0; i < n; i++)
        t[i] = any_type(g);
    out(g, "%%v%d:%d = \"stablehlo.case\"(%%v%d) (", pack, n, index);
    for (int b = 0; b < branches; b++) {
        out(g, "%s{\n", b ? ", " : "");
        gen_block(g, 1 + (int)gen_rnd(g, 5));
        int yield[3];
        for (int i = 0; i < n; i++) {
            bool e;
            yield[i] = pick(g, t[i], false, &e);
            exact[i] = exact[i] && e;
        }
        out(g, "stablehlo.return ");
        for (int i = 0; i < n; i++)
            out(g, "%s%%v%d", i ? ", " : "", yield[i]);
        out(g, " : ");
        out_types(g, t, n);
        out(g, "\n}");
        g->nvals = scope;
    }
    out(g, ") : (tensor<i32>) -> (");
    out_types(g, t, n);
    out(g, ")\n");
    unpack(g, pack, 0, t, exact, n);
}

// --- programs --------------------------------------------------------------------------------------------

typedef void Maker(Gen *g);
static Maker *const makers[] = {
    gen_elementwise, gen_elementwise, gen_elementwise, gen_elementwise, gen_elementwise, gen_convert,
    gen_select,      gen_clamp,       gen_reshape,     gen_transpose,   gen_broadcast,   gen_broadcast,
    gen_slice,       gen_pad,         gen_concatenate, gen_reverse,     gen_iota,        gen_dynamic,
    gen_dynamic,     gen_reduce,      gen_argmax,      gen_sort,        gen_dot,         gen_gather,
    gen_scatter,     gen_gather_any,  gen_scatter_any, gen_map,         gen_reduce_body, gen_reduce_window,
    gen_conv,        gen_complex,     gen_quantised,   gen_while,       gen_while,       gen_case,
};
#define MAKERS (sizeof makers / sizeof *makers)
#define CONTROL 3 // the last ones nest

static void gen_block(Gen *g, int count) {
    g->depth++;
    for (int i = 0; i < count; i++) {
        Maker *make = makers[gen_rnd(g, (uint32_t)(MAKERS - (g->depth > 2 ? CONTROL : 0)))];
        if (make != gen_quantised || !g->plain)
            make(g);
    }
    g->depth--;
}

static void choose_types(Gen *g) {
    g->nshapes = 2 + (int)gen_rnd(g, 4);
    for (int i = 0; i < g->nshapes; i++) {
        GenType *t = &g->shapes[i];
        t->rank = (int)gen_rnd(g, 4);
        for (int d = 0; d < t->rank; d++)
            t->dims[d] = gen_rnd(g, 12) ? 1 + (int64_t)gen_rnd(g, 6) : 0;
    }
    int rare = (int)(sizeof rare_dtypes / sizeof *rare_dtypes) - (g->plain ? XLA_LACKS : 0);
    g->ndtypes = 1 + (int)gen_rnd(g, 3);
    for (int i = 0; i < g->ndtypes; i++)
        g->dtypes[i] = gen_rnd(g, 5) ? all_dtypes[gen_rnd(g, sizeof all_dtypes / sizeof *all_dtypes)]
                                     : rare_dtypes[gen_rnd(g, (uint32_t)rare)];
    g->nargs = 1 + (int)gen_rnd(g, GEN_ARGS_MAX - 1);
    for (int i = 0; i < g->nargs; i++) {
        g->args[i] = any_type(g);
        g->alias[i] = gen_rnd(g, 2);
    }
}

#include "tests/random/gen_loops.c"

bool gen_is_loops(uint64_t seed) { return seed % 4 == 3; }

bool gen_program(Gen *g, uint64_t seed) {
    char *text = g->text;
    GenValue *vals = g->vals;
    int cap = g->cap;
    bool plain = g->plain;
    *g = (Gen){.rng = seed * 0x2545f4914f6cdd1du, .text = text, .vals = vals, .cap = cap, .plain = plain};
    bool loops = gen_is_loops(seed);
    (loops ? choose_loops : choose_types)(g);
    out(g, "func.func public @main(");
    for (int i = 0; i < g->nargs; i++) {
        out(g, "%s%%v%d: ", i ? ", " : "", add_value(g, g->args[i], true));
        g->vals[g->nvals - 1].most = 1;
        out_type(g, &g->args[i]);
        if (g->alias[i] && (seed / 4 + seed) % 2)
            out(g, " {jax.buffer_donor = true}"); // any result may take it over
        else if (g->alias[i])
            out(g, " {tf.aliasing_output = %d : i32}", i);
    }
    out(g, ") -> (");
    size_t types_at = g->n; // the result types are known only at the end
    if (loops) {
        loop_block(g, (int)gen_rnd(g, 4));
        loop_while(g);
        loop_block(g, (int)gen_rnd(g, 4));
    } else {
        gen_block(g, 4 + (int)gen_rnd(g, 24));
    }
    int ret[GEN_RESULTS_MAX];
    for (int i = 0; i < g->nargs; i++) {
        ret[i] = pick(g, g->args[i], false, &g->exact[i]);
        g->results[i] = g->args[i];
    }
    g->nresults = g->nargs;
    for (int i = g->nvals; i-- > 0 && g->nresults < GEN_RESULTS_MAX; g->nresults++) {
        ret[g->nresults] = g->vals[i].name;
        g->results[g->nresults] = g->vals[i].type;
        g->exact[g->nresults] = g->vals[i].exact;
    }
    out(g, "return ");
    for (int i = 0; i < g->nresults; i++)
        out(g, "%s%%v%d", i ? ", " : "", ret[i]);
    out(g, " : ");
    out_types(g, g->results, g->nresults);
    out(g, "\n}\n");
    size_t body = g->n - types_at; // put the types where they belong
    out_types(g, g->results, g->nresults);
    out(g, ") {\n");
    size_t types = g->n - types_at - body;
    char *copy = malloc(types);
    if (!copy)
        return false;
    memcpy(copy, g->text + types_at + body, types);
    memmove(g->text + types_at + types, g->text + types_at, body);
    memcpy(g->text + types_at, copy, types);
    free(copy);
    return true;
}

void gen_fini(Gen *g) { free(g->vals); }

static void set(int dtype, uint8_t *p, double v) {
    if (class_of(dtype) == 'F')
        dtype_from_f64(dtype, p, v);
    else
        dtype_from_i64(dtype, p, (int64_t)v);
}

void gen_fill(Gen *g, const GenType *t, void *data, bool whole) {
    int64_t n = gen_elems(t);
    size_t bytes = dtype_bytes(t->dtype);
    for (int64_t i = 0; i < n; i++) {
        uint8_t *p = (uint8_t *)data + (size_t)i * bytes;
        int v = (int)gen_rnd(g, 13) - 6;
        if (whole && class_of(t->dtype) == 'C') {
            set(DT_F32, p, (int)gen_rnd(g, 3) - 1), set(DT_F32, p + 4, (int)gen_rnd(g, 3) - 1);
        } else if (whole) {
            set(t->dtype, p, t->dtype == DT_I1 ? gen_rnd(g, 2) : (double)gen_rnd(g, 3) - 1);
        } else if (class_of(t->dtype) == 'F') {
            dtype_from_f64(t->dtype, p, v * 0.375);
        } else if (class_of(t->dtype) == 'C') {
            dtype_from_f64(DT_F32, p, v * 0.375);
            dtype_from_f64(DT_F32, p + 4, (int)gen_rnd(g, 5) - 2);
        } else {
            dtype_from_i64(t->dtype, p, class_of(t->dtype) == 'S' ? v : v < 0 ? -v : v);
        }
    }
}
