// SPDX-License-Identifier: Apache-2.0
// flow.c — see flow.h. Here: units are made, in program order, and their tasks are handed to the threads.
//
// One lock holds the list of units in flight; tasks are tens of microseconds and more. Only one thread at a time makes
// units, outside the lock and in slots that nobody else looks at: what is in flight can only become less meanwhile.
#include "chip/host/flow.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/now.h"
#include "chip/host/flow_foot.h"
#include "chip/host/plan_step.h"

#define FLOW_UNITS 60   // at most 64
#define CHAINS_MAX 8    // units that one piece of the tensor engine's program becomes
#define CHAIN_STEPS 16  // products of one
#define PIECE_COLS 128  // least columns of a task: below that packing outweighs multiplying
#define WORK_LEAST 8192 // mean work of an instruction, in elements, that is worth it
#define OWNERS 16            // threads that are told apart
#define BIT(slot) ((uint64_t)1 << (slot))
#define NOBODY UINT32_MAX
#define LOOK_AHEAD 512  // instructions, for the next of the tensor engine's

typedef struct Chain { // products into one range of PSUM, in order
    uint32_t begin, end, nsteps, pieces;
    MmStep step[CHAIN_STEPS]; // with the load that holds for it, new or not; none: what the array holds
    uint32_t load[CHAIN_STEPS]; // number of that load
} Chain;

typedef struct Unit {
    uint32_t tasks, next, done;
    uint32_t taker; // the thread that took its tasks, the first of several,
    bool shared;    // and there were several
    uint32_t instructions;
    int kind; // ChipProfile's
    Foot foot;
    union {
        Chain chain;
        PlanWork work;
        DmaCopy copy;
        EffCall effect;
    };
    EngineState state; // of a run, when registers of the engines carry nothing
    EngJob *jobs;      // PLAN_STEPS of them
} Unit;

typedef struct Flow {
    Chip *chip;
    ChipProg *prog;
    uint8_t *const *segs;
    uint32_t threads;
    bool backward;           // for tests: many units in flight, the youngest first
    atomic_flag lock;
    bool issuing, ended;     // somebody is making units; there are no more
    bool stops;              // of the one who is issuing: the instruction at pc is none
    uint32_t pc;             // the next to become a unit
    uint64_t free;           // a bit for each slot
    // Of each unit in flight, looked at by everybody all the time, and so apart from the units themselves:
    _Alignas(64) uint64_t waits[FLOW_UNITS]; // a bit for each unit that has to end before,
    uint32_t owner[FLOW_UNITS];              // the thread in whose cache its operands are, or NOBODY,
    uint64_t ready;                          // and a bit for each that waits for none and has a task to take
    _Alignas(64) atomic_uint news;           // grows when there is something new to look at
    uint32_t idle;           // threads without a task
    uint32_t norder;         // units in flight,
    uint8_t order[FLOW_UNITS]; // the oldest first
    uint64_t room;           // of the one who is issuing: the slots that were free when he began
    uint32_t nmade;          // units that are being made
    uint8_t made[CHAINS_MAX];
    MmLoad load;             // the last one in program order; none: the array holds it
    uint32_t nloads;
    uint32_t next_pe;        // an instruction of the tensor engine, none between it and pc
    Foot load_foot;
    uint8_t sbuf_writer[ISA_SBUF_BYTES / FOOT_GRAIN], psum_writer[64]; // thread + 1 who wrote there last; 0: several
    double busy; // seconds of all threads
    Unit unit[FLOW_UNITS];
} Flow;

size_t flow_bytes(void) {
    return ((sizeof(Flow) + 63) & ~(size_t)63) + FLOW_UNITS * PLAN_STEPS * sizeof(EngJob);
}

// --- programs ----------------------------------------------------------------------------------------------

bool flow_wanted(const IsaShapes *shapes, uint32_t ncode) {
    uint64_t work = 0;
    for (uint32_t i = 0; i < shapes->n; i++) {
        const IsaInst *in = &shapes->at[i].in;
        uint64_t elems = isa_count(in->n[0]) * (uint64_t)isa_count(in->n[1]);
        if (in->op == ISA_MATMUL)
            elems = elems * isa_count(in->n[2]) * isa_count(in->n[3]) / 16;
        else
            elems *= isa_count(in->n[2]) * (uint64_t)isa_count(in->n[3]);
        work += elems < (uint64_t)1 << 32 ? elems * shapes->at[i].uses : 0;
    }
    return work / ((uint64_t)ncode + 1) >= WORK_LEAST;
}

bool flow_fresh(const IsaShapes *shapes) {
    for (uint32_t i = 0; i < shapes->n; i++) {
        const IsaInst *in = &shapes->at[i].in;
        bool res = in->res || shapes->at[i].varies >> SHAPE_RES & 1;
        if ((in->rcmd || res) && in->rcmd != RCMD_RESET_REDUCE && in->rcmd != RCMD_LOAD_REDUCE)
            return false;
    }
    return true;
}

// --- making units ------------------------------------------------------------------------------------------

static Unit *unit_new(Flow *f, int kind) { // there is a free slot
    uint32_t slot = (uint32_t)__builtin_ctzll(f->room);
    Unit *u = &f->unit[slot];
    f->room &= f->room - 1;
    f->made[f->nmade++] = (uint8_t)slot;
    u->tasks = u->next = u->done = 0;
    u->instructions = 1;
    u->shared = false;
    u->kind = kind;
    foot_clear(&u->foot);
    return u;
}

static void unit_drop(Flow *f) { // the one just made
    f->room |= BIT(f->made[--f->nmade]);
}

static void foot_add(Flow *f, Foot *foot, const IsaInst *in) {
    foot_inst(foot, in, f->chip->regs, f->prog->plan->same_seg);
}

// Does a product use what was loaded before pc? When that is not plain to see, yes.
static bool load_needed(Flow *f, uint32_t pc) {
    const Artifact *art = f->prog->art;
    if (f->next_pe < pc || f->next_pe >= art->ncode) {
        for (f->next_pe = pc; f->next_pe < art->ncode && f->next_pe < pc + LOOK_AHEAD; f->next_pe++) {
            const IsaInst *in = &art->code[f->next_pe];
            int cost = isa_rows[in->op].cost;
            if (in->op == ISA_HALT || in->op == ISA_LDWEIGHTS)
                break;
            if (in->op == ISA_MATMUL || cost == COST_BRANCH || cost == COST_LOOP)
                return true;
        }
        if (f->next_pe == pc + LOOK_AHEAD || f->next_pe == art->ncode)
            return true;
    }
    return art->code[f->next_pe].op == ISA_MATMUL;
}

// The unit just made writes over the operand of the last load: if that is still needed, it has to be in the array
// before. False: the flow ends here.
static bool load_outlives(Flow *f, Unit *u) {
    if (!f->load.src || !foot_spoils(&u->foot, &f->load_foot))
        return true;
    if (!load_needed(f, f->pc)) {
        f->load.src = NULL;
        return true;
    }
    unit_drop(f);
    f->stops = true;
    return false;
}

static void make_run(Flow *f, const PlanRun *run) {
    const Plan *plan = f->prog->plan;
    const Artifact *art = f->prog->art;
    Unit *u = unit_new(f, PROFILE_JOINED);
    for (uint32_t pc = run->first; pc < run->end; pc++) {
        const IsaInst *in = &art->code[pc];
        if (plan_is_idle(in) || (plan->spared && plan->spared[pc]))
            continue;
        foot_add(f, &u->foot, in);
        u->foot.registers |= !f->prog->fresh && (in->rcmd || in->res);
    }
    if (!load_outlives(f, u))
        return;
    u->work = plan_work(f->chip, f->prog, run, f->segs, u->jobs, f->prog->fresh ? &u->state : &f->chip->engines);
    uint64_t tasks = u->work.elems / PLAN_GRAIN_ELEMS + 1;
    tasks = tasks > 2 * f->threads ? 2 * f->threads : tasks;
    u->tasks = tasks > u->work.slices ? u->work.slices : (uint32_t)tasks;
    u->instructions = run->end - run->first;
    f->pc = run->end;
}

// in: the transfer whose source it takes, or NULL.
static void make_copy(Flow *f, const IsaInst *in) {
    Unit *u = unit_new(f, ISA_DMA);
    const IsaInst *out = &f->prog->art->code[f->pc];
    foot_add(f, &u->foot, out);
    if (in)
        foot_add(f, &u->foot, in); // its place in SBUF too, which nobody reads
    if (!load_outlives(f, u))
        return;
    uint32_t pc = f->pc++;
    if (in)
        u->copy = chip_through_of(f->chip, in, out, f->segs);
    else if (!chip_copy_of(f->chip, f->prog, pc, f->segs, &u->copy)) {
        unit_drop(f);
        return;
    }
    size_t tasks = u->copy.rows / u->copy.grain;
    u->tasks = tasks < 1 ? 1 : tasks > 2 * f->threads ? 2 * f->threads : (uint32_t)tasks;
}

static void make_effect(Flow *f, const IsaInst *in) {
    Unit *u = unit_new(f, in->op);
    foot_add(f, &u->foot, in);
    if (!load_outlives(f, u))
        return;
    f->pc++;
    u->effect = chip_effect_of(f->chip, in, f->segs);
    u->tasks = 1;
}

// --- the tensor engine ---------------------------------------------------------------------------------------

// What a load or product reads: in SBUF, or in HBM when the plan spares the transfer.
static void pe_foot(Flow *f, Foot *foot, uint32_t pc) {
    const Plan *plan = f->prog->plan;
    const IsaInst *in = &f->prog->art->code[pc];
    if (!plan->pe_at || !plan->pe_at[pc]) {
        foot_add(f, foot, in);
        return;
    }
    const PlanPe *o = &plan->pe.at[plan->pe_at[pc] - 1];
    int64_t row = ((int64_t)(isa_count(in->n[1]) - 1) * in->s[1] + 1) * (int64_t)dtype_bytes(in->stype);
    int64_t lo = (int64_t)o->off, reach = (isa_count(in->n[0]) - 1) * o->pitch;
    foot_hbm(foot, &(FootHbm){.seg = plan->same_seg[o->seg], .lo = lo, .hi = lo + reach + row});
}

// What a product writes to HBM, when the plan has its sums go there.
static void out_foot(Flow *f, Foot *foot, uint32_t pc) {
    const Plan *plan = f->prog->plan;
    if (!plan->out_at || !plan->out_at[pc])
        return;
    const PlanPe *o = &plan->pe.at[plan->out_at[pc] - 1];
    const IsaInst *in = &f->prog->art->code[pc];
    int64_t lo = (int64_t)o->off, row = isa_count(in->n[1]) * 4ll, reach = (isa_count(in->n[2]) - 1) * o->pitch;
    foot_hbm(foot, &(FootHbm){.seg = plan->same_seg[o->seg], .is_write = true, .lo = lo, .hi = lo + reach + row,
                              .pitch = row <= o->pitch ? o->pitch : 0, .span = row});
}

// The chain among those being made that the product belongs to, or a new one; NULL: not among these.
static Unit *chain_find(Flow *f, const MmStep *s) {
    for (uint32_t i = 0; i < f->nmade; i++) {
        Unit *u = &f->unit[f->made[i]];
        const Chain *c = &u->chain;
        if (c->begin == s->dst_begin && c->end == s->dst_end && c->step[0].n == s->n &&
            c->step[0].call.dst_stride == s->call.dst_stride)
            return c->nsteps < CHAIN_STEPS ? u : NULL;
        if (s->dst_begin < c->end && c->begin < s->dst_end)
            return NULL;
    }
    if (f->nmade == CHAINS_MAX || !f->room)
        return NULL;
    Unit *u = unit_new(f, ISA_MATMUL);
    u->instructions = 0;
    u->chain.begin = s->dst_begin, u->chain.end = s->dst_end, u->chain.nsteps = 0;
    return u;
}

static void chains_close(Flow *f) {
    for (uint32_t i = 0; i < f->nmade; i++) {
        Unit *u = &f->unit[f->made[i]];
        uint32_t most = u->chain.step[0].n / PIECE_COLS;
        u->chain.pieces = u->tasks = most < 1 ? 1 : f->threads < most ? f->threads : most;
    }
}

static void make_chains(Flow *f) {
    const ChipProg *p = f->prog;
    const Artifact *art = p->art;
    for (; f->pc < art->ncode; f->pc++) {
        const IsaInst *in = &art->code[f->pc];
        if (p->dynamic[f->pc] || p->plan->run_at[f->pc])
            break;
        if (plan_is_idle(in) || (p->plan->spared && p->plan->spared[f->pc]))
            continue;
        if ((in->op != ISA_LDWEIGHTS && in->op != ISA_MATMUL) || p->pe[f->pc] & PE_RARE)
            break;
        if (in->op == ISA_LDWEIGHTS) {
            f->load = chip_load_of(f->chip, p, f->pc, f->segs);
            f->nloads++;
            foot_clear(&f->load_foot);
            pe_foot(f, &f->load_foot, f->pc);
            continue;
        }
        MmStep step = chip_product_of(f->chip, p, f->pc, f->segs);
        Unit *u = chain_find(f, &step);
        if (!u)
            break;
        step.load = f->load;
        pe_foot(f, &u->foot, f->pc);
        out_foot(f, &u->foot, f->pc);
        foot_part(&u->foot, SPACE_PSUM, step.dst_begin, step.dst_end, false);
        foot_part(&u->foot, SPACE_PSUM, step.dst_begin, step.dst_end, true);
        if (f->load.src)
            foot_join(&u->foot, &f->load_foot);
        u->chain.load[u->chain.nsteps] = f->nloads;
        u->chain.step[u->chain.nsteps++] = step;
        u->instructions += 2;
        if (f->chip->profile)
            f->chip->profile->flop += 2.0 * isa_count(in->n[0]) * isa_count(in->n[1]) * isa_count(in->n[2]) * isa_count(in->n[3]);
    }
    chains_close(f);
}

static void chain_run(const Flow *f, const Chain *c, uint32_t begin, uint32_t end) { // pieces
    _Alignas(64) float panels[MM_PANEL_BYTES / sizeof(float)];
    MmStationary own = {.panels = panels};
    for (uint32_t i = 0; i < c->nsteps; i++) {
        const MmStep *s = &c->step[i];
        const MmStep *next = i + 1 < c->nsteps ? s + 1 : NULL;
        if (s->load.src && (!i || c->load[i] != c->load[i - 1])) {
            own.panels = panels;
            mm_load_there(f->chip->level, &own, &s->load);
        }
        MmCall call = s->call;
        call.st = s->load.src ? &own : &f->chip->array;
        call.next_src = next && next->call.blocks == call.blocks ? next->call.src : NULL;
        call.next_load = next && c->load[i + 1] != c->load[i] ? &next->load : NULL;
        call.goes_on = next && !call.out && next->load.src && next->load.m >= call.st->m;
        mm_multiply(&call, mm_piece_at(s->n, begin, c->pieces), mm_piece_at(s->n, end, c->pieces));
    }
}

// --- issuing -------------------------------------------------------------------------------------------------

static void make_next(Flow *f) {
    const ChipProg *p = f->prog;
    const Plan *plan = p->plan;
    if (f->pc >= p->art->ncode || p->dynamic[f->pc]) {
        f->stops = true;
        return;
    }
    const IsaInst *in = &p->art->code[f->pc];
    bool plain_dma = in->op == ISA_DMA && !in->op0 && (!in->dtype || in->dtype == in->stype);
    if (plan->run_at[f->pc])
        make_run(f, &plan->runs[plan->run_at[f->pc] - 1]);
    else if ((plan->spared && plan->spared[f->pc]) || plan_is_idle(in))
        f->pc++;
    else if (plan->through && plan->through[f->pc] && plain_dma)
        make_copy(f, &p->art->code[plan->through[f->pc] - 1]);
    else if (plan->through && plan->through[f->pc])
        f->stops = true;
    else if (plain_dma || in->op == ISA_DMA_TRANSPOSE)
        make_copy(f, NULL);
    else if (in->op == ISA_TRANSPOSE)
        make_effect(f, in);
    else if ((in->op == ISA_LDWEIGHTS || in->op == ISA_MATMUL) && !(p->pe[f->pc] & PE_RARE))
        make_chains(f);
    else
        f->stops = true;
}

static bool can_begin(const ChipProg *p, uint32_t pc) {
    const IsaInst *in = &p->art->code[pc];
    if (p->dynamic[pc])
        return false;
    return p->plan->run_at[pc] || in->op == ISA_DMA || in->op == ISA_DMA_TRANSPOSE || in->op == ISA_TRANSPOSE ||
           in->op == ISA_LDWEIGHTS || in->op == ISA_MATMUL;
}

// --- threads -------------------------------------------------------------------------------------------------

static void relax(uint32_t *times) {
    if (++*times % 1024 == 0)
        sched_yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void flow_lock(Flow *f) {
    uint32_t times = 0;
    while (atomic_flag_test_and_set_explicit(&f->lock, memory_order_acquire))
        relax(&times);
}

static void flow_unlock(Flow *f) { atomic_flag_clear_explicit(&f->lock, memory_order_release); }

static bool is_others(const Flow *f, uint32_t slot, uint32_t thread) {
    return f->owner[slot] != NOBODY && f->owner[slot] != thread;
}

// The oldest unit with a task to take, rather one that is not another's, and how many such units there are; NULL: none.
static Unit *unit_pick(Flow *f, uint32_t thread, uint32_t *ready) {
    uint32_t found = NOBODY;
    *ready = (uint32_t)__builtin_popcountll(f->ready);
    for (uint32_t i = 0, left = *ready; left; i++) {
        uint32_t slot = f->order[i];
        if (!(f->ready & BIT(slot)))
            continue;
        left--;
        if (found == NOBODY || f->backward || (is_others(f, found, thread) && !is_others(f, slot, thread)))
            found = slot;
    }
    return found == NOBODY ? NULL : &f->unit[found];
}

static void writer_note(uint8_t *writer, const uint64_t *words, uint32_t n, uint8_t who) {
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t w = words[i]; w; w &= w - 1)
            writer[i * 64 + (uint32_t)__builtin_ctzll(w)] = who;
}

static void writer_count(const uint8_t *writer, const uint64_t *words, uint32_t n, uint32_t *votes) {
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t w = words[i]; w; w &= w - 1)
            votes[writer[i * 64 + (uint32_t)__builtin_ctzll(w)]]++;
}

// The thread that wrote most of what the unit reads.
static uint32_t owner_find(const Flow *f, const Foot *foot) {
    uint32_t votes[OWNERS + 1] = {0}, best = 0;
    writer_count(f->sbuf_writer, foot->sbuf[0], FOOT_SBUF_WORDS, votes);
    writer_count(f->psum_writer, &foot->psum[0], 1, votes);
    for (uint32_t i = 1; i <= OWNERS; i++)
        if (votes[i] > votes[best] || (!best && votes[i]))
            best = i;
    return best ? best - 1 : NOBODY;
}

static void unit_ready(Flow *f, uint32_t slot) {
    f->owner[slot] = owner_find(f, &f->unit[slot].foot);
    f->ready |= f->unit[slot].tasks ? BIT(slot) : 0;
}

static void flow_tell(Flow *f) { atomic_fetch_add_explicit(&f->news, 1, memory_order_relaxed); }

static void unit_end(Flow *f, Unit *u, uint32_t thread) {
    uint32_t slot = (uint32_t)(u - f->unit), at = 0;
    while (f->order[at] != slot)
        at++;
    memmove(&f->order[at], &f->order[at + 1], --f->norder - at);
    uint8_t who = !u->shared && thread < OWNERS ? (uint8_t)(thread + 1) : 0;
    writer_note(f->sbuf_writer, u->foot.sbuf[1], FOOT_SBUF_WORDS, who);
    writer_note(f->psum_writer, &u->foot.psum[1], 1, who);
    for (uint32_t i = 0; i < f->norder; i++) {
        uint32_t next = f->order[i];
        if (f->waits[next] & BIT(slot) && !(f->waits[next] &= ~BIT(slot)))
            unit_ready(f, next);
    }
    f->free |= BIT(slot);
    flow_tell(f);
}

// With the lock held, which is given up in between.
static void units_issue(Flow *f) {
    f->issuing = true;
    uint32_t norder = f->norder;
    f->room = f->free;
    uint8_t order[FLOW_UNITS];
    memcpy(order, f->order, sizeof order);
    flow_unlock(f);
    f->nmade = 0;
    while (!f->nmade && !f->stops)
        make_next(f);
    for (uint32_t i = 0; i < f->nmade; i++) {
        uint64_t waits = 0;
        for (uint32_t k = 0; k < norder; k++)
            if (foot_meet(&f->unit[f->made[i]].foot, &f->unit[order[k]].foot))
                waits |= BIT(order[k]);
        f->waits[f->made[i]] = waits;
    }
    flow_lock(f);
    uint64_t active = 0;
    for (uint32_t i = 0; i < f->norder; i++)
        active |= BIT(f->order[i]);
    for (uint32_t i = 0; i < f->nmade; i++) {
        f->waits[f->made[i]] &= active;
        if (!f->waits[f->made[i]])
            unit_ready(f, f->made[i]);
        f->free &= ~BIT(f->made[i]);
        f->order[f->norder++] = f->made[i];
    }
    f->ended = f->stops;
    f->issuing = false;
    flow_tell(f);
}

static size_t row_at(const DmaCopy *c, uint32_t task, uint32_t tasks) { // whole grains; the last takes the rest
    return task == tasks ? c->rows : c->rows / c->grain * task / tasks * c->grain;
}

static void tasks_run(const Flow *f, Unit *u, uint32_t begin, uint32_t end) {
    switch (u->kind) {
    case ISA_MATMUL:
        chain_run(f, &u->chain, begin, end);
        break;
    case PROFILE_JOINED:
        plan_work_run(&u->work, u->work.slices * begin / u->tasks, u->work.slices * end / u->tasks);
        break;
    case ISA_DMA:
        dma_rows(&u->copy, row_at(&u->copy, begin, u->tasks), row_at(&u->copy, end, u->tasks));
        break;
    default:
        effect_find(u->kind)(&u->effect);
    }
}

// All that is left of the unit, while there is another for each thread without; else its share.
static uint32_t tasks_take(Flow *f, Unit *u, uint32_t thread, uint32_t others) {
    uint32_t left = u->tasks - u->next, n = others && others >= f->idle ? left : (left + 1) / 2;
    if (!u->next)
        u->taker = thread;
    u->shared |= u->taker != thread;
    u->next += n;
    if (u->next == u->tasks)
        f->ready &= ~BIT(u - f->unit);
    return n;
}

static void flow_task(Flow *f, uint32_t thread) {
    uint32_t times = 0;
    flow_lock(f);
    while (f->norder || f->issuing || !f->ended) {
        uint32_t ready;
        if (!f->issuing && pulse_stops(f->chip->pulse)) // what is in flight ends, nothing more begins
            f->ended = true;
        Unit *u = unit_pick(f, thread, &ready);
        if (!f->ended && !f->issuing && f->free && (ready < 2 * f->threads || f->backward)) {
            units_issue(f);
            continue;
        }
        if (!u) {
            f->idle++;
            uint32_t news = atomic_load_explicit(&f->news, memory_order_relaxed);
            flow_unlock(f);
            while (atomic_load_explicit(&f->news, memory_order_relaxed) == news)
                relax(&times);
            flow_lock(f);
            f->idle--;
            continue;
        }
        uint32_t first = u->next, taken = tasks_take(f, u, thread, ready - 1);
        flow_unlock(f);
        double begin = f->chip->profile ? now_seconds() : 0;
        tasks_run(f, u, first, first + taken);
        double spent = f->chip->profile ? now_seconds() - begin : 0;
        flow_lock(f);
        f->busy += spent;
        if (f->chip->profile)
            f->chip->profile->seconds[u->kind] += spent / f->threads;
        u->done += taken;
        if (u->done < u->tasks)
            continue;
        if (f->chip->profile)
            f->chip->profile->count[u->kind] += u->instructions;
        unit_end(f, u, thread);
    }
    flow_unlock(f);
}

static void thread_run(void *arg, size_t begin, size_t end) {
    for (; begin < end; begin++)
        flow_task(arg, (uint32_t)begin);
}

uint32_t flow_run(Chip *c, ChipProg *p, uint32_t pc, uint8_t *const *segs) {
    if (!can_begin(p, pc))
        return pc;
    Flow *f = c->flow;
    f->chip = c, f->prog = p, f->segs = segs;
    f->threads = (uint32_t)pool_threads(c->pool);
    f->backward = c->plan == CHIP_PLAN_ALL;
    f->issuing = f->ended = f->stops = false;
    f->pc = pc, f->next_pe = 0, f->load.src = NULL;
    f->free = BIT(FLOW_UNITS) - 1;
    f->norder = f->idle = 0;
    f->ready = 0;
    f->busy = 0;
    double begin = c->profile ? now_seconds() : 0;
    pool_run(c->pool, f->threads, 1, thread_run, f);
    if (c->profile)
        c->profile->seconds[PROFILE_WAITING] += now_seconds() - begin - f->busy / f->threads;
    if (f->load.src && load_needed(f, f->pc))
        mm_load(c->level, &c->array, &f->load);
    return f->pc;
}

struct Flow *flow_begin(void *memory) {
    Flow *f = memory; // all zero
    EngJob *jobs = (EngJob *)((uint8_t *)memory + ((sizeof(Flow) + 63) & ~(size_t)63));
    for (int i = 0; i < FLOW_UNITS; i++)
        f->unit[i].jobs = jobs + i * PLAN_STEPS;
    atomic_flag_clear(&f->lock);
    return f;
}
