// SPDX-License-Identifier: Apache-2.0
// clock.c — when things happen: an event-driven run over the engines, without data.
//
// Rules of the machine, as isa.h and spec/isa.md tell them:
//   1. each of the five sequencers takes its instructions in program order; an instruction begins
//      when its sequencer is free and its semaphores have counted far enough (plus the semaphore's
//      latency);
//   2. a DMA waits on the sync sequencer, is triggered there, and runs in its queue, in order; the
//      queues share the DMA engines, and everything that touches HBM shares its bandwidth, first
//      come first served;
//   3. the array keeps a second set of weights: ldweights runs beside the matmul before it;
//   4. a branch holds back everything after it until it is decided; a barrier waits for all that
//      was begun and clears the semaphores.
// Between two branches or barriers the sequencer whose next instruction can begin first goes first,
// so shared resources are given out in the order of time.
//
// Loops: iterations are stepped through until the state after one, seen from its end, equals the
// state after the one before. All later ones are then the same and are added at once. Branches are
// not followed: the code is walked from top to bottom, the arms of a conditional one after the
// other.
#include "clock/clock.h"

#include <assert.h>

#include "clock/price.h"

#define STEPS_MAX 10000000u // then loops run once and are multiplied
#define ITERATIONS_MAX 4096 // of one loop before its last iteration is taken as steady
#define EVENTS_MAX 4000000u
#define DMA_ENGINES_MAX 64

const char *const clock_track_names[CLOCK_TRACKS] = {"tensor", "vector", "scalar", "gpsimd",
                                                     "sync",   "dma in", "dma out"};

// Every time the future depends on. All of it is compared, so nothing else may go in here.
typedef struct Times {
    Ps fence;             // nothing begins earlier
    Ps done;              // all that was begun is over
    Ps free[ENG_COUNT];   // sequencers; tensor: its matmuls
    Ps weights;           // the last ldweights is over
    Ps matmul;            // the last matmul began: its weights are in use, the other set is free
    Ps queue[DMA_QUEUES]; // may start another transfer
    Ps engine[DMA_ENGINES_MAX];
    Ps hbm;
    Ps busy_until[CLOCK_TRACKS]; // of the timeline, for counting overlaps once
} Times;
#define TIMES_COUNT (sizeof(Times) / sizeof(Ps))

typedef struct Totals { // what a fast-forward multiplies
    Ps busy[CLOCK_TRACKS];
    uint64_t insts[CLOCK_TRACKS];
    double flops, hbm_bytes;
    uint64_t unknown_loops;
} Totals;

typedef VEC(Ps) PsList;

typedef struct Sim {
    Arena *arena;
    const Artifact *art;
    const ChipFile *chip;
    const Price *price;
    const ArtLoop *loops;
    Ps sem_ps, dma_issue, dma_done;
    uint32_t dma_engines, dma_share;
    Times now;
    PsList sem[SEM_COUNT]; // when each count was reached, since the last barrier; never falls
    Totals totals;
    Clock *out;
    uint32_t *next; // next instruction on the same sequencer inside the piece being run
    bool want_events, stepwise;
} Sim;

#define NO_INST UINT32_MAX

// --- one instruction -----------------------------------------------------------------------------

// Until when its semaphores hold it back; -1 when they have not counted far enough yet.
static Ps waits_until(const Sim *s, const IsaInst *in) {
    Ps t = s->now.fence;
    for (int w = 0; w < 2; w++) {
        uint32_t sem = in->wait_sem[w], n = in->wait_val[w];
        if (sem == SEM_NONE || !n)
            continue;
        if (s->sem[sem].n < n)
            return -1;
        t = ps_max(t, ps_add(s->sem[sem].at[n - 1], s->sem_ps));
    }
    return t;
}

// The earliest begin of a sequencer's next instruction, -1 when it waits for one that has not run.
static Ps begin_of(const Sim *s, uint32_t pc) {
    const IsaInst *in = &s->art->code[pc];
    Ps t = waits_until(s, in);
    if (t < 0)
        return -1;
    switch (isa_rows[in->op].cost) {
    case COST_LDWEIGHTS:
        return ps_max(t, ps_max(s->now.weights, s->now.matmul));
    case COST_MATMUL:
        return ps_max(t, ps_max(s->now.weights, s->now.free[ENG_TENSOR]));
    default:
        return ps_max(t, s->now.free[in->engine]);
    }
}

static void count_on(Sim *s, int sem, Ps when) {
    PsList *list = &s->sem[sem];
    if (list->n)
        when = ps_max(when, list->at[list->n - 1]);
    VEC_PUSH(s->arena, list, when);
    s->now.done = ps_max(s->now.done, when);
}

static void note_busy(Sim *s, uint32_t pc, int track, Ps begin, Ps end) {
    Ps from = ps_max(begin, s->now.busy_until[track]);
    if (end > from)
        s->totals.busy[track] = ps_add(s->totals.busy[track], end - from);
    s->now.busy_until[track] = ps_max(s->now.busy_until[track], end);
    if (s->want_events && s->out->events.n < EVENTS_MAX) {
        ClockEvent e = {pc, (uint8_t)track, (double)begin * 1e-3, (double)end * 1e-3};
        VEC_PUSH(s->arena, &s->out->events, e);
    }
}

static Ps take_hbm(Sim *s, Ps begin, Ps time) {
    if (!time)
        return begin;
    return s->now.hbm = ps_add(ps_max(s->now.hbm, begin), time);
}

static Ps ps_times(Ps t, uint64_t n) {
    Ps out;
    return __builtin_mul_overflow(t, n, &out) || out > PS_MAX ? PS_MAX : out;
}

// The transfer's share on each engine; returns when the last one is through.
static Ps take_dma_engines(Sim *s, const Price *p, Ps begin) {
    Ps end = begin;
    if (!p->dma_parts) {
        for (uint32_t e = 0; e < s->dma_engines; e++) {
            s->now.engine[e] = ps_add(ps_max(s->now.engine[e], begin), p->dma);
            end = ps_max(end, s->now.engine[e]);
        }
        return end;
    }
    uint32_t first = p->dma_part, last = first + p->dma_parts; // partitions [first, last)
    while (first < last) {
        uint32_t stop = (first / s->dma_share + 1) * s->dma_share;
        uint32_t n = (stop < last ? stop : last) - first;
        Ps *e = &s->now.engine[first / s->dma_share % s->dma_engines];
        *e = ps_add(ps_max(*e, begin), ps_times(p->dma, n));
        end = ps_max(end, *e);
        first += n;
    }
    return end;
}

static void run_dma(Sim *s, uint32_t pc, Ps trigger) {
    const IsaInst *in = &s->art->code[pc];
    const Price *p = &s->price[pc];
    s->now.free[ENG_SYNC] = ps_add(trigger, p->busy);
    Ps begin = ps_max(ps_add(trigger, p->latency), s->now.queue[in->queue]);
    Ps end = take_dma_engines(s, p, begin);
    end = ps_max(end, take_hbm(s, begin, p->hbm));
    s->now.queue[in->queue] = ps_add(begin, s->dma_issue);
    note_busy(s, pc, p->track, begin, end);
    count_on(s, ENG_COUNT + in->queue, ps_add(end, s->dma_done));
}

static void run_inst(Sim *s, uint32_t pc, Ps begin) {
    const IsaInst *in = &s->art->code[pc];
    const Price *p = &s->price[pc];
    s->totals.insts[p->track]++;
    s->totals.flops += p->flops;
    s->totals.hbm_bytes += p->hbm_bytes;
    s->out->simulated++;
    int cost = isa_rows[in->op].cost;
    if (cost == COST_DMA) {
        run_dma(s, pc, begin);
        return;
    }
    Ps end = ps_max(ps_add(begin, p->busy), take_hbm(s, begin, p->hbm));
    if (cost == COST_LDWEIGHTS)
        s->now.weights = end;
    else
        s->now.free[in->engine] = end;
    if (cost == COST_MATMUL)
        s->now.matmul = begin;
    note_busy(s, pc, p->track, begin, end);
    count_on(s, in->engine, ps_max(end, ps_add(begin, p->latency)));
}

// --- straight code -------------------------------------------------------------------------------

static bool is_fence(const IsaInst *in) {
    int cost = isa_rows[in->op].cost;
    return cost == COST_BARRIER || cost == COST_BRANCH;
}

static void chain_sequencers(Sim *s, uint32_t begin, uint32_t end, uint32_t head[ENG_COUNT]) {
    uint32_t tail[ENG_COUNT];
    for (int e = 0; e < ENG_COUNT; e++)
        head[e] = tail[e] = NO_INST;
    for (uint32_t pc = begin; pc < end; pc++) {
        int e = s->art->code[pc].engine;
        s->next[pc] = NO_INST;
        if (tail[e] == NO_INST)
            head[e] = pc;
        else
            s->next[tail[e]] = pc;
        tail[e] = pc;
    }
}

// No sequencer can go on: a wait counts on instructions of another path, since branches are not
// followed. The first instruction in program order then waits for everything that has begun.
static int unblock(const Sim *s, const uint32_t head[ENG_COUNT], Ps ready[ENG_COUNT]) {
    int first = -1;
    for (int e = 0; e < ENG_COUNT; e++)
        if (head[e] != NO_INST && (first < 0 || head[e] < head[first]))
            first = e;
    assert(first >= 0);
    ready[first] = ps_max(s->now.done, s->now.fence);
    return first;
}

// Instructions [begin, end) without a fence among them.
static void run_piece(Sim *s, uint32_t begin, uint32_t end) {
    uint32_t head[ENG_COUNT];
    Ps ready[ENG_COUNT]; // earliest begin of the head; -1 = waits for another sequencer
    chain_sequencers(s, begin, end, head);
    for (int e = 0; e < ENG_COUNT; e++)
        ready[e] = -1;
    for (uint32_t left = end - begin; left; left--) {
        int best = -1;
        for (int e = 0; e < ENG_COUNT; e++) {
            if (head[e] == NO_INST)
                continue;
            if (ready[e] < 0)
                ready[e] = begin_of(s, head[e]);
            if (ready[e] >= 0 && (best < 0 || ready[e] < ready[best]))
                best = e;
        }
        if (best < 0)
            best = unblock(s, head, ready);
        run_inst(s, head[best], ready[best]);
        head[best] = s->next[head[best]];
        ready[best] = -1;
    }
}

static void run_fence(Sim *s, uint32_t pc) {
    const IsaInst *in = &s->art->code[pc];
    bool is_barrier = isa_rows[in->op].cost == COST_BARRIER;
    Ps begin = begin_of(s, pc);
    if (is_barrier || begin < 0)
        begin = ps_max(begin, s->now.done);
    run_inst(s, pc, begin);
    s->now.fence = s->now.free[ENG_SYNC];
    if (is_barrier)
        for (int i = 0; i < SEM_COUNT; i++)
            s->sem[i].n = 0;
}

static void run_straight(Sim *s, uint32_t begin, uint32_t end) {
    while (begin < end) {
        uint32_t stop = begin;
        while (stop < end && !is_fence(&s->art->code[stop]))
            stop++;
        run_piece(s, begin, stop);
        if (stop < end)
            run_fence(s, stop++);
        begin = stop;
    }
}

// --- loops ---------------------------------------------------------------------------------------

// The state as seen from `fence`: times that are over count as now.
typedef struct View {
    Ps at[TIMES_COUNT];
    uint32_t counts[SEM_COUNT];
    uint64_t sems; // hash of semaphore times
} View;

static void view_take(const Sim *s, View *v) {
    Ps all[TIMES_COUNT];
    memcpy(all, &s->now, sizeof all);
    for (size_t i = 0; i < TIMES_COUNT; i++)
        v->at[i] = ps_max(all[i] - s->now.fence, 0);
    v->sems = 0;
    for (int i = 0; i < SEM_COUNT; i++) {
        v->counts[i] = s->sem[i].n;
        for (uint32_t k = 0; k < s->sem[i].n; k++) {
            Ps t = ps_max(s->sem[i].at[k] - s->now.fence, 0);
            v->sems = hash64(v->sems, &t, sizeof t);
        }
    }
}

// A loop without a barrier keeps counting. Its waits are for counts its first iteration reached;
// once those are over they no longer matter.
typedef struct Steady {
    View before, after;
    uint32_t first_counts[SEM_COUNT];
    uint64_t iterations;
} Steady;

static bool is_steady(const Sim *s, const Steady *st) {
    if (memcmp(st->before.at, st->after.at, sizeof st->before.at))
        return false;
    if (!memcmp(st->before.counts, st->after.counts, sizeof st->before.counts))
        return st->before.sems == st->after.sems;
    for (int i = 0; i < SEM_COUNT; i++) {
        uint32_t n = st->first_counts[i];
        if (n && n <= s->sem[i].n && ps_add(s->sem[i].at[n - 1], s->sem_ps) > s->now.fence)
            return false;
    }
    return st->iterations > 2;
}

static void shift_times(Sim *s, Ps by) {
    Ps all[TIMES_COUNT];
    memcpy(all, &s->now, sizeof all);
    for (size_t i = 0; i < TIMES_COUNT; i++)
        all[i] = ps_add(all[i], by);
    memcpy(&s->now, all, sizeof all);
    for (int i = 0; i < SEM_COUNT; i++)
        for (uint32_t k = 0; k < s->sem[i].n; k++)
            s->sem[i].at[k] = ps_add(s->sem[i].at[k], by);
}

static uint64_t times_u64(uint64_t a, uint64_t n) {
    uint64_t out;
    return __builtin_mul_overflow(a, n, &out) ? UINT64_MAX : out;
}

static uint64_t add_u64(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

// `n` more iterations like the last one, which took `period` and added (now - from) to the totals.
static void fast_forward(Sim *s, const Totals *from, Ps period, uint64_t n) {
    Totals *t = &s->totals;
    for (int i = 0; i < CLOCK_TRACKS; i++) {
        t->busy[i] = ps_add(t->busy[i], ps_times(t->busy[i] - from->busy[i], n));
        t->insts[i] = add_u64(t->insts[i], times_u64(t->insts[i] - from->insts[i], n));
    }
    t->flops += (t->flops - from->flops) * (double)n;
    t->hbm_bytes += (t->hbm_bytes - from->hbm_bytes) * (double)n;
    shift_times(s, ps_times(period, n));
}

static void run_range(Sim *s, uint32_t begin, uint32_t end, uint32_t first_loop,
                      uint32_t last_loop);

// Loops [index + 1, last) that lie inside loop `index` come before the first that does not.
static uint32_t loop_after(const Sim *s, uint32_t index, uint32_t last) {
    uint32_t i = index + 1;
    while (i < last && s->loops[i].begin < s->loops[index].end)
        i++;
    return i;
}

static void run_loop(Sim *s, uint32_t index, uint32_t after) {
    const ArtLoop *l = &s->loops[index];
    uint64_t trips = l->trips ? l->trips : 1;
    s->totals.unknown_loops += !l->trips;
    uint64_t unknown = s->totals.unknown_loops;
    Steady st = {0};
    while (st.iterations < trips) {
        Ps start = s->now.fence, start_done = s->now.done;
        Totals from = s->totals;
        st.before = st.after;
        run_range(s, l->begin, l->end, index + 1, after);
        if (!st.iterations++) {
            unknown = s->totals.unknown_loops;
            for (int i = 0; i < SEM_COUNT; i++)
                st.first_counts[i] = s->sem[i].n;
        }
        s->totals.unknown_loops = unknown; // inner ones are reported once
        view_take(s, &st.after);
        bool give_up = st.iterations >= ITERATIONS_MAX || s->out->simulated > STEPS_MAX;
        if (s->stepwise || (!give_up && (st.iterations < 2 || !is_steady(s, &st))))
            continue;
        // steady: both are the period. Given up: the slower of what triggers work and what does it
        Ps period = ps_max(s->now.fence - start, s->now.done - start_done);
        fast_forward(s, &from, period, trips - st.iterations);
        break;
    }
}

static void run_range(Sim *s, uint32_t begin, uint32_t end, uint32_t first_loop,
                      uint32_t last_loop) {
    for (uint32_t i = first_loop; i < last_loop;) {
        uint32_t after = loop_after(s, i, last_loop);
        run_straight(s, begin, s->loops[i].begin);
        run_loop(s, i, after);
        begin = s->loops[i].end;
        i = after;
    }
    run_straight(s, begin, end);
}

// --- entry points --------------------------------------------------------------------------------

static void run(Sim *s, Clock *out) {
    Arena *a = s->arena;
    const Artifact *art = s->art;
    const ChipFile *c = s->chip;
    Price *price = ARENA_NEWN(a, Price, art->ncode + 1u);
    price_program(a, art, c, price);
    s->price = price;
    s->loops = artifact_loops_sorted(art, a);
    s->next = ARENA_NEWN(a, uint32_t, art->ncode + 1u);
    s->sem_ps = (Ps)(c->sem_ns * 1000);
    s->dma_issue = (Ps)(c->dma_issue_ns * 1000);
    s->dma_done = (Ps)(c->dma_done_ns * 1000);
    s->dma_engines = (uint32_t)c->dma_engines;
    s->dma_share = (uint32_t)c->dma_engine_partitions;
    assert(s->dma_engines >= 1 && s->dma_engines <= DMA_ENGINES_MAX);
    *out = (Clock){0};
    s->out = out;
    run_range(s, 0, art->ncode, 0, art->nloops);
    out->total_ns = (double)ps_max(s->now.done, s->now.fence) * 1e-3;
    for (int i = 0; i < CLOCK_TRACKS; i++) {
        out->busy_ns[i] = (double)s->totals.busy[i] * 1e-3;
        out->insts[i] = s->totals.insts[i];
    }
    out->flops = s->totals.flops;
    out->hbm_bytes = s->totals.hbm_bytes;
    out->unknown_loops = s->totals.unknown_loops;
}

void clock_run(Ctx *ctx, Arena *a, const Artifact *art, const ChipFile *chip, bool want_events,
               Clock *out) {
    (void)ctx; // the arena raises what can go wrong: no memory
    Sim s = {.arena = a, .art = art, .chip = chip, .want_events = want_events};
    run(&s, out);
}

void clock_run_stepwise(Ctx *ctx, Arena *a, const Artifact *art, const ChipFile *chip, Clock *out) {
    (void)ctx;
    Sim s = {.arena = a, .art = art, .chip = chip, .stepwise = true};
    run(&s, out);
}
