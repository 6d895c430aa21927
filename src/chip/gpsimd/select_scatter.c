// SPDX-License-Identifier: Apache-2.0
// select_scatter.c — select_and_scatter: in every window of the operand the selected element
// receives the window's source value.
//
// Lanes are windows. A window's elements are tried in row-major order; the current one stays as
// long as select(current, candidate) holds; padding never takes part. Source values are then
// scattered one after the other in row-major order. Threads share out a leading axis that windows
// do not reach across.
#include "chip/gpsimd/window.h"

static bool plan(const Kern *k, Windows *w) { return windows_init(w, k, &k->in[0], &k->in[1]); }

bool gp_select_and_scatter_check(const Kern *k) {
    Windows w;
    if (k->nregions != 2 || k->nout != 1)
        return false;
    const KProg *sel = &k->regions[0], *add = &k->regions[1];
    int type = k->in[0].dtype;
    if (k->nin != 3u + sel->ncaptures + add->ncaptures || !plan(k, &w))
        return false;
    if (!gp_same_type(&k->in[0], &k->out[0]) || k->in[1].dtype != type || k->in[2].dtype != type ||
        k->in[2].elems != 1)
        return false;
    if (sel->ninputs != 2 || sel->nouts != 1 || sel->dtypes[0] != type || sel->dtypes[1] != type ||
        sel->dtypes[sel->outs[0]] != DT_I1)
        return false;
    return add->ninputs == 2 && add->nouts == 1 && add->dtypes[0] == type &&
           add->dtypes[1] == type && add->dtypes[add->outs[0]] == type;
}

typedef struct SelJob {
    const GpCall *c;
    Windows w;
    int64_t strides[OTRN_MAX_RANK];
    size_t slots, slot_bytes, bytes;
    char *slot0;
    const void *add_lanes;
    Lane one; // the scatter as one op; fn NULL: as a program
    bool is_one;
    int64_t lead; // extent of the axis the slots share out, or 1
} SelJob;

typedef struct SelSlot {
    Prog sel, add;
    int64_t *place, *base,
        *chosen; // per lane: offset of the window's start, coordinates per axis, selection
    uint8_t *valid;
    char *cur, *cand;
} SelSlot;

static size_t sel_slot_bytes(const Kern *k) {
    size_t rank = k->in[0].rank, bytes = dtype_bytes(k->in[0].dtype);
    return gp_align(prog_slot_bytes(&k->regions[0]) + prog_slot_bytes(&k->regions[1]) +
                    (rank + 2) * LANE_BLOCK * 8 + LANE_BLOCK + 2 * gp_align(LANE_BLOCK * bytes));
}

size_t gp_select_and_scatter_scratch(const Kern *k, int threads) {
    return prog_shared_bytes(&k->regions[0]) + prog_shared_bytes(&k->regions[1]) +
           (size_t)threads * sel_slot_bytes(k);
}

static void sel_open(const SelJob *j, SelSlot *s, size_t slot) {
    const Kern *k = j->c->k;
    char *at = j->slot0 + slot * j->slot_bytes;
    prog_init(&s->sel, &k->regions[0], j->c->scratch, at, gp_captures(j->c, 0));
    at += prog_slot_bytes(&k->regions[0]);
    prog_init(&s->add, &k->regions[1], j->add_lanes, at, gp_captures(j->c, 1));
    at += prog_slot_bytes(&k->regions[1]);
    s->place = (int64_t *)at;
    s->chosen = s->place + LANE_BLOCK;
    s->base = s->chosen + LANE_BLOCK;
    at += ((size_t)j->w.rank + 2) * LANE_BLOCK * 8;
    s->valid = (uint8_t *)at;
    s->cur = at + LANE_BLOCK;
    s->cand = s->cur + gp_align(LANE_BLOCK * j->bytes);
}

// One element of the window against the current choice of each lane.
static void sel_try(const SelJob *j, SelSlot *s, const int64_t *win, size_t m) {
    const char *in = j->c->in[0];
    int64_t shift = 0;
    memset(s->valid, 1, m);
    for (int d = 0; d < j->w.rank; d++) {
        const int64_t *base = s->base + (size_t)d * LANE_BLOCK;
        uint64_t extent = (uint64_t)j->w.axis[d].in;
        for (size_t l = 0; l < m; l++)
            s->valid[l] &= (uint64_t)(base[l] + win[d]) < extent;
        shift += win[d] * j->strides[d];
    }
    for (size_t l = 0; l < m; l++)
        if (s->valid[l])
            memcpy(s->cand + l * j->bytes, in + (s->place[l] + shift) * (int64_t)j->bytes,
                   j->bytes);
    s->sel.at[0] = s->cur, s->sel.at[1] = s->cand;
    prog_run(&s->sel, m);
    const uint8_t *keep = prog_out(&s->sel, 0);
    for (size_t l = 0; l < m; l++)
        if (s->valid[l] && (s->chosen[l] < 0 || !keep[l])) {
            s->chosen[l] = s->place[l] + shift;
            memcpy(s->cur + l * j->bytes, s->cand + l * j->bytes, j->bytes);
        }
}

static void sel_scatter(const SelJob *j, SelSlot *s, int64_t first, size_t m) {
    for (size_t l = 0; l < m; l++) {
        if (s->chosen[l] < 0)
            continue;
        char *dst = (char *)j->c->out[0] + s->chosen[l] * (int64_t)j->bytes;
        char *src = (char *)j->c->in[1] + (first + (int64_t)l) * (int64_t)j->bytes;
        if (j->is_one) {
            lane_run(&j->one, dst, (const void *[2]){src, dst}, 1);
            continue;
        }
        s->add.at[0] = src, s->add.at[1] = dst;
        prog_run(&s->add, 1);
        memmove(dst, prog_out(&s->add, 0), j->bytes);
    }
}

static void sel_block(const SelJob *j, SelSlot *s, int64_t first, size_t m) {
    const Windows *w = &j->w;
    for (size_t l = 0; l < m; l++) {
        int64_t rest = first + (int64_t)l;
        s->place[l] = 0, s->chosen[l] = -1;
        for (int d = w->rank - 1; d >= 0; d--) {
            int64_t at = window_position(&w->axis[d], rest % w->axis[d].out, 0);
            rest /= w->axis[d].out;
            s->base[(size_t)d * LANE_BLOCK + l] = at;
            s->place[l] += at * j->strides[d];
        }
    }
    memset(s->cur, 0, m * j->bytes);
    memset(s->cand, 0, m * j->bytes);
    int64_t win[OTRN_MAX_RANK] = {0};
    for (int64_t e = 0; e < w->count; e++) {
        sel_try(j, s, win, m);
        for (int d = w->rank - 1; d >= 0 && ++win[d] == w->axis[d].size; d--)
            win[d] = 0;
    }
    sel_scatter(j, s, first, m);
}

static void sel_slot(void *arg, size_t begin, size_t end) {
    const SelJob *j = arg;
    int64_t per_lead = j->c->k->in[1].elems / j->lead;
    for (size_t slot = begin; slot < end; slot++) {
        SelSlot s;
        sel_open(j, &s, slot);
        int64_t from = j->lead * (int64_t)slot / (int64_t)j->slots * per_lead;
        int64_t to = j->lead * (int64_t)(slot + 1) / (int64_t)j->slots * per_lead;
        for (int64_t at = from; at < to; at += LANE_BLOCK)
            sel_block(j, &s, at, (size_t)(to - at < LANE_BLOCK ? to - at : LANE_BLOCK));
    }
}

otrn_status gp_select_and_scatter_run(const GpCall *c) {
    const Kern *k = c->k;
    const GpLevel *level = gp_level(c->level);
    SelJob j = {
        .c = c, .slot_bytes = sel_slot_bytes(k), .bytes = dtype_bytes(k->in[0].dtype), .lead = 1};
    RedOp op;
    fill_run(c->pool, c->out[0], c->in[2], j.bytes, (size_t)k->out[0].elems);
    if (!k->in[1].elems || !k->out[0].elems)
        return OTRN_OK;
    plan(k, &j.w);
    gp_strides(&k->in[0], j.strides);
    j.add_lanes = prog_resolve(&k->regions[0], level, c->scratch);
    j.slot0 = prog_resolve(&k->regions[1], level, (void *)j.add_lanes);
    uint8_t types[2] = {k->in[0].dtype, k->in[0].dtype};
    j.is_one = prog_red_op(&k->regions[1], &op) &&
               lane_find(&j.one, level, k->regions[1].steps[0].op, types[0], types, 2, NULL);
    const WindowAxis *a = &j.w.axis[0];
    if (j.w.rank && a->size == 1 && a->low == 0 && a->step == 1 && a->in == a->out)
        j.lead = a->in;
    j.slots = gp_slots(c, (size_t)j.lead);
    pool_run(c->pool, j.slots, 1, sel_slot, &j);
    return OTRN_OK;
}
