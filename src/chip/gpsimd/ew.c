// SPDX-License-Identifier: Apache-2.0
// ew.c — elementwise kernels: lanes over chunks of the tensors; and map, its form with a region.
#include "chip/gpsimd/gp.h"

// The op's attributes in the form of a step's.
static bool ew_attr(const Kern *k, int16_t attr[2]) {
    attr[0] = attr[1] = 0;
    if (k->op == HLO_COMPARE) {
        attr[0] = (int16_t)gp_int(k, AK_COMPARISON_DIRECTION, -1);
        attr[1] = (int16_t)gp_int(k, AK_COMPARE_TYPE, CMPT_NOTYPE);
        return attr[0] >= CMP_EQ && attr[0] <= CMP_LT;
    }
    if (k->op == HLO_REDUCE_PRECISION) {
        int64_t e = gp_int(k, AK_EXPONENT_BITS, -1), m = gp_int(k, AK_MANTISSA_BITS, -1);
        attr[0] = (int16_t)(e > 64 ? 64 : e), attr[1] = (int16_t)(m > 64 ? 64 : m);
        return e >= 1 && m >= 0;
    }
    return true;
}

static bool ew_lane(const Kern *k, const GpLevel *level, Lane *lane) {
    uint8_t in[3];
    int16_t attr[2];
    if (k->nin < 1 || k->nin > 3 || k->nout != 1 || !ew_attr(k, attr))
        return false;
    for (uint32_t i = 0; i < k->nin; i++)
        in[i] = k->in[i].dtype;
    return lane_find(lane, level, k->op, k->out[0].dtype, in, (int)k->nin, attr);
}

// The predicate of select and the bounds of clamp may be scalars.
static bool may_splat(uint16_t op, uint32_t i) {
    return (op == HLO_SELECT && i == 0) || (op == HLO_CLAMP && i != 1);
}

bool gp_ew_check(const Kern *k) {
    Lane lane;
    if (!ew_lane(k, &gp_level_portable, &lane))
        return false;
    for (uint32_t i = 0; i < k->nin; i++)
        if (!gp_same_dims(&k->in[i], &k->out[0]) && !(may_splat(k->op, i) && k->in[i].rank == 0))
            return false;
    return true;
}

typedef struct EwJob {
    Lane lane;
    const GpCall *c;
    bool splat[3];
    void *splats[3]; // LANE_BLOCK copies of a scalar operand
} EwJob;

static void ew_chunk(void *arg, size_t begin, size_t end) {
    const EwJob *j = arg;
    const Lane *l = &j->lane;
    bool splat = j->splat[0] || j->splat[1] || j->splat[2];
    size_t step = splat ? LANE_BLOCK : end - begin;
    for (size_t at = begin; at < end; at += step) {
        const void *src[3] = {0};
        for (int i = 0; i < l->nin; i++)
            src[i] = j->splat[i] ? j->splats[i] : (char *)j->c->in[i] + at * l->in_bytes[i];
        lane_run(l, (char *)j->c->out[0] + at * l->out_bytes, src,
                 end - at < step ? end - at : step);
    }
}

static size_t ew_grain(size_t bytes) { return GP_GRAIN_BYTES / (bytes ? bytes : 1) & ~(size_t)63; }

otrn_status gp_ew_run(const GpCall *c) {
    const Kern *k = c->k;
    _Alignas(64) char splats[3][LANE_BLOCK * 16];
    EwJob j = {.c = c};
    ew_lane(k, gp_level(c->level), &j.lane);
    size_t n = (size_t)k->out[0].elems;
    for (uint32_t i = 0; i < k->nin; i++) {
        j.splat[i] = k->in[i].rank == 0 && k->out[0].rank != 0;
        j.splats[i] = splats[i];
        if (j.splat[i])
            gp_fill(splats[i], c->in[i], j.lane.in_bytes[i], LANE_BLOCK);
    }
    pool_run(c->pool, n, ew_grain(j.lane.out_bytes), ew_chunk, &j);
    return OTRN_OK;
}

// --- map ---------------------------------------------------------------------------------------

// How each operand of the fused form relates to the results' shape (see ops.def); NULL: all have it.
static const int64_t *map_kinds(const Kern *k) {
    const HloAttr *a = k->op == HLO_FUSED ? kern_attr(k, AK_BROADCAST_DIMENSIONS) : NULL;
    return a && a->kind == HA_INTS && a->n >= k->regions[0].ninputs ? a->ints : NULL;
}

bool gp_map_check(const Kern *k) {
    if (k->nregions != 1 || k->nout < 1)
        return false;
    const KProg *p = &k->regions[0];
    if (p->nouts != k->nout || p->ninputs + (uint32_t)p->ncaptures != k->nin)
        return false;
    const int64_t *kinds = map_kinds(k);
    for (int i = 0; i < p->ninputs; i++)
        if (!hlo_fused_fits(k->in[i].dims, k->in[i].rank, k->out[0].dims, k->out[0].rank,
                            kinds ? kinds[i] : FUSED_SAME) ||
            k->in[i].dtype != p->dtypes[i])
            return false;
    for (uint32_t i = 0; i < k->nout; i++)
        if (!gp_same_dims(&k->out[i], &k->out[0]) || p->dtypes[p->outs[i]] != k->out[i].dtype)
            return false;
    return true;
}

#define MAP_SLOTS 4 // per thread: evens out unequal cores

// A slot: the program's registers, then a block for each operand that is repeated.
static size_t map_slot_bytes(const Kern *k) {
    const KProg *p = &k->regions[0];
    const int64_t *kinds = map_kinds(k);
    size_t bytes = prog_slot_bytes(p);
    for (int i = 0; kinds && i < p->ninputs; i++)
        if (kinds[i] != FUSED_SAME)
            bytes += gp_align(LANE_BLOCK * dtype_bytes(p->dtypes[i]));
    return bytes;
}

size_t gp_map_scratch(const Kern *k, int threads) {
    return prog_shared_bytes(&k->regions[0]) + MAP_SLOTS * (size_t)threads * map_slot_bytes(k);
}

// Lanes [at, at + m) of an operand that is repeated along trailing (rows) or leading dimensions (columns).
static void map_repeat(char *to, const char *from, size_t elem, int64_t kind, size_t in_elems, size_t out_elems,
                       size_t at, size_t m) {
    size_t inner = kind == FUSED_ROWS ? out_elems / in_elems : in_elems;
    for (size_t done = 0; done < m;) {
        size_t i = at + done, left = inner - i % inner, run = left < m - done ? left : m - done;
        if (kind == FUSED_ROWS)
            gp_fill(to + done * elem, from + i / inner * elem, elem, run);
        else
            memcpy(to + done * elem, from + i % inner * elem, run * elem);
        done += run;
    }
}

typedef struct MapJob {
    const GpCall *c;
    size_t slots;
    char *slot0;
    uint64_t direct; // results, the first 64, that the steps write where they belong
} MapJob;

// May result o's register be the result itself? A result can lie on an operand, which must then have been read when
// the register is first written.
static bool map_is_direct(const GpCall *c, int o) {
    const Kern *k = c->k;
    const KProg *p = &k->regions[0];
    const int64_t *kinds = map_kinds(k);
    int first = prog_first_write(p, p->outs[o]);
    for (int other = 0; other < o; other++)
        if (p->outs[other] == p->outs[o])
            return false;
    if (first < 0)
        return false;
    const char *to = c->out[o];
    for (uint32_t i = 0; i < k->nin; i++) {
        const char *from = c->in[i];
        if (from + gp_bytes(&k->in[i]) <= to || to + gp_bytes(&k->out[o]) <= from)
            continue;
        if (from != to || (int)i >= p->ninputs || (kinds && kinds[i] != FUSED_SAME) ||
            dtype_bytes(k->in[i].dtype) != dtype_bytes(k->out[o].dtype) ||
            prog_reads_after(p, c->scratch, (int)i, first))
            return false;
    }
    return true;
}

// Points the operands' registers at lanes [at, at + m). A row's value stays in its block while the row goes on.
static void map_inputs(const MapJob *j, Prog *g, char *block, size_t begin, size_t at, size_t m) {
    const GpCall *c = j->c;
    const KProg *p = g->p;
    const int64_t *kinds = map_kinds(c->k);
    size_t n = (size_t)c->k->out[0].elems;
    for (int i = 0; i < p->ninputs; i++) {
        size_t elem = dtype_bytes(p->dtypes[i]), has = (size_t)c->k->in[i].elems;
        int64_t kind = kinds ? kinds[i] : FUSED_SAME;
        g->at[i] = (char *)c->in[i] + at * elem;
        if (kind == FUSED_SAME)
            continue;
        g->at[i] = block;
        block += gp_align(LANE_BLOCK * elem);
        if (kind == FUSED_COLUMNS && at % has + m <= has) {
            g->at[i] = (char *)c->in[i] + at % has * elem;
            continue;
        }
        size_t len = kind == FUSED_ROWS ? n / has : 0;
        if (kind != FUSED_ROWS || at == begin || (at - LANE_BLOCK) / len != (at + m - 1) / len)
            map_repeat(g->at[i], c->in[i], elem, kind, has, n, at, m);
    }
}

static void map_slot(void *arg, size_t begin, size_t end) {
    const MapJob *j = arg;
    const GpCall *c = j->c;
    const KProg *p = &c->k->regions[0];
    size_t n = (size_t)c->k->out[0].elems, blocks = (n + LANE_BLOCK - 1) / LANE_BLOCK;
    for (size_t slot = begin; slot < end; slot++) {
        Prog g;
        char *base = j->slot0 + slot * map_slot_bytes(c->k);
        prog_init(&g, p, c->scratch, base, gp_captures(c, 0));
        size_t first = slot * blocks / j->slots;
        for (size_t b = first; b < (slot + 1) * blocks / j->slots; b++) {
            size_t at = b * LANE_BLOCK, m = n - at < LANE_BLOCK ? n - at : LANE_BLOCK;
            map_inputs(j, &g, base + prog_slot_bytes(p), first * LANE_BLOCK, at, m);
            for (uint32_t i = 0; i < c->k->nout && i < 64; i++)
                if (j->direct >> i & 1)
                    g.at[p->outs[i]] = (char *)c->out[i] + at * dtype_bytes(c->k->out[i].dtype);
            prog_run(&g, m);
            for (uint32_t i = 0; i < c->k->nout; i++) { // after all steps: results may lie on operands
                size_t bytes = dtype_bytes(c->k->out[i].dtype);
                char *to = (char *)c->out[i] + at * bytes;
                if (prog_out(&g, (int)i) != to)
                    memcpy(to, prog_out(&g, (int)i), m * bytes);
            }
        }
    }
}

otrn_status gp_map_run(const GpCall *c) {
    const KProg *p = &c->k->regions[0];
    size_t blocks = ((size_t)c->k->out[0].elems + LANE_BLOCK - 1) / LANE_BLOCK;
    size_t slots = MAP_SLOTS * (size_t)pool_threads(c->pool);
    slots = slots < blocks / MAP_SLOTS ? slots : gp_slots(c, blocks);
    MapJob j = {c, slots, prog_resolve(p, gp_level(c->level), c->scratch), 0};
    for (uint32_t i = 0; i < c->k->nout && i < 64; i++)
        j.direct |= (uint64_t)map_is_direct(c, (int)i) << i;
    if (blocks)
        pool_run(c->pool, j.slots, 1, map_slot, &j);
    return OTRN_OK;
}
