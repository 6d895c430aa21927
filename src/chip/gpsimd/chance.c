// SPDX-License-Identifier: Apache-2.0
// chance.c — rounding by chance on GpSimd: compute in fp32, round when writing.
//
// The kernel runs with every float narrower than f32 made f32, its scalar programs too, and what it leaves is
// rounded by the hash that the other engines use (base/round.h): the counter is the element's number, the key the
// instruction's, another one for each further result. So nothing depends on threads or on the host.
//
// A conversion that stands inside a scalar program is the program's own wish and rounds to nearest even. Kernels
// that only move numbers have nothing to round. Collectives round to nearest even: all devices must get the same bits.
#include "chip/gpsimd/chance.h"

#include <string.h>

#include "base/round.h"
#include "chip/core/engine.h"
#include "chip/gpsimd/gp.h"

#define BLOCK 1024

static bool is_wide(const DtypeRow *r, int dtype) { return r->cls != DC_FLOAT || dtype == DT_F32 || r->bits > 32; }

static bool is_narrow(int dtype) {
    const DtypeRow *r = dtype_row(dtype);
    return !is_wide(r, dtype) && r->bits >= 8 && r->flavour != FF_E8M0;
}

static int widened(int dtype) { return is_narrow(dtype) ? DT_F32 : dtype; }

// --- widening ----------------------------------------------------------------------------------------

// Ops that read or make their operand's bits, or that others take part in.
static bool keeps_types(int op) {
    int cls = hlo_op_rows[op].cls;
    return cls == HC_MOVE || cls == HC_COLL || cls == HC_CTRL || cls == HC_META || op == HLO_CUSTOM_CALL || op == HLO_RNG ||
           op == HLO_RNG_BIT_GENERATOR || op == HLO_INFEED || op == HLO_OUTFEED || op == HLO_CHLO_NEXT_AFTER ||
           op == HLO_SORT || op == HLO_CHLO_TOP_K;
}

static bool is_returned(const KProg *p, uint16_t reg) {
    for (int i = 0; i < p->nouts; i++)
        if (p->outs[i] == reg)
            return true;
    return false;
}

// A conversion to a narrow float whose result is not the program's: rounds as before. False: there is no such step.
static bool step_widen(const KProg *p, KStep *s) {
    if (s->op == HLO_BITCAST_CONVERT || s->op == HLO_CHLO_NEXT_AFTER)
        return !is_narrow(p->dtypes[s->dst]) && !is_narrow(p->dtypes[s->src[0]]);
    int from = s->op == HLO_CONVERT ? p->dtypes[s->src[0]] : DT_INVALID, to = p->dtypes[s->dst];
    if (s->op != HLO_CONVERT || !is_narrow(to) || from == to || is_returned(p, s->dst))
        return true;
    if (widened(from) != DT_F32 || (to != DT_BF16 && to != DT_F16))
        return false;
    s->op = HLO_REDUCE_PRECISION;
    s->attr[0] = (int16_t)dtype_row(to)->exp_bits;
    s->attr[1] = (int16_t)dtype_row(to)->man_bits;
    return true;
}

static bool prog_widen(Arena *a, KProg *p) {
    KStep *steps = ARENA_NEWN(a, KStep, p->nsteps + 1);
    for (int i = 0; i < p->nsteps; i++) {
        steps[i] = p->steps[i];
        if (!step_widen(p, &steps[i]))
            return false;
    }
    uint8_t(*consts)[16] = arena_zalloc(a, (size_t)(p->nconsts + 1) * 16);
    for (int i = 0; i < p->nconsts; i++) {
        int dtype = p->dtypes[p->const_regs[i]];
        memcpy(consts[i], p->consts[i], 16);
        if (is_narrow(dtype)) {
            float f = (float)dtype_to_f64(dtype, p->consts[i]);
            memset(consts[i], 0, 16);
            memcpy(consts[i], &f, 4);
        }
    }
    uint8_t *dtypes = ARENA_NEWN(a, uint8_t, p->nregs + 1);
    for (int i = 0; i < p->nregs; i++)
        dtypes[i] = (uint8_t)widened(p->dtypes[i]);
    p->steps = steps;
    p->consts = (const uint8_t(*)[16])consts;
    p->dtypes = dtypes;
    return true;
}

static size_t room_of(const KTensor *t) { return is_narrow(t->dtype) ? ((size_t)t->elems * 4 + 63) & ~(size_t)63 : 0; }

static const KTensor *tensors_widen(Arena *a, const KTensor *t, uint32_t n, size_t *bytes) {
    KTensor *out = ARENA_NEWN(a, KTensor, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = t[i];
        out[i].dtype = (uint8_t)widened(t[i].dtype);
        *bytes += room_of(&t[i]);
    }
    return out;
}

GpChance *gp_chance_make(Arena *a, const Kern *k) {
    bool rounds = false;
    for (uint32_t i = 0; i < k->nout; i++)
        rounds |= is_narrow(k->out[i].dtype);
    if (!rounds || keeps_types(k->op))
        return NULL;
    GpChance *g = ARENA_NEW(a, GpChance);
    g->wide = *k;
    g->wide.in = tensors_widen(a, k->in, k->nin, &g->bytes);
    g->wide.out = tensors_widen(a, k->out, k->nout, &g->bytes);
    KProg *progs = ARENA_NEWN(a, KProg, k->nregions + 1);
    for (uint32_t i = 0; i < k->nregions; i++) {
        progs[i] = k->regions[i];
        if (!prog_widen(a, &progs[i]))
            return NULL;
    }
    g->wide.regions = progs;
    g->ptrs = ARENA_NEWN(a, void *, k->nin + k->nout + 1);
    g->fn = gp_find(&g->wide);
    return g->fn ? g : NULL;
}

// --- running -------------------------------------------------------------------------------------------

typedef struct Cast {
    const GpLevel *level;
    int dtype;
    uint8_t *narrow;
    float *wide;
    size_t n;
    uint32_t key;
} Cast;

static void widen(void *arg, size_t begin, size_t end) {
    const Cast *c = arg;
    end = end * BLOCK < c->n ? end * BLOCK : c->n;
    c->level->widen[c->dtype](c->wide + begin * BLOCK, c->narrow + begin * BLOCK * dtype_bytes(c->dtype), end - begin * BLOCK);
}

static void round_by_chance(void *arg, size_t begin, size_t end) {
    const Cast *c = arg;
    float tmp[BLOCK];
    for (size_t at = begin * BLOCK; begin < end; begin++, at += BLOCK)
        eng_by_chance(c->level, c->dtype, c->narrow + at * dtype_bytes(c->dtype), c->wide + at, c->n - at < BLOCK ? c->n - at : BLOCK,
                      c->key, (uint32_t)at, tmp);
}

static void cast_run(Pool *pool, PoolFn *fn, Cast *c) {
    pool_run(pool, (c->n + BLOCK - 1) / BLOCK, 16, fn, c);
}

otrn_status gp_chance_run(const GpChance *g, const GpCall *call, uint8_t *room, uint32_t key) {
    const Kern *k = call->k;
    Cast cast = {.level = gp_level(call->level)};
    uint8_t *at = room;
    for (uint32_t i = 0; i < k->nin + k->nout; i++) {
        bool is_in = i < k->nin;
        const KTensor *t = is_in ? &k->in[i] : &k->out[i - k->nin];
        g->ptrs[i] = is_in ? call->in[i] : call->out[i - k->nin];
        if (!is_narrow(t->dtype))
            continue;
        cast.dtype = t->dtype, cast.narrow = g->ptrs[i], cast.wide = (float *)at, cast.n = (size_t)t->elems;
        g->ptrs[i] = at;
        at += room_of(t);
        if (is_in)
            cast_run(call->pool, widen, &cast);
    }
    GpCall wide = *call;
    wide.k = &g->wide;
    wide.in = g->ptrs;
    wide.out = g->ptrs + k->nin;
    otrn_status s = g->fn(&wide);
    for (uint32_t i = 0; i < k->nout && s == OTRN_OK; i++) {
        if (!is_narrow(k->out[i].dtype))
            continue;
        cast.dtype = k->out[i].dtype, cast.narrow = call->out[i], cast.wide = g->ptrs[k->nin + i];
        cast.n = (size_t)k->out[i].elems;
        cast.key = i ? round_bits(key, i) : key;
        cast_run(call->pool, round_by_chance, &cast);
    }
    return s;
}
