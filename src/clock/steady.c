// SPDX-License-Identifier: Apache-2.0
// steady.c — loops that repeat themselves are added at once, to the picosecond.
//
// When the slowest sequencer begins an iteration, everything the future depends on is taken down as
// seen from there: times relative to the earliest moment anything can still begin (what is over
// counts as now), positions and counts relative to the iteration. Is that the same as it was at an
// earlier iteration, all that follows is the same too, and as many periods are added as fit before
// the fastest sequencer would leave the loop. Times are whole picoseconds, so "the same" is exact.
#include "clock/sim.h"

#define SNAPS_MAX 256         // kept per loop; a longer period is not found
#define AHEAD_MAX 2048        // completions after the earliest begin, of all engines
#define ITERATIONS_MAX 65536u // of one loop; then the last one is taken as steady

typedef struct Hasher {
    uint64_t a, b;
} Hasher;

static void mix(Hasher *h, uint64_t v) {
    h->a = (h->a ^ v) * 0x9e3779b97f4a7c15u;
    h->a ^= h->a >> 29;
    h->b = (h->b + v) * 0xd1342543de82ef95u;
    h->b ^= h->b >> 31;
}

void steady_enter(Sim *s, uint32_t r) {
    s->steady[r].snaps.n = 0;
    s->steady[r].last_iter = 0;
    s->steady[r].given_up = false;
}

// The earliest moment anything can begin.
static Ps horizon(const Core *c) {
    Ps t = PS_MAX;
    for (int e = 0; e < ENG_COUNT; e++)
        if (c->seq[e].ready != SEQ_STOP) {
            Ps free = e == ENG_TENSOR && c->now.weights < c->now.free[e] ? c->now.weights : c->now.free[e];
            t = free < t ? free : t;
        }
    return ps_max(t, c->now.fence);
}

static bool inside(const FlowRegion *loop, const Seq *q) {
    return q->item >= loop->begin && q->item <= loop->end;
}

// The iteration all sequencers of the loop have begun; false when one is outside of this run of it.
static bool slowest(const Core *c, const FlowRegion *loop, uint64_t *least, uint64_t *most) {
    *least = UINT64_MAX;
    *most = 0;
    const uint64_t *outer = NULL;
    for (int e = 0; e < ENG_COUNT; e++) {
        const Seq *q = &c->seq[e];
        if (!(loop->engines >> e & 1))
            continue;
        if (!inside(loop, q) || (outer && memcmp(outer, q->iter, loop->depth * sizeof *outer)))
            return false;
        outer = q->iter;
        uint64_t i = q->iter[loop->depth];
        *least = i < *least ? i : *least;
        *most = i > *most ? i : *most;
    }
    return true;
}

static void take_times(const Sim *s, const Core *c, Ps zero, Hasher *h) {
    Ps all[TIMES_COUNT];
    memcpy(all, &c->now, sizeof all);
    size_t pe = offsetof(Times, pe_cold) / sizeof(Ps);
    for (size_t i = 0; i < TIMES_COUNT; i++) {
        Ps past = i >= pe ? -s->pe_rearm - 1 : 0; // how long ago a product ended still matters
        mix(h, (uint64_t)ps_max(all[i] - zero, past));
    }
    mix(h, (uint64_t)ps_max(s->hbm - zero, 0));
    mix(h, (uint64_t)ps_max(c->done - zero, 0));
    mix(h, c->act_set);
}

static void take_seqs(const Core *c, const FlowRegion *loop, uint64_t iter, Hasher *h) {
    for (int e = 0; e < ENG_COUNT; e++) {
        const Seq *q = &c->seq[e];
        bool takes_part = loop->engines >> e & 1;
        mix(h, q->item);
        for (uint32_t r = c->flow.items.at[q->item].region; r != NO_REGION; r = c->flow.regions.at[r].parent) {
            uint32_t depth = c->flow.regions.at[r].depth;
            if (takes_part && depth == loop->depth)
                break;
            mix(h, q->iter[depth]);
        }
        if (takes_part)
            mix(h, q->iter[loop->depth] - iter);
    }
}

static uint64_t per_iter(const FlowRegion *loop, int sem) {
    return loop->has_barrier ? 0 : loop->per_iter[sem];
}

// False when an engine has run far ahead of the others: it will run on, nothing repeats yet.
static bool take_sems(const Sim *s, const Core *c, const FlowRegion *loop, uint64_t iter, Ps zero, Hasher *h) {
    uint32_t open = 0;
    for (int i = 0; i < SEM_USER; i++) {
        const SemLog *log = &c->sem[i];
        mix(h, log->n - iter * per_iter(loop, i));
        for (uint64_t k = log->n; k > log->base; k--) { // backwards as far as it can still hold something back
            Ps t = log->at.at[k - log->base - 1] + s->sem_ps - zero;
            if (t <= 0)
                break;
            if (open++ == AHEAD_MAX)
                return false;
            mix(h, (uint64_t)t);
        }
    }
    for (int i = 0; i < USER_SEMS; i++) {
        const OwnSem *o = &c->own[i];
        mix(h, (uint64_t)o->value);
        mix(h, (uint64_t)ps_max(o->changed + s->sem_ps - zero, 0));
        for (uint32_t k = 0; k < o->pending.n; k++) {
            mix(h, (uint64_t)(o->pending.at[k].when - zero));
            mix(h, (uint64_t)o->pending.at[k].op << 16 | o->pending.at[k].value);
        }
    }
    return true;
}

// Absolute waits inside the loop name fixed counts: those must be over, or the next iteration differs.
static bool absolutes_over(const Sim *s, const Core *c, const FlowRegion *loop, Ps zero) {
    for (int i = 0; i < SEM_USER && !loop->has_barrier; i++) {
        uint64_t n = loop->absolute[i];
        const SemLog *log = &c->sem[i];
        if (n && (log->n < n || (n > log->base && log->at.at[n - log->base - 1] + s->sem_ps > zero)))
            return false;
    }
    return true;
}

static void add_totals(Totals *t, const Totals *from, uint64_t n) {
    for (int i = 0; i < CLOCK_TRACKS; i++) {
        t->busy[i] = ps_add(t->busy[i], ps_times(t->busy[i] - from->busy[i], n));
        t->insts[i] = add_u64(t->insts[i], times_u64(t->insts[i] - from->insts[i], n));
    }
    t->flops += (t->flops - from->flops) * (double)n;
    t->hbm_bytes += (t->hbm_bytes - from->hbm_bytes) * (double)n;
    t->link_bytes += (t->link_bytes - from->link_bytes) * (double)n;
}

static void shift(Sim *s, Core *c, const FlowRegion *loop, Ps by, uint64_t iterations) {
    Ps all[TIMES_COUNT];
    memcpy(all, &c->now, sizeof all);
    for (size_t i = 0; i < TIMES_COUNT; i++)
        all[i] = ps_add(all[i], by);
    memcpy(&c->now, all, sizeof all);
    s->hbm = ps_add(s->hbm, by);
    c->done = ps_add(c->done, by);
    for (int i = 0; i < SEM_USER; i++) {
        SemLog *log = &c->sem[i];
        uint64_t counts = times_u64(per_iter(loop, i), iterations);
        for (uint32_t k = 0; k < log->at.n; k++)
            log->at.at[k] = ps_add(log->at.at[k], by);
        log->n = add_u64(log->n, counts);
        log->base = add_u64(log->base, counts);
    }
    for (int i = 0; i < USER_SEMS; i++) {
        c->own[i].changed = ps_add(c->own[i].changed, by);
        for (uint32_t k = 0; k < c->own[i].pending.n; k++)
            c->own[i].pending.at[k].when = ps_add(c->own[i].pending.at[k].when, by);
    }
    for (int e = 0; e < ENG_COUNT; e++) {
        if (loop->engines >> e & 1)
            c->seq[e].iter[loop->depth] += iterations;
        if (c->seq[e].ready >= 0)
            c->seq[e].ready = SEQ_UNKNOWN;
    }
}

// A sequencer that takes no part must not get going during the iterations that are added: it is at the
// end, at a fence, or waits for more than they will count.
static bool stands(const Core *c, const FlowRegion *loop, int e, uint64_t iterations) {
    const Seq *q = &c->seq[e];
    if (q->ready == SEQ_STOP || q->ready == SEQ_FENCE)
        return true;
    const FlowItem *item = &c->flow.items.at[q->item];
    if (item->kind != ITEM_INST)
        return false;
    for (int w = 0; w < 2; w++) {
        int sem = item->wait_sem[w] & ~SEM_BACK;
        if (item->wait_sem[w] == SEM_NONE || sem >= SEM_USER)
            continue;
        uint64_t want = item->wait_val[w];
        if (item->wait_sem[w] & SEM_BACK) {
            uint64_t before = flow_before(&c->flow, item, w, sem, q->iter);
            want = before > want ? before - want : 0;
        }
        if (want > add_u64(c->sem[sem].n, times_u64(per_iter(loop, sem), iterations)))
            return true;
    }
    return false;
}

static void jump(Sim *s, Core *c, const FlowRegion *loop, const Snap *from, Ps now, uint64_t iter,
                 uint64_t most) {
    uint64_t period = iter - from->iter, left = loop->trips - 1 - most, n = left / period;
    for (int e = 0; n && e < ENG_COUNT; e++)
        if (!(loop->engines >> e & 1) && !stands(c, loop, e, n * period))
            return;
    if (!n)
        return;
    add_totals(&s->totals, &from->totals, n);
    Ps by = ps_times(now - from->at, n);
    shift(s, c, loop, by, n * period);
    if (!s->want_events)
        return;
    ClockJump j = {(double)now * 1e-3, (double)ps_add(now, by) * 1e-3, from->event, s->out->events.n, n, now - from->at, {0}};
    for (int t = 0; t < CLOCK_TRACKS; t++) // a track without events in the period goes on standing still
        if (c->latest[t] != CLOCK_NOBODY && c->latest[t] >= from->event) {
            j.late[t] = c->told[t] - from->told[t] - j.period;
            c->told[t] = ps_add(c->told[t], by);
        }
    VEC_PUSH(s->arena, &s->out->jumps, j);
}

void steady_iteration(Sim *s, Core *c, uint32_t r) {
    const FlowRegion *loop = &c->flow.regions.at[r];
    Steady *st = &s->steady[r];
    uint64_t iter, most;
    if (s->stepwise || s->ncores > 1 || st->given_up || !slowest(c, loop, &iter, &most) ||
        iter <= st->last_iter)
        return;
    st->last_iter = iter;
    Ps zero = horizon(c);
    bool tired = iter >= ITERATIONS_MAX || s->out->simulated > s->steps_max;
    if (!tired && !absolutes_over(s, c, loop, zero))
        return;
    Hasher h = {r + 1, iter ? 1 : 0};
    take_times(s, c, zero, &h);
    take_seqs(c, loop, iter, &h);
    if (!take_sems(s, c, loop, iter, zero, &h) && !tired)
        return;
    for (uint32_t i = st->snaps.n; i-- > 0;) {
        const Snap *old = &st->snaps.at[i];
        bool equal = old->hash[0] == h.a && old->hash[1] == h.b;
        if (!equal && !tired)
            continue;
        s->out->approximate |= !equal;
        jump(s, c, loop, old, zero, iter, most);
        st->given_up = true; // what is left is shorter than a period
        return;
    }
    Snap snap = {{h.a, h.b}, iter, zero, s->totals, s->out->events.n, {0}};
    memcpy(snap.told, c->told, sizeof snap.told);
    if (st->snaps.n == SNAPS_MAX) { // keep the newer half
        memmove(st->snaps.at, st->snaps.at + SNAPS_MAX / 2, SNAPS_MAX / 2 * sizeof snap);
        st->snaps.n = SNAPS_MAX / 2;
    }
    VEC_PUSH(s->arena, &st->snaps, snap);
}
