// SPDX-License-Identifier: Apache-2.0
// dot.c — dot_general on the types the tensor engine lacks (and on any other that comes here).
//
// Operands are packed as lhs[batch][m][k] and rhs[batch][k][n] in the compute type; then every row
// of the result is a sum of rows of rhs, k ascending. Integers wrap.
#include "chip/gpsimd/dot.h"

int mac_dtype(const Kern *k) {
    int a = k->in[0].dtype, b = k->in[1].dtype, out = k->out[0].dtype;
    LaneClass c = lane_class(out);
    bool any_complex = dtype_is_complex(a) || dtype_is_complex(b);
    bool any_float = dtype_is_float(a) || dtype_is_float(b);
    if (c == LC_C64 || c == LC_C128)
        return a == DT_C128 || b == DT_C128 ? DT_C128 : out;
    if (c == LC_BOOL) // and, or: counted, for any true product gives true
        return a == DT_I1 && b == DT_I1 ? DT_I32 : DT_INVALID;
    if (any_complex || c == LC_NONE || (any_float && !dtype_is_float(out)))
        return DT_INVALID;
    if (dtype_is_float(out))
        return a == DT_F64 || b == DT_F64 || out == DT_F64 ? DT_F64 : DT_F32;
    return dtype_row(out)->bits < 8 ? DT_I8 : out;
}

static void mac_c64(void *dst, const void *px, const void *pw, size_t pitch, size_t k, size_t n) {
    float *acc = dst;
    const float *x = px, *w = pw;
    for (size_t r = 0; r < k; r++)
        for (size_t j = 0; j < n; j++) {
            float re = x[2 * r], im = x[2 * r + 1];
            float wr = w[2 * (r * pitch + j)], wi = w[2 * (r * pitch + j) + 1];
            acc[2 * j] += re * wr - im * wi;
            acc[2 * j + 1] += re * wi + im * wr;
        }
}

static void mac_c128(void *dst, const void *px, const void *pw, size_t pitch, size_t k, size_t n) {
    double *acc = dst;
    const double *x = px, *w = pw;
    for (size_t r = 0; r < k; r++)
        for (size_t j = 0; j < n; j++) {
            double re = x[2 * r], im = x[2 * r + 1];
            double wr = w[2 * (r * pitch + j)], wi = w[2 * (r * pitch + j) + 1];
            acc[2 * j] += re * wr - im * wi;
            acc[2 * j + 1] += re * wi + im * wr;
        }
}

MacFn *mac_find(const GpLevel *level, int dtype) {
    return dtype == DT_C64 ? mac_c64 : dtype == DT_C128 ? mac_c128 : level->mac[lane_class(dtype)];
}

size_t mac_pack_bytes(const KTensor *t, int dtype) {
    size_t packed = gp_align((size_t)t->elems * dtype_bytes(dtype));
    return packed + (t->dtype == dtype ? 0 : gp_align(gp_bytes(t)));
}

typedef struct ConvertJob {
    Lane lane;
    char *dst;
    const char *src;
} ConvertJob;

static void convert_chunk(void *arg, size_t begin, size_t end) {
    const ConvertJob *j = arg;
    lane_run(&j->lane, j->dst + begin * j->lane.out_bytes,
             (const void *[1]){j->src + begin * j->lane.in_bytes[0]}, end - begin);
}

void mac_pack(const GpCall *c, uint32_t operand, int dtype, int rank, const CopyAxis *axes, char **at,
              const char **packed) {
    const KTensor *t = &c->k->in[operand];
    char *dst = *at, *raw = dst + gp_align((size_t)t->elems * dtype_bytes(dtype));
    *packed = dst;
    *at += mac_pack_bytes(t, dtype);
    Copy copy;
    copy_init(&copy, dtype_bytes(t->dtype), rank, axes);
    if (t->dtype == dtype) {
        copy_run(&copy, c->pool, dst, c->in[operand]);
        return;
    }
    copy_run(&copy, c->pool, raw, c->in[operand]);
    ConvertJob j = {.dst = dst, .src = raw};
    lane_find(&j.lane, gp_level(c->level), HLO_CONVERT, dtype, &t->dtype, 1, NULL);
    pool_run(c->pool, (size_t)t->elems, 8192, convert_chunk, &j);
}

void mac_store(const Lane *lane, void *out, int64_t at, int64_t stride, const void *sums,
               size_t n) {
    char one[LANE_BLOCK * 16];
    int64_t bytes = lane->out_bytes;
    char *dst = (char *)out + at * bytes;
    if (stride == 1) {
        lane_run(lane, dst, (const void *[1]){sums}, n);
        return;
    }
    for (size_t b = 0; b < n; b += LANE_BLOCK) {
        size_t m = n - b < LANE_BLOCK ? n - b : LANE_BLOCK;
        lane_run(lane, one, (const void *[1]){(const char *)sums + b * lane->in_bytes[0]}, m);
        for (size_t i = 0; i < m; i++)
            memcpy(dst + (int64_t)(b + i) * stride * bytes, one + (int64_t)i * bytes,
                   (size_t)bytes);
    }
}

// --- dot_general -------------------------------------------------------------------------------

typedef struct DotShape {
    int rank[2];
    CopyAxis axes[2][OTRN_MAX_RANK]; // lhs: batch, free, contracting; rhs: batch, contracting, free
    int64_t batch, m, n, k;
} DotShape;

typedef struct DotDims { // of one operand
    const int64_t *batch, *sum;
    size_t nbatch, nsum;
} DotDims;

static bool dot_dims(const Kern *k, int side, DotDims *d) {
    static const int64_t last_of_two[1] = {1}, first[1] = {0};
    int rank = k->in[side].rank;
    if (k->op == HLO_DOT) { // vectors and matrices: last axis against first
        *d = (DotDims){first, side == 0 && rank == 2 ? last_of_two : first, 0, 1};
        return rank == 1 || rank == 2;
    }
    d->batch = gp_axes(k, side ? AK_RHS_BATCHING_DIMENSIONS : AK_LHS_BATCHING_DIMENSIONS, rank,
                       &d->nbatch);
    d->sum = gp_axes(k, side ? AK_RHS_CONTRACTING_DIMENSIONS : AK_LHS_CONTRACTING_DIMENSIONS, rank,
                     &d->nsum);
    return d->batch && d->sum;
}

static bool dot_side(const KTensor *t, const DotDims *d, bool sum_last, DotShape *s, int side,
                     int64_t *free_out) {
    int64_t strides[OTRN_MAX_RANK], order[OTRN_MAX_RANK], used = 0;
    int n = 0, rank = t->rank;
    gp_strides(t, strides);
    for (size_t i = 0; i < d->nbatch; i++)
        order[n++] = d->batch[i], used |= (int64_t)1 << d->batch[i];
    for (size_t i = 0; i < d->nsum; i++) {
        if (used >> d->sum[i] & 1)
            return false;
        used |= (int64_t)1 << d->sum[i];
    }
    for (size_t i = 0; i < d->nsum && !sum_last; i++)
        order[n++] = d->sum[i];
    *free_out = 1;
    for (int a = 0; a < rank; a++)
        if (!(used >> a & 1)) {
            order[n++] = a;
            *free_out *= t->dims[a];
        }
    for (size_t i = 0; i < d->nsum && sum_last; i++)
        order[n++] = d->sum[i];
    int64_t dense = 1;
    for (int i = rank - 1; i >= 0; i--) {
        s->axes[side][i] = (CopyAxis){t->dims[order[i]], dense, strides[order[i]]};
        dense *= t->dims[order[i]];
    }
    s->rank[side] = rank;
    return true;
}

static bool dot_shape(const Kern *k, DotShape *s) {
    DotDims l, r;
    if (!dot_dims(k, 0, &l) || !dot_dims(k, 1, &r) || l.nbatch != r.nbatch || l.nsum != r.nsum)
        return false;
    const KTensor *a = &k->in[0], *b = &k->in[1], *out = &k->out[0];
    *s = (DotShape){.batch = 1, .k = 1};
    int at = 0;
    if (out->rank != a->rank + b->rank - (int)l.nbatch - 2 * (int)l.nsum)
        return false;
    for (size_t i = 0; i < l.nbatch; i++) {
        int64_t n = a->dims[l.batch[i]];
        if (n != b->dims[r.batch[i]] || out->dims[at++] != n)
            return false;
        s->batch *= n;
    }
    for (size_t i = 0; i < l.nsum; i++) {
        if (a->dims[l.sum[i]] != b->dims[r.sum[i]])
            return false;
        s->k *= a->dims[l.sum[i]];
    }
    if (!dot_side(a, &l, true, s, 0, &s->m) || !dot_side(b, &r, false, s, 1, &s->n))
        return false;
    return out->elems == s->batch * s->m * s->n;
}

bool gp_dot_check(const Kern *k) {
    DotShape s;
    Lane lane;
    if (k->nin != 2 || k->nout != 1 || !dot_shape(k, &s))
        return false;
    int type = mac_dtype(k);
    uint8_t from = (uint8_t)type;
    return type != DT_INVALID && mac_find(&gp_level_portable, type) &&
           lane_find(&lane, &gp_level_portable, HLO_CONVERT, type, &k->in[0].dtype, 1, NULL) &&
           lane_find(&lane, &gp_level_portable, HLO_CONVERT, type, &k->in[1].dtype, 1, NULL) &&
           lane_find(&lane, &gp_level_portable, HLO_CONVERT, k->out[0].dtype, &from, 1, NULL);
}

#define DOT_COLS LANE_BLOCK

size_t gp_dot_scratch(const Kern *k, int threads) {
    (void)threads;
    int type = mac_dtype(k);
    return mac_pack_bytes(&k->in[0], type) + mac_pack_bytes(&k->in[1], type);
}

typedef struct DotJob {
    const GpCall *c;
    DotShape s;
    MacFn *mac;
    Lane store;
    const char *lhs, *rhs;
    int64_t bytes;
} DotJob;

static void dot_rows(void *arg, size_t begin, size_t end) { // rows of the result, batch by batch
    const DotJob *j = arg;
    const DotShape *s = &j->s;
    _Alignas(64) char sums[DOT_COLS * 16];
    for (size_t row = begin; row < end; row++) {
        const char *x = j->lhs + (int64_t)row * s->k * j->bytes;
        const char *w = j->rhs + (int64_t)row / s->m * s->k * s->n * j->bytes;
        for (int64_t col = 0; col < s->n; col += DOT_COLS) {
            size_t cols = (size_t)(s->n - col < DOT_COLS ? s->n - col : DOT_COLS);
            memset(sums, 0, cols * (size_t)j->bytes);
            j->mac(sums, x, w + col * j->bytes, (size_t)s->n, (size_t)s->k, cols);
            mac_store(&j->store, j->c->out[0], (int64_t)row * s->n + col, 1, sums, cols);
        }
    }
}

otrn_status gp_dot_run(const GpCall *c) {
    const Kern *k = c->k;
    int type = mac_dtype(k);
    uint8_t from = (uint8_t)type;
    DotJob j = {
        .c = c, .mac = mac_find(gp_level(c->level), type), .bytes = (int64_t)dtype_bytes(type)};
    if (!k->out[0].elems)
        return OTRN_OK;
    dot_shape(k, &j.s);
    lane_find(&j.store, gp_level(c->level), HLO_CONVERT, k->out[0].dtype, &from, 1, NULL);
    lane_quiet(&j.store, gp_level(c->level), type);
    char *at = c->scratch;
    mac_pack(c, 0, type, j.s.rank[0], j.s.axes[0], &at, &j.lhs);
    mac_pack(c, 1, type, j.s.rank[1], j.s.axes[1], &at, &j.rhs);
    size_t grain = 16384 / ((size_t)(j.s.k * j.s.n) + 1);
    pool_run(c->pool, (size_t)(j.s.batch * j.s.m), grain ? grain : 1, dot_rows, &j);
    return OTRN_OK;
}
