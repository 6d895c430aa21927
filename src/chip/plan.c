// SPDX-License-Identifier: Apache-2.0
// plan.c — the host plan is made when a program is loaded: runs are cut going forward, copies are spared going
// backward.
//
//   forward   steps are joined until one looks beyond its partition, is jumped to, or touches HBM that another
//             step of the run wrote for other partitions
//   backward  `live` tells which bytes of SBUF somebody behind this place still reads
#include "chip/plan.h"

#include "chip/plan_step.h"

typedef struct Maker {
    Arena *a;
    const Artifact *art;
    const uint8_t *dynamic;
    PlanCode code;
    const uint8_t *kinds; // per shape
    uint8_t *target; // per instruction: somebody jumps here
    Plan *plan;
    VEC(PlanRun) runs;
    PlanLive live;
    PlanPiece piece;
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

static void run_close(Stretch *s, PlanPiece *p, uint32_t first) {
    if (p->nsteps > 1 || (p->nsteps && !p->step[0].is_dma)) // what is no run ends the flow; a transfer alone is better off in dma.c
        s->runs[s->nruns++] = (PlanRun){.first = first, .end = p->step[p->nsteps - 1].pc + 1};
    plan_piece_clear(p);
}

static bool stays_alone(const Maker *m, uint32_t pc) {
    return m->dynamic[pc] || kind_of(m, pc) & KIND_ALONE || (m->plan->through && m->plan->through[pc]);
}

static bool idles(const Maker *m, uint32_t pc) { return !m->dynamic[pc] && kind_of(m, pc) & KIND_IDLE; }

static void stretch_cut(const Maker *m, Stretch *s, PlanPiece *p) {
    plan_piece_clear(p);
    uint32_t first = 0;
    for (uint32_t pc = s->begin; pc < s->end; pc++) {
        if (m->target[pc] || p->nsteps == PLAN_STEPS)
            run_close(s, p, first);
        if (idles(m, pc))
            continue;
        const IsaInst *in = &m->art->code[pc];
        bool alone = stays_alone(m, pc);
        if (alone || !plan_piece_add(p, in, pc, m->plan->same_seg)) {
            run_close(s, p, first);
            if (alone || !plan_piece_add(p, in, pc, m->plan->same_seg))
                continue;
        }
        if (p->nsteps == 1)
            first = pc;
    }
    run_close(s, p, first);
}

typedef struct Cut {
    const Maker *m;
    Stretch *stretches;
} Cut;

static void cut_task(void *arg, size_t begin, size_t end) {
    const Cut *c = arg;
    PlanPiece piece;
    for (size_t i = begin; i < end; i++)
        stretch_cut(c->m, &c->stretches[i], &piece);
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

static void run_plan(Maker *m, PlanRun *run) {
    PlanPiece *p = &m->piece;
    plan_piece_clear(p);
    for (uint32_t pc = run->first; pc < run->end; pc++)
        if (!(kind_of(m, pc) & KIND_IDLE)) {
            plan_piece_add(p, &m->art->code[pc], pc, m->plan->same_seg);
            if (m->plan->spared && m->plan->spared[pc])
                plan_piece_spared(p);
        }
    plan_piece_spare(p, &m->live);
    run->over = (uint32_t)m->plan->overs.n;
    run->local_pitch = p->local_pitch;
    run->slice = plan_piece_slice(p);
    run->parts = p->parts;
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const PlanStep *s = &p->step[i];
        if (s->skip)
            VEC_PUSH(m->a, &m->plan->overs, ((PlanOver){.pc = s->pc, .slot = PLAN_SKIP}));
        for (uint32_t k = s->acc; k < s->acc + s->naccs && !s->skip; k++) {
            const PlanAcc *x = &p->acc[k];
            bool again = k > s->acc && p->acc[k - 1].slot == x->slot; // read and written
            if (x->how != PLAN_STAYS && !again)
                VEC_PUSH(m->a, &m->plan->overs, ((PlanOver){s->pc, x->slot, x->how, x->dtype, x->dma, x->at}));
        }
    }
    run->nover = (uint32_t)m->plan->overs.n - run->over;
}

static void runs_spare(Maker *m) {
    uint32_t pc = m->art->ncode;
    plan_live_all(&m->live, false); // nobody reads SBUF when the program has ended
    for (uint32_t r = (uint32_t)m->runs.n; pc > 0; pc--) {
        const IsaInst *in = &m->art->code[pc - 1];
        int kind = kind_of(m, pc - 1);
        if (kind & KIND_FLOW)
            plan_live_all(&m->live, true);
        else if (kind & KIND_HALT)
            plan_live_all(&m->live, false);
        if (r && m->runs.at[r - 1].end == pc) {
            run_plan(m, &m->runs.at[--r]);
            pc = m->runs.at[r].first + 1;
        } else {
            plan_live_step(&m->live, in, &m->code.accesses[m->code.shapes->of[pc - 1]]);
        }
    }
}

Plan *plan_make(Arena *a, const Artifact *art, const IsaShapes *shapes, const uint8_t *dynamic, const uint8_t *plain,
                Pool *pool) {
    Maker *m = ARENA_NEW(a, Maker);
    *m = (Maker){.a = a, .art = art, .dynamic = dynamic, .plan = ARENA_NEW(a, Plan), .kinds = kinds_find(a, shapes)};
    segs_init(a, m->plan, art);
    m->code = (PlanCode){.art = art, .shapes = shapes, .accesses = shapes_accesses(a, shapes), .dynamic = dynamic,
                         .plain = plain, .same_seg = m->plan->same_seg, .pool = pool};
    targets_find(m);
    plan_pe_find(a, m->plan, &m->code);
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
