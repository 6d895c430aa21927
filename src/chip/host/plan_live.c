// SPDX-License-Identifier: Apache-2.0
// plan_live.c — which bytes of SBUF somebody still reads, going backward through the program.
//
// Both steps of a grain, "read by these partitions" and "written for these", change nothing when done twice: vectors may
// overlap at a stretch's end.
#include "chip/host/plan_step.h"

#include <string.h>

// --- touches ---------------------------------------------------------------------------------------------

static uint8_t touch_kind(const IsaInst *in, const ShapeAccesses *accesses) {
    int cost = isa_rows[in->op].cost;
    if (in->op == ISA_HALT || cost == COST_KERNEL || cost == COST_BRANCH || cost == COST_LOOP || cost == COST_COLLECTIVE ||
        cost == COST_REGLOAD || cost == COST_REMOTE || in->op == ISA_SENDRECV)
        return TOUCH_MORE;
    int in_sbuf = 0;
    for (int i = 0; i < accesses->n; i++) {
        if (accesses->at[i].by_register || (accesses->at[i].space == SPACE_HBM && accesses->at[i].is_write))
            return TOUCH_MORE;
        in_sbuf += accesses->at[i].space == SPACE_SBUF;
    }
    if (!plan_is_product(in))
        return TOUCH_PLAIN;
    bool plain = in_sbuf == 1 && addr_space(in->src) == SPACE_SBUF && in->s[1] >= 0 && !in->s[3] && !in->step;
    return plain ? TOUCH_PRODUCT : TOUCH_MORE;
}

static PlanTouch touch_of(const uint8_t *record, const ShapeAccesses *accesses, uint8_t kind) {
    PlanTouch t = {.lo = UINT32_MAX, .p0 = UINT8_MAX, .kind = kind};
    for (int i = 0; i < accesses->n; i++) {
        const ShapeAccess *a = &accesses->at[i];
        if (a->space != SPACE_SBUF)
            continue;
        uint32_t off = shape_poff(a, record), lo = (uint32_t)(off + a->lo), hi = (uint32_t)(off + a->hi);
        uint32_t p0 = a->part, p1 = p0 + a->parts;
        t.lo = lo < t.lo ? lo : t.lo, t.hi = hi > t.hi ? hi : t.hi;
        t.p0 = p0 < t.p0 ? (uint8_t)p0 : t.p0, t.p1 = p1 > t.p1 ? (uint8_t)p1 : t.p1;
    }
    return t;
}

typedef struct Touches {
    const PlanCode *code;
    const uint8_t *kinds; // per shape
    PlanTouch *out;
} Touches;

static void touches_task(void *arg, size_t begin, size_t end) {
    const Touches *t = arg;
    const PlanCode *code = t->code;
    for (size_t i = begin; i < end; i++) {
        uint32_t shape = code->shapes->of[i];
        t->out[i] = touch_of(shape_record(code->shapes, (uint32_t)i), &code->accesses[shape],
                             code->dynamic[i] ? TOUCH_DYNAMIC : t->kinds[shape]);
    }
}

#define TOUCH_GRAIN 4096

const PlanTouch *plan_touches(Arena *a, const PlanCode *code) {
    uint8_t *kinds = ARENA_NEWN(a, uint8_t, (size_t)code->shapes->n + 1);
    for (uint32_t i = 0; i < code->shapes->n; i++)
        kinds[i] = touch_kind(&code->shapes->at[i].in, &code->accesses[i]);
    Touches t = {code, kinds, arena_alloc(a, ((size_t)code->art->ncode + 1) * sizeof *t.out)};
    pool_run(code->pool, code->art->ncode, TOUCH_GRAIN, touches_task, &t);
    return t.out;
}

// --- liveness --------------------------------------------------------------------------------------------

void plan_live_all(PlanLive *l, bool live) { memset(l->parts, live ? PARTITIONS : 0, sizeof l->parts); }

bool plan_live_any(const PlanLive *l, uint32_t lo, uint32_t hi) {
    for (uint32_t g = lo / PLAN_GRAIN; g <= (hi - 1) / PLAN_GRAIN; g++)
        if (l->parts[g])
            return true;
    return false;
}

typedef uint8_t Vec __attribute__((vector_size(16)));

static Vec vec_read(Vec x, Vec p1) {
    Vec less = (Vec)(x < p1);
    return (p1 & less) | (x & ~less);
}

static void live_read(PlanLive *l, uint32_t lo, uint32_t hi, uint32_t p1) {
    uint32_t g = lo / PLAN_GRAIN, end = (hi - 1) / PLAN_GRAIN + 1;
    Vec all = (Vec){0} + (uint8_t)p1, x;
    if (end - g < sizeof(Vec)) {
        for (; g < end; g++)
            l->parts[g] = l->parts[g] < p1 ? (uint8_t)p1 : l->parts[g];
        return;
    }
    for (;; g = g + 2 * sizeof(Vec) > end ? end - sizeof(Vec) : g + sizeof(Vec)) {
        memcpy(&x, &l->parts[g], sizeof x);
        x = vec_read(x, all);
        memcpy(&l->parts[g], &x, sizeof x);
        if (g + sizeof(Vec) == end)
            return;
    }
}

// Only whole grains, from the first partition on, stop being needed.
static void live_write(PlanLive *l, uint32_t lo, uint32_t hi, uint32_t p0, uint32_t p1) {
    if (p0)
        return;
    for (uint32_t g = (lo + PLAN_GRAIN - 1) / PLAN_GRAIN, end = hi / PLAN_GRAIN; g < end; g++)
        l->parts[g] = l->parts[g] <= p1 ? 0 : l->parts[g];
}

static void live_access(PlanLive *l, int op, const uint8_t *record, const ShapeAccess *a, bool reads) {
    if (a->space != SPACE_SBUF || a->is_write == reads)
        return;
    if (a->by_register) { // anywhere
        if (reads)
            plan_live_all(l, true);
        return;
    }
    uint32_t off = shape_poff(a, record), begin = (uint32_t)(off + a->lo), end = (uint32_t)(off + a->hi);
    if (reads)
        live_read(l, begin, end, a->part + a->parts);
    else if (a->dense && (op == ISA_DMA || op == ISA_DMA_TRANSPOSE || op == ISA_COPY))
        live_write(l, begin, end, a->part, a->part + a->parts);
}

static void live_alone(PlanLive *l, int op, const uint8_t *record, const ShapeAccesses *accesses) {
    for (int i = 0; i < accesses->n; i++)
        live_access(l, op, record, &accesses->at[i], false);
    for (int i = 0; i < accesses->n; i++)
        live_access(l, op, record, &accesses->at[i], true);
    if (op == ISA_COPY_PRED) // what it leaves
        for (int i = 0; i < accesses->n; i++)
            if (accesses->at[i].is_write) {
                ShapeAccess left = accesses->at[i];
                left.is_write = false;
                live_access(l, op, record, &left, true);
            }
}

void plan_live_alone(PlanLive *l, const PlanCode *code, uint32_t pc) {
    const PlanTouch *t = &code->touches[pc];
    if (t->kind == TOUCH_PRODUCT) // reads, and nothing of SBUF besides
        live_read(l, t->lo, t->hi, t->p1);
    else
        live_alone(l, shape_inst(code->shapes, pc)->op, shape_record(code->shapes, pc), &code->accesses[code->shapes->of[pc]]);
}

// A run's form knows every write.
void plan_live_joined(PlanLive *l, const PlanCode *code, uint32_t pc) {
    const PlanForm *f = &code->forms[code->shapes->of[pc]];
    const uint8_t *record = shape_record(code->shapes, pc);
    for (uint32_t i = f->step.naccs; i-- > 0;) {
        const PlanAcc *x = &f->acc[i];
        if (x->space != SPACE_SBUF)
            continue;
        uint32_t first = plan_poff(x, record);
        if (!x->is_write)
            live_read(l, x->lo + first, x->hi + first, x->p1);
        else if (x->flat)
            live_write(l, x->lo + first, x->hi + first, x->p0, x->p1);
    }
}
