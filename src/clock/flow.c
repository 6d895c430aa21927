// SPDX-License-Identifier: Apache-2.0
// flow.c — building the list the sequencers walk.
#include "clock/flow.h"

#include <assert.h>

typedef struct Build {
    Arena *arena;
    Flow *f;
    uint32_t region;             // the loop being built, or NO_REGION
    uint64_t since[SEM_USER];    // completions since the body began or the last barrier
    bool in_body;                // no barrier in this body so far
    uint64_t stack[FLOW_DEPTH][SEM_USER]; // `since` of the outer loops
    bool stack_in_body[FLOW_DEPTH];
    const IsaInst *last[ENG_COUNT]; // the last one that wrote
    FlowTrips known;
    uint32_t nunknown; // loops of unknown length so far
} Build;

static FlowRegion *region_of(Build *b) {
    return b->region == NO_REGION ? NULL : &b->f->regions.at[b->region];
}

static uint64_t sat_mul_add(uint64_t sum, uint64_t a, uint64_t n) {
    uint64_t product;
    if (__builtin_mul_overflow(a, n, &product) || __builtin_add_overflow(sum, product, &sum))
        return UINT64_MAX / 2;
    return sum;
}

// trips, when the length is not in the artifact: what is known of it otherwise.
static void open_region(Build *b, uint32_t pc, uint64_t trips, bool unknown) {
    bool counted = unknown && b->nunknown < b->known.ntrips, seldom = trips == ART_SELDOM;
    if (unknown)
        trips = counted ? b->known.trips[b->nunknown] : seldom ? 0 : b->known.otherwise;
    b->nunknown += unknown;
    unknown = unknown && !counted && !seldom;
    FlowRegion *outer = region_of(b);
    uint32_t depth = outer ? outer->depth + 1 : 0;
    assert(depth < FLOW_DEPTH);
    FlowRegion r = {.begin = b->f->items.n, .parent = b->region, .depth = depth, .trips = trips,
                    .unknown = unknown, .counted = counted && !seldom, .seldom = seldom, .entry_in_body = b->in_body};
    memcpy(r.entry, b->since, sizeof r.entry);
    memcpy(b->stack[depth], b->since, sizeof b->since);
    b->stack_in_body[depth] = b->in_body;
    memset(b->since, 0, sizeof b->since);
    b->in_body = true;
    b->region = b->f->regions.n;
    VEC_PUSH(b->arena, &b->f->regions, r);
    FlowItem item = {.kind = ITEM_BEGIN, .pc = pc, .region = b->region};
    VEC_PUSH(b->arena, &b->f->items, item);
}

static void close_region(Build *b, uint32_t pc) {
    FlowRegion *r = region_of(b);
    r->end = b->f->items.n;
    FlowItem item = {.kind = ITEM_END, .pc = pc, .region = b->region};
    VEC_PUSH(b->arena, &b->f->items, item);
    uint32_t depth = r->depth;
    memcpy(r->has_barrier ? r->tail : r->per_iter, b->since, sizeof b->since);
    if (!r->has_barrier) {
        memcpy(b->since, b->stack[depth], sizeof b->since);
        for (int s = 0; s < SEM_USER; s++)
            b->since[s] = sat_mul_add(b->since[s], r->per_iter[s], r->trips);
        b->in_body = b->stack_in_body[depth];
    } else {
        b->in_body = false; // what counts is since the barrier inside
    }
    FlowRegion *outer = r->parent == NO_REGION ? NULL : &b->f->regions.at[r->parent];
    if (outer) {
        outer->has_fence |= r->has_fence;
        outer->has_barrier |= r->has_barrier;
        outer->engines |= r->engines;
        for (int s = 0; s < SEM_USER; s++)
            if (r->absolute[s] > outer->absolute[s])
                outer->absolute[s] = r->absolute[s];
    }
    if (r->has_fence)
        r->engines = (1 << ISA_SEQS) - 1;
    b->region = r->parent;
}

static bool is_fence(const IsaInst *in) {
    int cost = isa_rows[in->op].cost;
    return cost == COST_BARRIER || cost == COST_BRANCH;
}

static void note_waits(Build *b, const IsaInst *in, FlowItem *item) {
    FlowRegion *r = region_of(b);
    for (int w = 0; w < 2; w++) {
        int sem = in->wait_sem[w];
        if (sem == SEM_NONE || (sem & ~SEM_BACK) >= SEM_USER)
            continue;
        item->before[w] = b->since[sem & ~SEM_BACK];
        item->in_body[w] = b->in_body;
        if (!(sem & SEM_BACK) && r && in->wait_val[w] > r->absolute[sem])
            r->absolute[sem] = in->wait_val[w];
    }
}

// --- dependence inside one engine ----------------------------------------------------------------

typedef struct Span { // bytes of partitions, as a box
    int space;
    uint32_t part, parts;
    int64_t lo, hi;
} Span;

static Span span_of(const IsaInst *in, uint64_t addr, const int32_t *stride, uint32_t parts, int dtype) {
    Span s = {.space = addr_space(addr), .part = addr_part(addr), .parts = parts};
    int64_t size = (int64_t)dtype_bytes(dtype), lo = 0, hi = 0;
    for (int i = 1; stride && i < 5; i++) {
        int64_t reach = (int64_t)(isa_count(in->n[i]) - 1) * stride[i];
        *(reach < 0 ? &lo : &hi) += reach;
    }
    s.lo = addr_poff(addr) + lo * size;
    s.hi = addr_poff(addr) + (hi + 1) * size;
    return s;
}

static bool meets(const Span *a, const Span *b) {
    return a->space != SPACE_HBM && a->space < SPACE_COUNT && a->space == b->space &&
           a->part < b->part + b->parts && b->part < a->part + a->parts && a->lo < b->hi &&
           b->lo < a->hi;
}

static bool reads_from(const IsaInst *in, const IsaInst *prev) {
    uint32_t parts = isa_count(in->n[0]), wrote_parts = isa_count(prev->n[0]);
    Span wrote = span_of(prev, prev->dst, prev->d, wrote_parts, prev->dtype);
    Span res = span_of(prev, prev->res, NULL, wrote_parts, DT_F32);
    uint64_t addrs[] = {in->src, in->src1, in->a, in->b};
    const int32_t *strides[] = {in->s, in->t, NULL, NULL};
    int types[] = {in->stype, in->ttype, DT_F32, DT_F32};
    for (int i = 0; i < 4; i++) {
        if (!addrs[i])
            continue;
        Span reads = span_of(in, addrs[i], strides[i], parts, types[i]);
        if (meets(&reads, &wrote) || (prev->res && meets(&reads, &res)))
            return true;
    }
    return false;
}

// Vector, scalar and gpsimd instructions that read what the one before on their engine wrote.
static bool is_chained(Build *b, const IsaInst *in) {
    if (in->engine == ENG_TENSOR || in->engine == ENG_SYNC || !in->dst || isa_has_queue(in))
        return false;
    const IsaInst *prev = b->last[in->engine];
    b->last[in->engine] = in;
    return prev && reads_from(in, prev);
}

// --- items ---------------------------------------------------------------------------------------

static void add_inst(Build *b, uint32_t pc) {
    const IsaInst *in = &b->f->art->code[pc];
    FlowRegion *r = region_of(b);
    FlowItem item = {.kind = is_fence(in) ? ITEM_FENCE : ITEM_INST, .engine = (uint8_t)isa_seq(in),
                     .cost = isa_rows[in->op].cost, .queue = in->queue,
                     .wait_sem = {in->wait_sem[0], in->wait_sem[1]},
                     .wait_val = {in->wait_val[0], in->wait_val[1]}, .pc = pc, .region = b->region};
    b->f->nseqs = item.engine >= ENG_COUNT ? ISA_SEQS : b->f->nseqs;
    item.chained = is_chained(b, in);
    item.signals = in->upd_sem != 0;
    item.meets = in->op == ISA_CORE_BARRIER || in->op == ISA_SENDRECV;
    note_waits(b, in, &item);
    VEC_PUSH(b->arena, &b->f->items, item);
    if (r) {
        r->engines |= (uint16_t)(1 << item.engine);
        r->has_fence |= item.kind == ITEM_FENCE;
    }
    b->since[isa_sem(in)]++;
    if (isa_rows[in->op].cost != COST_BARRIER)
        return;
    memset(b->since, 0, sizeof b->since);
    b->in_body = false;
    if (r)
        r->has_barrier = true;
}

// How often a loop instruction runs its body.
static uint64_t trips_of(const IsaInst *in, bool *unknown) {
    *unknown = in->breg != 0;
    if (*unknown)
        return 1;
    if (in->limit <= in->value || in->step <= 0)
        return 0;
    return ((uint64_t)((int64_t)in->limit - in->value) + (uint64_t)in->step - 1) / (uint64_t)in->step;
}

static void add_items(Build *b) {
    const Artifact *art = b->f->art;
    const ArtLoop *loops = artifact_loops_sorted(art, b->arena);
    uint32_t ends[FLOW_DEPTH], open = 0, next = 0;
    for (uint32_t pc = 0; pc <= art->ncode; pc++) {
        while (open && ends[open - 1] == pc) {
            close_region(b, UINT32_MAX);
            open--;
        }
        if (pc == art->ncode)
            break;
        for (; next < art->nloops && loops[next].begin == pc; next++) {
            uint64_t trips = loops[next].trips;
            open_region(b, UINT32_MAX, trips ? trips : 1, !trips || trips == ART_SELDOM);
            ends[open++] = loops[next].end;
        }
        const IsaInst *in = &art->code[pc];
        bool unknown = false;
        if (in->op == ISA_LOOP) {
            uint64_t trips = trips_of(in, &unknown);
            open_region(b, pc, trips, unknown);
        } else if (in->op == ISA_ENDLOOP) {
            close_region(b, pc);
        } else {
            add_inst(b, pc);
        }
    }
    FlowItem stop = {.kind = ITEM_STOP, .region = NO_REGION};
    VEC_PUSH(b->arena, &b->f->items, stop);
}

static bool concerns(const Flow *f, const FlowItem *item, int engine) {
    switch (item->kind) {
    case ITEM_INST:
        return item->engine == engine;
    case ITEM_BEGIN:
    case ITEM_END:
        return f->regions.at[item->region].engines >> engine & 1;
    default:
        return true;
    }
}

static void chain(Flow *f, Arena *a) {
    uint32_t n = f->items.n, at[ISA_SEQS];
    for (int e = 0; e < f->nseqs; e++) {
        f->next[e] = ARENA_NEWN(a, uint32_t, n);
        at[e] = n - 1;
    }
    for (uint32_t i = n; i-- > 0;)
        for (int e = 0; e < f->nseqs; e++) {
            if (concerns(f, &f->items.at[i], e))
                at[e] = i;
            f->next[e][i] = at[e];
        }
}

uint32_t flow_unknown(const Artifact *art) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < art->nloops; i++)
        n += !art->loops[i].trips || art->loops[i].trips == ART_SELDOM;
    for (uint32_t pc = 0; pc < art->ncode; pc++) {
        const IsaInst *in = artifact_shape(art, pc);
        n += in->op == ISA_LOOP && in->breg;
    }
    return n;
}

void flow_make(Arena *a, const Artifact *art, const FlowTrips *known, Flow *out) {
    *out = (Flow){.art = art, .nseqs = ENG_COUNT};
    Build *b = ARENA_NEW(a, Build);
    *b = (Build){.arena = a, .f = out, .region = NO_REGION, .in_body = true, .known.otherwise = 1};
    if (known) {
        b->known = *known;
        if (known->ntrips != flow_unknown(art))
            b->known.ntrips = 0; // of another program
    }
    VEC_RESERVE(a, &out->items, art->ncode + 2u * art->nloops + 1);
    add_items(b);
    chain(out, a);
}

uint64_t flow_before(const Flow *f, const FlowItem *item, int wait, int sem, const uint64_t *iter) {
    uint64_t n = item->before[wait];
    bool in_body = item->in_body[wait];
    for (uint32_t r = item->region; in_body && r != NO_REGION;) {
        const FlowRegion *loop = &f->regions.at[r];
        if (loop->has_barrier && iter[loop->depth])
            return n + loop->tail[sem];
        n = sat_mul_add(n + loop->entry[sem], loop->per_iter[sem], iter[loop->depth]);
        in_body = loop->entry_in_body;
        r = loop->parent;
    }
    return n;
}
