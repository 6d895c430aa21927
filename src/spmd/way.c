// SPDX-License-Identifier: Apache-2.0
// way.c — the way from one sharding to another: which steps, over which devices, how many bytes.
//
// In the order of what they leave to move: local cuts that go together with what is there; terms, scattered into the
// dimensions that are wanted in their parts, the rest of them summed; then parts that change hands (a permutation
// where only places differ, an all-to-all where a cut goes from one dimension to another), gathers of what is cut
// finer than wanted; and the local cuts that had to wait. The same steps are counted (way_bytes) and done (move.c).
#include <assert.h>

#include "spmd/way.h"

typedef struct Way {
    Arena *a;
    uint32_t rank, devices;
    Cut now[OTRN_MAX_RANK], to[OTRN_MAX_RANK], terms;
    ShardCombine combine;
    Step *out;
    uint32_t n;
} Way;

// fine is coarse with rest inside each part.
static bool cut_over(const Way *w, Cut fine, Cut coarse, Cut *rest) {
    *rest = CUT_WHOLE;
    if (coarse.parts <= 1) {
        *rest = fine;
        return true;
    }
    if (fine.parts % coarse.parts)
        return false;
    Cut outer, inner;
    if (!shard_cut_split(w->a, fine, fine.parts / coarse.parts, &outer, &inner) || !shard_cut_same(outer, coarse, w->devices))
        return false;
    *rest = inner;
    return true;
}

// all is rest with inner inside each part.
static bool cut_inner(const Way *w, Cut all, Cut inner, Cut *rest) {
    *rest = CUT_WHOLE;
    if (inner.parts <= 1 || all.parts <= inner.parts || all.parts % inner.parts)
        return false;
    Cut outer, within;
    if (!shard_cut_split(w->a, all, inner.parts, &outer, &within) || !shard_cut_same(within, inner, w->devices))
        return false;
    *rest = outer;
    return true;
}

static bool same(const Way *w, Cut a, Cut b) { return shard_cut_same(a, b, w->devices); }

// Devices that have parts of `cut` beside what lies as now (and as the terms that are left) meet.
static const Shards *meeting(const Way *w, Cut cut, uint32_t *along) {
    Cut cuts[OTRN_MAX_RANK + 1];
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->rank; i++)
        if (w->now[i].parts > 1)
            cuts[n++] = w->now[i];
    *along = n;
    cuts[n++] = cut;
    assert(n <= OTRN_MAX_RANK);
    return shard_make(w->a, n, w->devices, cuts, w->terms, SHARD_ADD);
}

static Step *step_add(Way *w, StepKind kind, uint32_t dim) {
    assert(w->n < WAY_STEPS_MAX);
    Step *st = &w->out[w->n++];
    *st = (Step){.kind = kind, .dim = dim, .parts = 1};
    return st;
}

// After the state has changed: what the step leaves.
static void step_end(const Way *w, Step *st) {
    st->after = shard_make(w->a, w->rank, w->devices, w->now, w->terms, w->combine);
}

static bool fits(const Way *w, uint32_t dim, Cut rest) {
    Cut cuts[OTRN_MAX_RANK + 1];
    for (uint32_t i = 0; i < w->rank; i++)
        cuts[i] = w->now[i];
    cuts[dim] = shard_cut_both(w->a, w->now[dim], rest, w->devices);
    cuts[w->rank] = w->terms;
    return shard_cuts_fit(w->a, cuts, w->rank + 1, w->devices);
}

// What of a wanted cut can be made at once: all of it, or what is around parts that must come from others first.
static Cut cut_early(const Way *w, uint32_t dim) {
    Cut rest, outer;
    if (!cut_over(w, w->to[dim], w->now[dim], &rest) || rest.parts <= 1)
        return CUT_WHOLE;
    if (fits(w, dim, rest))
        return rest;
    if (cut_inner(w, rest, w->terms, &outer) && fits(w, dim, outer))
        return outer;
    for (uint32_t i = 0; i < w->rank; i++)
        if (i != dim && cut_inner(w, rest, w->now[i], &outer) && fits(w, dim, outer))
            return outer;
    return CUT_WHOLE;
}

static void local_cuts(Way *w) {
    Cut rests[OTRN_MAX_RANK];
    bool any = false;
    for (uint32_t i = 0; i < w->rank; i++) {
        rests[i] = same(w, w->now[i], w->to[i]) ? CUT_WHOLE : cut_early(w, i);
        any |= rests[i].parts > 1;
        if (rests[i].parts > 1)
            w->now[i] = shard_cut_both(w->a, w->now[i], rests[i], w->devices);
    }
    if (!any)
        return;
    Step *st = step_add(w, STEP_CUT, 0);
    st->meet = shard_make(w->a, w->rank, w->devices, rests, CUT_WHOLE, SHARD_ADD);
    step_end(w, st);
}

// Terms of which `some` are summed now, into parts of a dimension or (dim == rank) everywhere.
static void sum_some(Way *w, Cut some, Cut left, uint32_t dim) {
    assert(dim <= w->rank && some.parts > 1);
    Step *st = step_add(w, dim < w->rank ? STEP_SCATTER : STEP_REDUCE, dim);
    st->parts = some.parts;
    st->combine = w->combine;
    w->terms = left;
    st->meet = meeting(w, some, &st->along);
    if (dim < w->rank)
        w->now[dim] = shard_cut_both(w->a, w->now[dim], some, w->devices);
    step_end(w, st);
}

static void sum_terms(Way *w) {
    for (uint32_t i = 0; i < w->rank && w->terms.parts > 1; i++) {
        Cut rest, left;
        if (same(w, w->now[i], w->to[i]) || !cut_over(w, w->to[i], w->now[i], &rest) || rest.parts <= 1)
            continue;
        if (cut_over(w, w->terms, rest, &left) || cut_inner(w, w->terms, rest, &left))
            sum_some(w, rest, left, i);
    }
    if (w->terms.parts > 1)
        sum_some(w, w->terms, CUT_WHOLE, w->rank);
}

// The same shares in other places.
static bool permute(Way *w) {
    bool differs = false;
    for (uint32_t i = 0; i < w->rank; i++) {
        if (w->now[i].parts != w->to[i].parts)
            return false;
        differs |= !same(w, w->now[i], w->to[i]);
    }
    if (!differs)
        return false;
    Step *st = step_add(w, STEP_PERMUTE, 0);
    st->meet = shard_make(w->a, w->rank, w->devices, w->now, CUT_WHOLE, SHARD_ADD);
    for (uint32_t i = 0; i < w->rank; i++)
        w->now[i] = w->to[i];
    step_end(w, st);
    return true;
}

// A cut that another dimension is wanted in goes there.
static bool swap(Way *w, uint32_t dim, Cut rest) {
    for (uint32_t j = 0; j < w->rank; j++) {
        Cut other;
        if (j == dim || same(w, w->now[j], w->to[j]) || !cut_over(w, w->to[j], w->now[j], &other) || !same(w, rest, other))
            continue;
        Step *st = step_add(w, STEP_SWAP, dim);
        st->into = j;
        st->parts = rest.parts;
        w->now[dim] = w->to[dim];
        st->meet = meeting(w, rest, &st->along);
        w->now[j] = w->to[j];
        step_end(w, st);
        return true;
    }
    return false;
}

static void gather(Way *w, uint32_t dim) {
    Cut rest;
    bool finer = cut_over(w, w->now[dim], w->to[dim], &rest);
    if (finer && swap(w, dim, rest))
        return;
    Step *st = step_add(w, STEP_GATHER, dim);
    rest = finer ? rest : w->now[dim];
    st->parts = rest.parts;
    w->now[dim] = finer ? w->to[dim] : CUT_WHOLE;
    st->meet = meeting(w, rest, &st->along);
    step_end(w, st);
}

uint32_t way_steps(Spmd *s, const Shards *from, const Shards *to, Step *out) {
    Way w = {.a = s->c->scratch, .rank = from->rank, .devices = s->devices, .out = out};
    assert(from->rank == to->rank);
    w.terms = shard_cut(from, from->rank);
    w.combine = from->combine;
    for (uint32_t i = 0; i < w.rank; i++) {
        w.now[i] = shard_cut(from, i);
        w.to[i] = shard_cut(to, i);
    }
    local_cuts(&w);
    if (w.terms.parts > 1)
        sum_terms(&w);
    if (permute(&w))
        return w.n;
    for (uint32_t i = 0; i < w.rank; i++) {
        Cut rest;
        if (w.now[i].parts > 1 && !same(&w, w.now[i], w.to[i]) && !cut_over(&w, w.to[i], w.now[i], &rest))
            gather(&w, i);
    }
    local_cuts(&w);
    return w.n;
}

// --- what it costs -----------------------------------------------------------------------------------

static uint64_t bytes_in_parts(const HloType *t, const Shards *sh) {
    uint64_t n = hlo_type_bytes(t);
    assert(sh->rank == t->rank);
    for (uint32_t i = 0; i < sh->rank; i++)
        n /= (uint64_t)sh->cut[i].parts;
    return n;
}

uint64_t way_bytes(Spmd *s, const HloType *whole, const Shards *from, const Shards *to) {
    if (shard_same(from, to))
        return 0;
    Step steps[WAY_STEPS_MAX];
    uint32_t n = way_steps(s, from, to, steps);
    uint64_t sum = 0, before = bytes_in_parts(whole, from);
    for (uint32_t i = 0; i < n; i++) {
        const Step *st = &steps[i];
        uint64_t after = bytes_in_parts(whole, st->after), others = (uint64_t)st->parts - 1, parts = (uint64_t)st->parts;
        switch (st->kind) {
        case STEP_CUT:
            break;
        case STEP_SCATTER:
        case STEP_SWAP:
            sum += before / parts * others + WAY_STEP_BYTES;
            break;
        case STEP_GATHER:
            sum += after / parts * others + WAY_STEP_BYTES;
            break;
        case STEP_REDUCE:
            sum += 2 * (before / parts * others) + WAY_STEP_BYTES;
            break;
        case STEP_PERMUTE:
            sum += before + WAY_STEP_BYTES;
            break;
        }
        before = after;
    }
    return sum;
}
