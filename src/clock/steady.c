// SPDX-License-Identifier: Apache-2.0
// steady.c — loops that repeat themselves are added at once, to the picosecond.
//
// When the slowest sequencer of a core begins an iteration, everything the future depends on is taken down as seen from there: times
// relative to the earliest moment anything can still begin (what is over counts as now), positions and counts relative to the
// iteration. Is that the same as it was at an earlier iteration, all that follows is the same too, and as many periods are added as
// fit before the fastest sequencer would leave the loop. Times are whole picoseconds, so "the same" is exact.
//
// Of two cores both are taken down, with how far they have met. The other one has come forward too, in a loop of its own, or it
// stands: a period is a number of iterations of the one loop and a number, maybe none, of the other.
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

void steady_enter(Core *c, uint32_t r) {
    c->steady[r].snaps.n = 0;
    c->steady[r].last_iter = 0;
    c->steady[r].given_up = false;
}

static const Core *other_of(const Sim *s, const Core *c) { return s->ncores < 2 ? NULL : s->core[s->core[0] == c]; }

// It goes on only after another instruction that has not begun: what its semaphore counts, or the other core's arrival.
static bool waits(const Sim *s, const Core *c, const Seq *q) {
    const Core *other = other_of(s, c);
    if (q->ready != SEQ_WAITS)
        return false;
    if (q->wait_sem >= 0)
        return c->sem[q->wait_sem].n < q->wait_n;
    return other && c->flow.items.at[q->item].meets && c->met.n > c->passed && other->met.n <= c->passed;
}

// The earliest moment anything can begin on a core.
static Ps core_horizon(const Sim *s, const Core *c) {
    Ps t = PS_MAX;
    for (int e = 0; e < c->flow.nseqs; e++) {
        const Seq *q = &c->seq[e];
        const FlowItem *item = &c->flow.items.at[q->item];
        if (q->ready == SEQ_STOP || waits(s, c, q))
            continue;
        int doer = q->ready == SEQ_FENCE && item->kind == ITEM_FENCE ? item->engine : e;
        Ps free = c->now.free[doer];
        if (doer == ENG_TENSOR && c->now.weights < free)
            free = c->now.weights;
        t = free < t ? free : t;
    }
    return ps_max(t, c->now.fence);
}

static Ps horizon(const Sim *s) {
    Ps t = PS_MAX;
    for (uint32_t k = 0; k < s->ncores; k++) {
        Ps here = core_horizon(s, s->core[k]);
        t = here < t ? here : t;
    }
    return t;
}

// --- where a core is -----------------------------------------------------------------------------

typedef struct Spot { // a core in one of its loops; NO_REGION: in none
    uint32_t region;
    const FlowRegion *loop;
    uint64_t iter; // all its sequencers have begun that iteration,
    uint64_t most; // and the first of them this one
} Spot;

static bool inside(const FlowRegion *loop, const Seq *q) {
    return q->item >= loop->begin && q->item <= loop->end;
}

static bool takes_part(const Spot *p, int e) { return p->loop && p->loop->engines >> e & 1; }

// False when a sequencer of the loop is outside of this run of it.
static bool spot_in(const Core *c, uint32_t r, Spot *p) {
    const uint64_t *outer = NULL;
    *p = (Spot){r, &c->flow.regions.at[r], UINT64_MAX, 0};
    for (int e = 0; e < c->flow.nseqs; e++) {
        const Seq *q = &c->seq[e];
        if (!takes_part(p, e))
            continue;
        if (!inside(p->loop, q) || (outer && memcmp(outer, q->iter, p->loop->depth * sizeof *outer)))
            return false;
        outer = q->iter;
        uint64_t i = q->iter[p->loop->depth];
        p->iter = i < p->iter ? i : p->iter;
        p->most = i > p->most ? i : p->most;
    }
    return true;
}

// The innermost loop any sequencer of a core is in.
static uint32_t innermost(const Core *c) {
    uint32_t found = NO_REGION;
    for (int e = 0; e < c->flow.nseqs; e++) {
        uint32_t r = c->flow.items.at[c->seq[e].item].region;
        if (r != NO_REGION && (found == NO_REGION || c->flow.regions.at[r].depth > c->flow.regions.at[found].depth))
            found = r;
    }
    return found;
}

// The loop of the other core that goes with one at this depth: programs shared by two have the same loops around them. Where one
// core's is deeper, it is found from that side.
static void beside(const Core *other, uint32_t depth, Spot *p) {
    for (uint32_t r = innermost(other); r != NO_REGION; r = other->flow.regions.at[r].parent)
        if (other->flow.regions.at[r].depth <= depth && spot_in(other, r, p))
            return;
    *p = (Spot){.region = NO_REGION};
}

// --- the state -----------------------------------------------------------------------------------

static void take_times(const Sim *s, const Core *c, Ps zero, Hasher *h) {
    Ps all[TIMES_COUNT];
    memcpy(all, &c->now, sizeof all);
    size_t pe = offsetof(Times, pe_cold) / sizeof(Ps);
    for (size_t i = 0; i < TIMES_COUNT; i++) {
        Ps past = i >= pe ? -s->pe_rearm - 1 : 0; // how long ago a product ended still matters
        mix(h, (uint64_t)ps_max(all[i] - zero, past));
    }
    mix(h, (uint64_t)ps_max(c->done - zero, 0));
    mix(h, c->act_set);
}

static void take_seqs(const Core *c, const Spot *p, Hasher *h) {
    for (int e = 0; e < c->flow.nseqs; e++) {
        const Seq *q = &c->seq[e];
        mix(h, q->item);
        for (uint32_t r = c->flow.items.at[q->item].region; r != NO_REGION; r = c->flow.regions.at[r].parent) {
            uint32_t depth = c->flow.regions.at[r].depth;
            if (takes_part(p, e) && depth == p->loop->depth)
                break;
            mix(h, q->iter[depth]);
        }
        if (takes_part(p, e))
            mix(h, q->iter[p->loop->depth] - p->iter);
    }
}

static uint64_t per_iter(const Spot *p, int sem) {
    return !p->loop || p->loop->has_barrier ? 0 : p->loop->per_iter[sem];
}

// False when an engine has run far ahead of the others: it will run on, nothing repeats yet.
static bool take_sems(const Sim *s, const Core *c, const Spot *p, Ps zero, Hasher *h) {
    uint32_t open = 0;
    for (int i = 0; i < SEM_USER; i++) {
        const SemLog *log = &c->sem[i];
        mix(h, log->n - p->iter * per_iter(p, i));
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

// Arrivals that the other core has not gone past yet, and this core's own.
static void take_meetings(const Sim *s, const Core *c, Ps zero, Hasher *h) {
    const Core *other = other_of(s, c);
    if (!other)
        return;
    uint64_t from = c->passed < other->passed ? c->passed : other->passed;
    mix(h, c->passed - from);
    mix(h, c->met.n - from);
    for (uint64_t k = from; k < c->met.n; k++)
        mix(h, (uint64_t)ps_max(c->met.at[k] - zero, 0));
}

// Absolute waits inside the loop name fixed counts: those must be over, or the next iteration differs.
static bool absolutes_over(const Sim *s, const Core *c, const Spot *p, Ps zero) {
    for (int i = 0; i < SEM_USER && p->loop && !p->loop->has_barrier; i++) {
        uint64_t n = p->loop->absolute[i];
        const SemLog *log = &c->sem[i];
        if (n && (log->n < n || (n > log->base && log->at.at[n - log->base - 1] + s->sem_ps > zero)))
            return false;
    }
    return true;
}

// --- adding iterations ---------------------------------------------------------------------------

static void add_totals(Totals *t, const Totals *from, uint64_t n) {
    for (int i = 0; i < CLOCK_TRACKS; i++) {
        t->busy[i] = ps_add(t->busy[i], ps_times(t->busy[i] - from->busy[i], n));
        t->insts[i] = add_u64(t->insts[i], times_u64(t->insts[i] - from->insts[i], n));
    }
    t->comm = ps_add(t->comm, ps_times(t->comm - from->comm, n));
    t->flops += (t->flops - from->flops) * (double)n;
    t->hbm_bytes += (t->hbm_bytes - from->hbm_bytes) * (double)n;
    t->link_bytes += (t->link_bytes - from->link_bytes) * (double)n;
}

static void shift(Core *c, const Spot *p, Ps by, uint64_t iterations) {
    Ps all[TIMES_COUNT];
    memcpy(all, &c->now, sizeof all);
    for (size_t i = 0; i < TIMES_COUNT; i++)
        all[i] = ps_add(all[i], by);
    memcpy(&c->now, all, sizeof all);
    c->done = ps_add(c->done, by);
    for (int i = 0; i < SEM_USER; i++) {
        SemLog *log = &c->sem[i];
        uint64_t counts = times_u64(per_iter(p, i), iterations);
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
    for (uint32_t k = 0; k < c->met.n; k++) // meetings of the iterations added need no places: both cores' are left out
        c->met.at[k] = ps_add(c->met.at[k], by);
    for (int e = 0; e < c->flow.nseqs; e++) {
        if (takes_part(p, e))
            c->seq[e].iter[p->loop->depth] += iterations;
        if (c->seq[e].ready >= 0)
            c->seq[e].ready = SEQ_UNKNOWN;
    }
}

// A sequencer that takes no part must not get going during the iterations that are added: it is at the
// end, at a fence, or waits for more than they will count. For how many iterations that holds.
static uint64_t stands(const Core *c, const Spot *p, int e) {
    const Seq *q = &c->seq[e];
    if (q->ready == SEQ_STOP || q->ready == SEQ_FENCE)
        return UINT64_MAX;
    const FlowItem *item = &c->flow.items.at[q->item];
    uint64_t most = 0;
    for (int w = 0; w < 2 && item->kind == ITEM_INST; w++) {
        int sem = item->wait_sem[w] & ~SEM_BACK;
        if (item->wait_sem[w] == SEM_NONE || sem >= SEM_USER)
            continue;
        uint64_t want = item->wait_val[w], n = c->sem[sem].n, per = per_iter(p, sem);
        if (item->wait_sem[w] & SEM_BACK) {
            uint64_t before = flow_before(&c->flow, item, w, sem, q->iter);
            want = before > want ? before - want : 0;
        }
        uint64_t here = want <= n ? 0 : per ? (want - n - 1) / per : UINT64_MAX;
        most = here > most ? here : most;
    }
    return most;
}

// How many periods fit before a core would leave its loop, or one of its sequencers that takes no part would go on. Without
// iterations in a period nothing of it has moved.
static uint64_t fitting(const Core *c, const Spot *p, uint64_t period, uint64_t n) {
    uint64_t most = period ? p->loop->trips - 1 - p->most : 0;
    for (int e = 0; period && e < c->flow.nseqs; e++) {
        uint64_t here = takes_part(p, e) ? most : stands(c, p, e);
        most = here < most ? here : most;
    }
    return period && most / period < n ? most / period : n;
}

static void tell_jump(Sim *s, const Snap *from, Ps now, Ps by, uint64_t n) {
    ClockJump j = {.from_ns = (double)now * 1e-3, .to_ns = (double)ps_add(now, by) * 1e-3, .first = from->event,
                   .event = s->out->events.n, .times = n, .period = now - from->at};
    for (uint32_t k = 0; k < s->ncores; k++)
        for (int t = 0; t < CLOCK_TRACKS; t++) { // a track without events in the period goes on standing still
            Core *c = s->core[k];
            if (c->latest[t] == CLOCK_NOBODY || c->latest[t] < from->event)
                continue;
            j.late[k][t] = c->told[t] - from->told[k][t] - j.period;
            c->told[t] = ps_add(c->told[t], by);
        }
    VEC_PUSH(s->arena, &s->out->jumps, j);
}

// False when not a single period fits.
static bool jump(Sim *s, const Spot *spots, const Snap *from, Ps now) {
    uint64_t n = UINT64_MAX;
    for (uint32_t k = 0; k < s->ncores; k++)
        n = fitting(s->core[k], &spots[k], spots[k].iter - from->iter[k], n);
    if (!n)
        return false;
    add_totals(&s->totals, &from->totals, n);
    Ps by = ps_times(now - from->at, n);
    for (uint32_t k = 0; k < s->ncores; k++)
        shift(s->core[k], &spots[k], by, n * (spots[k].iter - from->iter[k]));
    s->hbm = ps_add(s->hbm, by);
    for (int i = 0; i < LINK_COUNT; i++)
        s->links[i] = ps_add(s->links[i], by);
    for (uint32_t i = 0; i < s->rings.n; i++)
        s->rings.at[i].from = ps_add(s->rings.at[i].from, by), s->rings.at[i].to = ps_add(s->rings.at[i].to, by);
    s->comm_until = ps_add(s->comm_until, by);
    if (s->want_events)
        tell_jump(s, from, now, by, n);
    return true;
}

// --- entry points --------------------------------------------------------------------------------

// The state of all cores as seen from `zero`; false when it cannot repeat itself yet.
static bool take_all(const Sim *s, const Spot *spots, Ps zero, Hasher *h) {
    bool can = true;
    mix(h, (uint64_t)ps_max(s->hbm - zero, 0));
    for (int i = 0; i < LINK_COUNT; i++)
        mix(h, (uint64_t)ps_max(s->links[i] - zero, 0));
    for (uint32_t i = 0; i < s->rings.n; i++) {
        const Ring *r = &s->rings.at[i];
        if (r->to <= zero)
            continue;
        mix(h, (uint64_t)ps_max(r->from - zero, 0));
        mix(h, (uint64_t)(r->to - zero));
        mix(h, r->share[RING_DMA]);
        mix(h, r->share[RING_HBM]);
    }
    mix(h, (uint64_t)ps_max(s->comm_until - zero, 0));
    for (uint32_t k = 0; k < s->ncores; k++) {
        const Core *c = s->core[k];
        const Spot *p = &spots[k];
        can &= absolutes_over(s, c, p, zero);
        mix(h, p->region);
        mix(h, p->iter ? 1 : 0);
        take_times(s, c, zero, h);
        take_seqs(c, p, h);
        take_meetings(s, c, zero, h);
        can &= take_sems(s, c, p, zero, h);
    }
    return can;
}

static Snap snap_of(const Sim *s, const Spot *spots, Ps zero, const Hasher *h) {
    Snap snap = {.hash = {h->a, h->b}, .at = zero, .totals = s->totals, .event = s->out->events.n};
    for (uint32_t k = 0; k < s->ncores; k++) {
        snap.region[k] = spots[k].region;
        snap.iter[k] = spots[k].iter;
        snap.passed[k] = s->core[k]->passed;
        memcpy(snap.told[k], s->core[k]->told, sizeof snap.told[k]);
    }
    return snap;
}

// Both are in the same loops, and have met as often in between: iterations may be left out, though their times differ.
static bool alike(const Sim *s, const Snap *a, const Snap *b) {
    return s->ncores < 2 || (a->region[0] == b->region[0] && a->region[1] == b->region[1] && a->iter[0] <= b->iter[0] &&
                             a->iter[1] <= b->iter[1] && b->passed[0] - a->passed[0] == b->passed[1] - a->passed[1]);
}

// Looks for the state among those before, and adds iterations where it is one of them.
static void repeat(Sim *s, Core *c, Steady *st, const Spot *spots, bool tired) {
    uint32_t me = s->core[0] != c;
    Ps zero = horizon(s);
    Hasher h = {spots[me].region + 1, 0};
    if (!take_all(s, spots, zero, &h) && !tired)
        return;
    Snap now = snap_of(s, spots, zero, &h);
    for (uint32_t i = st->snaps.n; i-- > 0;) {
        const Snap *old = &st->snaps.at[i];
        bool equal = old->hash[0] == h.a && old->hash[1] == h.b;
        if (!equal && !(tired && alike(s, old, &now)))
            continue;
        uint64_t period = now.iter[me] - old->iter[me];
        if (!jump(s, spots, old, zero) && s->ncores > 1 && spots[me].loop->trips - 1 - spots[me].most >= period)
            break; // the other core is about to leave its loop
        s->out->approximate |= !equal;
        Spot after;
        spot_in(c, spots[me].region, &after);
        st->given_up = after.loop->trips - 1 - after.most < period || s->ncores < 2; // what is left is shorter than a period
        st->last_iter = after.iter;
        st->snaps.n = 0;
        return;
    }
    if (st->snaps.n == SNAPS_MAX) { // keep the newer half
        memmove(st->snaps.at, st->snaps.at + SNAPS_MAX / 2, SNAPS_MAX / 2 * sizeof now);
        st->snaps.n = SNAPS_MAX / 2;
    }
    VEC_PUSH(s->arena, &st->snaps, now);
}

void steady_iteration(Sim *s, Core *c, uint32_t r) {
    Steady *st = &c->steady[r];
    uint32_t me = s->core[0] != c;
    Spot spots[CORES_MAX];
    if (s->stepwise || st->given_up || !spot_in(c, r, &spots[me]) || spots[me].iter <= st->last_iter)
        return;
    st->last_iter = spots[me].iter;
    bool tired = spots[me].iter >= ITERATIONS_MAX || s->out->simulated > s->steps_max;
    const Core *other = other_of(s, c);
    spots[!me] = (Spot){.region = NO_REGION};
    if (other)
        beside(other, spots[me].loop->depth, &spots[!me]);
    repeat(s, c, st, spots, tired);
}
