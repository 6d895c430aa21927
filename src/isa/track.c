// SPDX-License-Identifier: Apache-2.0
// track.c — regions, who met them, and vector clocks: see track.h.
#include "isa/track.h"

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

// Reads and writes stand in a tree each, ordered by place and first byte; every node knows how far the
// regions below it reach. So an access meets only what its bytes lie between, in a time that grows with
// the logarithm of what is remembered. Balance comes from a hash of the node's number: a treap.

typedef __int128 Key; // place, then byte
static Key key_of(const Region *r, int64_t byte) { return ((Key)r->place << 64) + byte; }

static uint32_t weight(uint32_t node) { return node * 2654435761u ^ node >> 15; }

static TrackEntry *entry(Track *t, uint32_t node) { return &t->entries.at[node - 1]; }

void track_init(Track *t, Arena *a) { *t = (Track){.arena = a}; }

void track_clear(Track *t) {
    t->entries.n = t->unused = 0;
    t->root[0] = t->root[1] = 0;
}

static void node_update(Track *t, uint32_t node) {
    TrackEntry *e = entry(t, node);
    Key reach = key_of(&e->r, e->r.hi);
    for (int side = 0; side < 2; side++)
        if (e->child[side] && entry(t, e->child[side])->reach > reach)
            reach = entry(t, e->child[side])->reach;
    e->reach = reach;
}

static bool is_before(Track *t, uint32_t a, uint32_t b) {
    Key x = key_of(&entry(t, a)->r, entry(t, a)->r.lo), y = key_of(&entry(t, b)->r, entry(t, b)->r.lo);
    return x != y ? x < y : a < b;
}

// Cuts a tree in two: what comes before `node`, and the rest.
static void tree_split(Track *t, uint32_t tree, uint32_t node, uint32_t *left, uint32_t *right) {
    if (!tree) {
        *left = *right = 0;
        return;
    }
    if (is_before(t, tree, node)) {
        tree_split(t, entry(t, tree)->child[1], node, &entry(t, tree)->child[1], right);
        *left = tree;
    } else {
        tree_split(t, entry(t, tree)->child[0], node, left, &entry(t, tree)->child[0]);
        *right = tree;
    }
    node_update(t, tree);
}

static uint32_t tree_join(Track *t, uint32_t a, uint32_t b) { // all of a before all of b
    if (!a || !b)
        return a ? a : b;
    uint32_t top = weight(a) > weight(b) ? a : b;
    uint32_t *child = &entry(t, top)->child[top == a];
    *child = top == a ? tree_join(t, *child, b) : tree_join(t, a, *child);
    node_update(t, top);
    return top;
}

static uint32_t tree_insert(Track *t, uint32_t tree, uint32_t node) {
    if (!tree || weight(node) > weight(tree)) {
        TrackEntry *e = entry(t, node);
        tree_split(t, tree, node, &e->child[0], &e->child[1]);
        node_update(t, node);
        return node;
    }
    uint32_t *child = &entry(t, tree)->child[is_before(t, tree, node)];
    *child = tree_insert(t, *child, node);
    node_update(t, tree);
    return tree;
}

static uint32_t tree_remove(Track *t, uint32_t tree, uint32_t node) {
    if (tree == node)
        return tree_join(t, entry(t, node)->child[0], entry(t, node)->child[1]);
    uint32_t *child = &entry(t, tree)->child[is_before(t, tree, node)];
    *child = tree_remove(t, *child, node);
    node_update(t, tree);
    return tree;
}

typedef void NodeFn(void *arg, uint32_t node);

// Every region of the tree whose bytes, taken from first to last, meet those of r.
static void each_near(Track *t, uint32_t tree, const Region *r, NodeFn *fn, void *arg) {
    while (tree) {
        TrackEntry *e = entry(t, tree);
        if (e->reach <= key_of(r, r->lo))
            return;
        each_near(t, e->child[0], r, fn, arg);
        if (key_of(&e->r, e->r.lo) >= key_of(r, r->hi))
            return;
        if (key_of(&e->r, e->r.hi) > key_of(r, r->lo))
            fn(arg, tree);
        tree = e->child[1];
    }
}

typedef struct Meet {
    Track *t;
    const Region *r;
    TrackFn *fn;
    void *arg;
} Meet;

static void meet(void *arg, uint32_t node) {
    Meet *m = arg;
    const TrackEntry *e = entry(m->t, node);
    if (track_overlap(&e->r, m->r))
        m->fn(m->arg, e);
}

void track_meet(Track *t, const Region *r, bool is_write, TrackFn *fn, void *arg) {
    Meet m = {t, r, fn, arg};
    each_near(t, t->root[1], r, meet, &m);
    if (is_write)
        each_near(t, t->root[0], r, meet, &m);
}

typedef struct Supersede {
    Track *t;
    const Region *r;
    bool is_write;
    int sem;
} Supersede;

// What comes after the new access in order also comes after this one: it was waited for when the new
// one writes, or it is earlier on the same engine and of the same kind.
static void supersede(void *arg, uint32_t node) {
    Supersede *s = arg;
    const TrackEntry *e = entry(s->t, node);
    if ((s->is_write || e->sem == s->sem) && track_covers(s->r, &e->r))
        VEC_PUSH(s->t->arena, &s->t->gone, node);
}

void track_add(Track *t, const Region *r, bool is_write, int sem, uint32_t ord, uint32_t pc) {
    Supersede s = {t, r, is_write, sem};
    t->gone.n = 0;
    each_near(t, t->root[0], r, supersede, &s);
    if (is_write)
        each_near(t, t->root[1], r, supersede, &s);
    for (uint32_t i = 0; i < t->gone.n; i++) {
        uint32_t node = t->gone.at[i], *root = &t->root[entry(t, node)->is_write];
        *root = tree_remove(t, *root, node);
        entry(t, node)->child[0] = t->unused;
        t->unused = node;
    }
    TrackEntry e = {.r = *r, .pc = pc, .ord = ord, .sem = (uint8_t)sem, .is_write = is_write};
    uint32_t node = t->unused;
    if (node) {
        t->unused = entry(t, node)->child[0];
        *entry(t, node) = e;
    } else {
        VEC_PUSH(t->arena, &t->entries, e);
        node = t->entries.n;
    }
    t->root[is_write] = tree_insert(t, t->root[is_write], node);
}

// --- vector clocks -------------------------------------------------------------------------------------

static bool clocks_join(Clocks *into, const Clocks *from) {
    bool changed = false;
    for (int i = 0; i < ORDER_ALL; i++)
        if (from->n[i] > into->n[i]) {
            into->n[i] = from->n[i];
            changed = true;
        }
    return changed;
}

void order_init(Order *o, Arena *a) { *o = (Order){.arena = a}; }

Clocks order_start(const Order *o, const IsaInst *in) {
    Clocks c = o->seq[isa_seq(in)];
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
    order_join(o, &o->seq[isa_seq(in)], sem, ord);
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

void order_met(Order *o, int sem, const Clocks *theirs) {
    Clocks mine; // the same, as this core counts
    for (int i = 0; i < ORDER_SEMS; i++) {
        mine.n[i] = theirs->n[ORDER_SEMS + i];
        mine.n[ORDER_SEMS + i] = theirs->n[i];
    }
    if (clocks_join(&o->last[sem], &mine))
        VEC_PUSH(o->arena, &o->snaps[sem], (Snapshot){o->issued.n[sem], o->last[sem]});
}

void order_barrier(Order *o) {
    Clocks all = o->issued;
    for (int i = 0; i < ORDER_SEMS; i++) // what all of them know of the other core
        clocks_join(&all, &o->last[i]);
    for (int e = 0; e < ISA_SEQS; e++)
        clocks_join(&all, &o->seq[e]);
    for (int e = 0; e < ISA_SEQS; e++)
        o->seq[e] = all;
}
