// SPDX-License-Identifier: Apache-2.0
// track.c — regions, who met them, and vector clocks: see track.h.
#include "isa/track.h"

#include <assert.h>

// --- regions ---------------------------------------------------------------------------------------

static void region_finish(Region *r) {
    int64_t span = r->run;
    for (int i = r->n; i-- > 0;) {
        span += (int64_t)(r->count[i] - 1) * r->stride[i];
        r->span[i] = span;
    }
    r->lo = r->base;
    r->hi = r->base + span;
}

Region track_box(uint32_t place, uint32_t part0, uint32_t part1, int64_t lo, int64_t hi) {
    Region r = {.place = place, .part0 = part0, .part1 = part1, .base = lo, .run = hi - lo};
    region_finish(&r);
    return r;
}

// Axes by falling stride, those that join without a gap made one.
static void region_normal(Region *r) {
    for (int i = 1; i < r->n; i++)
        for (int k = i; k > 0 && r->stride[k] > r->stride[k - 1]; k--) {
            int64_t s = r->stride[k];
            uint32_t c = r->count[k];
            r->stride[k] = r->stride[k - 1], r->count[k] = r->count[k - 1];
            r->stride[k - 1] = s, r->count[k - 1] = c;
        }
    while (r->n && r->stride[r->n - 1] <= r->run) {
        r->run += (int64_t)(r->count[r->n - 1] - 1) * r->stride[r->n - 1];
        r->n--;
    }
    for (int i = 0; i + 1 < r->n;) {
        if (r->stride[i] != r->stride[i + 1] * r->count[i + 1]) {
            i++;
            continue;
        }
        r->count[i] *= r->count[i + 1];
        r->stride[i] = r->stride[i + 1];
        for (int k = i + 1; k + 1 < r->n; k++)
            r->stride[k] = r->stride[k + 1], r->count[k] = r->count[k + 1];
        r->n--;
    }
}

Region track_region(const IsaAccess *a, int64_t terms) {
    bool hbm = addr_space(a->addr) == SPACE_HBM;
    int64_t size = (int64_t)dtype_bytes(a->dtype);
    Region r = {.place = (uint32_t)addr_space(a->addr) << 16 | (hbm ? addr_seg(a->addr) : 0), .run = size,
                .base = (int64_t)(hbm ? addr_off(a->addr) : addr_poff(a->addr)) + terms,
                .part0 = hbm ? 0 : addr_part(a->addr)};
    r.part1 = hbm ? 1 : r.part0 + a->parts;
    for (int i = hbm ? 0 : 1; i < ISA_AXES; i++) {
        int64_t stride = (int64_t)a->stride[i] * size;
        if (a->n[i] <= 1 || !stride)
            continue;
        if (stride < 0)
            r.base += stride * (int64_t)(a->n[i] - 1);
        r.stride[r.n] = stride < 0 ? -stride : stride;
        r.count[r.n++] = a->n[i];
    }
    region_normal(&r);
    region_finish(&r);
    return r;
}

// Does some run of r, axes `axis` on, from base meet [lo, hi)?
static bool hits(const Region *r, int axis, int64_t base, int64_t lo, int64_t hi) {
    if (axis == r->n)
        return base < hi && base + r->run > lo;
    int64_t inner = axis + 1 < r->n ? r->span[axis + 1] : r->run, s = r->stride[axis];
    int64_t first = lo - inner - base, last = (hi - 1 - base);
    if (last < 0)
        return false;
    first = first < 0 ? 0 : first / s + 1; // base + i * s + inner > lo
    last = last / s;
    if (last >= r->count[axis])
        last = r->count[axis] - 1;
    for (int64_t i = first; i <= last; i++)
        if (hits(r, axis + 1, base + i * s, lo, hi))
            return true;
    return false;
}

static double runs(const Region *r) {
    double n = 1;
    for (int i = 0; i < r->n; i++)
        n *= r->count[i];
    return n;
}

static bool any_run_hits(const Region *a, int axis, int64_t base, const Region *b) {
    if (axis == a->n)
        return hits(b, 0, b->base, base, base + a->run);
    int64_t inner = axis + 1 < a->n ? a->span[axis + 1] : a->run;
    for (uint32_t i = 0; i < a->count[axis]; i++) {
        int64_t at = base + (int64_t)i * a->stride[axis];
        if (at < b->hi && at + inner > b->lo && any_run_hits(a, axis + 1, at, b))
            return true;
    }
    return false;
}

#define RUNS_MAX 1e6 // beyond it two interleaved patterns count as overlapping

bool track_overlap(const Region *a, const Region *b) {
    if (a->place != b->place || a->lo >= b->hi || b->lo >= a->hi || a->part0 >= b->part1 ||
        b->part0 >= a->part1)
        return false;
    const Region *few = runs(a) <= runs(b) ? a : b;
    return runs(few) > RUNS_MAX || any_run_hits(few, 0, few->base, few == a ? b : a);
}

bool track_covers(const Region *a, const Region *b) {
    if (a->place != b->place || a->part0 > b->part0 || a->part1 < b->part1 || a->lo > b->lo || a->hi < b->hi)
        return false;
    if (!a->n)
        return true;
    bool same = a->n == b->n && a->base == b->base && a->run == b->run;
    for (int i = 0; i < a->n && same; i++)
        same = a->count[i] == b->count[i] && a->stride[i] == b->stride[i];
    return same;
}

// --- who met them ------------------------------------------------------------------------------------

typedef struct TrackBucket {
    uint64_t key; // place << 40 | offset block; 0 with n 0: free
    uint32_t *at;
    uint32_t n, cap;
    bool taken;
} TrackBucket;

#define SPREAD_MAX 32 // buckets an entry stands in at most

static int block_shift(const Region *r) { return r->place >> 16 == SPACE_HBM ? 16 : 11; }

void track_init(Track *t, Arena *a) {
    *t = (Track){.arena = a, .nslots = 1024};
    t->slots = ARENA_NEWN(a, TrackBucket, t->nslots);
}

void track_clear(Track *t) {
    for (uint32_t i = 0; i < t->nslots; i++)
        t->slots[i].n = 0;
    t->entries.n = t->wide.n = t->dead = 0;
}

static TrackBucket *bucket(Track *t, uint64_t key) {
    uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (t->nslots - 1);
    while (t->slots[at].taken && t->slots[at].key != key)
        at = (at + 1) & (t->nslots - 1);
    return &t->slots[at];
}

static void slots_grow(Track *t) {
    TrackBucket *old = t->slots;
    uint32_t n = t->nslots;
    t->nslots *= 2;
    t->slots = ARENA_NEWN(t->arena, TrackBucket, t->nslots);
    for (uint32_t i = 0; i < n; i++)
        if (old[i].taken)
            *bucket(t, old[i].key) = old[i];
}

static void bucket_add(Track *t, uint64_t key, uint32_t entry) {
    TrackBucket *b = bucket(t, key);
    if (!b->taken) {
        if (2 * ++t->used > t->nslots) {
            slots_grow(t);
            b = bucket(t, key);
        }
        *b = (TrackBucket){.key = key, .taken = true};
    }
    if (b->n == b->cap)
        b->at = arena_grow(t->arena, b->at, b->n, &b->cap, b->n + 1, sizeof *b->at);
    b->at[b->n++] = entry;
}

static void entry_insert(Track *t, uint32_t number) {
    const Region *r = &t->entries.at[number].r;
    int shift = block_shift(r);
    int64_t first = r->lo >> shift, last = (r->hi - 1) >> shift;
    if (last - first >= SPREAD_MAX) {
        VEC_PUSH(t->arena, &t->wide, number);
        return;
    }
    for (int64_t i = first; i <= last; i++)
        bucket_add(t, (uint64_t)r->place << 40 | (uint64_t)i, number);
}

// Living entries close up, when half of them are dead.
static void compact(Track *t) {
    if (t->dead < 256 || 2 * t->dead < t->entries.n)
        return;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->entries.n; i++)
        if (!t->entries.at[i].is_dead)
            t->entries.at[n++] = t->entries.at[i];
    track_clear(t);
    t->entries.n = n;
    for (uint32_t i = 0; i < n; i++)
        entry_insert(t, i);
}

typedef bool EntryFn(void *arg, TrackEntry *e);

static void each_near(Track *t, const Region *r, EntryFn *fn, void *arg) {
    int shift = block_shift(r);
    int64_t first = r->lo >> shift, last = (r->hi - 1) >> shift;
    t->stamp++;
    if (last - first >= SPREAD_MAX) {
        for (uint32_t i = 0; i < t->entries.n; i++)
            if (!t->entries.at[i].is_dead)
                fn(arg, &t->entries.at[i]);
        return;
    }
    for (uint32_t i = 0; i < t->wide.n; i++)
        if (!t->entries.at[t->wide.at[i]].is_dead)
            fn(arg, &t->entries.at[t->wide.at[i]]);
    for (int64_t k = first; k <= last; k++) {
        TrackBucket *b = bucket(t, (uint64_t)r->place << 40 | (uint64_t)k);
        for (uint32_t i = 0; i < b->n; i++) {
            TrackEntry *e = &t->entries.at[b->at[i]];
            if (e->is_dead || e->stamp == t->stamp)
                continue;
            e->stamp = t->stamp;
            fn(arg, e);
        }
    }
}

typedef struct Meet {
    const Region *r;
    bool is_write;
    TrackFn *fn;
    void *arg;
} Meet;

static bool meet(void *arg, TrackEntry *e) {
    Meet *m = arg;
    if ((e->is_write || m->is_write) && track_overlap(&e->r, m->r))
        m->fn(m->arg, e);
    return true;
}

void track_meet(Track *t, const Region *r, bool is_write, TrackFn *fn, void *arg) {
    Meet m = {r, is_write, fn, arg};
    each_near(t, r, meet, &m);
}

typedef struct Supersede {
    const Region *r;
    bool is_write;
    int sem;
    uint32_t dead;
} Supersede;

// What comes after the new access in order also comes after this one: it was waited for when the new
// one writes, or it is earlier on the same engine and of the same kind.
static bool supersede(void *arg, TrackEntry *e) {
    Supersede *s = arg;
    bool weaker = s->is_write || (!e->is_write && e->sem == s->sem);
    if (weaker && track_covers(s->r, &e->r)) {
        e->is_dead = true;
        s->dead++;
    }
    return true;
}

void track_add(Track *t, const Region *r, bool is_write, int sem, uint32_t ord, uint32_t pc) {
    Supersede s = {r, is_write, sem, 0};
    each_near(t, r, supersede, &s);
    t->dead += s.dead;
    compact(t);
    TrackEntry e = {.r = *r, .pc = pc, .ord = ord, .sem = (uint8_t)sem, .is_write = is_write};
    VEC_PUSH(t->arena, &t->entries, e);
    entry_insert(t, t->entries.n - 1);
}

// --- vector clocks -------------------------------------------------------------------------------------

static bool clocks_join(Clocks *into, const Clocks *from) {
    bool changed = false;
    for (int i = 0; i < ORDER_SEMS; i++)
        if (from->n[i] > into->n[i]) {
            into->n[i] = from->n[i];
            changed = true;
        }
    return changed;
}

void order_init(Order *o, Arena *a) { *o = (Order){.arena = a}; }

Clocks order_start(const Order *o, const IsaInst *in) {
    Clocks c = o->seq[in->engine];
    int sem = isa_sem(in);
    clocks_join(&c, &o->last[sem]);
    c.n[sem] = o->issued.n[sem]; // those before it on its own engine or queue complete in order
    return c;
}

void order_join(const Order *o, Clocks *into, int sem, uint32_t ord) {
    const Snapshot *at = o->snaps[sem].at;
    uint32_t lo = 0, hi = o->snaps[sem].n;
    while (lo < hi) { // the last snapshot at or before ord
        uint32_t mid = (lo + hi) / 2;
        if (at[mid].ord <= ord)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo)
        clocks_join(into, &at[lo - 1].c);
    if (into->n[sem] < ord)
        into->n[sem] = ord;
}

void order_wait(Order *o, const IsaInst *in, int sem, uint32_t ord) {
    order_join(o, &o->seq[in->engine], sem, ord);
}

uint32_t order_run(Order *o, const IsaInst *in) {
    int sem = isa_sem(in);
    Clocks c = order_start(o, in);
    c.n[sem] = 0; // its own number: order_join adds it
    uint32_t ord = ++o->issued.n[sem];
    if (clocks_join(&o->last[sem], &c) || !o->snaps[sem].n)
        VEC_PUSH(o->arena, &o->snaps[sem], (Snapshot){ord, o->last[sem]});
    return ord;
}

void order_barrier(Order *o) {
    for (int e = 0; e < ENG_COUNT; e++)
        o->seq[e] = o->issued;
}
