// SPDX-License-Identifier: Apache-2.0
// rings.c — the time of DMA engines and HBM that collectives have.
//
// Collectives are moved by the same DMA engines as loads and stores, on rings of their own. While the bytes of one are on their way
// it holds a share of all engines, and of HBM, its bytes over that time, and transfers go on with the rest. Its packets are larger than theirs and
// win (the chip file's collective_dma_share), so that what comes later does not hold it up; what has the engines when its bytes begin
// does. Two cores of a logical core are one rank: it holds engines of both.
#include <assert.h>

#include "clock/sim.h"

#define SHARE_ONE 65536 // all of the engines

// What collectives hold at a moment, and until when that does not change.
static uint32_t held_at(const Sim *s, RingOf of, Ps at, Ps *until) {
    uint32_t held = 0;
    *until = PS_MAX;
    for (uint32_t i = 0; i < s->rings.n; i++) {
        const Ring *r = &s->rings.at[i];
        Ps edge = at < r->from ? r->from : r->to;
        if (at >= r->to)
            continue;
        held += at >= r->from ? r->share[of] : 0;
        *until = edge < *until ? edge : *until;
    }
    return held < s->ring_most ? held : s->ring_most;
}

// `work` of an engine's time, or of HBM's, from `at` on, at the rate that `most` of it less what collectives hold gives.
static Ps through(const Sim *s, RingOf of, Ps at, Ps work, uint32_t most) {
    while (work > 0) {
        Ps until;
        uint32_t held = held_at(s, of, at, &until), least = SHARE_ONE - s->ring_most;
        uint32_t rate = most > held + least ? most - held : least;
        Ps takes = rate == SHARE_ONE ? work : (Ps)(((__int128)work * SHARE_ONE + rate - 1) / rate);
        if (until == PS_MAX || takes <= until - at)
            return ps_add(at, takes);
        work -= (Ps)((__int128)(until - at) * rate / SHARE_ONE);
        at = until;
    }
    return at;
}

Ps rings_pass(const Sim *s, RingOf of, Ps at, Ps work) { return s->rings.n ? through(s, of, at, work, SHARE_ONE) : ps_add(at, work); }

// When the engines have done what they were given before; the one that is last.
static Ps backlog(const Sim *s, Ps at, uint32_t *by) {
    Ps sum = 0, most = 0;
    for (uint32_t k = 0; k < s->ncores; k++)
        for (uint32_t e = 0; e < s->dma_engines; e++) {
            Ps left = ps_max(s->core[k]->now.engine[e] - at, 0);
            if (left > most)
                most = left, *by = s->core[k]->by.engine[e];
            sum = ps_add(sum, left);
        }
    return sum / (Ps)(s->ncores * s->dma_engines);
}

static void forget(Sim *s, Ps now) { // nothing begins before now
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->rings.n; i++)
        if (s->rings.at[i].to > now)
            s->rings.at[kept++] = s->rings.at[i];
    s->rings.n = kept;
}

// It would end at *end; held up by what was given to do before, up to `begin`, it ends when `work` is through.
static void hold_up(Sim *s, RingOf of, Ps begin, uint32_t by, Ps work, Ps *end) {
    Ps to = work ? through(s, of, begin, work, s->ring_most) : *end;
    if (to <= *end)
        return;
    *end = to;
    s->link.limit = of == RING_HBM ? CLOCK_HBM : CLOCK_DMA, s->link.serve = begin, s->link.serve_by = by;
}

Ps rings_take(Sim *s, Ps from, Ps end, const Ps work[RING_OF], Ps now) {
    uint32_t by = CLOCK_NOBODY;
    forget(s, now);
    if (!work[RING_DMA] && !work[RING_HBM])
        return end;
    Ps begin = ps_add(from, backlog(s, from, &by));
    hold_up(s, RING_DMA, begin, by, work[RING_DMA], &end);
    hold_up(s, RING_HBM, ps_max(from, s->hbm), s->hbm_by, work[RING_HBM], &end);
    assert(end > from);
    Ring r = {.from = from, .to = end};
    for (int i = 0; i < RING_OF; i++)
        r.share[i] = (uint32_t)((__int128)work[i] * SHARE_ONE / (end - from));
    VEC_PUSH(s->arena, &s->rings, r);
    return end;
}

void rings_init(Sim *s) {
    s->ring_most = (uint32_t)(s->chip->collective_dma_share * SHARE_ONE);
    assert(s->ring_most < SHARE_ONE); // something is left for transfers
}
