// SPDX-License-Identifier: Apache-2.0
// plan_spare.c — which copies of a run can be spared.
//
// In doubt nothing is spared. Three questions per run, in this order:
//   1. a transfer in whose data only instructions of the run read, before anybody writes to that place in HBM:
//      they read it in HBM
//   2. a transfer out of data that one instruction made: it writes it to HBM, and who else of the run reads it reads it there
//   3. bytes of SBUF that the run writes before it reads them and nobody reads afterwards: memory of the slice
#include "chip/host/plan_step.h"

#define LINE 64u

// --- overlap ---------------------------------------------------------------------------------------------

static bool meet(const PlanAcc *x, const PlanAcc *y) {
    return x->space == y->space && x->lo < y->hi && y->lo < x->hi && x->p0 < y->p1 && y->p0 < x->p1;
}
static bool covers(const PlanAcc *x, const PlanAcc *y) { // x has all of y
    return x->space == y->space && x->lo <= y->lo && y->hi <= x->hi && x->p0 <= y->p0 && y->p1 <= x->p1;
}
static bool same_places(const PlanAcc *x, const PlanAcc *y) {
    return x->first == y->first && x->hi == y->hi && x->flat && y->flat && x->bytes == y->bytes;
}

// An instruction whose operands overlap in different patterns has a meaning that depends on where they lie.
static bool tangled(const PlanPiece *p, const PlanAcc *x) {
    const PlanStep *s = &p->step[x->step];
    for (uint32_t i = s->acc; i < (uint32_t)s->acc + s->naccs; i++) {
        const PlanAcc *y = &p->acc[i];
        if (y != x && y->is_write != x->is_write && meet(x, y) && !same_places(x, y))
            return true;
    }
    return false;
}

static PlanAcc *dma_acc(PlanPiece *p, const PlanStep *s) { return &p->acc[s->acc]; }

static bool is_dead(const PlanLive *live, const PlanAcc *x) { return !plan_live_any(live, x->lo, x->hi); }

// --- transfers in ----------------------------------------------------------------------------------------

// Are all readers of the transfer's data able to read it in HBM? *last: the last of them.
static bool in_readers(const PlanPiece *p, uint32_t step, const PlanAcc *w, const PlanLive *live, uint16_t *last) {
    *last = (uint16_t)step;
    for (uint32_t i = p->step[step].acc + 1u; i < p->naccs; i++) {
        const PlanAcc *x = &p->acc[i];
        if (!meet(x, w))
            continue;
        if (x->is_write) {
            if (x->flat && covers(x, w))
                return true;
            return false;
        }
        if (!covers(w, x) || x->slot == PLAN_DST || tangled(p, x) || p->step[x->step].is_dma)
            return false;
        *last = x->step;
    }
    return is_dead(live, w);
}

static void spare_in(PlanPiece *p, uint32_t step, const PlanLive *live) {
    PlanStep *s = &p->step[step];
    PlanAcc *w = dma_acc(p, s);
    uint16_t last;
    if (s->converts || !w->flat || !s->hbm.flat || !in_readers(p, step, w, live, &last))
        return;
    for (uint32_t i = step + 1; i < last; i++)
        if (p->step[i].is_dma && plan_hbm_meet(&p->step[i].hbm, &s->hbm))
            return;
    for (uint32_t i = s->acc + 1u; i < p->naccs && p->acc[i].step <= last; i++) {
        PlanAcc *x = &p->acc[i];
        if (!x->is_write && meet(x, w))
            x->how = PLAN_HBM, x->dma = s->pc, x->at = x->first - w->lo;
    }
    s->skip = true;
    s->last_read = last;
}

// --- transfers out ---------------------------------------------------------------------------------------

// The one write that made all of what the transfer reads; NULL: there is none.
static PlanAcc *maker_of(PlanPiece *p, const PlanStep *s, const PlanAcc *r) {
    for (uint32_t i = s->acc; i-- > 0;) {
        PlanAcc *w = &p->acc[i];
        if (!w->is_write || !meet(w, r)) // who reads it: readers_end
            continue;
        bool good = w->slot == PLAN_DST && w->how == PLAN_STAYS && w->flat && w->lo == r->lo &&
                    w->hi == r->hi && w->p0 == r->p0 && w->p1 == r->p1;
        const PlanStep *by = &p->step[w->step];
        bool keeps = by->naccs > 1 && i > by->acc && p->acc[i - 1].slot == PLAN_DST; // also reads dst
        return good && !by->is_dma && !keeps && !tangled(p, w) ? w : NULL;
    }
    return NULL;
}

// The end of those that read what w made, behind it in p->acc; 0: somebody needs it in SBUF. Several readers cannot follow it to
// HBM when a later transfer writes there.
static uint32_t readers_end(const PlanPiece *p, uint32_t step, const PlanAcc *w, const PlanLive *live) {
    bool any = false;
    uint32_t i = (uint32_t)(w - p->acc) + 1;
    for (; i < p->naccs; i++) {
        const PlanAcc *x = &p->acc[i];
        if (x->step == step || !meet(x, w))
            continue;
        if (x->is_write && x->flat && covers(x, w))
            break;
        if (x->is_write || x->how != PLAN_STAYS || !covers(w, x) || x->slot == PLAN_DST || tangled(p, x) || p->step[x->step].is_dma)
            return 0;
        any = true;
    }
    for (uint32_t k = step + 1; k < p->nsteps && any; k++)
        if (p->step[k].is_dma && p->step[k].hbm.is_write && plan_hbm_meet(&p->step[k].hbm, &p->step[step].hbm))
            return 0;
    return i < p->naccs || is_dead(live, w) ? i : 0;
}

// The step that makes the data also reads what was there in HBM: element for element?
static bool reads_in_place(const PlanPiece *p, const PlanStep *in, const PlanHbm *out, const PlanAcc *w) {
    if (in->hbm.base != out->base || in->hbm.span != out->span || in->hbm.pitch != out->pitch)
        return false;
    const PlanStep *s = &p->step[w->step];
    for (uint32_t i = s->acc; i < (uint32_t)s->acc + s->naccs; i++) {
        const PlanAcc *x = &p->acc[i];
        if (x->how == PLAN_HBM && x->dma == in->pc && !x->is_write &&
            (x->at || !x->flat || x->bytes != w->bytes || x->hi - x->lo != w->hi - w->lo))
            return false;
    }
    return true;
}

// May the transfer of `step` write to HBM already when its data is made?
static bool may_write_early(const PlanPiece *p, uint32_t step, const PlanAcc *w) {
    uint32_t made = w->step;
    const PlanHbm *out = &p->step[step].hbm;
    for (uint32_t i = 0; i < step; i++) {
        const PlanStep *s = &p->step[i];
        if (!s->is_dma || !plan_hbm_meet(&s->hbm, out))
            continue;
        if (s->hbm.is_write) { // it, or the instruction that does its work, may come after
            if (i > made || s->skip)
                return false;
            continue;
        }
        uint32_t read = s->skip ? s->last_read : i;
        if (read > made || (read == made && !reads_in_place(p, s, out, w)))
            return false;
    }
    return true;
}

static void spare_out(PlanPiece *p, uint32_t step, const PlanLive *live) {
    PlanStep *s = &p->step[step];
    PlanAcc *r = dma_acc(p, s);
    if (s->converts || !r->flat || !s->hbm.flat)
        return;
    PlanAcc *w = maker_of(p, s, r);
    uint32_t end = w ? readers_end(p, step, w, live) : 0;
    if (!end || !may_write_early(p, step, w))
        return;
    for (uint32_t i = (uint32_t)(w - p->acc) + 1; i < end; i++) {
        PlanAcc *x = &p->acc[i];
        if (x->step != step && meet(x, w))
            x->how = PLAN_HBM, x->dma = s->pc, x->at = x->first - w->lo;
    }
    w->how = PLAN_HBM, w->dma = s->pc, w->at = 0;
    s->skip = true;
}

// --- memory of the slice ---------------------------------------------------------------------------------

typedef struct Span { // bytes of SBUF that belong together
    uint32_t lo, hi, at;
    uint16_t first, last; // steps that touch them; the one after may too (spare_widening)
    bool local;
} Span;

static bool in_sbuf(const PlanPiece *p, const PlanAcc *x) {
    return x->space == SPACE_SBUF && x->how == PLAN_STAYS && !p->step[x->step].skip;
}

static uint32_t spans_find(const PlanPiece *p, Span *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->naccs; i++) {
        const PlanAcc *x = &p->acc[i];
        if (!in_sbuf(p, x))
            continue;
        Span s = {x->lo, x->hi, 0, x->step, x->step, true};
        uint32_t kept = 0;
        for (uint32_t k = 0; k < n; k++) // takes in those it meets
            if (out[k].lo < s.hi && s.lo < out[k].hi) {
                s.lo = out[k].lo < s.lo ? out[k].lo : s.lo;
                s.hi = out[k].hi > s.hi ? out[k].hi : s.hi;
                s.first = out[k].first < s.first ? out[k].first : s.first;
            } else {
                out[kept++] = out[k];
            }
        out[kept++] = s;
        n = kept;
    }
    return n;
}

static Span *span_of(Span *spans, uint32_t n, const PlanAcc *x) {
    for (uint32_t i = 0; i < n; i++)
        if (spans[i].lo <= x->lo && x->hi <= spans[i].hi)
            return &spans[i];
    return NULL;
}

static bool written_before(const PlanPiece *p, uint32_t acc) {
    const PlanAcc *r = &p->acc[acc];
    for (uint32_t i = p->step[r->step].acc; i-- > 0;) {
        const PlanAcc *w = &p->acc[i];
        if (w->is_write && w->flat && in_sbuf(p, w) && covers(w, r))
            return true;
    }
    return false;
}

static uint32_t span_bytes(const Span *s) { return (s->hi - s->lo / LINE * LINE + LINE - 1) / LINE * LINE; }

// A place for spans[i] that those before it do not use at the same time; returns the bytes used so far.
static uint32_t span_place(Span *spans, uint32_t i, uint32_t used) {
    Span *s = &spans[i];
    uint32_t at = LINE; // offset 0 would read as no operand
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = 0; k < i; k++) {
            const Span *o = &spans[k];
            uint32_t begin = o->at / LINE * LINE;
            if (o->local && o->first <= s->last + 1 && s->first <= o->last + 1 && begin < at + span_bytes(s) &&
                at < begin + span_bytes(o))
                at = begin + span_bytes(o), again = true;
        }
    }
    s->local = at + span_bytes(s) <= PLAN_LOCAL_BYTES - LINE;
    s->at = at + s->lo % LINE;
    return s->local && at + span_bytes(s) > used ? at + span_bytes(s) : used;
}

static bool read_later(const PlanPiece *p, uint32_t acc) {
    const PlanAcc *w = &p->acc[acc];
    if (!w->is_write)
        return true;
    for (uint32_t i = acc + 1; i < p->naccs; i++) {
        const PlanAcc *x = &p->acc[i];
        if (!meet(x, w) || x->step == w->step || x->how == PLAN_HBM)
            continue;
        if (!x->is_write)
            return true;
        if (x->flat && covers(x, w))
            return false;
    }
    return false;
}

// The instruction that is the last to read what the step writes; itself: nobody does.
static uint32_t last_reader(const PlanPiece *p, uint32_t acc) {
    const PlanAcc *w = &p->acc[acc];
    uint32_t last = w->step;
    for (uint32_t i = p->step[w->step].acc + p->step[w->step].naccs; i < p->naccs; i++) {
        const PlanAcc *x = &p->acc[i];
        if (!meet(x, w) || x->how == PLAN_HBM)
            continue;
        if (!x->is_write)
            last = p->step[x->step].widens ? x->step + 1u : x->step; // spare_widening
        else if (x->flat && covers(x, w))
            break;
    }
    return p->step[last < p->nsteps ? last : p->nsteps - 1u].pc;
}

static void spare_sbuf(PlanPiece *p, const PlanLive *live) {
    Span spans[PLAN_ACCS];
    uint32_t n = spans_find(p, spans), used = LINE;
    for (uint32_t i = 0; i < n; i++)
        spans[i].local = !plan_live_any(live, spans[i].lo, spans[i].hi);
    for (uint32_t i = 0; i < p->naccs; i++) {
        const PlanAcc *x = &p->acc[i];
        Span *s = !x->is_write && in_sbuf(p, x) ? span_of(spans, n, x) : NULL;
        if (s && s->local && !written_before(p, i))
            s->local = false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (spans[i].local)
            used = span_place(spans, i, used);
    for (uint32_t i = 0; i < p->naccs; i++) {
        PlanAcc *x = &p->acc[i];
        Span *s = in_sbuf(p, x) ? span_of(spans, n, x) : NULL;
        if (!s || !s->local)
            continue;
        x->at = s->at + (x->first - s->lo);
        x->dma = x->is_write ? last_reader(p, i) : 0;
        x->how = x->slot == PLAN_DST && p->step[x->step].gathers && !read_later(p, i) ? PLAN_NOWHERE : PLAN_LOCAL;
    }
    p->local_pitch = used > LINE ? used | LINE : 0; // an odd number of lines
}

// A copy that widens bf16 for the next step to sum it up, and for nobody else: that one takes it as it is.
static void spare_widening(PlanPiece *p, uint32_t step) {
    PlanStep *s = &p->step[step];
    const PlanStep *by = &p->step[step + 1];
    const PlanAcc *x = &p->acc[s->acc], *w = &p->acc[s->acc + 1];
    PlanAcc *r = &p->acc[by->acc];
    if (!s->widens || s->skip || by->skip || !by->sums || s->naccs != 2 || !x->flat || (x->how != PLAN_HBM && x->how != PLAN_LOCAL) ||
        w->how != PLAN_LOCAL || r->slot != PLAN_SRC || !r->flat || r->lo != w->lo || r->hi != w->hi || r->p0 != w->p0 ||
        r->p1 != w->p1 || tangled(p, x) || tangled(p, r))
        return;
    for (uint32_t i = by->acc; i < p->naccs; i++) { // until it is written over
        const PlanAcc *y = &p->acc[i];
        if (y == r || !meet(y, w))
            continue;
        if (!y->is_write)
            return;
        if (y->flat && covers(y, w))
            break;
    }
    for (uint32_t i = by->acc; i < (uint32_t)by->acc + by->naccs; i++) // in the memory of the slice its place is another's
        if (p->acc[i].is_write && (meet(&p->acc[i], x) || p->acc[i].how == PLAN_HBM))
            return;
    r->how = x->how, r->dma = x->dma, r->at = x->at, r->dtype = DT_BF16;
    s->skip = true;
}

void plan_piece_spare(PlanPiece *p, const PlanLive *live) {
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->step[i].is_dma && !p->step[i].hbm.is_write && !p->step[i].gone)
            spare_in(p, i, live);
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->step[i].is_dma && p->step[i].hbm.is_write)
            spare_out(p, i, live);
    spare_sbuf(p, live);
    for (uint32_t i = 0; i + 1 < p->nsteps; i++)
        spare_widening(p, i);
}

uint16_t plan_piece_slice(const PlanPiece *p) {
    uint32_t longest = 1; // bytes of a row
    for (uint32_t i = 0; i < p->naccs; i++)
        longest = p->acc[i].hi - p->acc[i].lo > longest ? p->acc[i].hi - p->acc[i].lo : longest;
    uint32_t most = PLAN_CACHED / (p->local_pitch > longest ? p->local_pitch : longest);
    bool alone = (uint64_t)p->parts * longest * p->nsteps < PLAN_GRAIN_ELEMS * 4u; // by one thread: all at once
    uint32_t share = alone ? p->parts : (p->parts + 7u) / 8; // some for each thread
    return (uint16_t)(most < 1 ? 1 : most < share ? most : share);
}
