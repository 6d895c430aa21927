// SPDX-License-Identifier: Apache-2.0
// clock.c — when things happen: an event-driven run over the engines, without data.
//
// Rules of the machine, as isa.h and spec/isa.md tell them:
//   1. each of the five sequencers takes its instructions in program order; an instruction begins
//      when its sequencer is free and its semaphores have counted far enough (plus the semaphore's
//      latency), a little later if it reads what its engine wrote just before;
//   2. a DMA waits on its sequencer, is triggered there, and runs in its queue, in order; a queue
//      holds so many transfers, then its sequencer waits; the queues share the DMA engines, and
//      everything that touches HBM shares its bandwidth, first come first served; while a collective's
//      bytes are on their way it has its share of the DMA engines (rings.c);
//   3. the array keeps a second set of weights: ldweights runs beside the matmul before it; after a
//      pause the current limiter holds matmuls to a fraction for a while (where the chip has one);
//   4. engines that share a port take turns on it (where the chip says so); the scalar engine loads
//      another table when a function is not in the one it holds;
//   5. a branch holds back everything after it until it is decided; a barrier waits for all that
//      was begun and clears the semaphores.
// The sequencer whose next instruction can begin first goes first, so shared resources are given
// out in the order of time. Two cores of one logical core run side by side on one HBM.
#include "clock/clock.h"

#include <assert.h>

#include "clock/sim.h"

#define EVENTS_MAX 4000000u
#define SEM_LOG_MAX 65536u // then the older half is dropped

const char *const clock_track_names[CLOCK_TRACKS] = {"tensor", "vector", "scalar", "gpsimd",
                                                     "sync",   "dma in", "dma out", "collectives"};

// --- waits ---------------------------------------------------------------------------------------

// When a semaphore reached a count; -1 when it has not.
static Ps sem_when(const SemLog *log, uint64_t n, uint32_t *by) {
    if (n > log->n)
        return -1;
    *by = n <= log->base ? CLOCK_NOBODY : log->by.at[n - log->base - 1];
    return n <= log->base ? 0 : log->at.at[n - log->base - 1];
}

// The later of *t and `when`; *b keeps who decided it.
static void hold(Ps *t, Bound *b, Ps when, ClockCause cause, uint32_t by) {
    if (when > *t) {
        *t = when;
        *b = (Bound){(uint8_t)cause, by};
    }
}

static void own_apply(OwnSem *o, Ps now) {
    uint32_t k = 0;
    for (; k < o->pending.n && o->pending.at[k].when <= now; k++) {
        const Pending *p = &o->pending.at[k];
        int kind = p->op & ~UPD_AT_READ;
        o->value = kind == UPD_WRITE ? p->value : o->value + (kind == UPD_ADD ? p->value : -(int64_t)p->value);
        o->changed = p->when;
        o->changed_by = p->by;
    }
    if (k)
        memmove(o->pending.at, o->pending.at + k, (o->pending.n - k) * sizeof *o->pending.at);
    o->pending.n -= k;
}

// When one of the program's own semaphores reaches a value by what is on its way; -1: not yet known.
static Ps own_when(const OwnSem *o, int64_t want, uint32_t *by) {
    int64_t v = o->value;
    *by = o->changed_by;
    if (v >= want)
        return o->changed;
    for (uint32_t k = 0; k < o->pending.n; k++) {
        const Pending *p = &o->pending.at[k];
        int kind = p->op & ~UPD_AT_READ;
        v = kind == UPD_WRITE ? p->value : v + (kind == UPD_ADD ? p->value : -(int64_t)p->value);
        *by = p->by;
        if (v >= want)
            return p->when;
    }
    return -1;
}

// The count a wait names, since the last barrier.
static uint64_t wait_count(const Core *c, const FlowItem *item, int w, const uint64_t *iter) {
    uint64_t n = item->wait_val[w];
    if (!(item->wait_sem[w] & SEM_BACK))
        return n;
    uint64_t before = flow_before(&c->flow, item, w, item->wait_sem[w] & ~SEM_BACK, iter);
    return before > n ? before - n : 0;
}

// Until when its semaphores hold it back; -1 when they have not counted far enough yet.
static Ps waits_until(const Sim *s, const Core *c, const FlowItem *item, Seq *q) {
    Ps t = c->now.fence;
    q->bound = (Bound){t ? CLOCK_FENCE : CLOCK_NONE, c->by.fence};
    for (int w = 0; w < 2; w++) {
        if (item->wait_sem[w] == SEM_NONE)
            continue;
        int sem = item->wait_sem[w] & ~SEM_BACK;
        Ps when = 0;
        uint32_t by = CLOCK_NOBODY;
        if (sem < SEM_USER) {
            uint64_t n = wait_count(c, item, w, q->iter);
            when = n ? sem_when(&c->sem[sem], n, &by) : 0;
            q->wait_sem = sem;
            q->wait_n = n;
        } else {
            when = own_when(&c->own[sem - SEM_USER], item->wait_val[w], &by);
            q->wait_sem = -1;
        }
        if (when < 0)
            return -1;
        if (when)
            hold(&t, &q->bound, ps_add(when, s->sem_ps), CLOCK_WAIT, by);
    }
    q->wait_sem = -1;
    return t;
}

// --- one instruction -----------------------------------------------------------------------------

// A queue takes only so many transfers: the one `depth` before must be over.
static Ps queue_room(const Sim *s, const Core *c, const FlowItem *item, uint32_t *by) {
    const SemLog *log = &c->sem[ENG_COUNT + item->queue];
    return log->n >= s->dma_depth ? sem_when(log, log->n - s->dma_depth + 1, by) : 0;
}

// The other core's arrival at the same core_barrier or sendrecv; with one core it is always there.
static Ps partner(Sim *s, Core *c, Ps here, Bound *bound) {
    if (s->ncores < 2)
        return here;
    Core *other = s->core[s->core[0] == c];
    if (c->met.n == c->passed) {
        VEC_PUSH(s->arena, &c->met, here);
        VEC_PUSH(s->arena, &c->met_by, *bound);
    }
    if (other->met.n <= c->passed)
        return -1;
    hold(&here, bound, other->met.at[c->passed], CLOCK_PARTNER, other->met_by.at[c->passed].by);
    return here;
}

// The earliest begin of a sequencer's instruction, -1 when it waits for one that has not run.
static Ps begin_of(Sim *s, Core *c, const FlowItem *item, Seq *q) {
    Ps t = waits_until(s, c, item, q), room;
    Bound *b = &q->bound;
    uint32_t by = CLOCK_NOBODY;
    if (t < 0)
        return -1;
    switch (item->cost) {
    case COST_LDWEIGHTS:
        hold(&t, b, c->now.weights, CLOCK_ORDER, c->by.weights);
        hold(&t, b, c->now.matmul, CLOCK_WEIGHTS, c->by.matmul);
        return t;
    case COST_MATMUL:
        hold(&t, b, c->now.weights, CLOCK_ORDER, c->by.weights);
        hold(&t, b, c->now.free[ENG_TENSOR], CLOCK_ORDER, c->by.free[ENG_TENSOR]);
        return t;
    case COST_DMA:
    case COST_COLLECTIVE:
        hold(&t, b, c->now.free[item->engine], CLOCK_ORDER, c->by.free[item->engine]);
        room = queue_room(s, c, item, &by);
        hold(&t, b, room, CLOCK_QUEUE, by);
        return item->meets ? partner(s, c, t, b) : t;
    case COST_REMOTE:
        hold(&t, b, c->now.free[item->engine], CLOCK_ORDER, c->by.free[item->engine]);
        return partner(s, c, t, b);
    default:
        hold(&t, b, ps_add(c->now.free[item->engine], item->chained ? s->chain[item->engine] : 0), CLOCK_ORDER,
             c->by.free[item->engine]);
        return t;
    }
}

static void count_on(Sim *s, Core *c, int sem, Ps when) {
    SemLog *log = &c->sem[sem];
    uint32_t by = s->me;
    if (log->at.n && log->at.at[log->at.n - 1] > when) {
        when = log->at.at[log->at.n - 1];
        by = log->by.at[log->at.n - 1];
    }
    if (log->at.n == SEM_LOG_MAX) {
        memmove(log->at.at, log->at.at + SEM_LOG_MAX / 2, SEM_LOG_MAX / 2 * sizeof(Ps));
        memmove(log->by.at, log->by.at + SEM_LOG_MAX / 2, SEM_LOG_MAX / 2 * sizeof *log->by.at);
        log->at.n = log->by.n = SEM_LOG_MAX / 2;
        log->base += SEM_LOG_MAX / 2;
    }
    VEC_PUSH(s->arena, &log->at, when);
    VEC_PUSH(s->arena, &log->by, by);
    log->n++;
    if (when > c->done) {
        c->done = when;
        c->by.done = by;
    }
}

static bool counts(const Sim *s, const Core *c) { return c == s->core[0] || s->apart; } // else both do the same

static void note_busy(Sim *s, Core *c, uint32_t pc, int track, Ps begin, Ps end) {
    ClockLink *l = &s->link;
    l->begin = begin, l->end = end;
    if (counts(s, c)) {
        Ps from = ps_max(begin, c->now.busy_until[track]);
        if (end > from)
            s->totals.busy[track] = ps_add(s->totals.busy[track], end - from);
        c->now.busy_until[track] = ps_max(c->now.busy_until[track], end);
    }
    if (s->me == CLOCK_NOBODY)
        return;
    ClockEvent e = {pc, (uint8_t)track, c != s->core[0], (double)begin * 1e-3, (double)end * 1e-3};
    VEC_PUSH(s->arena, &s->out->events, e);
    l->gap = ps_max(begin - c->told[track], 0);
    l->busy = ps_max(end - ps_max(begin, c->told[track]), 0);
    c->told[track] = ps_max(c->told[track], end);
    c->latest[track] = s->me;
}

// Something shared is free from `free` on; it was held by *by and is now ours.
static void share(Sim *s, Ps begin, Ps free, Ps end, Ps *last, ClockCause cause, uint32_t *by) {
    if (end > *last) { // this decides so far when the instruction ends
        *last = end;
        s->link.serve = ps_max(begin, free);
        s->link.limit = (uint8_t)cause;
        s->link.serve_by = *by;
    }
    *by = s->me;
}

// Until when HBM is occupied by it; `last` is when it would end otherwise.
static Ps take_hbm(Sim *s, Ps begin, Ps time, Ps last) {
    if (!time)
        return last;
    Ps free = s->hbm;
    s->hbm = rings_pass(s, RING_HBM, ps_max(free, begin), ps_times(time, s->times));
    share(s, begin, free, s->hbm, &last, CLOCK_HBM, &s->hbm_by);
    return last;
}

// A transfer's part on one engine, which then rests for the gap between transfers.
static void take_engine(Sim *s, Core *c, uint32_t e, Ps begin, Ps time, Ps *last) {
    Ps free = c->now.engine[e], end = rings_pass(s, RING_DMA, ps_max(free, begin), ps_times(time, s->times));
    c->now.engine[e] = ps_add(end, s->dma_gap);
    share(s, begin, free, end, last, CLOCK_DMA, &c->by.engine[e]);
}

// The transfer's share on each engine; returns when the last one is through.
static Ps take_dma_engines(Sim *s, Core *c, const Price *p, Ps begin) {
    Ps end = begin;
    if (!p->dma_parts) {
        for (uint32_t e = 0; e < s->dma_engines; e++)
            take_engine(s, c, e, begin, p->dma, &end);
        return end;
    }
    uint32_t first = p->dma_part, last = first + p->dma_parts; // partitions [first, last)
    while (first < last) {
        uint32_t stop = (first / s->dma_share + 1) * s->dma_share;
        uint32_t n = (stop < last ? stop : last) - first;
        take_engine(s, c, first / s->dma_share % s->dma_engines, begin, ps_times(p->dma, n), &end);
        first += n;
    }
    return end;
}

// Its sequencer has taken it up; something else lets it begin later.
static void hold_run(Sim *s, Ps *begin, Ps free, ClockCause cause, uint32_t by) {
    if (free > *begin) {
        *begin = free;
        s->link.begin_cause = (uint8_t)cause, s->link.begin_by = by;
    }
}

static Ps run_dma(Sim *s, Core *c, uint32_t pc, const FlowItem *in, Ps trigger) {
    const Price *p = &c->price[pc];
    c->now.free[in->engine] = ps_add(trigger, ps_times(p->busy, s->times));
    c->by.free[in->engine] = s->me;
    Ps begin = ps_add(trigger, p->latency);
    hold_run(s, &begin, c->now.queue[in->queue], CLOCK_QUEUE, c->by.queue[in->queue]);
    s->link.serve = begin;
    Ps end = take_dma_engines(s, c, p, begin);
    end = take_hbm(s, begin, p->hbm, end);
    c->now.queue[in->queue] = ps_add(begin, s->dma_issue);
    c->by.queue[in->queue] = s->me;
    note_busy(s, c, pc, p->track, begin, end);
    return ps_add(end, s->dma_done);
}

// It is the pair's, and both come here.
static bool is_half(const Sim *s) { return s->ncores > 1 && !s->apart; }

// Its bytes go over each kind of links behind those of others, of the other core too; latency before them does not hold these up.
// The DMA engines move them meanwhile, to and from HBM: at the links' pace, or in one piece where HBM is no quicker than these.
static Ps take_links(Sim *s, Ps begin, const Price *p) {
    bool half = is_half(s);
    Ps end = ps_add(begin, ps_times(p->busy, s->times)), at = end, from = -1;
    for (int i = 0; i < LINK_COUNT; i++)
        at -= ps_times(p->link[i], s->times);
    for (int i = 0; i < LINK_COUNT; i++) {
        if (!p->link[i])
            continue;
        if (s->links[i] > at)
            s->link.serve = s->links[i], s->link.serve_by = s->links_by[i], at = s->links[i];
        from = from < 0 ? at : from;
        at = s->links[i] = ps_add(at, ps_times(half ? p->link[i] / 2 : p->link[i], s->times));
        s->links_by[i] = s->me;
    }
    end = ps_max(at, end);
    Ps hbm = half ? p->hbm / 2 : p->hbm, work[RING_OF] = {[RING_DMA] = ps_times(half ? p->dma / 2 : p->dma, s->times)};
    bool paced = from >= 0 && ps_times(hbm, s->times) < end - from;
    work[RING_HBM] = paced ? ps_times(hbm, s->times) : 0;
    end = from < 0 ? end : rings_take(s, from, end, work, s->link.issue);
    return paced ? end : take_hbm(s, begin, hbm, end);
}

// A collective runs on its own cores, in the order of its queue, beside everything else: other queues' too, where links differ. It
// shares the DMA engines and HBM.
static Ps run_collective(Sim *s, Core *c, uint32_t pc, const FlowItem *in, Ps trigger) {
    const Price *p = &c->price[pc];
    c->now.free[in->engine] = ps_add(trigger, s->control_ps);
    c->by.free[in->engine] = s->me;
    Ps begin = ps_add(trigger, s->control_ps);
    hold_run(s, &begin, c->now.queue[in->queue], CLOCK_QUEUE, c->by.queue[in->queue]);
    s->link.serve = begin;
    Ps end = take_links(s, begin, p);
    s->totals.comm = ps_add(s->totals.comm, ps_max(end - ps_max(begin, s->comm_until), 0));
    s->comm_until = ps_max(s->comm_until, end);
    c->now.queue[in->queue] = end;
    c->by.queue[in->queue] = s->me;
    note_busy(s, c, pc, p->track, begin, end);
    return end;
}

// How long a product takes now: the current limiter halves the rate after a pause.
static Ps matmul_busy(Sim *s, Core *c, const Price *p, Ps begin) {
    if (!s->pe_ramp)
        return p->busy;
    if (begin - c->now.pe_last > s->pe_rearm)
        c->now.pe_cold = ps_add(begin, s->pe_ramp);
    Ps busy = p->busy;
    if (begin < c->now.pe_cold)
        busy = (Ps)((double)busy * s->chip->pe_cold_factor);
    c->now.pe_last = ps_add(begin, busy);
    return busy;
}

static Ps take_ports(Sim *s, Core *c, const Price *p, Ps begin) {
    if (p->ports & PORT_SBUF)
        hold_run(s, &begin, c->now.sbuf_port, CLOCK_PORT, c->by.sbuf_port);
    if (p->ports & PORT_PSUM)
        hold_run(s, &begin, c->now.psum_port, CLOCK_PORT, c->by.psum_port);
    for (int b = 0; b < PSUM_BANKS; b++)
        if (p->banks >> b & 1)
            hold_run(s, &begin, c->now.psum_bank[b], CLOCK_PORT, c->by.psum_bank[b]);
    return begin;
}

static Ps run_engine(Sim *s, Core *c, uint32_t pc, const FlowItem *in, Ps begin) {
    const Price *p = &c->price[pc];
    int cost = in->cost;
    Ps busy = p->busy, extra = 0;
    if (p->act_set != ACT_NO_SET && p->act_set != c->act_set) {
        extra = s->act_load;
        c->act_set = p->act_set;
    }
    if (p->ports || p->banks)
        begin = take_ports(s, c, p, begin);
    if (cost == COST_MATMUL)
        busy = matmul_busy(s, c, p, begin);
    s->link.serve = begin;
    Ps end = take_hbm(s, begin, p->hbm, ps_add(begin, ps_add(ps_times(busy, s->times), extra)));
    if (p->ports & PORT_SBUF)
        c->now.sbuf_port = end, c->by.sbuf_port = s->me;
    if (p->ports & PORT_PSUM)
        c->now.psum_port = end, c->by.psum_port = s->me;
    for (int b = 0; b < PSUM_BANKS; b++)
        if (p->banks >> b & 1)
            c->now.psum_bank[b] = end, c->by.psum_bank[b] = s->me;
    if (cost == COST_LDWEIGHTS)
        c->now.weights = end, c->by.weights = s->me;
    else
        c->now.free[in->engine] = end, c->by.free[in->engine] = s->me;
    if (cost == COST_MATMUL)
        c->now.matmul = begin, c->by.matmul = s->me;
    note_busy(s, c, pc, p->track, begin, end);
    return ps_max(end, ps_add(begin, ps_add(p->latency, extra)));
}

static void signal_own(Sim *s, Core *c, const IsaInst *in, Ps begin, Ps done) {
    OwnSem *o = &c->own[in->upd_sem - 1];
    Pending p = {in->upd_op & UPD_AT_READ ? begin : done, in->upd_op, in->upd_val, s->me};
    VEC_PUSH(s->arena, &o->pending, p);
    for (uint32_t k = o->pending.n - 1; k && o->pending.at[k - 1].when > p.when; k--) {
        o->pending.at[k] = o->pending.at[k - 1];
        o->pending.at[k - 1] = p;
    }
    own_apply(o, begin);
}

static void run_inst(Sim *s, Core *c, const FlowItem *in, Ps begin) {
    uint32_t pc = in->pc;
    const Price *p = &c->price[pc];
    s->out->simulated++;
    uint64_t times = s->times = c->seq[in->engine].times;
    Bound bound = c->seq[in->engine].bound;
    s->link = (ClockLink){.issue = begin, .issue_by = bound.by, .issue_cause = bound.cause,
                          .begin_by = CLOCK_NOBODY, .serve_by = CLOCK_NOBODY};
    s->out->cut |= s->want_events && s->out->events.n == EVENTS_MAX;
    s->me = s->want_events && !s->out->cut ? s->out->events.n : CLOCK_NOBODY;
    if (counts(s, c)) {
        s->totals.insts[p->track] = add_u64(s->totals.insts[p->track], times);
        s->totals.flops += p->flops * (double)times;
        s->totals.hbm_bytes += p->hbm_bytes * (double)times;
        s->totals.link_bytes += p->link_bytes * (double)times;
    }
    int cost = in->cost;
    if (in->meets)
        c->passed++;
    Ps done = cost == COST_DMA          ? run_dma(s, c, pc, in, begin)
              : cost == COST_COLLECTIVE ? run_collective(s, c, pc, in, begin)
                                        : run_engine(s, c, pc, in, begin);
    for (int w = 0; w < 2; w++)
        if (in->wait_sem[w] != SEM_NONE && in->wait_sem[w] >= SEM_USER && !(in->wait_sem[w] & SEM_BACK))
            own_apply(&c->own[in->wait_sem[w] - SEM_USER], begin);
    if (in->signals)
        signal_own(s, c, &c->flow.art->code[pc], begin, done);
    bool queued = cost == COST_DMA || cost == COST_COLLECTIVE || cost == COST_STREAM;
    count_on(s, c, queued ? ENG_COUNT + in->queue : in->engine, done);
    s->link.done = done;
    if (s->want_links && s->me != CLOCK_NOBODY)
        VEC_PUSH(s->arena, &s->out->links, s->link);
}

// What a transfer changed for others that are about to use its queue.
static void forget_ready(Core *c, const FlowItem *item) {
    for (int e = 0; e < c->flow.nseqs; e++) {
        const FlowItem *other = &c->flow.items.at[c->seq[e].item];
        if (e != item->engine && c->seq[e].ready >= 0 && other->queue == item->queue &&
            (other->cost == COST_DMA || other->cost == COST_COLLECTIVE))
            c->seq[e].ready = SEQ_UNKNOWN;
    }
}

// --- the sequencers ------------------------------------------------------------------------------

// Goes over loop ends, which take no time but the loop instruction's own, to the next instruction.
static void seq_settle(Sim *s, Core *c, int e) {
    Seq *q = &c->seq[e];
    for (;;) {
        q->item = c->flow.next[e][q->item];
        const FlowItem *item = &c->flow.items.at[q->item];
        if (item->kind == ITEM_STOP) {
            q->ready = SEQ_STOP;
            return;
        }
        if (item->kind == ITEM_INST || item->kind == ITEM_FENCE) {
            q->ready = item->kind == ITEM_FENCE ? SEQ_FENCE : SEQ_UNKNOWN;
            return;
        }
        const FlowRegion *loop = &c->flow.regions.at[item->region];
        if (item->pc != UINT32_MAX) {
            c->by.free[e] = c->now.fence > c->now.free[e] ? c->by.fence : c->by.free[e];
            c->now.free[e] = ps_add(ps_max(c->now.free[e], c->now.fence), s->control_ps);
        }
        if (item->kind == ITEM_BEGIN) {
            q->iter[loop->depth] = 0;
            q->once[loop->depth] = s->out->simulated > s->steps_max && loop->trips > 1;
            q->outer_times[loop->depth] = q->times;
            if (q->once[loop->depth]) {
                q->times = times_u64(q->times, loop->trips);
                s->out->approximate = true;
            }
            steady_enter(c, item->region);
            q->item = loop->trips ? q->item + 1 : loop->end + 1;
            continue;
        }
        uint32_t r = item->region;
        bool again = ++q->iter[loop->depth] < loop->trips && !q->once[loop->depth];
        q->times = again ? q->times : q->outer_times[loop->depth];
        q->item = again ? loop->begin + 1 : q->item + 1;
        if (again) {
            q->ready = SEQ_UNKNOWN;
            steady_iteration(s, c, r);
        }
    }
}

static bool at_fence(const Core *c) {
    for (int e = 0; e < c->flow.nseqs; e++)
        if (c->seq[e].ready != SEQ_FENCE || c->seq[e].item != c->seq[0].item)
            return false;
    return true;
}

static void run_fence(Sim *s, Core *c) {
    const FlowItem *item = &c->flow.items.at[c->seq[0].item];
    const IsaInst *in = &c->flow.art->code[item->pc];
    bool is_barrier = isa_rows[in->op].cost == COST_BARRIER;
    Ps begin = begin_of(s, c, item, &c->seq[in->engine]);
    if (is_barrier || begin < 0)
        hold(&begin, &c->seq[in->engine].bound, c->done, CLOCK_ALL, c->by.done);
    run_inst(s, c, item, begin);
    c->now.fence = c->now.free[in->engine];
    c->by.fence = c->by.free[in->engine];
    for (int i = 0; is_barrier && i < SEM_USER; i++)
        c->sem[i].n = c->sem[i].base = c->sem[i].at.n = c->sem[i].by.n = 0;
    for (int i = 0; is_barrier && i < USER_SEMS; i++)
        c->own[i].value = c->own[i].changed = c->own[i].pending.n = 0;
    for (int e = 0; e < c->flow.nseqs; e++)
        c->seq[e].item++;
    for (int e = 0; e < c->flow.nseqs; e++)
        seq_settle(s, c, e);
}

// No sequencer can go on: a wait counts on instructions of another path, since branches are not
// followed. The first instruction in program order then waits for everything that has begun.
static bool unblock(const Sim *s, Core **core, int *engine) {
    *core = NULL;
    for (uint32_t k = 0; k < s->ncores; k++)
        for (int e = 0; e < s->core[k]->flow.nseqs; e++) {
            Core *c = s->core[k];
            if (c->seq[e].ready == SEQ_WAITS && (!*core || c->seq[e].item < (*core)->seq[*engine].item)) {
                *core = c;
                *engine = e;
            }
        }
    if (*core) {
        Seq *q = &(*core)->seq[*engine];
        q->ready = (*core)->now.fence;
        q->bound = (Bound){CLOCK_FENCE, (*core)->by.fence};
        hold(&q->ready, &q->bound, (*core)->done, CLOCK_ALL, (*core)->by.done);
    }
    return *core != NULL;
}

// The sequencer whose instruction can begin first; false when none can.
static bool pick(Sim *s, Core **core, int *engine) {
    Ps best = PS_MAX;
    *core = NULL;
    for (uint32_t k = 0; k < s->ncores; k++) {
        Core *c = s->core[k];
        for (int e = 0; e < c->flow.nseqs; e++) {
            Seq *q = &c->seq[e];
            if (q->ready == SEQ_UNKNOWN ||
                (q->ready == SEQ_WAITS && (q->wait_sem < 0 || c->sem[q->wait_sem].n >= q->wait_n))) {
                Ps t = begin_of(s, c, &c->flow.items.at[q->item], q);
                q->ready = t < 0 ? SEQ_WAITS : t;
            }
            if (q->ready >= 0 && (!*core || q->ready < best)) {
                best = q->ready;
                *core = c;
                *engine = e;
            }
        }
    }
    return *core != NULL;
}

static void run_all(Sim *s) {
    for (uint32_t k = 0; k < s->ncores; k++)
        for (int e = 0; e < s->core[k]->flow.nseqs; e++)
            seq_settle(s, s->core[k], e);
    for (;;) {
        Core *c;
        int e = 0;
        if (!pick(s, &c, &e)) {
            bool fenced = false;
            for (uint32_t k = 0; k < s->ncores; k++)
                if (at_fence(s->core[k])) {
                    run_fence(s, s->core[k]);
                    fenced = true;
                }
            if (fenced)
                continue;
            if (!unblock(s, &c, &e))
                return;
        }
        Seq *q = &c->seq[e];
        const FlowItem *item = &c->flow.items.at[q->item];
        run_inst(s, c, item, q->ready);
        if (item->cost == COST_DMA || item->cost == COST_COLLECTIVE)
            forget_ready(c, item);
        q->item++;
        seq_settle(s, c, e);
    }
}

// --- entry points --------------------------------------------------------------------------------

static void set_constants(Sim *s, const ChipFile *c) {
    s->sem_ps = (Ps)(c->sem_ns * 1000);
    s->dma_issue = (Ps)(c->dma_issue_ns * 1000);
    s->dma_done = (Ps)(c->dma_done_ns * 1000);
    s->dma_gap = (Ps)(c->dma_gap_ns * 1000);
    s->chain[ENG_VECTOR] = (Ps)(c->vector_chain_ns * 1000);
    s->chain[ENG_SCALAR] = (Ps)(c->scalar_chain_ns * 1000);
    s->control_ps = (Ps)(c->control_ns * 1000);
    s->pe_ramp = (Ps)(c->pe_ramp_ns * 1000);
    s->pe_rearm = (Ps)(c->pe_rearm_ns * 1000);
    s->act_load = (Ps)(c->act_table_ns * 1000);
    s->dma_engines = (uint32_t)c->dma_engines;
    s->dma_share = (uint32_t)c->dma_engine_partitions;
    s->dma_depth = (uint32_t)c->dma_queue_depth;
    rings_init(s);
    assert(s->dma_engines >= 1 && s->dma_engines <= DMA_ENGINES_MAX);
}

static void run(Sim *s, const Artifact *art, Clock *out) {
    Arena *a = s->arena;
    set_constants(s, s->chip);
    *out = (Clock){0};
    s->out = out;
    for (uint32_t k = 0; k < s->ncores; k++) {
        Core *c = s->core[k] = ARENA_NEW(a, Core);
        const Artifact *prog = k && s->apart ? art->peer : art;
        *c = (Core){.act_set = ACT_NO_SET};
        memset(&c->by, 0xff, sizeof c->by); // CLOCK_NOBODY
        memset(c->latest, 0xff, sizeof c->latest);
        c->now.pe_last = -PS_MAX / 2;
        for (int e = 0; e < ISA_SEQS; e++)
            c->seq[e].times = 1;
        if (k && !s->apart) { // both run the same
            c->flow = s->core[0]->flow;
            c->price = s->core[0]->price;
            continue;
        }
        flow_make(a, prog, &s->trips, &c->flow);
        Price *price = ARENA_NEWN(a, Price, prog->ncode + 1u);
        price_program(a, s->chip, prog->kerns, prog->nkerns, prog->code, prog->ncode, price);
        c->price = price;
    }
    out->price = s->core[0]->price;
    if (s->apart)
        out->peer_price = s->core[1]->price, out->peer_flow = &s->core[1]->flow;
    for (uint32_t k = 0; k < s->ncores; k++)
        s->core[k]->steady = ARENA_NEWN(a, Steady, s->core[k]->flow.regions.n + 1u);
    const Flow *f = out->flow = &s->core[0]->flow;
    for (uint32_t i = 0; i < f->regions.n; i++) {
        out->unknown_loops += f->regions.at[i].unknown, out->counted_loops += f->regions.at[i].counted;
        out->passed += f->regions.at[i].seldom && !f->regions.at[i].trips;
    }
    run_all(s);
    Ps end = 0;
    Bound last = {CLOCK_NONE, CLOCK_NOBODY};
    for (uint32_t k = 0; k < s->ncores; k++) {
        hold(&end, &last, s->core[k]->done, CLOCK_ALL, s->core[k]->by.done);
        hold(&end, &last, s->core[k]->now.fence, CLOCK_FENCE, s->core[k]->by.fence);
    }
    out->last_event = last.by;
    for (uint32_t k = 0; k < s->ncores; k++)
        memcpy(out->told_ps[k], s->core[k]->told, sizeof out->told_ps[k]);
    out->total_ns = (double)end * 1e-3;
    for (int i = 0; i < CLOCK_TRACKS; i++) {
        out->busy_ns[i] = (double)s->totals.busy[i] * 1e-3 / (s->apart ? 2 : 1);
        out->insts[i] = s->totals.insts[i];
    }
    out->comm_ns = (double)s->totals.comm * 1e-3;
    out->flops = s->totals.flops;
    out->hbm_bytes = s->totals.hbm_bytes;
    out->link_bytes = s->totals.link_bytes;
}

void clock_run(Ctx *ctx, Arena *a, const Artifact *art, const ChipFile *chip, const ClockOptions *opt,
               Clock *out) {
    (void)ctx; // the arena raises what can go wrong: no memory
    ClockOptions none = {0};
    opt = opt ? opt : &none;
    ChipFile pair = *chip;
    bool apart = artifact_is_shared(art), two = opt->cores == 2 || apart;
    if (two) // together they have about twice the HBM of one
        pair.hbm_bw_core *= 2 * chip->hbm_shared;
    if (two || art->peer) { // and twice its links, and DMA engines for them
        pair.collective_dma /= 2;
        pair.link_bw *= 2, pair.link_step_bw *= 2, pair.link_mesh_bw *= 2, pair.link_chip_bw *= 2;
        pair.host_cores /= 2, pair.cores_per_chip /= 2, pair.network_bw *= 2;
    }
    Sim s = {.arena = a, .chip = &pair, .want_events = opt->events || opt->stalls, .want_links = opt->stalls, .stepwise = opt->stepwise,
             .ncores = two ? 2 : 1, .apart = apart, .steps_max = opt->steps_max ? opt->steps_max : STEPS_MAX,
             .trips = {opt->trips, opt->trips ? opt->ntrips : 0, opt->trips_else ? opt->trips_else : 1}};
    run(&s, art, out);
}

// --- how long loops were -----------------------------------------------------------------------------

// A loop that ends with a jump has its test inside and went back once for each iteration; one that ends with a branch, once
// less each time it was reached. A loop instruction counts its entries, its end the way back.
static double iterations(const Artifact *art, const ArtLoop *l, const uint64_t *counts, double reached) {
    double n = 0;
    for (uint32_t pc = l->begin; pc < l->end; pc++) {
        const IsaInst *in = artifact_shape(art, pc);
        bool back = (in->op == ISA_JUMP || in->op == ISA_BRANCH) && (uint32_t)in->imm == l->begin;
        n += back ? (double)counts[pc] : 0;
    }
    bool after = l->end > l->begin && artifact_shape(art, l->end - 1)->op == ISA_BRANCH;
    return n + (after ? reached : 0);
}

uint32_t clock_trips(Arena *a, const Artifact *art, const uint64_t *counts, uint64_t **out) {
    uint32_t unknown = flow_unknown(art), next = 0, k = 0;
    *out = ARENA_NEWN(a, uint64_t, unknown + 1u);
    Flow f;
    flow_make(a, art, NULL, &f);
    const ArtLoop *loops = artifact_loops_sorted(art, a);
    double *total = ARENA_NEWN(a, double, f.regions.n + 1u); // iterations of a region in the whole run
    for (uint32_t r = 0; r < f.regions.n; r++) {
        const FlowRegion *g = &f.regions.at[r];
        uint32_t pc = f.items.at[g->begin].pc;
        double reached = g->parent == NO_REGION ? 1 : total[g->parent];
        const ArtLoop *l = pc == UINT32_MAX ? &loops[next++] : NULL;
        total[r] = g->seldom   ? (double)counts[l->end - 1] // its way out
                   : !g->unknown ? reached * (double)g->trips
                   : l         ? iterations(art, l, counts, reached)
                               : (double)counts[pc] + (double)counts[art->code[pc].imm];
        if (g->unknown || g->seldom)
            (*out)[k++] = reached > 0 ? (uint64_t)(total[r] / reached + 0.5) : 0;
    }
    return k;
}
