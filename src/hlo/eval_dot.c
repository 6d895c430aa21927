// SPDX-License-Identifier: Apache-2.0
// eval_dot.c — dot_general, dot, einsum.
//
// Rounding: every product is rounded to the accumulation type, then added to a sum that is rounded
// to it too, in row-major order of the contracted axes; the last sum is rounded to the result type.
// The accumulation type is f64 (complex: of f64) where the result is, or where an algorithm asks for
// it, and f32 for every narrower type: what expected values of f32 programs were made with, and what
// PSUM does. Integers wrap in the result type. An algorithm attribute rounds the operands to its
// precision types first; with 3, 6 or 9 primitive operations the operands are split into that type's
// leading parts and the products of parts are summed.
//
// Axes are listed as byte offsets once, so that the loops see [batch][m][k] times [batch][n][k].
// Panels of PANEL columns keep the innermost loop long and free of dependencies: each result
// element still sums over k in order.
#include <math.h>

#include "hlo/eval_in.h"

#define PANEL 64
#define MAX_PARTS 3

typedef struct Axes { // byte offsets of all index tuples over some axes, row-major
    int64_t *at;
    int64_t n;
    bool even; // they lie `step` apart
    int64_t step;
} Axes;

static Axes axes_offsets(Arena *a, const HloType *t, const int64_t *axes, uint32_t n) {
    int64_t step[OTRN_MAX_RANK], dims[OTRN_MAX_RANK];
    Axes r = {.n = 1};
    eval_strides(t, step);
    for (uint32_t i = 0; i < n; i++)
        r.n *= dims[i] = t->dims[axes[i]];
    r.at = ARENA_NEWN(a, int64_t, (size_t)r.n);
    Box b;
    int64_t k = 0;
    for (box_init(&b, (int)n, dims); b.more; box_next(&b), k++)
        for (uint32_t i = 0; i < n; i++)
            r.at[k] += b.at[i] * step[axes[i]];
    r.even = n <= 1;
    r.step = n == 1 ? step[axes[0]] : 0;
    return r;
}

typedef struct Side { // one operand
    const HloType *type;
    const uint8_t *data;
    Axes batch, free, sum;
    int result; // element type of the result
    int round;  // precision type of the algorithm, or DT_INVALID
    bool single; // sums are f32
    int part;   // which part of the split value, 0 = leading
} Side;

// An element in the wide form of the result's class.
static void side_load(const Side *s, int64_t offset, void *wide) {
    double x[2];
    bool same = eval_wide_kind(s->type->dtype) == eval_wide_kind(s->result);
    eval_load(s->type->dtype, s->data + offset, 0, 1, same ? wide : x);
    if (!same)
        eval_cast(s->type->dtype, s->result, 1, x, wide);
    if (s->round == DT_INVALID)
        return;
    double v = *(double *)wide, p = v;
    for (int i = 0; i <= s->part; i++) {
        p = v;
        eval_round(s->round, 1, &p);
        v -= p;
    }
    *(double *)wide = isfinite(p) ? p : s->part ? 0 : p; // an infinity has one part
}

// n elements at base + axes[from], …
static void side_load_run(const Side *s, int64_t base, const Axes *axes, int64_t from, int64_t n,
                          uint8_t *wide) {
    bool plain =
        s->round == DT_INVALID && eval_wide_kind(s->type->dtype) == eval_wide_kind(s->result);
    if (plain && axes->even && n) {
        eval_load(s->type->dtype, s->data + base + axes->at[from], axes->step, (size_t)n, wide);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        side_load(s, base + axes->at[from + i], wide + (size_t)i * eval_wide_bytes(s->result));
}

// acc[j] += sum over k of a[k] * panel[k][j]. The single forms keep all three as floats.
#define KERNEL_F(name, T)                                                                          \
    static void name(int64_t k, const void *a, const void *panel, void *acc) {                     \
        const T *x = a, *p = panel;                                                                \
        T sum[PANEL];                                                                              \
        memcpy(sum, acc, sizeof sum);                                                              \
        for (int64_t i = 0; i < k; i++, p += PANEL)                                                \
            for (int j = 0; j < PANEL; j++)                                                        \
                sum[j] += x[i] * p[j];                                                             \
        memcpy(acc, sum, sizeof sum);                                                              \
    }
#define KERNEL_C(name, T)                                                                          \
    static void name(int64_t k, const void *a, const void *panel, void *acc) {                     \
        const T *x = a, *p = panel;                                                                \
        T *sum = acc;                                                                              \
        for (int64_t i = 0; i < k; i++, p += 2 * PANEL)                                            \
            for (int j = 0; j < PANEL; j++) {                                                      \
                sum[2 * j] += x[2 * i] * p[2 * j] - x[2 * i + 1] * p[2 * j + 1];                   \
                sum[2 * j + 1] += x[2 * i] * p[2 * j + 1] + x[2 * i + 1] * p[2 * j];               \
            }                                                                                      \
    }
typedef float __attribute__((may_alias)) WideFloat; // buffers are declared as doubles
KERNEL_F(kernel_f64, double)
KERNEL_F(kernel_f32, WideFloat)
KERNEL_C(kernel_c128, double)
KERNEL_C(kernel_c64, WideFloat)

static void kernel_i(int64_t k, const void *a, const void *panel, void *acc) {
    const WideUint *x = a, *p = panel;
    WideUint *sum = acc;
    for (int64_t i = 0; i < k; i++, p += PANEL)
        for (int j = 0; j < PANEL; j++)
            sum[j] += x[i] * p[j];
}

static void accumulate(const Side *s, int64_t k, const void *a, const void *panel, void *acc) {
    switch (eval_wide_kind(s->result)) {
    case WIDE_F:
        (s->single ? kernel_f32 : kernel_f64)(k, a, panel, acc);
        return;
    case WIDE_I:
        kernel_i(k, a, panel, acc);
        return;
    case WIDE_C:
        (s->single ? kernel_c64 : kernel_c128)(k, a, panel, acc);
    }
}

// Doubles to floats and back, in place.
static void to_single(size_t n, void *wide) {
    for (size_t i = 0; i < n; i++)
        ((WideFloat *)wide)[i] = (float)((const double *)wide)[i];
}

static void from_single(size_t n, void *wide) {
    for (size_t i = n; i-- > 0;)
        ((double *)wide)[i] = ((const WideFloat *)wide)[i];
}

// out[m][n0 .. n0 + width) for all m of one batch; `parts` pairs of operand parts are summed.
typedef struct Parts {
    int n;
    uint8_t lhs[9], rhs[9];
} Parts;

static void panel_run(Side *l, Side *r, const Parts *parts, int64_t batch, int64_t n0, Arena *a,
                      uint8_t *out) {
    size_t wide = eval_wide_bytes(l->result), elem = dtype_bytes(l->result);
    int64_t k = l->sum.n, width = r->free.n - n0 < PANEL ? r->free.n - n0 : PANEL;
    uint8_t *row = arena_alloc(a, (size_t)k * wide);
    uint8_t *panel[MAX_PARTS] = {0};
    for (int p = 0; p < parts->n; p++) {
        int part = parts->rhs[p];
        if (panel[part])
            continue;
        panel[part] = arena_array(a, (size_t)k, PANEL * wide); // columns past `width` stay 0
        r->part = part;
        for (int64_t i = 0; i < k; i++)
            side_load_run(r, r->batch.at[batch] + r->sum.at[i], &r->free, n0, width,
                          panel[part] + (size_t)(i * PANEL) * wide);
        if (r->single)
            to_single((size_t)k * PANEL * wide / 8, panel[part]);
    }
    for (int64_t m = 0; m < l->free.n; m++) {
        double acc[2 * PANEL] = {0};
        for (int p = 0; p < parts->n; p++) {
            l->part = parts->lhs[p];
            side_load_run(l, l->batch.at[batch] + l->free.at[m], &l->sum, 0, k, row);
            if (l->single)
                to_single((size_t)k * wide / 8, row);
            accumulate(l, k, row, panel[parts->rhs[p]], acc);
        }
        if (l->single)
            from_single(PANEL * wide / 8, acc);
        eval_store_computed(l->result, out + (size_t)((batch * l->free.n + m) * r->free.n + n0) * elem,
                   (size_t)width, acc);
    }
}

static void dot(Eval *e, Side *l, Side *r, const Parts *parts, Tensor *out) {
    out->data = eval_new(e, out->type);
    Arena *a = eval_open(e);
    for (int64_t b = 0; b < l->batch.n; b++)
        for (int64_t n0 = 0; n0 < r->free.n; n0 += PANEL) {
            panel_run(l, r, parts, b, n0, a, out->data);
            eval_reset(e, a);
        }
    eval_close(e);
}

// --- dot_general
// ---------------------------------------------------------------------------------------

typedef struct DotDims {
    const int64_t *lb, *rb, *lc, *rc;
    uint32_t nb, nc;
} DotDims;

// Axes in neither list, in order.
static uint32_t free_axes(const HloType *t, const int64_t *b, uint32_t nb, const int64_t *c,
                          uint32_t nc, int64_t *out) {
    uint32_t n = 0;
    for (int i = 0; i < t->rank; i++) {
        bool used = false;
        for (uint32_t k = 0; k < nb; k++)
            used = used || b[k] == i;
        for (uint32_t k = 0; k < nc; k++)
            used = used || c[k] == i;
        if (!used)
            out[n++] = i;
    }
    return n;
}

static int precision_dtype(Eval *e, OpId id, HloAttrKey key) {
    const HloAttr *a = hlo_attr(eval_op_at(e, id), key);
    if (!a || a->kind != HA_TYPE)
        return DT_INVALID;
    int d = hlo_type(e->h, a->type)->dtype;
    return dtype_is_float(d) ? d : DT_INVALID;
}

static bool sums_are_single(int result, int asked) {
    return (dtype_is_float(result) || dtype_is_complex(result)) && result != DT_F64 &&
           result != DT_C128 && asked != DT_F64;
}

// The part products of an algorithm: with p parts per operand, those pairs whose ranks add to less
// than p (3: leading two parts, 6: three parts), or all of them (9).
static Parts parts_of(Eval *e, OpId id) {
    int64_t n = hlo_int(eval_op_at(e, id), AK_NUM_PRIMITIVE_OPERATIONS, 1);
    if (n != 1 && n != 3 && n != 6 && n != 9)
        eval_fail(e, id, OTRN_UNSUPPORTED, "a dot algorithm of %lld primitive operations",
                  (long long)n);
    int count = n == 1 ? 1 : n == 3 ? 2 : 3;
    Parts p = {0};
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            if (n == 9 || i + j < count) {
                p.lhs[p.n] = (uint8_t)i;
                p.rhs[p.n++] = (uint8_t)j;
            }
    return p;
}

// Lists the axes of both sides in the arena and checks the result's shape: batch, lhs free, rhs
// free.
static void dot_sides(Eval *e, OpId id, Arena *a, const DotDims *d, Side *l, Side *r,
                      const HloType *t) {
    int64_t lf[OTRN_MAX_RANK], rf[OTRN_MAX_RANK], want[3 * OTRN_MAX_RANK];
    uint32_t nlf = free_axes(l->type, d->lb, d->nb, d->lc, d->nc, lf), n = 0;
    uint32_t nrf = free_axes(r->type, d->rb, d->nb, d->rc, d->nc, rf);
    eval_need(e, id, nlf + d->nb + d->nc == l->type->rank && nrf + d->nb + d->nc == r->type->rank,
              "an axis is both batching and contracting");
    for (uint32_t i = 0; i < d->nb; i++) {
        eval_need(e, id, l->type->dims[d->lb[i]] == r->type->dims[d->rb[i]],
                  "batch dimensions differ");
        want[n++] = l->type->dims[d->lb[i]];
    }
    for (uint32_t i = 0; i < d->nc; i++)
        eval_need(e, id, l->type->dims[d->lc[i]] == r->type->dims[d->rc[i]],
                  "contracted dimensions differ");
    for (uint32_t i = 0; i < nlf; i++)
        want[n++] = l->type->dims[lf[i]];
    for (uint32_t i = 0; i < nrf; i++)
        want[n++] = r->type->dims[rf[i]];
    eval_need_dims(e, id, t, n, want);
    l->batch = axes_offsets(a, l->type, d->lb, d->nb);
    r->batch = axes_offsets(a, r->type, d->rb, d->nb);
    l->sum = axes_offsets(a, l->type, d->lc, d->nc);
    r->sum = axes_offsets(a, r->type, d->rc, d->nc);
    l->free = axes_offsets(a, l->type, lf, nlf);
    r->free = axes_offsets(a, r->type, rf, nrf);
}

static void dot_run(Eval *e, OpId id, const DotDims *d, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]);
    Side l = {.type = eval_type(e, in[0]), .data = in[0].data, .result = t->dtype};
    Side r = {.type = eval_type(e, in[1]), .data = in[1].data, .result = t->dtype};
    l.round = precision_dtype(e, id, AK_LHS_PRECISION_TYPE);
    r.round = precision_dtype(e, id, AK_RHS_PRECISION_TYPE);
    Parts parts = parts_of(e, id);
    eval_need(e, id,
              (l.round == DT_INVALID) == (r.round == DT_INVALID) &&
                  (parts.n == 1 || l.round != DT_INVALID),
              "incomplete dot algorithm");
    if (!dtype_is_float(t->dtype)) { // integers and complex are computed as they are
        l.round = r.round = DT_INVALID;
        parts = (Parts){.n = 1};
    }
    l.single = r.single = sums_are_single(t->dtype, precision_dtype(e, id, AK_ACCUMULATION_TYPE));
    Arena *a = eval_open(e);
    dot_sides(e, id, a, d, &l, &r, t);
    dot(e, &l, &r, &parts, out);
    eval_close(e);
}

void eval_dot_general(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *l = eval_type(e, in[0]), *r = eval_type(e, in[1]);
    DotDims d;
    uint32_t nb, nc;
    d.lb = eval_axes(e, id, AK_LHS_BATCHING_DIMENSIONS, l->rank, &d.nb);
    d.rb = eval_axes(e, id, AK_RHS_BATCHING_DIMENSIONS, r->rank, &nb);
    d.lc = eval_axes(e, id, AK_LHS_CONTRACTING_DIMENSIONS, l->rank, &d.nc);
    d.rc = eval_axes(e, id, AK_RHS_CONTRACTING_DIMENSIONS, r->rank, &nc);
    eval_need(e, id, nb == d.nb && nc == d.nc, "dimension numbers must come in pairs");
    dot_run(e, id, &d, in, out);
}

// Vectors and matrices: the last axis of lhs against the first of rhs.
void eval_dot(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *l = eval_type(e, in[0]), *r = eval_type(e, in[1]);
    eval_need(e, id, l->rank >= 1 && l->rank <= 2 && r->rank >= 1 && r->rank <= 2,
              "operands have rank 1 or 2");
    int64_t lc = l->rank - 1, rc = 0;
    DotDims d = {.lc = &lc, .rc = &rc, .nc = 1};
    dot_run(e, id, &d, in, out);
}

// --- einsum
// --------------------------------------------------------------------------------------------

typedef struct Einsum {  // one letter per axis
    const char *term[3]; // lhs, rhs, result; rhs is empty for unary_einsum
    int len[3];
    int64_t size[128];
    char sum[64]; // letters that are not in the result
    int nsum;
} Einsum;

static bool term_has(const Einsum *s, int which, char c) {
    return memchr(s->term[which], c, (size_t)s->len[which]) != NULL;
}

static void einsum_parse(Eval *e, OpId id, int operands, const HloType *const *types, Einsum *s) {
    const char *text = hlo_attr_str(eval_op_at(e, id), AK_EINSUM_CONFIG);
    const char *comma = strchr(text, ','), *arrow = strstr(text, "->");
    eval_need(e, id, arrow && (operands == 1 ? !comma : comma && comma < arrow),
              "malformed einsum_config");
    const char *end0 = comma ? comma : arrow;
    s->term[0] = text, s->len[0] = (int)(end0 - text);
    s->term[1] = operands == 2 ? comma + 1 : arrow,
    s->len[1] = operands == 2 ? (int)(arrow - comma - 1) : 0;
    s->term[2] = arrow + 2, s->len[2] = (int)strlen(arrow + 2);
    for (int k = 0; k < 128; k++)
        s->size[k] = -1;
    for (int w = 0; w < 3; w++) {
        const HloType *t = w == 2 ? types[2] : w < operands ? types[w] : NULL;
        eval_need(e, id, !t || t->rank == s->len[w], "einsum_config has a wrong number of letters");
        for (int i = 0; i < s->len[w]; i++) {
            unsigned char c = (unsigned char)s->term[w][i];
            bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
            if (!letter)
                eval_fail(e, id, OTRN_UNSUPPORTED, "einsum_config with '%c'",
                          c < 32 || c > 126 ? '?' : c);
            eval_need(e, id, s->size[c] == t->dims[i] || (s->size[c] < 0 && w < 2),
                      "einsum sizes differ");
            s->size[c] = t->dims[i];
            if (w < 2 && !term_has(s, 2, (char)c) && !memchr(s->sum, c, (size_t)s->nsum))
                s->sum[s->nsum++] = (char)c;
        }
    }
}

// Byte offset of a term at the given letter positions.
static int64_t einsum_offset(const Einsum *s, int which, const int64_t *step, const int64_t *at) {
    int64_t o = 0;
    for (int i = 0; i < s->len[which]; i++)
        o += at[(unsigned char)s->term[which][i]] * step[i];
    return o;
}

void eval_einsum(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    int operands = eval_op_at(e, id)->code == HLO_EINSUM ? 2 : 1;
    const HloType *types[3] = {eval_type(e, in[0]), operands == 2 ? eval_type(e, in[1]) : NULL,
                               eval_type(e, out[0])};
    Einsum s = {0};
    einsum_parse(e, id, operands, types, &s);
    int64_t step[2][OTRN_MAX_RANK], at[128] = {0}, dims[OTRN_MAX_RANK];
    int result = types[2]->dtype;
    if (s.nsum > OTRN_MAX_RANK)
        eval_fail(e, id, OTRN_CAPACITY, "einsum over more than %d letters", OTRN_MAX_RANK);
    for (int i = 0; i < s.nsum; i++)
        dims[i] = s.size[(unsigned char)s.sum[i]];
    Side side[2] = {0};
    for (int w = 0; w < operands; w++) {
        eval_strides(types[w], step[w]);
        side[w] =
            (Side){.type = types[w], .data = in[w].data, .result = result, .round = DT_INVALID};
    }
    WideFn *mul = eval_ew(HLO_MULTIPLY, result), *add = eval_ew(HLO_ADD, result);
    int sums = dtype_is_float(result) && sums_are_single(result, DT_INVALID) ? DT_F32 : result;
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    Box b, k;
    for (box_init(&b, types[2]->rank, types[2]->dims); b.more;
         box_next(&b), dst += dtype_bytes(result)) {
        double acc[2] = {0}, x[2], y[2]; // all zero bits: 0 in every wide form
        for (int i = 0; i < s.len[2]; i++)
            at[(unsigned char)s.term[2][i]] = b.at[i];
        for (box_init(&k, s.nsum, dims); k.more; box_next(&k)) {
            for (int i = 0; i < s.nsum; i++)
                at[(unsigned char)s.sum[i]] = k.at[i];
            side_load(&side[0], einsum_offset(&s, 0, step[0], at), x);
            if (operands == 2) {
                side_load(&side[1], einsum_offset(&s, 1, step[1], at), y);
                mul(result, 1, x, x, y);
                eval_round(sums, 1, x);
            }
            add(result, 1, acc, acc, x);
            eval_round(sums, 1, acc);
        }
        eval_store_computed(result, dst, 1, acc);
    }
}
