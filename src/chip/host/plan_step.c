// SPDX-License-Identifier: Apache-2.0
// plan_step.c — which instructions keep to their partition, what they touch, and whether they may join a run.
//
// Asked once per shape (isa/shape.h); an instruction adds where its addresses point.
#include "chip/host/plan_step.h"

#include <string.h>

#include "base/draw.h"
#include "base/rows.h"

enum { S_DST = 1, S_SRC = 2, S_SRC1 = 4, S_AB = 8, S_RES = 16, S_KEEPS = 32 };
// Operands of the instructions that keep to their partition; 0: does not. S_KEEPS: some elements of dst stay as they were.
static uint8_t row_slots(int op) {
    switch (op) {
    case ISA_COPY:
    case ISA_RECIPROCAL:
    case ISA_REDUCE:
    case ISA_RNG_AT:
        return S_DST | S_SRC;
    case ISA_MEMSET:
    case ISA_IOTA:
        return S_DST;
    case ISA_TENSOR_TENSOR:
    case ISA_DROPOUT_AT:
        return S_DST | S_SRC | S_SRC1;
    case ISA_TENSOR_SCALAR:
        return S_DST | S_SRC | S_AB;
    case ISA_SCALAR_TT:
        return S_DST | S_SRC | S_SRC1 | S_AB;
    case ISA_ACTIVATE:
    case ISA_ACTIVATE2:
    case ISA_EXPONENTIAL:
    case ISA_SCALAR_REDUCE:
    case ISA_RANGE_SELECT:
        return S_DST | S_SRC | S_AB | S_RES;
    case ISA_AFFINE_SELECT:
        return S_DST | S_SRC | S_AB;
    case ISA_SELECT_REDUCE:
        return S_DST | S_SRC | S_SRC1 | S_AB | S_RES;
    case ISA_COPY_PRED:
        return S_DST | S_SRC | S_SRC1 | S_AB | S_KEEPS;
    default:
        return 0;
    }
}

bool plan_is_product(const IsaInst *in) { return in->op == ISA_LDWEIGHTS || in->op == ISA_MATMUL; }

bool plan_is_idle(const IsaInst *in) {
    return in->op == ISA_NOP || in->op == ISA_WAIT || in->op == ISA_STREAM_WAIT || in->op == ISA_ACT_LOAD;
}

static bool has_terms(const IsaInst *in) { return in->reg_d[0] || in->reg_s[0] || in->reg_t[0]; }

bool plan_stays_alone(const IsaInst *in) { return has_terms(in) || (in->op != ISA_DMA && !row_slots(in->op)); }

// --- patterns --------------------------------------------------------------------------------------------

typedef struct Extent {
    int64_t lo, hi; // bytes from the first element
    bool flat;      // adjacent and ascending
} Extent;

// Of axes [from, 5).
static Extent extent_of(const uint32_t n[5], const int32_t stride[5], int from, int64_t bytes) {
    Extent e = {0, bytes, true};
    int64_t run = 1;
    for (int i = 4; i >= from; i--) {
        int64_t count = isa_count(n[i]), reach = (count - 1) * stride[i] * bytes;
        if (count == 1)
            continue;
        e.flat &= stride[i] == run;
        run *= count;
        *(reach < 0 ? &e.lo : &e.hi) += reach;
    }
    return e;
}

static void acc_add(PlanForm *f, int slot, uint64_t addr, Extent e, size_t bytes, uint32_t rows, bool is_write) {
    uint32_t part = addr_part(addr);
    f->acc[f->step.naccs++] = (PlanAcc){
        .at = f->places[slot], .slot = (uint8_t)slot, .space = (uint8_t)addr_space(addr), .bytes = (uint8_t)bytes,
        .p0 = (uint8_t)part, .p1 = (uint8_t)(part + rows), .is_write = is_write, .flat = e.flat,
        .how = PLAN_STAYS, .lo = (uint32_t)e.lo, .hi = (uint32_t)e.hi};
}

// --- engines ---------------------------------------------------------------------------------------------

static bool in_partitions(uint64_t addr) {
    return addr_space(addr) == SPACE_SBUF || addr_space(addr) == SPACE_PSUM;
}

static bool tensor_add(PlanForm *f, int slot, uint64_t addr, int dtype, const IsaInst *in, const uint32_t n[5],
                       const int32_t stride[5], bool is_write) {
    if (!in_partitions(addr) || addr_part(addr) != addr_part(in->dst))
        return false;
    size_t bytes = dtype_bytes(dtype);
    acc_add(f, slot, addr, extent_of(n, stride, 1, (int64_t)bytes), bytes, isa_count(n[0]), is_write);
    return true;
}

static bool column_add(PlanForm *f, int slot, uint64_t addr, int dtype, const IsaInst *in, bool is_write) {
    if (!addr || addr_space(addr) >= SPACE_COUNT) // none, or a number
        return true;
    if (!in_partitions(addr) || addr_part(addr) != addr_part(in->dst))
        return false;
    size_t bytes = dtype_bytes(dtype);
    acc_add(f, slot, addr, (Extent){0, (int64_t)bytes, true}, bytes, isa_count(in->n[0]), is_write);
    return true;
}

// A reduction's dst is smaller than its counts say: axes with stride zero are one place.
static bool engine_form(PlanForm *f, const IsaInst *in) {
    PlanStep *s = &f->step;
    uint8_t slots = row_slots(in->op);
    if (!slots || has_terms(in) || !in_partitions(in->dst))
        return false;
    uint32_t n[5]; // of dst
    for (int i = 0; i < 5; i++)
        n[i] = i && !in->d[i] ? 1 : in->n[i];
    bool ok = true;
    s->gathers = slots & S_RES && in->res;
    s->widens = in->op == ISA_COPY && in->stype == DT_BF16 && in->dtype == DT_F32;
    s->sums = (in->op == ISA_REDUCE || in->op == ISA_ACTIVATE) && in->stype == DT_F32;
    if (in->op == ISA_RNG_AT)
        ok &= tensor_add(f, PLAN_SRC, in->src, in->stype, in, (uint32_t[5]){in->n[0], DRAW_WORDS}, (int32_t[5]){0, 1}, false);
    else if (slots & S_SRC && !(in->op == ISA_COPY_PRED && !in->src))
        ok &= tensor_add(f, PLAN_SRC, in->src, in->stype, in, in->n, in->s, false);
    if (in->op == ISA_DROPOUT_AT)
        ok &= tensor_add(f, PLAN_SRC1, in->src1, in->ttype, in, (uint32_t[5]){in->n[0], DRAW_WORDS}, (int32_t[5]){0, 1}, false);
    else if (slots & S_SRC1)
        ok &= tensor_add(f, PLAN_SRC1, in->src1, in->ttype, in, in->n, in->t, false);
    if (slots & S_AB) {
        ok &= column_add(f, PLAN_A, in->a, in->atype, in, false);
        ok &= column_add(f, PLAN_B, in->b, in->atype, in, false);
    }
    if (slots & S_KEEPS)
        ok &= tensor_add(f, PLAN_DST, in->dst, in->dtype, in, n, in->d, false);
    ok &= tensor_add(f, PLAN_DST, in->dst, in->dtype, in, n, in->d, true);
    if (slots & S_RES)
        ok &= column_add(f, PLAN_RES, in->res, in->rtype, in, true);
    return ok;
}

// --- transfers -------------------------------------------------------------------------------------------

static bool rows_apart(const PlanHbm *h) { // no row has a byte of another
    return (h->pitch < 0 ? -h->pitch : h->pitch) >= h->span;
}

// Do rows of different partitions never meet, though the whole of both does?
static bool same_family(const PlanHbm *x, const PlanHbm *y) {
    int64_t lo = x->base < y->base ? x->base : y->base;
    int64_t hi = x->base + x->span > y->base + y->span ? x->base + x->span : y->base + y->span;
    return x->pitch == y->pitch && hi - lo <= (x->pitch < 0 ? -x->pitch : x->pitch);
}

static bool hbm_meet(const PlanHbm *x, const PlanHbm *y) {
    return x->seg == y->seg && (x->is_write || y->is_write) && x->lo < y->hi && y->lo < x->hi;
}

bool plan_hbm_meet(const PlanHbm *x, const PlanHbm *y) {
    return hbm_meet(x, y) && x->base < y->base + y->span && y->base < x->base + x->span;
}

// Addresses in HBM count from the one the instruction says.
static bool dma_form(PlanForm *f, const IsaInst *in) {
    PlanStep *s = &f->step;
    bool out = addr_space(in->dst) == SPACE_HBM;
    uint64_t part_side = out ? in->src : in->dst, hbm_side = out ? in->dst : in->src;
    if (in->op != ISA_DMA || has_terms(in) || addr_space(part_side) != SPACE_SBUF || addr_space(hbm_side) != SPACE_HBM)
        return false;
    int dtype = in->dtype ? in->dtype : in->stype;
    const int32_t *ps = out ? in->s : in->d, *hs = out ? in->d : in->s;
    uint32_t n[5] = {in->n[0], in->n[1], in->n[2], in->n[3], 1}, rows = isa_count(in->n[0]);
    int64_t part_bytes = (int64_t)dtype_bytes(out ? in->stype : dtype);
    int64_t hbm_bytes = (int64_t)dtype_bytes(out ? dtype : in->stype);
    Extent part = extent_of(n, ps, 1, part_bytes), hbm = extent_of(n, hs, 1, hbm_bytes);
    if (in->op0 || (part_bytes > 4 && !(part.flat && hbm.flat)))
        return false;
    int64_t pitch = hs[0] * hbm_bytes, reach = (rows - 1) * pitch;
    s->hbm = (PlanHbm){.base = hbm.lo - (int64_t)addr_part(part_side) * pitch, .pitch = pitch, .span = hbm.hi - hbm.lo,
                       .lo = hbm.lo + (reach < 0 ? reach : 0), .hi = hbm.hi + (reach > 0 ? reach : 0), .is_write = out,
                       .flat = hbm.flat};
    s->is_dma = true;
    s->converts = dtype != in->stype;
    if (out && rows > 1 && !rows_apart(&s->hbm))
        return false;
    // Short pieces in a pattern of their own: dma.c has blocks for them.
    int64_t run = part.flat && hbm.flat ? ROWS_SHORT : 0;
    for (int i = 3; i >= 1 && !run; i--)
        if (isa_count(n[i]) > 1)
            run = hs[i] == 1 && ps[i] == 1 ? n[i] * hbm_bytes : 1;
    if (run < ROWS_SHORT && isa_count(n[1]) * (uint64_t)isa_count(n[2]) * isa_count(n[3]) > 1)
        return false;
    acc_add(f, out ? PLAN_SRC : PLAN_DST, part_side, part, (size_t)part_bytes, rows, !out);
    return true;
}

const PlanForm *plan_forms(Arena *a, const IsaShapes *shapes) {
    PlanForm *forms = ARENA_NEWN(a, PlanForm, (size_t)shapes->n + 1);
    for (uint32_t i = 0; i < shapes->n; i++) {
        IsaInst in = shape_sample(&shapes->at[i]);
        memcpy(forms[i].places, shapes->at[i].at + SHAPE_WAITS, sizeof forms[i].places);
        forms[i].joins = isa_rows[in.op].cost == COST_DMA ? dma_form(&forms[i], &in) : engine_form(&forms[i], &in);
    }
    return forms;
}

// The HBM side of a transfer.
static void hbm_find(PlanHbm *h, const PlanForm *f, const uint8_t *record, const uint32_t *same_seg) {
    *h = f->step.hbm;
    uint32_t at = f->places[h->is_write ? PLAN_DST : PLAN_SRC];
    uint64_t addr = at ? le_load64(record + at) : 0;
    int64_t off = (int64_t)addr_off(addr);
    h->seg = same_seg[addr_seg(addr)];
    h->base += off, h->lo += off, h->hi += off;
}

// --- pieces ----------------------------------------------------------------------------------------------

bool plan_cut_add(PlanCut *c, const PlanCode *code, uint32_t pc) {
    const PlanForm *f = &code->forms[code->shapes->of[pc]];
    if (!f->joins || c->nsteps == PLAN_STEPS)
        return false;
    bool brings = false;
    if (f->step.is_dma) {
        PlanHbm *h = &c->hbm[c->nhbm];
        hbm_find(h, f, shape_record(code->shapes, pc), code->same_seg);
        for (uint32_t i = 0; i < c->nhbm; i++)
            if (hbm_meet(&c->hbm[i], h) && !same_family(&c->hbm[i], h))
                return false;
        brings = !h->is_write;
    }
    if (brings && !c->brought && c->nsteps)
        c->tile.pc = pc, c->tile.before = c->last, c->tile.steps = c->nsteps, c->tile.nhbm = c->nhbm;
    c->brought = brings ? c->brought + 1 : 0;
    c->nhbm += f->step.is_dma;
    c->first = c->nsteps++ ? c->first : pc;
    c->last = pc;
    return true;
}

void plan_piece_spared(PlanPiece *p) { p->step[p->nsteps - 1].skip = p->step[p->nsteps - 1].gone = true; }

void plan_piece_clear(PlanPiece *p) { p->nsteps = p->naccs = p->parts = 0; }

void plan_piece_add(PlanPiece *p, const PlanCode *code, uint32_t pc) {
    const PlanForm *f = &code->forms[code->shapes->of[pc]];
    const uint8_t *record = shape_record(code->shapes, pc);
    PlanStep *s = &p->step[p->nsteps];
    *s = f->step;
    s->pc = pc, s->acc = p->naccs;
    if (s->is_dma)
        hbm_find(&s->hbm, f, record, code->same_seg);
    for (uint32_t i = 0; i < s->naccs; i++) {
        PlanAcc *x = &p->acc[p->naccs++];
        *x = f->acc[i];
        x->step = p->nsteps;
        x->first = plan_poff(x, record);
        x->lo += x->first, x->hi += x->first;
        p->parts = x->p1 > p->parts ? x->p1 : p->parts;
    }
    p->nsteps++;
}
