// SPDX-License-Identifier: Apache-2.0
// effect_stats.c — figures of a whole row: bn_stats, bn_aggr, and the eight largest with what finds them again.
#include "chip/core/effects.h"

#include <math.h>

#define ROW_MAX 16384 // elements of a row (isa/rules.def)

typedef struct Stats {
    EngWalk walk;
    const IsaInst *in;
    EngTensor dst, src, src1, res;
    EngScalar a;
    void (*row)(const struct Stats *k, uint32_t p, const float *x, size_t n);
} Stats;

// One axis of n elements, whatever the instruction's counts are.
static EngTensor row_of(EffOperand o, int dtype, uint32_t n, int32_t step) {
    return eng_tensor(o, dtype, (const uint32_t[5]){0, n}, (const int32_t[5]){0, step});
}

static Stats stats_begin(const EffCall *c, uint32_t results) {
    const IsaInst *in = c->in;
    uint32_t n1 = isa_count(in->n[1]);
    Stats k = {.walk = eng_walk(c, ENG_F32), .in = in, .a = eng_scalar(in->a, c->a, in->atype),
               .dst = row_of(c->dst, in->dtype, results ? results : n1, in->d[1]),
               .src = row_of(c->src, in->stype, n1, in->s[1])};
    if (c->src1.at)
        k.src1 = row_of(c->src1, in->ttype, 8, in->t[1]);
    if (c->res.at)
        k.res = row_of(c->res, in->rtype, 8, 1);
    return k;
}

static __attribute__((noinline)) void stats_rows(const Stats *k, size_t begin, size_t end) {
    EngBuf s;
    float row[ROW_MAX];
    size_t n = k->src.cols;
    for (size_t p = begin; p < end; p++) {
        EngBlock b = {.row = (uint32_t)p, .rows = 1};
        for (; b.col < n; b.col += b.cols) {
            b.cols = n - b.col < ENG_BLOCK ? n - b.col : ENG_BLOCK;
            memcpy(row + b.col, eng_load(&k->walk, &k->src, &b, s.x, &s), b.cols * 4);
        }
        k->row(k, (uint32_t)p, row, n);
    }
}

static void stats_task(void *arg, size_t begin, size_t end) {
    HostFp old = host_fp_begin(HOST_FP_IEEE);
    stats_rows(arg, begin, end);
    host_fp_end(old);
}

static otrn_status stats_run(const EffCall *c, Stats *k) {
    pool_run(c->pool, isa_count(c->in->n[0]), 8192 / k->src.cols + 1, stats_task, k);
    return OTRN_OK;
}

static float quiet(float v) { return isnan(v) ? NAN : v; }

// --- batch normalisation -----------------------------------------------------------------------------------

// Of every second element from `first`: count, mean, sum of squared differences.
static void moments(const Stats *k, const float *x, size_t n, size_t first, float out[3]) {
    float part[256] = {0}, sum = 0, squares = 0; // rows have at most 512
    size_t count = 0;
    EngRun *add = k->walk.level->eng->run[ENG_F32][ALU_ADD];
    for (size_t i = first; i < n; i += 2)
        part[count++] = x[i];
    add(&sum, part, count);
    float mean = count ? sum / (float)count : 0;
    for (size_t i = 0; i < count; i++)
        part[i] = (part[i] - mean) * (part[i] - mean);
    add(&squares, part, count);
    out[0] = (float)count, out[1] = quiet(mean), out[2] = squares;
}

static void row_bn_stats(const Stats *k, uint32_t p, const float *x, size_t n) {
    float out[6];
    moments(k, x, n, 0, out);
    moments(k, x, n, 1, out + 3);
    for (size_t i = 0; i < 6; i++)
        eng_put(&k->walk, &k->dst, NULL, p, i, out[i]);
}

otrn_status eff_bn_stats(const EffCall *c) {
    Stats k = stats_begin(c, 6);
    k.row = row_bn_stats;
    return stats_run(c, &k);
}

// Two passes over the triples, in order: counts and means, then differences from the mean of all.
otrn_status eff_bn_aggr(const EffCall *c) {
    Stats k = stats_begin(c, 2);
    for (uint32_t p = 0; p < isa_count(c->in->n[0]); p++) {
        float count = 0, sum = 0, squares = 0;
        for (size_t i = 0; i + 2 < k.src.cols; i += 3) {
            float n = eng_get(&k.walk, &k.src, NULL, p, i);
            count += n, sum += n * eng_get(&k.walk, &k.src, NULL, p, i + 1);
        }
        float mean = count != 0 ? sum / count : 0;
        for (size_t i = 0; i + 2 < k.src.cols; i += 3) {
            float away = eng_get(&k.walk, &k.src, NULL, p, i + 1) - mean;
            squares += eng_get(&k.walk, &k.src, NULL, p, i + 2) + eng_get(&k.walk, &k.src, NULL, p, i) * away * away;
        }
        eng_put(&k.walk, &k.dst, NULL, p, 0, quiet(mean));
        eng_put(&k.walk, &k.dst, NULL, p, 1, quiet(count != 0 ? squares / count : 0));
    }
    return OTRN_OK;
}

// --- eight at a time ---------------------------------------------------------------------------------------

// A NaN counts as less than everything.
static bool above(float x, float y) { return x > y || (isnan(y) && !isnan(x)); }

static void row_max8(const Stats *k, uint32_t p, const float *x, size_t n) {
    float best[8];
    int held = 0;
    for (size_t i = 0; i < n; i++) {
        if (held == 8 && !above(x[i], best[7]))
            continue;
        int at = held < 8 ? held++ : 7;
        for (; at > 0 && above(x[i], best[at - 1]); at--)
            best[at] = best[at - 1];
        best[at] = x[i];
    }
    for (int i = 0; i < held; i++)
        eng_put(&k->walk, &k->dst, NULL, p, (size_t)i, quiet(best[i]));
}

otrn_status eff_max8(const EffCall *c) {
    Stats k = stats_begin(c, 8);
    k.row = row_max8;
    return stats_run(c, &k);
}

static void put_index(const EngTensor *t, uint32_t p, size_t i, int64_t index) { // -1: all ones
    dtype_from_i64(t->dtype, t->at + p * t->pitch + (int64_t)i * t->axis[0].step, index);
}

static void row_find8(const Stats *k, uint32_t p, const float *x, size_t n) {
    float want[8];
    int64_t found[8];
    for (int v = 0; v < 8; v++) {
        want[v] = eng_get(&k->walk, &k->src1, NULL, p, (size_t)v);
        int64_t from = 0;
        for (int u = 0; u < v; u++) // the same value before: go on behind its match
            if (want[u] == want[v])
                from = found[u] < 0 ? (int64_t)n : found[u] + 1;
        for (found[v] = -1; from < (int64_t)n && found[v] < 0; from++)
            if (x[from] == want[v])
                found[v] = from;
    }
    for (int v = 0; v < 8; v++)
        put_index(&k->dst, p, (size_t)v, found[v]);
}

otrn_status eff_find8(const EffCall *c) {
    Stats k = stats_begin(c, 8);
    k.row = row_find8;
    return stats_run(c, &k);
}

static void row_match8(const Stats *k, uint32_t p, const float *x, size_t n) {
    float *row = (float *)(uintptr_t)x; // stats_rows' own copy
    EngBuf s;
    int64_t found[8];
    for (int v = 7; v >= 0; v--) {
        float want = eng_get(&k->walk, &k->src1, NULL, p, (size_t)v);
        found[v] = -1;
        for (size_t i = 0; i < n && found[v] < 0; i++)
            if (row[i] == want)
                found[v] = (int64_t)i, row[i] = k->a.value;
    }
    EngBlock b = {.row = p, .rows = 1};
    for (; b.col < n; b.col += b.cols) {
        b.cols = n - b.col < ENG_BLOCK ? n - b.col : ENG_BLOCK;
        eng_store(&k->walk, &k->dst, &b, row + b.col, &s);
    }
    for (size_t v = 0; k->res.at && v < 8; v++)
        put_index(&k->res, p, v, found[v]);
}

otrn_status eff_match8(const EffCall *c) {
    Stats k = stats_begin(c, 0);
    k.row = row_match8;
    return stats_run(c, &k);
}
