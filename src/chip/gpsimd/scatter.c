// SPDX-License-Identifier: Apache-2.0
// scatter.c — scatter: every index vector names a window of the result that its update joins.
//
// Updates are taken in order; elements of a window that fall outside are skipped. Threads split a
// window axis that no index moves, or whole rows of the result (an embedding's gradient), so that an
// element of the result always belongs to one thread and sees its updates in order.
#include "chip/gpsimd/index.h"

static uint32_t scatter_count(const Kern *k) { return k->nout; }

static bool scatter_plan(const Kern *k, IndexPlan *p) {
    uint32_t n = scatter_count(k);
    return index_init(p, k, &k->in[0], &k->in[n], &k->in[n + 1], &index_of_scatter);
}

bool gp_scatter_check(const Kern *k) {
    uint32_t n = scatter_count(k);
    IndexPlan p;
    if (k->nregions != 1 || n < 1 || n > UINT16_MAX / 2)
        return false;
    const KProg *body = &k->regions[0];
    if (k->nin != 2 * n + 1 + body->ncaptures || body->ninputs != 2 * n || body->nouts != n ||
        !scatter_plan(k, &p))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const KTensor *in = &k->in[i], *up = &k->in[n + 1 + i];
        if (!gp_same_type(in, &k->out[i]) || !gp_same_dims(in, &k->in[0]) ||
            !gp_same_dims(up, &k->in[n + 1]))
            return false;
        if (body->dtypes[i] != in->dtype || body->dtypes[n + i] != up->dtype ||
            body->dtypes[body->outs[i]] != in->dtype || up->dtype != in->dtype)
            return false;
    }
    for (int i = 0; i < p.nwindow; i++)
        if (p.window[i].n > k->in[0].dims[p.window[i].axis])
            return false;
    return true;
}

// Space for the current and the new values of a block that is not contiguous, per operand.
static size_t staging_bytes(const Kern *k) {
    size_t bytes = gp_align(2 * k->nout * sizeof(void *));
    for (uint32_t i = 0; i < k->nout; i++)
        bytes += 2 * gp_align(LANE_BLOCK * dtype_bytes(k->in[i].dtype));
    return bytes;
}

static size_t scatter_slot_bytes(const Kern *k) {
    return prog_slot_bytes(&k->regions[0]) + staging_bytes(k);
}

size_t gp_scatter_scratch(const Kern *k, int threads) {
    return prog_shared_bytes(&k->regions[0]) + (size_t)threads * scatter_slot_bytes(k);
}

typedef enum ScatterKind { SCATTER_SET, SCATTER_OP, SCATTER_PROG } ScatterKind;

typedef struct ScatterJob {
    const GpCall *c;
    IndexPlan p;
    ScatterKind kind;
    Lane lane; // SCATTER_OP
    int split; // window axis the slots share out, or -1
    size_t slots;
    char *slot0;
} ScatterJob;

typedef struct ScatterSlot {
    const ScatterJob *j;
    Prog prog;
    char **staging; // two per operand: current, update
    int64_t split_lo, split_hi;
} ScatterSlot;

static void strided_in(char *dst, const char *src, int64_t stride, size_t bytes, size_t n) {
    Copy c;
    copy_init(&c, bytes, 1, &(CopyAxis){(int64_t)n, 1, stride});
    copy_serial(&c, dst, src);
}
static void strided_out(char *dst, int64_t stride, const char *src, size_t bytes, size_t n) {
    Copy c;
    copy_init(&c, bytes, 1, &(CopyAxis){(int64_t)n, stride, 1});
    copy_serial(&c, dst, src);
}

// At most LANE_BLOCK elements along one axis, at dst and up (in elements) with those strides.
static void scatter_block(const ScatterSlot *s, int64_t dst, int64_t dst_step, int64_t up,
                          int64_t up_step, size_t m) {
    const ScatterJob *j = s->j;
    const Kern *k = j->c->k;
    uint32_t n = scatter_count(k);
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = dtype_bytes(k->in[i].dtype);
        char *cur = (char *)j->c->out[i] + dst * (int64_t)bytes;
        char *new = (char *)j->c->in[n + 1 + i] + up *(int64_t)bytes;
        if (dst_step != 1 && m > 1) {
            strided_in(s->staging[2 * i], cur, dst_step, bytes, m);
            cur = s->staging[2 * i];
        }
        if (up_step != 1 && m > 1) {
            strided_in(s->staging[2 * i + 1], new, up_step, bytes, m);
            new = s->staging[2 * i + 1];
        }
        s->prog.at[i] = cur;
        s->prog.at[n + i] = new;
    }
    if (j->kind == SCATTER_PROG)
        prog_run(&s->prog, m);
    else if (j->kind == SCATTER_OP)
        lane_run(&j->lane, s->prog.at[0], (const void *[2]){s->prog.at[0], s->prog.at[1]}, m);
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = dtype_bytes(k->in[i].dtype);
        char *cur = (char *)j->c->out[i] + dst * (int64_t)bytes;
        const void *from = j->kind == SCATTER_PROG  ? prog_out(&s->prog, (int)i)
                           : j->kind == SCATTER_SET ? s->prog.at[1]
                                                    : s->prog.at[0];
        if (dst_step != 1 && m > 1)
            strided_out(cur, dst_step, from, bytes, m);
        else if (from != cur)
            memcpy(cur, from, m * bytes);
    }
}

typedef struct Clip { // the part of a window axis that lies inside
    int64_t n, dst_step, up_step;
} Clip;

// Walks the clipped window; its last axis is done in blocks.
static void scatter_window(const ScatterSlot *s, const Clip *clip, int rank, int64_t dst,
                           int64_t up) {
    if (rank == 0) {
        scatter_block(s, dst, 1, up, 1, 1);
        return;
    }
    int64_t at[OTRN_MAX_RANK] = {0};
    const Clip *last = &clip[rank - 1];
    for (;;) {
        for (int64_t b = 0; b < last->n; b += LANE_BLOCK) {
            size_t m = (size_t)(last->n - b < LANE_BLOCK ? last->n - b : LANE_BLOCK);
            scatter_block(s, dst + b * last->dst_step, last->dst_step, up + b * last->up_step,
                          last->up_step, m);
        }
        int a = rank - 2;
        for (; a >= 0; a--) {
            dst += clip[a].dst_step, up += clip[a].up_step;
            if (++at[a] < clip[a].n)
                break;
            at[a] = 0;
            dst -= clip[a].n * clip[a].dst_step, up -= clip[a].n * clip[a].up_step;
        }
        if (a < 0)
            return;
    }
}

// Where the window of one index vector lies: false when nothing of it is inside.
static bool scatter_place(const ScatterSlot *s, const IndexAt *at, Clip *clip, int64_t *dst,
                          int64_t *up) {
    const IndexPlan *p = &s->j->p;
    const KTensor *t = p->operand;
    int64_t start[OTRN_MAX_RANK] = {0}, strides[OTRN_MAX_RANK];
    gp_strides(t, strides);
    for (int i = 0; i < p->nmap; i++)
        start[p->map[i]] = gp_index_at(p->indices->dtype, s->j->c->in[scatter_count(s->j->c->k)],
                                       (size_t)(at->indices + i * p->vec_stride));
    *dst = at->operand, *up = at->windows;
    for (int d = 0; d < t->rank; d++) {
        int w = p->kept[d];
        if (p->is_batching[d])
            continue;
        int64_t n = w < 0 ? 1 : p->window[w].n;
        if (start[d] >= t->dims[d] || start[d] <= -n)
            return false;
        int64_t lo = start[d] < 0 ? -start[d] : 0;
        int64_t hi = n < t->dims[d] - start[d] ? n : t->dims[d] - start[d];
        if (w >= 0 && w == s->j->split) {
            lo = lo > s->split_lo ? lo : s->split_lo;
            hi = hi < s->split_hi ? hi : s->split_hi;
        }
        if (lo >= hi)
            return false;
        *dst += (start[d] + lo) * strides[d];
        if (w < 0)
            continue;
        *up += lo * p->window[w].windows;
        clip[w] = (Clip){hi - lo, p->window[w].operand, p->window[w].windows};
    }
    return true;
}

static void scatter_slot(void *arg, size_t begin, size_t end) {
    const ScatterJob *j = arg;
    const Kern *k = j->c->k;
    const KProg *body = &k->regions[0];
    for (size_t slot = begin; slot < end; slot++) {
        ScatterSlot s = {.j = j};
        char *base = j->slot0 + slot * scatter_slot_bytes(k);
        prog_init(&s.prog, body, j->c->scratch, base, gp_captures(j->c, 0));
        s.staging = (char **)(base + prog_slot_bytes(body));
        char *room = (char *)s.staging + gp_align(2 * k->nout * sizeof(void *));
        for (uint32_t i = 0; i < 2 * k->nout; i++) {
            s.staging[i] = room;
            room += gp_align(LANE_BLOCK * dtype_bytes(k->in[i / 2].dtype));
        }
        if (j->split >= 0) {
            int64_t n = j->p.window[j->split].n;
            s.split_lo = n * (int64_t)slot / (int64_t)j->slots;
            s.split_hi = n * (int64_t)(slot + 1) / (int64_t)j->slots;
        }
        IndexAt at;
        Clip clip[OTRN_MAX_RANK];
        int64_t dst, up;
        index_seek(&j->p, &at, 0);
        for (int64_t b = 0; b < j->p.batches; b++, index_next(&j->p, &at))
            if (scatter_place(&s, &at, clip, &dst, &up))
                scatter_window(&s, clip, j->p.nwindow, dst, up);
    }
}

// The widest window axis that no index component moves.
static int scatter_split_axis(const IndexPlan *p) {
    int best = -1;
    for (int w = 0; w < p->nwindow; w++) {
        bool moved = false;
        for (int i = 0; i < p->nmap; i++)
            moved |= p->map[i] == p->window[w].axis;
        if (!moved && (best < 0 || p->window[w].n > p->window[best].n))
            best = w;
    }
    return best;
}

// --- whole rows --------------------------------------------------------------------------------

#define ROWS_AHEAD 16       // rows asked for before their turn
#define ROWS_PER_THREAD 64  // fewer rows of the result are not worth sharing out

// One index component moves along the first axis, and a window is a whole row, dense on both sides.
static bool scatter_is_rows(const ScatterJob *j) {
    const IndexPlan *p = &j->p;
    const KTensor *t = p->operand;
    if (j->kind == SCATTER_PROG || p->nmap != 1 || p->map[0] != 0 || p->is_batching[0] ||
        (p->kept[0] >= 0 && p->window[p->kept[0]].n != 1) ||
        t->dims[0] < ROWS_PER_THREAD * pool_threads(j->c->pool))
        return false;
    for (int d = 1; d < t->rank; d++) {
        if (p->is_batching[d] || p->kept[d] < 0)
            return false;
        const IndexWindow *w = &p->window[p->kept[d]];
        if (w->n != t->dims[d] || (w->n > 1 && w->windows != w->operand))
            return false;
    }
    return true;
}

static inline int64_t row_index(const IndexPlan *p, const void *indices, int64_t at) {
    if (p->indices->dtype == DT_I32)
        return ((const int32_t *)indices)[at];
    return gp_index_at(p->indices->dtype, indices, (size_t)at);
}

// Every slot walks all indices and takes those that fall into its rows.
static void scatter_rows_slot(void *arg, size_t begin, size_t end) {
    const ScatterJob *j = arg;
    const IndexPlan *p = &j->p;
    const KTensor *t = p->operand;
    size_t bytes = dtype_bytes(t->dtype), len = (size_t)(t->elems / t->dims[0]), row = len * bytes;
    int64_t lo = t->dims[0] * (int64_t)begin / (int64_t)j->slots;
    int64_t hi = t->dims[0] * (int64_t)end / (int64_t)j->slots;
    char *out = j->c->out[0];
    const void *indices = j->c->in[1];
    const char *updates = j->c->in[2];
    IndexAt at, ahead;
    index_seek(p, &at, 0);
    index_seek(p, &ahead, 0);
    for (int64_t b = -ROWS_AHEAD; b < p->batches; b++) {
        if (b + ROWS_AHEAD < p->batches) {
            int64_t i = row_index(p, indices, ahead.indices);
            const char *up = updates + (size_t)ahead.windows * bytes;
            for (size_t line = 0; line < row && i >= lo && i < hi; line += 64) {
                __builtin_prefetch(out + (size_t)i * row + line, 1);
                __builtin_prefetch(up + line);
            }
            index_next(p, &ahead);
        }
        if (b < 0)
            continue;
        int64_t i = row_index(p, indices, at.indices);
        if (i >= lo && i < hi) {
            char *dst = out + (size_t)i * row;
            const char *up = updates + (size_t)at.windows * bytes;
            if (j->kind == SCATTER_SET)
                memcpy(dst, up, row);
            else
                lane_run(&j->lane, dst, (const void *[3]){dst, up}, len);
        }
        index_next(p, &at);
    }
}

otrn_status gp_scatter_run(const GpCall *c) {
    const Kern *k = c->k;
    const KProg *body = &k->regions[0];
    const GpLevel *level = gp_level(c->level);
    uint32_t n = scatter_count(k);
    ScatterJob j = {.c = c, .kind = SCATTER_PROG, .slots = 1};
    RedOp op;
    for (uint32_t i = 0; i < n; i++)
        copy_bytes(c->pool, c->out[i], c->in[i], gp_bytes(&k->out[i]));
    if (!k->in[n + 1].elems || !k->out[0].elems)
        return OTRN_OK;
    scatter_plan(k, &j.p);
    j.slot0 = prog_resolve(body, level, c->scratch);
    uint8_t types[2] = {k->in[0].dtype, k->in[0].dtype};
    if (n == 1 && prog_is_second(body))
        j.kind = SCATTER_SET;
    else if (n == 1 && prog_red_op(body, &op) &&
             lane_find(&j.lane, level, body->steps[0].op, k->in[0].dtype, types, 2, NULL))
        j.kind = SCATTER_OP;
    int64_t work = k->in[n + 1].elems * (int64_t)dtype_bytes(k->in[0].dtype);
    if (scatter_is_rows(&j)) {
        j.slots = work > 2 * (int64_t)GP_GRAIN_BYTES ? 2 * (size_t)pool_threads(c->pool) : 1;
        pool_run(c->pool, j.slots, 1, scatter_rows_slot, &j);
        return OTRN_OK;
    }
    j.split = scatter_split_axis(&j.p);
    if (j.split >= 0 && work > 2 * (int64_t)GP_GRAIN_BYTES)
        j.slots = gp_slots(c, (size_t)j.p.window[j.split].n / 64);
    if (j.slots <= 1)
        j.split = -1, j.slots = 1;
    pool_run(c->pool, j.slots, 1, scatter_slot, &j);
    return OTRN_OK;
}
