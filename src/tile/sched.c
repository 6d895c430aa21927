// SPDX-License-Identifier: Apache-2.0
// sched.c — instructions of neighbouring steps beside each other, and the waits that keep them apart.
//
//   steps ──► tasks in lanes ──► one program
//             tensor: products        An engine works through its instructions in program order. So the order is what
//             rows:   row programs    lets the tensor engine go on while the vector engine is busy with another step.
//             move:   transfers
//             kernel: GpSimd
//
// A step is recorded as tasks, a tile each, in the lane of its kind. Lanes share no SBUF and no PSUM; what they share is HBM,
// known by pieces of it. A task may go before a task of another lane that was recorded earlier unless they meet in a
// piece that one of them writes. Of the tasks that may go next the one that can begin first goes first, by the prices of
// the chip file. The bits of a result do not depend on the order: every value is computed by the same instructions.
//
// Placing an instruction works out its waits: each piece of memory carries the completion counts of who last wrote and
// read it, and an instruction waits for those it does not already know to be over.
#include <assert.h>
#include <string.h>

#include "clock/price.h"
#include "tile/emit.h"

#define PIECE_BITS 15           // HBM is tracked in pieces of 32 KiB
#define PENDING_TASKS 1024      // tasks that wait for company
#define RECS_GONE 16384         // placed records that are kept for the time being
#define CODE_MAX (1u << 30)
#define DONE_NS 2500            // from the last instruction of a task until another engine sees its results in HBM

enum { COST_HBM = ENG_COUNT, COSTS }; // what a task occupies: engines and the memory

typedef struct Rec { // an instruction to be placed, or a merge of what is known about memory
    IsaInst in;
    uint32_t loc;
    uint8_t nreads, nwrites;
    bool is_merge;
    Haz *reads[REC_READS], *writes[REC_WRITES];
} Rec;

typedef struct Task {
    uint64_t recs; // number after its last record in the lane
    uint64_t order; // of recording, over all lanes
    uint32_t dep[LANE_COUNT]; // tasks of each lane that go before it
    double cost[COSTS], finish; // ns
} Task;

typedef struct LaneQueue {
    VEC(Rec) recs;
    uint64_t recs_base, recs_done; // number of recs.at[0]; of the next to be placed
    VEC(Task) tasks;
    uint32_t placed;
} LaneQueue;

typedef struct Piece {
    Haz haz;
    uint32_t w[LANE_COUNT], r[LANE_COUNT]; // last tasks that write and read it, as counts
} Piece;

typedef struct Segment {
    Piece *at;
    uint64_t n;
} Segment;

typedef struct Late { // a store that waits for the next tile
    IsaInst in;
    uint32_t loc;
    Haz *read;
} Late;

struct Sched {
    VEC(Late) late;
    uint32_t late_old; // of the tile before
    LaneQueue lane[LANE_COUNT];
    Segment *segments;
    uint32_t nsegments;
    uint64_t order;
    double free[COSTS];
};

void sched_init(Emit *e, uint32_t nsegments) {
    e->sched = ARENA_NEW(e->c->scratch, Sched);
    *e->sched = (Sched){.nsegments = nsegments, .segments = ARENA_NEWN(e->c->scratch, Segment, nsegments + 1)};
}

// --- pieces of HBM -----------------------------------------------------------------------------------

typedef struct Range {
    uint32_t seg;
    uint64_t first, last; // pieces
    bool writes;
} Range;

// A result that takes over an argument is the same memory.
static uint32_t memory_of(const Emit *e, uint32_t seg) {
    uint32_t results = SEG_FIRST_ARG + e->l->main->nargs;
    if (seg < results || e->l->alias[seg - results] < 0)
        return seg;
    return SEG_FIRST_ARG + (uint32_t)e->l->alias[seg - results];
}

static Piece *piece_at(Emit *e, uint32_t seg, uint64_t i) {
    Segment *s = &e->sched->segments[seg];
    if (i >= s->n) {
        uint64_t n = i + 1 > 2 * s->n ? i + 1 : 2 * s->n;
        Piece *at = ARENA_NEWN(e->c->scratch, Piece, n);
        if (s->n)
            memcpy(at, s->at, s->n * sizeof *at);
        s->at = at, s->n = n;
    }
    return &s->at[i];
}

static Range range_make(const Emit *e, uint64_t addr, uint64_t bytes, bool writes) {
    uint64_t off = addr_off(addr);
    return (Range){memory_of(e, addr_seg(addr)), off >> PIECE_BITS, (off + (bytes ? bytes - 1 : 0)) >> PIECE_BITS, writes};
}

// `rows`: of axis 0, which an index may choose among.
static Range range_of_dma(const Emit *e, const IsaInst *in, uint64_t addr, uint32_t rows, const int32_t *stride, int dtype,
                          bool writes) {
    int64_t below = 0, elems = 1, size = (int64_t)dtype_bytes(dtype);
    for (int i = 0; i < 4; i++) {
        int64_t reach = (int64_t)((i ? isa_count(in->n[i]) : rows) - 1) * stride[i];
        *(reach < 0 ? &below : &elems) += reach;
    }
    return range_make(e, addr + (uint64_t)(below * size), (uint64_t)((elems - below) * size), writes);
}

// What an instruction touches of HBM; at most `max` ranges. By index any row may be meant.
static uint32_t ranges_of(const Emit *e, const IsaInst *in, Range *out, uint32_t max) {
    uint32_t n = 0;
    if (in->op == ISA_KERNEL || in->op == ISA_COLLECTIVE) {
        const Kern *k = &e->kerns.at[in->imm];
        for (uint32_t i = 0; i < k->nin + k->nout && n < max; i++) {
            const KTensor *t = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
            out[n++] = range_make(e, t->addr, t->elems * dtype_bytes(t->dtype), i >= k->nin);
        }
        return n;
    }
    if (isa_rows[in->op].cost != COST_DMA)
        return 0;
    bool gathers = in->op == ISA_DMA_INDIRECT && addr_space(in->src) == SPACE_HBM;
    bool scatters = in->op == ISA_DMA_INDIRECT && !gathers;
    uint32_t rows = isa_count(in->n[0]), any = (uint32_t)in->limit;
    if (addr_space(in->src) == SPACE_HBM)
        out[n++] = range_of_dma(e, in, in->src, gathers ? any : rows, in->s, in->stype, false);
    if (addr_space(in->dst) == SPACE_HBM)
        out[n++] = range_of_dma(e, in, in->dst, scatters ? any : rows, in->d, in->dtype ? in->dtype : in->stype, true);
    return n;
}

static Range *all_ranges(Emit *e, const IsaInst *in, Range few[2], uint32_t *n) {
    Range *at = few;
    uint32_t max = 2;
    if (in->op == ISA_KERNEL || in->op == ISA_COLLECTIVE) {
        max = e->kerns.at[in->imm].nin + e->kerns.at[in->imm].nout;
        at = max > 2 ? ARENA_NEWN(e->c->scratch, Range, max) : few;
    }
    *n = ranges_of(e, in, at, max);
    return at;
}

// --- placing -----------------------------------------------------------------------------------------

uint32_t emit_append(Emit *e, const IsaInst *in) {
    if (e->code.n >= CODE_MAX)
        ctx_fail(e->c->ctx, OTRN_CAPACITY, NO_PLACE, "the program needs more than %u instructions", CODE_MAX);
    VEC_PUSH(e->c->arena, &e->code, *in);
    VEC_PUSH(e->c->arena, &e->code_loc, e->loc);
    e->done[isa_sem(in)]++;
    return e->code.n - 1;
}

static void need(uint32_t want[HAZ_SEMS], const Haz *h, uint32_t epoch, bool reads_too) {
    if (h->epoch != epoch)
        return;
    for (int s = 0; s < HAZ_SEMS; s++) {
        uint32_t n = reads_too && h->r[s] > h->w[s] ? h->r[s] : h->w[s];
        want[s] = n > want[s] ? n : want[s];
    }
}

static void note_read(Haz *h, uint32_t epoch, int own, uint32_t count) {
    if (h->epoch != epoch)
        *h = (Haz){.epoch = epoch};
    h->r[own] = count;
}

// `whole`: nothing of what was known before matters any more.
static void note_write(Haz *h, uint32_t epoch, int own, uint32_t count, bool whole) {
    if (whole || h->epoch != epoch)
        *h = (Haz){.epoch = epoch};
    h->w[own] = count;
}

static void add_waits(Emit *e, IsaInst *in, const uint32_t want[HAZ_SEMS]) {
    uint32_t *seen = e->seen[in->engine];
    in->wait_sem[0] = in->wait_sem[1] = SEM_NONE;
    int nwaits = 0, own = isa_sem(in);
    for (int s = 0; s < HAZ_SEMS; s++) {
        if (s == own || want[s] <= seen[s]) // an engine and a queue work in order
            continue;
        seen[s] = want[s];
        if (nwaits == 2) { // no room: a wait of its own goes before
            IsaInst w = {.op = ISA_WAIT, .engine = in->engine};
            memcpy(w.wait_sem, in->wait_sem, sizeof w.wait_sem);
            memcpy(w.wait_val, in->wait_val, sizeof w.wait_val);
            emit_append(e, &w);
            in->wait_sem[0] = in->wait_sem[1] = SEM_NONE;
            in->wait_val[0] = in->wait_val[1] = 0;
            nwaits = 0;
        }
        in->wait_sem[nwaits] = (uint8_t)s;
        in->wait_val[nwaits++] = want[s];
    }
}

static void place(Emit *e, const Rec *r) {
    if (r->is_merge) {
        haz_merge(r->writes[0], r->reads[0], e->epoch);
        return;
    }
    uint32_t want[HAZ_SEMS] = {0}, n;
    Range few[2], *ranges = all_ranges(e, &r->in, few, &n);
    for (uint32_t i = 0; i < r->nreads; i++)
        need(want, r->reads[i], e->epoch, false);
    for (uint32_t i = 0; i < r->nwrites; i++)
        need(want, r->writes[i], e->epoch, true);
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t p = ranges[i].first; p <= ranges[i].last; p++)
            need(want, &piece_at(e, ranges[i].seg, p)->haz, e->epoch, ranges[i].writes);
    IsaInst in = r->in;
    add_waits(e, &in, want);
    e->loc = r->loc;
    emit_append(e, &in);
    int own = isa_sem(&in);
    uint32_t count = e->done[own];
    for (uint32_t i = 0; i < r->nreads; i++)
        note_read(r->reads[i], e->epoch, own, count);
    for (uint32_t i = 0; i < r->nwrites; i++)
        note_write(r->writes[i], e->epoch, own, count, true);
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t p = ranges[i].first; p <= ranges[i].last; p++) {
            Haz *h = &piece_at(e, ranges[i].seg, p)->haz;
            if (ranges[i].writes)
                note_write(h, e->epoch, own, count, false);
            else
                note_read(h, e->epoch, own, count);
        }
}

// --- recording ---------------------------------------------------------------------------------------

static Task *open_task(Emit *e) {
    LaneQueue *q = &e->sched->lane[e->lane];
    return &q->tasks.at[q->tasks.n - 1];
}

void emit_task(Emit *e) {
    if (e->lane == LANE_NONE)
        return;
    LaneQueue *q = &e->sched->lane[e->lane];
    if (q->tasks.n > q->placed && open_task(e)->recs == (q->tasks.n > 1 ? q->tasks.at[q->tasks.n - 2].recs : 0))
        return; // nothing in it yet
    VEC_PUSH(e->c->scratch, &q->tasks, (Task){.recs = q->recs_base + q->recs.n, .order = e->sched->order++});
}

void emit_lane(Emit *e, Lane lane) {
    if (lane == LANE_NONE)
        emit_flush(e);
    e->lane = lane;
    emit_task(e);
}

static void note_task(Emit *e, Task *t, const Range *r) {
    uint32_t self = e->sched->lane[e->lane].tasks.n;
    for (uint64_t i = r->first; i <= r->last; i++) {
        Piece *p = piece_at(e, r->seg, i);
        for (int k = 0; k < LANE_COUNT; k++) {
            uint32_t n = r->writes && p->r[k] > p->w[k] ? p->r[k] : p->w[k];
            if (k != (int)e->lane && n > t->dep[k])
                t->dep[k] = n;
        }
        *(r->writes ? &p->w[e->lane] : &p->r[e->lane]) = self;
    }
}

static void add_cost(const Emit *e, Task *t, const IsaInst *in) {
    Price p;
    price_alone(e->chip, e->kerns.at, in, &p);
    if (isa_rows[in->op].cost != COST_LDWEIGHTS)
        t->cost[in->engine] += (double)p.busy * 1e-3;
    t->cost[COST_HBM] += (double)(p.hbm > p.dma ? p.hbm : p.dma) * 1e-3;
}

static void record(Emit *e, const Rec *r) {
    LaneQueue *q = &e->sched->lane[e->lane];
    VEC_PUSH(e->c->scratch, &q->recs, *r);
    Task *t = open_task(e);
    t->recs++;
    if (r->is_merge)
        return;
    uint32_t n;
    Range few[2], *ranges = all_ranges(e, &r->in, few, &n);
    for (uint32_t i = 0; i < n; i++)
        note_task(e, t, &ranges[i]);
    add_cost(e, t, &r->in);
}

void emit_inst(Emit *e, IsaInst in, Haz *const *reads, uint32_t nreads, Haz *const *writes, uint32_t nwrites) {
    Rec r = {.in = in, .loc = e->loc, .nreads = (uint8_t)nreads, .nwrites = (uint8_t)nwrites};
    assert(nreads <= REC_READS && nwrites <= REC_WRITES);
    for (uint32_t i = 0; i < nreads; i++)
        r.reads[i] = reads[i];
    for (uint32_t i = 0; i < nwrites; i++)
        r.writes[i] = writes[i];
    if (e->lane == LANE_NONE)
        place(e, &r);
    else
        record(e, &r);
}

void emit_merge(Emit *e, Haz *into, Haz *from) {
    Rec r = {.is_merge = true, .reads = {from}, .writes = {into}};
    if (e->lane == LANE_NONE)
        place(e, &r);
    else
        record(e, &r);
}

void emit_store(Emit *e, IsaInst in, Haz *read) {
    VEC_PUSH(e->c->scratch, &e->sched->late, (Late){in, e->loc, read});
}

// Places the stores of the tile before this one, or all.
void emit_turn(Emit *e, bool all) {
    Sched *s = e->sched;
    uint32_t n = all ? s->late.n : s->late_old, loc = e->loc;
    for (uint32_t i = 0; i < n; i++) {
        e->loc = s->late.at[i].loc;
        emit_inst(e, s->late.at[i].in, &s->late.at[i].read, 1, NULL, 0);
    }
    e->loc = loc;
    memmove(s->late.at, s->late.at + n, (s->late.n - n) * sizeof *s->late.at);
    s->late_old = s->late.n -= n;
}

// What is still done with a part of SBUF comes in, or goes out again.
void emit_area(Emit *e, Haz *h, uint32_t at, uint32_t bytes, bool out) {
    uint32_t last = (at + bytes - 1) / SBUF_PIECE;
    assert(last < SBUF_PIECES);
    for (uint32_t g = at / SBUF_PIECE; g <= last; g++)
        emit_merge(e, out ? &e->sbuf_haz[g] : h, out ? h : &e->sbuf_haz[g]);
}

// --- choosing ----------------------------------------------------------------------------------------

static bool may_go(const Sched *s, int lane, const Task *t, double *ready) {
    *ready = 0;
    for (int k = 0; k < LANE_COUNT; k++) {
        if (k == lane || !t->dep[k])
            continue;
        if (t->dep[k] > s->lane[k].placed)
            return false;
        double f = s->lane[k].tasks.at[t->dep[k] - 1].finish;
        *ready = f > *ready ? f : *ready;
    }
    return true;
}

static int heaviest(const Task *t) {
    int best = 0;
    for (int i = 1; i < COSTS; i++)
        best = t->cost[i] > t->cost[best] ? i : best;
    return best;
}

static int choose(const Sched *s, double *ready) {
    int best = LANE_NONE;
    double best_start = 0;
    for (int k = 0; k < LANE_COUNT; k++) {
        const LaneQueue *q = &s->lane[k];
        double r;
        if (q->placed == q->tasks.n || !may_go(s, k, &q->tasks.at[q->placed], &r))
            continue;
        const Task *t = &q->tasks.at[q->placed];
        double busy = s->free[heaviest(t)], start = r > busy ? r : busy;
        if (best == LANE_NONE || start < best_start ||
            (start == best_start && t->order < s->lane[best].tasks.at[s->lane[best].placed].order))
            best = k, best_start = start, *ready = r;
    }
    return best;
}

static void place_task(Emit *e, int lane, double ready) {
    Sched *s = e->sched;
    LaneQueue *q = &s->lane[lane];
    Task *t = &q->tasks.at[q->placed++];
    uint32_t loc = e->loc;
    for (; q->recs_done < t->recs; q->recs_done++)
        place(e, &q->recs.at[q->recs_done - q->recs_base]);
    e->loc = loc;
    uint64_t gone = q->recs_done - q->recs_base;
    if (gone == q->recs.n || gone > RECS_GONE) { // make room
        memmove(q->recs.at, q->recs.at + gone, (q->recs.n - gone) * sizeof *q->recs.at);
        q->recs.n -= (uint32_t)gone;
        q->recs_base += gone;
    }
    t->finish = ready;
    for (int i = 0; i < COSTS; i++) {
        if (t->cost[i] <= 0)
            continue;
        s->free[i] = (s->free[i] > ready ? s->free[i] : ready) + t->cost[i];
        t->finish = t->finish > s->free[i] ? t->finish : s->free[i];
    }
    t->finish += DONE_NS;
}

static uint64_t pending(const Sched *s) {
    uint64_t n = 0;
    for (int k = 0; k < LANE_COUNT; k++)
        n += s->lane[k].tasks.n - s->lane[k].placed;
    return n;
}

static void advance(Emit *e, uint64_t keep) {
    for (uint64_t n = pending(e->sched); n > keep; n--) {
        double ready = 0;
        int lane = choose(e->sched, &ready);
        assert(lane != LANE_NONE); // the oldest task of all waits for none
        place_task(e, lane, ready);
    }
}

void emit_step_end(Emit *e) {
    if (e->lane != LANE_NONE)
        advance(e, PENDING_TASKS);
    e->lane = LANE_NONE;
}

void emit_flush(Emit *e) { advance(e, 0); }
