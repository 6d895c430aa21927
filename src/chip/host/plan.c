// SPDX-License-Identifier: Apache-2.0
// plan.c — the host plan is made when a program is loaded: runs are cut going forward, copies are spared going
// backward.
//
//   forward   steps are joined until one looks beyond its partition, is jumped to, or touches HBM that another
//             step of the run wrote for other partitions
//   backward  `live` tells which bytes of SBUF somebody behind this place still reads
#include "chip/host/plan.h"

#include <string.h>

#include "base/parts.h"
#include "chip/host/plan_step.h"

typedef struct Maker {
    Arena *a;
    const Artifact *art;
    const uint8_t *dynamic;
    PlanCode code;
    const uint8_t *kinds; // per shape
    uint8_t *target; // per instruction: somebody jumps here
    Plan *plan;
    VEC(PlanRun) runs;
} Maker;

// --- forward ---------------------------------------------------------------------------------------------

static bool is_control_flow(const IsaInst *in) {
    int cost = isa_rows[in->op].cost;
    return cost == COST_BRANCH || cost == COST_LOOP;
}

enum { KIND_FLOW = 1, KIND_HALT = 2, KIND_IDLE = 4, KIND_ALONE = 8 };

static const uint8_t *kinds_find(Arena *a, const IsaShapes *shapes) {
    uint8_t *kinds = ARENA_NEWN(a, uint8_t, (size_t)shapes->n + 1);
    for (uint32_t i = 0; i < shapes->n; i++) {
        const IsaInst *in = &shapes->at[i].in;
        kinds[i] = (uint8_t)((is_control_flow(in) ? KIND_FLOW : 0) | (in->op == ISA_HALT ? KIND_HALT : 0) |
                             (plan_is_idle(in) ? KIND_IDLE : 0) | (plan_stays_alone(in) ? KIND_ALONE : 0));
    }
    return kinds;
}

static int kind_of(const Maker *m, uint32_t pc) { return m->kinds[m->code.shapes->of[pc]]; }

static void targets_find(Maker *m) {
    const Artifact *art = m->art;
    m->target = ARENA_NEWN(m->a, uint8_t, (size_t)art->ncode + 2);
    for (uint32_t i = 0; i < art->ncode; i++)
        if (kind_of(m, i) & KIND_FLOW) { // a loop's first instruction follows its loop, which ends a run
            uint32_t to = (uint32_t)art->code[i].imm;
            if (to < art->ncode)
                m->target[to] = m->target[to + 1] = 1;
        }
}

// A stretch of the code that begins and ends between runs: stretches are cut beside each other.
typedef struct Stretch {
    uint32_t begin, end;
    PlanRun *runs; // room for all it can have
    uint32_t nruns;
} Stretch;

// Closes the run, if there is one. Transfers at its end bring what nobody in it reads: they stay outside, so that who needs
// them waits for them alone. A run that is full ends where its last tile begins, with what that brings, if the caller goes
// on from there: at the place that is returned; 0: there was nothing.
static uint32_t run_close(Stretch *s, PlanCut *c, bool goes_on) {
    if (!c->nsteps)
        return 0;
    bool full = goes_on && c->nsteps == PLAN_STEPS && c->tile.steps > PLAN_STEPS / 2;
    bool cut = c->tile.steps && (c->brought || full), all = !cut && c->brought;
    uint32_t n = all ? 0 : cut ? c->tile.steps : c->nsteps, nhbm = cut ? c->tile.nhbm : c->nhbm;
    if (n > 1 || (n && !nhbm)) // what is no run ends the flow; a transfer alone is better off in dma.c
        s->runs[s->nruns++] = (PlanRun){.first = c->first, .end = (cut ? c->tile.before : c->last) + 1};
    uint32_t next = cut ? c->tile.pc : c->last + 1;
    c->nsteps = c->nhbm = c->brought = c->tile.steps = 0;
    return next;
}

static bool stays_alone(const Maker *m, uint32_t pc) {
    const Plan *p = m->plan;
    return m->dynamic[pc] || kind_of(m, pc) & KIND_ALONE || (p->through && p->through[pc]) || (p->blocks && p->blocks[pc]);
}

// Nothing is to be done.
static bool idles(const Maker *m, uint32_t pc) {
    return (!m->dynamic[pc] && kind_of(m, pc) & KIND_IDLE) || (m->plan->spared && m->plan->spared[pc] == PLAN_SPARED_RESULT);
}

static void stretch_cut(const Maker *m, Stretch *s) {
    PlanCut c = {.nsteps = 0};
    for (uint32_t pc = s->begin; pc < s->end; pc++) {
        if (m->target[pc])
            run_close(s, &c, false);
        if (idles(m, pc))
            continue;
        bool alone = stays_alone(m, pc);
        if (alone || !plan_cut_add(&c, &m->code, pc)) {
            uint32_t next = run_close(s, &c, !alone);
            if (!alone && next) // once more, with what was brought for it
                pc = next - 1;
        }
    }
    run_close(s, &c, false);
}

typedef struct Cut {
    const Maker *m;
    Stretch *stretches;
} Cut;

static void cut_task(void *arg, size_t begin, size_t end) {
    const Cut *c = arg;
    for (size_t i = begin; i < end; i++)
        stretch_cut(c->m, &c->stretches[i]);
}

#define STRETCHES 16
#define STRETCH_LEAST 2048 // instructions

static void runs_cut(Maker *m) {
    uint32_t n = m->art->ncode, count = 0, at = 0, want = n / STRETCH_LEAST + 1;
    want = want < STRETCHES ? want : STRETCHES;
    Stretch stretches[STRETCHES];
    PlanRun *room = arena_alloc(m->a, ((size_t)n + 1) * sizeof *room);
    for (uint32_t i = 0; i < want && at < n; i++) {
        uint32_t end = i + 1 == want ? n : (uint32_t)((uint64_t)n * (i + 1) / want);
        end = end < at ? at : end;
        while (end < n && (idles(m, end) || !stays_alone(m, end)))
            end++;
        stretches[count++] = (Stretch){.begin = at, .end = end, .runs = room + at};
        at = end;
    }
    pool_run(m->code.pool, count, 1, cut_task, &(Cut){m, stretches});
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < stretches[i].nruns; k++)
            VEC_PUSH(m->a, &m->runs, stretches[i].runs[k]);
}

// --- segments --------------------------------------------------------------------------------------------

static void segs_init(Arena *a, Plan *p, const Artifact *art) {
    p->nsegs = SEG_FIRST_ARG + art->nargs + art->nresults;
    p->same_seg = ARENA_NEWN(a, uint32_t, p->nsegs);
    p->written = ARENA_NEWN(a, bool, p->nsegs);
    p->order = ARENA_NEWN(a, uint32_t, p->nsegs);
    for (uint32_t i = 0; i < p->nsegs; i++)
        p->same_seg[i] = p->order[i] = i;
    p->written[SEG_SCRATCH] = true;
    for (uint32_t i = 0; i < art->nresults; i++) {
        uint32_t seg = SEG_FIRST_ARG + art->nargs + i;
        if (art->results[i].alias >= 0)
            p->same_seg[seg] = SEG_FIRST_ARG + (uint32_t)art->results[i].alias;
        p->written[seg] = p->written[p->same_seg[seg]] = true;
    }
}

Plan *plan_share(Arena *a, const Plan *p) {
    Plan *own = arena_dup(a, p, sizeof *own);
    own->order = arena_dup(a, p->order, p->nsegs * sizeof *own->order);
    return own;
}

bool plan_fits(const Plan *p, const Artifact *art, uint8_t *const *segs) {
    uint32_t *order = p->order;
    for (uint32_t i = 1; i < p->nsegs; i++) // nearly in order: it was the last time
        for (uint32_t j = i; j > 0; j--) {
            uint32_t x = order[j - 1], y = order[j];
            if (segs[x] < segs[y] || (segs[x] == segs[y] && p->same_seg[x] <= p->same_seg[y]))
                break;
            order[j - 1] = y, order[j] = x;
        }
    const uint8_t *end = NULL, *written_end = NULL; // of those before the group at work
    for (uint32_t i = 0; i < p->nsegs;) {
        const uint8_t *base = segs[order[i]], *group_end = base;
        uint32_t same = p->same_seg[order[i]];
        bool written = false;
        for (; i < p->nsegs && segs[order[i]] == base && p->same_seg[order[i]] == same; i++) {
            bool ok;
            uint64_t bytes = artifact_seg_bytes(art, order[i], &ok);
            if (base && base + bytes > group_end)
                group_end = base + bytes;
            written |= p->written[order[i]] && bytes;
        }
        if (group_end == base)
            continue;
        if ((written && end > base) || written_end > base)
            return false;
        end = group_end > end ? group_end : end;
        if (written)
            written_end = group_end > written_end ? group_end : written_end;
    }
    return true;
}

// --- backward --------------------------------------------------------------------------------------------

// Stretches of the program, from run to run: a quick walk finds what is live at the end of each, then they are planned
// beside each other.
typedef struct Spare {
    uint32_t begin, end; // instructions
    uint32_t run, nruns;
    PlanLive live; // behind its end
    VEC(PlanOver) overs;
} Spare;

typedef struct Spares {
    const Maker *m;
    Spare *at;
} Spares;

static void overs_add(Arena *a, Spare *s, const PlanPiece *p) {
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const PlanStep *step = &p->step[i];
        if (step->skip)
            VEC_PUSH(a, &s->overs, ((PlanOver){.pc = step->pc, .slot = PLAN_SKIP}));
        for (uint32_t k = step->acc; k < step->acc + step->naccs && !step->skip; k++) {
            const PlanAcc *x = &p->acc[k];
            bool again = k > step->acc && p->acc[k - 1].slot == x->slot; // read and written
            if (x->how != PLAN_STAYS && !again)
                VEC_PUSH(a, &s->overs, ((PlanOver){step->pc, x->slot, x->how, x->dtype, x->dma, x->at}));
        }
    }
}

static void run_plan(const Maker *m, PlanRun *run, Arena *a, Spare *s, PlanPiece *p) {
    plan_piece_clear(p);
    for (uint32_t pc = run->first; pc < run->end; pc++)
        if (!idles(m, pc)) {
            plan_piece_add(p, &m->code, pc);
            if (m->plan->spared && m->plan->spared[pc])
                plan_piece_spared(p);
        }
    plan_piece_spare(p, &s->live);
    run->over = s->overs.n; // in those of the stretch
    run->local_pitch = p->local_pitch;
    run->slice = plan_piece_slice(p);
    run->parts = p->parts;
    overs_add(a, s, p);
    run->nover = s->overs.n - run->over;
}

// From `end` back to `begin`, with runs numbered below `runs`. Planned on the way when there is a piece for it.
static void walk_back(const Maker *m, PlanLive *live, uint32_t begin, uint32_t end, uint32_t runs, Arena *a, Spare *s, PlanPiece *p) {
    for (uint32_t pc = end; pc-- > begin;) {
        int kind = kind_of(m, pc);
        if (kind & (KIND_FLOW | KIND_HALT))
            plan_live_all(live, kind & KIND_FLOW);
        if (!runs || m->runs.at[runs - 1].end != pc + 1) {
            plan_live_alone(live, &m->code, pc);
            continue;
        }
        PlanRun *run = &m->runs.at[--runs];
        if (p)
            run_plan(m, run, a, s, p);
        for (pc++; pc-- > run->first;)
            if (!(kind_of(m, pc) & KIND_IDLE))
                plan_live_joined(live, &m->code, pc);
        pc++;
    }
}

static void spare_part(void *arg, size_t part, Arena *a) {
    const Spares *all = arg;
    Spare *s = &all->at[part];
    PlanPiece piece;
    walk_back(all->m, &s->live, s->begin, s->end, s->run + s->nruns, a, s, &piece);
}

#define SPARES 16
#define SPARE_LEAST 64 // runs

static uint32_t spares_cut(Maker *m, Spare *s) {
    uint32_t n = 0, runs = m->runs.n, each = runs / SPARES + 1, end = m->art->ncode;
    each = each < SPARE_LEAST ? SPARE_LEAST : each;
    for (uint32_t r = runs; r > 0; n++) { // from the last to the first
        uint32_t first = r > each ? r - each : 0;
        uint32_t begin = first ? m->runs.at[first - 1].end : 0;
        s[n] = (Spare){.begin = begin, .end = end, .run = first, .nruns = r - first};
        r = first, end = begin;
    }
    return n;
}

static void runs_spare(Maker *m) {
    Spare *s = ARENA_NEWN(m->a, Spare, SPARES);
    uint32_t n = spares_cut(m, s);
    PlanLive live;
    plan_live_all(&live, false); // nobody reads SBUF when the program has ended
    for (uint32_t i = 0; i < n; i++) {
        s[i].live = live;
        if (i + 1 < n)
            walk_back(m, &live, s[i].begin, s[i].end, s[i].run + s[i].nruns, NULL, NULL, NULL);
    }
    parts_run(m->a, m->code.pool, n, spare_part, &(Spares){m, s});
    for (uint32_t i = n; i-- > 0;) {
        uint32_t from = m->plan->overs.n;
        VEC_RESERVE(m->a, &m->plan->overs, from + s[i].overs.n);
        if (s[i].overs.n)
            memcpy(m->plan->overs.at + from, s[i].overs.at, s[i].overs.n * sizeof *s[i].overs.at);
        m->plan->overs.n += s[i].overs.n;
        for (uint32_t r = s[i].run; r < s[i].run + s[i].nruns; r++)
            m->runs.at[r].over += from;
    }
}

Plan *plan_make(Arena *a, const Artifact *art, const IsaShapes *shapes, const uint8_t *dynamic, const uint8_t *plain,
                Pool *pool) {
    Maker *m = ARENA_NEW(a, Maker);
    *m = (Maker){.a = a, .art = art, .dynamic = dynamic, .plan = ARENA_NEW(a, Plan), .kinds = kinds_find(a, shapes)};
    segs_init(a, m->plan, art);
    m->code = (PlanCode){.art = art, .shapes = shapes, .accesses = shapes_accesses(a, shapes),
                         .forms = plan_forms(a, shapes), .dynamic = dynamic, .plain = plain,
                         .same_seg = m->plan->same_seg, .pool = pool};
    m->code.touches = plan_touches(a, &m->code);
    targets_find(m);
    plan_pe_find(a, m->plan, &m->code);
    plan_tiles_find(a, m->plan, &m->code, m->target);
    runs_cut(m);
    runs_spare(m);
    Plan *p = m->plan;
    p->runs = m->runs.at;
    p->nruns = (uint32_t)m->runs.n;
    p->run_at = ARENA_NEWN(a, uint32_t, (size_t)art->ncode + 1);
    for (uint32_t i = 0; i < p->nruns; i++)
        p->run_at[p->runs[i].first] = i + 1;
    return p;
}
